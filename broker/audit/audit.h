/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The record of who did what to the broker: DIR/audit.jsonl, a chain of lines (chain.h).
 *
 *     {"n":41,"at":…,"kind":"key.revoked","actor":"ops","from":"10.0.0.7","object":"render-7",
 *      "ns":null,"outcome":"ok","detail":null,"prev":"<64 hexadecimal digits>"}
 *
 * It never holds payloads, labels, secrets, routing ids or tokens: nobody who notes a line gives it
 * any.
 *
 * Lines are noted into a bounded queue and written by a thread of the record's own, because neither
 * the server nor the exporter may wait for this file, nor it for them. Where the disk takes
 * nothing the broker goes on serving: the queue fills, what does not fit is counted, and the hole
 * is itself a line as soon as lines can be written again. */
#ifndef TASKMQ_AUDIT_AUDIT_H
#define TASKMQ_AUDIT_AUDIT_H

#include <stdbool.h>
#include <stdint.h>

#include "chain.h"
#include "core/base/shared_limit.h"

/* X (NAME, name in the file, what of it is written): ALL, or only the first of a minute and a
 * source (`from`, else `actor`; for FIRST_OF_ACTOR the actor alone), then one line with the number
 * of the others. */
#define AUDIT_KIND_MAP(X)                                                                          \
    X (BROKER_STARTED, "broker.started", ALL)                                                      \
    X (BROKER_STOPPED, "broker.stopped", ALL)                                                      \
    X (LISTEN, "listen", ALL)                                                                      \
    X (KEY_TRUSTED, "key.trusted", ALL)                                                            \
    X (KEY_ENROLLED, "key.enrolled", ALL)                                                          \
    X (KEY_REVOKED, "key.revoked", ALL)                                                            \
    X (KEY_ROTATED, "key.rotated", ALL)                                                            \
    X (KEY_ENDED, "key.ended", ALL)                                                                \
    X (KEY_REFUSED, "key.refused", FIRST_TEN)                                                      \
    X (INVITE_MADE, "invite.made", ALL)                                                            \
    X (INVITE_USED, "invite.used", ALL)                                                            \
    X (INVITE_REVOKED, "invite.revoked", ALL)                                                      \
    X (ACCESS_CHANGED, "access.changed", ALL)                                                      \
    X (RELOADED, "broker.reloaded", ALL)                                                           \
    X (RESTORED, "broker.restored", ALL)                                                           \
    X (DENIED, "denied", FIRST_TEN)                                                                \
    X (QUOTA_HIT, "quota.hit", FIRST_OF_ACTOR)                                                     \
    X (TASK_READ, "task.read", FIRST_TEN)                                                          \
    X (TASK_CANCELLED, "task.cancelled", ALL)                                                      \
    X (TASK_RETRIED, "task.retried", ALL)                                                          \
    X (TASK_CHANGED, "task.changed", ALL)                                                          \
    X (TASK_ANSWERED, "task.answered", ALL)                                                        \
    X (TASK_PURGED, "task.purged", ALL)                                                            \
    X (TASK_ADOPTED, "task.adopted", ALL)                                                          \
    X (TASK_IMPORTED, "task.imported", FIRST_OF_ACTOR)                                             \
    X (TASKS_MORE, "tasks.more", ALL)                                                              \
    X (QUEUE_CHANGED, "queue.changed", ALL)                                                        \
    X (WORKER_DRAINED, "worker.drained", ALL)                                                      \
    X (BACKUP, "backup", ALL)                                                                      \
    X (AUDIT_BEGUN, "audit.begun", ALL)                                                            \
    X (AUDIT_TURNED, "audit.turned", ALL)                                                          \
    X (AUDIT_TORN, "audit.torn", ALL)                                                              \
    X (AUDIT_GAP, "audit.gap", ALL)

typedef enum audit_kind {
#define X(NAME, name, some) AUDIT_##NAME,
    AUDIT_KIND_MAP (X)
#undef X
        AUDIT_KINDS
} audit_kind_t;

/* The file has lines of this kind; else *nearest is the one that may have been meant, or NULL. */
bool audit_knows_kind (const char *name, const char **nearest);

/* All texts are borrowed and may be NULL; of each the first AUDIT_TEXT_MAX bytes are kept. */
enum { AUDIT_TEXT_MAX = 1500 };
typedef struct audit_line {
    audit_kind_t kind;
    const char *actor;   /* the principal, or who the door took it for */
    const char *from;    /* its address */
    const char *object;  /* what it was done to: a principal, a task, an address */
    const char *ns;      /* namespace */
    const char *outcome; /* NULL: "ok" */
    const char *detail;
} audit_line_t;

typedef struct audit audit_t;

enum { AUDIT_ERROR_SIZE = 512, AUDIT_PATH_SIZE = 4096 + 64 };

typedef struct audit_options {
    const char *directory; /* of the data */
    uint64_t generation;   /* of the database, for line 1 */
    uint64_t epoch;
    uint64_t keep_bytes;       /* the file is turned at this size, and at each new day in UTC */
    int64_t keep_ms;           /* turned files are removed so long after their last line */
    int64_t (*wall_ms) (void); /* NULL: the clock */
    shared_limit_t *free_bytes_min; /* of the disk, which packing leaves; NULL: any */
} audit_options_t;

/* Opens the file, cuts off what a crash left of a last line, and starts the thread. NULL with
 * `error` if the file cannot be used. */
audit_t *audit_new (const audit_options_t *options, char error[AUDIT_ERROR_SIZE]);
/* Writes and syncs what was noted, as far as the disk takes it; accepts a NULL object. */
void audit_free (audit_t **self);

/* Notes a line, which is on the disk within about a second. Never waits for the disk. Any thread. A
 * NULL record takes nothing. */
void audit_note (audit_t *self, const audit_line_t *line);
/* The same, and waits until it is on the disk: before an operator is answered. Not on the server's
 * thread. False: the disk does not take it now; the line still waits to be written. */
bool audit_note_synced (audit_t *self, const audit_line_t *line);

typedef struct audit_stats {
    uint64_t lines;  /* written */
    uint64_t lost;   /* did not fit into the queue while nothing could be written */
    uint64_t errors; /* writes that failed */
    uint64_t files;  /* turned ones that are kept */
    uint64_t turns;  /* of the file since the start */
    chain_head_t head;
    int64_t last_ms; /* wall clock: of the newest line that the start found; 0: there was none */
} audit_stats_t;
/* A head that was known before: false if no line of the newest files has it, so that some are not
 * there, or not what they were; the log and a line say so. n 0 is none. Reads the files; before the
 * record is long, at the start. */
bool audit_expect (audit_t *self, const chain_head_t *head);
/* Any thread. */
void audit_stats (audit_t *self, audit_stats_t *out);

#endif
