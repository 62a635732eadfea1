/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A worker for the tests of MCP that fails each task of the queue "panics" by a code of JSON-RPC,
 * which a program of taskctl work cannot give: panic_worker DIRECTORY. Runs until it is killed. */
#include <stdio.h>
#include <taskmq.h>
#include <time.h>

enum { RPC_INTERNAL = -32603 };

static void fail_one (tmq_worker_t *worker)
{
    static const tmq_outcome_t outcome = {
        .error_code = RPC_INTERNAL, .error_message = "internal panic", .final = true};
    static const struct timespec a_while = {0, 400000000}; /* longer than a tool's `inline` */
    tmq_assignment_t *task;
    if (tmq_worker_next (&task, worker, TMQ_FOREVER, NULL) != TMQ_OK)
        return;
    tmq_worker_started (worker, task, NULL);
    nanosleep (&a_while, NULL);
    tmq_worker_fail (worker, task, &outcome, TMQ_FOREVER, NULL);
    tmq_assignment_free (task);
}

int main (int argc, char **argv)
{
    static const char *const queues[] = {"panics"};
    tmq_client_options_t options;
    tmq_worker_options_t work;
    tmq_client_t *client;
    tmq_worker_t *worker;
    tmq_error_t error;
    tmq_client_options_init (&options);
    tmq_worker_options_init (&work);
    options.directory = argc > 1 ? argv[1] : NULL;
    work.queues = queues;
    work.queues_count = 1;
    if (tmq_client_new (&client, &options, &error) != TMQ_OK ||
        tmq_worker_new (&worker, client, &work, &error) != TMQ_OK) {
        fprintf (stderr, "panic_worker: %s\n", error.text);
        return 1;
    }
    for (;;)
        fail_one (worker);
}
