# shellcheck shell=sh
# taskmqd's configuration as a person meets it: what is wrong is said with its place and its exit code,
# what is shown is what holds, and nothing is made by asking.
. "$(dirname "$0")/lib.sh"

# It is right, or what is wrong with it.
run 0 taskmqd --check-config
out_has '^ok +directory +.*/\.taskmq \(a start will make it\)$'
out_has '^ok +space +'
out_has '^the configuration is good$'
[ ! -e .taskmq ] || fail 'it was made'

mkdir shared
chmod 0777 shared
run 3 taskmqd --check-config --data shared
out_has '^wrong +directory +others may write in .*: chmod go-w'
chmod 0755 shared
run 0 taskmqd --check-config --data shared
: >file
run 3 taskmqd --check-config --data file
out_has 'is not a directory'
run 3 taskmqd --check-config --data file/below/it
run 6 taskmqd --check-config --listen nonsense://x
out_has '^wrong +addresses +--listen: '
run 0 sh -c 'ulimit -n 200; exec taskmqd --check-config'
out_has '^warning +files +200 may be open here .*, limits/links = 10000 needs'

printf 'limits\n    free_space_min = 1024G\n' >conf
run 0 taskmqd --check-config -c conf
out_has '^warning +space +'

# Keys and the access file, which only its user may touch.
mkdir -m 700 kept
printf 'me uid:%s operator\nold uid:4242 client(default) until=2020-01-01\n' "$(id -u)" >kept/access
chmod 600 kept/access
run 0 taskmqd --check-config --data kept
out_has '^warning +access +2 lines, of which 1 have ended$'
chmod 666 kept/access
run 14 taskmqd --check-config --data kept
out_has '^wrong +access +.*kept/access'
chmod 600 kept/access
printf 'me uid:0 oprator\n' >kept/access
run 14 taskmqd --check-config --data kept
out_has '^wrong +access +.*kept/access:1: .*operator'
rm kept/access
: >kept/server.key
chmod 644 kept/server.key
run 14 taskmqd --check-config --data kept
out_has '^wrong +server key +.*server\.key .*chmod 600'
rm kept/server.key
run 0 taskmqd --check-config --data kept
out_has '^ok +access +no access file:'
run 6 taskmqd --check-config --data kept --listen tcp://192.0.2.1:5560
out_has '^wrong +addresses +tcp://192\.0\.2\.1:5560: Cannot assign requested address$'
TASKMQD_BROKER_ACCESS=aces run 0 taskmqd --check-config --data kept
out_has '^warning +access +no access file aces:'
run 0 taskmqd --check-config --data kept --insecure-listen tcp://127.0.0.1:5560
out_has '^ok +addresses +1 beside'

# Beside a running broker, whose access file is not there.
broker_options='--listen tcp://127.0.0.1:0'
TASKMQD_BROKER_ACCESS="$room/aces" start_broker
grep -q 'id=ACCESS-ABSENT .*/aces' broker.err || fail 'nobody said that the access file is missing'
taken=$(sed -n 's/^\(tcp:.*\)$/\1/p' .taskmq/endpoint)
run 0 taskmqd --check-config --listen "$taken"
out_has "^warning +addresses +$taken: in use now"
broker_options=
run 0 taskmqd --check-config
run 4 taskmqd --check --data .taskmq
out_lacks 'is good'
run 0 taskmqd --check
out 'the configuration is good
no data directory was named: no data was read (--data DIR)'
stop_broker
run 0 taskmqd --check --data .taskmq

# Where a value comes from.
mkdir conf.d
printf 'limits\n    reads = 5000\n' >conf.d/10.conf
run 0 env TASKMQD_LIMITS_LINKS=20 taskmqd -c conf --log-level error --show-config
out_has '^    free_space_min = 1024G +# conf:2$'
out_has '^    reads = 5000 +# conf\.d/10\.conf:2$'
out_has '^    links = 20 +# TASKMQD_LIMITS_LINKS$'
out_has '^    level = error +# --log-level$'
out_has '^    ttl = 1d +# default$'
out_has '^    schema = taskmq +# default$'
cp out again
run 0 taskmqd -c again --show-config
out_has '^    links = 20 +# again:[0-9]+$'

# A mistake: exit 2, and the place.
mistake ()
{
    # shellcheck disable=SC2059 # a format, for its \n
    printf "$2" >wrong
    run 2 taskmqd --data none -c wrong --check-config
    err_has "id=USAGE msg=\"?wrong:$1"
}
mistake '1: ' 'limits\000'
mistake '2: a tab in column 1' 'limits\n\tlinks = 5\n'
mistake '2: links has no value: = is missing' 'limits\n    links\n'
mistake '2: limits/lnks is no key .*did you mean limits/links\?' 'limits\n    lnks = 5\n'
mistake '2: a control byte \(0x00\)' 'limits\n    links = 5\0005\n'
mistake '2: too deep' "limits\n$(printf '%80s' '')links = 5\n"
mistake '3: the quote .* is not closed' 'broker\n    store = memory\n    data = "/srv/tas'
mistake '3: limits/links stands in line 2 already' 'limits\n    links = 5\n    links = 6\n'
mistake '2: limits/links = 10M: must be a whole number' 'limits\n    links = 10M\n'
mistake '2: tasks/ttl = 5: .*unit' 'tasks\n    ttl = 5\n'

head -c 10485760 /dev/zero >wrong
run 2 taskmqd -c wrong --check-config
err_has 'wrong is no configuration: it has more than 262144 bytes'
run 2 taskmqd -c conf.d --check-config
err_has 'cannot read conf\.d: it is a directory'
run 2 taskmqd -c missing --check-config
err_has 'cannot read missing: No such file'
mkdir conf.d/20.conf
run 2 taskmqd -c conf --check-config
err_has 'cannot read conf\.d/20\.conf: it is a directory'
rmdir conf.d/20.conf
if [ "$(id -u)" != 0 ]; then
    chmod 000 conf.d/10.conf
    run 2 taskmqd -c conf --check-config
    err_has 'cannot read conf\.d/10\.conf: Permission denied'
    chmod 600 conf.d/10.conf
fi
ln -s nowhere conf.d/30.conf
run 2 taskmqd -c conf --check-config
err_has 'cannot read conf\.d/30\.conf: No such file'
rm conf.d/30.conf
run 2 env TASKMQD_LIMIT_LINKS=5 taskmqd --check-config
err_has 'TASKMQD_LIMIT_LINKS in the environment is no key .*did you mean TASKMQD_LIMITS_LINKS\?'
printf 'limits\n    pending_bytes_soft = 32M\n' >conf
run 2 env TASKMQD_LIMITS_PENDING_BYTES_HARD=16M taskmqd -c conf --check-config
err_has 'limits/pending_bytes_soft \(conf:2\) is above .*_hard \(TASKMQD_LIMITS_PENDING_BYTES_HARD\)'
