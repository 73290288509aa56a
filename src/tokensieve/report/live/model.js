/** The classifier: two numbers per token type, and one value per class where there are more than two. */
const Model = {
  async load() {
    const { meta, arrays } = await Codec.read("block-model");
    Object.assign(Model, meta);
    Formatting.load(meta.features);
    Model.index = new Map(meta.words.map((word, i) => [word, i]));
    Model.score = arrays.score;
    Model.place = arrays.place; // of each of State.tokens among the types; none for what is left out
    Model.value = Array.from({ length: meta.heads }, (_, k) => arrays[`value${k}`]);
    Model.base = [0, meta.words.length]; // where each level's types begin, and behind the last those of formatting
    Model.keys = [null];
    for (let n = 2; n <= meta.levels; n++) {
      const first = arrays[`first${n}`];
      const last = arrays[`last${n}`];
      const keys = new Float64Array(first.length);
      for (let i = 0, sum = 0; i < keys.length; i++) keys[i] = (sum += first[i]) * meta.words.length + last[i];
      Model.keys.push(keys);
      Model.base.push(Model.base[n - 1] + keys.length);
    }
  },

  /** Position of the key among a level's sorted keys, or −1. */
  find(keys, key) {
    let low = 0;
    let high = keys.length - 1;
    while (low <= high) {
      const middle = (low + high) >> 1;
      if (keys[middle] === key) return middle;
      if (keys[middle] < key) low = middle + 1;
      else high = middle - 1;
    }
    return -1;
  },

  /** For each word: types of the n-grams that end there, by level; −1 where the page knows none. */
  types(words) {
    const rows = [];
    let before = []; // of the word before: its place among the words, and of each level the n-gram that ends there
    for (const word of words) {
      const w = Model.index.get(word) ?? -1;
      const level = [w];
      const row = [w];
      for (let n = 2; n <= Model.levels; n++) {
        const prefix = before[n - 2] ?? -1;
        const at = w >= 0 && prefix >= 0 ? Model.find(Model.keys[n - 1], prefix * Model.words.length + w) : -1;
        level.push(at);
        row.push(at < 0 ? -1 : at + Model.base[n - 1]);
      }
      rows.push(row);
      before = level;
    }
    return rows;
  },

  /** The words of a type, or the name of a feature of formatting. */
  name(type) {
    if (type >= Model.base[Model.levels]) return Model.features[type - Model.base[Model.levels]].token;
    let level = 1;
    while (level < Model.levels && type >= Model.base[level]) level++;
    if (level === 1) return Model.words[type];
    const key = Model.keys[level - 1][type - Model.base[level - 1]];
    const size = Model.words.length;
    return `${Model.name(Math.floor(key / size) + Model.base[level - 2])} ${Model.words[key % size]}`;
  },

  /** The value of a type for class k: of two classes the first has the mirror image of the second's; for a pair [k, j] of
   * classes what it adds to the answer for k above that for j. */
  worth(type, k) {
    if (Array.isArray(k)) return Model.value[k[0]][type] - Model.value[k[1]][type];
    return Model.heads > 1 ? Model.value[k][type] : k ? Model.value[0][type] : -Model.value[0][type];
  },

  probabilities(answer) {
    if (answer.length === 1) {
      const p = 1 / (1 + Math.exp(-answer[0]));
      return [1 / (1 + Math.exp(answer[0])), p];
    }
    const top = Math.max(...answer);
    const weights = answer.map((f) => Math.exp(f - top));
    const total = weights.reduce((a, b) => a + b, 0);
    return weights.map((x) => x / total);
  },

  /** The answer that speaks for class k, or for the first of a pair above the second. */
  speaks(answer, k) {
    if (Array.isArray(k)) return answer[k[0]] - answer[k[1]];
    return answer.length > 1 ? answer[k] : k ? answer[0] : -answer[0];
  },

  /** The class after the best. */
  second(answer) {
    const best = Model.best(answer);
    return answer.reduce((found, f, k) => (k !== best && (found < 0 || f > answer[found]) ? k : found), -1);
  },

  best: (answer) => (answer.length === 1 ? Number(answer[0] > 0) : answer.indexOf(Math.max(...answer))),

  /** A text, or a document of the sample (whose total and answer count the types that this page leaves out). */
  explain(text, sampled = null) {
    const clean = text.toWellFormed();
    const spans = sampled?.spans ?? Words.spans(clean, Model.tokenizer);
    const types = sampled?.types ?? Model.types(spans.map((span) => span[2]));
    const count = new Map();
    for (const row of types) for (const type of row) if (type >= 0) count.set(type, (count.get(type) ?? 0) + 1);
    for (const i of sampled?.features ?? Formatting.of(clean)) count.set(Model.base[Model.levels] + i, 1);
    let top = Model.sink ?? -Infinity;
    for (const type of count.keys()) top = Math.max(top, Model.score[type]);
    let sum = Model.sink === null ? 0 : Math.exp(Model.sink - top);
    for (const [type, c] of count) sum += c * Math.exp(Model.score[type] - top);
    const total = sampled ? sampled.total : top + Math.log(sum);
    const attention = new Map();
    for (const [type, c] of count) attention.set(type, c * Math.exp(Model.score[type] - total));
    const unknown = types.reduce((n, row) => n + Number(row[0] < 0), 0);
    const drained = Model.sink === null ? 0 : Math.exp(Model.sink - total); // what the sink takes, whose value is the prior
    const answer = sampled ? sampled.answer : Model.answer(attention, drained);
    const other = sampled?.other ?? 0; // of a pair, what the other answer adds
    return { text: clean, spans, types, count, attention, drained, answer, other, unknown, total, sampled };
  },

  /** The answer to a changed text, from that to the text before. What the page's model leaves out of a sampled document keeps
   * its weight and its part of the answer, so that all is exact but n-grams that are left out and that the change touches. */
  changed(explained, text) {
    const after = Model.explain(text);
    const { sampled, other } = explained;
    const against = (answer) => Array.from(answer, (f) => f + other);
    const known = [...explained.count].map(([type, c]) => [type, c * Math.exp(Model.score[type] - explained.total)]);
    const left = sampled ? Math.max(1 - known.reduce((sum, [, q]) => sum + q, 0) - explained.drained, 0) : 0;
    if (left < 1e-7) return { ...after, other, answer: against(after.answer) };
    const parts = Model.value.map((value, k) => {
      const rest = explained.answer[k] - other - explained.drained * Model.prior[k];
      return known.reduce((f, [type, q]) => f - q * value[type], rest);
    });
    const top = Math.max(after.total, explained.total);
    const [now, before] = [Math.exp(after.total - top), Math.exp(explained.total - top)];
    const share = after.attention.size || after.drained ? now / (now + left * before) : 0;
    const weight = before / (share ? now + left * before : left * before);
    const answer = parts.map((part, k) => (share ? share * after.answer[k] : 0) + weight * part);
    for (const [type, q] of after.attention) after.attention.set(type, share * q);
    return { ...after, other, answer: against(answer), drained: share * after.drained };
  },

  answer(attention, drained) {
    if (!attention.size) return Model.prior;
    return Model.value.map((value, k) => {
      let f = drained * Model.prior[k];
      for (const [type, q] of attention) f += q * value[type];
      return f;
    });
  },

  /** For each word its share of contribution and attention (n-grams share theirs equally), and its own value. */
  shares(explained, k) {
    const out = explained.spans.map((_, i) => {
      const type = explained.types[i][0];
      return { contribution: 0, attention: 0, value: type >= 0 ? Model.worth(type, k) : NaN };
    });
    explained.types.forEach((row, end) => {
      row.forEach((type, n) => {
        if (type < 0) return;
        const q = explained.attention.get(type) / explained.count.get(type) / (n + 1);
        for (let i = end - n; i <= end; i++) {
          out[i].attention += q;
          out[i].contribution += q * Model.worth(type, k);
        }
      });
    });
    return out;
  },

  /** The sum that makes the answer for class k, largest part first; `rest` is what types outside this page add. */
  sum(explained, k) {
    const rows = [...explained.attention].map(([type, q]) => {
      const value = Model.worth(type, k);
      return { type, token: Model.name(type), count: explained.count.get(type), attention: q, value, contribution: q * value };
    });
    if (explained.drained) {
      const value = Model.speaks(Model.prior, k);
      const attention = explained.drained;
      rows.push({ type: -1, token: "⟨sink⟩", count: 1, attention, value, contribution: attention * value });
    }
    rows.sort((a, b) => Math.abs(b.contribution) - Math.abs(a.contribution));
    const answer = Model.speaks(explained.answer, k);
    return { rows, answer, rest: rows.length ? answer - rows.reduce((f, row) => f + row.contribution, explained.other ? Model.speaks([explained.other], k) : 0) : 0 };
  },
};
