/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "owning.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "exits.h"
#include "log/log.h"
#include "notify.h"
#include "store/postgresql/database_options.h"
#include "timestamp.h"

enum {
    AGAIN_MS = 500,     /* between two tries to reach the database */
    ASK_AGAIN_MS = 5000 /* between two requests for time */
};

/* As much as the unit gives a start (TimeoutStartSec), so that no try takes longer. */
#define START_TIME_US "300000000"
#define ASK_FOR_TIME "EXTEND_TIMEOUT_USEC=" START_TIME_US "\nSTATUS=starts: waits for the database"
#define STANDS_BY "STATUS=standby: another broker owns the database"

/* False: it was another signal, and one waits on. */
static bool is_told_to_stop (int signal_fd)
{
    struct signalfd_siginfo signal;
    if (read (signal_fd, &signal, sizeof (signal)) != sizeof (signal))
        return false;
    if (signal.ssi_signo != SIGHUP)
        return true;
    log_write (LOG_LEVEL_WARNING, "RELOAD-EARLY",
               "a broker that does not own its data yet reads no configuration again: stop and "
               "start it",
               NULL);
    return false;
}

/* A session that somebody ended is made anew, and that is no news; a second try that fails is. */
static bool is_news (owning_t *self)
{
    bool blinked = self->owner[0] != '\0' && !self->blinked;
    self->blinked = self->blinked || blinked;
    return !blinked && !self->away;
}

/* A service manager ends a start that takes too long, and this one takes as long as the database.
 * A standby has started before. */
void owning_waits (owning_t *self)
{
    int64_t now_ms = clock_ms (CLOCK_MONOTONIC);
    if (self->ready || (self->asked_ms != 0 && now_ms - self->asked_ms < ASK_AGAIN_MS))
        return;
    self->asked_ms = now_ms;
    notify_supervisor (ASK_FOR_TIME);
}

/* A database that is out of reach is waited for at a start, too. */
static void wait_for_store (owning_t *self, int signal_fd, const store_error_t *error)
{
    struct pollfd signals = {.fd = signal_fd, .events = POLLIN};
    if (is_news (self)) {
        self->away = true;
        log_write (LOG_LEVEL_WARNING, "DATABASE-AWAY",
                   "the store is out of reach: the start waits for it",
                   LOG_FIELDS (LOG_TEXT ("why", error->text)));
        if (self->ready)
            notify_supervisor ("STATUS=standby: the database is out of reach");
    }
    owning_waits (self);
    if (poll (&signals, 1, AGAIN_MS) <= 0 || !is_told_to_stop (signal_fd))
        return;
    log_write (LOG_LEVEL_WARNING, "STOPPED-AWAY",
               "stopped while the store is out of reach, before anything was taken",
               LOG_FIELDS (LOG_NUMBER ("exit", EXITS_OK)));
    _exit (EXITS_OK);
}

/* A standby is at work, as far as the service manager has to know; it takes no requests. */
void owning_meets (owning_t *self, const char *owner)
{
    bool known = !self->away && strcmp (self->owner, owner) == 0;
    self->away = self->blinked = false;
    if (known)
        return;
    snprintf (self->owner, sizeof (self->owner), "%s", owner);
    log_write (LOG_LEVEL_INFO, "DATABASE-STANDBY", owner, NULL);
    if (!self->standby)
        return;
    (void) data_tell (self->data, true); /* it helps people, and nothing depends on it */
    notify_supervisor (self->ready ? STANDS_BY : "READY=1\n" STANDS_BY);
    self->ready = true;
}

void owning_ends (owning_t *self)
{
    self->owner[0] = '\0'; /* whoever owns it after this start has come to nothing is told anew */
    if (self->standby)
        (void) data_tell (self->data, false);
}

static _Noreturn void end (exits_t code)
{
    log_write (LOG_LEVEL_INFO, exits_id (code),
               "stopped as asked, while another broker owns the data", NULL);
    _exit ((int) code);
}

store_code_t owning_open (owning_t *self, store_t **out, const char *store,
                          const store_options_t *options, const data_t *data, int signal_fd,
                          boot_t *boot, store_error_t *error)
{
    bool standby = options->database != NULL && options->database->standby;
    *self = (owning_t){.data = data, .standby = standby};
    while (true) {
        store_error_t ignored;
        store_code_t code = store_open (out, store, options, boot, error);
        bool opened = code == STORE_OK;
        if (opened)
            code = store_own (*out, signal_fd, boot, error);
        if (code == STORE_ERROR_STOPPED && is_told_to_stop (signal_fd))
            end (EXITS_OK);
        if (code != STORE_ERROR_AWAY && code != STORE_ERROR_STOPPED)
            return code;
        if (opened)
            store_close (out, &ignored);
        if (code == STORE_ERROR_AWAY)
            wait_for_store (self, signal_fd, error);
        else
            self->away = false; /* it was in reach */
    }
}
