/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the engine asks of the store: point look-ups, page reads, and what a start finds. Plain
 * data, so that core knows of the store's answers without knowing a store. */
#ifndef TASKMQ_CORE_LOOKUP_H
#define TASKMQ_CORE_LOOKUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/access/access.h"
#include "core/data/batch.h"
#include "core/data/search.h"

/* Commits of before this start that it does not have, and never will. */
typedef struct lost {
    const char *why; /* static, for people; NULL: nothing is lost */
    /* Batches, which are numbered without gaps; first 0: which ones is not known, not even that
     * there were any. Behind the last one there may be more, of which nothing is left. */
    uint64_t first;
    uint64_t last;
} lost_t;

/* What a freshly opened store knows. */
enum { BOOT_INSTANCE_BYTES = 16 };
typedef struct boot {
    uint64_t generation;  /* of the event history, random, changes only when history was cut */
    uint64_t epoch;       /* counts starts; this start's number */
    int64_t last_number;  /* highest acceptance number ever given, 0 for none */
    uint64_t last_pos;    /* highest broker-wide event number, 0 for none */
    int64_t newest_id_ms; /* newest time in an id of a task or tombstone; 0: not known */
    int64_t newest_ms;    /* batch_t.expiry_ms of the newest commit, 0 for none (S20) */
    uint64_t tasks;       /* stored tasks */
    uint64_t recovered_batches; /* that stood in the journal */
    lost_t lost;                /* with the power, or because somebody gave them up */
    const char *journal_way;    /* how the journal is written: a word for the log, or NULL */
    /* Of several that may own the data in turn, this one; all zero where there can be but one. */
    uint8_t instance[BOOT_INSTANCE_BYTES];
} boot_t;
/* Numbers and positions once given are not given again after a failed commit; the gap is harmless,
 * a number that stands twice would not be. */
void boot_raise (boot_t *boot, const batch_t *batch);

/* Namespaces that the store has forgotten: without tasks and tombstones, and past the time that
 * events are kept. */
typedef struct forgotten_space {
    char name[TMQ_NAME_LENGTH_MAX + 1];
    uint64_t last_seq;
} forgotten_space_t;
typedef struct forgotten {
    /* No namespace that was ever forgotten had a later sequence, so those that are new, or come
     * back, begin behind it: no cursor that somebody still has means another event. */
    uint64_t upto_seq;
    forgotten_space_t *list; /* since the last time */
    size_t count;
} forgotten_t;

/* Point look-ups, on the server thread. */

typedef enum lookup_kind {
    LOOKUP_ID = 1,  /* (ns, id) */
    LOOKUP_DEDUP,   /* (ns, owner, dedup_key) */
    LOOKUP_ATTEMPT, /* (ns, id, attempt) */
    LOOKUP_ROW      /* (row_kind, row_key) */
} lookup_kind_t;

typedef struct lookup {
    lookup_kind_t kind;
    bool bodies; /* load payload and result too */
    const char *ns;
    tmq_id_t id;
    const char *owner;
    buf_t *owner_kept; /* … is in it, or NULL: in what lives longer; the asker's */
    const char *dedup_key;
    uint32_t attempt;
    row_kind_t row_kind;
    buf_t *row_key; /* the asker's */
    /* answers */
    record_t *record;     /* NULL: not in the tables; owned by the caller */
    tmq_code_t tombstone; /* EXPIRED or PURGED when only a tombstone is there, else TMQ_OK */
    int64_t tombstone_at;
    uint8_t tombstone_why;                         /* removal_t.why */
    char tombstone_owner[TMQ_OWNER_BYTES_MAX + 1]; /* who may know of it */
    char tombstone_queue[TMQ_NAME_LENGTH_MAX + 1];
    attempt_t *attempt_row; /* NULL: not in the tables; owned by the caller */
    bool row_found;
    buf_t *row_body; /* owned by the caller; NULL: empty, or not found */
    int64_t row_expires_at;
    bool damaged; /* what is stored is not what was written: no other answer counts */
} lookup_t;

/* The answer is a tombstone of this kind. */
void lookup_take_tombstone (lookup_t *key, const removal_t *removal);

/* What the store proposes for removal. */

typedef struct due {
    record_t **records; /* terminal tasks past their time to live, bare */
    size_t count;
    row_t *rows; /* past theirs, without bodies */
    size_t rows_count;
    uint64_t written; /* what stood in the tables then: a later change may be missing here */
} due_t;
void due_clear (due_t *self); /* frees what it holds */

/* Keys to be looked up. They may point into what asked for them. */
typedef struct key_list {
    lookup_t *keys; /* grown by realloc; zeroed memory is an empty list */
    size_t count;
    size_t capacity;
} key_list_t;

/* Reads in pages, on reader threads. */

typedef struct filter {
    const char *ns; /* never NULL: no read crosses a namespace */
    const char *const *queues;
    size_t queues_count;
    const tmq_status_t *statuses;
    size_t statuses_count;
    const char *const *sessions;
    size_t sessions_count;
    const label_t *labels; /* all of them must be there; marks of turns too (turn.h) */
    size_t labels_count;
    const char *const *owners; /* whom it belongs to */
    size_t owners_count;
    const tmq_id_t *parents; /* it is a part of one of them */
    size_t parents_count;
    int64_t created_since; /* half open; 0: open */
    int64_t created_until;
    bool by_body;    /* what is asked for stands in bodies: who may not read them finds nothing */
    access_t *scope; /* what the asker sees; NULL: everything in the namespace */
} filter_t;
static inline unsigned filter_right (const filter_t *filter)
{
    return filter->by_body ? RIGHT_BODY : RIGHT_READ | RIGHT_OBSERVE;
}
/* The asker sees tasks of this queue and owner. Not thread-safe: a scope is of one reader. */
static inline bool filter_sees (const filter_t *filter, const char *queue, const char *owner)
{
    return filter->scope == NULL ||
           access_sees (filter->scope, queue, owner, NULL, filter_right (filter));
}

typedef enum read_kind {
    READ_LIST = 1, /* records without bodies, newest first */
    READ_COUNT,
    READ_RESOLVE,  /* short id among the live and the newest TMQ_SUFFIX_TASKS_MAX */
    READ_HISTORY,  /* events of one task, oldest first, before a sequence */
    READ_EVENTS,   /* event blocks of a namespace after a sequence */
    READ_EXPORT,   /* newest events of their tasks after a position, with whole records */
    READ_SINCE,    /* sequence before the first event at or after a time */
    READ_ROWS,     /* rows of a kind whose keys begin with a prefix, in their order */
    READ_STANDING, /* whether events are still their tasks' newest */
    READ_ATTEMPTS, /* rows of a task's attempts, in their order */
    READ_PICK,     /* of these tasks those that match, without bodies, in the order asked for */
    READ_WHOLE,    /* tasks of all namespaces with bodies, the oldest first, behind a number */
    READ_BLOCKS,   /* event blocks of all namespaces after a position */
    READ_LASTING,  /* ended tasks that no time to live ends, without bodies, newest first */
    READ_SEARCH    /* as LIST, by what stands in texts; never a store's: an index answers it */
} read_kind_t;

/* A task, and an event that was its newest once. */
typedef struct standing {
    char ns[TMQ_NAME_LENGTH_MAX + 1];
    tmq_id_t id;
    uint64_t seq;
    bool stands; /* the answer: it still is, or the row is damaged, so that nobody knows */
} standing_t;

/* One exported line: an event that is its task's newest, and the task as it is stored. */
typedef struct export_item {
    uint64_t pos;
    uint64_t seq;
    record_t *record; /* with bodies */
} export_item_t;

enum { ROWS_READ_BYTES_MAX = 4 * 1024 * 1024 }; /* of keys and bodies in a page of rows */

typedef struct read {
    read_kind_t kind;
    /* questions */
    filter_t filter;       /* LIST, COUNT; of the others ns, of RESOLVE also scope */
    access_t scope;        /* what filter.scope points to, if it is set */
    int64_t before_number; /* LIST, COUNT, SEARCH, LASTING: smaller numbers; 0: from the newest */
    /* LIST, HISTORY, ROWS, ATTEMPTS: items; EVENTS, BLOCKS: bytes of blocks; EXPORT: items that
     * must be read from the tables; what is still in memory comes whole */
    size_t limit;
    size_t bytes_max;    /* LIST, EXPORT: may end when its records have so many
                              (record_wire_bytes, EXPORT also bodies); 0: only by limit */
    size_t vain_max;     /* LIST: may end after so many entries that were looked at in vain, COUNT:
                              after so many that were looked at; 0: no limit */
    char suffix[33];     /* RESOLVE */
    uint64_t last_seq;   /* HISTORY: the chain's start (the task's newest wanted event) */
    uint64_t after_seq;  /* EVENTS */
    uint64_t after_pos;  /* EXPORT, BLOCKS */
    bool from_tables;    /* EXPORT: another follower takes what is still in memory */
    int64_t since_ms;    /* SINCE */
    row_kind_t row_kind; /* ROWS */
    const buf_t *prefix; /* ROWS: NULL is every key; the asker's */
    const buf_t *after;  /* ROWS: only keys behind it; NULL: from the first; the asker's */
    int64_t task_number; /* ATTEMPTS */
    uint32_t after_attempt; /* ATTEMPTS: only greater ones */
    const int64_t *numbers; /* PICK: the asker's */
    size_t numbers_count;
    int64_t after_number; /* WHOLE */
    search_t *search;     /* SEARCH: the job's, with the answers */
    standing_t *standing; /* STANDING: the asker's, with the answers */
    size_t standing_count;
    /* answers, owned by the job */
    int error; /* 0, or the store's code; then the answers are empty */
    char error_text[256];
    record_t **records; /* LIST, PICK, WHOLE, SEARCH, LASTING */
    size_t records_count;
    int64_t
        next_number; /* LIST, COUNT: it ended early, go on below it; 0: it did not (a LIST goes on
                            behind its last record) */
    bool more;       /* LIST, COUNT, EVENTS, EXPORT, ROWS, ATTEMPTS, WHOLE, BLOCKS, SEARCH, LASTING:
                  something follows */
    uint64_t written;    /* what stood in the tables then, at least */
    uint64_t count;      /* COUNT: is added to; RESOLVE: how many match (2 stands for several) */
    tmq_id_t id;         /* RESOLVE; HISTORY (zero: not known), ATTEMPTS: a question, the task */
    buf_t *list;         /* HISTORY: a packed taskmq.EventList, oldest first */
    uint64_t before_seq; /* HISTORY: for the page before this one, 0: nothing before */
    event_block_t
        *blocks; /* EVENTS, BLOCKS: whole blocks, the first may begin before after_seq + 1,
                              or after_pos + 1 */
    size_t blocks_count;
    attempt_t *attempts; /* ATTEMPTS */
    size_t attempts_count;
    row_t *rows; /* ROWS: as many as limit and ROWS_READ_BYTES_MAX allow */
    size_t rows_count;
    uint64_t first_seq;     /* EVENTS: oldest retained sequence, 0: none retained */
    uint64_t last_seq_seen; /* EVENTS: newest sequence in the tables */
    export_item_t *items;   /* EXPORT */
    size_t items_count;
    void (*release) (void *held); /* … whose records belong to held; NULL: to the read */
    void *held;
    uint64_t upto_pos; /* EXPORT: everything up to it was considered, … */
    bool gap;          /* … but for events that are forgotten, if it was from_tables */
    uint64_t seq;      /* SINCE */
    void *context;     /* the asker's */
    bool away; /* the store was out of reach: there are no answers, and it may be run again */
    _Atomic bool cancelled; /* nobody waits for the answers: the reader may stop */
} read_t;

void read_clear (read_t *read); /* frees the answers */

#endif
