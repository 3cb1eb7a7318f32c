std = "lua54"
max_line_length = 110
files["scripts/tools/"] = { std = "lua54" }
files["tests/lua/"] = { globals = { "luaunit" } }
