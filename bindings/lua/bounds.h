/* Every maximum of the Lua side, each with its reason. */
#ifndef BL_BOUNDS_H
#define BL_BOUNDS_H

/* An engine for scripts of others: what a large agent script with its conversations needs, tenfold.
 */
#define BL_SAFE_MEMORY_BYTES ((size_t)64 << 20)
/* What the top level of a reloaded script may run in any engine: it defines things. */
#define BL_LOAD_SLICE_MS 1000
/* Longer than any reasonable step between two waits; short enough for a host with a user interface.
 */
#define BL_SAFE_SLICE_MS 1000
/* Providers take tool names of up to 64 characters (Gemini 128). */
#define BL_TOOL_MAX_NAME 64
/* A tool's answer goes to a model: far more than any context window takes. */
#define BL_TOOL_MAX_ANSWER_BYTES ((size_t)16 << 20)
/* Output that waits for a script that reads slowly; beyond it the command is held back. */
#define BL_EXEC_QUEUE_BYTES (64 * 1024)
/* The same of a file: the core's window comes on top, which is under way when it is held back. */
#define BL_TRANSFER_QUEUE_BYTES (BL_EXEC_QUEUE_BYTES + (512 * 1024))
/* A log line (runtime.h promises single lines). */
#define BL_LOG_LINE_BYTES 1000
/* Rounds of a loop in C that no hook sees: half a second at most. */
#define BL_MAX_ROUNDS ((lua_Integer)1 << 23)
/* Bytes of texts that one call may read as numbers: as long. */
#define BL_MAX_TEXT_BYTES (256 << 20)
/* Comparing a text of this size is worth a look at the clock. */
#define BL_LONG_TEXT_BYTES (64u << 10)
/* A format of os.date: each of its letters may cost a microsecond. */
#define BL_MAX_DATE_FORMAT 4096
/* Calls that a pcall may be in: more than any parser of nested data needs. */
#define BL_MAX_PCALL_DEPTH 5000
/* Items of a JSON array: what fits BC_JSON_MAX_BYTES with a comma each is more than memory holds.
 */
#define BL_JSON_MAX_ITEMS (1 << 24)
/* Of a text's memory, kept for the next one: a conversation is encoded anew with each turn. */
#define BL_JSON_KEPT_BYTES ((size_t)256 << 10)
/* Members of an object that are held on the stack while it is written: messages, calls and most
 * others have fewer. */
#define BL_JSON_FEW_MEMBERS 16
/* Collecting in full when memory is short may take a tenth of the time. */
#define BL_COLLECT_SHARE 10
/* A script's name: a path below a folder. */
#define BL_SCRIPT_MAX_NAME 200
/* Scripts are written by people; a megabyte is a year's work. (Files: BC_SCRIPT_MAX_BYTES.) */
#define BL_SCRIPT_MAX_BYTES ((size_t)1 << 20)
/* A slice is limited by the time that it runs. Where others have the processor it may take so many
 * times as long: a busy machine stops no script, a call that blocks goes on no longer. */
#define BL_SLICE_STRETCH 10
/* A slice that is over by then needs no look at the clock of running time, which is slow. */
#define BL_SHORT_SLICE_US 1000
/* How long tasks run, one after the other, before timers, sockets and the host get their turn. */
#define BL_TURN_US 2000
/* Instructions between two looks at the clock: some microseconds, but each may be the copy of a
 * long string. */
#define BL_LOOK_EVERY 1000
/* An instruction that goes through so many bytes takes a millisecond at most (a string as a number:
 * 34 ms for 20 MB): with more of them in large blocks, looks are closer together. */
#define BL_LOOK_BYTES ((size_t)512 << 10)
/* But no closer than that: a look costs as much as some ten instructions. */
#define BL_LOOK_LEAST 8
/* From here on a block is one that could be long to go through; most scripts never have one. */
#define BL_LARGE_BYTES ((size_t)64 << 10)
/* What handlers that catch the watchdog's first stop may still do, where nothing is large. */
#define BL_GRACE_INSTRUCTIONS 1000
#define BL_GRACE_US 10000
/* For closing what a stopped task left open, and for coming to an end when cancelled: of all tasks
 * of a state, which could be many. It comes back in ten times as long. */
#define BL_CLOSING_MS 200
#define BL_CLOSING_SHARE 10
/* What an end always gets, and what it takes without that being counted. */
#define BL_CLOSING_LEAST_US 1000
/* Tasks of a state that have not ended: a gigabyte. */
#define BL_MAX_TASKS ((size_t)1 << 20)

#endif
