/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Failure: every error names the option or the key, what was given, and what would be right. */
#include "config.h"

#include <czmq.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "ids.h"
#include "nearest.h"
#include "units.h"

typedef enum unit { UNIT_COUNT, UNIT_SIZE, UNIT_DURATION } unit_t;

static const struct limit {
    const char *key;
    unit_t unit;
    uint64_t value;
    uint64_t least;
    uint64_t most;
    const char *meaning;
} limit_table[CONFIG_LIMITS] = {
#define X(NAME, key, unit, value, least, most, meaning)                                            \
    [CONFIG_##NAME] = {key, UNIT_##unit, value, least, most, meaning},
    CONFIG_LIMIT_MAP (X)
#undef X
};

__attribute__ ((format (printf, 2, 3))) static bool fail (char *error, const char *format, ...)
{
    va_list arguments;
    va_start (arguments, format);
    vsnprintf (error, CONFIG_ERROR_SIZE, format, arguments);
    va_end (arguments);
    return false;
}

void config_init (config_t *out)
{
    memset (out, 0, sizeof (*out));
    out->action = CONFIG_RUN;
    out->log_level = LOG_LEVEL_INFO;
    out->store = memory_text ("sqlite");
    for (size_t i = 0; i < CONFIG_LIMITS; i++)
        out->limits[i] = limit_table[i].value;
}

void config_free (config_t *self)
{
    free (self->data);
    free (self->store);
    for (size_t i = 0; i < self->listen_count; i++)
        free (self->listen[i]);
    for (size_t i = 0; i < self->feeds_count; i++)
        free (self->feeds[i].uri);
    memset (self, 0, sizeof (*self));
}

/* Limits. */

const char *config_format_limit (char *out, config_limit_t limit, uint64_t value)
{
    switch (limit_table[limit].unit) {
    case UNIT_SIZE: return size_format (out, value);
    case UNIT_DURATION: return duration_format (out, (int64_t) value);
    case UNIT_COUNT: break;
    }
    snprintf (out, UNITS_TEXT_SIZE, "%llu", (unsigned long long) value);
    return out;
}

static bool count_parse (uint64_t *out, const char *text, char why[UNITS_ERROR_SIZE])
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull (text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0) {
        snprintf (why, UNITS_ERROR_SIZE, "must be a whole number");
        return false;
    }
    *out = value;
    return true;
}

static bool limit_parse (uint64_t *out, unit_t unit, const char *text, char why[UNITS_ERROR_SIZE])
{
    int64_t duration = 0;
    switch (unit) {
    case UNIT_SIZE: return size_parse (out, text, why);
    case UNIT_DURATION:
        if (!duration_parse (&duration, text, why))
            return false;
        *out = (uint64_t) duration;
        return true;
    case UNIT_COUNT: break;
    }
    return count_parse (out, text, why);
}

static bool limit_set (uint64_t *out, config_limit_t which, const char *text, char *error)
{
    const struct limit *limit = &limit_table[which];
    char why[UNITS_ERROR_SIZE];
    char least[UNITS_TEXT_SIZE];
    char most[UNITS_TEXT_SIZE];
    uint64_t value = 0;
    if (!limit_parse (&value, limit->unit, text, why))
        return fail (error, "%s = %s: %s", limit->key, text, why);
    if (value < limit->least || value > limit->most)
        return fail (error, "%s = %s: must be from %s to %s", limit->key, text,
                     config_format_limit (least, which, limit->least),
                     config_format_limit (most, which, limit->most));
    *out = value;
    return true;
}

/* Keys. */

static bool set_text (char **out, const char *text)
{
    free (*out);
    *out = memory_text (text);
    return true;
}

static bool set_data (config_t *self, const char *text, char *error)
{
    if (text[0] == '\0')
        return fail (error, "the data directory's name is empty");
    return set_text (&self->data, text);
}

static bool set_store (config_t *self, const char *text, char *error)
{
    if (strcmp (text, "sqlite") != 0 && strcmp (text, "memory") != 0)
        return fail (error, "store %s: must be sqlite or memory", text);
    return set_text (&self->store, text);
}

static bool set_synchronous (config_t *self, const char *text, char *error)
{
    if (strcmp (text, "full") != 0 && strcmp (text, "normal") != 0)
        return fail (error, "synchronous %s: must be full or normal", text);
    self->synchronous_normal = strcmp (text, "normal") == 0;
    return true;
}

static bool set_log_level (config_t *self, const char *text, char *error)
{
    if (!log_level_parse (&self->log_level, text))
        return fail (error, "log level %s: must be debug, info, warning or error", text);
    return true;
}

static bool set_log_format (config_t *self, const char *text, char *error)
{
    if (strcmp (text, "json") != 0 && strcmp (text, "text") != 0)
        return fail (error, "log format %s: must be text or json", text);
    self->log_json = strcmp (text, "json") == 0;
    return true;
}

/* One place is left for the data directory's own socket. */
static bool add_listen (config_t *self, const char *text, char *error)
{
    if (self->listen_count == ROUTER_ENDPOINTS_MAX - 1)
        return fail (error, "more than %d addresses to listen on", ROUTER_ENDPOINTS_MAX - 1);
    self->listen[self->listen_count++] = memory_text (text);
    return true;
}

static bool add_feed (config_t *self, const char *text, char *error)
{
    const char *equals = strchr (text, '=');
    if (self->feeds_count == FEEDS_MAX)
        return fail (error, "more than %d feeds", FEEDS_MAX);
    config_feed_t *feed = &self->feeds[self->feeds_count];
    size_t length = equals != NULL ? (size_t) (equals - text) : 0;
    snprintf (feed->ns, sizeof (feed->ns), "%.*s", (int) length, text);
    if (length > TMQ_NAME_LENGTH_MAX || !name_is_valid (feed->ns))
        return fail (error, "feed %s: must be NAMESPACE=URI", text);
    feed->uri = memory_text (equals + 1);
    self->feeds_count++;
    return true;
}

typedef bool setter_t (config_t *self, const char *text, char *error);

static const struct key {
    const char *key;
    setter_t *set;
} key_table[] = {
    {"broker/data", set_data},
    {"broker/listen", add_listen},
    {"broker/store", set_store},
    {"log/level", set_log_level},
    {"log/format", set_log_format},
    {"broker/feed", add_feed},
    {"store/synchronous", set_synchronous},
};
enum { KEYS = sizeof (key_table) / sizeof (key_table[0]) };

static bool unknown_key (const char *key, char *error)
{
    const char *names[KEYS + CONFIG_LIMITS];
    for (size_t i = 0; i < KEYS; i++)
        names[i] = key_table[i].key;
    for (size_t i = 0; i < CONFIG_LIMITS; i++)
        names[KEYS + i] = limit_table[i].key;
    const char *nearest = nearest_of (key, names, KEYS + CONFIG_LIMITS);
    if (nearest != NULL)
        return fail (error, "%s is no key of the configuration; did you mean %s?", key, nearest);
    return fail (error, "%s is no key of the configuration", key);
}

bool config_set (config_t *self, const char *key, const char *value, char error[CONFIG_ERROR_SIZE])
{
    for (size_t i = 0; i < KEYS; i++) {
        if (strcmp (key, key_table[i].key) == 0)
            return key_table[i].set (self, value, error);
    }
    for (size_t i = 0; i < CONFIG_LIMITS; i++) {
        if (strcmp (key, limit_table[i].key) == 0)
            return limit_set (&self->limits[i], (config_limit_t) i, value, error);
    }
    return unknown_key (key, error);
}

/* The file. */

static bool load_section (config_t *self, zconfig_t *section, char *error)
{
    for (zconfig_t *item = zconfig_child (section); item != NULL; item = zconfig_next (item)) {
        char key[256];
        snprintf (key, sizeof (key), "%s/%s", zconfig_name (section), zconfig_name (item));
        if (zconfig_child (item) != NULL)
            return unknown_key (key, error);
        const char *value = zconfig_value (item);
        if (!config_set (self, key, value != NULL ? value : "", error))
            return false;
    }
    return true;
}

bool config_load (config_t *self, const char *file, char error[CONFIG_ERROR_SIZE])
{
    if (access (file, R_OK) != 0)
        return fail (error, "cannot read %s: %s", file, strerror (errno));
    /* CZMQ reports a syntax error on its own log only, without the place. */
    zsys_set_logstream (NULL);
    zconfig_t *root = zconfig_load (file);
    if (root == NULL)
        return fail (error,
                     "%s is not a configuration: sections and lines \"name = value\", "
                     "indented by four spaces",
                     file);
    bool loaded = true;
    for (zconfig_t *at = zconfig_child (root); loaded && at != NULL; at = zconfig_next (at)) {
        const char *value = zconfig_value (at);
        loaded = value == NULL || value[0] == '\0' ? load_section (self, at, error)
                                                   : unknown_key (zconfig_name (at), error);
    }
    zconfig_destroy (&root);
    return loaded;
}

/* The command line. */

enum {
    OPTION_DATA = 256,
    OPTION_LISTEN,
    OPTION_STORE,
    OPTION_SYNCHRONOUS,
    OPTION_LEVEL,
    OPTION_FORMAT,
    OPTION_FEED,
    OPTION_CHECK,
    OPTION_VERSION
};

static const struct option option_table[] = {
    {"config", required_argument, NULL, 'c'},
    {"data", required_argument, NULL, OPTION_DATA},
    {"listen", required_argument, NULL, OPTION_LISTEN},
    {"feed", required_argument, NULL, OPTION_FEED},
    {"store", required_argument, NULL, OPTION_STORE},
    {"synchronous", required_argument, NULL, OPTION_SYNCHRONOUS},
    {"log-level", required_argument, NULL, OPTION_LEVEL},
    {"log-format", required_argument, NULL, OPTION_FORMAT},
    {"check", no_argument, NULL, OPTION_CHECK},
    {"version", no_argument, NULL, OPTION_VERSION},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};
enum { OPTIONS = sizeof (option_table) / sizeof (option_table[0]) - 1 };

static bool unknown_option (const char *word, char *error)
{
    const char *names[OPTIONS];
    for (size_t i = 0; i < OPTIONS; i++)
        names[i] = option_table[i].name;
    char name[64];
    snprintf (name, sizeof (name), "%s", word + strspn (word, "-"));
    name[strcspn (name, "=")] = '\0';
    const char *nearest = nearest_of (name, names, OPTIONS);
    if (nearest != NULL)
        return fail (error, "unknown option %s; did you mean --%s?", word, nearest);
    return fail (error, "unknown option %s; see taskmqd --help", word);
}

static bool apply_option (config_t *self, int option, const char *text, char *error)
{
    switch (option) {
    case 'c': return true; /* loaded before all others */
    case OPTION_DATA: return set_data (self, text, error);
    case OPTION_LISTEN: return add_listen (self, text, error);
    case OPTION_FEED: return add_feed (self, text, error);
    case OPTION_STORE: return set_store (self, text, error);
    case OPTION_SYNCHRONOUS: return set_synchronous (self, text, error);
    case OPTION_LEVEL: return set_log_level (self, text, error);
    case OPTION_FORMAT: return set_log_format (self, text, error);
    case OPTION_CHECK: self->action = CONFIG_CHECK; return true;
    case OPTION_VERSION: self->action = CONFIG_VERSION; return true;
    default: self->action = CONFIG_HELP; return true;
    }
}

/* One walk over the options; file_only: only -c counts. */
static bool walk_options (config_t *self, int argc, char **argv, bool file_only, char *error)
{
    opterr = 0;
    optind = 0;
    int option;
    while ((option = getopt_long (argc, argv, ":c:h", option_table, NULL)) != -1) {
        if (option == ':')
            return fail (error, "option %s needs a value", argv[optind - 1]);
        if (option == '?')
            return unknown_option (argv[optind - 1], error);
        bool good = true;
        if (!file_only)
            good = apply_option (self, option, optarg, error);
        else if (option == 'c')
            good = config_load (self, optarg, error);
        if (!good)
            return false;
    }
    if (optind < argc)
        return fail (error, "unexpected argument %s", argv[optind]);
    return true;
}

static bool is_consistent (const config_t *self, char *error)
{
    if (self->limits[CONFIG_PENDING_INPUTS_SOFT] > self->limits[CONFIG_PENDING_INPUTS_HARD])
        return fail (error, "limits/pending_inputs_soft is above limits/pending_inputs_hard");
    if (self->limits[CONFIG_PENDING_BYTES_SOFT] > self->limits[CONFIG_PENDING_BYTES_HARD])
        return fail (error, "limits/pending_bytes_soft is above limits/pending_bytes_hard");
    return true;
}

bool config_parse_arguments (config_t *self, int argc, char **argv, char error[CONFIG_ERROR_SIZE])
{
    return walk_options (self, argc, argv, true, error) &&
           walk_options (self, argc, argv, false, error) && is_consistent (self, error);
}

void config_print_help (void)
{
    puts ("usage: taskmqd [options]\n"
          "The broker of taskmq. Runs in the foreground and logs to stderr.\n"
          "\n"
          "  -c, --config FILE    configuration, see taskmqd(8)\n"
          "      --data DIR       data directory; default: the nearest .taskmq upward, else\n"
          "                       a new one here\n"
          "      --listen URI     listen here too: ipc://PATH or tcp://127.0.0.1:PORT (0:\n"
          "                       any free one)\n"
          "      --feed NS=URI    publish the events of namespace NS as JSON on an XPUB\n"
          "                       socket\n"
          "      --store NAME     sqlite (default) or memory, which forgets everything at\n"
          "                       the end\n"
          "      --synchronous S  full (default), or normal, with which a loss of power may\n"
          "                       lose work that was acknowledged\n"
          "      --log-level L    debug, info (default), warning or error\n"
          "      --log-format F   text (default) or json\n"
          "      --check          say whether options and configuration are right; with\n"
          "                       --data also read all of the directory; then end\n"
          "      --version        print the version\n"
          "  -h, --help           print this");
}

bool config_check_addresses (const config_t *self, char *error, size_t error_size)
{
    address_t address;
    for (size_t i = 0; i < self->listen_count; i++) {
        if (!address_parse (&address, self->listen[i], error, error_size))
            return false;
    }
    for (size_t i = 0; i < self->feeds_count; i++) {
        if (!address_parse (&address, self->feeds[i].uri, error, error_size))
            return false;
    }
    return true;
}
