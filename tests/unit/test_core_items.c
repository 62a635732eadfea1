/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Items of boxes: order, acknowledgements, repeats, limits, and what a restart finds. */
#include <string.h>

#include "core_rig.h"

static uint8_t next_id[16];

static Taskmq__Request request_of (Taskmq__Request__OpCase op)
{
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    request.op_case = op;
    request.request_id = (ProtobufCBinaryData){sizeof (next_id), next_id};
    return request;
}

static uint64_t send_put (rig_t *rig, const char *box, const char *bytes)
{
    Taskmq__ItemPut put = TASKMQ__ITEM_PUT__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_ITEM_PUT);
    put.session = (char *) "trip";
    put.box = (char *) box;
    put.source = (char *) "user";
    put.type = (char *) "text";
    put.intensity = 250000;
    put.body_bytes = (uint32_t) strlen (bytes);
    request.item_put = &put;
    return rig_send (rig, 0, &request, bytes, strlen (bytes));
}

static unsigned code_of_put (rig_t *rig, const char *box, const char *bytes, uint64_t *number)
{
    next_id[0]++;
    uint64_t sent = send_put (rig, box, bytes);
    rig_settle (rig);
    unsigned code = rig_code (rig, 0, sent);
    if (code == TMQ_OK && number != NULL)
        *number = rig_reply (rig, 0, sent)->reply->item_done->number;
    return code;
}

static uint64_t put (rig_t *rig, const char *box, const char *bytes)
{
    uint64_t number = 0;
    assert_int_equal (code_of_put (rig, box, bytes, &number), TMQ_OK);
    return number;
}

static const rig_item_t *read_box (rig_t *rig, const char *box, uint64_t after, uint32_t limit)
{
    Taskmq__ItemRead read = TASKMQ__ITEM_READ__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_ITEM_READ);
    read.session = (char *) "trip";
    read.box = (char *) box;
    read.after = after;
    read.limit = limit;
    request.item_read = &read;
    uint64_t sent = rig_send (rig, 0, &request, NULL, 0);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, sent), TMQ_OK);
    return rig_reply (rig, 0, sent);
}

static uint32_t acknowledge (rig_t *rig, const char *box, uint64_t *numbers, size_t count)
{
    Taskmq__ItemAck ack = TASKMQ__ITEM_ACK__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_ITEM_ACK);
    ack.session = (char *) "trip";
    ack.box = (char *) box;
    ack.numbers = numbers;
    ack.n_numbers = count;
    request.item_ack = &ack;
    uint64_t sent = rig_send (rig, 0, &request, NULL, 0);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, sent), TMQ_OK);
    return rig_reply (rig, 0, sent)->reply->item_done->count;
}

static void items_are_read_in_their_order_until_they_are_acknowledged (void **state)
{
    rig_t *rig = *state;
    uint64_t numbers[3];
    for (size_t i = 0; i < 3; i++)
        numbers[i] = put (rig, "inputs", i == 1 ? "two" : "x");
    put (rig, "input", "elsewhere");
    const rig_item_t *item = read_box (rig, "inputs", 0, 0);
    const Taskmq__ItemPage *page = item->reply->item_page;
    assert_int_equal (page->n_items, 3);
    assert_int_equal (page->next, 0);
    assert_int_equal (page->body, 5);
    assert_memory_equal (item->body, "xtwox", 5);
    assert_int_equal (page->items[1]->number, numbers[1]);
    assert_string_equal (page->items[1]->source, "user");
    assert_string_equal (page->items[1]->type, "text");
    assert_int_equal (page->items[1]->intensity, 250000);
    page = read_box (rig, "inputs", 0, 2)->reply->item_page;
    assert_int_equal (page->n_items, 2);
    assert_int_equal (page->next, numbers[1]);
    page = read_box (rig, "inputs", numbers[1], 2)->reply->item_page;
    assert_int_equal (page->n_items, 1);
    assert_int_equal (acknowledge (rig, "inputs", numbers, 2), 2);
    assert_int_equal (acknowledge (rig, "inputs", numbers, 2), 0);
    rig_restart (rig);
    rig_link (rig, 0, "default");
    page = read_box (rig, "inputs", 0, 0)->reply->item_page;
    assert_int_equal (page->n_items, 1);
    assert_int_equal (page->items[0]->number, numbers[2]);
    assert_int_equal (read_box (rig, "nothing", 0, 0)->reply->item_page->n_items, 0);
}

static void a_repeated_put_gets_its_first_number (void **state)
{
    rig_t *rig = *state;
    uint64_t number = put (rig, "inputs", "once");
    rig_restart (rig);
    rig_link (rig, 0, "default");
    uint64_t sent = send_put (rig, "inputs", "once");
    rig_settle (rig);
    assert_int_equal (rig_reply (rig, 0, sent)->reply->item_done->number, number);
    assert_int_equal (read_box (rig, "inputs", 0, 0)->reply->item_page->n_items, 1);
}

/* What is there is read and acknowledged. */
static void nothing_is_put_on_a_full_disk (void **state)
{
    rig_t *rig = *state;
    uint64_t first = put (rig, "inputs", "one");
    engine_set_full (rig->engine, true);
    assert_int_equal (code_of_put (rig, "inputs", "two", NULL), TMQ_STORE_FULL);
    assert_int_equal (acknowledge (rig, "inputs", &first, 1), 1);
    engine_set_full (rig->engine, false);
    put (rig, "inputs", "two");
}

static void a_box_and_a_namespace_hold_only_so_many (void **state)
{
    (void) state;
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.box_items_max = 2;
    config.space_items_max = 3;
    rig_t *rig = rig_new_with (&config);
    rig_link (rig, 0, "default");
    uint64_t first = put (rig, "a", "");
    put (rig, "a", "");
    assert_int_equal (code_of_put (rig, "a", "", NULL), TMQ_LIMIT);
    put (rig, "b", "");
    assert_int_equal (code_of_put (rig, "c", "", NULL), TMQ_LIMIT);
    rig_restart (rig);
    rig_link (rig, 0, "default");
    assert_int_equal (code_of_put (rig, "c", "", NULL), TMQ_LIMIT);
    uint64_t twice[] = {first, first};
    assert_int_equal (acknowledge (rig, "a", twice, 2), 1);
    put (rig, "a", "");
    assert_int_equal (code_of_put (rig, "b", "", NULL), TMQ_LIMIT);
    rig_free (rig);
}

static void a_page_takes_what_a_message_takes (void **state)
{
    enum { ITEMS = 8 };
    static char large[TMQ_ITEM_BYTES_MAX + 1];
    rig_t *rig = *state;
    memset (large, 'x', TMQ_ITEM_BYTES_MAX);
    for (unsigned i = 0; i < ITEMS; i++)
        put (rig, "inputs", large);
    size_t seen = 0;
    uint64_t after = 0;
    do {
        const rig_item_t *item = read_box (rig, "inputs", after, 0);
        seen += item->reply->item_page->n_items;
        assert_int_equal (item->body_bytes, item->reply->item_page->n_items * TMQ_ITEM_BYTES_MAX);
        after = item->reply->item_page->next;
    } while (after != 0);
    assert_int_equal (seen, ITEMS);
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, rig_setup, rig_teardown)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (items_are_read_in_their_order_until_they_are_acknowledged),
        TEST (a_repeated_put_gets_its_first_number),
        TEST (a_page_takes_what_a_message_takes),
        TEST (nothing_is_put_on_a_full_disk),
        cmocka_unit_test (a_box_and_a_namespace_hold_only_so_many),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
