/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Failure: nothing is removed or repaired; what is in the way is named. */
#include "data.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "backup/restore.h"
#include "trust.h"

enum { LOCK_TRIES = 20, LOCK_PAUSE_NS = 10 * 1000 * 1000 };

__attribute__ ((format (printf, 3, 4))) static exits_t fail (char *error, exits_t code,
                                                             const char *format, ...)
{
    va_list arguments;
    va_start (arguments, format);
    vsnprintf (error, DATA_ERROR_SIZE, format, arguments);
    va_end (arguments);
    return code;
}

/* Space may come back, and then a supervisor's next try goes well. */
static exits_t fail_write (char *error, const char *path)
{
    bool full = errno == ENOSPC || errno == EDQUOT;
    return fail (error, full ? EXITS_FULL : EXITS_DATA, "cannot write %s: %s", path,
                 strerror (errno));
}

static bool is_directory (const char *path)
{
    struct stat info;
    return stat (path, &info) == 0 && S_ISDIR (info.st_mode);
}

/* One further up that anybody may have planted: it is passed over. */
static bool is_foreign (const char *path, char ignored[DATA_ERROR_SIZE])
{
    struct stat info;
    const trust_t trust = stat (path, &info) == 0 ? trust_directory (&info, false) : TRUST_GOOD;
    if (trust == TRUST_FOREIGN && ignored[0] == '\0')
        fail (ignored, EXITS_DATA,
              "%s: it belongs to uid %ld, not to you; if you mean it say --data", path,
              (long) info.st_uid);
    if (trust == TRUST_WRITABLE && ignored[0] == '\0')
        fail (ignored, EXITS_DATA, "%s: others may write in it; chmod go-w %s", path, path);
    return trust != TRUST_GOOD;
}

/* The nearest one from the working directory upward, else the one to be made in it. */
static bool find (char out[DATA_PATH_SIZE], char ignored[DATA_ERROR_SIZE])
{
    char here[DATA_PATH_SIZE - sizeof ("/" DATA_DIRECTORY_NAME)];
    if (getcwd (here, sizeof (here)) == NULL)
        return false;
    snprintf (out, DATA_PATH_SIZE, "%s/" DATA_DIRECTORY_NAME, here);
    char above[sizeof (here)];
    memcpy (above, here, sizeof (above));
    while (true) {
        char candidate[DATA_PATH_SIZE];
        snprintf (candidate, sizeof (candidate), "%s/" DATA_DIRECTORY_NAME, above);
        /* Of the working directory's own one data_open tells itself what is wrong with it. */
        if (is_directory (candidate) &&
            (strcmp (candidate, out) == 0 || !is_foreign (candidate, ignored))) {
            memcpy (out, candidate, DATA_PATH_SIZE);
            return true;
        }
        char *slash = strrchr (above, '/');
        if (slash == NULL)
            return true;
        *slash = '\0';
    }
}

/* A client that looks whether somebody holds the lock has it for a moment. */
static bool lock_taken (int fd)
{
    for (int tries = 0;; tries++) {
        if (flock (fd, LOCK_EX | LOCK_NB) == 0)
            return true;
        if (errno != EWOULDBLOCK || tries == LOCK_TRIES)
            return false;
        nanosleep (&(struct timespec){0, LOCK_PAUSE_NS}, NULL);
    }
}

bool data_tell (const data_t *self, bool standby)
{
    char text[48];
    int length =
        snprintf (text, sizeof (text), "%ld\n%s", (long) getpid (), standby ? "standby\n" : "");
    return ftruncate (self->lock, 0) == 0 &&
           pwrite (self->lock, text, (size_t) length, 0) == length;
}

/* Locks the directory and leaves the owner's pid in the lock file, for the one who is refused. */
static exits_t lock (data_t *self, char *error)
{
    char path[PATH_MAX];
    char pid[24] = "";
    if (!data_path (self, "taskmq.lock", path, sizeof (path)))
        return fail (error, EXITS_DATA, "the path of %s is too long", self->directory);
    self->lock = open (path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (self->lock < 0)
        return fail (error, EXITS_DATA, "cannot open %s: %s", path, strerror (errno));
    if (!lock_taken (self->lock)) {
        if (errno != EWOULDBLOCK)
            return fail (error, EXITS_DATA, "cannot lock %s: %s", path, strerror (errno));
        ssize_t length = pread (self->lock, pid, sizeof (pid) - 1, 0);
        pid[length > 0 ? length : 0] = '\0';
        pid[strcspn (pid, "\n")] = '\0';
        return fail (error, EXITS_RUNNING, "another broker (pid %s) runs on %s",
                     pid[0] != '\0' ? pid : "unknown", self->directory);
    }
    if (!data_tell (self, false))
        return fail_write (error, path);
    return EXITS_OK;
}

/* Nobody else may write in it. One that was found, not named, must also be of this user. */
static exits_t check_trust (const char *directory, bool named, char *error)
{
    struct stat info;
    if (stat (directory, &info) != 0)
        return fail (error, EXITS_DATA, "cannot use %s: %s", directory, strerror (errno));
    switch (trust_directory (&info, named)) {
    case TRUST_GOOD: break;
    case TRUST_FOREIGN:
        return fail (error, EXITS_DATA,
                     "%s belongs to uid %ld, not to you: use --data DIR, also if you mean this one",
                     directory, (long) info.st_uid);
    case TRUST_WRITABLE:
        return fail (error, EXITS_DATA, "others may write in %s (mode %04o): chmod go-w %s",
                     directory, (unsigned) info.st_mode & 07777, directory);
    }
    return EXITS_OK;
}

/* Keeps the data out of the repository that the directory may lie in. Nothing depends on it; one
 * that is there stays as it is. */
static void write_ignore (const data_t *self)
{
    char path[PATH_MAX];
    if (!data_path (self, ".gitignore", path, sizeof (path)))
        return;
    int fd = open (path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return;
    static const char all[] = "*\n";
    if (write (fd, all, sizeof (all) - 1) < 0)
        unlink (path);
    close (fd);
}

/* What a restore that was interrupted left is no broker's: it has to be done again. */
static exits_t check_restored (const data_t *self, char *error)
{
    char path[PATH_MAX];
    if (!data_path (self, RESTORE_SCRATCH, path, sizeof (path)) || access (path, F_OK) != 0)
        return EXITS_OK;
    return fail (error, EXITS_DATA,
                 "a restore into %s did not come to its end: do it again (--restore FILE), or "
                 "remove %s to begin with what is there",
                 self->directory, path);
}

/* The directory's path as it was asked for or found. */
static exits_t name (data_t *out, const char *asked, char path[DATA_PATH_SIZE], char *error)
{
    memset (out, 0, sizeof (*out));
    out->lock = -1;
    if (asked != NULL && snprintf (path, DATA_PATH_SIZE, "%s", asked) >= DATA_PATH_SIZE)
        return fail (error, EXITS_DATA, "the path of the data directory is too long");
    if (asked == NULL && !find (path, out->ignored))
        return fail (error, EXITS_DATA, "cannot name the working directory: %s", strerror (errno));
    return EXITS_OK;
}

/* One that is there and can be used. */
static exits_t judge (data_t *out, const char *path, bool named, char *error)
{
    char real[PATH_MAX];
    if (realpath (path, real) == NULL)
        return fail (error, EXITS_DATA, "cannot find %s: %s", path, strerror (errno));
    if (!is_directory (real))
        return fail (error, EXITS_DATA, "%s is not a directory", path);
    if (access (real, R_OK | W_OK | X_OK) != 0)
        return fail (error, EXITS_DATA, "cannot use %s: %s", path, strerror (errno));
    memcpy (out->directory, real, strlen (real) + 1);
    return check_trust (real, named, error);
}

exits_t data_open (data_t *out, const char *asked, char error[DATA_ERROR_SIZE])
{
    char path[DATA_PATH_SIZE];
    exits_t code = name (out, asked, path, error);
    if (code != EXITS_OK)
        return code;
    out->made = mkdir (path, 0700) == 0;
    if (!out->made && errno != EEXIST)
        return fail (error, EXITS_DATA, "cannot make %s: %s", path, strerror (errno));
    code = judge (out, path, asked != NULL, error);
    if (code == EXITS_OK)
        code = lock (out, error);
    if (code == EXITS_OK)
        code = check_restored (out, error);
    if (code == EXITS_OK)
        write_ignore (out);
    else
        data_close (out);
    return code;
}

/* The directory in which this path stands. */
static void above (char out[DATA_PATH_SIZE], const char *path)
{
    snprintf (out, DATA_PATH_SIZE, "%s", path);
    for (size_t length = strlen (out); length > 1 && out[length - 1] == '/';)
        out[--length] = '\0';
    char *slash = strrchr (out, '/');
    if (slash == NULL)
        snprintf (out, DATA_PATH_SIZE, ".");
    else
        slash[slash == out ? 1 : 0] = '\0';
}

exits_t data_look (data_t *out, char where[DATA_PATH_SIZE], const char *asked,
                   char error[DATA_ERROR_SIZE])
{
    char path[DATA_PATH_SIZE];
    exits_t code = name (out, asked, path, error);
    if (code != EXITS_OK)
        return code;
    memcpy (where, path, DATA_PATH_SIZE);
    out->made = access (path, F_OK) != 0 && errno == ENOENT;
    if (!out->made) {
        code = judge (out, path, asked != NULL, error);
        return code == EXITS_OK ? check_restored (out, error) : code;
    }
    above (where, path);
    if (access (where, W_OK | X_OK) != 0)
        return fail (error, EXITS_DATA, "cannot make %s: %s", path, strerror (errno));
    memcpy (out->directory, path, DATA_PATH_SIZE);
    return EXITS_OK;
}

exits_t data_open_to_read (data_t *out, const char *asked, char error[DATA_ERROR_SIZE])
{
    char path[PATH_MAX];
    memset (out, 0, sizeof (*out));
    out->lock = -1;
    if (realpath (asked, path) == NULL)
        return fail (error, EXITS_DATA, "cannot find %s: %s", asked, strerror (errno));
    if (!is_directory (path))
        return fail (error, EXITS_DATA, "%s is not a directory", asked);
    memcpy (out->directory, path, strlen (path) + 1);
    if (!data_path (out, "taskmq.lock", path, sizeof (path)))
        return fail (error, EXITS_DATA, "the path of %s is too long", out->directory);
    out->lock = open (path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (out->lock < 0 && errno != ENOENT)
        return fail (error, EXITS_DATA, "cannot open %s: %s", path, strerror (errno));
    if (out->lock >= 0 && flock (out->lock, LOCK_EX | LOCK_NB) != 0) {
        data_close (out);
        return fail (error, EXITS_RUNNING,
                     "a broker runs on %s: stop it before its data is checked", asked);
    }
    exits_t code = check_restored (out, error);
    if (code != EXITS_OK)
        data_close (out);
    return code;
}

void data_close (data_t *self)
{
    if (self->lock >= 0)
        close (self->lock);
    self->lock = -1;
}

bool data_path (const data_t *self, const char *name, char *out, size_t out_size)
{
    int length = snprintf (out, out_size, "%s/%s", self->directory, name);
    return length > 0 && (size_t) length < out_size;
}

exits_t data_write_endpoints (const data_t *self, const char *const *uris, size_t count,
                              char error[DATA_ERROR_SIZE])
{
    char path[PATH_MAX];
    char temporary[PATH_MAX];
    if (!data_path (self, "endpoint", path, sizeof (path)) ||
        !data_path (self, "endpoint.new", temporary, sizeof (temporary)))
        return fail (error, EXITS_DATA, "the path of %s is too long", self->directory);
    unlink (temporary); /* of a start that was killed, or a link to somewhere else */
    int fd = open (temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    FILE *file = fd >= 0 ? fdopen (fd, "w") : NULL;
    if (file == NULL) {
        if (fd >= 0)
            close (fd);
        return fail_write (error, temporary);
    }
    for (size_t i = 0; i < count; i++)
        fprintf (file, "%s\n", uris[i]);
    bool written = ferror (file) == 0;
    if (fclose (file) != 0 || !written || rename (temporary, path) != 0)
        return fail_write (error, path);
    return EXITS_OK;
}
