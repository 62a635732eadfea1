/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Who looks for tasks: lists, counts and searches with any filters together, page by page, while
 * tasks come, change and go and while the broker is killed and starts again between two pages.
 *
 * The model is what was durable while the question was open. A task that matched all the time is
 * shown, once. One that never matched is not. A count lies between the two. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster.h"
#include "core/data/extra.h"
#include "core/data/turn.h"
#include "turn_files.h"

enum {
    WORDS = 8,
    AGENTS = 3,
    FILES = 3,
    KINDS = 3,
    TEAMS = 2,
    PAUSE_MS_MAX = 300,
    PAGE_MAX = 6,
    TEXT_BYTES = 40,
    OFTEN = 350, /* per mille: that a filter has a condition of a kind */
    SELDOM = 120,
    PLAIN = 3 /* every so manieth has so much fewer conditions */
};

static const char *const words[WORDS] = {"amber", "basalt", "cedar", "delta",
                                         "ember", "flint",  "amid",  "heron"};
static const char *const agents[AGENTS] = {"ada", "bob", "cyd"};
static const char *const files[FILES] = {"src/a.c", "src/b.c", "README"};
static const char *const kinds[KINDS] = {"red", "green", "blue"};
static const char *const teams[TEAMS] = {"day", "night"};
static const char *const identities[] = {"uid:0", "uid:1"};
static char kind_key[] = "kind";
static char team_key[] = "team";

/* What tasks are found by. */

void seeker_fill_payload (const known_t *task, uint8_t *out)
{
    uint32_t at = 0;
    for (uint32_t i = 0; at < task->payload_bytes; i++) {
        const char *word = words[(task->content * 7 + i * (task->content % 3)) % WORDS];
        for (size_t k = 0; word[k] != '\0' && at < task->payload_bytes; k++) {
            out[at++] = (uint8_t) word[k];
        }
        if (at < task->payload_bytes) {
            out[at++] = ' ';
        }
    }
}

const char *seeker_word (uint32_t index, uint32_t attempt, uint32_t number)
{
    return words[(index + attempt * 3 + number * 5) % WORDS];
}

static const char *agent_of (uint32_t index, uint32_t attempt, uint32_t number)
{
    uint32_t agent = (index + attempt + number) % (AGENTS + 1);
    return agent < AGENTS ? agents[agent] : "";
}

static bool touches (uint32_t index, uint32_t attempt, uint32_t number, uint32_t file)
{
    return ((index * 7 + attempt * 5 + number * 3) >> file & 1) != 0;
}

size_t seeker_fill_turn (uint32_t index, uint32_t attempt, Taskmq__Turn *turn, uint8_t *out)
{
    bytes_t packed = BYTES_INIT;
    turn->agent = (char *) (uintptr_t) agent_of (index, attempt, turn->number);
    for (uint32_t i = 0; i < FILES; i++) {
        if (touches (index, attempt, turn->number, i)) {
            turn_file_append (&packed, TMQ_FILE_OP_WRITE, files[i]);
        }
    }
    size_t length = packed.length;
    if (length > 0) {
        memcpy (out, packed.data, length);
    }
    turn->files_bytes = (uint32_t) length;
    bytes_free (&packed);
    return length;
}

static void add_label (after_room_t *room, size_t *count, char *key, const char *value)
{
    Taskmq__Label *label = &room->labels[*count];
    taskmq__label__init (label);
    label->key = key;
    label->value = (char *) (uintptr_t) value;
    room->label_list[(*count)++] = label;
}

size_t seeker_fill_labels (const known_t *task, after_room_t *room)
{
    uint32_t index = model_index (task->id.bytes);
    size_t count = 0;
    if (index % 4 < KINDS) {
        add_label (room, &count, kind_key, kinds[index % 4]);
    }
    if (index / 4 % 3 < TEAMS) {
        add_label (room, &count, team_key, teams[index / 4 % 3]);
    }
    return count;
}

const char *seeker_draw_kind (rng_t *rng)
{
    return kinds[rng_below (rng, KINDS)];
}

/* Texts. */

static bool is_word (const char *text, size_t length, const search_term_t *term)
{
    return term->prefix ? length >= term->length && memcmp (text, term->text, term->length) == 0
                        : length == term->length && memcmp (text, term->text, length) == 0;
}

static bool payload_has (const known_t *task, const search_term_t *term)
{
    uint8_t payload[SIM_PAYLOAD_MAX];
    uint32_t begin = 0;
    bool found = false;
    seeker_fill_payload (task, payload);
    for (uint32_t i = 0; i <= task->payload_bytes; i++) {
        if (i == task->payload_bytes || payload[i] == ' ') {
            found = found || is_word ((const char *) payload + begin, i - begin, term);
            begin = i + 1;
        }
    }
    return found;
}

static bool task_has (const known_t *task, uint32_t turns, const search_term_t *term)
{
    uint32_t index = model_index (task->id.bytes);
    bool found = payload_has (task, term);
    for (uint32_t i = 0; !found && i < turns && i < task->turns; i++) {
        const char *said = seeker_word (index, task->told[i].attempt, task->told[i].number);
        const char *agent = agent_of (index, task->told[i].attempt, task->told[i].number);
        found = is_word (said, strlen (said), term) || is_word (agent, strlen (agent), term);
    }
    return found;
}

bool seeker_finds (const known_t *task, const record_t *record, const search_query_t *query)
{
    uint32_t turns = 0;
    bool all = true;
    if (record->extra != NULL) {
        extra_t *extra = extra_new (record->extra);
        turns = extra->fields->turns;
        extra_free (extra);
    }
    for (size_t i = 0; i < query->count; i++) {
        bool one = task_has (task, turns, &query->terms[i]);
        while (query->terms[i].or_next && i + 1 < query->count) {
            one = task_has (task, turns, &query->terms[++i]) || one;
        }
        all = all && one;
    }
    return all;
}

/* Questions. */

typedef enum asking { ASK_LIST, ASK_COUNT, ASK_SEARCH, ASK_SEARCH_COUNT, ASKINGS } asking_t;

typedef struct question {
    asking_t asking;
    const char *queue; /* NULL, and 0: not asked for */
    unsigned statuses; /* a bit for each */
    const char *kind;
    const char *team;
    const char *agent;
    const char *file;
    const char *owner;
    uint32_t parent; /* its index + 1 */
    int64_t since;
    int64_t until;
    bool ranked;
    uint32_t limit;
    char text[TEXT_BYTES];
    search_query_t query;
} question_t;

typedef struct seeker {
    bool busy;
    question_t question;
    bool always[MODEL_TASKS_MAX]; /* what matched since it was asked, … */
    bool ever[MODEL_TASKS_MAX];   /* … at some time since then */
    bool shown[MODEL_TASKS_MAX];
    bool behind;  /* some page said so */
    int64_t last; /* number of the last one that was shown */
    int64_t cleaned_ms;
    uint32_t pages;
} seeker_t;

static bool has_mark (const known_t *task, const char *agent, const char *file)
{
    uint32_t index = model_index (task->id.bytes);
    bool by_agent = agent == NULL;
    bool by_file = file == NULL;
    for (uint32_t i = 0; i < task->turns; i++) {
        uint32_t attempt = task->told[i].attempt;
        uint32_t number = task->told[i].number;
        by_agent = by_agent || strcmp (agent_of (index, attempt, number), agent) == 0;
        for (uint32_t k = 0; file != NULL && k < FILES; k++) {
            by_file = by_file || (files[k] == file && touches (index, attempt, number, k));
        }
    }
    return by_agent && by_file;
}

static bool has_label (const record_t *record, const char *key, const char *value)
{
    label_t label = {key, value};
    return value == NULL || record_has_label (record, &label);
}

/* What is durable of it is what is asked for. */
static bool matches (const world_t *world, uint32_t index, const question_t *question,
                     const char *ns)
{
    const known_t *task = &world->tasks[index];
    const record_t *record = world->model->durable.rows[index].record;
    if (record == NULL || strcmp (record->ns, ns) != 0) {
        return false;
    }
    bool searches = question->asking == ASK_SEARCH || question->asking == ASK_SEARCH_COUNT;
    return (question->queue == NULL || strcmp (record->queue, question->queue) == 0) &&
           (question->statuses == 0 || (question->statuses >> record->status & 1) != 0) &&
           has_label (record, kind_key, question->kind) &&
           has_label (record, team_key, question->team) &&
           has_mark (task, question->agent, question->file) &&
           (question->owner == NULL || strcmp (record->owner, question->owner) == 0) &&
           (question->parent == 0 || task->parent == question->parent) &&
           (question->since == 0 || record->created_at >= question->since) &&
           (question->until == 0 || record->created_at < question->until) &&
           (!searches || seeker_finds (task, record, &question->query));
}

/* Mostly what some task has, so that most questions find something. */
static void draw_conditions (client_t *client, question_t *question)
{
    world_t *world = client->world;
    rng_t *rng = &world->rng;
    const known_t *task = submitter_draw_known (client);
    uint32_t index = task == NULL ? 0 : model_index (task->id.bytes);
    const record_t *record = world->model->durable.rows[index].record;
    uint32_t fewer = rng_below (rng, PLAIN) == 0 ? PLAIN : 1;
    uint32_t often = OFTEN / fewer;
    uint32_t seldom = SELDOM / fewer;
    if (rng_chance (rng, often) && task != NULL) {
        question->queue = task->queue;
    }
    if (rng_chance (rng, often)) {
        question->statuses = 1u << (record == NULL ? TMQ_STATUS_QUEUED : record->status);
        question->statuses |= 1u << (TMQ_STATUS_QUEUED + (int) rng_below (rng, 6));
    }
    if (rng_chance (rng, often)) {
        question->kind = kinds[rng_chance (rng, 700) ? index % KINDS : rng_below (rng, KINDS)];
    }
    if (rng_chance (rng, seldom)) {
        question->team = teams[rng_below (rng, TEAMS)];
    }
    if (rng_chance (rng, often)) {
        question->agent = agents[rng_below (rng, AGENTS)];
    }
    if (rng_chance (rng, often)) {
        question->file = files[rng_below (rng, FILES)];
    }
    if (rng_chance (rng, seldom)) {
        question->owner = identities[rng_below (rng, 2)];
    }
    if (rng_chance (rng, seldom) && task != NULL && task->parent > 0) {
        question->parent = task->parent;
    }
    if (rng_chance (rng, seldom) && record != NULL) {
        question->since = record->created_at;
    }
    if (rng_chance (rng, seldom) && record != NULL) {
        question->until = record->created_at + 10000;
    }
}

static void draw_text (rng_t *rng, question_t *question)
{
    char error[SEARCH_ERROR_SIZE];
    const char *one = words[rng_below (rng, WORDS)];
    const char *other =
        rng_chance (rng, 300) ? agents[rng_below (rng, AGENTS)] : words[rng_below (rng, WORDS)];
    uint32_t dice = rng_below (rng, 10);
    if (dice < 4) {
        snprintf (question->text, TEXT_BYTES, "%s", other);
    } else if (dice < 6) {
        snprintf (question->text, TEXT_BYTES, "%s %s", one, other);
    } else if (dice < 8) {
        snprintf (question->text, TEXT_BYTES, "%s OR %s", one, other);
    } else {
        snprintf (question->text, TEXT_BYTES, "am* %s", other);
    }
    search_query_parse (&question->query, question->text, error);
}

static void draw_question (client_t *client, question_t *question)
{
    rng_t *rng = &client->world->rng;
    bool indexed = client->world->options.tables > 0;
    *question = (question_t){.asking = (asking_t) rng_below (rng, indexed ? ASKINGS : ASK_SEARCH)};
    question->limit = 1 + rng_below (rng, PAGE_MAX);
    draw_conditions (client, question);
    if (question->asking >= ASK_SEARCH) {
        draw_text (rng, question);
        question->ranked = question->asking == ASK_SEARCH && rng_chance (rng, 200);
    }
}

/* Asking. */

typedef struct filter_room {
    Taskmq__Filter filter;
    Taskmq__Label labels[2];
    Taskmq__Label *label_list[2];
    char *texts[4];
    uint32_t statuses[TMQ_STATUS_CANCELLED];
    ProtobufCBinaryData parent;
} filter_room_t;

static size_t put_text (char **place, const char *text)
{
    *place = (char *) (uintptr_t) text;
    return text != NULL;
}

static void put_label (filter_room_t *room, char *key, const char *value)
{
    Taskmq__Filter *filter = &room->filter;
    if (value == NULL) {
        return;
    }
    Taskmq__Label *label = &room->labels[filter->n_labels];
    taskmq__label__init (label);
    label->key = key;
    label->value = (char *) (uintptr_t) value;
    room->label_list[filter->n_labels++] = label;
    filter->labels = room->label_list;
}

static void fill_filter (world_t *world, const question_t *question, filter_room_t *room)
{
    Taskmq__Filter *filter = &room->filter;
    taskmq__filter__init (filter);
    filter->n_queues = put_text (&room->texts[0], question->queue);
    filter->queues = &room->texts[0];
    filter->n_agents = put_text (&room->texts[1], question->agent);
    filter->agents = &room->texts[1];
    filter->n_files = put_text (&room->texts[2], question->file);
    filter->files = &room->texts[2];
    filter->n_owners = put_text (&room->texts[3], question->owner);
    filter->owners = &room->texts[3];
    put_label (room, kind_key, question->kind);
    put_label (room, team_key, question->team);
    for (uint32_t i = TMQ_STATUS_QUEUED; i <= TMQ_STATUS_CANCELLED; i++) {
        if ((question->statuses >> i & 1) != 0) {
            room->statuses[filter->n_statuses++] = i;
        }
    }
    filter->statuses = room->statuses;
    filter->created_since = (uint64_t) question->since;
    filter->created_until = (uint64_t) question->until;
    if (question->parent > 0) {
        room->parent.data = world->tasks[question->parent - 1].id.bytes;
        room->parent.len = sizeof (tmq_id_t);
        filter->parents = &room->parent;
        filter->n_parents = 1;
    }
}

static void send (client_t *client, const ProtobufCBinaryData *cursor)
{
    seeker_t *self = client->state;
    const question_t *question = &self->question;
    filter_room_t room;
    Taskmq__List list = TASKMQ__LIST__INIT;
    Taskmq__Count count = TASKMQ__COUNT__INIT;
    Taskmq__Search search = TASKMQ__SEARCH__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    fill_filter (client->world, question, &room);
    list.filter = count.filter = search.filter = &room.filter;
    search.text = (char *) (uintptr_t) question->text;
    search.count = question->asking == ASK_SEARCH_COUNT;
    search.ranked = question->ranked;
    list.limit = question->limit;
    search.limit = search.count ? 0 : question->limit;
    if (cursor != NULL) {
        list.cursor = search.cursor = *cursor;
    }
    if (question->asking == ASK_LIST) {
        request.op_case = TASKMQ__REQUEST__OP_LIST;
        request.list = &list;
    } else if (question->asking == ASK_COUNT) {
        request.op_case = TASKMQ__REQUEST__OP_COUNT;
        request.count = &count;
    } else {
        request.op_case = TASKMQ__REQUEST__OP_SEARCH;
        request.search = &search;
    }
    client_request (client, &request, NULL, 0);
}

/* The engine has not heard yet that the newest change is durable, so an answer may be without. It
 * hears of several commits at once. */
static bool is_fresh (const world_t *world, uint32_t index)
{
    return world->tasks[index].changed_by > world->heard;
}

void seeker_heard (world_t *world, uint64_t batch)
{
    const host_t *host = world->broker->host;
    bool beyond = batch != 0 && batch != world->committed_no; /* the newest is not known yet */
    if (host == NULL || host->epoch == world->database->shard.epoch) {
        world->heard = world->commits - (beyond && world->commits > 0);
    }
}

static void begin (client_t *client)
{
    seeker_t *self = client->state;
    world_t *world = client->world;
    *self = (seeker_t){.busy = true, .last = INT64_MAX, .cleaned_ms = self->cleaned_ms};
    draw_question (client, &self->question);
    for (uint32_t i = 0; i < world->tasks_count; i++) {
        bool now = matches (world, i, &self->question, client->ns);
        self->always[i] = now && !is_fresh (world, i);
        self->ever[i] = now || is_fresh (world, i);
    }
    send (client, NULL);
}

/* What has become durable. */

static void changed (world_t *world, const uint8_t id[16])
{
    uint32_t index = model_index (id);
    if (index >= world->tasks_count) {
        return;
    }
    known_t *task = &world->tasks[index];
    const record_t *record = world->model->durable.rows[index].record;
    task->changed_by = world->commits;
    task->number = record != NULL ? record->number : task->number;
    for (uint32_t i = 0; i < world->clients_count; i++) {
        const client_t *client = &world->clients[i];
        seeker_t *self = client->state;
        if (client->actor == &seeker_actor && self != NULL && self->busy) {
            bool now = matches (world, index, &self->question, client->ns);
            self->always[index] = self->always[index] && now;
            self->ever[index] = self->ever[index] || now;
        }
    }
}

void seeker_committed (world_t *world, const batch_t *batch)
{
    world->commits++;
    world->committed_no = batch->no;
    for (size_t i = 0; i < batch->records_count; i++) {
        changed (world, batch->records[i]->id.bytes);
    }
    for (size_t i = 0; i < batch->removals_count; i++) {
        changed (world, batch->removals[i].id.bytes);
    }
}

/* Answers. */

/* Past its time: it is shown until it is swept, or not any more. */
static bool is_over (const world_t *world, uint32_t index)
{
    const record_t *record = world->model->durable.rows[index].record;
    return record != NULL && record->expires_at > 0 && record->expires_at <= world->wall_latest_ms;
}

static void check_shown (client_t *client, const Taskmq__Task *shown)
{
    seeker_t *self = client->state;
    world_t *world = client->world;
    const known_t *task = check_find (world, &shown->task_id);
    if (task == NULL) {
        return;
    }
    uint32_t index = model_index (task->id.bytes);
    if (self->shown[index]) {
        sim_fail (world, "R3: task %u is shown twice", index);
    } else if (!self->ever[index]) {
        sim_fail (world, "R3: task %u is shown, and never was what is asked for", index);
    } else if (!self->question.ranked && task->number >= self->last) {
        sim_fail (world, "R3: task %u is shown out of order", index);
    }
    self->shown[index] = true;
    self->last = task->number;
}

static void check_end (client_t *client)
{
    seeker_t *self = client->state;
    world_t *world = client->world;
    self->busy = false;
    for (uint32_t i = 0; i < world->tasks_count && !self->behind && !self->question.ranked; i++) {
        if (self->always[i] && !self->shown[i] && !is_over (world, i)) {
            sim_fail (world, "R3: task %u matched all the time and is on none of %u pages", i,
                      self->pages);
        }
    }
}

static void check_count (client_t *client, uint64_t count)
{
    seeker_t *self = client->state;
    world_t *world = client->world;
    uint64_t least = 0;
    uint64_t most = 0;
    for (uint32_t i = 0; i < world->tasks_count; i++) {
        least += self->always[i] && !is_over (world, i);
        most += self->ever[i];
    }
    self->busy = false;
    if (count > most || (count < least && !self->behind)) {
        sim_fail (world, "R3: %llu tasks are counted; %llu matched all the time, %llu at some time",
                  (unsigned long long) count, (unsigned long long) least,
                  (unsigned long long) most);
    }
}

static void found (client_t *client, const Taskmq__FoundPage *page)
{
    seeker_t *self = client->state;
    self->behind = self->behind || page->behind || page->building;
    for (size_t i = 0; i < page->n_found && !client->world->failed; i++) {
        check_shown (client, page->found[i]->task);
    }
    if (self->question.asking == ASK_SEARCH_COUNT) {
        check_count (client, page->count);
    } else if (page->next.len > 0) {
        send (client, &page->next);
    } else {
        check_end (client);
    }
}

static void listed (client_t *client, const Taskmq__TaskPage *page)
{
    for (size_t i = 0; i < page->n_tasks && !client->world->failed; i++) {
        check_shown (client, page->tasks[i]);
    }
    if (page->next.len > 0) {
        send (client, &page->next);
    } else {
        check_end (client);
    }
}

/* The actor. */

static void seeker_start (client_t *client)
{
    if (client->state == NULL) {
        client->state = calloc (1, sizeof (seeker_t));
    }
}

static void seeker_stop (client_t *client)
{
    seeker_t *self = client->state;
    if (self != NULL) {
        self->busy = false;
    }
}

static void seeker_tick (client_t *client)
{
    seeker_t *self = client->state;
    client->next_ms = client->world->mono_ms + rng_between (&client->world->rng, 1, PAUSE_MS_MAX);
    if (!self->busy && client_open (client) == 0 && !cleaner_order (client, &self->cleaned_ms)) {
        begin (client);
    }
}

static void seeker_reply (client_t *client, pending_t *pending, const Taskmq__Reply *reply,
                          const uint8_t *body, size_t body_bytes)
{
    seeker_t *self = client->state;
    (void) body;
    (void) body_bytes;
    self->pages++;
    if (reply->code != TMQ_OK) {
        sim_fail (client->world, "a page is answered %u %s", reply->code, reply->text);
    } else if (pending->op == TASKMQ__REQUEST__OP_CLEANUP) {
        ; /* what it removes is judged with its batch */
    } else if (pending->op == TASKMQ__REQUEST__OP_LIST && reply->page != NULL) {
        listed (client, reply->page);
    } else if (pending->op == TASKMQ__REQUEST__OP_SEARCH && reply->found_page != NULL) {
        found (client, reply->found_page);
    } else if (reply->counted != NULL) {
        check_count (client, reply->counted->count);
    } else {
        sim_fail (client->world, "a page is answered without one");
    }
}

const actor_t seeker_actor = {.name = "seeker",
                              .start = seeker_start,
                              .stop = seeker_stop,
                              .tick = seeker_tick,
                              .reply = seeker_reply};
