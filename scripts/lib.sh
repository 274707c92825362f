# Shared by the scripts: a server to check, and a PostgreSQL cluster for tests.

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

# Where files of tests are: in memory where there is enough of it, because to make and drop hundreds of
# databases on a disk takes longer than what is tested on them.
folder_for_tests() {
    local free
    free="$(df --output=avail -k /dev/shm 2>/dev/null | tail -n 1)"
    if [ -w /dev/shm ] && [ "${free:-0}" -gt $((6 << 20)) ]; then echo /dev/shm; else echo "${TMPDIR:-/tmp}"; fi
}

# Makes and starts a throw-away cluster at a free port of this machine, and names it in
# CHANCERY_TEST_POSTGRES. It does not sync and keeps little of its log: it only has to live as long as the tests.
start_test_postgres() {
    if [ -z "$(postgres_programs)" ]; then need postgres postgresql; fi
    need psql postgresql-client
    local programs port=54329
    programs="$(postgres_programs)"
    while (: >"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do port=$((port + 1)); done
    test_cluster="$(mktemp -d -p "$(folder_for_tests)")"
    chmod 755 "$test_cluster"
    if [ "$(id -u)" -eq 0 ]; then chown postgres "$test_cluster"; fi
    as_postgres "$programs/initdb" -D "$test_cluster/data" -U postgres --auth=trust -E UTF8 --locale=C >/dev/null
    as_postgres "$programs/pg_ctl" -D "$test_cluster/data" -l "$test_cluster/log" -w -s start \
        -o "-c listen_addresses=127.0.0.1 -c port=$port -k $test_cluster \
            -c fsync=off -c synchronous_commit=off -c full_page_writes=off -c max_connections=600 -c shared_buffers=128MB \
            -c wal_level=minimal -c max_wal_senders=0 -c max_wal_size=128MB"
    export CHANCERY_TEST_POSTGRES="postgres://postgres@127.0.0.1:$port"
}

# Ends the cluster, and tells when it broke: a test that failed with it cannot know why.
stop_test_postgres() {
    grep -E -B 2 -A 5 "PANIC:|was terminated by signal|No space left|out of memory" "$test_cluster/log" | tail -n 40 || true
    as_postgres "$(postgres_programs)/pg_ctl" -D "$test_cluster/data" -m immediate -s stop || true
    rm -rf "$test_cluster"
}

create_test_database() { # name
    psql -q -d "$CHANCERY_TEST_POSTGRES/postgres" -c "CREATE DATABASE $1 TEMPLATE template0"
}

# What drives a browser is installed here, by the versions that tests/browser names.
browser_tools="$PWD/target/browser-tools"

# Installs a browser and what drives it. CHROMIUM names a browser that is there already.
install_browser_tools() {
    need node nodejs
    need npm npm
    need python3 python3
    python3 -c 'import ensurepip' 2>/dev/null || need ensurepip python3-venv
    if [ -z "${CHROMIUM:-}" ]; then need chromium chromium; fi
    local stamp pins="$PWD/tests/browser"
    stamp="$(cat "$pins/package-lock.json" "$pins/requirements.txt" | sha256sum)"
    if [ "$(cat "$browser_tools/stamp" 2>/dev/null)" = "$stamp" ]; then return; fi
    echo "installing what drives a browser, and what reads its pages"
    rm -rf "$browser_tools"
    mkdir -p "$browser_tools"
    cp "$pins/package.json" "$pins/package-lock.json" "$browser_tools"
    npm ci --loglevel error --no-audit --no-fund --ignore-scripts --prefix "$browser_tools"
    python3 -m venv "$browser_tools/python"
    "$browser_tools/python/bin/pip" install --quiet --disable-pip-version-check --no-deps -r "$pins/requirements.txt"
    echo "$stamp" >"$browser_tools/stamp"
}

# Installs what checks HTML, by the version that tests/pages names.
page_tools="$PWD/target/page-tools"
install_page_tools() {
    if cmp -s tests/pages/package-lock.json "$page_tools/stamp"; then return; fi
    mkdir -p "$page_tools"
    cp tests/pages/package.json tests/pages/package-lock.json "$page_tools"
    npm ci --loglevel error --no-audit --no-fund --ignore-scripts --prefix "$page_tools"
    cp tests/pages/package-lock.json "$page_tools/stamp"
}

# Checks the HTML of the pages of a folder, by all recommended rules or those of a file.
check_html() { # folder [rules]
    "$page_tools/node_modules/.bin/html-validate" ${2:+--config "$2"} "$1"/*.html
}

# Prints a folder with the checks of tests/browser, within that which work names: modules are found beside a
# script or above it, and several checks run at a time.
browser_checks() {
    cp -r tests/browser "$work/checks"
    ln -s "$browser_tools/node_modules" "$work/checks/node_modules"
    echo "$work/checks"
}

# Prints what a script says of itself, and ends it.
usage() {
    sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "scripts/${0##*/}" >&2
    exit 2
}

# Whether a check's arguments name a server.
names_server() {
    case "${1:-}" in
        sqlite) [ $# -eq 1 ] ;;
        postgres) [ $# -eq 2 ] ;;
        http://* | https://*) [ $# -eq 1 ] && [ -n "${CHANCERY_ROOT_CLIENT_SECRET:-}" ] ;;
        *) return 1 ;;
    esac
}

# Starts a new server where a check's arguments ask for one, and sets base to where it listens. Its
# data and log are in the folder that work names.
use_server() {
    server=""
    base="${1%/}"
    case "$1" in sqlite | postgres) start_server "$@" ;; esac
    export CHANCERY_ROOT_CLIENT_SECRET
}

start_server() {
    local binary="${CHANCERY_BIN:-}"
    if [ -z "$binary" ]; then
        cargo build --workspace --all-targets --locked --quiet
        binary="$PWD/target/debug/chancery"
    fi
    if [ "$1" = postgres ]; then export CHANCERY_DATABASE="$2"; else unset CHANCERY_DATABASE; fi
    : "${CHANCERY_ROOT_CLIENT_SECRET:=$(python3 -c 'import secrets; print(secrets.token_urlsafe(32))')}"
    export CHANCERY_ROOT_CLIENT_SECRET
    : >"$work/server.log"
    # browsers have passkeys where the server goes by a name, whose port must be known before the server starts
    local port=0
    if [ -n "${server_name:-}" ]; then
        port="$(python3 -c 'import socket; one = socket.create_server(("127.0.0.1", 0)); print(one.getsockname()[1])')"
        export CHANCERY_PUBLIC_URL="http://$server_name:$port"
    fi
    CHANCERY_LISTEN="127.0.0.1:$port" CHANCERY_DRAIN=0 CHANCERY_DATA_DIR="$work/data" "$binary" >"$work/server.log" 2>&1 &
    server=$!
    for _ in $(seq 100); do
        base="$(sed -n 's/.*listens on \(http[^ ]*\).*/\1/p' "$work/server.log")"
        if [ -n "$base" ] || ! kill -0 "$server" 2>/dev/null; then break; fi
        sleep 0.1
    done
    if [ -z "$base" ]; then
        echo "the server does not start:" >&2
        cat "$work/server.log" >&2
        exit 1
    fi
}

stop_server() {
    if [ -n "${server:-}" ]; then
        kill "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    fi
}

# Whether a server that a check started had nothing to complain about.
server_log_is_clean() {
    if [ -n "$server" ] && grep -E '"level":"(ERROR|WARN)"| (ERROR|WARN) |panicked at' "$work/server.log"; then
        echo "FAILED  the server's log has the lines above"
        return 1
    fi
}
