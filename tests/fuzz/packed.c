/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A packed file as somebody may have left it. Read as a whole, from the middle or by lines it gives
 * the same text, or an error. */
#include "packed.h"

#include <unistd.h>

#include "fuzz.h"

enum { TEXT_MAX = 2 * PACKED_FRAME_BYTES };

static char path[] = "fuzz-packed-XXXXXX" PACKED_ENDING;
static int fd = -1;

static void clean_up (void)
{
    close (fd);
    unlink (path);
}

static void put (const uint8_t *data, size_t size)
{
    if (fd < 0) {
        fd = mkstemps (path, sizeof (PACKED_ENDING) - 1);
        atexit (clean_up);
    }
    /* In this order: of a file that was cut to nothing ext4 waits for the disk. */
    HOLDS (fd >= 0 && pwrite (fd, data, size, 0) == (ssize_t) size &&
           ftruncate (fd, (off_t) size) == 0);
}

static packed_t *open_file (void)
{
    packed_t *file = packed_open (path, true);
    HOLDS (file != NULL);
    return file;
}

/* The first bytes of the text; ends: they are all of it. */
static void check_lines (const char *text, size_t have, bool ends)
{
    const char *line;
    size_t length;
    size_t at = 0;
    bool whole = true;
    packed_t *file = open_file ();
    while (at < have && packed_line (file, &line, &length, &whole) == 1) {
        if (length > PACKED_LINE_MAX)
            break; /* the rest of it may be left out */
        size_t part = length < have - at ? length : have - at;
        HOLDS (memcmp (text + at, line, part) == 0);
        at += length + whole;
    }
    HOLDS (!ends || at <= have);
    packed_close (&file);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    static char text[TEXT_MAX];
    static char again[TEXT_MAX];
    put (data, size);
    packed_t *file = open_file ();
    ssize_t got = packed_read (file, text, sizeof (text), 0);
    HOLDS (got <= (ssize_t) sizeof (text));
    if (got > 0) {
        size_t middle = (size_t) got / 2;
        size_t rest = (size_t) got - middle;
        HOLDS (packed_read (file, again, rest, middle) == (ssize_t) rest);
        HOLDS (memcmp (again, text + middle, rest) == 0);
        check_lines (text, (size_t) got, got < TEXT_MAX);
    }
    packed_close (&file);
    return 0;
}
