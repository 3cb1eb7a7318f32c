#!/usr/bin/env python3
"""The program `barchan` as a person at a shell meets it. BARCHAN_BIN is the program."""
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

BIN = os.environ["BARCHAN_BIN"]
EXAMPLES = os.path.join(os.path.dirname(__file__), "../../examples")
CLEAN = {k: v for k, v in os.environ.items() if not k.endswith(("_API_KEY", "_BASE_URL"))}


def barchan(*args, stdin=b"", env=None, timeout=60, cwd=None):
    return subprocess.run([BIN, *args], input=stdin, capture_output=True, timeout=timeout,
                          env={**CLEAN, **(env or {})}, cwd=cwd)


class Front(unittest.TestCase):
    def test_version_and_help(self):
        self.assertRegex(barchan("--version").stdout, rb"^barchan \d+\.\d+\.\d+\n$")
        helped = barchan("--help")
        self.assertEqual(helped.returncode, 0)
        self.assertTrue(barchan("exec", "--timeout", "3", "--help").stdout.startswith(b"usage: barchan exec"))
        self.assertIn(b"at most", barchan("exec", "--timeout", "1000000", "--", "ls").stderr)
        for name in (b"ask", b"docs", b"exec", b"network", b"run", b"tools", b"doctor"):
            self.assertIn(name, helped.stdout)
            self.assertTrue(barchan(name.decode(), "--help").stdout.startswith(b"usage: barchan " + name))

    def test_what_is_unknown_is_refused_with_a_suggestion(self):
        for words, expected in (
                (["exce"], b"unknown command 'exce'; did you mean 'exec'?"),
                (["--versoin"], b"unknown option '--versoin'"),
                (["exec", "--timout", "3", "--", "ls"], b"unknown option '--timout'; did you mean '--timeout'?"),
                (["ask", "--modle", "x"], b"did you mean '--model'"),
                (["exec"], b"a command is missing"),
                (["exec", "--timeout", "soon", "--", "ls"], b"--timeout takes a number, got 'soon'"),
                (["exec", "--timeout", "-1", "--", "ls"], b"greater than 0"),
                (["exec", "--env", "novalue", "--", "ls"], b"--env takes NAME=value"),
                (["ask", "hello"], b"no model to ask: set ANTHROPIC_API_KEY"),
                (["tools", "list", "dir"], b"--dir names a directory"),
                (["ask", "--base-url", "http://x", "hi"], b"--base-url needs --model"),
                (["ask", "--policy", "no_repaets", "hi"], b"did you mean 'no_repeats'"),
                (["ask", "--watch", "hi"], b"--watch needs --tool-dir or --policy-dir"),
                (["tools", "lsit"], b"list, call, check or watch expected"),
                ([], b"usage: barchan COMMAND")):
            done = barchan(*words)
            self.assertEqual(done.returncode, 2, words)
            self.assertIn(expected, done.stderr, words)
            self.assertEqual(done.stdout, b"", words)


    def test_scripts_of_a_folder_override_the_embedded_ones(self):
        with tempfile.TemporaryDirectory() as folder:
            os.makedirs(f"{folder}/tools")
            with open(f"{folder}/tools/exec.lua", "w") as file:
                file.write("return { name = 'exec', description = 'from the folder', run = print }")
            done = barchan("tools", "list", env={"BARCHAN_SCRIPTS": folder})
            self.assertIn(b"from the folder", done.stdout)
            self.assertIn(b"run_python", done.stdout)
            with open(f"{folder}/tools/exec.lua", "w") as file:
                file.write("return {")
            self.assertIn(b"tools/exec.lua:1:", barchan("tools", "list", env={"BARCHAN_SCRIPTS": folder}).stderr)
            with open(os.path.join(folder, "tools", "exec.lua"), "w") as file:
                file.write("return 5")
            done = barchan("tools", "list", env={"BARCHAN_SCRIPTS": folder})
            self.assertIn(b"tools/exec.lua must return the tool 'exec'", done.stderr)
            os.remove(os.path.join(folder, "tools", "exec.lua"))
            os.mkfifo(os.path.join(folder, "tools", "exec.lua"))
            self.assertIn(b"is not a regular file", barchan("tools", "list", env={"BARCHAN_SCRIPTS": folder}).stderr)
        self.assertIn(b"BARCHAN_SCRIPTS", barchan("--version", env={"BARCHAN_SCRIPTS": "/nowhere"}).stderr)


class Docs(unittest.TestCase):
    def test_topics(self):
        topics = barchan("docs").stdout.decode()
        names = re.findall(r"^(\w+) ", topics, re.M)
        self.assertEqual(names[0], "barchan")
        self.assertEqual(sorted(names[1:]), names[1:])
        for name in names:
            done = barchan("docs", name)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue(done.stdout.decode().startswith(f"## {name}\n\n"))
            self.assertLess(len(done.stdout), 8000)  # to be handed to a model
        two = barchan("docs", "tasks", "json").stdout
        self.assertEqual(two, barchan("docs", "tasks").stdout + barchan("docs", "json").stdout)
        wrong = barchan("docs", "taks")
        self.assertEqual(wrong.returncode, 2)
        self.assertIn(b"unknown topic 'taks'; did you mean 'tasks'?", wrong.stderr)
        self.assertEqual(barchan("docs", "--all", "json").returncode, 2)

    def test_the_reference_is_what_it_prints(self):
        with open(os.path.join(os.path.dirname(__file__), "../../bindings/lua/README.md")) as file:
            text = file.read()
        self.assertTrue(text.endswith(barchan("docs", "--all").stdout.decode()), "paste barchan docs --all there")


class Exec(unittest.TestCase):
    def test_output_and_exit_code_pass_through(self):
        done = barchan("exec", "--", "sh", "-c", "printf 'a\\0b'; echo problem >&2; exit 7")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (7, b"a\0b", b"problem\n"))

    def test_exit_codes(self):
        cases = ((["sh", "-c", "kill -TERM $$"], 143), (["no-such-program"], 127), (["/etc/passwd"], 126),
                 (["true"], 0), (["sh", "-c", "exit 255"], 255))
        for words, code in cases:
            self.assertEqual(barchan("exec", "--", *words).returncode, code, words)
        done = barchan("exec", "--timeout", "0.3", "--", "sh", "-c", "echo so far; sleep 100")
        self.assertEqual((done.returncode, done.stdout), (124, b"so far\n"))
        self.assertRegex(done.stderr, rb"killed after [0-9.]+ s; --timeout allows more")
        done = barchan("exec", "--limits", "wall=0.3", "--", "sleep", "100")
        self.assertRegex(done.stderr, rb"killed after [0-9.]+ s; --limits wall allows more")
        done = barchan("exec", "--template", "/no/such", "--", "true")
        self.assertEqual(done.returncode, 125)
        self.assertIn(b"/no/such", done.stderr)

    def test_options(self):
        done = barchan("exec", "--env", "A=1", "--env", "B=x=y", "--cwd", "/tmp", "--", "sh", "-c", "echo $A $B; pwd")
        self.assertEqual(done.stdout, b"1 x=y\n/tmp\n")
        done = barchan("exec", "--stdin", "--", "tr", "a-z", "A-Z", stdin=b"hello")
        self.assertEqual(done.stdout, b"HELLO")
        folder = os.open("/tmp", os.O_RDONLY)  # standard input that cannot be read
        done = subprocess.run([BIN, "exec", "--stdin", "--timeout", "20", "--", "cat"], stdin=folder,
                              capture_output=True, timeout=10, env=CLEAN)
        os.close(folder)
        self.assertEqual(done.returncode, 125)
        self.assertIn(b"read standard input", done.stderr)
        data = os.urandom(3_000_000)
        self.assertEqual(barchan("exec", "--stdin", "--", "cat", stdin=data).stdout, data)
        done = json.loads(barchan("exec", "--stdin", "--json", "--", "cat", stdin=b"x" * 3000000).stdout)
        self.assertEqual((len(done["out"]), done["out_dropped"]), (1 << 20, 3000000 - (1 << 20)))

    def test_limits(self):
        done = barchan("exec", "--json", "--limits", "memory=64M", "--", "python3", "-c", "x='a'*10**9")
        self.assertEqual((done.returncode, json.loads(done.stdout)["reason"]), (137, "oom"))
        done = barchan("exec", "--limits", "output=1K,wall=20", "--", "yes")
        self.assertEqual((done.returncode, done.stderr.count(b"limit of output")), (137, 1))
        done = barchan("exec", "--limits", "pids=20", "--", "sh", "-c", "for i in $(seq 50); do sleep 1 & done; wait")
        self.assertEqual(done.returncode, 2)  # the shell's own
        self.assertIn(b"limit of processes", done.stderr)
        for text, words in (("memry=64M", b"did you mean 'memory'"), ("memory=much", b"NAME=NUMBER"),
                            ("pids=5M", b"takes no unit"), ("pids=1.5", b"whole number"), ("pids=0", b"greater"),
                            ("pids=5,pids=6", b"pids stands there twice")):
            done = barchan("exec", "--limits", text, "--", "true")
            self.assertEqual(done.returncode, 2, text)
            self.assertIn(words, done.stderr)

    def test_mounts(self):
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            with open(f"{folder}/f", "w") as file:
                file.write("shown")
            done = barchan("exec", "--mount", f"{folder}:/mnt/data", "--", "cat", "/mnt/data/f")
            self.assertEqual(done.stdout, b"shown")
            self.assertEqual(barchan("exec", "--mount", f"{folder}:/mnt/x:cwo", "--", "true").returncode, 2)
        done = barchan("exec", "--mount", "/:/mnt/x", "--", "true")
        self.assertEqual(done.returncode, 125)
        self.assertIn(b"whole tree", done.stderr)
        self.assertEqual(barchan("exec", "--mount", "/usr", "--", "true").returncode, 2)

    def test_copied_mounts(self):
        report = json.loads(barchan("doctor", "--json").stdout)
        if [row["state"] for row in report if row["name"] == "copy_on_write"] != ["ok"]:
            self.skipTest("copy-on-write needs user attributes on tmpfs (Linux 6.6)")
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            with open(f"{folder}/f", "w") as file:
                file.write("shown")
            if os.geteuid() == 0:
                os.chown(f"{folder}/f", 12345, 12345)
                os.chown(folder, 12345, 12345)
            done = barchan("exec", "--mount", f"{folder}:/mnt/data:cow", "--", "sh", "-c",
                           "cd /mnt/data; echo new > f; cat f")
            self.assertEqual(done.stdout, b"new\n")
            with open(f"{folder}/f") as file:
                self.assertEqual(file.read(), "shown")

    def test_json(self):
        done = barchan("exec", "--json", "--", "sh", "-c", "echo hi; exit 3")
        result = json.loads(done.stdout)
        self.assertEqual(done.returncode, 3)
        self.assertEqual((result["exit_code"], result["out"], result["reason"]), (3, "hi\n", "exited"))

    def test_the_hosts_environment_stays_outside(self):
        done = barchan("exec", "--", "env", env={"HOST_SECRET": "leak", "ANTHROPIC_API_KEY": "leak"})
        self.assertNotIn(b"leak", done.stdout)

    def test_interrupt(self):
        process = subprocess.Popen([BIN, "exec", "--", "sh", "-c", "echo started; exec sleep 100"], env=CLEAN,
                                   stdout=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), b"started\n")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(20), 130)
        process.stdout.close()


class Network(unittest.TestCase):
    # What would override the files of a test's home.
    ENV = dict.fromkeys(("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_CONFIG_FILE", "PIP_NO_INDEX", "VIRTUAL_ENV",
                         "XDG_CONFIG_HOME", "npm_config_registry", "NPM_CONFIG_REGISTRY", "npm_config_userconfig",
                         "NPM_CONFIG_USERCONFIG"), "")

    def test_wrong_words_are_refused_before_anything_is_made(self):
        for words, expected in (
                (["--network", "opn"], b"--network: unknown mode 'opn'; did you mean 'open'?"),
                (["--network", "allow"], b"--network allow names nothing"),
                (["--network", "allow="], b"--network allow names nothing"),
                (["--network", "off", "--allow", "a"], b"--network off goes without --allow and --deny"),
                (["--deny", "a"], b"--deny and --host go with --network or --allow"),
                (["--network", "allow=a,,b"], b"allow entry 2, '': an entry is a host name or an address\n"),
                (["--allow", "https://x/"], b"allow entry 1, 'https://x/': an entry is a host name, not a URL; write 'x'"),
                (["--allow", "*"], b"allow entry 1, '*': network = \"open\" allows every public host"),
                (["--network", "open", "--deny", "a:0"], b"deny entry 1, 'a:0': a port is a number from 1 to 65535")):
            for command in (["exec"], ["ask"], ["sandbox", "create"]):
                rest = {"exec": ["--", "true"], "ask": ["hi"]}.get(command[0], [])
                done = barchan(*command, *words, *rest)
                self.assertEqual(done.returncode, 2, (command, words, done.stderr))
                self.assertIn(expected, done.stderr, words)

    def test_a_list_is_told(self):
        done = barchan("network", "--json", "allow=A.example.,*.b.example:8443", "--allow", "10.1.2.0/24:5432",
                       "--deny", "c.example")
        self.assertEqual(done.returncode, 0, done.stderr)
        told = json.loads(done.stdout)
        self.assertEqual(told["mode"], "allow")
        self.assertEqual(told["allow"], ["10.1.2.0/24:5432", "a.example", "*.b.example:8443"])
        self.assertEqual(told["deny"], ["c.example"])
        self.assertIn(b"never c.example\n", barchan("network", "open", "--deny", "c.example").stdout)
        self.assertEqual(barchan("network", "--allow", "a.example").stdout, b"a.example  command line\n")
        self.assertEqual(barchan("network", "off").returncode, 1)
        self.assertEqual(barchan("network", "a", "b").returncode, 2)

    def test_restricted_is_what_the_package_managers_use(self):
        with tempfile.TemporaryDirectory() as home:
            os.makedirs(home + "/.config/pip")
            with open(home + "/.config/pip/pip.conf", "w") as conf:
                conf.write("[global]\nindex-url = https://me:s3cret@pip.example.com/simple\n")
            with open(home + "/.npmrc", "w") as conf:
                conf.write("registry=https://npm.example.com:8443/\n//npm.example.com:8443/:_authToken=s3cret\n")
            done = barchan("network", "restricted", "--allow", "more.example.com", env={**self.ENV, "HOME": home})
            self.assertEqual(done.returncode, 0, done.stderr)
            told = dict(line.split(b"  ", 1) for line in done.stdout.splitlines())
            told = {entry.strip(): source.strip() for entry, source in told.items()}
            self.assertEqual(told[b"pip.example.com:443"], f"pip: {home}/.config/pip/pip.conf".encode())
            self.assertEqual(told[b"npm.example.com:8443"], f"npm: {home}/.npmrc".encode())
            self.assertEqual(told[b"more.example.com"], b"command line")
            self.assertNotIn(b"s3cret", done.stdout + done.stderr)

    def test_a_refusal_is_told(self):
        done = barchan("exec", "--allow", "x.example:8443", "--", "python3", "-c",
                       "import socket; socket.create_connection(('y.example', 8443), 10).recv(1)")
        self.assertIn(b"barchan: network: y.example:8443 was refused: not in the allow-list\n", done.stderr)
        done = barchan("exec", "--", "python3", "-c",
                       "import socket; socket.create_connection(('y.example', 8443), 10)")
        self.assertNotEqual(done.returncode, 0)
        self.assertNotIn(b"was refused", done.stderr)


class Output(unittest.TestCase):
    """What cannot be written is said, and is no success."""

    def shell(self, text):
        return subprocess.run(["sh", "-c", text], capture_output=True, timeout=30, env={**CLEAN, "B": BIN})

    def test_a_full_disk(self):
        replay = os.path.join(EXAMPLES, "data/prime.jsonl")
        for command in ("exec -- seq 100000", "exec -- echo hi", f"ask --json --replay {replay} hi", "doctor",
                        "tools list", "exec --json -- true", "--version"):
            done = self.shell(f"exec $B {command} >/dev/full")
            self.assertEqual(done.returncode, 125, command)
            self.assertIn(b"cannot write standard output", done.stderr, command)

    def test_closed_descriptors(self):
        self.assertEqual(self.shell("exec $B --version <&- 2>&-").returncode, 0)
        self.assertEqual(self.shell("exec $B exec -- true <&- >&- 2>&-").returncode, 0)
        self.assertEqual(self.shell("exec $B exec -- echo hi >&-").returncode, 125)
        done = self.shell("exec $B exec --stdin -- cat <&-")
        self.assertEqual(done.returncode, 125)
        self.assertIn(b"standard input", done.stderr)
        self.assertEqual(self.shell("$B exec -- yes | head -n 1").stdout, b"y\n")

    def test_bytes_in_json(self):
        result = json.loads(barchan("exec", "--json", "--", "printf", "a\\377b").stdout)
        self.assertEqual((result["out"], result["out_encoding"]), ("Yf9i", "base64"))


class Run(unittest.TestCase):
    def script(self, text, *args):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "script.lua")
            with open(path, "w") as file:
                file.write(text)
            with open(os.path.join(folder, "beside.lua"), "w") as file:
                file.write("return { name = 'beside' }")
            return barchan("run", path, *args)

    def test_a_script_gets_its_arguments_and_neighbours(self):
        done = self.script("print(arg[1], select('#', ...), require 'beside'.name)", "one", "--two")
        self.assertEqual((done.returncode, done.stdout), (0, b"one\t2\tbeside\n"))

    def test_errors(self):
        done = self.script("local x = nil\nx()")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"script.lua:2:", done.stderr)
        self.assertIn(b"traceback", done.stderr)
        self.assertIn(b"script.lua:1:", self.script("return {").stderr)
        self.assertEqual(self.script("return 9").returncode, 9)
        self.assertEqual(self.script("return 256").returncode, 1)
        lost = self.script("local b = require 'barchan' b.spawn(function() error 'lost' end) b.sleep(0.05) collectgarbage()")
        self.assertIn(b"a task failed and nobody waited for it", lost.stderr)
        gone = barchan("run", "/no/such.lua")
        self.assertEqual((gone.returncode, gone.stderr), (1, b"barchan: cannot read /no/such.lua: No such file or directory\n"))
        self.assertNotIn(b"traceback", self.script("return {").stderr)

    def test_what_a_callback_gets_wrong_is_said_at_once(self):
        for body, said in (("error('oh')", b"on_connect failed: "), ("return 'yes'", b"got a string; a.example was refused"),
                           ("return", b"")):
            done = self.script("""
                local sbx <close> = assert(require "barchan".sandbox { network = {
                  on_connect = function() %s end, on_event = function() end } })
                local r = sbx:exec("curl -s -m 5 http://a.example/ | head -c 300")
                io.stderr:write("the end: ", r.denied[1].rule, "\\n")""" % body)
            before, _, after = done.stderr.partition(b"the end: refused when asked\n")
            self.assertEqual((before.count(said) > 0, before == b"", after), (True, said == b"", b""), done.stderr)

    def test_a_loop_script_is_edited_while_it_runs(self):
        loop = """return {{
          open = function(state, word) state.word, state.n = word, 0 end,
          turn = function(state)
            state.n = state.n + 1
            print("{0}", state.word, state.n)
            if state.n == 2 then io.stdout:write("EDIT\\n") io.stdout:flush() io.read() end
            {1}
            if state.n == 4 then return 7 end
          end,
          close = function() print "closed" end,
        }}"""
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/loop.lua"

            def write(version, extra=""):
                with open(path, "w") as file:
                    file.write(loop.format(version, extra))

            def run(*flags):
                write("old")
                process = subprocess.Popen([BIN, "run", *flags, path, "hi"], stdin=subprocess.PIPE, env=CLEAN,
                                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                lines = iter(process.stdout.readline, "EDIT\n")
                before = list(lines)
                return process, before

            process, before = run("--watch")
            write("new")
            out, err = process.communicate("go\n", timeout=30)
            self.assertEqual((before + out.splitlines(True), process.returncode),
                             (["old\thi\t1\n", "old\thi\t2\n", "new\thi\t3\n", "new\thi\t4\n", "closed\n"], 7), err)
            self.assertEqual(err, f"barchan: script reloaded: {path}\n")

            process, before = run("--watch")
            write("new", "error 'no good'")
            out, err = process.communicate("go\n", timeout=30)
            self.assertEqual((out, process.returncode), ("new\thi\t3\nold\thi\t3\nold\thi\t4\nclosed\n", 7), err)
            self.assertRegex(err, r"script reloaded: .*\nbarchan: script rolled back: .*loop.lua:\d+: no good\n")

            process, before = run()  # the same script, not watched
            write("new")
            out, err = process.communicate("go\n", timeout=30)
            self.assertEqual((out, err, process.returncode), ("old\thi\t3\nold\thi\t4\nclosed\n", "", 7))

            with open(path, "w") as file:
                file.write("print 'no loop'")
            done = barchan("run", "--watch", path)
            self.assertEqual(done.returncode, 1)
            self.assertIn(b"a loop script returns a table with the function turn", done.stderr)

    def test_interrupt_closes_what_is_open(self):
        with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
            file.write("local b = require 'barchan'\n"
                       "local c <close> = setmetatable({}, { __close = function() print 'closed' end })\n"
                       "print 'ready' b.sleep(100)")
            file.flush()
            process = subprocess.Popen([BIN, "run", file.name], stdout=subprocess.PIPE, env=CLEAN)
            self.assertEqual(process.stdout.readline(), b"ready\n")
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.stdout.read(), b"closed\n")
            self.assertEqual(process.wait(20), 130)


    def test_one_signal_ends_a_script_that_never_waits(self):
        for text in ("while true do end", "local b = require 'barchan' while true do pcall(b.sleep, 0.1) end"):
            with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
                file.write("print 'ready'\n" + text)
                file.flush()
                process = subprocess.Popen([BIN, "run", file.name], stdout=subprocess.PIPE, env=CLEAN)
                process.stdout.readline()
                process.terminate()
                self.assertEqual(process.wait(20), 128 + signal.SIGTERM)
                process.stdout.close()


class Ask(unittest.TestCase):
    replay = os.path.join(EXAMPLES, "data/prime.jsonl")

    def test_replay(self):
        done = barchan("ask", "--replay", self.replay, "What is the 1000th prime number?")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"7919", done.stdout)
        self.assertIn(b"replaying recorded model turns", done.stderr)
        self.assertRegex(done.stderr, rb"> run_python .*\n  done in \d+\.\d\d s: exit_code: 0 out: 7919")
        self.assertNotIn(b"\x1b", done.stderr)  # not a terminal: plain lines

    def test_json_events_and_transcript_tell_the_same_run(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "run.jsonl")
            done = barchan("ask", "--json", "--transcript", path, "--replay", self.replay, "?")
            events = [json.loads(line) for line in done.stdout.splitlines()]
            with open(path) as file:
                recorded = [json.loads(line) for line in file]
            self.assertEqual(recorded[0]["type"], "transcript")
            self.assertEqual(recorded[0]["version"], 1)
            self.assertEqual(recorded[1:], events)
            self.assertEqual([e["seq"] for e in events], list(range(1, len(events) + 1)))
            self.assertEqual(len({e["run_id"] for e in events}), 1)
            kinds = [e["type"] for e in events if not e["type"].endswith("_delta")]
            self.assertEqual(kinds, ["run_started", "turn_started", "model_reply", "tool_call", "tool_result",
                                     "turn_started", "model_reply", "run_finished"])
            again = barchan("ask", "--replay", path, "?")  # a transcript plays again
            self.assertEqual(again.returncode, 0, again.stderr)
            self.assertIn(b"7919", again.stdout)
            fresh = os.path.join(folder, "fresh.jsonl")
            barchan("ask", "--transcript", fresh, "--template", "/no/such", "--replay", self.replay, "?")
            self.assertFalse(os.path.exists(fresh))
            refused = barchan("ask", "--transcript", path, "--replay", self.replay, "?")
            self.assertEqual(refused.returncode, 125)
            self.assertIn(b"exists", refused.stderr)

    def test_policies(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/quiet.lua", "w") as file:
                file.write("return { before_call = function() return 'stop', 'not today' end }")
            done = barchan("ask", "--replay", f"{EXAMPLES}/data/prime.jsonl", "--json", "--watch",
                           "--policy", "no_repeats", "--policy-dir", folder, "q")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(b"not run: denied: not today", done.stdout)
        self.assertIn(b'"stop_reason":"denied"', done.stdout)

    def test_what_cannot_work_says_why(self):
        done = barchan("ask", "--model", "anthropic:claude-x", "hello")
        self.assertEqual(done.returncode, 125)
        self.assertIn(b"set ANTHROPIC_API_KEY", done.stderr)
        self.assertEqual(barchan("ask", "--model", "claude", "hello").returncode, 2)
        done = barchan("ask", "--replay", "/no/such.jsonl", "hello")
        self.assertEqual(done.returncode, 125)
        self.assertIn(b"/no/such.jsonl", done.stderr)
        done = barchan("ask", "--model", "anthropic:m", "--base-url", "http://127.0.0.1:9", "hello")
        self.assertEqual(done.returncode, 125)
        self.assertIn(b"127.0.0.1", done.stderr)

    def test_the_model_that_is_asked_by_default(self):
        local = "http://127.0.0.1:9"  # nobody listens: the error names who was asked
        done = barchan("ask", "hello", env={"ANTHROPIC_BASE_URL": local})
        self.assertEqual(done.returncode, 125)
        self.assertIn(b"127.0.0.1", done.stderr)
        events = barchan("ask", "--json", "hello", env={"OPENAI_BASE_URL": local}).stdout.splitlines()
        self.assertEqual(json.loads(events[0])["model"], "model openai:gpt-5")
        events = barchan("ask", "--json", "hello", env={"OPENAI_BASE_URL": local, "BARCHAN_MODEL": "openai:mine"})
        self.assertEqual(json.loads(events.stdout.splitlines()[0])["model"], "model openai:mine")

    def test_the_prompt_from_standard_input(self):
        done = barchan("ask", "--json", "--replay", self.replay, "-", stdin=b"from stdin")
        self.assertEqual(json.loads(done.stdout.splitlines()[0])["messages"][0]["content"], "from stdin")

    def hostile(self, *replies):
        file = tempfile.NamedTemporaryFile("w", suffix=".jsonl")
        self.addCleanup(file.close)
        for event in ({"type": "transcript", "version": 1}, *({"type": "model_reply", "reply": r} for r in replies)):
            file.write(json.dumps(event) + "\n")
        file.flush()
        return barchan("ask", "--replay", file.name, "?")

    def test_hostile_transcripts(self):
        call = {"id": "1", "name": "exec", "arguments": {"command": "echo RAN"}}
        done = self.hostile({"text": "t", "invalid_tool_calls": [call]}, {"text": "end"})
        self.assertNotIn(b"out: RAN", done.stderr)
        done = self.hostile({"text": "x", "stop_reason": "\u001b]0;pwn\u0007\u202e\u061c"})
        self.assertNotIn(b"\x1b", done.stderr + done.stdout)
        self.assertNotIn("\u202e".encode(), done.stderr)
        for reply in ({"usage": None}, {"usage": 5}, {"invalid_tool_calls": 5}, {"invalid_tool_calls": [None]},
                      {"stop_reason": None}, {"stop_reason": []}, {"tool_calls": 5}, {"tool_calls": [call, call]},
                      {"text": 5}, {"role": "x"}, {"tool_calls": [{**call, "arguments": "x"}]}, [], None, 5):
            done = self.hostile(reply)
            self.assertIn(done.returncode, (0, 1, 125), reply)
            self.assertNotIn(b"attempt to", done.stderr, reply)
            self.assertNotIn(b"out: RAN", done.stderr, reply)
            if done.returncode:
                self.assertNotEqual(done.stderr.strip(), b"", reply)

    def test_transcripts_go_to_regular_files_only(self):
        with tempfile.TemporaryDirectory() as folder:
            fifo = os.path.join(folder, "fifo")
            os.mkfifo(fifo)
            done = barchan("ask", "--transcript", fifo, "--replay", self.replay, "?", timeout=20)
            self.assertEqual(done.returncode, 125)
            path = os.path.join(folder, "new")
            barchan("ask", "--transcript", path, "--replay", self.replay, "?")
            self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        done = barchan("ask", "--transcript", "/dev/full", "--replay", self.replay, "?")
        self.assertEqual(done.returncode, 125)

    def test_limits(self):
        done = barchan("ask", "--max-steps", "1", "--replay", self.replay, "?")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"stopped: max_steps", done.stderr)
        done = barchan("ask", "--tools", "exec,read_fil", "--replay", self.replay, "?")
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"did you mean 'read_file'", done.stderr)


class Terminal(unittest.TestCase):
    """At a terminal: a spinner while something runs, colours unless NO_COLOR, escapes made visible."""

    def transcript(self, code):
        file = tempfile.NamedTemporaryFile("w", suffix=".jsonl")
        self.addCleanup(file.close)
        call = {"id": "1", "name": "run_python", "arguments": {"code": code}}
        for event in ({"type": "transcript", "version": 1},
                      {"type": "model_reply", "reply": {"role": "assistant", "text": "", "tool_calls": [call],
                                                        "stop_reason": "tool_use"}},
                      {"type": "model_reply", "reply": {"role": "assistant", "text": "a\x1b[31mred\u202e", "tool_calls": [],
                                                        "stop_reason": "end_turn"}}):
            file.write(json.dumps(event) + "\n")
        file.flush()
        return file.name

    def at_terminal(self, *args, env=None, after=None):
        pid, fd = pty.fork()
        if pid == 0:
            os.execve(BIN, [BIN, *args], {**CLEAN, "TERM": "xterm", **(env or {})})
        output = b""
        while True:
            try:
                chunk = os.read(fd, 65536)
            except OSError:
                break
            if not chunk:
                break
            output += chunk
            if after and after in output:
                os.write(fd, b"\x03")  # Ctrl-C, by the terminal's own line discipline
                after = None
        os.close(fd)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), output

    def test_spinner_and_colours(self):
        path = self.transcript("import time; time.sleep(0.5); print('\\x1b]0;title\\x07')")
        code, output = self.at_terminal("ask", "--replay", path, "?")
        self.assertEqual(code, 0, output)
        self.assertIn("⠋".encode(), output)
        self.assertIn(b"\x1b[36m> run_python", output)
        self.assertIn(rb"a\x1b[31mred\u{202e}", output)
        self.assertNotIn(b"\x1b]0;", output)
        code, output = self.at_terminal("ask", "--replay", path, "?", env={"NO_COLOR": "1"})
        self.assertEqual(code, 0)
        self.assertNotRegex(output, rb"\x1b\[\d+m")

    def test_text_of_every_language(self):
        """Joiners belong to words and emoji; into a pipe goes what came, whatever it is."""
        text = "می\u200cخواهم 👨\u200d👩\u200d👧 \u200fmark\u202eback\u00ad\ufffb"
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "said.jsonl")
            with open(path, "w") as file:
                file.write(json.dumps({"type": "model_reply", "reply": {"text": text}}) + "\n")
            code, output = self.at_terminal("ask", "--replay", path, "?")
            self.assertEqual(code, 0, output)
            shown = text.replace("\u202e", "\\u{202e}").replace("\u00ad", "\\u{ad}").replace("\ufffb", "\\u{fffb}")
            self.assertIn(shown.encode(), output)
            done = barchan("ask", "--replay", path, "?")
            self.assertIn(text.encode(), done.stdout)

    def test_ctrl_c_ends_the_run_and_its_sandbox(self):
        path = self.transcript("import time; print('started'); time.sleep(4321)")
        code, output = self.at_terminal("ask", "--replay", path, "?", after=b"0.3 s")
        self.assertEqual(code, 130, output)
        self.assertIn(b"stopped: cancelled", output)
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline and subprocess.run(["pgrep", "-f", "run_python_1[.]py"],
                                                             stdout=subprocess.DEVNULL).returncode == 0:
            time.sleep(0.05)
        self.assertNotEqual(subprocess.run(["pgrep", "-f", "run_python_1[.]py"], stdout=subprocess.DEVNULL).returncode, 0)


class Shell(unittest.TestCase):
    def setUp(self):
        self.ours, self.theirs = pty.openpty()
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 111, 0, 0))
        self.before = termios.tcgetattr(self.theirs)
        self.seen = b""

    def tearDown(self):
        os.close(self.ours)
        os.close(self.theirs)

    def start(self, *args):
        self.process = subprocess.Popen([BIN, "shell", *args], stdin=self.theirs, stdout=self.theirs,
                                        stderr=self.theirs, env=dict(CLEAN, TERM="dumb"), start_new_session=True)

    def until(self, words, seconds=30):
        deadline = time.monotonic() + seconds
        while words not in self.seen:
            ready = select.select([self.ours], [], [], max(0, deadline - time.monotonic()))[0]
            self.assertTrue(ready, f"{words} is missing in {self.seen}")
            self.seen += os.read(self.ours, 65536)
        self.seen = self.seen[self.seen.index(words) + len(words):]

    def type(self, text):
        os.write(self.ours, text)

    def test_a_person_at_a_terminal(self):
        self.start("--limits", "pids=50", "--env", "PS1=> ", "--", "sh")
        self.until(b"> ")
        self.type(b"tty; stty size; pwd; echo $((6*7))\r")
        self.until(b"/dev/pts/0\r\n33 111\r\n/workspace\r\n42\r\n")
        self.type(b"sh -c 'echo up; exec sleep 100'\r")
        self.until(b"up\r\n")  # not the echo of the line
        self.type(b"\x03")  # ends the command, not the shell, and not this program
        self.until(b"> ")
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self.type(b"until stty size | grep '40 120'; do sleep 0.05; done; echo done\r")
        self.until(b"40 120\r\ndone\r\n")
        self.type(b"exit 7\r")
        self.assertEqual(self.process.wait(30), 7)
        self.assertEqual(termios.tcgetattr(self.theirs), self.before)

    def test_ends(self):
        self.start("--", "sh", "-c", "echo begin; exec cat")
        self.until(b"begin")
        self.type(b"\x04")
        self.assertEqual(self.process.wait(30), 0)
        self.start("--lease", "1", "--", "cat")
        self.assertEqual(self.process.wait(30), 125)
        self.until(b"the sandbox ended: lease_expired")
        self.start("--", "no-such-program")
        self.assertEqual(self.process.wait(30), 125)
        self.until(b"cannot start 'no-such-program'")
        self.start("--", "sh", "-c", "echo begin; exec sleep 100")
        self.until(b"begin")
        self.process.terminate()
        self.assertEqual(self.process.wait(30), 143)
        self.assertEqual(termios.tcgetattr(self.theirs), self.before)

    def test_without_a_terminal(self):
        done = barchan("shell")
        self.assertEqual(done.returncode, 125)
        self.assertIn(b"needs a terminal", done.stderr)


class Tools(unittest.TestCase):
    def test_list(self):
        listed = barchan("tools", "list").stdout.decode()
        for name in ("exec", "read_file", "write_file", "list_files", "run_python"):
            self.assertRegex(listed, rf"(?m)^{name} ")
        keys = {"neutral": "parameters", "anthropic": "input_schema", "mcp": "inputSchema"}
        for form, key in keys.items():
            tools = json.loads(barchan("tools", "list", "--format", form).stdout)
            self.assertIn(key, tools[0], form)
        openai = json.loads(barchan("tools", "list", "--format", "openai").stdout)
        self.assertEqual(openai[0]["type"], "function")
        done = barchan("tools", "list", "--format", "yaml")
        self.assertEqual(done.returncode, 2)

    def test_call(self):
        done = barchan("tools", "call", "run_python", '{"code":"print(6*7)"}')
        self.assertEqual((done.returncode, done.stdout), (0, b"exit_code: 0\nout:\n42\nerr: (empty)\n"))
        done = barchan("tools", "call", "run_python", '{"cod":"1"}')
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"code: is missing", done.stdout)
        self.assertEqual(barchan("tools", "call", "run_python", "{").returncode, 2)


    def test_check(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "one.lua")
            with open(path, "w") as file:
                file.write("return { name = 'one', run = print }")
            done = barchan("tools", "check", folder)
            self.assertEqual((done.returncode, done.stdout), (0, b"1 tools: one\n"))
            with open(path, "w") as file:
                file.write("\nreturn {")
            done = barchan("tools", "check", folder)
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"{path}:2:".encode(), done.stderr)

    def test_check_says_what_a_file_should_have_returned(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "one.lua")
            for text, words in (("return 5", "got a number"), ("", "got nothing"), ("return {}", "a helper is required by another script"),
                                ("\nrequire 'nope'", f"one.lua:2: module 'nope' not found: there is no {folder}/nope.lua")):
                with open(path, "w") as file:
                    file.write(text)
                done = barchan("tools", "check", folder)
                self.assertEqual(done.returncode, 1)
                self.assertIn(path.encode(), done.stderr)
                self.assertIn(words.encode(), done.stderr)

    def test_watch(self):
        with tempfile.TemporaryDirectory() as folder:
            def write(text):
                with open(os.path.join(folder, "one.lua"), "w") as file:
                    file.write(text)
            write("return { name = 'one', run = print }")
            process = subprocess.Popen([BIN, "tools", "watch", folder], stdout=subprocess.PIPE, env=CLEAN)
            self.assertEqual(process.stdout.readline(), b"tools: one\n")
            write("return { { name = 'one', run = print }, { name = 'two', run = print } }")
            self.assertEqual(process.stdout.readline(), b"added: two\n")
            self.assertEqual(process.stdout.readline(), b"changed: one\n")
            write("return")
            self.assertIn(b"refused, the old set stays: " + folder.encode(), process.stdout.readline())
            write("return { { name = 'one', run = print }, { name = 'two', run = print } }")
            self.assertEqual(process.stdout.readline(), b"good again, and as it was\n")
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(20), 130)
            process.stdout.close()


class Doctor(unittest.TestCase):
    def test_rows(self):
        done = barchan("doctor", "--json", env={"ANTHROPIC_API_KEY": "sk-very-secret"})
        rows = {row["name"]: row for row in json.loads(done.stdout)}
        self.assertEqual(rows["ANTHROPIC_API_KEY"]["detail"], "set")
        self.assertNotIn(b"sk-very-secret", done.stdout)
        for library in ("libcurl", "libuv", "jansson", "lua"):
            self.assertRegex(rows[library]["detail"], r"^\d+\.\d+")
        self.assertTrue(any(re.search("kernel", name, re.I) for name in rows), rows.keys())
        self.assertEqual(done.returncode, 1 if any(r["state"] == "missing" for r in rows.values()) else 0)
        self.assertIn(b"ANTHROPIC_API_KEY", barchan("doctor").stdout)

    def test_doctor_as_a_root_without_ids(self):
        done = subprocess.run(["unshare", "-Ur", BIN, "doctor"], capture_output=True, timeout=60, env=CLEAN)
        self.assertEqual(done.returncode, 1, done)
        self.assertRegex(done.stdout, rb"MISSING +user_ids .*no ids to give")
        self.assertIn(b"remedy: run as an ordinary user", done.stdout)
        self.assertIn(b"remedy: see what is missing above", done.stdout)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])
