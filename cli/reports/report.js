// Everything is readable without this script: it sorts tables, shows one step or one point of a
// sweep at a time, and shows on a touch what a mouse sees when it rests.
'use strict';
(function () {
  // A choice shows one article of its section, or all; paper has all points of a sweep anyway.
  function prepare(choice) {
    const section = choice.closest('section');
    const articles = Array.from(section.querySelectorAll('article'));
    const select = choice.querySelector('select');

    function show(name) {
      if (name !== '' && !articles.some(article => article.dataset.name === name)) return false;
      for (const article of articles) article.hidden = name !== '' && article.dataset.name !== name;
      select.value = name;
      return true;
    }

    choice.hidden = false;
    show(articles[0].dataset.name);
    show(select.dataset.first || articles[0].dataset.name);
    show(decodeURIComponent(location.hash.slice(1)) || select.value);
    select.addEventListener('change', () => show(select.value));
  }

  for (const choice of document.querySelectorAll('.choice')) prepare(choice);

  // A slider shows one article of its section; the picture marks the point that it is about.
  function prepareSlide(slide) {
    const articles = Array.from(slide.closest('section').querySelectorAll('article'));
    const input = slide.querySelector('input');

    function show() {
      articles.forEach((article, i) => { article.hidden = i !== Number(input.value); });
      const shown = articles[Number(input.value)];
      slide.querySelector('output').textContent = shown.dataset.name;
      const marks = articles.map(article => article.dataset.mark);
      for (const circle of document.querySelectorAll('svg circle')) {
        const title = circle.querySelector('title');
        if (!title || !marks.some(mark => title.textContent.startsWith(mark))) continue;
        circle.classList.toggle('here', title.textContent.startsWith(shown.dataset.mark));
      }
    }

    slide.hidden = false;
    show();
    input.addEventListener('input', show);
  }

  for (const slide of document.querySelectorAll('.slide')) prepareSlide(slide);

  // Cells carry the exact number in data-value.
  function sortBy(table, column, ascending) {
    const body = table.tBodies[0];
    const value = row => {
      const cell = row.cells[column];
      return cell.dataset.value === undefined ? cell.textContent : Number(cell.dataset.value);
    };
    const compare = (a, b) => {
      const x = value(a), y = value(b);
      return typeof x === 'number' && typeof y === 'number' ? x - y : String(x).localeCompare(y);
    };
    const rows = Array.from(body.rows).sort((a, b) => ascending ? compare(a, b) : compare(b, a));
    for (const row of rows) body.append(row);
    for (const head of table.tHead.rows[0].cells) head.removeAttribute('aria-sort');
    table.tHead.rows[0].cells[column].setAttribute('aria-sort',
                                                   ascending ? 'ascending' : 'descending');
  }

  for (const table of document.querySelectorAll('table.sorted')) {
    Array.from(table.tHead.rows[0].cells).forEach((head, column) => {
      head.classList.add('sortable');
      head.tabIndex = 0;
      const sort = () => sortBy(table, column, head.getAttribute('aria-sort') !== 'ascending');
      head.addEventListener('click', sort);
      head.addEventListener('keydown', event => {
        if (event.key === 'Enter') sort();
      });
    });
  }

  const tip = document.getElementById('tip');
  document.addEventListener('click', event => {
    const shape = event.target.closest('svg rect, svg path, svg circle');
    const title = shape && shape.querySelector('title');
    tip.hidden = !title;
    if (title) tip.textContent = title.textContent;
  });
})();
