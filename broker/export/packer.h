/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Packs a file that never changes any more: NAME becomes NAME.zst (packed.h), in steps that each
 * take some milliseconds. A kill between any two of them leaves the one or the other whole, or
 * both, which are the same then: the packed file gets its name when it is on the disk, and only
 * after that the plain one goes. */
#ifndef TASKMQ_EXPORT_PACKER_H
#define TASKMQ_EXPORT_PACKER_H

#include <stdbool.h>

#include "core/base/shared_limit.h"

typedef struct packer packer_t;

typedef enum packer_state {
    PACKER_MORE, /* there are further steps */
    PACKER_DONE,
    PACKER_FAILED /* the plain file is as it was */
} packer_state_t;

enum { PACKER_ERROR_SIZE = 512 };

/* free_bytes_min: of the disk, of which packing leaves so much; with less it fails. It must outlive
 * the packer; NULL: any. */
packer_t *packer_new (const char *path, shared_limit_t *free_bytes_min);
/* The file that is being made goes, if it is not done. Accepts a NULL object. */
void packer_free (packer_t **self_p);
packer_state_t packer_step (packer_t *self, char error[PACKER_ERROR_SIZE]);

#endif
