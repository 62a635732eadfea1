/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The page: the files of gateway/web, as they stand there.
 *
 * They have no secrets, so everybody may read them: what they show is asked for with a session. */
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "ids.h"
#include "rest/handlers.h"

#define PAGES_MAP(X)                                                                               \
    X (index, "index.html", "text/html; charset=utf-8")                                            \
    X (style, "app.css", "text/css; charset=utf-8")                                                \
    X (app, "app.js", "text/javascript; charset=utf-8")                                            \
    X (dom, "dom.js", "text/javascript; charset=utf-8")                                            \
    X (net, "net.js", "text/javascript; charset=utf-8")                                            \
    X (show, "show.js", "text/javascript; charset=utf-8")                                          \
    X (task, "task.js", "text/javascript; charset=utf-8")                                          \
    X (tasks, "tasks.js", "text/javascript; charset=utf-8")                                        \
    X (tools, "tools.js", "text/javascript; charset=utf-8")                                        \
    X (views, "views.js", "text/javascript; charset=utf-8")                                        \
    X (form, "form.js", "text/javascript; charset=utf-8")                                          \
    X (icon, "icon.svg", "image/svg+xml")

#define X(name, file, type)                                                                        \
    __asm__(".section .rodata\n"                                                                   \
            "web_" #name ":\n"                                                                     \
            ".incbin \"" WEB_DIRECTORY "/" file "\"\n"                                             \
            "web_" #name "_end:\n"                                                                 \
            "packed_" #name ":\n"                                                                  \
            ".incbin \"" PACKED_DIRECTORY "/" file ".gz\"\n"                                       \
            "packed_" #name "_end:\n"                                                              \
            ".byte 0\n"                                                                            \
            ".previous\n");                                                                        \
    extern const char web_##name[], web_##name##_end[], packed_##name[], packed_##name##_end[];
PAGES_MAP (X)
#undef X

static const struct {
    const char *file;
    const char *type;
    const char *begin;
    const char *end;
    const char *packed; /* by gzip */
    const char *packed_end;
} pages[] = {
#define X(name, file, type)                                                                        \
    {file, type, web_##name, web_##name##_end, packed_##name, packed_##name##_end},
    PAGES_MAP (X)
#undef X
};

/* Nothing but our own files runs; nothing of what they show is ever read as HTML. */
static const char POLICY[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "media-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/* "gzip, br", "deflate, gzip;q=0.5"; not "gzip;q=0". */
static bool takes_gzip (const exchange_t *exchange)
{
    static const char name[] = "gzip";
    const char *at = http_request_field (exchange->request, "accept-encoding");
    while (at != NULL && *at != '\0') {
        at += strspn (at, ", \t");
        const size_t length = strcspn (at, ",");
        if (strncasecmp (at, name, sizeof name - 1) == 0) {
            const char *rest = at + sizeof name - 1;
            rest += strspn (rest, "; \t");
            const bool weighs = strncasecmp (rest, "q=", 2) == 0 && rest < at + length;
            return !weighs || strtod (rest + 2, NULL) > 0;
        }
        at += length;
    }
    return false;
}

static void answer_page (exchange_t *exchange, size_t row)
{
    uint8_t hash[crypto_generichash_BYTES_MIN];
    char tag[sizeof hash * 2 + 3] = "\"";
    response_t response;
    const bool packed = takes_gzip (exchange);
    const char *bytes = packed ? pages[row].packed : pages[row].begin;
    const size_t length = (size_t) ((packed ? pages[row].packed_end : pages[row].end) - bytes);
    crypto_generichash (hash, sizeof hash, (const uint8_t *) bytes, length, NULL, 0);
    hex_encode (tag + 1, hash, sizeof hash);
    tag[sizeof tag - 2] = '"'; /* in the place of the NUL; another one stands behind it */
    const bool has_it = tag_matches (exchange, tag);
    response_init (&response, has_it ? 304 : 200);
    response_field (&response, "ETag", tag);
    response_field (&response, "Content-Type", pages[row].type);
    response_field (&response, "Vary", "Accept-Encoding");
    if (packed)
        response_field (&response, "Content-Encoding", "gzip");
    response_field (&response, "Content-Security-Policy", POLICY);
    response_field (&response, "Referrer-Policy", "no-referrer");
    response_field (&response, "Cross-Origin-Opener-Policy", "same-origin");
    response_field (&response, "Cross-Origin-Resource-Policy", "same-origin");
    if (!has_it)
        bytes_append (&response.body, bytes, length);
    answer_kept (exchange, &response);
}

void page_root (exchange_t *exchange)
{
    response_t response;
    response_init (&response, 303);
    response_field (&response, "Location", "/ui");
    answer (exchange, &response);
}

void page_show (exchange_t *exchange)
{
    answer_page (exchange, 0);
}

void page_file (exchange_t *exchange)
{
    for (size_t i = 1; i < sizeof pages / sizeof *pages; i++) {
        if (strcmp (pages[i].file, exchange->parameters[0]) == 0) {
            answer_page (exchange, i);
            return;
        }
    }
    answer_problem (exchange,
                    &(problem_t){.kind = PROBLEM_NOT_FOUND, .detail = "the page has no such file"});
}
