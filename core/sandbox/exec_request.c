/* From options to the request that the guest gets: arguments, environment, limits. */
#include <stdlib.h>
#include <string.h>
#include "base/cleanup.h"
#include "base/limits.h"
#include "exec.h"

/* What every command sees; the profile and the call add to it and may replace it. */
static const char *const base_env[] = {
    "PATH=/usr/local/bin:/usr/bin:/bin",
    "LANG=C.UTF-8",
    "HOME=/home/user",
    "USER=user",
    "TMPDIR=/tmp",
    "BARCHAN=1",
    NULL,
};

struct env {
    const char **list;
    size_t count;
};

static size_t name_len(const char *pair)
{
    return (size_t)(strchr(pair, '=') - pair) + 1;
}

static void env_set(struct env *env, const char *pair)
{
    size_t len = name_len(pair);
    for (size_t i = 0; i < env->count; i++) {
        if (strncmp(env->list[i], pair, len) == 0) {
            env->list[i] = pair;
            return;
        }
    }
    env->list[env->count++] = pair;
}

static size_t count_of(const char *const *list)
{
    size_t count = 0;
    while (list != NULL && list[count] != NULL) {
        count++;
    }
    return count;
}

static int put_strings(bc_buf *out, const char *const *list, size_t count)
{
    int rc = bc_put_wire_u32(out, (uint32_t)count);
    for (size_t i = 0; i < count && rc == 0; i++) {
        rc = bc_put_wire_string(out, list[i], strlen(list[i]));
    }
    return rc;
}

static int put_env(bc_buf *out, const barchan_sandbox *sbx, const char *const *extra)
{
    const char *const *const layers[] = {base_env, (const char *const *)sbx->env, extra};
    size_t total = 0;
    for (size_t i = 0; i < 3; i++) {
        total += count_of(layers[i]);
    }
    cleanup_free const char **list = calloc(total + 1, sizeof *list);
    if (list == NULL) return BARCHAN_ENOMEM;
    struct env env = {.list = list};
    for (size_t i = 0; i < 3; i++) {
        for (size_t k = 0; layers[i] != NULL && layers[i][k] != NULL; k++) {
            env_set(&env, layers[i][k]);
        }
    }
    return put_strings(out, list, env.count);
}

void bc_exec_defaults(barchan_exec_options *options, const barchan_sandbox *sbx)
{
    if (options->timeout_ms == 0) options->timeout_ms = BC_EXEC_DEFAULT_TIMEOUT_MS;
    if (sbx->wall_ms > 0 && (options->timeout_ms < 0 || options->timeout_ms > sbx->wall_ms)) {
        options->timeout_ms = sbx->wall_ms;
    }
    if (options->grace_ms == 0) options->grace_ms = BC_EXEC_DEFAULT_GRACE_MS;
    if (options->out_limit_bytes == 0) options->out_limit_bytes = BC_EXEC_DEFAULT_OUTPUT_BYTES;
    if (options->err_limit_bytes == 0) options->err_limit_bytes = BC_EXEC_DEFAULT_OUTPUT_BYTES;
    if (options->out_limit_bytes < 0) options->out_limit_bytes = 0;
    if (options->err_limit_bytes < 0) options->err_limit_bytes = 0;
    if (options->cwd == NULL) options->cwd = "/workspace";
}

int bc_exec_encode(bc_buf *out, const barchan_sandbox *sbx, const barchan_exec_options *options,
                   barchan_error *err)
{
    const char *const shell[] = {"/bin/sh", "-c", options->command, NULL};
    const char *const *argv = options->command != NULL ? shell : options->argv;
    uint32_t flags = options->detach ? BC_EXEC_DETACH : 0;
    if (options->input_len > 0 || options->input_streaming) flags |= BC_EXEC_INPUT;
    if (options->streaming) flags |= BC_EXEC_STREAMING;
    if (options->pty_cols > 0) flags |= BC_EXEC_PTY;
    if (options->network_off) flags |= BC_EXEC_NETWORK_OFF;
    int rc = bc_put_wire_u32(out, flags);
    if (rc == 0) rc = bc_put_wire_u64(out, (uint64_t)options->timeout_ms);
    if (rc == 0) rc = bc_put_wire_u64(out, (uint64_t)options->grace_ms);
    if (rc == 0) rc = bc_put_wire_u64(out, (uint64_t)options->out_limit_bytes);
    if (rc == 0) rc = bc_put_wire_u64(out, (uint64_t)options->err_limit_bytes);
    if (rc == 0) rc = bc_put_wire_u32(out, (uint32_t)options->pty_cols);
    if (rc == 0) rc = bc_put_wire_u32(out, (uint32_t)options->pty_rows);
    if (rc == 0) rc = bc_put_wire_string(out, options->cwd, strlen(options->cwd));
    size_t argc = count_of(argv);
    if (argc > BC_FRAME_MAX_STRINGS) return BARCHAN_ELIMIT;
    if (rc == 0) rc = put_strings(out, argv, argc);
    if (rc == 0) rc = put_env(out, sbx, options->env);
    return rc == BARCHAN_ENOMEM ? bc_error_nomem(err) : rc;
}
