/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* MCP: one endpoint for both generations (2025-06-18, 2025-11-25; 2026-07-28), whose tools are
 * tasks of the broker. */
#ifndef TASKMQ_GATEWAY_MCP_MCP_H
#define TASKMQ_GATEWAY_MCP_MCP_H

#include "mcp/numbers.h"
#include "mcp/session.h"
#include "mcp/tools.h"
#include "rest/service.h"

typedef struct mcp {
    service_t *service;
    tools_t *tools;
    mcp_sessions_t sessions;
    mcp_numbers_t numbers;
    struct call *calls; /* that are under way */
} mcp_t;

/* Takes over the tools, and serves /mcp of the service from now on. NULL: memory is exhausted. */
mcp_t *mcp_new (service_t *service, tools_t *tools);
void mcp_free (mcp_t **self); /* accepts NULL */
/* Other tools from now on; calls that are under way go on with theirs, listeners are told. Takes
 * tools over. */
void mcp_change (mcp_t *self, tools_t *tools);

#endif
