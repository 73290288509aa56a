/** Pointer and keyboard on the map: hover, click, select, move, zoom. */
const MapHand = {
  drawn: null, // the rectangle being drawn, in pixels of the plot
  start: null,
  moving: false,

  listen() {
    const over = TokenMap.over;
    over.addEventListener("pointermove", (event) => MapHand.move(event));
    over.addEventListener("pointerleave", () => MapHand.hover(-1));
    over.addEventListener("pointerdown", (event) => MapHand.down(event));
    over.addEventListener("pointerup", (event) => MapHand.up(event));
    over.addEventListener("pointercancel", () => MapHand.drop());
    over.addEventListener("dblclick", (event) => MapHand.zoom(0.5, MapHand.place(event)));
    over.addEventListener("wheel", (event) => MapHand.wheel(event), { passive: false });
    over.addEventListener("keydown", (event) => MapHand.key(event));
    document.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || event.defaultPrevented) return;
      if (Dom.id("decisions").matches(":popover-open")) return;
      if (!Dom.id("panel").hidden) Panel.close();
      else if (State.marked) State.set({ marked: null });
    });
    Dom.id("zoom-in").addEventListener("click", () => MapHand.zoom(0.6));
    Dom.id("zoom-out").addEventListener("click", () => MapHand.zoom(1 / 0.6));
    Dom.id("zoom-all").addEventListener("click", () => TokenMap.zoom(null));
    const mode = Dom.id("drag-mode");
    mode.addEventListener("change", () => {
      MapHand.moving = mode.value === "move";
      over.classList.toggle("moving", MapHand.moving);
    });
  },

  /** Pixels of the plot. */
  place(event) {
    const box = TokenMap.over.getBoundingClientRect();
    return [event.clientX - box.left - TokenMap.plot.left, event.clientY - box.top - TokenMap.plot.top];
  },

  /** A rectangle in data units as pixels of the plot, and back. */
  pixels(box) {
    if (!box) return null;
    const { x, y } = TokenMap.plot;
    const [a, b] = [(v) => Math.min(Math.max(x.at(v), 0), x.size), (v) => Math.min(Math.max(y.at(v), 0), y.size)];
    return [a(box[0]), a(box[1]), b(box[3]), b(box[2])];
  },

  data([left, right, top, bottom]) {
    const { x, y } = TokenMap.plot;
    return [x.of(left), x.of(right), y.of(bottom), y.of(top)];
  },

  down(event) {
    if (event.button !== 0 || !TokenMap.plot) return;
    MapHand.start = MapHand.place(event);
    MapHand.from = TokenMap.plot;
    TokenMap.over.setPointerCapture(event.pointerId);
  },

  move(event) {
    if (!TokenMap.plot || !Points.placed) return;
    const [a, b] = MapHand.place(event);
    if (!MapHand.start) return MapHand.hover(Points.nearest(a, b), a, b);
    const [c, d] = MapHand.start;
    if (Math.hypot(a - c, b - d) < 4 && !MapHand.drawn) return;
    MapHand.hover(-1);
    if (MapHand.moving) return MapHand.pan(a - c, b - d);
    const { width, height } = TokenMap.plot;
    const inside = (v, end) => Math.min(Math.max(v, 0), end);
    const across = [inside(Math.min(a, c), width), inside(Math.max(a, c), width)];
    MapHand.drawn = [...across, inside(Math.min(b, d), height), inside(Math.max(b, d), height)];
    TokenMap.mark();
  },

  up(event) {
    if (!MapHand.start) return;
    const [a, b] = MapHand.place(event);
    const still = Math.hypot(a - MapHand.start[0], b - MapHand.start[1]) < 4;
    const box = MapHand.drawn;
    MapHand.drop();
    if (box) return State.set({ brush: MapHand.data(box), chosen: null });
    if (!still) return;
    const row = Points.nearest(a, b);
    if (row >= 0) State.set({ chosen: State.rows().at[row] });
    else if (State.brush) State.set({ brush: null });
  },

  drop() {
    MapHand.start = null;
    MapHand.drawn = null;
  },

  pan(right, down) {
    const { x, y } = MapHand.from;
    TokenMap.zoom({ x: [x.of(-right), x.of(x.size - right)], y: [y.of(y.size - down), y.of(-down)] });
  },

  /** Scale the axes about a place (the middle of the plot). */
  zoom(factor, at = null) {
    const { x, y, width, height } = TokenMap.plot;
    const [a, b] = at ?? [width / 2, height / 2];
    const whole = TokenMap.whole();
    if (factor > 1 && (x.ends[1] - x.ends[0]) * factor > whole.x[1] - whole.x[0]) return TokenMap.zoom(null);
    const around = (axis, place, end) => axis.of(place + factor * (end - place));
    return TokenMap.zoom({ x: [around(x, a, 0), around(x, a, width)], y: [around(y, b, height), around(y, b, 0)] });
  },

  /** The wheel scrolls the page, and zooms the map with Ctrl or ⌘ (which is what a pinch sends). */
  wheel(event) {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    MapHand.zoom(event.deltaY > 0 ? 1.25 : 0.8, MapHand.place(event));
  },

  key(event) {
    const step = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] }[event.key];
    const zoom = { "+": 0.6, "=": 0.6, "-": 1 / 0.6 }[event.key];
    if (step) {
      MapHand.from = TokenMap.plot;
      MapHand.pan(...step);
    } else if (zoom) MapHand.zoom(zoom);
    else if (event.key === "0") TokenMap.zoom(null);
    else if (event.key === "Enter") MapHand.next(event.shiftKey ? -1 : 1);
    else return;
    event.preventDefault();
  },

  /** Choose the next of the tokens whose names are on the map. */
  next(step) {
    const rows = TokenMap.named;
    if (!rows?.length) return;
    const at = rows.findIndex((row) => State.rows().at[row] === State.chosen);
    State.set({ chosen: State.rows().at[rows[(at + (at < 0 && step < 0 ? 0 : step) + rows.length) % rows.length]] });
  },

  /** The token's numbers beside the pointer. */
  hover(row, a = 0, b = 0) {
    const tip = Dom.id("map-tip");
    if (row !== MapHand.hovered && Points.placed) TokenMap.mark(row);
    MapHand.hovered = row;
    tip.hidden = row < 0;
    if (row < 0) return;
    tip.replaceChildren(...Card.lines(row));
    const { plot, width } = TokenMap;
    const [x, y] = [plot.left + a, plot.top + b];
    tip.style.left = `${Math.max(0, Math.min(x + 16, width - tip.offsetWidth - 4))}px`;
    tip.style.top = `${y + tip.offsetHeight + 24 > TokenMap.box.clientHeight ? Math.max(0, y - tip.offsetHeight - 12) : y + 16}px`;
  },
};
