/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Artifacts that a worker attaches, small and large, from memory and from a file, and that a client
 * lists, reads in pieces and fetches, with a broker that is killed in between; those that an import
 * brings. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "library_support.h"
#include "support/cmocka_all.h"
#include "support/timing.h"

enum { LARGE = 700000 };

static uint8_t large[LARGE];

static tmq_assignment_t *next (tmq_worker_t *worker)
{
    tmq_assignment_t *task = NULL;
    assert_int_equal (tmq_worker_next (&task, worker, TIMING_PATIENCE_MS, NULL), TMQ_OK);
    return task;
}

static int attach (tmq_worker_t *worker, const tmq_assignment_t *task, const char *name,
                   const void *bytes, size_t length)
{
    tmq_artifact_t artifact;
    tmq_artifact_init (&artifact);
    artifact.name = name;
    artifact.type = "text/plain";
    artifact.bytes = bytes;
    artifact.length = length;
    return tmq_worker_artifact (worker, task, &artifact, TIMING_PATIENCE_MS, NULL);
}

static int attach_file (tmq_worker_t *worker, const tmq_assignment_t *task, const char *name,
                        size_t length)
{
    char path[] = "artifact-XXXXXX";
    tmq_artifact_t artifact;
    tmq_artifact_init (&artifact);
    artifact.name = name;
    int fd = mkstemp (path);
    assert_true (fd >= 0);
    unlink (path);
    assert_int_equal (write (fd, large, length), length);
    int code = tmq_worker_artifact_file (worker, task, &artifact, fd, TIMING_PATIENCE_MS, NULL);
    close (fd);
    return code;
}

static void assert_fetched (tmq_client_t *client, const tmq_id_t *id,
                            const tmq_artifact_info_t *info, size_t there)
{
    static uint8_t got[LARGE + 1];
    char path[] = "fetched-XXXXXX";
    uint64_t fetched = 0;
    int fd = mkstemp (path);
    assert_true (fd >= 0);
    unlink (path);
    assert_int_equal (write (fd, large, there), there);
    assert_int_equal (tmq_artifact_fetch (client, id, info, fd, &fetched, TIMING_PATIENCE_MS, NULL),
                      TMQ_OK);
    assert_int_equal (fetched, info->bytes - there);
    assert_int_equal (pread (fd, got, sizeof got, 0), info->bytes);
    assert_memory_equal (got, large, info->bytes);
    close (fd);
}

static void what_is_attached_outlives_the_broker (void **state)
{
    (void) state;
    tmq_client_t *client = client_of (broker.endpoint);
    tmq_worker_t *worker = worker_of (client, "artifacts", 1);
    tmq_id_t id = submit (client, "artifacts", "x");
    tmq_assignment_t *task = next (worker);
    assert_int_equal (attach (worker, task, "a/b", "x", 1), TMQ_INVALID);
    assert_int_equal (attach (worker, task, "small", large, 10), TMQ_OK);
    assert_int_equal (attach (worker, task, "large", large, LARGE), TMQ_OK);
    assert_int_equal (attach_file (worker, task, "file", 20), TMQ_OK);
    assert_int_equal (attach_file (worker, task, "large file", LARGE), TMQ_OK);
    assert_int_equal (attach (worker, task, "small", "replaced", 8), TMQ_OK);
    daemon_end (&broker, SIGKILL);
    daemon_start (&broker);
    assert_int_equal (attach (worker, task, "later", large, 30), TMQ_OK);
    tmq_artifact_list_t *list = NULL;
    assert_int_equal (tmq_artifacts (&list, client, &id, TIMING_PATIENCE_MS, NULL), TMQ_OK);
    assert_int_equal (list->count, 5);
    assert_string_equal (list->artifacts[0].name, "file");
    assert_string_equal (list->artifacts[0].type, "application/octet-stream");
    assert_string_equal (list->artifacts[4].name, "small");
    assert_string_equal (list->artifacts[4].type, "text/plain");
    assert_int_equal (list->artifacts[4].bytes, 8);
    assert_int_equal (list->artifacts[4].attempt, 1);
    assert_fetched (client, &id, &list->artifacts[0], 0);
    assert_fetched (client, &id, &list->artifacts[1], 300000);
    assert_fetched (client, &id, &list->artifacts[2], LARGE);
    assert_fetched (client, &id, &list->artifacts[3], 7);
    tmq_part_t *part = NULL;
    assert_int_equal (
        tmq_artifact_read (&part, client, &id, &list->artifacts[4], 3, 4, TIMING_PATIENCE_MS, NULL),
        TMQ_OK);
    assert_int_equal (part->length, 4);
    assert_memory_equal (part->bytes, "lace", 4);
    tmq_part_free (part);
    tmq_artifact_list_free (list);
    assert_int_equal (tmq_worker_complete (worker, task, NULL, TIMING_PATIENCE_MS, NULL), TMQ_OK);
    assert_int_equal (attach (worker, task, "too late", "x", 1), TMQ_STALE_LEASE);
    tmq_assignment_free (task);
    tmq_worker_free (&worker);
    tmq_client_free (&client);
}

/* All that fits a commit goes with the task, and the call uploads the rest. */
static void an_import_brings_what_fits_no_commit (void **state)
{
    enum { PART = 60000, COUNT = TMQ_ARTIFACTS_MAX, NOW_MS = 1000 };
    static char names[COUNT][8];
    tmq_imported_artifact_t artifacts[COUNT] = {{0}};
    tmq_imported_attempt_t lost = {
        .attempt = 1, .worker = "w", .ended_at = NOW_MS, .how = TMQ_EVENT_LEASE_LOST};
    tmq_imported_late_t late = {.attempt = 1,
                                .type = "text/plain",
                                .at = (uint64_t) time (NULL) * 1000,
                                .until = TMQ_TIME_MS_MAX,
                                .result = large,
                                .result_bytes = TMQ_FRAME_BYTES_MAX};
    tmq_import_t task;
    tmq_receipt_t receipt;
    (void) state;
    tmq_client_t *client = client_of (broker.endpoint);
    for (size_t i = 0; i < COUNT; i++) {
        snprintf (names[i], sizeof names[i], "%02zu", i);
        artifacts[i] = (tmq_imported_artifact_t){.name = names[i],
                                                 .type = "a/b",
                                                 .bytes = large + i,
                                                 .length = i == 0 ? LARGE : PART,
                                                 .attempt = 1,
                                                 .attached_at = NOW_MS};
    }
    tmq_import_init (&task);
    tmq_id_make (&task.id);
    task.queue = "imported";
    task.status = TMQ_STATUS_QUEUED;
    task.created_at = task.updated_at = NOW_MS;
    task.attempt = task.version = 1;
    task.max_attempts = 3;
    task.attempts = &lost;
    task.attempts_count = 1;
    task.artifacts = artifacts;
    task.artifacts_count = COUNT;
    task.late = &late;
    task.late_count = 1;
    tmq_error_t error = {0};
    if (tmq_import (&receipt, client, &task, 1, TIMING_PATIENCE_MS, &error) != TMQ_OK)
        fail_msg ("%s", error.text);
    daemon_end (&broker, SIGKILL);
    daemon_start (&broker);
    assert_int_equal (tmq_import (&receipt, client, &task, 1, TIMING_PATIENCE_MS, NULL), TMQ_OK);
    assert_true (receipt.existing);
    tmq_artifact_list_t *list = NULL;
    assert_int_equal (tmq_artifacts (&list, client, &task.id, TIMING_PATIENCE_MS, NULL), TMQ_OK);
    assert_int_equal (list->count, COUNT);
    assert_fetched (client, &task.id, &list->artifacts[0], 0);
    for (size_t i = 1; i < COUNT; i++) {
        tmq_part_t *part = NULL;
        assert_int_equal (tmq_artifact_read (&part, client, &task.id, &list->artifacts[i], 0, 0,
                                             TIMING_PATIENCE_MS, NULL),
                          TMQ_OK);
        assert_int_equal (part->length, PART);
        assert_memory_equal (part->bytes, large + i, PART);
        tmq_part_free (part);
    }
    tmq_artifact_list_free (list);
    tmq_part_t *part = NULL;
    assert_int_equal (tmq_kept_read (&part, client, &task.id, 1, 0, 100, TIMING_PATIENCE_MS, NULL),
                      TMQ_OK);
    assert_int_equal (part->total, TMQ_FRAME_BYTES_MAX);
    assert_memory_equal (part->bytes, large, 100);
    tmq_part_free (part);
    assert_int_equal (tmq_kept_read (&part, client, &task.id, 2, 0, 0, TIMING_PATIENCE_MS, NULL),
                      TMQ_NO_BLOB);
    tmq_client_free (&client);
}

int main (void)
{
    for (size_t i = 0; i < LARGE; i++)
        large[i] = (uint8_t) (i * 7919 >> 5);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown (what_is_attached_outlives_the_broker, set_up, tear_down),
        cmocka_unit_test_setup_teardown (an_import_brings_what_fits_no_commit, set_up, tear_down)};
    return cmocka_run_group_tests (tests, NULL, NULL);
}
