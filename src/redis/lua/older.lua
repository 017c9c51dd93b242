-- older: part of the scripts that take a lock for an owner. A broker numbers its operations: "<broker>.<number in base
-- 36>". So of two operations of one broker it is known which came first, and a late copy of the first is not wanted any
-- more.

-- Returns what `op` is to the operation `held`: "older" or "newer" when one broker made both, else nil.
local function age(op, held)
    local broker, number = op:match('^(.*)%.(.*)$')
    local holder, its = held:match('^(.*)%.(.*)$')
    if broker ~= nil and broker == holder then
        return (#number < #its or #number == #its and number < its) and 'older' or 'newer'
    end
end
