// Keys, and what is judged leaves before the answer comes. Everything else is htmx and plain forms.

const $ = (selector, within = document) => within.querySelector(selector);
const $$ = (selector, within = document) => [...within.querySelectorAll(selector)];
const shown = () => $$(".item:not(.leaving) > article");
const current = () => document.activeElement?.closest(".item > article");
const chosen = () => $$(".item:not(.leaving) input[form=bulk]:checked");

function say(sentence, wrong = false) {
  const place = $("#said");
  place.textContent = sentence;
  place.classList.toggle("wrong", wrong);
}

// --- what is judged leaves at once, and comes back if the request fails ------------------------------------------

const leaving = new WeakMap(); // the items that a request judges

document.addEventListener("htmx:beforeRequest", ({ detail }) => {
  const form = detail.elt;
  if (!form.matches("[data-judging]")) return;
  const items = form.id === "bulk" ? chosen().map((box) => box.closest(".item")) : [form.closest(".item")];
  const articles = shown();
  const at = current() ? articles.indexOf(current()) : -1;
  items.forEach((item) => item.classList.add("leaving"));
  leaving.set(detail.xhr, items);
  if (at >= 0) {
    const next = articles.slice(at).find((each) => !each.parentElement.matches(".leaving")) ?? shown().at(-1);
    next?.focus();
  }
  count();
});

document.addEventListener("htmx:afterRequest", ({ detail }) => {
  for (const item of leaving.get(detail.xhr) ?? []) {
    if (!item.isConnected) continue;
    item.classList.remove("leaving"); // it was not judged after all
    if (!current()) $("article", item).focus();
  }
  const list = $("#list");
  if (list && detail.successful && !shown().length && detail.elt.matches("[data-judging]")) htmx.trigger(list, "refill");
  count();
});

document.addEventListener("htmx:afterSwap", () => $("#said")?.classList.remove("wrong"));
document.addEventListener("htmx:responseError", ({ detail }) => {
  const html = detail.xhr.getResponseHeader("Content-Type")?.startsWith("text/html");
  const text = new DOMParser().parseFromString(html ? detail.xhr.responseText : "", "text/html").body.textContent.trim();
  say(text || "The service answered with an error; nothing was changed.", true);
});
for (const name of ["htmx:sendError", "htmx:timeout"]) {
  document.addEventListener(name, () => say("The service does not answer; nothing was changed.", true));
}

// A form that is previewed while somebody writes says beside it what is wrong with it.
document.addEventListener("htmx:responseError", ({ detail }) => {
  const place = document.getElementById(detail.elt.dataset.explains ?? "");
  if (!place) return;
  const sentence = document.createElement("p");
  sentence.className = "wrong";
  sentence.textContent = $("#said").textContent;
  place.replaceChildren(sentence);
  $("#said").textContent = "";
});

// --- several at once ---------------------------------------------------------------------------------------------

function count() {
  const form = $("#bulk");
  if (!form) return;
  const n = chosen().length;
  form.hidden = n === 0;
  $("#selected").textContent = n ? `${n} selected` : "";
}

document.addEventListener("change", ({ target }) => {
  if (target.matches("input[form=bulk]")) count();
  if (target.id === "keys-on") localStorage.setItem("keys", target.checked ? "on" : "off");
});

// --- clicks that open, close, or ask -----------------------------------------------------------------------------

document.addEventListener("click", (event) => {
  const opener = event.target.closest("[data-opens]");
  if (opener) document.getElementById(opener.dataset.opens).showModal();
  if (event.target.closest("#select-none")) {
    chosen().forEach((box) => (box.checked = false));
    count();
  }
});

// --- keys ----------------------------------------------------------------------------------------------------------

function step(by) {
  const articles = shown();
  const at = articles.indexOf(current());
  const next = at < 0 ? articles[0] : articles[Math.min(Math.max(at + by, 0), articles.length - 1)];
  next?.focus();
}

function judge(verdict) {
  const form = chosen().length ? $("#bulk") : $("[data-judging]", current() ?? shown()[0] ?? document.body);
  const button = form && $(`[value=${verdict}]`, form);
  if (button && shown().length) {
    if (!current() && form.id !== "bulk") form.closest("article").focus();
    button.click();
  }
}

const keys = {
  j: () => step(1),
  k: () => step(-1),
  y: () => judge("yes"),
  n: () => judge("no"),
  s: () => judge("skip"),
  u: () => $("#judged [data-undo]:not(.htmx-request)")?.requestSubmit(),
  o: () => $(".original", current() ?? undefined)?.click(),
  f: () => fullText(current()),
  x: () => current() && $("input[form=bulk]", current()).click(),
  "?": () => $("#keys").showModal(),
};

function fullText(article) {
  const long = article && $(".fulltext", article);
  if (long) long.hidden = !long.hidden;
  else if (article) $(".full", article).click();
}

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input:not([type=checkbox]), textarea, select, [contenteditable]");
  if (typing || event.ctrlKey || event.metaKey || event.altKey || $("dialog[open]")) return;
  const off = localStorage.getItem("keys") === "off";
  if (keys[event.key] && (!off || event.key === "?")) {
    event.preventDefault();
    keys[event.key]();
  }
});

const box = $("#keys-on");
if (box) box.checked = localStorage.getItem("keys") !== "off";
