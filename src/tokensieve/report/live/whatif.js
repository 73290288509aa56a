/** What if a word were not there, or another one were? The answer before and after, side by side. */
const WhatIf = {
  /** For one explained text: opens at word i; `use`, where given, takes the changed text. */
  make(explained, k, use = null) {
    const box = Dom.make("div", { class: "whatif", hidden: true });
    const edits = new Map(); // word → what is there instead
    const word = (i) => explained.text.slice(explained.spans[i][0], explained.spans[i][1]);
    const set = (i, text) => {
      if (text === null || text === word(i)) edits.delete(i);
      else edits.set(i, text);
      open(i);
    };
    const close = () => {
      edits.clear();
      box.hidden = true;
    };
    const open = (i, first = false) => {
      box.hidden = false;
      const input = Dom.make("input", { type: "text", value: edits.get(i) ?? "", autocomplete: "off", spellcheck: "false", dir: "auto" });
      const replace = () => input.value.trim() && set(i, input.value.trim());
      input.addEventListener("keydown", (event) => {
        if (event.key === "Enter") {
          event.preventDefault(); // the button that comes into focus would be pressed by the same key
          replace();
        }
        if (event.key === "Escape") {
          event.preventDefault();
          close();
          box.before.focus();
        }
      });
      const line = Dom.make(
        "p",
        { class: "row" },
        Dom.make("span", {}, edits.get(i) === "" ? "Without " : "Instead of ", Dom.token(word(i), 40)),
        edits.get(i) !== "" && Dom.button("Delete", () => set(i, "")),
        Dom.make("label", {}, "replace it with", input),
        Dom.button("Replace", replace),
        edits.has(i) && Dom.button("Restore", () => set(i, null)),
        Dom.button("Close", close, { class: "quiet" }),
      );
      input.setAttribute("aria-label", "Replace with");
      box.replaceChildren(line, ...(edits.size ? WhatIf.result(explained, k, edits, use) : []));
      if (edits.get(i)) input.focus({ preventScroll: true });
      else if (first || edits.has(i)) box.querySelector("button").focus({ preventScroll: true });
      box.scrollIntoView({ block: "nearest" });
    };
    return { box, open, remove: (i) => set(i, "") };
  },

  /** The text with the words changed. */
  text(explained, edits) {
    let out = "";
    let at = 0;
    for (const [i, text] of [...edits].sort((a, b) => a[0] - b[0])) {
      const [start, end] = explained.spans[i];
      out += explained.text.slice(at, Math.max(at, start)) + text;
      at = Math.max(at, end);
    }
    return out + explained.text.slice(at);
  },

  result(explained, k, edits, use) {
    const text = WhatIf.text(explained, edits);
    const after = Model.changed(explained, text);
    const cell = (value) => Dom.make("td", { class: "n", text: value });
    const row = (name, { answer }) => {
      const best = Model.best(answer);
      const p = Model.probabilities(answer)[best];
      const said = Dom.make("td", {}, Dom.token(State.classes[best], 40));
      return Dom.make("tr", {}, Dom.make("th", { scope: "row", text: name }), said, cell(Format.percent(p)), cell(Format.signed(Model.speaks(answer, k), 3)));
    };
    const change = Model.speaks(after.answer, k) - Model.speaks(explained.answer, k);
    const heads = ["Text", "Prediction", "Probability", "Logit"].map((name, i) => Dom.make("th", { scope: "col", class: i > 1 ? "n" : "", text: name }));
    const table = Dom.make("table", {}, Dom.make("caption", { text: `The logit changes by ${Format.signed(change, 3)}` }));
    table.append(Dom.make("thead", {}, Dom.make("tr", {}, ...heads)), Dom.make("tbody", {}, row("As written", explained), row("Changed", after)));
    const shown = Dom.make("p", { class: "changes" });
    for (const [i, to] of edits) {
      const [start, end] = explained.spans[i];
      shown.append(Dom.make("del", {}, Dom.make("bdi", { text: Format.shown(explained.text.slice(start, end), 40) })), " ");
      if (to) shown.append(Dom.make("ins", {}, Dom.make("bdi", { text: Format.shown(to, 40) })), " ");
    }
    const out = [shown, table];
    if (use) out.push(Dom.button("Use the changed text", () => use(text)));
    Dom.say(`The logit changes by ${Format.signed(change, 3)}.`);
    return out;
  },
};
