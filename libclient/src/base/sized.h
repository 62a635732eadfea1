/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Structs of the application whose first member is their size: a program may have been built with
 * a header that is older or newer than this library, whose struct is shorter or longer. */
#ifndef TASKMQ_CLIENT_SIZED_H
#define TASKMQ_CLIENT_SIZED_H

#include <stdbool.h>
#include <stddef.h>

/* Fills in the application's struct of `size` bytes. defaults: the library's, of `known` bytes. */
void core_sized_init (void *out, size_t size, const void *defaults, size_t known);
/* Puts what the application's struct has over the defaults in `out`, the library's. False when it
 * cannot have been initialised: it is shorter than `least` bytes. */
bool core_sized_take (void *out, size_t known, const void *in, size_t least);

#endif
