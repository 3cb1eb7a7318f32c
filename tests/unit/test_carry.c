/* The library's end of a network that a guest carries: what fits is passed on. The world is a
 * listening socket of the test's. */
#include "fake_carrier.h"

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
    say_connect(STREAM(3), NAME_ADDRESS, (uint32_t)world_port); /* it still works */
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
    say_connect(STREAM(3), NAME_ADDRESS, (uint32_t)world_port);
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
        say_connect(STREAM(i), NAME_ADDRESS, (uint32_t)world_port);
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

int main(void)
{
    Suite *suite = suite_create("carry");
    TCase *fits = tcase_create("fits");
    tcase_add_checked_fixture(fits, set_up_network, tear_down_network);
    tcase_set_timeout(fits, 60);
    tcase_add_test(fits, a_connection_both_ways_and_half_closed);
    tcase_add_test(fits, credit_is_given_as_bytes_are_taken);
    tcase_add_test(fits, a_guest_that_gives_no_credit);
    tcase_add_test(fits, a_reset_is_passed_on);
    tcase_add_test(fits, a_name_that_is_not_listed_is_refused);
    tcase_add_test(fits, more_than_may_be_open_wait);
    suite_add_tcase(suite, fits);
    return suite_end(suite);
}
