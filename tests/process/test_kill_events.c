/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */
/* kill -9 of the broker while it turns events.jsonl and makes tasks.jsonl smaller: each event
 * stands there once, in one chain, and each task's last line is its state.
 *
 *     test_kill_events [--kills N]      CI: 5 kills */
#include <dirent.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chain.h"
#include "support/cmocka_all.h"
#include "support/daemon.h"
#include "support/timing.h"

enum { KILLS = 5, ROUND = 400, BATCH = 100, FILES_MAX = 1000 };

static size_t kills = KILLS;

static void submit (tmq_client_t *client, tmq_id_t *ids, size_t count)
{
    tmq_submit_t tasks[BATCH];
    tmq_receipt_t receipts[BATCH];
    tmq_error_t error = {0};
    for (size_t i = 0; i < count; i++) {
        tmq_submit_init (&tasks[i]);
        tmq_id_make (&tasks[i].id);
        ids[i] = tasks[i].id;
        tasks[i].queue = "q";
        tasks[i].payload = "x";
        tasks[i].payload_bytes = 1;
    }
    if (tmq_submit_batch (receipts, client, tasks, count, TIMING_PATIENCE_MS, &error) != TMQ_OK)
        fail_msg ("%s", error.text);
}

/* The files of events, in the order of their first lines. */
typedef struct files {
    char *names[FILES_MAX];
    size_t count;
} files_t;

static unsigned long long first_n (const char *name)
{
    unsigned long long n = 0;
    FILE *file = fopen (name, "r");
    if (file == NULL || fscanf (file, "{\"n\":%llu", &n) != 1)
        n = ~0ULL; /* it was only just made */
    if (file != NULL)
        fclose (file);
    return n;
}

static int compare (const void *a, const void *b)
{
    const unsigned long long left = first_n (*(char *const *) a);
    const unsigned long long right = first_n (*(char *const *) b);
    return (left > right) - (left < right);
}

static void find_files (files_t *out, const daemon_t *broker)
{
    char path[2 * DAEMON_PATH_MAX + 256];
    out->count = 0;
    DIR *entries = opendir (broker->data);
    for (const struct dirent *entry; (entry = readdir (entries)) != NULL;) {
        const size_t length = strlen (entry->d_name);
        if (strncmp (entry->d_name, "events", 6) != 0 ||
            strcmp (entry->d_name + length - 6, ".jsonl") != 0)
            continue;
        snprintf (path, sizeof path, "%s/%s", broker->data, entry->d_name);
        assert_true (out->count < FILES_MAX);
        out->names[out->count++] = strdup (path);
    }
    closedir (entries);
    qsort (out->names, out->count, sizeof *out->names, compare);
}

static void free_files (files_t *self)
{
    for (size_t i = 0; i < self->count; i++)
        free (self->names[i]);
}

/* The last position in the files; every line is one of the chain, and of events each is there. */
static json_int_t check_events (const daemon_t *broker, size_t *turned)
{
    files_t files;
    chain_check_t check = {0};
    json_int_t pos = 0;
    char *line = NULL;
    size_t room = 0;
    find_files (&files, broker);
    for (size_t i = 0; i < files.count; i++) {
        FILE *file = fopen (files.names[i], "r");
        assert_non_null (file);
        for (ssize_t length; (length = getline (&line, &room, file)) > 0;) {
            if (line[length - 1] != '\n')
                break; /* it is being written */
            chain_check_line (&check, line, (size_t) length - 1);
            json_t *object = json_loadb (line, (size_t) length, 0, NULL);
            const json_int_t at = json_integer_value (json_object_get (object, "pos"));
            const char *kind = json_string_value (json_object_get (object, "kind"));
            assert_non_null (kind);
            assert_string_not_equal (kind, "gap");
            assert_int_equal (at, strcmp (kind, "anchor") == 0 ? pos : pos + 1);
            pos = at;
            json_decref (object);
        }
        fclose (file);
    }
    free (line);
    chain_check_end (&check);
    assert_int_equal (check.fault, CHAIN_GOOD);
    *turned = files.count - 1;
    free_files (&files);
    return pos;
}

/* The event at this position is in the file that grows. Behind it there is none, so that the files
 * do not change any more. */
static bool is_told (const daemon_t *broker, json_int_t pos)
{
    char path[2 * DAEMON_PATH_MAX + 256];
    char wanted[64];
    char *line = NULL;
    size_t room = 0;
    bool told = false;
    snprintf (path, sizeof path, "%s/events.jsonl", broker->data);
    snprintf (wanted, sizeof wanted, ",\"pos\":%lld,\"kind\":\"cancelled\"", (long long) pos);
    FILE *file = fopen (path, "r");
    for (ssize_t length; file != NULL && (length = getline (&line, &room, file)) > 0;)
        told = told || (line[length - 1] == '\n' && strstr (line, wanted) != NULL);
    free (line);
    if (file != NULL)
        fclose (file);
    return told;
}

/* Every line of tasks.jsonl is whole, and the last one of this task says that it is cancelled. */
static bool is_cancelled (const daemon_t *broker, const tmq_id_t *id)
{
    char path[2 * DAEMON_PATH_MAX + 256];
    char text[64];
    char *line = NULL;
    size_t room = 0;
    bool cancelled = false;
    snprintf (path, sizeof path, "%s/tasks.jsonl", broker->data);
    tmq_id_format (id, text);
    FILE *file = fopen (path, "r");
    for (ssize_t length; file != NULL && (length = getline (&line, &room, file)) > 0;) {
        if (line[length - 1] == '\n')
            assert_int_equal (line[length - 2], '}');
        if (strstr (line, text) != NULL)
            cancelled = strstr (line, "\"status\":\"cancelled\"") != NULL;
    }
    free (line);
    if (file != NULL)
        fclose (file);
    return cancelled;
}

static void test_kills_take_no_event (void **state)
{
    (void) state;
    daemon_t broker;
    json_int_t events = 0;
    size_t turned = 0;
    tmq_id_t ids[BATCH];
    tmq_error_t error = {0};
    daemon_init (&broker);
    setenv ("TASKMQD_EVENTS_KEEP", "64K", 1);
    setenv ("TASKMQD_EXPORT_COMPACT", "64K", 1);
    setenv ("TASKMQD_EXPORT_FORGET", "1s", 1);
    daemon_start (&broker);
    tmq_client_t *client = daemon_client (&broker);
    for (size_t kill = 0; kill < kills; kill++) {
        for (size_t i = 0; i < ROUND / BATCH; i++, events += BATCH)
            submit (client, ids, BATCH);
        assert_int_equal (tmq_cancel (NULL, client, &ids[0], NULL, TIMING_PATIENCE_MS, &error),
                          TMQ_OK);
        events++;
        /* Whatever it is at: it differs from round to round. */
        timing_pause ((uint32_t) (kill * 7919 % 150));
        daemon_end (&broker, SIGKILL);
        daemon_start (&broker);
        WAIT_FOR (is_told (&broker, events), TIMING_PATIENCE_MS);
        assert_int_equal (check_events (&broker, &turned), events);
        WAIT_FOR (is_cancelled (&broker, &ids[0]), TIMING_PATIENCE_MS);
    }
    tmq_client_free (&client);
    daemon_stop (&broker);
    assert_int_equal (check_events (&broker, &turned), events);
    assert_true (turned > 0);
    unsetenv ("TASKMQD_EVENTS_KEEP");
    unsetenv ("TASKMQD_EXPORT_COMPACT");
    unsetenv ("TASKMQD_EXPORT_FORGET");
    daemon_destroy (&broker);
}

int main (int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_kills_take_no_event),
    };
    if (argc == 3 && strcmp (argv[1], "--kills") == 0)
        kills = strtoul (argv[2], NULL, 10);
    return cmocka_run_group_tests (tests, NULL, NULL);
}
