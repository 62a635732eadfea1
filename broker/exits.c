/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The table of exit codes and the two ways to fail. */
#include "exits.h"

#include <unistd.h>

#include "log/log.h"

const char *exits_id (exits_t code)
{
    switch (code) {
#define X(number, NAME, id, meaning)                                                               \
    case EXITS_##NAME: return id;
        EXITS_MAP (X)
#undef X
    }
    return "INTERNAL";
}

const char *exits_meaning (exits_t code)
{
    switch (code) {
#define X(number, NAME, id, meaning)                                                               \
    case EXITS_##NAME: return meaning;
        EXITS_MAP (X)
#undef X
    }
    return "";
}

exits_t exits_of_store (store_code_t code)
{
    switch (code) {
    case STORE_OK: return EXITS_OK;
    case STORE_ERROR_STOPPED: return EXITS_OK;
    case STORE_ERROR_FULL: return EXITS_FULL;
    case STORE_ERROR_AWAY: /* asked for where nobody can wait: the supervisor tries again */
    case STORE_ERROR_IO: return EXITS_IO;
    case STORE_ERROR_CORRUPT:
    case STORE_ERROR_DAMAGED: return EXITS_CORRUPT;
    case STORE_ERROR_FOREIGN: return EXITS_FOREIGN;
    case STORE_ERROR_NEWER: return EXITS_NEWER;
    case STORE_ERROR_ACCESS: return EXITS_DATA;
    case STORE_ERROR_OPTIONS: return EXITS_USAGE;
    case STORE_ERROR_BUSY: return EXITS_BUSY;
    case STORE_ERROR_FENCED: return EXITS_FENCED;
    case STORE_ERROR_OWNED: return EXITS_RUNNING;
    case STORE_ERROR_CUT: return EXITS_ROLLBACK;
    }
    return EXITS_INTERNAL;
}

exits_t exits_fail (exits_t code, const char *text)
{
    log_write (LOG_LEVEL_ERROR, exits_id (code), text, LOG_FIELDS (LOG_NUMBER ("exit", code)));
    return code;
}

_Noreturn void exits_store_failed (const store_error_t *error)
{
    _exit ((int) exits_fail (exits_of_store (error->code), error->text));
}
