/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Keys and profiles of the library, against a peer that speaks CURVE. */
#include "curve_peer.h"

#include "support/cmocka_all.h"
#include "support/timing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "key_file.h"
#include "profile.h"
#include "taskmq.h"

/* The keys of the client under test, and a home of its own. */
static char home[] = "/tmp/tmq-home-XXXXXX";
static key_public_t own, stranger;
static key_secret_t own_secret, stranger_secret;
static char own_text[KEY_TEXT_SIZE], own_public[KEY_TEXT_SIZE];

static const char *in_home (const char *below)
{
    static char path[PATH_MAX];
    snprintf (path, sizeof path, "%s/taskmq/%s", home, below);
    return path;
}

static void put_profile (const char *name, const char *text)
{
    char reason[PROFILE_ERROR_SIZE], below[80];
    snprintf (below, sizeof below, "profiles/%s.conf", name);
    assert_int_equal (profile_make_directory (in_home (below), reason), 0);
    assert_int_equal (secret_file_write (in_home (below), text, strlen (text), true, reason), 0);
}

static tmq_client_options_t options_with (const char *endpoint, const curve_peer_t *peer)
{
    static char server[KEY_TEXT_SIZE];
    tmq_client_options_t options;
    tmq_client_options_init (&options);
    options.fail_fast = true;
    options.key = own_text;
    assert_int_equal (tmq_client_options_set (&options, "endpoint", endpoint, NULL), TMQ_OK);
    if (peer != NULL) {
        key_text_public (server, &peer->key);
        options.server_key = server;
    }
    return options;
}

static tmq_client_t *open_client (tmq_client_options_t *options)
{
    tmq_client_t *client = NULL;
    tmq_error_t error;
    if (tmq_client_new (&client, options, &error) != TMQ_OK)
        fail_msg ("%s", error.text);
    tmq_client_options_clear (options);
    return client;
}

static void assert_says (const char *text, const char *part)
{
    if (strstr (text, part) == NULL)
        fail_msg ("'%s' does not say '%s'", text, part);
}

static void assert_refused (tmq_client_options_t *options, int code, const char *part)
{
    tmq_client_t *client = NULL;
    tmq_error_t error;
    assert_int_equal (tmq_client_new (&client, options, &error), code);
    assert_says (error.text, part);
    tmq_client_options_clear (options);
}

/* Welcome. */

static void a_known_key_is_welcomed (void **state)
{
    (void) state;
    curve_peer_t peer = {.key_until = 1800000000000};
    char server[KEY_TEXT_SIZE], wanted[256];
    tmq_whoami_t who = {.size = sizeof who};
    curve_peer_start (&peer, &own, NULL);
    tmq_client_options_t options = options_with (peer.endpoint, &peer);
    tmq_client_t *client = open_client (&options);
    assert_int_equal (tmq_client_connect (client, TIMING_PATIENCE_MS, NULL), TMQ_OK);
    assert_int_equal (tmq_ping (client, TIMING_PATIENCE_MS, NULL), TMQ_OK);
    assert_int_equal (tmq_client_whoami (&who, client), TMQ_OK);
    key_text_public (server, &peer.key);
    assert_string_equal (who.identity, "render-7");
    assert_string_equal (who.principal, "render-7");
    assert_string_equal (who.roles, "worker(default/render*)");
    assert_string_equal (who.ns, "default");
    assert_string_equal (who.key, own_public);
    assert_string_equal (who.server_key, server);
    snprintf (wanted, sizeof wanted, "%s?server_key=%s", peer.endpoint, server);
    assert_string_equal (who.endpoint, wanted);
    assert_string_equal (who.key_file, "");
    assert_string_equal (who.told_by, "the caller");
    assert_true (who.key_until == 1800000000000);
    tmq_client_free (&client);
    curve_peer_stop (&peer);
}

static void an_endpoint_may_carry_the_key (void **state)
{
    (void) state;
    curve_peer_t peer = {0};
    char endpoint[256], server[KEY_TEXT_SIZE];
    curve_peer_start (&peer, &own, NULL);
    key_text_public (server, &peer.key);
    snprintf (endpoint, sizeof endpoint, "%s?server_key=%s", peer.endpoint, server);
    tmq_client_options_t options = options_with (endpoint, NULL);
    tmq_client_t *client = open_client (&options);
    assert_int_equal (tmq_client_connect (client, TIMING_PATIENCE_MS, NULL), TMQ_OK);
    tmq_client_free (&client);
    endpoint[strlen (endpoint) - 3] ^= 1;
    tmq_error_t error;
    assert_int_equal (tmq_client_open (&client, endpoint, &error), TMQ_INVALID);
    assert_says (error.text, "server_key: a public key with a typo");
    curve_peer_stop (&peer);
}

static void the_environment_has_keys (void **state)
{
    (void) state;
    curve_peer_t peer = {0};
    char server[KEY_TEXT_SIZE];
    curve_peer_start (&peer, &own, NULL);
    key_text_public (server, &peer.key);
    setenv ("TASKMQ_SERVER_KEY", server, 1);
    setenv ("TASKMQ_KEY", own_text, 1);
    tmq_client_t *client = NULL;
    assert_int_equal (tmq_client_open (&client, peer.endpoint, NULL), TMQ_OK);
    assert_int_equal (tmq_client_connect (client, TIMING_PATIENCE_MS, NULL), TMQ_OK);
    tmq_client_free (&client);
    unsetenv ("TASKMQ_SERVER_KEY");
    unsetenv ("TASKMQ_KEY");
    curve_peer_stop (&peer);
}

/* Refusals. */

static void an_unknown_key_is_refused_for_good (void **state)
{
    (void) state;
    curve_peer_t peer = {0};
    tmq_error_t error;
    char wanted[256];
    curve_peer_start (&peer, &stranger, NULL);
    tmq_client_options_t options = options_with (peer.endpoint, &peer);
    options.link = true;
    tmq_client_t *client = open_client (&options);
    assert_int_equal (tmq_client_connect (client, TIMING_PATIENCE_MS, &error),
                      TMQ_NOT_AUTHENTICATED);
    snprintf (wanted, sizeof wanted,
              "the broker does not accept the key %s: an operator lets it in by taskctl key trust",
              own_public);
    assert_says (error.text, wanted);
    assert_int_equal (tmq_ping (client, TMQ_FOREVER, &error), TMQ_NOT_AUTHENTICATED);
    tmq_completion_t *completion;
    size_t count;
    assert_int_equal (tmq_client_poll (&completion, 1, &count, client, TIMING_PATIENCE_MS), TMQ_OK);
    assert_int_equal (completion->op, TMQ_OP_LINK);
    assert_int_equal (completion->link, TMQ_LINK_REFUSED);
    assert_int_equal (completion->code, TMQ_NOT_AUTHENTICATED);
    assert_says (completion->error->text, wanted);
    tmq_completion_free (completion);
    tmq_client_free (&client);
    curve_peer_stop (&peer);
}

static void a_busy_door_is_tried_again (void **state)
{
    (void) state;
    curve_peer_t peer = {0};
    curve_peer_start (&peer, &own, NULL);
    curve_peer_answer (&peer, "300");
    tmq_client_options_t options = options_with (peer.endpoint, &peer);
    options.fail_fast = false;
    tmq_client_t *client = open_client (&options);
    WAIT_FOR (atomic_load (&peer.asked) >= 2, TIMING_PATIENCE_MS);
    assert_int_equal (tmq_client_connect (client, 0, NULL), TMQ_UNREACHABLE);
    curve_peer_answer (&peer, "");
    assert_int_equal (tmq_client_connect (client, TIMING_PATIENCE_MS, NULL), TMQ_OK);
    tmq_client_free (&client);
    curve_peer_stop (&peer);
}

/* fail_fast ends only when it is certain, which the third silence is. */
static void a_wrong_server_key_is_told (void **state)
{
    (void) state;
    curve_peer_t peer = {0}, other = {0};
    tmq_error_t error;
    curve_peer_start (&peer, &own, NULL);
    key_make (&other.key, &other.secret);
    tmq_client_options_t options = options_with (peer.endpoint, &other);
    tmq_client_t *client = open_client (&options);
    assert_int_equal (tmq_client_connect (client, TMQ_FOREVER, &error), TMQ_UNREACHABLE);
    assert_says (error.text, "closed during the handshake: server_key is not this broker's, or it "
                             "is turning newcomers away");
    assert_true (error.retriable);
    assert_int_equal (atomic_load (&peer.asked), 0);
    tmq_client_free (&client);
    curve_peer_stop (&peer);
}

static void mechanisms_that_differ_are_told (void **state)
{
    (void) state;
    curve_peer_t plain = {.plain = true}, peer = {0};
    tmq_error_t error;
    curve_peer_start (&plain, &own, NULL);
    curve_peer_start (&peer, &own, NULL);
    tmq_client_options_t options = options_with (plain.endpoint, &peer);
    tmq_client_t *client = open_client (&options);
    assert_int_equal (tmq_client_connect (client, TMQ_FOREVER, &error), TMQ_UNREACHABLE);
    assert_says (error.text, "the broker speaks without keys");
    tmq_client_free (&client);
    options = options_with (peer.endpoint, NULL);
    client = open_client (&options);
    assert_int_equal (tmq_client_connect (client, TMQ_FOREVER, &error), TMQ_UNREACHABLE);
    assert_says (error.text, "the broker wants a key");
    assert_says (error.hint, "taskctl join");
    tmq_client_free (&client);
    curve_peer_stop (&plain);
    curve_peer_stop (&peer);
}

static void another_machine_needs_the_brokers_key (void **state)
{
    (void) state;
    static const char *const far[] = {"tcp://192.0.2.1:5560", "tcp://broker.example:5560",
                                      "tcp://[2001:db8::1]:5560", "tcp://128.0.0.1:5560"};
    static const char *const near[] = {"tcp://127.0.0.2:1", "tcp://localhost:1", "tcp://[::1]:1",
                                       "tcp://192.0.2.1:5560?insecure"};
    char wanted[128];
    for (size_t i = 0; i < sizeof far / sizeof *far; i++) {
        tmq_client_options_t options = options_with (far[i], NULL);
        snprintf (wanted, sizeof wanted, "%s needs the broker's key: taskctl join, or server_key",
                  far[i]);
        assert_refused (&options, TMQ_NOT_AUTHENTICATED, wanted);
    }
    for (size_t i = 0; i < sizeof near / sizeof *near; i++) {
        tmq_client_options_t options = options_with (near[i], NULL);
        tmq_client_t *client = open_client (&options);
        tmq_client_free (&client);
    }
}

static void keys_that_cannot_be_used_are_named (void **state)
{
    (void) state;
    curve_peer_t other = {0};
    char reason[KEY_FILE_ERROR_SIZE], path[PATH_MAX];
    key_make (&other.key, &other.secret);
    tmq_client_options_t options = options_with ("tcp://192.0.2.1:5560", &other);
    options.key = NULL;
    assert_refused (&options, TMQ_NOT_AUTHENTICATED, "needs a key of yours");
    options = options_with ("tcp://192.0.2.1:5560", &other);
    options.key = own_public;
    assert_refused (&options, TMQ_INVALID, "key: a secret key is needed");
    options = options_with ("tcp://192.0.2.1:5560", &other);
    options.server_key = own_text;
    assert_refused (&options, TMQ_INVALID, "server_key: a public key is needed");
    snprintf (path, sizeof path, "%s", in_home ("a.key"));
    assert_int_equal (profile_make_directory (path, reason), 0);
    assert_int_equal (key_file_write (path, &own_secret, true, reason), 0);
    assert_int_equal (chmod (path, 0640), 0);
    options = options_with ("tcp://192.0.2.1:5560", &other);
    options.key = NULL;
    options.key_file = path;
    assert_refused (&options, TMQ_NOT_AUTHENTICATED,
                    "is readable by others (mode 0640): chmod 600");
    unlink (path);
}

/* Change of keys. */

/* A program that runs for long follows when its key file is written anew. */
static void a_new_key_in_the_file_is_used (void **state)
{
    (void) state;
    curve_peer_t peer = {0};
    char reason[KEY_FILE_ERROR_SIZE], path[PATH_MAX];
    snprintf (path, sizeof path, "%s", in_home ("a.key"));
    assert_int_equal (profile_make_directory (path, reason), 0);
    assert_int_equal (key_file_write (path, &own_secret, true, reason), 0);
    curve_peer_start (&peer, &own, NULL);
    tmq_client_options_t options = options_with (peer.endpoint, &peer);
    options.key = NULL;
    options.key_file = path;
    options.fail_fast = false;
    tmq_client_t *client = open_client (&options);
    assert_int_equal (tmq_client_connect (client, TIMING_PATIENCE_MS, NULL), TMQ_OK);
    char endpoint[64];
    strcpy (endpoint, peer.endpoint);
    assert_int_equal (key_file_write (path, &stranger_secret, true, reason), 0);
    curve_peer_stop (&peer);
    curve_peer_start (&peer, &stranger, endpoint);
    WAIT_FOR (atomic_load (&peer.welcomes) >= 2, TIMING_PATIENCE_MS);
    assert_int_equal (tmq_ping (client, TIMING_PATIENCE_MS, NULL), TMQ_OK);
    tmq_client_free (&client);
    curve_peer_stop (&peer);
    unlink (path);
}

static void put_peer_profile (const curve_peer_t *peer)
{
    char server[KEY_TEXT_SIZE], text[512];
    key_text_public (server, &peer->key);
    snprintf (text, sizeof text, "# the render farm\nendpoint = %s\nserver_key = %s\nkey = %s\n",
              peer->endpoint, server, own_text);
    put_profile ("farm", text);
}

static bool profile_says (const char *key, const key_public_t *value)
{
    char reason[PROFILE_ERROR_SIZE], text[KEY_TEXT_SIZE];
    static profile_t profile;
    if (profile_read (&profile, in_home ("profiles/farm.conf"), reason) != 0)
        return false;
    const char *found = profile_value (&profile, key);
    if (value == NULL)
        return found == NULL;
    key_text_public (text, value);
    return found != NULL && strcmp (found, text) == 0;
}

/* The broker announces a key, restarts with it, and the client finds it: first one that runs, then
 * one that starts anew from the profile alone. */
static void the_brokers_next_key_is_followed (void **state)
{
    (void) state;
    curve_peer_t peer = {.announces = true}, next = {0};
    char endpoint[64];
    tmq_client_options_t options;
    key_make (&next.key, &next.secret);
    peer.announce = next.key;
    curve_peer_start (&peer, &own, NULL);
    strcpy (endpoint, peer.endpoint);
    put_peer_profile (&peer);
    tmq_client_options_init (&options);
    options.profile = "farm";
    tmq_client_t *client = open_client (&options);
    assert_int_equal (tmq_client_connect (client, TIMING_PATIENCE_MS, NULL), TMQ_OK);
    WAIT_FOR (profile_says ("next_server_key", &next.key), TIMING_PATIENCE_MS);
    assert_true (profile_says ("server_key", &peer.key));
    tmq_client_options_init (&options);
    options.profile = "farm";
    curve_peer_stop (&peer);
    curve_peer_start (&next, &own, endpoint);
    WAIT_FOR (atomic_load (&next.welcomes) >= 1, TIMING_PATIENCE_MS);
    WAIT_FOR (profile_says ("next_server_key", NULL), TIMING_PATIENCE_MS);
    assert_true (profile_says ("server_key", &next.key));
    tmq_client_free (&client);
    curve_peer_stop (&next);

    /* Who was away during the change: the profile knows both. */
    put_peer_profile (&peer);
    char text[KEY_TEXT_SIZE], reason[PROFILE_ERROR_SIZE];
    key_text_public (text, &next.key);
    assert_int_equal (profile_set (in_home ("profiles/farm.conf"), "next_server_key", text, reason),
                      0);
    curve_peer_start (&next, &own, endpoint);
    client = open_client (&options);
    assert_int_equal (tmq_client_connect (client, TIMING_PATIENCE_MS, NULL), TMQ_OK);
    WAIT_FOR (profile_says ("server_key", &next.key), TIMING_PATIENCE_MS);
    tmq_client_free (&client);
    curve_peer_stop (&next);
}

/* Profiles. */

static void a_profile_is_loaded (void **state)
{
    (void) state;
    tmq_client_options_t options;
    tmq_error_t error;
    char wanted[PATH_MAX];
    put_profile ("lab", "# of the lab\nendpoint = ipc:///nonexistent/lab\n  namespace=lab \n"
                        "key_file = lab.key\n\n");
    tmq_client_options_init (&options);
    assert_int_equal (tmq_client_options_load (&options, "lab", &error), TMQ_OK);
    assert_int_equal (options.endpoints_count, 1);
    assert_string_equal (options.endpoints[0], "ipc:///nonexistent/lab");
    assert_string_equal (options.ns, "lab");
    snprintf (wanted, sizeof wanted, "%s", in_home ("profiles/lab.key"));
    assert_string_equal (options.key_file, wanted);
    assert_string_equal (options.profile, in_home ("profiles/lab.conf"));
    tmq_client_options_clear (&options);
    assert_int_equal (tmq_client_options_load (&options, "elsewhere", &error), TMQ_NOT_FOUND);
    assert_int_equal (tmq_client_options_load (&options, "no name", &error), TMQ_INVALID);
    put_profile ("bad", "endpoint = ipc:///x\nendpont = ipc:///y\n");
    assert_int_equal (tmq_client_options_load (&options, "bad", &error), TMQ_INVALID);
    assert_says (error.text, "bad.conf:2: 'endpont' is not an option");
    tmq_client_options_clear (&options);
    put_profile ("bad", "endpoint\n");
    assert_int_equal (tmq_client_options_load (&options, "bad", &error), TMQ_INVALID);
    assert_says (error.text, "bad.conf:1: a line is 'key = value'");
    assert_int_equal (chmod (in_home ("profiles/lab.conf"), 0664), 0);
    assert_int_equal (tmq_client_options_load (&options, "lab", &error), TMQ_INVALID);
    assert_says (error.text, "may be written by others (mode 0664): chmod 600");
    put_profile ("bad", "key = nonsense\n");
    assert_int_equal (chmod (in_home ("profiles/bad.conf"), 0644), 0);
    assert_int_equal (tmq_client_options_load (&options, "bad", &error), TMQ_INVALID);
    assert_says (error.text, "holds a key and is readable by others");
}

/* Who says where: the caller, a named profile, the environment, the user's default. */
static void the_order_of_places (void **state)
{
    (void) state;
    tmq_client_options_t options;
    tmq_error_t error;
    char reason[PROFILE_ERROR_SIZE];
    put_profile ("one", "endpoint = ipc:///nonexistent/one\n");
    put_profile ("two", "endpoint = ipc:///nonexistent/two\n");
    assert_int_equal (profile_set (in_home ("profile"), "profile", "two", reason), 0);
    const struct {
        const char *endpoint, *profile, *env_endpoint, *env_profile, *wanted;
    } cases[] = {
        {"ipc:///nonexistent/a", "one", "ipc:///nonexistent/e", "two", "nonexistent/a:"},
        {NULL, "one", "ipc:///nonexistent/e", "two", "nonexistent/one:"},
        {NULL, NULL, "ipc:///nonexistent/e", "one", "nonexistent/e:"},
        {NULL, NULL, NULL, "one", "nonexistent/one:"},
        {NULL, NULL, NULL, NULL, "nonexistent/two:"},
    };
    assert_int_equal (chdir ("/"), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tmq_client_t *client;
        tmq_client_options_init (&options);
        options.fail_fast = true;
        options.endpoints = &cases[i].endpoint;
        options.endpoints_count = cases[i].endpoint != NULL;
        options.profile = cases[i].profile;
        unsetenv ("TASKMQ_ENDPOINT");
        unsetenv ("TASKMQ_PROFILE");
        if (cases[i].env_endpoint != NULL)
            setenv ("TASKMQ_ENDPOINT", cases[i].env_endpoint, 1);
        if (cases[i].env_profile != NULL)
            setenv ("TASKMQ_PROFILE", cases[i].env_profile, 1);
        assert_int_equal (tmq_client_new (&client, &options, &error), TMQ_OK);
        assert_int_equal (tmq_client_connect (client, TMQ_FOREVER, &error), TMQ_UNREACHABLE);
        assert_says (error.text, cases[i].wanted);
        tmq_client_free (&client);
    }
    unsetenv ("TASKMQ_ENDPOINT");
    unsetenv ("TASKMQ_PROFILE");
    unlink (in_home ("profile"));
}

/* Also where its path is longer than a hint: what to do is told whole. */
static void a_planted_directory_lies_deep (void **state)
{
    (void) state;
    tmq_client_options_t options;
    tmq_client_t *client;
    tmq_error_t error;
    char path[PATH_MAX];
    const int length = snprintf (path, sizeof path, "%s/%0200d", home, 0);
    assert_int_equal (mkdir (path, 0700), 0);
    assert_int_equal (chdir (path), 0);
    snprintf (path + length, sizeof path - (size_t) length, "/.taskmq");
    assert_int_equal (mkdir (path, 0700), 0);
    assert_int_equal (chmod (path, 0777), 0);
    tmq_client_options_init (&options);
    options.fail_fast = true;
    assert_int_equal (tmq_client_new (&client, &options, &error), TMQ_UNREACHABLE);
    assert_says (error.hint, "ignored ...0");
    assert_says (error.hint, "0/.taskmq: others may write in it; chmod go-w that directory");
    assert_int_equal (chdir ("/"), 0);
}

/* A .taskmq that somebody else may have planted is passed over, and named. */
static void a_planted_directory_is_ignored (void **state)
{
    (void) state;
    tmq_client_options_t options;
    tmq_client_t *client;
    tmq_error_t error;
    char path[PATH_MAX];
    snprintf (path, sizeof path, "%s/below/.taskmq", home);
    assert_int_equal (mkdir (in_home ("../below"), 0700), 0);
    assert_int_equal (mkdir (path, 0700), 0);
    assert_int_equal (chmod (path, 0777), 0);
    assert_int_equal (chdir (in_home ("../below")), 0);
    tmq_client_options_init (&options);
    options.fail_fast = true;
    assert_int_equal (tmq_client_new (&client, &options, &error), TMQ_UNREACHABLE);
    assert_says (error.hint, "below/.taskmq: others may write in it");
    if (geteuid () == 0) {
        assert_int_equal (chmod (path, 0700), 0);
        assert_int_equal (chown (path, 65534, 65534), 0);
        assert_int_equal (tmq_client_new (&client, &options, &error), TMQ_UNREACHABLE);
        assert_says (error.hint, "below/.taskmq: it belongs to uid 65534, not to you");
    }
    snprintf (path, sizeof path, "%s/.taskmq", home);
    assert_int_equal (mkdir (path, 0700), 0);
    assert_int_equal (tmq_client_new (&client, &options, &error), TMQ_OK);
    assert_int_equal (tmq_client_connect (client, TMQ_FOREVER, &error), TMQ_UNREACHABLE);
    assert_says (error.text, path);
    tmq_client_free (&client);
    assert_int_equal (chdir ("/"), 0);
}

static int set_up (void **state)
{
    (void) state;
    static const char *const names[] = {"TASKMQ_ENDPOINT", "TASKMQ_PROFILE", "TASKMQ_KEY",
                                        "TASKMQ_SERVER_KEY", "TASKMQ_KEY_FILE"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv (names[i]);
    key_make (&own, &own_secret);
    key_make (&stranger, &stranger_secret);
    key_text_secret (own_text, &own_secret);
    key_text_public (own_public, &own);
    return mkdtemp (home) != NULL && setenv ("XDG_CONFIG_HOME", home, 1) == 0 ? 0 : -1;
}

static int tear_down (void **state)
{
    (void) state;
    char command[64];
    snprintf (command, sizeof command, "rm -r '%s'", home);
    return system (command);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (a_known_key_is_welcomed),
        cmocka_unit_test (an_endpoint_may_carry_the_key),
        cmocka_unit_test (the_environment_has_keys),
        cmocka_unit_test (an_unknown_key_is_refused_for_good),
        cmocka_unit_test (a_busy_door_is_tried_again),
        cmocka_unit_test (a_wrong_server_key_is_told),
        cmocka_unit_test (mechanisms_that_differ_are_told),
        cmocka_unit_test (another_machine_needs_the_brokers_key),
        cmocka_unit_test (keys_that_cannot_be_used_are_named),
        cmocka_unit_test (a_new_key_in_the_file_is_used),
        cmocka_unit_test (the_brokers_next_key_is_followed),
        cmocka_unit_test (a_profile_is_loaded),
        cmocka_unit_test (the_order_of_places),
        cmocka_unit_test (a_planted_directory_lies_deep),
        cmocka_unit_test (a_planted_directory_is_ignored),
    };
    return cmocka_run_group_tests (tests, set_up, tear_down);
}
