# Sourced by examples/quickstart.sh and tests/run.sh: installs the packages that are missing, builds.
# Speaks on standard error only.

say() { printf '%s\n' "$*" >&2; }

die() { say "barchan: $*"; exit 1; }

# bootstrap_packages PACKAGE...: installs what is missing, as root or by sudo. On a system without
# dpkg nothing is installed: CMake then names what it does not find.
bootstrap_packages() {
    command -v dpkg-query >/dev/null 2>&1 || return 0
    missing=
    for package in "$@"; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
            missing="$missing $package"
    done
    [ -n "$missing" ] || return 0
    if [ "$(id -u)" = 0 ]; then
        sudo=
    elif command -v sudo >/dev/null 2>&1; then
        sudo=sudo
        say "barchan: sudo is used to install:$missing"
    else
        die "these packages are missing; ask an administrator to run: apt-get install$missing"
    fi
    say "barchan: installing$missing"
    # The package lists may be old or absent; a failing update still leaves what is cached.
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get update -qq >&2 || true
    # shellcheck disable=SC2086
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        $missing >&2 || die "apt-get install failed"
}

BUILD_PACKAGES="gcc libc6-dev cmake ninja-build pkg-config liblua5.4-dev libcurl4-openssl-dev \
lua-cjson-dev libuv1-dev libjansson-dev libc-ares-dev libssl-dev libseccomp-dev"
TEST_PACKAGES="g++ procps util-linux check lua5.4 lua-cjson lua-unit python3 openssl curl gdb git make sqlite3 strace \
iproute2 python3-numpy python3-requests"

# bootstrap_build SOURCE BUILD [CMAKE_OPTION...]: configures once, then builds what changed. Quiet
# unless it fails.
bootstrap_build() {
    source_dir=$1
    build_dir=$2
    shift 2
    mkdir -p "$build_dir" || die "cannot write to $build_dir"
    log=$build_dir/bootstrap.log
    [ -f "$build_dir/build.ninja" ] || say "barchan: building in $build_dir (the first time takes ${first_build:-a minute})"
    if ! { cmake -G Ninja -S "$source_dir" -B "$build_dir" "$@" && ninja -C "$build_dir"; } >"$log" 2>&1; then
        tail -n 40 "$log" >&2
        die "the build failed; the whole log is $log"
    fi
}
