// What does the thing under the pointer, or with the focus, mean? One tooltip for the whole page.
//
// Whatever carries `data-tip` has one, by mouse and by keyboard alike; Escape hides it. While it is shown it is the
// description of its element, so a screen reader says it too.

const MARGIN = 8;

export function installTips(): void {
  const tip = document.createElement("div");
  tip.id = "tip";
  tip.setAttribute("role", "tooltip");
  tip.hidden = true;
  document.body.append(tip);
  let of: Element | undefined;

  function hide() {
    tip.hidden = true;
    if (of?.getAttribute("aria-describedby") === "tip") of.removeAttribute("aria-describedby");
    of = undefined;
  }

  function show(target: EventTarget | null) {
    const element = target instanceof Element ? target.closest("[data-tip]") : null;
    if (!element) return hide();
    if (element === of) return;
    hide();
    const text = element.getAttribute("data-tip");
    if (!text) return;
    of = element;
    tip.textContent = text;
    // A modal dialog hides what is not inside of it.
    const home = element.closest("dialog") ?? document.body;
    if (tip.parentElement !== home) home.append(tip);
    tip.hidden = false;
    if (!element.hasAttribute("aria-describedby")) element.setAttribute("aria-describedby", "tip");
    const at = element.getBoundingClientRect();
    const size = tip.getBoundingClientRect();
    const below = at.bottom + MARGIN + size.height <= window.innerHeight;
    const left = Math.min(at.left, document.documentElement.clientWidth - size.width - MARGIN);
    tip.style.left = `${Math.max(MARGIN, left)}px`;
    tip.style.top = `${Math.max(MARGIN, below ? at.bottom + MARGIN : at.top - size.height - MARGIN)}px`;
  }

  document.addEventListener("pointerover", (event) => show(event.target));
  document.addEventListener("focusin", (event) => show(event.target));
  document.addEventListener("focusout", hide);
  document.addEventListener("scroll", hide, { capture: true, passive: true });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide();
  });
}
