#!/bin/sh
# Hot reload, shown: a conversation runs (a replayed model, a real sandbox) while the tool that it uses is
# edited well, edited badly, and mended, and then the loop itself is edited. Each turn shows what the model
# was told and what it got; the demo fails when that is not what the files said at that moment.
#   examples/hot_reload/demo.sh [BARCHAN]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
barchan=${1:-$here/../../build/release/bin/barchan}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$here/tools" "$here/loop.lua" "$work"
mkfifo "$work/in" "$work/out"

"$barchan" run --watch "$work/loop.lua" "$work/tools" "$here/turns.jsonl" \
    <"$work/in" >"$work/out" 2>"$work/log" &
loop=$!
exec 3>"$work/in" 4<"$work/out"

fail() { echo "demo: $*" >&2; cat "$work/log" >&2; exit 1; }

# turn DECLARED ANSWER: waits for the model's turn, and checks what came of it
turn() {
    IFS= read -r declared <&4 || fail "the loop has ended"
    IFS= read -r answer <&4 || fail "the loop has ended"
    printf '  the model is told: %s\n  and gets: %s\n' "$declared" "$answer"
    [ "$declared" = "$1" ] || fail "expected the declaration '$1'"
    [ "$answer" = "$2" ] || fail "expected the answer '$2'"
}

edit() { # edit FILE SED_EXPRESSION: and lets the model go on
    sed "$2" "$work/$1" >"$work/edited" && mv "$work/edited" "$work/$1"
    echo >&3
}

echo "as it is:"
turn "Count the words of a text." "5 words (call 1)"

echo "a good edit:"
edit tools/measure.lua 's/Count the words/Count the letters/; s/-w"/-m"/; s/%d words/%d letters/'
turn "Count the letters of a text." "19 letters (call 2)"

echo "a broken edit:"
edit tools/measure.lua 's/run = function/run = functoin/'
turn "Count the letters of a text." "19 letters (call 3)"
grep "^tools_reload_failed .*measure.lua:[0-9]*:" "$work/log" || fail "the broken edit was not told"

echo "mended:"
edit tools/measure.lua 's/run = functoin/run = function/; s/%d letters/all of %d letters/'
turn "Count the letters of a text." "all of 19 letters (call 4)"

echo "the loop itself, edited:"
edit loop.lua 's/print(declared.description)/print("EDITED: " .. declared.description)/'
turn "EDITED: Count the letters of a text." "all of 19 letters (call 5)"

echo >&3
IFS= read -r last <&4 || fail "the loop has ended"
echo "$last"
[ "$last" = "It has 19 letters. (12 messages)" ] || fail "the conversation was not kept"
wait "$loop" || fail "the loop failed"
