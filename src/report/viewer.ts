/**
 * The program of a report's page, as text: it is put into the page as it stands, with its hash in the page's policy, so that it
 * is the same from the sources and from the build and needs no bundler. It makes elements and sets their text; what a log says
 * never becomes markup.
 */

export const viewerStyle = `
body.report{max-width:76rem}
#controls{display:flex;flex-wrap:wrap;gap:.4rem 1rem;align-items:center;padding:.6rem 0}
@media (min-width:48rem) and (min-height:38rem){#controls{position:sticky;top:0;background:var(--back);z-index:1;max-height:40vh;overflow-y:auto}}
#legend{display:flex;flex-wrap:wrap;gap:.2rem 1rem}
#controls label{display:flex;gap:.35rem;align-items:center}
#controls input[type=search]{font:inherit;padding:.2rem .5rem;border:1px solid var(--edge);border-radius:.3rem;background:var(--card);color:var(--text)}
button{font:inherit;padding:.15rem .6rem;border:1px solid var(--edge);border-radius:.3rem;background:var(--card);color:var(--text);cursor:pointer;text-align:left}
button.critical{border-left:4px solid var(--bad)}
button.warning{border-left:4px solid var(--warn)}
#findings{display:flex;flex-wrap:wrap;gap:.4rem;width:100%;max-height:7rem;overflow-y:auto}
#plots{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,28rem),1fr));gap:1rem}
#plots figure{margin:0;padding:.7rem;background:var(--card);border:1px solid var(--edge);border-radius:.5rem}
#plots svg{min-width:0;touch-action:pan-y;cursor:crosshair}
#plots figcaption button{margin-left:auto;font-size:.8rem}
#legend .swatch{width:.9rem;min-width:0;height:.25rem;margin:0}
.readout{font-size:.82rem;line-height:1.4;margin:.2rem 0 0;min-height:1.4em;font-variant-numeric:tabular-nums;color:var(--dim)}
.several .readout{min-height:2.8em}
.cursor{stroke:var(--dim);stroke-width:1}
.chosen{fill:var(--blue);opacity:.18}
.event{stroke:var(--dim);stroke-dasharray:2 5;opacity:.7}
`;

export const viewer = String.raw`'use strict';
(function () {
var data = JSON.parse(document.getElementById('data').textContent);
var plots = document.getElementById('plots'), controls = document.getElementById('controls');
var W = 560, H = 220, L = 58, R = 10, T = 8, B = 26;
var hues = ['#3b82c4', '#d97706', '#0f9d78', '#c2418a', '#7c5cd6', '#8a8f2a', '#c0503a', '#2a9fb0'];
var grouped = data.metrics.some(function (m) { return m.groups.length > 0; });
plots.classList.toggle('several', data.runs.length > 1);
var state = { zoom: null, grouped: grouped, hidden: {}, log: {}, find: '' };
var frames = [];

function make(name, parent, text) {
  var e = document.createElement(name);
  if (text !== undefined) e.textContent = text;
  if (parent) parent.appendChild(e);
  return e;
}
function svg(name, parent, attributes) {
  var e = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (var k in attributes) e.setAttribute(k, attributes[k]);
  if (parent) parent.appendChild(e);
  return e;
}
function amount(v) {
  if (v === null || v === undefined) return 'not finite';
  var a = Math.abs(v);
  if (a >= 1e9) return +(v / 1e9).toPrecision(3) + 'B';
  if (a >= 1e6) return +(v / 1e6).toPrecision(3) + 'M';
  if (a >= 1e4) return +(v / 1e3).toPrecision(3) + 'k';
  return (a !== 0 && a < 1e-3 ? power(v) : String(+v.toPrecision(3))).replace('-', '\u2212');
}
/** As on the page: 1.2 and the power of ten, small and raised. */
function power(v) {
  var parts = v.toExponential(1).split('e');
  var raised = parts[1].replace('+', '').replace(/[-0-9]/g, function (c) { return c === '-' ? '\u207b' : '\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079'[c]; });
  var head = parts[0].replace('.0', '');
  return (head === '1' || head === '-1' ? head.replace('1', '') : head + '\u00d7') + '10' + raised;
}
function colour(of) { return hues[of % hues.length]; }

/** What is drawn of a metric: groups where there are several runs in one, the others each by itself. */
function linesOf(metric) {
  var out = [];
  metric.runs.forEach(function (line) {
    var group = data.runs[line.of].group;
    var isIn = state.grouped && metric.groups.some(function (g) { return g.of === group; });
    if (!isIn) out.push({ key: 'r' + line.of, name: data.runs[line.of].name, colour: colour(line.of), line: line });
  });
  if (state.grouped) metric.groups.forEach(function (line) {
    out.push({ key: 'g' + line.of, name: data.groups[line.of], colour: colour(line.of), line: line });
  });
  return out;
}
function ends() {
  var from = Infinity, to = -Infinity;
  data.metrics.forEach(function (m) { m.runs.forEach(function (l) {
    if (l.x.length === 0) return;
    from = Math.min(from, l.x[0]); to = Math.max(to, l.x[l.x.length - 1]);
  }); });
  return from <= to ? [from, to] : [0, 1];
}
var all = ends();
function range() { return state.zoom || all; }
function isLog(m) { return state.log[m.metric] === undefined ? m.log : state.log[m.metric]; }

function ticks(low, high, log) {
  var out = [];
  if (log) {
    for (var p = Math.ceil(Math.log10(low) - 1e-9); p <= Math.log10(high) + 1e-9; p++) out.push(Math.pow(10, p));
    while (out.length > 6) out = out.filter(function (_, i) { return i % 2 === 0; });
    return out.length ? out : [low, high];
  }
  var rough = (high - low) / 4, power = Math.pow(10, Math.floor(Math.log10(rough)));
  var step = [1, 2, 5, 10].map(function (f) { return f * power; }).filter(function (s) { return s >= 0.75 * rough; })[0];
  if (!(step > 0)) return [low, high];
  for (var i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9 && out.length < 12; i++) out.push(+(i * step).toPrecision(12));
  return out;
}

function draw(frame) {
  var m = frame.metric, log = isLog(m), x0 = range()[0], x1 = range()[1];
  // As wide as it is shown, so that letters keep their size on a phone.
  W = Math.max(260, Math.round(frame.svg.clientWidth || 560));
  frame.svg.setAttribute('viewBox', '0 0 ' + W + ' ' + H);
  if (!(x1 > x0)) x1 = x0 + 1;
  var shown = linesOf(m).filter(function (l) { return !state.hidden[l.key]; });
  var low = Infinity, high = -Infinity, positive = Infinity;
  shown.forEach(function (l) { l.line.x.forEach(function (x, i) {
    if (x < x0 || x > x1) return;
    [l.line.min[i], l.line.mean[i], l.line.max[i], (l.line.peak || l.line.max)[i]].forEach(function (v) {
      if (v === null) return;
      low = Math.min(low, v); high = Math.max(high, v);
      if (v > 0) positive = Math.min(positive, v);
    });
  }); });
  frame.svg.replaceChildren();
  if (log && !(positive < Infinity)) log = false;
  if (low > high) { low = 0; high = 1; }
  // A KL is seen against its healthy band.
  m.bands.forEach(function (b) {
    if (b.tone !== 'good' || shown.length === 0) return;
    if (b.from > 0) positive = Math.min(positive, b.from);
    if (b.to !== null) high = Math.max(high, b.to);
    if (!log) low = Math.min(low, 0);
  });
  if (log) { low = positive / 1.3; high = high * 1.3; }
  else { var room = high > low ? (high - low) * 0.06 : Math.abs(low) / 10 || 1; low -= room; high += room; }
  function share(v) {
    if (log) return (Math.log(Math.max(v, low)) - Math.log(low)) / (Math.log(high) - Math.log(low));
    return (v / 2 - low / 2) / (high / 2 - low / 2);
  }
  function Y(v) { return +(T + (1 - Math.min(1, Math.max(0, share(v)))) * (H - T - B)).toFixed(2); }
  function X(v) { return +(L + (v - x0) / (x1 - x0) * (W - L - R)).toFixed(2); }
  frame.X = X; frame.x0 = x0; frame.x1 = x1; frame.shown = shown;
  m.bands.forEach(function (b) {
    var from = Math.max(b.from, low), to = Math.min(b.to === null ? Infinity : b.to, high);
    if (to > from) svg('rect', frame.svg, { class: 'band ' + b.tone, x: L, width: W - L - R, y: Y(to), height: Math.max(0, Y(from) - Y(to)) });
  });
  var axis = svg('g', frame.svg, { class: 'axis' });
  ticks(low, high, log).forEach(function (v) {
    svg('path', axis, { d: 'M' + L + ' ' + Y(v) + 'H' + (W - R) });
    svg('text', axis, { x: L - 6, y: Y(v) + 4, 'text-anchor': 'end' }).textContent = amount(v);
  });
  ticks(x0, x1, false).forEach(function (v) {
    if (v >= x0 && v <= x1) svg('text', axis, { x: X(v), y: H - 8, 'text-anchor': X(v) > W - 30 ? 'end' : 'middle' }).textContent = amount(v);
  });
  if (data.runs.length === 1) data.runs[0].events.forEach(function (e) {
    if (e.step < x0 || e.step > x1) return;
    var line = svg('path', frame.svg, { class: 'event', d: 'M' + X(e.step) + ' ' + T + 'V' + (H - B) });
    svg('title', line).textContent = e.text;
  });
  shown.forEach(function (l) {
    var d = '', spread = '', before = false;
    l.line.x.forEach(function (x, i) {
      if (x < x0 || x > x1) return;
      var mean = l.line.mean[i];
      if (mean === null) { before = false; svg('path', frame.svg, { class: 'broken', d: 'M' + (X(x) - 3) + ' ' + (T + 2) + 'l6 6m0 -6l-6 6' }); return; }
      d += before ? 'L' + X(x) + ' ' + Y(mean) : 'M' + X(x) + ' ' + Y(mean) + 'h.01';
      before = true;
      if (l.line.max[i] > l.line.min[i]) spread += 'M' + X(x) + ' ' + Y(l.line.max[i]) + 'V' + Y(l.line.min[i]);
    });
    svg('path', frame.svg, { class: 'extremes', d: spread, stroke: l.colour, 'stroke-opacity': l.line.n ? 0.3 : 0.55, 'stroke-width': l.line.n ? 4 : 1.5, fill: 'none' });
    if (!l.line.n || m.bands.length > 0) svg('path', frame.svg, { class: 'peaks', d: peaks(l.line, x0, x1, X, Y), stroke: l.colour, 'stroke-width': 1.25, fill: 'none' });
    svg('path', frame.svg, { class: 'series', d: d, stroke: l.colour, 'stroke-width': 1.75, fill: 'none' });
  });
  m.levels.forEach(function (v) {
    if (!(v.value > low && v.value < high)) return;
    var g = svg('g', frame.svg, { class: 'level ' + v.tone });
    svg('path', g, { d: 'M' + L + ' ' + Y(v.value) + 'H' + (W - R) });
    svg('text', g, { x: L + 6, y: Y(v.value) - 4 }).textContent = v.label;
  });
  frame.cursor = svg('path', frame.svg, { class: 'cursor', d: '' });
  frame.chosen = svg('rect', frame.svg, { class: 'chosen', x: 0, y: T, width: 0, height: H - T - B });
}

/** What stands out from its place far more than is usual has a line of full strength; what one seed did is not lost in the middle of five. */
function peaks(line, x0, x1, X, Y) {
  var seen = [];
  line.x.forEach(function (x, i) {
    var top = (line.peak || line.max)[i], mean = line.mean[i];
    if (x >= x0 && x <= x1 && top !== null && mean !== null) seen.push({ x: X(x), at: Y(mean), top: Y(top), foot: Y(line.min[i]) });
  });
  function far(reachOf) {
    var all = seen.map(reachOf).sort(function (a, b) { return a - b; });
    return Math.max(7, 4 * (all[all.length >> 1] || 0));
  }
  function up(s) { return s.at - s.top; }
  function down(s) { return s.foot - s.at; }
  var d = '', above = far(up), below = far(down);
  function to(s, end) { d += 'M' + s.x + ' ' + s.at + 'V' + end + 'm-1.5 0h3'; }
  seen.forEach(function (s) {
    if (up(s) > above) to(s, s.top);
    if (down(s) > below && !line.n) to(s, s.foot);
  });
  return d;
}
function nearest(xs, x) {
  var low = 0, high = xs.length - 1;
  while (low < high) { var middle = (low + high) >> 1; if (xs[middle] < x) low = middle + 1; else high = middle; }
  return low > 0 && x - xs[low - 1] < xs[low] - x ? low - 1 : low;
}
function point(frame, x) {
  frame.at = Math.min(frame.x1, Math.max(frame.x0, x));
  frame.cursor.setAttribute('d', 'M' + frame.X(frame.at) + ' ' + T + 'V' + (H - B));
  frame.readout.textContent = frame.shown.filter(function (l) { return l.line.x.length > 0; }).map(function (l) {
    var i = nearest(l.line.x, frame.at);
    var spread = l.line.max[i] > l.line.min[i] ? ' (' + amount(l.line.min[i]) + ' to ' + amount(l.line.max[i]) + ')' : '';
    return l.name + ' at ' + l.line.x[i].toLocaleString('en') + ': ' + amount(l.line.mean[i]) + spread + (l.line.n ? ', n = ' + l.line.n[i] : '');
  }).join('; ');
}
function place(frame, event) {
  var box = frame.svg.getBoundingClientRect();
  var share = ((event.clientX - box.left) / box.width * W - L) / (W - L - R);
  return frame.x0 + Math.min(1, Math.max(0, share)) * (frame.x1 - frame.x0);
}
function redraw() { frames.forEach(function (f) { f.stale = true; if (f.seen) { f.stale = false; draw(f); } }); }
function zoom(from, to) { state.zoom = to > from ? [from, to] : null; reset.hidden = state.zoom === null; redraw(); }

var watcher = new IntersectionObserver(function (entries) {
  entries.forEach(function (e) {
    var frame = frames.filter(function (f) { return f.root === e.target; })[0];
    frame.seen = e.isIntersecting;
    if (frame.seen && frame.stale) { frame.stale = false; draw(frame); }
  });
}, { rootMargin: '300px' });

function figure(metric) {
  var root = make('figure', plots), caption = make('figcaption', root);
  root.dataset.metric = metric.metric;
  make('b', caption, metric.title);
  make('code', caption, metric.theirs.join(', '));
  var toggle = make('button', caption, '');
  var frame = { root: root, metric: metric, stale: true, seen: false };
  frame.svg = svg('svg', root, { viewBox: '0 0 ' + W + ' ' + H, role: 'img', tabindex: 0, 'aria-label': metric.title });
  frame.readout = make('p', root, '');
  frame.readout.className = 'readout';
  function name() { toggle.textContent = isLog(metric) ? 'linear' : 'log'; }
  name();
  toggle.addEventListener('click', function () { state.log[metric.metric] = !isLog(metric); name(); draw(frame); });
  var from = null;
  frame.svg.addEventListener('pointerdown', function (e) { from = place(frame, e); frame.svg.setPointerCapture(e.pointerId); });
  frame.svg.addEventListener('pointermove', function (e) {
    if (!frame.X) return;
    var x = place(frame, e);
    point(frame, x);
    if (from === null) return;
    frame.chosen.setAttribute('x', Math.min(frame.X(from), frame.X(x)));
    frame.chosen.setAttribute('width', Math.abs(frame.X(x) - frame.X(from)));
  });
  frame.svg.addEventListener('pointerup', function (e) {
    var x = place(frame, e), start = from;
    from = null;
    if (start !== null && Math.abs(frame.X(x) - frame.X(start)) > 5) zoom(Math.min(start, x), Math.max(start, x));
    else frame.chosen.setAttribute('width', 0);
  });
  frame.svg.addEventListener('pointercancel', function () { from = null; frame.chosen.setAttribute('width', 0); });
  frame.svg.addEventListener('dblclick', function () { zoom(0, 0); });
  frame.svg.addEventListener('keydown', function (e) {
    var width = frame.x1 - frame.x0, at = frame.at === undefined ? (frame.x0 + frame.x1) / 2 : frame.at;
    if (e.key === 'ArrowRight') point(frame, at + width / 50);
    else if (e.key === 'ArrowLeft') point(frame, at - width / 50);
    else if (e.key === '+') zoom(Math.max(all[0], at - width / 4), Math.min(all[1], at + width / 4));
    else if (e.key === '-' || e.key === 'Escape') zoom(0, 0);
    else return;
    e.preventDefault();
  });
  frames.push(frame);
  watcher.observe(root);
}

var search = make('input', controls);
search.type = 'search'; search.placeholder = 'find a metric'; search.setAttribute('aria-label', 'find a metric');
search.addEventListener('input', function () {
  var wanted = search.value.toLowerCase();
  frames.forEach(function (f) {
    var text = (f.metric.title + ' ' + f.metric.metric + ' ' + f.metric.theirs.join(' ')).toLowerCase();
    f.root.hidden = text.indexOf(wanted) < 0;
  });
});
var reset = make('button', controls, 'whole run');
reset.id = 'reset'; reset.hidden = true;
reset.addEventListener('click', function () { zoom(0, 0); });
var legend = make('div', controls);
legend.id = 'legend';
function box(parent, text, checked, onChange) {
  var label = make('label', parent), input = make('input', label);
  input.type = 'checkbox'; input.checked = checked;
  input.addEventListener('change', function () { onChange(input.checked); });
  make('span', label, text);
  return label;
}
if (grouped) controls.insertBefore(box(controls, 'seeds as one line, with a 95% interval', true, function (on) { state.grouped = on; keys(); redraw(); }), legend);
function keys() {
  legend.replaceChildren();
  var seen = {};
  data.metrics.forEach(function (m) { linesOf(m).forEach(function (l) { seen[l.key] = l; }); });
  if (Object.keys(seen).length < 2) return;
  Object.keys(seen).forEach(function (key) {
    var label = box(legend, seen[key].name, !state.hidden[key], function (on) { state.hidden[key] = !on; redraw(); });
    var s = svg('svg', null, { width: 14, height: 4, class: 'swatch', 'aria-hidden': 'true' });
    svg('rect', s, { width: 14, height: 4, fill: seen[key].colour });
    label.insertBefore(s, label.lastChild);
  });
}
keys();
var list = make('div', controls);
list.id = 'findings';
data.runs.forEach(function (run) { run.findings.forEach(function (finding) {
  var b = make('button', list, (data.runs.length > 1 ? run.name + ': ' : '') + finding.text.replace(/\x60/g, ''));
  b.className = finding.severity;
  b.title = 'zoom to ' + amount(finding.from) + ' - ' + amount(finding.to) + ' ' + data.unit;
  b.addEventListener('click', function () {
    var width = Math.max(finding.to - finding.from, (all[1] - all[0]) / 50) * 0.1;
    zoom(Math.max(all[0], finding.from - width), Math.min(all[1], finding.to + width));
    var frame = frames.filter(function (f) { return finding.metrics.indexOf(f.metric.metric) >= 0; })[0];
    if (frame) { frame.root.hidden = false; frame.root.scrollIntoView({ block: 'center' }); }
  });
}); });
data.metrics.forEach(figure);
var width = innerWidth;
addEventListener('resize', function () { if (innerWidth !== width) { width = innerWidth; redraw(); } });
/** What gets the focus is not scrolled to below the controls, where they stay at the top. */
new ResizeObserver(function () {
  var stays = getComputedStyle(controls).position === 'sticky';
  document.documentElement.style.scrollPaddingTop = stays ? controls.offsetHeight + 'px' : '';
}).observe(controls);
})();
`;
