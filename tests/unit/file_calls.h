/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The calls that change the files below one directory, as the linker hands them to us (`--wrap` of
 * FILE_CALLS in CMakeLists.txt): recorded, and failing when they are told to. Calls about other
 * files pass by. Syncs are recorded and not made: who loses power here does so in memory
 * (vfs_disk.h). One thread at a time changes files there. */
#ifndef TASKMQ_TESTS_FILE_CALLS_H
#define TASKMQ_TESTS_FILE_CALLS_H

#include "fault_vfs.h"

typedef struct file_calls {
    const char *below; /* part of the paths, with slashes around it; NULL: none is looked at */
    unsigned long made;
    unsigned long fails_at;   /* the call of this number fails; 0: none */
    unsigned long fails_upto; /* … and those before this one, too */
    int error;                /* with which they fail; a write has left half of its bytes then */
    unsigned long failed;
    vfs_record_t *record; /* NULL: nobody wants to know */
    void *context;
} file_calls_t;

extern file_calls_t file_calls;

#endif
