/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "http/codec.h"

#include <http_parser.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    HEAD_BYTES_FIRST = 1024,
    CHUNK_DIGITS_MAX = 8 /* of the length of a chunk, in hexadecimal */
};

/* Where it is in the bytes of a request. */
typedef enum place {
    PLACE_HEAD,
    PLACE_ACCEPT, /* the head is there, and it is to be said how much body is taken */
    PLACE_BODY,   /* Content-Length */
    PLACE_CHUNK_LENGTH,
    PLACE_CHUNK_LENGTH_LF,
    PLACE_CHUNK,
    PLACE_CHUNK_CR,
    PLACE_CHUNK_LF,
    PLACE_LAST_CR, /* behind the chunk of length 0 */
    PLACE_LAST_LF,
    PLACE_END,
    PLACE_REFUSED
} place_t;

struct codec {
    codec_limits_t limits;
    place_t place;
    char *head; /* NULL while no byte of it has come */
    size_t head_length;
    size_t head_size;
    size_t line_length; /* of the line under way */
    bool first_line;
    http_field_t *fields;
    size_t fields_count;
    bool in_value; /* the parser told of a value last */
    http_request_t request;
    uint64_t body_max;
    const char *too_long; /* what is said of a body beyond it */
    uint64_t body_taken;
    uint64_t left; /* of the body, or of the chunk */
    size_t digits; /* of the chunk's length */
    int status;
    const char *reason;
};

static const char *const methods[] = {"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"};

const char *http_method_text (http_method_t method)
{
    return (size_t) method < HTTP_METHODS_COUNT ? methods[method] : "?";
}

size_t http_request_count (const http_request_t *request, const char *name)
{
    size_t count = 0;
    for (size_t i = 0; i < request->fields_count; i++)
        count += strcmp (request->fields[i].name, name) == 0;
    return count;
}

const char *http_request_field (const http_request_t *request, const char *name)
{
    const char *value = NULL;
    for (size_t i = 0; i < request->fields_count; i++) {
        if (strcmp (request->fields[i].name, name) != 0)
            continue;
        if (value != NULL)
            return NULL;
        value = request->fields[i].value;
    }
    return value;
}

codec_t *codec_new (const codec_limits_t *limits)
{
    codec_t *self = calloc (1, sizeof *self);
    if (self != NULL) {
        self->limits = *limits;
        self->first_line = true;
    }
    return self;
}

void codec_free (codec_t *self)
{
    if (self == NULL)
        return;
    free (self->head);
    free (self->fields);
    free (self);
}

void codec_next (codec_t *self)
{
    const codec_limits_t limits = self->limits;
    free (self->head);
    free (self->fields);
    memset (self, 0, sizeof *self);
    self->limits = limits;
    self->first_line = true;
}

bool codec_is_idle (const codec_t *self)
{
    return self->place == PLACE_HEAD && self->head_length == 0;
}

size_t codec_held (const codec_t *self)
{
    return self->head_size + self->fields_count * sizeof *self->fields;
}

const http_request_t *codec_request (const codec_t *self)
{
    return &self->request;
}

int codec_refusal (const codec_t *self, const char **reason)
{
    if (reason != NULL)
        *reason = self->reason;
    return self->status;
}

static codec_event_t refuse (codec_t *self, int status, const char *reason)
{
    self->place = PLACE_REFUSED;
    self->status = status;
    self->reason = reason;
    return CODEC_REFUSED;
}

/* The guard: every byte of the head, as it comes. */

static bool is_token (char character)
{
    const unsigned char byte = (unsigned char) character;
    return byte > ' ' && byte < 0x7f && strchr ("\"(),/:;<=>?@[\\]{}", byte) == NULL;
}

static bool is_digit (char character)
{
    return character >= '0' && character <= '9';
}

/* How the byte goes on what stands before it; NULL: well. */
static const char *guard_byte (const codec_t *self, char byte)
{
    const char before = self->head_length > 0 ? self->head[self->head_length - 1] : '\0';
    if (before == '\r')
        return byte == '\n' ? NULL : "a CR stands alone";
    if (byte == '\n')
        return "a LF stands alone";
    if (self->head_length == 0 && !is_token (byte))
        return "this is no request of HTTP";
    if (before == '\n' && (byte == ' ' || byte == '\t'))
        return "a line of the head goes on in the next one";
    if (byte == '\r' || (byte == '\t' && !self->first_line))
        return NULL;
    return (unsigned char) byte < ' ' || byte == 0x7f ? "a control character in the head" : NULL;
}

static bool grow_head (codec_t *self)
{
    if (self->head_length < self->head_size)
        return true;
    size_t size = self->head_size == 0 ? HEAD_BYTES_FIRST : self->head_size * 2;
    if (size > self->limits.head_bytes_max)
        size = self->limits.head_bytes_max;
    char *head = realloc (self->head, size);
    if (head == NULL)
        return false;
    self->head = head;
    self->head_size = size;
    return true;
}

/* The head ends with an empty line. */
static bool head_ends (const codec_t *self)
{
    return self->head_length >= 4 &&
           memcmp (self->head + self->head_length - 4, "\r\n\r\n", 4) == 0;
}

/* The request line is METHOD SP TARGET SP HTTP/1.x, with nothing more and nothing else. */
static codec_event_t guard_request_line (codec_t *self)
{
    char *line = self->head;
    const size_t length = self->line_length - 2; /* without CR and LF */
    char *space = memchr (line, ' ', length);
    if (space == NULL)
        return refuse (self, 400, "the request line is METHOD TARGET HTTP/1.1");
    const size_t method_length = (size_t) (space - line);
    for (size_t i = 0; i < method_length; i++)
        if (!is_token (line[i]))
            return refuse (self, 400, "the method is no token");
    const char *target = space + 1;
    const char *end = memchr (target, ' ', length - method_length - 1);
    if (end == NULL || length - (size_t) (end - line) != sizeof " HTTP/1.1" - 1 ||
        strncmp (end, " HTTP/", 6) != 0 || !is_digit (end[6]) || end[7] != '.' ||
        !is_digit (end[8]))
        return refuse (self, 400, "the request line is METHOD TARGET HTTP/1.1");
    if (end[6] != '1' || end[8] > '1')
        return refuse (self, 505, "the versions are HTTP/1.1 and HTTP/1.0");
    if ((size_t) (end - target) > self->limits.target_bytes_max)
        return refuse (self, 414, "the target is too long");
    if (*target != '/')
        return refuse (self, 400, "the target is a path that begins with a slash");
    for (const char *at = target; at < end; at++)
        if ((unsigned char) *at > 0x7e || *at == '#')
            return refuse (self, 400, "the target has a character that must be encoded");
    self->request.minor_0 = end[8] == '0';
    for (size_t i = 0; i < HTTP_METHODS_COUNT; i++) {
        self->request.method = (http_method_t) i;
        if (strlen (methods[i]) == method_length && memcmp (methods[i], line, method_length) == 0)
            return CODEC_MORE;
    }
    return refuse (self, 501, "the methods are GET, HEAD, POST, PUT, DELETE and OPTIONS");
}

/* The parser: spans of the head become texts, which end where they stand. */

static int on_url (http_parser *parser, const char *at, size_t length)
{
    codec_t *self = parser->data;
    self->request.target = at;
    self->head[(size_t) (at - self->head) + length] = '\0';
    return 0;
}

/* The head comes whole, so a name is one span. */
static int on_name (http_parser *parser, const char *at, size_t length)
{
    codec_t *self = parser->data;
    if (self->fields_count == self->limits.fields_max) {
        refuse (self, 431, "the head has too many fields");
        return -1;
    }
    char *name = self->head + (at - self->head);
    for (size_t i = 0; i < length; i++) {
        if (!is_token (name[i])) {
            refuse (self, 400, "the name of a field is no token");
            return -1;
        }
        if (name[i] >= 'A' && name[i] <= 'Z')
            name[i] = (char) (name[i] - 'A' + 'a');
    }
    name[length] = '\0'; /* the colon, which has been read */
    self->fields[self->fields_count++] = (http_field_t){name, ""};
    self->in_value = false;
    return 0;
}

static int on_value (http_parser *parser, const char *at, size_t length)
{
    codec_t *self = parser->data;
    char *value = self->head + (at - self->head);
    while (length > 0 && (value[length - 1] == ' ' || value[length - 1] == '\t'))
        length--;
    if (self->in_value || self->fields_count == 0) {
        refuse (self, 400, "a field is NAME: VALUE");
        return -1;
    }
    self->in_value = true;
    if (length == 0)
        return 0; /* at is in the next line then */
    value[length] = '\0';
    self->fields[self->fields_count - 1].value = value;
    return 0;
}

/* What it makes of the body is not asked: that is decided below. */
static int on_headers (http_parser *parser)
{
    (void) parser;
    return 1;
}

static int on_complete (http_parser *parser)
{
    http_parser_pause (parser, 1);
    return 0;
}

static codec_event_t parse_head (codec_t *self)
{
    static const http_parser_settings settings = {.on_url = on_url,
                                                  .on_header_field = on_name,
                                                  .on_header_value = on_value,
                                                  .on_headers_complete = on_headers,
                                                  .on_message_complete = on_complete};
    http_parser parser;
    self->fields = calloc (self->limits.fields_max, sizeof *self->fields);
    if (self->fields == NULL)
        return refuse (self, 503, "memory is exhausted");
    http_parser_init (&parser, HTTP_REQUEST);
    parser.data = self;
    http_parser_execute (&parser, &settings, self->head, self->head_length);
    if (self->place == PLACE_REFUSED)
        return CODEC_REFUSED;
    const enum http_errno code = HTTP_PARSER_ERRNO (&parser);
    if ((code != HPE_OK && code != HPE_PAUSED) || self->request.target == NULL)
        return refuse (self, 400, http_errno_description (code));
    self->request.fields = self->fields;
    self->request.fields_count = self->fields_count;
    return CODEC_MORE;
}

/* What the fields say about the body and the connection. */

static bool parse_length (uint64_t *out, const char *text)
{
    uint64_t value = 0;
    const char *at = text;
    for (; is_digit (*at); at++) {
        if (value > (INT64_MAX - 9) / 10)
            return false;
        value = value * 10 + (uint64_t) (*at - '0');
    }
    *out = value;
    return at > text && *at == '\0';
}

static codec_event_t judge_framing (codec_t *self)
{
    http_request_t *request = &self->request;
    const size_t codings = http_request_count (request, "transfer-encoding");
    const size_t lengths = http_request_count (request, "content-length");
    if (codings + lengths > 1)
        return refuse (self, 400, "the body has one Content-Length or one Transfer-Encoding");
    if (lengths == 1 &&
        !parse_length (&request->content_length, http_request_field (request, "content-length")))
        return refuse (self, 400, "Content-Length is a number of bytes");
    if (codings == 1) {
        if (request->minor_0 ||
            strcasecmp (http_request_field (request, "transfer-encoding"), "chunked") != 0)
            return refuse (self, 400, "Transfer-Encoding is chunked, in HTTP/1.1");
        request->chunked = true;
    }
    const bool has_body = request->chunked || request->content_length > 0;
    if (has_body && request->method != HTTP_METHOD_POST && request->method != HTTP_METHOD_PUT)
        return refuse (self, 400, "a request of this method has no body");
    return CODEC_MORE;
}

/* True if the comma-separated list has that word. */
static bool list_has (const char *list, const char *word)
{
    const size_t length = strlen (word);
    while (*list != '\0') {
        list += strspn (list, " \t,");
        size_t part = strcspn (list, ",");
        const char *next = list + part;
        while (part > 0 && (list[part - 1] == ' ' || list[part - 1] == '\t'))
            part--;
        if (part == length && strncasecmp (list, word, length) == 0)
            return true;
        list = next;
    }
    return false;
}

static codec_event_t judge_head (codec_t *self)
{
    http_request_t *request = &self->request;
    const size_t hosts = http_request_count (request, "host");
    if (hosts > 1 || (hosts == 0 && !request->minor_0))
        return refuse (self, 400, "a request has exactly one Host");
    if (judge_framing (self) == CODEC_REFUSED)
        return CODEC_REFUSED;
    const char *expect = http_request_field (request, "expect");
    if (http_request_count (request, "expect") > 0 &&
        (expect == NULL || strcasecmp (expect, "100-continue") != 0))
        return refuse (self, 417, "what is expected can only be 100-continue");
    request->expects_continue = expect != NULL && !request->minor_0;
    request->keep_alive = !request->minor_0;
    for (size_t i = 0; i < request->fields_count; i++)
        if (strcmp (request->fields[i].name, "connection") == 0 &&
            request->fields[i].value != NULL && list_has (request->fields[i].value, "close"))
            request->keep_alive = false;
    self->place = PLACE_ACCEPT;
    return CODEC_HEAD;
}

static codec_event_t too_long (codec_t *self)
{
    return self->first_line && self->line_length > self->limits.target_bytes_max
               ? refuse (self, 414, "the target is too long")
               : refuse (self, 431, "the head is too long");
}

static codec_event_t take_head (codec_t *self, const char *bytes, size_t length, size_t *used)
{
    for (size_t i = 0; i < length; i++) {
        const char *flaw = guard_byte (self, bytes[i]);
        if (flaw != NULL)
            return refuse (self, 400, flaw);
        if (self->head_length == self->limits.head_bytes_max ||
            (self->first_line && self->line_length > self->limits.target_bytes_max + 32))
            return too_long (self);
        if (!grow_head (self))
            return refuse (self, 503, "memory is exhausted");
        self->head[self->head_length++] = bytes[i];
        self->line_length++;
        *used = i + 1;
        if (bytes[i] != '\n')
            continue;
        if (self->first_line && guard_request_line (self) == CODEC_REFUSED)
            return CODEC_REFUSED;
        self->first_line = false;
        self->line_length = 0;
        if (!head_ends (self))
            continue;
        return parse_head (self) == CODEC_REFUSED ? CODEC_REFUSED : judge_head (self);
    }
    return CODEC_MORE;
}

/* Bodies. */

void codec_accept (codec_t *self, uint64_t body_bytes_max, const char *reason)
{
    if (self->place != PLACE_ACCEPT)
        return;
    self->body_max = body_bytes_max;
    self->too_long = reason;
    self->left = self->request.content_length;
    if (self->left > body_bytes_max)
        refuse (self, 413, reason);
    else if (self->request.chunked)
        self->place = PLACE_CHUNK_LENGTH;
    else
        self->place = self->left > 0 ? PLACE_BODY : PLACE_END;
}

static int hex_value (char digit)
{
    if (is_digit (digit))
        return digit - '0';
    if (digit >= 'a' && digit <= 'f')
        return digit - 'a' + 10;
    return digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}

/* A byte of a chunk's length: digits, then CR. Extensions mean nothing to anybody, but readers have
 * disagreed about where they end. */
static codec_event_t take_chunk_length (codec_t *self, char byte)
{
    const int value = hex_value (byte);
    if (byte == '\r' && self->digits > 0) {
        self->place = PLACE_CHUNK_LENGTH_LF;
        return CODEC_MORE;
    }
    if (value < 0 || self->digits == CHUNK_DIGITS_MAX)
        return refuse (self, 400, "a chunk begins with its length in hexadecimal, alone in a line");
    self->left = self->left * 16 + (uint64_t) value;
    self->digits++;
    return CODEC_MORE;
}

static codec_event_t begin_chunk (codec_t *self)
{
    self->digits = 0;
    if (self->left > self->body_max - self->body_taken)
        return refuse (self, 413, self->too_long);
    self->place = self->left > 0 ? PLACE_CHUNK : PLACE_LAST_CR;
    return CODEC_MORE;
}

/* A byte of what stands around chunks. */
static codec_event_t take_frame (codec_t *self, char byte)
{
    const place_t place = self->place;
    const bool wants_cr = place == PLACE_CHUNK_CR || place == PLACE_LAST_CR;
    if (place == PLACE_CHUNK_LENGTH)
        return take_chunk_length (self, byte);
    if (byte != (wants_cr ? '\r' : '\n'))
        return refuse (self, 400,
                       place == PLACE_LAST_CR ? "fields behind the body are not taken"
                                              : "a chunk does not end where its length says");
    if (place == PLACE_CHUNK_LENGTH_LF)
        return begin_chunk (self);
    self->place = place == PLACE_CHUNK_CR   ? PLACE_CHUNK_LF
                  : place == PLACE_CHUNK_LF ? PLACE_CHUNK_LENGTH
                  : place == PLACE_LAST_CR  ? PLACE_LAST_LF
                                            : PLACE_END;
    return CODEC_MORE;
}

static codec_event_t take_piece (codec_t *self, size_t length, size_t *piece)
{
    *piece = self->left < length ? (size_t) self->left : length;
    self->left -= *piece;
    self->body_taken += *piece;
    if (self->left == 0)
        self->place = self->place == PLACE_CHUNK ? PLACE_CHUNK_CR : PLACE_END;
    return CODEC_BODY;
}

codec_event_t codec_feed (codec_t *self, const void *bytes, size_t length, size_t *used,
                          const uint8_t **body, size_t *body_length)
{
    const char *text = bytes;
    *used = 0;
    if (self->place == PLACE_HEAD)
        return take_head (self, text, length, used);
    while (*used < length && self->place != PLACE_END && self->place != PLACE_REFUSED &&
           self->place != PLACE_ACCEPT) {
        if (self->place == PLACE_BODY || self->place == PLACE_CHUNK) {
            *body = (const uint8_t *) text + *used;
            take_piece (self, length - *used, body_length);
            *used += *body_length;
            return CODEC_BODY;
        }
        if (take_frame (self, text[*used]) == CODEC_MORE)
            ++*used;
    }
    if (self->place == PLACE_REFUSED)
        return CODEC_REFUSED;
    return self->place == PLACE_END ? CODEC_END : CODEC_MORE;
}
