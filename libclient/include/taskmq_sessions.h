/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the tasks of a session, or of a namespace, share. A part of taskmq.h, which includes it.
 *
 * All calls here block, up to timeout_ms. */
#ifndef TASKMQ_SESSIONS_H
#define TASKMQ_SESSIONS_H

#include "taskmq.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Values of sessions and namespaces. */

/* In place of a version: whatever there is. Version 0 is that of what does not exist. */
#define TMQ_ANY_VERSION UINT64_MAX

/* Bytes under a key, of a session or of the namespace itself. Texts are never NULL. Later versions
 * append members. */
typedef struct tmq_value {
    const char *session; /* empty: of the namespace */
    const char *key;
    uint64_t version;    /* only grows, also when the value was removed in between */
    uint64_t updated_at; /* ms since the epoch */
    const char *actor;   /* who put it last */
    const char *owner;   /* who made it */
    size_t length;
    const void *bytes; /* of tmq_value_get: length bytes, and a NUL behind them; else NULL */
} tmq_value_t;
/* Accepts NULL. */
TMQ_API void tmq_value_free (tmq_value_t *value);

/* Puts up to 65,536 bytes under a key of 1 to 256 bytes of UTF-8, in a session (NULL: in the
 * namespace itself). if_version: only if the value has this version (0: if there is none);
 * TMQ_ANY_VERSION: in any case. What was answered with TMQ_OK survives a crash of the broker. *out
 * (may be NULL) is the value without its bytes, for tmq_value_free.
 * Codes: TMQ_CONFLICT (another version, or somebody else's), TMQ_LIMIT (1,000,000 values of a
 * namespace, or its bytes), TMQ_DENIED, TMQ_TOO_LARGE, TMQ_STORE_FULL. */
TMQ_API int tmq_value_put (tmq_value_t **out, tmq_client_t *client, const char *session,
                           const char *key, const void *bytes, size_t length, uint64_t if_version,
                           uint32_t timeout_ms, tmq_error_t *error);
/* Codes: TMQ_NOT_FOUND. */
TMQ_API int tmq_value_get (tmq_value_t **out, tmq_client_t *client, const char *session,
                           const char *key, uint32_t timeout_ms, tmq_error_t *error);
/* Removes it. if_version as for tmq_value_put, but not 0. Codes: TMQ_NOT_FOUND, TMQ_CONFLICT,
 * TMQ_DENIED. */
TMQ_API int tmq_value_remove (tmq_client_t *client, const char *session, const char *key,
                              uint64_t if_version, uint32_t timeout_ms, tmq_error_t *error);

typedef struct tmq_value_query {
    size_t size;         /* sizeof (tmq_value_query_t); set by the initialiser */
    const char *session; /* NULL: the namespace's own */
    const char *prefix;  /* keys that begin with it; NULL: all */
    const char *after;   /* `next` of the page before; NULL: the first page */
    uint32_t limit;      /* 1..1000; 0: 50 */
} tmq_value_query_t;
TMQ_API void tmq_value_query_init (tmq_value_query_t *out, size_t size);
#define tmq_value_query_init(out) tmq_value_query_init ((out), sizeof *(out))

/* A page of values without their bytes, in the order of their keys. */
typedef struct tmq_value_page {
    const tmq_value_t *values;
    size_t count;     /* may be 0 although something follows */
    const char *next; /* for the next page; empty: nothing follows */
} tmq_value_list_t;
/* Accepts NULL. */
TMQ_API void tmq_value_list_free (tmq_value_list_t *list);
/* in NULL: the namespace's values from the first. Codes: TMQ_LIMIT (open reads). */
TMQ_API int tmq_value_list (tmq_value_list_t **out, tmq_client_t *client,
                            const tmq_value_query_t *in, uint32_t timeout_ms, tmq_error_t *error);

/* Items of boxes. */

/* What was put into a box, in order, and stays until it is acknowledged. Texts are never NULL.
 * Later versions append members. */
typedef struct tmq_item {
    uint64_t number;    /* rises; unique in the namespace */
    uint64_t at;        /* ms since the epoch */
    const char *owner;  /* who put it */
    const char *source; /* whatever who put it says, … */
    const char *type;   /* … and this */
    double intensity;   /* 0..1 */
    size_t length;
    const void *bytes; /* length bytes, and a NUL behind them; NULL: no right to see them */
} tmq_item_t;

typedef struct tmq_item_request {
    size_t size;         /* sizeof (tmq_item_request_t); set by the initialiser */
    const char *session; /* NULL: a box of the namespace */
    const char *box;     /* a name */
    const char *source;  /* NULL: none; at most 256 bytes */
    const char *type;    /* the same */
    double intensity;    /* 0..1 */
    const void *bytes;   /* at most 65,536 of them */
    size_t length;
} tmq_item_request_t;
TMQ_API void tmq_item_request_init (tmq_item_request_t *out, size_t size);
#define tmq_item_request_init(out) tmq_item_request_init ((out), sizeof *(out))

/* Puts an item into a box, and makes the box. *number (may be NULL) is the item's. What was
 * answered with TMQ_OK survives a crash of the broker; it is there at least once.
 * Codes: TMQ_LIMIT (10,000 items of a box, 10,000,000 of a namespace, or its bytes), TMQ_DENIED,
 * TMQ_TOO_LARGE, TMQ_STORE_FULL. */
TMQ_API int tmq_item_put (uint64_t *number, tmq_client_t *client, const tmq_item_request_t *in,
                          uint32_t timeout_ms, tmq_error_t *error);

/* A page of items in the order of their numbers. */
typedef struct tmq_item_page {
    const tmq_item_t *items;
    size_t count;  /* may be 0 although something follows */
    uint64_t next; /* `after` of the next page; 0: nothing follows */
} tmq_item_list_t;
/* Accepts NULL. */
TMQ_API void tmq_item_list_free (tmq_item_list_t *list);
/* What is in a box and not acknowledged, behind the number `after` (0: from the first). limit:
 * 1..256; 0: 50. A box that does not exist is empty. Codes: TMQ_LIMIT (open reads). */
TMQ_API int tmq_item_read (tmq_item_list_t **out, tmq_client_t *client, const char *session,
                           const char *box, uint64_t after, uint32_t limit, uint32_t timeout_ms,
                           tmq_error_t *error);
/* Acknowledges up to 256 items, which are gone then. *acknowledged (may be NULL): how many were
 * still there. What is not there, or may not be changed, is passed over. */
TMQ_API int tmq_item_ack (uint64_t *acknowledged, tmq_client_t *client, const char *session,
                          const char *box, const uint64_t *numbers, size_t count,
                          uint32_t timeout_ms, tmq_error_t *error);

#ifdef __cplusplus
}
#endif

#endif
