#!/usr/bin/env python3
"""Ending a completion while its host's name is being resolved does not wait for the resolver.

Argument: the provider_cancel program. It runs in network and mount namespaces of its own, where the
only name server is a socket that never answers; that looking up a name hangs there is checked first.
Skipped where namespaces are not allowed.
"""
import os
import socket
import subprocess
import sys

from private_world import SKIPPED, run_inside


def inside(program):
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    hole = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    hole.bind(("127.0.0.1", 53))
    with open("resolv.conf", "w") as file:
        file.write("nameserver 127.0.0.1\noptions timeout:10 attempts:3\n")
    with open("nsswitch.conf", "w") as file:
        file.write("hosts: files dns\n")
    for name in ("resolv.conf", "nsswitch.conf"):
        subprocess.run(["mount", "--bind", name, "/etc/" + name], check=True)
    lookup = [sys.executable, "-c", "import socket; socket.getaddrinfo('no-such-host.example', 443)"]
    try:
        subprocess.run(lookup, timeout=2, capture_output=True)
        print("SKIP no oracle: looking up a name does not hang here")
        return SKIPPED
    except subprocess.TimeoutExpired:
        pass
    return subprocess.run([program]).returncode


def main():
    if sys.argv[1] == "--inside":
        return inside(sys.argv[2])
    return run_inside(__file__, [os.path.abspath(sys.argv[1])])


sys.exit(main())
