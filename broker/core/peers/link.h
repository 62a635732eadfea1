/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The table of links: one for each peer that was heard. */
#ifndef TASKMQ_CORE_LINK_H
#define TASKMQ_CORE_LINK_H

#include "core/peers/links.h"

link_t *link_find (const links_t *self, peer_t peer);
/* For peers without a link too: their answers need a place to wait in. */
link_t *link_make (links_t *self, peer_t peer);
void link_remove (links_t *self, link_t *link); /* from the table; it is dead from now on */
void link_unreference (links_t *self, link_t *link);
void link_free_if_idle (links_t *self, link_t *link);
/* Forgets the pieces of a task that it imports. */
void link_drop_import (links_t *self, link_t *link);
/* A message of it came. True: it was silent, stalled, suspected or on its way out, and is no
 * more. */
bool link_heard (links_t *self, link_t *link);
/* It may be silent for so long. */
int64_t link_silence_ms (const links_t *self);
/* token: what a message showed, of any length. */
bool link_token_is (const link_t *link, const uint8_t *token, size_t length);
/* identity is the link's own, or one that its principal also owns. Without a policy it always is:
 * there one user comes in under several names, by ipc and by loopback. */
bool link_is (const link_t *link, const char *identity);

#endif
