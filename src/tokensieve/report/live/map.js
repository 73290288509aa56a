/** The token map: axes, bin means, names, and the circles of Points between them, each on a canvas of its own. */
const TokenMap = {
  edge: { left: 44, top: 10, right: 14, bottom: 24 },
  zoomed: false,
  kept: new Map(), // orders, by what the map shows
  plain: new Set( // words without a name on the map, unless they are looked for
    `a an the and or but of to in on at by for from with as is are was were be been it its this that these those he she his her
    him they them their we our you your i me my there here has have had do does did will would can could which who whom what
    when than then so if s t br`.split(/\s+/),
  ),

  async load() {
    const { meta } = await Codec.read("block-colours");
    TokenMap.dark = meta.dark;
    TokenMap.colours = meta.colours;
    TokenMap.box = Dom.id("map");
    [TokenMap.grid, TokenMap.points, TokenMap.frame, TokenMap.over] = ["map-grid", "map-points", "map-frame", "map-over"].map(Dom.id);
    new ResizeObserver(() => TokenMap.box.clientWidth !== TokenMap.width && TokenMap.later()).observe(TokenMap.box);
    MapHand.listen();
    Dom.id("map-svg").addEventListener("click", () => TokenMap.save("svg"));
    Dom.id("map-png").addEventListener("click", () => TokenMap.save("png"));
  },

  /** Draw before the next frame, once for all that was asked for. */
  later() {
    if (TokenMap.asked) return;
    TokenMap.asked = requestAnimationFrame(() => {
      TokenMap.asked = null;
      TokenMap.show();
    });
  },

  key: () => `${State.across}:${State.up}`,
  bend: () => (State.across === "effect" ? State.view().bend : 0),

  /** Ends of the axes when nothing is zoomed. */
  whole() {
    const rows = State.rows();
    const spread = State.across === "effect" ? State.view().spread : 1;
    let [low, high] = [Infinity, -Infinity];
    const see = (y) => {
      if (Number.isFinite(y)) [low, high] = [Math.min(low, y), Math.max(high, y)];
    };
    rows[State.up].forEach(see);
    for (const bin of TokenMap.bins()) [bin.low, bin.high].forEach(see);
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
      return { x: -b.x, mean: turn * b.mean, low: Math.min(...ends), high: Math.max(...ends), types: b.types, run: b.run };
    });
    return flipped.reverse();
  },

  /** What the ends of the axes mean: above the map, and below it. */
  directions() {
    const [low, high] = State.ends();
    const across = { posterior_difference: "posterior difference", effect: "effect (α, corrected for unequal classes)" }[State.across];
    const up = State.up === "value" ? `↑ evidence for ${high} · ↓ for ${low}` : "↑ more attention · ↓ less";
    return [up, `← ${low} · ${across} · ${high} →`];
  },

  show() {
    if (!TokenMap.box.clientWidth) return; // not laid out, as in print
    const shape = TokenMap.key() + State.label;
    if (TokenMap.shape !== shape && !TokenMap.held) [TokenMap.ends, TokenMap.zoomed] = [TokenMap.whole(), false];
    TokenMap.shape = shape;
    TokenMap.held = false;
    TokenMap.place();
    ["map-up-words", "map-titles"].forEach((id, i) => Dom.id(id).replaceChildren(Dom.make("bdi", { text: TokenMap.directions()[i] })));
    const rows = State.rows();
    const [codes, colours] = TokenMap.paint(rows);
    Object.assign(TokenMap.plot, TokenMap.orders(rows, codes));
    Points.draw(TokenMap.points, TokenMap.plot, rows, rows[State.across], rows[State.up], colours, codes);
    Sketch.paint(TokenMap.pen(TokenMap.grid), TokenMap.lines());
    TokenMap.name();
    TokenMap.tell();
  },

  /** Show a part of the axes, or all with null. */
  zoom(ends) {
    TokenMap.zoomed = ends !== null;
    TokenMap.ends = ends ?? TokenMap.whole();
    TokenMap.held = TokenMap.zoomed;
    Address.write();
    TokenMap.later();
  },

  /** Write means, names and rings again; the circles stay. */
  name() {
    if (!TokenMap.plot) return;
    TokenMap.written = [...TokenMap.means(), ...TokenMap.names(State.rows())];
    const pen = TokenMap.pen(TokenMap.frame);
    Sketch.paint(pen, TokenMap.written);
    const found = State.found();
    TokenMap.points.style.opacity = found ? "0.35" : "1";
    pen.strokeStyle = Theme.colour("--ink");
    if (found) for (const i of TokenMap.plot.interest.filter((i) => found[i]).slice(0, 1500)) TokenMap.ring(pen, i, 6, 1.4);
    TokenMap.mark();
  },

  /** What does not change while the reader zooms: rows by depth and by interest, and the most documents of one.
   * Interest is the distance of the interval from a token that carries nothing, times the logarithm of documents: so the
   * words that every text holds have no name on the map. */
  orders(rows, codes) {
    const key = TokenMap.key() + State.label + State.paint;
    if (TokenMap.kept.has(key)) return TokenMap.kept.get(key);
    const neutral = State.meta.neutral[State.label];
    const worth = Float64Array.from({ length: rows.size }, (_, i) => {
      const away = Math.max(rows.posterior_low[i] - neutral, neutral - rows.posterior_high[i], 0);
      return -away * Math.log1p(rows.documents[i]) || 0;
    });
    const interest = Uint32Array.from(worth.keys()).sort((a, b) => worth[a] - worth[b]);
    const most = Math.max(10, rows.documents.reduce((a, b) => Math.max(a, b), 0));
    TokenMap.kept.set(key, { most, order: TokenMap.order(rows, codes), interest });
    return TokenMap.kept.get(key);
  },

  /** Size of the canvases, and the axes. */
  place() {
    const { edge, ends } = TokenMap;
    TokenMap.width = TokenMap.box.clientWidth;
    const width = Math.max(200, TokenMap.width - edge.left - edge.right);
    const height = Math.max(280, Math.min(500, Math.round(0.6 * width)));
    TokenMap.box.style.height = `${height + edge.top + edge.bottom}px`;
    const [x, y] = [Axis.make(ends.x, width, TokenMap.bend()), Axis.make(ends.y, height, 0, true)];
    TokenMap.plot = { left: edge.left, top: edge.top, width, height, x, y };
    const ratio = window.devicePixelRatio || 1;
    for (const canvas of [TokenMap.grid, TokenMap.points, TokenMap.frame, TokenMap.over]) {
      const [across, down] = [width + edge.left + edge.right, height + edge.top + edge.bottom];
      if (canvas.width === Math.round(across * ratio) && canvas.height === Math.round(down * ratio)) continue;
      canvas.width = Math.round(across * ratio);
      canvas.height = Math.round(down * ratio);
      canvas.style.width = `${across}px`;
      canvas.style.height = `${down}px`;
    }
  },

  /** Grid lines and the numbers at them. */
  lines() {
    const { left, top, width, height, x, y } = TokenMap.plot;
    const [ink, muted] = [Theme.colour("--line"), Theme.colour("--muted")];
    const down = x.ticks().flatMap(([v, text]) => {
      const at = Math.round(left + x.at(v)) + 0.5;
      return [{ path: [[at, top], [at, top + height]], ink }, { text, x: at, y: top + height + 17, align: "center", ink: muted }];
    });
    const across = y.ticks().flatMap(([v, text]) => {
      const at = Math.round(top + y.at(v)) + 0.5;
      return [{ path: [[left, at], [left + width, at]], ink }, { text, x: left - 7, y: at + 4, align: "right", ink: muted }];
    });
    return [...down, ...across];
  },

  /** The band and line of the bin means, broken where bins hold no types, and the line of a token that carries nothing. */
  means() {
    const { left, top, width, height, x, y } = TokenMap.plot;
    const place = (v, w) => [left + x.at(v), top + Math.min(Math.max(y.at(w), 0), height)];
    const inside = (bin) => x.at(bin.x) >= 0 && x.at(bin.x) <= width;
    const [ink, paper] = [Theme.colour("--ink"), Theme.colour("--card")];
    const out = [];
    const bins = TokenMap.bins().filter(inside);
    for (const number of new Set(bins.map((bin) => bin.run))) {
      const run = bins.filter((bin) => bin.run === number); // no line crosses bins without types
      const up = run.map((bin) => place(bin.x, bin.high));
      const line = run.map((bin) => place(bin.x, bin.mean));
      out.push({ path: [...up, ...run.toReversed().map((bin) => place(bin.x, bin.low))], fill: ink, opacity: 0.13 });
      const drawn = line.length > 1 ? line : [[line[0][0] - 4, line[0][1]], [line[0][0] + 4, line[0][1]]];
      out.push({ path: drawn, ink: paper, width: 5 }, { path: drawn, ink, width: 2.2 });
    }
    const neutral = left + x.at(State.across === "effect" ? 0 : State.meta.neutral[State.label]);
    if (neutral >= left && neutral <= left + width)
      out.push({ path: [[neutral, top], [neutral, top + height]], ink: Theme.colour("--muted"), dash: [4, 4] });
    return out;
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
      return Dom.make("li", {}, dot, Dom.make("bdi", { text: by === "category" ? State.category_name(i) : Format.quadrant(name) }));
    });
    Dom.id("map-legend").replaceChildren(...legend);
    TokenMap.inks = [rows[by], colours];
    return TokenMap.inks;
  },

  /** Drawn last what matters most. */
  order(rows, codes) {
    const depth = State.paint === "category" ? [2, 1, 0, 1, 2, 0] : [2, 1, 2, 0, 0];
    const buckets = [[], [], []];
    for (let i = 0; i < rows.size; i++) buckets[depth[codes[i]]].push(i);
    return buckets.flat();
  },

  /** Names of marked tokens, else of the most interesting ones in view: above, below or beside their circles, and no two on
   * each other; one for each 60 × 100 pixels, 90 at most. */
  names(rows) {
    const { px, py, pr } = Points.placed;
    const { left, top, width, height, interest } = TokenMap.plot;
    const pen = TokenMap.frame.getContext("2d");
    const found = State.found();
    const most = Math.min(90, Math.round((width * height) / 6000));
    const [ink, halo] = [Theme.colour("--ink"), Theme.colour("--card")];
    const [out, taken] = [[], []];
    TokenMap.named = [];
    pen.font = Sketch.font({ bold: true });
    const trend = TokenMap.trend();
    let tried = 0;
    for (const i of interest) {
      if (Number.isNaN(px[i]) || (found ? !found[i] : TokenMap.common(i))) continue;
      if (out.length === most || tried++ > 6 * most) break;
      const [text, half] = TokenMap.label(pen, rows.at[i]);
      const [a, b, r] = [px[i], py[i], pr[i]];
      const places = [[a, b - r - 9], [a, b + r + 10], [a + r + half + 2, b], [a - r - half - 2, b]];
      const crossed = ([x, y]) => [-1, -0.5, 0, 0.5, 1].some((part) => Math.abs(trend(x + part * half) - y) < 9);
      const free = ([x, y]) =>
        x - half >= 0 && x + half <= width && y >= 8 && y <= height - 4 && taken.every(([c, d, w]) => Math.abs(c - x) >= w + half || Math.abs(d - y) >= 15) && !crossed([x, y]);
      const at = places.find(free);
      if (!at) continue;
      taken.push([...at, half]);
      out.push({ text, x: left + at[0], y: top + at[1] + 4, align: "center", bold: true, ink, halo });
      TokenMap.named.push(i);
    }
    return out;
  },

  /** The height of the line of means at a place across, in pixels of the plot; none where it has a gap. */
  trend() {
    const { x, y } = TokenMap.plot;
    const line = TokenMap.bins().map((bin) => [x.at(bin.x), y.at(bin.mean)]);
    return (at) => {
      const i = line.findIndex(([a], j) => j + 1 < line.length && a <= at && at <= line[j + 1][0]);
      if (i < 0) return NaN;
      const [[a, b], [c, d]] = [line[i], line[i + 1]];
      return b + ((at - a) / (c - a || 1)) * (d - b);
    };
  },

  widths: new Map(),

  /** A token's name and half its width, measured once. */
  label(pen, place) {
    if (!TokenMap.widths.has(place)) {
      const text = Format.shown(State.tokens[place], 24);
      TokenMap.widths.set(place, [text, pen.measureText(text).width / 2 + 2]);
    }
    return TokenMap.widths.get(place);
  },

  common: (row) => State.lower[State.rows().at[row]].split(" ").every((word) => TokenMap.plain.has(word)),

  ring(pen, i, radius, width) {
    const { px, py } = Points.placed;
    if (i < 0 || Number.isNaN(px[i])) return;
    pen.lineWidth = width;
    pen.beginPath();
    pen.arc(TokenMap.plot.left + px[i], TokenMap.plot.top + py[i], radius, 0, 2 * Math.PI);
    pen.stroke();
  },

  /** Rings around the chosen token and the one pointed at, and the brush. */
  mark(hovered = -1) {
    const { plot } = TokenMap;
    if (!plot) return;
    const pen = TokenMap.pen(TokenMap.over);
    pen.strokeStyle = Theme.colour("--ink");
    if (State.chosen !== null) TokenMap.ring(pen, State.rows().at.indexOf(State.chosen), 9, 3);
    TokenMap.ring(pen, hovered, 8, 2);
    const box = MapHand.drawn ?? MapHand.pixels(State.brush);
    if (!box) return;
    pen.fillStyle = Theme.colour("--brush");
    pen.fillRect(plot.left + box[0], plot.top + box[2], box[1] - box[0], box[3] - box[2]);
    pen.lineWidth = 1;
    pen.strokeRect(plot.left + box[0], plot.top + box[2], box[1] - box[0], box[3] - box[2]);
  },

  tell() {
    const rows = State.rows();
    const all = State.meta.types;
    const thinned = rows.size < all ? ": those at the extremes, and a sample of the rest" : "";
    const zoomed = Points.placed.drawn < rows.size ? `; ${Format.count(Points.placed.drawn)} of them in view` : "";
    const brushed = State.brush ? ` ${Format.count(State.kept().length)} tokens are selected: the panel and the table list them.` : "";
    const lines = "Line and band: mean and standard deviation of all token types, in 20 equal bins. The dashed line is where a token spread evenly over all documents would be.";
    const some = rows.size < all || zoomed ? `${Format.count(rows.size)} of ${Format.count(all)} token types are on the map${thinned}${zoomed}.` : "";
    Dom.id("map-note").textContent = `${some}${brushed} ${lines}`.trim();
  },

  /** The picture as it is now, with a title, as a file. */
  save(kind) {
    const { plot, edge } = TokenMap;
    const [width, height] = [plot.width + edge.left + edge.right, plot.height + edge.top + edge.bottom + 56];
    const [up, across] = TokenMap.directions();
    const [ink, muted] = [Theme.colour("--ink"), Theme.colour("--muted")];
    const name = Format.shown(document.title.split(" – ")[0], 60);
    const back = { path: [[0, 0], [width, 0], [width, height], [0, height]], fill: Theme.colour("--card") };
    const words = [
      { text: `${name}: ${State.up} against ${State.across.replace("_", " ")}`, x: 8, y: 18, bold: true, size: 14, ink },
      { text: up, x: 8, y: 35, ink: muted },
      { text: across, x: plot.left + plot.width / 2, y: height - 6, align: "center", ink: muted },
    ];
    const moved = (shape) => (shape.path ? { ...shape, path: shape.path.map(([x, y]) => [x, y + 36]) } : { ...shape, y: shape.y + 36 });
    const shapes = [back, ...words, ...[...TokenMap.lines(), ...TokenMap.circles(), ...TokenMap.written].map(moved)];
    if (kind === "svg") return Dom.save(new Blob([Sketch.svg(width, height, shapes)], { type: "image/svg+xml" }), "map.svg");
    const ratio = Math.max(2, window.devicePixelRatio || 1);
    const canvas = Dom.make("canvas", { width: width * ratio, height: height * ratio });
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    Sketch.paint(pen, shapes);
    return canvas.toBlob((blob) => Dom.save(blob, "map.png"));
  },

  circles() {
    const { px, py, pr, plot } = Points.placed;
    const [codes, colours] = TokenMap.inks;
    const found = State.found();
    const opacity = (i) => (found && !found[i] ? 0.15 : 0.5);
    return plot.order
      .filter((i) => !Number.isNaN(px[i]))
      .map((i) => ({ circle: pr[i].toFixed(1), x: (plot.left + px[i]).toFixed(1), y: plot.top + py[i], fill: colours[codes[i]], opacity: opacity(i) }));
  },
};
