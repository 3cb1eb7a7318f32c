/* Lines: a host, then allow entries, and deny entries behind '!'. Whatever they are: an entry that
 * is read prints to itself, what deny says is denied, and no address that is not public is dialled
 * unless an entry with its port holds it. */
#include "fuzz.h"

#include <string.h>
#include "base/json_scan.h"
#include "egress/policy.h"
#include "egress/policy_entry.h"

enum { MOST = 8 };

static const char *const dialled[] = {"8.8.8.8",         "127.0.0.1",     "10.1.2.3",
                                      "169.254.169.254", "::1",           "::ffff:127.0.0.1",
                                      "64:ff9b::a00:1",  "fd00:ec2::254", "fd00::1",
                                      "2002:7f00:1::",   "0.0.0.0",       "100.100.100.200",
                                      "2606:4700::1111"};
static const unsigned ports[] = {22, 80, 443, 8443, 25};

static void check_entry(const char *text, bool allow)
{
    bc_policy_entry entry, again;
    char why[BC_POLICY_ENTRY_WHY], out[BC_POLICY_ENTRY_TEXT], twice[BC_POLICY_ENTRY_TEXT];
    int rc = bc_policy_entry_read(text, allow, &entry, why);
    CLAIM((rc == 0) == (why[0] == '\0'));
    if (rc != 0) return;
    bc_policy_entry_print(&entry, out);
    CLAIM(bc_policy_entry_read(out, allow, &again, why) == 0);
    bc_policy_entry_print(&again, twice);
    CLAIM(strcmp(out, twice) == 0);
    CLAIM(entry.kind == again.kind && entry.port == again.port && entry.prefix == again.prefix);
}

static bool holds(const char *const *entries, bool allow, const bc_address *address, unsigned port)
{
    bc_policy_entry entry;
    char why[BC_POLICY_ENTRY_WHY];
    for (size_t i = 0; entries[i] != NULL; i++) {
        if (bc_policy_entry_read(entries[i], allow, &entry, why) != 0) continue;
        if (bc_policy_entry_has_port(&entry, port) && bc_policy_entry_has_address(&entry, address))
            return true;
    }
    return false;
}

static void check_decisions(const bc_policy *policy, const char *host, const char *const *allow,
                            const char *const *deny)
{
    bc_verdict name, address;
    for (size_t k = 0; k < sizeof ports / sizeof *ports; k++) {
        bc_policy_decide_name(policy, host, ports[k], &name);
        CLAIM(name.rule[0] != '\0');
        for (size_t i = 0; i < sizeof dialled / sizeof *dialled; i++) {
            bc_address to;
            CLAIM(bc_address_parse(dialled[i], &to) == 0);
            bc_policy_decide_address(policy, host, ports[k], &to, &address);
            CLAIM(address.rule[0] != '\0');
            if (!address.allowed) continue;
            bc_address_unmap(&to);
            CLAIM(name.allowed && !holds(deny, false, &to, ports[k]));
            if (bc_address_kind_of(&to) != BC_ADDRESS_PUBLIC)
                CLAIM(holds(allow, true, &to, ports[k]));
        }
    }
}

static void check_policy(const char *host, const char *const *allow, const char *const *deny)
{
    for (int mode = BC_POLICY_LIST; mode <= BC_POLICY_OPEN; mode++) {
        bc_policy *policy = NULL;
        barchan_error err = {.message = ""};
        if (bc_policy_create(&policy, (bc_policy_mode)mode, allow, deny, &err) != 0) {
            CLAIM(policy == NULL && err.message[0] != '\0');
            for (const char *c = err.message; *c != '\0'; c++)
                CLAIM(*c >= ' ' && *c <= '~');
            return;
        }
        bc_buf out;
        bc_buf_init(&out, 1 << 20);
        CLAIM(bc_policy_list(policy, &out) == 0);
        CLAIM(bc_json_validate(bc_buf_data(&out), out.len, NULL) == 0);
        bc_buf_clear(&out);
        check_decisions(policy, host, allow, deny);
        bc_policy_destroy(policy);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *allow[MOST + 1] = {NULL}, *deny[MOST + 1] = {NULL};
    char host[BC_HOST_NAME_MAX + 1], again[BC_HOST_NAME_MAX + 1], *rest = malloc(size + 1);
    size_t allowed = 0, denied = 0;
    if (rest == NULL) abort();
    if (size > 0) memcpy(rest, data, size);
    rest[size] = '\0';
    char *text = rest, *line = strsep(&rest, "\n");
    if (bc_host_name_canonical(line, strlen(line), host) == 0) {
        CLAIM(bc_host_name_canonical(host, strlen(host), again) == 0 && strcmp(host, again) == 0);
    }
    while ((line = strsep(&rest, "\n")) != NULL) {
        bool no = *line == '!';
        check_entry(line + no, !no);
        if (no && denied < MOST) deny[denied++] = line + 1;
        if (!no && *line != '\0' && allowed < MOST) allow[allowed++] = line;
    }
    check_policy(host, allow, deny);
    free(text);
    return 0;
}
