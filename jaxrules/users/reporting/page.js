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
  for (const child of children.flat()) element.append(child);
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
const asNumber = (name, of, show = number) => ({ name, of, show });

function compareCells(a, b) {
  if (a === null || b === null) return (a === null) - (b === null); // null last, either way
  return typeof a === "string" ? a.localeCompare(b) : a - b;
}

function tableOf(caption, columns, rows) {
  if (!rows.length) return paragraph(`${caption}: none.`);
  const body = make("tbody");
  const heads = columns.map((column, place) => {
    const button = make("button", { type: "button" }, column.name);
    button.addEventListener("click", () => {
      const last = sorted.get(caption);
      const again = last && last.place === place;
      // numbers start with the largest, text with A
      sorted.set(caption, { place, direction: again ? -last.direction : column.isText ? 1 : -1 });
      fill();
    });
    return make("th", { scope: "col", class: column.isText ? "" : "figure" }, button);
  });
  function fill() {
    const { place, direction } = sorted.get(caption) ?? { place: -1, direction: 1 };
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
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, table);
}

const cell = (row) => (column) => {
  const value = column.of(row);
  if (column.isText) return make("td", { class: column.style }, value);
  return make("td", { class: "figure" }, column.tell ? column.tell(row) : column.show(value));
};

// Charts: {caption, x, y, series}; an axis is {name, ends}, a series {name, points, line, points are
// [x, y, error]}. The figures are in a table below, for everyone who cannot see the chart.

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
const DASHES = ["none", "6 3", "2 3", "8 3 2 3"];
const colour = (k) => `var(--c${k % 6})`;
const dash = (k) => DASHES[Math.floor(k / 6) % DASHES.length];

function marker(k, x, y) {
  const shape = SHAPES[k % SHAPES.length](x, y);
  shape.setAttribute("style", `fill: ${colour(k)}`);
  return shape;
}

function line(k, path) {
  return draw("path", { d: path, style: `fill: none; stroke: ${colour(k)}; stroke-width: 1.8; stroke-dasharray: ${dash(k)}` });
}

function chart({ caption, x, y, series, diagonal, current }) {
  const all = series.flatMap((one) => one.points);
  if (!all.length) return paragraph(`${caption}: nothing to draw.`);
  const across = ends(x, all.map((point) => point[0]));
  const up = ends(y, all.flatMap(([, value, error]) => [value - (error ?? 0), value + (error ?? 0)]));
  const placeX = (value) => LEFT + ((value - across[0]) / (across[1] - across[0])) * (WIDTH - LEFT - RIGHT);
  const placeY = (value) => HEIGHT - BOTTOM - ((value - up[0]) / (up[1] - up[0])) * (HEIGHT - TOP - BOTTOM);
  const svg = draw("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${caption}. The figures are in the table below.` });
  for (const tick of ticks(across)) {
    const at = placeX(tick);
    svg.append(draw("line", { class: "grid", x1: at, x2: at, y1: TOP, y2: HEIGHT - BOTTOM }),
      draw("text", { x: at, y: HEIGHT - BOTTOM + 16, "text-anchor": "middle" }, number(tick, 4)));
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
    const spots = one.points.map(([a, b, error]) => [placeX(a), placeY(b), error]);
    if (one.line) svg.append(line(k, `M${spots.map(([a, b]) => `${a} ${b}`).join("L")}`));
    spots.forEach(([a, b], place) => {
      const error = one.points[place][2];
      if (error) svg.append(line(k, `M${a} ${placeY(one.points[place][1] - error)}V${placeY(one.points[place][1] + error)}`));
      if (!one.bare) svg.append(marker(k, a, b));
    });
    if (current !== undefined) svg.append(draw("circle", { class: "axis", cx: spots[current][0], cy: spots[current][1], r: 8, "stroke-width": 2 }));
  });
  return make("figure", { style: "margin: 0.5rem 0" }, make("figcaption", {}, make("h3", {}, caption)), svg, legend(series), pointTable(caption, x, y, series));
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
  const columns = [asNumber(x.name, (row) => row[1]), asNumber(y.name, (row) => row[2])];
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

/** The slider: over the models of a path, or the near-optimal lists. */
function sliderSection() {
  const body = section("path", isPath ? "Path" : "Near-optimal lists");
  const slider = make("input", { type: "range", id: "size", min: 0, max: data.models.length - 1, step: 1, value: shown });
  const output = make("output", { for: "size", id: "size-shown" });
  const figure = make("div"), name = isPath ? "Model along the path" : "List";
  if (!isPath) body.append(...data.near_optimal.summary.map((text) => paragraph(text)),
    paragraph(`All of them predict the same for ${percent(data.near_optimal.agree)} of the rows given.`),
    ...(data.near_optimal.count > data.models.length ? [paragraph(`This report shows the best ${data.models.length} of ${data.near_optimal.count}.`)] : []));
  body.append(make("div", { class: "slider" }, make("label", { for: "size" }, name), slider, output));
  body.append(paragraph("The sections below show the chosen model."));
  const risk = data.models[0].quality.risk[0];
  const columns = [
    asText(isPath ? "model" : "list", (one) => one.label),
    asNumber("complexity", (one) => one.complexity),
    ...(isPath ? [] : [asNumber("objective", (one) => data.near_optimal.objectives[data.models.indexOf(one)])]),
    asNumber(risk, (one) => one.quality.figures[risk]),
    ...(isNumber ? [asNumber("R²", (one) => one.quality.figures["R²"])]
      : [asNumber("accuracy", (one) => one.quality.figures.accuracy, percent)]),
  ];
  const table = tableOf(isPath ? "Models of the path" : "Lists", columns, data.models);
  body.append(...(isPath ? [make("div", { class: "side" }, figure, table)] : [...sideBySide(), table]));
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

/** Two near-optimal lists beside each other. */
function sideBySide() {
  const host = make("div", { class: "side" });
  const choices = [0, Math.min(1, data.models.length - 1)].map((place, side) => {
    const options = data.models.map((model, k) => make("option", { value: k }, model.label));
    options[place].setAttribute("selected", "");
    return make("select", { id: `side-${side}`, "aria-label": side ? "List on the right" : "List on the left" }, ...options);
  });
  const columns = choices.map((choice) => make("div", {}, choice, make("div")));
  function fill() {
    const lists = choices.map((choice) => data.models[Number(choice.value)].program);
    columns.forEach((column, side) => {
      const others = lists[1 - side].texts;
      const items = listLines(lists[side]).map(([text, says], rule) => {
        const own = rule < lists[side].texts.length && !others.includes(lists[side].texts[rule]);
        return make("li", {}, own ? make("mark", {}, text) : text, ` ${says}`, own ? " (only here)" : "");
      });
      column.lastChild.replaceChildren(make("ol", {}, ...items));
    });
  }
  choices.forEach((choice) => choice.addEventListener("change", fill));
  fill();
  host.append(...columns);
  const conditions = tableOf("Conditions, and the share of all near-optimal lists in which they occur", [
    asRule("condition", (row) => row[0]), asNumber("lists", (row) => row[1], percent),
  ], data.near_optimal.conditions);
  return [make("h3", {}, "Side by side"), host, conditions];
}

/** [conditions, label] of every rule of a list, and of the default. */
function listLines(program) {
  return program.labels.map((label, rule) => {
    const says = `${data.target} = ${data.classes[label]}`;
    if (rule === program.texts.length) return [rule ? "ELSE" : "ALWAYS", says];
    return [`${rule ? "ELSE IF" : "IF"} ${program.texts[rule]}`, `THEN ${says}`];
  });
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
  if (program.kind === "list") return rows.map((row, rule) => ({ ...row, share: program.shares[rule][program.labels[rule]] }));
  rows.forEach((row, rule) => { row.weights = program.weights[rule]; row.digits = 4; });
  const none = { rows: null, coverage: null, rate: null, lift: null, groups: [] };
  const terms = program.terms.map((term) => ({ ...none, text: termText(term), weights: term.weights, digits: factorDigits(term) }));
  return [...rows, ...terms].map((row, place) => ({ ...row, place: place + 1 }));
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
  const model = data.models[shown], { program } = model, isList = program.kind === "list";
  const columns = [asNumber("no.", (row) => row.place), asRule(isList ? "conditions" : "rule", (row) => row.text)];
  const several = !isNumber && data.classes.length > 2;
  if (isList) {
    columns.push(asText("then", (row) => data.classes[row.target]), asNumber("p", (row) => row.share, percent));
  } else {
    const outputs = several ? data.classes.map((name) => `weight of ${name}`) : ["weight"];
    const most = largestOf([program.intercept, ...program.weights]);
    const told = (row, weight) => row.digits ? summand(weight, most, row.digits) : signed(weight);
    columns.push(...outputs.map((name, k) => ({ ...asNumber(name, (row) => row.weights[k]), tell: (row) => told(row, row.weights[k]) })));
  }
  if (program.texts.length || isList) {
    columns.push(asNumber(isList ? "rows decided" : "rows", (row) => row.rows), asNumber("coverage", (row) => row.coverage, percent),
      asNumber(isList ? "share of its label" : rateName(), (row) => row.rate, rateText()),
      asNumber(isNumber ? "difference from the mean of all" : "lift", (row) => row.lift, isNumber ? signed : (lift) => number(lift, 3)));
    if (several && !isList) columns.push(asText("its class", (row) => data.classes[row.target] ?? ""));
  }
  const caption = isList ? "Rules, in order" : "Rules and terms";
  const notes = isList ? "p is the share of the label among the training rows that the rule decided; share and lift are for the rows given." : several
    ? "Its class is the class for which the rule has its largest weight." : "";
  body.replaceChildren(paragraph(`${model.label}. ${model.heading}`),
    tableOf(caption, columns, ruleRows(model)), paragraph(notes));
}

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
    tableOf(`Rules by group: for which share of the group each ${model.program.kind === "list" ? "decides" : "holds"}, and ${model.program.kind === "list" ? "share of its label" : rateName()} among these rows`, [
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
  const figures = tableOf("Figures", [
    asText("figure", (row) => row[0]), asNumber("value", (row) => row[1]),
  ], [...Object.entries(quality.figures), ...(quality.curves ?? []).map((one) => [`area under the ROC curve${data.classes.length > 2 ? ` of ${data.classes[one.class]}` : ""}`, one.auc])]);
  const calibration = (series, name) => chart({
    caption: "Calibration: mean prediction and what was observed, in bins of the prediction", diagonal: true,
    x: { name: "mean prediction", ends: isNumber ? undefined : [0, 1] }, y: { name, ends: isNumber ? undefined : [0, 1] }, series,
  });
  const points = (bins) => bins.map(([predicted, observed]) => [predicted, observed]);
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
  const roc = chart({
    caption: "ROC curve", diagonal: true, x: { name: "false positive rate", ends: [0, 1] }, y: { name: "true positive rate", ends: [0, 1] },
    series: drawn.map((one) => ({ name: data.classes[one.class], line: true, bare: true, points: one.roc })),
  });
  const confusion = tableOf("Rows by class and prediction", [
    asText("class", (row) => row[0]), ...data.classes.map((name, k) => asNumber(`predicted ${name}`, (row) => row[1][k])),
  ], data.classes.map((name, k) => [name, quality.confusion[k]]));
  body.replaceChildren(paragraph(ratedText()), paragraph(threshold), make("div", { class: "side" }, figures, confusion), make("div", { class: "side" }, roc,
    calibration(quality.curves.map((one) => ({ name: data.classes[one.class], line: true, points: points(one.calibration) })),
      data.classes.length > 2 ? "share of the class" : `share of ${data.classes[1]}`)));
}

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

// Which rules hold for a row

function rowSection() {
  const body = section("row", "Which rules hold for a row?");
  const state = { place: 0, typed: stored === 0 };
  const fields = data.columns.map((column, place) => column.typed ? fieldOf(column, place) : null);
  const shownFields = fields.filter(Boolean), answer = make("div", { role: "status", "aria-live": "polite", id: "answer" });
  const chosen = make("input", { type: "number", id: "row-number", min: 1, max: stored, step: 1, value: 1 });
  const problem = make("span", { class: "error", id: "row-problem" });

  function choose(place) {
    state.place = Math.min(Math.max(place, 0), stored - 1);
    state.typed = false;
    chosen.value = state.place + 1;
    chosen.removeAttribute("aria-invalid");
    problem.replaceChildren();
    const row = storedRow(state.place);
    data.columns.forEach(({ special, companion }, column) => fields[column]?.write(special?.[row[companion]] ?? row[column]));
    answerNow();
  }
  function answerNow() {
    const { refused } = data.models[shown].program;
    const row = separated(fields.map((field, column) => field ? field.read(refused[data.columns[column].companion ?? column]) : MISSING));
    answer.replaceChildren(...(row.includes(null) ? [make("p", { class: "error" }, "Correct the marked values.")] : answerOf(row, state)));
  }

  if (stored) {
    const step = (text, by) => {
      const button = make("button", { type: "button", class: "command" }, text);
      button.addEventListener("click", () => choose(state.place + by));
      return button;
    };
    chosen.addEventListener("input", () => {
      const place = Number(chosen.value);
      if (Number.isInteger(place) && place >= 1 && place <= stored) { choose(place - 1); return; }
      chosen.setAttribute("aria-invalid", "true");
      problem.replaceChildren(`There are rows 1 to ${stored}.`);
    });
    body.append(make("p", {}, make("label", { for: "row-number" }, `Choose one of ${storedText()}: `), chosen, " ", step("Previous", -1), " ", step("Next", 1), " ", problem));
  }
  body.append(make("fieldset", {}, make("legend", {}, stored ? "Or type values" : "Type values"),
    paragraph("Only the columns that the model uses. An empty field is a missing value."),
    make("div", { class: "fields" }, ...shownFields.map((field) => field.element))), answer);
  const typed = () => { state.typed = true; answerNow(); };
  for (const field of shownFields) for (const event of ["input", "change"]) field.input.addEventListener(event, typed);
  if (stored) choose(0);
  return answerNow;
}

/** A row as the model reads it: instead of a special value, no number, and its code in the companion. */
function separated(row) {
  data.columns.forEach(({ special, companion }, column) => {
    if (!special) return;
    const code = special.indexOf(row[column]);
    row[companion] = code >= 0 ? code : Number.isNaN(row[column]) ? MISSING : special.length;
    if (code >= 0) row[column] = NaN;
  });
  return row;
}

/** An input for a column: read() gives its value, null if it is not usable. */
function fieldOf(column, place) {
  const id = `column-${place}`, problem = make("span", { class: "error", id: `${id}-problem` });
  const names = column.categories ?? column.levels;
  const input = names === null
    ? make("input", { type: "text", inputmode: "decimal", autocomplete: "off", id, "aria-describedby": `${id}-problem` })
    : make("select", { id, "aria-describedby": `${id}-problem` }, make("option", { value: column.levels ? "" : MISSING }, "(missing)"),
      names.map((name, code) => make("option", { value: code }, name)), ...(column.levels ? [] : [make("option", { value: UNSEEN }, "(another value)")]));
  const element = make("div", {}, make("label", { for: id }, column.name), input, problem);
  function write(value) { input.value = Number.isNaN(value) ? "" : String(value); }
  function read(isRefused) {
    const text = input.value.trim();
    const value = column.categories !== null ? Number(text) : text === "" ? NaN : Number(text);
    const isAbsent = isMissing(value, place) && (column.categories !== null || text === "");
    const wrong = isAbsent ? (isRefused ? "The model needs a value here." : "") : Number.isFinite(value) ? "" : "This is not a number.";
    problem.replaceChildren(wrong);
    if (wrong) input.setAttribute("aria-invalid", "true"); else input.removeAttribute("aria-invalid");
    return wrong ? null : value;
  }
  return { element, input, read, write };
}

/** The prediction for a row, and why. */
function answerOf(row, { place, typed }) {
  const { program, threshold } = data.models[shown], found = evaluate(program, row);
  const said = isNumber ? number(found.value) : data.classes[found.code];
  const parts = [make("p", {}, "Prediction: ", make("output", { id: "prediction" }, said))];
  if (threshold) parts.push(paragraph(threshold));
  if (!isNumber) {
    const order = [...data.classes.keys()];
    parts.push(tableOf("Probabilities", [asText("class", (k) => data.classes[k]), asNumber("probability", (k) => found.shares[k], percent)], order));
  }
  if (!typed) parts.unshift(paragraph(`Row ${place + 1} of the rows given; its ${data.target} is ${isNumber ? number(data.truth[place]) : data.classes[data.truth[place]]}.`));
  else parts.unshift(paragraph("Typed values."));
  return [...parts, program.kind === "list" ? listReasons(program, found) : sumReasons(program, found)];
}

function listReasons(program, found) {
  const lines = program.texts.slice(0, found.place).map((text, rule) => ({ place: rule + 1, text, says: "does not hold" }));
  const decided = found.place < program.texts.length ? program.texts[found.place] : "no rule holds: the default";
  return tableOf("Rules read for this row", [
    asNumber("no.", (row) => row.place), asRule("conditions", (row) => row.text), asText("then", (row) => row.says),
  ], [...lines, { place: found.place + 1, text: decided, says: "decides" }]);
}

function sumReasons(program, found) {
  const size = (weights) => largest(weights.map(Math.abs));
  const rules = found.rules.map((rule) => ({ text: program.texts[rule], weights: program.weights[rule] }));
  const terms = program.terms.map((term, t) => ({ text: `${termText(term)}: ${number(found.terms[t])}`, weights: term.weights.map((weight) => weight * found.terms[t]) }));
  rules.sort((a, b) => size(b.weights) - size(a.weights));
  const rows = [{ text: "intercept", weights: program.intercept }, ...rules, ...terms, { text: "sum: the score", weights: found.scores }];
  const outputs = found.scores.length > 1 ? data.classes : ["adds to the score"];
  const most = largestOf(rows.map((row) => row.weights));
  return tableOf("What holds for this row, and what it adds to the score", [
    asRule("because", (row) => row.text),
    ...outputs.map((name, k) => asNumber(name, (row) => row.weights[k], (weight) => summand(weight, most))),
  ], rows);
}

// Data, settings, certificate

function showSettings(body) {
  const model = data.models[shown], parts = [];
  if (model) {
    parts.push(make("h3", {}, "Certificate"), ...certificate(model.fit));
    parts.push(tableOf("Settings of the fit", [asText("setting", (row) => row[0]), asText("value", (row) => row[1])], model.settings));
  }
  parts.push(make("h3", {}, "Data"), paragraph(`${data.table.rows} rows given.`,
    data.table.target ? ` ${data.target}: ${data.table.target}.` : ""),
  tableOf("Columns", [asText("column", (row) => row[0]), asText("kind", (row) => row[1]), asNumber("missing", (row) => row[2]), asText("values", (row) => row[3])], data.table.columns),
  paragraph("Written by jaxrules."));
  body.replaceChildren(...parts);
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

// The page

const updates = [];
const show = () => updates.forEach((update) => update());

function sections() {
  const summary = [`${data.table.rows} rows`, `${data.table.columns.length} columns`];
  if (data.models.length > 1) summary.push(`${data.models.length} ${isPath ? "models" : "lists"}`);
  document.getElementById("summary").append(`${summary.join(", ")}.`);
  if (data.comparison) comparisonSection();
  if (data.models.length > 1 || data.near_optimal) updates.push(sliderSection());
  if (data.models.length) {
    const bodies = [["rules", "Rules", showRules]];
    if (data.groups.length) bodies.push(["groups", "Who the rules affect", showGroups]);
    bodies.push(["quality", "Quality", showQuality]);
    for (const [id, title, fill] of bodies) {
      const body = section(id, title);
      updates.push(() => fill(body));
    }
    updates.push(rowSection());
  }
  const body = section("data-settings", "Data, settings and certificate");
  updates.push(() => showSettings(body));
  show();
}

sections();
