#!/bin/sh
# Builds and runs the tests; closes with one line "N passed, N failed, N skipped".
#   tests/run.sh [--long] [--sanitize address|thread] [--filter REGEX] [--skip REGEX]
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
. "$top/core/cmake/bootstrap.sh"

build=$top/build/tests
sanitize=
filter=.
skip='^$'
timeout=300
long=OFF
usage="tests/run.sh [--long] [--sanitize address|thread] [--filter REGEX] [--skip REGEX]"
while [ $# -gt 0 ]; do
    case $1 in
    --help) say "$usage"; exit 0 ;;
    --sanitize | --filter | --skip) [ $# -gt 1 ] || die "$1 needs a value: $usage" ;;
    esac
    case $1 in
    --long) export BARCHAN_LONG=1 CK_TIMEOUT_MULTIPLIER=10; timeout=3000 long=ON ;;
    --sanitize) shift; sanitize=$1; build=$top/build/tests-$1 ;;
    --filter) shift; filter=$1 ;;
    --skip) shift; skip=$1 ;;
    *) die "unknown option '$1': $usage" ;;
    esac
    shift
done

case $filter$skip in
'.^$') say "barchan: all the tests take about 25 minutes on two busy processors; --filter REGEX runs some of them" ;;
esac
first_build="five minutes on two processors"
bootstrap_packages $BUILD_PACKAGES $TEST_PACKAGES
bootstrap_build "$top" "$build" -DBARCHAN_TESTS=ON -DBARCHAN_EXAMPLES=ON -DBARCHAN_SANITIZE="$sanitize" \
    -DBARCHAN_TEST_TIMEOUT="$timeout" -DBARCHAN_TESTS_LONG="$long"

# The distribution's own tools before wrappers of version managers, which other users cannot read.
export PATH="/usr/bin:/bin:$PATH"
export ASAN_OPTIONS="detect_leaks=1:abort_on_error=0"
export TSAN_OPTIONS="suppressions=$top/tests/support/tsan.supp"
# ThreadSanitizer wants the addresses of a kernel without much randomisation.
addresses=
[ "$sanitize" != thread ] || addresses="setarch -R"

names=$(cd "$build" && ctest -N -R "$filter" -E "$skip" | sed -n 's/^ *Test *#[0-9]*: //p')
[ -n "$names" ] || die "no test has a name that matches '$filter'"
say "barchan: running $(printf '%s\n' "$names" | wc -l) test programs of $(cd "$build" && ctest -N | sed -n 's/^Total Tests: //p')"

# prepare NAME: a place for a run of the tests whose names come on standard input; `only` is the pattern for them.
prepare() {
    mkdir -p "$build/$1"
    printf 'subdirs("%s")\n' "$build" >"$build/$1/CTestTestfile.cmake"
    only="^($(paste -s -d '|' | sed 's/[.+]/\\&/g'))\$"
}

# run_tests NAME [PREFIX...]: those that were prepared, one at a time: each counts the processes, descriptors and
# mounts that it has made, and some what the machine has. The results are in NAME.xml.
run_tests() {
    place=$build/$1
    results=$build/$1.xml
    shift
    exec "$@" $addresses ctest --test-dir "$place" --output-on-failure --timeout "$timeout" --no-tests=error \
        -R "$only" --output-junit "$results" --test-output-size-passed 1000000 --test-output-size-failed 1000000
}

# What runs again as an ordinary user, when it is root who tests, runs beside the rest where it can have a machine of
# its own as far as it sees: processes, /run and /tmp. (The shell stays: it takes in what has lost its parent.) Its
# output comes when the rest is done.
as_user='[-_]as[-_]user$'
apart='mount -t tmpfs tmpfs /run && mount -t tmpfs -o mode=1777 tmpfs /tmp && "$@"; exit $?'
alone="unshare --mount --pid --fork --kill-child --mount-proc sh -c"
case $top/ in
/tmp/* | /run/*) can=no ;;
*) can=$($alone "$apart" sh echo yes 2>/dev/null || true) ;;
esac
status=0
if [ "$can" = yes ] && printf '%s\n' "$names" | grep -q "$as_user" && printf '%s\n' "$names" | grep -qv "$as_user"; then
    prepare as_user <<EOF
$(printf '%s\n' "$names" | grep "$as_user")
EOF
    (run_tests as_user $alone "$apart" sh) >"$build/as_user.log" 2>&1 &
    beside=$! # unshare itself: with it all of that ends
    trap 'kill "$beside" 2>/dev/null' EXIT
    trap 'exit 130' INT TERM
    prepare plain <<EOF
$(printf '%s\n' "$names" | grep -v "$as_user")
EOF
    (run_tests plain env) || status=$?
    wait "$beside" || status=$?
    trap - EXIT
    cat "$build/as_user.log"
    python3 "$top/tests/support/summary.py" "$build/plain.xml" "$build/as_user.xml" || status=1
else
    prepare plain <<EOF
$names
EOF
    (run_tests plain env) || status=$?
    python3 "$top/tests/support/summary.py" "$build/plain.xml" || status=1
fi
exit $status
