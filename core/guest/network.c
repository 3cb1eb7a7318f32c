/*
 * Network namespaces are the dearest part of a sandbox, so the launcher always stands in a fresh
 * one, made while nobody waited for it; the next sandbox inherits it and the launcher moves on.
 * None is used twice. Because it belongs to the launcher's user namespace, nobody in the sandbox
 * has any right over it.
 */
#include "launcher.h"

#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

int network_raise_loopback(struct failure *why)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return fail_os(why, errno, "open a socket for the loopback interface");
    struct ifreq request = {.ifr_name = "lo"};
    int rc = ioctl(fd, SIOCGIFFLAGS, &request);
    if (rc == 0 && !(request.ifr_flags & IFF_UP)) {
        request.ifr_flags = IFF_UP | IFF_RUNNING;
        rc = ioctl(fd, SIOCSIFFLAGS, &request);
    }
    int os_error = errno;
    close(fd);
    return rc < 0 ? fail_os(why, os_error, "bring up the loopback interface") : 0;
}

int network_prepare(struct world *world, struct failure *why)
{
    if (world->network_fresh) return 0;
    if (unshare(CLONE_NEWNET) < 0) {
        int os_error = errno;
        fail_os(why, os_error, "create a network namespace");
        if (os_error == ENOSPC) fail_hint(why, "see /proc/sys/user/max_net_namespaces");
        return -1;
    }
    if (network_raise_loopback(why) < 0) return -1;
    world->network_fresh = true;
    return 0;
}
