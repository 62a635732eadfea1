# shellcheck shell=sh
# The code of a document, and the tools that its commands name. To be sourced after lib.sh.

# extract_blocks DOCUMENT: the blocks "```LANGUAGE NAME" as files NAME, whose names are in ./programs;
# the lines of all blocks "```console" in ./session. Code without a name would not be tried.
extract_blocks ()
{
    : >programs
    : >session
    awk '
        /^```/ && target != "" { target = ""; next }
        /^```console$/ { target = "session"; next }
        /^```text$/ { target = "/dev/null"; next }
        /^```[a-z]+ [a-z0-9_.-]+$/ { target = $2; print target >"programs"; next }
        /^```/ { print FILENAME ":" FNR ": a block without a name"; bad = 1; target = "/dev/null"; next }
        target != "" { print >target }
        END { exit bad || target != "" }
    ' "$1" >&2 || fail "the blocks of $1 cannot be read"
}

# cc with all warnings, and with the sanitizers of the build; pkg-config that finds the library of the
# build; the Python that has the packages of the system.
strict_tools ()
{
    build=$(dirname "$TASKMQ_BIN")
    sanitizers=$(sed -n 's/^TASKMQ_SANITIZE:STRING=\(.*\)$/\1/p' "$build/CMakeCache.txt" | tr + ,)
    mkdir tools
    cat >tools/cc <<END
#!/bin/sh
exec $(command -v cc) -std=c11 -Wall -Wextra -Wpedantic -Werror -g \
    ${sanitizers:+-fsanitize=$sanitizers} "\$@"
END
    cat >tools/taskmq.pc <<END
Name: taskmq
Description: The library of the build
Version: 0
Libs: -L$build/lib -ltaskmq -Wl,-rpath,$build/lib
Cflags: -I$TASKMQ_SOURCE/libclient/include -I$TASKMQ_SOURCE/proto
END
    chmod +x tools/cc
    ln -s /usr/bin/python3 tools/python3
    ln -s "$TASKMQ_SOURCE/proto" proto
    PATH="$PWD/tools:$PATH"
    export PKG_CONFIG_PATH="$PWD/tools" LD_LIBRARY_PATH="$build/lib" PYTHONDONTWRITEBYTECODE=1
}
