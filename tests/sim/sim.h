/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The whole system in one thread under a virtual clock: the real engine and validator, the real
 * journal on a disk in memory, a model of the tables, a network and clients that fail by chance.
 * Everything follows from the seed, but the journal's salts.
 *
 * A run has two phases. In the safety phase things break; the checker compares every answer with
 * what the store has made durable. In the liveness phase nothing breaks any more and every accepted
 * task must come to its end (I11). Then an audit reads everything back. */
#ifndef TASKMQ_SIM_H
#define TASKMQ_SIM_H

#include <stdarg.h>
#include <sys/types.h>

#include "core/base/tenure.h"
#include "core/engine/engine.h"
#include "model.h"
#include "rng.h"
#include "taskmq.h"
#include "taskmq.pb-c.h"

enum { SIM_BROKERS_MAX = 3, SIM_SWEEP_MS = 2000 };
enum { SIM_CLIENTS_MAX = 48, SIM_QUESTIONS = 3, SIM_STATE_BYTES = 12, SIM_PAYLOAD_MAX = 300 };
#define SIM_END_OF_TIME INT64_MAX

/* What may happen, and how often. per_mille where nothing else is said. */
typedef struct sim_options {
    uint64_t seed;
    unsigned planted_bug;
    bool verbose;
    uint32_t submitters;
    uint32_t workers;
    uint32_t subscribers;
    uint32_t libraries;     /* programs that use the library's core */
    uint32_t menders;       /* who retry, set, purge and adopt */
    uint32_t safety_ms;     /* length of the safety phase */
    uint32_t delay_ms_max;  /* of a message */
    uint32_t lose;          /* a client's message vanishes */
    uint32_t repeat;        /* a client's message arrives twice */
    uint32_t cut;           /* a link ends, per second and link */
    uint32_t stall;         /* a link delivers nothing for a while, per second and link */
    uint32_t refuse;        /* an output of the broker is refused by the transport */
    uint32_t broker_crash;  /* per point of the broker's loop at which it may crash */
    uint32_t broker_freeze; /* per drain: the loop stands still for a while */
    uint32_t commit_full;   /* a commit finds no space; of several: per second, for a while */
    uint32_t client_crash;  /* per second and client */
    uint32_t commit_ms_max;
    uint32_t write_ms_max; /* lag of the write-back */
    uint32_t clock_leap;   /* the wall clock leaps, per second */
    uint32_t damage;       /* files of blobs are damaged now and then */
    uint32_t retention;    /* some tasks have no ttl, and a rule how long they stay */
    uint32_t away;         /* the store goes out of reach, per second; 0: it has no lease either */
    uint32_t tables;       /* reads are answered by real tables and a real index */
    uint32_t brokers;      /* on one database; 1: a broker has its own disk */
    uint32_t failover;     /* of the database, which loses something: one of SIM_FAILOVER_… */
    uint32_t host_crash;   /* per second and host, as the next ones */
    uint32_t host_freeze;
    uint32_t host_stop;    /* cleanly */
    uint32_t host_cut;     /* it does not reach the database for a while */
    uint32_t session_cut;  /* per question to the database: its answer is lost, … */
    uint32_t session_hang; /* … or comes later */
} sim_options_t;

/* What it loses. */
enum {
    SIM_FAILOVER_NONE,
    SIM_FAILOVER_ANY,
    SIM_FAILOVER_WRITE,   /* a write-back alone */
    SIM_FAILOVER_ADOPTION /* all of the newest epoch */
};

/* Network. */

typedef struct packet {
    int64_t due_ms;
    uint8_t *envelope;
    size_t envelope_bytes;
    uint8_t *body;
    size_t body_bytes;
    struct packet *next;
} packet_t;

typedef struct packet_queue {
    packet_t *head;
    packet_t *tail;
    int64_t last_due_ms; /* a link keeps the order */
} packet_queue_t;

struct client;

/* One connection. It ends for each side at its own time. */
typedef struct wire {
    peer_t peer;
    struct client *client;
    struct broker *broker;
    bool open_at_client;
    bool open_at_broker;
    bool cut; /* the wire is dead; both sides will notice */
    int64_t stalled_until;
    int64_t client_notices_at;
    int64_t broker_notices_at;
    bool broker_is_told; /* the hint of A48 comes */
    bool refused;        /* the transport refused an output of the broker */
    bool registered;     /* a worker registered on it and knows that it did */
    packet_queue_t up;
    packet_queue_t down;
    struct wire *next;
} wire_t;

/* Clients. */

typedef struct world world_t;
typedef struct client client_t;

/* A request without an answer yet: packed, so that it can be sent again as it was. */
typedef struct pending {
    uint64_t id;
    uint8_t *request;
    size_t request_bytes;
    uint8_t *body;
    size_t body_bytes;
    Taskmq__Request__OpCase op;
    bool sent;
    bool refused; /* answered "later" */
    int64_t sent_ms;
    uint64_t context; /* the actor's */
    void *data;       /* the actor's, freed with the request */
    struct pending *next;
} pending_t;

typedef enum client_state {
    CLIENT_DOWN = 1, /* crashed, or between connections: comes back at wake_ms */
    CLIENT_HELLO,    /* waits for the welcome */
    CLIENT_LINKED
} client_state_t;

/* What an actor does with what the client receives. Functions may be NULL. */
typedef struct actor {
    const char *name;
    void (*start) (client_t *client); /* a process begins (also after a crash) */
    void (*stop) (client_t *client);  /* the process is gone; everything in memory is lost */
    void (*linked) (client_t *client);
    void (*tick) (client_t *client); /* at client->next_ms or later, when linked */
    void (*reply) (client_t *client, pending_t *pending, const Taskmq__Reply *reply,
                   const uint8_t *body, size_t body_bytes);
    /* What client_tell sent was refused. */
    void (*refused) (client_t *client, uint64_t id, uint32_t code);
    void (*message) (client_t *client, const Taskmq__BrokerMessage *message, const uint8_t *body,
                     size_t body_bytes);
    /* In place of all of client.c's own doings. */
    void (*step) (client_t *client);
    int64_t (*next_ms) (const client_t *client);
} actor_t;

struct client {
    world_t *world;
    uint32_t index;
    const actor_t *actor;
    void *state; /* the actor's; lives through crashes (what must not is cleared by stop) */
    const char *ns;
    const char *identity;
    client_state_t status;
    bool running;
    bool gone_for_good; /* until the liveness phase */
    wire_t *link;
    uint32_t endpoint; /* number of the broker that it tries */
    uint8_t token[16];
    uint64_t generation;
    uint64_t next_request;
    pending_t *pending;
    int64_t wake_ms;
    int64_t next_ms;
    int64_t linked_ms; /* of the last welcome */
    int64_t heartbeat_ms;
    int64_t heard_ms;
    peer_t newest; /* its last connection */
    /* A worker whose connection's end was told to the broker, and when its leases must be back. */
    uint8_t gone_id[16];
    int64_t gone_due_ms; /* 0: nobody */
};

/* Broker. */

typedef struct flying_read {
    read_t *read;
    int64_t due_ms;
    struct flying_read *next;
} flying_read_t;

/* Pieces of logs that the server has and that are not in a file yet (logs.c). */
enum { SIM_LOG_BYTES_MAX = 1500 };
typedef struct logs {
    node_t pieces;
    size_t bytes;
    int64_t due_ms; /* of the next one to be done */
} logs_t;
void logs_fill (const tmq_id_t *id, uint32_t attempt, uint64_t offset, uint8_t *out, size_t length);
void logs_step (struct world *world);
void logs_forget (logs_t *self);

typedef struct disk disk_t;
typedef struct ledger ledger_t;

/* What became of the commit that was under way when the store went out of reach (reach.c). */
typedef enum doubt {
    DOUBT_NONE,
    DOUBT_LANDED, /* it is durable, and only the answer was lost */
    DOUBT_LANDS,  /* it is on its way, and becomes durable at lands_at */
    DOUBT_LOST    /* nothing of it came */
} doubt_t;
typedef struct reach {
    tenure_t tenure;
    bool told_away; /* … to the engine */
    bool told_shut;
    int64_t goes_at; /* it goes out of reach with a commit under way, or then; or never */
    int64_t away_since;
    int64_t away_until; /* in the past: it is in reach */
    int64_t beat_at;    /* the last one, and the next */
    int64_t next_beat_at;
    doubt_t doubt;
    int64_t lands_at;
    uint64_t landed; /* a commit in doubt that did, and the engine is not told; 0: none */
    uint32_t times;
} reach_t;

/* Blobs (depot.c): what the server has of them, and what it is about to do. */
enum { SIM_BLOBS = 20, SIM_UNIT_BYTES = 10000 };
typedef struct sim_file {
    bool whole;
    bool damaged;
    bool going; /* is about to be collected */
    int64_t touched_ms;
} sim_file_t;
typedef struct sim_upload {
    uint32_t units;
    int64_t told_ms; /* when the engine was told that it is whole; 0: never by this start */
} sim_upload_t;
/* What is put into the database: so many units of it are there; number 0: it is not begun. */
typedef struct sim_put {
    uint64_t number;
    uint32_t units;
} sim_put_t;
/* A blob of the database that stood still when it was touched then, and is removed later. */
typedef struct sim_going {
    int64_t at_ms; /* 0: it is not */
    int64_t touched_ms;
    bool asked;
} sim_going_t;
typedef struct sim_depot {
    sim_file_t files[SIM_BLOBS];
    sim_put_t puts[SIM_BLOBS];
    sim_going_t going_stored[SIM_BLOBS];
    sim_upload_t uploads[4][SIM_BLOBS]; /* by namespace and identity */
    struct depot_job *jobs;
    int64_t look_ms;
    int64_t sweep_ms; /* of what the database has without a name */
    uint32_t collected;
} sim_depot_t;

typedef struct broker {
    struct host *host; /* of several (cluster.h); NULL: there is one broker */
    reach_t reach;
    engine_t *engine; /* NULL: down */
    disk_t *disk;     /* with the journal (disk.c) */
    ledger_t *ledger; /* the tables and the index (ledger.c); NULL: the model answers */
    int64_t start_ms; /* when it comes back */
    int64_t frozen_until;
    int64_t last_tick_ms;
    int64_t heard_ms; /* what had arrived by then was handled */
    int64_t deadline_ms;
    bool tick_wanted;
    bool sends;     /* it stands still in the middle of its outputs */
    batch_t *batch; /* being committed */
    int64_t commit_due_ms;
    uint64_t durable; /* committed, the engine is not told yet; 0: none */
    int64_t durable_due_ms;
    int64_t write_due_ms; /* of the next write-back; SIM_END_OF_TIME: none needed */
    uint64_t written_told;
    int64_t full_until; /* submissions are refused; 0: there is space */
    int64_t sweep_ms;
    flying_read_t *reads;
    logs_t logs;
    sim_depot_t depot;
    arena_t *arena;
    int64_t started_ms;      /* this run of it, or its last restart from the store, … */
    int64_t started_wall_ms; /* … by the wall clock */
    uint32_t crashes;
    uint32_t resets;
} broker_t;

/* A name in a request. It points into itself. */
typedef struct blob_name {
    Taskmq__Blob blob;
    uint8_t hash[TMQ_BLOB_HASH_BYTES];
} blob_name_t;

/* Checker. */

typedef struct assigned {
    uint32_t attempt;
    uint8_t secret[16];
    uint32_t worker; /* index of the client */
    int64_t at_ms;
    bool brought; /* a success, which is … */
    uint8_t result_seed;
    uint32_t result_bytes;
} assigned_t;

enum { SIM_AFTER_MAX = 3 }; /* tasks that one waits for */
enum { SIM_TURNS_MAX = 24, SIM_TURN_BYTES = 40, SIM_TURN_BODY = 128, SIM_WAYS = 16 };

/* What the clients know about one task. */
typedef struct known {
    tmq_id_t id;
    const char *ns;
    const char *queue;
    char dedup_key[24];
    uint32_t owner;         /* 0 or 1: which identity */
    uint32_t payload_bytes; /* the bytes follow from the index and `content` */
    uint32_t content;
    uint64_t ttl_ms;
    uint32_t lease_ms;
    uint32_t max_attempts;
    uint8_t priority;
    uint32_t delay_ms;
    int64_t not_before; /* wall; beside it delay_ms is 0; 0: none, and the next two */
    int64_t start_by;
    uint32_t max_runtime_ms;
    uint8_t key;           /* its fair key; 0: none */
    uint8_t session;       /* 0: none */
    uint32_t blob;         /* its payload: number + 1; 0: none */
    bool needs;            /* only strong workers may have it */
    bool submitted;        /* sent at least once */
    bool accepted;         /* acknowledged */
    bool refused;          /* some submit of it was */
    uint32_t alias;        /* the answer named another task (dedup key): its index + 1 */
    bool removed;          /* somebody was told EXPIRED or PURGED */
    bool cancelled;        /* a cancel was acknowledged */
    uint32_t completed_by; /* attempt whose completion was acknowledged; 0: none */
    uint32_t result_bytes;
    uint8_t result_seed;
    tmq_status_t ended; /* terminal status that somebody was told */
    struct {
        uint32_t index;
        uint32_t policy;
        bool unsure;        /* not known to be accepted when the task was sent first */
    } after[SIM_AFTER_MAX]; /* what it waits for */
    uint32_t after_count;
    unsigned ends;    /* a bit for each terminal status that was durable */
    bool gone;        /* its removal was durable */
    uint64_t version; /* newest that somebody was told */
    assigned_t *assigned;
    size_t assigned_count;
    struct {
        bool asked;     /* acknowledged */
        uint8_t answer; /* that somebody was told to count; 0: none */
    } questions[SIM_QUESTIONS];
    uint32_t parent;     /* its index + 1; 0: it is a part of none */
    int64_t number;      /* of acceptance, as it was durable; 0: it never was */
    uint64_t changed_by; /* the newest commit that changed it, as world_t counts them */
    /* What menders do with it. */
    bool revived;      /* it may be asked to go on after its end */
    uint32_t revivals; /* requests to do so that were sent */
    bool purging;      /* a purge was sent, or retention may remove it */
    bool lasting;      /* it has no time to live */
    bool set;          /* … a set */
    uint32_t revived_events;
    uint32_t late_events;
    uint32_t fresh_from; /* attempt of the newest retry that was durable: its state is gone */
    uint32_t state_of;   /* newest attempt whose checkpoint was acknowledged */
    uint32_t kept_of;    /* newest attempt whose late success was said to be kept */
    /* Turns: what is durable (teller.c). Sets of turns have a bit for each place. */
    struct {
        uint32_t attempt;
        uint32_t number; /* of this attempt */
    } told[SIM_TURNS_MAX];
    uint32_t turns;
    uint32_t turn_events;
    uint32_t superseded;
    uint32_t resumed_from;   /* from_turn_plus_1 of each resume that was sent, as a bit */
    uint32_t ways[SIM_WAYS]; /* what may be superseded behind the events of a batch */
    uint32_t ways_count;     /* 0: there was no event */
} known_t;

/* What a prowler's line in the policy grants: role and queue, as prowler.c numbers them. */
enum { PROWLERS = 3, GRANTS_MAX = 2, SHARERS = 2, SIM_SHARED = 2 /* their namespace */ };
typedef struct rights {
    uint32_t count; /* 0: it has no line */
    struct {
        uint32_t role;
        uint32_t queue;
    } grants[GRANTS_MAX];
} rights_t;

struct world {
    sim_options_t options;
    rng_t rng;
    int64_t mono_ms;
    int64_t wall_offset_ms;
    int64_t wall_latest_ms; /* the wall clock's latest time so far */
    bool faults;            /* the safety phase */
    bool failed;
    char failure[1024];
    model_t *model;
    uint64_t commits;      /* that became durable, … */
    uint64_t heard;        /* … and those that the engine knows of */
    uint64_t committed_no; /* batch of the newest one */
    broker_t brokers[SIM_BROKERS_MAX];
    broker_t *broker;          /* whose turn it is */
    struct database *database; /* of several brokers (cluster.h); NULL: there is one */
    wire_t *links;
    peer_t next_peer;
    client_t clients[SIM_CLIENTS_MAX];
    uint32_t clients_count;
    known_t tasks[MODEL_TASKS_MAX];
    uint32_t tasks_count;
    struct {
        uint32_t rate;    /* that is stored of a queue; 0: none, … */
        int64_t since_ms; /* … from when on, … */
        uint32_t claims;  /* … and how many became durable since */
        uint32_t starts;  /* of the broker, by then */
    } rates[3];
    struct {
        int64_t number; /* of an ended task that lives again, or was purged, … */
        int64_t at_ms;  /* … and when it was not kept any more */
        uint64_t bytes;
    } left[MODEL_ROWS_MAX];
    uint64_t counted;       /* puts of sharers that were answered OK, … */
    uint64_t maybe_counted; /* … and whose answer nobody heard */
    uint64_t items;         /* the same of items */
    uint64_t maybe_items;
    uint64_t told[MODEL_NAMESPACES]; /* the newest event that somebody was told of */
    rights_t rights[PROWLERS];
    policy_t *policy; /* that says so */
    uint64_t steps;
    uint64_t completions;
};

/* world.c. */

/* The options that a seed stands for. */
sim_options_t sim_options_of (uint64_t seed);
/* The same with several brokers on one database, which fails over, or has no space at times: both
 * perhaps, or one for certain. */
typedef enum sim_trial {
    SIM_TRIAL_ANY,
    SIM_TRIAL_FAILOVER,
    SIM_TRIAL_WRITE_BACK, /* … that loses a write-back alone, … */
    SIM_TRIAL_ADOPTION,   /* … or all of an epoch */
    SIM_TRIAL_SPACE
} sim_trial_t;
sim_options_t sim_options_shared (const sim_options_t *alone, sim_trial_t trial);
void sim_options_print (const sim_options_t *options);
/* Runs all of it; false if the checker found something, then failure says what. */
bool sim_run (const sim_options_t *options, char *failure, size_t failure_size,
              uint64_t *completions);
/* Until done says so, for so long at most; true if it did. */
bool sim_go_on (world_t *world, int64_t ms, bool (*done) (const world_t *world));
int64_t sim_wall_ms (const world_t *world);
/* The first failure is kept; the run ends soon after. */
void sim_fail (world_t *world, const char *format, ...) __attribute__ ((format (printf, 2, 3)));
void sim_log (world_t *world, const char *format, ...) __attribute__ ((format (printf, 2, 3)));
/* True in per_mille of 1,000 cases while faults are on. */
bool sim_fault (world_t *world, uint32_t per_mille);

/* network.c. */

wire_t *wire_open (client_t *client);
/* Takes both buffers (body may be NULL). */
void wire_send_up (wire_t *link, uint8_t *envelope, size_t envelope_bytes, uint8_t *body,
                   size_t body_bytes, bool may_repeat);
bool wire_send_down (wire_t *link, const output_t *output);
/* The next message that has arrived, or NULL. The caller frees it by packet_free. */
packet_t *wire_receive_up (wire_t *link);
packet_t *wire_receive_down (wire_t *link);
void packet_free (packet_t *packet);
/* The client ends it. */
void wire_close (wire_t *link);
/* The wire ends; both sides notice later. */
void wire_cut (wire_t *link);
wire_t *wire_find (world_t *world, peer_t peer);
/* The broker is gone: its ends close. */
void network_broker_gone (world_t *world);
/* Cuts and stalls by chance; called once per virtual second. */
void network_faults (world_t *world);
/* Removes links that both sides have left. */
void network_sweep (world_t *world);
int64_t network_next_ms (const world_t *world);
void network_free (world_t *world);

/* broker.c. */

void broker_step (world_t *world);
int64_t broker_next_ms (const world_t *world);
/* By the clocks of its host. */
now_t broker_now (const world_t *world);
/* It starts from its own disk; … what a start takes into memory. */
void broker_start (world_t *world);
void broker_restore (world_t *world, const boot_t *boot);
/* A process that owns its database begins, … */
void broker_serve (world_t *world, const boot_t *boot);
/* … goes once around its loop, … */
void broker_turn (world_t *world);
/* … drops what is not durable, and begins again from the store, … */
void broker_drop (world_t *world);
void broker_start_over (world_t *world);
/* … and is gone, with its links. */
void broker_gone (world_t *world);
/* Of all brokers, so far. */
uint32_t broker_starts (const world_t *world);
void broker_crash (world_t *world);
void broker_free (world_t *world);
/* A batch becomes durable. Takes it. */
void broker_commit (world_t *world, batch_t *batch);

/* disk.c. */

/* Reads the journal: what of it the model did not know for certain is durable in the model then,
 * and the tables have it. False: the start loses power as well. */
bool disk_start (world_t *world, boot_t *boot);
/* Durable; false: there is no space. */
bool disk_commit (world_t *world, batch_t *batch);
/* The broker crashes, in the middle of a commit (NULL: of none). True: it was durable all the same.
 * Else the batch is taken, and the next start says. */
bool disk_crash (world_t *world, batch_t *batch);
/* The tables have what the model says that they have. */
void disk_written (world_t *world);
void disk_free (world_t *world);

/* reach.c. */

void reach_start (world_t *world);
/* Once a second: it will go out of reach by chance, … */
void reach_faults (world_t *world);
/* … and does when a commit is under way. */
void reach_goes (world_t *world);
/* In each step of a broker that runs. */
void reach_step (world_t *world);
/* The engine learns what the tenure says; time stands still for workers meanwhile. */
void reach_tell (world_t *world);
bool reach_is_away (const world_t *world);
/* Somebody else may own the store from then on. */
int64_t reach_valid_until (const world_t *world);
/* A look-up or a read finds it out of reach. */
bool reach_misses (world_t *world);
/* The output must not leave; the engine knows. */
bool reach_keeps_output (world_t *world, const output_t *output);
bool reach_may_judge (world_t *world, int64_t *stood_ms);
/* The commit in doubt becomes durable now. */
bool reach_lands (const world_t *world);
/* It can be found out what became of it. */
bool reach_settles (world_t *world);
int64_t reach_next_ms (const world_t *world);

/* ledger.c. Without one each of these does nothing, and the model reads. */

void ledger_make (world_t *world);
/* Before the model's tables have what its journal has. */
void ledger_write (world_t *world);
/* … and behind it. */
void ledger_check_written (world_t *world);
void ledger_start (world_t *world);
void ledger_crash (world_t *world);
void ledger_step (world_t *world);
void ledger_read (world_t *world, read_t *read);
void ledger_check_rest (world_t *world);
void ledger_free (world_t *world);
/* What a process left behind that ended before its time. */
void ledger_clean (pid_t process);

/* client.c. */

void client_init (world_t *world, const actor_t *actor, const char *ns, const char *identity);
void client_step (client_t *client);
int64_t client_next_ms (const client_t *client);
/* It comes back after a while; some workers do not before the liveness phase. */
void client_crash (client_t *client);
/* Sends a request and keeps it until it is answered for good. Fills id and request_id of the
 * request; body is copied. Returns what is pending, to set its context. */
pending_t *client_request (client_t *client, Taskmq__Request *request, const void *body,
                           size_t body_bytes);
/* Sends a request whose answer nobody waits for, and returns its id. */
uint64_t client_tell (client_t *client, Taskmq__Request *request);
/* Leaves this connection and makes a new one. */
void client_reconnect (client_t *client);
size_t client_open (const client_t *client);
/* It leaves, and does not come back. */
void client_goes (client_t *client);
void client_free (client_t *client);

/* A subscriber's belief; zeroed memory is an empty one. */
typedef struct mirror {
    uint64_t seq[MODEL_TASKS_MAX];
    uint8_t status[MODEL_TASKS_MAX]; /* 0: unknown, or removed */
} mirror_t;
void mirror_take (world_t *world, mirror_t *mirror, const uint8_t id[16], uint64_t seq,
                  uint32_t status);
void mirror_check (world_t *world, const mirror_t *mirror, const client_t *client,
                   const char *queue);

extern const actor_t submitter_actor;
extern const actor_t worker_actor;
extern const actor_t subscriber_actor;
extern const actor_t auditor_actor;
extern const actor_t library_actor;
extern const actor_t prowler_actor;
extern const actor_t sharer_actor;
extern const actor_t mender_actor;
extern const actor_t feller_actor;
/* The value that sharers count up is as high as they know, and items are as many (sharer.c). */
void sharers_check (world_t *world);
/* A new task of the client's namespace and owner; one that was submitted before, or NULL. */
known_t *submitter_draw_task (client_t *client);
known_t *submitter_draw_known (client_t *client);
const uint8_t *worker_id (const client_t *client);
/* No operation is open and all events are taken. */
bool library_at_rest (const client_t *client);
/* True when the auditor has read everything. */
bool auditor_done (const client_t *client);
/* Compares what those that began with a snapshot believe with what is durable. */
void subscriber_check (client_t *client);
void library_check (client_t *client);
/* Where a subscriber stands. */
uint64_t subscriber_upto (const client_t *client);

/* questions.c. */

void question_fill (Taskmq__Ask *ask, uint32_t question, char key[8], char text[16]);
void question_asked (world_t *world, known_t *task, uint32_t question, const Taskmq__Reply *reply);
/* A submitter answers some question of some task. */
void question_answer (client_t *client);
void question_answered (world_t *world, const pending_t *pending, const Taskmq__Reply *reply);
void question_check_assigned (world_t *world, const known_t *task,
                              const Taskmq__Assignment *assignment);
/* A worker was given answers. */
void question_taken (world_t *world, known_t *task, const Taskmq__AnswerPage *page,
                     const uint8_t *body, size_t body_bytes);

/* prowler.c. */

const char *prowler_name (uint32_t number);
/* A new policy, by chance, or of all prowlers. */
void prowlers_swap (world_t *world, bool all);
/* What leaves for a client: I12. */
void prowler_judge (world_t *world, const client_t *client, const output_t *output);

/* warden.c. */

extern const actor_t warden_actor;
/* What a new task asks for of its queue. */
void warden_draw (rng_t *rng, known_t *task);
void warden_fill (const known_t *task, Taskmq__Extra *extra);
const char *warden_key (const known_t *task);
const char *warden_session (const known_t *task);
/* A worker that may have every task. */
bool warden_is_strong (const client_t *worker);
/* A batch that is about to become durable. */
void warden_check_batch (world_t *world, const batch_t *batch);

/* scheduler.c. */

extern const actor_t scheduler_actor;
/* A batch that is about to become durable: each instant is decided once, and none is lost. */
void scheduler_check_batch (world_t *world, const batch_t *batch);

/* mender.c. */

/* An event that is about to become durable with its batch. */
void mender_check_event (world_t *world, const Taskmq__Event *event, const batch_t *batch);

/* keeper.c. */

void keeper_fill (const known_t *task, uint32_t attempt, uint32_t number,
                  uint8_t out[SIM_STATE_BYTES]);
/* The answer to a checkpoint. */
void keeper_kept (world_t *world, known_t *task, uint32_t attempt, const Taskmq__Reply *reply);
void keeper_check_assigned (world_t *world, const known_t *task,
                            const Taskmq__Assignment *assignment);
void keeper_read (world_t *world, const known_t *task, uint32_t attempt, uint32_t state_of,
                  const Taskmq__Reply *reply, const uint8_t *body);
/* Retention (cleaner.c). The task of this index has no time to live. */
bool cleaner_lasts (const world_t *world, uint32_t index);
void cleaner_configure (const world_t *world, engine_config_t *config);
/* An operator has the rule applied, or looks what would go; false: not now. */
bool cleaner_order (client_t *client, int64_t *cleaned_ms);
/* What a batch removes by it, before the batch is durable. */
void cleaner_check_batch (world_t *world, const batch_t *batch);
/* Nothing is left that the rule lets go since the broker's last start. */
bool cleaner_is_quit (const world_t *world);
void keeper_check_batch (world_t *world, const batch_t *batch);
/* The batch, which is about to become durable, retries the task. */
void keeper_check_retried (world_t *world, const known_t *task, const batch_t *batch);
void keeper_check_durable (world_t *world);

/* teller.c. */

bool teller_may_tell (const known_t *task);
/* Returns the bytes of the body. */
size_t teller_fill (const known_t *task, uint32_t attempt, uint32_t number, Taskmq__Turn *turn,
                    uint8_t body[SIM_TURN_BODY]);
/* The answer to a turn. alone: it was told when all before it were acknowledged. */
void teller_told (world_t *world, const known_t *task, uint32_t attempt, uint32_t number,
                  bool alone, const Taskmq__Reply *reply);
/* Reads some of a task's turns; the answer goes to teller_page. */
void teller_look (client_t *client, known_t *task);
void teller_page (world_t *world, const pending_t *pending, const Taskmq__Reply *reply,
                  const uint8_t *body, size_t body_bytes);
void teller_check_assigned (world_t *world, const known_t *task,
                            const Taskmq__Assignment *assignment);
/* An event, and then its batch, that are about to become durable. */
void teller_check_event (world_t *world, const Taskmq__Event *event);
void teller_check_batch (world_t *world, const batch_t *batch);
void teller_check_durable (world_t *world);
/* Nothing is left of the turns of removed tasks. */
bool teller_is_quit (const world_t *world);

/* parts.c. */

void parts_draw (client_t *client, known_t *task);
void parts_fill (world_t *world, const known_t *task, Taskmq__Extra *extra);
bool parts_may_be_orphans (const world_t *world, const known_t *task);
void parts_check_durable (world_t *world);

/* depot.c. */

void blobs_name (uint32_t blob, blob_name_t *out);
uint32_t blobs_number (const Taskmq__Blob *blob);
uint32_t blobs_units (uint32_t blob);
uint8_t blobs_byte (uint32_t blob, uint32_t unit);
/* The blob that a task names as its payload, or result; SIM_BLOBS: none. */
uint32_t blobs_named (const record_t *record, bool result);
/* One that this client may name, if there is one. */
uint32_t depot_draw (const client_t *client, uint32_t wanted);
void depot_configure (engine_config_t *config);
void depot_step (world_t *world);
int64_t depot_next_ms (const world_t *world);
void depot_crash (world_t *world);
/* A batch that is about to become durable, and what is: each blob that is named is there, and
 * counted. */
void depot_check_batch (world_t *world, const batch_t *batch);
/* One that is collected: nobody names it. */
void depot_check_collected (world_t *world, uint32_t blob);
void depot_check_durable (world_t *world);

/* after.c. */

/* What a spec borrows. */
typedef struct after_room {
    Taskmq__Extra extra;
    blob_name_t name;
    Taskmq__Dependency entries[SIM_AFTER_MAX];
    Taskmq__Dependency *list[SIM_AFTER_MAX];
    Taskmq__Label labels[2];
    Taskmq__Label *label_list[2];
} after_room_t;
/* Lets a new task wait for others, perhaps: known ones, or the last one of the batch before it. */
void after_draw (client_t *client, known_t *task, known_t *const *batch, size_t batch_count);
void after_fill (world_t *world, const known_t *task, after_room_t *room, Taskmq__TaskSpec *spec);
/* The broker may not know all that it waits for: NOT_FOUND is no surprise. */
bool after_may_be_unknown (const world_t *world, const known_t *task);
/* An event that is about to become durable. */
void after_check_event (world_t *world, const Taskmq__Event *event);

/* seeker.c. */

extern const actor_t seeker_actor;
/* What tasks are found by follows from their index and content: labels, words in payloads, and of
 * each turn a word, an agent and files. */
void seeker_fill_payload (const known_t *task, uint8_t *out);
size_t seeker_fill_labels (const known_t *task, after_room_t *room);
const char *seeker_word (uint32_t index, uint32_t attempt, uint32_t number);
/* Sets the agent, and writes the packed files; returns their bytes. */
size_t seeker_fill_turn (uint32_t index, uint32_t attempt, Taskmq__Turn *turn, uint8_t *out);
/* A value of the label "kind". */
const char *seeker_draw_kind (rng_t *rng);
/* The task, with the turns that this record of it has, is what a query asks for. */
bool seeker_finds (const known_t *task, const record_t *record, const search_query_t *query);
/* This batch is durable. */
void seeker_committed (world_t *world, const batch_t *batch);
/* The engine knows that this batch is durable; 0: it knows all that is. */
void seeker_heard (world_t *world, uint64_t batch);

/* carrier.c. */

extern const actor_t carrier_actor;
/* A new task has a blob for a payload, perhaps. */
void carrier_draw (const client_t *client, known_t *task);
void carrier_fill (const known_t *task, bool other_content, after_room_t *room);
/* The blob that an attempt brings as its result; SIM_BLOBS: none. */
uint32_t carrier_brings (const client_t *client, const known_t *task, uint32_t attempt);
void carrier_check_assigned (world_t *world, const known_t *task,
                             const Taskmq__Assignment *assignment);

/* checker.c. */

/* The bytes that a task carries in, and that an attempt brings out. */
void check_payload_fill (const known_t *task, uint8_t *out);
void check_result_fill (uint8_t seed, uint8_t *out, size_t length);
known_t *check_find (world_t *world, const ProtobufCBinaryData *id);
void check_submitted (world_t *world, known_t *task, const Taskmq__SubmittedItem *item);
void check_assigned (world_t *world, uint32_t worker, const Taskmq__Assignment *assignment,
                     const uint8_t *body);
void check_completed (world_t *world, known_t *task, uint32_t attempt, uint8_t result_seed,
                      uint32_t result_bytes);
/* An attempt is about to report its success. */
void check_brought (known_t *task, uint32_t attempt, uint8_t result_seed, uint32_t result_bytes);
/* The success of an attempt was adopted, and this is what is durable of it. */
void check_adopted (world_t *world, known_t *task, uint32_t attempt, const record_t *record);
/* The end of an attempt was answered STALE_LEASE. */
void check_stale (world_t *world, const known_t *task, uint32_t attempt);
void check_ended_otherwise (world_t *world, known_t *task, uint32_t attempt);
void check_cancelled (world_t *world, known_t *task, const Taskmq__Reply *reply);
void check_waited (world_t *world, const Taskmq__WaitedItem *item, const char *ns);
/* What is known about a task; taken when a request is sent, to judge its answer. */
uint64_t check_mark (const known_t *task);
void check_read (world_t *world, known_t *task, const Taskmq__Reply *reply, const uint8_t *body,
                 uint64_t mark);
/* An event batch that followed `last` and goes to `upto`. queue: the filter, or NULL. */
void check_events (world_t *world, const char *ns, const char *queue, uint64_t last, uint64_t upto,
                   const Taskmq__EventList *list);
/* Somebody was told all up to this event. */
void check_told (world_t *world, const char *ns, uint64_t seq);
/* What somebody had been told when a question was asked, whose answer says where now is. */
uint64_t check_told_mark (world_t *world, const char *ns);
void check_from_now (world_t *world, const char *ns, uint64_t mark, uint64_t seq);
/* The newest event of a task that is durable; 0: none. */
uint64_t check_newest (const world_t *world, const char *ns);
/* One event that the library delivered after `last`. */
void check_event (world_t *world, const char *ns, uint64_t last, const tmq_event_t *event);
/* A connection ended and the broker was told so (A48). */
void check_gone (const wire_t *link);
/* The worker may have come back, or the broker forgot what it was told: nothing is expected. */
void check_gone_forget (client_t *client);
void check_gone_forget_all (world_t *world);
/* What workers that are gone held has been given back; called once per virtual second. */
void check_given_back (world_t *world);
/* A batch that is about to become durable. */
void check_batch (world_t *world, const batch_t *batch);
/* Rules that hold in what is durable, at any time. */
void check_durable (world_t *world);
/* True when every accepted task has come to its end. */
bool check_all_ended (const world_t *world);

#endif
