/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Files with a secret: the broker's server.key, and keys/NAME.key of a user.
 *
 * Such a file is two lines of comment (when it was made, the public key) and then one line with the
 * secret, "tmqsk_…". It has mode 0600 and belongs to who reads it or to root; any other is refused,
 * with the command that mends it. A symbolic link is not followed.
 *
 * Functions return 0 or an errno, with a text for people in error: ENOENT when there is no file,
 * EEXIST when one is in the way, EPERM when it cannot be trusted, EBADMSG when its contents are no
 * key. Any thread. */
#ifndef TASKMQ_PROTO_KEY_FILE_H
#define TASKMQ_PROTO_KEY_FILE_H

#include <stdbool.h>

#include "keys.h"

enum {
    KEY_FILE_ERROR_SIZE = 512,
    KEY_FILE_REST_SIZE = 64,     /* of what stands behind the secret */
    SECRET_FILE_BYTES_MAX = 4096 /* of a file with a key */
};

/* Writes the file whole or not at all, with mode 0600, and syncs it with its directory. Unless
 * replace is set, a file of that name stays and is EEXIST. */
int secret_file_write (const char *path, const char *text, size_t length, bool replace,
                       char error[KEY_FILE_ERROR_SIZE]);

/* The caller wipes *out. */
int key_file_read (key_secret_t *out, const char *path, char error[KEY_FILE_ERROR_SIZE]);
/* As secret_file_write. */
int key_file_write (const char *path, const key_secret_t *secret, bool replace,
                    char error[KEY_FILE_ERROR_SIZE]);

/* The same with a second word behind the secret, and with what the first comment says about the
 * key; either may be empty. rest may be NULL: it does not matter. */
int key_file_read_with (key_secret_t *out, char rest[KEY_FILE_REST_SIZE], const char *path,
                        char error[KEY_FILE_ERROR_SIZE]);
int key_file_write_with (const char *path, const char *what, const key_secret_t *secret,
                         const char *rest, bool replace, char error[KEY_FILE_ERROR_SIZE]);

#endif
