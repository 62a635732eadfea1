#!/bin/sh
# This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
# If a copy of the MPL was not distributed with this file, You can obtain one at
# https://mozilla.org/MPL/2.0/.

# Installs the library into a scratch directory and builds a program outside of the tree against it:
# by pkg-config and by CMake's package. usage: test_install.sh BUILD PREFIX LIBDIR
set -eu

build=$1
prefix=$2
libdir=$3
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
root=$scratch/root

fail ()
{
    echo "$1" >&2
    exit 1
}

for component in libtaskmq0 libtaskmq-dev client broker gateway; do
    DESTDIR=$root cmake --install "$build" --component $component >"$scratch/log" || {
        cat "$scratch/log"
        exit 1
    }
done
for file in "include/taskmq.h" "include/taskmq_admin.h" "include/taskmq_types.h" "$libdir/libtaskmq.so.0" \
    "$libdir/libtaskmq.so" "$libdir/libtaskmq.a" "$libdir/pkgconfig/taskmq.pc" "bin/taskctl" \
    "share/bash-completion/completions/taskctl" "share/zsh/site-functions/_taskctl" \
    "share/fish/vendor_completions.d/taskctl.fish" "bin/taskmqd" "bin/taskmq-gateway" "lib/sysusers.d/taskmqd.conf" \
    "lib/systemd/system/taskmq-gateway.service" "lib/sysusers.d/taskmq-gateway.conf"; do
    [ -e "$root$prefix/$file" ] || fail "not installed: $file"
done

# The unit starts the program where it was put, and only knows what its broker knows.
unit=$root$prefix/lib/systemd/system/taskmqd.service
grep -q "^ExecStart=$prefix/bin/taskmqd " "$unit" || fail "the unit starts another program: $unit"
cmake --install "$build" --component broker --prefix "$scratch/elsewhere" >"$scratch/log" ||
    { cat "$scratch/log"; exit 1; }
unit="$scratch/elsewhere/lib/systemd/system/taskmqd.service"
grep -q "^ExecStart=$scratch/elsewhere/bin/taskmqd " "$unit" || fail "it lies elsewhere: $unit"
sed -n 's/^RestartPreventExitStatus=//p' "$unit" | tr ' ' '\n' | while read -r code; do
    grep -qE "^    X \($code, " "$here/../../broker/exits.h" || fail "no exit code: $code"
done
other="$scratch/elsewhere/lib/systemd/system/taskmq-gateway.service"
cmake --install "$build" --component gateway --prefix "$scratch/elsewhere" >"$scratch/log" ||
    { cat "$scratch/log"; exit 1; }
grep -q "^ExecStart=$scratch/elsewhere/bin/taskmq-gateway " "$other" || fail "it lies elsewhere: $other"
if command -v systemd-analyze >/dev/null; then
    systemd-analyze --man=no verify "$unit" "$other" >"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
    [ ! -s "$scratch/log" ] || { cat "$scratch/log"; fail "systemd is not content with a unit"; }
    # How much it may do: 10 is everything. An old systemd can only say it of units that run.
    if systemd-analyze security --help 2>/dev/null | grep -q -- --offline; then
        for each in "$unit" "$other"; do
            systemd-analyze --no-pager security --offline=true --threshold=20 "$each" \
                >"$scratch/log" 2>&1 || { cat "$scratch/log"; fail "it may do too much: $each"; }
        done
    fi
fi

# What the header declares, with its parts, is what leaves the library, and nothing else does; each name under the
# version of its node in the map.
so=$root$prefix/$libdir/libtaskmq.so.0
map=$here/../../libclient/taskmq.map
nm -D --defined-only "$so" | awk '$2 != "A" { print $3 }' | sort >"$scratch/exported"
awk '/^TASKMQ_/ { node = $1 } /^ *tmq_/ { sub (/;/, "", $1); print $1 "@@" node }' "$map" |
    sort >"$scratch/mapped"
cc -E -P "$root$prefix/include/taskmq.h" | grep -o 'tmq_[a-z_]* (' | sed 's/ (//' | grep -v '_t$' |
    sort -u >"$scratch/named"
cmp "$scratch/exported" "$scratch/mapped" || {
    comm -3 "$scratch/exported" "$scratch/mapped"
    fail "exported (left) and mapped (right) differ: see libclient/taskmq.map"
}
sed 's/@@.*//' "$scratch/exported" | sort | cmp - "$scratch/named" || {
    sed 's/@@.*//' "$scratch/exported" | sort | comm -3 - "$scratch/named"
    fail "exported (left) and declared (right) differ: see libclient/taskmq.map"
}
nm -g --defined-only "$root$prefix/$libdir/libtaskmq.a" | awk 'NF == 3 { print $3 }' |
    sort >"$scratch/archived"
cmp "$scratch/archived" "$scratch/named" || {
    comm -3 "$scratch/archived" "$scratch/named"
    fail "libtaskmq.a (left) has other names than the header declares (right)"
}
readelf -d "$so" | grep -q 'SONAME.*\[libtaskmq\.so\.0\]' || fail "not libtaskmq.so.0"

# taskmq.pc knows where it lies, also elsewhere than configured.
export PKG_CONFIG_PATH="$root$prefix/$libdir/pkgconfig"
# The flags are words on purpose.
# shellcheck disable=SC2046,SC2086
cc -std=c11 -Wall -Werror -o "$scratch/by-pkg-config" "$here/consumer.c" \
    $(pkg-config --cflags --libs taskmq) $TASKMQ_TEST_CFLAGS
[ "$(pkg-config --cflags taskmq | wc -w)" -eq 1 ] ||
    fail "more than our own directory: $(pkg-config --cflags taskmq)"
case " $(pkg-config --libs taskmq) " in
*zmq*) fail "the shared library needs no more: $(pkg-config --libs taskmq)" ;;
esac
# shellcheck disable=SC2046,SC2086
cc -std=c11 -o "$scratch/static" "$here/consumer.c" $(pkg-config --cflags taskmq) \
    $(pkg-config --static --libs taskmq | sed 's/-ltaskmq/-l:libtaskmq.a/') $TASKMQ_TEST_CFLAGS
! readelf -d "$scratch/static" | grep -q 'NEEDED.*libtaskmq' || fail "it is not linked statically"
[ "$("$scratch/static")" = UNREACHABLE ] || fail "the static program went wrong"
# taskctl finds its library without help: ld.so knows nothing of this prefix.
env -u LD_LIBRARY_PATH "$root$prefix/bin/taskctl" --version >"$scratch/log" ||
    fail "taskctl does not start from another prefix"
export LD_LIBRARY_PATH="$root$prefix/$libdir"
[ "$("$scratch/by-pkg-config")" = UNREACHABLE ] || fail "the program by pkg-config went wrong"

mkdir "$scratch/consumer"
cp "$here/consumer.c" "$scratch/consumer/"
cp "$here/consumer.cmake.txt" "$scratch/consumer/CMakeLists.txt"
cmake -G Ninja -S "$scratch/consumer" -B "$scratch/consumer/build" \
    -DCMAKE_C_FLAGS="$TASKMQ_TEST_CFLAGS" -DCMAKE_PREFIX_PATH="$root$prefix" >"$scratch/log" ||
    { cat "$scratch/log"; exit 1; }
cmake --build "$scratch/consumer/build" >"$scratch/log" || { cat "$scratch/log"; exit 1; }
[ "$("$scratch/consumer/build/consumer")" = UNREACHABLE ] ||
    fail "the program by CMake's package went wrong"
echo "installed, found and used: by pkg-config and by CMake's package"
