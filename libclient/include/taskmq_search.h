/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Searches: tasks by what stands in their texts. A part of taskmq.h, which includes it. */
#ifndef TASKMQ_SEARCH_H
#define TASKMQ_SEARCH_H

#include "taskmq.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Search. */

/* What is looked for: words and "phrases", all of which must be there; a * behind one for a prefix;
 * NOT or - before one that must not be there; OR between two. Case and accents do not count. They
 * are looked for in payload and result, as far as these are text, in method, status and error
 * messages, and in turns: of each text in the first 64 KiB. All of them stand in one place: in the
 * task itself, or in one of its turns. Later versions append members. */
typedef struct tmq_search_query {
    size_t size;         /* sizeof (tmq_search_t); set by the initialiser */
    const char *text;    /* at most 1,024 bytes, 16 words and phrases, of which 4 with a * */
    tmq_filter_t filter; /* as of tmq_list */
    const char *cursor;  /* of the page before, with the same text and filter; NULL: the newest */
    uint32_t limit;      /* 0: 50, at most 1,000 */
    bool ranked; /* the best first, of the 20,000 newest texts: one page, without a cursor */
    bool count;  /* how many there are, and none of them; without cursor, limit and ranked */
} tmq_search_t;
TMQ_API void tmq_search_init (tmq_search_t *search, size_t size);
#define tmq_search_init(search) tmq_search_init ((search), sizeof *(search))

/* Where in an excerpt a word stands that was looked for, in bytes. */
typedef struct tmq_hit {
    size_t begin;
    size_t length;
} tmq_hit_t;

/* How a task was found. */
typedef struct tmq_found {
    uint32_t turn;       /* the turn whose text it is; 0: the task's own */
    const char *excerpt; /* UTF-8, at most 600 bytes; empty: there was none in time */
    const tmq_hit_t *hits;
    size_t hits_count;
} tmq_found_t;

/* A page. All texts belong to it. */
struct tmq_found_page {
    const tmq_task_list_t *tasks; /* as of tmq_list */
    const tmq_found_t *found;     /* as many, of the same places */
    bool behind;         /* newer texts may be missing: the index has not come to them within 1 s */
    uint64_t lag;        /* … for so many events */
    bool building;       /* the index is being made: … */
    uint64_t built;      /* … tasks up to this number are in, … */
    uint64_t last;       /* … of so many */
    const char *stalled; /* why it does not go on (a full disk); empty: it does */
    uint64_t count;      /* if that was asked for */
};
typedef struct tmq_found_page tmq_found_list_t;
/* Accepts NULL. */
TMQ_API void tmq_found_list_free (tmq_found_list_t *list);

/* One page of tasks, newest first; as with tmq_list only an empty tasks->next says that nothing
 * follows. It is asked of who may read payloads, and finds what he may read. Waits for the answer;
 * *out is to be freed, and is not touched unless the code is 0.
 * Codes: TMQ_INVALID (the text says what is wrong with the search), TMQ_TOO_LARGE (a limit, by its
 * name), TMQ_BAD_CURSOR, TMQ_LIMIT (4 open searches of a client), TMQ_INTERNAL (the index cannot be
 * used). */
TMQ_API int tmq_search (tmq_found_list_t **out, tmq_client_t *client, const tmq_search_t *search,
                        uint32_t timeout_ms, tmq_error_t *error);

/* Throws the broker's index away and lets it build a new one, while it goes on; for operators.
 * TMQ_OK says that it was begun. */
TMQ_API int tmq_search_reindex (tmq_client_t *client, uint32_t timeout_ms, tmq_error_t *error);

#ifdef __cplusplus
}
#endif
#endif
