/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The command line, which is the last layer. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "config/config.h"
#include "config/layers.h"
#include "nearest.h"
#include "units.h"

/* Options that are keys of the configuration; the others are actions and -c. */
static const struct key_option {
    const char *name;
    config_key_t key;
} key_options[] = {
    {"data", CONFIG_DATA},
    {"listen", CONFIG_LISTEN},
    {"insecure-listen", CONFIG_INSECURE_LISTEN},
    {"feed", CONFIG_FEED},
    {"store", CONFIG_STORE},
    {"database", CONFIG_DATABASE_URI},
    {"synchronous", CONFIG_SYNCHRONOUS},
    {"archive", CONFIG_ARCHIVE},
    {"log-level", CONFIG_LOG_LEVEL},
    {"log-format", CONFIG_LOG_FORMAT},
    {"trace-slow", CONFIG_LOG_SLOW},
};

/* Switches that an option turns on. */
static const struct key_option switch_options[] = {
    {"standby", CONFIG_STANDBY},
};

static const struct action_option {
    const char *name;
    config_action_t action;
} action_options[] = {
    {"check", CONFIG_CHECK},      {"check-config", CONFIG_CHECK_CONFIG},
    {"show-config", CONFIG_SHOW}, {"version", CONFIG_VERSION},
    {"help", CONFIG_HELP},
};

enum {
    KEY_OPTIONS = sizeof (key_options) / sizeof (key_options[0]),
    SWITCH_OPTIONS = sizeof (switch_options) / sizeof (switch_options[0]),
    ACTION_OPTIONS = sizeof (action_options) / sizeof (action_options[0]),
    OPTIONS = KEY_OPTIONS + SWITCH_OPTIONS + ACTION_OPTIONS + 4,
    FIRST_KEY = 256,
    FIRST_SWITCH = FIRST_KEY + KEY_OPTIONS,
    FIRST_ACTION = FIRST_SWITCH + SWITCH_OPTIONS
};

static void fill_options (struct option out[OPTIONS + 1])
{
    size_t n = 0;
    out[n++] = (struct option){"config", required_argument, NULL, 'c'};
    out[n++] = (struct option){"restore", required_argument, NULL, 'r'};
    out[n++] = (struct option){"until", required_argument, NULL, 'u'};
    out[n++] = (struct option){"accept-rollback", no_argument, NULL, 'a'};
    for (int i = 0; i < KEY_OPTIONS; i++)
        out[n++] = (struct option){key_options[i].name, required_argument, NULL, FIRST_KEY + i};
    for (int i = 0; i < SWITCH_OPTIONS; i++)
        out[n++] = (struct option){switch_options[i].name, no_argument, NULL, FIRST_SWITCH + i};
    for (int i = 0; i < ACTION_OPTIONS; i++)
        out[n++] = (struct option){action_options[i].name, no_argument, NULL, FIRST_ACTION + i};
    out[n] = (struct option){NULL, 0, NULL, 0};
}

static bool unknown_option (const struct option *options, const char *word, char *error)
{
    const char *names[OPTIONS];
    for (size_t i = 0; i < OPTIONS; i++)
        names[i] = options[i].name;
    char name[64];
    snprintf (name, sizeof (name), "%s", word + strspn (word, "-"));
    name[strcspn (name, "=")] = '\0';
    const char *nearest = nearest_of (name, names, OPTIONS);
    if (nearest != NULL)
        return config_fail (error, "unknown option %.100s; did you mean --%s?", word, nearest);
    return config_fail (error, "unknown option %.100s; see taskmqd --help", word);
}

/* An empty value is mostly a variable of a script that was never set. Only a list is emptied so. */
static bool set_option (config_t *self, const struct key_option *option, const char *text,
                        char *error)
{
    char name[32];
    char why[CONFIG_ERROR_SIZE];
    snprintf (name, sizeof (name), "--%s", option->name);
    if (text[0] == '\0' && config_rules[option->key].kind != CONFIG_KIND_LIST)
        return config_fail (error, "%s: the value is empty", name);
    if (config_set (self, config_rules[option->key].key, text, (config_origin_t){name, 0}, why))
        return true;
    return config_fail (error, "%s: %.900s", name, why);
}

static bool apply (config_t *self, int option, const char *text, char *error)
{
    if (option == 'c')
        return true;
    if (option == 'a') {
        self->accept_rollback = true;
        return true;
    }
    if (option == 'r') {
        self->action = CONFIG_RESTORE;
        self->restore = text;
        return true;
    }
    if (option == 'u') {
        char why[UNITS_ERROR_SIZE];
        return time_parse (&self->until_ms, text, why) || config_fail (error, "--until: %s", why);
    }
    if (option >= FIRST_SWITCH && option < FIRST_ACTION)
        return set_option (self, &switch_options[option - FIRST_SWITCH], "on", error);
    if (option >= FIRST_KEY && option < FIRST_SWITCH)
        return set_option (self, &key_options[option - FIRST_KEY], text, error);
    if (option >= FIRST_ACTION)
        self->action = action_options[option - FIRST_ACTION].action;
    else
        self->action = CONFIG_HELP;
    return true;
}

/* Files are read before everything else of the line. */
static bool take_file (config_t *self, int option, const char *file, char *error)
{
    if (option != 'c')
        return true;
    if (self->named_count == CONFIG_NAMED_MAX)
        return config_fail (error, "more than %d files by -c", CONFIG_NAMED_MAX);
    self->named[self->named_count++] = file;
    return layers_files (self, file, error);
}

/* What is only asked about is answered whatever stands in files and environment. */
static bool take_question (config_t *self, int option, const char *text, char *error)
{
    (void) text;
    (void) error;
    if (option == 'h')
        self->action = CONFIG_HELP;
    else if (option >= FIRST_ACTION)
        self->action = action_options[option - FIRST_ACTION].action;
    return true;
}

typedef bool take_t (config_t *self, int option, const char *text, char *error);

/* A moment is one of an archive. */
static bool judge_until (const config_t *self, char *error)
{
    if (self->until_ms == INT64_MAX)
        return true;
    if (self->action != CONFIG_RESTORE)
        return config_fail (error, "--until is for --restore");
    return config_text (self, CONFIG_ARCHIVE) != NULL ||
           config_fail (error, "--until needs --archive DIR: a backup alone has one moment");
}

/* One walk over the options. */
static bool walk (config_t *self, int argc, char **argv, take_t *take, char *error)
{
    struct option options[OPTIONS + 1];
    int option;
    fill_options (options);
    opterr = 0;
    optind = 0;
    while ((option = getopt_long (argc, argv, ":c:h", options, NULL)) != -1) {
        if (option == ':')
            return config_fail (error, "option %s needs a value", argv[optind - 1]);
        if (option == '?')
            return unknown_option (options, argv[optind - 1], error);
        if (!take (self, option, optarg, error))
            return false;
    }
    if (optind < argc)
        return config_fail (error, "unexpected argument %.100s", argv[optind]);
    return true;
}

bool config_parse (config_t *self, int argc, char **argv, char *const *environment,
                   char error[CONFIG_ERROR_SIZE])
{
    if (!walk (self, argc, argv, take_question, error))
        return false;
    if (self->action == CONFIG_HELP || self->action == CONFIG_VERSION)
        return true;
    return walk (self, argc, argv, take_file, error) &&
           layers_environment (self, environment, error) && walk (self, argc, argv, apply, error) &&
           judge_until (self, error) && config_is_consistent (self, error);
}

void config_print_help (void)
{
    puts ("usage: taskmqd [options]\n"
          "The broker of taskmq. Runs in the foreground and logs to stderr.\n"
          "\n"
          "  -c, --config FILE    configuration, see taskmq.conf(5); then FILE.d/*.conf\n"
          "      --data DIR       data directory; default: the nearest .taskmq upward, else\n"
          "                       a new one here\n"
          "      --listen URI     listen here too: ipc://PATH or tcp://ADDRESS:PORT (*: all\n"
          "                       addresses, 0: any free port). Other machines need a key;\n"
          "                       ?curve behind the port asks this one for it too\n"
          "      --insecure-listen URI\n"
          "                       listen on tcp here without keys and encryption\n"
          "      --feed NS=URI    publish the events of namespace NS as JSON on an XPUB\n"
          "                       socket\n"
          "      --store NAME     sqlite (default), memory, which forgets everything at the\n"
          "                       end, or postgresql, which needs --database\n"
          "      --database URI   of PostgreSQL, as postgresql://USER@HOST/NAME; its\n"
          "                       password stands in a file (database/passfile)\n"
          "      --standby        wait while another broker owns the database, and take\n"
          "                       over when it stops or gives no sign (cluster/lease)\n"
          "      --synchronous S  full (default), or normal, with which a loss of power may\n"
          "                       lose work that was acknowledged\n"
          "      --archive DIR    keep what is committed in this directory, too, on another\n"
          "                       disk\n"
          "      --log-level L    debug, info (default), warning or error\n"
          "      --log-format F   text (default) or json\n"
          "      --trace-slow T   log each request that takes so long (\"20ms\"), with where\n"
          "                       it waited\n"
          "      --show-config    print every value of the configuration and who said so\n"
          "      --check-config   judge the configuration and what it needs of this\n"
          "                       machine, also beside a running broker; then end\n"
          "      --check          read all of the data directory, where one is named, while\n"
          "                       no broker runs on it, and say what is damaged; then end.\n"
          "                       With --archive read that, too\n"
          "      --restore FILE   make the data directory, which must be named by --data\n"
          "                       and empty or missing, of a backup, then end. With\n"
          "                       --archive also of what was committed behind it; with\n"
          "                       --store postgresql into the empty --database\n"
          "      --until TIME     ... up to this time (2026-11-22T15:04:05Z)\n"
          "      --accept-rollback\n"
          "                       start although the database lacks events that\n"
          "                       events.jsonl has: what they did is given up\n"
          "      --version        print the version\n"
          "  -h, --help           print this\n"
          "\n"
          "TASKMQD_SECTION_KEY in the environment is the key section/key.");
}
