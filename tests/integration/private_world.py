"""Runs a test in a network and a view of files of its own, where it may say what the machine's name service is."""
import os
import subprocess
import sys
import tempfile

SKIPPED = 77
PROBE = ["sh", "-c", "ip link set lo up && mount --bind /etc/hostname /etc/resolv.conf"]


def run_inside(script, words, as_root=False):
    """The script again with --inside and these words, in an empty folder; its exit code, or SKIPPED with the reason.
    `as_root`: it is the machine's root that runs it, not one of a user namespace."""
    namespaces = ["unshare", "--mount", "--net"] + ([] if as_root else ["--map-root-user"])
    with tempfile.TemporaryDirectory() as folder:
        try:
            test = subprocess.run(namespaces + PROBE, capture_output=True, text=True, cwd=folder)
        except OSError as error:
            print(f"SKIP {error}")
            return SKIPPED
        if test.returncode != 0:
            print("SKIP namespaces are not allowed here: " + test.stderr.strip())
            return SKIPPED
        command = [*namespaces, sys.executable, os.path.abspath(script), "--inside", *words]
        return subprocess.run(command, cwd=folder).returncode
