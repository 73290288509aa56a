/** Sample documents of the test set: by how they were answered, or those that hold the chosen token. */
const Documents = {
  kinds: ["wrong and certain", "right and certain", "wrong and uncertain", "right and uncertain"],
  kind: "wrong and certain",
  shown: 4,

  async load() {
    const { meta } = await Codec.read("block-documents");
    Documents.list = meta.documents;
    Documents.test = meta.test;
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
    Documents.shown = 4;
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
    Dom.id("documents-tabs").replaceChildren(...Documents.tabs());
    Dom.id("documents-note").textContent =
      `${Format.count(Documents.list.length)} of ${Format.count(Documents.test)} test documents are in this page ` +
      `(${Format.count(total)} characters): some of each kind, and the shortest that hold the most telling tokens.`;
    const part = chosen.slice(0, Documents.shown).map((i) => Documents.article(i));
    if (!part.length) part.push(Dom.make("p", { text: "No document in this page." }));
    const left = chosen.length - Documents.shown;
    if (left > 0) part.push(Dom.button(`Show more (${left} left)`, () => Documents.more()));
    Dom.id("documents-list").replaceChildren(...part);
  },

  more() {
    Documents.shown += 8;
    Documents.show();
  },

  article(i) {
    const document = Documents.list[i];
    const explained = Documents.explained[i];
    const best = Model.best(document.answer);
    const right = best === document.label;
    const p = Model.probabilities(document.answer)[best];
    const verdict = { class: `verdict ${right ? "right" : "wrong"}`, text: right ? "✓ right" : "✗ wrong" };
    const names = State.classes;
    const facts = Dom.make("p", {}, "Label ", Dom.token(names[document.label], 40), ", predicted ", Dom.token(names[best], 40));
    facts.append(` with probability ${Format.percent(p)}.`);
    if (State.classes.length > 2) facts.append(" Contributions to ", Dom.token(names[State.label], 40), ".");
    const head = Dom.make("h3", { text: `Row ${document.row} ` }, Dom.make("span", verdict));
    const parts = [...Shade.render(explained, State.label), Shade.details(explained, State.label)];
    return Dom.make("article", {}, head, facts, ...parts);
  },
};
