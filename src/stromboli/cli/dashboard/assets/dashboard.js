// Keeps a page of the dashboard live: the server sends the regions that have changed, and they are changed in place,
// so that the focus, the scroll position and what somebody types stay. A page without this script can be read as well.

const main = document.getElementById("main");
const banner = document.getElementById("connection");

// -- morphing: an element becomes what another is, with as few changes as that takes

const KEPT = new Set(["open"]); // attributes that belong to whoever looks

/** What tells an element among its siblings: its id, the value of a choice, the page that a row leads to. */
function keyOf(node) {
  if (node.nodeType !== Node.ELEMENT_NODE) return "";
  if (node.id) return `#${node.id}`;
  if (node.nodeName === "OPTION") return node.value;
  if (node.nodeName !== "TR" && node.nodeName !== "LI") return "";
  return node.querySelector("a[href]")?.getAttribute("href") ?? "";
}

function morphAttributes(old, fresh) {
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && !KEPT.has(name)) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (!KEPT.has(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
}

function morph(old, fresh) {
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  if (old.nodeName === "TIME" && old.dataset.time && old.dataset.time === fresh.dataset.time) return; // see tellAges
  const chosen = old.nodeName === "SELECT" ? old.value : null;
  morphAttributes(old, fresh);
  if (old.matches("input, textarea")) return; // what was typed stays
  morphChildren(old, fresh);
  if (chosen !== null && [...old.options].some((option) => option.value === chosen)) old.value = chosen;
}

function morphChildren(old, fresh) {
  const wanted = [...fresh.childNodes];
  const known = counterparts(old, wanted);
  let current = old.firstChild;
  for (const node of wanted) {
    const kept = known.get(node);
    if (kept) {
      while (current !== kept && current?.nodeType === Node.TEXT_NODE) current = removed(current);
      if (current === kept) current = kept.nextSibling;
      else move(kept, current, old);
      morph(kept, node);
    } else if (current && isAlike(current, node)) {
      morph(current, node);
      current = current.nextSibling;
    } else {
      old.insertBefore(node, current);
    }
  }
  while (current) current = removed(current);
}

/** Which children have become which, of those that have a key; children that have become none are removed. */
function counterparts(old, wanted) {
  const keyed = new Map();
  for (const child of old.children) {
    const key = keyOf(child) && `${child.nodeName} ${keyOf(child)}`;
    if (key) keyed.set(key, [...(keyed.get(key) ?? []), child]);
  }
  const known = new Map();
  for (const node of wanted) {
    const child = keyed.get(`${node.nodeName} ${keyOf(node)}`)?.shift();
    if (child) known.set(node, child);
  }
  for (const child of [...keyed.values()].flat()) child.remove();
  return known;
}

function isAlike(old, fresh) {
  return old.nodeType === fresh.nodeType && old.nodeName === fresh.nodeName && !keyOf(old) && !keyOf(fresh);
}

function removed(node) {
  const next = node.nextSibling;
  node.remove();
  return next;
}

/** Put an element elsewhere, with the focus that may be in it where the browser can. */
function move(node, before, parent) {
  if (parent.moveBefore) parent.moveBefore(node, before);
  else parent.insertBefore(node, before);
}

function parsed(markup) {
  const template = document.createElement("template");
  template.innerHTML = markup; // made by the server, in which everything from outside is escaped
  return template.content.firstElementChild;
}

function show(markup) {
  const fresh = parsed(markup);
  const old = document.getElementById(fresh.id);
  if (!old) return main.append(fresh);
  try {
    morph(old, fresh);
  } catch (error) {
    console.error("a region is replaced as it could not be changed", error);
    old.replaceWith(parsed(markup));
  }
}

function arrange(order) {
  const wanted = new Set(order);
  for (const region of main.querySelectorAll(":scope > .region")) {
    if (!wanted.has(region.id)) region.remove();
  }
  let before = document.getElementById("title");
  for (const id of order) {
    const region = document.getElementById(id);
    if (region && before.nextElementSibling !== region) move(region, before.nextSibling, main);
    before = region || before;
  }
}

function update({ title, order, changed }) {
  const focused = document.activeElement;
  const around = ancestors(focused);
  document.title = `${title} - Stromboli`;
  const heading = document.getElementById("title");
  if (heading.textContent !== title) heading.textContent = title;
  changed.forEach(show);
  arrange(order);
  tellAges();
  if (document.activeElement !== focused) keepFocus(focused, around);
}

function ancestors(element) {
  return element?.parentElement ? [element.parentElement, ...ancestors(element.parentElement)] : [];
}

/** What had the focus has it again; where that is gone, what was around it, so that nobody begins at the top. */
function keepFocus(focused, around) {
  const left = around.find((each) => each.isConnected && each.hasAttribute("tabindex"));
  (focused?.isConnected ? focused : left)?.focus({ preventScroll: true });
}

// -- the connection: closed while nobody sees the page, as browsers have few

const SILENCE = 40; // seconds without a word after which a connection is given up: the server says something every 15
const SHORTEST_PAUSE = 5, LONGEST_PAUSE = 60; // seconds before one that was refused is tried again

let source = null;
let heardAt = Date.now();
let triedAt = heardAt;
let pause = SHORTEST_PAUSE;
let retry = 0;

function liveAddress() {
  const view = encodeURIComponent(location.pathname + location.search);
  return `/live?view=${view}&digest=${main.dataset.digest}`;
}

function connect() {
  clearTimeout(retry);
  if (source || document.hidden || !main.dataset.digest) return;
  triedAt = Date.now();
  source = new EventSource(liveAddress());
  source.onopen = () => {
    pause = SHORTEST_PAUSE;
    hear();
  };
  source.addEventListener("heartbeat", hear);
  source.onmessage = (event) => {
    hear();
    update(JSON.parse(event.data));
    main.dataset.digest = event.lastEventId;
  };
  source.onerror = () => {
    tellLoss();
    if (source.readyState === EventSource.CLOSED) refused();
  };
}

function disconnect() {
  clearTimeout(retry);
  if (source) source.close();
  source = null;
}

function hear() {
  heardAt = Date.now();
  banner.hidden = true;
}

function tellLoss(reason = "", ...more) {
  const text = `Not connected since ${new Date(heardAt).toLocaleTimeString()}: what you see is from then. ${reason}`;
  if (!banner.hidden && !reason) return; // it is told once, with the reason if that is known
  if (banner.hidden || banner.firstChild.data !== text) banner.replaceChildren(text, ...more);
  banner.hidden = false;
}

/** The server wants no stream: say why, which an EventSource does not know, and try again later. */
async function refused() {
  disconnect();
  retry = setTimeout(connect, pause * 1000);
  pause = Math.min(2 * pause, LONGEST_PAUSE);
  const asking = new AbortController();
  try {
    const response = await fetch(liveAddress(), { signal: asking.signal });
    const isText = response.headers.get("Content-Type")?.startsWith("text/plain");
    const words = isText ? (await response.text()).trim().slice(0, 200) : "";
    if (!response.ok) tellLoss(words || `It answers ${response.status}.`, ...(response.status === 401 ? loginLink() : []));
  } catch {
    // it does not answer at all, which is told already
  } finally {
    asking.abort();
  }
}

function loginLink() {
  const link = document.createElement("a");
  link.href = location.href;
  link.textContent = "Log in again";
  return [" ", link];
}

/** A connection may be dead without the browser's knowing, such as after a sleep. */
function checkConnection() {
  const now = Date.now();
  heardAt = Math.min(heardAt, now); // clocks are set back as well
  triedAt = Math.min(triedAt, now);
  if (!source || now - Math.max(heardAt, triedAt) < SILENCE * 1000) return;
  tellLoss();
  disconnect();
  connect();
}

document.addEventListener("visibilitychange", () => (document.hidden ? disconnect() : connect()));
window.addEventListener("pagehide", disconnect);
window.addEventListener("pageshow", connect);

// -- ages, by the server's clock, as kubectl writes them

const skew = Date.now() / 1000 - Number(main.dataset.now || Date.now() / 1000);

function twoUnits(seconds, large, unit, small, smallUnit) {
  const rest = Math.floor((seconds % large) / small);
  return `${Math.floor(seconds / large)}${unit}${rest ? rest + smallUnit : ""}`;
}

function age(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < 120) return `${whole}s`;
  if (whole < 600) return twoUnits(whole, 60, "m", 1, "s");
  if (whole < 10800) return `${Math.floor(whole / 60)}m`;
  if (whole < 28800) return twoUnits(whole, 3600, "h", 60, "m");
  if (whole < 172800) return `${Math.floor(whole / 3600)}h`;
  if (whole < 691200) return twoUnits(whole, 86400, "d", 3600, "h");
  return whole < 63072000 ? `${Math.floor(whole / 86400)}d` : twoUnits(whole, 31536000, "y", 86400, "d");
}

function tellAges() {
  const now = Date.now() / 1000 - skew;
  for (const time of document.querySelectorAll("time[data-time]")) {
    const moment = Number(time.dataset.time);
    const text = age(now - moment);
    if (time.textContent !== text) time.textContent = text;
    if (!time.title) time.title = new Date(moment * 1000).toLocaleString();
  }
}

setInterval(() => {
  if (document.hidden) return;
  checkConnection();
  tellAges();
}, 1000);

// -- keys, forms and commands to copy

const FILTERS = "form.filters[method=get]"; // forms that change nothing
let leading = false; // after `g`

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select, textarea")) return;
  if (leading) {
    leading = false;
    const target = document.querySelector(`header a[data-key="${CSS.escape(event.key)}"]`);
    if (target) target.click();
  } else if (event.key === "g") {
    leading = true;
    setTimeout(() => (leading = false), 1500);
  } else if (event.key === "/") {
    const search = document.querySelector(`${FILTERS} input[type=search]`);
    if (search) {
      search.focus();
      event.preventDefault();
    }
  }
});

document.addEventListener("change", (event) => {
  if (event.target.matches(`${FILTERS} select`)) event.target.form.requestSubmit();
});

document.addEventListener("formdata", (event) => {
  if (!event.target.matches(FILTERS)) return;
  for (const [name, value] of [...event.formData]) {
    if (value === "") event.formData.delete(name); // not in the address
  }
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-copy]");
  if (!button) return;
  const command = button.parentElement.querySelector("pre");
  try {
    await navigator.clipboard.writeText(command.textContent);
  } catch {
    getSelection().selectAllChildren(command); // without TLS there is no clipboard but for what is selected
    document.execCommand("copy");
  }
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = "Copy"), 2000);
});

tellAges();
connect();
