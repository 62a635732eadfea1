/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* JSON: a strict checker, a streaming writer, and the one rendering of a task and of an event.
 *
 * The exporter, the feed and the command line all show a task or an event by the functions here,
 * so it looks the same everywhere. Keys and their order are a stable interface.
 *
 * Failure: the writer appends to a bytes_t, which remembers exhausted memory; look at its `failed`
 * at the end. Text that is not UTF-8 is repaired with U+FFFD; control characters and hidden ones
 * are escaped: what comes out is always valid JSON on one line, safe to show on a terminal.
 *
 * Names begin with json_text_ and json_write_, because jansson owns most others. */
#ifndef TASKMQ_PROTO_JSON_H
#define TASKMQ_PROTO_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena.h"
#include "bytes.h"
#include "taskmq_types.h"

/* Checking. */

enum { JSON_DEPTH_MAX = 128 }; /* arrays and objects inside each other */

/* One JSON value (RFC 8259) in UTF-8 and nothing else but white space. Strict: lone surrogates and
 * what is nested deeper than JSON_DEPTH_MAX are refused. Does not allocate. */
bool json_text_is_valid (const void *text, size_t length);
/* … and that value is an object. */
bool json_text_is_object (const void *text, size_t length);

/* True for characters that show nothing themselves, but turn, hide or join what stands beside them:
 * U+202E and its like, and those of no width that no script needs. */
bool json_text_is_hidden (uint32_t character);

/* Writing. */

typedef struct json_writer {
    bytes_t *out;
    bool comma; /* a value was written: the next one on this level needs a comma */
} json_writer_t;
/* To begin: json_writer_t writer = {&out, false}; */

void json_write_object_begin (json_writer_t *self);
void json_write_object_end (json_writer_t *self);
void json_write_array_begin (json_writer_t *self);
void json_write_array_end (json_writer_t *self);
/* key: printable ASCII without quote and backslash, as all of ours and all names (S14) are. Inline,
 * so that the length of a constant is one too: a task has forty. */
static inline void json_write_key (json_writer_t *self, const char *key)
{
    size_t length = strlen (key);
    uint8_t *room = bytes_reserve (self->out, length + 4);
    if (room == NULL)
        return;
    uint8_t *at = room;
    if (self->comma)
        *at++ = ',';
    *at++ = '"';
    memcpy (at, key, length);
    at += length;
    *at++ = '"';
    *at++ = ':';
    self->out->length += (size_t) (at - room);
    self->comma = false;
}
/* A key and a value of JSON that are known in advance, both at once. */
static inline void json_write_known (json_writer_t *self, const char *key, const char *value,
                                     size_t value_length)
{
    size_t length = strlen (key);
    uint8_t *room = bytes_reserve (self->out, length + value_length + 4);
    if (room == NULL)
        return;
    uint8_t *at = room;
    if (self->comma)
        *at++ = ',';
    *at++ = '"';
    memcpy (at, key, length);
    at += length;
    *at++ = '"';
    *at++ = ':';
    memcpy (at, value, value_length);
    self->out->length += (size_t) (at + value_length - room);
    self->comma = true;
}
static inline void json_write_absent (json_writer_t *self, const char *key)
{
    json_write_known (self, key, "null", 4);
}
/* A key that came from elsewhere, with any text. */
void json_write_foreign_key (json_writer_t *self, const char *key);
void json_write_null (json_writer_t *self);
void json_write_bool (json_writer_t *self, bool value);
void json_write_uint (json_writer_t *self, uint64_t value);
void json_write_int (json_writer_t *self, int64_t value);
/* The shortest text that is read as this number; what is not finite gives null. */
void json_write_double (json_writer_t *self, double value);
void json_write_string (json_writer_t *self, const void *text, size_t length);
/* The same for text like a key's. */
void json_write_plain (json_writer_t *self, const char *text, size_t length);
/* NULL and the empty text give null: absent values are null, not missing. */
void json_write_text (json_writer_t *self, const char *text);
/* RFC 3339 in UTC with milliseconds; 0 (and what lies after the year 9999) gives null. */
void json_write_time (json_writer_t *self, int64_t ms);
/* Copies a valid JSON text without its white space, so that it stays on one line. */
void json_write_raw (json_writer_t *self, const void *text, size_t length);
/* A string of these bytes in base64. */
void json_write_base64 (json_writer_t *self, const void *bytes, size_t length);
/* A body by its content type: as JSON if it is application/json and valid, as a string if it is
 * text/… or has no type, and is UTF-8 without NUL, else as {"base64":"…"}. */
void json_write_body (json_writer_t *self, const char *content_type, const void *bytes,
                      size_t length);
/* Ends a document or a line. */
void json_write_newline (json_writer_t *self);

/* Tasks and events. */

/* Views: what is to be shown, borrowed from whatever structs the caller has. Strings may be NULL or
 * empty when absent; times are ms since the epoch, 0 when absent. */

typedef struct label_view {
    const char *key;
    const char *value;
} label_view_t;

typedef struct progress_view {
    bool given;
    double done;
    double total; /* 0: unknown */
    const char *unit;
    const char *message;
} progress_view_t;

typedef struct artifact_view {
    const char *name;
    const char *type;
    uint64_t bytes;
    const uint8_t *hash; /* TMQ_BLOB_HASH_BYTES; NULL: not to be seen */
    uint32_t attempt;
    int64_t attached_at;
} artifact_view_t;

typedef struct task_view {
    tmq_id_t id;
    const char *ns;
    const char *queue;
    const char *session;
    const char *owner;
    unsigned status;
    unsigned phase; /* 0: none */
    const char *status_message;
    uint32_t priority;
    const char *method;
    const char *content_type;
    int64_t created_at;
    int64_t updated_at;
    int64_t started_at;
    int64_t finished_at;
    int64_t expires_at; /* 0: never */
    int64_t ttl_ms;     /* 0: never */
    int64_t not_before;
    int64_t start_by;
    int64_t max_runtime_ms;
    uint32_t poll_interval_ms;
    uint32_t attempt;
    uint32_t failures;
    uint32_t max_attempts;
    const char *worker;
    progress_view_t progress;
    const label_view_t *labels;
    size_t labels_count;
    const char *meta; /* JSON text */
    const char *trace;
    const char *cancel_message;
    const tmq_id_t *depends_on; /* tasks that it waits or waited for */
    size_t depends_on_count;
    tmq_id_t parent; /* all zero: it is no part of another task */
    bool has_parts;
    uint32_t turns; /* that its workers told */
    const artifact_view_t *artifacts;
    size_t artifacts_count;
    const char *fair_key;
    const label_view_t *needs; /* labels that its worker must have */
    size_t needs_count;
    uint64_t payload_bytes;
    const void *payload;         /* payload_bytes bytes; NULL: not loaded */
    const uint8_t *payload_blob; /* its hash, if the payload is a blob; else NULL */
    unsigned outcome;            /* 0: none */
    uint64_t result_bytes;
    const void *result;         /* result_bytes bytes; NULL: not loaded */
    const uint8_t *result_blob; /* as payload_blob */
    const char *result_type;
    int32_t error_code;
    const char *error_message;
    const char *error_data;    /* JSON text */
    uint64_t error_data_bytes; /* of it; more than it has: it is not loaded */
    bool dead;
    uint64_t version;
    uint64_t seq; /* its newest event */
} task_view_t;

typedef struct event_view {
    unsigned kind; /* 0: a notice of progress */
    const char *ns;
    uint64_t seq; /* 0: a notice */
    int64_t at;
    tmq_id_t task_id;
    unsigned subject; /* 0: a task; else it has a name and no task_id */
    const char *name;
    uint64_t number; /* of an item, of a turn */
    const char *queue;
    const char *session;
    const char *owner; /* of the task; NULL in a notice */
    unsigned status;   /* 0: the task was removed */
    unsigned previous; /* 0: it is new */
    uint32_t attempt;
    const char *worker;
    const char *actor;
    const char *message;
    progress_view_t progress;
    const label_view_t *labels;
    size_t labels_count;
    const char *trace;  /* of the task; NULL or empty: no key */
    const char *cursor; /* to go on behind it; NULL: no key */
} event_view_t;

/* A hole in a stream of events. */
typedef struct gap_view {
    uint64_t from;
    uint64_t to;
    bool other_history; /* the cursor was of another one; nothing is known of that */
    const char *cursor; /* as of an event */
} gap_view_t;

/* An open question of a task. */
typedef struct question_view {
    tmq_id_t task_id;
    const char *key;
    const char *queue;
    const char *session;
    const char *worker;
    uint64_t number;
    uint32_t attempt;
    int64_t asked_at;
    int64_t deadline;
    const char *request; /* JSON text */
    bool has_default;
    bool default_is_text;
    const char *default_answer; /* text, or JSON text */
} question_view_t;

/* What a task is shown with beside its own keys. */
typedef struct task_extras {
    bool payload;          /* `payload` */
    bool no_result;        /* the body was not asked for: no key `result` */
    bool exported;         /* `seq`, `pos`, `payload`, `payload_hash`, `result_hash` */
    uint64_t pos;          /* broker-wide event number */
    size_t body_bytes_max; /* larger bodies are null, when exported with their hash; 0: no limit */
    const question_view_t *questions; /* `questions`, if there are any */
    size_t questions_count;
} task_extras_t;
enum { JSON_EXPORT_BODY_BYTES_MAX = 64 * 1024 }; /* of a body in tasks.jsonl */

/* extras may be NULL. Hashes are BLAKE2b-256 in hexadecimal. */
void json_write_task (json_writer_t *self, const task_view_t *task, const task_extras_t *extras);
void json_write_question (json_writer_t *self, const question_view_t *question);
void json_write_artifact (json_writer_t *self, const artifact_view_t *artifact);
/* The same as members of an object that is open. */
void json_write_artifact_members (json_writer_t *self, const artifact_view_t *artifact);
/* Only the members, for those who open the object themselves and add members of their own. */
void json_write_task_members (json_writer_t *self, const task_view_t *task,
                              const task_extras_t *extras);
/* A line of a snapshot: kind "snapshot" before the task's keys, without a result. cursor as of an
 * event. */
void json_write_snapshot (json_writer_t *self, const task_view_t *task, const char *cursor);
void json_write_event (json_writer_t *self, const event_view_t *event);
/* Only the members, as of a task. */
void json_write_event_members (json_writer_t *self, const event_view_t *event);
/* {"kind":"gap","from":…,"to":…,"other_history":…} */
void json_write_gap (json_writer_t *self, const gap_view_t *gap);

struct Taskmq__Event;
struct Taskmq__Extra;
/* What a view of a task's extra borrows from, beside the extra. */
typedef struct extra_view_room {
    tmq_id_t depends_on[TMQ_AFTER_MAX];
    label_view_t needs[TMQ_NEEDS_MAX];
    artifact_view_t artifacts[TMQ_ARTIFACTS_MAX];
} extra_view_room_t;
/* Fills in what of a task's extra is shown. */
void task_view_extra (task_view_t *out, extra_view_room_t *room, const struct Taskmq__Extra *extra);
/* Fills a view from a message on the wire, from which it borrows. The array of labels is laid into
 * arena: false when that is full, or when an id is not 16 bytes long. */
bool event_view_from_wire (event_view_t *out, const struct Taskmq__Event *event, const char *ns,
                           arena_t *arena);

#endif
