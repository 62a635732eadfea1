/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the functions of routes have in common: answering, and asking the broker for an exchange. */
#ifndef TASKMQ_GATEWAY_REST_ANSWER_H
#define TASKMQ_GATEWAY_REST_ANSWER_H

#include "json.h"
#include "link/link.h"
#include "rest/problem.h"
#include "rest/service.h"

enum { ENTITY_TAG_SIZE = 48 };

/* Sends it, with the fields that every response has. response is cleared. */
void answer (exchange_t *exchange, response_t *response);
/* Begins a stream of server-sent events with a response whose body is its first bytes; on_gone and
 * the like may be set before or after. False: answered with a problem instead, because there are as
 * many streams as may be. response is cleared. */
bool answer_stream (exchange_t *exchange, response_t *response);
/* The same for one that is sized: bytes as they are. */
bool answer_in_pieces (exchange_t *exchange, response_t *response);
/* Would it be taken now? */
bool answer_has_stream (const exchange_t *exchange);
/* … of what a browser may keep, if it asks each time whether it changed. */
void answer_kept (exchange_t *exchange, response_t *response);
void answer_problem (exchange_t *exchange, const problem_t *problem);
/* A problem about a member or a parameter. */
__attribute__ ((format (printf, 3, 4))) void answer_invalid (exchange_t *exchange,
                                                             const char *pointer,
                                                             const char *format, ...);
/* What the library told; id may be NULL. */
void answer_code (exchange_t *exchange, int code, const tmq_error_t *error, const tmq_id_t *id);
/* Begins a response of JSON, status 200, into whose body the writer writes. */
json_writer_t answer_json (response_t *response);

/* Answers with an object whose members the function writes; or, when the completion is not good,
 * with what it tells. */
void answer_object (exchange_t *exchange, const tmq_completion_t *completion,
                    void (*write) (json_writer_t *writer, const tmq_completion_t *completion));
/* The member that every page has: where the next one begins, or null. */
void answer_next (json_writer_t *writer, uint64_t next, bool more);

/* On whose behalf the broker is asked: of one who may do it with his own tasks only. NULL: of
 * nobody. */
const char *owner_of (const exchange_t *exchange);
/* Where the description of this gateway as a resource of OAuth (RFC 9728) stands. */
#define RESOURCE_PATH "/.well-known/oauth-protected-resource"

/* text, and who made the request where the broker would know the gateway alone: "text (by NAME
 * through the gateway)", or text alone where that would not fit. */
void sign (char *out, size_t size, const exchange_t *exchange, const char *text);
/* The call that belongs to this exchange: it is forgotten when the exchange ends. */
link_call_t call_of (exchange_t *exchange, link_fn *fn);
/* As link_wait, which is answered. Where all that may be waited for is taken, a long poll of many
 * tasks of one who waits for more gives way, and is answered as if its time were over. */
int answer_wait (exchange_t *exchange, link_call_t call, const tmq_id_t *ids, size_t count,
                 uint32_t timeout_ms, tmq_error_t *error);
/* Answers with the problem unless code is TMQ_OK. */
void started (exchange_t *exchange, int code, const tmq_error_t *error);
/* True if the completion is good; else it has been answered. */
bool came_well (exchange_t *exchange, const tmq_completion_t *completion, const tmq_id_t *id);
/* Memory of the exchange, zeroed, that is freed with it; NULL, answered, when there is none. */
void *keep_state (exchange_t *exchange, size_t size, void (*clear) (void *state));

/* The id of the path's first parameter; false, answered, if it is none. */
bool path_id (exchange_t *exchange, tmq_id_t *out);
/* Tasks carry the name of who submitted them in this label, which nobody else may set. */
#define PRINCIPAL_LABEL "gw.principal"
bool owns (const exchange_t *exchange, const tmq_task_t *task);
/* Seconds of "Prefer: wait=N" in milliseconds, cut to the limit; 0: not wanted, or no number. */
uint32_t wait_wanted_ms (const exchange_t *exchange);
void entity_tag (char out[ENTITY_TAG_SIZE], const exchange_t *exchange, const tmq_task_t *task);
/* True if the field (If-None-Match) has that tag, or is "*". */
bool tag_matches (const exchange_t *exchange, const char *tag);

#endif
