/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Turns: requests and records. */
#ifndef TASKMQ_CLIENT_TURNS_H
#define TASKMQ_CLIENT_TURNS_H

#include "codec/request.h"
#include "taskmq.pb-c.h"

/* Takes what the application's struct has, and judges it. */
int core_take_turn (tmq_turn_t *out, const tmq_turn_t *given, tmq_error_t *error);
/* Its fields behind the lease, and its parts. Its number is known. */
void core_encode_turn (bytes_t *fields, bytes_t *body, const tmq_turn_t *in);
/* One piece of memory; NULL when it is exhausted, or the page is not what it has to be. body:
 * page->body bytes. */
tmq_turn_list_t *core_turn_list_record (const Taskmq__TurnPage *page, const uint8_t *body);

#endif
