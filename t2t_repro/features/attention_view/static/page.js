// Starts the view on the page of `t2t attention --html`.
{
  const data = JSON.parse(document.getElementById("attention-data").textContent);
  const chosenIn = (address) => {
    const named = new URLSearchParams(address.slice(1));
    const text = (name) => named.get(name) ?? "";
    const indices = (name) => text(name).split(" ")
      .filter((part) => /^[1-9]\d{0,3}$/.test(part)).map((part) => part - 1);
    const [index] = indices("word");
    const side = text("side") === "key" ? "key" : "query";
    return {
      sentence: indices("sentence")[0], kind: text("attention"),
      layer: indices("layer")[0], heads: indices("heads"), view: text("view"),
      words: text("tokens") !== "subwords", pin: index >= 0 ? { side, index } : null,
    };
  };
  const addressOf = (app) => {
    const { kind, layer, head, view, words, hidden, pin } = app.state;
    const heads = view === "heat" ? [head] : hidden.size ? app.headsOn() : [];
    return String(new URLSearchParams({
      sentence: app.state.sentence + 1, attention: kind, layer: layer + 1,
      ...(heads.length && { heads: heads.map((index) => index + 1).join(" ") }), view,
      ...(!words && { tokens: "subwords" }),
      ...(pin && { side: pin.side, word: pin.index + 1 }),
    }));
  };
  let named, timer;
  const shown = (app) => {
    // Keep the address as it was written until something else is chosen: a new one
    // while the browser goes back can stop it there.
    named ??= addressOf(app);
    clearTimeout(timer);
    // Browsers refuse frequent changes.
    timer = setTimeout(() => {
      const address = addressOf(app);
      if (address === named) return;
      named = address;
      history.replaceState(null, "", `${location.href.split("#")[0]}#${address}`);
    }, 300);
  };
  const source = T2TAttention.fromDocuments(data.documents);
  const chosen = chosenIn(location.hash);
  const view = T2TAttention.mount(
    document.getElementById("attention"),
    { ...source, title: data.title, chosen, shown },
  );
  addEventListener("hashchange", () => {
    named = undefined;
    view.follow(chosenIn(location.hash));
  });
}
