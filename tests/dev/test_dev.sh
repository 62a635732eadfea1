#!/bin/sh
# ./dev test: a test that failed runs once more, alone. What passed only then is named, what failed
# twice has failed. The tests here are made up, ctest is the real one.

set -eu

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cp "$TASKMQ_SOURCE/dev" "$scratch/dev"
cd "$scratch"
unset CTEST_PARALLEL_LEVEL CTEST_OUTPUT_ON_FAILURE

# Nothing is installed or compiled.
mkdir -p tools build/debug
for tool in cmake apt-get; do
    printf '#!/bin/sh\n' >tools/$tool
done
printf '#!/bin/sh\nprintf installed\n' >tools/dpkg-query
chmod +x tools/*
PATH="$scratch/tools:$PATH"
: >CMakePresets.json
: >build/debug/build.ninja

fail ()
{
    printf 'FAILED: %s\n' "$*"
    cat out
    exit 1
}

# tests NAME=COMMAND...: these are the tests of the build.
tests ()
{
    : >build/debug/CTestTestfile.cmake
    for made_up in "$@"; do
        printf 'add_test(%s sh -c [=[%s]=])\n' "${made_up%%=*}" "${made_up#*=}" \
            >>build/debug/CTestTestfile.cmake
    done
}

# says EXIT LAST [FLAKY...]: what ./dev test ends with, its last line, and the tests it calls flaky.
says ()
{
    exit_code=0
    ./dev test >out 2>&1 || exit_code=$?
    [ "$exit_code" -eq "$1" ] || fail "exit status $exit_code, not $1"
    [ "$(tail -n 1 out)" = "$2" ] || fail "the last line is not '$2'"
    shift 2
    flaky=$(sed -n 's/^flaky: \(.*\) failed once and passed when it ran again$/\1/p' out | paste -sd ' ')
    [ "$flaky" = "$*" ] || fail "flaky is '$flaky', not '$*'"
}

once="[ -e $scratch/once ] || { touch $scratch/once; exit 1; }"

tests good=true better=true
says 0 '2 passed, 0 failed'
tests good=true bad=false
says 1 '1 passed, 1 failed'
grep -q '^dev: 1 of 2 failed' out || fail 'it does not say that it runs them again'

tests good=true "cli.odd=$once"
says 0 '2 passed, 0 failed' cli.odd
rm once
tests good=true bad=false "odd=$once" better=true
says 1 '3 passed, 1 failed' odd

# So many are no accident.
rm once
set -- "odd=$once"
while [ $# -lt 11 ]; do
    set -- "$@" "bad$#=false"
done
tests good=true "$@"
says 1 '1 passed, 11 failed'

tests
says 1 '0 passed, 0 failed'

# Who asks for help gets it, and no directory of that name is looked for.
./dev demo --help >out 2>&1 || fail 'demo --help'
grep -q '^  demo cluster ' out || fail 'demo --help does not say what there is'
printf 'flaky tests are named\n'
