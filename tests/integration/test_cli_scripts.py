#!/usr/bin/env python3
"""The program `barchan`: what it runs and loads, run and tools."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest

from program import BIN, CLEAN, barchan


class Run(unittest.TestCase):
    def script(self, text, *args, flags=()):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "script.lua")
            with open(path, "w") as file:
                file.write(text)
            with open(os.path.join(folder, "beside.lua"), "w") as file:
                file.write("return { name = 'beside' }")
            return barchan("run", *flags, path, *args)

    def test_a_script_gets_its_arguments_and_neighbours(self):
        done = self.script("print(arg[1], select('#', ...), require 'beside'.name)", "one", "--two")
        self.assertEqual((done.returncode, done.stdout), (0, b"one\t2\tbeside\n"))

    def test_errors(self):
        done = self.script("local x = nil\nx()")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"script.lua:2:", done.stderr)
        self.assertRegex(done.stderr, rb"traceback:\n(?s:.*)script.lua:2: in [^\n]*\n$")
        self.assertNotIn(b"barchan/cli", done.stderr)
        for flags in ([], ["--watch"]):
            done = self.script("return { turn = function() error 'oh' end }", flags=flags)
            self.assertIn(b"script.lua:1: oh\nstack traceback:\n", done.stderr)
            self.assertNotIn(b"barchan/cli", done.stderr)
            gone = barchan("run", *flags, "/no/such.lua")
            self.assertEqual((gone.returncode, gone.stderr.count(b"\n")), (1, 1), gone.stderr)
        self.assertIn(b"script.lua:1:", self.script("return {").stderr)
        self.assertEqual(self.script("return 9").returncode, 9)
        self.assertEqual(self.script("return 256").returncode, 1)
        lost = self.script("local b = require 'barchan' b.spawn(function() error 'lost' end) b.sleep(0.05) collectgarbage()")
        self.assertIn(b"a task failed and nobody waited for it", lost.stderr)
        gone = barchan("run", "/no/such.lua")
        self.assertEqual((gone.returncode, gone.stderr), (1, b"barchan: cannot read /no/such.lua: No such file or directory\n"))
        self.assertNotIn(b"traceback", self.script("return {").stderr)

    def test_what_a_callback_gets_wrong_is_said_at_once(self):
        for body, said in (("error('oh')", b"on_connect failed: "), ("error { why = 1 }", b'on_connect failed: {"why":1}'), ("return 'yes'", b"got a string; a.example was refused"),
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

    def test_what_a_tool_logs_is_no_answer(self):
        text = "{ name = 'shout', run = function(_, ctx) ctx.log('x', 1) return 'loud' end }"
        script = f"print 'printed' print(require 'barchan'.toolset {{ {text} }}:dispatch {{ id = '1', name = 'shout', " \
                 "arguments = {} }.content)"
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/shout.lua", "w") as file:
                file.write("return " + text)
            done = barchan("tools", "call", "shout", "--dir", folder)
            self.assertEqual((done.stdout, done.stderr), (b"loud\n", b"shout:\tx\t1\n"))
            with open(f"{folder}/run.lua", "w") as file:
                file.write(script)
            done = barchan("run", f"{folder}/run.lua")
            self.assertEqual((done.stdout, done.stderr), (b"printed\nloud\n", b"shout:\tx\t1\n"))

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

    def test_check_says_every_fault(self):
        with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
            for path, text in (
                    (f"{first}/a.lua", "return { name = 'a b', run = print }"), (f"{first}/b.lua", "return {"),
                    (f"{first}/c.lua", "return 5"), (f"{first}/good.lua", "return { name = 'good', run = print }"),
                    (f"{first}/helper.lua", "return { help = print }"),
                    (f"{first}/wants.lua", "local h = require 'helper'\nerror 'oh'"),
                    (f"{first}/wants_b.lua", "return require 'b'"),
                    (f"{second}/twice.lua", "return { { name = 'x', run = print }, { name = 'x', run = print } }")):
                with open(path, "w") as file:
                    file.write(text)
            done = barchan("tools", "check", first, f"{first}/nodir", second)
            self.assertEqual((done.returncode, done.stdout), (1, b""))
            lines = done.stderr.decode().splitlines()
            for line, start, words in zip(lines, (
                    f"{first}/b.lua:1: ", f"{first}/wants.lua:2: ", f"{first}/a.lua: ", f"{first}/c.lua: ", "barchan: ",
                    f"{second}/twice.lua: "), ("near <eof>", "oh", "'a b'", "got a number", "nodir", "defined in")):
                self.assertTrue(line.startswith(start), lines)
                self.assertIn(words, line)
            self.assertEqual(len(lines), 6, lines)
        done = barchan("tools", "check", "/nope")
        self.assertEqual(done.stderr, b"barchan: find '/nope': No such file or directory\n")

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


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]], verbosity=2)
