/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "fake_link.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "net/spool.h"

fake_link_t fake_link;

void fake_link_complete (tmq_completion_t *completion)
{
    const link_call_t call = fake_link.call;
    fake_link.started = NULL;
    *call.ticket = 0;
    call.fn (call.context, completion);
}

static int start (link_call_t call, const char *what, tmq_error_t *error)
{
    memset (error, 0, sizeof *error);
    error->code = fake_link.refusal;
    *call.ticket = 0;
    if (fake_link.refusal != TMQ_OK)
        return fake_link.refusal;
    fake_link.started = what;
    fake_link.call = call;
    *call.ticket = 42;
    return TMQ_OK;
}

void link_forget (link_t *self, uint64_t *ticket)
{
    (void) self;
    if (*ticket != 0)
        fake_link.forgotten = *ticket;
    *ticket = 0;
}

const char *link_ns (const link_t *self)
{
    (void) self;
    return "default";
}

void link_count (const link_t *self, link_numbers_t *out)
{
    (void) self;
    *out = (link_numbers_t){.up = true};
}

void link_broker (const link_t *self, char out[65])
{
    (void) self;
    snprintf (out, 65, "fake");
}

uint64_t link_generation (const link_t *self)
{
    (void) self;
    return 7;
}

int link_submit (link_t *self, link_call_t call, const tmq_submit_t *in, tmq_error_t *error)
{
    (void) self;
    snprintf (fake_link.queue, sizeof fake_link.queue, "%s", in->queue);
    snprintf (fake_link.dedup_key, sizeof fake_link.dedup_key, "%s",
              in->dedup_key != NULL ? in->dedup_key : "");
    snprintf (fake_link.principal, sizeof fake_link.principal, "%s",
              in->labels[in->labels_count - 1].value);
    snprintf (fake_link.payload, sizeof fake_link.payload, "%.*s", (int) in->payload_bytes,
              in->payload_bytes > 0 ? (const char *) in->payload : "");
    fake_link.ttl_ms = in->ttl_ms;
    return start (call, "submit", error);
}

/* The others are only noted. */
#define FAKE(name, ...)                                                                            \
    int link_##name (link_t *self, link_call_t call, __VA_ARGS__, tmq_error_t *error)              \
    {                                                                                              \
        (void) self;                                                                               \
        return start (call, #name, error);                                                         \
    }

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
FAKE (submit_batch, const tmq_submit_t *in, size_t count)
FAKE (get, const tmq_id_t *id)
FAKE (result, const tmq_id_t *id)
FAKE (payload, const tmq_id_t *id)
FAKE (result_read, const tmq_id_t *id, uint64_t offset, uint32_t limit)
FAKE (payload_read, const tmq_id_t *id, uint64_t offset, uint32_t limit)
FAKE (blob_send, const tmq_blob_t *blob, uint64_t offset, const void *bytes, size_t length)
FAKE (artifacts, const tmq_id_t *id)
FAKE (artifact_read, const tmq_id_t *id, const tmq_artifact_info_t *artifact, uint64_t offset,
      uint32_t limit)
FAKE (resolve, const char *suffix)
FAKE (list, const tmq_list_query_t *in)
FAKE (tally, const tmq_filter_t *in)
FAKE (cancel, const tmq_id_t *id, const char *message)
FAKE (wait, const tmq_id_t *ids, size_t count, uint32_t timeout_ms)
FAKE (events, const tmq_id_t *id, uint64_t before, uint32_t limit)
FAKE (retry, const tmq_id_t *id)
FAKE (resume, const tmq_id_t *id)
FAKE (purge, const tmq_id_t *id)
FAKE (adopt, const tmq_id_t *id, uint32_t attempt)
FAKE (why, const tmq_id_t *id)
FAKE (answer, const tmq_id_t *id, const tmq_answer_t *in, size_t count)
FAKE (inbox, const tmq_inbox_query_t *in)
FAKE (attempts, const tmq_id_t *id, uint32_t after, uint32_t limit)
FAKE (log, const tmq_id_t *id, uint32_t attempt, tmq_log_stream_t stream, uint64_t offset,
      uint32_t limit)
FAKE (queues, const char *cursor, uint32_t limit)
FAKE (queue, const char *queue)
FAKE (pause, const char *queue, const char *why)
FAKE (unpause, const char *queue)
FAKE (workers, uint64_t before, uint32_t limit, bool all)
#pragma GCC diagnostic pop

seats_t *link_polls (link_t *self)
{
    static seats_t polls = {.hold = HOLD_POLLS};
    (void) self;
    return &polls;
}

void link_blob_drop (link_t *self, const char *owner, const tmq_blob_t *blob)
{
    (void) self;
    (void) owner;
    (void) blob;
}

line_t *link_bodies (link_t *self)
{
    static line_t line = {.most = LINK_BODIES_MAX};
    (void) self;
    return &line;
}

/* No disk: payloads stay in memory. */

spool_file_t *spool_open (spool_t *self)
{
    (void) self;
    return NULL;
}

void spool_close (spool_file_t **self)
{
    *self = NULL;
}

void spool_write (spool_file_t *self, bytes_t *data, spool_fn *fn, void *context)
{
    (void) self;
    bytes_free (data);
    fn (context, EIO, data);
}

void spool_read (spool_file_t *self, uint64_t offset, size_t length, spool_fn *fn, void *context)
{
    bytes_t none = BYTES_INIT;
    (void) self;
    (void) offset;
    (void) length;
    fn (context, EIO, &none);
}

void spool_hash (spool_file_t *self, uint8_t hash[SPOOL_HASH_BYTES])
{
    (void) self;
    memset (hash, 0, SPOOL_HASH_BYTES);
}

flow_t *flow_new (link_t *link, const tmq_subscription_options_t *options, flow_taker_t taker,
                  tmq_error_t *error)
{
    (void) link;
    (void) options;
    (void) taker;
    error->code = TMQ_NO_MEMORY;
    return NULL;
}

void flow_free (flow_t **self)
{
    *self = NULL;
}

void flow_give (flow_t *self, flow_taker_t taker)
{
    (void) self;
    (void) taker;
}

int flow_next (tmq_event_t **out, flow_t *self, tmq_error_t *error)
{
    (void) self;
    *out = NULL;
    error->code = TMQ_TIMEOUT;
    return TMQ_TIMEOUT;
}

void flow_again (flow_t *self)
{
    (void) self;
}

bool flow_cursor (char out[48], flow_t *self)
{
    (void) self;
    out[0] = '\0';
    return false;
}

int link_stats (link_t *self, link_call_t call, tmq_error_t *error)
{
    (void) self;
    return start (call, "stats", error);
}
