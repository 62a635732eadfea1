/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "core/match/roster.h"

#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "core/base/memory.h"
#include "core/peers/outbox.h"
#include "core/tasks/journal.h"
#include "core/tasks/lease.h"
#include "core/tasks/rows.h"
#include "core/tasks/space.h"
#include "core/wire/pack.h"

/* Numbers of the fields of WorkerInfo in taskmq.proto. */
enum {
    INFO_WORKER_ID = 1,
    INFO_ABOUT = 2,
    INFO_PRINCIPAL = 3,
    INFO_STARTED_AT = 4,
    INFO_HEARD_AT = 5,
    INFO_ENDED_AT = 6,
    INFO_DRAINED_AT = 7,
    INFO_DRAINED_BY = 8,
    INFO_COMPLETED = 9,
    INFO_FAILED = 10,
    INFO_RELEASED = 11,
    INFO_LOST = 12,
    INFO_CANCELLED = 13,
    INFO_HAS_EXIT = 14,
    INFO_EXIT_STATUS = 15,
    INFO_EXIT_SIGNAL = 16,
    INFO_CONNECTED = 17,
    INFO_RUNNING = 18
};

static uint32_t hash_of (const match_t *self, const uint8_t *id)
{
    return secrets_hash (&self->base->secrets, id, sizeof (((roster_entry_t *) NULL)->id));
}

roster_entry_t *roster_find (const match_t *self, const char *ns, const uint8_t *id)
{
    size_t cursor = MAP_START;
    uint32_t hash = hash_of (self, id);
    roster_entry_t *entry = map_next (&self->roster_by_id, hash, &cursor);
    while (entry != NULL && (memcmp (entry->id, id, sizeof (entry->id)) != 0 ||
                             strcmp (name_text (entry->ns), ns) != 0))
        entry = map_next (&self->roster_by_id, hash, &cursor);
    return entry;
}

static roster_entry_t *make (match_t *self, const char *ns, const uint8_t *id)
{
    roster_entry_t *entry = memory_zero (1, sizeof (*entry));
    memcpy (entry->id, id, sizeof (entry->id));
    entry->hash = hash_of (self, id);
    entry->no = ++self->roster_no;
    entry->ns = names_keep (&self->base->names, ns);
    entry->alarm.kind = ALARM_ROSTER;
    map_insert (&self->roster_by_id, entry->hash, entry);
    list_push_front (&self->roster, &entry->node);
    self->roster_bytes += sizeof (*entry);
    return entry;
}

static worker_t *worker_of (const match_t *self, const roster_entry_t *entry)
{
    const space_t *space = space_find (self->tasks, name_text (entry->ns));
    return space == NULL ? NULL : worker_find (self->tasks, space, entry->id);
}

/* No more among those that have ended. */
static void remove_gone (match_t *self, roster_entry_t *entry)
{
    if (!node_is_linked (&entry->gone))
        return;
    list_unlink (&entry->gone);
    self->roster_gone_count--;
}

static void forget (match_t *self, roster_entry_t *entry)
{
    worker_t *worker = worker_of (self, entry);
    if (worker != NULL)
        worker->tally = NULL;
    remove_gone (self, entry);
    alarm_disarm (&entry->alarm);
    list_unlink (&entry->node);
    map_remove (&self->roster_by_id, entry->hash, entry);
    names_drop (&self->base->names, entry->ns);
    names_drop (&self->base->names, entry->name);
    names_drop (&self->base->names, entry->identity);
    names_drop (&self->base->names, entry->drained_by);
    self->roster_bytes -= buf_length (entry->about) + sizeof (*entry);
    buf_drop (entry->about);
    free (entry);
}

/* Rows. */

static uint64_t sum_of (const worker_tally_t *tally)
{
    return tally->completed + tally->failed + tally->released + tally->lost + tally->cancelled;
}

/* Wall time of the newest message of a worker that is connected. */
static int64_t heard_at (const match_t *self, const worker_t *worker)
{
    const clocks_t *clocks = &self->base->clocks;
    int64_t ago_ms = clocks_awake_ms (clocks) - worker->link->heard_ms;
    return clocks->wall_ms - (ago_ms > 0 ? ago_ms : 0);
}

static void pack_exit (bytes_t *out, const roster_entry_t *entry)
{
    if (!entry->has_exit)
        return;
    bytes_append_uint (out, INFO_HAS_EXIT, 1);
    bytes_append_sint (out, INFO_EXIT_STATUS, entry->exit_status);
    bytes_append_uint (out, INFO_EXIT_SIGNAL, entry->exit_signal);
}

static void pack_body (const match_t *self, bytes_t *out, const roster_entry_t *entry)
{
    const worker_t *worker = entry->ended_at == 0 ? worker_of (self, entry) : NULL;
    bool connected = worker != NULL && worker->link != NULL;
    int64_t heard = connected ? heard_at (self, worker) : entry->heard_at;
    bytes_append_blob (out, INFO_WORKER_ID, entry->id, sizeof (entry->id));
    bytes_append_element (out, INFO_ABOUT, buf_bytes (entry->about), buf_length (entry->about));
    bytes_append_string (out, INFO_PRINCIPAL, name_text (entry->identity));
    bytes_append_uint (out, INFO_STARTED_AT, (uint64_t) entry->started_at);
    bytes_append_uint (out, INFO_HEARD_AT, (uint64_t) heard);
    bytes_append_uint (out, INFO_ENDED_AT, (uint64_t) entry->ended_at);
    bytes_append_uint (out, INFO_DRAINED_AT, (uint64_t) entry->drained_at);
    bytes_append_string (out, INFO_DRAINED_BY, name_text (entry->drained_by));
    bytes_append_uint (out, INFO_COMPLETED, entry->tally.completed);
    bytes_append_uint (out, INFO_FAILED, entry->tally.failed);
    bytes_append_uint (out, INFO_RELEASED, entry->tally.released);
    bytes_append_uint (out, INFO_LOST, entry->tally.lost);
    bytes_append_uint (out, INFO_CANCELLED, entry->tally.cancelled);
    pack_exit (out, entry);
    bytes_append_uint (out, INFO_CONNECTED, connected);
    bytes_append_uint (out, INFO_RUNNING, worker == NULL ? 0 : worker->held);
}

void roster_pack (const match_t *self, bytes_t *out, uint32_t field, const roster_entry_t *entry)
{
    bytes_mark_t mark = bytes_open (out, field);
    pack_body (self, out, entry);
    bytes_close (out, mark);
}

static void key_of (row_key_t *out, const roster_entry_t *entry)
{
    row_key_text (out, name_text (entry->ns));
    row_key_bytes (out, entry->id, sizeof (entry->id));
}

static void look_again (match_t *self, roster_entry_t *entry)
{
    wheel_arm (&self->base->fine, &entry->alarm, self->base->clocks.mono_ms + ROSTER_WRITE_MS);
}

/* A disk that is full takes tasks' ends before it takes this. */
static void write_row (match_t *self, roster_entry_t *entry)
{
    row_key_t key = ROW_KEY_INIT;
    bytes_t body = BYTES_INIT;
    look_again (self, entry);
    entry->told = self->base->full ? UINT64_MAX : sum_of (&entry->tally);
    if (self->base->full || self->base->config.planted_bug == ENGINE_BUG_ROSTER_UNWRITTEN)
        return;
    key_of (&key, entry);
    pack_body (self, &body, entry);
    row_t row = row_make (ROW_KIND_WORKER, key.bytes, key.length, body.data, body.length);
    row.expires_at = entry->ended_at == 0 ? 0 : entry->ended_at + ROSTER_GONE_MS;
    rows_put (self->tasks, row);
    self->tasks->open.inputs++;
    bytes_free (&body);
    if (entry->ended_at != 0)
        alarm_disarm (&entry->alarm);
}

/* A drain holds as long as it can: others come and go, and make room for each other. */
static roster_entry_t *first_to_forget (match_t *self)
{
    enum { LOOKS_MAX = 64 };
    roster_entry_t *entry = NULL;
    for (int looks = 0; looks < LOOKS_MAX; looks++) {
        entry = LIST_ITEM (list_first (&self->roster_gone), roster_entry_t, gone);
        if (entry->drained_at == 0)
            break;
        list_unlink (&entry->gone);
        list_push_back (&self->roster_gone, &entry->gone);
    }
    return entry;
}

static void forget_first_gone (match_t *self)
{
    row_key_t key = ROW_KEY_INIT;
    roster_entry_t *entry = first_to_forget (self);
    key_of (&key, entry);
    rows_put (self->tasks, row_make_gone (ROW_KIND_WORKER, key.bytes, key.length));
    forget (self, entry);
}

static void add_gone (match_t *self, roster_entry_t *entry)
{
    list_push_back (&self->roster_gone, &entry->gone);
    self->roster_gone_count++;
}

/* Two for each that comes: what a full disk left over the limit goes, too. */
static void trim_gone (match_t *self)
{
    for (int i = 0; i < 2 && self->roster_gone_count > ROSTER_GONE_MAX && !self->base->full; i++)
        forget_first_gone (self);
}

static void end_entry (match_t *self, roster_entry_t *entry)
{
    if (entry->ended_at != 0)
        return;
    entry->ended_at = self->base->clocks.wall_ms;
    add_gone (self, entry);
    write_row (self, entry);
    trim_gone (self);
}

/* What happens. */

/* What it says, without what changes with each registration. */
static buf_t *pack_about (const Taskmq__Register *said)
{
    Taskmq__WorkerAbout about = TASKMQ__WORKER_ABOUT__INIT;
    about.name = said->name;
    about.queues = said->queues;
    about.n_queues = said->n_queues;
    about.role = said->role;
    about.labels = said->labels;
    about.n_labels = said->n_labels;
    about.pid = said->pid;
    about.host = said->host;
    about.version = said->version;
    about.config = said->config;
    about.depends_on = said->depends_on;
    about.n_depends_on = said->n_depends_on;
    buf_t *packed = buf_new_uninitialised (taskmq__worker_about__get_packed_size (&about));
    taskmq__worker_about__pack (&about, buf_mutable (packed));
    return packed;
}

bool roster_has_room (match_t *self, const char *ns, const Taskmq__Register *said)
{
    roster_entry_t *entry = roster_find (self, ns, said->worker_id.data);
    bool gone = entry != NULL && node_is_linked (&entry->gone);
    size_t before = entry == NULL ? 0 : buf_length (entry->about);
    size_t bytes = taskmq__register__get_packed_size (said) /* at least as much */
                   + (entry == NULL ? sizeof (*entry) : 0);
    size_t bytes_max = self->base->config.worker_bytes_max;
    if (gone) /* it is not to be forgotten itself */
        remove_gone (self, entry);
    while (self->roster_bytes - before + bytes > bytes_max && self->roster_gone_count > 0)
        forget_first_gone (self);
    if (gone)
        add_gone (self, entry);
    return self->roster_bytes - before + bytes <= bytes_max;
}

void roster_know (match_t *self, worker_t *worker)
{
    roster_entry_t *entry = roster_find (self, worker->space->name, worker->id);
    if (entry != NULL)
        worker->tally = &entry->tally;
}

static bool says_the_same (const roster_entry_t *entry, const buf_t *about)
{
    return entry->about != NULL && buf_length (entry->about) == buf_length (about) &&
           memcmp (buf_bytes (entry->about), buf_bytes (about), buf_length (about)) == 0;
}

void roster_tell_drained (match_t *self, const worker_t *worker, const char *by)
{
    Taskmq__DrainNotice notice = TASKMQ__DRAIN_NOTICE__INIT;
    notice.worker_id = (ProtobufCBinaryData){sizeof (worker->id), (uint8_t *) worker->id};
    notice.by = (char *) by;
    bytes_clear (&self->peers->scratch);
    bytes_append_message (&self->peers->scratch, BROKER_DRAINS, &notice.base);
    outbox_add (self->peers, worker->link, ITEM_CANCEL, journal_batch (self->tasks),
                &self->peers->scratch, NULL);
}

void roster_register (match_t *self, worker_t *worker, const Taskmq__Register *said)
{
    roster_entry_t *entry = roster_find (self, worker->space->name, worker->id);
    buf_t *about = pack_about (said);
    if (entry == NULL)
        entry = make (self, worker->space->name, worker->id);
    bool back = entry->ended_at != 0;
    bool news = back || !says_the_same (entry, about) || entry->identity != worker->identity;
    if (back) {
        remove_gone (self, entry);
        entry->ended_at = 0;
        entry->has_exit = false;
    }
    if (entry->started_at == 0)
        entry->started_at = self->base->clocks.wall_ms;
    self->roster_bytes += buf_length (about) - buf_length (entry->about);
    buf_drop (entry->about);
    entry->about = about;
    names_drop (&self->base->names, entry->name);
    entry->name = names_share (worker->name);
    names_drop (&self->base->names, entry->identity);
    entry->identity = names_share (worker->identity);
    worker->tally = &entry->tally;
    if (entry->drained_at != 0 && self->base->config.planted_bug != ENGINE_BUG_DRAIN_FORGOTTEN)
        gate_close (&worker->gate, GATE_DRAINED);
    if (news)
        write_row (self, entry);
    else if (!alarm_is_armed (&entry->alarm))
        look_again (self, entry);
}

static roster_entry_t *entry_of (const match_t *self, const worker_t *worker)
{
    return roster_find (self, worker->space->name, worker->id);
}

void roster_leave (match_t *self, const worker_t *worker, const Taskmq__Leave *said)
{
    roster_entry_t *entry = entry_of (self, worker);
    if (entry == NULL || !said->has_exit)
        return;
    entry->has_exit = true;
    entry->exit_status = said->exit_status;
    entry->exit_signal = said->exit_signal;
}

void roster_part (match_t *self, const worker_t *worker)
{
    roster_entry_t *entry = entry_of (self, worker);
    if (entry != NULL)
        entry->heard_at = heard_at (self, worker);
}

bool roster_drain (match_t *self, roster_entry_t *entry, const char *by)
{
    worker_t *worker = worker_of (self, entry);
    if (entry->drained_at != 0)
        return false;
    entry->drained_at = self->base->clocks.wall_ms;
    entry->drained_by = names_keep (&self->base->names, by);
    write_row (self, entry);
    if (worker == NULL)
        return true;
    gate_close (&worker->gate, GATE_DRAINED);
    worker_changed (self->tasks, worker);
    if (worker->link != NULL)
        roster_tell_drained (self, worker, by);
    return true;
}

void roster_release (match_t *self, worker_t *worker)
{
    roster_entry_t *entry = entry_of (self, worker);
    if (entry != NULL && worker->link == NULL && worker->held == 0)
        end_entry (self, entry);
    worker_release (self->tasks, worker);
}

/* The time for its row has come; or it was there before the start, and never came back. */
void roster_alarm (match_t *self, roster_entry_t *entry)
{
    const worker_t *worker = worker_of (self, entry);
    if (entry->ended_at == 0 && worker == NULL)
        end_entry (self, entry);
    else if (entry->told != sum_of (&entry->tally) || (worker != NULL && worker->held > 0))
        write_row (self, entry);
    else if (entry->ended_at == 0)
        look_again (self, entry);
}

/* A start. */

static void take_body (match_t *self, roster_entry_t *entry, const Taskmq__WorkerInfo *info)
{
    names_t *names = &self->base->names;
    size_t bytes = taskmq__worker_about__get_packed_size (info->about);
    entry->about = buf_new_uninitialised (bytes);
    taskmq__worker_about__pack (info->about, buf_mutable (entry->about));
    self->roster_bytes += bytes;
    entry->name = names_keep (names, info->about->name);
    entry->identity = names_keep (names, info->principal);
    entry->drained_by = names_keep (names, info->drained_by);
    entry->started_at = (int64_t) info->started_at;
    entry->heard_at = (int64_t) info->heard_at;
    entry->ended_at = (int64_t) info->ended_at;
    entry->drained_at = (int64_t) info->drained_at;
    entry->tally = (worker_tally_t){info->completed, info->failed, info->released, info->lost,
                                    info->cancelled};
    entry->told = sum_of (&entry->tally);
    entry->has_exit = info->has_exit;
    entry->exit_status = info->exit_status;
    entry->exit_signal = info->exit_signal;
}

/* The namespace, NUL, the id. */
static const uint8_t *id_in_key (const buf_t *key)
{
    size_t length = buf_length (key);
    const uint8_t *bytes = buf_bytes (key);
    bool good = length > 17 && memchr (bytes, '\0', length) == bytes + length - 17;
    return good ? bytes + length - 16 : NULL;
}

void roster_load (match_t *self, const row_t *row)
{
    const uint8_t *id = id_in_key (row->key);
    if (id == NULL)
        return;
    const char *ns = (const char *) buf_bytes (row->key);
    roster_entry_t *entry = roster_find (self, ns, id);
    if (row->gone && entry != NULL && entry->ended_at != 0)
        forget (self, entry);
    if (row->gone || entry != NULL)
        return;
    Taskmq__WorkerInfo *info =
        taskmq__worker_info__unpack (NULL, buf_length (row->body), buf_bytes (row->body));
    if (info == NULL || info->about == NULL) {
        if (info != NULL)
            taskmq__worker_info__free_unpacked (info, NULL);
        return;
    }
    entry = make (self, ns, id);
    take_body (self, entry, info);
    taskmq__worker_info__free_unpacked (info, NULL);
    if (entry->ended_at != 0)
        add_gone (self, entry);
    else
        look_again (self, entry);
}

void roster_clear (match_t *self)
{
    node_t *roster = &self->roster;
    for (node_t *node = list_pop_front (roster); node != NULL; node = list_pop_front (roster)) {
        roster_entry_t *entry = LIST_ITEM (node, roster_entry_t, node);
        buf_drop (entry->about);
        free (entry); /* the names are cleared, and so are the wheels */
    }
    list_init (&self->roster_gone);
    self->roster_gone_count = 0;
    self->roster_bytes = 0;
    map_free (&self->roster_by_id);
}
