// One panel of a chart at a time, chosen by what its heading says: workload, connections, rate. All of them
// are a click away.
window.kvstudyPanels = (() => {
  'use strict';
  const PANELS_MIN = 3; // two beside each other are seen at a glance
  const ONE_PX = 460;

  const axisOf = (trace, letter) => (trace[`${letter}axis`] || letter).replace(letter, `${letter}axis`);
  // Without plotly's own tags: a name may have such signs too, as queue<int>.
  const TAGS = /<\/?(a|b|br|em|i|s|span|sub|sup|u)(\s[^>]*)?\/?>/gi;
  const plain = (text) => String(text).replace(TAGS, ' ').trim();

  // How many of its panels stand one above the other.
  function rows(layout) {
    const { panels } = layout.meta || {};
    return new Set((panels || []).map(([, yaxis]) => (layout[yaxis].domain || [0])[0])).size;
  }

  // What a figure's panels differ in: for each panel the parts of its heading, as many in each.
  function choices(layout) {
    const { panels } = layout.meta || {};
    if (!panels || (panels.length < PANELS_MIN && rows(layout) < 2)) return null;
    const headings = panels.map(([, , index]) => plain(layout.annotations[index].text));
    const parts = headings.map((heading) => heading.split(', '));
    const alike = parts.every((part) => part.length === parts[0].length);
    return alike ? parts : headings.map((heading) => [heading]);
  }

  function factor(values, taken) {
    const kinds = [
      ['Connections', /connections?$/],
      ['Rate', /r\/s$|closed loop|schedule/],
      ['Threads', /threads?$/],
      ['Report', /^report/],
      ['Workload', /^(unique|repeated|random|missing)?_?(put|get)|^mixed|^delete/],
    ];
    const found = kinds.find(([, pattern]) => values.every((value) => pattern.test(value)));
    if (found) return found[0];
    return taken.includes('Show') ? 'Side' : 'Show';
  }

  // The panel whose parts are as wanted in the place that was changed, and in most others.
  function nearest(parts, wanted, changed) {
    const agreeing = (part) => part.filter((value, place) => value === wanted[place]).length;
    const score = (part) => (part[changed] === wanted[changed] ? 100 : 0) + agreeing(part);
    return parts.reduce((best, part, index) => (score(part) > score(parts[best]) ? index : best), 0);
  }

  // Leaves panel ``index`` of a figure alone, as large as a chart without panels.
  function only(figure, index) {
    const { layout } = figure;
    const { panels } = layout.meta;
    const [xaxis, yaxis] = panels[index];
    const here = (trace) => axisOf(trace, 'x') === xaxis && axisOf(trace, 'y') === yaxis;
    const group = (trace) => trace.legendgroup || trace.name;
    // Numbers that plotly packed are no array, and not empty.
    const isEmpty = ({ x }) => !x || (Array.isArray(x) && x.every((one) => one === null));
    const kept = figure.data.filter(here);
    const named = new Set(kept.filter((trace) => trace.showlegend !== false).map(group));
    const drawn = new Set(kept.map(group));
    // The legend is the first panel's; of what this panel draws it keeps the entries.
    const entries = figure.data.filter((trace) => trace.showlegend !== false && trace.name && !here(trace)
      && !named.has(group(trace)) && (drawn.has(group(trace)) || isEmpty(trace)));
    const nowhere = { x: [null], y: [null], error_x: undefined, error_y: undefined };
    entries.forEach((trace) => kept.push({ ...trace, ...nowhere }));
    figure.data = kept.map((trace) => ({ ...trace, xaxis: 'x', yaxis: 'y' }));
    const title = (letter) => panels
      .map(([x, y]) => layout[letter === 'x' ? x : y].title)
      .find((one) => one && one.text);
    const axis = (name, letter) => ({
      ...layout[name],
      domain: [0, 1],
      anchor: letter === 'x' ? 'y' : 'x',
      matches: undefined,
      showticklabels: true,
      title: title(letter),
    });
    const axes = { xaxis: axis(xaxis, 'x'), yaxis: axis(yaxis, 'y') };
    const [xname, yname] = [xaxis.replace('axis', ''), yaxis.replace('axis', '')];
    const at = (ref, name) => !/^[xy]/.test(ref || '') || ref.split(' ')[0] === name;
    const mine = (thing) => at(thing.xref, xname) && at(thing.yref, yname);
    const moved = (thing) => ({
      ...thing,
      xref: (thing.xref || 'paper').replace(/^x\d*/, 'x'),
      yref: (thing.yref || 'paper').replace(/^y\d*/, 'y'),
    });
    const headings = new Set(panels.map(([, , place]) => place));
    const isOurs = (note, place) => !headings.has(place) && mine(note);
    const notes = (layout.annotations || []).filter(isOurs).map(moved);
    const shapes = (layout.shapes || []).filter(mine).map(moved);
    Object.keys(layout).filter((name) => /^[xy]axis/.test(name)).forEach((name) => delete layout[name]);
    Object.assign(layout, axes, { annotations: notes.length ? notes : undefined, shapes, height: ONE_PX });
    layout.legend = { ...layout.legend, y: -0.2 };
    layout.meta = { ...layout.meta, panels: undefined };
  }

  // Choosers above a chart; ``draw`` draws it anew. The panel that ``opens`` stands there until another is
  // chosen; what is shown stands before the caption, which tells what was found in that panel.
  function begin(plot, layout, draw) {
    const parts = choices(layout);
    if (!parts) return;
    const first = (layout.meta || {}).opens || 0;
    plot.dataset.panel = String(first);
    const shown = document.createElement('span');
    shown.className = 'shown';
    const under = plot.parentElement.querySelector('.under');
    if (under) under.prepend(shown);
    const finding = under && under.querySelector('.finding');
    const whole = finding ? finding.textContent : '';
    const { findings } = layout.meta;
    const say = (index) => {
      plot.dataset.shown = index === null ? '' : parts[index].join(', ');
      const here = findings && index !== null ? findings[index] : '';
      const isNamed = index === null || (here && parts[index].every((part) => here.includes(part)));
      shown.textContent = isNamed ? '' : `Shown: ${parts[index].join(', ')}. `;
      if (!finding || !findings) return;
      finding.textContent = index === null ? whole : here && `${here}.`;
    };
    const row = document.createElement('div');
    row.className = 'choose';
    const selects = [];
    const labels = [];
    const set = (index) => {
      selects.forEach(([select, place]) => { select.value = parts[index][place]; });
      say(index);
    };
    const show = (index) => {
      plot.dataset.panel = String(index);
      set(index);
      draw(plot);
    };
    parts[0].forEach((_, place) => {
      const values = [...new Set(parts.map((part) => part[place]))];
      if (values.length < 2) return;
      const name = factor(values, labels);
      labels.push(name);
      const label = document.createElement('label');
      const select = document.createElement('select');
      values.forEach((value) => select.add(new Option(value, value)));
      select.addEventListener('change', () => {
        const wanted = [...parts[+(plot.dataset.panel ?? plot.dataset.last ?? 0)]];
        wanted[place] = select.value;
        all.setAttribute('aria-pressed', 'false');
        show(nearest(parts, wanted, place));
      });
      label.append(`${name} `, select);
      row.append(label);
      selects.push([select, place]);
    });
    const all = document.createElement('button');
    all.type = 'button';
    all.textContent = `All ${parts.length} at once`;
    all.setAttribute('aria-pressed', 'false');
    all.addEventListener('click', () => {
      const pressed = all.getAttribute('aria-pressed') !== 'true';
      all.setAttribute('aria-pressed', String(pressed));
      if (!pressed) {
        show(+plot.dataset.last || 0);
        return;
      }
      plot.dataset.last = plot.dataset.panel;
      delete plot.dataset.panel;
      say(null);
      draw(plot);
    });
    row.append(all);
    set(first);
    // Who does not see the chart hears what it shows now.
    if (under) under.setAttribute('aria-live', 'polite');
    plot.before(row);
  }

  return { begin, only, rows };
})();
