/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* From the public structs to the fields of a request. Needs no core and no lock. Each function
 * returns 0 or a code, with a text in error (which may be NULL). */
#ifndef TASKMQ_CLIENT_ENCODE_H
#define TASKMQ_CLIENT_ENCODE_H

#include "codec/request.h"

/* What the caller's version of the struct has, over the defaults. */
int core_submit_take (tmq_submit_t *out, const tmq_submit_t *in, tmq_error_t *error);
/* A Blob as a member of this number. */
void core_encode_blob (bytes_t *out, uint32_t member, const tmq_blob_t *blob);
/* made: the task's id if `in` has none. */
int core_request_submit (core_request_t **out, const tmq_submit_t *in, const tmq_id_t *made,
                         tmq_error_t *error);
/* in: count tasks, split into as many requests as needed; items without an id get one of ids. */
int core_request_submit_batch (core_request_t **out, const tmq_submit_t *in, const tmq_id_t *ids,
                               size_t count, tmq_error_t *error);
/* op: TMQ_OP_GET, TMQ_OP_RESULT or TMQ_OP_PAYLOAD. */
int core_request_get (core_request_t **out, tmq_op_t op, const tmq_id_t *id, tmq_error_t *error);
/* The record alone: its reply is not among the large ones. */
int core_request_get_record (core_request_t **out, const tmq_id_t *id, tmq_error_t *error);
int core_request_resolve (core_request_t **out, const char *suffix, tmq_error_t *error);
int core_request_list (core_request_t **out, const tmq_list_query_t *in, tmq_error_t *error);
/* The text is taken as it is: the broker judges it. */
int core_request_search (core_request_t **out, const tmq_search_t *in, tmq_error_t *error);
int core_request_count (core_request_t **out, const tmq_filter_t *in, tmq_error_t *error);
int core_request_events (core_request_t **out, const tmq_id_t *id, uint64_t before_seq,
                         uint32_t limit, tmq_error_t *error);
int core_request_cancel (core_request_t **out, const tmq_id_t *id, const char *message,
                         tmq_error_t *error);
/* Its fields are those of a message. */
int core_request_message (core_request_t **out, tmq_op_t op, const ProtobufCMessage *message,
                          tmq_error_t *error);
/* op: TMQ_OP_STATS or TMQ_OP_PING. */
int core_request_plain (core_request_t **out, tmq_op_t op, tmq_error_t *error);

/* The fields of a TaskSpec without an id, of a task that was checked here. */
int core_encode_spec (bytes_t *out, const tmq_submit_t *in, tmq_error_t *error);

/* The last step of each: takes the request, which may be NULL. */
int core_request_finish (core_request_t **out, core_request_t *request, tmq_error_t *error);

/* The filter of a subscription, with what it asks about other things than tasks. */
void core_encode_subscription_filter (bytes_t *out, uint32_t field,
                                      const tmq_subscription_options_t *options);
int core_check_filter (const tmq_filter_t *filter, bool subscription, tmq_error_t *error);

int core_check_labels (const tmq_label_t *labels, size_t count, tmq_error_t *error);
/* Each as this field of an enclosing message. */
void core_encode_labels (bytes_t *out, uint32_t field, const tmq_label_t *labels, size_t count);

#endif
