/** The circles of the map, laid down pixel by pixel: 20,000 arcs would take half a second. */
const Points = {
  cell: 24, // pixels of the grid that finds the nearest point
  sizes: 14,

  made: new Map(),

  /** How much of each pixel a circle covers, half opaque; area follows the logarithm of documents, as in the pictures. */
  stamp(size, ratio, small) {
    const key = `${size} ${ratio} ${small}`;
    if (!Points.made.has(key)) {
      const radius = Points.radius(size / (Points.sizes - 1), small) * ratio;
      const side = 2 * Math.ceil(radius) + 1;
      const middle = (side - 1) / 2;
      const out = { half: side / 2, across: [], down: [], cover: [] }; // only pixels that it covers
      for (let at = 0; at < side * side; at++) {
        const [x, y] = [at % side, Math.floor(at / side)];
        const cover = 0.5 * Math.min(radius + 0.5 - Math.hypot(x - middle, y - middle), 1);
        if (cover <= 0) continue;
        out.across.push(x);
        out.down.push(y);
        out.cover.push(cover);
      }
      Points.made.set(key, out);
    }
    return Points.made.get(key);
  },

  /** Lay a stamp over pixels that are not multiplied by their opacity. */
  lay(image, stamp, left, top, [red, green, blue]) {
    const { data, width, height } = image;
    const { across, down, cover } = stamp;
    for (let i = 0; i < cover.length; i++) {
      const [x, y] = [left + across[i], top + down[i]];
      if (x < 0 || y < 0 || x >= width || y >= height) continue;
      const at = 4 * (y * width + x);
      const above = cover[i];
      const below = (data[at + 3] / 255) * (1 - above);
      const share = above / (above + below);
      data[at] += (red - data[at]) * share;
      data[at + 1] += (green - data[at + 1]) * share;
      data[at + 2] += (blue - data[at + 2]) * share;
      data[at + 3] = 255 * (above + below);
    }
  },

  rgb: (colour) => [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16)),

  radius: (share, small) => Math.sqrt((4 + (small ? 60 : 156) * share) / Math.PI),

  /** Draw rows of the table into the plot and remember where each one is. */
  draw(canvas, plot, rows, x, y, colours, codes) {
    const ratio = window.devicePixelRatio || 1;
    const small = plot.width < 480; // as on a phone
    const stamps = Array.from({ length: Points.sizes }, (_, size) => Points.stamp(size, ratio, small));
    const inks = colours.map(Points.rgb);
    const pen = canvas.getContext("2d");
    const image = pen.createImageData(canvas.width, canvas.height);
    const columns = Math.ceil(plot.width / Points.cell) + 1;
    const head = new Int32Array(columns * (Math.ceil(plot.height / Points.cell) + 1)).fill(-1);
    const next = new Int32Array(rows.size).fill(-1);
    const px = new Float32Array(rows.size).fill(NaN);
    const py = new Float32Array(rows.size);
    const pr = new Float32Array(rows.size);
    const top = Math.log(plot.most);
    let drawn = 0;
    for (const i of plot.order) {
      const [a, b] = [plot.x.at(x[i]), plot.y.at(y[i])];
      if (!(a >= 0 && a <= plot.width && b >= 0 && b <= plot.height)) continue;
      const share = Math.log(Math.max(rows.documents[i], 1)) / top;
      const stamp = stamps[Math.round(share * (Points.sizes - 1))];
      const { half } = stamp;
      const [left, down] = [Math.round((plot.left + a) * ratio - half), Math.round((plot.top + b) * ratio - half)];
      Points.lay(image, stamp, left, down, inks[codes[i]]);
      px[i] = a;
      py[i] = b;
      pr[i] = Points.radius(share, small);
      const cell = Math.floor(a / Points.cell) + columns * Math.floor(b / Points.cell);
      next[i] = head[cell];
      head[cell] = i;
      drawn++;
    }
    pen.putImageData(image, 0, 0);
    Points.placed = { px, py, pr, head, next, columns, plot, drawn };
  },

  /** The row nearest to a place in the plot, within `reach` pixels, or −1; of equals the one drawn last. */
  nearest(a, b, reach = 16) {
    const { px, py, head, next, columns, plot } = Points.placed;
    if (a < -reach || b < -reach || a > plot.width + reach || b > plot.height + reach) return -1;
    let best = -1;
    let least = reach * reach;
    const [lowest, highest] = [Math.max(0, Math.floor((b - reach) / Points.cell)), Math.floor((b + reach) / Points.cell)];
    for (let row = lowest; row <= highest; row++)
      for (let c = Math.max(0, Math.floor((a - reach) / Points.cell)); c <= Math.min(columns - 1, Math.floor((a + reach) / Points.cell)); c++)
        for (let i = head[row * columns + c] ?? -1; i >= 0; i = next[i]) {
          const distance = (px[i] - a) ** 2 + (py[i] - b) ** 2;
          if (distance < least) [best, least] = [i, distance];
        }
    return best;
  },
};
