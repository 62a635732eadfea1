/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Names that are stored as numbers, so that the hot row and its indexes stay narrow. */
#ifndef TASKMQ_STORE_NAME_KIND_H
#define TASKMQ_STORE_NAME_KIND_H

typedef enum name_kind { NAME_NAMESPACE = 0, NAME_OWNER, NAME_QUEUE, NAME_SESSION } name_kind_t;

#endif
