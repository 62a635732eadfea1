/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the gateway is told: gateway.conf (lines "key = value", comments with #), then the command
 * line, which wins. Unknown keys and values out of range are errors, with their line. */
#ifndef TASKMQ_GATEWAY_CONFIG_H
#define TASKMQ_GATEWAY_CONFIG_H

#include <limits.h>
#include <stdio.h>

#include "auth/origin.h"
#include "base/settings.h"
#include "log/log.h"
#include "profile.h"

enum { CONFIG_ERROR_SIZE = PATH_MAX + 512 };

typedef struct config {
    char data[PATH_MAX];     /* the directory of the gateway's files */
    char file[PATH_MAX];     /* gateway.conf, or what -c names */
    char tokens[PATH_MAX];   /* gateway.tokens */
    char token[PATH_MAX];    /* gateway.token, with the first one */
    char key[PATH_MAX];      /* gateway.key: seals what is handed out */
    char endpoint[PATH_MAX]; /* gateway.endpoint: where it listens */
    char tools[PATH_MAX];    /* tools.json, or what --tools or the key names */
    bool tools_told;         /* … which then has to be there */
    settings_t settings;
    names_t listen;
    names_t endpoints; /* of the broker; none: those of data, or the library looks for them */
    const char *saved; /* the name of a saved connection to the broker; NULL: none */
    names_t hosts;
    names_t origins;
    names_t authorization_servers; /* where tokens for the proxy come from */
    const char *proxy_secret;      /* path of the file; NULL: no proxy is believed */
    bool behind_proxy;
    bool no_auth;
    log_level_t log_level;
    bool log_json;
    profile_t profile; /* that texts point into */
} config_t;

/* Defaults, and where files lie. data may be NULL: the nearest .taskmq directory from the working
 * directory upward that is ours. False: error says why. */
bool config_init (config_t *out, const char *data, char error[CONFIG_ERROR_SIZE]);
/* Reads self->file. must: it is an error if it is not there. */
bool config_read (config_t *self, bool must, char error[CONFIG_ERROR_SIZE]);
/* One key. text must live as long as the config. */
bool config_set (config_t *self, const char *key, const char *text, char error[CONFIG_ERROR_SIZE]);
/* What keys together may not say, once all are there. */
bool config_judge (config_t *self, char error[CONFIG_ERROR_SIZE]);
/* Every key with its value. */
void config_print (const config_t *self, FILE *out);

#endif
