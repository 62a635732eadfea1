/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The store thread over a backend that only notes what it is asked for. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "store/behind.h"
#include "store_support.h"

/* What the backend was asked for, and what it is to answer. */
typedef struct stage {
    behind_t *behind;
    store_options_t options;
    uint64_t next; /* batch */

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    char calls[64]; /* b, w, c, f, R (rest), E (its last call), in their order; R R is one R */
    size_t slices;  /* that are left to be forgotten */
    size_t written; /* batches in all */
    uint64_t newest;
    store_code_t answer; /* of write */
    bool held;           /* write does not come back */
    bool wants_write;    /* of the next rest, once */
    size_t told;         /* by notify */
    store_code_t gave_up;
} stage_t;

/* The lock is held. */
static void note (stage_t *self, char call)
{
    size_t length = strlen (self->calls);
    bool again = call == 'R' && length > 0 && self->calls[length - 1] == 'R';
    if (!again && length + 1 < sizeof (self->calls))
        self->calls[length] = call;
    pthread_cond_broadcast (&self->changed);
}

static store_code_t stage_begin (void *context, store_error_t *error)
{
    (void) error;
    stage_t *self = context;
    pthread_mutex_lock (&self->lock);
    note (self, 'b');
    pthread_mutex_unlock (&self->lock);
    return STORE_OK;
}

static store_code_t stage_write (void *context, const dirty_t *dirty, store_error_t *error)
{
    stage_t *self = context;
    pthread_mutex_lock (&self->lock);
    note (self, 'w');
    while (self->held)
        pthread_cond_wait (&self->changed, &self->lock);
    store_code_t answer = self->answer;
    if (answer == STORE_OK)
        self->written += dirty->count;
    pthread_mutex_unlock (&self->lock);
    return answer == STORE_OK ? STORE_OK : store_fail (error, answer, "as the test wants it");
}

static store_code_t stage_commit (void *context, const batch_t *newest, store_error_t *error)
{
    (void) error;
    stage_t *self = context;
    pthread_mutex_lock (&self->lock);
    note (self, 'c');
    self->newest = newest->no;
    pthread_mutex_unlock (&self->lock);
    return STORE_OK;
}

static store_code_t stage_forget (void *context, int64_t expiry_ms, uint64_t exported, bool *more,
                                  store_error_t *error)
{
    (void) error;
    (void) expiry_ms;
    stage_t *self = context;
    forgotten_space_t gone = {.name = "gone", .last_seq = exported};
    pthread_mutex_lock (&self->lock);
    note (self, 'f');
    bool some = self->slices > 0;
    self->slices -= some;
    *more = self->slices > 0;
    pthread_mutex_unlock (&self->lock);
    if (some) {
        behind_forgets (self->behind, 7);
        behind_forgot (self->behind, &(forgotten_t){.list = &gone, .count = 1});
    }
    return STORE_OK;
}

static store_code_t stage_rest (void *context, behind_rest_t *rest, store_error_t *error)
{
    (void) error;
    stage_t *self = context;
    pthread_mutex_lock (&self->lock);
    note (self, rest->ends ? 'E' : 'R');
    rest->write = self->wants_write && rest->pending;
    self->wants_write = self->wants_write && !rest->write;
    pthread_mutex_unlock (&self->lock);
    return STORE_OK;
}

static const behind_calls_t CALLS = {stage_begin, stage_write, stage_commit, stage_forget,
                                     stage_rest};

static void on_notify (void *context)
{
    stage_t *self = context;
    pthread_mutex_lock (&self->lock);
    self->told++;
    pthread_cond_broadcast (&self->changed);
    pthread_mutex_unlock (&self->lock);
}

static void on_failed (void *context, const store_error_t *error)
{
    stage_t *self = context;
    pthread_mutex_lock (&self->lock);
    self->gave_up = error->code;
    pthread_cond_broadcast (&self->changed);
    pthread_mutex_unlock (&self->lock);
}

static int setup (void **state)
{
    stage_t *self = calloc (1, sizeof (*self));
    store_error_t error;
    pthread_mutex_init (&self->lock, NULL);
    pthread_cond_init (&self->changed, NULL);
    self->options = (store_options_t) STORE_OPTIONS_INIT;
    self->options.dirty_ms_max = 3600 * 1000; /* nothing is due by itself */
    self->options.notify = on_notify;
    self->options.failed = on_failed;
    self->options.notify_context = self;
    self->behind = behind_new (&CALLS, self, &self->options);
    assert_int_equal (behind_start (self->behind, &error), STORE_OK);
    *state = self;
    return 0;
}

static int teardown (void **state)
{
    stage_t *self = *state;
    store_error_t error;
    behind_stop (self->behind, &error); /* a second time, mostly */
    behind_free (self->behind);
    pthread_cond_destroy (&self->changed);
    pthread_mutex_destroy (&self->lock);
    free (self);
    return 0;
}

static void take (stage_t *self, int64_t number)
{
    batch_t *batch = batch_make (++self->next, 1000);
    record_t record = test_record (number);
    batch_add_record (batch, &record);
    behind_take (self->behind, &batch, 1, 0);
}

/* The calls so far hold these, one after the other. */
static void wait_calls (stage_t *self, const char *wanted)
{
    pthread_mutex_lock (&self->lock);
    while (strstr (self->calls, wanted) == NULL)
        pthread_cond_wait (&self->changed, &self->lock);
    pthread_mutex_unlock (&self->lock);
}

static void set_answer (stage_t *self, store_code_t answer, bool held)
{
    pthread_mutex_lock (&self->lock);
    self->answer = answer;
    self->held = held;
    pthread_cond_broadcast (&self->changed);
    pthread_mutex_unlock (&self->lock);
}

static void what_waits_is_written_together (void **state)
{
    stage_t *self = *state;
    store_error_t error;
    overlay_t *overlay;
    take (self, 1);
    take (self, 2);
    assert_int_equal (behind_written (self->behind), 0);
    assert_true (behind_has (self->behind, 2));
    behind_flush (self->behind);
    assert_int_equal (behind_wait_all (self->behind, &overlay, &error), STORE_OK);
    assert_null (overlay);
    assert_int_equal (behind_written (self->behind), 2);
    assert_false (behind_has (self->behind, 2));
    assert_int_equal (self->written, 2);
    assert_int_equal (self->newest, 2);
    assert_true (self->told > 0);
    wait_calls (self, "bwcf");
}

static void many_do_not_wait_for_their_time (void **state)
{
    stage_t *self = *state;
    store_error_t error;
    behind_stop (self->behind, &error);
    behind_free (self->behind);
    self->options.dirty_tasks_max = 3;
    self->behind = behind_new (&CALLS, self, &self->options);
    behind_start (self->behind, &error);
    take (self, 1);
    take (self, 2);
    assert_int_equal (behind_written (self->behind), 0);
    take (self, 3);
    wait_calls (self, "bwc");
    assert_int_equal (self->newest, 3);
}

static void a_stop_writes_everything (void **state)
{
    stage_t *self = *state;
    store_error_t error;
    take (self, 1);
    assert_int_equal (behind_stop (self->behind, &error), STORE_OK);
    assert_int_equal (behind_written (self->behind), 1);
    assert_string_equal (strchr (self->calls, 'b'), "bwcfE");
}

/* Nothing is given up, and whoever has to know reads it from memory meanwhile. */
static void without_space_it_is_tried_again (void **state)
{
    stage_t *self = *state;
    store_error_t error;
    store_stats_t stats = {0};
    overlay_t *overlay;
    set_answer (self, STORE_ERROR_FULL, false);
    take (self, 1);
    assert_int_equal (behind_wait (self->behind, &error), STORE_ERROR_FULL);
    assert_int_equal (behind_wait_all (self->behind, &overlay, &error), STORE_OK);
    assert_non_null (overlay);
    assert_int_equal (overlay_count (overlay), 1);
    overlay_free (overlay);
    behind_stats (self->behind, &stats);
    assert_true (stats.write_back_stalled);
    assert_int_equal (stats.dirty_tasks, 1);
    set_answer (self, STORE_OK, false);
    wait_calls (self, "bwbwcf");
    assert_int_equal (behind_failure (self->behind, &error), STORE_OK);
}

static void any_other_failure_is_told_and_final (void **state)
{
    stage_t *self = *state;
    store_error_t error;
    overlay_t *overlay;
    set_answer (self, STORE_ERROR_IO, false);
    take (self, 1);
    assert_int_equal (behind_wait (self->behind, &error), STORE_ERROR_IO);
    assert_int_equal (behind_wait_all (self->behind, &overlay, &error), STORE_ERROR_IO);
    assert_int_equal (behind_failure (self->behind, &error), STORE_ERROR_IO);
    assert_string_equal (error.text, "as the test wants it");
    wait_calls (self, "bwE");
    assert_int_equal (behind_stop (self->behind, &error), STORE_ERROR_IO);
    assert_int_equal (self->gave_up, STORE_ERROR_IO);
    assert_int_equal (behind_written (self->behind), 0);
}

/* What comes while a write-back is under way is part of the next one. */
static void a_batch_that_comes_late_is_not_lost (void **state)
{
    stage_t *self = *state;
    store_error_t error;
    overlay_t *overlay;
    set_answer (self, STORE_OK, true);
    take (self, 1);
    behind_flush (self->behind);
    wait_calls (self, "bw");
    take (self, 2);
    assert_true (behind_has (self->behind, 1) && behind_has (self->behind, 2));
    set_answer (self, STORE_OK, false);
    assert_int_equal (behind_wait_all (self->behind, &overlay, &error), STORE_OK);
    assert_int_equal (behind_written (self->behind), 2);
    assert_int_equal (self->written, 2);
}

static void the_rest_may_ask_for_a_write_back (void **state)
{
    stage_t *self = *state;
    take (self, 1);
    pthread_mutex_lock (&self->lock);
    self->wants_write = true;
    pthread_mutex_unlock (&self->lock);
    behind_wake (self->behind);
    wait_calls (self, "Rbwc");
    assert_int_equal (self->newest, 1);
}

static void what_is_old_goes_slice_by_slice (void **state)
{
    stage_t *self = *state;
    forgotten_t forgotten;
    size_t told = 0;
    pthread_mutex_lock (&self->lock);
    self->slices = 3;
    pthread_mutex_unlock (&self->lock);
    behind_exported (self->behind, 55);
    take (self, 1);
    behind_flush (self->behind);
    wait_calls (self, "bwcfffR");
    while (told < 3) {
        behind_forgotten (self->behind, &forgotten);
        assert_int_equal (forgotten.upto_seq, 7);
        for (size_t i = 0; i < forgotten.count; i++)
            assert_int_equal (forgotten.list[i].last_seq, 55);
        told += forgotten.count;
        free (forgotten.list);
    }
    behind_forgotten (self->behind, &forgotten);
    assert_int_equal (forgotten.count, 0);
}

#define ON_STAGE(test) cmocka_unit_test_setup_teardown (test, setup, teardown)

int main (void)
{
    const struct CMUnitTest tests[] = {
        ON_STAGE (what_waits_is_written_together),
        ON_STAGE (many_do_not_wait_for_their_time),
        ON_STAGE (a_stop_writes_everything),
        ON_STAGE (without_space_it_is_tried_again),
        ON_STAGE (any_other_failure_is_told_and_final),
        ON_STAGE (a_batch_that_comes_late_is_not_lost),
        ON_STAGE (the_rest_may_ask_for_a_write_back),
        ON_STAGE (what_is_old_goes_slice_by_slice),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
