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
usage="tests/run.sh [--long] [--sanitize address|thread] [--filter REGEX] [--skip REGEX]"
while [ $# -gt 0 ]; do
    case $1 in
    --help) say "$usage"; exit 0 ;;
    --sanitize | --filter | --skip) [ $# -gt 1 ] || die "$1 needs a value: $usage" ;;
    esac
    case $1 in
    --long) export BARCHAN_LONG=1 CK_TIMEOUT_MULTIPLIER=10; timeout=3000 ;;
    --sanitize) shift; sanitize=$1; build=$top/build/tests-$1 ;;
    --filter) shift; filter=$1 ;;
    --skip) shift; skip=$1 ;;
    *) die "unknown option '$1': $usage" ;;
    esac
    shift
done

bootstrap_packages $BUILD_PACKAGES $TEST_PACKAGES
bootstrap_build "$top" "$build" -DBARCHAN_TESTS=ON -DBARCHAN_EXAMPLES=ON -DBARCHAN_SANITIZE="$sanitize" \
    -DBARCHAN_TEST_TIMEOUT="$timeout"

# The distribution's own tools before wrappers of version managers, which other users cannot read.
export PATH="/usr/bin:/bin:$PATH"
export ASAN_OPTIONS="detect_leaks=1:abort_on_error=0"
export TSAN_OPTIONS="suppressions=$top/tests/support/tsan.supp"
results=$build/results.xml
# One at a time: the tests count processes and descriptors of the whole machine.
status=0
# ThreadSanitizer wants the addresses of a kernel without much randomisation.
run=
[ "$sanitize" != thread ] || run="setarch -R"
(cd "$build" && $run ctest --output-on-failure --timeout "$timeout" --no-tests=error -R "$filter" -E "$skip" \
    --output-junit "$results" --test-output-size-passed 1000000 --test-output-size-failed 1000000) || status=$?
python3 "$top/tests/support/summary.py" "$results" || status=1
exit $status
