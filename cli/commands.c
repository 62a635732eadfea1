/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The table of commands: it feeds the parser, --help and `taskctl help`. */
#include "commands.h"

#include "taskmq.h"
#include "verbs/verbs.h"
#include "work/work.h"

/* The longest span of time that may be given: ten years. */
#define DURATION_MAX TMQ_TTL_MS_MAX
/* Timeouts of the library are 32 bits of milliseconds; the largest value means for ever. */
#define WAIT_MAX (UINT32_MAX - 1)

#define END_OF_OPTIONS                                                                             \
    {                                                                                              \
        OPT_END, NULL, 0, KIND_FLAG, 0, 0, NULL, NULL                                              \
    }

static const option_spec_t global_options[] = {
    {OPT_ENDPOINT, "endpoint", 'e', KIND_TEXT, 0, 0, "URI",
     "where the broker listens; several are tried in turn (TASKMQ_ENDPOINT)"},
    {OPT_PROFILE, "profile", 0, KIND_TEXT, 0, 0, "NAME",
     "a saved connection, see 'taskctl help profile' (TASKMQ_PROFILE)"},
    {OPT_SERVER_KEY, "server-key", 0, KIND_TEXT, 0, 0, "KEY",
     "the broker's public key, tmqpk_... (TASKMQ_SERVER_KEY)"},
    {OPT_KEY_FILE, "key-file", 0, KIND_TEXT, 0, 0, "FILE",
     "your secret key (TASKMQ_KEY_FILE, or TASKMQ_KEY for the key itself)"},
    {OPT_NAMESPACE, "namespace", 'n', KIND_NAME, 0, 0, "NAME",
     "default: default (TASKMQ_NAMESPACE)"},
    {OPT_OUTPUT, "output", 'o', KIND_FORMAT, 0, 0, "FORMAT",
     "table, wide, json, jsonl or id (TASKMQ_OUTPUT)"},
    {OPT_TIMEOUT, "timeout", 0, KIND_DURATION, 1, WAIT_MAX, "DURATION",
     "for one request; default 5s (TASKMQ_TIMEOUT)"},
    {OPT_COLOR, "color", 0, KIND_COLOR, 0, 0, "WHEN", "auto, always or never"},
    {OPT_NO_PAGER, "no-pager", 0, KIND_FLAG, 0, 0, NULL,
     "long output on a terminal goes through $PAGER, or less; not so"},
    {OPT_REQUEST_ID, "request-id", 0, KIND_REQUEST, 0, 0, "HEX",
     "repeat a submit whose outcome was unknown"},
    {OPT_QUIET, "quiet", 'q', KIND_FLAG, 0, 0, NULL, "no remarks on stderr, only errors"},
    {OPT_VERBOSE, "verbose", 'v', KIND_FLAG, 0, 0, NULL, "say on stderr what is done"},
    {OPT_VERSION, "version", 0, KIND_FLAG, 0, 0, NULL, "show the version"},
    {OPT_HELP, "help", 'h', KIND_FLAG, 0, 0, NULL, "show this help"},
    END_OF_OPTIONS};

#define FIELDS_OPTION                                                                              \
    {                                                                                              \
        OPT_FIELDS, "fields", 0, KIND_TEXT, 0, 0, "A,B",                                           \
            "only these keys of the JSON; also label:NAME and error.code"                          \
    }

static const option_spec_t submit_options[] = {
    {OPT_DATA, "data", 0, KIND_TEXT, 0, 0, "STR", "the payload"},
    {OPT_FILE, "file", 0, KIND_TEXT, 0, 0, "FILE", "the payload is the content of FILE"},
    {OPT_BATCH, "batch", 0, KIND_TEXT, 0, 0, "FILE",
     "submit one task per line of FILE (- is stdin), each a JSON object"},
    {OPT_LINES, "lines", 0, KIND_TEXT, 0, 0, "FILE",
     "submit one task per line of FILE (- is stdin), with the line as payload"},
    {OPT_SESSION, "session", 0, KIND_NAME, 0, 0, "NAME", "the thread of work it belongs to"},
    {OPT_PRIORITY, "priority", 0, KIND_NUMBER, 0, 255, "N",
     "0 to 255, higher is sooner; default 100"},
    {OPT_TTL, "ttl", 0, KIND_DURATION, 0, DURATION_MAX, "DURATION",
     "time to live; default 24h, 0 is for ever"},
    {OPT_ID, "id", 0, KIND_TEXT, 0, 0, "UUID", "its id, a UUIDv7, made by you"},
    {OPT_DEDUP_KEY, "dedup-key", 0, KIND_TEXT, 0, TMQ_DEDUP_KEY_BYTES_MAX, "KEY",
     "the same key with the same content gives the same task"},
    {OPT_METHOD, "method", 0, KIND_TEXT, 0, TMQ_METHOD_BYTES_MAX, "TEXT",
     "what is to be done, for the worker"},
    {OPT_CONTENT_TYPE, "content-type", 0, KIND_TEXT, 0, TMQ_CONTENT_TYPE_BYTES_MAX, "TYPE",
     "of the payload"},
    {OPT_LABEL, "label", 0, KIND_LABEL, 0, 0, "NAME=VALUE", "up to 16 of them"},
    {OPT_DELAY, "delay", 0, KIND_DURATION, 1, DURATION_MAX, "DURATION",
     "not before so long from now"},
    {OPT_AT, "at", 0, KIND_FUTURE, 0, 0, "TIME", "not before: 18:00, '2026-11-22 05:00'"},
    {OPT_START_BY, "start-by", 0, KIND_FUTURE, 0, 0, "TIME",
     "if nobody took it by then, it fails; also 90m for in 90 minutes"},
    {OPT_MAX_RUNTIME, "max-runtime", 0, KIND_DURATION, 1, DURATION_MAX, "DURATION",
     "of an attempt; it is stopped and counts as failed"},
    {OPT_FAIR_KEY, "fair-key", 0, KIND_TEXT, 0, TMQ_FAIR_KEY_BYTES_MAX, "KEY",
     "keys of a queue have their turns, however much one of them submits"},
    {OPT_REQUIRE, "require", 0, KIND_LABEL, 0, 0, "NAME=VALUE",
     "only for workers with this label; up to 8 of them"},
    {OPT_AFTER, "after", 0, KIND_TEXT, 0, 64, "ID[:POLICY]",
     "wait for that task; if it fails, fail (:fail), or run (:ignore, :continue)"},
    {OPT_META, "meta", 0, KIND_TEXT, 0, TMQ_META_BYTES_MAX, "JSON", "an object of your own"},
    {OPT_MAX_ATTEMPTS, "max-attempts", 0, KIND_NUMBER, 1, TMQ_MAX_ATTEMPTS_MAX, "N",
     "how often it may fail; default 3"},
    {OPT_BACKOFF, "backoff", 0, KIND_DURATION, 1, TMQ_BACKOFF_MS_MAX, "DURATION",
     "before the second attempt, doubled each time; default 1s"},
    {OPT_LEASE, "lease", 0, KIND_DURATION, TMQ_LEASE_MS_MIN, TMQ_LEASE_MS_MAX, "DURATION",
     "how long a silent worker keeps it; default 30s"},
    {OPT_POLL_INTERVAL, "poll-interval", 0, KIND_DURATION, 1, WAIT_MAX, "DURATION",
     "advice to those who poll; default 1s"},
    {OPT_TRACE, "trace", 0, KIND_TEXT, 0, TMQ_TRACE_BYTES_MAX, "TEXT",
     "a traceparent, for its worker"},
    {OPT_WAIT, "wait", 0, KIND_FLAG, 0, 0, NULL,
     "wait for the end; then the result is on stdout, the id on stderr"},
    {OPT_FOR, "for", 0, KIND_DURATION, 0, WAIT_MAX, "DURATION", "how long to --wait; exit 7 after"},
    {OPT_DRY_RUN, "dry-run", 0, KIND_FLAG, 0, 0, NULL, "check everything, submit nothing"},
    END_OF_OPTIONS};

static const option_spec_t get_options[] = {
    {OPT_PAYLOAD, "payload", 0, KIND_FLAG, 0, 0, NULL, "with what the task carries in"},
    {OPT_EVENTS, "events", 0, KIND_FLAG, 0, 0, NULL, "with its history"},
    FIELDS_OPTION,
    END_OF_OPTIONS};

static const option_spec_t no_options[] = {END_OF_OPTIONS};

#define Z85_OPTION                                                                                 \
    {                                                                                              \
        OPT_Z85, "z85", 0, KIND_FLAG, 0, 0, NULL, "in ZeroMQ's own form, for other clients"        \
    }

/* What somebody may do; more in cli/verbs/access.c. */
#define GRANT_OPTIONS                                                                              \
    {OPT_ROLE, "role",                                                                             \
     0,        KIND_NAME,                                                                          \
     0,        0,                                                                                  \
     "ROLE",   "client, reader, worker, observer, admin or operator; several add up"},             \
        {OPT_QUEUE, "queue", 0,         KIND_TEXT,                                                 \
         0,         64,      "PATTERN", "in these queues only, as 'render*'; several add up"},     \
    {                                                                                              \
        OPT_GRANT, "grant", 0, KIND_TEXT, 0, 160, "GRANT",                                         \
            "as the access file has it, as 'worker(default/render*)'"                              \
    }

static const option_spec_t key_options[] = {
    {OPT_SECRET, "secret", 0, KIND_FLAG, 0, 0, NULL,
     "show: also the secret key, on a terminal only"},
    {OPT_YES, "yes", 'y', KIND_FLAG, 0, 0, NULL, "show --secret: also into a file or a pipe"},
    Z85_OPTION,
    GRANT_OPTIONS,
    {OPT_UNTIL, "until", 0, KIND_TIME, 0, 0, "TIME", "trust: when the name ends, as 2027-06-30"},
    {OPT_INHERIT, "inherit", 0, KIND_FLAG, 0, 0, NULL,
     "trust: the name may own tasks of an earlier time"},
    END_OF_OPTIONS};

static const option_spec_t invite_options[] = {
    GRANT_OPTIONS,
    {OPT_FOR, "for", 0, KIND_DURATION, 1000, TMQ_INVITE_MS_MAX, "DURATION",
     "how long it is good; default 1h, at most 30d"},
    {OPT_USES, "uses", 0, KIND_NUMBER, 1, 1000, "N", "how often it is good; default 1"},
    {OPT_ADDRESS, "address", 0, KIND_TEXT, 0, 259, "HOST:PORT",
     "how the other machine reaches the broker, if not as it says itself"},
    {OPT_INVITED, "name", 0, KIND_TEXT, 0, 66, "NAME", "for whom it is, instead of the operand"},
    END_OF_OPTIONS};

static const option_spec_t join_options[] = {{OPT_IF_NEEDED, "if-needed", 0, KIND_FLAG, 0, 0, NULL,
                                              "nothing, if the profile is there already"},
                                             END_OF_OPTIONS};

static const option_spec_t server_key_options[] = {
    Z85_OPTION,
    {OPT_IN, "in", 0, KIND_DURATION, 1000, TMQ_ROTATE_MS_MAX, "DURATION",
     "rotate: when the next key counts, as 7d; until then clients learn it"},
    {OPT_NOW, "now", 0, KIND_FLAG, 0, 0, NULL,
     "rotate: at once, when the key was stolen; clients elsewhere need the new one"},
    END_OF_OPTIONS};

static const option_spec_t result_options[] = {
    {OPT_WAIT, "wait", 0, KIND_FLAG, 0, 0, NULL, "wait for the end of the task"},
    {OPT_FOR, "for", 0, KIND_DURATION, 0, WAIT_MAX, "DURATION", "how long to --wait; exit 7 after"},
    END_OF_OPTIONS};

#define FILTER_OPTIONS                                                                             \
    {OPT_QUEUE, "queue", 0, KIND_NAME, 0, 0, "NAME", "of this queue; several are OR"},             \
        {OPT_STATUS, "status", 0,        KIND_STATUSES,                                            \
         0,          0,        "STATUS", "in this status; several, also with commas, are OR"},     \
        {OPT_SESSION, "session", 0, KIND_NAME, 0, 0, "NAME", "of this session; several are OR"},   \
    {                                                                                              \
        OPT_LABEL, "label", 0, KIND_LABEL, 0, 0, "NAME=VALUE", "with this label; several are AND"  \
    }
#define CREATED_OPTIONS                                                                            \
    {OPT_SINCE, "since",                                                                           \
     0,         KIND_TIME,                                                                         \
     0,         0,                                                                                 \
     "TIME",    "created then or later: 2026-11-21, '2026-11-21 05:00', yesterday, 90m (ago)"},    \
    {                                                                                              \
        OPT_UNTIL, "until", 0, KIND_TIME, 0, 0, "TIME", "created before"                           \
    }

static const option_spec_t wait_options[] = {
    FILTER_OPTIONS,
    CREATED_OPTIONS,
    {OPT_FOR, "for", 0, KIND_DURATION, 0, WAIT_MAX, "DURATION", "how long; exit 7 after"},
    FIELDS_OPTION,
    END_OF_OPTIONS};

static const option_spec_t cancel_options[] = {
    FILTER_OPTIONS,
    CREATED_OPTIONS,
    {OPT_YES, "yes", 'y', KIND_FLAG, 0, 0, NULL, "do not ask"},
    {OPT_DRY_RUN, "dry-run", 0, KIND_FLAG, 0, 0, NULL, "only count what the conditions match"},
    FIELDS_OPTION,
    END_OF_OPTIONS};

static const option_spec_t again_options[] = {
    FILTER_OPTIONS,
    CREATED_OPTIONS,
    {OPT_YES, "yes", 'y', KIND_FLAG, 0, 0, NULL, "do not ask"},
    {OPT_DRY_RUN, "dry-run", 0, KIND_FLAG, 0, 0, NULL, "only count what the conditions match"},
    END_OF_OPTIONS};

static const option_spec_t set_options[] = {
    {OPT_TTL, "ttl", 0, KIND_DURATION, 0, DURATION_MAX, "DURATION",
     "time to live from now on; 0: no end"},
    {OPT_PRIORITY, "priority", 0, KIND_NUMBER, 0, 255, "N", "0 to 255, higher first"},
    {OPT_MAX_ATTEMPTS, "max-attempts", 0, KIND_NUMBER, 1, TMQ_MAX_ATTEMPTS_MAX, "N",
     "failures until it has failed for good"},
    {OPT_AT, "at", 0, KIND_FUTURE, 0, 0, "TIME", "not before: 18:00, '2026-11-22 05:00'"},
    {OPT_DELAY, "delay", 0, KIND_DURATION, 1, DURATION_MAX, "DURATION", "not before, from now on"},
    {OPT_NOW, "now", 0, KIND_FLAG, 0, 0, NULL, "it need not wait for its time any more"},
    {OPT_SET_LABEL, "label", 0, KIND_LABEL, 0, 0, "NAME=VALUE", "add a label, or change it"},
    {OPT_DROP_LABEL, "drop-label", 0, KIND_NAME, 0, 0, "NAME", "take a label away"},
    {OPT_QUEUE, "queue", 0, KIND_NAME, 0, 0, "NAME", "of this queue; several are OR"},
    {OPT_STATUS, "status", 0, KIND_STATUSES, 0, 0, "STATUS",
     "in this status; several, also with commas, are OR"},
    {OPT_SESSION, "session", 0, KIND_NAME, 0, 0, "NAME", "of this session; several are OR"},
    CREATED_OPTIONS,
    {OPT_YES, "yes", 'y', KIND_FLAG, 0, 0, NULL, "do not ask"},
    {OPT_DRY_RUN, "dry-run", 0, KIND_FLAG, 0, 0, NULL, "only count what the conditions match"},
    END_OF_OPTIONS};

static const option_spec_t list_options[] = {
    FILTER_OPTIONS,
    CREATED_OPTIONS,
    {OPT_LIMIT, "limit", 0, KIND_NUMBER, 1, UINT32_MAX, "N", "at most N tasks; default 50"},
    {OPT_CURSOR, "cursor", 0, KIND_TEXT, 0, TMQ_CURSOR_BYTES_MAX, "CURSOR",
     "go on behind an earlier page with the same filters"},
    {OPT_ALL, "all", 0, KIND_FLAG, 0, 0, NULL, "all of them, page after page"},
    {OPT_COLUMNS, "columns", 0, KIND_TEXT, 0, 0, "A,B",
     "what the table shows, such as id,status,label:album"},
    FIELDS_OPTION,
    END_OF_OPTIONS};

static const option_spec_t count_options[] = {FILTER_OPTIONS, CREATED_OPTIONS, END_OF_OPTIONS};

static const option_spec_t watch_options[] = {
    FILTER_OPTIONS,
    {OPT_SINCE, "since", 0, KIND_TEXT, 0, 0, "WHERE",
     "from a cursor (GEN-SEQ or SEQ; 0 is the beginning), a time, or 90m for 90 minutes ago"},
    {OPT_SNAPSHOT, "snapshot", 0, KIND_FLAG, 0, 0, NULL, "first the present state of all of them"},
    {OPT_SUBJECT, "subject", 0, KIND_SUBJECT, 0, 0, "SUBJECT",
     "what the events are about: task (the default), value, ...; may be repeated"},
    {OPT_UNTIL, "until", 0, KIND_STATUS, 0, 0, "STATUS",
     "end when every task named has it or has ended"},
    {OPT_COUNT, "count", 0, KIND_NUMBER, 1, UINT64_MAX, "N", "end after N events"},
    {OPT_FOR, "for", 0, KIND_DURATION, 0, WAIT_MAX, "DURATION",
     "end after that time; exit 7 without --until reached"},
    FIELDS_OPTION,
    END_OF_OPTIONS};

/* As those of watch. */
#define FOLLOW_OPTIONS                                                                             \
    {OPT_SINCE, "since", 0,       KIND_TEXT,                                                       \
     0,         0,       "WHERE", "watch: from a cursor, a time, or 90m for 90 minutes ago"},      \
        {OPT_COUNT, "count", 0, KIND_NUMBER, 1, UINT64_MAX, "N", "watch: end after N events"},     \
    {                                                                                              \
        OPT_FOR, "for", 0, KIND_DURATION, 0, WAIT_MAX, "DURATION", "watch: end after that time"    \
    }

static const option_spec_t context_options[] = {
    {OPT_SESSION, "session", 0, KIND_NAME, 0, 0, "NAME", "of this session; else of the namespace"},
    {OPT_DATA, "data", 0, KIND_TEXT, 0, 0, "STR", "put: the value"},
    {OPT_FILE, "file", 0, KIND_TEXT, 0, 0, "FILE", "put: the value is the content of FILE"},
    {OPT_IF_VERSION, "if-version", 0, KIND_NUMBER, 0, UINT64_MAX - 2, "N",
     "put, remove: only if the value has this version; put: 0 is one that does not exist"},
    {OPT_LIMIT, "limit", 0, KIND_NUMBER, 1, UINT32_MAX, "N", "list: at most N; default 50"},
    {OPT_ALL, "all", 0, KIND_FLAG, 0, 0, NULL, "list: all of them, page after page"},
    FOLLOW_OPTIONS,
    FIELDS_OPTION,
    END_OF_OPTIONS};

#define ITEM_OPTIONS                                                                               \
    {OPT_DATA, "data", 0, KIND_TEXT, 0, 0, "STR", "what is put"},                                  \
        {OPT_FILE, "file", 0, KIND_TEXT, 0, 0, "FILE", "the same, the content of FILE"},           \
        {OPT_SOURCE, "source",                                                                     \
         0,          KIND_TEXT,                                                                    \
         0,          TMQ_ENTRY_NAME_BYTES_MAX,                                                     \
         "TEXT",     "put: where it comes from; list: only these"},                                \
        {OPT_TYPE, "type",                                                                         \
         0,        KIND_TEXT,                                                                      \
         0,        TMQ_ENTRY_NAME_BYTES_MAX,                                                       \
         "TEXT",   "put: what it is; list: only these"},                                           \
        {OPT_INTENSITY, "intensity", 0, KIND_TEXT, 0, 0, "N", "put: from 0 (default) to 1"},       \
        {OPT_AFTER, "after", 0, KIND_NUMBER, 0, UINT64_MAX, "NUMBER", "list: behind this item"},   \
        {OPT_SINCE, "since", 0, KIND_TIME, 0, 0, "TIME", "list: put at or after it"},              \
    {                                                                                              \
        OPT_LIMIT, "limit", 0, KIND_NUMBER, 1, UINT32_MAX, "N", "list: at most N; default 50"      \
    }

static const option_spec_t mail_options[] = {
    {OPT_SESSION, "session", 0, KIND_NAME, 0, 0, "NAME", "of this session; else of the namespace"},
    ITEM_OPTIONS,
    FIELDS_OPTION,
    END_OF_OPTIONS};

static const option_spec_t session_options[] = {ITEM_OPTIONS, FIELDS_OPTION, END_OF_OPTIONS};

static const option_spec_t answer_options[] = {
    {OPT_ASK, "ask", 0, KIND_TEXT, 0, TMQ_QUESTION_KEY_BYTES_MAX, "KEY",
     "key of the question; not needed while one is open"},
    {OPT_DATA, "data", 0, KIND_TEXT, 0, 0, "STR", "the answer"},
    {OPT_FILE, "file", 0, KIND_TEXT, 0, 0, "FILE", "the answer is the content of FILE"},
    {OPT_TEXT, "text", 0, KIND_FLAG, 0, 0, NULL, "it is text, even if it could be JSON"},
    END_OF_OPTIONS};

static const option_spec_t inbox_options[] = {
    {OPT_TASK, "task", 0, KIND_TEXT, 0, 0, "ID", "of this task only"},
    {OPT_SESSION, "session", 0, KIND_NAME, 0, 0, "NAME", "of this session only"},
    {OPT_LIMIT, "limit", 0, KIND_NUMBER, 1, UINT32_MAX, "N", "at most N; default 50"},
    {OPT_ALL, "all", 0, KIND_FLAG, 0, 0, NULL, "all of them, page after page"},
    FIELDS_OPTION,
    END_OF_OPTIONS};

static const option_spec_t work_options[] = {
    {OPT_JOBS, "jobs", 'j', KIND_NUMBER, 1, TMQ_CREDIT_MAX, "N", "tasks at a time; default 1"},
    {OPT_PAYLOAD_FILE, "payload-file", 0, KIND_FLAG, 0, 0, NULL,
     "the payload is in the file $TASKMQ_PAYLOAD_FILE, stdin is empty"},
    {OPT_RESULT_TYPE, "result-type", 0, KIND_TEXT, 0, TMQ_CONTENT_TYPE_BYTES_MAX, "TYPE",
     "content type of the result; default text/plain if it is UTF-8"},
    {OPT_RELEASE_DELAY, "release-delay", 0, KIND_DURATION, 0, TMQ_RELEASE_DELAY_MS_MAX, "DURATION",
     "how long a task that was given back (exit 75) waits; default 1s"},
    {OPT_DRAIN, "drain", 0, KIND_FLAG, 0, 0, NULL, "end when the queues are empty"},
    {OPT_MAX_TASKS, "max-tasks", 0, KIND_NUMBER, 1, UINT32_MAX, "N", "end after N tasks"},
    {OPT_WORKER_NAME, "name", 0, KIND_NAME, 0, 0, "NAME",
     "what 'taskctl worker' calls it; default HOST-PID-1"},
    {OPT_WORK_ROLE, "role", 0, KIND_NAME, 0, 0, "ROLE", "what it is, for 'taskctl worker'"},
    {OPT_LABEL, "label", 0, KIND_LABEL, 0, 0, "NAME=VALUE",
     "what it has, for tasks that require it; up to 16"},
    END_OF_OPTIONS};

static const option_spec_t top_options[] = {{OPT_INTERVAL, "interval", 0, KIND_DURATION, 200,
                                             3600000, "DURATION",
                                             "from one look to the next; default 2s"},
                                            END_OF_OPTIONS};

static const option_spec_t worker_options[] = {
    {OPT_ALL, "all", 0, KIND_FLAG, 0, 0, NULL, "list: also those that have ended, for seven days"},
    END_OF_OPTIONS};

static const option_spec_t stats_options[] = {
    {OPT_PROMETHEUS, "prometheus", 0, KIND_FLAG, 0, 0, NULL,
     "in the text format of Prometheus, for its textfile collector"},
    END_OF_OPTIONS};

static const option_spec_t schedule_options[] = {
    {OPT_CRON, "cron", 0, KIND_TEXT, 0, TMQ_CALENDAR_BYTES_MAX, "FIELDS",
     "when: minute hour day month weekday, @hourly, ..., or '@every 90s'"},
    {OPT_ZONE, "zone", 0, KIND_TEXT, 0, TMQ_ZONE_BYTES_MAX, "ZONE",
     "of the fields, as Europe/Berlin; default UTC"},
    {OPT_OVERLAP, "overlap", 0, KIND_TEXT, 0, 16, "WHAT",
     "if the task before has not ended: allow (default), skip, cancel it"},
    {OPT_MISSED, "missed", 0, KIND_TEXT, 0, 16, "WHAT",
     "what the broker was away for: skip (default), one, all (100)"},
    {OPT_UNTIL, "until", 0, KIND_TIME, 0, 0, "TIME", "no instant after it"},
    {OPT_PAUSED, "paused", 0, KIND_FLAG, 0, 0, NULL, "begin when it is resumed"},
    {OPT_REPLACE, "replace", 0, KIND_FLAG, 0, 0, NULL, "your schedule of this name"},
    {OPT_COUNT, "count", 0, KIND_NUMBER, 1, TMQ_SCHEDULE_COMING_MAX, "N",
     "next: so many instants; default 10"},
    {OPT_DATA, "data", 0, KIND_TEXT, 0, 0, "STR", "the payload, at most 64 KiB"},
    {OPT_FILE, "file", 0, KIND_TEXT, 0, 0, "FILE", "the payload is the content of FILE"},
    {OPT_SESSION, "session", 0, KIND_NAME, 0, 0, "NAME", "as of submit"},
    {OPT_PRIORITY, "priority", 0, KIND_NUMBER, 0, 255, "N", "the same"},
    {OPT_TTL, "ttl", 0, KIND_DURATION, 0, DURATION_MAX, "DURATION", "the same"},
    {OPT_METHOD, "method", 0, KIND_TEXT, 0, TMQ_METHOD_BYTES_MAX, "TEXT", "the same"},
    {OPT_CONTENT_TYPE, "content-type", 0, KIND_TEXT, 0, TMQ_CONTENT_TYPE_BYTES_MAX, "TYPE",
     "the same"},
    {OPT_LABEL, "label", 0, KIND_LABEL, 0, 0, "NAME=VALUE", "the same"},
    {OPT_META, "meta", 0, KIND_TEXT, 0, TMQ_META_BYTES_MAX, "JSON", "the same"},
    {OPT_MAX_ATTEMPTS, "max-attempts", 0, KIND_NUMBER, 1, TMQ_MAX_ATTEMPTS_MAX, "N", "the same"},
    {OPT_BACKOFF, "backoff", 0, KIND_DURATION, 1, TMQ_BACKOFF_MS_MAX, "DURATION", "the same"},
    {OPT_LEASE, "lease", 0, KIND_DURATION, TMQ_LEASE_MS_MIN, TMQ_LEASE_MS_MAX, "DURATION",
     "the same"},
    {OPT_MAX_RUNTIME, "max-runtime", 0, KIND_DURATION, 1, DURATION_MAX, "DURATION", "the same"},
    END_OF_OPTIONS};

static const option_spec_t queue_options[] = {
    {OPT_WHY, "why", 0, KIND_TEXT, 0, TMQ_QUEUE_WHY_BYTES_MAX, "TEXT",
     "pause: why, for others to read"},
    {OPT_MAX_RUNNING, "max-running", 0, KIND_NUMBER, 1, TMQ_QUEUE_RUNNING_MAX, "N",
     "set: so many tasks at workers at once"},
    {OPT_MAX_PER_KEY, "max-per-key", 0, KIND_NUMBER, 1, TMQ_QUEUE_RUNNING_MAX, "N",
     "set: ... of one fair key"},
    {OPT_WEIGHT_OF, "weight-of", 0, KIND_NAME, 0, 0, "WHAT",
     "set: what has its turn: key (the task's), owner or session"},
    {OPT_RATE, "rate", 0, KIND_TEXT, 0, 64, "N/DURATION",
     "set: so many tasks may begin in so long, as 10/1m"},
    {OPT_BURST, "burst", 0, KIND_NUMBER, 1, TMQ_QUEUE_RUNNING_MAX, "N",
     "set: so many of a rate at once; default: what comes in 100ms"},
    {OPT_MAX_TASKS, "max-tasks", 0, KIND_NUMBER, 1, TMQ_QUEUE_TASKS_MAX, "N",
     "set: so many queued tasks; a submit beyond is refused (exit 10)"},
    {OPT_MAX_BYTES, "max-bytes", 0, KIND_TEXT, 0, 64, "SIZE",
     "set: so many bytes of their payloads, as 64M"},
    {OPT_TTL, "ttl", 0, KIND_DURATION, 0, DURATION_MAX, "DURATION",
     "set: of tasks submitted without one; 0 is for ever"},
    {OPT_LEASE, "lease", 0, KIND_DURATION, TMQ_LEASE_MS_MIN, TMQ_LEASE_MS_MAX, "DURATION",
     "set: the same"},
    {OPT_BACKOFF, "backoff", 0, KIND_DURATION, 1, TMQ_BACKOFF_MS_MAX, "DURATION", "set: the same"},
    {OPT_MAX_ATTEMPTS, "max-attempts", 0, KIND_NUMBER, 1, TMQ_MAX_ATTEMPTS_MAX, "N",
     "set: the same"},
    {OPT_MAX_RUNTIME, "max-runtime", 0, KIND_DURATION, 1, DURATION_MAX, "DURATION",
     "set: the same"},
    {OPT_UNSET, "unset", 0, KIND_TEXT, 0, 64, "NAME",
     "set: take one of these back, as --unset rate"},
    END_OF_OPTIONS};

static const option_spec_t audit_options[] = {
    {OPT_HEAD, "head", 0, KIND_TEXT, 0, 0, "HEX",
     "verify: a head that is known, from the broker's log"},
    {OPT_FOLLOW, "follow", 'f', KIND_FLAG, 0, 0, NULL, "tail: go on with what is added"},
    {OPT_KIND, "kind", 0, KIND_TEXT, 0, 64, "KIND", "tail: only such lines, as key.revoked"},
    {OPT_ACTOR, "actor", 0, KIND_TEXT, 0, 128, "NAME", "tail: only what this one did"},
    {OPT_SINCE, "since", 0, KIND_TEXT, 0, 0, "WHEN",
     "tail: all lines since a time, a day, or a duration ago"},
    {OPT_LIMIT, "limit", 0, KIND_NUMBER, 1, TMQ_AUDIT_LINES_MAX, "N",
     "tail: the newest N lines; default 10"},
    END_OF_OPTIONS};

static const option_spec_t backup_options[] = {
    {OPT_WITH_KEYS, "with-keys", 0, KIND_FLAG, 0, 0, NULL,
     "the broker's secret key too: whoever has the file can pass for the broker"},
    END_OF_OPTIONS};

#define WORK_TEXT                                                                                  \
    "The payload is the program's stdin, its stdout the result; stderr passes\n"                   \
    "through. Exit 0 completes the task, 100 fails it for good, 75 gives it back\n"                \
    "uncounted; any other exit or a signal fails the attempt, which is repeated\n"                 \
    "while attempts are left. A cancelled task gets SIGTERM, 10s later SIGKILL.\n"                 \
    "\n"                                                                                           \
    "The program finds TASKMQ_TASK_ID, _ATTEMPT, _QUEUE, _SESSION, _METHOD, _META,\n"              \
    "_LABELS, _ENDPOINT and _NAMESPACE in its environment, and in TASKMQ_FD the\n"                 \
    "number of a socket for lines. It may write \"progress DONE/TOTAL [text]\",\n"                 \
    "\"status TEXT\" and \"ask KEY JSON\", answered by \"answer KEY JSON\"; it can\n"              \
    "read \"deadline SECONDS\", and before a SIGTERM why: \"cancel\", \"lost\", \"leave\".\n"      \
    "\n"                                                                                           \
    "SIGTERM finishes what runs and takes no more (exit 0); a second one gives it\n"               \
    "back (exit 143)."

static const command_t commands[] = {
    {.name = "submit",
     .group = "submit tasks, fetch results",
     .operands = "QUEUE [--data STR | --file FILE | -] [options]\nQUEUE --lines FILE "
                 "[options]\n--batch FILE [--dry-run]",
     .summary = "submit a task, print its id",
     .text = "Without a payload option the payload is empty; - reads it from stdin. With\n"
             "--lines the other options count for each task.\n"
             "A line of --batch is {\"queue\":...,\"data\":...}, and the options by their names\n"
             "with underscores; after may be an array, and line:N in it is the task of an\n"
             "earlier line. All lines are checked before the first is submitted. Then one\n"
             "line of output follows per line of input: the id, or nothing where the task was\n"
             "refused.",
     .examples = "taskctl submit thumbs --file photo.jpg --label album=summer\n"
                 "taskctl submit reports --data '{\"month\":11}' --wait\n"
                 "ls *.jpg | taskctl submit thumbs --lines - --label album=summer\n"
                 "taskctl submit --batch tasks.jsonl >ids",
     .options = submit_options,
     .operand = OPERAND_QUEUE,
     .operands_max = 2,
     .repeats = true,
     .run = run_submit},
    {.name = "get",
     .group = "submit tasks, fetch results",
     .operands = "ID... [options]",
     .summary = "show tasks",
     .examples = "taskctl get 4fdd1c9a8b2e\n"
                 "taskctl -o json get --payload --events 4fdd1c9a8b2e",
     .options = get_options,
     .operand = OPERAND_ID,
     .operands_min = 1,
     .operands_max = -1,
     .pages = true,
     .run = run_get},
    {.name = "why",
     .group = "submit tasks, fetch results",
     .operands = "ID",
     .summary = "say what holds a task",
     .text = "One sentence and its facts, as the broker finds them at this moment: a place in\n"
             "the queue, a pause, a delay, another task, a lease, a question, its end.",
     .examples = "taskctl why 4fdd1c9a8b2e",
     .options = no_options,
     .operand = OPERAND_ID,
     .operands_max = 1,
     .run = run_why},
    {.name = "payload",
     .group = "submit tasks, fetch results",
     .operands = "ID",
     .summary = "the bytes that a task carries in, raw",
     .examples = "taskctl payload 4fdd1c9a8b2e >photo.jpg",
     .options = no_options,
     .operand = OPERAND_ID,
     .operands_min = 1,
     .operands_max = 1,
     .no_ids = true,
     .run = run_payload},
    {.name = "result",
     .group = "submit tasks, fetch results",
     .operands = "ID [options]",
     .summary = "the bytes of a task's result, raw",
     .text = "Of a failed or cancelled task the error is on stderr and the exit code 8; of one\n"
             "that has not ended the exit code is 6.",
     .examples = "taskctl result --wait 4fdd1c9a8b2e >thumb.png",
     .options = result_options,
     .operand = OPERAND_ID,
     .operands_min = 1,
     .operands_max = 1,
     .no_ids = true,
     .run = run_result},
    {.name = "wait",
     .group = "submit tasks, fetch results",
     .operands = "ID... [options]\nCONDITIONS [options]",
     .summary = "wait until tasks have ended",
     .text = "Prints one task a line as it ends. Exit code 0 only if all completed, 8 if one\n"
             "failed or was cancelled, 7 at the deadline. With conditions, it waits for the\n"
             "tasks that match now.",
     .examples = "taskctl wait 4fdd1c9a8b2e && echo completed\n"
                 "taskctl wait --for 10m - <ids\n"
                 "taskctl wait --queue thumbs --since today",
     .options = wait_options,
     .operand = OPERAND_ID,
     .operands_max = -1,
     .run = run_wait},
    {.name = "list",
     .alias = "ls",
     .group = "find and follow tasks",
     .operands = "[QUEUE...] [options]",
     .summary = "list tasks, newest first",
     .examples = "taskctl list thumbs --status failed,cancelled --since yesterday\n"
                 "taskctl list thumbs --columns id,status,label:album,remark\n"
                 "taskctl -o jsonl list --all --fields task_id,status",
     .options = list_options,
     .operand = OPERAND_QUEUE,
     .operands_max = TMQ_FILTER_VALUES_MAX,
     .pages = true,
     .run = run_list},
    {.name = "count",
     .group = "find and follow tasks",
     .operands = "[QUEUE...] [options]",
     .summary = "count tasks",
     .examples = "taskctl count thumbs --status queued",
     .options = count_options,
     .operand = OPERAND_QUEUE,
     .operands_max = TMQ_FILTER_VALUES_MAX,
     .no_ids = true,
     .run = run_count},
    {.name = "watch",
     .group = "find and follow tasks",
     .operands = "[ID...] [options]",
     .summary = "show what happens, live",
     .text = "At the end the cursor to go on with (--since) is on stderr.",
     .examples = "taskctl watch --queue thumbs\n"
                 "taskctl watch --until completed --for 1h 4fdd1c9a8b2e\n"
                 "taskctl -o jsonl watch --since 0 --count 100",
     .options = watch_options,
     .operand = OPERAND_ID,
     .operands_max = -1,
     .run = run_watch},
    {.name = "inbox",
     .group = "find and follow tasks",
     .operands = "[QUEUE...] [options]",
     .summary = "list the open questions, oldest first",
     .examples = "taskctl inbox\n"
                 "taskctl inbox thumbs --session trip\n"
                 "taskctl -o jsonl inbox --all",
     .options = inbox_options,
     .operand = OPERAND_QUEUE,
     .operands_max = TMQ_FILTER_VALUES_MAX,
     .pages = true,
     .run = run_inbox},
    {.name = "context",
     .group = "share between tasks",
     .operands = "get KEY\nput KEY [--data STR | --file FILE | -] [--if-version N]\n"
                 "list [PREFIX]\nwatch [PREFIX]\nremove KEY [--if-version N]",
     .summary = "values that tasks share, with versions",
     .text = "A value is up to 65,536 bytes under a key, of the session or of the namespace.\n"
             "put prints its version. With --if-version it changes nothing if somebody was\n"
             "faster (exit 6). watch ends with the cursor to go on with (--since).",
     .examples = "taskctl context put plan --session trip --data draft --if-version 0\n"
                 "taskctl context get plan --session trip\n"
                 "taskctl context watch --session trip",
     .options = context_options,
     .operand = OPERAND_VERB,
     .verbs = context_verbs,
     .operands_max = -1,
     .run = run_verb},
    {.name = "mail",
     .group = "share between tasks",
     .operands = "send AGENT [--data STR | --file FILE | -]\nread AGENT\nack AGENT NUMBER...",
     .summary = "mailboxes between agents",
     .text = "send prints the number of the item. It stays in the box until it is\n"
             "acknowledged; a box holds 10,000.",
     .examples = "taskctl mail send planner --session trip --data 'the flight is late'\n"
                 "taskctl -o jsonl mail read planner --session trip\n"
                 "taskctl mail ack planner 4711 --session trip",
     .options = mail_options,
     .operand = OPERAND_VERB,
     .verbs = mail_verbs,
     .operands_max = -1,
     .run = run_verb},
    {.name = "session",
     .group = "share between tasks",
     .operands = "input add SESSION [--data STR | --file FILE | -]\ninput list SESSION\n"
                 "input drop SESSION NUMBER...",
     .summary = "what came in for a thread of work",
     .text = "An input stays until it is dropped; there may be 10,000.",
     .examples = "taskctl session input add trip --source user --type text --data 'by train'\n"
                 "taskctl session input list trip --type text --since 90m",
     .options = session_options,
     .operand = OPERAND_VERB,
     .verbs = session_verbs,
     .operands_max = -1,
     .run = run_verb},
    {.name = "cancel",
     .group = "change tasks",
     .operands = "ID...\nCONDITIONS [--yes | --dry-run]",
     .summary = "cancel tasks",
     .text = "Cancelling a cancelled task is no error; one that has ended otherwise: exit 6.\n"
             "With conditions, all tasks that match and have not ended are cancelled. On a\n"
             "terminal it asks before; elsewhere it needs --yes.",
     .examples = "taskctl cancel 4fdd1c9a8b2e\n"
                 "taskctl cancel --queue thumbs --status queued --label album=summer\n"
                 "taskctl -o id list thumbs --all | taskctl cancel -",
     .options = cancel_options,
     .operand = OPERAND_ID,
     .operands_max = -1,
     .run = run_cancel},
    {.name = "retry",
     .group = "change tasks",
     .operands = "ID...\nCONDITIONS [--yes | --dry-run]",
     .summary = "do failed and cancelled tasks again",
     .text = "The same task, from the beginning, with all its attempts before it. Only what\n"
             "failed or was cancelled: else exit 6. One whose worker has not stopped yet waits\n"
             "for that. With conditions, all failed and cancelled tasks that match. On a\n"
             "terminal it asks before; elsewhere it needs --yes.",
     .examples = "taskctl retry 4fdd1c9a8b2e\n"
                 "taskctl retry --queue thumbs --status failed --since yesterday",
     .options = again_options,
     .operand = OPERAND_ID,
     .operands_max = -1,
     .repeats = true,
     .run = run_retry},
    {.name = "resume",
     .group = "change tasks",
     .operands = "ID...\nCONDITIONS [--yes | --dry-run]",
     .summary = "let failed and cancelled tasks go on",
     .text = "As retry, but what the last worker kept of its work stays with the task.",
     .examples = "taskctl resume 4fdd1c9a8b2e",
     .options = again_options,
     .operand = OPERAND_ID,
     .operands_max = -1,
     .repeats = true,
     .run = run_resume},
    {.name = "set",
     .group = "change tasks",
     .operands = "ID... CHANGES\nCONDITIONS CHANGES [--yes | --dry-run]",
     .summary = "change what may be changed of tasks",
     .text = "Of a task that has ended only --ttl, --label and --drop-label; --at, --delay and\n"
             "--now only of one that is queued: else exit 6. With conditions, all live tasks\n"
             "that match, unless --status says which.",
     .examples = "taskctl set 4fdd1c9a8b2e --priority 200 --ttl 2d\n"
                 "taskctl set --queue thumbs --status queued --delay 1h",
     .options = set_options,
     .operand = OPERAND_ID,
     .operands_max = -1,
     .repeats = true,
     .run = run_set},
    {.name = "purge",
     .group = "change tasks",
     .operands = "ID...\nCONDITIONS [--yes | --dry-run]",
     .summary = "remove tasks that have ended",
     .text = "Before their time to live is over: payload and result go, their ids stay taken.\n"
             "Of a live task: exit 6, cancel it first. Needs the role admin.",
     .examples = "taskctl purge 4fdd1c9a8b2e\n"
                 "taskctl purge --queue thumbs --until 2026-11-01 --dry-run",
     .options = again_options,
     .operand = OPERAND_ID,
     .operands_max = -1,
     .repeats = true,
     .run = run_purge},
    {.name = "answer",
     .group = "change tasks",
     .operands = "ID [--ask KEY] [--data STR | --file FILE | -]",
     .summary = "answer a question of a task's worker",
     .text = "The answer is JSON if it can be read as such, else text. A question has one\n"
             "answer: the same again is no error, another one: exit 6.",
     .examples = "taskctl answer 4fdd1c9a8b2e --data yes\n"
                 "taskctl answer 4fdd1c9a8b2e --ask colour --data '\"red\"'",
     .options = answer_options,
     .operand = OPERAND_ID,
     .operands_min = 1,
     .operands_max = 2,
     .run = run_answer},
    {.name = "work",
     .group = "work on tasks",
     .operands = "QUEUE... [options] -- COMMAND...",
     .summary = "run a program for each task of a queue",
     .text = WORK_TEXT,
     .examples = "taskctl work thumbs -j 4 -- convert - -resize 200x png:-\n"
                 "taskctl work nightly --drain -- sh -c 'gzip | tee \"$TASKMQ_TASK_ID.gz\"'",
     .options = work_options,
     .operand = OPERAND_QUEUE,
     .operands_min = 1,
     .operands_max = TMQ_WORKER_QUEUES_MAX,
     .no_ids = true,
     .takes_rest = true,
     .run = run_work},
    {.name = "stats",
     .group = "look at the broker",
     .operands = "[--prometheus]",
     .summary = "numbers of the broker and its queues",
     .text = "With -v each counter is explained: what it means, and which value is bad.",
     .examples = "taskctl stats\n"
                 "taskctl stats -v\n"
                 "taskctl -o json stats\n"
                 "taskctl stats --prometheus >taskmq.prom",
     .options = stats_options,
     .no_ids = true,
     .pages = true,
     .run = run_stats},
    {.name = "ping",
     .group = "look at the broker",
     .operands = "",
     .summary = "is the broker there, and how fast is it",
     .examples = "taskctl -e tcp://127.0.0.1:5560 ping",
     .options = no_options,
     .no_ids = true,
     .run = run_ping},
    {.name = "doctor",
     .group = "look at the broker",
     .operands = "",
     .summary = "what is wrong with this set-up, and what mends it",
     .text = "It looks at the way to the broker, at who you are for it, at the clocks, at keys\n"
             "and the broker's directory where they are here, and at the broker's numbers.\n"
             "Exit code 1 if something is wrong; a warning is no reason.",
     .examples = "taskctl doctor\n"
                 "taskctl -o json doctor",
     .options = no_options,
     .no_ids = true,
     .run = run_doctor},
    {.name = "top",
     .group = "look at the broker",
     .operands = "[--interval DURATION]",
     .summary = "queues, workers and tasks on a live screen",
     .text = "Keys: q leaves, s sorts the queues, r looks now, ? explains. The screen stays while\n"
             "the broker is away, and says since when.",
     .examples = "taskctl top\n"
                 "taskctl -n night top --interval 10s",
     .options = top_options,
     .no_ids = true,
     .run = run_top},
    {.name = "worker",
     .group = "look at the broker",
     .operands = "list [--all]\nshow WORKER\ndrain WORKER",
     .summary = "who works here; let one finish and end",
     .text = "WORKER is a name, or an id of 32 digits; of several with one name drain takes all.\n"
             "A drained worker gets nothing new, wherever it connects again. It finishes what\n"
             "it holds, and 'taskctl work' ends then.",
     .examples = "taskctl worker list\n"
                 "taskctl -o wide worker list --all\n"
                 "taskctl worker show box-4711-1\n"
                 "taskctl worker drain box-4711-1",
     .options = worker_options,
     .operand = OPERAND_VERB,
     .verbs = worker_verbs,
     .operands_max = -1,
     .pages = true,
     .run = run_verb},
    {.name = "schedule",
     .group = "submit tasks, fetch results",
     .operands = "add NAME QUEUE --cron FIELDS [- | options]\nlist\nshow NAME\nnext NAME "
                 "[--count N]\npause NAME\nresume NAME\nremove NAME",
     .summary = "submit a task again and again",
     .text = "The fields are those of crontab(5): minute hour day month weekday, by the clock\n"
             "of --zone. Where clocks change it is as Debian's cron does: a line with a star\n"
             "in minute or hour follows the clock; any other comes once, at once when its\n"
             "time is left out. Each instant makes one task, also through restarts. What falls\n"
             "into a pause is not made up for.",
     .examples = "taskctl schedule add nightly reports --cron '30 3 * * *' --zone Europe/Berlin\n"
                 "taskctl schedule add tick checks --cron '@every 90s' --overlap skip\n"
                 "taskctl schedule next nightly --count 3\n"
                 "taskctl schedule pause nightly",
     .options = schedule_options,
     .operand = OPERAND_VERB,
     .verbs = schedule_verbs,
     .operands_max = -1,
     .no_ids = true,
     .pages = true,
     .run = run_verb},
    {.name = "queue",
     .group = "look at the broker",
     .operands = "list\nshow QUEUE\nset QUEUE OPTIONS\npause QUEUE [--why TEXT]\nresume QUEUE",
     .summary = "how queues stand; pause them, set caps, rates, limits",
     .text = "What is set counts at once, also for what is queued, and survives restarts; the\n"
             "defaults (ttl, lease, ...) are given to a task as it is submitted. A paused\n"
             "queue takes tasks and gives none to workers; what they hold goes on. So it is\n"
             "with a cap below what runs. A queue need not exist to be paused or set.",
     .examples = "taskctl queue list\n"
                 "taskctl queue pause thumbs --why 'the disk is full'\n"
                 "taskctl queue set thumbs --max-running 8 --rate 100/1m\n"
                 "taskctl queue set thumbs --unset rate",
     .options = queue_options,
     .operand = OPERAND_VERB,
     .verbs = queue_verbs,
     .operands_max = -1,
     .no_ids = true,
     .pages = true,
     .run = run_verb},
    {.name = "audit",
     .group = "look at the broker",
     .operands = "verify [FILE | DIR]... [--head HEX]\nhead\n"
                 "tail [-f] [--kind KIND] [--actor NAME] [--since WHEN] [...]",
     .summary = "the record of who did what to the broker",
     .text = "verify reads audit.jsonl and the files before it, needs no broker, and names\n"
             "the first line that was changed, removed or moved (exit 1). Nothing in the\n"
             "files holds their last lines: a head that is known from the log proves that\n"
             "all lines before it are what they were. head prints the newest number and\n"
             "hash, tail the newest lines.",
     .examples = "taskctl audit verify\n"
                 "taskctl audit verify /backup/audit*.jsonl --head 00b5dded312f...\n"
                 "taskctl audit tail -f --kind denied",
     .options = audit_options,
     .operand = OPERAND_VERB,
     .verbs = audit_verbs,
     .operands_max = -1,
     .no_ids = true,
     .run = run_verb},
    {.name = "backup",
     .group = "look at the broker",
     .operands = "FILE [--with-keys]",
     .summary = "a copy of all tasks, while the broker goes on",
     .text = "The file has everything that was acknowledged before. taskmqd --restore makes\n"
             "a data directory of it. It holds all payloads and results: keep it as you\n"
             "keep them. The broker keeps its newest ones in DIR/backups.",
     .examples = "taskctl backup taskmq-$(date +%F).tar\n"
                 "taskmqd --restore taskmq-2026-11-22.tar --data /srv/taskmq",
     .options = backup_options,
     .operands_min = 1,
     .operands_max = 1,
     .no_ids = true,
     .run = run_backup},
    {.name = "whoami",
     .group = "keys and connections",
     .operands = "",
     .summary = "who you are for the broker, and what you may do",
     .examples = "taskctl whoami\n"
                 "taskctl -o json whoami",
     .options = no_options,
     .no_ids = true,
     .run = run_whoami},
    {.name = "invite",
     .group = "keys and connections",
     .operands = "NAME --role ROLE... [options]\n--name NAME --role ROLE... [options]\nlist\n"
                 "revoke ID",
     .summary = "let another machine join, by one line to be pasted there",
     .text = "The line on stdout is a secret until it is used. With --uses it is for several:\n"
             "then %h in NAME stands for the name of each machine. One that is called list or\n"
             "revoke is said with --name.",
     .examples = "taskctl invite render-7 --role worker --queue 'render*'\n"
                 "taskctl invite 'render-%h' --role worker --uses 20 --for 1d\n"
                 "taskctl invite revoke 3f2a",
     .options = invite_options,
     .operand = OPERAND_NONE,
     .operands_min = 0,
     .operands_max = 2,
     .no_ids = true,
     .run = run_invite},
    {.name = "join",
     .group = "keys and connections",
     .operands = "[LINE|-] [--profile NAME] [--if-needed]",
     .summary = "take an invitation: make a key here and save the connection",
     .text = "LINE is what 'taskctl invite' printed, - reads it from stdin. Without it, it is\n"
             "taken from TASKMQ_JOIN or /run/secrets/taskmq_join. The profile is 'default'\n"
             "unless --profile says another one.",
     .examples = "taskctl join tmqjoin_af6436jfl4uodtb4...\n"
                 "taskctl join --if-needed && exec taskctl work render -- ./render",
     .options = join_options,
     .operand = OPERAND_NONE,
     .operands_max = 1,
     .no_ids = true,
     .run = run_join},
    {.name = "key",
     .group = "keys and connections",
     .operands = "new [NAME]\nshow [NAME] [--secret]\nimport FILE [NAME]\nrotate\n"
                 "trust NAME KEY --role ROLE...\nrevoke NAME|KEY\nlist",
     .summary = "your own key, by which a broker on another machine knows you",
     .text = "A key is kept as ~/.config/taskmq/keys/NAME.key. Without NAME it is default, the\n"
             "one that is used where no other is said. import takes tmqsk_..., Z85, or a\n"
             "certificate of CZMQ.",
     .examples = "taskctl key new\n"
                 "taskctl key show --z85\n"
                 "taskctl key trust render-7 tmqpk_... --role worker --queue 'render*'\n"
                 "taskctl key revoke render-7",
     .options = key_options,
     .operand = OPERAND_VERB,
     .verbs = key_verbs,
     .operands_max = -1,
     .no_ids = true,
     .run = run_verb},
    {.name = "server-key",
     .group = "keys and connections",
     .operands = "show\nrotate --in DURATION|--now",
     .summary = "the broker's public key, by which clients know it",
     .text = "rotate gives the broker another key and prints it. Clients that connect before\n"
             "its time learn it from the broker and record it in their profile; who was away\n"
             "needs it by hand, or a new line to join. Asked again, only the time changes.",
     .examples = "taskctl server-key show\n"
                 "taskctl server-key rotate --in 7d",
     .options = server_key_options,
     .operand = OPERAND_VERB,
     .verbs = server_key_verbs,
     .operands_max = -1,
     .no_ids = true,
     .run = run_verb},
    {.name = "reload",
     .group = "keys and connections",
     .operands = "",
     .summary = "the broker reads its configuration and its access file now",
     .examples = "taskctl reload",
     .options = no_options,
     .no_ids = true,
     .run = run_reload},
    {.name = "profile",
     .group = "keys and connections",
     .operands = "add NAME -e URI [--server-key KEY] [--key-file FILE]\n"
                 "list\nuse NAME\nshow [NAME]\nremove NAME\ntest [NAME]",
     .summary = "saved connections",
     .text = "A profile is the file ~/.config/taskmq/profiles/NAME.conf. --profile takes it\n"
             "for one command. What 'profile use' chose counts where no .taskmq directory is\n"
             "here or above.",
     .examples = "taskctl profile add farm -e tcp://broker.example:5560 --server-key tmqpk_...\n"
                 "taskctl profile use farm\n"
                 "taskctl --profile farm list",
     .options = no_options,
     .operand = OPERAND_VERB,
     .verbs = profile_verbs,
     .operands_max = -1,
     .no_ids = true,
     .run = run_verb},
    {.name = "help",
     .group = "get help",
     .operands = "[COMMAND]",
     .summary = "how to use a command",
     .examples = "taskctl help submit",
     .options = no_options,
     .operand = OPERAND_COMMAND,
     .operands_max = 1,
     .no_ids = true,
     .pages = true,
     .run = run_help},
    {.name = "completion",
     .group = "get help",
     .operands = "bash|zsh|fish",
     .summary = "a script by which that shell completes taskctl",
     .text = "It completes commands, options and their values. Ids, queues, sessions and\n"
             "labels are those of the broker.",
     .examples = "source <(taskctl completion bash)\n"
                 "taskctl completion fish >~/.config/fish/completions/taskctl.fish",
     .options = no_options,
     .operand = OPERAND_SHELL,
     .operands_min = 1,
     .operands_max = 1,
     .no_ids = true,
     .run = run_completion},
    {.name = "complete",
     .operands = "-- WORD...",
     .summary = "what the script of a shell asks for",
     .examples = "taskctl complete -- list --st",
     .options = no_options,
     .no_ids = true,
     .takes_rest = true,
     .run = run_complete},
    {.name = NULL}};

const grammar_t grammar = {commands, global_options};
