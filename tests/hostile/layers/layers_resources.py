"""Rows G060 to G072: what a guest may take of the machine. Where there is a limit it is made ten times higher."""
from layer import Layer

GROUPS = "core/guest/groups.c"
ROOT = "core/guest/isolate_root.c"
SPAWN = "core/guest/spawn.c"
WATCH = "core/guest/watch.c"
LIMITS = "core/base/limits.h"
EGRESS = "core/egress/egress.c"

CPU_WATCH = (WATCH, "if (used > init->limits.cpu_us) job", "if (used > 10 * init->limits.cpu_us) job")
GROUP_MEMORY = (GROUPS, "limits->memory_bytes, limit_memory)", "10 * limits->memory_bytes, limit_memory)")
STORAGE_SIZE = (ROOT, 'nr_inodes=%llu", size, files);', 'nr_inodes=%llu", 10 * size, files);')
DESCRIPTORS = (SPAWN, "uint64_t files = command->open_files;", "uint64_t files = 10 * command->open_files;")

LAYERS = [
    Layer("G060", "the group's memory has a limit", [GROUP_MEMORY],
          "sandbox/limits", ["memory", "memory_of_many_processes"]),
    Layer("G060", "it counts what is in no heap, too", [GROUP_MEMORY],
          "hostile/resources", ["memory"]),
    Layer("G060", "where there is no group, process 1 looks at the memory",
          [(WATCH, "if (total <= init->limits.memory_bytes) return;",
            "if (total <= 10 * init->limits.memory_bytes) return;")],
          "sandbox/limits_as_user", ["memory", "memory_of_many_processes"]),
    Layer("G060", "a sandbox whose process 1 was taken for its memory is told of as such",
          [(GROUPS, "return at == NULL ? 0 : strtoull(at + 9, NULL, 10);", "return 0 * (at != NULL);")],
          "sandbox/lease", ["the_kernel_takes_process_1"]),
    Layer("G061", "the storage has a size", [STORAGE_SIZE],
          "sandbox/limits", ["disk_and_files"]),
    Layer("G061", "and a number of files",
          [(ROOT, "files = plan->limits.files + own;", "files = 10 * plan->limits.files + own;")],
          "sandbox/limits", ["disk_and_files"]),
    Layer("G061", "a file that does not fit does not take its name",
          [("core/guest/file_write.c", "chunk, (size_t)n) < 0) return file_fail_os(result, errno);",
            "chunk, (size_t)n) < 0) return 0;")],
          "sandbox/transfer", ["a_full_disk"]),
    Layer("G063", "a command's descriptors have a limit", [DESCRIPTORS],
          "sandbox/limits", ["open_files"]),
    Layer("G063", "of whatever kind they are", [DESCRIPTORS],
          "hostile/resources", ["descriptors"]),
    Layer("G064", "the group has its share of the processors",
          [(GROUPS, "milli * CPU_PERIOD_US / 1000;", "milli * CPU_PERIOD_US / 100;")],
          "sandbox/limits", ["processors"]),
    Layer("G064", "a command's whole tree has its processor time", [CPU_WATCH], "sandbox/limits", ["processor_time"]),
    Layer("G065", "the storage is no larger than it was said to be", [STORAGE_SIZE],
          "hostile/resources", ["storage"]),
    Layer("G068", "queues are few", [(ROOT, '#define FEW_QUEUES "64"', '#define FEW_QUEUES "640"')],
          "hostile/resources", ["queues"]),
    Layer("G068", "semaphores are few", [(ROOT, '"250 32000 32 128"', '"250 32000 32 1280"')],
          "hostile/resources", ["queues"]),
    Layer("G068", "segments end with their processes",
          [(ROOT, '"proc/sys/kernel/shm_rmid_forced", "1"', '"proc/sys/kernel/shm_rmid_forced", "0"')],
          "hostile/resources", ["queues"]),
    Layer("G068", "each sandbox has queues of its own", [("core/guest/clone.c", "CLONE_NEWIPC | ", "")],
          "hostile/resources", ["nothing_is_shared"]),
    Layer("G069", "a sandbox has so many connections and no more",
          [(LIMITS, "BC_EGRESS_DEFAULT_CONNECTIONS 256", "BC_EGRESS_DEFAULT_CONNECTIONS 2560")],
          "sandbox/network_storm", ["silent_connections_take_their_own_sandboxs_places_only"]),
    Layer("G069", "when descriptors have run out nobody asks for more at once",
          [(EGRESS, "            set_accepting(egress, 0);\n", "")],
          "sandbox/network_storm", ["descriptors_that_run_out_are_waited_for"]),
    Layer("G071", "a time that milliseconds cannot hold is the last that they can",
          [("core/guest/file_tree.c", "    if (s > most) return INT64_MAX;\n    if (s < -most) return INT64_MIN;\n",
            "    s += 0 * most;\n")],
          "sandbox/borders", ["odd_times"]),
    Layer("G071", "a time has no more than a second's nanoseconds",
          [("core/sandbox/unpack.c", "if (ns > 999999999) in->bad = 1;", "")],
          "unit/unpack", ["odd_nanoseconds"]),
    Layer("G072", "who goes on behind the kernel's warning is ended, and it is said why", [CPU_WATCH],
          "sandbox/limits", ["processor_time_without_notice"]),
]
