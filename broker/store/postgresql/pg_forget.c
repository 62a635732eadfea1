/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/postgresql/pg_forget.h"

#include <stdio.h>

#include "store/postgresql/pg_sql.h"

void pg_forget_init (pg_forget_t *self, pg_link_t *link)
{
    *self = (pg_forget_t){.link = link};
}

void pg_forget_destroy (pg_forget_t *self)
{
    pg_array_free (&self->spaces);
    pg_array_free (&self->firsts);
}

void pg_forget_begin (pg_forget_t *self)
{
    pg_array_begin (&self->spaces, PG_INT4);
    pg_array_begin (&self->firsts, PG_INT8);
    self->removes_age = self->removed_age;
    self->removes_pos = self->removed_pos;
}

void pg_forget_committed (pg_forget_t *self)
{
    self->removed_age = self->removes_age;
    self->removed_pos = self->removes_pos;
}

store_code_t pg_forget_flush (pg_forget_t *self, store_error_t *error)
{
    pg_params_t params;
    if (self->spaces.count == 0)
        return STORE_OK;
    pg_params_clear (&params);
    pg_param_array (&params, &self->spaces);
    pg_param_array (&params, &self->firsts);
    return pg_link_run (self->link, PG_SQL_EVENTS_DELETE, &params, NULL, error);
}

/* The lower bound of a look. What was removed stands in the index until it is vacuumed, and without
 * a bound each look would walk over it. */
static void put_bound (pg_params_t *params, int64_t bound)
{
    pg_params_clear (params);
    pg_param_int8 (params, bound);
    pg_param_int4 (params, FORGET_SLICE);
}

static store_code_t oldest_blocks (void *context, int64_t after_pos, forget_block_t *blocks,
                                   size_t *count, store_error_t *error)
{
    pg_forget_t *self = context;
    PGresult *result;
    pg_params_t params;
    put_bound (&params, after_pos > self->removed_pos ? after_pos : self->removed_pos);
    store_code_t code = pg_link_run (self->link, PG_SQL_EVENTS_OLDEST, &params, &result, error);
    *count = 0;
    for (int i = 0; code == STORE_OK && i < PQntuples (result); i++)
        blocks[(*count)++] = (forget_block_t){
            .ns = pg_int4 (result, i, 0),
            .first_seq = (uint64_t) pg_int8 (result, i, 1),
            .pos = pg_int8 (result, i, 2),
            .count = pg_int4 (result, i, 3),
            .at = pg_int8 (result, i, 4),
            .bytes = (uint64_t) pg_int4 (result, i, 5),
            .later = pg_bool (result, i, 6),
        };
    /* Nothing that is kept stands before the first one. */
    if (after_pos == 0 && *count > 0)
        self->removes_pos = blocks[0].pos - 1;
    PQclear (result);
    return code;
}

static void put_space (pg_params_t *params, int64_t ns)
{
    pg_params_clear (params);
    pg_param_int4 (params, (int32_t) ns);
}

static store_code_t is_needed (void *context, int64_t ns, bool *needed, store_error_t *error)
{
    pg_forget_t *self = context;
    PGresult *result;
    pg_params_t params;
    put_space (&params, ns);
    store_code_t code = pg_link_run (self->link, PG_SQL_SPACE_NEEDED, &params, &result, error);
    *needed = code == STORE_OK && pg_bool (result, 0, 0);
    PQclear (result);
    return code;
}

static store_code_t remove_block (void *context, const forget_block_t *block, store_error_t *error)
{
    (void) error;
    pg_forget_t *self = context;
    pg_put_int4 (&self->spaces.bytes, (int32_t) block->ns);
    pg_put_int8 (&self->firsts.bytes, (int64_t) block->first_seq);
    self->spaces.count++;
    self->firsts.count++;
    return STORE_OK;
}

static store_code_t remove_space (void *context, int64_t ns, char name[TMQ_NAME_LENGTH_MAX + 1],
                                  store_error_t *error)
{
    pg_forget_t *self = context;
    PGresult *result;
    pg_params_t params;
    put_space (&params, ns);
    store_code_t code = pg_link_run (self->link, PG_SQL_SPACE_NAME, &params, &result, error);
    if (code == STORE_OK && PQntuples (result) == 1)
        snprintf (name, TMQ_NAME_LENGTH_MAX + 1, "%s", pg_text (result, 0, 0));
    PQclear (result);
    return code == STORE_OK ? pg_link_run (self->link, PG_SQL_SPACE_DELETE, &params, NULL, error)
                            : code;
}

static store_code_t oldest_tombstones (void *context, forget_tombstone_t *list, size_t *count,
                                       store_error_t *error)
{
    pg_forget_t *self = context;
    PGresult *result;
    pg_params_t params;
    put_bound (&params, self->removed_age);
    store_code_t code = pg_link_run (self->link, PG_SQL_TOMBSTONES_OLDEST, &params, &result, error);
    *count = 0;
    for (int i = 0; code == STORE_OK && i < PQntuples (result); i++)
        list[(*count)++] = (forget_tombstone_t){pg_int8 (result, i, 0), pg_int8 (result, i, 1)};
    PQclear (result);
    return code;
}

static store_code_t remove_tombstones (void *context, int64_t upto_age, store_error_t *error)
{
    pg_forget_t *self = context;
    pg_params_t params;
    pg_params_clear (&params);
    pg_param_int8 (&params, self->removed_age);
    pg_param_int8 (&params, upto_age);
    self->removes_age = upto_age;
    return pg_link_run (self->link, PG_SQL_TOMBSTONES_DELETE, &params, NULL, error);
}

const forget_calls_t pg_forget_calls = {
    .blocks = oldest_blocks,
    .is_needed = is_needed,
    .remove_block = remove_block,
    .remove_space = remove_space,
    .tombstones = oldest_tombstones,
    .remove_tombstones = remove_tombstones,
};
