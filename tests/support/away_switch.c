/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "support/away_store.h"

away_switch_t *away_switch_map (const char *path)
{
    int fd = open (path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void *at = MAP_FAILED;
    if (fd >= 0 && ftruncate (fd, sizeof (away_switch_t)) == 0)
        at = mmap (NULL, sizeof (away_switch_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) {
        perror (path);
        abort ();
    }
    close (fd);
    return at;
}

void away_switch_set (away_switch_t *self, int away)
{
    struct timespec now;
    clock_gettime (CLOCK_MONOTONIC, &now);
    int64_t ms = (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
    atomic_store (&self->since, away ? ms : 0);
}
