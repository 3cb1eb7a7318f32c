/* What a safe engine's scripts can reach, and what they cannot. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "engine_support.h"

START_TEST(the_safe_library_has_no_way_out)
{
    load(
        "local function has(name) local v = _G; for k in name:gmatch('[^.]+') do v = v and v[k] end"
        " return v ~= nil end\n"
        "return { leaks = function() local out = {}\n"
        "  for _, n in ipairs { 'io', 'debug', 'package', 'loadfile', 'dofile', 'os.execute',"
        "    'os.exit', 'os.getenv', 'os.remove', 'os.rename', 'os.tmpname', 'os.setlocale',"
        "    'string.dump', 'warn' } do if has(n) then out[#out + 1] = n end end\n"
        "  for _, n in ipairs { 'io', 'debug', 'package' } do\n"
        "    if pcall(require, n) then out[#out + 1] = 'require ' .. n end end\n"
        "  if load('\\27Lua', 'x', 'b') then out[#out + 1] = 'bytecode' end\n"
        "  if pcall(setmetatable, {}, { __gc = print }) then out[#out + 1] = '__gc' end\n"
        "  if getmetatable('') ~= 'locked' then out[#out + 1] = 'strings' end\n"
        "  if pcall(collectgarbage, 'stop') then out[#out + 1] = 'gc stop' end\n"
        "  return table.concat(out, ' ') end,\n"
        "  works = function() return os.time() > 0 and load('return 1')() == 1\n"
        "    and require 'cjson'.encode { 1 } == '[1]' and utf8.char(233) == 'é'\n"
        "    and setmetatable({}, { __index = { a = 1 } }).a == 1 end }");
    expect("leaks", NULL, "\"\"");
    expect("works", NULL, "true");
}
END_TEST

/* The safe library's own pattern matcher against Lua's: random patterns over random subjects must
 * give the same results, or fail both. */
START_TEST(patterns_match_as_in_lua)
{
    static const char script[] =
        "local seed = 1\n"
        "local function random(n) seed = (seed * 1103515245 + 12345) % 2147483648 return seed // "
        "65536 % n + 1 end\n"
        "local pieces = { 'a', 'b', '.', '%a', '%d', '%S', '%w', '[ab]', '[^a]', '[%d-]', '[a-c]', "
        "'[]x]', '(', ')',"
        " '()', '*', '+', '-', '?', '^', '$', '%1', '%2', '%bab', '%f[%a]', '%f[%A]', '%.', ' ', "
        "'1', '%', '[', '%b' }\n"
        "local letters = { 'a', 'b', 'c', '1', ' ', '-', 'x', '.', 'ab', 'A', '\\0', '\\200' }\n"
        "local function text(from, most) local t = {} for i = 1, random(most) - 1 do t[i] = "
        "from[random(#from)] end"
        " return table.concat(t) end\n"
        "local function show(ok, ...) if not ok then return 'error' end local t = table.pack(...)"
        " for i = 1, t.n do t[i] = tostring(t[i]) end return table.concat(t, '|') end\n"
        "return { run = function(start) seed = start local out, sum = {}, 5381\n"
        "  for _ = 1, 4000 do\n"
        "    local s, p = text(letters, 14), text(pieces, 6)\n"
        "    local init, repl = random(20) - 10, text({ '<', '%0', '%1', '%%', '>', '%' }, 4)\n"
        "    local all = {}\n"
        "    local lines = { show(pcall(string.find, s, p, init)), show(pcall(string.match, s, p, "
        "init)),"
        " show(pcall(string.gsub, s, p, repl, random(4))), show(pcall(string.gsub, s, p, { a = "
        "'T', ['1'] = false })),"
        " show(pcall(string.gsub, s, p, function(a, b) return b or a ~= 'b' and 'F' or nil end)),"
        " show(pcall(string.find, s, p, init, true)),"
        " show(pcall(function() for a, b in string.gmatch(s, p) do all[#all + 1] = tostring(a) .. "
        "tostring(b) end"
        " return table.concat(all, ',') end)) }\n"
        "    local line = table.concat(lines, ';')\n"
        "    for i = 1, #line do sum = (sum * 33 + line:byte(i)) & 0xffffffff end\n"
        "    out[#out + 1] = sum\n"
        "  end return out end }";
    char *ours, *theirs;
    for (int seed = 1; seed <= 5; seed++) {
        char args[16];
        snprintf(args, sizeof args, "%d", seed * 7919);
        load(script);
        ours = call("run", args);
        barchan_engine_destroy(engine);
        open_engine(BARCHAN_LIBRARY_FULL, 0);
        load(script);
        theirs = call("run", args);
        size_t same = strspn(ours, ""); /* where they part, for the message */
        while (ours[same] != '\0' && ours[same] == theirs[same])
            same++;
        ck_assert_msg(strcmp(ours, theirs) == 0, "seed %s: they part after %zu bytes", args, same);
        barchan_free(ours);
        barchan_free(theirs);
        barchan_engine_destroy(engine);
        open_engine(BARCHAN_LIBRARY_SAFE, 0);
    }
}
END_TEST

START_TEST(safe_scripts_get_no_keys_files_or_commands)
{
    setenv("OPENAI_API_KEY", "sk-very-secret-key", 1);
    load("local b = require 'barchan' local out = {}\n"
         "local function find(t, seen) for k, v in pairs(t) do if type(v) == 'string' and v:find "
         "'sk%-very'"
         " then out[#out + 1] = tostring(k) end if type(v) == 'table' and not seen[v] then seen[v] "
         "= true"
         " find(v, seen) end end end\n"
         "return { f = function()\n"
         "  if pcall(require, 'barchan.cli.ask') then out[#out + 1] = 'commands' end\n"
         "  local m = require 'barchan.model' local old = m.create\n"
         "  find(m, {}) find(b, {})\n"
         "  if pcall(b.sandbox, { template = '/' }) then out[#out + 1] = 'template' end\n"
         "  for _, mode in ipairs { 'ro', 'rw', 'cow' } do\n"
         "    local mounts = { { source = '/usr', target = '/mnt/x', mode = mode } }\n"
         "    if pcall(b.sandbox, { mounts = mounts }) then out[#out + 1] = mode end end\n"
         "  local secrets = { { name = 'A', from = 'env:PATH', hosts = { 'a.example' } } }\n"
         "  if pcall(b.sandbox, { network = { allow = { 'a.example' } }, secrets = secrets }) then "
         "out[#out + 1] = 'secrets' end\n"
         "  local sbx <close> = assert(b.sandbox())\n"
         "  local set, no = pcall(sbx.set_secret, sbx, 'A', ('x'):rep(20))\n"
         "  if set or not no:find 'safe library' then out[#out + 1] = 'set_secret' end\n"
         "  if not sbx:changes() then out[#out + 1] = 'no changes' end\n"
         "  local ok, why = pcall(sbx.apply_changes, sbx, '/tmp')\n"
         "  if ok or not why:find 'safe library' then out[#out + 1] = 'apply' end\n"
         "  if pcall(b.model, { replay = '/etc/passwd' }) then out[#out + 1] = 'replay' end\n"
         "  if b.recorded '/etc/passwd' then out[#out + 1] = 'recorded' end\n"
         "  local recorder = { provider = 'openai', name = 'm', api_key = 'k', record = "
         "'/tmp/barchan-x' }\n"
         "  if pcall(b.model, recorder) then out[#out + 1] = 'record' end\n"
         "  if pcall(b.toolset, { dir = '/etc' }) then out[#out + 1] = 'dir' end\n"
         "  return table.concat(out, ' ') end }");
    expect("f", NULL, "\"\"");
    unsetenv("OPENAI_API_KEY");
}
END_TEST

/* A script may put what it likes into its globals before the library is loaded. */
START_TEST(globals_of_a_safe_script_open_nothing)
{
    char path[] = "/tmp/barchan-safe-XXXXXX", text[1024];
    ck_assert_ptr_nonnull(mkdtemp(path));
    setenv("STRIPE_API_KEY", "sk-of-another-service", 1);
    setenv("EVIL_BASE_URL", "http://127.0.0.1:9", 1);
    setenv("OPENAI_BASE_URL", "http://127.0.0.1:8", 1);
    snprintf(text, sizeof text,
             "local all = ipairs\n"
             "ipairs = function(t) for _, v in all(t) do if type(v) == 'table' and v.key then"
             " v.key, v.base_url = 'STRIPE_API_KEY', 'EVIL_BASE_URL' end end return all(t) end\n"
             "io = { open = function() error 'used' end, type = type }\n"
             "local b = require 'barchan'\n"
             "return { file = function() local t, err = b.transcript.open('%s/PWNED')"
             " return { t == nil, err.code } end,\n"
             "  key = function() local m = b.model { provider = 'openai', name = 'x', max_retries "
             "= 0 }\n"
             "    local _, err = m:complete 'hi' return tostring(err) end }",
             path);
    load(text);
    expect("file", NULL, "[true,\"permission\"]");
    char *answer = NULL;
    ck_assert_int_eq(barchan_engine_call(engine, "key", "null", NULL, &answer, &err), 0);
    ck_assert_msg(strstr(answer, "127.0.0.1") != NULL && strstr(answer, ":9") == NULL, "%s",
                  answer);
    barchan_free(answer);
    unsetenv("STRIPE_API_KEY");
    unsetenv("EVIL_BASE_URL");
    unsetenv("OPENAI_BASE_URL");
    ck_assert_int_eq(rmdir(path), 0); /* nothing was made in it */
}
END_TEST

SUITE_MAIN("engine_safe", engine_setup, engine_teardown, the_safe_library_has_no_way_out,
           patterns_match_as_in_lua, safe_scripts_get_no_keys_files_or_commands,
           globals_of_a_safe_script_open_nothing)
