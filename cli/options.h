/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The options of each command, for the table of commands (commands.c), which alone includes
 * this. */
#ifndef TASKCTL_OPTIONS_H
#define TASKCTL_OPTIONS_H

#include "line/command.h"
#include "taskmq.h"

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
    {OPT_ON_BEHALF, "on-behalf", 0, KIND_NAME, 0, 0, "NAME",
     "act for this owner as a gateway does: with his tasks alone"},
    {OPT_OUTPUT, "output", 'o', KIND_FORMAT, 0, 0, "FORMAT",
     "table, wide, json, jsonl or id (TASKMQ_OUTPUT)"},
    {OPT_TIMEOUT, "timeout", 0, KIND_DURATION, 1, WAIT_MAX, "DURATION",
     "for one request; default 5s, with several endpoints 15s (TASKMQ_TIMEOUT)"},
    {OPT_COLOR, "color", 0, KIND_COLOR, 0, 0, "WHEN", "auto, always or never"},
    {OPT_NO_PAGER, "no-pager", 0, KIND_FLAG, 0, 0, NULL,
     "write long output straight to the terminal, not through $PAGER or less"},
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

/* What several commands say of a task; each has its own help. */
#define TASK_PRIORITY OPT_PRIORITY, "priority", 0, KIND_NUMBER, 0, 255, "N"
#define TASK_TTL OPT_TTL, "ttl", 0, KIND_DURATION, 0, DURATION_MAX, "DURATION"
#define TASK_METHOD OPT_METHOD, "method", 0, KIND_TEXT, 0, TMQ_METHOD_BYTES_MAX, "TEXT"
#define TASK_CONTENT_TYPE                                                                          \
    OPT_CONTENT_TYPE, "content-type", 0, KIND_TEXT, 0, TMQ_CONTENT_TYPE_BYTES_MAX, "TYPE"
#define TASK_META OPT_META, "meta", 0, KIND_TEXT, 0, TMQ_META_BYTES_MAX, "JSON"
#define TASK_MAX_ATTEMPTS                                                                          \
    OPT_MAX_ATTEMPTS, "max-attempts", 0, KIND_NUMBER, 1, TMQ_MAX_ATTEMPTS_MAX, "N"
#define TASK_BACKOFF OPT_BACKOFF, "backoff", 0, KIND_DURATION, 1, TMQ_BACKOFF_MS_MAX, "DURATION"
#define TASK_LEASE                                                                                 \
    OPT_LEASE, "lease", 0, KIND_DURATION, TMQ_LEASE_MS_MIN, TMQ_LEASE_MS_MAX, "DURATION"
#define TASK_MAX_RUNTIME                                                                           \
    OPT_MAX_RUNTIME, "max-runtime", 0, KIND_DURATION, 1, DURATION_MAX, "DURATION"

static const option_spec_t submit_options[] = {
    {OPT_DATA, "data", 0, KIND_TEXT, 0, 0, "STR", "the payload"},
    {OPT_FILE, "file", 0, KIND_TEXT, 0, 0, "FILE", "the payload is the content of FILE"},
    {OPT_BATCH, "batch", 0, KIND_TEXT, 0, 0, "FILE",
     "submit one task per line of FILE (- is stdin), each a JSON object"},
    {OPT_LINES, "lines", 0, KIND_TEXT, 0, 0, "FILE",
     "submit one task per line of FILE (- is stdin), with the line as payload"},
    {OPT_SESSION, "session", 0, KIND_NAME, 0, 0, "NAME", "the thread of work it belongs to"},
    {TASK_PRIORITY, "0 to 255, higher is sooner; default 100"},
    {TASK_TTL, "time to live; default 24h, 0 is for ever"},
    {OPT_ID, "id", 0, KIND_TEXT, 0, 0, "UUID", "its id, a UUIDv7, made by you"},
    {OPT_DEDUP_KEY, "dedup-key", 0, KIND_TEXT, 0, TMQ_DEDUP_KEY_BYTES_MAX, "KEY",
     "the same key with the same content gives the same task"},
    {TASK_METHOD, "what is to be done, for the worker"},
    {TASK_CONTENT_TYPE, "of the payload"},
    {OPT_LABEL, "label", 0, KIND_LABEL, 0, 0, "NAME=VALUE", "up to 16 of them"},
    {OPT_DELAY, "delay", 0, KIND_DURATION, 1, DURATION_MAX, "DURATION",
     "not before so long from now"},
    {OPT_AT, "at", 0, KIND_FUTURE, 0, 0, "TIME", "not before: 18:00, '2026-11-22 05:00'"},
    {OPT_START_BY, "start-by", 0, KIND_FUTURE, 0, 0, "TIME",
     "if nobody took it by then, it fails; also 90m for in 90 minutes"},
    {TASK_MAX_RUNTIME, "of an attempt; it is stopped and counts as failed"},
    {OPT_FAIR_KEY, "fair-key", 0, KIND_TEXT, 0, TMQ_FAIR_KEY_BYTES_MAX, "KEY",
     "keys of a queue have their turns, however much one of them submits"},
    {OPT_REQUIRE, "require", 0, KIND_LABEL, 0, 0, "NAME=VALUE",
     "only for workers with this label; up to 8 of them"},
    {OPT_AFTER, "after", 0, KIND_TEXT, 0, 64, "ID[:POLICY]",
     "wait for that task; if it fails, fail (:fail), or run (:ignore, :continue)"},
    {OPT_PARENT, "parent", 0, KIND_TEXT, 0, 36, "ID", "the task that it is a part of"},
    {TASK_META, "an object of your own"},
    {TASK_MAX_ATTEMPTS, "how often it may fail; default 3"},
    {TASK_BACKOFF, "before the second attempt, doubled each time; default 1s"},
    {TASK_LEASE, "how long a silent worker keeps it; default 30s"},
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
    {OPT_PAYLOAD, "payload", 0, KIND_FLAG, 0, 0, NULL, "with its payload"},
    {OPT_EVENTS, "events", 0, KIND_FLAG, 0, 0, NULL, "with its history"},
    {OPT_ATTEMPTS, "attempts", 0, KIND_FLAG, 0, 0, NULL,
     "with its attempts, and what is kept of them"},
    {OPT_TURNS, "turns", 0, KIND_FLAG, 0, 0, NULL, "with the turns that its workers told"},
    {OPT_TURN_FILES, "files", 0, KIND_FLAG, 0, 0, NULL, "with the files that its turns touched"},
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
    {OPT_UNTIL, "until", 0, KIND_FUTURE, 0, 0, "TIME", "trust: when the name ends, as 2027-06-30"},
    {OPT_INHERIT, "inherit", 0, KIND_FLAG, 0, 0, NULL,
     "trust: the name may own tasks of an earlier time"},
    END_OF_OPTIONS};

static const option_spec_t invite_options[] = {
    GRANT_OPTIONS,
    {OPT_FOR, "for", 0, KIND_DURATION, 1000, TMQ_INVITE_MS_MAX, "DURATION",
     "how long it is good; default 1h, at most 30d"},
    {OPT_USES, "uses", 0, KIND_NUMBER, 1, 1000, "N", "how often it is good; default 1"},
    {OPT_ADDRESS, "address", 0, KIND_TEXT, 0, 259, "HOST:PORT",
     "how the other machine reaches the broker, if not by its own address; one for each of a pair"},
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

/* In place of the global one: what these print has no format. */
#define OUT_FILE_OPTION                                                                            \
    {                                                                                              \
        OPT_OUT_FILE, "output", 'o', KIND_TEXT, 0, 0, "FILE",                                      \
            "into this file, whole or not at all; an interrupted fetch is gone on with"            \
    }

static const option_spec_t artifact_options[] = {
    OUT_FILE_OPTION,
    {OPT_DIR, "dir", 0, KIND_TEXT, 0, 0, "DIR", "into that directory under its name; all of them"},
    END_OF_OPTIONS};

static const option_spec_t payload_options[] = {OUT_FILE_OPTION, END_OF_OPTIONS};

static const option_spec_t result_options[] = {
    OUT_FILE_OPTION,
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
        {OPT_UNTIL, "until", 0, KIND_TIME, 0, 0, "TIME", "created before"},                        \
        {OPT_OWNER, "owner",                                                                       \
         0,         KIND_TEXT,                                                                     \
         0,         TMQ_OWNER_BYTES_MAX,                                                           \
         "OWNER",   "of this owner; several are OR"},                                              \
    {                                                                                              \
        OPT_PARENT, "parent", 0, KIND_TEXT, 0, 36, "ID", "parts of this task; several are OR"      \
    }
#define TOUCHED_OPTION(NAME)                                                                       \
    {                                                                                              \
        OPT_TOUCHED, NAME, 0, KIND_TEXT, 0, TMQ_TURN_PATH_BYTES_MAX, "PATH",                       \
            "a turn of it read, wrote or deleted this file; several are AND"                       \
    }
#define AGENT_OPTION                                                                               \
    {                                                                                              \
        OPT_AGENT, "agent", 0, KIND_TEXT, 0, TMQ_TURN_AGENT_BYTES_MAX, "NAME",                     \
            "this agent had a turn of it; several are AND"                                         \
    }
#define TREE_OPTION                                                                                \
    {                                                                                              \
        OPT_TREE, "tree", 0, KIND_FLAG, 0, 0, NULL, "also the parts of the tasks, and their parts" \
    }

static const option_spec_t wait_options[] = {
    FILTER_OPTIONS,
    CREATED_OPTIONS,
    AGENT_OPTION,
    TOUCHED_OPTION ("file"),
    TREE_OPTION,
    {OPT_FOR, "for", 0, KIND_DURATION, 0, WAIT_MAX, "DURATION", "how long; exit 7 after"},
    FIELDS_OPTION,
    END_OF_OPTIONS};

static const option_spec_t cancel_options[] = {
    FILTER_OPTIONS,
    CREATED_OPTIONS,
    AGENT_OPTION,
    TOUCHED_OPTION ("file"),
    TREE_OPTION,
    {OPT_YES, "yes", 'y', KIND_FLAG, 0, 0, NULL, "do not ask"},
    {OPT_DRY_RUN, "dry-run", 0, KIND_FLAG, 0, 0, NULL, "only count what the conditions match"},
    FIELDS_OPTION,
    END_OF_OPTIONS};

static const option_spec_t adopt_options[] = {FIELDS_OPTION, END_OF_OPTIONS};

static const option_spec_t again_options[] = {
    FILTER_OPTIONS,
    CREATED_OPTIONS,
    AGENT_OPTION,
    TOUCHED_OPTION ("file"),
    {OPT_YES, "yes", 'y', KIND_FLAG, 0, 0, NULL, "do not ask"},
    {OPT_DRY_RUN, "dry-run", 0, KIND_FLAG, 0, 0, NULL, "only count what the conditions match"},
    END_OF_OPTIONS};

static const option_spec_t resume_options[] = {
    FILTER_OPTIONS,
    CREATED_OPTIONS,
    AGENT_OPTION,
    TOUCHED_OPTION ("file"),
    {OPT_FROM_TURN, "from-turn", 0, KIND_NUMBER, 0, UINT32_MAX - 1, "N",
     "back to this turn (0: before the first): those behind it count no more; of one ID"},
    {OPT_YES, "yes", 'y', KIND_FLAG, 0, 0, NULL, "do not ask"},
    {OPT_DRY_RUN, "dry-run", 0, KIND_FLAG, 0, 0, NULL, "only count what the conditions match"},
    END_OF_OPTIONS};

static const option_spec_t set_options[] = {
    {TASK_TTL, "time to live from now on; 0: no end"},
    {TASK_PRIORITY, "0 to 255, higher first"},
    {TASK_MAX_ATTEMPTS, "failures until it has failed for good"},
    {OPT_AT, "at", 0, KIND_FUTURE, 0, 0, "TIME", "not before: 18:00, '2026-11-22 05:00'"},
    {OPT_DELAY, "delay", 0, KIND_DURATION, 1, DURATION_MAX, "DURATION", "not before, from now on"},
    {OPT_NOW, "now", 0, KIND_FLAG, 0, 0, NULL, "it need not wait for its time any more"},
    {OPT_SET_LABEL, "label", 0, KIND_LABEL, 0, 0, "NAME=VALUE", "add a label, or change it"},
    {OPT_DROP_LABEL, "drop-label", 0, KIND_NAME, 0, 0, "NAME", "take a label away"},
    {OPT_QUEUE, "queue", 0, KIND_NAME, 0, 0, "NAME", "of this queue; several are OR"},
    {OPT_STATUS, "status", 0, KIND_STATUSES, 0, 0, "STATUS",
     "in this status; several, also with commas, are OR"},
    {OPT_SESSION, "session", 0, KIND_NAME, 0, 0, "NAME", "of this session; several are OR"},
    {OPT_LABEL, "with-label", 0, KIND_LABEL, 0, 0, "NAME=VALUE",
     "that has this label; several are AND"},
    CREATED_OPTIONS,
    AGENT_OPTION,
    TOUCHED_OPTION ("file"),
    {OPT_YES, "yes", 'y', KIND_FLAG, 0, 0, NULL, "do not ask"},
    {OPT_DRY_RUN, "dry-run", 0, KIND_FLAG, 0, 0, NULL, "only count what the conditions match"},
    END_OF_OPTIONS};

#define SEARCH_OPTION                                                                              \
    {                                                                                              \
        OPT_SEARCH, "search", 0, KIND_TEXT, 0, 0, "TEXT",                                          \
            "with these words: \"a phrase\", begin*, NOT word, one OR other"                       \
    }

static const option_spec_t list_options[] = {
    FILTER_OPTIONS,
    CREATED_OPTIONS,
    AGENT_OPTION,
    TOUCHED_OPTION ("file"),
    SEARCH_OPTION,
    {OPT_RANK, "rank", 0, KIND_FLAG, 0, 0, NULL, "the best finds first, not the newest tasks"},
    {OPT_LIMIT, "limit", 0, KIND_NUMBER, 1, UINT32_MAX, "N", "at most N tasks; default 50"},
    {OPT_CURSOR, "cursor", 0, KIND_TEXT, 0, TMQ_CURSOR_BYTES_MAX, "CURSOR",
     "go on behind an earlier page with the same filters"},
    {OPT_ALL, "all", 0, KIND_FLAG, 0, 0, NULL, "all of them, page after page"},
    {OPT_COLUMNS, "columns", 0, KIND_TEXT, 0, 0, "A,B",
     "what the table shows, such as id,status,label:album"},
    FIELDS_OPTION,
    END_OF_OPTIONS};

static const option_spec_t export_options[] = {
    {OPT_FORMAT, "format", 0, KIND_TEXT, 0, 0, "FORMAT",
     "jsonl (default), json, csv, or task, which people read"},
    {OPT_FILE, "file", 0, KIND_TEXT, 0, 0, "FILE", "into that file, whole or not at all"},
    {OPT_DIR, "dir", 0, KIND_TEXT, 0, 0, "DIR", "a file for each task in that directory"},
    {OPT_BODIES, "bodies", 0, KIND_TEXT, 0, 0, "DIR",
     "also what is larger than a line takes, in files of that directory"},
    {OPT_REDACT, "redact", 0, KIND_TEXT, 0, 0, "WHAT",
     "replace common secrets, or NAME=PATTERN; none: nothing, not even by the broker's list"},
    {OPT_LIMIT, "limit", 0, KIND_NUMBER, 1, UINT32_MAX, "N", "at most N tasks, the newest"},
    FILTER_OPTIONS,
    CREATED_OPTIONS,
    AGENT_OPTION,
    TOUCHED_OPTION ("with-file"),
    SEARCH_OPTION,
    FIELDS_OPTION,
    END_OF_OPTIONS};

static const option_spec_t count_options[] = {FILTER_OPTIONS, CREATED_OPTIONS,
                                              AGENT_OPTION,   TOUCHED_OPTION ("file"),
                                              SEARCH_OPTION,  END_OF_OPTIONS};

static const option_spec_t logs_options[] = {
    {OPT_FOLLOW, "follow", 'f', KIND_FLAG, 0, 0, NULL, "go on until the task has ended"},
    {OPT_STREAM, "stream", 0, KIND_TEXT, 0, 0, "out|err", "only stdout, or only stderr"},
    {OPT_ATTEMPT, "attempt", 0, KIND_NUMBER, 1, TMQ_MAX_ATTEMPTS_MAX, "N",
     "of this attempt; default the newest"},
    {OPT_TAIL, "tail", 0, KIND_NUMBER, 0, 1000000, "N", "only the last N lines of each"},
    END_OF_OPTIONS};

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

/* PUT, LIST: what the verbs are called. */
#define ITEM_OPTIONS(PUT, LIST)                                                                    \
    {OPT_DATA, "data", 0, KIND_TEXT, 0, 0, "STR", PUT ": what is put"},                            \
        {OPT_FILE, "file", 0, KIND_TEXT, 0, 0, "FILE", PUT ": the same, the content of FILE"},     \
        {OPT_SOURCE, "source",                                                                     \
         0,          KIND_TEXT,                                                                    \
         0,          TMQ_ENTRY_NAME_BYTES_MAX,                                                     \
         "TEXT",     PUT ": where it comes from; " LIST ": only these"},                           \
        {OPT_TYPE, "type",                                                                         \
         0,        KIND_TEXT,                                                                      \
         0,        TMQ_ENTRY_NAME_BYTES_MAX,                                                       \
         "TEXT",   PUT ": what it is; " LIST ": only these"},                                      \
        {OPT_INTENSITY, "intensity", 0, KIND_TEXT, 0, 0, "N", PUT ": from 0 (default) to 1"},      \
        {OPT_AFTER, "after", 0, KIND_NUMBER, 0, UINT64_MAX, "NUMBER", LIST ": behind this item"},  \
    {                                                                                              \
        OPT_SINCE, "since", 0, KIND_TIME, 0, 0, "TIME", LIST ": put at or after it"                \
    }

static const option_spec_t mail_options[] = {
    {OPT_SESSION, "session", 0, KIND_NAME, 0, 0, "NAME", "of this session; else of the namespace"},
    ITEM_OPTIONS ("send", "read"),
    {OPT_LIMIT, "limit", 0, KIND_NUMBER, 1, UINT32_MAX, "N", "read: at most N; default 50"},
    FIELDS_OPTION,
    END_OF_OPTIONS};

static const option_spec_t session_options[] = {
    {OPT_GOAL, "goal", 0, KIND_TEXT, 0, TMQ_SESSION_GOAL_BYTES_MAX, "TEXT", "set: what it is for"},
    {OPT_SALIENCE, "salience", 0, KIND_NUMBER, 1, TMQ_SALIENCE_MAX, "N",
     "set: its share where a queue has weight-of session; default 100"},
    {OPT_CONTEXT, "context", 0, KIND_TEXT, 0, TMQ_SESSION_CONTEXT_BYTES_MAX, "JSON",
     "set: anything that belongs to it"},
    {OPT_LABEL, "label", 0, KIND_LABEL, 0, 0, "NAME=VALUE", "set: add or replace it"},
    {OPT_DROP_LABEL, "drop-label", 0, KIND_NAME, 0, 0, "NAME", "set: take it away"},
    {OPT_STATUS, "status", 0, KIND_TEXT, 0, 0, "STATUS",
     "list: active, paused, frozen or complete ones"},
    {OPT_WHY, "why", 0, KIND_TEXT, 0, TMQ_SESSION_WHY_BYTES_MAX, "TEXT",
     "pause, freeze, complete: shown by why and show"},
    ITEM_OPTIONS ("input add", "input list"),
    {OPT_LIMIT, "limit", 0, KIND_NUMBER, 1, UINT32_MAX, "N",
     "list: at most N; input list: the same, default 50"},
    FIELDS_OPTION,
    END_OF_OPTIONS};

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
                                             3600000, "DURATION", "how often it looks; default 2s"},
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
    {OPT_OVERLAP, "overlap", 0, KIND_TEXT, 0, 16, "allow|skip|cancel",
     "what if the task before has not ended; default allow"},
    {OPT_MISSED, "missed", 0, KIND_TEXT, 0, 16, "skip|one|all",
     "instants that the broker was away for, at most 100; default skip"},
    {OPT_UNTIL, "until", 0, KIND_FUTURE, 0, 0, "TIME", "no instant after it"},
    {OPT_PAUSED, "paused", 0, KIND_FLAG, 0, 0, NULL, "begin when it is resumed"},
    {OPT_REPLACE, "replace", 0, KIND_FLAG, 0, 0, NULL, "your schedule of this name"},
    {OPT_COUNT, "count", 0, KIND_NUMBER, 1, TMQ_SCHEDULE_COMING_MAX, "N",
     "next: so many instants; default 10"},
    {OPT_DATA, "data", 0, KIND_TEXT, 0, 0, "STR", "the payload, at most 64 KiB"},
    {OPT_FILE, "file", 0, KIND_TEXT, 0, 0, "FILE", "the payload is the content of FILE"},
    {OPT_SESSION, "session", 0, KIND_NAME, 0, 0, "NAME", "as of submit"},
    {TASK_PRIORITY, "the same"},
    {TASK_TTL, "the same"},
    {TASK_METHOD, "the same"},
    {TASK_CONTENT_TYPE, "the same"},
    {OPT_LABEL, "label", 0, KIND_LABEL, 0, 0, "NAME=VALUE", "the same"},
    {TASK_META, "the same"},
    {TASK_MAX_ATTEMPTS, "the same"},
    {TASK_BACKOFF, "the same"},
    {TASK_LEASE, "the same"},
    {TASK_MAX_RUNTIME, "the same"},
    END_OF_OPTIONS};

static const option_spec_t queue_options[] = {
    {OPT_WHY, "why", 0, KIND_TEXT, 0, TMQ_QUEUE_WHY_BYTES_MAX, "TEXT",
     "pause: why, for others to read"},
    {OPT_MAX_RUNNING, "max-running", 0, KIND_NUMBER, 1, TMQ_QUEUE_RUNNING_MAX, "N",
     "set: so many tasks at workers at once"},
    {OPT_MAX_PER_KEY, "max-per-key", 0, KIND_NUMBER, 1, TMQ_QUEUE_RUNNING_MAX, "N",
     "set: ... of one fair key"},
    {OPT_WEIGHT_OF, "weight-of", 0, KIND_NAME, 0, 0, "key|owner|session",
     "set: what has its turn; key is the task's --fair-key"},
    {OPT_RATE, "rate", 0, KIND_TEXT, 0, 64, "N/DURATION",
     "set: so many tasks may begin in so long, as 10/1m"},
    {OPT_BURST, "burst", 0, KIND_NUMBER, 1, TMQ_QUEUE_RUNNING_MAX, "N",
     "set: so many of a rate at once; default: what comes in 100ms"},
    {OPT_MAX_TASKS, "max-tasks", 0, KIND_NUMBER, 1, TMQ_QUEUE_TASKS_MAX, "N",
     "set: so many queued tasks; a submit beyond is refused (exit 10)"},
    {OPT_MAX_BYTES, "max-bytes", 0, KIND_TEXT, 0, 64, "SIZE",
     "set: so many bytes of their payloads, as 64M"},
    {TASK_TTL, "set: of tasks submitted without one; 0 is for ever"},
    {TASK_LEASE, "set: the same"},
    {TASK_BACKOFF, "set: the same"},
    {TASK_MAX_ATTEMPTS, "set: the same"},
    {TASK_MAX_RUNTIME, "set: the same"},
    {OPT_SEARCH, "search", 0, KIND_NAME, 0, 0, "on|off",
     "set: whether list --search finds the texts of its tasks"},
    {OPT_MAX_AGE, "max-age", 0, KIND_DURATION, 0, DURATION_MAX, "DURATION",
     "set: tasks that ended, with a ttl of 0, go so long after their end; 0: off, as below"},
    {OPT_MAX_COUNT, "max-count", 0, KIND_NUMBER, 0, TMQ_RETAIN_COUNT_MAX, "N",
     "set: ... so many of them stay"},
    {OPT_MAX_ENDED_BYTES, "max-ended-bytes", 0, KIND_TEXT, 0, 64, "SIZE",
     "set: ... so many bytes of their payloads, results and turns, as 1G"},
    {OPT_KEEP_FAILED, "keep-failed", 0, KIND_DURATION, 0, DURATION_MAX, "DURATION",
     "set: ... those that failed stay so long in any case"},
    {OPT_MIN_KEEP, "min-keep", 0, KIND_NUMBER, 0, TMQ_RETAIN_COUNT_MAX, "N",
     "set: ... so many of the newest stay in any case"},
    {OPT_UNSET, "unset", 0, KIND_TEXT, 0, 64, "NAME",
     "set: take one of these back, as --unset rate"},
    END_OF_OPTIONS};

static const option_spec_t search_options[] = {END_OF_OPTIONS};

static const option_spec_t audit_options[] = {
    {OPT_HEAD, "head", 0, KIND_TEXT, 0, 0, "HEX",
     "verify: a head that is known, from the broker's log"},
    {OPT_ACCEPT, "accept", 0, KIND_TEXT, 0, 64, "CHAIN:LINE",
     "verify: a line that tells of lines lost before it, as events:142, is no fault"},
    {OPT_FOLLOW, "follow", 'f', KIND_FLAG, 0, 0, NULL, "tail: go on with what is added"},
    {OPT_KIND, "kind", 0, KIND_TEXT, 0, 64, "KIND", "tail: only such lines, as key.revoked"},
    {OPT_ACTOR, "actor", 0, KIND_TEXT, 0, 128, "NAME", "tail: only what this one did"},
    {OPT_SINCE, "since", 0, KIND_TEXT, 0, 0, "WHEN",
     "tail: all lines since a time, a day, or a duration ago"},
    {OPT_LIMIT, "limit", 0, KIND_NUMBER, 1, TMQ_AUDIT_LINES_MAX, "N",
     "tail: the newest N lines; default 10"},
    END_OF_OPTIONS};

static const option_spec_t import_options[] = {
    {OPT_KEEP_GOING, "keep-going", 0, KIND_FLAG, 0, 0, NULL,
     "import the other lines where some are broken"},
    {OPT_BODIES, "bodies", 0, KIND_TEXT, 0, 0, "DIR", "the directory that export --bodies wrote"},
    {OPT_DRY_RUN, "dry-run", 0, KIND_FLAG, 0, 0, NULL, "check the file, import nothing"},
    {OPT_REDACTED, "redacted", 0, KIND_FLAG, 0, 0, NULL,
     "also tasks that have not ended and whose secrets were replaced"},
    END_OF_OPTIONS};

static const option_spec_t cleanup_options[] = {
    {OPT_DRY_RUN, "dry-run", 0, KIND_FLAG, 0, 0, NULL,
     "show what would go, and why; remove nothing"},
    {OPT_LIMIT, "limit", 0, KIND_NUMBER, 1, UINT32_MAX, "N", "--dry-run: at most N; default 50"},
    {OPT_CURSOR, "cursor", 0, KIND_TEXT, 0, TMQ_CURSOR_BYTES_MAX, "CURSOR",
     "--dry-run: go on where a page ended"},
    {OPT_ALL, "all", 0, KIND_FLAG, 0, 0, NULL, "--dry-run: all of them, page after page"},
    END_OF_OPTIONS};

static const option_spec_t backup_options[] = {
    {OPT_WITH_KEYS, "with-keys", 0, KIND_FLAG, 0, 0, NULL,
     "the broker's secret key too: whoever has the file can pass for the broker"},
    END_OF_OPTIONS};

#endif
