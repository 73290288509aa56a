/** Puts the parts together once the page is there; where anything is missing the static page stays. */
const Main = {
  async start() {
    if (!Codec.supported()) return;
    const page = document.documentElement;
    page.classList.add("live");
    try {
      await State.load();
      Main.controls();
      Main.name();
      Theme.start();
      TokenTable.start();
      TokenTable.show(true);
      await TokenMap.load();
      await TokenMap.later(true);
      await Model.load();
      await Documents.load();
      Documents.show();
      Box.start();
      State.on(Main.changed);
      page.dataset.ready = "yes";
    } catch (problem) {
      page.classList.remove("live");
      throw problem;
    }
  },

  controls() {
    const label = Dom.id("class");
    label.append(...State.classes.map((name, i) => Dom.make("option", { value: i, text: Format.shown(name, 40) })));
    label.value = State.label;
    label.addEventListener("change", () => State.set({ label: Number(label.value) }));
    const find = Dom.id("find");
    find.addEventListener("input", () => State.set({ find: find.value }));
    for (const name of ["across", "up", "paint"]) {
      const choice = Dom.id(`map-${name}`);
      choice.addEventListener("change", () => State.set({ [name]: choice.value, brush: null }));
    }
  },

  name() {
    for (const place of document.querySelectorAll(".chosen-class")) place.textContent = Format.shown(State.classes[State.label], 40);
  },

  /** Draw again what depends on what changed. */
  changed(names) {
    const any = (...these) => these.some((name) => names.has(name));
    if (any("label", "find", "quadrant", "category", "least", "brush")) TokenTable.show(true);
    if (any("label", "across", "up")) TokenMap.later(true);
    else if (any("paint", "theme")) TokenMap.later();
    else if (any("find")) TokenMap.name();
    else if (any("brush", "chosen")) TokenMap.mark();
    if (any("brush")) TokenMap.tell();
    if (any("label")) Main.name();
    if (any("chosen", "label")) Card.show();
    if (any("chosen")) Documents.choose(State.chosen === null ? Documents.kinds[0] : "token");
    else if (any("label") && State.classes.length === 2) Documents.show();
    if (any("label") && Model.tokenizer && State.classes.length === 2) Box.show();
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
};

Main.start();
