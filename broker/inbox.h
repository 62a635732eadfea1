/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Lines: messages that were received and could not be finished in their round.
 *
 * Each peer has a line of its own, and a round takes from the lines in turn, so nobody waits for a
 * long message of somebody else. Messages of one peer stay in their order. A line is bounded, and
 * so are all of them together. Each may grow only by a part of what is left, so a newcomer finds
 * room however many are greedy. Pure: no clock, no socket, and what a message is only its owner
 * knows. */
#ifndef TASKMQ_BROKER_INBOX_H
#define TASKMQ_BROKER_INBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/list.h"
#include "core/data/peer.h"

enum {
    INBOX_GROWTH = 4, /* a line has at most a fourth of the room that is left */
    INBOX_IDENTITY_SIZE = 128
};

typedef struct inbox_limits {
    size_t line_messages;
    size_t line_bytes;
    size_t messages; /* of all lines */
    size_t bytes;
} inbox_limits_t;

/* A message that waits. */
typedef struct entry {
    node_t node;   /* in its line, or among those that are done */
    void *message; /* the owner's */
    void *item;    /* the owner's, for this round */
    size_t bytes;
    int64_t received_us; /* the owner's: when it came, if slow requests are traced */
    size_t done;         /* its requests before this one were handled */
    bool judged;         /* it was decoded before, and what was wrong with it has been answered */
} entry_t;

/* The messages of one peer. */
typedef struct line {
    node_t node; /* in the turn */
    peer_t peer;
    node_t entries; /* first come, first served */
    size_t messages;
    size_t bytes;
    uint64_t received; /* round of its newest message */
    bool gone;         /* its connection ended */
    bool held;         /* it does not read its answers: nothing of it is handled */
    char identity[INBOX_IDENTITY_SIZE];
} line_t;

typedef struct inbox {
    inbox_limits_t limits;
    node_t turn;  /* lines; the first one is next */
    node_t spent; /* lines that have become empty: for their owner to close */
    node_t done;  /* entries that left their lines, until inbox_forget */
    size_t lines; /* in the turn */
    size_t messages;
    size_t bytes;
    uint64_t round;
    void (*drop) (void *message); /* frees a message; never called with NULL */
} inbox_t;

void inbox_init (inbox_t *self, const inbox_limits_t *limits, void (*drop) (void *message));
/* Frees the lines with their messages. */
void inbox_clear (inbox_t *self);
/* The next round begins. */
void inbox_round (inbox_t *self);

/* A new line; with its first message it goes to the end of the turn. The identity is copied. */
line_t *inbox_open (peer_t peer, const char *identity);
/* Frees a line that has become empty. */
void inbox_close (line_t *line);
/* NULL: it has none. Walks all lines. */
line_t *inbox_find (const inbox_t *self, peer_t peer);

/* One more message of so many bytes may wait in this line. */
bool inbox_has_room (const inbox_t *self, const line_t *line, size_t bytes);
/* Nothing more should be received: all lines together are full. */
bool inbox_is_full (const inbox_t *self);
/* The line is half full and had a message in this round: whoever waits behind its next one in the
 * socket would wait for nothing. */
bool inbox_is_greedy (const inbox_t *self, const line_t *line);
/* Puts a message at the end of its line, whatever room there is. Takes the message; NULL: its owner
 * hands it in before the round ends. */
entry_t *inbox_put (inbox_t *self, line_t *line, void *message, size_t bytes);
/* The message whose turn it is in this line, NULL for none. */
entry_t *inbox_head (const line_t *line);
/* The head is finished; it stays valid until inbox_forget. A line that becomes empty leaves the
 * turn. */
void inbox_pop (inbox_t *self, line_t *line);
/* Frees what was finished. */
void inbox_forget (inbox_t *self);

/* The line whose turn it is, NULL without lines. */
line_t *inbox_first (const inbox_t *self);
/* The next line that has become empty, which is the caller's to close; NULL for none. */
line_t *inbox_spent (inbox_t *self);
/* It had its turn: to the end. */
void inbox_rotate (inbox_t *self, line_t *line);

#endif
