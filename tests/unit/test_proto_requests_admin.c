/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The validator: one test for each kind of request of an administrator, with every limit at, below
 * and beyond. */
#include "test_proto_judge.h"

/* Who may use the broker. */

static ProtobufCBinaryData key_of (size_t length)
{
    static uint8_t key[33] = {7};
    return (ProtobufCBinaryData){length, length > 0 ? key : NULL};
}

static void test_enroll (void **state)
{
    (void) state;
    Taskmq__Enroll enroll = TASKMQ__ENROLL__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_ENROLL);
    request.enroll = &enroll;
    assert_bad (&request, TMQ_INVALID, "public_key: must be 32 bytes, not 0");
    enroll.public_key = key_of (33);
    assert_bad (&request, TMQ_INVALID, "public_key: must be 32 bytes, not 33");
    enroll.public_key = key_of (32);
    assert_good (&request);
    enroll.host = text_of ("box-7.example");
    assert_good (&request);
    const char *bad[] = {"a b", "a/b", "..\n", "%h", "*", "a\x1b"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        enroll.host = text_of (bad[i]);
        assert_bad (&request, TMQ_INVALID, "host: must match");
    }
    request.request_id = bytes_of (0);
    assert_bad (&request, TMQ_INVALID, "request_id: enroll needs one");
}

static void test_key_trust (void **state)
{
    (void) state;
    Taskmq__KeyTrust trust = TASKMQ__KEY_TRUST__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_KEY_TRUST);
    char *grants[17];
    for (size_t i = 0; i < 17; i++)
        grants[i] = text_of ("worker(default/render*)");
    request.key_trust = &trust;
    assert_bad (&request, TMQ_INVALID, "name: must match");
    trust.name = text_of ("render-7");
    assert_bad (&request, TMQ_INVALID, "public_key");
    trust.public_key = key_of (32);
    trust.grants = grants;
    assert_bad (&request, TMQ_INVALID, "grants: at least 1");
    trust.n_grants = 16;
    assert_good (&request);
    trust.n_grants = 17;
    assert_bad (&request, TMQ_TOO_LARGE, "grants: 17 of them, at most 16");
    trust.n_grants = 1;
    grants[0] = repeated ('a', 160);
    assert_good (&request);
    grants[0] = repeated ('a', 161);
    assert_bad (&request, TMQ_TOO_LARGE, "grants: 161 bytes, at most 160");
    const char *bad[] = {"",           "worker (q)", "a\nops * operator",
                         "worker(q)#", "wor\tker",   "\xc3\xa9"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        grants[0] = text_of (bad[i]);
        assert_bad (&request, TMQ_INVALID, "grants: a word");
    }
}

static void test_key_revoke (void **state)
{
    (void) state;
    Taskmq__KeyRevoke revoke = TASKMQ__KEY_REVOKE__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_KEY_REVOKE);
    request.key_revoke = &revoke;
    assert_bad (&request, TMQ_INVALID, "name or public_key: one must be given");
    revoke.name = text_of ("render-7");
    assert_good (&request);
    revoke.public_key = key_of (32);
    assert_bad (&request, TMQ_INVALID, "name or public_key: one must be given");
    revoke.name = text_of ("");
    assert_good (&request);
    revoke.public_key = key_of (31);
    assert_bad (&request, TMQ_INVALID, "public_key: must be 32 bytes");
}

static void test_invite (void **state)
{
    (void) state;
    Taskmq__Invite invite = TASKMQ__INVITE__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_INVITE);
    char *grant = text_of ("worker");
    request.invite = &invite;
    invite.public_key = key_of (32);
    invite.grants = &grant;
    invite.n_grants = 1;
    const struct {
        const char *name;
        bool good;
    } names[] = {{"render-7", true}, {"render-%h", true}, {"%h", true},   {"", false},
                 {"%h%h", false},    {"%d", false},       {"a b", false}, {"%", false}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        invite.name = text_of (names[i].name);
        if (names[i].good)
            assert_good (&request);
        else
            assert_bad (&request, TMQ_INVALID, "name: must match");
    }
    invite.name = repeated ('n', 64);
    assert_good (&request);
    invite.uses = 1000;
    assert_good (&request);
    invite.uses = 1001;
    assert_bad (&request, TMQ_INVALID, "uses: must be in 0..1000");
    invite.uses = 0;
    invite.lasts_ms = 999;
    assert_bad (&request, TMQ_INVALID, "lasts_ms: must be in 1000..2592000000");
    invite.lasts_ms = UINT64_C (2592000000);
    assert_good (&request);
    invite.lasts_ms++;
    assert_bad (&request, TMQ_INVALID, "lasts_ms");
    Taskmq__InviteRevoke revoke = TASKMQ__INVITE_REVOKE__INIT;
    request = request_of (TASKMQ__REQUEST__OP_INVITE_REVOKE);
    request.invite_revoke = &revoke;
    assert_bad (&request, TMQ_INVALID, "invitation: must match");
    revoke.invitation = text_of ("3f2a");
    assert_good (&request);
    Taskmq__ServerKeyRotate rotate = TASKMQ__SERVER_KEY_ROTATE__INIT;
    request = request_of (TASKMQ__REQUEST__OP_SERVER_KEY_ROTATE);
    request.server_key_rotate = &rotate;
    rotate.in_ms = UINT64_C (31536000000);
    assert_good (&request);
    rotate.in_ms++;
    assert_bad (&request, TMQ_INVALID, "in_ms");
}

static void test_audit (void **state)
{
    (void) state;
    Taskmq__Audit audit = TASKMQ__AUDIT__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_AUDIT);
    request.audit = &audit;
    assert_good (&request);
    audit.kind = text_of ("key.revoked");
    audit.actor = text_of ("uid:1000");
    audit.since = 1;
    audit.limit = TMQ_AUDIT_LINES_MAX;
    assert_good (&request);
    audit.limit++;
    assert_bad (&request, TMQ_INVALID, "limit");
    audit.limit = 0;
    audit.file = 1;
    assert_bad (&request, TMQ_INVALID, "since");
    audit.since = 0;
    audit.offset = UINT64_MAX;
    assert_bad (&request, TMQ_INVALID, "offset");
    audit.offset = 0;
    audit.kind = text_of ("a b");
    assert_bad (&request, TMQ_INVALID, "kind");
}

static void test_backup (void **state)
{
    (void) state;
    uint8_t id[17] = {1};
    Taskmq__Backup backup = TASKMQ__BACKUP__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_BACKUP);
    request.backup = &backup;
    assert_bad (&request, TMQ_INVALID, "id");
    backup.id = (ProtobufCBinaryData){17, id};
    assert_bad (&request, TMQ_INVALID, "id");
    backup.id.len = 16;
    assert_good (&request);
    backup.offset = UINT64_MAX;
    assert_bad (&request, TMQ_INVALID, "offset");
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_enroll),     cmocka_unit_test (test_key_trust),
        cmocka_unit_test (test_key_revoke), cmocka_unit_test (test_invite),
        cmocka_unit_test (test_audit),      cmocka_unit_test (test_backup),
    };
    return cmocka_run_group_tests (tests, judge_setup, judge_teardown);
}
