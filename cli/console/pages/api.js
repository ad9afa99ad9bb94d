// The API of the console: reads, actions with the token of the session, and events.

export const session = { user: null, role: null, csrf: null, name: "", passwords: false };

export class Refused extends Error {
  constructor(status, content) {
    super(content.why ?? `the console answers ${status}`);
    this.status = status;
    this.word = content.error ?? "";
    this.content = content;
  }
}

async function answered(answer) {
  const content = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Refused(answer.status, content);
  return content;
}

export async function read(path, parameters = {}) {
  const query = new URLSearchParams(parameters).toString();
  return answered(await fetch(`/api/${path}${query ? `?${query}` : ""}`));
}

export async function send(path, content) {
  const headers = { "Content-Type": "application/json" };
  if (session.csrf) headers["X-CSRF-Token"] = session.csrf;
  return answered(await fetch(`/api/${path}`,
    { method: "POST", headers, body: JSON.stringify(content) }));
}

export async function enter() {
  Object.assign(session, { user: null, role: null, csrf: null }, await read("session"));
  return session.user !== null;
}

const AGAIN = 2000;
let stream = null;
export function listen(parameters, heard) {
  if (stream) stream.close();
  stream = new EventSource(`/api/events?${new URLSearchParams({ ...parameters, looks: 1 })}`);
  for (const kind of ["state", "queues", "queue"]) {
    stream.addEventListener(kind, (event) => heard(kind, JSON.parse(event.data)));
  }
  const mine = stream;
  stream.onerror = () => {
    heard("lost", null);
    if (mine.readyState === EventSource.CLOSED) {  // a browser gives up after an answer other than 200
      setTimeout(() => { if (mine === stream) listen(parameters, heard); }, AGAIN);
    }
  };
  stream.onopen = () => heard("found", null);
}
export function silence() {
  if (stream) stream.close();
  stream = null;
}
