/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Failure: a key that cannot be kept in its file is never announced nor used; the present one stays
 * until it can. */
#include "key_change.h"

#include <sodium.h>
#include <string.h>
#include <time.h>

#include "log/log.h"
#include "taskmq.pb-c.h"
#include "timestamp.h"

enum { RETRY_MS = 1000 };

static int64_t system_ms (void)
{
    return clock_ms (CLOCK_REALTIME);
}

/* Says once that the next key cannot be kept, and goes on with the present one. */
static void say_kept (key_change_t *self, bool failed, const char *error)
{
    if (failed && !self->failed)
        log_write (LOG_LEVEL_ERROR, "SERVER-KEY-KEPT",
                   "the next key cannot be written, so the present one stays: tried each second",
                   LOG_FIELDS (LOG_TEXT ("error", error)));
    self->failed = failed;
}

exits_t key_change_open (key_change_t *self, const data_t *data, doors_t *doors)
{
    char error[SERVER_KEY_ERROR_SIZE];
    *self = (key_change_t){.data = data, .doors = doors, .now_ms = system_ms};
    pthread_mutex_init (&self->lock, NULL);
    exits_t code = server_key_read_next (&self->next, &self->at_ms, &self->has_next, data, error);
    if (code != EXITS_OK)
        return exits_fail (code, error);
    if (self->has_next && self->at_ms <= self->now_ms ()) {
        self->has_next = server_key_use_next (&self->next, data, error) != EXITS_OK;
        say_kept (self, self->has_next, error);
    }
    self->news = self->has_next;
    if (self->has_next)
        key_public_of (&self->next_public, &self->next);
    return EXITS_OK;
}

void key_change_close (key_change_t *self)
{
    sodium_memzero (&self->next, sizeof (self->next));
    pthread_mutex_destroy (&self->lock);
}

void key_change_begin (key_change_t *self)
{
    pthread_mutex_lock (&self->lock);
    self->has_present = self->doors->has_server_key;
    self->present = self->doors->server_public;
    pthread_mutex_unlock (&self->lock);
}

/* The order. */

static void answer (const key_change_t *self, errand_t *errand)
{
    Taskmq__ServerKey out = TASKMQ__SERVER_KEY__INIT;
    key_public_t present = self->present;
    key_public_t next = self->next_public;
    out.public_key = (ProtobufCBinaryData){KEY_BYTES, present.bytes};
    out.next = (ProtobufCBinaryData){KEY_BYTES, next.bytes};
    out.at = (uint64_t) self->at_ms;
    errand_reply (errand, TASKMQ__REPLY__BODY_SERVER_KEY, &out.base);
}

/* The change may cut the very link that the answer would leave by: then the same order comes again,
 * which must not be another change. */
static bool is_repeat (key_change_t *self, const ProtobufCBinaryData *id)
{
    if (id->len != sizeof (self->last_order))
        return false;
    return self->has_last_order && memcmp (self->last_order, id->data, id->len) == 0;
}

/* Another order moves only the time: who knows the next key already is not to be disappointed. What
 * is to be done at once is not announced: nobody could hear it in time. */
static void order (key_change_t *self, errand_t *errand, uint64_t in_ms)
{
    if (!self->has_present) {
        errand_refuse (errand, TMQ_NOT_FOUND,
                       "this broker has no key: it listens on no address that asks for one");
        return;
    }
    char error[SERVER_KEY_ERROR_SIZE];
    key_secret_t next = self->next;
    key_public_t next_public = self->next_public;
    int64_t at_ms = self->now_ms () + (int64_t) in_ms;
    if (!self->has_next)
        key_make (&next_public, &next);
    exits_t code = server_key_write_next (&next, at_ms, self->data, error);
    if (code == EXITS_OK) {
        self->news = self->news || (!self->has_next && in_ms > 0);
        self->has_next = true;
        self->next = next;
        self->next_public = next_public;
        self->at_ms = at_ms;
        answer (self, errand);
    } else {
        errand_refuse (errand, code == EXITS_FULL ? TMQ_STORE_FULL : TMQ_INTERNAL, "%.500s", error);
    }
    sodium_memzero (&next, sizeof (next));
}

/* Its time has come: the file first, so that a broker that ends now begins with this key. */
static void keep (key_change_t *self)
{
    char error[SERVER_KEY_ERROR_SIZE];
    pthread_mutex_lock (&self->lock);
    self->asked = false;
    bool due = self->has_next && self->at_ms <= self->now_ms (); /* an order may have moved it */
    self->kept = due && server_key_use_next (&self->next, self->data, error) == EXITS_OK;
    say_kept (self, due && !self->kept, error);
    pthread_mutex_unlock (&self->lock);
}

static void run (void *context, errand_t *errand)
{
    key_change_t *self = context;
    if (errand->request == NULL) { /* of the server */
        keep (self);
        return;
    }
    Taskmq__Request *request =
        taskmq__request__unpack (NULL, buf_length (errand->request), buf_bytes (errand->request));
    if (request == NULL || request->op_case != TASKMQ__REQUEST__OP_SERVER_KEY_ROTATE) {
        errand_refuse (errand, TMQ_INTERNAL, "the request cannot be read again");
    } else {
        pthread_mutex_lock (&self->lock);
        if (is_repeat (self, &request->request_id))
            answer (self, errand);
        else
            order (self, errand, request->server_key_rotate->in_ms);
        if (errand->code == TMQ_OK && request->request_id.len == sizeof (self->last_order)) {
            self->has_last_order = true;
            memcpy (self->last_order, request->request_id.data, sizeof (self->last_order));
        }
        pthread_mutex_unlock (&self->lock);
    }
    if (request != NULL)
        taskmq__request__free_unpacked (request, NULL);
}

errand_runner_t key_change_runner (key_change_t *self)
{
    return (errand_runner_t){TASKMQ__REQUEST__OP_SERVER_KEY_ROTATE, run, self};
}

/* The change. */

static void change (key_change_t *self, engine_t *engine, now_t now)
{
    engine_next_key (engine, NULL, now);
    engine_move (engine, now);
    doors_change_key (self->doors, &self->next);
    self->present = self->next_public;
    self->has_next = false;
    self->kept = false;
    sodium_memzero (&self->next, sizeof (self->next));
}

bool key_change_turn (key_change_t *self, engine_t *engine, now_t now)
{
    if (pthread_mutex_trylock (&self->lock) != 0)
        return false; /* a file is just being written */
    if (self->news)
        engine_next_key (engine, &self->next_public, now);
    self->news = false;
    if (self->kept)
        change (self, engine, now);
    /* Without an address that asks for keys there is nobody to be told and nothing to be opened. */
    bool due = self->has_present && self->has_next && self->at_ms <= now.wall_ms;
    bool ask = due && !self->asked && now.mono_ms >= self->retry_at;
    if (ask) {
        self->asked = true;
        self->retry_at = now.mono_ms + RETRY_MS;
    }
    pthread_mutex_unlock (&self->lock);
    return ask;
}
