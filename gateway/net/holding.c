/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What connections hold of what all share, places and memory, and who gives way. */
#include <event2/buffer.h>
#include <event2/bufferevent.h>

#include "base/trees.h"
#include "net/connection_parts.h"
#include "timestamp.h"

enum {
    BODY_BYTES_MIN = 4096, /* of a part of one, before somebody's want of memory ends it */
    UNREAD_MS = 2000       /* without a byte taken: such a client goes before one that reads */
};

uint64_t connection_limit (const connection_t *self, setting_t setting)
{
    return self->set->settings->numbers[setting];
}

struct evbuffer *connection_output (const connection_t *self)
{
    return bufferevent_get_output (self->buffers);
}

size_t connection_owed (const connection_t *self)
{
    return evbuffer_get_length (connection_output (self));
}

/* Something was added to the output, or its client took some of it. */
static void output_changed (struct evbuffer *output, const struct evbuffer_cb_info *info,
                            void *context)
{
    connection_t *self = context;
    (void) output;
    if (info->n_deleted > 0 || info->orig_size == 0)
        self->took_ms = clock_ms (CLOCK_MONOTONIC);
}

bool connection_watch_output (connection_t *self)
{
    return evbuffer_add_cb (connection_output (self), output_changed, self) != NULL;
}

/* The list of all: who did something last stands first. */

void connection_enter_list (connection_t *self)
{
    connections_t *set = self->set;
    self->previous = NULL;
    self->next = set->first;
    *(self->next != NULL ? &self->next->previous : &set->last) = self;
    set->first = self;
}

void connection_leave_list (connection_t *self)
{
    connections_t *set = self->set;
    if (set->walk == self)
        set->walk = self->next;
    *(self->next != NULL ? &self->next->previous : &set->last) = self->previous;
    *(self->previous != NULL ? &self->previous->next : &set->first) = self->next;
}

/* Memory that heads, bodies and answers of connections take, beside what is parsed of them. Each
 * counts to its holder, too, who has a part of it at most. */

bool connection_is_stranger (const connection_t *self)
{
    return self->holder == &self->set->numbers.strangers;
}

static uint64_t rest_of (uint64_t most, uint64_t held)
{
    return held < most ? most - held : 0;
}

static uint64_t rest_of_holder (const connection_t *self)
{
    return rest_of (connection_limit (self, connection_is_stranger (self)
                                                ? SETTING_STRANGERS_BYTES_MAX
                                                : SETTING_PRINCIPAL_BYTES_MAX),
                    self->holder->bytes);
}

/* Is nothing lost by its end? A stranger's answer may be; who is known reads his. */
static bool can_be_spared (const connection_t *self)
{
    return connection_is_stranger (self) ? self->phase <= PHASE_HEAD || self->phase >= PHASE_CLOSING
                                         : self->phase <= PHASE_HEAD && connection_owed (self) == 0;
}

/* Of the strangers who hold memory, the one who has done nothing for the longest goes. False: there
 * is none but this one. */
static bool displace_stranger (const connection_t *self)
{
    connection_t *at = self->set->last;
    while (at != NULL && (at == self || at->running || !connection_is_stranger (at) ||
                          !can_be_spared (at) || at->input_charged + at->output_charged == 0))
        at = at->previous;
    if (at == NULL)
        return false;
    self->set->numbers.displaced++;
    connection_free (at);
    return true;
}

static uint64_t connections_of (const account_t *holder)
{
    return holder->held[HOLD_CONNECTIONS];
}

static uint64_t bytes_of (const account_t *holder)
{
    return holder->bytes;
}

/* Does it wait for nothing but that its answer is read? */
static bool is_unread (const connection_t *self)
{
    return (self->phase <= PHASE_HEAD || self->phase >= PHASE_CLOSING) &&
           connection_owed (self) > 0;
}

/* Does it hold memory for an answer that its client has not read, or for a body that is not whole?
 * Streams go on where they ended, or their request is made again; what else is under way would be
 * lost. */
static bool holds_memory (const connection_t *self)
{
    const exchange_t *exchange = &self->exchange;
    if (self->phase == PHASE_BODY)
        return self->body_charged >= BODY_BYTES_MIN;
    if (self->phase == PHASE_STREAM)
        return connection_owed (self) > 0 && exchange->seat.fn != NULL && !exchange->seat.stays;
    return is_unread (self);
}

static bool reads (const connection_t *self, int64_t now_ms)
{
    return connection_owed (self) > 0 && now_ms - self->took_ms < UNREAD_MS;
}

/* Of those that may go: of whoever has the most, and more than that, the one that has done nothing
 * for the longest. Clients that read go only if there are none that do not: slowly to read is no
 * way to stay. */
static connection_t *find_of_most (const connections_t *set, bool (*may) (const connection_t *),
                                   uint64_t (*of) (const account_t *), uint64_t most)
{
    const int64_t now_ms = clock_ms (CLOCK_MONOTONIC);
    connection_t *found = NULL, *reader = NULL;
    uint64_t most_of_readers = most;
    for (connection_t *at = set->last; at != NULL; at = at->previous) {
        const uint64_t has = of (at->holder);
        const bool is_reader = reads (at, now_ms);
        if (at->running || has <= (is_reader ? most_of_readers : most) || !may (at))
            continue;
        *(is_reader ? &reader : &found) = at;
        *(is_reader ? &most_of_readers : &most) = has;
    }
    return found != NULL ? found : reader;
}

static uint64_t charged (const connection_t *self)
{
    return self->input_charged + self->body_charged + self->output_charged;
}

/* What they would give back, one after the other, as they are found. */
static uint64_t memory_of (const connections_t *set, bool readers, uint64_t most)
{
    const int64_t now_ms = clock_ms (CLOCK_MONOTONIC);
    uint64_t room = 0;
    for (const connection_t *at = set->last; at != NULL; at = at->previous)
        if (!at->running && reads (at, now_ms) == readers && at->holder->kept > most &&
            holds_memory (at)) {
            at->holder->kept -= charged (at);
            room += charged (at);
        }
    return room;
}

static uint64_t memory_of_others (const connections_t *set, uint64_t most)
{
    for (const connection_t *at = set->first; at != NULL; at = at->next)
        at->holder->kept = at->holder->bytes;
    const uint64_t room = memory_of (set, false, most);
    return room + memory_of (set, true, most);
}

/* What it owes is thrown away at once, and it ends in the loop's next turn: its own calls may be
 * what all this happens inside of. */
static void drop_stream (connection_t *self)
{
    struct evbuffer *output = connection_output (self);
    evbuffer_unfreeze (output, 1); /* only writing takes from there, else */
    evbuffer_drain (output, evbuffer_get_length (output));
    evbuffer_freeze (output, 1);
    connection_discharge (self, &self->output_charged);
    connection_doom (self);
}

/* A stream that tells its end owes that, too, and goes when it is found again. */
static void give_way (connection_t *self)
{
    if (self->phase == PHASE_STREAM && self->exchange.stream_kind == STREAM_MCP) {
        drop_stream (self);
        return;
    }
    if (self->phase == PHASE_STREAM) {
        self->exchange.seat.fn (self->exchange.seat.context, NULL);
        return;
    }
    const bool is_body = self->phase == PHASE_BODY;
    if (is_body)
        connection_refuse (self, 503,
                           "the memory of its body, of which there is as much as "
                           "'memory_bytes_max' allows, went to a principal with less");
    if (!is_body || self->dying)
        connection_free (self);
}

/* The memory of all is for who has less of it. */
static bool displace_holder (const connection_t *self, uint64_t bytes)
{
    connections_t *set = self->set;
    connection_t *found = find_of_most (set, holds_memory, bytes_of, self->holder->bytes + bytes);
    if (found == NULL)
        return false;
    set->numbers.displaced++;
    set->displacing = true;
    give_way (found);
    set->displacing = false;
    return true;
}

/* So much is missing for these bytes: others go if that is enough, else nobody does. */
static void make_memory (const connection_t *self, uint64_t missing, uint64_t bytes)
{
    connections_t *set = self->set;
    const uint64_t *used = &set->numbers.memory_bytes;
    const uint64_t wanted = missing < *used ? *used - missing : 0;
    if (connection_is_stranger (self) || set->displacing ||
        memory_of_others (set, self->holder->bytes + bytes) < missing)
        return;
    while (*used > wanted && displace_holder (self, bytes))
        ;
}

/* NULL: it counts from now on; else why there is no room for it, a sentence. */
const char *connection_charge (connection_t *self, uint64_t *account, uint64_t bytes)
{
    uint64_t *used = &self->set->numbers.memory_bytes;
    while (connection_is_stranger (self) && bytes > rest_of_holder (self) &&
           displace_stranger (self))
        ;
    if (bytes > rest_of_holder (self))
        return connection_is_stranger (self)
                   ? "those without a token take as much memory as 'strangers_bytes_max' allows"
                   : "its requests and answers take as much memory as 'principal_bytes_max' allows";
    const uint64_t most = connection_limit (self, SETTING_MEMORY_BYTES_MAX);
    const uint64_t all = *used + trees_bytes () + bytes;
    if (all > most)
        make_memory (self, all - most, bytes);
    if (bytes > rest_of (most, *used + trees_bytes ()))
        return "all requests and answers take as much memory as 'memory_bytes_max' allows";
    *used += bytes;
    self->holder->bytes += bytes;
    *account += bytes;
    return NULL;
}

void connection_give_back (connection_t *self, uint64_t *account, uint64_t bytes)
{
    self->set->numbers.memory_bytes -= bytes;
    self->holder->bytes -= bytes;
    *account -= bytes;
}

void connection_discharge (connection_t *self, uint64_t *account)
{
    connection_give_back (self, account, *account);
}

/* What it holds counts to whom its request is of, from now on. */
void connection_take_holder (connection_t *self)
{
    account_t *holder = self->exchange.account;
    const uint64_t held = charged (self);
    if (holder == NULL || holder == self->holder)
        return;
    self->holder->bytes -= held;
    holder->bytes += held;
    self->holder->held[HOLD_CONNECTIONS]--;
    holder->held[HOLD_CONNECTIONS]++;
    account_release (self->holder);
    self->holder = account_retain (holder);
}

bool connections_make_room (connections_t *set)
{
    connection_t *found = NULL;
    for (connection_t *at = set->last;
         at != NULL && (found == NULL || !connection_is_stranger (found)); at = at->previous)
        if (!at->running && can_be_spared (at) && (found == NULL || connection_is_stranger (at)))
            found = at;
    if (found == NULL)
        found = find_of_most (set, is_unread, connections_of, 1);
    if (found == NULL)
        return false;
    set->numbers.displaced++;
    connection_free (found);
    return true;
}
