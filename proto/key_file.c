/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "key_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "disk.h"

static int refuse (char error[KEY_FILE_ERROR_SIZE], int code, const char *format, ...)
    __attribute__ ((format (printf, 3, 4)));

static int refuse (char error[KEY_FILE_ERROR_SIZE], int code, const char *format, ...)
{
    va_list list;
    va_start (list, format);
    vsnprintf (error, KEY_FILE_ERROR_SIZE, format, list);
    va_end (list);
    return code;
}

static int refuse_system (char error[KEY_FILE_ERROR_SIZE], const char *path)
{
    const int code = errno != 0 ? errno : EIO;
    return refuse (error, code, "%s: %s", path, strerror (code));
}

/* Reading. */

static int check (int fd, const char *path, char error[KEY_FILE_ERROR_SIZE])
{
    struct stat status;
    if (fstat (fd, &status) != 0)
        return refuse_system (error, path);
    if (!S_ISREG (status.st_mode))
        return refuse (error, EPERM, "%s is no regular file", path);
    if (status.st_uid != geteuid () && status.st_uid != 0)
        return refuse (error, EPERM, "%s belongs to uid %u, not to you", path,
                       (unsigned) status.st_uid);
    if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0)
        return refuse (error, EPERM, "%s is readable by others (mode %04o): chmod 600 %s", path,
                       (unsigned) status.st_mode & 07777, path);
    return 0;
}

/* Opens a file that nobody else may read, for reading; the caller closes *fd. */
static int secret_file_open (int *fd, const char *path, char error[KEY_FILE_ERROR_SIZE])
{
    /* Not blocking: whoever plants a pipe does not stop us. */
    const int opened = open (path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (opened < 0 && errno == ELOOP)
        return refuse (error, EPERM, "%s is a symbolic link: name the file itself", path);
    if (opened < 0)
        return refuse_system (error, path);
    const int code = check (opened, path, error);
    if (code != 0)
        close (opened);
    else
        *fd = opened;
    return code;
}

/* The first word of the one line that is neither empty nor a comment, cut out of text, and its
 * second; NULL if there is no such line or more than one. *number is its place. */
static char *only_line (char *text, char **second, size_t *number)
{
    char *rest = text, *found = NULL;
    for (size_t count = 1; rest != NULL; count++) {
        char *line = strsep (&rest, "\n");
        line += strspn (line, " \t\r");
        if (line[0] == '\0' || line[0] == '#')
            continue;
        if (found != NULL)
            return NULL;
        found = strsep (&line, " \t\r");
        *second = line != NULL ? line + strspn (line, " \t\r") : found + strlen (found);
        (*second)[strcspn (*second, " \t\r")] = '\0';
        *number = count;
    }
    return found;
}

static int read_text (char text[SECRET_FILE_BYTES_MAX + 2], const char *path,
                      char error[KEY_FILE_ERROR_SIZE])
{
    int fd = -1;
    int code = secret_file_open (&fd, path, error);
    if (code != 0)
        return code;
    size_t length = 0;
    ssize_t got = 1;
    while (got > 0 && length <= SECRET_FILE_BYTES_MAX) {
        got = read (fd, text + length, SECRET_FILE_BYTES_MAX + 1 - length);
        length += got > 0 ? (size_t) got : 0;
    }
    text[length] = '\0';
    if (got < 0)
        code = refuse_system (error, path);
    else if (length > SECRET_FILE_BYTES_MAX)
        code = refuse (error, EBADMSG, "%s is over %d bytes", path, SECRET_FILE_BYTES_MAX);
    close (fd);
    return code;
}

int key_file_read_with (key_secret_t *out, char rest[KEY_FILE_REST_SIZE], const char *path,
                        char error[KEY_FILE_ERROR_SIZE])
{
    char text[SECRET_FILE_BYTES_MAX + 2], reason[KEY_ERROR_SIZE];
    size_t number = 0;
    int code = read_text (text, path, error);
    char *behind = NULL;
    const char *line = code == 0 ? only_line (text, &behind, &number) : NULL;
    if (code == 0 && line == NULL)
        code = refuse (error, EBADMSG, "%s is no key file: it needs one line tmqsk_…", path);
    else if (code == 0 && !key_parse_secret (out, line, reason))
        code = refuse (error, EBADMSG, "%s:%zu: %s", path, number, reason);
    else if (code == 0 && rest != NULL)
        snprintf (rest, KEY_FILE_REST_SIZE, "%s", behind);
    sodium_memzero (text, sizeof text);
    return code;
}

int key_file_read (key_secret_t *out, const char *path, char error[KEY_FILE_ERROR_SIZE])
{
    return key_file_read_with (out, NULL, path, error);
}

/* Writing. */

int secret_file_write (const char *path, const char *text, size_t length, bool replace,
                       char error[KEY_FILE_ERROR_SIZE])
{
    char other[PATH_MAX];
    const int fd = disk_temporary (other, sizeof other, path);
    if (fd < 0)
        return refuse_system (error, path);
    int code = 0;
    if (disk_write (fd, text, length) != 0 || fsync (fd) != 0 ||
        (replace ? rename (other, path) : link (other, path)) != 0 || disk_sync_parent (path) != 0)
        code = refuse_system (error, path);
    close (fd);
    unlink (other); /* already renamed: nothing is there */
    if (code == EEXIST)
        return refuse (error, code, "%s is there already, and stays", path);
    return code;
}

int key_file_write_with (const char *path, const char *what, const key_secret_t *secret,
                         const char *rest, bool replace, char error[KEY_FILE_ERROR_SIZE])
{
    char public_text[KEY_TEXT_SIZE], secret_text[KEY_TEXT_SIZE], made[32], text[512];
    key_public_t public_key;
    struct tm now;
    const time_t seconds = time (NULL);
    gmtime_r (&seconds, &now);
    strftime (made, sizeof made, "%Y-%m-%dT%H:%M:%SZ", &now);
    key_public_of (&public_key, secret);
    key_text_public (public_text, &public_key);
    key_text_secret (secret_text, secret);
    const int length = snprintf (text, sizeof text, "# %smade %s\n# public key %s\n%s%s%s\n", what,
                                 made, public_text, secret_text, rest[0] != '\0' ? " " : "", rest);
    const int code = secret_file_write (path, text, (size_t) length, replace, error);
    sodium_memzero (secret_text, sizeof secret_text);
    sodium_memzero (text, sizeof text);
    return code;
}

int key_file_write (const char *path, const key_secret_t *secret, bool replace,
                    char error[KEY_FILE_ERROR_SIZE])
{
    return key_file_write_with (path, "", secret, "", replace, error);
}
