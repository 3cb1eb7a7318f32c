"""Rows G033 to G052 and G093 to G097: processes, their ends, and the kernel's surface."""
from layer import Layer

CANCEL = "core/runtime/cancel.c"
CHANNEL = "core/channel/channel.c"
EXEC_OUTPUT = "core/sandbox/exec_output.c"
ISOLATE = "core/guest/isolate.c"
JOB = "core/guest/job.c"
LAUNCHER = "core/guest/launcher.c"
REAPER = "core/guest/reaper.c"
SPAWN = "core/guest/spawn.c"

GUESTS_WORDS = [
    Layer("G034", "half a frame waits for its other half",
          [("core/channel/frame.h", "    if (len - BC_FRAME_HEADER < frame->length) return 0;\n", "")],
          "unit/channel", ["a_truncated_frame_waits"]),
    Layer("G034", "a malformed frame ends the channel",
          [(CHANNEL, "if (size == 0) return 0;", "if (size <= 0) return 0;")],
          "unit/channel", ["unknown_streams_and_types", "noise"]),
    Layer("G034", "what nobody expects ends the channel",
          [(CHANNEL, "        if (rc < 0) {\n            break_off(channel, \"an unexpected frame\");\n"
                                      "            return -1;\n        }\n", "")],
          "unit/channel", ["unknown_streams_and_types", "a_truncated_frame_waits", "frames_before_the_handshake"]),
    Layer("G034", "no more output comes than there is credit for",
          [(EXEC_OUTPUT, "exec->exit_pending || frame->length > BC_FRAME_WINDOW - output->uncredited",
            "exec->exit_pending"),
           (EXEC_OUTPUT, "streaming ? BC_FRAME_WINDOW : limit", "streaming ? 10 * BC_FRAME_WINDOW : limit")],
          "unit/channel_answers", ["output_above_the_credit"]),
    Layer("G034", "the numbers of an end are looked at",
          [("core/sandbox/exec.c", "e.reason > BC_EXIT_OUTPUT || e.reason == BARCHAN_EXEC_LOST ||\n"
                                   "        e.exit_code > 255 || e.term_signal > 64 || e.spawn_errno > 4095",
            "e.spawn_errno > 4095")],
          "unit/channel_answers", ["hostile_exits"]),
    Layer("G042", "control characters in the guest's words are replaced",
          [("core/sandbox/wire.c", "c < 0x20 || c == 0x7F ? '?' : from[i]", "from[i]")],
          "unit/channel_answers", ["hostile_words"]),
]

DESCRIPTORS = [
    Layer("G035", "process 1's descriptors do not reach a command",
          [(ISOLATE, "dup3(*kept[i], 3 + i, O_CLOEXEC)", "dup3(*kept[i], 3 + i, 0)"),
           (SPAWN, "done = sys_close_range(3, ~0U, 0);", "done = 0;")],
          "sandbox/exec", ["descriptors_are_three"]),
    Layer("G035", "the host's descriptors do not reach a command",
          [("core/runtime/child.c", "if (syscall(SYS_close_range, (unsigned)options->fd_count, ~0U, "
                                    "CLOSE_RANGE_CLOEXEC) < 0) {", "if (options->fd_count < 0) {"),
           (LAUNCHER, "if (syscall(SYS_close_range, 5, ~0U, 0) < 0) {", "if (false) {"),
           (ISOLATE, "if (syscall(SYS_close_range, 3 + count, ~0U, 0) < 0) {", "if (false) {"),
           (SPAWN, "done = sys_close_range(3, ~0U, 0);", "done = 0;")],
          "sandbox/host", ["a_host_that_leaks"]),
    Layer("G035", "the launcher's descriptors do not reach process 1",
          [(ISOLATE, "if (syscall(SYS_close_range, 3 + count, ~0U, 0) < 0) {", "if (false) {")],
          "hostile/posture", ["every_thread", "with_limits_and_after_a_pause"]),
    Layer("G035", "a supervisor has none",
          [(REAPER, "    sys_close_range(0, ~0U, 0);\n", "")],
          "hostile/posture", ["every_thread", "with_limits_and_after_a_pause"]),
]

ENDS = [
    Layer("G036", "a command has a deadline in the sandbox",
          [("core/guest/exec.c", "    if (request.timeout_ms > 0) job->deadline_us = job->started_us + "
                                 "us_of_ms(request.timeout_ms);\n", "")],
          "sandbox/timeouts", ["timeouts"]),
    Layer("G036", "who does not end when asked is killed",
          [(JOB, "case JOB_TERMINATING: kill_job(job); break;", "case JOB_TERMINATING: break;")],
          "sandbox/timeouts", ["timeouts"]),
    Layer("G036", "who goes into a session of its own is ended, too",
          [(REAPER, "    sys_prctl(PR_SET_CHILD_SUBREAPER, 1);\n", ""),
           ("core/guest/init.c", "        if (job == NULL || WIFSIGNALED(status)) init->strays = true;\n", "")],
          "sandbox/timeouts", ["timeouts"]),
    Layer("G037", "what a command leaves behind is its supervisor's",
          [(REAPER, "    sys_prctl(PR_SET_CHILD_SUBREAPER, 1);\n", "")],
          "sandbox/exec", ["a_held_pipe_does_not_hang"]),
    Layer("G039", "a command is over when its process is, not when its output is",
          [(JOB, "    if (job->stage == JOB_DRAINING) {\n        if (job->orphaned",
            "    if (job->stage == JOB_DRAINING || (job->out.fd < 0 && job->err.fd < 0)) {\n"
            "        if (job->orphaned")],
          "sandbox/exec", ["closed_output_is_not_an_exit"]),
    Layer("G043", "a supervisor reaps whoever is left to it",
          [(REAPER, "sys_wait4(-1, &status, WNOHANG | __WALL, &usage)",
            "sys_wait4(reaper->main_done ? -1 : reaper->main_pid, &status, WNOHANG | __WALL, &usage)")],
          "sandbox/tree", ["ten_thousand_orphans"]),
    Layer("G046", "why a program did not start is told",
          [(SPAWN, "    reaper->spawn_errno = error;\n", "")],
          "sandbox/exec", ["failures_to_start", "too_many_arguments"]),
    Layer("G046", "a file that is no text is not given to a shell",
          [(SPAWN, "if (error != ENOEXEC || !is_text(path)) return error;", "if (error != ENOEXEC) return error;")],
          "sandbox/exec", ["failures_to_start"]),
    Layer("G046", "a text without #! is given to a shell",
          [(SPAWN, "if (error != ENOEXEC || !is_text(path)) return error;", "if (error != 0) return error;")],
          "sandbox/exec", ["script_without_interpreter_line"]),
    Layer("G046", "a signal is told from an exit",
          [("core/guest/exec_end.c", "if (WIFSIGNALED(status)) {", "if (false) {")],
          "sandbox/exec", ["signals"]),
]

STREAMS = [
    Layer("G040", "a command's output has a limit",
          [(JOB, "job->written <= limit", "job->written / 10 <= limit")],
          "sandbox/limits", ["output"]),
    Layer("G040", "no more of it is kept than was asked for",
          [("core/guest/output.c", "capped ? limit - output->head_left : 0", "capped ? 10 * limit : 0")],
          "sandbox/exec", ["caps_are_exact"]),
    Layer("G041", "who does not read gives no credit",
          [(EXEC_OUTPUT, "uint32_t waiting = exec->streaming ? (uint32_t)output->data.len : 0;",
            "uint32_t waiting = 0;"),
           (EXEC_OUTPUT, "if (!exec->streaming) give_back(exec, output, frame->type);",
            "give_back(exec, output, frame->type);"),
           (EXEC_OUTPUT, "streaming ? BC_FRAME_WINDOW : limit", "streaming ? 10 * BC_FRAME_WINDOW : limit")],
          "sandbox/stream", ["a_paused_reader_stops_the_writer"]),
    Layer("G041", "no more input is taken than there is credit for",
          [("core/sandbox/exec_input.c", "exec->in_credit = BC_FRAME_WINDOW;",
            "exec->in_credit = 10 * BC_FRAME_WINDOW;")],
          "sandbox/stream", ["input_by_stream"]),
]

NUMBERS = [
    Layer("G044", "threads and processes have a limit, by a control group",
          [("core/guest/groups.c", "group_write_number(fd, \"pids.max\", count)",
            "group_write_number(fd, \"pids.max\", count * 10)")],
          "hostile/resources", ["processes"]),
    Layer("G044", "an ordinary user's have one, by a resource limit",
          [("core/guest/exec.c", "init->limits.pids + ours", "init->limits.pids * 10 + ours")],
          "hostile/resources_as_user", ["processes"]),
    Layer("G048", "a name is no part of what the kernel says of a process",
          [("core/guest/census.c", "strrchr(text, ')')", "strchr(text, ')')")],
          "hostile/resources", ["its_own_flags"]),
]

LIVES = [
    Layer("G045", "an end that nobody takes yet is told later",
          [(LAUNCHER, "if (send_report(l, &l->unreported[sent]) < 0 && errno == EAGAIN) break;",
            "send_report(l, &l->unreported[sent]);")],
          "sandbox/host_end", ["many_unheard_deaths_are_told_later"]),
    Layer("G049", "the launcher sees its host die",
          [(LAUNCHER, "l->polled[1].revents != 0 || l->polled[0].revents & POLLHUP",
            "l->polled[0].revents & POLLHUP")],
          "sandbox/host_end", ["a_killed_host_with_a_living_child"]),
    Layer("G049", "process 1 dies with the launcher",
          [(ISOLATE, "prctl(PR_SET_PDEATHSIG, SIGKILL)", "prctl(PR_SET_PDEATHSIG, 0)"),
           ("core/guest/init.c", "    if (polled[1].revents != 0) init_die(init, \"the launcher is gone\");\n", "")],
          "sandbox/death", ["a_dead_launcher"]),
    Layer("G051", "the launcher keeps nothing of a sandbox that has ended",
          [(LAUNCHER, "    close(child->pidfd);\n    l->children[i]", "    l->children[i]")],
          "sandbox/death", ["two_hundred_cycles"]),
    Layer("G051", "a step that is refused is told",
          [(ISOLATE, "if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0) return fail_os(why, errno, \"set the death signal\");",
            "prctl(PR_SET_PDEATHSIG, SIGKILL);")],
          "sandbox/setup", ["a_refused_step_is_named"]),
    Layer("G052", "an end is told by the next dispatch, not inside a call",
          [("core/sandbox/exec.c", "    finish_later(owner_of(stream, barchan_exec, stream), BARCHAN_EXEC_LOST);",
            "    barchan_exec *exec = owner_of(stream, barchan_exec, stream);\n"
            "    exec->result.reason = BARCHAN_EXEC_LOST;\n    bc_exec_finish(exec);")],
          "sandbox/life", ["terminating_under_a_command"]),
    Layer("G052", "a channel that is closed inside its callback stays until that returns",
          [(CHANNEL, "    if (channel->entered == 0) free_channel(channel);\n}\n\nstatic void leave",
            "    free_channel(channel);\n}\n\nstatic void leave")],
          "sandbox/stream", ["destroyed_inside_a_callback"]),
    Layer("G052", "whoever sets a deadline also sets the timer to it",
          [(CANCEL, "    pthread_mutex_lock(&cancel->deadline_lock);\n", ""),
           (CANCEL, "    pthread_mutex_unlock(&cancel->deadline_lock);\n", "")],
          "unit/cancel", ["deadlines_of_two_threads_do_not_mix"]),
]

LAYERS = GUESTS_WORDS + DESCRIPTORS + ENDS + STREAMS + NUMBERS + LIVES
