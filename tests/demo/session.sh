#!/bin/bash
# A session with a real broker, recorded on a terminal and drawn as an SVG: what README shows first.
#
# usage: session.sh FILE.svg
#
# The programs are taken from $TASKMQ_BIN. Nothing in the picture is written by hand: the commands below
# are typed, and what they print is drawn, with its colours.

set -euo pipefail

columns=98 # less than 100: tables show the ends of ids only
source_dir=$(cd "$(dirname "$0")/../.." && pwd)
export PATH="${TASKMQ_BIN:-$source_dir/build/bin}:$PATH"
export LC_ALL=C.UTF-8 TERM=xterm-256color TZ=UTC PAGER=cat
export TASKMQ_TIMEOUT=60s # the machine may be busy
unset TASKMQ_ENDPOINT TASKMQ_NAMESPACE NO_COLOR CLICOLOR_FORCE COLUMNS

# Inside of the recording.

# type COMMAND: shows and runs it.
type ()
{
    printf '\e[32m$\e[0m \e[1m%s\e[0m\n' "$1"
    eval "$1" || exit 1
}

answers ()
{
    local tries=0
    until taskctl ping >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ "$tries" -lt 1200 ] || exit 1
        sleep 0.05
    done
}

# shellcheck disable=SC2016 # eval expands them
play ()
{
    trap '{ kill "$!" && wait "$!"; } 2>>broker.log || :' EXIT
    type 'taskmqd 2>broker.log &'
    answers
    type 'ID=$(taskctl submit render --data "frame 17" --label film=dawn)'
    type 'taskctl list'
    printf '\n'
    type 'kill -9 $!   # what was acknowledged is on disk'
    wait "$!" 2>/dev/null || : # the shell has a word about it
    type 'taskmqd 2>>broker.log &'
    answers
    type 'taskctl work render --drain -- tr a-z A-Z'
    type 'taskctl result $ID; echo'
    printf '\n'
    type 'taskctl watch --since 0 --count 3'
}

# Outside.

if [ "${1-}" = --play ]; then
    play 2>&1
    exit
fi
if [ $# -ne 1 ]; then
    printf 'usage: session.sh FILE.svg\n' >&2
    exit 2
fi
work=$(mktemp -d "${TMPDIR:-/tmp}/taskmq-session.XXXXXX")
trap 'rm -rf "$work"' EXIT
self=$source_dir/tests/demo/session.sh
(cd "$work" && script -qec "stty cols $columns rows 40; bash $(printf %q "$self") --play" /dev/null \
    </dev/null >"$work/recording") || {
    cat "$work/recording" >&2
    exit 1
}

# What was drawn over is gone, as on the terminal. Colours become classes.
tr -d '\r' <"$work/recording" | sed -E 's/.*\x1b\[K//' | awk -v columns="$columns" '
    function put(text) {
        gsub(/&/, "\\&amp;", text)
        gsub(/</, "\\&lt;", text)
        gsub(/>/, "\\&gt;", text)
        if (text != "")
            line = line (class == "" ? text : "<tspan class=\"" class "\">" text "</tspan>")
    }
    {
        rest = $0
        line = ""
        class = ""
        while (match(rest, /\033\[[0-9;]*m/)) {
            put(substr(rest, 1, RSTART - 1))
            code = substr(rest, RSTART + 2, RLENGTH - 3)
            class = code == "0" || code == "" ? "" : "s" code
            gsub(/;/, " s", class)
            rest = substr(rest, RSTART + RLENGTH)
        }
        put(rest)
        lines[NR] = line
    }
    END {
        width = columns * 8.43 + 32
        height = NR * 19 + 30
        printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" ",
            width, height, width, height
        print "role=\"img\" aria-label=\"A session with taskmq in a terminal\">"
        print "<style>"
        print "text {font: 14px ui-monospace, Menlo, Consolas, \"DejaVu Sans Mono\", monospace;"
        print "    fill: #d6dde6; white-space: pre}"
        print ".s1 {font-weight: bold; fill: #fff} .s2 {fill: #8b96a5} .s31 {fill: #ff7b72}"
        print ".s32 {fill: #6bd08b} .s33 {fill: #e3b341} .s35 {fill: #d2a8ff} .s36 {fill: #79c0ff}"
        print "</style>"
        printf "<rect width=\"%d\" height=\"%d\" rx=\"8\" fill=\"#12181f\"/>\n", width, height
        for (i = 1; i <= NR; i++) {
            if (lines[i] != "")
                printf "<text x=\"16\" y=\"%d\" xml:space=\"preserve\">%s</text>\n", 12 + i * 19, lines[i]
        }
        print "</svg>"
    }' >"$work/session.svg"
mv "$work/session.svg" "$1"
