/* The library's end of a network that a guest carries, against a hostile one: whatever does not fit
 * ends that sandbox, and what fits is passed on. The world is a listening socket of the test's. */
#include "fake_guest.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/limits.h"
#include "egress/name_query.h"
#include "suite.h"

#define STREAM(n) (BC_FRAME_CARRIED + (n))
#define NAME_ADDRESS 0xC6120100u /* what the first name that is asked for gets */

static int world, port;
static char text_host[32], text_address[32];

static void set_up_world(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    world = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    ck_assert_int_eq(bind(world, (struct sockaddr *)&at, sizeof at), 0);
    ck_assert_int_eq(listen(world, 600), 0);
    ck_assert_int_eq(getsockname(world, (struct sockaddr *)&at, &len), 0);
    port = ntohs(at.sin_port);
    snprintf(text_host, sizeof text_host, "a.example:%d", port);
    snprintf(text_address, sizeof text_address, "127.0.0.1:%d", port);
}

static void set_up_with(size_t max_connections, barchan_connect_fn on_connect)
{
    static const char *const hosts[] = {"a.example=127.0.0.1", NULL};
    const char *const allow[] = {text_host, text_address, NULL};
    const barchan_network_rules rules = {.struct_size = sizeof rules,
                                         .allow = allow,
                                         .hosts = hosts,
                                         .max_connections = max_connections,
                                         .on_connect = on_connect};
    set_up_carrying(&rules);
}

static void set_up_network(void)
{
    set_up_world();
    set_up_with(0, NULL);
}

static void tear_down_network(void)
{
    tear_down();
    close(world);
}

/* ---- what the library says ---- */

static unsigned char heard[1 << 20];
static size_t heard_len;

static void hear(void)
{
    for (int i = 0; i < 20; i++) {
        barchan_runtime_pump(rt, 5, NULL);
        ssize_t n;
        while ((n = recv(guest, heard + heard_len, sizeof heard - heard_len, MSG_DONTWAIT)) > 0) {
            heard_len += (size_t)n;
        }
    }
}

/* The next frame that is not the handshake's; type 0: there is none. Its payload stays where it is
 * until the next call. */
static bc_frame next_frame(void)
{
    static size_t used;
    for (int heard_all = 0; heard_all < 2;) {
        if (used > 0) memmove(heard, heard + used, heard_len - used);
        heard_len -= used;
        bc_frame frame;
        int64_t size = bc_frame_parse(&frame, heard, heard_len, bc_frame_max_to_guest);
        ck_assert_int_ge(size, 0);
        used = (size_t)size;
        if (size > 0 && frame.type != BC_FRAME_HELLO) return frame;
        if (size > 0) continue;
        hear();
        heard_all++;
    }
    return (bc_frame){0};
}

static void forget_heard(void)
{
    while (next_frame().type != 0) {}
}

static bc_frame hears(uint32_t type, uint32_t stream)
{
    bc_frame frame = next_frame();
    ck_assert_msg(frame.type == type && frame.stream == stream, "%u of %x, not %u of %x",
                  frame.type, frame.stream, type, stream);
    return frame;
}

static void hears_nothing(void)
{
    ck_assert_uint_eq(next_frame().type, 0);
}

static void hears_close(uint32_t stream, uint32_t how)
{
    bc_frame frame = hears(BC_FRAME_NET_CLOSE, stream);
    ck_assert_uint_eq(frame.length, 4);
    ck_assert_uint_eq(bc_get_u32(frame.payload), how);
}

/* ---- what the guest says ---- */

static void say_number(uint32_t type, uint32_t stream, uint32_t number)
{
    unsigned char bytes[4];
    bc_put_u32(bytes, number);
    say(type, stream, bytes, sizeof bytes);
}

static void say_connect(uint32_t stream, uint32_t address, uint32_t to)
{
    unsigned char bytes[8];
    bc_put_u32(bytes, address);
    bc_put_u32(bytes + 4, to);
    say(BC_FRAME_NET_CONNECT, stream, bytes, sizeof bytes);
}

static const unsigned char query[] = "\0\7\1\0\0\1\0\0\0\0\0\0\1a\7example\0\0\1\0";

/* As a stub resolver asks for a.example; on the wire the last byte is the class. */
static void say_query(uint32_t stream)
{
    unsigned char bytes[sizeof query];
    memcpy(bytes, query, sizeof query);
    bytes[sizeof query - 1] = 1;
    say(BC_FRAME_NET_QUERY, stream, bytes, sizeof bytes);
}

/* Its name is known, and it is connected to. */
static void connect_named(uint32_t first)
{
    say_query(STREAM(first));
    bc_frame answer = hears(BC_FRAME_NET_ANSWER, STREAM(first));
    ck_assert_uint_gt(answer.length, 16);
    uint32_t wire = htonl(NAME_ADDRESS);
    ck_assert(memcmp(answer.payload + answer.length - 4, &wire, 4) == 0);
    say_connect(STREAM(first + 1), NAME_ADDRESS, (uint32_t)port);
}

static int accept_one(void)
{
    for (int i = 0; i < 200; i++) {
        int fd = accept4(world, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) return fd;
        barchan_runtime_pump(rt, 10, NULL);
    }
    ck_abort_msg("nobody connects");
}

static size_t read_world(int fd, char *to, size_t cap)
{
    size_t len = 0;
    for (int i = 0; i < 50 && len < cap; i++) {
        ssize_t n = recv(fd, to + len, cap - len, MSG_DONTWAIT);
        if (n > 0) len += (size_t)n;
        if (n == 0) break;
        if (n < 0) barchan_runtime_pump(rt, 5, NULL);
    }
    return len;
}

/* ---- what fits ---- */

START_TEST(a_connection_both_ways_and_half_closed)
{
    char bytes[64];
    connect_named(1);
    int fd = accept_one();
    say(BC_FRAME_NET_OUT, STREAM(2), "hello", 5);
    ck_assert_uint_eq(read_world(fd, bytes, 5), 5);
    ck_assert(memcmp(bytes, "hello", 5) == 0);
    ck_assert_int_eq(send(fd, "welcome", 7, MSG_NOSIGNAL), 7);
    bc_frame in = hears(BC_FRAME_NET_IN, STREAM(2));
    ck_assert_uint_eq(in.length, 7);
    ck_assert(memcmp(in.payload, "welcome", 7) == 0);
    say(BC_FRAME_NET_OUT_END, STREAM(2), NULL, 0);
    ck_assert_uint_eq(read_world(fd, bytes, sizeof bytes), 0);
    ck_assert_int_eq(recv(fd, bytes, 1, MSG_DONTWAIT), 0); /* its end has arrived */
    ck_assert_int_eq(send(fd, "more", 4, MSG_NOSIGNAL), 4);
    ck_assert_uint_eq(hears(BC_FRAME_NET_IN, STREAM(2)).length, 4);
    close(fd);
    bc_frame last = next_frame(); /* a half, then the whole; or at once */
    if (last.type == BC_FRAME_NET_IN_END) last = next_frame();
    ck_assert_uint_eq(last.type, BC_FRAME_NET_CLOSE);
    ck_assert_uint_eq(bc_get_u32(last.payload), BC_NET_IN_ORDER);
    say_number(BC_FRAME_NET_CLOSED, STREAM(2), BC_NET_IN_ORDER);
    ck_assert_int_eq(status().state, BARCHAN_SANDBOX_READY);
    say_connect(STREAM(3), NAME_ADDRESS, (uint32_t)port); /* it still works */
    close(accept_one());
}
END_TEST

START_TEST(credit_is_given_as_bytes_are_taken)
{
    static char bytes[BC_FRAME_NET_WINDOW];
    connect_named(1);
    int fd = accept_one();
    uint32_t may = BC_FRAME_NET_WINDOW;
    size_t sent = 0, read = 0;
    while (sent < 4000000) {
        if (may > 0) say(BC_FRAME_NET_OUT, STREAM(2), bytes, may);
        sent += may;
        may = 0;
        read += read_world(fd, bytes, sizeof bytes);
        bc_frame frame = next_frame();
        if (frame.type != 0) ck_assert_uint_eq(frame.type, BC_FRAME_NET_MORE);
        if (frame.type != 0) may = bc_get_u32(frame.payload);
    }
    while (read < sent) {
        read += read_world(fd, bytes, sizeof bytes);
        forget_heard();
    }
    ck_assert_int_eq(status().state, BARCHAN_SANDBOX_READY);
    close(fd);
}
END_TEST

/* Nothing is sent without credit, nor held beyond what the relay does. */
START_TEST(a_guest_that_gives_no_credit)
{
    static char bytes[1 << 20];
    connect_named(1);
    int fd = accept_one();
    say(BC_FRAME_NET_OUT, STREAM(2), "x", 1); /* so that the server's word passes */
    for (int i = 0; i < 50; i++) {
        if (send(fd, bytes, sizeof bytes, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
            ck_assert_int_eq(errno, EAGAIN);
        }
        barchan_runtime_pump(rt, 1, NULL);
    }
    size_t got = 0;
    for (bc_frame frame = next_frame(); frame.type != 0; frame = next_frame()) {
        ck_assert_uint_eq(frame.type, BC_FRAME_NET_IN);
        got += frame.length;
    }
    ck_assert_uint_eq(got, BC_FRAME_NET_WINDOW);
    say_number(BC_FRAME_NET_GRANT, STREAM(2), 1000);
    ck_assert_uint_eq(hears(BC_FRAME_NET_IN, STREAM(2)).length, 1000);
    hears_nothing();
    close(fd);
}
END_TEST

START_TEST(a_reset_is_passed_on)
{
    char byte;
    connect_named(1);
    int fd = accept_one();
    say_number(BC_FRAME_NET_CLOSED, STREAM(2), BC_NET_RESET);
    hears_close(STREAM(2), BC_NET_RESET);
    hear();
    errno = 0;
    ck_assert_int_le(recv(fd, &byte, 1, MSG_DONTWAIT), 0);
    ck_assert(errno != EAGAIN);
    close(fd);
    say_connect(STREAM(3), NAME_ADDRESS, (uint32_t)port);
    fd = accept_one();
    const struct linger none = {.l_onoff = 1};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    close(fd);
    hears_close(STREAM(3), BC_NET_RESET);
    say(BC_FRAME_NET_OUT, STREAM(3), "late", 4); /* before it knows */
    say(BC_FRAME_NET_OUT_END, STREAM(3), NULL, 0);
    ck_assert_int_eq(status().state, BARCHAN_SANDBOX_READY);
    say_number(BC_FRAME_NET_CLOSED, STREAM(3), BC_NET_IN_ORDER);
    ck_assert_int_eq(status().state, BARCHAN_SANDBOX_READY);
    say(BC_FRAME_NET_OUT, STREAM(3), "late", 4);
    broke_the_protocol();
}
END_TEST

START_TEST(a_name_that_is_not_listed_is_refused)
{
    static const char get[] = "GET / HTTP/1.1\r\nHost: b.example\r\n\r\n";
    say_connect(STREAM(1), NAME_ADDRESS + 7, 80); /* no name leads there */
    say(BC_FRAME_NET_OUT, STREAM(1), get, sizeof get - 1);
    bc_frame in = hears(BC_FRAME_NET_IN, STREAM(1));
    ck_assert(memcmp(in.payload, "HTTP/1.1 403", 12) == 0);
    hears(BC_FRAME_NET_IN_END, STREAM(1));
    say(BC_FRAME_NET_OUT_END, STREAM(1), NULL, 0);
    hears_close(STREAM(1), BC_NET_IN_ORDER);
}
END_TEST

/* Those beyond what the profile allows wait, and come in their turn. */
START_TEST(more_than_may_be_open_wait)
{
    tear_down();
    set_up_with(2, NULL);
    connect_named(1);
    for (uint32_t i = 3; i < 6; i++) {
        say_connect(STREAM(i), NAME_ADDRESS, (uint32_t)port);
    }
    say(BC_FRAME_NET_OUT, STREAM(5), "the last", 8);
    int first = accept_one(), second = accept_one();
    hear();
    ck_assert_int_eq(accept4(world, NULL, NULL, SOCK_CLOEXEC), -1);
    say_number(BC_FRAME_NET_CLOSED, STREAM(4), BC_NET_RESET); /* it never has its turn */
    say_number(BC_FRAME_NET_CLOSED, STREAM(2), BC_NET_RESET);
    int third = accept_one();
    char bytes[8];
    ck_assert_uint_eq(read_world(third, bytes, 8), 8);
    ck_assert(memcmp(bytes, "the last", 8) == 0);
    ck_assert_int_eq(accept4(world, NULL, NULL, SOCK_CLOEXEC), -1);
    close(first);
    close(second);
    close(third);
}
END_TEST

static void ask_later(barchan_sandbox *sandbox, barchan_connect *connect, const char *host, int to,
                      void *ud)
{
    (void)sandbox, (void)host, (void)to, (void)ud;
    barchan_connect_answer(connect, 0);
}

/* ---- what does not ---- */

START_TEST(as_many_as_the_plan_says)
{
    tear_down();
    set_up_with(2, ask_later);
    uint32_t most = bc_egress_plan(sbx->egress)->connections;
    ck_assert_uint_eq(most, 2 + 256);
    for (uint32_t i = 0; i < most; i++) {
        say_connect(STREAM(1 + i), NAME_ADDRESS, (uint32_t)port);
    }
    ck_assert_int_eq(status().state, BARCHAN_SANDBOX_READY);
    say_connect(STREAM(1 + most), NAME_ADDRESS, (uint32_t)port);
    broke_the_protocol();
}
END_TEST

START_TEST(breaches_of_a_beginning)
{
    static const unsigned char long_query[BC_FRAME_MAX_QUERY + 1];
    unsigned char header[BC_FRAME_HEADER];
    say_connect(STREAM(5), NAME_ADDRESS, (uint32_t)port);
    ck_assert_int_eq(status().state, BARCHAN_SANDBOX_READY);
    uint32_t p = (uint32_t)port;
    switch (_i) {
    case 0: say_connect(6, NAME_ADDRESS, p); break;             /* a number of the library's */
    case 1: say_connect(STREAM(5), NAME_ADDRESS, p); break;     /* twice */
    case 2: say_connect(STREAM(4), NAME_ADDRESS, p); break;     /* not rising */
    case 3: say_connect(STREAM(6), 0x08080808, p); break;       /* not routed */
    case 4: say_connect(STREAM(6), 0x7F000001, p); break;       /* loopback */
    case 5: say_connect(STREAM(6), NAME_ADDRESS, p + 1); break; /* no port of the plan */
    case 6: say_connect(STREAM(6), NAME_ADDRESS, 65536 + p); break;
    case 7: say(BC_FRAME_NET_CONNECT, STREAM(6), "\0\1\x12\xC6", 4); break;
    case 8: say(BC_FRAME_NET_CONNECT, STREAM(6), "\0\1\x12\xC6\x50\0\0\0\0", 9); break;
    case 9: say_query(STREAM(5)); break; /* the number is used */
    case 10: say_query(7); break;
    case 11:
        bc_frame_put_header(header, BC_FRAME_NET_QUERY, STREAM(6), BC_FRAME_MAX_QUERY + 1);
        say_raw(header, sizeof header);
        break;
    case 12: say(BC_FRAME_NET_QUERY, STREAM(6), long_query, sizeof long_query); break;
    case 13: say(BC_FRAME_NET_ANSWER, STREAM(6), "", 0); break; /* the other direction */
    case 14: say(BC_FRAME_NET_IN, STREAM(5), "x", 1); break;
    case 15: say(BC_FRAME_OUT, STREAM(5), "x", 1); break; /* a command's */
    case 16: say_connect(STREAM(0), NAME_ADDRESS, p); break;
    default: ck_abort();
    }
    broke_the_protocol();
}
END_TEST

START_TEST(breaches_of_a_connection)
{
    static unsigned char flood[10 * (BC_FRAME_HEADER + BC_FRAME_NET_WINDOW)];
    connect_named(1);
    int fd = accept_one();
    switch (_i) {
    case 0: say(BC_FRAME_NET_OUT, STREAM(3), "x", 1); break; /* unknown */
    case 1: say(BC_FRAME_NET_OUT, STREAM(1), "x", 1); break; /* a query's */
    case 2: say(BC_FRAME_NET_OUT, STREAM(2), "", 0); break;
    case 3: /* whatever the kernel's buffers took of it, this is over credit */
        for (size_t i = 0; i < 10; i++) {
            bc_frame_put_header(flood + i * (BC_FRAME_HEADER + BC_FRAME_NET_WINDOW),
                                BC_FRAME_NET_OUT, STREAM(2), BC_FRAME_NET_WINDOW);
        }
        for (size_t done = 0; done < sizeof flood;) {
            ssize_t n = send(guest, flood + done, sizeof flood - done, MSG_NOSIGNAL | MSG_DONTWAIT);
            if (n < 0 && errno != EAGAIN) break;
            done += n > 0 ? (size_t)n : 0;
            barchan_runtime_pump(rt, 0, NULL);
        }
        break;
    case 4:
        say(BC_FRAME_NET_OUT_END, STREAM(2), NULL, 0);
        say(BC_FRAME_NET_OUT, STREAM(2), "x", 1);
        break;
    case 5:
        say(BC_FRAME_NET_OUT_END, STREAM(2), NULL, 0);
        say(BC_FRAME_NET_OUT_END, STREAM(2), NULL, 0);
        break;
    case 6: say(BC_FRAME_NET_OUT_END, STREAM(2), "x", 1); break;
    case 7: say_number(BC_FRAME_NET_GRANT, STREAM(2), 0); break;
    case 8: say_number(BC_FRAME_NET_GRANT, STREAM(2), 1); break; /* nothing was sent */
    case 9: say(BC_FRAME_NET_GRANT, STREAM(2), "\1\0\0", 3); break;
    case 10: say_number(BC_FRAME_NET_CLOSED, STREAM(2), 2); break;
    case 11:
        say_number(BC_FRAME_NET_CLOSED, STREAM(2), BC_NET_IN_ORDER);
        break; /* it is not over */
    case 12: say(BC_FRAME_NET_CLOSED, STREAM(2), "", 0); break;
    case 13:
        say_number(BC_FRAME_NET_CLOSED, STREAM(2), BC_NET_RESET);
        say_number(BC_FRAME_NET_CLOSED, STREAM(2), BC_NET_RESET);
        break;
    case 14:
        say_number(BC_FRAME_NET_CLOSED, STREAM(2), BC_NET_RESET);
        say_number(BC_FRAME_NET_GRANT, STREAM(2), 1);
        break;
    default: ck_abort();
    }
    broke_the_protocol();
    close(fd);
}
END_TEST

START_TEST(a_sandbox_without_a_network_carries_nothing)
{
    say_connect(STREAM(1), NAME_ADDRESS, 80);
    broke_the_protocol();
}
END_TEST

/* Its answers wait in the library, but not without end. */
START_TEST(a_guest_that_asks_and_never_reads)
{
    static unsigned char frames[100 * (BC_FRAME_HEADER + sizeof query)];
    uint32_t asked = 0;
    for (int stuck = 0; stuck < 100;) {
        for (size_t i = 0; i < 100; i++) {
            unsigned char *at = frames + i * (BC_FRAME_HEADER + sizeof query);
            bc_frame_put_header(at, BC_FRAME_NET_QUERY, STREAM(++asked), sizeof query);
            memcpy(at + BC_FRAME_HEADER, query, sizeof query);
        }
        for (size_t done = 0; done < sizeof frames && stuck < 100;) {
            ssize_t n = send(guest, frames + done, sizeof frames - done, MSG_DONTWAIT);
            done += n > 0 ? (size_t)n : 0;
            stuck = n > 0 ? 0 : stuck + 1;
            barchan_runtime_pump(rt, 0, NULL);
        }
        ck_assert_uint_lt(asked, 1000000); /* it has stopped long before */
    }
    /* and the answers to what it had read at once */
    ck_assert_uint_lt(bc_channel_waiting(sbx->channel), 2 * BC_CHANNEL_MAX_UNREAD);
    ck_assert_int_eq(status().state, BARCHAN_SANDBOX_READY);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("carry");
    TCase *fits = tcase_create("fits"), *wrong = tcase_create("does not fit");
    TCase *none = tcase_create("no network");
    tcase_add_checked_fixture(fits, set_up_network, tear_down_network);
    tcase_add_checked_fixture(wrong, set_up_network, tear_down_network);
    tcase_add_checked_fixture(none, set_up_ready, tear_down);
    tcase_set_timeout(fits, 60);
    tcase_set_timeout(wrong, 60);
    tcase_add_test(fits, a_connection_both_ways_and_half_closed);
    tcase_add_test(fits, credit_is_given_as_bytes_are_taken);
    tcase_add_test(fits, a_guest_that_gives_no_credit);
    tcase_add_test(fits, a_reset_is_passed_on);
    tcase_add_test(fits, a_name_that_is_not_listed_is_refused);
    tcase_add_test(fits, more_than_may_be_open_wait);
    tcase_add_test(wrong, as_many_as_the_plan_says);
    tcase_add_loop_test(wrong, breaches_of_a_beginning, 0, 17);
    tcase_add_loop_test(wrong, breaches_of_a_connection, 0, 15);
    tcase_add_test(wrong, a_guest_that_asks_and_never_reads);
    tcase_add_test(none, a_sandbox_without_a_network_carries_nothing);
    suite_add_tcase(suite, fits);
    suite_add_tcase(suite, wrong);
    suite_add_tcase(suite, none);
    return suite_end(suite);
}
