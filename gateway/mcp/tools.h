/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The tools that MCP clients see: tools.json. Pure but for reading the file.
 *
 * {"instructions":"…","tools":[…]}: a tool is a Tool of MCP as it stands, and one member of ours,
 * "taskmq", that says which task a call becomes. It never leaves the gateway. */
#ifndef TASKMQ_GATEWAY_MCP_TOOLS_H
#define TASKMQ_GATEWAY_MCP_TOOLS_H

#include <jansson.h>

#include "mcp/schema.h"
#include "taskmq.h"

enum {
    TOOLS_MAX = 1000,
    TOOLS_BYTES_MAX = 4 * 1024 * 1024, /* of the file */
    TOOLS_ERROR_SIZE = 1024,
    TOOLS_DIGEST_SIZE = 33,
    TOOL_NAME_MAX = 64,
    TOOL_HEADERS_MAX = 16,
    TOOL_SAYS_BYTES_MAX = 1024,
    TOOL_LABELS_MAX = 12, /* of 16; the others are the gateway's */
    TOOL_TTL_MS_MIN = 60000
};

/* May, or must, a call be a task? */
typedef enum task_support { TASK_FORBIDDEN, TASK_OPTIONAL, TASK_REQUIRED } task_support_t;

/* A field of the head that repeats an argument (x-mcp-header). */
typedef struct tool_header {
    const char *property;
    char field[80]; /* "mcp-param-…" in small letters */
} tool_header_t;

typedef struct tool {
    const char *name;
    json_t *json;   /* without our member */
    char *shown;    /* compact, without "execution"; to be followed by … */
    char *shown_25; /* the same with it, for those of 2025 */
    task_support_t support;
    unsigned roles; /* who sees it; 0: everybody */
    schema_t *input;
    schema_t *output; /* what its results are to fit; NULL: anything does */
    const char *says; /* to the model while a task of it works; NULL: nothing */
    tool_header_t headers[TOOL_HEADERS_MAX];
    size_t headers_count;
    /* Of the task. Texts are of json, or of ours. */
    json_t *ours;
    tmq_submit_t submit;
    tmq_label_t labels[TOOL_LABELS_MAX];
    uint64_t ttl_max_ms;
    uint32_t inline_ms;   /* how long an answer may stay a plain one */
    uint32_t wait_max_ms; /* the end of a call that is no task */
    bool whole_params;    /* the payload has name, arguments and _meta; else the arguments alone */
    bool dedup;           /* equal arguments of one principal are one task */
    const json_t *asks;   /* questions before the task; NULL: none */
    const json_t *needs;  /* capabilities of the client; NULL: none */
} tool_t;

typedef struct tools {
    size_t references;
    char *instructions; /* NULL: none */
    tool_t *list;
    size_t count;
    bool private; /* not everybody sees the same */
} tools_t;

/* From a text. NULL: error says which tool and why. */
tools_t *tools_parse (const char *text, size_t length, char error[TOOLS_ERROR_SIZE]);
tools_t *tools_read (const char *path, char error[TOOLS_ERROR_SIZE]);
tools_t *tools_retain (tools_t *self);
void tools_release (tools_t *self); /* accepts NULL */
bool tool_shows (const tool_t *self, unsigned roles);
/* Of what roles may see of the tools: 32 hex digits that differ when that does. */
void tools_digest (char out[TOOLS_DIGEST_SIZE], const tools_t *self, unsigned roles);
/* The tool of that name that roles may see; NULL: there is none. */
tool_t *tools_find (const tools_t *self, const char *name, unsigned roles);

#endif
