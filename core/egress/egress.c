#include "egress/egress.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/limits.h"
#include "egress/carry.h"
#include "egress/relay.h"

/* ---- the rules ---- */

static int read_rules(bc_egress *egress, barchan_network mode, const barchan_network_rules *given,
                      barchan_error *err)
{
    int rc = bc_rulebook_read(&egress->book, mode, given, err);
    if (rc < 0) return rc;
    const barchan_network_rules *rules = &egress->book.rules;
    if (rules->max_connections > BC_EGRESS_MAX_CONNECTIONS) {
        return bc_error_set(err, BARCHAN_EINVAL, "max_connections is at most %d, not %zu",
                            BC_EGRESS_MAX_CONNECTIONS, rules->max_connections);
    }
    egress->max_open =
        rules->max_connections == 0 ? BC_EGRESS_DEFAULT_CONNECTIONS : rules->max_connections;
    egress->book.plan.connections = (uint32_t)(egress->max_open + BC_EGRESS_MAX_ASKING);
    egress->max_bytes = rules->max_bytes;
    egress->rate = rules->bytes_per_second;
    egress->on_connect = rules->on_connect;
    egress->on_event = rules->on_event;
    egress->ud = rules->ud;
    return 0;
}

int bc_egress_set_rules(bc_egress *egress, barchan_network mode, const barchan_network_rules *given,
                        barchan_error *err)
{
    return bc_rulebook_replace(&egress->book, mode, given, err);
}

const bc_address *bc_egress_known(const bc_egress *egress, const char *host)
{
    return bc_rulebook_known(&egress->book, host);
}

static void on_timer(void *ud)
{
    bc_egress *egress = ud;
    bc_budget_resume(egress);
    bc_egress_accept(egress);
}

int bc_egress_create(bc_egress **out, const bc_egress_options *options, barchan_error *err)
{
    bc_egress *egress = calloc(1, sizeof *egress);
    if (egress == NULL) return bc_error_nomem(err);
    egress->rt = options->rt;
    egress->sbx = options->sbx;
    egress->name_fd = -1;
    egress->filled_ms = bc_clock_ms();
    egress->names = bc_names_create();
    egress->scratch = malloc(BC_FLOW_BYTES);
    int rc = egress->names == NULL || egress->scratch == NULL ? bc_error_nomem(err) : 0;
    if (rc == 0) rc = read_rules(egress, options->mode, options->rules, err);
    if (rc == 0 && options->secret_count > 0) {
        rc = bc_secrets_create(&egress->secrets, options->secrets, options->secret_count,
                               egress->book.policy, egress->on_connect != NULL, err);
    }
    if (rc == 0) rc = bc_timer_open(&egress->timer, egress->rt, on_timer, egress, err);
    if (rc < 0) {
        bc_egress_destroy(egress);
        return rc;
    }
    *out = egress;
    return 0;
}

static void close_sockets(bc_egress *egress)
{
    bc_watch_close(egress->name_watch);
    egress->name_watch = NULL;
    if (egress->name_fd >= 0) close(steal_fd(&egress->name_fd));
    for (size_t i = 0; i < egress->listener_count; i++) {
        bc_watch_close(egress->listeners[i].watch);
        close(egress->listeners[i].fd);
    }
    egress->listener_count = 0;
}

void bc_egress_stop(bc_egress *egress)
{
    if (egress == NULL) return;
    egress->max_open = 0; /* nothing is accepted in place of what is closed */
    close_sockets(egress);
    while (egress->connections != NULL) {
        bc_relay_abort(egress->connections);
    }
    bc_carry_stop(egress);
    bc_questions_end(egress);
    bc_resolver_destroy(egress->resolver);
    egress->resolver = NULL;
    bc_timer_close(egress->timer);
    egress->timer = NULL;
}

void bc_egress_mute(bc_egress *egress)
{
    if (egress == NULL) return;
    bc_events_end(egress);
    egress->on_event = NULL;
}

void bc_egress_destroy(bc_egress *egress)
{
    if (egress == NULL) return;
    bc_egress_stop(egress);
    bc_egress_mute(egress);
    bc_defer_cancel(&egress->bury);
    bc_relay_bury(egress);
    bc_ledger_clear(&egress->ledger);
    bc_names_destroy(egress->names);
    bc_rulebook_clear(&egress->book);
    bc_secrets_destroy(egress->secrets);
    free(egress->scratch);
    free(egress);
}

/* ---- sockets ---- */

static void on_names(void *ud, unsigned events)
{
    (void)events;
    bc_egress_answer_names(ud);
}

static void set_accepting(bc_egress *egress, int accepting)
{
    if (accepting == egress->accepting) return;
    egress->accepting = accepting;
    for (size_t i = 0; i < egress->listener_count; i++) {
        bc_watch_set(egress->listeners[i].watch, accepting ? BC_READABLE : 0, NULL);
    }
}

void bc_egress_accept(bc_egress *egress)
{
    set_accepting(egress, egress->open < egress->max_open);
    bc_carry_accept(egress);
}

/* The address that the program connected to is this socket's own. */
static void open_accepted(bc_egress *egress, int fd)
{
    struct sockaddr_in inside = {.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof inside;
    getsockname(fd, (struct sockaddr *)&inside, &len);
    bc_relay_open(egress, fd, ntohl(inside.sin_addr.s_addr), ntohs(inside.sin_port), NULL);
}

/* What cannot be accepted for want of descriptors or memory stays in the queue for a moment. */
static void on_listener(void *ud, unsigned events)
{
    struct bc_listener *listener = ud;
    bc_egress *egress = listener->egress;
    (void)events;
    for (int i = 0; i < BC_EGRESS_MAX_ACCEPTS && egress->open < egress->max_open; i++) {
        int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
            set_accepting(egress, 0);
            bc_timer_set(egress->timer, BC_EGRESS_ROUND_MS);
            return;
        }
        if (fd < 0) break;
        open_accepted(egress, fd);
    }
    bc_egress_accept(egress);
}

static int listen_at(bc_egress *egress, int *fd, barchan_error *err)
{
    struct bc_listener *listener = &egress->listeners[egress->listener_count];
    listener->egress = egress;
    int rc = bc_watch_open(&listener->watch, egress->rt, *fd, on_listener, listener, err);
    if (rc < 0) return rc;
    listener->fd = steal_fd(fd);
    egress->listener_count++;
    return 0;
}

int bc_egress_listen(bc_egress *egress, int *fds, size_t count, barchan_error *err)
{
    int rc = 0;
    if (count != egress->book.plan.port_count + 1u || egress->name_fd >= 0) {
        rc = bc_error_set(err, BARCHAN_EPROTOCOL,
                          "the sockets of its network did not arrive; are too "
                          "many files open here?");
    }
    if (rc == 0) {
        rc = bc_watch_open(&egress->name_watch, egress->rt, fds[0], on_names, egress, err);
    }
    if (rc == 0) {
        egress->name_fd = steal_fd(&fds[0]);
        rc = bc_watch_set(egress->name_watch, BC_READABLE, err);
    }
    for (size_t i = 1; rc == 0 && i < count; i++) {
        rc = listen_at(egress, &fds[i], err);
    }
    for (size_t i = 0; i < count; i++) {
        if (fds[i] >= 0) close(steal_fd(&fds[i]));
    }
    if (rc == 0) bc_egress_accept(egress);
    return rc;
}

/* ---- what is known ---- */

barchan_network bc_egress_rules(const bc_egress *egress, const barchan_network_rules **rules)
{
    *rules = egress == NULL ? NULL : &egress->book.rules;
    return egress == NULL ? BARCHAN_NETWORK_OFF : egress->book.mode;
}

void bc_egress_set_ud(bc_egress *egress, void *ud)
{
    if (egress != NULL) egress->ud = egress->book.rules.ud = ud;
}

const bc_network_plan *bc_egress_plan(const bc_egress *egress)
{
    return &egress->book.plan;
}

bc_secrets *bc_egress_secrets(bc_egress *egress)
{
    return egress == NULL ? NULL : egress->secrets;
}

bc_ledger_mark bc_egress_mark(const bc_egress *egress)
{
    if (egress == NULL) return (bc_ledger_mark){0};
    return (bc_ledger_mark){egress->ledger.denied.count, egress->ledger.unreached.count};
}

void bc_egress_told_since(const bc_egress *egress, bc_ledger_mark mark, barchan_exec_result *result)
{
    if (egress != NULL) bc_ledger_since(&egress->ledger, mark, result);
}

int bc_egress_usage(const bc_egress *egress, barchan_network_usage *usage, barchan_error *err)
{
    int rc = bc_ledger_usage(&egress->ledger, usage, err);
    if (rc == 0) usage->open = egress->open;
    return rc;
}
