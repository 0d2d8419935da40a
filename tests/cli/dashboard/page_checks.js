// What is wrong with a page for somebody who cannot see it well, or not at all, or on a small screen: a list of sentences.
// Evaluated in the page; the last expression is the result.

(() => {
  const problems = [];
  const shown = (element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: true });
  const name = (element) => element.outerHTML.slice(0, 160);

  // -- structure

  const headings = [...document.querySelectorAll("h1, h2, h3, h4, h5, h6")].filter(shown);
  const firsts = headings.filter((heading) => heading.tagName === "H1").length;
  if (firsts !== 1) problems.push(`${firsts} headings of the first level`);
  let level = 0;
  for (const heading of headings) {
    const next = Number(heading.tagName[1]);
    if (next > level + 1) problems.push(`a heading of level ${next} below one of level ${level}: ${name(heading)}`);
    if (!heading.textContent.trim()) problems.push(`a heading without text: ${name(heading)}`);
    level = next;
  }
  for (const wanted of ["main", "header", "header nav"]) {
    if (document.querySelectorAll(wanted).length !== 1) problems.push(`not one <${wanted}>`);
  }
  const landmarks = [...document.querySelectorAll("nav")].map((each) => each.getAttribute("aria-label") || "");
  if (landmarks.includes("") || new Set(landmarks).size < landmarks.length) problems.push(`navigation is not told apart: ${landmarks}`);
  if (!document.documentElement.lang) problems.push("no language");
  if (!document.title.trim()) problems.push("no title");
  const ids = new Map();
  for (const element of document.querySelectorAll("[id]")) ids.set(element.id, (ids.get(element.id) || 0) + 1);
  for (const [id, count] of ids) if (count > 1) problems.push(`the id ${id} is used ${count} times`);

  // -- names of what can be used, and of pictures

  const label = (element) =>
    (element.getAttribute("aria-label") || "").trim() ||
    (element.getAttribute("aria-labelledby") || "")
      .split(" ")
      .map((id) => (document.getElementById(id) || {}).textContent || "")
      .join("")
      .trim() ||
    [...(element.labels || [])].map((each) => each.textContent).join("").trim();
  for (const field of document.querySelectorAll("input:not([type=hidden]), select, textarea")) {
    if (!label(field)) problems.push(`a field without a label: ${name(field)}`);
  }
  for (const active of document.querySelectorAll("a[href], button, summary")) {
    const text = active.textContent.trim() || label(active) || (active.querySelector("img, svg") || {}).alt;
    if (!text && shown(active)) problems.push(`nothing says what this does: ${name(active)}`);
  }
  for (const image of document.querySelectorAll("img")) {
    if (!image.hasAttribute("alt")) problems.push(`a picture without a text: ${name(image)}`);
  }
  for (const drawing of document.querySelectorAll("svg")) {
    const told = label(drawing) || drawing.querySelector("title") || drawing.closest("[aria-hidden=true]");
    if (!told && drawing.getAttribute("role") !== "presentation") problems.push(`a drawing without a text: ${name(drawing)}`);
  }
  for (const table of document.querySelectorAll("table")) {
    if (!table.querySelector("th")) problems.push(`a table without headings: ${name(table)}`);
    const around = table.closest("section, .card");
    const told = table.caption || label(table) || (around && around.querySelector("h2, h3"));
    if (!told) problems.push(`a table without a name: ${name(table)}`);
  }

  // -- width

  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) {
    const wide = [...document.querySelectorAll("body *")].filter(
      (element) => shown(element) && element.getBoundingClientRect().right > root.clientWidth + 1 && !element.closest(".scroll"),
    );
    problems.push(`it is ${root.scrollWidth} px wide on ${root.clientWidth}: ${wide.slice(0, 3).map(name).join(" | ")}`);
  }

  // -- contrast

  const channels = (colour) => {
    const parts = colour.match(/[\d.]+%?/g) || [];
    const numbers = parts.map(Number);
    if (colour.startsWith("color(srgb")) return [...numbers.slice(0, 3).map((part) => part * 255), numbers[3] ?? 1];
    return [...numbers.slice(0, 3), numbers[3] ?? 1];
  };
  const over = (front, back) => front.slice(0, 3).map((part, index) => part * front[3] + back[index] * (1 - front[3]));
  const background = (element) => {
    const layers = [];
    for (let each = element; each; each = each.parentElement) {
      const layer = channels(getComputedStyle(each).backgroundColor);
      if (layer[3] > 0) layers.unshift(layer);
      if (layer[3] === 1) break;
    }
    return layers.reduce((below, layer) => over(layer, below), channels(getComputedStyle(document.body).backgroundColor));
  };
  const luminance = (colour) => {
    const [red, green, blue] = colour.map((part) => {
      const share = part / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const contrast = (one, other) => {
    const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (light + 0.05) / (dark + 0.05);
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const told = new Set();
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !shown(element) || element.closest("script, style, title, .quiet, .skip")) continue;
    const style = getComputedStyle(element);
    const isDrawn = element.closest("svg");
    const back = background(isDrawn ? isDrawn.parentElement : element);
    const front = over(channels(isDrawn ? style.fill : style.color), back);
    const ratio = contrast(front, back);
    const key = `${front} ${back}`;
    if (ratio < 4.5 && !told.has(key)) {
      told.add(key);
      problems.push(`contrast ${ratio.toFixed(2)} of ${front.map(Math.round)} on ${back.map(Math.round)}: ${name(element)}`);
    }
  }
  return problems;
})();
