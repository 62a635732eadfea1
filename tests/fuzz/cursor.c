/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A cursor as a program kept it: what the library takes, it gives back as a text that it takes. */
#include "core.h"
#include "fuzz.h"

static core_t *make_core (void)
{
    static const char *const endpoints[] = {"tcp://127.0.0.1:1"};
    core_config_t config = {.seed = {1},
                            .ns = "",
                            .name = "fuzz",
                            .endpoints = endpoints,
                            .endpoints_count = 1,
                            .requests_max = 10,
                            .request_bytes_max = 1 << 16,
                            .completions_max = 10,
                            .reads_max = 4,
                            .reconnect_ms_min = 100,
                            .reconnect_ms_max = 5000};
    return core_new (&config, 0);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    static core_t *core;
    if (core == NULL)
        core = make_core ();
    char *text = fuzz_text (data, size);
    char back[48];
    tmq_error_t error;
    core_subscription_t *subscription = NULL;
    tmq_subscription_options_t options;
    tmq_subscription_options_init (&options);
    options.cursor = text;
    int code = core_subscription_new (&subscription, core, &options, NULL, &error);
    HOLDS (code == TMQ_OK || code == TMQ_BAD_CURSOR);
    if (code == TMQ_OK) {
        int known = core_subscription_cursor (back, subscription);
        HOLDS (known == TMQ_OK || known == TMQ_TIMEOUT);
        core_subscription_free (subscription);
        if (known == TMQ_OK) {
            options.cursor = back;
            HOLDS (core_subscription_new (&subscription, core, &options, NULL, NULL) == TMQ_OK);
            core_subscription_free (subscription);
        }
    }
    free (text);
    return 0;
}
