/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What is only read of the access file: its principals, its invitations, its text. */
#include "access_work.h"

#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "core/base/memory.h"

static char **key_texts_other (const principal_t *line, size_t *count)
{
    char **out = memory_zero (POLICY_WHO_MAX, sizeof (*out));
    char *copy = memory_text (line->text);
    char *rest = NULL;
    strtok_r (copy, " \t", &rest);
    char *who = strtok_r (NULL, " \t", &rest);
    *count = 0;
    for (char *word = who == NULL ? NULL : strtok_r (who, ",", &rest);
         word != NULL && *count < POLICY_WHO_MAX; word = strtok_r (NULL, ",", &rest))
        if (strncmp (word, "key:", 4) != 0)
            out[(*count)++] = memory_text (word);
    free (copy);
    return out;
}

/* Numbers of the fields of KeyPage and InvitePage in taskmq.proto. */
enum { PAGE_ITEMS = 1, PAGE_NEXT = 2 };

static void pack_principal (bytes_t *page, const principal_t *line)
{
    Taskmq__Principal out = TASKMQ__PRINCIPAL__INIT;
    ProtobufCBinaryData keys[POLICY_WHO_MAX];
    access_words_t grants;
    access_work_split (&grants, line);
    for (size_t i = 0; i < line->keys_count && i < POLICY_WHO_MAX; i++)
        keys[i] = (ProtobufCBinaryData){sizeof (line->keys[i].bytes), line->keys[i].bytes};
    out.name = (char *) (uintptr_t) line->name;
    out.keys = keys;
    out.n_keys = line->keys_count;
    out.others = key_texts_other (line, &out.n_others);
    out.grants = grants.list;
    out.n_grants = grants.count;
    out.until = (uint64_t) line->until_ms;
    out.line = line->line;
    bytes_append_message (page, PAGE_ITEMS, &out.base);
    for (size_t i = 0; i < out.n_others; i++)
        free (out.others[i]);
    free (out.others);
    free (grants.copy);
}

static void pack_invitation (bytes_t *page, const principal_t *line)
{
    Taskmq__Invitation out = TASKMQ__INVITATION__INIT;
    access_words_t grants;
    char *used = memory_text (line->used);
    char *at = strchr (used, '@');
    int64_t used_at = 0;
    char why[UNITS_ERROR_SIZE];
    if (at != NULL) {
        *at++ = '\0';
        time_parse (&used_at, at, why); /* the file's parser has taken it */
    }
    access_work_split (&grants, line);
    out.invitation = (char *) (uintptr_t) access_work_invitation (line->name);
    out.name = (char *) (uintptr_t) line->as;
    out.grants = grants.list;
    out.n_grants = grants.count;
    out.uses = line->uses;
    out.until = (uint64_t) line->until_ms;
    out.used_by = used;
    out.used_at = (uint64_t) used_at;
    bytes_append_message (page, PAGE_ITEMS, &out.base);
    free (used);
    free (grants.copy);
}

void access_do_list (access_work_t *work, bool invitations, uint32_t offset)
{
    bytes_t page = BYTES_INIT;
    const policy_t *policy = access_file_policy (work->self->file);
    uint32_t number = 0;
    uint32_t next = 0;
    for (size_t i = 0; policy != NULL && i < policy_count (policy) && next == 0; i++) {
        const principal_t *line = policy_at (policy, i);
        bool ended = line->until_ms != 0 && line->until_ms <= work->now_ms;
        if (line->is_invitation != invitations || (invitations && ended) || number++ < offset)
            continue;
        if (page.length >= ACCESS_PAGE_BYTES)
            next = number - 1;
        else if (invitations)
            pack_invitation (&page, line);
        else
            pack_principal (&page, line);
    }
    bytes_append_uint (&page, PAGE_NEXT, next);
    work->errand->member =
        invitations ? TASKMQ__REPLY__BODY_INVITE_PAGE : TASKMQ__REPLY__BODY_KEY_PAGE;
    work->errand->fields = buf_new (page.data, page.length);
    bytes_free (&page);
}

void access_do_read (access_work_t *work)
{
    char error[ACCESS_FILE_ERROR_SIZE];
    size_t bytes;
    size_t offset = work->request->access_read->offset;
    Taskmq__AccessText out = TASKMQ__ACCESS_TEXT__INIT;
    char *text = access_file_text (work->self->file, &bytes, error);
    if (text == NULL) {
        bool none = error[0] == '\0';
        errand_refuse (work->errand, none ? TMQ_NOT_FOUND : TMQ_INVALID, "%.500s",
                       none ? "there is no access file" : error);
        return;
    }
    if (offset > bytes)
        offset = bytes;
    size_t here = bytes - offset < ACCESS_PAGE_BYTES ? bytes - offset : ACCESS_PAGE_BYTES;
    out.text = (ProtobufCBinaryData){here, (uint8_t *) text + offset};
    out.next = offset + here < bytes ? (uint32_t) (offset + here) : 0;
    out.path = (char *) (uintptr_t) access_file_path (work->self->file);
    errand_reply (work->errand, TASKMQ__REPLY__BODY_ACCESS_TEXT, &out.base);
    free (text);
}
