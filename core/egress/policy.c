#include "policy.h"

#include <stdio.h>
#include <string.h>
#include "base/cleanup.h"
#include "base/error.h"
#include "base/json_write.h"
#include "policy_entry.h"

struct bc_policy {
    bc_policy_mode mode;
    size_t allow_count, deny_count, port_count;
    bc_policy_entry *allow, *deny;
    unsigned short ports[BC_POLICY_MAX_PORTS];
};

/* SSH, HTTP, HTTPS, their usual other ports, and git's own. */
static const unsigned short open_ports[] = {22, 80, 443, 8080, 8443, 9418};

/* ---- creation ---- */

/* The entry as its author wrote it, fit for a line of text. */
static void quote(const char *text, char out[96])
{
    size_t at = 0;
    for (; text[at] != '\0' && at < 88; at++)
        out[at] = text[at] >= ' ' && text[at] <= '~' ? text[at] : '?';
    snprintf(out + at, 96 - at, "%s", text[at] != '\0' ? "..." : "");
}

static int read_list(const char *name, const char *const *list, bc_policy_entry **out,
                     size_t *count, barchan_error *err)
{
    char why[BC_POLICY_ENTRY_WHY], quoted[96];
    size_t n = 0;
    while (list != NULL && n <= BC_POLICY_MAX_ENTRIES && list[n] != NULL)
        n++;
    if (n > BC_POLICY_MAX_ENTRIES) {
        return bc_error_set(err, BARCHAN_ELIMIT, "the %s list has more than %d entries", name,
                            BC_POLICY_MAX_ENTRIES);
    }
    if (n == 0) return 0;
    cleanup_free bc_policy_entry *entries = calloc(n, sizeof *entries);
    if (entries == NULL) return bc_error_nomem(err);
    for (size_t i = 0; i < n; i++) {
        if (bc_policy_entry_read(list[i], strcmp(name, "allow") == 0, &entries[i], why) == 0) {
            continue;
        }
        quote(list[i], quoted);
        return bc_error_set(err, BARCHAN_EINVAL, "%s entry %zu, '%s': %s", name, i + 1, quoted,
                            why);
    }
    *out = steal_pointer(&entries);
    *count = n;
    return 0;
}

/* Keeps them sorted. */
static int add_port(bc_policy *policy, unsigned port, barchan_error *err)
{
    size_t at = 0;
    while (at < policy->port_count && policy->ports[at] < port)
        at++;
    if (at < policy->port_count && policy->ports[at] == port) return 0;
    if (policy->port_count == BC_POLICY_MAX_PORTS) {
        return bc_error_set(err, BARCHAN_ELIMIT, "the allow list has more than %d different ports",
                            BC_POLICY_MAX_PORTS);
    }
    memmove(policy->ports + at + 1, policy->ports + at,
            (policy->port_count - at) * sizeof *policy->ports);
    policy->ports[at] = (unsigned short)port;
    policy->port_count++;
    return 0;
}

static int collect_ports(bc_policy *policy, barchan_error *err)
{
    int rc = 0;
    for (size_t i = 0; i < sizeof open_ports / sizeof *open_ports && rc == 0; i++)
        if (policy->mode == BC_POLICY_OPEN) rc = add_port(policy, open_ports[i], err);
    for (size_t i = 0; i < policy->allow_count && rc == 0; i++) {
        unsigned port = policy->allow[i].port;
        rc = add_port(policy, port != 0 ? port : 80, err);
        if (rc == 0 && port == 0) rc = add_port(policy, 443, err);
    }
    return rc;
}

static void destroy(bc_policy **policy)
{
    bc_policy_destroy(*policy);
}

int bc_policy_create(bc_policy **out, bc_policy_mode mode, const char *const *allow,
                     const char *const *deny, barchan_error *err)
{
    __attribute__((cleanup(destroy))) bc_policy *policy = calloc(1, sizeof *policy);
    if (policy == NULL) return bc_error_nomem(err);
    if (mode != BC_POLICY_LIST && mode != BC_POLICY_OPEN) {
        return bc_error_set(err, BARCHAN_EINVAL, "unknown mode of a network policy");
    }
    policy->mode = mode;
    int rc = read_list("allow", allow, &policy->allow, &policy->allow_count, err);
    if (rc == 0) rc = read_list("deny", deny, &policy->deny, &policy->deny_count, err);
    if (rc == 0) rc = collect_ports(policy, err);
    if (rc == 0) *out = steal_pointer(&policy);
    return rc;
}

void bc_policy_destroy(bc_policy *policy)
{
    if (policy == NULL) return;
    free(policy->allow);
    free(policy->deny);
    free(policy);
}

/* ---- decisions ---- */

static void say(bc_verdict *verdict, bool allowed, const char *what, const char *more)
{
    verdict->allowed = allowed;
    verdict->named = verdict->unlisted = false;
    snprintf(verdict->rule, sizeof verdict->rule, "%s%s", what, more);
}

static void say_entry(bc_verdict *verdict, bool allowed, const bc_policy_entry *entry)
{
    char text[BC_POLICY_ENTRY_TEXT];
    bc_policy_entry_print(entry, text);
    say(verdict, allowed, allowed ? "allow: " : "deny: ", text);
}

static bool has_port(const bc_policy *policy, unsigned port)
{
    for (size_t i = 0; i < policy->port_count; i++)
        if (policy->ports[i] == port) return true;
    return false;
}

static const bc_policy_entry *find_name(const bc_policy_entry *entries, size_t count,
                                        const char *host, unsigned port)
{
    for (size_t i = 0; i < count; i++) {
        if (!bc_policy_entry_has_port(&entries[i], port)) continue;
        if (bc_policy_entry_has_name(&entries[i], host)) return &entries[i];
    }
    return NULL;
}

/* What neither an entry nor the mode allows: says whether it is only for its port. */
static void say_unlisted(const bc_policy *policy, unsigned port, bool known, bc_verdict *verdict)
{
    char number[48];
    snprintf(number, sizeof number, "port %u", port);
    if (policy->mode == BC_POLICY_OPEN) {
        say(verdict, false, number, " is not one of an open network's ports");
    } else if (known) {
        say(verdict, false, number, " is not in the allow-list for this host");
    } else {
        say(verdict, false, "not in the allow-list", "");
    }
    verdict->unlisted = true;
}

static void decide_host(const bc_policy *policy, const char *host, unsigned port,
                        bc_verdict *verdict)
{
    const bc_policy_entry *entry = find_name(policy->deny, policy->deny_count, host, port);
    if (entry != NULL) {
        say_entry(verdict, false, entry);
        return;
    }
    entry = find_name(policy->allow, policy->allow_count, host, port);
    if (entry != NULL) {
        say_entry(verdict, true, entry);
        return;
    }
    if (policy->mode == BC_POLICY_OPEN && has_port(policy, port)) {
        say(verdict, true, "open", "");
        return;
    }
    bool known = false;
    for (size_t i = 0; i < policy->allow_count && !known; i++)
        known = bc_policy_entry_has_name(&policy->allow[i], host);
    say_unlisted(policy, port, known, verdict);
}

/* The deny entry for an address, or for an IPv4 address that it stands for. */
static const bc_policy_entry *find_denied(const bc_policy *policy, const bc_address *address,
                                          unsigned port)
{
    bc_address embedded[BC_ADDRESS_EMBEDDED_MAX];
    size_t count = bc_address_embedded(address, embedded);
    for (size_t i = 0; i < policy->deny_count; i++) {
        const bc_policy_entry *entry = &policy->deny[i];
        if (!bc_policy_entry_has_port(entry, port)) continue;
        if (bc_policy_entry_has_address(entry, address)) return entry;
        for (size_t k = 0; k < count; k++)
            if (bc_policy_entry_has_address(entry, &embedded[k])) return entry;
    }
    return NULL;
}

/* `verdict` has the decision by name, unless the host is the address itself (`literal`). */
static void decide_dialled(const bc_policy *policy, const char *host, bool literal, unsigned port,
                           const bc_address *address, bc_verdict *verdict)
{
    const bc_policy_entry *denied = find_denied(policy, address, port);
    const bc_policy_entry *named = NULL;
    bool known = false;
    if (denied != NULL) {
        say_entry(verdict, false, denied);
        return;
    }
    for (size_t i = 0; i < policy->allow_count && named == NULL; i++) {
        const bc_policy_entry *entry = &policy->allow[i];
        if (!bc_policy_entry_has_address(entry, address)) continue;
        if (!bc_policy_entry_names(entry, address)) continue;
        known = true;
        if (bc_policy_entry_has_port(entry, port)) named = entry;
    }
    bc_address_kind kind = bc_address_kind_of(address);
    if (named == NULL && kind != BC_ADDRESS_PUBLIC) {
        char text[BC_ADDRESS_TEXT];
        bc_address_print(address, text);
        verdict->allowed = verdict->unlisted = false;
        snprintf(verdict->rule, sizeof verdict->rule,
                 "%s address %s%s%s; an entry for the address would allow it",
                 bc_address_kind_name(kind), text, literal ? "" : " of ", literal ? "" : host);
        return;
    }
    if (literal && named != NULL) say_entry(verdict, true, named);
    verdict->named = named != NULL;
    if (!literal || named != NULL) return;
    if (policy->mode == BC_POLICY_OPEN && has_port(policy, port)) {
        say(verdict, true, "open", "");
    } else {
        say_unlisted(policy, port, known, verdict);
    }
}

static bool is_sound(const char *host, unsigned port, bc_verdict *verdict)
{
    char canonical[BC_HOST_NAME_MAX + 1];
    *verdict = (bc_verdict){.allowed = false};
    size_t len = strnlen(host, BC_HOST_NAME_MAX + 1);
    if (bc_host_name_canonical(host, len, canonical) != 0 || strcmp(host, canonical) != 0) {
        say(verdict, false, "not a host name in its canonical form", "");
        return false;
    }
    if (port == 0 || port > 65535) {
        say(verdict, false, "not a port", "");
        return false;
    }
    return true;
}

void bc_policy_decide_name(const bc_policy *policy, const char *canonical_host, unsigned port,
                           bc_verdict *verdict)
{
    bc_address address;
    if (!is_sound(canonical_host, port, verdict)) return;
    if (bc_address_parse(canonical_host, &address) != 0) {
        decide_host(policy, canonical_host, port, verdict);
        return;
    }
    bc_address_unmap(&address);
    decide_dialled(policy, canonical_host, true, port, &address, verdict);
}

void bc_policy_decide_address(const bc_policy *policy, const char *canonical_host, unsigned port,
                              const bc_address *address, bc_verdict *verdict)
{
    bc_address dialled = *address, meant;
    bc_policy_decide_name(policy, canonical_host, port, verdict);
    if (!verdict->allowed) return;
    bc_address_unmap(&dialled);
    bool literal = bc_address_parse(canonical_host, &meant) == 0;
    if (literal) bc_address_unmap(&meant);
    if (literal && !bc_address_equal(&meant, &dialled)) {
        say(verdict, false, "not the address that was asked for", "");
        return;
    }
    decide_dialled(policy, canonical_host, literal, port, &dialled, verdict);
}

void bc_policy_decide_asked(const bc_policy *policy, const char *canonical_host, unsigned port,
                            const bc_address *address, bc_verdict *verdict)
{
    bc_address dialled = *address;
    bc_policy_decide_name(policy, canonical_host, port, verdict);
    if (!verdict->allowed && !verdict->unlisted) return;
    say(verdict, true, "allowed when asked", "");
    bc_address_unmap(&dialled);
    decide_dialled(policy, canonical_host, false, port, &dialled, verdict);
}

/* ---- what it says of itself ---- */

size_t bc_policy_ranges(const bc_policy *policy, bc_policy_range *ranges, size_t cap)
{
    size_t count = 0;
    for (size_t i = 0; i < policy->allow_count; i++) {
        const bc_policy_entry *entry = &policy->allow[i];
        if (entry->kind != BC_POLICY_RANGE || bc_address_bits(&entry->net) != 32) continue;
        if (count < cap) {
            ranges[count] = (bc_policy_range){.net = entry->net, .prefix = entry->prefix};
        }
        count++;
    }
    return count;
}

size_t bc_policy_ports(const bc_policy *policy, unsigned short *ports, size_t cap)
{
    for (size_t i = 0; i < policy->port_count && i < cap; i++)
        ports[i] = policy->ports[i];
    return policy->port_count;
}

static int list_entries(const char *name, const bc_policy_entry *entries, size_t count, bc_buf *out)
{
    char text[BC_POLICY_ENTRY_TEXT];
    int rc = bc_buf_appendf(out, ",\"%s\":[", name);
    for (size_t i = 0; i < count && rc >= 0; i++) {
        bc_policy_entry_print(&entries[i], text);
        if (i > 0) rc = bc_buf_append_char(out, ',');
        if (rc >= 0) rc = bc_json_write_string(out, text, strlen(text));
    }
    return rc < 0 ? rc : bc_buf_append_char(out, ']');
}

int bc_policy_list(const bc_policy *policy, bc_buf *out)
{
    const char *mode = policy->mode == BC_POLICY_OPEN ? "open" : "list";
    int rc = bc_buf_appendf(out, "{\"mode\":\"%s\"", mode);
    if (rc >= 0) rc = list_entries("allow", policy->allow, policy->allow_count, out);
    if (rc >= 0) rc = list_entries("deny", policy->deny, policy->deny_count, out);
    return rc < 0 ? rc : bc_buf_append_char(out, '}');
}
