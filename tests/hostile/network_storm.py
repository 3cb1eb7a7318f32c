"""Runs inside a sandbox: takes its network as far as it goes. Arguments: port of served.example, the
case, and its number. Prints what the host expects, then may wait to be killed."""
import os
import socket
import struct
import sys
import threading
import time

PORT, CASE, COUNT = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
WHERE = (socket.gethostbyname("served.example"), PORT)
RESET = struct.pack("ii", 1, 0)


def connect(timeout=30):
    return socket.create_connection(WHERE, timeout)


def say(words):
    print(words, flush=True)


def half_open():
    """Connections that say nothing, more than are accepted at a time."""
    held = [connect() for _ in range(COUNT)]
    say("up")
    time.sleep(1000)
    del held


def dribble():
    """Requests that come a byte at a time and never end."""
    held = [connect() for _ in range(COUNT)]
    say("up")
    text = b"GET / HTTP/1.1\r\nHost: served.example\r\nA: " + b"a" * 4000
    for byte in text:
        for s in held:
            s.send(bytes([byte]))
        time.sleep(0.02)


def resets():
    """Connections that end with a reset in whatever state they are."""
    words = [b"", b"G", b"\x16\x03", b"GET / HTTP/1.1\r\nHost: other.example\r\n\r\n", b"hello" * 1000]
    for i in range(COUNT):
        s = connect()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        if words[i % 5]:
            s.send(words[i % 5])
        if i % 3 == 0:
            s.settimeout(0.001)
            try:
                s.recv(1)
            except OSError:
                pass
        s.close()
    s = connect()
    s.sendall(b"hello")
    say("echo" if s.recv(5) == b"hello" else "broken")


def never_reads():
    """A server sends without end; nobody takes it."""
    held = [connect() for _ in range(COUNT)]
    for s in held:
        s.sendall(b"100000000000\n")
    say("up")
    time.sleep(1000)


def never_read():
    """A server takes nothing; as much is sent as goes in."""
    held = [connect() for _ in range(COUNT)]
    for s in held:
        s.setblocking(False)
    last = time.monotonic()
    while time.monotonic() - last < 0.7:
        for s in held:
            try:
                s.send(bytes(65536))
                last = time.monotonic()
            except BlockingIOError:
                pass
        time.sleep(0.001)
    say("up")
    time.sleep(1000)


def killed():
    """Children that are killed in the middle of both directions."""
    for _ in range(COUNT):
        pid = os.fork()
        if pid == 0:
            s = connect()
            threading.Thread(target=lambda: [s.sendall(bytes(65536)) for _ in range(1 << 20)], daemon=True).start()
            while s.recv(65536):
                pass
            os._exit(0)
        time.sleep(0.05)
        os.kill(pid, 9)
        os.waitpid(pid, 0)
    say("killed")


def many():
    """All at once, each of them used twice."""
    held = [connect() for _ in range(COUNT)]
    good = 0
    for turn in range(2):
        for i, s in enumerate(held):
            s.sendall(b"number %6d" % (i + turn))
        for s in held:
            s.settimeout(None)  # waiting for all of it needs a socket that blocks
        good += sum(s.recv(13, socket.MSG_WAITALL) == b"number %6d" % (i + turn) for i, s in enumerate(held))
    say(f"{good} of {2 * COUNT}")
    sys.stdin.read()
    del held


def listen():
    """Servers of a sandbox of its own, for another one to look for."""
    held = []
    for at in ("127.0.0.1", "0.0.0.0", "198.18.1.0"):
        s = socket.socket()
        s.bind((at, COUNT + len(held)))
        s.listen()
        held.append(s)
    s = socket.socket(socket.AF_UNIX)
    s.bind("\0barchan-test")
    s.listen()
    held.append(s)
    for s in held:  # by itself they are reached
        socket.socket(s.family).connect(s.getsockname())
    say("up")
    time.sleep(1000)


def queries():
    """Asks the name service without end, and reads no answer."""
    question = struct.pack(">6H", 1, 0x100, 1, 0, 0, 0) + b"\1a\7example\0" + struct.pack(">HH", 1, 1)
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.connect(("198.18.0.1", 53))
    say("up")
    while True:
        s.send(question)


def hosts():
    """Connects to many hosts, each once."""
    for i in range(COUNT):
        s = socket.create_connection((f"h{i}.example", 80), 30)
        s.sendall(f"GET / HTTP/1.1\r\nHost: h{i}.example\r\n\r\n".encode())
        while s.recv(4096):
            pass
        s.close()
    say("done")


{name: f for name, f in list(globals().items()) if callable(f) and name not in ("connect", "say")}[CASE]()
