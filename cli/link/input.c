/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "link/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "screen/output.h"

enum { READ_STEP_BYTES = 64 * 1024 };

int read_all (const app_t *app, char **data, size_t *bytes, const char *path, size_t limit)
{
    const bool from_stdin = strcmp (path, "-") == 0;
    const int fd = from_stdin ? STDIN_FILENO : open (path, O_RDONLY | O_CLOEXEC);
    const char *name = from_stdin ? "standard input" : path;
    size_t used = 0;
    size_t room = 0;
    ssize_t n = fd < 0 ? -1 : 1;
    *data = NULL;
    while (n > 0 && used <= limit) {
        if (room - used < READ_STEP_BYTES) {
            room = 2 * room + READ_STEP_BYTES;
            *data = must_grow (*data, room + 1, 1);
        }
        do
            n = read (fd, *data + used, room - used);
        while (n < 0 && errno == EINTR);
        used += n > 0 ? (size_t) n : 0;
    }
    const int reason = errno;
    if (fd >= 0 && !from_stdin)
        close (fd);
    *bytes = used;
    if (n >= 0 && used <= limit) {
        (*data)[used] = '\0';
        return 0;
    }
    free (*data);
    *data = NULL;
    if (n < 0)
        return usage_error (app, NULL, "cannot read %s: %s", name, strerror (reason));
    return code_error (app, TMQ_TOO_LARGE, NULL, "%s has more than the limit of %zu bytes", name,
                       limit);
}

bool input_is_piped (void)
{
    struct stat status;
    int bytes = 0;
    return fstat (STDIN_FILENO, &status) == 0 && S_ISFIFO (status.st_mode) &&
           ioctl (STDIN_FILENO, FIONREAD, &bytes) == 0 && bytes > 0;
}
