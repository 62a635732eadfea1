/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Filters: their copies, and what they take. */
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/data/turn.h"
#include "core/wire/filter.h"

#define SUBJECT_BIT(subject) (1u << (subject))

/* Copies of a filter's parts are placed one after the other in its own allocation. */
typedef struct filter_place {
    uint8_t *at;
    crypto_generichash_state hash;
} filter_place_t;

static void *put (filter_place_t *place, const void *bytes, size_t length)
{
    void *start = place->at;
    if (length > 0)
        memcpy (start, bytes, length);
    place->at += length;
    uint64_t size = length;
    crypto_generichash_update (&place->hash, (const uint8_t *) &size, sizeof (size));
    crypto_generichash_update (&place->hash, start, length);
    return start;
}

static const char *const *put_texts (filter_place_t *place, char *const *texts, const char **list,
                                     size_t count)
{
    uint64_t number = count;
    crypto_generichash_update (&place->hash, (const uint8_t *) &number, sizeof (number));
    for (size_t i = 0; i < count; i++)
        list[i] = put (place, texts[i], strlen (texts[i]) + 1);
    return list;
}

/* What turns told is looked for as labels are. */
static size_t labels_of (const Taskmq__Filter *filter)
{
    return filter->n_labels + filter->n_agents + filter->n_files;
}

static size_t room_of (const Taskmq__Filter *filter)
{
    size_t room = (filter->n_queues + filter->n_sessions + filter->n_owners) * sizeof (char *) +
                  strlen (filter->name_prefix) + 1 + labels_of (filter) * sizeof (label_t) +
                  filter->n_statuses * sizeof (tmq_status_t) +
                  (filter->n_task_ids + filter->n_parents) * sizeof (tmq_id_t);
    for (size_t i = 0; i < filter->n_queues; i++)
        room += strlen (filter->queues[i]) + 1;
    for (size_t i = 0; i < filter->n_sessions; i++)
        room += strlen (filter->sessions[i]) + 1;
    for (size_t i = 0; i < filter->n_owners; i++)
        room += strlen (filter->owners[i]) + 1;
    for (size_t i = 0; i < filter->n_labels; i++)
        room += strlen (filter->labels[i]->key) + strlen (filter->labels[i]->value) + 2;
    for (size_t i = 0; i < filter->n_agents; i++)
        room += strlen (filter->agents[i]) + sizeof (TURN_MARK_AGENT) + 1;
    for (size_t i = 0; i < filter->n_files; i++)
        room += strlen (filter->files[i]) + sizeof (TURN_MARK_FILE) + 1;
    return room;
}

static label_t *put_marks (filter_place_t *place, label_t *to, const char *key, char *const *texts,
                           size_t count)
{
    for (size_t i = 0; i < count; i++, to++) {
        to->key = put (place, key, strlen (key) + 1);
        to->value = put (place, texts[i], strlen (texts[i]) + 1);
    }
    return to;
}

static void put_labels (filter_place_t *place, label_t *labels, const Taskmq__Filter *filter)
{
    for (size_t i = 0; i < filter->n_labels; i++) {
        const Taskmq__Label *label = filter->labels[i];
        labels[i].key = put (place, label->key, strlen (label->key) + 1);
        labels[i].value = put (place, label->value, strlen (label->value) + 1);
    }
    labels += filter->n_labels;
    labels = put_marks (place, labels, TURN_MARK_AGENT, filter->agents, filter->n_agents);
    put_marks (place, labels, TURN_MARK_FILE, filter->files, filter->n_files);
}

/* What is asked of things that are no tasks, and digested only where it is asked. */
static void put_subjects (filter_copy_t *self, filter_place_t *place, const Taskmq__Filter *filter)
{
    self->subjects = filter->n_subjects == 0 ? SUBJECT_BIT (TMQ_SUBJECT_TASK) : 0;
    for (size_t i = 0; i < filter->n_subjects; i++)
        self->subjects |= SUBJECT_BIT (filter->subjects[i]);
    if (filter->n_subjects > 0)
        crypto_generichash_update (&place->hash, (const uint8_t *) &self->subjects,
                                   sizeof (self->subjects));
    if (filter->name_prefix[0] != '\0')
        self->name_prefix = put (place, filter->name_prefix, strlen (filter->name_prefix) + 1);
}

/* Digested only where it is asked, as subjects. */
static void put_parents (filter_copy_t *self, filter_place_t *place, const Taskmq__Filter *filter)
{
    static const char MARK[] = "parents"; /* they are no task_ids */
    if (filter->n_parents == 0)
        return;
    crypto_generichash_update (&place->hash, (const uint8_t *) MARK, sizeof (MARK));
    self->filter.parents = (const tmq_id_t *) place->at;
    self->filter.parents_count = filter->n_parents;
    for (size_t i = 0; i < filter->n_parents; i++)
        put (place, filter->parents[i].data, sizeof (tmq_id_t));
}

enum { SEES = RIGHT_READ | RIGHT_OBSERVE };

/* Two scopes are the same when their principals' rights are: their bytes may be shared. */
static void take_scope (filter_copy_t *self, filter_place_t *place, const access_t *access)
{
    self->scoped = (access->everywhere & SEES) == 0;
    if (!self->scoped)
        return;
    access_copy (&self->access, access);
    const principal_t *principal = access->principal;
    const char *parts[] = {principal == NULL ? "" : principal->name,
                           principal == NULL ? "" : principal->same};
    for (size_t i = 0; i < 2; i++) {
        const char *part = parts[i] == NULL ? "" : parts[i];
        crypto_generichash_update (&place->hash, (const uint8_t *) part, strlen (part) + 1);
    }
}

void filter_scope (read_t *read, const access_t *access)
{
    if ((access->everywhere & filter_right (&read->filter)) != 0)
        return;
    access_copy (&read->scope, access);
    read->filter.scope = &read->scope;
}

void filter_free (filter_copy_t *self)
{
    if (self == NULL)
        return;
    access_clear (&self->access);
    free (self);
}

/* Digested only where it is asked, as subjects. */
static void put_owners (filter_copy_t *self, filter_place_t *place, const Taskmq__Filter *filter,
                        const char **list)
{
    static const char MARK[] = "owners";
    if (filter->n_owners == 0)
        return;
    crypto_generichash_update (&place->hash, (const uint8_t *) MARK, sizeof (MARK));
    self->filter.owners = put_texts (place, filter->owners, list, filter->n_owners);
    self->filter.owners_count = filter->n_owners;
}

filter_copy_t *filter_new (const char *ns, const Taskmq__Filter *given, const access_t *access)
{
    Taskmq__Filter own = TASKMQ__FILTER__INIT;
    const Taskmq__Filter *filter = given != NULL ? given : &own;
    char *owner = access->behalf == NULL ? NULL : (char *) access->principal->name;
    if (owner != NULL) { /* it sees nobody else's, and the tables have an index of his */
        own = *filter;
        own.owners = &owner;
        own.n_owners = 1;
        filter = &own;
    }
    size_t bytes = sizeof (filter_copy_t) + room_of (filter);
    filter_copy_t *self = memory_zero (1, bytes);
    self->bytes = bytes;
    filter_place_t place;
    crypto_generichash_init (&place.hash, NULL, 0, sizeof (self->digest));
    crypto_generichash_update (&place.hash, (const uint8_t *) ns, strlen (ns) + 1);
    /* Lists of pointers first, then what has no alignment. */
    const char **queues = (const char **) (void *) (self + 1);
    const char **sessions = queues + filter->n_queues;
    const char **owners = sessions + filter->n_sessions;
    label_t *labels = (label_t *) (void *) (owners + filter->n_owners);
    tmq_status_t *statuses = (tmq_status_t *) (void *) (labels + labels_of (filter));
    place.at = (uint8_t *) (statuses + filter->n_statuses);
    for (size_t i = 0; i < filter->n_statuses; i++)
        statuses[i] = (tmq_status_t) filter->statuses[i];
    crypto_generichash_update (&place.hash, (const uint8_t *) statuses,
                               filter->n_statuses * sizeof (*statuses));
    self->filter =
        (filter_t){.ns = ns,
                   .queues = put_texts (&place, filter->queues, queues, filter->n_queues),
                   .queues_count = filter->n_queues,
                   .statuses = statuses,
                   .statuses_count = filter->n_statuses,
                   .created_since = (int64_t) filter->created_since,
                   .created_until = (int64_t) filter->created_until};
    self->filter.sessions = put_texts (&place, filter->sessions, sessions, filter->n_sessions);
    self->filter.sessions_count = filter->n_sessions;
    put_labels (&place, labels, filter);
    self->filter.labels = labels;
    self->filter.labels_count = labels_of (filter);
    self->filter.by_body = filter->n_files > 0;
    self->ids = (const tmq_id_t *) place.at;
    self->ids_count = filter->n_task_ids;
    for (size_t i = 0; i < filter->n_task_ids; i++)
        put (&place, filter->task_ids[i].data, sizeof (tmq_id_t));
    put_parents (self, &place, filter);
    put_owners (self, &place, filter, owners);
    crypto_generichash_update (&place.hash, (const uint8_t *) &filter->created_since,
                               sizeof (filter->created_since));
    crypto_generichash_update (&place.hash, (const uint8_t *) &filter->created_until,
                               sizeof (filter->created_until));
    put_subjects (self, &place, filter);
    take_scope (self, &place, access);
    crypto_generichash_final (&place.hash, self->digest, sizeof (self->digest));
    size_t conditions = filter->n_queues + filter->n_sessions + filter->n_statuses +
                        filter->n_labels + filter->n_task_ids + filter->n_subjects;
    self->everything = conditions == 0 && !self->scoped;
    return self;
}

void filter_digest_more (filter_copy_t *self, const char *text)
{
    uint8_t before[sizeof (self->digest)];
    memcpy (before, self->digest, sizeof (before));
    crypto_generichash (self->digest, sizeof (self->digest), (const uint8_t *) text, strlen (text),
                        before, sizeof (before));
}

static bool same_text (const char *text, const uint8_t *bytes, size_t length)
{
    return strlen (text) == length && (length == 0 || memcmp (text, bytes, length) == 0);
}

static bool one_of (const char *const *texts, size_t count, const uint8_t *bytes, size_t length)
{
    for (size_t i = 0; i < count; i++)
        if (same_text (texts[i], bytes, length))
            return true;
    return count == 0;
}

static bool one_of_statuses (const filter_t *filter, uint64_t status)
{
    for (size_t i = 0; i < filter->statuses_count; i++)
        if ((uint64_t) filter->statuses[i] == status)
            return true;
    return filter->statuses_count == 0;
}

static bool one_of_ids (const filter_copy_t *filter, const uint8_t *id)
{
    for (size_t i = 0; i < filter->ids_count && id != NULL; i++)
        if (memcmp (filter->ids[i].bytes, id, sizeof (tmq_id_t)) == 0)
            return true;
    return filter->ids_count == 0;
}

/* Events of before owners stood in them are for those who see the whole namespace. */
static bool sees_event (filter_copy_t *filter, const scanned_t *event)
{
    char queue[TMQ_NAME_LENGTH_MAX + 1];
    char owner[TMQ_OWNER_BYTES_MAX + 1];
    if (!filter->scoped)
        return true;
    if (event->queue_bytes >= sizeof (queue) || event->owner_bytes >= sizeof (owner))
        return false;
    if (event->queue_bytes > 0)
        memcpy (queue, event->queue, event->queue_bytes);
    if (event->owner_bytes > 0)
        memcpy (owner, event->owner, event->owner_bytes);
    queue[event->queue_bytes] = owner[event->owner_bytes] = '\0';
    if (event->subject != 0 && event->queue_bytes == 0)
        return access_sees_entry (&filter->access, owner, SEES);
    return access_sees (&filter->access, queue, owner, NULL, SEES);
}

static bool takes_subject (const filter_copy_t *filter, const scanned_t *event)
{
    uint64_t subject = event->subject == 0 ? TMQ_SUBJECT_TASK : event->subject;
    if (subject >= sizeof (filter->subjects) * 8 || (filter->subjects & SUBJECT_BIT (subject)) == 0)
        return false;
    size_t length = filter->name_prefix == NULL ? 0 : strlen (filter->name_prefix);
    return length == 0 || subject == TMQ_SUBJECT_TASK ||
           (event->name_bytes >= length && memcmp (event->name, filter->name_prefix, length) == 0);
}

bool filter_takes_event (filter_copy_t *filter, const scanned_t *event)
{
    const filter_t *plain = &filter->filter;
    if (filter->everything)
        return event->subject == 0;
    if (!takes_subject (filter, event))
        return false;
    if (!one_of (plain->queues, plain->queues_count, event->queue, event->queue_bytes) ||
        !one_of (plain->sessions, plain->sessions_count, event->session, event->session_bytes) ||
        !one_of_statuses (plain, event->status) || !one_of_ids (filter, event->id) ||
        !sees_event (filter, event))
        return false;
    for (size_t i = 0; i < plain->labels_count; i++)
        if (!scan_has_label (event, &plain->labels[i]))
            return false;
    return true;
}

bool filter_takes_record (filter_copy_t *filter, const record_t *record)
{
    const filter_t *plain = &filter->filter;
    if ((filter->subjects & SUBJECT_BIT (TMQ_SUBJECT_TASK)) == 0)
        return false;
    const uint8_t *queue = (const uint8_t *) record->queue;
    const uint8_t *session = (const uint8_t *) record->session;
    if (!one_of (plain->queues, plain->queues_count, queue, strlen (record->queue)) ||
        !one_of (plain->sessions, plain->sessions_count, session, strlen (record->session)) ||
        !one_of_statuses (plain, record->status) || !one_of_ids (filter, record->id.bytes))
        return false;
    if (filter->scoped && !access_sees (&filter->access, record->queue, record->owner, NULL, SEES))
        return false;
    for (size_t i = 0; i < plain->labels_count; i++)
        if (!record_has_label (record, &plain->labels[i]))
            return false;
    return true;
}
