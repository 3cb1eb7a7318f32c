/* A peer that asks and does not read what it is answered: bounded, and nothing is lost once it
 * does. */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/limits.h"
#include "channel/channel.h"
#include "suite.h"

enum { QUESTIONS = 2000, ANSWER = 16 << 10 };

static barchan_runtime *rt;
static bc_channel *channel;
static int peer;
static uint32_t answered;
static int ended;

static int on_frame(void *ud, const bc_frame *frame)
{
    static char text[ANSWER];
    (void)ud;
    ck_assert_uint_eq(frame->stream, ++answered); /* each once, in its order */
    return bc_channel_send(channel, BC_FRAME_OUT, frame->stream, NULL, 0, text, sizeof text, NULL);
}

static void on_end(void *ud, const barchan_error *why)
{
    (void)ud;
    ck_assert_ptr_null(why);
    ended++;
}

static void setup(void)
{
    static const bc_channel_handler handler = {.on_frame = on_frame, .on_end = on_end, .asks = 1};
    int fds[2];
    ck_assert_int_eq(barchan_runtime_create(&rt, NULL, NULL), 0);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    peer = fds[1];
    ck_assert_int_eq(bc_channel_open(&channel, rt, fds[0], &handler, NULL, NULL), 0);
}

static void teardown(void)
{
    bc_channel_close(channel);
    barchan_runtime_destroy(rt);
    close(peer);
}

/* All of them fit one read of the channel. */
static void ask(void)
{
    static unsigned char frames[QUESTIONS * BC_FRAME_HEADER];
    for (uint32_t i = 0; i < QUESTIONS; i++) {
        bc_frame_put_header(frames + (size_t)i * BC_FRAME_HEADER, BC_FRAME_OUT, i + 1, 0);
    }
    ck_assert_int_eq(send(peer, frames, sizeof frames, MSG_NOSIGNAL), sizeof frames);
    for (int i = 0; i < 50; i++)
        ck_assert_int_ge(barchan_runtime_pump(rt, 0, NULL), 0);
}

static size_t take(size_t most)
{
    static char bytes[1 << 20];
    size_t taken = 0;
    for (int empty = 0; taken < most && empty < 100;) {
        ssize_t n = recv(peer, bytes, sizeof bytes, MSG_DONTWAIT);
        taken += n > 0 ? (size_t)n : 0;
        empty = n > 0 ? 0 : empty + 1;
        ck_assert_int_ge(barchan_runtime_pump(rt, 1, NULL), 0);
    }
    return taken;
}

START_TEST(what_was_read_at_once_is_answered_when_there_is_room)
{
    ask();
    ck_assert_uint_gt(bc_channel_waiting(channel), BC_CHANNEL_MAX_UNREAD);
    ck_assert_uint_le(bc_channel_waiting(channel),
                      BC_CHANNEL_MAX_UNREAD + BC_FRAME_HEADER + ANSWER);
    ck_assert_uint_lt(answered, QUESTIONS);
    ck_assert_uint_eq(take(SIZE_MAX), (size_t)QUESTIONS * (BC_FRAME_HEADER + ANSWER));
    ck_assert_uint_eq(answered, QUESTIONS);
    ck_assert_uint_eq(bc_channel_waiting(channel), 0);
}
END_TEST

/* The room comes by a send of somebody else, after which nothing waits that would wake us. */
START_TEST(room_that_nobody_waited_for)
{
    static char bytes[1 << 20];
    ask();
    uint32_t before = answered;
    for (int i = 0; bc_channel_waiting(channel) > 0 && i < 10000; i++) {
        while (recv(peer, bytes, sizeof bytes, MSG_DONTWAIT) > 0) {}
        ck_assert_int_eq(bc_channel_send(channel, BC_FRAME_ERR, 0, NULL, 0, NULL, 0, NULL), 0);
    }
    ck_assert_uint_eq(bc_channel_waiting(channel), 0);
    ck_assert_uint_eq(answered, before);
    take(SIZE_MAX);
    ck_assert_uint_eq(answered, QUESTIONS);
}
END_TEST

START_TEST(what_is_the_last_is_given_out_in_any_case)
{
    ask();
    ck_assert_uint_lt(answered, QUESTIONS);
    bc_channel_read_now(channel);
    ck_assert_uint_eq(answered, QUESTIONS);
}
END_TEST

START_TEST(a_peer_that_ends_is_seen)
{
    ask();
    close(peer);
    for (int i = 0; i < 50 && !ended; i++)
        ck_assert_int_ge(barchan_runtime_pump(rt, 1, NULL), 0);
    ck_assert_int_eq(ended, 1);
    ck_assert_uint_eq(answered, QUESTIONS); /* what came before it is given out */
    peer = -1;
}
END_TEST

SUITE_MAIN("channel_unread", setup, teardown, what_was_read_at_once_is_answered_when_there_is_room,
           room_that_nobody_waited_for, what_is_the_last_is_given_out_in_any_case,
           a_peer_that_ends_is_seen)
