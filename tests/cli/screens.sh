#!/bin/sh
# What people see: colours, terminals narrow and wide, locales, progress bars, output that is cut off.
. "$(dirname "$0")/lib.sh"
start_broker
esc=$(printf '\033')

submit q --data x
submit q --data x
run 0 taskctl cancel "$id"

# Colours only where they are wanted.
run 0 taskctl list
out_lacks "$esc"
run 0 taskctl --color always list
out_has "$esc\[33mcancelled$esc\[0m"
run 0 env CLICOLOR_FORCE=1 taskctl list
out_has "$esc"
run 0 env CLICOLOR_FORCE=0 taskctl list
out_lacks "$esc"
run 0 env CLICOLOR_FORCE=1 NO_COLOR=1 taskctl list
out_lacks "$esc"
run 0 env NO_COLOR=1 taskctl --color always get "$id"
out_has "$esc\[33mcancelled$esc\[0m"
run 0 taskctl --color always -o json list
out_lacks "$esc"

# on_terminal COLUMNS COMMAND: what it prints on a terminal of that width.
on_terminal ()
{
    last_command="on a terminal of $1 columns: $2"
    TERM=xterm script -qec "stty cols $1; $2" /dev/null <err 2>&1 | tr -d '\r' >out
}
: >err
on_terminal 120 'taskctl list'
out_has "^$id  $esc\[33mcancelled"
on_terminal 80 'taskctl list'
out_lacks "$id"
out_has "^$(printf %s "$id" | tail -c 12)  $esc\[33mcancelled"
on_terminal 80 'NO_COLOR=1 taskctl list'
out_lacks "$esc"
on_terminal 80 'TERM=dumb taskctl list'
out_lacks "$esc"

# A bar while it waits, on a terminal only; the tasks as they end in any case.
first=$(taskctl -o id list --status queued)
on_terminal 80 "taskctl wait --for 300ms $first $id"
out_has '█.*░  1 of 2 ended'
out_has "$id  .*cancelled"
run 7 taskctl wait --for 300ms "$first" "$id"
err_lacks 'of 2 ended'
on_terminal 80 "taskctl -q wait --for 300ms $first $id"
out_lacks 'of 2 ended'

# Text that the locale cannot show is escaped, as control bytes are.
submit q --method 'Grüße'
run 0 taskctl get "$id"
out_has 'method +Grüße$'
run 0 env LC_ALL=C taskctl get "$id"
out_has 'method +Gr\\xc3\\xbc\\xc3\\x9fe$'
run 0 env LC_ALL=C taskctl -o json get "$id"
json method '"Grüße"'
run 0 env LC_ALL=C taskctl help watch
! LC_ALL=C grep -q '[^ -~]' out || fail 'help is not plain ASCII'

# What a task says in many lines or in bytes is shown as far as it goes, and the rest is named.
i=0
while [ "$i" -lt 30 ]; do
    i=$((i + 1))
    echo "line $i"
done >lines
submit q --file lines
run 0 taskctl get --payload "$id"
out_has '^    line 20$'
out_lacks 'line 21'
out_has '^    \.\.\. [0-9]+ more bytes: taskctl payload '
printf 'a\0b' >bytes
submit q --file bytes
run 0 taskctl get --payload "$id"
out_has '^    binary: taskctl payload '

# Output that cannot be written is a failure.
run 1 sh -c 'taskctl list >/dev/full'
err_has 'cannot write the output'
run 0 sh -c 'taskctl -o jsonl list | head -n 1'
out_lines 1
