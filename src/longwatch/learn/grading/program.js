// The process in which the tests of an answer run: `candidate`, and the entry point's name, ask the answer's process.
// The nonce reaches only this process, and its report counts only with it. Follows plain.js.
function candidate(...parts) {
  send(`["call",${encode(parts)},["d"]]`);
  const reply = receive();
  if (reply[0] === "value") return decode(reply[1]);
  const error = new Error(decode(reply[2]));
  error.name = decode(reply[1]);
  throw error;
}

function run(code, entryPoint) {
  // HumanEval-X reports by it, and it only prints.
  console.assert = require("assert").ok;
  const names = [...new Set(["require", "candidate", entryPoint])];
  const values = [require, candidate, candidate].slice(0, names.length);
  new Function(...names, code)(...values);
}

send('["ready"]');
const [nonce, code, entryPoint] = receive();
let why = "";
try {
  run(decode(code), entryPoint);
} catch (error) {
  why = `the tests: ${error && error.name}: ${String(error && error.message).slice(0, 300)}`;
}
send(`["verdict",${stringify(nonce)},${why === ""},${encode(why)}]`);
receive();
