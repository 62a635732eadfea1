/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Failure: what cannot be read here is left to FTS5, whose own reading tells it. */
#include "store/sqlite/search_words.h"

#include <string.h>

static void add_quoted (bytes_t *out, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        bytes_append (out, text[i] == '"' ? "\"\"" : &text[i], text[i] == '"' ? 2 : 1);
}

static void add_term (bytes_t *out, const search_term_t *term)
{
    bytes_append_byte (out, '"');
    add_quoted (out, term->text, term->length);
    bytes_append (out, term->prefix ? "\"*" : "\"", term->prefix ? 2 : 1);
}

static bool is_letter (char c)
{
    return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
}

/* Bytes of the word that may go on; 0: only FTS5 knows what becomes of it in the index. */
static size_t last_word (const search_term_t *term)
{
    size_t length = 0;
    for (size_t i = 0; i < term->length; i++) {
        if ((unsigned char) term->text[i] >= 0x80)
            return 0;
        length = is_letter (term->text[i]) ? length + 1 : 0;
    }
    return length;
}

/* The first word of the index that is not before the key. Copied into `word`; false: there is none
 * that begins as asked, or it is too long. */
static bool next_word (sqlite3_stmt *words, const bytes_t *key, size_t begin, bytes_t *word)
{
    bool good = false;
    bytes_clear (word);
    sqlite3_bind_text (words, 1, (const char *) key->data, (int) key->length, SQLITE_TRANSIENT);
    if (sqlite3_step (words) == SQLITE_ROW) {
        const char *text = (const char *) sqlite3_column_text (words, 0);
        size_t length = (size_t) sqlite3_column_bytes (words, 0);
        good = text != NULL && key->data != NULL && length >= begin &&
               memcmp (text, key->data, begin) == 0;
        if (good)
            bytes_append (word, text, length);
    }
    sqlite3_reset (words);
    return good && !word->failed;
}

/* At most `most` words. False: there are none, or more; something may be appended. */
static bool add_words (bytes_t *out, const search_term_t *term, size_t begin, sqlite3_stmt *words,
                       size_t most)
{
    size_t head = term->length - begin;
    size_t start = out->length;
    size_t count = 0;
    bytes_t key = BYTES_INIT;
    bytes_t word = BYTES_INIT;
    for (size_t i = head; i < term->length; i++)
        bytes_append_byte (&key, (uint8_t) (term->text[i] >= 'A' && term->text[i] <= 'Z'
                                                ? term->text[i] | 32
                                                : term->text[i]));
    while (count <= most && out->length - start <= SEARCH_WORDS_BYTES_MAX &&
           next_word (words, &key, begin, &word)) {
        bytes_append_text (out, count++ > 0 ? " OR \"" : "\"");
        add_quoted (out, term->text, head);
        bytes_append (out, word.data, word.length);
        bytes_append_byte (out, '"');
        bytes_clear (&key);
        bytes_append (&key, word.data, word.length);
        bytes_append_byte (&key, 1); /* no word has such a byte */
    }
    bool good =
        count > 0 && count <= most && out->length - start <= SEARCH_WORDS_BYTES_MAX && !key.failed;
    bytes_free (&key);
    bytes_free (&word);
    return good;
}

void search_words_express (bytes_t *out, const search_term_t *term, sqlite3_stmt *words)
{
    size_t before = out->length;
    size_t begin = term->prefix && words != NULL ? last_word (term) : 0;
    if (begin > SEARCH_PREFIX_MAX && add_words (out, term, begin, words, SEARCH_WORDS_MAX))
        return;
    out->length = before;
    add_term (out, term);
}

bool search_words_are_many (const search_term_t *term, sqlite3_stmt *words)
{
    bytes_t ignored = BYTES_INIT;
    size_t begin = term->prefix ? last_word (term) : 0;
    bool few = begin > SEARCH_PREFIX_MAX &&
               (add_words (&ignored, term, begin, words, SEARCH_WORDS_FEW) || ignored.length == 0);
    bytes_free (&ignored);
    return term->prefix && !few;
}
