/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* One request about keys, invitations and the access file while it is done: what its kinds share.
 * A kind judges, and changes the text of the file that it was given; the result is checked and
 * written by access_requests.c. */
#ifndef TASKMQ_BROKER_ACCESS_WORK_H
#define TASKMQ_BROKER_ACCESS_WORK_H

#include <pthread.h>

#include "access_file.h"
#include "access_line.h"
#include "core/access/policy.h"
#include "core/base/bucket.h"
#include "keys.h"
#include "taskmq.pb-c.h"
#include "units.h"

enum {
    ACCESS_KEYS_MAX = 2,           /* of a principal: the present one, and the one that follows */
    ACCESS_INVITATIONS_MAX = 1000, /* that count, or say who used them */
    ACCESS_PAGE_BYTES = 32 * 1024,
    /* Changes that a client makes to its own keys: so many at once, then so many in a second. Each
     * costs a sync, and a look at every link. */
    ACCESS_OWN_BURST = 8,
    ACCESS_OWN_PER_SECOND = 1,
    ACCESS_OWN_MAX = 256 /* principals that change theirs at the same time */
};

/* How often a principal may still change its own keys. */
typedef struct access_own {
    char name[TMQ_NAME_LENGTH_MAX + 1];
    bucket_t bucket;
} access_own_t;

typedef struct access_requests {
    access_file_t *file;       /* borrowed */
    int64_t (*now_ms) (void);  /* wall clock */
    int64_t (*mono_ms) (void); /* monotonic */
    /* Whose request made the file: the change ends the very link that it came on, so who repeats it
     * is told as the first time. */
    bool has_made;
    key_public_t made_for;
    uint32_t made_uid;
    access_own_t own[ACCESS_OWN_MAX];

    pthread_mutex_t lock; /* guards what follows: where those who join connect */
    bool has_key;
    key_public_t key;
    char address[JOIN_PLACE_BYTES_MAX + 1];
} access_requests_t;

enum { ACCESS_WHO_SIZE = KEY_TEXT_SIZE + 8 };

#define ACCESS_INVITATION_PREFIX "invite-"

typedef struct access_work {
    access_requests_t *self;
    errand_t *errand;
    const Taskmq__Request *request;
    int64_t now_ms;
    const char *before; /* the file as it is */
    size_t before_bytes;
    char *text; /* … as it is to be; NULL: as it was */
    size_t bytes;
} access_work_t;

/* The grants of a line, one by one. */
typedef struct access_words {
    char *copy; /* to be freed */
    char *list[POLICY_GRANTS_MAX];
    size_t count;
} access_words_t;

/* Words of lines. */
key_public_t access_work_key (const ProtobufCBinaryData *data);
const char *access_work_who (char out[ACCESS_WHO_SIZE], const char *kind, const key_public_t *key);
/* 0 is the empty text. */
const char *access_work_time (char out[TIME_TEXT_SIZE], int64_t ms);
void access_work_split (access_words_t *out, const principal_t *principal);
/* By which an invitation is told from others: its name without what all of them begin with. */
const char *access_work_invitation (const char *name);

/* Changing the text. `line` is taken; NULL: the line of this name goes. */
void access_work_begin (access_work_t *work, const char *text, size_t bytes);
void access_work_put (access_work_t *work, const char *name, char *line);
/* The line of a principal with these words changed; the file's text has not changed yet. */
void access_work_change_line (access_work_t *work, const principal_t *principal,
                              const access_line_t *wanted);

/* The kinds. policy: what the file says; NULL: there is none. */
void access_do_enroll (access_work_t *work, const policy_t *policy);
void access_do_trust (access_work_t *work, const policy_t *policy);
void access_do_revoke (access_work_t *work, const policy_t *policy);
void access_do_invite (access_work_t *work, const policy_t *policy);
void access_do_invite_revoke (access_work_t *work, const policy_t *policy);
/* Principals, or invitations that have not ended, from number `offset` on. */
void access_do_list (access_work_t *work, bool invitations, uint32_t offset);
void access_do_read (access_work_t *work);

#endif
