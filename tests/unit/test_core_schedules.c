/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Schedules: each instant once, through clocks that leap, restarts and failed commits. */
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "core/tasks/schedule.h"
#include "core_rig.h"
#include "ids.h"

enum { SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE };

static uint8_t request_id[16] = {1};

static uint64_t put (rig_t *rig, size_t peer, const Taskmq__Schedule *schedule, bool replace,
                     const char *payload)
{
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    Taskmq__SchedulePut message = TASKMQ__SCHEDULE_PUT__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    Taskmq__Schedule own = *schedule;
    if (schedule->task != NULL)
        spec = *schedule->task;
    if (spec.queue[0] == '\0')
        spec.queue = (char *) "mail";
    spec.payload_bytes = (uint32_t) strlen (payload);
    own.task = &spec;
    message.schedule = &own;
    message.replace = replace;
    request.op_case = TASKMQ__REQUEST__OP_SCHEDULE_PUT;
    request.request_id = (ProtobufCBinaryData){sizeof (request_id), request_id};
    request.schedule_put = &message;
    uint64_t id = rig_send (rig, peer, &request, payload, strlen (payload));
    rig_run (rig);
    return id;
}

static Taskmq__Schedule named (const char *name, const char *calendar)
{
    Taskmq__Schedule schedule = TASKMQ__SCHEDULE__INIT;
    schedule.name = (char *) name;
    schedule.calendar = (char *) calendar;
    return schedule;
}

static void put_well (rig_t *rig, Taskmq__Schedule *schedule)
{
    assert_int_equal (rig_code (rig, 0, put (rig, 0, schedule, false, "hello")), TMQ_OK);
}

/* A request about one that is there. change: what makes its request id, 0 for none. */
static uint64_t about_as (rig_t *rig, size_t peer, Taskmq__Request__OpCase op, const char *name,
                          uint8_t change)
{
    Taskmq__ScheduleName message = TASKMQ__SCHEDULE_NAME__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    uint8_t id[16] = {0, change};
    message.name = (char *) name;
    request.op_case = op;
    request.request_id = (ProtobufCBinaryData){change == 0 ? 0 : sizeof (id), id};
    request.schedule_show = &message; /* all of them have this type */
    if (op == TASKMQ__REQUEST__OP_SCHEDULE_SHOW)
        message.coming = 3;
    uint64_t sent = rig_send (rig, peer, &request, NULL, 0);
    rig_run (rig);
    return sent;
}

static uint64_t about (rig_t *rig, size_t peer, Taskmq__Request__OpCase op, const char *name)
{
    return about_as (rig, peer, op, name, 0);
}

static const Taskmq__Schedule *show (rig_t *rig, const char *name)
{
    uint64_t id = about (rig, 0, TASKMQ__REQUEST__OP_SCHEDULE_SHOW, name);
    assert_int_equal (rig_code (rig, 0, id), TMQ_OK);
    return rig_reply (rig, 0, id)->reply->schedule;
}

/* Tasks in the tables, and in what is not written yet. */
static size_t tasks_made (rig_t *rig)
{
    rig_settle (rig);
    size_t count = 0;
    for (size_t i = 0; i < RIG_TABLE_MAX; i++)
        count += rig->rows[i] != NULL;
    return count;
}

static void an_instant_makes_a_task (void **state)
{
    rig_t *rig = *state;
    Taskmq__Schedule schedule = named ("tick", "@every 1m");
    put_well (rig, &schedule);
    int64_t begun_ms = rig->now.wall_ms;
    assert_int_equal (tasks_made (rig), 0);
    rig_advance (rig, 59 * SECOND);
    assert_int_equal (tasks_made (rig), 0);
    rig_advance (rig, SECOND);
    assert_int_equal (tasks_made (rig), 1);
    rig_advance (rig, 2 * MINUTE);
    assert_int_equal (tasks_made (rig), 3);
    const Taskmq__Schedule *seen = show (rig, "tick");
    assert_int_equal (seen->fired, 3);
    assert_int_equal (seen->last_at, begun_ms + 3 * MINUTE);
    assert_int_equal (seen->n_coming, 3);
    assert_int_equal (seen->coming[0], begun_ms + 4 * MINUTE);
    assert_string_equal (seen->owner, rig->peers[0].identity);
    assert_int_equal (seen->body, 5);
    assert_int_equal (seen->payload.len, 0);
    for (size_t i = 0; i < RIG_TABLE_MAX; i++) {
        const record_t *row = rig->rows[i];
        if (row == NULL)
            continue;
        assert_string_equal (row->owner, rig->peers[0].identity);
        assert_string_equal (row->queue, "mail");
        assert_int_equal (row->payload_bytes, 5);
    }
}

static void wrong_ones_are_refused (void **state)
{
    rig_t *rig = *state;
    Taskmq__Schedule bad = named ("bad", "61 * * * *");
    uint64_t id = put (rig, 0, &bad, false, "");
    assert_int_equal (rig_code (rig, 0, id), TMQ_INVALID);
    assert_string_equal (rig_reply (rig, 0, id)->reply->text,
                         "calendar: 61 is no minute (0 to 59)");
    bad = named ("bad", "@daily");
    bad.zone = (char *) "Mars/Olympus";
    id = put (rig, 0, &bad, false, "");
    assert_int_equal (rig_code (rig, 0, id), TMQ_INVALID);
    assert_string_equal (rig_reply (rig, 0, id)->reply->text,
                         "zone: there is no time zone Mars/Olympus here");
    bad = named ("bad", "0 0 30 2 *");
    id = put (rig, 0, &bad, false, "");
    assert_int_equal (rig_code (rig, 0, id), TMQ_INVALID);
    assert_string_equal (rig_reply (rig, 0, id)->reply->text,
                         "calendar: no such moment ever comes");
    bad = named ("bad", "@every 1h");
    bad.until = (uint64_t) rig->now.wall_ms + MINUTE;
    id = put (rig, 0, &bad, false, "");
    assert_int_equal (rig_code (rig, 0, id), TMQ_INVALID);
    assert_string_equal (rig_reply (rig, 0, id)->reply->text, "until: no moment comes before it");
    id = about (rig, 0, TASKMQ__REQUEST__OP_SCHEDULE_PAUSE, "nobody");
    assert_int_equal (rig_code (rig, 0, id), TMQ_NOT_FOUND);
}

static void a_name_is_one_schedule (void **state)
{
    rig_t *rig = *state;
    Taskmq__Schedule schedule = named ("one", "@every 1m");
    put_well (rig, &schedule);
    assert_int_equal (rig_code (rig, 0, put (rig, 0, &schedule, false, "hello")),
                      TMQ_OK); /* again */
    request_id[0]++;
    assert_int_equal (rig_code (rig, 0, put (rig, 0, &schedule, false, "hello")), TMQ_CONFLICT);
    schedule = named ("one", "@every 10m");
    request_id[0]++;
    assert_int_equal (rig_code (rig, 0, put (rig, 0, &schedule, true, "other")), TMQ_OK);
    rig_advance (rig, 9 * MINUTE);
    assert_int_equal (tasks_made (rig), 0);
    rig_advance (rig, MINUTE);
    assert_int_equal (tasks_made (rig), 1);
}

static void a_pause_is_not_made_up_for (void **state)
{
    rig_t *rig = *state;
    Taskmq__Schedule schedule = named ("p", "@every 1m");
    schedule.missed = MISSED_ALL;
    put_well (rig, &schedule);
    assert_int_equal (rig_code (rig, 0, about (rig, 0, TASKMQ__REQUEST__OP_SCHEDULE_PAUSE, "p")),
                      TMQ_OK);
    rig_advance (rig, 10 * MINUTE);
    assert_int_equal (tasks_made (rig), 0);
    rig_restart (rig);
    rig_link (rig, 0, "default");
    assert_true (show (rig, "p")->paused);
    assert_int_equal (show (rig, "p")->n_coming, 0);
    about (rig, 0, TASKMQ__REQUEST__OP_SCHEDULE_RESUME, "p");
    rig_advance (rig, MINUTE);
    assert_int_equal (tasks_made (rig), 1);
    about (rig, 0, TASKMQ__REQUEST__OP_SCHEDULE_REMOVE, "p");
    rig_advance (rig, 5 * MINUTE);
    assert_int_equal (tasks_made (rig), 1);
    rig_restart (rig);
    rig_advance (rig, 5 * MINUTE);
    assert_int_equal (tasks_made (rig), 1);
}

/* A pause and a clock that went back meanwhile: what was decided stays so. */
static void a_resume_does_not_go_back (void **state)
{
    rig_t *rig = *state;
    Taskmq__Schedule schedule = named ("p", "@every 1m");
    put_well (rig, &schedule);
    rig_advance (rig, 10 * MINUTE);
    uint64_t last_at = show (rig, "p")->last_at;
    about_as (rig, 0, TASKMQ__REQUEST__OP_SCHEDULE_PAUSE, "p", 1);
    rig->now.wall_ms -= 2 * HOUR;
    rig_advance (rig, MINUTE);
    about_as (rig, 0, TASKMQ__REQUEST__OP_SCHEDULE_RESUME, "p", 2);
    assert_false (show (rig, "p")->paused);
    assert_true (show (rig, "p")->last_at >= last_at);
}

/* All that others see of a schedule does not tell them the ids of its tasks: who submits a task of
 * such an id first would take the place of the schedule's. */
static void nobody_can_tell_the_id_of_an_instant (void **state)
{
    rig_t *rig = *state;
    Taskmq__Schedule schedule = named ("tick", "@every 1m");
    tmq_id_t guess;
    uint8_t hash[crypto_generichash_BYTES];
    crypto_generichash_state known;
    put_well (rig, &schedule);
    const Taskmq__Schedule *seen = show (rig, "tick");
    assert_int_equal (seen->salt.len, 0);
    uint64_t made_at = seen->created_at;
    rig_advance (rig, MINUTE);
    seen = show (rig, "tick");
    const uint64_t numbers[] = {made_at, seen->last_at, (uint64_t) seen->last_local};
    crypto_generichash_init (&known, NULL, 0, sizeof (hash));
    crypto_generichash_update (&known, (const uint8_t *) "default", sizeof ("default"));
    crypto_generichash_update (&known, (const uint8_t *) "tick", sizeof ("tick"));
    crypto_generichash_update (&known, (const uint8_t *) numbers, sizeof (numbers));
    crypto_generichash_final (&known, hash, sizeof (hash));
    id_make (&guess, (int64_t) seen->last_at, hash);
    assert_int_equal (seen->last_task.len, sizeof (guess));
    assert_memory_not_equal (seen->last_task.data, &guess, sizeof (guess));
}

/* Its first request arrives once more, when it has been paused. */
static void a_late_repeat_undoes_nothing (void **state)
{
    rig_t *rig = *state;
    Taskmq__Schedule schedule = named ("late", "@every 1m");
    uint8_t first = ++request_id[0];
    assert_int_equal (rig_code (rig, 0, put (rig, 0, &schedule, true, "hello")), TMQ_OK);
    for (uint8_t i = 0; i < 5; i++)
        about_as (rig, 0,
                  i % 2 == 0 ? TASKMQ__REQUEST__OP_SCHEDULE_PAUSE
                             : TASKMQ__REQUEST__OP_SCHEDULE_RESUME,
                  "late", 100 + i);
    rig_restart (rig);
    rig_link (rig, 0, "default");
    request_id[0] = first;
    assert_int_equal (rig_code (rig, 0, put (rig, 0, &schedule, true, "hello")), TMQ_OK);
    assert_true (show (rig, "late")->paused);
    about_as (rig, 0, TASKMQ__REQUEST__OP_SCHEDULE_RESUME, "late", 103); /* a repeat, too */
    assert_true (show (rig, "late")->paused);
    for (unsigned i = 0; i < 20; i++) {
        request_id[0]++;
        put (rig, 0, &schedule, true, "hello");
    }
    rig_restart (rig);
    rig_link (rig, 0, "default");
    assert_int_equal (rig_code (rig, 0, put (rig, 0, &schedule, true, "hello")), TMQ_OK);
    assert_int_equal (show (rig, "late")->version, 26);
}

/* What is stored is not understood. */

static bool zone_is_there = true;

static const zone_t *some_zone (void *context, const char *name)
{
    static const zone_t zone;
    (void) context;
    return zone_is_there && strcmp (name, "Mars/Olympus") == 0 ? &zone : NULL;
}

static void count_broken (void *context, const char *ns, const char *name, const char *why)
{
    int *count = context;
    assert_string_equal (ns, "default");
    assert_string_equal (name, "mars");
    assert_string_equal (why, "its time zone is not there any more");
    (*count)++;
}

static void one_without_its_zone_stays_and_says_so (void **state)
{
    (void) state;
    int told = 0;
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.zone = some_zone;
    rig_t *rig = rig_new_with (&config);
    rig_link (rig, 0, "default");
    Taskmq__Schedule schedule = named ("mars", "@every 1m");
    schedule.zone = (char *) "Mars/Olympus";
    put_well (rig, &schedule);
    engine_tell_broken (rig->engine, count_broken, &told);
    assert_int_equal (told, 0);
    zone_is_there = false;
    rig_restart (rig);
    rig_link (rig, 0, "default");
    engine_tell_broken (rig->engine, count_broken, &told);
    assert_int_equal (told, 1);
    rig_advance (rig, 5 * MINUTE);
    assert_int_equal (tasks_made (rig), 0);
    assert_string_equal (show (rig, "mars")->last_error, "its time zone is not there any more");
    zone_is_there = true;
    rig_restart (rig);
    rig_link (rig, 0, "default");
    assert_string_equal (show (rig, "mars")->last_error, "");
    rig_advance (rig, MINUTE);
    assert_int_equal (tasks_made (rig), 2); /* that of the last minute was not late yet */
    rig_free (rig);
}

/* As a newer version may have stored it. */
static void one_with_a_strange_calendar_stays_and_is_put_anew (void **state)
{
    rig_t *rig = *state;
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    Taskmq__Schedule stored = named ("odd", "every full moon");
    row_key_t key = ROW_KEY_INIT;
    uint8_t body[256];
    spec.queue = (char *) "mail";
    stored.task = &spec;
    stored.owner = (char *) rig->peers[0].identity;
    row_key_text (&key, "default");
    row_key_text (&key, "odd");
    row_t row = row_make (ROW_KIND_SCHEDULE, key.bytes, key.length, body,
                          taskmq__schedule__pack (&stored, body));
    engine_restore_row (rig->engine, &row);
    row_drop (&row);
    assert_string_equal (show (rig, "odd")->last_error, "its calendar is not understood");
    rig_advance (rig, 5 * MINUTE);
    assert_int_equal (tasks_made (rig), 0);
    uint64_t id = about (rig, 0, TASKMQ__REQUEST__OP_SCHEDULE_PAUSE, "odd");
    assert_int_equal (rig_code (rig, 0, id), TMQ_INVALID);
    Taskmq__Schedule better = named ("odd", "@every 1m");
    assert_int_equal (rig_code (rig, 0, put (rig, 0, &better, true, "")), TMQ_OK);
    rig_advance (rig, MINUTE);
    assert_int_equal (tasks_made (rig), 1);
}

/* The broker was away for ten minutes and five seconds. */
static size_t made_after_absence (rig_t *rig, schedule_missed_t missed)
{
    Taskmq__Schedule schedule = named ("m", "@every 1m");
    schedule.missed = missed;
    put_well (rig, &schedule);
    rig_settle (rig);
    rig->now.wall_ms += 10 * MINUTE + 5 * SECOND;
    rig->now.mono_ms += 10 * MINUTE + 5 * SECOND;
    rig_restart (rig);
    rig_advance (rig, 2 * SECOND);
    size_t made = tasks_made (rig);
    rig_restart (rig); /* what was decided stays decided */
    rig_advance (rig, 2 * SECOND);
    assert_int_equal (tasks_made (rig), made);
    return made;
}

static void what_was_missed_is_passed_over (void **state)
{
    assert_int_equal (made_after_absence (*state, MISSED_SKIP), 1); /* the tenth is not late */
}

static void what_was_missed_comes_once (void **state)
{
    assert_int_equal (made_after_absence (*state, MISSED_ONE), 2);
}

static void what_was_missed_is_made_up_for (void **state)
{
    assert_int_equal (made_after_absence (*state, MISSED_ALL), 10);
}

/* It ended while the broker was away: what is owed lies before its end. */
static void what_was_missed_before_the_end_is_made_up_for (void **state)
{
    rig_t *rig = *state;
    Taskmq__Schedule schedule = named ("m", "@every 1m");
    schedule.missed = MISSED_ONE;
    schedule.until = (uint64_t) rig->now.wall_ms + 3 * MINUTE + SECOND;
    put_well (rig, &schedule);
    rig_settle (rig);
    rig->now.wall_ms += 10 * MINUTE;
    rig->now.mono_ms += 10 * MINUTE;
    rig_restart (rig);
    rig_advance (rig, 2 * SECOND);
    assert_int_equal (tasks_made (rig), 1);
}

static void not_more_than_a_hundred_are_made_up_for (void **state)
{
    rig_t *rig = *state;
    Taskmq__Schedule schedule = named ("m", "@every 1s");
    schedule.missed = MISSED_ALL;
    put_well (rig, &schedule);
    rig_settle (rig);
    int64_t begun_ms = rig->now.wall_ms;
    rig->now.wall_ms += 24 * (int64_t) HOUR;
    rig->now.mono_ms += 24 * (int64_t) HOUR;
    rig_restart (rig);
    rig_link (rig, 0, "default");
    rig_advance (rig, 20 * SECOND + 500);
    /* The first look is a second after the start: what is late is late by then. */
    assert_int_equal (tasks_made (rig), SCHEDULE_MISSED_MAX + 59 + 20);
    assert_int_equal (show (rig, "m")->last_at, begun_ms + 24 * (int64_t) HOUR + 20 * SECOND);
}

static void a_clock_that_leaps_makes_none_twice (void **state)
{
    rig_t *rig = *state;
    Taskmq__Schedule schedule = named ("l", "*/10 * * * *");
    put_well (rig, &schedule);
    rig_advance (rig, HOUR);
    size_t made = tasks_made (rig);
    assert_int_equal (made, 6);
    rig->now.wall_ms -= HOUR; /* back: they have been */
    rig_advance (rig, HOUR - MINUTE);
    assert_int_equal (tasks_made (rig), made);
    rig_advance (rig, 11 * MINUTE);
    assert_int_equal (tasks_made (rig), made + 1);
    rig->now.wall_ms += 30 * MINUTE; /* forward: three, of which none or one is on time */
    rig_advance (rig, 2 * MINUTE);
    size_t more = tasks_made (rig) - made - 1;
    assert_true (more <= 1);
}

/* The clock has leapt by more than an hour. A start finds the time of the newest commit, which the
 * leap is not counted in while it is held. */
static void restart_held (rig_t *rig)
{
    rig_settle (rig);
    int64_t newest_ms = 0;
    for (uint64_t no = rig->committed; no > 0 && newest_ms == 0; no--)
        newest_ms = rig->batches[no] == NULL ? 0 : rig->batches[no]->expiry_ms;
    rig_restart_at (rig, newest_ms == 0 ? rig->boot.newest_ms : newest_ms);
}

static void step_clock (rig_t *rig, int64_t ms, bool restarts)
{
    rig->now.wall_ms += ms;
    if (restarts)
        restart_held (rig);
}

enum { DAY = 24 * HOUR };

/* A day ahead for some minutes, then right again: no instant of that day has come. */
static void blip_of_a_day (rig_t *rig, bool restarts)
{
    Taskmq__Schedule schedule = named ("b", "@every 2m");
    put_well (rig, &schedule);
    rig_advance (rig, 10 * MINUTE);
    assert_int_equal (tasks_made (rig), 5);
    step_clock (rig, DAY, restarts);
    rig_advance (rig, 5 * MINUTE);
    if (restarts)
        restart_held (rig);
    rig_advance (rig, 3 * MINUTE);
    step_clock (rig, -(int64_t) DAY, restarts);
    rig_advance (rig, 2 * MINUTE + SECOND);
    rig_link (rig, 0, "default");
    assert_int_equal (show (rig, "b")->last_at, show (rig, "b")->created_at + 20 * MINUTE);
    /* A start knows of nothing that waited: what came before it is late. */
    assert_int_equal (tasks_made (rig), restarts ? 7 : 10);
    rig_advance (rig, 10 * MINUTE);
    assert_int_equal (tasks_made (rig), restarts ? 12 : 15);
}

static void a_clock_that_leaps_and_comes_back_changes_nothing (void **state)
{
    blip_of_a_day (*state, false);
}

static void nor_with_starts_in_between (void **state)
{
    blip_of_a_day (*state, true);
}

static void what_comes_while_a_leap_is_held_is_not_missed (void **state)
{
    rig_t *rig = *state;
    Taskmq__Schedule schedule = named ("w", "@every 2m");
    put_well (rig, &schedule);
    step_clock (rig, DAY, false);
    rig_advance (rig, 9 * MINUTE);
    assert_int_equal (tasks_made (rig), 0);
    rig_advance (rig, 2 * MINUTE);
    assert_int_equal (tasks_made (rig), 5);
    assert_int_equal (show (rig, "w")->last_at, show (rig, "w")->created_at + DAY + 10 * MINUTE);
    rig_advance (rig, 10 * MINUTE);
    assert_int_equal (tasks_made (rig), 10);
}

static void a_commit_that_fails_loses_no_instant (void **state)
{
    rig_t *rig = *state;
    Taskmq__Schedule schedule = named ("c", "@every 1m");
    put_well (rig, &schedule);
    rig_settle (rig);
    rig->now.wall_ms += MINUTE;
    rig->now.mono_ms += MINUTE;
    engine_tick (rig->engine, rig->now, rig->now.mono_ms, 0);
    rig_take (rig);
    rig_fail_commit (rig); /* the task and the place of the schedule go together */
    rig_advance (rig, SECOND);
    assert_int_equal (tasks_made (rig), 1);
    rig_link (rig, 0, "default");
    assert_int_equal (show (rig, "c")->fired, 1);
}

static void the_task_before_decides (void **state)
{
    rig_t *rig = *state;
    Taskmq__Schedule schedule = named ("skip", "@every 1m");
    schedule.overlap = OVERLAP_SKIP;
    put_well (rig, &schedule);
    rig_advance (rig, 3 * MINUTE);
    assert_int_equal (tasks_made (rig), 1);
    assert_int_equal (show (rig, "skip")->skipped, 2);
    assert_string_equal (show (rig, "skip")->last_error,
                         "the task of the instant before has not ended");
    about (rig, 0, TASKMQ__REQUEST__OP_SCHEDULE_REMOVE, "skip");
    schedule = named ("cancel", "@every 1m");
    schedule.overlap = OVERLAP_CANCEL;
    put_well (rig, &schedule);
    rig_advance (rig, 3 * MINUTE);
    assert_int_equal (tasks_made (rig), 4);
    size_t cancelled = 0;
    for (size_t i = 0; i < RIG_TABLE_MAX; i++)
        cancelled += rig->rows[i] != NULL && rig->rows[i]->status == TMQ_STATUS_CANCELLED;
    assert_int_equal (cancelled, 2);
}

static void it_ends (void **state)
{
    rig_t *rig = *state;
    Taskmq__Schedule schedule = named ("u", "@every 1m");
    schedule.until = (uint64_t) rig->now.wall_ms + 150 * SECOND;
    put_well (rig, &schedule);
    assert_int_equal (show (rig, "u")->n_coming, 2);
    rig_advance (rig, 10 * MINUTE);
    assert_int_equal (tasks_made (rig), 2);
    assert_int_equal (show (rig, "u")->n_coming, 0);
}

static void others_do_not_see_it (void **state)
{
    rig_t *rig = *state;
    rig_access (rig, "alice uid:0 client(default/*)\nbob uid:1 client(default/*)\n"
                     "olga uid:2 operator\n");
    rig->peers[0].identity = "alice";
    rig->peers[1].identity = "bob";
    rig->peers[2].identity = "olga";
    for (size_t i = 0; i < 3; i++)
        rig_link (rig, i, "default");
    Taskmq__Schedule schedule = named ("hers", "@every 1m");
    put_well (rig, &schedule);
    uint64_t id = about (rig, 1, TASKMQ__REQUEST__OP_SCHEDULE_SHOW, "hers");
    assert_int_equal (rig_code (rig, 1, id), TMQ_NOT_FOUND);
    id = about (rig, 1, TASKMQ__REQUEST__OP_SCHEDULE_REMOVE, "hers");
    assert_int_equal (rig_code (rig, 1, id), TMQ_NOT_FOUND);
    assert_int_equal (rig_code (rig, 1, put (rig, 1, &schedule, true, "")), TMQ_CONFLICT);
    id = about (rig, 2, TASKMQ__REQUEST__OP_SCHEDULE_PAUSE, "hers");
    assert_int_equal (rig_code (rig, 2, id), TMQ_OK);
    about (rig, 2, TASKMQ__REQUEST__OP_SCHEDULE_RESUME, "hers");
    /* Her right ends: the instant makes no task, and says why. */
    rig_access (rig, "olga uid:2 operator\nalice uid:0 reader(default/*)\n");
    rig_advance (rig, MINUTE);
    assert_int_equal (tasks_made (rig), 0);
    rig_link (rig, 2, "default");
    id = about (rig, 2, TASKMQ__REQUEST__OP_SCHEDULE_SHOW, "hers");
    assert_string_equal (rig_reply (rig, 2, id)->reply->schedule->last_error,
                         "its owner has no right to submit to this queue");
}

static void a_page_goes_on_behind_its_last_name (void **state)
{
    enum { COUNT = 25, PAGE = 10 };
    rig_t *rig = *state;
    char name[16];
    char after[16] = "";
    for (int i = COUNT; i > 0; i--) {
        snprintf (name, sizeof (name), "s%03d", i);
        Taskmq__Schedule schedule = named (name, "@daily");
        put_well (rig, &schedule);
    }
    size_t seen = 0;
    for (bool more = true; more;) {
        Taskmq__ScheduleList list = TASKMQ__SCHEDULE_LIST__INIT;
        Taskmq__Request request = TASKMQ__REQUEST__INIT;
        list.after = after;
        list.limit = PAGE;
        request.op_case = TASKMQ__REQUEST__OP_SCHEDULE_LIST;
        request.schedule_list = &list;
        uint64_t id = rig_send (rig, 0, &request, NULL, 0);
        rig_run (rig);
        const Taskmq__SchedulePage *page = rig_reply (rig, 0, id)->reply->schedule_page;
        for (size_t i = 0; i < page->n_schedules; i++) {
            snprintf (name, sizeof (name), "s%03zu", ++seen);
            assert_string_equal (page->schedules[i]->name, name);
            snprintf (after, sizeof (after), "%s", name);
        }
        more = page->more;
        assert_true (page->n_schedules == PAGE || !more);
    }
    assert_int_equal (seen, COUNT);
}

/* A long history of a thousand schedules that make up for all they missed: crashes with and without
 * the newest batch, failed commits, clocks that leap. In the end each instant has made one task. */

enum { MANY = 1000, STEPS = 150, PERIOD_MIN = 20, PERIODS = 40 /* minutes */ };

static uint32_t chance = 1;

static uint32_t draw (uint32_t below)
{
    chance = chance * 1664525u + 1013904223u;
    return (chance >> 8) % below;
}

static void put_many (rig_t *rig)
{
    char name[16];
    char calendar[32];
    for (int i = 0; i < MANY; i++) {
        Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
        snprintf (name, sizeof (name), "s%d", i);
        snprintf (calendar, sizeof (calendar), "@every %dm", PERIOD_MIN + i % PERIODS);
        Taskmq__Schedule schedule = named (name, calendar);
        schedule.missed = MISSED_ALL;
        schedule.task = &spec;
        spec.queue = name;
        spec.ttl_never = true;
        put_well (rig, &schedule);
    }
}

/* One thing that happens; the highest time on the wall so far. */
static void happen (rig_t *rig, int64_t *highest_ms)
{
    int64_t away_ms = (int64_t) draw (10 * MINUTE);
    switch (draw (8)) {
    case 0: /* a crash; what was not durable is lost */
        rig->now.wall_ms += away_ms;
        rig->now.mono_ms += away_ms;
        rig_restart (rig);
        break;
    case 1: /* … between the look at the schedules and the commit */
        rig->now.wall_ms += MINUTE;
        rig->now.mono_ms += MINUTE;
        engine_tick (rig->engine, rig->now, rig->now.mono_ms, 0);
        rig_restart (rig);
        break;
    case 2:
        rig->now.wall_ms += MINUTE;
        rig->now.mono_ms += MINUTE;
        engine_tick (rig->engine, rig->now, rig->now.mono_ms, 0);
        rig_take (rig);
        rig_fail_commit (rig);
        break;
    case 3: rig->now.wall_ms -= away_ms; break;
    case 4: rig->now.wall_ms += away_ms; break;
    case 5: /* a day ahead for less time than a leap is held */
        step_clock (rig, DAY, draw (2) == 0);
        rig_advance (rig, (int64_t) draw (8 * MINUTE));
        step_clock (rig, -(int64_t) DAY, draw (2) == 0);
        break;
    default: break;
    }
    rig_advance (rig, (int64_t) draw (2 * MINUTE));
    if (*highest_ms < rig->now.wall_ms)
        *highest_ms = rig->now.wall_ms;
}

/* Tasks of one queue, none of them of the same instant. */
static size_t count_instants (const rig_t *rig, const char *queue)
{
    enum { INSTANTS_MAX = 200 };
    int64_t seen[INSTANTS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < rig->rows_end; i++) {
        const record_t *row = rig->rows[i];
        if (row == NULL || strcmp (row->queue, queue) != 0)
            continue;
        int64_t instant = id_time_ms (&row->id);
        for (size_t k = 0; k < count; k++)
            assert_int_not_equal (seen[k], instant);
        assert_true (count < INSTANTS_MAX);
        seen[count++] = instant;
    }
    return count;
}

static void a_thousand_miss_and_repeat_nothing (void **state)
{
    rig_t *rig = *state;
    char name[16];
    put_many (rig);
    rig_settle (rig);
    int64_t highest_ms = rig->now.wall_ms;
    for (int i = 0; i < STEPS; i++)
        happen (rig, &highest_ms);
    if (rig->now.wall_ms < highest_ms)
        rig->now.wall_ms = highest_ms;
    rig_advance (rig, 5 * MINUTE);
    rig_settle (rig);
    rig_link (rig, 0, "default");
    for (int i = 0; i < MANY; i += 7) {
        int64_t period_ms = (PERIOD_MIN + i % PERIODS) * (int64_t) MINUTE;
        snprintf (name, sizeof (name), "s%d", i);
        const Taskmq__Schedule *seen = show (rig, name);
        int64_t due = (rig->now.wall_ms - (int64_t) seen->created_at) / period_ms;
        assert_int_equal (seen->fired, due);
        assert_int_equal (count_instants (rig, name), due);
        rig_forget (rig, 0);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, rig_setup, rig_teardown)

static rig_t *rig_with_rates (uint32_t rate, uint32_t space_rate)
{
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.instants_rate = rate;
    config.space_instants_rate = space_rate;
    rig_t *rig = rig_new_with (&config);
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "other");
    return rig;
}

static unsigned code_of_put (rig_t *rig, size_t peer, unsigned n, const char *calendar,
                             const char *payload)
{
    char name[16];
    snprintf (name, sizeof (name), "s%u", n);
    Taskmq__Schedule schedule = named (name, calendar);
    request_id[1]++;
    return rig_code (rig, peer, put (rig, peer, &schedule, true, payload));
}

static void there_are_only_so_many_instants (void **state)
{
    (void) state;
    rig_t *rig = rig_with_rates (5, 3);
    char big[INSTANT_BYTES + 1];
    memset (big, 'x', sizeof (big) - 1);
    big[sizeof (big) - 1] = '\0';
    for (unsigned n = 1; n <= 3; n++)
        assert_int_equal (code_of_put (rig, 0, n, "@every 1s", ""), TMQ_OK);
    assert_int_equal (code_of_put (rig, 0, 4, "@every 1s", ""), TMQ_LIMIT);
    assert_int_equal (code_of_put (rig, 0, 4, "* * * * *", ""), TMQ_LIMIT);
    assert_int_equal (code_of_put (rig, 0, 3, "@every 2s", ""), TMQ_OK); /* gives half a one back */
    assert_int_equal (code_of_put (rig, 0, 4, "*/5 * * * *", ""), TMQ_OK);
    assert_int_equal (code_of_put (rig, 1, 1, "@every 1s", ""), TMQ_OK);
    assert_int_equal (code_of_put (rig, 1, 2, "@every 1s", big), TMQ_LIMIT); /* it counts twice */
    assert_int_equal (code_of_put (rig, 1, 2, "@every 1s", ""), TMQ_OK);
    assert_int_equal (code_of_put (rig, 1, 3, "@every 1s", ""), TMQ_LIMIT); /* of all */
    rig_restart (rig);
    rig_link (rig, 0, "default");
    assert_int_equal (code_of_put (rig, 0, 5, "@every 1s", ""), TMQ_LIMIT);
    assert_int_equal (rig_code (rig, 0, about (rig, 0, TASKMQ__REQUEST__OP_SCHEDULE_REMOVE, "s1")),
                      TMQ_OK);
    assert_int_equal (code_of_put (rig, 0, 5, "@every 1s", ""), TMQ_OK);
    rig_free (rig);
}

/* They are later than what would count as missed. */
static void instants_of_one_moment_wait_for_their_turn (void **state)
{
    enum { CROWD = INSTANTS_AT_ONCE + 100 };
    (void) state;
    rig_t *rig = rig_with_rates (1, 1);
    for (unsigned n = 1; n <= CROWD; n++)
        assert_int_equal (code_of_put (rig, 0, n, "0 * * * *", ""), TMQ_OK);
    int64_t hour_ms = HOUR - rig->now.wall_ms % HOUR;
    rig_advance (rig, hour_ms + SECOND);
    size_t at_once = tasks_made (rig);
    assert_in_range (at_once, INSTANTS_AT_ONCE, INSTANTS_AT_ONCE + 2);
    size_t waiting = 0;
    for (unsigned n = 1; n <= CROWD; n++) {
        char name[16];
        snprintf (name, sizeof (name), "s%u", n);
        waiting += strstr (show (rig, name)->last_error, "waits for its turn") != NULL;
    }
    assert_int_equal (waiting, CROWD - at_once);
    uint64_t submit = rig_submit (rig, 0, 1, "q", "");
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, submit), TMQ_OK); /* others do not wait */
    rig_advance (rig, 10 * SECOND);
    assert_in_range (tasks_made (rig), at_once + 10, at_once + 13);
    rig_advance (rig, 100 * SECOND);
    assert_int_equal (tasks_made (rig), CROWD + 1);
    rig_advance (rig, 10 * MINUTE);
    assert_int_equal (tasks_made (rig), CROWD + 1);
    rig_free (rig);
}

/* Of the seconds of a minute a few are tried, and the reason is told. */
static void one_that_cannot_fire_tries_more_and_more_rarely (void **state)
{
    (void) state;
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.live_tasks_max = 1;
    rig_t *rig = rig_new_with (&config);
    rig_link (rig, 0, "default");
    Taskmq__Schedule schedule = named ("tick", "@every 30s");
    put_well (rig, &schedule);
    rig_submit (rig, 0, 1, "q", "");
    rig_advance (rig, 30 * SECOND); /* tried at 30 s, 31, 33, 37 … */
    assert_string_not_equal (show (rig, "tick")->last_error, "");
    rig_advance (rig, 8 * SECOND);
    rig_cancel (rig, 0, 1);
    rig_advance (rig, 6 * SECOND);
    assert_int_equal (show (rig, "tick")->fired, 0);
    rig_advance (rig, 2 * SECOND);
    assert_int_equal (show (rig, "tick")->fired, 1);
    assert_string_equal (show (rig, "tick")->last_error, "");
    rig_free (rig);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (an_instant_makes_a_task),
        TEST (wrong_ones_are_refused),
        TEST (a_name_is_one_schedule),
        TEST (a_pause_is_not_made_up_for),
        TEST (a_resume_does_not_go_back),
        TEST (nobody_can_tell_the_id_of_an_instant),
        TEST (a_late_repeat_undoes_nothing),
        cmocka_unit_test (one_without_its_zone_stays_and_says_so),
        TEST (one_with_a_strange_calendar_stays_and_is_put_anew),
        TEST (what_was_missed_is_passed_over),
        TEST (what_was_missed_comes_once),
        TEST (what_was_missed_is_made_up_for),
        TEST (what_was_missed_before_the_end_is_made_up_for),
        TEST (not_more_than_a_hundred_are_made_up_for),
        TEST (a_clock_that_leaps_makes_none_twice),
        TEST (a_clock_that_leaps_and_comes_back_changes_nothing),
        TEST (nor_with_starts_in_between),
        TEST (what_comes_while_a_leap_is_held_is_not_missed),
        TEST (a_commit_that_fails_loses_no_instant),
        TEST (the_task_before_decides),
        TEST (it_ends),
        TEST (others_do_not_see_it),
        TEST (a_page_goes_on_behind_its_last_name),
        cmocka_unit_test (there_are_only_so_many_instants),
        cmocka_unit_test (instants_of_one_moment_wait_for_their_turn),
        cmocka_unit_test (one_that_cannot_fire_tries_more_and_more_rarely),
        TEST (a_thousand_miss_and_repeat_nothing),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
