#!/bin/sh
# The programs and the library are compiled and linked with all that makes a mistake in memory hard to
# use. Read from the files themselves; the check of array sizes, which only a release has, from the
# commands that make one.
set -eu

fail ()
{
    printf 'FAILED: %s\n' "$*"
    exit 1
}

skip ()
{
    printf 'skipped: %s\n' "$*"
    exit 77
}

command -v readelf >/dev/null || skip 'there is no readelf'
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
library=$(dirname "$TASKMQ_BIN")/lib/libtaskmq.so

# hardened FILE: position independent, no jump table left writable, no stack that runs, guarded stack.
hardened ()
{
    readelf -W -h -l -d "$1" >"$scratch/elf"
    readelf -W --dyn-syms "$1" >"$scratch/symbols"
    grep -qE '^ +Type: +DYN' "$scratch/elf" || fail "$1 is not position independent"
    grep -q GNU_RELRO "$scratch/elf" || fail "$1 has no read-only relocations"
    grep -qE 'FLAGS.*(BIND_NOW|NOW)' "$scratch/elf" || fail "$1 is not bound at its start"
    grep -E 'GNU_STACK' "$scratch/elf" | grep -q 'RW ' || fail "the stack of $1 can be run"
    if grep -E '^ +LOAD' "$scratch/elf" | grep -q 'RWE'; then
        fail "$1 has memory that can be written and run"
    fi
    grep -q __stack_chk_fail "$scratch/symbols" || fail "$1 has no guarded stack"
    if readelf -W -d "$1" | grep -E 'R(UN)?PATH' | grep -vF "\$ORIGIN" | grep -q '\[.'; then
        fail "$1 names a directory of its build"
    fi
    if [ "$(uname -m)" = x86_64 ] && command -v objdump >/dev/null; then
        objdump -d --no-show-raw-insn -j .text "$1" | grep -m 1 -q endbr64 ||
            fail "the jumps of $1 are not guarded"
    fi
}

hardened "$TASKMQ_BIN/taskmqd"
hardened "$TASKMQ_BIN/taskctl"
hardened "$TASKMQ_BIN/taskmq-gateway"
hardened "$library"

# What hardening-check says of the same files, where it is installed.
if command -v hardening-check >/dev/null; then
    hardening-check --nofortify --nocfprotection "$TASKMQ_BIN/taskmqd" \
        "$TASKMQ_BIN/taskctl" >"$scratch/check" 2>&1 || { cat "$scratch/check"; fail 'hardening-check refuses a program'; }
fi

# Every file of a release.
cmake -S "$TASKMQ_SOURCE" -B "$scratch/release" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
    -DBUILD_TESTING=OFF -DCMAKE_EXPORT_COMPILE_COMMANDS=ON >"$scratch/configure" 2>&1 ||
    { cat "$scratch/configure"; fail 'a release cannot be configured'; }
grep '"command"' "$scratch/release/compile_commands.json" >"$scratch/commands"
for flag in -O2 -D_FORTIFY_SOURCE=3 -fstack-protector-strong -fstack-clash-protection \
    -Werror=format-security -fPI; do
    if grep -vFe "$flag" "$scratch/commands"; then
        fail "these files are compiled without $flag"
    fi
done
[ "$(wc -l <"$scratch/commands")" -gt 100 ] || fail 'most files are missing from a release'
printf 'hardened\n'
