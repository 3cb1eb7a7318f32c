/*
 * The client of bench_egress, the same inside a sandbox and outside: asks a server at an address
 * for BYTES, COUNT times over connections of their own. Prints the microseconds of each.
 *
 *     egress_client ADDRESS PORT HOST BYTES COUNT
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static double now_us(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

/* The bytes that came, with the head of the answer. */
static long get(const struct sockaddr_in *at, const char *request)
{
    static char data[256u << 10];
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (const struct sockaddr *)at, sizeof *at) < 0) return -1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (send(fd, request, strlen(request), 0) != (ssize_t)strlen(request)) return -1;
    long all = 0;
    ssize_t n;
    while ((n = recv(fd, data, sizeof data, 0)) > 0) {
        all += n;
    }
    close(fd);
    return n < 0 ? -1 : all;
}

int main(int argc, char **argv)
{
    if (argc != 6) return 2;
    struct sockaddr_in at = {.sin_family = AF_INET};
    char request[512];
    long bytes = strtol(argv[4], NULL, 10), count = strtol(argv[5], NULL, 10);
    at.sin_port = htons((unsigned short)strtol(argv[2], NULL, 10));
    if (inet_pton(AF_INET, argv[1], &at.sin_addr) != 1) return 2;
    snprintf(request, sizeof request, "GET /%ld HTTP/1.1\r\nHost: %s:%s\r\n\r\n", bytes, argv[3],
             argv[2]);
    for (long i = 0; i < count; i++) {
        double began = now_us();
        if (get(&at, request) <= bytes) return 1;
        printf("%.1f\n", now_us() - began);
    }
    return 0;
}
