function rotateLeft($numbers) {
    $k = $numbers ? @k % count($numbers) : 0;
    return array_merge(array_slice($numbers, $k), array_slice($numbers, 0, $k));
}

function cutIntoPieces($numbers) {
    return array_chunk($numbers, @k);
}

function withoutRepeats($numbers) {
    return array_values(array_unique($numbers));
}

function longestRise($numbers) {
    $best = 0;
    $length = 0;
    foreach ($numbers as $i => $number) {
        $length = $i > 0 && $number > $numbers[$i - 1] ? $length + 1 : 1;
        $best = max($best, $length);
    }
    return $best;
}

function isMirrored($text) {
    $lowered = strtolower($text);
    return $lowered === strrev($lowered);
}

function shiftLetters($text) {
    $result = '';
    for ($i = 0; $i < strlen($text); $i++) {
        $char = $text[$i];
        $result .= ctype_lower($char) ? chr((ord($char) - 97 + @k) % 26 + 97) : $char;
    }
    return $result;
}

function highestCount($text) {
    return max([0, ...array_values(count_chars($text, 1))]);
}

function compressRuns($text) {
    return preg_replace_callback('/(.)\1*/s', fn($found) => $found[1] . strlen($found[0]), $text);
}

function lookUp($scores, $key) {
    return $scores[$key] ?? @k;
}

function countWords($words) {
    return array_count_values($words);
}

function groupByLength($words) {
    $groups = [];
    foreach ($words as $word) {
        $groups[strlen($word)][] = $word;
    }
    return $groups;
}

function ranking($scores) {
    $names = array_keys($scores);
    usort($names, fn($p, $q) => $scores[$q] <=> $scores[$p] ?: strcmp($p, $q));
    return $names;
}

function prime($n) {
    for ($d = 2; $d * $d <= $n; $d++) {
        if ($n % $d === 0) {
            return false;
        }
    }
    return $n > 1;
}

function keepWithin($n) {
    return max(@k, min($n, @m));
}

function inBase($n) {
    return base_convert((string) $n, 10, @k);
}

function stepsToOne($n) {
    $steps = 0;
    while ($n !== 1) {
        $n = $n % 2 === 0 ? intdiv($n, 2) : 3 * $n + 1;
        $steps++;
    }
    return $steps;
}

function leap($year) {
    return $year % 4 === 0 && ($year % 100 !== 0 || $year % 400 === 0);
}

function daysBetween($start, $end) {
    return (int) date_create($start)->diff(date_create($end))->format('%r%a');
}

function daysLater($date) {
    return gmdate('Y-m-d', strtotime("$date UTC +@k days"));
}

function turnedDate($date) {
    return implode('.', array_reverse(explode('-', $date)));
}

function quarterOf($date) {
    return intdiv((int) substr($date, 5, 2) + 2, 3);
}

function minutesLater($time) {
    [$hours, $minutes] = array_map('intval', explode(':', $time));
    $total = ($hours * 60 + $minutes + @k) % 1440;
    return sprintf('%02d:%02d', intdiv($total, 60), $total % 60);
}

function inMonth($dates, $month) {
    return array_values(array_filter($dates, fn($date) => (int) substr($date, 5, 2) === $month));
}

function depth($tree) {
    $deepest = 0;
    foreach ($tree as $part) {
        if (is_array($part)) {
            $deepest = max($deepest, depth($part));
        }
    }
    return 1 + $deepest;
}

function sequence($n) {
    return $n < 2 ? [0, @k][$n] : sequence($n - 1) + sequence($n - 2);
}

function commonDivisor($a, $b) {
    return $b === 0 ? $a : commonDivisor($b, $a % $b);
}

function bitStrings($n) {
    if ($n === 0) {
        return [''];
    }
    $strings = [];
    foreach (['0', '1'] as $bit) {
        foreach (bitStrings($n - 1) as $rest) {
            $strings[] = $bit . $rest;
        }
    }
    return $strings;
}

function waysUp($n) {
    if ($n < 0) {
        return 0;
    }
    return $n === 0 ? 1 : waysUp($n - 1) + waysUp($n - @k);
}

function weightedSum($tree) {
    $weigh = function ($node, $level) use (&$weigh) {
        $sum = 0;
        foreach ($node as $part) {
            $sum += is_array($part) ? $weigh($part, $level + 1) : $part * $level;
        }
        return $sum;
    };
    return $weigh($tree, 1);
}

function secondsOf($text) {
    $units = ['h' => 3600, 'm' => 60, 's' => 1];
    preg_match_all('/(\d+)([hms])/', $text, $parts, PREG_SET_ORDER);
    return array_sum(array_map(fn($part) => $part[1] * $units[$part[2]], $parts));
}

function balanced($text) {
    $pairs = [')' => '(', ']' => '['];
    $stack = [];
    foreach (str_split($text) as $char) {
        if ($char === '(' || $char === '[') {
            $stack[] = $char;
        } elseif (isset($pairs[$char]) && array_pop($stack) !== $pairs[$char]) {
            return false;
        }
    }
    return $stack === [];
}

function parseQuery($text) {
    $values = [];
    foreach (array_filter(explode('&', $text)) as $part) {
        [$name, $value] = explode('=', $part);
        $values[$name] = $value;
    }
    return $values;
}

function beforeMark($text) {
    return explode(@k, $text)[0];
}

function compareVersions($a, $b) {
    $left = array_map('intval', explode('.', $a));
    $right = array_map('intval', explode('.', $b));
    return $left <=> $right;
}

function toCamel($text) {
    return lcfirst(str_replace('_', '', ucwords($text, '_')));
}

function evaluateSum($text) {
    preg_match_all('/[+-]?\d+/', $text, $parts);
    return array_sum(array_map('intval', $parts[0]));
}

function transposed($matrix) {
    return $matrix ? array_map(fn($i) => array_column($matrix, $i), array_keys($matrix[0])) : [];
}

function quarterTurn($matrix) {
    return $matrix ? array_map(fn($i) => array_reverse(array_column($matrix, $i)), array_keys($matrix[0])) : [];
}

function scaled($matrix) {
    return array_map(fn($row) => array_map(fn($cell) => $cell * @k, $row), $matrix);
}

function symmetric($matrix) {
    foreach ($matrix as $i => $row) {
        foreach ($row as $j => $cell) {
            if ($cell !== $matrix[$j][$i]) {
                return false;
            }
        }
    }
    return true;
}

function product($a, $b) {
    $result = [];
    foreach ($a as $i => $row) {
        foreach (array_keys($b[0]) as $j) {
            $result[$i][$j] = 0;
            foreach ($row as $k => $factor) {
                $result[$i][$j] += $factor * $b[$k][$j];
            }
        }
    }
    return $result;
}

function columnPeaks($matrix) {
    return $matrix ? array_map(fn($i) => max(array_column($matrix, $i)), array_keys($matrix[0])) : [];
}

function borderSum($matrix) {
    $sum = 0;
    foreach ($matrix as $i => $row) {
        foreach ($row as $j => $cell) {
            if ($i === 0 || $j === 0 || $i === count($matrix) - 1 || $j === count($row) - 1) {
                $sum += $cell;
            }
        }
    }
    return $sum;
}

function merged($intervals) {
    sort($intervals);
    $result = [];
    foreach ($intervals as [$start, $end]) {
        $last = count($result) - 1;
        if ($last >= 0 && $start <= $result[$last][1]) {
            $result[$last][1] = max($result[$last][1], $end);
        } else {
            $result[] = [$start, $end];
        }
    }
    return $result;
}

function overlapping($a, $b) {
    return max($a[0], $b[0]) < min($a[1], $b[1]);
}

function containing($intervals, $point) {
    return count(array_filter($intervals, fn($pair) => $pair[0] <= $point && $point <= $pair[1]));
}

function moved($intervals) {
    return array_map(fn($pair) => [$pair[0] + @k, $pair[1] + @k], $intervals);
}

function covered($intervals) {
    $points = [];
    foreach ($intervals as [$start, $end]) {
        for ($n = $start; $n <= $end; $n++) {
            $points[$n] = true;
        }
    }
    return count($points);
}

function clipped($intervals, $window) {
    $parts = array_map(fn($pair) => [max($pair[0], $window[0]), min($pair[1], $window[1])], $intervals);
    return array_values(array_filter($parts, fn($part) => $part[0] < $part[1]));
}

function joinedDirectly($edges, $a, $b) {
    return in_array([$a, $b], $edges, true) || in_array([$b, $a], $edges, true);
}

function reachableCount($edges, $start) {
    $seen = [$start => true];
    $queue = [$start];
    while ($queue) {
        $node = array_pop($queue);
        foreach ($edges as [$a, $b]) {
            foreach ([[$a, $b], [$b, $a]] as [$from, $to]) {
                if ($from === $node && !isset($seen[$to])) {
                    $seen[$to] = true;
                    $queue[] = $to;
                }
            }
        }
    }
    return count($seen);
}

function neighboursOf($edges, $node) {
    $found = [];
    foreach ($edges as [$a, $b]) {
        if ($a === $node) {
            $found[] = $b;
        } elseif ($b === $node) {
            $found[] = $a;
        }
    }
    sort($found);
    return $found;
}

function adjacency($edges) {
    $graph = [];
    foreach ($edges as [$a, $b]) {
        $graph[$a][] = $b;
        $graph[$b] ??= [];
    }
    return $graph;
}

function fewestSteps($edges, $start, $goal) {
    $distance = [$start => 0];
    $queue = [$start];
    while ($queue) {
        $node = array_shift($queue);
        foreach ($edges as [$a, $b]) {
            foreach ([[$a, $b], [$b, $a]] as [$from, $to]) {
                if ($from === $node && !isset($distance[$to])) {
                    $distance[$to] = $distance[$node] + 1;
                    $queue[] = $to;
                }
            }
        }
    }
    return $distance[$goal] ?? -1;
}

function groupCount($edges) {
    $label = [];
    foreach ($edges as [$a, $b]) {
        $label[$a] ??= $a;
        $label[$b] ??= $b;
        [$from, $to] = [$label[$a], $label[$b]];
        $label = array_map(fn($mark) => $mark === $from ? $to : $mark, $label);
    }
    return count(array_unique($label));
}

function validPath($edges, $path) {
    for ($i = 1; $i < count($path); $i++) {
        if (!in_array([$path[$i - 1], $path[$i]], $edges, true)) {
            return false;
        }
    }
    return true;
}

function lightAfter($state, $n) {
    $states = ['green', 'yellow', 'red'];
    return $states[(array_search($state, $states) + $n) % 3];
}

function peopleThrough($events) {
    $locked = true;
    $people = 0;
    foreach ($events as $event) {
        if ($event === 'coin') {
            $locked = false;
        } elseif (!$locked) {
            $locked = true;
            $people++;
        }
    }
    return $people;
}

function robotPosition($moves) {
    $x = substr_count($moves, 'R') - substr_count($moves, 'L');
    $y = substr_count($moves, 'U') - substr_count($moves, 'D');
    return [$x, $y];
}

function switchIsOn($events) {
    return substr_count($events, 'T') % 2 === 1;
}

function digitsToOpen($typed) {
    $place = strpos($typed, '@k');
    return $place === false ? -1 : $place + 3;
}

function afterUndo($events) {
    $items = [];
    foreach ($events as $event) {
        if ($event === 'undo') {
            array_pop($items);
        } else {
            $items[] = $event;
        }
    }
    return $items;
}

function finalBalance($amounts) {
    $balance = 0;
    foreach ($amounts as $amount) {
        if ($amount > 0 || $balance + $amount >= @k) {
            $balance += $amount;
        }
    }
    return $balance;
}

function sumByCity($table) {
    $totals = [];
    foreach (explode("\n", $table) as $line) {
        [$name, $amount, $city] = explode(',', $line);
        $totals[$city] = ($totals[$city] ?? 0) + (int) $amount;
    }
    return $totals;
}

function namesWithAtLeast($table) {
    $names = [];
    foreach (explode("\n", $table) as $line) {
        [$name, $amount] = explode(',', $line);
        if ((int) $amount >= @k) {
            $names[] = $name;
        }
    }
    return $names;
}

function nameOfGreatest($table) {
    $rows = array_map(fn($line) => explode(',', $line), explode("\n", $table));
    $best = $rows[0];
    foreach ($rows as $row) {
        if ((int) $row[1] > (int) $best[1]) {
            $best = $row;
        }
    }
    return $best[0];
}

function pickColumn($rows, $column) {
    return array_map(fn($row) => $row[$column], $rows);
}

function alignColumns($rows) {
    $widths = [];
    foreach ($rows as $row) {
        foreach ($row as $i => $field) {
            $widths[$i] = max($widths[$i] ?? 0, strlen($field));
        }
    }
    return implode("\n", array_map(fn($row) => implode(@k, array_map('str_pad', $row, $widths)), $rows));
}

function readRecords($table) {
    $lines = explode("\n", $table);
    $names = explode(@k, array_shift($lines));
    return array_map(fn($line) => array_combine($names, explode(@k, $line)), $lines);
}
