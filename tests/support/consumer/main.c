/* Runs one command in a sandbox through the installed library. */
#include <stdio.h>
#include <barchan/barchan.h>

int main(void)
{
    barchan_error err;
    barchan_runtime *rt;
    barchan_sandbox *sbx;
    barchan_exec_result r;
    barchan_exec_options options = {.struct_size = sizeof options, .command = "echo $((6 * 7))"};
    if (barchan_runtime_create(&rt, NULL, &err) < 0 ||
        barchan_sandbox_create(&sbx, rt, NULL, &err) < 0 ||
        barchan_sandbox_exec(sbx, &options, &r, &err) < 0) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    fwrite(r.out.data, 1, r.out.len, stdout);
    barchan_exec_result_clear(&r);
    barchan_sandbox_destroy(sbx);
    barchan_runtime_destroy(rt);
    return 0;
}
