/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "rest/download.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/effort.h"
#include "http/range.h"
#include "log/log.h"
#include "rest/answer.h"
#include "timestamp.h"

enum {
    TAG_SIZE = 2 * TMQ_BLOB_HASH_BYTES + 3, /* quoted */
    LIMIT_PATIENCE_MS = 3000,               /* for what others have begun */
    CUT_LOG_MS = 1000                       /* one line about cuts in so long */
};

struct download {
    download_part_t part;
    tmq_id_t id;
    tmq_artifact_info_t artifact; /* its texts are in name and type */
    char name[TMQ_ARTIFACT_NAME_BYTES_MAX + 1];
    char type[TMQ_CONTENT_TYPE_BYTES_MAX + 1];
    char tag[TAG_SIZE];
    uint8_t hash[TMQ_BLOB_HASH_BYTES];
    uint64_t length;
    bool is_part;                   /* a range was asked for: */
    uint64_t first;                 /* from here … */
    uint64_t end;                   /* … to before here */
    uint64_t at;                    /* the next byte that is wanted */
    crypto_generichash_state state; /* of all before it, where all is wanted */
    tmq_part_t *piece;              /* that had no room */
    turn_t turn;                    /* to ask for the next one */
    int64_t moved_ms;               /* CLOCK_MONOTONIC: when the broker gave the last one */
};

void download_free (download_t **self)
{
    if (*self == NULL)
        return;
    turn_give (&(*self)->turn);
    tmq_part_free ((*self)->piece);
    free (*self);
    *self = NULL;
}

/* The head. */

/* A name of ASCII as it is, any other in UTF-8 as RFC 8187 has it. */
static void name_field (response_t *response, const download_t *self)
{
    char text[3 * TMQ_ARTIFACT_NAME_BYTES_MAX + 64];
    char id[37];
    size_t length;
    if (self->part != DOWNLOAD_ARTIFACT) {
        tmq_id_format (&self->id, id);
        snprintf (text, sizeof text, "attachment; filename=\"%s\"", id);
        response_field (response, "Content-Disposition", text);
        return;
    }
    length = (size_t) snprintf (text, sizeof text, "attachment; filename*=UTF-8''");
    for (const char *at = self->name; *at != '\0'; at++) {
        const unsigned char byte = (unsigned char) *at;
        const bool plain = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                           (byte >= '0' && byte <= '9') || strchr ("-._~", byte) != NULL;
        length +=
            (size_t) snprintf (text + length, sizeof text - length, plain ? "%c" : "%%%02X", byte);
    }
    response_field (response, "Content-Disposition", text);
}

static void range_field (response_t *response, const download_t *self, bool outside)
{
    char text[80];
    if (outside)
        snprintf (text, sizeof text, "bytes */%" PRIu64, self->length);
    else
        snprintf (text, sizeof text, "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, self->first,
                  self->end - 1, self->length);
    response_field (response, "Content-Range", text);
}

static void head_of (response_t *response, const download_t *self)
{
    response_init (response, self->is_part ? 206 : 200);
    response_field (response, "Content-Type",
                    self->type[0] != '\0' ? self->type : "application/octet-stream");
    name_field (response, self);
    response_field (response, "Content-Security-Policy", "sandbox; default-src 'none'");
    response_field (response, "Accept-Ranges", "bytes");
    response_field (response, "ETag", self->tag);
    if (self->is_part)
        range_field (response, self, false);
}

/* The end before the end. */

static void note_cut (exchange_t *exchange, const char *why)
{
    service_t *service = service_of (exchange);
    const download_t *self = exchange->download;
    const int64_t now_ms = clock_ms (CLOCK_MONOTONIC);
    char id[37];
    service->numbers.cut++;
    if (service->cut_ms != 0 && now_ms - service->cut_ms < CUT_LOG_MS)
        return;
    service->cut_ms = now_ms;
    tmq_id_format (&self->id, id);
    log_write (LOG_LEVEL_WARNING, "GATEWAY-CUT", "an answer could not be brought to its end",
               LOG_FIELDS (LOG_TEXT ("task_id", id), LOG_NUMBER ("at", (int64_t) self->at),
                           LOG_NUMBER ("of", (int64_t) self->length), LOG_TEXT ("error", why),
                           LOG_TEXT ("request_id", exchange->id)));
}

static void give_up (exchange_t *exchange, int code, const tmq_error_t *error)
{
    if (exchange->stream_status == 0) {
        answer_code (exchange, code, error, &exchange->download->id);
        return;
    }
    note_cut (exchange,
              error != NULL && error->text[0] != '\0' ? error->text : tmq_code_text (code));
    exchange->cut (exchange);
}

static void give_up_damaged (exchange_t *exchange)
{
    tmq_error_t error = {.code = TMQ_NO_BLOB};
    snprintf (error.text, sizeof error.text, "the broker has other bytes than the hash %.64s says",
              exchange->download->tag + 1);
    give_up (exchange, TMQ_NO_BLOB, &error);
}

/* Before the first byte a client may ask again by itself, unless it is others who are in its way;
 * later it is worth a wait. */
static void pause_or_give_up (exchange_t *exchange, int code, const tmq_error_t *error)
{
    const uint64_t patience_ms =
        exchange->stream_status != 0
            ? service_of (exchange)->settings.numbers[SETTING_OUTPUT_TIMEOUT]
        : code == TMQ_LIMIT ? LIMIT_PATIENCE_MS
                            : 0;
    const int64_t still_ms = clock_ms (CLOCK_MONOTONIC) - exchange->download->moved_ms;
    if (tmq_code_retriable (code) && still_ms < (int64_t) patience_ms)
        exchange->await_room (exchange);
    else
        give_up (exchange, code, error);
}

/* Pieces. */

static void go_on (exchange_t *exchange);

/* One that waits for its end is given time for it, and no longer than for others. */
static void keep_on (exchange_t *exchange)
{
    (void) exchange;
}

/* False: answered. */
static bool begin_stream (exchange_t *exchange)
{
    const download_t *self = exchange->download;
    response_t response;
    head_of (&response, self);
    response.is_sized = true;
    response.length = self->end - self->first;
    exchange->on_stop = keep_on;
    return answer_in_pieces (exchange, &response);
}

static void give_piece (exchange_t *exchange)
{
    download_t *self = exchange->download;
    if (exchange->stream_status == 0 && !begin_stream (exchange))
        return;
    if (!exchange->write (exchange, self->piece->bytes, self->piece->length))
        return; /* there will be room */
    tmq_part_free (self->piece);
    self->piece = NULL;
    if (self->at == self->end)
        exchange->finish (exchange);
    else
        exchange->await_room (exchange);
}

static bool is_right (download_t *self)
{
    uint8_t hash[TMQ_BLOB_HASH_BYTES];
    if (self->end - self->first < self->length || self->at < self->end)
        return true;
    crypto_generichash_final (&self->state, hash, sizeof hash);
    return memcmp (hash, self->hash, sizeof hash) == 0;
}

static void piece_came (void *context, tmq_completion_t *completion)
{
    exchange_t *exchange = context;
    download_t *self = exchange->download;
    tmq_part_t *piece = completion->part;
    turn_give (&self->turn);
    if (completion->code != TMQ_OK) {
        pause_or_give_up (exchange, completion->code, completion->error);
        return;
    }
    if (piece == NULL || piece->length == 0 || piece->length > self->end - self->at ||
        piece->total != self->length) {
        give_up_damaged (exchange);
        return;
    }
    completion->part = NULL;
    self->piece = piece;
    self->moved_ms = clock_ms (CLOCK_MONOTONIC);
    crypto_generichash_update (&self->state, (const uint8_t *) piece->bytes, piece->length);
    self->at += piece->length;
    service_spend (service_of (exchange), exchange->principal, (double) effort_take ());
    if (is_right (self))
        give_piece (exchange);
    else
        give_up_damaged (exchange);
}

static void ask_for_piece (void *context)
{
    exchange_t *exchange = context;
    download_t *self = exchange->download;
    const link_call_t call = call_of (exchange, piece_came);
    const uint64_t left = self->end - self->at;
    const uint32_t limit = left < DOWNLOAD_PIECE_BYTES ? (uint32_t) left : DOWNLOAD_PIECE_BYTES;
    link_t *link = exchange->link;
    tmq_error_t error;
    const int code =
        self->part == DOWNLOAD_PAYLOAD
            ? link_payload_read (link, call, &self->id, self->at, limit, &error)
        : self->part == DOWNLOAD_RESULT
            ? link_result_read (link, call, &self->id, self->at, limit, &error)
            : link_artifact_read (link, call, &self->id, &self->artifact, self->at, limit, &error);
    if (code == TMQ_OK)
        return;
    turn_give (&self->turn);
    pause_or_give_up (exchange, code, &error);
}

static void read_piece (exchange_t *exchange)
{
    exchange->on_room = go_on;
    turn_take (&exchange->download->turn, link_bodies (exchange->link), exchange->account,
               ask_for_piece, exchange);
}

static void go_on (exchange_t *exchange)
{
    if (exchange->download->piece != NULL)
        give_piece (exchange);
    else
        read_piece (exchange);
}

/* Beginning. */

static void answer_outside (exchange_t *exchange)
{
    const download_t *self = exchange->download;
    char detail[80];
    response_t response;
    response_init (&response, 416);
    range_field (&response, self, true);
    snprintf (detail, sizeof detail, "there are %" PRIu64 " bytes, counted from 0", self->length);
    problem_write (&response, &(problem_t){.kind = PROBLEM_RANGE, .detail = detail}, exchange->id);
    answer (exchange, &response);
}

static void answer_at_once (exchange_t *exchange, const void *bytes)
{
    const download_t *self = exchange->download;
    response_t response;
    head_of (&response, self);
    if (bytes != NULL) {
        bytes_append (&response.body, (const uint8_t *) bytes + self->first,
                      (size_t) (self->end - self->first));
    } else {
        response.is_sized = true;
        response.length = self->end - self->first;
    }
    answer (exchange, &response);
}

static void answer_same (exchange_t *exchange)
{
    response_t response;
    response_init (&response, 304);
    response_field (&response, "ETag", exchange->download->tag);
    answer (exchange, &response);
}

/* Who goes on with what he has of it wants no other bytes. A weak tag never tells that they are the
 * same. */
static bool is_expected (const http_request_t *request, const char *tag)
{
    bool is_given = false;
    for (size_t i = 0; i < request->fields_count; i++) {
        const char *value = request->fields[i].value;
        if (strcmp (request->fields[i].name, "if-match") != 0)
            continue;
        is_given = true;
        if (strcmp (value, "*") == 0)
            return true;
        for (const char *at = strstr (value, tag); at != NULL; at = strstr (at + 1, tag))
            if (at < value + 2 || strncmp (at - 2, "W/", 2) != 0)
                return true;
    }
    return !is_given;
}

static void answer_unexpected (exchange_t *exchange)
{
    response_t response;
    response_init (&response, 412);
    response_field (&response, "ETag", exchange->download->tag);
    problem_write (&response,
                   &(problem_t){.kind = PROBLEM_PRECONDITION,
                                .detail = "the bytes have another ETag than If-Match says"},
                   exchange->id);
    answer (exchange, &response);
}

static void take_what (download_t *self, const download_what_t *what)
{
    self->part = what->part;
    self->id = what->id;
    self->length = what->length;
    snprintf (self->type, sizeof self->type, "%s", what->type);
    snprintf (self->name, sizeof self->name, "%s", what->name != NULL ? what->name : "");
    if (what->bytes != NULL)
        crypto_generichash (self->hash, sizeof self->hash, what->bytes, what->length, NULL, 0);
    else
        memcpy (self->hash, what->hash, sizeof self->hash);
    self->artifact = (tmq_artifact_info_t){
        .name = self->name, .type = self->type, .bytes = self->length, .has_hash = true};
    memcpy (self->artifact.hash, self->hash, sizeof self->artifact.hash);
    self->tag[0] = '"';
    sodium_bin2hex (self->tag + 1, TAG_SIZE - 1, self->hash, sizeof self->hash);
    memcpy (self->tag + TAG_SIZE - 2, "\"", 2);
    crypto_generichash_init (&self->state, NULL, 0, sizeof self->hash);
    self->moved_ms = clock_ms (CLOCK_MONOTONIC);
}

/* Which bytes. If-Range wants all of them when it knows others. */
static range_kind_t take_range (download_t *self, const http_request_t *request)
{
    const char *known = http_request_field (request, "if-range");
    const bool counts =
        request->method == HTTP_METHOD_GET && (http_request_count (request, "if-range") == 0 ||
                                               (known != NULL && strcmp (known, self->tag) == 0));
    const range_kind_t kind = range_read (counts ? http_request_field (request, "range") : NULL,
                                          self->length, &self->first, &self->end);
    self->is_part = kind == RANGE_PART;
    self->at = self->first;
    return kind;
}

void download_answer (exchange_t *exchange, const download_what_t *what)
{
    download_t *self = calloc (1, sizeof *self);
    if (self == NULL) {
        answer_code (exchange, TMQ_NO_MEMORY, NULL, NULL);
        return;
    }
    exchange->download = self;
    take_what (self, what);
    const range_kind_t kind = take_range (self, exchange->request);
    if (!is_expected (exchange->request, self->tag))
        answer_unexpected (exchange);
    else if (tag_matches (exchange, self->tag))
        answer_same (exchange);
    else if (kind == RANGE_OUTSIDE)
        answer_outside (exchange);
    else if (what->bytes != NULL || self->length == 0 ||
             exchange->request->method == HTTP_METHOD_HEAD)
        answer_at_once (exchange, what->bytes);
    else
        read_piece (exchange);
}
