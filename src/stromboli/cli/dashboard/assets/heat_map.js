// <heat-map>: one cell per node on a canvas, darker the more is in use; what a character means is in pages/network/heat_map_markup.py.
const LEVELS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxy";
const ABSENT = ".", UNKNOWN = "?";
const GAP = 1, BLOCK_GAP = 12, TITLE = 16, NARROWEST_BLOCK = 84;
const LARGEST_SIDE = 16000, LARGEST_AREA = 16e6; // pixels that every browser can draw

function cellSize(count) {
  return count <= 200 ? 22 : count <= 1000 ? 16 : count <= 3000 ? 12 : 10;
}

class HeatMap extends HTMLElement {
  static observedAttributes = ["shares", "vacant", "cordoned", "not-ready", "names", "resource"];

  constructor() {
    super();
    this.current = -1;
    const root = this.attachShadow({ mode: "open" });
    this.canvas = document.createElement("canvas");
    this.canvas.setAttribute("part", "canvas");
    this.tip = document.createElement("div");
    this.tip.setAttribute("part", "tip");
    this.tip.setAttribute("role", "status");
    root.append(this.canvas, this.tip);
  }

  connectedCallback() {
    this.stops = new AbortController();
    const { signal } = this.stops;
    const redraw = () => this.plan();
    this.sizes = new ResizeObserver(redraw);
    this.sizes.observe(this);
    this.changes = new MutationObserver(redraw);
    this.changes.observe(document.documentElement, { attributes: true });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw, { signal });
    this.addEventListener("pointermove", (event) => this.select(this.cellAt(event)), { signal });
    this.addEventListener("pointerleave", () => this.select(-1), { signal });
    this.addEventListener("focus", () => this.matches(":focus-visible") && this.select(Math.max(this.current, 0)), { signal });
    this.addEventListener("blur", () => this.select(-1), { signal });
    this.addEventListener("click", (event) => this.open(this.cellAt(event), event), { signal });
    this.addEventListener("keydown", (event) => this.press(event), { signal });
    this.plan();
  }

  disconnectedCallback() {
    this.stops.abort();
    this.sizes.disconnect();
    this.changes.disconnect();
    this.source = null; // it is observed again in the next place
  }

  attributeChangedCallback() {
    if (this.isConnected) this.plan();
  }

  /** Draw once before the next frame, however much has changed. */
  plan() {
    if (this.planned) return;
    this.planned = true;
    requestAnimationFrame(() => {
      this.planned = false;
      if (this.isConnected) this.draw();
    });
  }

  /** Names and groups lie elsewhere in the page, as they change less often. */
  readNames() {
    const source = document.getElementById(this.getAttribute("names"));
    if (source !== this.source) {
      this.source = source;
      if (source) this.changes.observe(source, { attributes: true });
    }
    const names = source?.dataset.names ?? "", groups = source?.dataset.groups ?? "[]";
    if (names !== this.namesText) {
      this.namesText = names;
      this.names = names ? names.split(" ") : [];
    }
    this.groups = JSON.parse(groups);
  }

  numbers(attribute) {
    const text = this.getAttribute(attribute);
    return new Set(text ? text.split(" ").map(Number) : []);
  }

  /** Whether no job is on a node: a bit of the hexadecimal digits. */
  isVacant(place) {
    return ((parseInt(this.vacant[place >> 2] ?? "0", 16) >> (3 - (place & 3))) & 1) === 1;
  }

  // -- where cells are

  layOut(width) {
    const size = cellSize(this.shares.length), step = size + GAP;
    const titled = this.groups.some(([title]) => title);
    this.size = size;
    this.cells = [];
    this.titles = [];
    let x = 0, y = 0, lineHeight = 0;
    for (const [title, count, whole] of this.groups) {
      const most = Math.max(1, Math.floor((width + GAP) / step));
      const square = Math.max(Math.ceil(Math.sqrt(count * 2)), Math.ceil(NARROWEST_BLOCK / step));
      const columns = titled ? Math.min(most, square) : most;
      const blockWidth = columns * step, rows = Math.ceil(count / columns);
      const height = rows * step + (titled ? TITLE : 0);
      if (x > 0 && x + blockWidth > width + GAP) {
        x = 0;
        y += lineHeight + BLOCK_GAP;
        lineHeight = 0;
      }
      const top = y + (titled ? TITLE : 0);
      if (titled) this.titles.push({ title, x, y, width: blockWidth - GAP });
      for (let place = 0; place < count && this.cells.length < this.shares.length; place++) {
        this.cells.push({ x: x + (place % columns) * step, y: top + Math.floor(place / columns) * step, group: whole });
      }
      x += blockWidth + BLOCK_GAP;
      lineHeight = Math.max(lineHeight, height);
    }
    return y + lineHeight;
  }

  cellAt(event) {
    const box = this.canvas.getBoundingClientRect();
    const x = event.clientX - box.left, y = event.clientY - box.top, side = (this.size ?? 0) + GAP;
    return (this.cells ?? []).findIndex((cell) => x >= cell.x && x < cell.x + side && y >= cell.y && y < cell.y + side);
  }

  // -- drawing

  draw() {
    this.readNames();
    this.shares = this.getAttribute("shares") ?? "";
    this.vacant = this.getAttribute("vacant") ?? "";
    this.cordoned = this.numbers("cordoned");
    this.notReady = this.numbers("not-ready");
    const width = Math.floor(this.clientWidth);
    if (width <= 0) return;
    const height = Math.max(1, this.layOut(width));
    const scale = Math.min(devicePixelRatio || 1, LARGEST_SIDE / height, Math.sqrt(LARGEST_AREA / (width * height)));
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(height * scale);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    const pen = this.canvas.getContext("2d");
    pen.scale(scale, scale);
    const style = getComputedStyle(this);
    this.colours = Object.fromEntries(
      ["ink", "soft", "faint", "grid", "axis", "card", "bad", "s1"].map((name) => [name, style.getPropertyValue(`--${name}`).trim()]),
    );
    pen.font = `12px ${style.fontFamily}`;
    pen.textBaseline = "top";
    for (const title of this.titles) this.drawTitle(pen, title);
    for (let place = 0; place < this.cells.length; place++) this.drawCell(pen, place);
    if (this.current >= this.cells.length) this.current = -1;
    this.markCurrent(pen);
    this.showTip();
  }

  drawTitle(pen, { title, x, y, width }) {
    let text = title;
    while (text.length > 1 && pen.measureText(text).width > width) text = `${text.slice(0, -2)}…`;
    pen.fillStyle = this.colours.soft;
    pen.fillText(text, x, y + 1);
  }

  /**
   * States differ in form: a node free of jobs has a frame, and is hollow if nothing is in use on it; one that is cordoned
   * has a stroke, one that is not ready a cross, one without the resource is a dot.
   */
  drawCell(pen, place) {
    const { x, y } = this.cells[place], size = this.size, share = this.shares[place];
    const level = LEVELS.indexOf(share), vacant = this.isVacant(place);
    if (share === ABSENT) {
      pen.fillStyle = this.colours.faint;
      pen.fillRect(x + size / 2 - 1, y + size / 2 - 1, 2, 2);
    } else {
      pen.fillStyle = this.colours.grid;
      if (!vacant || level > 0) pen.fillRect(x, y, size, size);
      if (level > 0) {
        pen.globalAlpha = 0.15 + 0.85 * (level / (LEVELS.length - 1));
        pen.fillStyle = this.colours.s1;
        pen.fillRect(x, y, size, size);
        pen.globalAlpha = 1;
      }
      if (vacant || share === UNKNOWN) {
        pen.strokeStyle = this.colours.faint;
        pen.lineWidth = 1;
        pen.strokeRect(x + 0.5, y + 0.5, size - 1, size - 1);
      }
    }
    const broken = this.notReady.has(place);
    if (broken || this.cordoned.has(place)) this.drawStrokes(pen, x, y, size, broken);
  }

  drawStrokes(pen, x, y, size, crossed) {
    pen.strokeStyle = this.colours.card;
    pen.lineWidth = 4;
    this.strokes(pen, x, y, size, crossed);
    pen.strokeStyle = crossed ? this.colours.bad : this.colours.ink;
    pen.lineWidth = 2;
    this.strokes(pen, x, y, size, crossed);
  }

  strokes(pen, x, y, size, crossed) {
    pen.beginPath();
    pen.moveTo(x + 2, y + size - 2);
    pen.lineTo(x + size - 2, y + 2);
    if (crossed) {
      pen.moveTo(x + 2, y + 2);
      pen.lineTo(x + size - 2, y + size - 2);
    }
    pen.stroke();
  }

  markCurrent(pen) {
    const cell = this.cells[this.current];
    if (!cell) return;
    pen.strokeStyle = this.colours.ink;
    pen.lineWidth = 2;
    pen.strokeRect(cell.x - 1, cell.y - 1, this.size + 2, this.size + 2);
  }

  // -- one node

  select(place) {
    if (place === this.current) return;
    this.current = place;
    this.plan();
  }

  describe(place) {
    const share = this.shares[place], level = LEVELS.indexOf(share), resource = this.getAttribute("resource");
    const percent = Math.round((100 * level) / (LEVELS.length - 1));
    const about = level > 0 && level < LEVELS.length - 1 ? "about " : "";
    const used =
      share === ABSENT ? `has no ${resource}`
      : share === UNKNOWN ? "use not known"
      : `${about}${percent} % of ${resource} in use`;
    const states = [
      this.isVacant(place) && "no job there",
      this.notReady.has(place) && "not ready",
      this.cordoned.has(place) && "cordoned",
    ].filter(Boolean);
    return [this.names[place] ?? "", used, ...states, this.cells[place]?.group].filter(Boolean).join(", ");
  }

  showTip() {
    const cell = this.cells[this.current];
    const text = cell ? this.describe(this.current) : "";
    if (this.tip.textContent !== text) this.tip.textContent = text; // what is said again would be read out again
    this.tip.style.opacity = cell ? 1 : 0; // not hidden, as only what is there already is read out when it changes
    if (!cell) return;
    const left = Math.min(cell.x, this.clientWidth - this.tip.offsetWidth);
    this.tip.style.left = `${Math.max(0, left)}px`;
    this.tip.style.top = `${cell.y + this.size + 6}px`;
  }

  open(place, event) {
    const name = this.names?.[place];
    if (!name) return;
    const target = `/nodes/${encodeURIComponent(name)}`;
    if (event.ctrlKey || event.metaKey) window.open(target, "_blank", "noopener");
    else location.assign(target);
  }

  press(event) {
    const steps = { ArrowLeft: () => this.current - 1, ArrowRight: () => this.current + 1,
      ArrowUp: () => this.beside(-1), ArrowDown: () => this.beside(1),
      Home: () => 0, End: () => this.cells.length - 1 };
    if (event.key === "Enter" && this.current >= 0) {
      this.open(this.current, event);
    } else if (event.key === "Escape") {
      this.select(-1);
    } else if (event.key in steps && this.cells?.length) {
      event.preventDefault();
      const next = this.current < 0 ? 0 : steps[event.key]();
      this.select(Math.min(Math.max(next, 0), this.cells.length - 1));
    }
  }

  /** The cell that is nearest above or below. */
  beside(direction) {
    const from = this.cells[this.current];
    let best = this.current, least = Infinity;
    this.cells.forEach((cell, place) => {
      const down = (cell.y - from.y) * direction;
      const distance = down * 1000 + Math.abs(cell.x - from.x);
      if (down > 0 && distance < least) [best, least] = [place, distance];
    });
    return best;
  }
}

customElements.define("heat-map", HeatMap);
