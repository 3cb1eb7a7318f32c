#!/usr/bin/env python3
"""A real `pip install` and `npm install` under `restricted`, from the registries that this machine's own
package managers use. The only test that leaves the machine: one of the long ones, and where the same works
outside of a sandbox. BARCHAN_BIN is the program."""
import ipaddress
import json
import os
import socket
import subprocess
import tempfile
import unittest

BIN = os.environ["BARCHAN_BIN"]
LOCAL = ("PIP_FIND_LINKS", "PIP_NO_INDEX")  # settings for packages that are not a registry's
OUTSIDE = {k: v for k, v in os.environ.items() if k not in LOCAL}


def addresses_to_allow():
    """Of what `restricted` allows, those that are not public: they want entries of their own."""
    done = subprocess.run([BIN, "network", "restricted", "--json"], capture_output=True, check=True)
    more = set()
    for entry in json.loads(done.stdout)["allow"]:
        host, _, port = entry.rpartition(":")
        try:
            found = {info[4][0] for info in socket.getaddrinfo(host, int(port), socket.AF_INET, socket.SOCK_STREAM)}
        except OSError:
            continue
        more |= {f"{address}:{port}" for address in found if not ipaddress.ip_address(address).is_global}
    return sorted(more)


class Registry(unittest.TestCase):
    def installs(self, command, check):
        with tempfile.TemporaryDirectory() as folder:
            outside = subprocess.run(["sh", "-c", command], cwd=folder, capture_output=True, timeout=120, env=OUTSIDE)
        if outside.returncode != 0:
            self.skipTest("this machine reaches no registry of that kind")
        allow = [word for entry in addresses_to_allow() for word in ("--allow", entry)]
        inside = [BIN, "exec", "--timeout", "120", "--", "sh", "-c", f"{command} && {check}"]
        done = subprocess.run([*inside[:2], "--network", "restricted", *allow, *inside[2:]], capture_output=True,
                              timeout=150)
        self.assertEqual(done.returncode, 0, (done.stdout, done.stderr))
        self.assertIn(b"installed and used", done.stdout)
        denied = subprocess.run(inside, capture_output=True, timeout=150)
        self.assertNotEqual(denied.returncode, 0, "it was installed without a network")

    def test_pip(self):
        self.installs("/usr/bin/python3 -m pip install -q --no-cache-dir --retries 0 --target packages six",
                      "PYTHONPATH=packages python3 -c 'import six; assert \"/packages/\" in six.__file__; "
                      "print(\"installed and used\")'")

    def test_npm(self):
        self.installs("npm install --silent --no-audit --no-fund --fetch-retries=0 is-number",
                      "node -e 'if (require(\"is-number\")(7)) console.log(\"installed and used\")'")


if __name__ == "__main__":
    unittest.main(verbosity=2)
