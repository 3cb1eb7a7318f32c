#!/usr/bin/env python3
"""What another compiler says of the sources of a build, without building them again.

    other_compiler.py clang build/tests/compile_commands.json

Each command of the build runs with that compiler, which only looks (-fsyntax-only), and whose warnings
are errors. Exit status 1 when there are any.
"""
import concurrent.futures
import json
import os
import shlex
import subprocess
import sys


def looking(compiler, entry):
    """The command of `entry` for another compiler, with no output."""
    words = shlex.split(entry["command"])
    at = words.index("-o")
    return [compiler] + words[1:at] + words[at + 2:] + ["-fsyntax-only", "-Werror"]


def main():
    if len(sys.argv) != 3:
        sys.exit(f"usage: {sys.argv[0]} COMPILER COMPILE_COMMANDS")
    compiler, path = sys.argv[1:]
    with open(path, encoding="utf-8") as file:
        entries = json.load(file)
    commands = {tuple(looking(compiler, entry)): entry["directory"] for entry in entries}

    def look(command):
        return subprocess.run(command, cwd=commands[command], stderr=subprocess.PIPE, text=True)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        complaints = [run.stderr for run in pool.map(look, commands) if run.returncode != 0]
    print(*sorted(set(complaints)), sep="", end="")
    print(f"{len(commands)} files, {len(complaints)} with warnings", file=sys.stderr)
    sys.exit(1 if complaints or not commands else 0)


main()
