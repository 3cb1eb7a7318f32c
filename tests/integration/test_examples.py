#!/usr/bin/env python3
"""Every example, run as its comment says. BARCHAN_BUILD is the build folder; BARCHAN_PRELOAD a library to run them
with (tests/support/gc_stress.c)."""
import functools
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

import network_world

BUILD = os.environ["BARCHAN_BUILD"]
TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
SANITIZE = [f"-fsanitize={os.environ['BARCHAN_SANITIZE']}"] if os.environ.get("BARCHAN_SANITIZE") else []
CLEAN = {k: v for k, v in os.environ.items() if not k.endswith(("_API_KEY", "_BASE_URL"))}


if "BARCHAN_PRELOAD" in os.environ:
    CLEAN["LD_PRELOAD"] = os.environ["BARCHAN_PRELOAD"]
    CLEAN["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"


def run(*args, **env):
    done = subprocess.run(args, stdin=subprocess.DEVNULL, capture_output=True, timeout=120, cwd=TOP, text=True,
                          env={**CLEAN, **env})
    return done.returncode, done.stdout, done.stderr


def copies_work():
    """Whether this kernel has what copy-on-write mounts need."""
    fd = os.memfd_create("probe")
    try:
        os.setxattr(fd, "user.barchan", b"")
    except OSError:
        return False
    finally:
        os.close(fd)
    return True


def example(name, *args, **env):
    return run(f"{BUILD}/bin/barchan", "run", f"examples/{name}", *args, **env)


class Examples(unittest.TestCase):
    def test_prime(self):
        code, out, err = example("prime.lua")
        self.assertEqual(code, 0, err)
        self.assertEqual(out.splitlines()[-1], "7919")
        self.assertIn("replaying recorded model turns", out)
        self.assertIn("exit_code: 0\nout:\n7919", out)

    def test_dispatch(self):
        code, out, err = example("dispatch.lua")
        self.assertEqual(code, 0, err)
        self.assertIn("declared: exec, read_file, write_file, list_files", out)
        self.assertIn("5 notes/haiku.txt", out)
        self.assertIn("a moon made of sand", out)
        self.assertIn("ERROR The arguments of 'read_file' do not fit", out)

    def test_github_token(self):
        code, out, err = example("github_token.lua", GITHUB_TOKEN="a-token-MARKER-0123456789")
        self.assertEqual(code, 0, err)
        self.assertRegex(out, r"in the sandbox: GITHUB_TOKEN=barchan-secret-[0-9a-f]{32}\n")
        self.assertIn("event: failed api.github.example", out)
        self.assertIn("not reached: curl:", out)
        self.assertNotIn("MARKER", out + err)
        self.assertEqual(example("github_token.lua")[0], 0)

    def test_custom_loop(self):
        code, out, err = example("custom_loop.lua")
        self.assertEqual(code, 0, err)
        self.assertRegex(out, r"\$ nproc\nexit_code: 0\nout:\n\d+\n")
        self.assertIn("denied: rm -rf /workspace", out)

    def test_connections_say_what_they_need(self):
        for name, variable in (("connect_claude.lua", "ANTHROPIC_API_KEY"), ("connect_openai.lua", "OPENAI_API_KEY")):
            code, _, err = example(name)
            self.assertEqual(code, 1)
            self.assertIn(f"set {variable}", err)

    def test_embed_exec(self):
        code, out, err = run(f"{BUILD}/examples/embed_exec")
        self.assertEqual(code, 0, err)
        self.assertRegex(out, r"^42\nexited, exit code 0, [\d.]+ ms\n$")

    def test_embed_agent(self):
        code, out, err = run(f"{BUILD}/examples/embed_agent", "examples", "examples/data/order.jsonl")
        self.assertEqual(code, 0, err)
        answer = json.loads(out)
        self.assertEqual((answer["text"], answer["stop_reason"]), ("Order 17 has shipped; a camel carries it.", "end_turn"))
        events = [json.loads(line) for line in err.splitlines()]
        results = [e for e in events if e["type"] == "tool_result"]
        self.assertEqual(json.loads(results[0]["content"])["status"], "shipped")
        self.assertEqual(events[-1]["type"], "run_finished")

    def test_embed_epoll(self):
        code, out, err = run(f"{BUILD}/examples/embed_epoll", "examples", "examples/data/wait.jsonl")
        self.assertEqual(code, 0, err)
        self.assertEqual(json.loads(out)["text"], "I waited a moment.")
        ticks, used = map(int, re.search(r"ticked (\d+) times and used (\d+) ms", err).groups())
        self.assertGreaterEqual(ticks, 10)  # of 20 in the second that the tool takes: it did not block
        self.assertLess(used, 500)  # nor did it spin

    def test_host_loops(self):
        code, out, err = run(f"{BUILD}/examples/embed_uv", "examples", "examples/data/wait.jsonl")
        self.assertEqual((code, json.loads(out)["text"]), (0, "I waited a moment."), err)
        self.assertGreaterEqual(int(re.search(r"ticked (\d+) times", err).group(1)), 10)
        code, out, err = run(f"{BUILD}/examples/embed_frames", "examples", "examples/data/wait.jsonl")
        self.assertEqual((code, json.loads(out)["text"]), (0, "I waited a moment."), err)
        self.assertGreaterEqual(int(re.search(r"(\d+) frames were drawn", err).group(1)), 30)  # of 60 in the second

    def test_host_tools(self):
        code, out, err = run(f"{BUILD}/examples/host_tools", "examples", "examples/data/tent.jsonl")
        self.assertEqual((code, json.loads(out)["text"]), (0, "There are three tents, at 249.50 each."), err)
        events = [json.loads(line) for line in err.splitlines()]
        results = [(e["name"], json.loads(e["content"])) for e in events if e["type"] == "tool_result"]
        self.assertEqual(results, [("stock_level", {"item": "tent", "in_stock": 3}),
                                   ("price_quote", {"item": "tent", "price": 249.5})])  # the slow one held up nothing

    def test_the_commands_of_the_readme(self):
        with open(f"{TOP}/examples/README.md") as file:
            commands = re.search(r"```sh\n(.*?)```", file.read(), re.S).group(1).splitlines()
        self.assertEqual(len(commands), 5)
        for line in commands:
            code, out, err = run(*line.replace("build/release", BUILD).split())
            self.assertEqual((code, json.loads(out)["stop_reason"]), (0, "end_turn"), line + err)

    def test_hot_reload(self):
        code, out, err = run("examples/hot_reload/demo.sh", f"{BUILD}/bin/barchan")
        self.assertEqual(code, 0, out + err)
        self.assertEqual(out.splitlines()[-1], "It has 19 letters. (12 messages)")
        self.assertRegex(out, r"tools_reload_failed .*measure.lua:7: ")

    def test_the_demo_fails_when_an_edit_has_no_effect(self):
        with tempfile.TemporaryDirectory() as folder:
            fake = f"{folder}/barchan"  # that does not watch
            with open(fake, "w") as file:
                file.write(f"#!/bin/sh\nshift 2\nsed 's/watch = true/watch = false/' \"$1\" >\"$1.lua\"\n"
                           f"script=$1.lua\nshift\nexec {BUILD}/bin/barchan run \"$script\" \"$@\"\n")
            os.chmod(fake, 0o755)
            code, out, err = run("examples/hot_reload/demo.sh", fake)
        self.assertEqual(code, 1, out + err)
        self.assertIn("demo: expected the declaration 'Count the letters of a text.'", err)

    def test_restricted_pip(self):
        """With a registry of the test's own, whose name only this test's /etc/hosts knows."""
        with tempfile.TemporaryDirectory() as folder:
            network_world.make_wheel(folder)
            handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=folder)
            server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
            threading.Thread(target=server.serve_forever, daemon=True).start()
            with open(f"{folder}/hosts", "w") as file:
                file.write("127.0.0.1 localhost packages.example\n")
            own_hosts = ["unshare", "--mount", "sh", "-c", f'mount --bind {folder}/hosts /etc/hosts && exec "$@"', "sh"]
            if subprocess.run([*own_hosts, "true"], capture_output=True).returncode != 0:
                self.skipTest("a mount namespace needs root")
            if shutil.which("pip", path="/usr/local/bin:/usr/bin:/bin") is None:
                self.skipTest("pip is not installed")
            port = server.server_port
            code, out, err = run(*own_hosts, f"{BUILD}/bin/barchan", "run", "examples/restricted_pip.lua", "tiny-wheel",
                                 f"127.0.0.1:{port}", PIP_INDEX_URL=f"http://packages.example:{port}/simple",
                                 PIP_CONFIG_FILE="/dev/null", PIP_TRUSTED_HOST="packages.example")
            server.shutdown()
        self.assertEqual(code, 0, out + err)
        self.assertIn("Successfully installed tiny-wheel-1.0", out)
        self.assertIn("elsewhere.example:443 was refused: not in the allow-list", out)

    def test_two_runtimes(self):
        code, out, err = run(f"{BUILD}/examples/two_runtimes")
        self.assertEqual((code, out), (0, "thread 1: 5 of 5 commands\nthread 2: 5 of 5 commands\n"), err)

    def test_each_example_is_tested(self):
        names = {name for name in os.listdir(f"{TOP}/examples") if name.endswith((".lua", ".c"))}
        with open(__file__) as file:
            text = file.read()
        helpers = {"connect_loop.lua", "embed_agent.lua"}
        for name in names - helpers:
            self.assertTrue(re.search(re.escape(name) if name.endswith(".lua") else name[:-2], text), name)


class Readme(unittest.TestCase):
    """The code in README.md runs as it stands there."""

    def blocks(self, language):
        with open(f"{TOP}/README.md") as file:
            return re.findall(rf"```{language}\n(.*?)```", file.read(), re.S)

    def test_lua(self):
        blocks = self.blocks("lua")
        self.assertGreaterEqual(len(blocks), 3)
        for block in blocks:
            if ('"cow"' in block or ":snapshot" in block) and not copies_work():
                print("SKIP one of README.md: copy-on-write needs user attributes on tmpfs (Linux 6.6)")
                continue
            path = f"{BUILD}/readme.lua"
            with open(path, "w") as file:
                file.write(block)
            code, _, err = run(f"{BUILD}/bin/barchan", "run", path)
            self.assertEqual(code, 0, block + err)

    def test_c(self):
        blocks = self.blocks("c")
        self.assertGreaterEqual(len(blocks), 1)
        for block in blocks:
            path = f"{BUILD}/readme.c"
            with open(path, "w") as file:
                file.write(block)
            code, _, err = run("cc", "-Wall", "-Werror", *SANITIZE, "-o", f"{BUILD}/readme", path,
                               f"-I{TOP}/core/include", f"-L{BUILD}/core", "-lbarchan-core",
                               f"-Wl,-rpath,{BUILD}/core")
            self.assertEqual(code, 0, block + err)
            code, out, err = run(f"{BUILD}/readme")
            self.assertEqual((code, out), (0, "42\n"), err)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]], verbosity=2)
