# shellcheck shell=sh
# doctor: each state that is wrong is named, with what mends it, and only that.
. "$(dirname "$0")/lib.sh"
export HOME="$room"
unset XDG_CONFIG_HOME

# The last run says so, and this is what mends it.
says ()
{
    out_has "^$1 +$2 +$3"
    [ -z "${4-}" ] || grep -A 1 -E "^$1 +$2 +$3" out | grep -qE -- "-> $4" || fail "no: $4"
}

run 1 taskctl doctor
says wrong reach 'cannot reach|no broker' ''
start_broker
run 0 taskctl doctor
says ok endpoint "ipc://$room/\.taskmq/taskmqd\.ipc, said by $room/\.taskmq$"
says ok reach 'taskmqd [0-9.]+ answers$'
says ok identity "uid:$(id -u) in namespace default; no access file"
says ok version '[0-9.]+ here and there$'
says ok clock 'within 5s'
says ok directory "$room/\.taskmq, of uid $(id -u), mode 0700$"
says ok audit '.* hold together, [1-9]'
says ok space '.* free'
says ok broker 'none of its numbers is bad$'
out_lacks '^(warning|wrong)'
run 0 taskctl -e "ipc://$room/.taskmq/taskmqd.ipc" doctor
says ok endpoint 'ipc://.*, said by -e$'
out_lacks '^ok +store ' # SQLite, which has no standby
run 0 taskctl -o json doctor
grep -q '"about":"clock","verdict":"ok","text":"[^"]*","mend":null}' out || fail 'no such JSON'

# Of several endpoints each is looked at: one where nobody listens, the same broker twice, two brokers that
# are no pair.
run 0 taskctl -e "ipc://$room/.taskmq/taskmqd.ipc" -e tcp://127.0.0.1:1 doctor
says ok endpoint "ipc://$room/\.taskmq/taskmqd\.ipc: owns the tasks \(taskmqd [0-9.]+, epoch 1\)$"
says warning endpoint 'tcp://127\.0\.0\.1:1: nobody listens there; a standby listens' 'look whether'
run 0 taskctl -e "ipc://$room/.taskmq/taskmqd.ipc" -e "ipc:///$room/.taskmq/taskmqd.ipc" doctor
out_lacks '^(warning|wrong)'
spawn other taskmqd --data "$room/second"
eventually test -s second/endpoint
run 1 taskctl -e "ipc://$room/.taskmq/taskmqd.ipc" -e "ipc://$room/second/taskmqd.ipc" doctor
says wrong endpoint "ipc://$room/second/taskmqd\.ipc: answers with tasks of its own" 'give both'
signal other TERM
ended other 0
run 1 taskctl --timeout 300ms -e ipc:///nonexistent/x -e tcp://127.0.0.1:1 doctor
says wrong reach 'none of 2 endpoints answered within 300ms$'
out_lacks 'said by'
says warning endpoint 'ipc:///nonexistent/x: there is no such socket' ''
err_has 'none answers; for 300ms \(--timeout\) one may still take over$'
says wrong reach '.*' 'where a take-over lasts longer: --timeout 60s$'
[ "$(grep -nE '^wrong +reach' out | cut -d: -f1)" -gt "$(grep -nE '^warning +endpoint' out | tail -n 1 | cut -d: -f1)" ] ||
    fail 'what is known at once comes last'
[ "$(grep -c 'nonexistent/x' out)" = 1 ] || fail 'an endpoint is told of twice'
run 1 taskctl --timeout 300ms -e ipc:///nonexistent/x doctor
says ok endpoint 'ipc:///nonexistent/x, said by -e$'
# One that stands still gives way, and the same one named twice is one.
spawn other taskmqd --data "$room/second"
eventually taskctl -e "ipc://$room/second/taskmqd.ipc" stats
signal other STOP
run 0 taskctl -e "ipc://$room/second/taskmqd.ipc" -e "ipc://$room/.taskmq/taskmqd.ipc" doctor
says ok endpoint "ipc://$room/\.taskmq/taskmqd\.ipc: owns the tasks"
says warning endpoint "ipc://$room/second/taskmqd\.ipc: no answer yet" ''
signal other CONT
signal other TERM
ended other 0
run 0 taskctl -e "ipc://$room/.taskmq/taskmqd.ipc" -e "ipc://$room/.taskmq/taskmqd.ipc" doctor
out_lacks 'owns the tasks'

# The clocks differ.
run 0 env LD_PRELOAD="$TASKMQ_TEST_WALL" TASKMQ_WALL_S=3600 ASAN_OPTIONS=verify_asan_link_order=0 \
    taskctl doctor
says warning clock "the broker's clock is .* behind this one" 'timedatectl'
run 0 env LD_PRELOAD="$TASKMQ_TEST_WALL" TASKMQ_WALL_S=-60 ASAN_OPTIONS=verify_asan_link_order=0 \
    taskctl doctor
says warning clock "the broker's clock is .* ahead of this one" 'timedatectl'

# Files that others may read or write.
chmod 0755 .taskmq
run 0 taskctl doctor
says warning directory 'others may look into' "chmod 700 $room/\.taskmq$"
chmod 0777 .taskmq
run 1 taskctl -e "ipc://$room/.taskmq/taskmqd.ipc" doctor
says wrong directory 'others may write in' "chmod 700 $room/\.taskmq$"
chmod 0700 .taskmq
mkdir -p .config/taskmq/keys
echo 'not a key' >.config/taskmq/keys/default.key
chmod 0644 .config/taskmq/keys/default.key
run 1 taskctl doctor
says wrong 'key file' '.* may be read by others \(mode 0644\)' 'chmod 600'
rm -r .config

# Nobody works.
run 0 taskctl submit q
run 0 taskctl doctor
says warning workers '1 task waits, and nobody works$' 'taskctl work'

# The record was changed.
cp .taskmq/audit.jsonl kept
sed '1s/"kind":"/&x/' kept >.taskmq/audit.jsonl
run 1 taskctl doctor
says wrong audit 'not what was written: .*/audit.jsonl:1: line 1 was changed$' \
    "taskctl audit verify $room/.taskmq; RUNBOOK"
cp kept .taskmq/audit.jsonl
run 0 taskctl doctor
says ok events '.*/events.jsonl and the files before it hold together, [0-9]* lines?$'

# A file before the present one is gone, and a packed one is damaged.
sed -n 1p kept >.taskmq/audit-0001.jsonl
sed 1,2d kept >.taskmq/audit.jsonl
run 1 taskctl doctor
says wrong audit '.*/audit.jsonl:1: line 2 is missing here$' 'taskctl audit verify'
rm .taskmq/audit-0001.jsonl
echo nonsense >.taskmq/audit-0001.jsonl.zst
run 1 taskctl doctor
says wrong chains '.*audit-0001.jsonl.zst' 'taskctl audit verify'
rm .taskmq/audit-0001.jsonl.zst
cp kept .taskmq/audit.jsonl

# The index of texts is damaged, and a new one is made.
stop_broker
[ -f .taskmq/search.db ] || fail 'no index'
echo nonsense >.taskmq/search.db
rm -f .taskmq/search.db-wal .taskmq/search.db-shm
start_broker
is_refused () { taskctl doctor >out; grep -q '^warning  search ' out; }
eventually is_refused
says warning search 'searches are refused: the index is damaged' 'taskctl search reindex'
run 0 taskctl search reindex
is_mended () { ! is_refused; }
eventually is_mended

# The access file cannot be used any more.
printf 'me uid:%s operator\n' "$(id -u)" >.taskmq/access
chmod 600 .taskmq/access
has_access () { taskctl doctor | grep -qE '^ok +identity +me in namespace default, with operator'; }
eventually has_access
echo 'nonsense' >.taskmq/access
is_stale () { taskctl doctor | grep -qE '^wrong +access +the access file cannot be used'; }
eventually is_stale
run 1 taskctl doctor
rm .taskmq/access
stop_broker

# What the broker knows.
run 1 taskctl doctor
says wrong reach '.*' 'taskmqd'
export TASKMQD_LIMITS_FREE_SPACE_MIN=1024G TASKMQD_STORE_SYNCHRONOUS=normal TASKMQD_LIMITS_LINKS=1
start_broker
is_full () { taskctl doctor | grep -qE '^wrong +space +submissions are refused'; }
eventually is_full
run 1 taskctl doctor
says wrong space 'submissions are refused.*store_full = 1' 'df -h'
says warning data 'runs with --synchronous normal' 'remove store/synchronous'
says warning links '1 of 1 clients'
stop_broker
