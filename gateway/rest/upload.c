/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "rest/upload.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/account.h"
#include "base/effort.h"
#include "base/line.h"
#include "log/log.h"
#include "rest/answer.h"
#include "timestamp.h"

enum {
    LIMIT_PATIENCE_MS = 3000, /* what others have begun passes, a quota may not */
    BEGINS_MAX = 4,           /* of one: a broker that restarts has forgotten what was under way */
    STANDING_MAX = 8,         /* pieces in a row that bring nothing on */
    NOTE_MS = 1000,           /* one line about a disk in so long */
    NO_ROOM_MS = 2000,        /* when somebody is to try again for whom there is no room */
    DISK_FULL_MS = 30000      /* … because others than ours have filled the disk, perhaps */
};

struct upload {
    service_t *service;
    account_t *account;
    exchange_t *exchange;
    spool_file_t *file;
    seat_t seat; /* of those that may be under way; holds what is reserved of the spool */
    uint64_t length;
    tmq_blob_t blob;
    upload_done_fn *done;
    uint64_t offset; /* the next byte that the broker wants */
    unsigned begins;
    unsigned standing;
    turn_t turn;       /* to send a piece; of those under way as many as turns are in memory */
    turn_t begin_turn; /* … or to ask from where on: before that one, among those of the account */
    bool beginning;
    bool had_turn;
    bool begun;       /* at the broker, which has not all of it yet */
    int64_t moved_ms; /* CLOCK_MONOTONIC: when the broker took a piece */
};

/* Room: a principal has half of it at most, and gives some of that up for one who has less. */

static void answer_no_room (exchange_t *exchange, problem_kind_t kind, const char *detail)
{
    answer_problem (exchange,
                    &(problem_t){.kind = kind, .detail = detail, .retry_after_ms = NO_ROOM_MS});
}

/* So much of the disk is missing for these bytes: others go if that is enough, else nobody does. */
static bool make_room (const upload_t *self, uint64_t missing, uint64_t bytes)
{
    service_uploads_t *uploads = &self->service->uploads;
    const uint64_t wanted = uploads->bytes - missing;
    if (seats_room (&uploads->seats, HOLD_SPOOLED, self->account, bytes) < missing)
        return false;
    while (uploads->bytes > wanted &&
           seats_make_room (&uploads->seats, HOLD_SPOOLED, self->account, bytes,
                            "its bytes on the disk, of which there are as many as "
                            "'spool_bytes_max' allows, went to a principal with fewer"))
        ;
    return uploads->bytes <= wanted;
}

/* False: answered. */
static bool reserve (upload_t *self, uint64_t bytes)
{
    service_uploads_t *uploads = &self->service->uploads;
    account_t *account = self->account;
    const uint64_t most = self->service->settings.numbers[SETTING_SPOOL_BYTES_MAX];
    if (bytes > most / 2 - account->held[HOLD_SPOOLED]) {
        answer_no_room (self->exchange, PROBLEM_RATE_LIMITED,
                        "its payloads under way take half of the disk that 'spool_bytes_max' "
                        "allows");
        return false;
    }
    if (bytes > most - uploads->bytes &&
        !make_room (self, bytes - (most - uploads->bytes), bytes)) {
        answer_no_room (self->exchange, PROBLEM_BUSY,
                        "payloads under way take as much of the gateway's disk as "
                        "'spool_bytes_max' allows");
        return false;
    }
    uploads->bytes += bytes;
    account->held[HOLD_SPOOLED] += bytes;
    self->seat.holds += bytes;
    return true;
}

/* Who comes next has it at once, so this is the last that is done with the two. */
static void give_turns (upload_t *self)
{
    turn_give (&self->turn);
    turn_give (&self->begin_turn);
}

/* Two of the same owner that bring the same bytes have one upload there. */
static bool is_shared (const upload_t *self)
{
    const char *owner = owner_of (self->exchange);
    for (const seat_t *at = self->service->uploads.seats.first; at != NULL; at = at->next) {
        const upload_t *other = at->context;
        const char *others = owner_of (other->exchange);
        if (other != self && other->begun && other->exchange->link == self->exchange->link &&
            memcmp (other->blob.hash, self->blob.hash, sizeof self->blob.hash) == 0 &&
            (owner == NULL ? others == NULL : others != NULL && strcmp (owner, others) == 0))
            return true;
    }
    return false;
}

static void take_back (upload_t *self)
{
    if (self->begun && !is_shared (self))
        link_blob_drop (self->exchange->link, owner_of (self->exchange), &self->blob);
    self->begun = false;
}

void upload_free (upload_t **self)
{
    upload_t *upload = *self;
    if (upload == NULL)
        return;
    take_back (upload);
    give_turns (upload);
    spool_close (&upload->file);
    upload->service->uploads.bytes -= upload->seat.holds;
    upload->account->held[HOLD_SPOOLED] -= upload->seat.holds;
    seat_leave (&upload->seat);
    account_release (upload->account);
    free (upload);
    *self = NULL;
}

/* False: answered. */
static bool has_seat (exchange_t *exchange)
{
    service_t *service = service_of (exchange);
    seats_t *seats = &service->uploads.seats;
    const uint64_t most = service->settings.numbers[SETTING_UPLOADS_MAX];
    if (exchange->account->held[HOLD_UPLOADS] >= (most + 1) / 2) {
        answer_no_room (exchange, PROBLEM_RATE_LIMITED,
                        "its payloads of more than 256 KiB under way are half of those that "
                        "'uploads_max' allows");
        return false;
    }
    if (seats->count < most ||
        seats_make_room (seats, HOLD_UPLOADS, exchange->account, 1,
                         "its place, of which there are as many as 'uploads_max' allows, went to "
                         "a principal with fewer"))
        return true;
    answer_no_room (exchange, PROBLEM_BUSY,
                    "as many payloads of more than 256 KiB are under way as 'uploads_max' allows");
    return false;
}

static void give_way (void *context, const char *why)
{
    const upload_t *self = context;
    answer_no_room (self->exchange, PROBLEM_BUSY, why);
}

/* NULL: answered. */
static upload_t *make_upload (exchange_t *exchange)
{
    service_t *service = service_of (exchange);
    if (!has_seat (exchange))
        return NULL;
    upload_t *self = calloc (1, sizeof *self);
    if (self == NULL || (self->file = spool_open (service->spool)) == NULL) {
        free (self);
        answer_code (exchange, TMQ_NO_MEMORY, NULL, NULL);
        return NULL;
    }
    self->service = service;
    self->exchange = exchange;
    self->account = account_retain (exchange->account);
    seat_take (&self->seat, &service->uploads.seats, self->account, give_way, self);
    exchange->upload = self;
    return self;
}

/* From the client. */

/* The disk, not the broker. */
static void note_disk (const exchange_t *exchange, int error)
{
    service_t *service = service_of (exchange);
    const int64_t now_ms = clock_ms (CLOCK_MONOTONIC);
    if (service->spool_ms != 0 && now_ms - service->spool_ms < NOTE_MS)
        return;
    service->spool_ms = now_ms;
    log_write (
        LOG_LEVEL_WARNING, "GATEWAY-SPOOL", "a payload could not be kept on its way",
        LOG_FIELDS (LOG_TEXT ("error", strerror (error)), LOG_TEXT ("request_id", exchange->id)));
}

static void answer_disk (exchange_t *exchange, int error)
{
    char detail[160];
    const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
    note_disk (exchange, error);
    snprintf (detail, sizeof detail, "the gateway cannot keep the payload on its way: %s",
              strerror (error));
    answer_problem (exchange, &(problem_t){.kind = full ? PROBLEM_STORE_FULL : PROBLEM_INTERNAL,
                                           .code = full ? TMQ_STORE_FULL : 0,
                                           .detail = detail,
                                           .retry_after_ms = full ? DISK_FULL_MS : 0});
}

static void piece_written (void *context, int error, const bytes_t *data)
{
    upload_t *self = context;
    exchange_t *exchange = self->exchange;
    (void) data;
    exchange->drop_body (exchange);
    if (error != 0)
        answer_disk (exchange, error);
    else
        exchange->resume (exchange);
}

/* The first piece is whole, or a further one. */
static void piece_came (exchange_t *exchange)
{
    upload_t *self = exchange->upload;
    const http_request_t *request = exchange->request;
    uint64_t room = exchange->body.length;
    if (self == NULL) {
        self = make_upload (exchange);
        room = request->chunked ? room : request->content_length;
    } else if (!request->chunked) {
        room = 0; /* all of it has its room */
    }
    if (self == NULL || !reserve (self, room))
        return;
    self->length += exchange->body.length;
    service_spend (self->service, exchange->principal, (double) effort_take ());
    spool_write (self->file, &exchange->body, piece_written, self);
}

/* How much the broker takes it says to the begin: a limit that was told before may be another one
 * now. */
void upload_expect (exchange_t *exchange)
{
    exchange->on_full = piece_came;
    exchange->body_piece_bytes = UPLOAD_PIECE_BYTES;
}

/* To the broker. */

static void begin (upload_t *self);
static void send_next (upload_t *self);

/* What may pass: the request may be repeated without harm. */
static bool may_pass (int code)
{
    return code == TMQ_UNREACHABLE || code == TMQ_UNKNOWN || code == TMQ_TIMEOUT ||
           code == TMQ_OVERLOADED || code == TMQ_UNAVAILABLE || code == TMQ_STOPPING ||
           code == TMQ_OUTBOX_FULL || code == TMQ_LIMIT;
}

/* The broker may be another process now: it says anew from where on it wants bytes. */
static void try_again (exchange_t *exchange)
{
    begin (exchange->upload);
}

/* No other limit is about a disk that others have filled: only the status rests on the text. */
static bool is_disk (int code, const tmq_error_t *error)
{
    return code == TMQ_STORE_FULL || (code == TMQ_LIMIT && error != NULL &&
                                      strstr (error->text, "limits/blobs_disk") != NULL);
}

static void answer_refusal (exchange_t *exchange, int code, const tmq_error_t *error)
{
    if (is_disk (code, error))
        answer_problem (exchange, &(problem_t){.kind = PROBLEM_STORE_FULL,
                                               .code = code,
                                               .detail = error != NULL ? error->text : NULL,
                                               .retry_after_ms = DISK_FULL_MS});
    else
        answer_code (exchange, code, error, NULL);
}

static void step_failed (upload_t *self, int code, const tmq_error_t *error)
{
    exchange_t *exchange = self->exchange;
    const uint64_t patience_ms = code == TMQ_LIMIT
                                     ? LIMIT_PATIENCE_MS
                                     : self->service->settings.numbers[SETTING_BODY_TIMEOUT];
    const int64_t still_ms = clock_ms (CLOCK_MONOTONIC) - self->moved_ms;
    if ((code == TMQ_NO_BLOB || code == TMQ_CONFLICT) && ++self->begins < BEGINS_MAX) {
        begin (self);
    } else if (may_pass (code) && still_ms < (int64_t) patience_ms) {
        exchange->on_room = try_again;
        exchange->await_room (exchange);
    } else if (code == TMQ_UNKNOWN) {
        answer_code (exchange, TMQ_UNREACHABLE, NULL, NULL); /* no task was made of it */
    } else {
        answer_refusal (exchange, code, error);
    }
}

/* The broker says what it wants next. */
static void step_done (void *context, tmq_completion_t *completion)
{
    upload_t *self = context;
    const tmq_part_t *at = completion->part;
    give_turns (self);
    if (completion->code != TMQ_OK) {
        step_failed (self, completion->code, completion->error);
        return;
    }
    if (at != NULL && !at->more) {
        self->begun = false;
        self->done (self->exchange, &self->blob);
        return;
    }
    self->standing = at != NULL && at->offset == self->offset ? self->standing + 1 : 0;
    if (at == NULL || at->offset >= self->length || self->standing == STANDING_MAX) {
        answer_code (self->exchange, TMQ_INTERNAL, NULL, NULL);
        return;
    }
    if (self->standing == 0)
        self->moved_ms = clock_ms (CLOCK_MONOTONIC);
    self->offset = at->offset;
    send_next (self);
}

static void send_step (upload_t *self, const void *bytes, size_t length)
{
    exchange_t *exchange = self->exchange;
    link_call_t call = call_of (exchange, step_done);
    tmq_error_t error;
    call.context = self;
    const int code =
        link_blob_send (exchange->link, call, &self->blob, self->offset, bytes, length, &error);
    self->begun = self->begun || code == TMQ_OK;
    if (code == TMQ_OK)
        return;
    give_turns (self);
    step_failed (self, code, &error);
}

static void piece_read (void *context, int error, const bytes_t *data)
{
    upload_t *self = context;
    if (error == 0) {
        send_step (self, data->data, data->length);
        return;
    }
    give_turns (self);
    answer_disk (self->exchange, error);
}

static void have_turn (void *context)
{
    upload_t *self = context;
    const uint64_t left = self->length - self->offset;
    if (!self->had_turn)
        self->moved_ms = clock_ms (CLOCK_MONOTONIC); /* it was no fault of the broker before */
    self->had_turn = true;
    if (self->beginning)
        send_step (self, NULL, 0);
    else
        spool_read (self->file, self->offset,
                    left < TMQ_FRAME_BYTES_MAX ? (size_t) left : TMQ_FRAME_BYTES_MAX, piece_read,
                    self);
}

static void may_begin (void *context)
{
    upload_t *self = context;
    turn_take (&self->turn, link_bodies (self->exchange->link), self->account, have_turn, self);
}

/* The broker has so many places for one owner. However many uploads of his wait for one, a single
 * one of them stands among the pieces of others. */
static void begin (upload_t *self)
{
    self->beginning = true;
    turn_take (&self->begin_turn, &self->account->begins, self->account, may_begin, self);
}

static void send_next (upload_t *self)
{
    self->beginning = false;
    turn_take (&self->turn, link_bodies (self->exchange->link), self->account, have_turn, self);
}

static void begin_first (upload_t *self)
{
    spool_hash (self->file, self->blob.hash);
    self->blob.bytes = self->length;
    begin (self);
}

static void last_written (void *context, int error, const bytes_t *data)
{
    upload_t *self = context;
    (void) data;
    self->exchange->drop_body (self->exchange);
    if (error != 0)
        answer_disk (self->exchange, error);
    else
        begin_first (self);
}

bool upload_send (exchange_t *exchange, upload_done_fn *done)
{
    upload_t *self = exchange->upload;
    const bool again = self->blob.bytes > 0;
    if (again && ++self->begins >= BEGINS_MAX)
        return false;
    self->done = done;
    self->seat.stays = true; /* from here on it waits for the broker alone */
    self->moved_ms = clock_ms (CLOCK_MONOTONIC);
    if (again) {
        begin (self);
    } else if (exchange->body.length > 0) {
        self->length += exchange->body.length;
        if (!exchange->request->chunked || reserve (self, exchange->body.length))
            spool_write (self->file, &exchange->body, last_written, self);
    } else {
        begin_first (self);
    }
    return true;
}
