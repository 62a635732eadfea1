/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Runs the simulation over many seeds, and over engines with a planted bug each, which it must
 * find.
 *
 *     test_sim                     what CI runs
 *     test_sim --seeds N           N seeds without planted bugs, from --from SEED
 *     test_sim --seed N [-v]       one run, as it was
 *     test_sim --bug B ...         the same with a planted bug
 *     test_sim --shared ...        the same with several brokers on one database
 *     test_sim --hunt N [--bug B]  how many of N seeds find each planted bug, or that one */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/planted.h"
#include "sim.h"
#include "support/cmocka_all.h"

/* There is one thread only: the thread sanitizer has little to find and takes long. */
#ifdef __SANITIZE_THREAD__
#define SEEDS_IN_CI 20
#elif defined(__SANITIZE_ADDRESS__) /* five times slower: it looks at half of them */
#define SEEDS_IN_CI 100
#else
#define SEEDS_IN_CI 200
#endif

/* What the checker finds is the same under a sanitizer: there the planted bugs are left out. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define IF_HUNTING(test)
#else
#define IF_HUNTING(test) test,
#endif

enum {
    SEEDS = SEEDS_IN_CI, /* of the sound engine */
    SHARED_EVERY = 3,    /* seed has several brokers on one database */
    SEEDS_TO_FIND = 50,  /* within which a planted bug must be found, … */
    SEEDS_OF_RARE = 100, /* … and one that needs a kill in a rare moment */
    SEED_CPU_S_MAX = 60, /* of one seed; it takes a fifth of a second, sanitized some seconds */
    FOUND_PERCENT = 80,  /* of the seeds of a long hunt; less often is seldom */
    FAILURE_BYTES = 1024
};

static bool all_shared;  /* all seeds have several brokers */
static char endless[80]; /* what is said then */

/* The virtual time bounds the steps of a run, but not a loop within the engine. */
static void give_up (int signal)
{
    (void) signal;
    ssize_t written = write (STDOUT_FILENO, endless, strlen (endless));
    (void) written;
    _exit (3);
}

/* In processor time, so that a busy machine does not matter. */
static void bound_cpu (time_t seconds)
{
    struct itimerval timer = {.it_value = {.tv_sec = seconds}};
    signal (SIGVTALRM, give_up);
    setitimer (ITIMER_VIRTUAL, &timer, NULL);
}

static sim_trial_t trial_of (unsigned bug)
{
    switch (bug) {
    case ENGINE_BUG_WRITTEN_CUT: return SIM_TRIAL_WRITE_BACK;
    case ENGINE_BUG_EPOCH_TWICE:
    case ENGINE_BUG_LAPSED_GOES_ON: return SIM_TRIAL_ADOPTION;
    default: break;
    }
    return bug >= ENGINE_BUG_OF_READS      ? SIM_TRIAL_ANY
           : bug >= ENGINE_BUG_OF_SPACE    ? SIM_TRIAL_SPACE
           : bug >= ENGINE_BUG_OF_FAILOVER ? SIM_TRIAL_FAILOVER
                                           : SIM_TRIAL_ANY;
}

/* A bug is met where what it is in is there. */
static sim_options_t options_of (uint64_t seed, unsigned bug)
{
    sim_options_t options = sim_options_of (seed);
    bool shared =
        bug == 0 ? seed % SHARED_EVERY == 1 && options.tables == 0 : bug >= ENGINE_BUG_OF_BROKERS;
    if (shared || all_shared) {
        options = sim_options_shared (&options, trial_of (bug));
    } else if (bug >= ENGINE_BUG_OF_TABLES) {
        options.tables = 1;
    }
    options.planted_bug = bug;
    return options;
}

static bool run_seed (uint64_t seed, unsigned bug, bool verbose, uint64_t *completions)
{
    sim_options_t options = options_of (seed, bug);
    char failure[FAILURE_BYTES];
    options.verbose = verbose;
    snprintf (endless, sizeof endless, "seed %llu: bug %u: the engine loops endlessly\n",
              (unsigned long long) seed, bug);
    bound_cpu (SEED_CPU_S_MAX);
    bool good = sim_run (&options, failure, sizeof failure, completions);
    bound_cpu (0);
    if (!good) {
        sim_options_print (&options);
        printf ("    %s\n", failure);
    }
    return good;
}

static size_t run_seeds (uint64_t first, uint64_t count, unsigned bug)
{
    size_t failed = 0;
    uint64_t total = 0;
    for (uint64_t seed = first; seed < first + count; seed++) {
        uint64_t completions = 0;
        failed += !run_seed (seed, bug, false, &completions);
        total += completions;
    }
    printf ("%llu seeds, %zu failed, %llu completions\n", (unsigned long long) count, failed,
            (unsigned long long) total);
    return failed;
}

static void test_invariants_hold_for_all_seeds (void **state)
{
    (void) state;
    assert_int_equal (run_seeds (1, SEEDS, 0), 0);
}

static uint64_t seeds_to_find (unsigned bug)
{
    return bug == ENGINE_BUG_SEGMENT_REUSED ? SEEDS_OF_RARE : SEEDS_TO_FIND;
}

/* Exit code 0: found. */
static int hunt_bug (unsigned bug, uint64_t seed)
{
    for (; seed <= seeds_to_find (bug); seed++) {
        uint64_t completions;
        if (!run_seed (seed, bug, false, &completions)) {
            printf ("planted bug %u: found with seed %llu\n", bug, (unsigned long long) seed);
            return 0;
        }
    }
    return 1;
}

/* In a process of its own: a planted bug may meet an assertion of the engine before the checker
 * sees it, and then it is found too. */
static bool is_found (int (*hunt) (unsigned bug, uint64_t seed), unsigned bug, uint64_t seed)
{
    fflush (NULL);
    pid_t child = fork ();
    if (child == 0) {
        prctl (PR_SET_PDEATHSIG, SIGKILL);
        int code = hunt (bug, seed);
        fflush (stdout);
        _exit (code);
    }
    int status = 0;
    if (child < 0 || waitpid (child, &status, 0) != child) {
        return false;
    }
    ledger_clean (child);
    bool asserted = WIFSIGNALED (status) && WTERMSIG (status) == SIGABRT;
    return asserted || (WIFEXITED (status) && WEXITSTATUS (status) == 0);
}

static void assert_bug_is_found (unsigned bug)
{
    if (!is_found (hunt_bug, bug, 1)) {
        fail_msg ("planted bug %u is not found with %d seeds", bug, (int) seeds_to_find (bug));
    }
}

/* Past the lease somebody else may own the store: where others are, too. */
__attribute__ ((unused)) static void test_finds_what_passes_the_lease_of_several (void **state)
{
    (void) state;
    all_shared = true;
    assert_bug_is_found (ENGINE_BUG_TOLD_PAST_LEASE);
    assert_bug_is_found (ENGINE_BUG_JUDGED_PAST_LEASE);
    all_shared = false;
}

/* A long hunt: how often, not whether. */

static int hunt_seed (unsigned bug, uint64_t seed)
{
    uint64_t completions;
    if (freopen ("/dev/null", "w", stdout) == NULL || freopen ("/dev/null", "w", stderr) == NULL) {
        return 1;
    }
    return run_seed (seed, bug, false, &completions) ? 1 : 0;
}

static int hunt_all (uint64_t seeds, unsigned only)
{
    static const struct {
        unsigned bug;
        const char *name;
    } bugs[] = {
#define X(number, NAME, text) {number, #NAME},
        ENGINE_BUG_MAP (X)
#undef X
    };
    size_t missed = 0;
    for (size_t i = 0; i < sizeof bugs / sizeof bugs[0]; i++) {
        uint64_t found = 0;
        if (only != 0 && only != bugs[i].bug) {
            continue;
        }
        for (uint64_t seed = 1; seed <= seeds; seed++) {
            found += is_found (hunt_seed, bugs[i].bug, seed);
        }
        bool often = found * 100 >= seeds * FOUND_PERCENT;
        missed += found == 0;
        printf ("%2u %-22s %llu of %llu%s\n", bugs[i].bug, bugs[i].name, (unsigned long long) found,
                (unsigned long long) seeds, often ? "" : "  seldom");
    }
    return missed == 0 ? 0 : 1;
}

/* One test for each row of the table of planted bugs. */
#define X(number, NAME, text)                                                                      \
    __attribute__ ((unused)) static void test_finds_##NAME (void **state)                          \
    {                                                                                              \
        (void) state;                                                                              \
        assert_bug_is_found (number);                                                              \
    }
ENGINE_BUG_MAP (X)
#undef X

static int run_all (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_invariants_hold_for_all_seeds),
        IF_HUNTING (cmocka_unit_test (test_finds_what_passes_the_lease_of_several))
#define X(number, NAME, text) IF_HUNTING (cmocka_unit_test (test_finds_##NAME))
            ENGINE_BUG_MAP (X)
#undef X
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

int main (int argc, char **argv)
{
    uint64_t seed = 0;
    uint64_t seeds = 0;
    uint64_t from = 1;
    uint64_t hunted = 0;
    unsigned bug = 0;
    bool verbose = false;
    for (int i = 1; i < argc; i++) {
        bool has_value = i + 1 < argc;
        if (strcmp (argv[i], "--seed") == 0 && has_value) {
            seed = strtoull (argv[++i], NULL, 10);
        } else if (strcmp (argv[i], "--seeds") == 0 && has_value) {
            seeds = strtoull (argv[++i], NULL, 10);
        } else if (strcmp (argv[i], "--from") == 0 && has_value) {
            from = strtoull (argv[++i], NULL, 10);
        } else if (strcmp (argv[i], "--bug") == 0 && has_value) {
            bug = (unsigned) strtoul (argv[++i], NULL, 10);
        } else if (strcmp (argv[i], "--hunt") == 0 && has_value) {
            hunted = strtoull (argv[++i], NULL, 10);
        } else if (strcmp (argv[i], "--shared") == 0) {
            all_shared = true;
        } else if (strcmp (argv[i], "-v") == 0) {
            verbose = true;
        } else {
            fprintf (stderr, "usage: test_sim [--seed N [-v] | --seeds N [--from N] | --hunt N] "
                             "[--bug N] [--shared]\n");
            return 2;
        }
    }
    if (hunted > 0) {
        return hunt_all (hunted, bug);
    }
    if (seed > 0) {
        uint64_t completions;
        return run_seed (seed, bug, verbose, &completions) ? 0 : 1;
    }
    if (seeds > 0) {
        return run_seeds (from, seeds, bug) == 0 ? 0 : 1;
    }
    return run_all ();
}
