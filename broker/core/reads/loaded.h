/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The answers of this round's look-up, by what was asked. */
#ifndef TASKMQ_CORE_LOADED_H
#define TASKMQ_CORE_LOADED_H

#include "core/reads/reads.h"

/* Takes the keys with their records; what was there before is forgotten. */
void loaded_take (reads_t *self, lookup_t *keys, size_t count);
void loaded_clear (reads_t *self);
/* Frees keys that nobody has answered. */
void loaded_free_keys (key_list_t *keys);
/* The answer about an id or one of its attempts; the one with bodies if there are several. */
const lookup_t *loaded_id (const reads_t *self, const space_t *space, const uint8_t *id,
                           lookup_kind_t kind, uint32_t attempt);
const lookup_t *loaded_row (const reads_t *self, row_kind_t kind, const void *key,
                            size_t key_bytes);
const lookup_t *loaded_dedup (const reads_t *self, const space_t *space, const char *owner,
                              const char *dedup_key);

#endif
