#!/bin/sh
# taskctl context: values of a session and of the namespace, versions, two that are faster than one
# another, bad input, and what a kill leaves.
. "$(dirname "$0")/lib.sh"

# value TEXT KEY...: get prints exactly these bytes.
value ()
{
    text=$1
    shift
    run 0 taskctl context get "$@"
    [ "$(cat out; printf .)" = "$text." ] || fail "$* is not $text"
}

start_broker
run 0 taskctl context put plan --data draft --if-version 0
first=$(cat out)
run 6 taskctl context put plan --data other --if-version 0
err_has "the value exists, in version $first"
value draft plan
run 0 taskctl context put plan --data second --if-version "$first"
second=$(cat out)
[ "$second" -gt "$first" ] || fail "version $second does not follow $first"
run 6 taskctl context put plan --data third --if-version "$first"
err_has "the value has version $second, not $first"
run 0 taskctl -o json context get plan
golden context.json
printf 'a\nb' >file
run 0 taskctl context put steps/1 --session trip --file file
run 0 sh -c 'printf "c" | taskctl context put steps/2 --session trip -'
run 0 taskctl context put other --session trip --data x
run 0 taskctl -o id context list steps/ --session trip
out 'steps/1
steps/2'
run 0 taskctl -o id context list --session trip --limit 1
out other
err_has 'there are more'
run 0 taskctl -o id context list --session trip --all
out_lines 3
run 0 taskctl -o id context list
out plan
run 5 taskctl context get plan --session trip
err_has 'no such value'
run 0 taskctl context watch steps/ --session trip --since 0 --count 2
out_has 'changed +value steps/1  session trip  by '

# Bad input.
key=$(printf '%0257d' 0)
run 2 taskctl context put "$key" --data x
err_has 'at most 256 are allowed'
run 2 taskctl context put '' --data x
err_has 'must not be empty'
head -c 65537 /dev/zero >large
run 2 taskctl context put large --file large
err_has '65536'
run 2 taskctl context put plan
err_has 'needs a value'
run 2 taskctl context put plan --data x --file file
run 2 taskctl context put plan --session 'a b' --data x
run 2 taskctl context remove plan --if-version 0
run 2 taskctl context frob
run 2 taskctl watch --subject nothing
err_has 'must be task, queue'

# Of many that count up at once, each that was told so has counted once.
run 0 taskctl context put count --data 0
count_up ()
{
    done_here=0
    while [ "$done_here" -lt 5 ]; do
        taskctl -o json context get count >"$1.json" || return 1
        version=$(sed 's/.*"version":\([0-9]*\).*/\1/' "$1.json")
        value=$(sed 's/.*"value":"\([0-9]*\)".*/\1/' "$1.json")
        taskctl -q context put count --data $((value + 1)) --if-version "$version" >"$1.out" 2>"$1.err" &&
            done_here=$((done_here + 1))
    done
}
for name in one two three; do
    count_up "$name" &
    eval "$name=\$!"
done
# shellcheck disable=SC2154 # set by eval
for pid in $one $two $three; do
    wait "$pid" || fail 'a counter ended badly'
done
value 15 count

kill_broker
start_broker
value 15 count
value 'a
b' steps/1 --session trip
run 0 taskctl context remove plan --if-version "$second"
run 5 taskctl context remove plan
run 0 taskctl -o jsonl context watch plan --since 0 --count 3
out_lines 3
out_has '"kind":"removed".*"subject":"value","name":"plan"'

# What is no task stands in no line of the export, and only who asks is told.
run 0 taskctl submit q --session trip --data x
run 0 taskctl -o jsonl watch --since 0 --count 1
out_has '"kind":"submitted"'
eventually grep -q task_id .taskmq/tasks.jsonl
[ "$(wc -l <.taskmq/tasks.jsonl)" -eq 1 ] || fail 'tasks.jsonl has lines of what is no task'
stop_broker
