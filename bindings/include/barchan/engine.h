/*
 * The engine: one Lua state, owned and limited by the library, in which agent scripts run.
 *
 * Concepts
 *  - An engine lives on a runtime and belongs to its thread. Several engines may share one.
 *  - A script file returns a table of functions. `barchan_engine_load_file` runs the file and
 *    keeps the table; `barchan_engine_call` and `_start` call one of its functions with a JSON
 *    value and give its first result back as JSON.
 *  - Each call runs as a task: where it waits (a model's answer, a command), other tasks go on.
 *    A blocking call pumps the runtime; a started one is driven by whoever pumps it.
 *  - Tools that the host registers are seen by scripts as `barchan.host.tools`, ready to be
 *    given to a toolset. They answer at once, or later.
 *  - Events of agent runs go to `on_event`: JSON objects with type and, where they apply, seq,
 *    time, run_id, turn, call_id. The types and their fields are listed in
 *    `barchan docs events`; transcripts and `barchan ask --json` hold the same.
 *
 * The safe library has no files, environment, bytecode, debug library or finalizers. Its scripts
 * may make sandboxes (template "host" only), models and toolsets: code and transcripts are read
 * only below script_dirs; a provider's key in the process's environment (ANTHROPIC_API_KEY,
 * OPENAI_API_KEY, GEMINI_API_KEY) is used, never shown, and goes to the provider's own address or
 * the one in ..._BASE_URL only. A tool's arguments are checked against its schema by the keywords
 * listed in scripts/barchan/schema.lua; others (pattern, format) are annotations.
 *
 * Tasks that a call leaves running end with the call.
 *
 * Memory: `memory_limit_bytes` caps what the Lua state allocates. A script that passes it gets
 * "not enough memory" as an error; the host is not touched.
 *
 * Time: a script that runs without waiting for longer than `slice_limit_ms` is stopped: its task
 * ends with BARCHAN_ETIMEDOUT, and the engine goes on. A handler may catch that once, and gets a
 * moment (a thousand instructions at most) to come to an end of its own or to a wait; after it
 * whatever it does throws again. `total_limit_ms` ends who is stopped again and again. A tool that
 * runs away is an error result for the model. In the safe library that holds for pattern matching
 * too, and loops in C are looked at in between or have a bound (table.insert and table.remove
 * take no table with a __len); in the full one long C functions
 * and finalizers are not stopped, and an instruction on a string of megabytes counts as one of a
 * thousand between two looks at the clock. A call ends with BARCHAN_ETIMEDOUT when it takes longer
 * than `call_limit_ms`, and with BARCHAN_ECANCELLED when its token is triggered
 * (barchan_cancel_after gives a call a deadline of its own), from whatever thread, whether it waits
 * or runs: it may come to an orderly end (a fifth of a second of running, which all tasks of the
 * engine share; but each has a millisecond or two, so that thousands of them take seconds), and
 * then it is stopped. So are the tasks that it has spawned. A task that only gives others a turn,
 * by coroutine.yield, ends there: what it left to be closed is closed, and no handler is called.
 * Where scripts of the safe library hold strings of many megabytes, an instruction can take long:
 * with up to 64 MB of memory a stop may come a second later, with more memory the later. (Such
 * scripts are looked at so often that they run at half of their speed.)
 *
 * Callbacks run on the runtime's thread, inside a pump or a blocking call. They may call
 * anything but blocking functions and barchan_engine_destroy.
 */
#ifndef BARCHAN_ENGINE_H
#define BARCHAN_ENGINE_H

#include <stddef.h>
#include <stdint.h>
#include <barchan/barchan.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct barchan_engine barchan_engine;

typedef enum barchan_library {
    BARCHAN_LIBRARY_SAFE = 0, /* for scripts of others, see above */
    BARCHAN_LIBRARY_FULL = 1  /* the Lua library but for bytecode and C modules: operators' own */
} barchan_library;

/* One JSON object, without a newline, borrowed for the call. */
typedef void (*barchan_event_fn)(const char *event, size_t len, void *ud);
/* What a script printed, a line with its newline; borrowed for the call. */
typedef void (*barchan_print_fn)(const char *text, size_t len, void *ud);

/* Like realloc, of `old_size` bytes before; `new_size` 0 frees. NULL: there is no more memory. */
typedef void *(*barchan_alloc_fn)(void *ptr, size_t old_size, size_t new_size, void *ud);

/* A script from memory. `name` is a path, "agents/support.lua": load_file and `require
 * "agents.support"` find it before script_dirs are asked. */
typedef struct barchan_script {
    const char *name;
    const char *text;
    size_t len;
} barchan_script;

typedef struct barchan_engine_options {
    size_t struct_size;
    const char *const *script_dirs; /* where `require` and load_file look, NULL-terminated */
    barchan_library library;
    size_t memory_limit_bytes; /* 0: 64 MiB with the safe library, none with the full one */
    barchan_event_fn on_event;
    barchan_print_fn on_print; /* NULL: to the runtime's log, level info */
    void *ud;                  /* of all the functions here */
    int64_t slice_limit_ms;    /* longest a script may run without waiting, in processor time (on
                                  the clock ten times as long); 0: 1 s with the safe library, none
                                  with the full one; -1: none */
    int64_t total_limit_ms;    /* the same of one task in all, waits not counted; 0: no limit */
    const char *const *argv;   /* what scripts see as `arg`, NULL-terminated; may be NULL */
    const barchan_script *scripts; /* ended by a NULL name; copied */
    barchan_alloc_fn alloc;        /* for the Lua state's memory; NULL: malloc */
    barchan_log_fn on_log;         /* what scripts and tools log; NULL: to the runtime's log */
    int64_t call_limit_ms;         /* longest a call may take, waits included; 0: no limit */
} barchan_engine_options;

BARCHAN_API int barchan_engine_create(barchan_engine **out, barchan_runtime *rt,
                                      const barchan_engine_options *options, barchan_error *err);
/* Cancels its calls (their callbacks run, with BARCHAN_ECANCELLED), runs what scripts left to be
 * closed, frees it. NULL is ignored, and so is the parent's engine in a forked child. */
BARCHAN_API void barchan_engine_destroy(barchan_engine *engine);

/* Runs a script file as a task, waiting, and keeps the table of functions that it returns
 * (replacing the one before). `name` is looked up in script_dirs unless it is absolute or starts
 * with "./" or "../". A script that returns nothing is fine; it has no functions to call. */
BARCHAN_API int barchan_engine_load_file(barchan_engine *engine, const char *name,
                                         barchan_error *err);
/* The same for text; `name` is for messages. Bytecode is refused. */
BARCHAN_API int barchan_engine_load_string(barchan_engine *engine, const char *name,
                                           const char *text, size_t len, barchan_error *err);

/* Adds a script from memory, or replaces it; a NULL text removes it. Takes effect at the next load.
 */
BARCHAN_API int barchan_engine_set_script(barchan_engine *engine, const char *name,
                                          const char *text, size_t len, barchan_error *err);

/* Loads the script of the last load_file again, and with it the modules that it requires from
 * script_dirs, waiting. Calls that begin later use the new functions; calls that run finish with
 * the ones that they began with; loops that `barchan.script:run` drives change at their next turn.
 * When anything is wrong with the new script (it does not compile, it throws, it returns no table,
 * its top level takes longer than a second of running or three in all), everything stays as it was
 * and the error says why. Events: script_reloaded, script_reload_failed, script_rolled_back. */
BARCHAN_API int barchan_engine_reload(barchan_engine *engine, barchan_error *err);

/* Calls a function of the loaded table, or of an embedded module as "module:function". `args` is
 * JSON text (NULL: no argument). `*result` is JSON text, freed with barchan_free; may be NULL.
 * A script's error is BARCHAN_ESCRIPT with message and traceback, or the code of the error object
 * that it threw. */
BARCHAN_API int barchan_engine_call(barchan_engine *engine, const char *function, const char *args,
                                    barchan_cancel *cancel, char **result, barchan_error *err);

/* Called once. `result` is borrowed; NULL when err is set. */
typedef void (*barchan_call_fn)(const char *result, const barchan_error *err, void *ud);
/* The same without waiting: `done` is called exactly once when this returned 0, later. */
BARCHAN_API int barchan_engine_start(barchan_engine *engine, const char *function, const char *args,
                                     barchan_cancel *cancel, barchan_call_fn done, void *ud,
                                     barchan_error *err);

/* ---- host tools ---- */

/* Answers a call: at once or later, exactly once, by barchan_engine_answer with this call id.
 * `args` is JSON text that passed the tool's parameter schema; borrowed for the call. Returning
 * negative answers the call with an error. */
typedef int (*barchan_tool_fn)(barchan_engine *engine, uint64_t call_id, const char *args,
                               size_t len, void *ud);

typedef struct barchan_tool {
    size_t struct_size;
    const char *name; /* letters, digits, _ and -, at most 64 */
    const char *description;
    const char *parameters_json; /* a JSON Schema whose type is object; NULL: no parameters */
    barchan_tool_fn call;
    void *ud;
} barchan_tool;

/* Everything in `tool` is copied. A name that exists is replaced. */
BARCHAN_API int barchan_engine_add_tool(barchan_engine *engine, const barchan_tool *tool,
                                        barchan_error *err);
/* On the runtime's thread; from another one, post. An id that is unknown, or whose caller was
 * cancelled, is BARCHAN_ENOTFOUND. */
BARCHAN_API int barchan_engine_answer(barchan_engine *engine, uint64_t call_id, const char *text,
                                      size_t len, int is_error, barchan_error *err);

#ifdef __cplusplus
}
#endif
#endif
