/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* One request of JSON-RPC, from its arrival to its answer. */
#ifndef TASKMQ_GATEWAY_MCP_CALL_H
#define TASKMQ_GATEWAY_MCP_CALL_H

#include "mcp/mcp.h"
#include "mcp/render.h"
#include "rest/answer.h"
#include "rest/input.h"

/* Errors of JSON-RPC and of MCP. */
enum {
    RPC_PARSE = -32700,
    RPC_REQUEST = -32600,
    RPC_METHOD = -32601,
    RPC_PARAMS = -32602,
    RPC_INTERNAL = -32603,
    RPC_NO_SESSION = -32001,
    RPC_HEADER = -32020,
    RPC_CAPABILITY = -32021,
    RPC_VERSION = -32022
};

enum {
    CALL_QUESTIONS_MAX = 64,
    CALL_ID_BYTES_MAX = 1024,    /* of an id, as it is written: each event of a stream tells it */
    CALL_TOKEN_BYTES_MAX = 1024, /* of a progress token: each notification tells it */
    CALL_ANSWERS_BYTES_MAX = 64 * 1024 /* of inputResponses, which may wait for their questions */
};

struct flow;
struct listener;

/* Labels of tasks that are calls; tasks of 2025 alone have the second. */
#define TOOL_LABEL "gw.tool"
#define SESSION_LABEL "gw.session"

typedef struct call {
    mcp_t *mcp;
    exchange_t *exchange;
    tools_t *tools; /* as they were when it came */
    json_t *message;
    slice_t text;   /* of the message */
    slice_t id;     /* as it was written; length 0: none */
    char *id_owned; /* that it stands in, if it is not in the text */
    const char *method;
    char method_owned[32]; /* the same, of a message that was let go */
    json_t *params;        /* an object, or NULL */
    era_t era;
    mcp_session_t session; /* of 2025 */
    unsigned capabilities;
    int level; /* of log messages that are wanted; 8: none */

    /* A tool's task. */
    tool_t *tool;
    const char *tool_name; /* as the logger of its messages */
    char digest[33];       /* of its arguments */
    const json_t *progress_token;
    json_t *token_owned; /* that it is, of a message that was let go */
    tmq_id_t task;
    bool is_followed;                    /* it is followed until it ends */
    bool as_task;                        /* a handle is given if it does not end soon */
    bool related;                        /* the answer names the task */
    bool endless;                        /* it is followed as long as it takes */
    bool leaves_task;                    /* it goes on when the client leaves */
    bool made_task;                      /* by its submit, and not one that was there */
    void (*abandon) (struct call *self); /* before an answer that tells nothing of the task */
    uint32_t wait_max_ms;                /* how long it is followed */
    bool streams;                        /* events are sent */
    bool waits_for_broker;               /* its next wait begins when that is there, … */
    uint32_t wait_ms;                    /* … of so long */
    uint64_t wait_ticket;
    uint64_t pause_ticket;
    struct flow *news;
    double progress; /* that was told last */
    bool progressed;
    char *answers; /* inputResponses: JSON text */
    json_t *sent;  /* keys of questions that were sent */
    bool asks;     /* its questions are being looked at */
    bool asked;    /* … and have become more meanwhile */
    void (*then) (struct call *self, const tmq_task_t *task);        /* what the record is for */
    void (*then_result) (struct call *self, const tmq_task_t *task); /* … with its bytes */
    tmq_completion_t *came; /* while `then` runs: what brought the record */
    tmq_task_t *record;     /* that was kept from it */
    void (*then_questions) (struct call *self, const tmq_inbox_t *inbox);
    /* What the broker told in place of a record or of questions; NULL: call_code. */
    void (*failed) (struct call *self, int code, const tmq_error_t *error);
    /* Of a stream of notifications; all NULL: it is none. */
    struct listener *listener;
    void (*listener_free) (struct listener **self);
    void (*go_on) (struct call *self); /* the client has taken what it was owed */
    const char *(*event_id) (const struct call *self, bytes_t *out);
    bytes_t owed;            /* what the client had no room for */
    bool ends;               /* after that */
    bool held;               /* somebody is in the middle of something with it … */
    bool dead;               /* … and meanwhile it has ended: nothing of it may be used */
    bytes_t session_text;    /* of a session that begins with the answer */
    uint32_t retry_after_ms; /* that the answer tells; 0: nothing */
    rpc_outcome_t outcome;
    tool_outcome_t tool_outcome; /* of tools/call */
    struct call *next;           /* of those that are under way */
    struct call *before;
} call_t;

/* NULL: answered. */
call_t *call_begin (exchange_t *exchange, mcp_t *mcp);

/* From now on answers are waited for, perhaps for long: the message and its body go, which take
 * up to eighty times what was sent. Id, method and progress token stay. Where memory is exhausted
 * nothing changes. */
void call_lighten (call_t *self);
/* Keeps the memory of a call that may end meanwhile; not twice at a time. False: it did, and it is
 * gone now. */
void call_hold (call_t *self);
bool call_let_go (call_t *self);

/* Answers. Each ends the call, or, of a stream, sends its last message. */

/* outcome: members behind "id", as "result":{…}; taken. */
void call_answer (call_t *self, int status, bytes_t *outcome);
/* data: JSON text, or NULL. */
void call_error (call_t *self, int status, int code, const char *message, const char *data);
/* What the library told. */
void call_code (call_t *self, int code, const tmq_error_t *error);
/* 503: there is no memory for what the request takes. */
void call_busy (call_t *self);
/* 202, or another status, without a body. */
void call_empty (call_t *self, int status);
/* "result":{ and what each result has. type: of 2026, or NULL for "complete". */
json_writer_t call_result (const call_t *self, bytes_t *out, const char *type);
/* Ends the object, and answers. */
void call_finish (call_t *self, json_writer_t *writer);
/* … with nothing more in it. */
void call_done (call_t *self);

/* Ends a stream that has no answer, because of what the library told; else answers with that. */
void call_cut (call_t *self, int code, const tmq_error_t *error);

/* A message before the answer: method and params, an object's text; begins the stream. A client
 * that does not read misses it. */
void call_notify (call_t *self, const char *method, const bytes_t *params);
/* … of a stream that has begun, and is owed to such a client. */
void call_tell (call_t *self, const char *method, const bytes_t *params);
void call_send (call_t *self, const bytes_t *message);
/* Begins the stream, if it has not begun. */
bool call_stream (call_t *self);

/* render_outcome, by what the tool of the task promises; counts what does not fit. */
void call_outcome (call_t *self, json_writer_t *writer, const tmq_task_t *task, bool related);

/* The principal's task of a tool, whatever its status; false: answered. */
bool call_owns (const call_t *self, const tmq_task_t *task);
/* params.taskId; false: answered. */
bool call_task_id (call_t *self);
/* A member of params, as text; NULL: there is none. */
const char *call_text (const call_t *self, const char *name);
/* The raw text of a member of params; *owned is to be freed. Length 0: there is none. */
slice_t call_raw (const call_t *self, const char *name, char **owned);
/* "_meta" of params, or NULL; and a member of it with the reserved prefix. */
const json_t *call_meta (const call_t *self, const char *name);

#endif
