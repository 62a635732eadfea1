/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Failure: what the kernel cannot do is left out and said. The broker is the same without, only a
 * mistake in it would cost more.
 *
 * Landlock is called by number: the C library has no functions for it, and its header in Debian 12
 * is older than many kernels that it runs on. The filter names what is denied, not what is
 * allowed: another version of libc brings another call, and libzmq aborts when sched_setscheduler
 * is refused. The list of what is allowed is the service manager's. */
#include "confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Files. */

/* Rights of Landlock, by the kernel's numbers. */
enum {
    FS_EXECUTE = 1 << 0,
    FS_WRITE_FILE = 1 << 1,
    FS_READ_FILE = 1 << 2,
    FS_READ_DIR = 1 << 3,
    FS_REMOVE_DIR = 1 << 4,
    FS_REMOVE_FILE = 1 << 5,
    FS_MAKE_DIR = 1 << 7,
    FS_MAKE_REG = 1 << 8,
    FS_MAKE_SOCK = 1 << 9,
    FS_REFER = 1 << 13, /* move to another directory */
    FS_TRUNCATE = 1 << 14,

    FS_OF_ABI_2 = (1 << 14) - 1,
    FS_OF_ABI_3 = (1 << 15) - 1,
    FS_OF_ABI_5 = (1 << 16) - 1,

    FS_READ = FS_READ_FILE | FS_READ_DIR,
    FS_WRITE = FS_READ | FS_WRITE_FILE | FS_REMOVE_DIR | FS_REMOVE_FILE | FS_MAKE_DIR |
               FS_MAKE_REG | FS_MAKE_SOCK | FS_REFER | FS_TRUNCATE,
    FS_OF_A_FILE = FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE
};

enum {
    LANDLOCK_CREATE_RULESET = 444, /* the same on all architectures */
    LANDLOCK_ADD_RULE = 445,
    LANDLOCK_RESTRICT_SELF = 446,
    LANDLOCK_VERSION = 1, /* flag of the first: only tell the version */
    LANDLOCK_PATH_BENEATH = 1,
    LANDLOCK_ABI_MIN = 2 /* the first denies every move from one directory to another */
};

struct ruleset {
    uint64_t handled;
};

struct path_beneath {
    uint64_t allowed;
    int32_t fd;
} __attribute__ ((packed));

/* What libraries read: code, name services, time zones, randomness, the process's own numbers. */
static const confine_path_t system_paths[] = {
    {"/usr", false},         {"/lib", false},       {"/lib64", false},
    {"/etc", false},         {"/proc/self", false}, {"/sys/devices/system/cpu", false},
    {"/dev/urandom", false}, {"/dev/null", true},   {"/proc/sys/kernel/random/boot_id", false},
};

static uint64_t rights_of_abi (int abi)
{
    if (abi >= 5)
        return FS_OF_ABI_5;
    return abi >= 3 ? FS_OF_ABI_3 : FS_OF_ABI_2;
}

static bool allow (int ruleset, const confine_path_t *path, uint64_t handled)
{
    struct stat info;
    struct path_beneath rule = {.allowed = path->write ? FS_WRITE : FS_READ};
    rule.fd = open (path->path, O_PATH | O_CLOEXEC);
    if (rule.fd < 0)
        return true; /* what cannot be found cannot be used either */
    bool good = fstat (rule.fd, &info) == 0;
    if (good && !S_ISDIR (info.st_mode))
        rule.allowed &= FS_OF_A_FILE;
    rule.allowed &= handled;
    good = good && syscall (LANDLOCK_ADD_RULE, ruleset, LANDLOCK_PATH_BENEATH, &rule, 0) == 0;
    close (rule.fd);
    return good;
}

static bool allow_all (int ruleset, const confine_path_t *paths, size_t count, uint64_t handled)
{
    bool good = true;
    for (size_t i = 0; good && i < count; i++)
        good = allow (ruleset, &paths[i], handled);
    return good;
}

/* The version in use, or 0 with the reason. */
static int confine_files (const confine_path_t *paths, size_t count, char *why)
{
    long abi = syscall (LANDLOCK_CREATE_RULESET, NULL, 0, LANDLOCK_VERSION);
    if (abi < LANDLOCK_ABI_MIN) {
        snprintf (why, CONFINE_TEXT_SIZE, "this kernel has no Landlock, or an old one");
        return 0;
    }
    struct ruleset wanted = {.handled = rights_of_abi ((int) abi)};
    int ruleset = (int) syscall (LANDLOCK_CREATE_RULESET, &wanted, sizeof (wanted), 0);
    bool good = ruleset >= 0 &&
                allow_all (ruleset, system_paths, sizeof (system_paths) / sizeof (system_paths[0]),
                           wanted.handled) &&
                allow_all (ruleset, paths, count, wanted.handled) &&
                syscall (LANDLOCK_RESTRICT_SELF, ruleset, 0) == 0;
    if (!good)
        snprintf (why, CONFINE_TEXT_SIZE, "Landlock was refused: %s", strerror (errno));
    if (ruleset >= 0)
        close (ruleset);
    return good ? (int) abi : 0;
}

/* Calls. */

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#define ARCHITECTURE 0 /* the filter was not tried here */
#endif

/* The leak sanitizer looks at the process by ptrace when it ends. */
#if defined(__SANITIZE_ADDRESS__)
#define TRACED_BY_ITSELF
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TRACED_BY_ITSELF
#endif
#endif

/* Those that start programs, look into other processes, mount or see another file system, and bring
 * code into the kernel. */
static const uint32_t denied_calls[] = {
    SYS_execve,
    SYS_execveat,
#ifndef TRACED_BY_ITSELF
    SYS_ptrace,
#endif
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
    SYS_io_uring_setup,
    SYS_add_key,
    SYS_request_key,
    SYS_keyctl,
    SYS_perf_event_open,
    SYS_userfaultfd,
};
enum {
    DENIED = sizeof (denied_calls) / sizeof (denied_calls[0]),
    X32_CALL = 0x40000000, /* x86_64: the bit of a second table with all calls once more */
    FILTER_HEAD = 5
};

/* Another architecture's numbers mean other calls: whoever uses them is not the broker. */
static bool filter_calls (char *why)
{
    if (ARCHITECTURE == 0) {
        snprintf (why, CONFINE_TEXT_SIZE, "calls are not filtered on this architecture");
        return false;
    }
    struct sock_filter code[FILTER_HEAD + DENIED + 2] = {
        BPF_STMT (BPF_LD | BPF_W | BPF_ABS, offsetof (struct seccomp_data, arch)),
        BPF_JUMP (BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0),
        BPF_STMT (BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT (BPF_LD | BPF_W | BPF_ABS, offsetof (struct seccomp_data, nr)),
        BPF_JUMP (BPF_JMP | BPF_JGE | BPF_K, X32_CALL, DENIED + 1, 0),
    };
    for (size_t i = 0; i < DENIED; i++)
        code[FILTER_HEAD + i] = (struct sock_filter) BPF_JUMP (
            BPF_JMP | BPF_JEQ | BPF_K, denied_calls[i], (uint8_t) (DENIED - i), 0);
    code[FILTER_HEAD + DENIED] = (struct sock_filter) BPF_STMT (BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    code[FILTER_HEAD + DENIED + 1] =
        (struct sock_filter) BPF_STMT (BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    struct sock_fprog program = {.len = sizeof (code) / sizeof (code[0]), .filter = code};
    if (prctl (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0)
        return true;
    snprintf (why, CONFINE_TEXT_SIZE, "the filter of calls was refused: %s", strerror (errno));
    return false;
}

void confine_process (confine_report_t *out, const confine_path_t *paths, size_t count)
{
    memset (out, 0, sizeof (*out));
    if (prctl (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        snprintf (out->text, sizeof (out->text), "privileges cannot be given up: %s",
                  strerror (errno));
        return;
    }
    out->landlock = confine_files (paths, count, out->text);
    out->filter = filter_calls (out->text);
}

bool confine_memory (void)
{
    const struct rlimit none = {0, 0};
    return setrlimit (RLIMIT_CORE, &none) == 0 && prctl (PR_SET_DUMPABLE, 0, 0, 0, 0) == 0;
}
