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
         "mount -t tmpfs tmpfs /run && mount -t tmpfs -o mode=1777 tmpfs /tmp && \"$@\"; exit $?", "sh"]
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
    names = must(["git", "-C", TOP, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]).split("\0")
    for folder, _, files in os.walk(SOURCE):
        for file in files:
            if os.path.relpath(os.path.join(folder, file), SOURCE) not in names:
                os.remove(os.path.join(folder, file))
    for name in names:
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


def run(name, alone):
    """Whether it ended well, the cases that failed, and what it printed."""
    ended = done([*alone, "ctest", "--test-dir", BUILD, "--timeout", str(TIMEOUT_SECONDS), "--output-on-failure",
                  "--test-output-size-failed", "1000000", "-R", f"^{re.escape(name)}$"])
    failed = {case for pattern in FAILURES for case in re.findall(pattern, ended.stdout, re.MULTILINE)}
    return ended.returncode == 0, failed, ended.stdout


def breaks_all(layer, text):
    """Nothing works any more: that shows nothing of the layer."""
    counts = re.search(r"Checks: (\d+), Failures: (\d+), Errors: (\d+)", text)
    return (counts is not None and int(counts[1]) > len(layer.cases)
            and int(counts[2]) + int(counts[3]) == int(counts[1]))


def try_without(layer, names, alone, known):
    """For each of the tests None when it fails as it should without the layer; else what happened."""
    change(layer)
    try:
        built = done(["ninja", "-C", BUILD, *sorted({made for name in names for made in targets_of(known[name])})])
        if built.returncode != 0:
            return ["does not build:\n" + built.stdout[-3000:]] * len(names)
        ran = [run(name, alone) for name in names]
    finally:
        restore(layer)
    faults = []
    for good, failed, text in ran:
        missed = [case for case in layer.cases if case not in failed]
        if good or missed:
            faults.append(f"passes without it: {', '.join(missed)} (failed: {', '.join(sorted(failed)) or 'nothing'})\n"
                          + text[-1500:])
        else:
            faults.append("nothing works without it" if breaks_all(layer, text) else None)
    return faults


def rows_of_users():
    """The rows that say that they are proven as an ordinary user as well."""
    with open(os.path.join(TOP, "tests", "hostile", "README.md"), encoding="utf-8") as file:
        cells = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in file]
    return {row[0] for row in cells if len(row) == 6 and row[4].startswith("proven")}


def tests_of(layer, known, users):
    """Its test, and that as an ordinary user where the row speaks of one."""
    twins = [layer.test + ending for ending in ("_as_user", "-as-user") if layer.test + ending in known]
    return [layer.test] + (twins if layer.row in users else [])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", nargs="*")
    parser.add_argument("--list", action="store_true", help="says what would be done")
    parser.add_argument("--if-long", action="store_true", help="only with BARCHAN_LONG, as the tests do")
    options = parser.parse_args()
    if options.if_long and ("BARCHAN_LONG" not in os.environ or os.geteuid() != 0):
        print("SKIP only with --long, as root: it builds again for each layer")
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
    must(["ninja", "-C", BUILD])
    known = commands()
    alone = ALONE if done([*ALONE, "true"]).returncode == 0 else []
    return prove(chosen, known, alone, rows_of_users())


def prove(chosen, known, alone, users):
    faults, as_user = 0, {}
    every = sorted({name for layer in chosen for name in tests_of(layer, known, users) if name in known})
    ends = {name: run(name, alone) for name in every}  # as they are, in the same surroundings
    for layer in chosen:
        began = time.monotonic()
        names = tests_of(layer, known, users)
        if layer.test not in known:
            found = [f"no test {layer.test}"]
        elif not ends[layer.test][0]:
            found = [f"{layer.test} fails with it:\n{ends[layer.test][2][-1500:]}"]
        else:
            found = try_without(layer, names, alone, known)
        faults += found[0] is not None
        proven = found[0] is None and (layer.test.startswith("unit/") or layer.test.endswith("as_user"))
        proven = proven or (len(found) > 1 and ends[names[1]][0] and found[1] is None)
        as_user[layer.row] = as_user.get(layer.row, False) or proven
        print(f"{layer.row} {'ok' if found[0] is None else 'FAULT'} {time.monotonic() - began:.0f} s: {layer.what}: "
              + (found[0] or f"{', '.join(layer.cases)} fails without it")
              + ("" if len(found) < 2 else ", as an ordinary user, too" if proven else ", not as an ordinary user"),
              flush=True)
    unproven = sorted(row for row, good in as_user.items() if row in users and not good)
    print(f"{len(chosen)} layers taken out, {len(chosen) - faults} noticed by their tests; rows that say 'proven' of "
          f"an ordinary user and are not: {', '.join(unproven) or 'none'}")
    return 1 if faults or unproven else 0


if __name__ == "__main__":
    sys.exit(main())
