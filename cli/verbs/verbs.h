/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the table of commands points at: each runs one command and returns its exit code. */
#ifndef TASKCTL_VERBS_H
#define TASKCTL_VERBS_H

#include "json.h"
#include "line/app.h"

int run_submit (app_t *app);
int run_get (app_t *app);
int run_logs (app_t *app);
int run_why (app_t *app);
int run_payload (app_t *app);
int run_result (app_t *app);
int run_wait (app_t *app);
int run_list (app_t *app);
int run_count (app_t *app);
int run_watch (app_t *app);
int run_cancel (app_t *app);
int run_retry (app_t *app);
int run_resume (app_t *app);
int run_set (app_t *app);
int run_purge (app_t *app);
int run_adopt (app_t *app);
int run_answer (app_t *app);
int run_inbox (app_t *app);
/* The open questions of a task, a line each. */
void show_questions (app_t *app, const tmq_id_t *id);
/* Those of a task that are open, as an array. */
void write_questions (json_writer_t *writer, const app_t *app, const tmq_task_t *task);
int run_stats (app_t *app);
int run_top (app_t *app);
int run_ping (app_t *app);
int run_doctor (app_t *app);
int run_export (app_t *app);
int run_import (app_t *app);
int run_whoami (app_t *app);
/* What whoami prints, of a client that is connected. */
int show_whoami (app_t *app);
/* Runs the verb that the line names. */
int run_verb (app_t *app);
int run_invite (app_t *app);
int run_join (app_t *app);
int run_reload (app_t *app);
/* Of `key`, what the broker decides about (access.c). */
int key_trust (app_t *app);
int key_revoke (app_t *app);
int key_list (app_t *app);
int key_rotate (app_t *app);
/* As library_error, of a request about names and keys. */
int access_error (const app_t *app, const tmq_error_t *error, const char *what);
extern const verb_t key_verbs[];
extern const verb_t server_key_verbs[];
extern const verb_t profile_verbs[];
extern const verb_t search_verbs[];
extern const verb_t audit_verbs[];
extern const verb_t journal_verbs[];
extern const verb_t queue_verbs[];
extern const verb_t worker_verbs[];
extern const verb_t artifact_verbs[];
extern const verb_t context_verbs[];
extern const verb_t mail_verbs[];
extern const verb_t session_verbs[];
/* Of `session`, what stands in a box (mail.c). */
int session_input (app_t *app);
/* Follows what is no task, as `watch` does: of one subject, with names that begin with prefix
 * (NULL: all). The options of `watch` count as far as the command has them. */
int watch_subject (app_t *app, tmq_subject_t subject, const char *prefix);
extern const verb_t schedule_verbs[];
int run_backup (app_t *app);
int run_vacuum (app_t *app);
int run_cleanup (app_t *app);
int run_help (app_t *app);
int run_completion (app_t *app);
int run_complete (app_t *app);

#endif
