// JupyterLab: each chart gets the height of its layout before its first resize takes that away, no label of a
// tick lies over another (ticks.js), and keys that are typed into a chooser are the chooser's.
(() => {
  if (window.kvstudyCharts) return;
  const held = () => {
    for (const chart of document.querySelectorAll(".jp-RenderedPlotly.js-plotly-plot")) {
      if (chart.layout?.height) chart.style.height = `${chart.layout.height}px`;
      window.kvstudyTicks.watch(chart);
    }
  };
  window.kvstudyCharts = new MutationObserver(held);
  window.kvstudyCharts.observe(document.body, {childList: true, subtree: true});
  held();

  // JupyterLab leaves alone only fields that text is typed into. Of all other controls arrows would go to
  // another cell, and letters, which choose an option, insert, cut and delete cells.
  const controls = ".jp-OutputArea :is(select, button, input, [role=slider], [role=button])";
  window.addEventListener("keydown", (event) => {
    const {key, shiftKey, ctrlKey, metaKey, altKey} = event;
    const isCommand = ctrlKey || metaKey || altKey || (shiftKey && key === "Enter");
    event.target.closest?.(controls)?.toggleAttribute("data-lm-suppress-shortcuts", !isCommand);
  }, true);
})();
