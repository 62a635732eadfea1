# shellcheck shell=sh
# What the tests of docker/compose*.yaml have in common. Each of them sources this file with its own
# arguments, the archives of images, and goes on inside: with podman and podman-compose, as root, in
# namespaces and directories of its own, so that of the machine's networks and images nothing is
# touched. The files of docker/ are in the working directory.
#
#   compose ARGUMENT...      podman-compose on $file
#   inside NAME COMMAND...   in the container of that service
#   eventually WHAT COMMAND...  repeats it until it succeeds, for at most three minutes
#   fail TEXT...             ends with what the containers of $services said

here=$(dirname "$(realpath "$0")")
for program in podman podman-compose runc iptables curl; do
    command -v "$program" >/dev/null || {
        echo "skipped: there is no $program"
        exit 77
    }
done
SCRATCH=${SCRATCH-}
if [ -z "$SCRATCH" ]; then
    SCRATCH=$(mktemp -d)
    code=0
    archives=
    for archive in "$@"; do
        archives="$archives $(realpath "$archive")"
    done
    # --kill-child: containers are no children of what started them.
    export SCRATCH
    # shellcheck disable=SC2086 # archives are words
    unshare --net --mount --pid --fork --mount-proc --kill-child sh "$here/$(basename "$0")" $archives || code=$?
    rm -rf "$SCRATCH"
    exit "$code"
fi

mount -t tmpfs tmpfs /run # names of networks and locks are its own, too
cp -R "$here/../../docker" "$SCRATCH/tree"
cd "$SCRATCH/tree" || exit 1
rm -rf secrets
ip link set lo up

fail ()
{
    printf 'FAILED: %s\n' "$*"
    podman ps --all || :
    for name in $services; do
        podman logs --tail 20 "$(container "$name")" 2>&1 | sed "s/^/$name: /" || :
    done
    exit 1
}

# Its own images, networks and state. Limits are lowered to what this machine allows to raise.
driver=overlay
mkdir "$SCRATCH/lower" "$SCRATCH/upper" "$SCRATCH/work" "$SCRATCH/merged"
if mount -t overlay overlay -o "lowerdir=$SCRATCH/lower,upperdir=$SCRATCH/upper,workdir=$SCRATCH/work" \
    "$SCRATCH/merged" 2>/dev/null; then
    umount "$SCRATCH/merged"
else
    driver=vfs
fi
printf '[storage]\ndriver = "%s"\nrunroot = "%s"\ngraphroot = "%s"\n' \
    "$driver" "$SCRATCH/run" "$SCRATCH/graph" >"$SCRATCH/storage.conf"
cat >"$SCRATCH/containers.conf" <<END
[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
log_driver = "k8s-file"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "none"
tmp_dir = "$SCRATCH/libpod"
[network]
network_backend = "netavark"
network_config_dir = "$SCRATCH/networks"
END
export CONTAINERS_STORAGE_CONF="$SCRATCH/storage.conf" CONTAINERS_CONF="$SCRATCH/containers.conf"

compose ()
{
    podman-compose -p taskmq -f "$file" "$@" >>"$SCRATCH/compose.log" 2>&1 || {
        tail -n 20 "$SCRATCH/compose.log"
        fail "podman-compose $*"
    }
}

container ()
{
    echo "taskmq_$1_1"
}

# inside NAME COMMAND...
inside ()
{
    name=$1
    shift
    podman exec "$(container "$name")" "$@"
}

# eventually WHAT COMMAND...
eventually ()
{
    what=$1
    shift
    deadline=$(($(date +%s) + 180))
    until "$@" >/dev/null 2>&1; do
        [ "$(date +%s)" -lt $deadline ] || fail "$what"
        sleep 0.2
    done
}

for archive in "$@"; do
    podman load --quiet --input "$archive" >/dev/null
done
