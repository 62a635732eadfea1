/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Every field of a record, each with a value of its own, on every way that a record goes: through a
 * live task, the journal, the tables, a start of the broker, and to a client. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/data/extra.h"
#include "core/engine/engine.h"
#include "core/engine/rooms.h"
#include "core/tasks/view.h"
#include "core/wire/pack.h"
#include "journal.pb-c.h"
#include "record_fields.h"
#include "store/journal/journal_codec.h"
#include "store_support.h"

enum { TEXT_BYTES = 32, FIELDS_MAX = 64, BODY_BYTES = 77 };

/* A record whose fields all differ, and what they point to. */
typedef struct full {
    record_t record;
    char texts[FIELDS_MAX][TEXT_BYTES];
    label_t labels[2];
} full_t;

static void set_number (record_t *record, const record_field_t *field, int64_t value)
{
    void *place = (char *) record + field->offset;
    if (field->form == RECORD_FLAG)
        *(bool *) place = true;
    else if (field->size == 1)
        *(uint8_t *) place = (uint8_t) value;
    else if (field->size == 8)
        *(int64_t *) place = value;
    else
        *(int32_t *) place = (int32_t) value;
}

/* Every member of an extra, each with a value of its own. */
static buf_t *packed_extra (void)
{
    Taskmq__Extra extra = TASKMQ__EXTRA__INIT;
    extra.start_by = 201;
    extra.max_runtime_ms = 202;
    extra.trace = (char *) "the.trace";
    extra.cancel_message = (char *) "the.cancel_message";
    return extra_pack (&extra);
}

static void set_field (full_t *self, size_t index)
{
    const record_field_t *field = &record_fields[index];
    void *place = (char *) &self->record + field->offset;
    char *text = self->texts[index];
    switch (field->form) {
    case RECORD_TEXT:
        snprintf (text, TEXT_BYTES, "the.%s", field->name);
        *(const char **) place = text;
        break;
    case RECORD_RAW: memset (place, 0x40 + (int) index, field->size); break;
    case RECORD_BODY:
        snprintf (text, TEXT_BYTES, "bytes of the %s", field->name);
        *(buf_t **) place = buf_new (text, strlen (text));
        break;
    case RECORD_PACKED: *(buf_t **) place = packed_extra (); break;
    default: set_number (&self->record, field, 100 + (int64_t) index); break;
    }
}

/* A leased task that has a result and an error too: no real one has all of that at once, but each
 * field has to find its way. */
static full_t *full_new (void)
{
    full_t *self = calloc (1, sizeof *self);
    assert_non_null (self);
    assert_true (record_fields_count <= FIELDS_MAX);
    for (size_t i = 0; i < record_fields_count; i++)
        set_field (self, i);
    record_t *record = &self->record;
    record->status = TMQ_STATUS_WORKING;
    record->outcome = TMQ_OUTCOME_TOOL_ERROR;
    record->meta = "{\"the\":\"meta\"}";
    record->payload_bytes = (uint32_t) buf_length (record->payload);
    record->result_bytes = (uint32_t) buf_length (record->result);
    self->labels[0] = (label_t){"one", "1"};
    self->labels[1] = (label_t){"two", ""};
    record->labels = self->labels;
    record->labels_count = 2;
    return self;
}

static int setup (void **state)
{
    *state = full_new ();
    return 0;
}

static int teardown (void **state)
{
    full_t *self = *state;
    buf_drop (self->record.payload);
    buf_drop (self->record.result);
    buf_drop (self->record.extra);
    free (self);
    return 0;
}

/* The rows of the map are the fields of a record, no more and no fewer. The journal has one member
 * for each under the same name; `version` is taken there by the batch. */
static void the_map_is_complete (void **state)
{
    (void) state;
    const ProtobufCMessageDescriptor *type = &journal__record__descriptor;
    for (size_t i = 0; i < record_fields_count; i++) {
        const char *name = record_fields[i].name;
        if (strcmp (name, "version") == 0)
            name = "record_version";
        if (protobuf_c_message_descriptor_get_field_by_name (type, name) == NULL)
            fail_msg ("the journal has no %s", name);
    }
    assert_int_equal (type->n_fields, record_fields_count + 1); /* and the labels */
    bool known[sizeof (record_t)] = {false};
    memset (known + offsetof (record_t, labels), 1, sizeof (label_t *));
    memset (known + offsetof (record_t, labels_count), 1, sizeof (size_t));
    for (size_t i = 0; i < record_fields_count; i++)
        memset (known + record_fields[i].offset, 1, record_fields[i].size);
    size_t gap = 0;
    for (size_t i = 0; i < sizeof known; i++) {
        gap = known[i] ? 0 : gap + 1;
        assert_true (gap < sizeof (void *)); /* padding is shorter */
    }
}

/* A start of the broker with this record: it becomes a live task, and that a record again. */
static void assert_lives (const record_t *record, const record_t *wanted, const char *where)
{
    const engine_config_t config = ENGINE_CONFIG_INIT;
    const boot_t boot = {.generation = 1, .epoch = 1};
    engine_t *engine = engine_new (&config);
    engine_boot (engine, &boot, (now_t){1000, 1000});
    engine_restore (engine, record_new (record));
    size_t cursor = 0;
    task_t *task = map_each (&engine->tasks.by_id, &cursor);
    assert_non_null (task);
    record_t view;
    task_texts_t texts;
    task_view (task, &view, &texts);
    assert_record_kept (wanted, &view, false, where);
    engine_free (engine);
}

static void a_live_task_keeps_every_field (void **state)
{
    const full_t *full = *state;
    assert_lives (&full->record, &full->record, "restore, view");
}

static void the_journal_keeps_every_field (void **state)
{
    const full_t *full = *state;
    batch_t *batch = batch_make (1, 1);
    batch_add_record (batch, &full->record);
    journal_head_t head = {1, 1, 0};
    bytes_t body = BYTES_INIT;
    bool newer;
    journal_encode (&body, &head, batch);
    batch_t *copy = journal_decode (body.data, body.length, &head, &newer);
    assert_non_null (copy);
    assert_record_kept (&full->record, copy->records[0], true, "journal");
    assert_lives (copy->records[0], &full->record, "journal, restore, view");
    batch_free (copy);
    batch_free (batch);
    bytes_free (&body);
}

static void the_tables_keep_every_field (void **state)
{
    const full_t *full = *state;
    fixture_t *fixture = fixture_new ("sqlite");
    fixture_open (fixture);
    batch_t *batch = fixture_batch (fixture);
    batch_add_record (batch, &full->record);
    fixture_commit (fixture, batch);
    fixture_settle (fixture);
    record_t *row = fixture_load (fixture, full->record.ns, &full->record.id);
    assert_record_kept (&full->record, row, true, "tables");
    assert_lives (row, &full->record, "tables, restore, view");
    record_free (row);
    void *self = fixture;
    fixture_teardown (&self);
}

/* The wire. */

/* The member of a message that a path like "error.code" names; *message becomes its owner. */
static const ProtobufCFieldDescriptor *find_member (const ProtobufCMessage **message,
                                                    const char *path)
{
    char name[TEXT_BYTES];
    const char *dot = strchr (path, '.');
    snprintf (name, sizeof name, "%.*s", dot != NULL ? (int) (dot - path) : (int) strlen (path),
              path);
    const ProtobufCFieldDescriptor *member =
        protobuf_c_message_descriptor_get_field_by_name ((*message)->descriptor, name);
    if (member == NULL)
        fail_msg ("taskmq.Task has no %s", path);
    if (dot == NULL)
        return member;
    const void *place = (const char *) *message + member->offset;
    *message = *(const ProtobufCMessage *const *) place;
    if (*message == NULL)
        fail_msg ("%s is not sent", name);
    return find_member (message, dot + 1);
}

static bool same_extra (const record_t *record, const Taskmq__Extra *extra)
{
    buf_t *packed = extra_pack (extra);
    bool same = buf_length (packed) == buf_length (record->extra) &&
                memcmp (buf_bytes (packed), buf_bytes (record->extra), buf_length (packed)) == 0;
    buf_drop (packed);
    return same;
}

static bool same_on_wire (const record_t *record, const record_field_t *field,
                          const ProtobufCMessage *message)
{
    const ProtobufCFieldDescriptor *member = find_member (&message, field->wire);
    const void *place = (const char *) message + member->offset;
    const ProtobufCBinaryData *bytes = place;
    switch (member->type) {
    case PROTOBUF_C_TYPE_MESSAGE: return same_extra (record, *(Taskmq__Extra *const *) place);
    case PROTOBUF_C_TYPE_STRING:
        return strcmp (*(const char *const *) place, record_field_text (record, field)) == 0;
    case PROTOBUF_C_TYPE_BYTES:
        return bytes->len == field->size &&
               memcmp (bytes->data, record_field_raw (record, field), field->size) == 0;
    case PROTOBUF_C_TYPE_DOUBLE:
        return memcmp (place, record_field_raw (record, field), field->size) == 0;
    case PROTOBUF_C_TYPE_UINT64:
        return *(const int64_t *) place == record_field_number (record, field);
    default: return *(const int32_t *) place == record_field_number (record, field);
    }
}

static void a_client_sees_every_field (void **state)
{
    const full_t *full = *state;
    bytes_t bytes = BYTES_INIT;
    pack_task (&bytes, 1, &full->record, TMQ_PHASE_LEASED, false, (pack_bodies_t){BODY_BYTES, 0});
    assert_false (bytes.failed);
    Taskmq__TaskPage *page = taskmq__task_page__unpack (NULL, bytes.length, bytes.data);
    assert_non_null (page);
    assert_int_equal (page->n_tasks, 1);
    const Taskmq__Task *task = page->tasks[0];
    for (size_t i = 0; i < record_fields_count; i++) {
        const record_field_t *field = &record_fields[i];
        if (field->wire != NULL && !same_on_wire (&full->record, field, &task->base))
            fail_msg ("%s is not what it was: a client's task", field->name);
    }
    assert_int_equal (task->phase, TMQ_PHASE_LEASED);
    assert_int_equal (task->body, BODY_BYTES);
    assert_int_equal (task->n_labels, 2);
    assert_string_equal (task->labels[0]->key, "one");
    assert_string_equal (task->labels[0]->value, "1");
    assert_string_equal (task->labels[1]->key, "two");
    taskmq__task_page__free_unpacked (page, NULL);
    bytes_free (&bytes);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (the_map_is_complete),
        cmocka_unit_test_setup_teardown (a_live_task_keeps_every_field, setup, teardown),
        cmocka_unit_test_setup_teardown (the_journal_keeps_every_field, setup, teardown),
        cmocka_unit_test_setup_teardown (the_tables_keep_every_field, setup, teardown),
        cmocka_unit_test_setup_teardown (a_client_sees_every_field, setup, teardown),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
