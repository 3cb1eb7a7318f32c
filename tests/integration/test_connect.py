#!/usr/bin/env python3
"""The connection examples and `barchan ask`, whole: a server of both APIs that was not written here asks
for run_python, the code runs in a real sandbox, the result goes back, the answer is printed.

Arguments: the program, tests/support/aimock.mjs, a folder for the npm package, the answers. Exit code 77
where node, npm or its registry is missing.
"""
import os
import subprocess
import sys

PROGRAM, MOCK, FOLDER, ANSWERS = sys.argv[1:5]
EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples")
PROMPT = "What is the 1000th prime number?"
ANSWER = "The 1000th prime number is 7919."


def cases(port):
    base = f"http://127.0.0.1:{port}"
    claude = {"ANTHROPIC_API_KEY": "any", "ANTHROPIC_BASE_URL": base}
    openai = {"OPENAI_API_KEY": "any", "OPENAI_BASE_URL": base + "/v1"}
    for stream in "1", "0":
        for name, env in (("connect_claude.lua", claude), ("connect_openai.lua", openai)):
            yield (f"{name}, stream {stream}", ["run", os.path.join(EXAMPLES, name), PROMPT],
                   {**env, "BARCHAN_STREAM": stream}, "[run_python]")
    yield "ask, anthropic", ["ask", "--model", "anthropic:claude-test", PROMPT], claude, "run_python"
    yield "ask, openai", ["ask", "--model", "openai:gpt-test", PROMPT], openai, "run_python"


def main():
    try:
        mock = subprocess.Popen(["node", MOCK, FOLDER, ANSWERS], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, text=True)
    except OSError as error:
        print(f"SKIP {error}")
        return 77
    port = mock.stdout.readline().strip()
    if not port:
        print("SKIP the npm package is not to be had here")
        return 77
    passed = failed = 0
    for name, arguments, env, call in cases(port):
        done = subprocess.run([PROGRAM, *arguments], env={**os.environ, **env}, capture_output=True,
                              text=True, timeout=120, stdin=subprocess.DEVNULL)
        # The answer comes only when the result that went back has 7919 in it.
        good = done.returncode == 0 and ANSWER in done.stdout and call in done.stdout + done.stderr
        passed, failed = passed + good, failed + (not good)
        print(f"{'ok' if good else 'FAILED'} {name}")
        if not good:
            print(f"exit {done.returncode}\n{done.stdout}\n{done.stderr}")
    mock.stdin.close()
    mock.wait()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
