/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What a core is told once, when it is made. */
#ifndef TASKMQ_CLIENT_CONFIG_H
#define TASKMQ_CLIENT_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct core_config {
    uint8_t seed[32];             /* random: request ids, worker ids and jitter come from it */
    const char *ns;               /* "" for the default; strings are copied */
    const char *name;             /* program and version, for the broker's log */
    const char *const *endpoints; /* for texts; the driver connects */
    size_t endpoints_count;       /* at least 1 */
    size_t requests_max;          /* open operations */
    size_t request_bytes_max;
    size_t completions_max; /* open operations and answers that the application has not taken */
    size_t reads_max;       /* open requests whose replies may be large */
    uint32_t reconnect_ms_min;
    uint32_t reconnect_ms_max;
    bool log;
    bool link;      /* tell when the link comes and goes */
    bool fail_fast; /* until the first welcome: what cannot be served now ends now */
} core_config_t;

#endif
