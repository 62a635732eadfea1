#!/bin/sh
# image.sh ROOT LAYERS: an image, unpacked at ROOT, as it is meant to run: its root read-only, no
# capabilities, no new privileges, user 990, a volume and /tmp. A life goes through, with keys between
# containers that share nothing but a network. No secret stands in one of its layers, which lie as
# they are shipped somewhere below LAYERS. As root, with runc.
set -eu

root=$1
layers=$2
command -v runc >/dev/null || {
    echo 'skipped: there is no runc'
    exit 77
}
scratch=$(mktemp -d)
running=

clean_up ()
{
    for name in $running; do
        runc --root "$scratch/state" delete --force "$name" >/dev/null 2>&1 || :
    done
    rm -rf "$scratch"
}
trap clean_up EXIT

fail ()
{
    printf 'FAILED: %s\n' "$*"
    tail -n 20 "$scratch"/*.log
    exit 1
}

# container NAME [ARGUMENT...]: starts it in the background, with a volume of its own.
container ()
{
    name=$1
    shift
    mkdir -p "$scratch/$name/volume"
    chown 990:990 "$scratch/$name/volume"
    chmod 700 "$scratch/$name/volume"
    python3 - "$scratch/$name" "$root" "$scratch/secrets" "$@" <<'END'
import json
import os
import sys

bundle, root, secrets, *arguments = sys.argv[1:]
mounts = [
    {"destination": "/proc", "type": "proc", "source": "proc"},
    {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
    {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=1777"]},
    {"destination": "/var/lib/taskmq", "type": "bind", "source": bundle + "/volume",
     "options": ["bind", "rw"]},
]
secret = secrets + "/" + os.path.basename(bundle) + ".join"
if os.path.exists(secret):
    mounts.append({"destination": "/run", "type": "tmpfs", "source": "tmpfs"})
    mounts.append({"destination": "/run/secrets/taskmq_join", "type": "bind", "source": secret,
                   "options": ["bind", "ro"]})
config = {
    "ociVersion": "1.0.2",
    "root": {"path": root, "readonly": True},
    "hostname": os.path.basename(bundle),
    "process": {
        "user": {"uid": 990, "gid": 990},
        "args": arguments,
        "cwd": "/var/lib/taskmq",
        "env": ["PATH=/usr/bin:/bin", "HOME=/var/lib/taskmq", "LC_ALL=C.UTF-8"],
        "capabilities": {kind: [] for kind in ["bounding", "effective", "permitted"]},
        "noNewPrivileges": True,
    },
    "mounts": mounts,
    # The network is this machine's: its loopback stands for the one of compose.yaml.
    "linux": {"namespaces": [{"type": kind} for kind in ["pid", "ipc", "uts", "mount"]]},
}
with open(bundle + "/config.json", "w") as out:
    json.dump(config, out)
END
    running="$running $name"
    runc --root "$scratch/state" run --bundle "$scratch/$name" "$name" >"$scratch/$name.log" 2>&1 \
        </dev/null &
}

in_container ()
{
    name=$1
    shift
    runc --root "$scratch/state" exec "$name" "$@"
}

# eventually WHAT COMMAND...
eventually ()
{
    what=$1
    shift
    tries=0
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ "$tries" -lt 600 ] || fail "$what"
        sleep 0.1
    done
}

mkdir "$scratch/secrets"
container broker taskmqd --data /var/lib/taskmq/.taskmq --listen 'tcp://127.0.0.1:0?curve'
eventually 'the broker does not answer' in_container broker taskctl --timeout 3s ping
grep -q 'id=CONFINED' "$scratch/broker.log" || fail 'it does not say how far it is confined'

# A life inside; then one between containers, by invitation.
id=$(in_container broker taskctl submit upper --data hello)
in_container broker taskctl work upper --drain -- tr a-z A-Z
[ "$(in_container broker taskctl result "$id")" = HELLO ] || fail 'the result is not HELLO'
for guest in worker client; do
    options="--role $guest"
    [ "$guest" = client ] || options="$options --queue render"
    # shellcheck disable=SC2086 # options are words
    in_container broker taskctl invite "$guest" $options >"$scratch/invited"
    grep -o 'tmqjoin_[a-z2-7]*' "$scratch/invited" >"$scratch/secrets/$guest.join"
done
container worker sh -c 'taskctl join --if-needed && exec taskctl work render -- tr a-z A-Z'
container client sh -c 'taskctl join --if-needed && exec sleep infinity'
eventually 'the client does not join' in_container client taskctl whoami
id=$(in_container client taskctl submit render --data hello)
in_container client taskctl wait "$id" >/dev/null
[ "$(in_container client taskctl result "$id")" = HELLO ] || fail 'the result is not HELLO'

# It writes into its volume and /tmp only, and stops cleanly as process 1.
if in_container broker sh -c ': >/usr/file' 2>/dev/null; then
    fail 'the image can be written'
fi
runc --root "$scratch/state" kill broker TERM
eventually 'the broker does not stop' grep -q id=STOPPED "$scratch/broker.log"

# Keys and invitations stay out of the image: their texts, and files that would hold them.
looked_at=0
find "$layers" -type f >"$scratch/blobs"
while read -r blob; do
    gzip -t "$blob" 2>/dev/null || continue
    looked_at=$((looked_at + 1))
    if gzip -dc "$blob" | grep -aqE 'tmqsk_[a-z2-7]{58}|tmqjoin_[a-z2-7]{80}'; then
        fail "a secret stands in the layer $blob"
    fi
    if gzip -dc "$blob" | tar -t | grep -E '(server\.key|\.join|audit\.jsonl)$'; then
        fail "a file of a broker stands in the layer $blob"
    fi
done <"$scratch/blobs"
[ "$looked_at" -ge 2 ] || fail 'there are no layers'
[ -z "$(ls -A "$root/var/lib/taskmq")" ] || fail 'the volume is not empty in the image'
echo 'the image serves, and holds no secret'
