#!/usr/bin/env python3
"""The connection examples and `barchan ask`, whole: a server of both APIs that was not written here asks
for run_python, the code runs in a real sandbox, the result goes back, the answer is printed.

Arguments: the program, tests/support/aimock.mjs, a folder for the npm package, the answers. Exit code 77
where node, npm or its registry is missing.
"""
import os
import subprocess
import sys
import tempfile

PROGRAM, MOCK, FOLDER, ANSWERS = sys.argv[1:5]
EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples")
PROMPT = "What is the 1000th prime number?"
ANSWER = "The 1000th prime number is 7919."


def cases(port, records):
    base = f"http://127.0.0.1:{port}"
    claude = {"ANTHROPIC_API_KEY": "any", "ANTHROPIC_BASE_URL": base}
    openai = {"OPENAI_API_KEY": "any", "OPENAI_BASE_URL": base + "/v1"}
    for stream in "1", "0":
        for name, env in (("connect_claude.lua", claude), ("connect_openai.lua", openai)):
            yield (f"{name}, stream {stream}", ["run", os.path.join(EXAMPLES, name), PROMPT],
                   {**env, "BARCHAN_STREAM": stream}, "[run_python]")
    for name, model, env in (("anthropic", "anthropic:claude-test", claude), ("openai", "openai:gpt-test", openai)):
        yield (f"ask, {name}", ["ask", "--record", os.path.join(records, name), "--model", model, PROMPT],
               env, "run_python")


def run(name, arguments, env, call):
    """Whether it prints the answer, which comes only when the result that went back has 7919 in it."""
    done = subprocess.run([PROGRAM, *arguments], env=env, capture_output=True, text=True, timeout=120,
                          stdin=subprocess.DEVNULL)
    good = done.returncode == 0 and ANSWER in done.stdout and call in done.stdout + done.stderr
    print(f"{'ok' if good else 'FAILED'} {name}")
    if not good:
        print(f"exit {done.returncode}\n{done.stdout}\n{done.stderr}")
    return good


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
    with tempfile.TemporaryDirectory() as records:
        good = [run(name, arguments, {**os.environ, **env}, call)
                for name, arguments, env, call in cases(port, records)]
        mock.stdin.close()
        mock.wait()
        # What was recorded plays without the server and without a key, as often as one likes.
        offline = {name: value for name, value in os.environ.items()
                   if not name.endswith(("_API_KEY", "_BASE_URL"))}
        for name in sorted(os.listdir(records)) * 2:
            good.append(run(f"played, {name}", ["ask", "--replay", os.path.join(records, name), PROMPT],
                            offline, "run_python"))
    print(f"{good.count(True)} passed, {good.count(False)} failed")
    return 0 if all(good) else 1


sys.exit(main())
