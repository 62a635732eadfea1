/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* JSON is walked token by token, without a tree: whatever is nested stays as it is, and what is
 * not JSON is no danger, but comes out as unreadable as it came in. */
#include "redact.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ids.h"
#include "json.h"

typedef struct form {
    const char *name;
    const char *expression;
} form_t;

/* Forms that have a beginning of their own, or stand behind a word that says what they are: a
 * random word alone is no secret. An address of mail is none either. */
static const form_t common[] = {
    {"taskmq", "tmq(sk|join)_[A-Za-z0-9]{20,}"},
    {"private-key", "-----BEGIN [A-Z0-9 ]{0,32}PRIVATE KEY(?: BLOCK)?-----(?:(?:[^-]++|-(?!----))*+"
                    "-----END [A-Z0-9 ]{0,32}PRIVATE KEY(?: BLOCK)?-----|[A-Za-z0-9+/=\\\\\\s]*+)"},
    {"jwt", "eyJ[A-Za-z0-9_-]{8,}\\.eyJ[A-Za-z0-9_-]{8,}\\.[A-Za-z0-9_-]*"},
    {"aws", "(AKIA|ASIA)[A-Z2-7]{16}"},
    {"aws", "(?i)aws_?(secret_?access_?key|session_?token)['\"\\\\]{0,4}\\s{0,4}[=:]\\s{0,4}"
            "['\"\\\\]{0,4}[a-z0-9/+=]{40,}"},
    {"github", "(gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{22,})"},
    {"gitlab", "gl(pat|ptt|rt|dt|cbt)-[A-Za-z0-9_-]{20,}"},
    {"slack", "xox[abeoprs]-[A-Za-z0-9-]{10,}"},
    {"slack", "xapp-[0-9]-[A-Za-z0-9-]{10,}"},
    {"slack", "hooks\\.slack\\.com/(services|workflows)/[A-Za-z0-9/_-]{20,}"},
    {"google", "AIza[A-Za-z0-9_-]{35}"},
    {"stripe", "(sk|rk)_(live|test)_[A-Za-z0-9]{16,}"},
    {"sk", "sk-[A-Za-z0-9_-]{20,}"},
    {"npm", "npm_[A-Za-z0-9]{36}"},
    {"bearer", "(?i)bearer\\s{1,4}[a-z0-9._~+/=-]{20,}"},
    {"basic", "(?i)authorization['\"\\\\]{0,4}\\s{0,4}[:=]\\s{0,4}['\"\\\\]{0,4}basic\\s{1,4}"
              "[a-z0-9+/=]{8,}"},
    {"url", "://\\K[^][{}()<>|^`\"\\s/@:?#\\\\]{0,128}:"
            "[^][{}()<>|^`\"\\s/@\\\\]{1,128}(?=@)"}};

enum { COMMON = sizeof (common) / sizeof (common[0]) };

struct redactor {
    patterns_t *patterns;
    char names[PATTERNS_MAX][REDACT_NAME_MAX + 1];
    size_t items;
    bool has_common;
    uint64_t hidden; /* values that were replaced as a whole */
    bytes_t plain;   /* a value without its escapes */
    bytes_t changed; /* … and with what was replaced */
    bytes_t binary;  /* what a value in base64 stands for */
    bytes_t inner;   /* JSON that is kept as a text */
    bytes_t inner_changed;
};

const char *redact_common_name (size_t place)
{
    return place < COMMON ? common[place].name : NULL;
}

/* Life. */

redactor_t *redactor_new (void)
{
    redactor_t *self = calloc (1, sizeof (*self));
    if (self != NULL && (self->patterns = patterns_new ()) == NULL)
        redactor_free (&self);
    return self;
}

void redactor_free (redactor_t **self_p)
{
    redactor_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    patterns_free (&self->patterns);
    bytes_free (&self->plain);
    bytes_free (&self->changed);
    bytes_free (&self->binary);
    bytes_free (&self->inner);
    bytes_free (&self->inner_changed);
    free (self);
}

bool redactor_is_set (const redactor_t *self)
{
    return self != NULL && patterns_count (self->patterns) > 0;
}

uint64_t redactor_hidden (const redactor_t *self)
{
    return self == NULL ? 0 : self->hidden;
}

/* Lists. */

static bool add_pattern (redactor_t *self, const char *name, size_t length, const char *expression,
                         char error[REDACT_ERROR_SIZE])
{
    char why[PATTERN_ERROR_SIZE];
    size_t place = patterns_count (self->patterns);
    if (!patterns_add (self->patterns, expression, why)) {
        snprintf (error, REDACT_ERROR_SIZE, "%s", why);
        return false;
    }
    memcpy (self->names[place], name, length);
    self->names[place][length] = '\0';
    return true;
}

static bool add_common (redactor_t *self, char error[REDACT_ERROR_SIZE])
{
    for (size_t i = 0; i < COMMON && !self->has_common; i++)
        if (!add_pattern (self, common[i].name, strlen (common[i].name), common[i].expression,
                          error))
            return false;
    self->has_common = true;
    return true;
}

/* Small letters, digits and hyphens: nothing that JSON escapes, or a shell. */
static bool is_name (const char *text, size_t length)
{
    static const char set[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
    return length > 0 && length <= REDACT_NAME_MAX && strspn (text, set) == length;
}

bool redactor_add (redactor_t *self, const char *item, char error[REDACT_ERROR_SIZE])
{
    size_t length = strcspn (item, "=");
    if (self->items == REDACT_ITEMS_MAX) {
        snprintf (error, REDACT_ERROR_SIZE, "there are more than %d of them", REDACT_ITEMS_MAX);
        return false;
    }
    bool good = false;
    if (strcmp (item, "common") == 0)
        good = add_common (self, error);
    else if (item[length] != '=' || !is_name (item, length))
        snprintf (error, REDACT_ERROR_SIZE,
                  "must be common, or NAME=PATTERN with a name of at most %d of a-z, 0-9 and -",
                  REDACT_NAME_MAX);
    else
        good = add_pattern (self, item, length, item + length + 1, error);
    self->items += good;
    return good;
}

/* Texts. */

static bool is_inside (uint8_t byte)
{
    return (byte & 0xc0) == 0x80;
}

static void append_name (bytes_t *out, const char *name)
{
    bytes_append_text (out, "[redacted:");
    bytes_append_text (out, name);
    bytes_append_byte (out, ']');
}

/* Of a text whose first bytes are there to be looked at only. A cover that ends within a character
 * takes all of it. */
static bool redact_behind (redactor_t *self, bytes_t *out, const uint8_t *text, size_t length,
                           size_t context)
{
    const pattern_cover_t *covers;
    size_t count;
    size_t done = context;
    bool replaced = false;
    if (!patterns_find (self->patterns, text, length, &covers, &count)) {
        append_name (out, "too-much-work");
        self->hidden++;
        return true;
    }
    for (size_t i = 0; i < count; i++) {
        size_t from = covers[i].from > done ? covers[i].from : done;
        size_t to = covers[i].to;
        while (from > done && is_inside (text[from]))
            from--;
        while (to < length && is_inside (text[to]))
            to++;
        if (to <= done)
            continue;
        bytes_append (out, text + done, from - done);
        append_name (out, self->names[covers[i].which]);
        done = to;
        replaced = true;
    }
    bytes_append (out, text + done, length - done);
    return replaced;
}

bool redact_text (redactor_t *self, bytes_t *out, const void *text, size_t length)
{
    patterns_begin (self->patterns);
    return redact_behind (self, out, text, length, 0);
}

/* JSON. */

typedef struct walk {
    redactor_t *redactor;
    bytes_t *out;
    const char *at;
    const char *end;
    const char *key; /* of the member at hand, within its quotes */
    size_t key_length;
    unsigned depth;
    bool is_inner; /* of JSON that is kept as a text */
    bool replaced;
} walk_t;

static void append_character (bytes_t *out, uint32_t c)
{
    static const uint8_t marks[] = {0, 0xc0, 0xe0, 0xf0};
    unsigned behind = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    bytes_append_byte (out, (uint8_t) (marks[behind] | c >> 6 * behind));
    while (behind-- > 0)
        bytes_append_byte (out, (uint8_t) (0x80 | (c >> 6 * behind & 0x3f)));
}

/* Four hexadecimal digits, or what stands there is no character. */
static uint32_t code_unit (const char *at, const char *end)
{
    char digits[5] = "";
    uint8_t bytes[2];
    if (end - at < 4)
        return 0xfffd;
    memcpy (digits, at, 4);
    return hex_decode (bytes, 2, digits) ? (uint32_t) bytes[0] << 8 | bytes[1] : 0xfffd;
}

/* Behind \u. Returns what stands behind the character. */
static const char *decode_unit (bytes_t *out, const char *at, const char *end)
{
    uint32_t unit = code_unit (at, end);
    at = end - at < 4 ? end : at + 4;
    if (unit >= 0xd800 && unit < 0xdc00 && end - at >= 6 && at[0] == '\\' && at[1] == 'u') {
        uint32_t low = code_unit (at + 2, end);
        if (low >= 0xdc00 && low < 0xe000) {
            append_character (out, 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00));
            return at + 6;
        }
    }
    append_character (out, unit >= 0xd800 && unit < 0xe000 ? 0xfffd : unit);
    return at;
}

/* Appends a string's inside without its escapes. */
static void decode (bytes_t *out, const char *at, const char *end)
{
    static const char letters[] = "bfnrt";
    static const char controls[] = "\b\f\n\r\t";
    while (at < end) {
        const char *escape = memchr (at, '\\', (size_t) (end - at));
        const char *stop = escape == NULL ? end : escape;
        bytes_append (out, at, (size_t) (stop - at));
        if (escape == NULL || end - escape < 2)
            return;
        const char *letter = strchr (letters, escape[1]);
        at = escape + 2;
        if (escape[1] == 'u')
            at = decode_unit (out, at, end);
        else
            bytes_append_byte (out, (uint8_t) (letter != NULL && escape[1] != '\0'
                                                   ? controls[letter - letters]
                                                   : escape[1]));
    }
}

static bool is_key (const walk_t *self, const char *key)
{
    size_t length = strlen (key);
    return self->key_length == length && memcmp (self->key, key, length) == 0;
}

/* What programs go by. */
static bool is_kept (const walk_t *self)
{
    static const char *const names[] = {"task_id", "namespace",    "kind",        "seq",
                                        "pos",     "cursor",       "status",      "previous",
                                        "queue",   "payload_hash", "result_hash", "at"};
    if (self->depth != 1 || self->is_inner || self->key == NULL)
        return false;
    for (size_t i = 0; i < sizeof (names) / sizeof (names[0]); i++)
        if (is_key (self, names[i]))
            return true;
    return self->key_length > 3 && memcmp (self->key + self->key_length - 3, "_at", 3) == 0;
}

/* Writes what the bytes became as a string. */
static void write_string (bytes_t *out, const bytes_t *text)
{
    json_writer_t writer = {out, false};
    json_write_string (&writer, text->data, text->length);
}

/* No memory: nothing is written that was not looked at, and the output says so. */
static bool fails (walk_t *self)
{
    self->out->failed = true;
    return true;
}

/* Bytes that are kept in base64. False: they are none, or nothing in them looks secret. */
static bool redact_base64 (walk_t *self, const char *text, size_t length)
{
    redactor_t *redactor = self->redactor;
    bytes_t *plain = &redactor->binary; /* the inner text is being walked, perhaps */
    size_t used = 0;
    bytes_clear (plain);
    bytes_clear (&redactor->changed);
    uint8_t *room = bytes_reserve (plain, length + 1);
    if (room == NULL)
        return fails (self);
    if (sodium_base642bin (room, length + 1, text, length, NULL, &used, NULL,
                           sodium_base64_VARIANT_ORIGINAL) != 0 ||
        !redact_behind (redactor, &redactor->changed, room, used, 0))
        return false;
    size_t size =
        sodium_base64_encoded_len (redactor->changed.length, sodium_base64_VARIANT_ORIGINAL);
    bytes_append_byte (self->out, '"');
    char *encoded = (char *) bytes_reserve (self->out, size + 1);
    if (encoded == NULL)
        return true;
    sodium_bin2base64 (encoded, size, redactor->changed.data, redactor->changed.length,
                       sodium_base64_VARIANT_ORIGINAL);
    self->out->length += size - 1; /* without its NUL */
    bytes_append_byte (self->out, '"');
    return true;
}

static bool redact_json (walk_t *self);

static bool is_json_text (const walk_t *self, const char *text, size_t length)
{
    return !self->is_inner && self->depth == 1 && self->key != NULL &&
           (is_key (self, "payload_text") || is_key (self, "result_text")) &&
           json_text_is_valid (text, length);
}

/* JSON that stands in a text, with its escapes and its white space. */
static bool redact_inner (walk_t *self, const char *text, size_t length)
{
    redactor_t *redactor = self->redactor;
    bytes_clear (&redactor->inner);
    bytes_clear (&redactor->inner_changed);
    bytes_append (&redactor->inner, text, length);
    walk_t walk = {.redactor = redactor,
                   .out = &redactor->inner_changed,
                   .at = (const char *) redactor->inner.data,
                   .end = (const char *) redactor->inner.data + redactor->inner.length,
                   .is_inner = true};
    if (redactor->inner.failed)
        return fails (self);
    bool replaced = redact_json (&walk);
    if (redactor->inner_changed.failed)
        return fails (self);
    if (!replaced)
        return false;
    write_string (self->out, &redactor->inner_changed);
    return true;
}

/* A string's inside, or a number. A member's value is looked at as KEY=VALUE, because some secrets
 * are known by what they are called. False: it stays as it is. */
static bool redact_value (walk_t *self, const char *text, size_t length, bool is_key_itself)
{
    redactor_t *redactor = self->redactor;
    bytes_t *plain = &redactor->plain;
    bytes_clear (plain);
    bytes_clear (&redactor->changed);
    if (self->key != NULL && !is_key_itself) {
        decode (plain, self->key, self->key + self->key_length);
        bytes_append_byte (plain, '=');
    }
    size_t context = plain->length;
    decode (plain, text, text + length);
    if (plain->failed)
        return fails (self);
    if (plain->length == context)
        return false;
    const char *value = (const char *) plain->data + context;
    length = plain->length - context;
    if (is_json_text (self, value, length))
        return redact_inner (self, value, length);
    if (redact_behind (redactor, &redactor->changed, plain->data, plain->length, context)) {
        write_string (self->out, &redactor->changed);
        return true;
    }
    return self->key != NULL && !is_key_itself && is_key (self, "base64") &&
           redact_base64 (self, value, length);
}

/* Behind the quote; the end of what is no string any more. */
static const char *end_of_string (const char *at, const char *end)
{
    while (at < end && *at != '"')
        at += *at == '\\' && end - at > 1 ? 2 : 1;
    return at;
}

static const char *behind_space (const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r'))
        at++;
    return at;
}

static void walk_string (walk_t *self)
{
    const char *text = self->at + 1;
    const char *quote = end_of_string (text, self->end);
    size_t length = (size_t) (quote - text);
    const char *behind = behind_space (quote < self->end ? quote + 1 : quote, self->end);
    bool is_member = behind < self->end && *behind == ':';
    if (is_member) {
        self->key = text;
        self->key_length = length;
    }
    if (!is_kept (self) && redact_value (self, text, length, is_member))
        self->replaced = true;
    else
        bytes_append (self->out, self->at, length + (quote < self->end ? 2 : 1));
    self->at = quote < self->end ? quote + 1 : quote;
    if (!is_member)
        self->key = NULL;
}

static void walk_number (walk_t *self)
{
    const char *start = self->at;
    while (self->at < self->end && *self->at != '\0' &&
           strchr ("+-.0123456789eE", *self->at) != NULL)
        self->at++;
    size_t length = (size_t) (self->at - start);
    if (!is_kept (self) && redact_value (self, start, length, false))
        self->replaced = true;
    else
        bytes_append (self->out, start, length);
    self->key = NULL;
}

static bool redact_json (walk_t *self)
{
    while (self->at < self->end) {
        char c = *self->at;
        if (c == '"') {
            walk_string (self);
            continue;
        }
        if (c == '-' || (c >= '0' && c <= '9')) {
            walk_number (self);
            continue;
        }
        if (c == '{' || c == '[' || c == ',')
            self->key = NULL;
        self->depth += c == '{' || c == '[';
        self->depth -= (c == '}' || c == ']') && self->depth > 0;
        bytes_append_byte (self->out, (uint8_t) c);
        self->at++;
    }
    return self->replaced;
}

bool redact_object (redactor_t *self, bytes_t *out, const void *json, size_t length)
{
    static const char mark[] = ",\"redacted\":true}";
    walk_t walk = {.redactor = self, .out = out, .at = json, .end = (const char *) json + length};
    patterns_begin (self->patterns);
    if (!redact_json (&walk))
        return false;
    if (out->length > 0 && out->data[out->length - 1] == '}') {
        out->length--;
        bytes_append_text (out, mark);
    }
    return true;
}
