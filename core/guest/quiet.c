/* Whether nothing runs in the sandbox, and keeping it so while a snapshot is taken. */
#include "census.h"
#include "file.h"

#define SHOWN 5
#define MAX_SHOWN_COMMAND 60u

bool quiet_is_packing(const struct init *init)
{
    for (unsigned i = 0; i < init->job_count; i++) {
        if (init->jobs[i]->packs) return true;
    }
    return false;
}

bool quiet_may_run(uint32_t op)
{
    return op == BC_FILE_OP_READ || op == BC_FILE_OP_LIST || op == BC_FILE_OP_STAT ||
           op == BC_FILE_OP_CHANGES;
}

static size_t put(char *to, size_t at, size_t cap, const char *text, size_t len)
{
    for (size_t i = 0; i < len && at + 1 < cap; i++) {
        to[at++] = text[i];
    }
    to[at] = '\0';
    return at;
}

static size_t put_number(char *to, size_t at, size_t cap, unsigned number)
{
    char digits[12];
    size_t n = sizeof digits;
    do {
        digits[--n] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    return put(to, at, cap, digits + n, sizeof digits - n);
}

#define PUT(text) at = put(words, at, cap, text, strlen(text))

/* A process whose first thread has ended looks dead while others of it go on. */
static bool runs(const struct init *init, const struct person *person)
{
    return (person->state != 'Z' || person->threads > 1) && !census_is_supervisor(init, person);
}

/* "2 processes run: 41 python3 server.py, 57 sleep" */
static void name_processes(const struct init *init, const struct census *census, unsigned count,
                           char *words, size_t cap)
{
    char command[MAX_SHOWN_COMMAND];
    unsigned shown = 0;
    size_t at = put_number(words, 0, cap, count);
    PUT(count == 1 ? " process runs: " : " processes run: ");
    for (int i = 0; i < census->count && shown < SHOWN; i++) {
        const struct person *person = &census->of[i];
        if (!runs(init, person)) continue;
        if (shown++ > 0) PUT(", ");
        at = put_number(words, at, cap, (unsigned)person->pid);
        PUT(" ");
        at = put(words, at, cap, command, usage_command_line(person->pid, command, sizeof command));
    }
    if (shown < count) PUT(", …");
}

bool quiet_check(const struct init *init, struct file_result *result, char *words, size_t cap)
{
    static struct census census;
    size_t at = 0;
    *result = (struct file_result){.status = BC_WIRE_EBUSY, .words = words};
    for (unsigned i = 0; i < init->job_count; i++) {
        if (init->jobs[i]->kind != JOB_FILE) continue;
        PUT(init->jobs[i]->packs ? "another one is being taken" : "a file operation runs");
        return false;
    }
    if (!census_take(init, &census, CENSUS_MAX)) {
        PUT("without /proc nobody can tell whether something runs");
        result->status = BC_WIRE_EUNSUPPORTED;
        return false;
    }
    unsigned count = 0;
    for (int i = 0; i < census.count; i++) {
        const struct person *person = &census.of[i];
        if (runs(init, person)) count++;
    }
    for (unsigned i = 0; count == 0 && i < init->job_count; i++) {
        if (init->jobs[i]->kind != JOB_EXEC || init->jobs[i]->stage >= JOB_DRAINING) continue;
        PUT("a command is just being started");
        return false;
    }
    if (count == 0) return true;
    name_processes(init, &census, count, words, cap);
    return false;
}
