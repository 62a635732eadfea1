/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Row `connections`: what an idle connection costs in memory and time, beside the same crowd at a
 * bare ROUTER, because most of the memory is libzmq's own. */
#include "rows_connections.h"

#include <math.h>
#include <stdio.h>
#include <zmq.h>

#include "crowd.h"
#include "growth.h"

/* The broker's own (router.c): the marks decide what libzmq allocates for a pipe. */
enum { SEND_HIGH_WATER = 128, RECEIVE_HIGH_WATER = 256, BACKLOG = 1024 };

void bare_router (const char *uri)
{
    void *context = zmq_ctx_new ();
    void *socket = zmq_socket (context, ZMQ_ROUTER);
    const int options[][2] = {
        {ZMQ_SNDHWM, SEND_HIGH_WATER}, {ZMQ_RCVHWM, RECEIVE_HIGH_WATER}, {ZMQ_BACKLOG, BACKLOG}};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        zmq_setsockopt (socket, options[i][0], &options[i][1], sizeof (int));
    zmq_ctx_set (context, ZMQ_MAX_SOCKETS, 16);
    if (zmq_bind (socket, uri) != 0)
        die ("%s: %s", uri, zmq_strerror (zmq_errno ()));
    for (;;) {
        zmq_msg_t frame;
        zmq_msg_init (&frame);
        if (zmq_msg_recv (&frame, socket, 0) < 0)
            die ("recv: %s", zmq_strerror (zmq_errno ()));
        zmq_msg_send (&frame, socket, zmq_msg_more (&frame) ? ZMQ_SNDMORE : 0);
    }
}

/* Bytes of memory for each of count connections at a bare ROUTER. */
static double measure_bare (const server_t *beside, size_t count)
{
    server_t server = {.port = server_free_port ()};
    char uri[64];
    snprintf (server.directory, sizeof server.directory, "%s", beside->directory);
    snprintf (uri, sizeof uri, "tcp://127.0.0.1:%d", server.port);
    server_spawn (&server, (char *[]){"taskmq-bench", "--bare-router", uri, NULL});
    server_wait_port (&server);
    double empty = (double) server_rss_bytes (&server);
    crowd_t *crowd = crowd_start (&server, &(crowd_options_t){.count = count, .bare = true});
    double full = (double) server_rss_bytes (&server);
    crowd_stop (&crowd);
    server_stop (&server);
    return (full - empty) / (double) count;
}

static void run (point_t *out, server_t *server, double seconds)
{
    size_t count = (size_t) out->size;
    figures_t figures;
    growth_start (server);
    double empty = (double) server_rss_bytes (server);
    uint64_t begin = now_ns ();
    crowd_t *crowd = crowd_start (server, &(crowd_options_t){.count = count});
    double connects = (double) count * 1e9 / (double) (now_ns () - begin);
    growth_pause_us ((long) (TMQ_HEARTBEAT_MS * 1000 * 1.5)); /* everyone has sent a heartbeat */
    double each = ((double) server_rss_bytes (server) - empty) / (double) count;
    uint64_t cpu = server_cpu_us (server);
    growth_pause_us ((long) (seconds * 1e6));
    double idle = (double) (server_cpu_us (server) - cpu) / (seconds * 1e4);
    growth_ordinary (&figures, "life_pipelined", server, seconds);
    point_set_figures (
        out, (const char *[5]){"rate_per_s", NULL, NULL, "server_cpu_us", "rss_bytes"}, &figures);
    growth_ordinary (&figures, "to_worker", server, seconds);
    point_set_figures (out, (const char *[5]){NULL, "p50_us", "p99_us", NULL, NULL}, &figures);
    crowd_stop (&crowd);
    bool many = count >= 100;
    double bare = many ? measure_bare (server, count) : NAN;
    point_set (out, "connects_per_s", connects);
    point_set (out, "idle_cpu_percent", idle);
    point_set (out, "bytes_each", many ? each : NAN);
    point_set (out, "bytes_each_bare_router", bare);
    point_set (out, "bytes_each_beside_libzmq", each - bare);
}

const growth_row_t connections_row = {
    .name = "connections",
    .says = "with so many idle connections that send heartbeats: lives beside them, memory",
    .sizes = "connections",
    .size_min = 1,
    .full = {1, 100, 1000, 10000},
    .quick = {1, 1000},
    .run = run,
};
