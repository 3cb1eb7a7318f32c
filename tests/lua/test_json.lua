local lu = require "luaunit"
local barchan = require "barchan"
local cjson = require "cjson"

local json = barchan.json
local T = {}

function T:test_integers_stay_integers()
  for _, text in ipairs { "0", "-1", "9223372036854775807", "-9223372036854775808", "12345678901234567" } do
    local value = json.decode(text)
    lu.assertEquals(math.type(value), "integer")
    lu.assertEquals(json.encode(value), text)
  end
  lu.assertEquals(math.type(json.decode "1.0"), "float")
  lu.assertEquals(json.encode(1.0), "1.0")
  lu.assertEquals(math.type(json.decode "18446744073709551616"), "float")
end

function T:test_reals_come_back_the_same()
  for _, value in ipairs { 0.1, 1 / 3, 1e300, -2.5e-310, 123456789.125, 2 ^ 53 + 0.0 } do
    lu.assertEquals(json.decode(json.encode(value)), value)
  end
end

function T:test_empty_arrays_stay_arrays()
  lu.assertEquals(json.encode(json.decode '{"a":[],"b":{}}'), '{"a":[],"b":{}}')
  lu.assertEquals(json.encode(json.array()), "[]")
  lu.assertEquals(json.encode {}, "{}")
  local list = json.decode "[1]"
  table.remove(list)
  lu.assertEquals(json.encode(list), "[]")
end

function T:test_null_is_cjsons_null()
  lu.assertTrue(json.null == cjson.null)
  lu.assertTrue(json.decode "[null]"[1] == json.null)
  lu.assertEquals(json.encode { json.null, 1 }, "[null,1]")
end

function T:test_keys_are_sorted_so_equal_values_give_equal_bytes()
  lu.assertEquals(json.encode { b = 1, a = 2, ab = 3, A = 4 }, '{"A":4,"a":2,"ab":3,"b":1}')
end

function T:test_strings()
  lu.assertEquals(json.decode [["\u00e9\n\ud83d\ude00\/"]], "é\n😀/")
  lu.assertEquals(json.decode [["\ud800x"]], "\u{FFFD}x")
  lu.assertEquals(json.decode '"a\\u0000b"', "a\0b")
  lu.assertEquals(json.encode "a\0\"\\\n\127", [["a\u0000\"\\\n\u007f"]])
  lu.assertEquals(json.encode "\xff\xe2\x82", '"\u{FFFD}\u{FFFD}\u{FFFD}"')
  lu.assertEquals(json.encode "\u{2028}", [["\u2028"]])
end

function T:test_what_is_not_json_is_refused_with_the_place()
  local bad = {
    "", " ", "{", "[1,]", "{\"a\":1,}", "{a:1}", "01", "1.", ".5", "+1", "NaN", "tru", "1 2", "[1}", "\"\n\"",
    "\"\\x\"", "\"\\u12\"", "{\"a\" 1}", "'a'", "[1 2]", "\"", "{\"a\":}", "-", "1e", "[", "1e\0005",
  }
  for _, text in ipairs(bad) do
    local value, problem = json.decode(text)
    lu.assertNil(value, text)
    lu.assertStrContains(problem.message, "byte", false, text)
    lu.assertEquals(problem.code, "protocol")
  end
end

function T:test_depth_is_bounded()
  lu.assertNotNil(json.decode(("["):rep(100) .. ("]"):rep(100)))
  local _, problem = json.decode(("["):rep(100000))
  lu.assertStrContains(problem.message, "nests deeper")
  lu.assertEquals(problem.code, "limit")
  local t = {}
  t.self = t
  lu.assertErrorMsgContains("nests too deep", json.encode, t)
end

function T:test_what_json_cannot_say_names_its_place()
  lu.assertErrorMsgContains("a function as JSON at .tools[2].run", json.encode,
    { tools = { {}, { run = print } } })
  lu.assertErrorMsgContains("NaN as JSON at .a.b", json.encode, { a = { b = 0 / 0 } })
  local _, message = pcall(json.encode, { [true] = 1 })
  lu.assertStrMatches(message, ".*as JSON")
  lu.assertErrorMsgContains("NaN", json.encode, 0 / 0)
  lu.assertErrorMsgContains("infinity", json.encode, { 1 / 0 })
  lu.assertErrorMsgContains("both items and named fields", json.encode, { 1, a = 2 })
  lu.assertErrorMsgContains("keys that are not strings", json.encode, { [true] = 1 })
  lu.assertErrorMsgContains("a userdata", json.encode, io.stdout)
end

function T:test_metamethods_do_not_run()
  local t = setmetatable({ a = 1 }, {
    __index = function() error "ran" end,
    __pairs = function() error "ran" end,
    __len = function() error "ran" end,
  })
  lu.assertEquals(json.encode(t), '{"a":1}')
end

-- lua-cjson is the independent oracle: both must read the other's text the same way.
function T:test_agrees_with_cjson()
  local random = 7
  local function next_random(n)
    random = (random * 1103515245 + 12345) % 2147483648
    return random // 7 % n
  end
  local function value(depth)
    local kind = next_random(depth > 4 and 4 or 6)
    if kind == 0 then return next_random(2) == 0 end
    if kind == 1 then return next_random(1000000) - 500000 end
    if kind == 2 then return (next_random(2000) - 1000) / 8 end
    if kind == 3 then return ("é\"\\\n/😀x"):sub(1, 1 + next_random(3)):gsub("[\x80-\xff]", "") .. "y" end
    local t = {}
    for i = 1, 1 + next_random(4) do
      if kind == 4 then t[i] = value(depth + 1) else t["k" .. next_random(50)] = value(depth + 1) end
    end
    return t
  end
  for _ = 1, 300 do
    local v = value(0)
    lu.assertEquals(cjson.decode(json.encode(v)), v)
    lu.assertEquals(json.decode(cjson.encode(v)), v)
  end
end

function T:test_the_shim_has_cjsons_calls()
  local shim = require "barchan.cjson"
  lu.assertEquals(shim.encode(shim.decode '{"a":[1,2.5,null]}'), '{"a":[1,2.5,null]}')
  lu.assertErrorMsgContains("invalid JSON", shim.decode, "{")
  lu.assertTrue(shim.null == cjson.null)
end

return { TestJson = T }
