/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "digits.h"

const char DIGITS_PAIRS[201] = "00010203040506070809101112131415161718192021222324"
                               "25262728293031323334353637383940414243444546474849"
                               "50515253545556575859606162636465666768697071727374"
                               "75767778798081828384858687888990919293949596979899";

enum { EIGHT = 100000000 }; /* eight digits fit into 32 bits, where divisions take half the time */

static char *put_four (char *at, uint32_t value)
{
    return digits_put_pair (digits_put_pair (at, value / 100), value % 100);
}

/* Up to four digits, without zeroes in front. */
static char *put_first (char *at, uint32_t value)
{
    if (value >= 1000)
        return put_four (at, value);
    if (value >= 100) {
        *at = (char) ('0' + value / 100);
        return digits_put_pair (at + 1, value % 100);
    }
    if (value >= 10)
        return digits_put_pair (at, value);
    *at = (char) ('0' + value);
    return at + 1;
}

char *digits_put (char *at, uint64_t value)
{
    uint32_t last = (uint32_t) (value % EIGHT);
    if (value >= EIGHT) {
        at = digits_put (at, value / EIGHT);
        return put_four (put_four (at, last / 10000), last % 10000);
    }
    if (last < 10000)
        return put_first (at, last);
    return put_four (put_first (at, last / 10000), last % 10000);
}
