/* What the host is told: from a dispatch of its own, so that it may end the sandbox there. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/limits.h"
#include "egress/internal.h"
#include "egress/relay.h"

struct bc_told {
    bc_told *next;
    barchan_network_event event; /* its strings stand in `text` */
    char text[];
};

const char *barchan_network_event_name(barchan_network_event_kind kind)
{
    static const char *const names[] = {"unknown", "connected", "closed",
                                        "denied",  "failed",    "secret"};
    return (size_t)kind < sizeof names / sizeof *names ? names[kind] : names[0];
}

static const char *put(char **at, const char *text)
{
    size_t len = strlen(text) + 1;
    char *to = memcpy(*at, text, len);
    *at += len;
    return to;
}

static void queue(bc_egress *egress, const barchan_network_event *event)
{
    size_t len = strlen(event->host) + strlen(event->rule) + strlen(event->address) + 3;
    bc_told *told = malloc(sizeof *told + len);
    if (told == NULL) {
        egress->untold++;
        return;
    }
    char *at = told->text;
    told->next = NULL;
    told->event = *event;
    told->event.dropped = egress->untold;
    egress->untold = 0;
    told->event.host = put(&at, event->host);
    told->event.rule = put(&at, event->rule);
    told->event.address = put(&at, event->address);
    if (egress->told_last != NULL) egress->told_last->next = told;
    if (egress->told == NULL) egress->told = told;
    egress->told_last = told;
    egress->told_count++;
}

static bc_told *take(bc_egress *egress)
{
    bc_told *told = egress->told;
    egress->told = told->next;
    if (egress->told == NULL) egress->told_last = NULL;
    egress->told_count--;
    return told;
}

int bc_egress_can_tell(bc_egress *egress)
{
    if (egress->told_count + BC_SECRET_MAX_NOTES + 1 <= BC_EGRESS_MAX_EVENTS) return 1;
    egress->hushed = 1;
    return 0;
}

static void go_on(bc_egress *egress)
{
    egress->hushed = 0;
    for (bc_relay *relay = egress->connections; relay != NULL;) {
        bc_relay *next = relay->next;
        if (relay->stage == STAGE_OPEN && relay->intercept != NULL) bc_intercept_move(relay);
        relay = next;
    }
}

/* One a dispatch: the callback may destroy the sandbox, and this with it. */
static void deliver(bc_defer *defer)
{
    bc_egress *egress = owner_of(defer, bc_egress, tell);
    bc_told *told = take(egress);
    if (egress->told != NULL) bc_defer_schedule(egress->rt, &egress->tell, deliver);
    if (egress->hushed && egress->told_count <= BC_EGRESS_MAX_EVENTS / 2) go_on(egress);
    egress->on_event(egress->sbx, &told->event, egress->ud);
    free(told);
}

void bc_egress_tell(bc_egress *egress, const barchan_network_event *event)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    barchan_network_event timed = *event;
    timed.struct_size = sizeof timed;
    timed.time_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    bc_ledger_note(&egress->ledger, &timed);
    if (egress->on_event == NULL) return;
    if (egress->told_count == BC_EGRESS_MAX_EVENTS) {
        egress->untold++;
        return;
    }
    queue(egress, &timed);
    if (egress->told != NULL) bc_defer_schedule(egress->rt, &egress->tell, deliver);
}

void bc_events_end(bc_egress *egress)
{
    bc_defer_cancel(&egress->tell);
    while (egress->told != NULL) {
        free(take(egress));
    }
}
