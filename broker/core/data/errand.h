/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Work that the engine asks the server to do off its loop: a request whose answer needs a file.
 * Plain data, so that the core knows of the answer without knowing a file. */
#ifndef TASKMQ_CORE_DATA_ERRAND_H
#define TASKMQ_CORE_DATA_ERRAND_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/data/buf.h"
#include "core/data/peer.h"
#include "keys.h"
#include "taskmq_types.h"

enum { ERRAND_TEXT_SIZE = 512 };

typedef struct errand {
    /* The question, filled in by the engine. */
    uint32_t op;                       /* its member of Request.op */
    peer_t peer;                       /* who asks */
    char *identity;                    /* … and what net takes it for */
    buf_t *request;                    /* the packed Request */
    bool owns;                         /* the name that it is about owns live tasks */
    buf_t *bytes;                      /* of a BLOB_CHUNK */
    uint8_t blob[TMQ_BLOB_HASH_BYTES]; /* of a BLOB_READ: which, … */
    uint64_t blob_bytes;               /* … and how long it is */
    int64_t task_number;               /* of the task that it is about; 0: none */
    char ns[TMQ_NAME_LENGTH_MAX + 1];  /* of the link */
    uint64_t blobs_had;                /* of a BLOB_BEGIN: bytes that count to who asks, … */
    uint64_t blobs_most;               /* … and that may, with uploads; UINT64_MAX: any number */
    /* Filled in by the server on its way: the address of the peer, or empty, … */
    char address[64];
    bool has_key; /* … and the key that it came in by */
    key_public_t key;
    /* The answer. code OK goes with a member of Reply.body, another code with a text. */
    tmq_code_t code;
    char text[ERRAND_TEXT_SIZE]; /* empty: the code's own */
    bool idle;                   /* OK, but there was nothing to be done */
    uint32_t retry_after_ms;
    uint32_t member; /* number of the member; 0: the answer has no body */
    buf_t *fields;   /* its contents, packed; NULL: all members have their defaults */
    buf_t *body;     /* second frame, or NULL */
    bool whole;      /* the blob of the request is there */
    bool over_quota; /* LIMIT: for what the identity may have */
    bool again;      /* nothing is answered yet: its runner is to be called again, behind others */
    void *context;   /* the engine's own; NULL: an errand of the server itself */
} errand_t;

/* One of the server itself; those of clients come from the engine. Aborts when memory is
 * exhausted. */
errand_t *errand_new (uint32_t op);
/* Not for those of the engine: they go back by engine_errand_done. Accepts NULL. */
void errand_free (errand_t *self);
/* What it holds, not itself. */
void errand_clear (errand_t *self);
/* The answer is this code with a text. */
__attribute__ ((format (printf, 3, 4))) void errand_refuse (errand_t *self, tmq_code_t code,
                                                            const char *format, ...);
/* The answer is OK with this member of Reply.body. */
void errand_reply (errand_t *self, uint32_t member, const ProtobufCMessage *message);

#endif
