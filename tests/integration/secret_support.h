/* Shared by the tests of secrets: an HTTPS server, and sandboxes with secrets for it. */
#ifndef SECRET_SUPPORT_H
#define SECRET_SUPPORT_H

#include <barchan/secret.h>
#include "sandbox_support.h"
#include "tls_server.h"

/* Found nowhere else. */
#define VALUE "s3cr3t-MARKER-0f1e2d3c4b5a69788796a5b4c3d2e1f0"

extern tls_server *server;

/* Checked fixtures: a runtime and the server; the sandbox is the test's to make. */
void setup_secrets(void);
void teardown_secrets(void);

/* Makes `sbx`, with "served.example" and "other.example" known as the server and allowed. What
 * `secret` lacks is: name TOKEN, value VALUE, for served.example, verified with the server's
 * certificate. */
void make_secret_sandbox(barchan_secret secret);
#define SECRET(...) ((barchan_secret){.struct_size = sizeof(barchan_secret), __VA_ARGS__})
/* The same for several, which lack nothing. */
int try_secret_sandbox(const barchan_secret *secrets, size_t count, barchan_error *err);

/* "served.example:<port>" and so on, borrowed until the next setup. */
const char *at_port(const char *host);

/* Runs `command` with $AT, the address "https://served.example:<port>", and $OTHER; must have
 * `words` in its output (NULL: any). */
void shell(const char *command, const char *words);
/* Events with these words so far, once they have been told. */
int told(const char *words);
/* The text of all events. */
const char *all_events(void);

/* What curl is given, and what the server gets. */
#define AUTH "-H \"Authorization: Bearer $TOKEN\" "
#define REAL "Authorization: Bearer " VALUE "\r\n"

/* Writes raw.py, which sends what its program says over one connection: `send`, `receive` what has
 * come after some time without more, TOKEN, HOST. */
void put_raw(const char *program);

/* TLS over memory, in which a program can say that it says no more, and read on. */
#define BY_HAND                                                                           \
    "i, o = ssl.MemoryBIO(), ssl.MemoryBIO()\n"                                           \
    "c = ssl.create_default_context().wrap_bio(i, o, server_hostname='served.example')\n" \
    "s = socket.create_connection(('served.example', PORT))\n"                            \
    "def until(act, *words):\n"                                                           \
    "    while True:\n"                                                                   \
    "        try: return act(*words)\n"                                                   \
    "        except ssl.SSLWantReadError: pass\n"                                         \
    "        s.sendall(o.read()); i.write(s.recv(65536))\n"                               \
    "def say_no_more():\n"                                                                \
    "    try: c.unwrap()\n"                                                               \
    "    except ssl.SSLWantReadError: s.sendall(o.read())\n"                              \
    "until(c.do_handshake)\n"

#endif
