/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The snapshot of a subscription. */
#include <stdlib.h>

#include "core/reads/jobs.h"
#include "core/streams/snapshot.h"
#include "core/streams/subscription.h"
#include "core/tasks/view.h"
#include "core/wire/pack.h"
#include "core/wire/page.h"

enum {
    SNAPSHOT_RECORDS = 200, /* of one read */
    SNAPSHOT_AHEAD = 2      /* messages of a snapshot that leave without credit */
};

static void ask_for_snapshot (streams_t *self, subscription_t *subscription)
{
    read_job_t *job = job_for_stream (self->reads, subscription->link, subscription->log->name,
                                      READ_LIST, subscription->start_batch, subscription);
    job->read.filter = subscription->filter->filter;
    job->read.filter.ns = job->ns;
    filter_scope (&job->read, filter_access (subscription->filter, &subscription->link->access));
    job->read.before_number = subscription->snapshot_before;
    job->read.limit = SNAPSHOT_RECORDS;
    job->read.vain_max = self->base->config.read_looks_max;
    job->read.bytes_max = ENVELOPE_FILL_BYTES; /* the rest would wait in memory for credit */
    subscription->job = job;
}

void snapshot_take (streams_t *self, subscription_t *subscription, read_t *read)
{
    subscription->snapshot_read = true;
    subscription->snapshot = read->records;
    subscription->snapshot_count = read->records_count;
    subscription->snapshot_more = read->more;
    view_phases (self->reads->tasks, read->records, read->records_count);
    read->records = NULL;
    read->records_count = 0;
    if (subscription->snapshot != NULL)
        self->pages_held++;
    if (read->next_number > 0) /* it looked long enough: the others have their turn */
        subscription->snapshot_before = read->next_number;
    else if (subscription->snapshot != NULL && subscription->snapshot_count > 0)
        subscription->snapshot_before =
            subscription->snapshot[subscription->snapshot_count - 1]->number;
    else
        subscription->snapshot_more = false;
}

static void pack_snapshot (streams_t *self, subscription_t *subscription)
{
    bytes_t *out = &self->peers->envelope;
    bytes_mark_t mark = bytes_open (out, BROKER_SNAPSHOT);
    bytes_append_uint (out, SNAPSHOT_SUBSCRIPTION, subscription->id);
    subscription->snapshot_mark = subscription->snapshot_next;
    subscription->snapshot_next = pack_page (
        out, SNAPSHOT_TASKS, subscription->snapshot, subscription->snapshot_count,
        subscription->snapshot_next, subscription->filter,
        filter_access (subscription->filter, &subscription->link->access), &self->base->clocks);
    bool last =
        subscription->snapshot_next == subscription->snapshot_count && !subscription->snapshot_more;
    bytes_append_uint (out, SNAPSHOT_LAST, last);
    bytes_close (out, mark);
    subscription->snapshot_told = last;
    subscription->snapshot_sent++;
    subscription->last = SENT_SNAPSHOT;
}

void snapshot_put_back (streams_t *self, subscription_t *subscription)
{
    size_t next = subscription->snapshot_next;
    if (subscription->filter->ids_count > 0 || subscription->snapshot == NULL)
        return;
    if (next < subscription->snapshot_count) {
        subscription->snapshot_before = next > 0 ? subscription->snapshot[next - 1]->number
                                                 : subscription->snapshot[0]->number + 1;
        subscription->snapshot_more = true;
    }
    subscription_drop_snapshot (self, subscription);
}

/* The snapshot's next message; false when a page has to be read or credit to come first. */
bool snapshot_next (streams_t *self, subscription_t *subscription)
{
    bool rest = subscription->snapshot_read &&
                (subscription->snapshot_next < subscription->snapshot_count ||
                 !subscription->snapshot_more);
    if (rest && subscription->snapshot_sent - subscription->snapshot_taken >= SNAPSHOT_AHEAD) {
        if (self->pages_held > PAGES_HELD_MAX)
            snapshot_put_back (self, subscription);
        subscription->held = true; /* credit wakes it */
        return false;
    }
    if (rest) {
        pack_snapshot (self, subscription);
        return true;
    }
    subscription_drop_snapshot (self, subscription);
    if (subscription->job == NULL)
        ask_for_snapshot (self, subscription);
    return false;
}

void snapshot_failed (subscription_t *subscription)
{
    subscription->snapshot_next = subscription->snapshot_mark;
    subscription->snapshot_told = false;
    subscription->snapshot_sent--;
}
