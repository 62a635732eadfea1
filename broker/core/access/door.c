/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Who comes in: a connection becomes an identity. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/access/access.h"

static void refuse (admission_t *out, const char *why)
{
    *out = (admission_t){.status = 400, .why = why};
}

/* listed NULL: somebody without a line. */
static void admit (admission_t *out, const principal_t *listed, const char *otherwise,
                   int64_t now_ms)
{
    *out = (admission_t){.status = 200};
    if (listed == NULL) {
        snprintf (out->identity, sizeof (out->identity), "%s", otherwise);
        return;
    }
    if (listed->until_ms != 0 && listed->until_ms <= now_ms) {
        refuse (out, "its time has ended");
        return;
    }
    /* One that was used may come back: for the same answer, or to be told who used it. */
    if (listed->is_invitation && listed->uses == 0 && listed->used == NULL) {
        refuse (out, "the invitation was used");
        return;
    }
    out->until_ms = listed->until_ms;
    snprintf (out->identity, sizeof (out->identity), "%s%s", listed->is_invitation ? "invite:" : "",
              listed->name);
}

static bool is_operator (const principal_t *principal)
{
    for (size_t i = 0; i < principal->grants_count; i++)
        if (principal->grants[i].role == ROLE_OPERATOR)
            return true;
    return false;
}

/* On ipc: the kernel vouches for the uid. */
static void admit_user (const policy_t *policy, const char *address, int64_t now_ms,
                        admission_t *out)
{
    char *end;
    const char *digits = address + strlen ("localhost:");
    unsigned long uid = strtoul (digits, &end, 10);
    if (digits[0] < '0' || digits[0] > '9' || *end != ':' || uid >= UINT32_MAX) {
        refuse (out, "the kernel does not say who it is");
        return;
    }
    char identity[IDENTITY_SIZE];
    snprintf (identity, sizeof (identity), "uid:%lu", uid);
    const principal_t *listed = policy == NULL ? NULL : policy_by_uid (policy, (uint32_t) uid);
    /* Who owns the broker's files stays operator, whatever a line says. */
    if (listed != NULL && policy_is_own_uid (policy, (uint32_t) uid) && !is_operator (listed))
        listed = NULL;
    admit (out, listed, identity, now_ms);
}

static void admit_caller (const policy_t *policy, const knock_t *knock, admission_t *out)
{
    char identity[IDENTITY_SIZE];
    const principal_t *listed = NULL;
    if (knock->key != NULL) {
        listed = policy == NULL ? NULL : policy_by_key (policy, knock->key);
        if (listed == NULL)
            refuse (out, "the key is not listed");
        else
            admit (out, listed, NULL, knock->now_ms);
    } else if (strncmp (knock->address, "localhost:", strlen ("localhost:")) == 0) {
        admit_user (policy, knock->address, knock->now_ms, out);
    } else if (strcmp (knock->domain, "curve") == 0) {
        refuse (out, "no key");
    } else {
        bool plain = strcmp (knock->domain, "plain") == 0;
        snprintf (identity, sizeof (identity), plain ? "addr:%.45s" : "local", knock->address);
        if (policy != NULL)
            listed = policy_by_address (policy, identity);
        admit (out, listed, identity, knock->now_ms);
    }
}

void access_door (const policy_t *policy, const knock_t *knock, admission_t *out)
{
    static const char FEED[] = "feed/";
    admit_caller (policy, knock, out);
    if (out->status != 200 || strncmp (knock->domain, FEED, sizeof (FEED) - 1) != 0)
        return;
    access_t access;
    const char *space = knock->domain + sizeof (FEED) - 1;
    bool linked = access_link (&access, (policy_t *) policy, out->identity, space, knock->now_ms);
    if (!linked || (access.everywhere & (RIGHT_OBSERVE | RIGHT_READ)) == 0)
        refuse (out, "no right to observe the feed's namespace");
    access_clear (&access);
}
