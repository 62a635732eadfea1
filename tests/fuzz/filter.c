/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A filter that a client chose, over packed events: two bytes of length and the filter, then the
 * events. What the validator takes, the engine's copy takes too, and every event can be judged. */
#include "core/wire/filter.h"

#include "core/wire/scan.h"
#include "fuzz.h"
#include "validate.h"

/* The filter in a request, so that it is judged as one of a client is. */
static void wrap (bytes_t *out, const uint8_t *filter, size_t size)
{
    enum { REQUESTS = 2, REQUEST_ID = 1, SUBSCRIBE = 40, NUMBER = 1, FILTER = 2, TOKEN = 1 };
    static const uint8_t token[16] = {1};
    bytes_append_blob (out, TOKEN, token, sizeof (token));
    bytes_mark_t request = bytes_open (out, REQUESTS);
    bytes_append_uint (out, REQUEST_ID, 1);
    bytes_mark_t subscribe = bytes_open (out, SUBSCRIBE);
    bytes_append_uint (out, NUMBER, 1);
    bytes_append_element (out, FILTER, filter, size);
    bytes_close (out, subscribe);
    bytes_close (out, request);
}

static void judge_events (filter_copy_t *filter, const uint8_t *at, const uint8_t *end)
{
    scanned_t event;
    const uint8_t *before = at;
    while (scan_event (&at, end, &event)) {
        HOLDS (at > before && at <= end);
        before = at;
        bool taken = filter_takes_event (filter, &event);
        HOLDS (taken || event.subject != 0 || !filter->everything || filter->scoped);
        for (size_t i = 0; i < filter->filter.labels_count; i++)
            scan_has_label (&event, &filter->filter.labels[i]);
    }
}

/* With all rights, and as a client that sees its own tasks of some queues. */
static access_t with_rights (bool all)
{
    static const char text[] = "me uid:1 client(default/q*)";
    static policy_t *policy;
    policy_error_t error;
    access_t access = {0};
    if (policy == NULL)
        policy = policy_parse (text, strlen (text), NULL, &error);
    HOLDS (policy != NULL);
    HOLDS (access_link (&access, all ? NULL : policy, "me", "default", 1));
    return access;
}

static void judge (const Taskmq__Filter *wanted, bool all, const uint8_t *data, size_t size)
{
    access_t access = with_rights (all);
    filter_copy_t *filter = filter_new ("default", wanted, &access);
    uint8_t *events = fuzz_copy (data, size);
    judge_events (filter, events, events + size);
    free (events);
    filter_free (filter);
    access_clear (&access);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    static arena_t *arena;
    const uint8_t *piece;
    size_t piece_size;
    if (arena == NULL)
        arena = arena_new (CODEC_CLIENT_ARENA_BYTES);
    if (!fuzz_piece (&data, &size, &piece, &piece_size))
        return 0;
    bytes_t envelope = BYTES_INIT;
    verdicts_t verdicts;
    wrap (&envelope, piece, piece_size);
    arena_reset (arena);
    const Taskmq__ClientMessage *message =
        validate_frames (&verdicts, arena, 1, envelope.data, envelope.length, 0);
    if (message != NULL && verdicts.message.code == TMQ_OK && verdicts.refused == 0 &&
        message->n_requests == 1 &&
        message->requests[0]->op_case == TASKMQ__REQUEST__OP_SUBSCRIBE) {
        judge (message->requests[0]->subscribe->filter, true, data, size);
        judge (message->requests[0]->subscribe->filter, false, data, size);
    }
    bytes_free (&envelope);
    return 0;
}
