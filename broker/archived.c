/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "archived.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log/log.h"

/* A path is another one, or lies below it. Both are without links. */
static bool lies_in (const char *path, const char *directory)
{
    size_t length = strlen (directory);
    return strncmp (path, directory, length) == 0 &&
           (path[length] == '\0' || path[length] == '/' || strcmp (directory, "/") == 0);
}

exits_t archived_judge (const config_t *config, const char *data, char error[ARCHIVED_ERROR_SIZE])
{
    char real[PATH_MAX];
    char real_data[PATH_MAX];
    struct stat info;
    const char *named = config_text (config, CONFIG_ARCHIVE);
    if (named == NULL)
        return EXITS_OK;
    const char *why = NULL;
    if (realpath (named, real) == NULL || stat (real, &info) != 0)
        why = strerror (errno);
    else if (!S_ISDIR (info.st_mode))
        why = "it is not a directory";
    else if (access (real, R_OK | W_OK | X_OK) != 0)
        why = strerror (errno);
    else if (data != NULL && realpath (data, real_data) != NULL && lies_in (real, real_data))
        why = "it lies in the data directory: an archive is for the loss of that";
    if (why == NULL)
        return EXITS_OK;
    snprintf (error, ARCHIVED_ERROR_SIZE, "store/archive %.4000s: %s", named, why);
    return EXITS_DATA;
}

/* On the archive's threads. */
static void say (void *context, archive_word_t word, const char *text)
{
    (void) context;
    switch (word) {
    case ARCHIVE_BEGUN: log_write (LOG_LEVEL_INFO, "ARCHIVE-BEGUN", text, NULL); break;
    case ARCHIVE_STALLED: log_write (LOG_LEVEL_WARNING, "ARCHIVE-STALLED", text, NULL); break;
    case ARCHIVE_BACK: log_write (LOG_LEVEL_INFO, "ARCHIVE-BACK", text, NULL); break;
    case ARCHIVE_GAP: log_write (LOG_LEVEL_WARNING, "ARCHIVE-GAP", text, NULL); break;
    case ARCHIVE_BROKEN: log_write (LOG_LEVEL_ERROR, "ARCHIVE-BROKEN", text, NULL); break;
    case ARCHIVE_BLOB: log_write (LOG_LEVEL_WARNING, "ARCHIVE-BLOB", text, NULL); break;
    case ARCHIVE_UNREAD: log_write (LOG_LEVEL_WARNING, "ARCHIVE-UNREAD", text, NULL); break;
    }
}

bool archived_fill (archive_options_t *out, const config_t *config, const char *data,
                    const shared_limit_t *free_bytes_min)
{
    *out = (archive_options_t){.directory = config_text (config, CONFIG_ARCHIVE),
                               .data = data,
                               .keep_ms = (int64_t) config->numbers[CONFIG_ARCHIVE_KEEP],
                               .sync_ms = ARCHIVE_SYNC_MS,
                               .unread_ms = ARCHIVE_UNREAD_MS,
                               .backlog_bytes_max = ARCHIVE_BACKLOG_BYTES_MAX,
                               .free_bytes_min = free_bytes_min,
                               .say = say};
    return out->directory != NULL;
}
