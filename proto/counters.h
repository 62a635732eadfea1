/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The counters of `stats`: name, meaning, and which value is bad ("": none by itself). Only names
 * and values travel; taskctl explains those that it knows. */
#ifndef TASKMQ_PROTO_COUNTERS_H
#define TASKMQ_PROTO_COUNTERS_H

/* Of the engine. */
#define ENGINE_COUNTER_MAP(X)                                                                      \
    X (submitted, "tasks accepted", "")                                                            \
    X (existing, "submits answered with a task that was there already", "")                        \
    X (imported, "tasks that came by an import", "")                                               \
    X (claimed, "assignments made", "")                                                            \
    X (completed, "tasks completed", "")                                                           \
    X (failed, "tasks failed, for whichever reason",                                               \
       "a share that grows: see list --status failed")                                             \
    X (dead, "tasks failed because their attempts were used up",                                   \
       "a share that grows: see list --status failed")                                             \
    X (cancelled, "tasks cancelled", "")                                                           \
    X (expired, "queued tasks whose time to live ended",                                           \
       "above 0: nobody came in time; more workers, or a longer ttl")                              \
    X (dependencies_failed, "tasks failed because one that they depend on did not complete", "")   \
    X (start_missed, "tasks that were still queued at their start_by",                             \
       "above 0: nobody came in time; more workers, or a later start_by")                          \
    X (overran, "attempts that ran longer than their max_runtime",                                 \
       "a share that grows: workers hang, or max_runtime is too short")                            \
    X (removed, "terminal tasks removed after their time to live", "")                             \
    X (retried, "tasks queued afresh, or resumed, after their end", "")                            \
    X (kept, "successes that came too late and were kept", "")                                     \
    X (turns, "turns that workers told", "")                                                       \
    X (adopted, "tasks completed by such a success", "")                                           \
    X (purged, "terminal tasks removed by hand", "")                                               \
    X (attempts_failed, "attempts that failed and will be repeated",                               \
       "a share that grows: workers fail")                                                         \
    X (released, "tasks given back, not counted", "")                                              \
    X (leases_lost, "leases that ended before their worker reported",                              \
       "a share that grows: workers die, or hang")                                                 \
    X (stale_leases, "reports refused because another attempt took over",                          \
       "a share that grows: leases are too short")                                                 \
    X (requests, "requests taken", "")                                                             \
    X (refused, "requests answered with an error", "a share that grows: a client is wrong")        \
    X (denied, "requests that the access file does not allow",                                     \
       "a share that grows: a client is wrong, or tries doors")                                    \
    X (links_revoked, "links ended because their rights changed or their time ended", "")          \
    X (quota_hits, "requests and tasks refused because of a principal's quota",                    \
       "above 0: a client does too much, or its quota is too small")                               \
    X (overloads, "submissions refused because too much was pending",                              \
       "above 0: the disk is slower than the load")                                                \
    X (unavailable, "requests refused because the store was out of reach",                         \
       "above 0: see store_away_ms")                                                               \
    X (full, "submissions refused because the disk was full",                                      \
       "above 0: free space where the data is")                                                    \
    X (no_links, "requests without a link", "grows while nothing is restarted")                    \
    X (events, "events stored", "")                                                                \
    X (notices, "notices of progress and logs sent", "")                                           \
    X (log_bytes, "bytes of logs taken", "")                                                       \
    X (log_waits, "pieces of logs whose worker was told to wait",                                  \
       "a share that grows: a program writes more than logs/rate, or the disk is slow")            \
    X (gaps, "gaps told to subscribers",                                                           \
       "above 0: subscribers were away longer than events are kept")                               \
    X (outputs, "messages sent", "")                                                               \
    X (outputs_failed, "messages that the transport refused", "grows: clients do not read")        \
    X (batches, "commit batches closed", "")                                                       \
    X (lookups, "keys looked up in the tables", "")                                                \
    X (reads, "page reads given to readers", "")                                                   \
    X (clock_leaps, "forward leaps of wall time over an hour", "above 0: set the clock right")     \
    X (resets, "restarts of the engine after a failed commit",                                     \
       "above 0: free space where the data is")

/* Of the server; on the wire with "server_" before the name. */
#define SERVER_COUNTER_MAP(X)                                                                      \
    X (rounds, "rounds of the loop", "")                                                           \
    X (messages, "messages of peers taken", "")                                                    \
    X (commits_inline, "batches committed by the server's own thread", "")                         \
    X (commits_failed, "batches thrown away because there was no space",                           \
       "above 0: free space where the data is")                                                    \
    X (hard_limit, "rounds without reading, because too much was pending",                         \
       "grows: the disk is slower than the load")                                                  \
    X (pauses, "pauses of the loop longer than a heartbeat",                                       \
       "grows: the machine is overloaded, or sleeps")                                              \
    X (pause_ms, "milliseconds of these pauses", "")

/* What the other rooms of the broker have counted since its start. */
#define ROOM_COUNTER_MAP(X)                                                                        \
    X (refused_messages, "messages refused as a whole: garbage, wrong frames, or no room",         \
       "above 0: somebody speaks something else")                                                  \
    X (inbox_refused, "messages refused because too much of their client waited",                  \
       "grows: a client sends without waiting for answers")                                        \
    X (send_unread_full, "messages not sent because a client had too much unread",                 \
       "grows: clients do not read")                                                               \
    X (connections_cut_claimed, "connections cut because they chose their routing id",             \
       "above 0: strangers, or a client that is wrong")                                            \
    X (connections_cut_crowd, "connections cut because too many had said nothing",                 \
       "above 0: strangers; who says so is in the log")                                            \
    X (connections_cut_revoked, "connections cut because the access file changed", "")             \
    X (connections_cut_mute, "connections cut because nothing came",                               \
       "grows: strangers, or a broken network")                                                    \
    X (connections_cut_endless, "connections cut within a message without an end",                 \
       "above 0: strangers, or an attack")                                                         \
    X (peers_refused, "connections refused because there were too many",                           \
       "above 0: fewer clients, or more open files")                                               \
    X (zap_accepted, "connections let in", "")                                                     \
    X (zap_refused, "connections turned away",                                                     \
       "a share that grows: somebody has a wrong key, or none")                                    \
    X (zap_silent, "connections of those who tried too often, kept waiting",                       \
       "above 0: somebody tries keys")                                                             \
    X (unauthenticated, "messages of connections that nobody had let in",                          \
       "above 0: a fault of ZeroMQ")                                                               \
    X (accept_failed, "connections lost for lack of descriptors",                                  \
       "above 0: raise the limit of open files")                                                   \
    X (send_failed, "messages to clients that were gone", "")                                      \
    X (commits, "batches committed", "")                                                           \
    X (commit_us, "microseconds spent in commits", "over 100,000 a commit: the disk is too slow")  \
    X (store_damaged, "rows whose checksum does not fit",                                          \
       "above 0: the disk is failing, restore a backup")                                           \
    X (archive_gaps, "holes in the archive", "above 0: make a backup, with which it is whole")     \
    X (export_lines, "lines written to tasks.jsonl", "")                                           \
    X (export_errors, "failed writes of tasks.jsonl", "above 0: free space where the data is")     \
    X (events_lines, "lines written to events.jsonl", "")                                          \
    X (events_gaps, "holes told in events.jsonl",                                                  \
       "above 0: it was off, or its files were taken away")                                        \
    X (events_errors, "failed writes of events.jsonl", "above 0: free space where the data is")    \
    X (events_early, "files of events that were removed before events/days",                       \
       "above 0: raise events/disk, or copy them elsewhere")                                       \
    X (audit_lines, "lines written to audit.jsonl", "")                                            \
    X (audit_lost, "lines that did not get into audit.jsonl",                                      \
       "above 0: free space where the data is")                                                    \
    X (audit_errors, "failed writes of audit.jsonl", "above 0: free space where the data is")      \
    X (logs_lost, "bytes of logs that found no place", "above 0: free space where the data is")    \
    X (logs_evicted, "tasks whose logs went for others",                                           \
       "a share that grows: raise logs/disk or logs/tasks")                                        \
    X (uploads_dropped, "uploads that stood still and whose room others needed",                   \
       "grows: raise limits/blobs_disk, or blobs= of a principal")                                 \
    X (blobs_errors, "files of them that could not be written or read",                            \
       "any: look at the disk, and for BLOB-DAMAGED in the log")                                   \
    X (logs_errors, "pieces of logs that could not be written",                                    \
       "above 0: free space where the data is")                                                    \
    X (feed_published, "events published by --feed", "")

/* What there is at the moment. */
#define GAUGE_MAP(X)                                                                               \
    X (live_tasks, "tasks in memory: those that have not ended", "")                               \
    X (ready, "tasks that a worker could take now", "grows: more workers are needed")              \
    X (leases, "tasks that workers hold", "")                                                      \
    X (links, "clients connected", "")                                                             \
    X (links_max, "clients that may be: limits/links, or what open files allow", "")               \
    X (workers, "workers registered", "0 while tasks are ready")                                   \
    X (subscriptions, "watchers", "")                                                              \
    X (waits, "tasks that somebody waits for", "")                                                 \
    X (pending_inputs, "changes not yet on disk",                                                  \
       "near limits/pending_inputs_soft: submissions are refused soon")                            \
    X (pending_bytes, "bytes of the changes not yet on disk", "")                                  \
    X (dirty_tasks, "tasks not yet in the tables",                                                 \
       "near limits/dirty_tasks_soft: submissions are refused soon")                               \
    X (dirty_bytes, "bytes of the changes not yet in the tables",                                  \
       "near limits/dirty_bytes_soft: submissions are refused soon; at dirty_bytes_hard nothing "  \
       "is read")                                                                                  \
    X (logs_tasks, "tasks that have a log", "")                                                    \
    X (blobs, "bodies that are larger than a frame, in files", "")                                 \
    X (blobs_bytes, "bytes of them, and of uploads under way", "close to limits/blobs_disk")       \
    X (blobs_stored, "of them in the database; 0 with SQLite", "")                                 \
    X (blobs_stored_bytes, "bytes of those", "close to limits/blobs_disk")                         \
    X (uploads, "uploads of them that are under way", "")                                          \
    X (uploads_still,                                                                              \
       "uploads that nobody goes on with; they go when there is no room for others",               \
       "grows: clients are cut off")                                                               \
    X (logs_bytes, "bytes of logs", "")                                                            \
    X (schedules_waiting, "schedules that wait for their turn", "grows: too many come at once")    \
    X (payload_cache_bytes, "payloads in memory", "")                                              \
    X (ring_bytes, "events in memory", "")                                                         \
    X (inbox_messages, "messages that wait for their round", "grows: clients send without end")    \
    X (inbox_bytes, "bytes of the messages that wait", "")                                         \
    X (peers, "connections that have spoken", "")                                                  \
    X (unread_bytes, "bytes sent that clients have not read", "grows: clients do not read")        \
    X (connections, "connections to the endpoints", "")                                            \
    X (connections_mute, "connections that have said nothing yet",                                 \
       "near limits/mute: strangers, or a broken network")                                         \
    X (libzmq, "ZeroMQ that runs: 40304 is 4.3.4", "below 40304: it has known holes, renew it")    \
    X (stored_tasks, "tasks in the tables", "")                                                    \
    X (tombstones, "removed tasks that are remembered", "")                                        \
    X (database_bytes, "size of the tables (taskmq.db, or all of those in PostgreSQL)",            \
       "near the space there is")                                                                  \
    X (wal_bytes, "size of the log of taskmq.db; PostgreSQL has its own",                          \
       "grows for minutes: the disk is too slow")                                                  \
    X (journal_bytes, "size of the journal", "grows for minutes: the disk is too slow")            \
    X (commit_stall_ms, "the longest commit of the last minute, or the one under way",             \
       "over 1,000: the disk hangs")                                                               \
    X (free_bytes, "space left for the data directory",                                            \
       "under limits/free_space_min: submissions are refused")                                     \
    X (store_dirty_tasks, "tasks that wait to be written back",                                    \
       "near limits/dirty_tasks_soft: submissions are refused soon")                               \
    X (store_dirty_bytes, "bytes of the tasks that wait for it",                                   \
       "near limits/dirty_bytes_soft: submissions are refused soon")                               \
    X (write_back_stalled, "1 while the tables cannot be written",                                 \
       "above 0: free space where the data is")                                                    \
    X (tables_held, "1 while another process reads taskmq.db; never with PostgreSQL",              \
       "above 0: end it (fuser taskmq.db), the log of the tables grows")                           \
    X (search_damaged, "1 while searches are refused, since the index of texts is damaged",        \
       "above 0: taskctl search reindex makes a new one")                                          \
    X (backup_lacks, "large bodies that tasks name and the newest backup since the start lacks",   \
       "above 0: taskmqd --check --data DIR names them")                                           \
    X (synchronous_normal, "1 with --synchronous normal",                                          \
       "above 0: a loss of power may lose work")                                                   \
    X (archive_stalled, "1 while the archive cannot be written", "1: mend the archive's disk")     \
    X (archive_backlog_bytes, "bytes that wait for the archive",                                   \
       "near 1G: they are given up, mend the archive's disk")                                      \
    X (archive_lag_ms, "age of the oldest commit that the archive has not",                        \
       "grows: the archive's disk is too slow, or fails")                                          \
    X (access_stale, "1 while the access file cannot be used and an older state of it counts",     \
       "1: the log says which line is wrong")                                                      \
    X (access_principals, "lines of the access file", "")                                          \
    X (key_days_left, "whole days until the next end of a principal's time, where one has an end", \
       "near 0: taskctl key list shows whose; give it a later end")                                \
    X (store_full, "1 while submissions are refused for lack of space",                            \
       "above 0: free space where the data is")                                                    \
    X (store_away_ms, "for how long the store is out of reach; that of one machine never is",      \
       "above 0: see to the database")                                                             \
    X (taken_over, "1: this start took over from a broker that gave no sign any more", "")         \
    X (unknown_commits, "whose answer was lost, so that it was found out whether they landed",     \
       "grows: look at the network before the database")                                           \
    X (database_pinned_ms, "age of the oldest transaction of others that keeps what was deleted",  \
       "above 0: DATABASE-PINNED in the log names it")                                             \
    X (standbys, "brokers that wait for the database of this one, as it saw in the last 10 s",     \
       "0, where you have a standby: it is gone")                                                  \
    X (lease_left_ms, "until the broker may speak for its store, where that is for a time only",   \
       "0: nothing leaves; see to the database")                                                   \
    X (export_lag, "events not yet in tasks.jsonl", "grows: the disk is too slow")                 \
    X (events_bytes, "size of events.jsonl and the files before it", "near events/disk")           \
    X (events_stalled, "1 while events.jsonl cannot be written",                                   \
       "1: free space where the data is")                                                          \
    X (events_lag, "events not yet in events.jsonl", "grows for minutes: the disk is too slow")

#endif
