/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "auth/policy.h"

#include <stdio.h>
#include <string.h>

/* By access: who has it, and who only for tasks of their own. */
static const struct {
    unsigned all;
    unsigned own;
    const char *text;
} policy[] = {
    [ACCESS_PUBLIC] = {~0U, 0, "everybody"},
    [ACCESS_KNOWN] = {~0U, 0, "every token"},
    [ACCESS_READ] = {ROLE_OBSERVER | ROLE_OPERATOR, ROLE_CLIENT,
                     "observer, operator, client (own)"},
    [ACCESS_SUBMIT] = {ROLE_CLIENT | ROLE_OPERATOR, 0, "client, operator"},
    [ACCESS_CHANGE] = {ROLE_OPERATOR, ROLE_CLIENT, "operator, client (own)"},
    [ACCESS_OVERVIEW] = {ROLE_OBSERVER | ROLE_OPERATOR, 0, "observer, operator"},
    [ACCESS_OPERATE] = {ROLE_OPERATOR, 0, "operator"},
    [ACCESS_SCRAPE] = {ROLE_METRICS | ROLE_OPERATOR, 0, "metrics, operator"},
};

static const struct {
    const char *name;
    unsigned role;
} names[] = {
#define X(NAME, number, text, what) {text, number},
    ROLES_MAP (X)
#undef X
};
enum { NAMES = sizeof names / sizeof *names };

bool policy_allows (unsigned roles, access_t access)
{
    return access == ACCESS_PUBLIC || (roles & (policy[access].all | policy[access].own)) != 0;
}

bool policy_own_only (unsigned roles, access_t access)
{
    return (roles & policy[access].all) == 0 && (roles & policy[access].own) != 0;
}

const char *policy_who (access_t access)
{
    return policy[access].text;
}

unsigned roles_parse (const char *text)
{
    unsigned roles = 0;
    for (bool more = true; more;) {
        const size_t length = strcspn (text, ",");
        unsigned found = 0;
        for (size_t i = 0; i < NAMES; i++)
            if (strlen (names[i].name) == length && memcmp (names[i].name, text, length) == 0)
                found = names[i].role;
        if (found == 0)
            return 0;
        roles |= found;
        more = text[length] == ',';
        text += length + 1;
    }
    return roles;
}

void roles_format (char *out, size_t size, unsigned roles)
{
    size_t length = 0;
    out[0] = '\0';
    for (size_t i = 0; i < NAMES; i++)
        if ((roles & names[i].role) != 0 && length < size)
            length += (size_t) snprintf (out + length, size - length, "%s%s", length > 0 ? "," : "",
                                         names[i].name);
}
