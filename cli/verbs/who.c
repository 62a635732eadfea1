/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* taskctl whoami: who we are for the broker. */
#include <stdio.h>

#include "base/clock.h"
#include "base/exit.h"
#include "link/connect.h"
#include "screen/items.h"
#include "screen/members.h"
#include "screen/output.h"
#include "screen/table.h"
#include "units.h"
#include "verbs/verbs.h"

static void put_fact (const app_t *app, const char *name, const char *text)
{
    if (!*text)
        return;
    printf ("%s%-12s%s  ", paint_dim (app), name, paint_end (app));
    print_text (app, stdout, text);
    fputc ('\n', stdout);
}

static void put_facts (const app_t *app, const tmq_whoami_t *who, const tmq_broker_info_t *info)
{
    char until[TIME_TEXT_SIZE] = "", relative[UNITS_TEXT_SIZE], text[80] = "";
    if (who->key_until && time_format (until, (int64_t) who->key_until))
        snprintf (text, sizeof text, "%s (%s)", until,
                  time_format_relative (relative, (int64_t) who->key_until, (int64_t) wall_ms ()));
    put_fact (app, "identity", who->identity);
    put_fact (app, "principal", who->principal);
    put_fact (app, "roles", who->roles);
    put_fact (app, "namespace", who->ns);
    put_fact (app, "key", who->key);
    put_fact (app, "key ends", text);
    put_fact (app, "endpoint", info->endpoint);
    put_fact (app, "told by", app_told_by (app, who));
    put_fact (app, "broker", info->broker);
    put_fact (app, "its key", who->server_key);
}

static void write_who (const app_t *app, const tmq_whoami_t *who, const tmq_broker_info_t *info)
{
    items_t items;
    char until[TIME_TEXT_SIZE] = "";
    if (who->key_until)
        time_format (until, (int64_t) who->key_until);
    items_begin (&items, app, true);
    json_writer_t *writer = items_open (&items);
    json_write_object_begin (writer);
    member_text (writer, "identity", who->identity);
    member_text (writer, "principal", who->principal);
    member_text (writer, "roles", who->roles);
    member_text (writer, "namespace", who->ns);
    member_text (writer, "key", who->key);
    member_text (writer, "key_until", until);
    member_text (writer, "endpoint", info->endpoint);
    member_text (writer, "told_by", who->told_by);
    member_text (writer, "broker", info->broker);
    member_text (writer, "server_key", who->server_key);
    json_write_object_end (writer);
    items_close (&items);
    items_end (&items, NULL);
}

int show_whoami (app_t *app)
{
    tmq_whoami_t who = {.size = sizeof who};
    tmq_broker_info_t info;
    tmq_client_whoami (&who, app->client);
    tmq_client_info (&info, app->client);
    if (app_wants_json (app))
        write_who (app, &who, &info);
    else
        put_facts (app, &who, &info);
    return EXIT_OK;
}

int run_whoami (app_t *app)
{
    const int code = app_connect (app);
    return code ? code : show_whoami (app);
}
