/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The ready order with fair keys and requirements, against a model that looks at everything each
 * time: 10,000 histories in which all happens by chance. And how long tenants wait beside one who
 * submits nearly all. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/tasks/extras.h"
#include "core/tasks/lanes.h"
#include "core/tasks/space.h"
#include "support/cmocka_all.h"

enum {
    TASKS_MAX = 48,
    KEYS = 4,
    NO_KEY = KEYS,
    SETS = 3,
    LEVELS = 3,
    LANES = (KEYS + 1) * SETS * LEVELS,
    HISTORIES = 10000,
    STEPS = 60
};

static const unsigned PRIORITIES[LEVELS] = {0, 100, 255};

/* The rooms that the order needs. */
typedef struct rig {
    base_t base;
    history_t history;
    tasks_t tasks;
    queue_t *queue;
} rig_t;

/* A task as the model sees it. */
typedef struct item {
    task_t *task;
    detail_t detail;
    unsigned key;
    unsigned set; /* 0 requires nothing, 1 the label a, 2 the labels a and b */
    unsigned level;
    unsigned held; /* the key that its lease counts for */
    bool parked;   /* its old key was at its cap when the keys changed: it may wait for its move */
    bool live;
    bool ready;
    bool running;
} item_t;

typedef struct model {
    rig_t *rig;
    item_t items[TASKS_MAX];
    int64_t numbers;
    unsigned cap;
    bool keyless;                     /* the fair key is the owner, whom the tasks lack */
    unsigned overtaken[LANES][LANES]; /* so often by that one, since it was served or came */
} model_t;

static uint64_t random_state;

static unsigned below (unsigned limit)
{
    random_state = random_state * UINT64_C (6364136223846793005) + UINT64_C (1442695040888963407);
    return (unsigned) (random_state >> 33) % limit;
}

static rig_t *rig_new (unsigned planted_bug)
{
    rig_t *rig = calloc (1, sizeof (*rig));
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.planted_bug = planted_bug;
    base_init (&rig->base, &config);
    history_init (&rig->history, &rig->base);
    tasks_init (&rig->tasks, &rig->base, &rig->history);
    rig->queue = queue_make (&rig->tasks, space_make (&rig->tasks, "default"), "q");
    return rig;
}

static void rig_free (rig_t *rig)
{
    tasks_free (&rig->tasks);
    base_free (&rig->base);
    free (rig);
}

static buf_t *extra_of (unsigned key, unsigned set)
{
    char text[8];
    Taskmq__Extra extra = TASKMQ__EXTRA__INIT;
    Taskmq__Label a = TASKMQ__LABEL__INIT;
    Taskmq__Label b = TASKMQ__LABEL__INIT;
    Taskmq__Label *needs[] = {&b, &a};
    a.key = a.value = (char *) "a";
    b.key = b.value = (char *) "b";
    snprintf (text, sizeof (text), "k%u", key);
    if (key != NO_KEY)
        extra.fair_key = text;
    extra.needs = set == 2 ? needs : needs + 1;
    extra.n_needs = set;
    return extra_pack (&extra);
}

static void item_begin (model_t *model, item_t *item, unsigned key, unsigned set, unsigned level)
{
    rig_t *rig = model->rig;
    *item = (item_t){.key = key, .set = set, .level = level, .live = true, .ready = true};
    task_t *task = item->task = slab_take (&rig->tasks.slab);
    task->number = ++model->numbers;
    task->queue = rig->queue;
    task->priority = (uint8_t) PRIORITIES[level];
    task->detail = &item->detail;
    buf_t *packed = extra_of (key, set);
    extras_take (&rig->tasks, task, packed);
    buf_drop (packed);
    needs_begin (&rig->tasks, task);
    lanes_push (&rig->tasks, task);
}

static void item_end (model_t *model, item_t *item)
{
    rig_t *rig = model->rig;
    if (item->ready)
        lanes_remove (&rig->tasks, item->task);
    if (item->running)
        lanes_release (&rig->tasks, item->task);
    needs_end (&rig->tasks, item->task);
    extras_drop (&rig->tasks, item->task);
    item->task->detail = NULL;
    slab_give (&rig->tasks.slab, item->task);
    item->live = item->ready = item->running = false;
}

/* The model. */

static unsigned key_of (const model_t *model, const item_t *item)
{
    return model->keyless ? NO_KEY : item->key;
}

static unsigned lane_of (const model_t *model, const item_t *item)
{
    return (item->level * SETS + item->set) * (KEYS + 1) + key_of (model, item);
}

static bool is_capped (const model_t *model, const item_t *item)
{
    unsigned running = 0;
    unsigned key = key_of (model, item);
    if (key == NO_KEY || model->cap == 0)
        return false;
    for (const item_t *at = model->items; at < model->items + TASKS_MAX; at++)
        running += at->live && at->running && at->held == key;
    return running >= model->cap;
}

/* labels: 0, 1 (a) or 2 (a and b). */
static bool may_have (const model_t *model, const item_t *item, unsigned labels)
{
    return item->live && item->ready && item->set <= labels && !is_capped (model, item);
}

/* It is of the highest priority that may be had, and the first of its lane; while tasks move to
 * other lanes, only the former. */
static void judge_choice (const model_t *model, const item_t *chosen, unsigned labels)
{
    bool moving = lanes_are_moving (model->rig->queue);
    for (const item_t *at = model->items; at < model->items + TASKS_MAX; at++) {
        if (!may_have (model, at, labels) || (moving && at->parked))
            continue;
        if (chosen == NULL && moving && model->rig->base.round.lanes == 0)
            return; /* the round has moved as many as it may */
        if (chosen == NULL)
            fail_msg ("nothing is given, task %ld could be", (long) at->task->number);
        if (at->level > chosen->level)
            fail_msg ("a task of a lower priority is given");
        if (!moving && lane_of (model, at) == lane_of (model, chosen) &&
            at->task->number < chosen->task->number)
            fail_msg ("a later task of a lane is given");
    }
}

/* Nobody is passed over more than twice by the same lane: once because that was before it, once
 * because it came in between. */
static void judge_turn (model_t *model, const item_t *chosen, unsigned labels)
{
    bool there[LANES] = {false};
    bool open[LANES] = {false};
    unsigned lane = lane_of (model, chosen);
    for (const item_t *at = model->items; at < model->items + TASKS_MAX; at++) {
        there[at->live && at->ready ? lane_of (model, at) : lane] = true;
        if (may_have (model, at, labels) && at->level == chosen->level)
            open[lane_of (model, at)] = true;
        if (at->live && at->ready && is_capped (model, at))
            memset (model->overtaken[lane_of (model, at)], 0, sizeof (model->overtaken[0]));
    }
    for (unsigned i = 0; i < LANES; i++) {
        if (!there[i] || i == lane)
            memset (model->overtaken[i], 0, sizeof (model->overtaken[i]));
        else if (open[i] && ++model->overtaken[i][lane] > 2)
            fail_msg ("lane %u is passed over by lane %u again and again", i, lane);
    }
}

static order_set_t orders_for (rig_t *rig, unsigned labels)
{
    static const char *const NAMES[] = {"a", "b"};
    order_set_t orders = {0};
    name_t *names[2];
    for (unsigned i = 0; i < labels; i++) {
        Taskmq__Label label = TASKMQ__LABEL__INIT;
        label.key = label.value = (char *) NAMES[i];
        names[i] = needs_name (&rig->tasks, &label);
    }
    needs_judge (&rig->tasks, rig->queue, &orders, names, labels);
    for (unsigned i = 0; i < labels; i++)
        names_drop (&rig->base.names, names[i]);
    return orders;
}

static item_t *item_of (model_t *model, const task_t *task)
{
    item_t *item = model->items;
    while (item < model->items + TASKS_MAX && !(item->live && item->task == task))
        item++;
    assert_true (item < model->items + TASKS_MAX);
    return item;
}

/* What a worker with these labels gets. */
static void take (model_t *model, unsigned labels)
{
    tasks_t *tasks = &model->rig->tasks;
    order_set_t orders = orders_for (model->rig, labels);
    task_t *task = lanes_first (tasks, model->rig->queue, &orders);
    item_t *item = task == NULL ? NULL : item_of (model, task);
    if (item != NULL && !may_have (model, item, labels))
        fail_msg ("a task is given that may not be");
    judge_choice (model, item, labels);
    if (item == NULL)
        return;
    if (lanes_are_moving (model->rig->queue))
        memset (model->overtaken, 0, sizeof (model->overtaken));
    else
        judge_turn (model, item, labels);
    lanes_serve (task);
    lanes_hold (tasks, task);
    lanes_remove (tasks, task);
    item->ready = false;
    item->running = true;
    item->held = key_of (model, item);
}

static item_t *any (model_t *model)
{
    return &model->items[below (TASKS_MAX)];
}

static void change_what_counts (model_t *model)
{
    tasks_t *tasks = &model->rig->tasks;
    queue_t *queue = model->rig->queue;
    if (below (3) > 0) {
        model->cap = queue->key_cap = below (4);
        lanes_judge (tasks, queue);
        return;
    }
    if (lanes_are_moving (queue))
        return;
    for (item_t *at = model->items; at < model->items + TASKS_MAX; at++)
        at->parked = is_capped (model, at);
    model->keyless = !model->keyless;
    lanes_change_key (tasks, queue, model->keyless ? TMQ_WEIGHT_OF_OWNER : TMQ_WEIGHT_OF_KEY);
    memset (model->overtaken, 0, sizeof (model->overtaken));
}

/* The next round moves as many tasks as it may: sometimes none, sometimes all. */
static void round_passes (model_t *model)
{
    static const size_t MOVES[] = {0, 1, 3, TASKS_MAX};
    size_t *left = &model->rig->base.round.lanes;
    *left = MOVES[below (4)];
    lanes_run (&model->rig->tasks);
    if (*left > 0 && lanes_are_moving (model->rig->queue))
        fail_msg ("tasks are left behind");
    *left = MOVES[below (4)];
}

static void step (model_t *model)
{
    if (below (4) == 0)
        round_passes (model);
    item_t *item = any (model);
    unsigned what = below (100);
    if (what < 45 && !item->live) {
        item_begin (model, item, below (KEYS + 1), below (4) % SETS, below (LEVELS));
    } else if (what < 75) {
        take (model, below (3));
    } else if (what < 85 && item->live && item->running) { /* it comes back */
        lanes_release (&model->rig->tasks, item->task);
        item->running = false;
        lanes_push (&model->rig->tasks, item->task);
        item->ready = true;
    } else if (what < 95 && item->live) {
        item_end (model, item);
    } else if (what >= 97) {
        change_what_counts (model);
    }
}

static void run_histories (unsigned planted_bug, unsigned count)
{
    for (unsigned seed = 1; seed <= count; seed++) {
        model_t *model = calloc (1, sizeof (*model));
        random_state = seed;
        model->rig = rig_new (planted_bug);
        for (unsigned i = 0; i < STEPS; i++)
            step (model);
        for (item_t *item = model->items; item < model->items + TASKS_MAX; item++)
            if (item->live)
                item_end (model, item);
        assert_null (model->rig->queue->lanes); /* nothing is left behind */
        rig_free (model->rig);
        free (model);
    }
}

static void the_order_is_that_of_the_model (void **state)
{
    (void) state;
    run_histories (ENGINE_BUG_NONE, HISTORIES);
}

/* Fairness. */

enum { TENANTS = 100, EACH = 3, FLOOD = (TENANTS - 1) * EACH * 99, PROBES_MAX = TENANTS * EACH };

typedef struct crowd {
    rig_t *rig;
    int64_t numbers;
    size_t count;
    task_t *tasks[FLOOD + PROBES_MAX];
    detail_t detail;
} crowd_t;

static void crowd_submit (crowd_t *crowd, unsigned tenant)
{
    char text[8];
    Taskmq__Extra extra = TASKMQ__EXTRA__INIT;
    snprintf (text, sizeof (text), "t%u", tenant);
    extra.fair_key = text;
    task_t *task = slab_take (&crowd->rig->tasks.slab);
    task->number = ++crowd->numbers;
    task->queue = crowd->rig->queue;
    task->priority = 100;
    task->detail = &crowd->detail;
    task->poll_interval_ms = tenant;
    buf_t *packed = extra_pack (&extra);
    extras_take (&crowd->rig->tasks, task, packed);
    buf_drop (packed);
    lanes_push (&crowd->rig->tasks, task);
    crowd->tasks[crowd->count++] = task;
}

static void crowd_free (crowd_t *crowd)
{
    for (size_t i = 0; i < crowd->count; i++) {
        if (crowd->tasks[i]->ready)
            lanes_remove (&crowd->rig->tasks, crowd->tasks[i]);
        extras_drop (&crowd->rig->tasks, crowd->tasks[i]);
        crowd->tasks[i]->detail = NULL;
    }
    rig_free (crowd->rig);
    free (crowd);
}

/* Everybody's tasks, after those of the first tenant. Returns the number of dispatch steps until
 * the last task of the others began, the longest wait of them. */
static unsigned longest_wait (unsigned flood)
{
    static const order_set_t PLAIN = {.bits = {1}};
    crowd_t *crowd = calloc (1, sizeof (*crowd));
    crowd->rig = rig_new (ENGINE_BUG_NONE);
    tasks_t *tasks = &crowd->rig->tasks;
    for (unsigned i = 0; i < flood; i++)
        crowd_submit (crowd, 0);
    for (unsigned k = 0; k < EACH; k++)
        for (unsigned tenant = 1; tenant < TENANTS; tenant++)
            crowd_submit (crowd, tenant);
    unsigned left = EACH * (TENANTS - 1);
    unsigned steps = 0;
    while (left > 0) {
        task_t *task = lanes_first (tasks, crowd->rig->queue, &PLAIN);
        assert_non_null (task);
        steps++;
        left -= task->poll_interval_ms > 0;
        lanes_serve (task);
        lanes_remove (tasks, task);
    }
    crowd_free (crowd);
    return steps;
}

static void one_who_submits_nearly_all_holds_nobody_up (void **state)
{
    (void) state;
    unsigned without = longest_wait (0);
    unsigned beside = longest_wait (FLOOD);
    assert_int_equal (without, EACH * (TENANTS - 1));
    if (beside > 2 * without)
        fail_msg ("%u steps instead of %u", beside, without);
}

/* To other lanes and back: in as many rounds as it takes. What is given meanwhile is ready. */
static void a_change_of_the_key_moves_some_in_a_round (void **state)
{
    enum { ALL = 25000, ROUND = 1000, GIVEN = 10 };
    static const order_set_t PLAIN = {.bits = {1}};
    (void) state;
    crowd_t *crowd = calloc (1, sizeof (*crowd));
    crowd->rig = rig_new (ENGINE_BUG_NONE);
    tasks_t *tasks = &crowd->rig->tasks;
    queue_t *queue = crowd->rig->queue;
    size_t *left = &tasks->base->round.lanes;
    for (unsigned i = 0; i < ALL; i++)
        crowd_submit (crowd, i % TENANTS);
    for (unsigned change = 0; change < 2; change++) {
        lanes_change_key (tasks, queue, change == 0 ? TMQ_WEIGHT_OF_OWNER : TMQ_WEIGHT_OF_KEY);
        assert_int_equal (queue->ready, ALL - change * GIVEN);
        unsigned rounds = 0;
        for (unsigned given = 0; lanes_are_moving (queue); rounds++) {
            *left = ROUND;
            lanes_run (tasks);
            assert_true (*left == 0 || !lanes_are_moving (queue));
            *left = 5;
            task_t *task = given++ < GIVEN ? lanes_first (tasks, queue, &PLAIN) : NULL;
            if (task != NULL) {
                lanes_serve (task);
                lanes_remove (tasks, task);
            }
        }
        assert_in_range (rounds, ALL / ROUND - 1, ALL / ROUND + 1);
        assert_int_equal (queue->ready, ALL - (change + 1) * GIVEN);
    }
    for (unsigned i = 0; i < TENANTS; i++) { /* each of them has its turn */
        task_t *task = lanes_first (tasks, queue, &PLAIN);
        for (unsigned k = 0; k < i; k++)
            assert_true (crowd->tasks[k] != task);
        lanes_serve (task);
        lanes_remove (tasks, task);
        for (size_t k = 0; k < crowd->count; k++)
            if (crowd->tasks[k] == task)
                crowd->tasks[k] = crowd->tasks[i], crowd->tasks[i] = task;
    }
    bool had[TENANTS] = {false};
    for (unsigned i = 0; i < TENANTS; i++)
        had[crowd->tasks[i]->poll_interval_ms] = true;
    for (unsigned i = 0; i < TENANTS; i++)
        assert_true (had[i]);
    crowd_free (crowd);
}

/* Nobody walks through all lanes of a queue in each round. */
static void reading_ahead_looks_at_the_first_lanes (void **state)
{
    enum { LANES_ALL = 3 * LANES_PEEKED_MAX, LIMIT = 256 };
    (void) state;
    task_t *cold[LIMIT];
    crowd_t *crowd = calloc (1, sizeof (*crowd));
    crowd->rig = rig_new (ENGINE_BUG_NONE);
    tasks_t *tasks = &crowd->rig->tasks;
    for (unsigned i = 0; i < LANES_ALL; i++)
        crowd_submit (crowd, i);
    task_t *last = crowd->tasks[LANES_ALL - 1];
    last->payload_bytes = 5; /* not in memory */
    assert_int_equal (lanes_peek_cold (tasks, crowd->rig->queue, cold, LIMIT), 0);
    for (unsigned i = 0; i < LANES_ALL; i++) {
        if (i >= LANES_PEEKED_MAX / 2 && i < LANES_ALL - 1)
            lanes_remove (tasks, crowd->tasks[i]);
    }
    assert_int_equal (lanes_peek_cold (tasks, crowd->rig->queue, cold, LIMIT), 1);
    assert_ptr_equal (cold[0], last);
    crowd_free (crowd);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (the_order_is_that_of_the_model),
        cmocka_unit_test (one_who_submits_nearly_all_holds_nobody_up),
        cmocka_unit_test (a_change_of_the_key_moves_some_in_a_round),
        cmocka_unit_test (reading_ahead_looks_at_the_first_lanes),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
