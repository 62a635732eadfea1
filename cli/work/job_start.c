/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Starting a child: pipes, environment, process group, exec. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "work/job.h"

enum {
    TALK_FD = 3,      /* of the child: one digit, because dash reads no more behind >& */
    FD_HIGH_MIN = 10, /* ours are above the child's 0..3, so that dup2 cannot clash */
    VARIABLES_MAX = 8
};

/* The child's ends, and the pipe that tells why exec failed. */
typedef struct child_ends {
    int in, out, err, talk;
    int failure;
} child_ends_t;

static bool is_program (const char *path)
{
    struct stat status;
    if (stat (path, &status) != 0)
        return false;
    if (!S_ISREG (status.st_mode)) {
        errno = EACCES;
        return false;
    }
    return access (path, X_OK) == 0;
}

char *job_find_program (const char *name)
{
    const char *path = getenv ("PATH");
    int reason = ENOENT;
    if (strchr (name, '/'))
        return is_program (name) ? must_copy (name) : NULL;
    if (!path)
        path = "/usr/local/bin:/usr/bin:/bin";
    while (*name) {
        const size_t length = strcspn (path, ":");
        char *candidate = must_alloc (length + strlen (name) + 3);
        sprintf (candidate, "%.*s/%s", (int) (length ? length : 1), length ? path : ".", name);
        if (is_program (candidate))
            return candidate;
        reason = errno == EACCES ? EACCES : reason;
        free (candidate);
        if (!path[length])
            break;
        path += length + 1;
    }
    errno = reason;
    return NULL;
}

/* Descriptors. */

static void close_fd (int *fd)
{
    if (*fd >= 0)
        close (*fd);
    *fd = -1;
}

/* Moves both ends out of the way of the child's 0..3. */
static bool move_up (int pair[2])
{
    bool good = true;
    for (int i = 0; i < 2; i++) {
        const int high = fcntl (pair[i], F_DUPFD_CLOEXEC, FD_HIGH_MIN);
        good = good && high >= 0;
        close_fd (&pair[i]);
        pair[i] = high;
    }
    return good;
}

static bool make_pipe (int *reader, int *writer)
{
    int pair[2] = {-1, -1};
    const bool good = pipe2 (pair, O_CLOEXEC) == 0 && move_up (pair);
    *reader = pair[0];
    *writer = pair[1];
    return good;
}

static bool make_ends (work_job_t *job, child_ends_t *ends, int *failure, bool feed)
{
    int talk[2] = {-1, -1};
    bool good = make_pipe (&job->fds[JOB_OUT], &ends->out) &&
                make_pipe (&job->fds[JOB_ERR], &ends->err) && make_pipe (failure, &ends->failure);
    if (good && feed)
        good = make_pipe (&ends->in, &job->fds[JOB_IN]);
    else if (good)
        good = (ends->in = open ("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;
    if (good)
        good = socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, talk) == 0 && move_up (talk);
    job->fds[JOB_TALK] = talk[0];
    ends->talk = talk[1];
    for (int i = JOB_IN; good && i < JOB_FDS; i++) {
        if (job->fds[i] >= 0)
            good = fcntl (job->fds[i], F_SETFL, fcntl (job->fds[i], F_GETFL) | O_NONBLOCK) == 0;
    }
    return good;
}

static void close_ends (child_ends_t *ends)
{
    close_fd (&ends->in);
    close_fd (&ends->out);
    close_fd (&ends->err);
    close_fd (&ends->talk);
    close_fd (&ends->failure);
}

/* What the child is given. */

static bool write_whole (int fd, const char *data, size_t bytes)
{
    while (bytes > 0) {
        const ssize_t n = write (fd, data, bytes);
        if (n < 0 && errno != EINTR)
            return false;
        data += n > 0 ? n : 0;
        bytes -= n > 0 ? (size_t) n : 0;
    }
    return true;
}

static bool write_payload_file (work_job_t *job)
{
    const char *directory = getenv ("TMPDIR");
    if (!directory || !*directory)
        directory = "/tmp";
    job->payload_path = must_alloc (strlen (directory) + sizeof "/taskmq-payload-XXXXXX");
    sprintf (job->payload_path, "%s/taskmq-payload-XXXXXX", directory);
    int fd = mkostemp (job->payload_path, O_CLOEXEC);
    if (fd < 0) {
        free (job->payload_path);
        job->payload_path = NULL;
        return false;
    }
    const bool good = write_whole (fd, job->assignment->payload, job->assignment->payload_bytes);
    close_fd (&fd);
    return good;
}

static char *variable (const char *name, const char *value)
{
    char *text = must_alloc (strlen (name) + strlen (value) + 2);
    sprintf (text, "%s=%s", name, value);
    return text;
}

/* Our environment without the variables of an outer worker, and the ones of this job. The first
 * *ours entries are freed with the array. */
static char **make_environment (const work_job_t *job, size_t *ours)
{
    static const char *const names[] = {
        "TASKMQ_TASK_ID=", "TASKMQ_ATTEMPT=", "TASKMQ_QUEUE=",        "TASKMQ_SESSION=",
        "TASKMQ_METHOD=",  "TASKMQ_FD=",      "TASKMQ_PAYLOAD_FILE=",
    };
    const tmq_assignment_t *task = job->assignment;
    char number[16];
    char id[37];
    size_t count = 0;
    size_t inherited = 0;
    while (environ[inherited])
        inherited++;
    char **out = must_alloc ((inherited + VARIABLES_MAX + 1) * sizeof *out);
    tmq_id_format (&task->task_id, id);
    out[count++] = variable ("TASKMQ_TASK_ID", id);
    snprintf (number, sizeof number, "%u", task->attempt);
    out[count++] = variable ("TASKMQ_ATTEMPT", number);
    out[count++] = variable ("TASKMQ_QUEUE", task->queue);
    out[count++] = variable ("TASKMQ_SESSION", task->session);
    out[count++] = variable ("TASKMQ_METHOD", task->method);
    snprintf (number, sizeof number, "%d", TALK_FD);
    out[count++] = variable ("TASKMQ_FD", number);
    if (job->payload_path)
        out[count++] = variable ("TASKMQ_PAYLOAD_FILE", job->payload_path);
    *ours = count;
    for (size_t i = 0; i < inherited; i++) {
        bool replaced = false;
        for (size_t n = 0; n < sizeof names / sizeof *names; n++)
            replaced = replaced || strncmp (environ[i], names[n], strlen (names[n])) == 0;
        if (!replaced)
            out[count++] = environ[i];
    }
    return out;
}

static void free_environment (char **environment, size_t ours)
{
    for (size_t i = 0; i < ours; i++)
        free (environment[i]);
    free (environment);
}

/* The child. */

/* In the child, until exec. The parent has blocked signals and ignores SIGPIPE; the program gets
 * them as usual. If we die, it gets SIGTERM: nobody could store its result. */
static _Noreturn void child_run (const job_plan_t *plan, const child_ends_t *ends,
                                 char **environment, pid_t parent)
{
    sigset_t none;
    sigemptyset (&none);
    setpgid (0, 0);
    prctl (PR_SET_PDEATHSIG, SIGTERM);
    signal (SIGPIPE, SIG_DFL);
    setrlimit (RLIMIT_NOFILE, &plan->files);
    if (getppid () == parent && dup2 (ends->in, STDIN_FILENO) >= 0 &&
        dup2 (ends->out, STDOUT_FILENO) >= 0 && dup2 (ends->err, STDERR_FILENO) >= 0 &&
        dup2 (ends->talk, TALK_FD) >= 0 && sigprocmask (SIG_SETMASK, &none, NULL) == 0)
        execvpe (plan->path, plan->command, environment);
    const int reason = errno;
    if (write (ends->failure, &reason, sizeof reason) < 0)
        _exit (126);
    _exit (127);
}

/* Waits until exec has happened (the pipe closes) or failed (it tells why). */
static bool exec_succeeded (int failure, pid_t pid)
{
    int reason = 0;
    ssize_t n;
    do
        n = read (failure, &reason, sizeof reason);
    while (n < 0 && errno == EINTR);
    if (n != (ssize_t) sizeof reason)
        return true;
    waitpid (pid, NULL, 0);
    errno = reason;
    return false;
}

static bool launch (work_job_t *job, const job_plan_t *plan, child_ends_t *ends, int failure,
                    bool *unrunnable)
{
    size_t ours;
    char **environment = make_environment (job, &ours);
    const pid_t parent = getpid ();
    job->pid = fork ();
    if (job->pid == 0)
        child_run (plan, ends, environment, parent);
    const int reason = errno;
    free_environment (environment, ours);
    close_ends (ends);
    errno = reason;
    if (job->pid < 0)
        return false;
    setpgid (job->pid, job->pid);
    if (!exec_succeeded (failure, job->pid)) {
        *unrunnable = errno == ENOENT || errno == EACCES || errno == ENOEXEC || errno == ENOTDIR;
        return false;
    }
    job->fds[JOB_PID] = pidfd_open (job->pid, 0);
    return job->fds[JOB_PID] >= 0;
}

work_job_t *job_start (const job_plan_t *plan, tmq_worker_t *worker, tmq_assignment_t **assignment,
                       bool *unrunnable)
{
    work_job_t *job = must_alloc (sizeof *job);
    child_ends_t ends = {-1, -1, -1, -1, -1};
    int failure = -1;
    *unrunnable = false;
    job->assignment = *assignment;
    job->worker = worker;
    job->started_at_ms = mono_ms ();
    for (int i = 0; i < JOB_FDS; i++)
        job->fds[i] = -1;
    const bool good = (!plan->payload_file || write_payload_file (job)) &&
                      make_ends (job, &ends, &failure, !plan->payload_file) &&
                      launch (job, plan, &ends, failure, unrunnable);
    const int reason = errno;
    close_ends (&ends);
    close_fd (&failure);
    if (good) {
        *assignment = NULL;
        return job;
    }
    job->assignment = NULL;
    job_free (job);
    errno = reason;
    return NULL;
}

void job_free (work_job_t *job)
{
    if (!job)
        return;
    for (int i = 0; i < JOB_FDS; i++)
        close_fd (&job->fds[i]);
    if (job->payload_path)
        unlink (job->payload_path);
    free (job->payload_path);
    free (job->out);
    tmq_assignment_free (job->assignment);
    free (job);
}
