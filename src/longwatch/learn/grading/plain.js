"use strict";
// Plain data as tagged JSON (see plain.py), for the two sandboxed Node processes: sent into them as it stands.
// `n` is a BigInt, `u` is undefined. A frame is its length in four bytes, most significant first, and the text.
const fs = require("fs");
const { Buffer } = require("buffer");
const SOURCE = 3;
const SINK = 4;
const DEEPEST = 100;
// What an answer may have changed by the time we need it.
const { stringify, parse } = JSON;
const { isArray } = Array;
const { is, getPrototypeOf, keys } = Object;
const { isSafeInteger, isFinite } = Number;
const leave = process.reallyExit.bind(process, 0);

class NotPlain extends Error {}

function number(value) {
  if (Number.isNaN(value)) return ["f", "nan"];
  if (!isFinite(value)) return ["f", value > 0 ? "inf" : "-inf"];
  return value;
}

function numberText(value) {
  if (is(value, -0)) return "-0.0";
  const text = String(value);
  // Beyond the exact integers a number is a float, whatever it looks like.
  return Number.isInteger(value) && !isSafeInteger(value) && !text.includes("e") ? `${text}.0` : text;
}

function hex(value) {
  return value < 0n ? `-${(-value).toString(16)}` : value.toString(16);
}

// Code units without their other half, as the three bytes that UTF-8 would give them.
function surrogates(value) {
  const parts = [];
  for (const character of value) {
    const unit = character.codePointAt(0);
    parts.push(
      unit >= 0xd800 && unit <= 0xdfff
        ? Buffer.from([0xe0 | (unit >> 12), 0x80 | ((unit >> 6) & 0x3f), 0x80 | (unit & 0x3f)])
        : Buffer.from(character, "utf8"),
    );
  }
  return Buffer.concat(parts).toString("hex");
}

function encode(value, depth = 0) {
  switch (typeof value) {
    case "number": {
      const tree = number(value);
      return isArray(tree) ? stringify(tree) : numberText(tree);
    }
    case "string":
      return value.isWellFormed() ? stringify(value) : stringify(["s", surrogates(value)]);
    case "boolean":
      return value ? "true" : "false";
    case "undefined":
      return '["u"]';
    case "bigint":
      return stringify(["n", hex(value)]);
    case "object":
      return value === null ? "null" : container(value, depth);
    default:
      throw new NotPlain(`a value of type ${typeof value}`);
  }
}

function container(value, depth) {
  if (depth >= DEEPEST) throw new NotPlain(`a value nested more than ${DEEPEST} deep`);
  const parts = [];
  if (isArray(value)) {
    parts.push('"l"');
    for (let at = 0; at < value.length; at += 1) parts.push(encode(value[at], depth + 1));
  } else {
    const above = getPrototypeOf(value);
    if (above !== null && above !== Object.prototype) {
      throw new NotPlain(`a value of class ${above.constructor && above.constructor.name}`);
    }
    parts.push('"d"');
    for (const key of keys(value)) parts.push(encode(key), encode(value[key], depth + 1));
  }
  return `[${parts.join(",")}]`;
}

function decode(tree) {
  if (!isArray(tree)) return tree;
  const [tag, ...rest] = tree;
  switch (tag) {
    case "l":
      return rest.map(decode);
    case "d":
      return object(rest);
    case "f":
      return { nan: NaN, inf: Infinity, "-inf": -Infinity }[rest[0]];
    case "n":
    case "i":
      return rest[0].startsWith("-") ? -BigInt(`0x${rest[0].slice(1)}`) : BigInt(`0x${rest[0]}`);
    case "s":
      return unitsOf(Buffer.from(rest[0], "hex"));
    case "u":
      return undefined;
    default:
      throw new NotPlain(`a value of the other language (${tag})`);
  }
}

function object(pairs) {
  const result = {};
  for (let at = 0; at < pairs.length; at += 2) {
    const value = decode(pairs[at + 1]);
    Object.defineProperty(result, decode(pairs[at]), {
      value,
      writable: true,
      enumerable: true,
      configurable: true,
    });
  }
  return result;
}

function unitsOf(bytes) {
  let text = "";
  for (let at = 0; at < bytes.length; ) {
    const first = bytes[at];
    const size = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    const unit = size === 3 ? ((first & 15) << 12) | ((bytes[at + 1] & 63) << 6) | (bytes[at + 2] & 63) : 0;
    const lone = unit >= 0xd800 && unit <= 0xdfff;
    text += lone ? String.fromCharCode(unit) : bytes.toString("utf8", at, at + size);
    at += size;
  }
  return text;
}

const { readSync, writeSync } = fs;

function send(text) {
  const data = Buffer.from(text, "utf8");
  const frame = Buffer.alloc(4 + data.length);
  frame.writeUInt32BE(data.length, 0);
  data.copy(frame, 4);
  for (let at = 0; at < frame.length; ) at += writeSync(SINK, frame, at);
}

function take(size) {
  const data = Buffer.alloc(size);
  for (let at = 0; at < size; ) {
    const count = readSync(SOURCE, data, at, size - at, null);
    if (count === 0) leave();
    at += count;
  }
  return data;
}

function receive() {
  return parse(take(take(4).readUInt32BE(0)).toString("utf8"));
}

function told(what, error) {
  let name = "Error";
  let text = "";
  try {
    name = String(error.name);
    text = String(error.message).slice(0, 500);
  } catch {
    // What was thrown is foreign too.
  }
  return `["${what}",${encode(name)},${encode(text)}]`;
}
