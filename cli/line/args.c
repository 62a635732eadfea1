/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Command lines, on getopt_long. It returns operands in their order (the leading '-' of its option
 * string), so that the first one names the command and the rest of the line is read with that
 * command's own options beside the global ones.
 *
 * Failure policy: the first mistake is kept as a text with a hint, and parsing goes on. */
#include "line/command.h"

#include <assert.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "nearest.h"

/* What getopt_long wants, made of two of our lists. Value i of an option means all[i]. */
enum { OPTIONS_MAX = 64, LONG_BASE = 256, OPERAND = 1, OPERANDS_STEP = 1024 };

typedef struct parser {
    const option_spec_t *all[OPTIONS_MAX];
    size_t count;
    struct option longs[OPTIONS_MAX + 1];
    char letters[2 * OPTIONS_MAX + 3];
} parser_t;

static void parser_add (parser_t *parser, const option_spec_t *list)
{
    for (; list->id != OPT_END; list++) {
        assert (parser->count < OPTIONS_MAX);
        const size_t i = parser->count++;
        const int argument = list->kind == KIND_FLAG ? no_argument : required_argument;
        parser->all[i] = list;
        parser->longs[i] = (struct option){list->name, argument, NULL, LONG_BASE + (int) i};
        if (list->letter) {
            const size_t end = strlen (parser->letters);
            parser->letters[end] = list->letter;
            parser->letters[end + 1] = argument == required_argument ? ':' : '\0';
        }
    }
    parser->longs[parser->count] = (struct option){NULL, 0, NULL, 0};
}

static void parser_init (parser_t *parser, const grammar_t *grammar, const command_t *command)
{
    memset (parser, 0, sizeof *parser);
    memcpy (parser->letters, "-:", 3);
    if (command)
        parser_add (parser, command->options);
    parser_add (parser, grammar->globals);
}

static const option_spec_t *parser_find (const parser_t *parser, int value)
{
    if (value >= LONG_BASE)
        return parser->all[value - LONG_BASE];
    for (size_t i = 0; i < parser->count; i++) {
        if (parser->all[i]->letter == value)
            return parser->all[i];
    }
    return NULL;
}

/* Mistakes. */

__attribute__ ((format (printf, 2, 3))) static bool blame (args_t *args, const char *format, ...)
{
    if (args->problem.text[0])
        return false;
    va_list list;
    va_start (list, format);
    vsnprintf (args->problem.text, sizeof args->problem.text, format, list);
    va_end (list);
    return true;
}

static void hint_help (args_t *args)
{
    if (args->command)
        snprintf (args->problem.hint, sizeof args->problem.hint, "taskctl help %s",
                  args->command->name);
    else
        snprintf (args->problem.hint, sizeof args->problem.hint, "taskctl help");
}

/* What is looked for here, and is an option of another command. */
static const char *find_elsewhere (const args_t *args, const char *name)
{
    static const struct {
        const char *command; /* NULL: any */
        const char *name;
        const char *hint;
    } others[] = {
        {NULL, "search", "--search is of list, count and export only"},
        {"retry", "from-turn", "taskctl resume ID --from-turn N goes back to a turn"},
    };
    for (size_t i = 0; args->command && i < sizeof others / sizeof *others; i++) {
        const char *command = others[i].command;
        if ((!command || strcmp (command, args->command->name) == 0) &&
            strcmp (others[i].name, name) == 0)
            return others[i].hint;
    }
    return NULL;
}

static void blame_option (args_t *args, const parser_t *parser, const char *text)
{
    const size_t length = strcspn (text, "=");
    if (!blame (args, "unknown option '%.*s'", (int) length, text))
        return;
    const char *names[OPTIONS_MAX];
    for (size_t i = 0; i < parser->count; i++)
        names[i] = parser->all[i]->name;
    char word[64];
    snprintf (word, sizeof word, "%.*s", (int) length, text);
    const char *nearest = nearest_of (word + strspn (word, "-"), names, parser->count);
    const char *elsewhere = find_elsewhere (args, word + strspn (word, "-"));
    if (elsewhere)
        snprintf (args->problem.hint, sizeof args->problem.hint, "%s", elsewhere);
    else if (nearest)
        snprintf (args->problem.hint, sizeof args->problem.hint, "did you mean --%s?", nearest);
    else
        hint_help (args);
}

static void blame_command (args_t *args, const char *text)
{
    if (!blame (args, "unknown command '%s'", text))
        return;
    const char *nearest = command_nearest (args->grammar, text);
    if (nearest)
        snprintf (args->problem.hint, sizeof args->problem.hint, "did you mean '%s'?", nearest);
    else
        hint_help (args);
}

/* Parsing. */

static void add_operand (args_t *args, const char *text)
{
    args->operands = must_grow (args->operands, args->operands_count + 1, sizeof *args->operands);
    args->operands[args->operands_count++] = text;
}

static void add_value (args_t *args, const option_spec_t *spec, const char *text)
{
    option_value_t value = {spec, text, 1};
    char why[160] = "";
    if (spec->kind != KIND_FLAG && !value_parse (&value.number, spec, text, why, sizeof why)) {
        if (blame (args, "--%s '%.80s' %s", spec->name, text, why))
            hint_help (args);
        return;
    }
    args->values = must_grow (args->values, args->values_count + 1, sizeof *args->values);
    args->values[args->values_count++] = value;
}

/* getopt_long takes any unambiguous beginning of a name; an interface for scripts does not. */
static bool is_spelled_out (const option_spec_t *spec, char **argv)
{
    const bool apart = optarg && optarg == argv[optind - 1];
    const char *text = argv[optind - (apart ? 2 : 1)];
    const size_t length = strlen (spec->name);
    return strncmp (text, "--", 2) == 0 && strncmp (text + 2, spec->name, length) == 0 &&
           (text[2 + length] == '\0' || text[2 + length] == '=');
}

static void take_operand (args_t *args, parser_t *parser, const char *text)
{
    if (args->command) {
        add_operand (args, text);
        return;
    }
    args->command = command_find (args->grammar, text);
    if (args->command)
        parser_init (parser, args->grammar, args->command);
    else
        blame_command (args, text);
}

static void take_mistake (args_t *args, const parser_t *parser, int value, char **argv)
{
    const char *text = argv[optind - 1];
    const bool is_long = strncmp (text, "--", 2) == 0;
    const char letter[] = {'-', (char) optopt, '\0'};
    const option_spec_t *known = optopt ? parser_find (parser, optopt) : NULL;
    if (known && (value == ':' || known->kind != KIND_FLAG)) {
        if (blame (args, "--%s needs a value: %s", known->name, known->value))
            hint_help (args);
    } else if (known) {
        if (blame (args, "--%s takes no value", known->name))
            hint_help (args);
    } else {
        blame_option (args, parser, is_long ? text : letter);
    }
}

/* Words that other programs have for some of ours. */
static const char *synonym_of (const char *text, const command_t *command)
{
    static const struct {
        const char *theirs;
        const char *ours;
    } synonyms[] = {
        {"unpause", "resume"}, {"continue", "resume"}, {"start", "resume"}, {"stop", "pause"},
        {"hold", "pause"},     {"create", "add"},      {"new", "add"},      {"add", "put"},
        {"delete", "remove"},  {"rm", "remove"},       {"del", "remove"},   {"delete", "drop"},
        {"ls", "list"},        {"info", "show"},       {"get", "show"},     {"config", "set"}};
    for (size_t i = 0; i < sizeof synonyms / sizeof *synonyms; i++)
        if (strcmp (synonyms[i].theirs, text) == 0 && verb_find (command, synonyms[i].ours))
            return synonyms[i].ours;
    return NULL;
}

static void blame_verb (args_t *args, const char *text)
{
    const char *names[16];
    size_t count = 0;
    const command_t *command = args->command;
    for (const verb_t *verb = command->verbs; verb->name; verb++) {
        assert (count < sizeof names / sizeof *names);
        names[count++] = verb->name;
    }
    const char *synonym = synonym_of (text, command);
    const char *nearest = synonym ? synonym : nearest_of (text, names, count);
    if (!blame (args, "unknown command '%s %s'", command->name, text))
        return;
    if (nearest)
        snprintf (args->problem.hint, sizeof args->problem.hint, "did you mean '%s %s'?",
                  command->name, nearest);
    else
        hint_help (args);
}

/* All that there are. */
static void hint_verbs (args_t *args)
{
    const size_t size = sizeof args->problem.hint;
    size_t used = (size_t) snprintf (args->problem.hint, size, "taskctl %s ", args->command->name);
    for (const verb_t *verb = args->command->verbs; verb->name && used < size; verb++) {
        const char *before = verb == args->command->verbs ? "" : verb[1].name ? ", " : " or ";
        used +=
            (size_t) snprintf (args->problem.hint + used, size - used, "%s%s", before, verb->name);
    }
}

/* The operands behind the verb. */
static void check_verb (args_t *args)
{
    const char *text = args->operands_count ? args->operands[0] : "";
    const verb_t *verb = verb_find (args->command, text);
    const int count = (int) args->operands_count - 1;
    bool wrong = true;
    if (count < 0)
        wrong = blame (args, "%s needs one of its commands", args->command->name);
    else if (!verb)
        blame_verb (args, text);
    else if (count < verb->operands_min)
        wrong = blame (args, "%s %s needs %s", args->command->name, text, verb->operands);
    else if (verb->operands_max >= 0 && count > verb->operands_max)
        wrong = blame (args, "%s %s takes no further argument '%s'", args->command->name, text,
                       args->operands[verb->operands_max + 1]);
    else
        return;
    if (wrong && !args->problem.hint[0] && count < 0)
        hint_verbs (args);
    else if (wrong && !args->problem.hint[0])
        hint_help (args);
}

/* The bytes of the first words. */
static size_t words_length (const char *text, int words)
{
    size_t length = strcspn (text, " \n");
    while (--words > 0 && text[length] == ' ')
        length += 1 + strcspn (text + length + 1, " \n");
    return length;
}

static void check_operands (args_t *args)
{
    const command_t *command = args->command;
    const int count = (int) args->operands_count;
    bool wrong = true;
    if (!command)
        return;
    if (command->verbs && !args->rest) {
        check_verb (args);
        return;
    }
    if (args->rest && !command->takes_rest)
        wrong = blame (args, "%s takes nothing behind '--'", command->name);
    else if (count < command->operands_min)
        wrong = blame (args, "%s needs %.*s", command->name,
                       (int) words_length (command->operands, command->operands_min),
                       command->operands);
    else if (command->operands_max >= 0 && count > command->operands_max)
        wrong = blame (args, "%s takes no further argument '%s'", command->name,
                       args->operands[command->operands_max]);
    else
        return;
    if (wrong)
        hint_help (args);
}

void args_parse (args_t *out, const grammar_t *grammar, int argc, char **argv)
{
    parser_t parser;
    memset (out, 0, sizeof *out);
    out->grammar = grammar;
    parser_init (&parser, grammar, NULL);
    optind = 0;
    opterr = 0;
    for (;;) {
        const int value = getopt_long (argc, argv, parser.letters, parser.longs, NULL);
        if (value == -1)
            break;
        if (value == OPERAND) {
            take_operand (out, &parser, optarg);
        } else if (value == '?' || value == ':') {
            /* Behind an unknown command its options are unknown too, which is no news. */
            take_mistake (out, &parser, value, argv);
        } else {
            const option_spec_t *spec = parser_find (&parser, value);
            if (value >= LONG_BASE && !is_spelled_out (spec, argv))
                blame_option (out, &parser, argv[optind - (optarg == argv[optind - 1] ? 2 : 1)]);
            else
                add_value (out, spec, optarg);
        }
    }
    if (optind > 0 && optind <= argc && strcmp (argv[optind - 1], "--") == 0)
        out->rest = argv + optind;
    check_operands (out);
}

void args_expand (args_t *args, size_t i, char *text)
{
    static const char space[] = " \t\r\n";
    const char **operands = NULL;
    size_t count = 0;
    char *rest = NULL;
    for (size_t o = 0; o < args->operands_count; o++) {
        char *word = o == i ? strtok_r (text, space, &rest) : NULL;
        for (; word; word = strtok_r (NULL, space, &rest)) {
            if (count % OPERANDS_STEP == 0)
                operands = must_grow (operands, count + OPERANDS_STEP + 1, sizeof *operands);
            operands[count++] = word;
        }
        if (o != i) {
            operands = must_grow (operands, count + OPERANDS_STEP + 1, sizeof *operands);
            operands[count++] = args->operands[o];
        }
    }
    free (args->operands);
    args->operands = operands;
    args->operands_count = count;
    args->read = text;
}

void args_replace (args_t *args, size_t i, char *text)
{
    args->kept = must_grow (args->kept, args->kept_count + 1, sizeof *args->kept);
    args->kept[args->kept_count++] = text;
    args->values[i].text = text;
}

void args_clear (args_t *args)
{
    for (size_t i = 0; i < args->kept_count; i++)
        free (args->kept[i]);
    free (args->kept);
    free (args->read);
    free (args->values);
    free (args->operands);
    memset (args, 0, sizeof *args);
}

/* Asking. */

bool args_has (const args_t *args, option_id_t id)
{
    return args_value (args, id) != NULL;
}

const option_value_t *args_value (const args_t *args, option_id_t id)
{
    for (size_t i = args->values_count; i-- > 0;) {
        if (args->values[i].spec->id == id)
            return &args->values[i];
    }
    return NULL;
}

const char *args_text (const args_t *args, option_id_t id)
{
    const option_value_t *value = args_value (args, id);
    return value ? value->text : NULL;
}

uint64_t args_number (const args_t *args, option_id_t id, uint64_t absent)
{
    const option_value_t *value = args_value (args, id);
    return value ? value->number : absent;
}

size_t args_count (const args_t *args, option_id_t id)
{
    size_t count = 0;
    for (size_t i = 0; i < args->values_count; i++)
        count += args->values[i].spec->id == id;
    return count;
}

const option_value_t *args_nth (const args_t *args, option_id_t id, size_t i)
{
    for (size_t v = 0; v < args->values_count; v++) {
        if (args->values[v].spec->id == id && i-- == 0)
            return &args->values[v];
    }
    return NULL;
}

const command_t *command_find (const grammar_t *grammar, const char *name)
{
    for (const command_t *c = grammar->commands; c->name; c++) {
        if (strcmp (name, c->name) == 0 || (c->alias && strcmp (name, c->alias) == 0))
            return c;
    }
    return NULL;
}

const verb_t *verb_find (const command_t *command, const char *name)
{
    for (const verb_t *verb = command->verbs; verb && verb->name; verb++) {
        if (strcmp (name, verb->name) == 0)
            return verb;
    }
    return NULL;
}

const char *command_nearest (const grammar_t *grammar, const char *name)
{
    const char *names[64];
    size_t count = 0;
    for (const command_t *c = grammar->commands; c->name; c++) {
        assert (count + 2 < sizeof names / sizeof *names);
        if (!c->group)
            continue;
        names[count++] = c->name;
        if (c->alias)
            names[count++] = c->alias;
    }
    return nearest_of (name, names, count);
}
