#!/bin/sh
# Where a secret may not stand: after all that is done with keys here, every secret is looked for in
# what was said, logged, stored, backed up, and in what other users of the machine can see.
# shellcheck disable=SC2016 # the shells of the programs expand these
. "$(dirname "$0")/lib.sh"

broker_options="--listen tcp://127.0.0.1:0?curve"
start_broker
: >said
# tell EXIT COMMAND...: keeps what it said.
tell ()
{
    run "$@"
    cat out err >>said
}
on ()
{
    machine=$1
    shift
    mkdir -p "$room/$machine"
    env XDG_CONFIG_HOME="$room/$machine" "$@"
}

# The secrets: of an invitation, of a client, of the broker.
run 0 taskctl invite w --role worker --queue q
sed 's/^taskctl join //' out >join.secret
tell 0 on w sh -c 'taskctl join - <join.secret'
tell 4 on x sh -c 'taskctl join - <join.secret'
on w taskctl key show --secret --yes | sed -n 2p >key.secret
grep -o 'tmqsk_[a-z2-7]*' .taskmq/server.key >server.secret
[ -s key.secret ] || fail 'there is no secret of a key'
[ -s server.secret ] || fail 'there is no secret of the broker'

# A worker has its key in its environment; what it runs has not, and nobody sees it in a list.
id=$(taskctl submit q --data x) || fail submit
server=$(sed -n 's/^\(tcp:.*\)/\1/p' .taskmq/endpoint)
spawn worker env TASKMQ_KEY="$(cat key.secret)" TASKMQ_JOIN="$(cat join.secret)" \
    taskctl -v -e "$server" work q -- sh -c 'echo ready >&2; sleep 1000'
eventually grep -q ready worker.err
for process in /proc/[0-9]*; do
    case $(readlink "$process/cwd" 2>/dev/null) in
    "$room"*) tr '\0' ' ' <"$process/cmdline" >>said 2>/dev/null ;;
    esac
done
grep -q 'work q' said || fail 'the command lines were not read'
run 0 taskctl key revoke w
signal worker KILL
id2=$(taskctl submit q --data x) || fail submit
tell 0 env TASKMQ_KEY="$(cat key.secret)" TASKMQ_JOIN="$(cat join.secret)" \
    taskctl work q --drain -- sh -c 'cat /proc/$$/environ'
run 0 taskctl result "$id2"
out_has 'TASKMQ_NAMESPACE'
cat out >>said

# Mistakes: a key that was revoked, one with a letter changed, one where another thing belongs.
tell 4 env TASKMQ_KEY="$(cat key.secret)" taskctl -v -e "$server" ping
tr a-y b-z <key.secret >typo
tell 2 env TASKMQ_KEY="$(cat typo)" taskctl -e "$server" ping
tell 2 taskctl key import typo other
cat typo >typo.secret
printf 'w uid:7 %s\n' "$(cat key.secret)" >wrong
(umask 077 && cat .taskmq/access wrong >access && cp .taskmq/access good && cp access .taskmq/access)
tell 2 taskctl reload
cp good .taskmq/access
tell 0 taskctl reload
tell 0 taskctl key list
tell 0 taskctl -o json key list
tell 0 taskctl invite list
tell 0 taskctl doctor
tell 0 taskctl whoami
tell 0 taskctl -v stats
tell 0 taskctl -o jsonl audit tail --limit 1000
tell 0 taskctl backup b.tar
tell 0 taskmqd --show-config --data "$room/.taskmq"
stop_broker

for secret in join key server typo; do
    for place in said worker.out worker.err broker.out broker.err b.tar .taskmq/access \
        .taskmq/audit.jsonl .taskmq/tasks.jsonl .taskmq/taskmq.db .taskmq/journal.log; do
        [ -e "$place" ] || fail "there is no $place"
        ! grep -aqF "$(cat $secret.secret)" "$place" || fail "the secret $secret stands in $place"
    done
done
