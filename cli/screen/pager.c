/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "screen/pager.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/program.h"
#include "screen/output.h"
#include "screen/table.h"

/* The words of PAGER are the shell's business; but one that is not there would lose the output. */
static bool is_there (const char *pager)
{
    const size_t length = strcspn (pager, " \t");
    if (strcspn (pager, "$'\"`=;|&()<>\\") < length)
        return true;
    char *name = must_copy (pager);
    name[length] = '\0';
    char *path = program_find (name);
    const bool found = path != NULL;
    free (path);
    free (name);
    return found;
}

/* NULL: none is wanted. */
static const char *chosen_pager (const app_t *app)
{
    const char *pager = getenv ("PAGER");
    const char *terminal = getenv ("TERM");
    if (!isatty (STDOUT_FILENO) || args_has (&app->args, OPT_NO_PAGER))
        return NULL;
    if (!terminal || strcmp (terminal, "dumb") == 0)
        return NULL;
    if (!pager)
        return access ("/usr/bin/less", X_OK) == 0 ? "less" : NULL;
    if (!*pager || strcmp (pager, "cat") == 0)
        return NULL;
    const bool there = is_there (pager);
    if (!there)
        note (app, "taskctl: PAGER: there is no program '%s'", pager);
    return there ? pager : NULL;
}

/* The pager reads in, and obeys the keyboard's signals as if we were not there. */
static pid_t spawn_pager (const char *command, int in)
{
    char *words[] = {(char *) (uintptr_t) "sh", (char *) (uintptr_t) "-c",
                     (char *) (uintptr_t) command, NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid = 0;
    posix_spawn_file_actions_init (&actions);
    posix_spawn_file_actions_adddup2 (&actions, in, STDIN_FILENO);
    if (posix_spawn (&pid, "/bin/sh", &actions, NULL, words, environ) != 0)
        pid = 0;
    posix_spawn_file_actions_destroy (&actions);
    return pid;
}

pid_t pager_start (const app_t *app)
{
    const char *command = chosen_pager (app);
    int ends[2];
    if (!command || pipe2 (ends, O_CLOEXEC) != 0)
        return 0;
    terminal_columns (); /* is remembered: stdout is the terminal now, and soon a pipe */
    setenv ("LESS", "FRX", 0);
    const pid_t pid = spawn_pager (command, ends[0]);
    if (pid) {
        dup2 (ends[1], STDOUT_FILENO);
        signal (SIGINT, SIG_IGN); /* who interrupts means the pager; when it ends, so do we */
    }
    close (ends[0]);
    close (ends[1]);
    return pid;
}

void pager_end (pid_t pager)
{
    if (!pager)
        return;
    fclose (stdout);
    while (waitpid (pager, NULL, 0) < 0 && errno == EINTR)
        ;
}
