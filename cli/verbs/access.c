/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* taskctl invite, and what of key and reload the broker decides about. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/memory.h"
#include "ids.h"
#include "key_file.h"
#include "keys.h"
#include "link/connect.h"
#include "screen/listing.h"
#include "screen/members.h"
#include "screen/output.h"
#include "units.h"
#include "verbs/counted.h"
#include "verbs/verbs.h"

enum { COUNT_MS = 5000 /* for the numbers of standbys, which no deed waits for */ };

/* What the options say that somebody may do. */

typedef struct grants {
    const char **list;
    char *texts[TMQ_GRANTS_MAX];
    size_t count;
} grants_t;

static void grants_free (grants_t *self)
{
    for (size_t i = 0; i < self->count; i++)
        free (self->texts[i]);
}

/* "worker(default/render*)"; queue NULL: of the whole namespace. */
static bool add_grant (grants_t *self, const char *ns, const char *role, const char *queue)
{
    char text[TMQ_GRANT_BYTES_MAX + 1];
    int length;
    if (strcmp (role, "operator") == 0 || ns == NULL)
        length = snprintf (text, sizeof text, "%s", role);
    else
        length = snprintf (text, sizeof text, "%s(%s%s%s)", role, ns, queue ? "/" : "",
                           queue ? queue : "");
    if (self->count == TMQ_GRANTS_MAX || (size_t) length >= sizeof text)
        return false;
    self->texts[self->count++] = must_copy (text);
    return true;
}

/* A name in which * stands for anything. */
static bool is_pattern (const char *text)
{
    char name[TMQ_NAME_LENGTH_MAX + 2];
    snprintf (name, sizeof name, "%s", text);
    for (char *at = name; *at; at++)
        *at = *at == '*' ? '-' : *at;
    return name_is_valid (name);
}

/* 0 or an exit code. */
static int check_queues (const app_t *app)
{
    const args_t *args = &app->args;
    for (size_t i = 0; i < args_count (args, OPT_QUEUE); i++)
        if (!is_pattern (args_nth (args, OPT_QUEUE, i)->text))
            return usage_error (app, NULL,
                                "--queue: '%.80s' must be a name, or a pattern as 'render*'",
                                args_nth (args, OPT_QUEUE, i)->text);
    return 0;
}

/* 0 or an exit code. */
static int read_grants (const app_t *app, grants_t *out)
{
    const int code = check_queues (app);
    if (code)
        return code;
    const args_t *args = &app->args;
    const char *ns = app->ns ? app->ns : "default";
    const size_t roles = args_count (args, OPT_ROLE), queues = args_count (args, OPT_QUEUE);
    bool good = true;
    memset (out, 0, sizeof *out);
    for (size_t i = 0; i < roles; i++) {
        const char *role = args_nth (args, OPT_ROLE, i)->text;
        for (size_t k = 0; k < (queues ? queues : 1) && good; k++)
            good = add_grant (out, ns, role, queues ? args_nth (args, OPT_QUEUE, k)->text : NULL);
    }
    for (size_t i = 0; i < args_count (args, OPT_GRANT) && good; i++)
        good = add_grant (out, NULL, args_nth (args, OPT_GRANT, i)->text, NULL);
    out->list = (const char **) (void *) out->texts;
    if (!good) {
        grants_free (out);
        return usage_error (app, NULL, "more than %d grants, or one that is too long",
                            TMQ_GRANTS_MAX);
    }
    if (out->count == 0)
        return usage_error (app, "for a worker: --role worker --queue 'render*'",
                            "what may it do? --role or --grant is needed");
    return 0;
}

/* Texts. */

/* The time of day, or the day too if it is another one; local. */
static void format_when (char *out, size_t size, uint64_t ms)
{
    struct tm then, now;
    const time_t at = (time_t) (ms / 1000), today = time (NULL);
    localtime_r (&at, &then);
    localtime_r (&today, &now);
    const bool same = then.tm_year == now.tm_year && then.tm_yday == now.tm_yday;
    if (strftime (out, size, same ? "%H:%M" : "%Y-%m-%d %H:%M", &then) == 0)
        *out = '\0';
}

static char *join_texts (const char *const *texts, size_t count)
{
    size_t length = 1;
    for (size_t i = 0; i < count; i++)
        length += strlen (texts[i]) + 1;
    char *out = must_alloc (length);
    char *end = out;
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            *end++ = ' ';
        end = stpcpy (end, texts[i]);
    }
    *end = '\0';
    return out;
}

/* A conflict here is about names and keys, not about tasks. */
int access_error (const app_t *app, const tmq_error_t *error, const char *what)
{
    tmq_error_t shown = *error;
    if (error->code == TMQ_CONFLICT && !error->hint[0])
        snprintf (shown.hint, sizeof shown.hint, "an operator sees all names: taskctl key list");
    return library_error (app, &shown, what);
}

/* Whoever loses access by what was done should hear of it. */
static void tell_made (const app_t *app, const tmq_access_t *report)
{
    if (report->made)
        note (app, "%s", report->text);
}

/* The access file is in the directory of the owner alone. Who was just put out hears nothing. */
static void tell_standbys (const app_t *app)
{
    tmq_error_t ignored;
    tmq_stats_t *stats = NULL;
    if (tmq_stats (&stats, app->client, COUNT_MS, &ignored) != TMQ_OK)
        return;
    const uint64_t count = counted_standbys (stats);
    tmq_stats_free (stats);
    if (count > 0 && count < UINT64_MAX)
        note (app,
              "%" PRIu64 " standby%s the access file, too: copy it there, unless both read one",
              count, count == 1 ? " needs" : "s need");
}

/* invite. */

/* The nearest minute; below two minutes the second. */
static int64_t whole_units (int64_t ms)
{
    return ms < 120000 ? ms / 1000 * 1000 : (ms + 30000) / 60000 * 60000;
}

/* Where the line leads: the broker only guesses how others reach it. */
static void put_place (const app_t *app, const char *text)
{
    join_t join;
    char reason[KEY_ERROR_SIZE];
    if (join_parse (&join, text, reason) && !args_has (&app->args, OPT_ADDRESS))
        note (app, "it leads to %s; if others reach the broker elsewhere: --address HOST:PORT",
              join.place);
    sodium_memzero (&join, sizeof join);
}

static void put_invitation (const app_t *app, const tmq_access_t *report, uint64_t uses)
{
    char when[32], left[UNITS_TEXT_SIZE];
    const uint64_t now_ms = wall_ms ();
    const tmq_principal_t *line = report->principals;
    if (app_wants_json (app)) {
        items_t items;
        items_begin (&items, app, true);
        json_writer_t *writer = items_open (&items);
        json_write_object_begin (writer);
        member_text (writer, "join", report->join);
        member_text (writer, "invitation", line->invitation);
        member_uint (writer, "uses", uses);
        member_time (writer, "until", line->until);
        json_write_object_end (writer);
        items_close (&items);
        items_end (&items, NULL);
        return;
    }
    /* One for many must not stand where everybody on the machine can read it. */
    print_safe (app, stdout, uses > 1 ? "echo %s | taskctl join -" : "taskctl join %s",
                report->join);
    putchar ('\n');
    format_when (when, sizeof when, line->until);
    char times[32] = "once";
    if (uses > 1)
        snprintf (times, sizeof times, "%" PRIu64 " times", uses);
    note (app, "%s, until %s (%s); take back: taskctl invite revoke %s", times, when,
          duration_format (left, whole_units ((int64_t) (line->until - now_ms))), line->invitation);
    put_place (app, report->join);
}

/* Those that were said, as the line has them; NULL: none. The caller frees it. */
static char *given_address (const app_t *app)
{
    const args_t *args = &app->args;
    const size_t count = args_count (args, OPT_ADDRESS);
    size_t length = 1;
    for (size_t i = 0; i < count; i++)
        length += strlen (args_nth (args, OPT_ADDRESS, i)->text) + 1;
    char *out = count ? must_alloc (length) : NULL;
    char *end = out;
    for (size_t i = 0; i < count; i++)
        end += sprintf (end, "%s%s", i ? "," : "", args_nth (args, OPT_ADDRESS, i)->text);
    return out;
}

static int invite (app_t *app)
{
    grants_t grants;
    tmq_access_t *report = NULL;
    tmq_error_t error = {0};
    const char *name = args_text (&app->args, OPT_INVITED);
    if (app->args.operands_count != (name ? 0 : 1))
        return usage_error (app, "taskctl help invite", "invite takes one name");
    int code = read_grants (app, &grants);
    if (code)
        return code;
    char *address = given_address (app);
    const tmq_trust_t trust = {.name = name ? name : app->args.operands[0],
                               .grants = grants.list,
                               .grants_count = grants.count,
                               .uses = (uint32_t) args_number (&app->args, OPT_USES, 1),
                               .lasts_ms = args_number (&app->args, OPT_FOR, 0),
                               .address = address};
    code = app_connect (app);
    if (!code && tmq_invite (&report, app->client, &trust, app->timeout_ms, &error) != TMQ_OK)
        code = access_error (app, &error, NULL);
    grants_free (&grants);
    free (address);
    if (code)
        return code;
    put_invitation (app, report, trust.uses);
    tell_made (app, report);
    tell_standbys (app);
    tmq_access_free (report);
    return EXIT_OK;
}

typedef int pages_t (tmq_access_t **out, tmq_client_t *client, uint32_t offset, uint32_t timeout_ms,
                     tmq_error_t *error);
typedef void put_line_t (const app_t *app, items_t *items, table_t *table,
                         const tmq_principal_t *line);

/* All pages, as a table or as JSON. none: what is said when there are no lines. */
static int put_lines (app_t *app, pages_t *read, const column_t *columns, size_t columns_count,
                      put_line_t *put, const char *none)
{
    listing_t out;
    tmq_access_t *report = NULL;
    tmq_error_t error = {0};
    uint32_t offset = 0;
    int code = app_connect (app);
    if (code)
        return code;
    listing_begin (&out, app, columns, columns_count);
    do {
        if (read (&report, app->client, offset, app->timeout_ms, &error) != TMQ_OK) {
            code = library_error (app, &error, NULL);
            break;
        }
        for (size_t i = 0; i < report->principals_count; i++)
            put (app, &out.items, out.table, &report->principals[i]);
        offset = report->next;
        tmq_access_free (report);
    } while (offset != 0);
    listing_end (&out, code ? NULL : none);
    return code;
}

static void put_open_invitation (const app_t *app, items_t *items, table_t *table,
                                 const tmq_principal_t *line)
{
    (void) app;
    char *grants = join_texts (line->grants, line->grants_count);
    char when[32] = "", used[32] = "";
    if (line->until)
        format_when (when, sizeof when, line->until);
    if (line->used_at)
        format_when (used, sizeof used, line->used_at);
    if (table) {
        table_row (table);
        table_set (table, 0, "%s", line->invitation);
        table_set (table, 1, "%s", line->name);
        table_set (table, 2, "%s", grants);
        table_set (table, 3, "%" PRIu32, line->uses);
        table_set (table, 4, "%s", when);
        if (line->used_at)
            table_set (table, 5, "%s at %s", line->used_by, used);
    } else {
        json_writer_t *writer = items_open (items);
        json_write_object_begin (writer);
        member_text (writer, "invitation", line->invitation);
        member_text (writer, "name", line->name);
        member_texts (writer, "grants", line->grants, line->grants_count);
        member_uint (writer, "uses", line->uses);
        member_time (writer, "until", line->until);
        member_text (writer, "used_by", line->used_by);
        member_time (writer, "used_at", line->used_at);
        json_write_object_end (writer);
        items_close (items);
    }
    free (grants);
}

static int invite_list (app_t *app)
{
    static const column_t columns[] = {{"ID", COLUMN_LEFT},      {"FOR", COLUMN_LEFT},
                                       {"MAY", COLUMN_TRUNCATE}, {"USES LEFT", COLUMN_RIGHT},
                                       {"UNTIL", COLUMN_LEFT},   {"USED LAST BY", COLUMN_LEFT}};
    return put_lines (app, tmq_invite_list, columns, sizeof columns / sizeof *columns,
                      put_open_invitation, "no invitations");
}

static int invite_revoke (app_t *app)
{
    tmq_access_t *report = NULL;
    tmq_error_t error = {0};
    const int code = app_connect (app);
    if (code)
        return code;
    if (tmq_invite_revoke (&report, app->client, app->args.operands[1], app->timeout_ms, &error) !=
        TMQ_OK)
        return library_error (app, &error, app->args.operands[1]);
    const bool gone = report->count > 0;
    tmq_access_free (report);
    if (!gone)
        return code_error (app, TMQ_NOT_FOUND, "taskctl invite list",
                           "there is no such invitation: %s", app->args.operands[1]);
    tell_standbys (app);
    return EXIT_OK;
}

int run_invite (app_t *app)
{
    const args_t *args = &app->args;
    if (args->operands_count == 1 && strcmp (args->operands[0], "list") == 0)
        return invite_list (app);
    if (args->operands_count == 2 && strcmp (args->operands[0], "revoke") == 0)
        return invite_revoke (app);
    return invite (app);
}

/* key trust, revoke and list. */

int key_trust (app_t *app)
{
    grants_t grants;
    tmq_access_t *report = NULL;
    tmq_error_t error = {0};
    const args_t *args = &app->args;
    int code = read_grants (app, &grants);
    if (code)
        return code;
    const tmq_trust_t trust = {.name = args->operands[1],
                               .public_key = args->operands[2],
                               .grants = grants.list,
                               .grants_count = grants.count,
                               .until = args_number (args, OPT_UNTIL, 0),
                               .inherit = args_has (args, OPT_INHERIT)};
    code = app_connect (app);
    if (!code && tmq_key_trust (&report, app->client, &trust, app->timeout_ms, &error) != TMQ_OK)
        code = access_error (app, &error, trust.name);
    grants_free (&grants);
    if (code)
        return code;
    tell_made (app, report);
    tell_standbys (app);
    tmq_access_free (report);
    return EXIT_OK;
}

int key_revoke (app_t *app)
{
    tmq_access_t *report = NULL;
    tmq_error_t error = {0};
    const char *what = app->args.operands[1];
    const bool is_key = strncmp (what, "tmqpk_", 6) == 0;
    const int code = app_connect (app);
    if (code)
        return code;
    if (tmq_key_revoke (&report, app->client, is_key ? NULL : what, is_key ? what : NULL,
                        app->timeout_ms, &error) != TMQ_OK)
        return library_error (app, &error, what);
    note (app, "%" PRIu32 " key%s of %s ended%s", report->count, report->count == 1 ? "" : "s",
          what, report->principals_count > 0 && is_key ? ", and the name with it" : "");
    tell_standbys (app);
    tmq_access_free (report);
    return EXIT_OK;
}

static void put_principal (const app_t *app, items_t *items, table_t *table,
                           const tmq_principal_t *line)
{
    (void) app;
    char *grants = join_texts (line->grants, line->grants_count);
    char *keys = join_texts (line->keys, line->keys_count);
    char *others = join_texts (line->others, line->others_count);
    char when[32] = "";
    if (line->until)
        format_when (when, sizeof when, line->until);
    if (table) {
        const bool ended = line->until && line->until <= wall_ms ();
        table_row (table);
        table_set (table, 0, "%s", line->name);
        table_set (table, 1, "%s", grants);
        table_set (table, 2, "%s%s", ended ? "ended " : "", when);
        table_set (table, 3, "%s%s%s", others, *others && *keys ? " " : "", keys);
    } else {
        json_writer_t *writer = items_open (items);
        json_write_object_begin (writer);
        member_text (writer, "name", line->name);
        member_texts (writer, "grants", line->grants, line->grants_count);
        member_texts (writer, "keys", line->keys, line->keys_count);
        member_texts (writer, "others", line->others, line->others_count);
        member_time (writer, "until", line->until);
        member_uint (writer, "line", line->line);
        json_write_object_end (writer);
        items_close (items);
    }
    free (grants);
    free (keys);
    free (others);
}

int key_list (app_t *app)
{
    static const column_t columns[] = {{"NAME", COLUMN_LEFT},
                                       {"MAY", COLUMN_LEFT},
                                       {"UNTIL", COLUMN_LEFT},
                                       {"WHO", COLUMN_TRUNCATE}};
    return put_lines (app, tmq_key_list, columns, sizeof columns / sizeof *columns, put_principal,
                      "no principals");
}

/* key rotate: a second key, proved, then the first one ends. */

/* Connects as we are connected, with another key. 0 or an exit code. */
static int connect_with (const app_t *app, tmq_client_t **out, const char *endpoint,
                         const char *secret)
{
    tmq_client_options_t options;
    tmq_error_t error = {0};
    tmq_client_options_init (&options);
    options.endpoints = &endpoint;
    options.endpoints_count = 1;
    options.ns = app->ns;
    options.name = "taskctl";
    options.key = secret;
    error.code = tmq_client_new (out, &options, &error);
    if (error.code == TMQ_OK)
        error.code = tmq_client_connect (*out, app->timeout_ms, &error);
    if (error.code == TMQ_OK)
        return 0;
    tmq_client_free (out);
    return library_error (app, &error, NULL);
}

/* 0 or an exit code. */
static int enroll (const app_t *app, tmq_client_t *client, const char *key, bool alone)
{
    tmq_access_t *report = NULL;
    tmq_error_t error = {0};
    if (tmq_enroll (&report, client, key, NULL, alone, app->timeout_ms, &error) != TMQ_OK)
        return library_error (app, &error, NULL);
    tmq_access_free (report);
    return 0;
}

/* The key of a rotation that was broken off, or a new one; kept until it has replaced the old one,
 * so that no key is lost whenever this ends. */
static int next_key (const app_t *app, const char *path, key_secret_t *out)
{
    char reason[KEY_FILE_ERROR_SIZE];
    key_public_t public_key;
    int failed = key_file_read (out, path, reason);
    if (failed == ENOENT) {
        key_make (&public_key, out);
        failed = key_file_write (path, out, false, reason);
    }
    return failed == 0 ? 0 : code_error (app, TMQ_SYSTEM, NULL, "%s", reason);
}

static int rotate (const app_t *app, const tmq_whoami_t *who, const char *path,
                   const key_secret_t *secret)
{
    char public_text[KEY_TEXT_SIZE], secret_text[KEY_TEXT_SIZE];
    key_public_t public_key;
    tmq_client_t *client = NULL;
    key_public_of (&public_key, secret);
    key_text_public (public_text, &public_key);
    key_text_secret (secret_text, secret);
    int code = enroll (app, app->client, public_text, false);
    if (!code)
        code = connect_with (app, &client, who->endpoint, secret_text);
    sodium_memzero (secret_text, sizeof secret_text);
    if (!code && rename (path, who->key_file) != 0)
        code = code_error (app, TMQ_SYSTEM, NULL, "%s: %s", who->key_file, strerror (errno));
    if (!code)
        code = enroll (app, client, public_text, true);
    tmq_client_free (&client);
    if (!code)
        note (app, "%s has a new key, and the old one has ended: %s", who->key_file, public_text);
    return code;
}

int key_rotate (app_t *app)
{
    tmq_whoami_t who = {.size = sizeof who};
    char path[PATH_MAX];
    key_secret_t secret;
    int code = app_connect (app);
    if (code)
        return code;
    tmq_client_whoami (&who, app->client);
    if (!who.key_file[0])
        return code_error (app, TMQ_NOT_FOUND, "taskctl key new",
                           "this connection has no key from a file");
    snprintf (path, sizeof path, "%.*s.next", PATH_MAX - 8, who.key_file);
    code = next_key (app, path, &secret);
    if (!code)
        code = rotate (app, &who, path, &secret);
    sodium_memzero (&secret, sizeof secret);
    return code;
}

/* reload. */

int run_reload (app_t *app)
{
    tmq_access_t *report = NULL;
    tmq_error_t error = {0};
    const int code = app_connect (app);
    if (code)
        return code;
    if (tmq_reload (&report, app->client, app->timeout_ms, &error) != TMQ_OK)
        return library_error (app, &error, NULL);
    if (report->count == 0)
        note (app, "configuration read again; there is no access file");
    else
        note (app, "configuration read again; the access file %s: %" PRIu32 " names",
              report->changed ? "has changed" : "is as before", report->count);
    tmq_access_free (report);
    return EXIT_OK;
}
