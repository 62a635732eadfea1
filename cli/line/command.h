/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What a command line of taskctl can say: the types of the table of commands, and the parser.
 *
 * One grammar feeds the parser, --help and `taskctl help`. The parser checks the
 * kinds of values, so that a command sees only numbers in range, durations in milliseconds,
 * well-formed names and labels; what it cannot know (which options go together) the command
 * checks itself. */
#ifndef TASKCTL_COMMAND_H
#define TASKCTL_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct app;

/* Every option of every command; the text and the kind of value stand in the command's own list. */
typedef enum option_id {
    OPT_END = 0,
    /* global */
    OPT_ENDPOINT,
    OPT_NAMESPACE,
    OPT_ON_BEHALF,
    OPT_OUTPUT,
    OPT_TIMEOUT,
    OPT_COLOR,
    OPT_NO_PAGER,
    OPT_QUIET,
    OPT_VERBOSE,
    OPT_REQUEST_ID,
    OPT_PROFILE,
    OPT_SERVER_KEY,
    OPT_KEY_FILE,
    OPT_VERSION,
    OPT_HELP,
    /* of commands */
    OPT_ACTOR,
    OPT_ADDRESS,
    OPT_ASK,
    OPT_ATTEMPT,
    OPT_STREAM,
    OPT_TAIL,
    OPT_TASK,
    OPT_TEXT,
    OPT_AFTER,
    OPT_ATTEMPTS,
    OPT_TURNS,
    OPT_TURN_FILES,
    OPT_FROM_TURN,
    OPT_AT,
    OPT_INVITED,
    OPT_WORK_ROLE,
    OPT_INTERVAL,
    OPT_WORKER_NAME,
    OPT_AGENT,
    OPT_OWNER,
    OPT_ALL,
    OPT_BACKOFF,
    OPT_BATCH,
    OPT_BODIES,
    OPT_BURST,
    OPT_COLUMNS,
    OPT_CONTENT_TYPE,
    OPT_CONTEXT,
    OPT_COUNT,
    OPT_CRON,
    OPT_CURSOR,
    OPT_DATA,
    OPT_DEDUP_KEY,
    OPT_DIR,
    OPT_DELAY,
    OPT_DRAIN,
    OPT_DROP_LABEL,
    OPT_DRY_RUN,
    OPT_EVENTS,
    OPT_FAIR_KEY,
    OPT_FIELDS,
    OPT_FILE,
    OPT_FOLLOW,
    OPT_FOR,
    OPT_FORMAT,
    OPT_GOAL,
    OPT_IN,
    OPT_NOW,
    OPT_HEAD,
    OPT_ACCEPT,
    OPT_GRANT,
    OPT_ID,
    OPT_IF_NEEDED,
    OPT_IF_VERSION,
    OPT_INTENSITY,
    OPT_INHERIT,
    OPT_JOBS,
    OPT_KEEP_GOING,
    OPT_KEEP_FAILED,
    OPT_KIND,
    OPT_LABEL,
    OPT_LEASE,
    OPT_LIMIT,
    OPT_LINES,
    OPT_MAX_AGE,
    OPT_MAX_ATTEMPTS,
    OPT_MAX_BYTES,
    OPT_MAX_COUNT,
    OPT_MAX_ENDED_BYTES,
    OPT_MAX_PER_KEY,
    OPT_MAX_RUNNING,
    OPT_MAX_RUNTIME,
    OPT_MAX_TASKS,
    OPT_META,
    OPT_METHOD,
    OPT_MIN_KEEP,
    OPT_MISSED,
    OPT_OUT_FILE,
    OPT_OVERLAP,
    OPT_PAUSED,
    OPT_PARENT,
    OPT_PAYLOAD,
    OPT_PAYLOAD_FILE,
    OPT_POLL_INTERVAL,
    OPT_PRIORITY,
    OPT_PROMETHEUS,
    OPT_QUEUE,
    OPT_RANK,
    OPT_RATE,
    OPT_RELEASE_DELAY,
    OPT_REPLACE,
    OPT_REDACT,
    OPT_REDACTED,
    OPT_REQUIRE,
    OPT_RESULT_TYPE,
    OPT_ROLE,
    OPT_SALIENCE,
    OPT_SEARCH,
    OPT_SECRET,
    OPT_SESSION,
    OPT_SET_LABEL,
    OPT_SINCE,
    OPT_SNAPSHOT,
    OPT_SOURCE,
    OPT_START_BY,
    OPT_STATUS,
    OPT_SUBJECT,
    OPT_TOUCHED,
    OPT_TRACE,
    OPT_TREE,
    OPT_TTL,
    OPT_TYPE,
    OPT_UNSET,
    OPT_UNTIL,
    OPT_USES,
    OPT_WAIT,
    OPT_WEIGHT_OF,
    OPT_WHY,
    OPT_WITH_KEYS,
    OPT_YES,
    OPT_Z85,
    OPT_ZONE
} option_id_t;

typedef enum option_kind {
    KIND_FLAG = 0,
    KIND_TEXT,     /* at most max bytes, if max is given */
    KIND_NAME,     /* S14 */
    KIND_LABEL,    /* NAME=VALUE */
    KIND_NUMBER,   /* min..max */
    KIND_DURATION, /* min..max milliseconds */
    KIND_TIME,     /* as value_time reads it; the number is ms since the epoch */
    KIND_FUTURE,   /* the same ahead of us; the number is as of KIND_TIME */
    KIND_STATUS,   /* the number is a tmq_status_t */
    KIND_STATUSES, /* several with commas; the number has bit 1 << tmq_status_t for each */
    KIND_SUBJECT,  /* the number is a tmq_subject_t */
    KIND_FORMAT,   /* the number is a format_t */
    KIND_COLOR,    /* the number is a color_when_t */
    KIND_REQUEST   /* 32 hexadecimal digits */
} option_kind_t;

typedef struct option_spec {
    option_id_t id;   /* OPT_END ends a list */
    const char *name; /* without the dashes */
    char letter;      /* 0: none */
    option_kind_t kind;
    uint64_t min;
    uint64_t max;
    const char *value; /* what the help calls the value, "NAME" */
    const char *help;
} option_spec_t;

/* What the operands of a command name. */
typedef enum operand_kind {
    OPERAND_NONE = 0,
    OPERAND_ID,
    OPERAND_QUEUE,
    OPERAND_COMMAND,
    OPERAND_SHELL,
    OPERAND_VERB /* one of `verbs`, and what that takes */
} operand_kind_t;

/* The second word of a command. */
typedef struct verb {
    const char *name;
    const char *operands; /* for the mistakes: "[NAME]" */
    int operands_min;     /* behind it */
    int operands_max;
    int (*run) (struct app *app); /* operands[0] is the name of the verb */
} verb_t;

typedef struct command {
    const char *name;
    const char *alias;    /* NULL: none */
    const char *group;    /* the heading in the list of commands; NULL: it is not for people */
    const char *operands; /* for the help; a line per form of the command */
    const char *summary;  /* one line, for the list of commands */
    const char *text;     /* what more the help says; NULL: nothing */
    const char *examples; /* a line each */
    const option_spec_t *options;
    operand_kind_t operand;
    const struct verb *verbs; /* "key new", "key show", …; behind the last one without a name */
    int operands_min;
    int operands_max;             /* -1: any number */
    bool no_ids;                  /* it prints none, so -o id means nothing */
    bool forms;                   /* its output has forms of its own, which --fields goes with */
    bool pages;                   /* what it prints may be long */
    bool takes_rest;              /* "-- COMMAND..." */
    bool repeats;                 /* --request-id makes it a repeat */
    int (*run) (struct app *app); /* returns the exit code */
} command_t;

/* All that can be said. Behind the last command stands one without a name. */
typedef struct grammar {
    const command_t *commands;
    const option_spec_t *globals;
} grammar_t;

/* One option as it was given. */
typedef struct option_value {
    const option_spec_t *spec;
    const char *text; /* NULL for a flag */
    uint64_t number;
} option_value_t;

/* The first thing that was wrong with the command line. */
typedef struct problem {
    char text[256]; /* empty: nothing */
    char hint[256];
} problem_t;

/* A command line, parsed. Texts point into argv. */
typedef struct args {
    const grammar_t *grammar;
    const command_t *command; /* NULL: none was named */
    option_value_t *values;
    size_t values_count;
    const char **operands;
    size_t operands_count;
    char **kept; /* values in place of those of argv */
    size_t kept_count;
    char *read;  /* what "-" brought instead of itself, split into operands; NULL: nothing */
    char **rest; /* behind "--", NULL-terminated as argv is; NULL: there was no "--" */
    problem_t problem;
} args_t;

/* Parses the whole line, also behind a mistake, so that -o and -h count wherever they stand. */
void args_parse (args_t *out, const grammar_t *grammar, int argc, char **argv);
void args_clear (args_t *args);

bool args_has (const args_t *args, option_id_t id);
/* Puts the words of text, which args takes over, in the place of operand i. */
void args_expand (args_t *args, size_t i, char *text);
/* Puts text, which args takes over, in the place of value i. */
void args_replace (args_t *args, size_t i, char *text);
/* The last value given; NULL without one. */
const option_value_t *args_value (const args_t *args, option_id_t id);
const char *args_text (const args_t *args, option_id_t id);
uint64_t args_number (const args_t *args, option_id_t id, uint64_t absent);
/* How many values were given, and the i-th of them. */
size_t args_count (const args_t *args, option_id_t id);
const option_value_t *args_nth (const args_t *args, option_id_t id, size_t i);

/* NULL: there is no such command. */
const command_t *command_find (const grammar_t *grammar, const char *name);
/* NULL: the command has no such verb. */
const verb_t *verb_find (const command_t *command, const char *name);
/* The nearest spelling among the commands, NULL if none is near. */
const char *command_nearest (const grammar_t *grammar, const char *name);

/* Checks and converts one value; false with a text ("must be …") when it is wrong. */
bool value_parse (uint64_t *number, const option_spec_t *spec, const char *text, char *why,
                  size_t why_size);
/* RFC 3339; a day or a minute of local time ("2026-11-22", "2026-11-22 05:00"); "today" and
 * "yesterday", which begin at midnight; a duration before now. In ms since the epoch. */
bool value_time (uint64_t *ms, const char *text);

/* Help on stdout. command NULL: the overview. */
void help_print (const grammar_t *grammar, const command_t *command);

#endif
