#!/usr/bin/env python3
"""The program `barchan`: what all commands have, and exec."""
import fcntl
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import time
import unittest

from program import BIN, CLEAN, EXAMPLES, barchan


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
                (["--versoin"], b"unknown option '--versoin'; did you mean '--version'?"),
                (["--hlep=1"], b"unknown option '--hlep'; did you mean '--help'?"),
                (["exec", "--timout", "3", "--", "ls"], b"unknown option '--timout'; did you mean '--timeout'?"),
                (["ask", "--modle", "x"], b"did you mean '--model'"),
                (["exec"], b"a command is missing"),
                (["exec", "--timeout", "soon", "--", "ls"], b"--timeout takes a number of seconds, got 'soon'"),
                (["sandbox", "create", "--lease", "30d"], b"--lease takes a number of seconds, got '30d'"),
                (["exec", "--timeout", "1e6", "--", "ls"], b"--timeout is at most 604800 seconds"),
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

    def test_the_version_alone(self):
        done = barchan("--version", "extra")
        self.assertEqual((done.returncode, done.stdout), (2, b""))
        self.assertIn(b"--version takes no 'extra'", done.stderr)

    def test_what_commands_take_is_in_their_help(self):
        for words in (["exec"], ["ask"], ["shell"], ["sandbox"], ["template"], ["network"]):
            self.assertIn(b"--host", barchan(*words, "--help").stdout, words)
        for words in (["exec"], ["ask"], ["shell"], ["sandbox"], ["template"], ["tools"]):
            self.assertIn(b"--best-effort", barchan(*words, "--help").stdout, words)
        self.assertIn(b"Secrets", barchan("sandbox", "--help").stdout)
        self.assertRegex(barchan("ask", "--help").stdout, rb"125 the model could not be asked")

    def test_what_the_library_does_not_take_is_wrong_usage(self):
        done = barchan("sandbox", "create", "--lease", "1e300")
        self.assertEqual((done.returncode, done.stdout), (2, b""))
        self.assertTrue(done.stderr.startswith(b"barchan sandbox: option 'lease' is at most"), done.stderr)


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
        for name, words in (("events", ("run_finished", "tools_reload_failed")), ("detached", ("secrets", "on_connect", "on_event")),
                            ("secrets", ("Detached", )), ("barchan", ("invalid_argument", "throws")),
                            ("policies", ("`false`", "`true`", '"allow"', "rewrite")), ("tools", ("64 KiB", "pattern")),
                            ("prices", ('barchan.prices["openai:', '"lua:', "never 0", "cache_read?", "barchan.presets.", "key?"))):
            text = barchan("docs", name).stdout.decode()
            for word in words:
                self.assertIn(word, text)
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
                            ("pids=5M", b"takes no unit"), ("memory=99999999999G", b"too large"),
                            ("pids=1.5", b"whole number"), ("pids=0", b"greater"),
                            ("pids=5,pids=6", b"pids stands there twice")):
            done = barchan("exec", "--limits", text, "--", "true")
            self.assertEqual(done.returncode, 2, text)
            self.assertIn(words, done.stderr)

    def test_best_effort(self):
        without = [f"{os.environ['BARCHAN_BUILD']}/tests/hostile/without", "cgroups"] if os.geteuid() == 0 else []

        def run(*words):  # where there are no control groups, which `cpus` needs
            return subprocess.run([*without, BIN, *words], capture_output=True, timeout=60, env=CLEAN)
        limit = ["--limits", "cpus=0.5"]
        refused = run("exec", *limit, "--", "true")
        if refused.stdout.startswith(b"SKIP") or refused.returncode == 0:
            self.skipTest("control groups cannot be taken away here")
        replay = ["--replay", f"{EXAMPLES}/data/prime.jsonl", "?"]
        for words, rest in ((["exec"], ["--", "true"]), (["ask"], replay)):
            done = run(*words, *limit, *rest)
            self.assertEqual(done.returncode, 125, words)
            self.assertIn(b"'cpus' needs control groups", done.stderr)
            done = run(*words, "--best-effort", *limit, *rest)
            self.assertEqual(done.returncode, 0, (words, done.stderr))
        done = run("tools", "call", "--best-effort", "exec", '{"command":"echo hi"}')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(run("shell", "--best-effort").returncode, 125)  # needs a terminal

    def test_mounts(self):
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            with open(f"{folder}/f", "w") as file:
                file.write("shown")
            done = barchan("exec", "--mount", f"{folder}:/mnt/data", "--", "cat", "/mnt/data/f")
            self.assertEqual(done.stdout, b"shown")
            os.mkdir(f"{folder}/below")
            for source, cwd in ((".", folder), ("./", folder), ("..", f"{folder}/below"), ("./below/..", folder),
                                (os.path.basename(folder), os.path.dirname(folder))):
                done = barchan("exec", "--mount", f"{source}:/mnt/data", "--", "cat", "/mnt/data/f", cwd=cwd,
                               env={"PWD": "/usr"})
                self.assertEqual(done.stdout, b"shown", (source, done.stderr))
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

    def test_what_cannot_be_reached_is_told(self):
        with socket.socket() as held:  # bound, and nobody listens
            held.bind(("127.0.0.1", 0))
            port = held.getsockname()[1]
            done = barchan("exec", "--host", "x.example=127.0.0.1", "--allow", f"x.example:{port}",
                           "--allow", f"127.0.0.1:{port}", "--", "python3", "-c",
                           f"import socket; s = socket.create_connection(('x.example', {port}), 10); "
                           "s.sendall(b'GET / HTTP/1.1\\r\\nHost: x.example\\r\\n\\r\\n'); s.recv(1)")
        self.assertIn(f"barchan: network: x.example:{port} could not be reached: connect: Connection refused\n".encode(),
                      done.stderr)


def is_full(pipe, seconds=20):
    waiting, size = bytearray(4), fcntl.fcntl(pipe, fcntl.F_GETPIPE_SZ)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        fcntl.ioctl(pipe, termios.FIONREAD, waiting)
        if int.from_bytes(waiting, sys.byteorder) >= size:
            return True
        time.sleep(0.01)
    return False


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

    def test_a_full_disk_for_errors(self):
        self.assertEqual(self.shell("exec $B exec -- sh -c 'echo lost >&2' 2>/dev/full").returncode, 125)
        self.assertEqual(self.shell("exec $B exec -- sh -c 'echo lost >&2' 2>/dev/null").returncode, 0)
        with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
            print("print 'lost'", file=script, flush=True)
            done = self.shell(f"exec $B run {script.name} >/dev/full")
            self.assertEqual(done.stderr, b"barchan: cannot write standard output: No space left on device\n")

    def test_a_signal_while_nobody_reads(self):
        """It waits in a write, and what comes of that is no failure to write."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            process = subprocess.Popen([BIN, "exec", "--", "cat", "/dev/zero"], stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, env=CLEAN)
            self.assertTrue(is_full(process.stdout), process.poll())
            process.send_signal(number)
            with process.stdout:
                # It was about to write when the signal came: then nothing interrupts that, and it is ended.
                self.assertIn(process.wait(20), (128 + number, -number))
            with process.stderr:
                self.assertEqual(process.stderr.read(), b"")

    def test_closed_descriptors(self):
        self.assertEqual(self.shell("exec $B --version <&- 2>&-").returncode, 0)
        self.assertEqual(self.shell("exec $B exec -- true <&- >&- 2>&-").returncode, 0)
        self.assertEqual(self.shell("exec $B exec -- echo hi >&-").returncode, 125)
        done = self.shell("exec $B exec --stdin -- cat <&-")
        self.assertEqual(done.returncode, 125)
        self.assertIn(b"standard input", done.stderr)

    def test_nobody_reads_any_more(self):
        """As other programs it ends without a word, whatever it was at."""
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (("print", "while true do print 'y' end"), ("write", "while true do io.write 'y\\n' end")):
                with open(os.path.join(folder, name), "w") as file:
                    file.write(text)
            for command in ("exec -- yes", f"run {folder}/print", f"run {folder}/write"):
                done = self.shell(f"{{ $B {command}; echo $? >&2; }} | head -n 1")
                self.assertNotEqual(done.stdout, b"", command)
                self.assertEqual(done.stderr, b"141\n", command)

    def test_bytes_in_json(self):
        result = json.loads(barchan("exec", "--json", "--", "printf", "a\\377b").stdout)
        self.assertEqual((result["out"], result["out_encoding"]), ("Yf9i", "base64"))


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
        self.assertRegex(barchan("doctor").stdout, rb"\n- +sandbox\.probe +made for this check, with small limits of its own")

    def test_doctor_as_a_root_without_ids(self):
        done = subprocess.run(["unshare", "-Ur", BIN, "doctor"], capture_output=True, timeout=60, env=CLEAN)
        self.assertEqual(done.returncode, 1, done)
        self.assertRegex(done.stdout, rb"MISSING +user_ids .*no ids to give")
        self.assertIn(b"remedy: run as an ordinary user", done.stdout)
        self.assertIn(b"remedy: see what is missing above", done.stdout)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]], verbosity=2)
