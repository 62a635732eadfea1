/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Command line, configuration file, and the table of limits. */
#include "support/cmocka_all.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/config.h"
#include "config/scan.h"
#include "units.h"

static char error[CONFIG_ERROR_SIZE];
static char *no_environment[] = {NULL};
static char *const *environment = no_environment;
static const config_origin_t nobody = {NULL, 0};

/* Parses the words of a command line; NULL ends them. */
static bool parse (config_t *config, const char *first, ...)
{
    char *argv[20] = {strdup ("taskmqd")};
    int argc = 1;
    va_list words;
    va_start (words, first);
    for (const char *word = first; word != NULL; word = va_arg (words, const char *))
        argv[argc++] = strdup (word);
    va_end (words);
    config_init (config);
    error[0] = '\0';
    bool good = config_parse (config, argc, argv, environment, error);
    for (int i = 0; i < argc; i++)
        free (argv[i]);
    return good;
}

#define ASSERT_GOOD(config, ...)                                                                   \
    do {                                                                                           \
        if (!parse (config, __VA_ARGS__, NULL))                                                    \
            fail_msg ("%s", error);                                                                \
    } while (0)

#define ASSERT_BAD(reason, ...)                                                                    \
    do {                                                                                           \
        config_t config_;                                                                          \
        assert_false (parse (&config_, __VA_ARGS__, NULL));                                        \
        if (strstr (error, reason) == NULL)                                                        \
            fail_msg ("said: %s", error);                                                          \
        config_free (&config_);                                                                    \
    } while (0)

static const char *write_file (const char *text)
{
    static char path[32];
    snprintf (path, sizeof (path), "/tmp/taskmq-config-XXXXXX");
    int fd = mkstemp (path);
    assert_true (fd >= 0);
    assert_int_equal (write (fd, text, strlen (text)), strlen (text));
    close (fd);
    return path;
}

static void write_drop_in (const char *directory, const char *name, const char *text)
{
    char path[128];
    snprintf (path, sizeof (path), "%s/%s", directory, name);
    FILE *file = fopen (path, "w");
    assert_non_null (file);
    fputs (text, file);
    fclose (file);
}

static void remove_tree (const char *path)
{
    char command[128];
    snprintf (command, sizeof (command), "rm -r %s", path);
    assert_int_equal (system (command), 0);
}

static void test_options_are_taken (void **state)
{
    (void) state;
    config_t config;
    ASSERT_GOOD (&config, "--data", "/d", "--listen", "tcp://127.0.0.1:1", "--listen=ipc:///x",
                 "--store", "memory", "--log-level", "warning", "--log-format", "json",
                 "--synchronous", "normal");
    assert_string_equal (config_text (&config, CONFIG_DATA), "/d");
    assert_int_equal (config.values[CONFIG_LISTEN].items_count, 2);
    assert_string_equal (config.values[CONFIG_LISTEN].items[1].text, "ipc:///x");
    assert_int_equal (config.numbers[CONFIG_STORE], 1);
    assert_int_equal (config.numbers[CONFIG_LOG_LEVEL], LOG_LEVEL_WARNING);
    assert_int_equal (config.numbers[CONFIG_LOG_FORMAT], 1);
    assert_int_equal (config.numbers[CONFIG_SYNCHRONOUS], 1);
    assert_int_equal (config.action, CONFIG_RUN);
    config_free (&config);
    ASSERT_GOOD (&config, "--check");
    assert_int_equal (config.numbers[CONFIG_SYNCHRONOUS], 0);
    assert_int_equal (config.action, CONFIG_CHECK);
    config_free (&config);
    ASSERT_GOOD (&config, "--version");
    assert_int_equal (config.action, CONFIG_VERSION);
    config_free (&config);
    ASSERT_GOOD (&config, "-h");
    assert_int_equal (config.action, CONFIG_HELP);
    config_free (&config);
}

static void test_wrong_options_are_named (void **state)
{
    (void) state;
    ASSERT_BAD ("did you mean --listen?", "--lisen", "x");
    ASSERT_BAD ("did you mean --data?", "--dta=x");
    ASSERT_BAD ("unknown option --completely-else", "--completely-else");
    ASSERT_BAD ("unknown option -x", "-x");
    ASSERT_BAD ("needs a value", "--data");
    ASSERT_BAD ("unexpected argument word", "word");
    ASSERT_BAD ("must be sqlite, memory or postgresql", "--store", "postgres");
    ASSERT_BAD ("must be full or normal", "--synchronous", "off");
    ASSERT_BAD ("must be debug, info, warning or error", "--log-level", "loud");
    ASSERT_BAD ("must be text or json", "--log-format", "xml");
    ASSERT_BAD ("--data: the value is empty", "--data", "");
    ASSERT_BAD ("cannot read /nowhere", "-c", "/nowhere");
}

static void test_the_file_is_read_and_the_command_line_wins (void **state)
{
    (void) state;
    config_t config;
    const char *file = write_file ("# a comment\n"
                                   "broker\n"
                                   "    data = \"/from file\"\n"
                                   "    listen = \"tcp://127.0.0.1:1\"\n"
                                   "    store = memory\n"
                                   "store\n"
                                   "    synchronous = normal\n"
                                   "limits\n"
                                   "    live_tasks = 5000\n"
                                   "    free_space_min = 1G\n"
                                   "    drain_time = 5ms\n"
                                   "tasks\n"
                                   "    ttl = 2h\n");
    ASSERT_GOOD (&config, "--store", "sqlite", "-c", file, "--listen", "tcp://127.0.0.1:2");
    unlink (file);
    assert_string_equal (config_text (&config, CONFIG_DATA), "/from file");
    assert_int_equal (config.numbers[CONFIG_STORE], 0);
    assert_int_equal (config.numbers[CONFIG_SYNCHRONOUS], 1);
    assert_int_equal (config.values[CONFIG_LISTEN].items_count, 2);
    assert_string_equal (config.values[CONFIG_LISTEN].items[0].text, "tcp://127.0.0.1:1");
    assert_int_equal (config.numbers[CONFIG_LIVE_TASKS], 5000);
    assert_int_equal (config.numbers[CONFIG_FREE_SPACE_MIN], CONFIG_G);
    assert_int_equal (config.numbers[CONFIG_DRAIN_TIME], 5);
    assert_int_equal (config.numbers[CONFIG_TTL], 2 * CONFIG_H);
    assert_int_equal (config.numbers[CONFIG_LINKS], 10000);
    config_free (&config);
}

static void assert_bad_file (const char *text, const char *reason)
{
    config_t config;
    const char *file = write_file (text);
    bool good = parse (&config, "-c", file, NULL);
    unlink (file);
    config_free (&config);
    assert_false (good);
    if (strncmp (error, file, strlen (file)) != 0 || strstr (error, reason) == NULL)
        fail_msg ("said: %s", error);
}

/* Each with the number of its line. */
static void test_wrong_files_are_named (void **state)
{
    (void) state;
    assert_bad_file ("# one\n\nlimits\n    live_taks = 5000\n",
                     ":4: limits/live_taks is no key of the configuration; did you mean "
                     "limits/live_tasks?");
    assert_bad_file ("limits\n    nonsense = 1\n", ":2: limits/nonsense is no key");
    assert_bad_file ("limits\n    links = many\n", ":2: limits/links = many: must be a whole");
    assert_bad_file ("limits\n    links\n", ":2: links has no value: = is missing");
    assert_bad_file ("limits\n    links 5\n", ":2: = must stand behind links");
    assert_bad_file ("limits\n    links = # five\n", ":2: the value is missing");
    assert_bad_file ("limits\n    links = 5#five\n", ":2: a value with # stands in quotes");
    assert_bad_file ("limits\n    links = \"5\n", ":2: the quote \" is not closed");
    assert_bad_file ("limits\n    links = '5' 6\n", ":2: something stands behind the closing");
    assert_bad_file ("limits\n    = 5\n", ":2: a name must stand here");
    assert_bad_file ("limits\n        links = 5\n", ":2: too deep");
    assert_bad_file ("log\nlimtis\n", ":2: limtis is no section of the configuration");
    assert_bad_file ("[limits]\nlinks = 5\n", ":1: a section stands without brackets");
    assert_bad_file ("limits = 5\n", ":1: limits is no section");
    assert_bad_file ("limits\n  links = 5\n", ":2: 2 spaces: a key of a section is indented by");
    assert_bad_file ("    links = 5\n", ":1: a key without a section");
    assert_bad_file ("limits\n\tlinks = 5\n", ":2: a tab in column 1: use spaces");
    assert_bad_file ("limits\n    links = 5\x1b[0m\n", ":2: a control byte (0x1b) in column 14");
    assert_bad_file ("store\n    readers = 2\nlimits\n    links = 5\n    links = 6\n",
                     ":5: limits/links stands in line 4 already");
    assert_bad_file ("broker\n    feed = tcp://127.0.0.1:1\n", ":2: broker/feed = tcp://");
    assert_bad_file ("broker\n    advertise = broker.example\n", "HOST:PORT");
    assert_bad_file ("retention\n    namespace = a\n", "must be NAMESPACE=max_age:30d,");
    assert_bad_file ("retention\n    namespace = a=\n", "must be NAMESPACE=max_age:30d,");
    assert_bad_file ("retention\n    namespace = a b=none\n", "the name of a namespace");
    assert_bad_file ("retention\n    namespace = a=max_age\n", "a part is like max_age:30d");
    assert_bad_file ("retention\n    namespace = a=max_age:30\n",
                     "retention/namespace = a=max_age:30");
    assert_bad_file ("retention\n    namespace = a=max_count:0\n", "a number is 1 to 1000000000");
    assert_bad_file ("retention\n    namespace = a=max_count:5x\n", "a number is 1 to 1000000000");
    assert_bad_file ("retention\n    namespace = a=max_bytes:2000G\n", "bytes are 1B to 1024G");
    assert_bad_file ("retention\n    namespace = a=keep:5\n", "a rule has max_age, max_count");
    assert_bad_file ("retention\n    namespace = a=max_count:2,min_keep:3\n",
                     "max_count is less than min_keep");
    assert_bad_file ("retention\n    namespace = a=max_age:1d,min_keep:3,max_age:2d\n",
                     "each part may stand once");
    assert_bad_file ("retention\n    namespace = a=max_age:1d,\n", "a part is like max_age:30d");
    assert_bad_file ("retention\n    namespace = a=none\n    namespace = a=min_keep:3\n",
                     "a has a rule already");
}

static void test_contradictions_are_named_with_their_places (void **state)
{
    (void) state;
    config_t config;
    char said[256];
    const char *file =
        write_file ("limits\n    pending_inputs_soft = 5000\n    pending_inputs_hard = 4000\n");
    assert_false (parse (&config, "-c", file, NULL));
    unlink (file);
    snprintf (said, sizeof (said),
              "limits/pending_inputs_soft (%s:2) is above limits/pending_inputs_hard (%s:3)", file,
              file);
    assert_string_equal (error, said);
    config_free (&config);
}

static void test_every_limit_has_a_unit_and_bounds (void **state)
{
    (void) state;
    config_t config;
    config_init (&config);
    assert_false (config_set (&config, "limits/links", "30001", nobody, error));
    assert_non_null (strstr (error, "must be from 1 to 30000"));
    assert_false (config_set (&config, "limits/links", "many", nobody, error));
    assert_false (config_set (&config, "limits/links", "-1", nobody, error));
    assert_false (config_set (&config, "limits/links", "99999999999999999999", nobody, error));
    assert_false (config_set (&config, "tasks/ttl", "30", nobody, error));
    assert_false (config_set (&config, "limits/drain_bytes", "1", nobody, error));
    assert_false (config_set (&config, "limits/drain_bytes", "100B", nobody, error));
    assert_non_null (strstr (error, "must be from 1K to 1G"));
    /* What was refused changed nothing, and every default lies within its bounds. */
    config_t defaults;
    config_init (&defaults);
    assert_memory_equal (config.numbers, defaults.numbers, sizeof (config.numbers));
    for (size_t i = 0; i < CONFIG_KEYS; i++) {
        bool bounded =
            config_rules[i].kind != CONFIG_KIND_TEXT && config_rules[i].kind != CONFIG_KIND_LIST;
        assert_true (!bounded || config_rules[i].value >= config_rules[i].least);
        assert_true (!bounded || config_rules[i].value <= config_rules[i].most);
    }
    config_free (&defaults);
    config_free (&config);
}

static void test_addresses_are_judged_before_the_start (void **state)
{
    (void) state;
    config_t config;
    ASSERT_GOOD (&config, "--listen", "tcp://127.0.0.1:0", "--listen", "tcp://[::1]:0");
    assert_true (config_check_addresses (&config, error));
    config_free (&config);
    ASSERT_GOOD (&config, "--listen", "tcp://127.0.0.1:0", "--listen", "tcp://example.org:0");
    assert_false (config_check_addresses (&config, error));
    assert_non_null (strstr (error, "not a name"));
    config_free (&config);
    ASSERT_GOOD (&config, "--listen", "tcp://*:0", "--insecure-listen", "tcp://10.0.0.5:1");
    assert_true (config_check_addresses (&config, error));
    config_free (&config);
    ASSERT_GOOD (&config, "--insecure-listen", "ipc:///tmp/x");
    assert_false (config_check_addresses (&config, error));
    assert_non_null (strstr (error, "--insecure-listen"));
    config_free (&config);
}

#define DATABASE(uri) "--store", "postgresql", "--database", uri

/* It never comes back in what is said about it, or shown. */
static void test_a_password_in_the_database_is_refused (void **state)
{
    (void) state;
    static const char *const bad[] = {
        "postgresql://me:hidden@db/taskmq",          "postgres://me:hidden@db:5432,db2/taskmq",
        "postgresql://me@db/taskmq?password=hidden", "postgresql:///taskmq?host=/s&password=hidden",
        "postgresql://db/t?sslpassword=hidden",      "host=db password=hidden"};
    for (size_t i = 0; i < sizeof (bad) / sizeof (bad[0]); i++) {
        config_t config;
        assert_false (parse (&config, DATABASE (bad[i]), NULL));
        assert_null (strstr (error, "hidden"));
        assert_non_null (strstr (error, "database/uri: "));
        config_free (&config);
    }
    ASSERT_BAD ("database/passfile", DATABASE (bad[0]));
    ASSERT_BAD ("must be postgresql://USER@HOST/NAME", DATABASE ("db.example.org"));
    ASSERT_BAD ("must be postgresql://USER@HOST/NAME", DATABASE ("host=db"));
}

static void test_what_a_database_may_be_named (void **state)
{
    (void) state;
    static const char *const good[] = {
        "postgresql://me@db/taskmq", "postgres://db:5432,db2:5433/taskmq?sslmode=verify-full",
        "postgresql:///taskmq?host=/run/postgresql&user=me",
        "postgresql://me@[::1]:5432/taskmq?passfile=/etc/taskmq/pgpass",
        "postgresql://db/password"};
    config_t config;
    for (size_t i = 0; i < sizeof (good) / sizeof (good[0]); i++) {
        ASSERT_GOOD (&config, DATABASE (good[i]));
        assert_int_equal (config.numbers[CONFIG_STORE], CONFIG_STORE_POSTGRESQL);
        assert_string_equal (config_text (&config, CONFIG_DATABASE_URI), good[i]);
        config_free (&config);
    }
    config_init (&config);
    assert_true (config_set (&config, "database/schema", "task_mq2", nobody, error));
    assert_true (config_set (&config, "database/synchronous_commit", "local", nobody, error));
    assert_false (config_set (&config, "database/schema", "2", nobody, error));
    assert_false (config_set (&config, "database/schema", "Taskmq", nobody, error));
    assert_false (config_set (&config, "database/schema", "a\"; DROP", nobody, error));
    assert_false (config_set (&config, "database/schema", "pg_mine", nobody, error));
    assert_false (config_set (&config, "database/synchronous_commit", "off", nobody, error));
    assert_non_null (strstr (error, "must be on, remote_apply or local"));
    config_free (&config);
}

/* A forgotten option never begins another, empty store. */
static void test_a_store_and_its_database_go_together (void **state)
{
    (void) state;
    ASSERT_BAD ("broker/store (--store) = postgresql needs database/uri", "--store", "postgresql");
    ASSERT_BAD ("database/uri (--database) needs broker/store postgresql", "--database",
                "postgresql:///t");
    ASSERT_BAD ("PostgreSQL archives by itself", DATABASE ("postgresql:///t"), "--archive", "/a");
    ASSERT_BAD ("memory keeps nothing", "--store", "memory", "--archive", "/a");
    ASSERT_BAD ("store/synchronous (--synchronous) = normal needs broker/store sqlite",
                DATABASE ("postgresql:///t"), "--synchronous", "normal");
}

static void test_layers_go_over_each_other (void **state)
{
    (void) state;
    config_t config;
    char from[CONFIG_ORIGIN_SIZE];
    char wanted[128];
    char path[64];
    char *variables[] = {"TASKMQD_LIMITS_READS=300",
                         "TASKMQD_LIMITS_LINK_READS=3",
                         "TASKMQ_X=1",
                         "TASKMQD_BROKER_LISTEN= ipc:///e  ipc:///f",
                         "TASKMQD_OPTIONS=-c x",
                         "TASKMQD_TASKS_TTL=",
                         NULL};
    const char *file = write_file ("limits\n    links = 1\n    reads = 1\n    link_reads = 1\n"
                                   "broker\n    listen = ipc:///a\n    listen = ipc:///b\n"
                                   "tasks\n    ttl = 1h\nlog\n    level = error\n");
    snprintf (path, sizeof (path), "%s.d", file);
    assert_int_equal (mkdir (path, 0700), 0);
    write_drop_in (path, "20-b.conf", "limits\n    links = 22\n    reads = 22\n");
    write_drop_in (path, "10-a.conf",
                   "broker\n    listen =\n    listen = ipc:///c\n"
                   "limits\n    links = 11\n");
    write_drop_in (path, "30-c.conf.bak", "limits\n    links = 33\n");
    write_drop_in (path, ".hidden.conf", "limits\n    links = 44\n");
    environment = variables;
    bool good = parse (&config, "-c", file, "--listen", "ipc:///g", "--log-level", "debug", NULL);
    environment = no_environment;
    remove_tree (path);
    unlink (file);
    if (!good)
        fail_msg ("%s", error);
    assert_int_equal (config.numbers[CONFIG_LINKS], 22);
    snprintf (wanted, sizeof (wanted), "%s/20-b.conf:2", path);
    assert_string_equal (config_format_origin (from, config.values[CONFIG_LINKS].origin), wanted);
    assert_int_equal (config.numbers[CONFIG_READS], 300);
    assert_string_equal (config_format_origin (from, config.values[CONFIG_READS].origin),
                         "TASKMQD_LIMITS_READS");
    assert_int_equal (config.numbers[CONFIG_LINK_READS], 3);
    assert_int_equal (config.numbers[CONFIG_LOG_LEVEL], LOG_LEVEL_DEBUG);
    assert_string_equal (config_format_origin (from, config.values[CONFIG_LOG_LEVEL].origin),
                         "--log-level");
    assert_string_equal (config_format_origin (from, config.values[CONFIG_NAMESPACES].origin),
                         "default");
    /* An empty value takes back what stood below it. */
    assert_int_equal (config.numbers[CONFIG_TTL], TMQ_TTL_MS_DEFAULT);
    static const char *const listen[] = {"ipc:///c", "ipc:///e", "ipc:///f", "ipc:///g"};
    assert_int_equal (config.values[CONFIG_LISTEN].items_count, 4);
    for (size_t i = 0; i < 4; i++)
        assert_string_equal (config.values[CONFIG_LISTEN].items[i].text, listen[i]);
    config_free (&config);
}

static void assert_bad_variable (char *variable, const char *reason)
{
    config_t config;
    char *variables[] = {variable, NULL};
    environment = variables;
    bool good = parse (&config, NULL);
    environment = no_environment;
    config_free (&config);
    assert_false (good);
    if (strstr (error, reason) == NULL)
        fail_msg ("said: %s", error);
}

static void test_a_mistyped_variable_is_named (void **state)
{
    (void) state;
    assert_bad_variable ("TASKMQD_LIMITS_LINSK=5", "did you mean TASKMQD_LIMITS_LINKS?");
    assert_bad_variable ("TASKMQD_SOMETHING=5", "TASKMQD_SOMETHING in the environment is no key");
    assert_bad_variable ("TASKMQD_LIMITS_LINKS=many", "TASKMQD_LIMITS_LINKS: limits/links = many");
    config_t config;
    char *variables[] = {"TASKMQD_SOMETHING=5", NULL};
    environment = variables;
    bool good = parse (&config, "-c", "/nowhere", "--help", NULL);
    environment = no_environment;
    assert_true (good);
    assert_int_equal (config.action, CONFIG_HELP);
    config_free (&config);
    assert_bad_variable ("TASKMQD_OPTIONS2=x", "TASKMQD_OPTIONS2 in the environment");
}

/* What stands in the way of a file, and what is no text. */
static void test_files_that_are_none_are_refused (void **state)
{
    (void) state;
    static char big[CONFIG_FILE_BYTES_MAX + 2];
    static char line[SCAN_LINE_BYTES_MAX + 100] = "broker\n    data = ";
    char path[64];
    ASSERT_BAD ("it is a directory", "-c", "/tmp");
    memset (big, '\n', sizeof (big) - 1);
    assert_bad_file (big, "it has more than 262144 bytes");
    memset (line + strlen (line), 'x', sizeof (line) - 1 - strlen (line));
    assert_bad_file (line, ":2: the line is longer than 4200 bytes");
    const char *file = write_file ("");
    snprintf (path, sizeof (path), "%s.d", file);
    close (open (path, O_CREAT | O_WRONLY, 0600));
    ASSERT_BAD (".d: Not a directory", "-c", file);
    unlink (path);
    assert_int_equal (mkdir (path, 0700), 0);
    write_drop_in (path, "a.conf", "limits\n    links = 1\n    lniks = 2\n");
    ASSERT_BAD ("/a.conf:3: limits/lniks is no key", "-c", file);
    remove_tree (path);
    assert_int_equal (mkfifo (path, 0600), 0);
    ASSERT_BAD ("it is no file", "-c", path);
    unlink (path);
    unlink (file);
}

/* Bytes of all kinds, and good files with one byte changed: refused or taken, never worse. */
static void test_the_scan_takes_any_bytes (void **state)
{
    (void) state;
    static const char good[] = "broker # one\n    data = \"/a b\" # two\nlimits\n    links=5\n";
    for (size_t at = 0; at < sizeof (good) - 1; at++) {
        for (int byte = 0; byte < 256; byte++) {
            char *text = malloc (sizeof (good) - 1); /* exactly, so that ASan sees a step beyond */
            scan_t scan;
            memcpy (text, good, sizeof (good) - 1);
            text[at] = (char) byte;
            if (!scan_text (&scan, text, sizeof (good) - 1))
                assert_true (scan.error[0] != '\0' && scan.wrong_line > 0 && scan.wrong_line < 6);
            scan_free (&scan);
            free (text);
        }
    }
}

/* Every prefix of a good file, as one that was torn, is taken or refused with its last line. */
static void test_a_torn_file_is_never_half_a_key (void **state)
{
    (void) state;
    static const char good[] = "limits\n    links = 5\n    reads = 4000\nlog\n    level = info\n";
    for (size_t length = 0; length < sizeof (good) - 1; length++) {
        char text[sizeof (good)] = "";
        config_t config;
        memcpy (text, good, length);
        const char *file = write_file (text);
        if (!parse (&config, "-c", file, NULL))
            assert_true (strncmp (error, file, strlen (file)) == 0);
        config_free (&config);
        unlink (file);
    }
}

/* What --show-config prints is a configuration that says the same. */
static void test_what_is_shown_can_be_read_back (void **state)
{
    (void) state;
    config_t config;
    config_t again;
    char *text = NULL;
    size_t bytes = 0;
    ASSERT_GOOD (&config, "--data", "/a b#c", "--listen", "ipc:///x", "--listen", "ipc:///y",
                 "--synchronous", "normal", "--log-level", "warning");
    assert_true (config_set (&config, "limits/live_bytes", "1500K", nobody, error));
    assert_true (config_set (&config, "tasks/ttl", "90m", nobody, error));
    FILE *file = open_memstream (&text, &bytes);
    config_show (&config, file);
    fclose (file);
    assert_non_null (strstr (text, "    data = \"/a b#c\""));
    assert_non_null (strstr (text, "# --data\n"));
    assert_non_null (strstr (text, "    links = 10000"));
    assert_non_null (strstr (text, "# default\n"));
    const char *path = write_file (text);
    ASSERT_GOOD (&again, "-c", path);
    unlink (path);
    free (text);
    for (size_t i = 0; i < CONFIG_KEYS; i++) {
        if (!config_same (&config, &again, (config_key_t) i))
            fail_msg ("%s was not read back", config_rules[i].key);
    }
    config_free (&config);
    config_free (&again);
}

/* The head of a key's entry in the manual's source, where underscores are escaped. */
static void name_entry (char out[1024], config_key_t key)
{
    char plain[CONFIG_ORIGIN_SIZE];
    char values[CONFIG_ORIGIN_SIZE];
    snprintf (plain, sizeof (plain), "*%s* = %s\n", config_rules[key].key,
              config_describe (values, key));
    for (const char *at = plain; *at != '\0'; at++) {
        if (*at == '_')
            *out++ = '\\';
        *out++ = *at;
    }
    *out = '\0';
}

static void test_the_manual_has_an_entry_for_each_key (void **state)
{
    (void) state;
    static char manual[64 * 1024];
    char path[512];
    char line[1024];
    size_t entries = 0;
    const char *source = getenv ("TASKMQ_SOURCE");
    assert_non_null (source);
    snprintf (path, sizeof (path), "%s/docs/man/taskmq.conf.5.scd", source);
    FILE *file = fopen (path, "r");
    assert_non_null (file);
    manual[fread (manual, 1, sizeof (manual) - 1, file)] = '\0';
    fclose (file);
    for (size_t i = 0; i < CONFIG_KEYS; i++) {
        name_entry (line, (config_key_t) i);
        if (strstr (manual, line) == NULL)
            fail_msg ("the manual lacks: %s", line);
    }
    for (const char *at = manual; (at = strchr (at, '\n')) != NULL;)
        entries += *++at == '*' && memchr (at, '/', strcspn (at, "*\n=") + 20) != NULL &&
                   strstr (at, "* = ") != NULL && strstr (at, "* = ") < at + strcspn (at, "\n");
    assert_int_equal (entries, CONFIG_KEYS);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_options_are_taken),
        cmocka_unit_test (test_wrong_options_are_named),
        cmocka_unit_test (test_the_file_is_read_and_the_command_line_wins),
        cmocka_unit_test (test_wrong_files_are_named),
        cmocka_unit_test (test_contradictions_are_named_with_their_places),
        cmocka_unit_test (test_a_password_in_the_database_is_refused),
        cmocka_unit_test (test_what_a_database_may_be_named),
        cmocka_unit_test (test_a_store_and_its_database_go_together),
        cmocka_unit_test (test_layers_go_over_each_other),
        cmocka_unit_test (test_a_mistyped_variable_is_named),
        cmocka_unit_test (test_files_that_are_none_are_refused),
        cmocka_unit_test (test_the_scan_takes_any_bytes),
        cmocka_unit_test (test_a_torn_file_is_never_half_a_key),
        cmocka_unit_test (test_what_is_shown_can_be_read_back),
        cmocka_unit_test (test_the_manual_has_an_entry_for_each_key),
        cmocka_unit_test (test_addresses_are_judged_before_the_start),
        cmocka_unit_test (test_every_limit_has_a_unit_and_bounds),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
