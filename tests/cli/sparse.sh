#!/bin/sh
# A filter that takes few of many tasks: pages may be empty and yet be followed by others.
. "$(dirname "$0")/lib.sh"
start_broker

submit q --session s
found=$id
run 0 taskctl cancel "$found"
awk 'BEGIN {for (i = 0; i < 21000; i++) print "{\"queue\":\"q\",\"session\":\"s\"}"}' >many.jsonl
run 0 taskctl -q submit --batch many.jsonl
rare='--session s --session t --status cancelled'

# shellcheck disable=SC2086 # words
{
    run 0 taskctl -o json list $rare --limit 1
    json task_id "\"$found\""
    run 0 taskctl -o id list $rare
    out "$found"
    run 0 taskctl list $rare
    out_lines 2
    run 0 taskctl -o id list --all $rare
    out "$found"
    run 0 taskctl count $rare
    out 1
    run 8 taskctl -o id wait $rare
    out "$found"
    run 0 taskctl cancel --dry-run --session s --session t --status queued
    out_has '21000'
    run 0 taskctl watch -o jsonl --snapshot --for 1s $rare
    json kind '"snapshot"'
    out_lines 1
}
