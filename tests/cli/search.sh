#!/bin/sh
# list --search and search reindex: what is found, how it is shown, what is refused.
. "$(dirname "$0")/lib.sh"
start_broker

# finds N OPTIONS...: repeats a search until it finds so many: the index follows a moment later.
finds ()
{
    wanted=$1
    shift
    finds_ids ()
    {
        taskctl -o id list "$@" >found 2>note && [ "$(wc -l <found)" -eq "$wanted" ] && ! grep -q index note
    }
    eventually finds_ids "$@"
}

submit scan --data 'Connection reset by peer, and again: connection reset' --label kind=net --session a
first=$id
submit scan --data '{"subject":"Résumé","text":"disk full"}' --method convert-image --session b
second=$id
submit mail --data 'The disk is fine'
finds 3 --search 'connection OR disk'

# Words, phrases, prefixes, NOT; case and accents do not count; with the filters of a list.
finds 1 --search 'reset CONNECTION'
finds 1 --search '"reset by peer"'
finds 0 --search '"reset peer"'
finds 2 --search 'dis*'
finds 1 --search 'disk NOT fine'
finds 1 --search 'disk -full'
finds 1 --search resume
finds 1 --search convert
finds 1 --search 'disk' --queue mail
finds 0 --search 'connection' --session b
finds 1 --search 'connection' --label kind=net --status queued --since 1h
finds 0 --search 'connection' --until 1h

# count takes the same.
counts ()
{
    number=$1
    shift
    run 0 taskctl count "$@"
    out "$number"
}
counts 3 --search 'connection OR disk'
counts 1 --search 'disk NOT fine'
counts 1 scan --search 'disk' --status queued --since 1h
counts 0 --search 'connection' --session b
counts 0 --search absent
run 0 taskctl -o json count --search 'dis*'
out '{"count":2}'
run 2 taskctl count --search ''
run 2 taskctl count --search 'NOT disk'

# What is found is exported, with the other conditions.
run 0 taskctl export --search 'dis*'
out_lines 2
run 0 taskctl export --format csv --search 'disk NOT fine' --queue scan --status queued
out_lines 2
out_has "^$second,"
run 0 taskctl export --search absent
out_lines 0
err_has '^no tasks$'
run 2 taskctl export --search 'NOT disk'
err_has '^hint: disk full, '
run 2 taskctl export --search disk "$first"
err_has 'ids or conditions, not both'

# On a pipe an excerpt is plain, one line; the newest comes first.
run 0 taskctl list --search 'connection reset'
out_has '^ID +STATUS  QUEUE +CREATED  TURN$'
out_has "^$first  queued  scan +(now|[0-9]+s ago) +-$"
out_has '^    Connection reset by peer, and again: connection reset$'
out_lines 3
run 0 taskctl --color always list --search reset
out_has 'connection .\[[0-9;]*mreset'
run 0 taskctl -o id list --search disk
printf '%s\n' "$id" "$second" | cmp -s - out || fail 'not newest first'
run 0 taskctl list --search absent
out_lines 0
err 'nothing was found'

# JSON has the excerpt with the places of its hits, in characters.
run 0 taskctl -o jsonl list --search 'resume full'
golden found.json
run 0 taskctl -o jsonl list --search resume --fields task_id,found.turn
out "{\"task_id\":\"$second\",\"found.turn\":null}"

# Pages.
run 0 taskctl -o id list --search 'disk OR reset' --limit 1
cp out pages
cursor=$(sed -n 's/^more follow: --cursor \([^,]*\),.*/\1/p' err)
run 0 taskctl -o id list --search 'disk OR reset' --limit 2 --cursor "$cursor"
cat out >>pages
printf '%s\n' "$id" "$second" "$first" | cmp -s - pages || fail 'pages do not join'
run 2 taskctl list --search 'other' --cursor "$cursor"
run 0 taskctl -o id list --search 'disk OR reset' --all
out_lines 3
run 0 taskctl -o id list --search 'connection OR disk' --rank
out_lines 3
out_has "^$first$"

# What makes no sense, and what is too much, is said.
run 2 taskctl list --search 'NOT disk'
err_has 'at least one word must be looked for'
run 2 taskctl list --search '"disk'
err_has 'a quotation mark is not closed'
run 2 taskctl list --search '(disk)'
err_has 'parentheses are not known'
run 2 taskctl list --search 'd*'
err_has 'search prefix: at least 2'
run 2 taskctl list --search ''
err_has 'a word to look for is missing'
run 2 taskctl list --search 'aa* OR bb* OR cc* OR dd* OR ee*'
err_has 'search: more than 4 words with a \*'
run 2 taskctl list --search 'a b c d e f g h i j k l m n o p q'
err_has 'search: more than 16 words and phrases'
err_has '^hint: .*at most 16 words and phrases'
run 0 taskctl list --search 'disk OR reset' # a head for all of them
[ "$(grep -c '^ID ' out)" -eq 1 ] || fail 'not one head'
out_lines 7
run 2 taskctl list --search "$(printf '%10000s' a | tr ' ' a)"
err_has '10000 bytes, at most 1024'
run 2 taskctl list --rank
run 2 taskctl list --search a --columns id
run 2 taskctl list --search a --rank --all

# Turns are found, with their place.
cat >teller <<'END'
#!/bin/bash
echo 'turn {"agent":"planner","content":"booked the hotel"}' >&"$TASKMQ_FD"
read -r answer <&"$TASKMQ_FD"
echo 'the journey is planned'
END
chmod +x teller
submit trip --data 'plan a journey'
run 0 taskctl work trip --max-tasks 1 -- ./teller
finds 1 --search hotel
run 0 taskctl list --search hotel
out_has "^$id  completed  trip .* 1$"
out_has '^    booked the hotel$'
finds 1 --search '"journey is planned"'
# Its words may stand in several places of a task, and what must not be there in none.
finds 1 --search 'plan hotel planned'
finds 0 --search '"journey hotel"'
finds 0 --search 'journey NOT hotel'

# What is removed is found no more.
run 0 taskctl purge "$id"
finds 0 --search hotel

# A queue may be left out, and be taken in again.
run 0 taskctl queue set scan --search off
finds 0 --search reset
finds 1 --search disk
run 0 taskctl -o json queue show scan
out_has '"search":false'
run 2 taskctl queue set scan --search perhaps
run 0 taskctl queue set scan --search on
run 0 taskctl search reindex
err_has 'builds a new index'
finds 1 --search reset
finds 2 --search disk
run 2 taskctl search
run 2 taskctl search disk

# It comes with a start, also when its file is lost.
stop_broker
rm .taskmq/search.db*
start_broker
finds 1 --search reset
