/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The card of one task: everything about it, one fact a line. */
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "base/clock.h"
#include "ids.h"
#include "screen/output.h"
#include "screen/show.h"
#include "screen/table.h"
#include "units.h"

enum { BODY_BYTES_SHOWN = 2048, BODY_LINES_SHOWN = 20, ESCAPE = 0x1b, FACT_COLUMN = 16 };

static void put_name (const app_t *app, const char *name)
{
    printf ("  %s%-12s%s  ", paint_dim (app), name, paint_end (app));
}

static void put_fact (const app_t *app, const char *name, const char *text)
{
    if (!text || !*text)
        return;
    put_name (app, name);
    print_wrapped_text (app, text, FACT_COLUMN, FACT_COLUMN);
    fputc ('\n', stdout);
}

/* A time where the reader is; the zone is said where it differs from that of the time before. */
static void put_time (const app_t *app, const char *name, uint64_t ms, long *zone_s)
{
    char text[LOCAL_TIME_SIZE];
    char zone[ZONE_SIZE];
    char relative[UNITS_TEXT_SIZE];
    const long last_s = *zone_s;
    if (!ms || !local_time (text, zone, zone_s, ms))
        return;
    put_name (app, name);
    printf ("%s%s%s  (%s)\n", text, *zone_s == last_s ? "" : " ", *zone_s == last_s ? "" : zone,
            time_format_relative (relative, (int64_t) ms, (int64_t) wall_ms ()));
}

/* Bodies. */

static bool is_text (const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        const unsigned char byte = (unsigned char) bytes[i];
        if (byte < 0x20 && byte != '\n' && byte != '\t' && byte != '\r' && byte != ESCAPE)
            return false;
    }
    return true;
}

/* Takes the colours of a terminal out of a line, in place: the text is worth seeing without. */
static void drop_colors (char *line)
{
    char *out = line;
    while (*line) {
        const size_t length =
            strncmp (line, "\033[", 2) == 0 ? strspn (line + 2, "0123456789;:") : 0;
        if (*line == ESCAPE && line[1] == '[' && line[2 + length] == 'm')
            line += 2 + length + 1;
        else
            *out++ = *line++;
    }
    *out = '\0';
}

/* The beginning of a body, indented; what is left out is said. */
static void put_beginning (const app_t *app, const char *bytes, size_t length, const char *command)
{
    char line[BODY_BYTES_SHOWN + 1];
    size_t at = 0;
    for (int lines = 0; at < length && lines < BODY_LINES_SHOWN && at < BODY_BYTES_SHOWN; lines++) {
        const char *end = memchr (bytes + at, '\n', length - at);
        size_t size = end ? (size_t) (end - bytes) - at : length - at;
        const size_t whole = size;
        if (at + size > BODY_BYTES_SHOWN)
            size = BODY_BYTES_SHOWN - at;
        memcpy (line, bytes + at, size);
        line[size] = '\0';
        drop_colors (line);
        fputs ("    ", stdout);
        print_text (app, stdout, line);
        fputc ('\n', stdout);
        at += size < whole ? size : size + (end ? 1 : 0);
    }
    if (at < length)
        printf ("    %s... %zu more bytes: taskctl %s%s\n", paint_dim (app), length - at, command,
                paint_end (app));
}

static void put_size (const app_t *app, const char *name, uint64_t bytes, const char *type)
{
    char size[UNITS_TEXT_SIZE];
    put_name (app, name);
    fputs (bytes ? size_format (size, bytes) : "empty", stdout);
    if (*type) {
        fputs ("  ", stdout);
        print_text (app, stdout, type);
    }
    fputc ('\n', stdout);
}

static void put_task_body (const app_t *app, const char *name, const tmq_task_t *task,
                           const char *type, const char *verb)
{
    char id[37];
    char command[64];
    tmq_id_format (&task->id, id);
    snprintf (command, sizeof command, "%s %s", verb, id);
    put_size (app, name, task->body_bytes, type);
    if (task->body_bytes == 0)
        return;
    if (is_text (task->body, task->body_bytes))
        put_beginning (app, task->body, task->body_bytes, command);
    else
        printf ("    %sbinary: taskctl %s%s\n", paint_dim (app), command, paint_end (app));
}

/* Facts. */

static void put_head (const app_t *app, const tmq_task_t *task)
{
    char id[37];
    tmq_id_format (&task->id, id);
    printf ("%s%s%s  %s%s%s%s\n", paint_bold (app), id, paint_end (app),
            paint_status (app, task->status), tmq_status_text (task->status), paint_end (app),
            task->dead ? " (dead: no attempts are left)" : "");
}

static void put_labels (const app_t *app, const char *name, const tmq_label_t *labels, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        put_name (app, i == 0 ? name : "");
        print_text (app, stdout, labels[i].key);
        fputc ('=', stdout);
        print_text (app, stdout, labels[i].value);
        fputc ('\n', stdout);
    }
}

static void put_origin (const app_t *app, const tmq_task_t *task)
{
    char text[64];
    put_fact (app, "queue", task->queue);
    put_fact (app, "session", task->session);
    put_fact (app, "namespace", task->ns);
    put_fact (app, "owner", task->owner);
    put_fact (app, "method", task->method);
    snprintf (text, sizeof text, "%d", task->priority);
    put_fact (app, "priority", text);
    put_fact (app, "fair key", task->fair_key);
    put_labels (app, "labels", task->labels, task->labels_count);
    put_labels (app, "require", task->needs, task->needs_count);
    put_fact (app, "meta", task->meta);
    put_fact (app, "trace", task->trace);
}

/* What it waits or waited for. */
static void put_after (const app_t *app, const tmq_task_t *task)
{
    static const char *const policies[] = {"it fails with it", "whatever becomes of it",
                                           "whatever becomes of it"};
    char id[37];
    for (size_t i = 0; i < task->after_count; i++) {
        const tmq_dependency_t *after = &task->after[i];
        tmq_id_format (&after->id, id);
        put_name (app, i == 0 ? "after" : "");
        printf ("%s  ", id);
        if (after->status)
            printf ("%s%s%s\n", paint_status (app, after->status), tmq_status_text (after->status),
                    paint_end (app));
        else
            printf ("%s\n", after->policy <= TMQ_AFTER_CONTINUE ? policies[after->policy] : "");
    }
}

/* The task that it is a part of, and its own parts. */
static void put_parts (const app_t *app, const tmq_task_t *task, const uint64_t *parts)
{
    char text[256];
    size_t used = 0;
    if (!id_is_zero (&task->parent)) {
        tmq_id_format (&task->parent, text);
        put_fact (app, "part of", text);
    }
    for (unsigned i = TMQ_STATUS_QUEUED; parts && i <= TMQ_STATUS_CANCELLED; i++)
        if (parts[i])
            used +=
                (size_t) snprintf (text + used, sizeof text - used, "%s%" PRIu64 " %s",
                                   used ? ", " : "", parts[i], tmq_status_text ((tmq_status_t) i));
    if (used)
        put_fact (app, "parts", text);
}

const char *phase_name (tmq_phase_t phase)
{
    switch (phase) {
#define X(number, NAME, text)                                                                      \
    case TMQ_PHASE_##NAME: return text;
        TMQ_PHASE_MAP (X)
#undef X
    default: return "";
    }
}

static void put_progress (const app_t *app, const tmq_task_t *task)
{
    char text[TMQ_MESSAGE_BYTES_MAX + 128];
    if (task->progress_done > 0 || task->progress_total > 0 || *task->progress_message)
        put_fact (app, "progress",
                  progress_text (text, sizeof text, task->progress_done, task->progress_total,
                                 task->progress_unit, task->progress_message));
}

static void put_course (const app_t *app, const tmq_task_t *task)
{
    char text[64];
    char span[32];
    char ttl[UNITS_TEXT_SIZE];
    long zone_s = LONG_MIN;
    put_fact (app, "phase", phase_name (task->phase));
    put_after (app, task);
    put_time (app, "created", task->created_at, &zone_s);
    if (!tmq_status_terminal (task->status)) {
        put_time (app, "not before", task->not_before, &zone_s);
        put_time (app, "start by", task->start_by, &zone_s);
    }
    put_time (app, "started", task->started_at, &zone_s);
    put_time (app, "finished", task->finished_at, &zone_s);
    put_fact (app, "took", task_took (span, task));
    put_time (app, "expires", task->expires_at, &zone_s);
    if (!task->expires_at)
        put_fact (app, "expires", "never");
    if (task->ttl_ms)
        put_fact (app, "ttl", duration_format (ttl, (int64_t) task->ttl_ms));
    if (task->max_runtime_ms)
        put_fact (app, "max runtime", duration_format (ttl, (int64_t) task->max_runtime_ms));
    snprintf (text, sizeof text, "%" PRIu32, task->attempt);
    put_fact (app, "attempt", text);
    snprintf (text, sizeof text, "%" PRIu32 " of %" PRIu32, task->failures, task->max_attempts);
    put_fact (app, "failures", text);
    put_fact (app, "worker", task->worker);
    put_fact (app, "message", task->status_message);
    put_fact (app, "cancelled", task->cancel_message);
    if (task->turns) {
        snprintf (text, sizeof text, "%" PRIu32, task->turns);
        put_fact (app, "turns", text);
    }
    put_progress (app, task);
}

static void put_outcome (const app_t *app, const tmq_task_t *task)
{
    if (task->outcome == TMQ_OUTCOME_TOOL_ERROR || task->outcome == TMQ_OUTCOME_PROTOCOL_ERROR) {
        char code[16];
        const int length = snprintf (code, sizeof code, "%" PRId32, task->error_code);
        put_name (app, "error");
        printf ("%s%s%s  ", paint_status (app, TMQ_STATUS_FAILED), code, paint_end (app));
        print_wrapped_text (app, task->error_message, FACT_COLUMN + (size_t) length + 2,
                            FACT_COLUMN);
        fputc ('\n', stdout);
        put_fact (app, "error data", task->error_data);
    }
    if (task->result_blob.bytes > 0)
        put_size (app, "result", task->result_bytes, task->result_type);
    else if (task->outcome == TMQ_OUTCOME_RESULT || task->outcome == TMQ_OUTCOME_TOOL_ERROR)
        put_task_body (app, "result", task, task->result_type, "result");
}

static void put_payload (const app_t *app, const tmq_task_t *task, const tmq_task_t *payload)
{
    if (payload && payload->payload_blob.bytes == 0)
        put_task_body (app, "payload", payload, payload->content_type, "payload");
    else
        put_size (app, "payload", task->payload_bytes, task->content_type);
    if (payload && payload->payload_blob.bytes > 0)
        note (app, "the payload is larger than 256 KiB: taskctl payload ID -o FILE fetches it");
}

void show_card (const app_t *app, const tmq_task_t *task, const uint64_t *parts,
                const tmq_task_t *payload, tmq_event_t *const *events, size_t events_count)
{
    put_head (app, task);
    put_origin (app, task);
    put_parts (app, task, parts);
    put_course (app, task);
    put_payload (app, task, payload);
    put_outcome (app, task);
    if (events_count == 0)
        return;
    printf ("  %sevents%s\n", paint_dim (app), paint_end (app));
    for (size_t i = 0; i < events_count; i++)
        show_history_event (app, events[i]);
}
