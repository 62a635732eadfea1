/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "work/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "work/workplace.h"

enum {
    /* Between SIGTERM and SIGKILL when the worker is gone: the broker gives the task to somebody
     * else 5 s after the connection. */
    ORPHAN_GRACE_MS = 3000,
    CLEAR_MS = 1000, /* for processes that were killed to be gone */
    TIDY_MS = 200,   /* before the end of the program is told */
    LOOK_MS = 50     /* between looks at them */
};

typedef struct guard {
    pid_t program;
    int channel; /* -1: the worker is gone */
    int signals;
    bool stopping;
    uint64_t kill_at_ms; /* 0: not yet */
} guard_t;

/* The program. */

/* Until exec. The worker has blocked signals and ignores SIGPIPE; the program gets them as usual.
 * If the guard dies, it dies too: nobody could end it any more. */
static _Noreturn void program_run (const guard_plan_t *plan, pid_t guard)
{
    sigset_t none;
    sigemptyset (&none);
    setpgid (0, 0);
    prctl (PR_SET_PDEATHSIG, SIGKILL);
    signal (SIGPIPE, SIG_DFL);
    setrlimit (RLIMIT_NOFILE, plan->files);
    if (getppid () == guard && dup2 (plan->in, STDIN_FILENO) >= 0 &&
        dup2 (plan->out, STDOUT_FILENO) >= 0 && dup2 (plan->err, STDERR_FILENO) >= 0 &&
        dup2 (plan->talk, GUARD_TALK_FD) >= 0 && sigprocmask (SIG_SETMASK, &none, NULL) == 0)
        execvpe (plan->path, plan->command, plan->environment);
    const int reason = errno;
    if (write (plan->failure, &reason, sizeof reason) < 0)
        _exit (126);
    _exit (127);
}

/* Killing. */

/* SIGKILL to every child of ours: the program, and orphans of its making. Those whose parents still
 * live come to us when these die. */
static void kill_children (void)
{
    char text[4096];
    const int fd = open ("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
    const ssize_t bytes = fd < 0 ? 0 : read (fd, text, sizeof text - 1);
    pid_t pid = 0;
    if (fd >= 0)
        close (fd);
    for (ssize_t i = 0; i < bytes; i++) {
        if (text[i] >= '0' && text[i] <= '9') {
            pid = 10 * pid + (text[i] - '0');
        } else if (pid > 0) {
            kill (pid, SIGKILL);
            pid = 0;
        }
    }
}

/* The program has ended and is not reaped yet, so that its id is still the group's. */
static void clear_rest (const guard_t *self)
{
    const uint64_t deadline_ms = mono_ms () + CLEAR_MS;
    kill (-self->program, SIGKILL);
    while (mono_ms () < deadline_ms) {
        pid_t pid;
        kill_children ();
        do
            pid = waitpid (-1, NULL, WNOHANG);
        while (pid > 0);
        if (pid < 0 && errno == ECHILD)
            return;
        poll (NULL, 0, LOOK_MS);
    }
}

static void stop (guard_t *self)
{
    self->stopping = true;
    kill (-self->program, SIGTERM);
}

/* The loop. */

static void take_wish (guard_t *self)
{
    char wish;
    const ssize_t bytes = recv (self->channel, &wish, 1, MSG_DONTWAIT);
    if (bytes < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (bytes <= 0) { /* the worker is gone */
        close (self->channel);
        self->channel = -1;
        stop (self);
        self->kill_at_ms = mono_ms () + ORPHAN_GRACE_MS;
    } else if (wish == GUARD_KILL) {
        self->kill_at_ms = mono_ms ();
    } else {
        stop (self);
    }
}

static void kill_overdue (guard_t *self)
{
    if (self->kill_at_ms && mono_ms () >= self->kill_at_ms) {
        self->stopping = true;
        kill (-self->program, SIGKILL);
        kill_children ();
        self->kill_at_ms = 0;
    }
}

/* Buries orphans. True with *end when the program has ended, which is left unburied. */
static bool take_ends (const guard_t *self, guard_end_t *end)
{
    struct signalfd_siginfo ignored;
    while (read (self->signals, &ignored, sizeof ignored) > 0)
        continue;
    for (;;) {
        siginfo_t info = {0};
        if (waitid (P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid == 0)
            return false;
        if (info.si_pid == self->program) {
            const bool exited = info.si_code == CLD_EXITED;
            end->status = exited ? info.si_status : 128 + info.si_status;
            end->signal = exited ? 0 : info.si_status;
            return true;
        }
        waitpid (info.si_pid, NULL, WNOHANG);
    }
}

static void guard_loop (guard_t *self, guard_end_t *end)
{
    for (;;) {
        struct pollfd fds[] = {{self->channel, POLLIN, 0}, {self->signals, POLLIN, 0}};
        poll (fds, 2, self->kill_at_ms ? LOOK_MS : -1);
        if (fds[0].revents)
            take_wish (self);
        kill_overdue (self);
        if (take_ends (self, end))
            return;
    }
}

/* What takes so long to remove that it would hold up the outcome is left to an orphan. */
static void tidy (const guard_t *self, const char *place)
{
    bool slow;
    if (workplace_remove (place, TIDY_MS, &slow) || !slow || fork () != 0)
        return;
    if (self->channel >= 0)
        close (self->channel);
    workplace_remove (place, UINT64_MAX, &slow);
    _exit (0);
}

/* Until it has attached what there is, or is gone. */
static void await_worker (guard_t *self)
{
    char wish;
    ssize_t bytes;
    do
        bytes = recv (self->channel, &wish, sizeof wish, 0);
    while (bytes > 0 || (bytes < 0 && errno == EINTR));
    close (self->channel);
    self->channel = -1;
}

static bool close_between (unsigned low, unsigned high)
{
    return low + 1 >= high || close_range (low + 1, high - 1, 0) == 0;
}

/* Closes what was the worker's: a pipe of another job must end when the worker closes it. */
static bool keep_only (int one, int other)
{
    const unsigned low = (unsigned) (one < other ? one : other);
    const unsigned high = (unsigned) (one < other ? other : one);
    const int nothing = open ("/dev/null", O_RDWR | O_CLOEXEC);
    bool good = nothing >= 0;
    for (int fd = STDIN_FILENO; good && fd <= STDERR_FILENO; fd++)
        good = dup2 (nothing, fd) >= 0;
    return good && close_between (STDERR_FILENO, low) && close_between (low, high) &&
           close_range (high + 1, UINT32_MAX, 0) == 0;
}

static _Noreturn void give_up (const guard_plan_t *plan, int reason)
{
    if (write (plan->failure, &reason, sizeof reason) < 0)
        _exit (126);
    _exit (127);
}

_Noreturn void guard_run (const guard_plan_t *plan, int channel)
{
    guard_t self = {.channel = channel};
    guard_end_t end = {0};
    sigset_t all;
    sigset_t children;
    sigfillset (&all);
    sigprocmask (SIG_BLOCK, &all, NULL);
    sigemptyset (&children);
    sigaddset (&children, SIGCHLD);
    setpgid (0, 0); /* what is meant for the worker's group must not end us */
    prctl (PR_SET_NAME, "taskmq-guard");
    self.signals = signalfd (-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
    if (self.signals < 0 || prctl (PR_SET_CHILD_SUBREAPER, 1) != 0)
        give_up (plan, errno);
    const pid_t guard = getpid ();
    self.program = fork ();
    if (self.program == 0)
        program_run (plan, guard);
    if (self.program < 0)
        give_up (plan, errno);
    setpgid (self.program, self.program);
    if (!keep_only (self.channel, self.signals)) {
        const int reason = errno;
        kill (self.program, SIGKILL);
        give_up (plan, reason);
    }
    guard_loop (&self, &end);
    if (self.stopping || end.signal)
        clear_rest (&self);
    end.kept = self.channel >= 0 && workplace_keep (plan->artifacts, plan->kept);
    tidy (&self, plan->place);
    if (self.channel >= 0)
        send (self.channel, &end, sizeof end, MSG_NOSIGNAL);
    if (end.kept) {
        await_worker (&self);
        tidy (&self, plan->kept);
    }
    _exit (0);
}
