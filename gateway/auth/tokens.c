/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "auth/tokens.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "auth/policy.h"
#include "bytes.h"
#include "ids.h"
#include "key_file.h"
#include "units.h"

enum { FILE_BYTES_MAX = 1024 * 1024, TOKEN_RANDOM_BYTES = 32 };

static const char PREFIX[] = "tmq_";

principal_t *principal_new (const principal_t *from)
{
    principal_t *self = malloc (sizeof *self);
    account_t *account = account_new ();
    if (self == NULL || account == NULL) {
        free (self);
        account_release (account);
        return NULL;
    }
    *self = *from;
    self->account = account;
    self->references = 1;
    return self;
}

void principal_release (principal_t *self)
{
    if (self == NULL || --self->references > 0)
        return;
    account_release (self->account);
    free (self);
}

bool principal_has (const principal_t *self, const char *ns)
{
    for (size_t i = 0; i < self->namespaces_count; i++)
        if (strcmp (self->namespaces[i], ns) == 0)
            return true;
    return false;
}

void tokens_clear (tokens_t *self)
{
    for (size_t i = 0; i < self->count; i++)
        principal_release (self->list[i]);
    self->count = 0;
}

static void hash_token (uint8_t out[TOKEN_HASH_BYTES], const char *token)
{
    crypto_generichash (out, TOKEN_HASH_BYTES, (const uint8_t *) token, strlen (token), NULL, 0);
}

/* Reading and writing. */

static bool parse_namespaces (principal_t *out, const char *text)
{
    for (bool more = true; more;) {
        const size_t length = strcspn (text, ",");
        if (out->namespaces_count == TOKEN_NAMESPACES_MAX || length > TMQ_NAME_LENGTH_MAX)
            return false;
        char *name = out->namespaces[out->namespaces_count++];
        memcpy (name, text, length);
        name[length] = '\0';
        if (!name_is_valid (name))
            return false;
        more = text[length] == ',';
        text += length + 1;
    }
    return true;
}

const char *principal_fill (principal_t *out, const char *name, const char *roles,
                            const char *namespaces)
{
    if (!name_is_valid (name))
        return "a name has 1 to 64 of A-Z a-z 0-9 . _ -";
    snprintf (out->name, sizeof out->name, "%s", name);
    out->roles = roles_parse (roles);
    if (out->roles == 0)
        return "the roles are observer, client, operator, metrics, with commas between them";
    return parse_namespaces (out, namespaces) ? NULL
                                              : "the namespaces are up to 8 names, with commas "
                                                "between them";
}

static const char *parse_line (principal_t *out, char *line)
{
    char *rest = line;
    char *words[5];
    size_t count = 0;
    for (char *word = strtok_r (line, " \t", &rest); word != NULL;
         word = strtok_r (NULL, " \t", &rest)) {
        if (count == 5)
            return "a line has five words";
        words[count++] = word;
    }
    if (count != 5)
        return "a line has five words: name, roles, namespaces, hash, end";
    if (!hex_decode (out->hash, sizeof out->hash, words[3]))
        return "the hash has 64 hexadecimal digits";
    if (strcmp (words[4], "never") != 0 && !time_parse (&out->expires_ms, words[4], NULL))
        return "the end is a time, or never";
    return principal_fill (out, words[0], words[1], words[2]);
}

const principal_t *tokens_name (const tokens_t *self, const char *name)
{
    for (size_t i = 0; i < self->count; i++)
        if (strcmp (self->list[i]->name, name) == 0)
            return self->list[i];
    return NULL;
}

/* NULL: added; else what is wrong. */
static const char *add (tokens_t *self, const principal_t *principal)
{
    if (tokens_name (self, principal->name) != NULL)
        return "there is a token of that name; 'token remove' ends it";
    if (self->count == TOKENS_MAX)
        return "there are as many tokens as may be (1000)";
    principal_t *copy = principal_new (principal);
    if (copy == NULL)
        return "memory is exhausted";
    self->list[self->count++] = copy;
    return NULL;
}

static bool parse (tokens_t *out, char *text, const char *path, char error[TOKENS_ERROR_SIZE])
{
    char *rest = text;
    for (size_t number = 1; rest != NULL; number++) {
        principal_t principal = {.roles = 0};
        char *line = strsep (&rest, "\n");
        line += strspn (line, " \t\r");
        if (*line == '\0' || *line == '#')
            continue;
        const char *flaw = parse_line (&principal, line);
        if (flaw == NULL)
            flaw = add (out, &principal);
        if (flaw != NULL) {
            snprintf (error, TOKENS_ERROR_SIZE, "%s:%zu: %s", path, number, flaw);
            return false;
        }
    }
    return true;
}

static bool refuse (char error[TOKENS_ERROR_SIZE], const char *path, const char *why)
{
    snprintf (error, TOKENS_ERROR_SIZE, "%s: %s", path, why);
    return false;
}

char *private_file_load (const char *path, char error[TOKENS_ERROR_SIZE])
{
    struct stat status;
    error[0] = '\0';
    const int fd = open (path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (fd < 0) {
        if (errno != ENOENT)
            refuse (error, path, strerror (errno));
        return NULL;
    }
    char *text = NULL;
    if (fstat (fd, &status) != 0 || !S_ISREG (status.st_mode))
        refuse (error, path, "it is no regular file");
    else if ((status.st_mode & 077) != 0 || (status.st_uid != geteuid () && status.st_uid != 0))
        refuse (error, path, "it must be yours, and nobody else's to read: chmod 600");
    else if (status.st_size > FILE_BYTES_MAX || (text = calloc (1, FILE_BYTES_MAX + 1)) == NULL)
        refuse (error, path, "it is longer than 1 MiB");
    ssize_t got = 1;
    for (size_t length = 0; text != NULL && got > 0 && length < FILE_BYTES_MAX;
         length += (size_t) (got > 0 ? got : 0))
        got = read (fd, text + length, FILE_BYTES_MAX - length);
    if (text != NULL && got < 0) {
        refuse (error, path, strerror (errno));
        free (text);
        text = NULL;
    }
    close (fd);
    return text;
}

bool tokens_read (tokens_t *out, const char *path, char error[TOKENS_ERROR_SIZE])
{
    memset (out, 0, sizeof *out);
    char *text = private_file_load (path, error);
    if (text == NULL)
        return error[0] == '\0';
    const bool good = parse (out, text, path, error);
    if (!good)
        tokens_clear (out);
    free (text);
    return good;
}

static void write_line (bytes_t *out, const principal_t *principal)
{
    char roles[64];
    char hash[TOKEN_HASH_BYTES * 2 + 1];
    char end[TIME_TEXT_SIZE] = "never";
    roles_format (roles, sizeof roles, principal->roles);
    hex_encode (hash, principal->hash, sizeof principal->hash);
    if (principal->expires_ms != 0)
        time_format (end, principal->expires_ms);
    bytes_append_text (out, principal->name);
    bytes_append_byte (out, ' ');
    bytes_append_text (out, roles);
    for (size_t i = 0; i < principal->namespaces_count; i++) {
        bytes_append_byte (out, i == 0 ? ' ' : ',');
        bytes_append_text (out, principal->namespaces[i]);
    }
    bytes_append_byte (out, ' ');
    bytes_append_text (out, hash);
    bytes_append_byte (out, ' ');
    bytes_append_text (out, end);
    bytes_append_byte (out, '\n');
}

bool tokens_write (const tokens_t *self, const char *path, char error[TOKENS_ERROR_SIZE])
{
    bytes_t out = BYTES_INIT;
    bytes_append_text (&out, "# Tokens of taskmq-gateway: name, roles, namespaces, hash, end.\n");
    for (size_t i = 0; i < self->count; i++)
        write_line (&out, self->list[i]);
    const bool good = !out.failed && secret_file_write (path, (const char *) out.data, out.length,
                                                        true, error) == 0;
    bytes_free (&out);
    return good;
}

void tokens_inherit (tokens_t *self, const tokens_t *before)
{
    for (size_t i = 0; i < self->count; i++)
        for (size_t j = 0; j < before->count; j++)
            if (strcmp (self->list[i]->name, before->list[j]->name) == 0) {
                self->list[i]->rate = before->list[j]->rate;
                self->list[i]->calls = before->list[j]->calls;
                self->list[i]->time = before->list[j]->time;
                self->list[i]->mean_us = before->list[j]->mean_us;
                account_release (self->list[i]->account);
                self->list[i]->account = account_retain (before->list[j]->account);
            }
}

/* Adding, removing, finding. */

bool tokens_add (tokens_t *self, char token[TOKEN_SIZE], const char *name, const char *roles,
                 const char *namespaces, int64_t expires_ms, char error[TOKENS_ERROR_SIZE])
{
    uint8_t random[TOKEN_RANDOM_BYTES];
    principal_t principal = {.expires_ms = expires_ms};
    const char *flaw = principal_fill (&principal, name, roles, namespaces);
    randombytes_buf (random, sizeof random);
    memcpy (token, PREFIX, sizeof PREFIX);
    sodium_bin2base64 (token + sizeof PREFIX - 1, TOKEN_SIZE - sizeof PREFIX + 1, random,
                       sizeof random, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    sodium_memzero (random, sizeof random);
    hash_token (principal.hash, token);
    if (flaw == NULL)
        flaw = add (self, &principal);
    if (flaw != NULL)
        snprintf (error, TOKENS_ERROR_SIZE, "%s", flaw);
    return flaw == NULL;
}

bool tokens_remove (tokens_t *self, const char *name)
{
    for (size_t i = 0; i < self->count; i++) {
        if (strcmp (self->list[i]->name, name) != 0)
            continue;
        principal_release (self->list[i]);
        self->list[i] = self->list[--self->count];
        return true;
    }
    return false;
}

principal_t *tokens_find (const tokens_t *self, const char *token, int64_t now_ms)
{
    uint8_t hash[TOKEN_HASH_BYTES];
    if (strncmp (token, PREFIX, sizeof PREFIX - 1) != 0)
        return NULL;
    hash_token (hash, token);
    return tokens_find_hash (self, hash, now_ms);
}

principal_t *tokens_find_hash (const tokens_t *self, const uint8_t hash[TOKEN_HASH_BYTES],
                               int64_t now_ms)
{
    principal_t *found = NULL;
    for (size_t i = 0; i < self->count; i++)
        if (sodium_memcmp (hash, self->list[i]->hash, TOKEN_HASH_BYTES) == 0)
            found = self->list[i];
    return found != NULL && (found->expires_ms == 0 || found->expires_ms > now_ms) ? found : NULL;
}

bool tokens_stand_by (const tokens_t *self, const principal_t *principal, int64_t now_ms)
{
    for (size_t i = 0; i < self->count; i++) {
        const principal_t *at = self->list[i];
        if (strcmp (at->name, principal->name) != 0)
            continue;
        bool good = at->roles == principal->roles &&
                    memcmp (at->hash, principal->hash, sizeof at->hash) == 0 &&
                    (at->expires_ms == 0 || at->expires_ms > now_ms);
        for (size_t j = 0; good && j < principal->namespaces_count; j++)
            good = principal_has (at, principal->namespaces[j]);
        return good;
    }
    return false;
}
