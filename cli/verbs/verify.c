/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The record of deeds and the events are a chain each (chain.h). Files of events are read in the
 * order of their first lines, because a name says where a file begins in a history, and a database
 * may have had several. */
#include "verbs/verify.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/exit.h"
#include "base/memory.h"
#include "chain.h"
#include "packed.h"
#include "screen/items.h"
#include "screen/output.h"
#include "trust.h"
#include "verbs/verbs.h"

enum { PATH_SIZE = 4096, AUDIT = 0, EVENTS = 1, CHAINS = 2 };
enum { TRIES = 20, AGAIN = -1 }; /* while the broker turns and packs files */

static const char *const names[CHAINS] = {"audit", "events"};

typedef struct part {
    char *path;
    uint64_t first_n;     /* number of its first line; 0: it has none */
    uint64_t first_place; /* where it begins among all lines, from 0 */
} part_t;

typedef struct chain {
    part_t *parts; /* in their order */
    size_t count;
    bool torn; /* the last line of the last file is half written */
    chain_check_t check;
} chain_t;

typedef struct verify {
    const app_t *app;
    int tries; /* before this one */
    chain_t chains[CHAINS];
} verify_t;

/* Which files. */

static bool is_events (const char *path)
{
    const char *slash = strrchr (path, '/');
    return strncmp (slash != NULL ? slash + 1 : path, "events", strlen ("events")) == 0;
}

static void add_file (verify_t *self, const char *path)
{
    chain_t *chain = &self->chains[is_events (path) ? EVENTS : AUDIT];
    chain->parts = must_grow (chain->parts, chain->count + 1, sizeof *chain->parts);
    chain->parts[chain->count++] = (part_t){.path = must_copy (path)};
}

/* The stem of NAME.jsonl, NAME-NUMBER.jsonl, and of events NAME-NUMBER-NUMBER.jsonl, packed or not;
 * 0: it is none of these. */
static size_t stem_of (const char *name)
{
    const size_t stem = strcspn (name, "-.");
    const bool ours = (stem == 5 && strncmp (name, "audit", stem) == 0) ||
                      (stem == 6 && strncmp (name, "events", stem) == 0);
    const size_t length = stem + strspn (name + stem, "-0123456789");
    const char *ending = name + length;
    return ours && (strcmp (ending, ".jsonl") == 0 || strcmp (ending, ".jsonl" PACKED_ENDING) == 0)
               ? length
               : 0;
}

/* The number of a turned file; the open one is the newest. */
static unsigned long long number_of (const char *stem)
{
    const char *digits = strchr (stem, '-');
    return digits != NULL ? strtoull (digits + 1, NULL, 10) : ULLONG_MAX;
}

static int compare_stems (const void *a, const void *b)
{
    const char *left = *(char *const *) a;
    const char *right = *(char *const *) b;
    const unsigned long long left_number = number_of (left);
    const unsigned long long right_number = number_of (right);
    if (left_number != right_number)
        return left_number > right_number ? 1 : -1;
    return strcmp (left, right);
}

/* Some stand there twice. */
static size_t scan_stems (char ***stems, size_t count, const char *directory)
{
    DIR *entries = opendir (directory);
    for (const struct dirent *entry; entries != NULL && (entry = readdir (entries)) != NULL;) {
        const size_t length = stem_of (entry->d_name);
        if (length == 0)
            continue;
        *stems = must_grow (*stems, count + 1, sizeof **stems);
        (*stems)[count] = must_copy (entry->d_name);
        (*stems)[count++][length] = '\0';
    }
    if (entries != NULL)
        closedir (entries);
    return count;
}

/* Plain, or else packed: while a file is there in both forms, they are the same. */
static bool add_present (verify_t *self, const char *directory, const char *stem)
{
    char path[PATH_SIZE + 256];
    snprintf (path, sizeof path, "%s/%s.jsonl", directory, stem);
    if (access (path, F_OK) != 0)
        snprintf (path, sizeof path, "%s/%s.jsonl" PACKED_ENDING, directory, stem);
    const bool present = access (path, F_OK) == 0;
    if (present)
        add_file (self, path);
    return present;
}

/* Two looks: to one of them a file that is packed meanwhile may show neither name. */
static int add_directory (verify_t *self, const char *directory)
{
    char **stems = NULL;
    bool any = false;
    size_t count = scan_stems (&stems, 0, directory);
    count = scan_stems (&stems, count, directory);
    if (count > 0)
        qsort (stems, count, sizeof *stems, compare_stems);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || strcmp (stems[i], stems[i - 1]) != 0)
            any = add_present (self, directory, stems[i]) || any;
    for (size_t i = 0; i < count; i++)
        free (stems[i]);
    free (stems);
    if (any)
        return EXIT_OK;
    return code_error (self->app, TMQ_NOT_FOUND, NULL,
                       "%s holds neither audit.jsonl nor events.jsonl", directory);
}

/* The nearest .taskmq upward, as the library looks for one. */
static int add_nearest (verify_t *self)
{
    char path[PATH_SIZE];
    char *working = realpath (".", NULL);
    snprintf (path, sizeof path, "%s", working != NULL ? working : "");
    free (working);
    size_t length = strlen (path);
    while (length > 0) {
        struct stat status;
        snprintf (path + length, sizeof path - length, "/.taskmq");
        if (stat (path, &status) == 0 && S_ISDIR (status.st_mode) &&
            trust_directory (&status, false) == TRUST_GOOD)
            return add_directory (self, path);
        path[length] = '\0';
        const char *slash = strrchr (path, '/');
        length = slash != NULL ? (size_t) (slash - path) : 0;
        path[length] = '\0';
    }
    return usage_error (self->app, "taskctl audit verify DIR",
                        "there is no .taskmq upward from here: name the files");
}

static int find_files (verify_t *self)
{
    const args_t *args = &self->app->args;
    if (args->operands_count == 1)
        return add_nearest (self);
    int code = EXIT_OK;
    for (size_t i = 1; code == EXIT_OK && i < args->operands_count; i++) {
        struct stat status;
        if (stat (args->operands[i], &status) == 0 && S_ISDIR (status.st_mode))
            code = add_directory (self, args->operands[i]);
        else
            add_file (self, args->operands[i]);
    }
    return code;
}

/* Reading. */

static void drop_files (verify_t *self)
{
    for (int i = 0; i < CHAINS; i++) {
        for (size_t k = 0; k < self->chains[i].count; k++)
            free (self->chains[i].parts[k].path);
        free (self->chains[i].parts);
    }
}

static bool has_part (const chain_t *chain, const char *path)
{
    size_t i = 0;
    while (i < chain->count && strcmp (chain->parts[i].path, path) != 0)
        i++;
    return i < chain->count;
}

/* What was read was not there all at one time: the broker turned, packed or removed a file. */
static bool is_outdated (const verify_t *self)
{
    verify_t now = {.app = self->app};
    bool same = self->tries + 1 >= TRIES || find_files (&now) == EXIT_OK;
    for (int i = 0; self->tries + 1 < TRIES && i < CHAINS; i++) {
        same = same && now.chains[i].count == self->chains[i].count;
        for (size_t k = 0; same && k < now.chains[i].count; k++)
            same = has_part (&self->chains[i], now.chains[i].parts[k].path);
    }
    drop_files (&now);
    return !same;
}

static int cannot_read (const verify_t *self, const part_t *part, uint64_t lines)
{
    const int reason = errno;
    if (is_outdated (self))
        return AGAIN;
    /* What should be whole and is not speaks against the record, not against the command. */
    if (reason == EBADMSG || reason == EFBIG)
        return code_error (self->app, TMQ_SYSTEM, NULL, "%s: behind line %" PRIu64 ": %s",
                           part->path, lines, packed_problem (reason));
    return usage_error (self->app, NULL, "cannot read %s: %s", part->path, packed_problem (reason));
}

/* The number of the file's first line. */
static int read_first (const verify_t *self, part_t *part)
{
    chain_head_t head;
    const char *line;
    size_t length;
    bool whole;
    packed_t *file = packed_open (part->path, false);
    if (file == NULL)
        return cannot_read (self, part, 0);
    const int got = packed_line (file, &line, &length, &whole);
    if (got > 0 && chain_follow (&head, line, length))
        part->first_n = head.n;
    const int code = got < 0 ? cannot_read (self, part, 0) : EXIT_OK;
    packed_close (&file);
    return code;
}

static int compare_parts (const void *a, const void *b)
{
    const uint64_t left = ((const part_t *) a)->first_n;
    const uint64_t right = ((const part_t *) b)->first_n;
    return (left > right) - (left < right);
}

static int sort_parts (const verify_t *self, chain_t *chain)
{
    int code = EXIT_OK;
    for (size_t i = 0; code == EXIT_OK && i < chain->count; i++)
        code = read_first (self, &chain->parts[i]);
    if (code == EXIT_OK && chain->count > 0)
        qsort (chain->parts, chain->count, sizeof *chain->parts, compare_parts);
    return code;
}

static int read_lines (const verify_t *self, chain_t *chain, size_t index)
{
    part_t *part = &chain->parts[index];
    packed_t *file = packed_open (part->path, false);
    const char *line;
    size_t length;
    bool whole;
    int got;
    part->first_place = chain->check.place;
    if (file == NULL)
        return cannot_read (self, part, 0);
    while ((got = packed_line (file, &line, &length, &whole)) > 0) {
        chain->torn = !whole;
        if (whole || index + 1 < chain->count)
            chain_check_line (&chain->check, line, length);
    }
    const int code =
        got < 0 ? cannot_read (self, part, chain->check.place - part->first_place) : EXIT_OK;
    packed_close (&file);
    return code;
}

/* Telling. */

/* "FILE:LINE" of a place. */
static void place_text (const chain_t *chain, uint64_t place, char *out, size_t size)
{
    size_t index = 0;
    while (index + 1 < chain->count && chain->parts[index + 1].first_place < place)
        index++;
    snprintf (out, size, "%s:%" PRIu64, chain->parts[index].path,
              place - chain->parts[index].first_place);
}

static void fault_text (const chain_t *chain, char *out, size_t size)
{
    const chain_check_t *check = &chain->check;
    char place[PATH_SIZE + 64];
    char to[PATH_SIZE + 64];
    place_text (chain, check->fault_place, place, sizeof place);
    place_text (chain, check->moved_to, to, sizeof to);
    switch (check->fault) {
    case CHAIN_GOOD: out[0] = '\0'; break;
    case CHAIN_CHANGED:
        snprintf (out, size, "%s: line %" PRIu64 " was changed", place, check->fault_n);
        break;
    case CHAIN_MISSING:
        snprintf (out, size, "%s: line %" PRIu64 " is missing here", place, check->fault_n);
        break;
    case CHAIN_MOVED:
        snprintf (out, size, "%s: line %" PRIu64 " is not here, but at %s", place, check->fault_n,
                  to);
        break;
    case CHAIN_REPEATED:
        snprintf (out, size, "%s: line %" PRIu64 " stands here again", place, check->fault_n);
        break;
    case CHAIN_HEADLESS:
        snprintf (out, size,
                  "no line has this head: the record ends before it, or was written anew");
        break;
    }
}

static void write_chain (json_writer_t *writer, const chain_check_t *check, const char *name,
                         const char *fault)
{
    static const char *const faults[] = {NULL, "changed", "missing", "moved", "repeated", "head"};
    char hash[CHAIN_HASH_TEXT_SIZE];
    chain_hash_format (hash, check->head.hash);
    json_write_object_begin (writer);
    json_write_key (writer, "chain");
    json_write_text (writer, name);
    json_write_key (writer, "first");
    json_write_uint (writer, check->first_n);
    json_write_key (writer, "n");
    json_write_uint (writer, check->head.n);
    json_write_key (writer, "hash");
    json_write_text (writer, hash);
    json_write_key (writer, "fault");
    json_write_text (writer, faults[check->fault]);
    json_write_key (writer, "fault_n");
    json_write_uint (writer, check->fault_n);
    json_write_key (writer, "message");
    json_write_text (writer, fault);
    json_write_object_end (writer);
}

/* prefix: which chain it is, where there are two. */
static void print_chain (const chain_check_t *check, const char *prefix, const char *fault)
{
    char hash[CHAIN_HASH_TEXT_SIZE];
    chain_hash_format (hash, check->head.hash);
    if (check->fault != CHAIN_GOOD)
        printf ("%s\n", fault);
    else if (check->head.n == 0)
        printf ("%sno lines\n", prefix);
    else
        printf ("%slines %" PRIu64 " to %" PRIu64 " are whole\n%shead %" PRIu64 " %s\n", prefix,
                check->first_n, check->head.n, prefix, check->head.n, hash);
}

static void show (verify_t *self, bool both)
{
    items_t items;
    const bool json = app_wants_json (self->app);
    if (json)
        items_begin (&items, self->app, !both);
    for (int i = 0; i < CHAINS; i++) {
        const chain_t *chain = &self->chains[i];
        char fault[2 * PATH_SIZE + 256];
        char prefix[16];
        if (chain->count == 0)
            continue;
        fault_text (chain, fault, sizeof fault);
        snprintf (prefix, sizeof prefix, "%s%s", both ? names[i] : "", both ? ": " : "");
        if (json) {
            write_chain (items_open (&items), &chain->check, names[i], fault);
            items_close (&items);
        } else {
            print_chain (&chain->check, prefix, fault);
        }
    }
    if (json)
        items_end (&items, NULL);
}

static void note_more (const verify_t *self, const chain_t *chain)
{
    if (chain->torn)
        note (self->app, "the last line is half written: the broker is writing it, or was killed "
                         "while it did");
    if (chain->check.known_n)
        note (self->app, "the head that you gave is behind line %" PRIu64, chain->check.known_n);
}

static int judge (verify_t *self)
{
    chain_check_t *audit = &self->chains[AUDIT].check;
    chain_check_t *events = &self->chains[EVENTS].check;
    const bool both = self->chains[AUDIT].count > 0 && self->chains[EVENTS].count > 0;
    /* A head is of one of them. */
    if (both && events->known_n && audit->fault == CHAIN_HEADLESS)
        audit->fault = CHAIN_GOOD;
    if (both && audit->known_n && events->fault == CHAIN_HEADLESS)
        events->fault = CHAIN_GOOD;
    show (self, both);
    for (int i = 0; i < CHAINS; i++)
        note_more (self, &self->chains[i]);
    const bool good = audit->fault == CHAIN_GOOD && events->fault == CHAIN_GOOD;
    return good ? EXIT_OK : EXIT_OTHER;
}

static int verify_files (verify_t *self)
{
    int code = sort_parts (self, &self->chains[EVENTS]);
    for (int i = 0; i < CHAINS; i++) {
        chain_t *chain = &self->chains[i];
        for (size_t k = 0; code == EXIT_OK && k < chain->count; k++)
            code = read_lines (self, chain, k);
        if (chain->count > 0)
            chain_check_end (&chain->check);
    }
    bool good = code == EXIT_OK;
    for (int i = 0; i < CHAINS; i++)
        good = good && self->chains[i].check.fault == CHAIN_GOOD;
    if (code == EXIT_OK && !good && is_outdated (self))
        return AGAIN;
    return code == EXIT_OK ? judge (self) : code;
}

int verify_run (app_t *app)
{
    int code = AGAIN;
    uint8_t known[CHAIN_HASH_BYTES];
    const char *head = args_text (&app->args, OPT_HEAD);
    if (head != NULL && !chain_hash_parse (known, head, strlen (head)))
        return usage_error (app, "AUDIT-HEAD and EVENTS-HEAD in the broker's log",
                            "--head must be 64 hexadecimal digits");
    for (int tries = 0; code == AGAIN; tries++) {
        verify_t self = {.app = app, .tries = tries};
        for (int i = 0; i < CHAINS; i++)
            self.chains[i].check.known = head != NULL ? known : NULL;
        code = find_files (&self);
        if (code == EXIT_OK)
            code = verify_files (&self);
        drop_files (&self);
    }
    return code;
}
