// JupyterLab: each chart gets the height of its layout before its first resize takes that away, and no label
// of a tick lies over another (ticks.js).
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
})();
