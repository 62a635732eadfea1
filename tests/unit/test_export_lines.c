/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The lines of tasks.jsonl and events.jsonl are a stable interface, byte by byte: those of tasks
 * and events of all shapes, made by chance that is always the same, have the hash that they always
 * had. A new member changes it; anything else that does is a mistake. */
#include "support/cmocka_all.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain.h"
#include "export/event_line.h"
#include "ids.h"
#include "json.h"
#include "sim/rng.h"

enum { LINES = 20000, TEXT_MAX = 400, TEXTS = 64, LABELS = 4 };

/* Texts of a line, until the next one. One draw a statement: the order within an initialiser is the
 * compiler's. */
static char texts[TEXTS][TEXT_MAX + 1];
static size_t texts_count;
static rng_t rng;

static uint64_t below (uint64_t limit)
{
    return rng_next (&rng) % limit;
}

static char *place_text (void)
{
    assert_true (texts_count < TEXTS);
    return texts[texts_count++];
}

/* What a text may be made of: what stands in JSON as it is, what is escaped there, what moves
 * cursors, what hides, and what is no UTF-8. */
static const char *const pieces[] = {"a",
                                     "Z9",
                                     "render/frame-17",
                                     "the quick brown fox",
                                     " ",
                                     "\"",
                                     "\\",
                                     "/",
                                     "\n",
                                     "\t\r",
                                     "\x01",
                                     "\x1b[2J",
                                     "\x7f",
                                     "\xc2\x80",
                                     "\xc2\xa0",
                                     "\xc2\xad",
                                     "\xc3\xa4\xc3\xb6",
                                     "\xe2\x82\xac",
                                     "\xe2\x80\xae",
                                     "\xe3\x83\x86\xe3\x82\xb9\xe3\x83\x88",
                                     "\xf0\x9f\x98\x80",
                                     "\xf3\xa0\x80\x81",
                                     "\xff",
                                     "\xc3",
                                     "\xed\xa0\x80",
                                     "~",
                                     "{\"b\":[1,2]}"};
enum { PIECES = sizeof (pieces) / sizeof (pieces[0]) };

/* Mostly plain, mostly short. NULL and the empty one count as absent. */
static const char *any_text (void)
{
    size_t length = 0;
    uint64_t kind = below (8);
    if (kind == 0)
        return NULL;
    if (kind == 1)
        return "";
    char *text = place_text ();
    size_t parts = below (kind == 2 ? 40 : 6);
    for (size_t i = 0; i <= parts; i++) {
        const char *piece = pieces[kind < 5 ? below (5) : below (PIECES)];
        size_t size = strlen (piece);
        if (length + size > TEXT_MAX)
            break;
        memcpy (text + length, piece, size);
        length += size;
    }
    text[length] = '\0';
    return text;
}

/* Of every length: a word at a time is looked at, so each place in one counts. */
static const char *any_name (void)
{
    char *text = place_text ();
    size_t length = 1 + below (TMQ_NAME_LENGTH_MAX);
    for (size_t i = 0; i < length; i++)
        text[i] = (char) ('!' + below (94));
    if (below (4) == 0)
        text[below (length)] = (char) (1 + below (255));
    text[length] = '\0';
    return text;
}

static uint64_t any_number (void)
{
    uint64_t number = rng_next (&rng);
    return below (4) == 0 ? 0 : number >> below (64);
}

static int64_t any_time (void)
{
    static const int64_t edges[] = {0,
                                    1,
                                    -1,
                                    INT64_C (951782400000),    /* a leap day */
                                    INT64_C (4107542399999),   /* the end of one in 2100 */
                                    INT64_C (253402300799999), /* the last of all */
                                    INT64_C (253402300800000), /* none any more */
                                    INT64_MAX};
    uint64_t kind = below (8);
    if (kind == 0)
        return edges[below (sizeof (edges) / sizeof (edges[0]))];
    if (kind == 1)
        return (int64_t) below (UINT64_C (253402300800000));
    return INT64_C (1700000000000) + (int64_t) below (200000);
}

static tmq_id_t any_id (void)
{
    tmq_id_t id;
    for (size_t i = 0; i < sizeof (id.bytes); i++)
        id.bytes[i] = (uint8_t) below (256);
    return id;
}

static progress_view_t any_progress (void)
{
    static const double numbers[] = {0, 1, 0.1, 1e300, -2.5, 1e-7, 12345678.9};
    progress_view_t progress = {0};
    progress.given = below (3) == 0;
    if (!progress.given)
        return progress;
    progress.done = numbers[below (7)];
    progress.total = numbers[below (7)];
    progress.unit = any_text ();
    progress.message = any_text ();
    return progress;
}

static size_t any_labels (label_view_t labels[LABELS])
{
    size_t count = below (3) > 0 ? 0 : below (LABELS);
    for (size_t i = 0; i < count; i++) {
        const char *value = any_text ();
        labels[i].key = any_name ();
        labels[i].value = value == NULL ? "" : value;
    }
    return count;
}

static const char *any_json (void)
{
    static const char *const list[] = {
        NULL,
        "",
        "{}",
        " {\"a\" : [1, 2.5e3,\ttrue],\"x\\u0041\":\"\x7f\xc3\xa4\"} ",
        "{\"a\":",
        "nothing",
        "\"\xe2\x80\xae \\n\""};
    return list[below (sizeof (list) / sizeof (list[0]))];
}

typedef struct body {
    uint8_t bytes[TEXT_MAX + 1];
    const void *at;
    size_t length;
    const char *type;
} body_t;

static void any_body (body_t *out)
{
    static const char *const types[] = {
        NULL,       "",         "text/plain",       "text/html; charset=utf-8",
        "TEXT/csv", "x/binary", "application/json", "application/json; x=y"};
    const char *text = below (2) == 0 ? any_json () : any_text ();
    out->type = types[below (sizeof (types) / sizeof (types[0]))];
    out->length = below (2) == 0 && text != NULL ? strlen (text) : below (TEXT_MAX);
    out->at = out->bytes;
    if (text != NULL && out->length == strlen (text))
        memcpy (out->bytes, text, out->length);
    else
        for (size_t i = 0; i < out->length; i++)
            out->bytes[i] = (uint8_t) below (256);
    if (below (8) == 0)
        out->at = NULL; /* not loaded */
}

static void any_course (task_view_t *task)
{
    task->created_at = any_time ();
    task->updated_at = any_time ();
    task->started_at = any_time ();
    task->finished_at = any_time ();
    task->expires_at = any_time ();
    task->ttl_ms = (int64_t) any_number ();
    task->not_before = any_time ();
    task->start_by = any_time ();
    task->max_runtime_ms = (int64_t) any_number ();
    task->poll_interval_ms = (uint32_t) any_number ();
    task->attempt = (uint32_t) any_number ();
    task->failures = (uint32_t) any_number ();
    task->max_attempts = (uint32_t) any_number ();
    task->worker = any_text ();
    task->progress = any_progress ();
}

/* Blobs, artifacts, questions and dependencies. */
typedef struct beside {
    label_view_t labels[LABELS];
    label_view_t needs[LABELS];
    tmq_id_t after[2];
    uint8_t hash[32];
    artifact_view_t artifact;
    question_view_t question;
    body_t payload;
    body_t result;
} beside_t;

static void any_relations (task_view_t *task, task_extras_t *extras, beside_t *beside)
{
    for (size_t i = 0; i < 2; i++)
        beside->after[i] = any_id ();
    task->depends_on = beside->after;
    task->depends_on_count = below (3);
    task->parent = below (2) == 0 ? any_id () : (tmq_id_t){{0}};
    task->has_parts = below (2) == 0;
    task->turns = (uint32_t) any_number ();
    task->fair_key = any_text ();
    task->needs = beside->needs;
    task->needs_count = any_labels (beside->needs);
    memset (beside->hash, (int) below (256), sizeof (beside->hash));
    if (below (8) == 0)
        task->payload_blob = beside->hash;
    if (below (8) == 0)
        task->result_blob = beside->hash;
    beside->artifact.name = any_name ();
    beside->artifact.type = any_text ();
    beside->artifact.bytes = any_number ();
    beside->artifact.hash = below (2) == 0 ? beside->hash : NULL;
    beside->artifact.attempt = 1;
    beside->artifact.attached_at = any_time ();
    task->artifacts = &beside->artifact;
    task->artifacts_count = below (2);
    beside->question = (question_view_t){0};
    beside->question.task_id = task->id;
    beside->question.key = any_name ();
    beside->question.queue = any_name ();
    beside->question.session = below (2) == 0 ? "" : any_name ();
    beside->question.worker = any_text ();
    beside->question.number = any_number ();
    beside->question.attempt = (uint32_t) any_number ();
    beside->question.asked_at = any_time ();
    beside->question.deadline = any_time ();
    beside->question.request = any_json ();
    beside->question.has_default = below (2) == 0;
    beside->question.default_is_text = below (2) == 0;
    beside->question.default_answer = "{\"yes\": true}";
    extras->questions = &beside->question;
    extras->questions_count = below (4) == 0;
}

static void any_contents (task_view_t *task, beside_t *beside)
{
    any_body (&beside->payload);
    any_body (&beside->result);
    task->labels = beside->labels;
    task->labels_count = any_labels (beside->labels);
    task->meta = any_json ();
    task->trace = any_text ();
    task->cancel_message = any_text ();
    task->content_type = beside->payload.type;
    task->payload = beside->payload.at;
    task->payload_bytes = beside->payload.length;
    task->outcome = (unsigned) below (4);
    task->result = beside->result.at;
    task->result_bytes = beside->result.length;
    task->result_type = beside->result.type;
    task->error_code = (int32_t) any_number ();
    task->error_message = any_text ();
    task->error_data = any_json ();
    task->error_data_bytes = below (3);
    task->dead = below (2) == 0;
    task->version = any_number ();
    task->seq = any_number ();
}

static void write_any_task (bytes_t *out)
{
    static beside_t beside;
    task_view_t task = {0};
    task_extras_t extras = {0};
    json_writer_t writer = {out, false};
    task.id = any_id ();
    task.ns = any_name ();
    task.queue = any_name ();
    task.session = any_text ();
    task.owner = any_name ();
    task.status = (unsigned) below (8);
    task.phase = (unsigned) below (8);
    task.status_message = any_text ();
    task.priority = (uint32_t) below (256);
    task.method = any_text ();
    extras.exported = below (4) > 0;
    extras.payload = below (2) == 0;
    extras.no_result = below (8) == 0;
    extras.pos = any_number ();
    extras.body_bytes_max = below (2) == 0 ? 0 : 100;
    any_course (&task);
    any_contents (&task, &beside);
    any_relations (&task, &extras, &beside);
    if (below (16) == 0)
        json_write_snapshot (&writer, &task, below (2) == 0 ? NULL : "1-2");
    else
        json_write_task (&writer, &task, &extras);
}

static void write_any_event (bytes_t *out, chain_head_t *head)
{
    static label_view_t labels[LABELS];
    bytes_t members = BYTES_INIT;
    event_view_t event = {0};
    event.kind = (unsigned) below (22);
    event.ns = any_name ();
    event.seq = any_number ();
    event.at = any_time ();
    event.task_id = any_id ();
    event.subject = below (4) > 0 ? 0 : (unsigned) below (8);
    event.name = any_name ();
    event.number = any_number ();
    event.queue = any_name ();
    event.session = any_text ();
    event.owner = any_text ();
    event.status = (unsigned) below (8);
    event.previous = (unsigned) below (8);
    event.attempt = (uint32_t) any_number ();
    event.worker = any_text ();
    event.actor = any_name ();
    event.message = any_text ();
    event.progress = any_progress ();
    event.labels = labels;
    event.labels_count = any_labels (labels);
    event.trace = any_text ();
    uint64_t pos = any_number ();
    event_line_event (&members, &event, pos, any_number ());
    chain_link (out, head, members.data, members.length);
    bytes_free (&members);
}

static void assert_hash (const char *wanted, const bytes_t *lines)
{
    uint8_t hash[32];
    char text[2 * sizeof (hash) + 1];
    assert_false (lines->failed);
    crypto_generichash (hash, sizeof (hash), lines->data, lines->length, NULL, 0);
    hex_encode (text, hash, sizeof (hash));
    assert_string_equal (text, wanted);
}

static void the_lines_of_tasks_are_what_they_always_were (void **state)
{
    (void) state;
    bytes_t lines = BYTES_INIT;
    rng.state = 20261123;
    for (size_t i = 0; i < LINES; i++) {
        size_t from = lines.length;
        texts_count = 0;
        write_any_task (&lines);
        assert_true (json_text_is_object (lines.data + from, lines.length - from));
        bytes_append_byte (&lines, '\n');
    }
    assert_hash ("68c136e383dae20e9dcf80461af548b914155f83f48f98520d7fa83c656187d6", &lines);
    bytes_free (&lines);
}

static void the_lines_of_events_are_what_they_always_were (void **state)
{
    (void) state;
    bytes_t lines = BYTES_INIT;
    chain_head_t head = {0};
    rng.state = 20261124;
    for (size_t i = 0; i < LINES; i++) {
        size_t from = lines.length;
        texts_count = 0;
        write_any_event (&lines, &head);
        assert_true (json_text_is_object (lines.data + from, lines.length - from));
    }
    assert_hash ("62ddbacc70ba2dec3619b523d5ab2c0103836d88724bb69bbaa8852e7bc721d2", &lines);
    bytes_free (&lines);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (the_lines_of_tasks_are_what_they_always_were),
        cmocka_unit_test (the_lines_of_events_are_what_they_always_were),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
