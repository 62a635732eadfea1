/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Compiling: first every subschema becomes a node, then every reference finds its node. */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mcp/schema_parts.h"
#include "mcp/uri.h"

static const char DRAFT[] = "https://json-schema.org/draft/2020-12/schema";

enum { PLACES = 32768, POINTER_SIZE = 256 }; /* a power of two beyond twice SCHEMA_NODES_MAX */

typedef struct builder {
    schema_t *schema;
    char *error;
    node_t *places[PLACES]; /* by the JSON they stand for: open addressing */
    size_t depth;
    char pointer[POINTER_SIZE]; /* where it is; cut at its end */
} builder_t;

/* Where an error is. */
__attribute__ ((format (printf, 2, 3))) static bool refuse (const builder_t *self,
                                                            const char *format, ...)
{
    char reason[SCHEMA_ERROR_SIZE - POINTER_SIZE - 8];
    va_list list;
    va_start (list, format);
    vsnprintf (reason, sizeof reason, format, list);
    va_end (list);
    if (self->error[0] == '\0')
        snprintf (self->error, SCHEMA_ERROR_SIZE, "#%s: %s", self->pointer, reason);
    return false;
}

static size_t go_down (builder_t *self, const char *name)
{
    const size_t length = strlen (self->pointer);
    snprintf (self->pointer + length, POINTER_SIZE - length, "/%s", name);
    return length;
}

static size_t go_down_at (builder_t *self, size_t index)
{
    char name[24];
    snprintf (name, sizeof name, "%zu", index);
    return go_down (self, name);
}

static void go_up (builder_t *self, size_t length)
{
    self->pointer[length] = '\0';
}

/* Tables that grow. The room doubles when the count is a power of two. */
static void *grown (void *table, size_t count, size_t size)
{
    if (count != 0 && (count & (count - 1)) != 0)
        return table;
    return realloc (table, (count == 0 ? 1 : count * 2) * size);
}

static node_t **find_place (builder_t *self, const json_t *json)
{
    size_t at = ((uintptr_t) json >> 4) * 2654435761U % PLACES;
    while (self->places[at] != NULL && self->places[at]->json != json)
        at = (at + 1) % PLACES;
    return &self->places[at];
}

static node_t *add_node (builder_t *self, const json_t *json, size_t resource)
{
    schema_t *schema = self->schema;
    if (schema->nodes_count == SCHEMA_NODES_MAX) {
        refuse (self, "there are more than %d subschemas", SCHEMA_NODES_MAX);
        return NULL;
    }
    node_t **nodes = grown (schema->nodes, schema->nodes_count, sizeof *nodes);
    node_t *node = nodes != NULL ? calloc (1, sizeof *node) : NULL;
    if (nodes != NULL)
        schema->nodes = nodes;
    if (node == NULL) {
        refuse (self, "memory is exhausted");
        return NULL;
    }
    node->json = json;
    node->resource = resource;
    schema->nodes[schema->nodes_count++] = node;
    *find_place (self, json) = node;
    return node;
}

/* The resource that begins with this node, or the one around it. */
static bool add_resource (builder_t *self, node_t *node, const char *id, const char *base)
{
    schema_t *schema = self->schema;
    char uri[URI_SIZE];
    const char *fragment = uri_fragment (id);
    if (!uri_resolve (uri, base, id) || fragment[0] != '\0')
        return refuse (self, "$id is no URI reference without a fragment");
    for (size_t i = 0; i < schema->resources_count; i++)
        if (strcmp (schema->resources[i].uri, uri) == 0)
            return refuse (self, "another schema has the $id '%.100s' too", uri);
    resource_t *resources =
        grown (schema->resources, schema->resources_count, sizeof *schema->resources);
    char *copy = strdup (uri);
    if (resources != NULL)
        schema->resources = resources;
    if (resources == NULL || copy == NULL) {
        free (copy);
        return refuse (self, "memory is exhausted");
    }
    node->resource = schema->resources_count;
    schema->resources[schema->resources_count++] = (resource_t){copy, node};
    return true;
}

static bool add_anchor (builder_t *self, node_t *node, const char *keyword, bool dynamic)
{
    schema_t *schema = self->schema;
    const json_t *value = json_object_get (node->json, keyword);
    const char *name = json_string_value (value);
    if (value == NULL)
        return true;
    bool good = name != NULL && name[0] != '\0' && strchr ("0123456789.-", name[0]) == NULL;
    for (const char *at = name; good && *at != '\0'; at++)
        good = strspn (at, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") > 0;
    if (!good)
        return refuse (self, "%s is no plain name", keyword);
    for (size_t i = 0; i < schema->anchors_count; i++)
        if (schema->anchors[i].resource == node->resource && schema->anchors[i].node != node &&
            strcmp (schema->anchors[i].name, name) == 0)
            return refuse (self, "another schema has the anchor '%.60s' too", name);
    anchor_t *anchors = grown (schema->anchors, schema->anchors_count, sizeof *anchors);
    if (anchors == NULL)
        return refuse (self, "memory is exhausted");
    schema->anchors = anchors;
    anchors[schema->anchors_count++] = (anchor_t){node->resource, name, node, dynamic};
    return true;
}

/* Forms of keywords. */

static bool is_count (const json_t *value)
{
    const double number = json_number_value (value);
    return json_is_integer (value) ? json_integer_value (value) >= 0
                                   : json_is_real (value) && number >= 0 && number < 1e15 &&
                                         number == (double) (int64_t) number;
}

static bool is_names (const json_t *value)
{
    size_t i, j;
    const json_t *item;
    if (!json_is_array (value))
        return false;
    json_array_foreach (value, i, item)
    {
        if (!json_is_string (item))
            return false;
        for (j = 0; j < i; j++)
            if (json_equal (item, json_array_get (value, j)))
                return false;
    }
    return true;
}

static bool is_names_map (const json_t *value)
{
    const char *key;
    json_t *item;
    json_object_foreach ((json_t *) value, key, item)
    {
        if (!is_names (item))
            return false;
    }
    return json_is_object (value);
}

static bool is_type_name (const json_t *value)
{
    static const char *const names[] = {"null",   "boolean", "object", "array",
                                        "number", "integer", "string"};
    for (size_t i = 0; json_is_string (value) && i < sizeof names / sizeof *names; i++)
        if (strcmp (names[i], json_string_value (value)) == 0)
            return true;
    return false;
}

static bool is_type (const json_t *value)
{
    size_t i;
    const json_t *item;
    if (!json_is_array (value))
        return is_type_name (value);
    json_array_foreach (value, i, item)
    {
        if (!is_type_name (item))
            return false;
    }
    return i > 0 && is_names (value);
}

/* NULL: good; else what it has to be. */
static const char *judge_form (keyword_form_t form, const json_t *value)
{
    switch (form) {
    case FORM_NUMBER: return json_is_number (value) ? NULL : "a number";
    case FORM_POSITIVE: return json_number_value (value) > 0 ? NULL : "a number above 0";
    case FORM_COUNT: return is_count (value) ? NULL : "a whole number from 0 on";
    case FORM_BOOL: return json_is_boolean (value) ? NULL : "true or false";
    case FORM_TEXT:
    case FORM_PATTERN:
    case FORM_REFERENCE: return json_is_string (value) ? NULL : "a string";
    case FORM_NAMES: return is_names (value) ? NULL : "an array of different strings";
    case FORM_NAMES_MAP: return is_names_map (value) ? NULL : "an object of arrays of strings";
    case FORM_LIST: return json_is_array (value) ? NULL : "an array";
    case FORM_TYPE: return is_type (value) ? NULL : "a type, or an array of different types";
    case FORM_SCHEMAS:
        return json_array_size (value) > 0 ? NULL : "an array of at least one schema";
    case FORM_SCHEMA_MAP:
    case FORM_PATTERN_MAP: return json_is_object (value) ? NULL : "an object of schemas";
    default: return NULL;
    }
}

/* Nodes. */

static node_t *add_schema (builder_t *self, const json_t *json, size_t resource);

static bool add_regex (builder_t *self, check_t *check, const char *expression)
{
    char reason[REGEX_ERROR_SIZE];
    regex_t *regex = regex_new (expression, reason);
    if (regex == NULL)
        return refuse (self, "%s", reason);
    check->regexes[check->regexes_count++] = regex;
    return true;
}

/* The schemas of a keyword, in their order. */
static bool add_children (builder_t *self, const node_t *node, check_t *check)
{
    const keyword_form_t form = check->keyword->form;
    const bool is_map = form == FORM_SCHEMA_MAP || form == FORM_PATTERN_MAP;
    const size_t count = form == FORM_SCHEMA ? 1
                         : is_map            ? json_object_size (check->value)
                                             : json_array_size (check->value);
    void *at = is_map ? json_object_iter ((json_t *) check->value) : NULL;
    check->nodes = calloc (count + 1, sizeof (node_t *));
    check->regexes = calloc (count + 1, sizeof (regex_t *));
    if (check->nodes == NULL || check->regexes == NULL)
        return refuse (self, "memory is exhausted");
    for (size_t i = 0; i < count; i++) {
        const char *name = is_map ? json_object_iter_key (at) : NULL;
        const json_t *json = is_map                ? json_object_iter_value (at)
                             : form == FORM_SCHEMA ? check->value
                                                   : json_array_get (check->value, i);
        const size_t mark = is_map                ? go_down (self, name)
                            : form == FORM_SCHEMA ? strlen (self->pointer)
                                                  : go_down_at (self, i);
        check->nodes[i] = add_schema (self, json, node->resource);
        if (check->nodes[i] == NULL || (form == FORM_PATTERN_MAP && !add_regex (self, check, name)))
            return false;
        check->count++;
        go_up (self, mark);
        if (is_map)
            at = json_object_iter_next ((json_t *) check->value, at);
    }
    return true;
}

static bool add_check (builder_t *self, node_t *node, const keyword_t *keyword, const json_t *value)
{
    const char *form = judge_form (keyword->form, value);
    check_t *check = &node->checks[node->count++];
    *check = (check_t){.keyword = keyword, .value = value};
    if (keyword->form == FORM_REFUSED)
        return refuse (self, "%s %s", keyword->name, keyword->flaw);
    if (strcmp (keyword->name, "items") == 0 && json_is_array (value))
        return refuse (self, "items is one schema in draft 2020-12; a list is prefixItems");
    if (form != NULL)
        return refuse (self, "%s is %s", keyword->name, form);
    self->schema->tracks |= strncmp (keyword->name, "unevaluated", 11) == 0;
    const size_t mark = go_down (self, keyword->name);
    bool good = true;
    if (keyword->form == FORM_SCHEMA || keyword->form == FORM_SCHEMAS ||
        keyword->form == FORM_SCHEMA_MAP || keyword->form == FORM_PATTERN_MAP) {
        good = add_children (self, node, check);
    } else if (keyword->form == FORM_PATTERN) {
        check->regexes = calloc (1, sizeof (regex_t *));
        good = check->regexes != NULL && add_regex (self, check, json_string_value (value));
    } else if (keyword->form == FORM_REFERENCE) {
        check->nodes = calloc (1, sizeof (node_t *));
        good = check->nodes != NULL;
    }
    go_up (self, mark);
    return good || refuse (self, "memory is exhausted");
}

static bool add_checks (builder_t *self, node_t *node)
{
    size_t count = 0;
    for (size_t i = 0; schema_keywords[i].name != NULL; i++)
        count += json_object_get (node->json, schema_keywords[i].name) != NULL;
    node->checks = calloc (count + 1, sizeof *node->checks);
    if (node->checks == NULL)
        return refuse (self, "memory is exhausted");
    for (size_t i = 0; schema_keywords[i].name != NULL; i++) {
        const json_t *value = json_object_get (node->json, schema_keywords[i].name);
        if (value != NULL && !add_check (self, node, &schema_keywords[i], value))
            return false;
    }
    return true;
}

/* What names the node itself. */
static bool add_names (builder_t *self, node_t *node)
{
    const json_t *draft = json_object_get (node->json, "$schema");
    const json_t *id = json_object_get (node->json, "$id");
    const char *text = json_string_value (draft);
    if (draft != NULL &&
        (text == NULL || strncmp (text, DRAFT, sizeof DRAFT - 1) != 0 ||
         strspn (text + sizeof DRAFT - 1, "#") != strlen (text + sizeof DRAFT - 1)))
        return refuse (self, "$schema is not that of draft 2020-12, %s", DRAFT);
    if (id != NULL && !json_is_string (id))
        return refuse (self, "$id is a string");
    if (id != NULL && !add_resource (self, node, json_string_value (id),
                                     self->schema->resources[node->resource].uri))
        return false;
    return add_anchor (self, node, "$anchor", false) &&
           add_anchor (self, node, "$dynamicAnchor", true);
}

static node_t *add_schema (builder_t *self, const json_t *json, size_t resource)
{
    node_t *node = *find_place (self, json);
    if (node != NULL)
        return node;
    if (!json_is_object (json) && !json_is_boolean (json)) {
        refuse (self, "a schema is an object, true or false");
        return NULL;
    }
    if (self->depth == SCHEMA_DEPTH_MAX) {
        refuse (self, "schemas are nested deeper than %d", SCHEMA_DEPTH_MAX);
        return NULL;
    }
    node = add_node (self, json, resource);
    if (node == NULL || json_is_boolean (json))
        return node;
    self->depth++;
    const bool good = add_names (self, node) && add_checks (self, node);
    self->depth--;
    return good ? node : NULL;
}

/* References. */

/* The value that a JSON pointer leads to, and the resource that it lies in. */
static const json_t *follow_pointer (builder_t *self, const json_t *json, const char *pointer,
                                     size_t *resource)
{
    char token[POINTER_SIZE];
    while (json != NULL && *pointer == '/') {
        size_t length = 0;
        const node_t *node = *find_place (self, json);
        if (node != NULL && !json_is_boolean (json))
            *resource = node->resource;
        for (pointer++; *pointer != '\0' && *pointer != '/'; pointer++) {
            const bool escaped = *pointer == '~' && (pointer[1] == '0' || pointer[1] == '1');
            if (length + 1 == sizeof token || (*pointer == '~' && !escaped))
                return NULL;
            token[length++] = !escaped ? *pointer : *++pointer == '0' ? '~' : '/';
        }
        token[length] = '\0';
        char *end;
        const unsigned long index = strtoul (token, &end, 10);
        json = json_is_array (json) ? (*end == '\0' && token[0] >= '0' && token[0] <= '9'
                                           ? json_array_get (json, index)
                                           : NULL)
                                    : json_object_get (json, token);
    }
    return *pointer == '\0' ? json : NULL;
}

static const anchor_t *find_anchor (const schema_t *self, size_t resource, const char *name)
{
    for (size_t i = 0; i < self->anchors_count; i++)
        if (self->anchors[i].resource == resource && strcmp (self->anchors[i].name, name) == 0)
            return &self->anchors[i];
    return NULL;
}

static bool find_target (builder_t *self, check_t *check, size_t resource, const char *reference)
{
    const schema_t *schema = self->schema;
    char uri[URI_SIZE];
    char fragment[URI_SIZE];
    size_t there = 0;
    if (!uri_resolve (uri, schema->resources[resource].uri, reference) ||
        !uri_decode (fragment, sizeof fragment, uri_fragment (reference)))
        return refuse (self, "the reference '%.100s' cannot be read", reference);
    while (there < schema->resources_count && strcmp (schema->resources[there].uri, uri) != 0)
        there++;
    if (there == schema->resources_count)
        return refuse (self, "the reference '%.100s' leads out of the document; nothing is fetched",
                       reference);
    if (fragment[0] == '\0' || fragment[0] == '/') {
        const json_t *json =
            follow_pointer (self, schema->resources[there].root->json, fragment, &there);
        check->nodes[0] = json != NULL ? add_schema (self, json, there) : NULL;
    } else {
        const anchor_t *anchor = find_anchor (schema, there, fragment);
        check->nodes[0] = anchor != NULL ? anchor->node : NULL;
        if (anchor != NULL && anchor->dynamic && strcmp (check->keyword->name, "$dynamicRef") == 0)
            check->dynamic = anchor->name;
    }
    return check->nodes[0] != NULL ||
           refuse (self, "the reference '%.100s' leads to no schema", reference);
}

/* Nodes may become more meanwhile: a pointer leads anywhere. */
static bool find_targets (builder_t *self)
{
    for (size_t i = 0; i < self->schema->nodes_count; i++) {
        const node_t *node = self->schema->nodes[i];
        for (size_t j = 0; j < node->count; j++) {
            check_t *check = &node->checks[j];
            if (check->keyword->form == FORM_REFERENCE &&
                !find_target (self, check, node->resource, json_string_value (check->value)))
                return false;
        }
    }
    return true;
}

/* Life. */

static bool compile (schema_t *self, char error[SCHEMA_ERROR_SIZE])
{
    builder_t *builder = calloc (1, sizeof *builder);
    self->resources = calloc (1, sizeof *self->resources);
    if (self->resources != NULL)
        self->resources[self->resources_count++].uri = strdup ("");
    if (builder == NULL || self->resources == NULL || self->resources[0].uri == NULL) {
        snprintf (error, SCHEMA_ERROR_SIZE, "memory is exhausted");
        free (builder);
        return false;
    }
    builder->schema = self;
    builder->error = error;
    self->root = add_schema (builder, self->document, 0);
    if (self->root != NULL)
        self->resources[0].root = *find_place (builder, self->document);
    const bool good = self->root != NULL && find_targets (builder);
    free (builder);
    return good;
}

schema_t *schema_new (json_t *document, char error[SCHEMA_ERROR_SIZE])
{
    schema_t *self = calloc (1, sizeof *self);
    error[0] = '\0';
    if (self == NULL) {
        snprintf (error, SCHEMA_ERROR_SIZE, "memory is exhausted");
        return NULL;
    }
    self->document = json_incref (document);
    if (!compile (self, error))
        schema_free (&self);
    return self;
}

static void free_node (node_t *node)
{
    for (size_t i = 0; i < node->count; i++) {
        for (size_t j = 0; j < node->checks[i].regexes_count; j++)
            regex_free (node->checks[i].regexes[j]);
        free (node->checks[i].regexes);
        free (node->checks[i].nodes);
    }
    free (node->checks);
    free (node);
}

void schema_free (schema_t **self_p)
{
    schema_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    for (size_t i = 0; i < self->nodes_count; i++)
        free_node (self->nodes[i]);
    for (size_t i = 0; i < self->resources_count; i++)
        free (self->resources[i].uri);
    free (self->nodes);
    free (self->resources);
    free (self->anchors);
    json_decref (self->document);
    free (self);
}

const check_t *node_check (const node_t *node, const char *name)
{
    for (size_t i = 0; i < node->count; i++)
        if (strcmp (node->checks[i].keyword->name, name) == 0)
            return &node->checks[i];
    return NULL;
}
