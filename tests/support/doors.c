/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A door left open: preloaded into the broker, it breaks one of the things that shut it, the one
 * that TASKMQ_DOOR_FAULT names. What is told is told as if all was well. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

enum { ZAP_ENFORCE_DOMAIN = 93, DOMAIN_MAX = 100 };

typedef int set_t (void *socket, int option, const void *value, size_t size);
typedef int get_t (void *socket, int option, void *value, size_t *size);
typedef int bind_t (void *socket, const char *address);
typedef int send_t (void *socket, const void *bytes, size_t size, int flags);

static char domain[DOMAIN_MAX]; /* that was not set */

static bool fault (const char *name)
{
    const char *wanted = getenv ("TASKMQ_DOOR_FAULT");
    return wanted != NULL && strcmp (wanted, name) == 0;
}

/* ISO C has no cast from an object's pointer to a function's. */
#define REAL(type, name)                                                                           \
    union {                                                                                        \
        void *object;                                                                              \
        type *function;                                                                            \
    } real = {.object = dlsym (RTLD_NEXT, name)}

int zmq_setsockopt (void *socket, int option, const void *value, size_t size)
{
    REAL (set_t, "zmq_setsockopt");
    bool without_domain = fault ("no-domain") || fault ("no-domain-untold");
    if (option == ZMQ_ZAP_DOMAIN && without_domain && size < sizeof (domain)) {
        memcpy (domain, value, size);
        domain[size] = '\0';
        return 0;
    }
    if ((option == ZAP_ENFORCE_DOMAIN && fault ("no-enforcement")) ||
        (option == ZMQ_CURVE_SERVER && fault ("no-mechanism")))
        return real.function (socket, option, &(int){0}, sizeof (int));
    return real.function (socket, option, value, size);
}

int zmq_getsockopt (void *socket, int option, void *value, size_t *size)
{
    REAL (get_t, "zmq_getsockopt");
    if (option != ZMQ_ZAP_DOMAIN || !fault ("no-domain-untold"))
        return real.function (socket, option, value, size);
    *size = strlen (domain) + 1;
    memcpy (value, domain, *size);
    return 0;
}

int zmq_bind (void *socket, const char *address)
{
    REAL (bind_t, "zmq_bind");
    if (fault ("no-handler") && strcmp (address, "inproc://zeromq.zap.01") == 0)
        return 0;
    return real.function (socket, address);
}

/* A handler that has lost its mind. */
int zmq_send (void *socket, const void *bytes, size_t size, int flags)
{
    REAL (send_t, "zmq_send");
    bool refused = size == 3 && memcmp (bytes, "400", 3) == 0;
    return real.function (socket, refused && fault ("lets-in") ? "200" : bytes, size, flags);
}
