/*
 * The attention view: lines between tokens, heat map, all heads, table of heads.
 *
 * One file without dependencies or build step. It defines
 *
 *   T2TAttention.mount(rootElement, source) -> {refresh(), destroy()}
 *   T2TAttention.fromDocuments(documents, branches?) -> source
 *
 * where `source` hides where the data comes from (see `fromDocuments` for the methods).
 * Tokens are untrusted: they reach the page through textContent, title and aria-label
 * only. The page needs no inline style attribute and no inline handler, so it runs under
 * a strict Content-Security-Policy.
 */
"use strict";

// ---------------------------------------------------------------- numbers

let halfTable = null;

/** Return the value of every float16 by its bits. */
function halfValues() {
  if (halfTable) return halfTable;
  halfTable = new Float32Array(65536);
  for (let bits = 0; bits < 65536; bits++) {
    const sign = bits & 0x8000 ? -1 : 1;
    const exponent = (bits >> 10) & 31;
    const fraction = bits & 1023;
    if (exponent === 31) halfTable[bits] = fraction ? NaN : sign * Infinity;
    else if (exponent === 0) halfTable[bits] = sign * fraction * 2 ** -24;
    else halfTable[bits] = sign * (1024 + fraction) * 2 ** (exponent - 25);
  }
  return halfTable;
}

/** Decode base64 of little-endian float16; `count` is the expected number. */
function decodeWeights(text, count, label) {
  const bytes = atob(text);
  if (bytes.length !== 2 * count) {
    throw new Error(
      `The weights of “${label}” have ${bytes.length} bytes; expected ${2 * count}.`,
    );
  }
  const values = halfValues();
  const weights = new Float32Array(count);
  for (let i = 0; i < count; i++) {
    weights[i] = values[bytes.charCodeAt(2 * i) | (bytes.charCodeAt(2 * i + 1) << 8)];
  }
  return weights;
}

/** Merge subwords to words: mean over queries, sum over keys. */
function mergeWords(weights, maps, queryWords, keyWords, spans) {
  const [Q, K] = [queryWords.length, keyWords.length];
  const [rows, columns] = [spans.queries.length, spans.keys.length];
  const merged = new Float32Array(maps * rows * columns);
  for (let map = 0, from = 0; map < maps; map++) {
    for (let q = 0; q < Q; q++) {
      const [start, end] = spans.queries[queryWords[q]];
      const row = (map * rows + queryWords[q]) * columns;
      for (let k = 0; k < K; k++, from++) {
        merged[row + keyWords[k]] += weights[from] / (end - start);
      }
    }
  }
  return merged;
}

/**
 * Return the figures of every head, [layer][head].
 *
 * entropy: in nats, mean over queries. distance: mean of |q - k| weighted by attention,
 * in positions; for two different sequences, in shares of their lengths. strongest:
 * mean over queries of the largest weight. oneToOne: the largest weight that each key
 * receives, summed and divided by the smaller number of queries and keys. It is 1 if
 * every word has a partner of its own, and small if all queries attend to the same key
 * or to everything alike. It assumes nothing about the order of words.
 */
function headFigures(map) {
  const { layers, heads, weights } = map;
  const [Q, K] = [map.queries.length, map.keys.length];
  const relative = map.distance === "relative";
  const position = (index, count) => (relative ? (index + 0.5) / count : index);
  const figures = [];
  let at = 0;
  for (let layer = 0; layer < layers; layer++) {
    for (let head = 0; head < heads; head++) {
      let [entropy, distance, strongest] = [0, 0, 0];
      const received = new Float32Array(K);
      for (let q = 0; q < Q; q++) {
        let largest = 0;
        for (let k = 0; k < K; k++) {
          const weight = weights[at++];
          if (weight <= 0) continue;
          entropy -= weight * Math.log(weight);
          distance += weight * Math.abs(position(q, Q) - position(k, K));
          if (weight > largest) largest = weight;
          if (weight > received[k]) received[k] = weight;
        }
        strongest += largest;
      }
      figures.push({
        layer,
        head,
        entropy: entropy / Q,
        distance: map.distance ? distance / Q : null,
        strongest: strongest / Q,
        oneToOne: received.reduce((a, b) => a + b, 0) / Math.min(Q, K),
      });
    }
  }
  return figures;
}

// -------------------------------------------------------------- documents

const SPACE = "\u2581";
const LONGEST_LABEL = 80;
const SEQUENCE_NAMES = { source: "Source", target: "Target", read: "Decoder input" };

const shorten = (text, length = LONGEST_LABEL) =>
  text.length > length ? `${[...text.slice(0, length)].join("")}…` : text;

function sequenceName(name) {
  const words = name.replaceAll("_", " ");
  return SEQUENCE_NAMES[name] ?? words.charAt(0).toUpperCase() + words.slice(1);
}

/** Return the spans of the words, or one span per token where there are none. */
function wordSpans(sequence) {
  const count = sequence.tokens.length;
  let at = 0;
  for (const [start, end] of sequence.words ?? []) {
    if (start !== at || end <= start) break;
    at = end;
  }
  return at === count && count ? sequence.words : sequence.tokens.map((_, i) => [i, i + 1]);
}

/** Return the text of each row or column: tokens, or words joined from tokens. */
function unitsOf(sequence, words) {
  if (!words) return sequence.tokens.map(String);
  return wordSpans(sequence).map(([start, end]) => {
    const raw = sequence.tokens.slice(start, end).join("");
    return raw.replaceAll(SPACE, " ").trim() || raw;
  });
}

/** Check a document and remember what is computed from it. */
class Sentence {
  constructor(document) {
    if (document?.version !== 1) {
      throw new Error(`The attention data has version ${document?.version}; expected 1.`);
    }
    if (!document.maps?.length) throw new Error("The sentence has no attention weights.");
    this.document = document;
    this.cache = new Map();
    const sequences = Object.values(document.sequences);
    this.hasSubwords = sequences.some((s) => wordSpans(s).length < s.tokens.length);
  }

  remember(key, compute) {
    if (!this.cache.has(key)) this.cache.set(key, compute());
    return this.cache.get(key);
  }

  /** Return one kind of attention with decoded weights and the labels of both sides. */
  map(index, words) {
    return this.remember(`map ${index} ${words}`, () => this.build(index, words));
  }

  figures(index, words) {
    return this.remember(`figures ${index} ${words}`, () =>
      headFigures(this.map(index, words)),
    );
  }

  build(index, words) {
    const raw = this.document.maps[index];
    const queries = this.document.sequences[raw.queries];
    const keys = this.document.sequences[raw.keys];
    if (!queries?.tokens.length || !keys?.tokens.length) {
      throw new Error(`“${raw.label}” has no tokens.`);
    }
    const map = {
      ...raw,
      queryName: sequenceName(raw.queries),
      keyName: sequenceName(raw.keys),
      queries: unitsOf(queries, words),
      keys: unitsOf(keys, words),
      // The rows of attention over parameters have no position.
      distance:
        raw.kind === "memory"
          ? "relative"
          : raw.queries === raw.keys || raw.kind === "decoder_self"
            ? "positions"
            : null,
    };
    map.weights = words ? this.merged(index, queries, keys) : this.decoded(raw, queries, keys);
    return map;
  }

  decoded(raw, queries, keys) {
    const count = raw.layers * raw.heads * queries.tokens.length * keys.tokens.length;
    return decodeWeights(raw.weights, count, raw.label);
  }

  merged(index, queries, keys) {
    const tokens = this.map(index, false);
    const spans = { queries: wordSpans(queries), keys: wordSpans(keys) };
    const wordOf = (list) =>
      list.flatMap(([start, end], word) => Array(end - start).fill(word));
    const maps = tokens.layers * tokens.heads;
    return mergeWords(
      tokens.weights, maps, wordOf(spans.queries), wordOf(spans.keys), spans,
    );
  }
}

/**
 * Return a source over documents in memory: one run, one step.
 *
 * A source has runs() -> [names], list(run) -> {sentences: [{id, title, steps}],
 * branches}, load(run, id, step) -> document and branches(run) -> [{step, layers}],
 * all as promises. The page shows the message of a rejected promise.
 */
function fromDocuments(documents, branches = []) {
  const sentences = documents.map((document, id) => ({
    id,
    title: document.title || `Sentence ${id + 1}`,
    steps: [0],
  }));
  return {
    runs: async () => (documents.length ? [""] : []),
    list: async () => ({ sentences, branches: branches.length > 0 }),
    load: async (run, id) => documents[id],
    branches: async () => branches,
  };
}

// ---------------------------------------------------------------- elements

const SVG = "http://www.w3.org/2000/svg";

function fill(node, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "text") node.textContent = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

const el = (tag, properties, ...children) =>
  fill(document.createElement(tag), properties, children);
const svg = (tag, properties, ...children) =>
  fill(document.createElementNS(SVG, tag), properties, children);

/** Return a token's label: isolated for right-to-left text, cut if it is very long. */
function tokenLabel(text) {
  const label = el("bdi", { class: "label", dir: "auto" });
  if (text.length > 12) label.title = text;
  let rest = text;
  if (rest.startsWith(SPACE) && rest.length > 1) {
    label.append(el("span", { class: "space", text: SPACE }));
    rest = rest.slice(1);
  }
  label.append(shorten(rest) || "∅");
  return label;
}

const number = (value, digits = 2) =>
  value === null ? "–" : value.toFixed(digits).replace("-", "−");
const stepName = (step) => step.toLocaleString("en");
const sentenceOf = (error) => {
  const text = String(error?.message ?? error ?? "").trim() || "The data can't be read";
  return /[.!?]$/.test(text) ? text : `${text}.`;
};

/**
 * Let the arrow keys move the focus among columns of elements, with one Tab stop.
 *
 * Home and End go to the ends of a column. The element focused last keeps the stop.
 */
function rove(container, columns, options = {}) {
  const find = (node) => {
    for (let x = 0; x < columns.length; x++) {
      const y = columns[x].indexOf(node);
      if (y >= 0) return [x, y];
    }
    return null;
  };
  const all = columns.flat();
  const stop = (node) => all.forEach((other) => (other.tabIndex = other === node ? 0 : -1));
  if (all.length) stop(options.first ?? all[0]);
  container.addEventListener("focusin", (event) => {
    if (find(event.target)) stop(event.target);
  });
  container.addEventListener("keydown", (event) => {
    const place = find(event.target);
    if (!place || event.altKey || event.ctrlKey || event.metaKey) return;
    let [x, y] = place;
    const horizontal = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const vertical = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (horizontal) x += horizontal;
    else if (vertical) y += vertical;
    else if (event.key === "Home") y = 0;
    else if (event.key === "End") y = columns[x].length - 1;
    else return;
    event.preventDefault();
    const column = columns[Math.max(0, Math.min(columns.length - 1, x))];
    const target = column[Math.max(0, Math.min(column.length - 1, y))];
    target.focus();
    target.scrollIntoView({ block: "nearest" });
    options.moved?.(target);
  });
}

// ----------------------------------------------------------------- colours

// Ten colours each for light and dark, chosen for their distance to each other as seen
// with normal vision, protanopia, deuteranopia and tritanopia. Beyond ten they repeat;
// lines are then dashed, and every head has its number.
const COLOURS = {
  light: [
    "#0076b1", "#d86200", "#00996b", "#7600b1", "#ea8a9d",
    "#623b00", "#b1a800", "#143b76", "#a99bf0", "#a13c5c",
  ],
  dark: [
    "#4eb1eb", "#eb9d00", "#4fd6a8", "#e0559a", "#6f7cff",
    "#d8d876", "#ff7a5c", "#b1c4ff", "#a86fd0", "#b07a2a",
  ],
};
const DASHED_FROM = COLOURS.light.length;

const channels = (colour) => [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));

// Small weights would be invisible on a linear scale.
const shade = (weight) => Math.min(1, Math.max(0, weight)) ** 0.6;

/** Draw the weights of one head, one pixel per pair; CSS enlarges the canvas. */
function paintHead(canvas, map, layer, head, theme) {
  const [Q, K] = [map.queries.length, map.keys.length];
  [canvas.width, canvas.height] = [K, Q];
  const context = canvas.getContext("2d");
  const image = context.createImageData(K, Q);
  const low = channels(theme.paper);
  const high = channels(theme.colours[head % theme.colours.length]);
  const start = (layer * map.heads + head) * Q * K;
  for (let i = 0; i < Q * K; i++) {
    const share = shade(map.weights[start + i]);
    for (let c = 0; c < 3; c++) {
      image.data[4 * i + c] = low[c] + (high[c] - low[c]) * share;
    }
    image.data[4 * i + 3] = 255;
  }
  context.putImageData(image, 0, 0);
}

// ------------------------------------------------------------ view: lines

const LEAST_FAINT = 0.02; // weights below are not drawn while no token is chosen
const LEAST_DRAWN = 0.005;
const FAINT_LEVELS = [0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.01];

const curve = (x1, y1, x2, y2) => {
  const bend = (x2 - x1) * 0.45;
  return `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
};

class LinesPanel {
  constructor(app) {
    this.app = app;
    const { map } = app;
    this.sides = {
      query: this.column("query", map.queries),
      key: this.column("key", map.keys),
    };
    this.canvas = el("canvas", { "aria-hidden": "true" });
    this.overlay = svg("svg", { "aria-hidden": "true", class: "overlay" });
    this.middle = el("div", { class: "middle" });
    this.scroller = el(
      "div",
      { class: "lines", onscroll: () => this.draw() },
      el("div", { class: "glass" }, this.canvas, this.overlay),
      el("div", { class: "line-columns" },
        this.sides.query.list, this.middle, this.sides.key.list),
    );
    this.main = el(
      "div",
      { class: "panel-body" },
      el("div", { class: "line-heads" },
        el("h3", { text: map.queryName }, el("span", { text: "asks (query)" })),
        el("h3", { text: map.keyName }, el("span", { text: "is looked at (key)" }))),
      this.scroller,
    );
    this.aside = el("section", { class: "card ranking" });
    this.hover = null;
    this.focused = null;
    this.listen();
  }

  column(side, units) {
    const buttons = units.map((text, index) =>
      el("button",
        {
          type: "button", class: "token", "data-side": side, "data-index": index,
          "aria-pressed": "false",
          "aria-label": `${side === "query" ? "Query" : "Key"} ${index + 1}: ${shorten(text)}`,
        },
        tokenLabel(text)),
    );
    const list = el("div", {
      class: `tokens ${side}`, role: "group",
      "aria-label": side === "query" ? "Queries" : "Keys",
    }, ...buttons);
    return { buttons, list };
  }

  listen() {
    const { query, key } = this.sides;
    const tokenOf = (event) => {
      const node = event.target.closest?.(".token");
      return node && { side: node.dataset.side, index: Number(node.dataset.index) };
    };
    const root = this.scroller;
    root.addEventListener("pointerover", (event) => this.change({ hover: tokenOf(event) }));
    root.addEventListener("pointerleave", () => this.change({ hover: null }));
    root.addEventListener("focusin", (event) => {
      // A click focuses, too; only the keyboard's focus counts.
      const focused = event.target.matches(":focus-visible") ? tokenOf(event) : null;
      this.change({ focused });
    });
    root.addEventListener("focusout", () => this.change({ focused: null }));
    root.addEventListener("click", (event) => {
      const token = tokenOf(event);
      if (!token) return;
      const { pin } = this.app.state;
      const same = pin && pin.side === token.side && pin.index === token.index;
      this.app.state.pin = same ? null : token;
      this.change({});
    });
    root.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      this.app.state.pin = null;
      this.change({ focused: null });
    });
    rove(root, [query.buttons, key.buttons]);
  }

  change(patch) {
    Object.assign(this, patch);
    this.draw();
    this.rank();
  }

  /** Return the pinned token, else the one under the pointer or the focus. */
  active() {
    const { pin } = this.app.state;
    if (pin && pin.index < this.sides[pin.side].buttons.length) return pin;
    return this.hover ?? this.focused;
  }

  /** Return the weight between the active token and one of the other side. */
  weight(active, other, head) {
    const { map, state } = this.app;
    const [q, k] = active.side === "query" ? [active.index, other] : [other, active.index];
    const [Q, K] = [map.queries.length, map.keys.length];
    return map.weights[((state.layer * map.heads + head) * Q + q) * K + k];
  }

  /** Return what each key receives, mean over queries. */
  received(key, head) {
    const { map, state } = this.app;
    const [Q, K] = [map.queries.length, map.keys.length];
    let sum = 0;
    let at = (state.layer * map.heads + head) * Q * K + key;
    for (let q = 0; q < Q; q++, at += K) sum += map.weights[at];
    return sum / Q;
  }

  layout() {
    const { map } = this.app;
    const longest = Math.max(map.queries.length, map.keys.length);
    const room = Math.max(360, innerHeight * 0.72);
    this.row = Math.max(17, Math.min(30, Math.floor(room / longest)));
    this.scroller.style.setProperty("--row", `${this.row}px`);
    this.scroller.style.setProperty("--font", `${Math.min(15, this.row - 4)}px`);
    // Up to 8 pixels per head for the small bars, at most 96 beside a column.
    this.pitch = Math.max(2, Math.min(this.app.narrow() ? 4 : 8, 96 / map.heads));
    this.scroller.style.setProperty("--bars", `${Math.ceil(this.pitch * map.heads) + 8}px`);
  }

  update() {
    this.layout();
    this.change({});
  }

  measure() {
    const { query, key } = this.sides;
    const width = this.scroller.clientWidth;
    const height = this.scroller.clientHeight;
    return {
      width, height,
      top: this.scroller.scrollTop,
      left: query.list.offsetLeft + query.list.offsetWidth,
      right: key.list.offsetLeft,
      leftBars: query.list.offsetLeft - 6,
      rightBars: key.list.offsetLeft + key.list.offsetWidth + 6,
    };
  }

  y(index, box) {
    return (index + 0.5) * this.row - box.top;
  }

  draw() {
    if (!this.row) return;
    const box = this.measure();
    const active = this.active();
    const heads = this.app.headsOn();
    this.mark(active, heads);
    this.drawFaint(box, heads, active);
    this.overlay.setAttribute("width", box.width);
    this.overlay.setAttribute("height", box.height);
    const parts = active
      ? [...this.activeLines(box, heads, active), ...this.activeBars(box, heads, active)]
      : this.idleBars(box, heads);
    this.overlay.replaceChildren(...parts);
  }

  /** Shade the tokens of the other side by their largest weight. */
  mark(active, heads) {
    const { pin } = this.app.state;
    for (const [side, { buttons }] of Object.entries(this.sides)) {
      buttons.forEach((button, index) => {
        const chosen = Boolean(active && active.side === side && active.index === index);
        const pinned = chosen && Boolean(pin) && active === pin;
        button.classList.toggle("active", chosen);
        button.setAttribute("aria-pressed", String(pinned));
        let share = 1;
        if (active && side !== active.side) {
          share = Math.max(0, ...heads.map((head) => this.weight(active, index, head)));
        } else if (active && !chosen) share = 0;
        button.style.setProperty("--share", active ? (0.3 + 0.7 * shade(share)).toFixed(2) : 1);
      });
    }
  }

  shift(place, count) {
    return (place - (count - 1) / 2) * Math.min(2.2, (this.row * 0.5) / count);
  }

  visible(a, b, box) {
    return Math.max(a, b) > 0 && Math.min(a, b) < box.height;
  }

  /** Draw all lines on the canvas, one stroke per head and level of weight. */
  drawFaint(box, heads, active) {
    const scale = devicePixelRatio || 1;
    this.canvas.width = Math.round(box.width * scale);
    this.canvas.height = Math.round(box.height * scale);
    this.canvas.style.width = `${box.width}px`;
    this.canvas.style.height = `${box.height}px`;
    if (active) return;
    const { map, state, theme } = this.app;
    const context = this.canvas.getContext("2d");
    context.scale(scale, scale);
    context.lineWidth = 1.4;
    const [Q, K] = [map.queries.length, map.keys.length];
    const bend = (box.right - box.left) * 0.45;
    heads.forEach((head, place) => {
      const paths = FAINT_LEVELS.map(() => new Path2D());
      const shift = this.shift(place, heads.length);
      let at = (state.layer * map.heads + head) * Q * K;
      for (let q = 0; q < Q; q++) {
        for (let k = 0; k < K; k++, at++) {
          const weight = map.weights[at];
          if (weight < LEAST_FAINT) continue;
          const [y1, y2] = [this.y(q, box) + shift, this.y(k, box) + shift];
          if (!this.visible(y1, y2, box)) continue;
          const path = paths[FAINT_LEVELS.findIndex((level) => weight < level)];
          path?.moveTo(box.left, y1);
          path?.bezierCurveTo(
            box.left + bend, y1, box.right - bend, y2, box.right, y2,
          );
        }
      }
      context.strokeStyle = theme.colour(head);
      FAINT_LEVELS.forEach((level, i) => {
        context.globalAlpha = Math.min(0.75, level * 0.7);
        context.stroke(paths[i]);
      });
    });
  }

  others(active) {
    return this.sides[active.side === "query" ? "key" : "query"].buttons.length;
  }

  activeLines(box, heads, active) {
    const lines = [];
    for (let other = 0; other < this.others(active); other++) {
      heads.forEach((head, place) => {
        const weight = this.weight(active, other, head);
        if (weight < LEAST_DRAWN) return;
        const shift = this.shift(place, heads.length);
        const ys = [this.y(active.index, box) + shift, this.y(other, box) + shift];
        if (active.side === "key") ys.reverse();
        if (!this.visible(ys[0], ys[1], box)) return;
        lines.push(svg("path", {
          class: "line", d: curve(box.left, ys[0], box.right, ys[1]),
          stroke: this.app.theme.colour(head), "stroke-opacity": weight.toFixed(3),
          "stroke-dasharray": head >= DASHED_FROM ? "6 3" : null,
          "data-other": other, "data-head": head,
        }));
      });
    }
    return lines;
  }

  /** Draw one small bar per head beside a token. */
  bars(box, side, index, heads, weightOf) {
    const middle = this.y(index, box);
    if (middle < -this.row || middle > box.height + this.row) return [];
    const tall = this.row - 5;
    return heads.flatMap((head) => {
      const height = weightOf(head) * tall;
      if (height < 0.4) return [];
      const x = side === "key"
        ? box.rightBars + head * this.pitch
        : box.leftBars - (this.app.map.heads - head) * this.pitch;
      return [svg("rect", {
        class: "bar", x, width: Math.max(1.5, this.pitch - 1),
        y: middle + tall / 2 - height, height,
        fill: this.app.theme.colour(head), "data-other": index, "data-head": head,
      })];
    });
  }

  activeBars(box, heads, active) {
    const side = active.side === "query" ? "key" : "query";
    return Array.from({ length: this.others(active) }).flatMap((_, other) =>
      this.bars(box, side, other, heads, (head) => this.weight(active, other, head)),
    );
  }

  idleBars(box, heads) {
    return this.app.map.keys.flatMap((_, key) =>
      this.bars(box, "key", key, heads, (head) => this.received(key, head)),
    );
  }

  /** List the strongest partners of the active token, or what all attend to. */
  rank() {
    const { map } = this.app;
    const heads = this.app.headsOn();
    const active = this.active();
    const side = active?.side === "key" ? "queries" : "keys";
    const weightOf = active
      ? (other, head) => this.weight(active, other, head)
      : (other, head) => this.received(other, head);
    const rows = map[side].map((text, other) => {
      const weights = heads.map((head) => weightOf(other, head));
      const mean = weights.reduce((a, b) => a + b, 0) / (heads.length || 1);
      return { text, weights, mean };
    });
    rows.sort((a, b) => b.mean - a.mean);
    const token = active &&
      tokenLabel(map[active.side === "query" ? "queries" : "keys"][active.index]);
    const title = !active
      ? ["Most attended to"]
      : active.side === "query" ? [token, " attends to"] : [token, " is attended to by"];
    this.aside.replaceChildren(
      el("h3", {}, ...title),
      el("p", { class: "hint", text: this.hint(active, heads) }),
      heads.length ? this.rankedList(rows.slice(0, 8), heads) : null,
    );
    if (active && heads.length) {
      this.app.say(
        `${this.aside.firstChild.textContent}: ` +
        rows.slice(0, 3).map((row) => `${shorten(row.text)} ${number(row.mean)}`).join(", "),
      );
    }
  }

  hint(active, heads) {
    if (!heads.length) return "All heads are hidden. Switch one on above.";
    const of = heads.length === 1 ? `head ${heads[0] + 1}` : `${heads.length} heads`;
    if (!active) {
      return `Mean over ${of} and all queries. Point at a token to see its lines; click to pin it.`;
    }
    const pinned = active === this.app.state.pin;
    const mean = heads.length === 1 ? `Weight of ${of}.` : `Mean weight over ${of}.`;
    return `${mean} ${pinned ? "Pinned: click again or press Escape to release." : "Click to pin."}`;
  }

  rankedList(rows, heads) {
    return el("ol", {}, ...rows.map((row) => {
      const bar = el("span", { class: "stack", "aria-hidden": "true" });
      row.weights.forEach((weight, i) => {
        const part = el("i");
        part.style.width = `${(100 * weight) / heads.length}%`;
        part.style.background = this.app.theme.colour(heads[i]);
        bar.append(part);
      });
      return el("li", {}, tokenLabel(row.text),
        el("span", { class: "number", text: number(row.mean) }), bar);
    }));
  }
}

// --------------------------------------------------------- view: heat map

class HeatPanel {
  constructor(app) {
    this.app = app;
    const { map } = app;
    this.cursor = null;
    this.canvas = el("canvas", { "aria-hidden": "true" });
    this.grid = el("div", { class: "cell-grid", "aria-hidden": "true" });
    this.outline = el("div", { class: "outline", hidden: true });
    this.plot = el(
      "div",
      {
        class: "plot", tabindex: 0, role: "application",
        "aria-roledescription": "heat map",
        "aria-label": "Heat map. The arrow keys move among the weights.",
        onpointermove: (event) => this.point(event),
        onpointerleave: () => this.move(null),
        onkeydown: (event) => this.key(event),
        onfocus: () => this.plot.matches(":focus-visible") && this.move(this.cursor ?? [0, 0]),
      },
      this.canvas, this.grid, this.outline,
    );
    const labels = (units) => units.map((text) => el("div", { class: "tick" }, tokenLabel(text)));
    this.rows = labels(map.queries);
    this.columns = labels(map.keys);
    this.readout = el("p", { class: "readout" });
    this.scroller = el(
      "div", { class: "heat" },
      el("div", { class: "corner" },
        el("span", { text: `${map.keyName} →` }), el("span", { text: `${map.queryName} ↓` })),
      el("div", { class: "top" }, ...this.columns),
      el("div", { class: "left" }, ...this.rows),
      this.plot,
    );
    this.main = el("div", { class: "panel-body" }, this.readout, this.scroller);
    this.aside = el("section", { class: "card" });
  }

  update() {
    const { map, state, theme } = this.app;
    paintHead(this.canvas, map, state.layer, state.head, theme);
    const [Q, K] = [map.queries.length, map.keys.length];
    const width = this.main.clientWidth - 150;
    const height = innerHeight * 0.66;
    const fit = Math.floor(Math.min(width / K, height / Q));
    this.cell = Math.max(14, Math.min(40, fit));
    const style = this.scroller.style;
    style.setProperty("--cell", `${this.cell}px`);
    style.setProperty("--columns", K);
    style.setProperty("--rows", Q);
    style.setProperty("--colour", theme.colour(state.head));
    this.describe();
    this.move(this.cursor);
  }

  point(event) {
    const box = this.plot.getBoundingClientRect();
    const q = Math.floor((event.clientY - box.top) / this.cell);
    const k = Math.floor((event.clientX - box.left) / this.cell);
    const { map } = this.app;
    this.move(q >= 0 && k >= 0 && q < map.queries.length && k < map.keys.length ? [q, k] : null);
  }

  key(event) {
    const moves = {
      ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
    };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    const { map } = this.app;
    const [q, k] = this.cursor ?? [0, 0];
    this.move([
      Math.max(0, Math.min(map.queries.length - 1, q + move[0])),
      Math.max(0, Math.min(map.keys.length - 1, k + move[1])),
    ]);
    this.outline.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  move(cursor) {
    const { map, state } = this.app;
    const [Q, K] = [map.queries.length, map.keys.length];
    if (cursor && (cursor[0] >= Q || cursor[1] >= K)) cursor = null;
    this.cursor = cursor;
    this.rows.forEach((node, q) => node.classList.toggle("active", cursor?.[0] === q));
    this.columns.forEach((node, k) => node.classList.toggle("active", cursor?.[1] === k));
    this.outline.hidden = !cursor;
    if (!cursor) {
      this.readout.replaceChildren("Point at a cell, or move with the arrow keys.");
      return;
    }
    const [q, k] = cursor;
    const weight = map.weights[((state.layer * map.heads + state.head) * Q + q) * K + k];
    this.outline.style.transform = `translate(${k * this.cell}px, ${q * this.cell}px)`;
    this.readout.replaceChildren(
      tokenLabel(map.queries[q]), el("span", { text: " attends to " }),
      tokenLabel(map.keys[k]), el("b", { text: number(weight, 3) }),
    );
    this.app.say(`${shorten(map.queries[q])} attends to ${shorten(map.keys[k])}: ${number(weight, 3)}`);
  }

  describe() {
    const { state, map } = this.app;
    const figures = this.app.figures().find(
      (one) => one.layer === state.layer && one.head === state.head,
    );
    const list = el("dl", { class: "figures" });
    for (const column of columnsOf(map)) {
      if (!column.digits) continue;
      list.append(
        el("dt", { text: column.label, title: column.about }),
        el("dd", { text: number(figures[column.name], column.digits) }),
      );
    }
    const scale = el("div", { class: "scale", "aria-hidden": "true" });
    const ramp = el("div", { class: "ramp" });
    for (let i = 0; i <= 20; i++) {
      const part = el("i");
      part.style.opacity = shade(i / 20);
      part.style.background = this.app.theme.colour(state.head);
      ramp.append(part);
    }
    scale.append(ramp, ...["0", "0.5", "1"].map((text) => el("span", { text })));
    this.aside.replaceChildren(
      el("h3", { text: `Layer ${state.layer + 1}, head ${state.head + 1}` }), list,
      el("p", { class: "hint", text: "Weight" }), scale,
    );
  }
}

// -------------------------------------------------------- view: all heads

class GridPanel {
  constructor(app) {
    this.app = app;
    const { map, state } = app;
    const cells = new Map();
    // Only canvases that scroll into sight are painted.
    this.painted = new Set();
    this.observer = new IntersectionObserver((entries) => {
      for (const entry of entries) if (entry.isIntersecting) this.paint(entry.target);
    });
    const figures = app.figures();
    const rows = [];
    for (let layer = 0; layer < map.layers; layer++) {
      const row = el("div", { class: "grid-row" }, el("span", { class: "grid-name", text: `Layer ${layer + 1}` }));
      for (let head = 0; head < map.heads; head++) {
        const { entropy } = figures[layer * map.heads + head];
        const canvas = el("canvas", { "aria-hidden": "true" });
        const button = el("button", {
          type: "button", class: "small", "data-layer": layer, "data-head": head,
          title: `Layer ${layer + 1}, head ${head + 1}`,
          "aria-label": `Layer ${layer + 1}, head ${head + 1}, entropy ${number(entropy)}`,
          onclick: () => app.open(layer, head, "heat"),
        }, canvas);
        cells.set(`${layer} ${head}`, button);
        row.append(button);
      }
      rows.push(row);
    }
    const names = el("div", { class: "grid-row names", "aria-hidden": "true" }, el("span"),
      ...Array.from({ length: map.heads }, (_, head) =>
        el("span", { text: `Head ${head + 1}` })));
    this.buttons = [...cells.values()];
    this.grid = el("div", { class: "grid", role: "group", "aria-label": "All layers and heads" }, names, ...rows);
    this.grid.style.setProperty("--heads", map.heads);
    rove(this.grid, Array.from({ length: map.heads }, (_, head) =>
      Array.from({ length: map.layers }, (_, layer) => cells.get(`${layer} ${head}`))),
    { first: cells.get(`${state.layer} ${state.head}`) });
    this.main = el("div", { class: "panel-body" },
      el("p", { class: "hint", text: `Each picture is one head: rows are ${map.queryName.toLowerCase()} (queries), columns ${map.keyName.toLowerCase()} (keys). Click one to open it.` }),
      this.grid);
    this.aside = null;
  }

  paint(button) {
    const { layer, head } = button.dataset;
    paintHead(button.firstChild, this.app.map, Number(layer), Number(head), this.app.theme);
    this.painted.add(button);
  }

  update() {
    const { state, map } = this.app;
    const best = this.app.best();
    const ratio = Math.max(0.4, Math.min(2.5, map.keys.length / map.queries.length));
    this.grid.style.setProperty("--ratio", ratio.toFixed(3));
    for (const button of this.buttons) {
      const layer = Number(button.dataset.layer);
      const head = Number(button.dataset.head);
      const chosen = layer === state.layer && head === state.head;
      button.classList.toggle("chosen", chosen);
      button.classList.toggle("best", layer === best?.layer && head === best?.head);
      if (this.painted.has(button)) this.paint(button);
      else this.observer.observe(button);
    }
  }

  destroy() {
    this.observer.disconnect();
  }
}

// ------------------------------------------------------------ view: table

/** Return the columns of the table; those with digits are figures of the head. */
function columnsOf(map) {
  const columns = [
    { name: "layer", label: "Layer" },
    { name: "head", label: "Head" },
    {
      name: "entropy", label: "Entropy (nats)", digits: 3,
      about: "Mean over queries. 0: each query attends to one key. Larger: spread over many.",
    },
    {
      name: "strongest", label: "Strongest key", digits: 3,
      about: "Mean over queries of the largest weight: how sharp the head is.",
    },
  ];
  if (map.distance === "positions") {
    columns.push({
      name: "distance", label: "Distance", digits: 2,
      about: "Mean of |query − key| in positions, weighted by attention.",
    });
  } else if (map.distance === "relative") {
    columns.push({
      name: "distance", label: "Distance (share of length)", digits: 3,
      about: "Mean of |query ∕ target length − key ∕ source length|, weighted by attention. 0: on the diagonal.",
    });
  }
  if (map.kind === "memory") {
    columns.unshift({
      name: "oneToOne", label: "Aligns words", digits: 3,
      about: "The largest weight that each source word receives, summed and divided by the number of words of the shorter side. 1: every word has a partner of its own. Near 0: all look at the same word, or at everything alike.",
    });
  }
  return columns;
}

class TablePanel {
  constructor(app) {
    this.app = app;
    const { map } = app;
    this.columns = columnsOf(map);
    app.state.sort ??= map.kind === "memory" ? ["oneToOne", -1] : ["layer", 1];
    if (!this.columns.some(({ name }) => name === app.state.sort[0])) {
      app.state.sort = ["layer", 1];
    }
    // Heads come first: what identifies the row.
    const order = (column) => (column.digits ? 1 : 0);
    this.columns.sort((a, b) => order(a) - order(b));
    this.headers = this.columns.map((column) => this.header(column));
    this.body = el("tbody");
    this.main = el("div", { class: "panel-body" },
      el("p", { class: "hint", text: this.about() }),
      el("div", { class: "table-scroller" },
        el("table", {},
          el("caption", { class: "hidden", text: `Figures of every head of ${map.label}` }),
          el("thead", {}, el("tr", {}, ...this.headers.map(({ cell }) => cell))),
          this.body)));
    this.aside = null;
    this.rows = app.figures().map((figures) => ({ figures, row: this.row(figures) }));
  }

  about() {
    const units = this.app.words() ? "words" : "subwords";
    const alignment = this.app.map.kind === "memory"
      ? " “Aligns words” is high for a head that gives every source word a partner of its own."
      : "";
    return `Computed over ${units} of this sentence. Click a header to sort, a row to open the head.${alignment}`;
  }

  header(column) {
    const button = el("button", {
      type: "button", text: column.label, title: column.about,
      onclick: () => this.sortBy(column),
    });
    const cell = el("th", { scope: "col", class: column.digits ? "wide" : "" }, button);
    return { column, cell };
  }

  sortBy(column) {
    const [name, direction] = this.app.state.sort;
    // Figures of sharpness interest from the top, the rest from the bottom.
    const first = ["oneToOne", "strongest"].includes(column.name) ? -1 : 1;
    this.app.state.sort = [column.name, name === column.name ? -direction : first];
    this.update();
  }

  row(figures) {
    const { layer, head } = figures;
    const { app } = this;
    const limits = (name) => Math.max(...app.figures().map((one) => one[name] ?? 0)) || 1;
    const cells = this.columns.map((column) => {
      if (column.name === "layer") return el("td", { text: layer + 1 });
      if (column.name === "head") {
        return el("td", {}, el("button", {
          type: "button", class: "open", text: `Head ${head + 1}`,
          "aria-label": `Open layer ${layer + 1}, head ${head + 1}`,
        }));
      }
      const bar = el("i", { class: "data-bar", "aria-hidden": "true" });
      const share = column.name === "oneToOne" || column.name === "strongest"
        ? figures[column.name] : figures[column.name] / limits(column.name);
      bar.style.width = `${(100 * share).toFixed(1)}%`;
      return el("td", { class: "wide" },
        el("span", { text: number(figures[column.name], column.digits) }), bar);
    });
    return el("tr", {
      "data-layer": layer, "data-head": head, onclick: () => app.open(layer, head, "lines"),
    }, ...cells);
  }

  update() {
    const [name, direction] = this.app.state.sort;
    const { state, theme } = this.app;
    const best = this.app.best();
    for (const { column, cell } of this.headers) {
      if (column.name !== name) cell.removeAttribute("aria-sort");
      else cell.setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
    }
    this.rows.sort((a, b) => direction * (a.figures[name] - b.figures[name]));
    for (const { figures, row } of this.rows) {
      const { layer, head } = figures;
      row.style.setProperty("--colour", theme.colour(head));
      row.classList.toggle("chosen", layer === state.layer && head === state.head);
      row.classList.toggle("best", layer === best?.layer && head === best?.head);
    }
    this.body.append(...this.rows.map(({ row }) => row));
  }
}

const PANELS = {
  lines: { label: "Lines", build: LinesPanel },
  heat: { label: "Heat map", build: HeatPanel },
  grid: { label: "All heads", build: GridPanel },
  table: { label: "Compare heads", build: TablePanel },
};

// ---------------------------------------------------------------- branches

/** Return a small line chart of one weight per branch over the steps. */
function branchChart(name, symbol, records, valuesOf, step, theme) {
  const [width, height] = [150, 56];
  const steps = records.map((record) => record.step);
  const span = steps.at(-1) - steps[0] || 1;
  const series = records.map(valuesOf);
  const top = Math.max(...series.flat(), 1e-6);
  const x = (value) => 3 + ((value - steps[0]) / span) * (width - 6);
  const y = (value) => height - 3 - (value / top) * (height - 8);
  const nearest = steps.reduce((a, b) => (Math.abs(b - step) < Math.abs(a - step) ? b : a));
  const now = series[steps.indexOf(nearest)].map((value) => number(value, 3)).join(", ");
  const chart = svg("svg", {
    viewBox: `0 0 ${width} ${height}`, role: "img", class: "chart",
    "aria-label": `${symbol} of ${name} at step ${stepName(nearest)}: ${now}`,
  });
  chart.append(
    svg("title", { text: `Step ${stepName(nearest)}: ${now}` }),
    svg("line", { class: "axis", x1: 3, x2: width - 3, y1: y(0), y2: y(0) }),
    svg("line", { class: "now", x1: x(nearest), x2: x(nearest), y1: 0, y2: height }),
  );
  series[0].forEach((_, branch) => {
    const colour = theme.colour(branch);
    const points = series.map((values, i) => `${x(steps[i]).toFixed(1)},${y(values[branch]).toFixed(1)}`);
    chart.append(
      svg("polyline", { points: points.join(" "), stroke: colour }),
      svg("circle", { cx: x(nearest), cy: y(series[steps.indexOf(nearest)][branch]), r: 2.2, fill: colour }),
    );
  });
  return el("div", {}, el("span", { class: "hint", text: `${symbol} (0 to ${number(top)})` }), chart);
}

function branchSection(records, step, theme) {
  const layers = records[0].layers.map((layer, index) =>
    el("div", { class: "branch" },
      el("h4", { text: layer.name }),
      el("div", { class: "branch-charts" },
        ...["kappa", "alpha"].map((name) =>
          branchChart(layer.name, { kappa: "κ", alpha: "α" }[name], records,
            (record) => record.layers[index][name], step, theme)))));
  return el("section", { class: "card branches", "aria-label": "Branch weights over steps" },
    el("h3", { text: "Branch weights over steps" }),
    el("p", { class: "hint", text: "Weighted Transformer. Colours as for the heads; the rule marks the step shown." }),
    ...layers);
}

// --------------------------------------------------------------------- app

let mounts = 0;

class App {
  constructor(root, source) {
    this.source = source;
    this.root = root;
    this.id = `t2t-attention-${++mounts}`;
    this.state = {
      run: null, sentence: null, step: null, kind: null, layer: null, head: 0,
      view: "lines", words: true, hidden: new Set(), pin: null, sort: null,
    };
    this.sentences = new Map();
    this.records = [];
    this.serial = 0;
    this.shade = null;
    root.replaceChildren();
    root.classList.add("t2t-attention");
    this.parts = this.build();
    root.append(...Object.values(this.parts.sections));
    this.system = matchMedia("(prefers-color-scheme: dark)");
    this.recolour = () => this.setTheme(this.chosenTheme);
    this.system.addEventListener("change", this.recolour);
    this.resized = new ResizeObserver(() => {
      const width = root.clientWidth;
      if (width === this.width) return;
      this.width = width;
      this.panel?.update();
    });
    this.resized.observe(root);
    this.setTheme(null);
  }

  // ---- elements that stay

  build() {
    const choice = (label, name, onchange) => {
      const select = el("select", { name, onchange });
      const field = el("label", { class: `field ${name}` }, el("span", { text: label }), select);
      return { field, select };
    };
    const run = choice("Run", "run", () => this.chooseRun(run.select.value));
    const sentence = choice("Sentence", "sentence", () =>
      this.chooseSentence(Number(sentence.select.value)));
    const slider = el("input", {
      type: "range", min: 0, step: 1, name: "step", "aria-label": "Training step",
      oninput: () => this.chooseStep(Number(slider.value)),
    });
    const stepText = el("output", { class: "number" });
    const play = el("button", { type: "button", class: "plain play", onclick: () => this.play() });
    const stepField = el("div", { class: "field step" },
      el("span", { text: "Step" }), el("div", {}, play, slider, stepText));
    const theme = el("button", {
      type: "button", class: "plain theme", onclick: () => this.setTheme(this.dark ? "light" : "dark"),
    });
    const radios = (name, label) =>
      el("fieldset", { class: `segments ${name}` }, el("legend", { text: label }), el("div"));
    const tabs = el("div", { class: "tabs", role: "tablist", "aria-label": "View" });
    for (const [view, { label }] of Object.entries(PANELS)) {
      tabs.append(el("button", {
        type: "button", role: "tab", id: `${this.id}-${view}`, "data-view": view,
        "aria-controls": `${this.id}-panel`, text: label,
        onclick: () => this.setView(view),
      }));
    }
    rove(tabs, [...tabs.children].map((tab) => [tab]), { moved: (tab) => tab.click() });
    const chips = el("div", { class: "chips", role: "group", "aria-label": "Heads" });
    const insight = el("button", { type: "button", class: "insight", hidden: true });
    const message = el("p", { class: "message", role: "alert", hidden: true });
    const status = el("p", { class: "hidden", role: "status" });
    const texts = el("dl", { class: "texts" });
    const panel = el("div", { class: "panel", role: "tabpanel", id: `${this.id}-panel` });
    const aside = el("aside", { "aria-label": "Details" });
    const kind = radios("kind", "Attention");
    const layer = radios("layer", "Layer");
    const words = radios("words", "Tokens");
    const sections = {
      header: el("header", {}, el("h1", { text: this.source.title || "Attention" }), theme),
      choices: el("div", { class: "choices" }, run.field, sentence.field, stepField),
      texts: el("section", { class: "card sentence-card", "aria-label": "Sentence" }, texts),
      controls: el("div", { class: "controls" }, kind, layer, words),
      message,
      views: el("section", { class: "card views" },
        el("div", { class: "bar" }, tabs, insight), chips, panel),
      aside, status,
    };
    return {
      sections, run, sentence, slider, stepText, play, stepField, theme, tabs, chips,
      insight, message, status, texts, panel, aside, kind, layer, words,
    };
  }

  /** Rebuild the children of a control only if they differ, so that the focus stays. */
  rebuild(node, signature, children) {
    const text = JSON.stringify(signature);
    if (node.signature === text) return;
    node.signature = text;
    node.replaceChildren(...children());
  }

  segments(fieldset, labels, chosen, choose) {
    const [legend, box] = fieldset.children;
    const name = `${this.id}-${legend.textContent}`;
    this.rebuild(box, labels, () => labels.map((label, index) =>
      el("label", {},
        el("input", { type: "radio", name, value: index, onchange: () => choose(index) }),
        el("span", { text: label }))));
    box.querySelectorAll("input").forEach((input, index) => (input.checked = index === chosen));
  }

  // ---- theme

  setTheme(chosen) {
    this.chosenTheme = chosen;
    this.dark = chosen ? chosen === "dark" : this.system.matches;
    if (chosen) this.root.dataset.theme = chosen;
    const colours = COLOURS[this.dark ? "dark" : "light"];
    this.theme = {
      colours,
      paper: this.dark ? "#16181d" : "#ffffff",
      colour: (head) => colours[head % colours.length],
    };
    this.parts.theme.textContent = this.dark ? "☀ Light" : "☾ Dark";
    this.parts.theme.setAttribute("aria-label", this.dark ? "Use light colours" : "Use dark colours");
    if (this.sentence) this.render();
  }

  narrow() {
    return this.root.clientWidth < 640;
  }

  // ---- data

  async start() {
    const { run } = this.state;
    try {
      this.runs = await this.source.runs();
      if (!this.runs.length) throw new Error("There is no attention data yet.");
      await this.loadRun(this.runs.includes(run) ? run : this.runs[0]);
    } catch (error) {
      this.fail(error);
    }
  }

  chooseRun(run) {
    return this.loadRun(run).catch((error) => this.fail(error));
  }

  async loadRun(run) {
    const serial = ++this.serial;
    this.state.run = run;
    const listed = await this.source.list(run);
    if (serial !== this.serial) return;
    this.listed = listed.sentences;
    if (!this.listed.length) {
      throw new Error(run ? `Run “${run}” has no attention data.` : "There is no attention data.");
    }
    const { sentence } = this.state;
    this.state.sentence = this.listed.find(({ id }) => id === sentence)?.id ?? this.listed[0].id;
    this.records = [];
    if (listed.branches) this.loadBranches(run);
    await this.loadSentence();
  }

  async loadBranches(run) {
    try {
      const records = (await this.source.branches(run)).filter(({ layers }) => layers.length);
      if (run !== this.state.run) return;
      this.records = records.sort((a, b) => a.step - b.step);
      if (this.sentence) this.renderAside();
    } catch (error) {
      this.say(sentenceOf(error));
    }
  }

  entry() {
    return this.listed.find(({ id }) => id === this.state.sentence);
  }

  /** Load the chosen sentence at the chosen step, or at the step closest to it. */
  async loadSentence() {
    const serial = ++this.serial;
    const { run, sentence } = this.state;
    const { steps } = this.entry();
    if (!steps.length) throw new Error("The sentence has no attention data.");
    const wanted = this.state.step ?? steps.at(-1);
    this.state.step = steps.reduce((a, b) =>
      (Math.abs(b - wanted) < Math.abs(a - wanted) ? b : a));
    this.renderChoices();
    const key = JSON.stringify([run, sentence, this.state.step]);
    this.root.setAttribute("aria-busy", "true");
    let loaded = this.sentences.get(key);
    if (!loaded) {
      loaded = new Sentence(await this.source.load(run, sentence, this.state.step));
      if (this.sentences.size >= 12) this.sentences.delete(this.sentences.keys().next().value);
      this.sentences.set(key, loaded);
    }
    if (serial !== this.serial) return;
    this.root.removeAttribute("aria-busy");
    this.sentence = loaded;
    this.fit();
    this.parts.message.hidden = true;
    this.render();
  }

  reload() {
    return this.loadSentence().catch((error) => this.fail(error));
  }

  chooseSentence(index) {
    this.state.sentence = this.listed[index].id;
    this.state.pin = null;
    return this.reload();
  }

  chooseStep(index) {
    this.state.step = this.entry().steps[index];
    return this.reload();
  }

  /** Step through the training, one step every 0.7 seconds, from the start if at the end. */
  play() {
    if (this.timer) return this.stop();
    const { steps } = this.entry();
    const next = () => {
      const index = steps.indexOf(this.state.step) + 1;
      if (index >= steps.length) return this.stop();
      return this.chooseStep(index);
    };
    if (steps.indexOf(this.state.step) === steps.length - 1) this.chooseStep(0);
    this.timer = setInterval(next, 700);
    this.renderChoices();
  }

  stop() {
    clearInterval(this.timer);
    this.timer = null;
    this.renderChoices();
  }

  fail(error) {
    this.stop();
    this.root.removeAttribute("aria-busy");
    this.sentence = null;
    this.renderChoices();
    const { sections, message } = this.parts;
    for (const name of ["texts", "controls", "views", "aside"]) sections[name].hidden = true;
    message.textContent = sentenceOf(error);
    message.hidden = false;
  }

  /** Make the choices fit the sentence; those that do are kept. */
  fit() {
    const { state } = this;
    const { maps } = this.sentence.document;
    let index = maps.findIndex(({ kind }) => kind === state.kind);
    if (index < 0) index = Math.max(0, maps.findIndex(({ kind }) => kind === "memory"));
    this.mapIndex = index;
    const map = maps[index];
    state.kind = map.kind;
    state.layer = Math.min(state.layer ?? map.layers - 1, map.layers - 1);
    state.head = Math.min(state.head, map.heads - 1);
    this.map = this.sentence.map(index, this.words());
  }

  words() {
    return this.state.words && this.sentence.hasSubwords;
  }

  figures() {
    return this.sentence.figures(this.mapIndex, this.words());
  }

  /** Return the figures of the head that aligns words best, for encoder-decoder maps. */
  best() {
    if (this.state.kind !== "memory" || this.map.layers * this.map.heads < 2) return null;
    const figures = this.sentence.figures(this.mapIndex, this.sentence.hasSubwords);
    return figures.reduce((a, b) => (b.oneToOne > a.oneToOne ? b : a));
  }

  headsOn() {
    const all = Array.from({ length: this.map.heads }, (_, head) => head);
    return all.filter((head) => !this.state.hidden.has(head));
  }

  // ---- actions

  setKind(index) {
    this.state.kind = this.sentence.document.maps[index].kind;
    this.state.pin = null;
    this.state.sort = null;
    this.render();
  }

  setLayer(layer) {
    this.state.layer = layer;
    this.render();
  }

  setWords(words) {
    this.state.words = words;
    this.state.pin = null;
    this.render();
  }

  setView(view) {
    this.state.view = view;
    this.render();
  }

  /** Show one head alone in the lines or in the heat map. */
  open(layer, head, view) {
    Object.assign(this.state, { layer, head, view });
    this.solo(head);
    this.render();
    this.parts.tabs.querySelector("[aria-selected=true]").focus();
  }

  solo(head) {
    this.state.head = head;
    this.setHidden(Array.from({ length: this.map.heads }, (_, i) => i).filter((i) => i !== head));
  }

  setHidden(heads) {
    this.state.hidden = new Set(heads);
  }

  toggle(head, alone) {
    const { state } = this;
    const heads = Array.from({ length: this.map.heads }, (_, i) => i);
    if (state.view === "heat") state.head = head;
    else if (alone) {
      const isAlone = this.headsOn().length === 1 && !state.hidden.has(head);
      if (isAlone && this.wasAlone !== false) this.setHidden([]);
      else this.solo(head);
    } else if (!state.hidden.delete(head)) state.hidden.add(head);
    if (heads.every((i) => i === head || state.hidden.has(i))) state.head = head;
    this.render();
  }

  say(text) {
    this.parts.status.textContent = text;
  }

  // ---- rendering

  render() {
    try {
      this.fit();
      for (const section of Object.values(this.parts.sections)) {
        if (section !== this.parts.message) section.hidden = false;
      }
      this.renderChoices();
      this.renderTexts();
      this.renderControls();
      this.renderPanel();
      this.renderAside();
    } catch (error) {
      this.fail(error);
    }
  }

  renderChoices() {
    const { run, sentence, slider, stepText, play, stepField } = this.parts;
    const runs = this.runs ?? [];
    this.rebuild(run.select, runs, () =>
      runs.map((name) => el("option", { value: name, text: name || "." })));
    run.field.hidden = runs.length < 2 && !runs[0];
    run.select.value = this.state.run ?? "";
    const listed = this.listed ?? [];
    this.rebuild(sentence.select, listed.map(({ title }) => title), () =>
      listed.map(({ title }, index) => el("option", { value: index, text: shorten(title) })));
    sentence.field.hidden = listed.length < 2;
    sentence.select.value = listed.findIndex(({ id }) => id === this.state.sentence);
    const steps = listed.length ? this.entry()?.steps ?? [] : [];
    stepField.hidden = steps.length < 2;
    this.parts.sections.choices.hidden = run.field.hidden && sentence.field.hidden && stepField.hidden;
    if (stepField.hidden) return;
    slider.max = steps.length - 1;
    slider.value = steps.indexOf(this.state.step);
    slider.setAttribute("aria-valuetext", `Step ${stepName(this.state.step)}`);
    stepText.textContent = stepName(this.state.step);
    play.textContent = this.timer ? "❚❚" : "▶";
    play.setAttribute("aria-label", this.timer ? "Stop" : "Play the training steps");
  }

  renderTexts() {
    const { document } = this.sentence;
    const { source, target } = document.sequences;
    const rows = [
      ["Source", source?.text], ["Target", target?.text], ["Reference", document.reference],
    ];
    const { texts } = this.parts;
    texts.replaceChildren();
    for (const [name, text] of rows) {
      if (!text) continue;
      texts.append(el("dt", { text: name }), el("dd", { dir: "auto" }, el("bdi", { text })));
    }
    if (typeof document.score === "number") {
      texts.append(el("dt", { text: "Score" }),
        el("dd", { text: number(document.score) }, el("span", { class: "hint", text: "log-probability of the target, in nats" })));
    }
  }

  renderControls() {
    const { state, parts } = this;
    const { maps } = this.sentence.document;
    this.segments(parts.kind, maps.map(({ label }) => label), this.mapIndex, (i) => this.setKind(i));
    const layers = Array.from({ length: this.map.layers }, (_, i) => i + 1);
    this.segments(parts.layer, layers, state.layer, (i) => this.setLayer(i));
    this.segments(parts.words, ["Words", "Subwords"], this.words() ? 0 : 1, (i) => this.setWords(i === 0));
    parts.layer.hidden = ["grid", "table"].includes(state.view);
    parts.words.hidden = !this.sentence.hasSubwords;
    for (const tab of parts.tabs.children) {
      const chosen = tab.dataset.view === state.view;
      tab.setAttribute("aria-selected", String(chosen));
      tab.tabIndex = chosen ? 0 : -1;
    }
    parts.panel.setAttribute("aria-labelledby", `${this.id}-${state.view}`);
    this.renderChips();
    this.renderInsight();
  }

  renderChips() {
    const { chips } = this.parts;
    const { state } = this;
    const one = state.view === "heat";
    chips.hidden = ["grid", "table"].includes(state.view);
    this.rebuild(chips, [this.map.heads, one], () => [
      el("span", { class: "chips-name", text: one ? "Head" : "Heads" }),
      ...Array.from({ length: this.map.heads }, (_, head) => this.chip(head, one)),
      ...(one ? [] : [
        el("button", { type: "button", class: "plain all", text: "All", onclick: () => { this.setHidden([]); this.render(); } }),
        el("button", { type: "button", class: "plain none", text: "None", onclick: () => { this.setHidden(Array.from({ length: this.map.heads }, (_, i) => i)); this.render(); } }),
      ]),
    ]);
    for (const chip of chips.querySelectorAll(".chip")) {
      const head = Number(chip.dataset.head);
      const on = one ? head === state.head : !state.hidden.has(head);
      chip.setAttribute("aria-pressed", String(on));
      chip.style.setProperty("--colour", this.theme.colour(head));
    }
  }

  chip(head, one) {
    return el("button", {
      type: "button", class: "chip", "data-head": head, text: head + 1,
      "aria-label": `Head ${head + 1}`,
      title: one ? `Show head ${head + 1}` : "Click: show or hide. Double-click or Shift+Enter: this head alone.",
      onclick: (event) => {
        // The second click of a double-click undoes the first before the head is soloed.
        if (event.detail === 1) this.wasAlone = this.headsOn().length === 1 && !this.state.hidden.has(head);
        if (event.shiftKey) this.wasAlone = undefined;
        this.toggle(head, event.shiftKey);
      },
      ondblclick: () => !one && this.toggle(head, true),
    });
  }

  renderInsight() {
    const { insight } = this.parts;
    const best = this.best();
    insight.hidden = !best;
    if (!best) return;
    const { layer, head } = best;
    insight.replaceChildren(
      el("i", { "aria-hidden": "true" }),
      `Aligns words best: layer ${layer + 1}, head ${head + 1}`,
      el("span", { text: number(best.oneToOne) }));
    insight.style.setProperty("--colour", this.theme.colour(head));
    insight.title = "Show this head. It gives every source word the clearest partner of its own in this sentence.";
    insight.onclick = () => this.open(layer, head, this.state.view === "heat" ? "heat" : "lines");
  }

  renderPanel() {
    const { view, head } = this.state;
    const { panel } = this.parts;
    // The lines' tokens stay while only the weights change, so focus and scroll stay.
    const signature = JSON.stringify(
      [view, this.state.sentence, this.state.run, this.state.kind, this.map.queries, this.map.keys, this.map.layers, this.map.heads]);
    const keeps = signature === this.signature && ["lines", "heat"].includes(view);
    if (!keeps) {
      this.panel?.destroy?.();
      this.panel = new PANELS[view].build(this);
      this.signature = signature;
      panel.replaceChildren(this.panel.main);
    }
    panel.dataset.head = head;
    this.panel.update();
  }

  renderAside() {
    const parts = [];
    if (this.panel?.aside) parts.push(this.panel.aside);
    if (this.records.length) parts.push(branchSection(this.records, this.state.step, this.theme));
    const { aside } = this.parts;
    const had = aside.childElementCount > 0;
    aside.replaceChildren(...parts);
    this.root.classList.toggle("alone", !parts.length);
    if (had !== parts.length > 0) this.panel?.update();
  }

  destroy() {
    this.stop();
    this.serial++;
    this.panel?.destroy?.();
    this.resized.disconnect();
    this.system.removeEventListener("change", this.recolour);
    this.root.replaceChildren();
  }
}

/** Show a source in an element. */
function mount(root, source) {
  const app = new App(root, source);
  app.start();
  return {
    // Ask the source again: a training may have written more steps.
    refresh: () => app.start(),
    destroy: () => app.destroy(),
  };
}

globalThis.T2TAttention = { mount, fromDocuments };
