/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* libtaskmq: submit long-running tasks, work on them, watch them, fetch their results.
 *
 * Shape. A client is one connection to a broker. It has one I/O thread of its own, which
 * reconnects, repeats open requests and renews leases. (While a single thread of the application
 * blocks in a call, that thread sends and receives itself. This saves two changes of thread.) Every
 * operation exists twice:
 *
 *     int tmq_VERB (out, client, in, timeout_ms, error)            blocks until the answer
 *     int tmq_VERB_start (client, in, timeout_ms, user, error)     returns at once; the answer is a
 *                                                                  completion of tmq_client_poll
 *
 * Results. Functions return 0 or a positive code of taskmq_types.h (tmq_code_t). `error`, which may
 * be NULL, receives the same code with a text for people. An operation ends in one of these ways,
 * and none of them is a guess:
 *
 *     TMQ_OK             done, and durable at the broker
 *     TMQ_UNREACHABLE    the deadline passed and nothing was handed to the broker (or, for what
 *                        changes nothing: no answer came); nothing was done
 *     TMQ_UNKNOWN        the deadline passed after the request had been handed over, and no answer
 *                        came. It may have been done. The same call again is safe: a submit with
 *                        the same id (or request id), a cancel, a complete, …
 *     TMQ_OVERLOADED     the broker refused it for lack of capacity, time and again until the
 *                        deadline; nothing was done. The library repeats it by itself until then
 *     TMQ_UNAVAILABLE    the same, because its store is out of reach for now
 *     any other code     the broker or the library refused it; nothing was done
 *
 * A start function that does not return 0 has started nothing, and gives no completion.
 *
 * Time. timeout_ms counts from the call. Within it the library connects, sends and repeats.
 * UINT32_MAX (TMQ_FOREVER) waits for ever. With 0 the calls that only take something from the
 * client (poll, next, changed, ready, connect) do not wait. Operations need an answer of the
 * broker; with 0 they end with TMQ_UNREACHABLE. Times in records are milliseconds since the epoch,
 * UTC; 0 means absent. Durations are milliseconds.
 *
 * Order. The changes and waits of one client reach the broker in the order in which they were
 * started, so a wait may follow its submit at once. Reads (get, result, payload, list, count,
 * events, stats) may be carried out later than changes that were started after them: at most four
 * (the option reads_max) are open at a time, the others queue. Answers come in any order.
 *
 * Memory. A call returns objects through out-parameters. They belong to the caller, and the
 * function that is named after their type frees them (tmq_task_free, …; they accept NULL). They are
 * set only when the call returns 0, unless said otherwise. Inputs are borrowed until the call
 * returns, and copied if they have to live longer. Strings are UTF-8 and NUL-terminated. The
 * library never returns a string that is NULL; in options NULL and "" mean "not given". Everything
 * is bounded: see tmq_client_options_t.
 *
 * Threads. A client may be used from any number of threads at once; its subscriptions and workers
 * likewise. Freeing an object while another thread uses it is an error of the program. No callback
 * runs on the I/O thread; tmq_worker_run calls its handler on threads that it makes for itself.
 * Signals are never touched; the library's threads block all of them.
 *
 * Fork. A client belongs to the process that made it: in a forked child every call with it returns
 * TMQ_FORKED, and tmq_client_free only forgets it. The child may make a client of its own.
 *
 * A client argument that is NULL is refused with TMQ_INVALID; so are NULL ids and inputs. An out
 * pointer must not be NULL unless said otherwise.
 *
 * One ZeroMQ context is made per client. No signals, no output, no global state, no abort: when
 * memory is exhausted, the call or the operation ends with TMQ_NO_MEMORY. */
#ifndef TASKMQ_H
#define TASKMQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "taskmq_types.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TMQ_API __attribute__ ((visibility ("default")))
#else
#define TMQ_API
#endif

#define TMQ_VERSION_MAJOR 0
#define TMQ_VERSION_MINOR 1
#define TMQ_VERSION_PATCH 0
#define TMQ_FOREVER UINT32_MAX
#define TMQ_ENDPOINTS_MAX 8 /* different ones of a client */

/* Version, names. */

/* Version of the library that runs, as major << 16 | minor << 8 | patch. */
TMQ_API uint32_t tmq_version (void);
/* True if the running library serves a program compiled against that version of this header. The
 * major version must be the same, and the minor one not newer than the library's (before 1.0 the
 * same one). */
TMQ_API bool tmq_version_compatible (uint32_t major, uint32_t minor);
#define TMQ_VERSION_CHECK() tmq_version_compatible (TMQ_VERSION_MAJOR, TMQ_VERSION_MINOR)

/* Name of a code ("NOT_FOUND"), its text ("no such task"), and whether the same call may succeed
 * later without a change of its arguments. Static strings; unknown numbers give "?" and false. */
TMQ_API const char *tmq_code_name (int code);
TMQ_API const char *tmq_code_text (int code);
TMQ_API bool tmq_code_retriable (int code);
/* "completed". Static strings; unknown numbers give "?" and false. */
TMQ_API const char *tmq_status_text (tmq_status_t status);
/* True for completed, failed and cancelled. */
TMQ_API bool tmq_status_terminal (tmq_status_t status);
/* "attempt_failed". Static strings; unknown numbers give "?". */
TMQ_API const char *tmq_event_kind_text (tmq_event_kind_t kind);
/* "task", "value"; "?" for any other number. */
TMQ_API const char *tmq_subject_text (tmq_subject_t subject);
TMQ_API const char *tmq_policy_text (tmq_policy_t policy); /* "max_age", … */
TMQ_API const char *tmq_session_status_text (tmq_session_status_t status);

/* What went wrong, in a struct of the caller. Filled by every call that gets one, also on success
 * (code 0). */
typedef struct tmq_error {
    int code;
    bool retriable;          /* the same call may succeed later */
    uint32_t retry_after_ms; /* the broker's advice, 0 for none */
    uint8_t request_id[16];  /* of the request, when code is TMQ_UNKNOWN */
    char text[512];          /* for people, in English */
    char hint[160];          /* what one may do about it; empty: nothing comes to mind */
} tmq_error_t;

/* Ids. */

/* A new UUIDv7 by the system's clock and random numbers. Any thread; does not block. */
TMQ_API void tmq_id_make (tmq_id_t *out);
/* text: 36 characters (lower case, with dashes) and a NUL. */
TMQ_API void tmq_id_format (const tmq_id_t *id, char text[37]);
/* TMQ_INVALID unless text is exactly a UUID of 36 characters; upper case is accepted. */
TMQ_API int tmq_id_parse (tmq_id_t *out, const char *text);

/* Client. */

typedef struct tmq_client tmq_client_t;

/* Options of a client. The initialiser fills in the defaults; later versions append members.
 * Initialisers of all such structs are called with the struct alone: macros of their names add its
 * size. So a program goes on working with a newer library whose struct is longer. */
typedef struct tmq_client_options {
    size_t size;                  /* sizeof (tmq_client_options_t); set by the initialiser */
    const char *const *endpoints; /* ZeroMQ URIs (tcp://HOST:PORT, ipc://PATH), of an owner and its
                                     standbys, tried in turn; copied. At most TMQ_ENDPOINTS_MAX
                                     different ones: the same one again counts once. Behind tcp may
                                     stand "?server_key=tmqpk_…", or "?insecure", which allows
                                     another machine without encryption. NULL: see directory */
    size_t endpoints_count;
    const char *ns;             /* namespace; NULL: "default" */
    const char *name;           /* program, at most 64 bytes, for the broker's log */
    size_t outbox_requests_max; /* operations without an answer; one more gives TMQ_OUTBOX_FULL.
                                   Each id of a wait counts as one. Default 100,000 */
    size_t outbox_bytes_max;    /* bytes that they hold, payloads and results included; default
                                   64 MiB */
    size_t completions_max;     /* asynchronous operations without an answer, and completions that
                                   were not polled; one more gives TMQ_OUTBOX_FULL. Default
                                   100,000 */
    uint32_t reconnect_ms_min;  /* first pause before a new connection, one for a round in which
                                   each endpoint is tried once; it doubles up to … */
    uint32_t reconnect_ms_max; /* … this one, with jitter. Default 100, and 0: 5,000, or 1,000 with
                                   more than one endpoint, where another broker may take over */
    bool log;                  /* also deliver TMQ_OP_LOG completions about the connection */
    void *owned;               /* of tmq_client_options_set; leave it alone */
    const char
        *directory; /* of a broker (its --data), in which its endpoints are read, anew for each
                              connection. NULL without endpoints: the first of these that is there.
                              The endpoints of the profile; those of the environment variable
                              TASKMQ_ENDPOINT; those of TASKMQ_PROFILE; the nearest .taskmq
                              directory from the working directory upward that is the user's own;
                              the user's default profile; ipc:///run/taskmq/taskmqd.ipc */
    bool link;      /* also deliver TMQ_OP_LINK completions */
    bool fail_fast; /* until the first welcome: what needs the broker ends with TMQ_UNREACHABLE as
                       soon as it is certain that none is there, not only at its deadline. It is
                       certain when there is no socket, nobody listens, no broker runs for the
                       directory, one waits in it as a standby, or permission is denied. One that
                       is starting is waited for, and of several endpoints nothing is certain: a
                       standby may take over */
    const char *server_key; /* the broker's public key (tmqpk_…), for tcp endpoints that do not name
                               theirs. NULL: TASKMQ_SERVER_KEY, else the profile's. Another machine
                               is not connected to without it */
    const char *key_file;   /* file with our secret key, read anew for each connection. NULL:
                               TASKMQ_KEY or TASKMQ_KEY_FILE, else the profile's, else
                               ~/.config/taskmq/keys/default.key if it is there */
    const char *key;        /* our secret key itself (tmqsk_…); instead of key_file */
    const char *profile;    /* name of a saved connection (or a path with a slash), for what is not
                               given here. When the broker announces that its key will change, the
                               new one is written there, if we may */
    size_t reads_max;       /* reads whose answers may be large that are open at a time, 1..64; the
                               others wait in the client. Default 4: of 64, with whole frames, the
                               broker would hold 16 MiB for us, and it ends a link that leaves 2 MiB
                               of answers for 10 s */
} tmq_client_options_t;
/* Fills in the defaults. */
TMQ_API void tmq_client_options_init (tmq_client_options_t *options, size_t size);
#define tmq_client_options_init(options) tmq_client_options_init ((options), sizeof *(options))
/* Sets one option by its key, as a configuration file may name it; taskctl's options of the same
 * meaning have the same names. Keys: "endpoint" (adds one that is not there yet),
 * "namespace", "name", "directory", "server_key", "key_file", "key", "profile",
 * "outbox_requests_max", "outbox_bytes_max", "completions_max", "reads_max", "reconnect_ms_min",
 * "reconnect_ms_max" (numbers from 1), "log", "link", "fail_fast" ("true" or "false").
 * TMQ_INVALID with a text for an unknown key, a bad value or one endpoint too many, which changes
 * nothing. Values are copied, and kept by options until tmq_client_options_clear. */
TMQ_API int tmq_client_options_set (tmq_client_options_t *options, const char *key,
                                    const char *value, tmq_error_t *error);
/* Sets what a saved connection says: NAME is the file profiles/NAME.conf in ~/.config/taskmq (or
 * $XDG_CONFIG_HOME/taskmq), a text with a slash a path. Such a file has a line "key = value" for
 * each option, with the keys of tmq_client_options_set; lines with # are comments. The same is done
 * by tmq_client_new for the option `profile`, but there for what is not given otherwise.
 * TMQ_NOT_FOUND if there is no such file; TMQ_INVALID, with the file and the line, for what cannot
 * be read, and for a file that others may write (or read, when it holds a key). */
TMQ_API int tmq_client_options_load (tmq_client_options_t *options, const char *name,
                                     tmq_error_t *error);
/* Frees what tmq_client_options_set has copied, and initialises again. Not needed for options that
 * were set through the members only. Accepts NULL. */
TMQ_API void tmq_client_options_clear (tmq_client_options_t *options);

/* Makes a client and starts its I/O thread, which connects, and reconnects for ever. Does not wait
 * for the connection: operations may be started at once. Copies options.
 * Of several endpoints the one that was good last is tried first. One whose handshake is silent for
 * 1.5 s gives way to the next; one far away has up to 6 s, as has each in every tenth round.
 * Codes: TMQ_INVALID (an option, named in the text; an endpoint that is no URI is one, and so is
 * one more than TMQ_ENDPOINTS_MAX, or a list that tmq_whoami_t has no room for),
 * TMQ_NOT_AUTHENTICATED (a key is missing or cannot be used; the text says what to do),
 * TMQ_UNREACHABLE (no endpoint is given, and none is found), TMQ_NO_MEMORY, TMQ_SYSTEM. */
TMQ_API int tmq_client_new (tmq_client_t **out, const tmq_client_options_t *options,
                            tmq_error_t *error);
/* The same with the default options and one endpoint; uri NULL: it is looked for, as the option
 * `directory` says. */
TMQ_API int tmq_client_open (tmq_client_t **out, const char *uri, tmq_error_t *error);
/* Sends what is pending and says goodbye, which gives back the leases of the client's workers. This
 * blocks for at most 500 ms. Open operations end with TMQ_CLOSED, or with TMQ_UNKNOWN if they may
 * have been done. Frees the client with its subscriptions, workers and unpolled completions.
 * No other thread may be inside of a call. *client becomes NULL. Accepts NULL. */
TMQ_API void tmq_client_free (tmq_client_t **client);
/* Waits until the client is connected and welcomed. Not needed before other calls.
 * Codes: TMQ_UNREACHABLE with the reason of the last attempt (the client goes on trying);
 * TMQ_NOT_AUTHENTICATED, TMQ_DENIED, TMQ_UNSUPPORTED, … when the broker refused us for good. Then
 * everything open has ended with that code, and every later operation gets it at once. */
TMQ_API int tmq_client_connect (tmq_client_t *client, uint32_t timeout_ms, tmq_error_t *error);

/* Waits until every change that was started (submit, cancel, complete, a status message, …) has its
 * answer. It does not wait for reads and waits. Afterwards the completions of those changes can be
 * polled. Without it tmq_client_free would end the changes with TMQ_UNKNOWN.
 * Codes: TMQ_TIMEOUT, with the number of those that are open and the reason. */
TMQ_API int tmq_client_flush (tmq_client_t *client, uint32_t timeout_ms, tmq_error_t *error);

/* What the newest welcome said; all zero and empty before the first one. */
typedef struct tmq_broker_info {
    uint64_t generation; /* of the event history: the first half of a cursor */
    uint64_t epoch;      /* counts starts of the broker */
    uint64_t seq;        /* newest event of the namespace at the time of the welcome */
    char identity[TMQ_OWNER_BYTES_MAX + 1]; /* who the broker takes us for: the owner of tasks */
    char broker[65];
    char endpoint[256];
} tmq_broker_info_t;
/* Does not block. TMQ_OK, TMQ_INVALID, TMQ_FORKED. */
TMQ_API int tmq_client_info (tmq_broker_info_t *out, tmq_client_t *client);

/* Who we are for the broker, and how we came to it. Later versions append members. */
typedef struct tmq_whoami {
    size_t size;                             /* sizeof (tmq_whoami_t); set it before the call */
    char identity[TMQ_OWNER_BYTES_MAX + 1];  /* the owner of what we submit */
    char ns[TMQ_NAME_LENGTH_MAX + 1];        /* the namespace */
    char principal[TMQ_NAME_LENGTH_MAX + 1]; /* whose rights we have, by the broker's access file;
                                                empty without one */
    char roles[1024];    /* what we may do, as the access file writes it; may be cut */
    uint64_t key_until;  /* when our key ends; 0: it does not */
    char key[65];        /* our public key (tmqpk_…); empty on a connection without keys */
    char server_key[65]; /* the broker's; empty if it has none */
    char endpoint[352];  /* as another client takes it: with the broker's key, if it has one */
    char key_file[4096]; /* that our key was read from; empty if it was not */
    char told_by[256];   /* who named the endpoint: "the caller", "TASKMQ_ENDPOINT", "profile prod",
                          a directory */
    int64_t clock_ahead_ms; /* the broker's clock minus ours, as far as a round trip lets know */
    char redact[TMQ_REDACT_BYTES_MAX + 1]; /* what exports leave out by its configuration: an item
                                              a line, "common" or NAME=PATTERN */
    bool connected;          /* the broker has welcomed us, and the connection was not lost since */
    uint64_t blob_bytes_max; /* of a payload or result that is larger than a frame */
    uint32_t endpoints_count; /* that are tried in turn */
    char endpoints[2048];     /* all of them in their order, each once, with spaces between, as
                             TASKMQ_ENDPOINT of another client takes them; a directory's: the
                             newest */
} tmq_whoami_t;
/* As the newest welcome said; empty before the first one. Does not block. TMQ_OK, TMQ_INVALID,
 * TMQ_FORKED. */
TMQ_API int tmq_client_whoami (tmq_whoami_t *out, tmq_client_t *client);

/* A client in place of `client`, for what a gateway does for somebody whom it knows and the broker
 * does not. owner is a name of at most 63 characters that the gateway gives him. The broker's
 * access file lets us (role gateway; operators, and everybody without such a file, may too).
 * What is submitted with it belongs to IDENTITY/OWNER, IDENTITY being ours. With it that owner's
 * tasks alone exist: to read, list, count, search, cancel, retry, set, answer, wait for and
 * subscribe to. His dedup keys and quotas are his own, as if he were a client of the broker.
 * It has the connection, the bounds, the completions and the subscriptions of `client`, and is no
 * more than its name: to be freed (tmq_client_free) before `client`, whenever no call uses it. What
 * was started with it goes on. Everything else (workers, queues, keys, ...) ends with TMQ_INVALID.
 * Codes: TMQ_INVALID (no such name; client is such a one itself), TMQ_TOO_LARGE, TMQ_NO_MEMORY.
 * Whether we may is the answer to what is asked with it (TMQ_DENIED). */
TMQ_API int tmq_client_on_behalf (tmq_client_t **out, tmq_client_t *client, const char *owner,
                                  tmq_error_t *error);

/* The client's own counters since its start. */
typedef struct tmq_client_counter_values {
    uint64_t connects;      /* welcomes received */
    uint64_t requests;      /* operations started */
    uint64_t resent;        /* requests sent again after a reconnect */
    uint64_t messages_sent; /* ZeroMQ messages; requests / messages_sent is the batching */
    uint64_t messages_received;
    uint64_t calls_driven;    /* times that a blocking call did the I/O thread's work */
    uint64_t outbox_requests; /* open now */
    uint64_t outbox_bytes;
} tmq_client_counters_t;
/* Does not block. All zero for NULL and in a forked child. */
TMQ_API void tmq_client_counters (tmq_client_counters_t *out, tmq_client_t *client);

/* Completions. */

typedef enum tmq_op {
    TMQ_OP_SUBMIT = 1, /* tmq_submit_start */
    TMQ_OP_SUBMIT_BATCH,
    TMQ_OP_GET,
    TMQ_OP_RESULT,
    TMQ_OP_PAYLOAD,
    TMQ_OP_LIST,
    TMQ_OP_COUNT,
    TMQ_OP_RESOLVE,
    TMQ_OP_EVENTS,
    TMQ_OP_CANCEL,
    TMQ_OP_WAIT, /* one completion per task */
    TMQ_OP_STATS,
    TMQ_OP_PING,
    TMQ_OP_STARTED,
    TMQ_OP_PUSH,
    TMQ_OP_COMPLETE,
    TMQ_OP_FAIL,
    TMQ_OP_RELEASE,
    TMQ_OP_CANCELLED,          /* tmq_worker_cancelled_start */
    TMQ_OP_SUBSCRIPTION_READY, /* tmq_subscription_next has something; drain it with timeout 0 */
    TMQ_OP_WORKER_READY,       /* tmq_worker_next has something; drain it with timeout 0 */
    TMQ_OP_LOG,                /* text is a line of the log */
    TMQ_OP_LINK,               /* the connection came or went; `link` says which */
    /* About keys and the access file: of blocking calls only, so no completion has them. */
    TMQ_OP_ENROLL,
    TMQ_OP_KEY_LIST,
    TMQ_OP_KEY_TRUST,
    TMQ_OP_KEY_REVOKE,
    TMQ_OP_INVITE,
    TMQ_OP_INVITE_LIST,
    TMQ_OP_INVITE_REVOKE,
    TMQ_OP_SERVER_KEY_ROTATE,
    TMQ_OP_RELOAD,
    TMQ_OP_ACCESS_READ,
    /* About the record of deeds and backups: the same. */
    TMQ_OP_AUDIT,
    TMQ_OP_AUDIT_HEAD,
    TMQ_OP_BACKUP,
    /* About queues: the same. */
    TMQ_OP_QUEUE_LIST,
    TMQ_OP_QUEUE_SHOW,
    TMQ_OP_QUEUE_SET,
    TMQ_OP_QUEUE_PAUSE,
    TMQ_OP_QUEUE_RESUME,
    /* About questions (taskmq_questions.h). */
    TMQ_OP_ASK,
    TMQ_OP_ANSWER,
    TMQ_OP_INBOX,
    TMQ_OP_WHY, /* taskmq_why.h */
    /* Tasks again (taskmq_again.h). */
    TMQ_OP_RETRY,
    TMQ_OP_RESUME,
    TMQ_OP_SET,
    TMQ_OP_PURGE,
    /* About values: the same. */
    TMQ_OP_VALUE_PUT,
    TMQ_OP_VALUE_GET,
    TMQ_OP_VALUE_LIST,
    TMQ_OP_VALUE_REMOVE,
    /* About who works here: of blocking calls only. */
    TMQ_OP_WORKER_LIST,
    TMQ_OP_WORKER_SHOW,
    TMQ_OP_WORKER_DRAIN,
    /* About schedules: as of queues. */
    TMQ_OP_SCHEDULE_PUT,
    TMQ_OP_SCHEDULE_SHOW,
    TMQ_OP_SCHEDULE_LIST,
    TMQ_OP_SCHEDULE_PAUSE,
    TMQ_OP_SCHEDULE_RESUME,
    TMQ_OP_SCHEDULE_REMOVE,
    TMQ_OP_ITEM_PUT,
    TMQ_OP_ITEM_READ,
    TMQ_OP_ITEM_ACK,
    /* What a worker keeps of its work (taskmq_workers.h). */
    TMQ_OP_CHECKPOINT,
    TMQ_OP_CHECKPOINT_READ,
    /* About sessions: of blocking calls only. */
    TMQ_OP_SESSION_SET,
    TMQ_OP_SESSION_SHOW,
    TMQ_OP_SESSION_LIST,
    TMQ_OP_SESSION_STATUS,
    TMQ_OP_SESSION_REMOVE,

    TMQ_OP_READ_LOG, /* taskmq_logs.h */
    /* Late successes (taskmq_again.h). */
    TMQ_OP_ADOPT,
    TMQ_OP_ATTEMPTS, /* of blocking calls only */
    /* Turns (taskmq_turns.h). */
    TMQ_OP_TURN,
    TMQ_OP_TURNS, /* of blocking calls only */
    /* Searches (taskmq_search.h): the same. */
    TMQ_OP_SEARCH,
    TMQ_OP_REINDEX,
    /* Space (taskmq_admin.h): the same. */
    TMQ_OP_VACUUM,
    /* Import (taskmq_import.h). */
    TMQ_OP_IMPORT, /* of blocking calls only */
    /* Retention (taskmq_admin.h): the same. */
    TMQ_OP_CLEANUP,
    /* Large bodies (taskmq_blobs.h). */
    TMQ_OP_BLOB_BEGIN, /* and the next one: of blocking calls, and tmq_blob_send_start */
    TMQ_OP_BLOB_CHUNK,
    TMQ_OP_BLOB_READ,
    /* Artifacts (taskmq_artifacts.h). */
    TMQ_OP_ARTIFACT,
    TMQ_OP_ARTIFACTS
} tmq_op_t;

/* What has become of the connection. */
typedef enum tmq_link_state {
    TMQ_LINK_UP = 1, /* the broker has welcomed us */
    TMQ_LINK_BACK,   /* the same, after it was lost */
    TMQ_LINK_LOST,   /* there is none, error says why; the library goes on trying */
    TMQ_LINK_REFUSED /* there will be none: code and error say why */
} tmq_link_state_t;

typedef struct tmq_receipt tmq_receipt_t;
typedef struct tmq_task tmq_task_t;
typedef struct tmq_task_list tmq_task_list_t;
typedef struct tmq_event_list tmq_event_list_t;
typedef struct tmq_stats_report tmq_stats_t;
typedef struct tmq_inbox_page tmq_inbox_t;        /* of taskmq_questions.h */
typedef struct tmq_answered tmq_answered_t;       /* … */
typedef struct tmq_explanation tmq_explanation_t; /* of taskmq_why.h */
typedef struct tmq_access_report tmq_access_t;
typedef struct tmq_file_part tmq_part_t;
typedef struct tmq_vacuum_state tmq_vacuum_state_t;   /* of taskmq_admin.h */
typedef struct tmq_cleanup_state tmq_cleanup_state_t; /* the same */
typedef struct tmq_changed tmq_changed_t;
typedef struct tmq_worker_page tmq_worker_list_t;
typedef struct tmq_attempt_page tmq_attempt_list_t;   /* of taskmq_again.h */
typedef struct tmq_turn_page tmq_turn_list_t;         /* of taskmq_turns.h */
typedef struct tmq_artifact_page tmq_artifact_list_t; /* of taskmq_artifacts.h */

/* The answer to what a _start function began, or news. Which pointers are set follows from op. They
 * are set only when code is 0; but receipts always tell about every task. They belong to the
 * completion unless they are taken by setting them to NULL here. */
typedef struct tmq_completion {
    tmq_op_t op;
    int code;
    void *user;              /* of the _start call, or of the subscription's or worker's options */
    tmq_error_t *error;      /* NULL when code is 0 (or memory for it was exhausted) */
    tmq_receipt_t *receipts; /* SUBMIT (1), SUBMIT_BATCH */
    size_t receipts_count;
    tmq_id_t task_id;         /* WAIT, RESOLVE, STARTED, PUSH, COMPLETE, FAIL, RELEASE, CANCEL,
                                 ASK, ANSWER, CHECKPOINT, CHECKPOINT_READ, TURN,
                                 ARTIFACT */
    tmq_status_t status;      /* WAIT */
    tmq_task_t *task;         /* GET, RESULT, PAYLOAD, CANCEL, ADOPT */
    tmq_task_list_t *list;    /* LIST */
    tmq_event_list_t *events; /* EVENTS */
    tmq_stats_t *stats;       /* STATS */
    uint64_t count;           /* COUNT; TURN: its number in its attempt */
    tmq_link_state_t link;    /* LINK: the newest state; what was in between may be left out */
    char *text;               /* LOG */
    tmq_access_t *access;     /* of blocking calls about keys */
    tmq_part_t *part;         /* BLOB_BEGIN, BLOB_CHUNK, BLOB_READ, AUDIT, AUDIT_HEAD, BACKUP,
                         CHECKPOINT_READ */
    struct tmq_queue_report *queues; /* QUEUE_LIST, QUEUE_SHOW, QUEUE_PAUSE, QUEUE_RESUME */
    tmq_inbox_t *inbox;              /* INBOX */
    tmq_answered_t *answered;        /* ANSWER */
    size_t answered_count;
    tmq_changed_t *changed; /* RETRY, RESUME, SET, PURGE: the answer about each id */
    size_t changed_count;
    tmq_worker_list_t *workers;            /* WORKER_LIST, WORKER_SHOW, WORKER_DRAIN */
    struct tmq_schedule_report *schedules; /* of blocking calls about schedules */
    tmq_explanation_t *why;                /* WHY */
    tmq_attempt_list_t *attempts;          /* ATTEMPTS */
    tmq_vacuum_state_t *vacuum;            /* of blocking calls */
    tmq_artifact_list_t *artifacts;        /* ARTIFACTS */
} tmq_completion_t;

/* A descriptor that is readable (level-triggered) exactly while completions are queued. Only poll
 * or select it; never read, write or close it. Valid until tmq_client_free. -1 for NULL. */
TMQ_API int tmq_client_fd (tmq_client_t *client);
/* Waits up to timeout_ms for at least one completion. Takes up to max of them, in the order in
 * which they were answered, into out, an array of max (at least 1) pointers. *count tells how many.
 * Each is freed by tmq_completion_free. Several threads may poll; each completion goes to one.
 * Codes: TMQ_TIMEOUT when there is none in time. */
TMQ_API int tmq_client_poll (tmq_completion_t **out, size_t max, size_t *count,
                             tmq_client_t *client, uint32_t timeout_ms);
/* Frees the completion with what still belongs to it. Accepts NULL. */
TMQ_API void tmq_completion_free (tmq_completion_t *completion);
/* Forgets what nobody wants to know any more: waits and reads (get, result, payload, list, count,
 * resolve, events, stats, ping) that were started with this user, of one task or (id NULL) of all,
 * also when they are answered and not yet polled. They give no completion; a read makes room when
 * the broker has answered it. Changes go on. *count (may be NULL) is how many were forgotten.
 * The wait for one task is found at once; else everything that is open is looked through. Does not
 * block. */
TMQ_API int tmq_forget (size_t *count, tmq_client_t *client, const tmq_id_t *id, const void *user);

/* Submit. */

typedef struct tmq_label {
    const char *key;
    const char *value;
} tmq_label_t;

/* A task that another one waits for. */
typedef struct tmq_dependency {
    tmq_id_t id;
    tmq_after_t policy;  /* what becomes of the other one if this ends without completing */
    tmq_status_t status; /* with which it ended, as far as the other one was told; else
                            TMQ_STATUS_NONE. Not looked at in a submit */
} tmq_dependency_t;

/* What is larger than a frame. */
typedef struct tmq_blob {
    uint64_t bytes;                    /* 0: there is none */
    uint8_t hash[TMQ_BLOB_HASH_BYTES]; /* BLAKE2b-256 of it */
} tmq_blob_t;

/* A task to be submitted. Later versions append members. */
typedef struct tmq_submission {
    size_t size;            /* sizeof (tmq_submit_t); set by the initialiser */
    tmq_id_t id;            /* a UUIDv7; all zero: the library makes one */
    uint8_t request_id[16]; /* all zero: the library makes one; unused in batches */
    const char *queue;      /* a name: [A-Za-z0-9._-]{1,64}; the only member that is required */
    const void *payload;    /* payload_bytes bytes, copied. Of more than TMQ_FRAME_BYTES_MAX it is
                               for tmq_submit alone, which uploads it first (taskmq_blobs.h) */
    size_t payload_bytes;
    const char *method;        /* at most 256 bytes; for the worker */
    const char *session;       /* a name: the thread of work it belongs to */
    const char *content_type;  /* of the payload, at most 256 bytes */
    const char *dedup_key;     /* at most 256 bytes; of one owner, only one task has it */
    const char *meta;          /* a JSON object, at most 16 KiB; stored verbatim */
    const tmq_label_t *labels; /* at most 16; keys are names and unique, values at most 256 bytes */
    size_t labels_count;
    uint64_t ttl_ms;           /* 0: the default, 24 h unless the operator set another */
    int priority;              /* 0..255, higher first; -1: the default, 100 */
    uint32_t poll_interval_ms; /* advice to those who poll; 0: 1 s */
    uint32_t max_attempts;     /* failures until it is failed for good; 0: 3 */
    uint32_t backoff_ms;       /* before the second attempt, then doubled; 0: 1 s */
    uint32_t lease_ms;         /* 1 s..24 h without a sign of life of the worker; 0: 30 s */
    bool ttl_never;            /* no end of life; then ttl_ms is 0 */
    uint64_t delay_ms;         /* not claimed before so long after its acceptance; or: */
    uint64_t not_before;       /* ms since the epoch: not claimed before; 0: at once */
    uint64_t start_by;         /* ms since the epoch: still queued then, it fails; 0: no end */
    uint64_t max_runtime_ms;   /* of an attempt, from its start; 0: none */
    const char *trace;         /* at most 512 bytes of printable ASCII, given to the worker: a W3C
                                  traceparent, perhaps a space and a tracestate */
    const tmq_dependency_t *after; /* at most 64: it waits until all of them have ended. Each is
                                      known to the broker, or an earlier one of the same batch */
    size_t after_count;
    const char *fair_key;     /* at most 64 bytes: keys of a queue are served in turn */
    const tmq_label_t *needs; /* at most 8: labels that the worker must have */
    size_t needs_count;
    tmq_id_t parent; /* the task that it is a part of: one that the broker knows, or an earlier one
                        of the same batch; all zero: none */
    tmq_blob_t payload_blob; /* in place of a payload: what tmq_blob_put gave */
} tmq_submit_t;
/* Fills in the defaults; queue is left to be set. */
TMQ_API void tmq_submit_init (tmq_submit_t *submit, size_t size);
#define tmq_submit_init(submit) tmq_submit_init ((submit), sizeof *(submit))

/* The answer for one submitted task. */
struct tmq_receipt {
    tmq_id_t id;         /* the truth: of an existing task it may differ from the one sent */
    int code;            /* of this task */
    bool existing;       /* the same task was there before: same id or key, same contents */
    tmq_status_t status; /* of the task now */
    char text[256];      /* why it was refused */
};

/* Submits one task. TMQ_OK: it is durable. *out is filled in any case; its id is valid whenever the
 * task was sent, so that an unknown outcome can be repeated under the same id.
 * Codes: TMQ_INVALID and TMQ_TOO_LARGE (a member, named in the text), TMQ_CONFLICT (the id or the
 * key belongs to other contents), TMQ_EXPIRED and TMQ_PURGED (the id's task was removed),
 * TMQ_STORE_FULL, TMQ_LIMIT, TMQ_OUTBOX_FULL, and those of every operation. */
TMQ_API int tmq_submit (tmq_receipt_t *out, tmq_client_t *client, const tmq_submit_t *in,
                        uint32_t timeout_ms, tmq_error_t *error);
/* The completion (TMQ_OP_SUBMIT) has one receipt; its code is the completion's. */
TMQ_API int tmq_submit_start (tmq_client_t *client, const tmq_submit_t *in, uint32_t timeout_ms,
                              void *user, tmq_error_t *error);
/* Submits count tasks (at least 1, no upper limit but the outbox's bytes), each for itself: some
 * may be refused. Split into as few requests as fit. out: count receipts, in the order of in; every
 * one is filled, also on an error. Returns 0 if the broker answered for all of them (look at each
 * code), else the first failure. A task that this side finds invalid refuses the whole batch before
 * anything is sent; the text names its index. */
TMQ_API int tmq_submit_batch (tmq_receipt_t *out, tmq_client_t *client, const tmq_submit_t *in,
                              size_t count, uint32_t timeout_ms, tmq_error_t *error);
/* One completion (TMQ_OP_SUBMIT_BATCH) for the whole batch, with count receipts. */
TMQ_API int tmq_submit_batch_start (tmq_client_t *client, const tmq_submit_t *in, size_t count,
                                    uint32_t timeout_ms, void *user, tmq_error_t *error);

/* Tasks. */

struct tmq_task {
    tmq_id_t id;
    const char *ns;
    const char *queue;
    const char *session;
    const char *owner;
    tmq_status_t status;
    tmq_phase_t phase;
    const char *status_message;
    uint8_t priority;
    const char *method;
    const char *content_type;
    const char *meta;
    const tmq_label_t *labels;
    size_t labels_count;
    uint64_t created_at;
    uint64_t updated_at;
    uint64_t started_at;
    uint64_t finished_at;
    uint64_t expires_at; /* 0: never */
    uint64_t not_before;
    uint64_t ttl_ms; /* 0: never */
    uint32_t poll_interval_ms;
    uint32_t attempt;
    uint32_t max_attempts;
    const char *worker;
    double progress_done;
    double progress_total;
    const char *progress_unit;
    const char *progress_message;
    uint64_t payload_bytes;
    uint64_t result_bytes;
    const char *result_type;
    tmq_outcome_kind_t outcome; /* TMQ_OUTCOME_NONE: not ended yet */
    int32_t error_code;
    const char *error_message;
    const char *error_data; /* JSON text; see error_data_bytes */
    bool dead;
    uint64_t version;
    uint64_t seq;     /* its newest event */
    const void *body; /* tmq_get, tmq_result: the result; tmq_payload: the payload. A NUL follows
                         that is not counted */
    size_t body_bytes;
    uint32_t failures; /* attempts that failed, of max_attempts; attempt counts the others too */
    uint64_t start_by; /* as tmq_submit_t has it; and the next two */
    uint64_t max_runtime_ms;
    const char *trace;
    const tmq_dependency_t *after;
    size_t after_count;
    const char *cancel_message; /* of who cancelled it */
    tmq_id_t parent;            /* the task that it is a part of; all zero: none */
    bool has_parts;             /* tasks were submitted as parts of it */
    const char *fair_key;       /* as tmq_submit_t has it; and the next one */
    const tmq_label_t *needs;
    size_t needs_count;
    uint32_t turns; /* that its workers told (taskmq_turns.h) */
    /* Of the error's data. More than error_data has: it is longer than 16 KiB, and this record is
     * of a list, a snapshot or tmq_payload; tmq_get has it. */
    size_t error_data_bytes;
    uint32_t lease_ms; /* as tmq_submit_t has it; and the next two */
    uint32_t backoff_ms;
    const char *dedup_key;
    uint32_t adopted_from;   /* the attempt whose late success is its outcome; 0: none */
    tmq_blob_t payload_blob; /* its payload, if it is larger than a frame: then payload_bytes is its
                                length, and tmq_payload_read and tmq_payload_save read it */
    tmq_blob_t result_blob;  /* the same of its result: then result_bytes is its length, and
                                tmq_result_read and tmq_result_save read it */
    uint32_t artifacts;      /* that its workers attached (taskmq_artifacts.h), … */
    uint64_t artifact_bytes; /* … and their bytes together */
};
/* Accepts NULL. */
TMQ_API void tmq_task_free (tmq_task_t *task);

/* The task as it is now, with its result as body, if it has one.
 * Codes: TMQ_NOT_FOUND (never heard of), TMQ_EXPIRED and TMQ_PURGED (it was there). */
TMQ_API int tmq_get (tmq_task_t **out, tmq_client_t *client, const tmq_id_t *id,
                     uint32_t timeout_ms, tmq_error_t *error);
TMQ_API int tmq_get_start (tmq_client_t *client, const tmq_id_t *id, uint32_t timeout_ms,
                           void *user, tmq_error_t *error);
/* The same without bytes: no result, and no error's data of more than 16 KiB. It is not among the
 * reads of which `reads_max` are open, and reaches the broker in the order of changes. */
TMQ_API int tmq_get_record (tmq_task_t **out, tmq_client_t *client, const tmq_id_t *id,
                            uint32_t timeout_ms, tmq_error_t *error);
TMQ_API int tmq_get_record_start (tmq_client_t *client, const tmq_id_t *id, uint32_t timeout_ms,
                                  void *user, tmq_error_t *error);
/* As tmq_get, but an unfinished task gives TMQ_WRONG_STATUS, with its status in the text. A failed
 * or cancelled one is OK: look at status, error_code and error_message. */
TMQ_API int tmq_result (tmq_task_t **out, tmq_client_t *client, const tmq_id_t *id,
                        uint32_t timeout_ms, tmq_error_t *error);
TMQ_API int tmq_result_start (tmq_client_t *client, const tmq_id_t *id, uint32_t timeout_ms,
                              void *user, tmq_error_t *error);
/* The task with its payload as body. Codes as of tmq_get. */
TMQ_API int tmq_payload (tmq_task_t **out, tmq_client_t *client, const tmq_id_t *id,
                         uint32_t timeout_ms, tmq_error_t *error);
TMQ_API int tmq_payload_start (tmq_client_t *client, const tmq_id_t *id, uint32_t timeout_ms,
                               void *user, tmq_error_t *error);
/* The id that ends with suffix (6..32 hexadecimal digits, dashes ignored), looked for among the
 * live and the 10,000 newest tasks. Codes: TMQ_INVALID, TMQ_NOT_FOUND, TMQ_AMBIGUOUS. */
TMQ_API int tmq_resolve (tmq_id_t *out, tmq_client_t *client, const char *suffix,
                         uint32_t timeout_ms, tmq_error_t *error);
TMQ_API int tmq_resolve_start (tmq_client_t *client, const char *suffix, uint32_t timeout_ms,
                               void *user, tmq_error_t *error);

/* Conditions; all that are given must hold. At most 64 values of a kind. Borrowed. */
typedef struct tmq_filter {
    const char *const *queues; /* OR */
    size_t queues_count;
    const tmq_status_t *statuses; /* OR */
    size_t statuses_count;
    const char *const *sessions; /* OR */
    size_t sessions_count;
    const tmq_id_t *task_ids; /* OR; subscriptions only */
    size_t task_ids_count;
    const tmq_label_t *labels; /* AND */
    size_t labels_count;
    uint64_t created_since; /* half open, 0: open; not for subscriptions */
    uint64_t created_until;
    const tmq_id_t *parents; /* OR: tasks that are parts of these; not for subscriptions */
    size_t parents_count;
    const char *const *agents; /* AND: each had a turn of it; at most 16; not for subscriptions */
    size_t agents_count;
    const char *const *files; /* AND: each was touched in a turn, the path as it was told; so too */
    size_t files_count;
    const char *const *owners; /* OR: as tmq_task_t has them. Not for subscriptions, nor with
                                  tmq_client_on_behalf. Owners IDENTITY/OWNER have an index */
    size_t owners_count;
} tmq_filter_t;

/* The longest cursor of a list, without its NUL. */
#define TMQ_CURSOR_BYTES_MAX 96

typedef struct tmq_list_query {
    tmq_filter_t filter;
    const char *cursor; /* of the page before, NULL: from the newest */
    uint32_t limit;     /* 0: 50, at most 1,000 */
} tmq_list_query_t;

struct tmq_task_list {
    tmq_task_t *const *tasks; /* without bodies, newest first */
    size_t count;
    const char *next; /* opaque text, empty: nothing follows */
};
/* Frees the list with its tasks. Accepts NULL. */
TMQ_API void tmq_task_list_free (tmq_task_list_t *list);
/* One page of tasks, newest first in the order of acceptance. in NULL: everything. A page may be
 * shorter than the limit without being the last: only an empty `next` says that nothing follows.
 * Codes: TMQ_INVALID, TMQ_BAD_CURSOR (not a cursor, or of another filter). */
TMQ_API int tmq_list (tmq_task_list_t **out, tmq_client_t *client, const tmq_list_query_t *in,
                      uint32_t timeout_ms, tmq_error_t *error);
TMQ_API int tmq_list_start (tmq_client_t *client, const tmq_list_query_t *in, uint32_t timeout_ms,
                            void *user, tmq_error_t *error);
/* The number of tasks that match; in NULL: of all. Codes: TMQ_INVALID. */
TMQ_API int tmq_count (uint64_t *out, tmq_client_t *client, const tmq_filter_t *in,
                       uint32_t timeout_ms, tmq_error_t *error);
TMQ_API int tmq_count_start (tmq_client_t *client, const tmq_filter_t *in, uint32_t timeout_ms,
                             void *user, tmq_error_t *error);

/* Cancels a task. If it was cancelled before, that is TMQ_OK again. A queued task is cancelled for
 * good. The worker of a working task is told, and its result does not count any more. out (the task
 * after the cancel, without bodies) may be NULL. message (at most 1,024 bytes, kept in the event)
 * may be NULL.
 * Codes: TMQ_WRONG_STATUS (completed or failed), TMQ_NOT_FOUND, TMQ_EXPIRED, TMQ_PURGED. */
TMQ_API int tmq_cancel (tmq_task_t **out, tmq_client_t *client, const tmq_id_t *id,
                        const char *message, uint32_t timeout_ms, tmq_error_t *error);
TMQ_API int tmq_cancel_start (tmq_client_t *client, const tmq_id_t *id, const char *message,
                              uint32_t timeout_ms, void *user, tmq_error_t *error);

/* Waits until the task is terminal; *out (may be NULL) is its status. Works for tasks of any client
 * and age, and survives restarts of the broker. Costs no polling.
 * Codes: TMQ_TIMEOUT (it has not ended in time), TMQ_UNREACHABLE (the broker could not be asked),
 * TMQ_NOT_FOUND, TMQ_EXPIRED, TMQ_PURGED. */
TMQ_API int tmq_wait (tmq_status_t *out, tmq_client_t *client, const tmq_id_t *id,
                      uint32_t timeout_ms, tmq_error_t *error);
/* One TMQ_OP_WAIT completion per id (any count), each as soon as it is known, with the codes of
 * tmq_wait. Up to 1,000 ids travel in one request. The broker keeps 10,000 waits for a client; what
 * is beyond is asked for as others end. */
TMQ_API int tmq_wait_start (tmq_client_t *client, const tmq_id_t *ids, size_t count,
                            uint32_t timeout_ms, void *user, tmq_error_t *error);

/* A round trip to the broker. Codes: those of every operation. */
TMQ_API int tmq_ping (tmq_client_t *client, uint32_t timeout_ms, tmq_error_t *error);
TMQ_API int tmq_ping_start (tmq_client_t *client, uint32_t timeout_ms, void *user,
                            tmq_error_t *error);

typedef struct tmq_counter {
    const char *name;
    uint64_t value;
} tmq_counter_t;
typedef struct tmq_queue_depth {
    const char *queue;
    uint64_t ready;
    uint64_t scheduled;
    uint64_t working;
    uint64_t input_required;
    uint64_t submitted; /* totals: since the queue has had a task or a worker without a break */
    uint64_t completed;
    uint64_t failed;
    uint64_t attempts_failed; /* those of tasks that are tried again too */
    uint64_t oldest_ready_ms; /* so long its oldest ready task could have been claimed */
    uint64_t blocked;         /* queued tasks that wait for others */
} tmq_queue_depth_t;
struct tmq_stats_report {
    const tmq_counter_t *counters;
    size_t counters_count;
    const tmq_queue_depth_t *queues;
    size_t queues_count;
};
/* Accepts NULL. */
TMQ_API void tmq_stats_free (tmq_stats_t *stats);
/* The broker's counters since its start, and the depth of every queue of the namespace. */
TMQ_API int tmq_stats (tmq_stats_t **out, tmq_client_t *client, uint32_t timeout_ms,
                       tmq_error_t *error);
TMQ_API int tmq_stats_start (tmq_client_t *client, uint32_t timeout_ms, void *user,
                             tmq_error_t *error);

#ifdef __cplusplus
}
#endif

/* One header is enough: these are its parts by area, and need what stands above. */
#include "taskmq_admin.h"
#include "taskmq_again.h"
#include "taskmq_artifacts.h"
#include "taskmq_blobs.h"
#include "taskmq_events.h"
#include "taskmq_import.h"
#include "taskmq_logs.h"
#include "taskmq_questions.h"
#include "taskmq_queues.h"
#include "taskmq_schedules.h"
#include "taskmq_search.h"
#include "taskmq_sessions.h"
#include "taskmq_turns.h"
#include "taskmq_why.h"
#include "taskmq_workers.h"

#endif
