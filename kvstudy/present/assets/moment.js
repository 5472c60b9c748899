// A part of a run, dragged over, and what ran then: its flame graph, or how that differs from the rest; its
// slow answers; its events. Everything is in the page: no network, no kernel. In an exported page study.js
// draws the chart, elsewhere this does.
(() => {
  'use strict';
  const SHARE_MIN = 0.001;
  const FRAMES_MAX = 4000;
  const GAIN_MIN = 0.005; // a share of all samples is known to about half a percent
  const ROWS_MAX = 12;
  const FRAME_PX = 16;

  const count = (number) => String(Math.round(number)).replace(/\B(?=(\d{3})+(?!\d))/g, '\u202f');
  const counted = (number, thing) => `${count(number)} ${thing}${number === 1 ? '' : 's'}`;
  const escaped = (text) => String(text).replace(/[&<>"]/g, (letter) => `&#${letter.charCodeAt(0)};`);
  const digits = (value) => value.toFixed(value >= 100 ? 0 : value >= 10 ? 1 : 2);
  function latency(us) {
    if (us === null) { return '–'; }
    if (us >= 999500) return `${digits(us / 1e6)} s`;
    return us >= 999.5 ? `${digits(us / 1e3)} ms` : `${digits(us)} µs`;
  }

  // Samples of every node, callees included, from those of the leaves.
  function summed(nodes, leaves) {
    const sums = Float64Array.from(leaves);
    for (let at = nodes.length - 1; at >= 0; at -= 1) {
      const [parent] = nodes[at];
      if (parent >= 0) sums[parent] += sums[at];
    }
    return sums;
  }

  function split(profile, from, to) {
    const inside = new Float64Array(profile.nodes.length);
    const outside = new Float64Array(profile.nodes.length);
    let total = 0;
    profile.leaf.forEach((leaf, sample) => {
      const at = profile.begin_s + (profile.block[sample] + 0.5) * profile.step_s;
      const within = at >= from && at < to;
      (within ? inside : outside)[leaf] += 1;
      total += within;
    });
    return { inside, outside, total, rest: profile.leaf.length - total };
  }

  function kept(sums, total) {
    let share = SHARE_MIN;
    let frames;
    do {
      const least = Math.max(1, share * total);
      frames = sums.reduce((number, samples) => number + (samples >= least), 0);
      if (frames <= FRAMES_MAX) return least;
      share *= 1.25;
    } while (share < 1);
    return total;
  }

  // The lines that async-profiler's page draws: f(8 · name + kind, level, step to the right, width), after
  // d = gain where shares differ.
  function drawn(profile, part, against) {
    const sums = summed(profile.nodes, part.inside);
    const rest = summed(profile.nodes, part.outside);
    const least = kept(sums, part.total);
    const children = new Map();
    profile.nodes.forEach(([parent], at) => {
      if (sums[at] >= least) children.set(parent, [...(children.get(parent) || []), at]);
    });
    const lines = [`d=0;f(3,0,0,${part.total})`];
    let depth = 1;
    let largest = 1;
    let last = 0;
    const nameOf = (at) => profile.names[profile.nodes[at][1]];
    const visit = (parent, level, begin) => {
      let left = begin;
      const own = (children.get(parent) || []).sort((one, other) => (nameOf(one) < nameOf(other) ? -1 : 1));
      own.forEach((at) => {
        const [, name, kind] = profile.nodes[at];
        const gain = sums[at] / part.total - (part.rest ? rest[at] / part.rest : 0);
        const samples = Math.abs(gain) >= GAIN_MIN ? Math.round(gain * part.total) : 0;
        largest = Math.max(largest, Math.abs(samples));
        const difference = against ? `d=${samples && !rest[at] ? 'U' : samples};` : '';
        lines.push(`${difference}f(${8 * (name + 1) + kind},${level},${left - last},${sums[at]})`);
        last = left;
        depth = Math.max(depth, level + 1);
        visit(at, level + 1, left);
        left += sums[at];
      });
    };
    visit(-1, 1, 0);
    return { lines, depth, largest: against ? largest : -1 };
  }

  function moved(profile, part) {
    const shares = new Map();
    profile.nodes.forEach(([, name], at) => {
      const short = profile.names[name].split('/').pop();
      const gain = part.inside[at] / part.total - part.outside[at] / part.rest;
      if (gain) shares.set(short, (shares.get(short) || 0) + gain);
    });
    return [...shares].sort((one, other) => Math.abs(other[1]) - Math.abs(one[1])).slice(0, 3)
      .map(([name, gain]) => `${name} ${gain > 0 ? '+' : '−'}${Math.abs(100 * gain).toFixed(1)} points`)
      .join(', ');
  }

  function differing(profile, part) {
    if (!part.rest) return 'Drag over a part first: the whole run has no rest to differ from.';
    const colours = 'Red: a larger share than in the rest; blue: a smaller one; yellow: only here.';
    return `Self share against the rest: ${moved(profile, part)}. ${colours}`;
  }

  function filled(template, profile, graph, title) {
    const names = JSON.stringify(['all', ...profile.names]).replace(/<\//g, '<\\/');
    const holes = {
      MAXDIFF: graph.largest,
      DEPTH: graph.depth,
      HEIGHT: FRAME_PX * graph.depth,
      TITLE: escaped(title),
      FRAMES: `const cpool = ${names};\n${graph.lines.join('\n')}\n\nsearch();\n`,
    };
    return template.replace(/@(MAXDIFF|DEPTH|HEIGHT|TITLE|FRAMES)@/g, (hole, name) => holes[name]);
  }

  function table(title, heads, rows, all, instead = '') {
    if (!rows.length) return '';
    const why = instead && `<p class="hint unkept">${escaped(instead)}</p>`;
    const which = title === 'Events' ? 'longest' : 'slowest';
    const more = all > rows.length ? `<p class="hint">The ${rows.length} ${which} of ${count(all)}.</p>` : '';
    const cells = (row, tag) => row.map((cell) => `<${tag}>${escaped(cell)}</${tag}>`).join('');
    const head = `<thead><tr>${cells(heads, 'th')}</tr></thead>`;
    const body = `<tbody>${rows.map((row) => `<tr>${cells(row, 'td')}</tr>`).join('')}</tbody>`;
    return `<div><strong>${title}</strong>${why}<table>${head}${body}</table>${more}</div>`;
  }

  function begin(root) {
    root.dataset.ready = 'yes';
    const { runs, template } = JSON.parse(root.querySelector('script.runs').textContent);
    const at = (selector) => root.querySelector(selector);
    const [plot, frame, told, lists] = [at('.plot'), at('iframe'), at('.told'), at('.lists')];
    const [fromInput, toInput, search] = [at('.from'), at('.to'), at('.search')];
    const state = { run: runs[0], from: 0, to: 0, against: false };

    function show() {
      const { run, from, to, against } = state;
      const whole = from <= 0 && to >= run.end_s;
      const answers = run.answers.filter(([due, response]) => due < to && due + response / 1e6 >= from);
      const events = run.events.filter(([, start, ms]) => start < to && start + ms / 1e3 >= from);
      const step = run.step_s;
      const intervals = run.intervals.filter(([start]) => start < to && start + step > from);
      const bySecond = step === 1;
      const named = (start) => (bySecond ? start : `${start.toFixed(2)} – ${(start + step).toFixed(2)} s`);
      const place = whole ? 'The whole run' : `${from.toFixed(2)} – ${to.toFixed(2)} s`;
      const parts = [counted(events.length, 'event')];
      if (run.answers.length) parts.unshift(counted(answers.length, 'slow answer'));
      let note = run.why || '';
      let part = null;
      if (run.profile) {
        part = split(run.profile, whole ? -Infinity : from, whole ? Infinity : to);
        parts.unshift(`${count(part.total)} of ${counted(run.profile.leaf.length, 'CPU sample')}`);
        if (!part.total) note = 'No CPU sample was taken in this part.';
        else if (against) note = differing(run.profile, part);
      }
      told.firstElementChild.textContent = `${place}: ${parts.join(', ')}.`;
      told.lastElementChild.textContent = note;
      const drawable = part && part.total && template && !(against && !part.rest);
      const graph = drawable ? drawn(run.profile, part, against) : null;
      at('.flame').hidden = !graph;
      at('.views').hidden = !run.profile;
      const title = against ? `${place}: difference against the rest` : place;
      if (graph) frame.srcdoc = filled(template, run.profile, graph, title);
      const slowest = [...answers].sort((one, other) => other[1] - one[1]).slice(0, ROWS_MAX);
      const longest = [...events].sort((one, other) => other[2] - one[2]).slice(0, ROWS_MAX);
      // What is known of every part: of its columns the slowest. A part without a slow answer of its own has
      // them, and so has a run that kept none.
      const slowestFirst = [...intervals].sort((one, other) => other[3] - one[3]).slice(0, ROWS_MAX);
      lists.innerHTML = (answers.length
        ? table('Slow answers', ['due at', 'response', 'service', 'connection'],
          slowest.map(([due, response, service, connection]) => (
            [`${due.toFixed(3)} s`, latency(response), latency(service), connection])), answers.length)
        : table(bySecond ? 'Seconds' : 'Columns', [bySecond ? 'second' : 'time', 'answers', 'p99', 'maximum'],
          slowestFirst.map(([start, number, p99, max]) => (
            [named(start), count(number), latency(p99), latency(max)])), intervals.length,
          run.unkept || 'No slow answer was kept of this part.'))
        + table('Events', ['event', 'began at', 'took'],
          longest.map(([kind, start, ms]) => [kind, `${start.toFixed(3)} s`, latency(ms * 1e3)]),
          events.length);
      lists.dispatchEvent(new CustomEvent('kvstudy:listed')); // an exported page has buttons to copy them
    }

    // What is typed may lie outside the run: the part is moved into it, and is as long there.
    function choose(from, to) {
      const end = state.run.end_s;
      const [begin, last] = [Math.min(from, to), Math.max(from, to)];
      const shift = begin >= end ? end - last : last <= 0 ? -begin : 0;
      state.from = Math.max(0, begin + shift);
      state.to = Math.min(end, last + shift);
      [fromInput.value, toInput.value] = [state.from.toFixed(2), state.to.toFixed(2)];
      show();
    }

    function listen() {
      if (plot.dataset.listens) return;
      plot.dataset.listens = 'yes';
      plot.on('plotly_selected', (chosen) => {
        if (chosen && chosen.range && chosen.range.x) choose(...chosen.range.x);
      });
      plot.on('plotly_deselect', () => choose(0, state.run.end_s));
    }

    function draw() {
      const { figure } = state.run;
      const meta = figure.layout.meta || {};
      at('figcaption .title').textContent = meta.title || '';
      at('figcaption .drawn').textContent = `${meta.finding || ''} ${meta.drawn || ''}`.trim();
      plot.stored = JSON.stringify(figure);
      if (window.kvstudy) window.kvstudy.draw(plot);
      else if (window.Plotly) {
        const layout = { ...figure.layout, title: undefined, margin: { ...figure.layout.margin, t: 24 } };
        Plotly.react(plot, figure.data, layout, figure.config).then(listen);
      }
    }

    plot.addEventListener('kvstudy:drawn', listen);
    // A side panel of JupyterLab takes width away, and the window stays as it is.
    if (!window.kvstudy) {
      new ResizeObserver(() => { if (plot.on && plot.clientWidth) Plotly.Plots.resize(plot); }).observe(plot);
    }
    at('.run').addEventListener('change', (event) => {
      state.run = runs[event.target.value];
      draw();
      choose(0, state.run.end_s);
    });
    const unmark = () => { if (plot.on) Plotly.relayout(plot, { selections: [] }); };
    // Who types a begin behind the end moves the part, and does not turn it round; of an empty field the time
    // before stands.
    const chooseTyped = (input) => {
      let [from, to] = [fromInput, toInput].map((one) => (one.value === '' ? NaN : +one.value));
      if (Number.isNaN(from)) from = state.from;
      if (Number.isNaN(to)) to = state.to;
      const length = state.to - state.from;
      if (from >= to && input === fromInput) to = from + length;
      else if (from >= to) from = to - length;
      choose(from, to);
      unmark();
    };
    [fromInput, toInput].forEach((input) => input.addEventListener('change', () => chooseTyped(input)));
    at('.whole').addEventListener('click', () => {
      choose(0, state.run.end_s);
      unmark();
    });
    const view = (against) => () => {
      state.against = against;
      at('.samples').setAttribute('aria-pressed', !against);
      at('.against').setAttribute('aria-pressed', against);
      show();
    };
    at('.samples').addEventListener('click', view(false));
    at('.against').addEventListener('click', view(true));
    const find = () => {
      try {
        frame.contentWindow.search(search.value || false);
      } catch (unfinished) { /* half an expression, or half a page */ }
    };
    search.addEventListener('input', find);
    frame.addEventListener('load', () => { if (search.value) find(); });
    draw();
    choose(0, state.run.end_s);
  }

  const beginAll = () => document.querySelectorAll('.moment:not([data-ready])').forEach(begin);
  beginAll();
  setTimeout(beginAll); // JupyterLab may run this before it shows what it belongs to
})();
