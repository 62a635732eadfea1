/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What a confined process may not do any more, tried by one: each test runs in a child, because
 * nothing gives it back. */
#include "support/cmocka_all.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "confine.h"

enum { SKIPPED = 77 };

static char home[64];
static char own[80];
static char foreign[80];
static char shown[80];

static int make_home (void **state)
{
    (void) state;
    snprintf (home, sizeof (home), "/tmp/taskmq-test-XXXXXX");
    if (mkdtemp (home) == NULL)
        return -1;
    snprintf (own, sizeof (own), "%s/own", home);
    snprintf (shown, sizeof (shown), "%s/shown", home);
    snprintf (foreign, sizeof (foreign), "%s/foreign", home);
    char command[1024];
    snprintf (command, sizeof (command), "for d in %s %s %s; do mkdir $d && echo a >$d/a; done",
              own, shown, foreign);
    return system (command);
}

static int remove_home (void **state)
{
    (void) state;
    char command[128];
    snprintf (command, sizeof (command), "rm -r %s", home);
    return system (command);
}

/* The test in a child; it returns the number of the line that failed, 0 or SKIPPED. */
static void in_child (int (*test) (void))
{
    fflush (NULL);
    pid_t pid = fork ();
    assert_true (pid >= 0);
    if (pid == 0) {
        int line = test ();
        if (line != 0 && line != SKIPPED)
            fprintf (stderr, "line %d: %s\n", line, strerror (errno));
        _exit (line == 0 || line == SKIPPED ? line : 1);
    }
    int status;
    assert_int_equal (waitpid (pid, &status, 0), pid);
    assert_true (WIFEXITED (status));
    if (WEXITSTATUS (status) == SKIPPED) {
        puts ("skipped: the kernel lacks it");
        skip ();
    }
    assert_int_equal (WEXITSTATUS (status), 0);
}

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return __LINE__;                                                                       \
    } while (0)

static confine_report_t give_up (void)
{
    const confine_path_t paths[] = {
        {own, true}, {shown, false}, {"/tmp/taskmq-no-such-directory", true}};
    confine_report_t report;
    confine_process (&report, paths, sizeof (paths) / sizeof (paths[0]));
    return report;
}

static const char *at (const char *directory, const char *name)
{
    static char path[2][128];
    static int turn;
    turn = !turn;
    snprintf (path[turn], sizeof (path[turn]), "%s/%s", directory, name);
    return path[turn];
}

static bool opens (const char *path, int flags)
{
    int fd = open (path, flags | O_CLOEXEC, 0600);
    if (fd >= 0)
        close (fd);
    return fd >= 0;
}

static bool makes_socket (const char *directory)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf (address.sun_path, sizeof (address.sun_path), "%s/socket", directory);
    int fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool made = bind (fd, (struct sockaddr *) &address, sizeof (address)) == 0;
    close (fd);
    return made && unlink (address.sun_path) == 0;
}

static int use_own (void)
{
    CHECK (give_up ().landlock >= 0);
    CHECK (opens (at (own, "a"), O_RDWR | O_TRUNC));
    CHECK (opens (at (own, "new"), O_RDWR | O_CREAT | O_EXCL));
    CHECK (rename (at (own, "new"), at (own, "newer")) == 0);
    CHECK (mkdir (at (own, "below"), 0700) == 0);
    CHECK (rename (at (own, "newer"), at (own, "below/newer")) == 0);
    CHECK (unlink (at (own, "below/newer")) == 0);
    CHECK (rmdir (at (own, "below")) == 0);
    CHECK (makes_socket (own));
    CHECK (opens (at (shown, "a"), O_RDONLY));
    CHECK (opens ("/etc/passwd", O_RDONLY));
    CHECK (opens ("/proc/self/statm", O_RDONLY));
    CHECK (opens ("/dev/null", O_RDWR));
    return 0;
}

static void test_what_is_its_own_stays_in_reach (void **state)
{
    (void) state;
    in_child (use_own);
}

#define DENIED(code, call) CHECK (!(call) && errno == (code))

static int use_foreign (void)
{
    if (give_up ().landlock == 0)
        return SKIPPED;
    DENIED (EACCES, opens (at (shown, "a"), O_WRONLY));
    DENIED (EACCES, opens (at (shown, "new"), O_WRONLY | O_CREAT));
    DENIED (EACCES, opens (at (foreign, "a"), O_RDONLY));
    DENIED (EACCES, opens (at (foreign, "a"), O_WRONLY | O_APPEND));
    DENIED (EACCES, opens (foreign, O_RDONLY | O_DIRECTORY));
    DENIED (EACCES, opens (at (foreign, "new"), O_WRONLY | O_CREAT));
    DENIED (EACCES, unlink (at (foreign, "a")) == 0);
    DENIED (EACCES, mkdir (at (foreign, "below"), 0700) == 0);
    DENIED (EACCES, makes_socket (foreign));
    DENIED (EACCES, symlink ("/etc/passwd", at (own, "link")) == 0);
    CHECK (rename (at (own, "a"), at (foreign, "b")) != 0);
    CHECK (rename (at (foreign, "a"), at (own, "b")) != 0);
    DENIED (EACCES, opens ("/proc/1/environ", O_RDONLY));
    DENIED (EACCES, opens ("/proc/self/../1/environ", O_RDONLY));
    DENIED (EACCES, opens ("/", O_RDONLY | O_DIRECTORY));
    return 0;
}

static void test_what_is_not_its_own_is_out_of_reach (void **state)
{
    (void) state;
    in_child (use_foreign);
}

static long call (long number)
{
    return syscall (number, 0, 0, 0, 0, 0, 0);
}

static int make_calls (void)
{
    static const long numbers[] = {
        SYS_execve,
        SYS_execveat,
        SYS_process_vm_readv,
        SYS_process_vm_writev,
        SYS_process_madvise,
        SYS_pidfd_getfd,
        SYS_kcmp,
        SYS_fanotify_init,
        SYS_mount,
        SYS_umount2,
        SYS_pivot_root,
        SYS_open_tree,
        SYS_move_mount,
        SYS_fsopen,
        SYS_fsconfig,
        SYS_fsmount,
        SYS_fspick,
        SYS_mount_setattr,
        SYS_chroot,
        SYS_open_by_handle_at,
        SYS_unshare,
        SYS_setns,
        SYS_bpf,
        SYS_init_module,
        SYS_finit_module,
        SYS_delete_module,
        SYS_kexec_load,
        SYS_kexec_file_load,
        SYS_add_key,
        SYS_request_key,
        SYS_keyctl,
        SYS_userfaultfd,
        SYS_io_uring_setup,
        SYS_perf_event_open,
    };
    if (!give_up ().filter)
        return SKIPPED;
    for (size_t i = 0; i < sizeof (numbers) / sizeof (numbers[0]); i++)
        DENIED (EPERM, call (numbers[i]) == 0);
    char *const arguments[] = {"true", NULL};
    DENIED (EPERM, execv ("/bin/true", arguments) == 0);
#ifndef __SANITIZE_ADDRESS__ /* the leak sanitizer needs it */
    DENIED (EPERM, call (SYS_ptrace) == 0);
#endif
#ifdef __x86_64__
    enum { X32_CALL = 0x40000000 };
    DENIED (EPERM, call (X32_CALL | SYS_getpid) == 0);
#endif
    CHECK (call (SYS_getpid) == getpid ());
    return 0;
}

static void test_calls_that_a_broker_never_makes_are_refused (void **state)
{
    (void) state;
    in_child (make_calls);
}

static void *try_in_thread (void *context)
{
    confine_report_t *report = context;
    char *const arguments[] = {"true", NULL};
    bool held = true;
    if (report->landlock > 0)
        held = !opens (at (foreign, "a"), O_RDONLY) && errno == EACCES;
    if (report->filter)
        held = held && execv ("/bin/true", arguments) != 0 && errno == EPERM;
    held = held && prctl (PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
    return held ? context : NULL;
}

static int start_thread (void)
{
    confine_report_t report = give_up ();
    pthread_t thread;
    void *held;
    CHECK (pthread_create (&thread, NULL, try_in_thread, &report) == 0);
    CHECK (pthread_join (thread, &held) == 0);
    CHECK (held != NULL);
    return 0;
}

static void test_threads_that_start_later_are_held_too (void **state)
{
    (void) state;
    in_child (start_thread);
}

static int hide_memory (void)
{
    struct rlimit core;
    CHECK (confine_memory ());
    CHECK (getrlimit (RLIMIT_CORE, &core) == 0 && core.rlim_cur == 0 && core.rlim_max == 0);
    CHECK (prctl (PR_GET_DUMPABLE, 0, 0, 0, 0) == 0);
    return 0;
}

static void test_memory_with_a_key_leaves_no_core (void **state)
{
    (void) state;
    in_child (hide_memory);
}

/* The report says what is missing, and only then. */
static int read_report (void)
{
    confine_report_t report = give_up ();
    CHECK ((report.text[0] == '\0') == (report.landlock > 0 && report.filter));
    return 0;
}

static void test_the_report_says_what_is_missing (void **state)
{
    (void) state;
    in_child (read_report);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_what_is_its_own_stays_in_reach),
        cmocka_unit_test (test_what_is_not_its_own_is_out_of_reach),
        cmocka_unit_test (test_calls_that_a_broker_never_makes_are_refused),
        cmocka_unit_test (test_threads_that_start_later_are_held_too),
        cmocka_unit_test (test_memory_with_a_key_leaves_no_core),
        cmocka_unit_test (test_the_report_says_what_is_missing),
    };
    return cmocka_run_group_tests (tests, make_home, remove_home);
}
