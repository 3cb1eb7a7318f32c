/* How much a sandbox may move: in all, and a second. */
#include <stddef.h>
#include "base/clock.h"
#include "base/limits.h"
#include "egress/relay.h"

size_t bc_share(uint64_t all, size_t among, size_t least)
{
    uint64_t share = all / (among > 0 ? among : 1);
    return share < least ? least : (size_t)share;
}

static void refill(bc_egress *egress)
{
    int64_t now = bc_clock_ms(), passed = now - egress->filled_ms;
    if (passed <= 0) return;
    if (passed > 1000) passed = 1000; /* at most a second's worth is saved up */
    uint64_t more =
        egress->rate / 1000 * (uint64_t)passed + egress->rate % 1000 * (uint64_t)passed / 1000;
    if (more == 0) return;
    egress->filled_ms = now;
    egress->tokens += more;
    if (egress->tokens > egress->rate) egress->tokens = egress->rate;
}

size_t bc_budget_take(bc_egress *egress, size_t wanted)
{
    uint64_t left = egress->max_bytes - egress->moved;
    if (egress->max_bytes > 0 && wanted > left) wanted = (size_t)left;
    if (egress->rate == 0) return wanted;
    refill(egress);
    if (egress->tokens == 0 && !egress->throttled) {
        egress->throttled = 1;
        bc_timer_set(egress->timer, BC_EGRESS_ROUND_MS);
    }
    size_t share = bc_share(egress->tokens, egress->open, BC_EGRESS_LEAST_SHARE);
    if (wanted > share) wanted = share;
    return wanted < egress->tokens ? wanted : (size_t)egress->tokens;
}

void bc_budget_spend(bc_egress *egress, size_t bytes)
{
    egress->moved += bytes;
    if (egress->rate > 0) egress->tokens -= bytes;
}

int bc_budget_is_over(const bc_egress *egress)
{
    return egress->max_bytes > 0 && egress->moved >= egress->max_bytes;
}

void bc_budget_deny(bc_verdict *verdict)
{
    *verdict = (bc_verdict){.rule = "max_bytes of this network are used up"};
}

static void move_from(bc_relay *relay, const bc_relay *end)
{
    while (relay != NULL && relay != end) {
        bc_relay *next = relay->next;
        if (relay->stage == STAGE_OPEN) bc_relay_move(relay);
        relay = next;
    }
}

/* Another is the first each time, for the last may find nothing left. */
void bc_budget_resume(bc_egress *egress)
{
    if (!egress->throttled) return;
    egress->throttled = 0;
    refill(egress);
    bc_relay *first = egress->connections;
    size_t skip = egress->open > 0 ? egress->round++ % egress->open : 0;
    for (size_t i = 0; i < skip && first != NULL; i++)
        first = first->next;
    move_from(first, NULL);
    move_from(egress->connections, first);
}
