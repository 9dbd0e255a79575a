// Undo and redo: whole documents, as they were. None of them is ever changed in place.

/** @import { Main } from "./data.js" */

export class History {
  /** @param {Main} main */
  constructor(main) {
    /** @type {Main[]} */
    this.states = [main];
    this.at = 0;
  }

  /** The document now. */
  get current() {
    return this.states[this.at];
  }

  /**
   * Go on from a new state; what was undone before is forgotten.
   * @param {Main} main
   */
  push(main) {
    this.states.splice(this.at + 1, Number.POSITIVE_INFINITY, main);
    this.at += 1;
  }

  /** Go one state back; false if there is none. */
  undo() {
    return this.move(-1);
  }

  /** Go one state forth; false if there is none. */
  redo() {
    return this.move(1);
  }

  /** @param {number} step */
  move(step) {
    const there = this.at + step in this.states;
    this.at += there ? step : 0;
    return there;
  }
}
