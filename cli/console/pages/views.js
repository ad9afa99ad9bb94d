// The pages that are not of one queue: overview, node, cluster, links, log and errors.
import { read, session } from "./api.js";
import { act } from "./act.js";
import { el, pairs, put, table } from "./dom.js";
import { duration, instant, number, size } from "./units.js";

const N = (title) => ({ title, number: true });

export function overview(main, live) {
  const filter = el("input", { type: "search", placeholder: "Filter by name",
                               "aria-label": "Filter queues by name", oninput: draw });
  const sums = el("section", { class: "cards" }), list = el("section");
  const make = session.role !== "admin" ? null : el("div", { class: "buttons" },
    el("button", { type: "button", onclick: () => act("declare", {}, "New queue", null, [
      { name: "queue", title: "Name", required: true },
      { name: "durable", title: "Durable", kind: "checkbox" }]) }, "New queue"));
  put(main, el("h1", {}, "Queues"), make, sums, filter, list);
  function draw() {
    const state = live.state ?? {};
    put(sums, [["queues", number(state.queues)], ["messages", number(state.depth)],
               ["in/s", number(state.in_per_second)], ["out/s", number(state.out_per_second)],
               ["critical", number(state.critical)]].map(([title, value]) =>
      el("div", { class: title === "critical" && state.critical ? "card bad" : "card" },
        el("span", {}, title), el("strong", {}, value))));
    const wanted = filter.value.toLowerCase();
    const rows = [...live.rows.values()]
      .filter((row) => row.name.toLowerCase().includes(wanted))
      .sort((a, b) => (b.critical !== null) - (a.critical !== null)
        || b.in_per_second + b.out_per_second - a.in_per_second - a.out_per_second
        || b.depth - a.depth || (a.name < b.name ? -1 : 1));
    const shown = rows.slice(0, 200);
    put(list, table(["Name", N("Depth"), N("In/s"), N("Out/s"), N("Consumers"), N("Producers"),
                     "State"],
      shown.map((row) => [
        el("a", { href: `#queue=${encodeURIComponent(row.name)}` }, row.name),
        number(row.depth), number(row.in_per_second), number(row.out_per_second),
        number(row.consumers), number(row.producers),
        row.critical ? el("span", { class: "bad", title: row.critical }, "critical")
          : row.paused ? "paused" : "running"])),
      rows.length > shown.length ? el("p", {}, `and ${number(rows.length - shown.length)} more: `
        + "filter by name") : null);
  }
  draw();
  return { draw };
}

function passive(state, page = "") {
  // it has no queues: where they are, as far as it is known
  return el("p", { class: "notice" },
    `This broker is ${state.mode === "passive" ? "passive" : "down"}: `
    + `${state.replication || state.state}. It shows no queues. `
    + (state.live ? `Its live is at ${state.live}. ` : "Its live is not known. "),
    state.console ? el("a", { id: "live", href: `${state.console}${page}`, rel: "noreferrer" },
      "Console of the live") : null);
}

export function elsewhere(main, name, live) {
  // the page of a queue, on a broker that has none
  const draw = () =>
    put(main, el("h1", {}, name), passive(live.state ?? {}, `#queue=${encodeURIComponent(name)}`));
  draw();
  return { draw };
}

const EVERY = 2000;
export async function refreshed(ask, draw) {
  // drawn anew if there is something new: what somebody has selected or focused stays else
  let seen = null;
  async function again(looks = {}) {
    const found = await ask(looks), text = JSON.stringify(found);
    if (text !== seen) draw(found);
    seen = text;
  }
  await again();
  const timer = setInterval(() => document.hidden || again({ looks: 1 }).catch(() => {}), EVERY);
  return { close: () => clearInterval(timer) };
}

export const node = (main) => refreshed((looks) => read("ha", looks), (told) => drawNode(main, told));
export const cluster = (main) =>
  refreshed((looks) => read("cluster", looks), (told) => drawCluster(main, told));
export const links = (main) =>
  refreshed((looks) => read("links", looks), (found) => drawLinks(main, found));
export const participants = (main) =>
  refreshed((looks) => read("participants", looks), (found) => drawParticipants(main, found));
export const exchanges = (main) =>
  refreshed((looks) => read("exchanges", looks), (found) => drawExchanges(main, found));
export const patterns = (main) =>
  refreshed((looks) => read("patterns", looks), (found) => drawPatterns(main, found));
export const doctor = (main) =>
  refreshed((looks) => read("doctor", looks), (found) => drawFindings(main, found));
export const log = (main) => refreshed(
  async (looks) => [await read("log", looks),
                    await read("errors", looks).catch((error) => error.message)],
  ([lines, errors]) => drawLog(main, lines, errors));

const amount = (part, whole) => part === undefined ? null
  : whole === undefined ? size(part) : `${size(part)} of ${size(whole)}`;

function drawNode(main, told) {
  const of = told.told;
  const notes = [];
  if (of.answers === false) {
    notes.push(el("p", { class: "notice" },
      "The broker does not answer: this is what it has said last."));
  }
  put(main, el("h1", {}, "Node"), notes,
    ["passive", "down"].includes(told.mode) ? passive(told) : null,
    pairs({ name: told.name, vhost: told.vhost, state: told.state, policy: told.policy, role: told.role,
            replication: told.replication, epoch: number(told.epoch), "node id": of.node,
            level: of.level, live: of.live ?? told.live, process: told.process ?? "none",
            why: told.why, version: told.version,
            "runs for": told.resources.up_seconds === undefined ? null
              : duration(told.resources.up_seconds * 1e9) }),
    el("h2", {}, "Listens"), told.listens.length ? table(["Acceptor", "Address", "Roles"],
      told.listens.map((each) => [each.name, each.uri, each.roles.join(", ")]))
      : el("p", {}, "no acceptor: it is reached on its own host only"),
    el("h2", {}, "Resources"), pairs({
      "memory of messages": amount(told.resources.arena_used_bytes, told.resources.arena_bytes),
      "disk of the store, free": amount(told.resources.store_free_bytes, told.resources.store_bytes),
      "memory of the broker": amount(told.resources.process_bytes),
      "processor time": told.resources.processor_seconds === undefined ? null
        : `${number(told.resources.processor_seconds)} s` }),
    of.replicas?.length ? [el("h2", {}, "Replicas"), table(
      ["Replica", "In sync", "State", N("Lag"), N("ms")], of.replicas.map((each) =>
        [each.member, each["in-sync"] ? "yes" : "no", each.state, size(each["lag-bytes"] ?? 0),
         number(each["lag-ms"] ?? 0)]))] : null,
    of.members ? [el("h2", {}, "Members"), table(["Member", "Linked", "State", "In sync"],
      of.members.map((each) => [each.member, each.linked ? "yes" : "no", each.state,
                                each["in-sync"] ? "yes" : "no"]))] : null,
    Object.keys(of.voters ?? {}).length ? [el("h2", {}, "Voters"), table(["Voter", "State"],
      Object.entries(of.voters))] : null);
}

function drawCluster(main, { told, configured }) {
  const nodes = told.nodes ?? [];
  put(main, el("h1", {}, "Cluster"),
    nodes.length ? el("ul", { class: "map" }, nodes.map((each) =>
      el("li", { class: each.state === "missing" ? "bad" : null },
        el("strong", {}, each.name), el("span", {}, each.address),
        el("span", {}, `${each.state}, ${number(each.waiting ?? 0)} on their way`),
        Object.keys(each.backups ?? {}).map((name) => el("span", {}, `backup ${name}`)))))
      : el("p", {}, "This broker is in no cluster, or does not know it yet."),
    configured.children.map((part) => [el("h2", {}, part.name),
      part.children.length ? el("ul", {}, part.children.map((each) =>
        el("li", {}, each.title ? `${each.name}: ${each.title}` : each.name)))
        : el("p", {}, "none")]));
}

function drawLinks(main, found) {
  put(main, el("h1", {}, "Links"), found.length ? table(
    ["Link", "State", "Peer", N("Sent"), N("Lag"), N("p99"), N("Attempts"), "Reason"],
    found.map((each) => [each.name, each.state, each.peer, number(each.messages),
      number(each.lag), each.append_confirm_ns.messages
        ? duration(each.append_confirm_ns["p99"]) : "–", number(each.attempts), each.reason]))
    : el("p", {}, "This broker has no links."));
}

function drawLog(main, lines, errors) {
  put(main, el("h1", {}, "Log and errors"),
    el("h2", {}, "Errors"), typeof errors === "string" ? el("p", { class: "notice" }, errors)
      : errors.length ? table([N("Count"), "First", "Last", "Error"],
      errors.map((each) => [number(each.count), instant(each.first_at), instant(each.last_at),
                            each.text])) : el("p", {}, "none"),
    el("h2", {}, "Log"), table(["Time", "Event", "More"], lines.map((each) => {
      const { time, event, instance, ...more } = each;
      return [el("span", { class: "instant" }, time.slice(0, 23).replace("T", " ")), event, Object.entries(more).map(([key, value]) =>
        `${key}: ${typeof value === "string" ? value : JSON.stringify(value)}`).join(", ")];
    })));
}

function drawExchanges(main, found) {
  const isAdmin = session.role === "admin";
  const button = (title, go) => el("button", { type: "button", onclick: go }, title);
  const named = { name: "queue", title: "Queue", required: true }, key = { name: "key", title: "Key" };
  const binding = (of, each) => el("li", {}, `${each.to} ${each.destination}`,
    each.key ? ` by ${each.key}` : "", " ", isAdmin && each.to === "queue" && !each.arguments
      ? button("Unbind", () => act("unbind",
        { exchange: of.name, queue: each.destination, key: each.key }, "Unbind",
        `let ${each.destination} have no messages of ${of.name} by this key?`, [])) : null);
  put(main, el("h1", {}, "Exchanges"), isAdmin ? el("div", { class: "buttons" },
    button("New exchange", () => act("declare-exchange", {}, "New exchange", null, [
      { name: "exchange", title: "Name", required: true },
      { name: "kind", title: "Kind: direct, topic, fanout or headers", value: "topic",
        required: true }]))) : null,
    found.length ? table(["Name", "Kind", "Bindings", ""], found.map((each) => [
      each.name, each.kind, el("ul", { class: "plain" }, each.bindings.map((of) => binding(each, of))),
      isAdmin ? el("div", { class: "buttons" },
        button("Bind", () => act("bind", { exchange: each.name }, "Bind",
          `a queue to ${each.name}`, [named, key])),
        button("Delete", () => act("delete-exchange", { exchange: each.name }, "Delete",
          `delete exchange ${each.name}?`, []))) : ""])) : el("p", {}, "none"));
}

function drawPatterns(main, found) {
  const text = (of) => Object.entries(of).map(([key, value]) => `${key}=${JSON.stringify(value)}`);
  const isAdmin = session.role === "admin";
  const set = (pattern, settings) => () => act("settings", {}, "Set",
    "for queues that are declared from now on", [
      { name: "pattern", title: "Pattern, as in orders.#", value: pattern, required: true },
      { name: "settings", title: "Settings, a line each: max_deliveries=3", kind: "area",
        value: settings.join("\n"), required: true }]);
  put(main, el("h1", {}, "Settings by pattern"), isAdmin ? el("div", { class: "buttons" },
    el("button", { type: "button", onclick: set("", []) }, "New pattern")) : null,
    found.length ? table(["Pattern", "Settings", ""], found.map((each) => [
      each.pattern, text(each.settings).join(", "), isAdmin ? el("div", { class: "buttons" },
        el("button", { type: "button", onclick: set(each.pattern, text(each.settings)) }, "Change"),
        el("button", { type: "button", onclick: () => act("remove-settings",
          { pattern: each.pattern }, "Remove", `settings of ${each.pattern}?`, []) }, "Remove"))
        : ""])) : el("p", {}, "none"));
}

function drawFindings(main, found) {
  put(main, el("h1", {}, "Doctor"), found.length
    ? table(["", "Subject", "Problem", "Remedy"], found.map((each) =>
      [el("span", { class: each.severity === "note" ? null : "bad" }, each.severity),
       each.subject, each.problem, each.remedy]))
    : el("p", {}, "Nothing is wrong with this broker and its queues."));
}

function drawParticipants(main, found) {
  const isAdmin = session.role === "admin";
  const end = (each) => act("disconnect", { id: String(each.id ?? each.remote.session) },
    "Disconnect", `disconnect ${each.name || "this program"}? What it has in hand goes back to its `
    + "queues. It may connect again.", []);
  const whence = ({ remote }) => remote?.address ? `${remote.user}@${remote.address}` : null;
  const bytes = (count) => count === undefined || count === null ? null : size(count);
  put(main, el("h1", {}, "Participants"), table(
    [N("Id"), "Name", N("Process"), "State", N("Holds"), N("Queues"), "From", N("In"), N("Out"),
     ...(isAdmin ? [""] : [])],
    found.map((each) => [each.id ?? each.remote.session.slice(0, 8), each.name, each.pid,
      each.state, size(each.bytes), number(each.queues), whence(each),
      bytes(each.remote?.received_bytes), bytes(each.remote?.sent_bytes),
      ...(isAdmin ? [each.own ? "" : el("button", { type: "button", class: "danger",
        onclick: () => end(each) }, "Disconnect")] : [])])));
}
