/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Streams of notifications: what a client is told without asking again. subscriptions/listen of
 * 2026, and the stream of a session of 2025, which GET begins.
 *
 * A listener is told states, not events: an event makes it look at its task, and what it tells is
 * the record of then. Events that this record has in it already are passed over. So nothing is
 * queued: one task is looked at at a time, the others wait at the broker.
 *
 * A client that does not read is owed one notification; then nothing more is taken for it, and
 * after output_timeout it is closed. That the tools changed is one bit. Of 2025 each event has an
 * id, with which GET goes on behind it, also after a restart; of 2026 nothing is resumed, as the
 * specification has it: a new listen tells the present state of its tasks. */
#ifndef TASKMQ_GATEWAY_MCP_LISTEN_H
#define TASKMQ_GATEWAY_MCP_LISTEN_H

#include "mcp/call.h"

enum {
    LISTEN_LOOKS_MAX = 8,  /* at tasks, that listeners of a principal have under way */
    LISTEN_TASKS_MAX = 64, /* of a listen; of a session: of which is known what was told last */
    LISTEN_BUFFER_BYTES = 64 * 1024 /* of a flow: what its client does not take yet */
};

/* subscriptions/listen. */
void listen_begin (call_t *call);
/* GET of a session, which is in the call. Its stream before this one ends. */
void listen_session (call_t *call);
/* … that goes on: text is what an id of ours has behind its principal. False: it is none of such a
 * stream, or of another session, and nothing was done. */
bool listen_session_again (call_t *call, const char *text);
/* The tools are others now: listeners of whom one sees a difference are told. */
void listen_tools_changed (mcp_t *mcp);
/* Ends the streams of a session, but for this call's. */
void listen_end (const call_t *call);

#endif
