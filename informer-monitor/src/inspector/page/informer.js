// The page of one informer: its pipeline, plots, handlers, lists, quarantine and objects.
import { Plot, bytes, count, duration, h, keyed, rate, text } from "./draw.js";
import { healthText, request, severity } from "./server.js";
import { Objects } from "./objects.js";

const STAGES = ["Server", "Reflector", "Queue", "Store", "Handlers"];

export class InformerPage {
  constructor(id) {
    this.id = id;
    this.heading = h("h1", {}, id);
    this.health = h("p", { class: "health" });
    this.pipeline = h("ol", { class: "pipeline", "aria-label": "Pipeline" }, ...STAGES.map((name) =>
      h("li", { "data-stage": name.toLowerCase() }, h("h3", {}, name), h("dl", { class: "facts" }))));
    this.plots = {
      events: new Plot({ width: 300, height: 64, title: "Events", unit: "/s" }),
      queued: new Plot({ width: 300, height: 64, title: "Queued" }),
      calls: new Plot({ width: 300, height: 64, title: "Handler calls", unit: "/s" }),
      pending: new Plot({ width: 300, height: 64, title: "Handler lag" }),
    };
    this.handlers = table("Handlers", ["Handler", "Pending", "Calls", "Mean call", "Longest call", "Coalesced", "Panics"]);
    this.lists = table("Recent lists", ["Completed", "Why", "Objects", "Took"]);
    this.quarantine = table("Quarantined objects", ["Object", "Version", "Error"]);
    this.namespaces = table("Namespaces", ["Namespace", "Health"]);
    this.failures = table("Failures", ["Cause", "Count"]);
    this.objects = new Objects(id);
    this.message = h("p", { class: "problem", role: "alert", hidden: true });
    this.element = h("div", { class: "informer" }, this.heading, this.health, this.message, this.pipeline,
      h("div", { class: "charts" }, ...Object.values(this.plots).map((plot) => plot.element)),
      this.objects.element,
      h("div", { class: "tables" }, this.quarantine, this.handlers, this.lists, this.failures, this.namespaces));
  }

  update(informer, history) {
    this.informer = informer;
    this.message.hidden = Boolean(informer);
    if (!informer) return text(this.message, "This informer no longer exists.");
    this.health.dataset.severity = severity(informer);
    text(this.health, healthText(informer));
    const { added, modified, deleted, bookmarks } = informer.events;
    const pending = history.pending.at(-1) ?? 0;
    this.stage("server", [["Health", informer.health], ["Lists", count(informer.lists)], ["Watches", count(informer.watches)],
      ["Failures", count(informer.failures)]]);
    this.stage("reflector", [["Events", `${rate(history.events.at(-1) ?? null)}/s`], ["Added", count(added)],
      ["Modified", count(modified)], ["Deleted", count(deleted)], ["Bookmarks", count(bookmarks)],
      ["Version", informer.received || "–"]]);
    this.stage("queue", [["Queued", count(informer.queued)], ["Quarantined", count(informer.quarantined)]]);
    this.stage("store", [["Objects", count(informer.objects)], ["As JSON", bytes(informer.bytes) ? `≈ ${bytes(informer.bytes)}` : "–"],
      ["Watermark", informer.watermark || "–"]]);
    this.stage("handlers", [["Handlers", count(informer.handlers.length)], ["Calls", `${rate(history.calls.at(-1) ?? null)}/s`],
      ["Delivered", count(history.last.calls)], ["Lag", count(pending)]]);
    this.pipeline.classList.toggle("flowing", (history.events.at(-1) ?? 0) > 0);
    for (const [name, plot] of Object.entries(this.plots)) plot.update(history[name]);
    rows(this.handlers, informer.handlers.map((it, index) => [`${index} ${it.name}`, plainName(it.name), count(it.pending), count(it.delivered),
      it.delivered ? duration(it.busyMs / it.delivered) : "–", duration(it.slowestMs), count(it.coalesced), count(it.panicked)]));
    this.objects.update(informer);
  }

  stage(name, facts) {
    const list = this.pipeline.querySelector(`[data-stage=${name}] dl`);
    keyed(list, facts, ([title]) => title, ([title]) => h("div", {}, h("dt", {}, title), h("dd", {})),
      (element, [, value]) => text(element.querySelector("dd"), value));
  }

  /** Requests the details that the overview lacks. */
  async poll() {
    if (!this.informer) return;
    const details = await request("informer", { informer: this.id });
    rows(this.lists, details.recentLists.map((it, index) => [details.recentLists.length - index, `${duration(it.ageMs)} ago`, it.cause,
      count(it.objects), duration(it.tookMs)]));
    rows(this.quarantine, details.quarantinedObjects.map((it, index) => [it.key ?? index, it.key ?? "(no readable name)",
      it.resourceVersion, it.error]).concat(details.indexFailures.map((failure) => [failure, "index", "", failure])));
    rows(this.failures, Object.entries(details.failuresByCause).map(([cause, number]) => [cause, cause, count(number)]));
    rows(this.namespaces, details.namespaces.map((it) => [it.name, it.name, it.healthText]));
    this.objects.showChanges(details.changes);
    await this.objects.poll();
  }
}

/** Shortens the name of a handler. A handler without its own name is named by the path of its type. */
const plainName = (name) => name.replace(/\w+::/g, "");

/** Creates a table that is hidden while it has no rows. */
function table(title, columns) {
  const head = h("tr", {}, ...columns.map((column) => h("th", { scope: "col" }, column)));
  return h("section", { class: "table", hidden: true }, h("h2", {}, title),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title }, h("table", {}, h("thead", {}, head), h("tbody"))));
}

/** Sets the rows of a table: arrays of a key and the texts of the cells. */
function rows(section, all) {
  section.hidden = all.length === 0;
  keyed(section.querySelector("tbody"), all, ([key]) => key,
    (row) => h("tr", {}, ...row.slice(1).map(() => h("td"))),
    (element, row) => row.slice(1).forEach((value, index) => text(element.children[index], value)));
}
