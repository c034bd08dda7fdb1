// The frame of the page: polls the server, computes rates, and shows the overview or one informer.
import { Plot, WINDOW, arrows, bytes, count, duration, h, keyed, rate, text } from "./draw.js";
import { InformerPage } from "./informer.js";
import { healthText, link, request, severity } from "./server.js";

const POLL_MS = 1000;
const MAX_KEYS = 6;
const by = (id) => document.getElementById(id);

/** The counters of the last polls of each informer, and the rates between them. */
const histories = new Map();
let page = null;
let latest = null;

function route() {
  const parts = new URLSearchParams(location.hash.slice(1));
  return { informer: parts.get("informer"), object: parts.get("object") };
}

function record(document) {
  const ids = new Set(document.informers.map((informer) => informer.id));
  for (const id of histories.keys()) if (!ids.has(id)) histories.delete(id);
  for (const informer of document.informers) {
    const { added, modified, deleted } = informer.events;
    const events = added + modified + deleted;
    const calls = informer.handlers.reduce((sum, handler) => sum + handler.delivered, 0);
    const pending = informer.handlers.reduce((most, handler) => Math.max(most, handler.pending), 0);
    let history = histories.get(informer.id);
    if (!history) histories.set(informer.id, (history = { events: [], calls: [], queued: [], pending: [], objects: [] }));
    const seconds = history.last ? (document.at - history.last.at) / 1000 : 0;
    const push = (name, value) => {
      history[name].push(value);
      if (history[name].length > WINDOW) history[name].shift();
    };
    if (seconds > 0) {
      push("events", Math.max(events - history.last.events, 0) / seconds);
      push("calls", Math.max(calls - history.last.calls, 0) / seconds);
    }
    push("queued", informer.queued);
    push("pending", pending);
    push("objects", informer.objects);
    history.last = { at: document.at, events, calls };
  }
}

const tiles = [
  ["Informers live", (it) => `${it.informers.filter((one) => one.health === "live").length} of ${it.informers.length}`],
  ["Objects", (it) => count(it.informers.reduce((sum, one) => sum + one.objects, 0))],
  ["Events per second", () => rate(total("events").at(-1) ?? null), () => total("events")],
  ["Queued", (it) => count(it.informers.reduce((sum, one) => sum + one.queued, 0)), () => total("queued")],
  ["Quarantined", (it) => count(it.informers.reduce((sum, one) => sum + one.quarantined, 0))],
  ["Process memory", (it) => bytes(it.memory) ?? "–"],
];

/** Adds the histories of all informers. The histories can differ in length, but all end at the same time. */
function total(name) {
  const all = [...histories.values()].map((history) => history[name]);
  const length = Math.max(0, ...all.map((values) => values.length));
  const at = (values, index) => values[values.length - length + index] ?? 0;
  return Array.from({ length }, (_, index) => all.reduce((sum, values) => sum + at(values, index), 0));
}

function showTiles(document) {
  keyed(by("tiles"), tiles, ([title]) => title, ([title, , series]) => {
    const tile = h("div", {}, h("dt", {}, title), h("dd", {}));
    if (series) {
      tile.plot = new Plot({ width: 120, height: 22 });
      tile.append(tile.plot.element);
    }
    return tile;
  }, (tile, [, value, series]) => {
    text(tile.querySelector("dd"), value(document));
    tile.plot?.update(series());
  });
}

function createRow(informer) {
  const cell = (name, ...children) => h("span", { class: `cell ${name}`, "data-stage": name }, ...children);
  const row = h("a", { href: link({ informer: informer.id }), "data-row": true, class: "row" });
  row.parts = {};
  for (const name of ["health", "rate", "queued", "quarantined", "objects", "size", "handlers", "lag"]) row.parts[name] = h("span", { class: name });
  row.parts.name = h("b", { class: "name" });
  row.plot = new Plot();
  row.append(
    cell("server", h("span", { class: "title" }, h("i", { class: "dot" }), row.parts.name), row.parts.health),
    cell("reflector", row.parts.rate, row.plot.element),
    cell("queue", row.parts.queued, row.parts.quarantined),
    cell("store", row.parts.objects, row.parts.size),
    cell("handlers", row.parts.handlers, row.parts.lag));
  return row;
}

function updateRow(row, informer) {
  const history = histories.get(informer.id);
  const pending = history.pending.at(-1) ?? 0;
  const events = history.events.at(-1) ?? null;
  const { parts } = row;
  row.dataset.severity = severity(informer);
  text(parts.name, informer.description);
  text(parts.health, healthText(informer));
  text(parts.rate, `${rate(events)}/s`);
  text(parts.queued, count(informer.queued));
  text(parts.quarantined, informer.quarantined ? `${count(informer.quarantined)} quarantined` : "");
  text(parts.objects, `${count(informer.objects)} object${informer.objects === 1 ? "" : "s"}`);
  text(parts.size, [informer.object, bytes(informer.bytes) && `≈ ${bytes(informer.bytes)} JSON`].filter(Boolean).join(" · "));
  text(parts.handlers, `${informer.handlers.length} handler${informer.handlers.length === 1 ? "" : "s"}`);
  text(parts.lag, pending ? `${count(pending)} pending` : "no lag");
  parts.queued.classList.toggle("warn", informer.queued > 1000);
  parts.lag.classList.toggle("warn", pending > 1000);
  row.classList.toggle("flowing", (events ?? 0) > 0);
  row.plot.update(history.events);
}

function showInformers(document) {
  const words = by("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  const matches = (informer) => words.every((word) => `${informer.id} ${informer.health} ${informer.state}`.toLowerCase().includes(word));
  const order = { bad: 0, busy: 1, good: 2 };
  const found = document.informers.filter(matches);
  // Informers with problems come first.
  found.sort((a, b) => order[severity(a)] - order[severity(b)]);
  keyed(by("informers"), found, (informer) => informer.id, createRow, updateRow);
  by("none").hidden = found.length > 0;
  text(by("filtered"), words.length ? `${found.length} of ${document.informers.length}` : "");
}

function createController(controller) {
  return h("article", { class: "card" }, h("h3", {}, controller.name || "controller"),
    h("dl", { class: "facts" }), h("div", { class: "failed" }), h("div", { class: "parked" }));
}

function updateController(card, it) {
  const facts = [["Queued", count(it.queued)], ["Active", count(it.active)], ["Parked", count(it.parkedNow)],
    ["Succeeded", count(it.succeeded)], ["Failed", count(it.failed)], ["Longest call", duration(it.longestMs)]];
  keyed(card.querySelector(".facts"), facts, ([name]) => name,
    ([name]) => h("div", {}, h("dt", {}, name), h("dd", {})),
    (element, [, value]) => text(element.querySelector("dd"), value));
  const failed = it.failedKeys.map((key) => [key.key, `${key.failures}×, retry in ${duration(key.retryMs)}`, key.failure]);
  const parked = it.parkedKeys.map((key) => [key.key, `parked for ${duration(key.ageMs)}`, ""]);
  for (const [name, title, lines] of [["failed", "Failing keys", failed], ["parked", "Parked keys", parked]]) {
    const part = card.querySelector(`.${name}`);
    part.hidden = lines.length === 0;
    if (!part.firstChild) part.append(h("h4", {}), h("ul", { class: "keys" }));
    text(part.querySelector("h4"), lines.length > MAX_KEYS ? `${title}, ${MAX_KEYS} of ${lines.length}` : title);
    keyed(part.querySelector("ul"), lines.slice(0, MAX_KEYS), ([key]) => key,
      () => h("li", {}, h("b", {}), h("span", { class: "quiet" }), h("span", { class: "error" })),
      (element, line) => line.forEach((value, index) => text(element.children[index], value)));
  }
}

function showOverview(document) {
  showTiles(document);
  showInformers(document);
  by("controllers-part").hidden = document.controllers.length === 0;
  const named = document.controllers.map((controller, index) => ({ ...controller, index }));
  keyed(by("controllers"), named, (controller) => controller.index, createController, updateController);
}

function showTrail({ informer, object }) {
  const steps = [];
  if (informer) steps.push([informer, link({ informer })]);
  if (informer && object) steps.push([object, link({ informer, object })]);
  by("trail").replaceChildren(...steps.map(([name, href], index) =>
    h("a", { href, "aria-current": index === steps.length - 1 ? "page" : null }, name)));
  document.title = steps.length ? `${steps.at(-1)[0]} – Informers` : "Informers";
}

function show(isNavigation = false) {
  const target = route();
  by("overview").hidden = Boolean(target.informer);
  by("informer").hidden = !target.informer;
  if (isNavigation) showTrail(target);
  if (!target.informer) {
    page = null;
    by("informer").replaceChildren();
    if (latest) showOverview(latest);
    if (isNavigation && show.from) (by("informers").elements?.get(show.from) ?? by("main")).focus();
    return;
  }
  show.from = target.informer;
  if (page?.id !== target.informer) {
    page = new InformerPage(target.informer);
    by("informer").replaceChildren(page.element);
    if (isNavigation) by("main").focus();
    window.scrollTo(0, 0);
  }
  if (isNavigation) page.objects.open(target.object);
  if (latest) page.update(latest.informers.find((informer) => informer.id === page.id), histories.get(page.id));
}

async function poll() {
  if (!document.hidden) {
    try {
      latest = await request("overview");
      record(latest);
      text(by("process"), latest.memory ? `process memory ${bytes(latest.memory)}` : "");
      show();
      await page?.poll();
      connection("connected");
    } catch (error) {
      connection("lost", error.message);
    }
  }
  setTimeout(poll, POLL_MS);
}

function connection(state, reason = "") {
  by("connection").dataset.state = state;
  text(by("connection"), state === "connected" ? "live" : "connection lost, retrying");
  by("connection").title = reason;
}

document.addEventListener("keydown", (event) => {
  const isTyping = event.target.matches("input");
  if (event.key === "/" && !isTyping) {
    event.preventDefault();
    (route().informer ? page?.objects.input : by("filter"))?.focus();
  } else if (event.key === "Escape") {
    if (isTyping && event.target.value) return;
    const { informer, object } = route();
    if (object) location.hash = link({ informer });
    else if (informer) location.hash = "";
    else document.activeElement?.blur();
  }
});
by("filter").addEventListener("input", () => latest && showInformers(latest));
arrows(by("filter"), by("informers"));
addEventListener("hashchange", () => show(true));
// The fragment of the URL names the informer, so this link must not replace the fragment with #main.
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  by("main").focus();
});
// The token is in a cookie now, so it is removed from the address bar.
if (location.search) history.replaceState(null, "", location.pathname + location.hash);
show(true);
poll();
