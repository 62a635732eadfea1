/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Failure: a deed is answered as it went, also when the disk does not take its line: it was done,
 * and the line waits to be written. A backup that fails is told to who asks for it next. */
#include "records.h"

#include <inttypes.h>
#include <pthread.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "audit/pages.h"
#include "backup/backup.h"
#include "core/base/memory.h"
#include "keys.h"
#include "log/log.h"
#include "taskmq.pb-c.h"
#include "timestamp.h"
#include "types.h"

enum {
    ID_BYTES_OF_BACKUP = 16,
    ID_TEXT_SIZE = 2 * ID_BYTES_OF_BACKUP + 1,
    ASKED_MS_MAX = 10000, /* without a word of the client a backup is given up, … */
    GONE_MS = 300,        /* … and so long after its connection ended: it may come back */
    BUSY_RETRY_MS = 250,
    PATH_SIZE = 4096 + 64
};

/* The newest backup that was begun. */
typedef struct making {
    char id[ID_TEXT_SIZE]; /* empty: none was */
    bool under_way;
    bool with_keys;
    char actor[128];
    char from[64];
    int64_t asked_ms; /* when its client last asked */
    store_error_t error;
} making_t;

/* A runner in front of another one. */
typedef struct watched {
    records_t *records;
    errand_runner_t inner;
} watched_t;

struct records {
    records_options_t options;
    watched_t watched[RECORDS_WATCHED_MAX];
    size_t watched_count;
    _Atomic peer_t asker; /* of the backup that is being made; 0: there is none, or it is gone … */
    _Atomic int64_t gone_ms; /* … since then */
    pthread_mutex_t lock;    /* guards what follows */
    making_t making;
    bool stop;
    bool has_thread; /* to be joined */
    pthread_t thread;
};

/* The record of deeds. */

static void run_page (records_t *self, errand_t *errand, const Taskmq__Audit *asked)
{
    page_t page;
    const char *nearest;
    if (asked->kind[0] != '\0' && !audit_knows_kind (asked->kind, &nearest)) {
        errand_refuse (errand, TMQ_INVALID, "kind: the record has no \"%.64s\"%s%s%s", asked->kind,
                       nearest != NULL ? "; did you mean " : "", nearest != NULL ? nearest : "",
                       nearest != NULL ? "?" : "");
        return;
    }
    size_t limit = asked->limit != 0 ? asked->limit : TMQ_AUDIT_LINES_DEFAULT;
    page_query_t query = {.file = asked->file,
                          .offset = asked->offset,
                          .kind = asked->kind,
                          .actor = asked->actor,
                          .since = (int64_t) asked->since,
                          .limit = limit,
                          .bytes_max = TMQ_PART_BYTES_MAX};
    if (!page_read (&page, self->options.directory, &query)) {
        errand_refuse (errand, TMQ_INTERNAL,
                       "the record cannot be read, at its file %" PRIu32 ": %s", page.file,
                       page.problem != NULL ? page.problem : "no memory");
    } else {
        Taskmq__Part part = TASKMQ__PART__INIT;
        part.body = (uint32_t) page.lines.length;
        part.file = page.file;
        part.offset = page.offset;
        part.more = page.more;
        errand_reply (errand, TASKMQ__REPLY__BODY_AUDIT_PAGE, &part.base);
        if (page.lines.length > 0)
            errand->body = buf_new (page.lines.data, page.lines.length);
    }
    bytes_free (&page.lines);
}

static void run_head (records_t *self, errand_t *errand)
{
    audit_stats_t stats;
    Taskmq__AuditAt at = TASKMQ__AUDIT_AT__INIT;
    audit_stats (self->options.audit, &stats);
    at.n = stats.head.n;
    at.hash = (ProtobufCBinaryData){CHAIN_HASH_BYTES, stats.head.hash};
    errand_reply (errand, TASKMQ__REPLY__BODY_AUDIT_AT, &at.base);
}

/* Backups. */

void records_gone (records_t *self, peer_t peer)
{
    peer_t asker = peer;
    if (atomic_load (&self->asker) != peer)
        return;
    atomic_store (&self->gone_ms, clock_ms (CLOCK_MONOTONIC));
    atomic_compare_exchange_strong (&self->asker, &asker, 0);
}

static bool goes_on (void *context)
{
    records_t *self = context;
    pthread_mutex_lock (&self->lock);
    bool gone = atomic_load (&self->asker) == 0 &&
                clock_ms (CLOCK_MONOTONIC) - atomic_load (&self->gone_ms) > GONE_MS;
    bool good =
        !self->stop && !gone && clock_ms (CLOCK_MONOTONIC) - self->making.asked_ms < ASKED_MS_MAX;
    pthread_mutex_unlock (&self->lock);
    return good;
}

static void tell (const records_t *self, const making_t *making, store_code_t code,
                  const backup_made_t *made, const store_error_t *error)
{
    char detail[640];
    char lacks[96] = "";
    if (made->manifest.lacks > 0)
        snprintf (lacks, sizeof (lacks), ", without %" PRIu64 " large bodies that tasks name",
                  made->manifest.lacks);
    if (code == STORE_OK)
        snprintf (detail, sizeof (detail),
                  "%" PRIu64 " tasks, batch %" PRIu64 " of epoch %" PRIu64 ", %" PRIu64
                  " bytes%s%s",
                  made->manifest.tasks, made->manifest.batch, made->manifest.epoch, made->bytes,
                  making->with_keys ? ", with the broker's key" : "", lacks);
    else
        snprintf (detail, sizeof (detail), "%s", error->text);
    audit_line_t line = {.kind = AUDIT_BACKUP,
                         .actor = making->actor,
                         .from = making->from,
                         .object = made->name,
                         .outcome = code == STORE_OK ? NULL : "failed",
                         .detail = detail};
    if (code == STORE_OK && self->options.lacks != NULL)
        atomic_store (self->options.lacks, made->manifest.lacks);
    if (code == STORE_OK)
        log_write (LOG_LEVEL_INFO, "BACKUP", "a backup was made",
                   LOG_FIELDS (LOG_TEXT ("file", made->name), LOG_NUMBER ("bytes", made->bytes),
                               LOG_NUMBER ("batch", made->manifest.batch),
                               LOG_NUMBER ("tasks", made->manifest.tasks),
                               LOG_NUMBER ("steps", made->steps),
                               LOG_NUMBER ("longest_step_us", made->step_us_max)));
    if (code == STORE_OK && made->manifest.lacks > 0)
        log_write (
            LOG_LEVEL_WARNING, "BLOB-DAMAGED",
            "blobs that tasks name are missing or damaged: they are not in the backup",
            LOG_FIELDS (LOG_TEXT ("file", made->name), LOG_NUMBER ("blobs", made->manifest.lacks)));
    if (code != STORE_OK)
        log_write (LOG_LEVEL_WARNING, "BACKUP-FAILED", "a backup was not made",
                   LOG_FIELDS (LOG_TEXT ("error", error->text)));
    audit_note_synced (self->options.audit, &line);
}

static void *make (void *context)
{
    records_t *self = context;
    char key[PATH_SIZE];
    backup_made_t made;
    store_error_t error = {STORE_OK, ""};
    pthread_setname_np (pthread_self (), "backup");
    pthread_mutex_lock (&self->lock);
    making_t making = self->making;
    pthread_mutex_unlock (&self->lock);
    snprintf (key, sizeof (key), "%s/server.key", self->options.directory);
    backup_options_t options = {.store = self->options.store,
                                .directory = self->options.directory,
                                .access = self->options.access,
                                .server_key = making.with_keys ? key : NULL,
                                .id = making.id,
                                .free_bytes_min = shared_limit (self->options.free_bytes_min),
                                .keep = self->options.keep,
                                .goes_on = goes_on,
                                .context = self};
    store_code_t code = backup_make (&options, &made, &error);
    tell (self, &making, code, &made, &error);
    pthread_mutex_lock (&self->lock);
    self->making.under_way = false;
    self->making.error = error;
    self->making.error.code = code;
    pthread_mutex_unlock (&self->lock);
    return NULL;
}

/* The lock is held. */
static bool begin (records_t *self, errand_t *errand, const char *id, bool with_keys)
{
    making_t *making = &self->making;
    if (self->has_thread)
        pthread_join (self->thread, NULL); /* it has ended */
    *making = (making_t){
        .under_way = true, .with_keys = with_keys, .asked_ms = clock_ms (CLOCK_MONOTONIC)};
    snprintf (making->id, sizeof (making->id), "%s", id);
    snprintf (making->actor, sizeof (making->actor), "%s", errand->identity);
    snprintf (making->from, sizeof (making->from), "%s", errand->address);
    atomic_store (&self->asker, errand->peer);
    self->has_thread = pthread_create (&self->thread, NULL, make, self) == 0;
    if (!self->has_thread)
        *making = (making_t){.under_way = false};
    return self->has_thread;
}

static void refuse_failed (errand_t *errand, const store_error_t *error)
{
    tmq_code_t code = error->code == STORE_ERROR_FULL      ? TMQ_STORE_FULL
                      : error->code == STORE_ERROR_FOREIGN ? TMQ_UNSUPPORTED
                                                           : TMQ_INTERNAL;
    errand_refuse (errand, code, "%s", error->text);
}

/* True: the answer is that it is being made, or that it cannot be. */
static bool is_being_made (records_t *self, errand_t *errand, const char *id,
                           const Taskmq__Backup *asked)
{
    Taskmq__Part part = TASKMQ__PART__INIT;
    making_t *making = &self->making;
    char name[BACKUP_NAME_SIZE];
    uint64_t bytes;
    bool answered = true;
    pthread_mutex_lock (&self->lock);
    bool same = strcmp (making->id, id) == 0;
    part.more = true;
    if (making->under_way && !same) {
        errand_refuse (errand, TMQ_LIMIT, "another backup is being made");
        errand->retry_after_ms = BUSY_RETRY_MS;
    } else if (making->under_way) {
        making->asked_ms = clock_ms (CLOCK_MONOTONIC);
        atomic_store (&self->asker, errand->peer);
        errand_reply (errand, TASKMQ__REPLY__BODY_BACKUP_PART, &part.base);
    } else if (same && making->error.code != STORE_OK) {
        refuse_failed (errand, &making->error);
        making->id[0] = '\0'; /* who asks again begins again */
    } else if (backup_find (self->options.directory, id, name, &bytes)) {
        answered = false;
    } else if (asked->offset > 0 || same) {
        errand_refuse (errand, TMQ_NOT_FOUND, "the backup is not kept any more");
    } else if (!begin (self, errand, id, asked->with_keys)) {
        errand_refuse (errand, TMQ_INTERNAL, "cannot start a thread");
    } else {
        errand_reply (errand, TASKMQ__REPLY__BODY_BACKUP_PART, &part.base);
    }
    pthread_mutex_unlock (&self->lock);
    return answered;
}

static void run_backup (records_t *self, errand_t *errand, const Taskmq__Backup *asked)
{
    char id[ID_TEXT_SIZE];
    char name[BACKUP_NAME_SIZE];
    char path[BACKUP_NAME_SIZE + sizeof (BACKUP_DIRECTORY)];
    uint64_t bytes = 0;
    store_error_t error;
    sodium_bin2hex (id, sizeof (id), asked->id.data, ID_BYTES_OF_BACKUP);
    if (is_being_made (self, errand, id, asked))
        return;
    Taskmq__Part part = TASKMQ__PART__INIT;
    char *chunk = memory_alloc (TMQ_PART_BYTES_MAX);
    int64_t got = -1;
    if (backup_find (self->options.directory, id, name, &bytes))
        got = backup_read (self->options.directory, name, asked->offset, chunk, TMQ_PART_BYTES_MAX,
                           &error);
    if (got < 0) {
        errand_refuse (errand, TMQ_NOT_FOUND, "the backup is not kept any more");
    } else {
        snprintf (path, sizeof (path), BACKUP_DIRECTORY "/%s", name);
        part.body = (uint32_t) got;
        part.offset = asked->offset + (uint64_t) got;
        part.more = part.offset < bytes;
        part.total = bytes;
        part.n = part.more ? 0 : backup_lacks (self->options.directory, name);
        part.name = path;
        errand_reply (errand, TASKMQ__REPLY__BODY_BACKUP_PART, &part.base);
        if (got > 0)
            errand->body = buf_new (chunk, (size_t) got);
    }
    sodium_memzero (chunk, TMQ_PART_BYTES_MAX); /* it may hold the broker's key */
    free (chunk);
}

/* What others do. */

static void join (char *out, size_t size, char *const *words, size_t count)
{
    size_t length = 0;
    out[0] = '\0';
    for (size_t i = 0; i < count && length < size; i++) {
        int more = snprintf (out + length, size - length, "%s%s", i > 0 ? " " : "", words[i]);
        length += more > 0 ? (size_t) more : 0;
    }
}

typedef struct deed {
    audit_line_t line;
    char detail[AUDIT_TEXT_MAX];
    char key[KEY_TEXT_SIZE];
} deed_t;

static void name_key (deed_t *deed, const ProtobufCBinaryData *data)
{
    key_public_t key;
    memcpy (key.bytes, data->data, sizeof (key.bytes)); /* the validator knows its length */
    key_text_public (deed->key, &key);
}

/* False: it changes nothing. NULL is a request of the server itself. */
static bool describe (deed_t *deed, const errand_t *errand, const Taskmq__Request *request)
{
    audit_line_t *line = &deed->line;
    if (request == NULL) { /* other deeds of its own it notes where it does them */
        line->kind = AUDIT_RELOADED;
        snprintf (deed->detail, sizeof (deed->detail), "SIGHUP");
        return errand->op == TASKMQ__REQUEST__OP_RELOAD;
    }
    switch (request->op_case) {
    case TASKMQ__REQUEST__OP_ENROLL:
        line->kind =
            strncmp (errand->identity, "invite:", 7) == 0 ? AUDIT_INVITE_USED : AUDIT_KEY_ENROLLED;
        name_key (deed, &request->enroll->public_key);
        line->object = deed->key;
        return true;
    case TASKMQ__REQUEST__OP_KEY_TRUST:
        line->kind = AUDIT_KEY_TRUSTED;
        line->object = request->key_trust->name;
        name_key (deed, &request->key_trust->public_key);
        join (deed->detail, sizeof (deed->detail), request->key_trust->grants,
              request->key_trust->n_grants);
        return true;
    case TASKMQ__REQUEST__OP_KEY_REVOKE:
        line->kind = AUDIT_KEY_REVOKED;
        line->object = request->key_revoke->name;
        if (request->key_revoke->public_key.len > 0) {
            name_key (deed, &request->key_revoke->public_key);
            line->object = deed->key;
        }
        return true;
    case TASKMQ__REQUEST__OP_INVITE:
        line->kind = AUDIT_INVITE_MADE;
        line->object = request->invite->name;
        join (deed->detail, sizeof (deed->detail), request->invite->grants,
              request->invite->n_grants);
        return true;
    case TASKMQ__REQUEST__OP_INVITE_REVOKE:
        line->kind = AUDIT_INVITE_REVOKED;
        line->object = request->invite_revoke->invitation;
        return true;
    case TASKMQ__REQUEST__OP_SERVER_KEY_ROTATE: line->kind = AUDIT_KEY_ROTATED; return true;
    case TASKMQ__REQUEST__OP_RELOAD: line->kind = AUDIT_RELOADED; return true;
    default: return false;
    }
}

static void note_deed (const records_t *self, const errand_t *errand,
                       const Taskmq__Request *request)
{
    deed_t deed = {.line = {.actor = errand->identity, .from = errand->address}};
    if (!describe (&deed, errand, request))
        return;
    if (deed.line.object != NULL && deed.line.object[0] == '\0')
        deed.line.object = NULL;
    deed.line.detail = deed.detail;
    if (errand->code != TMQ_OK) {
        deed.line.outcome = "refused";
        deed.line.detail = errand->text[0] != '\0' ? errand->text : code_text ((int) errand->code);
    } else if (errand->idle) {
        deed.line.outcome = "nothing";
        deed.line.detail = "there was none";
    }
    audit_note_synced (self->options.audit, &deed.line);
}

static void run_watched (void *context, errand_t *errand)
{
    const watched_t *watched = context;
    watched->inner.run (watched->inner.context, errand);
    Taskmq__Request *request = errand->request == NULL
                                   ? NULL
                                   : taskmq__request__unpack (NULL, buf_length (errand->request),
                                                              buf_bytes (errand->request));
    if (request == NULL && errand->request != NULL)
        return;
    note_deed (watched->records, errand, request);
    if (request != NULL)
        taskmq__request__free_unpacked (request, NULL);
}

void records_watch (records_t *self, errand_runner_t *runners, size_t count)
{
    for (size_t i = 0; i < count && self->watched_count < RECORDS_WATCHED_MAX; i++) {
        watched_t *watched = &self->watched[self->watched_count++];
        *watched = (watched_t){self, runners[i]};
        runners[i] = (errand_runner_t){runners[i].op, run_watched, watched};
    }
}

/* Space. */

static void run_vacuum (records_t *self, errand_t *errand, const Taskmq__Vacuum *asked)
{
    store_vacuum_t told;
    store_error_t error;
    Taskmq__Vacuumed vacuumed = TASKMQ__VACUUMED__INIT;
    if (store_vacuum (self->options.store, asked->begin, &told, &error) != STORE_OK) {
        refuse_failed (errand, &error);
        return;
    }
    vacuumed.file_bytes = told.file_bytes;
    vacuumed.free_bytes = told.free_bytes;
    vacuumed.given_bytes = told.given_bytes;
    vacuumed.more = told.more;
    errand_reply (errand, TASKMQ__REPLY__BODY_VACUUMED, &vacuumed.base);
}

/* All. */

static void run (void *context, errand_t *errand)
{
    records_t *self = context;
    Taskmq__Request *request =
        taskmq__request__unpack (NULL, buf_length (errand->request), buf_bytes (errand->request));
    if (request == NULL) {
        errand_refuse (errand, TMQ_INTERNAL, "the request cannot be read again");
        return;
    }
    switch (request->op_case) {
    case TASKMQ__REQUEST__OP_BACKUP: run_backup (self, errand, request->backup); break;
    case TASKMQ__REQUEST__OP_VACUUM: run_vacuum (self, errand, request->vacuum); break;
    case TASKMQ__REQUEST__OP_AUDIT:
    case TASKMQ__REQUEST__OP_AUDIT_HEAD:
        if (self->options.audit == NULL)
            errand_refuse (errand, TMQ_UNSUPPORTED,
                           "the broker keeps no record (audit/file = off)");
        else if (request->op_case == TASKMQ__REQUEST__OP_AUDIT)
            run_page (self, errand, request->audit);
        else
            run_head (self, errand);
        break;
    default: errand->code = TMQ_UNSUPPORTED;
    }
    taskmq__request__free_unpacked (request, NULL);
}

void records_runners (records_t *self, errand_runner_t out[RECORDS_RUNNERS])
{
    static const uint32_t ops[RECORDS_RUNNERS] = {
        TASKMQ__REQUEST__OP_AUDIT, TASKMQ__REQUEST__OP_AUDIT_HEAD, TASKMQ__REQUEST__OP_BACKUP,
        TASKMQ__REQUEST__OP_VACUUM};
    for (int i = 0; i < RECORDS_RUNNERS; i++)
        out[i] = (errand_runner_t){ops[i], run, self};
}

records_t *records_new (const records_options_t *options)
{
    records_t *self = memory_zero (1, sizeof (*self));
    self->options = *options;
    pthread_mutex_init (&self->lock, NULL);
    backup_clean (options->directory);
    return self;
}

void records_free (records_t **self_p)
{
    records_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    pthread_mutex_lock (&self->lock);
    self->stop = true;
    pthread_mutex_unlock (&self->lock);
    if (self->has_thread)
        pthread_join (self->thread, NULL);
    pthread_mutex_destroy (&self->lock);
    free (self);
}
