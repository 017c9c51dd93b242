-- older: part of the scripts that take a lock for an owner. A broker numbers its operations: "<broker>.<number in base
-- 36>". So of two that are both its own it is known which one came first, and a late copy of the first is no longer
-- wanted.

-- What this operation is to the one that holds: "older" or "newer", both of the same broker; nil: of another one.
local function age(op, held)
    local broker, number = op:match('^(.*)%.(.*)$')
    local holder, its = held:match('^(.*)%.(.*)$')
    if broker ~= nil and broker == holder then
        return (#number < #its or #number == #its and number < its) and 'older' or 'newer'
    end
end
