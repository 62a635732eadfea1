# This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
# If a copy of the MPL was not distributed with this file, You can obtain one at
# https://mozilla.org/MPL/2.0/.

"""Clients that want to do harm, and a bystander who must not notice.

    hostile.py CASE [--percent N] [--sanitized]   one case, as ctest runs it
    hostile.py --table [CASE...] [--percent N]    the long form: every case, measured

A case is a function in one of the modules below. Its docstring says what is done. It gets a stage
(stage.py) and asserts on codes, counts, bounds of memory, and on the bystander. Some cases ask for
more than the broker does yet: they are here, and the long form runs them, but they are not in
CMakeLists.txt. Whoever makes one pass adds its name there."""

import argparse
import sys
import time
import traceback

import floods
import links
import reads
import tasks
from stage import MIB, Stage

CASES = {}


def gather(*modules):
    """The cases of these modules are what main() knows."""
    for module in modules:
        CASES.update((case.__name__, case) for case in module.CASES)


def run(case, percent, sanitized):
    """Runs one case to its end. Returns its stage and what was wrong, or None."""
    stage = Stage(percent, sanitized, **getattr(case, "broker", {}))
    try:
        with stage:
            case(stage)
    except Exception:  # whatever went wrong is the case's verdict
        return stage, traceback.format_exc()
    return stage, None


def nobody(on):
    """Nobody attacks: what the bystander has on this machine"""
    on.begin()
    time.sleep(5)  # a measurement needs its time; nothing is waited for
    on.went_on()


FIGURES = []  # of all cases


def percentile(values, share):
    if not values:
        return "-"
    return f"{values[min(len(values) - 1, int(len(values) * share))] * 1000:.1f}"


def row(case, percent):
    began = time.monotonic()
    stage, wrong = run(case, percent, False)
    cells = [case.__doc__.split("\n")[0]]
    for kind in ("ping", "submit", "list", "due"):
        values = stage.latencies(kind) if stage.bystander is not None else []
        cells += [percentile(values, 0.5), percentile(values, 0.99)]
    cells += [f"{stage.grown // MIB}", f"{time.monotonic() - began:.0f}",
              "yes" if wrong is None else "no"]
    print("| " + " | ".join(cells) + " |", flush=True)
    FIGURES.extend(f"{case.__name__}: {figure}" for figure in stage.figures)
    if wrong is not None:
        print(f"{case.__name__}:\n{wrong}", file=sys.stderr, flush=True)
    return wrong is None


def table(names, percent):
    print("What the bystander had while the attack went on, in ms: p50 and p99 of a ping, a submit "
          "and a list, and how late an end of a time to live was told. Then by how many MiB the "
          "broker's memory grew, how long the case took in s, and whether it held.\n")
    print("| attack | ping | p99 | submit | p99 | list | p99 | late | p99 | MiB | s | held |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    held = [row(case, percent) for case in [nobody] + [CASES[name] for name in names]]
    print("".join(f"\n{figure}" for figure in FIGURES))
    print(f"\n{sum(held)} passed, {len(held) - sum(held)} failed")
    return all(held)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--table", action="store_true", help="measure; all cases if none is named")
    parser.add_argument("--percent", type=int, default=100, help="of the amounts of the attack")
    parser.add_argument("--sanitized", action="store_true", help="no bounds of memory")
    options = parser.parse_args()
    unknown = set(options.cases) - set(CASES)
    if unknown:
        parser.error(f"no such case: {', '.join(sorted(unknown))}")
    if options.table:
        return 0 if table(options.cases or CASES, options.percent) else 1
    for name in options.cases:
        _, wrong = run(CASES[name], options.percent, options.sanitized)
        if wrong is not None:
            print(f"{name}: {wrong}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    gather(reads, tasks, links, floods)
    sys.exit(main())
