/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* How the store meets a database: what it makes there, and what it refuses. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ids.h"
#include "store/postgresql/pg_own.h"
#include "store/postgresql/pg_schema.h"
#include "store/postgresql/pg_steps.h"
#include "support/cmocka_all.h"
#include "support/postgres.h"
#include "tables.h"

static void drop (char *text)
{
    free (text);
}

static store_code_t prepare_with (const database_options_t *options, store_error_t *error)
{
    int32_t from;
    pg_target_t target;
    store_code_t code = pg_target_init (&target, options, error);
    if (code == STORE_OK)
        code = pg_schema_prepare (&target, NULL, error);
    if (code == STORE_OK)
        code = pg_schema_upgrade (&target, 0, NULL, &from, error);
    pg_target_destroy (&target);
    return code;
}

static store_code_t prepare (const postgres_t *server, const char *role, const char *schema,
                             store_error_t *error)
{
    char uri[POSTGRES_URI_SIZE];
    postgres_uri (server, role, "taskmq", uri);
    const database_options_t options = {.uri = uri, .schema = schema};
    return prepare_with (&options, error);
}

static void assert_says (store_code_t found, store_code_t expected, const store_error_t *error,
                         const char *words)
{
    if (found != expected || strstr (error->text, words) == NULL)
        fail_msg ("%d in place of %d: %s", found, expected, error->text);
}

static void test_a_schema_is_made_once (void **state)
{
    (void) state;
    const postgres_t *server = postgres_shared ();
    store_error_t error = {STORE_OK, ""};
    for (int i = 0; i < 2; i++)
        if (prepare (server, "taskmq", NULL, &error) != STORE_OK)
            fail_msg ("%s", error.text);
    assert_int_equal (postgres_number (server, "SELECT version FROM taskmq.meta"),
                      pg_steps_version ());
    assert_int_equal (postgres_number (server, "SELECT count (*) FROM taskmq.fence"), PG_FENCES);
    assert_true (postgres_number (server, "SELECT generation FROM taskmq.shard") > 0);
}

static void test_two_schemas_have_histories_of_their_own (void **state)
{
    (void) state;
    const postgres_t *server = postgres_shared ();
    store_error_t error;
    assert_int_equal (prepare (server, "taskmq", "one", &error), STORE_OK);
    assert_int_equal (prepare (server, "taskmq", "two", &error), STORE_OK);
    assert_int_equal (postgres_number (server, "SELECT count (DISTINCT generation) FROM (SELECT "
                                               "generation FROM one.shard UNION SELECT generation "
                                               "FROM two.shard) g"),
                      2);
}

/* What version 1 really wrote becomes today's tables, with what was in them: see postgresql-1.sql.
 */
static void test_an_older_schema_is_brought_up (void **state)
{
    (void) state;
    postgres_t server;
    store_error_t error;
    postgres_init (&server);
    postgres_start (&server);
    tables_make (&server, "taskmq", 1);
    if (prepare (&server, "taskmq", NULL, &error) != STORE_OK ||
        prepare (&server, "taskmq", "fresh", &error) != STORE_OK)
        fail_msg ("%s", error.text);
    assert_int_equal (postgres_number (&server, "SELECT version FROM taskmq.meta"),
                      pg_steps_version ());
    assert_int_equal (postgres_number (&server, "SELECT count (*) FROM taskmq.task"), 3);
    assert_int_equal (postgres_number (&server, "SELECT count (*) FROM taskmq.fence WHERE epoch = "
                                                "(SELECT epoch FROM taskmq.shard)"),
                      PG_FENCES);
    char *upgraded = tables_shape (&server, "taskmq");
    char *fresh = tables_shape (&server, "fresh");
    assert_string_equal (upgraded, fresh);
    drop (upgraded);
    drop (fresh);
    postgres_destroy (&server);
}

static void test_a_newer_schema_is_refused (void **state)
{
    (void) state;
    const postgres_t *server = postgres_shared ();
    store_error_t error;
    assert_int_equal (prepare (server, "taskmq", "newer", &error), STORE_OK);
    drop (postgres_sql (server, "UPDATE newer.meta SET version = 99"));
    assert_says (prepare (server, "taskmq", "newer", &error), STORE_ERROR_NEWER, &error,
                 "newer version (99");
    assert_int_equal (postgres_number (server, "SELECT version FROM newer.meta"), 99);
}

/* No broker wrote that. There is no step from there, and nothing is made anew. */
static void test_a_version_that_is_none_is_damage (void **state)
{
    (void) state;
    static const char *const versions[] = {"0", "-1", "-2147483648"};
    const postgres_t *server = postgres_shared ();
    store_error_t error;
    char sql[80];
    assert_int_equal (prepare (server, "taskmq", "odd", &error), STORE_OK);
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        snprintf (sql, sizeof sql, "UPDATE odd.meta SET version = %s", versions[i]);
        drop (postgres_sql (server, sql));
        assert_says (prepare (server, "taskmq", "odd", &error), STORE_ERROR_CORRUPT, &error,
                     "odd.meta has version");
    }
}

static void test_tables_of_others_are_left_alone (void **state)
{
    (void) state;
    const postgres_t *server = postgres_shared ();
    store_error_t error;
    drop (postgres_sql (server, "CREATE SCHEMA foreign_one AUTHORIZATION taskmq; CREATE TABLE "
                                "foreign_one.task (n int)"));
    assert_says (prepare (server, "taskmq", "foreign_one", &error), STORE_ERROR_FOREIGN, &error,
                 "another application");
    assert_int_equal (postgres_number (server, "SELECT count (*) FROM pg_tables WHERE schemaname = "
                                               "'foreign_one'"),
                      1);
}

static void test_a_role_without_rights_is_told (void **state)
{
    (void) state;
    const postgres_t *server = postgres_shared ();
    store_error_t error;
    drop (postgres_sql (server, "CREATE ROLE guest LOGIN"));
    assert_says (prepare (server, "guest", "guests", &error), STORE_ERROR_ACCESS, &error, "grant");
    assert_int_equal (prepare (server, "taskmq", "guarded", &error), STORE_OK);
    assert_says (prepare (server, "guest", "guarded", &error), STORE_ERROR_ACCESS, &error,
                 "belong to another role (taskmq)");
    drop (postgres_sql (server, "GRANT USAGE ON SCHEMA guarded TO guest; GRANT SELECT ON ALL TABLES"
                                " IN SCHEMA guarded TO guest"));
    assert_says (prepare (server, "guest", "guarded", &error), STORE_ERROR_ACCESS, &error,
                 "belong to another role (taskmq)");
}

static void test_what_stands_in_the_settings_is_judged (void **state)
{
    (void) state;
    store_error_t error;
    char uri[POSTGRES_URI_SIZE];
    postgres_uri (postgres_shared (), "taskmq", "taskmq", uri);
    const struct {
        database_options_t options;
        const char *words;
    } cases[] = {
        {{.uri = "postgresql://taskmq:secret@localhost/taskmq"}, "password"},
        {{.uri = "port=x y"}, "database/uri"},
        {{.uri = "postgresql://localhost:70000/t"}, "invalid port number"},
        {{.uri = "postgresql:///t?port=x"}, "invalid port number"},
        {{.uri = "postgresql:///t?connect_timeout=x"}, "connect_timeout=x is no number"},
        {{.uri = "postgresql:///t?keepalives=1%20x"}, "keepalives=1 x is no number"},
        {{.uri = "postgresql:///t?tcp_user_timeout=9999999999"}, "=9999999999 is no number"},
        {{.uri = "postgresql://a:5432,b:none/t"}, "invalid port number 'none'"},
        {{.uri = "postgresql://a:5432%20,b:54%2032/t"}, "invalid port number '54 32'"},
        {{.uri = "postgresql:///t?port=%20"}, "invalid port number ' '"},
        {{.uri = "postgresql:///t?port=0x1538"}, "invalid port number"},
        {{.uri = "host=a,b port=1,2,3"}, "2 hosts, but the list of 'port' has 3"},
        {{.uri = "host=a,b hostaddr=127.0.0.1"}, "but the list of"},
        {{.uri = "hostaddr=localhost"}, "'localhost' is no address"},
        {{.uri = "postgresql://localhost/t?bogus=1"}, "bogus"},
        {{.uri = "postgresql://localhost/t?sslmode=bogus"}, "sslmode"},
        {{.uri = "postgresql://localhost/t?target_session_attrs=bogus"}, "target_session_attrs"},
        {{.uri = "postgresql://localhost/t?channel_binding=bogus"}, "channel_binding"},
        {{.uri = "postgresql:///t?service=bogus"}, "service"},
        {{.uri = "postgresql://localhost/t?sslmode=prefer&sslrootcert=/ca.crt"},
         "sslrootcert verifies nothing with sslmode=prefer"},
        {{.uri = ""}, "database/uri"},
        {{.uri = uri, .schema = "Bad-Name"}, "database/schema"},
        {{.uri = uri, .schema = "pg_mine"}, "database/schema"},
        {{.uri = uri, .synchronous_commit = "off"}, "synchronous_commit"},
    };
    for (size_t i = 0; i < sizeof (cases) / sizeof (cases[0]); i++)
        assert_says (prepare_with (&cases[i].options, &error), STORE_ERROR_OPTIONS, &error,
                     cases[i].words);
    assert_null (strstr (error.text, "secret"));
    const database_options_t nobody = {.uri = "postgresql:///taskmq?host=/nowhere"};
    assert_int_equal (prepare_with (&nobody, &error), STORE_ERROR_AWAY);
}

/* As libpq has it, which says so by connecting. */
static void test_blanks_around_a_port_are_none_of_it (void **state)
{
    (void) state;
    store_error_t error;
    char usual[POSTGRES_URI_SIZE];
    char uri[2 * POSTGRES_URI_SIZE];
    const postgres_t *server = postgres_shared ();
    static const char *const places[] = {"host=%1$s&port=%%205432%%20",
                                         "host=%1$s,%1$s&port=5432 ,5432%%09",
                                         "host=/nowhere,%1$s&port=5432 ,"};
    for (size_t i = 0; i < sizeof (places) / sizeof (places[0]); i++) {
        snprintf (usual, sizeof usual, places[i], server->home);
        snprintf (uri, sizeof uri, "postgresql:///taskmq?user=taskmq&%s", usual);
        if (prepare_with (&(database_options_t){.uri = uri}, &error) != STORE_OK)
            fail_msg ("%s: %s", uri, error.text);
    }
}

/* Wherever the reasons of hosts are cut. */
static void test_what_is_told_of_hosts_has_whole_characters (void **state)
{
    (void) state;
    store_error_t error;
    char uri[1024];
    for (size_t hosts = 1; hosts < 6; hosts++)
        for (size_t before = 0; before < 2; before++) {
            size_t used = (size_t) snprintf (uri, sizeof uri, "postgresql:///t?host=");
            for (size_t i = 0; i < hosts; i++) {
                used += (size_t) snprintf (uri + used, sizeof uri - used, "%s/%s",
                                           i == 0 ? "" : ",", before == 0 ? "" : "x");
                for (size_t n = 0; n < 40; n++)
                    used += (size_t) snprintf (uri + used, sizeof uri - used, "ä");
            }
            const database_options_t options = {.uri = uri};
            assert_int_equal (prepare_with (&options, &error), STORE_ERROR_AWAY);
            const char *why = strstr (error.text, ": ");
            assert_non_null (why);
            assert_non_null (strstr (why, "ä"));
            if (!utf8_is_valid (why, strlen (why)))
                fail_msg ("%s", error.text);
        }
}

static void test_an_error_has_whole_characters (void **state)
{
    (void) state;
    store_error_t error;
    char text[sizeof error.text + 4] = "";
    while (strlen (text) + strlen ("ä") < sizeof text)
        strcat (text, "ä");
    for (size_t before = 0; before < 2; before++) {
        store_fail (&error, STORE_ERROR_IO, "%s%s", before == 0 ? "" : "x", text);
        assert_true (utf8_is_valid (error.text, strlen (error.text)));
        assert_in_range (strlen (error.text), sizeof error.text - 2, sizeof error.text - 1);
    }
}

static void assert_mode (const char *uri, const char *wanted)
{
    pg_target_t target;
    store_error_t error;
    const database_options_t options = {.uri = uri};
    const char *mode = NULL;
    assert_int_equal (pg_target_init (&target, &options, &error), STORE_OK);
    for (size_t k = 0; target.keywords[k] != NULL; k++)
        if (strcmp (target.keywords[k], "sslmode") == 0)
            mode = target.values[k];
    assert_string_equal (mode, wanted);
    pg_target_destroy (&target);
}

/* Where the environment leads to is said by its name. */
static void test_the_place_is_named (void **state)
{
    (void) state;
    pg_target_t target;
    store_error_t error;
    static const struct {
        const char *uri;
        const char *where;
    } cases[] = {
        {"postgresql:///t", "database t at /run/elsewhere:5432"},
        {"postgresql://taskmq@/", "database taskmq at /run/elsewhere:5432"},
        {"postgresql:///", "database login at /run/elsewhere:5432"},
    };
    setenv ("PGHOST", "/run/elsewhere", 1);
    setenv ("PGUSER", "login", 1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const database_options_t options = {.uri = cases[i].uri};
        assert_int_equal (pg_target_init (&target, &options, &error), STORE_OK);
        assert_string_equal (target.where, cases[i].where);
        pg_target_destroy (&target);
    }
    unsetenv ("PGHOST");
    unsetenv ("PGUSER");
}

/* Another host is spoken to only when its certificate is verified. */
static void test_another_host_needs_tls (void **state)
{
    (void) state;
    static const struct {
        const char *uri;
        const char *mode;
    } cases[] = {
        {"postgresql://db.example/t", "verify-full"},
        {"postgresql://localhost,db.example/t", "verify-full"},
        {"postgresql://localhost/t?hostaddr=10.0.0.1", "verify-full"},
        {"postgresql://localhost,127.0.0.1/t", "prefer"},
        {"postgresql:///t?host=/run/postgresql", "prefer"},
        {"postgresql:///t?service=theirs", "verify-full"},
        {"postgresql:///t", "prefer"},
        {"postgresql://db.example/t?sslmode=require", "require"},
        {"postgresql://localhost/t?sslrootcert=/ca.crt", "verify-full"},
        {"postgresql://localhost/t?sslrootcert=/ca.crt&sslmode=verify-ca", "verify-ca"},
        {"postgresql://localhost/t?sslrootcert=/ca.crt&sslmode=require", "verify-ca"},
        {"postgresql://localhost/t?sslmode=prefer", "prefer"},
    };
    char services[] = "/tmp/tmq-services.XXXXXX";
    int file = mkstemp (services);
    assert_true (file >= 0);
    assert_int_equal (dprintf (file, "[theirs]\nhost=db.example\n"), 25);
    close (file);
    setenv ("PGSERVICEFILE", services, 1);
    unsetenv ("PGHOST");
    for (size_t i = 0; i < sizeof (cases) / sizeof (cases[0]); i++)
        assert_mode (cases[i].uri, cases[i].mode);
    unsetenv ("PGSERVICEFILE");
    unlink (services);
    setenv ("PGHOST", "db.example", 1);
    assert_mode ("postgresql:///t", "verify-full");
    setenv ("PGHOST", "/run/postgresql", 1);
    assert_mode ("postgresql:///t", "prefer");
    unsetenv ("PGHOST");
    setenv ("PGSSLROOTCERT", "/ca.crt", 1);
    assert_mode ("postgresql://localhost/t", "verify-full");
    assert_mode ("postgresql://localhost/t?sslmode=disable", "disable");
    unsetenv ("PGSSLROOTCERT");
}

/* The session of a standby says for which schema it waits. */
static void test_a_long_schema_is_cut_and_told_apart (void **state)
{
    (void) state;
    char name[3][PG_LINK_NAME_MAX + 1];
    char schema[64];
    for (int i = 0; i < 2; i++) {
        snprintf (schema, sizeof schema, "%062d%c", 0, 'a' + i);
        pg_own_link_name (&(pg_target_t){.schema = schema}, name[i]);
        assert_int_equal (strlen (name[i]), PG_LINK_NAME_MAX);
    }
    assert_memory_equal (name[0], "adoption 000000000000000000000~", 31);
    assert_string_not_equal (name[0], name[1]);
    snprintf (schema, sizeof schema, "%030d", 0);
    pg_own_link_name (&(pg_target_t){.schema = schema}, name[2]);
    assert_string_equal (name[2] + strlen ("adoption "), schema);
}

static void test_an_unsafe_server_is_refused (void **state)
{
    (void) state;
    static const struct {
        const char *setting;
        const char *words;
    } cases[] = {{"fsync=off", "fsync"}, {"full_page_writes=off", "full_page_writes"}};
    postgres_t server;
    postgres_init (&server);
    for (size_t i = 0; i < sizeof (cases) / sizeof (cases[0]); i++) {
        store_error_t error;
        server.settings[0] = cases[i].setting;
        postgres_start (&server);
        assert_says (prepare (&server, "taskmq", NULL, &error), STORE_ERROR_ACCESS, &error,
                     cases[i].words);
        assert_int_equal (
            postgres_number (&server,
                             "SELECT count (*) FROM pg_namespace WHERE nspname = 'taskmq'"),
            0);
        postgres_end (&server, SIGINT);
    }
    postgres_destroy (&server);
}

/* What the role was given by somebody does not make commits unsafe. */
static void test_a_session_is_set_by_us (void **state)
{
    (void) state;
    const postgres_t *server = postgres_shared ();
    char uri[POSTGRES_URI_SIZE];
    pg_target_t target;
    pg_link_t link;
    store_error_t error;
    drop (postgres_sql (server, "ALTER ROLE taskmq SET synchronous_commit = off"));
    postgres_uri (server, "taskmq", "taskmq", uri);
    const database_options_t options = {.uri = uri};
    static const char *const texts[] = {"SELECT current_setting ('synchronous_commit')"};
    assert_int_equal (pg_target_init (&target, &options, &error), STORE_OK);
    pg_link_init (&link, &target, "test", texts, 1);
    PGresult *result;
    assert_int_equal (pg_link_open (&link, &error), STORE_OK);
    assert_int_equal (pg_link_run (&link, 0, NULL, &result, &error), STORE_OK);
    assert_string_equal (pg_text (result, 0, 0), "on");
    PQclear (result);
    pg_link_close (&link);
    pg_target_destroy (&target);
    drop (postgres_sql (server, "ALTER ROLE taskmq RESET synchronous_commit"));
}

int main (void)
{
    postgres_need ();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_a_schema_is_made_once),
        cmocka_unit_test (test_two_schemas_have_histories_of_their_own),
        cmocka_unit_test (test_an_older_schema_is_brought_up),
        cmocka_unit_test (test_a_newer_schema_is_refused),
        cmocka_unit_test (test_a_version_that_is_none_is_damage),
        cmocka_unit_test (test_tables_of_others_are_left_alone),
        cmocka_unit_test (test_a_role_without_rights_is_told),
        cmocka_unit_test (test_what_stands_in_the_settings_is_judged),
        cmocka_unit_test (test_blanks_around_a_port_are_none_of_it),
        cmocka_unit_test (test_what_is_told_of_hosts_has_whole_characters),
        cmocka_unit_test (test_an_error_has_whole_characters),
        cmocka_unit_test (test_the_place_is_named),
        cmocka_unit_test (test_another_host_needs_tls),
        cmocka_unit_test (test_a_long_schema_is_cut_and_told_apart),
        cmocka_unit_test (test_an_unsafe_server_is_refused),
        cmocka_unit_test (test_a_session_is_set_by_us),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
