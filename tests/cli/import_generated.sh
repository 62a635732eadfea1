#!/bin/sh
# import: tasks with everything that a line can say, and with nothing, come back byte for byte.
. "$(dirname "$0")/lib.sh"

new_broker ()
{
    [ -z "$broker_pid" ] || stop_broker
    rm -rf .taskmq
    start_broker
}

# The numbers of questions are of the broker.
without_events ()
{
    sed -E -e 's/,"events":\[.*\]\}$/}/' -e 's/"number":[0-9]+,//g' "$1"
}

cat >generate.py <<'END'
import base64, datetime, hashlib, json, random, sys
random.seed (int (sys.argv[1]))
now = datetime.datetime.now (datetime.timezone.utc)

def time (minutes):
    at = now + datetime.timedelta (minutes=minutes, milliseconds=random.randrange (1000))
    return at.strftime ("%Y-%m-%dT%H:%M:%S.") + "%03dZ" % (at.microsecond // 1000)

def some (value, chance=0.5):
    return value if random.random () < chance else None

def text (most=40):
    letters = "abc \"\\/\n\t\x01\x7f\u00e9\u20ac\U0001f600{}[]<&'"
    return "".join (random.choice (letters) for _ in range (random.randrange (1, most)))

def name ():
    return random.choice ("abc") + str (random.randrange (100))

def body (record, key, type_key):
    kind = random.randrange (4)
    value = text (200)
    if kind == 0: # JSON as it was written
        raw = json.dumps ({"a": value, "n": [1, 2.5, None]}, indent=random.choice ([None, 1]))
        shown = json.loads (raw)
        record[type_key] = "application/json"
        record[key + "_text"] = raw
    elif kind == 1:
        raw = value
        shown = value
        record[type_key] = "text/plain"
    elif kind == 2:
        raw = bytes (random.randrange (256) for _ in range (99)) + b"\0"
        shown = {"base64": base64.b64encode (raw).decode ()}
        record[type_key] = "application/octet-stream"
    else:
        raw = shown = ""
        record[type_key] = None
    raw = raw if isinstance (raw, bytes) else raw.encode ()
    record[key] = shown
    record[key + "_bytes"] = len (raw)

def inline (raw):
    coded = {"base64": base64.b64encode (raw).decode ()}
    try:
        return random.choice ([coded, {"text": raw.decode ()}])
    except UnicodeDecodeError:
        return coded

def some_bytes (most):
    kind = random.randrange (4)
    if kind == 0:
        return bytes (random.randrange (256) for _ in range (random.randrange (most)))
    return text (most).encode () if kind < 3 else b""

def artifacts (task, tried):
    made = []
    for i in range (random.choice ([0, 1, 3, 9])):
        raw = some_bytes (300)
        made.append ({"name": "%02d" % i + text (9).translate ({n: "-" for n in [*range (32), 47, 127]}),
                      "type": random.choice (["text/plain", "a/b"]), "bytes": len (raw),
                      "hash": hashlib.blake2b (raw, digest_size=32).hexdigest (),
                      "attempt": random.randrange (1, tried + 1), "attached_at": time (-3), **inline (raw)})
    return made

def keep (attempt):
    raw = some_bytes (99)
    return {"bytes": len (raw), "content_type": "text/plain", "at": time (-9), "until": time (900), **inline (raw)}

def attempts (count):
    out = []
    for i in range (1, count + 1):
        end = random.choice (["released", "attempt_failed", "lease_lost"])
        out.append ({"attempt": i, "worker": name (), "started_at": time (-50 + i),
                     "ended_at": time (-49 + i), "end": end,
                     "error": {"code": random.randrange (-9, 9), "message": text ()}
                              if end == "attempt_failed" else None})
    return out

def turns (attempt):
    return [{"attempt": attempt, "worker": name (), "agent": name (), "status": some ("ok"),
             "started_at": time (-40), "duration_ms": random.randrange (9999), "told_at": time (-39),
             "superseded": False, "content": some (text (300)),
             "tool_calls": some ([{"name": text (), "n": 1}]), "tool_log": some (text (300)),
             "files": [{"op": random.choice (["read", "write", "delete"]), "path": "/" + name ()}
                       for _ in range (random.randrange (3))]}
            for _ in range (random.randrange (1, 5))]

# A default is none, a text, or JSON: also a string, or null.
def questions (task, tried):
    made = []
    for i in range (random.randrange (1, 6)):
        is_text = random.choice ([None, True, False])
        answer = None if is_text is None else text () if is_text else \
            random.choice ([None, text (), 1.5, {"a": [text ()]}])
        made.append ({"task_id": task["task_id"], "key": text (20) + str (i), "queue": task["queue"],
                      "session": task.get ("session"), "worker": name (),
                      "attempt": random.randrange (1, tried + 1), "asked_at": time (-20),
                      "deadline": time (500), "request": random.choice ([{"text": text ()}, 1.5]),
                      "default": answer, "default_text": is_text})
    return made

def record (number, before):
    status = ["queued", "completed", "failed", "cancelled", "input_required"][number % 5]
    untried = status in ("queued", "cancelled")
    tried = random.randrange (5) if untried else random.randrange (1, 5)
    out = {"task_id": "0190a3f0-0000-7%03x-8000-%012x" % (int (sys.argv[1]), number),
           "status": status, "queue": name (), "created_at": time (number - 120), "updated_at": time (-1),
           "version": random.randrange (1, 99), "max_attempts": 9, "attempt": tried}
    if status not in ("queued", "input_required"):
        out["finished_at"] = time (-1)
    if number >= 5: # the first ones have nothing else
        out.update ({"session": some (name ()), "priority": random.randrange (256),
                     "method": some (text ()), "status_message": some (text ()),
                     "dedup_key": some ("key%d" % number), "meta": some ({"m": [text (), 1.5]}),
                     "labels": {name (): text () for _ in range (random.randrange (4))},
                     "require": {name (): name () for _ in range (random.randrange (2))},
                     "trace": some ("00-ab"), "fair_key": some (name ()), "worker": name () if tried else None,
                     "failures": random.randrange (tried + 1), "ttl_ms": 86400000,
                     "lease_ms": 45000, "backoff_ms": 77, "poll_interval_ms": 500,
                     "max_runtime_ms": some (60000), "expires_at": time (600),
                     "not_before": some (time (500)), "dead": status == "failed",
                     "progress": {"done": 1.5, "total": 3, "unit": "MB", "message": text ()}
                                 if tried else None})
        body (out, "payload", "content_type")
        out["attempts"] = attempts (tried - (status in ("completed", "failed")))
        if tried:
            out["started_at"] = time (-30)
            out["turns"] = turns (tried)
            out["turn_count"] = len (out["turns"])
        if before and number % 3 == 0:
            other = random.choice (before)
            out["parent"] = other["task_id"]
            other["has_parts"] = True
            out["after"] = [{"task_id": other["task_id"], "policy": "ignore",
                             "status": other["status"] if "finished_at" in other else None}]
    if number >= 5 and tried:
        out["artifacts"] = artifacts (out, tried)
    if number >= 5 and status in ("queued", "failed", "input_required"):
        for one in random.sample (out["attempts"], min (len (out["attempts"]), random.randrange (4))):
            one["kept"] = keep (one)
    if status == "completed":
        body (out, "result", "result_type")
    if status == "failed":
        out["error"] = {"code": -3, "message": text (), "data": some ({"d": text ()})}
    if status == "cancelled":
        out["cancel_message"] = some (text ())
    if status == "input_required":
        out["questions"] = questions (out, tried)
    return out

made = []
for number in range (48):
    made.append (record (number, made))
for one in made:
    print (json.dumps (one, ensure_ascii=random.random () < 0.5, separators=(",", ":")))
END
cat >compare.py <<'END'
import base64, json, sys

# Text and base64 are two ways to say the same.
def plain (value):
    if isinstance (value, list):
        return [plain (one) for one in value]
    if not isinstance (value, dict) or not value.keys () & {"text", "base64"} or "bytes" not in value:
        return value
    raw = value["text"].encode () if "text" in value else base64.b64decode (value["base64"])
    return {**{key: one for key, one in value.items () if key not in ("text", "base64")}, "raw": raw}

wanted = {line["task_id"]: line for line in map (json.loads, open (sys.argv[1]))}
found = {line["task_id"]: line for line in map (json.loads, open (sys.argv[2]))}
assert wanted.keys () == found.keys ()
for task, line in wanted.items ():
    for key, value in line.items ():
        if key in ("attempts", "turns", "questions", "payload_text", "result_text"):
            continue
        shown, value = plain (found[task].get (key)), plain (value)
        assert shown == value or not shown and not value, (task, key, value, shown)
    for mine, theirs in zip (line.get ("questions", []), found[task]["questions"]):
        assert mine == {key: theirs[key] for key in mine}, (task, mine, theirs)
    kept = lambda line: [(one["attempt"], plain (one["kept"])) for one in line.get ("attempts", []) if one.get ("kept")]
    assert kept (line) == kept (found[task]), (task, kept (line), kept (found[task]))
    for mine, theirs in zip (line.get ("turns", []), found[task]["turns"]):
        for key, value in mine.items ():
            assert theirs[key] == value or not value, (task, key, value, theirs[key])
END

for seed in 1 2; do
    python3 generate.py $seed >generated || fail 'nothing was generated'
    new_broker
    run 0 taskctl import generated
    err_has '^48 imported$'
    run 0 taskctl export
    cp out once
    python3 compare.py generated once || fail 'an import changes what a line says'
    new_broker
    run 0 taskctl import once
    err_has '^48 imported$'
    run 0 taskctl export
    without_events once >first
    without_events out >second
    cmp first second || fail 'an import changes what was exported'
    run 0 taskctl import once
    err '48 here already, passed over'
done
stop_broker
