# Shared by the scripts: a PostgreSQL cluster for tests.

# Runs a command as a user who may run a PostgreSQL server, which root may not.
as_postgres() {
    if [ "$(id -u)" -eq 0 ]; then runuser -u postgres -- "$@"; else "$@"; fi
}

# Installs a Debian package when a command is missing.
need() { # command package
    command -v "$1" >/dev/null && return
    echo "installing $2 for $1"
    local sudo=""
    [ "$(id -u)" -eq 0 ] || sudo=sudo
    $sudo apt-get update -qq
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$2"
}

# Where the server's own programs are: Debian keeps them out of the path.
postgres_programs() {
    ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1
}

# Makes and starts a throw-away cluster at a free port of this machine, and names it in
# CHANCERY_TEST_POSTGRES. It does not sync: it only has to live as long as the tests.
start_test_postgres() {
    if [ -z "$(postgres_programs)" ]; then need postgres postgresql; fi
    need psql postgresql-client
    local programs port=54329
    programs="$(postgres_programs)"
    while (: >"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do port=$((port + 1)); done
    test_cluster="$(mktemp -d)"
    chmod 755 "$test_cluster"
    if [ "$(id -u)" -eq 0 ]; then chown postgres "$test_cluster"; fi
    as_postgres "$programs/initdb" -D "$test_cluster/data" -U postgres --auth=trust -E UTF8 --locale=C >/dev/null
    as_postgres "$programs/pg_ctl" -D "$test_cluster/data" -l "$test_cluster/log" -w -s start \
        -o "-c listen_addresses=127.0.0.1 -c port=$port -k $test_cluster \
            -c fsync=off -c synchronous_commit=off -c full_page_writes=off -c max_connections=600 -c shared_buffers=128MB"
    export CHANCERY_TEST_POSTGRES="postgres://postgres@127.0.0.1:$port"
}

stop_test_postgres() {
    as_postgres "$(postgres_programs)/pg_ctl" -D "$test_cluster/data" -m immediate -s stop || true
    rm -rf "$test_cluster"
}

create_test_database() { # name
    psql -q -d "$CHANCERY_TEST_POSTGRES/postgres" -c "CREATE DATABASE $1 TEMPLATE template0"
}
