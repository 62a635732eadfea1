# shellcheck shell=sh
# Sourced by what starts a PostgreSQL of its own: where the environment leads libpq and the server
# (PGHOST, PGPORT, PGSSLMODE and the like) is somebody else's.
for pg_name in $(env | sed -n 's/^\(PG[A-Z]*\)=.*/\1/p'); do
    unset "$pg_name"
done
unset pg_name
