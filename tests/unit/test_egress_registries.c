/* What pip, npm and apt are configured to use, on machines that are a temporary directory each. */
#include "base/json_view.h"
#include "egress/policy.h"
#include "egress/registries.h"
#include "suite.h"
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[] = "/tmp/barchan-registries-XXXXXX";
static const char *env_names[8], *env_values[8];
static size_t env_count;
static bc_buf out;

static void set_up(void)
{
    memcpy(root + sizeof root - 7, "XXXXXX", 6);
    ck_assert_ptr_nonnull(mkdtemp(root));
    env_count = 0;
    bc_buf_init(&out, 1 << 20);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    return remove(path);
}

static void tear_down(void)
{
    bc_buf_clear(&out);
    nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static const char *get_env(const char *name, void *ud)
{
    ck_assert_str_eq(ud, "ud");
    for (size_t i = 0; i < env_count; i++)
        if (strcmp(env_names[i], name) == 0) return env_values[i];
    return NULL;
}

static void set_env(const char *name, const char *value)
{
    env_names[env_count] = name;
    env_values[env_count++] = value;
}

static void make_parents(const char *path, char full[PATH_MAX])
{
    snprintf(full, PATH_MAX, "%s%s", root, path);
    for (char *slash = strchr(full + strlen(root) + 1, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        ck_assert(mkdir(full, 0700) == 0 || errno == EEXIST);
        *slash = '/';
    }
}

static void put(const char *path, const char *text)
{
    char full[PATH_MAX];
    make_parents(path, full);
    FILE *file = fopen(full, "we");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
}

static void read_machine(void)
{
    bc_registries_options options = {root, "/home/u", get_env, (void *)"ud"};
    barchan_error err = {.message = ""};
    bc_buf_reset(&out);
    int rc = bc_registries_read(&options, &out, &err);
    ck_assert_msg(rc == 0, "%s", err.message);
    ck_assert_int_eq(bc_json_validate(bc_buf_data(&out), out.len, NULL), 0);
}

/* "entry < from" one a line, of those whose source begins so; then "! note" likewise. */
static const char *found(const char *who)
{
    static char text[16384];
    size_t at = 0;
    read_machine();
    cleanup_json json_t *view = NULL;
    ck_assert_int_eq(bc_json_view(&view, bc_buf_data(&out), out.len, 0, NULL), 0);
    json_t *list = bc_json_get_array(view, "registries"), *notes = bc_json_get_array(view, "notes");
    text[0] = '\0';
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *from = bc_json_get_string(json_array_get(list, i), "from", NULL);
        const char *entry = bc_json_get_string(json_array_get(list, i), "entry", NULL);
        if (strncmp(from, who, strlen(who)) != 0) continue;
        at += (size_t)snprintf(text + at, sizeof text - at, "%s < %s\n", entry, from);
        /* Each is an entry of an allow-list. */
        bc_policy *policy = NULL;
        const char *const allow[] = {entry, NULL};
        ck_assert_int_eq(bc_policy_create(&policy, BC_POLICY_LIST, allow, NULL, NULL), 0);
        bc_policy_destroy(policy);
    }
    for (size_t i = 0; i < json_array_size(notes); i++) {
        const char *note = json_string_value(json_array_get(notes, i));
        bool about = strncmp(note, who, strlen(who)) == 0 || note[0] == '/';
        if (about) at += (size_t)snprintf(text + at, sizeof text - at, "! %s\n", note);
    }
    return text;
}

#define PIP "/usr/lib/python3/dist-packages/pip/_internal/models/index.py"
static const char pip_source[] = "class PackageIndex:\n    pass\n\n"
                                 "PyPI = PackageIndex(\"https://index.example.com/\", "
                                 "file_storage_domain=\"files.example.com\")\n"
                                 "TestPyPI = PackageIndex(\n    \"https://test.example.com/\", "
                                 "file_storage_domain=\"t.example.com\"\n)\n";
#define NPM "/usr/lib/node_modules/npm"
static const char npm_source[] = "  proxy: new Definition('proxy', {\n    default: null,\n  }),\n"
                                 "  registry: new Definition('registry', {\n"
                                 "    default: 'https://packages.example.com/',\n"
                                 "    type: url,\n  }),\n";

static void install_npm(void)
{
    put(NPM "/package.json", "{}");
    put(NPM "/node_modules/@npmcli/config/lib/definitions/definitions.js", npm_source);
}

START_TEST(an_empty_machine_has_none_and_says_so)
{
    ck_assert_str_eq(found(""), "! pip: no index configured, and no pip found to ask\n"
                                "! npm: no registry configured, and no npm found to ask\n"
                                "! apt: not installed\n");
    bc_registries_options bare = {.root = root};
    bc_buf_reset(&out);
    ck_assert_int_eq(bc_registries_read(&bare, &out, NULL), 0);
    bc_buf small;
    bc_buf_init(&small, 20);
    ck_assert_int_eq(bc_registries_read(&bare, &small, NULL), BARCHAN_ELIMIT);
    bc_buf_clear(&small);
}
END_TEST

START_TEST(the_defaults_are_those_of_the_installed_programs)
{
    put(PIP, pip_source);
    install_npm();
    ck_assert_str_eq(found("pip"), "index.example.com:443 < pip: built in: " PIP "\n"
                                   "files.example.com:443 < pip: built in: " PIP "\n");
    ck_assert_str_eq(found("npm"), "packages.example.com:443 < npm: built in: " NPM
                                   "/node_modules/@npmcli/config/lib/definitions/definitions.js\n");
}
END_TEST

START_TEST(older_and_other_installations_are_found)
{
    put("/opt/py/lib/python3.12/site-packages/pip/_internal/models/index.py", pip_source);
    put("/opt/node/lib/node_modules/npm/package.json", "{}");
    put("/opt/node/lib/node_modules/npm/lib/utils/config/definitions.js",
        "define('registry', {\n  default: \"https://old.example.com:8443/x/\",\n})\n");
    ck_assert_ptr_nonnull(strstr(found("pip"), "no pip found to ask"));
    ck_assert_ptr_nonnull(strstr(found("npm"), "no npm found to ask"));
    set_env("PATH", "relative:/opt/py/bin::/opt/node/bin:/");
    ck_assert_int_eq(strncmp(found("pip"), "index.example.com:443 <", 23), 0);
    ck_assert_int_eq(strncmp(found("npm"), "old.example.com:8443 <", 22), 0);
    put("/opt/node/lib/node_modules/npm/lib/utils/config/definitions.js", "changed beyond reading");
    ck_assert_str_eq(found("npm"),
                     "! npm: no registry configured, and its default was not found in it\n");
}
END_TEST

START_TEST(pip_conf_is_read_in_all_of_its_places)
{
    static const char *const places[] = {"/etc/xdg/pip/pip.conf", "/etc/pip.conf",
                                         "/home/u/.pip/pip.conf", "/home/u/.config/pip/pip.conf"};
    char expected[200];
    put(PIP, pip_source);
    /* Each overrides those before it. */
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char text[200];
        snprintf(text, sizeof text, "[global]\nindex-url = https://i%zu.example.com/simple\n", i);
        put(places[i], text);
        snprintf(expected, sizeof expected, "i%zu.example.com:443 < pip: %s\n", i, places[i]);
        ck_assert_str_eq(found("pip"), expected);
    }
    put("/own/pip.conf", "[global]\nindex_url: https://own.example.com/\n");
    put("/venv/pip.conf", "[global]\nindex-url: https://venv.example.com/\n");
    set_env("VIRTUAL_ENV", "/venv");
    ck_assert_str_eq(found("pip"), "venv.example.com:443 < pip: /venv/pip.conf\n");
    set_env("PIP_CONFIG_FILE", "/own/pip.conf");
    ck_assert_str_eq(found("pip"), "own.example.com:443 < pip: /own/pip.conf\n");
    set_env("PIP_INDEX_URL", "https://env.example.com/simple");
    ck_assert_str_eq(found("pip"), "env.example.com:443 < pip: $PIP_INDEX_URL\n");
    env_count = 0;
    set_env("PIP_CONFIG_FILE", "/dev/null");
    ck_assert_int_eq(strncmp(found("pip"), "index.example.com:443 < pip: built in", 37), 0);
    env_count = 0;
    put("/a/pip/pip.conf", "[global]\nextra-index-url = https://a.example.com\n");
    put("/b/pip/pip.conf", "[global]\nindex-url = https://b.example.com\n");
    set_env("XDG_CONFIG_DIRS", "/a:/missing");
    set_env("XDG_CONFIG_HOME", "/b");
    ck_assert_str_eq(found("pip"), "a.example.com:443 < pip: /a/pip/pip.conf\n"
                                   "b.example.com:443 < pip: /b/pip/pip.conf\n");
}
END_TEST

START_TEST(pip_conf_is_read_as_pip_reads_it)
{
    put(PIP, pip_source);
    put("/etc/pip.conf", "# index-url = https://comment.example.com\r\n"
                         "; index-url = https://comment.example.com\n"
                         "[global]\n"
                         "timeout = 60\n"
                         "extra-index-url =\n"
                         "    https://one.example.com/simple\n"
                         "# within\n"
                         "\thttp://two.example.com:8081/simple https://one.example.com/other\n"
                         "proxy = http://proxy.example.com:3128\n"
                         "[install]\n"
                         "FIND_LINKS = /opt/wheels file:///opt/wheels https://links.example.com/\n"
                         "broken\n"
                         "[broken\n"
                         "trusted-host = trusted.example.com\n");
    ck_assert_str_eq(found("pip"), "one.example.com:443 < pip: /etc/pip.conf\n"
                                   "two.example.com:8081 < pip: /etc/pip.conf\n"
                                   "links.example.com:443 < pip: /etc/pip.conf\n"
                                   "index.example.com:443 < pip: built in: " PIP "\n"
                                   "files.example.com:443 < pip: built in: " PIP "\n");
    put("/etc/pip.conf", "[global]\nno-index = true\nfind-links = https://links.example.com/\n");
    ck_assert_str_eq(found("pip"), "links.example.com:443 < pip: /etc/pip.conf\n");
    /* An empty value is none. */
    put("/etc/pip.conf", "[global]\nindex-url =\n");
    ck_assert_int_eq(strncmp(found("pip"), "index.example.com:443 < pip: built in", 37), 0);
}
END_TEST

START_TEST(credentials_never_leave_a_url)
{
    put("/etc/pip.conf", "[global]\n"
                         "index-url = https://user:s3cret@one.example.com/simple\n"
                         "extra-index-url = https://s3cret@two.example.com:8443\n"
                         " https://user:s3%40cret@x@three.example.com/?token=s3cret\n"
                         " https://user:s3cret@-no-host\n"
                         " https://user:s3cret@*.example.com/\n"
                         " https://user:s3cret@10.0.0.0/8\n"
                         " https://user:s3cret@127.1/\n"
                         " ftp://user:s3cret@four.example.com/\n");
    put("/home/u/.npmrc", "registry=https://user:s3cret@npm.example.com/\n"
                          "//npm.example.com/:_authToken=s3cret\n"
                          "@a:registry=https://s3cret@\n");
    put("/etc/apt/sources.list", "deb https://user:s3cret@apt.example.com/debian stable main\n");
    put("/etc/apt/apt.conf",
        "Acquire::http::Proxy \"http://user:s3cret@proxy.example.com:3128\";\n");
    ck_assert_str_eq(found(""), "one.example.com:443 < pip: /etc/pip.conf\n"
                                "two.example.com:8443 < pip: /etc/pip.conf\n"
                                "three.example.com:443 < pip: /etc/pip.conf\n"
                                "10.0.0.0:443 < pip: /etc/pip.conf\n"
                                "npm.example.com:443 < npm: /home/u/.npmrc\n"
                                "apt.example.com:443 < apt: /etc/apt/sources.list\n"
                                "proxy.example.com:3128 < apt: proxy: /etc/apt/apt.conf\n"
                                "! pip: /etc/pip.conf: an address that is not understood\n"
                                "! pip: /etc/pip.conf: not http or https\n"
                                "! npm: /home/u/.npmrc: an address that is not understood\n");
    ck_assert_ptr_null(strstr(bc_buf_data(&out), "s3"));
    ck_assert_ptr_null(strstr(bc_buf_data(&out), "user"));
}
END_TEST

START_TEST(npmrc_is_read_in_all_of_its_places)
{
    install_npm();
    put(NPM "/npmrc", "registry = https://builtin.example.com/\n");
    ck_assert_str_eq(found("npm"), "builtin.example.com:443 < npm: " NPM "/npmrc\n");
    put("/etc/npmrc", "registry = https://etc.example.com/\n");
    ck_assert_str_eq(found("npm"), "etc.example.com:443 < npm: /etc/npmrc\n");
    put("/usr/etc/npmrc", "registry = https://global.example.com/\n");
    ck_assert_str_eq(found("npm"), "global.example.com:443 < npm: /usr/etc/npmrc\n");
    put("/home/u/.npmrc", "registry = https://user.example.com/\n");
    ck_assert_str_eq(found("npm"), "user.example.com:443 < npm: /home/u/.npmrc\n");
    put("/my/npmrc", "registry = https://my.example.com/\n");
    put("/our/npmrc", "@us:registry = https://our.example.com/\n");
    set_env("NPM_CONFIG_USERCONFIG", "/my/npmrc");
    set_env("npm_config_globalconfig", "/our/npmrc");
    ck_assert_str_eq(found("npm"), "our.example.com:443 < npm: /our/npmrc\n"
                                   "my.example.com:443 < npm: /my/npmrc\n");
    set_env("npm_config_registry", "http://env.example.com");
    ck_assert_str_eq(found("npm"), "our.example.com:443 < npm: /our/npmrc\n"
                                   "env.example.com:80 < npm: $npm_config_registry\n");
}
END_TEST

START_TEST(npmrc_is_read_as_npm_reads_it)
{
    set_env("MIRROR", "mirror.example.com");
    put("/home/u/.npmrc", "; registry=https://comment.example.com\n"
                          "# registry=https://comment.example.com\n"
                          "registry=https://first.example.com\n"
                          "  registry = \"https://${MIRROR}:8443/npm\"  \r\n"
                          "'@scope:registry' = 'https://scope.example.com'\n"
                          "@Other:registry=https://other.example.com/${MISSING}/\n"
                          "@bad:registry=https://${MISSING}/\n"
                          "scope:registry=https://none.example.com\n"
                          "_auth=aaaa\n"
                          "novalue\n"
                          "[section]\n"
                          "registry=https://section.example.com\n");
    ck_assert_str_eq(found("npm"), "scope.example.com:443 < npm: /home/u/.npmrc\n"
                                   "other.example.com:443 < npm: /home/u/.npmrc\n"
                                   "mirror.example.com:8443 < npm: /home/u/.npmrc\n"
                                   "! npm: /home/u/.npmrc: an address that is not understood\n");
}
END_TEST

START_TEST(apt_sources_are_read_in_both_forms)
{
    put("/etc/apt/sources.list",
        "# deb http://comment.example.com stable main\n"
        "deb http://one.example.com/debian stable main\n"
        "deb-src [arch=amd64 signed-by=/a/b] https://two.example.com:8443/debian stable main\n"
        "deb [ trusted=yes ] http://[fd00::1]:81/ ./\n"
        "deb cdrom:[Debian]/ stable main\n"
        "deb file:/srv/debian ./\n"
        "deb\n"
        "rpm http://rpm.example.com/\n");
    put("/etc/apt/sources.list.d/a.list", "deb http://a.example.com/ stable main");
    put("/etc/apt/sources.list.d/a.list.disabled", "deb http://no.example.com/ stable main\n");
    put("/etc/apt/sources.list.d/.b.list", "deb http://no.example.com/ stable main\n");
    put("/etc/apt/sources.list.d/c.sources",
        "# comment\nTypes: deb\nURIs: http://c1.example.com/debian\n"
        "  https://c2.example.com/debian http://one.example.com/again\n"
        "# within\n\thttp://c3.example.com\nSuites: stable\n http://suite.example.com\n"
        "\n"
        "URIs: http://off.example.com\nEnabled: no\n"
        "\n\n"
        "Enabled: yes\nuris: http://c4.example.com\n");
    ck_assert_str_eq(found("apt"), "one.example.com:80 < apt: /etc/apt/sources.list\n"
                                   "two.example.com:8443 < apt: /etc/apt/sources.list\n"
                                   "[fd00::1]:81 < apt: /etc/apt/sources.list\n"
                                   "a.example.com:80 < apt: /etc/apt/sources.list.d/a.list\n"
                                   "c1.example.com:80 < apt: /etc/apt/sources.list.d/c.sources\n"
                                   "c2.example.com:443 < apt: /etc/apt/sources.list.d/c.sources\n"
                                   "c3.example.com:80 < apt: /etc/apt/sources.list.d/c.sources\n"
                                   "c4.example.com:80 < apt: /etc/apt/sources.list.d/c.sources\n");
}
END_TEST

START_TEST(apt_mirrors_are_followed_to_their_file)
{
    put("/etc/apt/mirrors/debian.list", "# comment\nhttps://m1.example.com/debian priority:1\n"
                                        "\nhttp://m2.example.com/debian\n");
    put("/etc/apt/sources.list", "deb mirror+file:/etc/apt/mirrors/debian.list stable main\n"
                                 "deb mirror+file:///etc/apt/mirrors/debian.list stable main\n"
                                 "deb mirror+https://m3.example.com/list stable main\n"
                                 "deb mirror://m4.example.com/list stable main\n");
    ck_assert_str_eq(
        found("apt"),
        "m1.example.com:443 < apt: /etc/apt/mirrors/debian.list\n"
        "m2.example.com:80 < apt: /etc/apt/mirrors/debian.list\n"
        "m3.example.com:443 < apt: /etc/apt/sources.list\n"
        "m4.example.com:80 < apt: /etc/apt/sources.list\n"
        "! apt: /etc/apt/sources.list: mirrors that a server lists are not known here\n");
}
END_TEST

START_TEST(apt_proxies_are_found_however_they_are_nested)
{
    put("/etc/apt/apt.conf.d/01a", "// Acquire::http::Proxy \"http://no.example.com:1\";\n"
                                   "# Acquire::http::Proxy \"http://no.example.com:1\";\n"
                                   "/* Acquire::http::Proxy \"http://no.example.com:1\"; */\n"
                                   "Acquire::http::Proxy \"http://p1.example.com:3128/\";\n"
                                   "Acquire::HTTPS::proxy http://p2.example.com:3128;\n"
                                   "Other::http::Proxy \"http://no.example.com:1\";\n");
    put("/etc/apt/apt.conf.d/02b",
        "APT { Keep \"1\"; };\nAcquire {\n  Retries \"3\";\n  http { Timeout \"9\"; Proxy "
        "\"http://p3.example.com:3128\"; Proxy::x.example.com \"http://no.example.com:1\"; };\n"
        "  https { Proxy \"DIRECT\"; };\n};\nAcquire::Proxy \"http://p4.example.com\";\n");
    ck_assert_str_eq(found("apt"), "p1.example.com:3128 < apt: proxy: /etc/apt/apt.conf.d/01a\n"
                                   "p2.example.com:3128 < apt: proxy: /etc/apt/apt.conf.d/01a\n"
                                   "p3.example.com:3128 < apt: proxy: /etc/apt/apt.conf.d/02b\n"
                                   "p4.example.com:80 < apt: proxy: /etc/apt/apt.conf.d/02b\n");
    char deep[400] = "";
    for (int i = 0; i < 40; i++)
        strncat(deep, "a { ", sizeof deep - strlen(deep) - 1);
    put("/etc/apt/apt.conf.d/01a", deep);
    put("/etc/apt/apt.conf.d/02b", "\" } } ; } \"unfinished { /*");
    ck_assert_str_eq(found("apt"), "! apt: proxy: /etc/apt/apt.conf.d/01a: deeper than is read\n");
}
END_TEST

START_TEST(what_is_no_small_file_is_noted)
{
    char full[PATH_MAX];
    make_parents("/etc/pip.conf", full);
    ck_assert_int_eq(mkfifo(full, 0600), 0);
    make_parents("/etc/npmrc", full);
    ck_assert_int_eq(mkdir(full, 0700), 0);
    make_parents("/etc/apt/sources.list", full);
    FILE *file = fopen(full, "we");
    ck_assert_ptr_nonnull(file);
    for (int i = 0; i < 1100; i++)
        fprintf(file, "%1023s\n", "#");
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_str_eq(found("no"),
                     "! /etc/pip.conf: no regular file\n! /etc/npmrc: no regular file\n"
                     "! /etc/apt/sources.list: larger than a configuration is\n");
}
END_TEST

START_TEST(lists_and_values_have_a_most)
{
    static char text[200000];
    size_t at = 0;
    for (int i = 0; i < 300; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "deb http://h%d.example.com/ x\n", i);
    put("/etc/apt/sources.list", text);
    const char *list = found("apt");
    size_t lines = 0;
    for (const char *c = list; (c = strchr(c, '\n')) != NULL; c++)
        lines++;
    ck_assert_uint_eq(lines, 128);
    ck_assert_ptr_nonnull(strstr(found(""), "! more than 128 registries"));
    at = (size_t)snprintf(text, sizeof text, "[global]\nextra-index-url =\n");
    for (int i = 0; i < 2000; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, " https://h%d.example.com/\n", i % 3);
    put("/etc/pip.conf", text);
    ck_assert_ptr_nonnull(strstr(found("pip"), "! pip: /etc/pip.conf: a value that is too long"));
    memset(text, 'a', sizeof text - 1);
    memcpy(text, "registry=https://", 17);
    put("/home/u/.npmrc", text);
    ck_assert_ptr_nonnull(strstr(found("npm"), "! npm: /home/u/.npmrc: a value that is too long"));
}
END_TEST

SUITE_MAIN("egress_registries", set_up, tear_down, an_empty_machine_has_none_and_says_so,
           the_defaults_are_those_of_the_installed_programs,
           older_and_other_installations_are_found, pip_conf_is_read_in_all_of_its_places,
           pip_conf_is_read_as_pip_reads_it, credentials_never_leave_a_url,
           npmrc_is_read_in_all_of_its_places, npmrc_is_read_as_npm_reads_it,
           apt_sources_are_read_in_both_forms, apt_mirrors_are_followed_to_their_file,
           apt_proxies_are_found_however_they_are_nested, what_is_no_small_file_is_noted,
           lists_and_values_have_a_most)
