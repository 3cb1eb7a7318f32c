/*
 * What the way through the library costs a sandbox's connections, as ratios to the same client at
 * the same server without a sandbox, in the same run and interleaved.
 *
 *     bench_egress [ROUNDS] [MIB]
 *     bench_egress_carried …        where process 1 accepts, and the channel carries
 */
#include <barchan/barchan.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "sandbox_path.h"

#define HOST "served.example"
#define NEW_CONNECTIONS 200
#define MAX_ROUNDS 100

static barchan_runtime *rt;
static barchan_sandbox *sbx;
static char port_text[8], inside_address[64];

static _Noreturn void die(const char *what, const char *why)
{
    fprintf(stderr, "bench_egress: %s: %s\n", what, why);
    exit(1);
}

/* ---- the server, a process of its own ---- */

static void *serve(void *ud)
{
    static const char zeros[256u << 10];
    int fd = (int)(long)ud;
    char text[1024];
    ssize_t n = recv(fd, text, sizeof text - 1, 0);
    text[n < 0 ? 0 : n] = '\0';
    long left = n < 5 ? 0 : strtol(text + 5, NULL, 10);
    int len = snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\nContent-Length: %ld\r\n\r\n", left);
    send(fd, text, (size_t)len, MSG_NOSIGNAL | MSG_MORE);
    while (left > 0) {
        n = send(fd, zeros, left < (long)sizeof zeros ? (size_t)left : sizeof zeros, MSG_NOSIGNAL);
        if (n <= 0) break;
        left -= n;
    }
    shutdown(fd, SHUT_WR);
    recv(fd, text, sizeof text, 0);
    close(fd);
    return NULL;
}

static pid_t start_server(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(fd, (struct sockaddr *)&at, len) < 0 || listen(fd, 1024) < 0) die("server", "listen");
    getsockname(fd, (struct sockaddr *)&at, &len);
    snprintf(port_text, sizeof port_text, "%d", ntohs(at.sin_port));
    pid_t pid = fork();
    if (pid != 0) {
        close(fd);
        return pid;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        pthread_t thread;
        int peer = accept(fd, NULL, NULL);
        if (peer < 0) continue;
        if (pthread_create(&thread, NULL, serve, (void *)(long)peer) != 0) _exit(1);
        pthread_detach(thread);
    }
}

/* ---- the client ---- */

static char *outside(const char *bytes, const char *count)
{
    int fds[2];
    static char text[1u << 16];
    size_t len = 0;
    ssize_t n;
    if (pipe(fds) < 0) die("pipe", strerror(errno));
    pid_t pid = fork();
    if (pid == 0) {
        dup2(fds[1], 1);
        execl(CLIENT_PATH, "client", "127.0.0.1", port_text, HOST, bytes, count, (char *)NULL);
        _exit(127);
    }
    close(fds[1]);
    while ((n = read(fds[0], text + len, sizeof text - 1 - len)) > 0) {
        len += (size_t)n;
    }
    text[len] = '\0';
    close(fds[0]);
    waitpid(pid, NULL, 0);
    return text;
}

static char *inside(const char *const *argv)
{
    static char text[1u << 16];
    barchan_exec_result result;
    barchan_error err;
    const barchan_exec_options options = {
        .struct_size = sizeof options, .argv = argv, .timeout_ms = 600000};
    if (barchan_sandbox_exec(sbx, &options, &result, &err) < 0) die("exec", err.message);
    if (result.exit_code != 0) die(argv[0], result.err_out.data);
    snprintf(text, sizeof text, "%s", result.out.data);
    barchan_exec_result_clear(&result);
    return text;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *samples, int count)
{
    qsort(samples, (size_t)count, sizeof *samples, compare);
    return samples[count / 2];
}

static double median_of_text(char *text)
{
    double samples[NEW_CONNECTIONS];
    int count = 0;
    for (char *end; count < NEW_CONNECTIONS; text = end) {
        double value = strtod(text, &end);
        if (end == text) break;
        samples[count++] = value;
    }
    if (count == 0) die("client", "no figures");
    return median(samples, count);
}

static double ask(int in, long bytes, int connections)
{
    char size[32], count[32];
    snprintf(size, sizeof size, "%ld", bytes);
    snprintf(count, sizeof count, "%d", connections);
    if (!in) return median_of_text(outside(size, count));
    return median_of_text(inside(
        (const char *const[]){"./client", inside_address, port_text, HOST, size, count, NULL}));
}

/* ---- the sandbox ---- */

static void upload(void)
{
    static char bytes[4u << 20];
    barchan_error err;
    int fd = open(CLIENT_PATH, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, bytes, sizeof bytes);
    if (len <= 0) die(CLIENT_PATH, strerror(errno));
    close(fd);
    const barchan_file_request request = {.struct_size = sizeof request,
                                          .op = BARCHAN_FILE_WRITE,
                                          .path = "client",
                                          .data = bytes,
                                          .data_len = (size_t)len,
                                          .mode = 0755};
    if (barchan_sandbox_file(sbx, &request, NULL, &err) < 0) die("upload", err.message);
}

static void make_sandbox(void)
{
    char entries[2][64];
    snprintf(entries[0], sizeof entries[0], HOST ":%s", port_text);
    snprintf(entries[1], sizeof entries[1], "127.0.0.1:%s", port_text);
    const barchan_network_rules rules = {.struct_size = sizeof rules,
                                         .allow =
                                             (const char *const[]){entries[0], entries[1], NULL},
                                         .hosts = (const char *const[]){HOST "=127.0.0.1", NULL}};
    const barchan_profile profile = {
        .struct_size = sizeof profile, .network = BARCHAN_NETWORK_ALLOW, .network_rules = &rules};
    barchan_error err;
    if (barchan_runtime_create(&rt, NULL, &err) < 0) die("runtime", err.message);
    if (create_sandbox(&sbx, rt, &profile, &err) < 0) die("sandbox", err.message);
    upload();
    char *found = inside((const char *const[]){"getent", "ahostsv4", HOST, NULL});
    snprintf(inside_address, sizeof inside_address, "%.*s", (int)strcspn(found, " \n"), found);
}

int main(int argc, char **argv)
{
    static double rate[2][MAX_ROUNDS], wait[2][MAX_ROUNDS], slower[MAX_ROUNDS], later[MAX_ROUNDS];
    long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 11;
    long mib = argc > 2 ? strtol(argv[2], NULL, 10) : 512;
    if (rounds < 1 || rounds > MAX_ROUNDS || mib < 1 || mib > 1 << 20)
        die("arguments", "too large");
    pid_t server = start_server();
    make_sandbox();
    for (long i = 0; i < rounds; i++) {
        for (int k = 0; k < 2; k++) {
            int in = (int)((i + k) % 2);
            rate[in][i] = (double)mib / ask(in, mib << 20, 1) * 1e6;
            wait[in][i] = ask(in, 1, NEW_CONNECTIONS);
        }
        slower[i] = rate[1][i] / rate[0][i];
        later[i] = wait[1][i] / wait[0][i];
    }
    int count = (int)rounds;
    printf("%d rounds of %ld MiB and of %d connections as %s, medians\n", count, mib,
           NEW_CONNECTIONS, geteuid() == 0 ? "root" : "an ordinary user");
    printf("%-24s %12s %12s %8s  %s\n", "", "direct", "sandbox", "ratio", "target");
    double r0 = median(rate[0], count), r1 = median(rate[1], count);
    double w0 = median(wait[0], count), w1 = median(wait[1], count);
    printf("%-24s %8.0f MiB/s %6.0f MiB/s %8.2f  >= 0.55\n", "throughput", r0, r1,
           median(slower, count));
    printf("%-24s %9.0f us %9.0f us %8.2f  <= 2.5\n", "new connection, 1 byte", w0, w1,
           median(later, count));
    barchan_sandbox_destroy(sbx);
    barchan_runtime_destroy(rt);
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
    return 0;
}
