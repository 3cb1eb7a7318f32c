#include "fake_carrier.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
#include "suite.h"

int world, world_port;
static char text_host[32], text_address[32];

static void set_up_world(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    world = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    ck_assert_int_eq(bind(world, (struct sockaddr *)&at, sizeof at), 0);
    ck_assert_int_eq(listen(world, 600), 0);
    ck_assert_int_eq(getsockname(world, (struct sockaddr *)&at, &len), 0);
    world_port = ntohs(at.sin_port);
    snprintf(text_host, sizeof text_host, "a.example:%d", world_port);
    snprintf(text_address, sizeof text_address, "127.0.0.1:%d", world_port);
}

void set_up_with(size_t max_connections, barchan_connect_fn on_connect)
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

void set_up_network(void)
{
    set_up_world();
    set_up_with(0, NULL);
}

void tear_down_network(void)
{
    tear_down();
    close(world);
}

/* ---- what the library says ---- */

static unsigned char heard[1 << 20];
static size_t heard_len;

void hear(void)
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
bc_frame next_frame(void)
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

void forget_heard(void)
{
    while (next_frame().type != 0) {}
}

bc_frame hears(uint32_t type, uint32_t stream)
{
    bc_frame frame = next_frame();
    ck_assert_msg(frame.type == type && frame.stream == stream, "%u of %x, not %u of %x",
                  frame.type, frame.stream, type, stream);
    return frame;
}

void hears_nothing(void)
{
    ck_assert_uint_eq(next_frame().type, 0);
}

void hears_close(uint32_t stream, uint32_t how)
{
    bc_frame frame = hears(BC_FRAME_NET_CLOSE, stream);
    ck_assert_uint_eq(frame.length, 4);
    ck_assert_uint_eq(bc_get_u32(frame.payload), how);
}

/* ---- what the guest says ---- */

void say_number(uint32_t type, uint32_t stream, uint32_t number)
{
    unsigned char bytes[4];
    bc_put_u32(bytes, number);
    say(type, stream, bytes, sizeof bytes);
}

void say_connect(uint32_t stream, uint32_t address, uint32_t to)
{
    unsigned char bytes[8];
    bc_put_u32(bytes, address);
    bc_put_u32(bytes + 4, to);
    say(BC_FRAME_NET_CONNECT, stream, bytes, sizeof bytes);
}

const unsigned char fake_query[FAKE_QUERY_BYTES] = "\0\7\1\0\0\1\0\0\0\0\0\0\1a\7example\0\0\1\0\1";

void say_query(uint32_t stream)
{
    say(BC_FRAME_NET_QUERY, stream, fake_query, sizeof fake_query);
}

/* Its name is known, and it is connected to. */
void connect_named(uint32_t first)
{
    say_query(STREAM(first));
    bc_frame answer = hears(BC_FRAME_NET_ANSWER, STREAM(first));
    ck_assert_uint_gt(answer.length, 16);
    uint32_t wire = htonl(NAME_ADDRESS);
    ck_assert(memcmp(answer.payload + answer.length - 4, &wire, 4) == 0);
    say_connect(STREAM(first + 1), NAME_ADDRESS, (uint32_t)world_port);
}

int accept_one(void)
{
    for (int i = 0; i < 200; i++) {
        int fd = accept4(world, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) return fd;
        barchan_runtime_pump(rt, 10, NULL);
    }
    ck_abort_msg("nobody connects");
}

size_t read_world(int fd, char *to, size_t cap)
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
