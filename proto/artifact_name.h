/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Names of artifacts. Each becomes the name of a file on whoever's machine reads it, so it must not
 * lead out of a directory, hide there, or write to a terminal. */
#ifndef TASKMQ_ARTIFACT_NAME_H
#define TASKMQ_ARTIFACT_NAME_H

/* Of BlobRead.part; 1 is the payload, 2 the result. */
enum { BLOB_PART_ARTIFACT = 3, BLOB_PART_LATE = 4 };

#define ARTIFACT_TYPE "application/octet-stream" /* of one whose worker says nothing else */

/* NULL: it may be one, else what is wrong with it. */
const char *artifact_name_flaw (const char *name);

#endif
