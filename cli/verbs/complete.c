/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* taskctl completion, and the hidden taskctl complete that its scripts ask.
 *
 * The scripts know nothing of the commands: they hand over the words of the line, and get what
 * could stand in the place of the last one, a candidate a line, with a tab and a remark behind it.
 * So all shells complete what the table of commands says, with live ids, queues and labels where a
 * broker answers. Nothing at all means: a file, perhaps. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/exit.h"
#include "link/connect.h"
#include "screen/output.h"
#include "screen/tasks.h"
#include "verbs/saved.h"
#include "verbs/verbs.h"

enum { LIVE_TASKS = 200, TIMEOUT_MS = 1000, ID_FROM = 24 };

/* The line so far. */
typedef struct typed {
    app_t *app;
    const command_t *command;    /* NULL: not typed yet */
    const option_spec_t *option; /* whose value the last word is; NULL: none */
    const char *before;          /* of the word: "--label=", which candidates repeat */
    size_t before_length;
    const char *word;   /* the part that is completed */
    const verb_t *verb; /* of the command; NULL: not typed yet, or it has none */
    size_t operands;    /* of the verb, that are complete */
    const char *session;
} typed_t;

/* Candidates. */

/* A shell puts a candidate into the line as it is: in neither shell nor terminal may it act. */
static bool is_plain (const typed_t *self, const char *candidate)
{
    char *safe = safe_text (self->app, candidate);
    const bool plain =
        strcmp (safe, candidate) == 0 && strpbrk (candidate, " \t\\'\"$`;&|<>()") == NULL;
    free (safe);
    return plain;
}

static void offer (const typed_t *self, const char *candidate, const char *remark)
{
    if (strncmp (candidate, self->word, strlen (self->word)) != 0 || !is_plain (self, candidate))
        return;
    printf ("%.*s%s", (int) self->before_length, self->before, candidate);
    if (remark && *remark) {
        putchar ('\t');
        print_text (self->app, stdout, remark);
    }
    putchar ('\n');
}

static void offer_options (const typed_t *self, const option_spec_t *options)
{
    char name[64];
    for (; options->id != OPT_END; options++) {
        snprintf (name, sizeof name, "--%s", options->name);
        offer (self, name, options->help);
    }
}

static void offer_profiles (const typed_t *self)
{
    size_t count;
    char **names = saved_names (&count);
    for (size_t i = 0; i < count; i++)
        offer (self, names[i], NULL);
    saved_free (names, count);
}

static void offer_commands (const typed_t *self)
{
    for (const command_t *c = self->app->args.grammar->commands; c->name; c++) {
        if (c->group)
            offer (self, c->name, c->summary);
    }
}

static void offer_words (const typed_t *self, const char *const *words)
{
    for (; *words; words++)
        offer (self, *words, NULL);
}

/* The last of several values with commas. */
static typed_t last_of_list (const typed_t *self)
{
    typed_t last = *self;
    const char *comma = strrchr (self->word, ',');
    if (comma) {
        last.word = comma + 1;
        last.before_length = (size_t) (last.word - last.before);
    }
    return last;
}

static void offer_statuses (const typed_t *self)
{
    const typed_t last = last_of_list (self);
    for (int i = TMQ_STATUS_QUEUED; i <= TMQ_STATUS_CANCELLED; i++)
        offer (&last, tmq_status_text ((tmq_status_t) i), NULL);
}

static void offer_columns (const typed_t *self)
{
    const typed_t last = last_of_list (self);
    for (size_t i = 0; task_column_name (i); i++)
        offer (&last, task_column_name (i), NULL);
}

/* Live candidates. */

static bool connect_quickly (const typed_t *self)
{
    self->app->timeout_ms = TIMEOUT_MS;
    return app_connect (self->app) == 0;
}

static void offer_queues (const typed_t *self)
{
    tmq_stats_t *stats;
    if (!connect_quickly (self) ||
        tmq_stats (&stats, self->app->client, TIMEOUT_MS, NULL) != TMQ_OK)
        return;
    for (size_t i = 0; i < stats->queues_count; i++)
        offer (self, stats->queues[i].queue, NULL);
    tmq_stats_free (stats);
}

static tmq_task_list_t *newest_tasks (const typed_t *self)
{
    const tmq_list_query_t query = {.limit = LIVE_TASKS};
    tmq_task_list_t *page = NULL;
    if (connect_quickly (self))
        tmq_list (&page, self->app->client, &query, TIMEOUT_MS, NULL);
    return page;
}

static void offer_ids (const typed_t *self)
{
    tmq_task_list_t *page = newest_tasks (self);
    char id[37];
    char remark[128];
    for (size_t i = 0; page && i < page->count; i++) {
        const tmq_task_t *task = page->tasks[i];
        tmq_id_format (&task->id, id);
        snprintf (remark, sizeof remark, "%s %s", task->queue, tmq_status_text (task->status));
        offer (
            self,
            id + (*self->word && strncmp (id, self->word, strlen (self->word)) == 0 ? 0 : ID_FROM),
            remark);
    }
    tmq_task_list_free (page);
}

/* Shells drop what is offered twice. */
static void offer_labels (const typed_t *self)
{
    tmq_task_list_t *page = newest_tasks (self);
    char label[TMQ_NAME_LENGTH_MAX + TMQ_LABEL_BYTES_MAX + 2];
    for (size_t i = 0; page && i < page->count; i++) {
        const tmq_task_t *task = page->tasks[i];
        for (size_t l = 0; l < task->labels_count; l++) {
            snprintf (label, sizeof label, "%s=%s", task->labels[l].key, task->labels[l].value);
            offer (self, label, NULL);
        }
    }
    tmq_task_list_free (page);
}

static void offer_sessions (const typed_t *self)
{
    tmq_session_report_t *page = NULL;
    if (connect_quickly (self))
        tmq_session_list (&page, self->app->client, NULL, LIVE_TASKS, TIMEOUT_MS, NULL);
    for (size_t i = 0; page && i < page->count; i++)
        offer (self, page->sessions[i].name, page->sessions[i].goal);
    tmq_session_report_free (page);
}

static void offer_schedules (const typed_t *self)
{
    tmq_schedule_report_t *page = NULL;
    if (connect_quickly (self))
        tmq_schedule_list (&page, self->app->client, NULL, LIVE_TASKS, TIMEOUT_MS, NULL);
    for (size_t i = 0; page && i < page->count; i++)
        offer (self, page->schedules[i].name, page->schedules[i].calendar);
    tmq_schedule_report_free (page);
}

static void offer_workers (const typed_t *self)
{
    tmq_worker_list_t *page = NULL;
    if (connect_quickly (self))
        tmq_workers (&page, self->app->client, 0, LIVE_TASKS, false, TIMEOUT_MS, NULL);
    for (size_t i = 0; page && i < page->count; i++)
        offer (self, page->workers[i].name, page->workers[i].host);
    tmq_worker_list_free (page);
}

/* Those of the session that the line has named, or the namespace's. */
static void offer_keys (const typed_t *self)
{
    tmq_value_list_t *page = NULL;
    tmq_value_query_t query;
    tmq_value_query_init (&query);
    query.session = self->session;
    query.prefix = self->word;
    query.limit = LIVE_TASKS;
    if (connect_quickly (self))
        tmq_value_list (&page, self->app->client, &query, TIMEOUT_MS, NULL);
    for (size_t i = 0; page && i < page->count; i++)
        offer (self, page->values[i].key, NULL);
    tmq_value_list_free (page);
}

/* What is to be completed. */

/* The pieces of "out|err". */
static void offer_pieces (const typed_t *self, const char *pieces, size_t length)
{
    char piece[64];
    while (length > 0) {
        const size_t one = strcspn (pieces, "|");
        const size_t size = one < length ? one : length;
        snprintf (piece, sizeof piece, "%.*s", (int) size, pieces);
        offer (self, piece, NULL);
        pieces += size < length ? size + 1 : size;
        length -= size < length ? size + 1 : size;
    }
}

static void offer_values (const typed_t *self)
{
    static const char *const formats[] = {"table", "wide", "json", "jsonl", "id", NULL};
    static const char *const colors[] = {"auto", "always", "never", NULL};
    static const char *const subjects[] = {
#define X(number, NAME, text) text,
        TMQ_SUBJECT_MAP (X)
#undef X
            NULL};
    switch (self->option->id) {
    case OPT_QUEUE: offer_queues (self); return;
    case OPT_LABEL: offer_labels (self); return;
    case OPT_SESSION: offer_sessions (self); return;
    case OPT_COLUMNS: offer_columns (self); return;
    case OPT_PROFILE: offer_profiles (self); return;
    default: break;
    }
    if (self->option->kind == KIND_FORMAT)
        offer_words (self, formats);
    else if (self->option->kind == KIND_COLOR)
        offer_words (self, colors);
    else if (self->option->kind == KIND_SUBJECT)
        offer_words (self, subjects);
    else if (self->option->kind == KIND_STATUS || self->option->kind == KIND_STATUSES)
        offer_statuses (self);
    else if (self->option->value && strchr (self->option->value, '|'))
        offer_pieces (self, self->option->value, strlen (self->option->value));
}

/* What a verb's operand is called says what it is. */
static void offer_named (const typed_t *self, const char *name, size_t length)
{
    static const struct {
        const char *name;    /* its beginning */
        const char *command; /* NULL: of any */
        void (*offer) (const typed_t *self);
    } kinds[] = {{"QUEUE", NULL, offer_queues},       {"WORKER", NULL, offer_workers},
                 {"SESSION", NULL, offer_sessions},   {"KEY", NULL, offer_keys},
                 {"PREFIX", NULL, offer_keys},        {"NAME", "session", offer_sessions},
                 {"NAME", "profile", offer_profiles}, {"NAME", "schedule", offer_schedules}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strncmp (name, kinds[i].name, strlen (kinds[i].name)) == 0 &&
            (!kinds[i].command || strcmp (kinds[i].command, self->command->name) == 0)) {
            kinds[i].offer (self);
            return;
        }
    }
    if (memchr (name, '|', length))
        offer_pieces (self, name, length);
}

static void offer_verbs (const typed_t *self)
{
    for (const verb_t *verb = self->command->verbs; !self->verb && verb->name; verb++)
        offer (self, verb->name, NULL);
    if (!self->verb)
        return;
    const char *operand = self->verb->operands;
    for (size_t i = 0; i < self->operands && *operand; i++) {
        operand += strcspn (operand, " ");
        operand += strspn (operand, " ");
    }
    operand += strspn (operand, "[");
    offer_named (self, operand, strcspn (operand, " ]"));
}

static void offer_operands (const typed_t *self)
{
    static const char *const shells[] = {"bash", "zsh", "fish", NULL};
    switch (self->command->operand) {
    case OPERAND_ID: offer_ids (self); break;
    case OPERAND_QUEUE: offer_queues (self); break;
    case OPERAND_COMMAND: offer_commands (self); break;
    case OPERAND_SHELL: offer_words (self, shells); break;
    case OPERAND_VERB: offer_verbs (self); break;
    case OPERAND_NONE: break;
    }
}

static const option_spec_t *find_option (const option_spec_t *list, const char *word)
{
    for (; list->id != OPT_END; list++) {
        const size_t length = strlen (list->name);
        if (word[1] == '-' && strncmp (word + 2, list->name, length) == 0 &&
            (!word[2 + length] || word[2 + length] == '='))
            return list;
        if (word[1] == list->letter && list->letter && !word[2])
            return list;
    }
    return NULL;
}

static const option_spec_t *option_of (const typed_t *self, const char *word)
{
    const option_spec_t *found = NULL;
    if (word[0] == '-' && self->command)
        found = find_option (self->command->options, word);
    if (word[0] == '-' && !found)
        found = find_option (self->app->args.grammar->globals, word);
    return found;
}

/* Where the line itself says where the broker is, that counts. */
static void take_value (typed_t *self, const option_spec_t *option, const char *value)
{
    if (option->id == OPT_ENDPOINT)
        setenv ("TASKMQ_ENDPOINT", value, 1);
    else if (option->id == OPT_NAMESPACE)
        self->app->ns = value;
    else if (option->id == OPT_PROFILE)
        self->app->profile = value;
    else if (option->id == OPT_SESSION)
        self->session = value;
}

/* A word that is complete. */
static void take_word (typed_t *self, const char *word)
{
    if (self->option) {
        take_value (self, self->option, word);
        self->option = NULL;
        return;
    }
    const option_spec_t *option = option_of (self, word);
    const char *equals = strchr (word, '=');
    if (option && option->kind != KIND_FLAG && equals)
        take_value (self, option, equals + 1);
    else if (option && option->kind != KIND_FLAG)
        self->option = option;
    else if (!option && word[0] != '-' && !self->command)
        self->command = command_find (self->app->args.grammar, word);
    else if (!option && word[0] != '-' && !self->verb)
        self->verb = verb_find (self->command, word);
    else if (!option && word[0] != '-')
        self->operands++;
}

int run_complete (app_t *app)
{
    typed_t self = {.app = app, .before = ""};
    char **words = app->args.rest;
    size_t count = 0;
    while (words && words[count])
        count++;
    if (count == 0)
        return EXIT_OK;
    for (size_t i = 0; i + 1 < count; i++) {
        if (strcmp (words[i], "--") == 0)
            return EXIT_OK; /* the command of work: the shell's own */
        take_word (&self, words[i]);
    }
    self.before = self.word = words[count - 1];
    const char *equals = strchr (self.word, '=');
    if (!self.option && self.word[0] == '-' && equals) {
        self.option = option_of (&self, self.word);
        self.word = equals + 1;
        self.before_length = (size_t) (self.word - self.before);
    }
    if (self.option) {
        offer_values (&self);
    } else if (self.word[0] == '-') {
        if (self.command)
            offer_options (&self, self.command->options);
        offer_options (&self, app->args.grammar->globals);
    } else if (self.command) {
        offer_operands (&self);
    } else {
        offer_commands (&self);
    }
    return EXIT_OK;
}

/* The scripts. */

static const char bash_script[] =
    "# bash completion of taskctl: source <(taskctl completion bash)\n"
    "_taskctl ()\n"
    "{\n"
    "    local line=${COMP_LINE:0:COMP_POINT} words word before\n"
    "    read -ra words <<<\"$line\"\n"
    "    [[ $line == *[[:space:]] ]] && words+=('')\n"
    "    word=${words[-1]}\n"
    "    before=${word%\"${word##*[=:]}\"} # bash replaces only what is behind these\n"
    "    local IFS=$'\\n'\n"
    "    COMPREPLY=($(taskctl complete -- \"${words[@]:1}\" 2>/dev/null | cut -f 1))\n"
    "    COMPREPLY=(\"${COMPREPLY[@]#\"$before\"}\")\n"
    "}\n"
    "complete -o bashdefault -o default -F _taskctl taskctl\n";

static const char zsh_script[] =
    "#compdef taskctl\n"
    "# zsh completion of taskctl: source <(taskctl completion zsh)\n"
    "_taskctl ()\n"
    "{\n"
    "    local -a found\n"
    "    found=(\"${(@f)$(taskctl complete -- \"${(@)words[2,CURRENT]}\" 2>/dev/null)}\")\n"
    "    if [[ -z \"${found[1]}\" ]]; then\n"
    "        _files\n"
    "        return\n"
    "    fi\n"
    "    found=(\"${(@)found//:/\\\\:}\")\n"
    "    found=(\"${(@)found/$'\\t'/:}\")\n"
    "    _describe -V taskctl found\n"
    "}\n"
    "if [[ \"${funcstack[1]}\" == _taskctl ]]; then\n"
    "    _taskctl \"$@\"\n"
    "else\n"
    "    compdef _taskctl taskctl\n"
    "fi\n";

static const char fish_script[] =
    "# fish completion of taskctl: taskctl completion fish | source\n"
    "function __taskctl_complete\n"
    "    set -l words (commandline -opc)\n"
    "    set -l word (commandline -ct)\n"
    "    set -l found (taskctl complete -- $words[2..-1] \"$word\" 2>/dev/null)\n"
    "    if test (count $found) -gt 0\n"
    "        printf '%s\\n' $found\n"
    "    else\n"
    "        __fish_complete_path \"$word\"\n"
    "    end\n"
    "end\n"
    "complete -c taskctl -f -a '(__taskctl_complete)'\n";

int run_completion (app_t *app)
{
    static const struct {
        const char *shell;
        const char *script;
    } scripts[] = {{"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}};
    const char *shell = app->args.operands[0];
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
        if (strcmp (scripts[i].shell, shell) == 0) {
            fputs (scripts[i].script, stdout);
            return EXIT_OK;
        }
    }
    return usage_error (app, "taskctl completion bash, zsh or fish", "'%.40s' is not a shell known",
                        shell);
}
