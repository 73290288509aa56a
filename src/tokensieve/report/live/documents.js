/** Sample documents of the test set: by how they were answered, or those that hold the chosen token. */
const Documents = {
  kinds: ["wrong and confident", "correct and confident", "wrong and unsure", "correct and unsure"],
  kind: "wrong and confident",
  shown: 1,

  async load() {
    const { meta } = await Codec.read("block-documents");
    Documents.list = meta.documents;
    Documents.test = meta.test;
    Documents.left = meta.left;
    Documents.index = new Map(); // type → documents
    Documents.explained = meta.documents.map((document) => Model.explain(document.text, document));
    Documents.explained.forEach((explained, i) => {
      for (const type of explained.count.keys()) {
        if (!Documents.index.has(type)) Documents.index.set(type, []);
        Documents.index.get(type).push(i);
      }
    });
    Documents.kind = Documents.kinds.find((kind) => Documents.of(kind).length) ?? "";
  },

  of: (kind) => Documents.list.flatMap((document, i) => (document.kind === kind ? [i] : [])),

  /** Documents that hold a token, given by its place in State.tokens; none if the page's model leaves it out. */
  holding(token) {
    const type = Model.place[token];
    return Documents.index?.get(type) ?? [];
  },

  choose(kind) {
    Documents.kind = kind;
    Documents.shown = 1;
    Documents.show();
  },

  tabs() {
    const tab = (kind, text) =>
      Dom.button(text, () => Documents.choose(kind), { "aria-pressed": String(Documents.kind === kind) });
    const tabs = Documents.kinds.filter((kind) => Documents.of(kind).length).map((kind) => tab(kind, kind));
    if (State.chosen !== null) {
      const button = tab("token", "with ");
      button.append(Dom.token(State.tokens[State.chosen], 30));
      tabs.push(button);
    }
    return tabs;
  },

  show() {
    const held = Documents.kind === "token" && State.chosen !== null;
    const chosen = held ? Documents.holding(State.chosen) : Documents.of(Documents.kind);
    const total = Documents.list.reduce((n, document) => n + document.text.length, 0);
    const tabs = Dom.id("documents-tabs");
    const focused = tabs.contains(document.activeElement);
    tabs.replaceChildren(...Documents.tabs());
    if (focused) tabs.querySelector("[aria-pressed=true]")?.focus();
    const all = Documents.list.length === Documents.test;
    Dom.id("documents-note").textContent = all
      ? `All ${Format.count(Documents.test)} test documents are on this page (${Format.count(total)} characters).`
      : `${Format.count(Documents.list.length)} of ${Format.count(Documents.test)} test documents are on this page ` +
        `(${Format.count(total)} characters): some of each kind, and the shortest that contain the most informative tokens.`;
    const part = chosen.slice(0, Documents.shown).map((i) => Documents.article(i));
    if (!part.length) part.push(Dom.make("p", { text: "No document on this page." }));
    const left = chosen.length - Documents.shown;
    if (left > 0) part.push(Dom.button(`Show more (${left} left)`, () => Documents.more()));
    Dom.id("documents-list").replaceChildren(...part);
  },

  more() {
    const first = Documents.shown;
    Documents.shown += 8;
    Documents.show();
    Dom.id("documents-list").children[first]?.focus();
  },

  article(i) {
    const sampled = Documents.list[i];
    const explained = Documents.explained[i];
    const best = Model.best(sampled.answer);
    const right = best === sampled.label;
    const p = Model.probabilities(sampled.answer)[best];
    const verdict = { class: `verdict ${right ? "right" : "wrong"}`, text: right ? "✓ correct" : "✗ wrong" };
    const names = State.classes;
    const facts = Dom.make("p", {}, "Label ", Dom.token(names[sampled.label], 40), ", predicted ", Dom.token(names[best], 40));
    facts.append(` with probability ${Format.percent(p)}.`);
    const view = Documents.view(sampled, best);
    if (Array.isArray(view)) facts.append(" Shown: evidence for ", Dom.token(names[view[0]], 40), " against ", Dom.token(names[view[1]], 40), ".");
    const head = Dom.make("h3", { text: `Row ${sampled.row} ` }, Dom.make("span", verdict));
    const parts = [...Shade.render(explained, view), Shade.details(explained, view)];
    parts.push(Dom.make("p", { class: "row" }, Decisions.about("test", sampled.row)));
    return Dom.make("article", { tabindex: "-1" }, head, facts, ...parts);
  },

  /** Of more than two classes: the predicted one against the true one, or, where it is right, against the next best. */
  view(document, best) {
    if (State.classes.length === 2) return State.label;
    return [best, best === document.label ? Model.second(document.answer) : document.label];
  },
};
