/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The access file: what is taken can be asked, and stays what it is when a line is put into it. */
#include "core/access/access.h"

#include "fuzz.h"

static bool find_user (void *context, const char *name, uint32_t *uid)
{
    (void) context;
    *uid = 1000 + (unsigned char) name[0];
    return name[0] != 'n';
}

static long find_group (void *context, const char *name, uint32_t *uids, size_t room)
{
    (void) context;
    for (size_t i = 0; i < room && i < 3; i++)
        uids[i] = 2000 + (uint32_t) i;
    return name[0] != 'n' ? 3 : -1;
}

static const policy_names_t names = {.own_uid = 990, .user = find_user, .group = find_group};

static void ask (policy_t *policy)
{
    static const char *const spaces[] = {"default", "build", "a"};
    for (size_t i = 0; i < policy_count (policy); i++) {
        const principal_t *who = policy_at (policy, i);
        HOLDS (policy_by_name (policy, who->name) == who);
        for (size_t space = 0; space < 3; space++) {
            access_t access = {0};
            if (access_link (&access, policy, who->name, spaces[space], 1)) {
                access_queue (&access, "render", RIGHT_SUBMIT);
                access_sees (&access, "thumbs", who->name, "", RIGHT_READ);
            }
            access_clear (&access);
        }
        for (size_t key = 0; key < who->keys_count; key++) {
            admission_t admission;
            knock_t knock = {"curve", &who->keys[key], "10.0.0.1", 1};
            access_door (policy, &knock, &admission);
            HOLDS (admission.status == 200 || (admission.status == 400 && admission.why != NULL));
        }
    }
}

static void put (const char *text, size_t bytes, size_t count)
{
    policy_error_t error;
    size_t length;
    char *more =
        policy_text_put (text, bytes, "fuzz-new", "fuzz-new uid:4711 observer(*)", &length);
    policy_t *policy = policy_parse (more, length, &names, &error);
    if (policy != NULL)
        HOLDS (policy_by_name (policy, "fuzz-new") != NULL && policy_count (policy) >= count);
    policy_drop (policy);
    free (more);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    policy_error_t error;
    char *text = fuzz_copy (data, size);
    policy_t *policy = policy_parse (text, size, &names, &error);
    if (policy != NULL) {
        ask (policy);
        put (text, size, policy_count (policy));
    } else {
        HOLDS (error.text[0] != '\0' && memchr (error.text, '\0', sizeof (error.text)) != NULL);
    }
    policy_drop (policy);
    free (text);
    return 0;
}
