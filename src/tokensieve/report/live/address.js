/** The state in the page's address, so that a reload and a sent link show the same. */
const Address = {
  usual: { across: "posterior_difference", up: "value", paint: "category", quadrant: -1, category: -1, least: 0, find: "" },

  start() {
    addEventListener("hashchange", () => Address.open());
    document.addEventListener("click", (event) => Address.follow(event));
    Dom.id("copy-link").addEventListener("click", () => Address.copy());
  },

  /** What the address asks for; nothing of it is trusted. */
  read() {
    const given = new URLSearchParams(location.hash.slice(1));
    if (!location.hash.includes("=")) return {};
    const out = {};
    const text = (name) => given.get(name);
    const label = State.classes.indexOf(text("class"));
    if (label >= 0) out.label = label;
    if (given.has("find")) out.find = text("find");
    for (const name of ["across", "up", "paint"]) {
      const options = [...Dom.id(`map-${name}`).options].map((option) => option.value);
      if (options.includes(text(name))) out[name] = text(name);
    }
    for (const [name, names] of [["quadrant", State.meta.quadrants], ["category", State.meta.categories]])
      if (names.includes(text(name))) out[name] = names.indexOf(text(name));
    if (Number(text("least")) > 0) out.least = Number(text("least"));
    const chosen = State.place.get(text("token"));
    if (chosen !== undefined) out.chosen = chosen;
    const zoom = (text("zoom") ?? "").split(",").map(Number);
    if (zoom.length === 4 && zoom.every(Number.isFinite) && zoom[0] < zoom[1] && zoom[2] < zoom[3]) out.zoom = zoom;
    if (given.has("at")) out.at = text("at");
    return out;
  },

  write() {
    const asked = new URLSearchParams();
    if (State.label !== Address.label) asked.set("class", State.classes[State.label]);
    for (const [name, usual] of Object.entries(Address.usual)) {
      if (State[name] === usual) continue;
      const names = { quadrant: State.meta.quadrants, category: State.meta.categories }[name];
      asked.set(name, names ? names[State[name]] : State[name]);
    }
    if (State.chosen !== null) asked.set("token", State.tokens[State.chosen]);
    if (TokenMap.zoomed) asked.set("zoom", [...TokenMap.ends.x, ...TokenMap.ends.y].map((x) => x.toPrecision(5)).join(","));
    if (Address.at) asked.set("at", Address.at);
    const hash = String(asked);
    if (hash === location.hash.slice(1) || location.protocol === "about:") return; // a frame in a notebook has no address
    clearTimeout(Address.waiting);
    Address.waiting = setTimeout(() => history.replaceState(history.state, "", hash ? `#${hash}` : location.pathname + location.search), 120);
  },

  /** Links within the page scroll, and leave the state where it is. */
  follow(event) {
    const link = event.target.closest?.('a[href^="#"]');
    const place = link && Dom.id(link.getAttribute("href").slice(1));
    if (!place || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    Address.at = place.id;
    Address.go(place);
    Address.write();
  },

  go(place) {
    place.closest("details")?.setAttribute("open", "");
    place.scrollIntoView();
    if (!place.matches("a, button, input")) place.setAttribute("tabindex", "-1");
    place.focus({ preventScroll: true });
  },

  /** The state of an address that was typed or pasted. */
  open() {
    const { zoom, at, ...asked } = Address.read();
    State.set({ label: Address.label, ...Address.usual, chosen: null, ...asked });
    Address.take(zoom, at);
    Main.fill();
  },

  take(zoom, at) {
    if (zoom) TokenMap.zoom({ x: zoom.slice(0, 2), y: zoom.slice(2) });
    const place = at && document.querySelector(`main > section#${CSS.escape(at)}, main details#${CSS.escape(at)}`);
    if (place) Address.go(place);
    Address.at = place ? at : "";
  },

  async copy() {
    await new Promise((done) => setTimeout(done, 150)); // until the address is written
    const file = decodeURIComponent(location.pathname.split("/").at(-1));
    const view = location.protocol === "file:" ? file + location.hash : location.href; // a colleague has no such folder
    await Dom.copy(view, Dom.id("copy-link"), "Copy it from the address bar");
  },
};
