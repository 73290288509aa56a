/** Keyword in context: lines of training documents, for the tokens that lists name; for others from the same lines. */
const Lines = {
  most: 24,

  async load() {
    const { meta } = await Codec.read("block-lines");
    Lines.all = meta.lines; // [row, class, before, token, after]
    Lines.of_token = new Map(meta.tokens.map((token, i) => [token, meta.of[i]]));
  },

  /** Lines that hold a token, given by its place in State.tokens. */
  of(place) {
    const token = State.tokens[place];
    const own = Lines.of_token.get(token);
    if (own) return own.map((i) => Lines.all[i]);
    return Lines.search(token);
  },

  /** Lines of other tokens in which this one occurs, too. */
  search(token) {
    const words = token.split(" ");
    const out = [];
    const seen = new Set();
    for (const line of Model.tokenizer ? Lines.all : []) {
      const [row, label, ...parts] = line;
      const text = parts.join("");
      if (seen.has(row) || !text.toLowerCase().includes(words[0].toLowerCase())) continue;
      const spans = Words.spans(text.toWellFormed(), Model.tokenizer);
      const inner = (i) => (i > 0 || !parts[0].startsWith("…")) && (i + words.length < spans.length || !parts[2].endsWith("…"));
      const at = spans.findIndex((_, i) => inner(i) && words.every((word, j) => spans[i + j]?.[2] === word));
      if (at < 0) continue;
      seen.add(row);
      const [start, end] = [spans[at][0], spans[at + words.length - 1][1]];
      out.push([row, label, text.slice(0, start), text.slice(start, end), text.slice(end)]);
      if (out.length === Lines.most) break;
    }
    return out;
  },

  /** Two columns: the class chosen at the top, and the other (all others, each with its name). */
  columns(place) {
    const lines = Lines.of(place);
    const [low, high] = State.ends();
    const two = State.classes.length === 2;
    const sides = [
      [high, lines.filter((line) => line[1] === State.label)],
      [two ? low : "other classes", lines.filter((line) => line[1] !== State.label)],
    ];
    if (!lines.length) return [Dom.make("p", { class: "note", text: "No training document on this page contains it." })];
    return sides.map(([name, of], i) => {
      const rows = of.map((line) => Lines.line(line, i > 0 && !two));
      const list = rows.length ? Dom.make("ul", {}, ...rows) : Dom.make("p", { class: "note", text: "None." });
      return Dom.make("div", {}, Dom.make("h3", {}, Dom.make("bdi", { text: name }), ` (${of.length})`), list);
    });
  },

  line([row, label, before, token, after], named) {
    const where = Dom.make("span", { class: "where" }, `row ${row}`);
    if (named) where.append(", ", Dom.make("bdi", { text: Format.shown(State.classes[label], 24) }));
    const flat = (text) => Format.named(text.replace(/\s+/gu, " "));
    const text = Dom.make("bdi", {}, flat(before), Dom.make("mark", { text: Format.shown(token.replace(/\s+/gu, " "), 60) }), flat(after));
    if (!token) text.replaceChildren(flat(after));
    return Dom.make("li", {}, where, " ", text, " ", Decisions.about("train", row, true));
  },
};
