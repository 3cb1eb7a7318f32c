/*
 * What no entry speaks of may be asked of the host's program, once for each host and port. The
 * question is kept with its answer; connections that come meanwhile wait for it. The handle that
 * the program answers by is its own to free, so it outlives the sandbox.
 */
#include <stdlib.h>
#include <string.h>
#include "base/limits.h"
#include "egress/relay.h"

struct barchan_connect {
    bc_question *question; /* NULL: nobody waits any more */
};

struct bc_question {
    bc_question *next;
    bc_egress *egress;
    barchan_connect *handle; /* NULL: answered */
    int asked;               /* the handle is the program's */
    bc_defer defer;          /* asks, then delivers */
    int answer;
    unsigned port;
    char host[BC_HOST_NAME_MAX + 1];
};

static void ask(bc_defer *defer)
{
    bc_question *question = owner_of(defer, bc_question, defer);
    bc_egress *egress = question->egress;
    char host[BC_HOST_NAME_MAX + 1]; /* the sandbox, and the question, may end inside */
    memcpy(host, question->host, sizeof host);
    question->asked = 1;
    egress->on_connect(egress->sbx, question->handle, host, (int)question->port, egress->ud);
}

static bc_relay *waiting_for(const bc_question *question)
{
    bc_relay *relay = question->egress->connections;
    while (relay != NULL && relay->question != question) {
        relay = relay->next;
    }
    return relay;
}

static void deliver(bc_defer *defer)
{
    bc_question *question = owner_of(defer, bc_question, defer);
    bc_relay *relay;
    while ((relay = waiting_for(question)) != NULL) {
        bc_relay_answered(relay, question->answer);
    }
}

static bc_question *find(bc_egress *egress, const char *host, unsigned port)
{
    bc_question *question = egress->questions;
    while (question != NULL && (question->port != port || strcmp(question->host, host) != 0)) {
        question = question->next;
    }
    return question;
}

static bc_question *add(bc_egress *egress, const char *host, unsigned port)
{
    if (egress->question_count == BC_EGRESS_MAX_QUESTIONS) return NULL;
    bc_question *question = calloc(1, sizeof *question);
    barchan_connect *handle = calloc(1, sizeof *handle);
    if (question == NULL || handle == NULL) {
        free(question);
        free(handle);
        return NULL;
    }
    handle->question = question;
    *question =
        (bc_question){.next = egress->questions, .egress = egress, .handle = handle, .port = port};
    memcpy(question->host, host, strlen(host) + 1);
    egress->questions = question;
    egress->question_count++;
    bc_defer_schedule(egress->rt, &question->defer, ask);
    return question;
}

int bc_question_ask(bc_egress *egress, bc_relay *relay)
{
    bc_question *question = find(egress, relay->host, relay->port);
    int full = egress->asking == BC_EGRESS_MAX_ASKING;
    if (question == NULL && !full) question = add(egress, relay->host, relay->port);
    if (question != NULL && question->handle != NULL && full) question = NULL;
    if (question == NULL) { /* nobody said no: the policy's rule stands */
        relay->stage = STAGE_NEW;
        return 0;
    }
    if (question->handle == NULL) return question->answer;
    relay->question = question;
    return -1;
}

void bc_question_leave(bc_relay *relay)
{
    if (relay->question == NULL) return;
    relay->question = NULL;
    relay->egress->asking--;
    relay->egress->open++;
}

void barchan_connect_answer(barchan_connect *connect, int allow)
{
    if (connect == NULL) return;
    bc_question *question = connect->question;
    free(connect);
    if (question == NULL) return;
    question->handle = NULL;
    question->answer = allow != 0;
    bc_defer_schedule(question->egress->rt, &question->defer, deliver);
}

void bc_questions_end(bc_egress *egress)
{
    while (egress->questions != NULL) {
        bc_question *question = egress->questions;
        egress->questions = question->next;
        /* One that was asked belongs to the program until it answers. */
        if (question->handle != NULL) question->handle->question = NULL;
        if (!question->asked) free(question->handle);
        bc_defer_cancel(&question->defer);
        free(question);
    }
}
