"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const isNumber = !data.classes;
let shown = data.start; // the model on the page

// Evaluation of a row, as jaxrules.predict: a number or category code per column, NaN for a missing
// number, MISSING for a missing category. A level (a boolean, an ordered category) is the number of
// its place. Sums are taken in the same order.

const MISSING = -1, UNSEEN = -2;

const COMPARE = {
  "<": (value, end) => value < end,
  "<=": (value, end) => value <= end,
  ">": (value, end) => value > end,
  ">=": (value, end) => value >= end,
  "==": (value, end) => value === end,
  "in": (code, codes) => codes.includes(code),
  "not in": (code, codes) => !codes.includes(code),
};

function isMissing(value, column) {
  const categorical = column < data.columns.length && data.columns[column].categories !== null;
  return categorical ? value === MISSING : Number.isNaN(value);
}

function passes(test, values) {
  const value = values[test.column];
  if (isMissing(value, test.column)) return test.missing;
  return test.asked !== null && test.asked.every(([operator, end]) => COMPARE[operator](value, end));
}

/** The number of a term from its origin, or the 0/1 indicator of its category. */
function termValue(term, values) {
  const value = values[term.column];
  if (term.category === null) return value - term.origin;
  return Number(term.category === MISSING ? isMissing(value, term.column) : value === term.category);
}

function clipped(term, values) {
  const value = termValue(term, values);
  if (Number.isNaN(value)) return 0;
  return Math.min(Math.max(value, term.lower ?? -Infinity), term.upper ?? Infinity);
}

const sigmoid = (score) => {
  const odds = Math.exp(-Math.abs(score));
  return (score >= 0 ? 1 : odds) / (1 + odds);
};
const logSigmoid = (score) => Math.min(score, 0) - Math.log1p(Math.exp(-Math.abs(score)));

// Not Math.max(...values): tens of thousands of arguments overflow the stack.
const largest = (values) => values.reduce((most, value) => Math.max(most, value), -Infinity);
const smallest = (values) => values.reduce((least, value) => Math.min(least, value), Infinity);

/** exp(score) divided by the sum. */
function normalised(scores) {
  const most = largest(scores), powers = scores.map((score) => Math.exp(score - most));
  const total = powers.reduce((sum, power) => sum + power, 0);
  return powers.map((power) => power / total);
}

/** The prediction for a row: {code} of a class or {value}, shares, scores, and what they rest on. */
function evaluate(program, row) {
  const values = row.slice();
  for (const direction of program.directions) {
    values.push(direction.reduce((sum, term) => sum + term.weights[0] * termValue(term, row), 0));
  }
  const holds = program.tests.map((tests) => tests.every((test) => passes(test, values)));
  if (program.kind === "list") {
    const first = holds.indexOf(true), place = first < 0 ? holds.length : first;
    if (isNumber) return { value: program.values[place], place };
    return { code: program.labels[place], shares: program.shares[place], place };
  }
  const rules = [...holds.keys()].filter((rule) => holds[rule]);
  const terms = program.terms.map((term) => clipped(term, values));
  const scores = program.intercept.map((start, output) => {
    const sum = rules.reduce((total, rule) => total + program.weights[rule][output], start);
    return terms.reduce((total, x, t) => total + x * program.terms[t].weights[output], sum);
  });
  const found = { scores, rules, terms };
  if (isNumber) return { ...found, value: program.link === "log" ? Math.exp(scores[0]) : scores[0] };
  const margins = program.link === "exponential" ? scores.map((score) => 2 * score) : scores;
  if (scores.length === 1) {
    return { ...found, code: Number(scores[0] > program.threshold), shares: [sigmoid(-margins[0]), sigmoid(margins[0])] };
  }
  const shares = normalised(program.link === "softmax" ? margins : margins.map(logSigmoid));
  return { ...found, code: scores.indexOf(largest(scores)), shares };
}

/** A stored row. */
function storedRow(place) {
  return data.rows.map((column) => column[place] ?? NaN);
}

// Elements. Every text goes through text nodes and attributes, never through HTML. Children may be
// in arrays.

function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) element.setAttribute(name, value);
  for (const child of children.flat(Infinity)) element.append(child);
  return element;
}

function draw(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** A new section with a heading and an entry in the navigation; its body is filled later. */
function section(id, title) {
  const body = make("div");
  const heading = make("h2", { id: `${id}-title` }, title);
  document.getElementById("content").append(
    make("section", { id, "aria-labelledby": `${id}-title` }, heading, body));
  document.getElementById("sections").append(
    make("li", {}, make("a", { href: `#${id}` }, title)));
  return body;
}

const paragraph = (...children) => make("p", {}, ...children);
const NONE = "–";

/** A number; only 0 shows as 0. */
function number(value, digits = 5) {
  if (value === null) return NONE;
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e15) return String(value);
  return size >= 1e-4 && size < 1e7 ? String(Number(value.toPrecision(digits))) : value.toExponential(digits - 1);
}

const signed = (value) => (value > 0 ? "+" : "") + number(value);

/** A number of a sum whose numbers are at most `largest`: as `weight_text` in jaxrules/tools/display.py. */
function summand(value, largest, digits = 4) {
  const size = Math.abs(value), sign = value > 0 ? "+" : "", exponent = (x) => Math.floor(Math.log10(x));
  if (size === 0) return "0";
  const decimals = Math.min(digits, 14 - exponent(Math.max(size, largest)));
  const text = value.toFixed(Math.max(decimals, 0));
  if (size >= 5e-3 && decimals >= 0 && Number(text) !== 0) return sign + text;
  return sign + value.toExponential(Math.max(decimals + exponent(size), 3));
}

const largestOf = (rows) => rows.reduce((most, weights) => weights.reduce((so, weight) => Math.max(so, Math.abs(weight)), most), 0);

/** A share in percent; only 0 and 1 show as 0 % and 100 %. */
function percent(share) {
  if (share === null) return NONE;
  if (share > 0 && share < 0.001) return "<0.1 %";
  if (share < 1 && share > 0.999) return ">99.9 %";
  return `${(100 * share).toFixed(1)} %`;
}

// Tables. A column is {name, of: row => number, text or null, show: value => text}.

const sorted = new Map(); // caption -> {column, direction}: the order survives the slider

const asText = (name, of) => ({ name, of, isText: true, style: "text" });
const asRule = (name, of) => ({ name, of, isText: true, style: "text rule" });
const asPlace = (of) => ({ ...asNumber("no.", of), style: "place" });
const asNumber = (name, of, show = number) => ({ name, of, show });

/** A weight as a bar from the middle, to the right if it raises the score, and as a number. */
const asBar = (name, of, tell, most) => ({ name, of, tell: (row) => {
  const weight = of(row), share = most > 0 ? Math.min(50 * Math.abs(weight) / most, 50) : 0;
  const side = weight < 0 ? `right: 50%; width: ${share}%` : `left: 50%; width: ${share}%`;
  return make("span", { class: "weighed" },
    make("span", { class: "bar", "aria-hidden": "true" }, make("span", { class: weight < 0 ? "down" : "up", style: side })),
    make("span", {}, tell(row)));
} });

function compareCells(a, b) {
  if (a === null || b === null) return (a === null) - (b === null); // null last, either way
  return typeof a === "string" ? a.localeCompare(b) : a - b;
}

/** `first` is the place of the column by which it is sorted at first, the largest on top. */
function tableOf(caption, columns, rows, first = -1) {
  if (!rows.length) return paragraph(`${caption}: none.`);
  const body = make("tbody");
  const heads = columns.map((column, place) => {
    const button = make("button", { type: "button" }, column.name);
    button.addEventListener("click", () => {
      const last = sorted.get(caption) ?? { place: first, direction: -1 };
      const again = last && last.place === place;
      // numbers start with the largest, text with A
      sorted.set(caption, { place, direction: again ? -last.direction : column.isText ? 1 : -1 });
      fill();
    });
    return make("th", { scope: "col", class: column.isText ? column.style : `figure ${column.style ?? ""}` }, button);
  });
  function fill() {
    const { place, direction } = sorted.get(caption) ?? { place: first, direction: -1 };
    const order = rows.slice();
    if (place >= 0 && place < columns.length) {
      const { of } = columns[place];
      order.sort((a, b) => {
        const [first, second] = [of(a), of(b)], nulls = first === null || second === null;
        return compareCells(first, second) * (nulls ? 1 : direction);
      });
    }
    heads.forEach((head, k) => {
      if (k === place) head.setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    });
    body.replaceChildren();
    for (const row of order) body.append(make("tr", {}, columns.map(cell(row))));
  }
  fill();
  const table = make("table", {}, make("caption", {}, caption), make("thead", {}, make("tr", {}, ...heads)), body);
  const wide = columns.length > MOST_NARROW ? "scroll wide" : "scroll"; // its rules stay when it scrolls
  return make("div", { class: wide, tabindex: "0", role: "region", "aria-label": caption }, table);
}

const MOST_NARROW = 7; // columns that fit beside rules

const cell = (row) => (column) => {
  const value = column.of(row);
  if (column.isText) return make("td", { class: column.style }, value);
  return make("td", { class: `figure ${column.style ?? ""}` }, column.tell ? column.tell(row) : column.show(value));
};

/** A choice among named values, with its label; `chosen` is called with the place. */
function chooser(id, label, names, chosen, place = 0) {
  const select = make("select", { id }, names.map((name, k) => make("option", { value: k }, name)));
  select.value = String(place);
  select.addEventListener("change", () => chosen(Number(select.value)));
  return make("span", { class: "choice" }, make("label", { for: id }, `${label} `), select);
}

/** What terms mean, where they stand: [term, meaning] each, folded away. */
function meanings(pairs, title = "What the words mean") {
  const list = make("dl", {}, pairs.map(([term, meaning]) => [make("dt", {}, term), make("dd", {}, meaning)]));
  return make("details", { class: "meanings" }, make("summary", {}, title), list);
}

// Intervals with 95 % confidence

const NORMAL = 1.959964;

/** Of a share of n rows (Wilson 1927): it stays within 0 and 1, also for shares of 0 and 1. */
function wilson(share, n) {
  if (!n) return [0, 1];
  const z2 = NORMAL ** 2 / n, middle = (share + z2 / 2) / (1 + z2);
  const half = NORMAL / (1 + z2) * Math.sqrt(share * (1 - share) / n + z2 / (4 * n));
  return [Math.max(middle - half, 0), Math.min(middle + half, 1)];
}

const between = ([low, high]) => `${percent(low)} to ${percent(high)}`;

// Charts: {caption, x, y, series}; an axis is {name, ends, names}, a series {name, points, line; points
// are [x, y, error]; band: [x, low, high] each}; marks are points with a name, and density the bars of
// a histogram, [from, to, share of the highest]. The figures are in a table below, for everyone who
// cannot see the chart.

const WIDTH = 460, HEIGHT = 300, LEFT = 60, RIGHT = 12, TOP = 10, BOTTOM = 44;

function ends(axis, values) {
  if (axis.ends) return axis.ends;
  const low = smallest(values), high = largest(values);
  const room = high > low ? 0.04 * (high - low) : Math.abs(low) / 2 || 1;
  return [low - room, high + room];
}

function ticks([low, high]) {
  const rough = (high - low) / 5, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((k) => k * power).find((size) => size >= rough);
  const first = Math.ceil(low / step), count = Math.floor(high / step) - first + 1;
  return Array.from({ length: Math.max(count, 0) }, (_, k) => (first + k) * step);
}

const SHAPES = [
  (x, y) => draw("circle", { cx: x, cy: y, r: 3.5 }),
  (x, y) => draw("rect", { x: x - 3.2, y: y - 3.2, width: 6.4, height: 6.4 }),
  (x, y) => draw("path", { d: `M${x - 4} ${y + 3.5}L${x + 4} ${y + 3.5}L${x} ${y - 4}Z` }),
  (x, y) => draw("path", { d: `M${x - 4.5} ${y}L${x} ${y - 4.5}L${x + 4.5} ${y}L${x} ${y + 4.5}Z` }),
];
const COLOURS = 7; // of Okabe and Ito, darker or lighter for contrast, with grey and purple
const DASHES = ["none", "6 3", "2 3", "8 3 2 3"];
const colour = (k) => `var(--c${k % COLOURS})`;
const dash = (k) => DASHES[Math.floor(k / COLOURS) % DASHES.length];

function marker(k, x, y) {
  const shape = SHAPES[k % SHAPES.length](x, y);
  shape.setAttribute("style", `fill: ${colour(k)}`);
  return shape;
}

function line(k, path) {
  return draw("path", { d: path, style: `fill: none; stroke: ${colour(k)}; stroke-width: 1.8; stroke-dasharray: ${dash(k)}` });
}

function chart({ caption, x, y, series, diagonal, current, marks = [], density = [] }) {
  const all = series.flatMap((one) => one.points);
  if (!all.length) return paragraph(`${caption}: nothing to draw.`);
  const across = ends(x, all.map((point) => point[0]));
  const up = ends(y, all.flatMap(([, value, error]) => [value - (error ?? 0), value + (error ?? 0)]));
  // Beyond these spans, places overflow or do not differ.
  if ([across, up].some(([low, high]) => !(high - low > 1e-290 && high - low < 1e300))) return paragraph(`${caption}: nothing to draw.`);
  const placeX = (value) => LEFT + ((value - across[0]) / (across[1] - across[0])) * (WIDTH - LEFT - RIGHT);
  const placeY = (value) => HEIGHT - BOTTOM - ((value - up[0]) / (up[1] - up[0])) * (HEIGHT - TOP - BOTTOM);
  const svg = draw("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${caption}. The figures are in the table below.` });
  const named = x.names && x.names.length <= MOST_NAMES;
  for (const tick of named ? [...x.names.keys()] : x.names ? [] : ticks(across)) {
    const at = placeX(tick);
    svg.append(draw("line", { class: "grid", x1: at, x2: at, y1: TOP, y2: HEIGHT - BOTTOM }),
      draw("text", { x: at, y: HEIGHT - BOTTOM + 16, "text-anchor": "middle" }, named ? shortened(x.names[tick], 60 / x.names.length) : number(tick, 4)));
  }
  for (const [from, to, share] of density) {
    const height = 0.25 * share * (HEIGHT - TOP - BOTTOM);
    svg.append(draw("rect", { class: "density", x: placeX(from), width: Math.max(placeX(to) - placeX(from) - 0.5, 0.5), y: HEIGHT - BOTTOM - height, height }));
  }
  for (const tick of ticks(up)) {
    const at = placeY(tick);
    svg.append(draw("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: at, y2: at }),
      draw("text", { x: LEFT - 6, y: at + 4, "text-anchor": "end" }, number(tick, 4)));
  }
  svg.append(draw("path", { class: "axis", d: `M${LEFT} ${TOP}V${HEIGHT - BOTTOM}H${WIDTH - RIGHT}` }),
    draw("text", { x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 8, "text-anchor": "middle" }, x.name),
    draw("text", { x: 14, y: (TOP + HEIGHT - BOTTOM) / 2, "text-anchor": "middle", transform: `rotate(-90 14 ${(TOP + HEIGHT - BOTTOM) / 2})` }, y.name));
  if (diagonal) {
    const [low, high] = [Math.max(across[0], up[0]), Math.min(across[1], up[1])];
    svg.append(draw("line", { class: "axis", "stroke-dasharray": "4 4", x1: placeX(low), y1: placeY(low), x2: placeX(high), y2: placeY(high) }));
  }
  series.forEach((one, k) => {
    if (one.band) {
      const [lows, highs] = [1, 2].map((end) => one.band.map((point) => `${placeX(point[0])} ${placeY(point[end])}`));
      svg.append(draw("path", { d: `M${[...highs, ...lows.reverse()].join("L")}Z`, style: `fill: ${colour(k)}; opacity: 0.18; stroke: none` }));
    }
    const spots = one.points.map(([a, b, error]) => [placeX(a), placeY(b), error]);
    if (one.line) svg.append(line(k, `M${spots.map(([a, b]) => `${a} ${b}`).join("L")}`));
    spots.forEach(([a, b], place) => {
      const error = one.points[place][2];
      if (error) svg.append(line(k, `M${a} ${placeY(one.points[place][1] - error)}V${placeY(one.points[place][1] + error)}`));
      if (!one.bare) svg.append(marker(k, a, b));
    });
    if (current !== undefined) svg.append(draw("circle", { class: "axis", cx: spots[current][0], cy: spots[current][1], r: 8, "stroke-width": 2 }));
  });
  for (const { x: a, y: b, k } of marks) {
    svg.append(draw("circle", { cx: placeX(a), cy: placeY(b), r: 7, class: "mark", style: `stroke: ${colour(k ?? 0)}` }));
  }
  const told = marks.length ? make("p", { class: "note" }, marks.map((one) => one.name).join(" ")) : "";
  return make("figure", { style: "margin: 0.5rem 0" }, make("figcaption", {}, make("h3", {}, caption)), svg, legend(series), told, pointTable(caption, x, y, series));
}

const MOST_NAMES = 12;

function shortened(text, most) {
  const size = Math.max(Math.floor(most), 3);
  return text.length > size ? `${text.slice(0, size - 1)}\u2026` : text;
}

function legend(series) {
  if (series.length < 2) return "";
  return make("ul", { class: "legend" }, ...series.map((one, k) => {
    const sample = draw("svg", { viewBox: "0 0 32 12", "aria-hidden": "true" });
    if (one.line) sample.append(line(k, "M0 6H32"));
    if (!one.bare) sample.append(marker(k, 16, 6));
    return make("li", {}, sample, one.name);
  }));
}

function pointTable(caption, x, y, series) {
  const rows = series.flatMap((one) => one.points.map((point) => [one.name, ...point]));
  const across = x.names ? asText(x.name, (row) => x.names[row[1]]) : asNumber(x.name, (row) => row[1]);
  const columns = [across, asNumber(y.name, (row) => row[2])];
  if (series.length > 1) columns.unshift(asText("line", (row) => row[0]));
  if (series.some((one) => one.points.some((point) => point.length > 2))) {
    columns.push(asNumber(series.error ?? "", (row) => row[3] ?? null));
  }
  const details = make("details", {}, make("summary", {}, "The figures as a table"));
  details.addEventListener("toggle", () => { // made when it is opened
    if (details.open && details.children.length < 2) details.append(tableOf(`${caption}: figures`, columns, rows));
  });
  return details;
}

// Sections

function comparisonSection() {
  const body = section("comparison", "Comparison"), { caption, risk, rows, fronts } = data.comparison;
  body.append(paragraph(caption), tableOf("Methods, settings chosen without the held-out rows", [
    asText("method", (row) => row.method),
    asNumber(`risk (${risk})`, (row) => row.risk),
    asNumber("standard error", (row) => row.standard_error),
    asNumber("complexity", (row) => row.complexity),
    asNumber("p against the best", (row) => row.p_value, (p) => p !== null && p < 0.001 ? "<0.001" : number(p, 3)),
    asNumber("folds", (row) => row.folds),
    asNumber("seconds per fold", (row) => row.seconds, (value) => number(value, 3)),
    asText("chosen most often", (row) => row.setting),
    asText("notes", (row) => row.notes),
  ], rows));
  const series = Object.entries(fronts).map(([name, points]) => ({
    name, line: true,
    points: points.filter((point) => point[1] !== null && point[2] !== null)
      .map(([, complexity, value, error]) => [complexity, value, error ?? 0]),
  })).filter((one) => one.points.length);
  series.error = "standard error";
  body.append(chart({ caption: "Risk on held-out rows against complexity, all settings", x: { name: "complexity" }, y: { name: `risk (${risk})` }, series }));
  body.append(paragraph(data.models.length
    ? `The rest of this report is about ${data.models[0].label}, refitted to the rows given.`
    : "None of the methods yields a rule model or a linear path, so there are no rules to show."));
}

const isPath = data.kind === "path";

/** What a model of the page is called. */
const modelNoun = isPath ? "model" : data.near_optimal?.noun ?? "model";
const capital = (text) => text[0].toUpperCase() + text.slice(1);

/** The slider: over the models of a path, or the near-optimal models. */
function sliderSection() {
  const body = section("path", isPath ? "Path" : `Near-optimal ${modelNoun}s`), near = data.near_optimal;
  const slider = make("input", { type: "range", id: "size", min: 0, max: data.models.length - 1, step: 1, value: shown });
  const output = make("output", { for: "size", id: "size-shown" });
  const figure = make("div"), name = isPath ? "Model along the path" : capital(modelNoun);
  if (near) body.append(...near.said.map((text) => paragraph(text)), ...near.notes.map((text) => make("p", { class: "note" }, text)),
    ...(near.count > data.models.length ? [paragraph(`This report shows the best ${data.models.length} of ${near.count}.`)] : []));
  body.append(make("div", { class: "slider" }, make("label", { for: "size" }, name), slider, output));
  body.append(paragraph(`The sections below show the chosen ${modelNoun}.`));
  const risk = data.models[0].quality.risk[0];
  const columns = [
    asText(modelNoun, (one) => one.label),
    asNumber("complexity", (one) => one.complexity),
    ...(near ? nearColumns(near) : []),
    asNumber(risk, (one) => one.quality.figures[risk]),
    ...(isNumber ? [asNumber("R²", (one) => one.quality.figures["R²"])]
      : [asNumber("accuracy", (one) => one.quality.figures.accuracy, percent)]),
  ];
  const table = tableOf(isPath ? "Models of the path" : `${capital(modelNoun)}s, the best first`, columns, data.models);
  body.append(...(isPath ? [make("div", { class: "side" }, figure, table)] : [table, ...sideBySide(near)]));
  slider.addEventListener("input", () => { shown = Number(slider.value); show(); });
  return () => {
    const one = data.models[shown];
    const text = `${shown + 1} of ${data.models.length}: ${one.label}, complexity ${one.complexity}, ${risk} ${number(one.quality.figures[risk])}`;
    output.replaceChildren(text);
    slider.setAttribute("aria-valuetext", text);
    if (isPath) figure.replaceChildren(chart({
      caption: "Risk against complexity; the ring marks the chosen model", current: shown,
      x: { name: "complexity" }, y: { name: risk },
      series: [{ name: "path", line: true, points: data.models.map((model) => [model.complexity, model.quality.figures[risk]]) }],
    }));
  };
}

/** How far each near-optimal model is from the best one: in its objective, and in what it predicts. */
function nearColumns({ objectives, differs, amount }) {
  const place = (one) => data.models.indexOf(one);
  const apart = isNumber ? `rows more than ${number(amount, 3)} off the first` : "rows of another class than the first's";
  return [
    asNumber("objective", (one) => objectives[place(one)]),
    asNumber("worse by", (one) => objectives[0] ? Math.abs(objectives[place(one)] / objectives[0] - 1) : null, percent),
    asNumber(apart, (one) => differs[place(one)], percent),
  ];
}

/** Two near-optimal models beside each other, and the rules of all. */
function sideBySide({ noun, part, count, rules }) {
  const host = make("div", { class: "side" });
  const choices = [0, Math.min(1, data.models.length - 1)].map((place, side) => {
    const options = data.models.map((model, k) => make("option", { value: k }, model.label));
    options[place].setAttribute("selected", "");
    return make("select", { id: `side-${side}`, "aria-label": `${capital(noun)} on the ${side ? "right" : "left"}` }, ...options);
  });
  const columns = choices.map((choice) => make("div", {}, choice, make("div")));
  function fill() {
    const programs = choices.map((choice) => data.models[Number(choice.value)].program);
    columns.forEach((column, side) => {
      const mine = programs[side], others = programs[1 - side].texts;
      const items = (mine.kind === "list" ? listLines : sumLines)(mine).map(([text, says], rule) => {
        const own = rule < mine.texts.length && !others.includes(mine.texts[rule]);
        return make("li", {}, own ? make("mark", {}, text) : text, ` ${says}`, own ? " (only here)" : "");
      });
      column.lastChild.replaceChildren(make("ol", {}, ...items));
    });
  }
  choices.forEach((choice) => choice.addEventListener("change", fill));
  fill();
  host.append(...columns);
  const most = largestOf(rules.map((row) => row.weights.map((weight) => weight ?? 0)));
  const weighed = (name, end) => asNumber(name, (row) => row.weights[end], (weight) => summand(weight, most));
  const where = rules.some((row) => row.where) ? [asText("found in", (row) => row.where)] : [];
  const shares = (title, some) => tableOf(title, [
    asRule(part, (row) => row.text), asNumber(`${noun}s`, (row) => row.count), asNumber("share", (row) => row.count / count, percent),
    ...(most ? [weighed("least weight", 0), weighed("largest weight", 1)] : []), ...where,
  ], some);
  const rest = rules.slice(MOST_FREQUENT), title = `${capital(part)}s, and in how many of the ${count} near-optimal ${noun}s each is`;
  return [make("h3", {}, "Side by side"), host, make("h3", {}, `What the ${noun}s share`), shares(title, rules.slice(0, MOST_FREQUENT)),
    ...(rest.length ? [make("details", {}, make("summary", {}, `The ${rest.length} less frequent ${part}s`), shares(`Less frequent ${part}s`, rest))] : [])];
}

const MOST_FREQUENT = 20;

/** [conditions, label] of every rule of a list, and of the default. */
function listLines(program) {
  return program.labels.map((label, rule) => {
    const says = `${data.target} = ${data.classes[label]}`;
    if (rule === program.texts.length) return [rule ? "ELSE" : "ALWAYS", says];
    return [`${rule ? "ELSE IF" : "IF"} ${program.texts[rule]}`, `THEN ${says}`];
  });
}

/** [conditions, weight] of every rule of a sum, and of the intercept. */
function sumLines({ texts, weights, intercept }) {
  const most = largestOf([...weights, intercept]);
  return [...texts, "always"].map((text, rule) => [text, `adds ${summand((weights[rule] ?? intercept)[0], most)}`]);
}

/** What the rate of a rule is the rate of, as the head of a column. */
function rateName() {
  if (isNumber) return `mean ${data.target}`;
  return data.classes.length > 2 ? "share of its class" : `share of ${data.classes[1]}`;
}

const rateText = (row) => (rate) => isNumber ? number(rate) : percent(rate);

/** The rules of a model with their figures: what the tables of rules show. */
function ruleRows(model) {
  const { program, rules } = model;
  const rows = rules.map((figures, rule) => ({ ...figures, text: program.texts[rule] ?? "otherwise", place: rule + 1 }));
  if (program.kind === "list" && isNumber) return rows.map((row, rule) => ({ ...row, value: program.values[rule] }));
  if (program.kind === "list") return rows.map((row, rule) => ({ ...row, share: program.shares[rule][program.labels[rule]] }));
  rows.forEach((row, rule) => { row.weights = program.weights[rule]; row.digits = 4; });
  const none = { rows: null, coverage: null, rate: null, lift: null, groups: [] };
  const terms = program.terms.map((term) => ({ ...none, text: termText(term), weights: term.weights, digits: factorDigits(term) }));
  return [...rows, ...terms].map((row, place) => ({ ...row, place: place + 1, importance: model.importances[place] ?? null }));
}

/** The columns that the parts of a program read: a set of places for every rule, then every term. */
function columnsRead(program) {
  const own = (column) => column < data.columns.length ? [column]
    : program.directions[column - data.columns.length].map((term) => term.column);
  return [...program.tests.map((tests) => new Set(tests.flatMap((test) => own(test.column)))),
    ...program.terms.map((term) => new Set(own(term.column)))];
}

const filter = { text: "", column: 0, output: 0 }; // column 0: any; output 0: all classes

/** Controls above the rules: they stay while the table below is filled again. */
function ruleControls(fill) {
  const parts = [];
  const text = make("input", { type: "search", id: "rule-text", autocomplete: "off" });
  text.addEventListener("input", () => { filter.text = text.value.toLowerCase(); fill(); });
  parts.push(make("span", { class: "choice" }, make("label", { for: "rule-text" }, "Rules with the text "), text));
  parts.push(chooser("rule-column", "with the column", ["any", ...data.columns.map((column) => column.name)],
    (place) => { filter.column = place; fill(); }));
  if (!isNumber && data.classes.length > 2 && data.models[shown].program.kind !== "list") {
    parts.push(chooser("rule-class", "weights of", ["all classes", ...data.classes], (place) => { filter.output = place; fill(); }));
  }
  return make("div", { class: "controls" }, parts);
}

/** The decimals of a factor of a term, so that the product has four; 0 if the term has no ends. */
function factorDigits({ lower, upper }) {
  const size = Math.max(Math.abs(lower ?? Infinity), Math.abs(upper ?? Infinity));
  return size < Infinity ? 4 + Math.max(Math.ceil(Math.log10(size)), 0) : 0;
}

function termText(term) {
  const isClipped = term.lower !== null || term.upper !== null;
  return `${term.text}${isClipped ? `, clipped to [${number(term.lower ?? -Infinity)}, ${number(term.upper ?? Infinity)}]` : ""}`;
}

function showRules(body) {
  if (!body.firstChild) {
    const table = make("div");
    body.append(make("p", { id: "heading" }), ruleControls(() => fillRules(table)), table);
  }
  const model = data.models[shown];
  body.firstChild.replaceChildren(`${model.label}. ${model.heading}`);
  fillRules(body.lastChild);
}

function fillRules(body) {
  const model = data.models[shown], { program } = model, isList = program.kind === "list";
  const columns = [asPlace((row) => row.place), asRule(isList ? "conditions" : "rule", (row) => row.text)];
  const several = !isNumber && data.classes.length > 2;
  if (isList && isNumber) {
    columns.push(asNumber("then", (row) => row.value));
  } else if (isList) {
    columns.push(asText("then", (row) => data.classes[row.target]), asNumber("p", (row) => row.share, percent));
  } else {
    const outputs = several && program.intercept.length > 1 ? data.classes.map((name) => `weight of ${name}`) : ["weight"];
    const most = largestOf([program.intercept, ...program.weights]), longest = largestOf(program.weights);
    const told = (row, weight) => row.digits ? summand(weight, most, row.digits) : signed(weight);
    outputs.forEach((name, k) => {
      if (outputs.length > 1 && filter.output && filter.output !== k + 1) return;
      columns.push(asBar(name, (row) => row.weights[k], (row) => told(row, row.weights[k]), longest));
    });
    if (model.points) columns.push(asNumber(`points of ${data.classes[model.points.class]}`, (row) => toPoints(model, row.weights[0]), signed));
    columns.push(asNumber("importance", (row) => row.importance, (value) => number(value, 3)));
  }
  if (program.texts.length || isList) {
    columns.push(asNumber(isList ? "rows decided" : "rows", (row) => row.rows), asNumber("coverage", (row) => row.coverage, percent),
      asNumber(isList && !isNumber ? "share of its label" : rateName(), (row) => row.rate, rateText()),
      asNumber(isNumber ? "difference from the mean of all" : "lift", (row) => row.lift, isNumber ? signed : (lift) => number(lift, 3)));
    if (several && !isList) columns.push(asText("its class", (row) => data.classes[row.target] ?? ""));
  }
  const caption = isList ? "Rules, in order" : "Rules and terms";
  const notes = isList && isNumber ? "Mean and difference are for the rows given." : isList ? "p is the share of the label among the training rows that the rule decided; share and lift are for the rows given." : several
    ? "Its class is the class for which the rule has its largest weight." : "";
  const reads = columnsRead(program), every = ruleRows(model);
  const rows = every.filter((row, place) => row.text.toLowerCase().includes(filter.text)
    && (!filter.column || (reads[place] ?? new Set()).has(filter.column - 1)));
  const first = isList ? -1 : columns.findIndex((column) => column.name === "importance");
  const told = rows.length < every.length ? paragraph(`${rows.length} of ${every.length} shown.`) : "";
  body.replaceChildren(tableOf(caption, columns, rows, first), told, notes ? paragraph(notes) : "", meanings(RULE_WORDS(isList)));
}

/** Points of a card, whole up to rounding. */
const toPoints = (model, score) => Number((model.points.per_unit * score).toFixed(6));

const RULE_WORDS = (isList) => [
  ...(isList ? [] : [
    ["Weight", `What the rule adds to the score of a row for which it holds. A positive weight raises ${isNumber ? "the prediction" : data.classes.length > 2 ? "the score of that class" : `the chance of ${data.classes[1]}`}, a negative one lowers it.`],
    ["Importance", "How much the rule makes the scores of the rows given differ: the standard deviation of what it adds. A rule that holds for almost all rows, or for almost none, has little."],
  ]),
  [isList ? "Rows decided" : "Rows, coverage", isList ? "The rows for which the rule is the first that holds, and their share of all rows." : "The rows for which the rule holds, and their share of all rows."],
  [isList && !isNumber ? "Share of its label" : rateName(), isNumber ? "The mean over the rows of the rule." : "Of the rows of the rule, the share with this outcome."],
  isNumber ? ["Difference from the mean of all", "The mean over the rows of the rule minus the mean over all rows."]
    : ["Lift", "This share divided by the share among all rows: 2 means twice as frequent as usual."],
];

function showGroups(body) {
  const model = data.models[shown], rows = ruleRows(model).filter((row) => row.groups.length);
  const sizes = data.groups.map(([name, size], k) => [name, size, ...model.quality.groups[k].slice(1)]);
  const columns = [asText("group", (row) => row[0]), asNumber("rows", (row) => row[1])];
  if (isNumber) {
    columns.push(asNumber(`mean ${data.target}`, (row) => row[2]), asNumber("mean prediction", (row) => row[3]), asNumber("root mean squared error", (row) => row[4]));
  } else {
    columns.push(asNumber("accuracy", (row) => row[2], percent));
    if (data.classes.length === 2) columns.push(asNumber(`predicted ${data.classes[1]}`, (row) => row[3], percent),
      asNumber("false positives", (row) => row[4], percent), asNumber("false negatives", (row) => row[5], percent));
  }
  body.replaceChildren(paragraph(ratedText()), tableOf("Quality by group", columns, sizes),
    tableOf(`Rules by group: for which share of the group each ${model.program.kind === "list" ? "decides" : "holds"}, and ${model.program.kind === "list" && !isNumber ? "share of its label" : rateName()} among these rows`, [
      asRule("rule", (row) => row.text),
      ...data.groups.flatMap(([name], k) => [
        asNumber(`${name}: rows`, (row) => row.groups[k][0], percent),
        asNumber(`${name}: ${isNumber ? "mean" : "share"}`, (row) => row.groups[k][1], rateText()),
      ]),
    ], rows));
}

/** Which models are rated on which rows, if it is not the shown model on the rows given. */
function ratedText() {
  if (data.kind !== "comparison") return "";
  return data.held_out
    ? `Figures are for held-out rows: in each of ${data.held_out.folds} folds, the rows are predicted by a model that was chosen and fitted without them, as in the table of the comparison.`
    : "The model was fitted to these rows, so the figures are optimistic. The table of the comparison has its risk on held-out rows.";
}

function showQuality(body) {
  const { quality, program, threshold } = data.models[shown];
  const curves = quality.curves ?? [], n = data.table.rows;
  const areas = curves.map((one) => [`area under the ROC curve${data.classes.length > 2 ? ` of ${data.classes[one.class]}` : ""}`, one.auc,
    one.auc_error === null ? "" : between([Math.max(one.auc - NORMAL * one.auc_error, 0), Math.min(one.auc + NORMAL * one.auc_error, 1)])]);
  if (curves.length === 1 && curves[0].auc !== null) areas.push(["Kolmogorov-Smirnov distance", curves[0].ks, ""]);
  const own = Object.entries(quality.figures).map(([name, value]) => [name, value, name === "accuracy" ? between(wilson(value, n)) : ""]);
  const figures = make("div", {}, tableOf("Figures", [
    asText("figure", (row) => row[0]), asNumber("value", (row) => row[1]), ...(isNumber ? [] : [{ ...asText("95 % interval", (row) => row[2]), style: "short" }]),
  ], [...own, ...areas]), meanings(FIGURE_WORDS.filter(([name]) => [...own, ...areas].some((row) => row[0].startsWith(name)))));
  const calibration = (series, name) => chart({
    caption: "Calibration: mean prediction and what was observed, in bins of the prediction", diagonal: true,
    x: { name: "mean prediction", ends: isNumber ? undefined : [0, 1] }, y: { name, ends: isNumber ? undefined : [0, 1] }, series,
  });
  const points = (bins) => bins.map(([predicted, observed]) => [predicted, observed]);
  const band = (bins) => bins.length < 2 ? undefined : bins.map(([predicted, observed, rows]) => [predicted, ...wilson(observed, rows)]);
  if (isNumber) {
    const residuals = drawnRows().map((place) => {
      const value = data.held_out ? data.held_out.predicted[place] : evaluate(program, storedRow(place)).value;
      return [value, data.truth[place] - value];
    }).filter((point) => point.every(Number.isFinite));
    const drawn = stored > MOST_DRAWN ? `${MOST_DRAWN} rows, evenly spaced among ${storedText()}` : storedText();
    body.replaceChildren(paragraph(ratedText()), figures, make("div", { class: "side" },
      chart({ caption: `Residuals of ${drawn}`, x: { name: "prediction" }, y: { name: `${data.target} - prediction` }, series: [{ name: "rows", points: residuals }] }),
      calibration([{ name: "rows", line: true, points: points(quality.calibration) }], `mean ${data.target}`)));
    return;
  }
  const drawn = quality.curves.filter((one) => one.roc !== null);
  const name = (one) => data.classes[one.class];
  const roc = chart({
    caption: "ROC curve: how many of the class are found, for how many false alarms", diagonal: true, x: { name: "false positive rate", ends: [0, 1] }, y: { name: "true positive rate", ends: [0, 1] },
    series: drawn.map((one) => ({ name: name(one), line: true, bare: true, points: one.roc,
      band: drawn.length > 1 ? undefined : one.roc.map(([x, y]) => [x, ...wilson(y, one.rows[0])]) })),
    marks: drawn.map((one, k) => ({ ...atWork(quality, one, "roc"), k })),
  });
  const precision = chart({
    caption: "Precision and recall: how many alarms are right, and how many of the class are found",
    x: { name: "recall (true positive rate)", ends: [0, 1] }, y: { name: "precision", ends: [0, 1] },
    series: drawn.map((one) => {
      const steps = alarmsAlong(one);
      return { name: name(one), line: true, bare: true, points: steps.map(({ recall, right }) => [recall, right]),
        band: drawn.length > 1 ? undefined : steps.map(({ recall, right, alarms }) => [recall, ...wilson(right, alarms)]) };
    }),
    marks: drawn.map((one, k) => ({ ...atWork(quality, one, "precision"), k })).filter((one) => one.y !== null),
  });
  const confusion = tableOf("Rows by class and prediction", [
    asText("class", (row) => row[0]), ...data.classes.map((name, k) => asNumber(`predicted ${name}`, (row) => row[1][k])),
  ], data.classes.map((name, k) => [name, quality.confusion[k]]));
  body.replaceChildren(paragraph(ratedText()), paragraph(threshold), make("div", { class: "side" }, figures, confusion), make("div", { class: "side" }, roc, precision,
    calibration(quality.curves.map((one) => ({ name: data.classes[one.class], line: true, points: points(one.calibration),
      band: quality.curves.length > 1 ? undefined : band(one.calibration) })),
    data.classes.length > 2 ? "share of the class" : `share of ${data.classes[1]}`)),
  paragraph("Rings mark the operating point: the labels that the model gives. Bands are pointwise intervals with 95 % confidence; with several classes they are left out."));
}

/** Along a ROC curve, the number of alarms, the share of them that is right, and the recall. */
function alarmsAlong({ roc, rows: [positive, negative] }) {
  return roc.map(([x, y]) => ({ alarms: Math.round(x * negative + y * positive), recall: y, right: y * positive / (x * negative + y * positive) }))
    .filter((step) => step.alarms > 0);
}

/** Where the labels of the model lie on the curve of a class, and what this means. */
function atWork({ confusion }, one, kind) {
  const k = one.class, [positive, negative] = one.rows;
  const found = confusion[k][k], alarms = confusion.reduce((sum, row) => sum + row[k], 0), wrong = alarms - found;
  const right = alarms ? found / alarms : null;
  const said = data.classes[k];
  if (kind === "precision") {
    return { x: found / positive, y: right, name: `As used: ${alarms} rows are called ${said}, ${percent(right)} of them rightly (${between(wilson(right ?? 0, alarms))}).` };
  }
  return { x: wrong / negative, y: found / positive,
    name: `As used: ${percent(found / positive)} of ${said} are found (${between(wilson(found / positive, positive))}), and ${percent(wrong / negative)} of the others are called ${said}.` };
}

const FIGURE_WORDS = [
  ["accuracy", "The share of rows with the right label."],
  ["mean logistic loss", "How far the probabilities are from the truth; a wrong label that was called certain costs most. Less is better; ln 2 = 0.693 is that of a coin."],
  ["mean exponential loss", "As a model of two classes is fitted here: exp(-margin) on average. Less is better; 1 is that of score 0."],
  ["error rate", "The share of rows with a wrong label."],
  ["Brier score", "The mean squared difference between probability and truth. Less is better."],
  ["area under the ROC curve", "Of two rows, one of the class and one not, how often the one of the class gets the higher score. 0.5 is chance, 1 perfect. The Gini coefficient is twice this, less 1."],
  ["Kolmogorov-Smirnov distance", "The largest difference of the rates of true and of false positives over all thresholds."],
  ["R²", "The share of the variance that the predictions explain. 0 is that of the mean."],
  ["root mean squared error", "The root of the mean squared error, in units of the target: large errors count most."],
  ["mean absolute error", "How far predictions are off on average, in units of the target."],
];

const stored = data.truth ? data.truth.length : 0;

function storedText() {
  return stored < data.table.rows ? `the first ${stored} of ${data.table.rows} rows` : `the ${stored} rows given`;
}

const MOST_DRAWN = 2000;

/** The stored rows that a chart draws. */
function drawnRows() {
  const step = Math.max(stored / MOST_DRAWN, 1);
  return Array.from({ length: Math.min(stored, MOST_DRAWN) }, (_, k) => Math.floor(k * step));
}

// Data, settings, certificate

function showSettings(body) {
  const model = data.models[shown], parts = [];
  if (model) {
    parts.push(make("h3", {}, "Certificate"), ...certificate(model.fit));
    parts.push(folded("Settings of the fit", tableOf("Settings of the fit", [asText("setting", (row) => row[0]), asText("value", (row) => row[1])], model.settings)));
  }
  parts.push(make("h3", {}, "Data"), paragraph(`${data.table.rows} rows given.`,
    data.table.target ? ` ${data.target}: ${data.table.target}.` : ""),
  folded("Columns", tableOf("Columns", [asText("column", (row) => row[0]), asText("kind", (row) => row[1]), asNumber("missing", (row) => row[2]), asText("values", (row) => row[3])], data.table.columns)),
  make("p", { class: "hash" }, "SHA-256 of the rows and their target, as the model reads them: ", make("code", {}, data.data_hash), ". Whoever has the rows can make the report again and compare."),
  paragraph(`Written by jaxrules ${data.version} on ${data.date}.`));
  body.replaceChildren(...parts);
}

const folded = (title, ...children) => make("details", {}, make("summary", {}, title), ...children);

/** What the model is for, and lines to sign. */
function signSection() {
  if (data.intended_use === null && !data.sign_off.length) return;
  const body = section("sign-off", "Intended use and sign-off");
  body.append(paragraph(data.intended_use ?? "No intended use was stated."));
  if (!data.sign_off.length) return;
  const heads = ["", "name", "date", "signature"].map((name) => make("th", { scope: "col" }, name || "role"));
  const lines = data.sign_off.map((who) => make("tr", {}, make("th", { scope: "row" }, who), make("td"), make("td"), make("td")));
  body.append(make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Sign-off" },
    make("table", { class: "signed" }, make("caption", {}, "To be signed on paper, or in a copy of this page"), make("thead", {}, make("tr", {}, heads)), make("tbody", {}, lines))));
}

function certificate(fit) {
  if (!fit) return [paragraph("The report was made of a model without its fit, so nothing is known about its optimality.")];
  const proved = fit.bound === null ? "No bound was computed." : `Proved bound: ${number(fit.bound, 7)}, gap ${number(fit.gap, 3)}.`;
  const parts = [paragraph(`Status: ${fit.status}. ${fit.advice}`),
    paragraph(`Objective: ${number(fit.objective, 7)} (${fit.sense === "min" ? "minimised" : "maximised"}). ${proved} ${number(fit.seconds, 3)} seconds.`)];
  if (fit.history.length > 1) {
    const bounds = fit.history.filter((step) => step[2] !== null);
    const series = [{ name: "objective of the best model", line: true, points: fit.history.filter((step) => step[1] !== null).map(([seconds, value]) => [seconds, value]) }];
    if (bounds.length) series.push({ name: "proved bound", line: true, points: bounds.map(([seconds, , bound]) => [seconds, bound]) });
    parts.push(chart({ caption: "Search", x: { name: "seconds" }, y: { name: "objective" }, series }));
  }
  return parts;
}

