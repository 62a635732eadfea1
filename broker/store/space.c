/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/space.h"

#include <sys/statvfs.h>

uint64_t space_free_bytes (const char *directory)
{
    struct statvfs status;
    if (statvfs (directory, &status) != 0)
        return 0;
    return (uint64_t) status.f_bavail * status.f_frsize;
}
