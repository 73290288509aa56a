/** Reads the blocks that report/data.py packs: base64 of gzip of a JSON head and arrays in byte planes. */
const Codec = {
  kinds: { u1: Uint8Array, u4: Uint32Array, i4: Int32Array, f4: Float32Array },

  supported() {
    return typeof DecompressionStream === "function" && "toWellFormed" in String.prototype;
  },

  async bytes(id) {
    const letters = atob(document.getElementById(id).textContent.trim());
    const packed = new Uint8Array(letters.length);
    for (let i = 0; i < letters.length; i++) packed[i] = letters.charCodeAt(i);
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  },

  async text(id) {
    return new TextDecoder().decode(await Codec.bytes(id));
  },

  /** The block's JSON values, and its arrays under the names that the JSON gives them. */
  async read(id) {
    const raw = await Codec.bytes(id);
    const size = new DataView(raw.buffer).getUint32(0, true);
    const meta = JSON.parse(new TextDecoder().decode(raw.subarray(4, 4 + size)));
    const arrays = {};
    let at = 4 + size;
    for (const [name, kind, length] of meta.arrays) {
      const width = Codec.kinds[kind].BYTES_PER_ELEMENT;
      arrays[name] = Codec.joined(raw.subarray(at, at + width * length), kind, width, length);
      at += width * length;
    }
    return { meta, arrays };
  },

  joined(planes, kind, width, length) {
    const bytes = new Uint8Array(width * length);
    for (let b = 0; b < width; b++)
      for (let i = 0, from = b * length; i < length; i++) bytes[i * width + b] = planes[from + i];
    return new Codec.kinds[kind](bytes.buffer);
  },
};
