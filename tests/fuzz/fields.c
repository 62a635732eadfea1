/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What stands in a request of HTTP behind its grammar: the target, a submission as JSON, the name
 * that a proxy gives, a trace, a cookie. Each is given the whole input. */
#include "auth/proxied.h"
#include "auth/session.h"
#include "http/target.h"
#include "rest/spec.h"
#include "rest/trace.h"

#include "fuzz.h"

static void try_target (const char *text)
{
    http_target_t target;
    if (http_target_parse (&target, text) != NULL)
        return;
    HOLDS (target.segments_count <= TARGET_SEGMENTS_MAX);
    HOLDS (target.parameters_count <= TARGET_PARAMETERS_MAX);
    for (size_t i = 0; i < target.segments_count; i++) {
        HOLDS (strcmp (target.segments[i], "..") != 0 && strcmp (target.segments[i], ".") != 0);
        HOLDS (strchr (target.segments[i], '/') == NULL);
    }
    spec_t spec;
    if (target.segments_count > 0 && spec_from_query (&spec, &target, target.segments[0]))
        HOLDS (spec.submit.labels_count < TMQ_LABELS_MAX);
    if (target.segments_count > 0)
        spec_clear (&spec);
    http_target_clear (&target);
}

static void try_submission (const char *text, size_t length)
{
    static const principal_t principal = {.name = "ann"};
    spec_t spec;
    const slice_t slice = {text, length};
    if (spec_from_json (&spec, slice, NULL)) {
        HOLDS (spec.submit.queue != NULL && strlen (spec.submit.queue) <= TMQ_NAME_LENGTH_MAX);
        HOLDS (spec.submit.payload_bytes <= TMQ_FRAME_BYTES_MAX);
        HOLDS (spec.submit.labels_count < TMQ_LABELS_MAX);
        if (spec_finish (&spec, &principal, spec.key))
            HOLDS (spec.submit.labels_count <= TMQ_LABELS_MAX);
    }
    spec_clear (&spec);
}

static void try_principal (proxied_t *proxied, const char *text)
{
    const char *flaw;
    principal_t *found = proxied_find (proxied, text, &flaw);
    HOLDS ((found == NULL) == (flaw != NULL));
    if (found == NULL)
        return;
    HOLDS (found->roles != 0 && found->namespaces_count > 0);
    HOLDS (found->name[0] != '\0' && strchr (found->name, '/') == NULL);
    HOLDS (proxied_find (proxied, text, &flaw) == found);
}

static void try_trace (const char *text)
{
    char out[TMQ_TRACE_BYTES_MAX + 1];
    static const char parent[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const char *traces[] = {trace_text (out, parent, text)};
    HOLDS (traces[0] != NULL && strncmp (traces[0], parent, sizeof parent - 1) == 0);
    for (const char *at = out; *at != '\0'; at++)
        HOLDS (*at >= ' ' && *at < 0x7f);
    traces[0] = trace_text (out, text, NULL);
    if (traces[0] == NULL)
        return;
    /* Whatever the version was: the trace and the span of this one, and nothing more. */
    HOLDS (strlen (out) == sizeof parent - 1 && strncmp (out, "00-", 3) == 0);
    HOLDS (memcmp (out + 2, text + 2, sizeof parent - 1 - 4) == 0);
    HOLDS (strncmp (text, "00", 2) != 0 || strcmp (out, text) == 0);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    static proxied_t proxied;
    static sessions_t sessions;
    static seal_t seal;
    char cookie[SEAL_TEXT_MAX + 1];
    char *text = fuzz_text (data, size);
    if (sessions.seal == NULL)
        sessions_init (&sessions, &seal, true);
    try_target (text);
    try_submission (text, strlen (text));
    try_principal (&proxied, text);
    try_trace (text);
    if (session_cookie (&sessions, text, cookie))
        HOLDS (strlen (cookie) <= SEAL_TEXT_MAX);
    free (text);
    return 0;
}
