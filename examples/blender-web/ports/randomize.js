// SPDX-License-Identifier: GPL-2.0-or-later
// Port of bl_operators/object_randomize_transform.py. Its random numbers are those of Python: the Mersenne Twister.

/**
 * @import { Item, Vector } from "../data.js"
 * @import { Operator } from "../operator.js"
 * @typedef {(low: number, high: number) => number} Uniform
 */

import { f32 } from "../data.js";

const DISTANCE = { min: -100, max: 100 };
// biome-ignore lint/suspicious/noApproximativeNumericConstant: it is what Blender has
const ANGLE = { min: -3.141592, max: 3.141592 };

/** @type {Operator} */
export const operator = {
  id: "object.randomize_transform",
  label: "Randomize Transform",
  route: "/object/transform/randomize",
  properties: {
    random_seed: { type: "int", default: 0, min: 0, max: 10000 },
    use_delta: { type: "bool", default: false },
    use_loc: { type: "bool", default: true },
    loc: { type: "vector", default: [0, 0, 0], ...DISTANCE },
    use_rot: { type: "bool", default: true },
    rot: { type: "vector", default: [0, 0, 0], ...ANGLE },
    use_scale: { type: "bool", default: true },
    scale_even: { type: "bool", default: false },
    scale: { type: "vector", default: [1, 1, 1], ...DISTANCE },
  },
  poll: (main) => main.mode === "OBJECT",
  execute(main, properties) {
    const uniform = generator(properties.random_seed);
    const prefix = properties.use_delta ? "delta_" : "";
    for (const item of main.objects.filter((one) => one.selected)) {
      move(vectorOf(item, `${prefix}location`), properties.use_loc, properties.loc, uniform);
      move(vectorOf(item, `${prefix}rotation_euler`), properties.use_rot, properties.rot, uniform);
      resize(vectorOf(item, `${prefix}scale`), properties, uniform);
    }
    return "FINISHED";
  },
};

/**
 * @param {Item} item
 * @param {string} name
 * @returns {Vector}
 */
function vectorOf(item, name) {
  return /** @type {any} */ (item)[name];
}

/**
 * Numbers are drawn even where they are not used: otherwise the others would change.
 * @param {Vector} vector
 * @param {boolean} isUsed
 * @param {Vector} range
 * @param {Uniform} uniform
 */
function move(vector, isUsed, range, uniform) {
  for (const [at, most] of range.entries()) {
    const drawn = f32(uniform(-most, most));
    vector[at] = isUsed ? f32(vector[at] + drawn) : vector[at];
  }
}

/**
 * @param {Vector} vector
 * @param {any} properties
 * @param {Uniform} uniform
 */
function resize(vector, properties, uniform) {
  const factors = properties.scale.map((/** @type {number} */ most) => uniform(-most + 2, most));
  if (properties.use_scale) {
    for (const at of vector.keys()) {
      vector[at] = f32(factors[properties.scale_even ? 0 : at] * vector[at]);
    }
  }
}

/**
 * Return what `random.uniform` draws after `random.seed(seed)`.
 * @param {number} seed
 * @returns {Uniform}
 */
function generator(seed) {
  const twister = new Twister(seed);
  return (low, high) => {
    const [upper, lower] = [twister.next() >>> 5, twister.next() >>> 6];
    return low + (high - low) * ((upper * 67108864 + lower) / 9007199254740992);
  };
}

const LENGTH = 624;
const SHIFT = 397;

/** MT19937 (Matsumoto and Nishimura 1998), seeded with an array of one number as Python does. */
class Twister {
  /** @param {number} seed */
  constructor(seed) {
    this.state = new Uint32Array(LENGTH);
    this.at = LENGTH;
    this.fill(19650218);
    this.mix(seed);
  }

  /** @param {number} start */
  fill(start) {
    const { state } = this;
    state[0] = start;
    for (let at = 1; at < LENGTH; at += 1) {
      state[at] = Math.imul(1812433253, state[at - 1] ^ (state[at - 1] >>> 30)) + at;
    }
  }

  /** @param {number} seed */
  mix(seed) {
    const { state } = this;
    let at = 1;
    for (let round = 0; round < 2 * LENGTH - 1; round += 1) {
      const before = state[at - 1] ^ (state[at - 1] >>> 30);
      const isFirst = round < LENGTH;
      state[at] = (state[at] ^ Math.imul(before, isFirst ? 1664525 : 1566083941)) + (isFirst ? seed : -at);
      at += 1;
      if (at === LENGTH) {
        state[0] = state[LENGTH - 1];
        at = 1;
      }
    }
    state[0] = 0x80000000;
  }

  /** The next whole number of 32 bits. */
  next() {
    if (this.at === LENGTH) {
      this.twist();
    }
    let word = this.state[this.at];
    this.at += 1;
    word ^= word >>> 11;
    word ^= (word << 7) & 0x9d2c5680;
    word ^= (word << 15) & 0xefc60000;
    return (word ^ (word >>> 18)) >>> 0;
  }

  twist() {
    const { state } = this;
    for (let at = 0; at < LENGTH; at += 1) {
      const joined = (state[at] & 0x80000000) | (state[(at + 1) % LENGTH] & 0x7fffffff);
      state[at] = state[(at + SHIFT) % LENGTH] ^ (joined >>> 1) ^ (joined & 1 ? 0x9908b0df : 0);
    }
    this.at = 0;
  }
}
