/** One token's numbers: beside the pointer, and in the panel. */
const Card = {
  list(row) {
    const rows = State.rows();
    const at = (name) => rows[name][row];
    const line = (name, value) => Dom.make("div", {}, Dom.make("dt", { text: name }), Dom.make("dd", { text: value }));
    const range = (name, digits) => `${Format.signed(at(name), digits)} ${Format.range(at(`${name}_low`), at(`${name}_high`), digits)}`;
    const posterior = `${Format.signed(at("posterior_difference"))} ${Format.range(at("posterior_low"), at("posterior_high"))}`;
    const milli = (x) => Format.signed(1000 * x, 3);
    return Dom.make(
      "dl",
      {},
      line("Posterior difference", posterior),
      line("Effect per 1,000 tokens", `${milli(at("effect"))} [${milli(at("effect_low"))}, ${milli(at("effect_high"))}]`),
      line("α", range("alpha", 5)),
      line("q", Format.chance(at("q_value"))),
      line("Documents", `${Format.count(at("documents"))}, ${Format.count(at("class_documents"))} of the class`),
      line("Score, value", `${Format.signed(at("score"))}, ${Format.signed(at("value"))}`),
      line("Attention", `${Format.plain(at("attention"))} times the average`),
    );
  },

  lines: (row) => [
    Dom.make("p", {}, Dom.token(State.token(row)), ` ${Format.quadrant(State.meta.quadrants[State.rows().quadrant[row]])}`),
    Card.list(row),
  ],
};
