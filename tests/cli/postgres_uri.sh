#!/bin/sh
# What a broker says of the URI of its database and of the file with its password, before it waits for
# anything.
# shellcheck disable=SC2154 # by lib.sh
. "$(dirname "$0")/lib.sh"

# shellcheck disable=SC2119 # without settings
start_postgres

check () # EXIT [OPTION...]
{
    wanted_exit=$1
    shift
    run "$wanted_exit" taskmqd --check-config --data "$room/.taskmq" --store postgresql "$@"
}
start () # EXIT [OPTION...]
{
    wanted_exit=$1
    shift
    run "$wanted_exit" taskmqd --data "$room/.taskmq" --store postgresql "$@"
}

# --- what is wrong by itself: said in one line, before anything is touched or anybody asked

mistaken () # REASON URI
{
    check 2 --database "$2"
    out_has "^wrong +database +$1"
    out_lacks '^$'
    start 2 --database "$2"
    err_has "id=USAGE msg=.*$1.* exit=2\$"
    test ! -e .taskmq || fail 'it made a data directory'
}
mistaken 'database/uri: invalid URI query parameter: .*nonsense' "$database&nonsense=1"
mistaken 'database/uri: .*missing key/value separator' 'postgresql:///taskmq?nonsense'

# --- several hosts, each with its port, and none that can never work

check 0 --database "$database"
out_has "^ok +database +PostgreSQL [0-9.]+, database taskmq at $postgres_home:5432, schema taskmq \\(not there: a start makes it\\)\$"
check 0 --database "postgresql:///taskmq?host=$room,$postgres_home&port=5433,&user=taskmq"
out_has "^ok .* at $room:5433, $postgres_home:5432 \\($postgres_home:5432 answered\\), schema taskmq \\(not there: a start makes it\\)\$"
check 0 --database "postgresql:///taskmq?host=$postgres_home,localhost,$room&user=taskmq"
out_has "^ok .* at $postgres_home:5432, localhost:5432( and 1 more|, $room:5432) \\($postgres_home:5432 answered"
check 0 --database "postgresql://taskmq@[::1]:1,127.0.0.1:2/taskmq"
out_has '^warning +database +database taskmq at \[::1\]:1, 127[.]0[.]0[.]1:2: '
out_has '^the configuration is good, but the database did not answer: a start waits for it$'
out_lacks '^the configuration is good$'
rm -rf .taskmq
PGSERVICE=nowhere check 2 --database "$database"
out_has '^wrong +database +database/uri: definition of service "nowhere" not found$'
for never in relative/path "localhost:5432"; do
    for hosts in "$postgres_home,$never" "$never,$postgres_home" "$never"; do
        mistaken "database/uri: host '$never' is no name: a socket's directory begins with /" \
            "postgresql:///taskmq?host=$hosts&user=taskmq"
    done
done
mistaken "database/uri: invalid port number '70000'" \
    "postgresql:///taskmq?host=$postgres_home,$postgres_home&port=5432,70000&user=taskmq"
# beside an address it is the name of a certificate
check 0 --database "postgresql://taskmq@/taskmq?host=a:b,c&hostaddr=127.0.0.1,127.0.0.1&port=1,2"
out_has '^warning +database +.* at a:b:1, c:2: '
rm -rf .taskmq

# --- the file of passwords: which one counts, and why there is no password in it

sql "ALTER ROLE taskmq PASSWORD 'hidden'"
printf 'local all taskmq scram-sha-256\nlocal all postgres trust\n' >"$postgres_home/data/pg_hba.conf"
sql 'SELECT pg_reload_conf ()'
# shellcheck disable=SC2317 # eventually calls it
asks () { ! "$postgres_programs/psql" -X -q -w -h "$postgres_home" -U taskmq -d taskmq -c ''; }
eventually asks
export HOME="$room/home"
mkdir home
file () # NAME MODE LINE
{
    printf '%s\n' "$3" >"$1"
    chmod "$2" "$1"
}
file good 600 '*:*:*:*:hidden'
file open 640 '*:*:*:*:hidden'
file wrong 600 '*:*:*:*:unhidden'
file other 600 'elsewhere:*:*:*:hidden'
# each by --check-config and by a start, and each named in the URI and in the configuration
passes_over () # FILE REASON
{
    check 3 --database "$database&passfile=$room/$1"
    out_has "^wrong +database +$2\$"
    start 3 --database "$database&passfile=$room/$1"
    err_has "id=DATA-ACCESS msg=.*$2"
    err_lacks '^WARNING'
    export TASKMQD_DATABASE_PASSFILE="$room/$1"
    check 3 --database "$database"
    out_has "^wrong +database +$2\$"
    start 3 --database "$database"
    err_has "id=DATA-ACCESS msg=.*$2"
    unset TASKMQD_DATABASE_PASSFILE
}
passes_over missing "passfile $room/missing: No such file or directory"
passes_over open "passfile $room/open: others may read it .mode 0640.: it must be of mode 0600"
passes_over home "passfile $room/home: it is no file"
passes_over other ".*no password supplied: passfile $room/other has no line for $postgres_home:5432:taskmq:taskmq"
passes_over wrong '.*28P01: +password authentication failed .*; password retrieved from file .*/wrong.*'
rm -rf .taskmq
# what libpq takes by itself is named, too
check 3 --database "$database"
out_has "^wrong .*no password supplied: database/passfile is not set, and passfile $room/home/.pgpass: No such file or directory\$"
PGPASSFILE="$room/open" check 3 --database "$database"
out_has '^wrong .*database/passfile is not set, and passfile .*/open: others may read it'
PGPASSFILE="$room/good" check 0 --database "$database"
# two are one too many, whichever is good; a relative one is where the broker stands
export TASKMQD_DATABASE_PASSFILE="$room/good"
check 2 --database "$database&passfile=$room/other"
out_has '^wrong +database +database/uri names a passfile, and so does database/passfile: leave one of them out$'
unset TASKMQD_DATABASE_PASSFILE
spawn broker taskmqd --data "$room/.taskmq" --store postgresql --database "$database&passfile=good"
eventually grep -q id=READY broker.err
# the password is changed while it runs, as CLUSTER.md has it: what stands goes on, and new connections
# have the new one
throw_out () { sql "SELECT pg_terminate_backend (pid) FROM pg_stat_activity WHERE usename = 'taskmq'" >thrown; }
file second 600 '*:*:*:*:unspoken'
mv second good
sql "ALTER ROLE taskmq PASSWORD 'unspoken'"
run 0 taskctl submit mail
grep -q id=DATABASE-LOST broker.err && fail 'it lost what stands'
throw_out
eventually grep -q id=DATABASE-FOUND broker.err
run 0 taskctl submit mail
# one that is wrong then ends it, too
sql "ALTER ROLE taskmq PASSWORD 'hidden'"
throw_out
ended broker 3
err_has 'id=DATA-ACCESS msg=.*28P01: +password authentication failed .*; password retrieved from file .*good.* exit=3'
file good 600 '*:*:*:*:hidden'
spawn broker taskmqd --data "$room/.taskmq" --store postgresql --database "$database&passfile=good"
eventually grep -q id=READY broker.err
# … and so does a file that is exchanged for one that does not count
chmod 640 good
throw_out
ended broker 3
err_has 'id=DATA-ACCESS msg=.*no password supplied: passfile good: others may read it .mode 0640.: it must be of mode 0600'
# … or, in a home, for another file than the one that it began with
file home/passwords 600 '*:*:*:*:hidden'
spawn broker taskmqd --data "$room/.taskmq" --store postgresql --database "$database&passfile=$room/home/passwords"
eventually grep -q id=READY broker.err
if grep -q 'id=CONFINED .*landlock=[1-9]' broker.err; then
    file home/second 600 '*:*:*:*:hidden'
    mv home/second home/passwords
    throw_out
    ended broker 3
    err_has 'id=DATA-ACCESS msg=.*no password supplied: passfile .*/home/passwords: Permission denied'
fi
exit 0
