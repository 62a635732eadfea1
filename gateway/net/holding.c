/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What connections hold of what all share, places and memory, and who gives way. */
#include <event2/buffer.h>
#include <event2/bufferevent.h>

#include "base/trees.h"
#include "net/connection_parts.h"

enum { BODY_BYTES_MIN = 4096 /* of a part of one, before somebody's want of memory ends it */ };

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

/* Does it hold memory for an answer that its client does not read, or for a body that is not whole?
 * Streams of bytes and events go on where they ended; what else is under way would be lost. */
static bool holds_memory (const connection_t *self)
{
    const exchange_t *exchange = &self->exchange;
    if (self->phase == PHASE_BODY)
        return self->body_charged >= BODY_BYTES_MIN;
    if (self->phase == PHASE_STREAM)
        return connection_owed (self) > 0 && exchange->stream_kind != STREAM_MCP &&
               exchange->seat.fn != NULL && !exchange->seat.stays;
    return is_unread (self);
}

/* Of those that may go: of whoever has the most, and more than that, the one that has done nothing
 * for the longest. */
static connection_t *find_of_most (const connections_t *set, bool (*may) (const connection_t *),
                                   uint64_t (*of) (const account_t *), uint64_t most)
{
    connection_t *found = NULL;
    for (connection_t *at = set->last; at != NULL; at = at->previous)
        if (!at->running && of (at->holder) > most && may (at)) {
            found = at;
            most = of (at->holder);
        }
    return found;
}

/* A stream that tells its end owes that, too, and goes when it is found again. */
static void give_way (connection_t *self)
{
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
    const bool may = !connection_is_stranger (self) && !set->displacing;
    connection_t *found =
        may ? find_of_most (set, holds_memory, bytes_of, self->holder->bytes + bytes) : NULL;
    if (found == NULL)
        return false;
    set->numbers.displaced++;
    set->displacing = true;
    give_way (found);
    set->displacing = false;
    return true;
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
    while (bytes > rest_of (most, *used + trees_bytes ()) && displace_holder (self, bytes))
        ;
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
    const uint64_t held = self->input_charged + self->body_charged + self->output_charged;
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
