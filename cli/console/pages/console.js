// The frame of the console: login, tree, theme, and which page is shown (the part behind # says it).
import { enter, listen, read, send, session, silence } from "./api.js";
import { el, put, say } from "./dom.js";
import { queue } from "./queue.js";
import { cluster, doctor, elsewhere, exchanges, links, log, node, overview, participants,
         patterns } from "./views.js";
import { users } from "./users.js";

const top = document.getElementById("top"), side = document.getElementById("side");
const main = document.getElementById("main");
const live = { rows: new Map(), state: null };
const PAGES = { queues: overview, exchanges, patterns, node, cluster, links, participants, users, doctor,
                log };
let page = {}, isLost = false;

function themed(wanted) {
  if (wanted) localStorage.setItem("theme", wanted);
  const theme = localStorage.getItem("theme")
    ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  document.documentElement.dataset.theme = theme;
  return theme;
}

function where() {
  const [kind, value] = location.hash.slice(1).split("=");
  return { kind: kind || "queues", value: value ? decodeURIComponent(value) : null };
}

function header() {
  const state = live.state ?? {};
  const mode = isLost ? "no connection" : state.state ?? "";
  put(top, el("button", { id: "menu", type: "button", "aria-label": "Tree",
                          onclick: () => document.body.classList.toggle("open") }, "☰"),
    el("strong", { id: "name" }, session.name),
    el("span", { id: "mode", class: `mode ${isLost ? "lost" : state.mode ?? ""}` },
      state.mode === "dead" ? `${mode}: what is shown is its memory` : mode),
    state.unread ? el("span", { id: "unread", class: "bad" },
      `what is shown is of before: ${state.unread}`) : null,
    el("span", { class: "space" }),
    el("button", { type: "button", id: "theme", onclick: () => {
      themed(themed() === "dark" ? "light" : "dark"); show(); } }, "Theme"),
    el("span", { class: "who" }, session.user ? `${session.user} (${session.role})` : ""),
    session.user ? el("button", { type: "button", id: "logout", onclick: async () => {
      await send("logout", {}); silence(); location.hash = ""; location.reload(); } },
      "Log out") : null);
}

const opened = new Map();  // what somebody has opened or closed stays so when the tree is new
function branch(of, depth, path = "") {
  const leaf = !of.children?.length;
  if (of.kind === "queue") {
    return el("li", {}, el("a", { href: `#queue=${encodeURIComponent(of.name)}` }, of.name));
  }
  if (leaf) return el("li", { title: of.title ?? null }, of.name);
  const here = JSON.stringify([path, of.name]);
  const opens = opened.get(here)
    ?? (depth < 2 || ["queues", "anycast", "multicast"].includes(of.kind));
  return el("li", {}, el("details", { open: opens },
    el("summary", { onclick: ({ currentTarget }) =>
      opened.set(here, !currentTarget.parentElement.open) }, of.name),
    el("ul", {}, of.children.map((each) => branch(each, depth + 1, here)),
      of.more ? el("li", {}, `and ${of.more} more: see Queues`) : null)));
}

async function tree(looks = {}) {
  const found = await read("tree", looks);
  const titles = { queues: "Queues", exchanges: "Exchanges",
                   patterns: "Settings", node: "Node", cluster: "Cluster", links: "Links",
                   participants: "Participants", users: "Users", doctor: "Doctor", log: "Log" };
  const isPassive = !found.children.some((each) => each.kind === "addresses");
  put(side, el("ul", { class: "pages" }, Object.entries(titles)
    .filter(([kind]) => kind !== "users" || session.role === "admin")
    .filter(([kind]) => !(isPassive && ["queues", "exchanges", "patterns", "participants", "links", "doctor"].includes(kind)))
    .map(([kind, title]) => el("li", {}, el("a", { href: `#${kind}` }, title)))),
    el("ul", { class: "tree" }, branch(found, 0)));
  marked();
}

function marked() {
  for (const each of side.querySelectorAll("a")) {
    const isHere = each.getAttribute("href") === (location.hash || "#queues");
    if (isHere) each.setAttribute("aria-current", "page"); else each.removeAttribute("aria-current");
  }
}

const drawTree = () => tree({ looks: 1 }).catch(() => {});  // the next event tries it again
let names = "";
function heard(kind, content) {
  isLost = kind === "lost";
  if (isLost) enter().then((isIn) => isIn || login()).catch(() => {});
  if (kind === "state") {
    const before = live.state?.mode;
    live.state = content;
    if (before && before !== content.mode) { live.rows.clear(); drawTree(); show(); }
  }
  if (kind === "queues") {
    if (content.whole) live.rows.clear();
    for (const row of content.rows) live.rows.set(row.name, row);
    for (const name of content.gone) live.rows.delete(name);
    if (!content.more) {
      const now = [...live.rows.keys()].sort().join("\n");
      if (names !== now) { names = now; drawTree(); }
    }
  }
  if (kind === "queue") page.heard?.(content);
  header();
  if (kind === "queues" || kind === "state") page.draw?.();
}

let turn = 0;
async function show() {
  page.close?.();
  page = {};
  const mine = ++turn, place = el("div", { class: "page" });
  document.body.classList.remove("open");
  const { kind, value } = where();
  const state = await read("state").catch(() => null);
  if (state) live.state = state;
  if (mine !== turn) return;  // somebody has gone on to another page
  header();
  put(main, place);
  try {
    const hidden = state && !["live", "dead"].includes(state.mode);
    const made = kind === "queue" ? (hidden ? elsewhere : queue)(place, value, live)
      : await (hidden && kind === "queues" ? node : PAGES[kind] ?? overview)(place, live);
    if (mine !== turn) return made.close?.();
    page = made;
  } catch (error) {
    if (error.status === 401) return login();
    say(error.message, true);
  }
  marked();
  listen({ queues: 1, ...(kind === "queue" ? { queue: value } : {}) }, heard);
  main.focus({ preventScroll: true });
}

function login(why = "") {
  turn += 1;
  silence();
  page.close?.();
  page = {};
  put(side);
  header();
  const user = el("input", { name: "user", autocomplete: "username", required: true });
  const password = el("input", { name: "password", type: "password", required: true,
                                 autocomplete: "current-password" });
  const note = el("p", { role: "alert", class: "bad" }, why);
  const form = el("form", { class: "login", onsubmit: async (event) => {
    event.preventDefault();
    try {
      Object.assign(session, await send("login", { user: user.value, password: password.value }));
      begin();
    } catch (error) { put(note, error.message); }
  } }, el("h1", {}, "Log in"), note,
  session.passwords ? [el("label", {}, "User", user), el("label", {}, "Password", password),
                       el("button", { class: "primary" }, "Log in")]
    : el("p", {}, "No credentials may log in here. On the host of the broker, ",
      el("code", {}, "shmbroker console open DIR"), " prints a link that is good once."));
  put(main, form);
  user.focus();
}

async function begin() {
  const { kind, value } = where();
  if (kind === "link") {
    history.replaceState(null, "", location.pathname);  // nobody finds it in the history
    await enter();
    try { Object.assign(session, await send("login", { link: value })); }
    catch (error) { return login(error.message); }
  }
  if (!await enter()) return login();
  await Promise.all([tree(), show()]);
}

const start = () => begin().catch((error) => say(error.message, true));
window.addEventListener("hashchange", () => where().kind === "link" ? start() : show());
window.addEventListener("keydown", (event) => {
  const isTyping = /^(INPUT|TEXTAREA)$/.test(document.activeElement?.tagName ?? "");
  if (event.key === "/" && !isTyping) {
    document.querySelector("input[type=search]")?.focus();
    event.preventDefault();
  }
});
themed();
start();
