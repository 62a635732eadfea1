/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "trust.h"

#include <unistd.h>

trust_t trust_directory (const struct stat *status, bool named)
{
    if (!named && status->st_uid != geteuid () && status->st_uid != 0)
        return TRUST_FOREIGN;
    return (status->st_mode & (S_IWGRP | S_IWOTH)) != 0 ? TRUST_WRITABLE : TRUST_GOOD;
}
