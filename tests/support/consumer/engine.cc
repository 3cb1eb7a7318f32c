// Calls a script through the installed engine, from C++.
#include <cstdio>
#include <cstring>
#include <barchan/engine.h>

int main()
{
    barchan_error err;
    barchan_runtime *rt;
    barchan_engine *engine;
    char *result;
    const char *text = "return { answer = function(n) return n * 7 end }";
    if (barchan_runtime_create(&rt, nullptr, &err) < 0 ||
        barchan_engine_create(&engine, rt, nullptr, &err) < 0 ||
        barchan_engine_load_string(engine, "=s", text, std::strlen(text), &err) < 0 ||
        barchan_engine_call(engine, "answer", "6", nullptr, &result, &err) < 0) {
        std::fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    std::printf("%s\n", result);
    barchan_free(result);
    barchan_engine_destroy(engine);
    barchan_runtime_destroy(rt);
    return 0;
}
