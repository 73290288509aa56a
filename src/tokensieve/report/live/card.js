/** One token's numbers in words, beside the pointer and for the chosen one. */
const Card = {
  lines(row) {
    const rows = State.rows();
    const at = (name) => rows[name][row];
    const line = (name, value) => Dom.make("div", {}, Dom.make("dt", { text: name }), Dom.make("dd", { text: value }));
    const range = (name, digits) => `${Format.signed(at(name), digits)} ${Format.range(at(`${name}_low`), at(`${name}_high`), digits)}`;
    const posterior = `${Format.signed(at("posterior_difference"))} ${Format.range(at("posterior_low"), at("posterior_high"))}`;
    const milli = (x) => Format.signed(1000 * x, 3);
    return [
      Dom.make("p", {}, Dom.token(State.token(row)), ` ${State.meta.quadrants[at("quadrant")]}`),
      Dom.make(
        "dl",
        {},
        line("Posterior difference", posterior),
        line("Effect per 1,000 tokens", `${milli(at("effect"))} [${milli(at("effect_low"))}, ${milli(at("effect_high"))}]`),
        line("α", range("alpha", 5)),
        line("q", Format.chance(at("q_value"))),
        line("Documents", `${Format.count(at("documents"))}, ${Format.count(at("class_documents"))} of the class`),
        line("Score, value", `${Format.signed(at("score"))}, ${Format.signed(at("value"))}`),
        line("Attention", `${Format.plain(at("attention"))} times its share`),
      ),
    ];
  },

  /** The chosen token, below the map. */
  show() {
    const card = Dom.id("chosen");
    const row = State.chosen === null ? -1 : State.rows().at.indexOf(State.chosen);
    card.hidden = State.chosen === null;
    if (State.chosen === null) return card.replaceChildren();
    const token = State.tokens[State.chosen];
    const inside = row < 0 ? [Dom.make("p", {}, Dom.token(token), " is not among the rows of this class.")] : Card.lines(row);
    const holders = Documents.holding(State.chosen);
    const link = Dom.make("a", { href: "#documents", text: `Read the ${holders.length} documents in this page that contain it` });
    const none = "No document in this page contains it.";
    inside.push(Dom.make("p", {}, holders.length ? link : none));
    inside.push(Dom.button("Close", () => State.set({ chosen: null }), { class: "quiet" }));
    card.replaceChildren(...inside);
    Dom.say(`${Format.shown(token, 40)} chosen: ${holders.length} documents in this page contain it.`);
    return card;
  },
};
