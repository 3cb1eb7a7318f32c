#!/bin/sh
# From a fresh clone to a model that computes in a sandbox: installs what is missing, builds, runs
# examples/prime.lua. A second run is quick.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
. "$top/core/cmake/bootstrap.sh"

bootstrap_packages $BUILD_PACKAGES python3
bootstrap_build "$top" "$top/build/release" -DCMAKE_BUILD_TYPE=Release -DBARCHAN_EXAMPLES=ON
exec "$top/build/release/bin/barchan" run "$top/examples/prime.lua" "$@"
