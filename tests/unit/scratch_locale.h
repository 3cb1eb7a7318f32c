/* A locale whose decimal sign is no point, made at test time: containers have none installed. */
#ifndef TESTS_SCRATCH_LOCALE_H
#define TESTS_SCRATCH_LOCALE_H

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* 1 when `name` ("de_DE") could be made and is set now. */
static inline int scratch_locale(const char *name)
{
    static char folder[] = "/tmp/barchan-locale-XXXXXX";
    char path[128], full[64];
    if (folder[sizeof folder - 2] == 'X' && mkdtemp(folder) == NULL) return 0;
    snprintf(full, sizeof full, "%s.UTF-8", name);
    snprintf(path, sizeof path, "%s/%s", folder, full);
    pid_t pid = fork();
    if (pid == 0) {
        execlp("localedef", "localedef", "--quiet", "-i", name, "-f", "UTF-8", path, (char *)NULL);
        _exit(127);
    }
    int status;
    waitpid(pid, &status, 0);
    setenv("LOCPATH", folder, 1);
    return setlocale(LC_ALL, full) != NULL;
}

/* Removes what was made. */
static inline void scratch_locale_drop(void)
{
    const char *folder = getenv("LOCPATH");
    setlocale(LC_ALL, "C");
    pid_t pid = folder != NULL ? fork() : -1;
    if (pid == 0) {
        execlp("rm", "rm", "-rf", "--", folder, (char *)NULL);
        _exit(127);
    }
    if (pid > 0) waitpid(pid, NULL, 0);
}

#endif
