/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* taskctl audit: the record of deeds, over its files or through the broker. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/exit.h"
#include "base/memory.h"
#include "chain.h"
#include "link/connect.h"
#include "packed.h"
#include "screen/items.h"
#include "screen/output.h"
#include "screen/show.h"
#include "screen/table.h"
#include "trust.h"
#include "verbs/verbs.h"

enum { FOLLOW_MS = 1000, PATH_SIZE = 4096, TAIL_LINES = 10 };

/* verify. */

/* The files in their order, and where each begins among all lines. */
typedef struct verify {
    const app_t *app;
    char **files;
    size_t count;
    uint64_t *first_place;
    bool torn; /* the last line of the last file is half written */
    chain_check_t check;
} verify_t;

static void add_file (verify_t *self, const char *path)
{
    self->files = must_grow (self->files, self->count + 1, sizeof *self->files);
    self->files[self->count++] = must_copy (path);
}

static int compare_numbers (const void *a, const void *b)
{
    const unsigned left = *(const unsigned *) a;
    const unsigned right = *(const unsigned *) b;
    return left < right ? -1 : left > right;
}

/* The numbers of the turned files, plain or packed; some stand there twice. */
static size_t scan_numbers (unsigned **numbers, size_t count, const char *directory)
{
    DIR *entries = opendir (directory);
    for (const struct dirent *entry; entries != NULL && (entry = readdir (entries)) != NULL;) {
        unsigned number;
        char rest[16] = "";
        if (sscanf (entry->d_name, "audit-%9u%15s", &number, rest) != 2 ||
            (strcmp (rest, ".jsonl") != 0 && strcmp (rest, ".jsonl" PACKED_ENDING) != 0))
            continue;
        *numbers = must_grow (*numbers, count + 1, sizeof **numbers);
        (*numbers)[count++] = number;
    }
    if (entries != NULL)
        closedir (entries);
    return count;
}

static bool add_present (verify_t *self, const char *path)
{
    const bool present = access (path, F_OK) == 0;
    if (present)
        add_file (self, path);
    return present;
}

/* While a file is there in both forms, they are the same. Two looks: to one of them a file that is
 * packed meanwhile may show neither name. */
static int add_directory (verify_t *self, const char *directory)
{
    char path[PATH_SIZE + 64];
    unsigned *numbers = NULL;
    const size_t before = self->count;
    size_t count = scan_numbers (&numbers, 0, directory);
    count = scan_numbers (&numbers, count, directory);
    if (count > 0)
        qsort (numbers, count, sizeof *numbers, compare_numbers);
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && numbers[i] == numbers[i - 1])
            continue;
        snprintf (path, sizeof path, "%s/audit-%04u.jsonl", directory, numbers[i]);
        if (add_present (self, path))
            continue;
        snprintf (path, sizeof path, "%s/audit-%04u.jsonl" PACKED_ENDING, directory, numbers[i]);
        add_present (self, path);
    }
    free (numbers);
    snprintf (path, sizeof path, "%s/audit.jsonl", directory);
    add_present (self, path);
    if (self->count > before)
        return EXIT_OK;
    return code_error (self->app, TMQ_NOT_FOUND, NULL, "%s holds no audit.jsonl", directory);
}

/* The nearest .taskmq upward, as the library looks for one. */
static int add_nearest (verify_t *self)
{
    char path[PATH_SIZE];
    char *working = realpath (".", NULL);
    snprintf (path, sizeof path, "%s", working != NULL ? working : "");
    free (working);
    size_t length = strlen (path);
    while (length > 0) {
        struct stat status;
        snprintf (path + length, sizeof path - length, "/.taskmq");
        if (stat (path, &status) == 0 && S_ISDIR (status.st_mode) &&
            trust_directory (&status, false) == TRUST_GOOD)
            return add_directory (self, path);
        path[length] = '\0';
        const char *slash = strrchr (path, '/');
        length = slash != NULL ? (size_t) (slash - path) : 0;
        path[length] = '\0';
    }
    return usage_error (self->app, "taskctl audit verify DIR/audit*.jsonl",
                        "there is no .taskmq upward from here: name the files");
}

static int cannot_read (const verify_t *self, size_t index)
{
    const int reason = errno;
    /* What should be whole and is not speaks against the record, not against the command. */
    if (reason == EBADMSG || reason == EFBIG)
        return code_error (self->app, TMQ_SYSTEM, NULL, "%s: behind line %" PRIu64 ": %s",
                           self->files[index], self->check.place - self->first_place[index],
                           packed_problem (reason));
    return usage_error (self->app, NULL, "cannot read %s: %s", self->files[index],
                        packed_problem (reason));
}

static int read_lines (verify_t *self, size_t index)
{
    packed_t *file = packed_open (self->files[index], false);
    const char *line;
    size_t length;
    bool whole;
    int got;
    self->first_place[index] = self->check.place;
    if (file == NULL)
        return cannot_read (self, index);
    while ((got = packed_line (file, &line, &length, &whole)) > 0) {
        self->torn = !whole;
        if (whole || index + 1 < self->count)
            chain_check_line (&self->check, line, length);
    }
    const int code = got < 0 ? cannot_read (self, index) : EXIT_OK;
    packed_close (&file);
    return code;
}

/* "FILE:LINE" of a place. */
static void place_text (const verify_t *self, uint64_t place, char *out, size_t size)
{
    size_t index = 0;
    while (index + 1 < self->count && self->first_place[index + 1] < place)
        index++;
    snprintf (out, size, "%s:%" PRIu64, self->files[index], place - self->first_place[index]);
}

static void fault_text (const verify_t *self, char *out, size_t size)
{
    const chain_check_t *check = &self->check;
    char place[PATH_SIZE + 64];
    char to[PATH_SIZE + 64];
    place_text (self, check->fault_place, place, sizeof place);
    place_text (self, check->moved_to, to, sizeof to);
    switch (check->fault) {
    case CHAIN_GOOD: out[0] = '\0'; break;
    case CHAIN_CHANGED:
        snprintf (out, size, "%s: line %" PRIu64 " was changed", place, check->fault_n);
        break;
    case CHAIN_MISSING:
        snprintf (out, size, "%s: line %" PRIu64 " is missing here", place, check->fault_n);
        break;
    case CHAIN_MOVED:
        snprintf (out, size, "%s: line %" PRIu64 " is not here, but at %s", place, check->fault_n,
                  to);
        break;
    case CHAIN_REPEATED:
        snprintf (out, size, "%s: line %" PRIu64 " stands here again", place, check->fault_n);
        break;
    case CHAIN_HEADLESS:
        snprintf (out, size,
                  "no line has this head: the record ends before it, or was written anew");
        break;
    }
}

static void show_verified (const verify_t *self, const char *fault)
{
    static const char *const names[] = {NULL, "changed", "missing", "moved", "repeated", "head"};
    const chain_check_t *check = &self->check;
    char hash[CHAIN_HASH_TEXT_SIZE];
    items_t items;
    chain_hash_format (hash, check->head.hash);
    if (!app_wants_json (self->app)) {
        if (check->fault == CHAIN_GOOD)
            printf ("lines %" PRIu64 " to %" PRIu64 " are whole\nhead %" PRIu64 " %s\n",
                    check->first_n, check->head.n, check->head.n, hash);
        else
            printf ("%s\n", fault);
        return;
    }
    items_begin (&items, self->app, true);
    json_writer_t *writer = items_open (&items);
    json_write_object_begin (writer);
    json_write_key (writer, "first");
    json_write_uint (writer, check->first_n);
    json_write_key (writer, "n");
    json_write_uint (writer, check->head.n);
    json_write_key (writer, "hash");
    json_write_text (writer, hash);
    json_write_key (writer, "fault");
    json_write_text (writer, names[check->fault]);
    json_write_key (writer, "fault_n");
    json_write_uint (writer, check->fault_n);
    json_write_key (writer, "message");
    json_write_text (writer, fault);
    json_write_object_end (writer);
    items_close (&items);
    items_end (&items, NULL);
}

static int find_files (verify_t *self)
{
    const args_t *args = &self->app->args;
    if (args->operands_count == 1)
        return add_nearest (self);
    int code = EXIT_OK;
    for (size_t i = 1; code == EXIT_OK && i < args->operands_count; i++) {
        struct stat status;
        if (stat (args->operands[i], &status) == 0 && S_ISDIR (status.st_mode))
            code = add_directory (self, args->operands[i]);
        else
            add_file (self, args->operands[i]);
    }
    return code;
}

static int verify_files (verify_t *self)
{
    char fault[2 * PATH_SIZE + 256];
    int code = EXIT_OK;
    self->first_place = must_alloc (self->count * sizeof *self->first_place);
    for (size_t i = 0; code == EXIT_OK && i < self->count; i++)
        code = read_lines (self, i);
    if (code != EXIT_OK)
        return code;
    chain_check_end (&self->check);
    fault_text (self, fault, sizeof fault);
    show_verified (self, fault);
    if (self->torn)
        note (self->app, "the last line is half written: the broker is writing it, or was killed "
                         "while it did");
    if (self->check.known_n)
        note (self->app, "the head that you gave is behind line %" PRIu64, self->check.known_n);
    return self->check.fault == CHAIN_GOOD ? EXIT_OK : EXIT_OTHER;
}

static int run_verify (app_t *app)
{
    verify_t self = {.app = app};
    uint8_t known[CHAIN_HASH_BYTES];
    const char *head = args_text (&app->args, OPT_HEAD);
    if (head != NULL && !chain_hash_parse (known, head, strlen (head)))
        return usage_error (app, "AUDIT-HEAD in the broker's log, or taskctl audit head",
                            "--head must be 64 hexadecimal digits");
    self.check.known = head != NULL ? known : NULL;
    int code = find_files (&self);
    if (code == EXIT_OK)
        code = verify_files (&self);
    for (size_t i = 0; i < self.count; i++)
        free (self.files[i]);
    free (self.files);
    free (self.first_place);
    return code;
}

/* head. */

static int run_head (app_t *app)
{
    tmq_error_t error = {0};
    tmq_part_t *part;
    char hash[CHAIN_HASH_TEXT_SIZE];
    items_t items;
    const int code = app_connect (app);
    if (code)
        return code;
    error.code = tmq_audit_head (&part, app->client, app->timeout_ms, &error);
    if (error.code != TMQ_OK)
        return library_error (app, &error, NULL);
    chain_hash_format (hash, part->hash);
    if (!app_wants_json (app)) {
        printf ("%" PRIu64 " %s\n", part->n, hash);
    } else {
        items_begin (&items, app, true);
        json_writer_t *writer = items_open (&items);
        json_write_object_begin (writer);
        json_write_key (writer, "n");
        json_write_uint (writer, part->n);
        json_write_key (writer, "hash");
        json_write_text (writer, hash);
        json_write_object_end (writer);
        items_close (&items);
        items_end (&items, NULL);
    }
    tmq_part_free (part);
    return EXIT_OK;
}

/* tail. */

enum { COLUMNS = 4 };
static const int widths[COLUMNS] = {24, 16, 10, 10};

static const char *member (const json_t *object, const char *key)
{
    const char *text = json_string_value (json_object_get (object, key));
    return text != NULL ? text : "-";
}

/* A line for people: when, what, who, from where, to what, how it ended, and more. */
static void show_line (const app_t *app, const char *line, size_t length)
{
    json_t *object = json_loadb (line, length, 0, NULL);
    static const char *const keys[COLUMNS] = {"at", "kind", "actor", "from"};
    size_t column = 0;
    for (size_t i = 0; i < COLUMNS; i++) {
        char *text = safe_text (app, member (object, keys[i]));
        column += (size_t) printf ("%-*s ", widths[i], text);
        free (text);
    }
    const char *detail = member (object, "detail");
    char rest[2048];
    snprintf (rest, sizeof rest, "%s %s%s%s", member (object, "object"), member (object, "outcome"),
              strcmp (detail, "-") ? ": " : "", strcmp (detail, "-") ? detail : "");
    print_wrapped_text (app, rest, column, (size_t) widths[0] + 1);
    putchar ('\n');
    json_decref (object);
}

static void show_heads (const app_t *app)
{
    static const char *const heads[COLUMNS] = {"AT", "KIND", "ACTOR", "FROM"};
    printf ("%s", paint_dim (app));
    for (size_t i = 0; i < COLUMNS; i++)
        printf ("%-*s ", widths[i], heads[i]);
    printf ("OBJECT OUTCOME%s\n", paint_end (app));
}

/* headed: the heads stand already. */
static void show_page (const app_t *app, const tmq_part_t *page, bool *headed)
{
    const char *end = page->bytes + page->length;
    if (page->length > 0 && !*headed && !app_wants_json (app)) {
        show_heads (app);
        *headed = true;
    }
    for (const char *line = page->bytes, *newline; line < end; line = newline + 1) {
        newline = memchr (line, '\n', (size_t) (end - line));
        if (newline == NULL)
            break;
        if (app_wants_json (app))
            fwrite (line, 1, (size_t) (newline - line) + 1, stdout);
        else
            show_line (app, line, (size_t) (newline - line));
    }
    fflush (stdout);
}

static int fill_query (const app_t *app, tmq_audit_query_t *out)
{
    uint64_t since = 0;
    const char *text = args_text (&app->args, OPT_SINCE);
    tmq_audit_query_init (out);
    if (text != NULL && !value_time (&since, text))
        return usage_error (app, NULL, "--since must be a time, a day or a duration before now: %s",
                            text);
    out->kind = args_text (&app->args, OPT_KIND);
    out->actor = args_text (&app->args, OPT_ACTOR);
    out->since = (int64_t) since;
    out->limit = (uint32_t) args_number (&app->args, OPT_LIMIT, TAIL_LINES);
    return EXIT_OK;
}

static int run_tail (app_t *app)
{
    tmq_error_t error = {0};
    tmq_part_t *page;
    tmq_audit_query_t query;
    bool headed = false;
    const bool follow = args_has (&app->args, OPT_FOLLOW);
    if (app->format == FORMAT_JSON)
        return usage_error (app, "-o jsonl", "audit tail gives lines, not one document");
    int code = fill_query (app, &query);
    if (code == EXIT_OK)
        code = app_connect (app);
    if (code)
        return code;
    const bool to_the_end = follow || query.since != 0;
    while (true) {
        error.code = tmq_audit (&page, app->client, &query, app->timeout_ms, &error);
        if (error.code != TMQ_OK)
            return library_error (app, &error, NULL);
        show_page (app, page, &headed);
        const bool more = page->more;
        query.file = page->file;
        query.offset = page->offset;
        query.since = 0;
        query.limit = TMQ_AUDIT_LINES_MAX;
        tmq_part_free (page);
        if (!(more && to_the_end) && !follow)
            break;
        if (!more)
            poll (NULL, 0, FOLLOW_MS);
    }
    if (!headed && !app_wants_json (app))
        note (app, "no such lines");
    return EXIT_OK;
}

const verb_t audit_verbs[] = {{"verify", "[FILE | DIR]...", 0, -1, run_verify},
                              {"head", "", 0, 0, run_head},
                              {"tail", "", 0, 0, run_tail},
                              {.name = NULL}};
