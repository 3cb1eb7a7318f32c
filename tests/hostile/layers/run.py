#!/usr/bin/env python3
"""Takes a layer out of Barchan, builds, and runs the test that watches over it: the test has to fail.

    run.py [ROW…] [--list]     all rows, or those named

A copy of the tree is changed, in build/layers; it is built once, later only what a layer touches. Where it may,
the tests run with processes, queues, /run and /tmp of their own, for what they then let through is let loose."""
import argparse
import os
import re
import shutil
import subprocess
import sys
import time

from layers import LAYERS, TOP

PLACE = os.path.join(TOP, "build", "layers")
SOURCE = os.path.join(PLACE, "source")
BUILD = os.path.join(PLACE, "build")
TIMEOUT_SECONDS = 180
ALONE = ["unshare", "--mount", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c",
         "mount -t tmpfs tmpfs /run && mount -t tmpfs -o mode=1777 tmpfs /tmp && exec \"$@\"", "sh"]
FAILURES = [r":[FE]:[^:\n]*:(\w+):\d+:", r"^(?:FAIL|ERROR): (?:test_)?(\w+)", r"^\d+\) \w+\.(?:test_)?(\w+)$"]


def done(command, **options):
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False, errors="replace", **options)


def must(command, **options):
    ended = done(command, **options)
    if ended.returncode != 0:
        sys.exit(f"{' '.join(command)}:\n{ended.stdout[-4000:]}")
    return ended.stdout


def copy_tree():
    """The files of the tree as they are; those that have not changed keep their time, so nothing is built anew."""
    for name in must(["git", "-C", TOP, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]).split("\0"):
        here, there = os.path.join(TOP, name), os.path.join(SOURCE, name)
        if not os.path.isfile(here):
            continue
        os.makedirs(os.path.dirname(there), exist_ok=True)
        if not os.path.exists(there) or read(here) != read(there):
            shutil.copy(here, there)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def commands():
    """ctest's name -> the command's words."""
    found = {}
    for folder, _, names in os.walk(BUILD):
        if "CTestTestfile.cmake" in names:
            text = read(os.path.join(folder, "CTestTestfile.cmake")).decode()
            for name, words in re.findall(r'^add_test\(\[=\[(.*?)\]=\] (.*)\)$', text, re.MULTILINE):
                found[name] = re.findall(r'"(.*?)"', words)
    return found


def targets_of(command):
    """What ninja has to make for it: its program, or for a script the command barchan."""
    made = [os.path.relpath(word, BUILD) for word in command if word.startswith(BUILD + "/")]
    return made + ([] if made and not made[0].endswith(".py") else ["barchan"])


def change(layer):
    for name, was, becomes in layer.edits:
        path = os.path.join(SOURCE, name)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace(was, becomes))


def restore(layer):
    for name, _, _ in layer.edits:
        shutil.copy(os.path.join(TOP, name), os.path.join(SOURCE, name))


def fault_of(layer, command, alone):
    """None when the test fails as it should without the layer; else what happened."""
    change(layer)
    try:
        built = done(["ninja", "-C", BUILD, *targets_of(command)])
        if built.returncode != 0:
            return "does not build:\n" + built.stdout[-3000:]
        ended = done([*alone, "ctest", "--test-dir", BUILD, "--timeout", str(TIMEOUT_SECONDS), "--output-on-failure",
                      "--test-output-size-failed", "1000000", "-R", f"^{re.escape(layer.test)}$"])
    finally:
        restore(layer)
    failed = {name for pattern in FAILURES for name in re.findall(pattern, ended.stdout, re.MULTILINE)}
    missed = [case for case in layer.cases if case not in failed]
    if ended.returncode != 0 and not missed:
        return None
    return f"passes without it: {', '.join(missed)} (failed: {', '.join(sorted(failed)) or 'nothing'})\n" \
        + ended.stdout[-1500:]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", nargs="*")
    parser.add_argument("--list", action="store_true", help="says what would be done")
    parser.add_argument("--if-long", action="store_true", help="only with BARCHAN_LONG, as the tests do")
    options = parser.parse_args()
    if options.if_long and "BARCHAN_LONG" not in os.environ:
        print("SKIP only with --long: it builds again for each layer")
        return 77
    for name in ("BARCHAN_LONG", "CK_TIMEOUT_MULTIPLIER"):  # of all the tests; these run as they usually do
        os.environ.pop(name, None)
    chosen = [layer for layer in LAYERS if not options.rows or layer.row in options.rows]
    if options.list or not chosen:
        for layer in chosen:
            print(f"{layer.row} {layer.test}: {', '.join(layer.cases)}: {layer.what}")
        return 0 if chosen else f"no such row: {' '.join(options.rows)}"
    copy_tree()
    must(["cmake", "-G", "Ninja", "-S", SOURCE, "-B", BUILD, "-DBARCHAN_TESTS=ON", "-DBARCHAN_EXAMPLES=ON"])
    known = commands()
    alone = ALONE if done([*ALONE, "true"]).returncode == 0 else []
    faults = 0
    for layer in chosen:
        began = time.monotonic()
        fault = fault_of(layer, known[layer.test], alone) if layer.test in known else f"no test {layer.test}"
        faults += fault is not None
        print(f"{layer.row} {'ok' if fault is None else 'FAULT'} {time.monotonic() - began:.0f} s: {layer.what}: "
              + (fault or f"{', '.join(layer.cases)} fails without it"), flush=True)
    print(f"{len(chosen)} layers taken out, {len(chosen) - faults} noticed by their tests")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
