/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "auth/proxied.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void hash_secret (uint8_t out[TOKEN_HASH_BYTES], const char *secret)
{
    crypto_generichash (out, TOKEN_HASH_BYTES, (const uint8_t *) secret, strlen (secret), NULL, 0);
}

bool proxied_read (proxied_t *self, const char *path, char error[TOKENS_ERROR_SIZE])
{
    char *text = private_file_load (path, error);
    if (text == NULL) {
        if (error[0] == '\0')
            snprintf (error, TOKENS_ERROR_SIZE, "%s: there is no such file", path);
        return false;
    }
    size_t length = strlen (text);
    while (length > 0 && strchr ("\r\n \t", text[length - 1]) != NULL)
        text[--length] = '\0';
    bool good = length >= PROXY_SECRET_MIN && length <= PROXY_SECRET_MAX;
    for (const char *at = text; good && *at != '\0'; at++)
        good = *at > ' ' && *at < 0x7f;
    if (good) {
        hash_secret (self->secret, text);
        self->on = true;
    } else {
        snprintf (error, TOKENS_ERROR_SIZE, "%s: a secret is one line of %d to %d visible ASCII",
                  path, PROXY_SECRET_MIN, PROXY_SECRET_MAX);
    }
    explicit_bzero (text, length);
    free (text);
    return good;
}

bool proxied_knows (const proxied_t *self, const char *secret)
{
    uint8_t hash[TOKEN_HASH_BYTES];
    if (!self->on || secret == NULL)
        return false;
    hash_secret (hash, secret);
    return sodium_memcmp (hash, self->secret, sizeof hash) == 0;
}

/* NULL: good; else what is wrong. Changes the text. */
static const char *parse (principal_t *out, char *text)
{
    const char *roles = NULL;
    const char *namespaces = NULL;
    char *rest = text;
    const char *name = strsep (&rest, ";");
    while (rest != NULL) {
        char *part = strsep (&rest, ";");
        part += strspn (part, " ");
        const char **place = strncmp (part, "roles=", 6) == 0         ? &roles
                             : strncmp (part, "namespaces=", 11) == 0 ? &namespaces
                                                                      : NULL;
        if (place == NULL || *place != NULL)
            return "behind the name stand roles=… and namespaces=…, each once";
        *place = strchr (part, '=') + 1;
    }
    return principal_fill (out, name, roles != NULL ? roles : "client",
                           namespaces != NULL ? namespaces : "default");
}

static bool is_same (const principal_t *self, const principal_t *other)
{
    return strcmp (self->name, other->name) == 0 && self->roles == other->roles &&
           self->namespaces_count == other->namespaces_count &&
           memcmp (self->namespaces, other->namespaces, sizeof self->namespaces) == 0;
}

/* Where a new one may stand; PROXIED_MAX: nowhere. */
static size_t find_place (proxied_t *self)
{
    size_t oldest = PROXIED_MAX;
    if (self->count < PROXIED_MAX)
        return self->count++;
    for (size_t i = 0; i < PROXIED_MAX; i++)
        if (self->list[i]->references == 1 &&
            (oldest == PROXIED_MAX || self->list[i]->rate.at_us < self->list[oldest]->rate.at_us))
            oldest = i;
    if (oldest < PROXIED_MAX)
        principal_release (self->list[oldest]);
    return oldest;
}

principal_t *proxied_find (proxied_t *self, const char *text, const char **flaw)
{
    char copy[PROXIED_TEXT_MAX + 1];
    principal_t principal = {.proxied = true};
    *flaw = "Taskmq-Principal is too long";
    if (strlen (text) > PROXIED_TEXT_MAX)
        return NULL;
    memcpy (copy, text, strlen (text) + 1);
    *flaw = parse (&principal, copy);
    if (*flaw != NULL)
        return NULL;
    for (size_t i = 0; i < self->count; i++)
        if (is_same (self->list[i], &principal))
            return self->list[i];
    principal_t *made = principal_new (&principal);
    const size_t place = made != NULL ? find_place (self) : PROXIED_MAX;
    if (place == PROXIED_MAX) {
        principal_release (made);
        return NULL;
    }
    self->list[place] = made;
    return made;
}

void proxied_clear (proxied_t *self)
{
    for (size_t i = 0; i < self->count; i++)
        principal_release (self->list[i]);
    memset (self, 0, sizeof *self);
}
