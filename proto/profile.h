/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Saved connections: files with a line "key = value" for each option of a client, comments with #.
 * They lie in ~/.config/taskmq (or $XDG_CONFIG_HOME/taskmq): profiles/NAME.conf, keys/NAME.key, and
 * `profile`, which names the one that is taken when nothing else tells where the broker is.
 *
 * A file that others may write could send tasks elsewhere, so it is refused; one with a secret in
 * it must not be readable by others either. Any thread. Functions return 0 or an errno with a text
 * in error, as key_file.h says. */
#ifndef TASKMQ_PROTO_PROFILE_H
#define TASKMQ_PROTO_PROFILE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "key_file.h"

enum {
    PROFILE_BYTES_MAX = 16384,
    PROFILE_LINES_MAX = 128,
    PROFILE_NAME_SIZE = 65,
    PROFILE_ERROR_SIZE = KEY_FILE_ERROR_SIZE
};

typedef struct profile_line {
    const char *key;
    const char *value;
    size_t number; /* in the file, from 1 */
} profile_line_t;

typedef struct profile {
    char text[PROFILE_BYTES_MAX + 1]; /* wiped by profile_clear */
    profile_line_t lines[PROFILE_LINES_MAX];
    size_t count;
} profile_t;

/* $XDG_CONFIG_HOME/taskmq/BELOW, or that of ~/.config. False without a home, or if it is too
 * long. */
bool profile_home (char out[PATH_MAX], const char *below);
/* Makes the directory that path lies in, and those above it below the home's, with mode 0700. */
int profile_make_directory (const char *path, char error[PROFILE_ERROR_SIZE]);
/* The file of a profile: a text with a slash is a path, another one a name. */
int profile_path (char out[PATH_MAX], const char *name, char error[PROFILE_ERROR_SIZE]);
/* The name of the profile that is taken by default; false without one. */
bool profile_chosen (char name[PROFILE_NAME_SIZE]);
/* The first by name of those that are saved; false without any. */
bool profile_first (char name[PROFILE_NAME_SIZE]);

int profile_read (profile_t *out, const char *path, char error[PROFILE_ERROR_SIZE]);
void profile_clear (profile_t *self);
/* The last value of a key; NULL without one. */
const char *profile_value (const profile_t *self, const char *key);
/* Gives a key that value instead of its present ones (NULL: removes it) and leaves the other lines
 * as they are. A file that is not there is made, with mode 0600. */
int profile_set (const char *path, const char *key, const char *value,
                 char error[PROFILE_ERROR_SIZE]);

#endif
