// Elements, texts and plots that all parts of the page use.

/** Creates an element. An attribute that is null or false is left out. */
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** Creates an SVG element. */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** Sets the text of an element only if it differs, so that the browser repaints less. */
export function text(element, value) {
  const string = String(value);
  if (element.textContent !== string) element.textContent = string;
}

/**
 * Makes the children of `container` match `items`, and reuses elements by key, so that focus and
 * selection survive an update.
 */
export function keyed(container, items, keyOf, create, update) {
  const elements = (container.elements ??= new Map());
  const keys = new Set(items.map(keyOf));
  for (const [key, element] of elements) {
    if (!keys.has(key)) {
      element.remove();
      elements.delete(key);
    }
  }
  let previous = null;
  for (const item of items) {
    const key = keyOf(item);
    let element = elements.get(key);
    if (!element) {
      element = create(item);
      elements.set(key, element);
    }
    const next = previous ? previous.nextSibling : container.firstChild;
    if (next !== element) container.insertBefore(element, next);
    update?.(element, item);
    previous = element;
  }
}

/** Moves the focus with the arrow keys: from an input to the links below it, through them, and back. */
export function arrows(input, container) {
  input.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowDown") return;
    event.preventDefault();
    container.querySelector("a")?.focus();
  });
  container.addEventListener("keydown", (event) => {
    const steps = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity };
    const step = steps[event.key];
    const links = [...container.querySelectorAll("a[data-row]")].filter((link) => !link.hidden);
    const at = links.indexOf(document.activeElement);
    if (step === undefined || at < 0) return;
    event.preventDefault();
    if (at === 0 && step === -1) return input.focus();
    links[Math.min(Math.max(at + step, 0), links.length - 1)].focus();
  });
}

export const count = (number) => number.toLocaleString("en");

/** Writes a rate, with one decimal if it is below ten. */
export function rate(number) {
  if (number === null || Number.isNaN(number)) return "–";
  if (number === 0) return "0";
  return number < 10 ? number.toFixed(1) : count(Math.round(number));
}

export function bytes(number) {
  if (number === null || number === undefined) return null;
  const units = ["B", "KB", "MB", "GB"];
  let unit = 0;
  while (number >= 1000 && unit < units.length - 1) {
    number /= 1000;
    unit += 1;
  }
  return `${number < 10 && unit > 0 ? number.toFixed(1) : Math.round(number)} ${units[unit]}`;
}

export function duration(ms) {
  if (ms === null || ms === undefined) return "–";
  if (ms > 0 && ms < 1) return `${ms.toFixed(2)} ms`;
  if (ms < 1000) return `${ms < 10 && !Number.isInteger(ms) ? ms.toFixed(1) : Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  if (seconds < 3600) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} d`;
}

/** The number of seconds that a plot shows. */
export const WINDOW = 60;

/** A moving plot of the last values. The newest value is at the right edge. */
export class Plot {
  constructor({ width = 120, height = 26, title = null, unit = "" } = {}) {
    Object.assign(this, { width, height, unit });
    this.area = svg("path", { class: "area" });
    this.line = svg("path", { class: "line" });
    const shape = svg("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", class: "plot", "aria-hidden": "true" },
      this.area, this.line);
    if (!title) {
      this.element = shape;
      return;
    }
    this.now = h("b", {}, "–");
    this.most = h("span", { class: "quiet" });
    this.element = h("figure", { class: "chart" },
      h("figcaption", {}, h("span", {}, title), this.now, this.most), shape);
  }

  update(values) {
    const shown = values.slice(-WINDOW);
    const most = Math.max(...shown, 0);
    const top = Math.max(most, 1) * 1.1;
    const x = (index) => this.width - (shown.length - 1 - index) * (this.width / (WINDOW - 1));
    const y = (value) => this.height - 1 - (value / top) * (this.height - 2);
    const points = shown.map((value, index) => `${x(index).toFixed(1)},${y(value).toFixed(1)}`);
    const line = points.length ? `M${points.join("L")}` : "";
    this.line.setAttribute("d", line);
    this.area.setAttribute("d", line && `${line}L${this.width},${this.height}L${x(0).toFixed(1)},${this.height}Z`);
    if (!this.now) return;
    text(this.now, shown.length ? `${rate(shown.at(-1))}${this.unit}` : "–");
    text(this.most, most > 0 ? `max ${rate(most)}${this.unit}` : "");
  }
}

/** Writes a value as lines of YAML: arrays of [class, text] pairs. */
export function yaml(value) {
  const lines = [];
  write(lines, "", ordered(value), 0);
  return lines;
}

function ordered(object) {
  const first = ["apiVersion", "kind", "metadata"].filter((name) => name in object);
  const rest = Object.keys(object).filter((name) => !first.includes(name));
  return Object.fromEntries([...first, ...rest].map((name) => [name, object[name]]));
}

function write(lines, head, value, depth) {
  const indent = "  ".repeat(depth);
  const isList = Array.isArray(value);
  const entries = isList ? value.map((element) => ["-", element]) : Object.entries(value).map(([name, inner]) => [`${plain(name)}:`, inner]);
  entries.forEach(([label, inner], index) => {
    const start = [index === 0 && head ? head : indent, label];
    const isNested = inner !== null && typeof inner === "object" && Object.keys(inner).length > 0;
    if (!isNested) {
      scalar(lines, start, inner, depth);
    } else if (isList && !Array.isArray(inner)) {
      write(lines, `${start[0]}- `, inner, depth + 1);
    } else {
      lines.push([["", start[0]], ["name", label]]);
      // Lists in objects are not indented, as kubectl prints them.
      write(lines, "", inner, Array.isArray(inner) && !isList ? depth : depth + 1);
    }
  });
}

const MASKED = "•••••";

function scalar(lines, [indent, label], value, depth) {
  const line = [["", indent], ["name", label]];
  lines.push(line);
  if (value === MASKED) return line.push(["masked", ` ${MASKED}`]);
  if (typeof value !== "string") return line.push(["scalar", ` ${JSON.stringify(value)}`]);
  if (!/\n./.test(value) || /\n\n$|\t|^\s/.test(value)) return line.push(["string", ` ${plain(value)}`]);
  line.push(["", value.endsWith("\n") ? " |" : " |-"]);
  const block = "  ".repeat(depth + 1);
  value.replace(/\n$/, "").split("\n").forEach((part) => lines.push([["string", block + part]]));
}

/** Quotes text that YAML would read as something else. */
function plain(string) {
  const isOther = /^$|^[\s\-?:,[\]{}#&*!|>'"%@`]|[:#]\s|:$|\s$|\n|^(true|false|null|yes|no|on|off|~)$|^[+.\d][\d.eE+:_-]*$/i;
  return isOther.test(string) ? JSON.stringify(string) : string;
}
