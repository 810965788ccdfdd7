# Sourced by bin/run and bin/test: makes ROOT/.venv if it is missing or stale, and sets PYTHON to its interpreter.
# Only what the scripts themselves need is set, and nothing is exported: tasks see the caller's environment.

die() {
    printf '%s: %s\n' "${0##*/}" "$1" >&2
    exit 1
}

is_new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

find_python() {
    for candidate in python3 python3.13 python3.12 python3.11; do
        if is_new_enough "$candidate"; then
            printf '%s' "$candidate"
            return
        fi
    done
    die "Python 3.11 or newer is needed, and none of python3, python3.13, python3.12, python3.11 on the PATH is. Install one."
}

# stamp FILE...: what an installation of these requirements depends on.
stamp() {
    "$ROOT/.venv/bin/python" -c 'import sys; print(sys.version)' 2>/dev/null
    cat "$@" | cksum
}

# use_environment NAME REQUIREMENTS...: the last file is installed; all of them are watched for change.
use_environment() {
    name=$1
    shift
    PYTHON="$ROOT/.venv/bin/python"
    # Two first starts at once would write into each other's environment. The lock is on the folder itself.
    if command -v flock >/dev/null 2>&1; then
        exec 9<"$ROOT"
        flock 9
    fi
    if ! is_new_enough "$PYTHON"; then
        base=$(find_python) || exit 1
        "$base" -c 'import venv, ensurepip' 2>/dev/null ||
            die "$base has no venv with pip. On Debian and Ubuntu: apt-get install python3-venv. Then start again."
        printf 'Making %s …\n' "$ROOT/.venv" >&2
        "$base" -m venv --clear "$ROOT/.venv" || die "The environment $ROOT/.venv could not be made (see above)."
    fi
    if [ "$(cat "$ROOT/.venv/stamp-$name" 2>/dev/null)" != "$(stamp "$@")" ]; then
        for file; do :; done
        printf 'Installing %s …\n' "${file##*/}" >&2
        "$PYTHON" -m pip install --quiet --disable-pip-version-check --no-input -r "$file" ||
            die "Installing ${file##*/} failed (see above). Is a package index reachable?"
        stamp "$@" >"$ROOT/.venv/stamp-$name"
    fi
    exec 9<&-
}
