/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Growth rows: taskmq alone, one measurement (a point) for each size, so that a bend is seen. */
#ifndef TASKMQ_BENCH_GROWTH_H
#define TASKMQ_BENCH_GROWTH_H

#include <stdio.h>

#include "client.h"

enum { GROWTH_SIZES_MAX = 8, GROWTH_VALUES_MAX = 24, GROWTH_SIZE_LARGEST = 100000000 };

/* Points. */

typedef struct growth_value {
    const char *name; /* static; a key of the JSON, its unit last */
    double value;     /* NAN: not measured */
} growth_value_t;

/* One measurement: a row at a size. */
typedef struct point {
    const struct growth_row *row;
    double size;
    growth_value_t values[GROWTH_VALUES_MAX];
    size_t values_count;
} point_t;

/* Ends the bench when there are too many; a name occurs once. */
void point_set (point_t *self, const char *name, double value);
/* Rate, latencies, CPU and memory of an ordinary row under its names, with a prefix. */
void point_set_figures (point_t *self, const char *names[5], const figures_t *figures);

typedef struct growth_row {
    const char *name;
    const char *says;  /* one line for people */
    const char *sizes; /* what a size counts */
    double size_min;   /* the smallest that has a meaning */
    double full[GROWTH_SIZES_MAX];
    double quick[GROWTH_SIZES_MAX];
    /* server has a directory of its own and is not started. The caller stops it. */
    void (*run) (point_t *out, server_t *server, double seconds);
} growth_row_t;

extern const growth_row_t scale_live_row;
extern const growth_row_t scale_terminal_row;
extern const growth_row_t connections_row;
extern const growth_row_t subscribers_row;
extern const growth_row_t stalled_row;
extern const growth_row_t interference_row;
extern const growth_row_t features_row;
extern const growth_row_t values_row;
extern const growth_row_t schedules_row;
extern const growth_row_t history_row;
extern const growth_row_t transfers_row;

extern const growth_row_t *const growth_rows[];
extern const size_t growth_rows_count;

bool growth_knows (const char *name);
/* Reads whole numbers, separated by commas, each from the row's smallest size on. Returns how many
 * there are, 0 if text is no such list or has more than GROWTH_SIZES_MAX. */
size_t growth_sizes_parse (double out[GROWTH_SIZES_MAX], const growth_row_t *row, const char *text);
/* All sizes of one row, from small to large, then all again in the next round; appends a point of
 * medians for each size and returns how many, at most GROWTH_SIZES_MAX. sizes: what
 * growth_sizes_parse takes for this row, instead of the row's own; or NULL. Each point has a fresh
 * directory below directory. */
size_t growth_measure (point_t *out, const growth_row_t *row, const char *directory,
                       const char *sizes, int rounds, double seconds, bool quick);

/* Reports: points of one row stand together, in the order of size. */

void growth_table (const point_t *points, size_t count);
void growth_markdown (FILE *file, const point_t *points, size_t count);
/* Objects of the array "rows", each with a comma before it unless first. */
void growth_json (FILE *file, const point_t *points, size_t count, bool first);
/* For gnuplot: a block for each row, two empty lines between; the first line of a block is its name
 * in quotes, the second the names of the columns, "?" what was not measured. */
void growth_plot_data (FILE *file, const point_t *points, size_t count);

/* The plot data as a file beside the JSON: NAME.json gives NAME-growth.dat (report.c). */
void report_growth_data (const char *json, const point_t *points, size_t count);

/* What the rows share. */

/* Starts taskmqd with room for so many live tasks and links, and waits until it answers. Returns
 * how many milliseconds that took. May be called again in the same directory after server_stop. */
double growth_start (server_t *server);
/* A counter of the broker; ends the bench when there is none of that name. */
uint64_t growth_counter (tmq_client_t *client, const char *name);
/* Waits until everything is written back and exported, so that nothing goes on beside a row. */
void growth_settle (const server_t *server);
uint64_t growth_file_bytes (const server_t *server, const char *name);
void growth_pause_us (long us);
/* One of the ordinary rows, by its name, on a queue of its own. */
void growth_ordinary (figures_t *out, const char *row, const server_t *server, double seconds);

/* What the tasks of a stream ask for. */
typedef enum flow_shape {
    FLOW_PLAIN,
    FLOW_FAIR,  /* each has one of `group` fair keys, in turn */
    FLOW_FAN,   /* `group` of them wait for the one before them, then the next one begins */
    FLOW_CHAIN, /* each waits for the one before it */
} flow_shape_t;
const char *flow_shape_name (flow_shape_t shape);

/* A stream of tasks through one queue: a producer with many requests outstanding and, if they are
 * to be completed, workers that prefetch. */
typedef struct flow {
    const server_t *server;
    const char *queue;
    size_t payload_bytes;
    bool complete;
    size_t count;   /* ends after so many tasks; 0: … */
    double seconds; /* … after this time */
    flow_shape_t shape;
    size_t group;
    tmq_id_t *ids; /* of every ids_every-th task, or NULL; as many as ids_max */
    size_t ids_max;
    size_t ids_count;
} flow_t;
/* Returns tasks per second: submitted, or, if they are completed, ended. */
double flow_run (flow_t *self);

#endif
