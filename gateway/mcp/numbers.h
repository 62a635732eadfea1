/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What is counted of MCP. Labels are bounded: the methods that there are, and the tools of the
 * file; what a client makes up becomes no label. */
#ifndef TASKMQ_GATEWAY_MCP_NUMBERS_H
#define TASKMQ_GATEWAY_MCP_NUMBERS_H

#include "bytes.h"
#include "mcp/render.h"
#include "mcp/tools.h"

/* How a request ended: with a result, an error of JSON-RPC, or its client left before. */
typedef enum rpc_outcome { RPC_LEFT, RPC_ANSWERED, RPC_ERROR, RPC_OUTCOMES } rpc_outcome_t;

/* How a call of a tool ended; of one that became a task: what its caller was told of it. */
typedef enum tool_outcome {
    TOOL_LEFT,      /* its client left */
    TOOL_COMPLETED, /* with its task's result */
    TOOL_FAILED,    /* its task did not complete, or its result does not fit */
    TOOL_REFUSED,   /* an error told why there is no result */
    TOOL_ASKED,     /* with questions that the client is to answer */
    TOOL_ACCEPTED,  /* with a handle of its task */
    TOOL_OUTCOMES
} tool_outcome_t;

enum { NUMBERS_METHODS = 13, NUMBERS_ERAS = 2 };

typedef struct tool_numbers {
    uint64_t plain[TOOL_OUTCOMES]; /* calls that waited for their result */
    uint64_t tasks[TOOL_OUTCOMES]; /* those that may become tasks */
    uint64_t unfit;                /* answers in place of results that did not fit */
    uint64_t us;                   /* all of them together, from the head to the answer */
} tool_numbers_t;

/* All zero: nothing was counted. */
typedef struct mcp_numbers {
    uint64_t requests[NUMBERS_ERAS][NUMBERS_METHODS][RPC_OUTCOMES];
    tool_numbers_t *tools; /* in the order of the file; NULL: memory was exhausted */
} mcp_numbers_t;

/* Makes room for the tools. Those that were there before, by their names, keep their numbers. */
void mcp_numbers_change (mcp_numbers_t *self, const tools_t *before, const tools_t *after);
void mcp_numbers_clear (mcp_numbers_t *self);
/* A request has ended. A method that is not known counts as "_other". */
void mcp_numbers_request (mcp_numbers_t *self, era_t era, const char *method,
                          rpc_outcome_t outcome);
/* A call of the tool has ended, which the present file may not have any more. */
void mcp_numbers_call (mcp_numbers_t *self, const tools_t *tools, const char *tool, bool as_task,
                       tool_outcome_t outcome, uint64_t us);
/* A result of the tool was not what its outputSchema promises. */
void mcp_numbers_unfit (mcp_numbers_t *self, const tools_t *tools, const char *tool);
/* In the text format of Prometheus. */
void mcp_numbers_write (const mcp_numbers_t *self, const tools_t *tools, bytes_t *out);

#endif
