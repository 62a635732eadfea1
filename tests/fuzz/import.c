/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The pieces of an imported task: decoder and judge. */
#include "fuzz.h"
#include "ids.h"
#include "imported.h"
#include "types.h"

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    verdict_t verdict;
    arena_t *arena = arena_new (IMPORTED_ARENA_BYTES);
    uint8_t *bytes = fuzz_copy (data, size);
    const Taskmq__ImportedTask *whole = imported_read (&verdict, arena, bytes, size);
    HOLDS ((whole == NULL) == (verdict.code != TMQ_OK));
    HOLDS ((verdict.text == NULL) == (verdict.code == TMQ_OK));
    if (whole != NULL) {
        HOLDS (name_is_valid (whole->task->queue));
        HOLDS (whole->n_turns <= TMQ_TURNS_MAX && whole->n_attempts <= TMQ_IMPORT_ATTEMPTS_MAX);
        HOLDS (status_is_terminal (whole->task->status) == (whole->task->finished_at != 0));
        HOLDS ((whole->task->status == TMQ_STATUS_INPUT_REQUIRED) == (whole->n_questions > 0));
        HOLDS (whole->n_artifacts <= TMQ_ARTIFACTS_MAX && whole->n_late <= TMQ_KEPT_TASK_MAX);
        for (size_t i = 0; i < whole->n_artifacts; i++)
            HOLDS (whole->artifacts[i]->body.len == 0 ||
                   whole->artifacts[i]->body.len == whole->artifacts[i]->info->bytes);
        for (size_t i = 0; i < whole->n_turns; i++)
            HOLDS (whole->turns[i]->info->turn == i + 1);
    }
    free (bytes);
    arena_free (arena);
    return 0;
}
