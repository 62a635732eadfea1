/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Who may do what: one table. */
#ifndef TASKMQ_GATEWAY_AUTH_POLICY_H
#define TASKMQ_GATEWAY_AUTH_POLICY_H

#include <stdbool.h>
#include <stddef.h>

/* NAME, number, text, what it is. */
#define ROLES_MAP(X)                                                                               \
    X (OBSERVER, 1, "observer", "sees the namespace")                                              \
    X (CLIENT, 2, "client", "submits, and sees and changes its own tasks")                         \
    X (OPERATOR, 4, "operator", "may do everything")                                               \
    X (METRICS, 8, "metrics", "reads /metrics")

typedef enum role {
    ROLE_NONE = 0,
#define X(NAME, number, text, what) ROLE_##NAME = number,
    ROLES_MAP (X)
#undef X
} role_t;

/* What a route does, for the table. */
typedef enum access {
    ACCESS_PUBLIC,
    ACCESS_KNOWN,    /* whoever has a token, whatever its roles */
    ACCESS_READ,     /* one's tasks, or all */
    ACCESS_SUBMIT,   /* tasks */
    ACCESS_CHANGE,   /* a task: one's own, or any */
    ACCESS_OVERVIEW, /* of the namespace */
    ACCESS_OPERATE,
    ACCESS_SCRAPE
} access_t;

/* roles: a sum. */
bool policy_allows (unsigned roles, access_t access);
/* True if that access is to tasks of their own only. */
bool policy_own_only (unsigned roles, access_t access);
/* "observer, operator; client: own": for people. */
const char *policy_who (access_t access);

/* "client,observer" into a sum; 0: it has an unknown word, or none. */
unsigned roles_parse (const char *text);
void roles_format (char *out, size_t size, unsigned roles);

#endif
