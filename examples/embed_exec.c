/* A sandbox in a C program, without Lua: runs one command and prints what came out.
 *   embed_exec [COMMAND] */
#include <stdio.h>
#include <barchan/barchan.h>

static int fail(const char *what, const barchan_error *err)
{
    fprintf(stderr, "embed_exec: %s: %s\n", what, err->message);
    return 1;
}

static int run(barchan_sandbox *sbx, const char *command)
{
    barchan_error err;
    barchan_exec_result r;
    barchan_exec_options options = {
        .struct_size = sizeof options, .command = command, .timeout_ms = 10000};
    if (barchan_sandbox_exec(sbx, &options, &r, &err) < 0) return fail("exec", &err);
    fwrite(r.out.data, 1, r.out.len, stdout);
    fwrite(r.err_out.data, 1, r.err_out.len, stderr);
    printf("%s, exit code %d, %.1f ms\n", barchan_exec_reason_name(r.reason), r.exit_code,
           (double)r.usage.wall_us / 1000);
    barchan_exec_result_clear(&r);
    return 0;
}

int main(int argc, char **argv)
{
    barchan_error err;
    barchan_runtime *rt;
    barchan_sandbox *sbx;
    barchan_profile profile = {.struct_size = sizeof profile, .template_name = "host"};
    const char *command = argc > 1 ? argv[1] : "python3 -c 'print(6*7)'";
    if (barchan_runtime_create(&rt, NULL, &err) < 0) return fail("runtime", &err);
    int code = 1;
    if (barchan_sandbox_create(&sbx, rt, &profile, &err) < 0) {
        fail("sandbox", &err);
    } else {
        code = run(sbx, command);
        barchan_sandbox_destroy(sbx);
    }
    barchan_runtime_destroy(rt);
    return code;
}
