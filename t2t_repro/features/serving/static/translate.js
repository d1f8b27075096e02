/*
 * The page of `t2t serve`: translation while typing, other translations of a sentence,
 * and the source words that a word of the translation attends to.
 *
 * Texts are untrusted: they reach the page only as text. There is no inline style or
 * handler, so a strict Content-Security-Policy holds.
 */
const { mount, fromDocuments, Sentence, el, button, rove, shade, number } = globalThis.T2TAttention;

const TYPING = 300; // milliseconds without a key before the text is sent
const POINTING = 120; // on a word before its sentence's attention is asked for
const READING = 1200; // without a key before a screen reader reads the translation
const ALTERNATIVES = 3;
const LEAST_SHOWN = 0.05; // weights below have no mark
const MOST_ATTENTIONS = 40; // kept; that of a long sentence is megabytes
const HINT = "Point at a word to see what it attends to.";
const KEY = "t2t-api-key"; // in sessionStorage

const parts = Object.fromEntries([...document.querySelectorAll("[id]")].map((node) => [node.id, node]));
const { root, source, output, backdrop } = parts;
const lead = document.createTextNode(""); // white space before the first sentence
const state = {
	models: [], model: null, most: Infinity,
	before: "", sentences: [], // the translation; a sentence has source, start, text, space, node, gap
	current: null, // the sentence that the buttons are about
	pointed: null, // the word under the pointer or the focus
	chosen: new Map(), // other translations that were chosen, by model and source
	attentions: new Map(), // promises, by model, source and translation
	view: null, viewed: null, // all heads, and of which sentence
	request: null, timers: {},
};

const wait = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
const say = (text) => (parts.status.textContent = text);

/** Call a function after a while, unless it is asked for again or cancelled. */
function later(name, milliseconds, action) {
	clearTimeout(state.timers[name]);
	state.timers[name] = action && setTimeout(action, milliseconds);
}

// -------- the server

/** Show one sentence, or nothing. Its text is the server's: only text. */
function complain(text) {
	text = text && text.charAt(0).toUpperCase() + text.slice(1);
	parts.error.textContent = !text || /[.!?…]$/.test(text) ? text : `${text}.`;
	parts.error.hidden = !text;
}

function askForKey() {
	if (parts.form.hidden) say("The server asks for an API key.");
	parts.form.hidden = false;
}

/** Return the answer to a request; if the server is busy, wait as long as it says. */
async function ask(route, body, signal) {
	const key = sessionStorage.getItem(KEY);
	const headers = { "Content-Type": "application/json", ...(key && { Authorization: `Bearer ${key}` }) };
	let waited = false;
	const options = body ? { method: "POST", headers, body: JSON.stringify({ model: state.model.name, ...body }) } : { headers };
	for (;;) {
		const response = await fetch(route, { ...options, signal }).catch((error) => {
			if (signal?.aborted) throw error;
			throw new Error("The server does not answer. The page tries again when the text changes.");
		});
		if (response.ok) {
			if (waited) complain("");
			return response;
		}
		const { error } = await response.json().catch(() => ({}));
		if (response.status === 401) {
			askForKey();
			throw new Error(key ? "The server refuses this API key." : ""); // The form says the other.
		}
		if (response.status !== 429) throw new Error(error || `The server answered with status ${response.status}.`);
		const seconds = Math.max(1, Number(response.headers.get("Retry-After")) || 1);
		complain(`The server is busy. Trying again in ${seconds} s.`);
		waited = true;
		await wait(1000 * seconds);
		signal?.throwIfAborted();
	}
}

/** Yield the server-sent events of an answer as {type, data}. */
async function* events(response) {
	const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
	let rest = "";
	for (;;) {
		const { value, done } = await reader.read();
		if (done) return;
		const blocks = (rest + value).split(/\r?\n\r?\n/);
		rest = blocks.pop();
		for (const block of blocks) {
			const fields = block.split(/\r?\n/).map((line) => line.split(/: ?(.*)/s));
			const valueOf = (name) => fields.filter(([field]) => field === name).map(([, text]) => text).join("\n");
			if (valueOf("data")) yield { type: valueOf("event") || "message", data: JSON.parse(valueOf("data")) };
		}
	}
}

// -------- models

/** Return a language's code, or nothing if it isn't one: models may be named in any way. */
function languageOf(code) {
	try {
		return Intl.getCanonicalLocales(code)[0];
	} catch {
		return undefined;
	}
}

const languageName = (code) =>
	languageOf(code) ? new Intl.DisplayNames(["en"], { type: "language" }).of(languageOf(code)) : code;

const titleOf = ({ name, source_language: from, target_language: to }) =>
	from && to ? `${languageName(from)} → ${languageName(to)}` : name;

async function loadModels() {
	const { models, needs_key: needsKey, max_characters: most, max_beam_size: beam } = await (await ask("v1/models")).json();
	Object.assign(state, { models, most, alternatives: Math.min(ALTERNATIVES, beam - 1) });
	if (!models.length) throw new Error("The server has no model.");
	const titles = models.map(titleOf);
	parts.model.replaceChildren(...titles.map((title, value) => {
		const unique = titles.filter((other) => other === title).length === 1;
		return el("option", { value, text: unique ? title : `${title} (${models[value].name})` });
	}));
	parts.models.hidden = models.length < 2;
	if (needsKey && !sessionStorage.getItem(KEY)) askForKey();
	useModel(0);
	count();
}

function useModel(index) {
	const model = (state.model = state.models[index]);
	const { source_language: from, target_language: to } = model;
	parts.from.textContent = from ? languageName(from) : "Source";
	parts.to.textContent = to ? languageName(to) : "Translation";
	source.lang = languageOf(from) ?? "";
	output.lang = languageOf(to) ?? "";
	parts.heads.hidden = !model.attention;
	parts.readout.textContent = model.attention ? HINT : "";
	show(state.before, []);
}

// -------- translation

/** Return the offsets in a JavaScript string of the code points that the server counts. */
function offsetsOf(text) {
	const offsets = [0];
	for (const character of text) offsets.push(offsets.at(-1) + character.length);
	return offsets;
}

/** Show how long the text is, and return whether the server takes it. */
function count() {
	const length = offsetsOf(source.value).length - 1;
	const fits = length <= state.most;
	const figures = [length, state.most].filter(Number.isFinite).map((figure) => figure.toLocaleString("en"));
	parts.count.textContent = `${figures.join(" of ")} characters`;
	parts.count.classList.toggle("alarm", !fits);
	source.setAttribute("aria-invalid", !fits);
	return fits;
}

/** Translate the text; leave the request before, so that the server is free for this one. */
async function translate() {
	leave();
	const request = (state.request = new AbortController());
	const text = source.value;
	parts.clear.disabled = !text;
	if (!count()) return complain(`The text is too long: this server takes at most ${state.most.toLocaleString("en")} characters.`);
	if (!text.trim()) {
		complain("");
		return show("", []);
	}
	output.setAttribute("aria-busy", "true");
	try {
		if (!state.model) await loadModels();
		const offsets = offsetsOf(text);
		const response = await ask("translate", { q: text, format: "text", stream: true }, request.signal);
		const sentences = [];
		let whole = false;
		for await (const { type, data } of events(response)) {
			if (request.signal.aborted) return;
			if (type === "error") throw new Error(data.error);
			if (type === "done") whole = true;
			else if (type === "message") {
				const { source: own, start, translatedText, space = "" } = data;
				sentences.push({ source: own, start: offsets[start], text: state.chosen.get(identity(own)) ?? translatedText, space });
				// What is left of the translation before stays until its turn comes.
				show(data.before ?? (data.index ? state.before : ""), [...sentences, ...state.sentences.slice(sentences.length)]);
			}
		}
		if (!whole) throw new Error("The connection ended before the translation.");
		show(state.before, sentences);
		complain("");
		later("say", READING, () => say(translation()));
	} catch (error) {
		if (!request.signal.aborted) complain(error.message);
	} finally {
		if (request === state.request) output.removeAttribute("aria-busy");
	}
}

/** End what the text before has asked for. */
function leave() {
	state.request?.abort();
	for (const name of ["type", "say"]) later(name);
	output.removeAttribute("aria-busy");
	closeOthers();
	point(null);
}

const identity = (...names) => JSON.stringify([state.model.name, ...names]);
const translation = () => state.before + state.sentences.map(({ text, space }) => text + space).join("");

/** Return the element of a sentence, whose words can be pointed at and focused. */
function elementOf({ text }) {
	const segments = [...new Intl.Segmenter(output.lang || undefined, { granularity: "word" }).segment(text)];
	const hasWords = segments.some(({ isWordLike }) => isWordLike);
	const isWord = ({ isWordLike, segment }) => (hasWords ? isWordLike : segment.trim());
	return el("span", { class: "sentence" }, ...segments.map((one) => isWord(one)
		? el("span", { class: "word", tabindex: -1, "data-at": one.index }, one.segment) : one.segment));
}

const words = []; // of the translation, each a column

/** Show sentences; the elements of those that stay the same stay, with focus and pointer. */
function show(before, sentences) {
	sentences.forEach((sentence, i) => {
		const kept = state.sentences[i];
		const same = kept?.text === sentence.text && kept.source === sentence.source;
		sentence.node ??= same ? kept.node : elementOf(sentence);
		sentence.gap ??= kept?.gap ?? document.createTextNode("");
		sentence.gap.data = sentence.space;
	});
	Object.assign(state, { before, sentences });
	lead.data = before;
	const nodes = [lead, ...sentences.flatMap(({ node, gap }) => [node, gap])];
	for (const node of [...output.childNodes]) if (!nodes.includes(node)) node.remove();
	nodes.forEach((node, i) => node === output.childNodes[i] || output.insertBefore(node, output.childNodes[i] ?? null));
	words.splice(0, Infinity, ...[...output.querySelectorAll(".word")].map((word) => [word]));
	if (!state.pointed?.isConnected) point(null);
	setCurrent(sentences.find(({ node }) => node === state.current?.node) ?? sentences[0] ?? null);
	const stop = output.querySelector(".word[tabindex='0']") ?? output.querySelector(".word");
	if (stop) stop.tabIndex = 0;
	parts.copy.disabled = parts.tools.hidden = !sentences.length;
}

function setCurrent(sentence) {
	state.current = sentence;
	for (const { node } of state.sentences) node.classList.toggle("current", node === sentence?.node);
	// The view stays with its sentence: the button opens the other one.
	parts.heads.setAttribute("aria-expanded", Boolean(sentence) && state.viewed === sentence.node);
}

const sentenceOf = (node) => state.sentences.find((sentence) => sentence.node === node.closest?.(".sentence"));

// -------- other translations

/** Offer the best translations of a sentence. */
async function openOthers(sentence) {
	const opener = document.activeElement;
	closeOthers();
	setCurrent(sentence);
	const request = (state.others = new AbortController());
	parts.about.textContent = `Other translations of “${sentence.source}”`;
	parts.list.replaceChildren(el("p", { class: "hint", text: "Translating…" }));
	parts.alternatives.hidden = false;
	parts.others.setAttribute("aria-expanded", "true");
	try {
		const response = await ask("translate", { q: sentence.source, format: "text", alternatives: state.alternatives }, request.signal);
		const { translatedText, alternatives = [] } = await response.json();
		const texts = [...new Set([translatedText, ...alternatives, sentence.text])];
		const list = texts.map((text) => button("option", text, () => choose(sentence, text), {
			lang: output.lang, dir: "auto", "aria-pressed": text === sentence.text,
		}));
		const group = el("div", { role: "group", "aria-labelledby": "about" }, ...list);
		rove(group, [list]);
		parts.list.replaceChildren(group);
		complain("");
		if (document.activeElement === opener) list[texts.indexOf(sentence.text)].focus();
	} catch (error) {
		if (!request.signal.aborted) parts.list.replaceChildren(el("p", { class: "hint alarm", text: error.message }));
	}
}

function closeOthers() {
	state.others?.abort();
	parts.alternatives.hidden = true;
	parts.others.setAttribute("aria-expanded", "false");
}

/** Close the list as its keys do: the focus goes back to the sentence. */
function backToSentence() {
	closeOthers();
	state.current?.node.querySelector(".word")?.focus({ preventScroll: true });
}

function choose(sentence, text) {
	state.chosen.set(identity(sentence.source), text);
	const other = { ...sentence, text, node: text === sentence.text ? sentence.node : elementOf({ text }) };
	show(state.before, state.sentences.map((one) => (one === sentence ? other : one)));
	setCurrent(other);
	backToSentence();
	say(text);
}

// -------- attention

/** Return the weights between the words of both texts in the head that aligns them best. */
function alignmentOf(document) {
	const sentence = new Sentence(document);
	const index = document.maps.findIndex(({ kind }) => kind === "memory");
	if (index < 0) throw new Error("The sentence has no attention between source and target.");
	const { layer, head } = sentence.best(index);
	const { queries, keys, weight } = sentence.map(index, true);
	return { layer, head, queries, keys, weight: (query, key) => weight(layer, head, query, key) };
}

/** Return a promise of the attention between a sentence and its translation. */
function attentionOf({ source: q, text }) {
	const key = identity(q, text);
	if (!state.attentions.has(key)) {
		const answer = ask("attention", { q, translation: text }).then((response) => response.json())
			.then((attention) => ({ attention, alignment: alignmentOf(attention) }));
		const [oldest] = state.attentions.keys();
		if (state.attentions.size >= MOST_ATTENTIONS) state.attentions.delete(oldest);
		state.attentions.set(key, answer);
		answer.catch(() => state.attentions.delete(key));
	}
	return state.attentions.get(key);
}

/** Return where words are in a text; null where one isn't, such as the end of sentence. */
function placesOf(labels, text) {
	let end = 0;
	return labels.map((label) => {
		const start = text.indexOf(label, end);
		if (start < 0) return null;
		end = start + label.length;
		return { start, end };
	});
}

/** Return the words of the source with what a word of the translation gives to them. */
function attendedBy(word, sentence, alignment) {
	const { queries, keys, weight } = alignment;
	const [start, end] = [Number(word.dataset.at), Number(word.dataset.at) + word.textContent.length];
	const rows = placesOf(queries, sentence.text)
		.flatMap((place, row) => (place && place.start < end && place.end > start ? [row] : []));
	return placesOf(keys, sentence.source).map((place, key) => ({
		...place, text: keys[key], share: rows.reduce((sum, row) => sum + weight(row, key), 0) / (rows.length || 1),
	})).filter(({ end: found, share }) => found && share >= LEAST_SHOWN);
}

/** Mark the word under the pointer or the focus, and what it attends to. */
async function point(word) {
	if (word === state.pointed) return;
	state.pointed?.classList.remove("pointed");
	state.pointed = word;
	mark([]);
	parts.readout.textContent = state.model?.attention ? HINT : "";
	if (!word || !state.model.attention) return;
	word.classList.add("pointed");
	const sentence = sentenceOf(word);
	try {
		if (!state.attentions.has(identity(sentence.source, sentence.text))) await wait(POINTING);
		if (word !== state.pointed) return;
		const { alignment } = await attentionOf(sentence);
		if (word !== state.pointed) return;
		const found = attendedBy(word, sentence, alignment);
		const { start } = sentenceOf(word); // It may have moved.
		if (source.value.startsWith(sentence.source, start)) {
			mark(found.map((one) => ({ ...one, start: start + one.start, end: start + one.end })));
		}
		const list = found.sort((a, b) => b.share - a.share).slice(0, 3).map(({ text, share }) => `${text} ${number(share)}`);
		const where = `layer ${alignment.layer + 1}, head ${alignment.head + 1}`;
		parts.readout.textContent = `“${word.textContent}” attends to ${list.join(", ") || "no word"} (${where})`;
		if (word === document.activeElement) say(parts.readout.textContent);
	} catch (error) {
		if (word === state.pointed) parts.readout.textContent = error.message;
	}
}

/** Mark parts of the source: marks lie behind the text of the field. */
function mark(places) {
	const text = source.value;
	let at = 0;
	const strongest = Math.max(...places.map(({ share }) => share));
	const nodes = places.flatMap(({ start, end, share }) => {
		const node = el("mark", { class: share === strongest ? "strongest" : null, "data-share": number(share) }, text.slice(start, end));
		node.style.setProperty("--share", shade(share).toFixed(3));
		const between = text.slice(at, start);
		at = end;
		return [between, node];
	});
	// A last, empty line has a height only if something is in it.
	backdrop.replaceChildren(...nodes, `${text.slice(at)}\u200b`);
	const [paper, best] = [parts.paper, backdrop.querySelector(".strongest")];
	if (!best) return;
	const [top, bottom] = [best.offsetTop, best.offsetTop + best.offsetHeight];
	if (top < paper.scrollTop || bottom > paper.scrollTop + paper.clientHeight) paper.scrollTop = top - paper.clientHeight / 2;
}

/** Open the attention of all heads for the current sentence, or close it. */
async function toggleHeads() {
	const { current, viewed } = state;
	closeHeads();
	if (viewed === current.node) return;
	try {
		const { attention } = await attentionOf(current);
		const box = el("div");
		parts.view.replaceChildren(box);
		parts.view.hidden = false;
		state.view = mount(box, { ...fromDocuments([attention]), title: "Attention", chosen: { view: "grid" } });
		state.view.setTheme(root.dataset.theme);
		state.viewed = current.node;
		setCurrent(state.current);
		parts.view.scrollIntoView({ block: "nearest" });
	} catch (error) {
		complain(error.message);
	}
}

function closeHeads() {
	state.view?.destroy();
	Object.assign(state, { view: null, viewed: null });
	parts.view.hidden = true;
	parts.heads.setAttribute("aria-expanded", "false");
}

// -------- controls

async function copy() {
	const text = translation();
	try {
		await navigator.clipboard.writeText(text);
	} catch {
		// Without TLS, only this machine's own pages have a clipboard.
		const field = el("textarea", { class: "hidden" });
		field.value = text;
		root.append(field);
		field.select();
		document.execCommand("copy");
		field.remove();
		parts.copy.focus();
	}
	parts.copy.textContent = "Copied";
	say("The translation is copied.");
	later("copy", 2000, () => (parts.copy.textContent = "Copy"));
}

const system = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
const nameTheme = () => (parts.theme.textContent = isDark() ? "☀ Light" : "☾ Dark");

function typed() {
	leave();
	later("type", TYPING, translate);
}

source.addEventListener("input", (event) => {
	mark([]); // Behind the field, the text gives both their height.
	if (!event.isComposing) typed();
});
source.addEventListener("compositionend", typed);
parts.model.addEventListener("change", () => {
	useModel(Number(parts.model.value));
	translate();
});
parts.clear.addEventListener("click", () => {
	source.value = "";
	closeHeads();
	mark([]);
	translate();
	source.focus();
});
parts.copy.addEventListener("click", copy);
parts.heads.addEventListener("click", toggleHeads);
parts.others.addEventListener("click", () => (parts.alternatives.hidden ? openOthers(state.current) : closeOthers()));
parts.theme.addEventListener("click", () => {
	root.dataset.theme = isDark() ? "light" : "dark";
	nameTheme();
	state.view?.setTheme(root.dataset.theme);
});
system.addEventListener("change", nameTheme);
parts.form.addEventListener("submit", (event) => {
	event.preventDefault();
	sessionStorage.setItem(KEY, parts.key.value);
	parts.key.value = "";
	parts.form.hidden = true;
	complain("");
	translate();
	source.focus();
});

output.addEventListener("pointerover", ({ target }) => point(target.closest(".word")));
output.addEventListener("pointerleave", () => point(null));
output.addEventListener("focusin", ({ target }) => {
	if (sentenceOf(target)) setCurrent(sentenceOf(target));
	// A click focuses, too; only the keyboard's focus counts.
	if (target.matches(".word:focus-visible")) point(target);
});
output.addEventListener("focusout", () => point(output.querySelector(".word:hover")));
output.addEventListener("click", ({ target }) => {
	const sentence = sentenceOf(target);
	// Who selects a part of the text doesn't ask for another.
	if (sentence && getSelection().isCollapsed) openOthers(sentence);
});
root.addEventListener("keydown", (event) => {
	const { key, target } = event;
	if (key === "Escape") {
		point(null);
		(parts.alternatives.contains(target) ? backToSentence : closeOthers)();
	} else if (["Enter", " "].includes(key) && target.matches(".word")) {
		event.preventDefault();
		openOthers(sentenceOf(target));
	}
});
rove(output, words);

nameTheme();
parts.clear.disabled = parts.copy.disabled = true;
// A browser may have kept the text of the page before.
loadModels().then(() => source.value && translate(), (error) => complain(error.message));
count();
