/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Questions of workers about their tasks, and answers. A part of taskmq.h, which includes it. */
#ifndef TASKMQ_QUESTIONS_H
#define TASKMQ_QUESTIONS_H

#include "taskmq.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tmq_worker tmq_worker_t; /* of taskmq_workers.h */
typedef struct tmq_assignment tmq_assignment_t;

/* A worker asks. */

/* A question about a task. Begin with tmq_ask_init. */
typedef struct tmq_ask {
    size_t size;         /* set by the initialiser */
    const char *key;     /* at most 256 bytes, unique for the task's life; NULL: "input" */
    const char *request; /* JSON text of 1 B to 16 KiB, passed on as it is. Usual are {"method":…,
                            "params":…} as in MCP, and {"text":…,"schema":…} */
    uint64_t deadline_ms;       /* how long there is to answer; 0: 7 days */
    const char *default_answer; /* what counts after that, at most 16 KiB; NULL: the task fails */
    bool default_is_text;       /* it is text, else JSON */
} tmq_ask_t;
TMQ_API void tmq_ask_init (tmq_ask_t *ask, size_t size);
#define tmq_ask_init(ask) tmq_ask_init ((ask), sizeof *(ask))

/* Asks a question about the task of an attempt: the task is input_required until it is answered.
 * TMQ_OK says that the question is durable, or that the task, in whichever attempt, asked the same
 * before. The worker goes on holding the lease, or gives it back by tmq_worker_release: then the
 * last answer queues the task, and the next attempt finds all answers.
 * Codes: TMQ_CONFLICT (the task asked something else under this key), TMQ_LIMIT (64 open questions,
 * 256 in the task's life, or too many of all tasks), TMQ_STALE_LEASE, TMQ_WRONG_STATUS (the task
 * was cancelled), TMQ_INVALID, TMQ_TOO_LARGE. */
TMQ_API int tmq_worker_ask (tmq_worker_t *worker, const tmq_assignment_t *of, const tmq_ask_t *ask,
                            uint32_t timeout_ms, tmq_error_t *error);
/* The completion is TMQ_OP_ASK. */
TMQ_API int tmq_worker_ask_start (tmq_worker_t *worker, const tmq_assignment_t *of,
                                  const tmq_ask_t *ask, uint32_t timeout_ms, void *user,
                                  tmq_error_t *error);

/* An answer to a question of the task. */
typedef struct tmq_given {
    uint64_t number;    /* of the task's answers, from 1 */
    const char *key;    /* of the question */
    const char *answer; /* answer_bytes bytes and a NUL */
    size_t answer_bytes;
    bool is_text;    /* else JSON */
    const char *by;  /* who answered: an identity */
    uint64_t at;     /* ms since the epoch */
    bool by_default; /* nobody did in time */
} tmq_given_t;
/* Accepts NULL. */
TMQ_API void tmq_given_free (tmq_given_t *given);

/* Waits for the answer to the question of this key, and gives it as often as it is asked for. key
 * NULL: the next answer that this attempt was not given yet, whatever its key. Answers to questions
 * of earlier attempts are among them. An event loop calls it with timeout 0 when tmq_worker_changed
 * says TMQ_ATTEMPT_ANSWERED.
 * Codes: TMQ_TIMEOUT, TMQ_STALE_LEASE (the attempt is not held any more), TMQ_CANCELLED (the task
 * was), or why the worker ended. */
TMQ_API int tmq_worker_answer (tmq_given_t **out, tmq_worker_t *worker, const tmq_assignment_t *of,
                               const char *key, uint32_t timeout_ms, tmq_error_t *error);

/* Somebody answers. */

/* One answer. */
typedef struct tmq_answer_item {
    const char *key;    /* of the question; NULL: "input" */
    const char *answer; /* UTF-8 without NUL, at most 64 KiB */
    size_t answer_bytes;
    bool is_text; /* else it is JSON */
} tmq_answer_t;

/* What became of it. */
struct tmq_answered {
    int code;       /* TMQ_OK: it counts, or this very answer did before. TMQ_NOT_FOUND: no such
                       question. TMQ_CONFLICT: another answer counts. TMQ_INVALID, TMQ_LIMIT */
    char text[128]; /* empty for TMQ_OK */
};

/* Answers 1..64 questions of a task; others stay open. out (may be NULL): count of them, in the
 * order of in. TMQ_OK says that the broker judged each of them: look at each code. All answers
 * together have at most 256 KiB. It may be repeated: the same answers again are TMQ_OK.
 * Codes: TMQ_WRONG_STATUS (the task has ended), TMQ_NOT_FOUND, TMQ_EXPIRED, TMQ_PURGED, TMQ_DENIED,
 * TMQ_INVALID, TMQ_TOO_LARGE. */
TMQ_API int tmq_answer (tmq_answered_t *out, tmq_client_t *client, const tmq_id_t *id,
                        const tmq_answer_t *in, size_t count, uint32_t timeout_ms,
                        tmq_error_t *error);
/* The completion (TMQ_OP_ANSWER) has answered and answered_count. */
TMQ_API int tmq_answer_start (tmq_client_t *client, const tmq_id_t *id, const tmq_answer_t *in,
                              size_t count, uint32_t timeout_ms, void *user, tmq_error_t *error);

/* An open question. Texts are never NULL. */
typedef struct tmq_question {
    uint64_t number; /* of all questions of the broker; rises with each */
    tmq_id_t task_id;
    const char *key;
    const char *queue;
    const char *session;
    uint64_t asked_at; /* ms since the epoch, as the deadline */
    uint64_t deadline;
    const char *request; /* JSON text; empty for whom payloads are hidden from */
    bool has_default;
    bool default_is_text;
    const char *default_answer;
    uint32_t attempt; /* that asked */
    const char *worker;
} tmq_question_t;

struct tmq_inbox_page {
    const tmq_question_t *questions; /* oldest first */
    size_t count;
    uint64_t next; /* `after` of the next page; 0: nothing follows */
};
/* Accepts NULL. */
TMQ_API void tmq_inbox_free (tmq_inbox_t *inbox);

/* Which questions. Begin with tmq_inbox_query_init. */
typedef struct tmq_inbox_query {
    size_t size;               /* set by the initialiser */
    const tmq_id_t *task_id;   /* only of this task; NULL: of all */
    const char *const *queues; /* only of these; none: of all */
    size_t queues_count;
    const char *const *sessions;
    size_t sessions_count;
    uint64_t after; /* 0, or next of the page before */
    uint32_t limit; /* 1..1,000; 0: 50 */
} tmq_inbox_query_t;
TMQ_API void tmq_inbox_query_init (tmq_inbox_query_t *query, size_t size);
#define tmq_inbox_query_init(query) tmq_inbox_query_init ((query), sizeof *(query))

/* One page of the open questions of the namespace. A page may be short, and empty: only next 0 says
 * that it was the last. in NULL: all of them. Codes: TMQ_NOT_FOUND, TMQ_EXPIRED, TMQ_PURGED (of
 * task_id), TMQ_INVALID. */
TMQ_API int tmq_inbox (tmq_inbox_t **out, tmq_client_t *client, const tmq_inbox_query_t *in,
                       uint32_t timeout_ms, tmq_error_t *error);
/* The completion (TMQ_OP_INBOX) has inbox. */
TMQ_API int tmq_inbox_start (tmq_client_t *client, const tmq_inbox_query_t *in, uint32_t timeout_ms,
                             void *user, tmq_error_t *error);

#ifdef __cplusplus
}
#endif
#endif
