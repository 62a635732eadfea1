/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The checks: who comes in, what a link may do, what it sees.
 *
 * Pure. Without a policy (no access file) everybody who comes in over ipc or loopback may do
 * everything. */
#ifndef TASKMQ_CORE_ACCESS_H
#define TASKMQ_CORE_ACCESS_H

#include <string.h>

#include "core/access/policy.h"

enum { IDENTITY_SIZE = TMQ_NAME_LENGTH_MAX + 16 }; /* "invite:" and a name */

/* A connection that asks to come in, as ZAP tells it. */
typedef struct knock {
    const char *domain;      /* "ipc", "loopback", "curve", "plain" or "feed/NAMESPACE" */
    const key_public_t *key; /* CURVE: whose secret was proved; NULL: no mechanism */
    const char *address;     /* an IP address, or "localhost:UID:GID:PID" on ipc */
    int64_t now_ms;          /* wall clock */
} knock_t;

typedef struct admission {
    unsigned status;              /* ZAP's: 200 comes in, 400 does not */
    char identity[IDENTITY_SIZE]; /* 200: who it is, "uid:1000", "local", "addr:10.0.0.7", the name
                                   * of a principal, or "invite:" and the name of its line */
    int64_t until_ms;             /* 200: when that ends; 0: never */
    const char *why;              /* 400: for the log; static */
} admission_t;

/* After a new policy each live connection is to be asked for again: who is not the same any more,
 * or is refused, has to be cut. */
void access_door (const policy_t *policy, const knock_t *knock, admission_t *out);

typedef struct behalf behalf_t;

/* What a link may do in its namespace. Made of zeros it may do nothing. */
typedef struct access {
    policy_t *policy; /* kept; NULL: everything, without a behalf */
    behalf_t *behalf; /* kept: somebody whom the link acts for; NULL: itself */
    const principal_t *principal;
    uint64_t grants;     /* those of the principal that hold in the namespace, a bit each */
    unsigned rights;     /* somewhere */
    unsigned everywhere; /* … in every queue, whoever owns the task */
    char queue[TMQ_NAME_LENGTH_MAX + 1]; /* that was asked about last: … */
    unsigned in_queue;                   /* … rights there, of tasks of all owners, … */
    unsigned in_queue_own;               /* … of its own */
} access_t;

/* Who acts for somebody, and for whom, stand with this between them: "gateway/alice". No peer has
 * such an identity. */
#define BEHALF_MARK '/'
static inline bool access_is_behalf (const char *identity)
{
    return strchr (identity, BEHALF_MARK) != NULL;
}

/* What identity may do in a namespace now. False, and nothing: no access to it. To be cleared.
 * "gateway/alice" is a client in all queues that the gateway may act for others in, and nothing
 * else, whatever the gateway itself may do: operators as well. */
bool access_link (access_t *out, policy_t *policy, const char *identity, const char *space,
                  int64_t now_ms);
behalf_t *behalf_keep (behalf_t *self); /* accepts NULL; any thread */
/* … another one with the same rights. */
static inline void access_copy (access_t *out, const access_t *from)
{
    *out = *from;
    policy_keep (out->policy);
    behalf_keep (out->behalf);
}
void access_clear (access_t *self);

/* It has one of the rights somewhere in the namespace. */
static inline bool access_may (const access_t *self, unsigned rights)
{
    return (self->rights & rights) != 0;
}

bool access_sees_task (access_t *self, const char *queue, const char *owner, const char *holder,
                       unsigned rights);
/* It has one of the rights over a task in this queue, of this owner, whose lease this holder has
 * (NULL or empty: nobody). */
static inline bool access_sees (access_t *self, const char *queue, const char *owner,
                                const char *holder, unsigned rights)
{
    return (self->everywhere & rights) != 0 ||
           access_sees_task (self, queue, owner, holder, rights);
}
/* … over what stands in a namespace beside its queues and belongs to this owner: all of it only
 * with a grant for every queue. */
bool access_sees_entry (const access_t *self, const char *owner, unsigned rights);
/* It has one of the rights in this queue, for some owner. */
bool access_queue (access_t *self, const char *queue, unsigned rights);

#endif
