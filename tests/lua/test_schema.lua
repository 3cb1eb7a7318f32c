local lu = require "luaunit"
local schema = require "barchan.schema"
local json = require("barchan").json

local T = {}

local function problems(value, rule)
  local ok, text = schema.check(json.decode(value), rule)
  return ok and "" or text
end

function T:test_required_and_types_name_their_place()
  local rule = {
    type = "object",
    properties = {
      path = { type = "string" }, n = { type = "integer" },
      list = { type = "array", items = { type = "object", required = { "x" } } },
    },
    required = { "path" },
  }
  lu.assertEquals(problems('{"path":"a","n":3,"list":[{"x":1}]}', rule), "")
  lu.assertEquals(problems("{}", rule), "path: is missing")
  lu.assertEquals(problems('{"path":7}', rule), "path: string expected, got integer")
  lu.assertEquals(problems('{"path":null}', rule), "path: string expected, got null")
  lu.assertEquals(problems('{"path":"a","n":1.5}', rule), "n: integer expected, got number")
  lu.assertEquals(problems('{"path":"a","n":2.0}', rule), "")
  lu.assertEquals(problems('{"path":"a","list":[{"x":1},{}]}', rule), "list[1].x: is missing")
  lu.assertEquals(problems("[1]", rule), "arguments: object expected, got array")
end

function T:test_unknown_fields()
  local rule = { type = "object", properties = { a = {} }, additionalProperties = false }
  lu.assertEquals(problems('{"a":1,"b":2}', rule), "b: is not a known field")
  lu.assertEquals(problems('{"b":2}', { type = "object" }), "")
  rule.additionalProperties = { type = "string" }
  lu.assertEquals(problems('{"b":2}', rule), "b: string expected, got integer")
end

function T:test_values_and_bounds()
  lu.assertStrContains(problems('"c"', { enum = { "a", "b" } }), 'one of ["a","b"] expected')
  lu.assertEquals(problems('"a"', { enum = { "a", "b" } }), "")
  lu.assertEquals(problems("[1,2]", { const = { 1, 2 } }), "")
  lu.assertStrContains(problems("[1]", { const = { 1, 2 } }), "expected")
  lu.assertStrContains(problems("0", { exclusiveMinimum = 0 }), "more than 0")
  lu.assertStrContains(problems("11", { maximum = 10 }), "at most 10")
  lu.assertStrContains(problems('""', { minLength = 1 }), "at least 1 characters")
  lu.assertEquals(problems('"éé"', { maxLength = 2 }), "")
  lu.assertStrContains(problems("[1,2,3]", { type = "array", maxItems = 2 }), "at most 2")
  lu.assertStrContains(problems("[]", { type = "array", minItems = 1 }), "at least 1")
end

function T:test_combinations_and_references()
  local rule = { anyOf = { { type = "string" }, { type = "null" } } }
  lu.assertEquals(problems("null", rule), "")
  lu.assertStrContains(problems("1", rule), "none of the forms")
  lu.assertStrContains(problems("1", { oneOf = { { type = "number" }, { type = "integer" } } }), "more than one")
  local tree = {
    ["$defs"] = { node = {
      type = "object", required = { "v" },
      properties = { child = { ["$ref"] = "#/$defs/node" } },
    } },
    ["$ref"] = "#/$defs/node",
  }
  lu.assertEquals(problems('{"v":1,"child":{"v":2}}', tree), "")
  lu.assertEquals(problems('{"v":1,"child":{}}', tree), "child.v: is missing")
end

function T:test_references_of_every_form()
  local rule = {
    type = "object", properties = { x = { ["$ref"] = "#/$defs/a" }, y = { ["$ref"] = "#/definitions/c" }, z = false },
    ["$defs"] = { a = { ["$ref"] = "#/$defs/b" }, b = { type = "string" } }, definitions = { c = { type = "integer" } },
  }
  lu.assertTrue((schema.is_parameters(rule)))
  lu.assertEquals(problems('{"x":"s","y":1}', rule), "")
  lu.assertEquals(problems('{"x":1}', rule), "x: string expected, got integer")
  lu.assertEquals(problems('{"y":"s"}', rule), "y: integer expected, got string")
  lu.assertEquals(problems('{"z":1}', rule), "z: nothing is allowed here")
  rule.properties.x = { ["$ref"] = "#/$defs/nowhere" }
  local ok, problem = schema.is_parameters(rule)
  lu.assertFalse(ok)
  lu.assertStrContains(problem, "'#/$defs/nowhere' is not in this schema")
  local itself = { ["$ref"] = "#/$defs/a" }
  local loop = { type = "object", ["$defs"] = { a = itself }, properties = { x = itself } }
  lu.assertEquals(problems('{"x":1}', loop), "")
end

function T:test_endless_references_end()
  local loop = { ["$defs"] = { a = { allOf = { { ["$ref"] = "#/$defs/a" } } } }, ["$ref"] = "#/$defs/a" }
  lu.assertStrContains(problems("1", loop), "nests too deep")
end

function T:test_branches_of_branches_end()
  local node = { type = "object", properties = {} }
  local rule = { ["$defs"] = { n = node }, ["$ref"] = "#/$defs/n" }
  node.anyOf = {
    { properties = { c = { ["$ref"] = "#/$defs/n" } } }, { properties = { c = { ["$ref"] = "#/$defs/n" } } },
  }
  local value = ('{"c":'):rep(40) .. "1" .. ("}"):rep(40)
  lu.assertStrContains(problems(value, rule), "too complex")
end

function T:test_schemas_are_checked_when_a_tool_is_defined()
  local null = json.null
  for _, bad in ipairs {
    { properties = null }, { properties = { a = 7 } }, { required = null }, { required = { 1 } },
    { properties = { a = { properties = null } } }, { properties = { a = { minimum = "5" } } },
    { properties = { a = { anyOf = {} } } }, { properties = { a = { enum = 3 } } },
    { properties = { a = { type = { {} } } } }, { additionalProperties = 3 }, { required = "a" },
    { properties = { a = { type = "strng" } } }, { properties = { a = { "string" } } },
    { properties = { a = { type = null } } }, { ["$defs"] = { x = 5 } }, { properties = { a = { minItems = null } } },
  } do
    bad.type = "object"
    local ok, problem = schema.is_parameters(bad)
    lu.assertFalse(ok, json.encode(bad))
    lu.assertStrContains(problem, "schema")
  end
  lu.assertTrue((schema.is_parameters {
    type = "object", properties = { a = true, b = { type = { "string", "null" }, exclusiveMinimum = true } },
  }))
end

function T:test_the_number_of_problems_is_bounded()
  local rule = { type = "array", items = { type = "string" } }
  local text = problems("[" .. ("1,"):rep(999) .. "1]", rule)
  local _, lines = text:gsub("\n", "")
  lu.assertEquals(lines, 7)
end

function T:test_parameters()
  lu.assertTrue((schema.is_parameters { type = "object" }))
  lu.assertFalse((schema.is_parameters { type = "string" }))
  lu.assertFalse((schema.is_parameters "x"))
  local ok, problem = schema.is_parameters { type = "object", properties = { f = print } }
  lu.assertFalse(ok)
  lu.assertStrContains(problem, ".properties.f")
end

return { TestSchema = T }
