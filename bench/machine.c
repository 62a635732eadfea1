/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The machine that the figures belong to. What cannot be read is left empty; only a disk that
 * cannot be written ends the bench. */

#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

enum { SYNCS = 500, SYNC_BYTES = 4096, LINE_BYTES = 512 };

/* The rest of the first line of a file that begins with key, without separators and quotes. */
static void line_of (char *out, size_t size, const char *path, const char *key)
{
    FILE *file = fopen (path, "r");
    char line[LINE_BYTES];
    while (file && fgets (line, sizeof line, file)) {
        if (strncmp (line, key, strlen (key)) != 0)
            continue;
        char *at = line + strlen (key);
        at += strspn (at, " \t:=\"");
        at[strcspn (at, "\"\n")] = '\0';
        snprintf (out, size, "%s", at);
        break;
    }
    if (file)
        fclose (file);
}

static const char *filesystem_name (const char *directory)
{
    struct statfs status;
    if (statfs (directory, &status) != 0)
        return "";
    switch (status.f_type) {
    case EXT4_SUPER_MAGIC: return "ext4";
    case BTRFS_SUPER_MAGIC: return "btrfs";
    case XFS_SUPER_MAGIC: return "xfs";
    case F2FS_SUPER_MAGIC: return "f2fs";
    case NFS_SUPER_MAGIC: return "nfs";
    case TMPFS_MAGIC: return "tmpfs";
    case OVERLAYFS_SUPER_MAGIC: return "overlayfs";
    default: return "another file system";
    }
}

static void disk_measure (machine_t *out, const char *directory)
{
    char path[BENCH_PATH_MAX + 16];
    char block[SYNC_BYTES] = {1};
    histogram_t *times = need_memory (calloc (1, sizeof *times));
    snprintf (path, sizeof path, "%s/sync", directory);
    int fd = open (path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    for (int i = 0; i < SYNCS; i++) {
        uint64_t begin = now_ns ();
        if (fd < 0 || write (fd, block, sizeof block) != sizeof block || fdatasync (fd) != 0)
            die ("%s: %s", path, strerror (errno));
        histogram_add (times, now_ns () - begin);
    }
    close (fd);
    unlink (path);
    out->sync_p50_us = histogram_us (times, 0.5);
    out->sync_p99_us = histogram_us (times, 0.99);
    free (times);
}

void machine_look (machine_t *out, const char *directory)
{
    *out = (machine_t){.load = NAN, .cores = sysconf (_SC_NPROCESSORS_ONLN)};
    getloadavg (&out->load, 1);
    line_of (out->processor, sizeof out->processor, "/proc/cpuinfo", "model name");
    line_of (out->system, sizeof out->system, "/etc/os-release", "PRETTY_NAME");
    struct utsname names;
    if (uname (&names) == 0)
        snprintf (out->kernel, sizeof out->kernel, "%s", names.release);
    snprintf (out->filesystem, sizeof out->filesystem, "%s", filesystem_name (directory));
    out->memory_bytes = (double) sysconf (_SC_PHYS_PAGES) * (double) sysconf (_SC_PAGESIZE);
    time_t now = time (NULL);
    struct tm parts;
    strftime (out->date, sizeof out->date, "%Y-%m-%d %H:%M", gmtime_r (&now, &parts));
    disk_measure (out, directory);
}
