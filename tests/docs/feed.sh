#!/bin/sh
# The SUB socket of the observer's guide: with a broker it prints the life of a task, and it says what
# it missed, here from a publisher that leaves numbers out.
. "$TASKMQ_SOURCE/tests/cli/lib.sh"
. "$TASKMQ_SOURCE/tests/docs/blocks.sh"

extract_blocks "$TASKMQ_SOURCE/docs/guide-observer.md"
strict_tools

# A subscription takes effect some time after connect: submits until the first one arrives.
heard_something ()
{
    taskctl submit warm
    [ -s feed.out ]
}

spawn broker taskmqd --data "$room/.taskmq" --feed "default=ipc://$room/feed.ipc"
eventually test -s .taskmq/endpoint
eventually taskctl ping
spawn feed python3 feed.py "ipc://$room/feed.ipc" default/
eventually heard_something
submit render --data 'frame 17'
run 0 taskctl work render --drain -- cat
eventually grep -q "completed default/render/completed/$id" feed.out
grep " default/render/" feed.out | cut -d ' ' -f 2,3 >out
cat >life <<END
submitted default/render/queued/$id
claimed default/render/working/$id
completed default/render/completed/$id
END
cmp -s life out || fail 'that is not the life of the task'
! grep -v " default/" feed.out || fail 'the feed told of something else'

spawn leaky python3 feed.py "ipc://$room/leaky.ipc" default/
cat >publisher.py <<'END'
import sys

import zmq

socket = zmq.Context().socket(zmq.XPUB)
socket.bind(sys.argv[1])
socket.recv()  # the subscription
for seq in (7, 8, 11):
    socket.send_multipart([b"default/a/queued/x", b'{"seq":%d,"kind":"submitted"}' % seq])
END
run 0 python3 publisher.py "ipc://$room/leaky.ipc"
eventually grep -q '^11 ' leaky.out
cp leaky.out out
out '7 submitted default/a/queued/x
8 submitted default/a/queued/x
missed 2 events
11 submitted default/a/queued/x'
