# shellcheck shell=sh
# The vocabulary of the scenarios. A scenario is a POSIX sh script that sources this file, and ends
# with 0 if everything it said was true. It runs in a fresh directory of its own; the broker and every
# other process that it started is ended, by its id, when it ends: also those that nobody knows any
# more, if their working directory is still that one.
#
#   start_broker            taskmqd on ./.taskmq with $broker_options, answering when this returns
#   stop_broker             SIGTERM, must end with 0            kill_broker      SIGKILL
#   run EXIT COMMAND...     must end with EXIT; stdout is kept in ./out, stderr in ./err
#   out TEXT / err TEXT     stdout or stderr of the last run is exactly TEXT
#   out_has RE / err_has RE some line matches; out_lacks RE / err_lacks RE: none does
#   out_lines N             stdout has N lines
#   json KEY VALUE          the one JSON object in ./out has "KEY":VALUE (VALUE as JSON text)
#   golden NAME             ./out with ids and times made neutral is the file golden/NAME
#                           (GOLDEN=update in the environment writes the file instead; read it!)
#   spawn NAME COMMAND...   in the background; ./NAME.out and ./NAME.err
#   ended NAME EXIT         waits for it; it must end with EXIT
#   signal NAME SIGNAL      to that process
#   work_twice QUEUE ID     the first attempt of the task fails, the second one completes it with bytes,
#                           a turn and an artifact of 700,000
#   eventually COMMAND...   repeats it until it succeeds, for at most a minute
#   status_of ID            prints the status of a task
#   start_postgres [NAME=VALUE...]  a server of the scenario's own (tests/support/postgres.sh), which
#                           $database is the URI of; where it is not installed the scenario is skipped
#   stop_postgres           a clean stop         kill_postgres    kill -9 of it with all its processes;
#                           start_postgres starts it again
#   sql STATEMENTS          by its superuser, in the database taskmq

set -u
export LC_ALL=C.UTF-8
export PAGER=
export TASKMQ_TIMEOUT=60s # the machine may be busy
unset TASKMQ_ENDPOINT TASKMQ_NAMESPACE TASKMQ_PROFILE TASKMQ_OUTPUT NO_COLOR CLICOLOR_FORCE COLUMNS

unset TASKMQ_SERVER_KEY TASKMQ_KEY_FILE TASKMQ_KEY TASKMQ_JOIN

scenario=$(basename "$0" .sh)
scenario_dir=$(cd "$(dirname "$0")" && pwd)
. "$scenario_dir/../support/no_pg.sh"
PATH="$TASKMQ_BIN:$PATH"
room=$(mktemp -d "${TMPDIR:-/tmp}/taskmq-$scenario.XXXXXX") || exit 1
cd "$room" || exit 1
export XDG_CONFIG_HOME="$room/config"
last_command=

broker_pid=
broker_options=
postgres_pid=
postgres_home=
postgres_within= # a command that becomes the one behind it, in another place
database=
spawned=

clean_up ()
{
    for spawned_name in $spawned; do
        spawned_pid=$(cat "$spawned_name.pid")
        kill -KILL "$spawned_pid" 2>/dev/null
        wait "$spawned_pid" 2>/dev/null
    done
    if [ -n "$broker_pid" ]; then
        kill -KILL "$broker_pid" 2>/dev/null
        wait "$broker_pid" 2>/dev/null
    fi
    if [ -n "$postgres_pid" ]; then
        kill_postgres
    fi
    if [ -n "$postgres_home" ]; then
        sh "$postgres_script" remove "$postgres_home"
    fi
    cd /
    tries=0
    while [ "$tries" -lt 50 ] && strays=$(stray_processes) && [ -n "$strays" ]; do
        tries=$((tries + 1))
        # shellcheck disable=SC2086 # a list of ids
        kill -KILL $strays 2>/dev/null
    done
    rm -rf "$room"
}
stray_processes ()
{
    find /proc/[0-9]*/cwd -maxdepth 0 -lname "$room*" 2>/dev/null | cut -d / -f 3
}
trap clean_up EXIT
trap 'exit 1' INT TERM

fail ()
{
    {
        printf '%s: %s\n' "$scenario" "$*"
        printf '   after: %s\n' "$last_command"
        for kept in out err broker.err; do
            if [ -s "$kept" ]; then
                printf -- '-- the end of %s\n' "$kept"
                tail -n 15 "$kept"
            fi
        done
    } >&2
    exit 1
}

for program in taskmqd taskctl; do
    [ -x "$TASKMQ_BIN/$program" ] || fail "there is no program $TASKMQ_BIN/$program"
done

# --- processes ----------------------------------------------------------------------------------

eventually ()
{
    tries=0
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ "$tries" -lt 1200 ] || fail "did not come true: $*"
        sleep 0.05
    done
}

start_broker ()
{
    # shellcheck disable=SC2086 # options are words
    taskmqd --data "$room/.taskmq" $broker_options >>broker.out 2>>broker.err &
    broker_pid=$!
    eventually test -s .taskmq/endpoint
    eventually taskctl --timeout 20s ping # the endpoint may be that of the last start
}

stop_broker ()
{
    kill -TERM "$broker_pid"
    wait "$broker_pid" || fail "taskmqd ended with $?"
    broker_pid=
}

# A broker of the same place without tasks; what the one before had is kept under that name.
empty_broker ()
{
    stop_broker
    mv .taskmq "$1"
    start_broker
}

# An export's lines without their events: an imported task has one event.
without_events ()
{
    sed -E 's/,"events":\[.*\]\}$/}/' "$1"
}

kill_broker ()
{
    kill -KILL "$broker_pid"
    wait "$broker_pid" 2>/dev/null
    broker_pid=
}

spawn ()
{
    spawn_name=$1
    shift
    # What an earlier one of this name said is not to be waited for.
    : >"$spawn_name.out"
    : >"$spawn_name.err"
    "$@" >"$spawn_name.out" 2>"$spawn_name.err" </dev/null &
    printf '%s\n' "$!" >"$spawn_name.pid"
    spawned="$spawned $spawn_name"
}

signal ()
{
    kill "-$2" "$(cat "$1.pid")" || fail "$1 is not running"
}

work_twice ()
{
    spawn worker taskctl work "$1" --jobs 1 -- sh -c '
        echo "turn {\"agent\":\"cook\",\"content\":\"said\",\"files\":[{\"op\":\"read\",\"path\":\"/etc/hosts\"}]}" >&"$TASKMQ_FD"
        [ "$TASKMQ_ATTEMPT" = 2 ] || { echo "it broke" >&2; exit 3; }
        head -c 700000 /dev/zero >"$TASKMQ_ARTIFACTS/film"
        printf "done\000\001"'
    run 0 taskctl wait "$2"
    signal worker TERM
    ended worker 0
}

# A process that hangs is ended by the time limit of the test.
ended ()
{
    last_command="waiting for $1"
    wait "$(cat "$1.pid")"
    ended_with=$?
    kept=
    for spawned_name in $spawned; do
        [ "$spawned_name" = "$1" ] || kept="$kept $spawned_name"
    done
    spawned=$kept
    cp "$1.out" out
    cp "$1.err" err
    [ "$ended_with" -eq "$2" ] || fail "$1 ended with $ended_with, not $2"
}

# --- PostgreSQL ---------------------------------------------------------------------------------

postgres_script=$(cd "$scenario_dir/../support" && pwd)/postgres.sh

start_postgres ()
{
    if [ -z "$postgres_home" ]; then
        postgres_programs=$(sh "$postgres_script" found) || exit $?
        postgres_home=$(mktemp -d "/tmp/tmq-pg-$scenario.XXXXXX")
        sh "$postgres_script" make "$postgres_home" || fail "there is no server"
        # shellcheck disable=SC2034 # the scenarios use it
        database="postgresql:///taskmq?host=$postgres_home&user=taskmq"
    fi
    # shellcheck disable=SC2086 # words
    $postgres_within sh "$postgres_script" run "$postgres_home" "$@" >>postgres.log 2>&1 &
    postgres_pid=$!
    eventually sql 'SELECT 1'
}

stop_postgres ()
{
    kill -INT "$postgres_pid"
    wait "$postgres_pid" || fail "PostgreSQL ended with $?"
    postgres_pid=
}

kill_postgres ()
{
    sh "$postgres_script" kill "$postgres_pid"
    wait "$postgres_pid" 2>/dev/null
    postgres_pid=
}

sql ()
{
    "$postgres_programs/psql" -X -q -A -t -v ON_ERROR_STOP=1 -h "$postgres_home" -U postgres -d taskmq \
        -c "$1"
}

# --- what was printed ---------------------------------------------------------------------------

run ()
{
    wanted=$1
    shift
    last_command=$*
    "$@" >out 2>err </dev/null
    got=$?
    [ "$got" -eq "$wanted" ] || fail "exit code $got, not $wanted"
}

out ()
{
    printf '%s\n' "$1" | cmp -s - out || fail "stdout is not: $1"
}

err ()
{
    printf '%s\n' "$1" | cmp -s - err || fail "stderr is not: $1"
}

out_has ()
{
    grep -Eqe "$1" out || fail "no line of stdout matches: $1"
}

out_lacks ()
{
    ! grep -Eqe "$1" out || fail "a line of stdout matches: $1"
}

err_has ()
{
    grep -Eqe "$1" err || fail "no line of stderr matches: $1"
}

err_lacks ()
{
    ! grep -Eqe "$1" err || fail "a line of stderr matches: $1"
}

out_lines ()
{
    [ "$(wc -l <out)" -eq "$1" ] || fail "stdout has $(wc -l <out) lines, not $1"
}

json ()
{
    grep -qF "\"$1\":$2" out || fail "stdout lacks \"$1\":$2"
}

# Ids, times and what depends on the machine become words.
neutral ()
{
    sed -E -e 's/[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/ID/g' \
        -e 's/[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\.[0-9]{3}Z/TIME/g' \
        -e 's/"status_by":"uid:[^"]*"/"status_by":"WHO"/g' \
        -e 's/"owner":"[^"]*"/"owner":"OWNER"/g; s/"actor":"uid:[^"]*"/"actor":"ACTOR"/g' \
        -e 's/"worker":"[^"]*"/"worker":"WORKER"/g; s/"version":[0-9]+/"version":N/g' \
        -e 's/"cursor":"[0-9]+-/"cursor":"GEN-/g' "$@"
}

golden ()
{
    neutral out >out.neutral
    if [ "${GOLDEN-}" = update ]; then
        cp out.neutral "$scenario_dir/golden/$1"
    fi
    if ! cmp -s out.neutral "$scenario_dir/golden/$1"; then
        diff "$scenario_dir/golden/$1" out.neutral >&2
        fail "stdout is not golden/$1"
    fi
}

# --- tasks --------------------------------------------------------------------------------------

# Submits with these arguments and keeps the id in $id.
submit ()
{
    run 0 taskctl submit "$@"
    id=$(cat out)
    printf '%s' "$id" | grep -Eqx '[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}' ||
        fail "not an id: $id"
}

status_of ()
{
    taskctl -o json get "$1" | sed -n 's/.*"status":"\([a-z_]*\)".*/\1/p'
}

# is STATUS ID: for `eventually`.
is ()
{
    [ "$(status_of "$2")" = "$1" ]
}
