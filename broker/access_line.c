/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Words are replaced one by one, so what nobody asked to change, a comment too, stays as it is. */
#include "access_line.h"

#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "core/base/memory.h"

char *access_line_find (const char *text, size_t bytes, unsigned number)
{
    const char *end = text + bytes;
    for (unsigned i = 1; text < end; i++) {
        const char *newline = memchr (text, '\n', (size_t) (end - text));
        size_t length = newline == NULL ? (size_t) (end - text) : (size_t) (newline - text);
        if (i == number) {
            char *line = memory_alloc (length + 1);
            memcpy (line, text, length);
            line[length] = '\0';
            return line;
        }
        text += length + 1;
    }
    return memory_text ("");
}

/* Takes the buffer. */
static char *text_of (bytes_t *bytes)
{
    char *text = memory_text (bytes_text (bytes));
    bytes_free (bytes);
    return text;
}

static void add_word (bytes_t *out, const char *before, const char *word)
{
    if (word == NULL || word[0] == '\0')
        return;
    if (out->length > 0)
        bytes_append_text (out, " ");
    bytes_append_text (out, before);
    bytes_append_text (out, word);
}

/* The value of an option, if the word is this one. */
static const char *value_of (const char *word, const char *option)
{
    size_t length = strlen (option);
    return strncmp (word, option, length) == 0 ? word + length : NULL;
}

char *access_line_make (const char *old, const access_line_t *wanted)
{
    const struct {
        const char *name;
        const char *value;
    } options[] = {{"until=", wanted->until},
                   {"uses=", wanted->uses},
                   {"as=", wanted->as},
                   {"used=", wanted->used}};
    enum { OPTIONS = sizeof (options) / sizeof (options[0]) };
    char *copy = memory_text (old);
    char *comment = strchr (copy, '#');
    bytes_t grants = BYTES_INIT;
    bytes_t others = BYTES_INIT;
    bytes_t out = BYTES_INIT;
    char *rest = NULL;
    size_t place = 0;
    const char *who = NULL;
    char *tail = memory_text (comment);
    if (comment != NULL)
        *comment = '\0';
    for (char *word = strtok_r (copy, " \t", &rest); word != NULL;
         word = strtok_r (NULL, " \t", &rest), place++) {
        bool replaced = false;
        for (size_t i = 0; i < OPTIONS && place > 1; i++)
            replaced =
                replaced || (value_of (word, options[i].name) != NULL && options[i].value != NULL);
        if (place == 1)
            who = word;
        else if (place > 1 && strchr (word, '=') == NULL)
            add_word (&grants, "", word);
        else if (place > 1 && !replaced)
            add_word (&others, "", word);
    }
    add_word (&out, "", wanted->name);
    add_word (&out, "", wanted->who != NULL ? wanted->who : who);
    add_word (&out, "", wanted->grants != NULL ? wanted->grants : bytes_text (&grants));
    for (size_t i = 0; i < OPTIONS; i++)
        add_word (&out, options[i].name, options[i].value);
    add_word (&out, "", bytes_text (&others));
    add_word (&out, "", tail);
    bytes_free (&grants);
    bytes_free (&others);
    free (copy);
    free (tail);
    return text_of (&out);
}

/* The second word, cut at its commas; which of them stay is told by keep. */
static char *filter_who (const char *line, bool (*keep) (const char *word, const char *key),
                         const char *key, const char *add)
{
    char *copy = memory_text (line);
    char *rest = NULL;
    bytes_t out = BYTES_INIT;
    strtok_r (copy, " \t", &rest);
    char *who = strtok_r (NULL, " \t", &rest);
    for (char *word = who == NULL ? NULL : strtok_r (who, ",", &rest); word != NULL;
         word = strtok_r (NULL, ",", &rest)) {
        if (!keep (word, key))
            continue;
        bytes_append_text (&out, out.length > 0 ? "," : "");
        bytes_append_text (&out, word);
    }
    if (add != NULL) {
        bytes_append_text (&out, out.length > 0 ? "," : "");
        bytes_append_text (&out, add);
    }
    free (copy);
    return text_of (&out);
}

static bool is_another (const char *word, const char *key)
{
    return key == NULL || strcmp (word, key) != 0;
}

static bool is_it_or_no_key (const char *word, const char *key)
{
    return strncmp (word, "key:", 4) != 0 || strcmp (word, key) == 0;
}

char *access_line_who (const char *line, const char *add, const char *drop)
{
    return filter_who (line, is_another, drop, add);
}

char *access_line_who_alone (const char *line, const char *key)
{
    return filter_who (line, is_it_or_no_key, key, NULL);
}
