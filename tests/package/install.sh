#!/bin/sh
# install.sh DIRECTORY: the packages of DIRECTORY in a fresh Debian of their own: installed, tried by the
# tests they come with, removed, purged. As root; it needs mmdebstrap.
set -eu

packages=$1
source=$(cd "$(dirname "$0")/../.." && pwd)
command -v mmdebstrap >/dev/null || {
    echo 'skipped: there is no mmdebstrap'
    exit 77
}
scratch=$(mktemp -d)
root=$scratch/root
inside ()
{
    # shellcheck disable=SC2016 # for the shell inside
    unshare --mount --pid --fork --net sh -c '
        ip link set lo up 2>/dev/null
        mount --bind "$1" "$1" && mount -t proc proc "$1/proc" && mount -t tmpfs tmpfs "$1/run" || exit 1
        mount --bind /dev "$1/dev"
        root=$1
        shift
        exec chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 "$@"
    ' sh "$root" "$@"
}
trap 'rm -rf "$scratch"' EXIT

base=${TASKMQ_TEST_ROOT:-}
if [ -z "$base" ]; then
    base=$scratch/base.tar
    mmdebstrap --quiet --variant=minbase bookworm "$base"
fi
mkdir "$root"
tar -x -C "$root" -f "$base"
mkdir "$root/packages" "$root/tests"
cp "$packages"/*.deb "$root/packages/"
cp "$source"/debian/tests/* "$root/tests/"
cp /etc/resolv.conf "$root/etc/resolv.conf"

# Where packages come from is reached from here, not from inside.
chroot "$root" sh -c 'export DEBIAN_FRONTEND=noninteractive
    printf "#!/bin/sh\nexit 101\n" >/usr/sbin/policy-rc.d && chmod +x /usr/sbin/policy-rc.d
    apt-get update -qq &&
    apt-get install -y -qq --no-install-recommends /packages/*.deb gcc libc6-dev pkg-config iproute2 \
        curl' \
    >"$scratch/log" 2>&1 || { tail -n 40 "$scratch/log"; exit 1; }

failed=0
for test in life gateway consumer machines; do
    [ -e "$root/tests/$test" ] || continue
    if inside sh "/tests/$test" >"$scratch/log" 2>&1; then
        printf 'ok      %s\n' "$test"
    else
        cat "$scratch/log"
        printf 'FAILED  %s\n' "$test"
        failed=1
    fi
done

# The same once more, as an upgrade does it. The gateway opens a port: nobody but its owner enables it.
chroot "$root" sh -c 'apt-get install -y -qq --reinstall /packages/*.deb' >"$scratch/log" 2>&1 || {
    cat "$scratch/log"
    failed=1
}
[ ! -e "$root/etc/systemd/system/multi-user.target.wants/taskmq-gateway.service" ] || {
    echo 'the installation enabled the gateway'
    failed=1
}

# What was made stays; a package that is purged says where it is.
[ -s "$root/var/lib/taskmq/taskmq.db" ] || { echo 'the tests left no database'; failed=1; }
chroot "$root" apt-get purge -y -qq taskmqd taskmq-gateway >"$scratch/log" 2>&1 || { cat "$scratch/log"; failed=1; }
grep -q 'stay in /var/lib/taskmq' "$scratch/log" || { cat "$scratch/log"; failed=1; }
[ -s "$root/var/lib/taskmq/taskmq.db" ] || { echo 'a purge removed the data'; failed=1; }
[ ! -e "$root/etc/taskmq/taskmq.conf" ] || { echo 'a purge left the configuration'; failed=1; }
[ ! -e "$root/usr/bin/taskmqd" ] || { echo 'a purge left the program'; failed=1; }
[ ! -e "$root/usr/bin/taskmq-gateway" ] || { echo 'a purge left the gateway'; failed=1; }
[ -s "$root/var/lib/taskmq-gateway/gateway.key" ] || { echo "a purge removed the gateway's files"; failed=1; }
exit $failed
