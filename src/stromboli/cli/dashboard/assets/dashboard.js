// Keeps a page of the dashboard live: the server sends the regions that have changed, and they are changed in place,
// so that the focus, the scroll position and what somebody types stay. A page without this script can be read as well.

const main = document.getElementById("main");
const banner = document.getElementById("connection");

// -- morphing: an element becomes what another is, with as few changes as that takes

const KEPT = new Set(["open"]); // attributes that belong to whoever looks

function sameKind(old, fresh) {
  return old.nodeType === fresh.nodeType && old.nodeName === fresh.nodeName && (old.id || "") === (fresh.id || "");
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
  morphAttributes(old, fresh);
  if (old.matches("input, select, textarea")) return; // what was typed or chosen stays
  morphChildren(old, fresh);
}

function morphChildren(old, fresh) {
  const named = new Map([...old.children].filter((child) => child.id).map((child) => [child.id, child]));
  let current = old.firstChild;
  for (const wanted of [...fresh.childNodes]) {
    const known = wanted.id ? named.get(wanted.id) : null;
    if (known && known.nodeName === wanted.nodeName) {
      if (known === current) current = current.nextSibling;
      else old.insertBefore(known, current);
      morph(known, wanted);
    } else if (current && sameKind(current, wanted)) {
      morph(current, wanted);
      current = current.nextSibling;
    } else {
      old.insertBefore(wanted, current);
    }
  }
  while (current) {
    const next = current.nextSibling;
    current.remove();
    current = next;
  }
}

function parsed(markup) {
  const template = document.createElement("template");
  template.innerHTML = markup; // made by the server, in which everything from outside is escaped
  return template.content.firstElementChild;
}

function update({ title, order, changed }) {
  document.title = `${title} - Stromboli`;
  const heading = document.getElementById("title");
  if (heading.textContent !== title) heading.textContent = title;
  for (const markup of changed) {
    const fresh = parsed(markup);
    const old = document.getElementById(fresh.id);
    if (old) morph(old, fresh);
    else main.append(fresh);
  }
  const wanted = new Set(order);
  for (const region of main.querySelectorAll(":scope > .region")) {
    if (!wanted.has(region.id)) region.remove();
  }
  let before = heading;
  for (const id of order) {
    const region = document.getElementById(id);
    if (region && before.nextElementSibling !== region) before.after(region);
    before = region || before;
  }
  tellAges();
}

// -- the connection: closed while nobody sees the page, as browsers have few

let source = null;
let lostAt = null;

function connect() {
  if (source || !main.dataset.digest) return;
  const view = encodeURIComponent(location.pathname + location.search);
  source = new EventSource(`/live?view=${view}&digest=${main.dataset.digest}`);
  source.onopen = () => {
    lostAt = null;
    banner.hidden = true;
  };
  source.onmessage = (event) => {
    main.dataset.digest = "seen";
    update(JSON.parse(event.data));
  };
  source.onerror = () => {
    lostAt = lostAt || new Date();
    banner.textContent = `Not connected since ${lostAt.toLocaleTimeString()}: what you see is from then.`;
    banner.hidden = false;
    if (source.readyState === EventSource.CLOSED) {
      disconnect();
      setTimeout(() => document.hidden || connect(), 5000);
    }
  };
}

function disconnect() {
  if (source) source.close();
  source = null;
}

document.addEventListener("visibilitychange", () => (document.hidden ? disconnect() : connect()));
window.addEventListener("pagehide", disconnect);
window.addEventListener("pageshow", () => document.hidden || connect());

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

setInterval(() => document.hidden || tellAges(), 1000);

// -- keys and forms

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
    const search = document.querySelector("form.filters input[type=search]");
    if (search) {
      search.focus();
      event.preventDefault();
    }
  }
});

document.addEventListener("change", (event) => {
  if (event.target.matches("form.filters select")) event.target.form.requestSubmit();
});

document.addEventListener("submit", (event) => {
  if (!event.target.matches("form.filters")) return;
  for (const field of event.target.elements) {
    if (field.name && field.value === "") field.disabled = true; // not in the address
  }
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(button.dataset.copy);
  button.textContent = "Copied";
});

tellAges();
if (!document.hidden) connect();
