/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "logs/logs.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/memory.h"
#include "log/log.h"
#include "logs/log_file.h"
#include "store/handover.h"
#include "taskmq.pb-c.h"
#include "timestamp.h"

enum { CUT_MS = 60 * 1000 /* from one LOGS-CUT to the next */ };

typedef enum job_kind { JOB_WRITE, JOB_READ, JOB_FORGET, JOB_CONFIGURE, JOB_LOOK } job_kind_t;

typedef struct job {
    node_t node; /* of all that were given to the thread */
    job_kind_t kind;
    log_piece_t *piece;
    errand_t *errand;
    int64_t *numbers;
    size_t count;
    shelf_limits_t limits;
    log_key_t *left; /* SHELF_SLICE_MAX */
    bool more;
} job_t;

struct logs {
    shelf_t *shelf; /* the thread's; NULL: logs are off */
    handover_t *handover;
    pthread_t thread;
    bool running;
    bool failing;       /* the thread's: said once */
    shelf_stats_t told; /* the thread's: as LOGS-CUT said last, … */
    int64_t told_until; /* … which it says no more before that */
    /* The asker's. */
    bool kept;
    bool looking;
    size_t pending;
    node_t jobs;
    pthread_mutex_t lock; /* guards stats */
    shelf_stats_t stats;
};

/* The thread. */

static void tell (logs_t *self, int error)
{
    if (error != 0 && !self->failing)
        log_write (LOG_LEVEL_WARNING, "LOGS-STALLED",
                   "logs of tasks are lost until they can be written; nothing else is",
                   LOG_FIELDS (LOG_TEXT ("error", strerror (error))));
    else if (error == 0 && self->failing)
        log_write (LOG_LEVEL_INFO, "LOGS-GO-ON", "logs of tasks are written again", NULL);
    self->failing = error != 0;
}

/* At most once in CUT_MS: a loss of power may do so to many files. The next line has them all. */
static void tell_cut (logs_t *self, int64_t mono_ms)
{
    char name[LOG_FILE_NAME_SIZE];
    shelf_stats_t now = shelf_stats (self->shelf);
    uint64_t files = now.cut_files - self->told.cut_files;
    if (files == 0 || mono_ms < self->told_until)
        return;
    log_file_name (name, now.cut_last.number, now.cut_last.attempt, now.cut_last.stream);
    log_write (LOG_LEVEL_WARNING, "LOGS-CUT",
               "ends of logs were cut off: too much before them is damaged",
               LOG_FIELDS (LOG_TEXT ("last", name), LOG_NUMBER ("files", files),
                           LOG_NUMBER ("bytes", now.cut - self->told.cut)));
    self->told = now;
    self->told_until = mono_ms + CUT_MS;
}

static void write_piece (logs_t *self, const log_piece_t *piece)
{
    int64_t mono_ms = clock_ms (CLOCK_MONOTONIC);
    tell (self, shelf_write (self->shelf, piece, mono_ms));
    tell_cut (self, mono_ms);
}

static void answer (logs_t *self, errand_t *errand)
{
    Taskmq__Request *request =
        taskmq__request__unpack (NULL, buf_length (errand->request), buf_bytes (errand->request));
    if (request == NULL || request->op_case != TASKMQ__REQUEST__OP_READ_LOG) {
        errand_refuse (errand, TMQ_INTERNAL, "the request could not be read again");
    } else {
        const Taskmq__ReadLog *ask = request->read_log;
        log_key_t key = {.number = errand->task_number,
                         .attempt = ask->attempt,
                         .stream = (tmq_log_stream_t) ask->stream};
        memcpy (key.id.bytes, ask->task_id.data, sizeof (key.id));
        memcpy (key.ns, errand->ns, sizeof (key.ns));
        size_t limit = ask->limit == 0 ? TMQ_LOG_BYTES_MAX : ask->limit;
        uint8_t *bytes = memory_alloc (limit);
        shelf_page_t page = {.offset = ask->offset};
        int error = self->shelf == NULL
                        ? 0
                        : shelf_read (self->shelf, &key, ask->offset, bytes, limit, &page);
        if (error != 0) {
            errand_refuse (errand, TMQ_INTERNAL, "the log cannot be read: %s", strerror (error));
        } else {
            Taskmq__Part out = TASKMQ__PART__INIT;
            out.file = page.attempt;
            out.offset = page.offset;
            out.body = (uint32_t) page.length;
            out.total = page.end;
            out.more = page.more;
            errand_reply (errand, TASKMQ__REPLY__BODY_LOG_PAGE, &out.base);
            errand->body = buf_new (bytes, page.length);
        }
        free (bytes);
    }
    taskmq__request__free_unpacked (request, NULL);
}

static void run (logs_t *self, job_t *job)
{
    if (job->kind == JOB_READ)
        answer (self, job->errand);
    if (self->shelf == NULL)
        return;
    if (job->kind == JOB_WRITE)
        write_piece (self, job->piece);
    if (job->kind == JOB_CONFIGURE)
        shelf_configure (self->shelf, &job->limits);
    if (job->kind == JOB_LOOK)
        job->more = shelf_look (self->shelf, job->left, &job->count);
    for (size_t i = 0; job->kind == JOB_FORGET && i < job->count; i++)
        shelf_forget (self->shelf, job->numbers[i]);
    pthread_mutex_lock (&self->lock);
    self->stats = shelf_stats (self->shelf);
    pthread_mutex_unlock (&self->lock);
}

static void *thread_run (void *context)
{
    logs_t *self = context;
    job_t *job;
    pthread_setname_np (pthread_self (), "logs");
    while ((job = handover_next (self->handover)) != NULL) {
        run (self, job);
        handover_finish (self->handover, job);
    }
    return NULL;
}

/* The asker. */

static void submit (logs_t *self, const job_t *job)
{
    job_t *own = memory_alloc (sizeof (*own));
    *own = *job;
    self->pending += job->kind != JOB_LOOK;
    list_push_back (&self->jobs, &own->node);
    handover_submit (self->handover, own);
}

static void job_free (job_t *job)
{
    list_remove (&job->node);
    free (job->numbers);
    free (job->left);
    free (job);
}

void logs_write (logs_t *self, log_piece_t *piece)
{
    self->kept = true;
    submit (self, &(job_t){.kind = JOB_WRITE, .piece = piece});
}

void logs_read (logs_t *self, errand_t *errand)
{
    submit (self, &(job_t){.kind = JOB_READ, .errand = errand});
}

void logs_forget (logs_t *self, int64_t *numbers, size_t count)
{
    submit (self, &(job_t){.kind = JOB_FORGET, .numbers = numbers, .count = count});
}

void logs_configure (logs_t *self, const shelf_limits_t *limits)
{
    submit (self, &(job_t){.kind = JOB_CONFIGURE, .limits = *limits});
}

void logs_look (logs_t *self)
{
    if (!self->looking)
        return;
    log_key_t *left = memory_zero (SHELF_SLICE_MAX, sizeof (*left));
    submit (self, &(job_t){.kind = JOB_LOOK, .left = left});
}

bool logs_are_kept (const logs_t *self)
{
    return self->kept || self->looking;
}

size_t logs_pending (const logs_t *self)
{
    return self->pending;
}

int logs_fd (const logs_t *self)
{
    return handover_fd (self->handover);
}

bool logs_done (logs_t *self, logs_news_t *out)
{
    job_t *job = handover_done (self->handover);
    if (job == NULL)
        return false;
    out->piece = job->piece;
    out->errand = job->errand;
    out->looked = job->kind == JOB_LOOK;
    out->left_count = out->looked ? job->count : 0;
    if (out->looked) {
        memcpy (out->left, job->left, job->count * sizeof (*job->left));
        self->looking = job->more;
        self->kept = self->kept || job->count > 0;
    } else {
        self->pending--;
    }
    job_free (job);
    return true;
}

shelf_stats_t logs_stats (logs_t *self)
{
    pthread_mutex_lock (&self->lock);
    shelf_stats_t stats = self->stats;
    pthread_mutex_unlock (&self->lock);
    return stats;
}

/* Life. */

logs_t *logs_new (const char *directory, const shelf_limits_t *limits)
{
    int error = 0;
    logs_t *self = memory_zero (1, sizeof (*self));
    pthread_mutex_init (&self->lock, NULL);
    list_init (&self->jobs);
    self->shelf = shelf_new (directory, limits, &error);
    if (self->shelf == NULL)
        log_write (LOG_LEVEL_WARNING, "LOGS-OFF",
                   "logs of tasks are not kept: their directory cannot be used",
                   LOG_FIELDS (LOG_TEXT ("path", directory), LOG_TEXT ("error", strerror (error))));
    self->looking = self->shelf != NULL;
    self->handover = handover_new ();
    self->running =
        self->handover != NULL && pthread_create (&self->thread, NULL, thread_run, self) == 0;
    if (!self->running)
        logs_free (&self);
    else
        logs_look (self);
    return self;
}

void logs_free (logs_t **self_p)
{
    logs_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    if (self->running) {
        handover_stop (self->handover);
        pthread_join (self->thread, NULL);
    }
    node_t *jobs = &self->jobs;
    for (node_t *node = list_pop_front (jobs); node != NULL; node = list_pop_front (jobs)) {
        job_t *job = LIST_ITEM (node, job_t, node);
        if (job->piece != NULL)
            log_piece_free (job->piece);
        job_free (job);
    }
    handover_free (&self->handover);
    shelf_free (&self->shelf);
    pthread_mutex_destroy (&self->lock);
    free (self);
}
