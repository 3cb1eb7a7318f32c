/* The library's end of a network that a hostile guest carries: whatever does not fit ends that
 * sandbox. */
#include "fake_carrier.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/limits.h"
#include "egress/name_query.h"
#include "suite.h"

static void ask_later(barchan_sandbox *sandbox, barchan_connect *connect, const char *host, int to,
                      void *ud)
{
    (void)sandbox, (void)host, (void)to, (void)ud;
    barchan_connect_answer(connect, 0);
}

START_TEST(as_many_as_the_plan_says)
{
    tear_down();
    set_up_with(2, ask_later);
    uint32_t most = bc_egress_plan(sbx->egress)->connections;
    ck_assert_uint_eq(most, 2 + 256);
    for (uint32_t i = 0; i < most; i++) {
        say_connect(STREAM(1 + i), NAME_ADDRESS, (uint32_t)world_port);
    }
    ck_assert_int_eq(status().state, BARCHAN_SANDBOX_READY);
    say_connect(STREAM(1 + most), NAME_ADDRESS, (uint32_t)world_port);
    broke_the_protocol();
}
END_TEST

START_TEST(breaches_of_a_beginning)
{
    static const unsigned char long_query[BC_FRAME_MAX_QUERY + 1];
    unsigned char header[BC_FRAME_HEADER];
    say_connect(STREAM(5), NAME_ADDRESS, (uint32_t)world_port);
    ck_assert_int_eq(status().state, BARCHAN_SANDBOX_READY);
    uint32_t p = (uint32_t)world_port;
    switch (_i) {
    case 0: say_connect(6, NAME_ADDRESS, p); break;             /* a number of the library's */
    case 1: say_connect(STREAM(5), NAME_ADDRESS, p); break;     /* twice */
    case 2: say_connect(STREAM(4), NAME_ADDRESS, p); break;     /* not rising */
    case 3: say_connect(STREAM(6), 0x08080808, p); break;       /* not routed */
    case 4: say_connect(STREAM(6), 0x7F000001, p); break;       /* loopback */
    case 5: say_connect(STREAM(6), NAME_ADDRESS, p + 1); break; /* no world_port of the plan */
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
    static unsigned char frames[100 * (BC_FRAME_HEADER + sizeof fake_query)];
    uint32_t asked = 0;
    for (int stuck = 0; stuck < 100;) {
        for (size_t i = 0; i < 100; i++) {
            unsigned char *at = frames + i * (BC_FRAME_HEADER + sizeof fake_query);
            bc_frame_put_header(at, BC_FRAME_NET_QUERY, STREAM(++asked), sizeof fake_query);
            memcpy(at + BC_FRAME_HEADER, fake_query, sizeof fake_query);
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

/* The program that led to it has died, and it lives on and never stops: what it can still say has
 * an end. */
START_TEST(a_guest_that_outlives_its_program)
{
    int ended = 0;
    pid_t pid = fork();
    if (pid == 0) {
        unsigned char frame[BC_FRAME_HEADER + FAKE_QUERY_BYTES];
        memcpy(frame + BC_FRAME_HEADER, fake_query, FAKE_QUERY_BYTES);
        for (uint32_t stream = STREAM(1);; stream++) {
            bc_frame_put_header(frame, BC_FRAME_NET_QUERY, stream, FAKE_QUERY_BYTES);
            if (send(guest, frame, sizeof frame, MSG_NOSIGNAL) < 0) _exit(errno == EPIPE ? 0 : 1);
        }
    }
    close(guest);
    for (int i = 0; i < 10; i++) {
        barchan_runtime_pump(rt, 5, NULL);
    }
    ck_assert_int_eq(status().state, BARCHAN_SANDBOX_READY);
    bury();
    ck_assert_int_eq(status().state, BARCHAN_SANDBOX_ENDED);
    ck_assert_int_eq(waitpid(pid, &ended, 0), pid);
    ck_assert_int_eq(ended, 0);
    sbx = NULL;
    barchan_runtime_destroy(rt);
    close(world);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("carry breaches");
    TCase *wrong = tcase_create("does not fit"), *none = tcase_create("no network");
    TCase *outlives = tcase_create("outlives");
    tcase_add_checked_fixture(wrong, set_up_network, tear_down_network);
    tcase_add_checked_fixture(none, set_up_ready, tear_down);
    tcase_set_timeout(wrong, 60);
    tcase_add_test(wrong, as_many_as_the_plan_says);
    tcase_add_loop_test(wrong, breaches_of_a_beginning, 0, 17);
    tcase_add_loop_test(wrong, breaches_of_a_connection, 0, 15);
    tcase_add_test(wrong, a_guest_that_asks_and_never_reads);
    tcase_add_checked_fixture(outlives, set_up_network, NULL);
    tcase_set_timeout(outlives, 30);
    tcase_add_test(outlives, a_guest_that_outlives_its_program);
    tcase_add_test(none, a_sandbox_without_a_network_carries_nothing);
    suite_add_tcase(suite, wrong);
    suite_add_tcase(suite, none);
    suite_add_tcase(suite, outlives);
    return suite_end(suite);
}
