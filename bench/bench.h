/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The load generator: the same rows on every system, in alternation.
 *
 * Words. A life is a task submitted (acknowledged), delivered to a worker, completed
 * (acknowledged). Sync means one request outstanding per client; pipelined means many. A client
 * is a thread with a connection of its own.
 *
 * A system that breaks in the middle of a row ends the program: a figure that is not whole is
 * not printed. */
#ifndef TASKMQ_BENCH_H
#define TASKMQ_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    BENCH_PAYLOAD_BYTES = 200,
    BENCH_WINDOW = 1000,         /* submits outstanding per pipelined producer */
    BENCH_PREFETCH = 100,        /* assignments held by a pipelined worker */
    BENCH_BACKLOG_MAX = 2000,    /* lives outstanding of both pipelined producers together */
    BENCH_BACKLOG_SYNC_MAX = 16, /* the same of synchronous ones, each */
    BENCH_TAKE_MAX = 256,
    BENCH_PATH_MAX = 512,
    BENCH_VERSION_BYTES = 80
};

/* Servers. */

/* A server process that the bench started, in a directory of its own. */
typedef struct server {
    pid_t pid;
    char directory[BENCH_PATH_MAX];
    char address[BENCH_PATH_MAX]; /* as the driver wants it */
    int port;
    int stop_signal;    /* 0: SIGTERM */
    long sync_delay_us; /* added to each fsync and fdatasync of the server, see slow_disk.c */
} server_t;

/* Starts a program with its output in directory/log; ends the bench if it cannot be started.
 * argv[0] is found as program_find does. */
void server_spawn (server_t *self, char *const argv[]);
/* Its stop_signal, after 5 s SIGKILL; then SIGKILL to what it left behind. */
void server_stop (server_t *self);
/* Every server that was spawned and not stopped; from any thread. */
void server_stop_all (void);
/* The directory of one of them; NULL: none runs. */
const char *server_running_directory (void);
/* CPU time and memory of the server with everything it started; pages that several processes
 * share count for each. */
uint64_t server_cpu_us (const server_t *self);
uint64_t server_rss_bytes (const server_t *self);
/* A loopback port below 32768 that is free now. */
int server_free_port (void);
/* Waits until the port accepts connections, at most 30 s; ends the bench otherwise. */
void server_wait_port (const server_t *self);
/* Where a program lies: beside this one, or by PATH. False if it is nowhere. */
bool program_find (const char *name, char path[BENCH_PATH_MAX]);
/* The first line that a command of the shell prints, "?" if there is none. */
void program_version (const char *command, char out[BENCH_VERSION_BYTES]);

/* Drivers: how each system is spoken to. */

typedef struct payload {
    uint64_t sent_ns;      /* by the monotonic clock */
    uint64_t lives;        /* running number */
    uint64_t wants_result; /* 1: the producer waits for it (row notified) */
    uint8_t rest[BENCH_PAYLOAD_BYTES - 24];
} payload_t;

/* Every function ends the bench with a message when the system fails. */
typedef struct driver {
    const char *system;
    const char *durability; /* of an answer: "fsync", "process" (outlives it), "no" */
    const char *note;       /* what it does for a life, and what it does not do */
    const char *version;    /* a command of the shell whose first line says it */
    bool starves; /* workers get nothing beside many submits: not in rows for slow disks */
    bool (*available) (void);
    void (*start) (server_t *server);

    void *(*producer_new) (const server_t *server, const char *queue);
    void (*producer_free) (void *producer);
    void (*submit) (void *producer, const payload_t *payload); /* until acknowledged */
    void (*submit_start) (void *producer, const payload_t *payload);
    /* Waits until at most open submits are unacknowledged; returns how many are. */
    size_t (*submit_settle) (void *producer, size_t open);
    /* Submits and waits until the producer knows of the durable result. NULL: no such thing. */
    void (*call) (void *producer, const payload_t *payload);

    void *(*worker_new) (const server_t *server, const char *queue, size_t prefetch);
    void (*worker_free) (void *worker);
    /* Takes up to max tasks, waits up to 100 ms for the first. */
    size_t (*take) (void *worker, payload_t *out, size_t max);
    /* Completes everything taken; returns how many completions were acknowledged since the last
     * call. settle: waits for the acknowledgement of all of them. */
    size_t (*finish) (void *worker, bool settle);
} driver_t;

extern const driver_t taskmq_driver;
extern const driver_t taskmq_normal_driver;     /* with --synchronous normal */
extern const driver_t taskmq_curve_driver;      /* over CURVE */
extern const driver_t taskmq_postgresql_driver; /* on PostgreSQL */
extern const driver_t ceiling_driver;
extern const driver_t ceiling_log_driver;
extern const driver_t beanstalkd_driver;
extern const driver_t redis_driver;      /* a bare stream */
extern const driver_t redis_work_driver; /* with status, result, events and notification */
extern const driver_t postgresql_driver;
extern const driver_t gearmand_driver;
extern const driver_t nats_driver;
extern const driver_t rabbitmq_driver; /* a quorum queue */
extern const driver_t rabbitmq_classic_driver;

/* PostgreSQL, made anew in a server's directory. */

#define POSTGRESQL_PROGRAMS "/usr/lib/postgresql/15/bin"
enum { POSTGRESQL_COMMAND_BYTES = 2048 };

bool postgresql_available (void);
/* A command of sh that makes it in its working directory, which is that of the server, and becomes
 * it; options are those of postgres. Root gives the directory to the package's user. */
void postgresql_command (char out[POSTGRESQL_COMMAND_BYTES], const server_t *server,
                         const char *options);

/* A blocking connection for line protocols. */

typedef struct wire {
    int fd;
    size_t out_length;
    size_t in_first;
    size_t in_length;
    char out[64 * 1024];
    char in[64 * 1024];
} wire_t;

wire_t *wire_connect (int port);
void wire_close (wire_t *self);
/* Adds to what is sent by the next wire_flush; flushes by itself when the buffer is full. */
void wire_put (wire_t *self, const void *bytes, size_t length);
void wire_flush (wire_t *self);
/* The next line without its CR LF, terminated; valid until the next call. Blocks up to 5 min. */
const char *wire_line (wire_t *self);
/* Exactly length bytes. */
void wire_read (wire_t *self, void *out, size_t length);

/* Rows. */

/* The shares of a row's latencies that the reports tell: so many of them were as short, or shorter.
 */
enum { TAILS = 8 };
extern const double tail_shares[TAILS]; /* rising, below 1 */

typedef struct figures {
    double rate_per_s;
    double p50_us; /* NAN where the row does not measure it */
    double p99_us;
    double server_cpu_us;  /* per operation of the row */
    double clients_cpu_us; /* the same, of all its clients, which are threads of the bench */
    double rss_bytes;
    double tail_us[TAILS]; /* NAN as p50_us */
} figures_t;

typedef struct row {
    const char *name;
    const char *says; /* one line for people */
    void (*run) (figures_t *out, const driver_t *driver, const server_t *server, double seconds);
    bool needs_call;
    bool slow;  /* run on slower disks too */
    bool tails; /* its latencies are told from the shortest to the longest */
} row_t;

extern const row_t rows[];
extern const size_t rows_count;

/* Reports. */

typedef struct sample {
    const driver_t *driver;
    const row_t *row;
    long sync_delay_us;    /* added to each sync of the server */
    figures_t figures;     /* medians over the rounds */
    double rate_min_per_s; /* of the slowest round */
    double rate_max_per_s; /* of the quickest one */
} sample_t;

/* What the figures were measured on, as the system tells it; empty where it does not. */
typedef struct machine {
    char processor[128];
    char kernel[128];
    char system[128];
    char filesystem[24];
    char date[24]; /* UTC */
    long cores;
    double memory_bytes;
    double load;        /* of the minute before the first row */
    double sync_p50_us; /* of an append of 4 KiB and its fdatasync */
    double sync_p99_us;
} machine_t;

/* Measures the disk below the directory, which takes some 100 ms. */
void machine_look (machine_t *out, const char *directory);

struct point; /* of a growth row, growth.h */

typedef struct report {
    machine_t machine;
    int rounds;
    double seconds; /* of a row */
    const sample_t *samples;
    size_t count;
    const struct point *points;
    size_t points_count;
} report_t;

/* Why a report cannot be written there, as far as that is known before; NULL: it can. */
const char *report_refused (const char *path);
/* On what is measured, in one line. */
void report_machine (const machine_t *machine);
/* The samples from first on. */
void report_table (const report_t *report, size_t first);
/* These write to a temporary name and rename; they end the bench on an error. */
void report_json (const char *path, const report_t *report);
void report_markdown (const char *path, const report_t *report);
/* What gnuplot reads, beside the JSON: NAME.json gives NAME.dat. */
void report_plot_data (const char *json, const report_t *report);
/* The latencies of rows with tails, a line for each share, in BASE-tails.dat beside json. */
void report_tail_data (const char *json, const report_t *report);

/* Small things. */

/* Makes a directory for this run below parent and returns its name. It is removed by
 * run_directory_remove and whenever the bench ends by an error or a signal. */
const char *run_directory_make (const char *parent);
void run_directory_remove (void);
/* With everything in it. */
void directory_remove (const char *path);
/* SIGINT, SIGTERM and SIGHUP stop the servers, remove the directory and end the bench. Called
 * before any thread is started. */
void signals_watch (void);

uint64_t now_ns (void);
/* Ends the bench with a message, the last words of the server, and nothing left behind. */
_Noreturn void die (const char *format, ...) __attribute__ ((format (printf, 1, 2)));
void *need_memory (void *memory); /* ends the bench on NULL */

/* Latencies in a fixed number of logarithmic buckets, 1 % wide. */
typedef struct histogram {
    uint64_t counts[2048];
    uint64_t total;
} histogram_t;
void histogram_add (histogram_t *self, uint64_t ns);
void histogram_merge (histogram_t *self, const histogram_t *other);
double histogram_us (const histogram_t *self, double quantile); /* NAN when empty */

#endif
