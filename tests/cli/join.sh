#!/bin/sh
# Another machine joins, works, changes its key and is turned away. Each "machine" is a configuration
# of its own; all of them reach the broker by loopback, with keys as from afar.
. "$(dirname "$0")/lib.sh"

on ()
{
    machine=$1
    shift
    mkdir -p "$room/$machine"
    env XDG_CONFIG_HOME="$room/$machine" "$@"
}
joined=--profile=default # else the broker's directory, which is here, would come first

broker_options="--listen tcp://127.0.0.1:0?curve"
start_broker

# Nobody is known yet, so the first invitation makes the access file, and says who loses access.
[ ! -e .taskmq/access ] || fail "an access file before anybody asked for one"
run 0 taskctl invite render-7 --role worker --queue 'render*'
out_lines 1
out_has '^taskctl join tmqjoin_[a-z2-7]*$'
err_has '^once, until .* \((1h|5[0-9]m)\); take back: taskctl invite revoke [0-9a-f]*$'
err_has '^it leads to 127\.0\.0\.1:[0-9]*; .* --address HOST:PORT$'
err_has "^made $room/.taskmq/access: .*lose access"
line=$(sed 's/^taskctl join //' out)
[ "$(stat -c %a .taskmq/access)" = 600 ] || fail "the mode of the access file"
head -n 3 .taskmq/access | grep -qx "me uid:$(id -u) operator" || fail "the first line"

# A line with a letter changed, and none.
run 2 on b taskctl join "$(printf %s "$line" | tr a-y b-z)"
out_lines 0
err_has "^hint: 'taskctl invite', on the broker's machine, prints the whole line$"
run 2 on b taskctl join
err_has 'needs the line of an invitation'

# It joins, once; what is there already is not needed again.
run 0 on b taskctl join "$line"
out_has '^joined tcp://127.0.0.1:[0-9]* as render-7: worker of render\* in default$'
run 6 on b taskctl join "$line"
err_has '^hint: .*taskctl profile remove default'
run 0 on b taskctl "$joined" doctor
out_has '^ok *key *tmqpk_[a-z2-7]* without an end$'
run 0 on b taskctl join --if-needed "$line"
run 4 on c taskctl join "$line"
err_has 'this invitation was used by 127.0.0.1 at 20'
[ ! -e "$room/c/taskmq/keys/default.key" ] || fail "a key of a join that failed is left"
run 0 on b taskctl "$joined" whoami
out_has '^identity *render-7$'
run 0 taskctl invite list
out_has 'render-7 .* 0 .*127.0.0.1 at '

# It works, in its queues only, and does nothing else.
id=$(taskctl submit render --data x) || fail "submit"
spawn worker env XDG_CONFIG_HOME="$room/b" taskctl "$joined" work render -- cat
run 0 taskctl wait "$id"
run 4 on b taskctl "$joined" submit render --data x
run 4 on b taskctl "$joined" key list
err_has '^taskctl: only an operator may do this$'
run 4 on b taskctl "$joined" invite other --role operator
run 4 on b taskctl "$joined" work other -- cat
err_has 'no right to work on queue other'

# A new key, while it works: the worker goes on.
old=$(sed -n 's/^# public key //p' "$room/b/taskmq/keys/default.key")
run 0 on b taskctl "$joined" key rotate
new=$(sed -n 's/^# public key //p' "$room/b/taskmq/keys/default.key")
[ "$old" != "$new" ] || fail "the key is the same"
err_lacks 'broker is'
run 0 taskctl key list
out_has "$new"
out_lacks "$old"
id=$(taskctl submit render --data x) || fail "submit"
run 0 taskctl wait "$id"

# Revoked: the worker ends, and so does its program, which is told. What it held is done by another one.
cat >told.sh <<'END'
trap 'read -r why <&"$TASKMQ_FD"; echo "$why" >told; exit 0' TERM
: >begun
while :; do sleep 0.1; done
END
spawn slow env XDG_CONFIG_HOME="$room/b" taskctl "$joined" work render-slow -- sh told.sh
id=$(taskctl submit render-slow --data x) || fail "submit"
eventually test -e begun
run 0 taskctl key revoke render-7
ended worker 4
ended slow 4
err_has 'does not accept the key'
err_has '0 done, 1 lost'
grep -qx lost told || fail "the program was told: $(cat told)"
run 4 on b taskctl "$joined" ping
err_has 'does not accept the key tmqpk_[a-z2-7]*: an operator lets it in by taskctl key trust$'
waits () { [ "$(status_of "$id")" = queued ]; }
eventually waits
run 0 taskctl -o json get "$id"
out_lacks '"failures":[1-9]'
run 4 on c taskctl join "$line" # it does not come back to life
err_has 'was used by'

# One that ends, and one that is taken back.
run 0 taskctl invite brief --role worker --for 1s
brief=$(sed 's/^taskctl join //' out)
is_over () { ! taskctl invite list | grep -q brief; }
eventually is_over
run 4 on d taskctl join "$brief"
err_has 'has ended, or was taken back'
run 0 taskctl -o json invite back --role worker
back=$(sed -n 's/.*"join":"\([^"]*\)".*/\1/p' out)
run 0 taskctl invite revoke "$(sed -n 's/.*"invitation":"\([^"]*\)".*/\1/p' out)"
run 4 on d taskctl join "$back"
run 5 taskctl invite revoke ffff
run 2 taskctl invite odd --role worker --queue 'a b'
err_has "^taskctl: --queue: 'a b' must be a name, or a pattern"
run 2 taskctl invite --role worker
run 2 taskctl invite odd --name odd --role worker
run 0 taskctl invite --name list --role worker
out_has '^taskctl join tmqjoin_'
run 0 taskctl invite list
out_has ' list  '

# Two at once: one of them wins.
run 0 taskctl invite single --role worker
single=$(sed 's/^taskctl join //' out)
mkdir -p e f
spawn one env XDG_CONFIG_HOME="$room/e" taskctl join "$single"
spawn two env XDG_CONFIG_HOME="$room/f" taskctl join "$single"
wait_both ()
{
    wait "$(cat one.pid)"
    first=$?
    wait "$(cat two.pid)"
    second=$?
}
wait_both
[ "$first $second" = "0 4" ] || [ "$first $second" = "4 0" ] || fail "both: $first $second"
spawned=

# A line that leads nowhere, one that is good for seconds, and a watcher, who reads no results.
run 2 taskctl invite lost --role worker --address 127.0.0.1
err_has 'an address is HOST:PORT'
# Of a pair the line names both, and who joins has both.
place=$(sed -n "s|^tcp://\([^?]*\).*|\1|p" .taskmq/endpoint)
run 2 taskctl invite both --role worker --address 127.0.0.1:1 --address here
err_has 'an address is HOST:PORT'
run 0 taskctl invite both --role worker --address 127.0.0.1:1 --address "$place"
run 0 on p taskctl join "$(sed 's/^taskctl join //' out)"
run 0 on p taskctl profile show
out_has '^endpoint = tcp://127\.0\.0\.1:1$'
out_has "^endpoint = tcp://$place$"
run 0 on p taskctl profile list
out_has "^default +tcp://127\.0\.0\.1:1 tcp://$place "
run 0 on p taskctl "$joined" ping
run 0 taskctl invite lost --role worker --address 127.0.0.1:1 --for 30s
err_has ' \([0-9]+s\); '
err_lacks 'leads to'
run 3 on l taskctl --timeout 1h join "$(sed 's/^taskctl join //' out)"
err_has '^hint: .*ask for a line with --address HOST:PORT$'
run 0 taskctl invite watcher --role observer
run 0 on l sh -c "$(cat out)"
run 4 on l taskctl "$joined" payload "$id"
err_has 'no right to payloads and results in this namespace'
run 4 on l taskctl "$joined" cancel "$id"
err_has 'no right to change tasks in this namespace'
run 6 taskctl invite watcher --role observer
err_has 'the name watcher is taken'
err_has '^hint: an operator sees all names: taskctl key list$'

# One for many: it comes by stdin, and each gets a name of its own.
run 2 taskctl invite 'farm' --role worker --uses 2
run 0 taskctl invite 'farm-%h' --role worker --uses 2
out_has '^echo tmqjoin_[a-z2-7]* | taskctl join -$'
sed 's/^echo \([^ ]*\) .*/\1/' out >many
run 0 on g sh -c 'taskctl join - <many'
out_has ' as farm-'
run 6 on h env TASKMQ_JOIN="$(cat many)" taskctl join --profile other
err_has 'is taken' # by this very machine

# Without an invitation: a key, and somebody who trusts it.
run 0 on i taskctl key new
public=$(cat out)
run 2 taskctl key trust ci "$public"
err_has 'what may it do'
run 0 taskctl key trust ci "$public" --role client --queue 'build*'
server=$(sed -n 's/.*\(tcp:.*\)/\1/p' .taskmq/endpoint)
run 0 on i taskctl -e "$server" submit build-1 --data x
run 4 on i taskctl -e "$server" submit render --data x
run 0 taskctl key revoke "$public"
run 4 on i taskctl -e "$server" ping
run 5 taskctl key revoke "$public"

# A file that is wrong changes nothing, and says so.
cp .taskmq/access good
echo 'ci uid:7 clinet(default)' >>.taskmq/access
run 2 taskctl reload
err_has 'access:[0-9]*: .*did you mean client'
run 0 taskctl stats
out_has '^access_stale *1$'
run 2 taskctl invite x --role worker
err_has 'mend the access file first'
cp good .taskmq/access
echo 'late uid:7 client(default) until=2020-01-01' >>.taskmq/access
run 0 taskctl reload
err_has '^configuration read again; the access file has changed: [0-9]* names$'
run 0 taskctl key list
out_has '^late .* ended 2020-01-01 '
cp good .taskmq/access
run 0 taskctl reload
run 0 taskctl stats
out_lacks '^access_stale *1$'
stop_broker

# How others reach the broker may be said once, for all invitations.
broker_options="$broker_options -c $room/taskmqd.conf"
printf 'broker\n    advertise = tasks.example:5560,other.example:5560\n' >taskmqd.conf
start_broker
run 0 taskctl invite far --role worker
err_has '^it leads to tasks\.example:5560,other\.example:5560;'
run 0 taskctl invite near --role worker --address 10.0.0.1:99
err_lacks 'tasks\.example'
stop_broker
