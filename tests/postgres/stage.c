/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "stage.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rules.h"
#include "support/cmocka_all.h"
#include "support/timing.h"

static void prepare (stage_t *self, const char *const *settings)
{
    for (size_t i = 0; settings != NULL && settings[i] != NULL; i++) {
        assert_true (i + 1 < POSTGRES_SETTINGS_MAX);
        self->server.settings[i] = settings[i];
    }
    postgres_start (&self->server);
    daemon_init (&self->broker);
    self->broker.arguments[0] = "--store";
    self->broker.arguments[1] = "postgresql";
    self->broker.arguments[2] = "--database";
    self->broker.arguments[3] = self->uri;
}

void stage_arguments (int argc, char **argv, unsigned *percent, unsigned *seed)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp (argv[i], "--percent") == 0)
            *percent = (unsigned) strtoul (argv[i + 1], NULL, 10);
        else if (strcmp (argv[i], "--seed") == 0)
            *seed = (unsigned) strtoul (argv[i + 1], NULL, 10);
        else if (strcmp (argv[i], "--only") == 0)
            cmocka_set_test_filter (argv[i + 1]);
    }
    postgres_need ();
    printf ("seed %u\n", *seed);
}

unsigned stage_part (unsigned full, unsigned percent)
{
    return (full * percent + 99) / 100;
}

unsigned stage_part_of_kinds (unsigned full, unsigned percent, unsigned kinds)
{
    unsigned part = stage_part (full, percent);
    return part < kinds ? kinds : part;
}

void stage_init (stage_t *self, const char *const *settings)
{
    memset (self, 0, sizeof *self);
    postgres_init (&self->server);
    prepare (self, settings);
    postgres_uri (&self->server, "taskmq", "taskmq", self->uri);
}

void stage_init_tcp (stage_t *self, const char *const *settings)
{
    memset (self, 0, sizeof *self);
    postgres_init_tcp (&self->server);
    prepare (self, settings);
    stage_through (self, self->server.port);
}

void stage_through (stage_t *self, int port)
{
    postgres_uri_tcp (port, self->uri);
}

void stage_destroy (stage_t *self)
{
    daemon_destroy (&self->broker);
    postgres_destroy (&self->server);
}

tmq_id_t stage_submit (tmq_client_t *client, const char *queue)
{
    tmq_submit_t task;
    tmq_receipt_t receipt;
    tmq_error_t error = {0};
    tmq_submit_init (&task);
    task.queue = queue;
    task.payload = "x";
    task.payload_bytes = 1;
    if (tmq_submit (&receipt, client, &task, TIMING_PATIENCE_MS, &error) != TMQ_OK)
        fail_msg ("%s", error.text);
    return receipt.id;
}

void stage_check_tables (const stage_t *self, const history_t *history)
{
    char *broken = rules_broken (&self->server, "");
    char *untold = rules_untold (&self->server, history, "");
    if (broken[0] != '\0' || untold[0] != '\0')
        fail_msg ("the tables: %s; %s", broken, untold);
    free (broken);
    free (untold);
}
