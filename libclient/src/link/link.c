/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "link/link.h"

#include <stdio.h>
#include <string.h>

#include "types.h"

enum { CONNECT_MS = 2000 }; /* until a connection takes messages */

/* What one may do where none of several answers. */
#define SEVERAL                                                                                    \
    "a take-over may last longer: allow more time; 'taskctl doctor' looks at each endpoint"
#define NOT_TRIED "not tried yet"
#define NO_ANSWER "no answer yet"
#define NOTHING_DONE "; nothing was done" /* "cannot reach" says that */

/* Why there is no link. */

/* As much of a text as there is room for: its end, which tells more of a URI. */
static void put_end (char *out, size_t size, const char *text)
{
    size_t length = strlen (text);
    if (length < size) {
        memcpy (out, text, length + 1);
        return;
    }
    const char *at = text + length - (size - sizeof "...");
    while (((unsigned char) *at & 0xc0) == 0x80) /* not in the middle of a character */
        at++;
    snprintf (out, size, "...%s", at);
}

/* The same with its begin. */
static void put_begin (char *out, size_t size, const char *text)
{
    size_t length = strlen (text);
    if (length < size) {
        memcpy (out, text, length + 1);
        return;
    }
    length = size - sizeof "...";
    while (length > 0 && ((unsigned char) text[length] & 0xc0) == 0x80)
        length--;
    snprintf (out, size, "%.*s...", (int) length, text);
}

/* An endpoint with its reason. Where both are too long, the reason has the greater part: the end of
 * an address tells most. */
static void put_one (core_link_t *self, size_t *length, size_t share, const char *mark, size_t i)
{
    char uri[sizeof self->text];
    char reason[CORE_LINK_REASON_BYTES];
    const char *name = self->config->endpoints[i];
    share -= sizeof "; : ";
    size_t name_bytes = strlen (name) < share / 3 ? strlen (name) : share / 3;
    put_begin (reason, share - name_bytes < sizeof reason ? share - name_bytes : sizeof reason,
               self->reasons[i]);
    put_end (uri, share - strlen (reason), name);
    *length += (size_t) snprintf (self->text + *length, sizeof self->text - *length, "%s%s: %s",
                                  mark, uri, reason);
}

/* Each endpoint with its own reason; what one leaves of its share is for those behind it. */
static void put_reasons (core_link_t *self)
{
    size_t count = self->config->endpoints_count;
    size_t shown = count < CORE_LINK_REASONS_MAX ? count : CORE_LINK_REASONS_MAX;
    size_t room = sizeof self->text - sizeof "; and 4294967295 more";
    size_t length = (size_t) snprintf (self->text, sizeof self->text, "cannot reach");
    const char *mark = " ";
    for (size_t i = 0; i < shown; i++) {
        if (self->reasons[i][0] == '\0')
            continue;
        put_one (self, &length, (room - length) / (shown - i), mark, i);
        mark = "; ";
    }
    if (count > shown)
        snprintf (self->text + length, sizeof self->text - length, "; and %zu more", count - shown);
}

static void put_text (core_link_t *self, const char *text)
{
    const char *end = strstr (text, NOTHING_DONE);
    const int length = (int) (end != NULL ? (size_t) (end - text) : strlen (text));
    if (self->config->endpoints_count == 1) {
        snprintf (self->text, sizeof self->text, "cannot reach %s: %.*s",
                  self->config->endpoints[0], length, text);
        return;
    }
    if (self->endpoint < CORE_LINK_REASONS_MAX)
        snprintf (self->reasons[self->endpoint], sizeof self->reasons[0], "%.*s", length, text);
    put_reasons (self);
}

const char *core_link_store_away (const core_link_t *self)
{
    static const char away[] = "the broker's store is out of reach";
    bool said = strstr (self->text, away) != NULL;
    for (size_t i = 0; i < CORE_LINK_REASONS_MAX && !said; i++)
        said = strcmp (self->reasons[i], away) == 0;
    return said ? away : NULL;
}

/* Beside the reasons of the others, the one that is tried has none yet. */
static void begin_reason (core_link_t *self)
{
    if (self->config->endpoints_count == 1 || self->endpoint >= CORE_LINK_REASONS_MAX)
        return;
    const char *before = self->reasons[self->endpoint];
    if (before[0] == '\0' || strcmp (before, NOT_TRIED) == 0)
        put_text (self, NO_ANSWER);
}

void core_link_init (core_link_t *self, const core_config_t *config, int64_t now_ms)
{
    self->config = config;
    snprintf (self->ns, sizeof self->ns, "%s", config->ns != NULL ? config->ns : "");
    snprintf (self->name, sizeof self->name, "%s", config->name != NULL ? config->name : "");
    memcpy (&self->jitter, config->seed + 16, sizeof self->jitter);
    self->now_ms = now_ms;
    self->due_ms = now_ms;
    self->heartbeat_ms = TMQ_HEARTBEAT_MS;
    self->code = TMQ_UNREACHABLE;
    for (size_t i = 0; i < CORE_LINK_REASONS_MAX && i < config->endpoints_count; i++)
        snprintf (self->reasons[i], sizeof self->reasons[i], NOT_TRIED);
    put_text (self, NO_ANSWER);
}

void core_link_hear_time (core_link_t *self, int64_t now_ms)
{
    if (now_ms > self->now_ms)
        self->now_ms = now_ms;
}

/* splitmix64: enough for jitter. */
uint64_t core_link_random (core_link_t *self)
{
    uint64_t z = self->jitter += UINT64_C (0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C (0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C (0x94d049bb133111eb);
    return z ^ (z >> 31);
}

bool core_link_has_connection (const core_link_t *self)
{
    return self->stage == CORE_LINK_OPENING || self->stage == CORE_LINK_HELLO ||
           self->stage == CORE_LINK_UP || self->stage == CORE_LINK_LEAVING;
}

bool core_link_is_up (const core_link_t *self)
{
    return self->stage == CORE_LINK_UP && !self->dropped;
}

/* The end of a link. */

/* One round tries each endpoint once, without a pause in between; then there is one, twice as long
 * as that before it. So nobody is tried more often than once in a pause. With a quarter of jitter,
 * also at the longest pause: those that lost the broker together come back spread. */
static int64_t reconnect_pause (core_link_t *self)
{
    int64_t min = self->config->reconnect_ms_min;
    int64_t max = self->config->reconnect_ms_max;
    unsigned round = self->failures;
    int64_t pause = min;
    while (round-- > 0 && pause < max)
        pause *= 2;
    pause = pause < max ? pause : max;
    int64_t low = pause - pause / 4 > min ? pause - pause / 4 : min;
    int64_t high = pause + pause / 4 < max ? pause + pause / 4 : max;
    return low + (int64_t) (core_link_random (self) % (uint64_t) (high - low + 1));
}

/* What the broker knew of us is gone. */
static void lose (core_link_t *self, unsigned more)
{
    self->hello_due = false;
    self->dropped = false;
    self->changes++;
    self->news |= CORE_LINK_NEWS_LOST | more;
}

/* The next endpoint is tried at once, unless each was tried since the last pause. */
static void link_pause (core_link_t *self, const char *text)
{
    bool was_up = self->stage == CORE_LINK_UP;
    self->absent = false;
    if (was_up && self->now_ms - self->up_since_ms >= self->config->reconnect_ms_max)
        self->failures = 0;
    put_text (self, text);
    const bool time_helps = self->config->endpoints_count > 1 && !core_link_store_away (self);
    snprintf (self->hint, sizeof self->hint, "%s", time_helps ? SEVERAL : "");
    self->code = TMQ_UNREACHABLE;
    self->stage = CORE_LINK_PAUSE;
    self->due_ms = self->now_ms;
    if (!was_up) {
        self->endpoint = (self->endpoint + 1) % self->config->endpoints_count;
        self->tried++;
    }
    bool round_ends = was_up || self->tried >= self->config->endpoints_count;
    if (round_ends) {
        self->due_ms += reconnect_pause (self);
        self->failures++;
        self->tried = 0;
    }
    lose (self, round_ends ? CORE_LINK_NEWS_TEXT : 0);
}

/* Ends for good. */
static void core_link_refuse (core_link_t *self, int code, const char *text)
{
    self->code = code;
    snprintf (self->text, sizeof self->text, "%s: %s", self->config->endpoints[self->endpoint],
              text != NULL && text[0] != '\0' ? text : code_text (code));
    self->hint[0] = '\0';
    self->stage = CORE_LINK_FINAL;
    lose (self, CORE_LINK_NEWS_TEXT | CORE_LINK_NEWS_FINAL);
}

void core_link_close (core_link_t *self)
{
    if (self->stage == CORE_LINK_FINAL && self->code == TMQ_CLOSED)
        return;
    self->stage = CORE_LINK_FINAL;
    self->code = TMQ_CLOSED;
    snprintf (self->text, sizeof self->text, "%s", code_text (TMQ_CLOSED));
    self->dropped = false;
    self->changes++;
    self->news |= CORE_LINK_NEWS_FINAL;
}

void core_link_ended (core_link_t *self, int code, const char *text)
{
    if (self->stage == CORE_LINK_LEAVING)
        core_link_close (self);
    else if (code == TMQ_NOT_AUTHENTICATED)
        core_link_refuse (self, code, text);
    else
        link_pause (self, text);
}

/* Of several endpoints one may come up at any time: a standby takes over. */
bool core_link_is_absent (const core_link_t *self)
{
    return self->config->fail_fast && self->connects == 0 && self->stage == CORE_LINK_PAUSE &&
           self->absent && self->config->endpoints_count == 1;
}

void core_link_absent (core_link_t *self, const char *text, const char *hint)
{
    core_link_ended (self, TMQ_UNREACHABLE, text);
    if (self->stage != CORE_LINK_PAUSE)
        return;
    self->absent = true;
    if (self->config->endpoints_count == 1) /* else it would be the last one's alone */
        snprintf (self->hint, sizeof self->hint, "%s", hint);
    if (core_link_is_absent (self))
        self->news |= CORE_LINK_NEWS_ABSENT;
}

void core_link_hurry (core_link_t *self)
{
    if (!core_link_is_absent (self))
        return;
    self->absent = false;
    self->due_ms = self->now_ms;
}

void core_link_drop (core_link_t *self, int code, const char *text)
{
    if (!core_link_has_connection (self) || self->stage == CORE_LINK_LEAVING || self->dropped)
        return;
    self->dropped = true;
    snprintf (self->drop_text, sizeof self->drop_text, "%s",
              text != NULL && text[0] != '\0' ? text : code_text (code));
}

void core_link_leave (core_link_t *self)
{
    if (self->stage == CORE_LINK_UP)
        self->stage = CORE_LINK_LEAVING;
    else
        core_link_close (self);
}

unsigned core_link_settle (core_link_t *self)
{
    if (self->dropped)
        link_pause (self, self->drop_text);
    unsigned news = self->news;
    self->news = 0;
    return news;
}

/* Hello and welcome. */

/* Beside a machine that is gone or stands still, another one may have taken over; but one that is
 * far away is slow in each step of its handshake, and one that is busy has its whole time now and
 * then. Whose handshake is done has it anyway. */
static int64_t hello_patience (const core_link_t *self)
{
    const int64_t whole_ms = (int64_t) self->heartbeat_ms * TMQ_HEARTBEATS_MISSED_MAX;
    const int64_t turn_ms = CORE_LINK_SILENT_MS + CORE_LINK_REACH_TIMES * self->reach_ms;
    bool in_turn = self->config->endpoints_count > 1 && !self->greeted &&
                   self->failures % CORE_LINK_PATIENT_EACH != CORE_LINK_PATIENT_EACH - 1;
    return in_turn && turn_ms < whole_ms ? turn_ms : whole_ms;
}

void core_link_say_hello (core_link_t *self)
{
    self->stage = CORE_LINK_HELLO;
    self->hello_due = true;
    self->hello_ms = self->now_ms;
    self->due_ms = self->hello_ms + hello_patience (self);
}

static void judge_again (core_link_t *self)
{
    if (self->stage == CORE_LINK_HELLO)
        self->due_ms = self->hello_ms + hello_patience (self);
}

void core_link_reach (core_link_t *self)
{
    self->reach_ms = self->now_ms - self->begun_ms;
    judge_again (self);
}

void core_link_greet (core_link_t *self)
{
    self->greeted = true;
    judge_again (self);
}

static void give_up_hello (core_link_t *self)
{
    char text[48];
    const int64_t silent_ms = self->now_ms - self->hello_ms;
    snprintf (text, sizeof text, "silent for %d.%d s", (int) (silent_ms / 1000),
              (int) (silent_ms % 1000 / 100));
    link_pause (self, self->greeted ? "no answer" : text);
}

void core_link_again (core_link_t *self)
{
    if (self->stage == CORE_LINK_LEAVING)
        core_link_close (self);
    if (self->stage != CORE_LINK_UP)
        return;
    self->code = TMQ_UNREACHABLE;
    snprintf (self->text, sizeof self->text, "the broker is beginning anew");
    lose (self, 0);
    core_link_say_hello (self);
}

static bool take_key (key_public_t *out, const ProtobufCBinaryData *in)
{
    if (in->len != sizeof out->bytes)
        return false;
    memcpy (out->bytes, in->data, sizeof out->bytes);
    return true;
}

static void take_rights (core_rights_t *self, const Taskmq__Welcome *in, int64_t now_ms)
{
    snprintf (self->principal, sizeof self->principal, "%s", in->principal);
    snprintf (self->roles, sizeof self->roles, "%s", in->roles);
    snprintf (self->redact, sizeof self->redact, "%s", in->redact);
    self->key_until = in->key_until;
    self->clock_ms = (int64_t) in->now;
    self->clock_at = now_ms;
    self->blob_bytes_max = in->blob_bytes_max;
    self->has_server = take_key (&self->server, &in->server_key);
    self->has_next = take_key (&self->next, &in->next_server_key);
}

static bool welcome (core_link_t *self, const Taskmq__Welcome *in)
{
    if (in->token.len != sizeof self->token || in->version != TMQ_PROTOCOL_VERSION)
        return false;
    memcpy (self->token, in->token.data, sizeof self->token);
    self->info.generation = in->generation;
    self->info.epoch = in->epoch;
    self->info.seq = in->seq;
    snprintf (self->info.identity, sizeof self->info.identity, "%s", in->identity);
    snprintf (self->info.broker, sizeof self->info.broker, "%s", in->broker);
    take_rights (&self->rights, in, self->now_ms);
    if (in->namespace_[0] != '\0')
        snprintf (self->ns, sizeof self->ns, "%s", in->namespace_);
    self->info_endpoint = self->endpoint;
    if (in->heartbeat_ms >= 10)
        self->heartbeat_ms = in->heartbeat_ms;
    self->stage = CORE_LINK_UP;
    self->code = TMQ_OK;
    self->text[0] = '\0';
    self->tried = 0;
    memset (self->reasons, 0, sizeof self->reasons);
    self->changes++;
    self->connects++;
    self->missed = 0;
    self->heard = true;
    self->up_since_ms = self->now_ms;
    self->due_ms = self->now_ms + self->heartbeat_ms;
    return true;
}

static bool is_less (uint32_t told, uint32_t ours)
{
    return told != 0 && told < ours;
}

/* What is queued was cut to our limits, which are those of the protocol's version; a broker that
 * takes less would refuse some of it again and again. */
static bool limits_are_small (const Taskmq__Welcome *in)
{
    return is_less (in->envelope_bytes_max, TMQ_ENVELOPE_BYTES_MAX) ||
           is_less (in->frame_bytes_max, TMQ_FRAME_BYTES_MAX) ||
           is_less (in->submit_items_max, TMQ_SUBMIT_ITEMS_MAX) ||
           is_less (in->wait_ids_max, TMQ_WAIT_IDS_MAX);
}

bool core_link_hello_reply (core_link_t *self, const Taskmq__Reply *reply, bool *welcomed)
{
    *welcomed = false;
    if (self->stage != CORE_LINK_HELLO)
        return true;
    bool good = reply->code == TMQ_OK && reply->body_case == TASKMQ__REPLY__BODY_WELCOME;
    if (reply->code == TMQ_OK && !good)
        return false;
    if (good && !limits_are_small (reply->welcome))
        return *welcomed = welcome (self, reply->welcome);
    if (good)
        core_link_refuse (self, TMQ_UNSUPPORTED,
                          "the broker's limits are smaller than the library's");
    else if (code_is_retriable ((int) reply->code))
        core_link_drop (self, (int) reply->code, reply->text);
    else
        core_link_refuse (self, (int) reply->code, reply->text);
    return true;
}

/* Time. */

void core_link_heard (core_link_t *self)
{
    self->heard = true;
    self->heard_ms = self->now_ms;
}

static bool beat (core_link_t *self)
{
    /* At least two heartbeats without an answer, so that a pause of our own is not taken for
     * silence of the broker. */
    int64_t patience_ms = (int64_t) self->heartbeat_ms * TMQ_HEARTBEATS_MISSED_MAX;
    self->missed = self->heard ? 0 : self->missed + 1;
    if (self->missed >= TMQ_HEARTBEATS_MISSED_MAX - 1 &&
        self->now_ms - self->heard_ms >= patience_ms) {
        link_pause (self, "no sign of life");
        /* One that stands still is taken over from: the next one first. */
        self->endpoint = (self->endpoint + 1) % self->config->endpoints_count;
        return false;
    }
    self->heard = false;
    self->due_ms = self->now_ms + self->heartbeat_ms;
    if (self->missed > 0 && self->heard_ms + patience_ms > self->now_ms &&
        self->heard_ms + patience_ms < self->due_ms)
        self->due_ms = self->heard_ms + patience_ms; /* not a whole interval too late */
    return true;
}

bool core_link_tick (core_link_t *self)
{
    if (self->dropped || self->due_ms > self->now_ms)
        return false;
    switch (self->stage) {
    case CORE_LINK_PAUSE:
        self->stage = CORE_LINK_OPENING;
        self->connection++;
        self->greeted = false;
        self->begun_ms = self->now_ms;
        self->reach_ms = 0;
        self->hello_due = true;
        self->due_ms = self->now_ms + CONNECT_MS;
        begin_reason (self);
        break;
    case CORE_LINK_OPENING: link_pause (self, "no connection in 2 s"); break;
    case CORE_LINK_HELLO: give_up_hello (self); break;
    case CORE_LINK_UP: return beat (self);
    case CORE_LINK_LEAVING:
    case CORE_LINK_FINAL: break;
    }
    return false;
}

int64_t core_link_next_due (const core_link_t *self)
{
    if (self->stage == CORE_LINK_LEAVING || self->stage == CORE_LINK_FINAL)
        return CORE_NEVER;
    return self->dropped ? self->now_ms : self->due_ms;
}
