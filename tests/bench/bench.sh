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
run --systems taskmq,ceiling,ceiling-log --only life_sync,to_worker --json "$work/bench.json" \
    --markdown "$work/bench.md" >"$work/out"
python3 - "$work/bench.json" <<'END'
import json, sys
all = json.load(open(sys.argv[1]))
rows = {(row["system"], row["case"]): row for row in all["rows"]}
assert set(rows) == {(s, c) for s in ("taskmq", "ceiling", "ceiling-log") for c in ("life_sync", "to_worker")}
for row in rows.values():
    assert row["rate_per_s"] > 0 and row["p50_us"] > 0 and row["rss_bytes"] > 0, row
    assert row["durability"] == "fsync" and row["sync_delay_ms"] == 0, row
assert all["machine"]["sync_p50_us"] > 0 and all["run"]["rounds"] == 1
assert all["systems"][0]["version"].startswith("taskmqd "), all["systems"]
END
grep -q '^| taskmq | fsync | ' "$work/bench.md" || fail 'no row of taskmq in the Markdown'
[ "$(grep -c '^life_sync' "$work/bench.dat")" -eq 3 ] || fail 'the data for the picture'

# Every commit takes 20 ms more, and so does the way to a worker, at the least.
run --slow-disk 20 --systems taskmq,ceiling --only life_sync_32 --json "$work/slow.json" >"$work/out"
python3 - "$work/slow.json" <<'END'
import json, sys
for row in json.load(open(sys.argv[1]))["rows"]:
    assert row["sync_delay_ms"] == 20 and row["p50_us"] >= 19000, row
END

# Misuse.
for wrong in --no-such-option '--only nothing' '--systems nothing' '--rounds x' 'word'; do
    status=0
    # shellcheck disable=SC2086
    "$bench" $wrong >"$work/out" 2>&1 || status=$?
    [ "$status" -eq 2 ] || fail "$wrong: exit status $status"
done

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
