/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* How the store says what went wrong: a code that the caller acts on, and a text for people. */
#ifndef TASKMQ_STORE_ERROR_H
#define TASKMQ_STORE_ERROR_H

typedef enum store_code {
    STORE_OK = 0,
    STORE_ERROR_FULL,    /* no space; nothing of the call was kept */
    STORE_ERROR_IO,      /* reading, writing or syncing failed */
    STORE_ERROR_CORRUPT, /* the data is damaged */
    STORE_ERROR_FOREIGN, /* the file belongs to another application */
    STORE_ERROR_NEWER,   /* written by a newer version */
    STORE_ERROR_ACCESS,  /* the directory or a file cannot be opened */
    STORE_ERROR_OPTIONS, /* what it was told is wrong by itself, whatever is there */
    STORE_ERROR_BUSY,    /* somebody else holds the database: a bug or a foreign tool */
    STORE_ERROR_FENCED,  /* another broker took over */
    STORE_ERROR_OWNED,   /* another broker owns the data */
    STORE_ERROR_CUT,     /* what was acknowledged is not there any more */
    STORE_ERROR_DAMAGED, /* one row is not what was written; all others may be read */
    STORE_ERROR_AWAY,    /* out of reach for now; nothing was read */
    STORE_ERROR_STOPPED  /* told to stop while it waited */
} store_code_t;

/* Text for people about the last failure of a call, written into the caller's struct. */
typedef struct store_error {
    store_code_t code;
    char text[512];
} store_error_t;

/* Fills error and returns code: "return store_fail (error, STORE_ERROR_IO, …)". */
store_code_t store_fail (store_error_t *error, store_code_t code, const char *format, ...)
    __attribute__ ((format (printf, 3, 4)));

#endif
