/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "alike.h"

#include <string.h>

#include "log/log.h"

static const uint8_t ROW_KEY[] = {0};
static const uint8_t NONE[sizeof (alike_parts_t)];

static bool is_none (const void *bytes, size_t length)
{
    return memcmp (bytes, NONE, length) == 0;
}

void alike_init (alike_t *self, const boot_t *boot, const key_public_t *key)
{
    *self = (alike_t){.in_turn = !is_none (boot->instance, sizeof (boot->instance)), .key = key};
    memcpy (self->own.instance, boot->instance, sizeof (self->own.instance));
}

void alike_restore (alike_t *self, const row_t *row)
{
    if (buf_length (row->body) != sizeof (self->kept))
        return;
    memcpy (&self->kept, buf_bytes (row->body), sizeof (self->kept));
    self->is_kept = true;
}

void alike_policy (alike_t *self, const policy_t *policy)
{
    memset (self->own.access, 0, sizeof (self->own.access));
    if (policy != NULL)
        memcpy (self->own.access, policy_digest (policy), sizeof (self->own.access));
}

static void take_key (alike_t *self)
{
    if (self->key != NULL)
        self->own.key = *self->key;
}

void alike_compare (alike_t *self)
{
    take_key (self);
    const alike_parts_t *own = &self->own;
    const alike_parts_t *kept = &self->kept;
    if (!self->in_turn || !self->is_kept ||
        memcmp (own->instance, kept->instance, sizeof (own->instance)) == 0)
        return;
    if (memcmp (own->access, kept->access, sizeof (own->access)) != 0)
        log_write (LOG_LEVEL_WARNING, "ACCESS-DIFFERS",
                   is_none (own->access, sizeof (own->access))
                       ? "the broker that owned the data before had an access file, and this one "
                         "has none: copy it from there"
                       : "the access file is not the one of the broker that owned the data "
                         "before: who was let in or put out there may not be here. Copy it from "
                         "there",
                   NULL);
    if (memcmp (&own->key, &kept->key, sizeof (own->key)) != 0)
        log_write (LOG_LEVEL_WARNING, "SERVER-KEY-DIFFERS",
                   "the server key is not the one of the broker that owned the data before: "
                   "clients that know that one do not come in here",
                   NULL);
}

bool alike_row (alike_t *self, row_t *out)
{
    take_key (self);
    if (!self->in_turn ||
        (self->is_kept && memcmp (&self->own, &self->kept, sizeof (self->own)) == 0))
        return false;
    self->kept = self->own;
    self->is_kept = true;
    *out = row_make (ROW_KIND_ALIKE, ROW_KEY, sizeof (ROW_KEY), &self->kept, sizeof (self->kept));
    return true;
}
