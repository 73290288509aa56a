/** Which features of formatting a text has: tokensieve.text.formatting in another language (tests compare the two). */
const Formatting = {
  /** How to look for each feature of the model. */
  features: [],

  load(features) {
    Formatting.features = features.map((f) => (f.words ? f : { ...f, pattern: new RegExp(f.pattern, "u") }));
  },

  /** Places, among the model's features, of those that hold for a well-formed text. */
  of(text) {
    if (!Formatting.features.length) return [];
    const last = [...text.slice(-400)].slice(-200).join(""); // 200 characters are at most 400 units
    const inside = { text, end: [...last.replace(/\p{White_Space}+$/u, "")].slice(-8).join("") };
    const words = text.match(/\P{White_Space}+/gu)?.length ?? 0;
    const holds = (f) =>
      f.words ? words >= f.words[0] && words < (f.words[1] ?? Infinity) : f.pattern.test(inside[f.where]) !== f.absent;
    return Formatting.features.flatMap((f, i) => (holds(f) ? [i] : []));
  },
};
