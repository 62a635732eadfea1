/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Values as PostgreSQL takes and gives them in binary: parameters, arrays, rows of a COPY, cells of
 * a result. Numbers stand with their highest byte first. */
#ifndef TASKMQ_STORE_PG_VALUES_H
#define TASKMQ_STORE_PG_VALUES_H

#include <libpq-fe.h>

#include "bytes.h"
#include "core/data/buf.h"
#include "taskmq_types.h"

/* Fields: a length and the value, as COPY and arrays have them. */

void pg_put_null (bytes_t *to);
void pg_put_bool (bytes_t *to, bool value);
void pg_put_int2 (bytes_t *to, int16_t value);
void pg_put_int4 (bytes_t *to, int32_t value);
void pg_put_int8 (bytes_t *to, int64_t value);
void pg_put_bytes (bytes_t *to, const void *bytes, size_t length);
void pg_put_text (bytes_t *to, const char *text);
void pg_put_text_or_null (bytes_t *to, const char *text); /* empty is NULL */
void pg_put_body (bytes_t *to, const buf_t *body);        /* none and empty are NULL */
void pg_put_id (bytes_t *to, const uint8_t id[16]);

/* A COPY. */

void pg_copy_header (bytes_t *to);
void pg_copy_row (bytes_t *to, int16_t fields); /* before the fields of each */
void pg_copy_trailer (bytes_t *to);

/* Arrays. */

typedef enum pg_type {
    PG_BOOL = 16,
    PG_BYTEA = 17,
    PG_INT8 = 20,
    PG_INT2 = 21,
    PG_INT4 = 23,
    PG_TEXT = 25,
    PG_UUID = 2950
} pg_type_t;

/* One dimension. Fields are put into `bytes`, and counted by whoever puts them. */
typedef struct pg_array {
    bytes_t bytes;
    int32_t count;
} pg_array_t;
void pg_array_begin (pg_array_t *self, pg_type_t type); /* keeps the memory of an earlier use */
void pg_array_free (pg_array_t *self);

/* Parameters. What they point to must live until the statement ran. */

enum { PG_PARAMS_MAX = 24 };
typedef struct pg_params {
    int count;
    const char *values[PG_PARAMS_MAX];
    int lengths[PG_PARAMS_MAX];
    int formats[PG_PARAMS_MAX];
    uint8_t numbers[PG_PARAMS_MAX][8];
} pg_params_t;
void pg_params_clear (pg_params_t *self);
void pg_param_null (pg_params_t *self);
void pg_param_bool (pg_params_t *self, bool value);
void pg_param_int2 (pg_params_t *self, int16_t value);
void pg_param_int4 (pg_params_t *self, int32_t value);
void pg_param_int8 (pg_params_t *self, int64_t value);
void pg_param_text (pg_params_t *self, const char *text);
void pg_param_bytes (pg_params_t *self, const void *bytes, size_t length);
void pg_param_id (pg_params_t *self, const uint8_t id[16]);
void pg_param_array (pg_params_t *self, pg_array_t *array); /* completes its header */

/* Cells of a binary result; NULL reads as 0, "" and no bytes. */

bool pg_is_null (const PGresult *result, int row, int column);
bool pg_bool (const PGresult *result, int row, int column);
int16_t pg_int2 (const PGresult *result, int row, int column);
int32_t pg_int4 (const PGresult *result, int row, int column);
int64_t pg_int8 (const PGresult *result, int row, int column);
const char *pg_text (const PGresult *result, int row, int column);
const uint8_t *pg_bytes (const PGresult *result, int row, int column, size_t *length);
/* Copies exactly size bytes; what is shorter is filled with zeroes. */
void pg_fixed (const PGresult *result, int row, int column, uint8_t *to, size_t size);
/* NULL: the cell is NULL or empty. */
buf_t *pg_body (const PGresult *result, int row, int column);

#endif
