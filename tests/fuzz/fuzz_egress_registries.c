/* The first byte chooses a file of a machine that is a directory, the rest is its text. Whatever it
 * is, the answer is JSON of entries that an allow-list takes, without a user's name or a path. */
#include "fuzz.h"

#include <string.h>
#include <sys/stat.h>
#include "base/json_view.h"
#include "egress/policy.h"
#include "egress/registries.h"

static const char *const dirs[] = {"/etc",
                                   "/etc/apt",
                                   "/etc/apt/sources.list.d",
                                   "/home",
                                   "/usr",
                                   "/usr/lib",
                                   "/usr/lib/python3",
                                   "/usr/lib/python3/dist-packages",
                                   "/usr/lib/python3/dist-packages/pip",
                                   "/usr/lib/python3/dist-packages/pip/_internal",
                                   "/usr/lib/python3/dist-packages/pip/_internal/models",
                                   "/usr/lib/node_modules",
                                   "/usr/lib/node_modules/npm",
                                   "/usr/lib/node_modules/npm/package.json",
                                   "/usr/lib/node_modules/npm/lib",
                                   "/usr/lib/node_modules/npm/lib/utils",
                                   "/usr/lib/node_modules/npm/lib/utils/config"};
static const char *const files[] = {"/etc/pip.conf",
                                    "/home/.npmrc",
                                    "/etc/apt/sources.list",
                                    "/etc/apt/sources.list.d/a.sources",
                                    "/etc/apt/apt.conf",
                                    "/etc/apt/mirrors",
                                    "/usr/lib/python3/dist-packages/pip/_internal/models/index.py",
                                    "/usr/lib/node_modules/npm/lib/utils/config/definitions.js"};

enum { DIRS = sizeof dirs / sizeof *dirs, FILES = sizeof files / sizeof *files };

static char root[] = "/tmp/barchan-fuzz-XXXXXX";

static void path_of(const char *name, char out[256])
{
    snprintf(out, 256, "%s%s", root, name);
}

static void remove_machine(void)
{
    char path[256];
    for (int i = DIRS - 1; i >= 0; i--) {
        path_of(dirs[i], path);
        remove(path);
    }
    remove(root);
}

static void make_machine(void)
{
    char path[256];
    if (mkdtemp(root) == NULL) abort();
    for (int i = 0; i < DIRS; i++) {
        path_of(dirs[i], path);
        if (mkdir(path, 0700) != 0) abort();
    }
    atexit(remove_machine);
}

static const char *get_env(const char *name, void *ud)
{
    (void)ud;
    return strcmp(name, "V") == 0 ? "v.example" : NULL;
}

static void check(const bc_buf *out)
{
    json_t *view = NULL;
    CLAIM(bc_json_view(&view, bc_buf_data(out), out->len, 0, NULL) == 0);
    json_t *list = bc_json_get_array(view, "registries");
    CLAIM(list != NULL && bc_json_get_array(view, "notes") != NULL);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *entry = bc_json_get_string(json_array_get(list, i), "entry", NULL);
        const char *const allow[] = {entry, NULL};
        bc_policy *policy = NULL;
        CLAIM(entry != NULL && strpbrk(entry, "@/*?# ") == NULL);
        CLAIM(bc_policy_create(&policy, BC_POLICY_LIST, allow, NULL, NULL) == 0);
        bc_policy_destroy(policy);
    }
    json_decref(view);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int made;
    char path[256];
    if (size == 0) return 0;
    if (!made++) make_machine();
    path_of(files[data[0] % FILES], path);
    FILE *file = fopen(path, "we");
    if (file == NULL) abort();
    fwrite(data + 1, 1, size - 1, file);
    fclose(file);
    const bc_registries_options options = {.root = root, .home = "/home", .env = get_env};
    bc_buf out;
    bc_buf_init(&out, 1 << 20);
    CLAIM(bc_registries_read(&options, &out, NULL) == 0);
    check(&out);
    bc_buf_clear(&out);
    remove(path);
    return 0;
}
