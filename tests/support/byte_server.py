#!/usr/bin/env python3
"""A server of raw bytes on loopback, for what no well-behaved server sends.

Prints its port and serves until its standard input ends. The first part of a request's path picks
the scenario below, so a client chooses by its base URL: http://127.0.0.1:PORT/SCENARIO. Each
scenario gets the connection and the parsed request, and writes whatever it likes.

GET /_stats answers with what the server has seen: connections, and the requests' paths, headers
and bodies.
"""
import json
import os
import socket
import ssl
import sys
import threading
import time

lock = threading.Lock()
stats = {"connections": 0, "stolen": 0, "flaky": 0, "requests": []}
flaky = {}  # how often each path was asked for
RECORDINGS = os.environ.get("BARCHAN_FIXTURES", "")

MESSAGE = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-test",
    "content": [{"type": "text", "text": "Hello \u20ac\U0001f600"}],
    "stop_reason": "end_turn", "stop_sequence": None,
    "usage": {"input_tokens": 3, "output_tokens": 5},
}


def event(data):
    return ("event: %s\ndata: %s\n\n" % (data["type"], json.dumps(data, ensure_ascii=False))).encode()


def stream(pieces=("Hel", "lo \u20ac", "\U0001f600"), stop="end_turn"):
    out = [event({"type": "message_start", "message": dict(MESSAGE, content=[], stop_reason=None)}),
           event({"type": "content_block_start", "index": 0,
                  "content_block": {"type": "text", "text": ""}})]
    out += [event({"type": "content_block_delta", "index": 0,
                   "delta": {"type": "text_delta", "text": p}}) for p in pieces]
    out += [event({"type": "content_block_stop", "index": 0}),
            event({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None},
                   "usage": {"output_tokens": 5}}),
            event({"type": "message_stop"})]
    return out


class Gone(Exception):
    pass


class Connection:
    def __init__(self, sock):
        self.sock = sock
        self.buffer = b""

    def send(self, data):
        try:
            self.sock.sendall(data)
        except OSError:
            raise Gone()

    def fill(self):
        try:
            data = self.sock.recv(65536)
        except OSError:
            raise Gone()
        if not data:
            raise Gone()
        self.buffer += data

    def request(self):
        while b"\r\n\r\n" not in self.buffer:
            self.fill()
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        lines = head.decode("latin-1").split("\r\n")
        headers = {}
        for line in lines[1:]:
            name, value = line.split(":", 1)
            headers[name.lower()] = value.strip()
        early = lines[0].split(" ")[1].split("/")[1]
        if early in ("early413", "earlyreset"):
            refuse_early(self, early)
        length = int(headers.get("content-length", "0"))
        while len(self.buffer) < length:
            self.fill()
        body, self.buffer = self.buffer[:length], self.buffer[length:]
        method, path, _ = lines[0].split(" ", 2)
        return {"method": method, "path": path, "headers": headers,
                "body": body.decode("utf-8", "replace")}

    def wait_gone(self):
        """Until the client closes."""
        while True:
            self.fill()
            self.buffer = b""

    def answer(self, body, status="200 OK", kind="application/json", extra=()):
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        head = ["HTTP/1.1 " + status, "content-type: " + kind, "content-length: %d" % len(body)]
        self.send(("\r\n".join(head + list(extra)) + "\r\n\r\n").encode() + body)

    def head(self, kind="text/event-stream", extra=(), status="200"):
        head = ["HTTP/1.1 %s Status" % status, "content-type: " + kind, "transfer-encoding: chunked",
                "request-id: req_stream"]
        self.send(("\r\n".join(head + list(extra)) + "\r\n\r\n").encode())

    def chunk(self, data):
        self.send(b"%x\r\n" % len(data) + data + b"\r\n")

    def chunked(self, parts, kind="text/event-stream"):
        self.head(kind)
        for part in parts:
            self.chunk(part)
        self.send(b"0\r\n\r\n")


def refuse_early(c, how):
    """Before the body was read: an answer and a close, or a reset."""
    if how == "early413":
        c.answer({"type": "error", "error": {"type": "request_too_large", "message": "Too large"}},
                 status="413 Too Large", extra=["connection: close"])
        c.sock.shutdown(socket.SHUT_WR)
        time.sleep(0.2)  # the client reads the answer before the reset that unread bytes cause
    else:
        c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    raise Gone()


# ---- scenarios: a function of the connection, the request and the rest of the path ----

def s_ok(c, r, rest):
    wants_stream = json.loads(r["body"] or "{}").get("stream")
    if wants_stream:
        c.chunked(stream())
    else:
        c.answer(MESSAGE, extra=["request-id: req_plain"])


def s_flaky(c, r, rest):
    """/flaky/NAME/COUNT/SCENARIO…: the first COUNT requests get the scenario, later ones an answer."""
    with lock:
        stats["flaky"] += 1
        flaky[r["path"]] = flaky.get(r["path"], 0) + 1
        failing = flaky[r["path"]] <= int(rest[1])
    if failing:
        globals()["s_" + rest[2]](c, r, rest[3:])
    else:
        s_ok(c, r, [])


def s_bytewise(c, r, rest):
    c.chunked([bytes([b]) for b in b"".join(stream())])


def s_echo(c, r, rest):
    text = json.dumps({"headers": r["headers"], "path": r["path"], "body": json.loads(r["body"])})
    c.answer(dict(MESSAGE, content=[{"type": "text", "text": text}]))


def s_chat(c, r, rest):
    c.answer({"id": "chatcmpl-1", "model": "gpt-test", "choices": [
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content":
            json.dumps({"headers": r["headers"], "path": r["path"],
                        "body": json.loads(r["body"])})}}]})


def s_silent(c, r, rest):
    c.wait_gone()


def s_halfhead(c, r, rest):
    c.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-str")
    c.wait_gone()


def s_headonly(c, r, rest):
    c.head()
    c.wait_gone()


def s_stall(c, r, rest):
    c.head()
    for part in stream()[:4]:
        c.chunk(part)
    c.wait_gone()


def s_comments(c, r, rest):
    c.head()
    while True:
        c.chunk(b": keep-alive\n\n")
        time.sleep(0.05)


def s_neverclose(c, r, rest):
    c.head()
    for part in stream():
        c.chunk(part)
    c.wait_gone()


def s_nodone(c, r, rest):
    """Chat: a reason to stop, the counts a little later, no end marker, no close."""
    def chunk(data):
        c.chunk(b"data: " + json.dumps(data).encode() + b"\n\n")
    c.head()
    chunk({"id": "c", "choices": [{"index": 0, "delta": {"content": "Hello"}}]})
    chunk({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    if rest[0] == "usage":
        time.sleep(1.5)
        chunk({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}})
        return c.chunk(b"data: [DONE]\n\n") or c.wait_gone()
    if rest[0] == "reset":
        c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        time.sleep(0.1)
        raise Gone()
    c.wait_gone()


# An assistant turn that only survives as bytes: numbers, escapes, a lone surrogate, unknown members.
TRICKY = (b'[{"type":"thinking","thinking":"","signature":"s\\/=="},'
          b'{"type": "text","text":"a\\u00e9\\ud83d \\u20ac"},'
          b'{"type":"tool_use","id":"toolu_1","name":"probe","input":{"z":1e2,"f":1.0,"big":18446744073709551616,'
          b'"int":9007199254740993,"small":0.1,"neg":-0.0,"empty":[],"none":{},"null":null,"s":"\\ud83d\\u0000",'
          b'"":[[1,2.50]]},"caller":{"x":0.10}}]')


def s_tricky(c, r, rest):
    """A turn with a call; once it was answered, whether the turn came back byte for byte."""
    if "tool_result" in r["body"]:
        same = TRICKY.decode() in r["body"]
        text = "verbatim" if same else "changed: " + r["body"]
        c.answer(dict(MESSAGE, content=[{"type": "text", "text": text}]))
    else:
        c.answer(b'{"id":"m","model":"m","content":' + TRICKY + b',"stop_reason":"tool_use","usage":{}}')


def s_redirect(c, r, rest):
    code = rest[0]
    where = {"same": "/_stolen", "host": "http://127.0.0.2:%d/_stolen" % port,
             "file": "file:///etc/passwd", "loop": r["path"]}[rest[1]]
    c.answer(b"", status=code + " Moved", extra=["location: " + where])


def s_garbage(c, r, rest):
    c.send({"line": b"GARBAGE\r\n\r\n", "http09": b"just some text, no head at all\n",
            "icy": b"ICY 200 OK\r\ncontent-type: application/json\r\n\r\n{}",
            "status": b"HTTP/1.1 999999 What\r\n\r\n", "billion": b"HTTP/1.1 1000000000 What\r\n\r\n{}",
            "999": b"HTTP/1.1 999 What\r\ncontent-length: 2\r\n\r\n{}", "zero": b"HTTP/1.1 000 None\r\n\r\n{}",
            "nul": b"\0\0\0\0\0\0\0\0\r\n\r\n", "h2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"}[rest[0]])
    raise Gone()


def s_bigheaders(c, r, rest):
    c.send(b"HTTP/1.1 200 OK\r\n")
    while True:
        c.send(b"x-fill: " + b"a" * 8000 + b"\r\n")


def s_interim(c, r, rest):
    if rest[0] == "few":
        c.send(b"HTTP/1.1 103 Early Hints\r\nlink: <a>\r\n\r\n" * 3)
        return s_ok(c, r, rest)
    while True:
        c.send(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)


def s_earlyclose(c, r, rest):
    body = json.dumps(MESSAGE).encode()
    c.send(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
           % len(body) + body[:len(body) // 2])
    raise Gone()


def s_closenow(c, r, rest):
    raise Gone()


def s_reset(c, r, rest):
    c.head()
    for part in stream()[:4]:
        c.chunk(part)
    time.sleep(0.1)
    c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    raise Gone()


def s_cutstream(c, r, rest):
    """Ends properly as HTTP, but the turn in it is not complete."""
    c.chunked(stream()[:int(rest[0])])


def s_length(c, r, rest):
    line = {"negative": "content-length: -5", "huge": "content-length: 99999999999999999999999",
            "two": "content-length: 2\r\ncontent-length: 900",
            "both": "content-length: 3\r\ntransfer-encoding: chunked",
            "short": "content-length: 20"}[rest[0]]
    body = json.dumps(MESSAGE).encode() if rest[0] == "short" else b"{}"
    c.send(("HTTP/1.1 200 OK\r\n%s\r\n\r\n" % line).encode() + body)
    raise Gone()


def s_badchunk(c, r, rest):
    c.head()
    c.send({"size": b"ffffffffffffffffffff\r\nx", "text": b"zz\r\nx\r\n",
            "extension": b"5;" + b"a" * (1 << 20) + b"\r\nhello\r\n0\r\n\r\n",
            "trailer": b"2\r\n{}\r\n0\r\n" + b"x: y\r\n" * (1 << 17) + b"\r\n"}[rest[0]])
    raise Gone()


def s_encoding(c, r, rest):
    """/encoding/NAME: an answer that says to be encoded, which nobody asked for."""
    body = b"\x1f\x8b\x08\0\0\0\0\0" if "gzip" in rest[0] else b"{}"
    c.answer(body, extra=["content-encoding: " + rest[0].replace("+", ", ")])


def s_status(c, r, rest):
    bodies = {
        "overloaded": {"type": "error", "request_id": "req_body",
                       "error": {"type": "overloaded_error", "message": "Overloaded"}},
        "key": {"error": {"message": "Incorrect API key: " + r["headers"].get("x-api-key", "?"),
                          "type": "authentication_error"}},
        "html": b"<html><title>502 Bad Gateway</title></html>",
        "empty": b"",
    }
    body = bodies[rest[1]]
    kind = "text/html" if rest[1] == "html" else "application/json"
    extra = ["request-id: req_head"]
    if len(rest) > 2 and rest[2].startswith("should="):
        extra.append("x-should-retry: " + rest[2][7:])
    if len(rest) > 2 and rest[2].startswith("retry="):
        extra.append("retry-after: " + rest[2][6:].replace("_", " "))
    c.answer(body, status=rest[0] + " Error", kind=kind, extra=extra)


def s_blanks(c, r, rest):
    """A byte order mark, in pieces, and blanks without end before a body of JSON."""
    body = json.dumps(MESSAGE).encode()
    c.chunked([b"\xef", b"\xbb", b"\xbf"] + [b" \r\n" * 1000] * int(rest[0]) + [body],
              kind="application/json")


def s_late(c, r, rest):
    """A whole turn, and after its last word what means nothing any more."""
    late = {"junk": [b"data: junk\n\n"], "cut": [b"data: {\"type\":"],
            "error": [b"event: error\ndata: {\"type\":\"error\",\"error\":{\"message\":\"x\"}}\n\n"],
            "long": [b"data: " + b"x" * (1 << 20)] * 18}
    c.chunked(stream() + late[rest[0]])


def s_cutevent(c, r, rest):
    """The stream ends within an event, and the connection as it should."""
    c.chunked(stream()[:-2] + [b'event: message_delta\ndata: {"type":"mess'])


def s_quote(c, r, rest):
    """An error that quotes the request's credentials, without their scheme, in the place asked for:
    message, cut (where the message is cut), code, id (of the body), header, location, stream."""
    place = rest[0]
    sent = r["headers"]
    key = (sent.get("x-api-key") or sent.get("authorization") or sent.get("x-gate-token", "?"))
    key = key.split(" ")[-1]
    error = {"message": "bad key " + key, "type": "authentication_error"}
    if place == "cut":
        error["message"] = "x" * (399 - int(rest[1])) + key
    if place == "code":
        error["code"] = key + "\x1b[2J"
    body = {"error": error, "request_id": key + "\x1b" if place == "id" else "req"}
    extra = ["request-id: " + (key + " \t\x1b[2J" if place == "header" else "r") + "  "]
    if place == "stream":
        return c.chunked([b"event: error\ndata: " + json.dumps(body).encode() + b"\n\n"])
    if place == "location":
        return c.answer(b"", status="302 Moved",
                        extra=["location: http://h/" + "x" * (190 - int(rest[1])) + key + "\x1b[2J"])
    c.answer(b"" if place == "header" else body, status="401 No", extra=extra)


def s_brokenerror(c, r, rest):
    """An error whose words never come whole."""
    c.send(b"HTTP/1.1 529 Overloaded\r\ncontent-length: 100\r\n\r\n{\"error\": {")
    raise Gone()


def s_html(c, r, rest):
    c.answer(b"<!DOCTYPE html><html><body>Log in to the guest network</body></html>",
             kind="text/html")


def s_empty(c, r, rest):
    c.answer(b"", status=rest[0] + " OK")


def s_jsonforstream(c, r, rest):
    c.answer(MESSAGE)


def s_streamforjson(c, r, rest):
    c.chunked(stream(), kind="text/plain")


def s_errorinstream(c, r, rest):
    parts = stream()[:4]
    parts.append(event({"type": "error", "error": {"type": "overloaded_error",
                                                  "message": "Overloaded"}}))
    c.chunked(parts)


def s_restart(c, r, rest):
    c.chunked(stream(("void",))[:3] + stream())


def s_cookie(c, r, rest):
    c.answer(MESSAGE, extra=["set-cookie: session=1; Path=/"] * 50 +
             ["strict-transport-security: max-age=9999", "alt-svc: h3=\":443\""])


def s_bigevent(c, r, rest):
    c.head()
    c.send(b"")
    c.chunk(b"data: {\"type\":\"ping\",\"x\":\"")
    block = b"a" * (1 << 20)
    for _ in range(40):
        c.chunk(block)


def s_endless(c, r, rest):
    c.head(kind="application/json")
    c.chunk(b"{\"a\":\"")
    block = b"a" * (1 << 20)
    while True:
        c.chunk(block)


def s_slow(c, r, rest):
    """Bytes in small pieces with pauses, longer in all than any one pause."""
    c.head()
    for part in stream():
        c.chunk(part)
        time.sleep(float(rest[0]))
    c.send(b"0\r\n\r\n")


def s_big(c, r, rest):
    """A long answer, as fast as the client takes it."""
    c.chunked([b"x" * 65536 for _ in range(int(rest[0]))], kind="text/plain")


def s_recording(c, r, rest):
    """A recorded body: /recording/STEP/FORM/STATUS/FOLDER/FILE; FORM is sse, lines or json."""
    step, form, status, name = int(rest[0]), rest[1], rest[2], "/".join(rest[3:5])
    with open(os.path.join(RECORDINGS, name), "rb") as file:
        data = file.read()
    if form == "lines":
        lines = [line for line in data.split(b"\n") if line.strip()]
        data = b"".join(b"data: " + line + b"\n\n" for line in lines)
        if not name.startswith("anthropic/"):
            data += b"data: [DONE]\n\n"
    kind = "application/json" if form == "json" else "text/event-stream"
    step = step or len(data) or 1
    c.head(kind, status=status)
    for at in range(0, len(data), step):
        c.chunk(data[at:at + step])
    c.send(b"0\r\n\r\n")


def s__stats(c, r, rest):
    with lock:
        c.answer(stats)


def s__stolen(c, r, rest):
    with lock:
        stats["stolen"] += 1
    c.answer(MESSAGE)


def serve(sock, tls):
    try:
        if tls is not None:
            sock = tls.wrap_socket(sock, server_side=True)
        c = Connection(sock)
        while True:
            r = c.request()
            parts = r["path"].split("?")[0].strip("/").split("/")
            with lock:
                if not parts[0].startswith("_"):
                    stats["requests"].append(r)
            scenario = globals().get("s_" + parts[0])
            if scenario is None:
                c.answer({"error": "no such scenario"}, status="404 Not Found")
            else:
                scenario(c, r, parts[1:])
    except (Gone, OSError, ValueError):
        pass
    finally:
        sock.close()


def accept(listener, tls):
    while True:
        try:
            sock, _ = listener.accept()
        except OSError:
            return
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with lock:
            stats["connections"] += 1
        threading.Thread(target=serve, args=(sock, tls), daemon=True).start()


def main():
    global port
    tls = None
    if len(sys.argv) > 2:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(sys.argv[1], sys.argv[2])
    if len(sys.argv) > 3:  # at most this version
        tls.set_ciphers("ALL:@SECLEVEL=0")
        tls.minimum_version = ssl.TLSVersion.TLSv1
        tls.maximum_version = {"1.1": ssl.TLSVersion.TLSv1_1, "1.2": ssl.TLSVersion.TLSv1_2}[sys.argv[3]]
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", 0))
    listener.listen(256)
    port = listener.getsockname()[1]
    print(port, flush=True)
    threading.Thread(target=accept, args=(listener, tls), daemon=True).start()
    sys.stdin.read()


if __name__ == "__main__":
    main()
