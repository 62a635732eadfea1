/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* --fields: the members of JSON objects by choice. */
#ifndef TASKCTL_FIELDS_H
#define TASKCTL_FIELDS_H

#include "json.h"
#include "line/app.h"

/* 0 if --fields is absent, or if it names members of tasks and events and the output is JSON. Else
 * an exit code. */
int fields_check (const app_t *app);
/* Cuts the object in bytes, which our own writer made, down to the members that fields names, in
 * that order. What is not there is null. "labels.x", "label:x" and "error.code" reach inside. */
void fields_pick (bytes_t *bytes, const char *fields);
/* The text of a member's value, of an object that our own writer made. NULL: it has none of that
 * name, as it stands there. Freed by free (). */
char *fields_value (const bytes_t *object, const char *key);

#endif
