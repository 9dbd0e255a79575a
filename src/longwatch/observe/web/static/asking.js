// What is asked of the server.

export async function read(path) {
  const answer = await fetch(path, { headers: { Accept: "application/json" } });
  const value = await answer.json().catch(() => ({ problem: answer.status === 401 ? "this key is an old one: open the address that longwatch web printed last" : `the page answered ${answer.status}` }));
  if (!answer.ok) throw new Error(value.problem);
  return value;
}

export async function wish(watch, verb, more = {}) {
  const answer = await fetch(`/api/watches/${watch}/requests`, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Longwatch": "1" },
    body: JSON.stringify({ verb, ...more }),
  });
  const value = await answer.json();
  if (!answer.ok) throw new Error(value.problem);
  return value.text;
}
