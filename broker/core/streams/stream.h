/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What a subscription is sent. */
#ifndef TASKMQ_CORE_STREAM_H
#define TASKMQ_CORE_STREAM_H

#include "core/streams/streams.h"

/* Batches up to base->durable may be seen. */
void stream_durable (streams_t *self);
/* It may have something to send: look at it before the next output. */
void stream_wake (streams_t *self, subscription_t *subscription);
/* Its start rests on start_batch: it is woken when that is durable. */
void stream_start (streams_t *self, subscription_t *subscription);
/* Packs the next message of the subscription into the envelope; false: nothing for now. */
bool stream_next (streams_t *self, subscription_t *subscription, buf_t **body);
/* What comes next for it are event batches, which may share a message. */
bool stream_is_shareable (const streams_t *self, const subscription_t *subscription);
void stream_failed (streams_t *self, subscription_t *subscription);
/* The transport refuses the link's messages: its streams let pages go when many are held. */
void streams_stall (streams_t *self, link_t *link);
void stream_read_done (streams_t *self, read_job_t *job);
void stream_alarm (streams_t *self, subscription_t *subscription);
/* Tells of a task's progress, those that are live and whose filter takes the task. At most max are
 * looked at; returns how many were. state: of how far its log is, to those who want to know; NULL:
 * of its progress. */
size_t stream_notice (streams_t *self, event_log_t *log, const record_t *record,
                      const Taskmq__LogState *state, size_t max);
void stream_acknowledge (streams_t *self, subscription_t *subscription, uint64_t upto);
/* … so many messages of the snapshot. */
void stream_acknowledge_snapshot (streams_t *self, subscription_t *subscription, uint32_t messages);

#endif
