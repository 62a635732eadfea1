/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A store with an exporter of tasks.jsonl behind it, in a directory of its own. */
#ifndef TASKMQ_TEST_EXPORT_RIG_H
#define TASKMQ_TEST_EXPORT_RIG_H

#include "export/exporter.h"
#include "store_support.h"

typedef struct rig {
    fixture_t *fixture;
    char directory[64];
    char path[80];
    char aside[96]; /* where a foreign file goes */
    int wake_fd;
    uint32_t stop_ms;
    compactor_options_t compact; /* never, until a test asks for it */
    exporter_t *exporter;
} rig_t;

void rig_open (rig_t *self, const char *uri);
/* A failure of the exporter ends the test. */
void rig_export (rig_t *self);
/* Everything committed is in the tables and in the file. */
void rig_settle (rig_t *self);
void rig_close (rig_t *self);

#endif
