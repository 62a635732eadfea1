/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Keys, invitations and the access file, as the errands' thread does them: every request against a
 * file on the disk. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "access_requests.h"
#include "log/log.h"
#include "support/cmocka_all.h"
#include "taskmq.pb-c.h"

static char path[64];
static char directory[48];
static int64_t clock_ms;
static access_file_t *file;
static access_requests_t requests;
static const key_public_t *came_by; /* whoever asks next; NULL: by none */
static errand_runner_t runners[ACCESS_RUNNERS];

static int64_t now_ms (void)
{
    return clock_ms;
}

static int setup (void **state)
{
    (void) state;
    char error[ACCESS_FILE_ERROR_SIZE];
    log_configure (LOG_LEVEL_ERROR + 1, false);
    snprintf (directory, sizeof (directory), "/tmp/tmq-access-XXXXXX");
    if (mkdtemp (directory) == NULL)
        return -1;
    snprintf (path, sizeof (path), "%s/access", directory);
    clock_ms = INT64_C (1800000000000);
    came_by = NULL;
    file = access_file_new (path, error);
    if (file == NULL)
        return -1;
    key_public_t key = {{1, 2, 3}};
    access_requests_init (&requests, file);
    requests.now_ms = requests.mono_ms = now_ms;
    access_requests_listen (&requests, &key, "broker.example:5560");
    access_requests_runners (&requests, runners);
    return 0;
}

static int teardown (void **state)
{
    (void) state;
    access_requests_free (&requests);
    access_file_free (&file);
    unlink (path);
    return rmdir (directory);
}

/* What a client asks, and what it gets. */

static ProtobufCBinaryData key_data (const key_public_t *key)
{
    return (ProtobufCBinaryData){sizeof (key->bytes), (uint8_t *) (uintptr_t) key->bytes};
}

/* By number: the public half of a pair that nobody has. */
static key_public_t key (uint8_t n)
{
    key_public_t out = {{n, 7, 7}};
    return out;
}

static char *text_of (const char *text)
{
    return (char *) (uintptr_t) text;
}

typedef struct asked {
    tmq_code_t code;
    char text[ERRAND_TEXT_SIZE];
    Taskmq__Reply reply; /* its member is unpacked and not freed before the end of the test */
    ProtobufCMessage *body;
} asked_t;

static ProtobufCMessage *unpack (const errand_t *errand)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field (&taskmq__reply__descriptor, errand->member);
    assert_non_null (field);
    return protobuf_c_message_unpack (field->descriptor, NULL, buf_length (errand->fields),
                                      buf_bytes (errand->fields));
}

static asked_t ask_owning (const char *identity, Taskmq__Request__OpCase op, void *operation,
                           bool owns)
{
    asked_t out = {0};
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    request.id = 1;
    request.op_case = op;
    request.enroll = operation; /* they share their place */
    errand_t *errand = errand_new ((uint32_t) op);
    errand->identity = strdup (identity);
    errand->owns = owns;
    errand->has_key = came_by != NULL;
    if (came_by != NULL)
        errand->key = *came_by;
    snprintf (errand->address, sizeof (errand->address), "10.0.0.9");
    size_t bytes = taskmq__request__get_packed_size (&request);
    errand->request = buf_new_uninitialised (bytes);
    taskmq__request__pack (&request, buf_mutable (errand->request));
    for (size_t i = 0; i < ACCESS_RUNNERS; i++)
        if (runners[i].op == (uint32_t) op)
            runners[i].run (runners[i].context, errand);
    out.code = errand->code;
    memcpy (out.text, errand->text, sizeof (out.text));
    if (errand->code == TMQ_OK)
        out.body = unpack (errand);
    errand_free (errand);
    return out;
}

static asked_t ask (const char *identity, Taskmq__Request__OpCase op, void *operation)
{
    return ask_owning (identity, op, operation, false);
}

static void done (asked_t *asked)
{
    if (asked->body != NULL)
        protobuf_c_message_free_unpacked (asked->body, NULL);
    asked->body = NULL;
}

/* Only the code and a part of the text matter. */
static void expect (asked_t asked, tmq_code_t code, const char *text)
{
    if (asked.code != code || strstr (asked.text, text) == NULL)
        fail_msg ("wanted %d \"%s\", got %d \"%s\"", code, text, asked.code, asked.text);
    done (&asked);
}

static void expect_ok (asked_t asked)
{
    expect (asked, TMQ_OK, "");
}

static Taskmq__Invite invitation (const key_public_t *public_key, const char *name)
{
    static char *grants[] = {(char *) (uintptr_t) "worker(default/render*)"};
    Taskmq__Invite invite = TASKMQ__INVITE__INIT;
    invite.public_key = key_data (public_key);
    invite.name = text_of (name);
    invite.grants = grants;
    invite.n_grants = 1;
    return invite;
}

/* The identity that the door gives to whoever has the invitation's key. */
static const char *invite (uint8_t n, const char *name, uint32_t uses)
{
    static char identity[4][96];
    static unsigned next;
    char *out = identity[next++ % 4];
    key_public_t public_key = key (n);
    Taskmq__Invite operation = invitation (&public_key, name);
    operation.uses = uses;
    asked_t asked = ask ("uid:7", TASKMQ__REQUEST__OP_INVITE, &operation);
    expect ((asked_t){asked.code, "", TASKMQ__REPLY__INIT, NULL}, TMQ_OK, "");
    snprintf (out, sizeof (identity[0]), "invite:invite-%s",
              ((Taskmq__Invited *) (void *) asked.body)->invitation);
    done (&asked);
    return out;
}

static asked_t enroll (const char *identity, uint8_t n, const char *host)
{
    Taskmq__Enroll operation = TASKMQ__ENROLL__INIT;
    key_public_t public_key = key (n);
    operation.public_key = key_data (&public_key);
    operation.host = text_of (host);
    return ask (identity, TASKMQ__REQUEST__OP_ENROLL, &operation);
}

static asked_t trust (const char *name, uint8_t n, const char *grant)
{
    Taskmq__KeyTrust operation = TASKMQ__KEY_TRUST__INIT;
    key_public_t public_key = key (n);
    char *grants[] = {text_of (grant)};
    operation.name = text_of (name);
    operation.public_key = key_data (&public_key);
    operation.grants = grants;
    operation.n_grants = 1;
    return ask ("uid:7", TASKMQ__REQUEST__OP_KEY_TRUST, &operation);
}

static asked_t revoke_name (const char *name)
{
    Taskmq__KeyRevoke operation = TASKMQ__KEY_REVOKE__INIT;
    operation.name = text_of (name);
    return ask ("uid:7", TASKMQ__REQUEST__OP_KEY_REVOKE, &operation);
}

static void write_file (const char *text, size_t bytes)
{
    int fd = open (path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true (fd >= 0);
    assert_int_equal (write (fd, text, bytes), bytes);
    close (fd);
}

static void read_file (char *out, size_t size)
{
    int fd = open (path, O_RDONLY);
    assert_true (fd >= 0);
    ssize_t length = read (fd, out, size - 1);
    assert_true (length >= 0);
    out[length] = '\0';
    close (fd);
}

static asked_t reload (void)
{
    Taskmq__Reload operation = TASKMQ__RELOAD__INIT;
    return ask ("uid:7", TASKMQ__REQUEST__OP_RELOAD, &operation);
}

static const principal_t *find (const char *name)
{
    const policy_t *policy = access_file_policy (file);
    return policy == NULL ? NULL : policy_by_name (policy, name);
}

/* Tests. */

static void the_first_invitation_makes_the_file (void **state)
{
    (void) state;
    key_public_t public_key = key (9);
    Taskmq__Invite operation = invitation (&public_key, "render-7");
    assert_null (access_file_policy (file));
    asked_t asked = ask ("uid:7", TASKMQ__REQUEST__OP_INVITE, &operation);
    assert_int_equal (asked.code, TMQ_OK);
    const Taskmq__Invited *invited = (Taskmq__Invited *) (void *) asked.body;
    assert_true (invited->made);
    assert_non_null (strstr (invited->text, "uid 7"));
    assert_non_null (strstr (invited->text, "lose access"));
    assert_string_equal (invited->address, "broker.example:5560");
    assert_int_equal (invited->server_key.data[2], 3);
    assert_int_equal (invited->until, clock_ms + 3600 * 1000);
    assert_string_equal (find ("me")->text, "me uid:7 operator");
    struct stat info;
    assert_int_equal (stat (path, &info), 0);
    assert_int_equal (info.st_mode & 0777, 0600);
    /* A repeat makes no second one. */
    size_t lines = policy_count (access_file_policy (file));
    asked_t again = ask ("uid:7", TASKMQ__REQUEST__OP_INVITE, &operation);
    assert_int_equal (again.code, TMQ_OK);
    assert_string_equal (((Taskmq__Invited *) (void *) again.body)->invitation,
                         invited->invitation);
    assert_true (
        ((Taskmq__Invited *) (void *) again.body)->made); /* the first answer may be lost */
    assert_int_equal (policy_count (access_file_policy (file)), lines);
    done (&asked);
    done (&again);
}

static void an_invitation_is_used_once (void **state)
{
    (void) state;
    const char *identity = invite (9, "render-7", 0);
    asked_t asked = enroll (identity, 20, "box");
    assert_int_equal (asked.code, TMQ_OK);
    const Taskmq__Enrolled *enrolled = (Taskmq__Enrolled *) (void *) asked.body;
    assert_string_equal (enrolled->name, "render-7");
    assert_int_equal (enrolled->n_grants, 1);
    assert_string_equal (enrolled->grants[0], "worker(default/render*)");
    done (&asked);
    assert_int_equal (find ("render-7")->keys_count, 1);
    clock_ms += 60000;
    expect_ok (enroll (identity, 20, "box")); /* the answer was lost: the same key again */
    expect (enroll (identity, 21, "box"), TMQ_DENIED,
            "this invitation was used by 10.0.0.9 at 2027-01-15T08:00:00");
    assert_int_equal (find ("render-7")->keys_count, 1);
    assert_int_equal (find (identity + 7)->uses, 0);
    expect_ok (revoke_name ("render-7"));
    assert_null (find ("render-7"));
    expect (enroll (identity, 20, "box"), TMQ_DENIED, "was used"); /* it does not come back */
}

static void an_invitation_ends (void **state)
{
    (void) state;
    const char *identity = invite (9, "render-7", 0);
    clock_ms += 3600 * 1000;
    expect (enroll (identity, 20, ""), TMQ_DENIED, "this invitation has ended");
    assert_null (find ("render-7"));
    assert_non_null (find (identity + 7));
    expect_ok (trust ("other", 30, "client(default)")); /* the next change tidies up */
    assert_null (find (identity + 7));
}

static void an_invitation_for_many_names_each (void **state)
{
    (void) state;
    key_public_t public_key = key (8);
    Taskmq__Invite operation = invitation (&public_key, "render");
    operation.uses = 2;
    expect (ask ("uid:7", TASKMQ__REQUEST__OP_INVITE, &operation), TMQ_INVALID, "%h");
    const char *identity = invite (9, "render-%h", 2);
    expect (enroll (identity, 20, ""), TMQ_INVALID, "host");
    expect_ok (enroll (identity, 20, "a"));
    expect (enroll (identity, 21, "a"), TMQ_CONFLICT, "render-a is taken");
    expect_ok (enroll (identity, 22, "b"));
    expect (enroll (identity, 23, "c"), TMQ_DENIED, "was used");
    assert_non_null (find ("render-a"));
    assert_non_null (find ("render-b"));
}

/* Who comes later sees nothing of who had the name before. */
static void nobody_joins_with_the_tasks_of_another (void **state)
{
    (void) state;
    const char *identity = invite (9, "render-%h", 2);
    Taskmq__Enroll operation = TASKMQ__ENROLL__INIT;
    key_public_t public_key = key (20);
    operation.public_key = key_data (&public_key);
    operation.host = text_of ("old");
    expect (ask_owning (identity, TASKMQ__REQUEST__OP_ENROLL, &operation, true), TMQ_CONFLICT,
            "render-old owns tasks");
    assert_null (find ("render-old"));
    expect_ok (enroll (identity, 20, "old"));
    expect_ok (ask_owning (identity, TASKMQ__REQUEST__OP_ENROLL, &operation, true)); /* a repeat */
}

/* It stood behind the request that ended its rights. */
static void who_is_no_operator_any_more_changes_nothing (void **state)
{
    (void) state;
    Taskmq__KeyTrust operation = TASKMQ__KEY_TRUST__INIT;
    key_public_t public_key = key (31);
    char *grants[] = {text_of ("operator")};
    operation.name = text_of ("mine");
    operation.public_key = key_data (&public_key);
    operation.grants = grants;
    operation.n_grants = 1;
    expect_ok (trust ("ops", 30, "operator"));
    expect_ok (revoke_name ("ops"));
    expect (ask ("ops", TASKMQ__REQUEST__OP_KEY_TRUST, &operation), TMQ_DENIED, "no operator");
    assert_null (find ("mine"));
    expect_ok (trust ("ops", 30, "client(default)"));
    expect (ask ("ops", TASKMQ__REQUEST__OP_KEY_TRUST, &operation), TMQ_DENIED, "no operator");
    expect_ok (trust ("ops", 30, "operator"));
    expect_ok (ask ("ops", TASKMQ__REQUEST__OP_KEY_TRUST, &operation));
}

/* One of its two keys was revoked while its request waited: what came by that one is refused. */
static void who_came_by_a_revoked_key_changes_nothing (void **state)
{
    (void) state;
    Taskmq__Enroll operation = TASKMQ__ENROLL__INIT;
    Taskmq__KeyRevoke revoke = TASKMQ__KEY_REVOKE__INIT;
    key_public_t lost = key (21);
    key_public_t third = key (22);
    operation.public_key = key_data (&third);
    revoke.name = text_of ("");
    revoke.public_key = key_data (&lost);
    expect_ok (trust ("render-7", 20, "worker(default)"));
    expect_ok (enroll ("render-7", 21, ""));
    expect_ok (ask ("uid:7", TASKMQ__REQUEST__OP_KEY_REVOKE, &revoke));
    came_by = &lost;
    expect (ask ("render-7", TASKMQ__REQUEST__OP_ENROLL, &operation), TMQ_DENIED, "was revoked");
    key_public_t kept = key (20);
    came_by = &kept;
    expect_ok (ask ("render-7", TASKMQ__REQUEST__OP_ENROLL, &operation));
    assert_int_equal (find ("render-7")->keys_count, 2);
}

/* The same of requests that change no line: the broker's key, a backup. */
static void who_is_no_operator_any_more_asks_for_nothing (void **state)
{
    (void) state;
    errand_t errand = {.op = TASKMQ__REQUEST__OP_SERVER_KEY_ROTATE, .identity = text_of ("ops")};
    expect_ok (trust ("ops", 30, "operator"));
    assert_true (access_requests_may (&requests, &errand));
    expect_ok (revoke_name ("ops"));
    assert_false (access_requests_may (&requests, &errand));
    errand.op = TASKMQ__REQUEST__OP_ENROLL; /* judged where it is done */
    assert_true (access_requests_may (&requests, &errand));
}

static void a_key_stands_for_one (void **state)
{
    (void) state;
    expect_ok (trust ("render-7", 20, "worker(default)"));
    expect (trust ("other", 20, "worker(default)"), TMQ_CONFLICT, "stands for render-7");
    const char *identity = invite (9, "render-8", 0);
    asked_t asked = enroll (identity, 20, "");
    assert_null (strstr (asked.text, "render-7")); /* who joins learns nobody's name */
    expect (asked, TMQ_CONFLICT, "stands for somebody else");
    expect (enroll (identity, 9, ""), TMQ_CONFLICT, "stands for"); /* the invitation's own */
    key_public_t public_key = key (10);
    Taskmq__Invite operation = invitation (&public_key, "render-7");
    expect (ask ("uid:7", TASKMQ__REQUEST__OP_INVITE, &operation), TMQ_CONFLICT, "is taken");
}

static void a_key_is_replaced_without_a_gap (void **state)
{
    (void) state;
    expect_ok (trust ("render-7", 20, "worker(default)"));
    expect_ok (trust ("other", 30, "worker(default)"));
    expect_ok (enroll ("render-7", 21, ""));
    expect_ok (enroll ("render-7", 21, ""));
    assert_int_equal (find ("render-7")->keys_count, 2);
    expect (enroll ("render-7", 22, ""), TMQ_LIMIT, "2 keys");
    expect (enroll ("render-7", 30, ""), TMQ_CONFLICT, "somebody else");
    Taskmq__Enroll alone = TASKMQ__ENROLL__INIT;
    key_public_t public_key = key (22);
    alone.public_key = key_data (&public_key);
    alone.alone = true;
    expect (ask ("render-7", TASKMQ__REQUEST__OP_ENROLL, &alone), TMQ_CONFLICT, "none of render-7");
    public_key = key (21);
    expect_ok (ask ("render-7", TASKMQ__REQUEST__OP_ENROLL, &alone));
    expect_ok (ask ("render-7", TASKMQ__REQUEST__OP_ENROLL, &alone));
    assert_int_equal (find ("render-7")->keys_count, 1);
    assert_true (key_public_equal (&find ("render-7")->keys[0], &public_key));
}

/* Each change costs a sync and a look at every link, so clients have a rate for it. */
static void keys_of_ones_own_have_a_rate (void **state)
{
    (void) state;
    expect_ok (trust ("render-7", 20, "worker(default)"));
    size_t changes = 0;
    asked_t asked = {.code = TMQ_OK};
    Taskmq__Enroll alone = TASKMQ__ENROLL__INIT;
    alone.alone = true;
    while (asked.code == TMQ_OK && changes < 200) {
        key_public_t public_key = key ((uint8_t) (30 + changes / 2 % 2));
        alone.public_key = key_data (&public_key);
        asked = enroll ("render-7", public_key.bytes[0], "");
        done (&asked);
        changes += asked.code == TMQ_OK;
        if (asked.code != TMQ_OK)
            break;
        asked = ask ("render-7", TASKMQ__REQUEST__OP_ENROLL, &alone);
        done (&asked);
        changes += asked.code == TMQ_OK;
    }
    assert_int_equal (asked.code, TMQ_LIMIT);
    assert_non_null (strstr (asked.text, "too often"));
    assert_int_equal (changes, ACCESS_OWN_BURST);
    expect_ok (trust ("render-8", 80, "worker(default)"));
    expect_ok (enroll ("render-8", 81, "")); /* its rate is its own */
    clock_ms += 1000 / ACCESS_OWN_PER_SECOND;
    expect_ok (enroll ("render-7", (uint8_t) (30 + changes / 2 % 2), ""));
    expect_ok (trust ("other", 90, "worker(default)")); /* operators are not held */
}

static void who_has_no_key_enrolls_none (void **state)
{
    (void) state;
    expect (enroll ("uid:7", 20, ""), TMQ_DENIED, "no access file");
    expect_ok (trust ("render-7", 20, "worker(default)"));
    expect (enroll ("me", 21, ""), TMQ_DENIED, "without a key");
    expect (enroll ("uid:8", 21, ""), TMQ_DENIED, "neither");
    expect (enroll ("invite:invite-0000", 21, ""), TMQ_DENIED, "neither");
    expect (enroll ("invite:render-7", 21, ""), TMQ_DENIED, "neither");
}

static void revoking_takes_one_key_or_all (void **state)
{
    (void) state;
    expect (revoke_name ("render-7"), TMQ_NOT_FOUND, "no such name");
    expect_ok (trust ("render-7", 20, "worker(default)"));
    expect_ok (enroll ("render-7", 21, ""));
    Taskmq__KeyRevoke one = TASKMQ__KEY_REVOKE__INIT;
    key_public_t public_key = key (20);
    one.public_key = key_data (&public_key);
    asked_t asked = ask ("uid:7", TASKMQ__REQUEST__OP_KEY_REVOKE, &one);
    assert_int_equal (asked.code, TMQ_OK);
    assert_int_equal (((Taskmq__Revoked *) (void *) asked.body)->n_names, 0);
    done (&asked);
    assert_int_equal (find ("render-7")->keys_count, 1);
    expect (ask ("uid:7", TASKMQ__REQUEST__OP_KEY_REVOKE, &one), TMQ_NOT_FOUND, "no such key");
    public_key = key (21);
    asked = ask ("uid:7", TASKMQ__REQUEST__OP_KEY_REVOKE, &one);
    assert_int_equal (((Taskmq__Revoked *) (void *) asked.body)->n_names, 1);
    done (&asked);
    assert_null (find ("render-7"));
    const char *identity = invite (9, "render-7", 0);
    Taskmq__InviteRevoke back = TASKMQ__INVITE_REVOKE__INIT;
    back.invitation = text_of (identity + strlen ("invite:invite-"));
    expect_ok (ask ("uid:7", TASKMQ__REQUEST__OP_INVITE_REVOKE, &back));
    expect_ok (ask ("uid:7", TASKMQ__REQUEST__OP_INVITE_REVOKE, &back));
    expect (enroll (identity, 22, ""), TMQ_DENIED, "neither");
}

static void a_name_with_tasks_is_not_given_away (void **state)
{
    (void) state;
    char *grant = text_of ("client(default)");
    Taskmq__KeyTrust operation = TASKMQ__KEY_TRUST__INIT;
    key_public_t public_key = key (20);
    operation.name = text_of ("ci");
    operation.public_key = key_data (&public_key);
    operation.grants = &grant;
    operation.n_grants = 1;
    expect (ask_owning ("uid:7", TASKMQ__REQUEST__OP_KEY_TRUST, &operation, true), TMQ_CONFLICT,
            "--inherit");
    assert_null (find ("ci"));
    operation.inherit = true;
    expect_ok (ask_owning ("uid:7", TASKMQ__REQUEST__OP_KEY_TRUST, &operation, true));
    operation.inherit = false; /* it is its name already */
    expect_ok (ask_owning ("uid:7", TASKMQ__REQUEST__OP_KEY_TRUST, &operation, true));
}

/* Somebody who does not give the lock back holds up this request, and not the broker. */
static void a_lock_that_others_hold_is_not_waited_for_without_end (void **state)
{
    (void) state;
    int other = open (directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal (flock (other, LOCK_EX | LOCK_NB), 0);
    expect (trust ("ci", 20, "client(build)"), TMQ_OVERLOADED, "holds the lock");
    close (other);
    expect_ok (trust ("ci", 20, "client(build)"));
}

static void comments_and_order_stay (void **state)
{
    (void) state;
    static const char before[] = "# ours\n"
                                 "me   uid:7   operator   # who writes this\n"
                                 "\n"
                                 "ci   uid:9   client(build/*)   owns=uid:5 # the build\n";
    char after[4096];
    write_file (before, sizeof (before) - 1);
    expect_ok (reload ());
    expect_ok (trust ("render-7", 20, "worker(default)"));
    expect_ok (trust ("ci", 21, "client(other)"));
    read_file (after, sizeof (after));
    assert_non_null (
        strstr (after, "# ours\nme   uid:7   operator   # who writes this\n\nci uid:9,"));
    assert_non_null (strstr (after, " client(other) owns=uid:5 # the build\nrender-7 key:tmqpk_"));
}

static void a_bad_file_changes_nothing (void **state)
{
    (void) state;
    static const char *const bad[] = {"me uid:7 operator\nci key:tmqpk_x client(a)\n",
                                      "me uid:7 operat", "me uid:7 operator\nme uid:8 operator\n"};
    expect_ok (trust ("render-7", 20, "worker(default)"));
    for (size_t i = 0; i < sizeof (bad) / sizeof (bad[0]); i++) {
        write_file (bad[i], strlen (bad[i]));
        asked_t asked = reload ();
        assert_int_equal (asked.code, TMQ_INVALID);
        assert_non_null (strstr (asked.text, path));
        assert_non_null (find ("render-7"));
        assert_true (access_file_is_stale (file));
        expect (trust ("other", 21, "worker(default)"), TMQ_INVALID, "mend the access file first");
    }
    write_file ("me uid:7 operator\n\0ci uid:8 operator\n", 37);
    expect (reload (), TMQ_INVALID, ":2: ");
    size_t bytes = 10u << 20;
    char *large = malloc (bytes);
    memset (large, '#', bytes);
    write_file (large, bytes);
    free (large);
    expect (reload (), TMQ_INVALID, "more than 1048576");
    static const char *const empty[] = {"", "\n", "# nobody\n", "limits * - rate=5/s\n"};
    for (size_t i = 0; i < sizeof (empty) / sizeof (empty[0]); i++) {
        write_file (empty[i], strlen (empty[i]));
        expect (reload (), TMQ_INVALID, "lists nobody any more");
        assert_true (access_file_is_stale (file));
        expect (trust ("other", 21, "worker(default)"), TMQ_INVALID, "mend the access file first");
        assert_non_null (find ("render-7"));
    }
    unlink (path);
    expect (reload (), TMQ_INVALID, "is gone");
    assert_non_null (find ("render-7"));
    static const char good[] = "me uid:7 operator\n";
    write_file (good, sizeof (good) - 1);
    expect_ok (reload ());
    assert_false (access_file_is_stale (file));
    assert_null (find ("render-7"));
}

/* Who starts with such a file means it, or has revoked the last key. */
static void a_start_takes_a_file_that_lists_nobody (void **state)
{
    (void) state;
    char error[ACCESS_FILE_ERROR_SIZE];
    static const char text[] = "# nobody yet\n";
    write_file (text, sizeof (text) - 1);
    access_file_t *other = access_file_new (path, error);
    assert_non_null (other);
    assert_int_equal (policy_count (access_file_policy (other)), 0);
    assert_true (access_file_load (other, error)); /* nothing is lost by it */
    access_file_free (&other);
}

static void a_file_of_others_is_refused (void **state)
{
    (void) state;
    char other[80];
    char error[ACCESS_FILE_ERROR_SIZE];
    static const char good[] = "me uid:7 operator\n";
    write_file (good, sizeof (good) - 1);
    chmod (path, 0660);
    expect (reload (), TMQ_INVALID, "chmod go-w");
    chmod (path, 0644);
    expect_ok (reload ());
    snprintf (other, sizeof (other), "%s/other", directory);
    assert_int_equal (rename (path, other), 0);
    assert_int_equal (symlink (other, path), 0);
    expect (reload (), TMQ_INVALID, "symbolic link");
    assert_null (access_file_new (path, error));
    assert_non_null (strstr (error, "symbolic link"));
    unlink (path);
    assert_int_equal (mkfifo (path, 0600), 0);
    expect (reload (), TMQ_INVALID, "no regular file"); /* and nobody waits for a writer */
    unlink (other);
}

/* The system's, for this test: a group whose entry needs so many bytes. */
static size_t group_bytes;

int getgrnam_r (const char *restrict name, struct group *restrict group, char *restrict buffer,
                size_t size, struct group **restrict result)
{
    static char member[] = "root";
    static char *members[] = {member, NULL};
    *result = NULL;
    if (strcmp (name, "large") != 0)
        return 0;
    if (size < group_bytes)
        return ERANGE;
    *group = (struct group){.gr_name = buffer, .gr_gid = 54321, .gr_mem = members};
    *result = group;
    return 0;
}

/* A group with thousands of members has a long entry; that is not no group. */
static void a_large_group_is_read (void **state)
{
    (void) state;
    char error[ACCESS_FILE_ERROR_SIZE];
    static const char text[] = "all group:large client(a)\n";
    write_file (text, sizeof (text) - 1);
    group_bytes = 200 * 1024;
    assert_true (access_file_load (file, error));
    assert_non_null (policy_by_uid (access_file_policy (file), 0));
    group_bytes = 64 * 1024 * 1024;
    assert_false (access_file_load (file, error));
    assert_non_null (strstr (error, "cannot tell who is in the group"));
    static const char none[] = "all group:none client(a)\n";
    write_file (none, sizeof (none) - 1);
    assert_false (access_file_load (file, error));
    assert_non_null (strstr (error, "no such group"));
}

static void a_bad_file_is_named_at_the_start (void **state)
{
    (void) state;
    char error[ACCESS_FILE_ERROR_SIZE];
    static const char bad[] = "me uid:7 operator\nci uid:8 clinet(a)\n";
    write_file (bad, sizeof (bad) - 1);
    assert_null (access_file_new (path, error));
    assert_non_null (strstr (error, "access:2: "));
    assert_non_null (strstr (error, "did you mean client"));
}

/* A change counts at the second look that sees it: a file that is being written is not read. */
static void an_edit_is_noticed (void **state)
{
    (void) state;
    static const char first[] = "me uid:7 operator\n";
    static const char second[] = "me uid:7 operator\nci uid:8 client(a)\n";
    policy_t *policy;
    assert_false (access_file_changed (file));
    assert_false (access_file_take (file, &policy));
    write_file (first, sizeof (first) - 1);
    assert_false (access_file_changed (file));
    write_file (second, sizeof (second) - 1);
    assert_false (access_file_changed (file));
    assert_true (access_file_changed (file));
    assert_false (access_file_changed (file)); /* it is under way */
    errand_t *errand = errand_new (TASKMQ__REQUEST__OP_RELOAD);
    for (size_t i = 0; i < ACCESS_RUNNERS; i++)
        if (runners[i].op == errand->op)
            runners[i].run (runners[i].context, errand);
    errand_free (errand);
    assert_true (access_file_take (file, &policy));
    assert_non_null (policy_by_name (policy, "ci"));
    policy_drop (policy);
    assert_false (access_file_take (file, &policy));
    assert_false (access_file_changed (file));
    expect_ok (trust ("render-7", 20, "worker(default)"));
    assert_false (access_file_changed (file)); /* our own writing is no news */
    assert_false (access_file_changed (file));
    assert_true (access_file_take (file, &policy));
    policy_drop (policy);
}

/* Lists come in pages; the file comes as it is. */
static void lists_are_whole (void **state)
{
    (void) state;
    enum { MANY = 700 };
    char *text = malloc (200 * MANY);
    size_t length = (size_t) sprintf (text, "me uid:7 operator\n");
    for (int i = 0; i < MANY; i++)
        length += (size_t) sprintf (text + length, "name-%d uid:%d,addr:10.0.%d.%d worker(n%d/q)\n",
                                    i, 1000 + i, i / 256, i % 256, i);
    write_file (text, length);
    expect_ok (reload ());
    Taskmq__KeyList list = TASKMQ__KEY_LIST__INIT;
    size_t seen = 0, pages = 0;
    do {
        asked_t asked = ask ("uid:7", TASKMQ__REQUEST__OP_KEY_LIST, &list);
        assert_int_equal (asked.code, TMQ_OK);
        const Taskmq__KeyPage *page = (Taskmq__KeyPage *) (void *) asked.body;
        assert_int_equal (page->principals[0]->line, list.offset + 1);
        seen += page->n_principals;
        list.offset = page->next;
        pages++;
        done (&asked);
    } while (list.offset != 0);
    assert_int_equal (seen, MANY + 1);
    assert_true (pages > 1);
    Taskmq__AccessRead read = TASKMQ__ACCESS_READ__INIT;
    size_t bytes = 0;
    do {
        asked_t asked = ask ("uid:7", TASKMQ__REQUEST__OP_ACCESS_READ, &read);
        assert_int_equal (asked.code, TMQ_OK);
        const Taskmq__AccessText *part = (Taskmq__AccessText *) (void *) asked.body;
        assert_memory_equal (part->text.data, text + bytes, part->text.len);
        bytes += part->text.len;
        read.offset = part->next;
        done (&asked);
    } while (read.offset != 0);
    assert_int_equal (bytes, length);
    free (text);
    const char *identity = invite (9, "render-7", 0);
    expect_ok (enroll (identity, 20, ""));
    Taskmq__InviteList invitations = TASKMQ__INVITE_LIST__INIT;
    asked_t asked = ask ("uid:7", TASKMQ__REQUEST__OP_INVITE_LIST, &invitations);
    const Taskmq__InvitePage *page = (Taskmq__InvitePage *) (void *) asked.body;
    assert_int_equal (page->n_invitations, 1);
    assert_string_equal (page->invitations[0]->used_by, "10.0.0.9");
    assert_int_equal (page->invitations[0]->used_at, clock_ms);
    assert_int_equal (page->invitations[0]->uses, 0);
    assert_string_equal (page->invitations[0]->name, "render-7");
    done (&asked);
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, setup, teardown)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (the_first_invitation_makes_the_file),
        TEST (an_invitation_is_used_once),
        TEST (an_invitation_ends),
        TEST (an_invitation_for_many_names_each),
        TEST (nobody_joins_with_the_tasks_of_another),
        TEST (who_is_no_operator_any_more_changes_nothing),
        TEST (who_is_no_operator_any_more_asks_for_nothing),
        TEST (who_came_by_a_revoked_key_changes_nothing),
        TEST (a_key_stands_for_one),
        TEST (a_key_is_replaced_without_a_gap),
        TEST (keys_of_ones_own_have_a_rate),
        TEST (who_has_no_key_enrolls_none),
        TEST (revoking_takes_one_key_or_all),
        TEST (a_name_with_tasks_is_not_given_away),
        TEST (a_lock_that_others_hold_is_not_waited_for_without_end),
        TEST (comments_and_order_stay),
        TEST (a_bad_file_changes_nothing),
        TEST (a_start_takes_a_file_that_lists_nobody),
        TEST (a_file_of_others_is_refused),
        TEST (a_large_group_is_read),
        TEST (a_bad_file_is_named_at_the_start),
        TEST (an_edit_is_noticed),
        TEST (lists_are_whole),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
