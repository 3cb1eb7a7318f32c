#include "guest_fake.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include "fuzz.h"

struct fake_system fake;

/* ---- calls ---- */

static long read_channel(void *buffer, size_t len)
{
    if (len > fake.in_len) len = fake.in_len;
    if (len > fake.step) len = fake.step;
    memcpy(buffer, fake.in, len);
    fake.in += len;
    fake.in_len -= len;
    return (long)len;
}

static long take_said(const void *data, size_t len)
{
    if (len > sizeof fake.said - fake.said_len) return -EAGAIN;
    memcpy(fake.said + fake.said_len, data, len);
    fake.said_len += len;
    return (long)len;
}

static long open_fd(void)
{
    return 100 + fake.open_fds++;
}

static long open_pipe(int *fds)
{
    fds[0] = (int)open_fd();
    fds[1] = (int)open_fd();
    return 0;
}

/* Of a connection that a program makes: to where, and what it says. */
static long tell_address(struct sockaddr_in *to)
{
    *to = (struct sockaddr_in){.sin_family = AF_INET,
                               .sin_port = htons(80),
                               .sin_addr.s_addr = htonl(fake.connections % 3 ? 0xC6120100 : 1)};
    return 0;
}

static long say_words(void *buffer, size_t len)
{
    size_t n = len < 5000 ? len : 5000;
    if (fake.words <= 0) return 0;
    fake.words--;
    memset(buffer, 'w', n);
    return (long)n;
}

static long ask_question(void *buffer, size_t len)
{
    if (fake.questions <= 0) return -EAGAIN;
    memset(buffer, 'q', len);
    return fake.questions-- % 4 == 0 ? 1 << 20 : 30; /* one is too long */
}

/* As the kernel would, where process 1 asks for its jobs; never 0 from a fork. */
long sys_call6(long nr, long a, long b, long c, long d, long e, long f)
{
    (void)d, (void)e, (void)f;
    switch (nr) {
    case SYS_exit_group: longjmp(fake.exit, 1);
    case SYS_read:
        if (a == FAKE_CHANNEL) return read_channel((void *)b, (size_t)c);
        return say_words((void *)b, (size_t)c);
    case SYS_write:
        if (a == FAKE_CHANNEL) return take_said((void *)b, (size_t)c);
        return fake.pipes_break ? -EPIPE : c > 1000 ? 1000 : c;
    case SYS_sendto: return fake.pipes_break ? -EPIPE : c > 1000 ? 1000 : c;
    case SYS_accept4: return fake.connections-- > 0 ? open_fd() : -EAGAIN;
    case SYS_getsockname: return tell_address((void *)b);
    case SYS_recvfrom: return ask_question((void *)b, (size_t)c);
    case SYS_setsockopt:
    case SYS_shutdown: return 0;
    case SYS_close: fake.open_fds--; return 0;
    case SYS_pipe2: return fake.forks_fail == 2 ? -EMFILE : open_pipe((int *)a);
    case SYS_openat: return open_fd();
    case SYS_fcntl: return b == F_DUPFD_CLOEXEC ? open_fd() : 0;
    case SYS_ioctl: return b == 0x5441 ? open_fd() : 0; /* TIOCGPTPEER */
    case SYS_clone: return fake.forks_fail ? -EAGAIN : 1000;
    case SYS_kill: return 0;
    case SYS_clock_gettime:
        fake.now_ns += 1000;
        *(struct timespec *)b =
            (struct timespec){fake.now_ns / 1000000000, fake.now_ns % 1000000000};
        return 0;
    default: return -ENOSYS;
    }
}

/* ---- the heap: a process that ends gives everything back ---- */

struct block {
    _Alignas(max_align_t) struct block *next; /* and so is what follows it */
    struct block *prev;
    size_t size;
};
static struct block *blocks;

void *guest_malloc(size_t size)
{
    struct block *block = malloc(sizeof *block + size);
    if (block == NULL) return NULL;
    *block = (struct block){.next = blocks, .size = size};
    if (blocks != NULL) blocks->prev = block;
    blocks = block;
    fake.blocks++;
    return block + 1;
}

void guest_free(void *data)
{
    if (data == NULL) return;
    struct block *block = (struct block *)data - 1;
    if (block->prev != NULL) block->prev->next = block->next;
    if (block->next != NULL) block->next->prev = block->prev;
    if (blocks == block) blocks = block->next;
    fake.blocks--;
    free(block);
}

void *guest_calloc(size_t count, size_t size)
{
    void *data = guest_malloc(count * size);
    return data == NULL ? NULL : memset(data, 0, count * size);
}

/* Always elsewhere, so that who kept the old address is found. */
void *guest_realloc(void *data, size_t size)
{
    void *moved = guest_malloc(size);
    if (moved == NULL || data == NULL) return moved;
    const struct block *block = (struct block *)data - 1;
    memcpy(moved, data, block->size < size ? block->size : size);
    guest_free(data);
    return moved;
}

void fake_free_all(void)
{
    while (blocks != NULL) {
        guest_free(blocks + 1);
    }
}
