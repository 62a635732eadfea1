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

/* What is remembered. */

static mcp_past_t *find (const mcp_memory_t *self, const char *id)
{
    for (size_t i = 0; i < self->count; i++)
        if (strcmp (self->all[i].id, id) == 0)
            return &self->all[i];
    return NULL;
}

/* The oldest one of whoever has the most, and with the new one that is this account sooner than
 * one who has as many. */
static mcp_past_t *give_way (const mcp_memory_t *self, const account_t *account)
{
    mcp_past_t *found = NULL;
    uint64_t most = 0;
    for (mcp_past_t *at = self->all; at < self->all + self->count; at++) {
        const uint64_t held = at->account->held[self->hold] * 2 + (at->account == account ? 3 : 0);
        if (held < most || (held == most && found != NULL && at->number > found->number))
            continue;
        found = at;
        most = held;
    }
    return found;
}

static void forget (const mcp_memory_t *self, mcp_past_t *past)
{
    past->account->held[self->hold]--;
    account_release (past->account);
}

static mcp_past_t *remember (mcp_memory_t *self, const char *id, account_t *account)
{
    mcp_past_t *past = NULL;
    if (self->count < self->most) {
        past = &self->all[self->count++];
    } else {
        past = give_way (self, account);
        forget (self, past);
    }
    *past = (mcp_past_t){.number = ++self->number, .account = account_retain (account)};
    snprintf (past->id, sizeof past->id, "%s", id);
    account->held[self->hold]++;
    return past;
}

void mcp_sessions_init (mcp_sessions_t *self)
{
    self->ended = (mcp_memory_t){HOLD_ENDED, self->of_ended, MCP_SESSIONS_ENDED_MAX, 0, 0};
    self->levels = (mcp_memory_t){HOLD_LEVELS, self->of_levels, MCP_SESSION_LEVELS_MAX, 0, 0};
}

void mcp_sessions_clear (mcp_sessions_t *self)
{
    for (size_t i = 0; i < self->ended.count; i++)
        forget (&self->ended, &self->ended.all[i]);
    for (size_t i = 0; i < self->levels.count; i++)
        forget (&self->levels, &self->levels.all[i]);
}

/* One session. */

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
    return find (&all->ended, out->id) == NULL;
}

void mcp_session_end (mcp_sessions_t *all, const mcp_session_t *self, account_t *account)
{
    remember (&all->ended, self->id, account);
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

void mcp_session_set_level (mcp_sessions_t *all, const mcp_session_t *self, account_t *account,
                            int level)
{
    mcp_past_t *past = find (&all->levels, self->id);
    if (past == NULL)
        past = remember (&all->levels, self->id, account);
    past->level = level;
}

int mcp_session_level (const mcp_sessions_t *all, const mcp_session_t *self)
{
    const mcp_past_t *past = find (&all->levels, self->id);
    return past != NULL ? past->level : 8;
}
