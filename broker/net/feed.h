/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The feed: committed events of chosen namespaces as JSON on XPUB sockets, for any SUB socket in
 * any language (a message is a topic `namespace/queue/status/task-id` and a JSON object).
 *
 * Best effort: nobody's pace is waited for, and a subscriber that is slow or away misses events;
 * the sequence numbers show which. An event costs the loop 3 us when there is a subscriber, whether
 * it reads or not. Who must see everything subscribes by the protocol instead. The one thread of
 * the server calls everything. */
#ifndef TASKMQ_NET_FEED_H
#define TASKMQ_NET_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/data/batch.h"
#include "net/listen.h"
#include "net/zap.h"

enum { FEEDS_MAX = 16 };

typedef struct feed feed_t;

/* context: of ZeroMQ. NULL when memory is exhausted. */
feed_t *feed_new (void *context, int linger_ms);
void feed_free (feed_t **self); /* accepts a NULL object */

/* Publishes the events of a namespace on one more address. Returns the endpoint to connect to (with
 * the real port), valid as long as the feed, or NULL with `error`. At most FEEDS_MAX. */
const char *feed_bind (feed_t *self, const char *ns, const address_t *address, const guard_t *guard,
                       listen_error_t *error);

/* Keeps the events of a batch that is being committed, beside those of the batches before it. */
void feed_hold (feed_t *self, const batch_t *batch);
/* The held batches are durable: their events leave. */
void feed_publish (feed_t *self);
/* The held batches did not become durable: their events never happened. */
void feed_drop (feed_t *self);

/* The guard's key is another one: the addresses that ask for keys are opened anew by feed_renew. */
void feed_outdate (feed_t *self);
/* Ends the connections of the feeds where one came in who would not be let in any more: all of a
 * feed, because nothing tells whose they are. The others are back within a second. */
void feed_recheck (feed_t *self, zap_t *zap);
/* As router_renew; to be called again while feed_is_closing. */
bool feed_renew (feed_t *self, int64_t now_ms, listen_error_t *error);
bool feed_is_closing (const feed_t *self);

/* Cuts subscribers that send more than subscriptions; call each ROUTER_LOOK_MS while there are
 * feeds. */
void feed_watch (feed_t *self, int64_t now_ms);
bool feed_has_channels (const feed_t *self);

/* Events that found a subscriber and were given to ZeroMQ. */
uint64_t feed_published (const feed_t *self);

#endif
