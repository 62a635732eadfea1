#!/bin/sh
# Two builds of the same tree in two places, with another language, time zone and order, make the same
# programs and library. Too long for every change: ./dev package runs it.
set -eu

source=${TASKMQ_SOURCE:-$(cd "$(dirname "$0")/../.." && pwd)}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# make PLACE: a release of the tree's copy there.
make ()
{
    mkdir -p "$scratch/$1"
    (cd "$source" && tar -c --exclude=./build --exclude=./.git .) | tar -x -C "$scratch/$1"
    if ! { cmake -S "$scratch/$1" -B "$scratch/$1/$2" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
        -DBUILD_TESTING=OFF -DCMAKE_C_COMPILER_LAUNCHER= &&
        cmake --build "$scratch/$1/$2"; } >"$scratch/log" 2>&1; then
        cat "$scratch/log"
        exit 1
    fi
}

make one build
(
    export TZ=Pacific/Auckland LC_ALL=C
    umask 077
    make a/much/longer/place.of.another/user out
)
different=0
for made in bin/taskmqd bin/taskctl lib/libtaskmq.so; do
    if cmp "$scratch/one/build/$made" "$scratch/a/much/longer/place.of.another/user/out/$made"; then
        printf 'same    %s %s\n' "$(sha256sum "$scratch/one/build/$made" | cut -c 1-16)" "$made"
    else
        different=1
    fi
done
[ "$different" -eq 0 ]
