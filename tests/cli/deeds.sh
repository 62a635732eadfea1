#!/bin/sh
# What is done to the access file, to keys and to other people's tasks stands in the record.
. "$(dirname "$0")/lib.sh"

on ()
{
    machine=$1
    shift
    mkdir -p "$room/$machine"
    env XDG_CONFIG_HOME="$room/$machine" "$@"
}
joined=--profile=default # else the broker's directory, which is here, would come first

# noted KIND RE: soon some line of this kind says it.
# shellcheck disable=SC2317 # eventually calls it
says () { taskctl audit tail --kind "$1" --limit 100 | tr -s " " | grep -Eq -- "$2"; }
noted () { eventually says "$1" "$2"; }

printf 'me uid:%s operator\n' "$(id -u)" >first
: >conf
broker_options="-c conf --listen tcp://127.0.0.1:0?curve"
start_broker

# Keys and invitations, and what they made of the access file.
run 0 taskctl invite far --role client
line=$(sed 's/^taskctl join //' out)
noted invite.made "uid:$(id -u) .*far ok: client"
noted access.changed 'added .*far'
run 0 on far taskctl join "$line"
noted invite.used 'invite:[^ ]* .*tmqpk_[a-z2-7]{58} ok'
noted access.changed 'added far key:tmqpk_'
run 0 on other taskctl key new
public=$(cat out)
run 0 taskctl key trust ci "$public" --role client
noted key.trusted 'ci ok: client'
noted access.changed "added ci key:$public client"
run 0 taskctl key revoke ci
noted key.revoked 'ci ok'
noted access.changed "removed ci key:$public client"
run 5 taskctl key revoke nobody
noted key.revoked 'nobody refused: '
run 0 on far taskctl "$joined" key rotate
noted key.enrolled 'far .*tmqpk_[a-z2-7]{58} ok'
noted access.changed 'changed far key:tmqpk_.* to far key:tmqpk_'
run 0 taskctl invite back --role client
run 0 taskctl -o json invite list
run 0 taskctl invite revoke "$(taskctl -o jsonl invite list | sed -n 's/.*"invitation":"\([^"]*\)".*"name":"back".*/\1/p')"
noted invite.revoked ' ok'
run 5 taskctl invite revoke ffff
noted invite.revoked 'ffff nothing: there was none'
run 0 taskctl audit tail --kind access.changed --limit 100
out_lacks 'no line'

# By hand, and by a signal.

printf 'brief uid:65000 client(*) until=%s\n' "$(date -u -d '+3 seconds' +%Y-%m-%dT%H:%M:%SZ)" >>.taskmq/access
noted access.changed 'added brief uid:65000 client'
noted key.ended '[ -]brief ok'
run 0 taskctl reload
noted broker.reloaded ' ok$'
kill -HUP "$broker_pid"
noted broker.reloaded "uid:$(id -u) .* ok: SIGHUP\$"
printf 'limits\n    nonsense = 1\n' >conf
kill -HUP "$broker_pid"
noted broker.reloaded "uid:$(id -u) .* refused: .*nonsense"
: >conf

# Another's task.
id=$(on far taskctl "$joined" submit q --data secret) || fail 'submit'
run 0 taskctl payload "$id"
noted task.read "me .*$id ok: payload of a task of far"
run 0 taskctl cancel "$id"
noted task.cancelled "me .*$id ok: cancel of a task of far"
run 0 on far taskctl "$joined" payload "$id"
id=$(on far taskctl "$joined" submit q --data secret --label kind=odd) || fail 'submit'
run 0 taskctl set "$id" --priority 7
noted task.changed "me .*$id ok: set of a task of far"
run 0 taskctl cancel "$id"
run 0 taskctl retry "$id"
noted task.retried "me .*$id ok: retry of a task of far"
run 0 taskctl cancel "$id"
run 0 taskctl export "$id"
cp out exported
noted task.read "me .*$id ok: payload of a task of far"
run 0 taskctl purge "$id"
noted task.purged "me .*$id ok: purge of a task of far"
sed "s/$id/01900000-0000-7000-8000-000000000001/" exported >imported
run 0 taskctl import imported
noted task.imported 'me .*01900000-0000-7000-8000-000000000001 ok: import into the queue q'
run 4 on far taskctl "$joined" audit tail
noted denied 'far .*audit refused'

# A quota.
sed 's/^\(far .*\)/\1 tasks=1/' .taskmq/access >limited
cat limited >.taskmq/access
noted access.changed 'to far .* tasks=1'
run 0 on far taskctl "$joined" submit q --data x
on far taskctl "$joined" --timeout 1s submit q --data x >out 2>err && fail 'a quota was passed'
noted quota.hit 'far .*refused: live tasks of far: 1'

run 0 taskctl backup b.tar
noted backup 'ok: [0-9]* tasks'
stop_broker
run 0 taskctl audit verify .taskmq

# A record that is taken away between two starts is missed, and so is its end.
cp .taskmq/audit.jsonl whole
rm .taskmq/audit.jsonl
start_broker
noted audit.gap 'missing: line [0-9]* is not there'
grep -q 'id=AUDIT-MISSING' broker.err || fail 'the log does not say so'
stop_broker
start_broker
[ "$(grep -c 'id=AUDIT-MISSING' broker.err)" -eq 1 ] || fail 'it is said again'
stop_broker
head -n 3 .taskmq/audit.jsonl >shorter
cp shorter .taskmq/audit.jsonl
start_broker
[ "$(grep -c 'id=AUDIT-MISSING' broker.err)" -eq 2 ] || fail 'lines that were cut off are not missed'
stop_broker
cp whole .taskmq/audit.jsonl
grep -q 'tmqjoin_\|tmqsk_\|secret' .taskmq/audit.jsonl && fail 'a secret stands in the record'
exit 0
