#!/usr/bin/env python3
"""What tests/run.sh ends with: every test that was skipped, and why."""
import os
import re
import subprocess
import sys
import tempfile
import unittest
from xml.sax.saxutils import escape

SUMMARY = os.path.join(os.path.dirname(__file__), "../support/summary.py")

PYTHON = """
import unittest
class T(unittest.TestCase):
    def test_plain(self): self.skipTest("because of 'this'")
    @unittest.skipIf(True, "x not installed")
    def test_described(self): "What it is for."
    def test_in_part(self):
        print("said meanwhile")
        with self.subTest(kind="pip"): self.skipTest("no pip")
    def test_more(self): pass
unittest.main(verbosity=2)
"""

LUA = """Started on Tue Jan  1 00:00:00 2030
    TestX.test_a ... SKIP
no user attributes
    TestX.test_b ... Ok
=========================================================
Ran 1 tests in 0.001 seconds, 1 success, 0 failures, 1 skipped
OK
"""

CHECK = """Running suite(s): x
SKIP only root mounts
100%: Checks: 3, Failures: 0, Errors: 0
"""


def summary(*cases):
    with tempfile.NamedTemporaryFile("w", suffix=".xml") as file:
        file.write("<testsuite>" + "".join(
            f'<testcase name="{name}" status="{status}">{more}<system-out>{escape(text)}</system-out></testcase>'
            for name, status, text, more in cases) + "</testsuite>")
        file.flush()
        return subprocess.run([sys.executable, SUMMARY, file.name], capture_output=True, text=True)


class Summary(unittest.TestCase):
    def test_each_skip_is_named_with_its_reason(self):
        done = subprocess.run([sys.executable, "-c", PYTHON], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        done = summary(("a", "run", done.stdout, ""), ("b", "run", LUA, ""), ("c", "run", CHECK, ""),
                       ("d", "notrun", "", '<skipped message="SKIP_RETURN_CODE=77"/>'), ("e", "notrun", "SKIP no npm\n", ""),
                       ("f", "run", "2 passed, 0 failed, 2 skipped\n", ""))
        *lines, last = done.stdout.splitlines()
        self.assertEqual(sorted(lines), [
            "a: SKIP test_described: x not installed", "a: SKIP test_in_part: no pip", "a: SKIP test_plain: because of 'this'",
            "b: SKIP TestX.test_a: no user attributes", "c: SKIP only root mounts", "d: SKIP not run: SKIP_RETURN_CODE=77",
            "e: SKIP no npm", "f: SKIP 2 more, without a reason"])
        self.assertEqual((last, done.returncode), ("6 passed, 0 failed, 9 skipped", 0))
        skipped = sum(int(re.search(r"SKIP (\d+) more|$", line)[1] or 1) for line in lines)
        self.assertEqual(skipped, 9)

    def test_a_program_that_ends_badly_has_failed(self):
        done = summary(("a", "fail", "", ""), ("b", "run", "", ""))
        self.assertEqual((done.stdout, done.returncode), ("1 passed, 1 failed, 0 skipped\n", 1))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]], verbosity=2)
