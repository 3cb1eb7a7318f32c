"""The program `barchan`, run as a person at a shell runs it. BARCHAN_BIN is the program."""
import os
import subprocess

BIN = os.environ["BARCHAN_BIN"]
EXAMPLES = os.path.join(os.path.dirname(__file__), "../../examples")
CLEAN = {k: v for k, v in os.environ.items() if not k.endswith(("_API_KEY", "_BASE_URL"))}


def barchan(*args, stdin=b"", env=None, timeout=60, cwd=None):
    return subprocess.run([BIN, *args], input=stdin, capture_output=True, timeout=timeout,
                          env={**CLEAN, **(env or {})}, cwd=cwd)
