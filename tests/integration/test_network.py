#!/usr/bin/env python3
"""Programs as people use them, inside a sandbox with a network and without any setting of a proxy: to
a host of the list they work; to another they fail, show why in the way of their protocol, and the
result names the host. The servers are this test's, on loopback. BARCHAN_BIN is the program."""
import json
import os
import shutil
import subprocess
import tempfile
import unittest

from network_world import World

BIN = os.environ["BARCHAN_BIN"]
HERE = os.path.dirname(os.path.abspath(__file__))
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
CLEAN = {k: v for k, v in os.environ.items() if k.lower() not in PROXIES}
world = None


def setUpModule():
    global world, folder
    folder = tempfile.TemporaryDirectory()
    world = World(folder.name)


def tearDownModule():
    world.stop()
    folder.cleanup()


def inside(command, ports=None, **job):
    """What a command in a sandbox did that may reach allowed.example, and no other name, at these ports."""
    ports = ports or (world.http.server_port, world.https.server_port)
    allow = [f"{host}:{port}" for port in ports for host in ("allowed.example", "127.0.0.1")]
    job = {"network": {"allow": allow, "hosts": {"allowed.example": "127.0.0.1", "refused.example": "127.0.0.1"}},
           "files": {"ca.pem": world.authority}, "command": command, "env": {"HOME": "/workspace"}, **job}
    done = subprocess.run([BIN, "run", os.path.join(HERE, "network_job.lua")], input=json.dumps(job).encode(),
                          capture_output=True, timeout=120, env=CLEAN)
    if done.returncode != 0:
        raise AssertionError(done.stderr.decode())
    return {"denied": [], **json.loads(done.stdout)}


def needs(*programs):
    """Of the sandbox: it shows the machine's /usr."""
    missing = [name for name in programs if shutil.which(name, path="/usr/bin:/bin") is None]
    return unittest.skipIf(missing, f"{' and '.join(missing)} not installed")


class Case(unittest.TestCase):
    def setUp(self):
        for server in (world.http, world.https):
            server.seen.clear()

    def works(self, command, words, **job):
        done = inside(command, **job)
        self.assertEqual((done["code"], done["denied"]), (0, []), (command, done))
        self.assertIn(words, done["out"], done)
        host = [host for host in done["network"] if host["host"] == "allowed.example"]
        self.assertEqual(len(done["network"]), 1, done)
        self.assertGreater(host[0]["bytes_received"], 0)
        return done

    def fails(self, command, port, words, rule="not in the allow-list", host="refused.example", **job):
        """Fails, with any of these words; nothing of it arrives."""
        done = inside(command, **job)
        self.assertNotEqual(done["code"], 0, (command, done))
        if isinstance(words, str):
            words = [words]
        shown = done["out"] + done["err"]
        self.assertTrue(any(word in shown for word in words), (words, done))
        self.assertEqual({(d["host"], d["port"]) for d in done["denied"]}, {(host, port)}, done)
        self.assertIn(rule, done["denied"][0]["rule"])
        for server in (world.http, world.https):
            self.assertEqual([seen for seen in server.seen if "refused" in seen[0]], [])
        return done

    def urls(self, path):
        """http and https of the allowed and the refused host."""
        ports = {"http": world.http.server_port, "https": world.https.server_port}
        return {(scheme, host): f"{scheme}://{host}.example:{port}{path}"
                for scheme, port in ports.items() for host in ("allowed", "refused")}


class Programs(Case):
    @needs("curl")
    def test_curl(self):
        urls, env = self.urls("/hello.txt"), {"CURL_CA_BUNDLE": "/workspace/ca.pem", "HOME": "/workspace"}
        for scheme in "http", "https":
            self.works(f"curl -sSf {urls[scheme, 'allowed']}", "hello from the world", env=env)
        self.fails(f"curl -sSf {urls['http', 'refused']}", world.http.server_port, "error: 403", env=env)
        self.fails(f"curl -sSf {urls['https', 'refused']}", world.https.server_port, "access denied", env=env)
        # Without -f the refusal's words are the body.
        body = inside(f"curl -sSi {urls['http', 'refused']}")["out"]
        self.assertIn("HTTP/1.1 403 Forbidden", body)
        self.assertIn(f"This sandbox may not reach refused.example:{world.http.server_port}: not in the allow-list", body)
        # On the ports of the web it is the same, whatever the list says of them.
        self.fails("curl -sSf http://refused.example/", 80, "error: 403")
        self.fails("curl -sSf https://refused.example/", 443, "access denied")

    @needs("curl")
    def test_curl_cannot_be_led_away(self):
        http, https = world.http.server_port, world.https.server_port
        self.fails(f"curl -sSfL http://allowed.example:{http}/to-the-refused", http, "error: 403")
        self.assertEqual(len(world.http.seen), 1)
        # Another name for the sandbox's own address of an allowed host.
        self.fails(f"curl -sSf -H 'Host: refused.example' http://allowed.example:{http}/hello.txt", http, "error: 403",
                   "the HTTP Host is another host: refused.example", "allowed.example")
        to = f"refused.example:{https}:allowed.example:{https}"
        self.fails(f"curl -sSf --cacert ca.pem --connect-to {to} https://refused.example:{https}/hello.txt", https,
                   "access denied", "the TLS server name is another host: refused.example", "allowed.example")
        # By way of an allowed host as if it were a proxy.
        proxy = f"-x http://allowed.example:{http}"
        self.fails(f"curl -sSf {proxy} http://refused.example:{http}/hello.txt", http, "error: 403",
                   "another host: refused.example", "allowed.example")
        self.fails(f"curl -sSf --cacert ca.pem {proxy} https://refused.example:{https}/hello.txt", http, "403",
                   "HTTP CONNECT to refused.example", "allowed.example")
        self.works(f"curl -sSf --cacert ca.pem https://allowed.example:{https}/hello.txt", "hello")

    @needs("curl", "node")
    def test_http2_passes_through(self):
        server = subprocess.Popen(["/usr/bin/node", f"{HERE}/../support/h2_server.mjs", f"{folder.name}/server.pem",
                                   f"{folder.name}/server.key"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            port = int(server.stdout.readline())
            curl = "curl -sSf --http2 --cacert ca.pem -w ' over %{http_version}'"
            done = self.works(f"{curl} https://allowed.example:{port}/", " over 2", ports=[port])
            self.assertIn('"text":"2.0 1"', done["out"])
            self.fails(f"{curl} https://refused.example:{port}/", port, "access denied", ports=[port])
        finally:
            server.communicate()

    @needs("wget")
    def test_wget(self):
        urls = self.urls("/hello.txt")
        wget = "wget -nv -t 1 -O - --ca-certificate=ca.pem"
        for scheme in "http", "https":
            self.works(f"{wget} {urls[scheme, 'allowed']}", "hello from the world")
        self.fails(f"{wget} {urls['http', 'refused']}", world.http.server_port, "403")
        self.fails(f"{wget} {urls['https', 'refused']}", world.https.server_port, ["access denied", "SSL"])

    @needs("python3")
    def test_python(self):
        urls, env = self.urls("/hello.txt"), {"SSL_CERT_FILE": "/workspace/ca.pem"}
        get = "python3 -c 'import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read())' "
        for scheme in "http", "https":
            self.works(get + urls[scheme, "allowed"], "hello from the world", env=env)
        self.fails(get + urls["http", "refused"], world.http.server_port, "HTTP Error 403: Forbidden", env=env)
        self.fails(get + urls["https", "refused"], world.https.server_port, "ACCESS_DENIED", env=env)

    @needs("node")
    def test_node(self):
        urls, env = self.urls("/hello.txt"), {"NODE_EXTRA_CA_CERTS": "/workspace/ca.pem"}
        get = ("node -e 'fetch(process.argv[1]).then(async r => { console.log(r.status, await r.text());"
               " process.exit(r.ok ? 0 : 3) }).catch(e => { console.error(e.cause); process.exit(4) })' ")
        for scheme in "http", "https":
            self.works(get + urls[scheme, "allowed"], "200 hello from the world", env=env)
        self.fails(get + urls["http", "refused"], world.http.server_port, "403 This sandbox may not reach", env=env)
        self.fails(get + urls["https", "refused"], world.https.server_port, "access denied", env=env)

    @needs("git")
    def test_git(self):
        urls, env = self.urls("/tiny.git"), {"GIT_SSL_CAINFO": "/workspace/ca.pem", "HOME": "/workspace"}
        for scheme in "http", "https":
            self.works(f"git clone -q {urls[scheme, 'allowed']} copy && cat copy/README", "from the repository", env=env)
        self.fails(f"git clone -q {urls['http', 'refused']} copy", world.http.server_port, "error: 403", env=env)
        self.fails(f"git clone -q {urls['https', 'refused']} copy", world.https.server_port,
                   ["access denied", "Access was denied"], env=env)  # of OpenSSL, of GnuTLS


class Packages(Case):
    def test_pip(self):
        if subprocess.run(["/usr/bin/python3", "-m", "pip", "--version"], capture_output=True).returncode != 0:
            self.skipTest("pip is not installed for /usr/bin/python3")
        urls = self.urls("/simple/")
        env = {"PIP_CERT": "/workspace/ca.pem", "PIP_CONFIG_FILE": "/dev/null", "HOME": "/workspace"}
        pip = "python3 -m pip install -q --no-cache-dir --disable-pip-version-check --retries 0 --target lib"
        use = " && python3 -c 'import sys; sys.path.insert(0, \"lib\"); import tiny_wheel; print(tiny_wheel.words)'"
        for scheme, trust in ("http", "--trusted-host allowed.example"), ("https", ""):
            self.works(f"{pip} {trust} --index-url {urls[scheme, 'allowed']} tiny-wheel" + use, "from the wheel", env=env)
        self.fails(f"{pip} -v --index-url {urls['https', 'refused']} tiny-wheel", world.https.server_port,
                   ["ACCESS_DENIED", "access denied"], env=env)
        # Of an index over plain HTTP it shows the reason to who asks for it only; of a file always.
        http, trust = world.http.server_port, "--trusted-host refused.example"
        done = self.fails(f"{pip} -vvv {trust} --index-url {urls['http', 'refused']} tiny-wheel", http, "403", env=env)
        self.assertIn("No matching distribution found", done["err"])
        wheel = f"http://refused.example:{http}/simple/tiny-wheel/tiny_wheel-1.0-py3-none-any.whl"
        self.fails(f"{pip} {trust} {wheel}", http, "HTTP error 403", env=env)

    @needs("npm", "node")
    def test_npm(self):
        urls, env = self.urls("/"), {"HOME": "/workspace", "npm_config_cafile": "/workspace/ca.pem"}
        npm = "npm install --no-audit --no-fund --no-update-notifier --fetch-retries=0 --registry"
        self.works(f"{npm} {urls['https', 'allowed']} tiny-npm && node -p 'require(\"tiny-npm\")'", "from the registry",
                   env=env)
        self.fails(f"{npm} {urls['http', 'refused']} tiny-npm", world.http.server_port, ["E403", "403"], env=env)
        self.fails(f"{npm} {urls['https', 'refused']} tiny-npm", world.https.server_port, "access denied", env=env)

    @needs("apt-get", "dpkg-deb")
    def test_apt(self):
        # As whoever it is, with folders of its own, and with nothing of the machine's settings.
        apt = ("mkdir -p a/etc/apt.conf.d a/etc/preferences.d a/state/lists/partial a/cache/archives/partial && : >a/status"
               " && export APT_CONFIG=/workspace/apt.conf && apt-get -q update && apt-get -q download tiny-package"
               " && dpkg-deb -f tiny-package_1.0_all.deb Description")
        settings = ('Dir "/workspace/a";\nDir::Etc "etc";\nDir::Etc::parts "apt.conf.d";\nDir::State "state";\n'
                    'Dir::State::status "/workspace/a/status";\nDir::Cache "cache";\nDir::Etc::sourcelist '
                    '"/workspace/sources.list";\nDir::Etc::sourceparts "/dev/null";\nAPT::Sandbox::User "";\n'
                    'Dir::Bin::methods "/usr/lib/apt/methods";\nAcquire::https::CAInfo "/workspace/ca.pem";\n'
                    'Acquire::Languages "none";\nAPT::Update::Error-Mode "any";\nAcquire::Retries "0";\n')
        urls = self.urls("/apt")
        for (scheme, host), url in urls.items():
            port = {"http": world.http, "https": world.https}[scheme].server_port
            files = {"ca.pem": world.authority, "apt.conf": settings, "sources.list": f"deb [trusted=yes] {url} ./\n"}
            if host == "allowed":
                self.works(apt, "from the repository", files=files)
            else:
                words = "403  Forbidden" if scheme == "http" else "access denied"
                self.fails(apt, port, ["403", words] if scheme == "http" else [words, "handshake"], files=files)


if __name__ == "__main__":
    unittest.main(verbosity=2)
