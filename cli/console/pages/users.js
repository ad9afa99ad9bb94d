// Users: who may log in, and as what; for admins only.  A password is sent, and never shown.
import { read, session } from "./api.js";
import { act } from "./act.js";
import { el, put, table } from "./dom.js";
import { refreshed } from "./views.js";

export const users = (main) =>
  refreshed((looks) => read("users", looks), (found) => draw(main, found));

const listed = (text) => text.split(",").map((each) => each.trim()).filter((each) => each);
const password = { name: "password", title: "Password", kind: "password", required: true,
                   autocomplete: "new-password" };
const logsIn = (checked) => ({ name: "console", title: "May log in at the console",
                               kind: "checkbox", checked });
const roles = (value) => ({ name: "roles", value, required: true,
  title: "Roles, with commas: client, admin, viewer, peering, replica, cluster, witness" });

function draw(main, found) {
  const button = (title, go, kind = null) =>
    el("button", { type: "button", class: kind, onclick: go }, title);
  const own = (user) => user.user !== session.user ? [] : [{ name: "confirm",
    title: `You are ${user.name}: type that name to give up your own rights` }];
  const add = () => act("add-user", {}, "New user", null, [
    { name: "name", title: "Name: letters, digits, - and _", required: true },
    { name: "user", title: "Logs in as (empty: its name)" },
    password, roles("viewer"), logsIn(true)],
  (given) => ({ ...given, roles: listed(given.roles) }));
  const change = (user) => act("change-user", { name: user.name }, "Change",
    `what ${user.name} may do; its links and sessions end`,
    [roles(user.roles.join(", ")), logsIn(user.console), ...own(user)],
    (given) => ({ ...given, roles: listed(given.roles) }));
  const renew = (user) => act("change-user", { name: user.name }, "New password",
    `of ${user.name}; its links and sessions end`, [password]);
  const remove = (user) => act("remove-user", { name: user.name }, "Remove",
    `remove ${user.name}? Its links and sessions end.`, own(user));
  put(main, el("h1", {}, "Users"), el("div", { class: "buttons" }, button("New user", add)),
    table(["Name", "Logs in as", "Roles", "Console", "Password", ""], found.map((user) => [
      user.name, user.user, user.roles.join(", "), user.console ? "yes" : "no",
      user.accept_also ? `${user.password}, and ${user.accept_also} more` : user.password,
      el("div", { class: "buttons" }, button("Change", () => change(user)),
        button("New password", () => renew(user)),
        button("Remove", () => remove(user), "danger"))])));
}
