// Labels of ticks that would lie over one another are hidden: round ones stay (1 ms before 2 ms), then those
// that have room. A chart that is zoomed or gets another width shows others.
window.kvstudyTicks = (() => {
  'use strict';
  const [BESIDE_PX, BELOW_PX] = [4, -3]; // letters are lower than their boxes
  const EVENTS = ['plotly_afterplot', 'plotly_react', 'plotly_relayout'];

  const isRound = ({ label }) => /^[−-]?(10*|0\.0*1)(?![\d.,])/.test(label.textContent.trim());
  const isTurned = (label) => /rotate\(-?[1-9]/.test(label.getAttribute('transform') || '');
  const meet = (one, other) => one.left < other.right + BESIDE_PX && other.left < one.right + BESIDE_PX
    && one.top < other.bottom + BELOW_PX && other.top < one.bottom + BELOW_PX;

  function thin(plot) {
    const labels = [...plot.querySelectorAll('g[class$="tick"] > text')].filter((label) => !isTurned(label));
    labels.forEach((label) => { label.style.visibility = ''; });
    const drawn = labels.map((label) => ({ label, box: label.getBoundingClientRect() }))
      .filter(({ box }) => box.width);
    const kept = [];
    [...drawn.filter(isRound), ...drawn.filter((one) => !isRound(one))].forEach((one) => {
      if (kept.some(({ box }) => meet(one.box, box))) one.label.style.visibility = 'hidden';
      else kept.push(one);
    });
  }

  // From now on, and at once.
  function watch(plot) {
    if (!plot.on || plot.dataset.ticks) return;
    plot.dataset.ticks = 'yes';
    EVENTS.forEach((name) => plot.on(name, () => thin(plot)));
    thin(plot);
  }

  return { watch };
})();
