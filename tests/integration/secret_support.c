#include "secret_support.h"
#include "sandbox_path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

tls_server *server;
static char addresses[16][64], events[1u << 20];
static size_t events_len;
static int addresses_used;

void setup_secrets(void)
{
    setup_runtime();
    addresses_used = 0;
    events_len = 0;
    events[0] = '\0';
    server = tls_start();
}

void teardown_secrets(void)
{
    /* First the sandboxes, so that the server's threads end by themselves. */
    barchan_sandbox_destroy(sbx);
    sbx = NULL;
    tls_stop(server);
    server = NULL;
    teardown();
}

const char *at_port(const char *host)
{
    char *text = addresses[addresses_used++ % 16];
    snprintf(text, sizeof addresses[0], "%s:%d", host, tls_port(server));
    return text;
}

static void on_event(barchan_sandbox *of, const barchan_network_event *event, void *ud)
{
    (void)of;
    (void)ud;
    int n =
        snprintf(events + events_len, sizeof events - events_len, "%s %s:%d %s\n",
                 barchan_network_event_name(event->kind), event->host, event->port, event->rule);
    ck_assert(n > 0 && events_len + (size_t)n < sizeof events);
    ck_assert_uint_eq(event->dropped, 0);
    events_len += (size_t)n;
}

int try_secret_sandbox(const barchan_secret *secrets, size_t count, barchan_error *err)
{
    const char *const hosts[] = {"served.example=127.0.0.1", "other.example=127.0.0.1",
                                 "third.example=127.0.0.1", NULL};
    const char *const allow[] = {at_port("served.example"), at_port("other.example"),
                                 at_port("third.example"), at_port("127.0.0.1"), NULL};
    barchan_network_rules rules = {
        .struct_size = sizeof rules, .allow = allow, .hosts = hosts, .on_event = on_event};
    return create_sandbox(&sbx, rt,
                          PROFILE(.network = BARCHAN_NETWORK_ALLOW, .network_rules = &rules,
                                  .secrets = secrets, .secret_count = count),
                          err);
}

void make_secret_sandbox(barchan_secret secret)
{
    barchan_error err = {0};
    const char *const hosts[] = {at_port("served.example"), NULL};
    if (secret.name == NULL) secret.name = "TOKEN";
    if (secret.value == NULL) secret.value = VALUE;
    secret.value_len = strlen(secret.value);
    if (secret.hosts == NULL) secret.hosts = hosts;
    if (secret.ca_file == NULL) secret.ca_file = tls_ca_file(server);
    ck_assert_msg(try_secret_sandbox(&secret, 1, &err) == 0, "%s", err.message);
}

void shell(const char *command, const char *words)
{
    char text[8192];
    snprintf(text, sizeof text, "AT=https://served.example:%d; OTHER=https://other.example:%d; %s",
             tls_port(server), tls_port(server), command);
    barchan_exec_result result = sh(text);
    ck_assert_msg(words == NULL || strstr(result.out.data, words) != NULL,
                  "'%s' is missing in: %s\nerr: %s\nevents: %s", words, result.out.data,
                  result.err_out.data, events);
    ck_assert_ptr_null(strstr(result.out.data, "MARKER"));
    ck_assert_ptr_null(strstr(result.err_out.data, "MARKER"));
    for (size_t i = 0; i < result.denied_count; i++)
        ck_assert_ptr_null(strstr(result.denied[i].rule, "MARKER"));
    barchan_exec_result_clear(&result);
}

static int none_open(void *ud)
{
    barchan_network_usage usage = {0};
    (void)ud;
    if (barchan_sandbox_network(sbx, &usage, NULL) < 0) return 1;
    size_t open = usage.open;
    barchan_network_usage_clear(&usage);
    return open == 0;
}

const char *all_events(void)
{
    wait_until(none_open, NULL, 5000);
    barchan_runtime_pump(rt, 0, NULL);
    return events;
}

int told(const char *words)
{
    int count = 0;
    for (const char *at = all_events(); (at = strstr(at, words)) != NULL; at++)
        count++;
    return count;
}

void put_raw(const char *program)
{
    static const char start[] =
        "import os, re, socket, ssl, sys, time\n"
        "PORT = int(sys.argv[1].rsplit(':', 1)[1])\n"
        "HOST, TOKEN = f'served.example:{PORT}', os.environ['TOKEN']\n"
        "def connect():\n"
        "    global s\n"
        "    s = ssl.create_default_context().wrap_socket(\n"
        "        socket.create_connection(('served.example', PORT)),\n"
        "        server_hostname='served.example')\n"
        "def send(text): s.sendall(text.encode())\n"
        "def receive(quiet=0.4):\n"
        "    s.settimeout(quiet); got = b''\n"
        "    try:\n"
        "        while piece := s.recv(65536): got += piece\n"
        "        return got.decode() + '<end>'\n"
        "    except OSError: return got.decode()\n"
        "def head(line, more=''):\n"
        "    return f'{line} HTTP/1.1\\r\\nHost: {HOST}\\r\\n{more}\\r\\n'\n"
        "def auth(): return f'Authorization: Bearer {TOKEN}\\r\\n'\n"
        "connect()\n";
    char text[8192];
    snprintf(text, sizeof text, "%s%s", start, program);
    file_put_text("/workspace/raw.py", text);
}
