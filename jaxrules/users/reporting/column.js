// What one column does: the mean prediction of stored rows when this column alone is changed (partial
// dependence, Friedman 2001), and how the stored values are spread.

const MOST_AVERAGED = 100, MOST_STEPS = 60, BINS = 30, MOST_CATEGORIES = 12;

function columnSection() {
  const body = section("column", "What one column does");
  const typed = [...data.columns.keys()].filter((place) => data.columns[place].typed);
  const several = !isNumber && data.classes.length > 2;
  const state = { column: typed[0], output: isNumber ? 0 : data.classes.length === 2 ? 1 : 0 };
  const host = make("div");
  const fill = () => host.replaceChildren(...effectOf(state.column, state.output));
  body.append(make("div", { class: "controls" },
    chooser("effect-of", "Column", typed.map((place) => data.columns[place].name), (place) => { state.column = typed[place]; fill(); }),
    several ? chooser("effect-on", "on the probability of", data.classes, (place) => { state.output = place; fill(); }) : ""), host);
  return fill;
}

/** The values of a column at which its effect is drawn. */
function valuesOf(program, column) {
  const { categories, levels } = data.columns[column], values = data.rows[column].filter((value) => value !== null && value >= (categories ? 0 : -Infinity));
  const names = categories ?? levels;
  if (names) {
    const counts = names.map((_, code) => values.filter((value) => value === code).length);
    const often = [...names.keys()].sort((a, b) => counts[b] - counts[a]).slice(0, MOST_CATEGORIES).sort((a, b) => a - b);
    return { values: often, names: often.map((code) => names[code]), counts: often.map((code) => counts[code]) };
  }
  const low = smallest(values), high = largest(values);
  const grid = Array.from({ length: MOST_STEPS }, (_, k) => low + (high - low) * k / (MOST_STEPS - 1));
  // Both sides of every end of a condition, so that steps are upright.
  const cuts = program.tests.flat().filter((test) => test.column === column).flatMap((test) => (test.asked ?? []).map(([, end]) => end))
    .filter((end) => Number.isFinite(end) && end > low && end < high).flatMap((end) => [neighbour(end, false), end, neighbour(end, true)]);
  const bins = Array.from({ length: BINS }, () => 0);
  if (high > low) for (const value of values) bins[Math.min(Math.floor(BINS * (value - low) / (high - low)), BINS - 1)] += 1;
  return { values: high > low ? [...new Set([...grid, ...cuts])].sort((a, b) => a - b) : values.slice(0, 1), low, high, counts: bins };
}

function effectOf(column, output) {
  const model = data.models[shown], { program } = model, { name, special, companion } = data.columns[column];
  const reads = columnsRead(program), rows = ruleRows(model).filter((row, place) => reads[place]?.has(column));
  const spread = valuesOf(program, column);
  if (!rows.length || !spread.values.length) return [paragraph("The model shown does not use this column, or no stored row has a value there.")];
  const step = Math.max(stored / MOST_AVERAGED, 1);
  const sample = Array.from({ length: Math.min(stored, MOST_AVERAGED) }, (_, k) => storedRow(Math.floor(k * step)));
  const at = (value) => {
    const said = sample.map((row) => {
      const next = row.slice();
      next[column] = value;
      if (special) next[companion] = special.length;
      const found = evaluate(program, next);
      return isNumber ? found.value : found.shares[output];
    });
    return said.reduce((sum, one) => sum + one, 0) / said.length;
  };
  const points = spread.values.map((value, k) => [spread.names ? k : value, at(value)]).filter((point) => point.every(Number.isFinite));
  const most = largest(spread.counts) || 1, width = (spread.high - spread.low) / BINS;
  const density = spread.counts.map((count, k) => spread.names ? [k - 0.35, k + 0.35, count / most] : [spread.low + k * width, spread.low + (k + 1) * width, count / most]);
  const outcome = isNumber ? `mean prediction of ${data.target}` : `mean probability of ${data.classes[output]}`;
  const isList = program.kind === "list", longest = largestOf(rows.map((row) => row.weights ?? []));
  const weight = (row) => row.weights[row.weights.length > 1 ? output : 0];
  return [
    chart({ caption: `${outcome[0].toUpperCase()}${outcome.slice(1)}, by ${name}`, density: spread.names || spread.high > spread.low ? density : [],
      x: { name, names: spread.names, ends: spread.names ? [-0.5, spread.names.length - 0.5] : undefined }, y: { name: outcome },
      series: [{ name: outcome, line: !spread.names, bare: !spread.names, points }] }),
    make("p", { class: "note" }, `The mean over ${sample.length} stored rows, in which only ${name} is changed. Grey bars show how often its values occur in the stored rows: where there are few, the line says little.`),
    tableOf(`All rules that use ${name}`, [asRule("rule", (row) => row.text),
      ...(isList ? [isNumber ? asNumber("then", (row) => row.value) : asText("then", (row) => data.classes[row.target])] : [asBar("weight", weight, (row) => summand(weight(row), longest), longest)]),
      asNumber("coverage", (row) => row.coverage, percent)], rows),
  ];
}
