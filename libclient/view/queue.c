/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include <stdio.h>
#include <string.h>

#include "view.h"

const char *view_weight_text (uint64_t number)
{
    switch (number) {
#define X(number, NAME, text)                                                                      \
    case TMQ_WEIGHT_OF_##NAME: return text;
        TMQ_WEIGHT_OF_MAP (X)
#undef X
    default: return "?";
    }
}

static const struct {
    tmq_queue_closed_t closed;
    const char *text;
} closed_texts[] = {
#define X(number, NAME, text) {TMQ_QUEUE_CLOSED_##NAME, text},
    TMQ_QUEUE_CLOSED_MAP (X)
#undef X
};
enum { CLOSED_TEXTS = sizeof closed_texts / sizeof *closed_texts };

const char *view_queue_state (char *out, size_t size, const tmq_queue_t *queue)
{
    size_t length = 0;
    *out = '\0';
    for (size_t i = 0; i < CLOSED_TEXTS && length < size; i++)
        if (queue->closed & closed_texts[i].closed)
            length += (size_t) snprintf (out + length, size - length, "%s%s", length ? " " : "",
                                         closed_texts[i].text);
    return length ? out : "open";
}

static void write_uint (json_writer_t *writer, const char *key, uint64_t value)
{
    json_write_key (writer, key);
    json_write_uint (writer, value);
}

/* Settings: a number that is not set is null. */
typedef enum setting_kind {
    SETTING_NUMBER,
    SETTING_WORD,
    SETTING_IS_ON,
    SETTING_IS_OFF
} setting_kind_t;

#define SETTING(key, KIND, member)                                                                 \
    {                                                                                              \
        key, SETTING_##KIND, offsetof (tmq_queue_settings_t, member)                               \
    }
static const struct {
    const char *key;
    setting_kind_t kind;
    size_t offset;
} settings[] = {SETTING ("max_running", NUMBER, max_running),
                SETTING ("max_per_key", NUMBER, max_per_key),
                SETTING ("weight_of", WORD, weight_of),
                SETTING ("rate", NUMBER, rate),
                SETTING ("rate_ms", NUMBER, rate_ms),
                SETTING ("burst", NUMBER, burst),
                SETTING ("max_tasks", NUMBER, max_tasks),
                SETTING ("max_bytes", NUMBER, max_bytes),
                SETTING ("ttl_ms", NUMBER, ttl_ms),
                SETTING ("ttl_never", IS_ON, ttl_never),
                SETTING ("lease_ms", NUMBER, lease_ms),
                SETTING ("backoff_ms", NUMBER, backoff_ms),
                SETTING ("max_attempts", NUMBER, max_attempts),
                SETTING ("max_runtime_ms", NUMBER, max_runtime_ms),
                SETTING ("search", IS_OFF, search_off),
                SETTING ("max_age_ms", NUMBER, max_age_ms),
                SETTING ("max_count", NUMBER, max_count),
                SETTING ("max_ended_bytes", NUMBER, max_ended_bytes),
                SETTING ("keep_failed_ms", NUMBER, keep_failed_ms),
                SETTING ("min_keep", NUMBER, min_keep)};

static void write_settings (json_writer_t *writer, const tmq_queue_settings_t *values)
{
    json_write_key (writer, "settings");
    json_write_object_begin (writer);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        uint64_t value;
        memcpy (&value, (const char *) values + settings[i].offset, sizeof value);
        json_write_key (writer, settings[i].key);
        if (settings[i].kind == SETTING_WORD)
            json_write_text (writer, view_weight_text (value));
        else if (settings[i].kind != SETTING_NUMBER)
            json_write_bool (writer, (value != 0) == (settings[i].kind == SETTING_IS_ON));
        else if (value != 0)
            json_write_uint (writer, value);
        else
            json_write_null (writer);
    }
    json_write_object_end (writer);
}

static void write_paused (json_writer_t *writer, const tmq_queue_t *queue)
{
    json_write_key (writer, "paused");
    if (!queue->paused) {
        json_write_null (writer);
        return;
    }
    json_write_object_begin (writer);
    json_write_key (writer, "by");
    json_write_text (writer, queue->paused_by);
    json_write_key (writer, "at");
    json_write_time (writer, (int64_t) queue->paused_at);
    json_write_key (writer, "why");
    json_write_text (writer, *queue->paused_why ? queue->paused_why : NULL);
    json_write_object_end (writer);
}

static void write_closed (json_writer_t *writer, uint32_t closed)
{
    json_write_key (writer, "closed");
    json_write_array_begin (writer);
    for (size_t i = 0; i < CLOSED_TEXTS; i++)
        if (closed & closed_texts[i].closed)
            json_write_text (writer, closed_texts[i].text);
    json_write_array_end (writer);
}

void view_write_queue (json_writer_t *writer, const tmq_queue_t *queue, const uint64_t *ended)
{
    const struct {
        const char *key;
        uint64_t value;
    } numbers[] = {{"ready", queue->ready},
                   {"scheduled", queue->scheduled},
                   {"blocked", queue->blocked},
                   {"working", queue->working},
                   {"input_required", queue->input_required},
                   {"queued_bytes", queue->queued_bytes},
                   {"running", queue->running},
                   {"workers", queue->workers},
                   {"needs_sets", queue->needs_sets},
                   {"submitted", queue->submitted},
                   {"completed", queue->completed},
                   {"failed", queue->failed},
                   {"attempts_failed", queue->attempts_failed},
                   {"oldest_ready_ms", queue->oldest_ready_ms}};
    json_write_object_begin (writer);
    json_write_key (writer, "queue");
    json_write_text (writer, queue->queue);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        write_uint (writer, numbers[i].key, numbers[i].value);
    if (ended)
        write_uint (writer, "ended", *ended);
    write_closed (writer, queue->closed);
    write_paused (writer, queue);
    write_settings (writer, &queue->settings);
    json_write_object_end (writer);
}
