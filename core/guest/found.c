#include "found.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "files.h"

#define RESOLV_CONF "/etc/resolv.conf"
#define NAME_SERVER "nameserver " BC_NETWORK_SERVICE_TEXT "\n"

/* ---- what cannot be had ---- */

static int refuse(const char *what, const char *remedy, struct failure *why)
{
    fail_status(why, BC_WIRE_EUNSUPPORTED, "%s", what);
    return fail_hint(why, remedy);
}

static int check_files(const struct plan *plan, struct layers *layers, struct failure *why)
{
    if (strcmp(plan->template_name, "host") != 0) {
        return refuse("a template", "the files are those of the computer that was started", why);
    }
    if (plan->mounts.count > 0) {
        return refuse("mounts", "whoever starts the computer mounts what it is to have", why);
    }
    if (plan->disk_default && plan->limits.files == 0) {
        layer_holds(layers, "storage", "as the computer has it");
        return 0;
    }
    refuse("the limits of the storage", "whoever starts the computer sets them", why);
    return layer_missing(layers, plan, "storage", why);
}

/* By what process 1 itself can do; its control groups are the business of whoever made them. */
static int set_limits(struct plan *plan, struct failure *why)
{
    struct groups none;
    groups_init(&none);
    return groups_make(&none, 0, &plan->limits, plan->best_effort, &plan->groups, why);
}

/* ---- the network ---- */

/* An interface that is up and not the loopback. */
static bool find_way_out(char name[IFNAMSIZ])
{
    struct if_nameindex *all = if_nameindex();
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool found = all == NULL || fd < 0; /* nobody can tell */
    snprintf(name, IFNAMSIZ, "?");
    for (unsigned i = 0; !found && all[i].if_name != NULL; i++) {
        struct ifreq request = {0};
        snprintf(request.ifr_name, sizeof request.ifr_name, "%s", all[i].if_name);
        if (strcmp(all[i].if_name, "lo") == 0 || ioctl(fd, SIOCGIFFLAGS, &request) < 0) continue;
        found = request.ifr_flags & IFF_UP;
        if (found) snprintf(name, IFNAMSIZ, "%s", all[i].if_name);
    }
    if (all != NULL) if_freenameindex(all);
    if (fd >= 0) close(fd);
    return found;
}

static int close_ways_out(struct failure *why)
{
    char name[IFNAMSIZ];
    if (!find_way_out(name) || unshare(CLONE_NEWNET) == 0) return 0;
    fail_status(why, BC_WIRE_EUNSUPPORTED,
                "the network interface '%s' leads out, past what the profile allows", name);
    return fail_hint(why, "start the computer without it (docker: --network none), or the guest "
                          "with CAP_SYS_ADMIN");
}

/* Over the computer's own, in our sight of it; where that cannot be, in the file, of a computer
 * that was made for us alone: whose process 1 we were from the beginning. */
static int name_the_service(const struct plan *plan, struct failure *why)
{
    char text[64] = "";
    if (read_file(RESOLV_CONF, text, sizeof text) == 0 &&
        strcmp(text, "nameserver " BC_NETWORK_SERVICE_TEXT) == 0) {
        return 0;
    }
    if (unshare(CLONE_NEWNS) == 0) {
        if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
            mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "size=64k,mode=755") == 0) {
            int rc = create_file("/tmp/resolv.conf", NAME_SERVER);
            if (rc == 0) rc = mount("/tmp/resolv.conf", RESOLV_CONF, NULL, MS_BIND, NULL);
            int os_error = errno;
            umount2("/tmp", MNT_DETACH);
            if (rc == 0) return 0;
            errno = os_error;
        }
        return fail_os(why, errno, "show the name service in %s", RESOLV_CONF);
    }
    int fd = plan->alive_fd >= 0 ? -1 : open(RESOLV_CONF, O_WRONLY | O_TRUNC | O_CLOEXEC);
    bool written = fd >= 0 && write(fd, NAME_SERVER, strlen(NAME_SERVER)) > 0;
    if (fd >= 0) close(fd);
    if (written) return 0;
    fail_status(why, BC_WIRE_EUNSUPPORTED, "the computer asks another name service");
    return fail_hint(why, "let " RESOLV_CONF " say 'nameserver " BC_NETWORK_SERVICE_TEXT "'");
}

static int open_ways(struct plan *plan, struct failure *why)
{
    if (network_raise_loopback(why) < 0 ||
        network_open_here(&plan->network, &plan->sockets, why) < 0) {
        return fail_hint(why, "the guest needs CAP_NET_ADMIN in its network namespace, and "
                              "CAP_NET_BIND_SERVICE");
    }
    return name_the_service(plan, why);
}

static int take_network(struct plan *plan, struct layers *layers, struct failure *why)
{
    bool wanted = plan->network.port_count > 0;
    if (close_ways_out(why) < 0 || (wanted && open_ways(plan, why) < 0)) {
        network_close(&plan->sockets);
        return layer_missing(layers, plan, "network", why);
    }
    if (wanted) {
        layer_holds(layers, "network",
                    "decided by the library: hosts by name and %u ranges, at %u ports, carried by "
                    "process 1",
                    plan->network.range_count, plan->network.port_count);
    } else {
        network_raise_loopback(why); /* where that is allowed */
        layer_holds(layers, "network", "off: nothing but a loopback interface");
    }
    return 0;
}

/* ---- who commands are, and where ---- */

static bool is_mapped(unsigned id)
{
    char text[4096];
    unsigned first, to, count;
    if (read_file("/proc/self/uid_map", text, sizeof text) < 0) return false;
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (sscanf(line, "%u %u %u", &first, &to, &count) != 3) return false;
        if (id >= first && id - first < count) return true;
    }
    return false;
}

/* Another user than process 1, where there is one to be had. */
static int choose_user(struct plan *plan, struct layers *layers, struct failure *why)
{
    plan->privileged = geteuid() == 0 && is_mapped(SANDBOX_UID) && has_capability(CAP_SETUID) &&
                       has_capability(CAP_SETGID) && has_capability(CAP_KILL);
    if (plan->privileged && syscall(SYS_setgroups, 0, NULL) < 0) {
        return fail_os(why, errno, "drop the groups of process 1");
    }
    layer_holds(layers, "user",
                plan->privileged ? "commands are uid %d"
                                 : "commands are uid %d, "
                                   "as process 1",
                plan->privileged ? SANDBOX_UID : (int)geteuid());
    return 0;
}

static int make_place(const struct plan *plan, const char *path, struct failure *why)
{
    struct stat st;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) return 0; /* as it was meant to be */
    if (make_dirs(path) < 0 || (plan->privileged && chown(path, SANDBOX_UID, SANDBOX_UID) < 0)) {
        fail_os(why, errno, "create %s", path);
        return fail_hint(why, "the computer needs such a folder, for commands to begin in");
    }
    return 0;
}

int found_set_up(struct plan *plan, struct layers *layers, struct failure *why)
{
    layer_holds(layers, "isolation", "by whoever started the guest");
    raise_oom_score("self"); /* where that is allowed */
    if (check_files(plan, layers, why) < 0 || set_limits(plan, why) < 0 ||
        take_network(plan, layers, why) < 0 || choose_user(plan, layers, why) < 0) {
        return -1;
    }
    if (make_place(plan, "/workspace", why) < 0 || make_place(plan, "/home/user", why) < 0) {
        return -1;
    }
    struct failure unneeded; /* but with secrets, and then the library says what is missing */
    make_place(plan, "/run/barchan", &unneeded);
    if (chdir("/workspace") < 0) return fail_os(why, errno, "enter /workspace");
    return isolate_rights(plan, layers, why);
}
