/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The parser of the access file. A mistake names line and word, and nothing of such a file
 * counts. */
#include <arpa/inet.h>
#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/access/policy.h"
#include "core/access/policy_parts.h"
#include "core/base/memory.h"
#include "ids.h"
#include "nearest.h"
#include "units.h"

enum {
    UID_NOBODY = 65534, /* in a user namespace every other user looks like it */
    WORDS_MAX = 2 + POLICY_GRANTS_MAX + 32
};

typedef struct parser {
    policy_t *policy;
    const policy_names_t *names;
    policy_error_t *error;
    unsigned line;
    principal_t *principal; /* of the line */
    principal_t limits;     /* of the line of that name */
    bool nothing;           /* its grants are "-" */
    uint32_t options;       /* that the line has named, a bit each: own_option_t, then quotas */
} parser_t;

__attribute__ ((format (printf, 2, 3))) static bool fail (parser_t *self, const char *format, ...)
{
    va_list arguments;
    va_start (arguments, format);
    self->error->line = self->line;
    vsnprintf (self->error->text, sizeof (self->error->text), format, arguments);
    va_end (arguments);
    return false;
}

/* Adds what word is not, and what it may have been meant to be. */
static bool fail_near (parser_t *self, const char *word, const char *what,
                       const char *const *candidates, size_t count)
{
    const char *nearest = nearest_of (word, candidates, count);
    if (nearest != NULL)
        return fail (self, "\"%.64s\" is no %s; did you mean %s?", word, what, nearest);
    char list[128] = "";
    for (size_t i = 0; i < count; i++) {
        size_t used = strlen (list);
        snprintf (list + used, sizeof (list) - used, "%s%s", i == 0 ? "" : ", ", candidates[i]);
    }
    return fail (self, "\"%.64s\" is no %s: there are %s", word, what, list);
}

/* A copy that lives as long as the policy. */
static char *keep (policy_t *self, const char *text, size_t length)
{
    char *copy = memory_alloc (length + 1);
    memcpy (copy, text, length);
    copy[length] = '\0';
    self->texts =
        memory_grow (self->texts, &self->texts_capacity, self->texts_count, sizeof (*self->texts));
    self->texts[self->texts_count++] = copy;
    return copy;
}

#define ADD(self, list, ...)                                                                       \
    do {                                                                                           \
        (self)->list = memory_grow ((self)->list, &(self)->list##_capacity, (self)->list##_count,  \
                                    sizeof (*(self)->list));                                       \
        (self)->list[(self)->list##_count++] = __VA_ARGS__;                                        \
    } while (0)

static size_t index_of (const parser_t *self)
{
    return (size_t) (self->principal - self->policy->lines);
}

/* Who. */

static bool add_key (parser_t *self, const char *text)
{
    char why[KEY_ERROR_SIZE];
    key_public_t key;
    principal_t *principal = self->principal;
    if (!key_parse_public (&key, text, why))
        return fail (self, "\"%.80s\": %s", text, why);
    principal->keys =
        memory_resize (principal->keys, principal->keys_count + 1, sizeof (*principal->keys));
    principal->keys[principal->keys_count++] = key;
    ADD (self->policy, keys, (key_entry_t){key, index_of (self)});
    return true;
}

static bool add_uid (parser_t *self, const char *word, uint32_t uid, bool by_group)
{
    if (uid == UID_NOBODY && by_group)
        return true;
    if (uid == UID_NOBODY)
        return fail (self,
                     "\"%.80s\": 65534 is nobody: in a container every user of the machine "
                     "may look like it",
                     word);
    if (self->policy->uids_count == POLICY_UIDS_MAX)
        return fail (self, "\"%.80s\": more than %d users in all lines", word, POLICY_UIDS_MAX);
    ADD (self->policy, uids, (uid_entry_t){uid, by_group, index_of (self)});
    return true;
}

static bool add_uid_number (parser_t *self, const char *word, const char *text)
{
    char *end;
    unsigned long long uid = strtoull (text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || uid >= UINT32_MAX)
        return fail (self, "\"%.80s\": uid: is followed by a number, as uid:1000", word);
    return add_uid (self, word, (uint32_t) uid, false);
}

static bool add_user (parser_t *self, const char *word, const char *text)
{
    uint32_t uid = 0;
    if (self->names == NULL || !self->names->user (self->names->context, text, &uid))
        return fail (self, "\"%.80s\": this machine has no such user", word);
    return add_uid (self, word, uid, false);
}

static bool add_group (parser_t *self, const char *word, const char *text)
{
    enum { MEMBERS_MAX = 4096 };
    uint32_t *members = memory_alloc (MEMBERS_MAX * sizeof (*members));
    long count = POLICY_NO_GROUP;
    if (self->names != NULL)
        count = self->names->group (self->names->context, text, members, MEMBERS_MAX);
    bool good = false;
    if (count == POLICY_GROUP_UNKNOWN)
        fail (self, "\"%.80s\": this machine cannot tell who is in the group", word);
    else if (count < 0)
        fail (self, "\"%.80s\": this machine has no such group", word);
    else if (count > MEMBERS_MAX)
        fail (self, "\"%.80s\": the group has %ld members, more than %d", word, count, MEMBERS_MAX);
    else
        good = true;
    for (long i = 0; good && i < count; i++)
        good = add_uid (self, word, members[i], true);
    free (members);
    return good;
}

static bool add_place (parser_t *self, const char *word)
{
    for (size_t i = 0; i < self->policy->places_count; i++)
        if (strcmp (self->policy->places[i].name, word) == 0)
            return fail (self, "\"%.80s\" stands in line %u already", word,
                         self->policy->lines[self->policy->places[i].principal].line);
    if (self->policy->places_count == POLICY_PRINCIPALS_MAX / 10)
        return fail (self, "\"%.80s\": more than %d addresses in all lines", word,
                     POLICY_PRINCIPALS_MAX / 10);
    ADD (self->policy, places,
         (name_entry_t){keep (self->policy, word, strlen (word)), index_of (self)});
    return true;
}

static bool is_address (const char *text)
{
    struct in6_addr address; /* room for both kinds */
    return inet_pton (AF_INET, text, &address) == 1 || inet_pton (AF_INET6, text, &address) == 1;
}

static bool parse_one_who (parser_t *self, char *word)
{
    static const char *const KINDS[] = {"key", "invite", "uid", "user", "group", "addr", "local"};
    if (strcmp (word, "local") == 0)
        return add_place (self, word);
    char *colon = strchr (word, ':');
    if (colon == NULL || colon[1] == '\0') {
        if (colon != NULL)
            *colon = '\0';
        return colon == NULL ? fail (self,
                                     "\"%.80s\" says not who: key:tmqpk_…, uid:NUMBER, user:NAME, "
                                     "group:NAME, addr:IP or local",
                                     word)
                             : fail (self, "\"%.80s:\" is followed by nothing", word);
    }
    size_t length = (size_t) (colon - word);
    const char *value = colon + 1;
    if (length == 3 && memcmp (word, "key", 3) == 0)
        return add_key (self, value);
    if (length == 6 && memcmp (word, "invite", 6) == 0) {
        self->principal->is_invitation = true;
        return add_key (self, value);
    }
    if (length == 3 && memcmp (word, "uid", 3) == 0)
        return add_uid_number (self, word, value);
    if (length == 4 && memcmp (word, "user", 4) == 0)
        return add_user (self, word, value);
    if (length == 5 && memcmp (word, "group", 5) == 0)
        return add_group (self, word, value);
    if (length == 4 && memcmp (word, "addr", 4) == 0)
        return is_address (value) ? add_place (self, word)
                                  : fail (self, "\"%.80s\": must be an address, as 10.0.0.7", word);
    *colon = '\0';
    return fail_near (self, word, "kind of principal", KINDS, sizeof (KINDS) / sizeof (KINDS[0]));
}

static bool parse_who (parser_t *self, char *words)
{
    size_t count = 0;
    for (char *word = words, *next = NULL; word != NULL; word = next) {
        next = strchr (word, ',');
        if (next != NULL)
            *next++ = '\0';
        if (++count > POLICY_WHO_MAX)
            return fail (self, "more than %d of whom in a line", POLICY_WHO_MAX);
        if (!parse_one_who (self, word))
            return false;
    }
    if (self->principal->is_invitation && count > 1)
        return fail (self, "an invitation has one key and nothing else");
    return true;
}

/* Grants. */

static bool parse_role (parser_t *self, const char *name, role_t *out)
{
    const char *names[ROLES];
    for (size_t i = 0; i < ROLES; i++) {
        names[i] = role_name ((role_t) i);
        if (strcmp (names[i], name) == 0) {
            *out = (role_t) i;
            return true;
        }
    }
    return fail_near (self, name, "role", names, ROLES);
}

static bool parse_patterns (parser_t *self, const char *word, grant_t *grant, const char *inside)
{
    const char *slash = strchr (inside, '/');
    size_t space_length = slash == NULL ? strlen (inside) : (size_t) (slash - inside);
    if (!glob_make (&grant->space, inside, space_length))
        return fail (self,
                     "\"%.80s\": a namespace is 1 to %d of A-Z a-z 0-9 . _ - with * for anything",
                     word, TMQ_NAME_LENGTH_MAX);
    const char *queue = slash == NULL ? "*" : slash + 1;
    if (!glob_make (&grant->queue, queue, strlen (queue)))
        return fail (self, "\"%.80s\": a queue is 1 to %d of A-Z a-z 0-9 . _ - with * for anything",
                     word, TMQ_NAME_LENGTH_MAX);
    if (grant->role == ROLE_ADMIN && !glob_is_open (&grant->queue))
        return fail (self, "\"%.80s\": an admin has whole namespaces, not queues of one", word);
    return true;
}

static bool parse_grant (parser_t *self, const char *word)
{
    principal_t *principal = self->principal;
    if (principal->grants_count == POLICY_GRANTS_MAX)
        return fail (self, "more than %d grants in a line", POLICY_GRANTS_MAX);
    char name[32];
    size_t length = strcspn (word, "(");
    snprintf (name, sizeof (name), "%.*s", (int) length, word);
    role_t role = ROLE_CLIENT;
    if (!parse_role (self, name, &role))
        return false;
    bool bare = word[length] == '\0';
    if (role == ROLE_OPERATOR && !bare)
        return fail (self, "\"%.80s\": an operator has the whole broker; say operator alone", word);
    if (role != ROLE_OPERATOR && bare)
        return fail (self, "\"%.80s\": where? as %s(default) or %s(default/render*)", word, name,
                     name);
    char inside[2 * TMQ_NAME_LENGTH_MAX + 8] = "*";
    if (!bare) {
        size_t rest = strlen (word + length + 1);
        if (rest == 0 || word[length + rest] != ')')
            return fail (self, "\"%.80s\": the closing parenthesis is missing", word);
        if (rest > sizeof (inside))
            return fail (self, "\"%.80s\": too long for NAMESPACE/QUEUE", word);
        snprintf (inside, sizeof (inside), "%.*s", (int) rest - 1, word + length + 1);
    }
    principal->grants =
        memory_resize (principal->grants, principal->grants_count + 1, sizeof (grant_t));
    grant_t *grant = &principal->grants[principal->grants_count++];
    *grant = (grant_t){.role = role};
    return parse_patterns (self, word, grant, inside);
}

/* Options. */

static bool take_until (parser_t *self, const char *value)
{
    char whole[64];
    char why[UNITS_ERROR_SIZE];
    size_t length = strlen (value);
    if (length == strlen ("2027-06-30"))
        snprintf (whole, sizeof (whole), "%sT00:00:00Z", value);
    else if (length == strlen ("2026-11-22T07:00Z") && value[length - 1] == 'Z')
        snprintf (whole, sizeof (whole), "%.16s:00Z", value);
    else
        snprintf (whole, sizeof (whole), "%.60s", value);
    if (!time_parse (&self->principal->until_ms, whole, why))
        return fail (self,
                     "until=%.40s: must be a day or a time in UTC, as 2027-06-30 or "
                     "2026-11-22T07:00Z",
                     value);
    if (self->principal->until_ms == 0)
        self->principal->until_ms = 1;
    return true;
}

static bool take_uses (parser_t *self, const char *value)
{
    char *end;
    unsigned long uses = strtoul (value, &end, 10);
    if (value[0] < '0' || value[0] > '9' || *end != '\0' || uses > POLICY_USES_MAX)
        return fail (self, "uses=%.40s: must be a number from 0 to %d", value, POLICY_USES_MAX);
    self->principal->uses = (uint32_t) uses;
    return true;
}

/* A name, in which %h may stand once. */
static bool take_as (parser_t *self, const char *value)
{
    char plain[TMQ_NAME_LENGTH_MAX + 4];
    snprintf (plain, sizeof (plain), "%s", value);
    char *host = strstr (plain, "%h");
    if (host != NULL)
        memcpy (host, "hh", 2);
    if (!name_is_valid (plain))
        return fail (self, "as=%.80s: must be a name, in which %%h stands for the host's", value);
    self->principal->as = keep (self->policy, value, strlen (value));
    return true;
}

/* By whom and when, as the broker writes it. */
static bool take_used (parser_t *self, const char *value)
{
    int64_t at_ms;
    char why[UNITS_ERROR_SIZE];
    const char *at = strchr (value, '@');
    if (at == NULL || at == value || !time_parse (&at_ms, at + 1, why))
        return fail (self, "used=%.80s: must be ADDRESS@TIME, as 10.0.0.9@2026-11-22T06:12:00Z",
                     value);
    self->principal->used = keep (self->policy, value, strlen (value));
    return true;
}

static bool take_owns (parser_t *self, char *value)
{
    principal_t *principal = self->principal;
    for (char *word = value, *next = NULL; word != NULL; word = next) {
        next = strchr (word, ',');
        if (next != NULL)
            *next++ = '\0';
        if (principal->owns_count == POLICY_OWNS_MAX)
            return fail (self, "owns= names more than %d", POLICY_OWNS_MAX);
        if (word[0] == '\0' || strlen (word) > TMQ_OWNER_BYTES_MAX)
            return fail (self, "owns=%.80s: must be identities, as uid:1000 or a name", value);
        principal->owns[principal->owns_count++] = keep (self->policy, word, strlen (word));
    }
    return true;
}

/* Quotas. */

enum { QUOTA_COUNT, QUOTA_AMOUNT, QUOTA_SIZE, QUOTA_PER_SECOND };
#define NOT_SAID UINT64_MAX

static const struct {
    const char *option;
    int form;
    uint64_t value;
} QUOTA_TABLE[QUOTAS] = {
#define X(NAME, option, form, value) [QUOTA_##NAME] = {option, QUOTA_##form, value},
    POLICY_QUOTA_MAP (X)
#undef X
};

static bool take_quota (parser_t *self, quota_t quota, const char *value)
{
    uint64_t *out = &self->principal->quotas[quota];
    char why[UNITS_ERROR_SIZE];
    if (QUOTA_TABLE[quota].form == QUOTA_SIZE) {
        if (!size_parse (out, value, why))
            return fail (self, "%s=%.40s: %s", QUOTA_TABLE[quota].option, value, why);
        return true;
    }
    bool rate = QUOTA_TABLE[quota].form == QUOTA_PER_SECOND;
    char *end;
    unsigned long long number = strtoull (value, &end, 10);
    bool enough = number > 0 || QUOTA_TABLE[quota].form == QUOTA_COUNT;
    if (value[0] < '0' || value[0] > '9' || strcmp (end, rate ? "/s" : "") != 0 || !enough ||
        number > UINT32_MAX)
        return fail (self, "%s=%.40s: must be a number%s", QUOTA_TABLE[quota].option, value,
                     rate      ? " in a second, as 50/s"
                     : !enough ? " of at least 1"
                               : "");
    *out = number;
    return true;
}

static void say_no_quota (principal_t *principal)
{
    for (size_t i = 0; i < QUOTAS; i++)
        principal->quotas[i] = NOT_SAID;
}

/* Its own, else what the line `limits` says, else the defaults. */
static void fill_quotas (parser_t *self)
{
    for (size_t i = 0; i < self->policy->lines_count; i++) {
        uint64_t *quotas = self->policy->lines[i].quotas;
        for (size_t k = 0; k < QUOTAS; k++) {
            if (quotas[k] == NOT_SAID)
                quotas[k] = self->limits.quotas[k];
            if (quotas[k] == NOT_SAID)
                quotas[k] = QUOTA_TABLE[k].value;
        }
    }
}

typedef enum own_option { UNTIL, USES, AS, USED, OWNS, OWN_OPTIONS } own_option_t;

/* The last one would win, and nobody would see it. */
static bool is_first (parser_t *self, size_t option, const char *name)
{
    if ((self->options & 1u << option) != 0)
        return fail (self, "%s= stands twice in this line", name);
    self->options |= 1u << option;
    return true;
}

static bool take_own (parser_t *self, own_option_t option, char *value)
{
    switch (option) {
    case UNTIL: return take_until (self, value);
    case USES: return take_uses (self, value);
    case AS: return take_as (self, value);
    case USED: return take_used (self, value);
    default: return take_owns (self, value);
    }
}

static bool parse_option (parser_t *self, char *word)
{
    const char *options[OWN_OPTIONS + QUOTAS] = {"until", "uses", "as", "used", "owns"};
    for (size_t i = 0; i < QUOTAS; i++)
        options[OWN_OPTIONS + i] = QUOTA_TABLE[i].option;
    size_t option = 0;
    char *equals = strchr (word, '=');
    *equals = '\0';
    char *value = equals + 1;
    while (option < OWN_OPTIONS + QUOTAS && strcmp (word, options[option]) != 0)
        option++;
    if (option == OWN_OPTIONS + QUOTAS)
        return fail_near (self, word, "option", options, OWN_OPTIONS + QUOTAS);
    bool of_invitation = option == USES || option == AS || option == USED;
    if (of_invitation && !self->principal->is_invitation)
        return fail (self, "%s= belongs to invitations only", word);
    if (!is_first (self, option, word))
        return false;
    return option < OWN_OPTIONS ? take_own (self, (own_option_t) option, value)
                                : take_quota (self, (quota_t) (option - OWN_OPTIONS), value);
}

/* Lines. */

static bool take_name (parser_t *self, const char *name)
{
    static const char *const RESERVED[] = {"local", "taskmqd"};
    if (!name_is_valid (name))
        return fail (self, "\"%.80s\" is no name: 1 to %d of A-Z a-z 0-9 . _ -", name,
                     TMQ_NAME_LENGTH_MAX);
    for (size_t i = 0; i < sizeof (RESERVED) / sizeof (RESERVED[0]); i++)
        if (strcmp (name, RESERVED[i]) == 0)
            return fail (self, "\"%s\" stands for something else: choose another name", name);
    self->principal->name = keep (self->policy, name, strlen (name));
    ADD (self->policy, names, (name_entry_t){self->principal->name, index_of (self)});
    return true;
}

/* What decides about its links, in one text; and its grants in another. */
static void keep_rights (parser_t *self, char *const *words, size_t count, char *scratch)
{
    size_t may = 0;
    for (size_t i = 0; i < count; i++)
        if (strchr (words[i], '=') == NULL)
            may += (size_t) sprintf (scratch + may, "%s%s", may == 0 ? "" : " ", words[i]);
    self->principal->may = keep (self->policy, scratch, may);
    size_t same = 0;
    for (size_t i = 0; i < count; i++)
        if (strncmp (words[i], "until=", 6) != 0 && strncmp (words[i], "uses=", 5) != 0 &&
            strncmp (words[i], "as=", 3) != 0 && strncmp (words[i], "used=", 5) != 0)
            same += (size_t) sprintf (scratch + same, "%s%s", same == 0 ? "" : " ", words[i]);
    self->principal->same = keep (self->policy, scratch, same);
}

static bool parse_words (parser_t *self, char **words, size_t count, char *scratch)
{
    if (!take_name (self, words[0]))
        return false;
    if (count < 3)
        return fail (self,
                     "%.64s: %s; a line says NAME WHO GRANT…, as ci key:tmqpk_… "
                     "client(default/build*)",
                     words[0], count < 2 ? "who is it" : "what may it do");
    keep_rights (self, words + 2, count - 2, scratch);
    if (!parse_who (self, words[1]))
        return false;
    self->principal->uses = self->principal->is_invitation ? 1 : 0;
    for (size_t i = 2; i < count; i++) {
        bool good;
        if (strchr (words[i], '=') != NULL)
            good = parse_option (self, words[i]);
        else if (strcmp (words[i], "-") == 0)
            good = self->nothing = true;
        else
            good = parse_grant (self, words[i]);
        if (!good)
            return false;
    }
    if (self->nothing == (self->principal->grants_count > 0))
        return self->nothing ? fail (self, "%s: grants and - at once", words[0])
                             : fail (self,
                                     "%s: what may it do? A grant is missing, as "
                                     "client(default); or - for none",
                                     words[0]);
    if (self->principal->is_invitation && self->principal->as == NULL)
        return fail (self, "%s: an invitation says for whom it is: as=NAME", words[0]);
    return true;
}

/* "limits * - links=64": the quotas of those who have none of their own. */
static bool parse_limits (parser_t *self, char **words, size_t count, const char *line,
                          size_t bytes)
{
    if (self->limits.line != 0)
        return fail (self, "limits stand in line %u already", self->limits.line);
    if (count < 3 || strcmp (words[1], "*") != 0 || strcmp (words[2], "-") != 0)
        return fail (self, "limits are for everybody and grant nothing: limits * - tasks=1000");
    self->limits.line = self->line;
    self->policy->limits = keep (self->policy, line, bytes);
    self->options = 0;
    self->principal = &self->limits;
    for (size_t i = 3; i < count; i++) {
        size_t quota = 0;
        size_t length = strcspn (words[i], "=");
        while (quota < QUOTAS && (strlen (QUOTA_TABLE[quota].option) != length ||
                                  memcmp (QUOTA_TABLE[quota].option, words[i], length) != 0))
            quota++;
        if (quota == QUOTAS || words[i][length] == '\0')
            return fail (self, "\"%.80s\" is no quota, as tasks=1000", words[i]);
        if (!is_first (self, OWN_OPTIONS + quota, QUOTA_TABLE[quota].option) ||
            !take_quota (self, (quota_t) quota, words[i] + length + 1))
            return false;
    }
    return true;
}

static bool begin_principal (parser_t *self, const char *line, size_t length)
{
    if (self->policy->lines_count == POLICY_PRINCIPALS_MAX)
        return fail (self, "more than %d lines", POLICY_PRINCIPALS_MAX);
    ADD (self->policy, lines, (principal_t){.line = self->line});
    self->principal = &self->policy->lines[self->policy->lines_count - 1];
    self->principal->text = keep (self->policy, line, length);
    say_no_quota (self->principal);
    self->nothing = false;
    self->options = 0;
    return true;
}

static bool parse_line (parser_t *self, const char *at, size_t length)
{
    const char *comment = memchr (at, '#', length);
    if (comment != NULL)
        length = (size_t) (comment - at);
    while (length > 0 && (at[length - 1] == ' ' || at[length - 1] == '\t'))
        length--;
    while (length > 0 && (*at == ' ' || *at == '\t')) {
        at++;
        length--;
    }
    if (length == 0)
        return true;
    char *copy = memory_alloc (length + 1);
    char *scratch = memory_alloc (length + 1);
    memcpy (copy, at, length);
    copy[length] = '\0';
    char *words[WORDS_MAX] = {NULL};
    size_t count = 0;
    char *rest = NULL;
    bool good = true;
    for (char *word = strtok_r (copy, " \t", &rest); word != NULL && good;
         word = strtok_r (NULL, " \t", &rest)) {
        if (count == WORDS_MAX)
            good = fail (self, "more than %d words in a line", WORDS_MAX);
        else
            words[count++] = word;
    }
    assert (count > 0); /* something is left when spaces are cut off, and no character is a NUL */
    if (good && strcmp (words[0], "limits") == 0)
        good = parse_limits (self, words, count, at, length);
    else
        good =
            good && begin_principal (self, at, length) && parse_words (self, words, count, scratch);
    free (copy);
    free (scratch);
    return good;
}

/* What two lines must not have in common; after policy_sort. */
static bool is_consistent (parser_t *self)
{
    const policy_t *policy = self->policy;
    for (size_t i = 1; i < policy->names_count; i++)
        if (strcmp (policy->names[i - 1].name, policy->names[i].name) == 0) {
            const principal_t *a = &policy->lines[policy->names[i - 1].principal];
            const principal_t *b = &policy->lines[policy->names[i].principal];
            self->line = a->line > b->line ? a->line : b->line;
            return fail (self, "the name %s stands in line %u already", a->name,
                         a->line < b->line ? a->line : b->line);
        }
    for (size_t i = 1; i < policy->keys_count; i++)
        if (key_public_equal (&policy->keys[i - 1].key, &policy->keys[i].key)) {
            char text[KEY_TEXT_SIZE];
            const principal_t *a = &policy->lines[policy->keys[i - 1].principal];
            const principal_t *b = &policy->lines[policy->keys[i].principal];
            self->line = a->line > b->line ? a->line : b->line;
            key_text_public (text, &policy->keys[i].key);
            return fail (self, "the key %s stands in line %u already", text,
                         a->line < b->line ? a->line : b->line);
        }
    for (size_t i = 1; i < policy->uids_count; i++) {
        const uid_entry_t *a = &policy->uids[i - 1];
        const uid_entry_t *b = &policy->uids[i];
        if (a->uid != b->uid || b->by_group) /* that one does not count */
            continue;
        self->line = policy->lines[b->principal].line;
        return fail (self, "uid %" PRIu32 " stands in line %u already", b->uid,
                     policy->lines[a->principal].line);
    }
    return true;
}

static bool parse_file (parser_t *self, const char *text, size_t bytes)
{
    char size[UNITS_TEXT_SIZE];
    if (bytes > POLICY_BYTES_MAX)
        return fail (self, "the file has %s, more than 1M", size_format (size, bytes));
    const char *end = text + bytes;
    for (const char *at = text; at < end;) {
        const char *newline = memchr (at, '\n', (size_t) (end - at));
        size_t length = newline == NULL ? (size_t) (end - at) : (size_t) (newline - at);
        self->line++;
        for (size_t i = 0; i < length; i++)
            if (((unsigned char) at[i] < ' ' && at[i] != '\t') || at[i] == 0x7f)
                return fail (self, "character %zu is a control character (0x%02x)", i + 1,
                             (unsigned) (unsigned char) at[i]);
        if (!parse_line (self, at, length))
            return false;
        at += length + (newline != NULL);
    }
    return true;
}

policy_t *policy_parse (const char *text, size_t bytes, const policy_names_t *names,
                        policy_error_t *error)
{
    policy_t *policy = memory_zero (1, sizeof (*policy));
    policy->users = 1;
    policy->has_own_uid = names != NULL;
    policy->own_uid = names == NULL ? 0 : names->own_uid;
    *error = (policy_error_t){0};
    parser_t parser = {.policy = policy, .names = names, .error = error};
    say_no_quota (&parser.limits);
    if (parse_file (&parser, text, bytes)) {
        policy_sort (policy);
        if (is_consistent (&parser)) {
            policy_drop_lesser_uids (policy);
            fill_quotas (&parser);
            return policy;
        }
    }
    policy_drop (policy);
    return NULL;
}
