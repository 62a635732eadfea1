#!/bin/sh
# This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
# If a copy of the MPL was not distributed with this file, You can obtain one at
# https://mozilla.org/MPL/2.0/.

# Runs a test that is written in Python: run.sh FILE.py [ARGUMENT...], FILE.py seen from here. Needs
# python3-zmq, python3-protobuf and protobuf-compiler; the Python of the system, because those are
# its packages.
set -eu

here=$(dirname "$0")
generated=$(mktemp -d)
trap 'rm -rf "$generated"' EXIT

protoc -I "$TASKMQ_SOURCE/proto" -I /usr/include --python_out="$generated" \
    "$TASKMQ_SOURCE/proto/taskmq.proto"
script=$here/$1
shift
PYTHONPATH="$generated:$here" PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 "$script" "$@"
