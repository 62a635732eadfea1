/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Texts and look-ups over the tables of taskmq_types.h.
 *
 * All functions are pure and return static strings. Numbers that are in no table give "?" as text
 * and false as answer, so that a newer peer's numbers can be shown without a crash. */
#ifndef TASKMQ_PROTO_TYPES_H
#define TASKMQ_PROTO_TYPES_H

#include <stdbool.h>
#include <stdint.h>

#include "taskmq_types.h"

/* "input_required". */
const char *status_text (unsigned status);
bool status_is_known (unsigned status);
bool status_is_terminal (unsigned status);

const char *phase_text (unsigned phase);
const char *event_kind_text (unsigned kind);
const char *subject_text (unsigned subject);
const char *policy_text (unsigned policy); /* of a retention */
const char *session_status_text (unsigned status);

/* "NOT_FOUND"; "OK" for 0. */
const char *code_name (int code);
/* "no such task"; "ok" for 0. */
const char *code_text (int code);
/* The same call may succeed later without a change of its arguments. */
bool code_is_retriable (int code);

/* Text of one of our own codes in a task's error (S17), or NULL for any other. */
const char *task_error_text (int32_t code);
/* -33099..-33001: a worker may not use these. */
bool task_error_is_reserved (int32_t code);

#endif
