/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "party.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/wakeup.h"
#include "support/cmocka_all.h"
#include "timestamp.h"

static void say (void *context, database_word_t word, const char *text)
{
    party_t *self = context;
    pthread_mutex_lock (&self->lock);
    snprintf (self->said[word], PARTY_TEXT_SIZE, "%s", text);
    pthread_mutex_unlock (&self->lock);
}

bool party_was_told (party_t *self, database_word_t word, const char *words)
{
    pthread_mutex_lock (&self->lock);
    bool found = self->said[word][0] != '\0' && strstr (self->said[word], words) != NULL;
    pthread_mutex_unlock (&self->lock);
    return found;
}

static void failed (void *context, const store_error_t *error)
{
    party_t *self = context;
    atomic_store (&self->failed_with, error->code);
    if (error->code == STORE_ERROR_CUT)
        atomic_store (&self->cut, true);
}

party_t *party_new (const fixture_t *f, bool standby, const char *directory)
{
    party_t *self = calloc (1, sizeof *self);
    assert_non_null (self);
    pthread_mutex_init (&self->lock, NULL);
    if (directory == NULL)
        directory_make (self->directory);
    self->options = f->options;
    self->options.directory = directory == NULL ? self->directory : directory;
    self->options.failed = failed;
    self->options.notify_context = self;
    self->database = *store_fixture_options (f);
    self->database.standby = standby;
    self->database.lease_ms = PARTY_LEASE_MS;
    self->database.say = say;
    self->database.context = self;
    self->options.database = &self->database;
    self->stop_fd = wakeup_new ();
    return self;
}

static void *party_run (void *context)
{
    party_t *self = context;
    self->code = store_open (&self->store, "postgresql", &self->options, &self->boot, &self->error);
    if (self->code == STORE_OK)
        self->code = store_own (self->store, self->stop_fd, &self->boot, &self->error);
    self->owned_at = clock_ms (CLOCK_MONOTONIC);
    atomic_store (&self->done, true);
    return NULL;
}

void party_begin (party_t *self)
{
    atomic_store (&self->done, false);
    assert_int_equal (pthread_create (&self->thread, NULL, party_run, self), 0);
}

void party_end (party_t *self, store_code_t expected)
{
    pthread_join (self->thread, NULL);
    if (self->code != expected)
        fail_msg ("%d in place of %d: %s", self->code, expected, self->error.text);
}

void party_own (party_t *self, store_code_t expected)
{
    party_begin (self);
    party_end (self, expected);
}

store_code_t party_close (party_t *self)
{
    store_error_t error = {STORE_OK, ""};
    return self->store == NULL ? STORE_OK : store_close (&self->store, &error);
}

void party_free (party_t *self)
{
    party_close (self);
    if (self->directory[0] != '\0')
        directory_remove (self->directory);
    close (self->stop_fd);
    pthread_mutex_destroy (&self->lock);
    free (self);
}

bool party_waits (party_t *self)
{
    return party_was_told (self, DATABASE_STANDBY, "");
}

void party_submit (fixture_t *f, party_t *self, int64_t number, store_code_t expected)
{
    store_error_t error = {STORE_OK, ""};
    batch_t *batch = fixture_batch (f);
    record_t record = test_record (number);
    fixture_change (f, batch, &record, TMQ_EVENT_SUBMITTED);
    store_code_t code = store_commit (self->store, &batch, 1, &error);
    if (code != expected)
        fail_msg ("%d in place of %d: %s", code, expected, error.text);
}

void party_stop_beats (const fixture_t *f, const char *how)
{
    char sql[768];
    snprintf (sql, sizeof sql,
              "CREATE OR REPLACE FUNCTION quiet () RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
              " IF current_setting ('application_name') LIKE 'taskmq beat %%'"
              " AND NEW.epoch = %lld THEN"
              " %s; END IF; RETURN NEW; END $$;"
              "CREATE OR REPLACE TRIGGER quiet BEFORE UPDATE ON shard FOR EACH ROW"
              " EXECUTE FUNCTION quiet ()",
              store_fixture_sql (f, "SELECT epoch FROM shard"), how);
    store_fixture_sql (f, sql);
}

void party_end_sessions (const fixture_t *f, const char *name)
{
    char sql[256];
    snprintf (sql, sizeof sql,
              "SELECT pg_terminate_backend (pid) FROM pg_stat_activity WHERE application_name LIKE"
              " 'taskmq %s %%' AND usename = 'taskmq'",
              name);
    store_fixture_sql (f, sql);
}

int party_setup (void **state)
{
    fixture_t *f = fixture_new ("postgresql");
    *state = f;
    return 0;
}

int party_teardown (void **state)
{
    return fixture_teardown (state);
}
