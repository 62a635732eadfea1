/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Every limit and every time of the gateway: one table, from which come the keys of gateway.conf,
 * their defaults and what --check prints. */
#ifndef TASKMQ_GATEWAY_BASE_SETTINGS_H
#define TASKMQ_GATEWAY_BASE_SETTINGS_H

#include <stdint.h>

typedef enum setting_kind { SETTING_COUNT, SETTING_BYTES, SETTING_MS } setting_kind_t;

/* NAME, key, kind, default, least, most, what it is. */
#define SETTINGS_MAP(X)                                                                            \
    X (CONNECTIONS_MAX, "connections_max", COUNT, 4096, 1, 100000, "connections at a time")        \
    X (CONNECTION_REQUESTS_MAX, "connection_requests_max", COUNT, 10000, 1, 1000000000,            \
       "requests of a connection, which is closed then")                                           \
    X (PRINCIPAL_REQUESTS_MAX, "principal_requests_max", COUNT, 256, 1, 100000,                    \
       "requests of a principal at a time")                                                        \
    X (PRINCIPAL_WAIT_IDS_MAX, "principal_wait_ids_max", COUNT, 2500, 1, 10000,                    \
       "tasks that long polls of a principal wait for at a time")                                  \
    X (RATE, "rate", COUNT, 200, 1, 1000000, "requests of a principal in a second")                \
    X (RATE_BURST, "rate_burst", COUNT, 400, 1, 1000000, "… and at once, after a pause")           \
    X (CALL_RATE, "call_rate", COUNT, 20, 1, 1000000, "calls of tools by a principal in a second") \
    X (CALL_RATE_BURST, "call_rate_burst", COUNT, 100, 1, 1000000, "… and at once, after a pause") \
    X (PRINCIPAL_TIME, "principal_time", MS, 200, 1, 1000,                                         \
       "of the loop, in a second, for requests of a principal while others ask, too")              \
    X (FAILURES_MAX, "failures_max", COUNT, 10, 1, 1000000,                                        \
       "wrong tokens from an address, before it is made to wait")                                  \
    X (FAILURES_PAUSE, "failures_pause", MS, 5000, 1, 3600000, "how long it waits then")           \
    X (HEAD_BYTES_MAX, "head_bytes_max", BYTES, 16384, 1024, 1048576, "the head of a request")     \
    X (HEAD_FIELDS_MAX, "head_fields_max", COUNT, 100, 8, 1000, "its fields")                      \
    X (TARGET_BYTES_MAX, "target_bytes_max", BYTES, 8192, 256, 1048576, "its target")              \
    X (HEAD_TIMEOUT, "head_timeout", MS, 10000, 10, 3600000,                                       \
       "a head is whole so long after its first byte")                                             \
    X (BODY_TIMEOUT, "body_timeout", MS, 30000, 10, 3600000,                                       \
       "a body is whole so long after its head; a large one brings 256 KiB in this time")          \
    X (IDLE_TIMEOUT, "idle_timeout", MS, 75000, 10, 86400000,                                      \
       "without a request a connection is closed")                                                 \
    X (JSON_BYTES_MAX, "json_bytes_max", BYTES, 393216, 1024, 16777216, "a body of JSON")          \
    X (RAW_BYTES_MAX, "raw_bytes_max", BYTES, 16777216, 1, 1073741824,                             \
       "a payload that is the body")                                                               \
    X (UPLOADS_MAX, "uploads_max", COUNT, 64, 1, 1024,                                             \
       "payloads of more than 256 KiB under way at a time, of a principal half as many")           \
    X (SPOOL_BYTES_MAX, "spool_bytes_max", BYTES, 1073741824, 1048576, 1099511627776,              \
       "that they take on the gateway's disk, those of a principal half of it")                    \
    X (OUTPUT_TIMEOUT, "output_timeout", MS, 30000, 10, 3600000,                                   \
       "without progress of what a client is sent it is closed")                                   \
    X (OUTPUT_BYTES_MAX, "output_bytes_max", BYTES, 262144, 4096, 1073741824,                      \
       "that a client may be owed; its next request, or the rest of its stream, waits")            \
    X (STREAMS_MAX, "streams_max", COUNT, 1024, 1, 100000, "streams at a time")                    \
    X (PRINCIPAL_STREAMS_MAX, "principal_streams_max", COUNT, 128, 1, 100000,                      \
       "streams of a principal at a time")                                                         \
    X (PRINCIPAL_FILTERS_MAX, "principal_filters_max", COUNT, 64, 1, 100000,                       \
       "filters that a principal's streams of events have at a time")                              \
    X (STREAM_PING, "stream_ping", MS, 15000, 10, 3600000, "a stream with nothing to say says so") \
    X (MEMORY_BYTES_MAX, "memory_bytes_max", BYTES, 268435456, 1048576, 1099511627776,             \
       "bodies and answers of all connections, and what JSON takes when it is parsed")             \
    X (PRINCIPAL_BYTES_MAX, "principal_bytes_max", BYTES, 67108864, 65536, 1099511627776,          \
       "of them, what the bodies and answers of a principal take")                                 \
    X (STRANGERS_BYTES_MAX, "strangers_bytes_max", BYTES, 16777216, 262144, 1099511627776,         \
       "of them, what all connections together take that brought no good token")                   \
    X (REQUEST_TIMEOUT, "request_timeout", MS, 5000, 10, 3600000, "a request to the broker")       \
    X (GRACE, "grace", MS, 2000, 0, 3600000,                                                       \
       "a broker that is away is waited for; then requests fail at once")                          \
    X (WAIT_MAX, "wait_max", MS, 60000, 10, 3600000, "a long poll")                                \
    X (SESSION_TIMEOUT, "session_timeout", MS, 43200000, 1000, 2592000000,                         \
       "a session of the page")                                                                    \
    X (WAIT_IDS_MAX, "wait_ids_max", COUNT, 10000, 1, 10000,                                       \
       "tasks of a namespace that are waited for at a time; the last fifth is for single ones")    \
    X (CANCELS_MAX, "cancels_max", COUNT, 4096, 1, 100000,                                         \
       "cancels of a namespace that are kept for a broker that is away, of a principal half")      \
    X (DRAIN_TIMEOUT, "drain_timeout", MS, 5000, 10, 3600000,                                      \
       "after SIGTERM, for answers that are due")

typedef enum setting {
#define X(NAME, key, kind, value, least, most, text) SETTING_##NAME,
    SETTINGS_MAP (X)
#undef X
} setting_t;
enum {
    SETTINGS_MAX = 0
#define X(NAME, key, kind, value, least, most, text) +1
    SETTINGS_MAP (X)
#undef X
};

typedef struct settings {
    uint64_t numbers[SETTINGS_MAX];
} settings_t;

#endif
