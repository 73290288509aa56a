/** Numbers and text as the static page writes them (report/numbers.py, escape.py), and cells of CSV (files.py). */
const Format = {
  signed(x, digits = 2) {
    if (!Number.isFinite(x)) return "–";
    const text = x.toFixed(digits);
    if (Number(text) === 0) return text.replace("-", "");
    return x > 0 ? `+${text}` : text.replace("-", "−");
  },

  plain: (x, digits = 2) => Format.signed(x, digits).replace(/^\+/, ""),
  /** Only all of something is 100.0%, and only nothing is 0.0%. */
  percent(x, digits = 1) {
    if (!Number.isFinite(x)) return "–";
    const text = (100 * x).toFixed(digits);
    if (x < 1 && Number(text) >= 100) return `> ${(100 - 10 ** -digits).toFixed(digits)}%`;
    if (x > 0 && Number(text) <= 0) return `< ${(10 ** -digits).toFixed(digits)}%`;
    return `${text}%`;
  },

  count: (x) => x.toLocaleString("en-US"),
  chance: (x) => (!Number.isFinite(x) ? "–" : x < 0.001 ? "< 0.001" : x.toFixed(3)),
  range: (low, high, digits = 2) => `[${Format.signed(low, digits)}, ${Format.signed(high, digits)}]`,

  /** What data and model show together, as the page says it; tokens.csv keeps the words of 0.1. */
  quadrant: (name) =>
    name
      .replace("carries the label, attended", "predictive, high attention")
      .replace("carries the label, ignored", "predictive, low attention")
      .replace("attended without evidence", "high attention, no evidence"),

  /** Six significant digits, as tokens.csv holds its numbers. */
  six: (x) => (Number.isFinite(x) ? Number(x.toPrecision(6)) : x),

  /** Control characters as their pictures, non-characters as U+FFFD. */
  visible(text) {
    return text.toWellFormed().replace(/[\x00-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffe\uffff]/g, (c) => {
      const code = c.charCodeAt(0);
      return code < 0x20 ? String.fromCharCode(0x2400 + code) : code === 0x7f ? "\u2421" : "\ufffd";
    });
  },

  /** As `visible`, but line breaks and tabs stay. */
  prose: (text) => text.replace(/\r\n/g, "\n").split(/([\n\t])/).map((part, i) => (i % 2 ? part : Format.visible(part))).join(""),

  /** As `visible`, and what would turn the writing direction of all that follows is shown as its code. */
  named: (text) =>
    Format.visible(text).replace(/[\u202a-\u202e\u2066-\u2069]/g, (c) => `⟨U+${c.charCodeAt(0).toString(16).toUpperCase()}⟩`),

  lengths: new Map(), // tokens of which the page holds only the beginning → their characters

  /** A token or label as people can read it: nothing invisible, and no longer than `limit` characters. */
  shown(text, limit = 80) {
    const letters = Array.from(text);
    const size = Format.lengths.get(text) ?? letters.length;
    const length = ` (${Format.count(size)} characters)`;
    if (size > limit) return `${Format.named(letters.slice(0, limit).join(""))}…${length}`;
    if (letters.every((c) => /[\p{White_Space}\p{Cf}\x1c-\x1f]/u.test(c))) {
      const codes = letters.slice(0, 4).map((c) => `U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`);
      return codes.length ? codes.join(" ") + (size > 4 ? `…${length}` : "") : "(empty)";
    }
    return Format.named(text);
  },

  /** A cell that a spreadsheet reads as text or as a number, never as a formula. */
  cell(value) {
    if (typeof value === "number") return Number.isFinite(value) ? String(value) : "NaN";
    const harmful = /^[=+\-@\t\r']/.test(value) && !/^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$/.test(value);
    const text = harmful ? `'${value}` : value;
    return text === "" || /[",\n\r]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
  },
};

/** Elements, their attributes and text; text of the data is only ever set as text. */
const Dom = {
  id: (name) => document.getElementById(name),

  make(tag, settings = {}, ...inside) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(settings)) {
      if (name === "text") element.textContent = value;
      else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (value !== false && value !== null) element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...inside.filter((part) => part !== false && part !== null && part !== undefined));
    return element;
  },

  token: (text, limit = 80) => Dom.make("bdi", { class: "token", text: Format.shown(text, limit) }),

  button: (text, onclick, more = {}) => Dom.make("button", { type: "button", text, onclick, ...more }),

  /** Give the reader a file. */
  save(blob, name) {
    const address = URL.createObjectURL(blob);
    Dom.make("a", { href: address, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  },

  /** Put text on the clipboard; the button says so for a while. */
  async copy(text, button, otherwise) {
    const name = button.textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      button.textContent = otherwise;
    }
    Dom.say(button.textContent);
    setTimeout(() => (button.textContent = name), 2500);
  },

  say(text) {
    Dom.id("status").textContent = text;
  },
};
