#!/bin/sh
# shellcheck disable=SC2016 # the shells of the programs expand these
# work: what a program keeps for the next attempt, and the directory that it has for itself.
. "$(dirname "$0")/lib.sh"
printf 'links\n    grace = 100ms\n' >conf # what a killed worker held comes back soon
broker_options="-c $room/conf"
start_broker
mkdir tmp
export TMPDIR="$room/tmp"

nothing_left ()
{
    [ -z "$(ls -A tmp)" ]
}

# Without a checkpoint the file is there and empty; the directory too, and nobody else's.
submit q
run 0 taskctl work q --drain -- sh -c 'wc -c <"$TASKMQ_CHECKPOINT_FILE"; ls -A "$TASKMQ_WORKDIR"
    stat -c %a "$TASKMQ_WORKDIR" "${TASKMQ_WORKDIR%/*}" "$TASKMQ_CHECKPOINT_FILE"
    echo "${TASKMQ_PAYLOAD_FILE-none}"'
run 0 taskctl result "$id"
out '0
700
700
600
none'
eventually nothing_left

# A JSON string is what is kept, of anything else the text; the last one counts; 0 bytes end it.
cat >keeper <<'END'
#!/bin/bash
od -An -c "$TASKMQ_CHECKPOINT_FILE"
n=0
while IFS= read -r line; do
    printf '%s\n' "$line" >&"$TASKMQ_FD"
    read -r answer <&"$TASKMQ_FD"
    echo "$answer"
    n=$((n + 1))
done <"$TASKMQ_CHECKPOINTS"
exit 75
END
chmod +x keeper
# kept LINES...: what was answered to them in one attempt, which gives its task back.
kept ()
{
    printf '%s\n' "$@" >lines
    run 0 env TASKMQ_CHECKPOINTS="$room/lines" taskctl work keep --release-delay 0s --max-tasks 1 \
        -- sh -c './keeper >answers; exit 75'
    cp answers out
}
submit keep
kept 'checkpoint "first"' 'checkpoint "page\u0000\u00e4\n"'
out 'kept 5
kept 8'
kept 'checkpoint {"page":3}'
out "   p   a   g   e  \\0 303 244  \\n
kept 10"
kept 'checkpoint ""' 'checkpoint' 'checkpoint nonsense' 'checkpoint "two" 3'
out '   {   "   p   a   g   e   "   :   3   }
kept 0
error checkpoint needs a JSON value
error checkpoint needs a JSON value
error checkpoint needs a JSON value'
kept 'nonsense'
out "error unknown verb 'nonsense'"
run 0 taskctl cancel "$id"

# 64 KiB fit, also as escapes; one byte more does not.
submit big
run 0 taskctl work big --release-delay 0s --max-tasks 1 -- bash -c '
    { printf "checkpoint \""; printf "\\\\u0001%.0s" $(seq 65536); echo \"; } >&"$TASKMQ_FD"
    read -r one <&"$TASKMQ_FD"
    { printf "checkpoint \""; printf "x%.0s" $(seq 65537); echo \"; } >&"$TASKMQ_FD"
    read -r two <&"$TASKMQ_FD"
    { printf "checkpoint \""; printf "x%.0s" $(seq 400000); echo \"; } >&"$TASKMQ_FD"
    read -r three <&"$TASKMQ_FD"
    printf "%s\n" "$one" "$two" "$three" >answers
    exit 75'
cp answers out
out_has '^kept 65536$'
out_has '^error checkpoint the state has 65537 bytes, at most 65536$'
out_has '^error the line is longer than [0-9]* bytes$'
run 0 taskctl work big --drain -- sh -c 'wc -c <"$TASKMQ_CHECKPOINT_FILE"'
run 0 taskctl result "$id"
out 65536

# A worker that is killed: the next attempt has what was kept, and nothing of the directory is left.
cat >steady <<'END'
#!/bin/bash
if [ "$TASKMQ_ATTEMPT" -gt 1 ]; then
    echo "$(cat "$TASKMQ_CHECKPOINT_FILE")"
    exit 0
fi
mkdir -p "$TASKMQ_WORKDIR/a/b/c" && echo large >"$TASKMQ_WORKDIR/a/b/c/d" && chmod 500 "$TASKMQ_WORKDIR/a/b"
echo 'checkpoint "so far"' >&"$TASKMQ_FD"
read -r answer <&"$TASKMQ_FD"
echo "$answer" >"reached.$TASKMQ_TASK_ID"
sleep 1000
END
chmod +x steady
submit steady --backoff 1ms
spawn killed taskctl work steady -- ./steady
eventually test -s "reached.$id"
! nothing_left || fail 'there is no directory'
signal killed KILL
ended killed 137
eventually nothing_left
run 0 taskctl work steady --max-tasks 1 -- ./steady
run 0 taskctl result "$id"
out 'so far'

# The same with the broker killed before.
submit steady --backoff 1ms
spawn killed taskctl work steady -- ./steady
eventually test -s "reached.$id"
kill_broker
start_broker
eventually sh -c 'taskctl worker list | grep -qw working' # it has its lease again
signal killed KILL
ended killed 137
run 0 taskctl work steady --max-tasks 1 -- ./steady
run 0 taskctl result "$id"
out 'so far'

# A directory goes whatever is in it: deep, without rights, with links to what is not its own.
mkdir keep
echo mine >keep/file
submit deep --data "$room/keep"
run 0 taskctl work deep --drain -- bash -c 'kept=$(cat); cd "$TASKMQ_WORKDIR"
    ln -s "$kept" link
    mkdir -p "$(printf "d/%.0s" $(seq 300))"
    for n in $(seq 300); do
        echo x >f
        [ $((n % 75)) -ne 0 ] || { mkdir d0; mkfifo p; chmod 000 d0; }
        cd d
    done
    cd "$TASKMQ_WORKDIR"; for i in $(seq 1000); do echo >"file $i"; done; chmod 000 d'
run 0 taskctl -o json get "$id"
json status '"completed"'
eventually nothing_left
[ "$(cat keep/file)" = mine ] || fail 'what a link led to is gone'

# Where there is no room for it, the task waits.
spawn homeless env TMPDIR=later taskctl work homeless --max-tasks 1 -- cat
submit homeless
eventually grep -q 'cannot be started yet: No such file' homeless.err
mkdir later
ended homeless 0
