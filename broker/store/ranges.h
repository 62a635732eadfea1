/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Numbers of the tasks that a filter wants, newest first, by walking indexes and never the rows of
 * all tasks: one range per queue and status, or per session or parent, or the one of the rarest
 * label. Which ranges those are, how they are merged and where a walk goes on is the same for every
 * backend; the entries come from calls that it fills. */
#ifndef TASKMQ_STORE_RANGES_H
#define TASKMQ_STORE_RANGES_H

#include "core/data/lookup.h"
#include "store/error.h"
#include "store/name_kind.h"
#include "store/order.h"

enum {
    RANGES_WINDOWS = 3,
    RANGE_BUFFER = 64,
    /* More pairs of queue and status than this are not merged: the tasks are walked by number. */
    RANGES_MAX = 512,
    RANGES_COUNT_NUMBERS = 16384 /* counted at once: SQLite takes 1 to 2 ms for so many entries */
};

/* What the entries of a range have in common. */
typedef enum range_kind {
    RANGE_BY_QUEUE,   /* queue and status */
    RANGE_BY_SESSION, /* session */
    RANGE_BY_LABEL,   /* namespace and label, or what turns told */
    RANGE_BY_PARENT,  /* namespace and parent */
    RANGE_BY_NUMBER   /* namespace */
} range_kind_t;

/* A range with its key, and the numbers read ahead from it. */
typedef struct range {
    range_kind_t kind;
    int64_t key; /* queue, session or namespace */
    tmq_status_t status;
    const label_t *label;   /* BY_LABEL */
    const tmq_id_t *parent; /* BY_PARENT */
    int64_t high;           /* numbers below it are still to be read */
    bool exhausted;
    size_t vain; /* entries looked at that were not wanted */
    int64_t buffer[RANGE_BUFFER];
    size_t next;
    size_t count;
} range_t;

/* An entry of a range. BY_QUEUE: only the number, BY_SESSION and BY_NUMBER: without session. */
typedef struct range_entry {
    int64_t number;
    int64_t queue;
    int64_t session;
    tmq_status_t status;
} range_entry_t;

/* What a backend answers. All of it inside one of its transactions. */
struct ranges;
typedef struct range_calls {
    /* Numbers of a namespace are an index of their own: where everything in it is wanted it is
     * walked by them. */
    bool by_number;
    /* The number that the source has for a name, of a namespace (ns 0) or in it. 0: nothing that is
     * stored has it. */
    store_code_t (*find) (void *source, name_kind_t kind, int64_t ns, const char *text, int64_t *id,
                          store_error_t *error);
    /* Numbers of the namespace's queues, at most so many. */
    store_code_t (*queues) (void *source, int64_t ns, size_t max, int64_t *out, size_t *count,
                            store_error_t *error);
    /* Of the namespace's tasks, or of all; *highest 0: there are none. */
    store_code_t (*bounds) (void *source, int64_t ns, int64_t *lowest, int64_t *highest,
                            store_error_t *error);
    /* *known false: there is no row of it, or it is damaged. */
    store_code_t (*order) (void *source, order_t *out, bool *known, store_error_t *error);
    /* The first task of the namespace, or of all, from this number on; *number 0: there is none. */
    store_code_t (*created) (void *source, int64_t ns, int64_t from, int64_t *number,
                             int64_t *created_at, store_error_t *error);
    /* Adds the entries of the ranges to *few, all of which are walked from the windows' low on,
     * until they are `most`. Never BY_NUMBER or BY_PARENT. */
    store_code_t (*few) (void *source, const struct ranges *ranges, const range_t *list,
                         size_t count, int64_t most, int64_t *few, store_error_t *error);
    /* Entries of a range BY_QUEUE, or BY_NUMBER where that is set, of low <= number < its high. */
    store_code_t (*count) (void *source, const struct ranges *ranges, const range_t *range,
                           int64_t low, uint64_t *count, store_error_t *error);
    /* Walks the entries of the range with low <= number < range->high downwards. Each begin that
     * succeeds has an end. */
    store_code_t (*begin) (void *source, const struct ranges *ranges, const range_t *range,
                           int64_t low, store_error_t *error);
    store_code_t (*next) (void *source, range_entry_t *out, bool *found, store_error_t *error);
    void (*end) (void *source);
    /* Of a task, perhaps the one that next gave. */
    store_code_t (*has_label) (void *source, int64_t ns, const label_t *label, int64_t number,
                               bool *has, store_error_t *error);
    /* The texts are valid until the next call. */
    store_code_t (*whose) (void *source, int64_t number, bool *found, const char **queue,
                           const char **owner, store_error_t *error);
    bool (*is_over) (void *source); /* the page */
} range_calls_t;

typedef struct ranges {
    const range_calls_t *calls;
    void *source;
    unsigned planted_bug; /* test-only: see core/base/planted.h */
    const filter_t *filter;
    int64_t ns;  /* 0: the namespace is not there, so nothing is */
    int64_t low; /* numbers wanted: low <= number < high */
    int64_t high;
    bool by_time; /* … of which each task's time is looked at */
    struct window {
        int64_t low;
        int64_t high;
        bool by_time;
    } windows[RANGES_WINDOWS]; /* below them, the highest last */
    size_t windows_count;
    int64_t *queues; /* of the filter or of the whole namespace */
    size_t queues_count;
    int64_t sessions[TMQ_FILTER_VALUES_MAX]; /* of the filter */
    size_t sessions_count;
    label_t owners[TMQ_FILTER_VALUES_MAX]; /* marks of the filter's owners, if all have one */
    bool lists;                            /* it is walked by ranges_next */
    bool ended_early;                      /* … and looked at too many in vain to go on */
    size_t looks;                          /* of a count, at entries */
    size_t vain_max;                       /* the caller's: see ranges_ended_early; 0: no limit */
    int64_t slice_low; /* of a count: the numbers from here to high are being counted … */
    size_t counting;   /* … and this range is next */
    range_t *list;
    size_t count;
    size_t capacity;
} ranges_t;

/* before_number 0: from the newest. To be called inside a transaction. calls, source and the filter
 * are lent until ranges_close, which has to follow also where this fails. */
store_code_t ranges_open (ranges_t *self, const range_calls_t *calls, void *source,
                          const filter_t *filter, int64_t before_number, store_error_t *error);
void ranges_close (ranges_t *self); /* accepts an all-zero object */
/* The next smaller number, 0 when there is none. May be called in a later transaction than the one
 * before: it goes on below the numbers it gave. *over: the page ended first, nothing was given.
 * After an error it may be called again, too. */
store_code_t ranges_next (ranges_t *self, int64_t *number, bool *over, store_error_t *error);
/* *over was told because vain_max entries were not wanted. *below: everything from there on was
 * looked at and given. It is always less than where the walk began. */
bool ranges_ended_early (const ranges_t *self, int64_t *below);
/* The filter's scope sees the task of this number. */
store_code_t ranges_see (const ranges_t *self, int64_t number, bool *seen, store_error_t *error);
/* A task of this queue and owner is one that the filter's scope and its owners let through. */
bool ranges_let (const filter_t *filter, const char *queue, const char *owner);
/* Adds to *count until the end, until the page is over (*over; the next call goes on), or until
 * vain_max entries were looked at: then *below is where to go on, else 0. */
store_code_t ranges_count (ranges_t *self, uint64_t *count, bool *over, int64_t *below,
                           store_error_t *error);

#endif
