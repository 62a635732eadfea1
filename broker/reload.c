/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Failure: everything is read and judged before anything is changed. Files are read by the errands'
 * thread, and what they say is taken over by the loop. */
#include "reload.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "log/log.h"
#include "notify.h"
#include "settings.h"
#include "taskmq.pb-c.h"

/* systemd wants the time too, to tell this reload from an earlier one. */
static void notify_begin (void)
{
    char state[80];
    struct timespec now;
    clock_gettime (CLOCK_MONOTONIC, &now);
    snprintf (state, sizeof (state), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
              (uint64_t) now.tv_sec * 1000000 + (uint64_t) now.tv_nsec / 1000);
    notify_supervisor (state);
}

static bool read_again (config_t *out, const daemon_t *self, char error[CONFIG_ERROR_SIZE])
{
    config_init (out);
    if (config_parse (out, self->argc, self->argv, environ, error) &&
        config_check_addresses (out, error))
        return true;
    config_free (out);
    return false;
}

/* Takes over what may change now; says in the log what differs. */
static void take (daemon_t *self, config_t *wanted, size_t *changed, size_t *later)
{
    for (size_t i = 0; i < CONFIG_KEYS; i++) {
        config_key_t key = (config_key_t) i;
        bool now = config_rules[i].when == CONFIG_WHEN_NOW;
        bool same = config_same (&self->config, wanted, key);
        if (now)
            config_move (&self->config, wanted, key); /* also who said it */
        if (same)
            continue;
        *(now ? changed : later) += 1;
        log_write (now ? LOG_LEVEL_INFO : LOG_LEVEL_WARNING, "RELOAD",
                   now ? "takes effect" : "takes effect at the next start",
                   LOG_FIELDS (LOG_TEXT ("key", config_rules[i].key)));
    }
}

static void apply (daemon_t *self)
{
    log_configure ((log_level_t) self->config.numbers[CONFIG_LOG_LEVEL],
                   self->config.numbers[CONFIG_LOG_FORMAT] != 0);
    atomic_store (&self->free_bytes_min, self->config.numbers[CONFIG_FREE_SPACE_MIN]);
    settings_fill (&self->options, &self->config, self->links);
    server_configure (self->server, &self->options);
}

/* The errands' thread. */
static void run (void *context, errand_t *errand)
{
    daemon_t *self = context;
    reloading_t *reloading = &self->reloading;
    char error[CONFIG_ERROR_SIZE];
    config_t wanted;
    notify_begin ();
    bool good = read_again (&wanted, self, error);
    if (good) {
        pthread_mutex_lock (&reloading->lock);
        if (reloading->fresh)
            config_free (&reloading->wanted);
        reloading->wanted = wanted;
        reloading->fresh = true;
        pthread_mutex_unlock (&reloading->lock);
    } else {
        log_write (LOG_LEVEL_ERROR, "RELOAD-REFUSED", "nothing was changed",
                   LOG_FIELDS (LOG_TEXT ("error", error)));
        notify_supervisor ("READY=1");
    }
    if (good || errand->request == NULL)
        reloading->inner.run (reloading->inner.context, errand);
    if (!good)
        errand_refuse (errand, TMQ_INVALID, "%.500s", error);
}

void reload_take (void *context)
{
    daemon_t *self = context;
    reloading_t *reloading = &self->reloading;
    config_t wanted;
    size_t changed = 0;
    size_t later = 0;
    pthread_mutex_lock (&reloading->lock);
    bool fresh = reloading->fresh;
    if (fresh)
        wanted = reloading->wanted;
    reloading->fresh = false;
    pthread_mutex_unlock (&reloading->lock);
    if (!fresh)
        return;
    take (self, &wanted, &changed, &later);
    config_free (&wanted);
    apply (self);
    log_write (LOG_LEVEL_INFO, "RELOADED", "the configuration was read again",
               LOG_FIELDS (LOG_NUMBER ("changed", changed), LOG_NUMBER ("later", later)));
    notify_supervisor ("READY=1");
}

void reload_open (daemon_t *self)
{
    pthread_mutex_init (&self->reloading.lock, NULL);
    for (size_t i = 0; i < ACCESS_RUNNERS; i++) {
        if (self->runners[i].op != TASKMQ__REQUEST__OP_RELOAD)
            continue;
        self->reloading.inner = self->runners[i];
        self->runners[i] = (errand_runner_t){TASKMQ__REQUEST__OP_RELOAD, run, self};
    }
}

void reload_close (daemon_t *self)
{
    if (self->reloading.inner.run == NULL)
        return;
    if (self->reloading.fresh)
        config_free (&self->reloading.wanted);
    pthread_mutex_destroy (&self->reloading.lock);
}
