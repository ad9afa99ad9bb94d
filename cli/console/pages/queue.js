// The page of a queue: figures, charts, messages, who uses it, its settings; and what to do with it.
import { act as acted } from "./act.js";
import { read, session } from "./api.js";
import { Heat, Lines } from "./charts.js";
import { el, pairs, put, say, table } from "./dom.js";
import { duration, instant, number, size } from "./units.js";

const N = (title) => ({ title, number: true });
const DEPTH_MAX = 40;  // then lines are indented no further
const bytesOf = (text) => Uint8Array.from(atob(text), (each) => each.charCodeAt(0));

function asText(bytes) {
  return new TextDecoder().decode(bytes);
}
function asJson(bytes) {
  const text = asText(bytes);
  try { JSON.parse(text); } catch (error) { return `this is no JSON: ${error.message}`; }
  return indented(text.match(/"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\]:,]|[^\s{}[\]:,"]+/g));
}
function indented(tokens) {
  // of the text itself: large numbers, and keys that are there twice, would be others as values
  let depth = 0;
  const line = () => `\n${"  ".repeat(Math.min(depth, DEPTH_MAX))}`;
  return tokens.map((token, at) => {
    if ("{[".includes(token)) {
      if ("}]".includes(tokens[at + 1])) return token;
      depth += 1;
      return token + line();
    }
    if ("}]".includes(token)) {
      if ("{[".includes(tokens[at - 1])) return token;
      depth -= 1;
      return line() + token;
    }
    return token === "," ? token + line() : token === ":" ? ": " : token;
  }).join("");
}
function asHex(bytes) {
  const lines = [];
  for (let at = 0; at < bytes.length; at += 16) {
    const part = [...bytes.slice(at, at + 16)];
    const hex = part.map((each) => each.toString(16).padStart(2, "0")).join(" ").padEnd(48);
    const text = part.map((each) => each > 31 && each < 127 ? String.fromCharCode(each) : ".");
    lines.push(`${at.toString(16).padStart(8, "0")}  ${hex} ${text.join("")}`);
  }
  return lines.join("\n");
}

async function message(name, position) {
  const found = await read("message", { queue: name, position });
  const bytes = bytesOf(found.body), text = el("pre", { tabindex: 0 });
  const forms = { Text: asText, JSON: asJson, Hex: asHex };
  const show = (form) => { text.textContent = forms[form](bytes); };
  show("Text");
  const dialog = el("dialog", { class: "wide", "aria-label": `message ${position}` },
    el("h2", {}, `Message ${position}`),
    pairs({ key: found.key, state: state(found), published: instant(found.published_at),
            size: size(found.bytes), deliveries: found.deliveries, priority: found.priority, expires: found.expires_at }),
    el("h3", {}, "Properties"), Object.keys(found.properties).length
      ? table(["Name", "Value"], Object.entries(found.properties).map(([key, value]) =>
        [key, String(value)])) : el("p", {}, "none"),
    el("h3", {}, "Body"), el("div", { class: "buttons" }, Object.keys(forms).map((form) =>
      el("button", { type: "button", onclick: () => show(form) }, form))), text,
    found.cut ? el("p", {}, "The rest of the body is not shown.") : null,
    el("div", { class: "buttons" },
      el("button", { type: "button", onclick: () => dialog.close() }, "Close")));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

function state(message) {
  if (!message.taken) return "ready";
  return message.holder ? `taken by ${message.holder}` : "taken";
}

function browser(name) {
  const selector = el("input", { type: "search", placeholder: "colour = 'red' AND price < 5",
                                 "aria-label": "Selector" });
  const list = el("div"), note = el("p", { role: "status" });
  let seen = null, pages = [-1];
  async function load() {
    const found = await read("browse",
      { queue: name, selector: selector.value, after: pages.at(-1) });
    const now = new Set(found.messages.map((each) => each.position));
    const came = seen === null ? 0 : [...now].filter((each) => !seen.has(each)).length;
    const went = seen === null ? 0 : [...seen].filter((each) => !now.has(each)).length;
    put(note, seen === null || !(came || went) ? ""
      : `since the last look: ${came} came, ${went} went`);
    put(list, found.messages.length ? table(
      [N("Position"), "Key", N("Size"), N("Deliveries"), "State", "Published", "Body"],
      found.messages.map((each) => ({
        attributes: { class: seen !== null && !seen.has(each.position) ? "new" : null },
        cells: [el("button", { type: "button", class: "link", onclick: () =>
                  message(name, each.position).catch((error) => say(error.message, true)) },
                  String(each.position)),
                each.key, size(each.bytes), each.deliveries, state(each),
                el("span", { class: "instant" }, instant(each.published_at)),
                el("code", { class: "excerpt" }, each.excerpt)],
      }))) : el("p", {}, found.more
        ? `Nothing up to position ${found.last}: the next page looks further.` : "No messages."));
    seen = now;
    next.disabled = !found.more;
    next.onclick = () => { pages.push(found.last); seen = null; again(); };
    first.disabled = pages.length === 1;
  }
  const again = () => load().catch((error) => say(error.message, true));
  const next = el("button", { type: "button", disabled: true }, "Next page");
  const first = el("button", { type: "button", disabled: true,
                               onclick: () => { pages = [-1]; seen = null; again(); } },
                   "First page");
  const form = el("form", { class: "buttons", onsubmit: (event) => {
    event.preventDefault(); pages = [-1]; seen = null; again();
  } }, selector, el("button", {}, "Search"),
  el("button", { type: "button", id: "refresh", onclick: again }, "Refresh"), first, next);
  again();
  return el("section", { id: "messages" }, el("h2", {}, "Messages"), form, note, list);
}

function actions(name, paused) {
  const act = (verb, _, title, text, fields, more) =>
    acted(verb, { queue: name }, title, text, fields, more);
  const count = { name: "count", title: "At most so many (empty: all)", kind: "number", min: 1 };
  const counted = (given) => ({ ...given, count: given.count ? Number(given.count) : null });
  const all = {
    Publish: () => act("publish", name, "Publish", `to queue ${name}`, [
      { name: "body", title: "Body", kind: "area" }, { name: "key", title: "Key" },
      { name: "properties", title: "Properties, a line each: colour=red", kind: "area" }]),
    Move: () => act("move", name, "Move", `messages of ${name} to another queue`, [
      { name: "to", title: "To queue", required: true },
      { name: "selector", title: "Selector" }, count], counted),
    Retry: () => act("retry", name, "Retry",
      `send dead letters of ${name} back to the queues that they came from`, [count], counted),
    Purge: () => act("purge", name, "Purge",
      `throw away all messages of ${name} that no consumer has taken?`, []),
    Delete: () => act("delete", name, "Delete",
      `delete queue ${name} with its messages? No program may have it open.`, [])
      .then((done) => { if (done) location.hash = "#queues"; }),
    [paused ? "Resume" : "Pause"]: () => act(paused ? "resume" : "pause", name,
      paused ? "Resume" : "Pause", paused ? `deliver messages of ${name} again?`
        : `deliver nothing of ${name} until it is resumed?`, []),
  };
  return el("div", { class: "buttons", id: "actions" }, Object.entries(all).map(([title, go]) =>
    el("button", { type: "button", class: ["Purge", "Delete"].includes(title) ? "danger" : null, onclick: go },
      title)));
}

export function queue(main, name, live) {
  const figures = el("section"), doing = el("div"), rest = el("section");
  const rates = el("div", { class: "chart" }), depth = el("div", { class: "chart" });
  const canvas = el("canvas", { class: "heat", role: "img",
                                "aria-label": "How long messages waited, over time" });
  const waited = el("section", { hidden: true }, el("h2", {}, "Waiting times"), canvas);
  put(main, el("h1", {}, name), doing, figures, el("div", { class: "charts" }, rates, depth),
    waited, browser(name), rest);
  const lines = [new Lines(rates, "Messages a second", ["in", "out"], ["--accent", "--good"]),
                 new Lines(depth, "Depth", ["depth"], ["--accent"])];
  const heat = new Heat(canvas);
  let told = null, cells = [];
  const timer = setInterval(() => {
    const row = live.rows.get(name);
    if (!row) return;
    lines[0].add([row.in_per_second, row.out_per_second]);
    lines[1].add([row.depth]);
    if (told?.recorded) heat.add(cells);
    cells = [];
  }, 1000);
  function heard(detail) {
    if (detail.gone) return put(figures, el("p", { class: "notice" }, detail.gone));
    if (session.role === "admin" && (told === null || told.paused !== detail.paused)) {
      put(doing, actions(name, detail.paused));
    }
    told = detail;
    cells = detail.heat ?? [];
    if (waited.hidden === detail.recorded) {
      waited.hidden = !detail.recorded;
      heat.draw();  // it has a width now
    }
    put(figures, detail.critical ? el("p", { class: "notice bad" }, detail.critical) : null,
      el("div", { class: "cards" }, ["depth", "taken", "published", "delivered", "acked", "redelivered",
        "expired", "dead_lettered", "scheduled", "paged", "consumers"].map((key) =>
        el("div", { class: "card" }, el("span", {}, key.replace("_", " ")),
          el("strong", {}, number(detail[key]))))));
    const kinds = Object.entries(detail.latencies);
    put(rest,
      kinds.length ? [el("h2", {}, "Latencies"), table(
        ["Time", N("Count"), N("p50"), N("p90"), N("p99"), N("p99.9"), N("max")],
        kinds.map(([kind, each]) => [kind, number(each.count), duration(each.p50_ns),
          duration(each.p90_ns), duration(each.p99_ns), duration(each.p99_9_ns),
          duration(each.max_ns)]))] : null,
      el("h2", {}, "Who has it open"), table(["Participant", N("Process"), "State"],
        detail.participants.map((each) => [each.name, each.pid, each.state])),
      el("h2", {}, "What holds it back"), detail.gates.length
        ? el("ul", {}, detail.gates.map((each) => el("li", {}, each.text))) : el("p", {}, "nothing"),
      el("h2", {}, "Settings"), table(["Setting", "Value", "From"],
        Object.entries(detail.settings).map(([key, each]) =>
          [key.replaceAll("_", " "), each.value === null ? "–" : String(each.value),
           each.source])));
  }
  read("queue", { name }).then((detail) => told ?? heard(detail)).catch((error) =>
    told ?? put(figures, el("p", { class: "notice" }, error.message)));
  return { heard, close: () => { clearInterval(timer); lines.forEach((each) => each.close()); } };
}
