#!/bin/sh
# What OSS-Fuzz would build is complete: build.sh leaves each target with its seeds, its dictionary
# and its libraries in $OUT, and hands the engine on. The compiler's work is done by a stand-in.
set -eu
tree=${TASKMQ_SOURCE:-$(cd "$(dirname "$0")/../.." && pwd)}
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
fail ()
{
    echo "test_oss_fuzz: $*" >&2
    exit 1
}
command -v bash >/dev/null || { echo 'there is no bash: skipped'; exit 77; }

mkdir "$room/bin" "$room/src" "$room/work" "$room/out"
ln -s "$tree" "$room/src/taskmq"
cat >"$room/bin/cmake" <<'END'
#!/bin/sh
echo "$@" >>"$ROOM/calls"
[ "$1" = --build ] || exit 0
mkdir -p "$2/tests"
for word in "$@"; do
    case $word in fuzz_*) cp "$(command -v sh)" "$2/tests/$word" ;; esac
done
END
chmod +x "$room/bin/cmake"
if ! env ROOM="$room" PATH="$room/bin:$PATH" SRC="$room/src" WORK="$room/work" OUT="$room/out" \
    CC=clang CXXFLAGS='-stdlib=libc++' LIB_FUZZING_ENGINE=/engine.a SANITIZER=address \
    bash -eu "$tree/tests/fuzz/oss-fuzz/build.sh" >"$room/log" 2>&1; then
    cat "$room/log" >&2
    fail 'build.sh failed'
fi
grep -q -- '-DTASKMQ_FUZZING_ENGINE=/engine.a -lc++' "$room/calls" || fail 'the engine is not handed on'

# Every file of a target is built, and nothing else is.
for file in "$tree"/tests/fuzz/*.c; do
    name=$(basename "$file" .c)
    [ "$name" != replay ] || continue
    for made in "fuzz_$name" "fuzz_$name.dict" "fuzz_${name}_seed_corpus.zip"; do
        [ -s "$room/out/$made" ] || fail "there is no $made"
    done
done
wanted=$(find "$tree/tests/fuzz" -maxdepth 1 -name '*.c' ! -name replay.c | wc -l)
built=$(find "$room/out" -maxdepth 1 -name 'fuzz_*.zip' | wc -l)
[ "$wanted" -eq "$built" ] || fail "$built targets are built of $wanted"

# The packages of its machine are those of ours.
for package in $(sed -n "/^packages_build=/,/'$/p" "$tree/dev" | tr -d "'" | grep -o 'lib[a-z0-9-]*-dev'); do
    case $package in libc6-dev) continue ;; esac
    grep -qw -- "$package" "$tree/tests/fuzz/oss-fuzz/Dockerfile" || fail "the Dockerfile lacks $package"
done

if env SANITIZER=memory SRC="$room/src" WORK="$room/work" OUT="$room/out" LIB_FUZZING_ENGINE=x \
    bash -eu "$tree/tests/fuzz/oss-fuzz/build.sh" 2>/dev/null; then
    fail 'it builds for a sanitizer that the libraries do not know'
fi
