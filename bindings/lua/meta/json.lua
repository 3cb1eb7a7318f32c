---@meta

--- JSON as it crosses between Lua and C: integers stay integers, empty arrays stay arrays, null is a value.

---@class barchan.json
---@field null lightuserdata the null of JSON; cjson's too
local json = {}

--- JSON text of a value; throws, naming the place of what JSON cannot say.
---@param value any
---@return string
function json.encode(value) end

--- The value of JSON text.
---@param text string
---@return any
---@return barchan.Error? err code "protocol", or "limit" where it nests too deep
function json.decode(text) end

--- Marks a table as an array, also when it is empty.
---@param t? table
---@return table
function json.array(t) end

--- Whether a table was marked, or decoded from an array.
---@param t any
---@return boolean
function json.is_array(t) end
