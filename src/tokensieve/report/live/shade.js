/** A text with each word shaded by its contribution, a line that reads out one word, and the sum. */
const Shade = {
  /** Elements for an explained text and class k; `use`, where given, takes a changed text. */
  render(explained, k, use = null) {
    const shares = Model.shares(explained, k);
    const peak = Math.max(0, ...shares.map((share) => Math.abs(share.contribution))) || 1;
    const readout = Dom.make("p", { class: "readout", "aria-live": "polite", text: "Click a word to see the prediction without it, or use the arrow keys and press Enter." });
    const text = Dom.make("div", { class: "text", dir: "auto", tabindex: "0", role: "group" });
    text.setAttribute("aria-label", "Text with each word's contribution; arrow keys move from word to word, Enter and Delete change one");
    const words = Shade.words(explained, shares, peak, text, k);
    // what is no word, formatting and the sink, comes first, so that the last word's sum is the answer
    let running = shares.reduce((f, share) => f - share.contribution, Model.speaks(explained.answer, k));
    const sums = shares.map((share) => (running += share.contribution));
    const tell = (i) => {
      words.forEach((word, j) => word.classList.toggle("here", i === j));
      if (i >= 0) readout.replaceChildren(...Shade.reading(explained, shares, sums, i));
    };
    text.addEventListener("mouseover", (event) => event.target.dataset?.word && tell(Number(event.target.dataset.word)));
    const whatif = Model.tokenizer ? WhatIf.make(explained, k, use) : null;
    if (whatif) whatif.box.before = text;
    text.addEventListener("click", (event) => {
      if (event.target.dataset?.word && !String(getSelection())) whatif?.remove((here = Number(event.target.dataset.word)));
    });
    let here = -1;
    text.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (whatif && here >= 0 && ["Enter", "Delete", "Backspace"].includes(event.key)) {
        event.preventDefault();
        return whatif.remove(here);
      }
      if (!step || !words.length) return;
      event.preventDefault();
      here = (here + step + words.length) % words.length;
      tell(here);
    });
    return [text, readout, ...(whatif ? [whatif.box] : []), Shade.total(explained, k)];
  },

  /** Put the text into `into`, a span for each word; gives the spans. */
  words(explained, shares, peak, into, k) {
    const { text, spans, types } = explained;
    const out = [];
    let at = 0;
    spans.forEach(([start, end], i) => {
      into.append(Shade.isolated(text.slice(at, start)));
      const share = shares[i];
      const known = types[i].some((type) => type >= 0);
      const kind = !known ? "unknown" : share.contribution > 0 !== (k === 0 && State.mirrored()) ? "p" : "m";
      const word = Dom.make("bdi", { class: kind, "data-word": i, text: Format.prose(text.slice(Math.max(at, start), end)) });
      word.style.setProperty("--s", (Math.abs(share.contribution) / peak).toFixed(2));
      into.append(word);
      out.push(word);
      at = Math.max(at, end);
    });
    into.append(Shade.isolated(text.slice(at)));
    return out;
  },

  /** Text between words; what would turn the writing direction of the rest is shut in. */
  isolated(text) {
    const clean = Format.prose(text);
    return /[\u202a-\u202e\u2066-\u2069]/.test(text) ? Dom.make("bdi", { text: clean }) : clean;
  },

  reading(explained, shares, sums, i) {
    const [start, end] = explained.spans[i];
    const share = shares[i];
    const word = Dom.token(explained.text.slice(start, end), 40);
    if (!explained.types[i].some((type) => type >= 0)) return [word, " is not among the tokens of the model on this page."];
    const parts = ` contributes ${Format.signed(share.contribution, 3)}: attention ${Format.percent(share.attention, 2)}`;
    const grams = explained.types.some((row, end) => row.some((type, n) => n > 0 && type >= 0 && end - n <= i && i <= end));
    const value = Number.isFinite(share.value) ? `, own value ${Format.signed(share.value)}` : "";
    return [word, `${parts}${value}${grams ? ", with its n-grams" : ""}; sum so far ${Format.signed(sums[i], 3)}`];
  },

  /** The largest contributions, the others, what lies outside this page, and the answer they make. */
  total(explained, k) {
    const { rows, rest, answer } = Model.sum(explained, k);
    const line = Dom.make("p", { class: "sum" });
    for (const row of rows.slice(0, 5)) line.append(Dom.token(row.token, 40), ` ${Format.signed(row.contribution, 3)}, `);
    const others = rows.slice(5);
    const sum = others.reduce((f, row) => f + row.contribution, 0);
    if (others.length) line.append(`${Format.count(others.length)} other token types ${Format.signed(sum, 3)}, `);
    if (Math.abs(rest) > 5e-4) line.append(`token types that are not on this page ${Format.signed(rest, 3)}, `);
    if (explained.other) line.append(`the other answer ${Format.signed(Model.speaks([explained.other], k), 3)}, `);
    if (!explained.attention.size) line.append("no known token, so the prediction follows the class frequencies, ");
    line.append(Dom.make("strong", { text: `logit ${Format.signed(answer, 3)}` }));
    return line;
  },

  /** All contributions as a table. */
  table(explained, k) {
    const { rows, rest, answer } = Model.sum(explained, k);
    const shown = rows.slice(0, 50);
    const others = rows.slice(50);
    const add = (list, name) => list.reduce((sum, row) => sum + row[name], 0);
    const number = (text) => Dom.make("td", { class: "n", text });
    const line = (head, cells) => Dom.make("tr", {}, Dom.make("th", { scope: "row" }, head), ...cells.map(number));
    const body = shown.map((row) => {
      const cells = [Format.count(row.count), Format.percent(row.attention, 2), Format.signed(row.value, 3)];
      return line(Dom.token(row.token), [...cells, Format.signed(row.contribution, 4)]);
    });
    const many = [Format.percent(add(others, "attention"), 2), "", Format.signed(add(others, "contribution"), 4)];
    if (others.length) body.push(line(`${Format.count(others.length)} other token types`, ["", ...many]));
    if (Math.abs(rest) > 5e-5) body.push(line("Token types that are not on this page", ["", "", "", Format.signed(rest, 4)]));
    if (explained.other) body.push(line("The other answer", ["", "", "", Format.signed(Model.speaks([explained.other], k), 4)]));
    const heads = ["Token", "Count", "Attention", "Value", "Contribution"];
    const head = heads.map((text, i) => Dom.make("th", { scope: "col", class: i ? "n" : "", text }));
    return Dom.make(
      "table",
      {},
      Dom.make("caption", { text: "Contributions that add up to the logit" }),
      Dom.make("thead", {}, Dom.make("tr", {}, ...head)),
      Dom.make("tbody", {}, ...body),
      Dom.make("tfoot", {}, line("Sum = logit", ["", "", "", Format.signed(answer, 4)])),
    );
  },

  /** The whole sum, made when it is opened. */
  details(explained, k) {
    const box = Dom.make("details", {}, Dom.make("summary", { text: "The sum in full" }));
    const scroll = { class: "scroll", role: "region", tabindex: "0", "aria-label": "Contributions to the logit" };
    box.addEventListener("toggle", () => {
      if (box.open && box.children.length === 1) box.append(Dom.make("div", scroll, Shade.table(explained, k)));
    });
    return box;
  },
};
