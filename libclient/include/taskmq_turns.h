/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Turns: what a worker tells of its work step by step: what was said, which tools were called,
 * which files were touched. A part of taskmq.h, which includes it. */
#ifndef TASKMQ_TURNS_H
#define TASKMQ_TURNS_H

#include "taskmq.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Turns of the work. */

/* A file that a turn touched. */
typedef struct tmq_turn_file {
    tmq_file_op_t op;
    const char *path; /* 1..1,024 bytes */
} tmq_turn_file_t;
/* "read", "write", "delete"; "?" for a number that is none. */
TMQ_API const char *tmq_file_op_text (tmq_file_op_t op);

/* A turn to be told. Texts are UTF-8, and NULL is an empty one. Later versions append members. */
typedef struct tmq_turn_spec {
    size_t size;            /* sizeof (tmq_turn_t); set by the initialiser */
    uint32_t number;        /* among the turns of this attempt, from 1 without gaps; 0: the next */
    uint8_t request_id[16]; /* all zero: the library makes one */
    const char *agent;      /* who had the turn, at most 256 bytes */
    const char *status;     /* a word, at most 64 bytes */
    uint64_t started_at;    /* ms since the epoch; 0: not told */
    uint64_t duration_ms;
    const char *content;    /* at most 64 KiB, as the next two */
    const char *tool_calls; /* JSON */
    const char *tool_log;
    const tmq_turn_file_t *files; /* at most 256; with them a turn has at most 256 KiB */
    size_t files_count;
} tmq_turn_t;
TMQ_API void tmq_turn_init (tmq_turn_t *turn, size_t size);
#define tmq_turn_init(turn) tmq_turn_init ((turn), sizeof *(turn))

/* Tells of a turn of the attempt. TMQ_OK is a promise: it is durable, and stays with the task as
 * long as that. Everything is copied. After TMQ_UNKNOWN the call may be repeated with the same
 * number and request_id: it is told once. Blocks until the answer is there.
 * Codes: TMQ_INVALID, TMQ_TOO_LARGE, TMQ_CONFLICT (the number is not the next one), TMQ_LIMIT
 * (1,000 turns or 64 MiB of a task, 20 a second, 4 GiB of a namespace: the text says which), and
 * those of tmq_worker_message. */
TMQ_API int tmq_worker_turn (tmq_worker_t *worker, const tmq_assignment_t *of,
                             const tmq_turn_t *turn, uint32_t timeout_ms, tmq_error_t *error);
/* The same without blocking; the completion is TMQ_OP_TURN, and its count the number. Several may
 * be on their way. When one is refused, those begun after it are too, as TMQ_CONFLICT: then tell
 * them again. */
TMQ_API int tmq_worker_turn_start (tmq_worker_t *worker, const tmq_assignment_t *of,
                                   const tmq_turn_t *turn, uint32_t timeout_ms, void *user,
                                   tmq_error_t *error);

/* A turn that was told. */
typedef struct tmq_turn_info {
    uint32_t turn;    /* its place among all turns of the task, from 1 */
    uint32_t attempt; /* whose it is, … */
    uint32_t number;  /* … and its place there */
    const char *worker;
    const char *agent;
    const char *status;
    uint64_t started_at; /* ms since the epoch; 0: not told */
    uint64_t duration_ms;
    uint64_t told_at;    /* when the broker had it */
    bool superseded;     /* a retry or a resume went back behind it: it counts no more */
    const char *content; /* NULL: not asked for, or not to be seen; as the next two and the files */
    size_t content_bytes;
    const char *tool_calls;
    size_t tool_calls_bytes;
    const char *tool_log;
    size_t tool_log_bytes;
    const tmq_turn_file_t *files;
    size_t files_count;
} tmq_turn_info_t;
/* Some turns, by rising place. All texts belong to it. */
struct tmq_turn_page {
    const tmq_turn_info_t *turns;
    size_t count;
    uint32_t next; /* `after` of the page that follows; 0: there is none */
};
/* Accepts NULL. */
TMQ_API void tmq_turn_list_free (tmq_turn_list_t *list);

/* The turns of a task behind place `after`, at most limit (1..1000; 0: 50; fewer may fit); of one
 * attempt, or of all (0). A page may be empty and have a next one. parts: which texts are wanted,
 * of tmq_turn_part_t, added up. Whoever may read the task may ask, and who works on it. Waits for
 * the answer; *out is to be freed, and is not touched unless the code is 0.
 * Codes: TMQ_NOT_FOUND, TMQ_EXPIRED, TMQ_PURGED, TMQ_DENIED. */
TMQ_API int tmq_turns (tmq_turn_list_t **out, tmq_client_t *client, const tmq_id_t *id,
                       uint32_t attempt, uint32_t after, uint32_t limit, unsigned parts,
                       uint32_t timeout_ms, tmq_error_t *error);

/* Like tmq_resume for one task, but it goes back to a turn by its place: those behind it are
 * superseded (0: all). They stay readable. *out is the answer about the task. request_id: 16 bytes,
 * or NULL. Codes of the task are those of tmq_resume, and TMQ_INVALID: it has no such turn. */
TMQ_API int tmq_resume_from (tmq_changed_t *out, tmq_client_t *client, const tmq_id_t *id,
                             uint32_t turn, const uint8_t *request_id, uint32_t timeout_ms,
                             tmq_error_t *error);

#ifdef __cplusplus
}
#endif
#endif
