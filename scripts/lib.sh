# Shared by the scripts: a server to check, and a PostgreSQL cluster for tests.

# Runs a command as a user who may run a PostgreSQL server, which root may not.
as_postgres() {
    if [ "$(id -u)" -eq 0 ]; then runuser -u postgres -- "$@"; else "$@"; fi
}

# Tools and compiled dependencies of all checkouts of a user. Each is made anew where it is missing.
cache="${XDG_CACHE_HOME:-$HOME/.cache}/chancery"

# Seconds after which a check gives up waiting for what must happen: long enough for a machine that does other work.
export CHANCERY_PATIENCE="${CHANCERY_PATIENCE:-180}"

# How long one installation may take, in seconds: with a registry that hangs it is a failure, not a wait.
installation_limit=600

# Installs Debian packages, once for the first that is missing.
install_packages() { # package...
    echo "installing $*"
    local sudo=""
    [ "$(id -u)" -eq 0 ] || sudo=sudo
    # another check may be installing, too
    local wait=(-o "DPkg::Lock::Timeout=$installation_limit")
    $sudo timeout "$installation_limit" apt-get update -qq
    $sudo env DEBIAN_FRONTEND=noninteractive timeout "$installation_limit" \
        apt-get "${wait[@]}" install -y -qq --no-install-recommends "$@" >/dev/null
}

# Installs a Debian package when a command is missing.
need() { # command package
    command -v "$1" >/dev/null || install_packages "$2"
}

# Sets `python` to the interpreter for virtual environments: Debian's where it is there, which is optimized by a profile. Others, such
# as those of pyenv, take a fifth longer.
need_python() {
    python=/usr/bin/python3
    if [ ! -x "$python" ]; then
        need python3 python3
        python="$(command -v python3)"
    fi
    "$python" -c 'import ensurepip' 2>/dev/null || install_packages python3-venv
}

# Sets `tools` to a folder with the packages that the given folders pin: of npm by package-lock.json, of PyPI by
# requirements.txt, and with the programs that go.mod and pom.xml describe. They are installed once for each set of versions and
# sources; a set that nobody used for two weeks is removed.
use_tools() { # name folder-with-pins...
    local name="$1" folder pins=() sources=()
    shift
    for folder in "$@"; do
        for pin in "$folder"/{package-lock.json,requirements.txt,go.mod,pom.xml}; do
            if [ -e "$pin" ]; then pins+=("$pin"); fi
        done
        mapfile -t -O "${#sources[@]}" sources < <(find "$folder"/{go.sum,*.go,src} -type f 2>/dev/null | sort)
    done
    tools="$cache/tools/$name-$(cat "${pins[@]}" "${sources[@]}" | sha256sum | cut -c 1-16)"
    mkdir -p "$tools"
    {
        flock 9
        if [ ! -e "$tools/complete" ]; then
            find "$cache/tools" -mindepth 1 -maxdepth 1 -name "$name-*" -mtime +14 -exec rm -rf {} +
            for pin in "${pins[@]}"; do install_pinned "$pin" || return; done
        fi
        touch "$tools" "$tools/complete"
    } 9>"$tools/lock"
}

install_pinned() { # file
    echo "installing what $1 names"
    case "$1" in
        */package-lock.json)
            need node nodejs &&
                need npm npm &&
                cp "${1%-lock.json}.json" "$1" "$tools" &&
                timeout "$installation_limit" \
                    npm ci --loglevel error --no-audit --no-fund --ignore-scripts --prefix "$tools"
            ;;
        */requirements.txt)
            need_python &&
                "$python" -m venv "$tools/python" &&
                timeout "$installation_limit" \
                    "$tools/python/bin/pip" install --quiet --disable-pip-version-check --no-deps -r "$1"
            ;;
        */go.mod)
            # the sums of go.sum are compared; a tool of the module, where it names one, or the module itself
            need go golang-go &&
                mkdir -p "$tools/bin" &&
                GOFLAGS=-mod=readonly timeout "$installation_limit" go build -C "${1%/*}" -o "$tools/bin/" \
                    "$(sed -n 's/^tool //p; $s/.*/./p' "$1" | head -n 1)"
            ;;
        */pom.xml)
            need javac default-jdk-headless &&
                need mvn maven &&
                cp -r "${1%/*}/." "$tools" &&
                timeout "$installation_limit" mvn --batch-mode --quiet --strict-checksums -f "$tools/pom.xml" package &&
                mv "$tools"/target/*.jar "$tools"
            ;;
    esac
}

# Puts the programs for cargo that tests/cargo pins on the path: as wheels of PyPI, or compiled where it has none for
# this machine.
use_cargo_tools() {
    if ! use_tools cargo tests/cargo; then
        echo "compiling what tests/cargo names"
        sed -n 's/^astral-dev-toolchain-\(.*\)==\(.*\)/\1@\2/p' tests/cargo/requirements.txt |
            xargs cargo install --quiet --locked --debug --root "$tools/python" --target-dir "$tools/build"
        rm -rf "$tools/build"
        touch "$tools/complete"
    fi
    export PATH="$tools/python/bin:$PATH"
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
    need python3 python3
    local programs port
    programs="$(postgres_programs)"
    port="$(free_port)"
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

# Installs a browser and what drives it, in `browser_tools`: Chromium without windows, which takes about half the processor time,
# or the one that is named. CHROMIUM names a browser that is there already.
use_browser_tools() { # [program]
    local browser="${1:-chromium-headless-shell}"
    if [ -z "${CHROMIUM:-}" ]; then
        need "$browser" "$browser"
        export CHROMIUM="/usr/bin/$browser"
    fi
    use_tools browser tests/browser
    browser_tools="$tools"
}

# Installs what checks HTML, in `page_tools`.
use_page_tools() {
    use_tools pages tests/pages
    page_tools="$tools"
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

# Prints a port of this machine that is free, and stays free until a server listens there.
free_port() { python3 scripts/ports.py; }

# Makes a certificate for localhost, which is its own authority, and its key.
make_certificate() { # folder
    need openssl openssl
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost \
        -addext subjectAltName=DNS:localhost -addext basicConstraints=critical,CA:FALSE \
        -keyout "$1/key.pem" -out "$1/certificate.pem" 2>/dev/null
    chmod 600 "$1/key.pem"
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
    if [ -z "${CHANCERY_BIN:-}" ]; then build --quiet; fi
    if [ "$1" = postgres ]; then export CHANCERY_DATABASE="$2"; else unset CHANCERY_DATABASE; fi
    : "${CHANCERY_ROOT_CLIENT_SECRET:=$(python3 -c 'import secrets; print(secrets.token_urlsafe(32))')}"
    export CHANCERY_ROOT_CLIENT_SECRET
    : >"$work/server.log"
    # browsers have passkeys where the server goes by a name, whose port must be known before the server starts
    local port="${server_port:-0}"
    if [ -n "${server_name:-}" ]; then
        if [ "$port" -eq 0 ]; then port="$(free_port)"; fi
        export CHANCERY_PUBLIC_URL="${server_scheme:-http}://$server_name:$port"
    fi
    CHANCERY_LISTEN="127.0.0.1:$port" CHANCERY_DRAIN=0 CHANCERY_DATA_DIR="$work/data" \
        run_server_program >"$work/server.log" 2>&1 &
    server=$!
    for _ in $(seq $((CHANCERY_PATIENCE * 10))); do
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

# Runs the server's program without the variables that are none of its own, of which it warns, and without the lock of its check. It
# takes the place of a subshell.
run_server_program() { # argument...
    exec env -u CHANCERY_BIN -u CHANCERY_PATIENCE -u CHANCERY_TEST_POSTGRES -u CHANCERY_APPS -u CHANCERY_BASE -u CHANCERY_SETUP \
        "${CHANCERY_BIN:-$PWD/target/debug/chancery}" "$@" 9>&-
}

stop_server() {
    if [ -n "${server:-}" ]; then
        kill "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    fi
}

# Whether a server that a check started had nothing to complain about, besides what this pattern names.
server_log_is_clean() { # [pattern]
    if [ -n "$server" ] && grep -E '"level":"(ERROR|WARN)"| (ERROR|WARN) |panicked at' "$work/server.log" |
        grep -vE "${1:-^$}"; then
        echo "FAILED  the server's log has the lines above"
        return 1
    fi
}

# Builds libraries, tests, examples and the server, with further options: one set of features for all. Of the harness for benchmarks its tests are enough.
build() { cargo build --workspace --lib --tests --examples --bin chancery --locked "$@"; }

# From here on cargo compiles the crates of the workspace by clippy, whose warnings are errors: one pass instead of two. Dependencies are
# compiled as before. What was built without clippy is not used.
lint_while_building() {
    export RUSTC_WORKSPACE_WRAPPER CLIPPY_ARGS="-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__"
    RUSTC_WORKSPACE_WRAPPER="$(rustc --print sysroot)/bin/clippy-driver"
}

# Sets `release` to the program of a release. It is compiled once, below the folder that `work` names, from the commit that
# tests/contract/releases names, or a commit.
use_release() { # version or commit
    local commit sources named="tests/contract/releases/$1/commit"
    if [ -e "$named" ]; then commit="$(cat "$named")"; else commit="$(git rev-parse --verify "$1^{commit}")"; fi
    release="$cache/releases/$commit/chancery"
    if [ -e "$release" ]; then return; fi
    echo "compiling release $1"
    sources="$(mktemp -d -p "$work")"
    git archive "$commit" | tar -x -C "$sources"
    (cd "$sources" && CARGO_TARGET_DIR="$sources/target" CARGO_PROFILE_DEV_DEBUG=0 \
        cargo build --workspace --bin chancery --locked --quiet)
    mkdir -p "${release%/*}"
    mv "$sources/target/debug/chancery" "$release"
    rm -rf "$sources"
}

# Runs tests by cargo-nextest, each in a process of its own: all, or those that its arguments select.
run_tests() {
    local -x TMPDIR
    TMPDIR="$(folder_for_tests)"
    # tests wait as well as work: half as many again as there are processors, and those of the group that only waits
    local -x NEXTEST_TEST_THREADS=$((($(nproc) * 5 + 1) / 2))
    # nobody stops a run from the keyboard while it starts a test: one process less for each
    local -x NEXTEST_DOUBLE_SPAWN=0
    cargo nextest run --workspace --locked --no-fail-fast "$@"
}

# The same, and records the statements of each test for scripts/postgres-tests, and its holds for scripts/test-times.
run_recorded_tests() {
    local -x CHANCERY_STATEMENTS="$PWD/target/statements" CHANCERY_HOLDS="$PWD/target/holds"
    rm -rf "$CHANCERY_STATEMENTS" "$CHANCERY_HOLDS"
    run_tests "$@"
}

# What the compiled dependencies depend on: their versions, the toolchain, the profiles and the flags.
dependency_key() {
    {
        # packages of registries; those of the workspace are not stored
        awk -v RS= '/\nsource = /' Cargo.lock
        cat .cargo/config.toml
        sed -n '/^\[profile/,$p' Cargo.toml
        rustc --version --verbose
        env | grep -E '^(RUSTFLAGS|CARGO_ENCODED_RUSTFLAGS|CARGO_PROFILE_|CARGO_BUILD_|CC=|CFLAGS=|AR=)' | sort || true
    } | sha256sum | cut -c 1-16
}

# The most that compiled dependencies may take, in KiB, and how many sets of them are stored.
most_dependencies=$((5 << 20))
most_sets=2

# Puts the compiled dependencies of an earlier run into a target folder that is new. Whether cargo uses them follows
# from its own fingerprints.
restore_dependencies() {
    local stored="$cache/dependencies/$1"
    if [ -e target/debug/deps ] || [ ! -e "$stored/complete" ]; then return; fi
    mkdir -p target/debug
    cp -a "$stored/debug/." target/debug
    touch "$stored"
    echo "dependencies are compiled already: $stored"
}

# Stores the compiled dependencies for later runs, without what belongs to this checkout.
store_dependencies() {
    local folder="$cache/dependencies" new own
    if [ -e "$folder/$1/complete" ]; then return; fi
    mkdir -p "$folder"
    new="$(mktemp -d -p "$folder" new.XXXXXX)"
    mkdir "$new/debug"
    # what is compiled from the workspace, by the names of its packages and targets
    own="$(cargo metadata --no-deps --format-version 1 --locked | python3 -c '
import json, sys
names = {name for package in json.load(sys.stdin)["packages"]
         for name in [package["name"], *(target["name"] for target in package["targets"])]} - {"build-script-build"}
print("|".join(sorted({form for name in names for form in (name, name.replace("-", "_"))})))')"
    (cd target/debug && find .fingerprint build -mindepth 1 -maxdepth 1 && find deps -mindepth 1 -maxdepth 1) |
        grep -E -- '-[0-9a-f]{16}(\.|$)' | grep -vE "/(lib)?($own)-[0-9a-f]{16}(\.|$)" >"$new/list"
    tar -C target/debug -cf - -T "$new/list" | tar -C "$new/debug" -xf -
    if [ "$(du -sk "$new" | cut -f 1)" -gt "$most_dependencies" ]; then
        echo "the compiled dependencies are not stored: they are larger than $((most_dependencies >> 20)) GiB"
        rm -rf "$new"
        return
    fi
    touch "$new/complete"
    mv -T "$new" "$folder/$1" 2>/dev/null || rm -rf "$new"
    # the sets that were used last stay; what a run left that was ended goes
    find "$folder" -mindepth 1 -maxdepth 1 -name 'new.*' -mmin +120 -exec rm -rf {} +
    ls -dt "$folder"/[0-9a-f]* | tail -n +$((most_sets + 1)) | xargs -r rm -rf
}
