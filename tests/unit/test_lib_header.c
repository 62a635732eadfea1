/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The public header, with its parts, needs nothing before it and says nothing that a strict
 * compiler minds: this file is compiled as C11 and as C++17. */
#include "taskmq.h"

int main (void)
{
    tmq_client_options_t options;
    tmq_client_options_init (&options);
    return options.size == sizeof (tmq_client_options_t) && TMQ_VERSION_CHECK () ? 0 : 1;
}
