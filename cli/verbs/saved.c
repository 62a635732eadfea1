/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "verbs/saved.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ids.h"
#include "profile.h"

static const char ENDING[] = ".conf";

static int is_profile (const struct dirent *entry)
{
    char name[PROFILE_NAME_SIZE];
    const size_t length = strlen (entry->d_name);
    const size_t ending = sizeof ENDING - 1;
    if (length <= ending || length - ending >= sizeof name ||
        strcmp (entry->d_name + length - ending, ENDING) != 0)
        return 0;
    memcpy (name, entry->d_name, length - ending);
    name[length - ending] = '\0';
    return name_is_valid (name);
}

char **saved_names (size_t *count)
{
    char path[PATH_MAX];
    struct dirent **entries = NULL;
    *count = 0;
    if (!profile_home (path, "profiles"))
        return NULL;
    const int found = scandir (path, &entries, is_profile, alphasort);
    if (found <= 0)
        return NULL;
    char **names = must_alloc ((size_t) found * sizeof *names);
    for (int i = 0; i < found; i++) {
        entries[i]->d_name[strlen (entries[i]->d_name) - (sizeof ENDING - 1)] = '\0';
        names[(*count)++] = must_copy (entries[i]->d_name);
        free (entries[i]);
    }
    free (entries);
    return names;
}

void saved_free (char **names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free (names[i]);
    free (names);
}
