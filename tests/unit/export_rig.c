/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "export_rig.h"

#include "support/cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "export/tasks_file.h"
#include "store/wakeup.h"
#include "support/timing.h"

static void raise_wakeup (void *context)
{
    wakeup_raise (*(const int *) context);
}

static void must_not_fail (const store_error_t *error)
{
    fprintf (stderr, "%s\n", error->text);
    abort ();
}

void rig_open (rig_t *self, const char *uri)
{
    directory_make (self->directory);
    snprintf (self->path, sizeof (self->path), "%s/tasks.jsonl", self->directory);
    snprintf (self->aside, sizeof (self->aside), "%s.foreign", self->path);
    self->exporter = NULL;
    self->stop_ms = TIMING_PATIENCE_MS;
    self->compact = (compactor_options_t){UINT64_MAX, UINT64_MAX, 0};
    self->wake_fd = wakeup_new ();
    self->fixture = fixture_new (uri);
    self->fixture->options.notify = raise_wakeup;
    self->fixture->options.notify_context = &self->wake_fd;
    fixture_open (self->fixture);
}

void rig_export (rig_t *self)
{
    char error[TASKS_FILE_ERROR_SIZE] = "";
    exporter_options_t options = {.store = self->fixture->store,
                                  .path = self->path,
                                  .last_pos = self->fixture->pos,
                                  .wake_fd = self->wake_fd,
                                  .stop_ms = self->stop_ms,
                                  .compact = self->compact,
                                  .failed = must_not_fail};
    self->exporter = exporter_new (&options, error);
    if (self->exporter == NULL)
        fail_msg ("%s", error);
}

void rig_settle (rig_t *self)
{
    fixture_settle (self->fixture);
    exporter_stats_t stats;
    WAIT_FOR ((exporter_stats (self->exporter, &stats), stats.pos == self->fixture->pos),
              TIMING_PATIENCE_MS);
}

void rig_close (rig_t *self)
{
    void *state = self->fixture;
    exporter_free (&self->exporter);
    fixture_teardown (&state);
    close (self->wake_fd);
    directory_remove (self->directory);
}
