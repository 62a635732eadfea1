#!/bin/sh
# A broker behind keys, on the loopback address: who it lets in, what it says, how it is found.
. "$(dirname "$0")/lib.sh"

config="$XDG_CONFIG_HOME/taskmq"
mkdir -m 700 .taskmq
run 0 taskctl key new
mine=$(cat out)
run 0 taskctl -q key new stranger
stranger=$(cat out)
until=$(($(date +%s) + 3 * 24 * 60 * 60))
cat >.taskmq/access <<END
me        uid:$(id -u)   operator
render-7  key:$mine      client(day/*) worker(default/render*)  until=$(date -u -d "@$until" +%Y-%m-%dT%H:%MZ)
END
chmod 600 .taskmq/access
broker_options="--listen tcp://127.0.0.1:0?curve"
start_broker
uri=$(grep '^tcp:' .taskmq/endpoint)
plain=${uri%%\?*}
server=${uri##*=}

# The operator, on the socket, sees the key that others need.
run 0 taskctl server-key show
out "$server"
run 0 taskctl whoami
out_has '^roles +operator$'
out_lacks '^key '

# Whoever watches the broker sees two days before the key ends that it will.
run 0 taskctl stats --prometheus
out_has '^taskmq_access_principals 2$'
out_has '^# TYPE taskmq_key_days_left gauge$'
out_has '^taskmq_key_days_left 2$'

# A key that is listed: who one is, and what one may do. It ends in 3 days, which is said.
run 0 taskctl -e "$uri" -o json whoami
json identity '"render-7"'
json principal '"render-7"'
json key "\"$mine\""
json server_key "\"$server\""
json endpoint "\"$plain\""
json roles '"client(day/*) worker(default/render*)"'
err_has '^taskctl: your key ends in 2d: taskctl key rotate$'
run 0 taskctl -q -e "$uri" -n day submit q
err_lacks .
run 0 env TASKMQ_SERVER_KEY="$server" taskctl -e "$plain" ping
run 0 taskctl -e "$plain" --server-key "$server" ping
run 0 taskctl profile add farm -e "$plain" --server-key "$server" -n day
run 0 taskctl --profile farm submit q --data hello
id=$(cat out)
run 0 taskctl --profile farm payload "$id"
out_has '^hello$'

# Others.
run 4 taskctl -e "$uri" --key-file "$config/keys/stranger.key" ping
err_has "the broker does not accept the key $stranger: an operator lets it in by taskctl key trust\$"
run 1 taskctl -e "ipc://$room/.taskmq/taskmqd.ipc" -e "$uri" --key-file "$config/keys/stranger.key" doctor
out_has "^wrong +endpoint +$plain: the broker does not accept the key $stranger"
run 4 taskctl -e "$uri" -n night ping
err_has 'no access to namespace night'
run 3 taskctl -e "$plain" ping
err_has 'the broker wants a key$'
run 3 taskctl -e "$plain?server_key=$stranger" ping
err_has "closed during the handshake: server_key is not this broker's, or"
err_has '^hint: .*taskctl server-key show$'
mv "$config/keys/default.key" "$config/keys/moved.key"
run 4 taskctl -e "$uri" ping
err_has 'needs a key of yours: taskctl join, or taskctl key new'

# A program of work reaches the same broker with the same key, though it does not get the key.
submit render --data x
run 0 env TASKMQ_KEY_FILE="$config/keys/moved.key" taskctl -e "$uri" work render --drain \
    -- sh -c 'taskctl -q -o json whoami'
run 0 taskctl result "$id"
json identity '"render-7"'
submit render --data x
run 0 taskctl key show moved --secret --yes
secret=$(sed -n 2p out)
run 0 env TASKMQ_KEY="$secret" taskctl -e "$uri" work render --drain \
    -- sh -c 'taskctl ping || echo "without: $?"'
run 0 taskctl result "$id"
out_has '^without: 4$'
