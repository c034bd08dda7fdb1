// The objects of an informer: search, results, and one object as YAML with its last changes.
import { arrows, count, duration, h, keyed, text, yaml } from "./draw.js";
import { link, request } from "./server.js";

const PAGE = 100;
const TYPING_MS = 150;

export class Objects {
  constructor(id) {
    this.id = id;
    this.rows = [];
    this.loads = 0;
    this.input = h("input", { type: "search", id: "search", autocomplete: "off", spellcheck: "false", "aria-describedby": "hint",
      placeholder: "web  label:app=web  index:node=node-1  field:spec.nodeName=node-1", "aria-label": "Search objects" });
    this.hint = h("p", { class: "quiet", id: "hint" });
    this.problem = h("p", { class: "problem", role: "alert", hidden: true });
    this.matches = h("span", { class: "quiet", role: "status", id: "matches" });
    this.list = h("div", { class: "results", id: "results" });
    this.more = h("button", { type: "button", hidden: true, onclick: () => this.load(this.next) }, `Show ${PAGE} more`);
    this.object = h("div", { class: "object", id: "object", hidden: true });
    this.changes = h("section", { class: "table", hidden: true }, h("h2", {}, "Last changes"), h("ul", { class: "recent" }));
    this.panes = h("div", { class: "panes" }, h("div", { class: "found" }, this.list, this.more), this.object);
    this.element = h("section", { class: "objects", hidden: true },
      h("div", { class: "bar" }, h("h2", {}, "Objects"), this.input, this.matches),
      this.hint, this.problem, this.panes, this.changes);
    this.input.addEventListener("input", () => {
      clearTimeout(this.typing);
      this.typing = setTimeout(() => this.load(null), TYPING_MS);
    });
    arrows(this.input, this.list);
  }

  /** Loads the first page when the informer is known, and again when its objects change. */
  update(informer) {
    this.element.hidden = false;
    this.input.hidden = this.panes.hidden = !informer.shown;
    if (!informer.shown) {
      text(this.hint, "The program does not show the objects of this informer. Add the informer with Inspector::objects.");
      return;
    }
    const isFirst = this.watermark === undefined;
    const isChanged = informer.watermark !== this.watermark;
    this.watermark = informer.watermark;
    if (isFirst || (isChanged && this.isSimple && this.rows.length <= PAGE && !this.loading)) this.load(null);
  }

  /** Requests a page. A search that reads objects can need several requests for one page. */
  async load(after) {
    this.loading?.abort();
    const loading = (this.loading = new AbortController());
    const found = after === null ? [] : [...this.rows];
    const wanted = found.length + PAGE;
    let page = { next: after };
    try {
      do {
        const parameters = { informer: this.id, query: this.input.value, limit: wanted - found.length };
        if (page.next) parameters.after = page.next;
        page = await request("objects", parameters, loading.signal);
        found.push(...page.objects);
        if (page.next && found.length < wanted) text(this.matches, `searching, ${count(page.examined)} of ${count(page.candidates)}`);
      } while (page.next && found.length < wanted);
      this.problem.hidden = true;
    } catch (error) {
      if (error.name === "AbortError") return;
      this.problem.hidden = false;
      text(this.problem, error.message);
      page = null;
    }
    this.loading = null;
    this.loads += 1;
    this.element.dataset.loads = this.loads;
    if (!page) return;
    this.rows = found;
    this.next = page.next;
    this.isSimple = page.matches !== null;
    this.more.hidden = !page.next;
    const number = page.matches ?? (page.next ? null : found.length);
    text(this.matches, number === null ? `first ${count(found.length)} matches` : `${count(number)} of ${count(page.total)}`);
    text(this.hint, `Words match keys. Other terms: label:NAME=VALUE, field:PATH=VALUE, index:NAME=VALUE. Indexes: ${page.indexes.join(", ")}.`);
    this.showRows();
  }

  showRows() {
    keyed(this.list, this.rows, (row) => row.key, (row) => h("a", { href: link({ informer: this.id, object: row.key }), "data-row": true,
      class: "result" }, key(row.key), h("span", { class: "labels" }), h("span", { class: "age quiet" })),
    (element, row) => {
      if (row.key === this.key) element.setAttribute("aria-current", "true");
      else element.removeAttribute("aria-current");
      const labels = Object.entries(row.labels).slice(0, 3).map(([name, value]) => `${name}=${value}`);
      text(element.children[1], labels.join("  "));
      text(element.children[2], row.created ? duration(Date.now() - Date.parse(row.created)) : "");
    });
  }

  /** Shows the object with this key beside the results, or only the results if `key` is null. */
  open(key) {
    if (key !== this.key) {
      this.key = key;
      this.seen = new Map();
      this.lines = null;
      this.version = null;
      this.object.replaceChildren();
    }
    this.object.hidden = !key;
    this.panes.classList.toggle("open", Boolean(key));
    this.showRows();
    if (key) {
      this.poll().catch(() => {});
      this.object.scrollIntoView({ block: "nearest" });
    } else if (this.last) {
      this.list.elements?.get(this.last)?.focus();
    }
    this.last = key ?? this.last;
  }

  /** Requests the open object. */
  async poll() {
    const key = this.key;
    if (!key) return;
    let object;
    try {
      object = await request("object", { informer: this.id, key });
    } catch (error) {
      object = { key, value: null, changes: [], problem: error.message };
    }
    if (key === this.key) this.showObject(object);
  }

  showObject(object) {
    if (!this.object.firstChild) {
      this.object.append(
        h("div", { class: "bar" }, h("h2", {}, object.key), h("a", { class: "button", href: link({ informer: this.id }) }, "Close")),
        h("p", { class: "quiet version" }), h("p", { class: "problem", hidden: true }),
        h("section", { class: "history", hidden: true }, h("h3", {}, "Changes"), h("ol", { class: "changes" })),
        h("pre", { class: "yaml", tabindex: "0", "aria-label": "Object as YAML" }));
    }
    const [, version, problem, history, code] = this.object.children;
    text(version, [object.resourceVersion && `resource version ${object.resourceVersion}`, object.uid && `UID ${object.uid}`,
      object.encoded && "stored encoded"].filter(Boolean).join(" · "));
    problem.hidden = object.value !== null;
    text(problem, object.problem ?? "The object is not in the store.");
    this.showHistory(history, object.changes);
    code.hidden = object.value === null;
    if (object.value && object.resourceVersion !== this.version) this.showYaml(code, object.value);
    this.version = object.resourceVersion;
  }

  /** Shows the object, and highlights the lines that the last version did not have. */
  showYaml(code, value) {
    const lines = yaml(value);
    const joined = lines.map((line) => line.map(([, part]) => part).join(""));
    const before = this.lines && new Set(this.lines);
    this.lines = joined;
    code.replaceChildren(...lines.map((line, index) => {
      const isFresh = before && !before.has(joined[index]);
      return h("span", { class: isFresh ? "fresh" : null }, ...line.map(([kind, part]) => h("span", { class: kind || null }, part)), "\n");
    }));
  }

  /** Shows the changes of the open object, including changes that the server no longer keeps. */
  showHistory(history, changes) {
    const now = Date.now();
    for (const change of changes) {
      const id = `${change.from}>${change.to}`;
      if (!this.seen.has(id)) this.seen.set(id, { ...change, id, at: now - change.ageMs });
    }
    const all = [...this.seen.values()].sort((a, b) => b.at - a.at).slice(0, 50);
    history.hidden = all.length === 0;
    keyed(history.querySelector("ol"), all, (change) => change.id, describe,
      (element, change) => text(element.querySelector("time"), `${duration(now - change.at)} ago`));
  }

  showChanges(changes) {
    this.changes.hidden = changes.length === 0;
    const items = changes.map((change, index) => ({ ...change, index }));
    keyed(this.changes.querySelector("ul"), items, (it) => it.index,
      () => h("li", {}, h("a", {}), h("span", { class: "kind" }), h("span", { class: "quiet" })),
      (element, it) => {
        const [target, kind, age] = element.children;
        target.setAttribute("href", link({ informer: this.id, object: it.key }));
        text(target, it.key);
        text(kind, it.kind);
        kind.dataset.kind = it.kind;
        text(age, `${duration(it.ageMs)} ago`);
      });
  }
}

/** Shows a key with its namespace in a quieter colour. */
function key(text) {
  const at = text.indexOf("/") + 1;
  return h("span", { class: "key" }, h("span", { class: "quiet" }, text.slice(0, at)), text.slice(at));
}

function describe(change) {
  const lines = change.differences.flatMap(({ path, old, new: current }) => [
    h("div", { class: "path" }, path),
    old === null ? null : h("div", { class: "old" }, h("span", { "aria-label": "before" }, "−"), ` ${old}`),
    current === null ? null : h("div", { class: "new" }, h("span", { "aria-label": "after" }, "+"), ` ${current}`),
  ]);
  const size = change.differences.length;
  const summary = size ? `${size} field${size === 1 ? "" : "s"}` : "";
  return h("li", {}, h("div", { class: "summary" }, h("span", { class: "kind", "data-kind": change.kind }, change.kind),
    h("span", { class: "quiet" }, summary), h("time", { class: "quiet" })), h("div", { class: "diff" }, ...lines));
}
