#!/bin/sh
# Completion: what could stand next, from the table of commands and from the broker.
. "$(dirname "$0")/lib.sh"

run 0 taskctl complete -- ''
out_has '^submit	submit a task'
out_lacks '^complete	'
run 0 taskctl complete -- li
out "list	list tasks, newest first"
run 0 taskctl complete -- list --st
out_has '^--status	'
out_lines 1
run 0 taskctl complete -- list --status failed,ca
out 'failed,cancelled'
run 0 taskctl complete -- -o js
out_lines 2
run 0 taskctl complete -- list --columns=id,lab
out '--columns=id,labels'
run 0 taskctl complete -- help wo
out_has '^work	'
run 0 taskctl complete -- completion f
out fish
run 0 taskctl complete -- submit q --file /et
out_lines 0
run 0 taskctl complete -- work q -- tr
out_lines 0
run 2 taskctl completion tcsh
err_has "'tcsh' is not a shell known"

# Without a broker there is nothing live, and nobody waits.
run 0 taskctl complete -- list q
out_lines 0

start_broker
submit thumbs --label album=summer --session s1
run 0 taskctl complete -- list th
out thumbs
run 0 taskctl complete -- work --que
out_lines 0
run 0 taskctl complete -- cancel --queue t
out thumbs
run 0 taskctl complete -- list --label alb
out 'album=summer'
run 0 taskctl complete -- watch --session ''
out s1
tail=$(printf %s "$id" | tail -c 12)
run 0 taskctl complete -- get "$(printf %.3s "$tail")"
out "$tail	thumbs queued"
run 0 taskctl complete -- get "$(printf %.20s "$id")"
out "$id	thumbs queued"
run 0 taskctl complete -- -n other list th
out_lines 0
# The operands of a verb, by what its help calls them.
run 0 taskctl complete -- queue pause t
out thumbs
run 0 taskctl schedule add nightly reports --cron '30 3 * * *'
run 0 taskctl complete -- schedule show n
out 'nightly	30 3 * * *'
run 0 taskctl complete -- schedule add nightly th
out thumbs
run 0 taskctl context put plan --session s1 --data x
run 0 taskctl complete -- context get --session s1 p
out plan
run 0 taskctl complete -- context get p
out_lines 0
run 0 taskctl complete -- session input l
out list
run 0 taskctl complete -- session input list s
out 's1'
run 0 taskctl complete -- logs --stream ''
out 'out
err'
run 0 taskctl complete -- schedule add n q --overlap s
out skip
spawn worker taskctl work boxes --name box -- cat
eventually sh -c 'taskctl worker list | grep -q "^box "'
run 0 taskctl complete -- worker drain b
out_has '^box	'
signal worker TERM
ended worker 0

# As bash asks for it, also behind the '=' at which it splits.
cat >ask.bash <<'END'
eval "$(taskctl completion bash)"
COMP_LINE=$1
COMP_POINT=${#1}
_taskctl
printf '%s\n' "${COMPREPLY[@]}"
END
run 0 bash ask.bash 'taskctl list --label album=s'
out summer
run 0 bash ask.bash 'taskctl lis'
out list
run 0 bash ask.bash 'taskctl cancel --queue '
out thumbs
for shell in bash zsh fish; do
    run 0 taskctl completion $shell
    command -v $shell >/dev/null || continue
    cp out "script.$shell"
    run 0 $shell -n "script.$shell"
done
