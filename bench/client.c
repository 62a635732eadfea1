/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "client.h"

void client_check (int code, const char *what, const tmq_error_t *error)
{
    if (code != TMQ_OK)
        die ("taskmq: %s: %s: %s", what, tmq_code_name (code), error->text);
}

tmq_client_t *client_connect (const server_t *server)
{
    return client_connect_to (server, NULL);
}

tmq_client_t *client_connect_to (const server_t *server, const char *ns)
{
    const char *endpoints[] = {server->address};
    tmq_client_options_t options;
    tmq_client_options_init (&options);
    options.endpoints = endpoints;
    options.endpoints_count = 1;
    options.name = "taskmq-bench";
    options.ns = ns;
    tmq_client_t *client;
    tmq_error_t error = {0};
    client_check (tmq_client_new (&client, &options, &error), "client", &error);
    client_check (tmq_client_connect (client, CLIENT_DEADLINE_MS, &error), "connect", &error);
    return client;
}

size_t client_reap (tmq_client_t *client, uint32_t timeout_ms, const char *what)
{
    tmq_completion_t *done[CLIENT_POLL_MAX];
    size_t count = 0;
    int code = tmq_client_poll (done, CLIENT_POLL_MAX, &count, client, timeout_ms);
    if (code != TMQ_OK && code != TMQ_TIMEOUT)
        die ("taskmq: poll: %s", tmq_code_name (code));
    for (size_t i = 0; i < count; i++) {
        if (done[i]->code != TMQ_OK)
            die ("taskmq: %s: %s", what, tmq_code_name (done[i]->code));
        tmq_completion_free (done[i]);
    }
    return count;
}
