// JupyterLab: each chart gets the height of its layout before its first resize takes that away, the lines
// under its title are as long as it is wide, no label of a tick lies over another (ticks.js), tables are as
// dark as their page, and keys that are typed into a chooser are the chooser's.
(() => {
  if (window.kvstudyCharts) return;
  const [TITLE_PX, LINE_PX, SIDES_PX, LINES_IN_HEIGHT] = [21, 17, 24, 2]; // as in panels.py and theme.py
  const BUTTONS_PX = 180; // plotly's, beside the title
  const BREAK = "<br>";
  const pen = document.createElement("canvas").getContext("2d");
  const heard = new WeakSet();

  // The renderer keeps its plotly to itself, and its extension has the renderer.
  const plotly = async () => {
    const extension = await window._JUPYTERLAB?.["jupyterlab-plotly"]?.get("./mimeExtension");
    return extension?.().RenderedPlotly?.Plotly;
  };

  function broken(text, {family, size}, width) {
    pen.font = `${size}px ${family}`;
    return text.split(BREAK).map((line) => line.split(" ").reduce((whole, word) => {
      const fits = pen.measureText(`${whole.split(BREAK).pop()} ${word}`).width <= width;
      return whole + (fits ? " " : BREAK) + word;
    })).join(BREAK);
  }
  const linesOf = (text) => (text ? text.split(BREAK).length : 0);

  async function fitted(chart) {
    const width = chart.clientWidth - SIDES_PX;
    const {title, meta} = chart.layout ?? {};
    const full = chart._fullLayout;
    if (!title?.text || !full || width < SIDES_PX) return;
    const below = title.subtitle?.text ?? "";
    const told = meta?.title && [meta.finding === meta.title ? "" : meta.finding, meta.drawn];
    const begun = chart.kvstudyBegun ??= {
      title: meta?.title ?? title.text,
      below: told ? told.filter(Boolean).join(BREAK) : below,
      top: full.margin.t - TITLE_PX * linesOf(title.text) - LINE_PX * linesOf(below),
      height: full.height,
    };
    const head = broken(begun.title, full.title.font, Math.max(width - BUTTONS_PX, width / 2));
    const lines = broken(begun.below, full.title.subtitle.font, width);
    if (head === title.text && lines === below) return;
    const [heads, more] = [linesOf(head), linesOf(lines)];
    const top = begun.top + TITLE_PX * heads + LINE_PX * more;
    const height = begun.height + TITLE_PX * (heads - 1) + LINE_PX * Math.max(0, more - LINES_IN_HEIGHT);
    const library = await plotly();
    if (!library) return;
    chart.kvstudyHeight = height;
    chart.style.height = `${height}px`;
    await library.relayout(chart, {"title.text": head, "title.subtitle.text": lines, "margin.t": top});
    await library.Plots.resize(chart); // a height that relayout was told would fix the width, too
  }
  const widths = new ResizeObserver((charts) => {
    requestAnimationFrame(() => charts.forEach(({target}) => fitted(target)));
  });

  const held = () => {
    for (const chart of document.querySelectorAll(".jp-RenderedPlotly.js-plotly-plot")) {
      const height = chart.kvstudyHeight ?? chart.layout?.height;
      if (height) chart.style.height = `${height}px`;
      window.kvstudyTicks.watch(chart);
      if (heard.has(chart)) continue;
      heard.add(chart);
      widths.observe(chart);
      chart.on?.("plotly_afterplot", () => fitted(chart)); // the renderer may draw the layout of before again
    }
  };
  window.kvstudyCharts = new MutationObserver(held);
  window.kvstudyCharts.observe(document.body, {childList: true, subtree: true});
  held();

  // DataTables looks there. Its own script looks once, before it is loaded.
  const shaded = () => {
    document.documentElement.classList.toggle("dark", document.body.dataset.jpThemeLight === "false");
  };
  new MutationObserver(shaded).observe(document.body, {attributeFilter: ["data-jp-theme-light"]});
  shaded();

  // JupyterLab leaves alone only fields that text is typed into. Of all other controls arrows would go to
  // another cell, and letters, which choose an option, insert, cut and delete cells.
  const controls = ".jp-OutputArea :is(select, button, input, [role=slider], [role=button])";
  window.addEventListener("keydown", (event) => {
    const {key, shiftKey, ctrlKey, metaKey, altKey} = event;
    const isCommand = ctrlKey || metaKey || altKey || (shiftKey && key === "Enter");
    event.target.closest?.(controls)?.toggleAttribute("data-lm-suppress-shortcuts", !isCommand);
  }, true);
})();
