/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "logs/log_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"

void log_map_clear (log_map_t *self)
{
    free (self->stretches);
    *self = (log_map_t){0};
}

void log_map_add (log_map_t *self, const log_frame_t *frame, bool sums)
{
    log_stretch_t *last = self->count == 0 ? NULL : &self->stretches[self->count - 1];
    if (last == NULL || last->upto != frame->at || last->upto - last->at >= LOG_STRETCH_BYTES) {
        self->stretches =
            memory_grow (self->stretches, &self->capacity, self->count, sizeof (log_stretch_t));
        last = &self->stretches[self->count++];
        last->at = frame->at;
    }
    last->upto = log_frame_upto (frame, sums);
    last->end = log_frame_end (frame);
}

void log_map_cut (log_map_t *self, uint64_t before, uint64_t moved)
{
    size_t gone = 0;
    while (gone < self->count && self->stretches[gone].upto <= before)
        gone++;
    self->count -= gone;
    memmove (self->stretches, self->stretches + gone, self->count * sizeof (log_stretch_t));
    if (self->count > 0 && self->stretches[0].at < before)
        self->stretches[0].at = before;
    for (size_t i = 0; i < self->count; i++) {
        self->stretches[i].at -= moved;
        self->stretches[i].upto -= moved;
    }
}

/* Walks. */

static void begin (log_walk_t *self, const log_map_t *map, int fd, bool sums)
{
    self->map = map;
    self->fd = fd;
    self->sums = sums;
    self->stretch = 0;
    self->at = 0;
    self->have = 0;
}

void log_walk_to_offset (log_walk_t *self, const log_map_t *map, int fd, bool sums, uint64_t offset)
{
    begin (self, map, fd, sums);
    while (self->stretch < map->count && map->stretches[self->stretch].end <= offset)
        self->stretch++;
}

void log_walk_to_place (log_walk_t *self, const log_map_t *map, int fd, bool sums, uint64_t at)
{
    begin (self, map, fd, sums);
    while (self->stretch < map->count && map->stretches[self->stretch].upto <= at)
        self->stretch++;
}

/* EBADMSG: none stands there, before `upto`; one whose bytes go beyond it is in *out. */
static int frame_at (log_walk_t *self, uint64_t at, uint64_t upto, log_frame_t *out)
{
    size_t head = log_frame_head_bytes (self->sums);
    *out = (log_frame_t){0};
    if (at + head > upto)
        return EBADMSG;
    if (self->have == 0 || at < self->from || at + head > self->from + self->have) {
        self->from = at;
        self->have = log_read_all (self->fd, self->window, sizeof (self->window), at);
        if (self->have < head)
            return errno != 0 ? EIO : EBADMSG;
    }
    if (!log_frame_unpack (out, self->window + (at - self->from), self->sums)) {
        *out = (log_frame_t){0};
        return EBADMSG;
    }
    out->at = at;
    return log_frame_upto (out, self->sums) > upto ? EBADMSG : 0;
}

int log_walk_next (log_walk_t *self, log_frame_t *out)
{
    while (self->stretch < self->map->count) {
        const log_stretch_t *stretch = &self->map->stretches[self->stretch];
        uint64_t at = self->at == 0 ? stretch->at : self->at;
        int error = at < stretch->upto ? frame_at (self, at, stretch->upto, out) : ENOENT;
        if (error == 0)
            self->at = log_frame_upto (out, self->sums);
        if (error != ENOENT)
            return error;
        self->stretch++;
        self->at = 0;
    }
    return ENOENT;
}

/* Looking through a file. */

typedef struct look {
    log_walk_t walk; /* its window */
    uint64_t size;
    uint64_t end;  /* of the frames so far, in the stream */
    uint64_t torn; /* … and of the last one, of which only the head is there */
    size_t holes_left;
    uint64_t seek_left;
    bool ended;
} look_t;

/* A frame in order, whole or not. */
static int look_at (look_t *self, uint64_t at, log_frame_t *out)
{
    int error = frame_at (&self->walk, at, self->size, out);
    return error == 0 && out->offset < self->end ? EBADMSG : error;
}

/* The next whole frame behind a place where none is. What a worker wrote may look like many heads;
 * one that it made whole could mislead readers of its own log, and of no other. */
static int pass_hole (look_t *self, uint64_t at, log_frame_t *out)
{
    uint8_t bytes[TMQ_LOG_BYTES_MAX] MEMORY_FILLED_BEFORE_READ;
    if (!self->walk.sums || self->holes_left == 0) {
        self->ended = self->size - at > log_frame_head_bytes (self->walk.sums);
        return ENOENT;
    }
    self->holes_left--;
    for (at++; at < self->size && self->seek_left > 0; at++) {
        self->seek_left--;
        int error = look_at (self, at, out);
        if (error == 0 && out->length > self->seek_left)
            break;
        if (error == 0) {
            self->seek_left -= out->length;
            error = log_frame_read (out, self->walk.fd, true, bytes);
        }
        if (error != EBADMSG)
            return error;
    }
    self->ended = at < self->size;
    return ENOENT;
}

static int look_through (look_t *self, uint64_t at, log_map_t *map)
{
    log_frame_t frame;
    for (; at < self->size; at = log_frame_upto (&frame, self->walk.sums)) {
        int error = look_at (self, at, &frame);
        if (error == EBADMSG && frame.length > 0 && frame.offset >= self->end) {
            self->torn = log_frame_end (&frame); /* all that follows would be its bytes */
            return 0;
        }
        if (error == EBADMSG)
            error = pass_hole (self, at, &frame);
        if (error != 0)
            return error == ENOENT ? 0 : error;
        log_map_add (map, &frame, self->walk.sums);
        self->end = log_frame_end (&frame);
    }
    return 0;
}

/* The last stretch ends with its last frame that is whole, or cannot be read now. *whole: it has
 * one. */
static int trim (const log_map_t *self, int fd, bool *whole)
{
    uint8_t bytes[TMQ_LOG_BYTES_MAX] MEMORY_FILLED_BEFORE_READ;
    log_walk_t walk;
    log_frame_t frame;
    log_stretch_t *last = &self->stretches[self->count - 1];
    log_stretch_t trimmed = {.at = last->at};
    int error;
    log_walk_to_place (&walk, self, fd, true, last->at);
    while ((error = log_walk_next (&walk, &frame)) == 0) {
        if (log_frame_read (&frame, fd, true, bytes) == EBADMSG)
            continue;
        trimmed.upto = log_frame_upto (&frame, true);
        trimmed.end = log_frame_end (&frame);
    }
    *whole = trimmed.upto > 0;
    if (error == ENOENT && *whole)
        *last = trimmed;
    return error == ENOENT ? 0 : error;
}

int log_map_build (log_map_t *self, int fd, uint64_t from, uint64_t size, bool sums, uint64_t *lost)
{
    look_t look = {.size = size, .holes_left = LOG_HOLES_MAX, .seek_left = LOG_SEEK_BYTES_MAX};
    bool whole = !sums;
    log_map_clear (self);
    begin (&look.walk, self, fd, sums);
    int error = look_through (&look, from, self);
    while (error == 0 && !whole && self->count > 0) {
        error = trim (self, fd, &whole);
        self->count -= error == 0 && !whole;
    }
    self->ended = look.ended;
    uint64_t end = self->count == 0 ? 0 : self->stretches[self->count - 1].end;
    uint64_t seen = look.torn > look.end ? look.torn : look.end;
    *lost = error == 0 && seen > end ? seen : 0;
    return error;
}
