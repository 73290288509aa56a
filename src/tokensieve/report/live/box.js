/** Any text, answered by the model in this page as it is typed. */
const Box = {
  start() {
    if (!Model.tokenizer) return Box.cannot();
    const input = Dom.id("box-text");
    input.addEventListener("input", () => Box.soon());
    Dom.id("box-clear").addEventListener("click", () => {
      input.value = "";
      Box.show();
      input.focus();
    });
    const kinds = Dom.id("box-examples");
    for (const kind of Documents.kinds) {
      const [first] = Documents.of(kind);
      if (first === undefined) continue;
      const fill = () => {
        input.value = Documents.list[first].text;
        Box.show();
      };
      kinds.append(Dom.button(kind, fill, { class: "quiet" }));
    }
    const left = Model.left;
    if (left)
      Dom.id("box-left").textContent =
        `${Format.count(left)} of ${Format.count(State.meta.types)} token types are not on this page, ` +
        `${Documents.left}. This page treats them as unknown words; tokensieve explain uses all of them.`;
    const size = (i) => Documents.list[i].text.length;
    const [first] = Documents.kinds.flatMap(Documents.of).sort((a, b) => size(a) - size(b));
    if (first !== undefined) input.value = Documents.list[first].text;
    return Box.show();
  },

  /** The answer now; the shaded text of a long one when the hand rests. */
  soon() {
    clearTimeout(Box.waiting);
    const long = Dom.id("box-text").value.length > 4000;
    Box.show(!long);
    if (long) Box.waiting = setTimeout(() => Box.show(), 300);
  },

  cannot() {
    Dom.id("box").classList.add("cannot");
    Dom.id("box-left").textContent =
      "This model reads text through a tokenizer that the page cannot run. Use tokensieve explain with the model's folder.";
  },

  /** The answer; and, where `whole`, the text with each word's part in it. */
  show(whole = true) {
    const explained = Model.explain(Dom.id("box-text").value);
    const p = Model.probabilities(explained.answer);
    const best = Model.best(explained.answer);
    const known = explained.spans.length - explained.unknown;
    const words = `${Format.count(explained.spans.length)} words, ${Format.count(known)} of them known`;
    const answer = Dom.make("p", { class: "answer" }, "Prediction: ", Dom.token(State.classes[best], 60), ` ${Format.percent(p[best])}. `);
    answer.append(Dom.make("span", { class: "lead", text: explained.attention.size ? `${words}.` : `${words}; the prediction follows the class frequencies.` }));
    if (!whole) return Dom.id("box-answer").replaceChildren(answer, Box.bars(p));
    const view = State.classes.length > 2 && explained.attention.size ? [best, Model.second(explained.answer)] : State.label;
    const use = (text) => {
      Dom.id("box-text").value = text;
      Box.show();
      Dom.id("box-text").focus();
    };
    const parts = explained.spans.length ? [...Shade.render(explained, view, use), Shade.details(explained, view)] : [];
    if (parts.length && Array.isArray(view))
      parts.unshift(Dom.make("p", { class: "note" }, "Shown: evidence for ", Dom.token(State.classes[view[0]], 40), " against ", Dom.token(State.classes[view[1]], 40), "."));
    return Dom.id("box-answer").replaceChildren(answer, Box.bars(p), ...parts);
  },

  /** Each class's probability, largest first, eight at most. */
  bars(p) {
    const order = p.map((_, k) => k).sort((a, b) => p[b] - p[a]).slice(0, 8);
    const rows = order.map((k) => {
      const bar = Dom.make("span", { class: "bar", "aria-hidden": "true" });
      bar.style.setProperty("--a", "0%");
      bar.style.setProperty("--b", `${(100 * p[k]).toFixed(1)}%`);
      const name = Dom.make("th", { scope: "row" }, Dom.make("bdi", { text: Format.shown(State.classes[k], 40) }));
      return Dom.make("tr", {}, name, Dom.make("td", {}, bar), Dom.make("td", { class: "n", text: Format.percent(p[k]) }));
    });
    const caption = Dom.make("caption", { class: "hidden", text: "Probability of each class" });
    return Dom.make("table", { class: "chances" }, caption, Dom.make("tbody", {}, ...rows));
  },
};
