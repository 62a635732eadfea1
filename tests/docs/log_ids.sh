#!/bin/sh
# docs/RUNBOOK.md has a section for each id that taskmqd logs, with the exit code where the id
# ends it, and no section for anything else.
set -eu

cd "$TASKMQ_SOURCE"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Calls may go over several lines. An id is a literal, or one of the table of exit codes.
find broker -name '*.c' -exec cat {} + | tr '\n' ' ' | grep -oE '\<log_write \([^,()]*, +[^,]*,' |
    grep -v 'const char' >"$scratch/calls"
sed -nE 's/.*"([A-Z-]+)",$/### \1/p' "$scratch/calls" >"$scratch/source"
if grep -vE '"[A-Z-]+",$|exits_id \(code\),$' "$scratch/calls"; then
    echo 'the id of such a line is not to be found by reading'
    exit 1
fi
sed -nE 's/^    X \(([0-9]+), [A-Z]+, "([A-Z-]+)",.*/### \2: exit \1/p' broker/exits.h \
    >>"$scratch/source"
sort -u "$scratch/source" >"$scratch/wanted"
grep -cE '^### .*: exit' "$scratch/wanted" | grep -qx "$(grep -cE '^    X \([0-9]+,' broker/exits.h)"
[ "$(grep -vc ': exit' "$scratch/wanted")" -gt 15 ]

grep '^### ' docs/RUNBOOK.md | sort >"$scratch/there"
diff "$scratch/wanted" "$scratch/there" || {
    echo 'docs/RUNBOOK.md has no section for what is on the left, or one too many (right)'
    exit 1
}

# Whoever meets a line that is no good news wants to know what is lost.
awk '
function check () { if (name != "" && bad && !said) { print name; wrong = 1 } }
/^##/ {
    check ()
    name = sub (/^### /, "") ? $0 : ""
    bad = name ~ /: exit [1-9]/
    said = 0
}
/^\*[^*]*(warning|error)/ { bad = 1 }
/^\*Lost:\* [a-z]/ { said = 1 }
END { check (); exit wrong }' docs/RUNBOOK.md || {
    echo 'these sections of docs/RUNBOOK.md do not say "*Lost:* ..."'
    exit 1
}
