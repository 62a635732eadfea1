/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Sessions of MCP 2025: nothing is kept of them. The id is a sealed text that says what was agreed,
 * so a session lives through any restart. Only those that were ended, and what was asked of their
 * log, are remembered, and no longer than this process lives. Beyond what there is room for, the
 * oldest one of the principal that has the most of them is forgotten: so nobody who ends many
 * sessions brings back those of others. */
#ifndef TASKMQ_GATEWAY_MCP_SESSION_H
#define TASKMQ_GATEWAY_MCP_SESSION_H

#include <jansson.h>

#include "auth/seal.h"
#include "base/account.h"

enum {
    MCP_SESSION_ID_SIZE = 33,
    MCP_SESSION_VERSION_SIZE = 16,
    MCP_SESSION_PRINCIPAL_SIZE = 72,
    MCP_SESSIONS_ENDED_MAX = 10000, /* that are remembered */
    MCP_SESSION_LEVELS_MAX = 1000,  /* the same */
    MCP_SESSION_MS = 7 * 86400000   /* an id is good for so long */
};

/* What a client can be asked, and what it understands: a sum. */
typedef enum capability {
    CAPABILITY_ELICITATION = 1,
    CAPABILITY_SAMPLING = 2,
    CAPABILITY_ROOTS = 4,
    CAPABILITY_TASKS = 8 /* of 2026: the extension */
} capability_t;

unsigned capabilities_read (const json_t *object);
/* That a request of this method needs; 0: nobody can be asked such. */
unsigned capability_of_method (const char *method);
/* "elicitation", … */
const char *capability_name (unsigned one);

typedef struct mcp_session {
    char id[MCP_SESSION_ID_SIZE];
    char version[MCP_SESSION_VERSION_SIZE];
    char principal[MCP_SESSION_PRINCIPAL_SIZE];
    unsigned capabilities;
} mcp_session_t;

/* What is remembered of one. */
typedef struct mcp_past {
    char id[MCP_SESSION_ID_SIZE];
    int level;
    uint64_t number; /* they are remembered in this order */
    account_t *account;
} mcp_past_t;

typedef struct mcp_memory {
    hold_t hold; /* that one is one of */
    mcp_past_t *all;
    size_t most;
    size_t count;
    uint64_t number; /* of the newest */
} mcp_memory_t;

typedef struct mcp_sessions {
    mcp_memory_t ended;
    mcp_memory_t levels;
    mcp_past_t of_ended[MCP_SESSIONS_ENDED_MAX];
    mcp_past_t of_levels[MCP_SESSION_LEVELS_MAX];
} mcp_sessions_t;

void mcp_sessions_init (mcp_sessions_t *self);
void mcp_sessions_clear (mcp_sessions_t *self);

/* A new one: its id is made. */
void mcp_session_make (mcp_session_t *self);
bool mcp_session_seal (const mcp_session_t *self, const seal_t *seal, bytes_t *out, int64_t now_ms);
/* False: it is none of ours, not this principal's, or was ended. */
bool mcp_session_open (mcp_session_t *out, const mcp_sessions_t *all, const seal_t *seal,
                       const char *text, const char *principal, int64_t now_ms);
/* account: of its principal, as below. */
void mcp_session_end (mcp_sessions_t *all, const mcp_session_t *self, account_t *account);
/* "debug" is 0, "emergency" 7; -1: no such word. */
int level_parse (const char *text);
void mcp_session_set_level (mcp_sessions_t *all, const mcp_session_t *self, account_t *account,
                            int level);
/* 8: nothing was asked for. */
int mcp_session_level (const mcp_sessions_t *all, const mcp_session_t *self);

#endif
