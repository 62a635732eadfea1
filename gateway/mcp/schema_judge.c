/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Judging: a value goes down through the nodes. A place is a value with what was evaluated of it;
 * marks of a subschema that does not take the value are forgotten. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ids.h"
#include "mcp/schema_parts.h"

enum { PATH_SIZE = 256 };

/* Resources that were entered, from the innermost out: the dynamic scope. */
typedef struct scope {
    size_t resource;
    const struct scope *outer;
} scope_t;

struct place {
    const json_t *value;
    uint8_t *marks; /* one for each member or item; NULL: nobody asks */
    const scope_t *scope;
};

struct judge {
    const schema_t *schema;
    size_t steps;
    size_t effort; /* that patterns may take still */
    size_t nesting;
    size_t trials;       /* inside of what may fail: flaws are not told */
    const char *stopped; /* by which bound; NULL: it goes on */
    size_t flaws;
    bytes_t *out;
    char path[PATH_SIZE];
};

static bool takes (judge_t *self, const node_t *node, place_t *at);

/* Steps and flaws. */

static bool step (judge_t *self, size_t count)
{
    self->steps += count;
    if (self->steps > SCHEMA_STEPS_MAX && self->stopped == NULL)
        self->stopped = "it takes more steps to judge than are allowed";
    return self->stopped == NULL;
}

static void tell (judge_t *self, const char *flaw, const char *more)
{
    if (self->out == NULL || self->flaws++ >= SCHEMA_FLAWS_MAX)
        return;
    bytes_append_text (self->out, self->path[0] != '\0' ? self->path : "(the whole)");
    bytes_append_text (self->out, ": ");
    bytes_append_text (self->out, flaw);
    if (more != NULL) {
        bytes_append_text (self->out, " ");
        bytes_append_text (self->out, more);
    }
    bytes_append_byte (self->out, '\n');
}

static bool flawed (judge_t *self, const check_t *check, const char *more)
{
    if (self->trials == 0 && self->stopped == NULL)
        tell (self, check->keyword->flaw, more);
    return false;
}

/* … with the keyword's value. */
static bool flawed_by (judge_t *self, const check_t *check)
{
    char text[120] = "";
    if (self->trials == 0) {
        const size_t length =
            json_dumpb (check->value, text, sizeof text - 1, JSON_ENCODE_ANY | JSON_COMPACT);
        text[length < sizeof text ? length : 0] = '\0';
    }
    return flawed (self, check, text);
}

static size_t go_down (judge_t *self, const char *name)
{
    const size_t length = strlen (self->path);
    size_t at = length;
    if (at + 2 < sizeof self->path)
        self->path[at++] = '/';
    for (; *name != '\0' && at + 3 < sizeof self->path; name++) {
        const bool escaped = *name == '~' || *name == '/';
        if (escaped)
            self->path[at++] = '~';
        self->path[at++] = !escaped ? *name : *name == '~' ? '0' : '1';
    }
    self->path[at] = '\0';
    return length;
}

static bool child_takes (judge_t *self, const node_t *node, const place_t *of, const json_t *value,
                         const char *name)
{
    place_t at = {value, NULL, of->scope};
    const size_t length = go_down (self, name);
    const bool good = takes (self, node, &at);
    self->path[length] = '\0';
    return good;
}

static bool item_takes (judge_t *self, const node_t *node, const place_t *of, size_t index)
{
    char name[24];
    snprintf (name, sizeof name, "%zu", index);
    return child_takes (self, node, of, json_array_get (of->value, index), name);
}

/* Values. */

static int compare_numbers (const json_t *one, const json_t *two)
{
    if (json_is_integer (one) && json_is_integer (two)) {
        const json_int_t a = json_integer_value (one);
        const json_int_t b = json_integer_value (two);
        return a < b ? -1 : a > b;
    }
    const long double a = json_is_integer (one) ? (long double) json_integer_value (one)
                                                : (long double) json_real_value (one);
    const long double b = json_is_integer (two) ? (long double) json_integer_value (two)
                                                : (long double) json_real_value (two);
    return a < b ? -1 : a > b;
}

static bool equal (judge_t *self, const json_t *one, const json_t *two)
{
    const char *key;
    json_t *value;
    if (!step (self, 1))
        return false;
    if (json_is_number (one) && json_is_number (two))
        return compare_numbers (one, two) == 0;
    if (json_typeof (one) != json_typeof (two))
        return false;
    if (json_is_array (one)) {
        const size_t count = json_array_size (one);
        for (size_t i = 0; count == json_array_size (two) && i < count; i++)
            if (!equal (self, json_array_get (one, i), json_array_get (two, i)))
                return false;
        return count == json_array_size (two);
    }
    if (!json_is_object (one))
        return json_equal (one, two);
    if (json_object_size (one) != json_object_size (two))
        return false;
    json_object_foreach ((json_t *) one, key, value)
    {
        const json_t *other = json_object_get (two, key);
        if (other == NULL || !equal (self, value, other))
            return false;
    }
    return true;
}

static bool is_whole (const json_t *value)
{
    const double number = json_real_value (value);
    return json_is_integer (value) ||
           (json_is_real (value) && isfinite (number) && floor (number) == number);
}

static bool is_of_type (const json_t *value, const char *type)
{
    switch (json_typeof (value)) {
    case JSON_NULL: return strcmp (type, "null") == 0;
    case JSON_TRUE:
    case JSON_FALSE: return strcmp (type, "boolean") == 0;
    case JSON_OBJECT: return strcmp (type, "object") == 0;
    case JSON_ARRAY: return strcmp (type, "array") == 0;
    case JSON_STRING: return strcmp (type, "string") == 0;
    default:
        return strcmp (type, "number") == 0 || (strcmp (type, "integer") == 0 && is_whole (value));
    }
}

/* Any value. */

static bool check_type (judge_t *judge, const node_t *node, const check_t *check, place_t *at)
{
    size_t i;
    const json_t *name;
    (void) node;
    if (json_is_string (check->value))
        return is_of_type (at->value, json_string_value (check->value)) || flawed_by (judge, check);
    json_array_foreach (check->value, i, name)
    {
        if (is_of_type (at->value, json_string_value (name)))
            return true;
    }
    return flawed_by (judge, check);
}

static bool check_enum (judge_t *judge, const node_t *node, const check_t *check, place_t *at)
{
    size_t i;
    const json_t *value;
    (void) node;
    json_array_foreach (check->value, i, value)
    {
        if (equal (judge, value, at->value))
            return true;
    }
    return flawed_by (judge, check);
}

static bool check_const (judge_t *judge, const node_t *node, const check_t *check, place_t *at)
{
    (void) node;
    return equal (judge, check->value, at->value) || flawed_by (judge, check);
}

/* Numbers. */

static bool check_multiple (judge_t *judge, const node_t *node, const check_t *check, place_t *at)
{
    (void) node;
    if (!json_is_number (at->value))
        return true;
    if (json_is_integer (at->value) && json_is_integer (check->value))
        return json_integer_value (at->value) % json_integer_value (check->value) == 0 ||
               flawed_by (judge, check);
    const double value = json_number_value (at->value);
    const double part = json_number_value (check->value);
    const double times = value / part;
    /* 0.0075 is no multiple of 0.0001 in binary, but is meant to be one. */
    const bool good = fmod (value, part) == 0 ||
                      (isfinite (times) &&
                       fabs (times - round (times)) <= 4 * 2.220446049250313e-16 * fabs (times));
    return good || flawed_by (judge, check);
}

static bool check_maximum (judge_t *judge, const node_t *node, const check_t *check, place_t *at)
{
    (void) node;
    return !json_is_number (at->value) || compare_numbers (at->value, check->value) <= 0 ||
           flawed_by (judge, check);
}

static bool check_below (judge_t *judge, const node_t *node, const check_t *check, place_t *at)
{
    (void) node;
    return !json_is_number (at->value) || compare_numbers (at->value, check->value) < 0 ||
           flawed_by (judge, check);
}

static bool check_minimum (judge_t *judge, const node_t *node, const check_t *check, place_t *at)
{
    (void) node;
    return !json_is_number (at->value) || compare_numbers (at->value, check->value) >= 0 ||
           flawed_by (judge, check);
}

static bool check_above (judge_t *judge, const node_t *node, const check_t *check, place_t *at)
{
    (void) node;
    return !json_is_number (at->value) || compare_numbers (at->value, check->value) > 0 ||
           flawed_by (judge, check);
}

/* Texts. */

/* Characters, not bytes: those that begin one. */
static double text_length (const json_t *value)
{
    const char *text = json_string_value (value);
    size_t count = 0;
    for (size_t i = 0; i < json_string_length (value); i++)
        count += ((unsigned char) text[i] & 0xc0) != 0x80;
    return (double) count;
}

static bool check_max_length (judge_t *judge, const node_t *node, const check_t *check, place_t *at)
{
    (void) node;
    return !json_is_string (at->value) ||
           text_length (at->value) <= json_number_value (check->value) || flawed_by (judge, check);
}

static bool check_min_length (judge_t *judge, const node_t *node, const check_t *check, place_t *at)
{
    (void) node;
    return !json_is_string (at->value) ||
           text_length (at->value) >= json_number_value (check->value) || flawed_by (judge, check);
}

static bool matches (judge_t *self, const regex_t *regex, const char *text, size_t length)
{
    if (!step (self, 16 + length / 16))
        return false;
    const regex_verdict_t verdict = regex_match (regex, text, length, &self->effort);
    if (verdict == REGEX_TOO_DEAR && self->stopped == NULL)
        self->stopped = "its patterns cost more on it than is allowed";
    return verdict == REGEX_YES;
}

static bool check_pattern (judge_t *judge, const node_t *node, const check_t *check, place_t *at)
{
    (void) node;
    return !json_is_string (at->value) ||
           matches (judge, check->regexes[0], json_string_value (at->value),
                    json_string_length (at->value)) ||
           flawed_by (judge, check);
}

/* Arrays. */

static bool check_max_items (judge_t *judge, const node_t *node, const check_t *check, place_t *at)
{
    (void) node;
    return !json_is_array (at->value) ||
           (double) json_array_size (at->value) <= json_number_value (check->value) ||
           flawed_by (judge, check);
}

static bool check_min_items (judge_t *judge, const node_t *node, const check_t *check, place_t *at)
{
    (void) node;
    return !json_is_array (at->value) ||
           (double) json_array_size (at->value) >= json_number_value (check->value) ||
           flawed_by (judge, check);
}

static bool check_unique (judge_t *judge, const node_t *node, const check_t *check, place_t *at)
{
    (void) node;
    if (!json_is_array (at->value) || !json_is_true (check->value))
        return true;
    for (size_t i = 0; i < json_array_size (at->value); i++)
        for (size_t j = 0; j < i && judge->stopped == NULL; j++)
            if (equal (judge, json_array_get (at->value, i), json_array_get (at->value, j)))
                return flawed (judge, check, NULL);
    return true;
}

static void mark (place_t *at, size_t index)
{
    if (at->marks != NULL)
        at->marks[index] = 1;
}

static bool check_prefix (judge_t *judge, const node_t *node, const check_t *check, place_t *at)
{
    bool good = true;
    (void) node;
    for (size_t i = 0; i < check->count && i < json_array_size (at->value); i++) {
        good &= item_takes (judge, check->nodes[i], at, i);
        mark (at, i);
    }
    return good;
}

static bool check_items (judge_t *judge, const node_t *node, const check_t *check, place_t *at)
{
    const check_t *prefix = node_check (node, "prefixItems");
    bool good = true;
    for (size_t i = prefix != NULL ? prefix->count : 0; i < json_array_size (at->value); i++) {
        good &= item_takes (judge, check->nodes[0], at, i);
        mark (at, i);
    }
    return good;
}

static bool check_contains (judge_t *judge, const node_t *node, const check_t *check, place_t *at)
{
    const check_t *least = node_check (node, "minContains");
    const check_t *most = node_check (node, "maxContains");
    double count = 0;
    if (!json_is_array (at->value))
        return true;
    judge->trials++;
    for (size_t i = 0; i < json_array_size (at->value); i++) {
        if (!item_takes (judge, check->nodes[0], at, i))
            continue;
        mark (at, i);
        count++;
    }
    judge->trials--;
    if (count < (least != NULL ? json_number_value (least->value) : 1))
        return flawed (judge, least != NULL ? least : check, NULL);
    return most == NULL || count <= json_number_value (most->value) || flawed_by (judge, most);
}

static bool check_other_items (judge_t *judge, const node_t *node, const check_t *check,
                               place_t *at)
{
    bool good = true;
    (void) node;
    for (size_t i = 0; at->marks != NULL && i < json_array_size (at->value); i++) {
        if (at->marks[i] == 0)
            good &= item_takes (judge, check->nodes[0], at, i);
        at->marks[i] = 1;
    }
    return good;
}

/* Objects. */

static bool check_max_members (judge_t *judge, const node_t *node, const check_t *check,
                               place_t *at)
{
    (void) node;
    return !json_is_object (at->value) ||
           (double) json_object_size (at->value) <= json_number_value (check->value) ||
           flawed_by (judge, check);
}

static bool check_min_members (judge_t *judge, const node_t *node, const check_t *check,
                               place_t *at)
{
    (void) node;
    return !json_is_object (at->value) ||
           (double) json_object_size (at->value) >= json_number_value (check->value) ||
           flawed_by (judge, check);
}

static bool has_all (judge_t *self, const check_t *check, const json_t *value, const json_t *names)
{
    size_t i;
    const json_t *name;
    bool good = true;
    json_array_foreach (names, i, name)
    {
        if (json_object_get (value, json_string_value (name)) == NULL)
            good = flawed (self, check, json_string_value (name));
    }
    return good;
}

static bool check_required (judge_t *judge, const node_t *node, const check_t *check, place_t *at)
{
    (void) node;
    return !json_is_object (at->value) || has_all (judge, check, at->value, check->value);
}

static bool check_dependent (judge_t *judge, const node_t *node, const check_t *check, place_t *at)
{
    const char *key;
    json_t *names;
    bool good = true;
    (void) node;
    json_object_foreach ((json_t *) check->value, key, names)
    {
        if (json_object_get (at->value, key) != NULL)
            good &= has_all (judge, check, at->value, names);
    }
    return good;
}

static bool check_properties (judge_t *judge, const node_t *node, const check_t *check, place_t *at)
{
    const char *key;
    json_t *value;
    size_t i = 0;
    bool good = true;
    (void) node;
    if (!json_is_object (at->value))
        return true;
    json_object_foreach ((json_t *) check->value, key, value)
    {
        const json_t *member = json_object_get (at->value, key);
        if (member != NULL)
            good &= child_takes (judge, check->nodes[i], at, member, key);
        i++;
    }
    i = 0;
    if (at->marks != NULL) {
        json_object_foreach ((json_t *) at->value, key, value)
        {
            at->marks[i++] |= json_object_get (check->value, key) != NULL;
        }
    }
    return good;
}

static bool check_pattern_properties (judge_t *judge, const node_t *node, const check_t *check,
                                      place_t *at)
{
    const char *key;
    json_t *value;
    size_t i = 0;
    bool good = true;
    (void) node;
    json_object_foreach ((json_t *) at->value, key, value)
    {
        for (size_t j = 0; j < check->count; j++) {
            if (!matches (judge, check->regexes[j], key, strlen (key)))
                continue;
            good &= child_takes (judge, check->nodes[j], at, value, key);
            mark (at, i);
        }
        i++;
    }
    return good;
}

/* By the keywords beside it that look at members by their names. */
static bool is_named (judge_t *self, const check_t *names, const check_t *patterns, const char *key)
{
    if (names != NULL && json_object_get (names->value, key) != NULL)
        return true;
    for (size_t i = 0; patterns != NULL && i < patterns->count; i++)
        if (matches (self, patterns->regexes[i], key, strlen (key)))
            return true;
    return false;
}

static bool other_takes (judge_t *judge, const check_t *check, const place_t *at,
                         const json_t *value, const char *key)
{
    if (!json_is_false (check->nodes[0]->json))
        return child_takes (judge, check->nodes[0], at, value, key);
    return flawed (judge, check, key);
}

static bool check_additional (judge_t *judge, const node_t *node, const check_t *check, place_t *at)
{
    const check_t *names = node_check (node, "properties");
    const check_t *patterns = node_check (node, "patternProperties");
    const char *key;
    json_t *value;
    size_t i = 0;
    bool good = true;
    json_object_foreach ((json_t *) at->value, key, value)
    {
        if (!is_named (judge, names, patterns, key)) {
            good &= other_takes (judge, check, at, value, key);
            mark (at, i);
        }
        i++;
    }
    return good;
}

static bool check_names (judge_t *judge, const node_t *node, const check_t *check, place_t *at)
{
    const char *key;
    json_t *value;
    bool good = true;
    (void) node;
    json_object_foreach ((json_t *) at->value, key, value)
    {
        json_t *name = json_string (key);
        if (name == NULL) {
            judge->stopped = "memory is exhausted";
            return false;
        }
        judge->trials++;
        const bool one = child_takes (judge, check->nodes[0], at, name, key);
        judge->trials--;
        json_decref (name);
        if (!one)
            good = flawed (judge, check, key);
    }
    return good;
}

static bool check_other_members (judge_t *judge, const node_t *node, const check_t *check,
                                 place_t *at)
{
    const char *key;
    json_t *value;
    size_t i = 0;
    bool good = true;
    (void) node;
    if (at->marks == NULL)
        return true;
    json_object_foreach ((json_t *) at->value, key, value)
    {
        if (at->marks[i] == 0)
            good &= other_takes (judge, check, at, value, key);
        at->marks[i++] = 1;
    }
    return good;
}

/* Schemas that are applied to the same value. */

static size_t parts_of (const json_t *value)
{
    return json_is_object (value) ? json_object_size (value) : json_array_size (value);
}

/* Marks reach `at` only if it takes the value. */
static bool same_takes (judge_t *self, const node_t *node, place_t *at)
{
    const size_t parts = parts_of (at->value);
    place_t copy = *at;
    if (at->marks == NULL)
        return takes (self, node, &copy);
    if (!step (self, parts))
        return false;
    copy.marks = calloc (parts + 1, 1);
    if (copy.marks == NULL) {
        self->stopped = "memory is exhausted";
        return false;
    }
    const bool good = takes (self, node, &copy);
    for (size_t i = 0; good && i < parts; i++)
        at->marks[i] |= copy.marks[i];
    free (copy.marks);
    return good;
}

static bool tries (judge_t *self, const node_t *node, place_t *at)
{
    self->trials++;
    const bool good = same_takes (self, node, at);
    self->trials--;
    return good;
}

static bool check_all_of (judge_t *judge, const node_t *node, const check_t *check, place_t *at)
{
    bool good = true;
    (void) node;
    for (size_t i = 0; i < check->count; i++)
        good &= same_takes (judge, check->nodes[i], at);
    return good;
}

static bool check_any_of (judge_t *judge, const node_t *node, const check_t *check, place_t *at)
{
    bool good = false;
    (void) node;
    for (size_t i = 0; i < check->count && (!good || at->marks != NULL); i++)
        good |= tries (judge, check->nodes[i], at);
    return good || flawed (judge, check, NULL);
}

static bool check_one_of (judge_t *judge, const node_t *node, const check_t *check, place_t *at)
{
    size_t count = 0;
    (void) node;
    for (size_t i = 0; i < check->count; i++)
        count += tries (judge, check->nodes[i], at);
    return count == 1 || flawed (judge, check, NULL);
}

static bool check_not (judge_t *judge, const node_t *node, const check_t *check, place_t *at)
{
    (void) node;
    return !tries (judge, check->nodes[0], at) || flawed (judge, check, NULL);
}

static bool check_if (judge_t *judge, const node_t *node, const check_t *check, place_t *at)
{
    const check_t *then = node_check (node, tries (judge, check->nodes[0], at) ? "then" : "else");
    return then == NULL || same_takes (judge, then->nodes[0], at);
}

static bool check_dependents (judge_t *judge, const node_t *node, const check_t *check, place_t *at)
{
    const char *key;
    json_t *value;
    size_t i = 0;
    bool good = true;
    (void) node;
    json_object_foreach ((json_t *) check->value, key, value)
    {
        if (json_object_get (at->value, key) != NULL)
            good &= same_takes (judge, check->nodes[i], at);
        i++;
    }
    return good;
}

static bool check_reference (judge_t *judge, const node_t *node, const check_t *check, place_t *at)
{
    (void) node;
    return same_takes (judge, check->nodes[0], at);
}

/* The outermost resource that has an anchor of this name decides. */
static bool check_dynamic (judge_t *judge, const node_t *node, const check_t *check, place_t *at)
{
    const schema_t *schema = judge->schema;
    const node_t *target = check->nodes[0];
    (void) node;
    for (const scope_t *scope = at->scope; check->dynamic != NULL && scope != NULL;
         scope = scope->outer) {
        if (!step (judge, 1))
            return false;
        for (size_t i = 0; i < schema->anchors_count; i++)
            if (schema->anchors[i].dynamic && schema->anchors[i].resource == scope->resource &&
                strcmp (schema->anchors[i].name, check->dynamic) == 0)
                target = schema->anchors[i].node;
    }
    return same_takes (judge, target, at);
}

const keyword_t schema_keywords[] = {
    {"$recursiveRef", FORM_REFUSED, NULL, "is of draft 2019-09; now it is $dynamicRef"},
    {"$recursiveAnchor", FORM_REFUSED, NULL, "is of draft 2019-09; now it is $dynamicAnchor"},
    {"dependencies", FORM_REFUSED, NULL,
     "is of draft 7; now it is dependentRequired or dependentSchemas"},
    {"additionalItems", FORM_REFUSED, NULL, "is of draft 2019-09; now it is items"},
    {"$vocabulary", FORM_REFUSED, NULL, "is of schemas about schemas"},
    {"$defs", FORM_SCHEMA_MAP, NULL, NULL},
    {"$ref", FORM_REFERENCE, check_reference, NULL},
    {"$dynamicRef", FORM_REFERENCE, check_dynamic, NULL},
    {"type", FORM_TYPE, check_type, "is not of type"},
    {"enum", FORM_LIST, check_enum, "is none of"},
    {"const", FORM_ANY, check_const, "is not"},
    {"multipleOf", FORM_POSITIVE, check_multiple, "is no multiple of"},
    {"maximum", FORM_NUMBER, check_maximum, "is above"},
    {"exclusiveMaximum", FORM_NUMBER, check_below, "is not below"},
    {"minimum", FORM_NUMBER, check_minimum, "is below"},
    {"exclusiveMinimum", FORM_NUMBER, check_above, "is not above"},
    {"maxLength", FORM_COUNT, check_max_length, "has more characters than"},
    {"minLength", FORM_COUNT, check_min_length, "has fewer characters than"},
    {"pattern", FORM_PATTERN, check_pattern, "does not match"},
    {"maxItems", FORM_COUNT, check_max_items, "has more items than"},
    {"minItems", FORM_COUNT, check_min_items, "has fewer items than"},
    {"uniqueItems", FORM_BOOL, check_unique, "has equal items"},
    {"maxContains", FORM_COUNT, NULL, "has more items of that kind than"},
    {"minContains", FORM_COUNT, NULL, "has too few items of the kind that it must contain"},
    {"maxProperties", FORM_COUNT, check_max_members, "has more members than"},
    {"minProperties", FORM_COUNT, check_min_members, "has fewer members than"},
    {"required", FORM_NAMES, check_required, "has no"},
    {"dependentRequired", FORM_NAMES_MAP, check_dependent, "has not, as it must with others,"},
    {"prefixItems", FORM_SCHEMAS, check_prefix, NULL},
    {"items", FORM_SCHEMA, check_items, NULL},
    {"contains", FORM_SCHEMA, check_contains, "has no item of the kind that it must contain"},
    {"properties", FORM_SCHEMA_MAP, check_properties, NULL},
    {"patternProperties", FORM_PATTERN_MAP, check_pattern_properties, NULL},
    {"additionalProperties", FORM_SCHEMA, check_additional, "must not have"},
    {"propertyNames", FORM_SCHEMA, check_names, "must not have a member of the name"},
    {"allOf", FORM_SCHEMAS, check_all_of, NULL},
    {"anyOf", FORM_SCHEMAS, check_any_of, "is none of what it may be (anyOf)"},
    {"oneOf", FORM_SCHEMAS, check_one_of, "is not exactly one of what it may be (oneOf)"},
    {"not", FORM_SCHEMA, check_not, "is what it must not be (not)"},
    {"then", FORM_SCHEMA, NULL, NULL},
    {"else", FORM_SCHEMA, NULL, NULL},
    {"if", FORM_SCHEMA, check_if, NULL},
    {"dependentSchemas", FORM_SCHEMA_MAP, check_dependents, NULL},
    {"contentSchema", FORM_SCHEMA, NULL, NULL},
    {"unevaluatedItems", FORM_SCHEMA, check_other_items, NULL},
    {"unevaluatedProperties", FORM_SCHEMA, check_other_members, "must not have"},
    {NULL, FORM_ANY, NULL, NULL}};

/* Nodes. */

static bool runs (judge_t *self, const node_t *node, place_t *at)
{
    bool good = true;
    for (size_t i = 0; i < node->count && self->stopped == NULL; i++) {
        const check_t *check = &node->checks[i];
        if (!step (self, 1 + parts_of (at->value) / 8))
            return false;
        if (check->keyword->check != NULL)
            good &= check->keyword->check (self, node, check, at);
        if (!good && self->trials > 0)
            return false;
    }
    return good && self->stopped == NULL;
}

static bool takes (judge_t *self, const node_t *node, place_t *at)
{
    static const keyword_t never = {"false", FORM_ANY, NULL, "must not be there"};
    static const check_t nothing = {.keyword = &never};
    const scope_t scope = {node->resource, at->scope};
    const size_t parts = parts_of (at->value);
    if (json_is_boolean (node->json))
        return json_is_true (node->json) || flawed (self, &nothing, NULL);
    if (!step (self, 1))
        return false;
    if (self->nesting == SCHEMA_NESTING_MAX) {
        self->stopped = "schemas are applied deeper inside each other than is allowed";
        return false;
    }
    place_t here = *at;
    uint8_t *own = NULL;
    if (here.scope == NULL || here.scope->resource != node->resource)
        here.scope = &scope;
    if (here.marks == NULL && self->schema->tracks && parts > 0) {
        here.marks = own = calloc (parts, 1);
        if (own == NULL) {
            self->stopped = "memory is exhausted";
            return false;
        }
    }
    self->nesting++;
    const bool good = runs (self, node, &here);
    self->nesting--;
    free (own);
    return good;
}

bool schema_takes (schema_t *self, const json_t *value, bytes_t *flaws)
{
    judge_t judge = {.schema = self, .effort = SCHEMA_EFFORT_MAX, .out = flaws};
    place_t at = {value, NULL, NULL};
    const bool good = takes (&judge, self->root, &at);
    if (judge.stopped == NULL)
        return good;
    judge.path[0] = '\0';
    judge.flaws = 0;
    tell (&judge, judge.stopped, NULL);
    return false;
}
