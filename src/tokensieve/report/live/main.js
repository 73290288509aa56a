/** Puts the parts together once the page is there; where anything is missing the static page stays. */
const Main = {
  async start() {
    if (!Codec.supported()) return;
    const page = document.documentElement;
    await State.load();
    await Promise.all([TokenMap.load(), Model.load(), Lines.load()]);
    await Documents.load();
    try {
      page.classList.add("live"); // until now, the static page is there to read
      Address.label = State.label;
      Main.controls();
      Theme.start();
      TokenTable.start();
      Decisions.load();
      const { zoom, at, ...asked } = Address.read();
      Object.assign(State, asked);
      Main.fill();
      Main.name();
      if (State.chosen !== null) Documents.kind = "token";
      TokenTable.show(true);
      TokenMap.show();
      Documents.show();
      Box.start();
      Search.start();
      Panel.start();
      State.on(Main.changed);
      Address.start();
      Address.take(zoom, at);
      page.dataset.ready = "yes";
    } catch (problem) {
      page.classList.remove("live");
      throw problem;
    }
  },

  controls() {
    const label = Dom.id("class");
    label.addEventListener("change", () => State.set({ label: Number(label.value) }));
    for (const name of ["across", "up", "paint"]) {
      const choice = Dom.id(`map-${name}`);
      choice.addEventListener("change", () => State.set({ [name]: choice.value, brush: null }));
    }
  },

  /** The controls as the state has them. */
  fill() {
    Dom.id("class").value = State.label;
    Dom.id("find").value = State.find;
    for (const name of ["across", "up", "paint"]) Dom.id(`map-${name}`).value = State[name];
    for (const name of ["quadrant", "category"]) Dom.id(`filter-${name}`).value = State[name];
    Dom.id("filter-least").value = State.least || "";
  },

  name() {
    for (const place of document.querySelectorAll(".chosen-class")) place.textContent = Format.shown(State.classes[State.label], 40);
  },

  /** Draw again what depends on what changed. */
  changed(names) {
    const any = (...these) => these.some((name) => names.has(name));
    if (any("label", "find", "marked", "quadrant", "category", "least", "brush")) TokenTable.show(true);
    else if (any("decided")) TokenTable.show(false);
    if (any("label", "across", "up", "paint", "theme")) TokenMap.later();
    else if (any("find", "marked")) TokenMap.name();
    else if (any("brush", "chosen")) TokenMap.mark();
    if (any("brush")) TokenMap.tell();
    if (any("label")) {
      Dom.id("class").value = State.label;
      Main.name();
    }
    if (any("chosen", "brush") || (any("label") && !Dom.id("panel").hidden)) Panel.show();
    if (any("chosen")) Documents.choose(State.chosen === null ? Documents.kinds[0] : "token");
    else if (any("label") && State.classes.length === 2) Documents.show();
    Address.write();
    if (any("chosen", "brush", "label")) Main.post();
    if (any("label") && Model.tokenizer && State.classes.length === 2) Box.soon();
  },

  /** Tell a notebook, in whose frame the page stands, which tokens are selected. */
  post() {
    if (window.parent === window) return;
    let tokens = [];
    if (State.chosen !== null) tokens = [State.tokens[State.chosen]];
    else if (State.brush !== null) tokens = State.kept().map((row) => State.token(row));
    window.parent.postMessage({ tokensieve: "selected", tokens }, "*");
  },
};

/** For other programs, and for the console: the model's answer to a text, as `tokensieve explain` gives it. */
window.tokensieve = {
  explain(text) {
    const explained = Model.explain(text);
    const { answer, unknown } = explained;
    const k = Model.heads > 1 ? Model.best(answer) : 1;
    const tokens = Model.sum(explained, k).rows.map(({ type, ...row }) => row);
    return { answer: Array.from(answer), probabilities: Model.probabilities(answer), unknown, tokens };
  },
  /** The answer to a sample document with words changed: [[word, text], …]. */
  changed(i, edits) {
    const explained = Documents.explained[i];
    const text = WhatIf.text(explained, new Map(edits));
    return { text, answer: Array.from(Model.changed(explained, text).answer) };
  },
};

Main.start();
