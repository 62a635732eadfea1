/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "reach.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "confine.h"
#include "database.h"
#include "log/log.h"
#include "net/address.h"
#include "store/postgresql/database.h"

enum {
    DATABASE_FILES_MAX = 16, /* of passwords, certificates, keys */
    PATHS_MAX = 3 + ROUTER_ENDPOINTS_MAX + FEEDS_MAX + CONFIG_NAMED_MAX + DATABASE_FILES_MAX
};

typedef struct reach {
    confine_path_t paths[PATHS_MAX];
    char texts[PATHS_MAX][ADDRESS_PATH_SIZE];
    size_t count;
    size_t database_files;
} reach_t;

static void add (reach_t *self, const char *path, bool write)
{
    char *text = self->texts[self->count];
    snprintf (text, ADDRESS_PATH_SIZE, "%s", path);
    self->paths[self->count++] = (confine_path_t){text, write};
}

/* Of what lies in the root it is the root. */
static void add_directory_of (reach_t *self, const char *file, bool write)
{
    char path[ADDRESS_PATH_SIZE];
    snprintf (path, sizeof (path), "%s", file);
    char *slash = strrchr (path, '/');
    if (slash != NULL)
        slash[slash == path ? 1 : 0] = '\0';
    add (self, slash != NULL ? path : ".", write);
}

/* The directory in which a socket and its lock are made. A wrong address is refused later. */
static void add_socket (reach_t *self, const char *uri)
{
    static const char ipc[] = "ipc://";
    char error[ADDRESS_PATH_SIZE + 256];
    address_t address;
    if (address_parse (&address, uri, error, sizeof (error)) && address.kind == ADDRESS_IPC)
        add_directory_of (self, address.uri + strlen (ipc), true);
}

static void add_feed (reach_t *self, const char *item)
{
    char ns[TMQ_NAME_LENGTH_MAX + 1];
    const char *uri;
    if (config_split_feed (item, ns, &uri))
        add_socket (self, uri);
}

/* The directory, so that a file which is replaced while the broker runs is found. Not where that is
 * a home: its files are nobody's but its owner's. */
static void add_database_file (void *context, const char *path)
{
    reach_t *self = context;
    const char *home = getenv ("HOME");
    size_t length = home != NULL ? strlen (home) : 0;
    if (self->database_files++ >= DATABASE_FILES_MAX)
        return;
    if (length > 0 && strncmp (path, home, length) == 0 && strchr (path + length + 1, '/') == NULL)
        add (self, path, false);
    else
        add_directory_of (self, path, false);
}

void reach_confine (const config_t *config, const data_t *data)
{
    static reach_t reach; /* too large for the stack */
    const config_value_t *listen = &config->values[CONFIG_LISTEN];
    const config_value_t *feeds = &config->values[CONFIG_FEED];
    char own[DATA_PATH_SIZE + sizeof ("ipc:///" DATA_SOCKET_NAME)];
    snprintf (own, sizeof (own), "ipc://%s/" DATA_SOCKET_NAME, data->directory);
    add (&reach, data->directory, true);
    const char *access = config_text (config, CONFIG_ACCESS);
    if (access != NULL)
        add_directory_of (&reach, access, true);
    const char *archive = config_text (config, CONFIG_ARCHIVE);
    if (archive != NULL)
        add (&reach, archive, true);
    database_options_t database;
    if (database_fill (&database, config, NULL))
        database_files (&database, add_database_file, &reach);
    add_socket (&reach, own); /* a long path has moved */
    for (size_t i = 0; i < listen->items_count; i++)
        add_socket (&reach, listen->items[i].text);
    for (size_t i = 0; i < feeds->items_count; i++)
        add_feed (&reach, feeds->items[i].text);
    for (size_t i = 0; i < config->named_count; i++)
        add_directory_of (&reach, config->named[i], false); /* for a reload, with FILE.d */

    confine_report_t report;
    confine_process (&report, reach.paths, reach.count);
    log_write (LOG_LEVEL_INFO, "CONFINED",
               report.text[0] == '\0' ? "reaches its own files only and starts no program"
                                      : report.text,
               LOG_FIELDS (LOG_NUMBER ("landlock", report.landlock),
                           LOG_NUMBER ("filter", report.filter)));
}
