/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "explain.h"

#include <string.h>

#include "counters.h"

static const explanation_t explanations[] = {
#define X(name, meaning, bad) {#name, meaning, bad, COUNTER_TOTAL},
    ENGINE_COUNTER_MAP (X) ROOM_COUNTER_MAP (X)
#undef X
#define X(name, meaning, bad) {#name, meaning, bad, COUNTER_GAUGE},
        GAUGE_MAP (X)
#undef X
#define X(name, meaning, bad) {"server_" #name, meaning, bad, COUNTER_TOTAL},
            SERVER_COUNTER_MAP (X)
#undef X
};

const explanation_t *explain (const char *name)
{
    static const explanation_t unknown = {"", "not known to this taskctl", "", COUNTER_UNKNOWN};
    for (size_t i = 0; i < sizeof explanations / sizeof *explanations; i++) {
        if (strcmp (explanations[i].name, name) == 0)
            return &explanations[i];
    }
    return &unknown;
}
