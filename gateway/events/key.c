/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "events/key.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"

enum { PARTS_MAX = 5 * TMQ_FILTER_VALUES_MAX };

typedef struct parts {
    char *texts[PARTS_MAX];
    size_t count;
    bool failed;
} parts_t;

/* With its length, so that no two lists of values give the same text. */
static void add (parts_t *self, char what, const char *first, const char *second)
{
    const size_t size = strlen (first) + strlen (second) + 64;
    char *text = self->count < PARTS_MAX ? malloc (size) : NULL;
    if (text == NULL) {
        self->failed = true;
        return;
    }
    snprintf (text, size, "%c%zu:%s%zu:%s", what, strlen (first), first, strlen (second), second);
    self->texts[self->count++] = text;
}

static int compare (const void *left, const void *right)
{
    return strcmp (*(char *const *) left, *(char *const *) right);
}

char *filter_key (const tmq_filter_t *filter, const char *owner)
{
    parts_t parts = {.count = 0};
    bytes_t out = BYTES_INIT;
    char id[37];
    for (size_t i = 0; i < filter->queues_count; i++)
        add (&parts, 'q', filter->queues[i], "");
    for (size_t i = 0; i < filter->sessions_count; i++)
        add (&parts, 's', filter->sessions[i], "");
    for (size_t i = 0; i < filter->statuses_count; i++)
        add (&parts, 't', tmq_status_text (filter->statuses[i]), "");
    for (size_t i = 0; i < filter->labels_count; i++)
        add (&parts, 'l', filter->labels[i].key, filter->labels[i].value);
    for (size_t i = 0; i < filter->task_ids_count; i++) {
        tmq_id_format (&filter->task_ids[i], id);
        add (&parts, 'i', id, "");
    }
    qsort (parts.texts, parts.count, sizeof *parts.texts, compare);
    bytes_append_text (&out, owner != NULL ? "o" : "-");
    bytes_append_text (&out, owner != NULL ? owner : "");
    for (size_t i = 0; i < parts.count; i++) {
        if (i > 0 && strcmp (parts.texts[i], parts.texts[i - 1]) == 0)
            continue;
        bytes_append_byte (&out, '\n');
        bytes_append_text (&out, parts.texts[i]);
    }
    char *text = parts.failed || bytes_text (&out) == NULL ? NULL : strdup (bytes_text (&out));
    for (size_t i = 0; i < parts.count; i++)
        free (parts.texts[i]);
    bytes_free (&out);
    return text;
}
