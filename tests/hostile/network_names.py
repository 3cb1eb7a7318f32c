"""Runs inside a sandbox: speaks DNS to its name service as no resolver would, and beyond it. Arguments:
port of served.example, then names of cases. Prints a line for each: its name and its outcome."""
import socket
import struct
import sys

PORT = int(sys.argv[1])
SERVICE = ("198.18.0.1", 53)


def labels(name):
    return b"".join(bytes([len(part)]) + part for part in name.split(b".") if part) + b"\0"


def query(name, kind=1, cls=1, flags=0x0100, counts=(1, 0, 0, 0), wire=None, rest=b""):
    question = (labels(name) if wire is None else wire) + struct.pack(">HH", kind, cls)
    return struct.pack(">6H", 0x1234, flags, *counts) + question + rest


def ask(data, to=SERVICE, wait=1.0):
    """(rcode, answers) or None."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(wait)
        s.connect(to)
        s.send(data)
        try:
            answer = s.recv(65536)
        except OSError:
            return None
    assert answer[:2] == data[:2] and answer[2] & 0x80
    return answer[3] & 15, struct.unpack(">H", answer[6:8])[0]


def address(name):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(10)
        s.connect(SERVICE)
        s.send(query(name.encode()))
        answer = s.recv(512)
        return socket.inet_ntoa(answer[-4:]) if struct.unpack(">H", answer[6:8])[0] == 1 else None


def outcome(answer):
    if answer is None:
        return "silence"
    return {(0, 1): "address", (0, 0): "nothing"}.get(answer, "error")


FINE = {"plain": query(b"served.example"), "in_capitals": query(b"SERVED.example"),
        "unknown": query(b"whatever.example"), "under_score": query(b"_a.example"),
        "longest_label": query(b"a" * 63 + b".example"), "with_edns": query(
            b"served.example", counts=(1, 0, 0, 1), rest=b"\0" + struct.pack(">HHIH", 41, 1232, 0, 0))}
NOTHING = {f"type_{kind}": query(b"served.example", kind) for kind in (28, 15, 16, 64, 65, 33, 6)}
NOTHING.update(reverse=query(b"1.0.18.198.in-addr.arpa", 12), the_root=query(b"", 2))
ODD = {
    "with_a_nul": query(b"served.example\0.other"), "with_a_space": query(b"a b.example"),
    "with_a_slash": query(b"a/b.example"), "with_an_at": query(b"a@b.example"), "with_bytes": query(b"\xff\xfe.example"),
    "with_a_dot_inside": query(b"", wire=b"\x06a.b\\.c\x07example\0"), "with_a_line": query(b"a\r\nb.example"),
    "label_too_long": query(b"", wire=b"\x40" + b"a" * 64 + b"\0"),
    "name_too_long": query(b".".join([b"a" * 60] * 5)),
    "pointer_to_itself": query(b"", wire=b"\xc0\x0c"), "pointer_ahead": query(b"", wire=b"\xc0\xff"),
    "pointer_after_label": query(b"", wire=b"\x01a\xc0\x0c"),
    "two_questions": query(b"served.example", counts=(2, 0, 0, 0), rest=labels(b"b.example") + b"\0\x01\0\x01"),
    "no_question": query(b"served.example", counts=(0, 0, 0, 0)),
    "many_questions": query(b"served.example", counts=(65535, 0, 0, 0)),
    "cut_short": query(b"served.example")[:-3], "with_answers": query(b"served.example", counts=(1, 1, 0, 0)),
    "everything": query(b"served.example", 255), "a_transfer": query(b"served.example", 252),
    "chaos": query(b"version.bind", 16, 3), "an_update": query(b"served.example", flags=0x2800),

    "an_answer": query(b"served.example", flags=0x8180), "a_header_alone": query(b"")[:12],
    "one_byte": b"x", "empty": b"", "huge": query(b"served.example") + bytes(60000),
}


def connects(where):
    try:
        socket.create_connection(where, 2).close()
        return "reached"
    except OSError:
        return "unreachable"


def other_servers():
    for place in ("127.0.0.53", "192.0.2.53", "169.254.169.254", "10.0.0.1", "198.18.0.2", "198.19.255.255"):
        try:
            print(f"server_{place}", outcome(ask(query(b"served.example"), (place, 53), 0.3)))
        except OSError:
            print(f"server_{place} silence")
    for where in (SERVICE, ("192.0.2.53", 53), ("192.0.2.53", 853), ("198.18.0.1", 853)):
        print(f"tcp_{where[0]}_{where[1]}", "silence" if connects(where) == "unreachable" else "reached")
    for group, port in ("224.0.0.251", 5353), ("224.0.0.252", 5355), ("255.255.255.255", 67):
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.settimeout(0.3)
        try:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            s.sendto(query(b"served.example"), (group, port))
            s.recv(512)
            print(f"group_{group} answer")
        except OSError:
            print(f"group_{group} silence")


def echoes(connection):
    connection.settimeout(10)
    connection.sendall(b"hello\n")
    return connection.recv(6) == b"hello\n"


def flood():
    """More names than there are places, while a connection uses one."""
    held = address("served.example")
    first = socket.create_connection((held, PORT), 10)
    print("before", "echo" if echoes(first) else "broken")
    last = [address(f"n{i}.example") for i in range(5000)][-1]
    print("the_last_name", "echo" if last else "none")
    print("the_held_connection", "echo" if echoes(first) else "broken")
    print("the_held_name", "echo" if address("served.example") == held else "moved")
    print("a_new_connection", "echo" if echoes(socket.create_connection((held, PORT), 10)) else "broken")


def stale():
    """A connection to an address before it is a name's ends while another one uses that name."""
    before = address("a.example").rsplit(".", 1)
    coming = f"{before[0]}.{int(before[1]) + 1}"
    early = socket.create_connection((coming, PORT), 10)
    held = address("served.example")
    assert held == coming, (held, coming)
    first = socket.create_connection((held, PORT), 10)
    print("before", "echo" if echoes(first) else "broken")
    early.close()
    for i in range(5000):
        address(f"n{i}.example")
    print("the_held_name", "echo" if address("served.example") == held else "moved")


def given_up():
    """An address whose name has been given up for others is nobody's, or another's: never the old one's."""
    old = address("served.example")
    for i in range(4200):
        address(f"n{i}.example")
    s = socket.create_connection((old, PORT), 10)
    s.sendall(b"hello\n")
    try:
        print("the_old_address", "closed" if s.recv(6) == b"" else "reached")
    except ConnectionResetError:
        print("the_old_address closed")


def main():
    for case in sys.argv[2:]:
        group = {"fine": FINE, "nothing": NOTHING, "odd": ODD}.get(case)
        if group is None:
            {"other_servers": other_servers, "flood": flood, "stale": stale, "given_up": given_up}[case]()
            continue
        for key, data in group.items():
            print(key, outcome(ask(data, wait=10 if group is not ODD else 0.3)))


main()
