/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The forms of an export, and how a file of each begins. */
#ifndef TASKCTL_FORM_H
#define TASKCTL_FORM_H

#include <stdbool.h>
#include <stddef.h>

typedef enum form { FORM_JSONL, FORM_JSON, FORM_TASK, FORM_CSV, FORMS } form_t;

/* "jsonl"; of a form below FORMS. */
const char *form_name (form_t form);
/* FORMS: there is no form of that name. */
form_t form_named (const char *name);
/* By the beginning of a file; FORMS: it is no export of tasks with their ids in front. */
form_t form_of (const char *head);
/* Whether a file that begins so can be an export in that form with these fields; NULL: all. */
bool form_fits (form_t form, const char *fields, const char *head);

#endif
