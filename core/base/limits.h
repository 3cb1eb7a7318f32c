/*
 * Every maximum of the core, each with its reason. What a guest, a server, a model or a script
 * sends is bounded by one of these before anything is allocated for it.
 */
#ifndef BC_BASE_LIMITS_H
#define BC_BASE_LIMITS_H

/* JSON: RFC 8259 sets none. Real bodies nest below 20; a parser's stack must not be the model's
 * to fill. */
#define BC_JSON_MAX_DEPTH 128
/* Anthropic refuses requests over 32 MB (HTTP 413); nothing that we send or read is larger. */
#define BC_JSON_MAX_BYTES (64u << 20)
/* A value of a view costs about 40 bytes whatever its text: a 64 MiB array of zeros would cost
 * more than a gigabyte. Two million are 80 MB, and far beyond real requests. */
#define BC_JSON_MAX_NODES 2000000

/* Runtime. Rounds of callbacks that queue further ones, when a runtime is destroyed. */
#define BC_DESTROY_ROUNDS 16
/* Posts that wait for one pump: a host that has stopped pumping must not fill the memory. */
#define BC_POST_MAX 100000
/* How long destroy waits for dying processes. */
#define BC_DESTROY_WAIT_MS 2000
/* How often the names of watched directories are looked up: a rename of a parent gives no event. */
#define BC_DIR_WATCH_RETRY_MS 500
/* Descriptors that a child process is given; the launcher takes five. */
#define BC_CHILD_MAX_FDS 16
/* Script directories: quiet time after the last event, and the longest that a steady stream of them
 * can delay the news. Editors write a file in several steps within milliseconds. */
#define BC_DIR_WATCH_QUIET_MS 200
#define BC_DIR_WATCH_MOST_MS 1000
#define BC_DIR_WATCH_MAX_DIRS 64
/* A script is text that a person wrote; a directory of them is a few dozen. */
#define BC_SCRIPT_MAX_BYTES ((size_t)1 << 20)
#define BC_SCRIPT_MAX_FILES 1000
#define BC_SCRIPT_MAX_TOTAL_BYTES ((size_t)32 << 20)

/* A folder of the host's that is copied: what a sandbox can list (BC_FILE_MAX_ENTRIES), and deeper
 * than projects are; each level costs a descriptor and stack. */
#define BC_HOST_MAX_ENTRIES 100000
#define BC_HOST_MAX_DEPTH 64

/* HTTP. Headers of providers take 1 to 4 KB; a flood of them must not fill memory. */
#define BC_HTTP_MAX_HEADER_BYTES (256u << 10)
/* Error bodies are a line of JSON, or a proxy's page of HTML. */
#define BC_HTTP_MAX_ERROR_BYTES (256u << 10)
/* Received but not yet consumed body of one request; beyond it the transfer is paused. */
#define BC_HTTP_MAX_WAITING_BYTES (256u << 10)
/* Idle connections kept for reuse by one runtime. */
#define BC_HTTP_MAX_IDLE_CONNECTIONS 32
/* A URL: no server takes longer ones. */
#define BC_HTTP_MAX_URL_BYTES 8192
/* A server that asks to be left alone for longer is taken to mean a day. */
#define BC_HTTP_MAX_RETRY_AFTER_S 86400

/* Models. One line or event of a stream: whole web pages come in one event as tool results. */
#define BC_MODEL_MAX_EVENT_BYTES (16u << 20)
/* The pattern of a stream's pieces: a few members; longer ones are taken apart. */
#define BC_MODEL_MAX_PATTERN_BYTES 1024
/* All that one turn may hold; Anthropic's largest answer (128,000 tokens) is below 1 MB, pictures
 * and fetched pages come on top. */
#define BC_MODEL_MAX_TURN_BYTES (32u << 20)
/* Content blocks of a turn. Server tools make a few dozen. */
#define BC_MODEL_MAX_BLOCKS 4096
/* Calls of a turn: each must be answered, and a model in a loop makes thousands. */
#define BC_MODEL_MAX_TOOL_CALLS 256
/* Requests of a recording that is played. */
#define BC_MODEL_MAX_EXCHANGES 100000
/* What counts as a secret in errors of servers. Shorter keys are those of local servers, "ollama",
 * and would hide ordinary words. */
#define BC_MODEL_MIN_SECRET_BYTES 8
/* How much of a server's words goes into an error, whose message holds 512 bytes with its context;
 * of an answer that is no API's, and of an address, less says as much. */
#define BC_MODEL_MAX_ERROR_TEXT 400
#define BC_MODEL_MAX_ERROR_DETAIL 200
/* How deep a call's arguments may nest: as part of a message they stand several levels deeper, and
 * a conversation that holds them must stay below BC_JSON_MAX_DEPTH. */
#define BC_MODEL_MAX_ARGUMENT_DEPTH 64
/* A count of tokens: what a double holds exactly, as Lua and JSON readers need; sums of a few stay
 * far from overflow. */
#define BC_MODEL_MAX_COUNT ((int64_t)1 << 53)
/* Model timeouts when the caller gives none. Idle: thinking models are silent for a minute before
 * the first token. Total: what the providers' own libraries use. */
#define BC_MODEL_DEFAULT_RETRIES 2
#define BC_MODEL_MAX_RETRIES 100
#define BC_MODEL_DEFAULT_RETRY_WAIT_MS 60000
#define BC_MODEL_FIRST_BACKOFF_MS 500
#define BC_MODEL_MAX_BACKOFF_MS 8000
#define BC_MODEL_DEFAULT_CONNECT_MS 15000
#define BC_MODEL_DEFAULT_IDLE_MS 120000
#define BC_MODEL_DEFAULT_TOTAL_MS 600000
/* After its last word a server closes its answer within moments; waiting for it keeps the
 * connection for the next request. One that does not is cut off. Where the last word may be
 * missing, the counts of tokens get a little longer to come. */
#define BC_MODEL_ENDED_GRACE_MS 1000
#define BC_MODEL_COMPLETE_GRACE_MS 5000
/* A name that OpenAI takes back in a request; Anthropic takes BC_MODEL_MAX_NAME_BYTES. */
#define BC_MODEL_MAX_ECHO_NAME_BYTES 64
/* An id of a call: providers use 40 bytes, some gateways pack a signature into it. */
#define BC_MODEL_MAX_ID_BYTES 16384
/* A tool's name: Gemini allows the longest, 128. */
#define BC_MODEL_MAX_NAME_BYTES 128
/* Messages and tools of a request: Anthropic takes 100,000 messages. */
#define BC_MODEL_MAX_MESSAGES 100000
#define BC_MODEL_MAX_TOOLS 1024
/* What a model keeps of conversations that it sent, so as not to read and render them again: text
 * and rendered form of the longest without pictures (1,000,000 tokens), of a few that take turns.
 * Below the least, reading anew takes microseconds. */
#define BC_MODEL_KEPT_CONVERSATIONS 4
#define BC_MODEL_MAX_KEPT_BYTES (16u << 20)
#define BC_MODEL_MIN_KEPT_BYTES 4096
/* One sent body's memory is kept by its model: those of long conversations, not of pictures. */
#define BC_MODEL_MAX_SPARE_BYTES (1u << 20)
/* Parts of one message's content. */
#define BC_MODEL_MAX_PARTS 4096

/* Channel: the maxima of its format are in channel/frame.h, which the guest shares. */
/* Requests that a guest has not read yet. Input is bounded by credit; this bounds the requests
 * themselves, each up to 4 MiB. */
#define BC_CHANNEL_MAX_QUEUE (64u << 20)
/* With more than that waiting for a guest to read, or for a client of a holder, it is not read
 * from, nor answered: two of the largest requests, or the windows of thirty commands, or a hundred
 * thousand short answers. */
#define BC_CHANNEL_MAX_UNREAD (8u << 20)

/* Sandbox. */
#define BC_SANDBOX_DEFAULT_LEASE_MS (30 * 60 * 1000LL)
#define BC_SANDBOX_MAX_LEASE_MS (7 * 24 * 3600 * 1000LL)
#define BC_SANDBOX_DEFAULT_STORAGE_BYTES (1024ULL << 20)
/* Below it the set-up itself does not fit. */
#define BC_SANDBOX_MIN_STORAGE_BYTES (1ULL << 20)
#define BC_SANDBOX_DEFAULT_CREATE_MS 30000
/* Below it no interpreter starts: half of it is storage. */
#define BC_LIMIT_MIN_MEMORY_BYTES (8ULL << 20)
/* The kernel's memory for a file is about 1 KiB: 16 GiB of names is nobody's wish. */
#define BC_LIMIT_MAX_FILES (16ULL << 20)
/* The kernel takes quotas from 1 ms of 100 ms on; the most is more than machines have. */
#define BC_LIMIT_MIN_CPUS_MILLI 10
#define BC_LIMIT_MAX_CPUS_MILLI (4096u * 1000u)
/* The tree of a command is held in arrays of this size when it is killed. */
#define BC_LIMIT_MAX_PIDS 1024
/* The loader alone needs a few; process 1 itself has the most. */
#define BC_LIMIT_MIN_OPEN_FILES 16
#define BC_LIMIT_MAX_OPEN_FILES 65536
/* Variables of one list: merging compares each with each. */
#define BC_ENV_MAX 4096
#define BC_EXEC_DEFAULT_TIMEOUT_MS 60000
#define BC_EXEC_DEFAULT_GRACE_MS 2000
#define BC_EXEC_DEFAULT_OUTPUT_BYTES (1LL << 20)
/* How much longer than the guest the library waits for the end of a command: a thousand processes
 * that fork take a busy machine seconds to kill, and the end is to be told when they are gone. */
#define BC_EXEC_PATIENCE_MS 12000
/* How much longer than the guest the library waits before it gives up on an exec's end. */
#define BC_EXEC_MARGIN_MS 5000
/* What is kept of a spawned command's output, a stream. */
#define BC_PROCESS_DEFAULT_BACKLOG_BYTES (1u << 20)
#define BC_PROCESS_MAX_BACKLOG_BYTES (256u << 20)
/* Process 1 answers at once; under a storm of forks it is late. */
#define BC_ASK_PATIENCE_MS 12000
/* Without a sink a file read is held in memory. */
#define BC_FILE_MAX_READ_BYTES (64ULL << 20)
#define BC_FILE_MAX_DEPTH 64
/* Files of the host that are known to be as changes were applied to them: as many as a list has,
 * in a table that is half full at most (a power of two). */
#define BC_APPLY_MAX_WRITTEN ((size_t)1 << 18)
/* Changes that are checked or applied in one dispatch; each file that is synced holds up the host's
 * loop all the same. */
#define BC_APPLY_SLICE 32
/* Of 16 KiB, of a file that is compared with the mount's source, in one dispatch. */
#define BC_APPLY_COMPARE_BLOCKS 64
/* The doctor's report: some 30 entries of a few hundred bytes. */
#define BC_DOCTOR_MAX_BYTES (64u << 10)
/* How long the launcher may take to end by itself, a millisecond or two, before it is killed. */
#define BC_LAUNCHER_END_MS 500
#define BC_FILE_IDLE_MS 60000

/* Programs that lead to a guest. What is kept of what one says, the last of it, and of that what an
 * error has room for, besides its context. */
#define BC_COMMAND_WORDS_BYTES 4096
#define BC_COMMAND_MAX_WORDS 300
/* Reads of 4 KiB of it before anything else gets its turn. */
#define BC_COMMAND_WORDS_READS 16
/* How long it may take to end by itself when its input has: less than the runtime's end waits
 * (BC_DESTROY_WAIT_MS). */
#define BC_COMMAND_END_MS 1500
/* How much later than the guest, which may be far, the library ends what is over its lease. */
#define BC_COMMAND_LEASE_MARGIN_MS 2000

/* Detached sandboxes. Connections to a holder at a time: each costs it a reader's memory. */
#define BC_HOLD_MAX_CLIENTS 64
/* Further ones, which may ask and end it, but start nothing. */
#define BC_HOLD_SPARE_CLIENTS 8
/* Who connects speaks at once. */
#define BC_HOLD_HELLO_MS 5000
/* What commands printed, the last of it: a few screens for a person, little beside a sandbox. */
#define BC_HOLD_LOG_BYTES (1u << 20)
/* A holder that has no descriptor left for who connects looks again after this time. */
#define BC_HOLD_BREATH_MS 200
/* How long a client may take to read the last it is told. */
#define BC_HOLD_GOODBYE_MS 2000
/* How long whoever ends a sandbox waits for its holder to say that nothing runs any more. */
#define BC_HOLD_END_MS 10000
/* What a new holder says of itself: an id, or an error in JSON. */
#define BC_HOLD_MAX_ANSWER_BYTES 8192

/* Egress. Entries of one list: a connection is held against each. */
#define BC_POLICY_MAX_ENTRIES 1024
/* A listener inside the sandbox for each. */
#define BC_POLICY_MAX_PORTS 64
/* Configuration of package managers. The largest file is npm's own definitions, 90 KB; a machine
 * has a handful of registries, of sources and of names on $PATH. */
#define BC_REGISTRIES_MAX_FILE_BYTES (1u << 20)
#define BC_REGISTRIES_MAX_FILES 256
#define BC_REGISTRIES_MAX_LINES 64
#define BC_REGISTRIES_MAX_VALUE 4096
#define BC_REGISTRIES_MAX 128
#define BC_REGISTRIES_MAX_NOTES 32
/* Connections of one sandbox at a time, when its profile does not say. Each may hold two buffers of
 * BC_FLOW_BYTES while both sides are slow: 32 MiB in all. */
#define BC_EGRESS_DEFAULT_CONNECTIONS 256
#define BC_EGRESS_MAX_CONNECTIONS 4096
/* Of one address; with a few of them, still before a program gives up. */
#define BC_EGRESS_CONNECT_MS 10000
/* How long a refused program has to say what it speaks, and then to read why. */
#define BC_EGRESS_LINGER_MS 2000
/* How long the rest of a request waits for the end of the answer that has begun before it: nearly
 * all such answers are refusals, which end at once. */
#define BC_EGRESS_BODY_WAITS_MS 2000
/* How long a server's answer may pause for a program that says no more: most likely it has gone. */
#define BC_EGRESS_LEFT_MS 30000
/* The same where its further words wait to be read, which hides its end. */
#define BC_EGRESS_STALLED_MS 300000
/* Hosts and ports that a person is asked about, for each sandbox. */
#define BC_EGRESS_MAX_QUESTIONS 256
/* Hosts that a profile gives addresses of, like lines of /etc/hosts. */
#define BC_EGRESS_MAX_KNOWN 256
/* Events that wait for the next dispatch; more are counted by the ledger only. */
#define BC_EGRESS_MAX_EVENTS 1024
/* What has to wait, for a share of its rate or for descriptors, waits so long: little traffic is
 * smooth, and much of it costs few wake-ups. */
#define BC_EGRESS_ROUND_MS 100
/* Of what may be moved now, for each connection that asks: or else the first would have all of it
 * each time. Below this much the calls cost more than the bytes. */
#define BC_EGRESS_LEAST_SHARE 64u
/* What is read of an intercepted connection in one go, however many there are. A record may be as
 * small as a byte and costs microseconds whatever it holds, so it is a share for them, too. */
#define BC_INTERCEPT_LEAST_SHARE 2048u
/* Connections accepted before anything else gets its turn. */
#define BC_EGRESS_MAX_ACCEPTS 64
/* Connections that wait for a person's answer; they take no other's place. */
#define BC_EGRESS_MAX_ASKING 256
/* The certificates that a machine trusts: 220 KiB on Debian; administrators add to them. */
#define BC_SECRET_MAX_BUNDLE (4u << 20)
/* Queries answered before anything else gets its turn. */
#define BC_EGRESS_MAX_QUERIES 64
/* Connections of a sandbox at a time that have a pipe for what is sent in bulk: two descriptors
 * each. */
#define BC_EGRESS_MAX_PIPES 32

/* Templates. Whoever has their directory locked makes a few calls with it. */
#define BC_TEMPLATE_LOCK_MS 2000
/* A list of commands, for people. */
#define BC_TEMPLATE_MAX_NOTE_BYTES 4000
/* A note and a path, each byte escaped, and some numbers. */
#define BC_TEMPLATE_MAX_MANIFEST ((size_t)64 << 10)
/* Each is looked at by every list; a person has a few dozen. */
#define BC_TEMPLATE_MAX_NAMES 10000
/* The largest file of ext4. */
#define BC_TEMPLATE_MAX_FILE_BYTES (16ULL << 40)

/* Times and bytes that a guest says it has used: a few of them may be added. */
#define BC_USAGE_MAX ((uint64_t)INT64_MAX / 8)

#endif
