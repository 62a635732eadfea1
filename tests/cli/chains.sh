#!/bin/sh
# What was done to the record and to the events stays visible: a chain that was begun anew says so
# until somebody accepts it, and what is none is told from what was changed.
. "$(dirname "$0")/lib.sh"
start_broker
data=.taskmq
for i in 1 2 3; do
    submit q --data "$i"
done
written () { [ "$(wc -l <$data/events.jsonl)" -ge 4 ]; }
eventually written
run 0 taskctl audit verify $data

# The file is changed while the broker runs.
cp $data/events.jsonl was
sed -i '2s/"queue":"q"/"queue":"p"/' $data/events.jsonl
submit q --data 4
set_aside () { [ -e $data/events.jsonl.foreign ] && grep -q '"why":"changed"' $data/events.jsonl; }
eventually set_aside
eventually grep -q "$id" $data/events.jsonl
anew=$(($(wc -l <was) + 1))
run 1 taskctl audit verify $data
out_has "^events: line $anew begins anew: the file before was taken away or changed by hand; what was set aside is in $data/events.jsonl.foreign\$"
out_has "^events: lines $anew to "
err_has "^--accept events:$anew passes over it, once you know why\$"
run 1 taskctl -o json audit verify $data/events.jsonl
out_has "\"gaps\":\[\{\"n\":$anew,\"accepted\":false,\"message\":\"line $anew begins anew: "
run 0 taskctl audit verify $data --accept events:$anew
out_has "^events: line $anew begins anew: .* \(accepted\)\$"
run 1 taskctl audit verify $data --accept audit:$anew
run 1 taskctl audit verify $data --accept events:1$anew
run 0 taskctl doctor
out_has "^warning +events +lines were lost: line $anew begins anew: "
stop_broker

# With a file before that ends too early the numbers of what is missing are told; with the whole one
# nothing is missing.
mkdir copy
cp $data/events.jsonl copy
head -n 2 was >copy/events-0000000000000001.jsonl
run 1 taskctl audit verify copy
out_has "^line $anew begins anew behind lines 3 to $((anew - 1)), which are not there: the file before"
run 0 taskctl audit verify copy --accept events:$anew
out_has '^lines 1 to '
sed 2s/queue/quene/ was >copy/events-0000000000000001.jsonl
run 1 taskctl audit verify copy --accept events:$anew
out_has ':2: line 2 was changed$'
cp was copy/events-0000000000000001.jsonl
run 0 taskctl audit verify copy
out_lacks anew

# A first line that no broker wrote is named as that.
sed -i '1s/"kind":"anchor"/"kind":"anchors"/' $data/events.jsonl
start_broker
grep -q 'id=EVENTS-DAMAGED .*the first line of events.jsonl is damaged' broker.err ||
    fail 'another line is named'
stop_broker

# The record: lines that the broker knew are cut off between two starts.
cp $data/audit.jsonl whole
head -n 1 whole >$data/audit.jsonl
start_broker
noted () { taskctl audit tail --kind audit.gap | grep -q missing; }
eventually noted
run 1 taskctl audit verify $data/audit.jsonl
out_has '^line [0-9]* tells of a loss: line [0-9]* is not there, or not what it was$'
gap=$(sed -n 's/^line \([0-9]*\) tells.*/\1/p' out)
run 0 taskctl audit verify $data/audit.jsonl --accept "audit:$gap"

# What is no chain, and what no broker wrote.
run 0 taskctl export --file tasks
cp $data/audit.jsonl longer
stop_broker
run 2 taskctl audit verify tasks
err_has '^taskctl: tasks is no chain of taskmq: no line in it is of one$'
{ cat whole; echo '{"kind":"denied"}'; } >longer
run 1 taskctl audit verify longer
out_has "^longer:$(wc -l <longer): line $(wc -l <longer) was not written by a broker\$"
for wrong in 142 events: events:x event:1 audit:1x; do
    run 2 taskctl audit verify whole --accept $wrong
    err_has '^taskctl: --accept must be audit:LINE or events:LINE'
done
