/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "mcp/numbers.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The last one stands for all others. */
static const char *const methods[NUMBERS_METHODS] = {
    "initialize",   "server/discover", "ping",         "logging/setLevel",
    "tools/list",   "tools/call",      "tasks/get",    "tasks/list",
    "tasks/result", "tasks/update",    "tasks/cancel", "subscriptions/listen",
    "_other"};
static const char *const eras[NUMBERS_ERAS] = {[ERA_2025] = "2025", [ERA_2026] = "2026"};
static const char *const rpc_outcomes[RPC_OUTCOMES] = {"left", "answered", "error"};
static const char *const tool_outcomes[TOOL_OUTCOMES] = {"left",    "completed", "failed",
                                                         "refused", "asked",     "accepted"};

/* NULL: the tools have none of that name. */
static tool_numbers_t *numbers_of (const mcp_numbers_t *self, const tools_t *tools,
                                   const char *tool)
{
    for (size_t i = 0; self->tools != NULL && tools != NULL && i < tools->count; i++)
        if (strcmp (tools->list[i].name, tool) == 0)
            return &self->tools[i];
    return NULL;
}

void mcp_numbers_change (mcp_numbers_t *self, const tools_t *before, const tools_t *after)
{
    tool_numbers_t *fresh = calloc (after->count + 1, sizeof *fresh);
    for (size_t i = 0; fresh != NULL && i < after->count; i++) {
        const tool_numbers_t *old = numbers_of (self, before, after->list[i].name);
        if (old != NULL)
            fresh[i] = *old;
    }
    free (self->tools);
    self->tools = fresh;
}

void mcp_numbers_clear (mcp_numbers_t *self)
{
    free (self->tools);
    self->tools = NULL;
}

void mcp_numbers_request (mcp_numbers_t *self, era_t era, const char *method, rpc_outcome_t outcome)
{
    size_t row = 0;
    while (row < NUMBERS_METHODS - 1 && strcmp (methods[row], method) != 0)
        row++;
    self->requests[era][row][outcome]++;
}

void mcp_numbers_call (mcp_numbers_t *self, const tools_t *tools, const char *tool, bool as_task,
                       tool_outcome_t outcome, uint64_t us)
{
    tool_numbers_t *numbers = numbers_of (self, tools, tool);
    if (numbers == NULL)
        return;
    (as_task ? numbers->tasks : numbers->plain)[outcome]++;
    numbers->us += us;
}

void mcp_numbers_unfit (mcp_numbers_t *self, const tools_t *tools, const char *tool)
{
    tool_numbers_t *numbers = numbers_of (self, tools, tool);
    if (numbers != NULL)
        numbers->unfit++;
}

static void put_requests (const mcp_numbers_t *self, bytes_t *out)
{
    bytes_append_format (
        out, "# HELP taskmq_gateway_mcp_requests_total requests of MCP, by how they ended\n"
             "# TYPE taskmq_gateway_mcp_requests_total counter\n");
    for (size_t era = 0; era < NUMBERS_ERAS; era++)
        for (size_t row = 0; row < NUMBERS_METHODS; row++)
            for (size_t i = 0; i < RPC_OUTCOMES; i++)
                if (self->requests[era][row][i] > 0)
                    bytes_append_format (
                        out,
                        "taskmq_gateway_mcp_requests_total{generation=\"%s\",method=\"%s\","
                        "outcome=\"%s\"} %" PRIu64 "\n",
                        eras[era], methods[row], rpc_outcomes[i], self->requests[era][row][i]);
}

/* Names of tools are [A-Za-z0-9_.-], so they need no escapes. */
static void put_calls (bytes_t *out, const char *tool, const char *mode,
                       const uint64_t counts[TOOL_OUTCOMES])
{
    for (size_t i = 0; i < TOOL_OUTCOMES; i++)
        if (counts[i] > 0)
            bytes_append_format (
                out,
                "taskmq_gateway_tool_calls_total{tool=\"%s\",mode=\"%s\",outcome=\"%s\"} %" PRIu64
                "\n",
                tool, mode, tool_outcomes[i], counts[i]);
}

static uint64_t calls_of (const tool_numbers_t *numbers)
{
    uint64_t count = 0;
    for (size_t i = 0; i < TOOL_OUTCOMES; i++)
        count += numbers->plain[i] + numbers->tasks[i];
    return count;
}

void mcp_numbers_write (const mcp_numbers_t *self, const tools_t *tools, bytes_t *out)
{
    static const char times[] = "taskmq_gateway_tool_call_duration_seconds";
    const size_t count = self->tools != NULL ? tools->count : 0;
    put_requests (self, out);
    bytes_append_format (
        out, "# HELP taskmq_gateway_tool_calls_total calls of a tool, by how they ended\n"
             "# TYPE taskmq_gateway_tool_calls_total counter\n");
    for (size_t i = 0; i < count; i++) {
        put_calls (out, tools->list[i].name, "call", self->tools[i].plain);
        put_calls (out, tools->list[i].name, "task", self->tools[i].tasks);
    }
    bytes_append_format (out, "# HELP taskmq_gateway_tool_unfit_results_total answers in place of "
                              "results that did not fit the tool's outputSchema\n"
                              "# TYPE taskmq_gateway_tool_unfit_results_total counter\n");
    for (size_t i = 0; i < count; i++)
        if (tools->list[i].output != NULL)
            bytes_append_format (
                out, "taskmq_gateway_tool_unfit_results_total{tool=\"%s\"} %" PRIu64 "\n",
                tools->list[i].name, self->tools[i].unfit);
    bytes_append_format (
        out, "# HELP %s from the head of a call to its answer\n# TYPE %s summary\n", times, times);
    for (size_t i = 0; i < count; i++) {
        const uint64_t calls = calls_of (&self->tools[i]);
        const uint64_t us = self->tools[i].us;
        if (calls > 0)
            bytes_append_format (out,
                                 "%s_sum{tool=\"%s\"} %" PRIu64 ".%06" PRIu64
                                 "\n%s_count{tool=\"%s\"} %" PRIu64 "\n",
                                 times, tools->list[i].name, us / 1000000, us % 1000000, times,
                                 tools->list[i].name, calls);
    }
}
