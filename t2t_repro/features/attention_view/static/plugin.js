// Entry point of the TensorBoard plugin: reads the plugin's routes for the view.

const VIEW = './attention_view.js';

/** Returns the JSON of a route, or rejects with one sentence. */
async function get(route, parameters = {}) {
  const url = new URL(route, import.meta.url);
  url.search = new URLSearchParams(parameters);
  let response;
  try {
    response = await fetch(url);
  } catch {
    throw new Error('TensorBoard does not answer: is it still running?');
  }
  const content = await response.json().catch(() => null);
  if (!response.ok || content === null) {
    throw new Error(
      content?.error ?? `TensorBoard answered with status ${response.status}.`);
  }
  return content;
}

const source = {
  runs: () => get('runs'),
  list: (run) => get('list', {run}),
  load: (run, id, step) => get('document', {run, id, step}),
  branches: (run) => get('branches', {run}),
};

/** Calls a function whenever TensorBoard has read the event files again. */
function onReload(action) {
  const {port1, port2} = new MessageChannel();
  port1.onmessage = ({data}) => {
    const {type, id, isReply} = JSON.parse(data);
    if (isReply) return;
    port1.postMessage(JSON.stringify({type, id, isReply: true, payload: null}));
    if (type === 'experimental.DataReloaded') action();
  };
  window.parent.postMessage('experimental.bootstrap', '*', [port2]);
}

/** Follows TensorBoard's switch between light and dark, a class of its page. */
function followTheme(view) {
  const {body} = window.parent.document;
  const follow = () =>
    view.setTheme(body.classList.contains('dark-mode') ? 'dark' : 'light');
  new MutationObserver(follow).observe(body, {attributeFilter: ['class']});
  follow();
}

function addStyle() {
  const link = document.createElement('link');
  link.rel = 'stylesheet';
  link.href = new URL('attention_view.css', import.meta.url);
  document.head.append(link);
  for (const element of [document.documentElement, document.body]) {
    element.style.margin = 0;
    element.style.height = '100%';
  }
}

/** Draws the tab; TensorBoard calls this once. */
export async function render() {
  addStyle();
  const root = document.createElement('div');
  document.body.append(root);
  try {
    await import(VIEW);
    const view = globalThis.T2TAttention.mount(root, source);
    followTheme(view);
    onReload(() => view.refresh());
  } catch (error) {
    root.textContent = `The view of attention cannot start: ${error.message}`;
  }
}
