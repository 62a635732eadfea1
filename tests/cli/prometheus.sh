#!/bin/sh
# stats --prometheus, read by a strict parser, and by promtool where it is installed.
. "$(dirname "$0")/lib.sh"

check ()
{
    LC_ALL=C awk -f "$scenario_dir/exposition.awk" "$1" >wrong || fail "$(cat wrong)"
}
refused ()
{
    # shellcheck disable=SC2059 # a format, for its \n
    printf "$1" >sample
    if LC_ALL=C awk -f "$scenario_dir/exposition.awk" sample >wrong; then
        fail "the parser takes: $1"
    fi
}

# The parser itself: what is wrong is seen.
head='# HELP a_total x\n# TYPE a_total counter\n'
# shellcheck disable=SC2059
printf "${head}a_total{b=\"c\\\\\\\\\",d=\"\\\\\"\"} 1\n" >sample
check sample
refused ''
refused 'a_total 1\n'
refused "${head}a_total one\n"
refused "${head}a_total 1\na_total 2\n"
refused "${head}a_total{b=\"c} 1\n"
refused "${head}a_total{b=\"c\"d\"} 1\n"
refused "${head}a_total{b=\"\\\\t\"} 1\n"
refused "${head}a_total{b=\"1\",b=\"2\"} 1\n"
refused "${head}${head}a_total 1\n"
refused '# HELP a x\n# TYPE a counter\na 1\n'
refused '# HELP a_total x\n# TYPE a_total gauge\na_total 1\n'

start_broker
run 0 taskctl stats --prometheus
check out
run 0 taskctl submit one.q
run 0 taskctl submit one.q
run 0 taskctl submit two-q
run 0 taskctl stats --prometheus
check out
out_has '^# HELP taskmq_submitted_total tasks accepted$'
out_has '^# TYPE taskmq_submitted_total counter$'
out_has '^taskmq_submitted_total 3$'
out_has '^# TYPE taskmq_live_tasks gauge$'
out_has '^taskmq_live_tasks 3$'
out_has '^# TYPE taskmq_connections_mute gauge$' # it goes down again
out_has '^taskmq_server_rounds_total [0-9]+$'
out_has '^taskmq_broker_info\{broker="taskmqd [0-9.]+"\} 1$'
out_has '^taskmq_queue_tasks\{namespace="default",queue="one.q",state="ready"\} 2$'
out_has '^taskmq_queue_tasks\{namespace="default",queue="two-q",state="working"\} 0$'
out_has '^taskmq_queue_submitted_total\{namespace="default",queue="one.q"\} 2$'
out_has '^taskmq_queue_oldest_ready_seconds\{namespace="default",queue="one.q"\} [0-9]+$'
out_lacks 'untyped'
cp out scraped
if command -v promtool >/dev/null; then
    run 0 promtool check metrics <scraped
fi

# Every counter that the broker has is there.
run 0 taskctl stats -o wide
awk 'counters && NF == 2 { print $1 } $1 == "COUNTER" { counters = 1 }' out >names
[ "$(wc -l <names)" -gt 50 ] || fail "too few counters"
while read -r name; do
    grep -qE "^taskmq_$name(_total)? " scraped || fail "$name is missing"
done <names

run 2 taskctl stats --prometheus -o json
stop_broker
run 3 taskctl --timeout 300ms stats --prometheus
[ ! -s out ] || fail 'half a file'
