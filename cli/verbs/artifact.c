/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* taskctl artifact: what workers attached to a task. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/exit.h"
#include "base/memory.h"
#include "link/connect.h"
#include "link/fetched.h"
#include "link/ids.h"
#include "link/outfile.h"
#include "screen/artifacts.h"
#include "screen/items.h"
#include "screen/output.h"
#include "verbs/destination.h"
#include "verbs/verbs.h"

/* The list of the task that the second operand names. */
static int load (app_t *app, tmq_id_t *id, tmq_artifact_list_t **out)
{
    tmq_error_t error = {0};
    const char *text = app->args.operands[1];
    int code = app_connect (app);
    if (code || (code = app_resolve (app, id, text)))
        return code;
    error.code = tmq_artifacts (out, app->client, id, app->timeout_ms, &error);
    return error.code == TMQ_OK ? EXIT_OK : library_error (app, &error, text);
}

static int artifact_list (app_t *app)
{
    tmq_id_t id;
    items_t items;
    tmq_artifact_list_t *list = NULL;
    const int code = load (app, &id, &list);
    if (code)
        return code;
    if (app_wants_json (app)) {
        items_begin (&items, app, false);
        for (size_t i = 0; i < list->count; i++) {
            artifact_write (items_open (&items), &list->artifacts[i]);
            items_close (&items);
        }
        items_end (&items, NULL);
    } else {
        artifacts_table (app, list);
        if (list->count == 0 && app->format != FORMAT_ID)
            note (app, "no artifacts");
    }
    tmq_artifact_list_free (list);
    return EXIT_OK;
}

/* get. */

typedef struct wanted {
    const app_t *app;
    const tmq_id_t *id;
    const tmq_artifact_info_t *artifact;
} wanted_t;

static int fetch (void *context, int fd, bool in_place, uint64_t *fetched, tmq_error_t *error)
{
    const wanted_t *self = context;
    const app_t *app = self->app;
    return in_place ? tmq_artifact_fetch (app->client, self->id, self->artifact, fd, fetched,
                                          app->timeout_ms, error)
                    : tmq_artifact_save (app->client, self->id, self->artifact, fd, app->timeout_ms,
                                         error);
}

static int get_file (wanted_t *self, const char *path, bool as_file)
{
    const fetched_t file = {.path = path,
                            .what = self->artifact->name,
                            .hash = self->artifact->hash,
                            .bytes = self->artifact->bytes,
                            .fetch = fetch,
                            .context = self,
                            .as_file = as_file};
    tmq_error_t error = {0};
    if (!self->artifact->has_hash) {
        error.code = TMQ_DENIED;
        return library_error (self->app, &error, self->artifact->name);
    }
    return fetched_save (&file, self->app);
}

/* The library lets no name through that leads out of the directory. A pipe of that name was not
 * asked for, and would be waited for. */
static int get_into (wanted_t *self, const char *directory)
{
    char *path = must_alloc (strlen (directory) + strlen (self->artifact->name) + 2);
    sprintf (path, "%s/%s", directory, self->artifact->name);
    const int code = get_file (self, path, true);
    if (!code)
        note (self->app, "%s", path);
    free (path);
    return code;
}

static int get_one (wanted_t *self, const char *path, const char *directory)
{
    tmq_error_t error = {0};
    if (directory)
        return get_into (self, directory);
    if (path && strcmp (path, "-") != 0)
        return get_file (self, path, false);
    fflush (stdout);
    error.code = fetch (self, STDOUT_FILENO, false, NULL, &error);
    return error.code == TMQ_OK ? EXIT_OK : library_error (self->app, &error, self->artifact->name);
}

/* name NULL: all of them. */
static int get_some (const app_t *app, const tmq_id_t *id, const tmq_artifact_list_t *list,
                     const char *name, const char *path, const char *directory)
{
    bool any = false;
    int code = EXIT_OK;
    for (size_t i = 0; i < list->count; i++) {
        wanted_t wanted = {app, id, &list->artifacts[i]};
        if (name && strcmp (name, list->artifacts[i].name) != 0)
            continue;
        any = true;
        const int one = get_one (&wanted, path, directory);
        code = code ? code : one;
        if (one == EXIT_UNREACHABLE) /* each of the others would wait as long for nothing */
            break;
    }
    if (!any && name)
        return code_error (app, TMQ_NOT_FOUND, "taskctl artifact list shows what there is",
                           "the task has no artifact '%s'", name);
    return code;
}

static int artifact_get (app_t *app)
{
    const args_t *args = &app->args;
    const char *name = args->operands_count > 2 ? args->operands[2] : NULL;
    const char *directory = args_text (args, OPT_DIR);
    const char *path = NULL;
    tmq_artifact_list_t *list = NULL;
    tmq_id_t id;
    int code = destination_take (app, &path);
    if (code)
        return code;
    if (path && directory)
        return usage_error (app, NULL, "-o and --dir exclude each other");
    if (!name && !directory)
        return usage_error (app, "taskctl artifact get TASK --dir DIR fetches all",
                            "artifact get needs the name of one");
    code = load (app, &id, &list);
    if (code)
        return code;
    if (list->count == 0 && !name)
        note (app, "no artifacts");
    else if (directory && mkdir (directory, 0700) != 0 && errno != EEXIST)
        code = outfile_error (app, directory, errno);
    else
        code = get_some (app, &id, list, name, path, directory);
    tmq_artifact_list_free (list);
    return code;
}

const verb_t artifact_verbs[] = {{"list", "TASK", 1, 1, artifact_list},
                                 {"get", "TASK [NAME]", 1, 2, artifact_get},
                                 {NULL, NULL, 0, 0, NULL}};
