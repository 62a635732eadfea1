/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The table of commands: it feeds the parser, --help and `taskctl help`. */
#include "commands.h"

#include "options.h"
#include "verbs/verbs.h"
#include "work/work.h"

#define WORK_TEXT                                                                                  \
    "The payload is the program's stdin, its stdout the result; stderr passes\n"                   \
    "through. Exit 0 completes the task, 100 fails it for good, 75 gives it back\n"                \
    "uncounted; any other exit or a signal fails the attempt, which is repeated\n"                 \
    "while attempts are left. A cancelled task gets SIGTERM, 10s later SIGKILL.\n"                 \
    "\n"                                                                                           \
    "Its environment has TASKMQ_TASK_ID, _ATTEMPT, _QUEUE, _SESSION, _METHOD, _META,\n"            \
    "_LABELS, _LABEL_name, _AFTER, _TRACE, _TURNS, _MAX_RUNTIME_MS, _ENDPOINT,\n"                  \
    "_NAMESPACE,\n"                                                                                \
    "TASKMQ_WORKDIR (an empty directory of its own that is removed afterwards),\n"                 \
    "TASKMQ_ARTIFACTS (another one: the files in it are attached to the task),\n"                  \
    "TASKMQ_CHECKPOINT_FILE (what the last attempt kept) and TASKMQ_FD, the number\n"              \
    "of a socket for lines. The program may write\n"                                               \
    "  progress DONE/TOTAL [text]\n"                                                               \
    "  status TEXT\n"                                                                              \
    "  checkpoint JSON   for the next attempt; \"kept BYTES\" when it is safe\n"                   \
    "  turn {JSON}       a turn of its work; \"told N\" when it is safe\n"                         \
    "  file OP PATH      read, write or delete: of the next turn\n"                                \
    "  ask KEY JSON      the answer is \"answer KEY JSON\"\n"                                      \
    "  failure JSON      data of the error, should the attempt fail\n"                             \
    "and read \"deadline SECONDS\" (the broker is away), \"hurry SECONDS\" (half of its\n"         \
    "max_runtime has passed) and, before a SIGTERM, why: \"cancel\", \"lost\",\n"                  \
    "\"max_runtime\", \"leave\" or \"too_large\".\n"                                               \
    "\n"                                                                                           \
    "SIGTERM finishes what runs and takes no more (exit 0); a second one gives it\n"               \
    "back (exit 143)."

static const command_t commands[] = {
    {.name = "submit",
     .group = "submit tasks, fetch results",
     .operands = "QUEUE [--data STR | --file FILE | -] [options]\nQUEUE --lines FILE "
                 "[options]\n--batch FILE [--dry-run]",
     .summary = "submit a task, print its id",
     .text = "Without a payload option the payload is empty; - reads it from stdin. What is\n"
             "larger than 256 KiB is uploaded in pieces first. With --lines the other options\n"
             "count for each task.\n"
             "A line of --batch is {\"queue\":...,\"data\":...}, and the options by their names\n"
             "with underscores; after may be an array, and line:N in it is the task of an\n"
             "earlier line. All lines are checked before the first is submitted. Then one\n"
             "line of output follows per line of input: the id, or nothing where the task was\n"
             "refused.",
     .examples = "taskctl submit thumbs --file photo.jpg --label album=summer\n"
                 "taskctl submit reports --data '{\"month\":11}' --wait\n"
                 "ls *.jpg | taskctl submit thumbs --lines - --label album=summer\n"
                 "taskctl submit --batch tasks.jsonl >ids",
     .options = submit_options,
     .operand = OPERAND_QUEUE,
     .operands_max = 2,
     .repeats = true,
     .run = run_submit},
    {.name = "get",
     .group = "submit tasks, fetch results",
     .operands = "ID... [options]",
     .summary = "show tasks",
     .examples = "taskctl get 4fdd1c9a8b2e\n"
                 "taskctl get --turns --files 4fdd1c9a8b2e\n"
                 "taskctl -o json get --payload --events 4fdd1c9a8b2e",
     .options = get_options,
     .operand = OPERAND_ID,
     .operands_min = 1,
     .operands_max = -1,
     .pages = true,
     .run = run_get},
    {.name = "why",
     .group = "submit tasks, fetch results",
     .operands = "ID",
     .summary = "say what holds a task",
     .text = "One sentence and its facts, as the broker finds them now: a place in the queue,\n"
             "a pause, a delay, another task, a lease, a question, its end.",
     .examples = "taskctl why 4fdd1c9a8b2e",
     .options = no_options,
     .operand = OPERAND_ID,
     .operands_max = 1,
     .run = run_why},
    {.name = "payload",
     .group = "submit tasks, fetch results",
     .operands = "ID [-o FILE]",
     .summary = "the bytes of a task's payload, raw",
     .examples = "taskctl payload 4fdd1c9a8b2e >photo.jpg",
     .options = payload_options,
     .operand = OPERAND_ID,
     .operands_min = 1,
     .operands_max = 1,
     .no_ids = true,
     .run = run_payload},
    {.name = "result",
     .group = "submit tasks, fetch results",
     .operands = "ID [options]",
     .summary = "the bytes of a task's result, raw",
     .text = "A task that failed or was cancelled: the error is on stderr, and the exit code\n"
             "is 8. A task that has not ended: the exit code is 6. If a fetch by -o ends\n"
             "early (a signal, a broker, a full disk), the same command goes on with it: until\n"
             "their hash is right, the bytes are in .FILE.HASH.part beside the file.",
     .examples = "taskctl result --wait 4fdd1c9a8b2e >thumb.png\n"
                 "taskctl result 4fdd1c9a8b2e -o film.mp4",
     .options = result_options,
     .operand = OPERAND_ID,
     .operands_min = 1,
     .operands_max = 1,
     .no_ids = true,
     .run = run_result},
    {.name = "artifact",
     .group = "submit tasks, fetch results",
     .operands = "list TASK\nget TASK NAME [-o FILE | --dir DIR]\nget TASK --dir DIR",
     .summary = "what workers attached to a task: list, fetch",
     .text = "Without -o and --dir the bytes go to stdout. --dir without a name fetches all.\n"
             "The hash of each is compared; an interrupted fetch is gone on with, as that of\n"
             "'taskctl result'.",
     .examples = "taskctl artifact list 4fdd1c9a8b2e\n"
                 "taskctl artifact get 4fdd1c9a8b2e plot.png -o plot.png\n"
                 "taskctl artifact get 4fdd1c9a8b2e --dir plots",
     .options = artifact_options,
     .operand = OPERAND_VERB,
     .verbs = artifact_verbs,
     .operands_max = -1,
     .pages = true,
     .run = run_verb},
    {.name = "wait",
     .group = "submit tasks, fetch results",
     .operands = "ID... [options]\nCONDITIONS [options]",
     .summary = "wait until tasks have ended",
     .text = "Prints one task a line as it ends. Exit code 0 only if all completed, 8 if one\n"
             "failed or was cancelled, 7 at the deadline. With conditions, it waits for the\n"
             "tasks that match now.",
     .examples = "taskctl wait 4fdd1c9a8b2e && echo completed\n"
                 "taskctl wait --for 10m - <ids\n"
                 "taskctl wait --queue thumbs --since today",
     .options = wait_options,
     .operand = OPERAND_ID,
     .operands_max = -1,
     .run = run_wait},
    {.name = "list",
     .alias = "ls",
     .group = "find and follow tasks",
     .operands = "[QUEUE...] [options]",
     .summary = "list tasks, newest first",
     .text = "--search looks into payload and result, as far as they are text, method,\n"
             "messages of status and error, and turns. Each word may stand in another of these\n"
             "texts; a phrase stands in one.",
     .examples = "taskctl list thumbs --status failed,cancelled --since yesterday\n"
                 "taskctl list --search '\"connection reset\" NOT retry' --since today\n"
                 "taskctl list thumbs --columns id,status,label:album,remark\n"
                 "taskctl -o jsonl list --all --fields task_id,status",
     .options = list_options,
     .operand = OPERAND_QUEUE,
     .operands_max = TMQ_FILTER_VALUES_MAX,
     .pages = true,
     .run = run_list},
    {.name = "count",
     .group = "find and follow tasks",
     .operands = "[QUEUE...] [options]",
     .summary = "count tasks",
     .examples = "taskctl count thumbs --status queued",
     .options = count_options,
     .operand = OPERAND_QUEUE,
     .operands_max = TMQ_FILTER_VALUES_MAX,
     .no_ids = true,
     .run = run_count},
    {.name = "export",
     .group = "find and follow tasks",
     .operands = "[ID...] [options]",
     .summary = "write out tasks with all that is kept of them",
     .text = "The tasks that the conditions match, newest first. Without ids and conditions it\n"
             "is all of the namespace. jsonl and json have the payload, the result, the\n"
             "attempts, turns, files, artifacts, late successes and events. csv has what a\n"
             "list shows. task is a text for people. --file replaces nothing but an earlier\n"
             "export; the condition that has this name in list is --with-file here. --bodies\n"
             "writes what is larger than a line takes (256 KiB) into files named by their\n"
             "hashes.\n"
             "Files in --dir are named after the time and the end of the id, as\n"
             "2026-11-21T21-05-00.123-b15e0a.task.",
     .examples = "taskctl export --queue thumbs --since yesterday >thumbs.jsonl\n"
                 "taskctl export --format csv --file failed.csv --status failed\n"
                 "taskctl export --dir records --session trip\n"
                 "taskctl export --format task 4fdd1c9a8b2e",
     .options = export_options,
     .operand = OPERAND_ID,
     .operands_max = -1,
     .no_ids = true,
     .forms = true,
     .run = run_export},
    {.name = "watch",
     .group = "find and follow tasks",
     .operands = "[ID...] [options]",
     .summary = "show what happens, live",
     .text = "At the end the cursor to go on with (--since) is on stderr.",
     .examples = "taskctl watch --queue thumbs\n"
                 "taskctl watch --until completed --for 1h 4fdd1c9a8b2e\n"
                 "taskctl -o jsonl watch --since 0 --count 100",
     .options = watch_options,
     .operand = OPERAND_ID,
     .operands_max = -1,
     .run = run_watch},
    {.name = "logs",
     .group = "find and follow tasks",
     .operands = "ID [options]",
     .summary = "show what the program of a task writes",
     .text = "Its stdout, then its stderr. The newest 1 MiB of each is kept, of up to 8\n"
             "attempts. With -f, both are shown as they come, until the task has ended. On a\n"
             "terminal control bytes are escaped.",
     .examples = "taskctl logs 4fdd1c9a8b2e\n"
                 "taskctl logs -f --stream err 4fdd1c9a8b2e\n"
                 "taskctl logs --attempt 1 --tail 20 4fdd1c9a8b2e",
     .options = logs_options,
     .operand = OPERAND_ID,
     .operands_min = 1,
     .operands_max = 1,
     .no_ids = true,
     .run = run_logs},
    {.name = "inbox",
     .group = "find and follow tasks",
     .operands = "[QUEUE...] [options]",
     .summary = "list the open questions, oldest first",
     .examples = "taskctl inbox\n"
                 "taskctl inbox thumbs --session trip\n"
                 "taskctl -o jsonl inbox --all",
     .options = inbox_options,
     .operand = OPERAND_QUEUE,
     .operands_max = TMQ_FILTER_VALUES_MAX,
     .pages = true,
     .run = run_inbox},
    {.name = "context",
     .group = "share between tasks",
     .operands = "get KEY\nput KEY [--data STR | --file FILE | -] [--if-version N]\n"
                 "list [PREFIX]\nwatch [PREFIX]\nremove KEY [--if-version N]",
     .summary = "values that tasks share, with versions",
     .text = "A value is up to 65,536 bytes under a key, of the session or of the namespace.\n"
             "put prints its version. With --if-version it changes nothing if somebody was\n"
             "faster (exit 6). watch ends with the cursor to go on with (--since).",
     .examples = "taskctl context put plan --session trip --data draft --if-version 0\n"
                 "taskctl context get plan --session trip\n"
                 "taskctl context watch --session trip",
     .options = context_options,
     .operand = OPERAND_VERB,
     .verbs = context_verbs,
     .operands_max = -1,
     .run = run_verb},
    {.name = "mail",
     .group = "share between tasks",
     .operands = "send AGENT [--data STR | --file FILE | -]\nread AGENT\nack AGENT NUMBER...",
     .summary = "mailboxes between agents",
     .text = "send prints the number of the item. It stays in the box until ack takes it away.\n"
             "A box holds 10,000. In a pipe read gives a JSON line for each.",
     .examples = "taskctl mail send planner --session trip --data 'the flight is late'\n"
                 "taskctl -o jsonl mail read planner --session trip\n"
                 "taskctl mail ack planner 4711 --session trip",
     .options = mail_options,
     .operand = OPERAND_VERB,
     .verbs = mail_verbs,
     .operands_max = -1,
     .run = run_verb},
    {.name = "session",
     .group = "share between tasks",
     .operands = "list\nshow NAME\n"
                 "set NAME [--goal TEXT] [--salience N] [--label K=V]...\n"
                 "pause NAME [--why TEXT]\nresume NAME\nfreeze NAME [--why TEXT]\n"
                 "complete NAME\nremove NAME\n"
                 "input add NAME [--data STR | --file FILE | -]\ninput list NAME\n"
                 "input drop NAME NUMBER...",
     .summary = "threads of work: goal, share, pause, inputs",
     .text = "The first task that names a session makes it, or set does. pause gives none of\n"
             "its tasks to workers; tasks that a worker has go on. freeze refuses new tasks,\n"
             "too. complete (also: close) lets those go on that it has, and takes no new ones.\n"
             "30 days after its last task a complete session goes, with its values (see\n"
             "context), mail and inputs. remove does so at once; exit 6 while it has live\n"
             "tasks. An input stays until it is dropped; there may be 10,000.",
     .examples = "taskctl session set trip --goal 'a week in Lisbon' --salience 300\n"
                 "taskctl session pause trip --why 'the user thinks'\n"
                 "taskctl session input add trip --source user --type text --data 'by train'\n"
                 "taskctl session input list trip --type text --since 90m",
     .options = session_options,
     .operand = OPERAND_VERB,
     .verbs = session_verbs,
     .operands_max = -1,
     .run = run_verb},
    {.name = "cancel",
     .group = "change tasks",
     .operands = "ID...\nCONDITIONS [--yes | --dry-run]",
     .summary = "cancel tasks",
     .text = "To cancel a cancelled task is no error. A task that has ended otherwise: exit 6.\n"
             "With conditions, all tasks that match and have not ended are cancelled. On a\n"
             "terminal it asks before; elsewhere it needs --yes.",
     .examples = "taskctl cancel 4fdd1c9a8b2e\n"
                 "taskctl cancel --queue thumbs --status queued --label album=summer\n"
                 "taskctl -o id list thumbs --all | taskctl cancel -",
     .options = cancel_options,
     .operand = OPERAND_ID,
     .operands_max = -1,
     .run = run_cancel},
    {.name = "retry",
     .group = "change tasks",
     .operands = "ID...\nCONDITIONS [--yes | --dry-run]",
     .summary = "repeat failed and cancelled tasks",
     .text = "The same task begins anew. Its earlier attempts stay readable. A task that has\n"
             "not failed and was not cancelled: exit 6. If its last worker has not stopped\n"
             "yet, the task waits for that. With conditions, all failed and cancelled tasks\n"
             "that match. On a terminal it asks before; elsewhere it needs --yes.",
     .examples = "taskctl retry 4fdd1c9a8b2e\n"
                 "taskctl retry --queue thumbs --status failed --since yesterday",
     .options = again_options,
     .operand = OPERAND_ID,
     .operands_max = -1,
     .repeats = true,
     .run = run_retry},
    {.name = "resume",
     .group = "change tasks",
     .operands = "ID...\nCONDITIONS [--yes | --dry-run]",
     .summary = "let failed and cancelled tasks go on",
     .text = "As retry, but the checkpoint of the last worker stays with the task, and its\n"
             "turns count on. --from-turn goes back to one of them. The turns behind it stay\n"
             "readable: taskctl get --turns shows them.",
     .examples = "taskctl resume 4fdd1c9a8b2e\n"
                 "taskctl resume 4fdd1c9a8b2e --from-turn 3",
     .options = resume_options,
     .operand = OPERAND_ID,
     .operands_max = -1,
     .repeats = true,
     .run = run_resume},
    {.name = "set",
     .group = "change tasks",
     .operands = "ID... CHANGES\nCONDITIONS CHANGES [--yes | --dry-run]",
     .summary = "change priority, time to live, labels, ... of tasks",
     .text = "A task that has ended takes only --ttl, --label and --drop-label. --at, --delay\n"
             "and --now are for queued tasks. Anything else: exit 6. With conditions, all live\n"
             "tasks that match, unless --status says which.",
     .examples = "taskctl set 4fdd1c9a8b2e --priority 200 --ttl 2d\n"
                 "taskctl set --queue thumbs --status queued --delay 1h",
     .options = set_options,
     .operand = OPERAND_ID,
     .operands_max = -1,
     .repeats = true,
     .run = run_set},
    {.name = "purge",
     .group = "change tasks",
     .operands = "ID...\nCONDITIONS [--yes | --dry-run]",
     .summary = "remove tasks that have ended",
     .text = "It does not wait for the end of their time to live. Payload and result go, the\n"
             "ids stay taken. A live task: exit 6, cancel it first. Needs the role admin.",
     .examples = "taskctl purge 4fdd1c9a8b2e\n"
                 "taskctl purge --queue thumbs --until 2026-11-01 --dry-run",
     .options = again_options,
     .operand = OPERAND_ID,
     .operands_max = -1,
     .repeats = true,
     .run = run_purge},
    {.name = "adopt",
     .group = "change tasks",
     .operands = "ID ATTEMPT",
     .summary = "make a late success the outcome of its task",
     .text = "A success that came after the end of its lease is kept for 7 days; get\n"
             "--attempts shows it. adopt completes the task with it. A worker that has the\n"
             "task by then loses it. Nothing is kept of that attempt: exit 5. The task is\n"
             "completed or cancelled: exit 6. Needs the role admin.",
     .examples = "taskctl get --attempts 4fdd1c9a8b2e\n"
                 "taskctl adopt 4fdd1c9a8b2e 1",
     .options = adopt_options,
     .operand = OPERAND_ID,
     .operands_min = 2,
     .operands_max = 2,
     .repeats = true,
     .run = run_adopt},
    {.name = "answer",
     .group = "change tasks",
     .operands = "ID [--ask KEY] [--data STR | --file FILE | -]",
     .summary = "answer a question of a task's worker",
     .text = "The answer is JSON if it can be read as such, else text. A question has one\n"
             "answer. To give the same again is no error; another one: exit 6.",
     .examples = "taskctl answer 4fdd1c9a8b2e --data yes\n"
                 "taskctl answer 4fdd1c9a8b2e --ask colour --data '\"red\"'",
     .options = answer_options,
     .operand = OPERAND_ID,
     .operands_min = 1,
     .operands_max = 2,
     .run = run_answer},
    {.name = "work",
     .group = "work on tasks",
     .operands = "QUEUE... [options] -- COMMAND...",
     .summary = "run a program for each task of a queue",
     .text = WORK_TEXT,
     .examples = "taskctl work thumbs -j 4 -- convert - -resize 200x png:-\n"
                 "taskctl work nightly --drain -- sh -c 'gzip | tee \"$TASKMQ_TASK_ID.gz\"'",
     .options = work_options,
     .operand = OPERAND_QUEUE,
     .operands_min = 1,
     .operands_max = TMQ_WORKER_QUEUES_MAX,
     .no_ids = true,
     .takes_rest = true,
     .run = run_work},
    {.name = "stats",
     .group = "look at the broker",
     .operands = "[--prometheus]",
     .summary = "numbers of the broker and its queues",
     .text = "With -v each counter is explained: what it means, and which value is bad.",
     .examples = "taskctl stats\n"
                 "taskctl stats -v\n"
                 "taskctl -o json stats\n"
                 "taskctl stats --prometheus >taskmq.prom",
     .options = stats_options,
     .no_ids = true,
     .pages = true,
     .run = run_stats},
    {.name = "ping",
     .group = "look at the broker",
     .operands = "",
     .summary = "is the broker there, and how fast",
     .examples = "taskctl -e tcp://127.0.0.1:5560 ping",
     .options = no_options,
     .no_ids = true,
     .run = run_ping},
    {.name = "doctor",
     .group = "look at the broker",
     .operands = "",
     .summary = "check this set-up, say how to mend it",
     .text = "It looks at the way to the broker, your name and rights there, the clocks, and\n"
             "the broker's numbers. It looks at keys and at the broker's directory, if they\n"
             "are on this machine. Exit code 1 if something is wrong, but not for a warning.",
     .examples = "taskctl doctor\n"
                 "taskctl -o json doctor",
     .options = no_options,
     .no_ids = true,
     .run = run_doctor},
    {.name = "top",
     .group = "look at the broker",
     .operands = "[--interval DURATION]",
     .summary = "queues, workers and tasks on a live screen",
     .text = "Keys: q leaves, s sorts the queues, r looks now, ? explains. The screen stays\n"
             "while the broker is away, and says since when.",
     .examples = "taskctl top\n"
                 "taskctl -n night top --interval 10s",
     .options = top_options,
     .no_ids = true,
     .run = run_top},
    {.name = "worker",
     .group = "look at the broker",
     .operands = "list [--all]\nshow WORKER\ndrain WORKER",
     .summary = "who works here; let one finish and end",
     .text = "WORKER is a name, or an id of 32 digits. drain takes all workers of that name. A\n"
             "drained worker gets nothing new, wherever it connects again. It finishes what it\n"
             "holds, and 'taskctl work' ends then.",
     .examples = "taskctl worker list\n"
                 "taskctl -o wide worker list --all\n"
                 "taskctl worker show box-4711-1\n"
                 "taskctl worker drain box-4711-1",
     .options = worker_options,
     .operand = OPERAND_VERB,
     .verbs = worker_verbs,
     .operands_max = -1,
     .pages = true,
     .run = run_verb},
    {.name = "schedule",
     .group = "submit tasks, fetch results",
     .operands = "add NAME QUEUE --cron FIELDS [- | options]\nlist\nshow NAME\nnext NAME "
                 "[--count N]\npause NAME\nresume NAME\nremove NAME",
     .summary = "submit a task again and again",
     .text = "The fields are those of crontab(5): minute hour day month weekday, by the clock\n"
             "of --zone. Where clocks change it is as Debian's cron does. A line with a star\n"
             "in minute or hour follows the clock. Any other comes once; it comes at once\n"
             "when its time is left out. Each instant makes one task, also through restarts.\n"
             "Instants of a pause are not made up for.",
     .examples = "taskctl schedule add nightly reports --cron '30 3 * * *' --zone Europe/Berlin\n"
                 "taskctl schedule add tick checks --cron '@every 90s' --overlap skip\n"
                 "taskctl schedule next nightly --count 3\n"
                 "taskctl schedule pause nightly",
     .options = schedule_options,
     .operand = OPERAND_VERB,
     .verbs = schedule_verbs,
     .operands_max = -1,
     .pages = true,
     .run = run_verb},
    {.name = "queue",
     .group = "look at the broker",
     .operands = "list\nshow QUEUE\nset QUEUE OPTIONS\npause QUEUE [--why TEXT]\nresume QUEUE",
     .summary = "how queues stand; pause them, set caps, rates, limits",
     .text = "Settings count at once, also for queued tasks, and survive restarts. The\n"
             "defaults (ttl, lease, ...) are given to a task as it is submitted. A paused\n"
             "queue takes tasks and gives none to workers. Tasks that run go on, also when the\n"
             "cap is set below their number. A queue need not exist to be paused or set.",
     .examples = "taskctl queue list\n"
                 "taskctl queue pause thumbs --why 'the disk is full'\n"
                 "taskctl queue set thumbs --max-running 8 --rate 100/1m\n"
                 "taskctl queue set thumbs --unset rate",
     .options = queue_options,
     .operand = OPERAND_VERB,
     .verbs = queue_verbs,
     .operands_max = -1,
     .pages = true,
     .run = run_verb},
    {.name = "search",
     .group = "look at the broker",
     .operands = "reindex",
     .summary = "the index that 'list --search' looks into",
     .text = "reindex throws it away; the broker builds a new one while it goes on. It is\n"
             "needed when the index is damaged, and for what was there before the search of a\n"
             "queue was switched on again.",
     .examples = "taskctl search reindex\n"
                 "taskctl list --search 'disk full'",
     .options = search_options,
     .operand = OPERAND_VERB,
     .verbs = search_verbs,
     .operands_max = -1,
     .run = run_verb},
    {.name = "audit",
     .group = "look at the broker",
     .operands = "verify [FILE | DIR]... [--head HEX] [--accept CHAIN:LINE]\nhead\n"
                 "tail [-f] [--kind KIND] [--actor NAME] [--since WHEN] [...]",
     .summary = "the record of who did what to the broker",
     .text = "verify reads audit.jsonl and events.jsonl with the files before them, and needs\n"
             "no broker. It names the first line that was changed, removed or moved (exit 1).\n"
             "Lines cut off at the end leave no trace in the files. A head that you know, from\n"
             "the log, proves that all lines before it are what they were. head prints the\n"
             "newest number and hash of audit.jsonl, tail its newest lines.",
     .examples = "taskctl audit verify\n"
                 "taskctl audit verify /backup/events* --head 00b5dded312f...\n"
                 "taskctl audit tail -f --kind denied",
     .options = audit_options,
     .operand = OPERAND_VERB,
     .verbs = audit_verbs,
     .operands_max = -1,
     .no_ids = true,
     .run = run_verb},
    {.name = "journal",
     .group = "look at the broker",
     .operands = "show FILE",
     .summary = "what a journal.log holds",
     .text = "It reads the file alone, and needs no broker: the start that wrote it, its\n"
             "segments, its commits with their batches, where the log ends, and why. A commit\n"
             "that is missing or damaged: exit code 1. What is cut short at the end was never\n"
             "acknowledged.",
     .examples = "taskctl journal show .taskmq/journal.log\n"
                 "taskctl -o json journal show /backup/journal.log",
     .options = no_options,
     .operand = OPERAND_VERB,
     .verbs = journal_verbs,
     .operands_max = -1,
     .no_ids = true,
     .pages = true,
     .run = run_verb},
    {.name = "backup",
     .group = "look at the broker",
     .operands = "FILE [--with-keys]",
     .summary = "a copy of all tasks, while the broker goes on",
     .text = "The file has everything that was acknowledged before. taskmqd --restore makes\n"
             "a data directory of it. It holds all payloads and results: keep it as you\n"
             "keep them. The broker keeps its newest ones in DIR/backups.",
     .examples = "taskctl backup taskmq-$(date +%F).tar\n"
                 "taskmqd --restore taskmq-2026-11-22.tar --data /srv/taskmq",
     .options = backup_options,
     .operands_min = 1,
     .operands_max = 1,
     .no_ids = true,
     .run = run_backup},
    {.name = "vacuum",
     .group = "look at the broker",
     .operands = "",
     .summary = "give free space back to the file system",
     .text = "What removed tasks leave is used again, and most of it is given back when\n"
             "nothing was written for a minute. This gives all of it back now, beside the\n"
             "work of everybody, and waits for the end. The broker also goes on without you.",
     .examples = "taskctl vacuum\n"
                 "taskctl -o json vacuum",
     .options = no_options,
     .no_ids = true,
     .run = run_vacuum},
    {.name = "cleanup",
     .group = "look at the broker",
     .operands = "[--dry-run]",
     .summary = "remove what retention lets go, now",
     .text = "Retention concerns tasks that have ended and have a ttl of 0; all others go by\n"
             "their ttl. Its rules are settings of queues (queue set --max-age ...), and\n"
             "retention/ of the configuration for each namespace. The broker applies them at\n"
             "its start and each day; this does so now, in this namespace, and waits for the\n"
             "end. --dry-run shows what would go, the newest first, and by which policy.",
     .examples = "taskctl queue set letters --ttl 0 --max-age 30d --min-keep 100\n"
                 "taskctl cleanup --dry-run\n"
                 "taskctl cleanup",
     .options = cleanup_options,
     .operands_max = 1, /* which is refused with a reason */
     .pages = true,
     .run = run_cleanup},
    {.name = "import",
     .group = "look at the broker",
     .operands = "FILE [--bodies DIR] [--keep-going | --dry-run]",
     .summary = "bring back what export wrote",
     .text = "FILE has the lines of 'taskctl export' as jsonl (- is stdin). The same ids,\n"
             "times, outcomes, attempts, turns, open questions, artifacts and late successes;\n"
             "the owner is you. A task that is here already is passed over, so an import that\n"
             "was cut off is repeated. One that was being worked on waits in its queue. What\n"
             "stays behind is counted. Bodies that no line takes (256 KiB) come from the files\n"
             "that export --bodies wrote.\n"
             "Broken lines are named, and nothing is imported then without --keep-going.\n"
             "Needs the right to submit.",
     .examples = "taskctl export --file tasks.jsonl\n"
                 "taskctl import tasks.jsonl --dry-run\n"
                 "taskctl export --queue thumbs | taskctl -e tcp://other:5555 import -",
     .options = import_options,
     .operands_min = 1,
     .operands_max = 1,
     .no_ids = true,
     .run = run_import},
    {.name = "whoami",
     .group = "keys and connections",
     .operands = "",
     .summary = "who you are for the broker, and what you may do",
     .examples = "taskctl whoami\n"
                 "taskctl -o json whoami",
     .options = no_options,
     .no_ids = true,
     .run = run_whoami},
    {.name = "invite",
     .group = "keys and connections",
     .operands = "NAME --role ROLE... [options]\n--name NAME --role ROLE... [options]\nlist\n"
                 "revoke ID",
     .summary = "make a line by which another machine joins",
     .text = "The line on stdout is a secret until it is used. With --uses it is for several\n"
             "machines: %h in NAME stands for the name of each. Use --name for a machine that\n"
             "is called list or revoke.",
     .examples = "taskctl invite render-7 --role worker --queue 'render*'\n"
                 "taskctl invite 'render-%h' --role worker --uses 20 --for 1d\n"
                 "taskctl invite revoke 3f2a",
     .options = invite_options,
     .operand = OPERAND_NONE,
     .operands_min = 0,
     .operands_max = 2,
     .no_ids = true,
     .run = run_invite},
    {.name = "join",
     .group = "keys and connections",
     .operands = "[LINE|-] [--profile NAME] [--if-needed]",
     .summary = "take an invitation: make a key here and save the connection",
     .text = "LINE is the line that 'taskctl invite' printed; - reads it from stdin. Without\n"
             "LINE it is taken from TASKMQ_JOIN or /run/secrets/taskmq_join. The profile is\n"
             "'default', unless --profile names another one.",
     .examples = "taskctl join tmqjoin_af6436jfl4uodtb4...\n"
                 "taskctl join --if-needed && exec taskctl work render -- ./render",
     .options = join_options,
     .operand = OPERAND_NONE,
     .operands_max = 1,
     .no_ids = true,
     .run = run_join},
    {.name = "key",
     .group = "keys and connections",
     .operands = "new [NAME]\nshow [NAME] [--secret]\nimport FILE [NAME]\nrotate\n"
                 "trust NAME KEY --role ROLE...\nrevoke NAME|KEY\nlist",
     .summary = "your own key, by which a broker on another machine knows you",
     .text = "A key is kept as ~/.config/taskmq/keys/NAME.key. Without NAME it is default, the\n"
             "key that is used where no other is named. import takes tmqsk_..., Z85, or a\n"
             "certificate of CZMQ.",
     .examples = "taskctl key new\n"
                 "taskctl key show --z85\n"
                 "taskctl key trust render-7 tmqpk_... --role worker --queue 'render*'\n"
                 "taskctl key revoke render-7",
     .options = key_options,
     .operand = OPERAND_VERB,
     .verbs = key_verbs,
     .operands_max = -1,
     .no_ids = true,
     .run = run_verb},
    {.name = "server-key",
     .group = "keys and connections",
     .operands = "show\nrotate --in DURATION|--now",
     .summary = "the broker's public key, by which clients know it",
     .text = "rotate gives the broker another key and prints it. Clients that connect before\n"
             "its time learn it from the broker and record it in their profile. A client that\n"
             "was away needs it by hand, or a new line to join. Asked again, only the time\n"
             "changes.",
     .examples = "taskctl server-key show\n"
                 "taskctl server-key rotate --in 7d",
     .options = server_key_options,
     .operand = OPERAND_VERB,
     .verbs = server_key_verbs,
     .operands_max = -1,
     .no_ids = true,
     .run = run_verb},
    {.name = "reload",
     .group = "keys and connections",
     .operands = "",
     .summary = "the broker reads its configuration and its access file now",
     .examples = "taskctl reload",
     .options = no_options,
     .no_ids = true,
     .run = run_reload},
    {.name = "profile",
     .group = "keys and connections",
     .operands = "add NAME -e URI [--server-key KEY] [--key-file FILE]\n"
                 "list\nuse NAME\nshow [NAME]\nremove NAME\ntest [NAME]",
     .summary = "saved connections",
     .text = "A profile is the file ~/.config/taskmq/profiles/NAME.conf. --profile takes it\n"
             "for one command. The choice of 'profile use' counts where no .taskmq directory\n"
             "is here or above. So without a NAME 'profile test' asks the broker of that\n"
             "directory, where there is one.",
     .examples = "taskctl profile add farm -e tcp://broker.example:5560 --server-key tmqpk_...\n"
                 "taskctl profile use farm\n"
                 "taskctl --profile farm list",
     .options = no_options,
     .operand = OPERAND_VERB,
     .verbs = profile_verbs,
     .operands_max = -1,
     .no_ids = true,
     .run = run_verb},
    {.name = "help",
     .group = "get help",
     .operands = "[COMMAND]",
     .summary = "how to use a command",
     .examples = "taskctl help submit",
     .options = no_options,
     .operand = OPERAND_COMMAND,
     .operands_max = 2,
     .no_ids = true,
     .pages = true,
     .run = run_help},
    {.name = "completion",
     .group = "get help",
     .operands = "bash|zsh|fish",
     .summary = "a script by which your shell completes taskctl",
     .text = "It completes commands, options and their values. Ids, queues, sessions and\n"
             "labels are those of the broker.",
     .examples = "source <(taskctl completion bash)\n"
                 "taskctl completion fish >~/.config/fish/completions/taskctl.fish",
     .options = no_options,
     .operand = OPERAND_SHELL,
     .operands_min = 1,
     .operands_max = 1,
     .no_ids = true,
     .run = run_completion},
    {.name = "complete",
     .operands = "-- WORD...",
     .summary = "what the script of a shell asks for",
     .examples = "taskctl complete -- list --st",
     .options = no_options,
     .no_ids = true,
     .takes_rest = true,
     .run = run_complete},
    {.name = NULL}};

const grammar_t grammar = {commands, global_options};
