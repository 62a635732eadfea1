/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* taskctl audit verify: chains of lines, over their files. */
#ifndef TASKCTL_VERIFY_H
#define TASKCTL_VERIFY_H

#include "line/app.h"

enum { VERIFY_TEXT_SIZE = 9216, VERIFY_CHAINS = 2 };

/* What is found of a chain. */
typedef struct verify_report {
    bool there;
    bool good;   /* what is there holds together */
    size_t gaps; /* it says itself that lines are not there */
    uint64_t lines;
    char text[VERIFY_TEXT_SIZE]; /* of what is not good, or of the newest gap */
} verify_report_t;

int verify_run (app_t *app);
/* The record of deeds and the events of a directory. False: one of them cannot be read, and problem
 * says why. */
bool verify_directory (const app_t *app, const char *directory, verify_report_t out[VERIFY_CHAINS],
                       char problem[VERIFY_TEXT_SIZE]);

#endif
