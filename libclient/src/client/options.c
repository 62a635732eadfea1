/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Options by structs and by keys, versions, texts and ids: what needs no client. */
#include "client/options.h"

#include <errno.h>
#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/errors.h"
#include "base/sized.h"
#include "client/places.h"
#include "ids.h"
#include "profile.h"
#include "types.h"

enum {
    OUTBOX_REQUESTS_DEFAULT = 100000,
    OUTBOX_BYTES_DEFAULT = 64 * 1024 * 1024,
    COMPLETIONS_DEFAULT = 100000,
    READS_DEFAULT = 4,
    READS_MAX = 64,
    RECONNECT_MS_MIN_DEFAULT = 100,
    RECONNECT_MS_MAX_DEFAULT = 5000,
    RECONNECT_MS_MAX_SEVERAL = 1000, /* beside a broker that is away another one may take over */
    CLIENT_NAME_BYTES_MAX = 64,
    BUFFER_BYTES_DEFAULT = 1024 * 1024
};

/* Initialisers. */

void (tmq_client_options_init) (tmq_client_options_t *options, size_t size)
{
    static const tmq_client_options_t defaults = {.outbox_requests_max = OUTBOX_REQUESTS_DEFAULT,
                                                  .outbox_bytes_max = OUTBOX_BYTES_DEFAULT,
                                                  .completions_max = COMPLETIONS_DEFAULT,
                                                  .reads_max = READS_DEFAULT,
                                                  .reconnect_ms_min = RECONNECT_MS_MIN_DEFAULT};
    core_sized_init (options, size, &defaults, sizeof defaults);
}

void (tmq_subscription_options_init) (tmq_subscription_options_t *options, size_t size)
{
    static const tmq_subscription_options_t defaults = {.buffer_bytes_max = BUFFER_BYTES_DEFAULT};
    core_sized_init (options, size, &defaults, sizeof defaults);
}

void (tmq_worker_options_init) (tmq_worker_options_t *options, size_t size)
{
    static const tmq_worker_options_t defaults = {.capacity = 1};
    core_sized_init (options, size, &defaults, sizeof defaults);
}

/* Versions of structs. */

void options_subscription (tmq_subscription_options_t *out, const tmq_subscription_options_t *in)
{
    tmq_subscription_options_init (out);
    if (in != NULL)
        core_sized_take (out, sizeof *out, in, sizeof in->size);
}

void options_worker (tmq_worker_options_t *out, const tmq_worker_options_t *in)
{
    tmq_worker_options_init (out);
    if (in != NULL)
        core_sized_take (out, sizeof *out, in, sizeof in->size);
}

int options_client (tmq_client_options_t *out, const tmq_client_options_t *in, tmq_error_t *error)
{
    tmq_client_options_init (out);
    if (in == NULL ||
        !core_sized_take (out, sizeof *out, in, sizeof in->size + sizeof in->endpoints))
        return core_error (error, TMQ_INVALID, "tmq_client_options_init was not called");
    int code = core_check_name (out->ns, "namespace", false, error);
    if (code == TMQ_OK)
        code = core_check_text (out->name, "name", CLIENT_NAME_BYTES_MAX, error);
    if (code != TMQ_OK)
        return code;
    if (out->outbox_requests_max == 0 || out->outbox_bytes_max == 0 || out->completions_max == 0)
        return core_error (error, TMQ_INVALID,
                           "outbox_requests_max, outbox_bytes_max, "
                           "completions_max: must not be 0");
    if (out->reads_max == 0 || out->reads_max > READS_MAX)
        return core_error (error, TMQ_INVALID, "reads_max: 1 to %d", READS_MAX);
    if (out->reconnect_ms_min == 0 ||
        (out->reconnect_ms_max != 0 && out->reconnect_ms_min > out->reconnect_ms_max))
        return core_error (error, TMQ_INVALID, "reconnect_ms_min: 1 to reconnect_ms_max (%u)",
                           out->reconnect_ms_max);
    return TMQ_OK;
}

uint32_t options_reconnect_max (const tmq_client_options_t *options, size_t endpoints)
{
    if (options->reconnect_ms_max != 0)
        return options->reconnect_ms_max;
    uint32_t max = endpoints > 1 ? RECONNECT_MS_MAX_SEVERAL : RECONNECT_MS_MAX_DEFAULT;
    return options->reconnect_ms_min > max ? options->reconnect_ms_min : max;
}

/* Options by keys. */

/* False: the program's struct is of an older header, and ends before the member. */
static bool has_member (const tmq_client_options_t *options, const void *member, size_t bytes)
{
    return (size_t) ((const char *) member - (const char *) options) + bytes <= options->size;
}

/* What tmq_client_options_set allocated: texts, and the array of endpoints. */
typedef struct owned {
    char **texts;
    size_t count;
    const char **endpoints;
} owned_t;

static char *owned_text (tmq_client_options_t *options, const char *value)
{
    owned_t *owned = options->owned;
    if (owned == NULL)
        options->owned = owned = calloc (1, sizeof *owned);
    if (owned == NULL)
        return NULL;
    char **texts = realloc (owned->texts, (owned->count + 1) * sizeof *texts);
    if (texts == NULL)
        return NULL;
    owned->texts = texts;
    char *text = strdup (value);
    if (text != NULL)
        texts[owned->count++] = text;
    return text;
}

static int set_text (tmq_client_options_t *options, const char **field, const char *value,
                     tmq_error_t *error)
{
    const char *text = owned_text (options, value);
    if (text == NULL)
        return core_error (error, TMQ_NO_MEMORY, NULL);
    *field = text;
    return TMQ_OK;
}

static bool has_endpoint (const tmq_client_options_t *options, const place_t *place)
{
    place_t one;
    for (size_t i = 0; i < options->endpoints_count; i++)
        if (places_parse (&one, options->endpoints[i], NULL) == TMQ_OK && places_same (&one, place))
            return true;
    return false;
}

static int add_endpoint (tmq_client_options_t *options, const char *value, tmq_error_t *error)
{
    place_t place;
    int code = places_parse (&place, value, error);
    if (code != TMQ_OK || has_endpoint (options, &place))
        return code;
    if (options->endpoints_count >= TMQ_ENDPOINTS_MAX)
        return places_too_many (value, error);
    const char *text = owned_text (options, value);
    if (text == NULL)
        return core_error (error, TMQ_NO_MEMORY, NULL);
    owned_t *owned = options->owned;
    const char **endpoints = calloc (options->endpoints_count + 1, sizeof *endpoints);
    if (endpoints == NULL)
        return core_error (error, TMQ_NO_MEMORY, NULL);
    for (size_t i = 0; i < options->endpoints_count; i++)
        endpoints[i] = options->endpoints[i];
    endpoints[options->endpoints_count++] = text;
    free (owned->endpoints);
    owned->endpoints = endpoints;
    options->endpoints = endpoints;
    return TMQ_OK;
}

static int parse_number (uint64_t *out, const char *key, const char *value, uint64_t max,
                         tmq_error_t *error)
{
    char *end;
    errno = 0;
    *out = strtoull (value, &end, 10);
    if (value[0] < '0' || value[0] > '9' || *end != '\0' || errno != 0 || *out > max || *out == 0)
        return core_error (error, TMQ_INVALID, "%s: '%s' is not a number from 1 to %llu", key,
                           value, (unsigned long long) max);
    return TMQ_OK;
}

static int set_number (tmq_client_options_t *options, const char *key, const char *value,
                       tmq_error_t *error)
{
    bool has_reads = has_member (options, &options->reads_max, sizeof options->reads_max);
    const struct {
        const char *key;
        size_t *size;
        uint32_t *number;
    } numbers[] = {{"reads_max", has_reads ? &options->reads_max : NULL, NULL},
                   {"outbox_requests_max", &options->outbox_requests_max, NULL},
                   {"outbox_bytes_max", &options->outbox_bytes_max, NULL},
                   {"completions_max", &options->completions_max, NULL},
                   {"reconnect_ms_min", NULL, &options->reconnect_ms_min},
                   {"reconnect_ms_max", NULL, &options->reconnect_ms_max}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (strcmp (key, numbers[i].key) != 0)
            continue;
        if (numbers[i].size == NULL && numbers[i].number == NULL)
            break;
        uint64_t number;
        int code = parse_number (&number, key, value,
                                 numbers[i].size != NULL ? SIZE_MAX : UINT32_MAX, error);
        if (code == TMQ_OK && numbers[i].size != NULL)
            *numbers[i].size = (size_t) number;
        else if (code == TMQ_OK)
            *numbers[i].number = (uint32_t) number;
        return code;
    }
    return core_error (error, TMQ_INVALID, "'%s' is not an option of a client", key);
}

static const char **text_of (tmq_client_options_t *options, const char *key)
{
    const struct {
        const char *key;
        const char **text;
    } texts[] = {{"namespace", &options->ns},        {"name", &options->name},
                 {"directory", &options->directory}, {"server_key", &options->server_key},
                 {"key_file", &options->key_file},   {"key", &options->key},
                 {"profile", &options->profile}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strcmp (key, texts[i].key) == 0)
            return texts[i].text;
    return NULL;
}

int tmq_client_options_set (tmq_client_options_t *options, const char *key, const char *value,
                            tmq_error_t *error)
{
    if (options == NULL || key == NULL || value == NULL)
        return core_error (error, TMQ_INVALID, "options, key and value must not be NULL");
    if (strcmp (key, "endpoint") == 0)
        return add_endpoint (options, value, error);
    const char **text = text_of (options, key);
    if (text != NULL && has_member (options, text, sizeof *text))
        return set_text (options, text, value, error);
    bool *flag = strcmp (key, "log") == 0         ? &options->log
                 : strcmp (key, "link") == 0      ? &options->link
                 : strcmp (key, "fail_fast") == 0 ? &options->fail_fast
                                                  : NULL;
    if (flag == NULL || !has_member (options, flag, sizeof *flag))
        return set_number (options, key, value, error);
    if (strcmp (value, "true") != 0 && strcmp (value, "false") != 0)
        return core_error (error, TMQ_INVALID, "%s: true or false", key);
    *flag = strcmp (value, "true") == 0;
    return TMQ_OK;
}

/* One line of a profile. What only the profile itself has is passed over. */
static int load_line (tmq_client_options_t *options, const profile_line_t *line, const char *path,
                      tmq_error_t *error)
{
    tmq_error_t why = {0};
    char file[2 * PATH_MAX];
    const char *value = line->value;
    if (strcmp (line->key, "next_server_key") == 0)
        return TMQ_OK;
    if (strcmp (line->key, "key_file") == 0 && value[0] != '/') {
        snprintf (file, sizeof file, "%.*s/%s", (int) (strrchr (path, '/') - path), path, value);
        value = file;
    }
    const int code = strcmp (line->key, "profile") == 0
                         ? core_error (&why, TMQ_INVALID, "a profile names no other one")
                         : tmq_client_options_set (options, line->key, value, &why);
    return code == TMQ_OK
               ? TMQ_OK
               : core_error (error, code, "%.200s:%zu: %.250s", path, line->number, why.text);
}

int tmq_client_options_load (tmq_client_options_t *options, const char *name, tmq_error_t *error)
{
    char path[PATH_MAX], reason[PROFILE_ERROR_SIZE];
    if (options == NULL || name == NULL)
        return core_error (error, TMQ_INVALID, "options and name must not be NULL");
    profile_t *profile = malloc (sizeof *profile);
    if (profile == NULL)
        return core_error (error, TMQ_NO_MEMORY, NULL);
    profile->count = 0;
    int failed = profile_path (path, name, reason);
    if (failed == 0)
        failed = profile_read (profile, path, reason);
    int code = failed == 0 ? TMQ_OK
                           : core_error (error, failed == ENOENT ? TMQ_NOT_FOUND : TMQ_INVALID,
                                         "%s", reason);
    for (size_t i = 0; i < profile->count && code == TMQ_OK; i++)
        code = load_line (options, &profile->lines[i], path, error);
    profile_clear (profile);
    free (profile);
    return code == TMQ_OK ? tmq_client_options_set (options, "profile", path, error) : code;
}

void tmq_client_options_clear (tmq_client_options_t *options)
{
    if (options == NULL)
        return;
    owned_t *owned = options->owned;
    for (size_t i = 0; owned != NULL && i < owned->count; i++) {
        sodium_memzero (owned->texts[i], strlen (owned->texts[i])); /* one may be a key */
        free (owned->texts[i]);
    }
    if (owned != NULL) {
        free (owned->texts);
        free (owned->endpoints);
        free (owned);
    }
    (tmq_client_options_init) (options, options->size);
}

/* Versions and texts. */

uint32_t tmq_version (void)
{
    return TMQ_VERSION_MAJOR << 16 | TMQ_VERSION_MINOR << 8 | TMQ_VERSION_PATCH;
}

bool tmq_version_compatible (uint32_t major, uint32_t minor)
{
    /* Before 1.0 a new minor version may change what is there. */
    if (major != TMQ_VERSION_MAJOR)
        return false;
    return major == 0 ? minor == TMQ_VERSION_MINOR : minor <= TMQ_VERSION_MINOR;
}

const char *tmq_code_name (int code)
{
    return code_name (code);
}

const char *tmq_code_text (int code)
{
    return code_text (code);
}

bool tmq_code_retriable (int code)
{
    return code_is_retriable (code);
}

const char *tmq_status_text (tmq_status_t status)
{
    return status_text ((unsigned) status);
}

bool tmq_status_terminal (tmq_status_t status)
{
    return status_is_terminal ((unsigned) status);
}

const char *tmq_event_kind_text (tmq_event_kind_t kind)
{
    return event_kind_text ((unsigned) kind);
}

const char *tmq_policy_text (tmq_policy_t policy)
{
    return policy_text (policy);
}

const char *tmq_session_status_text (tmq_session_status_t status)
{
    return session_status_text ((unsigned) status);
}

const char *tmq_subject_text (tmq_subject_t subject)
{
    return subject_text ((unsigned) subject);
}

/* Ids. */

void tmq_id_make (tmq_id_t *out)
{
    uint8_t random[ID_RANDOM_BYTES];
    struct timespec now;
    clock_gettime (CLOCK_REALTIME, &now);
    int failed = getentropy (random, sizeof random);
    (void) failed; /* Linux has it since 3.17, and it cannot fail for so few bytes */
    id_make (out, (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000, random);
}

void tmq_id_format (const tmq_id_t *id, char text[37])
{
    id_format (id, text);
}

int tmq_id_parse (tmq_id_t *out, const char *text)
{
    return text != NULL && id_parse (out, text) ? TMQ_OK : TMQ_INVALID;
}
