/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "mcp/tools.h"

#include <errno.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "auth/policy.h"
#include "base/trees.h"
#include "ids.h"
#include "json.h"
#include "units.h"

typedef struct reader {
    char *error;
    const char *tool; /* its name; NULL: not of a tool */
} reader_t;

__attribute__ ((format (printf, 2, 3))) static bool refuse (const reader_t *self,
                                                            const char *format, ...)
{
    char reason[TOOLS_ERROR_SIZE - 100];
    va_list list;
    va_start (list, format);
    vsnprintf (reason, sizeof reason, format, list);
    va_end (list);
    snprintf (self->error, TOOLS_ERROR_SIZE, "%s%.64s%s%s", self->tool != NULL ? "tool '" : "",
              self->tool != NULL ? self->tool : "", self->tool != NULL ? "': " : "", reason);
    return false;
}

/* Our member. */

typedef bool put_fn (const reader_t *reader, tool_t *tool, const char *key, const json_t *value);

static bool read_duration (const reader_t *reader, const char *key, const json_t *value,
                           int64_t least, int64_t most, int64_t *out)
{
    char why[UNITS_ERROR_SIZE] = "it is no text like \"30s\"";
    const char *text = json_string_value (value);
    if (text == NULL || !duration_parse (out, text, why))
        return refuse (reader, "taskmq.%s: %s", key, why);
    return (*out >= least && *out <= most) ||
           refuse (reader, "taskmq.%s is between %lld and %lld ms", key, (long long) least,
                   (long long) most);
}

static bool put_queue (const reader_t *reader, tool_t *tool, const char *key, const json_t *value)
{
    tool->submit.queue = json_string_value (value);
    return (tool->submit.queue != NULL && name_is_valid (tool->submit.queue)) ||
           refuse (reader, "taskmq.%s is a name: [A-Za-z0-9._-]{1,64}", key);
}

static bool put_times (const reader_t *reader, tool_t *tool, const char *key, const json_t *value)
{
    static const struct {
        const char *name;
        int64_t least, most;
    } rows[] = {{"ttl", TOOL_TTL_MS_MIN, INT64_C (366) * 86400000},
                {"ttl_max", TOOL_TTL_MS_MIN, INT64_C (366) * 86400000},
                {"lease", 1000, 86400000},
                {"backoff", 1, 86400000},
                {"poll", 1, 86400000},
                {"inline", 0, 60000},
                {"wait_max", 1000, 86400000}};
    int64_t ms = 0;
    size_t row = 0;
    while (strcmp (rows[row].name, key) != 0)
        row++;
    if (!read_duration (reader, key, value, rows[row].least, rows[row].most, &ms))
        return false;
    switch (row) {
    case 0: tool->submit.ttl_ms = (uint64_t) ms; break;
    case 1: tool->ttl_max_ms = (uint64_t) ms; break;
    case 2: tool->submit.lease_ms = (uint32_t) ms; break;
    case 3: tool->submit.backoff_ms = (uint32_t) ms; break;
    case 4: tool->submit.poll_interval_ms = (uint32_t) ms; break;
    case 5: tool->inline_ms = (uint32_t) ms; break;
    default: tool->wait_max_ms = (uint32_t) ms;
    }
    return true;
}

static bool put_number (const reader_t *reader, tool_t *tool, const char *key, const json_t *value)
{
    const bool priority = strcmp (key, "priority") == 0;
    const json_int_t number = json_integer_value (value);
    if (!json_is_integer (value) || number < (priority ? 0 : 1) || number > (priority ? 255 : 1000))
        return refuse (reader, "taskmq.%s is a whole number, %s", key,
                       priority ? "0 to 255" : "1 to 1000");
    if (priority)
        tool->submit.priority = (int) number;
    else
        tool->submit.max_attempts = (uint32_t) number;
    return true;
}

static bool put_labels (const reader_t *reader, tool_t *tool, const char *key, const json_t *value)
{
    const char *name;
    json_t *text;
    if (!json_is_object (value) || json_object_size (value) > TOOL_LABELS_MAX)
        return refuse (reader, "taskmq.%s is an object of at most %d texts", key, TOOL_LABELS_MAX);
    json_object_foreach ((json_t *) value, name, text)
    {
        const char *is = json_string_value (text);
        if (is == NULL || strlen (is) > TMQ_LABEL_BYTES_MAX || !name_is_valid (name) ||
            strncmp (name, "gw.", 3) == 0)
            return refuse (reader,
                           "taskmq.labels: '%.64s' is no name of ours to give, or its "
                           "value no text of at most 256 bytes",
                           name);
        tool->labels[tool->submit.labels_count++] = (tmq_label_t){name, is};
    }
    return true;
}

static bool put_word (const reader_t *reader, tool_t *tool, const char *key, const json_t *value)
{
    const bool payload = strcmp (key, "payload") == 0;
    const char *word = json_string_value (value);
    const char *plain = payload ? "arguments" : "none";
    const char *other = payload ? "params" : "arguments";
    if (word == NULL || (strcmp (word, plain) != 0 && strcmp (word, other) != 0))
        return refuse (reader, "taskmq.%s is \"%s\" or \"%s\"", key, plain, other);
    *(payload ? &tool->whole_params : &tool->dedup) = strcmp (word, other) == 0;
    return true;
}

static bool put_roles (const reader_t *reader, tool_t *tool, const char *key, const json_t *value)
{
    size_t i;
    const json_t *item;
    json_array_foreach (value, i, item)
    {
        const unsigned role = json_is_string (item) ? roles_parse (json_string_value (item)) : 0;
        if (role == 0)
            return refuse (reader, "taskmq.%s is an array of roles", key);
        tool->roles |= role;
    }
    return tool->roles != 0 || refuse (reader, "taskmq.%s is an array of roles", key);
}

/* Requests to the client by their keys. */
static bool put_asks (const reader_t *reader, tool_t *tool, const char *key, const json_t *value)
{
    const char *name;
    json_t *item;
    if (!json_is_object (value) || json_object_size (value) == 0 || json_object_size (value) > 64)
        return refuse (reader, "taskmq.%s is an object of 1 to 64 questions", key);
    json_object_foreach ((json_t *) value, name, item)
    {
        if (!json_is_string (json_object_get (item, "method")) ||
            !json_is_object (json_object_get (item, "params")))
            return refuse (reader, "taskmq.ask: '%.64s' is no {\"method\":…,\"params\":{…}}", name);
    }
    tool->asks = value;
    return true;
}

static bool put_needs (const reader_t *reader, tool_t *tool, const char *key, const json_t *value)
{
    const char *name;
    json_t *item;
    json_object_foreach ((json_t *) value, name, item)
    {
        if (!json_is_object (item))
            return refuse (reader, "taskmq.%s is an object of objects", key);
    }
    if (!json_is_object (value))
        return refuse (reader, "taskmq.%s is an object of objects", key);
    tool->needs = json_object_size (value) > 0 ? value : NULL;
    return true;
}

static bool put_says (const reader_t *reader, tool_t *tool, const char *key, const json_t *value)
{
    tool->says = json_string_value (value);
    return (tool->says != NULL && json_string_length (value) <= TOOL_SAYS_BYTES_MAX) ||
           refuse (reader, "taskmq.%s is a text of at most %d bytes", key, TOOL_SAYS_BYTES_MAX);
}

static const struct {
    const char *key;
    put_fn *put;
} members[] = {{"queue", put_queue},     {"ttl", put_times},      {"ttl_max", put_times},
               {"lease", put_times},     {"backoff", put_times},  {"poll", put_times},
               {"inline", put_times},    {"wait_max", put_times}, {"attempts", put_number},
               {"priority", put_number}, {"labels", put_labels},  {"payload", put_word},
               {"dedup", put_word},      {"roles", put_roles},    {"ask", put_asks},
               {"requires", put_needs},  {"says", put_says}};

static bool read_ours (const reader_t *reader, tool_t *tool)
{
    const char *key;
    json_t *value;
    tmq_submit_init (&tool->submit);
    tool->submit.ttl_ms = 3600000;
    tool->ttl_max_ms = 86400000;
    tool->inline_ms = 250;
    tool->wait_max_ms = 900000;
    if (!json_is_object (tool->ours))
        return refuse (reader, "it has no member 'taskmq' that is an object");
    json_object_foreach (tool->ours, key, value)
    {
        size_t i = 0;
        while (i < sizeof members / sizeof *members && strcmp (members[i].key, key) != 0)
            i++;
        if (i == sizeof members / sizeof *members)
            return refuse (reader, "there is no member taskmq.%.64s", key);
        if (!members[i].put (reader, tool, key, value))
            return false;
    }
    if (tool->submit.queue == NULL)
        return refuse (reader, "taskmq.queue is missing");
    if (tool->ttl_max_ms < tool->submit.ttl_ms)
        tool->ttl_max_ms = tool->submit.ttl_ms;
    return true;
}

/* The Tool of MCP. */

static bool is_token (const char *text)
{
    static const char others[] = "!#$%&'*+-.^_`|~";
    for (const char *at = text; *at != '\0'; at++) {
        const char small = (char) (*at | 32);
        if ((small < 'a' || small > 'z') && (*at < '0' || *at > '9') &&
            strchr (others, *at) == NULL)
            return false;
    }
    return text[0] != '\0' && strlen (text) <= 64;
}

static bool read_header (const reader_t *reader, tool_t *tool, const char *property,
                         const json_t *schema)
{
    const json_t *wanted = json_object_get (schema, "x-mcp-header");
    const char *type = json_string_value (json_object_get (schema, "type"));
    const char *name = json_string_value (wanted);
    if (wanted == NULL)
        return true;
    if (name == NULL || !is_token (name) || tool->headers_count == TOOL_HEADERS_MAX)
        return refuse (reader,
                       "x-mcp-header of '%.64s' is no name of a field, or they are more "
                       "than %d",
                       property, TOOL_HEADERS_MAX);
    if (type == NULL || (strcmp (type, "string") != 0 && strcmp (type, "integer") != 0 &&
                         strcmp (type, "boolean") != 0))
        return refuse (reader,
                       "x-mcp-header stands at '%.64s', which is no string, integer or "
                       "boolean",
                       property);
    tool_header_t *header = &tool->headers[tool->headers_count++];
    header->property = property;
    snprintf (header->field, sizeof header->field, "mcp-param-%s", name);
    for (char *at = header->field; *at != '\0'; at++)
        if (*at >= 'A' && *at <= 'Z')
            *at |= 32;
    for (size_t i = 0; i + 1 < tool->headers_count; i++)
        if (strcmp (tool->headers[i].field, header->field) == 0)
            return refuse (reader, "two arguments have the x-mcp-header '%.64s'", name);
    return true;
}

static bool read_schemas (const reader_t *reader, tool_t *tool)
{
    char error[SCHEMA_ERROR_SIZE];
    const char *property;
    json_t *value;
    json_t *input = json_object_get (tool->json, "inputSchema");
    json_t *output = json_object_get (tool->json, "outputSchema");
    const char *type = json_string_value (json_object_get (input, "type"));
    if (type == NULL || strcmp (type, "object") != 0)
        return refuse (reader, "inputSchema is an object of type \"object\"");
    tool->input = schema_new (input, error);
    if (tool->input == NULL)
        return refuse (reader, "inputSchema %s", error);
    json_object_foreach (json_object_get (input, "properties"), property, value)
    {
        if (!read_header (reader, tool, property, value))
            return false;
    }
    if (output == NULL)
        return true;
    tool->output = schema_new (output, error);
    return tool->output != NULL || refuse (reader, "outputSchema %s", error);
}

static bool read_support (const reader_t *reader, tool_t *tool)
{
    static const char *const words[] = {"forbidden", "optional", "required"};
    const json_t *execution = json_object_get (tool->json, "execution");
    const json_t *support = json_object_get (execution, "taskSupport");
    const char *word = json_string_value (support);
    const char *key;
    json_t *value;
    if (execution != NULL && !json_is_object (execution))
        return refuse (reader, "execution is an object");
    json_object_foreach ((json_t *) execution, key, value)
    {
        if (value != support)
            return refuse (reader, "there is no member execution.%.64s", key);
    }
    if (support == NULL)
        return true;
    for (size_t i = 0; word != NULL && i < 3; i++) {
        if (strcmp (words[i], word) != 0)
            continue;
        tool->support = (task_support_t) i;
        return true;
    }
    return refuse (reader, "execution.taskSupport is \"forbidden\", \"optional\" or \"required\"");
}

static bool read_members (const reader_t *reader, const tool_t *tool)
{
    static const struct {
        const char *name;
        json_type type;
        const char *is;
    } known[] = {{"name", JSON_STRING, "a text"},
                 {"title", JSON_STRING, "a text"},
                 {"description", JSON_STRING, "a text"},
                 {"inputSchema", JSON_OBJECT, "an object"},
                 {"outputSchema", JSON_OBJECT, "an object"},
                 {"annotations", JSON_OBJECT, "an object"},
                 {"icons", JSON_ARRAY, "an array"},
                 {"_meta", JSON_OBJECT, "an object"},
                 {"execution", JSON_OBJECT, "an object"}};
    const char *key;
    json_t *value;
    json_object_foreach (tool->json, key, value)
    {
        size_t i = 0;
        while (i < sizeof known / sizeof *known && strcmp (known[i].name, key) != 0)
            i++;
        if (i == sizeof known / sizeof *known)
            return refuse (reader, "a tool has no member '%.64s'", key);
        if (json_typeof (value) != known[i].type)
            return refuse (reader, "%s is %s", key, known[i].is);
    }
    return true;
}

/* Those of 2025 know outputs that are objects only, and take no list with another one in it. */
static bool show (const reader_t *reader, tool_t *tool)
{
    json_t *copy = json_copy (tool->json);
    const json_t *output = json_object_get (copy, "outputSchema");
    const char *type = json_string_value (json_object_get (output, "type"));
    json_object_del (copy, "execution");
    tool->shown = trees_text (copy, JSON_COMPACT);
    json_decref (copy);
    copy = json_copy (tool->json);
    if (type == NULL || strcmp (type, "object") != 0)
        json_object_del (copy, "outputSchema");
    tool->shown_25 = trees_text (copy, JSON_COMPACT);
    json_decref (copy);
    return (tool->shown != NULL && tool->shown_25 != NULL) || refuse (reader, "no memory is left");
}

static bool read_tool (reader_t *reader, tools_t *self, json_t *json)
{
    tool_t *tool = &self->list[self->count++];
    const char *name = json_string_value (json_object_get (json, "name"));
    if (name == NULL || !name_is_valid (name)) {
        char text[64];
        snprintf (text, sizeof text, "tool %zu has no name of [A-Za-z0-9_.-]{1,64}", self->count);
        refuse (reader, "%s", text);
        return false;
    }
    for (size_t i = 0; i + 1 < self->count; i++)
        if (strcmp (self->list[i].name, name) == 0)
            return refuse (reader, "two tools have the name '%s'", name);
    reader->tool = name;
    tool->name = name;
    tool->json = json_copy (json);
    tool->ours = json_incref (json_object_get (json, "taskmq"));
    json_object_del (tool->json, "taskmq");
    const bool good = read_ours (reader, tool) && read_members (reader, tool) &&
                      read_support (reader, tool) && read_schemas (reader, tool) &&
                      show (reader, tool);
    self->private |= tool->roles != 0;
    reader->tool = NULL;
    return good;
}

static bool read_all (reader_t *reader, tools_t *self, const json_t *file)
{
    const char *key;
    json_t *value;
    size_t i;
    const json_t *tools = json_object_get (file, "tools");
    json_object_foreach ((json_t *) file, key, value)
    {
        if (strcmp (key, "tools") != 0 && strcmp (key, "instructions") != 0)
            return refuse (reader, "there is no member '%.64s'", key);
    }
    value = json_object_get (file, "instructions");
    if (value != NULL && !json_is_string (value))
        return refuse (reader, "instructions is a text");
    if (!json_is_array (tools) || json_array_size (tools) > TOOLS_MAX)
        return refuse (reader, "tools is an array of at most %d tools", TOOLS_MAX);
    self->instructions = value != NULL ? strdup (json_string_value (value)) : NULL;
    self->list = calloc (json_array_size (tools) + 1, sizeof *self->list);
    if (self->list == NULL || (value != NULL && self->instructions == NULL))
        return refuse (reader, "no memory is left");
    json_array_foreach (tools, i, value)
    {
        if (!read_tool (reader, self, value))
            return false;
    }
    return true;
}

tools_t *tools_parse (const char *text, size_t length, char error[TOOLS_ERROR_SIZE])
{
    json_error_t flaw;
    reader_t reader = {error, NULL};
    if (!json_text_is_valid (text, length)) {
        json_decref (json_loadb (text, length, 0, &flaw));
        refuse (&reader, "line %d: it is no JSON: %s", flaw.line, flaw.text);
        return NULL;
    }
    json_t *file = json_loadb (text, length, JSON_REJECT_DUPLICATES, &flaw);
    tools_t *self = calloc (1, sizeof *self);
    if (file == NULL || self == NULL) {
        refuse (&reader, "line %d: %s", flaw.line, file == NULL ? flaw.text : "no memory is left");
        json_decref (file);
        free (self);
        return NULL;
    }
    self->references = 1;
    const bool good = json_is_object (file) ? read_all (&reader, self, file)
                                            : refuse (&reader, "it is no object");
    json_decref (file);
    if (good)
        return self;
    tools_release (self);
    return NULL;
}

tools_t *tools_read (const char *path, char error[TOOLS_ERROR_SIZE])
{
    char reason[TOOLS_ERROR_SIZE];
    FILE *file = fopen (path, "rb");
    char *text = file != NULL ? malloc (TOOLS_BYTES_MAX + 1) : NULL;
    const size_t length = text != NULL ? fread (text, 1, TOOLS_BYTES_MAX + 1, file) : 0;
    tools_t *self = NULL;
    if (text == NULL || file == NULL || ferror (file))
        snprintf (error, TOOLS_ERROR_SIZE, "%.700s: %s", path, strerror (errno));
    else if (length > TOOLS_BYTES_MAX)
        snprintf (error, TOOLS_ERROR_SIZE, "%.700s: it has more than 4 MiB", path);
    else if ((self = tools_parse (text, length, reason)) == NULL)
        snprintf (error, TOOLS_ERROR_SIZE, "%.500s: %.500s", path, reason);
    free (text);
    if (file != NULL)
        fclose (file);
    return self;
}

tools_t *tools_retain (tools_t *self)
{
    self->references++;
    return self;
}

void tools_release (tools_t *self)
{
    if (self == NULL || --self->references > 0)
        return;
    for (size_t i = 0; i < self->count; i++) {
        schema_free (&self->list[i].input);
        schema_free (&self->list[i].output);
        json_decref (self->list[i].json);
        json_decref (self->list[i].ours);
        free (self->list[i].shown);
        free (self->list[i].shown_25);
    }
    free (self->instructions);
    free (self->list);
    free (self);
}

bool tool_shows (const tool_t *self, unsigned roles)
{
    return self->roles == 0 || (self->roles & roles) != 0;
}

void tools_digest (char out[TOOLS_DIGEST_SIZE], const tools_t *self, unsigned roles)
{
    crypto_generichash_state state;
    uint8_t hash[(TOOLS_DIGEST_SIZE - 1) / 2];
    crypto_generichash_init (&state, NULL, 0, sizeof hash);
    for (size_t i = 0; i < self->count; i++) {
        const tool_t *tool = &self->list[i];
        if (!tool_shows (tool, roles))
            continue;
        crypto_generichash_update (&state, (const uint8_t *) tool->shown, strlen (tool->shown) + 1);
        crypto_generichash_update (&state, (const uint8_t *) tool->shown_25,
                                   strlen (tool->shown_25) + 1);
    }
    crypto_generichash_final (&state, hash, sizeof hash);
    hex_encode (out, hash, sizeof hash);
}

tool_t *tools_find (const tools_t *self, const char *name, unsigned roles)
{
    for (size_t i = 0; i < self->count; i++)
        if (strcmp (self->list[i].name, name) == 0)
            return tool_shows (&self->list[i], roles) ? &self->list[i] : NULL;
    return NULL;
}
