// Takes things out of a page: tables as CSV and Markdown, charts and flame graphs as SVG and PNG. Leads from
// a run's name to its folder.
(() => {
  'use strict';
  const RUN = /\d{8}T\d{6}Z-[A-Za-z0-9._-]+/;
  const RUNS = new RegExp(RUN, 'g');
  const [WIDTH_PX, TITLE_PX] = [1100, 56];
  const [FRAME_PX, LETTER_PX, FRAME_MIN_PX] = [16, 7, 0.5];
  const FOUND = '#ee00ee'; // as async-profiler colours frames that a search found
  const folders = JSON.parse(document.getElementById('folders').textContent);
  const folderOf = (run) => (folders.of[run] ? `${folders.base}/${folders.of[run]}/` : null);
  function text(html) {
    const holder = document.createElement('div');
    holder.innerHTML = html;
    return holder.textContent.trim();
  }

  function button(name, act) {
    const made = document.createElement('button');
    made.type = 'button';
    made.textContent = name;
    made.addEventListener('click', () => act(made));
    return made;
  }

  async function copied(content, made) {
    made.dataset.name ??= made.textContent; // a second click meets what the first one wrote
    let done = true;
    try {
      await navigator.clipboard.writeText(content);
    } catch (refused) { // a page from disk may have no clipboard
      const area = document.createElement('textarea');
      area.value = content;
      area.style.position = 'fixed'; // nothing scrolls to it
      document.body.append(area);
      area.select();
      done = document.execCommand('copy');
      area.remove();
      made.focus({ preventScroll: true });
    }
    made.setAttribute('aria-live', 'polite');
    made.textContent = done ? 'copied' : 'refused by the browser';
    setTimeout(() => { made.textContent = made.dataset.name; }, 1200);
  }

  const quoted = (cell) => (/[",\r\n]/.test(cell) ? `"${cell.replace(/"/g, '""')}"` : cell);
  const csv = (rows) => rows.map((row) => row.map(quoted).join(',')).join('\n');
  function markdown([head, ...rows]) {
    const plain = (cell) => cell.replace(/[\\|<*`]/g, '\\$&').replace(/\s+/g, ' ');
    const line = (cells) => `| ${cells.map(plain).join(' | ')} |`;
    return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
  }

  // DataTables has rows that are on another page of the table; any other table is what is seen.
  const library = Object.keys(window)
    .filter((name) => name.startsWith('_itables_'))
    .map((name) => window[name])
    .find((value) => value && value.then);
  function seen(cell) {
    const whole = cell.cloneNode(true);
    whole.querySelectorAll('a.run').forEach((made) => { made.textContent = made.title; });
    return whole.textContent.trim();
  }
  // Of several rows of heads, as pandas has them, each column's names one after the other.
  function headOf(table) {
    const rows = [...table.querySelectorAll('thead tr')].map((row) => [...row.cells]
      .flatMap((cell) => Array(cell.colSpan).fill(cell.textContent.trim())));
    const columns = Math.max(...rows.map((row) => row.length));
    return Array.from({ length: columns }, (_, at) => rows.map((row) => row[at]).filter(Boolean).join(' '));
  }
  async function rowsOf(table) {
    const head = headOf(table);
    const api = await apiOf(table);
    if (api) {
      // A number's cell holds it twice: as it is seen, and as it is sorted by.
      const rows = api.rows({ search: 'applied', order: 'applied' }).indexes().toArray();
      const columns = api.columns().indexes().toArray();
      const shown = (row) => (column) => text(String(api.cell(row, column).render('display') ?? ''));
      return [head, ...rows.map((row) => columns.map(shown(row)))];
    }
    return [head, ...[...table.querySelectorAll('tbody tr')].map((row) => [...row.cells].map(seen))];
  }
  async function apiOf(table) {
    const DataTable = library && (await library).default;
    return DataTable && DataTable.isDataTable(table) ? new DataTable.Api(table) : null;
  }

  function tools(name, ...buttons) {
    const row = document.createElement('p');
    row.className = 'tools';
    row.setAttribute('role', 'group');
    row.setAttribute('aria-label', name); // of the buttons, each of which is called by a format
    row.append(`${name}: `, ...buttons);
    return row;
  }

  // Of several runs in a cell each is called by its repeat alone.
  function linkOf(run, name = run) {
    const made = document.createElement('a');
    Object.assign(made, { href: folderOf(run), textContent: name, title: run, className: 'run' });
    return made;
  }
  function link(node) {
    const walker = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
    const found = [];
    while (walker.nextNode()) {
      const letters = walker.currentNode;
      const taken = letters.parentElement.closest('a, script, select, svg, button');
      if (RUN.test(letters.data) && !taken) found.push(letters);
    }
    found.forEach((letters) => {
      const runs = letters.data.match(RUNS);
      const several = runs.length > 1 && letters.parentElement.closest('td');
      const short = (run) => (several && (run.match(/rep\d+.*$/) || [])[0]) || run;
      const parts = letters.data.split(RUNS);
      letters.replaceWith(...runs.flatMap((run, at) => (
        [parts[at], folderOf(run) ? linkOf(run, short(run)) : run])), parts[runs.length]);
    });
  }

  function copying(table) {
    const copy = (name, written) => button(name, async (made) => {
      copied(written(await rowsOf(table())), made);
    });
    return tools('Copy', copy('CSV', csv), copy('Markdown', markdown));
  }

  // What stands below a dragged part is made anew for every part.
  document.querySelectorAll('.moment .lists').forEach((lists) => {
    const equip = () => {
      lists.querySelectorAll('table').forEach((table) => table.after(copying(() => table)));
    };
    lists.addEventListener('kvstudy:listed', equip);
    equip();
  });

  document.querySelectorAll('details.table, .prose table').forEach((place) => {
    const inside = () => place.querySelector('table.dataTable') || place.querySelector('table');
    const row = copying(() => (place.matches('table') ? place : inside()));
    if (place.matches('table')) { place.after(row); return; }
    place.append(row);
    place.addEventListener('toggle', async () => {
      const api = await apiOf(inside());
      if (!api) return;
      link(place);
      api.columns.adjust();
      if (!place.dataset.linked) api.on('draw', () => link(place));
      place.dataset.linked = 'yes';
    });
  });
  link(document.getElementById('content'));

  // What a number rests on: the folder of every run that the page names, in its charts too.
  const runs = Object.keys(folders.of).sort();
  if (runs.length) {
    const all = document.createElement('details');
    all.className = 'runs';
    const summary = document.createElement('summary');
    summary.textContent = runs.length > 1 ? `Folders of the ${runs.length} runs on this page`
      : 'Folder of the run on this page';
    const list = document.createElement('ul');
    all.append(summary, list);
    all.addEventListener('toggle', () => {
      if (list.children.length) return;
      runs.forEach((run) => {
        const item = document.createElement('li');
        item.append(linkOf(run, folders.of[run]));
        list.append(item);
      });
    });
    document.querySelector('main footer').before(all);
  }

  const fileOf = (name) => name.replace(/[^A-Za-z0-9]+/g, '-').toLowerCase();
  function download(content, filename) {
    const made = document.createElement('a');
    Object.assign(made, { href: URL.createObjectURL(content), download: filename });
    made.click();
    setTimeout(() => URL.revokeObjectURL(made.href), 1000);
  }

  // The part of a flame graph that is shown, once more: a rectangle and a name for every frame that can be
  // seen.
  function flameSvg({ levels, root, px, height, background, inverted, pattern }) {
    const holder = document.createElement('div');
    const escaped = (name) => { holder.textContent = name; return holder.innerHTML; };
    const right = root.left + root.width;
    const boxes = levels.flatMap((frames, level) => frames.map((frame) => {
      const left = Math.max(frame.left, root.left);
      const width = (Math.min(frame.left + frame.width, right) - left) * px;
      if (width < FRAME_MIN_PX) return '';
      const x = ((left - root.left) * px).toFixed(1);
      const y = inverted ? FRAME_PX * level : height - FRAME_PX * (level + 1);
      const letters = Math.floor(width / LETTER_PX);
      const named = letters > 2
        ? `<text x="${+x + 3}" y="${y + 12}">${escaped(frame.title.slice(0, letters))}</text>` : '';
      const box = `x="${x}" y="${y}" width="${width.toFixed(1)}" height="${FRAME_PX - 1}"`;
      const colour = pattern && pattern.test(frame.title) ? FOUND : frame.color;
      const drawn = `<rect ${box} fill="${colour}"><title>${escaped(frame.title)}</title></rect>${named}`;
      return level < root.level ? `<g opacity="0.5">${drawn}</g>` : drawn;
    })).join('');
    const size = `width="${Math.ceil(root.width * px)}" height="${height}"`;
    holder.innerHTML = `<svg ${size} font-family="Verdana, sans-serif" font-size="12">`
      + `<rect width="100%" height="100%" fill="${background}"/>${boxes}</svg>`;
    return new XMLSerializer().serializeToString(holder.firstChild);
  }

  document.querySelectorAll('.flame').forEach((flame) => {
    if (!flame.querySelector('form')) return; // a heat map
    const frame = flame.querySelector('iframe');
    const save = (format, act) => button(format.toUpperCase(), () => {
      const page = frame.contentDocument;
      if (!page || !page.getElementById('canvas')) return; // not loaded yet
      act(page, `${fileOf(page.title)}.${format}`);
    });
    flame.append(tools('Save', save('svg', (_, filename) => {
      download(new Blob([flameSvg(frame.contentWindow.shown())], { type: 'image/svg+xml' }), filename);
    }), save('png', (page, filename) => {
      page.getElementById('canvas').toBlob((content) => download(content, filename));
    })));
  });

  document.querySelectorAll('figure.chart .plot').forEach((plot) => {
    const name = (plot.closest('figure').querySelector('.title') || {}).textContent || 'chart';
    // With its title, and which panel it shows, which stand beside it on the page.
    const named = () => {
      const { data, layout } = plot;
      const title = { text: name, subtitle: { text: plot.dataset.shown || '' } };
      const margin = { ...layout.margin, t: layout.margin.t + TITLE_PX };
      return { data, layout: { ...layout, title, margin, autosize: false } };
    };
    // plotly makes one picture of a chart at a time, and refuses the second.
    let saved = Promise.resolve();
    const save = (format) => button(format.toUpperCase(), () => {
      saved = saved.then(async () => {
        await window.kvstudy.drawn(plot);
        const [height, scale] = [plot.clientHeight + TITLE_PX, format === 'png' ? 2 : 1];
        const filename = fileOf([name, plot.dataset.shown].filter(Boolean).join(' '));
        await Plotly.downloadImage(named(), { format, width: WIDTH_PX, height, scale, filename });
      });
    });
    plot.closest('figure').append(tools('Save', save('svg'), save('png')));
    plot.addEventListener('kvstudy:drawn', () => {
      if (plot.dataset.opens) return;
      plot.dataset.opens = 'yes';
      // A mark or a line that names one run leads to its folder.
      plot.on('plotly_click', ({ points: [point] }) => {
        const named = [point.text, point.hovertext, point.customdata, point.data.hovertemplate].join(' ');
        const [run] = named.match(RUN) || [];
        if (run && folderOf(run)) window.open(folderOf(run), '_blank', 'noopener');
      });
    });
  });
})();
