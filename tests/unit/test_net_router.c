/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Addresses and the ROUTER itself, with raw DEALERs as peers. */
#include "support/cmocka_all.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <zmq.h>

#include "net/router.h"
#include "net/socket.h"
#include "net/unread.h"
#include "net/zap.h"
#include "support/timing.h"

enum { PATIENCE_MS = TIMING_PATIENCE_MS, BODY_BYTES = 65536, ERROR_SIZE = ADDRESS_PATH_SIZE };

static char home[64];
static void *context;
static zap_t *zap;

static bool make_handler (void)
{
    char error[ERROR_SIZE];
    zap_options_t options = {.context = context, .silent_ms = PATIENCE_MS};
    zap = zap_new (&options, error, sizeof (error));
    return zap != NULL;
}

static int make_home (void **state)
{
    (void) state;
    snprintf (home, sizeof (home), "/tmp/taskmq-test-XXXXXX");
    context = zmq_ctx_new ();
    return mkdtemp (home) != NULL && context != NULL && make_handler () ? 0 : -1;
}

static int remove_home (void **state)
{
    (void) state;
    char command[128];
    zap_free (&zap);
    zmq_ctx_term (context);
    snprintf (command, sizeof (command), "rm -r %s", home);
    return system (command) == 0 ? 0 : -1;
}

static void assert_no_address (const char *uri, const char *reason)
{
    address_t address;
    char error[ERROR_SIZE] = "";
    assert_false (address_parse (&address, uri, error, sizeof (error)));
    if (strstr (error, reason) == NULL)
        fail_msg ("%s gave: %s", uri, error);
}

static void assert_domain (const char *uri, const char *wanted_uri, const char *domain)
{
    address_t address;
    char error[ERROR_SIZE] = "";
    if (!address_parse (&address, uri, error, sizeof (error)))
        fail_msg ("%s: %s", uri, error);
    assert_string_equal (address.uri, wanted_uri);
    assert_string_equal (address_domain (&address), domain);
    assert_int_equal (address.curve, strcmp (domain, "curve") == 0);
}

/* Without a key comes in who is on this machine, and nobody else. */
static void test_addresses_say_who_needs_a_key (void **state)
{
    (void) state;
    assert_domain ("tcp://127.0.0.1:7070", "tcp://127.0.0.1:7070", "loopback");
    assert_domain ("tcp://127.1.2.3:0", "tcp://127.1.2.3:0", "loopback");
    assert_domain ("tcp://localhost:1", "tcp://127.0.0.1:1", "loopback");
    assert_domain ("tcp://[::1]:65535", "tcp://[::1]:65535", "loopback");
    assert_domain ("tcp://127.0.0.1:1?curve", "tcp://127.0.0.1:1", "curve");
    assert_domain ("tcp://[::1]:1?curve", "tcp://[::1]:1", "curve");
    assert_domain ("tcp://0.0.0.0:7070", "tcp://0.0.0.0:7070", "curve");
    assert_domain ("tcp://*:7070", "tcp://0.0.0.0:7070", "curve");
    assert_domain ("tcp://[::]:7070", "tcp://[::]:7070", "curve");
    assert_domain ("tcp://192.168.1.1:7070?curve", "tcp://192.168.1.1:7070", "curve");
    assert_domain ("tcp://[::ffff:127.0.0.1]:1", "tcp://[::ffff:127.0.0.1]:1", "curve");
    assert_domain ("ipc:///tmp/x", "ipc:///tmp/x", "ipc");
    assert_no_address ("tcp://example.org:7070", "not a name");
    assert_no_address ("tcp://127.0.0.1", "tcp://HOST:PORT");
    assert_no_address ("tcp://127.0.0.1:", "tcp://HOST:PORT");
    assert_no_address ("tcp://127.0.0.1:65536", "tcp://HOST:PORT");
    assert_no_address ("tcp://127.0.0.1:7 7", "tcp://HOST:PORT");
    assert_no_address ("tcp://127.0.0.1:1?plain", "only ?curve");
    assert_no_address ("tcp://127.0.0.1:1?curve&x", "only ?curve");
    assert_no_address ("tcp://127.0.0.1:?curve", "tcp://HOST:PORT");
    assert_no_address ("udp://127.0.0.1:7070", "ipc://PATH or tcp://");
    assert_no_address ("", "ipc://PATH or tcp://");
    assert_no_address ("ipc://", "path of a socket");
    assert_no_address ("ipc:///tmp/", "path of a socket");
    assert_no_address ("ipc://@hidden", "abstract");
}

static void test_addresses_without_keys_are_asked_for (void **state)
{
    (void) state;
    address_t address;
    char error[ERROR_SIZE];
    char text[ERROR_SIZE];
    assert_true (address_parse_plain (&address, "tcp://10.0.0.5:1", error, sizeof (error)));
    assert_string_equal (address_domain (&address), "plain");
    assert_false (address.curve);
    assert_true (address_parse_plain (&address, "tcp://*:1", error, sizeof (error)));
    assert_true (address.any);
    assert_false (address_parse_plain (&address, "tcp://*:1?curve", error, sizeof (error)));
    assert_false (address_parse_plain (&address, "ipc:///tmp/x", error, sizeof (error)));

    assert_true (address_is_network ("10.0.0.0/8"));
    assert_true (address_is_network ("10.0.0.7"));
    assert_true (address_is_network ("fd00::/64"));
    assert_false (address_is_network ("10.0.0.0/33"));
    assert_false (address_is_network ("10.0.0.0/"));
    assert_false (address_is_network ("10.0.0.0/8x"));
    assert_false (address_is_network ("office"));
    address_reach ("tcp://0.0.0.0:7", text, sizeof (text));
    assert_string_equal (text, "tcp://127.0.0.1:7");
    address_reach ("tcp://[::]:7", text, sizeof (text));
    assert_string_equal (text, "tcp://[::1]:7");
    address_reach ("tcp://10.0.0.5:7", text, sizeof (text));
    assert_string_equal (text, "tcp://10.0.0.5:7");
    assert_true (address_parse (&address, "tcp://[fd00::5]:7", error, sizeof (error)));
    address_host (&address, text, sizeof (text));
    assert_string_equal (text, "fd00::5");
    assert_true (address_parse (&address, "tcp://10.0.0.5:7", error, sizeof (error)));
    address_host (&address, text, sizeof (text));
    assert_string_equal (text, "10.0.0.5");
}

static void test_relative_ipc_paths_become_absolute (void **state)
{
    (void) state;
    address_t address;
    char error[ERROR_SIZE];
    char wanted[128];
    assert_int_equal (chdir (home), 0);
    assert_true (address_parse (&address, "ipc://here.ipc", error, sizeof (error)));
    snprintf (wanted, sizeof (wanted), "ipc://%s/here.ipc", home);
    assert_string_equal (address.uri, wanted);
    assert_false (address.moved);
}

static void test_a_long_ipc_path_moves_to_a_private_directory (void **state)
{
    (void) state;
    address_t address;
    address_t again;
    char error[ERROR_SIZE];
    char uri[256];
    struct stat info;
    char directory[96];
    snprintf (uri, sizeof (uri), "ipc:///tmp/%0150d/taskmqd.ipc", 0);
    setenv ("XDG_RUNTIME_DIR", home, 1);
    assert_true (address_parse (&address, uri, error, sizeof (error)));
    assert_true (address.moved);
    snprintf (directory, sizeof (directory), "%s/taskmq", home);
    assert_memory_equal (address.uri + strlen ("ipc://"), directory, strlen (directory));
    assert_true (strlen (address.uri) - strlen ("ipc://") <= ADDRESS_IPC_PATH_MAX);
    assert_int_equal (stat (directory, &info), 0);
    assert_int_equal (info.st_mode & 0777, 0700);
    assert_true (address_parse (&again, uri, error, sizeof (error)));
    assert_string_equal (again.uri, address.uri);
    /* Open to others: somebody could have put a socket there. */
    assert_int_equal (chmod (directory, 0755), 0);
    assert_no_address (uri, "this user alone");
    assert_int_equal (chmod (directory, 0700), 0);

    unsetenv ("XDG_RUNTIME_DIR");
    setenv ("TMPDIR", home, 1);
    assert_true (address_parse (&address, uri, error, sizeof (error)));
    snprintf (directory, sizeof (directory), "%s/taskmq-%u/", home, (unsigned) geteuid ());
    assert_memory_equal (address.uri + strlen ("ipc://"), directory, strlen (directory));
    unsetenv ("TMPDIR");
}

static void test_an_ipc_path_is_taken_only_when_it_is_free (void **state)
{
    (void) state;
    char error[ERROR_SIZE] = "";
    char path[96];
    snprintf (path, sizeof (path), "%s/a-file", home);
    int fd = open (path, O_CREAT | O_WRONLY, 0600);
    assert_true (fd >= 0);
    close (fd);
    assert_int_equal (address_lock_ipc (path, error, sizeof (error)), -1);
    assert_non_null (strstr (error, "not a socket"));
    assert_int_equal (access (path, F_OK), 0);

    struct sockaddr_un name = {.sun_family = AF_UNIX};
    snprintf (name.sun_path, sizeof (name.sun_path), "%s/a-socket", home);
    int listener = socket (AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal (bind (listener, (struct sockaddr *) &name, sizeof (name)), 0);
    assert_int_equal (listen (listener, 1), 0);
    assert_int_equal (address_lock_ipc (name.sun_path, error, sizeof (error)), -1);
    assert_non_null (strstr (error, "another program listens"));
    close (listener);
    /* What a crash left behind is no obstacle; a second owner is. */
    int lock = address_lock_ipc (name.sun_path, error, sizeof (error));
    assert_true (lock >= 0);
    assert_int_equal (address_lock_ipc (name.sun_path, error, sizeof (error)), -1);
    assert_non_null (strstr (error, "another broker listens"));
    close (lock);
}

/* The router under test, listening on ipc and on a free port. */
typedef struct fixture {
    router_t *router;
    const char *ipc;
    const char *tcp;
} fixture_t;

static const char *listen_on (router_t *router, const char *uri)
{
    address_t address;
    listen_error_t error = {false, ""};
    const char *endpoint = NULL;
    if (address_parse (&address, uri, error.text, sizeof (error.text)))
        endpoint = router_bind (router, &address, &error);
    if (endpoint == NULL)
        fail_msg ("%s: %s", uri, error.text);
    return endpoint;
}

/* unread_max: 0 for the default. */
static void fixture_open_with (fixture_t *self, size_t unread_max)
{
    char uri[96];
    char error[ERROR_SIZE] = "";
    router_options_t options = {.context = context,
                                .peers_max = 100,
                                .held_max = 8,
                                .zap = zap,
                                .unread_bytes_max = unread_max};
    self->router = router_new (&options, error, sizeof (error));
    assert_non_null (self->router);
    snprintf (uri, sizeof (uri), "ipc://%s/router.ipc", home);
    self->ipc = listen_on (self->router, uri);
    self->tcp = listen_on (self->router, "tcp://127.0.0.1:0");
}

static void fixture_open (fixture_t *self)
{
    fixture_open_with (self, 0);
}

static void *dealer_open (const char *endpoint)
{
    void *dealer = zmq_socket (context, ZMQ_DEALER);
    int none = 0;
    int patience = PATIENCE_MS;
    assert_non_null (dealer);
    zmq_setsockopt (dealer, ZMQ_LINGER, &none, sizeof (none));
    zmq_setsockopt (dealer, ZMQ_RCVTIMEO, &patience, sizeof (patience));
    assert_int_equal (zmq_connect (dealer, endpoint), 0);
    return dealer;
}

/* Waits for the next message as the server does: descriptor first, then the socket again. */
static void receive (router_t *router, incoming_t *out)
{
    struct pollfd fd = {router_fd (router), POLLIN, 0};
    for (int left = PATIENCE_MS; !router_receive (router, 1, out); left -= 10) {
        if (left <= 0)
            fail_msg ("no message came");
        if (zap != NULL)
            zap_answer (zap, (now_t){1, 1});
        poll (&fd, 1, 10);
    }
}

static void send_text (void *dealer, const char *text)
{
    assert_int_equal (zmq_send (dealer, text, strlen (text), 0), strlen (text));
}

/* Nobody comes in while nobody is asked, at a door with a domain and enforcement; who is in stays,
 * and newcomers try again by themselves. */
static void test_a_handler_that_ends_shuts_the_door (void **state)
{
    (void) state;
    fixture_t fixture;
    incoming_t incoming;
    uint16_t event = 0;
    uint32_t value;
    char error[ERROR_SIZE];
    router_options_t options = {.context = context, .peers_max = 100, .held_max = 8};
    fixture.router = router_new (&options, error, sizeof (error));
    assert_non_null (fixture.router);
    fixture.tcp = listen_on (fixture.router, "tcp://127.0.0.1:0");
    void *old = dealer_open (fixture.tcp);
    send_text (old, "before");
    receive (fixture.router, &incoming);
    router_release (fixture.router);

    zap_free (&zap);
    void *newcomer = zmq_socket (context, ZMQ_DEALER);
    int none = 0;
    zmq_setsockopt (newcomer, ZMQ_LINGER, &none, sizeof (none));
    void *monitor = handshakes_open (context, newcomer);
    assert_int_equal (zmq_connect (newcomer, fixture.tcp), 0);
    WAIT_FOR (monitor_receive (monitor, &event, &value), PATIENCE_MS);
    assert_int_not_equal (event, ZMQ_EVENT_HANDSHAKE_SUCCEEDED);
    send_text (old, "meanwhile");
    receive (fixture.router, &incoming);
    assert_memory_equal (incoming.envelope, "meanwhile", 9);
    router_release (fixture.router);

    assert_true (make_handler ());
    send_text (newcomer, "after");
    receive (fixture.router, &incoming);
    assert_memory_equal (incoming.envelope, "after", 5);
    router_release (fixture.router);
    zmq_socket_monitor (newcomer, NULL, 0);
    zmq_close (monitor);
    zmq_close (newcomer);
    zmq_close (old);
    router_free (&fixture.router);
}

static int connect_to (const char *endpoint)
{
    uint16_t port = (uint16_t) atoi (strrchr (endpoint, ':') + 1);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons (port),
                                  .sin_addr.s_addr = htonl (INADDR_LOOPBACK)};
    int fd = socket (AF_INET, SOCK_STREAM, 0);
    assert_int_equal (connect (fd, (const struct sockaddr *) &address, sizeof (address)), 0);
    return fd;
}

/* A connection that says nothing, to a router whose handshakes may take so long. */
static int connect_in_silence (router_t **router, int handshake_ms)
{
    char error[ERROR_SIZE];
    router_options_t options = {.context = context,
                                .peers_max = 100,
                                .held_max = 8,
                                .guard = {.handshake_ms = handshake_ms}};
    *router = router_new (&options, error, sizeof (error));
    assert_non_null (*router);
    return connect_to (listen_on (*router, "tcp://127.0.0.1:0"));
}

static void test_a_handshake_has_its_time (void **state)
{
    (void) state;
    router_t *patient;
    router_t *hasty;
    uint8_t greeting[64];
    int kept = connect_in_silence (&patient, 600 * 1000);
    int cut = connect_in_silence (&hasty, 100);
    ssize_t length;
    while ((length = read (cut, greeting, sizeof (greeting))) > 0)
        ;
    assert_true (length == 0 || errno == ECONNRESET);
    do {
        length = recv (kept, greeting, sizeof (greeting), MSG_DONTWAIT);
    } while (length > 0);
    assert_true (length < 0 && (errno == EAGAIN || errno == EWOULDBLOCK));
    close (kept);
    close (cut);
    router_free (&hasty);
    router_free (&patient);
}

/* The key changes: the listener closes in ZeroMQ's own time, and nobody waits for that. */
static void test_nobody_waits_for_a_listener_to_close (void **state)
{
    (void) state;
    key_public_t public_key;
    key_secret_t secret;
    listen_error_t error = {false, ""};
    key_make (&public_key, &secret);
    router_options_t options = {
        .context = context, .peers_max = 100, .held_max = 8, .guard = {.server_key = &secret}};
    router_t *router = router_new (&options, error.text, sizeof (error.text));
    assert_non_null (router);
    const char *endpoint = listen_on (router, "tcp://127.0.0.1:0?curve");
    assert_false (router_is_closing (router));
    router_outdate (router);
    assert_true (router_renew (router, 1, &error));
    assert_true (router_is_closing (router)); /* that it has closed is told by router_watch only */
    WAIT_FOR (router_watch (router, 1) && router_renew (router, 1, &error) &&
                  !router_is_closing (router),
              PATIENCE_MS);
    close (connect_to (endpoint));
    router_free (&router);
}

/* With one thread of ZeroMQ there is nothing to choose. */
static void test_who_speaks_without_keys_has_a_thread (void **state)
{
    (void) state;
    assert_int_equal (listen_threads (1, false), 0);
    assert_int_equal (listen_threads (1, true), 0);
    assert_int_equal (listen_threads (2, false), 1);
    assert_int_equal (listen_threads (2, true), 2);
    assert_int_equal (listen_threads (4, false), 1);
    assert_int_equal (listen_threads (4, true), 14);
}

/* ZeroMQ numbers its peers from rand () on. Who can tell the next number takes it as a routing id,
 * and the peer that should get it ends the process. */
static void test_nobody_can_tell_the_next_peers_number (void **state)
{
    (void) state;
    enum { NUMBERS = 100 };
    int numbers[NUMBERS];
    fixture_t fixture;
    srand (1);
    for (int i = 0; i < NUMBERS; i++)
        numbers[i] = rand ();
    srand (1);
    fixture_open (&fixture);
    int next = rand ();
    for (int i = 0; i < NUMBERS; i++)
        assert_int_not_equal (next, numbers[i]);
    router_free (&fixture.router);
}

static void test_messages_come_in_with_their_senders (void **state)
{
    (void) state;
    fixture_t fixture;
    incoming_t first;
    incoming_t second;
    char identity[32];
    fixture_open (&fixture);
    assert_memory_equal (fixture.tcp, "tcp://127.0.0.1:", strlen ("tcp://127.0.0.1:"));
    assert_true (atoi (fixture.tcp + strlen ("tcp://127.0.0.1:")) > 0);

    void *local = dealer_open (fixture.ipc);
    zmq_send (local, "envelope", 8, ZMQ_SNDMORE);
    zmq_send (local, "body!", 5, 0);
    receive (fixture.router, &first);
    snprintf (identity, sizeof (identity), "uid:%u", (unsigned) getuid ());
    assert_string_equal (first.identity, identity);
    assert_int_equal (first.frames, 2);

    void *remote = dealer_open (fixture.tcp);
    send_text (remote, "alone");
    receive (fixture.router, &second);
    assert_string_equal (second.identity, "local");
    assert_int_equal (second.frames, 1);
    assert_null (second.body);
    assert_true (second.peer != first.peer);
    /* The first one is still whole. */
    assert_memory_equal (first.envelope, "envelope", 8);
    assert_memory_equal (first.body, "body!", 5);
    router_release (fixture.router);

    zmq_close (local);
    zmq_close (remote);
    router_free (&fixture.router);
}

static void test_any_number_of_frames_is_read_to_its_end (void **state)
{
    (void) state;
    fixture_t fixture;
    incoming_t incoming;
    fixture_open (&fixture);
    void *dealer = dealer_open (fixture.ipc);
    static const int counts[] = {1, 3, 100, 2};
    for (size_t i = 0; i < sizeof (counts) / sizeof (counts[0]); i++) {
        for (int frame = 1; frame <= counts[i]; frame++)
            zmq_send (dealer, "", 0, frame < counts[i] ? ZMQ_SNDMORE : 0);
        receive (fixture.router, &incoming);
        assert_int_equal (incoming.frames, counts[i]);
        assert_int_equal (incoming.envelope_bytes, 0);
        router_release (fixture.router);
    }
    zmq_close (dealer);
    router_free (&fixture.router);
}

static void test_only_so_many_messages_are_held (void **state)
{
    (void) state;
    fixture_t fixture;
    incoming_t incoming;
    fixture_open (&fixture);
    void *dealer = dealer_open (fixture.ipc);
    for (int i = 0; i < 9; i++)
        send_text (dealer, "x");
    for (int i = 0; i < 8; i++)
        receive (fixture.router, &incoming);
    assert_false (router_receive (fixture.router, 1, &incoming));
    router_release (fixture.router);
    receive (fixture.router, &incoming);
    zmq_close (dealer);
    router_free (&fixture.router);
}

static void test_a_frame_too_large_ends_the_connection_only (void **state)
{
    (void) state;
    fixture_t fixture;
    incoming_t incoming;
    fixture_open (&fixture);
    void *greedy = dealer_open (fixture.ipc);
    void *other = dealer_open (fixture.ipc);
    static char large[TMQ_FRAME_BYTES_MAX + 1024];
    zmq_send (greedy, large, sizeof (large), 0);
    send_text (other, "fine");
    receive (fixture.router, &incoming);
    assert_memory_equal (incoming.envelope, "fine", 4);
    assert_int_equal (incoming.envelope_bytes, 4);
    zmq_close (greedy);
    zmq_close (other);
    router_free (&fixture.router);
}

static void test_outputs_reach_their_peer (void **state)
{
    (void) state;
    fixture_t fixture;
    incoming_t incoming;
    router_stats_t stats;
    char bytes[4096];
    fixture_open (&fixture);
    void *dealer = dealer_open (fixture.ipc);
    send_text (dealer, "hello");
    receive (fixture.router, &incoming);
    static const size_t sizes[] = {0, 100, 4096}; /* copied, and handed over without a copy */
    for (size_t i = 0; i < sizeof (sizes) / sizeof (sizes[0]); i++) {
        memset (bytes, 'a' + (int) i, sizeof (bytes));
        output_t output = {incoming.peer, (const uint8_t *) "answer", 6, buf_new (bytes, sizes[i]),
                           0};
        assert_true (router_send (fixture.router, &output));
        buf_drop (output.body);
        assert_int_equal (zmq_recv (dealer, bytes, sizeof (bytes), 0), 6);
        assert_memory_equal (bytes, "answer", 6);
        assert_int_equal (zmq_recv (dealer, bytes, sizeof (bytes), 0), sizes[i]);
        for (size_t at = 0; at < sizes[i]; at++)
            assert_int_equal (bytes[at], 'a' + (int) i);
    }
    output_t alone = {incoming.peer, (const uint8_t *) "alone", 5, NULL, 0};
    assert_true (router_send (fixture.router, &alone));
    assert_int_equal (zmq_recv (dealer, bytes, sizeof (bytes), 0), 5);
    output_t nobody = {incoming.peer + (1u << 16), (const uint8_t *) "x", 1, NULL, 0};
    assert_false (router_send (fixture.router, &nobody));
    router_stats (fixture.router, &stats);
    assert_int_equal (stats.sent, 4);
    assert_int_equal (stats.send_failed, 1);
    assert_int_equal (stats.peers, 1);
    zmq_close (dealer);
    router_free (&fixture.router);
}

/* What a peer has not taken is freed when the socket is looked at after the peer's end. */
static uint64_t unread (router_t *router)
{
    incoming_t incoming;
    router_stats_t stats;
    assert_false (router_receive (router, 1, &incoming));
    router_stats (router, &stats);
    return stats.unread_bytes;
}

static void give_until_refused (size_t unread_max)
{
    fixture_t fixture;
    incoming_t incoming;
    fixture_open_with (&fixture, unread_max);
    size_t most = unread_max > 0 ? unread_max : UNREAD_BYTES;
    void *dealer = zmq_socket (context, ZMQ_DEALER);
    int one = 1;
    int none = 0;
    router_stats_t stats;
    zmq_setsockopt (dealer, ZMQ_RCVHWM, &one, sizeof (one));
    zmq_setsockopt (dealer, ZMQ_LINGER, &none, sizeof (none));
    assert_int_equal (zmq_connect (dealer, fixture.ipc), 0);
    send_text (dealer, "hello");
    receive (fixture.router, &incoming);
    buf_t *body = buf_new_uninitialised (BODY_BYTES);
    memset (buf_mutable (body), 0, BODY_BYTES);
    output_t output = {incoming.peer, (const uint8_t *) "event", 5, body, 0};
    int sent = 0;
    while (sent < 10000 && router_send (fixture.router, &output))
        sent++;
    /* Counted in bytes; what the system's buffers take has left. */
    assert_in_range (sent, most / BODY_BYTES, (most + UNREAD_BYTES) / BODY_BYTES);
    router_stats (fixture.router, &stats);
    assert_int_equal (stats.unread_full, 1);
    /* The system may have taken some more since. */
    assert_in_range (stats.unread_bytes, most / 2, most + BODY_BYTES);
    buf_drop (body);
    zmq_close (dealer);
    WAIT_FOR (unread (fixture.router) == 0, PATIENCE_MS);
    router_free (&fixture.router);
}

static void test_a_peer_that_takes_nothing_is_refused (void **state)
{
    (void) state;
    give_until_refused (0);
    give_until_refused (64 * (size_t) BODY_BYTES);
}

/* As the server does: it reads what the descriptor announces, nothing else. */
static peer_t wait_gone (router_t *router)
{
    struct pollfd fd = {router_watch_fd (router), POLLIN, 0};
    peer_t peer = 0;
    while (peer == 0 && poll (&fd, 1, PATIENCE_MS) == 1) {
        router_watch (router, 1);
        peer = router_gone_next (router, INT64_MAX);
    }
    return peer;
}

static void test_the_end_of_a_connection_is_noticed (void **state)
{
    (void) state;
    fixture_t fixture;
    incoming_t stays;
    incoming_t leaves;
    fixture_open (&fixture);
    const char *endpoints[] = {fixture.ipc, fixture.tcp};
    void *staying = dealer_open (fixture.ipc);
    send_text (staying, "hello");
    receive (fixture.router, &stays);
    for (int i = 0; i < 2; i++) {
        void *leaving = dealer_open (endpoints[i]);
        send_text (leaving, "hello");
        receive (fixture.router, &leaves);
        zmq_close (leaving);
        assert_int_equal (wait_gone (fixture.router), leaves.peer);
    }
    output_t output = {leaves.peer, (const uint8_t *) "x", 1, NULL, 0};
    WAIT_FOR (!router_send (fixture.router, &output), PATIENCE_MS);
    output.peer = stays.peer;
    assert_true (router_send (fixture.router, &output));
    zmq_close (staying);
    router_free (&fixture.router);
}

/* Our uid under this name; as root or not, it may do everything. */
static void set_policy (const char *name)
{
    char text[64];
    policy_error_t error;
    policy_names_t names = {.own_uid = 0};
    snprintf (text, sizeof (text), "%s uid:%u operator\n", name, (unsigned) getuid ());
    policy_t *policy = policy_parse (text, strlen (text), &names, &error);
    assert_non_null (policy);
    zap_policy (zap, policy);
    policy_drop (policy);
}

static void test_who_is_somebody_else_now_is_cut (void **state)
{
    (void) state;
    fixture_t fixture;
    incoming_t incoming;
    now_t now = {1, 1};
    router_stats_t stats;
    set_policy ("first");
    fixture_open (&fixture);
    void *dealer = dealer_open (fixture.ipc);
    send_text (dealer, "hello");
    receive (fixture.router, &incoming);
    assert_string_equal (incoming.identity, "first");
    assert_true (zap_wants_recheck (zap, now));
    assert_false (zap_wants_recheck (zap, now));
    router_watch (fixture.router, 1);
    router_recheck (fixture.router);
    router_stats (fixture.router, &stats);
    assert_int_equal (stats.cut_revoked, 0);

    set_policy ("second");
    assert_true (zap_wants_recheck (zap, now));
    router_recheck (fixture.router);
    router_stats (fixture.router, &stats);
    assert_int_equal (stats.cut_revoked, 1);
    assert_int_equal (wait_gone (fixture.router), incoming.peer);
    assert_false (zap_wants_recheck (zap, now));
    assert_true (zap_wants_recheck (zap, (now_t){2, 0})); /* an end may be to come again */
    assert_false (zap_wants_recheck (zap, (now_t){2, 0}));
    router_release (fixture.router);
    zap_policy (zap, NULL);
    zmq_close (dealer);
    router_free (&fixture.router);
}

/* It came in before the policy changed, and speaks after that. */
static void test_a_late_first_message_is_nobodys (void **state)
{
    (void) state;
    fixture_t fixture;
    incoming_t incoming;
    router_stats_t stats;
    zap_stats_t asked;
    zap_stats (zap, &asked);
    uint64_t before = asked.accepted;
    fixture_open (&fixture);
    void *dealer = dealer_open (fixture.ipc);
    WAIT_FOR ((zap_answer (zap, (now_t){1, 1}), zap_stats (zap, &asked), asked.accepted > before),
              PATIENCE_MS);
    set_policy ("other");
    send_text (dealer, "hello");
    receive (fixture.router, &incoming);
    assert_int_equal (incoming.peer, 0);
    router_stats (fixture.router, &stats);
    assert_int_equal (stats.cut_revoked, 1);
    router_release (fixture.router);
    zap_policy (zap, NULL);
    zmq_close (dealer);
    router_free (&fixture.router);
}

/* It would be in the way of whoever gets it from ZeroMQ. */
static void test_who_chooses_its_routing_id_is_cut (void **state)
{
    (void) state;
    static const struct {
        const char *id;
        size_t bytes;
    } chosen[] = {{"name", 4}, {"\0abcd", 5}, {"\1abcd", 5}, {"\0", 1}};
    fixture_t fixture;
    incoming_t incoming;
    router_stats_t stats;
    fixture_open (&fixture);
    void *honest = dealer_open (fixture.ipc);
    send_text (honest, "hello");
    receive (fixture.router, &incoming);
    for (size_t i = 0; i < sizeof (chosen) / sizeof (chosen[0]); i++) {
        void *dealer = zmq_socket (context, ZMQ_DEALER);
        int none = 0;
        zmq_setsockopt (dealer, ZMQ_LINGER, &none, sizeof (none));
        zmq_setsockopt (dealer, ZMQ_ROUTING_ID, chosen[i].id, chosen[i].bytes);
        assert_int_equal (zmq_connect (dealer, fixture.ipc), 0);
        send_text (dealer, "hello");
        router_stats_t before;
        router_stats (fixture.router, &before);
        stats = before;
        for (int64_t until = timing_ms () + PATIENCE_MS; stats.cut_claimed == before.cut_claimed;) {
            assert_true (timing_ms () < until);
            zap_answer (zap, (now_t){1, 1});
            router_watch (fixture.router, 1);
            if (router_receive (fixture.router, 1, &incoming))
                router_release (fixture.router);
            router_watch_bytes (fixture.router, true);
            router_stats (fixture.router, &stats);
        }
        zmq_close (dealer);
    }
    send_text (honest, "still here");
    do {
        router_release (fixture.router);
        receive (fixture.router, &incoming);
    } while (incoming.envelope_bytes != strlen ("still here"));
    router_release (fixture.router);
    zmq_close (honest);
    router_free (&fixture.router);
}

static void test_a_second_router_on_the_path_is_refused (void **state)
{
    (void) state;
    fixture_t fixture;
    address_t address;
    char error[ERROR_SIZE] = "";
    fixture_open (&fixture);
    router_options_t options = {.context = context, .peers_max = 100, .held_max = 8};
    router_t *second = router_new (&options, error, sizeof (error));
    listen_error_t why;
    assert_true (address_parse (&address, fixture.ipc, error, sizeof (error)));
    assert_null (router_bind (second, &address, &why));
    assert_non_null (strstr (why.text, "another broker listens"));
    assert_true (address_parse (&address, fixture.tcp, error, sizeof (error)));
    assert_null (router_bind (second, &address, &why));
    assert_non_null (strstr (why.text, "in use"));
    assert_false (why.open);
    /* Without a key of the broker nobody could be asked for one. */
    assert_true (address_parse (&address, "tcp://127.0.0.1:0?curve", error, sizeof (error)));
    assert_null (router_bind (second, &address, &why));
    assert_true (why.open);
    router_free (&second);
    router_free (&fixture.router);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_addresses_say_who_needs_a_key),
        cmocka_unit_test (test_addresses_without_keys_are_asked_for),
        cmocka_unit_test (test_relative_ipc_paths_become_absolute),
        cmocka_unit_test (test_a_long_ipc_path_moves_to_a_private_directory),
        cmocka_unit_test (test_an_ipc_path_is_taken_only_when_it_is_free),
        cmocka_unit_test (test_a_handler_that_ends_shuts_the_door),
        cmocka_unit_test (test_a_handshake_has_its_time),
        cmocka_unit_test (test_nobody_waits_for_a_listener_to_close),
        cmocka_unit_test (test_who_speaks_without_keys_has_a_thread),
        cmocka_unit_test (test_nobody_can_tell_the_next_peers_number),
        cmocka_unit_test (test_messages_come_in_with_their_senders),
        cmocka_unit_test (test_any_number_of_frames_is_read_to_its_end),
        cmocka_unit_test (test_only_so_many_messages_are_held),
        cmocka_unit_test (test_a_frame_too_large_ends_the_connection_only),
        cmocka_unit_test (test_outputs_reach_their_peer),
        cmocka_unit_test (test_a_peer_that_takes_nothing_is_refused),
        cmocka_unit_test (test_the_end_of_a_connection_is_noticed),
        cmocka_unit_test (test_who_is_somebody_else_now_is_cut),
        cmocka_unit_test (test_a_late_first_message_is_nobodys),
        cmocka_unit_test (test_who_chooses_its_routing_id_is_cut),
        cmocka_unit_test (test_a_second_router_on_the_path_is_refused),
    };
    return cmocka_run_group_tests (tests, make_home, remove_home);
}
