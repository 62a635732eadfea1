/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The lock is on the directory, because a rename replaces the file. */
#include "access_file.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <pwd.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "disk.h"
#include "log/log.h"

/* Of the entry of a group, with the names of its members. */
enum { GROUP_BYTES_FIRST = 4096, GROUP_BYTES_MAX = 4 * 1024 * 1024 };

/* For the lock of the directory: whoever holds it for longer does not hold up all errands. */
enum { LOCK_TRIES = 40, LOCK_PAUSE_NS = 50 * 1000 * 1000, LOCK_RETRY_MS = 1000 };

/* What tells one state of the file from another. */
typedef struct state {
    bool there;
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec changed;
} state_t;

struct access_file {
    char path[PATH_MAX];
    char directory[PATH_MAX];
    policy_t *policy; /* of the errands' thread, as all but what follows */
    state_t looked;   /* of the server's thread: what its last look saw */

    pthread_mutex_t lock; /* guards what follows */
    state_t judged;       /* what was read last, good or not */
    policy_t *fresh;      /* counted once more; valid while is_fresh */
    bool is_fresh;
    bool is_stale;
    bool asked;   /* somebody was told that it changed */
    bool started; /* of the errands' thread, too: it was read once */
};

__attribute__ ((format (printf, 2, 3))) static bool fail (char error[ACCESS_FILE_ERROR_SIZE],
                                                          const char *format, ...)
{
    va_list arguments;
    va_start (arguments, format);
    vsnprintf (error, ACCESS_FILE_ERROR_SIZE, format, arguments);
    va_end (arguments);
    return false;
}

/* Names of the system. */

static bool find_user (void *context, const char *name, uint32_t *uid)
{
    (void) context;
    char room[4096];
    struct passwd entry, *found = NULL;
    if (getpwnam_r (name, &entry, room, sizeof (room), &found) != 0 || found == NULL)
        return false;
    *uid = entry.pw_uid;
    return true;
}

static long add_member (long count, uint32_t uid, uint32_t *uids, size_t room)
{
    for (long i = 0; i < count && (size_t) i < room; i++)
        if (uids[i] == uid)
            return count;
    if ((size_t) count < room)
        uids[count] = uid;
    return count + 1;
}

/* The group's entry in `memory`, to be freed. *found NULL: there is no such group. False: the
 * system cannot tell, or the entry is longer than one with as many members as there may be. */
static bool read_group (const char *name, char **memory, struct group *entry, struct group **found)
{
    int code = ERANGE;
    *found = NULL;
    *memory = NULL;
    for (size_t size = GROUP_BYTES_FIRST; code == ERANGE && size <= GROUP_BYTES_MAX; size *= 2) {
        *memory = memory_resize (*memory, size, 1);
        code = getgrnam_r (name, entry, *memory, size, found);
    }
    return code == 0 || code == ENOENT || code == ESRCH;
}

/* Those that the group lists, and those whose first group it is. */
static long find_group (void *context, const char *name, uint32_t *uids, size_t room)
{
    char *memory;
    struct group entry, *found;
    uint32_t uid;
    long count = 0;
    bool known = read_group (name, &memory, &entry, &found);
    if (!known || found == NULL) {
        free (memory);
        return known ? POLICY_NO_GROUP : POLICY_GROUP_UNKNOWN;
    }
    for (char **member = entry.gr_mem; *member != NULL; member++)
        if (find_user (context, *member, &uid))
            count = add_member (count, uid, uids, room);
    setpwent ();
    for (const struct passwd *user = getpwent (); user != NULL; user = getpwent ())
        if (user->pw_gid == entry.gr_gid)
            count = add_member (count, user->pw_uid, uids, room);
    endpwent ();
    free (memory);
    return count;
}

/* Reading. */

static state_t state_of (const struct stat *info)
{
    return (state_t){true, info->st_dev, info->st_ino, info->st_size, info->st_mtim};
}

static bool is_same (const state_t *a, const state_t *b)
{
    return a->there == b->there && a->device == b->device && a->inode == b->inode &&
           a->size == b->size && a->changed.tv_sec == b->changed.tv_sec &&
           a->changed.tv_nsec == b->changed.tv_nsec;
}

static state_t look (const access_file_t *self)
{
    struct stat info;
    if (lstat (self->path, &info) != 0)
        return (state_t){.there = false};
    return state_of (&info);
}

static bool check (const access_file_t *self, const struct stat *info,
                   char error[ACCESS_FILE_ERROR_SIZE])
{
    if (!S_ISREG (info->st_mode))
        return fail (error, "%s is no regular file", self->path);
    if (info->st_uid != geteuid () && info->st_uid != 0)
        return fail (error, "%s belongs to uid %u: chown it to the user of the broker, or to root",
                     self->path, (unsigned) info->st_uid);
    if ((info->st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return fail (error, "%s: others may write it (mode %04o): chmod go-w %s", self->path,
                     (unsigned) info->st_mode & 07777, self->path);
    if (info->st_size > POLICY_BYTES_MAX)
        return fail (error, "%s has %lld bytes, more than %d", self->path,
                     (long long) info->st_size, POLICY_BYTES_MAX);
    return true;
}

/* At most a byte more than may be: then it has grown since it was looked at. */
static char *read_all (int fd, size_t *bytes)
{
    char *text = memory_alloc (POLICY_BYTES_MAX + 1);
    ssize_t got = 1;
    *bytes = 0;
    while (got > 0 && *bytes <= POLICY_BYTES_MAX) {
        got = read (fd, text + *bytes, POLICY_BYTES_MAX + 1 - *bytes);
        *bytes += got > 0 ? (size_t) got : 0;
    }
    if (got >= 0)
        return text;
    free (text);
    return NULL;
}

/* The text; NULL with an error, or without one when there is no file. */
static char *read_file (const access_file_t *self, size_t *bytes, state_t *state,
                        char error[ACCESS_FILE_ERROR_SIZE])
{
    struct stat info;
    char *text = NULL;
    error[0] = '\0';
    *bytes = 0;
    *state = look (self); /* of one that cannot be opened, too */
    int fd = open (self->path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        return NULL;
    if (fd < 0 && errno == ELOOP)
        fail (error, "%s is a symbolic link: name the file itself (broker/access)", self->path);
    else if (fd < 0 || fstat (fd, &info) != 0)
        fail (error, "cannot read %s: %s", self->path, strerror (errno));
    else if (check (self, &info, error)) {
        *state = state_of (&info);
        text = read_all (fd, bytes);
        if (text == NULL)
            fail (error, "cannot read %s: %s", self->path, strerror (errno));
    }
    if (fd >= 0)
        close (fd);
    return text;
}

static policy_t *parse (const access_file_t *self, const char *text, size_t bytes,
                        char error[ACCESS_FILE_ERROR_SIZE])
{
    policy_error_t flaw;
    const policy_names_t names = {.own_uid = geteuid (), .user = find_user, .group = find_group};
    policy_t *policy = policy_parse (text, bytes, &names, &flaw);
    if (policy == NULL && flaw.line == 0)
        fail (error, "%s: %s", self->path, flaw.text);
    else if (policy == NULL)
        fail (error, "%s:%u: %s", self->path, flaw.line, flaw.text);
    if (policy == NULL)
        return NULL;
    uint8_t digest[POLICY_DIGEST_BYTES];
    crypto_generichash (digest, sizeof (digest), (const uint8_t *) text, bytes, NULL, 0);
    policy_set_digest (policy, digest);
    return policy;
}

/* Takes the policy. */
static void adopt (access_file_t *self, policy_t *policy, const state_t *state)
{
    policy_drop (self->policy);
    self->policy = policy;
    pthread_mutex_lock (&self->lock);
    if (self->is_fresh)
        policy_drop (self->fresh);
    self->fresh = policy_keep (policy);
    self->is_fresh = true;
    self->is_stale = false;
    self->asked = false;
    self->judged = *state;
    pthread_mutex_unlock (&self->lock);
    log_write (LOG_LEVEL_INFO, "ACCESS", "the access file counts",
               LOG_FIELDS (LOG_TEXT ("path", self->path),
                           LOG_NUMBER ("principals", policy_count (policy))));
    if (policy_count (policy) == 0)
        log_write (LOG_LEVEL_WARNING, "ACCESS-EMPTY",
                   "the access file lists nobody: only root and the broker's own user come in",
                   LOG_FIELDS (LOG_TEXT ("path", self->path)));
}

static void refuse (access_file_t *self, const state_t *state, const char *error)
{
    pthread_mutex_lock (&self->lock);
    self->is_stale = true;
    self->asked = false;
    self->judged = *state;
    pthread_mutex_unlock (&self->lock);
    if (!self->started)
        return; /* the start says it */
    log_write (LOG_LEVEL_ERROR, "RELOAD-REFUSED",
               "the access file cannot be used: what it said before still counts",
               LOG_FIELDS (LOG_TEXT ("error", error)));
}

/* A file that was cut off lists nobody. To put everybody out by that is more likely a mistake than
 * meant; a revocation of the last one comes through the broker. */
static policy_t *judge (const access_file_t *self, const char *text, size_t bytes,
                        char error[ACCESS_FILE_ERROR_SIZE])
{
    policy_t *policy = parse (self, text, bytes, error);
    if (policy == NULL || policy_count (policy) > 0 || self->policy == NULL ||
        policy_count (self->policy) == 0)
        return policy;
    fail (error,
          "%s lists nobody any more: to put everybody out use taskctl key revoke, or stop "
          "the broker",
          self->path);
    policy_drop (policy);
    return NULL;
}

bool access_file_load (access_file_t *self, char error[ACCESS_FILE_ERROR_SIZE])
{
    size_t bytes;
    state_t state;
    char *text = read_file (self, &bytes, &state, error);
    policy_t *policy = text == NULL ? NULL : judge (self, text, bytes, error);
    free (text);
    if (text == NULL && error[0] == '\0' && self->policy == NULL) {
        pthread_mutex_lock (&self->lock);
        self->is_stale = self->asked = false;
        self->judged = state;
        pthread_mutex_unlock (&self->lock);
        return true; /* there was none, and there is none */
    }
    if (policy != NULL) {
        adopt (self, policy, &state);
        return true;
    }
    if (error[0] == '\0') /* its lines do not count less because somebody removed it */
        fail (error, "%s is gone", self->path);
    refuse (self, &state, error);
    return false;
}

char *access_file_text (access_file_t *self, size_t *bytes, char error[ACCESS_FILE_ERROR_SIZE])
{
    state_t state;
    return read_file (self, bytes, &state, error);
}

const policy_t *access_file_policy (const access_file_t *self)
{
    return self->policy;
}

const char *access_file_path (const access_file_t *self)
{
    return self->path;
}

/* Writing. */

static void refuse_system (errand_t *errand, const access_file_t *self, int code)
{
    if (code == EACCES || code == EPERM || code == EROFS)
        errand_refuse (errand, TMQ_DENIED,
                       "the access file is managed elsewhere: the broker may not write %s (%s)",
                       self->path, strerror (code));
    else if (code == EWOULDBLOCK)
        errand_refuse (errand, TMQ_OVERLOADED, "another program holds the lock of %s",
                       self->directory);
    else if (code == ENOSPC || code == EDQUOT)
        errand_refuse (errand, TMQ_STORE_FULL, "no space to write %s", self->path);
    else
        errand_refuse (errand, TMQ_INTERNAL, "cannot write %s: %s", self->path, strerror (code));
    errand->retry_after_ms = code == EWOULDBLOCK ? LOCK_RETRY_MS : 0;
}

/* As the one that it replaces: who may read it does not change. */
static void take_after (int fd, const access_file_t *self)
{
    struct stat info;
    if (lstat (self->path, &info) != 0)
        return;
    if (fchown (fd, info.st_uid, info.st_gid) == 0)
        (void) fchmod (fd, info.st_mode & 0755);
}

/* 0, or errno; the file is then as it was, or the new one whose name may be lost with the power. */
static int replace (const access_file_t *self, int directory, const char *text, size_t bytes,
                    state_t *state)
{
    char other[PATH_MAX];
    struct stat info;
    int fd = disk_temporary (other, sizeof (other), self->path);
    if (fd < 0)
        return errno;
    take_after (fd, self);
    int code = 0;
    if (disk_write (fd, text, bytes) != 0 || fsync (fd) != 0 || rename (other, self->path) != 0) {
        code = errno;
        unlink (other);
    } else if (fsync (directory) != 0 || fstat (fd, &info) != 0) {
        code = errno;
    } else {
        *state = state_of (&info);
    }
    close (fd);
    return code;
}

static void change_locked (access_file_t *self, int directory, access_change_t *change,
                           void *context, errand_t *errand)
{
    char error[ACCESS_FILE_ERROR_SIZE];
    size_t bytes;
    size_t new_bytes = 0;
    state_t state;
    char *text = read_file (self, &bytes, &state, error);
    policy_t *before = text == NULL ? NULL : judge (self, text, bytes, error);
    if (before == NULL && error[0] == '\0' && self->policy != NULL)
        fail (error, "%s is gone", self->path);
    if (error[0] != '\0') {
        errand_refuse (errand, TMQ_INVALID, "mend the access file first: %.400s", error);
        free (text);
        return;
    }
    char *changed = change (context, before, text == NULL ? "" : text, bytes, &new_bytes);
    policy_t *after = changed == NULL ? NULL : parse (self, changed, new_bytes, error);
    if (changed != NULL && after == NULL) {
        errand_refuse (errand, TMQ_INVALID, "%.500s", error);
    } else if (after != NULL) {
        int code = replace (self, directory, changed, new_bytes, &state);
        if (code == 0)
            adopt (self, policy_keep (after), &state);
        else
            refuse_system (errand, self, code);
    }
    policy_drop (after);
    policy_drop (before);
    free (changed);
    free (text);
}

/* 0, or errno: EWOULDBLOCK when another program goes on holding it. */
static int lock (int directory)
{
    const struct timespec pause = {0, LOCK_PAUSE_NS};
    for (int i = 1; flock (directory, LOCK_EX | LOCK_NB) != 0; i++) {
        if (errno != EWOULDBLOCK || i == LOCK_TRIES)
            return errno;
        nanosleep (&pause, NULL);
    }
    return 0;
}

void access_file_change (access_file_t *self, access_change_t *change, void *context,
                         errand_t *errand)
{
    int directory = open (self->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int code = directory < 0 ? errno : lock (directory);
    if (code != 0)
        refuse_system (errand, self, code);
    else
        change_locked (self, directory, change, context, errand);
    if (directory >= 0)
        close (directory);
}

/* Looking. */

bool access_file_changed (access_file_t *self)
{
    state_t now = look (self);
    bool settled = is_same (&now, &self->looked); /* nobody writes it this moment */
    self->looked = now;
    pthread_mutex_lock (&self->lock);
    bool changed = settled && !self->asked && !is_same (&now, &self->judged);
    self->asked = self->asked || changed;
    pthread_mutex_unlock (&self->lock);
    return changed;
}

bool access_file_take (access_file_t *self, policy_t **out)
{
    pthread_mutex_lock (&self->lock);
    bool fresh = self->is_fresh;
    if (fresh) {
        *out = self->fresh;
        self->fresh = NULL;
        self->is_fresh = false;
    }
    pthread_mutex_unlock (&self->lock);
    return fresh;
}

bool access_file_is_stale (access_file_t *self)
{
    pthread_mutex_lock (&self->lock);
    bool stale = self->is_stale;
    pthread_mutex_unlock (&self->lock);
    return stale;
}

/* Life. */

access_file_t *access_file_new (const char *path, char error[ACCESS_FILE_ERROR_SIZE])
{
    access_file_t *self = memory_zero (1, sizeof (*self));
    char copy[PATH_MAX];
    pthread_mutex_init (&self->lock, NULL);
    if (snprintf (self->path, sizeof (self->path), "%s", path) >= PATH_MAX - 16) {
        fail (error, "the path of the access file is too long");
        access_file_free (&self);
        return NULL;
    }
    memcpy (copy, self->path, sizeof (copy));
    snprintf (self->directory, sizeof (self->directory), "%s", dirname (copy));
    if (!access_file_load (self, error))
        access_file_free (&self);
    else
        self->started = true;
    return self;
}

void access_file_free (access_file_t **self_p)
{
    access_file_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    policy_drop (self->policy);
    if (self->is_fresh)
        policy_drop (self->fresh);
    pthread_mutex_destroy (&self->lock);
    free (self);
}
