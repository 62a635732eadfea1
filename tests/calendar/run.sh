#!/bin/sh
# This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
# If a copy of the MPL was not distributed with this file, You can obtain one at
# https://mozilla.org/MPL/2.0/.

# The calendar against another implementation: run.sh YEARS. Needs the time zones of the system.
set -eu

[ -r /usr/share/zoneinfo/Europe/Berlin ] || {
    echo "skipped: no time zones are installed (tzdata)"
    exit 77
}
exec /usr/bin/python3 "$(dirname "$0")/compare.py" "$TASKMQ_BIN/calendar_dump" "$1"
