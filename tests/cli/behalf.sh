#!/bin/sh
# A gateway acts for owners whom the broker does not know: each has a world of his own.
. "$(dirname "$0")/lib.sh"

on ()
{
    machine=$1
    shift
    mkdir -p "$room/$machine"
    env XDG_CONFIG_HOME="$room/$machine" "$@"
}
joined=--profile=default # else the broker's directory, which is here, would come first
web () { on web taskctl "$joined" "$@"; }
ann () { web --on-behalf ann "$@"; }
ben () { web --on-behalf ben "$@"; }

# shellcheck disable=SC2317 # eventually calls it
says () { taskctl audit tail --kind "$1" --limit 100 | tr -s " " | grep -Eq -- "$2"; }

printf 'me uid:%s operator\n' "$(id -u)" >first
broker_options="--listen tcp://127.0.0.1:0?curve"
start_broker
run 0 taskctl invite web --role gateway
line=$(sed 's/^taskctl join //' out)
run 0 on web taskctl join "$line"
run 0 web whoami
out_has 'gateway\(default\)'

# What one has submitted another does not know, nor does the gateway itself.
run 0 ann submit q --data hers --dedup-key once
hers=$(cat out)
run 0 ben submit q --data his --dedup-key once
his=$(cat out)
[ "$hers" != "$his" ] || fail 'one key for two owners'
run 0 ann -o json get "$hers"
json owner '"web/ann"'
run 0 ann -o id list
out "$hers"
run 0 ben -o id list
out "$his"
for verb in get payload cancel result; do
    run 5 ben "$verb" "$hers"
    err_has 'no such task'
    cp err foreign
    run 5 ben "$verb" 01900000-0000-7000-8000-000000000000
    sed "s/$hers/ID/" foreign >foreign.id
    sed 's/01900000-0000-7000-8000-000000000000/ID/' err | cmp -s - foreign.id ||
        fail "$verb: what is another's is told from what is not"
done
run 5 ben wait "$hers" --for 1s
run 4 web get "$hers"
run 4 web submit q --data own

# Everything in his name, and nothing else.
run 2 ann queue list
err_has 'on behalf'
run 2 ann work q -- cat
run 2 web --on-behalf a/b list
run 0 ann set "$hers" --priority 9
run 0 taskctl work q --drain -- cat
run 0 ann wait "$hers"
run 0 ann result "$hers"
[ "$(cat out)" = hers ] || fail 'the result'
run 5 ann retry "$his"
err_has 'no such task'
run 0 taskctl -o json get --events "$hers"
out_has '"actor":"web/ann"'

# The operator sees all of them, by owner, too; also after a crash.
port=$(sed -n 's/^tcp:[^?]*:\([0-9]*\).*/\1/p' .taskmq/endpoint)
broker_options="--listen tcp://127.0.0.1:$port?curve"
kill_broker
start_broker
run 0 taskctl count
out 2
run 0 taskctl -o id list --owner web/ann
out "$hers"
run 0 taskctl count --owner web/ann --owner web/ben
out 2
run 0 taskctl count --owner web
out 0
run 2 ann list --owner web/ann
run 5 ben get "$hers"

# His quotas are his own; the record has both names.
sed -i 's/^web .*/& tasks=1/' .taskmq/access
run 0 taskctl reload
run 0 ann submit q
run 10 ann --timeout 1s submit q
err_has 'live tasks of web/ann: 1'
run 0 ben submit q
eventually says quota.hit 'web/ann '

# Without the grant nobody is acted for.
sed -i 's/gateway(default)/client(default)/' .taskmq/access
run 0 taskctl reload
run 4 ann get "$hers"
err_has 'no right to act for others'
