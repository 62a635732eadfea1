/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Failure: a request that is none is answered 500, which ends its connection only. */
#include "net/zap.h"

#include <arpa/inet.h>
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#include "core/access/access.h"
#include "core/base/memory.h"
#include "ids.h"
#include "net/buckets.h"
#include "net/guests.h"
#include "net/socket.h"

enum {
    FRAME_EMPTY,
    FRAME_VERSION,
    FRAME_ID,
    FRAME_DOMAIN,
    FRAME_ADDRESS,
    FRAME_ROUTING_ID,
    FRAME_MECHANISM,
    FRAMES_NULL,
    FRAME_KEY = FRAMES_NULL,
    FRAMES_CURVE
};
enum { NETWORK_BYTES_V6 = 8 };

/* What the address of a peer on ipc begins with; its uid follows. */
#define LOCAL "localhost:"

static_assert ((int) FRAMES_CURVE == (int) ZAP_FRAMES_MAX, "frames of a request");

typedef enum status { SILENT = 0, ACCEPTED = 200, LATER = 300, REFUSED = 400, ODD = 500 } status_t;

typedef struct verdict {
    status_t status;
    char identity[IDENTITY_SIZE]; /* when accepted */
    const char *why;              /* when refused */
} verdict_t;

struct zap {
    void *socket;
    audit_t *audit;
    policy_t *policy;
    buckets_t *refusals; /* by network */
    buckets_t *connects; /* by identity */
    guests_t *guests;    /* of feeds */
    int64_t silent_ms;
    int64_t silent_until[ZAP_SILENT_MAX]; /* a ring of those that are kept waiting */
    size_t silent_first;
    size_t silent_count;
    now_t now; /* of the last look */
    policy_ends_t ends;
    bool changed; /* the policy, since zap_wants_recheck said so */
    bool stopping;
    bool probing;
    zap_stats_t stats;
};

zap_t *zap_new (const zap_options_t *options, char *error, size_t error_size)
{
    zap_t *self = memory_zero (1, sizeof (*self));
    buckets_options_t refusals = {
        ZAP_ADDRESSES_MAX, ZAP_REFUSALS_BURST, ZAP_REFUSALS_PER_SECOND, {0}};
    buckets_options_t connects = {
        ZAP_PRINCIPALS_MAX, ZAP_CONNECTS_BURST, ZAP_CONNECTS_PER_SECOND, {0}};
    memcpy (refusals.key, options->key, sizeof (refusals.key));
    memcpy (connects.key, options->key, sizeof (connects.key));
    self->refusals = buckets_new (&refusals);
    self->connects = buckets_new (&connects);
    self->guests = guests_new ();
    self->audit = options->audit;
    self->silent_ms = options->silent_ms;
    self->ends = (policy_ends_t) POLICY_ENDS_INIT;
    self->socket = zmq_socket (options->context, ZMQ_ROUTER);
    if (self->socket != NULL) {
        socket_set (self->socket, ZMQ_LINGER, 0);
        if (zmq_bind (self->socket, "inproc://zeromq.zap.01") == 0) {
            /* A socket wakes its reader only after the reader found it empty once. */
            (void) zap_answer (self, (now_t){0, 0});
            return self;
        }
    }
    snprintf (error, error_size, "cannot be asked who may connect: %s",
              zmq_strerror (zmq_errno ()));
    zap_free (&self);
    return NULL;
}

void zap_free (zap_t **self_p)
{
    zap_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    if (self->socket != NULL)
        zmq_close (self->socket);
    policy_drop (self->policy);
    buckets_free (&self->refusals);
    buckets_free (&self->connects);
    guests_free (&self->guests);
    free (self);
}

int zap_fd (const zap_t *self)
{
    return socket_fd (self->socket);
}

void zap_stop (zap_t *self)
{
    self->stopping = true;
}

void zap_policy (zap_t *self, policy_t *policy)
{
    policy_t *before = self->policy;
    self->policy = policy_keep (policy);
    policy_drop (before);
    self->changed = true;
}

bool zap_wants_recheck (zap_t *self, now_t now)
{
    self->now = now;
    if (!self->changed && !policy_ends_are_due (&self->ends, now.wall_ms))
        return false;
    self->changed = false;
    policy_ends_judged (&self->ends, self->policy, now.wall_ms);
    return true;
}

bool zap_lists_keys (const zap_t *self)
{
    return self->policy != NULL && policy_has_keys (self->policy);
}

void zap_probing (zap_t *self, bool on)
{
    self->probing = on;
}

/* Requests. */

static bool is_text (const zap_frame_t *frame, const char *text)
{
    return frame->length == strlen (text) && memcmp (frame->bytes, text, frame->length) == 0;
}

/* Printable, so that it may stand in a log. */
static bool take_text (char *out, size_t most, const zap_frame_t *frame)
{
    if (frame->length > most)
        return false;
    for (size_t i = 0; i < frame->length; i++) {
        char byte = ((const char *) frame->bytes)[i];
        if (byte <= ' ' || byte > '~')
            return false;
        out[i] = byte;
    }
    out[frame->length] = '\0';
    return true;
}

bool zap_parse (const zap_frame_t *frames, size_t count, zap_request_t *out)
{
    memset (out, 0, sizeof (*out));
    if (count < FRAMES_NULL || frames[FRAME_EMPTY].length != 0 ||
        !is_text (&frames[FRAME_VERSION], "1.0") ||
        !take_text (out->domain, ZAP_DOMAIN_MAX, &frames[FRAME_DOMAIN]) ||
        !take_text (out->address, ZAP_ADDRESS_MAX, &frames[FRAME_ADDRESS]))
        return false;
    if (is_text (&frames[FRAME_MECHANISM], "NULL") && count == FRAMES_NULL) {
        out->mechanism = ZAP_NULL;
        return true;
    }
    if (!is_text (&frames[FRAME_MECHANISM], "CURVE") || count != FRAMES_CURVE ||
        frames[FRAME_KEY].length != KEY_BYTES)
        return false;
    out->mechanism = ZAP_CURVE;
    memcpy (out->key.bytes, frames[FRAME_KEY].bytes, KEY_BYTES);
    return true;
}

/* Judgement. */

static void judge (const zap_t *self, const zap_request_t *request, now_t now, verdict_t *out)
{
    knock_t knock = {.domain = request->domain,
                     .key = request->mechanism == ZAP_CURVE ? &request->key : NULL,
                     .address = request->address,
                     .now_ms = now.wall_ms};
    admission_t entry;
    access_door (self->policy, &knock, &entry);
    out->status = entry.status == ACCEPTED ? ACCEPTED : REFUSED;
    memcpy (out->identity, entry.identity, sizeof (out->identity));
    out->why = entry.why;
}

/* "DOMAIN KEY ADDRESS", the key in hexadecimal digits or "-". */

enum { HEX_SIZE = 2 * KEY_BYTES + 1, KNOCK_SIZE = ZAP_DOMAIN_MAX + HEX_SIZE + ZAP_ADDRESS_MAX + 3 };

static int write_knock (char out[KNOCK_SIZE], const zap_request_t *request)
{
    char key[HEX_SIZE] = "-";
    if (request->mechanism == ZAP_CURVE)
        hex_encode (key, request->key.bytes, KEY_BYTES);
    return snprintf (out, KNOCK_SIZE, "%s %s %s", request->domain, key, request->address);
}

static bool read_knock (zap_request_t *out, const char *knock)
{
    char key[HEX_SIZE];
    static_assert (ZAP_DOMAIN_MAX == 80 && ZAP_ADDRESS_MAX == 80 && HEX_SIZE == 65, "widths");
    if (sscanf (knock, "%80s %64s %80s", out->domain, key, out->address) != 3)
        return false;
    out->mechanism = strcmp (key, "-") == 0 ? ZAP_NULL : ZAP_CURVE;
    return out->mechanism == ZAP_NULL || hex_decode (out->key.bytes, KEY_BYTES, key);
}

bool zap_is_current (const zap_t *self, const char *knock, const char *identity)
{
    zap_request_t request;
    verdict_t verdict;
    if (knock == NULL || !read_knock (&request, knock))
        return false;
    judge (self, &request, self->now, &verdict);
    return verdict.status == ACCEPTED && strcmp (verdict.identity, identity) == 0;
}

bool zap_knock_key (const char *knock, key_public_t *out)
{
    zap_request_t request;
    if (knock == NULL || !read_knock (&request, knock) || request.mechanism != ZAP_CURVE)
        return false;
    *out = request.key;
    return true;
}

static bool is_still_current (const void *context, const char *knock, const char *identity)
{
    return zap_is_current (context, knock, identity);
}

bool zap_is_feed_current (const zap_t *self, const char *domain)
{
    return guests_are (self->guests, domain, is_still_current, self);
}

void zap_forget_feed (zap_t *self, const char *domain)
{
    guests_forget (self->guests, domain);
}

/* A guest on ipc is its user: one who connects again and again has another pid each time. */
static void remember (zap_t *self, const zap_request_t *request, const char *identity)
{
    char knock[KNOCK_SIZE];
    zap_request_t guest = *request;
    if (strncmp (request->domain, "feed/", 5) != 0)
        return;
    if (strncmp (guest.address, LOCAL, strlen (LOCAL)) == 0) {
        char *behind_uid = strchr (guest.address + strlen (LOCAL), ':');
        if (behind_uid != NULL)
            behind_uid[1] = '\0';
    }
    write_knock (knock, &guest);
    guests_add (self->guests, request->domain, knock, identity);
}

/* Who owns the broker's files can do worse than to connect often. */
static bool is_rated (const zap_t *self, const zap_request_t *request)
{
    char *end;
    unsigned long uid;
    if (self->policy == NULL)
        return false;
    if (strncmp (request->address, LOCAL, strlen (LOCAL)) != 0)
        return true;
    uid = strtoul (request->address + strlen (LOCAL), &end, 10);
    return uid >= UINT32_MAX || !policy_is_own_uid (self->policy, (uint32_t) uid);
}

static bool connects_too_often (zap_t *self, const zap_request_t *request, const verdict_t *verdict,
                                now_t now)
{
    return is_rated (self, request) && !buckets_take (self->connects, verdict->identity,
                                                      strlen (verdict->identity), now.mono_ms);
}

/* One who tries keys: after a few refusals it waits as long as ZeroMQ lets it. */

/* An address, of IPv6 its network. On ipc all are one: who gets there has passed the permissions of
 * the path. */
static size_t network_of (const zap_request_t *request, uint8_t out[NETWORK_BYTES_V6])
{
    char address[ZAP_ADDRESS_MAX + 1];
    struct in_addr v4;
    struct in6_addr v6;
    memcpy (address, request->address, sizeof (address));
    address[strcspn (address, "%")] = '\0'; /* of a link-local one: through which interface */
    memset (out, 0, NETWORK_BYTES_V6);
    if (inet_pton (AF_INET, address, &v4) == 1) {
        memcpy (out, &v4, sizeof (v4));
        return sizeof (v4);
    }
    if (inet_pton (AF_INET6, address, &v6) != 1)
        return 0;
    if (IN6_IS_ADDR_V4MAPPED (&v6)) {
        memcpy (out, &v6.s6_addr[12], sizeof (v4));
        return sizeof (v4);
    }
    memcpy (out, &v6, NETWORK_BYTES_V6);
    return NETWORK_BYTES_V6;
}

/* There is a place to wait in. */
static bool keep_waiting (zap_t *self, int64_t now_ms)
{
    while (self->silent_count > 0 && self->silent_until[self->silent_first] <= now_ms) {
        self->silent_first = (self->silent_first + 1) % ZAP_SILENT_MAX;
        self->silent_count--;
    }
    if (self->silent_count == ZAP_SILENT_MAX)
        return false;
    self->silent_until[(self->silent_first + self->silent_count++) % ZAP_SILENT_MAX] =
        now_ms + self->silent_ms;
    return true;
}

static void slow_down (zap_t *self, const zap_request_t *request, now_t now, verdict_t *out)
{
    uint8_t network[NETWORK_BYTES_V6];
    size_t bytes = network_of (request, network);
    if (!self->probing && !buckets_take (self->refusals, network, bytes, now.mono_ms) &&
        keep_waiting (self, now.mono_ms))
        out->status = SILENT;
}

/* On ipc the address is the uid: its peers differ by their pids only. */
static void note_refused (const zap_t *self, const zap_request_t *request, const char *why)
{
    char from[ZAP_ADDRESS_MAX + 1];
    char key[KEY_TEXT_SIZE] = "";
    if (self->probing)
        return;
    snprintf (from, sizeof (from), "%s", request->address);
    if (strncmp (from, LOCAL, strlen (LOCAL)) == 0)
        snprintf (from, sizeof (from), "uid:%.*s",
                  (int) strcspn (request->address + strlen (LOCAL), ":"),
                  request->address + strlen (LOCAL));
    if (request->mechanism == ZAP_CURVE)
        key_text_public (key, &request->key);
    audit_note (self->audit, &(audit_line_t){.kind = AUDIT_KEY_REFUSED,
                                             .from = from,
                                             .object = request->mechanism == ZAP_CURVE ? key : NULL,
                                             .outcome = "refused",
                                             .detail = why});
}

static void decide (zap_t *self, const zap_request_t *request, now_t now, verdict_t *out)
{
    judge (self, request, now, out);
    if (out->status == REFUSED) {
        note_refused (self, request, out->why);
        slow_down (self, request, now, out);
    } else if (self->stopping) {
        out->status = LATER;
    } else if (connects_too_often (self, request, out, now)) {
        out->status = LATER;
        self->stats.rated++;
    }
    if (out->status == ACCEPTED)
        remember (self, request, out->identity);
    self->stats.accepted += out->status == ACCEPTED;
    self->stats.silent += out->status == SILENT;
    self->stats.refused += out->status == LATER || out->status == REFUSED;
}

/* The socket. */

static void send_text (zap_t *self, const char *text, bool more)
{
    /* What the asking connection does not wait for any more is dropped by ZeroMQ. */
    (void) zmq_send (self->socket, text, strlen (text), more ? ZMQ_SNDMORE : 0);
}

/* The one property: its name behind one byte of length, its value behind four. */
static size_t write_properties (uint8_t out[sizeof (ZAP_KNOCK) + KNOCK_SIZE + 4],
                                const zap_request_t *request)
{
    char knock[KNOCK_SIZE];
    size_t name_bytes = strlen (ZAP_KNOCK);
    uint32_t length = (uint32_t) write_knock (knock, request);
    uint32_t wire = htonl (length);
    out[0] = (uint8_t) name_bytes;
    memcpy (out + 1, ZAP_KNOCK, name_bytes);
    memcpy (out + 1 + name_bytes, &wire, sizeof (wire));
    memcpy (out + 1 + name_bytes + sizeof (wire), knock, length);
    return 1 + name_bytes + sizeof (wire) + length;
}

static void answer (zap_t *self, zmq_msg_t *routing_id, const zap_frame_t *id,
                    const zap_request_t *request, const verdict_t *verdict)
{
    uint8_t properties[sizeof (ZAP_KNOCK) + KNOCK_SIZE + 4];
    static const char *const texts[] = {"later", "refused", "odd"};
    bool accepted = verdict->status == ACCEPTED;
    char status[8];
    snprintf (status, sizeof (status), "%d", (int) verdict->status);
    (void) zmq_msg_send (routing_id, self->socket, ZMQ_SNDMORE);
    send_text (self, "", true);
    send_text (self, "1.0", true);
    (void) zmq_send (self->socket, id->bytes, id->length, ZMQ_SNDMORE);
    send_text (self, status, true);
    send_text (self, accepted ? "OK" : texts[(int) verdict->status / 100 - 3], true);
    send_text (self, accepted ? verdict->identity : "", true);
    (void) zmq_send (self->socket, properties,
                     accepted ? write_properties (properties, request) : 0, 0);
}

/* The frames behind the routing id; how many there were. Only the first ones are kept. */
static size_t receive_frames (zap_t *self, zmq_msg_t messages[ZAP_FRAMES_MAX])
{
    zmq_msg_t scrap;
    size_t count = 0;
    bool more = true;
    zmq_msg_init (&scrap);
    while (more) {
        zmq_msg_t *frame = count < ZAP_FRAMES_MAX ? &messages[count] : &scrap;
        count++;
        socket_receive (self->socket, frame, 0); /* the frames of a message arrive together */
        more = zmq_msg_more (frame);
    }
    zmq_msg_close (&scrap);
    return count;
}

static bool answer_one (zap_t *self, now_t now)
{
    zmq_msg_t routing_id;
    zmq_msg_t messages[ZAP_FRAMES_MAX];
    zmq_msg_init (&routing_id);
    if (!socket_receive (self->socket, &routing_id, ZMQ_DONTWAIT))
        return false;
    for (size_t i = 0; i < ZAP_FRAMES_MAX; i++)
        zmq_msg_init (&messages[i]);
    size_t count = zmq_msg_more (&routing_id) ? receive_frames (self, messages) : 0;
    zap_frame_t frames[ZAP_FRAMES_MAX];
    for (size_t i = 0; i < ZAP_FRAMES_MAX; i++)
        frames[i] = (zap_frame_t){zmq_msg_data (&messages[i]), zmq_msg_size (&messages[i])};
    zap_request_t request;
    verdict_t verdict = {ODD, "", NULL};
    if (count <= ZAP_FRAMES_MAX && zap_parse (frames, count, &request))
        decide (self, &request, now, &verdict);
    self->stats.refused += verdict.status == ODD;
    if (verdict.status != SILENT)
        answer (self, &routing_id, &frames[FRAME_ID], &request, &verdict);
    for (size_t i = 0; i < ZAP_FRAMES_MAX; i++)
        zmq_msg_close (&messages[i]);
    zmq_msg_close (&routing_id);
    return true;
}

bool zap_answer (zap_t *self, now_t now)
{
    self->now = now;
    for (int i = 0; i < ZAP_REQUESTS_MAX; i++)
        if (!answer_one (self, now))
            return true;
    return false;
}

void zap_stats (const zap_t *self, zap_stats_t *out)
{
    *out = self->stats;
}
