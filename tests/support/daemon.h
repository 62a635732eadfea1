/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A real taskmqd in a directory of its own: start, kill, freeze, start again.
 *
 * Every function fails the running cmocka test when it cannot do its work. daemon_start must be
 * called by a thread that lives on: the kernel ends the broker with the thread that made it, so
 * that a crashed test leaves nothing behind. */
#ifndef TASKMQ_TESTS_DAEMON_H
#define TASKMQ_TESTS_DAEMON_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "taskmq.h"

enum { DAEMON_PATH_MAX = 200, DAEMON_ARGUMENTS_MAX = 8 };

typedef struct daemon {
    char home[DAEMON_PATH_MAX];      /* temporary directory: data, log */
    char data[DAEMON_PATH_MAX + 16]; /* the .taskmq of it */
    char log[DAEMON_PATH_MAX + 16];
    char endpoint[DAEMON_PATH_MAX + 64];         /* for clients */
    const char *arguments[DAEMON_ARGUMENTS_MAX]; /* further ones, NULL ends them; set by the test */
    const char *program; /* of the build, or NULL: taskmqd; set by the test */
    const char *preload; /* LD_PRELOAD of the broker, or NULL; set by the test */
    pid_t pid;           /* 0: not running */
} daemon_t;

/* A fresh directory; the broker will listen on ipc there. */
void daemon_init (daemon_t *self);
/* As daemon_init, and also on a free TCP port of the loopback, which becomes the endpoint. */
void daemon_init_tcp (daemon_t *self);
/* Starts it and waits until it answers. */
void daemon_start (daemon_t *self);
/* Starts it without waiting. */
void daemon_spawn (daemon_t *self);
/* Waits until it answers a ping. */
void daemon_wait_ready (const daemon_t *self);
/* Sends a signal and waits until the process is gone. Returns what waitpid said. */
int daemon_end (daemon_t *self, int signal);
/* Waits until the process ends by itself; its exit code, or fails after the patience. */
int daemon_exit_code (daemon_t *self);
/* Does not wait. True: it ended by itself, with this exit code; that by a signal fails the test. */
bool daemon_has_ended (daemon_t *self, int *code);
/* Clean stop; fails unless the exit code is 0. */
void daemon_stop (daemon_t *self);
void daemon_signal (const daemon_t *self, int signal);
/* Kills it if it runs, and removes the directory. A test that fails never comes here, so its
 * directory stays. */
void daemon_destroy (daemon_t *self);
/* True if the log contains text. */
bool daemon_logged (const daemon_t *self, const char *text);

/* A client of it; not yet connected. */
tmq_client_t *daemon_client (const daemon_t *self);
/* A number of the broker's stats; UINT64_MAX: it tells none of that name. */
uint64_t daemon_counter (tmq_client_t *client, const char *name);
/* The path of a program that the build made. Static memory. */
const char *daemon_program (const char *name);
/* A free TCP port of the loopback below the ephemeral range. */
int daemon_free_port (void);

#endif
