/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "client/keyring.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/errors.h"
#include "ids.h"
#include "key_file.h"
#include "profile.h"

enum { SILENCES_MAX = 3 };

static const char *given (const char *text)
{
    return text != NULL && text[0] != '\0' ? text : NULL;
}

/* The own key. */

static int read_file (keyring_t *self, char error[KEY_FILE_ERROR_SIZE])
{
    key_secret_t secret;
    const int code = key_file_read (&secret, self->file, error);
    if (code != 0)
        return code;
    self->secret = secret;
    key_public_of (&self->own, &secret);
    self->has_own = true;
    sodium_memzero (&secret, sizeof secret);
    return 0;
}

static int take_text (keyring_t *self, const char *text, const char *from, tmq_error_t *error)
{
    char reason[KEY_ERROR_SIZE];
    if (!key_parse_secret (&self->secret, text, reason))
        return core_error (error, TMQ_INVALID, "%s: %s", from, reason);
    key_public_of (&self->own, &self->secret);
    self->has_own = true;
    return TMQ_OK;
}

static int take_file (keyring_t *self, const char *path, tmq_error_t *error)
{
    char reason[KEY_FILE_ERROR_SIZE];
    self->file = strdup (path);
    if (self->file == NULL)
        return core_error (error, TMQ_NO_MEMORY, NULL);
    if (read_file (self, reason) != 0)
        return core_error (error, TMQ_NOT_AUTHENTICATED, "%.480s", reason);
    return TMQ_OK;
}

/* A path in a profile counts from the profile's directory. */
static int take_file_of (keyring_t *self, const char *profile, const char *path, tmq_error_t *error)
{
    char whole[2 * PATH_MAX];
    const char *slash = strrchr (profile, '/');
    if (path[0] == '/' || slash == NULL)
        return take_file (self, path, error);
    snprintf (whole, sizeof whole, "%.*s/%s", (int) (slash - profile), profile, path);
    return take_file (self, whole, error);
}

/* keys/default.key, if the user has made one. */
static int take_default (keyring_t *self, tmq_error_t *error)
{
    char path[PATH_MAX];
    if (!profile_home (path, "keys/default.key") || access (path, F_OK) != 0)
        return TMQ_OK;
    return take_file (self, path, error);
}

static int take_own (keyring_t *self, const profile_t *profile, const tmq_client_options_t *options,
                     tmq_error_t *error)
{
    const char *key = given (options->key);
    const char *file = given (options->key_file);
    if (key != NULL)
        return take_text (self, key, "key", error);
    if (file != NULL)
        return take_file (self, file, error);
    if ((key = given (getenv ("TASKMQ_KEY"))) != NULL)
        return take_text (self, key, "TASKMQ_KEY", error);
    if ((file = given (getenv ("TASKMQ_KEY_FILE"))) != NULL)
        return take_file (self, file, error);
    if ((key = profile_value (profile, "key")) != NULL)
        return take_text (self, key, self->profile, error);
    if ((file = profile_value (profile, "key_file")) != NULL)
        return take_file_of (self, self->profile, file, error);
    return take_default (self, error);
}

/* The broker's key. */

static int take_server_text (keyring_t *self, const char *text, const char *from,
                             tmq_error_t *error)
{
    char reason[KEY_ERROR_SIZE];
    self->has_server = key_parse_public (&self->server, text, reason);
    if (!self->has_server)
        return core_error (error, TMQ_INVALID, "%.200s: %s", from, reason);
    return TMQ_OK;
}

/* It is the profile's; so is what the broker announced there. */
static int take_server_of_profile (keyring_t *self, const profile_t *profile, const char *text,
                                   tmq_error_t *error)
{
    const int code = take_server_text (self, text, self->profile, error);
    const char *next = profile_value (profile, "next_server_key");
    self->in_profile = true;
    self->has_next = next != NULL && key_parse_public (&self->next, next, NULL);
    self->next_of = self->server;
    return code;
}

static int take_server (keyring_t *self, const places_t *places, const profile_t *profile,
                        const tmq_client_options_t *options, tmq_error_t *error)
{
    const char *saved = profile_value (profile, "server_key");
    const char *text;
    self->far_only = places->directory != NULL;
    if ((text = given (options->server_key)) != NULL)
        return saved != NULL && strcmp (saved, text) == 0 /* tmq_client_options_load set it */
                   ? take_server_of_profile (self, profile, text, error)
                   : take_server_text (self, text, "server_key", error);
    if ((text = given (getenv ("TASKMQ_SERVER_KEY"))) != NULL)
        return take_server_text (self, text, "TASKMQ_SERVER_KEY", error);
    if (places->of_profile && saved != NULL)
        return take_server_of_profile (self, profile, saved, error);
    return TMQ_OK;
}

static const key_public_t *server_of (const keyring_t *self, const place_t *place)
{
    if (!places_is_tcp (place) || place->insecure)
        return NULL;
    if (place->has_server_key)
        return &place->server_key;
    return self->has_server && (!self->far_only || places_is_far (place)) ? &self->server : NULL;
}

void keyring_uri (const keyring_t *self, const place_t *place, char out[KEYRING_URI_SIZE])
{
    char text[KEY_TEXT_SIZE] = "";
    const key_public_t *server = server_of (self, place);
    if (server != NULL)
        key_text_public (text, server);
    snprintf (out, KEYRING_URI_SIZE, "%s%s%s", place->uri,
              place->insecure  ? "?insecure"
              : server != NULL ? "?server_key="
                               : "",
              text);
}

/* What a place needs and we have not; false if nothing. */
static bool is_missing (const keyring_t *self, const place_t *place,
                        char text[sizeof ((absence_t *) 0)->text])
{
    const bool curve = server_of (self, place) != NULL;
    const char *what = NULL;
    if (!curve && places_is_far (place) && !place->insecure)
        what = "the broker's key: taskctl join, or server_key";
    else if (curve && !self->has_own)
        what = "a key of yours: taskctl join, or taskctl key new";
    if (what != NULL)
        snprintf (text, sizeof ((absence_t *) 0)->text, "%s needs %s", place->uri, what);
    return what != NULL;
}

int keyring_open (keyring_t *out, const places_t *places, const tmq_client_options_t *options,
                  tmq_error_t *error)
{
    char reason[PROFILE_ERROR_SIZE];
    absence_t why;
    profile_t *profile = malloc (sizeof *profile);
    memset (out, 0, sizeof *out);
    if (profile == NULL)
        return core_error (error, TMQ_NO_MEMORY, NULL);
    profile->count = 0;
    int code = TMQ_OK;
    memcpy (out->profile, places->profile, sizeof out->profile);
    if (out->profile[0] != '\0' && profile_read (profile, out->profile, reason) != 0)
        code = core_error (error, TMQ_INVALID, "%s", reason);
    const char *ns = code == TMQ_OK ? profile_value (profile, "namespace") : NULL;
    if (ns != NULL && !name_is_valid (ns))
        code = core_error (error, TMQ_INVALID, "%.200s: namespace '%.80s' is not a name",
                           out->profile, ns);
    snprintf (out->ns, sizeof out->ns, "%s", code == TMQ_OK && ns != NULL ? ns : "");
    if (code == TMQ_OK)
        code = take_own (out, profile, options, error);
    if (code == TMQ_OK)
        code = take_server (out, places, profile, options, error);
    for (size_t i = 0; i < places->count && code == TMQ_OK; i++) {
        if (is_missing (out, &places->list[i], why.text))
            code = core_error (error, TMQ_NOT_AUTHENTICATED, "%s", why.text);
    }
    profile_clear (profile);
    free (profile);
    if (code != TMQ_OK)
        keyring_close (out);
    return code;
}

void keyring_close (keyring_t *self)
{
    free (self->file);
    sodium_memzero (self, sizeof *self);
}

/* Connections. */

bool keyring_use (keyring_t *self, const place_t *place, curve_t *out, bool *is_curve,
                  absence_t *why)
{
    char reason[KEY_FILE_ERROR_SIZE];
    const key_public_t *server = server_of (self, place);
    if (server != NULL && self->file != NULL)
        read_file (self, reason); /* else the last one that was good */
    if (is_missing (self, place, why->text)) {
        why->certain = true;
        why->hint[0] = '\0';
        return false;
    }
    *is_curve = server != NULL;
    if (server == NULL)
        return true;
    const bool next = self->has_next && self->try_next && key_public_equal (server, &self->next_of);
    out->server = next ? self->next : *server;
    out->own = self->own;
    out->secret = self->secret;
    return true;
}

bool keyring_changed (keyring_t *self, const key_public_t *used)
{
    char reason[KEY_FILE_ERROR_SIZE];
    return self->file != NULL && read_file (self, reason) == 0 &&
           !key_public_equal (&self->own, used);
}

bool keyring_silence (keyring_t *self)
{
    self->try_next = !self->try_next;
    return ++self->silences >= SILENCES_MAX;
}

/* Writes what a profile should know. One that cannot be written is left as it is. */
static void record (const keyring_t *self, const char *name, const key_public_t *key)
{
    char text[KEY_TEXT_SIZE], reason[PROFILE_ERROR_SIZE];
    if (self->profile[0] == '\0' || access (self->profile, W_OK) != 0)
        return;
    if (key != NULL)
        key_text_public (text, key);
    profile_set (self->profile, name, key != NULL ? text : NULL, reason);
}

/* The broker has changed its key. An endpoint that names the old one goes on leading to the new. */
static void change_server (keyring_t *self)
{
    if (!self->has_server || !key_public_equal (&self->server, &self->next_of))
        return;
    self->server = self->next;
    if (!self->in_profile)
        return;
    record (self, "server_key", &self->next);
    record (self, "next_server_key", NULL);
}

void keyring_welcome (keyring_t *self, const key_public_t *server, const core_rights_t *rights)
{
    self->silences = 0;
    if (self->has_next && key_public_equal (server, &self->next))
        change_server (self);
    if (!rights->has_next || key_public_equal (&rights->next, server) ||
        (self->has_next && key_public_equal (&self->next, &rights->next)))
        return;
    self->has_next = true;
    self->next = rights->next;
    self->next_of = *server;
    self->try_next = false;
    if (self->in_profile && key_public_equal (&self->server, server))
        record (self, "next_server_key", &self->next);
}
