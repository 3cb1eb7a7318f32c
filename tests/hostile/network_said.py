"""Runs inside a sandbox: says to served.example what a program should not say, and what it may.
Arguments: port, then names of groups of cases. Prints a line for each: its name and what came back, one
of echo (it reached the server, which echoes), 403, alert, closed, other words."""
import socket
import struct
import sys

HOST = "served.example"
PORT = int(sys.argv[1])


def vector(size, data):
    return len(data).to_bytes(size, "big") + data


def extension(kind, data):
    return struct.pack(">H", kind) + vector(2, data)


def server_name(*names):
    return extension(0, vector(2, b"".join(b"\0" + vector(2, name) for name in names)))


def hello(*extensions, record=16384):
    body = b"\x03\x03" + bytes(32) + vector(1, bytes(32)) + vector(2, b"\x13\x01\x13\x02") + vector(1, b"\0")
    message = b"\x01" + vector(3, body + vector(2, b"".join(extensions)))
    parts = [message[i:i + record] for i in range(0, len(message), record)]
    return b"".join(b"\x16\x03\x01" + vector(2, part) for part in parts)


def name(text):
    return server_name(text.encode())


def get(*fields, line="GET / HTTP/1.1", body=""):
    return ("\r\n".join([line, *fields]) + "\r\n\r\n" + body).encode("latin-1")


HOST_FIELD = f"Host: {HOST}"
RIGHT = name(HOST)
POST = "POST / HTTP/1.1"
FINE = {
    "tls": hello(RIGHT),
    "tls_in_tiny_records": hello(RIGHT, record=1),
    "tls_in_capitals": hello(name(HOST.upper())),
    "tls_with_protocols": hello(RIGHT, extension(16, vector(2, b"\x02h2\x08http/1.1"))),
    "tls_twice": hello(RIGHT) + b"\x14\x03\x03\x00\x01\x01" + hello(RIGHT),
    "tls_with_data": hello(RIGHT) + b"\x14\x03\x03\x00\x01\x01" + b"\x17\x03\x03\x00\x20" + b"\x01" * 32 + bytes(9),
    "tls_1_2": hello(RIGHT) + b"\x16\x03\x03\x00\x08\x10\x00\x00\x04\x03abc" + b"\x14\x03\x03\x00\x01\x01"
               b"\x16\x03\x03\x00\x10\x01" + b"\x5a" * 15 + b"\x17\x03\x03\x00\x03abc",
    "tls_large": hello(RIGHT, extension(21, bytes(12000))),
    "http": get(HOST_FIELD),
    "http_with_port": get(f"{HOST_FIELD}:{PORT}"),
    "http_in_capitals": get("HOST: SERVED.Example"),
    "http_1_0": b"GET / HTTP/1.0\r\n\r\n",
    "http_absolute": get(f"{HOST_FIELD}:{PORT}", line=f"GET http://{HOST}:{PORT}/ HTTP/1.1"),
    "http_after_an_empty_line": b"\r\n" + get(HOST_FIELD),
    "http_with_length": get(HOST_FIELD, "Content-Length: 2", line=POST, body="hi"),
    "http_in_chunks": get(HOST_FIELD, "Transfer-Encoding: chunked", line=POST, body="0\r\n\r\n"),
    "http_large": get(HOST_FIELD, "A: " + "a" * 8000),
    "another_protocol": b"hello, is anybody there\n",
    "http_twice": get(HOST_FIELD) * 2,
}
TLS = {
    "tls_of_another": hello(name("other.example")),
    "tls_of_nobody": hello(),
    "tls_of_one_below": hello(name("a." + HOST)),
    "tls_with_a_dot": hello(name(HOST + ".")),
    "tls_of_an_address": hello(name("127.0.0.1")),
    "tls_with_a_nul": hello(name(HOST + "\0.other.example")),
    "tls_of_two_names": hello(server_name(HOST.encode(), b"other.example")),
    "tls_of_two_extensions": hello(RIGHT, name("other.example")),
    "tls_of_the_same_twice": hello(RIGHT, RIGHT),
    "tls_encrypted": hello(RIGHT, extension(0xFE0D, b"\0" + bytes(60))),
    "tls_too_large": hello(RIGHT, extension(21, bytes(30000))),
    "tls_with_an_odd_length": hello(extension(0, b"\xff\xff\0")),
    "tls_of_another_in_tiny_records": hello(name("other.example"), record=1),
    "tls_of_another_as_ssl_3_0": b"\x16\x03\x00" + hello(name("other.example"))[3:],
    "tls_of_another_as_a_later_version": b"\x16\x03\x04" + hello(name("other.example"))[3:],
    "tls_of_another_after_nothing": b"\x16\x03\x01\x00\x00" + hello(name("other.example")),
    "tls_of_another_after_a_change": b"\x14\x03\x03\x00\x01\x01" + hello(name("other.example")),
    "tls_of_another_after_an_alert": b"\x15\x03\x03\x00\x02\x01\x00" + hello(name("other.example")),
    "tls_of_another_next": hello(RIGHT) + b"\x14\x03\x03\x00\x01\x01" + hello(name("other.example")),
    "tls_of_another_next_in_tiny_records": hello(RIGHT) + hello(name("other.example"), record=1),
    "tls_as_ssl_2": b"\x80\x2e\x01\x03\x01\x00\x15\x00\x00\x00\x10" + bytes(40),
}
HTTP = {
    "http_of_another": get("Host: other.example"),
    "http_of_two": get(HOST_FIELD, "Host: other.example"),
    "http_of_the_same_twice": get(HOST_FIELD, HOST_FIELD),
    "http_of_another_port": get(f"{HOST_FIELD}:1"),
    "http_of_nobody": get("A: b"),
    "http_with_a_user": get(f"Host: user@{HOST}"),
    "http_with_a_list": get(f"{HOST_FIELD}, other.example"),
    "http_with_a_path": get(f"{HOST_FIELD}/other.example"),
    "http_tunnel": get(HOST_FIELD, line=f"CONNECT {HOST}:{PORT} HTTP/1.1"),
    "http_tunnel_to_another": get("Host: other.example", line="CONNECT other.example:443 HTTP/1.1"),
    "http_absolute_of_another": get(HOST_FIELD, line="GET http://other.example/ HTTP/1.1"),
    "http_absolute_of_another_alone": get("Host: other.example", line="GET http://other.example/ HTTP/1.1"),
    "http_1_0_absolute_of_another": b"GET http://other.example/ HTTP/1.0\r\n\r\n",
    "http_folded": get(HOST_FIELD, "A: b", " Host: other.example"),
    "http_space_before_colon": get(HOST_FIELD, "Host : other.example"),
    "http_tab_before_colon": get("Host\t: other.example", HOST_FIELD),
    "http_vertical_tab": get(HOST_FIELD, "Host\x0b: other.example"),
    "http_bare_lf": get(HOST_FIELD, "A: b\nHost: other.example"),
    "http_only_lf": b"GET / HTTP/1.1\nHost: served.example\n\n",
    "http_bare_cr": get(HOST_FIELD, "A: b\rHost: other.example"),
    "http_nul": get(HOST_FIELD, "A: b\0"),
    "http_length_and_chunks": get(HOST_FIELD, "Content-Length: 3", "Transfer-Encoding: chunked", line=POST),
    "http_two_lengths": get(HOST_FIELD, "Content-Length: 3", "Content-Length: 4", line=POST),
    "http_a_list_of_lengths": get(HOST_FIELD, "Content-Length: 3, 3", line=POST),
    "http_a_signed_length": get(HOST_FIELD, "Content-Length: +3", line=POST),
    "http_a_hex_length": get(HOST_FIELD, "Content-Length: 0x3", line=POST),
    "http_an_unknown_coding": get(HOST_FIELD, "Transfer-Encoding: xchunked", line=POST),
    "http_chunks_twice": get(HOST_FIELD, *["Transfer-Encoding: chunked"] * 2, line=POST),
    "http_two_codings": get(HOST_FIELD, "Transfer-Encoding: identity, chunked", line=POST),
    "http_0_9": b"GET /\r\n\r\n",
    "http_many_fields": get(HOST_FIELD, *["A: b"] * 101),
    "http_too_large": get(HOST_FIELD, "A: " + "a" * 17000),
    "http_2_in_the_clear": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "http_of_another_next": get(HOST_FIELD) + get("Host: other.example"),
    "http_after_many_empty_lines": b"\r\n\r\n\r\n\r\n" + get("Host: other.example"),
}
CASES = {**FINE, **TLS, **HTTP}
# What ends within its first words was never all of them.
ENDED = {"tls_cut_short": hello(RIGHT)[:-1], "http_cut_short": get(HOST_FIELD)[:-1]}
LETTER = {"one_letter": b"G", "one_byte_of_tls": b"\x16"}  # in no protocol that an answer could be in

# What comes behind a first request that is right: its head, or this and a part of its body.
CHUNKED = get(HOST_FIELD, "Transfer-Encoding: chunked", line=POST)
SOCKET = get(HOST_FIELD, "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: a")
FIRST = get(HOST_FIELD)
OTHER = get("Host: other.example")
LATER_FINE = {
    "another": (FIRST, FIRST), "ten_others": (FIRST, FIRST * 10),
    "a_body_that_looks_like_a_request": (get(HOST_FIELD, f"Content-Length: {len(OTHER)}", line=POST), OTHER + FIRST),
    "a_chunk_that_looks_like_one": (CHUNKED, b"%x\r\n%s\r\n0\r\n\r\n" % (len(OTHER), OTHER) + FIRST),
    "a_chunk_that_looks_like_the_end": (CHUNKED, b"5\r\n0\r\n\r\n\r\n0\r\n\r\n" + FIRST),
    "a_large_body": (get(HOST_FIELD, "Content-Length: 300000", line=POST), bytes(300000) + FIRST),
}
LATER_BAD = {
    "another_host": (FIRST, OTHER), "a_tunnel": (FIRST, get("Host: other.example", line="CONNECT other.example:443 HTTP/1.1")),
    "http_2": (FIRST, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), "no_request": (FIRST, b"\0\1\2\3\r\n\r\n"),
    "tls": (FIRST, hello(name("other.example"))),
    "behind_a_body": (get(HOST_FIELD, "Content-Length: 5", line=POST), b"12345" + OTHER),
    "behind_no_body": (get(HOST_FIELD, "Content-Length: 0", line=POST), OTHER),
    "behind_chunks": (CHUNKED, b"1\r\na\r\n0\r\n\r\n" + OTHER),
    "behind_a_socket_that_is_none": (SOCKET, b"\x81\x00" + OTHER), "and_at_once": (SOCKET, OTHER),
    "behind_h2c": (get(HOST_FIELD, "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAAA"),
                   b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    "a_chunk_with_lf": (CHUNKED, b"1\na\r\n0\r\n\r\n" + OTHER), "a_chunk_with_a_sign": (CHUNKED, b"+1\r\na\r\n"),
    "a_chunk_in_0x": (CHUNKED, b"0x1\r\na\r\n"), "a_chunk_with_a_space": (CHUNKED, b" 1\r\na\r\n"),
    "a_chunk_too_large": (CHUNKED, b"fffffffffffffffff\r\n"), "a_chunk_below_nothing": (CHUNKED, b"-1\r\n"),
    "a_chunk_without_an_end": (CHUNKED, b"1\r\nab\r\n0\r\n\r\n"), "a_chunk_without_a_size": (CHUNKED, b"\r\n"),
    "an_extension_with_lf": (CHUNKED, b"1;a\nb\r\na\r\n"), "trailers": (CHUNKED, b"0\r\nHost: other.example\r\n\r\n"),
    "an_end_with_lf": (CHUNKED, b"0\r\n\n" + OTHER),
}


def receive(connection, size):
    """So many bytes, or fewer at the end."""
    got = b""
    while len(got) < size:
        part = connection.recv(size - len(got))
        if not part:
            break
        got += part
    return got


def say_later(first, then, one_by_one):
    """echo: all of it came back; closed: the connection ended after the first."""
    with socket.create_connection((HOST, PORT), 20) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(first)
        if receive(connection, len(first)) != first:
            return "no answer"
        try:
            for i in range(0, len(then), 1 if one_by_one else 65536):
                connection.sendall(then[i:i + (1 if one_by_one else 65536)])
                if len(then) > 65536:  # both ways are held up otherwise
                    part = then[i:i + 65536]
                    if receive(connection, len(part)) != part:
                        return "broken"
            if len(then) > 65536:
                return "echo"
            got = receive(connection, len(then))
            if got == then:
                return "echo"
            return "closed" if OTHER[:30] not in got and b"PRI" not in got else f"passed {got[:40]!r}"
        except ConnectionError:
            return "closed"


def answer(connection, sent):
    got = b""
    try:
        while len(got) < len(sent) or got[:4] == b"HTTP":
            part = connection.recv(65536)
            if not part:
                break
            got += part
    except OSError:
        pass
    if got == sent:
        return "echo"
    if got.startswith(b"HTTP/1.1 403 "):
        return "403"
    if got == b"\x15\x03\x03\x00\x02\x02\x31":
        return "alert"
    return "closed" if got == b"" else f"other {got[:40]!r}"


def say(data, one_by_one=False, end=False):
    with socket.create_connection((HOST, PORT), 20) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            for i in range(0, len(data), 1 if one_by_one else len(data)):
                connection.sendall(data[i:i + 1] if one_by_one else data)
            if end:
                connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # it has been refused meanwhile; the answer may be there
        return answer(connection, data)


def main():
    for case in sys.argv[2:]:
        if case.startswith("later"):
            for key, words in (LATER_FINE if "fine" in case else LATER_BAD).items():
                if "slowly" not in case or len(words[1]) < 2000:
                    print(key, say_later(*words, "slowly" in case))
            continue
        named, slow = {"fine": (FINE, False), "tls": (TLS, False), "http": (HTTP, False), "ended": (ENDED, False),
                       "letter": (LETTER, False),
                       "fine_slowly": (FINE, True), "bad_slowly": ({**TLS, **HTTP}, True)}[case]
        for key, data in named.items():
            if slow and (len(data) > 2000 or "_another_next" in key):
                continue  # it takes too long, or its first part is answered by then
            print(key, say(data, slow, named in (ENDED, LETTER)))


main()
