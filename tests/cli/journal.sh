#!/bin/sh
# journal show: a log whose contents are known, damaged copies of it, and the one of a broker.
. "$(dirname "$0")/lib.sh"
known=$scenario_dir/golden/journal.log

run 0 env TZ=UTC taskctl journal show "$known"
golden journal-show
run 0 taskctl -o json journal show "$known"
golden journal-show.json

# overwrite FILE BYTE TEXT...: a copy of the log with other bytes there.
overwrite ()
{
    file=$1
    at=$2
    shift 2
    cp "$known" "$file"
    chmod u+w "$file"
    # shellcheck disable=SC2059 # escapes of the test's own
    printf "$@" | dd of="$file" bs=1 seek="$at" conv=notrunc status=none
}

# A commit in the middle: later ones prove that it was durable. Its header, and its content.
for at in 12330 12420; do
    overwrite middle "$at" '\125'
    run 1 taskctl journal show middle
    out_has '^ +0 +0 +1 +4096 +1 *$'
    out_has '^The log has batches 1 to 1 .*: the commit behind batch 1 is missing, and the part at byte 20480 '
    err_has 'taskmqd --check'
    run 1 taskctl -o json journal show middle
    out_has '"end":"missing"'
done

# What stays damaged is told of a file that somebody has open, too: it is not read anew for ever.
run 1 flock middle taskctl journal show middle
out_has ', open in a broker$'
out_has 'the commit behind batch 1 is missing'

# The last one: nobody was told that it is safe, as far as the file says.
overwrite last 24700 '\125'
run 0 taskctl journal show last
out_has '^The log has batches 1 to 3 .*: the part at byte 24576 is not whole'
run 0 taskctl -o json journal show last
out_has '"last":3,"offset":24576,"end":"cut_short"'

# What somebody put behind the last segment is none, however long it is.
cp "$known" longer
chmod u+w longer
truncate -s 20G longer
run 0 env TZ=UTC taskctl journal show longer
tail -n +2 out >rest
run 0 env TZ=UTC taskctl journal show "$known"
tail -n +2 out | cmp -s - rest || fail 'what is behind the segments counts'

# One that is gone without a trace.
overwrite gone 20480 '\0\0\0\0'
run 1 taskctl journal show gone
out_has 'the commit behind batch 2 is missing, and the part at byte 24576 '

# One header stands for the other; without both nothing can be read.
overwrite first 40 '\125'
run 0 taskctl journal show first
out_has '^headers +the first is damaged, its copy is whole$'
out_has '^The log has batches 1 to 4 '
overwrite both 40 '\125'
printf '\125' | dd of=both bs=1 seek=4136 conv=notrunc status=none
run 1 taskctl journal show both
err_has 'has no header that is whole'
head -c 40000 "$known" >short
run 1 taskctl journal show short
err_has 'is shorter than it was made'

head -c 72 "$known" >stub
run 1 taskctl journal show stub
err_has 'is shorter than it was made'

# A whole header that asks for 65,537 segments of 16 KiB, which take no room on the disk: memory
# for them has a bound.
{
    printf 'tmqlog\015\012\001\000\000\000\000\020\000\000\000\100\000\000\000\000\000\000\000\000\000\000\000\000\000\000\001\000\001\000\000\000\000\000'
    printf '\001\000\000\000\000\000\000\000\001\000\000\000\000\000\000\000\007\000\000\000\000\000\000\000\352\212\362\307\056\026\316\275'
} >hollow
truncate -s $((65537 * 16384)) hollow
run 2 taskctl journal show hollow
err_has 'has more segments than 65,536'

# What is no journal.
run 2 taskctl journal show /dev/null
err_has 'is no file'
run 2 taskctl journal show nowhere
err_has 'No such file'
echo 'not a journal' >text
run 2 taskctl journal show text
err_has 'is not a journal of taskmq'
: >empty
run 2 taskctl journal show empty
run 2 taskctl journal show
run 2 taskctl journal

# A broker's own, while it runs and after it was killed: each submit is a record.
start_broker
for n in 1 2 3 4 5; do
    submit q --data "$n"
done
run 0 taskctl journal show .taskmq/journal.log
out_has ', open in a broker$'
err_has 'a broker writes this file'
kill_broker
run 0 taskctl -o json journal show .taskmq/journal.log
out_has '"open":false'
out_has '"end":"end"'
[ "$(grep -o '"records":{"count":1,' out | wc -l)" -eq 5 ] || fail 'there are not five records'

# A commit of several parts is the last one. Each part was durable before the next: only the last of them may be
# one that a crash cut short. The tables must not have it before the kill: what they have is no loss, however
# damaged it is in the log.
rm -rf .taskmq
printf 'store\n    journal_size = 64K\n    write_back_time = 60s\n' >conf
broker_options='-c conf'
start_broker
submit q --data small
head -c 45000 /dev/urandom >large
submit q --file large
kill_broker
log=.taskmq/journal.log
run 0 taskctl journal show "$log"
first=$(sed -En 's/^ *([0-9]+) +[0-9]+ +[4-9] +log .*/\1/p' out)
behind=$(sed -En 's/^The log has .* and ends at byte ([0-9]+): no commit .*/\1/p' out)
cp "$log" kept

# spoil BYTE: another byte there, in the log as it was.
spoil ()
{
    cp kept "$log"
    byte=$(od -An -tu1 -j "$1" -N 1 kept)
    # shellcheck disable=SC2059 # an escape of the test's own
    printf "\\$(printf %03o $((byte ^ 4)))" | dd of="$log" bs=1 seek="$1" conv=notrunc status=none
}

spoil "$((first + 200))"
run 1 taskctl journal show "$log"
out_has 'is not whole, and the part at byte [0-9]+ was written after what is missing of it\.$'
run 1 taskctl -o json journal show "$log"
out_has '"end":"missing"'
run 15 taskmqd --check --data .taskmq
out_has 'is damaged behind batch [0-9]+, before commits that were acknowledged'
run 9 taskmqd --data .taskmq

spoil "$((behind - 4096 + 10))"
run 0 taskctl -o json journal show "$log"
out_has '"end":"cut_short"'
run 0 taskmqd --check --data .taskmq
out_has 'no damage$'
