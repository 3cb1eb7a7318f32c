-- Runs the luaunit suites of this folder under the engine:  barchan run tests/lua/run.lua [FILE…]
-- Prints luaunit's own report; returns the number of failures.

local here = arg[0]:match("^(.*)/") or "."
package.path = here .. "/?.lua;" .. package.path .. ";/usr/share/lua/5.4/?.lua"

local luaunit = require "luaunit"

local files = { ... }
local whole = #files == 0
if whole then
  files = {
    "test_options", "test_misuse", "test_json", "test_task", "test_schema", "test_tool", "test_toolset",
    "test_library", "test_model", "test_headers", "test_written_models",
    "test_openai_bodies", "test_switching",
    "test_agent", "test_sandbox", "test_mounts", "test_network", "test_secrets", "test_files", "test_reload", "test_policy",
    "test_script", "test_handles", "test_meta", "test_detached", "test_templates",
    "test_primitives", "test_stated", "test_sweep",
  }
end

for _, name in ipairs(files) do
  for suite, tests in pairs(require(name)) do _G[suite] = tests end
end

-- The whole of the suites must have used the whole of what is exported.
local coverage = require "coverage"
if whole then coverage.start() end
local runner = luaunit.LuaUnit.new()
runner:setOutputType "text"
local failures = runner:runSuite "--verbose"
return whole and failures + coverage.report() or failures
