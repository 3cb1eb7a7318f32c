#include "egress/rules.h"

#include <arpa/inet.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/limits.h"
#include "base/options.h"
#include "egress/restricted.h"

/* "name=address" */
static int read_known(struct bc_known_host *known, const char *text, barchan_error *err)
{
    const char *equals = strchr(text, '=');
    size_t len = equals == NULL ? strlen(text) : (size_t)(equals - text);
    if (equals != NULL && bc_host_name_canonical(text, len, known->name) == 0 &&
        bc_address_parse(equals + 1, &known->address) == 0) {
        return 0;
    }
    return bc_error_set(err, BARCHAN_EINVAL,
                        "host entry '%.80s': write \"name=address\", with an address in numbers",
                        text);
}

static int read_all_known(bc_rulebook *book, const char *const *hosts, barchan_error *err)
{
    size_t count = 0;
    while (hosts != NULL && hosts[count] != NULL) {
        count++;
    }
    if (count > BC_EGRESS_MAX_KNOWN) {
        return bc_error_set(err, BARCHAN_ELIMIT, "at most %d hosts with addresses",
                            BC_EGRESS_MAX_KNOWN);
    }
    book->known = calloc(count + 1, sizeof *book->known);
    if (book->known == NULL) return bc_error_nomem(err);
    for (size_t i = 0; i < count; i++) {
        int rc = read_known(&book->known[i], hosts[i], err);
        if (rc < 0) return rc;
        book->known_count++;
    }
    return 0;
}

/* Web ports are open whatever the entries say, so that what is refused there is told why. */
static void add_port(bc_network_plan *plan, uint16_t port)
{
    for (uint32_t i = 0; i < plan->port_count; i++) {
        if (plan->ports[i] == port) return;
    }
    if (plan->port_count < BC_FRAME_MAX_PORTS) plan->ports[plan->port_count++] = port;
}

/* Loopback is the sandbox's own, whatever an entry says: the host's is reached by a name. */
static int plan_network(bc_rulebook *book, barchan_error *err)
{
    bc_network_plan *plan = &book->plan;
    bc_policy_range ranges[BC_FRAME_MAX_RANGES];
    size_t count = bc_policy_ranges(book->policy, ranges, BC_FRAME_MAX_RANGES);
    if (count > BC_FRAME_MAX_RANGES) {
        return bc_error_set(err, BARCHAN_ELIMIT, "at most %u entries are IPv4 addresses",
                            BC_FRAME_MAX_RANGES);
    }
    plan->port_count = (uint32_t)bc_policy_ports(book->policy, plan->ports, BC_FRAME_MAX_PORTS);
    add_port(plan, 80);
    add_port(plan, 443);
    for (size_t i = 0; i < count; i++) {
        uint32_t address;
        memcpy(&address, ranges[i].net.bytes, sizeof address);
        address = ntohl(address);
        if (address >> 24 == 127) continue;
        plan->ranges[plan->range_count].address = address;
        plan->ranges[plan->range_count++].prefix = ranges[i].prefix;
    }
    return 0;
}

/* At most as many as the reader of the list will take, or one more. */
static int copy_list(const char *const **list, size_t most, barchan_error *err)
{
    const char *const *from = *list;
    size_t count = 0;
    *list = NULL;
    while (from != NULL && count <= most && from[count] != NULL) {
        count++;
    }
    char **to = from == NULL ? NULL : calloc(count + 1, sizeof *to);
    *list = (const char *const *)to;
    for (size_t i = 0; to != NULL && i < count; i++) {
        to[i] = strdup(from[i]);
        if (to[i] == NULL) return bc_error_nomem(err);
    }
    return from != NULL && to == NULL ? bc_error_nomem(err) : 0;
}

static void free_list(const char *const *list)
{
    for (size_t i = 0; list != NULL && list[i] != NULL; i++) {
        free((char *)(uintptr_t)list[i]);
    }
    free((void *)(uintptr_t)list);
}

static int copy_rules(barchan_network_rules *to, const barchan_network_rules *given,
                      barchan_error *err)
{
    barchan_network_rules rules;
    int rc = bc_options_copy(&rules, sizeof rules, given, err);
    if (rc < 0) return rc;
    const char *const *lists[] = {rules.allow, rules.deny, rules.hosts};
    static const size_t most[] = {BC_POLICY_MAX_ENTRIES, BC_POLICY_MAX_ENTRIES,
                                  BC_EGRESS_MAX_KNOWN};
    for (size_t i = 0; i < 3; i++) {
        int failed = copy_list(&lists[i], most[i], err);
        if (rc == 0) rc = failed;
    }
    rules.struct_size = sizeof rules;
    rules.allow = lists[0];
    rules.deny = lists[1];
    rules.hosts = lists[2];
    *to = rules;
    return rc;
}

int bc_rulebook_read(bc_rulebook *book, barchan_network mode, const barchan_network_rules *given,
                     barchan_error *err)
{
    *book = (bc_rulebook){.mode = mode};
    int rc = copy_rules(&book->rules, given, err);
    if (rc == 0) rc = bc_network_policy(&book->policy, mode, &book->rules, err);
    if (rc == 0) rc = read_all_known(book, book->rules.hosts, err);
    if (rc == 0) rc = plan_network(book, err);
    if (rc < 0) bc_rulebook_clear(book);
    return rc;
}

void bc_rulebook_clear(bc_rulebook *book)
{
    bc_policy_destroy(book->policy);
    free_list(book->rules.allow);
    free_list(book->rules.deny);
    free_list(book->rules.hosts);
    free(book->known);
    *book = (bc_rulebook){.mode = BARCHAN_NETWORK_OFF};
}

const bc_address *bc_rulebook_known(const bc_rulebook *book, const char *host)
{
    for (size_t i = 0; i < book->known_count; i++) {
        if (strcmp(book->known[i].name, host) == 0) return &book->known[i].address;
    }
    return NULL;
}

/* ---- others in their place ---- */

static int has_port(const bc_network_plan *plan, uint16_t port)
{
    for (uint32_t i = 0; i < plan->port_count; i++) {
        if (plan->ports[i] == port) return 1;
    }
    return 0;
}

static int has_range(const bc_network_plan *plan, uint32_t address, uint32_t prefix)
{
    for (uint32_t i = 0; i < plan->range_count; i++) {
        uint32_t bits = plan->ranges[i].prefix, mask = bits == 0 ? 0 : UINT32_MAX << (32 - bits);
        if (prefix >= bits && (address & mask) == plan->ranges[i].address) return 1;
    }
    return 0;
}

/* Where connections are accepted was settled when the sandbox was made. */
static int check_plan(const bc_network_plan *opened, const bc_network_plan *wanted,
                      barchan_error *err)
{
    for (uint32_t i = 0; i < wanted->port_count; i++) {
        if (has_port(opened, wanted->ports[i])) continue;
        return bc_error_set(err, BARCHAN_EUNSUPPORTED,
                            "no entry named port %u when the sandbox was made, so nobody listens "
                            "there: name it from the beginning, with a host of yours",
                            wanted->ports[i]);
    }
    for (uint32_t i = 0; i < wanted->range_count; i++) {
        struct in_addr address = {.s_addr = htonl(wanted->ranges[i].address)};
        char text[INET_ADDRSTRLEN];
        if (has_range(opened, wanted->ranges[i].address, wanted->ranges[i].prefix)) continue;
        inet_ntop(AF_INET, &address, text, sizeof text);
        return bc_error_set(err, BARCHAN_EUNSUPPORTED,
                            "no entry named %s/%u when the sandbox was made, so it has no route "
                            "there: name the range from the beginning",
                            text, wanted->ranges[i].prefix);
    }
    return 0;
}

int bc_rulebook_replace(bc_rulebook *book, barchan_network mode, const barchan_network_rules *given,
                        barchan_error *err)
{
    bc_rulebook fresh;
    int rc = bc_rulebook_read(&fresh, mode, given, err);
    if (rc < 0) return rc;
    const barchan_network_rules *r = &fresh.rules;
    if (r->max_bytes != 0 || r->bytes_per_second != 0 || r->max_connections != 0 ||
        r->on_connect != NULL || r->on_event != NULL) {
        rc = bc_error_set(err, BARCHAN_EINVAL,
                          "allow, deny and hosts can be set anew; caps and callbacks stay");
    }
    if (rc == 0) rc = check_plan(&book->plan, &fresh.plan, err);
    if (rc < 0) {
        bc_rulebook_clear(&fresh);
        return rc;
    }
    bc_rulebook old = *book;
    *book = fresh;
    book->plan = old.plan;
    book->rules = old.rules; /* but for the lists */
    book->rules.allow = fresh.rules.allow;
    book->rules.deny = fresh.rules.deny;
    book->rules.hosts = fresh.rules.hosts;
    bc_rulebook_clear(&old);
    return 0;
}
