/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What has to be looked up before a request can be handled: keys that memory does not answer. */
#ifndef TASKMQ_CORE_WANT_H
#define TASKMQ_CORE_WANT_H

#include "core/reads/reads.h"
#include "taskmq.pb-c.h"

lookup_t *want (key_list_t *keys, lookup_kind_t kind, const space_t *space);
void want_id (const reads_t *self, const space_t *space, const uint8_t *id, bool bodies,
              key_list_t *keys);
void want_payload (const reads_t *self, const space_t *space, const uint8_t *id, key_list_t *keys);
void want_result (const reads_t *self, const space_t *space, const uint8_t *id, key_list_t *keys);
void want_dedup (const reads_t *self, const space_t *space, const char *owner, const char *key,
                 key_list_t *keys);
/* A report about a lease that memory does not hold may be a repeat: its attempt says so. */
void want_lease (const reads_t *self, const space_t *space, const Taskmq__Lease *lease,
                 key_list_t *keys);
/* A row whose newest change memory does not hold. */
void want_row (const reads_t *self, row_kind_t kind, const void *key, size_t key_bytes,
               key_list_t *keys);
void want_ids (const reads_t *self, const space_t *space, size_t count,
               const ProtobufCBinaryData *ids, key_list_t *keys);

#endif
