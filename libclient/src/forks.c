/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "forks.h"

#include <pthread.h>

static unsigned forks; /* written in a child alone, while it has but one thread */

static void count_fork (void)
{
    forks++;
}

static void watch_forks (void)
{
    pthread_atfork (NULL, NULL, count_fork);
}

unsigned forks_count (void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once (&once, watch_forks);
    return forks;
}
