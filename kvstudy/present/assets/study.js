// Draws the charts of a page when they come near, in the reader's theme, stacked where the page is narrow.
// The first one is whole on the screen. No network, no library but plotly.
(() => {
  'use strict';
  const NARROW_PX = 700;
  const PANEL_PX = 300;
  const NAME_LETTERS = 20;
  const [TITLE_LETTERS, BESIDE_NAMES_LETTERS] = [32, 24];
  const [TITLE_LINE_PX, LEGEND_LINES] = [18, 3];
  const [LEGEND_LETTERS, LEGEND_LINE_PX] = [44, 16];
  const [SHEET_PX, SHEET_WIDE_PX, FLAME_PX] = [950, 700, 800]; // a flame graph has text above it
  const HEIGHT_PX = 460; // of the theme
  const [LEAD_MIN_PX, LEAD_BELOW_PX, FRAME_PX, ROW_PX] = [300, 14, 120, 20];
  const root = document.documentElement;
  const twins = JSON.parse(document.getElementById('twins').textContent);
  const darkSystem = matchMedia('(prefers-color-scheme: dark)');
  const plots = [...document.querySelectorAll('figure.chart .plot')];
  let printing = false;

  function isDark() {
    if (printing || root.dataset.theme === 'light') return false;
    return root.dataset.theme === 'dark' || darkSystem.matches;
  }
  const isNarrow = () => !printing && window.innerWidth < NARROW_PX;

  // Every colour of the theme has a dark twin; a figure is stored with the light ones.
  function figureOf(plot) {
    const stored = storedOf(plot);
    const text = isDark() ? stored.replace(/#[0-9a-f]{6}/g, (colour) => twins[colour] || colour) : stored;
    const figure = JSON.parse(text);
    const layout = figure.layout;
    delete layout.title; // the page shows it as text, which wraps
    layout.margin = { ...layout.margin, t: layout.annotations ? 62 : 24 };
    layout.autosize = true;
    if (plot.dataset.panel) {
      kvstudyPanels.only(figure, +plot.dataset.panel);
      layout.margin.t = 24;
    }
    if (isNarrow()) {
      narrowed(figure);
      wrapNames(figure);
      wrapLegend(figure);
    } else if (!printing && plot.closest('.lead') && !hasRows(plot, layout)) whole(plot, figure);
    return figure;
  }

  function storedOf(plot) {
    return plot.stored ?? plot.parentElement.querySelector('script[type="application/json"]').textContent;
  }

  // All panels at once are as many rows as they need: whoever asks for them scrolls.
  function hasRows(plot, layout) {
    return !plot.dataset.panel && kvstudyPanels.rows(layout) > 1;
  }

  // The first chart of a page ends where the screen does, unless that left out names of rows; its legend
  // keeps its distance.
  function whole(plot, figure) {
    const { layout } = figure;
    const wanted = layout.height || HEIGHT_PX;
    const room = window.innerHeight - (plot.getBoundingClientRect().top + window.scrollY) - LEAD_BELOW_PX;
    const least = Math.max(LEAD_MIN_PX, FRAME_PX + ROW_PX * rowsOf(figure));
    layout.height = Math.min(wanted, Math.max(least, room));
    if (layout.height === wanted) return;
    const legend = layout.legend || {};
    const y = ((legend.y ?? -0.16) * (wanted - FRAME_PX)) / (layout.height - FRAME_PX);
    layout.legend = { ...legend, y };
  }

  // Names of rows take a telephone's whole width: broken into lines they leave room for what they name.
  function wrapped(name, letters) {
    return String(name).split('<br>').map((line) => wrappedLine(line, letters)).join('<br>');
  }

  function wrappedLine(name, letters) {
    const lines = [''];
    name.split(/(?<=[ _])/).forEach((word) => {
      const last = lines.length - 1;
      if (lines[last] && (lines[last] + word).trimEnd().length > letters) lines.push(word);
      else lines[last] += word;
    });
    return lines.map((line) => line.trimEnd()).join('<br>');
  }

  const isLong = (text) => String(text).length > NAME_LETTERS;
  const isYAxis = (name) => name.startsWith('yaxis');
  const along = ({ data }, name) => data.filter((trace) => (trace.yaxis || 'y').replace('y', 'yaxis') === name
    && Array.isArray(trace.y));
  const hasCategories = (traces) => traces.some(({ y }) => y.some((one) => typeof one === 'string'));
  const hasLongTicks = ({ ticktext }) => Array.isArray(ticktext) && ticktext.some(isLong);
  const isNamed = (figure, name) => hasLongTicks(figure.layout[name]) || hasCategories(along(figure, name));

  // How many rows have a name.
  function rowsOf(figure) {
    const names = Object.keys(figure.layout).filter(isYAxis).map((name) => along(figure, name))
      .filter(hasCategories)
      .map((traces) => new Set(traces.flatMap(({ y }) => y)).size);
    return Math.max(0, ...names);
  }

  function wrapNames(figure) {
    const layout = figure.layout;
    let lines = 1;
    Object.keys(layout).filter(isYAxis).forEach((name) => {
      const axis = layout[name];
      const own = along(figure, name);
      const [categories, ticks] = [hasCategories(own), hasLongTicks(axis)];
      if (!categories && !ticks) return;
      const broken = (names) => names.map((text) => {
        if (text === null) return null; // there for the legend alone
        const told = wrapped(text, NAME_LETTERS);
        lines = Math.max(lines, told.split('<br>').length);
        return told;
      });
      if (categories) own.forEach((trace) => { trace.y = broken(trace.y); });
      if (categories && Array.isArray(axis.categoryarray)) axis.categoryarray = broken(axis.categoryarray);
      if (ticks) axis.ticktext = broken(axis.ticktext);
      axis.tickfont = { ...axis.tickfont, size: 10 };
    });
    if (lines > 2) layout.height = (layout.height || HEIGHT_PX) * Math.min(2, lines / 2);
  }

  // So does the legend, which takes its lines from below and not from the chart.
  function wrapLegend({ data, layout }) {
    let more = 0;
    data.filter((trace) => trace.name).forEach((trace) => {
      trace.name = wrapped(trace.name, LEGEND_LETTERS);
      if (trace.showlegend !== false) more += trace.name.split('<br>').length - 1;
    });
    layout.height = (layout.height || HEIGHT_PX) + more * LEGEND_LINE_PX;
  }

  function narrowed(figure) {
    const { layout } = figure;
    layout.dragmode = false; // a finger scrolls the page; the mode bar still zooms
    // The mode bar takes a row of its own.
    layout.margin = { ...layout.margin, l: 56, r: 8, t: layout.annotations ? 64 : 36 };
    // Names of rows leave the axis below them hardly half of the chart.
    const hasNames = Object.keys(layout).some((name) => isYAxis(name) && isNamed(figure, name));
    const letters = hasNames ? BESIDE_NAMES_LETTERS : TITLE_LETTERS;
    let more = 0;
    Object.keys(layout).filter((name) => name.startsWith('xaxis')).forEach((name) => {
      layout[name].tickfont = { size: 11 };
      const title = (layout[name].title || {}).text;
      if (!title) return;
      layout[name].title.text = wrapped(title, letters);
      more = Math.max(more, layout[name].title.text.split('<br>').length - title.split('<br>').length);
    });
    const panels = (layout.meta || {}).panels;
    if (!panels) {
      // A long legend has a line for two, or for each beside names.
      const entries = figure.data.filter(({ name, showlegend }) => name && showlegend !== false).length;
      const lines = Math.max(0, (hasNames ? entries : Math.ceil(entries / 2)) - LEGEND_LINES);
      layout.height = (layout.height || HEIGHT_PX) + TITLE_LINE_PX * lines;
      layout.legend = { ...layout.legend, maxheight: 1 };
      // The legend stands below the title of the axis, however many lines that takes.
      const height = (layout.height || HEIGHT_PX) - 150;
      const y = ((layout.legend || {}).y ?? -0.16) - (more * TITLE_LINE_PX) / height;
      layout.legend = { ...layout.legend, y };
      return;
    }
    const count = panels.length;
    const height = count * PANEL_PX;
    const gap = 84 / height;
    const each = (1 - gap * (count - 1)) / count;
    panels.forEach(([xaxis, yaxis, heading], index) => {
      const top = 1 - index * (each + gap);
      layout[xaxis].domain = [0, 1];
      layout[yaxis].domain = [Math.max(0, top - each), top];
      const note = layout.annotations[heading];
      Object.assign(note, { x: 0.5, y: top, text: wrapped(note.text, letters) });
    });
    layout.legend = { ...layout.legend, y: -70 / height, maxheight: 1 };
    const above = TITLE_LINE_PX * (layout.annotations[panels[0][2]].text.split('<br>').length - 1);
    layout.margin.t += above;
    layout.height = height + 190 + above;
  }

  // On paper a chart is as wide as the sheet and whole on one: a higher one is drawn smaller.
  function onPaper(layout) {
    const height = layout.height || HEIGHT_PX;
    const scale = Math.min(1, SHEET_PX / height);
    Object.assign(layout, { autosize: false, width: SHEET_WIDE_PX / scale, height });
    return scale;
  }

  function draw(plot) {
    const figure = figureOf(plot);
    const scale = printing ? onPaper(figure.layout) : 1;
    plot.style.height = `${figure.layout.height || HEIGHT_PX}px`;
    plot.style.zoom = scale;
    plot.dataset.drawn = 'yes';
    return Plotly.react(plot, figure.data, figure.layout, { ...figure.config, responsive: true })
      .then(() => {
        kvstudyTicks.watch(plot);
        plot.dispatchEvent(new CustomEvent('kvstudy:drawn'));
      });
  }

  const drawn = () => plots.filter((plot) => plot.dataset.drawn);
  const drawAll = () => Promise.all(plots.map(draw));

  function flamesFollow() {
    document.querySelectorAll('.flame iframe').forEach((frame) => {
      const page = frame.contentDocument;
      if (!page || !page.getElementById('canvas')) return;
      page.documentElement.classList.toggle('dark', isDark());
      const { render, shown } = frame.contentWindow;
      render(shown && shown().root); // zoomed as it was
    });
    root.classList.toggle('dark', isDark()); // DataTables looks for it
  }

  function follow() {
    document.querySelector('#theme span').textContent = root.dataset.theme;
    flamesFollow();
    return Promise.all(drawn().map(draw));
  }

  document.getElementById('theme').addEventListener('click', () => {
    const next = { auto: 'dark', dark: 'light', light: 'auto' };
    root.dataset.theme = next[root.dataset.theme] || 'auto';
    try {
      localStorage.setItem('kvstudy-theme', root.dataset.theme);
    } catch (refused) { /* only this page then */ }
    follow();
  });
  darkSystem.addEventListener('change', follow);

  let wasNarrow = isNarrow();
  window.addEventListener('resize', () => {
    if (isNarrow() === wasNarrow) return;
    wasNarrow = isNarrow();
    drawn().forEach(draw);
  });

  // Printed on white, every chart, whether it was scrolled to or not.
  // On paper nobody scrolls: a flame graph has all its frames, as wide as the sheet and at most as high.
  const flames = () => [...document.querySelectorAll('.flame iframe, .moment iframe')];
  function unfold(frame) {
    const page = frame.contentDocument && frame.contentDocument.documentElement;
    if (!page || !frame.clientWidth) return;
    const whole = Math.max(page.scrollHeight, frame.clientHeight);
    const scale = Math.min(1, SHEET_WIDE_PX / frame.clientWidth, FLAME_PX / whole);
    frame.dataset.style = frame.style.cssText;
    Object.assign(page.style, { zoom: scale, overflow: 'hidden' }); // no bar beside it
    Object.assign(frame.style, { width: `${SHEET_WIDE_PX}px`, height: `${Math.ceil(whole * scale)}px` });
    frame.contentWindow.dispatchEvent(new Event('resize')); // now: the browser would tell it after the print
    frame.contentWindow.scrollTo(0, page.scrollHeight);
  }
  function fold(frame) {
    if (frame.dataset.style === undefined) return;
    frame.style.cssText = frame.dataset.style;
    Object.assign(frame.contentDocument.documentElement.style, { zoom: '', overflow: '' });
    frame.contentWindow.dispatchEvent(new Event('resize'));
    delete frame.dataset.style;
  }
  // A table whose lines are broken and that is too wide all the same is drawn smaller, as a chart is.
  function fit(table) {
    table.parentElement.style.width = `${SHEET_WIDE_PX}px`;
    table.style.zoom = Math.min(1, SHEET_WIDE_PX / table.offsetWidth);
    table.parentElement.style.width = '';
  }
  // A heading alone, below which only what is folded stands, would lead nowhere.
  const HEADING = /^H([1-6])$/;
  const FOLDED = 'details.code, details:is(.table, .runs):not([open])';
  const level = (part) => +((part?.lastElementChild || {}).tagName || '').match(HEADING)?.[1];
  function isEmpty(part) {
    if (![...part.children].every((child) => HEADING.test(child.tagName))) return false;
    let next = part.nextElementSibling;
    while (next && next.matches(FOLDED)) next = next.nextElementSibling;
    return !next || next.matches('footer') || (next.matches('.prose') && level(next) <= level(part));
  }
  const tables = () => [...document.querySelectorAll('.output table')].filter((table) => table.offsetWidth);
  function print(starts) {
    printing = starts;
    root.classList.toggle('paper', starts);
    document.querySelectorAll('main > .prose')
      .forEach((part) => part.classList.toggle('empty', isEmpty(part)));
    flames().forEach(starts ? unfold : fold);
    if (!starts) {
      tables().forEach((table) => { table.style.zoom = ''; });
      follow();
      return;
    }
    tables().forEach(fit);
    drawAll();
    flamesFollow();
  }
  window.addEventListener('beforeprint', () => print(true));
  window.addEventListener('afterprint', () => print(false));

  const menu = document.querySelector('.menu');
  const wide = matchMedia('(min-width: 1100px)');
  const openWhereThereIsRoom = () => { menu.open = wide.matches; };
  wide.addEventListener('change', openWhereThereIsRoom);
  openWhereThereIsRoom();

  document.querySelectorAll('.flame iframe').forEach((frame) => frame.addEventListener('load', flamesFollow));
  plots.forEach((plot) => kvstudyPanels.begin(plot, JSON.parse(storedOf(plot)).layout, draw));
  follow();

  const near = new IntersectionObserver((entries) => {
    entries
      .filter((entry) => entry.isIntersecting && !entry.target.dataset.drawn)
      .forEach((entry) => draw(entry.target));
  }, { rootMargin: '600px' });
  plots.forEach((plot) => near.observe(plot));

  window.kvstudy = { draw, drawAll, drawn: (plot) => (plot.dataset.drawn ? Promise.resolve() : draw(plot)) };
})();
