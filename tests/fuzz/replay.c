/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* replay DIRECTORY [MUTATIONS]: the target over every file of its corpus, then over so many changed
 * copies of each, always the same ones. For builds without libFuzzer. */
#include <dirent.h>

#include "fuzz.h"

enum { FILE_BYTES_MAX = 1024 * 1024, ROOM = 64 };

static uint64_t state = 1;

static uint32_t random_below (uint32_t bound)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t) (state >> 32) % bound;
}

static void run (const uint8_t *data, size_t size)
{
    uint8_t *copy = fuzz_copy (data, size);
    LLVMFuzzerTestOneInput (copy, size);
    free (copy);
}

/* One change of a byte, a number, a piece cut out, or a piece repeated. */
static size_t change (uint8_t *data, size_t size, size_t room)
{
    static const uint8_t edges[] = {0, 1, 0x7f, 0x80, 0xff, ' ', '\n', '/', '-', '"'};
    size_t at = random_below ((uint32_t) size);
    size_t length = 1 + random_below (8);
    if (length > size - at)
        length = size - at;
    switch (random_below (5)) {
    case 0: data[at] = (uint8_t) random_below (256); return size;
    case 1: data[at] = edges[random_below (sizeof (edges))]; return size;
    case 2: data[at] ^= (uint8_t) (1u << random_below (8)); return size;
    case 3:
        if (length == size)
            return size;
        memmove (data + at, data + at + length, size - at - length);
        return size - length;
    default:
        if (size + length > room)
            return size;
        memmove (data + at + length, data + at, size - at);
        return size + length;
    }
}

static void mutate (const uint8_t *seed, size_t size, unsigned count)
{
    uint8_t *data = malloc (size + ROOM);
    for (unsigned i = 0; size > 0 && i < count; i++) {
        size_t length = size;
        memcpy (data, seed, size);
        for (uint32_t changes = 1 + random_below (6); changes > 0 && length > 0; changes--)
            length = change (data, length, size + ROOM);
        run (data, length);
    }
    free (data);
}

static int replay (const char *path, unsigned mutations)
{
    static uint8_t data[FILE_BYTES_MAX];
    FILE *file = fopen (path, "rb");
    if (file == NULL) {
        perror (path);
        return 1;
    }
    size_t size = fread (data, 1, sizeof (data), file);
    fclose (file);
    run (data, size);
    mutate (data, size, mutations);
    return 0;
}

int main (int argc, char **argv)
{
    struct dirent **entries;
    unsigned mutations = argc > 2 ? (unsigned) strtoul (argv[2], NULL, 10) : 0;
    int count = argc > 1 ? scandir (argv[1], &entries, NULL, alphasort) : -1;
    int failed = count < 0;
    int files = 0;
    for (int i = 0; i < count; i++) {
        char path[4096];
        snprintf (path, sizeof (path), "%s/%s", argv[1], entries[i]->d_name);
        if (entries[i]->d_name[0] != '.') {
            failed |= replay (path, mutations);
            files++;
        }
        free (entries[i]);
    }
    if (count >= 0)
        free (entries);
    printf ("%d seeds, %u changed copies of each\n", files, mutations);
    return failed || files == 0;
}
