/** Light, dark, or as the reader's system has it. */
const Theme = {
  choices: ["auto", "light", "dark"],
  system: matchMedia("(prefers-color-scheme: dark)"),

  start() {
    const button = Dom.id("theme");
    button.addEventListener("click", () => {
      const next = (Theme.choices.indexOf(Theme.chosen()) + 1) % Theme.choices.length;
      Theme.choose(Theme.choices[next]);
    });
    Theme.system.addEventListener("change", () => State.set({ theme: Theme.chosen() }));
    Theme.name();
  },

  chosen: () => document.documentElement.dataset.theme ?? "auto",
  dark: () => (Theme.chosen() === "auto" ? Theme.system.matches : Theme.chosen() === "dark"),
  colour: (name) => getComputedStyle(document.documentElement).getPropertyValue(name),

  name() {
    const [sign, name] = { auto: ["◐", "Auto"], light: ["☀", "Light"], dark: ["☾", "Dark"] }[Theme.chosen()];
    Dom.id("theme").replaceChildren(sign, Dom.make("span", { class: "wide", text: ` ${name}` }));
    Dom.id("theme").setAttribute("aria-label", `Colours: ${Theme.chosen()}`);
  },

  choose(theme) {
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    Theme.name();
    State.set({ theme });
  },
};
