#include "peer.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int peer_start(peer *p, const char *const *argv)
{
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0) return -1;
    p->pid = fork();
    if (p->pid == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        execvp(argv[0], (char *const *)argv);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    p->input = in[1];
    p->port = 0;
    FILE *lines = fdopen(out[0], "r");
    char line[64];
    if (lines != NULL && fgets(line, sizeof line, lines) != NULL) {
        p->port = (int)strtol(line, NULL, 10);
    }
    if (lines != NULL) fclose(lines);
    if (p->port > 0) return 0;
    peer_stop(p);
    return -1;
}

void peer_stop(peer *p)
{
    close(p->input);
    waitpid(p->pid, NULL, 0);
}
