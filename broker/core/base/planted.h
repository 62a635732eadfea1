/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Mistakes that the simulation plants on purpose, to prove that its checker finds them. Each is one
 * `if` at the place of the real check. engine_config_t.planted_bug chooses one, and that of
 * journal_options_t; 0 is none, and nothing but a test sets it. Those of commits whose answer was
 * lost, and of several brokers, are in the simulation's own store. */
#ifndef TASKMQ_CORE_PLANTED_H
#define TASKMQ_CORE_PLANTED_H

#define ENGINE_BUG_MAP(X)                                                                          \
    X (1, ANSWER_BEFORE_COMMIT, "outputs do not wait for their batch (A7)")                        \
    X (2, NO_ATTEMPT_CHECK, "a report of any attempt is taken for the current one's (S8)")         \
    X (3, CURSOR_OFF_BY_ONE, "a stream goes on one event too late after a batch (A51)")            \
    X (4, LOST_WAKE_UP, "a queue that was empty does not wake its waiting workers")                \
    X (5, NO_DIGEST_CHECK, "other content under the same id counts as existing (S13)")             \
    X (6, WAIT_FORGOTTEN, "a wait is not told of a cancellation (A53)")                            \
    X (7, LEASE_NEVER_ENDS, "a lease that ran out is not noticed (S9)")                            \
    X (8, NO_FRESH_TERM, "live leases are lost at a restart (S9)")                                 \
    X (9, CANCEL_FORGOTTEN, "a completion counts after a cancellation (S5)")                       \
    X (10, EVICTED_EARLY, "a task leaves memory when durable, before it is written back (A11)")    \
    X (11, ATTEMPT_REUSED, "a task that comes back keeps its attempt number (S3)")                 \
    X (12, REPEAT_NOT_SEEN, "a repeated completion is refused as stale (A45)")                     \
    X (13, GONE_FORGOTTEN, "an id that left memory is taken for a new one (S13)")                  \
    X (14, HINT_FORGOTTEN, "a refused answer ends the link, and its workers' leases stay (A48)")   \
    X (15, WAIT_UNJUDGED, "a wait tells of tasks that its link does not see")                      \
    X (16, REPLAY_UNJUDGED, "a replay tells of tasks that its link does not see")                  \
    X (17, OLD_POLICY, "links keep the rights they had before a new policy")                       \
    X (18, START_UNJUDGED, "a task is claimed after its start_by")                                 \
    X (19, RUNTIME_UNBOUNDED, "an attempt is never stopped by max_runtime")                        \
    X (20, DELAY_FORGOTTEN, "a new task is claimed before its not_before")                         \
    X (30, PAUSE_UNWRITTEN, "settings of a queue are not written")                                 \
    X (31, CAP_IGNORED, "more tasks of a queue run than its cap allows")                           \
    X (32, GATE_UNHEARD, "a gate that opens does not wake the workers behind it")                  \
    X (33, FAILURE_UNTOLD, "a task runs although one that it depends on did not complete (S21)")   \
    X (34, DEPENDENTS_FORGOTTEN, "who is not told of an end in its own round never is (A70)")      \
    X (35, ANSWER_NOT_STORED, "an answer is acknowledged and forgotten at a restart (S22)")        \
    X (36, ANSWER_TWICE, "a second answer to a question is acknowledged (S22)")                    \
    X (40, KEY_CAP_IGNORED, "more tasks of a fair key run than its cap allows")                    \
    X (41, NEEDS_IGNORED, "a worker gets tasks whose requirements its labels do not meet")         \
    X (45, DRAIN_FORGOTTEN, "a drained worker that registers again gets tasks")                    \
    X (46, ROSTER_UNWRITTEN, "who works is kept in memory alone")                                  \
    X (55, SESSION_UNHELD, "a task of a paused session is given to a worker")                      \
    X (56, FREEZE_UNWRITTEN, "the status of a session is kept in memory alone")                    \
    X (57, SALIENCE_UNWRITTEN, "the salience of a session is kept in memory alone")                \
    X (58, ITEM_PUT_TWICE, "a repeated put of an item is not known again")                         \
    X (50, VALUE_UNGUARDED, "a value is put whatever version it has")                              \
    X (51, VALUE_PUT_TWICE, "a repeated put of a value is not known again")                        \
    X (59, LOG_OF_ANYBODY, "a former attempt writes into the log of the present one (A75)")        \
    X (60, LOG_UNBOUNDED, "pieces of logs that wait are not counted (A75)")                        \
    X (61, RATE_IGNORED, "more tasks of a queue begin than its rate allows")                       \
    X (62, INSTANT_TWICE, "a start does not know how far a schedule has come")                     \
    X (63, SCHEDULE_NOT_PAUSED, "a schedule that is paused makes tasks")                           \
    X (64, INSTANT_LOST, "an instant that finds no room for its task makes none")                  \
    X (65, TURN_TOLD_TWICE, "a turn that is repeated is told as another one (A45)")                \
    X (66, TURNS_NOT_SUPERSEDED, "a resume leaves the turns behind its turn as they are (A76)")    \
    X (52, RETRY_UNBLOCKED, "a retried task does not wait for the lease of its cancelled attempt") \
    X (53, ADOPT_UNFENCED, "an adopted success is no attempt of its own (S35)")                    \
    X (54, CHECKPOINT_OF_ANYBODY, "a former attempt keeps its state with the task (S9)")           \
    X (67, REVIVED_TWICE, "a repeated retry is not known again (S5)")                              \
    X (68, CHECKPOINT_RETRIED, "a retry begins with the checkpoint of the time before (S5)")       \
    X (69, LATE_UNWRITTEN, "a late success is told to be kept, and no start finds it (S35)")       \
    X (70, PARTS_UNMARKED, "a task that has ended does not remember its parts (S21)")              \
    X (71, START_NOT_SET, "a not_before that is set holds nothing back (S5)")                      \
    X (72, CHECKPOINT_LEFT, "what is kept of a task stays when the task is removed (S9)")          \
    X (73, COMMIT_UNSYNCED, "a commit is acknowledged before it is synced (A9)")                   \
    X (74, SEGMENT_REUSED, "a segment is used again before the tables have what is in it (A10)")   \
    X (75, IMPORT_UNJUDGED, "another task under an imported id counts as existing (S36)")          \
    X (76, FAILED_NOT_KEPT, "retention knows no longer age of what failed (S37)")                  \
    X (77, MIN_NOT_KEPT, "retention lets go what min_keep keeps (S37)")                            \
    X (78, BEHALF_UNSCOPED, "a gateway sees for an owner what belongs to others (A84)")            \
    X (79, BEHALF_OF_ANYBODY, "whoever names a principal as owner has that one's rights (A84)")    \
    X (80, BLOB_UNCLAIMED, "whoever knows the hash of a blob may name it (R7)")                    \
    X (81, BLOB_LEFT_COUNTED, "a task that is removed counts for its blobs for ever (R8)")         \
    X (82, BLOB_GONE_EARLY, "a blob may go before its last task's removal is durable (R8)")        \
    X (83, BLOB_CLAIM_UNHEARD, "a blob goes that was uploaded and may still be named (R8)")        \
    X (84, BLOBS_NOT_LOADED, "a start does not know which blobs are named (R8)")                   \
    X (85, BLOB_RESULT_UNCOUNTED, "a result that is a blob does not count for it (R8)")            \
    X (86, UNREAD_TAKEN, "what could not be looked up is taken for what is not there (A100)")      \
    X (87, TOLD_PAST_LEASE, "an output leaves when somebody else may own the store (A101)")        \
    X (88, JUDGED_PAST_LEASE, "a deadline is judged when somebody else may own the store (A101)")  \
    X (89, UNKNOWN_FAILED, "a commit whose answer was lost is taken for one that failed (A99)")    \
    X (90, UNKNOWN_DONE, "a commit whose answer was lost is taken for one that landed (A99)")      \
    X (91, MAX_COUNT_IGNORED, "retention knows no max_count (S37)")                                \
    X (92, MAX_BYTES_IGNORED, "retention knows no max_bytes (S37)")                                \
    X (93, GONE_COUNTED, "what retention let go counts for max_count (S37)")                       \
    X (94, GONE_WEIGHED, "what retention let go weighs for max_bytes (S37)")                       \
    X (95, CURSOR_SKIPS, "a page of a list begins one task too far (R3)")                          \
    X (96, SEARCH_SKIPS, "a page of a search begins one task too far (R4)")                        \
    X (97, EARLY_END_SKIPS, "a page that tired of one walk goes on behind all of them (R3)")       \
    X (98, LABEL_LEFT, "a label that a task lost still finds it (R3)")                             \
    X (99, MARK_FORGOTTEN, "of several labels and marks of turns one is looked at (R3)")           \
    X (100, STATUS_FORGOTTEN, "a filter by label and status forgets the status (R3)")              \
    X (101, COUNT_NOT_TAKEN_BACK, "a task that is removed still counts as stored (A10)")           \
    X (102, TEXTS_LEFT, "the texts of a task stay in the index when it is removed (R4)")           \
    X (103, TURN_UNINDEXED, "turns that are told later are not in the index (R4)")                 \
    X (104, WATERMARK_AHEAD, "a search says that the index has all, and it has not (R4)")          \
    X (105, COMMIT_UNFENCED, "a commit does not ask for the epoch (A105)")                         \
    X (106, FENCE_SHARED, "the fence of a commit does not hold up who takes over (A105)")          \
    X (107, READ_BACK_EARLY, "a lost answer is looked for in what was there before the lock")      \
    X (108, KEY_FORGOTTEN, "a commit that is made again may stand in the journal twice (A106)")    \
    X (109, COMMIT_PROLONGS, "a commit prolongs the lease (A119)")                                 \
    X (110, REPLAY_FORGOTTEN, "who takes over does not read the journal (A106)")                   \
    X (111, ADOPTER_FORGOTTEN, "only the epoch before is replayed, though its owner served never") \
    X (112, WRITTEN_OF_OTHERS, "how far another epoch was written back counts for this one")       \
    X (113, WRITE_UNFENCED, "a write-back does not ask for the epoch (A105)")                      \
    X (114, MISS_IS_SILENCE, "a look that had no answer counts as silence of the owner (A119)")    \
    X (115, NUMBERS_TWICE, "who takes over counts on from what was written back")                  \
    X (116, NOT_FRESH_BEHIND, "live leases are lost when another broker takes over (S9)")          \
    X (117, READ_OF_LATER, "an owner that is over reads what later ones have written")             \
    X (118, LOOK_OF_ANYBODY, "what an owner before left is taken for what the database lost")      \
    X (119, WRITTEN_EARLY, "whether a write-back got through is asked before its lock (A106)")     \
    X (120, GENERATION_KEPT, "a history that was cut goes on under its generation (A107)")         \
    X (121, WRITTEN_CUT, "a write-back that the database lost is not made again (A106)")           \
    X (122, EPOCH_TWICE, "whoever has the number of an epoch counts for its owner (A119)")         \
    X (123, LAPSED_GOES_ON, "after a failover an owner goes on whose lease had lapsed before it")  \
    X (124, READ_UNLOOKED, "after a failover is read what may lack what had been written back")    \
    X (125, DOUBT_FAILED, "as 89, where others may take over what landed")                         \
    X (126, DOUBT_DONE, "as 90, where others take over without it")                                \
    X (127, UNWRITTEN_DROPPED, "a start for want of space drops what has no room for rows (A21)")  \
    X (128, DOUBT_FULL, "no space for a commit that is made again: the first one may land yet")    \
    X (129, FULL_UNENDED, "the same, though it was looked for: its session lives (A106)")          \
    X (130, READ_OWNED_EARLY, "who owns the database is asked before it is read, not behind")      \
    X (131, BLOB_TOLD_EARLY, "a blob is told to be whole before the database has it (A120)")       \
    X (132, BLOB_UNFENCED, "a change of the database's blobs does not ask for the epoch (A120)")   \
    X (133, BLOB_SWEPT_IN_HAND, "what is being put is swept, and gets its name without it")        \
    X (134, BLOB_SWEPT_NAMED, "what got its name since it was found without one is swept (A120)")  \
    X (135, BLOB_TOUCH_IGNORED, "a blob is removed that was touched since it was found idle (R8)")

enum {
    ENGINE_BUG_NONE = 0,
    ENGINE_BUG_OF_TABLES = 96, /* from this one on in what only real tables, or an index, have, … */
    ENGINE_BUG_OF_BROKERS = 105, /* … and from this one on in what only several brokers have, … */
    ENGINE_BUG_OF_FAILOVER = 120, /* … whose database fails over, … */
    ENGINE_BUG_OF_SPACE = 125,    /* … or finds no space on its disk at times, … */
    ENGINE_BUG_OF_READS = 130,    /* … and again those that need only several brokers */
#define X(number, NAME, text) ENGINE_BUG_##NAME = number,
    ENGINE_BUG_MAP (X)
#undef X
};

#endif
