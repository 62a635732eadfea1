/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "access_work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"

key_public_t access_work_key (const ProtobufCBinaryData *data)
{
    key_public_t key;
    memcpy (key.bytes, data->data, sizeof (key.bytes)); /* the validator knows its length */
    return key;
}

const char *access_work_who (char out[ACCESS_WHO_SIZE], const char *kind, const key_public_t *key)
{
    char text[KEY_TEXT_SIZE];
    key_text_public (text, key);
    snprintf (out, ACCESS_WHO_SIZE, "%s:%s", kind, text);
    return out;
}

const char *access_work_time (char out[TIME_TEXT_SIZE], int64_t ms)
{
    if (ms == 0 || !time_format (out, ms / 1000 * 1000))
        out[0] = '\0';
    return out;
}

void access_work_split (access_words_t *out, const principal_t *principal)
{
    char *rest = NULL;
    *out = (access_words_t){.copy = memory_text (principal->may)};
    for (char *word = strtok_r (out->copy, " ", &rest);
         word != NULL && out->count < POLICY_GRANTS_MAX; word = strtok_r (NULL, " ", &rest))
        if (strcmp (word, "-") != 0)
            out->list[out->count++] = word;
}

void access_work_put (access_work_t *work, const char *name, char *line)
{
    char *before = work->text;
    work->text = policy_text_put (before, work->bytes, name, line, &work->bytes);
    free (before);
    free (line);
}

void access_work_change_line (access_work_t *work, const principal_t *principal,
                              const access_line_t *wanted)
{
    char *old = access_line_find (work->before, work->before_bytes, principal->line);
    access_work_put (work, principal->name, access_line_make (old, wanted));
    free (old);
}

void access_work_begin (access_work_t *work, const char *text, size_t bytes)
{
    work->text = memory_alloc (bytes + 1);
    memcpy (work->text, text, bytes);
    work->text[bytes] = '\0';
    work->bytes = bytes;
}

const char *access_work_invitation (const char *name)
{
    size_t length = strlen (ACCESS_INVITATION_PREFIX);
    return strncmp (name, ACCESS_INVITATION_PREFIX, length) == 0 ? name + length : name;
}
