# The manual pages of libtaskmq, made from the comments of its public headers: libtaskmq(3) from the
# comment at the head of the first one, and one page for each section.
#
# usage: awk -v directory=OUT -v version=0.1.0 -v date=2026-01-31 -f library.awk taskmq.h taskmq_*.h
#
# A comment in the first column that is one short line with an empty line behind it begins a
# section. Any other says what the declarations behind it are. A section without a name here is an
# error, so that none is forgotten. CMakeLists.txt reads the names of the pages from here.

BEGIN {
    page["Version, names."] = "tmq_names|names, codes, version"
    page["Ids."] = "tmq_ids|ids of tasks"
    page["Client."] = "tmq_client|a connection to a broker"
    page["Completions."] = "tmq_completions|answers without blocking"
    page["Submit."] = "tmq_submit|submit tasks"
    page["Tasks."] = "tmq_tasks|read, list, cancel and await tasks"
    page["Search."] = "tmq_search|tasks by what stands in their texts"
    page["Events and subscriptions."] = "tmq_subscriptions|follow what happens"
    page["Schedules."] = "tmq_schedules|tasks that are submitted again and again"
    page["Queues."] = "tmq_queues|what is set for queues, and how they stand"
    page["Workers."] = "tmq_workers|take tasks and end them"
    page["Turns of the work."] = "tmq_turns|what was said and done, turn by turn"
    page["Artifacts."] = "tmq_artifacts|bodies with names that workers attach to tasks"
    page["Import."] = "tmq_import|tasks as they were in another broker"
    page["Large bodies."] = "tmq_blobs|payloads and results that are larger than a frame"
    page["Logs."] = "tmq_logs|what the programs of workers write"
    page["A worker asks."] = "tmq_ask|questions of a worker about its task"
    page["Somebody answers."] = "tmq_answers|answers, and the inbox of open questions"
    page["Sessions: threads of work."] = "tmq_sessions|threads of work: goal, share, pause"
    page["Items of boxes."] = "tmq_items|what was put into boxes, until it is acknowledged"
    page["Values of sessions and namespaces."] = "tmq_values|bytes under keys that tasks share"
    page["The record of deeds, backups, and the broker's space."] = "tmq_backup|the record of deeds, backups, and the broker's space"
    page["Who may use the broker."] = "tmq_access|keys, invitations and the access file"
    page["Who works here."] = "tmq_worker_list|who works here"
    page["The loop that most workers want."] = "tmq_run|a pool of threads that works"
    main = "libtaskmq"
}

function escaped(text)
{
    gsub(/\\/, "\\e", text)
    gsub(/-/, "\\-", text)
    if (text ~ /^[.']/)
        text = "\\&" text
    return text
}

function begin(name, about)
{
    if (out != "")
        close(out)
    out = directory "/" name ".3"
    printf ".TH %s 3 %s \"taskmq %s\"\n.SH NAME\n%s \\- %s\n", name, date, version, name, about >out
    printf ".SH SYNOPSIS\n.nf\n#include <taskmq.h>\n.fi\n.SH DESCRIPTION\n" >out
    names[++pages] = name
}

# The lines of a comment as paragraphs; what is set in from the text stays as it is.
function prose(lines, count,    i, literal, any)
{
    for (i = 1; i <= count; i++) {
        if (lines[i] == "" && !literal) {
            if (any)
                print ".PP" >out
            continue
        }
        if (lines[i] ~ /^   / && !literal) {
            print ".PP\n.nf" >out
            literal = 1
        } else if (lines[i] !~ /^   / && lines[i] != "" && literal) {
            print ".fi\n.PP" >out
            literal = 0
        }
        print escaped(lines[i]) >out
        any = 1
    }
    if (literal)
        print ".fi" >out
}

# What was read so far: declarations, then what is said about them.
function flush_item(    i)
{
    while (codes > 0 && code[codes] == "")
        codes--
    if (codes > 0 && out != "") {
        print ".PP\n.nf" >out
        for (i = 1; i <= codes; i++)
            print escaped(code[i]) >out
        print ".fi" >out
        if (texts > 0) {
            print ".RS" >out
            prose(text, texts)
            print ".RE" >out
        }
    }
    codes = texts = 0
}

function add_text(line)
{
    sub(/^ ?\* ?/, "", line)
    text[++texts] = line
}

function end_comment()
{
    inside = 0
    if (!head) {
        head = 1 # the licence
        texts = 0
    } else if (started) {
        return
    } else if (pages > 0) {
        texts = 0 # the head of a part says nothing that belongs into a page
    } else {
        begin(main, "client and worker library of the taskmq broker")
        sub(/^libtaskmq: /, "", text[1])
        prose(text, texts)
        texts = 0
    }
}

FNR == 1 {
    flush_item()
    head = started = section = 0
}
/^#ifndef TASKMQ[A-Z_]*_H/ { started = 1 }
/^#ifdef __cplusplus/ { other_language = 1 }
/^#endif/ { other_language = 0 }
/^#include/ { section = texts = 0 }
other_language || /^#(if|endif|else|include|ifdef|define TMQ_API|define TASKMQ[A-Z_]*_H|define tmq_|ifndef)/ { next }
inside {
    last = sub(/ *\*\/$/, "")
    add_text($0)
    if (last)
        end_comment()
    next
}
/^\/\*/ {
    flush_item()
    line = $0
    sub(/^\/\*/, " *", line)
    inside = !sub(/ *\*\/$/, "", line)
    add_text(line)
    if (!inside)
        end_comment()
    section = started && !inside
    next
}
$0 == "" && section && texts == 1 {
    if (!(text[1] in page)) {
        print FILENAME ":" FNR ": a section without a manual page: " text[1] >"/dev/stderr"
        failed = 1
        exit
    }
    split(page[text[1]], named, "|")
    texts = 0
    begin(named[1], named[2])
    next
}
started {
    section = 0
    sub(/^TMQ_API /, "")
    code[++codes] = $0
}

END {
    if (failed)
        exit 1
    flush_item()
    for (i = 1; i <= pages; i++) {
        out = directory "/" names[i] ".3"
        printf ".SH SEE ALSO\n" >>out
        for (j = 1; j <= pages; j++)
            if (j != i)
                printf ".BR %s (3)%s\n", names[j], (j == pages || (j == pages - 1 && i == pages)) ? "" : "," >>out
        close(out)
    }
}
