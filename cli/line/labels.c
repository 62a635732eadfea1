/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "line/labels.h"

#include <string.h>

bool labels_add (labels_t *self, const char *text)
{
    const size_t length = strcspn (text, "=");
    if (self->count == TMQ_LABELS_MAX)
        return false;
    char *key = self->keys[self->count];
    memcpy (key, text, length);
    key[length] = '\0';
    self->list[self->count++] = (tmq_label_t){key, text + length + 1};
    return true;
}

bool labels_from_args (labels_t *out, const args_t *args, option_id_t option)
{
    const size_t count = args_count (args, option);
    out->count = 0;
    for (size_t i = 0; i < count; i++)
        if (!labels_add (out, args_nth (args, option, i)->text))
            return false;
    return true;
}
