/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What requests are served with: whom the gateway knows, whom it is known as, and the ways to the
 * broker. */
#ifndef TASKMQ_GATEWAY_REST_SERVICE_H
#define TASKMQ_GATEWAY_REST_SERVICE_H

#include "auth/origin.h"
#include "auth/tokens.h"
#include "base/settings.h"
#include "http/exchange.h"
#include "link/link.h"

enum { SERVICE_LINKS_MAX = 64 };

typedef struct service {
    settings_t settings;
    names_t hosts;   /* that are ours, beside loopback */
    names_t origins; /* of pages that may use us, beside our own */
    tokens_t tokens;
    principal_t *anybody; /* who makes requests without a token; NULL: nobody */
    failures_t failures;
    link_t *links[SERVICE_LINKS_MAX];
    size_t links_count;
    uint64_t requests; /* answered */
    uint64_t auth_failures;
    uint64_t rate_limited;
} service_t;

link_t *service_link (const service_t *self, const char *ns);
service_t *service_of (const exchange_t *exchange);

#endif
