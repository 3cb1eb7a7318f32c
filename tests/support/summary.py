#!/usr/bin/env python3
"""Adds up what the test programs of ctest's runs reported.

Reads its JUnit files and, in each program's output, the closing lines of libcheck, luaunit,
unittest, or a plain "N passed, N failed, N skipped". Names each test that was skipped, with its reason, and
prints one such line; fails when a test failed or a program ended badly without saying which test did.
"""
import re
import sys
import xml.etree.ElementTree as ET


def count(text):
    """(passed, failed, skipped) of one program's output."""
    passed = failed = skipped = 0
    for m in re.finditer(r"^\d+%: Checks: (\d+), Failures: (\d+), Errors: (\d+)", text, re.M):
        bad = int(m[2]) + int(m[3])
        passed += int(m[1]) - bad
        failed += bad
    for m in re.finditer(r"^Ran (\d+) tests? in [^\n]*?(\d+) success(?:es)?, (\d+) failures?"
                         r"(?:, (\d+) errors?)?(?:, (\d+) skipped)?", text, re.M):
        passed += int(m[2])
        failed += int(m[3]) + int(m[4] or 0)
        skipped += int(m[5] or 0)
    for m in re.finditer(r"^Ran (\d+) tests? in [\d.]+s\n\n(OK|FAILED)(?: \(([^)]*)\))?", text, re.M):
        words = dict(re.findall(r"(\w+)=(\d+)", m[3] or ""))
        bad = int(words.get("failures", 0)) + int(words.get("errors", 0))
        left = int(words.get("skipped", 0))
        passed += int(m[1]) - bad - left
        failed += bad
        skipped += left
    for m in re.finditer(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", text, re.M):
        passed += int(m[1])
        failed += int(m[2])
        skipped += int(m[3] or 0)
    # A libcheck test that cannot run here counts itself and says why.
    marks = len(re.findall(r"^SKIP\b", text, re.M))
    return passed - marks, failed, skipped + marks


def skips(case, text):
    """A line for each test that was skipped: its name, where it has one, and why."""
    lines = re.findall(r"^SKIP\b.*", text, re.M)
    name = "?"
    for line in text.splitlines():  # unittest; what a test prints may stand before the word
        begin = re.match(r" *(\w+) \([^)]*\)", line)
        name = begin[1] if begin else name
        end = re.search(r"\bskipped (['\"])(.*)\1$", line)
        if end:
            lines.append(f"SKIP {name}: {end[2]}")
    for m in re.finditer(r"^ +(\S+) \.\.\. SKIP\n(.*)$", text, re.M):  # luaunit
        lines.append(f"SKIP {m[1]}: {m[2]}")
    if not lines and case.get("status") == "notrun":
        skipped = case.find("skipped")
        lines.append(f"SKIP not run: {skipped.get('message') if skipped is not None else 'ctest does not say why'}")
    return lines


def main(paths):
    total = [0, 0, 0]
    for case in (case for path in paths for case in ET.parse(path).getroot().iter("testcase")):
        text = "".join(case.itertext())
        numbers = count(text)
        status = case.get("status")
        if status not in ("run", "notrun") and numbers[1] == 0:
            numbers = (numbers[0], 1, numbers[2])
        elif status == "notrun":
            numbers = (0, 0, 1)
        elif sum(numbers) == 0:
            numbers = (1, 0, 0)
        lines = skips(case, text)
        if len(lines) < numbers[2]:
            lines.append(f"SKIP {numbers[2] - len(lines)} more, without a reason")
        for line in lines:
            print(f"{case.get('name')}: {line}")
        for i, n in enumerate(numbers):
            total[i] += n
    print(f"{total[0]} passed, {total[1]} failed, {total[2]} skipped")
    return 1 if total[1] > 0 or total[0] == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
