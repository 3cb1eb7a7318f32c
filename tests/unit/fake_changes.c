#include "fake_changes.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

char dir[64];
int done, code;
barchan_apply_result result;
bc_wire_writer list;
uint32_t stream; /* the last that the library has opened */

const char *at(const char *name)
{
    static char path[16][160];
    static int next;
    char *found = path[next++ % 16];
    snprintf(found, sizeof path[0], "%s/%s", dir, name);
    return found;
}

void put(const char *name, const char *text)
{
    FILE *file = fopen(at(name), "we");
    ck_assert(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
}

void has(const char *name, const char *text)
{
    char bytes[64] = "";
    FILE *file = fopen(at(name), "re");
    if (text == NULL) {
        ck_assert_msg(file == NULL, "%s is there", name);
        return;
    }
    ck_assert_msg(file != NULL, "%s is missing", name);
    bytes[fread(bytes, 1, sizeof bytes - 1, file)] = '\0';
    fclose(file);
    ck_assert_str_eq(bytes, text);
}

/* Exactly these names, sorted. */
void folder_holds(const char *names)
{
    char command[200], text[200];
    snprintf(command, sizeof command, "cd %s/dest && ls -A | tr '\\n' ' '", dir);
    FILE *out = popen(command, "r");
    ck_assert_ptr_nonnull(out);
    text[fread(text, 1, sizeof text - 1, out)] = '\0';
    pclose(out);
    ck_assert_str_eq(text, names);
}

void begin(void)
{
    set_up_ready();
    done = code = 0;
    stream = 0;
    list = (bc_wire_writer){.data = malloc(70000), .cap = 70000};
    strcpy(dir, "/tmp/barchan-apply-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(mkdir(at("dest"), 0755), 0);
    ck_assert_int_eq(mkdir(at("outside"), 0755), 0);
    put("outside/canary", "canary");
    put("dest/precious", "precious");
}

void end(void)
{
    char command[100];
    has("outside/canary", "canary");
    ck_assert_int_eq(access(at("outside/x"), F_OK), -1);
    tear_down();
    barchan_apply_result_clear(&result);
    free(list.data);
    snprintf(command, sizeof command, "rm -rf %s", dir);
    ck_assert_int_eq(system(command), 0);
}

static void on_applied(barchan_apply_result *given, const barchan_error *err, void *ud)
{
    (void)ud;
    done++;
    code = err == NULL ? 0 : err->code;
    if (err != NULL) memcpy(seen.message, err->message, sizeof err->message);
    if (err == NULL) result = *given, memset(given, 0, sizeof *given);
}

void start(barchan_apply_options options)
{
    barchan_error err = {0};
    options.struct_size = sizeof options;
    ck_assert_msg(barchan_sandbox_apply_changes_start(NULL, sbx, at("dest"), &options, on_applied,
                                                      NULL, &err) == 0,
                  "%s", err.message);
    stream = 1;
}

void change(uint32_t kind, uint32_t type, uint32_t mode, const char *path, const char *target)
{
    bc_wire_put_u32(&list, kind);
    bc_wire_put_u32(&list, type);
    bc_wire_put_u32(&list, mode);
    bc_wire_put_u64(&list, UINT64_MAX);
    bc_wire_put_u64(&list, UINT64_MAX);
    bc_wire_put_string(&list, path, strlen(path));
    bc_wire_put_string(&list, target, strlen(target));
}

void say_done(uint64_t bytes, uint32_t truncated)
{
    bc_wire_writer out = payload();
    bc_wire_put_u32(&out, 0);
    bc_wire_put_u32(&out, 0);
    bc_wire_put_u64(&out, bytes);
    bc_wire_put_u64(&out, bytes);
    bc_wire_put_u32(&out, truncated);
    bc_wire_put_string(&out, "", 0);
    say(BC_FRAME_FILE_DONE, stream++, out.data, out.len);
}

void say_list(void)
{
    say(BC_FRAME_OUT, stream, list.data, list.len);
    say_done(0, 0);
}

void say_file(const char *text)
{
    say(BC_FRAME_OUT, stream, text, strlen(text));
    say_done(strlen(text), 0);
}
