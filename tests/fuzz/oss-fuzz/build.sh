#!/bin/bash -eu
# Builds every target of tests/fuzz for OSS-Fuzz: into $OUT, each with its seeds and its dictionary.
#
# OSS-Fuzz sets $SRC (the tree stands in $SRC/taskmq), $WORK, $OUT, $CC, $CFLAGS (with the flags of
# $SANITIZER in them) and $LIB_FUZZING_ENGINE. It runs the programs on a machine without our
# libraries, so these lie beside them.

tree=$SRC/taskmq
build=$WORK/taskmq
case "${SANITIZER:-address}" in
memory)
    echo 'build.sh: the libraries are not built for this sanitizer' >&2
    exit 1
    ;;
esac

engine=$LIB_FUZZING_ENGINE
case "${CXXFLAGS:-}" in # an engine is a C++ library
*libc++*) engine="$engine -lc++" ;;
esac

# The old kind of run path holds for what the libraries need, too.
# shellcheck disable=SC2016 # $ORIGIN is for the loader
cmake -S "$tree" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DBUILD_TESTING=OFF \
    -DTASKMQ_SANITIZE=fuzz -DTASKMQ_FUZZING_ENGINE="$engine" \
    -DCMAKE_BUILD_RPATH='$ORIGIN/lib' -DCMAKE_EXE_LINKER_FLAGS=-Wl,--disable-new-dtags
targets=$(sed -n 's/^set(fuzz_targets \(.*\))$/\1/p' "$tree/tests/fuzz/CMakeLists.txt")
# shellcheck disable=SC2046,SC2086 # names without spaces
cmake --build "$build" --target $(printf 'fuzz_%s ' $targets)

mkdir -p "$OUT/lib"
for target in $targets; do
    program=$build/tests/fuzz_$target
    cp "$program" "$OUT/"
    (cd "$tree/tests/fuzz/corpus/$target" &&
        python3 -m zipfile -c "$OUT/fuzz_${target}_seed_corpus.zip" ./*)
    cp "$tree/tests/fuzz/$target.dict" "$OUT/fuzz_$target.dict"
    ldd "$program" | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p' |
        grep -Ev '/(libc|libm|ld-linux[^/]*)\.so\.[0-9]+$' | xargs -r cp -Lu -t "$OUT/lib"
done
