/** What the reader decides: tokens to keep or to mask, documents to keep or with a wrong label; kept across visits. */
const Decisions = {
  tokens: new Map(), // token → "keep" or "mask"
  documents: new Map(), // "train:7" → "keep" or "wrong label"

  /** From the browser's storage, else from the page's own entry in the history, which a reload keeps. */
  load() {
    let kept = null;
    try {
      kept = JSON.parse(localStorage.getItem(Decisions.key()));
    } catch {
      kept = null; // no storage here, or not ours
    }
    Decisions.read(kept ?? history.state?.decisions);
    Decisions.tell();
    Dom.id("decisions-save").addEventListener("click", () => Decisions.download());
    Dom.id("decisions-clear").addEventListener("click", () => {
      Decisions.tokens.clear();
      Decisions.documents.clear();
      Decisions.changed("All decisions were removed.");
    });
  },

  key: () => `tokensieve ${State.meta.key}`,

  /** What others wrote into the storage under our key is left out. */
  read(kept) {
    for (const [token, what] of Object.entries(kept?.tokens ?? {}))
      if (["keep", "mask"].includes(what)) Decisions.tokens.set(token, what);
    for (const one of Array.isArray(kept?.documents) ? kept.documents : [])
      if (["train", "test"].includes(one?.part) && Number.isInteger(one.row) && ["keep", "wrong label"].includes(one.decision))
        Decisions.documents.set(`${one.part}:${one.row}`, one.decision);
  },

  /** What `tokensieve mask --decisions` reads. */
  file() {
    const documents = [...Decisions.documents].map(([key, decision]) => {
      const [part, row] = key.split(":");
      return { part, row: Number(row), decision };
    });
    return { tokensieve: "decisions", version: 1, tokens: Object.fromEntries(Decisions.tokens), documents };
  },

  size: () => Decisions.tokens.size + Decisions.documents.size,

  changed(said) {
    const kept = Decisions.file();
    try {
      localStorage.setItem(Decisions.key(), JSON.stringify(kept));
    } catch {
      // a reload still finds them in the history
    }
    history.replaceState({ ...history.state, decisions: kept }, "");
    Decisions.tell();
    State.set({ decided: Decisions.size() });
    Dom.say(said);
  },

  /** Decide, or withdraw what was decided so before. */
  decide(map, key, what) {
    const taken = map.get(key) === what;
    if (taken) map.delete(key);
    else map.set(key, what);
    Decisions.changed(`${taken ? "Undone" : "Decided"}: ${what}. Decisions: ${Decisions.size()}.`);
  },

  group(map, key, choices, name) {
    const group = Dom.make("span", { class: "decide", role: "group", "aria-label": name });
    const show = () => [...group.children].forEach((button, i) => button.setAttribute("aria-pressed", String(map.get(key) === choices[i][0])));
    for (const [what, text] of choices)
      group.append(
        Dom.button(text, () => {
          Decisions.decide(map, key, what);
          show();
        }),
      );
    show();
    return group;
  },

  /** Buttons for one token; formatting cannot be cut from a text. */
  on(token) {
    const choices = [["keep", "Keep"], ["mask", "Mask"]].slice(0, token.startsWith("⟨") ? 1 : 2);
    return Decisions.group(Decisions.tokens, token, choices, `Decision on ${Format.shown(token, 40)}`);
  },

  /** Buttons for one document. */
  about(part, row, small = false) {
    const choices = [["keep", "Keep"], ["wrong label", "Wrong label"]];
    return Decisions.group(Decisions.documents, `${part}:${row}`, small ? choices.slice(1) : choices, `Decision on row ${row}`);
  },

  /** The list of all decisions, and their number in the bar. */
  tell() {
    const rows = (map, made) =>
      [...map].map(([key, what]) => {
        const drop = Dom.button("Undo", () => {
          map.delete(key);
          Decisions.changed(`Undone. Decisions: ${Decisions.size()}.`);
          Dom.id("decisions-title").focus();
        });
        drop.setAttribute("aria-label", `Undo: ${what}`);
        return Dom.make("li", {}, Dom.make("b", { text: what }), " ", made(key), " ", drop);
      });
    const document = (key) => `row ${key.split(":")[1]} of the ${key.startsWith("test") ? "test" : "training"} documents`;
    const size = Decisions.size();
    Dom.id("decisions-list").replaceChildren(...rows(Decisions.tokens, Panel.link), ...rows(Decisions.documents, document));
    Dom.id("decisions-none").hidden = size > 0;
    Dom.id("decisions-some").hidden = size === 0;
    Dom.id("decisions-count").textContent = `Decisions (${size})`;
  },

  download() {
    Dom.save(new Blob([`${JSON.stringify(Decisions.file(), null, 1)}\n`], { type: "application/json" }), "decisions.json");
    Dom.say(`Decisions saved as decisions.json: ${Decisions.size()}.`);
  },
};
