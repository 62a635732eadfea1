/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* taskctl export: tasks with all that is kept of them, for other programs and for people. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/exit.h"
#include "base/memory.h"
#include "base/patience.h"
#include "disk.h"
#include "ids.h"
#include "link/connect.h"
#include "link/ids.h"
#include "link/outfile.h"
#include "redact.h"
#include "screen/csv.h"
#include "screen/fields.h"
#include "screen/foreign.h"
#include "screen/found.h"
#include "screen/items.h"
#include "screen/output.h"
#include "screen/page.h"
#include "screen/status.h"
#include "units.h"
#include "verbs/bodies.h"
#include "verbs/filter.h"
#include "verbs/form.h"
#include "verbs/record.h"
#include "verbs/search.h"
#include "verbs/verbs.h"

typedef struct exporting {
    app_t *app;
    form_t form;
    const char *directory; /* NULL: all in one file */
    const char *bodies;    /* the directory of what no line takes; or NULL */
    char *part;            /* the name of a file in it until it is whole */
    const char *fields;
    outfile_t file;
    bytes_t bytes;        /* of the task at hand */
    redactor_t *redactor; /* NULL: nothing is replaced */
    bytes_t plain;        /* … before what looks secret was */
    bool heading;         /* what is put next is the head of a table */
    uint64_t written;     /* tasks */
    uint64_t total;       /* that are wanted; 0: not counted */
    uint64_t gone;        /* removed while we were at it */
    uint64_t redacted;
    uint64_t bodies_missing; /* of tasks that were written */
    uint64_t bodies_left;    /* that no line takes, without --bodies */
    status_line_t status;
} exporting_t;

/* Writing. */

/* The JSON that was just made. To be freed by json_decref. */
static json_t *parsed (const exporting_t *self)
{
    json_t *object = foreign_read (&self->bytes, 0);
    if (!object)
        must_grow (NULL, SIZE_MAX, 2); /* ends the program: our own writer's JSON is whole */
    return object;
}

static void put_json (exporting_t *self)
{
    FILE *stream = self->file.stream;
    if (self->form == FORM_JSON && !self->directory)
        fputs (self->written ? ",\n" : "{\"items\":[\n", stream);
    fwrite (self->bytes.data, 1, self->bytes.length, stream);
    if (self->form == FORM_JSONL || self->directory)
        fputc ('\n', stream);
}

static void put_page (exporting_t *self)
{
    json_t *record = parsed (self);
    if (self->written && !self->directory)
        fputs ("\n\n", self->file.stream);
    page_write (self->file.stream, record);
    json_decref (record);
}

/* In a table every row has the cells of its head. */
static void put_row (exporting_t *self)
{
    json_t *object = parsed (self);
    json_object_del (object, "redacted");
    if (self->heading)
        csv_head (self->file.stream, object);
    else
        csv_row (self->file.stream, object);
    json_decref (object);
}

static void redact (exporting_t *self)
{
    const bytes_t swap = self->plain;
    self->plain = self->bytes;
    self->bytes = swap;
    bytes_clear (&self->bytes);
    self->redacted +=
        redact_object (self->redactor, &self->bytes, self->plain.data, self->plain.length);
    self->bytes.failed |= self->plain.failed;
}

/* What stands in bytes. */
static void put (exporting_t *self)
{
    if (self->redactor && !self->heading && !self->bytes.failed)
        redact (self);
    if (self->fields && !self->bytes.failed)
        fields_pick (&self->bytes, self->fields);
    if (self->bytes.failed)
        must_grow (NULL, SIZE_MAX, 2); /* ends the program: memory ran out */
    if (self->form == FORM_CSV)
        put_row (self);
    else if (self->form == FORM_TASK)
        put_page (self);
    else
        put_json (self);
    self->written += !self->heading;
}

/* An error of writing ends the export early: the rest would be in vain. */
static int check_stream (const exporting_t *self)
{
    if (self->directory || !ferror (self->file.stream))
        return EXIT_OK;
    const int reason = errno;
    return code_error (self->app, reason == ENOSPC ? TMQ_STORE_FULL : TMQ_INTERNAL, NULL,
                       "cannot write %s: %s", self->file.path ? self->file.path : "standard output",
                       strerror (reason));
}

/* A directory of files. */

enum { ENDING_MIN = 6, ID_ENDING_MAX = 36, HEAD_BYTES = 128 };

/* Whether something is there that is not the file of this task. A link is not followed, and a pipe
 * is not waited for. */
static bool is_of_another (const char *path, const char *id)
{
    char head[HEAD_BYTES + 1] = "";
    struct stat found;
    if (lstat (path, &found) != 0)
        return false;
    const int fd = open (path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    const bool read_it = fd >= 0 && S_ISREG (found.st_mode) && read (fd, head, HEAD_BYTES) > 0;
    if (fd >= 0)
        close (fd);
    return !read_it || !strstr (head, id);
}

/* "2026-11-21T21-05-00.123-b15e0a.task": when it was made, and the end of its id, which is longer
 * where two tasks would share the name. Freed by free (). */
static char *file_path (const exporting_t *self, const tmq_task_t *task)
{
    char id[ID_TEXT_SIZE];
    char made[TIME_TEXT_SIZE] = "";
    char *path = NULL;
    tmq_id_format (&task->id, id);
    time_format (made, (int64_t) task->created_at);
    for (char *at = made; *at; at++)
        *at = *at == ':' ? '-' : *at;
    made[strcspn (made, "Z")] = '\0';
    for (int ending = ENDING_MIN; !path && ending <= ID_ENDING_MAX; ending += ENDING_MIN) {
        if (asprintf (&path, "%s/%s-%s.%s", self->directory, made, id + ID_ENDING_MAX - ending,
                      form_name (self->form)) < 0)
            path = must_grow (NULL, SIZE_MAX, 2);
        if (ending < ID_ENDING_MAX && is_of_another (path, id)) {
            free (path);
            path = NULL;
        }
    }
    return path;
}

static int put_file (exporting_t *self, const tmq_task_t *task)
{
    char *path = file_path (self, task);
    int code = outfile_open (&self->file, self->app, path, self->part);
    if (!code) {
        put (self);
        code = outfile_close (&self->file, self->app, true, false);
    }
    free (path);
    return code;
}

static int make_directory (const app_t *app, const char *path)
{
    struct stat found;
    if (mkdir (path, 0700) == 0 ||
        (errno == EEXIST && stat (path, &found) == 0 && S_ISDIR (found.st_mode)))
        return EXIT_OK;
    return code_error (app, TMQ_INTERNAL, NULL, "cannot make the directory %s: %s", path,
                       strerror (errno));
}

/* Bodies. */

/* One of: the payload, if it is nothing else. */
typedef struct wanted {
    const app_t *app;
    const tmq_id_t *id;
    bool is_result;
    const tmq_artifact_info_t *artifact;
    const tmq_attempt_info_t *kept; /* the late success of this one */
    tmq_blob_t blob;
    int code; /* what the library said */
} wanted_t;

static int fetch_body (void *context, int fd, bool in_place, uint64_t *fetched, tmq_error_t *error)
{
    wanted_t *wanted = context;
    tmq_client_t *client = wanted->app->client;
    const uint32_t timeout_ms = wanted->app->timeout_ms;
    (void) in_place; /* only a device is written otherwise */
    if (wanted->artifact)
        wanted->code = tmq_artifact_fetch (client, wanted->id, wanted->artifact, fd, fetched,
                                           timeout_ms, error);
    else if (wanted->kept)
        wanted->code =
            tmq_kept_fetch (client, wanted->id, wanted->kept, fd, fetched, timeout_ms, error);
    else if (wanted->is_result)
        wanted->code = tmq_result_fetch (client, wanted->id, fd, fetched, timeout_ms, error);
    else
        wanted->code = tmq_payload_fetch (client, wanted->id, fd, fetched, timeout_ms, error);
    return wanted->code;
}

static bool is_gone (int code)
{
    return code == TMQ_NOT_FOUND || code == TMQ_EXPIRED || code == TMQ_PURGED;
}

/* What the broker has no more is told, and leaves the rest of its task as it is. */
static int export_body (exporting_t *self, wanted_t wanted)
{
    char text[37];
    const fetched_t body = {.what = text,
                            .hash = wanted.blob.hash,
                            .bytes = wanted.blob.bytes,
                            .fetch = fetch_body,
                            .context = &wanted};
    if (wanted.blob.bytes == 0)
        return EXIT_OK;
    if (!self->bodies) {
        self->bodies_left++;
        return EXIT_OK;
    }
    tmq_id_format (wanted.id, text);
    const int code = body_fetch (self->app, self->bodies, &body);
    if (wanted.code != TMQ_NO_BLOB && wanted.code != TMQ_CONFLICT && !is_gone (wanted.code))
        return code;
    self->bodies_missing++;
    return EXIT_OK;
}

/* Those that do not stand in the line. */
static int export_artifacts (exporting_t *self, const record_t *record)
{
    int code = EXIT_OK;
    for (size_t i = 0; !code && record->artifacts && i < record->artifacts->count; i++) {
        const tmq_artifact_info_t *artifact = &record->artifacts->artifacts[i];
        wanted_t wanted = {self->app, &record->task->id, .artifact = artifact};
        if (record->artifact_bodies[i].there || artifact->bytes < TMQ_BLOB_BYTES_MIN ||
            !artifact->has_hash)
            continue;
        wanted.blob.bytes = artifact->bytes;
        memcpy (wanted.blob.hash, artifact->hash, sizeof wanted.blob.hash);
        code = export_body (self, wanted);
    }
    return code;
}

static int export_kept (exporting_t *self, const record_t *record)
{
    const tmq_attempt_info_t *attempt;
    attempts_place_t place = {0};
    int code = EXIT_OK;
    while (!code && (attempt = attempts_next (&record->attempts, &place)))
        code = export_body (self, (wanted_t){self->app, &record->task->id, .kept = attempt,
                                             .blob = attempt->kept_blob});
    return code;
}

/* What no line takes. */
static int export_bodies (exporting_t *self, const record_t *record)
{
    const tmq_id_t *id = &record->task->id;
    self->bodies_missing += record->bodies_missing;
    int code = export_body (self, (wanted_t){self->app, id, .blob = record->payload->payload_blob});
    if (!code)
        code = export_body (
            self, (wanted_t){self->app, id, .is_result = true, .blob = record->task->result_blob});
    if (!code)
        code = export_artifacts (self, record);
    return code ? code : export_kept (self, record);
}

/* Tasks. */

static int put_task (exporting_t *self, const record_t *record)
{
    json_writer_t writer = {&self->bytes, false};
    const int code = record->wants & RECORD_BODIES ? export_bodies (self, record) : EXIT_OK;
    if (code)
        return code;
    bytes_clear (&self->bytes);
    record_write (&writer, self->app, record);
    if (self->directory)
        return put_file (self, record->task);
    put (self);
    return EXIT_OK;
}

static int export_task (exporting_t *self, const tmq_id_t *id, bool listed)
{
    enum {
        WHOLE = RECORD_PAYLOAD | RECORD_EVENTS | RECORD_ATTEMPTS | RECORD_TURNS | RECORD_FILES |
                RECORD_ARTIFACTS
    };
    const unsigned exact = self->form == FORM_TASK ? 0 : RECORD_EXACT | RECORD_BODIES;
    record_t record;
    tmq_error_t error = {0};
    char text[37];
    int code = EXIT_OK;
    error.code = record_load (&record, self->app, id, WHOLE | exact, &error);
    if (error.code == TMQ_OK)
        code = put_task (self, &record);
    record_clear (&record);
    if (listed && is_gone (error.code)) {
        self->gone++;
        return EXIT_OK;
    }
    tmq_id_format (id, text);
    return error.code == TMQ_OK ? code : library_error (self->app, &error, text);
}

/* A row says what a list does, so that nothing more is asked for. */
static void export_row (exporting_t *self, const tmq_task_t *task)
{
    json_writer_t writer = {&self->bytes, false};
    bytes_clear (&self->bytes);
    json_write_object_begin (&writer);
    write_task_members (&writer, task, false);
    json_write_object_end (&writer);
    put (self);
}

/* Of no tasks there is a table, too. */
static void put_table_head (exporting_t *self)
{
    static const tmq_task_t none;
    self->heading = true;
    export_row (self, &none);
    self->heading = false;
}

static int export_listed (exporting_t *self, const tmq_task_list_t *page)
{
    int code = EXIT_OK;
    for (size_t i = 0; !code && i < page->count; i++) {
        if (self->form == FORM_CSV)
            export_row (self, page->tasks[i]);
        else
            code = export_task (self, &page->tasks[i]->id, true);
        if (!code)
            code = check_stream (self);
        if (self->file.path || self->directory)
            status_show_bar (self->app, self->written + self->gone, self->total,
                             "%" PRIu64 " tasks", self->written);
    }
    return code;
}

/* A page of what matches, of a search with what it says of its index. */
typedef struct matching {
    tmq_list_query_t query;
    tmq_search_t search;         /* its text NULL: a list */
    const tmq_task_list_t *page; /* of one of these: */
    tmq_task_list_t *listed;
    tmq_found_list_t *found;
} matching_t;

static void drop_page (matching_t *matching)
{
    tmq_found_list_free (matching->found);
    tmq_task_list_free (matching->listed);
    matching->found = NULL;
    matching->listed = NULL;
}

static int count_matching (exporting_t *self, const matching_t *matching)
{
    app_t *app = self->app;
    tmq_error_t error = {0};
    patience_t patience = {0};
    if (matching->search.text)
        return search_count (app, &matching->search.filter, &self->total);
    do
        error.code =
            tmq_count (&self->total, app->client, &matching->query.filter, app->timeout_ms, &error);
    while (patience_waits (&patience, &error, app->timeout_ms));
    return error.code == TMQ_OK ? EXIT_OK : library_error (app, &error, NULL);
}

/* The page at the cursor, in place of the one before. */
static int read_page (const exporting_t *self, matching_t *matching)
{
    app_t *app = self->app;
    tmq_task_list_t *page = NULL;
    tmq_found_list_t *found = NULL;
    tmq_error_t error = {0};
    patience_t patience = {0};
    do
        error.code =
            matching->search.text
                ? tmq_search (&found, app->client, &matching->search, app->timeout_ms, &error)
                : tmq_list (&page, app->client, &matching->query, app->timeout_ms, &error);
    while (patience_waits (&patience, &error, app->timeout_ms));
    drop_page (matching); /* the cursor was in it */
    matching->found = found;
    matching->listed = page;
    matching->page = found ? found->tasks : page;
    if (matching->page)
        return EXIT_OK;
    return matching->search.text ? search_failed (app, &error) : library_error (app, &error, NULL);
}

static int export_matching (exporting_t *self)
{
    task_filter_t filter;
    matching_t matching = {.page = NULL};
    uint64_t left = args_number (&self->app->args, OPT_LIMIT, UINT64_MAX);
    int code = filter_from_args (&filter, self->app, true);
    if (code)
        return code;
    tmq_search_init (&matching.search);
    matching.search.text = args_text (&self->app->args, OPT_SEARCH);
    matching.search.filter = matching.query.filter = filter.filter;
    code = count_matching (self, &matching);
    self->total = self->total < left ? self->total : left;
    for (bool more = true; !code && more && left > 0;) {
        const uint64_t most = left < TMQ_LIST_LIMIT_MAX ? left : TMQ_LIST_LIMIT_MAX;
        matching.query.limit = matching.search.limit = (uint32_t) most;
        code = read_page (self, &matching);
        if (code || !matching.page)
            break;
        code = export_listed (self, matching.page);
        left -= matching.page->count < left ? matching.page->count : left;
        more = *matching.page->next;
        matching.query.cursor = matching.search.cursor = matching.page->next;
    }
    drop_page (&matching);
    return code;
}

static int export_row_of (exporting_t *self, const tmq_id_t *id)
{
    tmq_task_t *task;
    tmq_error_t error = {0};
    char text[37];
    patience_t patience = {0};
    do
        error.code = tmq_get (&task, self->app->client, id, self->app->timeout_ms, &error);
    while (patience_waits (&patience, &error, self->app->timeout_ms));
    tmq_id_format (id, text);
    if (error.code != TMQ_OK)
        return library_error (self->app, &error, text);
    export_row (self, task);
    tmq_task_free (task);
    return EXIT_OK;
}

static int export_named (exporting_t *self)
{
    tally_t tally = {0};
    tmq_id_t *ids;
    size_t count;
    app_resolve_operands (self->app, &ids, &count, &tally);
    self->total = count;
    for (size_t i = 0; i < count; i++)
        tally_add (&tally, self->form == FORM_CSV ? export_row_of (self, &ids[i])
                                                  : export_task (self, &ids[i], false));
    free (ids);
    return tally_exit (&tally);
}

/* The command. */

static bool begins_with_id (const char *fields)
{
    static const char id[] = "task_id";
    const size_t length = strcspn (fields, ",");
    return length == sizeof id - 1 && memcmp (fields, id, length) == 0;
}

static int read_form (exporting_t *self)
{
    const app_t *app = self->app;
    const char *name = args_text (&app->args, OPT_FORMAT);
    if (!name)
        name = self->directory ? "task" : app->format == FORMAT_JSON ? "json" : "jsonl";
    self->form = form_named (name);
    if (self->form == FORMS)
        return usage_error (app, "jsonl, json, task or csv", "there is no format '%.40s'", name);
    if (self->directory && self->form != FORM_TASK && self->form != FORM_JSON)
        return usage_error (app, "--file FILE writes all tasks into one",
                            "--dir goes with --format task or json");
    if (self->bodies && self->form != FORM_JSONL && self->form != FORM_JSON)
        return usage_error (app, NULL, "--bodies goes with --format jsonl or json");
    if (self->fields && self->form == FORM_TASK)
        return usage_error (app, NULL, "--fields goes with --format jsonl, json or csv");
    if (self->directory && self->fields && !begins_with_id (self->fields))
        return usage_error (app, "--fields task_id,...",
                            "with --dir the first field is task_id: it says whose a file is");
    return EXIT_OK;
}

/* NULL: standard output. */
static const char *target_of (const app_t *app)
{
    const char *path = args_text (&app->args, OPT_FILE);
    return path && strcmp (path, "-") == 0 ? NULL : path;
}

/* What stands there is replaced only if it is an export, too: --file is a condition elsewhere. */
static int check_target (const exporting_t *self, const char *path)
{
    char head[HEAD_BYTES + 1] = "";
    struct stat found;
    if (!path || stat (path, &found) != 0 || !S_ISREG (found.st_mode) || found.st_size == 0)
        return EXIT_OK;
    const int fd = open (path, O_RDONLY | O_CLOEXEC);
    const bool read_it = fd >= 0 && read (fd, head, HEAD_BYTES) > 0;
    if (fd >= 0)
        close (fd);
    if (read_it && form_fits (self->form, self->fields, head))
        return EXIT_OK;
    return usage_error (self->app,
                        "--with-file FILE exports the tasks that touched it; --file names a file "
                        "that is new, or an earlier export",
                        "%s is there, and is no export: it stays as it is", path);
}

/* What looks secret. */

static int add_pattern (exporting_t *self, const char *item, const char *who)
{
    char error[REDACT_ERROR_SIZE];
    if (!self->redactor && !(self->redactor = redactor_new ()))
        must_grow (NULL, SIZE_MAX, 2); /* ends the program */
    if (redactor_add (self->redactor, item, error))
        return EXIT_OK;
    return usage_error (self->app, who ? "--redact none exports without it" : NULL, "%s%.100s: %s",
                        who ? who : "--redact ", item, error);
}

static int take_patterns (exporting_t *self)
{
    const args_t *args = &self->app->args;
    for (size_t i = 0; i < args_count (args, OPT_REDACT); i++) {
        const char *item = args_nth (args, OPT_REDACT, i)->text;
        const bool none = strcmp (item, "none") == 0;
        if (none && args_count (args, OPT_REDACT) > 1)
            return usage_error (self->app, NULL, "--redact none goes with no other --redact");
        const int code = none ? EXIT_OK : add_pattern (self, item, NULL);
        if (code)
            return code;
    }
    return EXIT_OK;
}

/* In a body nothing is replaced: nobody shall believe so. */
static int check_bodies (const exporting_t *self)
{
    if (!self->bodies || !self->redactor)
        return EXIT_OK;
    return usage_error (self->app, "--redact none exports all as it is",
                        "--bodies writes bodies as they are, and what looks secret is to be "
                        "replaced (--redact, or the broker's export/redact)");
}

/* Beside those of the command line. */
static int take_patterns_of_broker (exporting_t *self)
{
    tmq_whoami_t who = {.size = sizeof who};
    const char *given = args_text (&self->app->args, OPT_REDACT);
    char *rest = who.redact;
    int code = EXIT_OK;
    if (given && strcmp (given, "none") == 0)
        return EXIT_OK;
    tmq_client_whoami (&who, self->app->client);
    while (!code && *rest) {
        char *item = strsep (&rest, "\n");
        code = add_pattern (self, item, "the broker's export/redact = ");
        if (!rest)
            break;
    }
    return code;
}

/* What each file of the directory is called while it is written. Parts that a killed export has
 * left there go. */
static int name_part (exporting_t *self)
{
    char path[PATH_MAX];
    char part[PATH_MAX];
    int fd = -1;
    if (snprintf (path, sizeof path, "%s/export", self->directory) >= (int) sizeof path)
        errno = ENAMETOOLONG;
    else
        fd = disk_temporary (part, sizeof part, path);
    if (fd < 0)
        return outfile_error (self->app, self->directory, errno);
    close (fd);
    unlink (part);
    self->part = must_copy (part);
    return EXIT_OK;
}

static int check (exporting_t *self)
{
    const app_t *app = self->app;
    const args_t *args = &app->args;
    if (args->operands_count && filter_is_given (app))
        return usage_error (app, NULL, "export takes ids or conditions, not both");
    if (args->operands_count && args_has (args, OPT_LIMIT))
        return usage_error (app, NULL, "--limit goes with conditions");
    if (self->directory && args_has (args, OPT_FILE))
        return usage_error (app, NULL, "--file and --dir exclude each other");
    int code = read_form (self);
    if (!code)
        code = check_target (self, target_of (app));
    if (!code)
        code = take_patterns (self);
    if (!code && self->bodies)
        code = make_directory (app, self->bodies);
    if (code || !self->directory)
        return code;
    code = make_directory (app, self->directory);
    return code ? code : name_part (self);
}

static void tell (const exporting_t *self)
{
    const char *where = self->directory ? self->directory : self->file.path;
    if (self->redacted)
        note (self->app,
              "%" PRIu64 " redacted: what looks secret in them was replaced (--redact none exports "
              "them whole)",
              self->redacted);
    if (redactor_hidden (self->redactor))
        note (self->app,
              "%" PRIu64 " replaced as a whole ([redacted:too-much-work]): simpler patterns find "
              "what is in them",
              redactor_hidden (self->redactor));
    if (self->gone)
        note (self->app, "%" PRIu64 " removed meanwhile", self->gone);
    if (self->bodies_left)
        note (self->app,
              "%" PRIu64
              " of their bodies are too large for a line: --bodies DIR writes them, too, "
              "and an import needs them",
              self->bodies_left);
    if (self->bodies_missing)
        note (self->app,
              "%" PRIu64 " of their bodies are missing: an import takes these tasks when the files "
              "are there",
              self->bodies_missing);
    if (where)
        note (self->app, "%" PRIu64 " task%s in %s", self->written, self->written == 1 ? "" : "s",
              where);
    else if (self->written == 0)
        note (self->app, "no tasks");
}

static int export_all (exporting_t *self)
{
    app_t *app = self->app;
    const char *path = target_of (app);
    int code = self->directory ? 0 : outfile_open (&self->file, app, path, NULL);
    if (code)
        return code;
    if (self->form == FORM_CSV)
        put_table_head (self);
    status_begin (&self->status, app);
    code = app->args.operands_count ? export_named (self) : export_matching (self);
    status_end (app);
    const bool good = !code || (code == EXIT_SOME && self->written);
    if (good && self->form == FORM_JSON && !self->directory)
        fputs (self->written ? "\n],\"next\":null}\n" : "{\"items\":[],\"next\":null}\n",
               self->file.stream);
    const int closed = self->directory ? 0 : outfile_close (&self->file, app, good, true);
    code = code ? code : closed;
    if (good && !closed)
        tell (self);
    return !code && self->bodies_missing ? EXIT_SOME : code;
}

int run_export (app_t *app)
{
    const args_t *args = &app->args;
    exporting_t self = {.app = app,
                        .directory = args_text (args, OPT_DIR),
                        .bodies = args_text (args, OPT_BODIES),
                        .fields = args_text (args, OPT_FIELDS),
                        .file = {.stream = stdout},
                        .bytes = BYTES_INIT,
                        .plain = BYTES_INIT};
    int code = check (&self);
    if (!code && (!args->operands_count || app_operands_are_ids (app, &code)) &&
        !(code = app_connect (app)) && !(code = app_resolve_options (app)) &&
        !(code = take_patterns_of_broker (&self)) && !(code = check_bodies (&self)))
        code = export_all (&self);
    bytes_free (&self.bytes);
    bytes_free (&self.plain);
    redactor_free (&self.redactor);
    free (self.part);
    return code;
}
