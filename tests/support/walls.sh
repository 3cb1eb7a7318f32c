#!/bin/sh
# The walls of the design, each one a search of the tree. Prints what breaks them.
set -u
cd "$(dirname "$0")/../.." || exit 2
report=$(mktemp) || exit 2
trap 'rm -f "$report"' EXIT

# wall WHY -- reads the offending lines from standard input
wall() {
    lines=$(cat)
    [ -z "$lines" ] || printf '%s:\n%s\n\n' "$1" "$lines" >>"$report"
}

search() { git grep -nIE "$@" || true; }

search '#include *[<"]lua' -- core | wall "core/ does not know Lua"
search '#include *[<"]' -- core/guest |
    grep -vE '#include *(<(linux|sys|asm|net|netinet|arpa)/|<[a-z_0-9]+\.h>|"(channel/frame\.h|[a-z_]+\.h)")' |
    wall "core/guest/ includes libc, kernel headers and the frame header only"
search '#include *[<"](curl/|uv\.h|jansson|openssl/)' -- core/include bindings |
    wall "no type of curl, libuv, jansson or OpenSSL outside the core's own files"
search '#include *<(sys/|unistd|fcntl|poll|curl/)' -- bindings/lua |
    wall "bindings/lua makes no system call and no curl call of its own"
search '\b(strcpy|strcat|sprintf|vsprintf|atoi|atol|strtok|alloca|system|popen|gets)\(' -- '*.c' '*.h' |
    grep -vE 'tests/|\bl_' | wall "banned functions"
git ls-files | grep -vE '^(core|bindings|scripts|tests|examples)/|^(CMakeLists\.txt|README\.md|LICENSE|\.[^/]*(/.*)?)$' |
    wall "the top level holds nothing else"
for dir in $(git ls-files 'core/*' 'bindings/*' 'scripts/*' 'tests/*' 'examples/*' | xargs -n1 dirname | sort -u); do
    case $dir in
    core/include* | bindings/include* | bindings/cmake | */data* | .*) continue ;;
    esac
    [ -f "$dir/README.md" ] || echo "$dir"
done | wall "every folder has a README.md"
git ls-files '*.c' '*.h' '*.lua' | grep -v '^tests/' | xargs wc -l | awk '$2 != "total" && $1 > 450 { print $2 ": " $1 " lines" }' |
    wall "files of about 400 lines at most"

if [ -s "$report" ]; then
    cat "$report"
    exit 1
fi
echo "all walls stand"
