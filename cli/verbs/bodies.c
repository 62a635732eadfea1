/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "verbs/bodies.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/exit.h"
#include "base/memory.h"

enum { HEX_SIZE = 2 * TMQ_BLOB_HASH_BYTES + 1, PIECE_BYTES = 256 * 1024 };

#define OTHER_BYTES "the file %s has other bytes: remove it, and export with --bodies again"

static void name_of (char out[HEX_SIZE], const uint8_t *hash)
{
    sodium_bin2hex (out, HEX_SIZE, hash, TMQ_BLOB_HASH_BYTES);
}

/* Freed by free (). */
static char *path_of (const char *directory, const uint8_t *hash)
{
    char name[HEX_SIZE];
    char *path = must_alloc (strlen (directory) + sizeof name + 1);
    name_of (name, hash);
    sprintf (path, "%s/%s", directory, name);
    return path;
}

/* False with errno: it cannot be read. */
static bool hash_file (int fd, uint8_t hash[TMQ_BLOB_HASH_BYTES])
{
    crypto_generichash_state state;
    uint8_t *piece = must_alloc (PIECE_BYTES);
    off_t offset = 0;
    ssize_t got;
    crypto_generichash_init (&state, NULL, 0, TMQ_BLOB_HASH_BYTES);
    while ((got = pread (fd, piece, PIECE_BYTES, offset)) > 0) {
        crypto_generichash_update (&state, piece, (size_t) got);
        offset += got;
    }
    crypto_generichash_final (&state, hash, TMQ_BLOB_HASH_BYTES);
    free (piece);
    return got == 0;
}

__attribute__ ((format (printf, 3, 4))) static int no_body (int fd, char flaw[BODY_FLAW_SIZE],
                                                            const char *format, ...)
{
    va_list list;
    va_start (list, format);
    vsnprintf (flaw, BODY_FLAW_SIZE, format, list);
    va_end (list);
    if (fd >= 0)
        close (fd);
    return -1;
}

/* One of the right length; a link is not followed, and a pipe is not waited for. */
static int open_file (const char *directory, const tmq_blob_t *blob, char flaw[BODY_FLAW_SIZE])
{
    char name[HEX_SIZE];
    struct stat found;
    char *path = path_of (directory, blob->hash);
    name_of (name, blob->hash);
    const int fd = open (path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    const int reason = errno;
    free (path);
    if (fd < 0 && reason == ENOENT)
        return no_body (fd, flaw, "the file %s is not in the directory of --bodies", name);
    if (fd < 0 || fstat (fd, &found) != 0 || !S_ISREG (found.st_mode))
        return no_body (fd, flaw, "%s is no file that can be read", name);
    if ((uint64_t) found.st_size != blob->bytes)
        return no_body (fd, flaw, OTHER_BYTES, name);
    return fd;
}

int body_open (const char *directory, const tmq_blob_t *blob, char flaw[BODY_FLAW_SIZE])
{
    char name[HEX_SIZE];
    uint8_t hash[TMQ_BLOB_HASH_BYTES];
    const int fd = open_file (directory, blob, flaw);
    if (fd < 0)
        return fd;
    name_of (name, blob->hash);
    if (!hash_file (fd, hash))
        return no_body (fd, flaw, "the file %s cannot be read: %s", name, strerror (errno));
    if (memcmp (hash, blob->hash, sizeof hash) != 0)
        return no_body (fd, flaw, OTHER_BYTES, name);
    return fd;
}

int body_fetch (const app_t *app, const char *directory, const fetched_t *body)
{
    char flaw[BODY_FLAW_SIZE];
    tmq_blob_t blob = {.bytes = body->bytes};
    fetched_t file = *body;
    memcpy (blob.hash, body->hash, sizeof blob.hash);
    const int fd = body_open (directory, &blob, flaw);
    if (fd >= 0) {
        close (fd);
        return EXIT_OK;
    }
    char *path = path_of (directory, body->hash);
    file.path = path;
    file.as_file = true; /* a pipe that nobody reads would be waited for */
    const int code = fetched_save (&file, app);
    free (path);
    return code;
}

int body_upload (const app_t *app, const char *directory, const tmq_blob_t *blob,
                 tmq_error_t *error)
{
    char flaw[BODY_FLAW_SIZE];
    char name[HEX_SIZE];
    tmq_blob_t put;
    const int fd = open_file (directory, blob, flaw);
    error->code = TMQ_INVALID;
    if (fd < 0) {
        snprintf (error->text, sizeof error->text, "%s", flaw);
        return error->code;
    }
    error->code = tmq_blob_put_file (&put, app->client, fd, app->timeout_ms, error);
    close (fd);
    if (error->code == TMQ_OK && memcmp (put.hash, blob->hash, sizeof put.hash) != 0) {
        error->code = TMQ_INVALID;
        name_of (name, blob->hash);
        snprintf (error->text, sizeof error->text, OTHER_BYTES, name);
    }
    return error->code;
}
