#!/bin/sh
# A program that writes one line of 1 MiB, with what moves a cursor in it, on stderr: the worker passes it,
# keeps no more of it than a message may have, and nobody who looks at the task is moved.
. "$(dirname "$0")/lib.sh"
start_broker

cat >program <<'END_OF_PROGRAM'
#!/bin/sh
awk 'BEGIN {for (i = 0; i < 65536; i++) printf "%s", "\033[2J\302\233\342\200\2560123456"}' >&2
exit 1
END_OF_PROGRAM
chmod +x program
submit q --max-attempts 1 --data x
run 0 taskctl work q --drain -- ./program
[ "$(wc -c <err)" -ge 1000000 ] || fail 'the line is not passed'
escape=$(printf '\033')
for view in table json; do
    run 0 taskctl -o "$view" get "$id"
    out_lacks "$escape"
    out_lacks "$(printf '\302\233')"
    out_lacks "$(printf '\342\200\256')"
    [ "$(wc -c <out)" -lt 16384 ] || fail "$view shows all of the line"
done
json status '"failed"'
