-- A model that asks another one when the first cannot answer. It is made of nothing but a model written
-- in Lua (barchan.model { provider = { complete = … } }), which is the way to write others.

local misuse = require "barchan.misuse"
local model = require "barchan.model"
local tool = require "barchan.tool"

-- Asking elsewhere helps: the model or its service failed, not the request.
local function is_worth(err)
  local hopeless = { invalid_argument = true, cancelled = true, invalid_request = true, closed = true }
  return type(err) ~= "table" or not hopeless[err.code]
end

local shows = { text = true, reasoning = true, tool_call = true }

-- What an event and an error call a model.
local function label(m)
  local provider, name = m.provider, m.name
  if type(provider) ~= "string" then provider = "model" end
  return type(name) == "string" and provider .. ":" .. name or provider
end

-- The last error, when several models have failed with what each of them said.
local function failure(failed, unasked)
  local last = failed[#failed].err
  if #failed == 1 or tool.is_cancelled(last) then return last end
  local err, parts = { code = "script", retryable = false }, {}
  for key, value in pairs(type(last) == "table" and last or {}) do err[key] = value end
  for i, one in ipairs(failed) do
    parts[i] = ("%s: %s"):format(one.name, tool.message(one.err))
    if type(one.err) == "table" and one.err.retryable then err.retryable = true end
  end
  local what = unasked and "the models that were asked failed: " or "no model could answer: "
  err.message = what .. table.concat(parts, "; ")
  return err
end

--- A model that asks the models of the list in turn until one answers. Going on to the next one is the event
--- "fallback"; when none answers, or one says that the request is wrong, the error says how each that was
--- asked failed.
---@param models barchan.Model[]
---@return barchan.Model
return function(models)
  if type(models) ~= "table" or #models == 0 then misuse.throw("fallback: a list of models expected") end
  for i, m in ipairs(models) do
    if type(m) ~= "table" or type(m.complete) ~= "function" then
      misuse.throw(("fallback: model %d: a model expected (barchan.model)"):format(i))
    end
  end
  local names = {}
  for i, m in ipairs(models) do names[i] = tostring(m.name or m.provider or "model") end
  return model.create {
    name = table.concat(names, "|"),
    provider = {
      complete = function(request, emit)
        local shown, failed = false, {}
        local given = {}
        for key, value in pairs(request) do given[key] = value end
        function given.on_event(kind, data)
          if shows[kind] or kind == "restart" then shown = kind ~= "restart" end
          emit(kind, data)
        end
        for i, m in ipairs(models) do
          if shown then emit("restart", "") end
          shown = false
          local reply, err = m:complete(given)
          if reply then return reply end
          failed[i] = { name = label(m), err = err }
          if not is_worth(err) then break end
          if models[i + 1] then
            local given_err = type(err) == "table" and err or {}
            emit("fallback", {
              from = label(m), to = label(models[i + 1]),
              error = type(given_err.message) == "string" and given_err.message or tool.message(err),
              code = type(given_err.code) == "string" and given_err.code or nil,
            })
          end
        end
        return nil, failure(failed, #failed < #models)
      end,
    },
  }
end
