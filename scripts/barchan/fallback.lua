-- A model that asks another one when the first cannot answer. It is made of nothing but a model written
-- in Lua (barchan.model { provider = { complete = … } }), which is the way to write others.

local misuse = require "barchan.misuse"
local model = require "barchan.model"

-- Asking elsewhere helps: the model or its service failed, not the request.
local function is_worth(err)
  local hopeless = { invalid_argument = true, cancelled = true, invalid_request = true, closed = true }
  return type(err) ~= "table" or not hopeless[err.code]
end

--- A model that asks the models of the list in turn until one answers.
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
        local shown, err
        local given = {}
        for key, value in pairs(request) do given[key] = value end
        function given.on_event(kind, data)
          shown = kind ~= "restart"
          emit(kind, data)
        end
        for _, m in ipairs(models) do
          if shown then emit("restart", "") end
          shown = false
          local reply
          reply, err = m:complete(given)
          if reply then return reply end
          if not is_worth(err) then break end
        end
        return nil, err
      end,
    },
  }
end
