std = "lua54"
max_line_length = 110
self = false -- methods need not use it
files["tests/lua/"] = { max_line_length = 130 }
