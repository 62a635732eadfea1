/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Page reads for requests: browse.c answers them. */
#ifndef TASKMQ_CORE_PAGES_H
#define TASKMQ_CORE_PAGES_H

#include "core/data/row.h"
#include "core/reads/jobs.h"
#include "core/requests/requests.h"

/* The link, or all links together, have as many reads open as they may have: it was answered. */
bool page_refused (call_t *call);
/* A read in the link's namespace, whose answer is the request's. */
read_job_t *page_job (call_t *call, read_kind_t kind);
/* Reads at most limit rows of a kind whose keys begin with prefix, behind `after` (empty: from the
 * first), for a request: what the table of kinds in browse.c names answers it. NULL: it was refused
 * and answered. */
read_job_t *page_rows (call_t *call, row_kind_t kind, const row_key_t *prefix,
                       const row_key_t *after, size_t limit);

#endif
