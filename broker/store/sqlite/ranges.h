/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Numbers of the tasks that a filter wants, newest first, by walking indexes and never the rows of
 * all tasks: one range per queue and status, or per session or parent, or the one of the rarest
 * label. */
#ifndef TASKMQ_STORE_RANGES_H
#define TASKMQ_STORE_RANGES_H

#include "store/sqlite/view.h"

/* Statements that ranges need; they stand first in the texts of the view. */
enum { RANGES_STATEMENTS = 15, RANGES_WINDOWS = 3 };
extern const char *const RANGES_TEXTS[RANGES_STATEMENTS];

typedef struct ranges {
    view_t *view;
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
    size_t queues_capacity;
    int64_t sessions[TMQ_FILTER_VALUES_MAX]; /* of the filter */
    size_t sessions_count;
    label_t owners[TMQ_FILTER_VALUES_MAX]; /* marks of the filter's owners, if all have one */
    bool lists;                            /* it is walked by ranges_next */
    bool ended_early;                      /* … and looked at too many in vain to go on */
    size_t looks;                          /* of a count, at entries */
    size_t vain_max;                       /* the caller's: see ranges_ended_early; 0: no limit */
    int64_t slice_low; /* of a count: the numbers from here to high are being counted … */
    size_t counting;   /* … and this range is next */
    struct range *list;
    size_t count;
    size_t capacity;
} ranges_t;

/* before_number 0: from the newest. To be called inside a transaction. */
store_code_t ranges_open (ranges_t *self, view_t *view, const filter_t *filter,
                          int64_t before_number, store_error_t *error);
void ranges_close (ranges_t *self);
/* The next smaller number, 0 when there is none. May be called in a later transaction than the one
 * before: it goes on below the numbers it gave. *over: the page ended first, nothing was given. */
store_code_t ranges_next (ranges_t *self, int64_t *number, bool *over, store_error_t *error);
/* *over was told because vain_max entries were not wanted. *below: everything from there on was
 * looked at and given. It is always less than where the walk began. */
bool ranges_ended_early (const ranges_t *self, int64_t *below);
/* The filter's scope sees the task of this number. */
store_code_t ranges_see (const ranges_t *self, int64_t number, bool *seen, store_error_t *error);
/* The turns of the task of this number told what the filter asks for, if it asks. */
store_code_t ranges_find_marks (view_t *view, const filter_t *filter, int64_t number, bool *has,
                                store_error_t *error);
/* Adds to *count until the end, until the page is over (*over; the next call goes on), or until
 * vain_max entries were looked at: then *below is where to go on, else 0. */
store_code_t ranges_count (ranges_t *self, uint64_t *count, bool *over, int64_t *below,
                           store_error_t *error);

#endif
