/*
 * The ways out of a sandbox with a network: sockets in its network namespace that the library
 * holds, or process 1 for it (carry.c). There is no interface but the loopback; what names stand
 * for (BC_NETWORK_NAMES), and the ranges that a profile names, are routed to it as if they were the
 * sandbox's own addresses, so a connection to any of them ends at a listener of ours, and one to
 * anything else fails at once for want of a route. Nothing leaves but what the library, having
 * decided, sends itself.
 */
#include "launcher.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LOOPBACK_INDEX 1 /* the first interface of every namespace */
#define BACKLOG 1024

/* One request to the kernel's routing. */
struct request {
    struct nlmsghdr head;
    union {
        struct ifaddrmsg address;
        struct rtmsg route;
    } of;
    unsigned char attributes[32];
};

static void begin(struct request *request, unsigned type, unsigned payload)
{
    memset(request, 0, sizeof *request);
    request->head.nlmsg_len = NLMSG_LENGTH(payload);
    request->head.nlmsg_type = (unsigned short)type;
    request->head.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE;
}

static void add_u32(struct request *request, unsigned short type, uint32_t value)
{
    struct rtattr attribute = {.rta_type = type, .rta_len = RTA_LENGTH(sizeof value)};
    unsigned char *at = (unsigned char *)request + NLMSG_ALIGN(request->head.nlmsg_len);
    memcpy(at, &attribute, sizeof attribute);
    memcpy(at + RTA_LENGTH(0), &value, sizeof value);
    request->head.nlmsg_len = NLMSG_ALIGN(request->head.nlmsg_len) + RTA_SPACE(sizeof value);
}

/* 0, or -1 with errno. */
static int ask(int fd, const struct request *request)
{
    struct {
        struct nlmsghdr head;
        struct nlmsgerr error;
        unsigned char rest[256];
    } answer;
    if (send(fd, request, request->head.nlmsg_len, 0) < 0) return -1;
    ssize_t n = recv(fd, &answer, sizeof answer, 0);
    if (n < 0) return -1;
    if (n < (ssize_t)NLMSG_LENGTH(sizeof answer.error) || answer.head.nlmsg_type != NLMSG_ERROR) {
        errno = EPROTO;
        return -1;
    }
    errno = -answer.error.error;
    return answer.error.error == 0 ? 0 : -1;
}

static int add_address(int fd)
{
    struct request request;
    begin(&request, RTM_NEWADDR, sizeof request.of.address);
    request.of.address =
        (struct ifaddrmsg){.ifa_family = AF_INET, .ifa_prefixlen = 32, .ifa_index = LOOPBACK_INDEX};
    add_u32(&request, IFA_LOCAL, htonl(BC_NETWORK_SERVICE));
    add_u32(&request, IFA_ADDRESS, htonl(BC_NETWORK_SERVICE));
    return ask(fd, &request);
}

/* Whoever connects comes from the service's address. The kernel would take the one that is
 * connected to, and where it also picked that port, a program would be connected to itself. */
static int add_route(int fd, uint32_t address, uint32_t prefix)
{
    struct request request;
    begin(&request, RTM_NEWROUTE, sizeof request.of.route);
    request.of.route = (struct rtmsg){.rtm_family = AF_INET,
                                      .rtm_dst_len = (unsigned char)prefix,
                                      .rtm_table = RT_TABLE_LOCAL,
                                      .rtm_protocol = RTPROT_STATIC,
                                      .rtm_scope = RT_SCOPE_HOST,
                                      .rtm_type = RTN_LOCAL};
    add_u32(&request, RTA_DST, htonl(address));
    add_u32(&request, RTA_OIF, LOOPBACK_INDEX);
    add_u32(&request, RTA_PREFSRC, htonl(BC_NETWORK_SERVICE));
    return ask(fd, &request);
}

static int set_routes(const bc_network_plan *plan, struct failure *why)
{
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (fd < 0) return fail_os(why, errno, "open a netlink socket");
    int rc = add_address(fd);
    if (rc == 0) rc = add_route(fd, BC_NETWORK_NAMES, BC_NETWORK_NAMES_PREFIX);
    for (uint32_t i = 0; rc == 0 && i < plan->range_count; i++) {
        rc = add_route(fd, plan->ranges[i].address, plan->ranges[i].prefix);
    }
    int os_error = errno;
    close(fd);
    return rc < 0 ? fail_os(why, os_error, "set the routes of the sandbox's network") : 0;
}

static int open_socket(int type, uint32_t address, unsigned port, struct failure *why)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((unsigned short)port),
                             .sin_addr.s_addr = htonl(address)};
    int fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return fail_os(why, errno, "open a socket in the sandbox's network");
    if (bind(fd, (struct sockaddr *)&at, sizeof at) == 0 &&
        (type != SOCK_STREAM || listen(fd, BACKLOG) == 0)) {
        return fd;
    }
    int os_error = errno;
    close(fd);
    return fail_os(why, os_error, "listen at port %u of the sandbox's network", port);
}

static int open_sockets(const bc_network_plan *plan, struct network_sockets *sockets,
                        struct failure *why)
{
    sockets->count = 0;
    int fd = open_socket(SOCK_DGRAM, BC_NETWORK_SERVICE, 53, why);
    for (uint32_t i = 0; fd >= 0; i++) {
        sockets->fds[sockets->count++] = fd;
        if (i == plan->port_count) return 0;
        fd = open_socket(SOCK_STREAM, INADDR_ANY, plan->ports[i], why);
    }
    network_close(sockets);
    return -1;
}

int network_open(struct world *world, const bc_network_plan *plan, struct network_sockets *sockets,
                 struct failure *why)
{
    return network_prepare(world, why) < 0 ? -1 : network_open_here(plan, sockets, why);
}

int network_open_here(const bc_network_plan *plan, struct network_sockets *sockets,
                      struct failure *why)
{
    return set_routes(plan, why) < 0 ? -1 : open_sockets(plan, sockets, why);
}

void network_close(struct network_sockets *sockets)
{
    while (sockets->count > 0) {
        close(sockets->fds[--sockets->count]);
    }
}
