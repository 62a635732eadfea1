/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/postgresql/pg_instance.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "ids.h"

enum { BOOT_ID_SIZE = 64, FILE_SIZE = 256 /* of an instance */ };

static store_code_t path_failed (const char *path, store_error_t *error)
{
    return store_fail (error,
                       errno == ENOSPC || errno == EDQUOT ? STORE_ERROR_FULL : STORE_ERROR_ACCESS,
                       "%s: %s", path, strerror (errno));
}

/* All of the file or what was there before, whatever interrupts it. */
static store_code_t write_file (const char *directory, const char *path, const char *text,
                                store_error_t *error)
{
    char fresh[PATH_MAX + 8];
    ssize_t length = (ssize_t) strlen (text);
    snprintf (fresh, sizeof (fresh), "%s.new", path);
    int fd = open (fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool done = fd >= 0 && write (fd, text, (size_t) length) == length && fsync (fd) == 0;
    done = fd >= 0 && close (fd) == 0 && done && rename (fresh, path) == 0;
    if (!done)
        return path_failed (path, error);
    int place = open (directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    done = place >= 0 && fsync (place) == 0;
    if (place >= 0)
        close (place);
    return done ? STORE_OK : path_failed (directory, error);
}

static store_code_t make_id (const char *directory, const char *path,
                             char text[PG_INSTANCE_LENGTH + 1], store_error_t *error)
{
    uint8_t random[PG_INSTANCE_BYTES];
    if (getrandom (random, sizeof (random), 0) != (ssize_t) sizeof (random))
        return store_fail (error, STORE_ERROR_IO, "the system gives no random bytes");
    hex_encode (text, random, sizeof (random));
    return write_file (directory, path, text, error);
}

static store_code_t read_id (const char *directory, char text[PG_INSTANCE_LENGTH + 1],
                             store_error_t *error)
{
    char path[PATH_MAX];
    snprintf (path, sizeof (path), "%s/" DATABASE_INSTANCE_FILE, directory);
    int fd = open (path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return make_id (directory, path, text, error);
    if (fd < 0)
        return path_failed (path, error);
    ssize_t length = read (fd, text, PG_INSTANCE_LENGTH);
    close (fd);
    text[length < 0 ? 0 : length] = '\0';
    if (strspn (text, "0123456789abcdef") != PG_INSTANCE_LENGTH)
        return store_fail (error, STORE_ERROR_CORRUPT,
                           "%s: is no id of an instance; remove it to make another", path);
    return STORE_OK;
}

bool pg_instance_is_there (const char *directory)
{
    char path[PATH_MAX];
    snprintf (path, sizeof (path), "%s/" DATABASE_INSTANCE_FILE, directory);
    return access (path, F_OK) == 0;
}

static bool read_boot_id (char out[BOOT_ID_SIZE])
{
    memset (out, 0, BOOT_ID_SIZE);
    int fd = open (PG_BOOT_ID_FILE, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read (fd, out, BOOT_ID_SIZE - 1);
    if (fd >= 0)
        close (fd);
    return length > 0;
}

/* The start of this kernel, and the directory among all that it has. */
static store_code_t find_place (pg_instance_t *self, const char *directory, uint64_t *place,
                                store_error_t *error)
{
    struct seed {
        char boot[BOOT_ID_SIZE];
        uint64_t device;
        uint64_t inode;
    } seed = {.device = 0};
    struct stat info;
    if (stat (directory, &info) != 0)
        return path_failed (directory, error);
    self->placed = read_boot_id (seed.boot);
    seed.device = (uint64_t) info.st_dev;
    seed.inode = (uint64_t) info.st_ino;
    *place = self->placed ? XXH3_64bits (&seed, sizeof (seed)) : 0;
    return STORE_OK;
}

store_code_t pg_instance_read (pg_instance_t *out, const char *directory, store_error_t *error)
{
    uint64_t place = 0;
    char id[PG_INSTANCE_LENGTH + 1] = "";
    char host[HOST_NAME_MAX + 1] = "";
    *out = (pg_instance_t){.placed = false};
    store_code_t code = read_id (directory, id, error);
    if (code == STORE_OK)
        code = find_place (out, directory, &place, error);
    if (code != STORE_OK)
        return code;
    if (gethostname (host, sizeof (host) - 1) != 0 || host[0] == '\0')
        snprintf (host, sizeof (host), "unknown");
    snprintf (out->owner, sizeof (out->owner), "%s %016llx %.*s", id, (unsigned long long) place,
              PG_HOST_LENGTH_MAX, host);
    hex_decode (out->id, sizeof (out->id), id);
    return STORE_OK;
}

/* The tables. They stand behind the id, in a line of their own: versions before this one read the
 * id alone. The name of the database comes last, as it may have blanks. */

#define OWNED_WORD "owned"

void pg_instance_owned (pg_tables_of_t *out, const char *directory)
{
    char path[PATH_MAX];
    char line[FILE_SIZE] = "";
    long long system_id = 0;
    *out = (pg_tables_of_t){.system_id = 0};
    snprintf (path, sizeof (path), "%s/" DATABASE_INSTANCE_FILE, directory);
    FILE *file = fopen (path, "re");
    if (file == NULL)
        return;
    bool read = fgets (line, sizeof (line), file) != NULL && fgets (line, sizeof (line), file);
    fclose (file);
    if (read && sscanf (line, OWNED_WORD " %lld %63s %63[^\n]", &system_id, out->schema,
                        out->database) == 3)
        out->system_id = system_id;
}

static void read_names (pg_tables_of_t *out, const pg_link_t *link)
{
    *out = (pg_tables_of_t){.system_id = atomic_load (&link->target->system_id)};
    snprintf (out->schema, sizeof (out->schema), "%s", link->target->schema);
    snprintf (out->database, sizeof (out->database), "%s", PQdb (link->db));
    for (char *at = out->database; (at = strchr (at, '\n')) != NULL;)
        *at = '?';
}

static bool are_same (const pg_tables_of_t *one, const pg_tables_of_t *other)
{
    return one->system_id == other->system_id && strcmp (one->schema, other->schema) == 0 &&
           strcmp (one->database, other->database) == 0;
}

store_code_t pg_instance_note_owned (const char *directory, const pg_link_t *link,
                                     store_error_t *error)
{
    char id[PG_INSTANCE_LENGTH + 1];
    char path[PATH_MAX];
    char text[FILE_SIZE];
    pg_tables_of_t before;
    pg_tables_of_t now;
    pg_instance_owned (&before, directory);
    read_names (&now, link);
    store_code_t code = read_id (directory, id, error);
    if (code != STORE_OK || are_same (&before, &now))
        return code;
    snprintf (path, sizeof (path), "%s/" DATABASE_INSTANCE_FILE, directory);
    snprintf (text, sizeof (text), "%s\n" OWNED_WORD " %lld %s %s\n", id, (long long) now.system_id,
              now.schema, now.database);
    return write_file (directory, path, text, error);
}

store_code_t pg_instance_lacks (const pg_tables_of_t *owned, const pg_link_t *link,
                                const char *what, store_error_t *error)
{
    pg_tables_of_t met;
    const char *where = link->target->where;
    read_names (&met, link);
    if (are_same (owned, &met))
        return store_fail (error, STORE_ERROR_CUT,
                           "%s: schema %s is %s, and this data directory owned the tasks that were "
                           "in it. Put them back. To begin with nothing, name a new data directory",
                           where, met.schema, what);
    return store_fail (
        error, STORE_ERROR_CUT,
        "%s: schema %s is %s, and this data directory owned the tasks of schema %s "
        "in database %s%s: name those (database/uri, database/schema). To begin with "
        "nothing, name a new data directory",
        where, met.schema, what, owned->schema, owned->database,
        owned->system_id == met.system_id ? "" : " of another server");
}

/* Owners. */

bool pg_instance_was (const pg_instance_t *self, const char *owner)
{
    size_t length = PG_INSTANCE_LENGTH + 1 + PG_PLACE_LENGTH + 1;
    return self->placed && strncmp (owner, self->owner, length) == 0;
}

bool pg_instance_was_unplaced (const pg_instance_t *self, const char *owner)
{
    return strncmp (owner, self->owner, PG_INSTANCE_LENGTH) == 0;
}

bool pg_instance_is_twin (const pg_instance_t *self, const char *owner)
{
    return pg_instance_was_unplaced (self, owner) && !pg_instance_was (self, owner);
}

void pg_instance_tag (const char *owner, char tag[PG_TAG_SIZE])
{
    enum { HALF = (PG_TAG_SIZE - 1) / 2 };
    bool placed = strlen (owner) > PG_INSTANCE_LENGTH;
    snprintf (tag, PG_TAG_SIZE, "%.*s%.*s", HALF, owner, HALF,
              placed ? owner + PG_INSTANCE_LENGTH + 1 : "");
}

void pg_instance_text (const char *owner, char *out, size_t out_size)
{
    const char *host = strrchr (owner, ' ');
    snprintf (out, out_size, "%.*s (instance %.*s)", PG_HOST_LENGTH_MAX,
              host == NULL ? "unknown" : host + 1, PG_INSTANCE_LENGTH, owner);
}
