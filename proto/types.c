/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The tables of taskmq_types.h as functions. Each switch is written by its table, so a new row
 * needs nothing here. */
#include "types.h"

#include <string.h>

const char *status_text (unsigned status)
{
    switch (status) {
#define X(number, NAME, text, terminal)                                                            \
    case number: return text;
        TMQ_STATUS_MAP (X)
#undef X
    default: return "?";
    }
}

bool status_is_known (unsigned status)
{
    switch (status) {
#define X(number, NAME, text, terminal)                                                            \
    case number: return true;
        TMQ_STATUS_MAP (X)
#undef X
    default: return false;
    }
}

bool status_is_terminal (unsigned status)
{
    switch (status) {
#define X(number, NAME, text, terminal)                                                            \
    case number: return terminal;
        TMQ_STATUS_MAP (X)
#undef X
    default: return false;
    }
}

const char *phase_text (unsigned phase)
{
    switch (phase) {
#define X(number, NAME, text)                                                                      \
    case number: return text;
        TMQ_PHASE_MAP (X)
#undef X
    default: return "?";
    }
}

const char *event_kind_text (unsigned kind)
{
    switch (kind) {
#define X(number, NAME, text)                                                                      \
    case number: return text;
        TMQ_EVENT_MAP (X)
#undef X
    default: return "?";
    }
}

const char *subject_text (unsigned subject)
{
    switch (subject) {
#define X(number, NAME, text)                                                                      \
    case number: return text;
        TMQ_SUBJECT_MAP (X)
#undef X
    default: return "?";
    }
}

const char *policy_text (unsigned policy)
{
    switch (policy) {
#define X(number, NAME, text)                                                                      \
    case number: return text;
        TMQ_POLICY_MAP (X)
#undef X
    default: return "?";
    }
}

const char *session_status_text (unsigned status)
{
    switch (status) {
#define X(number, NAME, text)                                                                      \
    case number: return text;
        TMQ_SESSION_STATUS_MAP (X)
#undef X
    default: return "?";
    }
}

const char *code_name (int code)
{
    switch (code) {
    case TMQ_OK: return "OK";
#define X(number, NAME, text, retriable)                                                           \
    case number: return #NAME;
        TMQ_ERROR_MAP (X)
#undef X
    default: return "?";
    }
}

const char *code_text (int code)
{
    switch (code) {
    case TMQ_OK: return "ok";
#define X(number, NAME, text, retriable)                                                           \
    case number: return text;
        TMQ_ERROR_MAP (X)
#undef X
    default: return "?";
    }
}

bool code_is_retriable (int code)
{
    switch (code) {
#define X(number, NAME, text, retriable)                                                           \
    case number: return retriable;
        TMQ_ERROR_MAP (X)
#undef X
    default: return false;
    }
}

const char *task_error_text (int32_t code)
{
    switch (code) {
#define X(number, NAME, text)                                                                      \
    case number: return text;
        TMQ_TASK_ERROR_MAP (X)
#undef X
    default: return NULL;
    }
}

bool task_error_is_reserved (int32_t code)
{
    return code >= TMQ_TASK_ERROR_RESERVED_FIRST && code <= TMQ_TASK_ERROR_RESERVED_LAST &&
           code != TMQ_TASK_ERROR_TOO_LARGE;
}
