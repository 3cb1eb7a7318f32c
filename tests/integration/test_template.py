#!/usr/bin/env python3
"""barchan template as a person at a shell meets it. BARCHAN_BIN is the program."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

BIN = os.environ["BARCHAN_BIN"]
PLACE = tempfile.TemporaryDirectory(prefix="barchan-test-")
CLEAN = {k: v for k, v in os.environ.items() if not k.endswith(("_API_KEY", "_BASE_URL"))}
CLEAN["XDG_DATA_HOME"] = f"{PLACE.name}/share"
CLEAN["XDG_RUNTIME_DIR"] = f"{PLACE.name}/run"
TEMPLATES = f"{PLACE.name}/share/barchan/templates"
os.mkdir(CLEAN["XDG_RUNTIME_DIR"], 0o700)


def barchan(*args, env=None, timeout=120):
    done = subprocess.run([BIN, *args], input=b"", capture_output=True, timeout=timeout,
                          env={**CLEAN, **(env or {})})
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def copies_work():
    entries = barchan("doctor", "--json")[1]
    return not re.search(r'"copy_on_write"[^}]*"missing"', entries)


def folders():
    if not os.path.exists(TEMPLATES):
        return []
    return [name for name in os.listdir(TEMPLATES) if name.startswith(".t-")]


class Templates(unittest.TestCase):
    def tearDown(self):
        names = [json.loads(line)["name"] for line in barchan("template", "list", "--json")[1].splitlines()]
        if names:
            self.assertEqual(barchan("template", "rm", *names), (0, "", ""))
        self.assertEqual(folders(), [])

    def build(self, name, *args, **kwargs):
        code, out, err = barchan("template", "build", name, *args, **kwargs)
        self.assertEqual(code, 0, err)
        self.assertIn(f"barchan: template {name}: ", err)
        return out

    def cat(self, template, path):
        return barchan("exec", "--template", template, "--", "cat", path)

    def test_build_and_use(self):
        out = self.build("one", "--from", "host", "--env", "WHO=me", "--run", "echo hello $WHO | tee file; env | grep -c WHO",
                         "--run", "cat file")
        self.assertEqual(out, "hello me\n1\nhello me\n")
        self.assertEqual(self.cat("one", "file"), (0, "hello me\n", ""))
        code, out, err = barchan("exec", "--template", "one", "--", "sh", "-c", "rm file; ls; echo $WHO")
        self.assertEqual((code, out, err), (0, "\n", ""))
        self.build("two", "--from", "one", "--run", "cat file > copy")
        self.assertEqual(barchan("template", "rm", "one"), (0, "", ""))
        self.assertEqual(self.cat("two", "copy"), (0, "hello me\n", ""))
        code, out, _ = barchan("template", "show", "two")
        shown = json.loads(out)
        self.assertEqual((code, shown["name"], shown["base"], shown["note"]), (0, "two", "host", "cat file > copy"))
        code, out, _ = barchan("template", "list")
        self.assertRegex(out, r"^NAME +SIZE +FILES +MADE +FROM\ntwo +18 B +6 +\d{4}-\d\d-\d\d \d\d:\d\d  host\n$")

    def test_a_package(self):
        self.build("py", "--run", "mkdir -p ~/.local/lib; echo 'answer = 42' > ~/.local/lib/mine.py")
        code, out, err = barchan("exec", "--template", "py", "--env", "PYTHONPATH=/home/user/.local/lib", "--",
                                 "python3", "-c", "import mine; print(mine.answer)")
        self.assertEqual((code, out), (0, "42\n"), err)

    def test_a_command_that_fails(self):
        code, out, err = barchan("template", "build", "bad", "--run", "echo so far; echo why >&2; exit 7", "--run",
                                 "echo never")
        self.assertEqual((code, out), (7, "so far\n"))
        self.assertIn("why\nbarchan: this command failed with exit code 7; no template was made\n", err)
        code, _, err = barchan("template", "build", "bad", "--timeout", "0.3", "--run", "sleep 100")
        self.assertEqual(code, 124)
        self.assertIn("--timeout allows more", err)
        code, _, err = barchan("template", "build", "bad", "--limits", "disk=1M", "--run",
                               "head -c 3000000 /dev/zero > big")
        self.assertNotEqual(code, 0)
        code, _, err = barchan("template", "show", "bad")
        self.assertEqual(code, 125)
        said = "barchan: unknown template 'bad': there is none yet\n"
        self.assertEqual((err, folders()), (said, []))
        code, _, err = barchan("template", "rm", "bad")
        self.assertEqual((code, err), (125, said.replace("unknown", "remove template: unknown")))

    def test_names_and_words(self):
        self.build("kept", "--run", "echo 1 > file")
        code, _, err = barchan("template", "build", "kept", "--run", "echo 2 > file; echo ran > /dev/tty")
        self.assertEqual((code, err), (125, "barchan: there is a template 'kept' already; --replace takes its place\n"))
        self.build("kept", "--from", "kept", "--replace", "--run", "echo 2 >> file")
        self.assertEqual(self.cat("kept", "file"), (0, "1\n2\n", ""))
        for words, expected in (
                (["build"], "build takes one name"), (["build", "x"], "build needs --run"),
                (["build", "x", "--repalce"], "did you mean '--replace'"), (["rm"], "the name of a template is missing"),
                (["show"], "show takes one name"), (["list", "x"], "list takes no 'x'"),
                (["lsit"], "did you mean 'list'"), ([], "build, list, show or rm expected")):
            code, out, err = barchan("template", *words)
            self.assertEqual((code, out), (2, ""), words)
            self.assertIn(expected, err)
        for name in ("host", "A", "../x", ".t-0123456789abcdef"):
            code, _, err = barchan("template", "build", name, "--run", "true")
            self.assertEqual(code, 125, name)
            self.assertIn("is no name for a template", err)
        code, _, err = barchan("exec", "--template", "none", "--", "true")
        self.assertEqual(code, 125)
        self.assertIn("unknown template 'none': there are: kept;", err)
        self.assertTrue(barchan("template", "--help")[1].startswith("usage: barchan template build"))

    def test_a_place_that_cannot_be_read_is_not_empty(self):
        place = tempfile.mkdtemp(prefix="barchan-test-")
        os.chmod(place, 0)
        try:
            done = subprocess.run([BIN, "template", "list"], capture_output=True, timeout=60,
                                  env={**CLEAN, "XDG_DATA_HOME": place + "/share"},
                                  user=65534 if os.geteuid() == 0 else None)
        finally:
            os.rmdir(place)
        self.assertEqual((done.returncode, done.stdout), (125, b""))
        self.assertIn(b"Permission denied", done.stderr)

    def test_in_use(self):
        self.build("used", "--run", "echo 1 > file")
        code, out, err = barchan("sandbox", "create", "--template", "used", "--lease", "300")
        self.assertEqual(code, 0, err)
        id = out.strip()
        try:
            code, out, err = barchan("template", "rm", "used")
            self.assertEqual(code, 125)
            self.assertIn("template 'used' is in use by 1 sandbox", err)
            code, out, err = barchan("sandbox", "exec", id, "--", "sh", "-c", "cat file; echo 2 >> file")
            self.assertEqual((code, out), (0, "1\n"), err)
            code, out, err = barchan("sandbox", "snapshot", id, "later")
            self.assertEqual((code, out), (0, ""), err)
            self.assertIn("barchan: template later: ", err)
            self.assertEqual(self.cat("later", "file"), (0, "1\n2\n", ""))
            code, _, err = barchan("sandbox", "snapshot", id, "later")
            self.assertEqual(code, 125)
            self.assertIn("there is a template 'later' already; replace it (--replace), or take another name", err)
            self.assertEqual(barchan("sandbox", "snapshot", "--replace", id, "later")[0], 0)
            self.assertEqual(barchan("sandbox", "snapshot", id)[0], 2)
            barchan("sandbox", "exec", "--detach", id, "--", "sleep", "1000")
            code, _, err = barchan("sandbox", "snapshot", id, "never")
            self.assertEqual(code, 125)
            self.assertRegex(err, r"snapshot: 1 process runs: \d+ sleep 1000")
        finally:
            self.assertEqual(barchan("sandbox", "kill", id)[0], 0)

    def test_a_root_directory_as_base(self):
        code, _, err = barchan("template", "build", "based", "--from", "/nonexistent", "--run", "true")
        self.assertEqual(code, 125)
        self.assertIn("/nonexistent", err)
        root = f"{PLACE.name}/root"
        os.makedirs(f"{root}/bin", exist_ok=True)
        shutil.copy("/bin/busybox" if os.path.exists("/bin/busybox") else "/bin/sh", f"{root}/bin/sh")
        for lib in re.findall(r"(/\S+)", subprocess.run(["ldd", f"{root}/bin/sh"], capture_output=True).stdout.decode()):
            if os.path.isfile(lib):
                os.makedirs(root + os.path.dirname(lib), exist_ok=True)
                shutil.copy(lib, root + lib)
        os.chmod(PLACE.name, 0o755)
        self.build("based", "--from", root, "--run", "echo text > file")
        code, out, err = barchan("exec", "--template", "based", "--", "sh", "-c", "read x < file; echo $x; cd /usr || echo no")
        self.assertEqual((code, out.splitlines()[0]), (0, "text"), err)
        self.assertEqual(json.loads(barchan("template", "show", "based")[1])["base"], root)

    def test_nothing_runs_where_no_template_can_be_kept(self):
        for place in ("/proc", "/proc/none"):  # where nobody, not even root, makes a folder
            code, out, err = barchan("template", "build", "lost", "--run", "echo ran", env={"XDG_DATA_HOME": place})
            self.assertEqual((code, out), (125, ""))
            self.assertRegex(err, "^barchan: no template can be made: .*/proc")

    def test_killed(self):
        self.build("old", "--run", "echo 1 > file")
        for i in range(12):
            process = subprocess.Popen([BIN, "template", "build", "old", "--replace", "--run",
                                        "for i in $(seq 500); do echo 2 > f$i; done; echo 2 > file"],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=CLEAN)
            time.sleep(0.03 + i * 0.02)
            process.send_signal(signal.SIGKILL)
            process.wait()
            code, out, err = barchan("template", "list", "--json")
            self.assertEqual((code, len(out.splitlines())), (0, 1), err)
            self.assertEqual(len(folders()), 1)
            self.assertIn(self.cat("old", "file")[1], ("1\n", "2\n"))

    def test_the_folders_are_private(self):
        self.build("own", "--run", "echo secret > file")
        for path in (f"{PLACE.name}/share/barchan", TEMPLATES, f"{TEMPLATES}/{folders()[0]}"):
            self.assertEqual(os.stat(path).st_mode & 0o777, 0o700)
        os.chmod(TEMPLATES, 0o770)
        try:
            code, _, err = barchan("template", "list")
            self.assertEqual(code, 125)
            self.assertIn("is not this user's alone: remove it, or set XDG_DATA_HOME", err)
        finally:
            os.chmod(TEMPLATES, 0o700)

    def test_without_a_place(self):
        env = {k: v for k, v in CLEAN.items() if k not in ("HOME", "XDG_DATA_HOME")}
        done = subprocess.run([BIN, "template", "list"], capture_output=True, env=env)
        self.assertEqual(done.returncode, 125)
        self.assertIn(b"set XDG_DATA_HOME or HOME", done.stderr)


if __name__ == "__main__":
    if not copies_work():
        print("SKIP templates: copy-on-write needs user attributes on tmpfs (Linux 6.6)")
        sys.exit(0)
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]], verbosity=2)
