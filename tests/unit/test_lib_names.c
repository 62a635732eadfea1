/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Host names, with a name server of our own: what is told at once, and what is not waited for. */
#include <netdb.h>
#include <semaphore.h>
#include <string.h>

#include "client/names.h"
#include "client/places.h"
#include "support/cmocka_all.h"

static _Atomic int answer; /* of getaddrinfo; a thread that was left alone may still read it */
static _Atomic bool is_slow;
static sem_t may_answer, freed;
static struct addrinfo address;

/* Linked in place of the C library's own. */
int __real_getaddrinfo (const char *node, const char *service, const struct addrinfo *hints,
                        struct addrinfo **res);
int __wrap_getaddrinfo (const char *node, const char *service, const struct addrinfo *hints,
                        struct addrinfo **res);
void __real_freeaddrinfo (struct addrinfo *list);
void __wrap_freeaddrinfo (struct addrinfo *list);

int __wrap_getaddrinfo (const char *node, const char *service, const struct addrinfo *hints,
                        struct addrinfo **res)
{
    if (hints->ai_flags & AI_NUMERICHOST)
        return __real_getaddrinfo (node, service, hints, res);
    if (is_slow)
        sem_wait (&may_answer);
    if (answer == 0)
        *res = &address;
    return answer;
}

void __wrap_freeaddrinfo (struct addrinfo *list)
{
    if (list == &address)
        sem_post (&freed);
    else
        __real_freeaddrinfo (list);
}

static absence_t look (const char *uri)
{
    const places_t places = {0};
    absence_t why = {.certain = false};
    places_look (&places, uri, &why);
    return why;
}

enum { LONG_MS = 60000 };

static void a_name_that_nobody_has_is_certain (void **state)
{
    (void) state;
    int failed = 0;
    struct addrinfo *found = &address;
    answer = EAI_NONAME;
    assert_true (names_resolve (&found, &failed, "nobody.example", "5560", LONG_MS));
    assert_int_equal (failed, EAI_NONAME);
    assert_null (found);
}

static void a_name_that_somebody_has_is_told (void **state)
{
    (void) state;
    int failed = EAI_FAIL;
    struct addrinfo *found = NULL;
    answer = 0;
    assert_true (names_resolve (&found, &failed, "somebody.example", "5560", LONG_MS));
    assert_int_equal (failed, 0);
    assert_ptr_equal (found, &address);
}

/* The answer is nobody's then: its thread frees it. */
static void a_slow_name_server_is_not_waited_for (void **state)
{
    (void) state;
    int failed;
    struct addrinfo *found;
    answer = 0;
    is_slow = true;
    assert_false (names_resolve (&found, &failed, "somebody.example", "5560", 1));
    assert_null (found);
    assert_int_equal (sem_post (&may_answer), 0);
    assert_int_equal (sem_wait (&freed), 0);
    is_slow = false;
}

static void it_is_said_why_there_is_no_connection (void **state)
{
    (void) state;
    absence_t why = {.certain = false};
    answer = EAI_NONAME;
    for (int i = 0; i < 100 && !why.certain; i++) /* a busy machine may take too long for one */
        why = look ("tcp://nobody.example:5560");
    assert_true (why.certain);
    assert_string_equal (why.text, "there is no host of this name");
    answer = EAI_AGAIN; /* the name server is away: that may pass */
    why = look ("tcp://somebody.example:5560");
    assert_false (why.certain);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (a_name_that_nobody_has_is_certain),
        cmocka_unit_test (a_name_that_somebody_has_is_told),
        cmocka_unit_test (a_slow_name_server_is_not_waited_for),
        cmocka_unit_test (it_is_said_why_there_is_no_connection),
    };
    if (sem_init (&may_answer, 0, 0) != 0 || sem_init (&freed, 0, 0) != 0)
        return 1;
    return cmocka_run_group_tests (tests, NULL, NULL);
}
