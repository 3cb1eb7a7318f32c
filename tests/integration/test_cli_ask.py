#!/usr/bin/env python3
"""The program `barchan`: ask, and what a person at a terminal sees and types."""
import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

from program import BIN, CLEAN, EXAMPLES, barchan


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

    def test_what_a_tool_logs_is_between_the_lines_of_standard_error(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/run_python.lua", "w") as file:
                file.write("return { name = 'run_python', run = function(_, ctx) ctx.log 'at work' return '7919' end }")
            words = ["ask", "--replay", self.replay, "--tools", "run_python", "--tool-dir", folder, "?"]
            done = barchan(*words, "--json")
            for line in done.stdout.splitlines():
                self.assertIn("type", json.loads(line))
            self.assertEqual(done.stderr, b"run_python:\tat work\n")
            done = barchan(*words)
            self.assertNotIn(b"at work", done.stdout)
            self.assertRegex(done.stderr, rb"> run_python .*\nrun_python:\tat work\n  done in")

    def test_errors_are_in_words_of_the_command_line(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/bad.lua", "w") as file:
                file.write("return {")
            for words, said in ((["--tools", "run_pyton"], "unknown tool 'run_pyton'; did you mean 'run_python'?"),
                                (["--policy", "readonly"], "unknown policy 'readonly'; did you mean 'read_only'?"),
                                (["--tool-dir", f"{folder}/no"], f"find '{folder}/no': No such file or directory"),
                                (["--policy-dir", folder], f"{folder}/bad.lua:1: unexpected symbol near <eof>")):
                done = barchan("ask", "--replay", self.replay, *words, "hi")
                self.assertEqual((done.returncode, done.stderr.decode()),
                                 (2, f"barchan ask: {said}\nbarchan ask --help tells how it is used.\n"))
        done = barchan("ask", "--model", "openai:x", "--base-url", "http://10.0.0.1/v1", "hi", env={"OPENAI_API_KEY": "k"})
        self.assertEqual(done.returncode, 125)
        self.assertIn(b"use https, or allow it by --allow-plain-http (permission)", done.stderr)

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


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]], verbosity=2)
