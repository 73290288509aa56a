/** Tokens that match what the reader types, with their documents, under the field: arrow keys walk, Enter takes one. */
const Search = {
  most: 8,
  at: 0,

  start() {
    const [field, list] = [Dom.id("find"), Dom.id("find-list")];
    field.addEventListener("input", () => {
      State.set({ find: field.value });
      Search.show();
    });
    field.addEventListener("focus", () => Search.show());
    field.addEventListener("blur", () => setTimeout(() => (list.contains(document.activeElement) ? null : Search.close()), 150));
    field.addEventListener("keydown", (event) => Search.key(event));
  },

  /** Rows of the chosen class that match: what begins so first, then the most frequent. */
  matches() {
    const wanted = State.find.trim().toLowerCase();
    if (!wanted) return [];
    const rows = State.rows();
    const found = State.found();
    const begins = (i) => Number(State.lower[rows.at[i]].startsWith(wanted));
    return Array.from(found.keys())
      .filter((i) => found[i])
      .sort((a, b) => begins(b) - begins(a) || rows.documents[b] - rows.documents[a]);
  },

  show() {
    const [field, list] = [Dom.id("find"), Dom.id("find-list")];
    const wanted = State.find.trim();
    const matches = Search.matches();
    const some = matches.slice(0, Search.most);
    Search.at = 0;
    Search.rows = some;
    Dom.id("find-count").textContent = wanted ? `${Format.count(matches.length)} found` : "";
    list.replaceChildren(...some.map((row, i) => Search.option(row, i)));
    if (wanted && !some.length) list.append(Dom.make("li", { class: "note", role: "option", "aria-disabled": "true", text: "No token on this page contains this." }));
    list.hidden = !wanted;
    field.setAttribute("aria-expanded", String(!list.hidden));
    field.scrollIntoView({ block: "nearest", behavior: "instant" }); // the list is fixed beside it
    const box = field.getBoundingClientRect();
    list.style.left = `${Math.max(8, Math.min(box.left, innerWidth - 330))}px`;
    const above = box.bottom + list.offsetHeight + 4 > innerHeight && box.top > list.offsetHeight; // where it is in view
    list.style.top = `${above ? box.top - list.offsetHeight - 4 : box.bottom + 4}px`;
    Search.mark();
  },

  option(row, i) {
    const size = State.rows().documents[row];
    const documents = Dom.make("span", { class: "note", text: ` ${Format.count(size)} document${size === 1 ? "" : "s"}` });
    const option = Dom.make("li", { id: `find-${i}`, role: "option" }, Dom.token(State.token(row), 40), documents);
    option.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      Search.take(i);
    });
    return option;
  },

  mark() {
    [...Dom.id("find-list").children].forEach((option, i) => option.setAttribute("aria-selected", String(i === Search.at)));
    if (Search.rows?.length) Dom.id("find").setAttribute("aria-activedescendant", `find-${Search.at}`);
    else Dom.id("find").removeAttribute("aria-activedescendant");
  },

  key(event) {
    const many = Search.rows?.length ?? 0;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape" && !Dom.id("find-list").hidden) {
      event.preventDefault();
      Search.close();
    } else if (event.key === "Enter" && many) {
      event.preventDefault();
      Search.take(Search.at);
    } else if (step && many) {
      event.preventDefault();
      Search.at = (Search.at + step + many) % many;
      Search.mark();
    }
  },

  take(i) {
    const row = Search.rows[i];
    Search.close();
    State.set({ chosen: State.rows().at[row] });
  },

  close() {
    Dom.id("find-list").hidden = true;
    Dom.id("find").setAttribute("aria-expanded", "false");
  },
};
