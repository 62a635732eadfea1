# shellcheck shell=sh
# Certificates of a scenario's own, by openssl: a scenario sources this file before lib.sh, and is
# skipped where that program is missing.
#
#   authority NAME                             NAME.crt and NAME.key of one who signs
#   signed NAME AUTHORITY SUBJECT DAYS EXTENSION  NAME.crt and NAME.key, signed by that one; with DAYS -1
#                                              it is out of date
#   server_has NAME                            PostgreSQL's from its next start or reload on

# shellcheck disable=SC2154 # of lib.sh
if ! command -v openssl >/dev/null; then
    echo "$(basename "$0" .sh): skipped: there is no program openssl (Debian: openssl)"
    exit 77
fi

authority ()
{
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 \
        -subj "/CN=$1" -keyout "$1.key" -out "$1.crt" 2>openssl.log || fail "$(cat openssl.log)"
}

signed ()
{
    printf '%s\n' "$5" >extensions
    openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "/CN=$3" \
        -keyout "$1.key" -out "$1.csr" 2>openssl.log || fail "$(cat openssl.log)"
    openssl x509 -req -in "$1.csr" -CA "$2.crt" -CAkey "$2.key" -CAcreateserial -days "$4" \
        -extfile extensions -out "$1.crt" 2>openssl.log || fail "$(cat openssl.log)"
    chmod 600 "$1.key"
}

server_has ()
{
    for part in crt key; do
        cp "$1.$part" "$postgres_home/data/server.$part.new"
        chown --reference="$postgres_home/data" "$postgres_home/data/server.$part.new"
        chmod 600 "$postgres_home/data/server.$part.new"
        mv "$postgres_home/data/server.$part.new" "$postgres_home/data/server.$part"
    done
}
