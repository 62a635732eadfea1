/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Failure: a file that others could have read or written is refused, never mended: somebody has to
 * know that the key may be in other hands. */
#include "server_key.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "key_file.h"
#include "units.h"

#define FILE_NAME "server.key"
#define NEXT_NAME FILE_NAME ".next"

__attribute__ ((format (printf, 3, 4))) static exits_t fail (char *error, exits_t code,
                                                             const char *format, ...)
{
    va_list arguments;
    va_start (arguments, format);
    vsnprintf (error, SERVER_KEY_ERROR_SIZE, format, arguments);
    va_end (arguments);
    return code;
}

/* rest: when it counts; empty: now. */
static exits_t write_file (const char *name, const char *what, const key_secret_t *key,
                           const char *rest, const data_t *data, char error[SERVER_KEY_ERROR_SIZE])
{
    char path[DATA_PATH_SIZE];
    char why[KEY_FILE_ERROR_SIZE];
    if (!data_path (data, name, path, sizeof (path)))
        return fail (error, EXITS_DATA, "the path of %s is too long", data->directory);
    int code = key_file_write_with (path, what, key, rest, true, why);
    if (code == 0)
        return EXITS_OK;
    bool full = code == ENOSPC || code == EDQUOT;
    return fail (error, full ? EXITS_FULL : EXITS_DATA, "cannot write %s", why);
}

/* Replaces the file by this key, atomically and durably. */
static exits_t server_key_write (const key_secret_t *key, const data_t *data,
                                 char error[SERVER_KEY_ERROR_SIZE])
{
    return write_file (FILE_NAME, "the broker's key, ", key, "", data, error);
}

exits_t server_key_write_next (const key_secret_t *key, int64_t at_ms, const data_t *data,
                               char error[SERVER_KEY_ERROR_SIZE])
{
    char at[TIME_TEXT_SIZE];
    if (!time_format (at, at_ms))
        return fail (error, EXITS_DATA, "the time of the next key is too far away");
    return write_file (NEXT_NAME, "the broker's next key, ", key, at, data, error);
}

exits_t server_key_use_next (const key_secret_t *key, const data_t *data,
                             char error[SERVER_KEY_ERROR_SIZE])
{
    char path[DATA_PATH_SIZE];
    exits_t code = server_key_write (key, data, error);
    if (code == EXITS_OK && data_path (data, NEXT_NAME, path, sizeof (path)))
        unlink (path);
    return code;
}

/* at_ms: NULL, if no time belongs to the key. */
static exits_t read_file (const char *name, key_secret_t *out, int64_t *at_ms, bool *there,
                          const data_t *data, char error[SERVER_KEY_ERROR_SIZE])
{
    char path[DATA_PATH_SIZE];
    char rest[KEY_FILE_REST_SIZE];
    char why[KEY_FILE_ERROR_SIZE];
    char reason[UNITS_ERROR_SIZE];
    *there = false;
    if (!data_path (data, name, path, sizeof (path)))
        return fail (error, EXITS_DATA, "the path of %s is too long", data->directory);
    int code = key_file_read_with (out, rest, path, why);
    if (code == ENOENT)
        return EXITS_OK;
    if (code != 0)
        return fail (error, EXITS_KEYS, "%s", why);
    if (at_ms != NULL && !time_parse (at_ms, rest, reason))
        return fail (error, EXITS_KEYS, "%s: when does the key count? %s", path, reason);
    *there = true;
    return EXITS_OK;
}

exits_t server_key_read (key_secret_t *out, bool *there, const data_t *data,
                         char error[SERVER_KEY_ERROR_SIZE])
{
    return read_file (FILE_NAME, out, NULL, there, data, error);
}

exits_t server_key_read_next (key_secret_t *out, int64_t *at_ms, bool *there, const data_t *data,
                              char error[SERVER_KEY_ERROR_SIZE])
{
    return read_file (NEXT_NAME, out, at_ms, there, data, error);
}

exits_t server_key_open (key_secret_t *out, bool *made, const data_t *data,
                         char error[SERVER_KEY_ERROR_SIZE])
{
    bool there;
    exits_t code = server_key_read (out, &there, data, error);
    *made = code == EXITS_OK && !there;
    if (!*made)
        return code;
    key_public_t public_key;
    key_make (&public_key, out);
    return server_key_write (out, data, error);
}
