/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The policy: who may do what, as the access file says it.
 *
 * One principal a line, allow only, so no line can undo another:
 *
 *     NAME  WHO[,WHO…]  GRANT… | -  [OPTION=VALUE…]
 *
 * A line "limits * - OPTION=VALUE…" is no principal: it has the quotas of who says none of its own.
 *
 * A policy never changes: a new file is a new policy. It is counted, so engine, door and readers
 * may each keep the one they began with; any thread. */
#ifndef TASKMQ_CORE_POLICY_H
#define TASKMQ_CORE_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/access/glob.h"
#include "keys.h"

enum {
    POLICY_BYTES_MAX = 1024 * 1024, /* of the file */
    POLICY_PRINCIPALS_MAX = 10000,
    POLICY_GRANTS_MAX = 64,  /* of a line: one bit each in access_t */
    POLICY_WHO_MAX = 64,     /* of a line */
    POLICY_OWNS_MAX = 8,     /* of a line */
    POLICY_UIDS_MAX = 65536, /* that users and groups of all lines stand for */
    POLICY_USES_MAX = 10000, /* of an invitation */
    POLICY_NO_GROUP = -1,
    POLICY_GROUP_UNKNOWN = -2,
    POLICY_ERROR_SIZE = 320
};

/* What a link may do, a bit each. */
typedef enum right {
    RIGHT_LINK = 1,      /* whoever has a link */
    RIGHT_SUBMIT = 2,    /* makes tasks */
    RIGHT_READ = 4,      /* sees records and events … */
    RIGHT_BODY = 8,      /* … with payload, result, error data and meta */
    RIGHT_CANCEL = 16,   /* ends tasks */
    RIGHT_WORK = 32,     /* works on tasks, and sees what it holds */
    RIGHT_OBSERVE = 64,  /* sees records and events without what RIGHT_BODY adds, and counters */
    RIGHT_ADMIN = 128,   /* all of a namespace */
    RIGHT_OPERATE = 256, /* the broker itself: keys, backup, audit, reload */
    RIGHT_ENROLL = 512,  /* brings a key of its own */
    RIGHT_BEHALF = 1024, /* asks for owners that it names, as a client each */
    RIGHTS_ALL = 2047
} right_t;

/* X (ROLE, name, rights): a role is a set of rights. */
#define POLICY_ROLE_MAP(X)                                                                         \
    X (CLIENT, "client", RIGHT_SUBMIT | RIGHT_READ | RIGHT_BODY | RIGHT_CANCEL)                    \
    X (READER, "reader", RIGHT_READ | RIGHT_BODY)                                                  \
    X (WORKER, "worker", RIGHT_WORK)                                                               \
    X (OBSERVER, "observer", RIGHT_OBSERVE)                                                        \
    X (GATEWAY, "gateway", RIGHT_BEHALF)                                                           \
    X (ADMIN, "admin", RIGHTS_ALL & ~(RIGHT_OPERATE | RIGHT_ENROLL))                               \
    X (OPERATOR, "operator", RIGHTS_ALL)

/* X (NAME, option, form, default): how much a principal may have at once, or in a second. A COUNT
 * may be 0, an AMOUNT not. */
#define POLICY_QUOTA_MAP(X)                                                                        \
    X (LINKS, "links", COUNT, 64)                                                                  \
    X (TASKS, "tasks", COUNT, 100000)                                                              \
    X (BYTES, "bytes", SIZE, 256u << 20)                                                           \
    X (RATE, "rate", PER_SECOND, 5000)                                                             \
    X (BURST, "burst", AMOUNT, 10000)                                                              \
    X (READS, "reads", PER_SECOND, 50)                                                             \
    X (LEASES, "leases", COUNT, 10000)                                                             \
    X (WORKERS, "workers", COUNT, 256)                                                             \
    X (SUBSCRIPTIONS, "subscriptions", COUNT, 50000)                                               \
    X (WAITS, "waits", COUNT, 50000)                                                               \
    X (BLOBS, "blobs", SIZE, UINT64_C (4) << 30)

typedef enum quota {
#define X(NAME, option, form, value) QUOTA_##NAME,
    POLICY_QUOTA_MAP (X)
#undef X
        QUOTAS
} quota_t;

typedef enum role {
#define X(ROLE, name, rights) ROLE_##ROLE,
    POLICY_ROLE_MAP (X)
#undef X
        ROLES
} role_t;

/* ROLE(NAMESPACE[/QUEUE]). A client reads and ends its own tasks alone. A gateway sees none; those
 * whom it acts for are clients. */
typedef struct grant {
    role_t role;
    glob_t space;
    glob_t queue;
} grant_t;

/* A line. Texts live as long as the policy. */
typedef struct principal {
    const char *name;
    unsigned line;    /* its number in the file */
    const char *text; /* the line as it stands there, without its comment */
    key_public_t *keys;
    size_t keys_count;
    bool is_invitation; /* its only key is good for RIGHT_ENROLL and nothing else */
    grant_t *grants;    /* of an invitation: what its principal will have */
    size_t grants_count;
    const char *may;  /* the grants as one text, "-" for none */
    const char *same; /* everything that decides what its links may do: equal or not */
    const char *owns[POLICY_OWNS_MAX]; /* identities whose tasks are its own, too */
    size_t owns_count;
    uint64_t quotas[QUOTAS];
    int64_t until_ms; /* its end, since the epoch; 0: none */
    uint32_t uses;    /* of an invitation: how often it is still good */
    const char *as;   /* … for a principal of this name, in which %h is its host */
    const char *used; /* … by whom it was used last, ADDRESS@TIME; NULL: by nobody */
} principal_t;

typedef struct policy policy_t;

/* How names of the system are looked up; called while parsing only. */
typedef struct policy_names {
    uint32_t own_uid; /* of the broker: it stays operator on ipc, and so does root */
    void *context;
    bool (*user) (void *context, const char *name, uint32_t *uid);
    /* Puts at most room members there; returns how many there are, POLICY_NO_GROUP, or
     * POLICY_GROUP_UNKNOWN when the system cannot tell. */
    long (*group) (void *context, const char *name, uint32_t *uids, size_t room);
} policy_names_t;

typedef struct policy_error {
    unsigned line; /* 0: the file as a whole */
    char text[POLICY_ERROR_SIZE];
} policy_error_t;

/* The policy of a file, counted once, or NULL with an error that names line and word. names NULL:
 * no user or group is known. */
policy_t *policy_parse (const char *text, size_t bytes, const policy_names_t *names,
                        policy_error_t *error);
/* One user more of the policy; accepts NULL. */
policy_t *policy_keep (policy_t *self);
void policy_drop (policy_t *self); /* accepts NULL */

enum { POLICY_DIGEST_BYTES = 16 };
/* Tells one text of the file from another; all zero where none was set. The digest is given by
 * whoever has read the file. */
void policy_set_digest (policy_t *self, const uint8_t digest[POLICY_DIGEST_BYTES]);
const uint8_t *policy_digest (const policy_t *self);

/* The lines in their order. */
size_t policy_count (const policy_t *self);
const principal_t *policy_at (const policy_t *self, size_t index);
/* The line of quotas for those who have none of their own; empty: there is none. */
const char *policy_limits (const policy_t *self);
/* NULL: not listed. */
const principal_t *policy_by_name (const policy_t *self, const char *name);
const principal_t *policy_by_key (const policy_t *self, const key_public_t *key);
const principal_t *policy_by_uid (const policy_t *self, uint32_t uid);
const principal_t *policy_by_address (const policy_t *self, const char *who);
/* The uid of the broker or root. */
bool policy_is_own_uid (const policy_t *self, uint32_t uid);
/* The first end of a principal after now, INT64_MAX for none. */
int64_t policy_next_end_ms (const policy_t *self, int64_t now_ms);
/* The same without invitations, which end all the time; accepts NULL. */
int64_t policy_next_loss_ms (const policy_t *self, int64_t now_ms);
/* When the ends of principals are to be judged: when one has come, and when the clock went back
 * behind the last time, because ends that were over may be to come again. */
typedef struct policy_ends {
    int64_t judged_ms;
    int64_t next_ms;
} policy_ends_t;
#define POLICY_ENDS_INIT                                                                           \
    {                                                                                              \
        INT64_MIN, INT64_MAX                                                                       \
    }
bool policy_ends_are_due (const policy_ends_t *self, int64_t wall_ms);
/* They were judged by this time; policy NULL: there are none. */
void policy_ends_judged (policy_ends_t *self, const policy_t *policy, int64_t wall_ms);
/* Some line lists a key. */
bool policy_has_keys (const policy_t *self);

/* The name of who joins by this invitation from this host, cut to size. Its length, as snprintf has
 * it; 0: the name needs a host, and host is empty. */
int principal_join_name (const principal_t *self, const char *host, char *out, size_t size);

/* identity is its name, or stands in its owns=. */
bool principal_is (const principal_t *self, const char *identity);

const char *role_name (role_t role);
unsigned role_rights (role_t role);

/* The file's text with one line changed, for who writes it: comments and order stay. line NULL
 * removes the line of that name, otherwise it takes its place, or comes last. The caller frees the
 * result; *out_bytes is its length. */
char *policy_text_put (const char *text, size_t bytes, const char *name, const char *line,
                       size_t *out_bytes);

#endif
