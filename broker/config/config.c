/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Failure: every error names the key, what was given, and what would be right. */
#include "config/config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "config/database.h"
#include "config/retain.h"
#include "core/base/memory.h"
#include "ids.h"
#include "nearest.h"
#include "units.h"

const config_rule_t config_rules[CONFIG_KEYS] = {
#define X(NAME, key, kind, when, value, least, most, words, meaning)                               \
    [CONFIG_##                                                                                     \
        NAME] = {key, CONFIG_KIND_##kind, CONFIG_WHEN_##when, value, least, most, words, meaning},
    CONFIG_KEY_MAP (X)
#undef X
};

bool config_fail (char error[CONFIG_ERROR_SIZE], const char *format, ...)
{
    va_list arguments;
    va_start (arguments, format);
    vsnprintf (error, CONFIG_ERROR_SIZE, format, arguments);
    va_end (arguments);
    return false;
}

/* Life. */

void config_init (config_t *out)
{
    memset (out, 0, sizeof (*out));
    out->action = CONFIG_RUN;
    out->until_ms = INT64_MAX;
    for (size_t i = 0; i < CONFIG_KEYS; i++)
        out->numbers[i] = config_rules[i].value;
}

static void clear (config_t *self, config_key_t key)
{
    config_value_t *value = &self->values[key];
    for (size_t i = 0; i < value->items_count; i++)
        free (value->items[i].text);
    free (value->items);
    free (value->text);
    *value = (config_value_t){0};
    self->numbers[key] = config_rules[key].value;
}

void config_free (config_t *self)
{
    for (size_t i = 0; i < CONFIG_KEYS; i++)
        clear (self, (config_key_t) i);
    for (size_t i = 0; i < self->sources_count; i++)
        free (self->sources[i]);
    free (self->sources);
    memset (self, 0, sizeof (*self));
}

/* The origin with a source that lives as long as the configuration. */
static config_origin_t keep_origin (config_t *self, config_origin_t origin)
{
    if (origin.source == NULL)
        return origin;
    for (size_t i = self->sources_count; i-- > 0;) {
        if (strcmp (self->sources[i], origin.source) == 0)
            return (config_origin_t){self->sources[i], origin.line};
    }
    self->sources = memory_resize (self->sources, self->sources_count + 1, sizeof (*self->sources));
    self->sources[self->sources_count] = memory_text (origin.source);
    return (config_origin_t){self->sources[self->sources_count++], origin.line};
}

/* Numbers and words. */

static bool parse_count (uint64_t *out, const char *text, char why[UNITS_ERROR_SIZE])
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

static bool parse_duration (uint64_t *out, const char *text, char why[UNITS_ERROR_SIZE])
{
    int64_t ms = 0;
    if (!duration_parse (&ms, text, why))
        return false;
    *out = (uint64_t) ms;
    return true;
}

static bool parse_switch (uint64_t *out, const char *text, char why[UNITS_ERROR_SIZE])
{
    static const char *const words[] = {"off", "on", "no", "yes", "false", "true"};
    for (size_t i = 0; i < sizeof (words) / sizeof (words[0]); i++) {
        if (strcmp (text, words[i]) == 0) {
            *out = i % 2;
            return true;
        }
    }
    snprintf (why, UNITS_ERROR_SIZE, "must be on or off");
    return false;
}

/* The n-th of "one|two|three"; NULL behind the last. */
static const char *word_at (const char *words, uint64_t place, size_t *length)
{
    while (true) {
        *length = strcspn (words, "|");
        if (place-- == 0)
            return words;
        if (words[*length] == '\0')
            return NULL;
        words += *length + 1;
    }
}

/* "one, two or three" */
static void list_words (char why[UNITS_ERROR_SIZE], const config_rule_t *rule)
{
    size_t used = (size_t) snprintf (why, UNITS_ERROR_SIZE, "must be ");
    for (uint64_t i = 0; i <= rule->most && used < UNITS_ERROR_SIZE; i++) {
        size_t length;
        const char *word = word_at (rule->words, i, &length);
        const char *joint = i == 0 ? "" : i == rule->most ? " or " : ", ";
        used += (size_t) snprintf (why + used, UNITS_ERROR_SIZE - used, "%s%.*s", joint,
                                   (int) length, word);
    }
}

static bool parse_choice (uint64_t *out, const config_rule_t *rule, const char *text,
                          char why[UNITS_ERROR_SIZE])
{
    for (uint64_t i = 0; i <= rule->most; i++) {
        size_t length;
        const char *word = word_at (rule->words, i, &length);
        if (strlen (text) == length && memcmp (text, word, length) == 0) {
            *out = i;
            return true;
        }
    }
    list_words (why, rule);
    return false;
}

static bool parse_number (uint64_t *out, const config_rule_t *rule, const char *text,
                          char why[UNITS_ERROR_SIZE])
{
    switch (rule->kind) {
    case CONFIG_KIND_SIZE: return size_parse (out, text, why);
    case CONFIG_KIND_DURATION: return parse_duration (out, text, why);
    case CONFIG_KIND_SWITCH: return parse_switch (out, text, why);
    case CONFIG_KIND_CHOICE: return parse_choice (out, rule, text, why);
    case CONFIG_KIND_COUNT:
    case CONFIG_KIND_TEXT:
    case CONFIG_KIND_LIST: break;
    }
    return parse_count (out, text, why);
}

static bool set_number (config_t *self, config_key_t key, const char *text,
                        char why[UNITS_ERROR_SIZE])
{
    const config_rule_t *rule = &config_rules[key];
    char least[UNITS_TEXT_SIZE];
    char most[UNITS_TEXT_SIZE];
    uint64_t value = 0;
    if (!parse_number (&value, rule, text, why))
        return false;
    if (value < rule->least || value > rule->most) {
        snprintf (why, UNITS_ERROR_SIZE, "must be from %s to %s",
                  config_format (least, sizeof (least), key, rule->least),
                  config_format (most, sizeof (most), key, rule->most));
        return false;
    }
    self->numbers[key] = value;
    return true;
}

/* Texts. */

static bool set_text (config_t *self, config_key_t key, const char *text,
                      char why[UNITS_ERROR_SIZE])
{
    if (strlen (text) > config_rules[key].most) {
        snprintf (why, UNITS_ERROR_SIZE, "must be at most %llu bytes",
                  (unsigned long long) config_rules[key].most);
        return false;
    }
    char reason[KEY_ERROR_SIZE];
    if (key == CONFIG_ADVERTISE && !join_place_check (text, reason)) {
        snprintf (why, UNITS_ERROR_SIZE, "%.*s", UNITS_ERROR_SIZE - 1, reason);
        return false;
    }
    if (key == CONFIG_DATABASE_URI && !database_check_uri (text, why))
        return false;
    if (key == CONFIG_DATABASE_SCHEMA && !database_check_schema (text, why))
        return false;
    free (self->values[key].text);
    self->values[key].text = memory_text (text);
    return true;
}

bool config_split_feed (const char *item, char ns[TMQ_NAME_LENGTH_MAX + 1], const char **uri)
{
    size_t length = strcspn (item, "=");
    if (item[length] != '=' || length > TMQ_NAME_LENGTH_MAX)
        return false;
    memcpy (ns, item, length);
    ns[length] = '\0';
    *uri = item + length + 1;
    return name_is_valid (ns);
}

redactor_t *config_redactor (const config_t *self)
{
    const config_value_t *value = &self->values[CONFIG_EXPORT_REDACT];
    char error[REDACT_ERROR_SIZE];
    redactor_t *redactor = value->items_count == 0 ? NULL : redactor_new ();
    if (value->items_count > 0 && redactor == NULL)
        abort (); /* out of memory, as everywhere in the broker */
    for (size_t i = 0; i < value->items_count; i++)
        redactor_add (redactor, value->items[i].text, error); /* judged when it was taken */
    return redactor;
}

char *config_redact_text (const config_t *self)
{
    const config_value_t *value = &self->values[CONFIG_EXPORT_REDACT];
    char *text = value->items_count == 0 ? NULL : memory_zero (1, TMQ_REDACT_BYTES_MAX + 1);
    size_t used = 0;
    for (size_t i = 0; i < value->items_count; i++)
        used += (size_t) snprintf (text + used, TMQ_REDACT_BYTES_MAX + 1 - used, "%s%s",
                                   i == 0 ? "" : "\n", value->items[i].text);
    return text;
}

/* Beside those before it: together they may be too many. */
static bool check_pattern (const config_t *self, const char *text, char why[UNITS_ERROR_SIZE])
{
    const config_value_t *value = &self->values[CONFIG_EXPORT_REDACT];
    char error[REDACT_ERROR_SIZE] = "";
    size_t bytes = strlen (text);
    for (size_t i = 0; i < value->items_count; i++)
        bytes += strlen (value->items[i].text) + 1;
    if (bytes > TMQ_REDACT_BYTES_MAX) {
        snprintf (why, UNITS_ERROR_SIZE, "the list has more than %d bytes", TMQ_REDACT_BYTES_MAX);
        return false;
    }
    redactor_t *redactor = config_redactor (self);
    if (redactor == NULL && (redactor = redactor_new ()) == NULL)
        abort ();
    bool good = redactor_add (redactor, text, error);
    redactor_free (&redactor);
    if (!good)
        snprintf (why, UNITS_ERROR_SIZE, "%.*s", UNITS_ERROR_SIZE - 1, error);
    return good;
}

/* A namespace has one rule. */
static bool check_retention (const config_t *self, const char *text, char why[UNITS_ERROR_SIZE])
{
    retention_of_t before[RETENTIONS_MAX];
    retention_of_t next;
    if (!retain_parse (&next, text, why))
        return false;
    for (size_t i = config_retentions (self, before); i-- > 0;) {
        if (strcmp (before[i].ns, next.ns) != 0)
            continue;
        snprintf (why, UNITS_ERROR_SIZE, "%s has a rule already", next.ns);
        return false;
    }
    return true;
}

static bool add_item (config_t *self, config_key_t key, const char *text, config_origin_t origin,
                      char why[UNITS_ERROR_SIZE])
{
    config_value_t *value = &self->values[key];
    if (value->items_count >= config_rules[key].most) {
        snprintf (why, UNITS_ERROR_SIZE, "there are more than %llu of them",
                  (unsigned long long) config_rules[key].most);
        return false;
    }
    char ns[TMQ_NAME_LENGTH_MAX + 1];
    const char *uri;
    if (key == CONFIG_FEED && !config_split_feed (text, ns, &uri)) {
        snprintf (why, UNITS_ERROR_SIZE, "must be NAMESPACE=URI");
        return false;
    }
    if (key == CONFIG_ALLOW_FROM && !address_is_network (text)) {
        snprintf (why, UNITS_ERROR_SIZE, "must be an address or a network like 10.0.0.0/8");
        return false;
    }
    if (key == CONFIG_EXPORT_REDACT && !check_pattern (self, text, why))
        return false;
    if (key == CONFIG_RETENTION_NAMESPACE && !check_retention (self, text, why))
        return false;
    value->items = memory_resize (value->items, value->items_count + 1, sizeof (config_item_t));
    value->items[value->items_count++] = (config_item_t){memory_text (text), origin};
    return true;
}

/* Keys. */

bool config_find (config_key_t *out, const char *name, char error[CONFIG_ERROR_SIZE])
{
    const char *names[CONFIG_KEYS];
    for (size_t i = 0; i < CONFIG_KEYS; i++) {
        names[i] = config_rules[i].key;
        if (strcmp (names[i], name) == 0) {
            *out = (config_key_t) i;
            return true;
        }
    }
    const char *nearest = nearest_of (name, names, CONFIG_KEYS);
    if (nearest == NULL)
        return config_fail (error, "%.100s is no key of the configuration", name);
    return config_fail (error, "%.100s is no key of the configuration; did you mean %s?", name,
                        nearest);
}

bool config_set (config_t *self, const char *name, const char *text, config_origin_t origin,
                 char error[CONFIG_ERROR_SIZE])
{
    char why[UNITS_ERROR_SIZE] = "";
    config_key_t key = CONFIG_KEYS;
    if (!config_find (&key, name, error))
        return false;
    origin = keep_origin (self, origin);
    bool taken = true;
    if (text[0] == '\0')
        clear (self, key);
    else if (config_rules[key].kind == CONFIG_KIND_LIST)
        taken = add_item (self, key, text, origin, why);
    else if (config_rules[key].kind == CONFIG_KIND_TEXT)
        taken = set_text (self, key, text, why);
    else
        taken = set_number (self, key, text, why);
    if (!taken && key == CONFIG_DATABASE_URI) /* it may have a password in it */
        return config_fail (error, "%s: %s", name, why);
    if (!taken)
        return config_fail (error, "%s = %.100s: %s", name, text, why);
    self->values[key].origin = origin;
    return true;
}

const char *config_text (const config_t *self, config_key_t key)
{
    const char *text = self->values[key].text;
    return text == NULL && key == CONFIG_DATABASE_SCHEMA ? DATABASE_SCHEMA_DEFAULT : text;
}

const char *config_word (const config_t *self, config_key_t key, char *out, size_t out_size)
{
    return config_format (out, out_size, key, self->numbers[key]);
}

void config_move (config_t *self, config_t *from, config_key_t key)
{
    clear (self, key);
    config_value_t *value = &self->values[key];
    *value = from->values[key];
    self->numbers[key] = from->numbers[key];
    value->origin = keep_origin (self, value->origin);
    for (size_t i = 0; i < value->items_count; i++)
        value->items[i].origin = keep_origin (self, value->items[i].origin);
    from->values[key] = (config_value_t){0};
    from->numbers[key] = config_rules[key].value;
}

static bool same_text (const char *one, const char *other)
{
    return one == NULL || other == NULL ? one == other : strcmp (one, other) == 0;
}

bool config_same (const config_t *self, const config_t *other, config_key_t key)
{
    const config_value_t *one = &self->values[key];
    const config_value_t *two = &other->values[key];
    if (self->numbers[key] != other->numbers[key] ||
        !same_text (config_text (self, key), config_text (other, key)) ||
        one->items_count != two->items_count)
        return false;
    for (size_t i = 0; i < one->items_count; i++) {
        if (strcmp (one->items[i].text, two->items[i].text) != 0)
            return false;
    }
    return true;
}

static bool parse_address (address_t *out, const config_item_t *item, config_key_t key, char *why,
                           size_t why_size)
{
    char ns[TMQ_NAME_LENGTH_MAX + 1];
    const char *uri = item->text;
    if (key == CONFIG_FEED)
        config_split_feed (uri, ns, &uri);
    return key == CONFIG_INSECURE_LISTEN ? address_parse_plain (out, uri, why, why_size)
                                         : address_parse (out, uri, why, why_size);
}

bool config_address (address_t *out, const config_item_t *item, config_key_t key)
{
    char why[CONFIG_ERROR_SIZE];
    return parse_address (out, item, key, why, sizeof (why));
}

static bool check_address (const config_item_t *item, config_key_t key, char error[])
{
    address_t address;
    char why[CONFIG_ERROR_SIZE / 2];
    char from[CONFIG_ORIGIN_SIZE];
    return parse_address (&address, item, key, why, sizeof (why)) ||
           config_fail (error, "%.400s: %s", config_format_origin (from, item->origin), why);
}

bool config_check_addresses (const config_t *self, char error[CONFIG_ERROR_SIZE])
{
    static const config_key_t keys[] = {CONFIG_LISTEN, CONFIG_INSECURE_LISTEN, CONFIG_FEED};
    for (size_t k = 0; k < sizeof (keys) / sizeof (keys[0]); k++) {
        const config_value_t *value = &self->values[keys[k]];
        for (size_t i = 0; i < value->items_count; i++) {
            if (!check_address (&value->items[i], keys[k], error))
                return false;
        }
    }
    return true;
}

retention_t config_retention (const config_t *self)
{
    const uint64_t *numbers = self->numbers;
    return (retention_t){.max_age_ms = (int64_t) numbers[CONFIG_RETENTION_MAX_AGE],
                         .max_count = numbers[CONFIG_RETENTION_MAX_COUNT],
                         .max_bytes = numbers[CONFIG_RETENTION_MAX_BYTES],
                         .keep_failed_ms = (int64_t) numbers[CONFIG_RETENTION_KEEP_FAILED],
                         .min_keep = numbers[CONFIG_RETENTION_MIN_KEEP]};
}

size_t config_retentions (const config_t *self, retention_of_t out[RETENTIONS_MAX])
{
    const config_value_t *value = &self->values[CONFIG_RETENTION_NAMESPACE];
    char why[UNITS_ERROR_SIZE];
    for (size_t i = 0; i < value->items_count; i++)
        retain_parse (&out[i], value->items[i].text, why); /* judged when it was taken */
    return value->items_count;
}

/* What is set stands behind it, with where. */
static bool retention_is_consistent (const config_t *self, char error[CONFIG_ERROR_SIZE])
{
    static const config_key_t keys[] = {CONFIG_RETENTION_MAX_AGE, CONFIG_RETENTION_MAX_COUNT,
                                        CONFIG_RETENTION_MAX_BYTES, CONFIG_RETENTION_KEEP_FAILED,
                                        CONFIG_RETENTION_MIN_KEEP};
    char where[CONFIG_ERROR_SIZE / 2] = "";
    char origin[CONFIG_ORIGIN_SIZE];
    size_t used = 0;
    retention_t rule = config_retention (self);
    const char *contradiction = retention_contradiction (&rule);
    for (size_t i = 0; contradiction != NULL && i < sizeof (keys) / sizeof (keys[0]); i++) {
        if (self->numbers[keys[i]] == 0 || used >= sizeof (where))
            continue;
        int more = snprintf (where + used, sizeof (where) - used, "%s%s (%s)", used > 0 ? ", " : "",
                             config_rules[keys[i]].key,
                             config_format_origin (origin, self->values[keys[i]].origin));
        used += more > 0 ? (size_t) more : 0;
    }
    return contradiction == NULL || config_fail (error, "%s: %s", where, contradiction);
}

static bool needs (const config_t *self, config_key_t key, const char *sentence, char *error)
{
    char from[CONFIG_ORIGIN_SIZE];
    return config_fail (error, "%s (%.400s) %s", config_rules[key].key,
                        config_format_origin (from, self->values[key].origin), sentence);
}

/* A broker that would start on an empty store of another kind, because one option was forgotten,
 * does not start. */
static bool store_is_consistent (const config_t *self, char error[CONFIG_ERROR_SIZE])
{
    uint64_t store = self->numbers[CONFIG_STORE];
    bool archived = config_text (self, CONFIG_ARCHIVE) != NULL;
    bool named = config_text (self, CONFIG_DATABASE_URI) != NULL;
    if (archived && store == CONFIG_STORE_MEMORY)
        return needs (self, CONFIG_ARCHIVE, "needs broker/store sqlite: memory keeps nothing",
                      error);
    if (archived && store == CONFIG_STORE_POSTGRESQL && self->action != CONFIG_RESTORE)
        return needs (self, CONFIG_ARCHIVE,
                      "needs broker/store sqlite: PostgreSQL archives by itself (archive_command)",
                      error);
    if (named && store != CONFIG_STORE_POSTGRESQL)
        return needs (self, CONFIG_DATABASE_URI,
                      "needs broker/store postgresql (--store postgresql)", error);
    if (self->numbers[CONFIG_STANDBY] != 0 && store != CONFIG_STORE_POSTGRESQL)
        return needs (self, CONFIG_STANDBY,
                      "needs broker/store postgresql: files of one machine have one broker", error);
    if (!named && store == CONFIG_STORE_POSTGRESQL)
        return needs (self, CONFIG_STORE,
                      "= postgresql needs database/uri (--database postgresql://USER@HOST/NAME)",
                      error);
    if (store == CONFIG_STORE_POSTGRESQL && self->numbers[CONFIG_SYNCHRONOUS] != 0)
        return needs (self, CONFIG_SYNCHRONOUS,
                      "= normal needs broker/store sqlite: a commit to PostgreSQL is always synced",
                      error);
    return true;
}

bool config_is_consistent (const config_t *self, char error[CONFIG_ERROR_SIZE])
{
    static const config_key_t pairs[][2] = {
        {CONFIG_PENDING_INPUTS_SOFT, CONFIG_PENDING_INPUTS_HARD},
        {CONFIG_PENDING_BYTES_SOFT, CONFIG_PENDING_BYTES_HARD},
        {CONFIG_DIRTY_BYTES_SOFT, CONFIG_DIRTY_BYTES_HARD},
    };
    char low[CONFIG_ORIGIN_SIZE];
    char high[CONFIG_ORIGIN_SIZE];
    for (size_t i = 0; i < sizeof (pairs) / sizeof (pairs[0]); i++) {
        config_key_t soft = pairs[i][0];
        config_key_t hard = pairs[i][1];
        if (self->numbers[soft] > self->numbers[hard])
            return config_fail (error, "%s (%s) is above %s (%s)", config_rules[soft].key,
                                config_format_origin (low, self->values[soft].origin),
                                config_rules[hard].key,
                                config_format_origin (high, self->values[hard].origin));
    }
    return store_is_consistent (self, error) && retention_is_consistent (self, error);
}

/* Showing. */

/* In the largest unit that leaves no rest, so that it can be read back. */
static const char *format_size (char *out, size_t out_size, uint64_t bytes)
{
    static const char units[] = "BKMG";
    size_t unit = 0;
    while (bytes != 0 && bytes % 1024 == 0 && units[unit + 1] != '\0') {
        bytes /= 1024;
        unit++;
    }
    snprintf (out, out_size, "%llu%.*s", (unsigned long long) bytes, bytes != 0, units + unit);
    return out;
}

const char *config_format (char *out, size_t out_size, config_key_t key, uint64_t value)
{
    const config_rule_t *rule = &config_rules[key];
    char text[UNITS_TEXT_SIZE];
    size_t length = 0;
    const char *word;
    switch (rule->kind) {
    case CONFIG_KIND_SIZE: return format_size (out, out_size, value);
    case CONFIG_KIND_DURATION:
        snprintf (out, out_size, "%s", duration_format (text, (int64_t) value));
        return out;
    case CONFIG_KIND_SWITCH: snprintf (out, out_size, "%s", value != 0 ? "on" : "off"); return out;
    case CONFIG_KIND_CHOICE:
        word = word_at (rule->words, value, &length);
        snprintf (out, out_size, "%.*s", (int) length, word != NULL ? word : "");
        return out;
    case CONFIG_KIND_COUNT:
    case CONFIG_KIND_TEXT:
    case CONFIG_KIND_LIST: break;
    }
    snprintf (out, out_size, "%llu", (unsigned long long) value);
    return out;
}

/* The default and what else may stand there, without the closing parenthesis. */
static void describe_values (char out[CONFIG_ORIGIN_SIZE], config_key_t key)
{
    const config_rule_t *rule = &config_rules[key];
    char value[64];
    char least[64];
    char most[64];
    config_format (value, sizeof (value), key, rule->value);
    config_format (least, sizeof (least), key, rule->least);
    config_format (most, sizeof (most), key, rule->most);
    switch (rule->kind) {
    case CONFIG_KIND_TEXT: snprintf (out, CONFIG_ORIGIN_SIZE, "%s (one", rule->words); return;
    case CONFIG_KIND_LIST:
        snprintf (out, CONFIG_ORIGIN_SIZE, "%s (up to %s", rule->words, most);
        return;
    case CONFIG_KIND_CHOICE:
        snprintf (out, CONFIG_ORIGIN_SIZE, "%s (%s", value, rule->words);
        return;
    case CONFIG_KIND_SWITCH: snprintf (out, CONFIG_ORIGIN_SIZE, "%s (on|off", value); return;
    case CONFIG_KIND_COUNT:
    case CONFIG_KIND_SIZE:
    case CONFIG_KIND_DURATION: break;
    }
    snprintf (out, CONFIG_ORIGIN_SIZE, "%s (%s to %s", value, least, most);
}

const char *config_describe (char out[CONFIG_ORIGIN_SIZE], config_key_t key)
{
    describe_values (out, key);
    size_t used = strlen (out);
    snprintf (out + used, CONFIG_ORIGIN_SIZE - used, "%s)",
              config_rules[key].when == CONFIG_WHEN_NOW ? "" : "; at the next start");
    return out;
}

const char *config_format_origin (char out[CONFIG_ORIGIN_SIZE], config_origin_t origin)
{
    if (origin.source == NULL)
        snprintf (out, CONFIG_ORIGIN_SIZE, "default");
    else if (origin.line == 0)
        snprintf (out, CONFIG_ORIGIN_SIZE, "%s", origin.source);
    else
        snprintf (out, CONFIG_ORIGIN_SIZE, "%.400s:%u", origin.source, origin.line);
    return out;
}

enum { SHOW_COLUMN = 44 };

/* "    name = value      # origin" */
static void show_line (FILE *out, const char *name, const char *text, config_origin_t origin)
{
    char from[CONFIG_ORIGIN_SIZE];
    const char *quote = strchr (text, '"') != NULL      ? "'"
                        : strpbrk (text, "#' ") != NULL ? "\""
                                                        : "";
    if (text[0] == '\0')
        quote = "\"";
    int width = fprintf (out, "    %s = %s%s%s", name, quote, text, quote);
    int padding = width > 0 && width < SHOW_COLUMN ? SHOW_COLUMN - width : 1;
    fprintf (out, "%*s# %s\n", padding, "", config_format_origin (from, origin));
}

static void show_key (const config_t *self, config_key_t key, const char *name, FILE *out)
{
    const config_value_t *value = &self->values[key];
    char text[UNITS_TEXT_SIZE];
    if (config_rules[key].kind == CONFIG_KIND_LIST) {
        if (value->items_count == 0)
            show_line (out, name, "", value->origin);
        for (size_t i = 0; i < value->items_count; i++)
            show_line (out, name, value->items[i].text, value->items[i].origin);
    } else if (config_rules[key].kind == CONFIG_KIND_TEXT) {
        const char *shown = config_text (self, key);
        show_line (out, name, shown != NULL ? shown : "", value->origin);
    } else {
        config_format (text, sizeof (text), key, self->numbers[key]);
        show_line (out, name, text, value->origin);
    }
}

void config_show (const config_t *self, FILE *out)
{
    const char *section = "";
    size_t length = 0;
    for (size_t i = 0; i < CONFIG_KEYS; i++) {
        const char *key = config_rules[i].key;
        size_t here = strcspn (key, "/");
        if (here != length || strncmp (key, section, length) != 0)
            fprintf (out, "%.*s\n", (int) here, key);
        section = key;
        length = here;
        show_key (self, (config_key_t) i, key + here + 1, out);
    }
}
