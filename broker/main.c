/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* taskmqd: the command line, then start, loop and stop of the broker. */
#include <czmq.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "audit/audit.h"
#include "backup/restore.h"
#include "check.h"
#include "daemon.h"
#include "database.h"
#include "log/log.h"
#include "notify.h"
#include "reload.h"
#include "units.h"

static exits_t run (daemon_t *self)
{
    exits_t code = daemon_start (self);
    if (code == EXITS_OK) {
        server_run (self->server);
        notify_supervisor ("STOPPING=1");
    }
    code = daemon_stop (self, code);
    if (code == EXITS_OK)
        log_write (LOG_LEVEL_INFO, exits_id (code), exits_meaning (code), NULL);
    return code;
}

/* A line of the record of deeds in the new directory. */
static void note_restored (const char *directory, const restore_report_t *report,
                           const char *detail)
{
    char error[AUDIT_ERROR_SIZE];
    audit_options_t options = {.directory = directory,
                               .generation = report->generation,
                               .epoch = report->more.archive != NULL ? report->more.epoch
                                                                     : report->manifest.epoch,
                               .keep_bytes = UINT64_MAX,
                               .keep_ms = INT64_MAX};
    audit_t *audit = audit_new (&options, error);
    if (audit == NULL)
        log_write (LOG_LEVEL_WARNING, "AUDIT-STALLED", "the restore could not be noted",
                   LOG_FIELDS (LOG_TEXT ("error", error)));
    audit_note (audit, &(audit_line_t){.kind = AUDIT_RESTORED, .detail = detail});
    audit_free (&audit);
}

/* What the directory, or the database, holds: the backup, and what followed of the archive. */
static void tell_restored (const char *directory, const restore_report_t *report, bool database)
{
    char made[TIME_TEXT_SIZE] = "";
    char newest[TIME_TEXT_SIZE] = "";
    char detail[512];
    const manifest_t *manifest = &report->manifest;
    const store_more_t *more = &report->more;
    bool with = more->archive != NULL;
    uint64_t batch = with ? more->batch : manifest->batch;
    time_format (made, manifest->made_ms);
    time_format (newest, with ? more->newest_ms : manifest->newest_ms);
    snprintf (detail, sizeof (detail),
              "backup of %s, version %s, %" PRIu64 " batches of the archive, batch %" PRIu64
              " of epoch %" PRIu64 " at %s",
              made, manifest->version, more->batches, batch, with ? more->epoch : manifest->epoch,
              newest);
    note_restored (directory, report, detail);
    log_write (LOG_LEVEL_INFO, "RESTORED",
               database ? "the database is as the broker was then: what was acknowledged later is "
                          "lost, and subscribers are told of a gap"
                        : "the directory is as the broker was then: what was acknowledged later is "
                          "lost, and subscribers are told of a gap",
               LOG_FIELDS (LOG_TEXT ("path", directory), LOG_TEXT ("made", made),
                           LOG_NUMBER ("archived", more->batches), LOG_NUMBER ("batch", batch),
                           LOG_TEXT ("newest", newest),
                           LOG_NUMBER ("tasks", with ? more->tasks : manifest->tasks)));
    if (report->blobs_missing > 0)
        log_write (LOG_LEVEL_WARNING, "RESTORED-BLOBS",
                   "large bodies that tasks need are neither in the backup nor in the archive",
                   LOG_FIELDS (LOG_NUMBER ("missing", report->blobs_missing)));
    if (report->blobs.unreadable > 0)
        log_write (
            LOG_LEVEL_WARNING, "RESTORED-UNREAD",
            "large bodies that tasks need are in the archive, and cannot be read there: restore "
            "once more when its disk works",
            LOG_FIELDS (LOG_NUMBER ("unreadable", report->blobs.unreadable),
                        LOG_TEXT ("blob", report->blobs.example),
                        LOG_TEXT ("error", strerror (report->blobs.error))));
}

/* As a shell reads it. */
static void print_word (const char *text)
{
    bool plain = text[strspn (text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                    "_./:@,+-")] == '\0';
    if (!plain)
        putchar ('\'');
    for (; *text != '\0'; text++)
        if (*text == '\'')
            fputs ("'\\''", stdout);
        else
            putchar (*text);
    if (!plain)
        putchar ('\'');
}

/* What comes next. A schema has no option. */
static void print_start (const config_t *config, const char *directory,
                         const database_options_t *database)
{
    fputs ("now start it, with the other settings that it had: ", stdout);
    if (database != NULL && strcmp (database->schema, DATABASE_SCHEMA_DEFAULT) != 0)
        printf ("TASKMQD_DATABASE_SCHEMA=%s ", database->schema);
    fputs ("taskmqd --data ", stdout);
    print_word (directory);
    if (database != NULL) {
        fputs (" --store postgresql --database ", stdout);
        print_word (config_text (config, CONFIG_DATABASE_URI));
    }
    putchar ('\n');
}

/* What stands in the way of it, before the backup is read. */
static exits_t judge_restore (const config_t *config, const char *directory)
{
    char error[DATABASE_ERROR_SIZE];
    if (directory == NULL)
        return exits_fail (EXITS_USAGE, "--restore needs --data DIR, a directory that is empty or "
                                        "missing");
    exits_t code = database_judge (config, directory, error);
    return code == EXITS_OK ? code : exits_fail (code, error);
}

static exits_t restore (const config_t *config)
{
    store_error_t error;
    restore_report_t report;
    database_options_t database;
    const char *directory = config_text (config, CONFIG_DATA);
    const restore_from_t from = {.file = config->restore,
                                 .archive = config_text (config, CONFIG_ARCHIVE),
                                 .until_ms = config->until_ms,
                                 .into =
                                     database_fill (&database, config, NULL) ? &database : NULL};
    exits_t refused = judge_restore (config, directory);
    if (refused != EXITS_OK)
        return refused;
    umask (077);
    store_code_t code = restore_run (&from, directory, &report, &error);
    if (code != STORE_OK)
        return exits_fail (code == STORE_ERROR_FOREIGN ? EXITS_DATA : exits_of_store (code),
                           error.text);
    if (report.again)
        log_write (LOG_LEVEL_INFO, "RESTORE-AGAIN",
                   report.ended
                       ? "the restore before this one was interrupted behind its end: the database "
                         "has all of it"
                       : "the restore before this one was interrupted: this one began anew",
                   LOG_FIELDS (LOG_TEXT ("path", directory)));
    if (!report.ended)
        tell_restored (directory, &report, from.into != NULL);
    print_start (config, directory, from.into);
    return EXITS_OK;
}

/* What is wrong by itself is said before anything is touched. */
static exits_t judge (const config_t *config)
{
    char error[CONFIG_ERROR_SIZE];
    char database_error[DATABASE_ERROR_SIZE];
    if (!config_check_addresses (config, error))
        return exits_fail (EXITS_ADDRESS, error);
    exits_t code = database_judge_options (config, database_error);
    return code == EXITS_OK ? code : exits_fail (code, database_error);
}

int main (int argc, char **argv)
{
    static daemon_t self = DAEMON_INIT;
    char error[CONFIG_ERROR_SIZE];
    self.argc = argc;
    self.argv = argv;
    self.reload_open = reload_open;
    self.reload_close = reload_close;
    self.reload_take = reload_take;
    zsys_handler_set (NULL);
    config_init (&self.config);
    if (!config_parse (&self.config, argc, argv, environ, error))
        return (int) exits_fail (EXITS_USAGE, error);
    log_configure ((log_level_t) self.config.numbers[CONFIG_LOG_LEVEL],
                   self.config.numbers[CONFIG_LOG_FORMAT] != 0);
    const bool only_shows =
        self.config.action == CONFIG_CHECK_CONFIG || self.config.action == CONFIG_SHOW;
    exits_t code = only_shows ? EXITS_OK : judge (&self.config);
    if (code != EXITS_OK)
        return (int) code;
    switch (self.config.action) {
    case CONFIG_HELP: config_print_help (); break;
    case CONFIG_VERSION: puts ("taskmqd " TASKMQ_VERSION); break;
    case CONFIG_SHOW: config_show (&self.config, stdout); break;
    case CONFIG_CHECK_CONFIG: return (int) check_config (&self.config);
    case CONFIG_CHECK: return (int) check_data (&self.config);
    case CONFIG_RESTORE: return (int) restore (&self.config);
    case CONFIG_RUN: return (int) run (&self);
    }
    config_free (&self.config);
    return (int) EXITS_OK;
}
