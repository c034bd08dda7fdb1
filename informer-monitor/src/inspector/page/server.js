// Requests to the server, addresses of this page, and the state of an informer in words.
import { duration } from "./draw.js";

/** Requests a JSON document. An error has the server's message. */
export async function request(path, parameters = {}, signal = undefined) {
  const query = new URLSearchParams(parameters);
  const response = await fetch(`api/${path}?${query}`, { signal, headers: { accept: "application/json" } });
  if (!response.ok) throw new Error((await response.text()).trim() || `status ${response.status}`);
  return response.json();
}

/** Returns the address of the overview, of an informer, or of an object. */
export function link(parts = {}) {
  return `#${new URLSearchParams(parts)}`;
}

/** Describes how bad the state of an informer is: `good`, `busy` or `bad`. */
export function severity(informer) {
  if (informer.state === "panicked" || informer.state === "stopped") return "bad";
  if (informer.state === "not started") return "busy";
  if (informer.health === "live") return informer.quarantined ? "busy" : "good";
  return ["connecting", "syncing"].includes(informer.health) ? "busy" : "bad";
}

export function healthText(informer) {
  if (informer.state !== "running") return informer.state;
  if (informer.health !== "live") return informer.healthText;
  return informer.lastEventMs === null ? "live" : `live, last event ${duration(informer.lastEventMs)} ago`;
}
