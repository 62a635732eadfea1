#!/bin/sh
# What people see: colours, terminals narrow and wide, locales, progress bars, output that is cut off.
. "$(dirname "$0")/lib.sh"
start_broker
esc=$(printf '\033')
JUST_NOW='(now|[0-9]+s ago)' # a second passes quickly

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
# Where to go on stands below what is shown, also when a pager shows it later.
on_terminal 80 "PAGER='sleep 0.2; cat -' taskctl list --limit 1"
[ "$(tail -n 1 out | cut -d ' ' -f 1-2)" = 'more follow:' ] || fail "$(cat out)"

on_terminal 80 'NO_COLOR=1 taskctl list'
out_lacks "$esc"
on_terminal 80 'TERM=dumb taskctl list'
out_lacks "$esc"

# A long reason is wrapped, below its own beginning.
run 0 taskctl queue pause held --why 'the disk is full'
on_terminal 30 'taskctl queue show held'
out_has '^ {16}[a-z ]*full$'

# A bar while it waits, on a terminal only; the tasks as they end in any case.
first=$(taskctl -o id list --status queued)
# in_terminal NAME COLUMNS COMMAND: the same in the background.
in_terminal ()
{
    spawn "$1" env TERM=xterm script -qefc "stty cols $2; $3" /dev/null
}
in_terminal bar 80 "taskctl wait $first $id"
eventually grep -q '█.*░  1 of 2 ended' bar.out
submit q
run 0 taskctl cancel "$first"
ended bar 8
out_has "$(printf %s "$first" | tail -c 12)  .*cancelled"
cancelled=$first
first=$id
id=$cancelled
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

# Who is at a terminal is asked.
submit ask
on_terminal 80 "echo n | taskctl cancel --queue ask" # its stdin is none: not asked
out_has 'would be cancelled'
printf 'n\n' >err
on_terminal 80 'taskctl cancel --queue ask'
out_has 'cancel 1 task\? \[y/N\]'
out_has 'nothing was cancelled'
printf 'y\n' >err
on_terminal 80 'taskctl cancel --queue ask'
out_has "$(printf %s "$id" | tail -c 12)  .*cancelled"
: >err

# What counters mean goes on below, between words, where the terminal ends.
on_terminal 80 'taskctl stats -v 2>/dev/null'
out_lacks '^.{81}'
out_has '^overloads +[0-9]+  submissions refused because too much$'
out_has '^ {41}was pending; bad: above 0: '
out_has '^free_bytes +[0-9.]+[KMGT]  '

# What does not fit is cut, and marked: the beginning of one label may be another label.
submit wide --label page=1 --method "$(printf 'a%.0s' $(seq 30))"
submit wide --label page=17 --label film=dawn-of-the-second-day-of-the-festival
on_terminal 80 'taskctl list --queue wide'
out_lacks '^.{81}'
out_has "wide +- +page=17 film…  +$JUST_NOW"
out_has "wide +a+… +page=1 +$JUST_NOW"
# What is missed least is left out before texts are cut to nothing: first the columns without content.
on_terminal 80 'taskctl list --queue wide -o wide'
out_lacks '^.{81}'
out_lacks ' RESULT '
out_has '^no room for [0-9]+ columns here: --columns chooses'
on_terminal 80 'taskctl list --queue wide --columns id,session,took,attempt,worker,result'
out_has '^ID +SESSION +TOOK +ATTEMPT +WORKER +RESULT$'
submit full --label page=2 --delay 1h --method resize
on_terminal 80 'taskctl list --queue full'
out_lacks '^.{81}'
out_lacks ' TOOK '
out_has 'queued \(scheduled\) +full +resize +page=2 +'"$JUST_NOW"' +due in '
on_terminal 80 'LC_ALL=C taskctl list --queue wide'
out_has 'wide +a+\.\. +page=1 '
on_terminal 200 'taskctl list --queue wide'
out_has 'wide +- +page=17 film=dawn-of-the-second-day-of-the-festival '
run 0 taskctl list --queue wide
out_lacks '…'

# A long message of an event stands below it, in the column of what happened.
long='the frame could not be rendered because the disk of the machine is full again'
submit narrow --max-attempts 1
run 0 taskctl work narrow --drain -- sh -c "echo '$long' >&2; exit 1"
on_terminal 80 "taskctl get --events $id"
out_has '^ {4}.*failed .*by [^ ]*$'
out_has '^ {18}the frame could not be rendered because the disk of the$'
out_has '^ {18}machine is full again$'
out_has 'error .*the frame could not be rendered because the disk of the$'
out_has '^ {16}machine is full again$'
out_lacks 'again.*again'
run 0 taskctl get --events "$id"
out_has "  $long\$"
# So does that of a live view, whose lines leave out what their kind tells.
on_terminal 80 'NO_COLOR=1 taskctl -q watch --since 0 --queue narrow --count 3'
out_lacks '^.{81}'
out_has '^[0-9:.]{12}  claimed  .* narrow  attempt 1  by '
out_has '^ {14}the frame could not be rendered because the disk of the machine is$'
run 0 taskctl watch --since 0 --queue narrow --count 3
out_has ' claimed  .* queued . working  attempt 1  by '
out_has "  $long\$"

# Other tables too, and sentences, which go on between words.
run 0 taskctl queue set narrow --max-running 4 --rate 100/1m --max-tasks 100000
run 0 taskctl session set a-session-with-quite-a-long-name-for-a-table --goal "$long"
: >err
for table in 'queue list' 'session list' 'worker list --all' 'schedule list' 'audit tail' doctor stats; do
    on_terminal 80 "NO_COLOR=1 taskctl -o wide $table"
    out_lacks '^.{81}'
done
submit later --after "$id"
: >err
on_terminal 60 "taskctl why $id"
out_lacks '^.{61}'
# Who waits at a terminal for what nobody works on learns why.
submit lonely --data x
in_terminal lonely 80 "taskctl wait $id"
eventually grep -q "^taskctl: still waiting: no worker serves queue 'lonely'" lonely.out
run 0 taskctl work lonely --drain -- cat
ended lonely 0
# A result without a newline leaves the prompt a line of its own, and a pipe all bytes as they are.
submit printed --data 'no newline'
run 0 taskctl work printed --drain -- cat
: >err
on_terminal 80 "taskctl result $id; echo prompt"
out_has '^no newline$'
out_has '^prompt$'
run 0 sh -c "taskctl result $id; echo prompt"
out 'no newlineprompt'

# Long output goes through a pager, which knows the width and the colours of the terminal.
cat >pager <<'END'
#!/bin/sh
sed 's/^/paged: /'
END
chmod +x pager
on_terminal 80 'PAGER=./pager taskctl list'
out_has '^paged: ID  '
out_has "^paged: [0-9a-f]{12}  $esc"
on_terminal 80 'PAGER=./pager taskctl --no-pager list'
out_lacks paged
# One that is not there is named, and loses nothing.
on_terminal 80 'PAGER=no-such-pager taskctl list --queue narrow'
out_has "^taskctl: PAGER: there is no program 'no-such-pager'$"
out_has '^ID '
on_terminal 80 'PAGER= taskctl list'
out_has '^ID '
run 0 env PAGER=./pager taskctl list
out_lacks paged
on_terminal 80 'PAGER=./pager taskctl count'
out_lacks paged
on_terminal 80 "PAGER='head -n 1' taskctl list --all; echo \"ended with \$?\""
out_has '^ended with '

# What turns or hides the text beside it is escaped, in tables, cards and JSON.
submit q --method "$(printf 'a\342\200\256gpj.\342\200\213b')" --label k="$(printf '\342\201\246')"
for format in table wide; do
    run 0 taskctl -o $format list
    out_has 'a\\xe2\\x80\\xaegpj\.\\xe2\\x80\\x8bb'
    out_has 'k=\\xe2\\x81\\xa6'
done
run 0 taskctl get "$id"
out_has 'method +a\\xe2\\x80\\xaegpj'
run 0 taskctl -o json get "$id"
json method '"a\u202egpj.\u200bb"'

# Colours in a text are no reason not to show it.
submit q --data "$(printf '\033[1;31mred\033[0m and \033[2Jplain')"
run 0 taskctl get --payload "$id"
out_has '^    red and \\x1b\[2Jplain$'

# Times are those of the place where they are read; the zone is said once.
run 0 env TZ=IST-5:30 taskctl get "$id"
out_has '^  created +[0-9]{4}-[0-9-]+ [0-9:.]+ UTC\+05:30  \('
out_has '^  expires +[0-9]{4}-[0-9-]+ [0-9:.]+  \('
run 0 env TZ=IST-5:30 taskctl watch --since 0 --count 1
err_has '^times are in UTC\+05:30$'

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
