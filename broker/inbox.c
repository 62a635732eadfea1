/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Failure: a message without room is its owner's to refuse; out of memory ends the process. */
#include "inbox.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/memory.h"

void inbox_init (inbox_t *self, const inbox_limits_t *limits, void (*drop) (void *message))
{
    *self = (inbox_t){.limits = *limits, .drop = drop};
    list_init (&self->turn);
    list_init (&self->spent);
    list_init (&self->done);
}

void inbox_clear (inbox_t *self)
{
    for (line_t *line = inbox_first (self); line != NULL; line = inbox_first (self))
        inbox_pop (self, line);
    for (line_t *line = inbox_spent (self); line != NULL; line = inbox_spent (self))
        inbox_close (line);
    inbox_forget (self);
}

void inbox_round (inbox_t *self)
{
    self->round++;
}

line_t *inbox_open (peer_t peer, const char *identity)
{
    line_t *line = memory_zero (1, sizeof (*line));
    line->peer = peer;
    int length = snprintf (line->identity, sizeof (line->identity), "%s", identity);
    assert (length >= 0 && (size_t) length < sizeof (line->identity)); /* else somebody else's */
    list_init (&line->entries);
    return line;
}

void inbox_close (line_t *line)
{
    assert (line->messages == 0);
    list_remove (&line->node);
    free (line);
}

line_t *inbox_find (const inbox_t *self, peer_t peer)
{
    for (node_t *node = self->turn.next; node != &self->turn; node = node->next) {
        line_t *line = LIST_ITEM (node, line_t, node);
        if (line->peer == peer)
            return line;
    }
    return NULL;
}

/* What one line may have of what is left of a total. It never takes the last of it. */
static size_t part_of (size_t limit, size_t used)
{
    return used < limit ? (limit - used) / INBOX_GROWTH : 0;
}

bool inbox_has_room (const inbox_t *self, const line_t *line, size_t bytes)
{
    const inbox_limits_t *limits = &self->limits;
    if (line->messages == 0)
        return true;
    return line->messages < limits->line_messages && line->bytes + bytes <= limits->line_bytes &&
           line->messages < part_of (limits->messages, self->messages) &&
           line->bytes + bytes <= part_of (limits->bytes, self->bytes);
}

bool inbox_is_full (const inbox_t *self)
{
    return self->messages >= self->limits.messages || self->bytes >= self->limits.bytes;
}

bool inbox_is_greedy (const inbox_t *self, const line_t *line)
{
    bool is_long = line->messages * 2 >= self->limits.line_messages ||
                   line->bytes * 2 >= self->limits.line_bytes;
    return is_long && line->received == self->round;
}

entry_t *inbox_put (inbox_t *self, line_t *line, void *message, size_t bytes)
{
    entry_t *entry = memory_zero (1, sizeof (*entry));
    entry->message = message;
    entry->bytes = bytes;
    if (line->messages == 0) {
        list_remove (&line->node);
        list_push_back (&self->turn, &line->node);
        self->lines++;
    }
    list_push_back (&line->entries, &entry->node);
    line->received = self->round;
    line->messages++;
    line->bytes += bytes;
    self->messages++;
    self->bytes += bytes;
    return entry;
}

entry_t *inbox_head (const line_t *line)
{
    node_t *node = list_first (&line->entries);
    return node != NULL ? LIST_ITEM (node, entry_t, node) : NULL;
}

void inbox_pop (inbox_t *self, line_t *line)
{
    entry_t *entry = inbox_head (line);
    list_remove (&entry->node);
    list_push_back (&self->done, &entry->node);
    line->messages--;
    line->bytes -= entry->bytes;
    self->messages--;
    self->bytes -= entry->bytes;
    if (line->messages > 0)
        return;
    list_unlink (&line->node);
    list_push_back (&self->spent, &line->node);
    self->lines--;
}

void inbox_forget (inbox_t *self)
{
    for (node_t *node = list_pop_front (&self->done); node != NULL;
         node = list_pop_front (&self->done)) {
        entry_t *entry = LIST_ITEM (node, entry_t, node);
        if (entry->message != NULL)
            self->drop (entry->message);
        free (entry);
    }
}

line_t *inbox_first (const inbox_t *self)
{
    node_t *node = list_first (&self->turn);
    return node != NULL ? LIST_ITEM (node, line_t, node) : NULL;
}

line_t *inbox_spent (inbox_t *self)
{
    node_t *node = list_pop_front (&self->spent);
    return node != NULL ? LIST_ITEM (node, line_t, node) : NULL;
}

void inbox_rotate (inbox_t *self, line_t *line)
{
    list_remove (&line->node);
    list_push_back (&self->turn, &line->node);
}
