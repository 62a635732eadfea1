/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "base/exit.h"

#include "taskmq.h"

int exit_of_code (int code)
{
    switch (code) {
    case TMQ_OK: return EXIT_OK;
    case TMQ_INVALID:
    case TMQ_TOO_LARGE:
    case TMQ_AMBIGUOUS:
    case TMQ_BAD_CURSOR: return EXIT_USAGE;
    case TMQ_NO_LINK:
    case TMQ_STOPPING:
    case TMQ_UNREACHABLE:
    case TMQ_TIMEOUT: return EXIT_UNREACHABLE;
    case TMQ_DENIED:
    case TMQ_NOT_AUTHENTICATED: return EXIT_DENIED;
    case TMQ_NOT_FOUND:
    case TMQ_EXPIRED:
    case TMQ_PURGED: return EXIT_NOT_FOUND;
    case TMQ_CONFLICT:
    case TMQ_WRONG_STATUS:
    case TMQ_STALE_LEASE: return EXIT_CONFLICT;
    case TMQ_CANCELLED: return EXIT_TASK;
    case TMQ_OVERLOADED:
    case TMQ_UNAVAILABLE:
    case TMQ_STORE_FULL:
    case TMQ_LIMIT:
    case TMQ_OUTBOX_FULL: return EXIT_OVERLOADED;
    case TMQ_UNKNOWN: return EXIT_UNKNOWN;
    default: return EXIT_OTHER;
    }
}

void tally_add (tally_t *tally, int exit_code)
{
    if (exit_code == EXIT_OK) {
        tally->done++;
        return;
    }
    tally->code = tally->failed == 0 || tally->code == exit_code ? exit_code : EXIT_SOME;
    tally->failed++;
}

int tally_exit (const tally_t *tally)
{
    if (tally->failed == 0)
        return EXIT_OK;
    return tally->done == 0 ? tally->code : EXIT_SOME;
}
