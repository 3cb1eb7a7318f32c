"""Runs inside a sandbox with a network, and for its oracle as the root of a network namespace of its own:
tries to change the network. Arguments: port of served.example, and what to try. Prints a line for each:
its name, and done or denied."""
import ctypes
import fcntl
import socket
import struct
import sys

PORT = int(sys.argv[1])
LO = b"lo".ljust(16, b"\0")


def name_of(address, port=0):
    return struct.pack("=H", socket.AF_INET) + struct.pack(">H", port) + socket.inet_aton(address) + bytes(8)


def ioctl(number, data):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, number, data)


def netlink():
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as s:
        body = struct.pack("=BBBBI", socket.AF_INET, 32, 0, 0, 1)
        body += struct.pack("=HH4s", 8, 2, socket.inet_aton("10.9.9.9"))
        s.send(struct.pack("=IHHII", 16 + len(body), 20, 0x605, 1, 0) + body)
        error = struct.unpack("=i", s.recv(4096)[16:20])[0]
        if error:
            raise OSError(-error, "netlink")


def route():
    device = ctypes.create_string_buffer(b"lo")
    ioctl(0x890B, bytes(8) + name_of("10.9.0.0") + name_of("0.0.0.0") + name_of("255.255.0.0") +
          struct.pack("@HhLPhPLLH", 1, 0, 0, 0, 0, ctypes.addressof(device), 0, 0, 0))


def option(level, number, value):
    with socket.socket() as s:
        s.setsockopt(level, number, value)


def take(address, port, kind=socket.SOCK_STREAM):
    """With everything that a socket may ask for to share a port."""
    with socket.socket(socket.AF_INET, kind) as s:
        for number in socket.SO_REUSEADDR, socket.SO_REUSEPORT:
            s.setsockopt(socket.SOL_SOCKET, number, 1)
        s.bind((address, port))
        if kind == socket.SOCK_STREAM:
            s.listen()


def raw(*words):
    socket.socket(*words).close()


CHANGES = {
    "address": lambda: ioctl(0x8916, LO + name_of("10.9.9.9")),
    "down": lambda: ioctl(0x8914, LO + struct.pack("=H", 0) + bytes(22)),
    "mtu": lambda: ioctl(0x8922, LO + struct.pack("=i", 1000) + bytes(20)),
    "route": route,
    "netlink": netlink,
    "raw_icmp": lambda: raw(socket.AF_INET, socket.SOCK_RAW, 1),
    "raw_tcp": lambda: raw(socket.AF_INET, socket.SOCK_RAW, 6),
    "raw_ipv6": lambda: raw(socket.AF_INET6, socket.SOCK_RAW, 58),
    "packets": lambda: raw(socket.AF_PACKET, socket.SOCK_RAW, 0),
    "transparent": lambda: option(socket.SOL_IP, 19, 1),
    "mark": lambda: option(socket.SOL_SOCKET, 36, 1),
    "priority": lambda: option(socket.SOL_SOCKET, 12, 7),
}
PLACES = {
    "everywhere": lambda: take("0.0.0.0", PORT),
    "loopback": lambda: take("127.0.0.1", PORT),
    "web": lambda: take("0.0.0.0", 443),
    "web_of_loopback": lambda: take("127.0.0.1", 80),
    "service": lambda: take("127.0.0.1" if "oracle" in sys.argv else "198.18.0.1", 53, socket.SOCK_DGRAM),
    "a_name": lambda: take("127.0.0.1" if "oracle" in sys.argv else "198.18.1.0", PORT),
}


def own():
    """A server of its own at another port."""
    for address in "127.0.0.1", "0.0.0.0", "::1", "::":
        with socket.create_server((address, 8099), family=socket.AF_INET6 if ":" in address else socket.AF_INET) as s:
            with socket.create_connection(("::1" if ":" in address else "127.0.0.1", 8099), 5):
                s.accept()[0].close()


def servers(base, abstract):
    """Those of another sandbox, and of the host."""
    for i, address in enumerate(("127.0.0.1", "127.0.0.1", "198.18.1.0")):
        with socket.socket() as s:
            s.settimeout(5)
            yield f"server_{i}", lambda s=s, to=(address, base + i): s.connect(to)
    for name in abstract:
        with socket.socket(socket.AF_UNIX) as s:
            yield name, lambda s=s, to="\0" + name: s.connect(to)


def main():
    words = [word for word in sys.argv[2:] if word != "oracle"]
    if words[0] == "servers":
        tries = servers(int(words[1]), words[2:])
    else:
        tries = {"changes": CHANGES, "places": PLACES, "own": {"own": own}}[words[0]].items()
    for name, attempt in tries:
        if "oracle" in sys.argv and name == "down":
            continue  # the rest needs it; to be up is of the same kind
        try:
            attempt()
            print(name, "done")
        except OSError:
            print(name, "denied")


main()
