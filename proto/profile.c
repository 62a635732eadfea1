/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "profile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ids.h"

static const char WHITE[] = " \t\r";

static int refuse (char error[PROFILE_ERROR_SIZE], int code, const char *format, ...)
    __attribute__ ((format (printf, 3, 4)));

static int refuse (char error[PROFILE_ERROR_SIZE], int code, const char *format, ...)
{
    va_list list;
    va_start (list, format);
    vsnprintf (error, PROFILE_ERROR_SIZE, format, list);
    va_end (list);
    return code;
}

static int refuse_system (char error[PROFILE_ERROR_SIZE], const char *path)
{
    const int code = errno != 0 ? errno : EIO;
    return refuse (error, code, "%s: %s", path, strerror (code));
}

/* Where they lie. */

bool profile_home (char out[PATH_MAX], const char *below)
{
    const char *config = getenv ("XDG_CONFIG_HOME");
    const char *home = getenv ("HOME");
    int length = PATH_MAX;
    if (config != NULL && config[0] == '/')
        length = snprintf (out, PATH_MAX, "%s/taskmq/%s", config, below);
    else if (home != NULL && home[0] == '/')
        length = snprintf (out, PATH_MAX, "%s/.config/taskmq/%s", home, below);
    return length < PATH_MAX;
}

int profile_make_directory (const char *path, char error[PROFILE_ERROR_SIZE])
{
    char copy[PATH_MAX];
    if (snprintf (copy, sizeof copy, "%s", path) >= (int) sizeof copy) {
        errno = ENAMETOOLONG;
        return refuse_system (error, path);
    }
    for (char *slash = strchr (copy + 1, '/'); slash != NULL; slash = strchr (slash + 1, '/')) {
        *slash = '\0';
        const int failed = mkdir (copy, 0700) == 0 || errno == EEXIST ? 0 : errno;
        if (failed != 0 && access (copy, F_OK) != 0) {
            errno = failed;
            return refuse_system (error, copy);
        }
        *slash = '/';
    }
    return 0;
}

int profile_path (char out[PATH_MAX], const char *name, char error[PROFILE_ERROR_SIZE])
{
    char below[sizeof "profiles/.conf" + PROFILE_NAME_SIZE];
    if (strchr (name, '/') != NULL) {
        if (snprintf (out, PATH_MAX, "%s", name) < PATH_MAX)
            return 0;
        return refuse (error, ENAMETOOLONG, "the path of the profile is too long");
    }
    if (!name_is_valid (name))
        return refuse (error, EINVAL, "profile: '%.80s' is neither a name nor a path with a slash",
                       name);
    snprintf (below, sizeof below, "profiles/%s.conf", name);
    if (!profile_home (out, below))
        return refuse (error, ENOENT, "profile %s: there is no home directory (HOME)", name);
    return 0;
}

bool profile_chosen (char name[PROFILE_NAME_SIZE])
{
    char path[PATH_MAX], error[PROFILE_ERROR_SIZE];
    profile_t profile;
    if (!profile_home (path, "profile") || profile_read (&profile, path, error) != 0)
        return false;
    const char *value = profile_value (&profile, "profile");
    const bool good = value != NULL && name_is_valid (value);
    if (good)
        snprintf (name, PROFILE_NAME_SIZE, "%s", value);
    profile_clear (&profile);
    return good;
}

/* The name of a file of a profile; false: it is none. */
static bool name_of (char name[PROFILE_NAME_SIZE], const char *file)
{
    static const char ending[] = ".conf";
    const size_t length = strlen (file);
    const size_t rest = sizeof ending - 1;
    if (length <= rest || length - rest >= PROFILE_NAME_SIZE ||
        strcmp (file + length - rest, ending) != 0)
        return false;
    memcpy (name, file, length - rest);
    name[length - rest] = '\0';
    return name_is_valid (name);
}

bool profile_first (char name[PROFILE_NAME_SIZE])
{
    char path[PATH_MAX], other[PROFILE_NAME_SIZE];
    DIR *directory = profile_home (path, "profiles") ? opendir (path) : NULL;
    bool found = false;
    if (directory == NULL)
        return false;
    for (const struct dirent *entry = readdir (directory); entry != NULL;
         entry = readdir (directory)) {
        if (!name_of (other, entry->d_name) || (found && strcmp (other, name) >= 0))
            continue;
        memcpy (name, other, sizeof other);
        found = true;
    }
    closedir (directory);
    return found;
}

/* Reading. */

static int check (const struct stat *status, const char *path, char error[PROFILE_ERROR_SIZE])
{
    if (!S_ISREG (status->st_mode))
        return refuse (error, EPERM, "%s is no regular file", path);
    if (status->st_uid != geteuid () && status->st_uid != 0)
        return refuse (error, EPERM, "%s belongs to uid %u, not to you", path,
                       (unsigned) status->st_uid);
    if ((status->st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return refuse (error, EPERM, "%s may be written by others (mode %04o): chmod 600 %s", path,
                       (unsigned) status->st_mode & 07777, path);
    if (status->st_size > PROFILE_BYTES_MAX)
        return refuse (error, EFBIG, "%s is longer than %d bytes", path, PROFILE_BYTES_MAX);
    return 0;
}

/* Reads the file whole into text. */
static int load (char text[PROFILE_BYTES_MAX + 1], struct stat *status, const char *path,
                 char error[PROFILE_ERROR_SIZE])
{
    const int fd = open (path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return refuse_system (error, path);
    int code = fstat (fd, status) == 0 ? check (status, path, error) : refuse_system (error, path);
    size_t length = 0;
    ssize_t got = 1;
    while (code == 0 && got > 0 && length < PROFILE_BYTES_MAX) {
        got = read (fd, text + length, PROFILE_BYTES_MAX - length);
        length += got > 0 ? (size_t) got : 0;
    }
    if (got < 0)
        code = refuse_system (error, path);
    close (fd);
    text[length] = '\0';
    if (code == 0 && strlen (text) != length)
        code = refuse (error, EBADMSG, "%s is no text", path);
    return code;
}

static char *trim (char *text)
{
    text += strspn (text, WHITE);
    size_t length = strlen (text);
    while (length > 0 && strchr (WHITE, text[length - 1]) != NULL)
        length--;
    text[length] = '\0';
    return text;
}

static int parse (profile_t *self, const char *path, char error[PROFILE_ERROR_SIZE])
{
    char *rest = self->text;
    for (size_t number = 1; rest != NULL; number++) {
        char *line = trim (strsep (&rest, "\n"));
        char *equals = strchr (line, '=');
        if (line[0] == '\0' || line[0] == '#')
            continue;
        if (equals == NULL || equals == line)
            return refuse (error, EBADMSG, "%s:%zu: a line is 'key = value'", path, number);
        if (self->count == PROFILE_LINES_MAX)
            return refuse (error, EFBIG, "%s has more than %d values", path, PROFILE_LINES_MAX);
        *equals = '\0';
        self->lines[self->count++] = (profile_line_t){trim (line), trim (equals + 1), number};
    }
    return 0;
}

int profile_read (profile_t *out, const char *path, char error[PROFILE_ERROR_SIZE])
{
    struct stat status;
    out->count = 0;
    int code = load (out->text, &status, path, error);
    if (code == 0)
        code = parse (out, path, error);
    if (code == 0 && profile_value (out, "key") != NULL &&
        (status.st_mode & (S_IRWXG | S_IRWXO)) != 0)
        code = refuse (error, EPERM,
                       "%s holds a key and is readable by others (mode %04o): "
                       "chmod 600 %s",
                       path, (unsigned) status.st_mode & 07777, path);
    if (code != 0)
        profile_clear (out);
    return code;
}

void profile_clear (profile_t *self)
{
    sodium_memzero (self->text, sizeof self->text);
    self->count = 0;
}

const char *profile_value (const profile_t *self, const char *key)
{
    for (size_t i = self->count; i-- > 0;)
        if (strcmp (self->lines[i].key, key) == 0)
            return self->lines[i].value;
    return NULL;
}

/* Writing. */

/* True if the line (up to its end) gives that key a value. */
static bool sets (const char *line, const char *key)
{
    line += strspn (line, WHITE);
    const size_t length = strlen (key);
    if (strncmp (line, key, length) != 0)
        return false;
    line += length;
    return line[strspn (line, WHITE)] == '=';
}

/* The text with the new line in the place of the first old one, else at the end. */
static size_t edit (char *out, size_t size, const char *text, const char *key, const char *value)
{
    size_t length = 0;
    for (const char *line = text; *line != '\0';) {
        const size_t bytes = strcspn (line, "\n");
        if (!sets (line, key))
            length += (size_t) snprintf (out + length, size - length, "%.*s\n", (int) bytes, line);
        else if (value != NULL)
            length += (size_t) snprintf (out + length, size - length, "%s = %s\n", key, value);
        if (sets (line, key))
            value = NULL;
        line += bytes + (line[bytes] == '\n');
    }
    if (value != NULL)
        length += (size_t) snprintf (out + length, size - length, "%s = %s\n", key, value);
    return length;
}

int profile_set (const char *path, const char *key, const char *value,
                 char error[PROFILE_ERROR_SIZE])
{
    char old[PROFILE_BYTES_MAX + 1] = "";
    char text[PROFILE_BYTES_MAX + 2048];
    struct stat status;
    int code = load (old, &status, path, error);
    if (code == ENOENT)
        code = profile_make_directory (path, error);
    if (code == 0 && value != NULL && strlen (key) + strlen (value) > 1024)
        code = refuse (error, EINVAL, "%s: the value of %s is too long", path, key);
    if (code == 0) {
        const size_t length = edit (text, sizeof text, old, key, value);
        code =
            length > PROFILE_BYTES_MAX
                ? refuse (error, EFBIG, "%s would be longer than %d bytes", path, PROFILE_BYTES_MAX)
                : secret_file_write (path, text, length, true, error);
        sodium_memzero (text, sizeof text);
    }
    sodium_memzero (old, sizeof old);
    return code;
}
