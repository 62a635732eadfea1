/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The connections as the system sees them, by descriptor, and which of them have to end.
 *
 * ZeroMQ tells nothing of a connection until a whole message has come, and cannot end one. So this
 * table is fed by the monitor's events, and a connection is cut by shutdown (2) on its descriptor,
 * which ZeroMQ takes for the peer's end. The socket's cookie makes sure that the descriptor is
 * still the same connection's. The thread of the server calls everything. */
#ifndef TASKMQ_NET_DOOR_H
#define TASKMQ_NET_DOOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    /* Bytes received from one connection since its last whole message: more than a message and the
     * system's buffer can hold; and more than a full pipe beside them, while nothing is read. */
    DOOR_PENDING_MAX = 8 * 1024 * 1024,
    DOOR_PENDING_UNREAD_MAX = 32 * 1024 * 1024,
    DOOR_PENDING_ALL_MAX = 256 * 1024 * 1024, /* of all connections */
    DOOR_PENDING_FAIR = 1024 * 1024,          /* of one, when all are over their limit */
    /* Of all from which no message has come, and of one of them, when all are over it: a handshake
     * is small, but ZeroMQ takes frames of 256 KiB for one. */
    DOOR_PENDING_MUTE_ALL_MAX = 64 * 1024 * 1024,
    DOOR_PENDING_MUTE_FAIR = 16 * 1024,
    /* A connection may say nothing for so long also when there are too many of them: a crowd that
     * comes back is no attack. Not when three fourths of them are more than the limit. */
    DOOR_MUTE_GRACE_MS = 500
};

typedef struct door door_t;

/* Who is on a descriptor, as the caller knows. */
typedef struct door_view {
    void *context;
    /* How many messages came from it, modulo 2^32. */
    uint32_t (*messages) (void *context, int fd);
    /* It said hello, and its link stands. */
    bool (*is_linked) (void *context, int fd);
} door_view_t;

typedef struct door_options {
    int64_t mute_ms; /* how long a connection may be without a link */
    size_t mute_max; /* connections from which no message has come; 0: any number */
} door_options_t;
door_t *door_new (const door_options_t *options);
void door_free (door_t **self); /* accepts a NULL object */

void door_opened (door_t *self, int fd, int64_t now_ms);
void door_closed (door_t *self, int fd);
/* A message has come from it. */
void door_heard (door_t *self, int fd);
/* Cuts those that are too many without a message: the oldest of the address that has most of them.
 * Returns how many. Call it after door_opened, and again within the grace. */
size_t door_cut_crowd (door_t *self, int64_t now_ms);
/* Ends the connection on this descriptor, if it is still the one that was opened. */
void door_cut (door_t *self, int fd);

/* Cuts those that have no link for too long. heard_ms: what had arrived by then has been taken. */
void door_cut_mute (door_t *self, int64_t heard_ms, const door_view_t *view);
/* Cuts all from whom no message has come. Returns how many. */
size_t door_cut_unheard (door_t *self, const door_view_t *view);
/* Cuts those that send a message without an end. It looks at them only when memory has grown; on
 * ipc the system counts no bytes, so there nobody is cut. reading: messages are being taken. */
void door_cut_endless (door_t *self, bool reading, const door_view_t *view);

typedef struct door_stats {
    uint64_t open;    /* now */
    uint64_t unheard; /* now: no message has come from them */
    uint64_t crowd;   /* cut because they were too many */
    uint64_t mute;    /* cut because they had no link */
    uint64_t endless; /* cut because they sent a message without an end */
} door_stats_t;
void door_stats (const door_t *self, door_stats_t *out);

#endif
