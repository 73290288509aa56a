/** What the reader has chosen, the token table by class, and the rows that the choice leaves. */
const State = {
  label: 0, // class index
  find: "",
  quadrant: -1,
  category: -1,
  least: 0, // documents
  brush: null, // [x low, x high, y low, y high] on the map, in data units
  across: "posterior_difference",
  up: "value",
  paint: "category",
  chosen: null, // a token, by its place in `tokens`
  marked: null, // tokens that a finding points at, by their places
  listeners: [],
  cache: new Map(),

  async load() {
    const { meta, arrays } = await Codec.read("block-table");
    Object.assign(State, { meta, arrays, tokens: meta.tokens, classes: meta.classes });
    for (const [i, length] of meta.shortened) Format.lengths.set(meta.tokens[i], length);
    State.lower = meta.tokens.map((token) => token.toLowerCase());
    State.place = new Map(meta.tokens.map((token, i) => [token, i]));
    State.label = meta.label;
  },

  on(listener) {
    State.listeners.push(listener);
  },

  /** Change something and tell everyone what changed. */
  set(changes) {
    if ("find" in changes) changes = { marked: null, ...changes };
    Object.assign(State, changes);
    const names = new Set(Object.keys(changes));
    if (names.has("label")) State.brush = null;
    for (const listener of State.listeners) listener(names);
  },

  view: () => State.meta.views.find((view) => view.class === State.label) ?? State.meta.views[0],

  mirrored: () => State.classes.length === 2 && State.label === 0,

  /** What the ends of an axis mean: the other class, or all others, and the chosen one. */
  ends() {
    const names = State.classes.map((name) => Format.shown(name, 24));
    return [names.length === 2 ? names[1 - State.label] : "other classes", names[State.label]];
  },

  /** Whether a number of the chosen class is drawn blue: of two classes the second is blue, whichever is chosen. */
  speaks: (x) => x > 0 !== State.mirrored(),

  /** What belongs to the categories, for the class at the other side. */
  turned: (list) => list.map((_, i) => list[State.meta.turned[i]]),

  /** A category with the name of the chosen class in it. */
  category_name: (i) => State.meta.categories[i].replace("class", () => Format.shown(State.classes[State.label], 24)),

  /** The columns of the chosen class, by the names of tokens.csv; `at` is each row's place in `tokens`. */
  rows() {
    if (State.cache.has(State.label)) return State.cache.get(State.label);
    const from = State.view().class;
    const { arrays, meta } = State;
    const own = (name) => arrays[`${name}.${from}`];
    const at = own("at");
    const out = { at, size: at.length, class_documents: own("class_documents") };
    for (const name of ["documents", "count", "quadrant"]) out[name] = Array.from(at, (i) => arrays[name][i]);
    for (const name of ["score", "attention"]) out[name] = Array.from(at, (i) => arrays[name][i]);
    for (const name of [...meta.perClass, "count_difference", "category"]) out[name] = Array.from(own(name));
    out.posterior_difference = out.count_difference.map((d, i) => (out.count[i] ? d / out.count[i] : 0));
    State.cache.set(State.label, State.mirrored() ? State.mirror(out) : out);
    return State.cache.get(State.label);
  },

  /** Of two classes, the first's rows from the second's. */
  mirror(rows) {
    const turned = (values) => values.map((x) => (x === 0 ? 0 : -x));
    const out = { ...rows, class_documents: rows.documents.map((n, i) => n - rows.class_documents[i]) };
    for (const name of ["count_difference", "posterior_difference", "alpha", "effect", "value"]) out[name] = turned(rows[name]);
    for (const name of ["posterior", "alpha", "effect"]) {
      out[`${name}_low`] = turned(rows[`${name}_high`]);
      out[`${name}_high`] = turned(rows[`${name}_low`]);
    }
    out.category = rows.category.map((c) => State.meta.turned[c]);
    return out;
  },

  /** The class for which a token is the strongest evidence, of those that the page has rows of. */
  class_of(place) {
    if (State.classes.length === 2) return State.label;
    let best = [State.label, -Infinity];
    for (const { class: k } of State.meta.views) {
      const row = State.arrays[`at.${k}`].indexOf(place);
      const low = row < 0 ? -Infinity : State.arrays[`posterior_low.${k}`][row];
      if (low > best[1]) best = [k, low];
    }
    return best[0];
  },

  token: (row) => State.tokens[State.rows().at[row]],

  /** For each row whether its token holds what the reader looks for; null where nothing is looked for. */
  found() {
    const wanted = State.find.trim().toLowerCase();
    if (!wanted && State.marked) return Uint8Array.from(State.rows().at, (i) => Number(State.marked.has(i)));
    if (!wanted) return null;
    const key = `${State.label} ${wanted}`;
    if (State.search?.key !== key) {
      const at = State.rows().at;
      State.search = { key, hits: Uint8Array.from(at, (i) => Number(State.lower[i].includes(wanted))) };
    }
    return State.search.hits;
  },

  /** Rows that pass every filter. */
  kept() {
    const rows = State.rows();
    const found = State.found();
    const box = State.brush;
    const [x, y] = [rows[State.across], rows[State.up]];
    const out = [];
    for (let i = 0; i < rows.size; i++) {
      if (found && !found[i]) continue;
      if (State.quadrant >= 0 && rows.quadrant[i] !== State.quadrant) continue;
      if (State.category >= 0 && rows.category[i] !== State.category) continue;
      if (rows.documents[i] < State.least) continue;
      if (box && !(x[i] >= box[0] && x[i] <= box[1] && y[i] >= box[2] && y[i] <= box[3])) continue;
      out.push(i);
    }
    return out;
  },
};
