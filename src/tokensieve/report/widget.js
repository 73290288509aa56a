/** Shows the page in a frame without an origin, and passes on what is selected there. */
export default {
  render({ model, el }) {
    const frame = document.createElement("iframe");
    frame.title = "Interactive page";
    frame.setAttribute("sandbox", "allow-scripts allow-downloads");
    frame.style.cssText = "width: 100%; height: 44rem; border: 1px solid; border-radius: .4rem";
    frame.srcdoc = model.get("page");
    const listen = (event) => {
      if (event.source !== frame.contentWindow || event.data?.tokensieve !== "selected") return;
      const tokens = event.data.tokens;
      if (!Array.isArray(tokens) || !tokens.every((token) => typeof token === "string")) return;
      model.set("selected", tokens);
      model.save_changes();
    };
    addEventListener("message", listen);
    el.append(frame);
    return () => removeEventListener("message", listen);
  },
};
