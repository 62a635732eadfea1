/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* taskctl submit --batch and --lines: one task per line of a file.
 *
 * All lines are checked before the first is submitted. Then they go in slices; each task gets
 * its id here, so that one whose outcome is unknown can be named and repeated. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/memory.h"
#include "ids.h"
#include "link/connect.h"
#include "link/ids.h"
#include "link/input.h"
#include "screen/items.h"
#include "screen/output.h"
#include "screen/status.h"
#include "verbs/receipt.h"
#include "verbs/spec.h"
#include "verbs/submit.h"

enum {
    SLICE_TASKS = 2048,            /* of one call; the library makes messages of them */
    SLICE_BYTES = 8 * 1024 * 1024, /* well below the library's outbox */
    RETRY_MS_MIN = 20              /* between repeats of what an overloaded broker refused */
};

/* A file being walked through line by line; empty lines are skipped. */
typedef struct lines {
    const char *at;
    const char *end;
    size_t number; /* of the line that was returned last, from 1 */
    app_t *app;
    tmq_id_t *ids; /* of the tasks of the lines before; zero: there is none */
    bool payloads; /* --lines: each is a payload; else it describes its task */
} lines_t;

typedef struct batch_slice {
    spec_t specs[SLICE_TASKS];
    tmq_submit_t submits[SLICE_TASKS];
    tmq_receipt_t receipts[SLICE_TASKS];
    size_t numbers[SLICE_TASKS]; /* of the lines */
    size_t count;
    /* Those that are sent together. */
    tmq_submit_t sent[SLICE_TASKS];
    tmq_receipt_t answers[SLICE_TASKS];
    size_t places[SLICE_TASKS];
} batch_slice_t;

static const char *next_line (lines_t *lines, size_t *length)
{
    while (lines->at < lines->end) {
        const char *line = lines->at;
        const char *end = memchr (line, '\n', (size_t) (lines->end - line));
        *length = (size_t) ((end ? end : lines->end) - line);
        lines->at = end ? end + 1 : lines->end;
        lines->number++;
        if (strspn (line, " \t\r") < *length)
            return line;
    }
    return NULL;
}

/* Room for an id a line. */
static tmq_id_t *make_ids (const char *text, size_t bytes)
{
    size_t count = 1;
    for (size_t i = 0; i < bytes; i++)
        count += text[i] == '\n';
    tmq_id_t *ids = must_alloc (count * sizeof *ids);
    memset (ids, 0, count * sizeof *ids);
    return ids;
}

static bool make_spec (spec_t *spec, const lines_t *lines, const char *line, size_t length,
                       char *why, size_t why_size)
{
    spec_init (spec, lines->app->args.command->options);
    spec->takes_files = true;
    if (!lines->payloads) {
        spec->earlier = lines->ids;
        spec->earlier_count = lines->number - 1;
        return spec_from_line (spec, line, length, why, why_size);
    }
    snprintf (why, why_size, "it has %zu bytes, the limit is %zu", length,
              (size_t) TMQ_BLOB_BYTES_MAX);
    spec_from_args (spec, lines->app, 0); /* has been looked at before */
    spec->submit.payload = line;
    spec->submit.payload_bytes = length;
    return length <= TMQ_BLOB_BYTES_MAX;
}

/* Names every broken line, up to a few, and submits nothing then. */
static int check_all (app_t *app, lines_t lines, size_t *count)
{
    enum { SHOWN_MAX = 10 };
    size_t length;
    size_t broken = 0;
    char why[256];
    for (const char *line; (line = next_line (&lines, &length)); (*count)++) {
        spec_t spec;
        if (!make_spec (&spec, &lines, line, length, why, sizeof why) && ++broken <= SHOWN_MAX)
            usage_error (app, NULL, "line %zu: %s", lines.number, why);
        if (id_is_zero (&spec.submit.id))
            tmq_id_make (&spec.submit.id);
        lines.ids[lines.number - 1] = spec.submit.id;
        spec_clear (&spec);
    }
    if (broken > SHOWN_MAX)
        note (app, "... and %zu more broken lines", broken - SHOWN_MAX);
    if (broken)
        note (app, "nothing was submitted");
    return broken ? EXIT_USAGE : 0;
}

static void fill_slice (batch_slice_t *slice, lines_t *lines)
{
    size_t length;
    size_t bytes = 0;
    char why[256];
    slice->count = 0;
    while (slice->count < SLICE_TASKS && bytes < SLICE_BYTES) {
        const char *line = next_line (lines, &length);
        if (!line)
            break;
        spec_t *spec = &slice->specs[slice->count];
        make_spec (spec, lines, line, length, why, sizeof why);
        spec->submit.id = lines->ids[lines->number - 1];
        slice->submits[slice->count] = spec->submit;
        slice->numbers[slice->count++] = lines->number;
        bytes += spec->submit.payload_bytes + length;
    }
}

static void clear_slice (batch_slice_t *slice)
{
    for (size_t i = 0; i < slice->count; i++)
        spec_clear (&slice->specs[i]);
    slice->count = 0;
}

static bool is_overloaded (const batch_slice_t *slice, size_t i)
{
    const int code = slice->receipts[i].code;
    return code == TMQ_OVERLOADED || code == TMQ_UNAVAILABLE;
}

/* What it depends on may be among those that the broker had no room for. */
static bool may_come_later (const batch_slice_t *slice, size_t i)
{
    return slice->receipts[i].code == TMQ_NOT_FOUND && slice->submits[i].after_count > 0;
}

/* The upload was forgotten, by a broker that was started again. */
static bool is_forgotten (const batch_slice_t *slice, size_t i)
{
    return slice->receipts[i].code == TMQ_NO_BLOB && slice->submits[i].payload_blob.bytes > 0;
}

/* What is larger than a frame is uploaded first. False: it cannot be, which its receipt says. */
static bool put_large (const app_t *app, batch_slice_t *slice, size_t i)
{
    tmq_error_t error = {0};
    tmq_submit_t *submit = &slice->submits[i];
    const tmq_submit_t *given = &slice->specs[i].submit;
    if (given->payload_bytes <= TMQ_FRAME_BYTES_MAX)
        return true;
    submit->payload = NULL;
    submit->payload_bytes = 0;
    const int code = tmq_blob_put (&submit->payload_blob, app->client, given->payload,
                                   given->payload_bytes, app->timeout_ms, &error);
    if (code == TMQ_OK)
        return true;
    slice->receipts[i] = (tmq_receipt_t){.id = submit->id, .code = code};
    snprintf (slice->receipts[i].text, sizeof slice->receipts[i].text, "%.255s", error.text);
    return false;
}

/* Notes it for send_noted. */
static void note_place (batch_slice_t *slice, size_t *count, size_t i)
{
    slice->sent[*count] = slice->submits[i];
    slice->places[(*count)++] = i;
}

static void send_noted (const app_t *app, batch_slice_t *slice, size_t count, uint32_t timeout_ms)
{
    if (count > 0)
        tmq_submit_batch (slice->answers, app->client, slice->sent, count, timeout_ms, NULL);
    for (size_t i = 0; i < count; i++)
        slice->receipts[slice->places[i]] = slice->answers[i];
}

static size_t collect_again (const app_t *app, batch_slice_t *slice)
{
    size_t count = 0;
    size_t missing = 0;
    for (size_t i = 0; i < slice->count; i++) {
        const bool again =
            is_overloaded (slice, i) || (is_forgotten (slice, i) && put_large (app, slice, i));
        missing += again;
        if (again || (missing > 0 && may_come_later (slice, i)))
            note_place (slice, &count, i);
    }
    return count;
}

/* Submits again what the broker had no room for, while the time of one request lasts. Repeating is
 * safe: the ids are the same. */
static void submit_again (const app_t *app, batch_slice_t *slice, uint64_t deadline_ms)
{
    for (uint64_t pause_ms = RETRY_MS_MIN;; pause_ms *= 2) {
        const size_t count = collect_again (app, slice);
        const uint64_t now_ms = mono_ms ();
        if (count == 0 || now_ms + pause_ms >= deadline_ms)
            break;
        detail (app, "the broker is overloaded: %zu tasks again in %d ms", count, (int) pause_ms);
        nanosleep (
            &(struct timespec){(time_t) (pause_ms / 1000), (long) (pause_ms % 1000) * 1000000},
            NULL);
        send_noted (app, slice, count, (uint32_t) (deadline_ms - now_ms - pause_ms));
    }
}

static void submit_slice (const app_t *app, batch_slice_t *slice)
{
    size_t count = 0;
    for (size_t i = 0; i < slice->count; i++)
        if (put_large (app, slice, i))
            note_place (slice, &count, i);
    const uint64_t deadline_ms = mono_ms () + app->timeout_ms;
    send_noted (app, slice, count, app->timeout_ms);
    submit_again (app, slice, deadline_ms);
}

static void print_line (items_t *items, const tmq_receipt_t *receipt, const char *queue)
{
    char id[37] = "";
    if (app_wants_json (items->app)) {
        write_receipt (items_open (items), receipt, queue);
        items_close (items);
        return;
    }
    if (receipt->code == TMQ_OK)
        tmq_id_format (&receipt->id, id);
    puts (id);
}

static void tell_failure (const app_t *app, const batch_slice_t *slice, size_t i)
{
    char id[37];
    const tmq_receipt_t *receipt = &slice->receipts[i];
    const char *text = *receipt->text ? receipt->text : tmq_code_text (receipt->code);
    tmq_id_format (&slice->submits[i].id, id);
    tmq_error_t error = {.code = receipt->code};
    snprintf (error.text, sizeof error.text, "%s", text);
    if (receipt->code == TMQ_UNKNOWN)
        unknown_error (app, &error, id, NULL,
                       "line %zu: no answer in time: task %s may have been submitted; repeat it "
                       "with \"id\":\"%s\"",
                       slice->numbers[i], id, id);
    else
        code_error (app, receipt->code, NULL, "line %zu: %s", slice->numbers[i], text);
}

/* What came of the whole: unknown outweighs refused. */
typedef struct batch_sum {
    size_t accepted;
    size_t refused;
    size_t unknown;
    size_t existing;
    bool cut_off; /* the broker does not answer any more */
} batch_sum_t;

static void print_slice (items_t *items, const batch_slice_t *slice, batch_sum_t *sum)
{
    status_hide (items->app);
    for (size_t i = 0; i < slice->count; i++) {
        const tmq_receipt_t *receipt = &slice->receipts[i];
        const int exit_code = exit_of_code (receipt->code);
        sum->accepted += exit_code == EXIT_OK;
        sum->unknown += exit_code == EXIT_UNKNOWN;
        sum->refused += exit_code != EXIT_OK && exit_code != EXIT_UNKNOWN;
        sum->existing += receipt->code == TMQ_OK && receipt->existing;
        sum->cut_off = exit_code == EXIT_UNREACHABLE || exit_code == EXIT_UNKNOWN;
        print_line (items, receipt, slice->submits[i].queue);
        if (exit_code != EXIT_OK)
            tell_failure (items->app, slice, i);
    }
    fflush (stdout);
}

/* The lines behind the point where the broker was lost: an empty line of output each. */
static size_t skip_rest (items_t *items, lines_t *lines)
{
    const tmq_receipt_t skipped = {.code = TMQ_UNREACHABLE};
    size_t length;
    size_t count = 0;
    const size_t from = lines->number + 1;
    for (; next_line (lines, &length); count++)
        print_line (items, &skipped, NULL);
    if (count)
        code_error (items->app, TMQ_UNREACHABLE, NULL,
                    "the broker does not answer: lines %zu to %zu were not submitted", from,
                    lines->number);
    return count;
}

static int batch_exit (const app_t *app, const batch_sum_t *sum)
{
    if (sum->existing)
        note (app, "%zu existed already", sum->existing);
    if (sum->unknown)
        return EXIT_UNKNOWN;
    if (sum->refused && sum->cut_off && !sum->accepted)
        return EXIT_UNREACHABLE;
    return sum->refused ? EXIT_SOME : EXIT_OK;
}

static void show_bar (const app_t *app, const batch_sum_t *sum, size_t total)
{
    status_show_bar (app, sum->accepted, total, "%zu of %zu submitted", sum->accepted, total);
}

static int submit_all (app_t *app, lines_t lines, size_t total)
{
    status_line_t status;
    batch_slice_t *slice = must_alloc (sizeof *slice);
    batch_sum_t sum = {0};
    items_t items;
    items_begin (&items, app, false);
    status_begin (&status, app);
    for (fill_slice (slice, &lines); slice->count > 0; fill_slice (slice, &lines)) {
        show_bar (app, &sum, total);
        submit_slice (app, slice);
        print_slice (&items, slice, &sum);
        clear_slice (slice);
        if (sum.cut_off)
            sum.refused += skip_rest (&items, &lines);
    }
    status_end (app);
    items_end (&items, NULL);
    free (slice);
    return batch_exit (app, &sum);
}

/* What names or awaits one task cannot be meant for each line. */
static int check_lines_options (app_t *app)
{
    static const option_id_t single[] = {OPT_DATA, OPT_FILE, OPT_ID,    OPT_DEDUP_KEY,
                                         OPT_WAIT, OPT_FOR,  OPT_BATCH, OPT_REQUEST_ID};
    const args_t *args = &app->args;
    spec_t spec;
    for (size_t i = 0; i < sizeof single / sizeof *single; i++) {
        const option_value_t *value = args_value (args, single[i]);
        if (value)
            return usage_error (app, NULL, "--%s does not go with --lines", value->spec->name);
    }
    if (args->operands_count > 1)
        return usage_error (app, "the payloads are the lines of the file",
                            "--lines takes no argument '%s' behind the queue", args->operands[1]);
    spec_init (&spec, args->command->options);
    const int code = spec_from_args (&spec, app, 0);
    spec_clear (&spec);
    return code;
}

/* What is said for the whole batch cannot be meant for each of its tasks. */
static int check_batch_options (app_t *app)
{
    const args_t *args = &app->args;
    if (args->operands_count > 0)
        return usage_error (app, "each line of the file has its own queue",
                            "--batch takes no argument '%s'", args->operands[0]);
    for (size_t i = 0; i < args->values_count; i++) {
        const option_spec_t *spec = args->values[i].spec;
        if (spec->id > OPT_HELP && spec->id != OPT_BATCH && spec->id != OPT_DRY_RUN)
            return usage_error (app, "each line of the file has its own options",
                                "--%s does not go with --batch", spec->name);
    }
    if (args_has (args, OPT_REQUEST_ID))
        return usage_error (app, "give each line its \"id\"",
                            "--request-id does not go with --batch");
    return 0;
}

int run_submit_batch (app_t *app)
{
    char *text;
    size_t bytes;
    size_t count = 0;
    const bool payloads = args_has (&app->args, OPT_LINES);
    const char *file = args_text (&app->args, payloads ? OPT_LINES : OPT_BATCH);
    int code = app_resolve_options (app);
    if (!code)
        code = payloads ? check_lines_options (app) : check_batch_options (app);
    if (!code)
        code = read_all (app, &text, &bytes, file, SIZE_MAX / 4);
    if (code)
        return code;
    const lines_t lines = {text, text + bytes, 0, app, make_ids (text, bytes), payloads};
    code = check_all (app, lines, &count);
    if (!code && args_has (&app->args, OPT_DRY_RUN))
        note (app, "%zu task%s fine; nothing was submitted", count, count == 1 ? " is" : "s are");
    else if (!code && !(code = app_connect (app)))
        code = submit_all (app, lines, count);
    free (lines.ids);
    free (text);
    return code;
}
