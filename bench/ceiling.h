/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The messages between the bare ceiling and its driver: one frame, this head, then the payload.
 * Both ends are one build on one machine, so the head travels as it lies in memory. */
#ifndef TASKMQ_BENCH_CEILING_H
#define TASKMQ_BENCH_CEILING_H

#include <stdint.h>

typedef enum ceiling_kind {
    CEILING_SUBMIT = 1, /* number: the client's; answered by ACCEPTED */
    CEILING_CALL,       /* as SUBMIT, and answered by RESULT when the task is completed */
    CEILING_CREDIT,     /* number: how many tasks the worker takes at once */
    CEILING_COMPLETE,   /* number: the task's; answered by COMPLETED */
    CEILING_ACCEPTED,
    CEILING_RESULT,
    CEILING_TASK,
    CEILING_COMPLETED
} ceiling_kind_t;

typedef struct ceiling_head {
    uint64_t kind;
    uint64_t number;
} ceiling_head_t;

#endif
