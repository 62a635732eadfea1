/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/postgresql/pg_values.h"

#include <stdlib.h>
#include <string.h>

/* Numbers. */

static void put_number (uint8_t *to, uint64_t value, size_t size)
{
    for (size_t i = size; i > 0; i--, value >>= 8)
        to[i - 1] = (uint8_t) value;
}

static uint64_t get_number (const uint8_t *from, size_t size)
{
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++)
        value = value << 8 | from[i];
    return value;
}

/* Fields. What was committed must be written: without memory the process ends. */

static uint8_t *reserve (bytes_t *to, size_t size)
{
    uint8_t *room = bytes_reserve (to, size);
    if (room == NULL)
        abort ();
    to->length += size;
    return room;
}

static void put_sized (bytes_t *to, uint64_t value, size_t size)
{
    uint8_t *room = reserve (to, 4 + size);
    put_number (room, size, 4);
    put_number (room + 4, value, size);
}

void pg_put_null (bytes_t *to)
{
    put_number (reserve (to, 4), UINT32_MAX, 4);
}

void pg_put_bool (bytes_t *to, bool value)
{
    put_sized (to, value, 1);
}

void pg_put_int2 (bytes_t *to, int16_t value)
{
    put_sized (to, (uint64_t) value, 2);
}

void pg_put_int4 (bytes_t *to, int32_t value)
{
    put_sized (to, (uint64_t) value, 4);
}

void pg_put_int8 (bytes_t *to, int64_t value)
{
    put_sized (to, (uint64_t) value, 8);
}

void pg_put_bytes (bytes_t *to, const void *bytes, size_t length)
{
    uint8_t *room = reserve (to, 4 + length);
    put_number (room, length, 4);
    if (length > 0)
        memcpy (room + 4, bytes, length);
}

void pg_put_text (bytes_t *to, const char *text)
{
    pg_put_bytes (to, text, strlen (text));
}

void pg_put_text_or_null (bytes_t *to, const char *text)
{
    if (text[0] == '\0')
        pg_put_null (to);
    else
        pg_put_text (to, text);
}

void pg_put_body (bytes_t *to, const buf_t *body)
{
    if (buf_length (body) == 0)
        pg_put_null (to);
    else
        pg_put_bytes (to, buf_bytes (body), buf_length (body));
}

void pg_put_id (bytes_t *to, const uint8_t id[16])
{
    pg_put_bytes (to, id, 16);
}

/* A COPY. */

void pg_copy_header (bytes_t *to)
{
    static const uint8_t HEADER[19] = "PGCOPY\n\377\r\n"; /* its NUL, flags, no extension */
    memcpy (reserve (to, sizeof (HEADER)), HEADER, sizeof (HEADER));
}

void pg_copy_row (bytes_t *to, int16_t fields)
{
    put_number (reserve (to, 2), (uint64_t) fields, 2);
}

void pg_copy_trailer (bytes_t *to)
{
    put_number (reserve (to, 2), UINT16_MAX, 2);
}

/* Arrays: dimensions, flags, type of the elements, count, number of the first one. */

enum { ARRAY_HEADER_BYTES = 20, ARRAY_EMPTY_BYTES = 12 };

void pg_array_begin (pg_array_t *self, pg_type_t type)
{
    bytes_clear (&self->bytes);
    self->count = 0;
    uint8_t *header = reserve (&self->bytes, ARRAY_HEADER_BYTES);
    put_number (header, 1, 4);
    put_number (header + 4, 1, 4); /* some may be NULL */
    put_number (header + 8, (uint64_t) type, 4);
    put_number (header + 12, 0, 4);
    put_number (header + 16, 1, 4);
}

void pg_array_free (pg_array_t *self)
{
    bytes_free (&self->bytes);
}

/* Parameters. */

enum { BINARY = 1 };

void pg_params_clear (pg_params_t *self)
{
    self->count = 0;
}

static void add (pg_params_t *self, const void *value, size_t length)
{
    if (self->count == PG_PARAMS_MAX)
        abort (); /* a statement of this room has more than there is room for */
    self->values[self->count] = value;
    self->lengths[self->count] = (int) length;
    self->formats[self->count++] = BINARY;
}

static void add_number (pg_params_t *self, uint64_t value, size_t size)
{
    if (self->count < PG_PARAMS_MAX)
        put_number (self->numbers[self->count], value, size);
    add (self, self->numbers[self->count % PG_PARAMS_MAX], size);
}

void pg_param_null (pg_params_t *self)
{
    add (self, NULL, 0);
}

void pg_param_bool (pg_params_t *self, bool value)
{
    add_number (self, value, 1);
}

void pg_param_int2 (pg_params_t *self, int16_t value)
{
    add_number (self, (uint64_t) value, 2);
}

void pg_param_int4 (pg_params_t *self, int32_t value)
{
    add_number (self, (uint64_t) value, 4);
}

void pg_param_int8 (pg_params_t *self, int64_t value)
{
    add_number (self, (uint64_t) value, 8);
}

void pg_param_text (pg_params_t *self, const char *text)
{
    add (self, text, strlen (text));
}

void pg_param_bytes (pg_params_t *self, const void *bytes, size_t length)
{
    add (self, length == 0 ? "" : bytes, length);
}

void pg_param_id (pg_params_t *self, const uint8_t id[16])
{
    add (self, id, 16);
}

void pg_param_array (pg_params_t *self, pg_array_t *array)
{
    put_number (array->bytes.data, array->count > 0, 4);
    put_number (array->bytes.data + 12, (uint64_t) array->count, 4);
    add (self, array->bytes.data, array->count > 0 ? array->bytes.length : ARRAY_EMPTY_BYTES);
}

/* Cells. */

bool pg_is_null (const PGresult *result, int row, int column)
{
    return PQgetisnull (result, row, column) != 0;
}

/* A cell of another size than is expected reads as 0: the statements say the types. */
static uint64_t cell_number (const PGresult *result, int row, int column, size_t size)
{
    if (pg_is_null (result, row, column) || (size_t) PQgetlength (result, row, column) != size)
        return 0;
    return get_number ((const uint8_t *) PQgetvalue (result, row, column), size);
}

bool pg_bool (const PGresult *result, int row, int column)
{
    return cell_number (result, row, column, 1) != 0;
}

int16_t pg_int2 (const PGresult *result, int row, int column)
{
    return (int16_t) cell_number (result, row, column, 2);
}

int32_t pg_int4 (const PGresult *result, int row, int column)
{
    return (int32_t) cell_number (result, row, column, 4);
}

int64_t pg_int8 (const PGresult *result, int row, int column)
{
    return (int64_t) cell_number (result, row, column, 8);
}

/* libpq puts a NUL behind each value. */
const char *pg_text (const PGresult *result, int row, int column)
{
    return pg_is_null (result, row, column) ? "" : PQgetvalue (result, row, column);
}

const uint8_t *pg_bytes (const PGresult *result, int row, int column, size_t *length)
{
    bool none = pg_is_null (result, row, column);
    *length = none ? 0 : (size_t) PQgetlength (result, row, column);
    return (const uint8_t *) (none ? "" : PQgetvalue (result, row, column));
}

void pg_fixed (const PGresult *result, int row, int column, uint8_t *to, size_t size)
{
    size_t length;
    const uint8_t *bytes = pg_bytes (result, row, column, &length);
    memset (to, 0, size);
    memcpy (to, bytes, length < size ? length : size);
}

buf_t *pg_body (const PGresult *result, int row, int column)
{
    size_t length;
    const uint8_t *bytes = pg_bytes (result, row, column, &length);
    return length == 0 ? NULL : buf_new (bytes, length);
}
