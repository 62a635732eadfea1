#!/bin/bash
# A broker, three kinds of workers and a gateway in a new directory; tasks come by HTTP, some fail, one
# asks. Prints the address of the page, and goes on until Ctrl-C.
#
# usage: web.sh [--check]      --check: ends when a result has come back by HTTP and the page is there
#
# The programs are taken from $TASKMQ_BIN. Whatever happens, the processes that it started are gone at
# the end, and the directory with them.

set -uo pipefail

bin=${TASKMQ_BIN:-$(cd "$(dirname "$0")/../.." && pwd)/build/bin}
export PATH="$bin:$PATH"
check=${1-}
case "$check" in
'' | --check) ;;
*)
    echo 'usage: web.sh [--check]' >&2
    exit 2
    ;;
esac
patience_s=30

home=$(mktemp -d) || exit 1
pids=()

clean_up ()
{
    trap - EXIT
    kill "${pids[@]}" 2>/dev/null
    wait 2>/dev/null
    rm -rf "$home"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

die ()
{
    echo "demo: $*" >&2
    tail -n 5 "$home"/*.log >&2
    exit 1
}

start ()
{
    "$@" </dev/null 2>>"$home/$(basename "$1").log" >/dev/null &
    pids+=($!)
}

# await COMMAND...: until it succeeds.
await ()
{
    local end=$((SECONDS + patience_s))
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -lt $end ] || die "this did not come true: $*"
        sleep 0.1
    done
}

cd "$home" || exit 1
start taskmqd
await taskctl ping
listen=127.0.0.1:0
[ -n "$check" ] || listen=127.0.0.1:7433
start taskmq-gateway --listen "$listen"
await test -s .taskmq/gateway.endpoint
url=$(head -n 1 .taskmq/gateway.endpoint)
await curl -sf "$url/readyz"
umask 077
printf 'header = "Authorization: Bearer %s"\n' "$(cat .taskmq/gateway.token)" >curlrc

ask ()
{
    curl -sf -K curlrc "$@"
}

# shellcheck disable=SC2016 # the workers' shells expand it
{
    start taskctl work render -j 2 --name render-1 -- bash -c \
        'for i in 1 2 3 4 5; do echo "progress $i/5 frame" >&"$TASKMQ_FD"; sleep 0.4; done; tr a-z A-Z'
    start taskctl work flaky --name flaky-1 -- bash -c 'sleep 0.3; echo "no such frame" >&2; exit 3'
    start taskctl work poster --name poster-1 -- bash -c \
        'echo "ask size {\"prompt\":\"How large shall the poster be?\",\"schema\":{\"type\":\"object\",\"properties\":{\"cm\":{\"type\":\"number\",\"title\":\"Width in cm\"},\"paper\":{\"type\":\"string\",\"enum\":[\"matt\",\"glossy\"],\"title\":\"Paper\"}},\"required\":[\"cm\"]}}" >&"$TASKMQ_FD"
        read -ru "$TASKMQ_FD" answer; echo "printed: $answer"'
}

# submit QUEUE DATA: prints the id.
submit ()
{
    ask --data-binary "$2" -H 'Content-Type: text/plain' "$url/v1/queues/$1/tasks?label=from:demo" |
        cut -d '"' -f 4
}

if [ -n "$check" ]; then
    id=$(submit render 'frame 1') || die 'the task could not be submitted'
    result=$(ask -H 'Prefer: wait=30' "$url/v1/tasks/$id/result") || die 'no result came'
    [ "$result" = 'FRAME 1' ] || die "the result is '$result'"
    curl -sf "$url/ui" | grep -q '<title>taskmq' || die 'the page is not there'
    case "$(taskmq-gateway link)" in
    "$url/ui#ticket="*) ;;
    *) die 'there is no link' ;;
    esac
    echo "OK  a task by HTTP, its result, and the page"
    exit 0
fi

submit poster 'the film' >/dev/null
submit flaky 'frame 404' >/dev/null
cat <<END
The page:  $(taskmq-gateway link)
           It logs you in, once and within a minute. Later: (cd $home && taskmq-gateway link)
The token: $home/.taskmq/gateway.token
Ctrl-C ends it all.
END
for ((i = 1; ; i++)); do
    submit render "frame $i" >/dev/null || die 'a task could not be submitted'
    [ $((i % 15)) -ne 0 ] || submit flaky "frame $i" >/dev/null
    [ $((i % 40)) -ne 0 ] || submit poster "film $i" >/dev/null
    sleep 1
done
