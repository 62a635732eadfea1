#!/bin/sh
# A document is tried as its reader would: guide.sh [--postgres] DOCUMENT [NAME...].
#
# With --postgres there is a server without a role or a database of ours, where psql looks by itself.
#
# Every block "```LANGUAGE NAME" becomes the file NAME. Then the blocks "```console" are typed, from the
# first to the last, in one shell: a line "$ COMMAND" (going on in lines "> ...") is executed, has to
# end with 0, and has to print what the document shows, ids and times aside. `cc` is as strict as the
# house is. A program that no command runs fails the test, unless it is NAMEd: then another test
# does. A command that ends with "&" runs in the background until the end of the test.
. "$TASKMQ_SOURCE/tests/cli/lib.sh"
. "$TASKMQ_SOURCE/tests/docs/blocks.sh"

if [ "$1" = --postgres ]; then
    shift
    # shellcheck disable=SC2119 # its arguments are settings
    start_postgres
    PATH="$PATH:$postgres_programs"
    export PGHOST="$postgres_home" PGUSER=postgres
    psql -q -c 'DROP DATABASE taskmq' -c 'DROP ROLE taskmq' postgres || fail 'the server is not as new'
fi
document=$TASKMQ_SOURCE/$1
shift
tried_elsewhere=" $* "

background=0
typed=0

# What differs from day to day and from machine to machine becomes words; a last line may be open.
alike ()
{
    neutral "$1" | sed -E -e 's/([0-9]{4}-[0-9]{2}-[0-9]{2} )?[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}/CLOCK/g' \
        -e 's/[0-9]{15,20}-([0-9]+)/GENERATION-\1/g' -e 's/ by [A-Za-z0-9._-]+$/ by WORKER/' \
        -e 's/ (now|([0-9.]+(ms|s|m|h))+( ago)?) / AGE /g' -e 's/ in ([0-9.]+(ms|s|m|h))+$/ in AGE/' \
        -e "s#at ${PGHOST:-the local socket}:5432#at the local socket:5432#" \
        -e 's/^times are in UTC.*/times are in UTC/' -e 's/ +/ /g' -e 's/ $//' -e "\$a\\"
}

in_background ()
{
    background=$((background + 1))
    spawned="$spawned background-$background"
    eval "$command" >"background-$background.out" 2>"background-$background.err" </dev/null 3<&-
    printf '%s\n' "$!" >"background-$background.pid"
    case $command in
    'taskmqd'*)
        eventually test -s .taskmq/endpoint
        eventually taskctl ping
        ;;
    esac
}

in_foreground ()
{
    eval "$command" >out 2>&1 </dev/null 3<&-
}

shows_the_same ()
{
    alike shown >shown.alike
    alike out >out.alike
    cmp -s shown.alike out.alike
}

typed_again_it_shows_the_same ()
{
    in_foreground && shows_the_same
}

# Runs the command that was read and compares. A file, or a row, may be written a moment later.
type_command ()
{
    [ -n "$command" ] || return 0
    last_command=$command
    typed=$((typed + 1))
    case $command in
    *'&')
        : >out
        in_background
        ;;
    'tail '* | 'psql -At'*) eventually typed_again_it_shows_the_same ;;
    *) in_foreground || fail "exit code $?" ;;
    esac
    if ! shows_the_same; then
        diff shown.alike out.alike >&2
        fail "$document shows something else"
    fi
}

type_session ()
{
    command=
    : >shown
    while IFS= read -r line <&3; do
        case $line in
        "\$ "*)
            type_command
            command=${line#??}
            : >shown
            ;;
        '> '*) command="$command
${line#??}" ;;
        *) printf '%s\n' "$line" >>shown ;;
        esac
    done 3<session
    type_command
}

extract_blocks "$document"
strict_tools
while IFS= read -r name; do
    case $tried_elsewhere in
    *" $name "*) continue ;;
    esac
    grep -qF "$name" session || xargs grep -q "^from ${name%.py} import" <programs ||
        fail "$document never uses $name"
done <programs
type_session
[ "$typed" -gt 3 ] || fail "$document has $typed commands"
