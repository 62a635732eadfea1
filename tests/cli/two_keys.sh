#!/bin/sh
# One principal with two keys: when one of them goes, the connections that came by it go at once, and
# those of the other key stay.
. "$(dirname "$0")/lib.sh"

keys="$XDG_CONFIG_HOME/taskmq/keys"
mkdir -m 700 .taskmq
for name in stays goes added; do
    run 0 taskctl -q key new "$name"
    cp out "$name.key"
done
list_keys ()
{
    {
        echo "me uid:$(id -u) operator"
        echo "farm key:$1 worker(*) reader(*)"
    } >access.new
    chmod 600 access.new
    mv access.new .taskmq/access
}
list_keys "$(cat stays.key),key:$(cat goes.key)"
broker_options="--listen tcp://127.0.0.1:0?curve"
start_broker
uri=$(grep '^tcp:' .taskmq/endpoint)
with () # KEY NAME COMMAND...: in the background, with this key
{
    key=$1
    spawned_as=$2
    shift 2
    spawn "$spawned_as" taskctl -e "$uri" --key-file "$keys/$key.key" "$@"
}
counts () { taskctl stats | grep -Eq "^$1 +$2\$"; }

# Workers and watchers of both keys.
with stays stayer work steady -- cat
with goes goer work other -- cat
with stays looker watch
with goes gazer watch
eventually counts workers 2
eventually counts subscriptions 2

# The file loses a key. The name is the same, and so are its grants.
list_keys "$(cat stays.key),key:$(cat added.key)"
ended goer 4
err_has "does not accept the key $(cat goes.key)"
ended gazer 4
run 4 taskctl -e "$uri" --key-file "$keys/goes.key" ping
run 0 taskctl -e "$uri" --key-file "$keys/added.key" ping
run 0 taskctl -o json stats
grep -q '"connections_cut_revoked":2' out || fail "cut: $(grep -o '"[a-z_]*revoked":[0-9]*' out)"

# … by hand.
with added newer work other -- cat
eventually counts workers 2
run 0 taskctl key revoke "$(cat added.key)"
ended newer 4

# Whoever came by the key that stays noticed nothing.
id=$(taskctl submit steady --data x) || fail "submit"
run 0 taskctl wait "$id"
seen () { grep -q completed looker.out; }
eventually seen
! grep -q 'is gone' looker.err || fail "the watcher lost its link"
! grep -q 'is gone' stayer.err || fail "the worker lost its link"
signal stayer TERM
ended stayer 0
stop_broker
