/** Axes of our own: linear, or symmetric-logarithmic for effects, which span many powers of ten on both sides of zero. */
const Axis = {
  /** Data between `ends` on `size` pixels; `bend` is where the symmetric logarithm turns linear, 0 for a linear axis. */
  make(ends, size, bend = 0, turned = false) {
    const to = bend ? (v) => Math.sign(v) * Math.log1p(Math.abs(v) / bend) : (v) => v;
    const from = bend ? (t) => Math.sign(t) * bend * Math.expm1(Math.abs(t)) : (t) => t;
    const [low, width] = [to(ends[0]), to(ends[1]) - to(ends[0]) || 1];
    const at = (v) => (turned ? 1 - (to(v) - low) / width : (to(v) - low) / width) * size;
    const of = (pixel) => from(low + (turned ? 1 - pixel / size : pixel / size) * width);
    return { ends, size, at, of, ticks: () => (bend ? Axis.powers(ends, bend, at) : Axis.steps(ends, size)) };
  },

  /** Round numbers, about 90 pixels apart. */
  steps([low, high], size) {
    const rough = ((high - low) * 90) / size;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = power * [1, 2, 5, 10].find((times) => times * power >= rough);
    const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    const out = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) out.push([i * step, Axis.text(i * step, digits)]);
    return out;
  },

  /** Zero and powers of ten on either side, those that have room. */
  powers([low, high], bend, at) {
    const out = [[0, "0"]];
    const last = Math.floor(Math.log10(Math.max(Math.abs(low), Math.abs(high))));
    for (let e = last; 10 ** e >= bend / 3; e--) for (const v of [10 ** e, -(10 ** e)]) out.push([v, Axis.power(v)]);
    const kept = [];
    for (const tick of out.filter(([v]) => v >= low && v <= high)) if (kept.every(([v]) => Math.abs(at(v) - at(tick[0])) > 46)) kept.push(tick);
    return kept.length > 1 ? kept : Axis.steps([low, high], Math.abs(at(high) - at(low)));
  },

  text: (v, digits) => (Math.abs(v) >= 1e5 || (v && digits > 4) ? v.toExponential(0) : v.toFixed(digits)).replace("-", "−").replace(/^−(0\.?0*)$/, "$1"),

  power: (v) => (Math.abs(v) >= 0.001 && Math.abs(v) < 1e4 ? String(v) : v.toExponential(0)).replaceAll("-", "−"),
};

/** Lines, areas and texts of a picture, painted on a canvas or written as SVG. */
const Sketch = {
  font: (shape) => `${shape.bold ? "bold " : ""}${shape.size ?? 13}px system-ui, "Segoe UI", Arial, sans-serif`,

  paint(pen, shapes) {
    for (const shape of shapes) {
      pen.globalAlpha = shape.opacity ?? 1;
      if (shape.text !== undefined) {
        pen.font = Sketch.font(shape);
        pen.textAlign = shape.align ?? "left";
        if (shape.halo) {
          [pen.strokeStyle, pen.lineWidth, pen.lineJoin] = [shape.halo, 3.5, "round"];
          pen.strokeText(shape.text, shape.x, shape.y);
        }
        pen.fillStyle = shape.ink;
        pen.fillText(shape.text, shape.x, shape.y);
        continue;
      }
      pen.beginPath();
      if (shape.circle !== undefined) pen.arc(shape.x, shape.y, shape.circle, 0, 2 * Math.PI);
      else shape.path.forEach(([x, y], i) => (i ? pen.lineTo(x, y) : pen.moveTo(x, y)));
      if (shape.fill) {
        pen.fillStyle = shape.fill;
        pen.fill();
      }
      if (!shape.ink) continue;
      [pen.strokeStyle, pen.lineWidth, pen.lineJoin] = [shape.ink, shape.width ?? 1, "round"];
      pen.setLineDash(shape.dash ?? []);
      pen.stroke();
    }
    pen.setLineDash([]);
    pen.globalAlpha = 1;
  },

  make(tag, settings) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(settings)) if (value !== undefined) element.setAttribute(name, value);
    return element;
  },

  node(shape) {
    if (shape.circle !== undefined) return Sketch.make("circle", { cx: shape.x, cy: shape.y, r: shape.circle, fill: shape.fill, opacity: shape.opacity });
    if (shape.text !== undefined) {
      const anchor = { center: "middle", right: "end" }[shape.align];
      const halo = shape.halo && { stroke: shape.halo, "stroke-width": 3.5, "stroke-linejoin": "round", "paint-order": "stroke" };
      const settings = { x: shape.x, y: shape.y, fill: shape.ink, "text-anchor": anchor, "font-size": shape.size ?? 13 };
      const element = Sketch.make("text", { ...settings, "font-weight": shape.bold ? "bold" : undefined, ...halo });
      element.textContent = shape.text;
      return element;
    }
    const d = shape.path.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)},${y.toFixed(1)}`).join("");
    const line = { stroke: shape.ink, "stroke-width": shape.width, "stroke-dasharray": shape.dash?.join(" ") };
    return Sketch.make("path", { d, fill: shape.fill ?? "none", opacity: shape.opacity, ...line });
  },

  svg(width, height, shapes) {
    const root = Sketch.make("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "font-family": "Arial, Helvetica, sans-serif" });
    root.append(...shapes.map(Sketch.node));
    return new XMLSerializer().serializeToString(root);
  },
};
