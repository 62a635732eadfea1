/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "record_fields.h"

#include <string.h>

#include "support/cmocka_all.h"

#define X(FORM, FIELD, WIRE)                                                                       \
    {#FIELD, RECORD_##FORM, offsetof (record_t, FIELD), sizeof (((record_t *) NULL)->FIELD), WIRE},
const record_field_t record_fields[] = {RECORD_FIELD_MAP (X)};
#undef X
const size_t record_fields_count = sizeof record_fields / sizeof record_fields[0];

const void *record_field_raw (const record_t *record, const record_field_t *field)
{
    return (const char *) record + field->offset;
}

int64_t record_field_number (const record_t *record, const record_field_t *field)
{
    const void *place = record_field_raw (record, field);
    if (field->form == RECORD_FLAG)
        return *(const bool *) place;
    if (field->size == 1)
        return *(const uint8_t *) place;
    if (field->size == 8)
        return *(const int64_t *) place;
    return *(const int32_t *) place;
}

const char *record_field_text (const record_t *record, const record_field_t *field)
{
    return *(const char *const *) record_field_raw (record, field);
}

static bool same_body (const buf_t *a, const buf_t *b)
{
    return buf_length (a) == buf_length (b) &&
           memcmp (buf_bytes (a), buf_bytes (b), buf_length (a)) == 0;
}

static bool same_field (const record_t *a, const record_t *b, const record_field_t *field)
{
    const void *from = record_field_raw (a, field);
    const void *to = record_field_raw (b, field);
    switch (field->form) {
    case RECORD_TEXT:
        return strcmp (record_field_text (a, field), record_field_text (b, field)) == 0;
    case RECORD_RAW: return memcmp (from, to, field->size) == 0;
    case RECORD_BODY:
    case RECORD_PACKED: return same_body (*(buf_t *const *) from, *(buf_t *const *) to);
    default: return record_field_number (a, field) == record_field_number (b, field);
    }
}

void assert_record_kept (const record_t *wanted, const record_t *found, bool bodies,
                         const char *where)
{
    assert_non_null (wanted);
    assert_non_null (found);
    for (size_t i = 0; i < record_fields_count; i++) {
        const record_field_t *field = &record_fields[i];
        if ((bodies || field->form != RECORD_BODY) && !same_field (wanted, found, field))
            fail_msg ("%s is not what it was: %s", field->name, where);
    }
    assert_int_equal (wanted->labels_count, found->labels_count);
    for (size_t i = 0; i < wanted->labels_count; i++) {
        assert_string_equal (wanted->labels[i].key, found->labels[i].key);
        assert_string_equal (wanted->labels[i].value, found->labels[i].value);
    }
}
