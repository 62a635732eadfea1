/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Failure: an error says the file and the line, or the variable. */
#include "config/layers.h"

#include <ctype.h>
#include <czmq.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/scan.h"
#include "core/base/memory.h"
#include "nearest.h"

/* Files. */

static bool read_all (int fd, const char *file, char *text, size_t *bytes, char *error)
{
    ssize_t got = 0;
    *bytes = 0;
    while (*bytes <= CONFIG_FILE_BYTES_MAX &&
           (got = read (fd, text + *bytes, CONFIG_FILE_BYTES_MAX + 1 - *bytes)) > 0)
        *bytes += (size_t) got;
    if (got < 0)
        return config_fail (error, "cannot read %.400s: %s", file, strerror (errno));
    if (*bytes > CONFIG_FILE_BYTES_MAX)
        return config_fail (error, "%.400s is no configuration: it has more than %d bytes", file,
                            CONFIG_FILE_BYTES_MAX);
    return true;
}

/* A text of at most CONFIG_FILE_BYTES_MAX bytes, with a NUL behind it. Never waits, as for the
 * writer of a pipe. */
static bool read_file (const char *file, char **text, size_t *bytes, char *error)
{
    struct stat info;
    int fd = open (file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        config_fail (error, "cannot read %.400s: %s", file, strerror (errno));
        return false;
    }
    bool good = fstat (fd, &info) == 0 && (S_ISREG (info.st_mode) || S_ISCHR (info.st_mode));
    if (!good)
        config_fail (error, "cannot read %.400s: it is %s", file,
                     S_ISDIR (info.st_mode) ? "a directory" : "no file");
    *text = memory_alloc (CONFIG_FILE_BYTES_MAX + 1);
    good = good && read_all (fd, file, *text, bytes, error);
    close (fd);
    if (good)
        (*text)[*bytes] = '\0';
    else
        free (*text);
    return good;
}

/* What is put before an error of a file. */
typedef struct place {
    const char *file;
    unsigned line;
} place_t;

static bool fail_at (place_t place, const char *why, char *error)
{
    char text[CONFIG_ERROR_SIZE];
    snprintf (text, sizeof (text), "%s", why);
    if (place.line == 0)
        return config_fail (error, "%.400s: %.500s", place.file, text);
    return config_fail (error, "%.400s:%u: %.500s", place.file, place.line, text);
}

/* What stands twice in one file says two things: only a list may. */
static bool check_once (const config_t *self, const char *key, place_t place, char *error)
{
    config_key_t found = CONFIG_KEYS;
    if (!config_find (&found, key, error))
        return fail_at (place, error, error);
    config_origin_t before = self->values[found].origin;
    if (config_rules[found].kind == CONFIG_KIND_LIST || before.source == NULL ||
        strcmp (before.source, place.file) != 0)
        return true;
    char why[CONFIG_ERROR_SIZE];
    config_fail (why, "%s stands in line %u already", key, before.line);
    return fail_at (place, why, error);
}

static bool set_key (config_t *self, const char *section, zconfig_t *item, place_t place,
                     char *error)
{
    char key[256];
    const char *value = zconfig_value (item);
    snprintf (key, sizeof (key), "%.100s/%.100s", section, zconfig_name (item));
    return check_once (self, key, place, error) &&
           (config_set (self, key, value != NULL ? value : "",
                        (config_origin_t){place.file, place.line}, error) ||
            fail_at (place, error, error));
}

/* Also of a section without keys: it may be a key that was not indented. */
static bool check_section (const char *name, place_t place, char *error)
{
    size_t length = strlen (name);
    for (size_t i = 0; i < CONFIG_KEYS; i++) {
        if (strncmp (config_rules[i].key, name, length) == 0 && config_rules[i].key[length] == '/')
            return true;
    }
    char why[CONFIG_ERROR_SIZE];
    config_fail (why, "%.100s is no section of the configuration", name);
    return fail_at (place, why, error);
}

/* The n-th line of the scan is the n-th node of the tree. */
static bool take_tree (config_t *self, const char *file, zconfig_t *root, const scan_t *scan,
                       char *error)
{
    size_t n = 0;
    for (zconfig_t *at = zconfig_child (root); at != NULL; at = zconfig_next (at)) {
        bool good = n < scan->count && scan->lines[n].depth == 0;
        if (good && !check_section (zconfig_name (at), (place_t){file, scan->lines[n].line}, error))
            return false;
        n++;
        for (zconfig_t *item = zconfig_child (at); good && item != NULL;
             item = zconfig_next (item)) {
            if (n == scan->count || scan->lines[n].depth != 1)
                good = false;
            else if (!set_key (self, zconfig_name (at), item,
                               (place_t){file, scan->lines[n++].line}, error))
                return false;
        }
        if (!good)
            return fail_at ((place_t){file, 0}, "its sections cannot be told apart", error);
    }
    return n == scan->count ||
           fail_at ((place_t){file, 0}, "its sections cannot be told apart", error);
}

static bool take_text (config_t *self, const char *file, char *text, size_t bytes, char *error)
{
    scan_t scan;
    bool good = scan_text (&scan, text, bytes);
    zconfig_t *root = NULL;
    if (!good) {
        fail_at ((place_t){file, scan.wrong_line}, scan.error, error);
    } else if (scan.count > 0) {
        zsys_set_logstream (NULL); /* CZMQ would report on its own log, without the file */
        root = zconfig_str_load (text);
        good = root != NULL ? take_tree (self, file, root, &scan, error)
                            : fail_at ((place_t){file, 0}, "is not a configuration", error);
    }
    zconfig_destroy (&root);
    scan_free (&scan);
    return good;
}

static bool take_file (config_t *self, const char *file, char *error)
{
    char *text;
    size_t bytes;
    if (!read_file (file, &text, &bytes, error))
        return false;
    bool good = take_text (self, file, text, bytes, error);
    free (text);
    return good;
}

/* Drop-ins. */

static int is_drop_in (const struct dirent *entry)
{
    size_t length = strlen (entry->d_name);
    return entry->d_name[0] != '.' && length > 5 &&
           strcmp (entry->d_name + length - 5, ".conf") == 0;
}

static int by_bytes (const struct dirent **one, const struct dirent **other)
{
    return strcmp ((*one)->d_name, (*other)->d_name);
}

static bool take_drop_ins (config_t *self, const char *directory, char *error)
{
    struct dirent **entries;
    int count = scandir (directory, &entries, is_drop_in, by_bytes);
    if (count < 0)
        return errno == ENOENT ||
               config_fail (error, "cannot read %.400s: %s", directory, strerror (errno));
    bool good = count <= CONFIG_FILES_MAX ||
                config_fail (error, "%.400s has more than %d files", directory, CONFIG_FILES_MAX);
    for (int i = 0; good && i < count; i++) {
        char file[PATH_MAX];
        int length = snprintf (file, sizeof (file), "%s/%s", directory, entries[i]->d_name);
        good = length < (int) sizeof (file) ? take_file (self, file, error)
                                            : config_fail (error, "%.400s: too long", directory);
    }
    for (int i = 0; i < count; i++)
        free (entries[i]);
    free (entries);
    return good;
}

bool layers_files (config_t *self, const char *file, char error[CONFIG_ERROR_SIZE])
{
    char directory[PATH_MAX];
    if (snprintf (directory, sizeof (directory), "%s.d", file) >= (int) sizeof (directory))
        return config_fail (error, "cannot read %.100s...: the path is too long", file);
    return take_file (self, file, error) && take_drop_ins (self, directory, error);
}

/* The environment. */

#define PREFIX "TASKMQD_"

static void name_variable (char out[64], const char *key)
{
    size_t used = (size_t) snprintf (out, 64, PREFIX "%s", key);
    for (size_t i = 0; i < used && i < 63; i++)
        out[i] = out[i] == '/' ? '_' : (char) toupper ((unsigned char) out[i]);
}

static bool find_variable (config_key_t *out, const char *name, char *error)
{
    char texts[CONFIG_KEYS][64];
    const char *names[CONFIG_KEYS];
    for (size_t i = 0; i < CONFIG_KEYS; i++) {
        name_variable (texts[i], config_rules[i].key);
        names[i] = texts[i];
        if (strcmp (names[i], name) == 0) {
            *out = (config_key_t) i;
            return true;
        }
    }
    const char *nearest = nearest_of (name, names, CONFIG_KEYS);
    if (nearest == NULL)
        return config_fail (error, "%.100s in the environment is no key of the configuration",
                            name);
    return config_fail (error,
                        "%.100s in the environment is no key of the configuration; did you mean "
                        "%s?",
                        name, nearest);
}

/* An item of a list at a time; any other value as a whole. */
static bool set_variable (config_t *self, config_key_t key, const char *name, char *value,
                          char *error)
{
    bool list = config_rules[key].kind == CONFIG_KIND_LIST;
    config_origin_t origin = {name, 0};
    char *rest = value;
    char *item = list ? strtok_r (value, " ", &rest) : value;
    if (item == NULL)
        item = value; /* nothing but spaces: empty */
    while (item != NULL) {
        if (!config_set (self, config_rules[key].key, item, origin, error))
            return fail_at ((place_t){name, 0}, error, error);
        item = list ? strtok_r (NULL, " ", &rest) : NULL;
    }
    return true;
}

bool layers_environment (config_t *self, char *const *environment, char error[CONFIG_ERROR_SIZE])
{
    for (; *environment != NULL; environment++) {
        config_key_t key = CONFIG_KEYS;
        const char *equals = strchr (*environment, '=');
        if (strncmp (*environment, PREFIX, strlen (PREFIX)) != 0 || equals == NULL ||
            strncmp (*environment, PREFIX "OPTIONS=", strlen (PREFIX "OPTIONS=")) == 0)
            continue;
        char name[128];
        snprintf (name, sizeof (name), "%.*s", (int) (equals - *environment), *environment);
        if (!find_variable (&key, name, error))
            return false;
        char *value = memory_text (equals + 1);
        bool good = set_variable (self, key, name, value, error);
        free (value);
        if (!good)
            return false;
    }
    return true;
}
