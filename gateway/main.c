/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* taskmq-gateway: the command line. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "auth/proxied.h"
#include "auth/session.h"
#include "gateway.h"
#include "mcp/tools.h"
#include "net/server.h"
#include "rest/routes.h"
#include "timestamp.h"
#include "units.h"

enum { EXIT_USAGE = 2 };

static const char USAGE[] =
    "usage: taskmq-gateway [OPTION...]\n"
    "       taskmq-gateway [--data DIR] token add NAME [--roles R,...] [--namespaces N,...]\n"
    "                                              [--expires DURATION]\n"
    "       taskmq-gateway [--data DIR] token list\n"
    "       taskmq-gateway [--data DIR] token remove NAME\n"
    "       taskmq-gateway [--data DIR] link [NAME]\n"
    "\n"
    "Opens a broker to programs that speak HTTP. 'link' prints an address that opens its page in "
    "a\n"
    "browser, once and within a minute, as the token of that name: the first one's is local.\n"
    "\n"
    "  -c, --config FILE       read this file, not gateway.conf in the directory\n"
    "      --data DIR          the directory of its files, and of the broker; the nearest .taskmq\n"
    "      --endpoint URI      where the broker is; may be repeated\n"
    "      --profile NAME      the saved connection to the broker, as taskctl join made it\n"
    "      --listen ADDRESS    127.0.0.1:7433, [::1]:7433 or unix:PATH; may be repeated\n"
    "      --tools FILE        the tools of MCP, not tools.json in the directory\n"
    "      --check             read the configuration, tokens and tools, print every key, and "
    "leave\n"
    "      --routes            print what can be asked for, and by whom\n"
    "      --insecure-no-auth  ask for no tokens; whoever reaches it may do everything\n"
    "      --help              this\n"
    "      --version           its version\n";

typedef enum action {
    ACTION_RUN,
    ACTION_CHECK,
    ACTION_ROUTES,
    ACTION_HELP,
    ACTION_VERSION
} action_t;

typedef struct arguments {
    action_t action;
    const char *config;
    const char *data;
    const char *tools;
    const char *saved;
    const char *roles;
    const char *namespaces;
    const char *expires;
    bool no_auth;
    names_t endpoints;
    names_t listen;
} arguments_t;

enum {
    OPTION_DATA = 256,
    OPTION_ENDPOINT,
    OPTION_LISTEN,
    OPTION_CHECK,
    OPTION_ROUTES,
    OPTION_NO_AUTH,
    OPTION_HELP,
    OPTION_VERSION,
    OPTION_ROLES,
    OPTION_NAMESPACES,
    OPTION_TOOLS,
    OPTION_PROFILE,
    OPTION_EXPIRES
};

static const struct option options[] = {{"config", required_argument, NULL, 'c'},
                                        {"data", required_argument, NULL, OPTION_DATA},
                                        {"endpoint", required_argument, NULL, OPTION_ENDPOINT},
                                        {"listen", required_argument, NULL, OPTION_LISTEN},
                                        {"check", no_argument, NULL, OPTION_CHECK},
                                        {"routes", no_argument, NULL, OPTION_ROUTES},
                                        {"insecure-no-auth", no_argument, NULL, OPTION_NO_AUTH},
                                        {"help", no_argument, NULL, OPTION_HELP},
                                        {"version", no_argument, NULL, OPTION_VERSION},
                                        {"roles", required_argument, NULL, OPTION_ROLES},
                                        {"namespaces", required_argument, NULL, OPTION_NAMESPACES},
                                        {"tools", required_argument, NULL, OPTION_TOOLS},
                                        {"profile", required_argument, NULL, OPTION_PROFILE},
                                        {"expires", required_argument, NULL, OPTION_EXPIRES},
                                        {NULL, 0, NULL, 0}};

static int usage (const char *why)
{
    fprintf (stderr, "taskmq-gateway: %s\n%s", why, "Try 'taskmq-gateway --help'.\n");
    return EXIT_USAGE;
}

static bool add (names_t *names, const char *text)
{
    if (names->count == NAMES_MAX)
        return false;
    names->list[names->count++] = text;
    return true;
}

static bool parse (arguments_t *out, int argc, char **argv)
{
    bool good = true;
    for (int option; good && (option = getopt_long (argc, argv, "c:", options, NULL)) != -1;) {
        switch (option) {
        case 'c': out->config = optarg; break;
        case OPTION_DATA: out->data = optarg; break;
        case OPTION_ENDPOINT: good = add (&out->endpoints, optarg); break;
        case OPTION_LISTEN: good = add (&out->listen, optarg); break;
        case OPTION_CHECK: out->action = ACTION_CHECK; break;
        case OPTION_ROUTES: out->action = ACTION_ROUTES; break;
        case OPTION_NO_AUTH: out->no_auth = true; break;
        case OPTION_HELP: out->action = ACTION_HELP; break;
        case OPTION_VERSION: out->action = ACTION_VERSION; break;
        case OPTION_ROLES: out->roles = optarg; break;
        case OPTION_NAMESPACES: out->namespaces = optarg; break;
        case OPTION_TOOLS: out->tools = optarg; break;
        case OPTION_PROFILE: out->saved = optarg; break;
        case OPTION_EXPIRES: out->expires = optarg; break;
        default: good = false;
        }
    }
    return good;
}

/* Tokens. */

static int say (const char *error)
{
    fprintf (stderr, "taskmq-gateway: %s\n", error);
    return EXIT_FAILURE;
}

static int token_add (const config_t *config, tokens_t *tokens, const arguments_t *arguments,
                      const char *name)
{
    char token[TOKEN_SIZE];
    char error[TOKENS_ERROR_SIZE];
    char why[UNITS_ERROR_SIZE];
    int64_t ms = 0;
    if (arguments->expires != NULL && !duration_parse (&ms, arguments->expires, why)) {
        snprintf (error, sizeof error, "--expires: %s", why);
        return usage (error);
    }
    if (!tokens_add (tokens, token, name, arguments->roles != NULL ? arguments->roles : "client",
                     arguments->namespaces != NULL ? arguments->namespaces : "default",
                     ms > 0 ? clock_ms (CLOCK_REALTIME) + ms : 0, error))
        return usage (error);
    if (!tokens_write (tokens, config->tokens, error))
        return say (error);
    puts (token);
    fprintf (stderr, "It is not shown again. A gateway that runs takes it after SIGHUP.\n");
    return EXIT_SUCCESS;
}

static int token_list (const tokens_t *tokens)
{
    char roles[64];
    char end[TIME_TEXT_SIZE];
    for (size_t i = 0; i < tokens->count; i++) {
        const principal_t *principal = tokens->list[i];
        snprintf (end, sizeof end, "never");
        roles_format (roles, sizeof roles, principal->roles);
        if (principal->expires_ms != 0)
            time_format (end, principal->expires_ms);
        const bool is_over =
            principal->expires_ms != 0 && principal->expires_ms <= clock_ms (CLOCK_REALTIME);
        printf ("%s  %s  ", principal->name, roles);
        for (size_t j = 0; j < principal->namespaces_count; j++)
            printf ("%s%s", j > 0 ? "," : "", principal->namespaces[j]);
        printf ("  %s%s\n", end, is_over ? "  over" : "");
    }
    return EXIT_SUCCESS;
}

static int token_remove (const config_t *config, tokens_t *tokens, const char *name)
{
    char error[TOKENS_ERROR_SIZE];
    if (!tokens_remove (tokens, name))
        return say ("there is no token of that name");
    if (!tokens_write (tokens, config->tokens, error))
        return say (error);
    fprintf (stderr, "A gateway that runs goes on taking it until SIGHUP.\n");
    return EXIT_SUCCESS;
}

/* Each change reads the whole file and writes it anew, so they come one after the other. */
static int lock_tokens (const config_t *config)
{
    int directory = open (config->data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory >= 0 && flock (directory, LOCK_EX) == 0)
        return directory;
    fprintf (stderr, "taskmq-gateway: %s: %s\n", config->data, strerror (errno));
    if (directory >= 0)
        close (directory);
    return -1;
}

static int token_verb (const config_t *config, const arguments_t *arguments, int count,
                       char **words)
{
    static tokens_t tokens;
    char error[TOKENS_ERROR_SIZE];
    int code = EXIT_USAGE;
    const int directory = lock_tokens (config);
    if (directory < 0)
        return EXIT_FAILURE;
    if (!tokens_read (&tokens, config->tokens, error)) {
        close (directory);
        return say (error);
    }
    if (count == 3 && strcmp (words[1], "add") == 0)
        code = token_add (config, &tokens, arguments, words[2]);
    else if (count == 2 && strcmp (words[1], "list") == 0)
        code = token_list (&tokens);
    else if (count == 3 && strcmp (words[1], "remove") == 0)
        code = token_remove (config, &tokens, words[2]);
    else
        usage ("it is 'token add NAME', 'token list' or 'token remove NAME'");
    tokens_clear (&tokens);
    close (directory);
    return code;
}

/* A link to the page. */

/* Where a browser finds the gateway that runs. */
static bool find_address (char out[ADDRESS_SIZE], const config_t *config)
{
    FILE *file = fopen (config->endpoint, "re");
    bool found = false;
    if (config->behind_proxy && config->hosts.count > 0) {
        found = snprintf (out, ADDRESS_SIZE, "https://%s", config->hosts.list[0]) < ADDRESS_SIZE;
    } else {
        while (file != NULL && !found && fgets (out, ADDRESS_SIZE, file) != NULL)
            found = strncmp (out, "http://", strlen ("http://")) == 0;
        out[strcspn (out, "\n")] = '\0';
    }
    if (file != NULL)
        fclose (file);
    return found;
}

static int print_link (const config_t *config, const char *name)
{
    static tokens_t tokens;
    static sessions_t sessions;
    seal_t seal;
    char address[ADDRESS_SIZE];
    char error[TOKENS_ERROR_SIZE];
    bytes_t text = BYTES_INIT;
    if (!find_address (address, config))
        return say ("no gateway of this directory listens where a browser could reach it");
    if (!tokens_read (&tokens, config->tokens, error) || !seal_read (&seal, config->key, error))
        return say (error);
    const principal_t *principal = tokens_name (&tokens, name);
    if (principal == NULL)
        return say ("there is no token of that name");
    sessions_init (&sessions, &seal, false);
    session_make (&sessions, &text, SEAL_TICKET, principal->hash,
                  clock_ms (CLOCK_REALTIME) + SESSION_TICKET_MS);
    const char *ticket = bytes_text (&text);
    if (ticket != NULL)
        printf ("%s/ui#ticket=" SESSION_TICKET_PREFIX "%s\n", address, ticket);
    bytes_free (&text);
    seal_wipe (&seal);
    tokens_clear (&tokens);
    return ticket != NULL ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* All of it. */

static bool configure (config_t *out, const arguments_t *arguments, char error[CONFIG_ERROR_SIZE])
{
    if (!config_init (out, arguments->data, error))
        return false;
    if (arguments->config != NULL)
        snprintf (out->file, sizeof out->file, "%s", arguments->config);
    if (!config_read (out, arguments->config != NULL, error))
        return false;
    if (arguments->listen.count > 0)
        out->listen = arguments->listen;
    if (arguments->endpoints.count > 0)
        out->endpoints = arguments->endpoints;
    if (arguments->tools != NULL && !config_set (out, "tools", arguments->tools, error))
        return false;
    if (arguments->saved != NULL && !config_set (out, "profile", arguments->saved, error))
        return false;
    out->no_auth = arguments->no_auth;
    return config_judge (out, error);
}

static int check (const config_t *config)
{
    static tokens_t tokens;
    static proxied_t proxied;
    char error[TOKENS_ERROR_SIZE];
    if (!tokens_read (&tokens, config->tokens, error))
        return say (error);
    printf ("# %zu tokens\n", tokens.count);
    tokens_clear (&tokens);
    if (config->proxy_secret != NULL && !proxied_read (&proxied, config->proxy_secret, error)) {
        say (error);
        return EXIT_USAGE;
    }
    if (config->tools_told || access (config->tools, F_OK) == 0) {
        char why[TOOLS_ERROR_SIZE];
        tools_t *tools = tools_read (config->tools, why);
        if (tools == NULL) {
            say (why);
            return EXIT_USAGE;
        }
        printf ("# %zu tools\n", tools->count);
        tools_release (tools);
    }
    config_print (config, stdout);
    return EXIT_SUCCESS;
}

int main (int argc, char **argv)
{
    static config_t config;
    arguments_t arguments = {.action = ACTION_RUN};
    char error[CONFIG_ERROR_SIZE];
    umask (077);
    if (!parse (&arguments, argc, argv))
        return usage ("an option is not known, or lacks its value");
    const int count = argc - optind;
    char **words = argv + optind;
    if (arguments.action == ACTION_HELP)
        return fputs (USAGE, stdout) < 0;
    if (arguments.action == ACTION_VERSION)
        return puts ("taskmq-gateway " TASKMQ_VERSION) < 0;
    if (arguments.action == ACTION_ROUTES) {
        routes_print (stdout);
        return EXIT_SUCCESS;
    }
    const bool links = count > 0 && count <= 2 && strcmp (words[0], "link") == 0;
    if (count > 0 && !links && strcmp (words[0], "token") != 0)
        return usage ("the verbs are 'token' and 'link [NAME]'");
    if (!configure (&config, &arguments, error)) {
        say (error);
        return EXIT_USAGE;
    }
    if (links)
        return print_link (&config, count == 2 ? words[1] : FIRST_TOKEN);
    if (count > 0)
        return token_verb (&config, &arguments, count, words);
    if (arguments.action == ACTION_CHECK)
        return check (&config);
    log_configure (config.log_level, config.log_json);
    return gateway_run (&config);
}
