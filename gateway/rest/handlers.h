/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The functions of the routes. */
#ifndef TASKMQ_GATEWAY_REST_HANDLERS_H
#define TASKMQ_GATEWAY_REST_HANDLERS_H

#include "rest/answer.h"

void submit_json (exchange_t *exchange);
void submit_raw (exchange_t *exchange);
/* At its head: what is wrong with it is told before its body comes. False: answered. */
bool submit_raw_begin (exchange_t *exchange);
void submit_batch (exchange_t *exchange);

void task_show (exchange_t *exchange);
void task_result (exchange_t *exchange);
void task_payload (exchange_t *exchange);
void task_artifacts (exchange_t *exchange);
void task_artifact (exchange_t *exchange);
void task_events (exchange_t *exchange);
void task_attempts (exchange_t *exchange);
void task_logs (exchange_t *exchange);
void task_cancel (exchange_t *exchange);
void task_why (exchange_t *exchange);
void task_retry (exchange_t *exchange);
void task_resume (exchange_t *exchange);
void task_adopt (exchange_t *exchange);
void task_answer (exchange_t *exchange);
void task_purge (exchange_t *exchange);
void inbox_show (exchange_t *exchange);
void task_list (exchange_t *exchange);
void task_count (exchange_t *exchange);
void task_wait (exchange_t *exchange);
void task_resolve (exchange_t *exchange);

void event_stream (exchange_t *exchange);
void task_stream (exchange_t *exchange);

void queue_list (exchange_t *exchange);
void queue_show (exchange_t *exchange);
void queue_pause (exchange_t *exchange);
void queue_resume (exchange_t *exchange);
void stats_show (exchange_t *exchange);
void worker_list (exchange_t *exchange);

void session_begin (exchange_t *exchange);
void session_show (exchange_t *exchange);
void session_leave (exchange_t *exchange);
void page_root (exchange_t *exchange);
void page_show (exchange_t *exchange);
void page_file (exchange_t *exchange);
void mcp_serve (exchange_t *exchange);

void resource_show (exchange_t *exchange);
void metrics_show (exchange_t *exchange);
void openapi_show (exchange_t *exchange);
void health_show (exchange_t *exchange);
void ready_show (exchange_t *exchange);
void problem_show (exchange_t *exchange);

#endif
