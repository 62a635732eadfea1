/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "link/cancels.h"

#include <stdio.h>
#include <stdlib.h>

#include "log/log.h"

enum {
    ROUND = 256,    /* that go in a turn; then sockets again */
    RETRY_MS = 1000 /* after an answer that settles nothing */
};

struct cancels {
    const settings_t *settings;
    const char *ns;
    cancels_ask_fn *ask;
    void *context;
    watch_t *again;
    cancel_t *first;
    cancel_t *last;
    uint64_t count;
    uint64_t dropped;
};

static void cancel_free (cancel_t *cancel)
{
    cancel->account->held[HOLD_CANCELS]--;
    account_release (cancel->account);
    free (cancel);
}

static void forget (cancel_t *cancel)
{
    cancels_t *self = cancel->all;
    *(cancel->next != NULL ? &cancel->next->previous : &self->last) = cancel->previous;
    *(cancel->previous != NULL ? &cancel->previous->next : &self->first) = cancel->next;
    self->count--;
    cancel_free (cancel);
}

/* A code that passes says nothing about the task. */
void cancels_came (cancel_t *cancel, int code)
{
    if (tmq_code_retriable (code))
        watch_after (cancel->all->again, RETRY_MS);
    else
        forget (cancel);
}

/* False: no other one can go now. */
static bool go (cancel_t *cancel)
{
    cancels_t *self = cancel->all;
    const int code = self->ask (self->context, cancel);
    if (code == TMQ_UNREACHABLE) /* cancels_go comes when it is back */
        return false;
    if (code != TMQ_OK)
        cancels_came (cancel, code);
    return !tmq_code_retriable (code);
}

static void go_again (void *context)
{
    cancels_t *self = context;
    size_t count = 0;
    cancel_t *next;
    for (cancel_t *at = self->first; at != NULL; at = next) {
        next = at->next;
        if (at->ticket != 0)
            continue;
        if (count++ == ROUND) {
            watch_after (self->again, 0);
            return;
        }
        if (!go (at))
            return;
    }
}

void cancels_go (cancels_t *self)
{
    go_again (self);
}

/* A principal has half as many at most, in all its namespaces together: one alone takes no
 * namespace's for itself. Two of them can. */
static cancel_t *make (cancels_t *self, account_t *account)
{
    const uint64_t most = self->settings->numbers[SETTING_CANCELS_MAX];
    const bool room = self->count < most && account->held[HOLD_CANCELS] < (most + 1) / 2;
    cancel_t *made = room ? calloc (1, sizeof *made) : NULL;
    if (made != NULL) {
        made->account = account_retain (account);
        account->held[HOLD_CANCELS]++;
    }
    if (made == NULL && self->dropped++ == 0)
        log_write (
            LOG_LEVEL_WARNING, "GATEWAY-CANCELS",
            "a cancel was dropped: as many are kept as 'cancels_max' allows, of a principal half",
            LOG_FIELDS (LOG_TEXT ("namespace", self->ns)));
    return made;
}

bool cancels_add (cancels_t *self, account_t *account, const char *owner, const tmq_id_t *id,
                  const char *message)
{
    cancel_t *cancel = make (self, account);
    if (cancel == NULL)
        return false;
    cancel->all = self;
    cancel->id = *id;
    cancel->message = message;
    cancel->owned = owner != NULL;
    snprintf (cancel->owner, sizeof cancel->owner, "%s", owner != NULL ? owner : "");
    cancel->previous = self->last;
    *(self->last != NULL ? &self->last->next : &self->first) = cancel;
    self->last = cancel;
    self->count++;
    go (cancel);
    return true;
}

void cancels_count (const cancels_t *self, uint64_t *kept, uint64_t *dropped)
{
    *kept = self->count;
    *dropped = self->dropped;
}

cancels_t *cancels_new (loop_t *loop, const settings_t *settings, const char *ns,
                        cancels_ask_fn *ask, void *context)
{
    cancels_t *self = calloc (1, sizeof *self);
    if (self == NULL)
        return NULL;
    self->settings = settings;
    self->ns = ns;
    self->ask = ask;
    self->context = context;
    self->again = loop_timer (loop, go_again, self);
    if (self->again == NULL)
        cancels_free (&self);
    return self;
}

void cancels_free (cancels_t **self_p)
{
    cancels_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    if (self->count > 0)
        log_write (
            LOG_LEVEL_WARNING, "GATEWAY-CANCELS",
            "tasks whose callers have left go on: the broker did not answer",
            LOG_FIELDS (LOG_TEXT ("namespace", self->ns), LOG_NUMBER ("tasks", self->count)));
    for (cancel_t *cancel = self->first, *next; cancel != NULL; cancel = next) {
        next = cancel->next;
        cancel_free (cancel);
    }
    watch_free (&self->again);
    free (self);
}
