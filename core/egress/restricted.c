#include "egress/restricted.h"

#include <stdlib.h>
#include <string.h>
#include "base/cleanup.h"
#include "base/error.h"
#include "base/json_view.h"
#include "base/json_write.h"
#include "base/options.h"
#include "egress/registries.h"

/* What the package managers of this machine say, hundreds of lines at most. */
#define MAX_JSON (1u << 20)

static const char *get_env(const char *name, void *ud)
{
    (void)ud;
    return getenv(name);
}

static int read_registries(json_t **out, barchan_error *err)
{
    const bc_registries_options options = {.home = getenv("HOME"), .env = get_env};
    bc_buf json cleanup_buf;
    bc_buf_init(&json, MAX_JSON);
    int rc = bc_registries_read(&options, &json, err);
    if (rc == 0) rc = bc_json_view(out, bc_buf_data(&json), json.len, 0, err);
    if (rc < 0) bc_error_context(err, "read the configuration of the package managers");
    return rc;
}

/* The rules' list, with the registries' entries behind it. Entries are borrowed. */
static int join(const char *const *allow, const json_t *registries, const char ***out,
                barchan_error *err)
{
    size_t count = 0, more = json_array_size(registries);
    while (allow != NULL && count <= BC_POLICY_MAX_ENTRIES && allow[count] != NULL) {
        count++;
    }
    const char **list = calloc(count + more + 1, sizeof *list);
    if (list == NULL) return bc_error_nomem(err);
    if (count > 0) memcpy(list, allow, count * sizeof *list);
    for (size_t i = 0; i < more; i++) {
        const char *entry = bc_json_get_string(json_array_get(registries, i), "entry", NULL);
        if (entry != NULL) list[count++] = entry;
    }
    *out = list;
    return 0;
}

static int make_policy(bc_policy **out, barchan_network mode, const barchan_network_rules *rules,
                       const json_t *registries, barchan_error *err)
{
    if (mode < BARCHAN_NETWORK_ALLOW || mode > BARCHAN_NETWORK_OPEN) {
        return bc_error_set(err, BARCHAN_EINVAL, "unknown network profile %d", (int)mode);
    }
    cleanup_free const char **allow = NULL;
    int rc = join(rules->allow, registries, &allow, err);
    if (rc < 0) return rc;
    bc_policy_mode kind = mode == BARCHAN_NETWORK_OPEN ? BC_POLICY_OPEN : BC_POLICY_LIST;
    return bc_policy_create(out, kind, allow, rules->deny, err);
}

int bc_network_policy(bc_policy **out, barchan_network mode, const barchan_network_rules *rules,
                      barchan_error *err)
{
    json_t *read cleanup_json = NULL;
    int rc = mode == BARCHAN_NETWORK_RESTRICTED ? read_registries(&read, err) : 0;
    if (rc < 0) return rc;
    return make_policy(out, mode, rules, bc_json_get_array(read, "registries"), err);
}

/* ---- describing ---- */

static int append_array(bc_buf *out, const char *name, const json_t *read, barchan_error *err)
{
    const json_t *array = bc_json_get_array(read, name);
    cleanup_free char *text = array == NULL ? strdup("[]") : json_dumps(array, JSON_COMPACT);
    if (text == NULL) return bc_error_nomem(err);
    int rc = bc_buf_appendf(out, ",\"%s\":", strcmp(name, "notes") == 0 ? name : "sources");
    return rc == 0 ? bc_buf_append_string(out, text) : rc;
}

static int describe(barchan_network mode, const barchan_network_rules *given, bc_buf *out,
                    barchan_error *err)
{
    static const char *const names[] = {"off", "allow", "restricted", "open"};
    barchan_network_rules rules;
    json_t *read cleanup_json = NULL;
    bc_policy *policy = NULL;
    int rc = bc_options_copy(&rules, sizeof rules, given, err);
    if (rc == 0 && mode == BARCHAN_NETWORK_RESTRICTED) rc = read_registries(&read, err);
    if (rc == 0) {
        rc = make_policy(&policy, mode, &rules, bc_json_get_array(read, "registries"), err);
    }
    if (rc < 0) return rc;
    bc_buf list cleanup_buf;
    bc_buf_init(&list, MAX_JSON);
    rc = bc_policy_list(policy, &list);
    bc_policy_destroy(policy);
    /* {"mode":"list",… becomes {"mode":"restricted",… */
    const char *rest = rc == 0 ? strchr(bc_buf_data(&list), ',') : NULL;
    if (rc == 0) rc = bc_buf_appendf(out, "{\"mode\":\"%s\"", names[mode]);
    if (rc == 0) rc = bc_buf_append(out, rest, strlen(rest) - 1);
    if (rc == 0) rc = append_array(out, "registries", read, err);
    if (rc == 0) rc = append_array(out, "notes", read, err);
    if (rc == 0) rc = bc_buf_append_char(out, '}');
    return rc == BARCHAN_ENOMEM ? bc_error_nomem(err) : rc;
}

int barchan_network_describe(barchan_network network, const barchan_network_rules *rules,
                             char **json, barchan_error *err)
{
    BC_OPERATION("network.describe");
    bc_buf out cleanup_buf;
    bc_buf_init(&out, MAX_JSON);
    if (json == NULL) return bc_error_set(err, BARCHAN_EINVAL, "json is NULL");
    int rc = describe(network, rules, &out, err);
    if (rc < 0) {
        bc_error_context(err, "describe the network");
        return rc;
    }
    *json = bc_buf_take(&out, NULL);
    return *json == NULL ? bc_error_nomem(err) : 0;
}
