#!/bin/sh
# taskctl mail and session input: what is put into a box stays there, in order, through a kill, until
# it is acknowledged. A box that is full, and bad input.
. "$(dirname "$0")/lib.sh"

start_broker
run 0 taskctl mail send planner --session trip --data 'the flight is late' --type note --source crew
first=$(cat out)
run 0 sh -c 'printf "second" | taskctl mail send planner - --session trip --intensity 0.5'
second=$(cat out)
[ "$second" -gt "$first" ] || fail "number $second does not follow $first"
run 0 taskctl -o id mail read planner --session trip
out "$first
$second"
run 0 taskctl -o jsonl mail read planner --session trip --type note
out_lines 1
out_has '"source":"crew","type":"note","intensity":0,"recency":[01](\.[0-9]+)?,"bytes":18,"data":"the flight is late"'
run 0 taskctl -o table mail read planner --session trip --after "$first"
out_has "^ *$second .* second"
run 0 taskctl -o id mail read planner
out_lines 0
run 0 taskctl -o id mail read planner --session trip --limit 1
out "$first"
err_has "there are more: --after $first"
run 0 taskctl -o jsonl watch --subject item --since 0 --count 2
out_has "\"kind\":\"changed\".*\"subject\":\"item\",\"name\":\"mail.planner\",\"number\":$second"

kill_broker
start_broker
run 0 taskctl mail ack planner "$first" 999999 --session trip
err_has '1 of 2 acknowledged'
run 0 taskctl -o id mail read planner --session trip
out "$second"

run 0 taskctl session input add trip --source user --type text --data 'by train'
input=$(cat out)
run 0 taskctl -o id session input list trip --source user --since 1h
out "$input"
run 0 taskctl -o id session input list trip --source nobody
out_lines 0
run 0 taskctl session input drop trip "$input"
run 0 taskctl -o id session input list trip
out_lines 0

# What is not there cannot be acknowledged, and nobody is told that it was.
run 5 taskctl mail ack planner 999999 --session trip
err_has 'no item of these numbers is there'
run 5 taskctl session input drop trip "$input"

# A pipe gets the bytes, not what a table makes of them.
run 0 sh -c 'printf "two\nlines" | taskctl mail send planner -'
run 0 sh -c 'taskctl mail read planner | cat'
out_has '"data":"two\\nlines"'
run 0 taskctl -o table mail read planner
out_has 'two.x0alines'

# Bad input.
run 2 taskctl mail send 'a b' --data x
run 2 taskctl mail send planner
err_has 'nothing to put'
run 2 taskctl mail send planner --data x --intensity 2
err_has 'from 0 to 1'
run 2 taskctl mail send planner --data x --intensity nan
head -c 65537 /dev/zero >large
run 2 taskctl mail send planner --file large
run 2 taskctl mail ack planner nothing
run 2 taskctl session input add 'a b' --data x
run 2 taskctl session input frob trip
run 2 taskctl session input add
stop_broker
