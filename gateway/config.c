/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "nearest.h"
#include "net/server.h"
#include "trust.h"
#include "units.h"

static const char DEFAULT_LISTEN[] = "127.0.0.1:7433";

static const struct {
    const char *key;
    setting_kind_t kind;
    uint64_t value;
    uint64_t least;
    uint64_t most;
    const char *text;
} settings[] = {
#define X(NAME, key, kind, value, least, most, text)                                               \
    {key, SETTING_##kind, value, least, most, text},
    SETTINGS_MAP (X)
#undef X
};

/* Keys that are given as often as wanted. */
static const struct {
    const char *key;
    size_t offset;
    const char *text;
} lists[] = {{"listen", offsetof (config_t, listen), "ADDRESS:PORT or unix:PATH"},
             {"endpoint", offsetof (config_t, endpoints), "of the broker"},
             {"host", offsetof (config_t, hosts), "a name that it is reached by"},
             {"origin", offsetof (config_t, origins), "whose pages may use it"},
             {"authorization_server", offsetof (config_t, authorization_servers),
              "where people get what the proxy knows them by"}};
enum { LISTS = sizeof lists / sizeof *lists };

static const char *const others[] = {"behind_proxy", "log_level", "log_format",
                                     "tools",        "profile",   "proxy_secret_file"};

static bool refuse (char error[CONFIG_ERROR_SIZE], const char *format, ...)
    __attribute__ ((format (printf, 2, 3)));

static bool refuse (char error[CONFIG_ERROR_SIZE], const char *format, ...)
{
    va_list list;
    va_start (list, format);
    vsnprintf (error, CONFIG_ERROR_SIZE, format, list);
    va_end (list);
    return false;
}

static bool below (char out[PATH_MAX], const char *directory, const char *name)
{
    return snprintf (out, PATH_MAX, "%s/%s", directory, name) < PATH_MAX;
}

bool config_init (config_t *out, const char *data, char error[CONFIG_ERROR_SIZE])
{
    char ignored[TRUST_REASON_SIZE];
    memset (out, 0, sizeof *out);
    for (size_t i = 0; i < SETTINGS_MAX; i++)
        out->settings.numbers[i] = settings[i].value;
    out->log_level = LOG_LEVEL_INFO;
    char *found = data == NULL ? trust_nearest (ignored) : NULL;
    if (data == NULL)
        data = found;
    if (data == NULL)
        return refuse (error,
                       "there is no .taskmq directory here or above%s%s: start taskmqd here, "
                       "or say --data DIR",
                       ignored[0] != '\0' ? "; " : "", ignored);
    const bool fits =
        snprintf (out->data, sizeof out->data, "%s", data) < PATH_MAX &&
        below (out->file, data, "gateway.conf") && below (out->tokens, data, "gateway.tokens") &&
        below (out->tools, data, "tools.json") && below (out->token, data, "gateway.token") &&
        below (out->key, data, "gateway.key") && below (out->endpoint, data, "gateway.endpoint");
    free (found);
    return fits || refuse (error, "the path of the directory is too long");
}

/* Values. */

static bool parse_number (size_t row, const char *text, uint64_t *out,
                          char error[CONFIG_ERROR_SIZE])
{
    char why[UNITS_ERROR_SIZE];
    int64_t ms;
    char *end;
    switch (settings[row].kind) {
    case SETTING_BYTES:
        if (!size_parse (out, text, why))
            return refuse (error, "%s: %s", settings[row].key, why);
        break;
    case SETTING_MS:
        if (!duration_parse (&ms, text, why))
            return refuse (error, "%s: %s", settings[row].key, why);
        *out = (uint64_t) ms;
        break;
    case SETTING_COUNT:
        errno = 0;
        *out = strtoull (text, &end, 10);
        if (*text < '0' || *text > '9' || *end != '\0' || errno != 0)
            return refuse (error, "%s: '%.64s' is no whole number", settings[row].key, text);
        break;
    }
    if (*out >= settings[row].least && *out <= settings[row].most)
        return true;
    return refuse (error, "%s: '%.64s' is out of its range, %" PRIu64 "..%" PRIu64 "%s",
                   settings[row].key, text, settings[row].least, settings[row].most,
                   settings[row].kind == SETTING_BYTES ? " bytes"
                   : settings[row].kind == SETTING_MS  ? " ms"
                                                       : "");
}

static bool add_name (config_t *self, size_t row, const char *text, char error[CONFIG_ERROR_SIZE])
{
    names_t *names = (names_t *) (void *) ((char *) self + lists[row].offset);
    if (*text == '\0')
        return refuse (error, "%s: a value is missing", lists[row].key);
    if (names->count == NAMES_MAX)
        return refuse (error, "%s is given more than %d times", lists[row].key, NAMES_MAX);
    names->list[names->count++] = text;
    return true;
}

static bool set_other (config_t *self, const char *key, const char *text,
                       char error[CONFIG_ERROR_SIZE])
{
    if (strcmp (key, "behind_proxy") == 0) {
        self->behind_proxy = strcmp (text, "yes") == 0;
        return self->behind_proxy || strcmp (text, "no") == 0 ||
               refuse (error, "behind_proxy is yes or no");
    }
    if (strcmp (key, "tools") == 0) {
        self->tools_told = true;
        return (text[0] != '\0' && (size_t) snprintf (self->tools, sizeof self->tools, "%s", text) <
                                       sizeof self->tools) ||
               refuse (error, "tools is the path of a file");
    }
    if (strcmp (key, "profile") == 0) {
        self->saved = text;
        return text[0] != '\0' || refuse (error, "profile is the name of a saved connection");
    }
    if (strcmp (key, "proxy_secret_file") == 0) {
        self->proxy_secret = text;
        return text[0] == '/' || refuse (error, "proxy_secret_file is the whole path of a file");
    }
    if (strcmp (key, "log_level") == 0)
        return log_level_parse (&self->log_level, text) ||
               refuse (error, "log_level is debug, info, warning or error");
    self->log_json = strcmp (text, "json") == 0;
    return self->log_json || strcmp (text, "text") == 0 ||
           refuse (error, "log_format is text or json");
}

static bool refuse_key (const char *key, char error[CONFIG_ERROR_SIZE])
{
    const char *all[SETTINGS_MAX + LISTS + sizeof others / sizeof *others];
    size_t count = 0;
    for (size_t i = 0; i < SETTINGS_MAX; i++)
        all[count++] = settings[i].key;
    for (size_t i = 0; i < LISTS; i++)
        all[count++] = lists[i].key;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        all[count++] = others[i];
    const char *meant = nearest_of (key, all, count);
    return refuse (error, "there is no key '%.64s'%s%s%s", key, meant != NULL ? "; is '" : "",
                   meant != NULL ? meant : "", meant != NULL ? "' meant?" : "");
}

bool config_set (config_t *self, const char *key, const char *text, char error[CONFIG_ERROR_SIZE])
{
    for (size_t i = 0; i < SETTINGS_MAX; i++)
        if (strcmp (settings[i].key, key) == 0)
            return parse_number (i, text, &self->settings.numbers[i], error);
    for (size_t i = 0; i < LISTS; i++)
        if (strcmp (lists[i].key, key) == 0)
            return add_name (self, i, text, error);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp (others[i], key) == 0)
            return set_other (self, key, text, error);
    return refuse_key (key, error);
}

bool config_read (config_t *self, bool must, char error[CONFIG_ERROR_SIZE])
{
    char why[PROFILE_ERROR_SIZE];
    char what[CONFIG_ERROR_SIZE];
    const int code = profile_read (&self->profile, self->file, why);
    if (code == ENOENT && !must)
        return true;
    if (code != 0)
        return refuse (error, "%s", why);
    for (size_t i = 0; i < self->profile.count; i++) {
        const profile_line_t *line = &self->profile.lines[i];
        if (!config_set (self, line->key, line->value, what))
            return refuse (error, "%.2000s:%zu: %.480s", self->file, line->number, what);
    }
    return true;
}

/* What Host says without its port. Another form would match no request. */
static bool is_host (const char *text)
{
    if (*text == '[')
        return strspn (text + 1, "0123456789abcdefABCDEF:.") == strlen (text) - 2 &&
               text[strlen (text) - 1] == ']';
    return strpbrk (text, "/: \t*?#@") == NULL;
}

/* As a browser writes it: a scheme, and no path. */
static bool is_origin (const char *text)
{
    const char *rest = strstr (text, "://");
    return rest != NULL && rest != text && rest[3] != '\0' &&
           strpbrk (rest + 3, "/ \t*?#@") == NULL;
}

static bool judge_names (const config_t *self, char error[CONFIG_ERROR_SIZE])
{
    for (size_t i = 0; i < self->hosts.count; i++)
        if (!is_host (self->hosts.list[i]))
            return refuse (error,
                           "host: '%.100s' is no name: it stands without https://, port and "
                           "path, as tasks.example",
                           self->hosts.list[i]);
    for (size_t i = 0; i < self->origins.count; i++)
        if (!is_origin (self->origins.list[i]))
            return refuse (error,
                           "origin: '%.100s' is none: it is as https://page.example, without "
                           "a / at its end",
                           self->origins.list[i]);
    for (size_t i = 0; i < self->listen.count; i++)
        if (!server_is_address (self->listen.list[i]))
            return refuse (error,
                           "listen: '%.100s' is no address: 127.0.0.1:7433, [::1]:7433 and "
                           "unix:PATH are some",
                           self->listen.list[i]);
    return true;
}

bool config_judge (config_t *self, char error[CONFIG_ERROR_SIZE])
{
    if (self->listen.count == 0)
        self->listen.list[self->listen.count++] = DEFAULT_LISTEN;
    for (size_t i = 0; i < self->authorization_servers.count; i++) {
        const char *server = self->authorization_servers.list[i];
        if (strncmp (server, "https://", 8) != 0 && strncmp (server, "http://", 7) != 0)
            return refuse (error, "authorization_server: '%.100s' is no https:// address", server);
    }
    if (!judge_names (self, error))
        return false;
    const uint64_t *numbers = self->settings.numbers;
    if (numbers[SETTING_SPOOL_BYTES_MAX] / 2 < numbers[SETTING_RAW_BYTES_MAX])
        return refuse (error, "spool_bytes_max must be at least twice raw_bytes_max: a principal "
                              "has half of it");
    for (size_t i = 0; i < self->listen.count; i++) {
        const bool local = server_is_local (self->listen.list[i]);
        if (!local && self->no_auth)
            return refuse (error,
                           "listen: '%.100s' is not of this machine alone, which "
                           "--insecure-no-auth needs",
                           self->listen.list[i]);
        if (!local && !self->behind_proxy)
            return refuse (error,
                           "listen: '%.100s' is not of this machine alone: tokens would go "
                           "over the network in plain text. Let a proxy with TLS stand "
                           "before it, and say behind_proxy = yes",
                           self->listen.list[i]);
    }
    return true;
}

static void print_names (FILE *out, const char *key, const names_t *names, const char *text)
{
    for (size_t i = 0; i < names->count; i++)
        fprintf (out, "%s = %s  # %s\n", key, names->list[i], text);
}

void config_print (const config_t *self, FILE *out)
{
    static const char *const levels[] = {"debug", "info", "warning", "error"};
    char text[UNITS_TEXT_SIZE];
    for (size_t i = 0; i < LISTS; i++)
        print_names (out, lists[i].key,
                     (const names_t *) (const void *) ((const char *) self + lists[i].offset),
                     lists[i].text);
    if (self->saved != NULL)
        fprintf (out, "profile = %s  # a saved connection to the broker\n", self->saved);
    if (self->proxy_secret != NULL)
        fprintf (out, "proxy_secret_file = %s  # a proxy that shows it names people\n",
                 self->proxy_secret);
    fprintf (out, "tools = %s  # the tools of MCP\n", self->tools);
    fprintf (out, "behind_proxy = %s  # a proxy with TLS stands before it\n",
             self->behind_proxy ? "yes" : "no");
    fprintf (out, "log_level = %s  # the least that is logged\n", levels[self->log_level]);
    fprintf (out, "log_format = %s  # or json\n", self->log_json ? "json" : "text");
    for (size_t i = 0; i < SETTINGS_MAX; i++) {
        const uint64_t value = self->settings.numbers[i];
        if (settings[i].kind == SETTING_MS)
            duration_format (text, (int64_t) value);
        else if (settings[i].kind == SETTING_BYTES && value % 1024 != 0)
            snprintf (text, sizeof text, "%" PRIu64 "B", value);
        else if (settings[i].kind == SETTING_BYTES)
            size_format (text, value);
        else
            snprintf (text, sizeof text, "%" PRIu64, value);
        fprintf (out, "%s = %s  # %s\n", settings[i].key, text, settings[i].text);
    }
}
