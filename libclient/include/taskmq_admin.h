/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* For who operates a broker: keys and rights, the record of deeds, backups. A part of taskmq.h,
 * which includes it. */
#ifndef TASKMQ_ADMIN_H
#define TASKMQ_ADMIN_H

#include "taskmq.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Who may use the broker. */

/* A line of the broker's access file: a principal, or an invitation to become one. All texts belong
 * to the report. */
typedef struct tmq_principal {
    const char *name;        /* of an invitation: of who joins; %h stands for the machine's name */
    const char *invitation;  /* its id; NULL: this is no invitation */
    const char *const *keys; /* public ones, tmqpk_… */
    size_t keys_count;
    const char *const *others; /* "uid:1000", "group:taskmq", "addr:10.0.0.7", "local" */
    size_t others_count;
    const char *const *grants; /* "worker(default/render*)", "operator" */
    size_t grants_count;
    uint64_t until;      /* its end, in ms since the epoch; 0: none */
    uint32_t uses;       /* of an invitation: how often it is still good */
    const char *used_by; /* … the address that used it last; empty: none has */
    uint64_t used_at;    /* … and when */
    uint32_t line;       /* of the file */
} tmq_principal_t;

/* The answer to a request of this section; which members it has is said there. Those that it does
 * not have are zero. Later versions append members. */
struct tmq_access_report {
    const tmq_principal_t *principals;
    size_t principals_count;
    uint32_t next;    /* offset of what follows, 0: nothing does */
    const char *text; /* what somebody has to know, or a part of the file */
    size_t text_bytes;
    const char *path;       /* of the access file, on the broker's machine */
    const char *join;       /* the line for who joins, tmqjoin_…: a secret */
    const char *server_key; /* the broker's key, tmqpk_… */
    const char *next_server_key;
    uint64_t at;    /* when that one counts, in ms since the epoch */
    uint32_t count; /* of keys, or of principals */
    bool made;      /* the access file was made by this */
    bool changed;
};
/* Wipes and frees it. Accepts NULL. */
TMQ_API void tmq_access_free (tmq_access_t *report);

/* The functions of this section wait for the answer, which comes after the access file is written
 * and the change counts. Each may be repeated after TMQ_UNKNOWN. *out is to be freed; it is not
 * touched unless the code is 0. All but tmq_enroll are for operators.
 * Codes of all: TMQ_DENIED (not an operator, or the broker may not write the file), TMQ_INVALID,
 * TMQ_LIMIT, TMQ_OVERLOADED, TMQ_STORE_FULL, TMQ_INTERNAL, and those of any request. */

/* Brings a public key of our own. On the link of an invitation, it becomes the key of whom the
 * invitation is for: host fills %h in the name (NULL: none). On the link of a key, the same
 * principal has both keys from then on. With `alone`, which is asked for on a link of the new key,
 * the other one ends. Gives one principal: the name, its grants and its end.
 * TMQ_DENIED: the invitation was used, and by whom, or has ended; TMQ_CONFLICT: the key or the name
 * is somebody else's. */
TMQ_API int tmq_enroll (tmq_access_t **out, tmq_client_t *client, const char *public_key,
                        const char *host, bool alone, uint32_t timeout_ms, tmq_error_t *error);

/* Principals from number offset on, in the order of the file; `next` for the following page. */
TMQ_API int tmq_key_list (tmq_access_t **out, tmq_client_t *client, uint32_t offset,
                          uint32_t timeout_ms, tmq_error_t *error);

/* Whom to trust, or to invite. Zeroed memory, then filled in. Borrowed during the call. */
typedef struct tmq_trust {
    const char *name;
    const char *public_key; /* tmq_key_trust: tmqpk_…; tmq_invite: unused */
    const char *const *grants;
    size_t grants_count; /* 1..16 */
    uint64_t until;      /* tmq_key_trust: in ms since the epoch; 0: no end */
    bool inherit;        /* tmq_key_trust: the name may own tasks already */
    uint32_t uses;       /* tmq_invite: 1..1000; 0: 1. More than one needs %h in the name */
    uint64_t lasts_ms;   /* tmq_invite: 1 s .. 30 d; 0: 1 h */
    const char *address; /* tmq_invite: HOST:PORT for who joins; NULL: what the broker says */
} tmq_trust_t;
/* Gives a name this key and these grants. `made` and `text`: the access file was made, and who
 * loses access by that. TMQ_CONFLICT: the key is somebody else's, or the name owns tasks. */
TMQ_API int tmq_key_trust (tmq_access_t **out, tmq_client_t *client, const tmq_trust_t *in,
                           uint32_t timeout_ms, tmq_error_t *error);
/* Ends a name, or (name NULL) one key. Its links end at once, and what its workers held goes back,
 * not counted. `count` keys ended; principals: the name, if it is gone. TMQ_NOT_FOUND. */
TMQ_API int tmq_key_revoke (tmq_access_t **out, tmq_client_t *client, const char *name,
                            const char *public_key, uint32_t timeout_ms, tmq_error_t *error);
/* Makes an invitation. `join` is the line for who joins, one principal has its id and its end;
 * `made` and `text` as for tmq_key_trust. The secret in the line is made here and never travels.
 * TMQ_CONFLICT: the name is taken; TMQ_UNSUPPORTED: the broker listens on no address with keys. */
TMQ_API int tmq_invite (tmq_access_t **out, tmq_client_t *client, const tmq_trust_t *in,
                        uint32_t timeout_ms, tmq_error_t *error);
/* Invitations from number offset on, also those that were used up. */
TMQ_API int tmq_invite_list (tmq_access_t **out, tmq_client_t *client, uint32_t offset,
                             uint32_t timeout_ms, tmq_error_t *error);
/* Takes one back by its id; `count` is 0 if it was gone. */
TMQ_API int tmq_invite_revoke (tmq_access_t **out, tmq_client_t *client, const char *invitation,
                               uint32_t timeout_ms, tmq_error_t *error);
/* The broker gets a new key in in_ms, or now (0). `server_key`, `next_server_key` and `at`. */
TMQ_API int tmq_server_key_rotate (tmq_access_t **out, tmq_client_t *client, uint64_t in_ms,
                                   uint32_t timeout_ms, tmq_error_t *error);
/* The broker reads its configuration and the access file now. `count` principals; `changed`: the
 * access file has. TMQ_INVALID: the file and the line that is wrong, and nothing of it counts. */
TMQ_API int tmq_reload (tmq_access_t **out, tmq_client_t *client, uint32_t timeout_ms,
                        tmq_error_t *error);
/* The access file from byte offset on: `text` (not NUL-terminated within), `path`, `next`.
 * TMQ_NOT_FOUND: there is none. */
TMQ_API int tmq_access_read (tmq_access_t **out, tmq_client_t *client, uint32_t offset,
                             uint32_t timeout_ms, tmq_error_t *error);

/* The record of deeds, backups, and the broker's space. */

/* A part of a file. What does not apply is 0 or "". */
struct tmq_file_part {
    const char *bytes; /* length of them, and a NUL that is not counted */
    size_t length;
    uint32_t file;    /* where to go on */
    uint64_t offset;  /* ... and behind which byte */
    bool more;        /* there is more now; of a backup without bytes: it is being made */
    uint64_t total;   /* of a backup: bytes of all of it, ... */
    const char *name; /* ... and its file in the broker's data directory */
    uint64_t n;       /* of the last part of a backup: large bodies that its tasks name and that it
                         lacks, missing or damaged; of a head: number of the newest line, ... */
    uint8_t hash[32]; /* ... and the hash behind it */
};
/* Accepts NULL. */
TMQ_API void tmq_part_free (tmq_part_t *part);

/* Which lines of the record are wanted. Later versions append members. */
typedef struct tmq_audit_query {
    size_t size;       /* sizeof (tmq_audit_query_t); set by the initialiser */
    uint32_t file;     /* as the page before said; 0: the newest lines, or those since `since` */
    uint64_t offset;   /* the same */
    const char *kind;  /* NULL: all */
    const char *actor; /* NULL: everybody's */
    int64_t since;     /* ms since the epoch; only with file 0; 0: not given */
    uint32_t limit;    /* lines, at most TMQ_AUDIT_LINES_MAX; 0: TMQ_AUDIT_LINES_DEFAULT */
} tmq_audit_query_t;
TMQ_API void tmq_audit_query_init (tmq_audit_query_t *out, size_t size);
#define tmq_audit_query_init(out) tmq_audit_query_init ((out), sizeof *(out))
/* A page of lines of the record of deeds, JSON objects one a line. */
TMQ_API int tmq_audit (tmq_part_t **out, tmq_client_t *client, const tmq_audit_query_t *in,
                       uint32_t timeout_ms, tmq_error_t *error);
/* Where the record stands: n and hash. */
TMQ_API int tmq_audit_head (tmq_part_t **out, tmq_client_t *client, uint32_t timeout_ms,
                            tmq_error_t *error);
/* A part of the backup with this id of 16 bytes, from an offset on. The first call with an id has
 * it made. Until it is made the answer has `more` but no bytes: call again soon, at least once in
 * some seconds, or the broker gives it up. with_keys: the broker's secret key too.
 * Codes: LIMIT (another one is being made), STORE_FULL, NOT_FOUND (it is not kept any more). */
TMQ_API int tmq_backup (tmq_part_t **out, tmq_client_t *client, const uint8_t id[16],
                        uint64_t offset, bool with_keys, uint32_t timeout_ms, tmq_error_t *error);

/* How far the vacuum is. */
struct tmq_vacuum_state {
    uint64_t file_bytes;  /* of the broker's tables; 0: not known yet */
    uint64_t free_bytes;  /* of them: nothing is in there */
    uint64_t given_bytes; /* back to the file system, since it began */
    bool more;            /* it goes on: call again, without begin */
};
/* Accepts NULL. */
TMQ_API void tmq_vacuum_state_free (tmq_vacuum_state_t *vacuum);
/* With begin: the broker gives the free space in its tables back to the file system, step by step
 * beside its work. Never waits for the end. Begun again while it goes on, it goes on.
 * Codes: STORE_FULL (there was no space to move what is kept; nothing is lost), UNSUPPORTED. */
TMQ_API int tmq_vacuum (tmq_vacuum_state_t **out, tmq_client_t *client, bool begin,
                        uint32_t timeout_ms, tmq_error_t *error);

/* A task that retention would remove. */
typedef struct tmq_cleanup_item {
    tmq_id_t id;
    tmq_status_t status;
    const char *queue;   /* of the page */
    tmq_policy_t policy; /* that lets it go, ... */
    bool of_namespace;   /* ... that of the namespace, else of the queue */
    uint64_t age_ms;     /* since its end */
    uint64_t bytes;      /* of its payload and result */
} tmq_cleanup_item_t;

/* How far a pass of retention is, or a page of what one would remove. */
struct tmq_cleanup_state {
    const tmq_cleanup_item_t *items; /* of a look, the newest first */
    size_t count;
    const char *next; /* of a look: opaque text, empty: nothing follows */
    uint64_t pass;    /* its number, for the next call */
    bool more;        /* it goes on, or waits for its turn */
    uint64_t looked;  /* tasks that were looked at */
    uint64_t removed; /* tasks, and the bytes of their payloads and results */
    uint64_t removed_bytes;
};
/* Accepts NULL. */
TMQ_API void tmq_cleanup_state_free (tmq_cleanup_state_t *cleanup);
/* Pass 0: what the rules of the namespace and of its queues let go is removed now, in the
 * background. Never waits for the end: call again with the pass that the answer names. The broker
 * does so by itself at its start and each day. */
TMQ_API int tmq_cleanup (tmq_cleanup_state_t **out, tmq_client_t *client, uint64_t pass,
                         uint32_t timeout_ms, tmq_error_t *error);
/* A page of what would be removed now, at most limit (0: 50) tasks behind the cursor (NULL or
 * empty: from the newest). Nothing is removed.
 * Codes: LIMIT (others are looking), BAD_CURSOR. */
TMQ_API int tmq_cleanup_look (tmq_cleanup_state_t **out, tmq_client_t *client, const char *cursor,
                              uint32_t limit, uint32_t timeout_ms, tmq_error_t *error);

#ifdef __cplusplus
}
#endif
#endif
