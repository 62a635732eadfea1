#!/bin/sh
# Two brokers on one database: the second one waits, takes over from the first whatever becomes of
# that, and clients that know both addresses go on.
. "$(dirname "$0")/lib.sh"

# shellcheck disable=SC2119 # its arguments are settings
start_postgres

# broker NAME [OPTION...]: one with a data directory and a socket of its own.
broker ()
{
    name=$1
    shift
    [ -d "$room/$name" ] || mkdir -m 700 "$room/$name"
    spawn "$name" taskmqd --data "$room/$name/data" --listen "ipc://$room/$name/socket" \
        --store postgresql --database "$database" "$@"
}
logged () { grep -q "$2" "$1.err"; }
export TASKMQ_ENDPOINT="ipc://$room/a/socket ipc://$room/b/socket"
lease=2s
export TASKMQD_CLUSTER_LEASE=$lease

# --- what is refused

run 2 taskmqd --data "$room/a/data" --standby
err_has 'cluster/standby.*needs broker/store postgresql'
export TASKMQD_CLUSTER_LEASE=1s
run 2 taskmqd --data "$room/a/data" --store postgresql --database "$database"
err_has 'cluster/lease'
export TASKMQD_CLUSTER_LEASE=$lease

# --- one owns, the other waits; for its service manager that one has started, too

spawn manager python3 -c '
import socket
manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
manager.bind("notify")
while True:
    print(manager.recv(4096).decode().replace("\n", " "), flush=True)'
eventually test -S notify
managed () { NOTIFY_SOCKET="$room/notify" "$@"; }
heard () # all that it was told, requests for time aside
{
    grep -v '^EXTEND_TIMEOUT_USEC' manager.out >manager.heard
    printf '%s\n' "$@" | cmp -s - manager.heard
}
asked () { [ "$(grep -c '^EXTEND_TIMEOUT_USEC=[1-9][0-9]* STATUS=starts: ' manager.out)" -ge "$1" ]; }

broker a --standby
eventually logged a id=READY

# a start that waits for the database has not started, and asks for time again and again
sql 'ALTER ROLE taskmq CONNECTION LIMIT 0'
managed broker early --standby
eventually asked 2
grep -q READY manager.out && fail "the service manager was told: $(cat manager.out)"
signal early TERM
ended early 0
err_has id=STOPPED-AWAY
sql 'ALTER ROLE taskmq CONNECTION LIMIT -1'

managed broker b --standby
eventually logged b id=DATABASE-STANDBY
standby='READY=1 STATUS=standby: another broker owns the database'
eventually heard "$standby"
logged b "takes over when that stops, or gives no sign for 2000 ms" || fail 'it does not say what it waits for'
test ! -e b/socket || fail 'a standby listens'
mkdir in_a in_b
ln -s ../a/data in_a/.taskmq
ln -s ../b/data in_b/.taskmq
# waits_in DIRECTORY: who asks there is told so.
waits_in ()
{
    (
        cd "$1" || exit 1
        run 3 env -u TASKMQ_ENDPOINT taskctl ping
        err_has 'a standby waits here$'
        err_has "^hint: name the owner's endpoint, too \\(TASKMQ_ENDPOINT\\)$"
    ) || exit 1
}
waits_in in_b
spawn worker taskctl work mail -- tr a-z A-Z
# shellcheck disable=SC2086 # options are words
id=$(taskctl submit mail --data one) || fail submit
run 0 taskctl wait "$id"
run 0 taskctl result "$id"
out_has '^ONE$'
run 0 taskctl -o json stats
grep -q '"lease_left_ms":' out || fail 'stats tell nothing of the lease'
grep -q '"taken_over":0' out || fail 'the first owner took over from nobody'

# doctor looks at each endpoint, and the owner tells whether somebody stands by
stands_by () { taskctl -o json stats | grep -q "\"standbys\":$1[,}]"; }
eventually stands_by 1
run 0 taskctl doctor
out_has "^ok +endpoint +ipc://$room/a/socket: owns the tasks \\(taskmqd .*, epoch 1\\)$"
out_has "^ok +endpoint +ipc://$room/b/socket: there is no such socket, as at a standby"
out_has 'the owner sees 1 of$|sees 1 of them'
run 0 taskctl -e "ipc://$room/a/socket" doctor
out_has '^ok +store +PostgreSQL; 1 standby$'
run 0 taskctl -e "ipc://$room/a/socket" -e "ipc://$room/b/socket" -e "ipc://$room/none/socket" doctor
out_has "^warning +endpoint +ipc://$room/none/socket: .*; of 2 that do not answer the owner sees 1"

# sessions of a standby that somebody ends are made anew, which is no news; a database that is away is
adoption () { sql "SELECT $1 FROM pg_stat_activity WHERE application_name LIKE 'taskmq adoption taskmq %'"; }
is_new () { now=$(adoption pid) && [ -n "$now" ] && [ "$now" != "$before" ]; }
said () { [ "$(grep -c "id=$1" b.err)" = "$2" ]; }
for time in 1 2 3; do
    before=$(adoption pid)
    adoption 'pg_terminate_backend (pid)' >thrown
    eventually is_new
    eventually stands_by 1
done
said DATABASE-STANDBY 1 || fail "it says the same again when its session is ended ($time)"
said DATABASE-AWAY 0 || fail 'the database was there'
sql 'ALTER ROLE taskmq CONNECTION LIMIT 0'
adoption 'pg_terminate_backend (pid)' >thrown
eventually logged b 'id=DATABASE-AWAY.*too many connections'
sql 'ALTER ROLE taskmq CONNECTION LIMIT -1'
eventually said DATABASE-STANDBY 2
said DATABASE-AWAY 1 || fail 'it says more than once that the database is away'

# a third one that was not told to wait has not started
run 4 managed taskmqd --data "$room/third" --store postgresql --database "$database"
err_has 'another broker owns the data'
# the standby said it again when the database was back, and did not start twice
again='STATUS=standby: the database is out of reach
STATUS=standby: another broker owns the database'
heard "$standby" "$again" || fail "the service manager was told: $(cat manager.out)"

# a copy of a data directory beside the original is named as such, and waits or is refused
cp -a a copied
rm -f copied/data/taskmq.lock copied/socket
run 4 taskmqd --data "$room/copied/data" --store postgresql --database "$database"
err_has 'another broker owns the data: .*--standby\). It has the same instance as this directory: .*one directory is a copy of the other'
broker copied --standby
eventually logged copied id=DATABASE-STANDBY
logged copied 'one directory is a copy of the other' || fail 'it does not say that it is a copy'
signal copied TERM
ended copied 0
logged b 'is a copy' && fail 'a broker of its own is taken for a copy'

# a standby ends when it is told to, and says early words to a reload
signal b HUP
eventually logged b id=RELOAD-EARLY
signal b TERM
ended b 0
err_has id=STOPPED
eventually stands_by 0
run 0 taskctl doctor
out_has "^warning +endpoint +ipc://$room/b/socket: .*, and the owner sees no standby"
out_has '-> look whether one runs there; one that has just started, or whose database was away, is seen within 10 s$'
out_has '^ok +store +PostgreSQL; no standby is seen$'
managed broker b --standby
eventually logged b id=DATABASE-STANDBY

# --- kill -9 of the owner: the other one takes over, and the worker goes on with it

two=$(taskctl submit mail --data two --delay 1s) || fail submit
signal a KILL
ended a 137
eventually logged b id=DATABASE-ADOPTED
logged b 'took over from .*, which gave no sign for' || fail 'it does not say from whom'
eventually heard "$standby" "$again" "$standby" 'READY=1 STATUS=takes requests'
run 0 taskctl wait "$two"
run 0 taskctl result "$two"
out_has '^TWO$'
run 0 taskctl logs "$two"
out_has '^TWO$'
run 0 taskctl logs "$id"
err_has '^the broker has no log of the task; if another broker owned the tasks when it ran'
(cd in_b && run 0 env -u TASKMQ_ENDPOINT taskctl ping) || exit 1
grep -q standby b/data/taskmq.lock && fail 'the directory of an owner says that a standby waits there'
run 0 taskctl -o json stats
grep -q '"taken_over":1' out || fail 'stats do not tell that it took over'
run 0 taskctl get "$id"
eventually grep -q "$two" b/data/events.jsonl
eventually grep -q "$id" b/data/tasks.jsonl
[ "$(taskctl list | grep -c completed)" = 2 ] || fail 'a task is missing'

# --- a clean stop hands over at once, and back to a directory that had it before

test -S a/socket || fail 'the kill left no socket'
broker a --standby
eventually logged a id=DATABASE-STANDBY
test ! -e a/socket || fail 'the socket of one that was killed is left beside a standby'
test ! -e a/data/taskmqd.ipc || fail 'the own socket of one that was killed is left beside a standby'
waits_in in_a
signal b TERM
ended b 0
eventually logged a id=READY
(cd in_a && run 0 env -u TASKMQ_ENDPOINT taskctl ping) || exit 1
logged a id=DATABASE-ADOPTED && fail 'it was handed over, and not taken'
three=$(taskctl submit mail --data three) || fail submit
run 0 taskctl wait "$three"
eventually grep -q "$three" a/data/events.jsonl
eventually grep -q "$two" a/data/events.jsonl
logged a AUDIT-MISSING && fail 'its own record was there'

# --- two files that should be alike: who takes over says when they are not

broker b --standby
eventually logged b id=DATABASE-STANDBY
signal worker TERM # it would be somebody else below, as soon as it connects again
ended worker 0
printf 'me uid:%s operator\nfarm uid:12345 worker(*)\n' "$(id -u)" >access.new
chmod 600 access.new
cp -p access.new a/data/access
eventually logged a 'id=ACCESS '
signal a TERM
ended a 0
eventually logged b id=READY
logged b id=ACCESS-DIFFERS || fail 'nobody says that the access files differ'
cp -p access.new b/data/access
eventually logged b 'id=ACCESS '
broker a --standby
eventually logged a id=DATABASE-STANDBY
signal b TERM
ended b 0
eventually logged a id=READY
logged a id=ACCESS-DIFFERS && fail 'the access files are the same'
key=$(taskctl key new) || fail key
run 0 taskctl key trust extra "$key" --role worker
grep -q standby err && fail 'nobody stands by'

# --- ... also when that changed in the last moment of an owner that was killed

broker b --standby
eventually logged b id=DATABASE-STANDBY
eventually stands_by 1
run 0 taskctl key revoke extra
err_has '^1 standby needs the access file, too: copy it there'
before=$(grep -c 'id=ACCESS ' a.err)
changed () { [ "$(grep -c 'id=ACCESS ' a.err)" -gt "$before" ]; }
printf 'me uid:%s operator\n' "$(id -u)" >access.last
chmod 600 access.last
cp -p access.last a/data/access
eventually changed
last=$(taskctl submit mail --data last) || fail submit # durable, as all that came before it
signal a KILL
ended a 137
eventually logged b id=READY
logged b id=ACCESS-DIFFERS || fail 'nobody says that the access file was changed'
cp -p access.new a/data/access
broker a --standby
eventually logged a id=DATABASE-STANDBY
signal b TERM
ended b 0
eventually logged a id=READY
logged a id=ACCESS-DIFFERS && fail 'the access files are the same again'
run 0 taskctl get "$last"

# --- ... and the keys by which clients know them

keyed () { broker "$1" --standby --listen 'tcp://127.0.0.1:0?curve'; }
# hand_over FROM TO: the next owner has a key, too.
hand_over ()
{
    keyed "$2"
    eventually logged "$2" id=DATABASE-STANDBY
    signal "$1" TERM
    ended "$1" 0
    eventually logged "$2" id=READY
}
hand_over a b
hand_over b a
logged a id=SERVER-KEY-DIFFERS || fail 'nobody says that the server keys differ'
logged a id=ACCESS-DIFFERS && fail 'the access files are the same'
cp -p a/data/server.key b/data/server.key
hand_over a b
logged b id=SERVER-KEY-DIFFERS && fail 'the server keys are the same'
hand_over b a
logged a id=SERVER-KEY-DIFFERS && fail 'the server keys are the same'

# --- an owner that stands still: taken over from, and it ends when it wakes up

spawn worker taskctl work mail -- tr a-z A-Z
broker b --standby
eventually logged b id=DATABASE-STANDBY
signal a STOP
eventually logged b id=READY
four=$(taskctl submit mail --data four) || fail submit
run 0 taskctl wait "$four"
signal a CONT
ended a 13
err_has id=STORE-FENCED
run 0 taskctl get "$four"

# --- the same directory is known again, without waiting for a lease

signal b KILL
ended b 137
broker b --listen tcp://127.0.0.1:0
eventually logged b id=READY
logged b id=DATABASE-STANDBY && fail 'it waited for itself'
run 0 taskctl get "$four"
run 0 taskctl -e "ipc://$room/b/socket" audit verify "$room/b/data/events.jsonl"
run 0 taskctl audit verify "$room/a/data/events.jsonl"
signal worker TERM

# --- who is no operator does not see standbys, and is not warned of a pair that may be whole

printf 'guest local client(*)\n' >access.guest
chmod 600 access.guest
cp -p access.guest b/data/access
door=$(grep '^tcp:' b/data/endpoint)
is_guest () { taskctl -e "$door" whoami | grep -qE '^principal +guest$'; }
eventually is_guest
run 0 taskctl -e "$door" -e "ipc://$room/a/socket" doctor
out_has "^ok +endpoint +ipc://$room/a/socket: .*, as at a standby \\(an operator sees whether there is one\\)$"
out_has '^ok +broker +its numbers are for operators$'
out_lacks '^(warning|wrong)'
signal b TERM
ended b 0
