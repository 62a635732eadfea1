/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The gateway as a resource of OAuth 2.0 (RFC 9728): where a client gets the token that the proxy
 * before us asks for. */
#include <stdio.h>
#include <string.h>

#include "rest/handlers.h"
#include "rest/route.h"

enum { ADDRESS_MAX = 320 };

void resource_show (exchange_t *exchange)
{
    const service_t *service = service_of (exchange);
    const names_t *servers = &service->authorization_servers;
    const char *host = http_request_field (exchange->request, "host");
    const char *path = exchange->route->path + strlen (RESOURCE_PATH);
    char address[ADDRESS_MAX];
    response_t response;
    if (servers->count == 0 || host == NULL) {
        answer_problem (exchange,
                        &(problem_t){.kind = PROBLEM_NOT_FOUND,
                                     .detail = "there is no authorization_server; tokens come from "
                                               "'taskmq-gateway token add'"});
        return;
    }
    snprintf (address, sizeof address, "%s://%.255s%s", service->sessions.secure ? "https" : "http",
              host, path);
    json_writer_t writer = answer_json (&response);
    json_write_object_begin (&writer);
    json_write_key (&writer, "resource");
    json_write_text (&writer, address);
    json_write_key (&writer, "authorization_servers");
    json_write_array_begin (&writer);
    for (size_t i = 0; i < servers->count; i++)
        json_write_text (&writer, servers->list[i]);
    json_write_array_end (&writer);
    json_write_key (&writer, "bearer_methods_supported");
    json_write_array_begin (&writer);
    json_write_text (&writer, "header");
    json_write_array_end (&writer);
    json_write_object_end (&writer);
    json_write_newline (&writer);
    answer (exchange, &response);
}
