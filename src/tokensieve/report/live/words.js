/** Text → words with their places: tokensieve.text.tokenizers.WordTokenizer in another language (tests compare the two). */
const Words = {
  // scripts without spaces: each character is a word, or runs of them are divided by a lexicon
  unspaced: `[${["Han", "Hiragana", "Thai", "Lao", "Khmer", "Myanmar"].map((name) => `\\p{Script=${name}}`).join("")}]`,
  marks: "[\\p{M}\\u200c\\u200d]*",

  // \w of Rust's regex crate, which Python reads texts with
  pattern(character) {
    const unspaced = Words.unspaced;
    const any = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\u200c\\u200d";
    const w = `(?:(?!${unspaced})[${any}])`;
    const emoji = "\\p{Extended_Pictographic}(?:\\p{Emoji_Modifier}|\\uFE0F|\\u200D\\p{Extended_Pictographic})*";
    const kinds = [
      "(?:https?://|www\\.)[^\\p{White_Space}<>\"]*[^\\p{White_Space}<>\"'.,;:!?)\\]}…”’]",
      `${w}[${any}.+\\-]*@${w}+(?:[.\\-]${w}+)*\\.\\p{L}\\p{L}+`,
      `(?:(?!${unspaced})\\p{L}\\.){2,}`,
      `[$€£¥]?\\p{Nd}${w}*(?:[.,:/]\\p{Nd}${w}*)*(?:['’]${w}+)*[%‰€]?`,
      "v\\p{Nd}+(?:\\.\\p{Nd}+)+",
      `${w}+\\+\\+`,
      `${w}+(?:['’]${w}+)*`,
      character,
      emoji,
      "\\p{Regional_Indicator}{2}",
    ];
    return new RegExp(kinds.join("|"), "gu");
  },

  /** How to split texts with these settings: made once, because a lexicon has thousands of words. */
  rules(settings) {
    if (Words.made?.settings === settings) return Words.made;
    const made = { settings, pattern: Words.pattern(Words.unspaced + Words.marks), lexicon: null };
    if (settings.lexicon) {
      const letter = `(?:(?!\\p{Nd})${Words.unspaced})`;
      const scripts = ["Thai", "Lao", "Khmer", "Myanmar"].map((name) => `\\p{Script=${name}}`).join("");
      const stackable = `(?:(?!\\p{Nd})[${scripts}])`;
      const stacked = `(?:(?:[${settings.leading}]|${stackable}${Words.marks}[${settings.stackers}])*${stackable}${Words.marks})`;
      const behind = `(?:[${settings.trailing}]|${settings.final})(?:${Words.marks}[${settings.stackers}]${stacked})?${Words.marks}`;
      made.pattern = Words.pattern(`(?:${letter}${Words.marks})+`);
      made.cluster = new RegExp(`${stacked}(?:${behind})*|${letter}${Words.marks}`, "gu");
      made.isRun = new RegExp(`^${letter}`, "u");
      made.lexicon = new Set(settings.lexicon);
      made.longest = Math.max(...settings.lexicon.map((word) => word.match(made.cluster).length));
    }
    return (Words.made = made);
  },

  /** The words of a run of letters: the longest of the lexicon at each place, or one cluster. */
  divided(run, rules) {
    const clusters = run.match(rules.cluster);
    const words = [];
    for (let first = 0; first < clusters.length; ) {
      let size = Math.min(rules.longest, clusters.length - first);
      while (size > 1 && !rules.lexicon.has(clusters.slice(first, first + size).join(""))) size--;
      words.push(clusters.slice(first, first + size).join(""));
      first += size;
    }
    return words;
  },

  /** [place, word] of each word of a text as it is after folding. */
  *found(folded, rules) {
    for (const match of folded.matchAll(rules.pattern)) {
      let at = match.index;
      const isRun = rules.lexicon && rules.isRun.test(match[0]);
      for (const word of isRun ? Words.divided(match[0], rules) : [match[0]]) {
        yield [at, word];
        at += word.length;
      }
    }
  },

  /** [start, end, word] of each word; places are in UTF-16 units of `text`, which must be well formed. */
  spans(text, settings) {
    let folded = text;
    let place = null; // place[i]: where unit i of the folded text comes from; null while nothing has moved
    [folded, place] = Words.replaced(folded, place, new RegExp(settings.apostrophe, "giu"), "'");
    [folded, place] = Words.replaced(folded, place, new RegExp(settings.skipped, "gisu"), " ");
    if (settings.lowercase) {
      [folded, place] = Words.lowered(folded, place);
      [folded, place] = Words.replaced(folded, place, /i\u0307/gu, "i"); // of İ, as in indirim
    }
    const out = [];
    for (const [at, word] of Words.found(folded, Words.rules(settings))) {
      const last = at + word.length - 1;
      const start = place ? place[at] : at;
      let end = Words.after(text, place ? place[last] : last);
      if (settings.lowercase && /[iI]\u0307/u.test(text.slice(end - 1, end + 1))) end++; // the dot of an İ in two parts
      out.push([start, end, word]);
    }
    return out;
  },

  /** The end of the character of `text` that has unit i. */
  after(text, i) {
    const code = text.charCodeAt(i);
    return i + (code >= 0xd800 && code < 0xdc00 ? 2 : 1);
  },

  /** The text with one character in the place of each match. */
  replaced(text, place, pattern, put) {
    const kept = [];
    let at = 0;
    for (const match of text.matchAll(pattern)) {
      kept.push([at, match.index], [match.index, match.index + 1]);
      at = match.index + match[0].length;
    }
    if (!kept.length) return [text, place];
    kept.push([at, text.length]);
    const moved = [];
    for (const [start, end] of kept) for (let i = start; i < end; i++) moved.push(place ? place[i] : i);
    return [text.replace(pattern, put), moved];
  },

  lowered(text, place) {
    const folded = text.toLowerCase();
    if (folded.length === text.length) return [folded, place]; // no character becomes shorter
    const moved = [];
    let at = 0;
    for (const character of text) {
      for (let i = 0; i < character.toLowerCase().length; i++)
        moved.push(place ? place[at + Math.min(i, character.length - 1)] : at + Math.min(i, character.length - 1));
      at += character.length;
    }
    return [folded, moved];
  },
};
