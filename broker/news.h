/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the engine has found out and nobody asked for, as lines of the log. */
#ifndef TASKMQ_BROKER_NEWS_H
#define TASKMQ_BROKER_NEWS_H

#include "core/engine/engine.h"
#include "log/log.h"

/* A step of the wall clock that the engine has seen since the last call (S20). */
void news_clock (engine_t *engine, log_level_t level);
/* Schedules that make no tasks; after a start. */
void news_schedules (const engine_t *engine);

#endif
