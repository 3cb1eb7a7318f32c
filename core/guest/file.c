#include "init.h"

void file_start(struct init *init, const bc_frame *frame)
{
    (void)frame;
    init_die(init, "not yet");
}

void file_report(struct init *init, struct job *job)
{
    (void)init, (void)job;
}
