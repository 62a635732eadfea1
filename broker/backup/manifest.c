/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "backup/manifest.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "units.h"

static const struct part {
    const char *file;
    uint64_t most;
} part_table[PARTS] = {
#define X(NAME, file, most) [PART_##NAME] = {file, most},
    MANIFEST_PART_MAP (X)
#undef X
};
#define FIRST_LINE "taskmq backup 1"
enum { HASH_TEXT_SIZE = 2 * MANIFEST_HASH_BYTES + 1 };

const char *manifest_file (manifest_part_name_t part)
{
    return part_table[part].file;
}

uint64_t manifest_bytes_max (manifest_part_name_t part)
{
    return part_table[part].most;
}

manifest_part_name_t manifest_find (const char *file)
{
    int part = 0;
    while (part < PARTS && strcmp (part_table[part].file, file) != 0)
        part++;
    return (manifest_part_name_t) part;
}

size_t manifest_write (const manifest_t *self, char out[MANIFEST_BYTES_MAX])
{
    char made[TIME_TEXT_SIZE] = "";
    char newest[TIME_TEXT_SIZE] = "";
    time_format (made, self->made_ms);
    time_format (newest, self->newest_ms);
    int length = snprintf (
        out, MANIFEST_BYTES_MAX,
        FIRST_LINE "\nversion %s\nmade %s\ngeneration %016" PRIx64 "\nepoch %" PRIu64
                   "\nbatch %" PRIu64 "\nnewest %s\ntasks %" PRIu64 "\n",
        self->version, made, self->generation, self->epoch, self->batch, newest, self->tasks);
    if (self->lacks > 0)
        length += snprintf (out + length, MANIFEST_BYTES_MAX - (size_t) length,
                            "lacks %" PRIu64 "\n", self->lacks);
    for (int i = 0; i < PARTS; i++) {
        char hash[HASH_TEXT_SIZE];
        if (!self->parts[i].there)
            continue;
        sodium_bin2hex (hash, sizeof (hash), self->parts[i].hash, MANIFEST_HASH_BYTES);
        length +=
            snprintf (out + length, MANIFEST_BYTES_MAX - (size_t) length,
                      "part %s %" PRIu64 " %s\n", part_table[i].file, self->parts[i].bytes, hash);
    }
    return (size_t) length;
}

static bool read_part (manifest_t *out, const char *line)
{
    char file[64];
    char hash[HASH_TEXT_SIZE + 1];
    uint64_t bytes;
    size_t got;
    if (sscanf (line, "part %63s %" SCNu64 " %65s", file, &bytes, hash) != 3)
        return false;
    manifest_part_name_t name = manifest_find (file);
    if (name == PARTS || out->parts[name].there || bytes > part_table[name].most)
        return false;
    manifest_part_t *part = &out->parts[name];
    *part = (manifest_part_t){.there = true, .bytes = bytes};
    return sodium_hex2bin (part->hash, MANIFEST_HASH_BYTES, hash, strlen (hash), NULL, &got,
                           NULL) == 0 &&
           got == MANIFEST_HASH_BYTES;
}

static bool read_time (const char *line, const char *form, int64_t *out)
{
    char text[TIME_TEXT_SIZE];
    return sscanf (line, form, text) == 1 && time_parse (out, text, NULL);
}

/* Keys that are not known are for later versions to add. */
static bool read_line (manifest_t *out, const char *line)
{
    if (strncmp (line, "part ", 5) == 0)
        return read_part (out, line);
    if (strncmp (line, "version ", 8) == 0)
        return sscanf (line, "version %63s", out->version) == 1;
    if (strncmp (line, "made ", 5) == 0)
        return read_time (line, "made %24s", &out->made_ms);
    if (strncmp (line, "generation ", 11) == 0)
        return sscanf (line, "generation %" SCNx64, &out->generation) == 1;
    if (strncmp (line, "epoch ", 6) == 0)
        return sscanf (line, "epoch %" SCNu64, &out->epoch) == 1;
    if (strncmp (line, "batch ", 6) == 0)
        return sscanf (line, "batch %" SCNu64, &out->batch) == 1;
    if (strncmp (line, "newest ", 7) == 0)
        return strlen (line) == 7 || read_time (line, "newest %24s", &out->newest_ms);
    if (strncmp (line, "tasks ", 6) == 0)
        return sscanf (line, "tasks %" SCNu64, &out->tasks) == 1;
    if (strncmp (line, "lacks ", 6) == 0)
        return sscanf (line, "lacks %" SCNu64, &out->lacks) == 1;
    return true;
}

bool manifest_read (manifest_t *out, const char *text, size_t length)
{
    char copy[MANIFEST_BYTES_MAX + 1];
    char *place = NULL;
    memset (out, 0, sizeof (*out));
    if (length > MANIFEST_BYTES_MAX || memchr (text, '\0', length) != NULL)
        return false;
    memcpy (copy, text, length);
    copy[length] = '\0';
    char *line = strtok_r (copy, "\n", &place);
    if (line == NULL || strcmp (line, FIRST_LINE) != 0)
        return false;
    while ((line = strtok_r (NULL, "\n", &place)) != NULL) {
        if (!read_line (out, line))
            return false;
    }
    return out->parts[PART_TABLES].there;
}
