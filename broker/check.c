/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "check.h"

#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "access_file.h"
#include "archived.h"
#include "check_blobs.h"
#include "daemon.h"
#include "data.h"
#include "database.h"
#include "export/event_check.h"
#include "export/event_witness.h"
#include "ids.h"
#include "net/address.h"
#include "server_key.h"
#include "store/archive/archive_history.h"
#include "store/audit.h"
#include "store/postgresql/database.h"
#include "units.h"

/* The data. */

enum {
    FINDINGS_SHOWN_MAX = 100,
    SAID_SIZE = 8192 /* of a line; longer ones are cut */
};

typedef struct reading {
    check_blobs_t *blobs;
    uint64_t shown;
    event_check_t events;
    event_found_t found; /* of the last event that events.jsonl has */
} reading_t;

static void show_finding (void *context, const char *text)
{
    reading_t *reading = context;
    if (reading->shown++ < FINDINGS_SHOWN_MAX)
        printf ("%s\n", text);
}

static void note_blob (void *context, const row_t *row)
{
    const reading_t *reading = context;
    check_blobs_note (reading->blobs, row);
}

static void compare_events (void *context, const event_block_t *block)
{
    reading_t *reading = context;
    reading->found = event_witness_compare (&reading->events.place, block);
}

/* events.jsonl, the outside witness: its chain is whole, and the database has what it has. True:
 * acknowledged work is lost. */
static bool judge_events (reading_t *reading, store_audit_t *report)
{
    char why[EVENT_WITNESS_TEXT_SIZE];
    char text[EVENT_WITNESS_TEXT_SIZE + 64];
    const event_check_t *events = &reading->events;
    if (events->fault[0] != '\0') {
        report->findings++;
        show_finding (reading, events->fault);
        return false;
    }
    if (event_witness_judge (&events->place, reading->found, report->generation, report->last_pos,
                             &events->turned, why) != EVENTS_AHEAD)
        return false;
    snprintf (text, sizeof (text), "committed work was lost: %s", why);
    show_finding (reading, text);
    return true;
}

static void note_task (void *context, const record_t *record)
{
    const reading_t *reading = context;
    check_blobs_note_task (reading->blobs, record);
}

static void note_removal (void *context, const removal_t *removal)
{
    const reading_t *reading = context;
    check_blobs_note_removal (reading->blobs, removal);
}

static void pass_over (void *context, const char *text)
{
    (void) context;
    (void) text;
}

/* A second look: what is damaged was not known at the first one. What cannot be read was told
 * there, and a task that is not found is not named. */
static void find_tasks (reading_t *reading, const char *directory)
{
    store_error_t error;
    store_audit_t again = {.found = pass_over,
                           .task = note_task,
                           .removal = note_removal,
                           .tasks_only = true,
                           .context = reading};
    store_audit (&again, directory, &error);
}

/* Behind the tables, which say what there has to be. */
static void read_blobs (reading_t *reading, const char *directory, blobs_found_t *out)
{
    char path[DATA_PATH_SIZE + 8];
    snprintf (path, sizeof (path), "%s/blobs", directory);
    *out = (blobs_found_t){.found = show_finding, .context = reading};
    if (check_blobs_read (reading->blobs, path, out))
        find_tasks (reading, directory);
    check_blobs_tell (reading->blobs, out);
}

static void say_left (const blobs_found_t *blobs)
{
    char size[UNITS_TEXT_SIZE];
    if (blobs->left > 0)
        printf ("%" PRIu64
                " %s no task names (%s): a broker removes what nobody named for an hour\n",
                blobs->left, blobs->left == 1 ? "blob" : "blobs",
                size_format (size, blobs->left_bytes));
}

static exits_t say_read (const store_audit_t *report, const blobs_found_t *blobs,
                         const event_check_t *events, bool lost)
{
    uint64_t findings = report->findings + blobs->findings + lost;
    if (findings > FINDINGS_SHOWN_MAX)
        printf ("... and %" PRIu64 " more\n", findings - FINDINGS_SHOWN_MAX);
    say_left (blobs);
    if (report->upgraded != 0)
        printf ("schema %d: the next start upgrades it to %d; its tasks are read after that\n",
                report->schema, report->upgraded);
    else if (report->schema != 0)
        printf ("schema %d\n", report->schema);
    printf ("read %" PRIu64 " tasks, %" PRIu64 " blocks of events, %" PRIu64
            " lines of events.jsonl, %" PRIu64 " blobs and %" PRIu64 " commits that wait: ",
            report->tasks, report->blocks, events->lines, blobs->read, report->batches);
    if (findings == 0)
        printf ("no damage\n");
    else
        printf ("%" PRIu64 " finding%s\n", findings, findings == 1 ? "" : "s");
    if (lost && findings == 1)
        return EXITS_ROLLBACK;
    return findings == 0 ? EXITS_OK : EXITS_DAMAGED;
}

static exits_t read_directory (const char *directory)
{
    reading_t reading = {.blobs = check_blobs_new ()};
    blobs_found_t blobs;
    store_error_t error = {STORE_OK, ""};
    event_check_read (&reading.events, directory);
    store_audit_t report = {.found = show_finding,
                            .row = note_blob,
                            .row_kind = ROW_KIND_BLOB,
                            .block = compare_events,
                            .pos = reading.events.place.pos,
                            .context = &reading};
    store_code_t store_code = store_audit (&report, directory, &error);
    exits_t code = exits_of_store (error.code);
    if (store_code == STORE_OK) {
        read_blobs (&reading, directory, &blobs);
        bool lost = judge_events (&reading, &report);
        code = say_read (&report, &blobs, &reading.events, lost);
    } else {
        exits_fail (code, error.text);
    }
    check_blobs_free (&reading.blobs);
    event_check_free (&reading.events);
    return code;
}

static void print_line (void *context, const char *text)
{
    (void) context;
    puts (text);
}

static exits_t read_archive (const char *directory)
{
    char size[UNITS_TEXT_SIZE];
    store_error_t error = {STORE_OK, ""};
    archive_judge_t judge = {.say = print_line};
    if (archive_judge (&judge, directory, &error) != STORE_OK)
        return exits_fail (exits_of_store (error.code), error.text);
    printf ("read %" PRIu64 " segments of the archive with %" PRIu64 " batches (%s): %" PRIu64
            " finding%s\n",
            judge.segments, judge.batches, size_format (size, judge.bytes), judge.findings,
            judge.findings == 1 ? "" : "s");
    return judge.findings == 0 ? EXITS_OK : EXITS_DAMAGED;
}

/* Nothing in it is a broker's: a wrong name, and no damage. */
static bool is_foreign (const data_t *data)
{
    static const char *const ours[] = {"taskmq.db", "journal.log", "journal.db", "events.jsonl",
                                       "taskmq.lock"};
    char path[DATA_PATH_SIZE];
    for (size_t i = 0; i < sizeof (ours) / sizeof (ours[0]); i++)
        if (!data_path (data, ours[i], path, sizeof (path)) || access (path, F_OK) == 0)
            return false;
    return true;
}

exits_t check_data (const config_t *config)
{
    char error[DATA_ERROR_SIZE];
    char database_error[DATABASE_ERROR_SIZE];
    data_t data;
    const char *directory = config_text (config, CONFIG_DATA);
    exits_t code = database_refuse (config, "--check",
                                    "the database is judged by pg_amcheck of PostgreSQL, and each "
                                    "row by its checksum when it is read",
                                    database_error);
    if (code != EXITS_OK)
        return exits_fail (code, database_error);
    code = directory == NULL ? EXITS_OK : data_open_to_read (&data, directory, error);
    if (code != EXITS_OK)
        return exits_fail (code, error);
    if (directory != NULL && is_foreign (&data)) {
        snprintf (error, sizeof (error), "%s is no data directory: it has no taskmq.db",
                  data.directory);
        data_close (&data);
        return exits_fail (EXITS_DATA, error);
    }
    if (directory == NULL)
        puts ("the configuration is good");
    const char *archive = config_text (config, CONFIG_ARCHIVE);
    exits_t archived = archive != NULL ? read_archive (archive) : EXITS_OK;
    if (directory == NULL) {
        puts ("no data directory was named: no data was read (--data DIR)");
        return archived;
    }
    code = read_directory (data.directory);
    data_close (&data);
    if (code == EXITS_OK)
        puts ("the configuration is good");
    return code != EXITS_OK ? code : archived;
}

/* The configuration. */

/* Parts of it may be of a server, or of a file: nothing acts on a terminal. */
static void put_text (const char *text)
{
    for (size_t length; *text != '\0'; text += length) {
        uint32_t code = 0;
        length = utf8_character ((const uint8_t *) text, strlen (text));
        if (length > 0)
            code = utf8_code ((const uint8_t *) text, length);
        if (code < 0x20 || (code >= 0x7f && code < 0xa0)) { /* also what is no character */
            putchar ('?');
            length = length == 0 ? 1 : length;
        } else {
            fwrite (text, 1, length, stdout);
        }
    }
}

__attribute__ ((format (printf, 3, 4))) static void say (const char *verdict, const char *what,
                                                         const char *format, ...)
{
    char text[SAID_SIZE];
    va_list arguments;
    va_start (arguments, format);
    vsnprintf (text, sizeof (text), format, arguments);
    va_end (arguments);
    printf ("%-8s %-13s ", verdict, what);
    put_text (text);
    putchar ('\n');
}

/* Each tcp address is taken for a moment. One in use may be in use by the broker itself, which may
 * run beside this. */
static exits_t try_addresses (const config_t *config)
{
    static const config_key_t keys[] = {CONFIG_LISTEN, CONFIG_INSECURE_LISTEN, CONFIG_FEED};
    exits_t first = EXITS_OK;
    for (size_t k = 0; k < sizeof (keys) / sizeof (keys[0]); k++) {
        const config_value_t *value = &config->values[keys[k]];
        for (size_t i = 0; i < value->items_count; i++) {
            address_t address;
            config_address (&address, &value->items[i], keys[k]);
            int code = address.kind == ADDRESS_TCP ? address_try (&address) : 0;
            if (code == 0)
                continue;
            bool in_use = code == EADDRINUSE;
            say (in_use ? "warning" : "wrong", "addresses", "%s: %s", address.uri,
                 in_use ? "in use now, by the broker that runs or by another program"
                        : strerror (code));
            first = in_use ? first : EXITS_ADDRESS;
        }
    }
    return first;
}

static exits_t judge_addresses (const config_t *config)
{
    char error[CONFIG_ERROR_SIZE];
    if (!config_check_addresses (config, error)) {
        say ("wrong", "addresses", "%s", error);
        return EXITS_ADDRESS;
    }
    exits_t code = try_addresses (config);
    if (code != EXITS_OK)
        return code;
    say ("ok", "addresses", "%zu beside the directory's own socket, %zu feeds",
         config->values[CONFIG_LISTEN].items_count +
             config->values[CONFIG_INSECURE_LISTEN].items_count,
         config->values[CONFIG_FEED].items_count);
    return EXITS_OK;
}

static void judge_space (const config_t *config, const char *directory)
{
    struct statvfs disk;
    char space[UNITS_TEXT_SIZE];
    char least[UNITS_TEXT_SIZE];
    if (statvfs (directory, &disk) != 0)
        return;
    uint64_t bytes = (uint64_t) disk.f_bavail * disk.f_frsize;
    uint64_t limit = config->numbers[CONFIG_FREE_SPACE_MIN];
    if (bytes < limit)
        say ("warning", "space", "%s free, limits/free_space_min is %s: submissions are refused",
             size_format (space, bytes), size_format (least, limit));
    else
        say ("ok", "space", "%s free", size_format (space, bytes));
}

static exits_t judge_key (const data_t *data)
{
    char error[SERVER_KEY_ERROR_SIZE];
    char text[KEY_TEXT_SIZE];
    key_secret_t secret;
    key_public_t public_key;
    bool there;
    exits_t code = server_key_read (&secret, &there, data, error);
    if (code != EXITS_OK) {
        say ("wrong", "server key", "%s", error);
    } else if (there) {
        key_public_of (&public_key, &secret);
        key_text_public (text, &public_key);
        say ("ok", "server key", "%s", text);
    }
    sodium_memzero (&secret, sizeof (secret));
    return code;
}

/* Lines that have ended; they let nobody in, and somebody may wonder. */
static size_t count_ended (const policy_t *policy)
{
    size_t ended = 0;
    int64_t now_ms = (int64_t) time (NULL) * 1000;
    for (size_t i = 0; i < policy_count (policy); i++) {
        const principal_t *principal = policy_at (policy, i);
        ended += principal->until_ms != 0 && principal->until_ms <= now_ms;
    }
    return ended;
}

static exits_t judge_access (const config_t *config, const data_t *data)
{
    char error[ACCESS_FILE_ERROR_SIZE];
    char path[DATA_PATH_SIZE];
    const char *named = config_text (config, CONFIG_ACCESS);
    data_path (data, "access", path, sizeof (path));
    access_file_t *file = access_file_new (named != NULL ? named : path, error);
    if (file == NULL) {
        say ("wrong", "access", "%s", error);
        return EXITS_KEYS;
    }
    const policy_t *policy = access_file_policy (file);
    size_t ended = policy != NULL ? count_ended (policy) : 0;
    if (policy == NULL)
        say (named != NULL ? "warning" : "ok", "access",
             "no access file%s%s: who reaches the broker on this machine may do all",
             named != NULL ? " " : "", named != NULL ? named : "");
    else
        say (ended > 0 ? "warning" : "ok", "access", "%zu lines, of which %zu have ended",
             policy_count (policy), ended);
    access_file_free (&file);
    return EXITS_OK;
}

static exits_t judge_directory (const config_t *config)
{
    char error[DATA_ERROR_SIZE];
    data_t data;
    char where[DATA_PATH_SIZE];
    exits_t code = data_look (&data, where, config_text (config, CONFIG_DATA), error);
    if (code != EXITS_OK) {
        say ("wrong", "directory", "%s", error);
        return code;
    }
    say ("ok", "directory", "%s%s", data.directory, data.made ? " (a start will make it)" : "");
    judge_space (config, where);
    if (!data.made)
        code = judge_key (&data);
    exits_t access = judge_access (config, &data);
    return code == EXITS_OK ? access : code;
}

static exits_t judge_archive (const config_t *config)
{
    char error[ARCHIVED_ERROR_SIZE];
    const char *named = config_text (config, CONFIG_ARCHIVE);
    exits_t code = archived_judge (config, config_text (config, CONFIG_DATA), error);
    if (code != EXITS_OK)
        say ("wrong", "archive", "%s", error);
    else if (named != NULL)
        say ("ok", "archive", "%s", named);
    return code;
}

/* Connects as a start would. One that is out of reach now may come back: a start waits for it. */
static exits_t judge_database (const config_t *config, bool *unreached)
{
    char error[DATABASE_ERROR_SIZE];
    char looked[DATA_ERROR_SIZE];
    char where[DATA_PATH_SIZE];
    char found[DATABASE_FOUND_SIZE];
    data_t data;
    store_error_t met = {STORE_OK, ""};
    database_options_t options;
    exits_t code = database_judge (config, config_text (config, CONFIG_DATA), error);
    if (code != EXITS_OK) {
        say ("wrong", "database", "%s", error);
        return code;
    }
    if (!database_fill (&options, config, NULL))
        return EXITS_OK;
    bool known = data_look (&data, where, config_text (config, CONFIG_DATA), looked) == EXITS_OK;
    store_code_t answer = database_probe (&options, known ? data.directory : NULL, found, &met);
    *unreached = answer == STORE_ERROR_AWAY;
    if (answer == STORE_OK)
        say ("ok", "database", "%s", found);
    else
        say (answer == STORE_ERROR_AWAY ? "warning" : "wrong", "database", "%s", met.text);
    return answer == STORE_OK || answer == STORE_ERROR_AWAY ? EXITS_OK : exits_of_store (answer);
}

/* The broker raises its own limit to the hard one. Asked for the service by another user, it may be
 * another one there. */
static exits_t judge_files (const config_t *config)
{
    struct rlimit files;
    uint64_t links = config->numbers[CONFIG_LINKS];
    if (getrlimit (RLIMIT_NOFILE, &files) != 0)
        return EXITS_OK;
    if (files.rlim_max < links + DAEMON_FILES_SPARE)
        say ("warning", "files",
             "%" PRIu64 " may be open here (ulimit -Hn), limits/links = %" PRIu64 " needs %" PRIu64
             ": fewer clients will be taken",
             (uint64_t) files.rlim_max, links, links + DAEMON_FILES_SPARE);
    else
        say ("ok", "files", "enough for limits/links = %" PRIu64, links);
    return EXITS_OK;
}

exits_t check_config (const config_t *config)
{
    static exits_t (*const judges[]) (const config_t *) = {judge_addresses, judge_directory,
                                                           judge_archive, judge_files};
    bool unreached = false;
    exits_t first = EXITS_OK;
    say ("ok", "configuration", "%zu source%s beside the defaults", config->sources_count,
         config->sources_count == 1 ? "" : "s");
    for (size_t i = 0; i < sizeof (judges) / sizeof (judges[0]); i++) {
        exits_t code = judges[i](config);
        if (first == EXITS_OK)
            first = code;
    }
    exits_t code = judge_database (config, &unreached);
    if (first == EXITS_OK)
        first = code;
    if (first == EXITS_OK)
        printf ("the configuration is good%s\n",
                unreached ? ", but the database did not answer: a start waits for it" : "");
    return first;
}
