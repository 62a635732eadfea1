/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the verbs of TASKMQ_FD share (job_talk.c, job_turn.c). Each verb takes the rest of its line
 * and returns what was wrong, NULL for nothing; the text is good until the next call. */
#ifndef TASKCTL_TALK_H
#define TASKCTL_TALK_H

#include "work/job.h"

/* Beside a status message, a checkpoint, a turn or a question on its way. */
typedef struct word {
    unsigned attempt;
    size_t bytes;                             /* of a checkpoint */
    char key[TMQ_QUESTION_KEY_BYTES_MAX + 1]; /* of a question */
} word_t;

/* NULL: too many are on their way. */
word_t *word_new (work_job_t *job, const char *key);
/* It was begun, unless error says so. */
const char *word_sent (work_job_t *job, word_t *word, const tmq_error_t *error);
extern const char word_too_many[];

/* "turn {JSON}". */
const char *talk_take_turn (work_job_t *job, const char *text);
/* What the broker says of the first turn. False: it will be told again, and its word lives on. */
bool talk_turn_answered (work_job_t *job, const tmq_completion_t *answer);
/* Tells the next turn. */
void talk_go_on (work_job_t *job);
/* Turns that were never sent, and files. */
void talk_forget_turns (work_job_t *job);
/* "file read|write|delete PATH": goes with the next turn. */
const char *talk_take_file (work_job_t *job, const char *text);

#endif
