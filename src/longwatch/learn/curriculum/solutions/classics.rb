def rotate_left(numbers)
  numbers.rotate(@k)
end

def cut_into_pieces(numbers)
  numbers.each_slice(@k).to_a
end

def without_repeats(numbers)
  numbers.uniq
end

def longest_rise(numbers)
  best = length = 0
  numbers.each_with_index do |number, i|
    length = i > 0 && number > numbers[i - 1] ? length + 1 : 1
    best = [best, length].max
  end
  best
end

def is_mirrored(text)
  lowered = text.downcase
  lowered == lowered.reverse
end

def shift_letters(text)
  text.gsub(/[a-z]/) { |char| ((char.ord - 97 + @k) % 26 + 97).chr }
end

def highest_count(text)
  text.chars.tally.values.max || 0
end

def compress_runs(text)
  text.chars.chunk_while { |a, b| a == b }.map { |run| run.first + run.size.to_s }.join
end

def look_up(scores, key)
  scores.fetch(key, @k)
end

def count_words(words)
  words.tally
end

def group_by_length(words)
  words.group_by { |word| word.length.to_s }
end

def ranking(scores)
  scores.keys.sort_by { |name| [-scores[name], name] }
end

def prime(n)
  n > 1 && (2..Integer.sqrt(n)).none? { |d| n % d == 0 }
end

def keep_within(n)
  n.clamp(@k, @m)
end

def in_base(n)
  n.to_s(@k)
end

def steps_to_one(n)
  steps = 0
  while n != 1
    n = n.even? ? n / 2 : 3 * n + 1
    steps += 1
  end
  steps
end

def leap(year)
  year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
end

require 'date'

def days_between(start, end_)
  (Date.parse(end_) - Date.parse(start)).to_i
end

require 'date'

def days_later(date)
  (Date.parse(date) + @k).to_s
end

def turned_date(date)
  date.split("-").reverse.join(".")
end

def quarter_of(date)
  (date[5, 2].to_i + 2) / 3
end

def minutes_later(time)
  hours, minutes = time.split(":").map(&:to_i)
  total = (hours * 60 + minutes + @k) % 1440
  format("%02d:%02d", total / 60, total % 60)
end

def in_month(dates, month)
  dates.select { |date| date[5, 2].to_i == month }
end

def depth(tree)
  1 + (tree.grep(Array).map { |part| depth(part) }.max || 0)
end

def sequence(n)
  return [0, @k][n] if n < 2

  sequence(n - 1) + sequence(n - 2)
end

def common_divisor(a, b)
  b == 0 ? a : common_divisor(b, a % b)
end

def bit_strings(n)
  return [""] if n == 0

  ["0", "1"].flat_map { |bit| bit_strings(n - 1).map { |rest| bit + rest } }
end

def ways_up(n)
  return 0 if n < 0

  n == 0 ? 1 : ways_up(n - 1) + ways_up(n - @k)
end

def weighted_sum(tree)
  weigh = lambda do |node, level|
    node.sum { |part| part.is_a?(Array) ? weigh.call(part, level + 1) : part * level }
  end
  weigh.call(tree, 1)
end

def seconds_of(text)
  units = { "h" => 3600, "m" => 60, "s" => 1 }
  text.scan(/(\d+)([hms])/).sum { |number, unit| number.to_i * units[unit] }
end

def balanced(text)
  stack = []
  text.each_char do |char|
    if "([".include?(char)
      stack.push(char)
    elsif ")]".include?(char)
      return false unless ["()", "[]"].include?(stack.pop.to_s + char)
    end
  end
  stack.empty?
end

def parse_query(text)
  text.split("&").to_h { |part| part.split("=", 2) }
end

def before_mark(text)
  text.partition(@k).first
end

def compare_versions(a, b)
  a.split(".").map(&:to_i) <=> b.split(".").map(&:to_i)
end

def to_camel(text)
  first, *rest = text.split("_")
  first + rest.map(&:capitalize).join
end

def evaluate_sum(text)
  text.scan(/[+-]?\d+/).sum(&:to_i)
end

def transposed(matrix)
  matrix.transpose
end

def quarter_turn(matrix)
  matrix.reverse.transpose
end

def scaled(matrix)
  matrix.map { |row| row.map { |cell| cell * @k } }
end

def symmetric(matrix)
  matrix == matrix.transpose
end

def product(a, b)
  a.map { |row| b.transpose.map { |column| row.zip(column).sum { |p, q| p * q } } }
end

def column_peaks(matrix)
  matrix.transpose.map(&:max)
end

def border_sum(matrix)
  sum = 0
  matrix.each_with_index do |row, i|
    row.each_with_index do |cell, j|
      sum += cell if [0, matrix.size - 1].include?(i) || [0, row.size - 1].include?(j)
    end
  end
  sum
end

def merged(intervals)
  intervals.sort.each_with_object([]) do |(first, last), result|
    if result.any? && first <= result.last[1]
      result.last[1] = [result.last[1], last].max
    else
      result << [first, last]
    end
  end
end

def overlapping(a, b)
  [a[0], b[0]].max < [a[1], b[1]].min
end

def containing(intervals, point)
  intervals.count { |first, last| point.between?(first, last) }
end

def moved(intervals)
  intervals.map { |first, last| [first + @k, last + @k] }
end

def covered(intervals)
  intervals.flat_map { |first, last| (first..last).to_a }.uniq.size
end

def clipped(intervals, window)
  parts = intervals.map { |first, last| [[first, window[0]].max, [last, window[1]].min] }
  parts.select { |first, last| first < last }
end

def joined_directly(edges, a, b)
  edges.include?([a, b]) || edges.include?([b, a])
end

def reachable_count(edges, start)
  seen = [start]
  seen.each do |node|
    edges.each do |a, b|
      seen << b if a == node && !seen.include?(b)
      seen << a if b == node && !seen.include?(a)
    end
  end
  seen.size
end

def neighbours_of(edges, node)
  edges.select { |edge| edge.include?(node) }.map { |a, b| a == node ? b : a }.sort
end

def adjacency(edges)
  graph = {}
  edges.each do |a, b|
    (graph[a] ||= []) << b
    graph[b] ||= []
  end
  graph
end

def fewest_steps(edges, start, goal)
  distance = { start => 0 }
  queue = [start]
  until queue.empty?
    node = queue.shift
    edges.each do |a, b|
      [[a, b], [b, a]].each do |from, to|
        next if from != node || distance.key?(to)

        distance[to] = distance[node] + 1
        queue << to
      end
    end
  end
  distance.fetch(goal, -1)
end

def group_count(edges)
  groups = edges.flatten.uniq.map { |node| [node] }
  edges.each do |a, b|
    touched, others = groups.partition { |group| group.include?(a) || group.include?(b) }
    groups = others << touched.flatten
  end
  groups.size
end

def valid_path(edges, path)
  path.each_cons(2).all? { |step| edges.include?(step) }
end

def light_after(state, n)
  states = ["green", "yellow", "red"]
  states[(states.index(state) + n) % 3]
end

def people_through(events)
  locked = true
  people = 0
  events.each do |event|
    if event == "coin"
      locked = false
    elsif !locked
      locked = true
      people += 1
    end
  end
  people
end

def robot_position(moves)
  [moves.count("R") - moves.count("L"), moves.count("U") - moves.count("D")]
end

def switch_is_on(events)
  events.count("T").odd?
end

def digits_to_open(typed)
  place = typed.index("@k")
  place ? place + 3 : -1
end

def after_undo(events)
  events.each_with_object([]) do |event, items|
    event == "undo" ? items.pop : items.push(event)
  end
end

def final_balance(amounts)
  amounts.reduce(0) do |balance, amount|
    amount > 0 || balance + amount >= @k ? balance + amount : balance
  end
end

def sum_by_city(table)
  table.lines(chomp: true).each_with_object(Hash.new(0)) do |line, totals|
    _name, amount, city = line.split(",")
    totals[city] += amount.to_i
  end
end

def names_with_at_least(table)
  rows = table.lines(chomp: true).map { |line| line.split(",") }
  rows.select { |row| row[1].to_i >= @k }.map(&:first)
end

def name_of_greatest(table)
  rows = table.lines(chomp: true).map { |line| line.split(",") }
  rows.max_by { |row| row[1].to_i }.first
end

def pick_column(rows, column)
  rows.map { |row| row[column] }
end

def align_columns(rows)
  widths = rows.transpose.map { |column| column.map(&:length).max }
  rows.map { |row| row.zip(widths).map { |field, width| field.ljust(width) }.join(@k) }.join("\n")
end

def read_records(table)
  head, *lines = table.lines(chomp: true)
  names = head.split(@k)
  lines.map { |line| names.zip(line.split(@k)).to_h }
end
