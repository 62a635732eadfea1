#!/bin/sh
# top: a live screen, on a pseudo-terminal. Without one it says so.
. "$(dirname "$0")/lib.sh"
/usr/bin/python3 -c 'import pty' 2>/dev/null || exit 77

run 2 taskctl top
err_has '^taskctl: top needs a terminal$'
err_has '^hint: .*taskctl stats'
start_broker
mkfifo gate to from
id=$(taskctl submit render) || fail "submit"
broken=$(taskctl submit broken --max-attempts 1) || fail "submit"
spawn fails taskctl work broken --max-tasks 1 -- sh -c 'echo it is broken >&2; exit 1'
run 8 taskctl wait "$broken"
ended fails 0
spawn works taskctl work render --name render-1 -- sh -c 'cat gate'
run 0 taskctl submit later
run 0 taskctl submit later
begun () { [ "$(status_of "$id")" = working ]; }
eventually begun

spawn screen sh -c "exec /usr/bin/python3 '$scenario_dir/top_screen.py' taskctl top --interval 200ms <to >from"
exec 8>to 9<from
# ask COMMAND: of top_screen.py.
ask ()
{
    echo "$1" >&8
    read -r answer <&9 || answer=
    [ "$answer" = ok ] || fail "$1: $answer $(cat <&9)"
}
ask 'see ^ taskctl top .* connected  default  ipc:'
ask 'see ^ 2 ready  0 scheduled  0 blocked  1 working  0 waiting for input  1 worker$'
ask 'see ^QUEUE  *READY SCHEDULED  *WORKING  *INPUT  STATE$'
ask 'see ^later  *2  *0  *0  *0  open$'
ask 'see ^render  *0  *0  *1  *0  open$'
run 0 taskctl queue pause later
ask 'see ^later  *2  *0  *0  *0  paused$'
run 0 taskctl queue resume later
ask 'see ^render-1  *working  *1  *0  *0  render$'
ask "see ^$(echo "$id" | cut -c 25-)  *render "
ask "see ^$(echo "$broken" | cut -c 25-)  *broken  .*it is broken"
ask 'see per second: 0.0 submitted'

# Keys, and another size.
ask 'see q leave   s sort: ready'
ask 'key s'
ask 'see s sort: working'
ask 'key ?'
ask 'see Ctrl-C   leave'
ask 'lacks ^QUEUE'
ask 'key ?'
ask 'see ^QUEUE'
ask 'size 40 120'
ask 'see ^later  *2  *0  *0  *0  open$'
ask 'size 6 30'
ask 'see ^too small: 40 by 8 at least$'
ask 'size 24 80'
ask 'see ^render-1  *working'

# The broker goes away and comes back; what ends is seen.
stop_broker
ask 'see no broker since [0-9][0-9]:'
ask 'see ^later  *2'
start_broker 8>&- 9<&-
ask 'see  connected '
echo open >gate
ask 'see ^render-1  *idle  *0  *1  *0  render$'
ask 'key q'
ask 'ended 0'
exec 8>&-
ended screen 0

# A terminal that cannot draw is named.
# (Its library does not give back what it took for it.)
spawn dumb sh -c "ASAN_OPTIONS=detect_leaks=0 TERM=nonsense exec /usr/bin/python3 -c 'import pty, sys; sys.exit (pty.spawn ([\"taskctl\", \"top\"]) >> 8)' </dev/null"
ended dumb 2
grep -q "cannot draw on a terminal of the type 'nonsense'" dumb.out || fail "$(cat dumb.out)"
