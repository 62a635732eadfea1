#!/bin/sh
# test_release.sh VERSION: the packages have the version of the project, and the bill of materials names
# what the programs need.
set -eu

fail ()
{
    printf 'FAILED: %s\n' "$*"
    exit 1
}

packaged=$(sed -n '1s/^taskmq (\(.*\)) .*/\1/p' "$TASKMQ_SOURCE/debian/changelog")
[ "$packaged" = "$1" ] || fail "debian/changelog says version $packaged, the project $1"

if ! command -v dpkg-query >/dev/null || ! command -v python3 >/dev/null; then
    echo 'skipped: no dpkg or no python3'
    exit 77
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
sh "$TASKMQ_SOURCE/tests/package/sbom.sh" "$(dirname "$TASKMQ_BIN")" "$1" >"$scratch/sbom.json"
python3 - "$scratch/sbom.json" "$1" <<'END'
import json
import sys

document = json.load(open(sys.argv[1]))
assert document["spdxVersion"] == "SPDX-2.3"
names = {package["name"]: package["versionInfo"] for package in document["packages"]}
assert names["taskmq"] == sys.argv[2], names
for name in ["libc6", "libczmq4", "libsodium23", "libsqlite3-0", "libsystemd0", "libzmq5"]:
    assert names.get(name), name + " is missing"
ids = {element["SPDXID"] for element in document["packages"] + document["files"]}
ids.add("SPDXRef-DOCUMENT")
assert len(ids) == len(document["packages"]) + len(document["files"]) + 1
for relationship in document["relationships"]:
    assert relationship["spdxElementId"] in ids
    assert relationship["relatedSpdxElement"] in ids
assert len(document["files"]) == 4
END
echo 'version and bill of materials are right'
