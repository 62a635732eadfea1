#!/bin/sh
# The C example of README.md compiles as it stands there and does what the text around it says.
. "$TASKMQ_SOURCE/tests/cli/lib.sh"

# shellcheck disable=SC2016 # Markdown's backticks
sed -n '/^```c$/,/^```$/p' "$TASKMQ_SOURCE/README.md" | sed '/^```/d' >hello.c
lines=$(grep -c . hello.c)
[ "$lines" -gt 20 ] || fail "README.md has an example of $lines lines"

build=$(dirname "$TASKMQ_BIN")
sanitizers=$(sed -n 's/^TASKMQ_SANITIZE:STRING=\(.*\)$/\1/p' "$build/CMakeCache.txt" | tr + ,)
cc -std=c11 -Wall -Wextra -Wpedantic -Werror ${sanitizers:+"-fsanitize=$sanitizers"} \
    -I"$TASKMQ_SOURCE/libclient/include" -I"$TASKMQ_SOURCE/proto" hello.c -o hello \
    -L"$build/lib" -ltaskmq -Wl,-rpath,"$build/lib" || fail 'the example does not compile'

start_broker
spawn worker taskctl work render --max-tasks 1 -- tr a-z A-Z
run 0 ./hello "$(head -n 1 .taskmq/endpoint)"
out 'completed: FRAME 18'
ended worker 0
