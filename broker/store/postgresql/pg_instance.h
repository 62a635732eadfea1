/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Who a broker is, for others on the same database: a random id that lives in its data directory,
 * and where that directory is. The id outlives a restart; the place tells a copy of the directory
 * from the directory itself, whose lock proves that whoever had it before has ended (A107). */
#ifndef TASKMQ_STORE_PG_INSTANCE_H
#define TASKMQ_STORE_PG_INSTANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/error.h"
#include "store/postgresql/pg_link.h"

/* One number for each time that this kernel was started. */
#define PG_BOOT_ID_FILE "/proc/sys/kernel/random/boot_id"

enum {
    PG_INSTANCE_BYTES = 16,
    PG_INSTANCE_LENGTH = 2 * PG_INSTANCE_BYTES, /* as text */
    PG_PLACE_LENGTH = 16,
    PG_HOST_LENGTH_MAX = 64, /* of a name of a host, what is longer is cut */
    PG_OWNER_TEXT_SIZE = PG_INSTANCE_LENGTH + 1 + PG_PLACE_LENGTH + 1 + PG_HOST_LENGTH_MAX + 1,
    PG_NAME_SIZE = 64 /* of a schema or a database, as the server cuts names */
};

typedef struct pg_instance {
    char owner[PG_OWNER_TEXT_SIZE]; /* as the database has it: "ID PLACE HOST" */
    uint8_t id[PG_INSTANCE_BYTES];
    bool placed; /* the kernel says which start of it this is; else nobody is known again */
} pg_instance_t;

/* The tables that the broker of a directory owned last, or that a restore filled for it. */
typedef struct pg_tables_of {
    int64_t system_id; /* 0: it owned none, or one of a version that did not note it */
    char schema[PG_NAME_SIZE];
    char database[PG_NAME_SIZE];
} pg_tables_of_t;

/* The broker of this directory was connected to its database once. */
bool pg_instance_is_there (const char *directory);
/* Reads the id of this data directory, or makes one that is durable before it is used. */
store_code_t pg_instance_read (pg_instance_t *out, const char *directory, store_error_t *error);
/* Which tables it owned, and which it owns from now on: those that this link leads to. A broker
 * that owned some begins no empty ones beside them. */
void pg_instance_owned (pg_tables_of_t *out, const char *directory);
store_code_t pg_instance_note_owned (const char *directory, const pg_link_t *link,
                                     store_error_t *error);
/* Fills error with what it is to meet tables that are `what` ("missing") in place of those, and
 * returns STORE_ERROR_CUT. */
store_code_t pg_instance_lacks (const pg_tables_of_t *owned, const pg_link_t *link,
                                const char *what, store_error_t *error);
/* The owner of this text was this very directory, under this very kernel: it has ended, or we would
 * not have its lock. */
bool pg_instance_was (const pg_instance_t *self, const char *owner);
/* … or a broker of the first version on it, which told no place. */
bool pg_instance_was_unplaced (const pg_instance_t *self, const char *owner);
/* Another directory with the same id, or this one before the machine was started again: if its
 * broker lives, one of the two is a copy. */
bool pg_instance_is_twin (const pg_instance_t *self, const char *owner);
/* What its sessions have in their names: of its id, and of its place, as a copy has the same id. */
void pg_instance_tag (const char *owner, char tag[PG_TAG_SIZE]);
/* The owner for people: "HOST (instance ID)". */
void pg_instance_text (const char *owner, char *out, size_t out_size);

#endif
