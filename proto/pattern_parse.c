/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Failure: the first thing that is wrong ends the reading; every error says where it stands. */
#include "pattern_parse.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ids.h"

typedef struct parse {
    pattern_tree_t *tree;
    const char *start;
    const char *at;
    unsigned depth;
    bool any_case;
    char *error;
} parse_t;

static bool parse_either (parse_t *self, uint16_t *out);

__attribute__ ((format (printf, 2, 3))) static bool refuse (const parse_t *self, const char *format,
                                                            ...)
{
    char text[PATTERN_ERROR_SIZE - 32];
    va_list list;
    va_start (list, format);
    vsnprintf (text, sizeof (text), format, list);
    va_end (list);
    snprintf (self->error, PATTERN_ERROR_SIZE, "byte %zu of the pattern: %s",
              (size_t) (self->at - self->start) + 1, text);
    return false;
}

/* Nodes. A text makes fewer of them than there is room: each byte one, and one that joins it. */

static uint16_t add_node (parse_t *self, pattern_node_kind_t kind)
{
    pattern_node_t *node = &self->tree->nodes[self->tree->count];
    memset (node, 0, sizeof (*node));
    node->kind = (uint8_t) kind;
    return (uint16_t) self->tree->count++;
}

static uint16_t join (parse_t *self, pattern_node_kind_t kind, uint16_t left, uint16_t right)
{
    uint16_t place = add_node (self, kind);
    pattern_node_t *nodes = self->tree->nodes;
    nodes[place].left = left;
    nodes[place].right = right;
    nodes[place].may_be_empty = kind == PATTERN_BOTH
                                    ? nodes[left].may_be_empty && nodes[right].may_be_empty
                                    : nodes[left].may_be_empty || nodes[right].may_be_empty;
    return place;
}

/* Sets. */

static void set_add (uint8_t *set, unsigned byte)
{
    set[byte >> 3] = (uint8_t) (set[byte >> 3] | 1U << (byte & 7));
}

static void set_add_range (uint8_t *set, unsigned first, unsigned last)
{
    for (unsigned byte = first; byte <= last; byte++)
        set_add (set, byte);
}

static void set_turn (uint8_t *set)
{
    for (size_t i = 0; i < PATTERN_SET_BYTES; i++)
        set[i] = (uint8_t) ~set[i];
}

static void set_take_both_cases (uint8_t *set)
{
    for (unsigned byte = 'a'; byte <= 'z'; byte++) {
        unsigned upper = byte - 'a' + 'A';
        if (pattern_set_has (set, (uint8_t) byte))
            set_add (set, upper);
        else if (pattern_set_has (set, (uint8_t) upper))
            set_add (set, byte);
    }
}

typedef struct named_set {
    const char *name;
    const char *ranges; /* pairs of a first and a last byte */
} named_set_t;

static bool set_add_named (uint8_t *set, const char *name, size_t length)
{
    static const named_set_t sets[] = {
        {"alpha", "azAZ"},    {"digit", "09"},      {"alnum", "azAZ09"}, {"upper", "AZ"},
        {"lower", "az"},      {"xdigit", "09afAF"}, {"space", "\t\r  "}, {"blank", "\t\t  "},
        {"word", "azAZ09__"}, {"punct", "!/:@[`{~"}};
    for (size_t i = 0; i < sizeof (sets) / sizeof (sets[0]); i++) {
        if (strlen (sets[i].name) != length || memcmp (sets[i].name, name, length) != 0)
            continue;
        for (const char *pair = sets[i].ranges; *pair != '\0'; pair += 2)
            set_add_range (set, (uint8_t) pair[0], (uint8_t) pair[1]);
        return true;
    }
    return false;
}

static bool is_punctuation (char c)
{
    return c >= ' ' && c < 0x7f && !(c >= '0' && c <= '9') && !((c | 32) >= 'a' && (c | 32) <= 'z');
}

/* Behind a backslash: one byte, or a set. *byte: that one, or -1. */
static bool parse_escape (parse_t *self, uint8_t *set, int *byte)
{
    static const char classes[] = "dDwWsS";
    static const char *const names[] = {"digit", "word", "space"};
    uint8_t turned[PATTERN_SET_BYTES] = {0};
    char c = *self->at;
    const char *class = c == '\0' ? NULL : strchr (classes, c);
    *byte = -1;
    if (class != NULL) {
        const char *name = names[(class - classes) / 2];
        set_add_named (turned, name, strlen (name));
        if ((class - classes) % 2 == 1)
            set_turn (turned);
        for (size_t i = 0; i < PATTERN_SET_BYTES; i++)
            set[i] |= turned[i];
    } else if (c == 'x') {
        char digits[3] = "";
        uint8_t value;
        memcpy (digits, self->at + 1, strnlen (self->at + 1, 2));
        if (!hex_decode (&value, 1, digits))
            return refuse (self, "\\x needs two hexadecimal digits");
        *byte = value;
        self->at += 2;
    } else if (c == 't' || c == 'n' || c == 'r') {
        *byte = c == 't' ? '\t' : c == 'n' ? '\n' : '\r';
    } else if (is_punctuation (c)) {
        *byte = (uint8_t) c;
    } else {
        return refuse (self, "\\%.1s is not known", c > ' ' && c < 0x7f ? self->at : "");
    }
    self->at++;
    if (*byte >= 0)
        set_add (set, (unsigned) *byte);
    return true;
}

/* One member of [...]: a byte, the first of a range, or a set. */
static bool parse_member (parse_t *self, uint8_t *set, int *byte)
{
    if (*self->at == '\\') {
        self->at++;
        return parse_escape (self, set, byte);
    }
    if ((uint8_t) *self->at >= 0x80)
        return refuse (self, "[ ] takes bytes of ASCII; (one|other) takes any characters");
    if (*self->at == '\0')
        return refuse (self, "[ has no ]");
    *byte = (uint8_t) *self->at++;
    set_add (set, (unsigned) *byte);
    return true;
}

/* Behind [[: */
static bool parse_named (parse_t *self, uint8_t *set)
{
    const char *end = strstr (self->at, ":]");
    if (end == NULL || !set_add_named (set, self->at, (size_t) (end - self->at)))
        return refuse (self, "[: needs alpha, digit, alnum, upper, lower, xdigit, space, blank, "
                             "word or punct, and :]");
    self->at = end + 2;
    return true;
}

static bool parse_range (parse_t *self, uint8_t *set, int first)
{
    int last = -1;
    self->at++;
    if (!parse_member (self, set, &last))
        return false;
    if (first < 0 || last < first)
        return refuse (self, "a range goes from a byte to one that is not before it");
    set_add_range (set, (unsigned) first, (unsigned) last);
    return true;
}

/* Behind the opening bracket. */
static bool parse_set (parse_t *self, uint8_t *set)
{
    bool turned = *self->at == '^';
    bool first = true;
    self->at += turned;
    for (; *self->at != ']' || first; first = false) {
        int byte = -1;
        if (strncmp (self->at, "[:", 2) == 0) {
            self->at += 2;
            if (!parse_named (self, set))
                return false;
            continue;
        }
        if (!parse_member (self, set, &byte))
            return false;
        if (*self->at == '-' && self->at[1] != ']' && !parse_range (self, set, byte))
            return false;
    }
    self->at++;
    if (self->any_case)
        set_take_both_cases (set);
    if (turned)
        set_turn (set);
    return true;
}

/* Atoms. */

/* A character of several bytes is one atom. */
static uint16_t add_character (parse_t *self)
{
    size_t length = utf8_character ((const uint8_t *) self->at, strlen (self->at));
    uint16_t whole = 0;
    for (size_t i = 0; i == 0 || i < length; i++) {
        uint16_t one = add_node (self, PATTERN_SET);
        set_add (self->tree->nodes[one].set, (uint8_t) self->at[i]);
        if (self->any_case)
            set_take_both_cases (self->tree->nodes[one].set);
        whole = i == 0 ? one : join (self, PATTERN_BOTH, whole, one);
    }
    self->at += length == 0 ? 1 : length;
    return whole;
}

static bool parse_group (parse_t *self, uint16_t *out)
{
    const char *open = self->at++;
    if (*self->at == '?')
        return refuse (self, "(? is known at the beginning alone, as (?i)");
    if (++self->depth > PATTERN_DEPTH_MAX)
        return refuse (self, "more than %d groups inside each other", PATTERN_DEPTH_MAX);
    if (!parse_either (self, out))
        return false;
    if (*self->at != ')') {
        self->at = open;
        return refuse (self, "( has no )");
    }
    self->at++;
    self->depth--;
    return true;
}

static bool parse_atom (parse_t *self, uint16_t *out)
{
    int byte = -1;
    *out = 0;
    switch (*self->at) {
    case '(': return parse_group (self, out);
    case '^':
    case '$': return refuse (self, "%.1s is not known: a pattern is found everywhere", self->at);
    case '*':
    case '+':
    case '?':
    case '{': return refuse (self, "%.1s has nothing before it", self->at);
    case '[':
        self->at++;
        *out = add_node (self, PATTERN_SET);
        return parse_set (self, self->tree->nodes[*out].set);
    case '.':
        self->at++;
        *out = add_node (self, PATTERN_SET);
        set_turn (self->tree->nodes[*out].set);
        return true;
    case '\\':
        self->at++;
        *out = add_node (self, PATTERN_SET);
        if (!parse_escape (self, self->tree->nodes[*out].set, &byte))
            return false;
        if (self->any_case && byte >= 0)
            set_take_both_cases (self->tree->nodes[*out].set);
        return true;
    default: *out = add_character (self); return true;
    }
}

/* Repetition. */

static bool parse_count (parse_t *self, uint16_t *out)
{
    unsigned long value = 0;
    const char *first = self->at;
    for (; *self->at >= '0' && *self->at <= '9' && value <= PATTERN_REPEAT_MAX; self->at++)
        value = 10 * value + (unsigned long) (*self->at - '0');
    if (self->at == first || value > PATTERN_REPEAT_MAX)
        return refuse (self, "{ needs numbers of at most %d, or \\{", PATTERN_REPEAT_MAX);
    *out = (uint16_t) value;
    return true;
}

/* Behind { */
static bool parse_bounds (parse_t *self, uint16_t *least, uint16_t *most)
{
    if (!parse_count (self, least))
        return false;
    *most = *least;
    bool is_open = *self->at == ',';
    if (is_open) {
        self->at++;
        *most = 0;
        is_open = *self->at == '}';
        if (!is_open && !parse_count (self, most))
            return false;
    }
    if (*most == 0 && !is_open)
        return refuse (self, "{ needs a most that is not 0");
    if (*self->at != '}' || (*most != 0 && *most < *least))
        return refuse (self, "{ needs m, or m,n with m not above n, and }");
    self->at++;
    return true;
}

static bool parse_repeated (parse_t *self, uint16_t *out)
{
    if (!parse_atom (self, out))
        return false;
    uint16_t least = 0;
    uint16_t most = 0;
    switch (*self->at) {
    case '*': self->at++; break;
    case '+':
        self->at++;
        least = 1;
        break;
    case '?':
        self->at++;
        most = 1;
        break;
    case '{':
        self->at++;
        if (!parse_bounds (self, &least, &most))
            return false;
        break;
    default: return true;
    }
    if (*self->at != '\0' && strchr ("*+?{", *self->at) != NULL)
        return refuse (self, "%.1s stands behind a repetition: nothing is lazy or possessive",
                       self->at);
    uint16_t place = add_node (self, PATTERN_REPEAT);
    pattern_node_t *node = &self->tree->nodes[place];
    node->left = *out;
    node->least = least;
    node->most = most;
    node->may_be_empty = least == 0 || self->tree->nodes[*out].may_be_empty;
    *out = place;
    return true;
}

static bool parse_both (parse_t *self, uint16_t *out)
{
    if (*self->at == '\0' || *self->at == '|' || *self->at == ')')
        return refuse (self, "something is missing; a part that may be absent is written with ?");
    if (!parse_repeated (self, out))
        return false;
    while (*self->at != '\0' && *self->at != '|' && *self->at != ')') {
        uint16_t next = 0;
        if (!parse_repeated (self, &next))
            return false;
        *out = join (self, PATTERN_BOTH, *out, next);
    }
    return true;
}

static bool parse_either (parse_t *self, uint16_t *out)
{
    if (!parse_both (self, out))
        return false;
    while (*self->at == '|') {
        uint16_t next = 0;
        self->at++;
        if (!parse_both (self, &next))
            return false;
        *out = join (self, PATTERN_EITHER, *out, next);
    }
    return true;
}

bool pattern_parse (pattern_tree_t *out, const char *expression, char error[PATTERN_ERROR_SIZE])
{
    parse_t self = {.tree = out, .start = expression, .at = expression, .error = error};
    out->count = 0;
    out->root = 0;
    if (strlen (expression) > PATTERN_BYTES_MAX)
        return refuse (&self, "it has more than %d bytes", PATTERN_BYTES_MAX);
    if (strncmp (expression, "(?i)", 4) == 0) {
        self.any_case = true;
        self.at += 4;
    }
    if (!parse_either (&self, &out->root))
        return false;
    if (*self.at == ')')
        return refuse (&self, ") has no (");
    if (out->nodes[out->root].may_be_empty) {
        self.at = expression;
        return refuse (&self, "it matches the empty text");
    }
    return true;
}
