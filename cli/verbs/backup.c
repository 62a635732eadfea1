/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* taskctl backup: asks for a backup, and writes its parts into a file that is whole or not
 * there. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/exit.h"
#include "base/memory.h"
#include "disk.h"
#include "link/connect.h"
#include "screen/output.h"
#include "units.h"
#include "verbs/verbs.h"

enum { POLL_MS_MIN = 20, POLL_MS_MAX = 500 };

typedef struct target {
    const app_t *app;
    const char *file;
    char *part; /* the name until it is whole */
    int fd;
    uint64_t total; /* bytes */
    uint64_t lacks; /* large bodies */
    char kept[256]; /* as what the broker keeps it */
} target_t;

static int target_fail (const target_t *self, const char *what)
{
    const int reason = errno;
    const bool full = reason == ENOSPC || reason == EDQUOT;
    return code_error (self->app, full ? TMQ_STORE_FULL : TMQ_INTERNAL, NULL, "cannot %s %s: %s",
                       what, self->file, strerror (reason));
}

/* Whether a file begins as a backup does: a tar file, with the tables first. */
static bool is_backup (const char *file)
{
    enum { MAGIC_AT = 257 };
    char head[MAGIC_AT + 5] = "";
    const int fd = open (file, O_RDONLY | O_CLOEXEC);
    const bool whole = fd >= 0 && read (fd, head, sizeof head) == (ssize_t) sizeof head;
    if (fd >= 0)
        close (fd);
    return whole && strncmp (head, "taskmq.db", MAGIC_AT) == 0 &&
           memcmp (head + MAGIC_AT, "ustar", 5) == 0;
}

static int target_open (target_t *self, const app_t *app)
{
    const char *file = app->args.operands[0];
    *self = (target_t){.app = app, .file = file};
    struct stat found;
    self->fd = -1;
    if (stat (file, &found) == 0 && !S_ISREG (found.st_mode))
        return usage_error (app, "a new name, as taskmq.tar, or that of an earlier backup",
                            "%s is %s: a backup is a file", file,
                            S_ISDIR (found.st_mode) ? "a directory" : "no regular file");
    if (stat (file, &found) == 0 && found.st_size > 0 && !is_backup (file))
        return usage_error (app, "a new name, as taskmq.tar, or that of an earlier backup",
                            "%s is there, and is no backup: it stays as it is", file);
    self->part = must_alloc (strlen (file) + sizeof ".part");
    sprintf (self->part, "%s.part", file);
    unlink (self->part); /* of a backup that was broken off */
    self->fd = open (self->part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return self->fd >= 0 ? EXIT_OK : target_fail (self, "write");
}

static int target_finish (target_t *self)
{
    if (fsync (self->fd) != 0)
        return target_fail (self, "sync");
    if (rename (self->part, self->file) != 0)
        return target_fail (self, "write");
    return disk_sync_parent (self->file) == 0 ? EXIT_OK : target_fail (self, "sync");
}

static void target_close (target_t *self, bool good)
{
    if (self->fd >= 0)
        close (self->fd);
    if (!good && self->fd >= 0)
        unlink (self->part);
    free (self->part);
}

/* Until the broker has nothing more of it. */
static int fetch (app_t *app, target_t *target)
{
    tmq_error_t error = {0};
    tmq_id_t id;
    tmq_part_t *part;
    uint64_t offset = 0;
    int pause_ms = POLL_MS_MIN;
    int code = EXIT_OK;
    bool more = true;
    tmq_id_make (&id);
    while (code == EXIT_OK && more) {
        error.code = tmq_backup (&part, app->client, id.bytes, offset,
                                 args_has (&app->args, OPT_WITH_KEYS), app->timeout_ms, &error);
        if (error.code != TMQ_OK)
            return library_error (app, &error, NULL);
        code = disk_write (target->fd, part->bytes, part->length) == 0
                   ? EXIT_OK
                   : target_fail (target, "write");
        more = part->more;
        if (part->length == 0 && more) {
            poll (NULL, 0, pause_ms);
            pause_ms = 2 * pause_ms < POLL_MS_MAX ? 2 * pause_ms : POLL_MS_MAX;
        } else {
            offset = part->offset;
        }
        if (!more) {
            target->total = part->total;
            target->lacks = part->n;
            snprintf (target->kept, sizeof target->kept, "%s", part->name);
        }
        tmq_part_free (part);
    }
    return code;
}

/* What is in it is good, and it stays. */
static int tell_lacks (const app_t *app, const target_t *target)
{
    const bool one = target->lacks == 1;
    code_error (app, TMQ_NO_BLOB, "taskmqd --check --data DIR, where the broker runs, names them",
                "%s lacks %" PRIu64
                " large %s that tasks name: %s missing or damaged at the broker",
                target->file, target->lacks, one ? "body" : "bodies", one ? "it is" : "they are");
    return EXIT_SOME;
}

int run_backup (app_t *app)
{
    target_t target;
    if (strcmp (app->args.operands[0], "-") == 0)
        return usage_error (app, "taskctl help backup",
                            "a backup is a file: what goes through a pipe may be cut off unseen");
    int code = app_connect (app);
    if (code)
        return code;
    code = target_open (&target, app);
    if (code == EXIT_OK)
        code = fetch (app, &target);
    if (code == EXIT_OK)
        code = target_finish (&target);
    char size[UNITS_TEXT_SIZE];
    if (code == EXIT_OK)
        note (app, "%s in %s; the broker keeps it as %s", size_format (size, target.total),
              target.file, target.kept);
    target_close (&target, code == EXIT_OK);
    return code == EXIT_OK && target.lacks > 0 ? tell_lacks (app, &target) : code;
}
