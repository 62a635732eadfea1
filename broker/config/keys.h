/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The one table of what an operator may decide. From it come the parser, --show-config, what a
 * reload may change, and taskmq.conf(5), which a test compares with it. A new key is one row here
 * and one entry in the manual. */
#ifndef TASKMQ_CONFIG_KEYS_H
#define TASKMQ_CONFIG_KEYS_H

#include "log/log.h"
#include "net/feed.h"
#include "net/router.h"
#include "net/socket.h"
#include "net/unread.h"
#include "redact.h"
#include "taskmq_types.h"

enum {
    CONFIG_NETWORKS_MAX = 64,
    CONFIG_IO_THREADS_MAX = 16,
    DATABASE_SCHEMA_BYTES_MAX = 63 /* as PostgreSQL cuts names */
};

#define DATABASE_SCHEMA_DEFAULT "taskmq" /* of every store on PostgreSQL, as its options say */

/* The words of broker/store. */
enum { CONFIG_STORE_SQLITE, CONFIG_STORE_MEMORY, CONFIG_STORE_POSTGRESQL };

#define CONFIG_K UINT64_C (1024)
#define CONFIG_M (1024 * CONFIG_K)
#define CONFIG_G (1024 * CONFIG_M)
#define CONFIG_S UINT64_C (1000)
#define CONFIG_H (3600 * CONFIG_S)
#define CONFIG_D (24 * CONFIG_H)

/* NAME, section/key, kind, when a change takes effect, default, least, most, words, meaning.
 *
 * COUNT, SIZE (bytes) and DURATION (ms) are numbers. SWITCH is off (0) or on (1). CHOICE is one of
 * the words; its default is the word's place. TEXT has no default and at most `most` bytes. LIST
 * is empty by default and has at most `most` items. For a TEXT and a LIST the words say what stands
 * there. A key that takes effect NOW is changed by a reload, the others at the next start. */
#define CONFIG_KEY_MAP(X)                                                                          \
    X (DATA, "broker/data", TEXT, RESTART, 0, 1, 4000, "DIR",                                      \
       "the data directory; without it the nearest .taskmq upward, else a new one here")           \
    X (ACCESS, "broker/access", TEXT, RESTART, 0, 1, 4000, "FILE",                                 \
       "who may use the broker; without it the file access in the data directory, if there is "    \
       "one")                                                                                      \
    X (LISTEN, "broker/listen", LIST, RESTART, 0, 0, ROUTER_ENDPOINTS_MAX - 1, "URI",              \
       "addresses to listen on beside the socket in the data directory")                           \
    X (INSECURE_LISTEN, "broker/insecure_listen", LIST, RESTART, 0, 0, ROUTER_ENDPOINTS_MAX - 1,   \
       "URI", "tcp addresses that ask for no key and encrypt nothing, wherever they are")          \
    X (ADVERTISE, "broker/advertise", TEXT, RESTART, 0, 1, JOIN_PLACE_BYTES_MAX,                   \
       "HOST:PORT[,HOST:PORT...]",                                                                 \
       "how other machines reach the broker, for invitations; without it the first address with "  \
       "keys")                                                                                     \
    X (ALLOW_FROM, "broker/allow_from", LIST, RESTART, 0, 0, CONFIG_NETWORKS_MAX, "NETWORK",       \
       "networks from which tcp connections are taken; others are closed before a byte is "        \
       "read; without any: all")                                                                   \
    X (FEED, "broker/feed", LIST, RESTART, 0, 0, FEEDS_MAX, "NAMESPACE=URI",                       \
       "events of a namespace are published there as JSON")                                        \
    X (IO_THREADS, "broker/io_threads", COUNT, RESTART, 0, 0, CONFIG_IO_THREADS_MAX, NULL,         \
       "threads of ZeroMQ; 0: 2 with an address that asks for keys and 4 processors, else 1")      \
    X (CORE_DUMPS, "broker/core_dumps", SWITCH, RESTART, 0, 0, 1, NULL,                            \
       "a broker that has a key of its own may leave its memory on the disk when it crashes, key " \
       "and all")                                                                                  \
    X (STORE, "broker/store", CHOICE, RESTART, 0, 0, 2, "sqlite|memory|postgresql",                \
       "where tasks are kept; memory forgets everything at the end, postgresql needs "             \
       "database/uri")                                                                             \
    X (LOG_LEVEL, "log/level", CHOICE, NOW, LOG_LEVEL_INFO, 0, LOG_LEVEL_ERROR,                    \
       "debug|info|warning|error", "the least that is logged")                                     \
    X (LOG_FORMAT, "log/format", CHOICE, NOW, 0, 0, 1, "text|json",                                \
       "lines of key=value, or JSON objects")                                                      \
    X (LOG_SLOW, "log/slow", DURATION, NOW, 0, 0, CONFIG_H, NULL,                                  \
       "requests that take so long are logged with where they waited; 0: none")                    \
    X (LIVE_TASKS, "limits/live_tasks", COUNT, NOW, 1000000, 1000, 100000000, NULL,                \
       "unfinished tasks; beyond it submissions are answered LIMIT")                               \
    X (LIVE_BYTES, "limits/live_bytes", SIZE, NOW, 256 * CONFIG_M, CONFIG_M, 1024 * CONFIG_G,      \
       NULL, "texts of unfinished tasks (method, meta, labels); beyond it the same")               \
    X (NAMESPACE_TASKS, "limits/namespace_tasks", COUNT, NOW, 1000000, 1, 100000000, NULL,         \
       "unfinished tasks of one namespace; beyond it the same")                                    \
    X (NAMESPACE_BYTES, "limits/namespace_bytes", SIZE, NOW, 4 * CONFIG_G, CONFIG_M,               \
       1024 * CONFIG_G, NULL,                                                                      \
       "payloads of the unfinished tasks of one namespace; beyond it the same")                    \
    X (TASK_TURNS, "limits/task_turns", COUNT, NOW, TMQ_TURNS_MAX, 1, 1000000, NULL,               \
       "turns of a task; beyond it they are answered LIMIT")                                       \
    X (TASK_TURN_BYTES, "limits/task_turn_bytes", SIZE, NOW, TMQ_TURNS_BYTES_MAX, CONFIG_M,        \
       64 * CONFIG_G, NULL, "... their texts; beyond it the same")                                 \
    X (TURN_RATE, "limits/turn_rate", COUNT, NOW, TMQ_TURN_RATE_MAX, 1, 10000, NULL,               \
       "... in a second, five times as many at once; beyond it the same")                          \
    X (NAMESPACE_TURN_BYTES, "limits/namespace_turn_bytes", SIZE, NOW, TMQ_SPACE_TURN_BYTES_MAX,   \
       CONFIG_M, 1024 * CONFIG_G, NULL, "texts of the turns of one namespace; beyond it the same") \
    X (TASK_ARTIFACT_BYTES, "limits/task_artifact_bytes", SIZE, NOW, TMQ_ARTIFACTS_BYTES_MAX,      \
       CONFIG_M, 1024 * CONFIG_G, NULL, "artifacts of a task; beyond it they are answered LIMIT")  \
    X (NAMESPACE_ARTIFACT_BYTES, "limits/namespace_artifact_bytes", SIZE, NOW,                     \
       TMQ_SPACE_ARTIFACT_BYTES_MAX, CONFIG_M, 1024 * CONFIG_G, NULL,                              \
       "... of the tasks of one namespace; beyond it the same")                                    \
    X (NAMESPACES, "limits/namespaces", COUNT, NOW, 10000, 1, 1000000, NULL,                       \
       "namespaces with a history; an identity makes a tenth at once, then one in ten "            \
       "minutes")                                                                                  \
    X (LINKS, "limits/links", COUNT, RESTART, 10000, 1, 30000, NULL, "connected clients")          \
    X (MUTE, "limits/mute", COUNT, RESTART, 1024, 16, 30000, NULL,                                 \
       "connections that have said nothing; beyond it the oldest of the most crowded address "     \
       "are cut")                                                                                  \
    X (LINK_READS, "limits/link_reads", COUNT, NOW, 64, 1, 100000, NULL,                           \
       "lists, counts and histories that a client may have open; beyond it LIMIT")                 \
    X (READS, "limits/reads", COUNT, NOW, 4096, 1, 1000000, NULL, "... all clients together")      \
    X (UNSENT_BYTES, "limits/unsent_bytes", SIZE, NOW, 2 * CONFIG_M, 64 * CONFIG_K, 64 * CONFIG_G, \
       NULL, "answers that a client does not read; beyond it for 10 s its link ends")              \
    X (LINK_UNREAD, "limits/link_unread", SIZE, RESTART, UNREAD_BYTES, 640 * CONFIG_K,             \
       64 * CONFIG_G, NULL,                                                                        \
       "output that a client has not read; beyond it nothing more is given to ZeroMQ for it")      \
    X (UNREAD, "limits/unread", SIZE, RESTART, UNREAD_ALL_BYTES, CONFIG_M, 1024 * CONFIG_G, NULL,  \
       "... all clients together; beyond it each has 128K")                                        \
    X (SUBSCRIPTION_BYTES, "limits/subscription_bytes", SIZE, NOW, 64 * CONFIG_M, CONFIG_M,        \
       64 * CONFIG_G, NULL, "subscriptions with their filters; beyond it they are answered LIMIT") \
    X (WORKER_BYTES, "limits/worker_bytes", SIZE, NOW, 64 * CONFIG_M, CONFIG_M, 64 * CONFIG_G,     \
       NULL, "workers with their queues; beyond it they are answered LIMIT")                       \
    X (PENDING_INPUTS_SOFT, "limits/pending_inputs_soft", COUNT, NOW, 20000, 100, 10000000, NULL,  \
       "inputs not yet durable; beyond it submissions are answered OVERLOADED")                    \
    X (PENDING_BYTES_SOFT, "limits/pending_bytes_soft", SIZE, NOW, 16 * CONFIG_M, CONFIG_M,        \
       64 * CONFIG_G, NULL, "the same in bytes")                                                   \
    X (PENDING_SHARE, "limits/pending_share", COUNT, NOW, 50, 1, 100, NULL,                        \
       "percent of pending_inputs_soft that one principal fills while others are connected")       \
    X (PENDING_INPUTS_HARD, "limits/pending_inputs_hard", COUNT, NOW, 100000, 100, 10000000, NULL, \
       "inputs not yet durable; beyond it nothing more is read")                                   \
    X (PENDING_BYTES_HARD, "limits/pending_bytes_hard", SIZE, NOW, 64 * CONFIG_M, CONFIG_M,        \
       64 * CONFIG_G, NULL, "the same in bytes")                                                   \
    X (DIRTY_TASKS_SOFT, "limits/dirty_tasks_soft", COUNT, NOW, 100000, 100, 10000000, NULL,       \
       "tasks not yet written back; beyond it submissions are answered OVERLOADED")                \
    X (DIRTY_BYTES_SOFT, "limits/dirty_bytes_soft", SIZE, NOW, 128 * CONFIG_M, CONFIG_M,           \
       64 * CONFIG_G, NULL, "the same in bytes")                                                   \
    X (DIRTY_BYTES_HARD, "limits/dirty_bytes_hard", SIZE, NOW, 256 * CONFIG_M, CONFIG_M,           \
       64 * CONFIG_G, NULL, "bytes not yet written back; beyond it nothing more is read")          \
    X (FREE_SPACE_MIN, "limits/free_space_min", SIZE, NOW, 64 * CONFIG_M, 0, 1024 * CONFIG_G,      \
       NULL, "free space of the disk; below it submissions are answered STORE_FULL")               \
    X (DRAIN_MESSAGES, "limits/drain_messages", COUNT, RESTART, 1000, 1, 100000, NULL,             \
       "messages taken in one round")                                                              \
    X (DRAIN_REQUESTS, "limits/drain_requests", COUNT, RESTART, 2000, 1, 100000, NULL,             \
       "requests taken in one round; the message that reaches it is taken whole")                  \
    X (DRAIN_BYTES, "limits/drain_bytes", SIZE, RESTART, CONFIG_M, CONFIG_K, CONFIG_G, NULL,       \
       "bytes taken in one round")                                                                 \
    X (DRAIN_TIME, "limits/drain_time", DURATION, RESTART, 2, 1, CONFIG_S, NULL,                   \
       "time of taking in one round")                                                              \
    X (LINE_MESSAGES, "limits/line_messages", COUNT, NOW, 64, 1, 10000, NULL,                      \
       "messages of one client that wait; beyond it they are answered OVERLOADED")                 \
    X (LINE_BYTES, "limits/line_bytes", SIZE, NOW, 2 * CONFIG_M, 64 * CONFIG_K, CONFIG_G, NULL,    \
       "the same in bytes")                                                                        \
    X (LINES_MESSAGES, "limits/lines_messages", COUNT, NOW, 4096, 16, 1000000, NULL,               \
       "messages of all clients that wait; beyond it nothing more is read")                        \
    X (LINES_BYTES, "limits/lines_bytes", SIZE, NOW, 64 * CONFIG_M, CONFIG_M, 64 * CONFIG_G, NULL, \
       "the same in bytes")                                                                        \
    X (EVENT_RING, "limits/event_ring", SIZE, NOW, 4 * CONFIG_M, 64 * CONFIG_K, 16 * CONFIG_G,     \
       NULL, "newest events kept in memory for subscribers")                                       \
    X (PAYLOAD_CACHE, "limits/payload_cache", SIZE, NOW, 64 * CONFIG_M, 0, 64 * CONFIG_G, NULL,    \
       "payloads of queued tasks kept in memory")                                                  \
    X (BLOB_BYTES, "limits/blob_bytes", SIZE, NOW, 16 * CONFIG_M, CONFIG_M, CONFIG_G, NULL,        \
       "a payload, result or artifact that does not fit a frame; a larger one is TOO_LARGE")       \
    X (BLOBS_DISK, "limits/blobs_disk", SIZE, NOW, 16 * CONFIG_G, CONFIG_M, 1024 * CONFIG_G, NULL, \
       "all of them, uploads under way included; beyond it uploads are answered LIMIT")            \
    X (TTL, "tasks/ttl", DURATION, NOW, TMQ_TTL_MS_DEFAULT, CONFIG_S, TMQ_TTL_MS_MAX, NULL,        \
       "time to live of a task that does not say")                                                 \
    X (RECOVER_MAX_AGE, "tasks/recover_max_age", DURATION, RESTART, 0, 0, TMQ_TTL_MS_MAX, NULL,    \
       "after a restart, working tasks not renewed for longer fail; 0: they go on")                \
    X (HEARTBEAT, "links/heartbeat", DURATION, RESTART, TMQ_HEARTBEAT_MS, 100, 60 * CONFIG_S,      \
       NULL, "a client is silent after three of these without a message")                          \
    X (GRACE, "links/grace", DURATION, RESTART, TMQ_GONE_GRACE_MS, 0, CONFIG_H, NULL,              \
       "from the end of a worker's connection to the return of its tasks")                         \
    X (HELLO, "links/hello", DURATION, RESTART, 10 * CONFIG_S, 100, CONFIG_H, NULL,                \
       "a connection without a link for so long is closed")                                        \
    X (HANDSHAKE, "links/handshake", DURATION, RESTART, SOCKET_HANDSHAKE_MS, 100, 60 * CONFIG_S,   \
       NULL, "a connection whose handshake takes longer is closed")                                \
    X (SYNCHRONOUS, "store/synchronous", CHOICE, RESTART, 0, 0, 1, "full|normal",                  \
       "normal: a loss of power may lose work that was acknowledged")                              \
    X (WRITE_BACK_TASKS, "store/write_back_tasks", COUNT, RESTART, 20000, 1, 1000000, NULL,        \
       "rows are written back at the latest after so many tasks")                                  \
    X (WRITE_BACK_TIME, "store/write_back_time", DURATION, RESTART, 250, 1, 60 * CONFIG_S, NULL,   \
       "... or after this time")                                                                   \
    X (JOURNAL_SIZE, "store/journal_size", SIZE, RESTART, 16 * CONFIG_M, 0, 16 * CONFIG_G, NULL,   \
       "the journal has this size at the start")                                                   \
    X (DATABASE_URI, "database/uri", TEXT, RESTART, 0, 1, 4000, "URI",                             \
       "the database of broker/store postgresql, as postgresql://USER@HOST/NAME; without a "       \
       "password")                                                                                 \
    X (DATABASE_PASSFILE, "database/passfile", TEXT, RESTART, 0, 1, 4000, "FILE",                  \
       "has the password for it, as .pgpass of PostgreSQL; mode 0600")                             \
    X (DATABASE_SCHEMA, "database/schema", TEXT, RESTART, 0, 1, DATABASE_SCHEMA_BYTES_MAX, "NAME", \
       "the tables stand in this schema; without it taskmq")                                       \
    X (DATABASE_COMMIT, "database/synchronous_commit", CHOICE, RESTART, 0, 0, 2,                   \
       "on|remote_apply|local",                                                                    \
       "what a commit waits for; local: not for the database's synchronous standby")               \
    X (DATABASE_FAILOVER, "database/failover", CHOICE, RESTART, 0, 0, 1,                           \
       "asynchronous|synchronous",                                                                 \
       "synchronous: a promoted standby has all that was acknowledged, so the history goes on")    \
    X (STANDBY, "cluster/standby", SWITCH, RESTART, 0, 0, 1, NULL,                                 \
       "a database that another broker owns is waited for, and taken over when that ends; else "   \
       "the start is refused")                                                                     \
    X (LEASE, "cluster/lease", DURATION, RESTART, 4 * CONFIG_S, 2 * CONFIG_S, 60 * CONFIG_S, NULL, \
       "a broker on PostgreSQL that gave no sign for so long may be taken over from; it gives "    \
       "four in that time")                                                                        \
    X (AWAY, "database/away", DURATION, NOW, CONFIG_S, 100, 60 * CONFIG_S, NULL,                   \
       "a store that is out of reach for longer: what needs it is answered UNAVAILABLE")           \
    X (READERS, "store/readers", COUNT, RESTART, 2, 1, 64, NULL,                                   \
       "threads for lists, counts and replays")                                                    \
    X (ARCHIVE, "store/archive", TEXT, RESTART, 0, 1, 4000, "DIR",                                 \
       "what is committed is kept in this directory of another disk, too")                         \
    X (ARCHIVE_KEEP, "store/archive_keep", DURATION, RESTART, 0, 0, 3650 * CONFIG_D, NULL,         \
       "what the archive has goes after so long; 0: never")                                        \
    X (LOGS_STREAM, "logs/stream", SIZE, NOW, CONFIG_M, 256 * CONFIG_K, CONFIG_G, NULL,            \
       "what is kept of each output of an attempt; beyond it the older half goes")                 \
    X (LOGS_DISK, "logs/disk", SIZE, NOW, CONFIG_G, CONFIG_M, 1024 * CONFIG_G, NULL,               \
       "all logs; beyond it those written longest ago go")                                         \
    X (LOGS_TASKS, "logs/tasks", COUNT, NOW, 100000, 1, 10000000, NULL,                            \
       "tasks that have a log; beyond it the same")                                                \
    X (LOGS_RATE, "logs/rate", SIZE, NOW, CONFIG_M, CONFIG_K, CONFIG_G, NULL,                      \
       "of one task in a second; beyond it its worker is told to wait")                            \
    X (LOGS_QUEUE, "logs/queue", SIZE, NOW, 8 * CONFIG_M, 128 * CONFIG_K, CONFIG_G, NULL,          \
       "memory of pieces of logs that are not in their files yet; beyond it workers wait")         \
    X (AUDIT_FILE, "audit/file", SWITCH, RESTART, 1, 0, 1, NULL,                                   \
       "keeps audit.jsonl, the record of who did what to the broker")                              \
    X (AUDIT_KEEP, "audit/keep", SIZE, RESTART, 64 * CONFIG_M, 64 * CONFIG_K, 64 * CONFIG_G, NULL, \
       "the record begins a new file at this size, and each day")                                  \
    X (AUDIT_DAYS, "audit/days", COUNT, RESTART, 90, 1, 36500, NULL,                               \
       "a file of the record is removed so many days after its last line")                         \
    X (EVENTS_FILE, "events/file", SWITCH, RESTART, 1, 0, 1, NULL,                                 \
       "keeps events.jsonl, every event of every task")                                            \
    X (EVENTS_KEEP, "events/keep", SIZE, RESTART, 64 * CONFIG_M, 64 * CONFIG_K, 64 * CONFIG_G,     \
       NULL, "events.jsonl begins a new file at this size, and each day")                          \
    X (EVENTS_DAYS, "events/days", COUNT, RESTART, 30, 1, 36500, NULL,                             \
       "a file of events is removed so many days after its last line")                             \
    X (EVENTS_DISK, "events/disk", SIZE, RESTART, CONFIG_G, CONFIG_M, 1024 * CONFIG_G, NULL,       \
       "all files of events; beyond it the oldest are removed before their time")                  \
    X (EVENTS_PACK, "events/pack", SWITCH, RESTART, 0, 0, 1, NULL,                                 \
       "files of events that are full are packed by zstd")                                         \
    X (EXPORT_COMPACT, "export/compact", SIZE, RESTART, 16 * CONFIG_M, 64 * CONFIG_K,              \
       1024 * CONFIG_G, NULL,                                                                      \
       "tasks.jsonl is made smaller when it is larger and more than half of it is over")           \
    X (EXPORT_FORGET, "export/forget", DURATION, RESTART, CONFIG_H, CONFIG_S, 30 * CONFIG_D, NULL, \
       "... and so long after the last time, so that removed tasks leave it; 1 MiB/s at most")     \
    X (EXPORT_REDACT, "export/redact", LIST, RESTART, 0, 0, REDACT_ITEMS_MAX,                      \
       "common|NAME=PATTERN",                                                                      \
       "what looks secret, and is replaced with [redacted:NAME] in tasks.jsonl, events.jsonl and " \
       "exports")                                                                                  \
    X (RETENTION_MAX_AGE, "retention/max_age", DURATION, NOW, 0, 0, TMQ_TTL_MS_MAX, NULL,          \
       "tasks of each namespace that have ended, and that no time to live ends, go so long after " \
       "their end; 0: not by their age")                                                           \
    X (RETENTION_MAX_COUNT, "retention/max_count", COUNT, NOW, 0, 0, TMQ_RETAIN_COUNT_MAX, NULL,   \
       "... so many of them stay, the newest; 0: any number")                                      \
    X (RETENTION_MAX_BYTES, "retention/max_bytes", SIZE, NOW, 0, 0, 1024 * CONFIG_G, NULL,         \
       "... so many bytes of their payloads, results and turns; 0: any number")                    \
    X (RETENTION_KEEP_FAILED, "retention/keep_failed", DURATION, NOW, 0, 0, TMQ_TTL_MS_MAX, NULL,  \
       "... those that failed stay so long, whatever a policy says")                               \
    X (RETENTION_MIN_KEEP, "retention/min_keep", COUNT, NOW, 0, 0, TMQ_RETAIN_COUNT_MAX, NULL,     \
       "... so many of the newest stay, whatever a policy says")                                   \
    X (RETENTION_NAMESPACE, "retention/namespace", LIST, NOW, 0, 0, RETENTIONS_MAX,                \
       "NAMESPACE=RULE",                                                                           \
       "what stays in this namespace, in place of the above: max_age:30d,min_keep:5")              \
    X (BACKUP_KEEP, "backup/keep", COUNT, RESTART, 3, 1, 1000, NULL,                               \
       "so many backups stay in the data directory")

typedef enum config_kind {
    CONFIG_KIND_COUNT,
    CONFIG_KIND_SIZE,
    CONFIG_KIND_DURATION,
    CONFIG_KIND_SWITCH,
    CONFIG_KIND_CHOICE,
    CONFIG_KIND_TEXT,
    CONFIG_KIND_LIST
} config_kind_t;

typedef enum config_when { CONFIG_WHEN_NOW, CONFIG_WHEN_RESTART } config_when_t;

typedef enum config_key {
#define X(NAME, key, kind, when, value, least, most, words, meaning) CONFIG_##NAME,
    CONFIG_KEY_MAP (X)
#undef X
        CONFIG_KEYS
} config_key_t;

typedef struct config_rule {
    const char *key;
    config_kind_t kind;
    config_when_t when;
    uint64_t value;
    uint64_t least;
    uint64_t most;
    const char *words;
    const char *meaning;
} config_rule_t;

extern const config_rule_t config_rules[CONFIG_KEYS];

#endif
