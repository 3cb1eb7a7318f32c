/*
 * What a turn of a long conversation costs in processor time, next to a program that only sends and
 * receives the same bytes with libcurl; and what an open stream holds of memory.
 *
 *     bench_model [TURNS]
 */
#include <arpa/inet.h>
#include <curl/curl.h>
#include <jansson.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <barchan/engine.h>
#include <barchan/model.h>

/* The conversation grows by a call and its result each turn, around 200 messages, and begins again.
 */
enum {
    MESSAGES = 200,
    GROWTH = 10,
    PIECES = 150,
    PAUSE_US = 200, /* between pieces that are sent one by one */
    MAX_TURNS = 100000,
    STREAMS = 500,
    MAX_BODY = 1 << 20
};

static barchan_runtime *rt;
static barchan_model *model;
static barchan_engine *engine;
static barchan_error err;
static CURL *curl;
static struct curl_slist *headers;
static json_t *whole; /* the longest request */
static char *requests[GROWTH], base_url[64];
static size_t request_len[GROWTH];

/* The bodies of the first requests, for libcurl to send again; and how the server sends. */
static struct shared {
    int count;
    int by_piece; /* each event by itself, as it comes from a model; else all at once */
    size_t len[GROWTH];
    char body[GROWTH][MAX_BODY];
} * shared;

static int messages_of(int turn)
{
    return MESSAGES - GROWTH + 1 + 2 * turn;
}

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "bench_model: %s: %s\n", what, err.message);
    exit(1);
}

/* ---- the server: a child, so that its time is its own ---- */

static char answer[1 << 16];
static size_t answer_len, event_end[PIECES + 8];
static int event_count;

static void __attribute__((format(printf, 1, 2))) add_event(const char *format, ...)
{
    char event[512];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(event, sizeof event, format, args);
    va_end(args);
    answer_len += (size_t)snprintf(answer + answer_len, sizeof answer - answer_len, "%x\r\n%s\r\n",
                                   (unsigned)len, event);
    event_end[event_count++] = answer_len;
}

static void make_answer(void)
{
    answer_len = (size_t)snprintf(answer, sizeof answer,
                                  "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
                                  "transfer-encoding: chunked\r\n\r\n");
    add_event("data: {\"type\":\"message_start\",\"message\":{\"id\":\"%s\",\"role\":\"assistant\","
              "\"content\":[],\"model\":\"m\",\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}"
              "\n\n",
              "msg_1");
    add_event("data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":"
              "\"text\",\"text\":\"%s\"}}\n\n",
              "");
    for (int i = 0; i < PIECES; i++) {
        add_event("data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":"
                  "\"text_delta\",\"text\":\"%s\"}}\n\n",
                  " a few words of it,");
    }
    add_event("data: {\"type\":\"content_block_stop\",\"index\":0}\n\n%s", "");
    add_event("data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"%s\"},\"usage\":{"
              "\"output_tokens\":600}}\n\n",
              "end_turn");
    add_event("data: {\"type\":\"message_stop\"}\n\n%s", "");
    memcpy(answer + answer_len, "0\r\n\r\n", 5);
    answer_len += 5;
    event_end[event_count - 1] = answer_len;
}

static void send_by_piece(int fd)
{
    const struct timespec pause = {.tv_nsec = PAUSE_US * 1000};
    for (int i = 0, at = 0; i < event_count; at = (int)event_end[i++]) {
        if (i > 0) nanosleep(&pause, NULL);
        send(fd, answer + at, event_end[i] - (size_t)at, MSG_NOSIGNAL);
    }
}

/* One request of a kept connection; 0 at its end. */
static int read_request(int fd, char *bytes)
{
    size_t len = 0, end = 0;
    const char *body = NULL;
    while (body == NULL || len < end) {
        ssize_t n = recv(fd, bytes + len, MAX_BODY - 1 - len, 0);
        if (n <= 0) return 0;
        len += (size_t)n;
        bytes[len] = '\0';
        if (body != NULL || (body = strstr(bytes, "\r\n\r\n")) == NULL) continue;
        const char *length = strcasestr(bytes, "content-length:");
        body += 4;
        end = (size_t)(body - bytes) + strtoul(length + 15, NULL, 10);
    }
    if (shared->count < GROWTH) {
        int at = shared->count;
        shared->len[at] = end - (size_t)(body - bytes);
        memcpy(shared->body[at], body, shared->len[at]);
        __atomic_store_n(&shared->count, at + 1, __ATOMIC_RELEASE);
    }
    return 1;
}

/* One process for each connection; those of the open streams get a half answer and stay. */
static _Noreturn void serve(int listener)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGCHLD, SIG_IGN);
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        if (fd < 0) _exit(1);
        if (fork() != 0) {
            close(fd);
            continue;
        }
        static char bytes[MAX_BODY];
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
        while (read_request(fd, bytes)) {
            int half = strstr(bytes, "stay open") != NULL;
            if (shared->by_piece)
                send_by_piece(fd);
            else
                send(fd, answer, half ? answer_len / 2 : answer_len, MSG_NOSIGNAL);
        }
        _exit(0);
    }
}

static void start_server(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t len = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || bind(listener, (struct sockaddr *)&address, len) < 0 ||
        listen(listener, STREAMS) < 0 ||
        getsockname(listener, (struct sockaddr *)&address, &len) < 0) {
        die("start the server");
    }
    make_answer();
    snprintf(base_url, sizeof base_url, "http://127.0.0.1:%d", ntohs(address.sin_port));
    if (fork() == 0) serve(listener);
    close(listener);
}

/* ---- the conversation: a question, and calls with their results ---- */

static void make_requests(void)
{
    static char result[801];
    memset(result, 'r', sizeof result - 1);
    json_t *messages = json_array();
    json_array_append_new(messages, json_pack("{s:s,s:s}", "role", "user", "content", "Go on."));
    for (int i = 0; i < messages_of(GROWTH) / 2; i++) {
        char id[16];
        snprintf(id, sizeof id, "call_%d", i);
        json_array_append_new(
            messages, json_pack("{s:s,s:s,s:[{s:s,s:s,s:{s:s}}]}", "role", "assistant", "text",
                                "I look at the next file.", "tool_calls", "id", id, "name", "exec",
                                "arguments", "command", "sed -n 1,80p src/main.c"));
        json_array_append_new(messages, json_pack("{s:s,s:s,s:s}", "role", "tool", "tool_call_id",
                                                  id, "content", result));
    }
    whole = json_pack("{s:b,s:o}", "stream", 1, "messages", messages);
    for (int turn = GROWTH - 1; turn >= 0; turn--) {
        while (json_array_size(messages) > (size_t)messages_of(turn))
            json_array_remove(messages, json_array_size(messages) - 1);
        requests[turn] = json_dumps(whole, JSON_COMPACT);
        request_len[turn] = strlen(requests[turn]);
    }
    json_decref(whole);
    whole = json_loads(requests[GROWTH - 1], 0, NULL);
}

/* ---- rows ---- */

static size_t received;

static size_t take(char *data, size_t size, size_t count, void *ud)
{
    (void)data, (void)ud;
    received += size * count;
    return size * count;
}

static void open_curl(void)
{
    char url[96];
    snprintf(url, sizeof url, "%s/v1/messages", base_url);
    headers = curl_slist_append(headers, "content-type: application/json");
    headers = curl_slist_append(headers, "accept: text/event-stream, application/json");
    headers = curl_slist_append(headers, "anthropic-version: 2023-06-01");
    headers = curl_slist_append(headers, "expect:");
    curl = curl_easy_init();
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
}

static void by_curl(int turn)
{
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)shared->len[turn]);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, shared->body[turn]);
    if (curl_easy_perform(curl) != CURLE_OK) die("libcurl");
}

static void on_delta(barchan_delta_kind kind, const char *data, size_t len, void *ud)
{
    (void)kind, (void)data, (void)ud;
    received += len;
}

static void by_c(int turn)
{
    char *reply;
    barchan_complete_options o = {.struct_size = sizeof o, .on_delta = on_delta};
    if (barchan_model_complete(model, requests[turn], request_len[turn], &o, &reply, &err) < 0) {
        die("complete");
    }
    barchan_free(reply);
}

static const char script[] =
    "local barchan = require 'barchan'\n"
    "local model, all\n"
    "local messages = {}\n"
    "return {\n"
    "  open = function(given)\n"
    "    model = assert(barchan.model { provider = 'anthropic', name = 'm', api_key = 'k',\n"
    "      base_url = given.base_url })\n"
    "    all = given.messages\n"
    "  end,\n"
    "  turn = function(given)\n"
    "    local seen = 0\n"
    "    if #messages > given.count then messages = {} end\n"
    "    for i = #messages + 1, given.count do messages[i] = all[i] end\n"
    "    assert(model:complete { messages = messages, on_delta = function(t) seen = seen + #t end "
    "})\n"
    "  end,\n"
    "}\n";

static void open_engine(void)
{
    barchan_engine_options o = {.struct_size = sizeof o, .library = BARCHAN_LIBRARY_FULL};
    json_object_set_new(whole, "base_url", json_string(base_url));
    char *text = json_dumps(whole, JSON_COMPACT);
    if (barchan_engine_create(&engine, rt, &o, &err) < 0 ||
        barchan_engine_load_string(engine, "turns", script, sizeof script - 1, &err) < 0 ||
        barchan_engine_call(engine, "open", text, NULL, NULL, &err) < 0) {
        die("engine");
    }
    free(text);
    json_decref(whole);
}

static void by_lua(int turn)
{
    char given[32];
    snprintf(given, sizeof given, "{\"count\":%d}", messages_of(turn));
    if (barchan_engine_call(engine, "turn", given, NULL, NULL, &err) < 0) die("turn");
}

static const struct {
    const char *name;
    void (*fn)(int turn);
} rows[] = {{"libcurl, the same bytes", by_curl},
            {"barchan_model_complete", by_c},
            {"model:complete in Lua", by_lua}};
enum { ROWS = sizeof rows / sizeof *rows };

static double cpu_us(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(int turns, int by_piece)
{
    shared->by_piece = by_piece;
    double *samples[ROWS];
    for (int row = 0; row < ROWS; row++) {
        samples[row] = calloc((size_t)turns, sizeof(double));
        if (samples[row] == NULL) die("no memory");
    }
    for (int i = 0; i < turns; i++) {
        for (int row = 0; row < ROWS; row++) {
            double began = cpu_us();
            rows[row].fn(i % GROWTH);
            samples[row][i] = cpu_us() - began;
        }
    }
    for (int row = 0; row < ROWS; row++)
        qsort(samples[row], (size_t)turns, sizeof(double), by_size);
    printf(
        "request %zu bytes, answer %zu bytes in %d events, sent %s; processor time, median of %d\n",
        shared->len[GROWTH / 2], answer_len, event_count, by_piece ? "one by one" : "all at once",
        turns);
    for (int row = 0; row < ROWS; row++) {
        printf("%-26s %8.0f us  %6.2f\n", rows[row].name, samples[row][turns / 2],
               samples[row][turns / 2] / samples[0][turns / 2]);
        free(samples[row]);
    }
}

/* ---- open streams ---- */

static size_t resident_bytes(void)
{
    long pages = 0, all;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file == NULL || fscanf(file, "%ld %ld", &all, &pages) != 2) die("/proc/self/statm");
    fclose(file);
    return (size_t)pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void on_end(const char *reply, size_t len, const barchan_error *why, void *ud)
{
    (void)reply, (void)len, (void)why;
    ++*(int *)ud;
}

static void measure_streams(void)
{
    static const char stay[] =
        "{\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":\"stay open\"}]}";
    int ended = 0;
    size_t before = resident_bytes(), wanted;
    barchan_complete_options o = {.struct_size = sizeof o, .on_delta = on_delta};
    received = 0;
    wanted = STREAMS * (PIECES / 2 - 5) * (sizeof " a few words of it," - 1);
    for (int i = 0; i < STREAMS; i++) {
        if (barchan_model_complete_start(NULL, model, stay, sizeof stay - 1, &o, on_end, &ended,
                                         &err) < 0) {
            die("start a stream");
        }
    }
    for (int i = 0; i < 3000 && received < wanted; i++)
        barchan_runtime_pump(rt, 10, NULL);
    if (received < wanted || ended > 0) die("the streams did not stay open");
    printf("%d open streams, half an answer each: %zu KiB per stream\n", STREAMS,
           (resident_bytes() - before) / STREAMS / 1024);
}

int main(int argc, char **argv)
{
    int turns = argc > 1 ? atoi(argv[1]) : 300;
    if (turns < 1 || turns > MAX_TURNS) return fprintf(stderr, "usage: bench_model [TURNS]\n"), 2;
    start_server();
    make_requests();
    curl_global_init(CURL_GLOBAL_DEFAULT);
    barchan_model_options o = {.struct_size = sizeof o,
                               .provider = "anthropic",
                               .name = "m",
                               .api_key = "k",
                               .base_url = base_url};
    if (barchan_runtime_create(&rt, NULL, &err) < 0 ||
        barchan_model_create(&model, rt, &o, &err) < 0) {
        die("create");
    }
    for (int turn = 0; turn < GROWTH; turn++)
        by_c(turn); /* the server keeps its body */
    open_curl();
    open_engine();
    measure(turns, 0);
    measure(turns, 1);
    shared->by_piece = 0;
    measure_streams();
    barchan_engine_destroy(engine);
    barchan_model_destroy(model);
    barchan_runtime_destroy(rt);
    curl_easy_cleanup(curl);
    curl_slist_free_all(headers);
    for (int turn = 0; turn < GROWTH; turn++)
        free(requests[turn]);
}
