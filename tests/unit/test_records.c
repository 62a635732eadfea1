/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What is answered to operators whose deeds are noted. The record, the backups and the store are
 * stand-ins. */
#include <stdio.h>
#include <string.h>

#include "audit/pages.h"
#include "backup/backup.h"
#include "records.h"
#include "support/cmocka_all.h"
#include "taskmq.pb-c.h"

static bool disk_takes;
static unsigned noted;
static char outcome[32];

bool audit_note_synced (audit_t *self, const audit_line_t *line)
{
    (void) self;
    noted++;
    snprintf (outcome, sizeof (outcome), "%s", line->outcome != NULL ? line->outcome : "ok");
    return disk_takes;
}

void audit_stats (audit_t *self, audit_stats_t *out)
{
    (void) self;
    *out = (audit_stats_t){0};
}

bool audit_knows_kind (const char *name, const char **nearest)
{
    (void) name;
    (void) nearest;
    return true;
}

bool page_read (page_t *out, const char *directory, const page_query_t *query)
{
    (void) out;
    (void) directory;
    (void) query;
    return false;
}

store_code_t backup_make (const backup_options_t *options, backup_made_t *out, store_error_t *error)
{
    (void) options;
    (void) out;
    return error->code = STORE_ERROR_IO;
}

void backup_clean (const char *directory)
{
    (void) directory;
}

bool backup_find (const char *directory, const char *id, char name[BACKUP_NAME_SIZE],
                  uint64_t *bytes)
{
    (void) directory;
    (void) id;
    (void) name;
    (void) bytes;
    return false;
}

store_code_t store_vacuum (store_t *self, bool begin, store_vacuum_t *out, store_error_t *error)
{
    (void) self;
    (void) begin;
    *out = (store_vacuum_t){0};
    return error->code = STORE_ERROR_IO;
}

uint64_t backup_lacks (const char *directory, const char *name)
{
    (void) directory;
    (void) name;
    return 0;
}

int64_t backup_read (const char *directory, const char *name, uint64_t offset, void *out,
                     size_t size, store_error_t *error)
{
    (void) directory;
    (void) name;
    (void) offset;
    (void) out;
    (void) size;
    error->code = STORE_ERROR_IO;
    return -1;
}

/* A change that is made, or refused as the context says. */
static void change (void *context, errand_t *errand)
{
    if (*(const bool *) context)
        errand->code = TMQ_OK;
    else
        errand_refuse (errand, TMQ_CONFLICT, "no");
}

static tmq_code_t ask (bool works)
{
    char identity[] = "ops";
    char name[] = "render-7";
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    Taskmq__InviteRevoke revoke = TASKMQ__INVITE_REVOKE__INIT;
    uint8_t packed[128];
    records_options_t options = {.directory = "/nowhere"};
    records_t *records = records_new (&options);
    errand_runner_t runner = {TASKMQ__REQUEST__OP_INVITE_REVOKE, change, &works};
    records_watch (records, &runner, 1);
    revoke.invitation = name;
    request.op_case = TASKMQ__REQUEST__OP_INVITE_REVOKE;
    request.invite_revoke = &revoke;
    errand_t errand = {.op = runner.op, .identity = identity};
    errand.request = buf_new (packed, taskmq__request__pack (&request, packed));
    runner.run (runner.context, &errand);
    buf_drop (errand.request);
    records_free (&records);
    return errand.code;
}

static void a_deed_is_answered_as_it_went (void **state)
{
    (void) state;
    disk_takes = true;
    assert_int_equal (ask (true), TMQ_OK);
    assert_string_equal (outcome, "ok");
    assert_int_equal (ask (false), TMQ_CONFLICT);
    assert_string_equal (outcome, "refused");
    assert_int_equal (noted, 2);
}

/* It was done: an answer that says otherwise would be worse than a line that comes late. */
static void also_when_the_disk_takes_no_line (void **state)
{
    (void) state;
    disk_takes = false;
    noted = 0;
    assert_int_equal (ask (true), TMQ_OK);
    assert_int_equal (noted, 1);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (a_deed_is_answered_as_it_went),
        cmocka_unit_test (also_when_the_disk_takes_no_line),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
