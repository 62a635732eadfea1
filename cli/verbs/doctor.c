/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* taskctl doctor: what is wrong with this set-up, from here and as far as the broker tells. Each
 * finding has the command that mends it. */
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/memory.h"
#include "link/connect.h"
#include "profile.h"
#include "screen/items.h"
#include "screen/output.h"
#include "screen/show.h"
#include "screen/table.h"
#include "units.h"
#include "verbs/counted.h"
#include "verbs/verbs.h"
#include "verbs/verify.h"

enum {
    SKEW_MS_MAX = 5000,
    LOOK_MS = 2000, /* for all of several endpoints */
    KEY_WARN_MS = 7 * 24 * 3600 * 1000,
    PATH_BYTES = 4096,
    TEXT_BYTES = VERIFY_TEXT_SIZE + 64
};

typedef enum verdict { VERDICT_OK, VERDICT_WARNING, VERDICT_WRONG } verdict_t;
static const char *const verdict_texts[] = {"ok", "warning", "wrong"};

typedef struct doctor {
    app_t *app;
    items_t items;
    size_t counts[VERDICT_WRONG + 1];
    bool sent_to_store; /* the database is named as what is to be mended */
    tmq_broker_info_t info;
    tmq_whoami_t who;
    char directory[PATH_BYTES]; /* of the broker, if it is on this machine; "" else */
} doctor_t;

static void write_finding (doctor_t *self, verdict_t verdict, const char *about, const char *text,
                           const char *mend)
{
    const struct {
        const char *key;
        const char *value;
    } members[] = {
        {"about", about}, {"verdict", verdict_texts[verdict]}, {"text", text}, {"mend", mend}};
    json_writer_t *writer = items_open (&self->items);
    json_write_object_begin (writer);
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        json_write_key (writer, members[i].key);
        if (members[i].value)
            json_write_text (writer, members[i].value);
        else
            json_write_null (writer);
    }
    json_write_object_end (writer);
    items_close (&self->items);
}

static void show_finding (doctor_t *self, verdict_t verdict, const char *about, const char *text,
                          const char *mend)
{
    enum { TEXT_COLUMN = 19 };
    const app_t *app = self->app;
    const char *paint = verdict == VERDICT_OK        ? ""
                        : verdict == VERDICT_WARNING ? paint_bold (app)
                                                     : paint_status (app, TMQ_STATUS_FAILED);
    printf ("%s%-8s%s %-9s ", paint, verdict_texts[verdict], *paint ? paint_end (app) : "", about);
    print_wrapped_text (app, text, TEXT_COLUMN, TEXT_COLUMN);
    putchar ('\n');
    if (mend) {
        print_safe (app, stdout, "%*s-> %s", TEXT_COLUMN, "", mend);
        putchar ('\n');
    }
}

/* mend: the command that mends it; NULL: there is nothing to mend. */
__attribute__ ((format (printf, 5, 6))) static void find (doctor_t *self, verdict_t verdict,
                                                          const char *about, const char *mend,
                                                          const char *format, ...)
{
    char text[TEXT_BYTES];
    va_list arguments;
    va_start (arguments, format);
    vsnprintf (text, sizeof text, format, arguments);
    va_end (arguments);
    self->counts[verdict]++;
    if (app_wants_json (self->app))
        write_finding (self, verdict, about, text, mend);
    else
        show_finding (self, verdict, about, text, mend);
}

/* The connection. */

/* What was said of each of several endpoints is not said again. */
static void judge_no_reach (doctor_t *self, int code, const tmq_error_t *error)
{
    char after[UNITS_TEXT_SIZE];
    const bool several = code == TMQ_UNREACHABLE && self->who.endpoints_count > 1;
    const char *text = *error->text ? error->text : tmq_code_text (code);
    const char *mend = *error->hint ? error->hint : NULL;
    if (several)
        mend = "where a take-over lasts longer: --timeout 60s";
    if (code == TMQ_UNREACHABLE && hint_of_store (error))
        mend = self->sent_to_store ? NULL : hint_of_store (error);
    if (several)
        find (self, VERDICT_WRONG, "reach", mend,
              "none of %" PRIu32 " endpoints answered within %s", self->who.endpoints_count,
              duration_format (after, self->app->timeout_ms));
    else
        find (self, VERDICT_WRONG, "reach", mend, "%s", text);
}

/* That which answers; of a single one also that which does not. */
static void judge_endpoint (doctor_t *self)
{
    const tmq_whoami_t *who = &self->who;
    const char *uri = *who->endpoint ? who->endpoint : who->endpoints;
    if (*uri || *who->told_by)
        find (self, VERDICT_OK, "endpoint", NULL, "%s%ssaid by %s", uri, *uri ? ", " : "",
              app_told_by (self->app, who));
}

static bool reach (doctor_t *self)
{
    tmq_error_t error = {0};
    const int code = app_try (self->app, &self->info, &error);
    self->who = (tmq_whoami_t){.size = sizeof self->who};
    if (self->app->client)
        tmq_client_whoami (&self->who, self->app->client);
    if (self->who.endpoints_count < 2 || code == TMQ_OK)
        judge_endpoint (self);
    if (code == TMQ_OK)
        find (self, VERDICT_OK, "reach", NULL, "%s answers", self->info.broker);
    else
        judge_no_reach (self, code, &error);
    return code == TMQ_OK;
}

static void judge_identity (doctor_t *self)
{
    const tmq_whoami_t *who = &self->who;
    if (!*who->principal && !*who->roles)
        find (self, VERDICT_OK, "identity", NULL,
              "%s in namespace %s; no access file: whoever comes this way may do everything",
              who->identity, who->ns);
    else
        find (self, VERDICT_OK, "identity", NULL, "%s in namespace %s, with %s", who->identity,
              who->ns, *who->roles ? who->roles : "no rights");
}

static void judge_version (doctor_t *self)
{
    char own[32];
    const char *version = strrchr (self->info.broker, ' ');
    snprintf (own, sizeof own, "%d.%d.%d", TMQ_VERSION_MAJOR, TMQ_VERSION_MINOR, TMQ_VERSION_PATCH);
    if (version && strcmp (version + 1, own) == 0)
        find (self, VERDICT_OK, "version", NULL, "%s here and there", own);
    else
        find (self, VERDICT_WARNING, "version", "install the same version on both sides",
              "taskctl %s, %s", own, self->info.broker);
}

static void judge_clock (doctor_t *self)
{
    char text[UNITS_TEXT_SIZE];
    const int64_t ahead = self->who.clock_ahead_ms;
    duration_format (text, llabs (ahead) / 100 * 100);
    if (llabs (ahead) > SKEW_MS_MAX)
        find (self, VERDICT_WARNING, "clock", "timedatectl set-ntp true",
              "the broker's clock is %s %s this one: times to live are judged by it", text,
              ahead > 0 ? "ahead of" : "behind");
    else
        find (self, VERDICT_OK, "clock", NULL, "within %s of the broker's",
              duration_format (text, SKEW_MS_MAX));
}

static void judge_key_end (doctor_t *self)
{
    char text[TIME_TEXT_SIZE];
    struct timespec now;
    const int64_t until = (int64_t) self->who.key_until;
    clock_gettime (CLOCK_REALTIME, &now);
    const int64_t left = until - ((int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000);
    if (!*self->who.key)
        return;
    time_format (text, until);
    if (until && left < KEY_WARN_MS)
        find (self, VERDICT_WARNING, "key", "taskctl key rotate", "%s ends at %s", self->who.key,
              text);
    else
        find (self, VERDICT_OK, "key", NULL, "%s %s%s", self->who.key,
              until ? "until " : "without an end", until ? text : "");
}

/* Each of several endpoints by itself, all of them side by side. */

typedef struct look {
    char *uri;
    tmq_client_t *client;
    tmq_broker_info_t info;
    char server_key[sizeof ((tmq_whoami_t *) 0)->server_key];
    int code; /* of taskmq_types.h, or the reason in error */
    tmq_error_t error;
} look_t;

typedef struct looked {
    char uris[sizeof ((tmq_whoami_t *) 0)->endpoints];
    look_t looks[TMQ_ENDPOINTS_MAX];
    size_t count;
    const look_t *first; /* that answered */
    size_t silent;       /* endpoints without an answer, … */
    uint64_t standbys;   /* … and standbys that the owner sees; UINT64_MAX: it does not tell */
    bool hidden;         /* … for it tells operators only */
} looked_t;

/* The library connects in a thread of each client. */
static void begin_look (const app_t *app, look_t *look)
{
    tmq_client_options_t options;
    const char *uri = look->uri;
    app_client_options (app, &uri, 1, &options);
    options.fail_fast = true;
    look->code = tmq_client_new (&look->client, &options, &look->error);
}

static void end_look (look_t *look, uint64_t deadline_ms)
{
    tmq_whoami_t who = {.size = sizeof who};
    const uint64_t now_ms = mono_ms ();
    if (look->code != TMQ_OK)
        return;
    look->code = tmq_client_connect (
        look->client, now_ms < deadline_ms ? (uint32_t) (deadline_ms - now_ms) : 0, &look->error);
    if (look->code == TMQ_OK && tmq_client_info (&look->info, look->client) == TMQ_OK &&
        tmq_client_whoami (&who, look->client) == TMQ_OK)
        memcpy (look->server_key, who.server_key, sizeof look->server_key);
}

static void look_at_all (const app_t *app, looked_t *self, const tmq_whoami_t *who)
{
    char *rest = NULL;
    snprintf (self->uris, sizeof self->uris, "%s", who->endpoints);
    for (char *uri = strtok_r (self->uris, " ", &rest); uri && self->count < TMQ_ENDPOINTS_MAX;
         uri = strtok_r (NULL, " ", &rest)) {
        look_t *look = &self->looks[self->count++];
        look->uri = uri;
        begin_look (app, look);
    }
    const uint64_t deadline_ms = mono_ms () + LOOK_MS;
    for (size_t i = 0; i < self->count; i++)
        end_look (&self->looks[i], deadline_ms);
    for (size_t i = 0; i < self->count; i++)
        tmq_client_free (&self->looks[i].client);
}

/* Two brokers of a pair never answer at the same time. */
static void judge_answer (doctor_t *self, looked_t *looked, const look_t *look)
{
    const char *uri = look->uri;
    const tmq_broker_info_t *info = &look->info;
    if (!looked->first)
        looked->first = look;
    const tmq_broker_info_t *first = &looked->first->info;
    if (info->generation != first->generation)
        find (self, VERDICT_WRONG, "endpoint",
              "give both the same broker/store, database/uri and database/schema",
              "%s: answers with tasks of its own: it is no pair with %s", uri, first->endpoint);
    else if (strcmp (info->broker, first->broker) != 0)
        find (self, VERDICT_WARNING, "endpoint", "install the same version on both",
              "%s: %s, and %s at %s", uri, info->broker, first->broker, first->endpoint);
    else if (*self->who.server_key && *look->server_key &&
             strcmp (self->who.server_key, look->server_key) != 0)
        find (self, VERDICT_WRONG, "endpoint", "copy server.key (CLUSTER.md)",
              "%s: has the server key %s, not %s", uri, look->server_key, self->who.server_key);
    else
        find (self, VERDICT_OK, "endpoint", NULL, "%s: owns the tasks (%s, epoch %" PRIu64 ")", uri,
              info->broker, info->epoch);
}

/* What is said of an address, behind it. */
static const char *behind (const char *text, const char *uri)
{
    const char *there = strstr (text, uri);
    const char *why = there ? there + strlen (uri) : text;
    return there && strncmp (why, ": ", 2) == 0 ? why + 2 : text;
}

/* Without a broker that owns the tasks each is wrong, which `reach` has said. */
static void judge_silence (doctor_t *self, const looked_t *looked, const look_t *look)
{
    static const char again[] = "look whether one runs there; one that has just started, or whose "
                                "database was away, is seen within 10 s";
    const char *uri = look->uri;
    const char *why = behind (look->error.text, uri);
    if (look->code == TMQ_UNREACHABLE && hint_of_store (&look->error)) {
        find (self, VERDICT_WARNING, "endpoint", hint_of_store (&look->error), "%s: %s", uri, why);
        self->sent_to_store = true;
    } else if (look->code != TMQ_UNREACHABLE)
        find (self, VERDICT_WRONG, "endpoint", *look->error.hint ? look->error.hint : NULL,
              "%s: %s", uri, why);
    else if (looked->standbys > 0 && looked->standbys < looked->silent)
        find (self, VERDICT_WARNING, "endpoint", again,
              "%s: %s; of %zu that do not answer the owner sees %" PRIu64 " at a standby", uri, why,
              looked->silent, looked->standbys);
    else if (looked->standbys > 0 && looked->standbys < UINT64_MAX)
        find (self, VERDICT_OK, "endpoint", NULL,
              "%s: %s, as at a standby (the owner sees %" PRIu64 " of them)", uri, why,
              looked->standbys);
    else if (looked->hidden)
        find (self, VERDICT_OK, "endpoint", NULL,
              "%s: %s, as at a standby (an operator sees whether there is one)", uri, why);
    else if (looked->standbys == 0)
        find (self, VERDICT_WARNING, "endpoint", again, "%s: %s, and the owner sees no standby",
              uri, why);
    else
        find (self, VERDICT_WARNING, "endpoint", "look whether a broker runs there",
              "%s: %s; a standby listens when it takes over, not before", uri, why);
}

static void count_standbys (const app_t *app, looked_t *looked)
{
    tmq_error_t ignored;
    tmq_stats_t *stats = NULL;
    const int code = tmq_stats (&stats, app->client, app->timeout_ms, &ignored);
    looked->hidden = code == TMQ_DENIED || (code == TMQ_OK && stats->counters_count == 0);
    if (code != TMQ_OK)
        return;
    looked->standbys = counted_standbys (stats);
    tmq_stats_free (stats);
}

static void judge_looks (doctor_t *self, looked_t *looked, bool reached)
{
    looked->standbys = UINT64_MAX;
    if (reached)
        count_standbys (self->app, looked);
    for (size_t i = 0; i < looked->count; i++)
        looked->silent += looked->looks[i].code == TMQ_UNREACHABLE;
    for (size_t i = 0; i < looked->count; i++) {
        look_t *look = &looked->looks[i];
        look->uri[strcspn (look->uri, "?")] = '\0'; /* the key is not for the eye */
        if (look->code == TMQ_OK)
            judge_answer (self, looked, look);
        else
            judge_silence (self, looked, look);
    }
}

static bool any_answers (const looked_t *looked)
{
    for (size_t i = 0; i < looked->count; i++)
        if (looked->looks[i].code == TMQ_OK)
            return true;
    return false;
}

/* The way to the broker. Where none of several endpoints answers, what is known is said first: a
 * take-over takes longer than the look. */
static bool judge_way (doctor_t *self)
{
    char text[UNITS_TEXT_SIZE];
    tmq_error_t ignored; /* `reach` meets it again */
    tmq_whoami_t who;
    looked_t *looked = must_alloc (sizeof *looked);
    memset (looked, 0, sizeof *looked);
    if (app_endpoints (self->app, &who, &ignored) == TMQ_OK && who.endpoints_count > 1)
        look_at_all (self->app, looked, &who);
    const bool answered = any_answers (looked);
    if (looked->count > 0 && !answered) {
        judge_looks (self, looked, false);
        fflush (stdout);
        app_plan_timeout (self->app, &who);
        note (self->app, "taskctl: none answers; for %s (--timeout) one may still take over",
              duration_format (text, self->app->timeout_ms));
    }
    const bool reached = reach (self);
    if (answered)
        judge_looks (self, looked, reached);
    free (looked);
    return reached;
}

/* This machine. */

/* The file of the key that is used or, where none is, that would be. */
static bool own_key_file (const doctor_t *self, char out[PATH_MAX])
{
    const char *file = *self->who.key_file ? self->who.key_file : getenv ("TASKMQ_KEY_FILE");
    if (file && *file)
        return snprintf (out, PATH_MAX, "%s", file) < PATH_MAX;
    return profile_home (out, "keys/default.key");
}

static void judge_key_file (doctor_t *self)
{
    char path[PATH_MAX];
    char mend[PATH_MAX + 16];
    struct stat info;
    if (!own_key_file (self, path) || stat (path, &info) != 0)
        return;
    snprintf (mend, sizeof mend, "chmod 600 %s", path);
    if (info.st_mode & 077)
        find (self, VERDICT_WRONG, "key file", mend, "%s may be read by others (mode %04o)", path,
              (unsigned) info.st_mode & 07777);
    else
        find (self, VERDICT_OK, "key file", NULL, "%s, for its owner alone", path);
}

/* That in which the endpoint was found, or in which its socket lies. */
static void find_directory (doctor_t *self)
{
    static const char ipc[] = "ipc://";
    char file[PATH_BYTES + 16];
    const char *uri = self->who.endpoint;
    const bool is_socket = strncmp (uri, ipc, strlen (ipc)) == 0;
    snprintf (self->directory, sizeof self->directory, "%s",
              is_socket ? uri + strlen (ipc) : self->who.told_by);
    char *slash = strrchr (self->directory, '/');
    if (is_socket && slash)
        *slash = '\0';
    snprintf (file, sizeof file, "%s/taskmq.lock", self->directory);
    if (*self->directory != '/' || access (file, F_OK) != 0)
        self->directory[0] = '\0';
}

static void judge_directory (doctor_t *self)
{
    char mend[PATH_BYTES + 16];
    struct stat info;
    if (!*self->directory || stat (self->directory, &info) != 0)
        return;
    const unsigned mode = (unsigned) info.st_mode & 07777;
    snprintf (mend, sizeof mend, "chmod 700 %s", self->directory);
    if (mode & 022)
        find (self, VERDICT_WRONG, "directory", mend, "others may write in %s (mode %04o)",
              self->directory, mode);
    else if (mode & 055)
        find (self, VERDICT_WARNING, "directory", mend, "others may look into %s (mode %04o)",
              self->directory, mode);
    else
        find (self, VERDICT_OK, "directory", NULL, "%s, of uid %ld, mode %04o", self->directory,
              (long) info.st_uid, mode);
}

/* The record of deeds and the events, with the files before them. */

static bool can_read_chains (const doctor_t *self)
{
    static const char *const names[] = {"audit", "events"};
    char path[PATH_BYTES + 16];
    bool any = false;
    for (size_t i = 0; *self->directory && i < sizeof names / sizeof *names; i++) {
        snprintf (path, sizeof path, "%s/%s.jsonl", self->directory, names[i]);
        any = any || access (path, R_OK) == 0;
    }
    return any;
}

static void judge_chain (doctor_t *self, const char *about, const verify_report_t *report)
{
    char mend[PATH_BYTES + 160];
    snprintf (mend, sizeof mend, "taskctl audit verify %s; RUNBOOK.md: When a chain is broken",
              self->directory);
    if (!report->there)
        return;
    if (!report->good)
        find (self, VERDICT_WRONG, about, mend, "not what was written: %s", report->text);
    else if (report->gaps > 0)
        find (self, VERDICT_WARNING, about, mend, "lines were lost: %s", report->text);
    else
        find (self, VERDICT_OK, about, NULL,
              "%s/%s.jsonl and the files before it hold together, "
              "%" PRIu64 " line%s",
              self->directory, about, report->lines, report->lines == 1 ? "" : "s");
}

static void judge_chains (doctor_t *self)
{
    verify_report_t reports[VERIFY_CHAINS];
    char problem[VERIFY_TEXT_SIZE];
    char mend[PATH_BYTES + 64];
    if (!can_read_chains (self))
        return;
    if (verify_directory (self->app, self->directory, reports, problem)) {
        judge_chain (self, "audit", &reports[0]);
        judge_chain (self, "events", &reports[1]);
        return;
    }
    snprintf (mend, sizeof mend, "taskctl audit verify %s", self->directory);
    find (self, VERDICT_WRONG, "chains", mend, "%s", problem);
}

/* What the broker knows. */

static const struct rule {
    const char *counter;
    uint64_t most; /* that is good */
    verdict_t verdict;
    const char *about;
    const char *text;
    const char *mend;
} rules[] = {
    {"store_full", 0, VERDICT_WRONG, "space", "submissions are refused: the store is full",
     "df -h; free space where the data is"},
    {"write_back_stalled", 0, VERDICT_WRONG, "space", "the tables cannot be written",
     "df -h; free space where the data is"},
    {"tables_held", 0, VERDICT_WARNING, "data", "another process reads the tables",
     "fuser taskmq.db in the data directory; end that process"},
    {"store_damaged", 0, VERDICT_WRONG, "data", "rows were found damaged",
     "stop the broker, then taskmqd --check --data DIR"},
    {"access_stale", 0, VERDICT_WRONG, "access",
     "the access file cannot be used, an older one counts",
     "taskctl reload says which line; mend it"},
    {"synchronous_normal", 0, VERDICT_WARNING, "data",
     "runs with --synchronous normal: a loss of power may lose work",
     "remove store/synchronous from the configuration"},
    {"wal_bytes", 512 << 20, VERDICT_WARNING, "wal", "the log of the tables is long",
     "look at the disk: iostat -x 1"},
    {"export_lag", 100000, VERDICT_WARNING, "export", "tasks.jsonl is behind",
     "look at the disk, and at EXPORT-STALLED in the log"},
    {"export_errors", 0, VERDICT_WARNING, "export", "tasks.jsonl could not be written",
     "journalctl -u taskmqd | grep EXPORT"},
    {"events_stalled", 0, VERDICT_WARNING, "events", "events.jsonl cannot be written",
     "df -h; journalctl -u taskmqd | grep EVENTS"},
    {"events_early", 0, VERDICT_WARNING, "events",
     "files of events were removed before events/days: all had more than events/disk",
     "raise events/disk, or copy them elsewhere in time"},
    {"events_gaps", 0, VERDICT_WARNING, "events", "events.jsonl lacks events, and says which",
     "journalctl -u taskmqd | grep EVENTS-GAP"},
    {"search_damaged", 0, VERDICT_WARNING, "search", "searches are refused: the index is damaged",
     "taskctl search reindex"},
    {"blobs_errors", 0, VERDICT_WARNING, "blobs", "large bodies could not be written or read",
     "stop the broker, then taskmqd --check --data DIR"},
    {"backup_lacks", 0, VERDICT_WARNING, "blobs",
     "the newest backup lacks large bodies: they are missing or damaged",
     "stop the broker, then taskmqd --check --data DIR"},
    {"audit_lost", 0, VERDICT_WRONG, "audit", "lines of audit.jsonl were lost",
     "df -h; journalctl -u taskmqd | grep AUDIT"},
    {"logs_errors", 0, VERDICT_WARNING, "logs", "pieces of the logs of tasks could not be written",
     "df -h; journalctl -u taskmqd | grep LOGS"},
    {"accept_failed", 0, VERDICT_WARNING, "files", "connections were lost for lack of open files",
     "raise LimitNOFILE (systemctl edit taskmqd), or lower limits/links"},
    {"peers_refused", 0, VERDICT_WARNING, "files", "connections were refused: there were too many",
     "raise limits/links, or look for clients that are never freed"},
    {"clock_leaps", 0, VERDICT_WARNING, "clock", "the broker's clock has leapt",
     "timedatectl; set the broker's clock right"},
    {"overloads", 0, VERDICT_WARNING, "load", "submissions were refused: the disk is too slow",
     "look at commit_us and commits of taskctl stats -v"},
};

static void judge_space (doctor_t *self, const tmq_stats_t *stats)
{
    const uint64_t little = 640 << 20;
    char text[UNITS_TEXT_SIZE];
    const uint64_t free_bytes = counted_value (stats, "free_bytes", UINT64_MAX);
    if (free_bytes == UINT64_MAX)
        return;
    size_format (text, free_bytes);
    if (free_bytes < little)
        find (self, VERDICT_WARNING, "space", "free space where the data is",
              "%s free: submissions are refused below limits/free_space_min", text);
    else
        find (self, VERDICT_OK, "space", NULL, "%s free where the data is", text);
}

static void judge_store (doctor_t *self, const tmq_stats_t *stats)
{
    const uint64_t standbys = counted_standbys (stats);
    if (standbys == 0)
        find (self, VERDICT_OK, "store", NULL, "PostgreSQL; no standby is seen");
    else if (standbys != UINT64_MAX)
        find (self, VERDICT_OK, "store", NULL, "PostgreSQL; %" PRIu64 " %s", standbys,
              standbys == 1 ? "standby" : "standbys");
}

static void judge_work (doctor_t *self, const tmq_stats_t *stats)
{
    const uint64_t ready = counted_value (stats, "ready", 0);
    const uint64_t links = counted_value (stats, "links", 0);
    const uint64_t links_max = counted_value (stats, "links_max", 0);
    if (ready && !counted_value (stats, "workers", 1))
        find (self, VERDICT_WARNING, "workers", "taskctl work QUEUE -- COMMAND",
              "%" PRIu64 " %s, and nobody works", ready, ready == 1 ? "task waits" : "tasks wait");
    if (links_max && links * 10 >= links_max * 9)
        find (self, VERDICT_WARNING, "links", "raise limits/links and LimitNOFILE",
              "%" PRIu64 " of %" PRIu64 " clients are connected", links, links_max);
}

static void judge_broker (doctor_t *self)
{
    tmq_error_t error = {0};
    tmq_stats_t *stats;
    const int code = tmq_stats (&stats, self->app->client, self->app->timeout_ms, &error);
    if (code == TMQ_DENIED) {
        find (self, VERDICT_OK, "broker", NULL, "its numbers are for others: %s", error.text);
        return;
    }
    if (code != TMQ_OK) {
        find (self, VERDICT_WRONG, "broker", *error.hint ? error.hint : NULL, "%s", error.text);
        return;
    }
    if (stats->counters_count == 0) {
        find (self, VERDICT_OK, "broker", NULL, "its numbers are for operators");
        tmq_stats_free (stats);
        return;
    }
    const size_t before = self->counts[VERDICT_WARNING] + self->counts[VERDICT_WRONG];
    judge_store (self, stats);
    judge_space (self, stats);
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const uint64_t value = counted_value (stats, rules[i].counter, 0);
        if (value > rules[i].most)
            find (self, rules[i].verdict, rules[i].about, rules[i].mend, "%s (%s = %" PRIu64 ")",
                  rules[i].text, rules[i].counter, value);
    }
    judge_work (self, stats);
    if (self->counts[VERDICT_WARNING] + self->counts[VERDICT_WRONG] == before)
        find (self, VERDICT_OK, "broker", NULL, "none of its numbers is bad");
    tmq_stats_free (stats);
}

int run_doctor (app_t *app)
{
    doctor_t self = {.app = app};
    if (app_wants_json (app))
        items_begin (&self.items, app, false);
    const bool reached = judge_way (&self);
    judge_key_file (&self);
    find_directory (&self);
    judge_directory (&self);
    judge_chains (&self);
    if (reached) {
        judge_identity (&self);
        judge_version (&self);
        judge_clock (&self);
        judge_key_end (&self);
        judge_broker (&self);
    }
    if (app_wants_json (app))
        items_end (&self.items, NULL);
    return self.counts[VERDICT_WRONG] ? EXIT_OTHER : EXIT_OK;
}
