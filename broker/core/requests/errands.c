/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Errands. One that was given away comes back, also when its link has ended meanwhile: what it did
 * is done. */
#include "core/requests/errands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/requests/answer.h"
#include "core/requests/quota.h"
#include "core/requests/unavailable.h"
#include "core/tasks/blobs.h"
#include "core/tasks/index.h"
#include "core/tasks/journal.h"

enum {
    ERRANDS_MAX = 64,     /* for operators, and for everybody: that wait or are under way, … */
    ERRANDS_LINK_MAX = 4, /* … of one link */
    ERRANDS_RETRY_MS = 200
};

typedef struct errand_job {
    errand_t errand; /* first */
    node_t node;     /* of those that wait, or of those given away */
    node_t of_link;  /* unlinked: the link has ended */
    link_t *link;
    uint64_t request;
    uint64_t batch; /* that its answer waits for */
    bool given;     /* to the server */
} errand_job_t;

static size_t count_of (const link_t *link)
{
    size_t count = 0;
    for (const node_t *node = link->errands.next; node != &link->errands; node = node->next)
        count++;
    return count;
}

/* What everybody may ask for keeps no operator from what he has to do. */
static size_t *counted_in (requests_t *self, uint32_t op)
{
    if (op == TASKMQ__REQUEST__OP_BLOB_BEGIN || op == TASKMQ__REQUEST__OP_BLOB_CHUNK ||
        op == TASKMQ__REQUEST__OP_BLOB_READ || op == TASKMQ__REQUEST__OP_BLOB_DROP)
        return &self->errands_of_blobs_count;
    bool of_all = op == TASKMQ__REQUEST__OP_READ_LOG || op == TASKMQ__REQUEST__OP_ENROLL;
    return of_all ? &self->errands_of_all_count : &self->errands_count;
}

/* Up to the name that it acts for. */
static size_t peer_length (const char *identity)
{
    return strcspn (identity, "/");
}

static size_t blobs_of (requests_t *self, const node_t *list, const char *identity)
{
    size_t count = 0;
    size_t length = peer_length (identity);
    for (const node_t *node = list->next; node != list; node = node->next) {
        const errand_t *errand = &LIST_ITEM (node, const errand_job_t, node)->errand;
        count += counted_in (self, errand->op) == &self->errands_of_blobs_count &&
                 peer_length (errand->identity) == length &&
                 strncmp (errand->identity, identity, length) == 0;
    }
    return count;
}

/* Of those about blobs nobody has more than half of what the others leave, so there is always a
 * place for them; and what one link may have is never too much. */
static bool is_over_share (requests_t *self, const char *identity)
{
    size_t own =
        blobs_of (self, &self->errands, identity) + blobs_of (self, &self->errands_given, identity);
    size_t others = self->errands_of_blobs_count - own;
    return own >= ERRANDS_LINK_MAX && own >= (ERRANDS_MAX - others) / 2;
}

static buf_t *pack_request (const Taskmq__Request *request)
{
    size_t bytes = taskmq__request__get_packed_size (request);
    buf_t *packed = buf_new_uninitialised (bytes);
    taskmq__request__pack (request, buf_mutable (packed));
    return packed;
}

static bool joins_with_tasks (const call_t *call)
{
    char name[TMQ_NAME_LENGTH_MAX + 1];
    const principal_t *invitation = call->link->access.principal;
    if (invitation == NULL || !invitation->is_invitation)
        return false;
    const char *host = call->request->enroll->host;
    return principal_join_name (invitation, host, name, sizeof (name)) > 0 &&
           task_owner_has_some (call->requests->tasks, name);
}

/* Whoever gets a name gets what it owns. */
static bool owns_tasks (const call_t *call)
{
    const Taskmq__Request *request = call->request;
    if (request->op_case == TASKMQ__REQUEST__OP_ENROLL)
        return joins_with_tasks (call);
    if (request->op_case == TASKMQ__REQUEST__OP_KEY_TRUST)
        return task_owner_has_some (call->requests->tasks, request->key_trust->name);
    return request->op_case == TASKMQ__REQUEST__OP_INVITE &&
           task_owner_has_some (call->requests->tasks, request->invite->name);
}

errand_t *errand_begin (call_t *call)
{
    requests_t *self = call->requests;
    char text[LIMIT_TEXT_SIZE];
    if (count_of (call->link) >= ERRANDS_LINK_MAX) {
        limit_text (text, "open requests of a link that need a file", ERRANDS_LINK_MAX);
        reply_code_at_once (call, TMQ_LIMIT, text, ERRANDS_RETRY_MS);
        return NULL;
    }
    size_t *count = counted_in (self, (uint32_t) call->request->op_case);
    if (*count >= ERRANDS_MAX) {
        limit_text (text, "open requests that need a file", ERRANDS_MAX);
        reply_code_at_once (call, TMQ_OVERLOADED, text, ERRANDS_RETRY_MS);
        return NULL;
    }
    if (count == &self->errands_of_blobs_count &&
        is_over_share (self, name_text (call->link->identity))) {
        reply_code_at_once (
            call, TMQ_OVERLOADED,
            "you have half of the open requests about blobs, the rest is for others",
            ERRANDS_RETRY_MS);
        return NULL;
    }
    errand_job_t *job = memory_zero (1, sizeof (*job));
    job->errand.op = (uint32_t) call->request->op_case;
    job->errand.peer = call->link->peer;
    job->errand.identity = memory_text (name_text (call->link->identity));
    job->errand.request = pack_request (call->request);
    job->errand.owns = owns_tasks (call);
    snprintf (job->errand.ns, sizeof (job->errand.ns), "%s", call->link->space->name);
    job->errand.context = job;
    job->link = call->link;
    job->request = call->request->id;
    list_push_back (&self->errands, &job->node);
    list_push_back (&call->link->errands, &job->of_link);
    ++*count;
    return &job->errand;
}

void on_errand (call_t *call)
{
    errand_begin (call);
}

errand_t *errand_about_task (call_t *call, int64_t number)
{
    errand_t *errand = errand_begin (call);
    if (errand == NULL)
        return NULL;
    errand->task_number = number;
    ((errand_job_t *) errand->context)->batch = journal_batch (call->requests->tasks);
    return errand;
}

errand_t *errand_jobs_next (requests_t *self)
{
    node_t *node = list_pop_front (&self->errands);
    if (node == NULL)
        return NULL;
    list_push_back (&self->errands_given, node);
    errand_job_t *job = LIST_ITEM (node, errand_job_t, node);
    job->given = true;
    return &job->errand;
}

static void job_free (requests_t *self, errand_job_t *job)
{
    list_remove (&job->node);
    list_remove (&job->of_link);
    --*counted_in (self, job->errand.op);
    errand_clear (&job->errand);
    free (job);
}

void errand_answer (requests_t *self, errand_t *errand)
{
    errand_job_t *job = errand->context;
    if (errand->whole)
        blob_claim (self->tasks, errand->ns, errand->identity, errand->blob, errand->blob_bytes);
    if (errand->over_quota)
        quota_tell (self, job->link, errand->identity, errand->text);
    if (job->link != NULL) {
        bool good = errand->code == TMQ_OK;
        const char *text = errand->text[0] != '\0' ? errand->text : NULL;
        bytes_mark_t mark;
        tmq_code_t code =
            errand->code == TMQ_UNAVAILABLE ? unavailable_code (job->link) : errand->code;
        bytes_t *out =
            reply_open (self, job->request, code, text, errand->retry_after_ms, false, &mark);
        if (good && errand->member != 0)
            bytes_append_element (out, errand->member, buf_bytes (errand->fields),
                                  buf_length (errand->fields));
        reply_close (self, job->link, mark, job->batch, good ? errand->body : NULL);
    }
    job_free (self, job);
}

void errand_jobs_drop_link (requests_t *self, link_t *link)
{
    for (node_t *node = list_pop_front (&link->errands); node != NULL;
         node = list_pop_front (&link->errands)) {
        errand_job_t *job = LIST_ITEM (node, errand_job_t, of_link);
        job->link = NULL;
        /* It may have been cut because it has no right any more. To take an upload back needs none,
         * and is often the last thing that a client says. */
        if (!job->given && job->errand.op != TASKMQ__REQUEST__OP_BLOB_DROP)
            job_free (self, job);
    }
}

void errand_jobs_free (requests_t *self)
{
    node_t *lists[] = {&self->errands, &self->errands_given};
    for (size_t i = 0; i < sizeof (lists) / sizeof (lists[0]); i++)
        for (node_t *node = list_pop_front (lists[i]); node != NULL;
             node = list_pop_front (lists[i]))
            job_free (self, LIST_ITEM (node, errand_job_t, node));
}
