#!/usr/bin/env python3
"""Sandboxes with a network before a world whose name service lies: names that lead to loopback, to
private and metadata addresses, to one address and then to another. On the ports of the web, with a
public address, which needs network and mount namespaces of the test's own: skipped where they are not
allowed. BARCHAN_BIN is the program."""
import contextlib
import ctypes
import http.server
import ipaddress
import json
import os
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import unittest

from network_world import make_authority
from private_world import run_inside

BIN = os.environ["BARCHAN_BIN"]
HERE = os.path.dirname(os.path.abspath(__file__))
# An ordinary user is root in the test's namespaces, and an ordinary user again for the program.
AS_USER = ["unshare", "--user", "--map-user=1000", "--map-group=1000"] if "--as-user" in sys.argv else []
PUBLIC = "11.22.33.44"
PRIVATE = ["127.0.0.1", "127.1.2.3", "0.0.0.0", "10.9.8.7", "172.16.9.9", "192.168.9.9", "169.254.169.254",
           "169.254.170.2", "100.64.9.9", "100.100.100.200", "168.63.129.16", "192.0.0.192", "192.0.2.9", "198.18.0.1",
           "198.18.1.0", "224.0.0.1", "240.0.0.1", "255.255.255.255",
           "::1", "::", "::ffff:127.0.0.1", "::ffff:10.9.8.7", "::ffff:169.254.169.254", "::7f00:1",
           "64:ff9b::7f00:1", "64:ff9b::a09:807", "2002:7f00:1::", "2002:a09:807::1", "fd00:ec2::254", "fd00::9",
           "fe80::1", "fec0::1", "ff02::1"]
PRESENT = ["127.0.0.1", "10.9.8.7", "169.254.169.254", "::1"]  # of this host, so that a canary sits there


class Names(threading.Thread):
    """The host's name service: records are a list of addresses, a name (an alias), or a function."""

    def __init__(self):
        super().__init__(daemon=True)
        self.records, self.asked = {}, []
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 53))
        self.start()

    def run(self):
        while True:
            query, client = self.socket.recvfrom(4096)
            self.socket.sendto(self.answer(query), client)

    def answer(self, query):
        at, parts = 12, []
        while query[at]:
            parts.append(query[at + 1:at + 1 + query[at]].decode())
            at += 1 + query[at]
        kind = struct.unpack(">H", query[at + 1:at + 3])[0]
        name, records = ".".join(parts).lower(), []
        self.asked.append(name)
        found = self.records.get(name)
        if callable(found):
            found = found(kind)
        if isinstance(found, str):
            alias = b"".join(bytes([len(part)]) + part.encode() for part in found.split(".")) + b"\0"
            records.append(b"\xc0\x0c" + struct.pack(">HHIH", 5, 1, 0, len(alias)) + alias)
            owner, found = alias, self.records[found]
        else:
            owner = b"\xc0\x0c"
        for address in map(ipaddress.ip_address, found or []):
            if {4: 1, 6: 28}[address.version] == kind:
                records.append(owner + struct.pack(">HHIH", kind, 1, 0, len(address.packed)) + address.packed)
        flags = 0x8180 if found is not None else 0x8183
        return query[:2] + struct.pack(">5H", flags, 1, len(records), 0, 0) + query[12:at + 5] + b"".join(records)


class Web(http.server.ThreadingHTTPServer):
    """On every address of the network it is made in; knows at which each connection came in."""
    address_family, daemon_threads, allow_reuse_address = socket.AF_INET6, True, True

    def __init__(self, port, reached, context=None):
        self.context, self.reached = context, reached
        super().__init__(("::", port), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def get_request(self):
        connection, client = super().get_request()
        self.reached.append(connection.getsockname()[0].removeprefix("::ffff:"))
        connection.settimeout(20)
        if self.context is not None:
            connection = self.context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        return connection, client

    def handle_error(self, request, client_address):
        pass


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(f"served at {self.connection.getsockname()[0]}\n".encode())

    def log_message(self, *words):
        pass


GET_ALL = """
import sys, urllib.request, urllib.error
for url in sys.argv[1:]:
    try:
        print(url, urllib.request.urlopen(url, timeout=20).read().decode().strip())
    except urllib.error.HTTPError as error:
        print(url, error.code, error.read().decode().strip())
    except OSError as error:
        print(url, error)
"""
TALK = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2])), 20) as s:
    s.sendall(bytes.fromhex(sys.argv[3]))
    try: print(s.recv(100))
    except ConnectionResetError: print('reset')
"""


@contextlib.contextmanager
def beyond():
    """Sockets that are made meanwhile are in the network at the other end of the wire."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/self/ns/net") as here, open("beyond") as there:
        for file in there, here:
            if libc.setns(file.fileno(), 0x40000000) != 0:
                raise OSError(ctypes.get_errno(), "setns")
            if file is there:
                yield


class LyingNames(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        make_authority(cls.folder.name)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(f"{cls.folder.name}/server.pem", f"{cls.folder.name}/server.key")
        with open(f"{cls.folder.name}/ca.pem") as file:
            cls.authority = file.read()
        cls.names, cls.reached = Names(), []
        servers = [(80, cls.reached), (443, [], context)]
        here = [Web(*server) for server in servers]
        with beyond():
            cls.servers = here + [Web(*server) for server in servers]

    def setUp(self):
        self.names.records = {"allowed.example": [PUBLIC]}
        for seen in self.names.asked, self.reached:
            seen.clear()

    def inside(self, network, *words, env=None):
        job = {"network": network, "files": {"get.py": GET_ALL, "talk.py": TALK, "ca.pem": self.authority},
               "command": " ".join(f"'{word}'" for word in words), "env": env or {}}
        done = subprocess.run([*AS_USER, BIN, "run", os.path.join(HERE, "network_job.lua")], input=json.dumps(job).encode(),
                              capture_output=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return {"denied": [], **json.loads(done.stdout)}

    def get(self, network, *urls):
        done = self.inside(network, "python3", "get.py", *urls, env={"SSL_CERT_FILE": "/workspace/ca.pem"})
        lines = done["out"].splitlines()
        self.assertEqual(len(lines), len(urls), done)
        return [line.split(" ", 1)[1] for line in lines], done

    def test_the_web_at_its_own_ports(self):
        for network in "open", {"allow": ["allowed.example"]}:
            lines, done = self.get(network, "http://allowed.example/", "https://allowed.example/", "http://ALLOWED.example/")
            self.assertEqual(lines, [f"served at ::ffff:{PUBLIC}"] * 3, done)
            self.assertEqual(done["denied"], [])

    def test_names_that_are_not_allowed_are_never_asked_for(self):
        others = ["secret-data.example", "evil-allowed.example", "xallowed.example", "allowed.example.evil",
                  "sub.allowed.example", "allowed.examples", "127.0.0.1.allowed.example"]
        for name in others:
            self.names.records[name] = [PUBLIC]
        lines, done = self.get({"allow": ["allowed.example"]}, *[f"http://{name}/" for name in others],
                               "http://allowed.example/")
        for line in lines[:-1]:
            self.assertIn("403 This sandbox may not reach", line)
        self.assertIn("served", lines[-1])
        self.assertEqual(set(self.names.asked), {"allowed.example"})
        self.assertEqual({d["host"] for d in done["denied"]}, set(others))
        # The oracle: allowed, it is asked for.
        self.get({"allow": [others[0]]}, f"http://{others[0]}/")
        self.assertIn(others[0], self.names.asked)

    def test_addresses_that_are_not_public(self):
        hosts = {f"n{i}.lies.example": address for i, address in enumerate(PRIVATE)}
        self.names.records.update({name: [address] for name, address in hosts.items()})
        named = ["*.lies.example", "allowed.example"]
        for network in "open", {"mode": "restricted", "allow": named}, {"allow": [*named, f"{PUBLIC}:80"]}:
            lines, done = self.get(network, *[f"http://{name}/" for name in hosts], "http://allowed.example/")
            for address, line in zip(PRIVATE, lines):
                self.assertIn("403 This sandbox may not reach", line, address)
                if ":" not in address:
                    self.assertIn(f" address {address} of n", line)
            self.assertIn("served", lines[-1], network)
            self.assertEqual(set(self.reached), {PUBLIC}, network)
        # The oracle: an entry that names the address reaches what is there.
        for address in PRESENT:
            entry = f"[{address}]:80" if ":" in address else f"{address}:80"
            name = next(name for name, a in hosts.items() if a == address)
            lines, done = self.get({"allow": [name, entry]}, f"http://{name}/")
            self.assertIn("served at", lines[0], address)
            self.assertIn(address, self.reached)

    def test_the_better_of_two_addresses_is_taken(self):
        for i, addresses in enumerate([["127.0.0.1", PUBLIC], [PUBLIC, "10.9.8.7"], ["::1", "127.0.0.1", PUBLIC]]):
            self.names.records[f"two{i}.example"] = addresses
            lines, _ = self.get("open", f"http://two{i}.example/")
            self.assertEqual(lines, [f"served at ::ffff:{PUBLIC}"])
        self.names.records["alias.example"] = "inner.example"
        self.names.records["inner.example"] = ["10.9.8.7"]
        lines, _ = self.get("open", "http://alias.example/")
        self.assertIn("private address 10.9.8.7 of alias.example", lines[0])
        self.names.records["inner.example"] = [PUBLIC]
        lines, _ = self.get({"allow": ["alias.example"]}, "http://alias.example/")
        self.assertEqual(lines, [f"served at ::ffff:{PUBLIC}"])
        self.assertEqual(set(self.reached), {PUBLIC})

    def test_a_name_that_leads_elsewhere_the_second_time(self):
        turns = iter([[PUBLIC]] + [["127.0.0.1"]] * 100)
        self.names.records["turns.example"] = lambda kind: next(turns) if kind == 1 else []
        lines, done = self.get("open", *["http://turns.example/"] * 3)
        self.assertEqual(lines[0], f"served at ::ffff:{PUBLIC}")
        for line in lines[1:]:
            self.assertIn("403", line)
            self.assertIn("loopback address 127.0.0.1 of turns.example", line)
        self.assertEqual(self.reached, [PUBLIC])

    def test_names_that_do_not_resolve_fail_readably(self):
        lines, done = self.get("open", "http://nowhere.example/", "http://allowed.example/")
        self.assertIn("502 This sandbox could not reach nowhere.example:80: look up the name", lines[0])
        self.assertIn("served", lines[1])

    def test_numbers_lead_nowhere(self):
        spelt = ["127.0.0.1", "127.1", "2130706433", "0x7f.1", "0177.0.0.1", "0", "0.0.0.0", "[::]", "[::1]",
                 "[::ffff:127.0.0.1]", "[::7f00:1]", "localhost", "localhost.", "foo.localhost", PUBLIC, "10.9.8.7",
                 "169.254.169.254", f"[::ffff:{PUBLIC}]"]
        lines, done = self.get("open", *[f"http://{host}/" for host in spelt])
        for host, line in zip(spelt, lines):
            self.assertNotIn("served", line, host)
        self.assertEqual(self.reached, [])
        for host in "127.0.0.1", PUBLIC, "10.9.8.7", "localhost":  # the oracle: the host reaches them
            with socket.create_connection((host, 80), 5) as s:
                s.sendall(b"GET / HTTP/1.0\r\n\r\n")
                self.assertIn(b"200", s.recv(100))
        self.assertEqual(len(self.reached), 4)

    def test_the_ports_of_the_web_are_for_the_web(self):
        hello = "16030100050100000100"
        bad = [(443, b"SSH-2.0-x\r\n".hex(), "port 443 is for TLS only"),
               (443, b"GET / HTTP/1.1\r\nHost: allowed.example\r\n\r\n".hex(), "port 443 is for TLS only"),
               (80, hello, "port 80 is for HTTP only"), (80, b"\0\1\2\3".hex(), "port 80 is for HTTP only"),
               (80, b"ODD / HTTP/1.1\r\nHost: other.example\r\n\r\n".hex(), "another host: other.example"),
               (80, b" GET / HTTP/1.1\r\nHost: other.example\r\n\r\n".hex(), "port 80 is for HTTP only")]
        for port, words, rule in bad:
            done = self.inside("open", "python3", "talk.py", "allowed.example", str(port), words)
            self.assertNotIn("200", done["out"])
            self.assertEqual(len(done["denied"]), 1, (words, done))
            self.assertIn(rule, done["denied"][0]["rule"])
        done = self.inside("open", "python3", "talk.py", "allowed.example", "80",
                           b"ODD / HTTP/1.1\r\nHost: allowed.example\r\n\r\n".hex())
        self.assertEqual(done["denied"], [])
        self.assertIn("501", done["out"])  # it is the server that knows no such method


def inside_namespaces():
    """Private addresses are this host's; the public one is at the other end of a wire."""
    open("beyond", "w").close()
    subprocess.run(["sh", "-ec", """
        ip link set lo up; ip addr add 10.9.8.7/32 dev lo; ip addr add 169.254.169.254/32 dev lo
        unshare --net=beyond true
        ip link add wire type veth peer name end; ip addr add 11.22.33.1/24 dev wire; ip link set wire up"""], check=True)
    with subprocess.Popen(["nsenter", "--net=beyond", "sh", "-c", "echo; read -r line"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as there:
        there.stdout.readline()
        subprocess.run(["ip", "link", "set", "end", "netns", str(there.pid)], check=True)
        there.stdin.close()
    subprocess.run(["nsenter", "--net=beyond", "sh", "-ec",
                    f"ip addr add {PUBLIC}/24 dev end; ip link set end up; ip link set lo up"], check=True)
    with open("resolv.conf", "w") as file:
        file.write("nameserver 127.0.0.1\noptions timeout:2 attempts:1\n")
    with open("nsswitch.conf", "w") as file:
        file.write("hosts: files dns\n")
    for name in ("resolv.conf", "nsswitch.conf"):
        subprocess.run(["mount", "--bind", name, "/etc/" + name], check=True)
    unittest.main(argv=[sys.argv[0], *[word for word in sys.argv[2:] if word != "--as-user"]], verbosity=2)


def main():
    if sys.argv[1:2] == ["--inside"]:
        return inside_namespaces()
    root = os.geteuid() == 0
    return run_inside(__file__, sys.argv[1:] + ([] if root else ["--as-user"]), as_root=root)


sys.exit(main())
