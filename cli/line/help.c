/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What --help shows, made of the table of commands, 80 columns wide. */
#include <stdio.h>
#include <string.h>

#include "line/command.h"

enum { HELP_COLUMNS = 80, TEXT_COLUMN = 29 };

/* Words of text behind the column where the line stands now; following lines are indented. */
static void print_wrapped (const char *text, size_t column)
{
    bool first = true;
    while (*text) {
        const size_t length = strcspn (text, " ");
        if (!first && column + 1 + length > HELP_COLUMNS) {
            printf ("\n%*s", TEXT_COLUMN, "");
            column = TEXT_COLUMN;
        } else if (!first) {
            putchar (' ');
            column++;
        }
        printf ("%.*s", (int) length, text);
        column += length;
        text += length + strspn (text + length, " ");
        first = false;
    }
    putchar ('\n');
}

static void print_entry (const char *head, const char *text)
{
    size_t column = strlen (head) + 2;
    printf ("  %s", head);
    if (column + 2 > TEXT_COLUMN) {
        putchar ('\n');
        column = 0;
    }
    printf ("%*s", (int) (TEXT_COLUMN - column), "");
    print_wrapped (text, TEXT_COLUMN);
}

static void print_options (const option_spec_t *list)
{
    char head[80];
    for (; list->id != OPT_END; list++) {
        char letter[8] = "    ";
        if (list->letter)
            snprintf (letter, sizeof letter, "-%c, ", list->letter);
        snprintf (head, sizeof head, "%s--%s%s%s", letter, list->name, list->value ? " " : "",
                  list->value ? list->value : "");
        print_entry (head, list->help);
    }
}

static bool is_in_group (const command_t *command, const char *group)
{
    return command->group && strcmp (command->group, group) == 0;
}

static void print_group (const command_t *commands, const char *group)
{
    printf ("\n%s:\n", group);
    for (const command_t *c = commands; c->name; c++) {
        char head[40];
        if (!is_in_group (c, group))
            continue;
        snprintf (head, sizeof head, "%s%s%s", c->name, c->alias ? ", " : "",
                  c->alias ? c->alias : "");
        print_entry (head, c->summary);
    }
}

/* Each group stands where its first command does in the table. */
static void print_commands (const command_t *commands)
{
    for (const command_t *c = commands; c->name; c++) {
        const command_t *first = commands;
        while (c->group && first < c && !is_in_group (first, c->group))
            first++;
        if (c->group && first == c)
            print_group (commands, c->group);
    }
}

static void print_overview (const grammar_t *grammar)
{
    puts ("usage: taskctl [global options] COMMAND [options] [arguments]\n"
          "\n"
          "Submits, watches and works on tasks of a taskmq broker.");
    print_commands (grammar->commands);
    puts ("\nglobal options:");
    print_options (grammar->globals);
    puts ("\n"
          "An ID is the full id of a task, or its ending of at least 6 characters.\n"
          "Durations carry their unit: 500ms, 30s, 5m, 1h30m, 1d.\n"
          "The broker is found by -e, --profile, TASKMQ_ENDPOINT or TASKMQ_PROFILE, by the\n"
          "nearest .taskmq directory of yours here or above, or by the default profile.\n"
          "\n"
          "exit codes:\n"
          "  0 ok   1 other failure   2 usage   3 broker unreachable, nothing happened\n"
          "  4 not allowed   5 not found   6 conflict   7 deadline of a wait\n"
          "  8 the task failed or was cancelled   9 some of several failed\n"
          "  10 overloaded, try again later   11 outcome unknown, may be repeated\n"
          "\n"
          "'taskctl help COMMAND' tells more about a command, with examples.");
}

/* Each line of the operands is a form of the command. */
static void print_usage (const command_t *command)
{
    const char *form = command->operands;
    for (const char *head = "usage:"; head; head = "      ") {
        const size_t length = strcspn (form, "\n");
        printf ("%s taskctl %s%s%.*s\n", head, command->name, length ? " " : "", (int) length,
                form);
        if (!form[length])
            break;
        form += length + 1;
    }
    putchar ('\n');
}

void help_print (const grammar_t *grammar, const command_t *command)
{
    if (!command) {
        print_overview (grammar);
        return;
    }
    print_usage (command);
    if (command->alias)
        printf ("Also: taskctl %s\n", command->alias);
    printf ("%c%s.\n", command->summary[0] - 'a' + 'A', command->summary + 1);
    if (command->text)
        printf ("%s\n", command->text);
    if (command->options->id != OPT_END) {
        puts ("\noptions:");
        print_options (command->options);
    }
    puts ("\nexamples:");
    for (const char *line = command->examples; *line; line += *line == '\n') {
        const size_t length = strcspn (line, "\n");
        printf ("  %.*s\n", (int) length, line);
        line += length;
    }
    puts ("\nglobal options: -e --profile --server-key --key-file -n -o --timeout --color\n"
          "                --no-pager -q -v -h (taskctl help)");
}
