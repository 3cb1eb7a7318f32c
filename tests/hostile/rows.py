#!/usr/bin/env python3
"""Holds the table of README.md to the tests: each test that a row names exists. Prints the rows that are not
proven, with the reason that stands in the table.

A row whose oracle says "without its layer" has a description of that layer in layers/, which has to fit the code.

A row's tests are "file: case, case; file: case", where a case may end with \\* and words in parentheses are for
the reader. What a file's name stands for is in PLACES."""
import glob
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "layers"))
from layers import LAYERS, fault_of  # noqa: E402

TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
PLACES = {  # by the heading that the rows stand under; "" for all
    "": {
        "probe": "hostile/probe_*.c", "hostile": "hostile/hostile_test.c", "storm": "hostile/storm_test.c",
        "resources": "hostile/resources_test.c", "posture_test": "hostile/posture_test.c",
        "network": "integration/sandbox_network_test.c", "network_bulk": "integration/sandbox_network_bulk_test.c",
        "network_end": "integration/sandbox_network_end_test.c",
        "network_flow": "integration/sandbox_network_flow_test.c",
        "network_hostile": "integration/sandbox_network_hostile_test.c",
        "network_storm": "integration/sandbox_network_storm_test.c",
        "programs": "integration/test_network.py", "world": "integration/test_network_names.py",
        "secret": "integration/sandbox_secret*_test.c",
    },
    "Network": {"unit": "unit/test_egress_*.c"},
    "Secrets": {"unit": "unit/test_egress_*.c"},
    "Profiles, by the person who writes them": {"unit": "unit/test_egress_*.c"},
}
CASES = [r"START_TEST\((\w+)\)", r"PROBE\((\w+),", r"def (?:test_)?(\w+)\(", r"function \w+:(?:test_)?(\w+)\(",
         r"^static int take_(\w+)\("]


def files_of(name, heading):
    for places in (PLACES.get(heading, {}), PLACES[""]):
        if name in places:
            return glob.glob(os.path.join(TESTS, places[name]))
    patterns = [f"integration/{name}_test.c", f"unit/test_{name}.c", f"fuzz/{name}.c", f"{name}.lua"]
    return [path for pattern in patterns for path in glob.glob(os.path.join(TESTS, pattern))]


def cases_of(paths):
    found = set()
    for path in paths:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for pattern in CASES:
            found.update(re.findall(pattern, text, re.MULTILINE))
    return found


def missing_of(tests, heading):
    """What the cell names and is not there."""
    missing = []
    plain = re.sub(r"\([^()]*\)", "", tests)
    for part in filter(None, (p.strip() for p in plain.split(";"))):
        name, _, cases = part.partition(":")
        paths = files_of(name.strip(), heading)
        if not paths:
            missing.append(f"file {name.strip()}")
            continue
        known = cases_of(paths)
        for case in filter(None, (c.strip() for c in cases.split(","))):
            if case == "all":
                continue
            pattern = re.escape(case.replace("\\*", "*")).replace(r"\*", ".*")
            if not any(re.fullmatch(pattern, one) for one in known):
                missing.append(f"{name.strip()}: {case}")
    return missing


def main():
    with open(os.path.join(TESTS, "hostile", "README.md"), encoding="utf-8") as file:
        lines = file.read().splitlines()
    heading, rows, faults, counts = "", 0, [fault for fault in map(fault_of, LAYERS) if fault], {}
    with_layer = {layer.row for layer in LAYERS}
    for line in lines:
        if line.startswith("### "):
            heading = line[4:]
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not re.fullmatch(r"G\d{3}|P\d{2}", cells[0]):
            continue
        rows += 1
        row, tests, state = cells[0], cells[2], cells[3]
        faults += [f"{row}: {fault}" for fault in missing_of(tests, heading)]
        if tests == "" and not state.startswith("none"):
            faults.append(f"{row}: no test, and not 'none'")
        if ("without its layer" in cells[-1]) != (row in with_layer):
            faults.append(f"{row}: its oracle and layers/ do not say the same")
        word = re.match(r"proven|filter|seen|no oracle|part|none|refused", state)
        if word is None:
            faults.append(f"{row}: '{state}' says nothing that the table knows")
            continue
        counts[word.group()] = counts.get(word.group(), 0) + 1
        if word.group() in ("part", "none", "no oracle", "filter"):
            print(f"{row} {state}")
    print(f"{rows} rows: " + ", ".join(f"{count} {word}" for word, count in sorted(counts.items())))
    for fault in faults:
        print(f"FAULT {fault}")
    return 1 if faults or rows < 80 else 0


if __name__ == "__main__":
    sys.exit(main())
