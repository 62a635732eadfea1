#!/bin/bash
# The main job on real input: the SHA-256 of every regular file of a directory, one task per file,
# while the broker is killed in the middle of it.
#
# usage: demo.sh [DIRECTORY]      (default: this source tree without .git and build)
#
# The programs are taken from $TASKMQ_BIN. Exits 0 only if every task completed, every result is the
# one that sha256sum gives, and the subscriber saw every completion exactly once. Whatever happens,
# the processes that it started are gone at the end; after a failure the data directory stays.

set -uo pipefail
export PAGER= # the lists of the demo are a part of it

queue=sha256
# The dot saves newlines at the end of a name from the command substitution.
# shellcheck disable=SC2016 # it is the worker's shell that expands it
hash_command='f=$(cat; echo .); sha256sum <"${f%.}"'
stall_s=60          # no event for so long means that something hangs
slots_first=2       # tasks whose changes are shown one by one from the beginning
slots_again=2       # and from the crash on
dead_s=2            # how long the broker stays away when somebody is looking
bar_cells=24
bar_step=6          # cells by which the bar grows from one line to the next in a pipe
width_min=72        # what the sentences need

source_dir=$(cd "$(dirname "$0")/../.." && pwd)
bin=${TASKMQ_BIN:-$source_dir/build/bin}
export PATH="$bin:$PATH"

work=
broker_pid=
watch_pid=
filter_pid=
worker_pids=()

# Looks.

bold='' red='' green='' dim='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR-}" ]; then
    bold=$'\e[1m' red=$'\e[1;31m' green=$'\e[1;32m' dim=$'\e[2m' plain=$'\e[0m'
fi
full='#' hollow='.' arrow='->' rule='-' more='...'
case ${LC_ALL:-${LC_CTYPE:-${LANG-}}} in
*UTF-8 | *utf8)
    full='█' hollow='░' arrow='→' rule='─' more='…'
    ;;
esac

# No line is longer than the terminal; in a pipe 80 columns are a good guess.
width=80
if [ -t 1 ]; then
    { size=$(stty size <&4 2>/dev/null); } 4>&1
    [ "${size#* }" -lt "$width_min" ] || width=${size#* }
fi

# clip TEXT COLUMNS: sets clipped to the text, cut where it does not fit.
clip ()
{
    clipped=$1
    if [ "${#1}" -gt "$2" ]; then
        clipped=${1:0:$2 - ${#more}}$more
    fi
}

heading ()
{
    local line
    printf -v line '%*s' $((width - 5 - ${#1})) ''
    printf '\n%s%s %s%s%s %s%s\n' "$dim" "$rule$rule" "$plain$bold" "$1" "$plain$dim" \
        "${line// /$rule}" "$plain"
}

say ()
{
    printf '  %s\n' "$*"
}

now_ms ()
{
    date +%s%3N
}

# Ending.

die ()
{
    printf '\n%sdemo: %s%s\n' "$red" "$*" "$plain" >&2
    if [ -n "$work" ]; then
        for log in "$work"/*.log; do
            if [ -s "$log" ]; then
                printf -- '-- the end of %s\n' "$log" >&2
                tail -n 5 "$log" >&2
            fi
        done
        printf 'everything is left in %s\n' "$work" >&2
        work=
    fi
    exit 1
}

# Ends what still runs, by the ids of the processes that were started here.
clean_up ()
{
    local pid
    for pid in $watch_pid $filter_pid "${worker_pids[@]}" $broker_pid; do
        kill -KILL "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
    done
    if [ -n "$work" ]; then
        rm -rf "$work"
    fi
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# The parts.

start_broker ()
{
    taskmqd --data "$work/.taskmq" >>"$work/taskmqd.log" 2>&1 &
    broker_pid=$!
    local deadline=$((SECONDS + 60))
    until [ -s "$work/.taskmq/endpoint" ]; do
        kill -0 "$broker_pid" 2>/dev/null || die 'the broker ended at its start'
        [ "$SECONDS" -lt "$deadline" ] || die 'the broker does not say where it listens'
        sleep 0.02
    done
    TASKMQ_ENDPOINT=$(head -n 1 "$work/.taskmq/endpoint")
    export TASKMQ_ENDPOINT
    until taskctl --timeout 20s ping >"$work/ping.out" 2>&1; do
        [ "$SECONDS" -lt "$deadline" ] || die "the broker does not answer: $(cat "$work/ping.out")"
        sleep 0.02
    done
}

# Two processes, each with two tasks at a time, in the directory whose files are named.
start_workers ()
{
    local i
    for i in 1 2; do
        (cd "$directory" && exec taskctl work "$queue" -j 2 -- sh -c "$hash_command") \
            >"$work/worker-$i.log" 2>&1 </dev/null &
        worker_pids+=($!)
    done
}

# Sets names[], the readable regular files below the directory, and says what cannot be read.
find_files ()
{
    local skip=(-path "./${work#"$directory"/}")
    if [ -z "${1-}" ]; then
        skip+=(-o -path ./.git -o -path ./build)
    fi
    cd "$directory" || die "cannot enter $directory"
    mapfile -d '' -t names < <(find . \( "${skip[@]}" \) -prune -o -type f -readable -print0 |
        LC_ALL=C sort -z)
    names=("${names[@]#./}")
    local unreadable
    unreadable=$(find . \( "${skip[@]}" \) -prune -o -type f ! -readable -printf x | wc -c)
    if [ "$unreadable" -gt 0 ]; then
        say "$unreadable files cannot be read by this user and are left out"
    fi
    if [ "${#names[@]}" -eq 0 ]; then
        rmdir "$work"
        work=
        die "there is no readable regular file in $directory"
    fi
}

# One line of JSON per file. What is not plain ASCII goes as base64: a name is bytes, not text.
write_batch ()
{
    local name data
    for name in "${names[@]}"; do
        if [[ $name == *[!\ -~]* ]]; then
            data="{\"base64\":\"$(printf '%s' "$name" | base64 -w 0)\"}"
        else
            data=${name//\\/\\\\}
            data="\"${data//\"/\\\"}\""
        fi
        printf '{"queue":"%s","data":%s}\n' "$queue" "$data"
    done
}

submit_all ()
{
    local began
    LC_ALL=C write_batch >"$work/batch.jsonl"
    began=$(now_ms)
    taskctl -o id submit --batch "$work/batch.jsonl" >"$work/ids" ||
        die "the tasks could not be submitted (exit $?)"
    took=$(($(now_ms) - began))
    mapfile -t ids <"$work/ids"
    [ "${#ids[@]}" -eq "${#names[@]}" ] || die "${#names[@]} files, but ${#ids[@]} ids"
    local i
    for i in "${!ids[@]}"; do
        name_of[${ids[i]}]=${names[i]}
    done
}

# Sets progress to the bar with its numbers; the bar takes what the numbers leave of the line.
progress_line ()
{
    local numbers="${count[completed]} of ${#ids[@]} done, ${count[working]} working, \
${count[queued]} queued"
    local cells=$((width - 15 - ${#numbers})) bar='' i
    [ "$cells" -le "$bar_cells" ] || cells=$bar_cells
    local filled=$((done_count * cells / ${#ids[@]}))
    for ((i = 0; i < cells; i++)); do
        if [ "$i" -lt "$filled" ]; then bar+=$full; else bar+=$hollow; fi
    done
    clip "  ${at%.*}  $bar  $numbers" $((width - 1))
    progress=$clipped
}

# Shows the event: the changes of a few tasks one by one, those of all others as a bar that grows.
show_event ()
{
    local shown=${name_of[$id]//[[:cntrl:]]/?} change=$status
    if [ -z "${followed[$id]-}" ] && [ "$slots" -gt 0 ]; then
        slots=$((slots - 1))
        followed[$id]=1
    fi
    if [ -n "${followed[$id]-}" ]; then
        close_line
        [ -z "$previous" ] || change="$previous $arrow $status"
        local pad=$((22 - ${#change})) # printf would count bytes
        clip "$shown" $((width - 37))
        printf '  %s  %s%*s%s\n' "${at%.*}" "$change" "$pad" '' "$clipped"
    elif [ -t 1 ]; then
        progress_line
        printf '\r\e[K%s' "$progress"
        open_line=1
    elif [ "$((done_count * bar_cells / ${#ids[@]}))" -ge "$((cells_shown + bar_step))" ]; then
        cells_shown=$((done_count * bar_cells / ${#ids[@]}))
        progress_line
        printf '%s\n' "$progress"
    fi
}

close_line ()
{
    if [ "$open_line" -eq 1 ]; then
        printf '\n'
        open_line=0
    fi
}

# The broker is dead for a moment longer when somebody is looking.
crash_and_restart ()
{
    local began old=$broker_pid
    close_line
    printf '\n  %skill -9 %s%s   the broker is dead, with %d of %d done\n' \
        "$red" "$old" "$plain" "$done_count" "${#ids[@]}"
    kill -KILL "$old"
    wait "$old" 2>/dev/null
    if [ -t 1 ]; then
        say "${dim}nobody answers for $dead_s s; the workers keep what they have$plain"
        sleep "$dead_s"
    fi
    began=$(now_ms)
    start_broker
    printf '  %staskmqd%s       back after %d ms, pid %s; nobody else was restarted\n\n' \
        "$green" "$plain" "$(($(now_ms) - began))" "$broker_pid"
    slots=$slots_again
    crashes=$((crashes + 1))
}

# One subscription for the whole demo. What it prints is made short before the shell, which reads
# byte by byte, gets it on descriptor 3: kind, time, task, status and the status before.
start_watching ()
{
    mkfifo "$work/events" "$work/changes"
    exec 3<>"$work/changes"
    local head='^\{"kind":"([a-z_]+)",.*"at":"[^"]*T([^"]*)Z","task_id":"([^"]+)",'
    local tail='"status":"([a-z_]+)","previous":("([a-z_]+)"|null)'
    stdbuf -oL sed -nE "s/$head.*$tail.*/\\1 \\2 \\3 \\4 \\6/p" <"$work/events" >&3 &
    filter_pid=$!
    taskctl -o jsonl watch --queue "$queue" --since 0 >"$work/events" 2>"$work/watch.log" &
    watch_pid=$!
}

# Follows the events from the first one to the last task's end; crashes the broker half way.
follow ()
{
    local half=$(((${#ids[@]} + 1) / 2)) at id kind status previous
    while [ "$done_count" -lt "${#ids[@]}" ]; do
        if ! read -r -t "$stall_s" -u 3 kind at id status previous; then
            close_line
            die "no event for $stall_s s, at $done_count of ${#ids[@]}"
        fi
        if [ "$status" != "$previous" ]; then
            count[$status]=$((count[$status] + 1))
            [ -z "$previous" ] || count[$previous]=$((count[$previous] - 1))
        fi
        case $kind in
        completed | failed | cancelled)
            done_count=$((done_count + 1))
            ended[$id]=$((${ended[$id]:-0} + 1))
            ;;
        esac
        if [ "$status" != "$previous" ]; then
            show_event
        fi
        if [ "$crashes" -eq 0 ] && [ "${count[completed]}" -ge "$half" ]; then
            crash_and_restart
        fi
    done
    close_line
}

# Sets equal, different, missing and repeated.
compare ()
{
    local i id hash
    local -A result=()
    while read -r id hash; do
        result[$id]=$hash
    done < <(xargs -n 500 taskctl -o jsonl get <"$work/ids" |
        sed -nE 's/.*"task_id":"([^"]+)".*"result":"([0-9a-f]{64})  -\\n".*/\1 \2/p')
    mapfile -t expected < <(printf '%s\0' "${names[@]}" | xargs -0 sha256sum -z -- |
        tr '\n\0' '_\n' | cut -b 1-64)
    for i in "${!ids[@]}"; do
        id=${ids[i]}
        if [ -z "${result[$id]-}" ]; then
            missing=$((missing + 1))
            say "${red}no result${plain}  ${names[i]}"
        elif [ "${result[$id]}" != "${expected[i]-}" ]; then
            different=$((different + 1))
            say "${red}different${plain}  ${names[i]}"
        else
            equal=$((equal + 1))
        fi
        if [ "${ended[$id]:-0}" -ne 1 ]; then
            repeated=$((repeated + 1))
            say "${red}seen ending ${ended[$id]:-0} times${plain}  ${names[i]}"
        fi
    done
}

# $ COMMAND, then what it prints, indented and within the line.
show_command ()
{
    local line
    printf '  %s$ %s%s\n' "$bold" "$*" "$plain"
    "$@" >"$work/shown" 2>"$work/shown.log" || die "'$*' failed"
    while IFS= read -r line; do
        clip "$line" $((width - 3))
        say "$clipped"
    done <"$work/shown"
}

# The newest line of tasks.jsonl, by the keys that tell most.
show_record ()
{
    local keys='s/.*("status":"[a-z]+").*("attempt":[0-9]+).*("result":"[^"]*").*/{_\1,_\2,_\3_}/'
    local line
    line=$(tail -n 1 "$work/.taskmq/tasks.jsonl" | sed -E "$keys")
    clip "${line//_/$more}" $((width - 3))
    printf '\n  %s$ tail -n 1 .taskmq/tasks.jsonl%s   shortened; every task has such a line\n' \
        "$bold" "$plain"
    say "$clipped"
}

stop_all ()
{
    local pid
    kill -TERM "$watch_pid"
    wait "$watch_pid" "$filter_pid"
    watch_pid='' filter_pid=''
    for pid in "${worker_pids[@]}"; do
        kill -TERM "$pid"
        wait "$pid" || die "a worker ended with exit status $?"
    done
    worker_pids=()
    kill -TERM "$broker_pid"
    wait "$broker_pid" || die "the broker ended with exit status $?"
    broker_pid=
}

# The demo.

if [ $# -gt 1 ]; then
    printf 'usage: ./dev demo [DIRECTORY]\n' >&2
    exit 2
fi
directory=$(cd "${1:-$source_dir}" 2>/dev/null && pwd -P) || die "there is no directory '$1'"
work=$(mktemp -d "${TMPDIR:-/tmp}/taskmq-demo.XXXXXX") || die 'cannot make a directory'
work=$(cd "$work" && pwd -P)

declare -A name_of=() ended=() followed=()
declare -A count=([queued]=0 [working]=0 [input_required]=0 [completed]=0 [failed]=0 [cancelled]=0)
names=() ids=() expected=()
took=0 done_count=0 crashes=0 open_line=0 cells_shown=0 slots=$slots_first
equal=0 different=0 missing=0 repeated=0
began_ms=$(now_ms)

clip "the SHA-256 of every file in $directory" $((width - 9))
printf '%staskmq%s  %s\n' "$bold" "$plain" "$clipped"

find_files "${1-}"

heading '1  A broker on SQLite, and two workers'
start_broker
clip "taskmqd    pid $broker_pid   $work/.taskmq" $((width - 3))
say "$clipped"
start_workers
clip "worker 1   pid ${worker_pids[0]}   taskctl work $queue -j 2 -- sh -c '$hash_command'" \
    $((width - 3))
say "$clipped"
say "worker 2   pid ${worker_pids[1]}   the same"

heading '2  One task per file, its name as the payload'
start_watching
submit_all
say "${#ids[@]} tasks submitted in $took ms; each was on disk before it was acknowledged"

heading '3  What happens to them, live, and a crash at half'
follow

heading '4  Every result against sha256sum'
compare
say "$equal equal, $different different, $missing missing"
say "$((${#ids[@]} - repeated)) tasks were seen ending exactly once, across the crash"

heading '5  What the broker knows, and what a person can read'
show_command taskctl list "$queue" --limit 3 --columns id,status,created,took,worker
show_record
stop_all

elapsed_ms=$(($(now_ms) - began_ms))
verdict="$equal of ${#names[@]} right, $repeated ends lost or seen twice, $crashes crash survived, \
$((elapsed_ms / 1000)).$((elapsed_ms % 1000 / 100)) s"
if [ "$equal" -ne "${#names[@]}" ] || [ "$repeated" -ne 0 ] || [ "$crashes" -ne 1 ]; then
    die "FAILED: $verdict"
fi
printf '\n%sOK%s  %s\n' "$green" "$plain" "$verdict"
printf 'Try next: ./dev demo DIRECTORY, or your own broker as README.md shows it\n'
