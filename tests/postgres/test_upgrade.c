/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Tables of earlier versions become those of this one, and where nothing is they are made, whatever
 * is cut in the middle: the broker is killed before each statement that it sends and right behind
 * it, its session is ended there, and it is ended inside of texts that have many statements. What
 * is there then is one version and never half of one, and the next start has all that was there.
 *
 *     test_upgrade [--percent N] [--seed N]      CI: 3 percent of the moments, seed 1 */
#include <libpq-fe.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "stage.h"
#include "store/postgresql/pg_steps.h"
#include "store_fixture.h"
#include "tables.h"

enum {
    PERCENT = 3,
    VERSIONS_MAX = 16,
    MOMENTS_MIN = 20, /* a start has more of them */
    MOMENTS_MAX = 1000,
    TRIES_MAX = 100,
    LEAP_S = 86400,
    STARTED = 0, /* what the child says */
    STARTED_CUT,
    NOT_STARTED
};

typedef enum cut {
    CUT_KILLED_BEFORE, /* the process, before it sends a statement */
    CUT_KILLED_BEHIND, /* … when it has sent it, and heard nothing */
    CUT_ENDED_BEFORE,  /* its session; the process tries again */
    CUT_ENDED_BEHIND,
    CUTS
} cut_t;

static cut_t cut;
static uint64_t cut_at; /* the first statement is 1; 0: none */
static atomic_uint_fast64_t sends;
static atomic_bool was_cut;
static bool steps_leap;              /* while a step of an upgrade works the clocks leap, … */
static atomic_bool step_works;       /* … as now, … */
static atomic_int_fast64_t leaped_s; /* … and have so far */

/* Time. */

int __real_clock_gettime (clockid_t clock, struct timespec *out);
__attribute__ ((visibility ("default"))) int __wrap_clock_gettime (clockid_t clock,
                                                                   struct timespec *out);
int __wrap_clock_gettime (clockid_t clock, struct timespec *out)
{
    int code = __real_clock_gettime (clock, out);
    if (atomic_load (&step_works))
        atomic_fetch_add (&leaped_s, LEAP_S);
    out->tv_sec += (time_t) atomic_load (&leaped_s);
    return code;
}

/* The session that sends. */

static void end_session (const PGconn *db)
{
    char sql[64];
    snprintf (sql, sizeof sql, "SELECT pg_terminate_backend (%d)", PQbackendPID (db));
    free (postgres_sql (store_fixture_server (), sql));
}

static bool is_cut_now (void)
{
    bool now = atomic_fetch_add (&sends, 1) + 1 == cut_at;
    if (now)
        atomic_store (&was_cut, true);
    return now;
}

static void before (const PGconn *db)
{
    if (cut == CUT_KILLED_BEFORE)
        raise (SIGKILL);
    if (cut == CUT_ENDED_BEFORE)
        end_session (db);
}

static void behind (PGconn *db)
{
    while (PQflush (db) > 0)
        continue;
    if (cut == CUT_KILLED_BEHIND)
        raise (SIGKILL);
    if (cut == CUT_ENDED_BEHIND)
        end_session (db);
}

int __real_PQsendQuery (PGconn *db, const char *sql);
int __wrap_PQsendQuery (PGconn *db, const char *sql);
int __wrap_PQsendQuery (PGconn *db, const char *sql)
{
    bool now = is_cut_now ();
    if (now)
        before (db);
    atomic_store (&step_works, steps_leap && strstr (sql, "UPDATE meta SET version") != NULL);
    int sent = __real_PQsendQuery (db, sql);
    if (now)
        behind (db);
    return sent;
}

int __real_PQsendQueryPrepared (PGconn *db, const char *name, int count, const char *const *values,
                                const int *lengths, const int *formats, int format);
int __wrap_PQsendQueryPrepared (PGconn *db, const char *name, int count, const char *const *values,
                                const int *lengths, const int *formats, int format);
int __wrap_PQsendQueryPrepared (PGconn *db, const char *name, int count, const char *const *values,
                                const int *lengths, const int *formats, int format)
{
    bool now = is_cut_now ();
    if (now)
        before (db);
    int sent = __real_PQsendQueryPrepared (db, name, count, values, lengths, formats, format);
    if (now)
        behind (db);
    return sent;
}

/* Starts. */

/* As a broker that waits for its database does. */
static store_code_t own_patiently (fixture_t *f, store_error_t *error)
{
    store_error_t ignored;
    store_code_t code = STORE_ERROR_AWAY;
    for (int i = 0; i < TRIES_MAX && (code == STORE_ERROR_AWAY || code == STORE_ERROR_BUSY); i++) {
        code = store_open (&f->store, f->uri, &f->options, &f->boot, error);
        if (code != STORE_OK)
            continue;
        code = store_own (f->store, -1, &f->boot, error);
        if (code != STORE_OK)
            store_close (&f->store, &ignored);
    }
    return code;
}

static _Noreturn void start (fixture_t *f)
{
    store_error_t error = {STORE_OK, ""};
    store_code_t code = own_patiently (f, &error);
    if (code != STORE_OK)
        fprintf (stderr, "%s\n", error.text);
    _exit (code != STORE_OK ? NOT_STARTED : atomic_load (&was_cut) ? STARTED_CUT : STARTED);
}

/* True: it was cut. */
static bool start_in_child (fixture_t *f, cut_t how, uint64_t at)
{
    int status;
    fflush (NULL);
    pid_t child = fork ();
    if (child == 0) {
        cut = how;
        cut_at = at;
        atomic_store (&sends, 0); /* the parent had some */
        start (f);
    }
    assert_int_equal (waitpid (child, &status, 0), child);
    if (WIFSIGNALED (status)) {
        assert_int_equal (WTERMSIG (status), SIGKILL);
        return true;
    }
    assert_int_not_equal (WEXITSTATUS (status), NOT_STARTED);
    return WEXITSTATUS (status) == STARTED_CUT;
}

/* How it has to be. */

typedef struct wanted {
    char *shapes[VERSIONS_MAX]; /* of each version; of those that the start can meet */
    char *content;              /* behind a start that nothing cuts */
} wanted_t;

static const postgres_t *server (void)
{
    return store_fixture_server ();
}

static void start_and_stop (fixture_t *f)
{
    store_error_t error = {STORE_OK, ""};
    store_code_t code = own_patiently (f, &error);
    if (code == STORE_OK)
        code = store_close (&f->store, &error);
    if (code != STORE_OK)
        fail_msg ("%d %s", code, error.text);
}

static fixture_t *stored_new (int32_t version)
{
    fixture_t *f = fixture_new ("postgresql");
    tables_make (server (), store_fixture_schema (f), version);
    return f;
}

static void stored_free (fixture_t *f)
{
    void *state = f;
    char sql[96];
    snprintf (sql, sizeof sql, "SET client_min_messages = error; DROP SCHEMA IF EXISTS %s CASCADE",
              store_fixture_schema (f));
    free (postgres_sql (server (), sql));
    fixture_teardown (&state);
}

static void wanted_init (wanted_t *self, int32_t from)
{
    memset (self, 0, sizeof *self);
    self->shapes[0] = strdup ("");
    for (int32_t version = 1; version <= pg_steps_version (); version++) {
        fixture_t *f = stored_new (version);
        self->shapes[version] = tables_shape (server (), store_fixture_schema (f));
        stored_free (f);
    }
    fixture_t *f = stored_new (from);
    start_and_stop (f);
    self->content = tables_content (server (), store_fixture_schema (f));
    assert_non_null (self->content);
    assert_true (strlen (self->content) > 0);
    stored_free (f);
}

static void wanted_free (wanted_t *self)
{
    for (size_t i = 0; i < VERSIONS_MAX; i++)
        free (self->shapes[i]);
    free (self->content);
}

/* One whole version, and not an earlier one than was there. */
static void assert_whole (const fixture_t *f, const wanted_t *wanted, int32_t from)
{
    const char *schema = store_fixture_schema (f);
    int32_t version = tables_version (server (), schema);
    assert_in_range (version, from, pg_steps_version ());
    if (from == 0 && version != 0)
        assert_int_equal (version, pg_steps_version ()); /* who makes them makes all of them */
    char *shape = tables_shape (server (), schema);
    assert_string_equal (shape, wanted->shapes[version]);
    free (shape);
}

static void assert_complete (fixture_t *f, const wanted_t *wanted)
{
    start_and_stop (f);
    assert_int_equal (tables_version (server (), store_fixture_schema (f)), pg_steps_version ());
    char *content = tables_content (server (), store_fixture_schema (f));
    assert_string_equal (content, wanted->content);
    free (content);
}

static unsigned percent = PERCENT;
static unsigned seed = 1;

/* Of the moments that are tried. */
static uint64_t stride (void)
{
    return percent >= 100 ? 1 : 100 / percent;
}

static uint64_t first_moment (void)
{
    return 1 + (uint64_t) rand_r (&seed) % stride ();
}

/* Cut at what the broker sends. */

static void cut_at_each_statement (int32_t from)
{
    wanted_t wanted;
    uint64_t moments = 0;
    uint64_t cuts = 0;
    wanted_init (&wanted, from);
    for (cut_t how = 0; how < CUTS; how++) {
        bool happened = true;
        for (uint64_t at = first_moment (); happened; at += stride ()) {
            fixture_t *f = stored_new (from);
            happened = start_in_child (f, how, at);
            assert_whole (f, &wanted, from);
            assert_complete (f, &wanted);
            stored_free (f);
            cuts += happened;
            moments = happened && at > moments ? at : moments;
            assert_in_range (at, 1, MOMENTS_MAX);
        }
    }
    print_message ("%llu cuts: from version %d, at statements up to %llu\n",
                   (unsigned long long) cuts, (int) from, (unsigned long long) moments);
    assert_true (moments > MOMENTS_MIN);
    wanted_free (&wanted);
}

/* Cut inside of texts. */

/* Each statement that changes what a schema is made of, is counted at its beginning and its end; a
 * sequence does not go back with a transaction. */
static const char CUTTER[] =
    "CREATE SEQUENCE public.cut_count; CREATE TABLE public.cut_at (n int8);"
    "INSERT INTO public.cut_at VALUES (0);"
    "CREATE FUNCTION public.cut () RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER AS $$"
    " BEGIN IF nextval ('public.cut_count') = (SELECT n FROM public.cut_at) THEN"
    " PERFORM pg_terminate_backend (pg_backend_pid ()); END IF; END $$;"
    "CREATE EVENT TRIGGER cut_start ON ddl_command_start EXECUTE FUNCTION public.cut ();"
    "CREATE EVENT TRIGGER cut_end ON ddl_command_end EXECUTE FUNCTION public.cut ();"
    "ALTER EVENT TRIGGER cut_start DISABLE; ALTER EVENT TRIGGER cut_end DISABLE";

static void arm (uint64_t at)
{
    char sql[256];
    const char *mode = at == 0 ? "DISABLE" : "ENABLE";
    snprintf (sql, sizeof sql,
              "UPDATE public.cut_at SET n = %llu; SELECT setval ('public.cut_count', 1, false);"
              "ALTER EVENT TRIGGER cut_start %s; ALTER EVENT TRIGGER cut_end %s",
              (unsigned long long) at, mode, mode);
    free (postgres_sql (server (), sql));
}

/* True: so many statements came. */
static bool disarm (uint64_t at)
{
    bool came =
        postgres_number (server (), "SELECT last_value FROM public.cut_count") > (long long) at - 1;
    arm (0);
    return came;
}

static void cut_inside_of_texts (int32_t from)
{
    wanted_t wanted;
    uint64_t moments = 0;
    uint64_t cuts = 0;
    bool happened = true;
    wanted_init (&wanted, from);
    for (uint64_t at = first_moment (); happened; at += stride ()) {
        fixture_t *f = stored_new (from);
        arm (at);
        (void) start_in_child (f, CUTS, 0); /* it meets the cut, and begins anew */
        happened = disarm (at);
        assert_whole (f, &wanted, pg_steps_version ());
        assert_complete (f, &wanted);
        stored_free (f);
        moments = happened ? at : moments;
        cuts += happened;
        assert_in_range (at, 1, MOMENTS_MAX);
    }
    print_message ("%llu cuts: from version %d, inside of texts, up to statement %llu\n",
                   (unsigned long long) cuts, (int) from, (unsigned long long) moments);
    wanted_free (&wanted);
}

static void test_each_version_cut_at_each_statement (void **state)
{
    (void) state;
    for (int32_t from = 0; from < pg_steps_version (); from++)
        cut_at_each_statement (from);
}

static void test_each_version_cut_inside_of_texts (void **state)
{
    (void) state;
    free (postgres_sql (server (), CUTTER));
    for (int32_t from = 0; from < pg_steps_version (); from++)
        cut_inside_of_texts (from);
}

/* A start of this version has nothing to bring up, and is as safe. */
static void test_a_start_without_an_upgrade (void **state)
{
    (void) state;
    cut_at_each_statement (pg_steps_version ());
}

/* A step over large tables may take days: nobody else can end it sooner. */
static void test_a_step_is_waited_for_as_long_as_it_takes (void **state)
{
    (void) state;
    store_error_t error = {STORE_OK, ""};
    fixture_t *f = stored_new (1);
    steps_leap = true;
    assert_int_equal (store_open (&f->store, f->uri, &f->options, &f->boot, &error), STORE_OK);
    store_code_t code = store_own (f->store, -1, &f->boot, &error);
    steps_leap = false;
    atomic_store (&step_works, false);
    if (code != STORE_OK)
        fail_msg ("%d %s", code, error.text);
    assert_int_equal (tables_version (server (), store_fixture_schema (f)), pg_steps_version ());
    assert_int_equal (store_close (&f->store, &error), STORE_OK);
    stored_free (f);
}

static void leave_fast_place (void)
{
    char path[64];
    if (getcwd (path, sizeof path) != NULL)
        rmdir (path);
}

/* Thousands of tables are made, of which each index is synced at once: none of it has to outlive a
 * loss of power. */
static void take_fast_place (void)
{
    static char place[] = "/dev/shm/tmq-upgrade-XXXXXX";
    if (getenv ("TASKMQ_SOURCE") == NULL || getenv ("TASKMQ_BIN") == NULL ||
        mkdtemp (place) == NULL)
        return;
    setenv ("TMPDIR", "/dev/shm", 0);
    assert_int_equal (chdir (place), 0);
    atexit (leave_fast_place);
}

int main (int argc, char **argv)
{
    take_fast_place ();
    stage_arguments (argc, argv, &percent, &seed);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_each_version_cut_at_each_statement),
        cmocka_unit_test (test_each_version_cut_inside_of_texts),
        cmocka_unit_test (test_a_start_without_an_upgrade),
        cmocka_unit_test (test_a_step_is_waited_for_as_long_as_it_takes),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
