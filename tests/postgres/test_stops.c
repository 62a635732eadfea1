/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A broker that waits for its database is told to stop, wherever it is in its start, in an
 * adoption, in a standby's wait or at work, while the server stands still, holds it up by a lock,
 * or has ended. It ends by itself, with 0, and not when whatever it waits for is over. */
#include <libpq-fe.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stage.h"
#include "support/cmocka_all.h"
#include "support/timing.h"

enum {
    TASKS = 3,
    SHORT_MS = 500, /* for what is not answered */
    PAYLOAD = 100000,
    LARGE_TASKS = 50 /* more of that than a socket takes */
};

/* Said by what watches a start, and by nobody who came back from a wait. */
#define CUT_SHORT "stopped in the middle of a start"

static void spawn (daemon_t *broker)
{
    remove (broker->log);
    daemon_spawn (broker);
}

static void assert_stops (daemon_t *broker, bool cut_short)
{
    int64_t told_ms = timing_ms ();
    daemon_signal (broker, SIGTERM);
    assert_int_equal (daemon_exit_code (broker), 0);
    print_message ("  ended after %lld ms\n", (long long) (timing_ms () - told_ms));
    if (cut_short)
        assert_true (daemon_logged (broker, CUT_SHORT));
}

/* Something of the database that a session of the test holds. */
static PGconn *hold (const postgres_t *server, const char *sql)
{
    char uri[POSTGRES_URI_SIZE];
    postgres_uri (server, "postgres", "taskmq", uri);
    PGconn *db = PQconnectdb (uri);
    PQclear (PQexec (db, "BEGIN"));
    PQclear (PQexec (db, sql));
    assert_int_equal (PQtransactionStatus (db), PQTRANS_INTRANS);
    return db;
}

/* A session of the broker by this name waits for a lock. */
static void wait_locked (const postgres_t *server, const char *name)
{
    char sql[256];
    snprintf (sql, sizeof sql,
              "SELECT count (*) FROM pg_stat_activity WHERE application_name LIKE 'taskmq %s%%'"
              " AND wait_event_type = 'Lock'",
              name);
    WAIT_FOR (postgres_number (server, sql) > 0, TIMING_PATIENCE_MS);
}

static stage_t stage; /* of all tests: with tables and tasks, and a broker that is stopped */

static int begin_all (void **state)
{
    (void) state;
    stage_init (&stage, NULL);
    daemon_start (&stage.broker);
    tmq_client_t *client = daemon_client (&stage.broker);
    for (int i = 0; i < TASKS; i++)
        stage_submit (client, "stops");
    tmq_client_free (&client);
    daemon_stop (&stage.broker);
    return 0;
}

static int end_all (void **state)
{
    (void) state;
    stage_destroy (&stage);
    return 0;
}

/* Nothing is in its way any more, and nothing is lost. */
static void assert_starts (void)
{
    daemon_start (&stage.broker);
    assert_int_equal (postgres_number (&stage.server, "SELECT count (*) FROM taskmq.task"), TASKS);
    daemon_stop (&stage.broker);
}

typedef enum server_does {
    SERVER_WORKS,
    SERVER_STANDS_STILL,
    SERVER_ENDS,
    SERVER_DOINGS
} server_does_t;

static void let_server (server_does_t does)
{
    if (does == SERVER_STANDS_STILL)
        postgres_signal (&stage.server, SIGSTOP);
    if (does == SERVER_ENDS)
        postgres_end (&stage.server, SIGKILL);
}

static void mend_server (server_does_t does)
{
    if (does == SERVER_STANDS_STILL)
        postgres_signal (&stage.server, SIGCONT);
    if (does == SERVER_ENDS)
        postgres_start (&stage.server);
}

static void test_a_server_that_takes_no_connection (void **state)
{
    (void) state;
    let_server (SERVER_STANDS_STILL);
    spawn (&stage.broker);
    WAIT_FOR (daemon_logged (&stage.broker, "id=CONFINED "), TIMING_PATIENCE_MS);
    assert_stops (&stage.broker, true);
    mend_server (SERVER_STANDS_STILL);
    assert_starts ();
}

static void test_no_server (void **state)
{
    (void) state;
    let_server (SERVER_ENDS);
    spawn (&stage.broker);
    WAIT_FOR (daemon_logged (&stage.broker, "id=DATABASE-AWAY"), TIMING_PATIENCE_MS);
    assert_stops (&stage.broker, false);
    assert_true (daemon_logged (&stage.broker, "id=STOPPED-AWAY"));
    mend_server (SERVER_ENDS);
    assert_starts ();
}

/* Live tasks are read by a session of their own, and last: what it reads first is behind a gate,
 * for it alone. */
static const char GATE[] =
    "CREATE TABLE public.gate (n int); INSERT INTO public.gate VALUES (1);"
    "GRANT ALL ON public.gate TO taskmq;"
    "CREATE FUNCTION public.pass () RETURNS bool LANGUAGE plpgsql AS $$ BEGIN"
    " IF current_setting ('application_name') LIKE 'taskmq look-ups%' THEN"
    " PERFORM 1 FROM public.gate FOR UPDATE; END IF; RETURN true; END $$;"
    "ALTER TABLE taskmq.namespace RENAME TO namespaces;"
    "CREATE VIEW taskmq.namespace AS SELECT * FROM taskmq.namespaces WHERE public.pass ();"
    "ALTER VIEW taskmq.namespace OWNER TO taskmq";

static void make_gate (void)
{
    static bool made;
    if (!made)
        free (postgres_sql (&stage.server, GATE));
    made = true;
}

/* Where a start waits for what somebody has locked: by what, and which session of it does. */
typedef struct stop_at {
    const char *locked;
    const char *session;
} stop_at_t;

static const stop_at_t STAGES[] = {
    {"SELECT pg_advisory_lock (hashtext ('taskmq schema taskmq'))", "schema"},
    {"LOCK TABLE taskmq.shard IN EXCLUSIVE MODE", "adoption"},
    {"LOCK TABLE taskmq.journal", "beat"},
    {"LOCK TABLE taskmq.task", "write-back"},
    {"SELECT 1 FROM public.gate FOR UPDATE", "look-ups"},
};

static void stop_at (const stop_at_t *at, server_does_t does)
{
    print_message ("%s waits, the server %s\n", at->session,
                   does == SERVER_WORKS          ? "works"
                   : does == SERVER_STANDS_STILL ? "stands still"
                                                 : "ends");
    PGconn *holder = hold (&stage.server, at->locked);
    spawn (&stage.broker);
    wait_locked (&stage.server, at->session);
    let_server (does);
    /* One whose server has ended may be between two tries, and hears it by itself. */
    assert_stops (&stage.broker, does != SERVER_ENDS);
    mend_server (does);
    PQfinish (holder);
    assert_starts ();
}

static void test_each_stage_of_a_start (void **state)
{
    (void) state;
    make_gate ();
    for (size_t i = 0; i < sizeof STAGES / sizeof STAGES[0]; i++)
        for (server_does_t does = 0; does < SERVER_DOINGS; does++)
            stop_at (&STAGES[i], does);
}

static void stop_standby (server_does_t does)
{
    daemon_t standby;
    daemon_start (&stage.broker);
    daemon_init (&standby);
    memcpy (standby.arguments, stage.broker.arguments, sizeof standby.arguments);
    standby.arguments[4] = "--standby";
    daemon_spawn (&standby);
    WAIT_FOR (daemon_logged (&standby, "id=DATABASE-STANDBY"), TIMING_PATIENCE_MS);
    let_server (does);
    assert_stops (&standby, false);
    mend_server (does);
    daemon_destroy (&standby);
    daemon_end (&stage.broker, SIGKILL);
    assert_starts ();
}

static void test_a_standby_that_waits (void **state)
{
    (void) state;
    for (server_does_t does = 0; does < SERVER_DOINGS; does++)
        stop_standby (does);
}

/* What the server gives up is made again, as often as it takes, and no longer than the broker is
 * wanted, whenever that calls the database away. What nobody was told of may be gone. */
static void stop_in_a_commit (const char *away, bool told_away)
{
    tmq_receipt_t receipt;
    tmq_submit_t task;
    setenv ("TASKMQD_DATABASE_AWAY", away, 1);
    remove (stage.broker.log);
    daemon_start (&stage.broker);
    unsetenv ("TASKMQD_DATABASE_AWAY");
    free (postgres_sql (&stage.server,
                        "CREATE SEQUENCE public.tries; GRANT ALL ON public.tries TO taskmq;"
                        "CREATE FUNCTION public.refuse () RETURNS trigger LANGUAGE plpgsql AS $$"
                        " BEGIN PERFORM nextval ('public.tries');"
                        " RAISE 'not now' USING ERRCODE = '40001'; END $$;"
                        "CREATE TRIGGER refuse BEFORE INSERT ON taskmq.journal"
                        " FOR EACH ROW EXECUTE FUNCTION public.refuse ()"));
    tmq_client_t *client = daemon_client (&stage.broker);
    tmq_submit_init (&task);
    task.queue = "stops";
    assert_int_not_equal (tmq_submit (&receipt, client, &task, SHORT_MS, NULL), TMQ_OK);
    WAIT_FOR (postgres_number (&stage.server, "SELECT last_value FROM public.tries") > 2,
              TIMING_PATIENCE_MS);
    assert_stops (&stage.broker, false);
    assert_true (daemon_logged (&stage.broker, "id=STOPPED-AWAY"));
    assert_int_equal (daemon_logged (&stage.broker, "id=DATABASE-AWAY"), told_away);
    tmq_client_free (&client);
    free (postgres_sql (&stage.server, "DROP TRIGGER refuse ON taskmq.journal;"
                                       "DROP FUNCTION public.refuse; DROP SEQUENCE public.tries"));
    assert_starts ();
}

static void test_a_commit_that_is_given_up_again_and_again (void **state)
{
    (void) state;
    stop_in_a_commit ("1s", true);
    stop_in_a_commit ("1m", false);
}

/* How often the log of the broker has it. */
static size_t count_logged (const daemon_t *broker, const char *text)
{
    char line[4096];
    size_t count = 0;
    FILE *log = fopen (broker->log, "r");
    assert_non_null (log);
    while (fgets (line, sizeof line, log) != NULL)
        count += strstr (line, text) != NULL;
    fclose (log);
    return count;
}

/* It has nothing to do, and hears of the stop before it knows that the server is away, or after. */
static void stop_idle (server_does_t does, bool known)
{
    print_message ("the server %s, and that is %sknown\n",
                   does == SERVER_ENDS ? "ends" : "stands still", known ? "" : "not ");
    remove (stage.broker.log);
    daemon_start (&stage.broker);
    let_server (does);
    if (known)
        WAIT_FOR (daemon_logged (&stage.broker, "id=DATABASE-AWAY"), TIMING_PATIENCE_MS);
    assert_stops (&stage.broker, false);
    assert_int_equal (count_logged (&stage.broker, "id=STOPPED-AWAY"), 1);
    mend_server (does);
    assert_starts ();
}

static void test_an_idle_broker (void **state)
{
    (void) state;
    for (server_does_t does = SERVER_STANDS_STILL; does < SERVER_DOINGS; does++) {
        stop_idle (does, false);
        stop_idle (does, true);
    }
}

/* A commit finds no space, once somebody has let it go on. */
static const char NO_SPACE[] =
    "CREATE TABLE public.doorstep (n int); INSERT INTO public.doorstep VALUES (1);"
    "GRANT ALL ON public.doorstep TO taskmq;"
    "CREATE FUNCTION public.find_none () RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
    " PERFORM 1 FROM public.doorstep FOR UPDATE;"
    " RAISE 'no space' USING ERRCODE = '53100'; END $$;"
    "CREATE TRIGGER find_none BEFORE INSERT ON taskmq.journal"
    " FOR EACH STATEMENT EXECUTE FUNCTION public.find_none ()";

/* It reads its state again, as at a start, and waits for a lock, or a server that is gone. */
static void stop_starting_over (server_does_t does)
{
    tmq_submit_t task;
    tmq_receipt_t receipt;
    remove (stage.broker.log);
    daemon_start (&stage.broker);
    free (postgres_sql (&stage.server, NO_SPACE));
    PGconn *doorstep = hold (&stage.server, "SELECT 1 FROM public.doorstep FOR UPDATE");
    tmq_client_t *client = daemon_client (&stage.broker);
    tmq_submit_init (&task);
    task.queue = "stops";
    assert_int_not_equal (tmq_submit (&receipt, client, &task, SHORT_MS, NULL), TMQ_OK);
    wait_locked (&stage.server, "commits");
    PGconn *gate = hold (&stage.server, "SELECT 1 FROM public.gate FOR UPDATE");
    PQfinish (doorstep);
    wait_locked (&stage.server, "look-ups");
    assert_true (daemon_logged (&stage.broker, "id=COMMIT-FULL"));
    let_server (does);
    assert_stops (&stage.broker, false);
    assert_int_equal (count_logged (&stage.broker, "id=STOPPED-AWAY"), 1);
    mend_server (does);
    PQfinish (gate);
    tmq_client_free (&client);
    free (postgres_sql (&stage.server, "DROP TRIGGER find_none ON taskmq.journal;"
                                       " DROP FUNCTION public.find_none; DROP TABLE "
                                       "public.doorstep"));
    assert_starts ();
}

static void test_a_state_that_is_read_again (void **state)
{
    (void) state;
    make_gate ();
    for (server_does_t does = 0; does < SERVER_DOINGS; does++)
        stop_starting_over (does);
}

/* The session that writes back takes nothing any more, and more waits for it than lies in the
 * buffers between: also what is sent has its end. The journal has it. */
static void test_a_write_back_that_is_not_taken (void **state)
{
    (void) state;
    static uint8_t payload[PAYLOAD];
    tmq_receipt_t receipt;
    tmq_submit_t task;
    remove (stage.broker.log);
    daemon_start (&stage.broker);
    tmq_client_t *client = daemon_client (&stage.broker);
    pid_t writer = (pid_t) postgres_number (
        &stage.server, "SELECT pid FROM pg_stat_activity WHERE application_name LIKE"
                       " 'taskmq write-back %'");
    assert_true (writer > 0);
    kill (writer, SIGSTOP);
    for (int i = 0; i < LARGE_TASKS; i++) {
        tmq_submit_init (&task);
        task.queue = "stops";
        task.payload = payload;
        task.payload_bytes = sizeof payload;
        assert_int_equal (tmq_submit (&receipt, client, &task, TIMING_PATIENCE_MS, NULL), TMQ_OK);
    }
    tmq_client_free (&client);
    assert_stops (&stage.broker, false);
    assert_true (daemon_logged (&stage.broker, "id=STOPPED-AWAY"));
    kill (writer, SIGCONT);
    daemon_start (&stage.broker);
    daemon_stop (&stage.broker);
    assert_int_equal (postgres_number (&stage.server, "SELECT count (*) FROM taskmq.task"),
                      TASKS + LARGE_TASKS);
}

int main (int argc, char **argv)
{
    unsigned percent = 100;
    unsigned seed = 1;
    stage_arguments (argc, argv, &percent, &seed);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_a_server_that_takes_no_connection),
        cmocka_unit_test (test_no_server),
        cmocka_unit_test (test_an_idle_broker),
        cmocka_unit_test (test_each_stage_of_a_start),
        cmocka_unit_test (test_a_standby_that_waits),
        cmocka_unit_test (test_a_commit_that_is_given_up_again_and_again),
        cmocka_unit_test (test_a_state_that_is_read_again),
        cmocka_unit_test (test_a_write_back_that_is_not_taken),
    };
    return cmocka_run_group_tests (tests, begin_all, end_all);
}
