/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "log_desk.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "logs/logs.h"

/* A task that a batch removes. */
typedef struct gone {
    uint64_t batch;
    int64_t number;
} gone_t;

struct log_desk {
    logs_t *logs;
    store_t *store;
    gone_t *gone; /* by batch; their batches are not durable */
    size_t gone_count;
    size_t gone_capacity;
    logs_news_t unread; /* what a former run has left, while the store is out of reach … */
    bool has_unread;
};

void log_desk_read (log_desk_t *self, errand_t *errand)
{
    logs_read (self->logs, errand);
}

void log_desk_give (log_desk_t *self, engine_t *engine)
{
    log_piece_t *piece;
    while ((piece = engine_log_next (engine)) != NULL)
        logs_write (self->logs, piece);
}

/* Everything that the store has kept stands in its tables since the start. */
static store_code_t judge_left (log_desk_t *self, const logs_news_t *news, store_error_t *error)
{
    lookup_t keys[SHELF_SLICE_MAX];
    memset (keys, 0, sizeof (keys));
    for (size_t i = 0; i < news->left_count; i++) {
        keys[i].kind = LOOKUP_ID;
        keys[i].ns = news->left[i].ns;
        keys[i].id = news->left[i].id;
    }
    store_code_t code = store_load (self->store, keys, news->left_count, error);
    if (code == STORE_ERROR_AWAY) { /* asked again when there is something to do */
        self->unread = *news;
        self->has_unread = true;
        return STORE_OK;
    }
    int64_t *numbers = memory_alloc (SHELF_SLICE_MAX * sizeof (*numbers));
    size_t count = 0;
    for (size_t i = 0; i < news->left_count; i++) {
        const record_t *record = keys[i].record;
        bool is_there =
            keys[i].damaged || (record != NULL && record->number == news->left[i].number);
        if (code == STORE_OK && !is_there)
            numbers[count++] = news->left[i].number;
        if (record != NULL)
            record_free (keys[i].record);
    }
    if (count > 0)
        logs_forget (self->logs, numbers, count);
    else
        free (numbers);
    logs_look (self->logs);
    return code;
}

store_code_t log_desk_take (log_desk_t *self, engine_t *engine, now_t now, store_error_t *error)
{
    logs_news_t news;
    store_code_t code = STORE_OK;
    if (self->has_unread) {
        self->has_unread = false;
        news = self->unread;
        code = judge_left (self, &news, error);
    }
    while (code == STORE_OK && logs_done (self->logs, &news)) {
        if (news.piece != NULL)
            engine_log_done (engine, news.piece);
        if (news.errand != NULL)
            engine_errand_done (engine, news.errand, now);
        if (news.looked)
            code = judge_left (self, &news, error);
    }
    return code;
}

void log_desk_hold (log_desk_t *self, const batch_t *batch)
{
    if (!logs_are_kept (self->logs))
        return;
    for (size_t i = 0; i < batch->removals_count; i++) {
        self->gone =
            memory_grow (self->gone, &self->gone_capacity, self->gone_count, sizeof (*self->gone));
        self->gone[self->gone_count++] = (gone_t){batch->no, batch->removals[i].number};
    }
}

void log_desk_durable (log_desk_t *self, uint64_t batch)
{
    size_t count = 0;
    while (count < self->gone_count && self->gone[count].batch <= batch)
        count++;
    if (count == 0)
        return;
    int64_t *numbers = memory_alloc (count * sizeof (*numbers));
    for (size_t i = 0; i < count; i++)
        numbers[i] = self->gone[i].number;
    self->gone_count -= count;
    memmove (self->gone, self->gone + count, self->gone_count * sizeof (*self->gone));
    logs_forget (self->logs, numbers, count);
}

void log_desk_drop (log_desk_t *self)
{
    self->gone_count = 0;
}

bool log_desk_is_idle (const log_desk_t *self)
{
    return logs_pending (self->logs) == 0;
}

int log_desk_fd (const log_desk_t *self)
{
    return logs_fd (self->logs);
}

shelf_stats_t log_desk_stats (log_desk_t *self)
{
    return logs_stats (self->logs);
}

void log_desk_configure (log_desk_t *self, const shelf_limits_t *limits)
{
    logs_configure (self->logs, limits);
}

log_desk_t *log_desk_new (const char *directory, const shelf_limits_t *limits, store_t *store)
{
    log_desk_t *self = memory_zero (1, sizeof (*self));
    self->store = store;
    self->logs = logs_new (directory, limits);
    if (self->logs == NULL)
        log_desk_free (&self);
    return self;
}

void log_desk_free (log_desk_t **self_p)
{
    log_desk_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    logs_free (&self->logs);
    free (self->gone);
    free (self);
}
