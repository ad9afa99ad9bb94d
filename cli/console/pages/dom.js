// Elements are made here, and text is only ever text: nothing that a broker says is markup.

export function el(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key === "value") made.value = value;
    else made.setAttribute(key, value === true ? "" : String(value));
  }
  made.append(...children.flat(Infinity).filter((each) => each !== null && each !== undefined));
  return made;
}

export function put(place, ...children) {
  place.replaceChildren(...children.flat(Infinity).filter((each) => each !== null && each !== undefined));
}

export function table(headers, rows, caption) {
  // on a phone, rows with buttons stand one below the other: nobody scrolls sideways to a button
  const acts = headers.at(-1) === "";
  const head = headers.map((each) =>
    el("th", { scope: "col", class: each.number ? "number" : null }, each.title ?? each));
  const body = rows.map((row) => {
    const cells = row.cells ?? row;
    return el("tr", row.attributes ?? {}, cells.map((cell, at) =>
      el("td", { class: headers[at].number ? "number" : null,
                 "data-title": acts ? headers[at].title ?? headers[at] : null }, cell ?? "–")));
  });
  return el("div", { class: "scroll" }, el("table", { class: acts ? "acts" : null },
    caption ? el("caption", {}, caption) : null,
    el("thead", {}, el("tr", {}, head)), el("tbody", {}, body)));
}

export function pairs(fields) {
  return el("dl", { class: "pairs" }, Object.entries(fields).map(([key, value]) =>
    [el("dt", {}, key), el("dd", {}, (value ?? "") === "" ? "–" : value)]));
}

export function say(text, isError = false) {
  const made = el("div", { class: isError ? "toast error" : "toast" }, text);
  document.getElementById("toasts").append(made);
  setTimeout(() => made.remove(), isError ? 12000 : 5000);
}

export function ask(title, text, fields, verb) {
  // a dialog; its answer is an object by names of fields, or null
  return new Promise((answer) => {
    const inputs = fields.map((each) => each.kind === "area"
      ? el("textarea", { name: each.name, rows: 6, required: each.required }, each.value ?? "")
      : el("input", { name: each.name, type: each.kind ?? "text", required: each.required,
                      value: each.value ?? "", list: each.list, min: each.min,
                      checked: each.checked, autocomplete: each.autocomplete ?? "off" }));
    const dialog = el("dialog", { "aria-label": title }, el("form", { method: "dialog" },
      el("h2", {}, title), text ? el("p", {}, text) : null,
      inputs.map((input, at) => el("label", {}, fields[at].title, input)),
      el("div", { class: "buttons" },
        el("button", { type: "button", onclick: () => dialog.close("") }, "Cancel"),
        el("button", { type: "submit", class: "primary", value: "yes" }, verb))));
    dialog.addEventListener("close", () => {
      dialog.remove();
      if (dialog.returnValue !== "yes") return answer(null);
      answer(Object.fromEntries(inputs.map((each) =>
        [each.name, each.type === "checkbox" ? each.checked : each.value])));
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}
