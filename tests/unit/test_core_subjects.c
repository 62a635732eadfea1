/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Events of what is no task: who asks for them gets them, and nobody else. */
#include "core/wire/filter.h"
#include "core/wire/pack.h"
#include "support/cmocka_all.h"

static const tmq_id_t ID = {{1, 2, 3}};

static bool takes_of (const Taskmq__Filter *wanted, const event_t *event, const char *rights)
{
    access_t access = {0};
    policy_error_t error;
    policy_t *policy = rights == NULL ? NULL : policy_parse (rights, strlen (rights), NULL, &error);
    assert_true (access_link (&access, policy, "me", "default", 1));
    filter_copy_t *filter = filter_new ("default", wanted, &access);
    bytes_t list = BYTES_INIT;
    pack_event (&list, event);
    const uint8_t *at = list.data;
    scanned_t scanned;
    assert_true (scan_event (&at, list.data + list.length, &scanned));
    bool taken = filter_takes_event (filter, &scanned);
    bytes_free (&list);
    filter_free (filter);
    access_clear (&access);
    policy_drop (policy);
    return taken;
}

static bool takes (const Taskmq__Filter *wanted, const event_t *event)
{
    return takes_of (wanted, event, NULL);
}

/* Texts as a packed event has them. */
static event_t of_task (void)
{
    return (event_t){.seq = 1,
                     .kind = TMQ_EVENT_SUBMITTED,
                     .id = &ID,
                     .status = TMQ_STATUS_QUEUED,
                     .queue = "q",
                     .session = "s",
                     .worker = "",
                     .actor = "me",
                     .message = "",
                     .owner = "me"};
}

static event_t of_value (const char *key, const char *owner)
{
    return (event_t){.seq = 2,
                     .kind = TMQ_EVENT_CHANGED,
                     .subject = TMQ_SUBJECT_VALUE,
                     .name = key,
                     .queue = "",
                     .session = "s",
                     .worker = "",
                     .actor = owner,
                     .message = "",
                     .owner = owner};
}

static void only_tasks_unless_it_is_asked_for (void **state)
{
    (void) state;
    const event_t task = of_task ();
    const event_t value = of_value ("plan", "me");
    Taskmq__Filter filter = TASKMQ__FILTER__INIT;
    char session[] = "s";
    char *sessions[] = {session};
    assert_true (takes (NULL, &task));
    assert_false (takes (NULL, &value));
    filter.n_sessions = 1;
    filter.sessions = sessions;
    assert_true (takes (&filter, &task));
    assert_false (takes (&filter, &value));
    uint32_t subjects[] = {TMQ_SUBJECT_VALUE, TMQ_SUBJECT_TASK};
    filter.subjects = subjects;
    filter.n_subjects = 1;
    assert_false (takes (&filter, &task));
    assert_true (takes (&filter, &value));
    filter.n_subjects = 2;
    assert_true (takes (&filter, &task));
    assert_true (takes (&filter, &value));
    subjects[0] = TMQ_SUBJECT_ITEM;
    assert_false (takes (&filter, &value));
}

static void names_are_chosen_by_their_beginning (void **state)
{
    (void) state;
    const event_t task = of_task ();
    const event_t plan = of_value ("plan/a", "me");
    const event_t other = of_value ("pla", "me");
    uint32_t subjects[] = {TMQ_SUBJECT_VALUE, TMQ_SUBJECT_TASK};
    char prefix[] = "plan/";
    Taskmq__Filter filter = TASKMQ__FILTER__INIT;
    filter.subjects = subjects;
    filter.n_subjects = 2;
    filter.name_prefix = prefix;
    assert_true (takes (&filter, &plan));
    assert_false (takes (&filter, &other));
    assert_true (takes (&filter, &task));
}

static void the_others_are_for_who_sees_the_namespace (void **state)
{
    (void) state;
    static const char CLIENT[] = "me uid:1 client(default/q*)";
    static const char SOME_QUEUES[] = "me uid:1 reader(default/q*)";
    static const char ALL_QUEUES[] = "me uid:1 reader(default)";
    const event_t mine = of_value ("plan", "me");
    const event_t foreign = of_value ("plan", "somebody");
    uint32_t subjects[] = {TMQ_SUBJECT_VALUE};
    Taskmq__Filter filter = TASKMQ__FILTER__INIT;
    filter.subjects = subjects;
    filter.n_subjects = 1;
    assert_true (takes_of (&filter, &mine, CLIENT));
    assert_false (takes_of (&filter, &foreign, CLIENT));
    assert_false (takes_of (&filter, &foreign, SOME_QUEUES));
    assert_true (takes_of (&filter, &foreign, ALL_QUEUES));
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (only_tasks_unless_it_is_asked_for),
        cmocka_unit_test (names_are_chosen_by_their_beginning),
        cmocka_unit_test (the_others_are_for_who_sees_the_namespace),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
