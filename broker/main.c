/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* taskmqd: the command line, then start, loop and stop of the broker. */
#include <czmq.h>

#include "daemon.h"
#include "log/log.h"
#include "notify.h"

static exits_t run (daemon_t *self)
{
    exits_t code = daemon_start (self);
    if (code == EXITS_OK) {
        server_run (self->server);
        notify_supervisor ("STOPPING=1");
    }
    code = daemon_stop (self, code);
    if (code == EXITS_OK)
        log_write (LOG_LEVEL_INFO, exits_id (code), exits_meaning (code), NULL);
    return code;
}

int main (int argc, char **argv)
{
    static daemon_t self = DAEMON_INIT;
    char error[CONFIG_ERROR_SIZE];
    zsys_handler_set (NULL);
    config_init (&self.config);
    if (!config_parse_arguments (&self.config, argc, argv, error))
        return (int) exits_fail (EXITS_USAGE, error);
    log_configure (self.config.log_level, self.config.log_json);
    if (!config_check_addresses (&self.config, error, sizeof (error)))
        return (int) exits_fail (EXITS_ADDRESS, error);
    switch (self.config.action) {
    case CONFIG_HELP: config_print_help (); break;
    case CONFIG_VERSION: puts ("taskmqd " TASKMQ_VERSION); break;
    case CONFIG_CHECK: puts ("the configuration is good"); break;
    case CONFIG_RUN: return (int) run (&self);
    }
    config_free (&self.config);
    return (int) EXITS_OK;
}
