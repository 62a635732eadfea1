/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The index of texts: a file of its own beside the store (search.db), which may be lost and made
 * anew from it. It is in no backup and in no commit. One writer at a time, and readers beside it,
 * each used by one thread. Every text belongs to a task, or to one of its turns.
 *
 * Failures. STORE_ERROR_FULL: there was no space, nothing since search_writer_begin is kept, and it
 * may be tried again. STORE_ERROR_CORRUPT and _FOREIGN: the file is damaged and has to be made
 * anew. */
#ifndef TASKMQ_STORE_SEARCH_H
#define TASKMQ_STORE_SEARCH_H

#include "core/data/search.h"
#include "store/error.h"

#define SEARCH_FILE "search.db"

enum {
    SEARCH_TEXTS = 5,        /* of a document */
    SEARCH_TURNS_MAX = 2047, /* of a task: its key has no room for more */
    SEARCH_WALK_MAX = 500    /* tasks of one step of a walk */
};

_Static_assert((int) TMQ_TURNS_MAX <= (int) SEARCH_TURNS_MAX, "every turn is found");

/* Texts that stand together: no phrase goes from one into the next. */
typedef struct search_doc {
    const char *ns;
    int64_t number; /* of the task */
    uint32_t turn;  /* 0: the task's own texts */
    struct {
        const char *bytes; /* UTF-8 */
        size_t length;
    } texts[SEARCH_TEXTS];
} search_doc_t;

/* How far the index is; it is kept in it. */
typedef struct search_place {
    uint64_t pos;  /* every event up to it was followed, once … */
    bool building; /* … all tasks are in: those up to this number are */
    int64_t built;
} search_place_t;

/* Writing. */

typedef struct search_writer search_writer_t;

/* Opens the index of this history, or makes it: anew when asked, and when it is of another history
 * or ahead of last_pos. *place says where it stands; of a new one that it is to be built. */
store_code_t search_writer_open (search_writer_t **out, const char *directory, uint64_t generation,
                                 uint64_t last_pos, bool anew, search_place_t *place,
                                 store_error_t *error);
void search_writer_close (search_writer_t **self); /* accepts a NULL object */

/* A transaction: what is put and dropped in it is found together with its place, or not at all. */
store_code_t search_writer_begin (search_writer_t *self, store_error_t *error);
/* Where it fails, and where something before it did, a rollback has to follow. */
store_code_t search_writer_commit (search_writer_t *self, const search_place_t *place,
                                   store_error_t *error);
void search_writer_rollback (search_writer_t *self);

/* Between begin and commit. */

/* Replaces the document, unless it is the same. One without any text is taken out. A namespace
 * beyond the 65,535th is passed over: its tasks are not found. */
store_code_t search_writer_put (search_writer_t *self, const search_doc_t *doc,
                                store_error_t *error);
/* The last turn of the task that is there; 0: none. */
store_code_t search_writer_last_turn (search_writer_t *self, const char *ns, int64_t number,
                                      uint32_t *turn, store_error_t *error);
/* All documents of the task. */
store_code_t search_writer_drop (search_writer_t *self, const char *ns, int64_t number,
                                 store_error_t *error);
/* Namespaces without documents. */
store_code_t search_writer_drop_spaces (search_writer_t *self, store_error_t *error);

/* Tasks that have documents, of one namespace, behind a place. */
typedef struct search_walk {
    int64_t place; /* 0: from the beginning; moves on */
    char ns[TMQ_NAME_LENGTH_MAX + 1];
    int64_t numbers[SEARCH_WALK_MAX];
    size_t count; /* 0: it is at the end */
} search_walk_t;
store_code_t search_writer_walk (search_writer_t *self, search_walk_t *walk, store_error_t *error);

/* Searching. */

typedef struct search_reader search_reader_t;

/* A task that was found. */
typedef struct search_hit {
    int64_t number;
    uint32_t turn; /* of its documents the one with most of the words; of those the last turn */
    double rank;   /* the smaller the better; if ranked */
} search_hit_t;

typedef enum search_step {
    SEARCH_STEP_FOUND,
    SEARCH_STEP_END,
    SEARCH_STEP_TIRED /* it looked at enough documents */
} search_step_t;

store_code_t search_reader_open (search_reader_t **out, const char *directory,
                                 store_error_t *error);
void search_reader_close (search_reader_t **self); /* accepts a NULL object */

/* From now on a search of this reader ends, with an error, when the index has taken so long for
 * words that go on (`begin*`): FTS5 gathers what begins so before it gives the first document. The
 * clock runs from the beginning of a search to its excerpts. */
void search_reader_limit (search_reader_t *self, uint32_t ms);
/* So long somebody else was waited for since the search began: that is not the index's time. */
void search_reader_spare (search_reader_t *self, int64_t ms);
/* That is what the error of the newest search was. */
bool search_reader_is_late (const search_reader_t *self);

/* Begins a search in one namespace, newest tasks first, below a number (0: from the newest). */
store_code_t search_reader_begin (search_reader_t *self, const char *ns,
                                  const search_query_t *query, int64_t below, bool ranked,
                                  store_error_t *error);
/* … among the documents of one task. */
store_code_t search_reader_begin_task (search_reader_t *self, const char *ns,
                                       const search_query_t *query, int64_t number,
                                       store_error_t *error);
/* The next task that matches: each word, or one of those with OR between them, stands in one of its
 * documents, and what is negated in none. *looks: at so many documents it may look; it is counted
 * down. When it is TIRED, every task from out->number on was judged. */
store_code_t search_reader_next (search_reader_t *self, search_hit_t *out, size_t *looks,
                                 search_step_t *step, store_error_t *error);
/* Ends a search, also one whose beginning failed: until then the file keeps its log for it. */
void search_reader_end (search_reader_t *self);
/* Excerpts of documents that search_reader_next gave, falling by number. It stays NULL of one that
 * has gone, and where making it takes too many looks or more than what is left of the time of
 * search_reader_limit: that is no error. The caller frees them. */
store_code_t search_reader_excerpts (search_reader_t *self, const char *ns,
                                     const search_query_t *query, const search_hit_t *hits,
                                     size_t count, char **out, store_error_t *error);

#endif
