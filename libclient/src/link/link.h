/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The link: which connection is wanted, welcome, heartbeats, and why there is none.
 *
 * What follows from its changes for others is left as marks (`news`, `dropped`), on which the core
 * acts before it gives control back. Whatever goes wrong with a link has one consequence: it ends,
 * everything open is queued again, and after a pause another connection is tried. Only a refusal
 * that would be repeated for ever (authentication, version, namespace) is final. */
#ifndef TASKMQ_CLIENT_LINK_H
#define TASKMQ_CLIENT_LINK_H

#include "base/answers.h"
#include "base/config.h"
#include "base/rights.h"
#include "taskmq.pb-c.h"

typedef enum core_link_stage {
    CORE_LINK_PAUSE = 0, /* until due_ms, then an endpoint is tried */
    CORE_LINK_OPENING,   /* a connection is wanted; until it takes the hello */
    CORE_LINK_HELLO,     /* the hello is on its way */
    CORE_LINK_UP,
    CORE_LINK_LEAVING, /* the goodbye is to be sent */
    CORE_LINK_FINAL    /* there will be none: refused, closed or gone */
} core_link_stage_t;

/* What others have to hear of. */
typedef enum core_link_news {
    CORE_LINK_NEWS_LOST = 1,  /* what the broker knew of us is gone: all is to be sent again */
    CORE_LINK_NEWS_FINAL = 2, /* everything ends with the link's code */
    CORE_LINK_NEWS_TEXT = 4,  /* there is a reason to be told */
    CORE_LINK_NEWS_ABSENT = 8 /* fail_fast: nobody is there, what is open ends */
} core_link_news_t;

enum {
    CORE_LINK_SILENT_MS = 1500,  /* of several endpoints: until a silent handshake gives way, … */
    CORE_LINK_REACH_TIMES = 8,   /* … and so many times what it took to reach the peer */
    CORE_LINK_PATIENT_EACH = 10, /* rounds, of which the last waits as long as for a single one */
    CORE_LINK_REASONS_MAX = 8,   /* endpoints that a text names, the first ones */
    CORE_LINK_REASON_BYTES = 96, /* of the reason of one of several */
    CORE_LINK_TEXT_BYTES = 512   /* of all of them */
};

typedef struct core_link {
    const core_config_t *config;
    char ns[TMQ_NAME_LENGTH_MAX + 1];
    char name[65];
    uint64_t jitter; /* state of a small generator */
    core_link_stage_t stage;
    unsigned news; /* of core_link_news_t */
    bool dropped;  /* to be ended, because of drop_text */
    char drop_text[192];
    uint64_t connection; /* number of the newest */
    size_t endpoint;
    int64_t up_since_ms;
    int64_t due_ms;    /* when the stage's patience, or the heartbeat's interval, ends */
    int64_t now_ms;    /* newest time that was heard of */
    unsigned failures; /* rounds over all endpoints in a row */
    size_t tried;      /* endpoints since the last pause */
    unsigned missed;   /* heartbeats without any message since */
    bool hello_due;
    int64_t begun_ms; /* when the newest connection was */
    int64_t reach_ms; /* that it took to its peer, as far as that is known */
    bool greeted;     /* the newest connection's handshake is done */
    int64_t hello_ms; /* when the hello left */
    bool heard;       /* something was received since the last heartbeat */
    int64_t heard_ms; /* when the newest message came */
    uint8_t token[16];
    tmq_broker_info_t info;
    core_rights_t rights;
    size_t info_endpoint;
    uint32_t heartbeat_ms;
    int code; /* why there is no link, TMQ_OK when there is one */
    char text[CORE_LINK_TEXT_BYTES];
    char hint[160]; /* what one may do about it, or empty */
    char reasons[CORE_LINK_REASONS_MAX][CORE_LINK_REASON_BYTES]; /* of several endpoints, since the
                                                                    last welcome */
    bool absent;                                                 /* certainly nobody is there */
    uint64_t changes;                                            /* of what code and text say */
    uint64_t connects;                                           /* welcomes */
} core_link_t;

/* config is borrowed. */
void core_link_init (core_link_t *self, const core_config_t *config, int64_t now_ms);
void core_link_hear_time (core_link_t *self, int64_t now_ms);
/* Enough for jitter. */
uint64_t core_link_random (core_link_t *self);

bool core_link_has_connection (const core_link_t *self);
/* The broker has welcomed us, and nothing went wrong since. */
bool core_link_is_up (const core_link_t *self);

/* The handshake of the connection is done: somebody is there, and has his time for an answer. */
void core_link_greet (core_link_t *self);
/* The peer is reached, and its handshake is to begin: how long that took tells how far it is. */
void core_link_reach (core_link_t *self);
/* The connection ended. code: see core_link_failed. */
void core_link_ended (core_link_t *self, int code, const char *text);
/* The connection could not be made, because certainly nobody is there. */
void core_link_absent (core_link_t *self, const char *text, const char *hint);
/* Nobody was there, and everything that was open has ended (fail_fast). */
bool core_link_is_absent (const core_link_t *self);
/* One of the endpoints answered last that its store is out of reach: these words, else NULL. */
const char *core_link_store_away (const core_link_t *self);
/* Somebody needs it: with fail_fast the endpoints are tried at once. */
void core_link_hurry (core_link_t *self);
/* The broker or our memory did something wrong: the link ends with the next core_link_settle. */
void core_link_drop (core_link_t *self, int code, const char *text);
/* The broker has forgotten the link, or never knew it: begin again on the same connection. */
void core_link_again (core_link_t *self);
void core_link_close (core_link_t *self);
/* Says goodbye next; closes at once if there is nobody to say it to. */
void core_link_leave (core_link_t *self);
/* The hello is being sent. */
void core_link_say_hello (core_link_t *self);
/* The answer to the hello. False if it is none; welcomed says whether the link is up now. */
bool core_link_hello_reply (core_link_t *self, const Taskmq__Reply *reply, bool *welcomed);
/* A message came. */
void core_link_heard (core_link_t *self);
/* Judges the stage's patience; true if a heartbeat is due. */
bool core_link_tick (core_link_t *self);
/* When core_link_tick has something to do, CORE_NEVER for never. */
int64_t core_link_next_due (const core_link_t *self);
/* Carries out a drop, and gives and clears the news. */
unsigned core_link_settle (core_link_t *self);

#endif
