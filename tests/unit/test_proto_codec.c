/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the codec makes of good and of hostile bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec.h"
#include "ids.h"
#include "validate.h"
#include "wire.h"

/* Generated messages have members without const. */
static char *text_of (const char *text)
{
    return (char *) (uintptr_t) text;
}

/* Decoding. */

static arena_t *arena;

static int setup (void **state)
{
    (void) state;
    arena = arena_new (CODEC_CLIENT_ARENA_BYTES);
    return arena != NULL ? 0 : -1;
}

static int teardown (void **state)
{
    (void) state;
    arena_free (arena);
    return 0;
}

/* A message with many kinds of member in it. */
static void append_sample (bytes_t *out)
{
    static const uint8_t sixteen[16] = {0x01, 0x7f, 0x22, 0xe2, 0x79, 0xb0, 0x7c, 0xc3,
                                        0x98, 0xc4, 0xdc, 0x0c, 0x0c, 0x07, 0x39, 0x8f};
    bytes_append_blob (out, 1, sixteen, 16);
    bytes_mark_t submit = bytes_open (out, 2);
    bytes_append_uint (out, 1, 7);
    bytes_append_uint (out, 2, 5000);
    bytes_append_blob (out, 3, sixteen, 16);
    bytes_mark_t op = bytes_open (out, 20);
    for (int i = 0; i < 2; i++) {
        bytes_mark_t task = bytes_open (out, 1);
        bytes_append_blob (out, 1, sixteen, 16);
        bytes_append_string (out, 2, "hash");
        bytes_append_uint (out, 3, 3);
        bytes_mark_t label = bytes_open (out, 15);
        bytes_append_string (out, 1, "k");
        bytes_append_string (out, 2, "v");
        bytes_close (out, label);
        bytes_close (out, task);
    }
    bytes_close (out, op);
    bytes_close (out, submit);
    bytes_mark_t list = bytes_open (out, 2);
    bytes_append_uint (out, 1, 8);
    op = bytes_open (out, 23);
    bytes_mark_t filter = bytes_open (out, 1);
    bytes_append_string (out, 1, "hash");
    bytes_append_blob (out, 2, "\1\2\3", 3); /* packed statuses */
    bytes_close (out, filter);
    bytes_close (out, op);
    bytes_close (out, list);
}

static const Taskmq__ClientMessage *decode (codec_report_t *report, const void *bytes,
                                            size_t length)
{
    arena_reset (arena);
    /* A copy of exactly that size, so that a read beyond it is seen by the sanitizer. */
    uint8_t *exact = malloc (length > 0 ? length : 1);
    assert_non_null (exact);
    memcpy (exact, bytes, length);
    const Taskmq__ClientMessage *message = codec_client_message (report, arena, exact, length);
    free (exact);
    return message;
}

static void test_a_message_is_decoded (void **state)
{
    (void) state;
    bytes_t bytes = BYTES_INIT;
    append_sample (&bytes);
    codec_report_t report;
    const Taskmq__ClientMessage *message = decode (&report, bytes.data, bytes.length);
    assert_non_null (message);
    assert_int_equal (report.code, TMQ_OK);
    assert_null (report.flaws);
    assert_int_equal (message->token.len, 16);
    assert_int_equal (message->n_requests, 2);
    assert_int_equal (message->requests[0]->submit->n_tasks, 2);
    assert_string_equal (message->requests[0]->submit->tasks[1]->labels[0]->value, "v");
    assert_int_equal (message->requests[1]->list->filter->n_statuses, 3);
    assert_int_equal (message->requests[1]->list->filter->statuses[2], 3);
    bytes_free (&bytes);
}

/* Whatever protobuf-c makes of a sound message, the codec makes of it too. */
static void assert_same_as_protobuf_c (const Taskmq__ClientMessage *message, const void *data,
                                       size_t length)
{
    Taskmq__ClientMessage *other = taskmq__client_message__unpack (NULL, length, data);
    assert_non_null (other);
    size_t size = taskmq__client_message__get_packed_size (other);
    assert_int_equal (taskmq__client_message__get_packed_size (message), size);
    uint8_t *packed = malloc (2 * size + 1);
    assert_non_null (packed);
    taskmq__client_message__pack (message, packed);
    taskmq__client_message__pack (other, packed + size);
    assert_memory_equal (packed, packed + size, size);
    free (packed);
    taskmq__client_message__free_unpacked (other, NULL);
}

static void test_the_codec_agrees_with_protobuf_c (void **state)
{
    (void) state;
    bytes_t bytes = BYTES_INIT;
    append_sample (&bytes);
    codec_report_t report;
    size_t compared = 0;
    for (size_t i = 0; i < bytes.length * 8; i++) {
        bytes.data[i / 8] ^= (uint8_t) (1 << i % 8);
        const Taskmq__ClientMessage *message = decode (&report, bytes.data, bytes.length);
        Taskmq__ClientMessage *other =
            taskmq__client_message__unpack (NULL, bytes.length, bytes.data);
        assert_true (message == NULL || other != NULL || report.flaws != NULL);
        /* Unknown members are not kept. */
        bool whole = message != NULL && other != NULL &&
                     taskmq__client_message__get_packed_size (message) ==
                         taskmq__client_message__get_packed_size (other);
        if (whole) {
            assert_same_as_protobuf_c (message, bytes.data, bytes.length);
            compared++;
        }
        if (other != NULL)
            taskmq__client_message__free_unpacked (other, NULL);
        bytes.data[i / 8] ^= (uint8_t) (1 << i % 8);
    }
    print_message ("%zu of %zu\n", compared, bytes.length * 8);
    assert_true (compared > bytes.length);
    bytes_free (&bytes);
}

static void test_an_empty_envelope_is_an_empty_message (void **state)
{
    (void) state;
    codec_report_t report;
    const Taskmq__ClientMessage *message = decode (&report, "", 0);
    assert_non_null (message);
    assert_int_equal (message->n_requests, 0);
    assert_non_null (codec_client_message (&report, arena, NULL, 0));
}

static void test_a_message_cut_anywhere_does_no_harm (void **state)
{
    (void) state;
    bytes_t bytes = BYTES_INIT;
    append_sample (&bytes);
    size_t refused = 0;
    for (size_t length = 0; length < bytes.length; length++) {
        codec_report_t report;
        const Taskmq__ClientMessage *message = decode (&report, bytes.data, length);
        assert_true ((message != NULL) == (report.code == TMQ_OK));
        assert_true ((message != NULL) == (report.text == NULL));
        refused += message == NULL ? 1 : 0;
    }
    /* Only between members of the envelope a cut leaves a message. */
    assert_int_equal (refused, bytes.length - 3);
    bytes_free (&bytes);
}

static void test_flipped_bits_do_no_harm (void **state)
{
    (void) state;
    bytes_t bytes = BYTES_INIT;
    append_sample (&bytes);
    for (size_t i = 0; i < bytes.length * 8; i++) {
        codec_report_t report;
        bytes.data[i / 8] ^= (uint8_t) (1 << i % 8);
        const Taskmq__ClientMessage *message = decode (&report, bytes.data, bytes.length);
        assert_true ((message != NULL) == (report.code == TMQ_OK));
        bytes.data[i / 8] ^= (uint8_t) (1 << i % 8);
    }
    bytes_free (&bytes);
}

static void test_garbage_does_no_harm (void **state)
{
    (void) state;
    unsigned seed = 20261121;
    print_message ("seed %u\n", seed);
    size_t taken = 0;
    for (int round = 0; round < 100000; round++) {
        uint8_t garbage[64];
        size_t length = (size_t) rand_r (&seed) % sizeof garbage;
        for (size_t i = 0; i < length; i++)
            garbage[i] = (uint8_t) (rand_r (&seed) % 4 == 0 ? rand_r (&seed) : rand_r (&seed) % 32);
        codec_report_t report;
        const Taskmq__ClientMessage *message = decode (&report, garbage, length);
        assert_true ((message != NULL) == (report.code == TMQ_OK));
        taken += message != NULL ? 1 : 0;
    }
    assert_true (taken > 0);
}

static void assert_refused (const bytes_t *bytes, tmq_code_t code, const char *reason)
{
    codec_report_t report;
    assert_null (decode (&report, bytes->data, bytes->length));
    assert_int_equal (report.code, code);
    assert_null (report.flaws);
    if (strstr (report.text, reason) == NULL)
        fail_msg ("said: %s", report.text);
}

static void test_groups_and_bad_tags_are_refused (void **state)
{
    (void) state;
    const char *bad[] = {"\x0b\x0c",
                         "\x0e",
                         "\x0f",
                         "\x07",
                         "\x01",
                         "\x05\x01",
                         "\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",
                         "\xff\xff\xff\xff\xff\x01",
                         "\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        bytes_t bytes = BYTES_INIT;
        bytes_append_text (&bytes, bad[i]);
        assert_refused (&bytes, TMQ_INVALID, "not a protobuf message");
        bytes_free (&bytes);
    }
}

static void test_wrong_types_are_refused (void **state)
{
    (void) state;
    bytes_t bytes = BYTES_INIT;
    bytes_append_varint (&bytes, 1 << 3 | 0); /* token as a number */
    bytes_append_varint (&bytes, 5);
    assert_refused (&bytes, TMQ_INVALID, "wrong type");
    bytes_free (&bytes);
}

/* A push with progress, in which one member is written by another hand. */
static void append_push (bytes_t *out, uint64_t id, bool as_double)
{
    bytes_mark_t request = bytes_open (out, 2);
    bytes_append_uint (out, 1, id);
    bytes_append_blob (out, 3, "sixteen bytes...", 16);
    bytes_mark_t push = bytes_open (out, 54);
    bytes_mark_t progress = bytes_open (out, 3);
    bytes_append_double (out, 1, 0.1);
    if (as_double)
        bytes_append_double (out, 2, -1.5e300);
    else
        bytes_append_uint (out, 2, 10); /* as it was once */
    bytes_close (out, progress);
    bytes_close (out, push);
    bytes_close (out, request);
}

static void test_doubles_are_decoded (void **state)
{
    (void) state;
    bytes_t bytes = BYTES_INIT;
    append_push (&bytes, 1, true);
    codec_report_t report;
    const Taskmq__ClientMessage *message = decode (&report, bytes.data, bytes.length);
    assert_non_null (message);
    assert_null (report.flaws);
    const Taskmq__Progress *progress = message->requests[0]->push->progress;
    assert_true (progress->done == 0.1 && progress->total == -1.5e300);
    assert_same_as_protobuf_c (message, bytes.data, bytes.length);
    bytes_free (&bytes);
}

/* … and the other requests are none the worse for it. */
static void test_a_member_of_another_type_spoils_its_request_alone (void **state)
{
    (void) state;
    bytes_t bytes = BYTES_INIT;
    append_push (&bytes, 1, true);
    append_push (&bytes, 2, false);
    append_push (&bytes, 3, true);
    codec_report_t report;
    const Taskmq__ClientMessage *message = decode (&report, bytes.data, bytes.length);
    assert_non_null (message);
    assert_int_equal (report.code, TMQ_OK);
    assert_int_equal (message->n_requests, 3);
    assert_int_equal (report.flaws->request, 1);
    assert_string_equal (report.flaws->field, "total");
    assert_null (report.flaws->next);
    verdicts_t verdicts;
    validate_client_message (&verdicts, arena, message, report.flaws, 0);
    assert_int_equal (verdicts.message.code, TMQ_OK);
    assert_int_equal (verdicts.requests[1].verdict.code, TMQ_INVALID);
    assert_string_equal (verdicts.requests[1].verdict.text, "total: is of another type");
    bytes_free (&bytes);
}

static void test_unknown_members_are_skipped (void **state)
{
    (void) state;
    bytes_t bytes = BYTES_INIT;
    append_sample (&bytes);
    bytes_append_string (&bytes, 1000, "from the future \xff");
    bytes_append_uint (&bytes, 1001, 5);
    codec_report_t report;
    const Taskmq__ClientMessage *message = decode (&report, bytes.data, bytes.length);
    assert_non_null (message);
    assert_null (report.flaws);
    assert_int_equal (message->n_requests, 2);
    bytes_free (&bytes);
}

static void test_repeated_singular_members_are_refused (void **state)
{
    (void) state;
    bytes_t bytes = BYTES_INIT;
    bytes_mark_t request = bytes_open (&bytes, 2);
    bytes_append_element (&bytes, 12, NULL, 0); /* heartbeat */
    bytes_append_element (&bytes, 12, NULL, 0);
    bytes_close (&bytes, request);
    assert_refused (&bytes, TMQ_INVALID, "stands twice");
    bytes_clear (&bytes);
    request = bytes_open (&bytes, 2);
    bytes_append_element (&bytes, 12, NULL, 0);
    bytes_append_element (&bytes, 30, NULL, 0); /* and stats */
    bytes_close (&bytes, request);
    assert_refused (&bytes, TMQ_INVALID, "stands twice");
    bytes_clear (&bytes);
    request = bytes_open (&bytes, 2);
    bytes_mark_t list = bytes_open (&bytes, 23);
    bytes_append_element (&bytes, 1, NULL, 0); /* filter */
    bytes_append_element (&bytes, 1, NULL, 0);
    bytes_close (&bytes, list);
    bytes_close (&bytes, request);
    assert_refused (&bytes, TMQ_INVALID, "stands twice");
    bytes_clear (&bytes);
    bytes_append_string (&bytes, 1, "a token");
    bytes_append_string (&bytes, 1, "another one");
    assert_refused (&bytes, TMQ_INVALID, "stands twice");
    bytes_clear (&bytes);
    request = bytes_open (&bytes, 2);
    bytes_append_uint (&bytes, 1, 7); /* id */
    bytes_append_uint (&bytes, 1, 7);
    bytes_close (&bytes, request);
    assert_refused (&bytes, TMQ_INVALID, "stands twice");
    bytes_free (&bytes);
}

/* The decoder knows the kinds of members that the schema has, and no others. */
static void check_members (const ProtobufCMessageDescriptor *type, unsigned depth)
{
    assert_true (depth < CODEC_DEPTH_MAX);
    assert_non_null (type->message_init);
    assert_true (type->n_fields <= 128); /* a bit for each says whether it was seen */
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        switch (field->type) {
        case PROTOBUF_C_TYPE_UINT32:
        case PROTOBUF_C_TYPE_UINT64:
        case PROTOBUF_C_TYPE_SINT32:
        case PROTOBUF_C_TYPE_SINT64:
        case PROTOBUF_C_TYPE_BOOL:
        case PROTOBUF_C_TYPE_DOUBLE:
        case PROTOBUF_C_TYPE_STRING:
        case PROTOBUF_C_TYPE_BYTES: break;
        case PROTOBUF_C_TYPE_MESSAGE: check_members (field->descriptor, depth + 1); break;
        default: fail_msg ("%s.%s has a type that is not decoded", type->name, field->name);
        }
    }
}

static void test_our_messages_keep_to_the_codecs_limits (void **state)
{
    (void) state;
    check_members (&taskmq__client_message__descriptor, 0);
    check_members (&taskmq__broker_message__descriptor, 0);
    check_members (&taskmq__event_list__descriptor, 0);
}

static void test_the_envelope_is_limited (void **state)
{
    (void) state;
    bytes_t bytes = BYTES_INIT;
    uint8_t *room = bytes_reserve (&bytes, TMQ_ENVELOPE_BYTES_MAX + 1);
    assert_non_null (room);
    memset (room, 0, TMQ_ENVELOPE_BYTES_MAX + 1);
    /* An unknown member that fills the envelope exactly. */
    bytes_append_varint (&bytes, 1000 << 3 | 2);
    bytes_append_varint (&bytes, TMQ_ENVELOPE_BYTES_MAX - 5);
    assert_int_equal (bytes.length, 5);
    bytes.length = TMQ_ENVELOPE_BYTES_MAX;
    codec_report_t report;
    assert_non_null (decode (&report, bytes.data, bytes.length));
    bytes.length++;
    assert_refused (&bytes, TMQ_TOO_LARGE, "65536");
    bytes_free (&bytes);
}

/* 32,768 empty tasks in 64 KiB would take 9 MiB. */
static void test_memory_for_an_envelope_is_limited (void **state)
{
    (void) state;
    bytes_t bytes = BYTES_INIT;
    bytes_mark_t request = bytes_open (&bytes, 2);
    bytes_mark_t submit = bytes_open (&bytes, 20);
    while (bytes.length < TMQ_ENVELOPE_BYTES_MAX - 10)
        bytes_append_element (&bytes, 1, NULL, 0);
    bytes_close (&bytes, submit);
    bytes_close (&bytes, request);
    assert_true (bytes.length <= TMQ_ENVELOPE_BYTES_MAX);
    assert_refused (&bytes, TMQ_TOO_LARGE, "too much memory");
    /* The same arena takes the next message. */
    bytes_clear (&bytes);
    append_sample (&bytes);
    codec_report_t report;
    assert_non_null (decode (&report, bytes.data, bytes.length));
    bytes_free (&bytes);
}

/* Real messages that fill an envelope stay far below the budget. */
static void test_full_envelopes_fit_the_budget (void **state)
{
    (void) state;
    static const uint8_t sixteen[16] = {1};
    codec_report_t report;
    bytes_t bytes = BYTES_INIT;
    bytes_mark_t request = bytes_open (&bytes, 2);
    bytes_mark_t submit = bytes_open (&bytes, 20);
    for (int i = 0; i < TMQ_SUBMIT_ITEMS_MAX; i++) {
        bytes_mark_t task = bytes_open (&bytes, 1);
        bytes_append_blob (&bytes, 1, sixteen, 16);
        bytes_append_string (&bytes, 2, "queue");
        for (int k = 0; k < TMQ_LABELS_MAX; k++) {
            char key[] = {(char) ('a' + k), '\0'};
            bytes_mark_t label = bytes_open (&bytes, 15);
            bytes_append_string (&bytes, 1, key);
            bytes_append_string (&bytes, 2, "value");
            bytes_close (&bytes, label);
        }
        bytes_close (&bytes, task);
    }
    bytes_close (&bytes, submit);
    bytes_close (&bytes, request);
    assert_true (bytes.length <= TMQ_ENVELOPE_BYTES_MAX);
    assert_non_null (decode (&report, bytes.data, bytes.length));
    print_message ("256 tasks with 16 labels: %zu bytes on the wire, %zu in memory\n", bytes.length,
                   arena_used (arena));
    assert_true (arena_used (arena) < CODEC_CLIENT_ARENA_BYTES * 3 / 4);

    bytes_clear (&bytes);
    for (int i = 0; i < TMQ_REQUESTS_MAX; i++) {
        request = bytes_open (&bytes, 2);
        bytes_append_uint (&bytes, 1, 1000 + (uint64_t) i);
        bytes_append_blob (&bytes, 3, sixteen, 16);
        bytes_mark_t get = bytes_open (&bytes, 21);
        bytes_append_blob (&bytes, 1, sixteen, 16);
        bytes_close (&bytes, get);
        bytes_close (&bytes, request);
    }
    assert_true (bytes.length <= TMQ_ENVELOPE_BYTES_MAX);
    assert_non_null (decode (&report, bytes.data, bytes.length));
    print_message ("1,024 gets: %zu bytes on the wire, %zu in memory\n", bytes.length,
                   arena_used (arena));
    assert_true (arena_used (arena) < CODEC_CLIENT_ARENA_BYTES * 3 / 4);
    bytes_free (&bytes);
}

/* Flaws. */

static void append_list_of_queue (bytes_t *out, const char *text, size_t length)
{
    bytes_mark_t request = bytes_open (out, 2);
    bytes_append_uint (out, 1, 1);
    bytes_mark_t list = bytes_open (out, 23);
    bytes_mark_t filter = bytes_open (out, 1);
    bytes_append_element (out, 1, text, length);
    bytes_close (out, filter);
    bytes_close (out, list);
    bytes_close (out, request);
}

static void test_flaws_name_request_and_member (void **state)
{
    (void) state;
    bytes_t bytes = BYTES_INIT;
    append_list_of_queue (&bytes, "good", 4);
    append_list_of_queue (&bytes, "a\0b", 3);
    append_list_of_queue (&bytes, "good", 4);
    append_list_of_queue (&bytes, "\xff", 1);
    codec_report_t report;
    assert_non_null (decode (&report, bytes.data, bytes.length));
    assert_int_equal (report.code, TMQ_OK);
    const codec_flaw_t *flaw = report.flaws;
    assert_non_null (flaw);
    assert_int_equal (flaw->request, 1);
    assert_string_equal (flaw->field, "queues");
    flaw = flaw->next;
    assert_non_null (flaw);
    assert_int_equal (flaw->request, 3);
    assert_null (flaw->next);
    bytes_free (&bytes);
}

static void test_flaws_name_the_item_of_a_submit (void **state)
{
    (void) state;
    bytes_t bytes = BYTES_INIT;
    bytes_mark_t request = bytes_open (&bytes, 2);
    bytes_mark_t submit = bytes_open (&bytes, 20);
    for (int i = 0; i < 4; i++) {
        bytes_mark_t task = bytes_open (&bytes, 1);
        bytes_append_element (&bytes, 4, i == 2 ? "\xc3" : "m", 1);
        bytes_mark_t label = bytes_open (&bytes, 15);
        bytes_append_element (&bytes, 2, i == 3 ? "\0" : "v", 1);
        bytes_close (&bytes, label);
        bytes_close (&bytes, task);
    }
    bytes_close (&bytes, submit);
    bytes_close (&bytes, request);
    codec_report_t report;
    assert_non_null (decode (&report, bytes.data, bytes.length));
    assert_int_equal (report.flaws->item, 2);
    assert_string_equal (report.flaws->field, "method");
    assert_int_equal (report.flaws->next->item, 3);
    assert_string_equal (report.flaws->next->field, "value");
    assert_null (report.flaws->next->next);
    bytes_free (&bytes);
}

static void test_flaws_of_a_broker_are_an_error (void **state)
{
    (void) state;
    bytes_t bytes = BYTES_INIT;
    bytes_mark_t reply = bytes_open (&bytes, 1);
    bytes_append_element (&bytes, 3, "\xff", 1);
    bytes_close (&bytes, reply);
    codec_report_t report;
    arena_reset (arena);
    assert_null (codec_broker_message (&report, arena, bytes.data, bytes.length));
    assert_int_equal (report.code, TMQ_INVALID);
    assert_non_null (report.text);
    bytes_free (&bytes);
}

/* Digest. */

static void digest (char text[65], const char *queue, const char *method, const char *session,
                    const char *type, const char *payload)
{
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    spec.queue = text_of (queue);
    spec.method = text_of (method);
    spec.session = text_of (session);
    spec.content_type = text_of (type);
    uint8_t hash[CODEC_DIGEST_BYTES];
    codec_submit_digest (hash, &spec, payload, strlen (payload));
    hex_encode (text, hash, sizeof hash);
}

static void test_digest_is_the_documented_one (void **state)
{
    (void) state;
    char text[65];
    /* printf '\0\0\0\4hash\0\0\0\1m\0\0\0\0\0\0\0\12text/plain\0\0\0\3abc' | b2sum -l 256
     * (the lengths in printf's octal: 4, 1, 0, 10, 3) */
    digest (text, "hash", "m", "", "text/plain", "abc");
    assert_string_equal (text, "07e7dc02fce618eca91f1a40b53eaeddfde6594eabb8d7a9fe44ccfd145ba03a");
    digest (text, "hash", "", "", "", "");
    assert_string_equal (text, "29a977c46401c91da01d0dc8c40ffdf45e97de2e80528f02e8bdce023ed61b9d");
}

static void test_digest_tells_members_apart (void **state)
{
    (void) state;
    char one[65], two[65];
    digest (one, "a", "bc", "", "", "");
    digest (two, "ab", "c", "", "", "");
    assert_string_not_equal (one, two);
    digest (two, "a", "", "bc", "", "");
    assert_string_not_equal (one, two);
    digest (two, "a", "bc", "", "", "x");
    assert_string_not_equal (one, two);
    digest (two, "a", "bc", "", "", "");
    assert_string_equal (one, two);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_a_message_is_decoded),
        cmocka_unit_test (test_the_codec_agrees_with_protobuf_c),
        cmocka_unit_test (test_an_empty_envelope_is_an_empty_message),
        cmocka_unit_test (test_a_message_cut_anywhere_does_no_harm),
        cmocka_unit_test (test_flipped_bits_do_no_harm),
        cmocka_unit_test (test_garbage_does_no_harm),
        cmocka_unit_test (test_groups_and_bad_tags_are_refused),
        cmocka_unit_test (test_wrong_types_are_refused),
        cmocka_unit_test (test_doubles_are_decoded),
        cmocka_unit_test (test_a_member_of_another_type_spoils_its_request_alone),
        cmocka_unit_test (test_unknown_members_are_skipped),
        cmocka_unit_test (test_repeated_singular_members_are_refused),
        cmocka_unit_test (test_our_messages_keep_to_the_codecs_limits),
        cmocka_unit_test (test_the_envelope_is_limited),
        cmocka_unit_test (test_memory_for_an_envelope_is_limited),
        cmocka_unit_test (test_full_envelopes_fit_the_budget),
        cmocka_unit_test (test_flaws_name_request_and_member),
        cmocka_unit_test (test_flaws_name_the_item_of_a_submit),
        cmocka_unit_test (test_flaws_of_a_broker_are_an_error),
        cmocka_unit_test (test_digest_is_the_documented_one),
        cmocka_unit_test (test_digest_tells_members_apart),
    };
    return cmocka_run_group_tests (tests, setup, teardown);
}
