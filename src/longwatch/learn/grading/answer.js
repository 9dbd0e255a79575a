// The process in which an answer runs: it holds no test, no expected value and no solution. Follows plain.js.
function load(source, entryPoint) {
  const module = { exports: {} };
  const found =
    `typeof ${entryPoint} === "function" ? ${entryPoint} : ` +
    `typeof module.exports === "function" ? module.exports : module.exports[${stringify(entryPoint)}]`;
  const whole = new Function("module", "exports", "require", `${source}\n;return ${found};`);
  return whole(module, module.exports, require);
}

function call(answer, parts) {
  let value;
  try {
    value = answer(...parts[0]);
  } catch (error) {
    return told("raised", error);
  }
  try {
    return `["value",${encode(value)}]`;
  } catch (error) {
    return `["unplain",${encode(String(error && error.message))}]`;
  }
}

send('["ready"]');
const [source, entryPoint] = receive();
let answer;
try {
  answer = load(decode(source), entryPoint);
  send(
    typeof answer === "function"
      ? '["loaded"]'
      : `["broken","ReferenceError",${encode(`it defines no function ${entryPoint}`)}]`,
  );
} catch (error) {
  send(told("broken", error));
}
for (;;) send(call(answer, receive().map(decode)));
