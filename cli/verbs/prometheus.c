/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "verbs/prometheus.h"

#include <stdio.h>

#include "base/memory.h"
#include "exposition.h"

void prometheus_print (const app_t *app, const tmq_stats_t *stats, const char *broker)
{
    bytes_t out = BYTES_INIT;
    exposition_broker (&out, stats, broker);
    exposition_queues (&out, &(exposition_space_t){.ns = app->ns, .stats = stats}, 1);
    if (out.failed)
        must_grow (NULL, SIZE_MAX, 2); /* ends the program: memory ran out */
    fwrite (out.data, 1, out.length, stdout);
    bytes_free (&out);
}
