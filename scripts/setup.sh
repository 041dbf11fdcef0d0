#!/bin/sh
# Set up everything that a checkout needs, with only Python and a shell. Safe to run again: each step checks first, and a stamp of
# what was installed makes a second run cost nothing while nothing changed.
#
#   scripts/setup.sh packages              only the packages: building the docs needs no Java and no Spark
#   PYTHON=python3.12 scripts/setup.sh     use this Python (3.11 to 3.13) instead of the first on PATH
set -eu
cd "$(dirname "$0")/.."

log=.strandline/setup.log
stamp=.venv/.strandline-setup
# The path counts, too: the scripts of a moved virtual environment point to the old place.
want="$(cat requirements.lock pyproject.toml scripts/setup.sh scripts/jars.py | cksum) $PWD"

only_packages=$([ "${1:-}" = packages ] && echo yes || true)

version_of() { "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null || true; }

is_set_up() { [ "$(cat "$stamp" 2>/dev/null)" = "$want" ] || { [ -n "$only_packages" ] && [ "$(cat "$stamp" 2>/dev/null)" = "packages: $want" ]; }; }

if [ -x .venv/bin/python ] && is_set_up; then
    # Set up again if PYTHON names another version than the one in .venv.
    if [ -z "${PYTHON:-}" ] || [ "$(version_of "$PYTHON")" = "$(version_of .venv/bin/python)" ]; then
        exit 0
    fi
fi

fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }
step() { printf '==> %s\n' "$*"; began=$(date +%s); }
took() { printf '    done in %s s\n' "$(($(date +%s) - began))"; }

# Run a command with its output in the log only; the caller handles a failure.
quietly() { "$@" >>"$log" 2>&1; }

# Install Debian packages, as root or with a sudo that does not ask; fail if neither works. Installed packages are not upgraded
# (--no-upgrade): a Java that other processes run must not be replaced.
apt() {
    command -v apt-get >/dev/null 2>&1 || return 1
    if [ "$(id -u)" = 0 ]; then root=; elif sudo -n true 2>/dev/null; then root="sudo -n"; else return 1; fi
    # shellcheck disable=SC2086 # root is one word, two or none
    quietly $root apt-get update && quietly $root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-upgrade --no-install-recommends "$@"
}

fits() { case "$(version_of "$1")" in 3.11 | 3.12 | 3.13) true ;; *) false ;; esac; }

find_python() {
    if [ -n "${PYTHON:-}" ]; then
        fits "$PYTHON" || fail "expected PYTHON to be a Python 3.11 to 3.13, found PYTHON=$PYTHON (version: $(version_of "$PYTHON")); name another, or leave it out"
        python=$PYTHON
        return
    fi
    for python in python3.13 python3.12 python3.11 python3 python; do
        if fits "$python"; then return; fi
    done
    fail "expected Python 3.11, 3.12 or 3.13 on PATH, found none; install one (Debian: apt-get install python3), or name one with PYTHON=/path/to/python3.12"
}

make_venv() {
    if [ -x .venv/bin/python ] && fits .venv/bin/python && .venv/bin/python -m pip --version >/dev/null 2>&1; then
        if [ -z "${PYTHON:-}" ] || [ "$(version_of .venv/bin/python)" = "$(version_of "$python")" ]; then
            return
        fi
    fi
    step "virtual environment .venv with Python $(version_of "$python")"
    "$python" -c 'import ensurepip, venv' 2>/dev/null ||
        apt "python$(version_of "$python")-venv" || apt python3-venv ||
        fail "this Python has no venv module, and apt-get could not install it: install python3-venv, or name another Python with PYTHON=..."
    "$python" -m venv --clear .venv >>"$log" 2>&1 || fail "'$python -m venv .venv' failed: $(tail -n 1 "$log")"
    took
}

# Show the large downloads and the slow steps of uv and pip; write all lines to the log.
show_progress() {
    while IFS= read -r line; do
        printf '%s\n' "$line" >>"$log"
        case "$line" in
            # 10 MB and more
            *Downloading*\([0-9][0-9]*\ MB\)) line=${line##*Downloading } && printf '    downloading %s\n' "${line##*/}" ;;
            *Downloading*\([0-9][0-9]*.[0-9]MiB\)) printf '    downloading %s\n' "${line##*Downloading }" ;;
            *Building\ wheel\ for*started) ;;
            *Building\ pyspark*|*Building\ wheel\ for*) printf '    %s\n' "${line#"${line%%[! ]*}"}" ;;
            Installing\ collected*|Installed\ *) printf '    unpacking\n' ;;
            ERROR:*|error:*) printf '    %s\n' "$line" ;;
        esac
    done
}

# Print a setting of pip's configuration files or variables; nothing if it is not set.
pip_setting() {
    .venv/bin/python -m pip config list 2>/dev/null | sed -n "s/^[^.]*\.$1='\(.*\)'\$/\1/p" | tail -n 1
}

# uv takes a third of pip's time. It reads other settings than pip, so it gets pip's index, links and certificates.
install_with_uv() {
    grep -A 40 '^uv==' requirements.lock | sed '2,${/^[a-z]/,$d;}' >.strandline/uv.lock
    quietly .venv/bin/python -m pip install --disable-pip-version-check --no-deps --require-hashes -r .strandline/uv.lock || return 1
    for setting in index-url:UV_DEFAULT_INDEX extra-index-url:UV_INDEX find-links:UV_FIND_LINKS cert:SSL_CERT_FILE; do
        value=$(pip_setting "${setting%%:*}")
        eval "[ -z \"\$value\" ] || [ -n \"\${${setting##*:}:-}\" ] || export ${setting##*:}=\"\$value\""
    done
    { .venv/bin/uv pip install --python .venv/bin/python --no-config --compile-bytecode --no-deps --require-hashes -r requirements.lock 2>&1 || echo failed >"$log.failed"; } | show_progress
    [ ! -e "$log.failed" ] || { rm "$log.failed"; return 1; }
}

install_with_pip() {
    # --no-deps: the lock is complete, and a pip that resolves asks for hashes of gql[requests] although the lock has gql's.
    { .venv/bin/python -m pip install --disable-pip-version-check --progress-bar off --no-deps --require-hashes -r requirements.lock 2>&1 || echo failed >"$log.failed"; } | show_progress
    [ ! -e "$log.failed" ] || { rm "$log.failed"; return 1; }
}

install_packages() {
    step "installing $(grep -c '^[A-Za-z0-9]' requirements.lock) packages, about 1 GB, a minute or more (all of the output: $log)"
    install_with_uv || { printf '    uv could not install them, trying pip\n'; install_with_pip; } ||
        fail "pip could not install requirements.lock: see $log, then run this again"
    quietly .venv/bin/python -m pip install --disable-pip-version-check --no-deps --no-build-isolation -e . ||
        fail "pip could not install this checkout: $(grep -ai error "$log" | tail -n 1 | cut -c 1-200); see $log"
    # If bytecode is switched off, pip writes none, and every command compiles Dagster again: 3 s of CPU each.
    [ -z "${PYTHONDONTWRITEBYTECODE:-}" ] || quietly env -u PYTHONDONTWRITEBYTECODE .venv/bin/python -m compileall -q -j 0 \
        .venv/lib partitions resources platform_assets || true
    quietly .venv/bin/python -m pip check || fail "requirements.lock is not complete ($(tail -n 1 "$log")): make lock"
    took
}

check_java() {
    step "Java"
    if ! "$1" -m scripts.jars java 2>>"$log"; then
        # Another Java does not fix a wrong JAVA_HOME.
        if [ -z "${JAVA_HOME:-}" ]; then
            printf '    no suitable Java, installing openjdk-17-jre-headless\n'
            apt openjdk-17-jre-headless || true
        fi
        problem=$("$1" -m scripts.jars java 2>&1) || fail "$problem"
        printf '%s\n' "$problem"
    fi
}

mkdir -p .strandline
: >"$log"
rm -f "$stamp" "$log.failed"
find_python
[ -n "$only_packages" ] || check_java "$python" # before a useless download of 1 GB
make_venv
install_packages
if [ -n "$only_packages" ]; then
    printf 'packages: %s\n' "$want" >"$stamp"
    exit 0
fi
step "Spark"
.venv/bin/python -m scripts.jars fetch || fail "Spark's jars are missing, see above"
took
printf '%s\n' "$want" >"$stamp"
printf 'Ready: make demo, make ui, make test\n'
