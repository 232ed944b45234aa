#!/usr/bin/env bash
# A second login that can only read, as servers/postgres.sh makes it.
set -euo pipefail
psql --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" --set ON_ERROR_STOP=1 --set password="$POSTGRES_PASSWORD" <<'SQL'
CREATE ROLE reader LOGIN PASSWORD :'password' IN ROLE pg_read_all_data;
SQL
