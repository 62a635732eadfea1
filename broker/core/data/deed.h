/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What somebody did, or may not do: for the record of deeds. */
#ifndef TASKMQ_CORE_DATA_DEED_H
#define TASKMQ_CORE_DATA_DEED_H

#include "core/data/peer.h"
#include "taskmq_types.h"

/* Waiting to be told, in one round. What is sampled anyway has the first places only, and no more
 * is told of it; of the others beyond the last place the number is. */
enum { DEEDS_MAX = 64, DEEDS_SAMPLED_MAX = 16, DEED_TEXT_SIZE = 160 };

/* X (NAME, sampled) */
#define DEED_KIND_MAP(X)                                                                           \
    X (DENIED, true)  /* asked for what it may not have */                                         \
    X (QUOTA, true)   /* … for more than it may have at once */                                  \
    X (READ, true)    /* an admin or operator read what a task of somebody else carries */         \
    X (CANCEL, false) /* … ended it */                                                           \
    X (RETRY, false)  /* … or had it done again, by retry or resume */                           \
    X (SET, false)    /* … or changed what is set for it */                                      \
    X (ANSWER, false) /* … or answered its questions */                                          \
    X (PURGE, false)  /* … or removed it */                                                      \
    X (ADOPT, false)  /* … or took a late success for its end */                                 \
    X (QUEUE, false)  /* changed what is set for a queue */                                        \
    X (WORKER, false) /* drained a worker */                                                       \
    X (IMPORT, true)  /* brought in a task with what it had done elsewhere */                      \
    X (MORE, false)   /* further ones at once, for which there was no place */

typedef enum deed_kind {
#define X(NAME, sampled) DEED_##NAME,
    DEED_KIND_MAP (X)
#undef X
} deed_kind_t;

typedef struct deed {
    deed_kind_t kind;
    peer_t peer;
    char identity[TMQ_OWNER_BYTES_MAX + 1];
    char ns[TMQ_NAME_LENGTH_MAX + 1]; /* empty: the peer has no link */
    const char *request;              /* its name; static; NULL: what `text` says */
    tmq_id_t task;                    /* zero: none */
    char text[DEED_TEXT_SIZE];        /* the task's owner, the quota, the queue, the worker */
} deed_t;

#endif
