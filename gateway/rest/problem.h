/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What went wrong, as RFC 9457 tells it: application/problem+json. One table of kinds. */
#ifndef TASKMQ_GATEWAY_REST_PROBLEM_H
#define TASKMQ_GATEWAY_REST_PROBLEM_H

#include "http/exchange.h"
#include "taskmq.h"

/* NAME, name (of the type and of its page), status, title. */
#define PROBLEMS_MAP(X)                                                                            \
    X (MALFORMED, "malformed", 400, "This is no request of HTTP/1.1")                              \
    X (INVALID, "invalid", 400, "The request is not valid")                                        \
    X (UNSUPPORTED, "unsupported", 400, "The broker does not know this request")                   \
    X (BAD_CURSOR, "bad-cursor", 400, "The cursor does not belong here")                           \
    X (NOT_AUTHENTICATED, "not-authenticated", 401, "A token is needed")                           \
    X (DENIED, "denied", 403, "Not allowed")                                                       \
    X (FOREIGN_ORIGIN, "foreign-origin", 403, "The request is not meant for this gateway")         \
    X (NOT_FOUND, "not-found", 404, "There is no such thing")                                      \
    X (NO_RESULT, "no-result", 404, "The task ended without a result")                             \
    X (METHOD, "method-not-allowed", 405, "Not with this method")                                  \
    X (NOT_ACCEPTABLE, "not-acceptable", 406, "Nothing that is accepted can be given")             \
    X (TIMEOUT, "timeout", 408, "The request did not come in time")                                \
    X (CONFLICT, "conflict", 409, "Other content under the same id or key")                        \
    X (WRONG_STATUS, "wrong-status", 409, "Not possible in the task's present status")             \
    X (AMBIGUOUS, "ambiguous", 409, "Several tasks end with this short id")                        \
    X (UNFINISHED, "unfinished", 409, "The task has not ended")                                    \
    X (EXPIRED, "expired", 410, "The task's time to live is over")                                 \
    X (PURGED, "purged", 410, "The task was removed")                                              \
    X (PRECONDITION, "precondition-failed", 412, "It is another one than was expected")            \
    X (TOO_LARGE, "too-large", 413, "Larger than the limit")                                       \
    X (TARGET_TOO_LONG, "target-too-long", 414, "The target is too long")                          \
    X (MEDIA_TYPE, "unsupported-media-type", 415, "Not this type of body")                         \
    X (RANGE, "range-not-satisfiable", 416, "There are no such bytes")                             \
    X (EXPECTATION, "expectation-failed", 417, "Not expected")                                     \
    X (KEY_REUSED, "idempotency-key-reused", 422, "The key was used for other content")            \
    X (RATE_LIMITED, "rate-limited", 429, "Too many requests")                                     \
    X (LIMIT, "limit", 429, "A limit of the broker is reached")                                    \
    X (HEAD_TOO_LONG, "head-too-long", 431, "The head is too long")                                \
    X (INTERNAL, "internal", 500, "An error of ours")                                              \
    X (NO_BLOB, "no-blob", 500, "The broker has not these bytes any more")                         \
    X (NO_MEMORY, "no-memory", 500, "Memory is exhausted")                                         \
    X (NOT_IMPLEMENTED, "not-implemented", 501, "Not implemented")                                 \
    X (OVERLOADED, "overloaded", 503, "The broker is overloaded")                                  \
    X (STOPPING, "stopping", 503, "The broker is stopping")                                        \
    X (UNAVAILABLE, "unavailable", 503, "The broker's store is out of reach")                      \
    X (UNREACHABLE, "unreachable", 503, "The broker cannot be reached")                            \
    X (OUTBOX_FULL, "outbox-full", 503, "Too much is under way")                                   \
    X (BUSY, "busy", 503, "The gateway has no room")                                               \
    X (UNKNOWN, "unknown", 504, "It may have been done")                                           \
    X (VERSION, "http-version", 505, "Not this version of HTTP")                                   \
    X (STORE_FULL, "store-full", 507, "The disk is full")

typedef enum problem_kind {
#define X(NAME, name, status, title) PROBLEM_##NAME,
    PROBLEMS_MAP (X)
#undef X
        PROBLEM_KINDS
} problem_kind_t;

/* What is told beside the kind. Texts may be NULL. */
typedef struct problem {
    problem_kind_t kind;
    const char *detail;  /* a sentence about this very case */
    const char *pointer; /* JSON pointer, or the name of a parameter, that it is about */
    int code;            /* of the library; 0: none */
    uint32_t retry_after_ms;
    const char *task_id;
} problem_t;

/* Into a response without fields; id is that of the request, or NULL. */
void problem_write (response_t *out, const problem_t *problem, const char *id);
/* The kind for a code of the library. */
problem_kind_t problem_of_code (int code);
/* The kind that says no more than a status. */
problem_kind_t problem_of_status (int status);
/* The last part of the type's name. */
const char *problem_name (problem_kind_t kind);
/* The page of a type; false: there is none. */
bool problem_page (response_t *out, const char *name);

#endif
