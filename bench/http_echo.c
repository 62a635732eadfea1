/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* taskmq-http-echo: a worker for ./dev bench gateway, which gives each task back as a text:
 * taskmq-http-echo DIRECTORY QUEUE. Many are completed at once. Runs until it is killed. */
#include <stdio.h>
#include <stdlib.h>
#include <taskmq.h>

enum { PREFETCH = 100 };

static void die (const tmq_error_t *error)
{
    fprintf (stderr, "taskmq-http-echo: %s\n", error->text);
    exit (1);
}

static void free_completions (tmq_client_t *client)
{
    tmq_completion_t *done[PREFETCH];
    size_t count = 0;
    if (tmq_client_poll (done, PREFETCH, &count, client, 0) != TMQ_OK)
        return;
    for (size_t i = 0; i < count; i++)
        tmq_completion_free (done[i]);
}

int main (int argc, char **argv)
{
    static const tmq_outcome_t outcome = {
        .result = "{\"echo\":\"done\"}", .result_bytes = 15, .result_type = "application/json"};
    tmq_client_options_t options;
    tmq_worker_options_t work;
    tmq_client_t *client;
    tmq_worker_t *worker = NULL;
    tmq_assignment_t *task;
    tmq_error_t error = {0};
    const char *queue = argc > 2 ? argv[2] : "echo";
    tmq_client_options_init (&options);
    tmq_worker_options_init (&work);
    options.directory = argc > 1 ? argv[1] : NULL;
    work.queues = &queue;
    work.queues_count = 1;
    work.capacity = PREFETCH;
    if (tmq_client_new (&client, &options, &error) != TMQ_OK ||
        tmq_worker_new (&worker, client, &work, &error) != TMQ_OK)
        die (&error);
    while (tmq_worker_next (&task, worker, TMQ_FOREVER, &error) == TMQ_OK) {
        tmq_worker_started (worker, task, NULL);
        if (tmq_worker_complete_start (worker, task, &outcome, TMQ_FOREVER, NULL, &error) != TMQ_OK)
            die (&error);
        tmq_assignment_free (task);
        free_completions (client);
    }
    die (&error);
}
