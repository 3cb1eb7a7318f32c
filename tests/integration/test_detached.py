#!/usr/bin/env python3
"""`barchan sandbox` as a person at a shell meets it. BARCHAN_BIN is the program."""
import ctypes
import json
import os
import pty
import random
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

BIN = os.environ["BARCHAN_BIN"]
IS_ROOT = os.geteuid() == 0
# As root the directory is the machine's own; otherwise one of this test's.
RUNTIME = tempfile.TemporaryDirectory(prefix="barchan-test-")
DIRECTORY = "/run/barchan/sandboxes" if IS_ROOT else f"{RUNTIME.name}/barchan/sandboxes"
CLEAN = {k: v for k, v in os.environ.items() if not k.endswith(("_API_KEY", "_BASE_URL"))}
CLEAN["XDG_RUNTIME_DIR"] = RUNTIME.name


def sandbox(*args, stdin=b"", timeout=60, env=None):
    return subprocess.run([BIN, "sandbox", *args], input=stdin, capture_output=True, timeout=timeout,
                          env={**CLEAN, **(env or {})})


def eventually(condition, what, seconds=20):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def all_listed():
    return [json.loads(line) for line in sandbox("list", "--json").stdout.splitlines()]


def listed(id):
    return next((status for status in all_listed() if status["id"] == id), None)


def holder_of(id):
    """The holder has the lock of its sandbox open."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if not file.read().endswith(b"sandbox\0hold\0"):
                    continue
            for fd in os.listdir(f"/proc/{pid}/fd"):
                if os.readlink(f"/proc/{pid}/fd/{fd}") == f"{DIRECTORY}/{id}.lock":
                    return int(pid)
        except OSError:
            pass
    return None


class Case(unittest.TestCase):
    def setUp(self):
        self.ids = []

    def tearDown(self):
        for id in self.ids:
            sandbox("kill", id)
            self.assertIsNone(listed(id))
            self.assertEqual([n for n in os.listdir(DIRECTORY) if n.startswith(id)], [])
            self.assertIsNone(holder_of(id))

    def create(self, *args, **kwargs):
        done = sandbox("create", *args, **kwargs)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertRegex(done.stdout, rb"^sbx-[0-9a-f]{16}\n$")
        id = done.stdout.decode().strip()
        self.ids.append(id)
        return id

    def says(self, args, out, code=0, err=b"", **kwargs):
        done = sandbox(*args, **kwargs)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (code, out, err), args)


class Commands(Case):
    def test_exec_and_its_exit_codes(self):
        id = self.create()
        self.says(["exec", id, "--", "sh", "-c", "echo out; echo err >&2; exit 7"], b"out\n", 7, b"err\n")
        self.says(["exec", id, "echo", "no dashes"], b"no dashes\n")
        self.says(["exec", "--env", "A=b", "--cwd", "/tmp", id, "--", "sh", "-c", "echo $A; pwd"], b"b\n/tmp\n")
        self.says(["exec", "--stdin", id, "--", "wc", "-c"], b"100000\n", stdin=b"x" * 100000)
        self.assertEqual(sandbox("exec", id, "--", "no-such-program").returncode, 127)
        for flags in ([], ["--detach"]):
            done = sandbox("exec", *flags, id, "--", "echo $HOME")
            self.assertIn(f"for a line of shell: barchan sandbox exec {id} -- sh -c '…'".encode(), done.stderr)
        self.assertEqual(sandbox("exec", id, "--", "/etc/passwd").returncode, 126)
        self.assertEqual(sandbox("exec", id, "--", "sh", "-c", "kill -TERM $$").returncode, 143)
        done = sandbox("exec", "--timeout", "0.3", id, "--", "sleep", "100")
        self.assertEqual(done.returncode, 124)
        self.assertIn(b"--timeout allows more", done.stderr)
        result = json.loads(sandbox("exec", "--json", id, "--", "sh", "-c", "echo o; exit 4").stdout)
        self.assertEqual((result["exit_code"], result["out"], result["reason"]), (4, "o\n", "exited"))
        result = json.loads(sandbox("exec", "--json", "--stdin", id, "--", "cat", stdin=b"in").stdout)
        self.assertEqual(result["out"], "in")

    def test_what_is_wrong_is_said(self):
        for words, expected, code in (
                ([], b"create, list, show, exec, shell, cp, changes, apply, snapshot, logs, usage, extend, pause, resume or kill expected", 2),
                (["creat"], b"unknown command 'creat'; did you mean 'create'?", 2),
                (["create", "x"], b"create takes no 'x'", 2),
                (["create", "--on-lease-end", "explode"], b"terminate or pause", 2),
                (["create", "--lease", "99999999"], b"up to 7 days", 125),
                (["create", "--template", "/no/such"], b"/no/such", 125),
                (["exec"], b"the id of a sandbox is missing", 2),
                (["exec", "sbx-0123456789abcdef"], b"a command is missing", 2),
                (["exec", "sbx-0123456789abcdef", "--json", "x"], b"options come before the id", 2),
                (["exec", "--detach", "--json", "sbx-0123456789abcdef", "x"], b"--detach goes without", 2),
                (["exec", "sbx-0123456789abcdef", "true"], b"there is no detached sandbox", 125),
                (["exec", "../../etc", "true"], b"is no id of a sandbox", 125),
                (["kill"], b"the id of a sandbox is missing", 2),
                (["extend", "sbx-0123456789abcdef", "soon"], b"a number of seconds", 2),
                (["cp", "a"], b"one or more sources and a target", 2),
                (["cp", "a", "b"], b"one side is in a sandbox", 2),
                (["cp", "sbx-0123456789abcdef:a", "b", "c"], b"not all in one place", 2),
                (["logs", "a", "b"], b"one id expected", 2)):
            done = sandbox(*words)
            self.assertIn(expected, done.stderr, words)
            self.assertEqual((done.returncode, done.stdout), (code, b""), words)
        self.assertTrue(sandbox("--help").stdout.startswith(b"usage: barchan sandbox create"))

    def test_one_that_cannot_be_told_of_is_none(self):
        def ids():
            return {status["id"] for status in all_listed()}

        before = ids()
        reader, nobody_reads = os.pipe()
        os.close(reader)
        with open("/dev/full", "wb") as full:
            for output, code, words in ((full, 125, b"No space left"), (None, 125, b"Bad file descriptor"),
                                        (nobody_reads, -signal.SIGPIPE, b"")):
                command = ["sh", "-c", 'exec "$@" >&-', "sh"] if output is None else []
                done = subprocess.run([*command, BIN, "sandbox", "create"], stdout=output, stderr=subprocess.PIPE,
                                      timeout=60, env=CLEAN)
                self.assertIn(done.returncode, (code, 128 - code), done.stderr)
                self.assertIn(words, done.stderr)
                eventually(lambda: ids() == before, "one is left")
        os.close(nobody_reads)

    def test_one_that_a_signal_comes_in_between_is_told_of_or_none(self):
        def ids():
            return {status["id"] for status in all_listed()}

        before, told = ids(), set()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            for delay in range(0, 60, 3):
                process = subprocess.Popen([BIN, "sandbox", "create"], stdout=subprocess.PIPE, env=CLEAN)
                time.sleep(delay / 1000)
                process.send_signal(number)
                told |= set(process.communicate(timeout=20)[0].decode().split())
        for id in told:
            self.addCleanup(sandbox, "kill", id)
        eventually(lambda: ids() == before | told, "one is left")

    def test_the_profile(self):
        id = self.create("--env", "WHO=profile", "--limits", "pids=40,wall=1", "--lease", "300")
        self.says(["exec", id, "--", "sh", "-c", "echo $WHO"], b"profile\n")
        done = sandbox("exec", id, "--", "sleep", "100")
        self.assertEqual(done.returncode, 124)
        status = listed(id)
        self.assertTrue(200 < status["lease_left"] <= 300)
        self.assertEqual((status["state"], status["template"]), ("ready", "host"))
        self.assertIn(id.encode() + b"  ready", sandbox("list").stdout)
        shown = json.loads(sandbox("show", id).stdout)
        self.assertEqual((shown["id"], shown["state"], shown["template"]), (id, "ready", "host"))
        self.assertIn("seccomp", shown["layers"])
        self.assertEqual((sandbox("show").returncode, sandbox("show", id, id).returncode), (2, 2))

    def test_lease_pause_and_usage(self):
        id = self.create("--lease", "300")
        self.says(["extend", id, "500"], b"")
        self.assertTrue(700 < listed(id)["lease_left"] <= 800)
        self.assertIn(b"up to 7 days", sandbox("extend", id, "99999999").stderr)
        self.says(["pause", id], b"")
        self.assertEqual(listed(id)["state"], "paused")
        self.assertIn(b"resume it first", sandbox("exec", id, "true").stderr)
        self.says(["resume", id], b"")
        self.says(["exec", id, "echo", "on"], b"on\n")
        self.assertEqual(json.loads(sandbox("usage", id).stdout)["execs"], 1)

    def test_a_lease_ends_it(self):
        id = self.create("--lease", "1")
        eventually(lambda: holder_of(id) is None, "the holder lives on")
        self.assertIn(b"there is no detached sandbox", sandbox("exec", id, "true").stderr)

    def test_kill_waits_until_nothing_runs(self):
        id = self.create()
        holder = holder_of(id)
        command = subprocess.Popen([BIN, "sandbox", "exec", id, "sleep", "1000"], env=CLEAN, stderr=subprocess.PIPE)
        eventually(lambda: listed(id)["running"] == 1, "it does not run")
        self.says(["kill", id], b"")
        eventually(lambda: not os.path.exists(f"/proc/{holder}"), "the holder lives on")
        self.assertIn(b"the sandbox ended while the command ran", command.communicate(timeout=20)[1])
        self.assertEqual(command.returncode, 125)
        self.assertEqual(sandbox("kill", id).returncode, 125)


class Holder(Case):
    def test_it_is_nobodys(self):
        id = self.create(env={"ANTHROPIC_API_KEY": "sk-secret", "OTHER": "x"})
        pid = holder_of(id)
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        self.assertNotEqual(int(fields[1]), os.getpid())
        self.assertEqual(int(fields[3]), os.getsid(pid))
        self.assertNotEqual(os.getsid(pid), os.getsid(0))
        self.assertEqual(int(fields[4]), 0)  # no terminal
        self.assertEqual(os.readlink(f"/proc/{pid}/cwd"), "/")
        with open(f"/proc/{pid}/environ", "rb") as file:
            names = {pair.split(b"=")[0].decode() for pair in file.read().split(b"\0") if pair}
        self.assertLessEqual(names, {"XDG_RUNTIME_DIR", "XDG_DATA_HOME", "HOME", "LD_LIBRARY_PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS",
                                     "LSAN_OPTIONS", "TSAN_OPTIONS", "BARCHAN_GUEST", "BARCHAN_SCRIPTS"})
        for fd in (0, 2):
            self.assertFalse(os.readlink(f"/proc/{pid}/fd/{fd}").startswith("/dev/pts"))

    def test_the_names_are_private(self):
        id = self.create()
        self.assertEqual(os.stat(DIRECTORY).st_mode & 0o7777, 0o700)
        self.assertEqual(os.stat(f"{DIRECTORY}/{id}.sock").st_mode & 0o7777, 0o600)

    def test_a_signal_ends_it_in_order(self):
        id = self.create()
        pid = holder_of(id)
        os.kill(pid, signal.SIGTERM)
        eventually(lambda: not os.path.exists(f"/proc/{pid}"), "it lives on")
        self.assertEqual([n for n in os.listdir(DIRECTORY) if n.startswith(id)], [])

    def test_a_killed_one_is_tidied_up_after(self):
        id = self.create()
        pid = holder_of(id)
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: not os.path.exists(f"/proc/{pid}"), "it lives on")
        self.assertIn(b"there is no detached sandbox", sandbox("exec", id, "true").stderr)
        self.assertTrue(os.path.exists(f"{DIRECTORY}/{id}.lock"))
        done = sandbox("list")
        self.assertIn(b"removed what killed holders had left", done.stderr)
        self.assertFalse(os.path.exists(f"{DIRECTORY}/{id}.lock"))
        self.assertFalse(os.path.exists(f"{DIRECTORY}/{id}.sock"))

    def test_it_ends_when_nobody_has_taken_the_id(self):
        for profile in (b"2\n{}", b"2\n{", b"2\n{}"):
            ours, theirs = socket.socketpair()
            started = subprocess.run([BIN, "sandbox", "hold"], env=CLEAN, stdin=theirs, stdout=theirs, timeout=20)
            theirs.close()
            self.assertEqual(started.returncode, 0)  # it has left; its child goes on
            ours.sendall(profile)
            if profile.endswith(b"}"):
                id = json.loads(ours.recv(1000))["id"]
                self.assertIsNotNone(holder_of(id))
            ours.close()
            eventually(lambda: holder_of(id) is None, "it lives on")
            # One that closes its descriptors while they are listed is not seen.
            eventually(lambda: not os.path.exists(f"{DIRECTORY}/{id}.lock"), "its lock is left")

    def test_one_that_hangs_is_told(self):
        id = self.create()
        pid = holder_of(id)
        os.kill(pid, signal.SIGSTOP)
        try:
            status = listed(id)
            self.assertIn("not ready in time", status["error"])
            self.assertIn(id.encode(), sandbox("list").stdout)
        finally:
            os.kill(pid, signal.SIGCONT)

    def test_stale_names_without_a_lock(self):
        self.create()
        stale = f"{DIRECTORY}/sbx-00000000000000aa"
        for name in (".lock", ".sock"):
            open(stale + name, "w").close()
        open(f"{DIRECTORY}/sbx-00000000000000bb.sock", "w").close()
        self.assertIn(b"removed what", sandbox("list").stderr)
        self.assertEqual([n for n in os.listdir(DIRECTORY) if "0000000000" in n], [])


class Clients(Case):
    def test_a_client_that_dies_takes_its_command_along(self):
        id = self.create()
        for number in (signal.SIGKILL, signal.SIGINT):
            client = subprocess.Popen([BIN, "sandbox", "exec", id, "--", "sleep", "1000"], env=CLEAN)
            eventually(lambda: listed(id)["running"] == 1, "it does not run")
            client.send_signal(number)
            client.wait(20)
            eventually(lambda: listed(id)["running"] == 0, "it runs on")

    def test_detached_commands_and_logs(self):
        id = self.create()
        self.says(["exec", "--detach", id, "--", "sh", "-c", "echo first; echo e >&2; exec sleep 1000"], b"")
        self.assertEqual(listed(id)["running"], 1)
        eventually(lambda: sandbox("logs", id).stdout == b"first\n", "nothing was printed")
        self.assertEqual(sandbox("logs", id).stderr, b"e\n")
        done = sandbox("exec", "--detach", id, "--", "nosuch")
        self.assertEqual(done.returncode, 127)
        self.assertIn(b"cannot start 'nosuch'", done.stderr)
        lines = [json.loads(line) for line in sandbox("logs", "--json", id).stdout.splitlines()]
        self.assertEqual(lines, [{"command": 1, "stream": "out", "data": "first\n"},
                                 {"command": 1, "stream": "err", "data": "e\n"}])

    def test_logs_are_bounded_and_followed(self):
        id = self.create()
        follow = subprocess.Popen([BIN, "sandbox", "logs", "--follow", id], env=CLEAN, stdout=subprocess.PIPE)
        sandbox("exec", id, "--", "echo", "seen")
        self.assertEqual(follow.stdout.readline(), b"seen\n")
        sandbox("exec", id, "--", "head", "-c", "3000000", "/dev/zero")
        done = sandbox("logs", id)
        self.assertIn(b"bytes before these are no longer kept", done.stderr)
        self.assertTrue(900000 < len(done.stdout) <= 1 << 20)
        sandbox("kill", id)
        follow.communicate(timeout=20)
        self.assertEqual(follow.returncode, 0)

    def test_what_is_printed_last_is_followed(self):
        for _ in range(3):
            id = self.create()
            follow = subprocess.Popen([BIN, "sandbox", "logs", "--follow", id], env=CLEAN, stdout=subprocess.PIPE)
            sandbox("exec", id, "--", "echo", "seen")
            self.assertEqual(follow.stdout.readline(), b"seen\n")
            sandbox("exec", id, "--", "sh", "-c", "head -c 700000 /dev/zero | tr '\\0' x; echo last")
            sandbox("kill", id)
            rest, _ = follow.communicate(timeout=20)
            self.assertEqual((len(rest), rest[-5:], follow.returncode), (700005, b"last\n", 0))

    def test_who_follows_hears_that_the_holder_was_killed(self):
        id = self.create()
        follow = subprocess.Popen([BIN, "sandbox", "logs", "--follow", id], env=CLEAN, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE)
        sandbox("exec", id, "--", "echo", "seen")
        self.assertEqual(follow.stdout.readline(), b"seen\n")
        os.kill(holder_of(id), signal.SIGKILL)
        _, words = follow.communicate(timeout=20)
        self.assertEqual(follow.returncode, 125, words)
        self.assertIn(b"barchan: ", words)

    def test_what_is_lost_of_a_log_is_told_once(self):
        id = self.create()
        follow = subprocess.Popen([BIN, "sandbox", "logs", "--follow", id], env=CLEAN, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE)
        sandbox("exec", id, "--", "sh", "-c", "yes | head -c 50000000")
        follow.send_signal(signal.SIGSTOP)
        sandbox("exec", id, "--", "sh", "-c", "yes | head -c 50000000")
        follow.send_signal(signal.SIGCONT)
        sandbox("kill", id)
        _, words = follow.communicate(timeout=20)
        self.assertEqual(follow.returncode, 0, words)
        self.assertIn(b"bytes in between are no longer kept", words)
        self.assertLess(words.count(b"\n"), 100)

    def test_a_client_that_does_not_read_holds_nobody_up(self):
        id = self.create()
        slow = subprocess.Popen([BIN, "sandbox", "exec", id, "--", "cat", "/dev/zero"], env=CLEAN,
                                stdout=subprocess.PIPE)
        eventually(lambda: listed(id)["running"] == 1, "it does not run")
        for _ in range(3):
            self.says(["exec", id, "--", "sh", "-c", "head -c 1000000 /dev/zero | wc -c"], b"1000000\n")
        slow.stdout.close()
        slow.kill()
        slow.wait()

    def test_a_shell(self):
        id = self.create()
        pid, fd = pty.fork()
        if pid == 0:
            os.execve(BIN, [BIN, "sandbox", "shell", id, "--", "sh"], {**CLEAN, "TERM": "dumb"})
        os.write(fd, b"tty && echo $((6 * 7)); exit 5\n")
        seen = b""
        while select.select([fd], [], [], 20)[0]:
            try:
                chunk = os.read(fd, 4096)
            except OSError:
                break
            seen += chunk
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 5)
        self.assertIn(b"/dev/pts/", seen)
        self.assertIn(b"\n42", seen.replace(b"\r", b""))
        self.assertIsNotNone(listed(id))
        done = sandbox("shell", id)
        self.assertIn(b"needs a terminal", done.stderr)


class Copies(Case):
    def setUp(self):
        super().setUp()
        self.folder = tempfile.TemporaryDirectory(prefix="barchan-test-")
        self.at = self.folder.name

    def tearDown(self):
        self.folder.cleanup()
        super().tearDown()

    def put(self, name, data=b"text", mode=0o644):
        path = f"{self.at}/{name}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)
        os.chmod(path, mode)
        return path

    def test_a_tree_there_and_back(self):
        id = self.create()
        big = os.urandom(3000000)
        self.put("src/one")
        self.put("src/a/b/run", b"#!/bin/sh\necho ran\n", 0o755)
        self.put("src/a/big", big)
        self.put("src/a/line\nbreak")
        os.makedirs(f"{self.at}/src/empty")
        os.symlink("one", f"{self.at}/src/link")
        os.symlink("a", f"{self.at}/src/folder-link")
        os.mkfifo(f"{self.at}/src/fifo")
        done = sandbox("cp", f"{self.at}/src", f"{id}:")
        self.assertEqual(done.returncode, 0)
        os.symlink("/etc/hostname", f"{self.at}/src/out-of-it")
        for left_out in (b"src/link", b"folder-link", b"fifo"):
            self.assertIn(left_out, done.stderr)
        self.says(["exec", id, "src/a/b/run"], b"ran\n")
        self.says(["exec", id, "--", "sh", "-c", "ln -s /etc src/evil; mkfifo src/pipe; ls src/link 2>&1 | wc -l; cat src/one"], b"1\ntext")
        done = sandbox("cp", f"{id}:src", f"{self.at}/out")
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"src/evil': it is a symlink", done.stderr)
        with open(f"{self.at}/out/a/big", "rb") as file:
            self.assertEqual(file.read(), big)
        self.assertEqual(os.stat(f"{self.at}/out/a/b/run").st_mode & 0o7777, 0o755)
        self.assertEqual(sorted(os.listdir(f"{self.at}/out")), ["a", "empty", "one"])
        self.assertTrue(os.path.exists(f"{self.at}/out/a/line\nbreak"))
        sandbox("cp", f"{id}:src", f"{self.at}/out")  # into what is there
        self.assertTrue(os.path.exists(f"{self.at}/out/src/one"))

    def test_single_files(self):
        id = self.create()
        one, two = self.put("one", b"1"), self.put("two", b"2")
        self.says(["cp", one, two, f"{id}:/tmp"], b"")
        self.says(["exec", id, "--", "cat", "/tmp/one", "/tmp/two"], b"12")
        self.says(["cp", one, f"{id}:new/name"], b"")
        self.says(["cp", f"{id}:new/name", f"{self.at}/back"], b"")
        with open(f"{self.at}/back") as file:
            self.assertEqual(file.read(), "1")
        os.symlink(two, f"{self.at}/link")
        self.says(["cp", f"{id}:new/name", f"{self.at}/link"], b"")  # replaced, not written through
        with open(two) as file:
            self.assertEqual(file.read(), "2")
        for words in ([f"{self.at}/none", f"{id}:x"], [f"{id}:none", f"{self.at}/x"],
                      [f"{id}:new/name", f"{self.at}/no/such/x"], [one, two, f"{id}:new/name"]):
            done = sandbox("cp", *words)
            self.assertEqual(done.returncode, 125, words)
            self.assertNotEqual(done.stderr, b"")
        self.assertEqual(sorted(os.listdir(self.at)), ["back", "link", "one", "two"])


class Changes(Case):
    """What commands have changed in a copy-on-write mount, told and taken over."""

    def test_changes_and_apply(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (("a", "alpha\n"), ("b", "beta\n"), ("c", "gamma\n")):
                with open(f"{folder}/{name}", "w") as file:
                    file.write(text)
            try:
                os.setxattr(os.memfd_create("probe"), "user.barchan", b"")
            except OSError:
                self.skipTest("copy-on-write needs user attributes on tmpfs (Linux 6.6)")
            id = self.create("--mount", f"{folder}:/workspace:cow")
            self.says(["exec", id, "--", "sh", "-c", "echo more >> a; rm b; mkdir d; echo x > d/x; ln -s a l"], b"")
            told = b"M a\nD b\nA d/\nA d/x\nA l\n"
            self.says(["changes", id], told)
            self.says(["changes", "--target", "/workspace", id], told)
            first = json.loads(sandbox("changes", "--json", id).stdout.splitlines()[0])
            self.assertEqual((first["path"], first["kind"]), ("a", "modified"))
            link = b"- l: a symbolic link; --links makes them\n"
            self.says(["apply", "--dry-run", id, folder], b"M a\nD b\nA d/\nA d/x\n" + link)
            self.assertEqual(sorted(os.listdir(folder)), ["a", "b", "c"])
            done = sandbox("apply", id, folder, "d/", "nosuch", "d/x")
            self.assertEqual((done.stdout, done.stderr, done.returncode),
                             (b"A d/\nA d/x\n", b"barchan: nothing has changed at 'nosuch'\n", 1))
            with open(f"{folder}/a", "w") as file:
                file.write("somebody else's\n")
            done = sandbox("apply", id, folder)
            self.assertEqual(done.returncode, 1)
            self.assertIn(b"'a': it was changed on the host", done.stderr)
            self.says(["apply", "--on-conflict", "skip", "--links", id, folder],
                      b"! a: it was changed on the host\nD b\nA l\n", 1)
            self.says(["apply", "--on-conflict", "overwrite", id, folder], b"M a\n")
            with open(f"{folder}/a") as file:
                self.assertEqual(file.read(), "alpha\nmore\n")
            self.assertEqual(sorted(os.listdir(folder)), ["a", "c", "d", "l"])
            self.says(["changes", id], b"")

    def test_what_is_wrong_is_said(self):
        id = self.create()
        for words, code, said in ((["apply", id], 2, b"folder that takes the changes"),
                                  (["apply", "--on-conflict", "ask", id, "/tmp"], 2, b"refuse, skip or overwrite"),
                                  (["changes", id, "x"], 2, b"one id expected"),
                                  (["changes", "--target", "/nowhere", id], 125, b"/nowhere"),
                                  (["apply", id, "/no/such/folder"], 125, b"/no/such/folder")):
            done = sandbox(*words)
            self.assertEqual(done.returncode, code, words)
            self.assertIn(said, done.stderr, words)


class Crashes(Case):
    """The command that creates, its holder, launcher and guest, killed at any moment."""

    def children(self, pid):
        try:
            with open(f"/proc/{pid}/task/{pid}/children") as file:
                direct = [int(word) for word in file.read().split()]
        except OSError:
            return []
        return direct + [below for child in direct for below in self.children(child)]

    def held_by(self, pid):
        """The id of the sandbox whose lock this process has; None: it has none yet, or is no holder."""
        try:
            for fd in os.listdir(f"/proc/{pid}/fd"):
                target = os.readlink(f"/proc/{pid}/fd/{fd}")
                if target.startswith(DIRECTORY) and target.endswith(".lock"):
                    return os.path.basename(target)[:-5]
        except OSError:
            pass
        return None

    def settle(self, seen):
        """Ends what lives; what was hit goes by itself."""
        deadline = time.monotonic() + 30
        while True:
            try:
                while os.waitpid(-1, os.WNOHANG)[0] != 0:
                    pass
            except ChildProcessError:
                return
            for pid in self.children(os.getpid()):
                id = self.held_by(pid)
                if id and id not in seen:
                    seen.add(id)
                    sandbox("kill", id)
            self.assertLess(time.monotonic(), deadline, "processes are left")
            time.sleep(0.01)

    def test_killed_at_any_moment(self):
        rounds = 300 if os.environ.get("BARCHAN_LONG") else 20
        seed = random.randrange(1 << 30)
        print(f"{rounds} rounds, seed {seed}")
        choose = random.Random(seed)
        PR_SET_CHILD_SUBREAPER = 36
        libc = ctypes.CDLL(None)
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self.addCleanup(libc.prctl, PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
        seen = set()
        # At its end a leak checker has a process of its own look at the program, and waits for it without
        # end when it is killed.
        env = {**CLEAN, "ASAN_OPTIONS": CLEAN.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}
        for _ in range(rounds):
            creator = subprocess.Popen([BIN, "sandbox", "create"], env=env, stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL)
            time.sleep(choose.uniform(0, 0.08))
            victims = self.children(os.getpid())
            if victims:
                os.kill(choose.choice(victims), signal.SIGKILL)
            creator.communicate(timeout=40)
            self.settle(seen)
        sandbox("list")
        left = [name for name in os.listdir(DIRECTORY) if not IS_ROOT or name[:20] in seen]
        self.assertEqual(left, [])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]], verbosity=2)
