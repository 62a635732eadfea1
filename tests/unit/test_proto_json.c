/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The JSON checker and writer, and the exact form of tasks and events. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "ids.h"
#include "json.h"
#include "taskmq.pb-c.h"

/* Checking. */

static void assert_json (const char *text)
{
    if (!json_text_is_valid (text, strlen (text)))
        fail_msg ("refused: %s", text);
}

static void assert_no_json (const char *text)
{
    if (json_text_is_valid (text, strlen (text)))
        fail_msg ("taken: %s", text);
}

static void test_valid_json_is_taken (void **state)
{
    (void) state;
    assert_json ("{}");
    assert_json ("[]");
    assert_json (" \t\r\n{ \"a\" : [ 1 , 2 ] , \"b\" : { } } \n");
    assert_json ("null");
    assert_json ("true");
    assert_json ("false");
    assert_json ("0");
    assert_json ("-0");
    assert_json ("-12.5e+10");
    assert_json ("1E9");
    assert_json ("\"\"");
    assert_json ("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e4\"");
    assert_json ("\"\\ud83d\\ude00\"");
    assert_json ("\"\xc3\xa4\x7f\"");
    assert_json ("[[[[[]]]]]");
}

static void test_invalid_json_is_refused (void **state)
{
    (void) state;
    const char *bad[] = {
        "",
        " ",
        "{",
        "}",
        "[",
        "]",
        "[1",
        "[1,]",
        "[,1]",
        "[1 2]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{a:1}",
        "{'a':1}",
        "{\"a\":1}}",
        "{} {}",
        "nul",
        "nulll",
        "True",
        "NaN",
        "Infinity",
        "01",
        "+1",
        ".5",
        "1.",
        "1e",
        "1e+",
        "-",
        "--1",
        "0x1",
        "\"",
        "\"a",
        "\"\\",
        "\"\\\"",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "\"\\ud800\"",
        "\"\\ud800x\"",
        "\"\\ud800\\n\"",
        "\"\\ud800\\ud800\"",
        "\"\\udc00\"",
        "\"\n\"",
        "\"\x1f\"",
        "\"\x80\"",
        "\"\xc3\"",
        "\"\xed\xa0\x80\"",
        "\xef\xbb\xbf{}",
        "// comment\n{}",
        "{\"a\":1 /* */}",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_no_json (bad[i]);
    assert_false (json_text_is_valid ("{}\0", 3));
    assert_false (json_text_is_valid ("\"a\0b\"", 5));
    assert_false (json_text_is_valid (NULL, 0));
    assert_false (json_text_is_object (NULL, 0));
}

static void test_every_prefix_of_a_document_is_refused (void **state)
{
    (void) state;
    const char *text = "{\"a\":[1.5e3,true,null,\"x\\u0041\\n\"],\"b\":{\"c\":\"\xe2\x82\xac\"}}";
    for (size_t length = 0; length < strlen (text); length++) {
        /* A copy of exactly that size, so that a read beyond it is seen by the sanitizer. */
        char *cut = malloc (length + 1);
        assert_non_null (cut);
        char *exact = length > 0 ? realloc (cut, length) : cut;
        assert_non_null (exact);
        memcpy (exact, text, length);
        assert_false (json_text_is_valid (exact, length));
        free (exact);
    }
    assert_json (text);
}

static void test_depth_is_limited (void **state)
{
    (void) state;
    char text[2 * (JSON_DEPTH_MAX + 1) + 1];
    for (size_t depth = JSON_DEPTH_MAX; depth <= JSON_DEPTH_MAX + 1; depth++) {
        memset (text, '[', depth);
        memset (text + depth, ']', depth);
        assert_int_equal (json_text_is_valid (text, 2 * depth), depth == JSON_DEPTH_MAX);
    }
    char *many = malloc (1 << 20);
    assert_non_null (many);
    memset (many, '[', 1 << 20);
    assert_false (json_text_is_valid (many, 1 << 20));
    free (many);
}

static void test_objects_are_told_from_other_values (void **state)
{
    (void) state;
    assert_true (json_text_is_object ("{}", 2));
    assert_true (json_text_is_object (" {\"a\":1} ", 9));
    assert_false (json_text_is_object ("[]", 2));
    assert_false (json_text_is_object ("\"{}\"", 4));
    assert_false (json_text_is_object ("{", 1));
    assert_false (json_text_is_object ("{}x", 3));
    assert_false (json_text_is_object ("  ", 2));
}

static void test_random_bytes_do_no_harm (void **state)
{
    (void) state;
    static const char alphabet[] = "{}[]\",:\\u0d8ntfx \n1-.e\xc3\xa4";
    unsigned seed = 20261121;
    print_message ("seed %u\n", seed);
    size_t valid = 0;
    for (int round = 0; round < 200000; round++) {
        char text[12];
        size_t length = (size_t) rand_r (&seed) % sizeof text;
        for (size_t i = 0; i < length; i++)
            text[i] = alphabet[(size_t) rand_r (&seed) % (sizeof alphabet - 1)];
        valid += json_text_is_valid (text, length) ? 1 : 0;
    }
    assert_true (valid > 0 && valid < 100000);
}

/* Writing. */

static bytes_t out = BYTES_INIT;

static int teardown (void **state)
{
    (void) state;
    bytes_free (&out);
    return 0;
}

static json_writer_t fresh_writer (void)
{
    bytes_clear (&out);
    return (json_writer_t){&out, false};
}

static void assert_written (const char *wanted)
{
    assert_false (out.failed);
    assert_string_equal (bytes_text (&out), wanted);
    if (!json_text_is_valid (out.data, out.length))
        fail_msg ("not JSON: %s", wanted);
}

static void test_commas_stand_between_values_only (void **state)
{
    (void) state;
    json_writer_t writer = fresh_writer ();
    json_write_array_begin (&writer);
    json_write_array_begin (&writer);
    json_write_array_end (&writer);
    json_write_object_begin (&writer);
    json_write_key (&writer, "a");
    json_write_null (&writer);
    json_write_key (&writer, "b");
    json_write_array_begin (&writer);
    json_write_bool (&writer, true);
    json_write_bool (&writer, false);
    json_write_array_end (&writer);
    json_write_key (&writer, "c");
    json_write_int (&writer, -5);
    json_write_object_end (&writer);
    json_write_uint (&writer, UINT64_MAX);
    json_write_int (&writer, INT64_MIN);
    json_write_text (&writer, "");
    json_write_text (&writer, NULL);
    json_write_text (&writer, "x");
    json_write_array_end (&writer);
    assert_written ("[[],{\"a\":null,\"b\":[true,false],\"c\":-5},18446744073709551615,"
                    "-9223372036854775808,null,null,\"x\"]");
}

static void test_lines_begin_without_a_comma (void **state)
{
    (void) state;
    json_writer_t writer = fresh_writer ();
    json_write_uint (&writer, 1);
    json_write_newline (&writer);
    json_write_uint (&writer, 2);
    json_write_newline (&writer);
    assert_string_equal (bytes_text (&out), "1\n2\n");
}

static void assert_string (const void *text, size_t length, const char *wanted)
{
    json_writer_t writer = fresh_writer ();
    json_write_string (&writer, text, length);
    assert_written (wanted);
}

static void test_strings_are_escaped_and_repaired (void **state)
{
    (void) state;
    assert_string ("", 0, "\"\"");
    assert_string ("a\"b\\c", 5, "\"a\\\"b\\\\c\"");
    assert_string ("\b\f\n\r\t", 5, "\"\\b\\f\\n\\r\\t\"");
    assert_string ("\0\x01\x1b\x1f\x7f", 5, "\"\\u0000\\u0001\\u001b\\u001f\\u007f\"");
    assert_string ("\xc2\x80\xc2\x9b\xc2\x9f\xc2\xa0", 8, "\"\\u0080\\u009b\\u009f\xc2\xa0\"");
    assert_string ("\xe2\x82\xac\xf0\x9f\x98\x80", 7, "\"\xe2\x82\xac\xf0\x9f\x98\x80\"");
    assert_string ("a\xff"
                   "b",
                   3,
                   "\"a\xef\xbf\xbd"
                   "b\"");
    assert_string ("\xe2\x82", 2, "\"\xef\xbf\xbd\xef\xbf\xbd\"");
    assert_string ("\xed\xa0\x80", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
    assert_string ("</script>", 9, "\"</script>\"");
}

static void assert_raw (const char *text, const char *wanted)
{
    json_writer_t writer = fresh_writer ();
    json_write_raw (&writer, text, strlen (text));
    assert_written (wanted);
}

static void test_raw_json_comes_out_on_one_line (void **state)
{
    (void) state;
    assert_raw (" { \"a b\" :\n [ 1 ,\t\"x  y\" ] }\r\n", "{\"a b\":[1,\"x  y\"]}");
    assert_raw ("\"\\\"  \\\\\"", "\"\\\"  \\\\\"");
    assert_raw ("\"\\\\\"", "\"\\\\\"");
    assert_raw ("[\"\", \"\\n\"]", "[\"\",\"\\n\"]");
    assert_raw ("\"\x7f\xc2\x9b\"", "\"\\u007f\\u009b\"");
    assert_raw ("\"\xe2\x82\xac\"", "\"\xe2\x82\xac\"");
    assert_raw ("\"\\u00e4\"", "\"\\u00e4\"");
}

static void assert_body (const char *type, const char *body, size_t length, const char *wanted)
{
    json_writer_t writer = fresh_writer ();
    json_write_body (&writer, type, body, length);
    assert_written (wanted);
}

static void test_bodies_are_shown_by_their_type (void **state)
{
    (void) state;
    assert_body ("application/json", "{ \"a\": 1 }", 10, "{\"a\":1}");
    assert_body ("Application/JSON; charset=utf-8", "[1]", 3, "[1]");
    assert_body ("application/json", "{", 1, "{\"base64\":\"ew==\"}");
    assert_body ("application/json", "", 0, "{\"base64\":\"\"}");
    assert_body ("application/json5", "1", 1, "{\"base64\":\"MQ==\"}");
    assert_body ("text/plain", "a\n", 2, "\"a\\n\"");
    assert_body ("TEXT/html;x", "<b>", 3, "\"<b>\"");
    assert_body ("text/plain", "", 0, "\"\"");
    assert_body ("text/plain", "a\xff", 2, "{\"base64\":\"Yf8=\"}");
    assert_body ("text/plain", "a\0", 2, "{\"base64\":\"YQA=\"}");
    assert_body ("texture", "abc", 3, "{\"base64\":\"YWJj\"}");
    assert_body ("", "ab", 2, "\"ab\"");
    assert_body (NULL, "a", 1, "\"a\"");
    assert_body (NULL, "", 0, "\"\"");
    assert_body ("", "a\xff", 2, "{\"base64\":\"Yf8=\"}");
    assert_body ("", "a\0", 2, "{\"base64\":\"YQA=\"}");
    assert_body ("image/png", "\xff\xfb\xfe\xff\xef\xbe", 6, "{\"base64\":\"//v+/+++\"}");
}

static void test_times_are_null_when_absent (void **state)
{
    (void) state;
    json_writer_t writer = fresh_writer ();
    json_write_array_begin (&writer);
    json_write_time (&writer, 0);
    json_write_time (&writer, -1);
    json_write_time (&writer, INT64_MAX);
    json_write_time (&writer, 1795295100123);
    json_write_array_end (&writer);
    assert_written ("[null,null,null,\"2026-11-21T21:05:00.123Z\"]");
}

/* Tasks and events. */

static task_view_t plain_task (void)
{
    task_view_t task = {
        .ns = "default",
        .queue = "hash",
        .owner = "uid:0",
        .status = TMQ_STATUS_QUEUED,
        .phase = TMQ_PHASE_READY,
        .priority = 100,
        .created_at = 1795295100000,
        .updated_at = 1795295100000,
        .expires_at = 1795381500000,
        .ttl_ms = 86400000,
        .poll_interval_ms = 1000,
        .max_attempts = 3,
        .payload_bytes = 4,
        .version = 1,
        .seq = 17,
    };
    assert_true (id_parse (&task.id, "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"));
    return task;
}

static void assert_task (const task_view_t *task, const task_extras_t *extras, const char *wanted)
{
    json_writer_t writer = fresh_writer ();
    json_write_task (&writer, task, extras);
    assert_written (wanted);
}

#define TASK_NAME "\"task_id\":\"017f22e2-79b0-7cc3-98c4-dc0c0c07398f\",\"namespace\":\"default\","
#define TASK_HEAD TASK_NAME TASK_COURSE
#define TASK_COURSE                                                                                \
    "\"queue\":\"hash\",\"session\":null,\"owner\":\"uid:0\",\"status\":\"queued\","               \
    "\"phase\":\"ready\",\"status_message\":null,\"priority\":100,\"method\":null,"                \
    "\"content_type\":null,\"created_at\":\"2026-11-21T21:05:00.000Z\","                           \
    "\"updated_at\":\"2026-11-21T21:05:00.000Z\",\"started_at\":null,\"finished_at\":null,"        \
    "\"expires_at\":\"2026-11-22T21:05:00.000Z\",\"ttl_ms\":86400000,"                             \
    "\"not_before\":null,\"start_by\":null,\"max_runtime_ms\":null,\"poll_interval_ms\":1000,"     \
    "\"attempt\":0,\"failures\":0,\"max_attempts\":3,\"worker\":null,"                             \
    "\"progress\":null,\"labels\":{},\"meta\":null,\"trace\":null,\"depends_on\":[],"              \
    "\"parent\":null,\"has_parts\":false,\"fair_key\":null,\"require\":{},\"turn_count\":0,"       \
    "\"payload_bytes\":4,"
#define TASK_TAIL                                                                                  \
    "\"result_type\":null,\"result_bytes\":null,\"error\":null,\"cancel_message\":null,\"dead\":"  \
    "false,\"version\":1"
#define PLAIN_TASK TASK_HEAD "\"result\":null," TASK_TAIL
#define LISTED_TASK TASK_HEAD TASK_TAIL
#define EXPORTED_TASK TASK_NAME "\"seq\":17,\"pos\":99," TASK_COURSE "\"result\":null," TASK_TAIL

static void test_absent_values_are_null (void **state)
{
    (void) state;
    task_view_t task = plain_task ();
    assert_task (&task, NULL, "{" PLAIN_TASK "}");
}

static void test_a_snapshot_is_a_task_with_a_kind (void **state)
{
    (void) state;
    task_view_t task = plain_task ();
    json_writer_t writer = fresh_writer ();
    json_write_snapshot (&writer, &task, "9-7");
    assert_written ("{\"kind\":\"snapshot\"," LISTED_TASK ",\"cursor\":\"9-7\"}");
}

static void test_every_key_of_a_finished_task (void **state)
{
    (void) state;
    const label_view_t labels[] = {{"team", "a\"b"}, {"empty", ""}};
    task_view_t task = plain_task ();
    task.session = "s1";
    task.status = TMQ_STATUS_FAILED;
    task.phase = 0;
    task.status_message = "half\ndone";
    task.method = "tools/call";
    task.content_type = "text/plain";
    task.started_at = task.finished_at = 1795295101001;
    task.not_before = task.start_by = 1795295101001;
    task.max_runtime_ms = 60000;
    task.trace = "00-1";
    task.cancel_message = "not needed";
    task.expires_at = task.ttl_ms = 0;
    task.attempt = 3;
    task.worker = "w-1";
    task.progress = (progress_view_t){true, 5.5, 0, "files", NULL};
    task.labels = labels;
    task.labels_count = 2;
    task.depends_on = &task.id;
    task.depends_on_count = 1;
    task.parent = task.id;
    task.has_parts = true;
    task.turns = 3;
    task.fair_key = "t7";
    task.needs = labels;
    task.needs_count = 2;
    task.meta = "{ \"k\": [ ] }";
    task.outcome = TMQ_OUTCOME_TOOL_ERROR;
    task.result = "{}";
    task.result_bytes = 2;
    task.result_type = "application/json";
    task.error_code = -7;
    task.error_message = "broken";
    task.error_data = "[1, 2]";
    task.dead = true;
    task.version = 9;
    assert_task (
        &task, NULL,
        "{\"task_id\":\"017f22e2-79b0-7cc3-98c4-dc0c0c07398f\",\"namespace\":\"default\","
        "\"queue\":\"hash\",\"session\":\"s1\",\"owner\":\"uid:0\",\"status\":\"failed\","
        "\"phase\":null,\"status_message\":\"half\\ndone\",\"priority\":100,"
        "\"method\":\"tools/call\",\"content_type\":\"text/plain\","
        "\"created_at\":\"2026-11-21T21:05:00.000Z\",\"updated_at\":\"2026-11-21T21:05:00.000Z\","
        "\"started_at\":\"2026-11-21T21:05:01.001Z\",\"finished_at\":\"2026-11-21T21:05:01.001Z\","
        "\"expires_at\":null,\"ttl_ms\":null,\"not_before\":\"2026-11-21T21:05:01.001Z\","
        "\"start_by\":\"2026-11-21T21:05:01.001Z\",\"max_runtime_ms\":60000,"
        "\"poll_interval_ms\":1000,\"attempt\":3,"
        "\"failures\":0,\"max_attempts\":3,\"worker\":\"w-1\","
        "\"progress\":{\"done\":5.5,\"total\":null,\"unit\":\"files\",\"message\":null},"
        "\"labels\":{\"team\":\"a\\\"b\",\"empty\":\"\"},\"meta\":{\"k\":[]},"
        "\"trace\":\"00-1\",\"depends_on\":[\"017f22e2-79b0-7cc3-98c4-dc0c0c07398f\"],"
        "\"parent\":\"017f22e2-79b0-7cc3-98c4-dc0c0c07398f\",\"has_parts\":true,"
        "\"fair_key\":\"t7\",\"require\":{\"team\":\"a\\\"b\",\"empty\":\"\"},\"turn_count\":3,"
        "\"payload_bytes\":4,\"result\":{},\"result_type\":\"application/json\","
        "\"result_bytes\":2,\"error\":{\"code\":-7,\"message\":\"broken\",\"data\":[1,2]},"
        "\"cancel_message\":\"not needed\",\"dead\":true,\"version\":9}");
}

/* The members from `result` to `error`, by kind of outcome and what is loaded. */
static void assert_outcome (const task_view_t *task, const char *wanted)
{
    json_writer_t writer = fresh_writer ();
    json_write_task (&writer, task, NULL);
    if (strstr (bytes_text (&out), wanted) == NULL)
        fail_msg ("%s\nis not in %s", wanted, bytes_text (&out));
}

static void test_results_by_outcome (void **state)
{
    (void) state;
    task_view_t task = plain_task ();
    task.outcome = TMQ_OUTCOME_RESULT;
    task.result_type = "text/plain";
    assert_outcome (&task, "\"result\":\"\",\"result_type\":\"text/plain\",\"result_bytes\":0,"
                           "\"error\":null");
    task.result_bytes = 3;
    assert_outcome (&task, "\"result\":null,\"result_type\":\"text/plain\",\"result_bytes\":3,");
    task.result = "abc";
    assert_outcome (&task, "\"result\":\"abc\",\"result_type\":\"text/plain\",");
    task.result_type = "application/octet-stream";
    assert_outcome (&task, "\"result\":{\"base64\":\"YWJj\"},");
    task.outcome = TMQ_OUTCOME_PROTOCOL_ERROR;
    task.error_code = 1;
    task.error_data = "not JSON";
    assert_outcome (&task, "\"result\":null,\"result_type\":null,\"result_bytes\":null,"
                           "\"error\":{\"code\":1,\"message\":null,\"data\":\"not JSON\"}");
}

static void test_export_adds_position_and_payload (void **state)
{
    (void) state;
    task_view_t task = plain_task ();
    task.content_type = NULL;
    task.payload = "abcd";
    const task_extras_t payload = {.payload = true};
    assert_task (&task, &payload, "{" PLAIN_TASK ",\"payload\":\"abcd\"}");
    const task_extras_t exported = {.exported = true, .pos = 99, .body_bytes_max = 4};
    assert_task (&task, &exported,
                 "{" EXPORTED_TASK ",\"payload\":\"abcd\","
                 "\"payload_hash\":null,\"result_hash\":null}");
    const task_extras_t smaller = {.exported = true, .pos = 99, .body_bytes_max = 3};
    /* b2sum -l 256 of "abcd" */
    assert_task (&task, &smaller,
                 "{" EXPORTED_TASK ",\"payload\":null,\"payload_hash\":"
                 "\"9cc3912a042827e45983ed53df3c759f4574added1d07c6d0c7fe0bc3ecf9c42\",\"result_"
                 "hash\":null}");
    task.payload = NULL;
    assert_task (&task, &smaller,
                 "{" EXPORTED_TASK ",\"payload\":null,\"payload_hash\":null,"
                 "\"result_hash\":null}");
}

static void test_events (void **state)
{
    (void) state;
    event_view_t event = {.kind = TMQ_EVENT_SUBMITTED,
                          .ns = "default",
                          .seq = 5,
                          .at = 1795295100000,
                          .queue = "hash",
                          .owner = "ops",
                          .status = TMQ_STATUS_QUEUED,
                          .actor = "uid:0"};
    assert_true (id_parse (&event.task_id, "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"));
    json_writer_t writer = fresh_writer ();
    json_write_event (&writer, &event);
    assert_written ("{\"kind\":\"submitted\",\"namespace\":\"default\",\"seq\":5,"
                    "\"at\":\"2026-11-21T21:05:00.000Z\","
                    "\"task_id\":\"017f22e2-79b0-7cc3-98c4-dc0c0c07398f\",\"queue\":\"hash\","
                    "\"session\":null,\"owner\":\"ops\",\"status\":\"queued\","
                    "\"previous\":null,\"attempt\":0,"
                    "\"worker\":null,\"actor\":\"uid:0\",\"message\":null,\"progress\":null,"
                    "\"labels\":{}}");
    event.kind = TMQ_EVENT_NONE;
    event.seq = 0;
    event.owner = NULL;
    event.status = TMQ_STATUS_WORKING;
    event.progress = (progress_view_t){true, 1, 2, NULL, "m"};
    writer = fresh_writer ();
    json_write_event (&writer, &event);
    assert_written ("{\"kind\":\"progress\",\"namespace\":\"default\",\"seq\":null,"
                    "\"at\":\"2026-11-21T21:05:00.000Z\","
                    "\"task_id\":\"017f22e2-79b0-7cc3-98c4-dc0c0c07398f\",\"queue\":\"hash\","
                    "\"session\":null,\"owner\":null,\"status\":\"working\","
                    "\"previous\":null,\"attempt\":0,"
                    "\"worker\":null,\"actor\":\"uid:0\",\"message\":null,"
                    "\"progress\":{\"done\":1,\"total\":2,\"unit\":null,\"message\":\"m\"},"
                    "\"labels\":{}}");
    writer = fresh_writer ();
    json_write_gap (&writer, &(gap_view_t){3, 7, true, "9-7"});
    assert_written ("{\"kind\":\"gap\",\"from\":3,\"to\":7,\"other_history\":true,"
                    "\"cursor\":\"9-7\"}");
}

/* From the wire. */

static void test_views_from_the_wire (void **state)
{
    (void) state;
    arena_t *arena = arena_new (4096);
    tmq_id_t id;
    assert_true (id_parse (&id, "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"));
    Taskmq__Progress progress = TASKMQ__PROGRESS__INIT;
    progress.done = 4;
    Taskmq__Event event = TASKMQ__EVENT__INIT;
    event.task_id = (ProtobufCBinaryData){sizeof id.bytes, id.bytes};
    event.seq = 8;
    event.progress = &progress;
    event_view_t event_view;
    assert_true (event_view_from_wire (&event_view, &event, "ns", arena));
    assert_string_equal (event_view.ns, "ns");
    assert_int_equal (event_view.seq, 8);
    assert_true (event_view.progress.given);
    assert_int_equal (event_view.progress.done, 4);
    event.task_id.len = 0;
    assert_false (event_view_from_wire (&event_view, &event, "ns", arena));
    Taskmq__Label label = TASKMQ__LABEL__INIT;
    Taskmq__Label *labels[] = {&label};
    label.key = (char *) (uintptr_t) "k";
    label.value = (char *) (uintptr_t) "v";
    event.n_labels = 1;
    event.labels = labels;
    event.task_id.len = sizeof id.bytes;
    assert_true (event_view_from_wire (&event_view, &event, "ns", arena));
    assert_string_equal (event_view.labels[0].value, "v");
    arena_free (arena);

    arena_t *tiny = arena_new (1);
    assert_false (event_view_from_wire (&event_view, &event, "ns", tiny));
    arena_free (tiny);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_valid_json_is_taken),
        cmocka_unit_test (test_invalid_json_is_refused),
        cmocka_unit_test (test_every_prefix_of_a_document_is_refused),
        cmocka_unit_test (test_depth_is_limited),
        cmocka_unit_test (test_objects_are_told_from_other_values),
        cmocka_unit_test (test_random_bytes_do_no_harm),
        cmocka_unit_test (test_commas_stand_between_values_only),
        cmocka_unit_test (test_lines_begin_without_a_comma),
        cmocka_unit_test (test_strings_are_escaped_and_repaired),
        cmocka_unit_test (test_raw_json_comes_out_on_one_line),
        cmocka_unit_test (test_bodies_are_shown_by_their_type),
        cmocka_unit_test (test_times_are_null_when_absent),
        cmocka_unit_test (test_absent_values_are_null),
        cmocka_unit_test (test_a_snapshot_is_a_task_with_a_kind),
        cmocka_unit_test (test_every_key_of_a_finished_task),
        cmocka_unit_test (test_results_by_outcome),
        cmocka_unit_test (test_export_adds_position_and_payload),
        cmocka_unit_test (test_events),
        cmocka_unit_test (test_views_from_the_wire),
    };
    return cmocka_run_group_tests (tests, NULL, teardown);
}
