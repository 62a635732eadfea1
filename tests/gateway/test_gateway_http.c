/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the gateway reads from strangers: heads, bodies, targets; and what it writes. */
#include "support/cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/codec.h"
#include "http/range.h"
#include "http/response.h"
#include "http/sse.h"
#include "http/target.h"

static const codec_limits_t limits = {16384, 100, 8192};
enum { BODY_MAX = 1024 * 1024 };

/* What has come of bytes: how many whole requests, and with which status it ended. */
typedef struct outcome {
    int whole;
    int status; /* 0: nothing was refused */
    const char *reason;
    size_t body_bytes;
    char target[64]; /* of the first request */
    char body[64];   /* … and its body */
} outcome_t;

static void note_body (outcome_t *out, const uint8_t *body, size_t length)
{
    if (out->whole == 0 && out->body_bytes + length < sizeof out->body)
        memcpy (out->body + out->body_bytes, body, length);
    out->body_bytes += length;
}

/* step: so many bytes at a time. */
static outcome_t read_all (const void *bytes, size_t length, size_t step)
{
    outcome_t out = {0};
    codec_t *codec = codec_new (&limits);
    assert_non_null (codec);
    for (size_t at = 0; at < length && out.status == 0;) {
        const uint8_t *body = NULL;
        size_t used = 0;
        size_t body_length = 0;
        const size_t piece = length - at < step ? length - at : step;
        switch (codec_feed (codec, (const char *) bytes + at, piece, &used, &body, &body_length)) {
        case CODEC_MORE: assert_int_equal (used, piece); break;
        case CODEC_HEAD:
            snprintf (out.target, sizeof out.target, "%s", codec_request (codec)->target);
            codec_accept (codec, BODY_MAX, "the body is too long");
            break;
        case CODEC_BODY: note_body (&out, body, body_length); break;
        case CODEC_END:
            out.whole++;
            codec_next (codec);
            break;
        case CODEC_REFUSED: out.status = codec_refusal (codec, &out.reason); break;
        }
        at += used;
    }
    if (out.status == 0) { /* what needs no more bytes */
        size_t used;
        const uint8_t *body;
        size_t body_length;
        const codec_event_t event = codec_feed (codec, "", 0, &used, &body, &body_length);
        out.whole += event == CODEC_END;
        if (event == CODEC_REFUSED)
            out.status = codec_refusal (codec, &out.reason);
    }
    codec_free (codec);
    return out;
}

#define HOST "Host: 127.0.0.1\r\n"
#define POST "POST /x HTTP/1.1\r\n" HOST
#define CHUNKED POST "Transfer-Encoding: chunked\r\n\r\n"
#define CASE(name, text, whole, status)                                                            \
    {                                                                                              \
        name, text, sizeof (text) - 1, whole, status                                               \
    }

static const struct {
    const char *name;
    const char *text;
    size_t length;
    int whole;
    int status;
} cases[] = {
    CASE ("plain", "GET /x HTTP/1.1\r\n" HOST "\r\n", 1, 0),
    CASE ("no Host", "GET /x HTTP/1.1\r\n\r\n", 0, 400),
    CASE ("two Hosts", "GET /x HTTP/1.1\r\n" HOST HOST "\r\n", 0, 400),
    CASE ("1.0 without Host", "GET /x HTTP/1.0\r\n\r\n", 1, 0),
    CASE ("1.0 with two Hosts", "GET /x HTTP/1.0\r\n" HOST HOST "\r\n", 0, 400),
    CASE ("2.0", "GET /x HTTP/2.0\r\n" HOST "\r\n", 0, 505),
    CASE ("1.9", "GET /x HTTP/1.9\r\n" HOST "\r\n", 0, 505),
    CASE ("0.9", "GET /x\r\n", 0, 400),
    CASE ("TLS", "\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", 0, 400),
    CASE ("preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 0, 505),
    CASE ("length and coding",
          POST
          "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /y HTTP/1.1\r\n" HOST
          "\r\n",
          0, 400),
    CASE ("gzip, chunked", POST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 0, 400),
    CASE ("xchunked and length",
          POST "Content-Length: 5\r\nTransfer-Encoding: xchunked\r\n\r\nabcde", 0, 400),
    CASE ("xchunked", POST "Transfer-Encoding: xchunked\r\n\r\nabcde", 0, 400),
    CASE ("two codings",
          POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n", 0,
          400),
    CASE ("coding in 1.0", "POST /x HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 0,
          400),
    CASE ("two lengths", POST "Content-Length: 3\r\nContent-Length: 5\r\n\r\nabcde", 0, 400),
    CASE ("two equal lengths", POST "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 0, 400),
    CASE ("length +3", POST "Content-Length: +3\r\n\r\nabc", 0, 400),
    CASE ("length -1", POST "Content-Length: -1\r\n\r\nabc", 0, 400),
    CASE ("length 0x3", POST "Content-Length: 0x3\r\n\r\nabc", 0, 400),
    CASE ("length 3, 3", POST "Content-Length: 3, 3\r\n\r\nabc", 0, 400),
    CASE ("length 3 3", POST "Content-Length: 3 3\r\n\r\nabc", 0, 400),
    CASE ("empty length", POST "Content-Length: \r\n\r\nabc", 0, 400),
    CASE ("length beyond 64 bits", POST "Content-Length: 99999999999999999999999\r\n\r\nabc", 0,
          400),
    CASE ("length beyond the limit", POST "Content-Length: 1048577\r\n\r\nabc", 0, 413),
    CASE ("length", POST "Content-Length: 3\r\n\r\nabc", 1, 0),
    CASE ("length 0", POST "Content-Length: 0\r\n\r\n", 1, 0),
    CASE ("neither", POST "\r\n", 1, 0),
    CASE ("a GET with a body", "GET /x HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc", 0, 400),
    CASE ("chunks", CHUNKED "3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n", 1, 0),
    CASE ("chunk 0x3", CHUNKED "0x3\r\nabc\r\n0\r\n\r\n", 0, 400),
    CASE ("chunk -1", CHUNKED "-1\r\nabc\r\n0\r\n\r\n", 0, 400),
    CASE ("chunk without length", CHUNKED "\r\nabc\r\n0\r\n\r\n", 0, 400),
    CASE ("chunk beyond 64 bits", CHUNKED "ffffffffffffffffff\r\nabc\r\n0\r\n\r\n", 0, 400),
    CASE ("chunk beyond the limit", CHUNKED "100001\r\nabc\r\n0\r\n\r\n", 0, 413),
    CASE ("chunk that ends elsewhere", CHUNKED "3\r\nabcXX\r\n0\r\n\r\n", 0, 400),
    CASE ("chunk extension", CHUNKED "3;a=b\r\nabc\r\n0\r\n\r\n", 0, 400),
    CASE ("chunk extension with a LF", CHUNKED "3;\nabc\r\n0\r\n\r\n", 0, 400),
    CASE ("chunk length with a LF", CHUNKED "3\nabc\r\n0\r\n\r\n", 0, 400),
    CASE ("trailers", CHUNKED "0\r\nContent-Length: 9\r\n\r\n", 0, 400),
    CASE ("space before the colon", "GET /x HTTP/1.1\r\nHost : a\r\n" HOST "\r\n", 0, 400),
    CASE ("folded line", "GET /x HTTP/1.1\r\n" HOST "X: a\r\n b\r\n\r\n", 0, 400),
    CASE ("folded first line", "GET /x HTTP/1.1\r\n b: c\r\n" HOST "\r\n", 0, 400),
    CASE ("empty name", "GET /x HTTP/1.1\r\n" HOST ": v\r\n\r\n", 0, 400),
    CASE ("no colon", "GET /x HTTP/1.1\r\n" HOST "abc\r\n\r\n", 0, 400),
    CASE ("name that is no token", "GET /x HTTP/1.1\r\n" HOST "X(y)@: v\r\n\r\n", 0, 400),
    CASE ("NUL in a value", "GET /x HTTP/1.1\r\n" HOST "X: a\0b\r\n\r\n", 0, 400),
    CASE ("control character", "GET /x HTTP/1.1\r\n" HOST "X: a\x01\r\n\r\n", 0, 400),
    CASE ("DEL", "GET /x HTTP/1.1\r\n" HOST "X: a\x7f\r\n\r\n", 0, 400),
    CASE ("LF alone", "GET /x HTTP/1.1\nHost: 127.0.0.1\n\n", 0, 400),
    CASE ("CR alone", "GET /x HTTP/1.1\r\n" HOST "X: a\rb\r\n\r\n", 0, 400),
    CASE ("absolute form", "GET http://evil.example/x HTTP/1.1\r\n" HOST "\r\n", 0, 400),
    CASE ("asterisk", "OPTIONS * HTTP/1.1\r\n" HOST "\r\n", 0, 400),
    CASE ("authority", "CONNECT a:1 HTTP/1.1\r\n" HOST "\r\n", 0, 400),
    CASE ("method", "FOO /x HTTP/1.1\r\n" HOST "\r\n", 0, 501),
    CASE ("small method", "get /x HTTP/1.1\r\n" HOST "\r\n", 0, 501),
    CASE ("TRACE", "TRACE /x HTTP/1.1\r\n" HOST "\r\n", 0, 501),
    CASE ("NUL in the target", "GET /x\0y HTTP/1.1\r\n" HOST "\r\n", 0, 400),
    CASE ("UTF-8 in the target", "GET /\xc3\xa4 HTTP/1.1\r\n" HOST "\r\n", 0, 400),
    CASE ("fragment", "GET /x#y HTTP/1.1\r\n" HOST "\r\n", 0, 400),
    CASE ("two spaces", "GET  /x HTTP/1.1\r\n" HOST "\r\n", 0, 400),
    CASE ("space behind", "GET /x HTTP/1.1 \r\n" HOST "\r\n", 0, 400),
    CASE ("tab", "GET\t/x\tHTTP/1.1\r\n" HOST "\r\n", 0, 400),
    CASE ("empty line before", "\r\nGET /x HTTP/1.1\r\n" HOST "\r\n", 0, 400),
    CASE ("expects", POST "Expect: 100-continue\r\nContent-Length: 3\r\n\r\nabc", 1, 0),
    CASE ("expects too much", POST "Expect: the best\r\nContent-Length: 3\r\n\r\nabc", 0, 417),
    CASE ("three in a row",
          "GET /x HTTP/1.1\r\n" HOST "\r\nGET /x HTTP/1.1\r\n" HOST "\r\nHEAD /x HTTP/1.1\r\n" HOST
          "\r\n",
          3, 0),
    CASE ("upgrade", "GET /x HTTP/1.1\r\n" HOST "Connection: upgrade\r\nUpgrade: h2c\r\n\r\n", 1,
          0),
    CASE ("empty value", "GET /x HTTP/1.1\r\n" HOST "X:\r\nY: \r\nZ:\t\r\n\r\n", 1, 0),
};

/* However the bytes are cut, they mean the same. */
static void test_every_case_is_judged (void **state)
{
    static const size_t steps[] = {1, 2, 7, 1024 * 1024};
    (void) state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (size_t j = 0; j < sizeof steps / sizeof *steps; j++) {
            const outcome_t out = read_all (cases[i].text, cases[i].length, steps[j]);
            if (out.whole != cases[i].whole || out.status != cases[i].status)
                fail_msg ("%s: %d whole, status %d (%s)", cases[i].name, out.whole, out.status,
                          out.reason != NULL ? out.reason : "");
        }
    }
}

static void test_long_heads (void **state)
{
    static char text[80000];
    (void) state;
    size_t length = (size_t) sprintf (text, "GET /x HTTP/1.1\r\nX: ");
    memset (text + length, 'a', 65536);
    assert_int_equal (read_all (text, length + 65536, 4096).status, 431);

    length = (size_t) sprintf (text, "GET /x HTTP/1.1\r\nHost: a\r\n");
    for (int i = 0; i < 2000; i++)
        length += (size_t) sprintf (text + length, "X%d: a\r\n", i);
    length += (size_t) sprintf (text + length, "\r\n");
    assert_int_equal (read_all (text, length, 4096).status, 431);

    length = (size_t) sprintf (text, "GET /x HTTP/1.1\r\nHost: a\r\n");
    for (int i = 0; i < 100; i++)
        length += (size_t) sprintf (text + length, "X%d: a\r\n", i);
    length += (size_t) sprintf (text + length, "\r\n");
    assert_int_equal (read_all (text, length, 4096).status, 431);

    text[0] = '\0';
    memset (text + sprintf (text, "GET /"), 'a', 65536);
    assert_int_equal (read_all (text, 65536, 4096).status, 414);
}

static void test_bodies (void **state)
{
    (void) state;
    const char chunks[] = CHUNKED "3\r\nabc\r\n0a\r\n0123456789\r\n0\r\n\r\n";
    for (size_t step = 1; step < 40; step++) {
        const outcome_t out = read_all (chunks, sizeof chunks - 1, step);
        assert_int_equal (out.body_bytes, 13);
        assert_string_equal (out.body, "abc0123456789");
    }
}

static const http_request_t *read_head (codec_t *codec, const char *text)
{
    size_t used;
    const uint8_t *body;
    size_t body_length;
    assert_int_equal (codec_feed (codec, text, strlen (text), &used, &body, &body_length),
                      CODEC_HEAD);
    return codec_request (codec);
}

static void test_fields (void **state)
{
    (void) state;
    codec_t *codec = codec_new (&limits);
    assert_true (codec_is_idle (codec));
    const http_request_t *request =
        read_head (codec, "GET /a?b HTTP/1.1\r\nHOST:a \r\nX-Empty:\r\nAccept: \t q \t\r\n"
                          "Connection: keep-alive , Close\r\nTwice: 1\r\nTwice: 2\r\n\r\n");
    assert_false (codec_is_idle (codec));
    assert_string_equal (request->target, "/a?b");
    assert_string_equal (http_request_field (request, "host"), "a");
    assert_string_equal (http_request_field (request, "x-empty"), "");
    assert_string_equal (http_request_field (request, "accept"), "q");
    assert_null (http_request_field (request, "twice"));
    assert_int_equal (http_request_count (request, "twice"), 2);
    assert_null (http_request_field (request, "none"));
    assert_false (request->keep_alive);
    codec_accept (codec, 0, "there is to be no body");
    codec_next (codec);
    assert_true (codec_is_idle (codec));
    request = read_head (codec, "GET /b HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_true (request->keep_alive && !request->minor_0 && request->fields_count == 1);
    codec_free (codec);
}

/* Targets. */

static void test_targets (void **state)
{
    http_target_t target;
    (void) state;
    assert_null (http_target_parse (&target, "/v1/tasks/a%20b?x=1&y=a+b%26&x=2"));
    assert_int_equal (target.segments_count, 3);
    assert_string_equal (target.segments[2], "a b");
    assert_string_equal (http_target_parameter (&target, "y"), "a b&");
    assert_null (http_target_parameter (&target, "x"));
    assert_int_equal (target.parameters_count, 3);
    http_target_clear (&target);
    assert_null (http_target_parse (&target, "/"));
    assert_int_equal (target.segments_count, 0);
    http_target_clear (&target);
}

static void test_bad_targets_are_refused (void **state)
{
    static const char *const wrong[] = {"//",      "/a//b",     "/a/",      "/./a",
                                        "/a/../b", "/%2e%2e/a", "/a%2fb",   "/a\\b",
                                        "/a%00",   "/a%0ab",    "/a%7f",    "/a%",
                                        "/a%4",    "/a%zz",     "/a%ff",    "/a?b",
                                        "/a?=b",   "/a?b=%",    "/a?b=%00", "/1/2/3/4/5/6/7/8/9",
                                        "",        "?.=8",      "a/b",      "*"};
    http_target_t target;
    (void) state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (http_target_parse (&target, wrong[i]) == NULL)
            fail_msg ("%s was taken", wrong[i]);
}

/* Responses. */

static void test_responses (void **state)
{
    bytes_t out = BYTES_INIT;
    response_t response;
    (void) state;
    response_init (&response, 200);
    response_field (&response, "X", "a\r\nSet-Cookie: b");
    bytes_append_text (&response.body, "hi");
    response_write (&out, &response, (response_frame_t){.close = true});
    assert_string_equal (bytes_text (&out),
                         "HTTP/1.1 200 OK\r\nX: a??Set-Cookie: b\r\nContent-Length: 2\r\n"
                         "Connection: close\r\n\r\nhi");
    bytes_clear (&out);
    response_write (&out, &response, (response_frame_t){.head_only = true});
    assert_string_equal (bytes_text (&out), "HTTP/1.1 200 OK\r\nX: a??Set-Cookie: b\r\n"
                                            "Content-Length: 2\r\n\r\n");
    response.status = 304;
    bytes_clear (&out);
    response_write (&out, &response, (response_frame_t){.close = false});
    assert_string_equal (bytes_text (&out),
                         "HTTP/1.1 304 Not Modified\r\nX: a??Set-Cookie: b\r\n\r\n");
    response.status = 200;
    bytes_clear (&out);
    response_write (&out, &response, (response_frame_t){.stream = true, .chunked = true});
    assert_string_equal (bytes_text (&out), "HTTP/1.1 200 OK\r\nX: a??Set-Cookie: b\r\n"
                                            "Transfer-Encoding: chunked\r\n\r\n");
    bytes_clear (&out);
    response_write (&out, &response, (response_frame_t){.stream = true, .close = true});
    assert_string_equal (bytes_text (&out), "HTTP/1.1 200 OK\r\nX: a??Set-Cookie: b\r\n"
                                            "Connection: close\r\n\r\n");
    response_clear (&response);
    bytes_free (&out);
}

static void assert_framed (const sse_event_t *event, const char *wanted)
{
    bytes_t out = BYTES_INIT;
    sse_write (&out, event);
    assert_string_equal (bytes_text (&out), wanted);
    bytes_free (&out);
}

static void test_server_sent_events (void **state)
{
    bytes_t out = BYTES_INIT;
    (void) state;
    assert_framed (&(sse_event_t){"7-9", "changed", "{}", 2},
                   "id: 7-9\nevent: changed\ndata: {}\n\n");
    assert_framed (&(sse_event_t){.data = "", .data_bytes = 0}, "data: \n\n");
    assert_framed (&(sse_event_t){.id = "1"}, "id: 1\n\n");
    assert_framed (&(sse_event_t){.data = "a\r\nb\nc\rd\n", .data_bytes = 9},
                   "data: a\ndata: b\ndata: c\ndata: d\ndata: \n\n");
    assert_framed (&(sse_event_t){.data = "\r\r\n", .data_bytes = 3}, "data: \ndata: \ndata: \n\n");
    assert_framed (&(sse_event_t){"1\ndata: x", "a\rb", NULL, 0}, "id: 1?data: x\nevent: a?b\n\n");
    sse_write_retry (&out, 1000);
    assert_string_equal (bytes_text (&out), "retry: 1000\n\n");
    bytes_free (&out);
}

/* Range beside a length: what is meant, from where to where. */
static void test_ranges (void **state)
{
    static const struct {
        const char *field;
        uint64_t total;
        range_kind_t kind;
        uint64_t first;
        uint64_t end;
    } ranges[] = {
        {NULL, 10, RANGE_ALL, 0, 10},
        {"bytes=0-", 10, RANGE_PART, 0, 10},
        {"bytes=0-0", 10, RANGE_PART, 0, 1},
        {"Bytes= 3-5 ", 10, RANGE_PART, 3, 6},
        {"bytes=9-", 10, RANGE_PART, 9, 10},
        {"bytes=9-10", 10, RANGE_PART, 9, 10},
        {"bytes=3-99999999999999999999999", 10, RANGE_PART, 3, 10},
        {"bytes=10-", 10, RANGE_OUTSIDE, 0, 10},
        {"bytes=99999999999999999999999-", 10, RANGE_OUTSIDE, 0, 10},
        {"bytes=-3", 10, RANGE_PART, 7, 10},
        {"bytes=-10", 10, RANGE_PART, 0, 10},
        {"bytes=-99", 10, RANGE_PART, 0, 10},
        {"bytes=-0", 10, RANGE_OUTSIDE, 0, 10},
        {"bytes=0-", 0, RANGE_ALL, 0, 0},
        {"bytes=-5", 0, RANGE_ALL, 0, 0},
        {"bytes=5-3", 10, RANGE_ALL, 0, 10},
        {"bytes=0-1,3-4", 10, RANGE_ALL, 0, 10},
        {"bytes=-", 10, RANGE_ALL, 0, 10},
        {"bytes=", 10, RANGE_ALL, 0, 10},
        {"bytes=+1-", 10, RANGE_ALL, 0, 10},
        {"bytes=1-x", 10, RANGE_ALL, 0, 10},
        {"bytes 0-1", 10, RANGE_ALL, 0, 10},
        {"lines=0-1", 10, RANGE_ALL, 0, 10},
    };
    uint64_t first, end;
    (void) state;
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        const range_kind_t kind = range_read (ranges[i].field, ranges[i].total, &first, &end);
        if (kind != ranges[i].kind || first != ranges[i].first || end != ranges[i].end)
            fail_msg ("%s of %d: %d, %d to %d", ranges[i].field != NULL ? ranges[i].field : "none",
                      (int) ranges[i].total, (int) kind, (int) first, (int) end);
    }
}

/* A body whose length is told, and that is not here. */
static void test_sized_responses (void **state)
{
    bytes_t out = BYTES_INIT;
    response_t response;
    (void) state;
    response_init (&response, 206);
    response.is_sized = true;
    response.length = UINT64_MAX;
    response_write (&out, &response, (response_frame_t){.stream = true});
    assert_string_equal (bytes_text (&out), "HTTP/1.1 206 Partial Content\r\n"
                                            "Content-Length: 18446744073709551615\r\n\r\n");
    bytes_free (&out);
    response.status = 200;
    response_write (&out, &response, (response_frame_t){.head_only = true, .close = true});
    assert_string_equal (bytes_text (&out), "HTTP/1.1 200 OK\r\n"
                                            "Content-Length: 18446744073709551615\r\n"
                                            "Connection: close\r\n\r\n");
    bytes_free (&out);
    response_clear (&response);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_every_case_is_judged),
        cmocka_unit_test (test_long_heads),
        cmocka_unit_test (test_bodies),
        cmocka_unit_test (test_fields),
        cmocka_unit_test (test_targets),
        cmocka_unit_test (test_bad_targets_are_refused),
        cmocka_unit_test (test_responses),
        cmocka_unit_test (test_server_sent_events),
        cmocka_unit_test (test_ranges),
        cmocka_unit_test (test_sized_responses),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
