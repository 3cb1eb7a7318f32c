#include "peer.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <sys/socket.h>
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

long peer_stat(const peer *p, const char *name)
{
    static const char request[] = "GET /_stats HTTP/1.1\r\nhost: x\r\n\r\n";
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)p->port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    char *answer = calloc(1, 1 << 16), key[64];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    long value = -1;
    /* The numbers stand before the long list of requests. */
    if (answer != NULL && connect(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
        send(fd, request, sizeof request - 1, MSG_NOSIGNAL) > 0 &&
        recv(fd, answer, (1 << 16) - 1, 0) > 0) {
        snprintf(key, sizeof key, "\"%s\": ", name);
        const char *found = strstr(answer, key);
        if (found != NULL) value = strtol(found + strlen(key), NULL, 10);
    }
    close(fd);
    free(answer);
    return value;
}

int peer_run(const char *const *argv)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        for (int fd = 0; fd < 3; fd++)
            dup2(null, fd);
        execvp(argv[0], (char *const *)argv);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
