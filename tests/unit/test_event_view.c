/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The shorter way to read an event takes nothing that the codec refuses, and sees the same in it;
 * and it takes what brokers write. */
#include "support/cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "codec.h"
#include "event_view.h"
#include "sim/rng.h"
#include "taskmq.pb-c.h"

enum { EVENTS = 3000, CHANGES = 40, FIELD_EVENTS = 1, ARENA_BYTES = 1024 * 1024 };

static rng_t rng;

static char *any_text (void)
{
    static char *const texts[] = {"",
                                  "",
                                  "default",
                                  "a queue",
                                  "x",
                                  "t\xc3\xa4sk \xe2\x82\xac",
                                  "a message that is as long as messages mostly are"};
    return texts[rng_below (&rng, sizeof (texts) / sizeof (texts[0]))];
}

static void pack_any (bytes_t *out, bool *is_common)
{
    static uint8_t id[16];
    Taskmq__Event event = TASKMQ__EVENT__INIT;
    Taskmq__Progress progress = TASKMQ__PROGRESS__INIT;
    Taskmq__Label labels[TMQ_LABELS_MAX];
    Taskmq__Label *list[TMQ_LABELS_MAX];
    rng_fill (&rng, id, sizeof (id));
    event.seq = rng_next (&rng) >> rng_below (&rng, 64);
    event.at = rng_next (&rng) >> 22;
    event.kind = rng_below (&rng, 30);
    event.task_id = (ProtobufCBinaryData){sizeof (id), id};
    event.queue = any_text ();
    event.session = any_text ();
    event.status = rng_below (&rng, 8);
    event.previous = rng_below (&rng, 8);
    event.attempt = rng_below (&rng, 300);
    event.worker = any_text ();
    event.actor = any_text ();
    event.message = any_text ();
    event.previous_seq = rng_next (&rng) >> rng_below (&rng, 64);
    event.owner = any_text ();
    event.subject = rng_chance (&rng, 200) ? rng_below (&rng, 8) : 0;
    event.name = any_text ();
    event.number = rng_below (&rng, 3) * rng_next (&rng);
    event.trace = any_text ();
    event.labels = list;
    event.n_labels = rng_chance (&rng, 300) ? rng_below (&rng, TMQ_LABELS_MAX + 1) : 0;
    for (size_t i = 0; i < event.n_labels; i++) {
        labels[i] = (Taskmq__Label) TASKMQ__LABEL__INIT;
        labels[i].key = any_text ();
        labels[i].value = any_text ();
        list[i] = &labels[i];
    }
    *is_common = !rng_chance (&rng, 100);
    progress.done = 3;
    if (!*is_common)
        event.progress = &progress;
    bytes_clear (out);
    bytes_append_packed (out, &event.base);
    assert_false (out->failed);
}

static void render (bytes_t *out, const event_view_t *view)
{
    json_writer_t writer = {out, false};
    bytes_clear (out);
    json_write_event (&writer, view);
    assert_false (out->failed);
}

/* As the codec has it; false: it does not take the event. */
static bool render_by_codec (bytes_t *out, arena_t *arena, const bytes_t *event)
{
    codec_report_t report;
    event_view_t view;
    bytes_t list = BYTES_INIT;
    bytes_append_element (&list, FIELD_EVENTS, event->data, event->length);
    arena_reset (arena);
    const Taskmq__EventList *events = codec_event_list (&report, arena, list.data, list.length);
    bool good = events != NULL && events->n_events == 1 &&
                event_view_from_wire (&view, events->events[0], "ns", arena);
    if (good)
        render (out, &view);
    bytes_free (&list);
    return good;
}

/* A copy of exactly that size, so that a read beyond it is seen by the sanitizer. */
static bool render_shortly (bytes_t *out, event_view_room_t *room, const bytes_t *event)
{
    event_view_t view;
    uint8_t *exact = malloc (event->length + (event->length == 0));
    assert_non_null (exact);
    if (event->length > 0)
        memcpy (exact, event->data, event->length);
    bool good = event_view_read (&view, room, exact, event->length, "ns");
    free (exact);
    if (good)
        render (out, &view);
    return good;
}

typedef struct world {
    arena_t *arena;
    event_view_room_t room;
    bytes_t event;
    bytes_t shortly;
    bytes_t by_codec;
} world_t;

static int begin (void **state)
{
    static world_t world;
    world = (world_t){.arena = arena_new (ARENA_BYTES)};
    rng.state = 1;
    *state = &world;
    return world.arena == NULL;
}

static int end (void **state)
{
    world_t *self = *state;
    arena_free (self->arena);
    event_view_room_free (&self->room);
    bytes_free (&self->event);
    bytes_free (&self->shortly);
    bytes_free (&self->by_codec);
    return 0;
}

static void assert_same (const world_t *self)
{
    assert_int_equal (self->shortly.length, self->by_codec.length);
    assert_memory_equal (self->shortly.data, self->by_codec.data, self->by_codec.length);
}

static void events_of_brokers_are_read_as_the_codec_reads_them (void **state)
{
    world_t *self = *state;
    for (size_t i = 0; i < EVENTS; i++) {
        bool is_common;
        pack_any (&self->event, &is_common);
        assert_true (render_by_codec (&self->by_codec, self->arena, &self->event));
        assert_int_equal (render_shortly (&self->shortly, &self->room, &self->event), is_common);
        if (is_common)
            assert_same (self);
    }
}

/* Bytes that are changed, taken away or put in. */
static void change (bytes_t *event)
{
    size_t at = rng_below (&rng, (uint32_t) event->length);
    switch (rng_below (&rng, 8)) {
    case 0:
    case 1:
    case 2: event->data[at] = (uint8_t) rng_next (&rng); break;
    case 3:
    case 4:
    case 5: event->data[at] ^= (uint8_t) (1u << rng_below (&rng, 8)); break;
    case 6: event->length = at; break;
    default: /* a field twice, perhaps */
        assert_non_null (bytes_reserve (event, at));
        memcpy (event->data + event->length, event->data, at);
        event->length += at;
        break;
    }
}

static void what_the_codec_refuses_is_not_taken (void **state)
{
    world_t *self = *state;
    size_t taken = 0;
    size_t refused = 0;
    for (size_t i = 0; i < EVENTS; i++) {
        bool is_common;
        pack_any (&self->event, &is_common);
        for (size_t k = 0; k < CHANGES && self->event.length > 0; k++) {
            change (&self->event);
            bool good = render_by_codec (&self->by_codec, self->arena, &self->event);
            bool took = render_shortly (&self->shortly, &self->room, &self->event);
            refused += !good;
            taken += took;
            assert_true (good || !took);
            if (took)
                assert_same (self);
            if (!good)
                break;
        }
    }
    assert_true (taken > EVENTS / 2);
    assert_true (refused > EVENTS / 2);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown (events_of_brokers_are_read_as_the_codec_reads_them, begin,
                                         end),
        cmocka_unit_test_setup_teardown (what_the_codec_refuses_is_not_taken, begin, end),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
