#!/bin/sh
# Keys and saved connections, without a broker on another machine.
. "$(dirname "$0")/lib.sh"

keys="$XDG_CONFIG_HOME/taskmq/keys"
profiles="$XDG_CONFIG_HOME/taskmq/profiles"

# A new key: the public one is data, the rest is said.
run 0 taskctl key new
out_lines 1
out_has '^tmqpk_[a-z2-7]{58}$'
public=$(cat out)
err_has "^the secret key is in $keys/default.key;"
err_has "taskctl key trust NAME $public --role ROLE$"
[ "$(stat -c %a "$keys/default.key")" = 600 ] || fail "the mode of a key file"
[ "$(stat -c %a "$keys")" = 700 ] || fail "the mode of the directory"
run 6 taskctl key new
err_has "$keys/default.key is there already, and stays"
run 0 taskctl key show
out "$public"
run 0 taskctl -q key new farm
err_lacks '.'
run 0 taskctl --key-file "$keys/default.key" key show
out "$public"
run 0 taskctl -o json key show
json public_key "\"$public\""
out_lacks 'tmqsk_'

# A secret needs to be asked for, and does not go into a pipe by itself.
run 2 taskctl key show --secret
err_has 'shown on a terminal only'
out_lines 0
run 0 taskctl key show --secret --yes
out_has '^tmqsk_[a-z2-7]{58}$'
sed -n 2p out >secret
run 6 taskctl key import secret
run 0 taskctl key import secret again
out "$public"
run 0 taskctl key show --z85 --secret --yes
out_lines 2
sed -n 2p out >secret.z85
run 0 taskctl key import secret.z85 third
out "$public"
run 0 taskctl key show farm --z85
printf 'curve\n    public-key = "%s"\n    secret-key = "%s"\n' "$(cat out)" \
    "$(cat secret.z85)" >wrong.cert
run 2 taskctl key import wrong.cert fourth
err_has "does not belong to its secret-key"
tr a-y b-z <secret >typo
run 2 taskctl key import typo fourth
err_has 'typo'

# A file that others may read is refused, with the command that mends it.
chmod 644 "$keys/default.key"
run 4 taskctl key show
err "taskctl: $keys/default.key is readable by others (mode 0644): chmod 600 $keys/default.key"
run 4 taskctl -e "tcp://192.0.2.1:5560?server_key=$public" ping
err_has 'is readable by others'
chmod 600 "$keys/default.key"
run 5 taskctl key show nobody
run 2 taskctl key shwo
err "taskctl: unknown command 'key shwo'
hint: did you mean 'key show'?"
run 2 taskctl key
err_has 'key needs one of its commands'
err_has '^hint: taskctl key new, show, .* or [a-z]+$'
run 2 taskctl key new a b
err_has "key new takes no further argument 'b'"
run 2 taskctl key import
err_has 'key import needs FILE'

# Another machine needs the broker's key.
run 4 taskctl -e tcp://192.0.2.1:5560 ping
err_has 'tcp://192.0.2.1:5560 needs the broker.s key: taskctl join, or server_key'
run 2 taskctl -e 'tcp://192.0.2.1:5560?server_key=tmqpk_x' ping
err_has 'server_key: a public key has 64 characters'

# Profiles.
run 0 taskctl profile list
run 2 taskctl profile add lab
err_has 'needs an endpoint'
run 2 taskctl profile add lab -e nonsense
run 4 taskctl profile add lab -e tcp://192.0.2.1:5560
run 0 taskctl profile add lab -e tcp://192.0.2.1:5560 --server-key "$public" -n night
[ "$(stat -c %a "$profiles/lab.conf")" = 600 ] || fail "the mode of a profile"
run 6 taskctl profile add lab -e tcp://192.0.2.1:5560 --server-key "$public"
run 0 taskctl profile show lab
out "endpoint = tcp://192.0.2.1:5560
server_key = $public
namespace = night"
printf 'key = %s\n' "$(cat secret)" >>"$profiles/lab.conf"
run 0 taskctl profile show lab
out_has '^key = \(a secret key\)$'
run 5 taskctl profile use nobody
err_has '^taskctl: there is no profile nobody$'
run 0 taskctl profile use lab
run 0 taskctl profile list
out_has '^lab +tcp://192.0.2.1:5560 +night +yes$'
run 0 taskctl -o json profile list
json default true
run 0 taskctl complete -- profile us
out use
run 0 taskctl complete -- profile use l
out lab
run 0 taskctl complete -- --profile l
out lab
run 0 taskctl profile remove lab
run 5 taskctl profile remove lab
run 0 taskctl profile list
out_lacks lab

# With a broker: who says where it is.
start_broker
uri=$(head -n 1 .taskmq/endpoint)
run 0 taskctl profile add here -e "$uri" -n night
run 0 taskctl profile test here
out_has '^told by +profile here$'
run 0 taskctl whoami
out_has "^identity +uid:$(id -u)\$"
out_has '^namespace +default$'
out_has "^told by +$room/.taskmq\$"
run 0 taskctl --profile here -o json whoami
json namespace '"night"'
json told_by '"profile here"'
run 0 env TASKMQ_PROFILE=here taskctl -o json whoami
json namespace '"night"'
run 0 env TASKMQ_PROFILE=here taskctl -n day -o json whoami
json namespace '"day"'
run 0 env TASKMQ_ENDPOINT="$uri" taskctl -o json whoami
json told_by '"TASKMQ_ENDPOINT"'
run 0 env TASKMQ_ENDPOINT=ipc:///nonexistent/x taskctl --profile here whoami
run 3 env TASKMQ_ENDPOINT=ipc:///nonexistent/x TASKMQ_PROFILE=here taskctl whoami
run 0 taskctl -v ping
err_has "^taskctl: $uri is where $room/.taskmq says\$"
run 0 env TASKMQ_OUTPUT=json taskctl whoami
json told_by "\"$room/.taskmq\""
run 2 env TASKMQ_OUTPUT=jason taskctl whoami
err_has 'TASKMQ_OUTPUT .jason. must be'
run 5 taskctl server-key show
err_has 'this broker has no key'

# The default counts where nothing else is found.
run 0 taskctl profile use here
mkdir "$room/../elsewhere.$$" && cd "$room/../elsewhere.$$" || exit 1
taskctl -o json whoami >"$room/out" || fail "the default profile"
cd "$room" && rmdir "$room/../elsewhere.$$" || exit 1
json told_by '"profile here"'

# What others could have planted is passed over, and said.
mkdir -p planted/.taskmq
chmod 777 planted/.taskmq
cd planted || exit 1
taskctl -o json whoami >"$room/out" || fail "the own one further up"
cd "$room" || exit 1
json told_by "\"$room/.taskmq\""

# Secrets of a worker stay with it.
run 0 taskctl submit q
run 0 env TASKMQ_KEY="$(cat secret)" TASKMQ_JOIN=tmqjoin_x \
    taskctl work q --drain -- sh -c 'env >&2; cat /proc/$$/environ >&2'
err_has '^.*TASKMQ_NAMESPACE=default$'
err_lacks 'tmqsk_|tmqjoin_'
