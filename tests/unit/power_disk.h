/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A disk in memory for the journal's device: it counts what is done to it, can fail at each
 * operation, and can lose power behind each: what was not synced is then there, or not, or torn. */
#ifndef TASKMQ_TESTS_POWER_DISK_H
#define TASKMQ_TESTS_POWER_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/journal/device.h"

enum { POWER_FILES_MAX = 4, POWER_NAME_MAX = 64 };

typedef struct power_write {
    uint64_t at;
    size_t length;
    uint8_t *bytes; /* NULL: the file was cut to `at` */
} power_write_t;

typedef struct power_file {
    char name[POWER_NAME_MAX]; /* without its directory; "" is a free place */
    uint8_t *synced;           /* what a loss of power leaves for certain */
    size_t synced_bytes;
    uint8_t *bytes; /* as the process sees it */
    size_t length;
    power_write_t *unsynced; /* in the order in which they were done */
    size_t unsynced_count;
    bool locked;
} power_file_t;

/* What a loss of power does to that which was not synced. */
typedef enum power_loss {
    POWER_KEEP,    /* all of it is there */
    POWER_DROP,    /* nothing */
    POWER_WRITES,  /* each write or none of it, whatever came before or after it */
    POWER_SECTORS, /* each 512 bytes, likewise */
    POWER_BYTES,   /* of each write a beginning, an end, or what is between two of its bytes */
    POWER_LOSSES
} power_loss_t;

typedef struct power_disk {
    device_t device; /* first, so that it is one */
    power_file_t files[POWER_FILES_MAX];
    uint64_t operations;  /* that change or sync something, until now */
    uint64_t fails_from;  /* the first that fails; UINT64_MAX: none */
    uint64_t fails_until; /* and the first behind those that works again */
    int fails_with;       /* errno */
    bool fails_after_it;  /* a write that fails was done all the same */
    bool fails_syncs_only;
    bool refuses_direct; /* as a file system without O_DIRECT; at the first write too */
    bool refuses_first_write;
    bool is_direct;
    uint64_t syncs;
    uint64_t writes;
} power_disk_t;

void power_disk_init (power_disk_t *self);
void power_disk_destroy (power_disk_t *self);
/* A disk as it is found after a loss of power now. */
void power_disk_lose (power_disk_t *out, const power_disk_t *disk, power_loss_t loss,
                      uint64_t *random);
/* The file of this name; NULL: there is none. */
power_file_t *power_disk_file (power_disk_t *self, const char *name);
/* The process is gone: nothing is open, nothing locked, what was written is there. */
void power_disk_close_all (power_disk_t *self);

uint64_t power_random (uint64_t *state);

#endif
