#!/usr/bin/env bash
# The load generator: what it writes, what it refuses, a slower disk, and that it leaves nothing
# behind when it is ended.

set -eu
bench="$TASKMQ_BIN/taskmq-bench"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/run"

fail ()
{
    printf '%s\n' "$*" >&2
    exit 1
}

run ()
{
    "$bench" --rounds 1 --seconds 1 --directory "$work/run" "$@"
}

# Three systems, two rows, in all forms.
run --rounds 2 --systems taskmq,ceiling,ceiling-log --only life_sync,to_worker --json "$work/bench.json" \
    --markdown "$work/bench.md" >"$work/out"
python3 - "$work/bench.json" <<'END'
import json, sys
all = json.load(open(sys.argv[1]))
rows = {(row["system"], row["case"]): row for row in all["rows"]}
assert set(rows) == {(s, c) for s in ("taskmq", "ceiling", "ceiling-log") for c in ("life_sync", "to_worker")}
for row in rows.values():
    assert row["rate_per_s"] > 0 and row["p50_us"] > 0 and row["rss_bytes"] > 0, row
    assert 0 < row["rate_min_per_s"] <= row["rate_per_s"] <= row["rate_max_per_s"], row
    assert row["server_cpu_us"] > 0 and row["clients_cpu_us"] > 0, row
    assert row["durability"] == "fsync" and row["sync_delay_ms"] == 0, row
assert all["machine"]["sync_p50_us"] > 0 and all["run"]["rounds"] == 2
assert any(row["rate_min_per_s"] < row["rate_max_per_s"] for row in rows.values()), rows
assert all["systems"][0]["version"].startswith("taskmqd "), all["systems"]
END
grep -q '^| taskmq | fsync | ' "$work/bench.md" || fail 'no row of taskmq in the Markdown'
for column in 'server CPU us' "clients' CPU us" 'taskmq against it'; do
    grep -q "$column" "$work/out" || fail "the terminal has no column $column"
    grep -q "| $column |" "$work/bench.md" || fail "the Markdown has no column $column"
done
[ "$(grep -c '^life_sync' "$work/bench.dat")" -eq 3 ] || fail 'the data for the picture'

# Every commit takes 20 ms more, and so does the way to a worker, at the least.
run --slow-disk 20 --systems taskmq,ceiling --only life_sync_32 --json "$work/slow.json" >"$work/out"
python3 - "$work/slow.json" <<'END'
import json, sys
for row in json.load(open(sys.argv[1]))["rows"]:
    assert row["sync_delay_ms"] == 20 and row["p50_us"] >= 19000, row
END

# Misuse: told before anything is measured, and nothing is left behind.
refused ()
{
    local says=$1 status=0
    shift
    (cd "$work/run" && exec "$bench" "$@") >"$work/out" 2>&1 || status=$?
    [ "$status" -eq 2 ] || fail "$*: exit status $status"
    grep -qF -e "$says" "$work/out" || fail "$*: $(cat "$work/out")"
    if grep -q '^on [0-9]* cores' "$work/out"; then
        fail "$*: it was measured"
    fi
    [ -z "$(ls -A "$work/run")" ] || fail "$*: left behind: $(ls -A "$work/run")"
}

refused 'unrecognized option' --no-such-option
refused 'usage:' word
refused "no such row: 'nothing'" --only nothing
refused '--only names nothing' --only ''
refused "no such system: 'typo'" --systems taskmq,typo
refused '--systems names nothing' --systems ,
refused "'x' is not a number" --rounds x
refused "'1.5' is not a whole number" --rounds 1.5
refused 'row submit_sync: none of these systems takes part' --slow-disk 1 --only submit_sync
refused 'row values is of taskmq alone' --systems ceiling --only values
refused 'none of these systems takes part in any row' --slow-disk 1 --systems taskmq-normal
for sizes in 0 -1 1.5 '1,' '' 1,2,3,4,5,6,7,8,9; do
    refused "--sizes '$sizes': row values takes up to 8 whole numbers" --only values --sizes "$sizes"
done
refused '--sizes: no row by size is run' --only life_sync --sizes 5
refused '--json wants a value' --json --markdown
refused 'No such file or directory' --only to_worker --json "$work/nowhere/bench.json"
refused 'Is a directory' --only to_worker --markdown "$work/run"
refused 'is no regular file' --only to_worker --json /dev/null
[ -c /dev/null ] || fail 'a device was replaced'
# A system that exists, but not here: not left out without a word.
for name in redis nats rabbitmq gearmand beanstalkd; do
    if "$bench" --help | grep -q "^left out of this build.* $name "; then
        refused "$name was left out of this build, for want of" --systems "taskmq,$name"
    fi
done

# What --help says of the columns is what the table calls them; the defaults are told.
"$bench" --help >"$work/out"
for says in 'told (3, --quick: 1)' '(4, --quick: 1.5)' 'x-growth.dat' '"server CPU us"'; do
    grep -qF -e "$says" "$work/out" || fail "--help does not say: $says"
done
if [ -x "$TASKMQ_BIN/store-bench" ]; then
    (cd "$work/run" && "$TASKMQ_BIN/store-bench" --help) >"$work/out" || fail 'store-bench --help'
    grep -q '^usage: store-bench' "$work/out" || fail 'store-bench --help says nothing'
    [ -z "$(ls -A "$work/run")" ] || fail 'store-bench --help ran'
fi

# Ended in the middle: the server ends too, and its directory is removed.
"$bench" --systems taskmq --only life_sync --rounds 1 --seconds 60 --directory "$work/run" \
    >"$work/out" 2>&1 &
bench_pid=$!
for ((i = 0; i < 3000; i++)); do
    server_pid=$(pgrep -P "$bench_pid" -x taskmqd || :)
    [ -n "$server_pid" ] && break
    sleep 0.02
done
[ -n "$server_pid" ] || fail 'no server was started'
kill -TERM "$bench_pid"
status=0
wait "$bench_pid" || status=$?
[ "$status" -eq 143 ] || fail "ended by SIGTERM: exit status $status"
! kill -0 "$server_pid" 2>"$work/out" || fail 'the server was left behind'
[ -z "$(ls "$work/run")" ] || fail "left behind: $(ls "$work/run")"
