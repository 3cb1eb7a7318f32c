/*
 * Which system calls a sandbox may make, and why. Read by the filter generator at build time.
 *
 * Default: ENOSYS, as an older kernel would answer, so that libc and language run times fall
 * back. ALLOW needs no more reason than its group's heading; every DENY (EPERM) has its own.
 * Calls whose arguments decide are allowed here and narrowed in seccomp_gen.c: clone, socket,
 * socketpair, ioctl, fcntl, mknod, mknodat, personality, prlimit64, ptrace.
 */
#ifndef SECCOMP_TABLE_H
#define SECCOMP_TABLE_H

struct row {
    const char *name; /* several names, space-separated */
    enum { ALLOW, DENY, ABSENT } action;
    const char *reason;
};

static const struct row rows[] = {
    {"read readv pread64 preadv preadv2 write writev pwrite64 pwritev pwritev2 lseek _llseek close "
     "close_range dup dup2 dup3 pipe pipe2 fcntl flock ioctl fsync fdatasync sync sync_file_range "
     "readahead fadvise64 sendfile splice tee vmsplice copy_file_range",
     ALLOW, "file descriptors: rights were checked when they were opened"},
    {"open openat openat2 creat access faccessat faccessat2 stat lstat fstat newfstatat statx "
     "statfs fstatfs readlink readlinkat getcwd chdir fchdir getdents getdents64 mkdir mkdirat "
     "rmdir rename renameat renameat2 link linkat unlink unlinkat symlink symlinkat truncate "
     "ftruncate fallocate chmod fchmod fchmodat chown fchown lchown fchownat utime utimes "
     "utimensat futimesat umask mknod mknodat",
     ALLOW,
     "paths: resolved in the sandbox's own root, with the command's rights; mknod makes FIFOs and "
     "sockets only"},
    {"getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr setxattr lsetxattr fsetxattr "
     "removexattr lremovexattr fremovexattr",
     ALLOW, "attributes: only user.* is open without capabilities"},
    {"inotify_init inotify_init1 inotify_add_watch inotify_rm_watch eventfd eventfd2 signalfd "
     "signalfd4 timerfd_create timerfd_settime timerfd_gettime epoll_create epoll_create1 "
     "epoll_ctl epoll_wait epoll_pwait epoll_pwait2 poll ppoll select pselect6 memfd_create",
     ALLOW, "waiting and anonymous files"},
    {"mmap munmap mremap mprotect madvise mincore msync brk mlock mlock2 munlock mlockall "
     "munlockall pkey_alloc pkey_free pkey_mprotect membarrier",
     ALLOW, "own memory; locking is bounded by RLIMIT_MEMLOCK"},
    {"clone fork vfork execve execveat exit exit_group wait4 waitid kill tkill tgkill pidfd_open "
     "pidfd_send_signal getpid getppid gettid getpgid setpgid getpgrp getsid setsid "
     "set_tid_address set_robust_list get_robust_list futex futex_waitv rseq arch_prctl prctl "
     "personality seccomp",
     ALLOW,
     "processes: confined by the process namespace and RLIMIT_NPROC; clone and "
     "personality are narrowed by arguments; own seccomp filters only restrict further"},
    {"rt_sigaction rt_sigprocmask rt_sigpending rt_sigtimedwait rt_sigsuspend rt_sigreturn "
     "rt_sigqueueinfo rt_tgsigqueueinfo sigaltstack pause alarm getitimer setitimer "
     "restart_syscall",
     ALLOW, "signals: within the process namespace"},
    {"getuid geteuid getgid getegid getresuid getresgid getgroups setuid setgid setreuid setregid "
     "setresuid setresgid setfsuid setfsgid setgroups capget capset",
     ALLOW,
     "identity: without capabilities nothing can be gained; process 1 changes to the "
     "command's user with them"},
    {"sched_yield sched_getaffinity sched_setaffinity sched_getparam sched_setparam "
     "sched_getscheduler sched_setscheduler sched_getattr sched_setattr sched_get_priority_max "
     "sched_get_priority_min sched_rr_get_interval getpriority setpriority ioprio_get ioprio_set "
     "getcpu getrlimit setrlimit prlimit64 getrusage times sysinfo uname",
     ALLOW, "scheduling and own limits: raising needs capabilities"},
    {"clock_gettime clock_getres clock_nanosleep nanosleep gettimeofday time timer_create "
     "timer_settime timer_gettime timer_getoverrun timer_delete getrandom",
     ALLOW, "time, read only, and random numbers"},
    {"socket socketpair bind listen accept accept4 connect getsockname getpeername getsockopt "
     "setsockopt sendto sendmsg sendmmsg recvfrom recvmsg recvmmsg shutdown",
     ALLOW, "sockets: families are narrowed by arguments; the network namespace is the wall"},
    {"shmget shmat shmdt shmctl semget semop semtimedop semctl msgget msgsnd msgrcv msgctl "
     "mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr",
     ALLOW, "System V and POSIX queues: the sandbox has its own IPC namespace"},
    {"landlock_create_ruleset landlock_add_rule landlock_restrict_self", ALLOW,
     "self-restriction only"},

    {"clone3", ABSENT, "its flags are behind a pointer that no filter can read; libc falls back"},
    {"io_uring_setup io_uring_enter io_uring_register", ABSENT,
     "performs other system calls past the filter; run times fall back"},
    {"mount umount2 pivot_root chroot fsopen fsconfig fsmount fspick move_mount open_tree "
     "mount_setattr quotactl quotactl_fd swapon swapoff",
     DENY, "changing what the sandbox sees"},
    {"syncfs", DENY, "through a read-only bind it would wait for, and load, the host's disks"},
    {"unshare setns", DENY, "new namespaces bring capabilities over large parts of the kernel"},
    {"ptrace", ALLOW,
     "debuggers on their own children, which ask to be traced; taking hold of another process is "
     "refused by its argument"},
    {"process_vm_readv process_vm_writev kcmp process_madvise pidfd_getfd", DENY,
     "reaching into other processes"},
    {"bpf perf_event_open userfaultfd fanotify_init fanotify_mark lookup_dcookie", DENY,
     "kernel introspection with a long record of holes"},
    {"add_key request_key keyctl", DENY, "kernel key rings are not namespaced"},
    {"name_to_handle_at open_by_handle_at", DENY, "handles name files outside the root"},
    {"init_module finit_module delete_module kexec_load kexec_file_load reboot syslog acct "
     "settimeofday clock_settime clock_adjtime adjtimex sethostname setdomainname iopl ioperm "
     "vhangup",
     DENY, "administration of the machine"},
    {"mbind set_mempolicy get_mempolicy migrate_pages move_pages set_mempolicy_home_node", DENY,
     "placement on the host's memory nodes"},
    {"modify_ldt uselib ustat sysfs _sysctl nfsservctl vm86 vm86old remap_file_pages "
     "memfd_secret process_mrelease",
     ABSENT, "obsolete or of no use here"},
};

#endif
