/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* One line of the access file, made anew of what it was. Pure. */
#ifndef TASKMQ_BROKER_ACCESS_LINE_H
#define TASKMQ_BROKER_ACCESS_LINE_H

#include "core/access/policy.h"

/* What is to be different. Texts are borrowed; NULL leaves what was there. */
typedef struct access_line {
    const char *name;   /* never NULL */
    const char *who;    /* "key:tmqpk_…,uid:7" */
    const char *grants; /* "worker(default/render) client(default)" */
    const char *until;  /* options; an empty text takes the option away */
    const char *uses;
    const char *as;
    const char *used;
} access_line_t;

/* The line of a file whose number this is, without its newline; to be freed. */
char *access_line_find (const char *text, size_t bytes, unsigned number);
/* `old` (NULL: nothing) with these words changed; its comment and other options stay. To be freed.
 */
char *access_line_make (const char *old, const access_line_t *wanted);
/* Whom the line is about with one word more, or without that word; to be freed. Empty: nobody is
 * left. */
char *access_line_who (const char *line, const char *add, const char *drop);
/* … of its keys only this one. */
char *access_line_who_alone (const char *line, const char *key);

#endif
