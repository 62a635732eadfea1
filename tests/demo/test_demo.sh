#!/bin/bash
# The demo succeeds on names that are hard, and fails when a result is wrong: here by a sha256sum that
# lies to the workers.

set -uo pipefail

demo=$(dirname "$0")/demo.sh
scratch=$(mktemp -d) || exit 1
export TMPDIR="$scratch/tmp"
mkdir "$TMPDIR" "$scratch/bin"
trap 'rm -rf "$scratch"' EXIT

fail ()
{
    printf 'FAILED: %s\n' "$*"
    cat "$scratch/out"
    exit 1
}

files=$scratch/files
mkdir -p "$files/a directory/naïve"
printf 'one' >"$files/plain"
printf 'two' >"$files/a directory/with spaces.txt"
printf 'three' >"$files/a directory/naïve/日本語"
printf 'four' >"$files/quo\"te, back\\slash, \$dollar and 'apostrophe'"
printf 'five' >"$files/-n"
printf 'six' >"$files/"$'new\nline\n'
printf 'seven' >"$files/"$'not UTF-8 \xff\xfe'
: >"$files/empty"

bash "$demo" "$files" >"$scratch/out" 2>&1 || fail "exit status $?"
grep -q '^OK  8 of 8 right, 0 ends lost or seen twice, 1 crash survived' "$scratch/out" ||
    fail 'no verdict over 8 files and a crash'
[ -z "$(ls "$TMPDIR")" ] || fail 'the demo left something behind'

# on_terminal COLUMNS: no line, as it was at any moment, is wider; the whole is not much longer than a
# screen.
on_terminal ()
{
    TERM=xterm script -qec "stty cols $1 rows 24; bash '$demo' '$files'" /dev/null \
        <"$scratch/nothing" >"$scratch/screen" || fail "exit status $? at $1 columns"
    sed -e 's/\x1b\[K/\n/g' -e 's/\x1b\[[0-9;]*m//g' "$scratch/screen" | tr '\r' '\n' >"$scratch/out"
    local line
    while IFS= read -r line; do
        [ "${#line}" -le "$1" ] || fail "wider than $1 columns: $line"
    done <"$scratch/out"
    [ "$(grep -c . "$scratch/screen")" -lt 60 ] || fail 'the demo scrolls too far'
    grep -q 'the broker is dead, with 4 of 8 done' "$scratch/out" || fail 'no crash is shown'
}
: >"$scratch/nothing"
export LC_ALL=C.UTF-8
on_terminal 80

cat >"$scratch/bin/sha256sum" <<END
#!/bin/sh
if [ \$# -eq 0 ] && grep -q '^one' /dev/stdin; then
    printf '%064d  -\n' 0
else
    exec $(command -v sha256sum) "\$@"
fi
END
chmod +x "$scratch/bin/sha256sum"
rm "$files/empty"
if PATH="$scratch/bin:$PATH" bash "$demo" "$files" >"$scratch/out" 2>&1; then
    fail 'a wrong result was not noticed'
fi
grep -q '6 equal, 1 different, 0 missing' "$scratch/out" || fail 'the wrong result was not counted'
grep -q 'different  plain' "$scratch/out" || fail 'the wrong result was not named'

empty=$scratch/empty
mkdir "$empty"
if bash "$demo" "$empty" >"$scratch/out" 2>&1; then
    fail 'success on an empty directory'
fi
printf 'the demo tells right from wrong\n'
