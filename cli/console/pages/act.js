// What an admin does, after a question: whoever closes it has done nothing.
import { send } from "./api.js";
import { ask, say } from "./dom.js";
import { number } from "./units.js";

export async function act(verb, about, title, text, fields, more = (given) => given) {
  const given = await ask(title, text, fields, title);
  if (given === null) return false;
  try {
    const done = await send(`do/${verb}`, { ...about, ...more(given) });
    const stayed = Object.entries(done.stayed ?? {}).map(([why, count]) => `${count}: ${why}`);
    const result = "messages" in done ? `${number(done.messages)} messages`
      : done.left === false ? "it is told, and leaves when it waits or settles a message" : "done";
    say(`${title}: ${result}` + (stayed.length ? `; stayed: ${stayed.join("; ")}` : "")
      + (done.warning ? `; warning: ${done.warning}` : ""));
    document.getElementById("refresh")?.click();
    return true;
  } catch (error) {
    say(error.message, true);
    return false;
  }
}
