#include "egress/ledger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"

void bc_ledger_clear(bc_ledger *ledger)
{
    for (size_t i = 0; i < ledger->count; i++) {
        free(ledger->hosts[i].host);
    }
    free(ledger->hosts);
    free(ledger->denied.list);
    free(ledger->unreached.list);
    *ledger = (bc_ledger){0};
}

/* ---- by host ---- */

static int add_host(bc_ledger *ledger, const char *host)
{
    if (ledger->count == BC_LEDGER_MAX_HOSTS) return -1;
    if (ledger->count == ledger->capacity) {
        size_t capacity = ledger->capacity == 0 ? 8 : ledger->capacity * 2;
        bc_ledger_host *hosts = realloc(ledger->hosts, capacity * sizeof *hosts);
        if (hosts == NULL) return -1;
        ledger->hosts = hosts;
        ledger->capacity = capacity;
    }
    char *copy = strdup(host);
    if (copy == NULL) return -1;
    ledger->hosts[ledger->count++] = (bc_ledger_host){.host = copy};
    return 0;
}

size_t bc_ledger_find(bc_ledger *ledger, const char *host)
{
    for (size_t i = 0; i < ledger->count; i++) {
        if (strcmp(ledger->hosts[i].host, host) == 0) return i;
    }
    return add_host(ledger, host) < 0 ? BC_LEDGER_MAX_HOSTS : ledger->count - 1;
}

bc_ledger_host *bc_ledger_at(bc_ledger *ledger, size_t number)
{
    return number < ledger->count ? &ledger->hosts[number] : &ledger->others;
}

static int copy_host(barchan_network_usage *usage, const bc_ledger_host *from)
{
    barchan_network_host *to = &usage->hosts[usage->count];
    to->host = strdup(from->host == NULL ? "" : from->host);
    if (to->host == NULL) return -1;
    to->connections = from->connections;
    to->denied = from->denied;
    to->failed = from->failed;
    to->bytes_sent = from->bytes_sent;
    to->bytes_received = from->bytes_received;
    usage->count++;
    return 0;
}

int bc_ledger_usage(const bc_ledger *ledger, barchan_network_usage *usage, barchan_error *err)
{
    const bc_ledger_host *others = &ledger->others;
    int rc = 0;
    *usage = (barchan_network_usage){0};
    usage->hosts = calloc(ledger->count + 1, sizeof *usage->hosts);
    if (usage->hosts == NULL) return bc_error_nomem(err);
    for (size_t i = 0; rc == 0 && i < ledger->count; i++) {
        rc = copy_host(usage, &ledger->hosts[i]);
    }
    if (rc == 0 && others->connections + others->denied + others->failed > 0) {
        rc = copy_host(usage, others);
    }
    if (rc == 0) return 0;
    barchan_network_usage_clear(usage);
    return bc_error_nomem(err);
}

void barchan_network_usage_clear(barchan_network_usage *usage)
{
    if (usage == NULL) return;
    for (size_t i = 0; i < usage->count; i++) {
        free(usage->hosts[i].host);
    }
    free(usage->hosts);
    *usage = (barchan_network_usage){0};
}

/* ---- refusals and failures ---- */

static void keep(bc_ledger_ring *ring, const barchan_network_event *event)
{
    if (ring->list == NULL) ring->list = calloc(BC_LEDGER_MAX_DENIED, sizeof *ring->list);
    if (ring->list != NULL) {
        barchan_denied *denied = &ring->list[ring->count % BC_LEDGER_MAX_DENIED];
        *denied = (barchan_denied){.time_ms = event->time_ms, .port = event->port, .tries = 1};
        snprintf(denied->host, sizeof denied->host, "%s", event->host);
        snprintf(denied->rule, sizeof denied->rule, "%s", event->rule);
    }
    ring->count++;
}

void bc_ledger_note(bc_ledger *ledger, const barchan_network_event *event)
{
    bc_ledger_host *host = bc_ledger_at(ledger, bc_ledger_find(ledger, event->host));
    if (event->kind == BARCHAN_NETWORK_CONNECTED) host->connections++;
    if (event->kind == BARCHAN_NETWORK_FAILED) {
        host->failed++;
        keep(&ledger->unreached, event);
    }
    if (event->kind == BARCHAN_NETWORK_DENIED) {
        host->denied++;
        keep(&ledger->denied, event);
    }
}

/* What a result takes of a ring. */
struct told {
    barchan_denied *list;
    size_t count;
    uint64_t more;
};

/* Clients try again and again: what is the same is told once. */
static barchan_denied *find_same(const struct told *told, const barchan_denied *denied)
{
    for (size_t i = 0; i < told->count; i++) {
        barchan_denied *one = &told->list[i];
        if (one->port == denied->port && strcmp(one->host, denied->host) == 0 &&
            strcmp(one->rule, denied->rule) == 0) {
            return one;
        }
    }
    return NULL;
}

static void tell(struct told *to, const barchan_denied *denied)
{
    barchan_denied *told = find_same(to, denied);
    if (told != NULL) {
        told->tries++;
        told->time_ms = denied->time_ms;
    } else if (to->count == BC_LEDGER_MAX_TOLD) {
        to->more++;
    } else {
        to->list[to->count++] = *denied;
    }
}

static struct told tell_since(const bc_ledger_ring *ring, uint64_t since)
{
    struct told told = {0};
    uint64_t count = ring->count;
    if (count == since) return told;
    if (ring->list != NULL) told.list = calloc(BC_LEDGER_MAX_TOLD, sizeof *told.list);
    if (told.list == NULL || count - since > BC_LEDGER_MAX_DENIED) {
        uint64_t kept = told.list == NULL ? 0 : BC_LEDGER_MAX_DENIED;
        told.more = count - since - kept;
        since = count - kept;
    }
    for (; since < count; since++) {
        tell(&told, &ring->list[since % BC_LEDGER_MAX_DENIED]);
    }
    return told;
}

void bc_ledger_since(const bc_ledger *ledger, bc_ledger_mark mark, barchan_exec_result *result)
{
    struct told denied = tell_since(&ledger->denied, mark.denied);
    struct told unreached = tell_since(&ledger->unreached, mark.unreached);
    result->denied = denied.list;
    result->denied_count = denied.count;
    result->denied_more = denied.more;
    result->unreached = unreached.list;
    result->unreached_count = unreached.count;
    result->unreached_more = unreached.more;
}
