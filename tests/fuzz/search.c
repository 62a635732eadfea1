/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What somebody looks for: whatever the parser takes, an index answers without an error, so that
 * nothing of it is taken for the index's own syntax. */
#include "store/search.h"

#include <unistd.h>

#include "fuzz.h"
#include "ids.h"

static char directory[] = "fuzz-search-XXXXXX";
static search_reader_t *reader;

static void clean_up (void)
{
    static const char *const names[] = {SEARCH_FILE, SEARCH_FILE "-wal", SEARCH_FILE "-shm"};
    char path[64];
    search_reader_close (&reader);
    for (size_t i = 0; i < 3; i++) {
        snprintf (path, sizeof (path), "%s/%s", directory, names[i]);
        unlink (path);
    }
    rmdir (directory);
}

static void put (search_writer_t *writer, int64_t number, const char *text)
{
    store_error_t error;
    search_doc_t doc = {.ns = "default", .number = number};
    doc.texts[0].bytes = text;
    doc.texts[0].length = strlen (text);
    HOLDS (search_writer_put (writer, &doc, &error) == STORE_OK);
}

/* An index with a few texts, for as long as the program runs. */
static void make_index (void)
{
    search_writer_t *writer = NULL;
    search_place_t place;
    store_error_t error;
    HOLDS (mkdtemp (directory) != NULL);
    HOLDS (search_writer_open (&writer, directory, 1, 0, false, &place, &error) == STORE_OK);
    HOLDS (search_writer_begin (writer, &error) == STORE_OK);
    put (writer, 1, "the disk was full");
    put (writer, 2, "AND OR NOT NEAR (a b) {a} ^ \"quoted\" col:value");
    HOLDS (search_writer_commit (writer, &place, &error) == STORE_OK);
    HOLDS (search_reader_open (&reader, directory, &error) == STORE_OK);
    search_writer_close (&writer);
    atexit (clean_up);
}

static void check_query (const search_query_t *query)
{
    size_t positive = 0;
    size_t prefixes = 0;
    HOLDS (query->count > 0 && query->count <= TMQ_SEARCH_TERMS_MAX);
    for (size_t i = 0; i < query->count; i++) {
        const search_term_t *term = &query->terms[i];
        HOLDS (term->length > 0 && term->text >= query->text &&
               term->text + term->length <= query->text + strlen (query->text));
        HOLDS (!term->or_next || (i + 1 < query->count && !term->negated));
        positive += !term->negated;
        prefixes += term->prefix;
    }
    HOLDS (positive > 0 && prefixes <= TMQ_SEARCH_PREFIXES_MAX);
}

enum { LOOKS = 1000 }; /* more than the index has documents, for each term */

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    char error[SEARCH_ERROR_SIZE];
    store_error_t failure;
    search_query_t query;
    search_hit_t hit;
    search_step_t step = SEARCH_STEP_FOUND;
    size_t looks = LOOKS;
    char *text = fuzz_text (data, size);
    bool taken =
        utf8_is_valid (text, strlen (text)) && search_query_parse (&query, text, error) == TMQ_OK;
    if (taken) {
        check_query (&query);
        if (reader == NULL)
            make_index ();
        HOLDS (search_reader_begin (reader, "default", &query, 0, false, &failure) == STORE_OK);
        while (step == SEARCH_STEP_FOUND)
            HOLDS (search_reader_next (reader, &hit, &looks, &step, &failure) == STORE_OK);
        HOLDS (step == SEARCH_STEP_END);
        search_reader_end (reader);
    }
    free (text);
    return 0;
}
