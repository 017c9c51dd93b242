-- group: part of the scripts whose items may be of a group, of which all are done or none.

-- Judges item i and the others of its group, which stand behind it. Returns them by their numbers. judge() gives code and
-- value of an item that is not to be done; the code is `done` if that has been done before.
local function judge_group(i, item_of, judge, done, all_needed)
    local first, items, size, may_do = item_of(i), {}, 0, true
    local x = first
    repeat
        items[i + size], size = x, size + 1
        x.code, x.value = judge(x)
        may_do = may_do and (x.code or done) == done
        x = first.group ~= '-' and i + size <= n and item_of(i + size)
    until not x or x.group ~= first.group
    if not may_do or first.group ~= '-' and size ~= tonumber(first.group:match('/(%d+)$')) then
        for _, its in pairs(items) do
            its.code, its.value = its.code or all_needed, its.value or 0
        end
    end
    return items
end
