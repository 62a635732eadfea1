/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "verbs/form.h"

#include <stdio.h>
#include <string.h>

static const char *const names[FORMS] = {"jsonl", "json", "task", "csv"};

/* With the ids in front, as in all that has all fields. */
static const char *const beginnings[FORMS] = {"{\"task_id\":", "{\"items\":[", "task_id   ",
                                              "task_id,"};

const char *form_name (form_t form)
{
    return names[form];
}

form_t form_named (const char *name)
{
    form_t form = 0;
    while (form < FORMS && strcmp (name, names[form]) != 0)
        form++;
    return form;
}

static bool begins (const char *text, const char *with)
{
    return strncmp (text, with, strlen (with)) == 0;
}

form_t form_of (const char *head)
{
    form_t form = 0;
    while (form < FORMS && !begins (head, beginnings[form]))
        form++;
    return form;
}

bool form_fits (form_t form, const char *fields, const char *head)
{
    char first[256];
    if (form_of (head) != FORMS)
        return true;
    if (fields == NULL || (form != FORM_CSV && form != FORM_JSONL))
        return false;
    snprintf (first, sizeof first,
              form == FORM_CSV ? "%.*s" : "{\"%.*s\":", (int) strcspn (fields, ","), fields);
    return begins (head, first);
}
