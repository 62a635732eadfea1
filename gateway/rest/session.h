/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Who is at the page: by its cookie, or by a ticket. */
#ifndef TASKMQ_GATEWAY_REST_SESSION_H
#define TASKMQ_GATEWAY_REST_SESSION_H

#include "rest/answer.h"

/* Whose cookie a request has; NULL: nobody's. A browser sends cookies on its own, so a request that
 * another page had it make does not count: one that changes something says that it comes from our
 * page (Sec-Fetch-Site: same-origin) and has a field that no other page can add
 * (X-Taskmq-Request: 1); one that reads is not from another site or port. Sets by_cookie. */
struct principal *session_identify (exchange_t *exchange);
/* The same rule for whoever is known without a word of theirs, as a proxy knows its users. A
 * program says nothing about where it comes from, and is no browser. */
bool session_is_ours (const exchange_t *exchange);
/* Why a request with a cookie was taken for nobody's. */
const char *session_flaw (const exchange_t *exchange);
/* The ticket that stands in the place of a token; NULL: it is none. */
const char *session_ticket (const exchange_t *exchange);

#endif
