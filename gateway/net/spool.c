/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "net/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/effort.h"
#include "disk.h"

typedef enum job { JOB_WRITE, JOB_READ, JOB_CLOSE } job_t;

struct spool_file {
    spool_t *spool;
    spool_file_t *next; /* in the list in which it stands */
    bool busy;          /* of the loop's thread: something is under way */
    spool_fn *fn;
    void *context;

    /* Of whoever has it: the thread from a list to the other, else the loop's. */
    int fd; /* -1: nothing was written */
    uint64_t length;
    crypto_generichash_state hash;
    bytes_t data;
    uint64_t offset; /* to be read from, … */
    size_t wanted;   /* … and how much */
    int error;

    job_t job; /* under the lock, once it stands in a list */
};

typedef struct list {
    spool_file_t *first;
    spool_file_t *last;
} list_t;

struct spool {
    char directory[PATH_MAX];
    watch_t *watch;
    int fd; /* readable when something is done */
    pthread_t thread;
    bool runs;

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t more;
    list_t todo;
    list_t done;
    bool stopping;
};

/* Lists. */

static void put (list_t *list, spool_file_t *file)
{
    file->next = NULL;
    *(list->last != NULL ? &list->last->next : &list->first) = file;
    list->last = file;
}

static spool_file_t *take (list_t *list)
{
    spool_file_t *file = list->first;
    if (file == NULL)
        return NULL;
    list->first = file->next;
    if (list->first == NULL)
        list->last = NULL;
    return file;
}

/* The thread. */

static int open_nameless (const char *directory)
{
    char path[PATH_MAX + 16];
    int fd = open (directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
        return fd;
    snprintf (path, sizeof path, "%s/upload.XXXXXX", directory); /* a file system without these */
    fd = mkostemp (path, O_CLOEXEC);
    if (fd >= 0)
        unlink (path);
    return fd;
}

static int write_piece (spool_file_t *self)
{
    if (self->fd < 0)
        self->fd = open_nameless (self->spool->directory);
    if (self->fd < 0)
        return errno;
    if (disk_write_at (self->fd, self->data.data, self->data.length, self->length) != 0)
        return errno;
    self->length += self->data.length;
    crypto_generichash_update (&self->hash, self->data.data, self->data.length);
    bytes_free (&self->data);
    return 0;
}

static int read_piece (spool_file_t *self)
{
    size_t done = 0;
    uint8_t *room = bytes_grow (&self->data, self->wanted);
    if (room == NULL)
        return ENOMEM;
    while (done < self->wanted) {
        const ssize_t got =
            pread (self->fd, room + done, self->wanted - done, (off_t) (self->offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? errno : EIO;
        done += (size_t) got;
    }
    self->data.length = done;
    return 0;
}

static void end_file (spool_file_t *self)
{
    if (self->fd >= 0)
        close (self->fd);
    bytes_free (&self->data);
    free (self);
}

static void *run (void *context)
{
    spool_t *self = context;
    pthread_mutex_lock (&self->lock);
    for (;;) {
        spool_file_t *file = take (&self->todo);
        if (file == NULL && self->stopping)
            break;
        if (file == NULL) {
            pthread_cond_wait (&self->more, &self->lock);
            continue;
        }
        const job_t job = file->job;
        pthread_mutex_unlock (&self->lock);
        if (job == JOB_CLOSE)
            end_file (file);
        else
            file->error = job == JOB_WRITE ? write_piece (file) : read_piece (file);
        pthread_mutex_lock (&self->lock);
        if (job != JOB_CLOSE) {
            put (&self->done, file);
            eventfd_write (self->fd, 1);
        }
    }
    pthread_mutex_unlock (&self->lock);
    return NULL;
}

/* The loop's. */

static void give (spool_file_t *self, job_t job)
{
    spool_t *spool = self->spool;
    pthread_mutex_lock (&spool->lock);
    self->job = job;
    put (&spool->todo, self);
    pthread_cond_signal (&spool->more);
    pthread_mutex_unlock (&spool->lock);
}

static void settle_one (spool_file_t *self)
{
    bytes_t data = self->data;
    self->data = (bytes_t) BYTES_INIT;
    self->busy = false;
    if (self->fn == NULL)
        give (self, JOB_CLOSE);
    else
        self->fn (self->context, self->error, &data);
    bytes_free (&data);
}

static void settle (void *context)
{
    spool_t *self = context;
    eventfd_t count;
    eventfd_read (self->fd, &count);
    for (;;) {
        pthread_mutex_lock (&self->lock);
        spool_file_t *file = take (&self->done);
        pthread_mutex_unlock (&self->lock);
        if (file == NULL)
            return;
        effort_begin ();
        settle_one (file);
    }
}

static bool begin_thread (spool_t *self)
{
    sigset_t all, before;
    sigfillset (&all);
    pthread_sigmask (SIG_SETMASK, &all, &before); /* signals are the loop's */
    const int failed = pthread_create (&self->thread, NULL, run, self);
    pthread_sigmask (SIG_SETMASK, &before, NULL);
    self->runs = failed == 0;
    errno = failed;
    return self->runs;
}

spool_t *spool_new (loop_t *loop, const char *directory)
{
    spool_t *self = calloc (1, sizeof *self);
    if (self == NULL)
        return NULL;
    snprintf (self->directory, sizeof self->directory, "%s", directory);
    signal (SIGXFSZ, SIG_IGN);
    pthread_mutex_init (&self->lock, NULL);
    pthread_cond_init (&self->more, NULL);
    self->fd = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (self->fd >= 0)
        self->watch = loop_readable (loop, self->fd, settle, self);
    if (self->watch == NULL || !begin_thread (self))
        spool_free (&self);
    return self;
}

void spool_free (spool_t **self)
{
    spool_t *spool = *self;
    if (spool == NULL)
        return;
    pthread_mutex_lock (&spool->lock);
    spool->stopping = true;
    pthread_cond_signal (&spool->more);
    pthread_mutex_unlock (&spool->lock);
    if (spool->runs)
        pthread_join (spool->thread, NULL);
    for (spool_file_t *file = take (&spool->done); file != NULL; file = take (&spool->done))
        end_file (file);
    watch_free (&spool->watch);
    if (spool->fd >= 0)
        close (spool->fd);
    pthread_cond_destroy (&spool->more);
    pthread_mutex_destroy (&spool->lock);
    free (spool);
    *self = NULL;
}

spool_file_t *spool_open (spool_t *self)
{
    spool_file_t *file = calloc (1, sizeof *file);
    if (file == NULL)
        return NULL;
    file->spool = self;
    file->fd = -1;
    crypto_generichash_init (&file->hash, NULL, 0, SPOOL_HASH_BYTES);
    return file;
}

void spool_close (spool_file_t **self)
{
    spool_file_t *file = *self;
    *self = NULL;
    if (file == NULL)
        return;
    file->fn = NULL;
    if (!file->busy)
        give (file, JOB_CLOSE);
}

static void begin (spool_file_t *self, job_t job, spool_fn *fn, void *context)
{
    self->busy = true;
    self->fn = fn;
    self->context = context;
    give (self, job);
}

void spool_write (spool_file_t *self, bytes_t *data, spool_fn *fn, void *context)
{
    self->data = *data;
    *data = (bytes_t) BYTES_INIT;
    begin (self, JOB_WRITE, fn, context);
}

void spool_read (spool_file_t *self, uint64_t offset, size_t length, spool_fn *fn, void *context)
{
    self->offset = offset;
    self->wanted = length;
    begin (self, JOB_READ, fn, context);
}

void spool_hash (spool_file_t *self, uint8_t hash[SPOOL_HASH_BYTES])
{
    crypto_generichash_final (&self->hash, hash, SPOOL_HASH_BYTES);
}
