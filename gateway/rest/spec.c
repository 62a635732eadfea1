/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "rest/spec.h"

#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ids.h"
#include "json.h"
#include "rest/answer.h"

enum { KEY_BYTES_MAX = 200, OWNER_HASH_BYTES = 8 };

/* Numbers: name, where it goes, range. */
typedef enum number_kind { NUMBER_U32, NUMBER_U64, NUMBER_PRIORITY } number_kind_t;

#define FIELD(member) offsetof (tmq_submit_t, member)
static const struct {
    const char *name;
    size_t offset;
    number_kind_t kind;
    int64_t least;
    int64_t most;
} numbers[] = {{"priority", FIELD (priority), NUMBER_PRIORITY, 0, 255},
               {"max_attempts", FIELD (max_attempts), NUMBER_U32, 1, TMQ_MAX_ATTEMPTS_MAX},
               {"backoff_ms", FIELD (backoff_ms), NUMBER_U32, 1, TMQ_BACKOFF_MS_MAX},
               {"lease_ms", FIELD (lease_ms), NUMBER_U32, TMQ_LEASE_MS_MIN, TMQ_LEASE_MS_MAX},
               {"poll_interval_ms", FIELD (poll_interval_ms), NUMBER_U32, 1, UINT32_MAX},
               {"delay_ms", FIELD (delay_ms), NUMBER_U64, 0, TMQ_TTL_MS_MAX},
               {"max_runtime_ms", FIELD (max_runtime_ms), NUMBER_U64, 1, TMQ_TTL_MS_MAX}};
static const struct {
    const char *name;
    size_t offset;
    size_t bytes_max;
    bool is_name;
} texts[] = {{"queue", FIELD (queue), TMQ_NAME_LENGTH_MAX, true},
             {"session", FIELD (session), TMQ_NAME_LENGTH_MAX, true},
             {"method", FIELD (method), TMQ_METHOD_BYTES_MAX, false},
             {"content_type", FIELD (content_type), TMQ_CONTENT_TYPE_BYTES_MAX, false},
             {"fair_key", FIELD (fair_key), TMQ_FAIR_KEY_BYTES_MAX, false}};
#undef FIELD
enum { NUMBERS = sizeof numbers / sizeof *numbers, TEXTS = sizeof texts / sizeof *texts };

static bool wrong (spec_t *self, const char *name, const char *format, ...)
    __attribute__ ((format (printf, 3, 4)));

static bool wrong (spec_t *self, const char *name, const char *format, ...)
{
    va_list list;
    snprintf (self->pointer, sizeof self->pointer, "%s%.64s", *name != '\0' ? "/" : "", name);
    va_start (list, format);
    vsnprintf (self->error, sizeof self->error, format, list);
    va_end (list);
    return false;
}

void spec_clear (spec_t *self)
{
    free (self->payload);
    free (self->meta);
    json_decref (self->object);
    memset (self, 0, sizeof *self);
}

static void spec_init (spec_t *out, const char *queue)
{
    memset (out, 0, sizeof *out);
    tmq_submit_init (&out->submit);
    out->submit.queue = queue;
    out->submit.labels = out->labels;
}

/* Members. */

static bool put_number (spec_t *self, size_t row, int64_t value)
{
    char *place = (char *) &self->submit + numbers[row].offset;
    if (value < numbers[row].least || value > numbers[row].most)
        return wrong (self, numbers[row].name, "%s is %" PRId64 "..%" PRId64, numbers[row].name,
                      numbers[row].least, numbers[row].most);
    switch (numbers[row].kind) {
    case NUMBER_PRIORITY: *(int *) (void *) place = (int) value; break;
    case NUMBER_U32: *(uint32_t *) (void *) place = (uint32_t) value; break;
    case NUMBER_U64: *(uint64_t *) (void *) place = (uint64_t) value; break;
    }
    return true;
}

/* 0: it never ends. */
static bool put_ttl (spec_t *self, int64_t ms)
{
    if (ms < 0 || ms > TMQ_TTL_MS_MAX)
        return wrong (self, "ttl_ms",
                      "ttl_ms is a number of milliseconds up to %" PRId64 ", 0 for never",
                      (int64_t) TMQ_TTL_MS_MAX);
    self->submit.ttl_ms = (uint64_t) ms;
    self->submit.ttl_never = ms == 0;
    return true;
}

static bool put_text (spec_t *self, size_t row, const char *text)
{
    if (texts[row].is_name ? !name_is_valid (text) : strlen (text) > texts[row].bytes_max)
        return wrong (self, texts[row].name,
                      texts[row].is_name ? "%s is a name: [A-Za-z0-9._-]{1,%zu}"
                                         : "%s has at most %zu bytes",
                      texts[row].name, texts[row].bytes_max);
    memcpy ((char *) &self->submit + texts[row].offset, &text, sizeof text);
    return true;
}

static bool put_label (spec_t *self, const char *key, const char *value)
{
    if (strncmp (key, "gw.", 3) == 0)
        return wrong (self, "labels", "labels that begin with gw. are the gateway's own");
    if (!name_is_valid (key) || value == NULL || strlen (value) > TMQ_LABEL_BYTES_MAX)
        return wrong (self, "labels", "a label is NAME: a text of at most %d bytes",
                      TMQ_LABEL_BYTES_MAX);
    for (size_t i = 0; i < self->submit.labels_count; i++)
        if (strcmp (self->labels[i].key, key) == 0)
            return wrong (self, "labels", "the label %.64s is given more than once", key);
    if (self->submit.labels_count == TMQ_LABELS_MAX - 1)
        return wrong (self, "labels", "a task has at most %d labels here", TMQ_LABELS_MAX - 1);
    self->labels[self->submit.labels_count++] = (tmq_label_t){key, value};
    return true;
}

/* JSON. */

static bool put_labels (spec_t *self, const json_t *value)
{
    const char *key;
    json_t *label;
    if (!json_is_object (value))
        return wrong (self, "labels", "labels are an object of texts");
    json_object_foreach ((json_t *) value, key, label)
    {
        const char *text = json_string_value (label);
        if (text != NULL && strlen (text) != json_string_length (label))
            text = NULL;
        if (!put_label (self, key, text))
            return false;
    }
    return true;
}

static bool put_base64 (spec_t *self, const json_t *base64)
{
    const size_t length = json_string_length (base64);
    const size_t size = length / 4 * 3 + 1;
    self->payload = malloc (size);
    if (self->payload == NULL ||
        sodium_base642bin ((unsigned char *) self->payload, size, json_string_value (base64),
                           length, NULL, &self->submit.payload_bytes, NULL,
                           sodium_base64_VARIANT_ORIGINAL) != 0)
        return wrong (self, "data", "the base64 is not valid");
    self->submit.payload = self->payload;
    return true;
}

/* A string is its bytes, {"base64":…} what it encodes, any other value its text. */
static bool put_data (spec_t *self, const json_t *value, slice_t text)
{
    tmq_submit_t *submit = &self->submit;
    const json_t *base64 = json_object_get (value, "base64");
    submit->payload = text.text;
    submit->payload_bytes = text.length;
    if (json_is_string (base64) && json_object_size (value) == 1) {
        if (!put_base64 (self, base64))
            return false;
    } else if (json_is_string (value)) {
        submit->payload = json_string_value (value);
        submit->payload_bytes = json_string_length (value);
    } else if (submit->content_type == NULL) {
        submit->content_type = "application/json";
    }
    if (submit->payload_bytes > TMQ_FRAME_BYTES_MAX)
        return wrong (self, "data",
                      "data has %zu bytes, the limit is %d; a larger payload is the body of "
                      "POST /v1/queues/{queue}/tasks",
                      submit->payload_bytes, TMQ_FRAME_BYTES_MAX);
    return true;
}

static bool put_meta (spec_t *self, const json_t *value, slice_t text)
{
    if (!json_is_object (value))
        return wrong (self, "meta", "meta is an object");
    if (text.length > TMQ_META_BYTES_MAX)
        return wrong (self, "meta", "meta has %zu bytes, the limit is %d", text.length,
                      TMQ_META_BYTES_MAX);
    self->meta = calloc (1, text.length + 1);
    if (self->meta == NULL)
        return wrong (self, "meta", "memory is exhausted");
    memcpy (self->meta, text.text, text.length);
    self->submit.meta = self->meta;
    return true;
}

static bool put_plain (spec_t *self, const char *key, const json_t *value)
{
    for (size_t i = 0; i < TEXTS; i++) {
        if (strcmp (texts[i].name, key) != 0)
            continue;
        const char *text = json_string_value (value);
        if (text == NULL || strlen (text) != json_string_length (value))
            return wrong (self, key, "%.64s is a text", key);
        return put_text (self, i, text);
    }
    const bool is_ttl = strcmp (key, "ttl_ms") == 0;
    for (size_t i = 0; i < NUMBERS || is_ttl; i++) {
        if (!is_ttl && strcmp (numbers[i].name, key) != 0)
            continue;
        if (!json_is_integer (value))
            return wrong (self, key, "%.64s is a whole number", key);
        return is_ttl ? put_ttl (self, json_integer_value (value))
                      : put_number (self, i, json_integer_value (value));
    }
    return wrong (self, key, "there is no member '%.64s'", key);
}

static bool put_member (spec_t *self, slice_t object, const char *key, const json_t *value)
{
    const bool is_queue = strcmp (key, "queue") == 0;
    if (strcmp (key, "data") == 0)
        return true; /* when the type is known */
    if (strcmp (key, "labels") == 0)
        return put_labels (self, value);
    if (strcmp (key, "meta") == 0)
        return put_meta (self, value, input_member (object, "meta"));
    if (is_queue && self->submit.queue != NULL)
        return wrong (self, key, "the queue stands in the path");
    if (strcmp (key, "idempotency_key") == 0) {
        self->key = json_string_value (value);
        if (self->key == NULL || strlen (self->key) != json_string_length (value))
            return wrong (self, key, "a key is a text without NUL");
        return true;
    }
    return put_plain (self, key, value);
}

bool spec_from_json (spec_t *out, slice_t text, const char *queue)
{
    const char *key;
    json_t *value;
    char error[INPUT_ERROR_SIZE];
    spec_init (out, queue);
    out->object = input_object (text, error);
    if (out->object == NULL)
        return wrong (out, "", "%s", error);
    json_object_foreach (out->object, key, value)
    {
        if (!put_member (out, text, key, value))
            return false;
    }
    const json_t *data = json_object_get (out->object, "data");
    if (data != NULL && !put_data (out, data, input_member (text, "data")))
        return false;
    return out->submit.queue != NULL || wrong (out, "queue", "queue is missing");
}

/* The query. */

static bool put_parameter (spec_t *self, const http_parameter_t *parameter)
{
    const char *name = parameter->name;
    char *end;
    if (strcmp (name, "namespace") == 0)
        return true; /* read at the door */
    if (strcmp (name, "label") == 0) {
        char *colon = strchr (parameter->value, ':');
        if (colon == NULL)
            return wrong (self, name, "label is NAME:VALUE");
        *colon = '\0';
        return put_label (self, parameter->value, colon + 1);
    }
    for (size_t i = 1; i < TEXTS; i++) /* the queue stands in the path, and the … */
        if (strcmp (texts[i].name, name) == 0 && strcmp (name, "content_type") != 0)
            return put_text (self, i, parameter->value); /* … type in the head */
    errno = 0;
    const long long value = strtoll (parameter->value, &end, 10);
    const bool is_number =
        parameter->value[0] >= '0' && parameter->value[0] <= '9' && *end == '\0' && errno == 0;
    if (strcmp (name, "ttl_ms") == 0)
        return put_ttl (self, is_number ? value : -1);
    for (size_t i = 0; i < NUMBERS; i++)
        if (strcmp (numbers[i].name, name) == 0)
            return put_number (self, i, is_number ? value : -1);
    return wrong (self, name, "there is no parameter '%.64s'", name);
}

bool spec_from_query (spec_t *out, const http_target_t *target, const char *queue)
{
    spec_init (out, queue);
    if (!name_is_valid (queue))
        return wrong (out, "queue", "a queue is a name: [A-Za-z0-9._-]{1,64}");
    for (size_t i = 0; i < target->parameters_count; i++) {
        const char *name = target->parameters[i].name;
        if (strcmp (name, "label") != 0 && http_target_count (target, name) > 1)
            return wrong (out, name, "%.64s is given more than once", name);
        if (!put_parameter (out, &target->parameters[i]))
            return false;
    }
    return true;
}

/* What the gateway adds. */

bool spec_finish (spec_t *self, const principal_t *principal, const char *key)
{
    uint8_t hash[OWNER_HASH_BYTES * 2];
    char digits[OWNER_HASH_BYTES * 2 + 1];
    self->labels[self->submit.labels_count++] = (tmq_label_t){PRINCIPAL_LABEL, principal->name};
    if (key == NULL)
        return true;
    bool good = key[0] != '\0' && strlen (key) <= KEY_BYTES_MAX;
    for (const char *at = key; good && *at != '\0'; at++)
        good = *at > ' ' && *at < 0x7f;
    if (!good)
        return wrong (self, "Idempotency-Key", "a key is 1 to %d visible characters of ASCII",
                      KEY_BYTES_MAX);
    crypto_generichash (hash, sizeof hash, (const uint8_t *) principal->name,
                        strlen (principal->name), NULL, 0);
    hex_encode (digits, hash, OWNER_HASH_BYTES);
    snprintf (self->dedup_key, sizeof self->dedup_key, "ik:%s:%s", digits, key);
    self->submit.dedup_key = self->dedup_key;
    return true;
}
