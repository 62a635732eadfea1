/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A stage for tests of rights: a broker with tasks of everybody, for which a policy comes to
 * count. */
#ifndef TASKMQ_TESTS_RIGHTS_STAGE_H
#define TASKMQ_TESTS_RIGHTS_STAGE_H

#include "core_rig.h"

enum {
    ME = 0,
    ELSE = 1,
    AWAY = 2
}; /* peers: the one that is judged, somebody, in namespace other */

/* Tasks, by whose and where they are. The queues: q, which the roles are granted, and z. */
enum {
    OWN = 1,
    FOREIGN,     /* q, of somebody else */
    QUEUE,       /* z, of somebody else */
    SPACE,       /* q of another namespace */
    HELD,        /* q, of somebody else, and I have its lease */
    STOLEN,      /* … somebody else has it, and I know its secret */
    DONE = 10,   /* the first four again, completed */
    GONE = 20,   /* the first three again, removed after their time to live */
    DOOMED = 30, /* the first four again, to be cancelled */
    MADE = 40    /* to be submitted: to q, to z */
};

enum { MY_WORKER = 50, ELSES_WORKER, HELPER, FAR_HELPER };

/* The roles. */

typedef struct role_case {
    const char *name;
    const char *grant;
    const char *owner; /* for whom it asks; NULL: for itself */
} role_case_t;
enum { ROLE_CASES_COUNT = 6 };
extern const role_case_t ROLE_CASES[ROLE_CASES_COUNT];

bool is_id (const ProtobufCBinaryData *bytes, unsigned n);
/* The lease of a task: mine, somebody else's, and of the others one that nobody has. */
Taskmq__Assignment *lease_of (rig_t *rig, unsigned n);
/* The rows of what is past its time to live are removed. */
void sweep (rig_t *rig);
void set_policy (rig_t *rig, const char *name, const char *grant);
/* Everything is made while everybody may do everything; then the policy becomes the one that is
 * tested. */
rig_t *stage_new (const role_case_t *role);
/* The policy that is tested. Its links meet the new rights, who is unchanged notices nothing. */
void take_role (rig_t *rig, const role_case_t *role);

#endif
