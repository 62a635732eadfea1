// This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
// If a copy of the MPL was not distributed with this file, You can obtain one at
// https://mozilla.org/MPL/2.0/.

// A view is a tree of plain objects; patch() makes the document equal to it and touches only what
// differs. Texts become text nodes and nothing is ever read as HTML, so what a task brings along
// cannot run.

const SVG = "http://www.w3.org/2000/svg";

// Only what h() made becomes an element: JSON that a question brings may have a tag and props too.
class Made {
  constructor(tag, props, kids) {
    Object.assign(this, { tag, props, key: props.key, kids });
  }
}

// h("a", {href, onclick, key}, "text", [more], cond && h(…)): null, false and "" are left out.
export const h = (tag, props, ...kids) =>
  new Made(tag, props ?? {}, kids.flat(Infinity).filter((kid) => kid != null && kid !== false && kid !== ""));

export const textOf = (value) => typeof value === "object" ? JSON.stringify(value) : String(value);

// Set as properties: the document's state is apart from the attribute.
const STATES = new Set(["value", "checked", "disabled", "indeterminate", "open", "selected"]);

const listener = (name) => function listen(event) { this.$props[name]?.call(this, event); };

function setProp(node, name, value, before) {
  if (name === "key") return;
  if (name.startsWith("on")) {
    if (!(node.$heard ??= new Set()).has(name)) {
      node.$heard.add(name);
      node.addEventListener(name.slice(2), listener(name));
    }
  } else if (value === before) {
    return;
  } else if (name === "grow") {
    node.style.flexGrow = value; // an attribute with a style would be refused
  } else if (STATES.has(name)) {
    node[name] = value ?? "";
  } else if (value == null || value === false) {
    node.removeAttribute(name);
  } else {
    node.setAttribute(name, value === true ? "" : value);
  }
}

function update(node, kid, inSvg) {
  const before = node.$props ?? {};
  node.$props = kid.props;
  for (const name in before) if (!(name in kid.props)) setProp(node, name, null, before[name]);
  // The choices of a list come before the one that is chosen.
  patch(node, kid.kids, inSvg || kid.tag === "svg");
  for (const name in kid.props) setProp(node, name, kid.props[name], before[name]);
}

function create(kid, inSvg) {
  const svg = inSvg || kid.tag === "svg";
  const node = svg ? document.createElementNS(SVG, kid.tag) : document.createElement(kid.tag);
  node.$tag = kid.tag;
  node.$key = kid.key;
  return node;
}

export function patch(parent, kids, inSvg = false) {
  const wanted = new Set();
  for (const kid of kids) if (kid.key !== undefined) wanted.add(kid.key);
  const kept = new Map();
  for (const node of [...parent.childNodes]) {
    if (node.$key === undefined) continue;
    if (wanted.has(node.$key)) kept.set(node.$key, node);
    else node.remove(); // first, so that those that stay need not move: a moved one loses its focus
  }
  let at = parent.firstChild;
  for (const kid of kids) {
    const isText = !(kid instanceof Made);
    let node = null;
    if (!isText && kid.key !== undefined) {
      node = kept.get(kid.key);
      if (node?.$tag !== kid.tag) node = null;
    } else if (at && at.$key === undefined && (isText ? at.nodeType === 3 : at.$tag === kid.tag)) {
      node = at;
    }
    node ??= isText ? document.createTextNode("") : create(kid, inSvg);
    if (node === at) at = at.nextSibling;
    else parent.insertBefore(node, at);
    if (!isText) update(node, kid, inSvg);
    else if (node.data !== textOf(kid)) node.data = textOf(kid);
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

// Painting: at most ten times a second, and not while nobody looks.
const PAINT_MS = 100;
let paint = () => {};
let due = false;
let last = 0;
export const painted = { times: 0 };

function run() {
  due = false;
  if (document.hidden) return;
  last = performance.now();
  painted.times++;
  paint();
}

export function dirty() {
  if (due || document.hidden) return;
  due = true;
  setTimeout(run, Math.max(0, PAINT_MS - (performance.now() - last)));
}

export function paintBy(fn) {
  paint = fn;
  document.addEventListener("visibilitychange", dirty);
  dirty();
}

// What a reader of the screen is told: a summary at most every five seconds, answers at once.
const SAY_MS = 5000;
let said = 0;
export function say(text, now = false) {
  if (!now && performance.now() - said < SAY_MS) return;
  said = performance.now();
  document.getElementById("said").textContent = text;
}
