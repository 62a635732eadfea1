# This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
# If a copy of the MPL was not distributed with this file, You can obtain one at
# https://mozilla.org/MPL/2.0/.

"""Strangers at the door, on the stage of the hostile clients (../hostile).

    abuse.py CASE [--percent N] [--sanitized]   one case, as ctest runs it
    abuse.py --table [CASE...] [--percent N]    the long form: every case, measured

A case says in its docstring what is done. After each the broker is alive and has served a
bystander."""

import os
import sys

sys.path.append(os.path.join(os.path.dirname(__file__), "..", "hostile"))

import hostile  # the rig stands in the directory that was just named

import door
import feeds
import grants
import keys
import liar

hostile.gather(door, feeds, grants, keys, liar)
sys.exit(hostile.main())
