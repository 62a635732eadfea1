/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The oracle of queries, over both stores: what a search finds is what a plain look at the words
 * finds. */
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/data/turn.h"
#include "search_stage.h"
#include "sim/rng.h"
#include "store/sqlite/search_scan.h"

/* Whatever is asked for, in pages of any size and with few looks, is what a plain look at the words
 * of each task finds. */
enum { WORDS = 7, WORD_TASKS = 240 };

typedef struct wordy {
    rng_t rng;
    unsigned words[WORD_TASKS + 1]; /* a bit for each */
    char text[160];                 /* of a query, with … */
    unsigned parts[4];              /* … one of each of these, … */
    size_t parts_count;
    unsigned without; /* … and none of these */
    const char *queue;
} wordy_t;

static const char *const VOCABULARY[WORDS] = {"common", "often", "comma", "half",
                                              "third",  "few",   "rare"};
static const uint32_t PER_MILLE[WORDS] = {950, 700, 500, 500, 300, 60, 15};
static const char *queue_of (int64_t number)
{
    return number % 3 == 0 ? "mail" : "print";
}

/* Its own words, and those of some turns. */
static void put_wordy (search_stage_t *self, wordy_t *all, batch_t *batch, int64_t number)
{
    static const uint8_t extra[] = {0xa0, 1, 3}; /* turns = 3 */
    tmq_id_t id = test_id ((uint64_t) number);
    record_t record = test_record (number);
    for (uint32_t place = 0; place < 4; place++) {
        char text[100] = "x";
        row_key_t key;
        for (size_t i = 0; i < WORDS; i++) {
            if (!rng_chance (&all->rng, PER_MILLE[i] / 2))
                continue;
            strcat (strcat (text, " "), VOCABULARY[i]);
            all->words[number] |= 1u << i;
        }
        turn_t turn = {.turn = place, .attempt = 1, .number = place};
        turn.parts[0] = (const uint8_t *) text;
        turn.lengths[0] = strlen (text);
        turn_key (&key, "default", id.bytes, place);
        if (place == 0)
            record.payload = buf_new (text, strlen (text));
        else
            batch->rows[batch->rows_count++] = (row_t){.kind = ROW_KIND_TURN,
                                                       .key = buf_new (key.bytes, key.length),
                                                       .body = turn_pack (&turn)};
    }
    record.queue = queue_of (number);
    record.payload_bytes = (uint32_t) buf_length (record.payload);
    record.extra = buf_new (extra, sizeof (extra));
    fixture_change (self->f, batch, &record, TMQ_EVENT_SUBMITTED);
    buf_drop (record.payload);
    buf_drop (record.extra);
}

static void make_query (wordy_t *all)
{
    rng_t *rng = &all->rng;
    all->text[0] = '\0';
    all->without = 0;
    all->queue = rng_chance (rng, 300) ? queue_of ((int64_t) rng_below (rng, 3)) : NULL;
    all->parts_count = 1 + rng_below (rng, 3);
    for (size_t i = 0; i < all->parts_count; i++) {
        unsigned word = rng_below (rng, WORDS);
        unsigned other = rng_below (rng, WORDS);
        bool either = rng_chance (rng, 300);
        bool prefix = rng_chance (rng, 200); /* of the first and the third: both begin so */
        all->parts[i] = prefix ? 5 : 1u << word;
        strcat (strcat (all->text, i > 0 ? " " : ""), prefix ? "com*" : VOCABULARY[word]);
        if (either)
            strcat (strcat (all->text, " OR "), VOCABULARY[other]);
        all->parts[i] |= either ? 1u << other : 0;
    }
    for (size_t i = rng_below (rng, 3); i > 0; i--) {
        unsigned word = rng_below (rng, WORDS);
        strcat (strcat (all->text, " -"), VOCABULARY[word]);
        all->without |= 1u << word;
    }
}

static bool has_words (const wordy_t *all, int64_t number)
{
    bool has = (all->words[number] & all->without) == 0;
    for (size_t i = 0; i < all->parts_count; i++)
        has = has && (all->words[number] & all->parts[i]) != 0;
    return has && (all->queue == NULL || strcmp (all->queue, queue_of (number)) == 0);
}

static size_t check_query (search_stage_t *self, wordy_t *all)
{
    int64_t below = 0;
    int64_t number = WORD_TASKS + 1;
    size_t total = 0;
    bool more = true;
    size_t limit = 1 + rng_below (&all->rng, 60);
    size_t looks = 50 + rng_below (&all->rng, 400);
    while (more) {
        read_t read = search_stage_page ("default", all->text, below, limit, false);
        read.vain_max = looks;
        read.filter.queues = &all->queue;
        read.filter.queues_count = all->queue != NULL;
        search_stage_ask (self, &read);
        assert_int_equal (read.error, 0);
        for (size_t i = 0; i < read.records_count; i++, total++) {
            for (number--; number > 0 && !has_words (all, number);)
                number--;
            if (read.records[i]->number != number)
                fail_msg ("%s: %d where %d was expected", all->text, (int) read.records[i]->number,
                          (int) number);
            if (read.search->found[i].excerpt == NULL)
                fail_msg ("%s: %d has no excerpt", all->text, (int) number);
        }
        more = read.more;
        if (more && (read.next_number <= 0 || (below > 0 && read.next_number >= below)))
            fail_msg ("%s: a page does not get on", all->text);
        below = read.next_number;
        search_stage_done (&read);
    }
    for (number--; number > 0; number--)
        if (has_words (all, number))
            fail_msg ("%s: %d is missing", all->text, (int) number);
    return total;
}

static void every_query_finds_what_a_plain_look_finds (void **state)
{
    search_stage_t *self = *state;
    enum { QUERIES = 80 };
    wordy_t *all = memory_zero (1, sizeof (*all));
    all->rng.state = 5;
    size_t total = 0;
    batch_t *batch = fixture_batch (self->f);
    batch->rows = memory_zero ((size_t) WORD_TASKS * 3, sizeof (row_t));
    for (int64_t number = 1; number <= WORD_TASKS; number++)
        put_wordy (self, all, batch, number);
    fixture_commit (self->f, batch);
    search_stage_settle (self);
    for (size_t i = 0; i < QUERIES; i++) {
        make_query (all);
        size_t found_here = check_query (self, all);
        read_t ranked = search_stage_page ("default", all->text, 0, WORD_TASKS, true);
        ranked.filter.queues = &all->queue;
        ranked.filter.queues_count = all->queue != NULL;
        search_stage_ask (self, &ranked);
        if (ranked.records_count != found_here)
            fail_msg ("%s: %zu by rank, %zu by age", all->text, ranked.records_count, found_here);
        search_stage_done (&ranked);
        total += found_here;
    }
    assert_true (total > (size_t) QUERIES * 10);
    free (all);
}

/* A filter that leaves few tasks finds the same as a walk over all that have the word. */
static void a_narrow_filter_finds_the_same (void **state)
{
    search_stage_t *self = *state;
    enum { TASKS = 30 };
    static const char *const texts[] = {"common", "common", "rare"};
    for (int64_t i = 1; i <= TASKS; i++)
        search_stage_put (self, i, "default", texts[i % 3]);
    const char *queue = "mail";
    for (size_t limit = 1; limit <= TASKS; limit += 6) {
        int64_t below = 0;
        int64_t expected = TASKS;
        bool more = true;
        while (more) {
            read_t read = search_stage_page ("default", "common", below, limit, false);
            read.filter.queues = &queue;
            read.filter.queues_count = 1;
            search_stage_run (self, &read);
            for (size_t i = 0; i < read.records_count; i++, expected--) {
                expected -= expected % 3 == 2;
                assert_int_equal (read.records[i]->number, expected);
                assert_non_null (read.search->found[i].excerpt);
            }
            more = read.more;
            below = read.next_number;
            search_stage_done (&read);
        }
        assert_int_equal (expected, 0);
    }
}

/* The newest documents are looked into; where that takes too long the index is asked for the
 * others, and none is found twice, or missed in between. */
static void the_index_goes_on_behind_the_newest (void **state)
{
    search_stage_t *self = *state;
    enum { NEWEST = 60, OLDEST = 150, TASKS = NEWEST + SEARCH_SCAN_DOCUMENTS_MAX + OLDEST };
    static const char *const texts[] = {"com*", "com* OR compass", "with com*", "com* NOT nothing"};
    batch_t *batch = fixture_batch (self->f);
    for (int64_t number = 1; number <= TASKS; number++) {
        bool has = number <= OLDEST || number > TASKS - NEWEST;
        record_t record = test_record (number);
        const char *text = has ? number % 2 == 0 ? "with a comma" : "Common, with" : "with others";
        record.payload = buf_new (text, strlen (text));
        record.payload_bytes = (uint32_t) strlen (text);
        fixture_change (self->f, batch, &record, TMQ_EVENT_SUBMITTED);
        buf_drop (record.payload);
    }
    fixture_commit (self->f, batch);
    search_stage_settle (self);
    for (size_t i = 0; i < sizeof (texts) / sizeof (texts[0]); i++) {
        int64_t expected = TASKS;
        int64_t below = 0;
        bool more = true;
        while (more) {
            read_t read = search_stage_page ("default", texts[i], below, 100, false);
            search_stage_ask (self, &read);
            for (size_t k = 0; k < read.records_count; k++) {
                if (read.records[k]->number != expected)
                    fail_msg ("%s: %d where %d was expected", texts[i],
                              (int) read.records[k]->number, (int) expected);
                assert_non_null (strstr (read.search->found[k].excerpt,
                                         expected % 2 == 0 ? "\002comma\003" : "\002Common\003"));
                expected -= expected == TASKS - NEWEST + 1 ? TASKS - NEWEST - OLDEST + 1 : 1;
            }
            more = read.more;
            below = read.next_number;
            search_stage_done (&read);
        }
        assert_int_equal (expected, 0);
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        ON_BOTH (a_narrow_filter_finds_the_same),
        ON_BOTH (every_query_finds_what_a_plain_look_finds),
        ON_WITH (the_index_goes_on_behind_the_newest, search_stage_setup, search_stage_teardown,
                 "sqlite"),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
