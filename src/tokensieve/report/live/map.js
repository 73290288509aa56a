/** The token map: frame, bin means and names from the Vega-Lite specification of the pictures; circles by Points. */
const TokenMap = {
  async load() {
    const script = Dom.make("script");
    script.textContent = await Codec.text("block-vega"); // its hash is in the page's Content-Security-Policy
    document.head.append(script);
    const { meta } = await Codec.read("block-frames");
    TokenMap.plain = meta.frame;
    TokenMap.dark = meta.dark;
    TokenMap.colours = meta.colours;
    TokenMap.box = Dom.id("map");
    [TokenMap.grid, TokenMap.points, TokenMap.over] = ["map-grid", "map-points", "map-over"].map(Dom.id);
    TokenMap.queue = Promise.resolve();
    new ResizeObserver(() => TokenMap.box.clientWidth !== TokenMap.width && TokenMap.later(true)).observe(TokenMap.box);
    MapHand.listen();
  },

  /** Draw when all that was asked for before is drawn; `anew` builds the frame again. */
  later(anew = false) {
    TokenMap.queue = TokenMap.queue.then(() => TokenMap.show(anew));
    return TokenMap.queue;
  },

  key: () => `${State.across}:${State.up}`,

  /** Ends of the axes when nothing is zoomed. */
  whole() {
    const rows = State.rows();
    const spread = State.across === "effect" ? State.view().spread : 1;
    const bins = TokenMap.bins();
    let [low, high] = [Infinity, -Infinity];
    for (const y of [...rows[State.up], ...bins.flatMap((bin) => [bin.low, bin.high])])
      if (Number.isFinite(y)) [low, high] = [Math.min(low, y), Math.max(high, y)];
    if (low > high) [low, high] = [-1, 1];
    const room = 0.07 * (high - low || 1);
    return { x: [-spread, spread], y: [low - room, high + room] };
  },

  /** Bin means over all types; of two classes the first's are the second's turned around. */
  bins() {
    const bins = State.view().bins[TokenMap.key()];
    if (!State.mirrored()) return bins;
    const turn = State.up === "value" ? -1 : 1;
    const flipped = bins.map((b) => {
      const ends = [turn * b.low, turn * b.high];
      return { x: -b.x, mean: turn * b.mean, low: Math.min(...ends), high: Math.max(...ends), types: b.types };
    });
    return flipped.reverse();
  },

  /** The frame's specification in the page's colours. */
  frame() {
    let text = JSON.stringify(TokenMap.plain);
    if (Theme.dark()) for (const [light, dark] of Object.entries(TokenMap.dark)) text = text.replaceAll(light, dark);
    return JSON.parse(text);
  },

  async build() {
    TokenMap.view?.finalize();
    TokenMap.width = TokenMap.box.clientWidth;
    const spec = TokenMap.frame();
    spec.width = Math.max(200, TokenMap.width - 58);
    spec.height = Math.max(280, Math.min(560, Math.round(0.6 * spec.width)));
    const settings = { ast: true, actions: false, renderer: "canvas", tooltip: false, hover: false, defaultStyle: false };
    TokenMap.view = (await window.vegaEmbed(Dom.id("map-frame"), spec, settings)).view;
    TokenMap.dark_built = Theme.dark();
  },

  /** What the ends of the axes mean, written around the plot. */
  titles() {
    const [low, high] = State.ends();
    const across = { posterior_difference: "posterior difference", effect: "effect (α, corrected for unequal classes)" }[State.across];
    const up = State.up === "value" ? `↑ value: speaks for ${high}` : "↑ score: draws attention";
    const parts = [up, `← ${low} · ${across} · ${high} →`].map((text) => Dom.make("bdi", { text }));
    Dom.id("map-titles").replaceChildren(...parts);
  },

  async show(anew) {
    if (!TokenMap.box.clientWidth) return; // not laid out, as in print
    if (anew || TokenMap.dark_built !== Theme.dark()) await TokenMap.build();
    const shape = TokenMap.key() + State.label;
    if (TokenMap.shape !== shape) TokenMap.ends = TokenMap.whole();
    TokenMap.shape = shape;
    TokenMap.titles();
    const { view, ends } = TokenMap;
    const rows = State.rows();
    const bins = TokenMap.bins();
    view.signal("lowx", ends.x[0]).signal("highx", ends.x[1]).signal("lowy", ends.y[0]).signal("highy", ends.y[1]);
    const neutral = State.across === "effect" ? 0 : State.meta.neutral[State.label];
    view.data("bins", bins).data("neutral", neutral < ends.x[0] || neutral > ends.x[1] ? [] : [{ x: neutral }]);
    TokenMap.place();
    const { plot } = TokenMap;
    const [codes, colours] = TokenMap.paint(rows);
    Object.assign(plot, TokenMap.orders(rows, codes));
    Points.draw(TokenMap.points, plot, rows, rows[State.across], rows[State.up], colours, codes);
    await TokenMap.name();
    TokenMap.lines();
    TokenMap.tell();
  },

  /** Write names and rings again; the circles stay. */
  async name() {
    TokenMap.view.data("names", TokenMap.names(State.rows()));
    await TokenMap.view.runAsync();
    TokenMap.mark();
  },

  /** What does not change while the reader zooms: rows by depth, by effect and by height, and the most documents of one. */
  orders(rows, codes) {
    const key = TokenMap.key() + State.label + State.paint;
    if (TokenMap.kept?.key === key) return TokenMap.kept;
    const by = (name) => {
      const size = Float64Array.from(rows[name], (x) => (Number.isFinite(x) ? -Math.abs(x) : Infinity));
      return Uint32Array.from(size.keys()).sort((a, b) => size[a] - size[b]);
    };
    const most = Math.max(10, rows.documents.reduce((a, b) => Math.max(a, b), 0));
    TokenMap.kept = { key, most, order: TokenMap.order(rows, codes), ranked: [by("effect"), by(State.up)] };
    return TokenMap.kept;
  },

  /** Lay the canvases over the plot of the frame. */
  place() {
    const { view, ends } = TokenMap;
    const ratio = window.devicePixelRatio || 1;
    const [left, top] = [view.origin()[0] + view.padding().left, view.origin()[1] + view.padding().top];
    TokenMap.plot = { left, top, width: view.width(), height: view.height(), x: ends.x, y: ends.y };
    const frame = Dom.id("map-frame").querySelector("canvas");
    for (const canvas of [TokenMap.grid, TokenMap.points, TokenMap.over]) {
      const [width, height] = [frame.clientWidth, frame.clientHeight];
      if (canvas.width === Math.round(width * ratio) && canvas.height === Math.round(height * ratio)) continue;
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
    }
  },

  /** Grid lines, under the circles. */
  lines() {
    const { plot, view } = TokenMap;
    const pen = TokenMap.pen(TokenMap.grid);
    pen.strokeStyle = Theme.colour("--line");
    pen.beginPath();
    for (const x of view.scale("x").ticks(5)) {
      const at = Math.round(plot.left + view.scale("x")(x)) + 0.5;
      pen.moveTo(at, plot.top);
      pen.lineTo(at, plot.top + plot.height);
    }
    for (const y of view.scale("y").ticks(5)) {
      const at = Math.round(plot.top + view.scale("y")(y)) + 0.5;
      pen.moveTo(plot.left, at);
      pen.lineTo(plot.left + plot.width, at);
    }
    pen.stroke();
  },

  /** A cleared canvas in CSS pixels. */
  pen(canvas) {
    const pen = canvas.getContext("2d");
    const ratio = window.devicePixelRatio || 1;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, canvas.width, canvas.height);
    return pen;
  },

  /** Each row's colour, and the colours; the legend says what they mean. */
  paint(rows) {
    const by = State.paint;
    const names = by === "category" ? State.meta.categories : State.meta.quadrants;
    const own = names.map((name) => (Theme.dark() ? TokenMap.dark[TokenMap.colours[name]] : null) ?? TokenMap.colours[name]);
    const colours = by === "category" && State.mirrored() ? State.turned(own) : own; // each class keeps its colour
    const legend = names.map((name, i) => {
      const dot = Dom.make("span", { class: "dot", "aria-hidden": "true" });
      dot.style.background = colours[i];
      return Dom.make("li", {}, dot, Dom.make("bdi", { text: by === "category" ? State.category_name(i) : name }));
    });
    Dom.id("map-legend").replaceChildren(...legend);
    return [rows[by], colours];
  },

  /** Drawn last what matters most. */
  order(rows, codes) {
    const depth = State.paint === "category" ? [2, 1, 0, 1, 2, 0] : [2, 1, 2, 0, 0];
    const buckets = [[], [], []];
    for (let i = 0; i < rows.size; i++) buckets[depth[codes[i]]].push(i);
    return buckets.flat();
  },

  /** Names of marked tokens, else of those that stand out in view, as many as do not run into each other. */
  names(rows) {
    const { px, py, plot } = Points.placed;
    const found = State.found();
    const out = [];
    const taken = [];
    TokenMap.named = [];
    for (const i of TokenMap.candidates(plot.ranked, (i) => !Number.isNaN(px[i]) && (!found || found[i]))) {
      const text = Format.shown(State.token(i), 20);
      const half = 3.6 * text.length + 6;
      const middle = Math.min(Math.max(px[i], half), plot.width - half);
      if (py[i] < 14 || taken.some(([a, b, c]) => Math.abs(a - middle) < b + half && Math.abs(c - py[i]) < 17)) continue;
      taken.push([middle, half, py[i]]);
      const x = plot.x[0] + (middle / plot.width) * (plot.x[1] - plot.x[0]);
      out.push({ x, y: rows[State.up][i], side: "center", text });
      TokenMap.named.push(i);
      if (out.length === (found ? 30 : 18)) break;
    }
    return out;
  },

  /** Rings around found and chosen tokens, and the brush. */
  mark(hovered = -1) {
    const { plot } = TokenMap;
    const pen = TokenMap.pen(TokenMap.over);
    const { px, py } = Points.placed;
    const rows = State.rows();
    const ring = (i, radius, width) => {
      if (Number.isNaN(px[i])) return;
      pen.lineWidth = width;
      pen.beginPath();
      pen.arc(plot.left + px[i], plot.top + py[i], radius, 0, 2 * Math.PI);
      pen.stroke();
    };
    pen.strokeStyle = Theme.colour("--ink");
    const found = State.found();
    if (found) for (let i = 0; i < rows.size; i++) if (found[i]) ring(i, 6, 1.4);
    TokenMap.points.style.opacity = found ? "0.4" : "1";
    if (State.chosen !== null) ring(rows.at.indexOf(State.chosen), 9, 3);
    if (hovered >= 0) ring(hovered, 8, 2);
    const box = MapHand.drawn ?? MapHand.pixels(State.brush);
    if (!box) return;
    pen.fillStyle = Theme.colour("--brush");
    pen.fillRect(plot.left + box[0], plot.top + box[2], box[1] - box[0], box[3] - box[2]);
    pen.lineWidth = 1;
    pen.strokeRect(plot.left + box[0], plot.top + box[2], box[1] - box[0], box[3] - box[2]);
  },

  /** Rows by turns from the rankings, 40 of each. */
  candidates(ranked, allowed) {
    const best = ranked.map((order) => {
      const out = [];
      for (let at = 0; at < order.length && out.length < 40; at++) if (allowed(order[at])) out.push(order[at]);
      return out;
    });
    return new Set(best[0].flatMap((row, i) => [row, best[1][i]]));
  },

  tell() {
    const rows = State.rows();
    const all = State.meta.types;
    const thinned = rows.size < all ? ": those at the extremes, and a sample of the rest" : "";
    const zoomed = Points.placed.drawn < rows.size ? `; ${Format.count(Points.placed.drawn)} of them in view` : "";
    const brushed = State.brush ? ` ${Format.count(State.kept().length)} tokens are selected: the table below lists them.` : "";
    const lines = "The line is the mean of 20 equal bins, the band one standard deviation, both over all types.";
    Dom.id("map-note").textContent =
      `${Format.count(rows.size)} of ${Format.count(all)} token types are on the map${thinned}${zoomed}.${brushed} ${lines}`;
  },
};
