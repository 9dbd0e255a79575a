local function rotate_left(numbers)
  local result = {}
  for i = 1, #numbers do
    result[i] = numbers[(i - 1 + @k) % #numbers + 1]
  end
  return result
end

local function cut_into_pieces(numbers)
  local pieces = {}
  for i, number in ipairs(numbers) do
    if (i - 1) % @k == 0 then
      table.insert(pieces, {})
    end
    table.insert(pieces[#pieces], number)
  end
  return pieces
end

local function without_repeats(numbers)
  local seen, result = {}, {}
  for _, number in ipairs(numbers) do
    if not seen[number] then
      seen[number] = true
      table.insert(result, number)
    end
  end
  return result
end

local function longest_rise(numbers)
  local best, length = 0, 0
  for i, number in ipairs(numbers) do
    length = i > 1 and number > numbers[i - 1] and length + 1 or 1
    best = math.max(best, length)
  end
  return best
end

local function is_mirrored(text)
  local lowered = text:lower()
  return lowered == lowered:reverse()
end

local function shift_letters(text)
  local shifted = text:gsub("[a-z]", function(char)
    return string.char((char:byte() - 97 + @k) % 26 + 97)
  end)
  return shifted
end

local function highest_count(text)
  local counts, best = {}, 0
  for char in text:gmatch(".") do
    counts[char] = (counts[char] or 0) + 1
    best = math.max(best, counts[char])
  end
  return best
end

local function compress_runs(text)
  local result = ""
  local i = 1
  while i <= #text do
    local j = i
    while text:sub(j, j) == text:sub(i, i) and j <= #text do
      j = j + 1
    end
    result = result .. text:sub(i, i) .. (j - i)
    i = j
  end
  return result
end

local function look_up(scores, key)
  return scores[key] or @k
end

local function count_words(words)
  local counts = {}
  for _, word in ipairs(words) do
    counts[word] = (counts[word] or 0) + 1
  end
  return counts
end

local function group_by_length(words)
  local groups = {}
  for _, word in ipairs(words) do
    local key = tostring(#word)
    groups[key] = groups[key] or {}
    table.insert(groups[key], word)
  end
  return groups
end

local function ranking(scores)
  local names = {}
  for name in pairs(scores) do
    table.insert(names, name)
  end
  table.sort(names, function(p, q)
    if scores[p] ~= scores[q] then
      return scores[p] > scores[q]
    end
    return p < q
  end)
  return names
end

local function prime(n)
  local d = 2
  while d * d <= n do
    if n % d == 0 then
      return false
    end
    d = d + 1
  end
  return n > 1
end

local function keep_within(n)
  return math.max(@k, math.min(n, @m))
end

local function in_base(n)
  local digits = ""
  repeat
    digits = n % @k .. digits
    n = n // @k
  until n == 0
  return digits
end

local function steps_to_one(n)
  local steps = 0
  while n ~= 1 do
    n = n % 2 == 0 and n // 2 or 3 * n + 1
    steps = steps + 1
  end
  return steps
end

local function leap(year)
  return year % 4 == 0 and (year % 100 ~= 0 or year % 400 == 0)
end

local function days_between(start, end_)
  local function noon(date)
    local year, month, day = date:match("(%d+)-(%d+)-(%d+)")
    return os.time({ year = year, month = month, day = day, hour = 12 })
  end
  return math.floor((noon(end_) - noon(start)) / 86400 + 0.5)
end

local function days_later(date)
  local year, month, day = date:match("(%d+)-(%d+)-(%d+)")
  return os.date("%Y-%m-%d", os.time({ year = year, month = month, day = day + @k, hour = 12 }))
end

local function turned_date(date)
  local year, month, day = date:match("(%d+)-(%d+)-(%d+)")
  return day .. "." .. month .. "." .. year
end

local function quarter_of(date)
  return (tonumber(date:sub(6, 7)) + 2) // 3
end

local function minutes_later(time)
  local hours, minutes = time:match("(%d+):(%d+)")
  local total = (hours * 60 + minutes + @k) % 1440
  return string.format("%02d:%02d", total // 60, total % 60)
end

local function in_month(dates, month)
  local result = {}
  for _, date in ipairs(dates) do
    if tonumber(date:sub(6, 7)) == month then
      table.insert(result, date)
    end
  end
  return result
end

local function depth(tree)
  local deepest = 0
  for _, part in ipairs(tree) do
    if type(part) == "table" then
      deepest = math.max(deepest, depth(part))
    end
  end
  return 1 + deepest
end

local function sequence(n)
  if n < 2 then
    return n == 0 and 0 or @k
  end
  return sequence(n - 1) + sequence(n - 2)
end

local function common_divisor(a, b)
  if b == 0 then
    return a
  end
  return common_divisor(b, a % b)
end

local function bit_strings(n)
  if n == 0 then
    return { "" }
  end
  local strings = {}
  for _, bit in ipairs({ "0", "1" }) do
    for _, rest in ipairs(bit_strings(n - 1)) do
      table.insert(strings, bit .. rest)
    end
  end
  return strings
end

local function ways_up(n)
  if n <= 0 then
    return n == 0 and 1 or 0
  end
  return ways_up(n - 1) + ways_up(n - @k)
end

local function weighted_sum(tree)
  local function weigh(node, level)
    local sum = 0
    for _, part in ipairs(node) do
      sum = sum + (type(part) == "table" and weigh(part, level + 1) or part * level)
    end
    return sum
  end
  return weigh(tree, 1)
end

local function seconds_of(text)
  local units = { h = 3600, m = 60, s = 1 }
  local total = 0
  for number, unit in text:gmatch("(%d+)(%a)") do
    total = total + tonumber(number) * units[unit]
  end
  return total
end

local function balanced(text)
  local pairs_ = { [")"] = "(", ["]"] = "[" }
  local stack = {}
  for char in text:gmatch("[%(%)%[%]]") do
    if not pairs_[char] then
      table.insert(stack, char)
    elseif table.remove(stack) ~= pairs_[char] then
      return false
    end
  end
  return #stack == 0
end

local function parse_query(text)
  local values = {}
  for name, value in text:gmatch("([^&=]+)=([^&]*)") do
    values[name] = value
  end
  return values
end

local function before_mark(text)
  local place = text:find(@k, 1, true)
  return place and text:sub(1, place - 1) or text
end

local function compare_versions(a, b)
  local left, right = a:gmatch("%d+"), b:gmatch("%d+")
  for p in left do
    local older, newer = tonumber(p), tonumber(right())
    if older ~= newer then
      return older < newer and -1 or 1
    end
  end
  return 0
end

local function to_camel(text)
  local camel = text:gsub("_(%a)", string.upper)
  return camel
end

local function evaluate_sum(text)
  local sum = 0
  for number in text:gmatch("[+-]?%d+") do
    sum = sum + tonumber(number)
  end
  return sum
end

local function transposed(matrix)
  local result = {}
  for i, row in ipairs(matrix) do
    for j, cell in ipairs(row) do
      result[j] = result[j] or {}
      result[j][i] = cell
    end
  end
  return result
end

local function quarter_turn(matrix)
  local result = {}
  for i, row in ipairs(matrix) do
    for j, cell in ipairs(row) do
      result[j] = result[j] or {}
      table.insert(result[j], 1, cell)
    end
  end
  return result
end

local function scaled(matrix)
  local result = {}
  for i, row in ipairs(matrix) do
    result[i] = {}
    for j, cell in ipairs(row) do
      result[i][j] = cell * @k
    end
  end
  return result
end

local function symmetric(matrix)
  for i, row in ipairs(matrix) do
    for j, cell in ipairs(row) do
      if cell ~= matrix[j][i] then
        return false
      end
    end
  end
  return true
end

local function product(a, b)
  local result = {}
  for i, row in ipairs(a) do
    result[i] = {}
    for j = 1, #b[1] do
      local sum = 0
      for k, factor in ipairs(row) do
        sum = sum + factor * b[k][j]
      end
      result[i][j] = sum
    end
  end
  return result
end

local function column_peaks(matrix)
  local peaks = {}
  for _, row in ipairs(matrix) do
    for j, cell in ipairs(row) do
      peaks[j] = math.max(peaks[j] or cell, cell)
    end
  end
  return peaks
end

local function border_sum(matrix)
  local sum = 0
  for i, row in ipairs(matrix) do
    for j, cell in ipairs(row) do
      if i == 1 or j == 1 or i == #matrix or j == #row then
        sum = sum + cell
      end
    end
  end
  return sum
end

local function merged(intervals)
  table.sort(intervals, function(p, q)
    return p[1] < q[1]
  end)
  local result = {}
  for _, interval in ipairs(intervals) do
    local last = result[#result]
    if last and interval[1] <= last[2] then
      last[2] = math.max(last[2], interval[2])
    else
      table.insert(result, { interval[1], interval[2] })
    end
  end
  return result
end

local function overlapping(a, b)
  return math.max(a[1], b[1]) < math.min(a[2], b[2])
end

local function containing(intervals, point)
  local count = 0
  for _, interval in ipairs(intervals) do
    if interval[1] <= point and point <= interval[2] then
      count = count + 1
    end
  end
  return count
end

local function moved(intervals)
  local result = {}
  for i, interval in ipairs(intervals) do
    result[i] = { interval[1] + @k, interval[2] + @k }
  end
  return result
end

local function covered(intervals)
  local seen, count = {}, 0
  for _, interval in ipairs(intervals) do
    for n = interval[1], interval[2] do
      if not seen[n] then
        seen[n] = true
        count = count + 1
      end
    end
  end
  return count
end

local function clipped(intervals, window)
  local parts = {}
  for _, interval in ipairs(intervals) do
    local from, to = math.max(interval[1], window[1]), math.min(interval[2], window[2])
    if from < to then
      table.insert(parts, { from, to })
    end
  end
  return parts
end

local function joined_directly(edges, a, b)
  for _, edge in ipairs(edges) do
    if (edge[1] == a and edge[2] == b) or (edge[1] == b and edge[2] == a) then
      return true
    end
  end
  return false
end

local function reachable_count(edges, start)
  local seen = { [start] = true }
  local queue = { start }
  local i = 1
  while i <= #queue do
    for _, edge in ipairs(edges) do
      for side = 1, 2 do
        local other = edge[3 - side]
        if edge[side] == queue[i] and not seen[other] then
          seen[other] = true
          table.insert(queue, other)
        end
      end
    end
    i = i + 1
  end
  return #queue
end

local function neighbours_of(edges, node)
  local found = {}
  for _, edge in ipairs(edges) do
    if edge[1] == node then
      table.insert(found, edge[2])
    elseif edge[2] == node then
      table.insert(found, edge[1])
    end
  end
  table.sort(found)
  return found
end

local function adjacency(edges)
  local graph = {}
  for _, edge in ipairs(edges) do
    graph[edge[1]] = graph[edge[1]] or {}
    graph[edge[2]] = graph[edge[2]] or {}
    table.insert(graph[edge[1]], edge[2])
  end
  return graph
end

local function fewest_steps(edges, start, goal)
  local distance = { [start] = 0 }
  local queue = { start }
  local i = 1
  while i <= #queue do
    for _, edge in ipairs(edges) do
      for side = 1, 2 do
        local other = edge[3 - side]
        if edge[side] == queue[i] and not distance[other] then
          distance[other] = distance[queue[i]] + 1
          table.insert(queue, other)
        end
      end
    end
    i = i + 1
  end
  return distance[goal] or -1
end

local function group_count(edges)
  local label = {}
  for _, edge in ipairs(edges) do
    local a, b = edge[1], edge[2]
    label[a] = label[a] or a
    label[b] = label[b] or b
    local from, to = label[a], label[b]
    for node, mark in pairs(label) do
      if mark == from then
        label[node] = to
      end
    end
  end
  local seen, count = {}, 0
  for _, mark in pairs(label) do
    if not seen[mark] then
      seen[mark] = true
      count = count + 1
    end
  end
  return count
end

local function valid_path(edges, path)
  local allowed = {}
  for _, edge in ipairs(edges) do
    allowed[edge[1] .. "-" .. edge[2]] = true
  end
  for i = 2, #path do
    if not allowed[path[i - 1] .. "-" .. path[i]] then
      return false
    end
  end
  return true
end

local function light_after(state, n)
  local states = { "green", "yellow", "red" }
  local places = { green = 0, yellow = 1, red = 2 }
  return states[(places[state] + n) % 3 + 1]
end

local function people_through(events)
  local locked, people = true, 0
  for _, event in ipairs(events) do
    if event == "coin" then
      locked = false
    elseif not locked then
      locked = true
      people = people + 1
    end
  end
  return people
end

local function robot_position(moves)
  local x, y = 0, 0
  for move in moves:gmatch(".") do
    if move == "R" then
      x = x + 1
    elseif move == "L" then
      x = x - 1
    elseif move == "U" then
      y = y + 1
    elseif move == "D" then
      y = y - 1
    end
  end
  return { x, y }
end

local function switch_is_on(events)
  local _, count = events:gsub("T", "")
  return count % 2 == 1
end

local function digits_to_open(typed)
  local place = typed:find("@k", 1, true)
  return place and place + 2 or -1
end

local function after_undo(events)
  local items = {}
  for _, event in ipairs(events) do
    if event == "undo" then
      table.remove(items)
    else
      table.insert(items, event)
    end
  end
  return items
end

local function final_balance(amounts)
  local balance = 0
  for _, amount in ipairs(amounts) do
    if amount > 0 or balance + amount >= @k then
      balance = balance + amount
    end
  end
  return balance
end

local function sum_by_city(table_)
  local totals = {}
  for amount, city in table_:gmatch("[^,\n]+,([^,\n]+),([^,\n]+)") do
    totals[city] = (totals[city] or 0) + tonumber(amount)
  end
  return totals
end

local function names_with_at_least(table_)
  local names = {}
  for name, amount in table_:gmatch("([^,\n]+),([^,\n]+),[^,\n]+") do
    if tonumber(amount) >= @k then
      table.insert(names, name)
    end
  end
  return names
end

local function name_of_greatest(table_)
  local best, greatest
  for name, amount in table_:gmatch("([^,\n]+),([^,\n]+),[^,\n]+") do
    if not best or tonumber(amount) > greatest then
      best, greatest = name, tonumber(amount)
    end
  end
  return best
end

local function pick_column(rows, column)
  local fields = {}
  for i, row in ipairs(rows) do
    fields[i] = row[column + 1]
  end
  return fields
end

local function align_columns(rows)
  local widths = {}
  for _, row in ipairs(rows) do
    for i, field in ipairs(row) do
      widths[i] = math.max(widths[i] or 0, #field)
    end
  end
  local lines = {}
  for _, row in ipairs(rows) do
    local fields = {}
    for i, field in ipairs(row) do
      fields[i] = field .. (" "):rep(widths[i] - #field)
    end
    table.insert(lines, table.concat(fields, @k))
  end
  return table.concat(lines, "\n")
end

local function read_records(table_)
  local names, records = nil, {}
  for line in table_:gmatch("[^\n]+") do
    local fields = {}
    for field in line:gmatch("[^" .. @k .. "]+") do
      table.insert(fields, field)
    end
    if names then
      local record = {}
      for i, name in ipairs(names) do
        record[name] = fields[i]
      end
      table.insert(records, record)
    else
      names = fields
    end
  end
  return records
end
