/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Whose directory a .taskmq is. One that was found upward from the working directory may have been
 * planted by anybody, as /tmp/.taskmq, to take what others submit. */
#ifndef TASKMQ_TRUST_H
#define TASKMQ_TRUST_H

#include <stdbool.h>
#include <sys/stat.h>

typedef enum trust {
    TRUST_GOOD,    /* of this user or of root, and nobody else may write in it */
    TRUST_FOREIGN, /* of another user */
    TRUST_WRITABLE /* the group or others may write */
} trust_t;

/* About an existing directory, for the effective user of the process. Of one that was named by
 * hand the owner does not matter. */
trust_t trust_directory (const struct stat *status, bool named);

/* The nearest .taskmq from the working directory upward, to be freed, or NULL. One that anybody may
 * have planted is passed over; the first of them is told in ignored. */
enum { TRUST_REASON_SIZE = 160 };
char *trust_nearest (char ignored[TRUST_REASON_SIZE]);

#endif
