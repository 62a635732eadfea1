/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Sessions, and what the tasks of one, or of a namespace, share. A part of taskmq.h, which includes
 * it.
 *
 * All calls here block, up to timeout_ms. */
#ifndef TASKMQ_SESSIONS_H
#define TASKMQ_SESSIONS_H

#include "taskmq.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sessions: threads of work. */

/* One as it stands. Texts are never NULL and belong to the report. Later versions append
 * members. */
typedef struct tmq_session {
    const char *name;
    const char *goal; /* may be empty, as the following texts */
    tmq_session_status_t status;
    uint32_t salience; /* 1..1000, the share of its tasks; 100 unless it was set */
    const tmq_label_t *labels;
    size_t labels_count;
    const char *context; /* JSON; of a list always empty */
    const char *owner;   /* who made it */
    uint64_t created_at; /* times are ms since the epoch */
    uint64_t updated_at;
    uint64_t version;      /* only grows */
    const char *status_by; /* who gave it its status; empty: it has the first one */
    uint64_t status_at;    /* 0: the same */
    const char *status_why;
    uint64_t last_task_at; /* when it had a live task last, to a day */
    uint32_t tasks;        /* live ones */
} tmq_session_t;

typedef struct tmq_session_page {
    const tmq_session_t *sessions;
    size_t count;
    bool more; /* others follow behind the last name */
} tmq_session_report_t;
/* Accepts NULL. */
TMQ_API void tmq_session_report_free (tmq_session_report_t *report);

/* What is to be set; what is NULL or 0 stays as it is. */
typedef struct tmq_session_spec {
    size_t size;               /* sizeof (tmq_session_spec_t); set by the initialiser */
    const char *name;          /* a name */
    const char *goal;          /* at most 1,024 bytes; "": none */
    uint32_t salience;         /* 1..1000 */
    const char *context;       /* JSON, at most 16 KiB; "": none */
    const tmq_label_t *labels; /* added, or in place of those with the same key; at most 16 */
    size_t labels_count;
    const char *const *drop_labels; /* keys */
    size_t drop_labels_count;
} tmq_session_spec_t;
TMQ_API void tmq_session_spec_init (tmq_session_spec_t *out);

/* Sets what the spec says, and makes the session if there is none. A session is made by the first
 * task that names it, too. *out (may be NULL) is the session.
 * Codes: TMQ_INVALID, TMQ_TOO_LARGE, TMQ_DENIED, TMQ_CONFLICT (the name is in use), TMQ_LIMIT
 * (100,000 sessions of a namespace), TMQ_STORE_FULL. */
TMQ_API int tmq_session_set (tmq_session_report_t **out, tmq_client_t *client,
                             const tmq_session_spec_t *in, uint32_t timeout_ms, tmq_error_t *error);
/* Codes: TMQ_NOT_FOUND. */
TMQ_API int tmq_session_show (tmq_session_report_t **out, tmq_client_t *client, const char *name,
                              uint32_t timeout_ms, tmq_error_t *error);
/* Those whose names come behind `after` (NULL: the first), in the order of bytes. limit: at most
 * 1,000; 0: 50. A page may be shorter. */
TMQ_API int tmq_session_list (tmq_session_report_t **out, tmq_client_t *client, const char *after,
                              uint32_t limit, uint32_t timeout_ms, tmq_error_t *error);
/* TMQ_SESSION_STATUS_ACTIVE: it goes on. PAUSED: its tasks are not given to workers; what they hold
 * goes on. FROZEN: the same, and no task is accepted. COMPLETE: no task is accepted; those that it
 * has go on. It is removed with its values and items 30 days after the last one. why (NULL: none):
 * at most 256 bytes. To give it the status that it has is no mistake. *out may be NULL.
 * Codes: TMQ_NOT_FOUND, TMQ_DENIED. */
TMQ_API int tmq_session_status (tmq_session_report_t **out, tmq_client_t *client, const char *name,
                                tmq_session_status_t status, const char *why, uint32_t timeout_ms,
                                tmq_error_t *error);
/* Removes it with its values and items; these go little by little. Its tasks that have ended stay.
 * Codes: TMQ_NOT_FOUND, TMQ_CONFLICT (it has live tasks), TMQ_DENIED. */
TMQ_API int tmq_session_remove (tmq_client_t *client, const char *name, uint32_t timeout_ms,
                                tmq_error_t *error);

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
