/** The token table: sorted, filtered, in pages; downloaded as CSV with the columns of tokens.csv. */
const TokenTable = {
  size: 10,
  page: 0,
  sort: { by: "posterior_low", down: true },
  wide: false,
  kept: new Map(), // orders, by class and column
  all: [
    { by: "token", head: "Token" },
    { by: "effect", head: "Effect per 1,000 tokens", unit: "with 95% interval" },
    { by: "documents", head: "Documents" },
    { by: "posterior_difference", head: "Posterior difference", unit: "with 95% interval" },
    { by: "q_value", head: "q", more: true },
    { by: "score", head: "Score", more: true },
    { by: "value", head: "Value", more: true },
    { by: "attention", head: "Attention", unit: "1 is average", more: true },
    { by: "quadrant", head: "Data and model" },
  ],

  get columns() {
    return TokenTable.all.filter((column) => TokenTable.wide || !column.more);
  },

  start() {
    const order = Dom.id("table-order");
    order.addEventListener("change", () => TokenTable.sortBy(order.value, order.value !== "token"));
    const choices = (id, names) =>
      Dom.id(id).append(...names.map((name, i) => Dom.make("option", { value: i, text: Format.quadrant(name) })));
    choices("filter-quadrant", State.meta.quadrants);
    choices("filter-category", State.meta.categories);
    const number = (id) => Number(Dom.id(id).value);
    Dom.id("filter-quadrant").addEventListener("change", () => State.set({ quadrant: number("filter-quadrant") }));
    Dom.id("filter-category").addEventListener("change", () => State.set({ category: number("filter-category") }));
    Dom.id("filter-least").addEventListener("input", () => State.set({ least: number("filter-least") || 0 }));
    Dom.id("table-previous").addEventListener("click", () => TokenTable.turn(-1));
    Dom.id("table-next").addEventListener("click", () => TokenTable.turn(1));
    Dom.id("table-download").addEventListener("click", () => TokenTable.download());
    Dom.id("table-clear").addEventListener("click", () => TokenTable.clear());
    const more = Dom.id("table-more");
    more.addEventListener("click", () => {
      TokenTable.wide = !TokenTable.wide;
      more.setAttribute("aria-pressed", String(TokenTable.wide));
      Dom.id("table").classList.toggle("wide", TokenTable.wide);
      TokenTable.head();
      TokenTable.show(false);
    });
    TokenTable.head();
  },

  clear() {
    for (const id of ["filter-quadrant", "filter-category"]) Dom.id(id).value = "-1";
    Dom.id("filter-least").value = "";
    Dom.id("find").value = "";
    State.set({ quadrant: -1, category: -1, least: 0, find: "", brush: null });
  },

  /** The head is made once, so that the focus stays where it is when the order changes. */
  head() {
    const cells = TokenTable.columns.map(({ by, head, unit }) => {
      const button = Dom.button(head, () => TokenTable.sortBy(by), { class: "sort" });
      const cell = Dom.make("th", { scope: "col", "data-by": by, class: TokenTable.kind(by) }, button);
      if (unit) cell.append(Dom.make("span", { class: "unit", text: unit }));
      return cell;
    });
    Dom.id("table-head").replaceChildren(Dom.make("tr", {}, ...cells));
    TokenTable.arrows();
  },

  arrows() {
    const { by: sorted, down } = TokenTable.sort;
    TokenTable.columns.forEach(({ by }, i) => {
      Dom.id("table-head").rows[0].cells[i].setAttribute("aria-sort", sorted !== by ? "none" : down ? "descending" : "ascending");
    });
    const order = Dom.id("table-order");
    const usual = [...order.options].some((option) => option.value === sorted) && down === (sorted !== "token");
    order.value = usual ? sorted : "";
  },

  kind: (by) => (["token", "effect", "quadrant"].includes(by) ? "" : "n"),

  /** By another column, or the other way round. */
  sortBy(by, down = null) {
    const same = TokenTable.sort.by === by;
    TokenTable.sort = { by, down: down ?? (same ? !TokenTable.sort.down : !["token", "q_value", "quadrant"].includes(by)) };
    TokenTable.arrows();
    TokenTable.show(true);
  },

  /** Rows that pass the filters, in order. */
  sorted() {
    const kept = State.kept();
    const order = TokenTable.ranked();
    if (kept.length === order.length) return order;
    const inside = new Uint8Array(order.length);
    for (const i of kept) inside[i] = 1;
    return order.filter((i) => inside[i]);
  },

  /** All rows of the class in order, missing numbers last; kept for the next time. */
  ranked() {
    const rows = State.rows();
    const { by, down } = TokenTable.sort;
    const key = `${State.label} ${by} ${down}`;
    if (TokenTable.kept.has(key)) return TokenTable.kept.get(key);
    const sign = down ? -1 : 1;
    const order = Array.from({ length: rows.size }, (_, i) => i);
    if (by === "token") {
      const names = order.map(State.token);
      order.sort((a, b) => sign * (names[a] < names[b] ? -1 : names[a] > names[b] ? 1 : 0));
    } else {
      const size = Float64Array.from(rows[by], (x) => (Number.isFinite(x) ? sign * x : Infinity));
      order.sort((a, b) => size[a] - size[b] || a - b);
    }
    TokenTable.kept.set(key, order);
    return order;
  },

  show(first) {
    const order = TokenTable.sorted();
    const rows = State.rows();
    if (first) TokenTable.page = 0;
    const pages = Math.max(1, Math.ceil(order.length / TokenTable.size));
    TokenTable.page = Math.min(TokenTable.page, pages - 1);
    TokenTable.order = order;
    const part = order.slice(TokenTable.page * TokenTable.size, (TokenTable.page + 1) * TokenTable.size);
    TokenTable.scale = TokenTable.axis(part, rows);
    Dom.id("table-body").replaceChildren(...(part.length ? part.map((row) => TokenTable.row(row, rows)) : [TokenTable.nothing()]));
    const brush = State.brush ? "selected on the map, " : "";
    const label = Format.shown(State.classes[State.label], 40);
    const of = order.length < rows.size ? `${Format.count(order.length)} of ` : "";
    Dom.id("table-caption").textContent = `${of}${Format.count(rows.size)} token types, ${brush}with their numbers for ${label}`;
    Dom.id("table-page").textContent = `Page ${Format.count(TokenTable.page + 1)} of ${Format.count(pages)}`;
    Dom.id("table-previous").disabled = TokenTable.page === 0;
    Dom.id("table-next").disabled = TokenTable.page >= pages - 1;
    const filtered = State.find || State.marked || State.brush || State.quadrant >= 0 || State.category >= 0 || State.least > 0;
    Dom.id("table-clear").disabled = !filtered;
    if (first) Dom.say(order.length ? `${Format.count(order.length)} tokens in the table.` : "No token matches these filters.");
  },

  nothing() {
    const wanted = State.find.trim();
    const text = wanted ? `No token on this page contains “${Format.shown(wanted, 40)}”.` : "No token matches these filters.";
    return Dom.make("tr", {}, Dom.make("td", { colspan: TokenTable.columns.length, text }));
  },

  turn(by) {
    TokenTable.page += by;
    TokenTable.show(false);
  },

  /** Start and width of the axis of effects, and its decimals, over the rows on the page. */
  axis(part, rows) {
    const ends = part.flatMap((i) => [rows.effect_low[i], rows.effect_high[i], rows.effect[i]]).filter(Number.isFinite);
    const low = Math.min(0, ...ends);
    const peak = 1000 * Math.max(0, ...part.map((i) => Math.abs(rows.effect[i])).filter(Number.isFinite));
    const digits = peak > 0 ? Math.min(8, Math.max(2, 2 - Math.floor(Math.log10(peak)))) : 2;
    return { low, width: Math.max(0, ...ends) - low || 1, digits };
  },

  row(row, rows) {
    const cell = (text, interval = "") => {
      const out = Dom.make("td", { class: "n", text });
      if (interval) out.append(" ", Dom.make("span", { class: "interval", text: interval }));
      return out;
    };
    const at = (name) => rows[name][row];
    const choose = Panel.link(State.token(row), 80);
    const what = Decisions.tokens.get(State.token(row));
    const quadrant = Format.quadrant(State.meta.quadrants[at("quadrant")]);
    const mark = Dom.make("span", { class: `quadrant q-${["both", "data", "model", "none", "rare"][at("quadrant")]}`, text: quadrant });
    const out = Dom.make(
      "tr",
      { "data-row": row },
      Dom.make("th", { scope: "row" }, choose, what && Dom.make("span", { class: "decided", text: what })),
      TokenTable.effect(at("effect"), at("effect_low"), at("effect_high")),
      cell(Format.count(at("documents"))),
      cell(Format.signed(at("posterior_difference")), Format.range(at("posterior_low"), at("posterior_high"))),
      ...(TokenTable.wide ? [Format.chance(at("q_value")), Format.signed(at("score")), Format.signed(at("value")), Format.plain(at("attention"))] : []).map((text) => cell(text)),
      Dom.make("td", {}, mark),
    );
    for (const [i, { head }] of TokenTable.columns.entries()) if (i) out.cells[i].dataset.label = head;
    out.addEventListener("mouseenter", () => TokenMap.plot && TokenMap.mark(row));
    out.addEventListener("mouseleave", () => TokenMap.plot && TokenMap.mark());
    return out;
  },

  effect(effect, low, high) {
    const { low: start, width, digits } = TokenTable.scale;
    const share = (x) => `${(((x - start) / width) * 100).toFixed(1)}%`;
    const span = (a, b) => `${((Math.abs(b - a) / width) * 100).toFixed(1)}%`;
    const bar = Dom.make("span", { class: State.speaks(effect) ? "bar" : "bar against", "aria-hidden": "true" });
    const places = { "--a": share(Math.min(0, effect)), "--b": span(0, effect), "--c": share(low), "--d": span(low, high) };
    for (const [name, value] of Object.entries(places)) bar.style.setProperty(name, value);
    const milli = (x) => Format.signed(1000 * x, digits);
    const number = Dom.make("span", { class: "number", text: milli(effect) });
    const interval = Dom.make("span", { class: "interval", text: `[${milli(low)}, ${milli(high)}]` });
    return Dom.make("td", { class: "effect" }, bar, number, " ", interval);
  },

  /** The rows as the table has them now, with every column of tokens.csv. */
  csv() {
    const rows = State.rows();
    const named = { quadrant: State.meta.quadrants, category: State.meta.categories };
    const lines = [State.meta.columns.join(",")];
    for (const i of TokenTable.order) {
      const cells = State.meta.columns.map((name) => {
        if (name === "token") return Format.cell(Format.lengths.has(State.token(i)) ? Format.shown(State.token(i)) : State.token(i));
        if (name === "class") return Format.cell(State.classes[State.label]);
        return Format.cell(named[name] ? named[name][rows[name][i]] : Format.six(rows[name][i]));
      });
      lines.push(cells.join(","));
    }
    return `${lines.join("\n")}\n`;
  },

  download() {
    Dom.save(new Blob([TokenTable.csv()], { type: "text/csv" }), "tokens.csv");
    Dom.say(`${Format.count(TokenTable.order.length)} rows saved as tokens.csv.`);
  },
};
