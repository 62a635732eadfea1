/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Uploads that end before they are whole. */
#include <pthread.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "library_support.h"
#include "support/cmocka_all.h"
#include "support/timing.h"

enum { TAKEN_BYTES = 700000, UPLOADS_MAX = 16 /* of an identity, at the broker */ };

static int blob_step (tmq_client_t *client, const tmq_blob_t *blob, const void *bytes,
                      size_t length, uint64_t *offset)
{
    tmq_completion_t *done = NULL;
    size_t count = 0;
    assert_int_equal (
        tmq_blob_send_start (client, blob, 0, bytes, length, TIMING_PATIENCE_MS, NULL, NULL),
        TMQ_OK);
    assert_int_equal (tmq_client_poll (&done, 1, &count, client, TIMING_PATIENCE_MS), TMQ_OK);
    int code = done->code;
    *offset = code == TMQ_OK ? done->part->offset : 0;
    tmq_completion_free (done);
    return code;
}

/* Its bytes are gone, and its place is another one's. */
static void an_upload_is_taken_back (void **state)
{
    (void) state;
    tmq_client_t *client = daemon_client (&broker);
    tmq_blob_t blobs[UPLOADS_MAX + 1];
    static uint8_t bytes[TMQ_FRAME_BYTES_MAX];
    uint64_t offset;
    for (size_t i = 0; i <= UPLOADS_MAX; i++) {
        blobs[i] = (tmq_blob_t){.bytes = TAKEN_BYTES};
        memset (blobs[i].hash, (int) (i + 1), sizeof blobs[i].hash);
        int code = blob_step (client, &blobs[i], NULL, 0, &offset);
        assert_int_equal (code, i < UPLOADS_MAX ? TMQ_OK : TMQ_OVERLOADED);
    }
    assert_int_equal (blob_step (client, &blobs[0], bytes, sizeof bytes, &offset), TMQ_OK);
    assert_int_equal (offset, sizeof bytes);
    assert_int_equal (tmq_blob_drop (NULL, &blobs[0], NULL), TMQ_INVALID);
    assert_int_equal (tmq_blob_drop (client, NULL, NULL), TMQ_INVALID);
    assert_int_equal (tmq_blob_drop (client, &blobs[0], NULL), TMQ_OK);
    assert_int_equal (blob_step (client, &blobs[0], bytes, sizeof bytes, &offset), TMQ_NO_BLOB);
    assert_int_equal (blob_step (client, &blobs[UPLOADS_MAX], NULL, 0, &offset), TMQ_OK);
    assert_int_equal (tmq_blob_drop (client, &blobs[UPLOADS_MAX], NULL), TMQ_OK);
    assert_int_equal (blob_step (client, &blobs[0], NULL, 0, &offset), TMQ_OK);
    assert_int_equal (offset, 0);
    for (size_t i = 0; i < UPLOADS_MAX; i++)
        tmq_blob_drop (client, &blobs[i], NULL);
    tmq_client_free (&client);
}

enum { SHRINKS_BYTES = 16 * 1024 * 1024 };

typedef struct shrinking {
    tmq_client_t *client;
    int fd;
    int code;
    atomic_bool ended;
} shrinking_t;

static void *put_shrinking (void *context)
{
    shrinking_t *self = context;
    tmq_blob_t blob;
    self->code = tmq_blob_put_file (&blob, self->client, self->fd, TIMING_PATIENCE_MS, NULL);
    self->ended = true;
    return NULL;
}

/* Nothing of it can become whole any more, and nobody has to find that out. */
static void a_file_that_shrinks_is_taken_back (void **state)
{
    (void) state;
    tmq_client_t *client = daemon_client (&broker);
    uint8_t *bytes = calloc (1, SHRINKS_BYTES);
    shrinking_t put = {.client = client, .code = TMQ_OK};
    tmq_blob_t blob = {.bytes = SHRINKS_BYTES};
    uint64_t offset = 0;
    assert_non_null (bytes);
    for (int round = 1; put.code == TMQ_OK && round < 100; round++) {
        pthread_t thread;
        FILE *file = tmpfile ();
        assert_non_null (file);
        bytes[0] = (uint8_t) round;
        put.fd = fileno (file);
        put.ended = false;
        assert_int_equal (fwrite (bytes, 1, SHRINKS_BYTES, file), SHRINKS_BYTES);
        assert_int_equal (fflush (file), 0);
        crypto_generichash (blob.hash, sizeof blob.hash, bytes, SHRINKS_BYTES, NULL, 0);
        assert_int_equal (pthread_create (&thread, NULL, put_shrinking, &put), 0);
        WAIT_FOR (put.ended || blob_step (client, &blob, NULL, 0, &offset) != TMQ_OK || offset > 0,
                  TIMING_PATIENCE_MS);
        assert_int_equal (ftruncate (put.fd, 0), 0);
        pthread_join (thread, NULL);
        fclose (file);
    }
    assert_int_equal (put.code, TMQ_CONFLICT);
    assert_int_equal (blob_step (client, &blob, NULL, 0, &offset), TMQ_OK);
    assert_int_equal (offset, 0);
    tmq_blob_drop (client, &blob, NULL);
    tmq_client_free (&client);
    free (bytes);
}

int main (void)
{
    assert_true (sodium_init () >= 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown (an_upload_is_taken_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown (a_file_that_shrinks_is_taken_back, set_up, tear_down)};
    return cmocka_run_group_tests (tests, NULL, NULL);
}
