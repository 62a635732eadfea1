/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* no_landlock PROGRAM ARGUMENT...: runs it as on a kernel without Landlock, as in many containers:
 * its calls are answered ENOSYS. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

int main (int argc, char **argv)
{
    enum { FIRST = 444, LAST = 446 };
    struct sock_filter code[] = {
        BPF_STMT (BPF_LD | BPF_W | BPF_ABS, offsetof (struct seccomp_data, nr)),
        BPF_JUMP (BPF_JMP | BPF_JGE | BPF_K, FIRST, 0, 2),
        BPF_JUMP (BPF_JMP | BPF_JGT | BPF_K, LAST, 1, 0),
        BPF_STMT (BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT (BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof (code) / sizeof (code[0]), .filter = code};
    if (argc < 2 || prctl (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        perror ("no_landlock");
        return 77;
    }
    execv (argv[1], argv + 1);
    perror (argv[1]);
    return 127;
}
