// Takes things out of a page: tables as CSV and Markdown, charts as SVG and PNG. Leads from a run's name to
// its folder.
(() => {
  'use strict';
  const RUN = /\d{8}T\d{6}Z-[A-Za-z0-9._-]+/;
  const WIDTH_PX = 1100;
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
    const before = made.textContent;
    try {
      await navigator.clipboard.writeText(content);
    } catch (refused) { // a page from disk may have no clipboard
      const area = document.createElement('textarea');
      area.value = content;
      document.body.append(area);
      area.select();
      document.execCommand('copy');
      area.remove();
    }
    made.textContent = 'copied';
    setTimeout(() => { made.textContent = before; }, 1200);
  }

  const quoted = (cell) => (/[",\n]/.test(cell) ? `"${cell.replace(/"/g, '""')}"` : cell);
  const csv = (rows) => rows.map((row) => row.map(quoted).join(',')).join('\n');
  function markdown([head, ...rows]) {
    const plain = (cell) => cell.replace(/\|/g, '\\|').replace(/\s+/g, ' ');
    const line = (cells) => `| ${cells.map(plain).join(' | ')} |`;
    return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
  }

  // DataTables has rows that are on another page of the table; any other table is what is seen.
  const library = Object.keys(window)
    .filter((name) => name.startsWith('_itables_'))
    .map((name) => window[name])
    .find((value) => value && value.then);
  async function rowsOf(table) {
    const seen = (cell) => cell.textContent.trim();
    const head = [...table.querySelectorAll('thead tr:last-child th')].map(seen);
    const api = await apiOf(table);
    if (api) {
      const rows = api.rows({ search: 'applied', order: 'applied' }).data().toArray();
      return [head, ...rows.map((row) => Array.from(row, (cell) => text(String(cell ?? ''))))];
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
    row.append(`${name}: `, ...buttons);
    return row;
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
      const [run] = letters.data.match(RUN);
      if (!folderOf(run)) return;
      const after = letters.splitText(letters.data.indexOf(run));
      after.data = after.data.slice(run.length);
      const made = document.createElement('a');
      Object.assign(made, { href: folderOf(run), textContent: run, className: 'run' });
      after.before(made);
    });
  }

  document.querySelectorAll('details.table, .prose table').forEach((place) => {
    const inside = () => place.querySelector('table.dataTable') || place.querySelector('table');
    const table = () => (place.matches('table') ? place : inside());
    const copy = (name, written) => button(name, async (made) => {
      copied(written(await rowsOf(table())), made);
    });
    const row = tools('Copy', copy('CSV', csv), copy('Markdown', markdown));
    if (place.matches('table')) { place.after(row); return; }
    place.append(row);
    place.addEventListener('toggle', async () => {
      const api = await apiOf(table());
      if (!api) return;
      api.columns.adjust();
      link(place);
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
    summary.textContent = `Folders of the ${runs.length} runs on this page`;
    const list = document.createElement('ul');
    all.append(summary, list);
    all.addEventListener('toggle', () => {
      if (list.children.length) return;
      runs.forEach((run) => {
        const item = document.createElement('li');
        const made = document.createElement('a');
        Object.assign(made, { href: folderOf(run), textContent: folders.of[run], className: 'run' });
        item.append(made);
        list.append(item);
      });
    });
    document.querySelector('main footer').before(all);
  }

  document.querySelectorAll('figure.chart .plot').forEach((plot) => {
    const name = (plot.closest('figure').querySelector('.title') || {}).textContent || 'chart';
    const filename = name.replace(/[^A-Za-z0-9]+/g, '-').toLowerCase();
    const save = (format) => button(format.toUpperCase(), async () => {
      await window.kvstudy.drawn(plot);
      const [height, scale] = [plot.clientHeight, format === 'png' ? 2 : 1];
      await Plotly.downloadImage(plot, { format, width: WIDTH_PX, height, scale, filename });
    });
    plot.closest('figure').append(tools('Save', save('svg'), save('png')));
    plot.addEventListener('kvstudy:drawn', () => {
      if (plot.dataset.opens) return;
      plot.dataset.opens = 'yes';
      // A mark that names one run leads to its folder.
      plot.on('plotly_click', ({ points }) => {
        const [run] = String(points[0].text || points[0].hovertext || '').match(RUN) || [];
        if (run && folderOf(run)) window.open(folderOf(run), '_blank', 'noopener');
      });
    });
  });
})();
