/*
 * The attention view: lines between tokens, heat map, all heads, table of heads.
 *
 *   T2TAttention.mount(rootElement, source) -> {refresh(), destroy(), setTheme(name), follow(chosen)}
 *   T2TAttention.fromDocuments(documents, branches?) -> source
 *
 * `chosen` has names of `OPENING`. Tokens are untrusted: they become only text and
 * values of attributes. No style or handler is inline: a strict CSP holds.
 */
"use strict";

// -------- numbers

const range = (count) => Array.from({ length: count }, (_, i) => i);
const clamp = (index, count) => Math.max(0, Math.min(count - 1, index));

/** Return the value of a float16 by its bits. */
function half(bits) {
	const [exponent, fraction] = [(bits >> 10) & 31, bits & 1023];
	if (exponent === 31) return fraction ? NaN : bits & 0x8000 ? -Infinity : Infinity;
	const size = exponent ? (1024 + fraction) * 2 ** (exponent - 25) : fraction * 2 ** -24;
	return bits & 0x8000 ? -size : size;
}
const HALVES = new Float32Array(65536).map((_, bits) => half(bits));

/** Decode base64 of little-endian float16. */
function decode(text, count, label) {
	const bytes = atob(text);
	if (bytes.length !== 2 * count) {
		throw new Error(`The weights of “${label}” have ${bytes.length} bytes; expected ${2 * count}.`);
	}
	const code = (i) => bytes.charCodeAt(i);
	return new Float32Array(count).map((_, i) => HALVES[code(2 * i) | (code(2 * i + 1) << 8)]);
}

/** Merge subwords to words: mean over queries, sum over keys. */
function merge(weights, maps, queryWords, keyWords) {
	const [rows, columns] = [queryWords.length, keyWords.length];
	const wordOf = (spans) => spans.flatMap(([start, end], word) => Array(end - start).fill(word));
	const [rowOf, columnOf] = [wordOf(queryWords), wordOf(keyWords)];
	const merged = new Float32Array(maps * rows * columns);
	let at = 0;
	for (let map = 0; map < maps; map++) {
		for (const row of rowOf) {
			const [start, end] = queryWords[row];
			for (const column of columnOf) {
				merged[(map * rows + row) * columns + column] += weights[at++] / (end - start);
			}
		}
	}
	return merged;
}

/** Return the figures of every head, layer by layer; `columnsOf` explains them. */
function headFigures(map) {
	const [Q, K] = [map.queries.length, map.keys.length];
	const place = (index, count) => (map.distance === "relative" ? (index + 0.5) / count : index);
	return range(map.layers * map.heads).map((index) => {
		const [layer, head] = [Math.floor(index / map.heads), index % map.heads];
		let [entropy, distance, strongest] = [0, 0, 0];
		const received = new Float32Array(K);
		for (let q = 0; q < Q; q++) {
			let largest = 0;
			for (let k = 0; k < K; k++) {
				const weight = map.weight(layer, head, q, k);
				if (!(weight > 0)) continue;
				entropy -= weight * Math.log(weight);
				distance += weight * Math.abs(place(q, Q) - place(k, K));
				largest = Math.max(largest, weight);
				received[k] = Math.max(received[k], weight);
			}
			strongest += largest;
		}
		const oneToOne = received.reduce((a, b) => a + b) / Math.min(Q, K);
		return { layer, head, entropy: entropy / Q, distance: distance / Q, strongest: strongest / Q, oneToOne };
	});
}

// -------- documents

const SPACE = "\u2581";

const shorten = (text) => (text.length > 80 ? `${text.slice(0, 80)}…` : text);
const nameOf = (name) =>
	name === "read" ? "Decoder input" : name.charAt(0).toUpperCase() + name.slice(1).replaceAll("_", " ");

/** Return the words' spans, or one per token if they don't cover the tokens. */
function spansOf({ tokens, words = [] }) {
	let at = 0;
	for (const [start, end] of words) at = start === at && end > start ? end : NaN;
	return at === tokens.length ? words : tokens.map((_, i) => [i, i + 1]);
}

const wordsOf = (sequence) =>
	spansOf(sequence).map(([start, end], word) => {
		const text = sequence.labels?.[word] ?? sequence.tokens.slice(start, end).join("");
		return text.replaceAll(SPACE, " ").trim() || text;
	});

/** A document with what is computed from it, once. */
class Sentence {
	constructor(document) {
		if (document?.version !== 1) throw new Error(`The attention data has version ${document?.version}; expected 1.`);
		if (!document.maps?.length) throw new Error("The sentence has no attention weights.");
		this.document = document;
		this.cache = {};
		this.hasSubwords = Object.values(document.sequences).some(
			(sequence) => spansOf(sequence).length < sequence.tokens.length);
	}

	/** Return the labels of both sides and the decoded weights of a kind. */
	map(index, words) {
		return (this.cache[`map ${index} ${words}`] ??= this.build(this.document.maps[index], index, words));
	}

	figures(index, words) {
		return (this.cache[`figures ${index} ${words}`] ??= headFigures(this.map(index, words)));
	}

	/** Return the figures of the head that aligns words best. */
	best(index) {
		return this.figures(index, this.hasSubwords).reduce((a, b) => (b.oneToOne > a.oneToOne ? b : a));
	}

	build(raw, index, words) {
		const [queries, keys] = [raw.queries, raw.keys].map((name) => this.document.sequences[name]);
		const { layers, heads } = raw;
		const count = layers * heads * (queries?.tokens.length ?? 0) * (keys?.tokens.length ?? 0);
		if (!count) throw new Error(`“${raw.label}” has no tokens.`);
		const weights = words
			? merge(this.map(index, false).weights, layers * heads, spansOf(queries), spansOf(keys))
			: decode(raw.weights, count, raw.label);
		const units = (sequence) => Object.assign(words ? wordsOf(sequence) : [...sequence.tokens], { lang: sequence.lang });
		const map = {
			...raw, weights, queries: units(queries), keys: units(keys),
			queryName: nameOf(raw.queries), keyName: nameOf(raw.keys),
		};
		// The rows of attention over parameters have no position, hence no distance.
		if (raw.kind === "memory") map.distance = "relative";
		else if (raw.kind.endsWith("_self")) map.distance = "positions";
		const [Q, K] = [map.queries.length, map.keys.length];
		map.weight = (layer, head, q, k) => weights[((layer * heads + head) * Q + q) * K + k];
		return map;
	}
}

/**
 * Return a source over documents in memory: one run, one step.
 *
 * A source has runs() -> [names], list(run) -> {sentences: [{id, title, steps}],
 * branches: bool, damage?}, load(run, id, step) -> document and branches(run) -> [{step, layers}],
 * all as promises; the message of a rejected one is shown. A source may have a `title`,
 * what is `chosen` first, and shown(app), called when that changes.
 */
function fromDocuments(documents, branches = []) {
	const sentences = documents.map(({ title, first_words: words }, id) => (
		{ id, title: (title || `Sentence ${id + 1}`) + (words ? `: ${words}` : ""), steps: [0] }));
	return {
		runs: async () => (documents.length ? [""] : []),
		list: async () => ({ sentences, branches: branches.length > 0 }),
		load: async (run, id) => documents[id],
		branches: async () => branches,
	};
}

// -------- elements

function fill(node, properties, children) {
	for (const [name, value] of Object.entries(properties ?? {})) {
		if (name === "text") node.textContent = value;
		else if (typeof value === "function") node.addEventListener(name.slice(2), value);
		else if (value !== null && value !== undefined) node.setAttribute(name, value);
	}
	node.append(...children);
	return node;
}

const el = (tag, properties, ...children) => fill(document.createElement(tag), properties, children);
const svg = (tag, properties, ...children) =>
	fill(document.createElementNS("http://www.w3.org/2000/svg", tag), properties, children);

function button(name, text, onclick, properties, ...children) {
	const node = el("button", { type: "button", class: name, ...properties }, ...children);
	if (text !== null) node.textContent = text;
	if (onclick) node.addEventListener("click", onclick);
	return node;
}

/** Return a token's label: isolated for right-to-left text, cut if it is very long. */
function tokenLabel(text, lang) {
	const label = el("bdi", { class: "label", dir: "auto", lang, title: text.length > 9 ? text : null });
	const starts = text.startsWith(SPACE) && text.length > 1;
	if (starts) label.append(el("span", { class: "space", text: SPACE }));
	label.append(shorten(text.slice(starts ? 1 : 0)) || "∅");
	return label;
}

const number = (value, digits = 2) => value.toFixed(digits).replace("-", "−");
const stepName = (step) => step.toLocaleString("en");

/** Let arrow keys, Home and End move the focus among columns; Tab stops at one element. */
function rove(container, columns, { first, moved } = {}) {
	const all = () => columns.flat();
	const stop = (node) => all().forEach((other) => (other.tabIndex = other === node ? 0 : -1));
	stop(first ?? all()[0]);
	container.addEventListener("focusin", ({ target }) => all().includes(target) && stop(target));
	container.addEventListener("keydown", (event) => {
		const x = columns.findIndex((column) => column.includes(event.target));
		if (x < 0 || event.altKey || event.ctrlKey || event.metaKey) return;
		const y = columns[x].indexOf(event.target);
		const places = {
			ArrowLeft: [x - 1, y], ArrowRight: [x + 1, y], ArrowUp: [x, y - 1], ArrowDown: [x, y + 1],
			Home: [x, 0], End: [x, Infinity],
		};
		const place = places[event.key];
		if (!place) return;
		event.preventDefault();
		const column = columns[clamp(place[0], columns.length)];
		const node = column[clamp(place[1], column.length)];
		node.focus();
		node.scrollIntoView({ block: "nearest" });
		moved?.(node);
	});
}

// -------- colours

// Ten colours each (the light ones as in panels.py), chosen for their distances in normal
// vision, protanopia, deuteranopia and tritanopia. Beyond ten, lines are dashed.
const COLOURS = {
	light: ["#0076b1", "#d86200", "#00996b", "#7600b1", "#ea8a9d", "#623b00", "#b1a800", "#143b76", "#a99bf0", "#a13c5c"],
	dark: ["#4eb1eb", "#eb9d00", "#4fd6a8", "#e0559a", "#6f7cff", "#d8d876", "#ff7a5c", "#b1c4ff", "#a86fd0", "#b07a2a"],
};

// Small weights would be invisible on a linear scale.
const shade = (weight) => Math.min(1, weight) ** 0.6;

/** Draw the weights of one head, one pixel per pair; CSS enlarges the canvas. */
function paintHead(canvas, map, layer, head, theme) {
	const [Q, K] = [map.queries.length, map.keys.length];
	[canvas.width, canvas.height] = [K, Q];
	const context = canvas.getContext("2d");
	const image = context.createImageData(K, Q);
	const channels = (colour) => [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));
	const [low, high] = [theme.paper, theme.colour(head)].map(channels);
	for (let i = 0; i < Q * K; i++) {
		const share = shade(map.weights[(layer * map.heads + head) * Q * K + i]);
		image.data.set([...low.map((from, c) => from + (high[c] - from) * share), 255], 4 * i);
	}
	context.putImageData(image, 0, 0);
}

// -------- view: lines

const LEAST_FAINT = 0.04; // weights below are not drawn while no token is chosen
const LEAST_DRAWN = 0.005;
const FAINT_LEVELS = [0.08, 0.15, 0.3, 0.5, 0.75, 1.01];

function linesPanel(app) {
	const { state } = app;
	let { map } = app;
	let [row, pitch, heads] = [0, 0, []];
	let [hovered, focused] = [null, null];

	const column = (side, name, units) => {
		const buttons = units.map((text, index) =>
			button("token", null, null, {
				"data-side": side, "data-index": index, "aria-pressed": "false",
				"aria-label": `${side} ${index + 1}: ${shorten(text)}`,
			}, tokenLabel(text, units.lang)));
		const title = el("h3", {}, name, el("span", { text: side === "query" ? "queries" : "keys" }));
		const list = el("div", { class: `tokens ${side}`, role: "group", "aria-label": name }, title, ...buttons);
		return { buttons, list };
	};
	const sides = {
		query: column("query", map.queryName, map.queries),
		key: column("key", map.keyName, map.keys),
	};
	const canvas = el("canvas");
	const overlay = svg("svg");
	const main = el("div", { class: "lines", onscroll: draw },
		el("div", { class: "glass", "aria-hidden": "true" }, canvas, overlay),
		el("div", { class: "line-columns" }, sides.query.list, el("div"), sides.key.list));
	const aside = el("section", { class: "card ranking" });

	const tokenOf = ({ target }) => {
		const { side, index } = target.closest(".token")?.dataset ?? {};
		return side ? { side, index: Number(index) } : null;
	};
	const listen = (type, change) =>
		main.addEventListener(type, (event) => {
			change(event);
			redraw();
			app.source.shown?.(app);
		});
	listen("pointerover", (event) => (hovered = tokenOf(event)));
	listen("pointerleave", () => (hovered = null));
	// A click focuses, too; only the keyboard's focus counts.
	listen("focusin", (event) => (focused = event.target.matches(":focus-visible") ? tokenOf(event) : null));
	listen("focusout", () => (focused = null));
	listen("click", (event) => {
		const token = tokenOf(event);
		const same = token?.side === state.pin?.side && token?.index === state.pin?.index;
		if (token) state.pin = same ? null : token;
	});
	listen("keydown", ({ key }) => {
		if (key === "Escape") state.pin = hovered = focused = null;
	});
	rove(main, [sides.query.buttons, sides.key.buttons]);

	/** Return the pinned token, else the one under the pointer or the focus. */
	const current = () =>
		state.pin && state.pin.index < sides[state.pin.side].buttons.length
			? state.pin
			: hovered ?? focused;

	/** Return the weight between a token and one of the other side. */
	const between = (token, other, head) =>
		token.side === "query"
			? map.weight(state.layer, head, token.index, other)
			: map.weight(state.layer, head, other, token.index);

	/** Return what a key receives, mean over queries. */
	const received = (key, head) => {
		let sum = 0;
		for (let q = 0; q < map.queries.length; q++) sum += map.weight(state.layer, head, q, key);
		return sum / map.queries.length;
	};

	function measure() {
		const { query, key } = sides;
		const left = query.list.offsetLeft + query.list.offsetWidth;
		const right = key.list.offsetLeft;
		return {
			left, right,
			width: main.clientWidth,
			height: main.clientHeight,
			top: main.scrollTop - query.buttons[0].offsetTop,
			bends: [left + (right - left) * 0.45, right - (right - left) * 0.45],
			query: query.list.offsetLeft - map.heads * pitch - 4,
			key: right + key.list.offsetWidth + 4,
		};
	}

	const y = (index, box) => (index + 0.5) * row - box.top;
	// Lines of several heads run side by side.
	const shift = (place) => (place - (heads.length - 1) / 2) * Math.min(2.2, (row * 0.5) / heads.length);
	const visible = (a, b, box) => Math.max(a, b) > 0 && Math.min(a, b) < box.height;

	function update() {
		({ map } = app);
		const longest = Math.max(map.queries.length, map.keys.length);
		row = Math.max(17, Math.min(30, Math.floor((innerHeight * 0.66) / longest)));
		pitch = Math.max(2, Math.min(innerWidth < 640 ? 4 : 8, 96 / map.heads));
		main.style.setProperty("--row", `${row}px`);
		main.style.setProperty("--font", `${Math.min(15, row - 4)}px`);
		main.style.setProperty("--bars", `${Math.ceil(pitch * map.heads) + 8}px`);
		redraw();
	}

	function redraw() {
		draw();
		rank();
	}

	function draw() {
		if (!row) return;
		const token = current();
		heads = app.headsOn();
		mark(token);
		const box = measure();
		drawFaint(box, token);
		overlay.setAttribute("width", box.width);
		overlay.setAttribute("height", box.height);
		overlay.replaceChildren(
			...(token ? lines(box, token) : []),
			...(token?.side === "key" ? bars(box, "query", token) : bars(box, "key", token)));
	}

	/** Fade the tokens of the other side by their largest weight. */
	function mark(token) {
		for (const [side, { buttons }] of Object.entries(sides)) {
			buttons.forEach((node, index) => {
				const chosen = Boolean(token) && token.side === side && token.index === index;
				let share = token && !chosen ? 0 : 1;
				if (token && side !== token.side) {
					share = Math.max(0, ...heads.map((head) => between(token, index, head)));
				}
				node.classList.toggle("active", chosen);
				node.setAttribute("aria-pressed", String(chosen && token === state.pin));
				node.style.setProperty("--share", (0.62 + 0.38 * shade(share)).toFixed(2));
			});
		}
	}

	/** Draw all lines on the canvas, one stroke per head and level of weight. */
	function drawFaint(box, token) {
		const scale = devicePixelRatio || 1;
		[canvas.width, canvas.height] = [box.width * scale, box.height * scale];
		canvas.style.width = `${box.width}px`;
		if (token) return;
		const context = canvas.getContext("2d");
		context.scale(scale, scale);
		context.lineWidth = 1.4;
		heads.forEach((head, place) => {
			const paths = FAINT_LEVELS.map(() => new Path2D());
			for (let q = 0; q < map.queries.length; q++) {
				const from = y(q, box) + shift(place);
				for (let k = 0; k < map.keys.length; k++) {
					const weight = map.weight(state.layer, head, q, k);
					const to = y(k, box) + shift(place);
					if (!(weight >= LEAST_FAINT) || !visible(from, to, box)) continue;
					const path = paths[FAINT_LEVELS.findIndex((level) => weight < level)];
					path?.moveTo(box.left, from);
					path?.bezierCurveTo(box.bends[0], from, box.bends[1], to, box.right, to);
				}
			}
			context.strokeStyle = app.theme.colour(head);
			FAINT_LEVELS.forEach((level, i) => {
				context.globalAlpha = Math.min(1, level) * (heads.length > 2 ? 0.6 : 0.9);
				context.stroke(paths[i]);
			});
		});
	}

	/** Return the lines of one token: the opacity is the weight. */
	function lines(box, token) {
		const others = map[token.side === "query" ? "keys" : "queries"];
		return others.flatMap((_, other) => heads.map((head, place) => {
			const weight = between(token, other, head);
			const ends = [y(token.index, box) + shift(place), y(other, box) + shift(place)];
			if (weight < LEAST_DRAWN || !visible(...ends, box)) return null;
			const [from, to] = token.side === "query" ? ends : ends.reverse();
			return svg("path", {
				class: "line", stroke: app.theme.colour(head), "stroke-opacity": weight.toFixed(3),
				d: `M${box.left} ${from}C${box.bends[0]} ${from} ${box.bends[1]} ${to} ${box.right} ${to}`,
				"stroke-dasharray": head < COLOURS.light.length ? null : "6 3",
				"data-other": other, "data-head": head,
			});
		})).filter(Boolean);
	}

	const barOf = (token) => (token ? (other, head) => between(token, other, head) : received);

	/** Return one small bar per head beside every token of a side. */
	function bars(box, side, token) {
		const weightOf = barOf(token);
		const tall = row - 6;
		return sides[side].buttons.flatMap((_, index) => {
			const foot = y(index, box) + tall / 2;
			if (!visible(foot - row, foot, box)) return [];
			const base = svg("rect", { class: "base", x: box[side], y: foot, width: map.heads * pitch, height: 1 });
			return [base, ...heads.map((head) => {
				const height = weightOf(index, head) * tall;
				return svg("rect", {
					class: "bar", x: box[side] + head * pitch, y: foot - height, height,
					width: Math.max(1.5, pitch - 1), fill: app.theme.colour(head),
					"data-other": index, "data-head": head,
				});
			})];
		});
	}

	/** List the strongest partners of the token, or the keys that receive most. */
	function rank() {
		const token = current();
		const weightOf = barOf(token);
		const [own, others] = token?.side === "key" ? [map.keys, map.queries] : [map.queries, map.keys];
		const rows = others.map((text, other) => {
			const weights = heads.map((head) => weightOf(other, head));
			return { text, weights, mean: weights.reduce((a, b) => a + b, 0) / heads.length };
		});
		rows.sort((a, b) => b.mean - a.mean);
		const title = token
			? [tokenLabel(own[token.index], own.lang), own === map.keys ? " is attended to by" : " attends to"]
			: ["Most attended to"];
		aside.replaceChildren(
			el("h3", {}, ...title), el("p", { class: "hint", text: hint(token) }),
			el("ol", {}, ...(heads.length ? rows.slice(0, 8).map((row) => ranked(row, others.lang)) : [])));
		if (!token || !heads.length) return;
		const strongest = rows.slice(0, 3).map((one) => `${shorten(one.text)} ${number(one.mean)}`);
		app.say(`${aside.firstChild.textContent} ${strongest.join(", ")}`);
	}

	function hint(token) {
		if (!heads.length) return "All heads are hidden. Switch one on above.";
		const of = heads.length === 1 ? `Head ${heads[0] + 1}` : `Mean over ${heads.length} heads`;
		if (!token) return `${of}, mean over queries. Point at a token to see its lines.`;
		return `${of}. ${token === state.pin ? "Pinned: click again or press Escape to release." : "Click to pin."}`;
	}

	function ranked({ text, weights, mean }, lang) {
		const bar = el("span", { class: "stack" });
		weights.forEach((weight, i) => {
			const part = el("i");
			part.style.width = `${(100 * weight) / heads.length}%`;
			part.style.background = app.theme.colour(heads[i]);
			bar.append(part);
		});
		return el("li", {}, tokenLabel(text, lang), el("span", { class: "number", text: number(mean) }), bar);
	}

	return { main, aside, update };
}

// -------- view: heat map

function heatPanel(app) {
	const { state } = app;
	let { map } = app;
	let [cell, cursor] = [0, null];
	const [Q, K] = [map.queries.length, map.keys.length];
	const canvas = el("canvas");
	const outline = el("div", { class: "outline" });
	const readout = el("p", { class: "readout" });
	const aside = el("section", { class: "card" });
	const ticks = (units) => units.map((text) => el("div", { class: "tick" }, tokenLabel(text, units.lang)));
	const [rows, columns] = [ticks(map.queries), ticks(map.keys)];
	const plot = el("div", {
		class: "plot", tabindex: 0, role: "application", "aria-roledescription": "heat map",
		"aria-label": "Weights. The arrow keys move from cell to cell.",
		onpointermove: point,
		onpointerleave: () => move(null),
		onkeydown: walk,
		onfocus: () => plot.matches(":focus-visible") && move(cursor ?? [0, 0]),
	}, canvas, el("div", { class: "cell-grid" }), outline);
	const heat = el("div", { class: "heat" },
		el("div", { class: "corner" }, el("span", { text: `${map.keyName} →` }), el("span", { text: `${map.queryName} ↓` })),
		el("div", { class: "top" }, ...columns), el("div", { class: "left" }, ...rows), plot);
	const main = el("div", {}, readout, heat);

	function update() {
		({ map } = app);
		paintHead(canvas, map, state.layer, state.head, app.theme);
		const fit = Math.min((main.clientWidth - 150) / K, (innerHeight * 0.55) / Q);
		cell = Math.max(14, Math.min(40, Math.floor(fit)));
		heat.style.setProperty("--cell", `${cell}px`);
		heat.style.setProperty("--columns", K);
		heat.style.setProperty("--rows", Q);
		describe();
		move(cursor);
	}

	function point(event) {
		const box = plot.getBoundingClientRect();
		const place = [event.clientY - box.top, event.clientX - box.left].map((at) => Math.floor(at / cell));
		move(place[0] in rows && place[1] in columns ? place : null);
	}

	function walk(event) {
		const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
		const step = moves[event.key];
		if (!step) return;
		event.preventDefault();
		const [q, k] = cursor ?? [0, 0];
		move([clamp(q + step[0], Q), clamp(k + step[1], K)]);
		outline.scrollIntoView({ block: "nearest", inline: "nearest" });
	}

	function move(place) {
		cursor = place;
		rows.forEach((node, q) => node.classList.toggle("active", q === place?.[0]));
		columns.forEach((node, k) => node.classList.toggle("active", k === place?.[1]));
		outline.hidden = !place;
		if (!place) {
			readout.textContent = "Point at a cell, or use the arrow keys.";
			return;
		}
		const [q, k] = place;
		const weight = number(map.weight(state.layer, state.head, q, k), 3);
		outline.style.transform = `translate(${k * cell}px, ${q * cell}px)`;
		readout.replaceChildren(
			tokenLabel(map.queries[q], map.queries.lang), " attends to ", tokenLabel(map.keys[k], map.keys.lang), el("b", { text: weight }));
		app.say(`${shorten(map.queries[q])} attends to ${shorten(map.keys[k])}: ${weight}`);
	}

	/** Show the head's figures and the scale of colours. */
	function describe() {
		const figures = app.figures()[state.layer * map.heads + state.head];
		const list = columnsOf(map).filter(({ digits }) => digits).flatMap(({ name, label, about, digits }) => [
			el("dt", { text: label, title: about }), el("dd", { text: number(figures[name], digits) }),
		]);
		const ramp = range(21).map((i) => {
			const part = el("i");
			part.style.opacity = shade(i / 20);
			part.style.background = app.theme.colour(state.head);
			return part;
		});
		aside.replaceChildren(
			el("h3", { text: `Layer ${state.layer + 1}, head ${state.head + 1}` }),
			el("dl", { class: "figures" }, ...list),
			el("p", { class: "hint", text: "Weight" }), el("div", { class: "ramp" }, ...ramp),
			el("div", { class: "scale" }, ...["0", "0.5", "1"].map((text) => el("span", { text }))));
	}

	return { main, aside, update };
}

// -------- view: all heads

function gridPanel(app) {
	const { map, state } = app;
	const painted = new Set();
	const paint = (node) => {
		painted.add(node);
		paintHead(node.firstChild, map, Number(node.dataset.layer), Number(node.dataset.head), app.theme);
	};
	// Pictures are painted when they scroll into sight.
	const observer = new IntersectionObserver((entries) => {
		for (const { target, isIntersecting } of entries) {
			if (isIntersecting && !painted.has(target)) paint(target);
		}
	});
	const cells = app.figures().map(({ layer, head, entropy }) => {
		const name = `Layer ${layer + 1}, head ${head + 1}`;
		return button("small", null, () => app.open(layer, head, "heat"), {
			"data-layer": layer, "data-head": head, title: name,
			"aria-label": `${name}, entropy ${number(entropy)}`,
		}, el("canvas"));
	});
	const at = (layer, head) => cells[layer * map.heads + head];
	const heads = range(map.heads);
	const layers = range(map.layers);
	const grid = el("div", { class: "grid", role: "group", "aria-label": "All layers and heads" },
		el("span"), ...heads.map((head) => el("span", { text: `Head ${head + 1}` })),
		...layers.flatMap((layer) => [
			el("span", { text: `Layer ${layer + 1}` }), ...heads.map((head) => at(layer, head)),
		]));
	grid.style.setProperty("--heads", map.heads);
	const ratio = map.keys.length / map.queries.length;
	grid.style.setProperty("--ratio", Math.max(0.4, Math.min(2.5, ratio)).toFixed(3));
	rove(grid, heads.map((head) => layers.map((layer) => at(layer, head))), { first: at(state.layer, state.head) });
	if (state.opened) at(state.layer, state.head).classList.add("chosen");
	const about = `Rows: ${map.queryName} (queries). Columns: ${map.keyName} (keys). Click a head to open it.`;
	return {
		main: el("div", {}, el("p", { class: "hint", text: about }), grid),
		update: () => cells.forEach((node) => (painted.has(node) ? paint(node) : observer.observe(node))),
		destroy: () => observer.disconnect(),
	};
}

// -------- view: table

/** Return the table's columns; those with digits are figures of the head. */
function columnsOf(map) {
	const relative = map.distance === "relative";
	return [
		{ name: "layer", label: "Layer", first: 1 },
		{ name: "head", label: "Head", first: 1 },
		map.kind === "memory" && {
			name: "oneToOne", label: "Aligns words", digits: 3, first: -1, top: 1,
			about: "The largest weight that each source word receives, summed and divided by the number of words of the shorter side. 1: every word has its own partner. Near 0: all attend to one word, or to all alike.",
		},
		{
			name: "entropy", label: "Entropy (nats)", digits: 3, first: 1,
			about: "Mean over queries. 0: each query attends to one key.",
		},
		{
			name: "strongest", label: "Strongest key", digits: 3, first: -1, top: 1,
			about: "Mean over queries of the largest weight.",
		},
		map.distance && {
			name: "distance", digits: relative ? 3 : 2, first: 1,
			label: relative ? "Distance (share of length)" : "Distance (positions)",
			about: relative
				? "Mean of |query ∕ target length − key ∕ source length|. 0: on the diagonal."
				: "Mean of |query − key|.",
		},
	].filter(Boolean);
}

function tablePanel(app) {
	const { map, state } = app;
	const columns = columnsOf(map);
	if (!columns.some(({ name }) => name === state.sort?.[0])) {
		state.sort = map.kind === "memory" ? ["oneToOne", -1] : ["layer", 1];
	}
	const headers = columns.map((column) =>
		el("th", { scope: "col" }, button("", column.label, () => sortBy(column), { title: column.about })));
	const body = el("tbody");
	const all = app.figures();
	const rows = all.map((figures) => ({ figures, row: rowOf(figures) }));

	function sortBy({ name, first }) {
		state.sort = [name, state.sort[0] === name ? -state.sort[1] : first];
		update();
	}

	function rowOf(figures) {
		const { layer, head } = figures;
		const cells = columns.map(({ name, digits, top }) => {
			if (name === "layer") return el("td", { text: layer + 1 });
			if (name === "head") {
				const label = `Open layer ${layer + 1}, head ${head + 1}`;
				return el("td", {}, button("open", `Head ${head + 1}`, null, { "aria-label": label }));
			}
			const bar = el("i", { class: "data-bar" });
			const whole = top ?? Math.max(1e-6, ...all.map((one) => one[name]));
			bar.style.width = `${((100 * figures[name]) / whole).toFixed(1)}%`;
			return el("td", { class: "wide" }, el("span", { text: number(figures[name], digits) }), bar);
		});
		const open = () => app.open(layer, head, "lines");
		return el("tr", { "data-layer": layer, "data-head": head, onclick: open }, ...cells);
	}

	function update() {
		const [name, direction] = state.sort;
		headers.forEach((cell, i) => {
			const order = direction > 0 ? "ascending" : "descending";
			cell.setAttribute("aria-sort", columns[i].name === name ? order : "none");
		});
		rows.sort((a, b) => direction * (a.figures[name] - b.figures[name]));
		for (const { figures, row } of rows) row.style.setProperty("--colour", app.theme.colour(figures.head));
		// A row that moves loses the focus.
		if (rows.some(({ row }, i) => row !== body.rows[i])) body.append(...rows.map(({ row }) => row));
	}

	const about = `Computed from the ${app.words() ? "words" : "tokens"} of this sentence. Click a header to sort, a row to open the head.`;
	const note = map.kind === "memory" && " “Aligns words” is high if every source word has its own partner.";
	const main = el("div", {}, el("p", { class: "hint" }, about, note || ""),
		el("div", { class: "table-scroller" },
			el("table", { "aria-label": `Heads: ${map.label}` },
				el("thead", {}, el("tr", {}, ...headers)), body)));
	return { main, update };
}

const PANELS = {
	lines: ["Lines", linesPanel],
	heat: ["Heat map", heatPanel],
	grid: ["All heads", gridPanel],
	table: ["Compare heads", tablePanel],
};

// -------- branches

/** Return a small line chart over the steps of one weight per branch. */
function branchChart(layer, name, records, valuesOf, step, theme) {
	const [width, height] = [150, 56];
	const steps = records.map((record) => record.step);
	const series = records.map(valuesOf);
	const top = Math.max(...series.flat(), 1e-6);
	const x = (value) => 3 + ((value - steps[0]) / (steps.at(-1) - steps[0] || 1)) * (width - 6);
	const y = (value) => height - 3 - (value / top) * (height - 8);
	const now = steps.indexOf(nearest(steps, step));
	const about = `${name} of ${layer} at step ${stepName(steps[now])}: ${series[now].map((value) => number(value, 3)).join(", ")}`;
	const lines = series[now].flatMap((value, branch) => {
		const points = series.map((values, i) => `${x(steps[i]).toFixed(1)},${y(values[branch]).toFixed(1)}`);
		return [
			svg("polyline", { points: points.join(" "), stroke: theme.colour(branch) }),
			svg("circle", { cx: x(steps[now]), cy: y(value), r: 2.2, fill: theme.colour(branch) }),
		];
	});
	return el("div", { class: "hint", title: about }, `${name}, 0 to ${number(top)}`,
		svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", class: "chart", "aria-label": about },
			svg("path", { d: `M${x(steps[now])} 0V${height}` }), ...lines));
}

function branchSection(records, step, theme) {
	return el("section", { class: "card branches" },
		el("h3", { text: "Branch weights over steps" }),
		el("p", { class: "hint", text: "Weighted Transformer; colours as for heads." }),
		...records[0].layers.flatMap(({ name }, i) => [
			el("h4", { text: name }),
			el("div", { class: "branch-charts" },
				...[["κ", "kappa"], ["α", "alpha"]].filter(([, kind]) => kind in records[0].layers[i])
					.map(([symbol, kind]) => branchChart(name, symbol, records, ({ layers }) => layers[i][kind], step, theme))),
		]));
}

const nearest = (steps, step) =>
	steps.reduce((a, b) => (Math.abs(b - step) < Math.abs(a - step) ? b : a));

// -------- app

let mounts = 0;

/** What is chosen at first, besides run and step. `heads` are shown. */
const OPENING = {
	sentence: null, kind: null, layer: null, head: 0, heads: [], hidden: new Set(),
	view: "lines", words: true, opened: false, pin: null, sort: null,
};

/** The controls, what is chosen, and the panel that shows it. */
class App {
	constructor(root, source) {
		this.source = source;
		this.root = root;
		this.id = `t2t-attention-${++mounts}`;
		this.state = { run: null, step: null, ...OPENING, ...source.chosen };
		[this.runs, this.listed, this.records, this.loaded] = [[], [], [], new Map()];
		this.requests = { list: 0, document: 0 }; // how many there were
		this.build();
		this.system = matchMedia("(prefers-color-scheme: dark)");
		this.recolour = () => this.setTheme(root.dataset.theme);
		this.system.addEventListener("change", this.recolour);
		this.resized = new ResizeObserver(() => {
			if (root.clientWidth !== this.width) this.panel?.update();
			this.width = root.clientWidth;
		});
		this.resized.observe(root);
		this.recolour();
	}

	/** Create the elements that stay; `render` fills them. */
	build() {
		const choice = (label, name, choose) => {
			const select = el("select", { name, onchange: () => choose(select.value) });
			return [el("label", { class: "field" }, el("span", { text: label }), select), select];
		};
		const segments = (label, name) => el("fieldset", { class: name }, el("legend", { text: label }), el("div"));
		const [run, runSelect] = choice("Run", "run", (index) => this.attempt(() => this.loadRun(this.runs[index])));
		const [sentence, sentenceSelect] = choice("Sentence", "sentence", (index) => this.chooseSentence(index));
		const slider = el("input", {
			type: "range", min: 0, name: "step", "aria-label": "Training step",
			oninput: () => this.chooseStep(Number(slider.value)),
		});
		const play = button("plain play", "▶", () => this.play());
		const stepText = el("output");
		const step = el("div", { class: "field step" },
			el("span", { text: "Step" }), el("div", {}, play, slider, stepText));
		const theme = button("plain theme", "", () => this.setTheme(this.dark ? "light" : "dark"));
		const tabs = Object.entries(PANELS).map(([view, [label]]) =>
			button("", label, () => this.choose({ view }), {
				role: "tab", id: `${this.id}-${view}`, "data-view": view, "aria-controls": this.id,
			}));
		const tablist = el("div", { class: "tabs", role: "tablist", "aria-label": "View" }, ...tabs);
		rove(tablist, tabs.map((tab) => [tab]), { moved: (tab) => tab.click() });
		const insight = button("insight", "", () => {
			const { layer, head } = this.best();
			this.open(layer, head, this.state.view === "heat" ? "heat" : "lines");
		}, { title: "Show the head that gives every source word the clearest partner." });
		const parts = this.parts = {
			run, runSelect, sentence, sentenceSelect, slider, play, stepText, step, theme, tabs, insight,
			chips: el("div", { class: "chips", role: "group", "aria-label": "Heads" }),
			panel: el("div", { class: "panel", role: "tabpanel", id: this.id }),
			kind: segments("Attention", "kind"), layer: segments("Layer", "layer"), words: segments("Tokens", "words"),
			texts: el("dl", { class: "card texts" }),
			message: el("p", { class: "message", role: "alert" }),
			notice: el("p", { class: "card", role: "note", "aria-live": "polite" }),
			aside: el("aside", { "aria-label": "Details" }),
			status: el("p", { class: "hidden", role: "status" }),
		};
		parts.controls = el("div", { class: "controls" }, parts.kind, parts.layer, parts.words);
		parts.views = el("section", { class: "card views" },
			el("div", { class: "bar" }, tablist, insight), parts.chips, parts.panel);
		this.root.classList.add("t2t-attention");
		this.root.replaceChildren(
			el("header", {}, el("h1", { text: this.source.title || "Attention" }), run, sentence, step, theme),
			parts.notice, parts.texts, parts.controls, parts.message, parts.views, parts.aside, parts.status);
		this.showMessage("Loading…");
	}

	setTheme(chosen) {
		if (chosen) this.root.dataset.theme = chosen;
		this.dark = chosen ? chosen === "dark" : this.system.matches;
		const colours = COLOURS[this.dark ? "dark" : "light"];
		this.theme = { paper: this.dark ? "#16181d" : "#ffffff", colour: (head) => colours[head % colours.length] };
		this.parts.theme.textContent = this.dark ? "☀ Light" : "☾ Dark";
		if (this.current) this.render();
	}

	// ---- data

	/** Show what goes wrong as one sentence in place of the view. */
	async attempt(action) {
		try {
			await action();
		} catch (error) {
			const text = String(error?.message ?? error ?? "").trim() || "The data can't be read";
			this.showMessage(/[.!?]$/.test(text) ? text : `${text}.`);
		}
	}

	showMessage(text) {
		const { texts, controls, views, aside, message, notice } = this.parts;
		for (const part of [texts, controls, views, aside, notice]) part.hidden = text !== null;
		message.hidden = text === null;
		message.textContent = text ?? "";
		if (text === null) return;
		this.current = null;
		this.root.removeAttribute("aria-busy");
		this.stop();
	}

	/** Ask the source again: training may have added steps. */
	refresh() {
		return this.attempt(async () => {
			this.loaded.clear();
			this.runs = await this.source.runs();
			if (!this.runs.length) throw new Error("There is no attention data yet.");
			await this.loadRun(this.runs.includes(this.state.run) ? this.state.run : this.runs[0]);
		});
	}

	/** Return the answer to a request, or null if there was a later one. */
	async latest(kind, request) {
		const serial = ++this.requests[kind];
		try {
			const answer = await request();
			if (serial === this.requests[kind]) return answer;
		} catch (error) {
			if (serial === this.requests[kind]) throw error;
		}
		return null;
	}

	async loadRun(run) {
		const { state } = this;
		if (run !== state.run) {
			state.run = run;
			this.stop();
			[this.records, this.listed] = [[], []];
			this.requests.document++; // Ignore a document of the other run.
		}
		const contents = await this.latest("list", () => this.source.list(run));
		if (!contents) return;
		const { sentences, branches, damage } = contents;
		this.parts.notice.textContent = damage ?? "";
		this.listed = sentences;
		if (!sentences.length) throw new Error(`Run “${run}” has no attention data.`);
		if (!this.entry()) state.sentence = sentences[0].id;
		if (branches) this.loadBranches(run);
		else this.records = [];
		await this.loadSentence();
	}

	async loadBranches(run) {
		try {
			const records = await this.source.branches(run);
			if (run !== this.state.run) return;
			this.records = records.sort((a, b) => a.step - b.step);
			if (this.current) this.render();
		} catch (error) {
			this.say(error.message);
		}
	}

	entry() {
		return this.listed.find(({ id }) => id === this.state.sentence);
	}

	/** Load the chosen sentence at the step closest to the chosen one. */
	async loadSentence() {
		const { state } = this;
		const { steps } = this.entry();
		if (!steps.length) throw new Error("The sentence has no attention data.");
		state.step = state.step === null ? steps.at(-1) : nearest(steps, state.step);
		this.renderChoices();
		this.root.setAttribute("aria-busy", "true");
		const key = JSON.stringify([state.run, state.sentence, state.step]);
		const sentence = await this.latest("document", async () => this.loaded.get(key)
			?? new Sentence(await this.source.load(state.run, state.sentence, state.step)));
		if (!sentence) return;
		if (this.loaded.size > 12) this.loaded.clear();
		this.loaded.set(key, sentence);
		this.root.removeAttribute("aria-busy");
		this.current = sentence;
		this.render();
	}

	chooseSentence(index) {
		if (!this.listed.length) return; // The contents of another run are on their way.
		this.stop();
		this.state.pin = null;
		this.state.sentence = this.listed[index].id;
		this.attempt(() => this.loadSentence());
	}

	chooseStep(index) {
		if (!this.listed.length) return;
		this.state.step = this.entry().steps[index];
		this.attempt(() => this.loadSentence());
	}

	/** Show all steps in turn, from the first one if the last is shown. */
	play() {
		if (this.timer || !this.listed.length) return this.stop();
		const { steps } = this.entry();
		let index = steps.indexOf(this.state.step);
		this.timer = setInterval(() => {
			index = (index + 1) % steps.length;
			this.chooseStep(index);
			if (index === steps.length - 1) this.stop();
		}, 700);
		this.renderChoices();
	}

	stop() {
		clearInterval(this.timer);
		this.timer = null;
		this.renderChoices();
	}

	// ---- what is chosen

	/** Show what a link names. */
	follow(chosen) {
		Object.assign(this.state, OPENING, chosen);
		this.refresh();
	}

	choose(patch) {
		Object.assign(this.state, patch);
		this.state.opened ||= "head" in patch;
		this.render();
	}

	/** Keep the choices that fit the sentence; replace the others. */
	fit() {
		const { state } = this;
		const { maps } = this.current.document;
		const kinds = maps.map(({ kind }) => kind);
		this.index = Math.max(0, kinds.indexOf(kinds.includes(state.kind) ? state.kind : "memory"));
		state.kind = maps[this.index].kind;
		this.map = this.current.map(this.index, this.words());
		state.layer = clamp(state.layer ?? Infinity, this.map.layers);
		const heads = state.heads.filter((head) => head < this.map.heads);
		if (heads.length) Object.assign(state, { head: heads[0], hidden: this.allBut(...heads), opened: true });
		state.heads = [];
		if (!Object.hasOwn(PANELS, state.view)) state.view = "lines";
		state.head = clamp(state.head, this.map.heads);
	}

	words() {
		return this.state.words && this.current.hasSubwords;
	}

	figures() {
		return this.current.figures(this.index, this.words());
	}

	/** Return the figures of the head that aligns best, between two sequences. */
	best() {
		return this.state.kind === "memory" ? this.current.best(this.index) : null;
	}

	headsOn() {
		return range(this.map.heads).filter((head) => !this.state.hidden.has(head));
	}

	open(layer, head, view) {
		this.choose({ layer, head, view, hidden: this.allBut(head) });
		this.parts.tabs.find((tab) => tab.dataset.view === view).focus();
	}

	allBut(...heads) {
		return new Set(range(this.map.heads).filter((head) => !heads.includes(head)));
	}

	/** Show or hide a head; in the heat map, show it. */
	toggle(head) {
		if (this.state.view === "heat") return this.choose({ head });
		const hidden = new Set(this.state.hidden);
		if (!hidden.delete(head)) hidden.add(head);
		return this.choose({ hidden });
	}

	/** Show a head alone or, if it is alone, all heads. */
	solo(head) {
		const on = this.headsOn();
		const alone = on.length === 1 && on[0] === head;
		this.choose({ head, hidden: alone ? new Set() : this.allBut(head) });
	}

	say(text) {
		this.parts.status.textContent = text;
	}

	// ---- rendering

	render() {
		return this.attempt(() => {
			this.fit();
			this.showMessage(null);
			this.renderChoices();
			this.renderTexts();
			this.renderControls();
			this.renderChips();
			this.renderInsight();
			this.renderPanel();
			this.source.shown?.(this);
		});
	}

	/** Replace a control's children only if they differ: the focus stays. */
	rebuild(node, signature, children) {
		const text = JSON.stringify(signature);
		if (node.signature === text) return;
		node.signature = text;
		node.replaceChildren(...children());
	}

	options(select, names, chosen) {
		this.rebuild(select, names, () => names.map((text, value) => el("option", { value, text: shorten(text) || "." })));
		select.value = chosen;
	}

	renderChoices() {
		const { run, runSelect, sentence, sentenceSelect, slider, play, stepText, step } = this.parts;
		const { state } = this;
		this.options(runSelect, this.runs, this.runs.indexOf(state.run));
		run.hidden = !this.runs.some(Boolean);
		const titles = this.listed.map(({ title }) => title);
		this.options(sentenceSelect, titles, this.listed.indexOf(this.entry()));
		sentence.hidden = titles.length < 2;
		const steps = this.entry()?.steps ?? [];
		step.hidden = steps.length < 2;
		if (step.hidden) return;
		slider.max = steps.length - 1;
		slider.value = steps.indexOf(state.step);
		stepText.textContent = stepName(state.step);
		slider.setAttribute("aria-valuetext", stepText.textContent);
		play.textContent = this.timer ? "❚❚" : "▶";
		play.setAttribute("aria-label", this.timer ? "Stop" : "Play the steps");
	}

	renderTexts() {
		const { sequences, score } = this.current.document;
		const rows = { Source: sequences.source, Target: sequences.target };
		if (typeof score === "number") rows.Score = { text: `${number(score)} nats (log-probability of the target)` };
		this.parts.texts.replaceChildren(...Object.entries(rows).filter(([, value]) => value?.text).flatMap(
			([name, { text, lang }]) => [el("dt", { text: name }), el("dd", { dir: "auto", lang }, el("bdi", { text }))]));
	}

	segments(fieldset, labels, chosen, choose) {
		const box = fieldset.lastChild;
		const radio = (text, value) => el("label", {},
			el("input", { type: "radio", name: `${this.id}-${fieldset.className}`, value, onchange: () => choose(value) }),
			el("span", { text }));
		this.rebuild(box, labels, () => labels.map(radio));
		box.querySelectorAll("input").forEach((input, index) => (input.checked = index === chosen));
	}

	renderControls() {
		const { state } = this;
		const { kind, layer, words, tabs, panel, chips } = this.parts;
		const { maps } = this.current.document;
		this.segments(kind, maps.map(({ label }) => label), this.index, (index) =>
			this.choose({ kind: this.current.document.maps[index].kind, pin: null, sort: null }));
		this.segments(layer, range(this.map.layers).map((i) => i + 1), state.layer, (i) => this.choose({ layer: i }));
		this.segments(words, ["Words", "Subwords"], this.words() ? 0 : 1, (i) => this.choose({ words: i === 0, pin: null }));
		words.hidden = !this.current.hasSubwords;
		layer.hidden = chips.hidden = ["grid", "table"].includes(state.view);
		for (const tab of tabs) {
			const chosen = tab.dataset.view === state.view;
			tab.setAttribute("aria-selected", chosen);
			tab.tabIndex = chosen ? 0 : -1;
		}
		panel.setAttribute("aria-labelledby", `${this.id}-${state.view}`);
	}

	renderChips() {
		const { chips } = this.parts;
		const { view, head: shown, hidden } = this.state;
		const heads = range(this.map.heads);
		const one = view === "heat";
		const title = one ? "Show this head" : "Click: show or hide. Double-click or Shift+Enter: this head alone.";
		const chip = (head) => button("chip", head + 1, (event) => (event.shiftKey ? this.solo(head) : this.toggle(head)), {
			"data-head": head, "aria-label": `Head ${head + 1}`, title,
			// Its two clicks have undone each other.
			ondblclick: () => !one && this.solo(head),
		});
		this.rebuild(chips, [heads, one], () => [
			el("span", { class: "hint", text: one ? "Head" : "Heads" }), ...heads.map(chip),
			...(one ? [] : [
				button("plain all", "All", () => this.choose({ hidden: new Set() })),
				button("plain none", "None", () => this.choose({ hidden: new Set(heads) })),
			]),
		]);
		chips.querySelectorAll(".chip").forEach((node, head) => {
			node.setAttribute("aria-pressed", one ? head === shown : !hidden.has(head));
			node.style.setProperty("--colour", this.theme.colour(head));
		});
	}

	renderInsight() {
		const { insight } = this.parts;
		const best = this.best();
		insight.hidden = !best;
		if (!best) return;
		insight.style.setProperty("--colour", this.theme.colour(best.head));
		insight.replaceChildren(
			el("i"), `Aligns this sentence best: layer ${best.layer + 1}, head ${best.head + 1}`,
			el("b", { text: number(best.oneToOne) }));
	}

	renderPanel() {
		const { run, sentence, kind, view, step } = this.state;
		// Lines and heat map stay while only weights change, and with them focus and scroll.
		const signature = JSON.stringify([run, sentence, kind, view, this.map.queries, this.map.keys, this.map.heads]);
		if (signature !== this.signature || ["grid", "table"].includes(view)) {
			const scroll = this.parts.panel.querySelector(".table-scroller")?.scrollTop;
			this.panel?.destroy?.();
			this.panel = PANELS[view][1](this);
			this.signature = signature;
			this.parts.panel.replaceChildren(this.panel.main);
			if (scroll) this.panel.main.querySelector(".table-scroller")?.scrollTo(0, scroll);
		}
		const cards = this.panel.aside ? [this.panel.aside] : [];
		if (this.records.length) cards.push(branchSection(this.records, step, this.theme));
		this.parts.aside.replaceChildren(...cards);
		this.root.classList.toggle("alone", !cards.length);
		this.panel.update();
	}

	destroy() {
		this.stop();
		this.requests = {};
		this.panel?.destroy?.();
		this.resized.disconnect();
		this.system.removeEventListener("change", this.recolour);
		this.root.replaceChildren();
	}
}

function mount(root, source) {
	const app = new App(root, source);
	app.refresh();
	return app;
}

// Its parts, for pages that look like this one.
globalThis.T2TAttention = { mount, fromDocuments, Sentence, el, button, rove, shade, number };
