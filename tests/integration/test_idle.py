#!/usr/bin/env python3
"""Every kind of host sleeps while a model thinks: processor time, not wall time, against what a loop that spins
would use. BARCHAN_BUILD is the build folder."""
import json
import os
import sys
import tempfile
import threading
import time
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BUILD = os.environ["BARCHAN_BUILD"]
THINKS = 4.0  # seconds; a host that spins uses as much
BOUND = THINKS / 4  # with the start of the program, under a sanitizer

AGENT = """
local barchan = require "barchan"
local function ask()
  local model = assert(barchan.model { provider = "openai", name = "slow", base_url = "%s" })
  return { text = assert(model:complete "think").text }
end
if arg then print(ask().text) end
return { run = ask }
"""


class SlowModel(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep(THINKS)
        chunks = [{"choices": [{"index": 0, "delta": {"role": "assistant", "content": "thought"}}]},
                  {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}]
        body = "".join(f"data: {json.dumps(c)}\n\n" for c in chunks) + "data: [DONE]\n\n"
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_):
        pass


def processor_time(*argv, output):
    """Runs a program; its exit code and the seconds of processor time that it used."""
    clean = {k: v for k, v in os.environ.items() if not k.endswith(("_API_KEY", "_BASE_URL"))}
    file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    pid = os.posix_spawn(argv[0], argv, clean, file_actions=[(os.POSIX_SPAWN_DUP2, file, 1)])
    os.close(file)
    _, status, usage = os.wait4(pid, 0)
    return os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime


class Idle(unittest.TestCase):
    def setUp(self):
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), SlowModel)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.folder = tempfile.TemporaryDirectory()
        with open(f"{self.folder.name}/embed_agent.lua", "w") as file:
            file.write(AGENT % f"http://127.0.0.1:{self.server.server_port}")

    def tearDown(self):
        self.server.shutdown()
        self.server.server_close()
        self.folder.cleanup()

    def check(self, *argv):
        output = f"{self.folder.name}/output"
        began = time.monotonic()
        code, used = processor_time(*argv, output=output)
        with open(output) as file:
            self.assertIn("thought", file.read())
        self.assertEqual(code, 0)
        self.assertGreaterEqual(time.monotonic() - began, THINKS)  # the model did think
        print(f"{os.path.basename(argv[0])}: {used:.3f} s of processor time in {THINKS:g} s", file=sys.stderr)
        self.assertLess(used, BOUND)

    def test_a_host_that_blocks(self):
        self.check(f"{BUILD}/examples/embed_agent", self.folder.name, "-")

    def test_a_host_with_epoll(self):
        self.check(f"{BUILD}/examples/embed_epoll", self.folder.name, "-")

    def test_a_host_with_libuv(self):
        self.check(f"{BUILD}/examples/embed_uv", self.folder.name, "-")

    def test_a_host_that_draws(self):
        self.check(f"{BUILD}/examples/embed_frames", self.folder.name, "-")

    def test_the_program(self):
        self.check(f"{BUILD}/bin/barchan", "run", f"{self.folder.name}/embed_agent.lua")

    def test_a_host_that_spins_would_be_seen(self):
        spin = "import time\nend = time.monotonic() + %g\nwhile time.monotonic() < end: pass" % THINKS
        code, used = processor_time(sys.executable, "-c", spin, output=f"{self.folder.name}/output")
        self.assertEqual(code, 0)
        self.assertGreater(used, BOUND)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]], verbosity=2)
