/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A program outside of the tree that finds libtaskmq as any user does. */
#include <stdio.h>
#include <taskmq.h>

int main (void)
{
    tmq_client_options_t options;
    tmq_client_t *client = NULL;
    tmq_error_t error;
    tmq_client_options_init (&options);
    int code = tmq_client_options_set (&options, "endpoint", "ipc:///nonexistent/x.ipc", &error);
    if (code == TMQ_OK)
        code = tmq_client_new (&client, &options, &error);
    if (code == TMQ_OK)
        code = tmq_ping (client, 50, &error);
    tmq_client_free (&client);
    tmq_client_options_clear (&options);
    printf ("%s\n", tmq_code_name (code));
    return TMQ_VERSION_CHECK () ? 0 : 1;
}
