/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Command line, configuration file, and the table of limits. */
#include "support/cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "units.h"

static char error[CONFIG_ERROR_SIZE];

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
    bool good = config_parse_arguments (config, argc, argv, error);
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

static void test_options_are_taken (void **state)
{
    (void) state;
    config_t config;
    ASSERT_GOOD (&config, "--data", "/d", "--listen", "tcp://127.0.0.1:1", "--listen=ipc:///x",
                 "--store", "memory", "--log-level", "warning", "--log-format", "json",
                 "--synchronous", "normal");
    assert_string_equal (config.data, "/d");
    assert_int_equal (config.listen_count, 2);
    assert_string_equal (config.listen[1], "ipc:///x");
    assert_string_equal (config.store, "memory");
    assert_int_equal (config.log_level, LOG_LEVEL_WARNING);
    assert_true (config.log_json);
    assert_true (config.synchronous_normal);
    assert_int_equal (config.action, CONFIG_RUN);
    config_free (&config);
    ASSERT_GOOD (&config, "--check");
    assert_false (config.synchronous_normal);
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
    ASSERT_BAD ("must be sqlite or memory", "--store", "postgres");
    ASSERT_BAD ("must be full or normal", "--synchronous", "off");
    ASSERT_BAD ("must be debug, info, warning or error", "--log-level", "loud");
    ASSERT_BAD ("must be text or json", "--log-format", "xml");
    ASSERT_BAD ("name is empty", "--data", "");
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
    assert_string_equal (config.data, "/from file");
    assert_string_equal (config.store, "sqlite");
    assert_true (config.synchronous_normal);
    assert_int_equal (config.listen_count, 2);
    assert_string_equal (config.listen[0], "tcp://127.0.0.1:1");
    assert_int_equal (config.limits[CONFIG_LIVE_TASKS], 5000);
    assert_int_equal (config.limits[CONFIG_FREE_SPACE_MIN], CONFIG_G);
    assert_int_equal (config.limits[CONFIG_DRAIN_TIME], 5);
    assert_int_equal (config.limits[CONFIG_TTL], 2 * CONFIG_H);
    assert_int_equal (config.limits[CONFIG_LINKS], 10000);
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
    if (strstr (error, reason) == NULL)
        fail_msg ("said: %s", error);
}

static void test_wrong_files_are_named (void **state)
{
    (void) state;
    assert_bad_file ("limits\n    live_taks = 5000\n", "did you mean limits/live_tasks?");
    assert_bad_file ("limits\n    nonsense = 1\n", "limits/nonsense is no key");
    assert_bad_file ("limits\n    live_tasks\n        deep = 1\n", "limits/live_tasks is no key");
    assert_bad_file ("limits = 5\n", "limits is no key");
    assert_bad_file ("limits\n  links = 5\n", "indented by four spaces");
    assert_bad_file ("limits\n    pending_inputs_soft = 5000\n    pending_inputs_hard = 4000\n",
                     "is above limits/pending_inputs_hard");
}

static void test_every_limit_has_a_unit_and_bounds (void **state)
{
    (void) state;
    config_t config;
    config_init (&config);
    assert_false (config_set (&config, "limits/links", "30001", error));
    assert_non_null (strstr (error, "must be from 1 to 30000"));
    assert_false (config_set (&config, "limits/links", "many", error));
    assert_false (config_set (&config, "limits/links", "-1", error));
    assert_false (config_set (&config, "limits/links", "99999999999999999999", error));
    assert_false (config_set (&config, "tasks/ttl", "30", error));
    assert_false (config_set (&config, "limits/drain_bytes", "1", error));
    assert_false (config_set (&config, "limits/drain_bytes", "100B", error));
    assert_non_null (strstr (error, "must be from 1K to 1G"));
    /* What was refused changed nothing, and every default lies within its bounds. */
    config_t defaults;
    config_init (&defaults);
    assert_memory_equal (config.limits, defaults.limits, sizeof (config.limits));
#define X(NAME, key, unit, value, least, most, meaning)                                            \
    assert_true ((uint64_t) (value) >= (uint64_t) (least));                                        \
    assert_true ((uint64_t) (value) <= (uint64_t) (most));
    CONFIG_LIMIT_MAP (X)
#undef X
    config_free (&defaults);
    config_free (&config);
}

static void test_addresses_are_judged_before_the_start (void **state)
{
    (void) state;
    config_t config;
    ASSERT_GOOD (&config, "--listen", "tcp://127.0.0.1:0", "--listen", "tcp://[::1]:0");
    assert_true (config_check_addresses (&config, error, sizeof (error)));
    config_free (&config);
    ASSERT_GOOD (&config, "--listen", "tcp://127.0.0.1:0", "--listen", "tcp://*:0");
    assert_false (config_check_addresses (&config, error, sizeof (error)));
    assert_non_null (strstr (error, "only loopback"));
    config_free (&config);
}

/* "limits/links" as the manual's source has it: underscores escaped. */
static void escape (char *out, const char *key)
{
    for (; *key != '\0'; key++) {
        if (*key == '_')
            *out++ = '\\';
        *out++ = *key;
    }
    *out = '\0';
}

static void test_the_manual_names_every_limit_and_its_default (void **state)
{
    (void) state;
    static char manual[64 * 1024];
    char path[512];
    const char *source = getenv ("TASKMQ_SOURCE");
    assert_non_null (source);
    snprintf (path, sizeof (path), "%s/docs/man/taskmqd.8.scd", source);
    FILE *file = fopen (path, "r");
    assert_non_null (file);
    manual[fread (manual, 1, sizeof (manual) - 1, file)] = '\0';
    fclose (file);
    char key[128];
    char value[UNITS_TEXT_SIZE];
    char line[256];
#define X(NAME, name, unit, standard, least, most, meaning)                                        \
    escape (key, name);                                                                            \
    snprintf (line, sizeof (line), "*%s* = %s\n", key,                                             \
              config_format_limit (value, CONFIG_##NAME, standard));                               \
    if (strstr (manual, line) == NULL)                                                             \
        fail_msg ("the manual lacks: %s", line);
    CONFIG_LIMIT_MAP (X)
#undef X
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_options_are_taken),
        cmocka_unit_test (test_wrong_options_are_named),
        cmocka_unit_test (test_the_file_is_read_and_the_command_line_wins),
        cmocka_unit_test (test_wrong_files_are_named),
        cmocka_unit_test (test_the_manual_names_every_limit_and_its_default),
        cmocka_unit_test (test_addresses_are_judged_before_the_start),
        cmocka_unit_test (test_every_limit_has_a_unit_and_bounds),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
