/** The panel beside the page (a sheet on phones): one token in words and in its texts, or the tokens selected on the map. */
const Panel = {
  listed: 200,

  /** A token in prose as a button that opens it. */
  link(token, limit = 40) {
    const place = State.place.get(token);
    if (place === undefined) return Dom.token(token, limit);
    const button = Dom.make("button", { type: "button", class: "pick", onclick: () => State.set({ chosen: place }) });
    button.append(Dom.token(token, limit));
    return button;
  },

  /** Tokens that the page was written with become buttons. */
  start() {
    const places = new Map();
    for (const [i, token] of State.tokens.entries()) for (const limit of [40, 80]) places.set(Format.shown(token, limit), i);
    for (const written of document.querySelectorAll("main bdi.token, header bdi.token")) {
      const place = places.get(written.textContent);
      if (place === undefined || written.closest("button")) continue;
      const button = Dom.make("button", { type: "button", class: "pick", onclick: () => State.set({ chosen: place }) });
      written.replaceWith(button);
      button.append(written);
    }
    for (const card of document.querySelectorAll(".card:has(.named)")) {
      const marked = new Set([...card.querySelectorAll(".named bdi.token")].map((word) => places.get(word.textContent)));
      marked.delete(undefined);
      if (!marked.size) continue;
      const show = () => {
        Dom.id("find").value = "";
        State.set({ find: "", marked, label: State.class_of([...marked][0]) });
        Address.go(Dom.id("pictures"));
      };
      card.querySelector(".named").after(Dom.button("Show on the map", show, { class: "quiet" }));
    }
    for (const line of document.querySelectorAll(".line[data-train]")) line.append(" ", Decisions.about("train", Number(line.dataset.train)));
    Dom.id("panel-close").addEventListener("click", () => Panel.close());
    Panel.show();
  },

  close() {
    const back = Panel.opener;
    State.set({ brush: null, chosen: null });
    (back?.isConnected ? back : Dom.id("map-over")).focus({ preventScroll: true });
  },

  show() {
    const chosen = State.chosen !== null;
    const open = chosen || State.brush !== null;
    if (open && Dom.id("panel").hidden && document.activeElement !== document.body) Panel.opener = document.activeElement;
    Dom.id("panel").hidden = !open;
    document.body.classList.toggle("with-panel", open);
    Dom.id("chosen").hidden = !chosen;
    Dom.id("chosen").replaceChildren(...(chosen ? Panel.token() : []));
    const list = State.brush !== null && !chosen;
    Dom.id("selected").hidden = !list;
    Dom.id("selected").replaceChildren(...(list ? Panel.selected() : []));
    Dom.id("panel").scrollTop = 0;
  },

  /** The tokens within the rectangle on the map, those of largest effect first. */
  selected() {
    const rows = State.rows();
    const kept = State.kept().sort((a, b) => Math.abs(rows.effect[b]) - Math.abs(rows.effect[a]));
    const some = kept.length > Panel.listed ? ` The ${Panel.listed} with the largest effects:` : "";
    const list = Dom.make("ul", { class: "tokens-list" }, ...kept.slice(0, Panel.listed).map((row) => Dom.make("li", {}, Panel.link(State.token(row)))));
    const head = Dom.make("h2", { class: "first", text: `${Format.count(kept.length)} tokens selected` });
    const link = Dom.make("a", { href: "#table", text: "The table lists them with their numbers." });
    return [head, Dom.make("p", { class: "note" }, link, some), list];
  },

  token() {
    const token = State.tokens[State.chosen];
    const row = State.rows().at.indexOf(State.chosen);
    const out = [Dom.make("h2", { class: "first" }, Dom.token(token))];
    if (State.brush) out.push(Dom.button("← The selected tokens", () => State.set({ chosen: null }), { class: "quiet" }));
    if (row < 0) out.push(Dom.make("p", { text: "The table has no row for it and this class." }));
    else out.push(...Panel.sentences(row));
    const holders = Documents.holding(State.chosen);
    const decide = Dom.make("p", { class: "row" }, Decisions.on(token));
    decide.append(Dom.button("Show on the map", () => Address.go(Dom.id("pictures")), { class: "quiet" }));
    out.push(decide, Dom.make("h3", { text: "In the training documents" }));
    out.push(Dom.make("div", { class: "concordance" }, ...Lines.columns(State.chosen)));
    const link = Dom.make("a", { href: "#documents", text: holders.length === 1 ? "Read the test document on this page that contains it" : `Read the ${holders.length} test documents on this page that contain it` });
    out.push(Dom.make("p", {}, holders.length ? link : "No test document on this page contains it."));
    if (row >= 0) out.push(Dom.make("details", {}, Dom.make("summary", { text: "All its numbers" }), Card.list(row)));
    Dom.say(`${Format.shown(token, 40)} selected: its numbers and texts are in the panel.`);
    return out;
  },

  /** The token's numbers in words. */
  sentences(row) {
    const rows = State.rows();
    const at = (name) => rows[name][row];
    const [, label] = State.ends();
    const [size, own] = [at("documents"), at("class_documents")];
    const of = Dom.make("p", {}, `In ${Format.count(size)} training documents; ${Format.count(own)} of them (${Format.percent(own / size)}) are labelled `);
    of.append(Dom.make("bdi", { text: label }), ".");
    const carries = at("quadrant") < 2;
    const side = at("effect") > 0 ? "for" : "against";
    const data = Dom.make("p", {}, carries ? `In the data, it is evidence ${side} ` : at("quadrant") === 4 ? "It is too rare to tell whether it is evidence for or against " : "The data shows no evidence for or against ");
    data.append(Dom.make("bdi", { text: label }), ` (posterior difference ${Format.signed(at("posterior_difference"))} ${Format.range(at("posterior_low"), at("posterior_high"))}).`);
    const neutral = State.meta.neutral[State.label];
    const apart = (at("posterior_low") - neutral) * (at("posterior_high") - neutral) > 0;
    if (apart && at("quadrant") !== 4 && (!carries || (at("posterior_difference") - neutral) * at("effect") < 0)) {
      data.append(" The posterior difference says otherwise because it counts occurrences, so long documents weigh more in it.");
    }
    const pays = `The model gives it ${Format.plain(at("attention"), 1)} times the average attention and treats it as evidence ${at("value") > 0 ? "for" : "against"} `;
    const model = Dom.make("p", {}, pays, Dom.make("bdi", { text: label }), ` (value ${Format.signed(at("value"))}).`);
    return [of, data, model];
  },
};
