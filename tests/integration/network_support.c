#include "network_support.h"
#include "sandbox_path.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

net_server *server;

#define MAX_ENTRIES 16
static char texts[4][MAX_ENTRIES][128];
static const char *lists[4][MAX_ENTRIES + 1];
static int lists_used;

void setup_network(void)
{
    lists_used = 0;
    setup_runtime();
    server = net_start(NET_HTTP, "the world");
}

void teardown_network(void)
{
    /* First the sandboxes, so that the server's threads end by themselves. */
    barchan_sandbox_destroy(sbx);
    sbx = NULL;
    net_stop(server);
    server = NULL;
    teardown();
}

void serve_kind(net_kind kind)
{
    net_stop(server);
    server = net_start(kind, "the world");
}

const char *const *entries(const char *first, ...)
{
    int list = lists_used++ % 4, count = 0;
    va_list more;
    va_start(more, first);
    for (const char *entry = first; entry != NULL; entry = va_arg(more, const char *)) {
        ck_assert_int_lt(count, MAX_ENTRIES);
        char *text = texts[list][count];
        const char *port = strchr(entry, '@'); /* stands for the server's port */
        if (port == NULL) {
            snprintf(text, sizeof texts[list][count], "%s", entry);
        } else {
            snprintf(text, sizeof texts[list][count], "%.*s%d", (int)(port - entry), entry,
                     net_port(server));
        }
        lists[list][count++] = text;
    }
    va_end(more);
    lists[list][count] = NULL;
    return lists[list];
}

void make_sandbox(barchan_network mode, barchan_network_rules rules)
{
    static const char *const hosts[] = {"served.example=127.0.0.1", "other.example=127.0.0.1",
                                        NULL};
    barchan_error err = {0};
    rules.struct_size = sizeof rules;
    if (rules.hosts == NULL) rules.hosts = hosts;
    ck_assert_msg(
        create_sandbox(&sbx, rt, PROFILE(.network = mode, .network_rules = &rules), &err) == 0,
        "%s", err.message);
}

void make_usual_sandbox(void)
{
    make_sandbox(
        BARCHAN_NETWORK_ALLOW,
        (barchan_network_rules){.allow = entries("served.example:@", "127.0.0.1:@", NULL)});
}

barchan_exec_result talk(const char *host, int port, const char *text)
{
    char command[4096];
    snprintf(command, sizeof command,
             "bash -c 'exec 3<>/dev/tcp/%s/%d && { printf \"%s\" >&3; timeout 10 cat <&3; }'", host,
             port, text);
    return sh(command);
}

void talk_says(const char *host, int port, const char *text, const char *words)
{
    barchan_exec_result result = talk(host, port, text);
    ck_assert_msg(strstr(result.out.data, words) != NULL, "'%s' is missing in: %s%s", words,
                  result.out.data, result.err_out.data);
    barchan_exec_result_clear(&result);
}

static void one_of(const barchan_exec_result *result, const barchan_denied *denied, size_t count,
                   const char *host, int port, const char *rule)
{
    ck_assert_msg(count == 1, "%zu in the list; out: %s err: %s", count, result->out.data,
                  result->err_out.data);
    ck_assert_str_eq(denied->host, host);
    ck_assert_int_eq(denied->port, port);
    ck_assert_msg(strstr(denied->rule, rule) != NULL, "'%s' is missing in: %s", rule, denied->rule);
    ck_assert_int_gt(denied->time_ms, 1700000000000);
}

void was_denied(barchan_exec_result *result, const char *host, int port, const char *rule)
{
    one_of(result, result->denied, result->denied_count, host, port, rule);
    barchan_exec_result_clear(result);
}

void was_unreached(barchan_exec_result *result, const char *host, int port, const char *why)
{
    one_of(result, result->unreached, result->unreached_count, host, port, why);
    was_not_denied(result);
}

void was_not_denied(barchan_exec_result *result)
{
    ck_assert_msg(result->denied_count == 0, "%s: %s",
                  result->denied_count == 0 ? "" : result->denied[0].host,
                  result->denied_count == 0 ? "" : result->denied[0].rule);
    ck_assert_ptr_null(result->denied);
    barchan_exec_result_clear(result);
}

void put_script(const char *name)
{
    static char text[65536];
    char path[512];
    snprintf(path, sizeof path, "%s/%s", GUEST_SCRIPTS, name);
    FILE *file = fopen(path, "re");
    ck_assert_msg(file != NULL, "%s", path);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    file_put_text(name, text);
}

barchan_exec_result run_script(const char *name, const char *arguments)
{
    char command[512];
    put_script(name);
    snprintf(command, sizeof command, "python3 %s %s", name, arguments);
    return sh(command);
}

void each_was(const barchan_exec_result *result, const char *outcome, const char *or_outcome,
              int at_least)
{
    int count = 0;
    ck_assert_msg(result->exit_code == 0, "%s%s", result->out.data, result->err_out.data);
    for (const char *line = result->out.data; *line != '\0'; count++) {
        int len = (int)strcspn(line, "\n"), name = (int)strcspn(line, " ");
        const char *is = line + name + 1;
        int is_len = len - name - 1;
        int good =
            (is_len == (int)strlen(outcome) && strncmp(is, outcome, strlen(outcome)) == 0) ||
            (is_len == (int)strlen(or_outcome) && strncmp(is, or_outcome, strlen(or_outcome)) == 0);
        ck_assert_msg(good, "%.*s, not %s", len, line, outcome);
        line += len + (line[len] == '\n');
    }
    ck_assert_msg(count >= at_least, "%d cases: %s", count, result->out.data);
}
