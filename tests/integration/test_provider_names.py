#!/usr/bin/env python3
"""Names that do not resolve, resolve to a thousand addresses, or to one that swallows everything: an answer or a
clear error, within seconds.

Arguments: the provider_tls program, the folder of the servers. It runs in network and mount namespaces of its own
with a name server of ours. Skipped where namespaces are not allowed.
"""
import os
import socket
import struct
import subprocess
import sys
import threading
import time

from private_world import SKIPPED, run_inside
NXDOMAIN, SERVFAIL = 3, 2
A, AAAA = 1, 28
HERE = b"\x7f\0\0\1"
# Loopback addresses where nothing listens, before the one where something does.
MANY = [b"\x7f\1" + struct.pack("!H", n + 1) for n in range(999)] + [HERE]
SWALLOWS = socket.inet_pton(socket.AF_INET6, "2001:db8::1")
NAMES = {
    "good.example": {A: [HERE]},
    "many.example": {A: MANY},
    "swallowed.example": {A: [HERE], AAAA: [SWALLOWS]},
    "nowhere.example": NXDOMAIN,
    "broken.example": SERVFAIL,
}


def answer(query, room):
    end, labels = 12, []
    while query[end]:
        labels.append(query[end + 1:end + 1 + query[end]].decode().lower())
        end += 1 + query[end]
    kind = struct.unpack("!H", query[end + 1:end + 3])[0]
    known = NAMES.get(".".join(labels), NXDOMAIN)
    code, found = (known, []) if isinstance(known, int) else (0, known.get(kind, []))
    records = b"".join(b"\xc0\x0c" + struct.pack("!HHIH", kind, 1, 60, len(a)) + a for a in found)
    question, cut = query[12:end + 5], 0
    if 12 + len(question) + len(records) > room:
        records, found, cut = b"", [], 0x0200
    return query[:2] + struct.pack("!HHHHH", 0x8180 | cut | code, 1, len(found), 0, 0) + question + records


def serve_names():
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    tcp = socket.socket()
    for server in (udp, tcp):
        server.bind(("127.0.0.1", 53))
    tcp.listen(64)

    def datagrams():
        while True:
            query, peer = udp.recvfrom(4096)
            udp.sendto(answer(query, 512), peer)

    def streams():
        while True:
            peer, _ = tcp.accept()
            with peer:
                while len(head := peer.recv(2, socket.MSG_WAITALL)) == 2:
                    query = peer.recv(struct.unpack("!H", head)[0], socket.MSG_WAITALL)
                    reply = answer(query, 65535)
                    peer.sendall(struct.pack("!H", len(reply)) + reply)

    for work in (datagrams, streams):
        threading.Thread(target=work, daemon=True).start()


def swallow(port):
    """At 2001:db8::1 connections hang: what is sent there goes to a device that is nobody's. Whether it is so."""
    for words in ("link add hole type veth peer name nobody", "link set hole up", "link set nobody up",
                  "-6 addr add 2001:db8::2/64 dev hole nodad",
                  "-6 neigh add 2001:db8::1 lladdr 02:00:00:00:00:01 dev hole"):
        if subprocess.run(["ip", *words.split()], capture_output=True).returncode:
            return False
    try:
        socket.create_connection(("2001:db8::1", port), timeout=1).close()
    except TimeoutError:
        return True
    except OSError:
        pass
    return False


def inside(program, support):
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    serve_names()
    for name, text in (("resolv.conf", "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n"),
                       ("nsswitch.conf", "hosts: files dns\n")):
        with open(name, "w") as file:
            file.write(text)
        subprocess.run(["mount", "--bind", name, "/etc/" + name], check=True)
    if socket.gethostbyname("good.example") != "127.0.0.1":
        print("SKIP no oracle: names are not looked up at our server")
        return SKIPPED
    server = subprocess.Popen([sys.executable, os.path.join(support, "byte_server.py")], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    port = server.stdout.readline().strip()
    cases = [("good.example", "ok "), ("many.example", "ok "), ("nowhere.example", "error network"),
             ("broken.example", "error network")]
    if swallow(int(port)):
        cases.append(("swallowed.example", "ok "))
    else:
        print("SKIP no address here swallows what is sent to it")
    failed = 0
    for host, wanted in cases:
        began = time.monotonic()
        said = subprocess.run([program, f"http://{host}:{port}/ok", "1"], capture_output=True, text=True,
                              timeout=60).stdout.strip()
        took = time.monotonic() - began
        fine = said.startswith(wanted) and took < 15
        failed += not fine
        print("ok" if fine else "FAILED", host, f"{took:.1f} s", said)
    server.stdin.close()
    return 1 if failed else 0


def main():
    if sys.argv[1] == "--inside":
        return inside(*sys.argv[2:4])
    return run_inside(__file__, map(os.path.abspath, sys.argv[1:3]))


sys.exit(main())
