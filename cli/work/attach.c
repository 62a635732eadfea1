/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "work/attach.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "screen/output.h"

enum {
    TRIES_MAX = 4,                     /* of one that the broker takes later */
    SLICE_BYTES = 4 * 1024 * 1024,     /* read of a large one before other jobs have their turn */
    LOOKS_MAX = 100 * 1000,            /* entries of the directory */
    NAMES_MAX = TMQ_ARTIFACTS_MAX + 1, /* kept of them; the last one is told, for it is too many */
    TOLD_MAX = 10                      /* lines about what is not attached; then a number */
};

/* Types. */

static const char *type_of (const char *name)
{
    static const struct {
        const char *extension;
        const char *type;
    } types[] = {{"txt", "text/plain"},        {"log", "text/plain"},
                 {"md", "text/markdown"},      {"html", "text/html"},
                 {"htm", "text/html"},         {"css", "text/css"},
                 {"csv", "text/csv"},          {"tsv", "text/tab-separated-values"},
                 {"json", "application/json"}, {"jsonl", "application/jsonl"},
                 {"xml", "application/xml"},   {"yaml", "application/yaml"},
                 {"yml", "application/yaml"},  {"pdf", "application/pdf"},
                 {"png", "image/png"},         {"jpg", "image/jpeg"},
                 {"jpeg", "image/jpeg"},       {"gif", "image/gif"},
                 {"webp", "image/webp"},       {"svg", "image/svg+xml"},
                 {"mp4", "video/mp4"},         {"webm", "video/webm"},
                 {"mp3", "audio/mpeg"},        {"wav", "audio/wav"},
                 {"ogg", "audio/ogg"},         {"zip", "application/zip"},
                 {"gz", "application/gzip"},   {"zst", "application/zstd"},
                 {"tar", "application/x-tar"}, {"diff", "text/x-diff"},
                 {"patch", "text/x-diff"}};
    const char *dot = strrchr (name, '.');
    for (size_t i = 0; dot && i < sizeof types / sizeof *types; i++)
        if (strcasecmp (dot + 1, types[i].extension) == 0)
            return types[i].type;
    return NULL; /* application/octet-stream */
}

/* What is there. */

/* A line about one that is not attached; after TOLD_MAX lines they are only counted. It is in the
 * task's log, too: who reads the task does not see our stderr. */
__attribute__ ((format (printf, 4, 5))) static void tell (attach_t *self, const attach_of_t *of,
                                                          const char *name, const char *format, ...)
{
    char id[37];
    char why[600];
    va_list list;
    if (self->told >= TOLD_MAX) {
        self->untold++;
        return;
    }
    self->told++;
    va_start (list, format);
    vsnprintf (why, sizeof why, format, list);
    va_end (list);
    char *safe = safe_text (of->app, name);
    tmq_id_format (&of->assignment->task_id, id);
    note (of->app, "taskctl: %s: %s is not attached: %s", id, safe, why);
    char *line = NULL;
    const int length = asprintf (&line, "taskctl: %s is not attached: %s\n", safe, why);
    if (length > 0)
        tmq_worker_log (of->worker, of->assignment, TMQ_LOG_ERR, line, (size_t) length, NULL);
    if (length >= 0)
        free (line);
    free (safe);
}

/* NULL: it counts. */
static const char *flaw_of (int directory, const char *name)
{
    struct stat info;
    if (fstatat (directory, name, &info, AT_SYMLINK_NOFOLLOW) != 0)
        return strerror (errno);
    if (S_ISDIR (info.st_mode))
        return "it is a directory, and these are not looked into";
    if (!S_ISREG (info.st_mode))
        return "it is no regular file";
    return tmq_artifact_name_flaw (name);
}

static void tell_rest (attach_t *self, const attach_of_t *of)
{
    char id[37];
    if (self->untold == 0)
        return;
    tmq_id_format (&of->assignment->task_id, id);
    note (of->app, "taskctl: %s: %zu more are not attached", id, self->untold);
    self->untold = 0;
}

/* The first ones by name, however many come by. */
typedef struct first {
    char **names; /* in order */
    size_t count;
    size_t most;
    size_t seen;
} first_t;

static void first_take (first_t *self, const char *name)
{
    size_t at = self->count;
    self->seen++;
    while (at > 0 && strcmp (name, self->names[at - 1]) < 0)
        at--;
    if (at == self->most)
        return;
    if (self->count == self->most)
        free (self->names[--self->count]);
    memmove (self->names + at + 1, self->names + at, (self->count - at) * sizeof *self->names);
    self->names[at] = must_copy (name);
    self->count++;
}

static void first_free (first_t *self)
{
    for (size_t i = 0; i < self->count; i++)
        free (self->names[i]);
    free (self->names);
}

/* False: there are more than are looked at. */
static bool sort_out (const attach_t *self, DIR *entries, first_t *good, first_t *bad)
{
    size_t looks = 0;
    for (const struct dirent *entry = readdir (entries); entry; entry = readdir (entries)) {
        if (strcmp (entry->d_name, ".") == 0 || strcmp (entry->d_name, "..") == 0)
            continue;
        if (++looks > LOOKS_MAX)
            return false;
        first_take (flaw_of (self->directory, entry->d_name) ? bad : good, entry->d_name);
    }
    return true;
}

static void tell_bad (attach_t *self, const attach_of_t *of, const first_t *bad)
{
    for (size_t i = 0; i < bad->count; i++) {
        const char *flaw = flaw_of (self->directory, bad->names[i]);
        tell (self, of, bad->names[i], "%s", flaw ? flaw : "it changed while it was looked at");
    }
    self->untold += bad->seen - bad->count;
    tell_rest (self, of);
}

static void tell_too_many (attach_t *self, const attach_of_t *of, const first_t *good)
{
    char id[37];
    const size_t more = good->seen - TMQ_ARTIFACTS_MAX;
    if (more == 1) {
        tell (self, of, good->names[TMQ_ARTIFACTS_MAX], "a task has at most %d artifacts",
              TMQ_ARTIFACTS_MAX);
        return;
    }
    char *name = safe_text (of->app, good->names[TMQ_ARTIFACTS_MAX]);
    tmq_id_format (&of->assignment->task_id, id);
    note (of->app,
          "taskctl: %s: %zu of %zu files are not attached, by name from %s on: a task has at most "
          "%d artifacts",
          id, more, good->seen, name, TMQ_ARTIFACTS_MAX);
    free (name);
}

static void tell_unseen (const attach_of_t *of)
{
    char id[37];
    tmq_id_format (&of->assignment->task_id, id);
    note (of->app,
          "taskctl: %s: its directory of artifacts has more than %d entries; the others were not "
          "looked at, and are not attached",
          id, LOOKS_MAX);
}

/* Where it stands among others: 0 for what needs no upload. */
typedef struct ranked {
    uint64_t bytes;
    char *name;
} ranked_t;

static int compare_ranked (const void *a, const void *b)
{
    const ranked_t *one = a;
    const ranked_t *other = b;
    if (one->bytes != other->bytes)
        return one->bytes < other->bytes ? -1 : 1;
    return strcmp (one->name, other->name);
}

static void rank_names (const attach_t *self)
{
    ranked_t ranked[TMQ_ARTIFACTS_MAX];
    const size_t count = self->count < TMQ_ARTIFACTS_MAX ? self->count : TMQ_ARTIFACTS_MAX;
    for (size_t i = 0; i < count; i++) {
        struct stat info;
        const bool is_large =
            fstatat (self->directory, self->names[i], &info, AT_SYMLINK_NOFOLLOW) == 0 &&
            info.st_size > TMQ_FRAME_BYTES_MAX;
        ranked[i] = (ranked_t){is_large ? (uint64_t) info.st_size : 0, self->names[i]};
    }
    if (count > 1)
        qsort (ranked, count, sizeof *ranked, compare_ranked);
    for (size_t i = 0; i < count; i++)
        self->names[i] = ranked[i].name;
}

static void look (attach_t *self, const attach_of_t *of)
{
    self->directory = open (of->kept, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    const int again = self->directory < 0 ? -1 : fcntl (self->directory, F_DUPFD_CLOEXEC, 0);
    DIR *entries = again < 0 ? NULL : fdopendir (again);
    if (!entries) {
        tell (self, of, "what it left", "%s", strerror (errno));
        if (again >= 0)
            close (again);
        return;
    }
    first_t good = {.names = must_grow (NULL, NAMES_MAX, sizeof (char *)), .most = NAMES_MAX};
    first_t bad = {.names = must_grow (NULL, TOLD_MAX, sizeof (char *)), .most = TOLD_MAX};
    const bool all = sort_out (self, entries, &good, &bad);
    closedir (entries);
    tell_bad (self, of, &bad);
    if (good.seen > TMQ_ARTIFACTS_MAX)
        tell_too_many (self, of, &good);
    if (!all)
        tell_unseen (of);
    self->names = good.names;
    self->count = good.count;
    rank_names (self);
    first_free (&bad);
}

/* One file. */

static void close_file (attach_t *self)
{
    if (self->file >= 0)
        close (self->file);
    self->file = -1;
    self->body.fd = -1; /* it was the same */
    body_drop (&self->body);
    self->upload = (upload_t){0};
    self->named = false;
    self->tries = 0;
    self->again_at_ms = 0;
}

static void next_file (attach_t *self)
{
    close_file (self);
    self->at++;
}

static bool open_file (attach_t *self, const attach_of_t *of)
{
    struct stat info;
    const char *name = self->names[self->at];
    self->file =
        openat (self->directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (self->file < 0 || fstat (self->file, &info) != 0) {
        tell (self, of, name, "%s", strerror (errno));
        return false;
    }
    self->length = (uint64_t) info.st_size;
    if (!S_ISREG (info.st_mode))
        tell (self, of, name, "it is no regular file any more");
    else if (self->length > TMQ_BLOB_BYTES_MAX)
        tell (self, of, name, "it is larger than 1 GiB");
    else
        return true;
    return false;
}

static bool name_it (attach_t *self, const attach_of_t *of, const void *bytes, size_t length)
{
    tmq_artifact_t artifact;
    tmq_error_t error = {0};
    tmq_artifact_init (&artifact);
    artifact.name = self->names[self->at];
    artifact.type = type_of (artifact.name);
    artifact.bytes = bytes;
    artifact.length = length;
    if (self->length > TMQ_FRAME_BYTES_MAX)
        artifact.blob = self->upload.blob;
    error.code = tmq_worker_artifact_start (of->worker, of->assignment, &artifact, TMQ_FOREVER,
                                            self->user, &error);
    self->named = error.code == TMQ_OK;
    if (error.code == TMQ_STALE_LEASE)
        self->done = true;
    else if (error.code != TMQ_OK)
        tell (self, of, artifact.name, "%s", error.text);
    return self->named;
}

static bool send_small (attach_t *self, const attach_of_t *of)
{
    const size_t length = (size_t) self->length;
    char *bytes = must_alloc (length + 1);
    const ssize_t got = pread (self->file, bytes, length + 1, 0);
    bool sent = false;
    if (got == (ssize_t) length)
        sent = name_it (self, of, bytes, length);
    else
        tell (self, of, self->names[self->at], "%s",
              got < 0 ? strerror (errno) : "it changed while it was read");
    free (bytes);
    return sent;
}

/* False: it is given up. */
static bool read_slice (attach_t *self, const attach_of_t *of)
{
    const uint64_t left = self->length - self->body.bytes;
    const size_t length = left < SLICE_BYTES ? (size_t) left : SLICE_BYTES;
    char *piece = must_alloc (length);
    const ssize_t got = body_take (&self->body, self->file, piece, length);
    free (piece);
    if (got > 0)
        return true;
    tell (self, of, self->names[self->at], "%s",
          got < 0 ? strerror (errno) : "it changed while it was read");
    return false;
}

/* Once for a task: nobody is to wonder why it does not end. */
static void tell_wait (attach_t *self, const attach_of_t *of)
{
    char id[37];
    if (self->waited || !upload_stands (&self->upload))
        return;
    self->waited = true;
    char *safe = safe_text (of->app, self->names[self->at]);
    tmq_id_format (&of->assignment->task_id, id);
    note (of->app, "taskctl: %s: %s is not attached yet, and the task waits for it: %s", id, safe,
          self->upload.why);
    free (safe);
}

/* False: it waits for room that is not waited for any more. */
static bool go_on_large (attach_t *self, const attach_of_t *of)
{
    tell_wait (self, of);
    if (of->hurry && upload_lacks_room (&self->upload)) {
        tell (self, of, self->names[self->at], "%s; taskctl was told to stop", self->upload.why);
        return false;
    }
    upload_go_on (&self->upload, of->app->client);
    return true;
}

static bool send_large (attach_t *self, const attach_of_t *of)
{
    if (self->body.bytes < self->length)
        return read_slice (self, of);
    if (!self->upload.user)
        upload_begin (&self->upload, of->app->client, &self->body, self->user);
    if (!go_on_large (self, of))
        return false;
    if (self->upload.code != TMQ_OK) {
        tell (self, of, self->names[self->at], "%s", self->upload.why);
        return false;
    }
    return !self->upload.whole || name_it (self, of, NULL, 0);
}

/* What can be done now of the present file. False: it is given up. */
static bool step (attach_t *self, const attach_of_t *of)
{
    if (self->file < 0 && !open_file (self, of))
        return false;
    if (self->named || (self->again_at_ms && mono_ms () < self->again_at_ms))
        return true;
    return self->length > TMQ_FRAME_BYTES_MAX ? send_large (self, of) : send_small (self, of);
}

/* The whole. */

void attach_init (attach_t *self)
{
    *self = (attach_t){.directory = -1, .file = -1};
    body_init (&self->body);
}

void attach_free (attach_t *self)
{
    close_file (self);
    if (self->directory >= 0)
        close (self->directory);
    for (size_t i = 0; i < self->count; i++)
        free (self->names[i]);
    free (self->names);
    attach_init (self);
}

attach_state_t attach_run (attach_t *self, const attach_of_t *of, void *user)
{
    const tmq_attempt_state_t state = tmq_worker_state (of->worker, of->assignment);
    if (state == TMQ_ATTEMPT_CANCELLED)
        return ATTACH_CANCELLED;
    if (self->done || state == TMQ_ATTEMPT_LOST) {
        tell_rest (self, of);
        return ATTACH_DONE;
    }
    if (!self->begun) {
        self->begun = true;
        self->user = user;
        look (self, of);
    }
    const size_t count = self->count < TMQ_ARTIFACTS_MAX ? self->count : TMQ_ARTIFACTS_MAX;
    if (self->at < count && !step (self, of) && !self->done)
        next_file (self);
    self->done = self->done || self->at >= count;
    if (self->done)
        tell_rest (self, of);
    return self->done ? ATTACH_DONE : ATTACH_RUNS;
}

/* Its request is on its way: the broker may have attached it, or may still do so. */
static void tell_unknown (attach_t *self, const attach_of_t *of)
{
    char id[37];
    char *line = NULL;
    char *safe = safe_text (of->app, self->names[self->at]);
    tmq_id_format (&of->assignment->task_id, id);
    const int length =
        asprintf (&line, "whether %s is attached is not known: taskctl was told to stop\n", safe);
    if (length > 0) {
        note (of->app, "taskctl: %s: %.*s", id, length - 1, line);
        tmq_worker_log (of->worker, of->assignment, TMQ_LOG_ERR, line, (size_t) length, NULL);
    }
    if (length >= 0)
        free (line);
    free (safe);
}

void attach_give_up (attach_t *self, const attach_of_t *of)
{
    const tmq_attempt_state_t state = tmq_worker_state (of->worker, of->assignment);
    if (self->done || state == TMQ_ATTEMPT_CANCELLED || state == TMQ_ATTEMPT_LOST)
        return;
    if (!self->begun)
        look (self, of);
    self->begun = self->done = true;
    if (self->named) {
        tell_unknown (self, of);
        next_file (self);
    }
    for (; self->at < self->count && self->at < TMQ_ARTIFACTS_MAX; next_file (self)) {
        if (self->upload.refused_since_ms > 0)
            tell (self, of, self->names[self->at], "%s; taskctl was told to stop",
                  self->upload.why);
        else
            tell (self, of, self->names[self->at], "taskctl was told to stop");
    }
    tell_rest (self, of);
}

static void take_refusal (attach_t *self, const attach_of_t *of, const tmq_completion_t *answer)
{
    const uint32_t wait_ms = answer->error ? answer->error->retry_after_ms : 0;
    self->named = false;
    if (answer->code == TMQ_NO_BLOB && self->length > TMQ_FRAME_BYTES_MAX) {
        upload_begin (&self->upload, of->app->client, &self->body, self->user);
        return;
    }
    if (answer->code == TMQ_STALE_LEASE || answer->code == TMQ_WRONG_STATUS) {
        self->done = true;
        return;
    }
    if (wait_ms > 0 && !self->blocked && ++self->tries < TRIES_MAX) {
        self->again_at_ms = mono_ms () + wait_ms;
        return;
    }
    self->blocked = self->blocked || wait_ms > 0;
    tell (self, of, self->names[self->at], "%s", answer->error ? answer->error->text : "refused");
    next_file (self);
}

void attach_take (attach_t *self, const attach_of_t *of, const tmq_completion_t *answer)
{
    if (self->file < 0)
        return;
    if (answer->op != TMQ_OP_ARTIFACT)
        upload_take (&self->upload, of->app->client, &self->body, answer);
    else if (answer->code == TMQ_OK)
        next_file (self);
    else
        take_refusal (self, of, answer);
}
