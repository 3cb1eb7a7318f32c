/* Out of memory at every allocation while a guest's connections are carried: the connection or the
 * sandbox ends, nothing else, and nothing leaks (run under AddressSanitizer to see that). */
#include "fake_guest.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
#include "failing_alloc.h"
#include "suite.h"

static unsigned char words[1 << 20];
static size_t words_len;

static void add(uint32_t type, uint32_t stream, const void *payload, uint32_t len)
{
    bc_frame_put_header(words + words_len, type, BC_FRAME_CARRIED + stream, len);
    if (len > 0) memcpy(words + words_len + BC_FRAME_HEADER, payload, len);
    words_len += BC_FRAME_HEADER + len;
}

static void add_connect(uint32_t stream, uint32_t address, uint32_t port)
{
    unsigned char bytes[8];
    bc_put_u32(bytes, address);
    bc_put_u32(bytes + 4, port);
    add(BC_FRAME_NET_CONNECT, stream, bytes, sizeof bytes);
}

/* A name, a connection that waits with all that it may send, two that are refused, one that is
 * reset. */
static void make_words(int port)
{
    static const unsigned char query[] = "\0\7\1\0\0\1\0\0\0\0\0\0\1a\7example\0\0\1\0\1";
    static const unsigned char bytes[BC_FRAME_NET_WINDOW];
    static const char get[] = "GET / HTTP/1.1\r\nHost: b.example\r\n\r\n";
    words_len = 0;
    add(BC_FRAME_NET_QUERY, 1, query, sizeof query - 1);
    add_connect(2, 0xC6120100, (uint32_t)port);
    add(BC_FRAME_NET_OUT, 2, bytes, sizeof bytes);
    add_connect(3, 0xC6120100, (uint32_t)port);
    add(BC_FRAME_NET_OUT, 3, bytes, sizeof bytes);
    add_connect(4, 0xC6120108, 80);
    add(BC_FRAME_NET_OUT, 4, get, sizeof get - 1);
    add(BC_FRAME_NET_OUT_END, 4, NULL, 0);
    add_connect(5, 0xC6120100, 80);
    add(BC_FRAME_NET_CLOSED, 5, "\1\0\0\0", 4);
}

static int open_world(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    ck_assert_int_eq(listen(fd, 10), 0);
    return fd;
}

static void set_up_with_world(int world)
{
    static const char *const hosts[] = {"a.example=127.0.0.1", NULL};
    char named[32], numbered[32];
    struct sockaddr_in at;
    socklen_t len = sizeof at;
    getsockname(world, (struct sockaddr *)&at, &len);
    snprintf(named, sizeof named, "a.example:%d", ntohs(at.sin_port));
    snprintf(numbered, sizeof numbered, "127.0.0.1:%d", ntohs(at.sin_port));
    const char *const allow[] = {named, numbered, NULL};
    const barchan_network_rules rules = {
        .struct_size = sizeof rules, .allow = allow, .hosts = hosts, .max_connections = 2};
    set_up_carrying(&rules);
    make_words(ntohs(at.sin_port));
}

static void run_with_failure(long at)
{
    unsigned char bytes[65536];
    size_t said = 0;
    failures = 0;
    countdown = at;
    for (int i = 0; i < 60; i++) { /* libcheck's assertions allocate: there are none */
        ssize_t n = said < words_len
                        ? send(guest, words + said, words_len - said, MSG_DONTWAIT | MSG_NOSIGNAL)
                        : 0;
        if (n > 0) said += (size_t)n;
        barchan_runtime_pump(rt, i < 50 ? 0 : 1, NULL);
        while (recv(guest, bytes, sizeof bytes, MSG_DONTWAIT) > 0) {}
    }
    countdown = -1;
}

START_TEST(each_allocation_may_fail)
{
    long at = 0;
    for (;; at++) {
        int world = open_world();
        set_up_with_world(world);
        run_with_failure(at);
        int failed = failures > 0;
        barchan_sandbox_state state = status().state;
        ck_assert(state == BARCHAN_SANDBOX_READY || (failed && state == BARCHAN_SANDBOX_ENDED));
        tear_down();
        close(world);
        if (!failed) break;
    }
    ck_assert_int_gt(at, 15);
}
END_TEST

SUITE_MAIN("carry_alloc", NULL, NULL, each_allocation_may_fail)
