/* Sockets, identity, /proc, and what must still work. See probe.h. */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/io_uring.h>
#include <linux/perf_event.h>
#include <net/if.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

/* ---- sockets and the network ---- */

static int family(int domain, int type, int protocol)
{
    int fd = socket(domain, type, protocol);
    int result = answer(fd);
    if (fd >= 0) close(fd);
    return result;
}
static int socket_vsock(void)
{
    return family(AF_VSOCK, SOCK_STREAM, 0);
}
static int socket_netlink(void)
{
    return family(AF_NETLINK, SOCK_RAW, 0);
}
/* In a network of its own, where one can be made. */
static int socket_packet(void)
{
    unshare(CLONE_NEWNET);
    return family(AF_PACKET, SOCK_RAW, 0);
}
static int socket_alg(void)
{
    return family(AF_ALG, SOCK_SEQPACKET, 0);
}
static int socket_raw(void)
{
    unshare(CLONE_NEWNET);
    return family(AF_INET, SOCK_RAW, IPPROTO_ICMP);
}
static int connect_to(const char *address, int port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    inet_pton(AF_INET, address, &to.sin_addr);
    return answer(connect(fd, (struct sockaddr *)&to, sizeof to));
}
static int host_loopback(void)
{
    return connect_to("127.0.0.1", (int)strtol(parameter("port"), NULL, 10));
}
static int outside(void)
{
    return answer_or(connect_to("198.51.100.1", 80), EINPROGRESS);
}
static int host_abstract_socket(void)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    const char *name = parameter("abstract");
    size_t len = strlen(name);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    memcpy(to.sun_path + 1, name, len);
    return answer(connect(fd, (struct sockaddr *)&to,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len)));
}
static int kill_host_process(void)
{
    return answer(kill((pid_t)strtol(parameter("pid"), NULL, 10), 0));
}

/* ---- identity ---- */

static int become_root(void)
{
    return answer(setuid(0));
}
static int become_root_group(void)
{
    return answer(setgid(0));
}
static int raise_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {
        {.effective = 1u << CAP_CHOWN, .permitted = 1u << CAP_CHOWN}};
    return answer(syscall(SYS_capset, &header, data));
}
static int lower_oom_score(void)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY);
    return fd < 0 ? -errno : answer(write(fd, "-500", 4));
}
static int raise_limit(void)
{
    struct rlimit limit;
    getrlimit(RLIMIT_CORE, &limit);
    limit.rlim_cur = limit.rlim_max = RLIM_INFINITY;
    return answer(setrlimit(RLIMIT_CORE, &limit));
}

/* ---- files of /proc ---- */

static int proc_kcore(void)
{
    return can_open("/proc/kcore", O_RDONLY);
}
static int proc_kmsg(void)
{
    return can_open("/proc/kmsg", O_RDONLY);
}
static int proc_sysrq(void)
{
    return can_open("/proc/sysrq-trigger", O_WRONLY);
}
static int proc_core_pattern(void)
{
    return can_open("/proc/sys/kernel/core_pattern", O_WRONLY);
}
static int proc_drop_caches(void)
{
    return can_open("/proc/sys/vm/drop_caches", O_WRONLY);
}
static int proc_kallsyms(void)
{
    return can_read("/proc/kallsyms");
}
static int proc_key_users(void)
{
    return can_read("/proc/key-users");
}
static int proc_timer_list(void)
{
    return can_read("/proc/timer_list");
}
static int proc_bus(void)
{
    return answer(access("/proc/bus/pci", F_OK));
}
static int dev_kmsg(void)
{
    return answer(access("/dev/kmsg", F_OK));
}

/* ---- what must still work ---- */

static int fine_fork(void)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) _exit(7);
    waitpid(pid, &status, 0);
    return WEXITSTATUS(status) == 7 ? 0 : -EIO;
}
static int fine_unix_pair(void)
{
    int fds[2];
    return answer(socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
}
static int fine_loopback(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t len = sizeof at;
    int server = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(server, (struct sockaddr *)&at, len) < 0 || listen(server, 1) < 0) return -errno;
    getsockname(server, (struct sockaddr *)&at, &len);
    return answer(connect(client, (struct sockaddr *)&at, len));
}
static int fine_fifo(void)
{
    int result = answer(mkfifo("/tmp/probe-fifo", 0600));
    unlink("/tmp/probe-fifo");
    return result;
}
static int fine_memfd(void)
{
    return answer(memfd_create("x", 0));
}
static int fine_device(void)
{
    return can_read("/dev/urandom");
}
static int fine_signal(void)
{
    return answer(kill(getpid(), 0));
}
static int fine_shared_memory(void)
{
    return can_open("/dev/shm/probe", O_RDWR | O_CREAT);
}

const struct probe probes_world[] = {
    PROBE(socket_vsock, DENIED),
    PROBE(socket_netlink, DENIED),
    PROBE(socket_packet, DENIED),
    PROBE(socket_alg, DENIED),
    PROBE(socket_raw, DENIED),
    PROBE(host_loopback, DENIED),
    PROBE(outside, DENIED),
    PROBE(host_abstract_socket, DENIED),
    PROBE(kill_host_process, DENIED),
    PROBE(become_root, DENIED),
    PROBE(become_root_group, DENIED),
    PROBE(raise_capabilities, DENIED),
    PROBE(lower_oom_score, DENIED),
    PROBE(raise_limit, DENIED),
    PROBE(proc_kcore, DENIED),
    PROBE(proc_kmsg, DENIED),
    PROBE(proc_sysrq, DENIED),
    PROBE(proc_core_pattern, DENIED),
    PROBE(proc_drop_caches, DENIED),
    PROBE(proc_kallsyms, DENIED),
    PROBE(proc_key_users, DENIED),
    PROBE(proc_timer_list, DENIED),
    PROBE(proc_bus, DENIED),
    PROBE(dev_kmsg, DENIED),
    PROBE(fine_fork, WORKS),
    PROBE(fine_unix_pair, WORKS),
    PROBE(fine_loopback, WORKS),
    PROBE(fine_fifo, WORKS),
    PROBE(fine_memfd, WORKS),
    PROBE(fine_device, WORKS),
    PROBE(fine_signal, WORKS),
    PROBE(fine_shared_memory, WORKS),
    {NULL, NULL, DENIED},
};
