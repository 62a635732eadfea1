/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/postgresql/pg_writer.h"

#include <stdlib.h>
#include <string.h>

#include "core/access/access.h"
#include "core/base/memory.h"
#include "store/checksum.h"
#include "store/marks.h"
#include "store/postgresql/pg_rows.h"
#include "store/postgresql/pg_schema.h"
#include "store/postgresql/pg_sql.h"

enum {
    SLICE_ROWS = 2000,             /* of one statement, … */
    SLICE_BYTES = 4 * 1024 * 1024, /* … or about so much */
    COPY_BYTES = 256 * 1024,       /* of a COPY, before it is handed over */
    SPACES_MAX = 20000,            /* namespaces that are remembered */
    ARRAYS_MAX = PG_ROW_FIELDS     /* columns of one statement */
};

_Static_assert((int) ARRAYS_MAX < (int) PG_PARAMS_MAX, "a task has more columns than parameters");
_Static_assert((int) TMQ_LABELS_MAX == (int) PG_MARK_PLACE, "marks stand behind the labels");

typedef struct space {
    char *name;
    int32_t id;
} space_t;

struct pg_writer {
    pg_link_t *link;
    space_t *spaces;
    size_t spaces_count;
    size_t spaces_capacity;
    number_map_t spaces_by_hash; /* to position + 1; the next hash after a collision */
    pg_array_t arrays[ARRAYS_MAX];
    bytes_t copy;
    bytes_t scratch;
};

pg_writer_t *pg_writer_new (pg_link_t *link)
{
    pg_writer_t *self = memory_zero (1, sizeof (*self));
    self->link = link;
    return self;
}

void pg_writer_free (pg_writer_t **self_p)
{
    pg_writer_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    pg_writer_forget_spaces (self);
    free (self->spaces);
    for (size_t i = 0; i < ARRAYS_MAX; i++)
        pg_array_free (&self->arrays[i]);
    bytes_free (&self->copy);
    bytes_free (&self->scratch);
    free (self);
}

/* Namespaces. */

void pg_writer_forget_spaces (pg_writer_t *self)
{
    for (size_t i = 0; i < self->spaces_count; i++)
        free (self->spaces[i].name);
    self->spaces_count = 0;
    number_map_clear (&self->spaces_by_hash);
}

static uint64_t *place_of (pg_writer_t *self, const char *name)
{
    uint64_t hash = checksum_add_text (0, name);
    while (true) {
        uint64_t *at = number_map_put (&self->spaces_by_hash, hash == 0 ? 1 : hash, NULL);
        if (*at == 0 || strcmp (self->spaces[*at - 1].name, name) == 0)
            return at;
        hash++;
    }
}

static store_code_t ask_space (pg_writer_t *self, size_t statement, const char *name, int32_t *id,
                               store_error_t *error)
{
    PGresult *result;
    pg_params_t params;
    pg_params_clear (&params);
    pg_param_text (&params, name);
    if (statement == PG_SQL_SPACE_ADD)
        pg_param_int2 (&params, PG_SHARD);
    store_code_t code = pg_link_run (self->link, statement, &params, &result, error);
    *id = code == STORE_OK && PQntuples (result) == 1 ? pg_int4 (result, 0, 0) : 0;
    PQclear (result);
    return code;
}

/* Its number; one that is new gets one. */
static store_code_t space_of (pg_writer_t *self, const char *name, int32_t *id,
                              store_error_t *error)
{
    uint64_t *at = place_of (self, name);
    if (*at != 0) {
        *id = self->spaces[*at - 1].id;
        return STORE_OK;
    }
    store_code_t code = ask_space (self, PG_SQL_SPACE_FIND, name, id, error);
    if (code == STORE_OK && *id == 0)
        code = ask_space (self, PG_SQL_SPACE_ADD, name, id, error);
    if (code != STORE_OK)
        return code;
    self->spaces =
        memory_grow (self->spaces, &self->spaces_capacity, self->spaces_count, sizeof (space_t));
    self->spaces[self->spaces_count++] = (space_t){memory_text (name), *id};
    *place_of (self, name) = self->spaces_count;
    return STORE_OK;
}

/* Slices. */

static void begin_slice (pg_writer_t *self, const pg_type_t *types, size_t count)
{
    for (size_t i = 0; i < count; i++)
        pg_array_begin (&self->arrays[i], types[i]);
}

/* A row was put into the first `count` arrays. */
static void end_row (pg_writer_t *self, size_t count)
{
    for (size_t i = 0; i < count; i++)
        self->arrays[i].count++;
}

static bool is_full (const pg_writer_t *self, size_t count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += self->arrays[i].bytes.length;
    return self->arrays[0].count >= SLICE_ROWS || bytes >= SLICE_BYTES;
}

static bytes_t *cell (pg_writer_t *self, size_t column)
{
    return &self->arrays[column].bytes;
}

static void give_arrays (pg_writer_t *self, pg_params_t *params, size_t count)
{
    pg_params_clear (params);
    for (size_t i = 0; i < count; i++)
        pg_param_array (params, &self->arrays[i]);
}

/* Runs a statement over the first `count` arrays. *rows may be NULL. */
static store_code_t run_slice (pg_writer_t *self, size_t statement, size_t count, uint64_t *rows,
                               store_error_t *error)
{
    uint64_t changed = 0;
    pg_params_t params;
    if (self->arrays[0].count == 0)
        return STORE_OK;
    give_arrays (self, &params, count);
    store_code_t code = pg_link_change (self->link, statement, &params, &changed, error);
    if (rows != NULL)
        *rows += changed;
    return code;
}

/* Removals. They come first, so that a dedup key is free when its next holder is written. */

static const pg_type_t REMOVAL_TYPES[] = {PG_INT4, PG_INT8, PG_UUID, PG_INT4,
                                          PG_INT2, PG_INT8, PG_TEXT, PG_TEXT};
enum { REMOVAL_COLUMNS = sizeof (REMOVAL_TYPES) / sizeof (REMOVAL_TYPES[0]), REMOVAL_KEY = 2 };

static store_code_t remove_slice (pg_writer_t *self, pg_meta_t *meta, store_error_t *error)
{
    uint64_t tasks = 0;
    uint64_t tombstones = 0;
    store_code_t code = run_slice (self, PG_SQL_TASKS_DELETE, REMOVAL_KEY, &tasks, error);
    if (code == STORE_OK)
        code = run_slice (self, PG_SQL_ATTEMPTS_DELETE, REMOVAL_KEY, NULL, error);
    if (code == STORE_OK)
        code = run_slice (self, PG_SQL_LABELS_DELETE, REMOVAL_KEY, NULL, error);
    if (code == STORE_OK)
        code = run_slice (self, PG_SQL_TOMBSTONES, REMOVAL_COLUMNS, &tombstones, error);
    meta->tasks -= tasks;
    meta->tombstones += tombstones;
    begin_slice (self, REMOVAL_TYPES, REMOVAL_COLUMNS);
    return code;
}

static store_code_t put_removal (pg_writer_t *self, const removal_t *removal, pg_meta_t *meta,
                                 store_error_t *error)
{
    int32_t ns;
    store_code_t code = space_of (self, removal->ns, &ns, error);
    if (code != STORE_OK)
        return code;
    if (removal->number > meta->last_number)
        meta->last_number = removal->number; /* came and went between two write-backs */
    pg_put_int4 (cell (self, 0), ns);
    pg_put_int8 (cell (self, 1), removal->number);
    pg_put_id (cell (self, 2), removal->id.bytes);
    pg_put_int4 (cell (self, 3), (int32_t) removal->code);
    pg_put_int2 (cell (self, 4), removal->why);
    pg_put_int8 (cell (self, 5), removal->at);
    pg_put_text (cell (self, 6), removal->owner);
    pg_put_text (cell (self, 7), removal->queue);
    end_row (self, REMOVAL_COLUMNS);
    return is_full (self, REMOVAL_COLUMNS) ? remove_slice (self, meta, error) : STORE_OK;
}

static store_code_t write_removals (pg_writer_t *self, const dirty_t *dirty, pg_meta_t *meta,
                                    uint64_t *removals, store_error_t *error)
{
    store_code_t code = STORE_OK;
    begin_slice (self, REMOVAL_TYPES, REMOVAL_COLUMNS);
    for (size_t i = 0; i < dirty->count; i++)
        for (size_t k = 0; code == STORE_OK && k < dirty->batches[i]->removals_count; k++) {
            code = put_removal (self, &dirty->batches[i]->removals[k], meta, error);
            (*removals)++;
        }
    return code == STORE_OK ? remove_slice (self, meta, error) : code;
}

/* Tasks that are there already, or may be: their numbers are not above all that were ever
 * stored. */

static const pg_type_t TASK_TYPES[PG_ROW_FIELDS] = {
    PG_INT4, PG_INT8, PG_UUID, PG_TEXT,  PG_TEXT, PG_TEXT, PG_INT2,  PG_INT8,  PG_INT8, PG_BOOL,
    PG_INT8, PG_TEXT, PG_UUID, PG_BYTEA, PG_INT4, PG_INT4, PG_BYTEA, PG_BYTEA, PG_BYTEA};

/* Those that were not there are counted. */
static store_code_t update_slice (pg_writer_t *self, pg_meta_t *meta, order_t *order,
                                  store_error_t *error)
{
    PGresult *fresh;
    pg_params_t params;
    if (self->arrays[0].count == 0)
        return STORE_OK;
    give_arrays (self, &params, PG_ROW_FIELDS);
    store_code_t code = pg_link_run (self->link, PG_SQL_TASKS, &params, &fresh, error);
    for (int i = 0; code == STORE_OK && i < PQntuples (fresh); i++) {
        meta->tasks++;
        order_add (order, pg_int8 (fresh, i, 0), pg_int8 (fresh, i, 1));
    }
    PQclear (fresh);
    begin_slice (self, TASK_TYPES, PG_ROW_FIELDS);
    return code;
}

static store_code_t write_old (pg_writer_t *self, const images_t *images, size_t count,
                               pg_meta_t *meta, order_t *order, store_error_t *error)
{
    bytes_t *places[PG_ROW_FIELDS];
    store_code_t code = STORE_OK;
    for (size_t i = 0; i < PG_ROW_FIELDS; i++)
        places[i] = cell (self, i);
    begin_slice (self, TASK_TYPES, PG_ROW_FIELDS);
    for (size_t i = 0; code == STORE_OK && i < count; i++) {
        const image_t *image = &images->list[i];
        int32_t ns;
        code = space_of (self, image->record->ns, &ns, error);
        if (code != STORE_OK)
            break;
        pg_row_put (places, ns, image->record, image->payload, image->result, &self->scratch);
        end_row (self, PG_ROW_FIELDS);
        if (is_full (self, PG_ROW_FIELDS))
            code = update_slice (self, meta, order, error);
    }
    return code == STORE_OK ? update_slice (self, meta, order, error) : code;
}

/* New tasks. */

static store_code_t hand_copy_over (pg_writer_t *self, size_t most, store_error_t *error)
{
    if (self->copy.length < most)
        return STORE_OK;
    store_code_t code = pg_link_copy_put (self->link, self->copy.data, self->copy.length, error);
    bytes_clear (&self->copy);
    return code;
}

static store_code_t begin_copy (pg_writer_t *self, const char *sql, store_error_t *error)
{
    bytes_clear (&self->copy);
    pg_copy_header (&self->copy);
    return pg_link_copy_begin (self->link, sql, error);
}

static store_code_t end_copy (pg_writer_t *self, store_error_t *error)
{
    pg_copy_trailer (&self->copy);
    store_code_t code = hand_copy_over (self, 0, error);
    return code == STORE_OK ? pg_link_copy_end (self->link, error) : code;
}

/* All namespaces are known before: no statement can run within a COPY. */
static store_code_t know_spaces (pg_writer_t *self, const images_t *images, size_t first,
                                 store_error_t *error)
{
    int32_t ns;
    store_code_t code = STORE_OK;
    for (size_t i = first; code == STORE_OK && i < images->count; i++)
        code = space_of (self, images->list[i].record->ns, &ns, error);
    return code;
}

static store_code_t write_new (pg_writer_t *self, const images_t *images, size_t first,
                               pg_meta_t *meta, order_t *order, store_error_t *error)
{
    bytes_t *places[PG_ROW_FIELDS];
    for (size_t i = 0; i < PG_ROW_FIELDS; i++)
        places[i] = &self->copy;
    if (first == images->count)
        return STORE_OK;
    store_code_t code = know_spaces (self, images, first, error);
    if (code == STORE_OK)
        code = begin_copy (self, PG_SQL_COPY_TASKS, error);
    for (size_t i = first; code == STORE_OK && i < images->count; i++) {
        const image_t *image = &images->list[i];
        int32_t ns = self->spaces[*place_of (self, image->record->ns) - 1].id;
        pg_copy_row (&self->copy, PG_ROW_FIELDS);
        pg_row_put (places, ns, image->record, image->payload, image->result, &self->scratch);
        meta->last_number = image->record->number;
        meta->tasks++;
        order_add (order, image->record->number, image->record->created_at);
        code = hand_copy_over (self, COPY_BYTES, error);
    }
    return code == STORE_OK ? end_copy (self, error) : code;
}

/* What tasks are found by. */

static const pg_type_t LABEL_TYPES[] = {PG_INT4, PG_INT8, PG_INT8, PG_TEXT, PG_BYTEA};
static const pg_type_t MARK_TYPES[] = {PG_INT4, PG_UUID, PG_INT8, PG_TEXT, PG_BYTEA};
enum { LABEL_COLUMNS = sizeof (LABEL_TYPES) / sizeof (LABEL_TYPES[0]) };

static void put_label (pg_writer_t *self, int32_t ns, int64_t number, int64_t place,
                       const char *key, const char *value)
{
    pg_put_int4 (cell (self, 0), ns);
    pg_put_int8 (cell (self, 1), number);
    pg_put_int8 (cell (self, 2), place);
    pg_put_text (cell (self, 3), key);
    pg_put_bytes (cell (self, 4), value, strlen (value));
    end_row (self, LABEL_COLUMNS);
}

static store_code_t run_labels (pg_writer_t *self, size_t statement, const pg_type_t *types,
                                store_error_t *error)
{
    store_code_t code = run_slice (self, statement, LABEL_COLUMNS, NULL, error);
    begin_slice (self, types, LABEL_COLUMNS);
    return code;
}

/* The index of those whom others act for: a mark at the first place behind the labels. */
static store_code_t put_labels (pg_writer_t *self, const record_t *record, store_error_t *error)
{
    int32_t ns;
    bool behalf = access_is_behalf (record->owner);
    if (record->labels_count == 0 && !behalf)
        return STORE_OK;
    store_code_t code = space_of (self, record->ns, &ns, error);
    if (code != STORE_OK)
        return code;
    for (size_t i = 0; i < record->labels_count; i++)
        put_label (self, ns, record->number, (int64_t) i, record->labels[i].key,
                   record->labels[i].value);
    if (behalf)
        put_label (self, ns, record->number, PG_MARK_PLACE, RECORD_MARK_OWNER, record->owner);
    return is_full (self, LABEL_COLUMNS) ? run_labels (self, PG_SQL_LABELS, LABEL_TYPES, error)
                                         : STORE_OK;
}

static store_code_t remove_labels (pg_writer_t *self, const images_t *images, store_error_t *error)
{
    store_code_t code = STORE_OK;
    begin_slice (self, LABEL_TYPES, 2);
    for (size_t i = 0; code == STORE_OK && i < images->count; i++) {
        const record_t *record = images->list[i].record;
        int32_t ns;
        if (!record->relabelled)
            continue;
        code = space_of (self, record->ns, &ns, error);
        if (code != STORE_OK)
            break;
        pg_put_int4 (cell (self, 0), ns);
        pg_put_int8 (cell (self, 1), record->number);
        end_row (self, 2);
        if (!is_full (self, 2))
            continue;
        code = run_slice (self, PG_SQL_RELABELLED, 2, NULL, error);
        begin_slice (self, LABEL_TYPES, 2);
    }
    return code == STORE_OK ? run_slice (self, PG_SQL_RELABELLED, 2, NULL, error) : code;
}

static store_code_t write_labels (pg_writer_t *self, const images_t *images, store_error_t *error)
{
    store_code_t code = remove_labels (self, images, error);
    begin_slice (self, LABEL_TYPES, LABEL_COLUMNS);
    for (size_t i = 0; code == STORE_OK && i < images->count; i++)
        code = put_labels (self, images->list[i].record, error);
    return code == STORE_OK ? run_labels (self, PG_SQL_LABELS, LABEL_TYPES, error) : code;
}

static store_code_t put_marks (pg_writer_t *self, const row_t *row, store_error_t *error)
{
    int32_t ns = 0;
    int64_t place;
    marks_t marks;
    turn_mark_t mark;
    if (!marks_open (&marks, row))
        return STORE_OK;
    store_code_t code = space_of (self, marks.ns, &ns, error);
    while (code == STORE_OK && marks_next (&marks, &mark, &place)) {
        pg_put_int4 (cell (self, 0), ns);
        pg_put_id (cell (self, 1), marks.id);
        pg_put_int8 (cell (self, 2), place);
        pg_put_text (cell (self, 3), mark.key);
        pg_put_bytes (cell (self, 4), mark.value, mark.length);
        end_row (self, LABEL_COLUMNS);
        if (is_full (self, LABEL_COLUMNS))
            code = run_labels (self, PG_SQL_MARKS, MARK_TYPES, error);
    }
    return code;
}

static store_code_t write_marks (pg_writer_t *self, const row_list_t *rows, store_error_t *error)
{
    store_code_t code = STORE_OK;
    begin_slice (self, MARK_TYPES, LABEL_COLUMNS);
    for (size_t i = 0; code == STORE_OK && i < rows->count; i++)
        code = put_marks (self, &rows->rows[i], error);
    return code == STORE_OK ? run_labels (self, PG_SQL_MARKS, MARK_TYPES, error) : code;
}

/* Attempts. */

static const pg_type_t ATTEMPT_TYPES[] = {PG_INT4, PG_INT8, PG_INT8,  PG_TEXT,  PG_INT8, PG_INT8,
                                          PG_INT2, PG_INT4, PG_BYTEA, PG_BYTEA, PG_BYTEA};
enum { ATTEMPT_COLUMNS = sizeof (ATTEMPT_TYPES) / sizeof (ATTEMPT_TYPES[0]) };

/* By number; the images are sorted. */
static const record_t *find_image (const images_t *images, int64_t number)
{
    size_t low = 0;
    size_t high = images->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (images->list[middle].record->number < number)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < images->count && images->list[low].record->number == number;
    return found ? images->list[low].record : NULL;
}

static store_code_t put_attempt (pg_writer_t *self, const images_t *images,
                                 const attempt_t *attempt, store_error_t *error)
{
    int32_t ns = 0;
    const record_t *task = find_image (images, attempt->number);
    store_code_t code = task == NULL ? STORE_OK : space_of (self, task->ns, &ns, error);
    if (code != STORE_OK)
        return code;
    if (task == NULL)
        pg_put_null (cell (self, 0));
    else
        pg_put_int4 (cell (self, 0), ns);
    pg_put_int8 (cell (self, 1), attempt->number);
    pg_put_int8 (cell (self, 2), attempt->attempt);
    pg_put_text (cell (self, 3), attempt->worker);
    pg_put_int8 (cell (self, 4), attempt->started_at);
    pg_put_int8 (cell (self, 5), attempt->ended_at);
    pg_put_int2 (cell (self, 6), (int16_t) attempt->how);
    pg_put_int4 (cell (self, 7), attempt->error_code);
    pg_put_bytes (cell (self, 8), attempt->error_message, strlen (attempt->error_message));
    pg_put_bytes (cell (self, 9), attempt->secret, sizeof (attempt->secret));
    pg_put_bytes (cell (self, 10), attempt->request_id, sizeof (attempt->request_id));
    end_row (self, ATTEMPT_COLUMNS);
    return STORE_OK;
}

/* A removed task takes its attempts along. */
static store_code_t write_attempts (pg_writer_t *self, const dirty_t *dirty, store_error_t *error)
{
    const images_t *images = &dirty->images;
    store_code_t code = STORE_OK;
    begin_slice (self, ATTEMPT_TYPES, ATTEMPT_COLUMNS);
    for (size_t i = 0; i < dirty->count; i++)
        for (size_t k = 0; code == STORE_OK && k < dirty->batches[i]->attempts_count; k++) {
            const attempt_t *attempt = &dirty->batches[i]->attempts[k];
            if (images_is_removed (images, attempt->number))
                continue;
            code = put_attempt (self, images, attempt, error);
            if (code != STORE_OK || !is_full (self, ATTEMPT_COLUMNS))
                continue;
            code = run_slice (self, PG_SQL_ATTEMPTS, ATTEMPT_COLUMNS, NULL, error);
            begin_slice (self, ATTEMPT_TYPES, ATTEMPT_COLUMNS);
        }
    return code == STORE_OK ? run_slice (self, PG_SQL_ATTEMPTS, ATTEMPT_COLUMNS, NULL, error)
                            : code;
}

/* Events. */

enum { EVENT_COLUMNS = 6 };

static void put_block (pg_writer_t *self, const event_block_t *block, int64_t at, pg_meta_t *meta)
{
    bytes_t *copy = &self->copy;
    pg_copy_row (copy, EVENT_COLUMNS);
    pg_put_int4 (copy, self->spaces[*place_of (self, block->ns) - 1].id);
    pg_put_int8 (copy, (int64_t) block->first_seq);
    pg_put_int8 (copy, (int64_t) block->first_pos);
    pg_put_int4 (copy, (int32_t) block->count);
    pg_put_int8 (copy, at);
    pg_put_bytes (copy, buf_bytes (block->list), buf_length (block->list));
    meta->event_bytes += buf_length (block->list);
    uint64_t last_pos = block->first_pos + block->count - 1;
    if (last_pos > meta->last_pos)
        meta->last_pos = last_pos;
}

static store_code_t know_block_spaces (pg_writer_t *self, const dirty_t *dirty, size_t *blocks,
                                       store_error_t *error)
{
    int32_t ns;
    store_code_t code = STORE_OK;
    *blocks = 0;
    for (size_t i = 0; i < dirty->count; i++)
        for (size_t k = 0; code == STORE_OK && k < dirty->batches[i]->blocks_count; k++) {
            code = space_of (self, dirty->batches[i]->blocks[k].ns, &ns, error);
            (*blocks)++;
        }
    return code;
}

static store_code_t write_events (pg_writer_t *self, const dirty_t *dirty, pg_meta_t *meta,
                                  store_error_t *error)
{
    size_t blocks;
    store_code_t code = know_block_spaces (self, dirty, &blocks, error);
    if (code != STORE_OK || blocks == 0)
        return code;
    code = begin_copy (self, PG_SQL_COPY_EVENTS, error);
    for (size_t i = 0; i < dirty->count; i++)
        for (size_t k = 0; code == STORE_OK && k < dirty->batches[i]->blocks_count; k++) {
            put_block (self, &dirty->batches[i]->blocks[k], dirty->batches[i]->wall_ms, meta);
            code = hand_copy_over (self, COPY_BYTES, error);
        }
    return code == STORE_OK ? end_copy (self, error) : code;
}

/* Rows of kinds. */

static const pg_type_t ROW_TYPES[] = {PG_INT2, PG_BYTEA, PG_BYTEA, PG_INT8};
enum { ROW_COLUMNS = sizeof (ROW_TYPES) / sizeof (ROW_TYPES[0]), ROW_KEY_COLUMNS = 2 };

static void put_row (pg_writer_t *self, const row_t *row)
{
    pg_put_int2 (cell (self, 0), (int16_t) row->kind);
    pg_put_bytes (cell (self, 1), buf_bytes (row->key), buf_length (row->key));
    pg_put_bytes (cell (self, 2), buf_bytes (row->body), buf_length (row->body));
    pg_put_int8 (cell (self, 3), row->expires_at);
    end_row (self, ROW_COLUMNS);
}

static store_code_t run_rows (pg_writer_t *self, bool gone, store_error_t *error)
{
    pg_params_t params;
    size_t count = gone ? ROW_KEY_COLUMNS : ROW_COLUMNS;
    store_code_t code = STORE_OK;
    pg_params_clear (&params);
    pg_param_int2 (&params, PG_SHARD);
    for (size_t i = 0; i < count; i++)
        pg_param_array (&params, &self->arrays[i]);
    if (self->arrays[0].count > 0)
        code =
            pg_link_run (self->link, gone ? PG_SQL_ROWS_DELETE : PG_SQL_ROWS, &params, NULL, error);
    begin_slice (self, ROW_TYPES, ROW_COLUMNS);
    return code;
}

static store_code_t write_rows (pg_writer_t *self, const row_list_t *rows, bool gone,
                                store_error_t *error)
{
    store_code_t code = STORE_OK;
    begin_slice (self, ROW_TYPES, ROW_COLUMNS);
    for (size_t i = 0; code == STORE_OK && i < rows->count; i++) {
        if (rows->rows[i].gone != gone)
            continue;
        put_row (self, &rows->rows[i]);
        if (is_full (self, ROW_COLUMNS))
            code = run_rows (self, gone, error);
    }
    return code == STORE_OK ? run_rows (self, gone, error) : code;
}

store_code_t pg_writer_put_row (pg_writer_t *self, const row_t *row, store_error_t *error)
{
    begin_slice (self, ROW_TYPES, ROW_COLUMNS);
    put_row (self, row);
    return run_rows (self, false, error);
}

store_code_t pg_writer_put_order (pg_writer_t *self, const order_t *order, store_error_t *error)
{
    uint8_t body[ORDER_BYTES];
    order_pack (order, body);
    row_t row = row_make (ROW_KIND_ORDER, ORDER_KEY, sizeof (ORDER_KEY), body, sizeof (body));
    store_code_t code = pg_writer_put_row (self, &row, error);
    row_drop (&row);
    return code;
}

store_code_t pg_writer_put_meta (pg_writer_t *self, const pg_meta_t *meta, store_error_t *error)
{
    pg_params_t params;
    pg_params_clear (&params);
    pg_param_int2 (&params, PG_SHARD);
    pg_param_int8 (&params, (int64_t) meta->epoch);
    pg_param_int8 (&params, (int64_t) meta->batch);
    pg_param_int8 (&params, meta->last_number);
    pg_param_int8 (&params, (int64_t) meta->last_pos);
    pg_param_int8 (&params, meta->newest_ms);
    pg_param_int8 (&params, (int64_t) meta->tasks);
    pg_param_int8 (&params, (int64_t) meta->tombstones);
    pg_param_int8 (&params, (int64_t) meta->event_bytes);
    return pg_link_run (self->link, PG_SQL_WRITTEN, &params, NULL, error);
}

/* All of it. Old tasks come before the new ones: a dedup key that one left is free then. */
store_code_t pg_writer_write (pg_writer_t *self, const dirty_t *dirty, pg_meta_t *meta,
                              order_t *order, uint64_t *removals, store_error_t *error)
{
    const images_t *images = &dirty->images;
    if (self->spaces_count > SPACES_MAX)
        pg_writer_forget_spaces (self);
    store_code_t code = write_removals (self, dirty, meta, removals, error);
    size_t old = 0;
    while (old < images->count && images->list[old].record->number <= meta->last_number)
        old++;
    if (code == STORE_OK)
        code = write_old (self, images, old, meta, order, error);
    if (code == STORE_OK)
        code = write_new (self, images, old, meta, order, error);
    if (code == STORE_OK)
        code = write_labels (self, images, error);
    if (code == STORE_OK)
        code = write_attempts (self, dirty, error);
    if (code == STORE_OK)
        code = write_events (self, dirty, meta, error);
    if (code == STORE_OK)
        code = write_rows (self, &dirty->rows, true, error);
    if (code == STORE_OK)
        code = write_rows (self, &dirty->rows, false, error);
    if (code == STORE_OK)
        code = write_marks (self, &dirty->rows, error);
    if (code == STORE_OK && dirty->count > 0)
        /* Also when the clock came back: a start finds a leap that was not believed once more. */
        meta->newest_ms = dirty->batches[dirty->count - 1]->expiry_ms;
    return code;
}
