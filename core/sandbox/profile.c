#include <stdlib.h>
#include <string.h>
#include "base/limits.h"
#include "internal.h"
#include "templates.h"

int bc_env_check(const char *const *env, const char *what, barchan_error *err)
{
    if (env == NULL) return 0;
    size_t count = 0;
    for (; env[count] != NULL; count++) {
        if (strchr(env[count], '=') == NULL || env[count][0] == '=') {
            return bc_error_set(err, BARCHAN_EINVAL, "%s: '%.64s' is not NAME=value", what,
                                env[count]);
        }
        if (count >= BC_ENV_MAX) {
            return bc_error_set(err, BARCHAN_ELIMIT, "%s: more than %d variables", what,
                                BC_ENV_MAX);
        }
    }
    return 0;
}

static char **copy_strings(const char *const *list)
{
    size_t count = 0;
    while (list != NULL && list[count] != NULL) {
        count++;
    }
    char **copy = calloc(count + 1, sizeof *copy);
    for (size_t i = 0; copy != NULL && i < count; i++) {
        copy[i] = strdup(list[i]);
        if (copy[i] == NULL) {
            while (i > 0) {
                free(copy[--i]);
            }
            free(copy);
            return NULL;
        }
    }
    return copy;
}

static int check(const barchan_profile *profile, barchan_error *err)
{
    const char *name = profile->template_name;
    if (name != NULL && strlen(name) >= BC_FRAME_MAX_PATH) {
        return bc_error_set(err, BARCHAN_EINVAL, "the template's path is too long");
    }
    if (profile->network == BARCHAN_NETWORK_OFF && profile->network_rules != NULL) {
        return bc_error_set(err, BARCHAN_EINVAL, "network_rules need a network that is not off");
    }
    if (profile->network == BARCHAN_NETWORK_OFF && profile->secret_count > 0) {
        return bc_error_set(err, BARCHAN_EINVAL,
                            "secrets need a network that allows their hosts; it is off");
    }
    if (profile->lease_ms < 0 || profile->lease_ms > BC_SANDBOX_MAX_LEASE_MS) {
        return bc_error_set(err, BARCHAN_EINVAL, "a lease lasts up to 7 days, not %.15g s",
                            (double)profile->lease_ms / 1000);
    }
    if (profile->on_lease_end != BARCHAN_LEASE_TERMINATE &&
        profile->on_lease_end != BARCHAN_LEASE_PAUSE) {
        return bc_error_set(err, BARCHAN_EINVAL, "unknown on_lease_end %d",
                            (int)profile->on_lease_end);
    }
    if (profile->idle_timeout_ms < 0 || profile->idle_timeout_ms > BC_SANDBOX_MAX_LEASE_MS) {
        return bc_error_set(err, BARCHAN_EINVAL, "an idle timeout is up to 7 days, not %.15g s",
                            (double)profile->idle_timeout_ms / 1000);
    }
    if (profile->timeout_ms < 0) return bc_error_set(err, BARCHAN_EINVAL, "timeout_ms is negative");
    return bc_env_check(profile->env, "env", err);
}

static int read_network(barchan_sandbox *sbx, const barchan_profile *profile, barchan_error *err)
{
    if (profile->network == BARCHAN_NETWORK_OFF) return 0;
    const bc_egress_options options = {.rt = sbx->rt,
                                       .mode = profile->network,
                                       .rules = profile->network_rules,
                                       .sbx = sbx,
                                       .secrets = profile->secrets,
                                       .secret_count = profile->secret_count};
    int rc = bc_egress_create(&sbx->egress, &options, err);
    if (rc < 0) bc_error_context(err, "network");
    return rc;
}

int bc_profile_read(barchan_sandbox *sbx, const barchan_profile *profile, barchan_error *err)
{
    int rc = check(profile, err);
    if (rc == 0) rc = bc_limits_read(sbx, &profile->limits, err);
    if (rc == 0) rc = bc_mounts_read(sbx, profile, err);
    if (rc == 0) rc = read_network(sbx, profile, err);
    if (rc < 0) return rc;
    rc = bc_template_of_profile(sbx, profile->template_name, err);
    if (rc < 0) return rc;
    sbx->template_name = strdup(profile->template_name == NULL ? "host" : profile->template_name);
    sbx->env = copy_strings(profile->env);
    if (sbx->template_name == NULL || sbx->env == NULL) return bc_error_nomem(err);
    rc = bc_secrets_env(sbx, err);
    if (rc < 0) return rc;
    sbx->lease_ms = profile->lease_ms == 0 ? BC_SANDBOX_DEFAULT_LEASE_MS : profile->lease_ms;
    sbx->pause_at_lease_end = profile->on_lease_end == BARCHAN_LEASE_PAUSE;
    sbx->idle_ms = profile->idle_timeout_ms;
    sbx->best_effort = profile->best_effort != 0;
    return 0;
}

void bc_profile_clear(barchan_sandbox *sbx)
{
    for (char **env = sbx->env; env != NULL && *env != NULL; env++) {
        free(*env);
    }
    free(sbx->env);
    bc_egress_destroy(sbx->egress);
    bc_buf_clear(&sbx->mounts);
    bc_apply_forget(sbx);
    bc_template_let_go(sbx);
    free(sbx->template_name);
}
