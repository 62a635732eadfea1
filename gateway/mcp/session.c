/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "mcp/session.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ids.h"

static const struct {
    const char *name;
    const char *method;
} capabilities[] = {{"elicitation", "elicitation/create"},
                    {"sampling", "sampling/createMessage"},
                    {"roots", "roots/list"}};
enum { CAPABILITIES = sizeof capabilities / sizeof *capabilities };

unsigned capabilities_read (const json_t *object)
{
    unsigned sum = 0;
    const json_t *extensions = json_object_get (object, "extensions");
    for (size_t i = 0; i < CAPABILITIES; i++)
        if (json_is_object (json_object_get (object, capabilities[i].name)))
            sum |= 1U << i;
    if (json_is_object (json_object_get (extensions, "io.modelcontextprotocol/tasks")))
        sum |= CAPABILITY_TASKS;
    return sum;
}

unsigned capability_of_method (const char *method)
{
    for (size_t i = 0; i < CAPABILITIES; i++)
        if (strcmp (capabilities[i].method, method) == 0)
            return 1U << i;
    return 0;
}

const char *capability_name (unsigned one)
{
    for (size_t i = 0; i < CAPABILITIES; i++)
        if (one == 1U << i)
            return capabilities[i].name;
    return "?";
}

void mcp_session_make (mcp_session_t *self)
{
    uint8_t random[MCP_SESSION_ID_SIZE / 2];
    randombytes_buf (random, sizeof random);
    hex_encode (self->id, random, sizeof random);
}

/* Four words apart by spaces: none has one. */
bool mcp_session_seal (const mcp_session_t *self, const seal_t *seal, bytes_t *out, int64_t now_ms)
{
    char text[MCP_SESSION_ID_SIZE + MCP_SESSION_VERSION_SIZE + MCP_SESSION_PRINCIPAL_SIZE + 24];
    const int length = snprintf (text, sizeof text, "%s %s %u %s", self->id, self->version,
                                 self->capabilities, self->principal);
    return seal_close (seal, out, SEAL_MCP_SESSION, text, (size_t) length,
                       now_ms + MCP_SESSION_MS) &&
           bytes_text (out) != NULL;
}

bool mcp_session_open (mcp_session_t *out, const mcp_sessions_t *all, const seal_t *seal,
                       const char *text, const char *principal, int64_t now_ms)
{
    bytes_t plain = BYTES_INIT;
    const bool good = seal_open (seal, &plain, SEAL_MCP_SESSION, text, now_ms) == SEAL_GOOD &&
                      bytes_text (&plain) != NULL &&
                      sscanf (bytes_text (&plain), "%32s %15s %u %71s", out->id, out->version,
                              &out->capabilities, out->principal) == 4;
    bytes_free (&plain);
    if (!good || strcmp (out->principal, principal) != 0)
        return false;
    for (size_t i = 0; i < all->ended_count && i < MCP_SESSIONS_ENDED_MAX; i++)
        if (strcmp (all->ended[i], out->id) == 0)
            return false;
    return true;
}

void mcp_session_end (mcp_sessions_t *all, const mcp_session_t *self)
{
    snprintf (all->ended[all->ended_count++ % MCP_SESSIONS_ENDED_MAX], MCP_SESSION_ID_SIZE, "%s",
              self->id);
}

int level_parse (const char *text)
{
    static const char *const words[] = {"debug", "info",     "notice", "warning",
                                        "error", "critical", "alert",  "emergency"};
    for (int i = 0; text != NULL && i < 8; i++)
        if (strcmp (words[i], text) == 0)
            return i;
    return -1;
}

void mcp_session_set_level (mcp_sessions_t *all, const mcp_session_t *self, int level)
{
    size_t i = 0;
    while (i < all->levels_count && i < MCP_SESSION_LEVELS_MAX &&
           strcmp (all->levels[i].id, self->id) != 0)
        i++;
    if (i == all->levels_count || i == MCP_SESSION_LEVELS_MAX)
        i = all->levels_count++ % MCP_SESSION_LEVELS_MAX;
    snprintf (all->levels[i].id, MCP_SESSION_ID_SIZE, "%s", self->id);
    all->levels[i].level = level;
}

int mcp_session_level (const mcp_sessions_t *all, const mcp_session_t *self)
{
    for (size_t i = 0; i < all->levels_count && i < MCP_SESSION_LEVELS_MAX; i++)
        if (strcmp (all->levels[i].id, self->id) == 0)
            return all->levels[i].level;
    return 8;
}
