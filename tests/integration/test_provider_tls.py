#!/usr/bin/env python3
"""TLS as it is on the internet, with an authority of our own in the system's place.

Arguments: the provider_tls program, the folder of the servers. Each case is a server on loopback and
what must come of asking it. The authority is mounted over the system's bundle in a mount namespace of
the client alone; where that is not allowed, or openssl is missing, everything is skipped.
"""
import os
import subprocess
import sys
import tempfile

PROGRAM, SUPPORT = sys.argv[1:3]
BUNDLE = "/etc/ssl/certs/ca-certificates.crt"


def run(*command, **more):
    return subprocess.run(command, capture_output=True, text=True, timeout=60, **more)


def openssl(*arguments):
    done = run("openssl", *arguments)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])


NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def make_ca(name):
    openssl("req", "-x509", *NEW_KEY, "-days", "2", "-subj", "/CN=" + name, "-keyout", name + ".key",
            "-out", name + ".pem")


def make_cert(name, ca, names, days):
    openssl("req", *NEW_KEY, "-subj", "/CN=" + name, "-keyout", name + ".key", "-out",
            name + ".csr")
    with open("names", "w") as file:
        file.write("subjectAltName=" + names)
    openssl("x509", "-req", "-in", name + ".csr", "-CA", ca + ".pem", "-CAkey", ca + ".key",
            "-CAcreateserial", "-days", days, "-extfile", "names", "-out", name + ".pem")


def serve(program, *arguments):
    server = subprocess.Popen([*program, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True)
    return server, server.stdout.readline().strip()


def ask(url, count):
    """What provider_tls prints where `trusted.pem` is the only authority."""
    script = 'mount --bind "$0" "$1" && exec "$2" "$3" "$4"'
    return run("unshare", "--mount", "--map-root-user", "sh", "-c", script, os.path.abspath("trusted.pem"),
               BUNDLE, PROGRAM, url, str(count)).stdout


def main():
    python = [sys.executable, os.path.join(SUPPORT, "byte_server.py")]
    node = ["node", os.path.join(SUPPORT, "h2_server.mjs")]
    make_ca("trusted")
    make_ca("other")
    everything = "DNS:localhost,IP:127.0.0.1"
    make_cert("good", "trusted", everything, "2")
    make_cert("expired", "trusted", everything, "-1")
    make_cert("elsewhere", "trusted", "DNS:example.com", "2")
    make_cert("foreign", "other", everything, "2")
    cases = [
        # name, server, certificate, more arguments, host, must come
        ("trusted", python, "good", (), "localhost", "ok Hello"),
        ("trusted by address", python, "good", (), "127.0.0.1", "ok Hello"),
        ("expired", python, "expired", (), "localhost", "error network"),
        ("for another host", python, "elsewhere", (), "localhost", "error network"),
        ("for another address", python, "elsewhere", (), "127.0.0.1", "error network"),
        ("of an unknown authority", python, "foreign", (), "localhost", "error network"),
        ("TLS 1.2", python, "good", ("1.2",), "localhost", "ok Hello"),
        ("TLS 1.1", python, "good", ("1.1",), "localhost", "error network"),
        ("HTTP/2", node, "good", (), "localhost", "ok 2.0 1"),
    ]
    passed = failed = skipped = 0
    for name, program, cert, more, host, want in cases:
        try:
            server, port = serve(program, cert + ".pem", cert + ".key", *more)
        except OSError as error:
            print(f"SKIP {name}: {error}")
            skipped += 1
            continue
        count = 5 if program is node else 1
        got = ask(f"https://{host}:{port}/ok", count)
        lines = got.splitlines()
        good = len(lines) == count and all(line.startswith(want) for line in lines)
        print(f"{'ok' if good else 'FAILED'} {name}: {lines[0] if lines else got!r}")
        passed, failed = passed + good, failed + (not good)
        server.stdin.close()
        server.wait()
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    try:
        test = run("unshare", "--mount", "--map-root-user", "mount", "--bind", "/etc/hostname", BUNDLE)
        if test.returncode != 0:
            print("SKIP a mount namespace is not allowed here: " + test.stderr.strip())
            sys.exit(77)
        sys.exit(main())
    except (OSError, RuntimeError) as error:
        print(f"SKIP {error}")
        sys.exit(77)
