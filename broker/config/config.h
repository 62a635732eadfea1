/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The configuration of a broker: a value for each key of the table, and who said so.
 *
 * Layers, each over the one before: defaults, the file of -c, the files FILE.d/?*.conf in the order
 * of their bytes, the environment (TASKMQD_SECTION_KEY), the command line. Lists add up. An empty
 * value takes back what the layers before have said.
 *
 * The file is ZPL (name = value, sections by four spaces of indentation). A key or an option that
 * is not known is an error with the nearest one as a hint: a limit that silently does not hold is
 * worse than a broker that does not start. */
#ifndef TASKMQ_CONFIG_CONFIG_H
#define TASKMQ_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "config/keys.h"
#include "core/base/retention.h"
#include "net/address.h"

typedef enum config_action {
    CONFIG_RUN = 1,
    CONFIG_CHECK,
    CONFIG_CHECK_CONFIG,
    CONFIG_RESTORE,
    CONFIG_SHOW,
    CONFIG_VERSION,
    CONFIG_HELP
} config_action_t;

/* Who said a value: a file with its line, a variable of the environment, an option, or nobody. */
typedef struct config_origin {
    const char *source; /* owned by the configuration; NULL: the default */
    unsigned line;      /* of a file; 0 elsewhere */
} config_origin_t;

typedef struct config_item {
    char *text;
    config_origin_t origin;
} config_item_t;

typedef struct config_value {
    config_item_t *items; /* of a LIST */
    size_t items_count;
    char *text; /* of a TEXT; NULL: none */
    config_origin_t origin;
} config_value_t;

enum { CONFIG_NAMED_MAX = 8 };

typedef struct config {
    config_action_t action;
    const char *restore;                 /* file of RESTORE; lent by the command line */
    int64_t until_ms;                    /* … up to this moment; INT64_MAX: all there is */
    bool accept_rollback;                /* what the database has lost is given up */
    const char *named[CONFIG_NAMED_MAX]; /* the files of -c; borrowed from the command line */
    size_t named_count;
    uint64_t numbers[CONFIG_KEYS]; /* COUNT, SIZE, DURATION, SWITCH; of a CHOICE its place */
    config_value_t values[CONFIG_KEYS];
    char **sources; /* each is named once */
    size_t sources_count;
} config_t;

/* Bounds of what is read: beyond them the file is refused, with the number in the text. */
enum {
    CONFIG_FILE_BYTES_MAX = 256 * 1024,
    CONFIG_FILES_MAX = 100, /* drop-ins */
    CONFIG_ERROR_SIZE = 1024,
    CONFIG_ORIGIN_SIZE = 512
};

/* The defaults. */
void config_init (config_t *out);
void config_free (config_t *self);

/* All layers, the command line last. environment: "NAME=VALUE" texts with a NULL behind them. False
 * with a sentence in `error`; what was taken until then stays, so throw the object away. */
bool config_parse (config_t *self, int argc, char **argv, char *const *environment,
                   char error[CONFIG_ERROR_SIZE]);

/* Sets one key ("limits/links") from its text. What is refused changes nothing. The origin's source
 * need not outlive the call. */
bool config_set (config_t *self, const char *key, const char *text, config_origin_t origin,
                 char error[CONFIG_ERROR_SIZE]);
/* The key with this name; false with the nearest one in `error`. */
bool config_find (config_key_t *out, const char *name, char error[CONFIG_ERROR_SIZE]);

/* The text of a TEXT; NULL if there is none. Borrowed. */
const char *config_text (const config_t *self, config_key_t key);
/* The word of a CHOICE. */
const char *config_word (const config_t *self, config_key_t key, char *out, size_t out_size);
/* Whether two configurations say the same about a key, whoever said so. */
bool config_same (const config_t *self, const config_t *other, config_key_t key);
/* Splits an item of broker/feed, NAMESPACE=URI; the URI is a part of it. False if it is none. */
bool config_split_feed (const char *item, char ns[TMQ_NAME_LENGTH_MAX + 1], const char **uri);
/* The address of an item of broker/listen, insecure_listen or feed; false: it is none. */
bool config_address (address_t *out, const config_item_t *item, config_key_t key);
/* What export/redact says, for one thread; NULL: nothing. */
redactor_t *config_redactor (const config_t *self);
/* … an item a line; freed by free (). */
char *config_redact_text (const config_t *self);
/* Every address is one that can be listened on, as far as that can be known without doing it. */
bool config_check_addresses (const config_t *self, char error[CONFIG_ERROR_SIZE]);
/* Takes a key's value over, with its origin; `from` has the default afterwards. */
void config_move (config_t *self, config_t *from, config_key_t key);
/* What the keys say of tasks that have ended. */
retention_t config_retention (const config_t *self);
/* … in namespaces that have a rule of their own; how many they are. */
size_t config_retentions (const config_t *self, retention_of_t out[RETENTIONS_MAX]);
/* Bounds that hold between keys. */
bool config_is_consistent (const config_t *self, char error[CONFIG_ERROR_SIZE]);

/* A value of a key that is a number, as the file would have it. */
const char *config_format (char *out, size_t out_size, config_key_t key, uint64_t value);
/* What the manual says behind the name of a key: "10000 (1 to 30000; at the next start)". */
const char *config_describe (char out[CONFIG_ORIGIN_SIZE], config_key_t key);
/* "default", "FILE:12", "TASKMQD_LIMITS_LINKS" or "--store". */
const char *config_format_origin (char out[CONFIG_ORIGIN_SIZE], config_origin_t origin);
/* Every value with its origin, in the form of the file: what it prints can be read back. */
void config_show (const config_t *self, FILE *out);

void config_print_help (void);

/* Writes a sentence and is false: "return config_fail (error, ...)". */
__attribute__ ((format (printf, 2, 3))) bool config_fail (char error[CONFIG_ERROR_SIZE],
                                                          const char *format, ...);

#endif
