#!/bin/sh
# Installs the build into a folder of its own and builds consumers against it: by find_package and by
# pkg-config, shared and static, C and C++. Checks the exported symbols.
#   test_install.sh BUILD_DIR SOURCE_DIR
set -eu
build=$1
source_dir=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0

check() { # check NAME COMMAND...
    name=$1
    shift
    if "$@" >"$work/log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $name"
        tail -n 20 "$work/log"
    fi
}

prints() { # prints EXPECTED COMMAND...
    expected=$1
    shift
    actual=$("$@") && [ "$actual" = "$expected" ] || { echo "printed '$actual', not '$expected'"; return 1; }
}

check "install" cmake --install "$build" --prefix "$work/usr"
libdir=$(dirname "$(find "$work/usr" -name libbarchan.a)")
export LD_LIBRARY_PATH="$libdir" PKG_CONFIG_PATH="$libdir/pkgconfig"

leads_nowhere() { # the links of the installed pages, whatever follows '#' left out
    find "$work/usr" -name '*.md' | while read -r page; do
        grep -oE '\]\([^)]+\)' "$page" | sed -E 's/^..//; s/[)#].*//' | grep -v '^https\?:' | while read -r link; do
            [ -e "$(dirname "$page")/$link" ] || echo "$page: $link"
        done
    done
}
check "the links of installed pages" prints "" leads_nowhere
check "the pages and the types" ls "$work"/usr/share/doc/barchan/README.md "$work"/usr/share/doc/barchan/SECURITY.md \
    "$work"/usr/share/barchan/scripts/barchan/agent.lua "$work"/usr/share/barchan/meta/events.lua
check "the headers alone" prints barchan ls "$work/usr/include"

check "configure by find_package" cmake -G Ninja -S "$source_dir/tests/support/consumer" -B "$work/consumer" \
    -DCMAKE_PREFIX_PATH="$work/usr"
check "build by find_package" ninja -C "$work/consumer"
for program in core_shared core_static engine_shared engine_static; do
    check "run $program" prints 42 "$work/consumer/$program"
done

by_pkg_config() { # by_pkg_config COMPILER SOURCE MODULE [--static]
    flags=$(pkg-config --cflags --libs ${4:-} "$3") || return 1
    # Static: name the archive, so that the linker does not take the shared library.
    [ -z "${4:-}" ] || flags=$(echo "$flags" | sed "s|-l$3\b|$libdir/lib$3.a|")
    $1 -o "$work/program" "$source_dir/tests/support/consumer/$2" $flags && prints 42 "$work/program"
}
for kind in "" --static; do
    check "pkg-config core $kind" by_pkg_config cc main.c barchan-core $kind
    check "pkg-config engine $kind" by_pkg_config c++ engine.cc barchan $kind
done

# Symbols: exactly those of the committed lists, which are exactly those that the headers declare.
exports_only() { # exports_only LIBRARY LIST
    nm -D --defined-only "$1" | awk '{print $3}' | LC_ALL=C sort >"$work/exported"
    diff -u "$source_dir/tests/data/exports/$2" "$work/exported"
}
declares() { # declares LIST HEADER...
    list=$1
    shift
    cat "$@" | tr '\n' ' ' | grep -oE 'BARCHAN_API[^;(]*\(' | grep -oE 'barchan_[a-z0-9_]+\($|barchan_[a-z0-9_]+ *\($' |
        tr -d ' (' | LC_ALL=C sort >"$work/declared"
    grep '^barchan_' "$source_dir/tests/data/exports/$list" | diff -u - "$work/declared"
}
headers=$work/usr/include/barchan
core_headers=$(ls "$headers"/*.h | grep -v engine.h)
check "libbarchan.so exports what is listed" exports_only "$libdir/libbarchan.so" libbarchan.txt
check "libbarchan-core.so exports what is listed" exports_only "$libdir/libbarchan-core.so" libbarchan-core.txt
check "barchan.so exports what is listed" exports_only "$libdir/lua/5.4/barchan.so" barchan.so.txt
check "the headers declare what libbarchan-core.so exports" declares libbarchan-core.txt $core_headers
check "the headers declare what libbarchan.so exports" declares libbarchan.txt $core_headers "$headers/engine.h"

called_by_tests() {
    for symbol in $(cat "$source_dir"/tests/data/exports/libbarchan.txt); do
        grep -rqw --include='*.c' --include='*.cc' "$symbol" "$source_dir/tests" || { echo "no test calls $symbol"; missing=1; }
    done
    [ -z "${missing:-}" ]
}
check "each exported function is called by a test" called_by_tests

headers_compile() {
    for header in "$work"/usr/include/barchan/*.h; do
        cc -x c -std=c11 -pedantic -Wall -Wextra -Werror -I"$work/usr/include" -fsyntax-only "$header" &&
            c++ -x c++ -std=c++11 -pedantic -Wall -Wextra -Werror -I"$work/usr/include" -fsyntax-only "$header" ||
            return 1
    done
}
check "each header compiles alone as C11 and C++" headers_compile

cat >"$work/module.lua" <<'LUA'
local barchan = require "barchan"
local sbx <close> = assert(barchan.sandbox())
io.write(assert(sbx:exec "echo $((6 * 7))").out)
LUA
module() { LUA_CPATH="$libdir/lua/5.4/?.so" prints 42 lua5.4 "$work/module.lua"; }
check "require 'barchan' under stock lua5.4" module
program() { prints 42 "$work/usr/bin/barchan" exec -- sh -c 'echo $((6 * 7))'; }
check "the installed program" program
installed_guest() { BARCHAN_GUEST=$(find "$work/usr" -path '*barchan/guest') prints 42 "$work/usr/bin/barchan" exec -- sh -c 'echo $((6 * 7))'; }
check "the installed guest" installed_guest

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
