/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Several brokers on one database. Each is a process on a host of its own with its own clock. One
 * owns, the others look at its beats and take over.
 *
 * The database has rows, locks, and a server process for each transaction, which goes on when
 * nobody listens any more. It can be told only by what it answers. The processes do what
 * store/postgresql does: commit, read back, write behind, beat, take over, replay. */
#ifndef TASKMQ_SIM_CLUSTER_H
#define TASKMQ_SIM_CLUSTER_H

#include "core/base/beats.h"
#include "core/base/planted.h"
#include "sim.h"

enum {
    SIM_LEASE_MS = 4000,
    SIM_LOOK_MS = 250,
    SIM_LOCK_MS = 2000, /* for a lock, where a statement does not wait longer */
    SIM_NOBODY = -1     /* owns it */
};

/* What one commit brings. The process that made it, the session that was given it and the journal
 * share it; nobody changes the batch. */
typedef struct parcel {
    batch_t *batch;
    uint64_t epoch;
    uint64_t generation;
    uint64_t previous; /* batch that was acknowledged before it; one without space is left out */
    uint32_t host;
    int64_t started_ms; /* when the process that made it began to serve */
    bool acknowledged;  /* to that process */
    uint32_t refs;
} parcel_t;

parcel_t *parcel_keep (parcel_t *self);
void parcel_drop (parcel_t *self);

typedef struct parcels {
    parcel_t **list; /* zeroed memory is an empty list */
    size_t count;
    size_t capacity;
} parcels_t;

void parcels_add (parcels_t *self, parcel_t *parcel); /* keeps it */
void parcels_copy (parcels_t *self, const parcels_t *from);
void parcels_shift (parcels_t *self, size_t count);
void parcels_free (parcels_t *self);

/* The rows that say who may do what: tables shard, fence and written. */
typedef struct place {
    uint64_t epoch;
    uint64_t batch;
} place_t;

typedef enum fence { FENCE_COMMITS, FENCE_WRITES, FENCE_BLOBS, FENCES } fence_t;

typedef struct shard {
    uint64_t epoch;
    uint64_t beat;
    int32_t owner; /* a host, or SIM_NOBODY */
    uint64_t generation;
    uint32_t timeline; /* on which the owner found all its work */
    uint64_t fences[FENCES];
    place_t written;
} shard_t;

/* What a transaction changes, once it is committed. */
typedef struct change {
    int64_t at_ms;
    shard_t shard;       /* as it is then */
    parcel_t *appended;  /* to the journal; or NULL */
    parcels_t written;   /* whose images come into the tables */
    bool forgets;        /* rows of the journal: of the epoch of `from`, behind it and up to … */
    bool forgets_before; /* … and those of all epochs before */
    place_t from;
    place_t upto;
} change_t;

/* What a process asks, and is answered. */

typedef enum ask_kind {
    ASK_LOOK,   /* who owns it, and the beat */
    ASK_NEWEST, /* batch of this epoch that is durable */
    ASK_BEAT,
    ASK_APPEND,
    ASK_RELEASE,
    ASK_BLOB_KEEP, /* whether a blob is there, which touches it */
    ASK_BLOB_BEGIN,
    ASK_BLOB_PUT,
    ASK_BLOB_REMOVE,
    ASK_BLOB_FIND, /* something without a name */
    ASK_BLOB_SWEEP,
    ASK_BLOB_READ,
    ASK_SETTLE, /* what became of the commit in doubt; several statements from here on */
    ASK_WRITE,
    ASK_TAKE,
    ASK_REPLAY,
    ASK_BLOB_END,
    ASK_KINDS
} ask_kind_t;

/* What is asked of the blobs. */
typedef struct vault_ask {
    uint32_t blob;
    uint64_t number; /* of the put, or of what is swept */
    uint32_t from;   /* PUT: the units */
    uint32_t units;
    int64_t touched_ms;          /* REMOVE: when it was listed */
    uint64_t in_hand[SIM_BLOBS]; /* FIND: not these numbers */
} vault_ask_t;

typedef struct ask {
    ask_kind_t kind;
    uint64_t epoch;           /* the asker's own; of TAKE, as it was seen, like … */
    uint64_t beat;            /* … this */
    uint64_t generation;      /* TAKE: if it has to be a new one */
    uint32_t timeline;        /* BEAT: what the owner knows to be whole */
    parcel_t *parcel;         /* APPEND */
    const parcels_t *parcels; /* WRITE: the asker's, copied */
    bool again;               /* WRITE: nobody knows what became of it before … */
    uint64_t written;         /* … this was */
    vault_ask_t vault;        /* BLOB_… */
} ask_t;

typedef enum answer_code {
    ANSWER_NONE, /* yet */
    ANSWER_OK,
    ANSWER_FENCED,
    ANSWER_BUSY,      /* a lock stays taken */
    ANSWER_THERE,     /* it is, already */
    ANSWER_CUT,       /* what was there before is not any more */
    ANSWER_ELSEWHERE, /* somebody was faster, or the owner lives */
    ANSWER_FULL,      /* no space, and nothing of it is kept */
    ANSWER_AWAY
} answer_code_t;

typedef struct answer {
    answer_code_t code;
    shard_t shard;
    uint32_t timeline; /* the server's */
    uint64_t newest;
    uint64_t replayed;
    bool good;       /* of blobs: KEEP, READ and END */
    uint64_t number; /* … BEGIN, and FIND (0: none) */
} answer_t;

/* A process's end of a connection. */
typedef struct backend backend_t;
typedef struct session {
    backend_t *backend; /* works for it; NULL: none does */
    bool asks;
    int64_t lost_ms;      /* the connection is, then */
    uint32_t incarnation; /* of the database that it is connected to; 0: to none */
} talk_t;

/* Of the server process. */
struct backend {
    uint32_t host;
    bool heard; /* the asker waits */
    bool sent;  /* the statement is under way, and needs no asker any more */
    bool told;  /* to end */
    bool killed;
    bool done;
    ask_t ask;
    parcels_t parcels;
    size_t step;
    int64_t due_ms;
    size_t hangs_at; /* the step where it stands still, and the connection is lost; OPS_MAX: none */
    int64_t cut_ms;  /* … then */
    int64_t dies_ms; /* it is killed; SIM_END_OF_TIME: it is not */
    bool waits;      /* for a lock, since … */
    int64_t waits_since;
    unsigned locks;
    uint64_t seen_newest; /* when its first statement began, … */
    place_t seen_written; /* … and before that */
    answer_t answer;
    backend_t *next;
};

enum { LOCK_SHARD, LOCK_COMMITS, LOCK_WRITES, LOCK_BLOBS, LOCKS };

/* A failover that lost something, or after which a new history begins: the story ends here, and
 * only I17 is judged. */
typedef struct cut {
    bool happened;
    bool told; /* its story is told to the end */
    bool lost; /* what had been acknowledged */
    uint64_t epoch;
    uint64_t generation;
    place_t newest; /* that was lost */
} cut_t;

/* Blobs: puts, of which one at most is whole under the name of its blob. */
typedef struct vault_row {
    uint64_t number;
    uint32_t blob;
    uint64_t pieces; /* a bit for each unit */
    bool whole;
    int64_t touched_ms;
} vault_row_t;

typedef struct vault {
    vault_row_t *rows;
    size_t count;
    size_t capacity;
    uint64_t newest;
} vault_t;

typedef struct database {
    shard_t shard;
    parcels_t journal;
    vault_t vault;
    backend_t *backends;
    backend_t *locks[LOCKS];
    uint32_t timeline;
    uint32_t incarnation; /* counts its ends */
    uint64_t highest;     /* epoch that was begun in … */
    uint64_t highest_of;  /* … this generation */
    int64_t down_until;
    int64_t full_until;  /* its disk is */
    int64_t failover_ms; /* when it comes; SIM_END_OF_TIME: never */
    size_t loses_from;   /* place in the log, and 1, from which on all is lost; 0: it follows */
    bool failed_over;
    bool silenced; /* its owner, for the sake of the failover */
    change_t *log; /* only where a failover is to come */
    size_t log_count;
    size_t log_capacity;
    cut_t cut;
    int64_t maker_started_ms; /* of the batch that is being judged */
    uint32_t adoptions;
    uint32_t fenced;
    uint32_t settled;
    uint32_t landed;
    uint32_t full; /* commits that found no space */
} database_t;

/* The process, beside what every broker has. */

typedef enum life {
    LIFE_DOWN,
    LIFE_WATCHES,
    LIFE_TAKES,
    LIFE_BEATS, /* for the first time */
    LIFE_REPLAYS,
    LIFE_SERVES,
    LIFE_STOPS /* cleanly */
} life_t;

typedef enum committing { COMMITS_NOTHING, COMMITS_APPENDS, COMMITS_SETTLES } committing_t;
typedef enum writing { WRITES_NOTHING, WRITES_SOME, WRITES_AGAIN } writing_t;
typedef enum trouble { TROUBLE_NONE, TROUBLE_CRASH, TROUBLE_FREEZE, TROUBLE_STOP } trouble_t;

typedef struct host {
    uint32_t index;
    int64_t zero_ms; /* of its clock, … */
    int64_t rate;    /* … which runs so many ms in 1,000 */
    life_t life;
    uint64_t epoch;
    uint64_t generation;
    int64_t cut_off_until; /* from the database */
    int64_t away_since;    /* 0: it answers */
    /* Looking, and taking over. */
    talk_t own;
    beat_watch_t watch;
    shard_t seen;
    uint32_t seen_timeline;  /* the server's, then */
    uint32_t whole;          /* incarnation of the database that is known to have all, … */
    uint32_t whole_timeline; /* … and its timeline */
    bool owned_then;         /* when it went around its loop before it stood still */
    bool forgotten; /* its epoch is lost, and it stands still until another one begins that */
    int64_t next_look_ms;
    int64_t missed_ms; /* the newest look that had no answer */
    uint32_t tries;
    bool silent;
    boot_t early; /* what it knew before the replay */
    /* Beats. */
    talk_t beat;
    beats_t beats;
    int64_t next_beat_ms;
    int64_t sent_ms;       /* by its clock: the beat under way, … */
    int64_t asked_ms;      /* … and its newest question */
    bool beat_fresh;       /* a new connection: what was acknowledged is looked for first */
    bool beat_looks;       /* … now, … */
    bool beat_waits;       /* … or in a moment */
    uint64_t last_then;    /* what was acknowledged when it was asked, … */
    uint64_t written_then; /* … and written back, … */
    bool served_then;      /* … behind the replay */
    uint32_t timeline;
    /* Commits. */
    talk_t commit;
    committing_t committing;
    parcel_t *making;
    int64_t making_since;
    int64_t appended_ms; /* by its clock: sent last */
    int64_t again_ms;
    int64_t pause_ms;
    bool doubted;            /* the one that is being made, or was by a session before */
    bool never;              /* … and is not made again: there is no space */
    uint64_t settle_written; /* what was written back when that was asked */
    int64_t commit_at;       /* after one that found no space */
    uint64_t last;           /* acknowledged batch of this epoch */
    /* Write-backs. */
    talk_t write;
    writing_t writing;
    parcels_t behind;
    size_t writing_count;
    int64_t write_again_ms;
    uint64_t written;
    bool stalled; /* no space for rows */
    /* A start over for want of space, with what has no rows yet. */
    bool starts_over;
    uint64_t overlaid; /* the newest batch that look-ups see though it has no rows; 0: none */
    /* Blobs. */
    talk_t blobs;
    bool blobs_lost; /* its connection was, and who worked for it may still */
    /* What will happen to it. */
    trouble_t trouble;
    uint32_t trouble_in; /* so many points of its loop */
} host_t;

/* parcel.c */

/* The asker's batch, as a parcel. Takes it. */
parcel_t *parcel_new (const host_t *host, batch_t *batch, int64_t started_ms);

/* database.c */

void database_make (world_t *world);
void database_free (world_t *world);
/* The newest batch of the epoch that is durable; 0: none. */
uint64_t database_newest (const database_t *self, uint64_t epoch);
bool database_has (const database_t *self, const parcel_t *parcel);
/* Makes a change durable. Takes it. */
void database_commit (world_t *world, change_t *change);
change_t database_change (const world_t *world);
/* What a replay has to write. */
void database_unwritten (const world_t *world, uint64_t own_epoch, parcels_t *out);
bool database_is_up (const world_t *world);
bool database_is_full (const world_t *world);
void database_fill (world_t *world, bool briefly);
/* Once a second, by chance; and in each step. */
void database_faults (world_t *world);
void database_step (world_t *world);
int64_t database_next_ms (const world_t *world);

/* vault.c */

/* The blob is there, with all its bytes; NULL: it is not. */
const vault_row_t *vault_find (const world_t *world, uint32_t blob);
/* What only looks, … */
void vault_look (const world_t *world, backend_t *self);
/* … and what changes something, which becomes durable. */
void vault_commit (world_t *world, backend_t *self);
void vault_free (database_t *database);

/* talk.c */

void talk_ask (world_t *world, talk_t *self, const ask_t *ask);
/* ANSWER_NONE: it is waited for. */
answer_code_t talk_answer (world_t *world, talk_t *self, answer_t *out);
/* The process is gone, or does not wait any longer. */
void talk_drop (world_t *world, talk_t *self);
int64_t talk_next_ms (const world_t *world, const talk_t *self);
/* Those of a host that are named as the ones that ask for this, or with ASK_KINDS all of them, are
 * told to end, but for `except`. Returns how many there are: they may still finish what they are in
 * the middle of. */
size_t backends_end (world_t *world, ask_kind_t like, uint32_t host, const backend_t *except);
void backends_step (world_t *world);
void backends_die (world_t *world);
int64_t backends_next_ms (const world_t *world);

/* host.c */

void hosts_make (world_t *world);
void hosts_free (world_t *world);
int64_t host_ms (const world_t *world, int64_t world_ms);
int64_t host_world_ms (const world_t *world, int64_t own_ms);
/* Its wall clock goes as its other one does. */
int64_t host_wall_ms (const world_t *world);
int64_t hosts_latest_wall_ms (world_t *world);
bool host_reaches (const world_t *world);
/* All that was acknowledged was found since the database began anew, and the epoch is its own: else
 * nothing is read, for tables of another time do not fit what it has in memory. */
bool host_has_looked (const world_t *world);
/* It was found, just now. */
void host_found_whole (world_t *world);
/* Another one began behind it: a later epoch, or the same one where the database lost its. */
bool host_is_over (const world_t *world);
/* The process ends, and another one starts later. */
void host_end (world_t *world, const char *why);
void hosts_step (world_t *world);
int64_t hosts_next_ms (world_t *world);
/* The owner of the newest epoch that serves has the turn, or anybody. */
void hosts_turn_owner (world_t *world);
void host_freeze (world_t *world, int64_t least_ms);
/* One point of the loop. True: it goes no further. */
bool host_point (world_t *world);
void hosts_faults (world_t *world);
void hosts_heal (world_t *world);
void hosts_log (world_t *world);

/* keeping.c: what the process does while it owns. */

void keeping_begin (world_t *world);
void keeping_beat (world_t *world);
void keeping_step (world_t *world);
void keeping_leave (world_t *world);
/* True: it starts over, and has no turn. */
bool keeping_starts_over (world_t *world);
int64_t keeping_next_ms (const world_t *world);

/* cut.c */

/* A failover lost commits, up to this acknowledged one (lost), or a new history begins. */
void cut_happens (world_t *world, bool lost, place_t newest);
/* The owner had all that was lost in its memory, and has written it to the tables: nothing is. */
void cut_check_healed (world_t *world);
/* I17, of a commit and of an output. */
void cut_check_commit (world_t *world, const parcel_t *parcel);
void cut_check_output (world_t *world);
bool cut_ends_story (const world_t *world);
/* The end of a story that was cut. */
void cut_tell (world_t *world);

#endif
