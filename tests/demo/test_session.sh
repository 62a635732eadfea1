#!/bin/bash
# The recorded session is drawn from what really happened, as one picture that any viewer can read.

set -uo pipefail

scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT

fail ()
{
    printf 'FAILED: %s\n' "$*"
    cat "$scratch/out" "$scratch/session.svg"
    exit 1
}

bash "$(dirname "$0")/session.sh" "$scratch/session.svg" >"$scratch/out" 2>&1 || fail "exit status $?"
python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse (sys.argv[1])' "$scratch/session.svg" ||
    fail 'it is no XML'
for text in '>FRAME 17<' '>taskctl: 1 done<' '<tspan class="s32">completed</tspan>'; do
    grep -qF "$text" "$scratch/session.svg" || fail "it lacks $text"
done
! grep -q $'\e' "$scratch/session.svg" || fail 'an escape sequence is left'
sed -n 's/^<text [^>]*>\(.*\)<\/text>$/\1/p' "$scratch/session.svg" |
    sed -e 's/<[^>]*>//g' -e 's/&[a-z]*;/x/g' >"$scratch/lines"
[ "$(grep -c . "$scratch/lines")" -lt 25 ] || fail 'it is longer than a screen'
printf 'the session is drawn\n'
