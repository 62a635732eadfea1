/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What an operator may decide: the command line, the configuration file, and every limit with its
 * unit, its default and its bounds in one table.
 *
 * The file is ZPL (name = value, sections by four spaces of indentation). A key or an option that
 * is not known is an error with the nearest one as a hint: a limit that silently does not hold is
 * worse than a broker that does not start. */
#ifndef TASKMQ_BROKER_CONFIG_H
#define TASKMQ_BROKER_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log/log.h"
#include "net/feed.h"
#include "net/router.h"

#define CONFIG_K UINT64_C (1024)
#define CONFIG_M (1024 * CONFIG_K)
#define CONFIG_G (1024 * CONFIG_M)
#define CONFIG_S UINT64_C (1000)
#define CONFIG_H (3600 * CONFIG_S)
#define CONFIG_D (24 * CONFIG_H)

/* NAME, key in the file, unit, default, least, most, meaning. Sizes are bytes, times ms. */
#define CONFIG_LIMIT_MAP(X)                                                                        \
    X (LIVE_TASKS, "limits/live_tasks", COUNT, 1000000, 1000, 100000000,                           \
       "unfinished tasks; beyond it submissions are answered LIMIT")                               \
    X (LIVE_BYTES, "limits/live_bytes", SIZE, 256 * CONFIG_M, CONFIG_M, 1024 * CONFIG_G,           \
       "texts of unfinished tasks (method, meta, labels); beyond it the same")                     \
    X (NAMESPACES, "limits/namespaces", COUNT, 10000, 1, 1000000,                                  \
       "namespaces with a history; an identity makes a tenth at once, then one in ten minutes")    \
    X (LINKS, "limits/links", COUNT, 10000, 1, 30000, "connected clients")                         \
    X (LINK_READS, "limits/link_reads", COUNT, 64, 1, 100000,                                      \
       "lists, counts and histories that a client may have open; beyond it LIMIT")                 \
    X (READS, "limits/reads", COUNT, 4096, 1, 1000000, "... all clients together")                 \
    X (UNSENT_BYTES, "limits/unsent_bytes", SIZE, 2 * CONFIG_M, 64 * CONFIG_K, 64 * CONFIG_G,      \
       "answers that a client does not read; beyond it for 10 s its link ends")                    \
    X (SUBSCRIPTION_BYTES, "limits/subscription_bytes", SIZE, 256 * CONFIG_M, CONFIG_M,            \
       64 * CONFIG_G, "subscriptions with their filters; beyond it they are answered LIMIT")       \
    X (WORKER_BYTES, "limits/worker_bytes", SIZE, 64 * CONFIG_M, CONFIG_M, 64 * CONFIG_G,          \
       "workers with their queues; beyond it they are answered LIMIT")                             \
    X (PENDING_INPUTS_SOFT, "limits/pending_inputs_soft", COUNT, 20000, 100, 10000000,             \
       "inputs not yet durable; beyond it submissions are answered OVERLOADED")                    \
    X (PENDING_BYTES_SOFT, "limits/pending_bytes_soft", SIZE, 16 * CONFIG_M, CONFIG_M,             \
       64 * CONFIG_G, "the same in bytes")                                                         \
    X (PENDING_INPUTS_HARD, "limits/pending_inputs_hard", COUNT, 100000, 100, 10000000,            \
       "inputs not yet durable; beyond it nothing more is read")                                   \
    X (PENDING_BYTES_HARD, "limits/pending_bytes_hard", SIZE, 64 * CONFIG_M, CONFIG_M,             \
       64 * CONFIG_G, "the same in bytes")                                                         \
    X (DIRTY_TASKS_SOFT, "limits/dirty_tasks_soft", COUNT, 50000, 100, 10000000,                   \
       "tasks not yet written back; beyond it submissions are answered OVERLOADED")                \
    X (DIRTY_BYTES_SOFT, "limits/dirty_bytes_soft", SIZE, 64 * CONFIG_M, CONFIG_M, 64 * CONFIG_G,  \
       "the same in bytes")                                                                        \
    X (FREE_SPACE_MIN, "limits/free_space_min", SIZE, 64 * CONFIG_M, 0, 1024 * CONFIG_G,           \
       "free space of the disk; below it submissions are answered STORE_FULL")                     \
    X (DRAIN_MESSAGES, "limits/drain_messages", COUNT, 1000, 1, 100000,                            \
       "messages taken in one round")                                                              \
    X (DRAIN_REQUESTS, "limits/drain_requests", COUNT, 2000, 1, 100000,                            \
       "requests taken in one round; the message that reaches it is taken whole")                  \
    X (DRAIN_BYTES, "limits/drain_bytes", SIZE, CONFIG_M, CONFIG_K, CONFIG_G,                      \
       "bytes taken in one round")                                                                 \
    X (DRAIN_TIME, "limits/drain_time", DURATION, 2, 1, CONFIG_S, "time of taking in one round")   \
    X (LINE_MESSAGES, "limits/line_messages", COUNT, 64, 1, 10000,                                 \
       "messages of one client that wait; beyond it they are answered OVERLOADED")                 \
    X (LINE_BYTES, "limits/line_bytes", SIZE, 2 * CONFIG_M, 64 * CONFIG_K, CONFIG_G,               \
       "the same in bytes")                                                                        \
    X (LINES_MESSAGES, "limits/lines_messages", COUNT, 4096, 16, 1000000,                          \
       "messages of all clients that wait; beyond it nothing more is read")                        \
    X (LINES_BYTES, "limits/lines_bytes", SIZE, 64 * CONFIG_M, CONFIG_M, 64 * CONFIG_G,            \
       "the same in bytes")                                                                        \
    X (EVENT_RING, "limits/event_ring", SIZE, 4 * CONFIG_M, 64 * CONFIG_K, 16 * CONFIG_G,          \
       "newest events kept in memory for subscribers")                                             \
    X (PAYLOAD_CACHE, "limits/payload_cache", SIZE, 64 * CONFIG_M, 0, 64 * CONFIG_G,               \
       "payloads of queued tasks kept in memory")                                                  \
    X (TTL, "tasks/ttl", DURATION, TMQ_TTL_MS_DEFAULT, CONFIG_S, TMQ_TTL_MS_MAX,                   \
       "time to live of a task that does not say")                                                 \
    X (RECOVER_MAX_AGE, "tasks/recover_max_age", DURATION, 0, 0, TMQ_TTL_MS_MAX,                   \
       "after a restart, working tasks not renewed for longer fail; 0: they go on")                \
    X (HEARTBEAT, "links/heartbeat", DURATION, TMQ_HEARTBEAT_MS, 100, 60 * CONFIG_S,               \
       "a client is silent after three of these without a message")                                \
    X (GRACE, "links/grace", DURATION, TMQ_GONE_GRACE_MS, 0, CONFIG_H,                             \
       "from the end of a worker's connection to the return of its tasks")                         \
    X (HELLO, "links/hello", DURATION, 10 * CONFIG_S, 100, CONFIG_H,                               \
       "a connection without a link for so long is closed")                                        \
    X (WRITE_BACK_TASKS, "store/write_back_tasks", COUNT, 20000, 1, 1000000,                       \
       "rows are written back at the latest after so many tasks")                                  \
    X (WRITE_BACK_TIME, "store/write_back_time", DURATION, 250, 1, 60 * CONFIG_S,                  \
       "... or after this time; fewer than 1,000 after 100 ms")                                    \
    X (JOURNAL_SIZE, "store/journal_size", SIZE, 16 * CONFIG_M, 0, 16 * CONFIG_G,                  \
       "the journal's write-ahead log is grown to this size at the start")                         \
    X (READERS, "store/readers", COUNT, 2, 1, 64, "threads for lists, counts and replays")

typedef enum config_limit {
#define X(NAME, key, unit, value, least, most, meaning) CONFIG_##NAME,
    CONFIG_LIMIT_MAP (X)
#undef X
        CONFIG_LIMITS
} config_limit_t;

typedef enum config_action {
    CONFIG_RUN = 1,
    CONFIG_CHECK,
    CONFIG_VERSION,
    CONFIG_HELP
} config_action_t;

/* A namespace whose events are published, and where. */
typedef struct config_feed {
    char ns[TMQ_NAME_LENGTH_MAX + 1];
    char *uri;
} config_feed_t;

typedef struct config {
    config_action_t action;
    char *data; /* NULL: found or made */
    char *store;
    bool synchronous_normal;            /* faster, but a loss of power may lose acknowledged work */
    char *listen[ROUTER_ENDPOINTS_MAX]; /* beside the data directory's own socket */
    size_t listen_count;
    config_feed_t feeds[FEEDS_MAX];
    size_t feeds_count;
    log_level_t log_level;
    bool log_json;
    uint64_t limits[CONFIG_LIMITS];
} config_t;

enum { CONFIG_ERROR_SIZE = 512 };

/* The defaults. */
void config_init (config_t *out);
void config_free (config_t *self);
/* The file of -c first, the command line over it. False with a sentence in `error`. */
bool config_parse_arguments (config_t *self, int argc, char **argv, char error[CONFIG_ERROR_SIZE]);
bool config_load (config_t *self, const char *file, char error[CONFIG_ERROR_SIZE]);
/* Sets one key ("limits/links") from its text. */
bool config_set (config_t *self, const char *key, const char *value, char error[CONFIG_ERROR_SIZE]);
/* A value of a limit in its unit, as the file would have it; out has UNITS_TEXT_SIZE bytes. */
const char *config_format_limit (char *out, config_limit_t limit, uint64_t value);
void config_print_help (void);
/* Every address is one that can be listened on, as far as that can be known without doing it. */
bool config_check_addresses (const config_t *self, char *error, size_t error_size);

#endif
