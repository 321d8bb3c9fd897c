// Interactive charts: Vega-Embed redraws each chart from the specification next to its static picture; arrow keys step through values.
(() => {
  const description = (mark) => mark.__data__ && mark.__data__.datum && mark.__data__.datum.description;
  const values = (box) => [...box.querySelectorAll(".live .role-mark *")].filter((mark) => description(mark) && !mark.closest("[aria-hidden=true]"));
  // Draw a chart at the width of its box, so that text keeps its size; the static picture gives the width of axes and labels.
  const fitted = (spec, box) => {
    const picture = box.querySelector(".still svg"), wide = picture.viewBox.baseVal.width, room = box.clientWidth;
    if (spec.width) spec.width = Math.max(150, spec.width + Math.min(room, 1.25 * wide) - wide);
    else if (room < wide) {
      spec.columns = Math.max(1, Math.min(spec.columns, Math.floor(room / 300)));
      spec.concat.forEach((panel) => { panel.width = Math.max(150, Math.min(panel.width, room / spec.columns - 110)); });
    }
    return spec;
  };
  const show = (figure, text) => { figure.querySelector("output").textContent = text; };
  document.querySelectorAll("figure[data-chart]").forEach((figure) => {
    const box = figure.querySelector(".chart");
    let at = -1, wide = -1, later = 0, last = null;
    box.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      const found = values(box);
      if (!step || !found.length) return;
      event.preventDefault();
      at = (at + step + found.length) % found.length;
      found.forEach((mark, k) => { mark.style.stroke = k === at ? "var(--ink)" : ""; mark.style.strokeWidth = k === at ? "4" : ""; });
      show(figure, description(found[at]));
    });
    const draw = () => {
      if (!box.clientWidth || box.clientWidth === wide) return;
      wide = box.clientWidth;
      const spec = fitted(JSON.parse(figure.querySelector("script").textContent), box);
      window.vegaEmbed(box.querySelector(".live"), spec, { renderer: "svg", actions: false, mode: "vega-lite" }).then((drawn) => {
        if (last) last.finalize();
        last = drawn;
        at = -1;
        box.querySelector(".still").hidden = true;
        drawn.view.addEventListener("mouseover", (_, item) => { if (item && item.datum && item.datum.description) show(figure, item.datum.description); });
        values(box).forEach((mark) => mark.setAttribute("aria-label", description(mark)));
        figure.dataset.live = "yes";
      });
    };
    new ResizeObserver(() => { clearTimeout(later); later = setTimeout(draw, last ? 200 : 0); }).observe(box);
  });
  const closed = [];
  window.addEventListener("beforeprint", () => document.querySelectorAll("details:not([open])").forEach((one) => { closed.push(one); one.open = true; }));
  window.addEventListener("afterprint", () => closed.splice(0).forEach((one) => { one.open = false; }));
  const open = () => { const target = document.getElementById(location.hash.slice(1)); const folded = target && target.closest("details"); if (folded && !folded.open) { folded.open = true; target.scrollIntoView(); } };
  window.addEventListener("hashchange", open);
  open();
})();
