/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A configuration file: the scan of its shape, then each "name = value" as a key of a section. */
#include "config/config.h"

#include <ctype.h>

#include "config/scan.h"
#include "fuzz.h"

static void set_lines (config_t *config, char *text)
{
    char section[64] = "broker";
    char error[CONFIG_ERROR_SIZE];
    char *rest = NULL;
    unsigned number = 0;
    for (char *line = strtok_r (text, "\n", &rest); line != NULL;
         line = strtok_r (NULL, "\n", &rest)) {
        char key[256];
        char *equals = strchr (line, '=');
        number++;
        if (equals == NULL) {
            snprintf (section, sizeof (section), "%.60s", line);
            continue;
        }
        *equals = '\0';
        while (isspace ((unsigned char) *line))
            line++;
        line[strcspn (line, " ")] = '\0';
        snprintf (key, sizeof (key), "%s/%.180s", section, line);
        const char *value = equals + 1 + strspn (equals + 1, " ");
        if (config_set (config, key, value, (config_origin_t){"fuzz", number}, error))
            continue;
        HOLDS (memchr (error, '\0', sizeof (error)) != NULL && error[0] != '\0');
        return; /* as the broker does; to find the nearest key is most of the work */
    }
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    static FILE *nowhere;
    if (nowhere == NULL)
        nowhere = fopen ("/dev/null", "w");
    char *text = fuzz_text (data, size);
    char error[CONFIG_ERROR_SIZE];
    scan_t scan;
    config_t config;
    bool good = scan_text (&scan, text, size);
    HOLDS (good || scan.error[0] != '\0');
    for (size_t i = 0; i < scan.count; i++)
        HOLDS (scan.lines[i].line >= 1 && scan.lines[i].depth <= 1);
    config_init (&config);
    if (good) {
        set_lines (&config, text);
        if (config_is_consistent (&config, error))
            config_show (&config, nowhere);
    }
    config_free (&config);
    scan_free (&scan);
    free (text);
    return 0;
}
