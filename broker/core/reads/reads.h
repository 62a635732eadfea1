/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the tables are asked: page reads for readers, and the point look-ups of one round. */
#ifndef TASKMQ_CORE_READING_H
#define TASKMQ_CORE_READING_H

#include "core/data/lookup.h"
#include "core/peers/links.h"
#include "core/tasks/tasks.h"
#include "core/wire/filter.h"

/* A read and the request or subscription that it is for. */
typedef struct read_job {
    read_t read;   /* first: the read is the job */
    node_t node;   /* in its link's list, then in that of those that readers have */
    alarm_t alarm; /* the deadline of its request */
    uint64_t need; /* batch that must be written before */
    link_t *link;  /* referenced; NULL: nobody waits any more */
    uint64_t request;
    struct subscription *subscription; /* NULL: it is for the request */
    filter_copy_t *filter;             /* owned, or NULL */
    buf_t *prefix;                     /* of rows; owned, or NULL */
    buf_t *after;                      /* the same */
    attempt_t *newest;                 /* of attempts: the one without a row; owned, or NULL */
    bool bodies;                       /* … and who asks may see bodies */
    struct cleanup_look *look;         /* of a look what would go (requests/cleanup.c), … */
    void (*look_free) (struct cleanup_look *look); /* … with what frees it */
    struct turns_asked *turns;        /* of turns: what was asked (requests/turns.c); the same */
    uint64_t piece_offset;            /* of an artifact: where the piece begins, … */
    size_t piece_limit;               /* … and its length at most */
    bool counted;                     /* among the open reads of its link */
    bool given;                       /* a reader has it */
    bool own;                         /* the engine's: no link waits for it */
    bool paged;                       /* counted among the pages of its link */
    char ns[TMQ_NAME_LENGTH_MAX + 1]; /* a reader may outlive the namespace's object */
} read_job_t;

typedef struct reads {
    base_t *base;
    tasks_t *tasks;
    links_t *peers;
    node_t turns;      /* links with reads that wait, who is next first */
    node_t own;        /* reads of the engine's own that wait */
    node_t page_turns; /* links whose streams may have one more page, who is next first */
    size_t pages;      /* of streams: held, with readers, or waiting for one */
    node_t jobs_given; /* readers have them */
    size_t given;
    size_t open;      /* reads of requests, waiting or given */
    lookup_t *loaded; /* answers of this round's look-up */
    size_t loaded_count;
    map_t loaded_by_key;
} reads_t;

void reads_init (reads_t *self, base_t *base, tasks_t *tasks, links_t *peers);
void reads_reset (reads_t *self); /* what readers have stays, for nobody */
void reads_free (reads_t *self);

#endif
