/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Failure: a file that others could have read or written is refused, never mended: somebody has to
 * know that the key may be in other hands. */
#include "server_key.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

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

/* Of the open file, so that nobody can exchange it after the look. */
static exits_t check (int fd, const char *path, char *error)
{
    struct stat info;
    if (fstat (fd, &info) != 0)
        return fail (error, EXITS_KEYS, "cannot look at %s: %s", path, strerror (errno));
    if (!S_ISREG (info.st_mode))
        return fail (error, EXITS_KEYS, "%s is not a file", path);
    if (info.st_uid != geteuid ())
        return fail (error, EXITS_KEYS, "%s belongs to uid %u, not to the broker's user", path,
                     (unsigned) info.st_uid);
    if ((info.st_mode & 077) != 0)
        return fail (error, EXITS_KEYS, "%s is readable by others (mode %04o): chmod 600 %s", path,
                     (unsigned) info.st_mode & 07777, path);
    if (info.st_size > SERVER_KEY_BYTES_MAX)
        return fail (error, EXITS_KEYS, "%s is over %d bytes", path, SERVER_KEY_BYTES_MAX);
    return EXITS_OK;
}

/* The first word of the one line that is neither empty nor a comment, and *second; NULL when there
 * is no such line, or more than one. */
static char *only_line (char *text, char **second)
{
    char *found = NULL;
    char *rest = text;
    for (char *line = strsep (&rest, "\n"); line != NULL; line = strsep (&rest, "\n")) {
        line += strspn (line, " \t\r");
        size_t length = strcspn (line, " \t\r");
        bool more = line[length] != '\0';
        line[length] = '\0';
        if (line[0] == '\0' || line[0] == '#')
            continue;
        if (found != NULL)
            return NULL;
        found = line;
        *second = line + length + more;
        *second += strspn (*second, " \t\r");
        (*second)[strcspn (*second, " \t\r")] = '\0';
    }
    return found;
}

/* at_ms: NULL, if no time belongs to the key. */
static exits_t read_key (key_secret_t *out, int64_t *at_ms, int fd, const char *path, char *error)
{
    char text[SERVER_KEY_BYTES_MAX + 1];
    char why[KEY_ERROR_SIZE];
    char reason[UNITS_ERROR_SIZE];
    char *second = NULL;
    exits_t code = check (fd, path, error);
    if (code != EXITS_OK)
        return code;
    ssize_t length = read (fd, text, sizeof (text) - 1);
    if (length < 0)
        return fail (error, EXITS_KEYS, "cannot read %s: %s", path, strerror (errno));
    text[length] = '\0';
    char *line = only_line (text, &second);
    if (line == NULL)
        code = fail (error, EXITS_KEYS, "%s has no line with a key, or more than one", path);
    else if (!key_parse_secret (out, line, why))
        code = fail (error, EXITS_KEYS, "%s: %s", path, why);
    else if (at_ms != NULL && !time_parse (at_ms, second, reason))
        code = fail (error, EXITS_KEYS, "%s: when does the key count? %s", path, reason);
    sodium_memzero (text, sizeof (text));
    return code;
}

static bool write_text (int fd, const char *text)
{
    size_t length = strlen (text);
    return write (fd, text, length) == (ssize_t) length && fsync (fd) == 0;
}

static bool sync_directory (const char *directory)
{
    int fd = open (directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool synced = fd >= 0 && fsync (fd) == 0;
    if (fd >= 0)
        close (fd);
    return synced;
}

/* at: when it counts; NULL: now. */
static void format_file (char *out, size_t size, const key_secret_t *key, const char *at)
{
    char secret[KEY_TEXT_SIZE];
    char text[KEY_TEXT_SIZE];
    char day[32];
    key_public_t public_key;
    struct tm now;
    time_t seconds = time (NULL);
    gmtime_r (&seconds, &now);
    strftime (day, sizeof (day), "%Y-%m-%dT%H:%M:%SZ", &now);
    key_public_of (&public_key, key);
    key_text_public (text, &public_key);
    key_text_secret (secret, key);
    snprintf (out, size, "# the broker's %skey, made %s\n# public: %s\n%s%s%s\n",
              at != NULL ? "next " : "", day, text, secret, at != NULL ? " " : "",
              at != NULL ? at : "");
    sodium_memzero (secret, sizeof (secret));
}

static exits_t write_file (const char *name, const key_secret_t *key, const char *at,
                           const data_t *data, char error[SERVER_KEY_ERROR_SIZE])
{
    char path[DATA_PATH_SIZE];
    char temporary[DATA_PATH_SIZE];
    char text[512];
    if (!data_path (data, name, path, sizeof (path)) ||
        !data_path (data, FILE_NAME ".new", temporary, sizeof (temporary)))
        return fail (error, EXITS_DATA, "the path of %s is too long", data->directory);
    unlink (temporary); /* of a start that was killed, or a link to somewhere else */
    int fd = open (temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return fail (error, EXITS_DATA, "cannot write %s: %s", temporary, strerror (errno));
    format_file (text, sizeof (text), key, at);
    bool written = write_text (fd, text);
    sodium_memzero (text, sizeof (text));
    if (close (fd) != 0 || !written || rename (temporary, path) != 0 ||
        !sync_directory (data->directory))
        return fail (error, EXITS_DATA, "cannot write %s: %s", path, strerror (errno));
    return EXITS_OK;
}

exits_t server_key_write (const key_secret_t *key, const data_t *data,
                          char error[SERVER_KEY_ERROR_SIZE])
{
    return write_file (FILE_NAME, key, NULL, data, error);
}

exits_t server_key_write_next (const key_secret_t *key, int64_t at_ms, const data_t *data,
                               char error[SERVER_KEY_ERROR_SIZE])
{
    char at[TIME_TEXT_SIZE];
    if (!time_format (at, at_ms))
        return fail (error, EXITS_DATA, "the time of the next key is too far away");
    return write_file (NEXT_NAME, key, at, data, error);
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

static exits_t read_file (const char *name, key_secret_t *out, int64_t *at_ms, bool *there,
                          const data_t *data, char error[SERVER_KEY_ERROR_SIZE])
{
    char path[DATA_PATH_SIZE];
    *there = false;
    if (!data_path (data, name, path, sizeof (path)))
        return fail (error, EXITS_DATA, "the path of %s is too long", data->directory);
    int fd = open (path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        return EXITS_OK;
    if (fd < 0)
        return fail (error, EXITS_KEYS, "cannot open %s: %s", path,
                     errno == ELOOP ? "it is a link" : strerror (errno));
    exits_t code = read_key (out, at_ms, fd, path, error);
    close (fd);
    *there = code == EXITS_OK;
    return code;
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
