/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A scrape: what the brokers say of their numbers, then our own. */
#include <stdlib.h>
#include <string.h>

#include "exposition.h"
#include "rest/handlers.h"
#include "rest/metrics.h"
#include "timestamp.h"

enum { FRESH_MS = 2000 /* a broker's numbers are asked for no more often */ };

/* A scrape asks for one namespace of the token after the other. */
typedef struct scrape {
    size_t next;
} scrape_t;

static scraped_t *scraped_of (service_t *service, const link_t *link)
{
    for (size_t i = 0; i < service->links_count; i++)
        if (service->links[i] == link)
            return &service->scraped[i];
    return NULL;
}

void scraped_clear (scraped_t *self)
{
    tmq_stats_free (self->stats);
    for (size_t i = 0; i < self->pages_count; i++)
        tmq_queue_report_free (self->pages[i]);
    *self = (scraped_t){.at_ms = 0};
}

static bool wants_open (const exchange_t *exchange)
{
    const char *accept = http_request_field (exchange->request, "accept");
    return accept != NULL && strstr (accept, "application/openmetrics-text") != NULL;
}

static void answer_scrape (exchange_t *exchange)
{
    service_t *service = service_of (exchange);
    exposition_space_t spaces[TOKEN_NAMESPACES_MAX];
    size_t count = 0;
    const bool open = wants_open (exchange);
    char broker[65] = "";
    response_t response;
    response_init (&response, 200);
    response_field (&response, "Vary", "Accept");
    response_field (&response, "Content-Type",
                    open ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                         : "text/plain; version=0.0.4; charset=utf-8");
    for (size_t i = 0; i < exchange->principal->namespaces_count; i++) {
        const link_t *link = service_link (service, exchange->principal->namespaces[i]);
        const scraped_t *scraped = link != NULL ? scraped_of (service, link) : NULL;
        link_numbers_t numbers = {.up = false};
        if (scraped == NULL || scraped->stats == NULL)
            continue;
        link_count (link, &numbers);
        if (!numbers.up)
            continue; /* what was true is not what is */
        link_broker (link, broker);
        spaces[count++] = (exposition_space_t){.ns = link_ns (link),
                                               .stats = scraped->stats,
                                               .pages = scraped->pages,
                                               .pages_count = scraped->pages_count};
    }
    if (count > 0)
        exposition_broker (&response.body, spaces[0].stats, broker);
    exposition_queues (&response.body, spaces, count);
    exposition_serving (&response.body, spaces, count);
    metrics_write_own (&response.body, service);
    metrics_write_process (&response.body, service);
    if (open) {
        bytes_t text = response.body;
        response.body = (bytes_t) BYTES_INIT;
        if (bytes_text (&text) != NULL)
            metrics_open (&response.body, (const char *) text.data);
        bytes_free (&text);
    }
    answer (exchange, &response);
}

static void scrape_next (exchange_t *exchange);

static void queues_came (void *context, tmq_completion_t *completion);

static void ask_queues (exchange_t *exchange, const char *cursor)
{
    tmq_error_t error;
    if (link_queues (exchange->link, call_of (exchange, queues_came), cursor, EXPOSITION_QUEUES_MAX,
                     &error) != TMQ_OK)
        scrape_next (exchange);
}

static void queues_came (void *context, tmq_completion_t *completion)
{
    exchange_t *exchange = context;
    scraped_t *scraped = scraped_of (service_of (exchange), exchange->link);
    tmq_queue_report_t *page = completion->queues;
    if (completion->code != TMQ_OK || scraped == NULL ||
        scraped->pages_count == SCRAPED_PAGES_MAX) {
        scrape_next (exchange);
        return;
    }
    completion->queues = NULL;
    scraped->pages[scraped->pages_count++] = page;
    scraped->queues += page->count;
    if (page->next[0] != '\0' && scraped->queues < EXPOSITION_QUEUES_MAX)
        ask_queues (exchange, page->next);
    else
        scrape_next (exchange);
}

/* A broker that does not answer is no reason to tell nothing. */
static void stats_came (void *context, tmq_completion_t *completion)
{
    exchange_t *exchange = context;
    scraped_t *scraped = scraped_of (service_of (exchange), exchange->link);
    if (completion->code != TMQ_OK || scraped == NULL) {
        scrape_next (exchange);
        return;
    }
    scraped_clear (scraped);
    scraped->stats = completion->stats;
    scraped->at_ms = clock_ms (CLOCK_MONOTONIC);
    completion->stats = NULL;
    ask_queues (exchange, NULL);
}

static void scrape_next (exchange_t *exchange)
{
    service_t *service = service_of (exchange);
    scrape_t *scrape = exchange->state;
    const principal_t *principal = exchange->principal;
    tmq_error_t error;
    while (scrape->next < principal->namespaces_count) {
        exchange->link = service_link (service, principal->namespaces[scrape->next++]);
        const scraped_t *scraped = scraped_of (service, exchange->link);
        if (scraped != NULL &&
            (scraped->stats == NULL || clock_ms (CLOCK_MONOTONIC) - scraped->at_ms >= FRESH_MS) &&
            link_stats (exchange->link, call_of (exchange, stats_came), &error) == TMQ_OK)
            return;
    }
    answer_scrape (exchange);
}

void metrics_show (exchange_t *exchange)
{
    if (keep_state (exchange, sizeof (scrape_t), free) != NULL)
        scrape_next (exchange);
}
