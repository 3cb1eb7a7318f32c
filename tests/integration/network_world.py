"""The world that test_network.py shows to sandboxes: servers on loopback, what they serve, and the
authority that signs for them. Everything is made anew in a temporary folder."""
import gzip
import hashlib
import http.server
import os
import ssl
import subprocess
import threading
import zipfile

HOSTS = ("allowed.example", "refused.example")


class Quiet(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        pass

    def do_GET(self):
        self.server.seen.append((self.headers.get("Host", ""), self.path))
        if self.path.startswith("/to-the-refused"):
            self.send_response(302)
            self.send_header("Location", f"http://refused.example:{self.server.server_port}/hello.txt")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        super().do_GET()


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, folder, context=None):
        self.accepted, self.seen = 0, []
        self.context = context
        super().__init__(("127.0.0.1", 0), lambda *a: Quiet(*a, directory=folder))
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def get_request(self):
        connection, address = super().get_request()
        self.accepted += 1
        connection.settimeout(30)
        if self.context is not None:
            connection = self.context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        return connection, address

    def handle_error(self, request, client_address):
        pass  # a client that went away


def run(*words, cwd=None, env=None):
    subprocess.run(words, check=True, capture_output=True, cwd=cwd, env={**os.environ, **(env or {})})


def make_authority(folder):
    """ca.pem, and server.pem with server.key, signed by it, for the hosts."""
    names = ",".join(f"DNS:{host}" for host in HOSTS)
    with open(f"{folder}/names", "w") as file:
        file.write(f"subjectAltName={names}\n")
    run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
        "-subj", "/CN=authority of a test", "-keyout", "ca.key", "-out", "ca.pem", cwd=folder)
    run("openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={HOSTS[0]}",
        "-keyout", "server.key", "-out", "server.csr", cwd=folder)
    run("openssl", "x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
        "-days", "2", "-extfile", "names", "-out", "server.pem", cwd=folder)


def make_wheel(folder):
    """An index of one wheel, as pip reads it."""
    place = f"{folder}/simple/tiny-wheel"
    os.makedirs(place)
    name, info = "tiny_wheel-1.0-py3-none-any.whl", "tiny_wheel-1.0.dist-info"
    files = {"tiny_wheel.py": "words = 'from the wheel'\n",
             f"{info}/METADATA": "Metadata-Version: 2.1\nName: tiny-wheel\nVersion: 1.0\n",
             f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    files[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(f"{place}/{name}", "w") as wheel:
        for path, text in files.items():
            wheel.writestr(path, text)
    with open(f"{place}/index.html", "w") as file:
        file.write(f'<a href="{name}">{name}</a>\n')


def make_package(folder):
    """A flat repository of one Debian package; false where there is no dpkg-deb."""
    tree, place = f"{folder}/deb", f"{folder}/apt"
    os.makedirs(f"{tree}/DEBIAN")
    os.makedirs(place)
    control = ("Package: tiny-package\nVersion: 1.0\nArchitecture: all\nMaintainer: nobody <nobody@allowed.example>\n"
               "Description: from the repository\n")
    with open(f"{tree}/DEBIAN/control", "w") as file:
        file.write(control)
    try:
        run("dpkg-deb", "--root-owner-group", "-b", tree, f"{place}/tiny-package_1.0_all.deb")
    except FileNotFoundError:
        return False
    with open(f"{place}/tiny-package_1.0_all.deb", "rb") as file:
        data = file.read()
    entry = control + (f"Filename: ./tiny-package_1.0_all.deb\nSize: {len(data)}\n"
                       f"SHA256: {hashlib.sha256(data).hexdigest()}\n\n")
    with gzip.open(f"{place}/Packages.gz", "wb") as file:
        file.write(entry.encode())
    with open(f"{place}/Packages", "w") as file:
        file.write(entry)
    return True


def make_repository(folder):
    """A bare repository that is served as plain files."""
    work, identity = f"{folder}/work", ["-c", "user.name=nobody", "-c", "user.email=nobody@allowed.example"]
    os.makedirs(work)
    clean = {"HOME": folder, "GIT_CONFIG_NOSYSTEM": "1"}
    with open(f"{work}/README", "w") as file:
        file.write("from the repository\n")
    run("git", "init", "-q", "-b", "main", cwd=work, env=clean)
    run("git", "add", "README", cwd=work, env=clean)
    run("git", *identity, "commit", "-q", "-m", "first", cwd=work, env=clean)
    run("git", "clone", "-q", "--bare", work, f"{folder}/tiny.git", env=clean)
    run("git", "update-server-info", cwd=f"{folder}/tiny.git", env=clean)


def make_npm_package(folder, port):
    """A registry of one npm package; its description names the tarball's URL."""
    place = f"{folder}/package"
    os.makedirs(place)
    with open(f"{place}/package.json", "w") as file:
        file.write('{"name": "tiny-npm", "version": "1.0.0", "main": "index.js"}')
    with open(f"{place}/index.js", "w") as file:
        file.write("module.exports = 'from the registry';\n")
    run("tar", "-czf", "tiny-npm-1.0.0.tgz", "package", cwd=folder)
    with open(f"{folder}/tiny-npm-1.0.0.tgz", "rb") as file:
        sum_ = hashlib.sha1(file.read()).hexdigest()
    with open(f"{folder}/tiny-npm", "w") as file:
        file.write('{"name": "tiny-npm", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": {"name": "tiny-npm",'
                   f'"version": "1.0.0", "dist": {{"shasum": "{sum_}",'
                   f'"tarball": "https://allowed.example:{port}/tiny-npm-1.0.0.tgz"}}}}}}}}')


class World:
    def __init__(self, folder):
        self.folder, served = folder, f"{folder}/served"
        os.makedirs(served)
        make_authority(folder)
        with open(f"{folder}/ca.pem") as file:
            self.authority = file.read()
        with open(f"{served}/hello.txt", "w") as file:
            file.write("hello from the world\n")
        make_wheel(served)
        make_repository(served)
        self.has_apt = make_package(served)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(f"{folder}/server.pem", f"{folder}/server.key")
        self.http, self.https = Server(served), Server(served, context)
        make_npm_package(served, self.https.server_port)

    def stop(self):
        for server in (self.http, self.https):
            server.shutdown()
            server.server_close()
