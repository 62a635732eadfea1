/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "check_blobs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backup/pack.h"
#include "core/base/map.h"
#include "core/base/memory.h"
#include "core/data/blob_row.h"
#include "core/data/extra.h"
#include "ids.h"

enum { PIECE_BYTES = 256 * 1024, HEX_SIZE = 2 * TMQ_BLOB_HASH_BYTES + 1, WRONG_SIZE = 160 };

typedef struct blob {
    pack_blob_t file;
    uint64_t tasks;        /* 0: none any more */
    struct damage *damage; /* NULL: none, or none that is told */
} blob_t;

typedef struct task_name {
    tmq_id_t id;
    char ns[TMQ_NAME_LENGTH_MAX + 1];
} task_name_t;

/* A blob that is missing or damaged, and the first tasks that name it. */
typedef struct damage {
    const blob_t *blob;
    char wrong[WRONG_SIZE];
    task_name_t tasks[CHECK_BLOBS_NAMED_MAX];
    size_t tasks_count;
} damage_t;

struct check_blobs {
    map_t blobs;
    damage_t damages[CHECK_BLOBS_TOLD_MAX];
    size_t damages_count;
    uint8_t piece[PIECE_BYTES];
};

static uint32_t key_of (const uint8_t *hash)
{
    uint32_t key;
    memcpy (&key, hash, sizeof (key));
    return key;
}

static blob_t *blob_find (const check_blobs_t *self, const uint8_t *hash)
{
    size_t cursor = MAP_START;
    blob_t *blob = map_next (&self->blobs, key_of (hash), &cursor);
    while (blob != NULL && memcmp (blob->file.hash, hash, PACK_HASH_BYTES) != 0)
        blob = map_next (&self->blobs, key_of (hash), &cursor);
    return blob;
}

void check_blobs_note (check_blobs_t *self, const row_t *row)
{
    uint64_t bytes;
    uint64_t tasks;
    if (!blob_row_read (row, &bytes, &tasks))
        return;
    const uint8_t *hash = buf_bytes (row->key);
    blob_t *blob = blob_find (self, hash);
    if (blob == NULL) {
        blob = memory_zero (1, sizeof (*blob));
        memcpy (blob->file.hash, hash, PACK_HASH_BYTES);
        map_insert (&self->blobs, key_of (hash), blob);
    }
    blob->file.bytes = bytes;
    blob->tasks = tasks;
}

/* 0, or an errno. */
static int hash_file (check_blobs_t *self, int fd, uint8_t out[PACK_HASH_BYTES])
{
    crypto_generichash_state sum;
    ssize_t got;
    crypto_generichash_init (&sum, NULL, 0, PACK_HASH_BYTES);
    while ((got = read (fd, self->piece, PIECE_BYTES)) > 0)
        crypto_generichash_update (&sum, self->piece, (size_t) got);
    crypto_generichash_final (&sum, out, PACK_HASH_BYTES);
    return got < 0 ? errno : 0;
}

/* What is wrong with the file of a blob, as text; false: nothing. */
static bool is_damaged (check_blobs_t *self, const char *directory, const blob_t *blob, char *text,
                        size_t size)
{
    uint8_t sum[PACK_HASH_BYTES];
    struct stat info = {0};
    int fd = pack_open (directory, &blob->file);
    int error = fd < 0 || fstat (fd, &info) != 0 ? errno : 0;
    if (error == ENOENT)
        snprintf (text, size, "is missing");
    else if (error == 0 && (uint64_t) info.st_size != blob->file.bytes)
        snprintf (text, size, "has %" PRIu64 " bytes in place of %" PRIu64, (uint64_t) info.st_size,
                  blob->file.bytes);
    else if (error == 0 && (error = hash_file (self, fd, sum)) == 0 &&
             memcmp (sum, blob->file.hash, sizeof (sum)) != 0)
        snprintf (text, size, "is damaged: its bytes are not those of its name");
    else if (error != 0)
        snprintf (text, size, "cannot be read: %s", strerror (error));
    else
        text[0] = '\0';
    if (fd >= 0)
        close (fd);
    return text[0] != '\0';
}

static void read_blob (check_blobs_t *self, const char *directory, blob_t *blob, blobs_found_t *out)
{
    char wrong[WRONG_SIZE];
    out->read++;
    if (!is_damaged (self, directory, blob, wrong, sizeof (wrong)))
        return;
    out->findings++;
    if (self->damages_count == CHECK_BLOBS_TOLD_MAX)
        return;
    damage_t *damage = &self->damages[self->damages_count++];
    *damage = (damage_t){.blob = blob};
    memcpy (damage->wrong, wrong, sizeof (wrong));
    blob->damage = damage;
}

/* What nobody names: of tasks that have ended lately, or uploads that no submit came behind. */
static void count_left (check_blobs_t *self, const char *directory, blobs_found_t *out)
{
    pack_blob_t *files;
    size_t count;
    char text[400];
    if (!pack_list (directory, &files, &count)) {
        snprintf (text, sizeof (text), "blobs: cannot be read: %s", strerror (errno));
        out->findings++;
        out->found (out->context, text);
    }
    for (size_t i = 0; i < count; i++) {
        const blob_t *blob = blob_find (self, files[i].hash);
        if (blob != NULL && blob->tasks > 0)
            continue;
        out->left++;
        out->left_bytes += files[i].bytes;
    }
    free (files);
}

bool check_blobs_read (check_blobs_t *self, const char *directory, blobs_found_t *out)
{
    size_t cursor = 0;
    blob_t *blob;
    out->findings = out->read = out->left = out->left_bytes = 0;
    while ((blob = map_each (&self->blobs, &cursor)) != NULL)
        if (blob->tasks > 0)
            read_blob (self, directory, blob, out);
    count_left (self, directory, out);
    return self->damages_count > 0;
}

/* The tasks. */

static bool is_of (const task_name_t *name, const tmq_id_t *id, const char *ns)
{
    return memcmp (&name->id, id, sizeof (*id)) == 0 && strcmp (name->ns, ns) == 0;
}

static void forget_task (check_blobs_t *self, const tmq_id_t *id, const char *ns)
{
    for (size_t i = 0; i < self->damages_count; i++) {
        damage_t *damage = &self->damages[i];
        size_t kept = 0;
        for (size_t t = 0; t < damage->tasks_count; t++)
            if (!is_of (&damage->tasks[t], id, ns))
                damage->tasks[kept++] = damage->tasks[t];
        damage->tasks_count = kept;
    }
}

/* hash: of a body of the task, also of one that is no blob. */
static void name_task (check_blobs_t *self, const record_t *record, const ProtobufCBinaryData *hash)
{
    const blob_t *blob = hash->len == PACK_HASH_BYTES ? blob_find (self, hash->data) : NULL;
    damage_t *damage = blob == NULL ? NULL : blob->damage;
    if (damage == NULL || damage->tasks_count == CHECK_BLOBS_NAMED_MAX)
        return;
    for (size_t i = 0; i < damage->tasks_count; i++)
        if (is_of (&damage->tasks[i], &record->id, record->ns))
            return;
    task_name_t *name = &damage->tasks[damage->tasks_count++];
    name->id = record->id;
    snprintf (name->ns, sizeof (name->ns), "%s", record->ns);
}

void check_blobs_note_task (check_blobs_t *self, const record_t *record)
{
    forget_task (self, &record->id, record->ns);
    if (record->extra == NULL)
        return;
    extra_t *extra = extra_new (record->extra);
    const Taskmq__Extra *fields = extra->fields;
    if (fields->payload_blob != NULL)
        name_task (self, record, &fields->payload_blob->hash);
    if (fields->result_blob != NULL)
        name_task (self, record, &fields->result_blob->hash);
    for (size_t i = 0; i < fields->n_artifacts; i++)
        name_task (self, record, &fields->artifacts[i]->hash);
    extra_free (extra);
}

void check_blobs_note_removal (check_blobs_t *self, const removal_t *removal)
{
    forget_task (self, &removal->id, removal->ns);
}

/* Tells. */

/* "2 tasks name it: ID, ID (namespace other)" */
static void say_tasks (const damage_t *self, char *out, size_t size)
{
    char id[ID_TEXT_SIZE];
    const uint64_t tasks = self->blob->tasks;
    size_t used = (size_t) snprintf (out, size, "%" PRIu64 " %s", tasks,
                                     tasks == 1 ? "task names it" : "tasks name it");
    for (size_t i = 0; i < self->tasks_count && used < size; i++) {
        const task_name_t *name = &self->tasks[i];
        const bool plain = strcmp (name->ns, "default") == 0;
        id_format (&name->id, id);
        used += (size_t) snprintf (out + used, size - used, "%s%s%s%s%s", i == 0 ? ": " : ", ", id,
                                   plain ? "" : " (namespace ", plain ? "" : name->ns,
                                   plain ? "" : ")");
    }
    if (self->tasks_count == CHECK_BLOBS_NAMED_MAX && tasks > CHECK_BLOBS_NAMED_MAX && used < size)
        snprintf (out + used, size - used, " and %" PRIu64 " more", tasks - CHECK_BLOBS_NAMED_MAX);
}

void check_blobs_tell (const check_blobs_t *self, const blobs_found_t *out)
{
    char hex[HEX_SIZE];
    char tasks[CHECK_BLOBS_NAMED_MAX * (ID_TEXT_SIZE + TMQ_NAME_LENGTH_MAX + 16) + 64];
    char text[sizeof (tasks) + WRONG_SIZE + HEX_SIZE + 16];
    for (size_t i = 0; i < self->damages_count; i++) {
        const damage_t *damage = &self->damages[i];
        sodium_bin2hex (hex, sizeof (hex), damage->blob->file.hash, PACK_HASH_BYTES);
        say_tasks (damage, tasks, sizeof (tasks));
        snprintf (text, sizeof (text), "blobs/%.2s/%s: %s; %s", hex, hex + 2, damage->wrong, tasks);
        out->found (out->context, text);
    }
}

check_blobs_t *check_blobs_new (void)
{
    return memory_zero (1, sizeof (check_blobs_t));
}

void check_blobs_free (check_blobs_t **self_p)
{
    check_blobs_t *self = *self_p;
    size_t cursor = 0;
    if (self == NULL)
        return;
    *self_p = NULL;
    for (blob_t *blob = map_each (&self->blobs, &cursor); blob != NULL;
         blob = map_each (&self->blobs, &cursor))
        free (blob);
    map_free (&self->blobs);
    free (self);
}
