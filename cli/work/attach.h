/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the program of an attempt left in TASKMQ_ARTIFACTS: attached to the task, file by file, when
 * it has ended and before its outcome is told. So whoever sees the outcome sees the artifacts.
 *
 * Only regular files count that stand in the directory itself: no links are followed, directories
 * are not looked into. What needs no upload comes first, then what is smaller: when the broker has
 * no room, as much as can be is there. What cannot be attached is told on stderr and in the task's
 * log, and costs the task nothing else. */
#ifndef TASKCTL_ATTACH_H
#define TASKCTL_ATTACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "line/app.h"
#include "work/body.h"
#include "work/upload.h"

/* Whose they are. All borrowed. */
typedef struct attach_of {
    const app_t *app;
    tmq_worker_t *worker;
    const tmq_assignment_t *assignment;
    const char *kept; /* the directory */
    bool hurry;       /* we are told to end: room that is not there is not waited for */
} attach_of_t;

typedef enum attach_state {
    ATTACH_RUNS,
    ATTACH_DONE,
    ATTACH_CANCELLED /* so was the task */
} attach_state_t;

typedef struct attach {
    bool begun;
    bool done;
    int directory;
    /* Those without an upload first; of too many also the first one that is not attached. */
    char **names;
    size_t count;
    size_t told;   /* lines about what is not attached … */
    size_t untold; /* … and what came after these */
    size_t at;     /* the one that is attached now */
    int file;
    uint64_t length;
    body_t body;     /* of one that is larger than a frame: what was read of it … */
    upload_t upload; /* … and sent */
    bool named;      /* the request that attaches it is on its way */
    bool waited;     /* it was told that one waits for room */
    bool blocked;    /* the broker refused one for good: others are not tried again */
    unsigned tries;
    uint64_t again_at_ms;
    void *user; /* of its requests */
} attach_t;

void attach_init (attach_t *self);
void attach_free (attach_t *self);
/* Does what can be done now. user: for its requests, like no other's, also of other jobs. */
attach_state_t attach_run (attach_t *self, const attach_of_t *of, void *user);
/* Nothing more is attached: tells so of what is left. */
void attach_give_up (attach_t *self, const attach_of_t *of);
/* The answer to a request of it. */
void attach_take (attach_t *self, const attach_of_t *of, const tmq_completion_t *answer);

#endif
