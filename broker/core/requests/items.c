/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* item_put, item_read, item_ack. */
#include "core/requests/items.h"

#include <stdlib.h>
#include <string.h>

#include "core/reads/find.h"
#include "core/reads/loaded.h"
#include "core/reads/want.h"
#include "core/requests/answer.h"
#include "core/requests/pages.h"
#include "core/requests/shared.h"
#include "core/sessions/items.h"
#include "core/tasks/journal.h"
#include "core/tasks/makers.h"
#include "core/wire/pack.h"

enum { SEES = RIGHT_READ | RIGHT_OBSERVE };

void want_items (const requests_t *self, const link_t *link, const char *session, const char *box,
                 const uint64_t *numbers, size_t count, key_list_t *keys)
{
    row_key_t key;
    box_row_key (&key, link->space->name, session, box);
    want_row (self->reads, ROW_KIND_BOX, key.bytes, key.length, keys);
    for (size_t i = 0; i < count; i++) {
        item_row_key (&key, link->space->name, session, box, numbers[i]);
        want_row (self->reads, ROW_KIND_ITEM, key.bytes, key.length, keys);
    }
}

/* A row's body; *damaged: there is one that cannot be read. */
static const buf_t *find_body (const reads_t *reads, row_kind_t kind, const row_key_t *key,
                               bool *found, bool *damaged)
{
    const buf_t *body = find_row (reads, kind, key->bytes, key->length, found);
    const lookup_t *loaded = loaded_row (reads, kind, key->bytes, key->length);
    *damaged = !*found && loaded != NULL && loaded->damaged;
    return body;
}

/* False: the request was answered. */
static bool find_box (call_t *call, const box_name_t *name, box_t *out)
{
    row_key_t key;
    bool found;
    bool damaged;
    *out = (box_t){0};
    box_row_key (&key, name->space->name, name->session, name->box);
    const buf_t *body = find_body (call->requests->reads, ROW_KIND_BOX, &key, &found, &damaged);
    if (!damaged && (!found || box_unpack (out, body)))
        return true;
    reply_code (call, TMQ_INTERNAL, "the stored box is damaged");
    return false;
}

static void pack_item (bytes_t *out, const item_entry_t *item, size_t body_bytes)
{
    Taskmq__Item packed = TASKMQ__ITEM__INIT;
    packed.number = item->number;
    packed.at = (uint64_t) item->at;
    packed.owner = (char *) item->owner;
    packed.source = (char *) item->source;
    packed.type = (char *) item->type;
    packed.intensity = item->intensity;
    packed.bytes = (uint32_t) item->length;
    packed.body = (uint32_t) body_bytes;
    bytes_append_message (out, 1, &packed.base); /* ItemPage.items */
}

static void answer_put (call_t *call, uint64_t number)
{
    Taskmq__ItemDone done = TASKMQ__ITEM_DONE__INIT;
    bytes_mark_t mark;
    done.number = number;
    bytes_t *out = reply_open (call->requests, call->request->id, TMQ_OK, NULL, 0, false, &mark);
    bytes_append_message (out, TASKMQ__REPLY__BODY_ITEM_DONE, &done.base);
    reply_close (call->requests, call->link, mark, journal_batch (call->requests->tasks), NULL);
}

static bool fits (call_t *call, const box_t *box, size_t length)
{
    const engine_config_t *config = &call->requests->base->config;
    const entries_t *entries = &call->link->space->entries;
    if (box->count >= config->box_items_max)
        reply_limit (call, "items of the box", config->box_items_max);
    else if (entries->items >= config->space_items_max)
        reply_limit (call, "items of the namespace", config->space_items_max);
    else if (entries->bytes + length > config->space_bytes_max)
        reply_limit (call, "bytes of the namespace's values, items and checkpoints",
                     config->space_bytes_max);
    else
        return true;
    return false;
}

void on_item_put (call_t *call)
{
    requests_t *self = call->requests;
    const Taskmq__ItemPut *put = call->request->item_put;
    const box_name_t name = {call->link->space, put->session, put->box};
    const uint8_t *request_id = call->request->request_id.data;
    box_t box;
    if (new_is_refused (call) || shared_is_leaving (call, name.session) ||
        !find_box (call, &name, &box))
        return;
    uint64_t number = puts_find (&box.puts, request_id);
    if (number != 0 && self->base->config.planted_bug != ENGINE_BUG_ITEM_PUT_TWICE) {
        answer_put (call, number);
        return;
    }
    if (!shared_may_make (call->requests, call->link, name.session)) {
        reply_code (call, TMQ_DENIED, "no right to put an item here");
        return;
    }
    if (!fits (call, &box, put->body_bytes))
        return;
    makers_count (self->tasks, name.space, call->link->identity);
    journal_input (self->tasks);
    item_entry_t item = {
        .intensity = put->intensity, .bytes = call->body, .length = put->body_bytes};
    strncpy (item.owner, name_text (call->link->identity), sizeof (item.owner) - 1);
    strncpy (item.source, put->source, sizeof (item.source) - 1);
    strncpy (item.type, put->type, sizeof (item.type) - 1);
    item_put (self->sessions, &name, &box, &item, request_id);
    answer_put (call, item.number);
}

/* Acknowledges one; false: it is not there, or not for the link to end. */
static bool acknowledge (call_t *call, const box_name_t *name, box_t *box, uint64_t number)
{
    requests_t *self = call->requests;
    row_key_t key;
    item_entry_t item;
    bool found;
    bool damaged;
    item_row_key (&key, name->space->name, name->session, name->box, number);
    const buf_t *body = find_body (self->reads, ROW_KIND_ITEM, &key, &found, &damaged);
    if (!found || !item_unpack (&item, body) ||
        !shared_may_change (call->requests, call->link, name->session, item.owner))
        return false;
    item_remove (self->sessions, name, box, &item, name_text (call->link->identity));
    return true;
}

void on_item_ack (call_t *call)
{
    requests_t *self = call->requests;
    const Taskmq__ItemAck *ack = call->request->item_ack;
    const box_name_t name = {call->link->space, ack->session, ack->box};
    Taskmq__ItemDone done = TASKMQ__ITEM_DONE__INIT;
    box_t box;
    if (!find_box (call, &name, &box))
        return;
    journal_input (self->tasks);
    for (size_t i = 0; i < ack->n_numbers && box.count > 0; i++)
        done.count += acknowledge (call, &name, &box, ack->numbers[i]);
    if (done.count > 0)
        box_close (self->sessions, &name, &box);
    bytes_mark_t mark;
    bytes_t *out = reply_open (self, call->request->id, TMQ_OK, NULL, 0, false, &mark);
    bytes_append_message (out, TASKMQ__REPLY__BODY_ITEM_DONE, &done.base);
    reply_close (self, call->link, mark, journal_batch (self->tasks), NULL);
}

void on_item_read (call_t *call)
{
    const Taskmq__ItemRead *read = call->request->item_read;
    const char *ns = call->link->space->name;
    row_key_t prefix;
    row_key_t after = ROW_KEY_INIT;
    box_row_key (&prefix, ns, read->session, read->box);
    if (read->after > 0)
        item_row_key (&after, ns, read->session, read->box, read->after);
    page_rows (call, ROW_KIND_ITEM, &prefix, &after,
               read->limit == 0 ? TMQ_LIST_LIMIT_DEFAULT : read->limit);
}

/* A page in the making. */
typedef struct item_page {
    bytes_t bodies;
    uint64_t last; /* number of the last item that was considered */
} item_page_t;

/* False: the page is full, and the row is for the next one. */
static bool pack_row (const requests_t *self, bytes_t *out, item_page_t *page, const link_t *link,
                      const row_t *row)
{
    const char *session = (const char *) buf_bytes (row->key);
    session += strlen (session) + 1; /* behind the namespace */
    item_entry_t item;
    size_t before = out->length;
    if (item_unpack (&item, row->body) && shared_sees (self, link, session, item.owner, SEES)) {
        bool bare = !shared_sees (self, link, session, item.owner, RIGHT_BODY);
        size_t length = bare ? 0 : item.length;
        pack_item (out, &item, length);
        if (page->last != 0 && (out->length > ENVELOPE_FILL_BYTES ||
                                page->bodies.length + length > TMQ_PART_BYTES_MAX)) {
            out->length = before;
            return false;
        }
        bytes_append (&page->bodies, item.bytes, length);
    }
    page->last = item_number_of (row->key);
    return true;
}

void items_answer (requests_t *self, read_job_t *job)
{
    enum { PAGE_NEXT = 2, PAGE_BODY = 3 };
    const read_t *read = &job->read;
    item_page_t page = {BYTES_INIT, 0};
    bytes_mark_t mark;
    bytes_t *out = reply_open (self, job->request, TMQ_OK, NULL, 0, false, &mark);
    bytes_mark_t inner = bytes_open (out, TASKMQ__REPLY__BODY_ITEM_PAGE);
    size_t i = 0;
    while (i < read->rows_count && pack_row (self, out, &page, job->link, &read->rows[i]))
        i++;
    if (i < read->rows_count || read->more)
        bytes_append_uint (out, PAGE_NEXT, page.last);
    bytes_append_uint (out, PAGE_BODY, page.bodies.length);
    bytes_close (out, inner);
    buf_t *bodies = page.bodies.length == 0 ? NULL : buf_new (page.bodies.data, page.bodies.length);
    reply_close (self, job->link, mark, 0, bodies);
    buf_drop (bodies);
    bytes_free (&page.bodies);
}
