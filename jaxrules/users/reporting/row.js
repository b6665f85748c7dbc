// Which rules hold for a row

function rowSection() {
  const body = section("row", "Which rules hold for a row?");
  const state = { place: 0, typed: stored === 0 };
  const fields = data.columns.map((column, place) => column.typed ? fieldOf(column, place) : null);
  const shownFields = fields.filter(Boolean), answer = make("div", { role: "status", "aria-live": "polite", id: "answer" });
  const chosen = make("input", { type: "number", id: "row-number", min: 1, max: stored, step: 1, value: 1 });
  const problem = make("span", { class: "error", id: "row-problem" });
  const why = make("div", { id: "why" }), whyNow = whySection(why);
  let order = ordered(0), kind = 0;
  const among = make("span", { class: "note", id: "row-among" });

  function choose(place) {
    state.place = Math.min(Math.max(place, 0), stored - 1);
    state.typed = false;
    chosen.value = state.place + 1;
    chosen.removeAttribute("aria-invalid");
    problem.replaceChildren();
    if (named) named.value = data.ids[state.place];
    const row = storedRow(state.place);
    data.columns.forEach(({ special, companion }, column) => fields[column]?.write(special?.[row[companion]] ?? row[column]));
    answerNow();
  }
  function answerNow() {
    const { refused } = data.models[shown].program;
    const row = separated(fields.map((field, column) => field ? field.read(refused[data.columns[column].companion ?? column]) : MISSING));
    const usable = !row.includes(null), at = order.indexOf(state.place);
    answer.replaceChildren(...(usable ? answerOf(row, state) : [make("p", { class: "error" }, "Correct the marked values.")]));
    whyNow(usable ? row : null);
    among.replaceChildren(order.length ? (at >= 0 && !state.typed ? `${at + 1} of ${order.length}` : `${order.length} rows`) : "none");
  }
  /** The next row of the kind shown, or the one before. */
  function step(by) {
    const at = order.indexOf(state.place);
    if (order.length) choose(order[at < 0 ? 0 : Math.min(Math.max(at + by, 0), order.length - 1)]);
  }
  const named = data.ids ? make("input", { type: "text", id: "row-name", list: "row-names", autocomplete: "off" }) : null;

  if (stored) {
    const button = (text, by) => {
      const made = make("button", { type: "button", class: "command" }, text);
      made.addEventListener("click", () => step(by));
      return made;
    };
    chosen.addEventListener("input", () => {
      const place = Number(chosen.value);
      if (Number.isInteger(place) && place >= 1 && place <= stored) { choose(place - 1); return; }
      chosen.setAttribute("aria-invalid", "true");
      problem.replaceChildren(`There are rows 1 to ${stored}.`);
    });
    body.append(make("p", {}, make("label", { for: "row-number" }, `Choose one of ${storedText()}: `), chosen, " ", button("Previous", -1), " ", button("Next", 1), " ", among, " ", problem));
    const controls = [chooser("row-kind", "Step through", KINDS_OF_ROWS, (place) => {
      kind = place;
      order = ordered(kind);
      if (order.length) choose(order[0]); else answerNow();
    })];
    if (named) {
      named.addEventListener("change", () => {
        const place = data.ids.indexOf(named.value.trim());
        if (place >= 0) { choose(place); return; }
        problem.replaceChildren(`No stored row is called ${named.value.trim()}.`);
      });
      controls.push(make("span", { class: "choice" }, make("label", { for: "row-name" }, "Find the row called "), named,
        make("datalist", { id: "row-names" }, data.ids.map((name) => make("option", { value: name })))));
    }
    body.append(make("div", { class: "controls" }, controls));
  }
  body.append(make("fieldset", {}, make("legend", {}, stored ? "Or type values" : "Type values"),
    paragraph("Only the columns that the model uses. An empty field is a missing value."),
    make("div", { class: "fields" }, ...shownFields.map((field) => field.element))), answer, why);
  const typed = () => { state.typed = true; answerNow(); };
  for (const field of shownFields) for (const event of ["input", "change"]) field.input.addEventListener(event, typed);
  if (stored) choose(0);
  return () => { order = ordered(kind); answerNow(); };
}

const KINDS_OF_ROWS = ["all rows", isNumber ? "the largest errors" : "wrong predictions, the surest first",
  ...(isNumber ? [] : ["the closest decisions"])];

const answers = new Map(); // of the stored rows, by model

function storedAnswers() {
  if (!answers.has(shown)) answers.set(shown, Array.from({ length: stored }, (_, place) => evaluate(data.models[shown].program, storedRow(place))));
  return answers.get(shown);
}

/** How far a decision is from the next one: from the threshold, or between the two best classes. */
function margin(found, program) {
  if (found.scores && found.scores.length === 1) return Math.abs(found.scores[0] - program.threshold);
  const [second, first] = found.shares.slice().sort((a, b) => a - b).slice(-2);
  return first - second;
}

/** The stored rows of a kind, in order. */
function ordered(kind) {
  const all = Array.from({ length: stored }, (_, place) => place);
  if (!kind) return all;
  const found = storedAnswers(), { program } = data.models[shown];
  if (isNumber) {
    const errors = found.map((one, place) => Math.abs(one.value - data.truth[place]));
    return all.sort((a, b) => errors[b] - errors[a]).slice(0, 100);
  }
  const margins = found.map((one) => margin(one, program));
  if (kind === 2) return all.sort((a, b) => margins[a] - margins[b]).slice(0, 100);
  return all.filter((place) => found[place].code !== data.truth[place]).sort((a, b) => margins[b] - margins[a]);
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
  const { program, points, threshold } = data.models[shown], found = evaluate(program, row);
  const said = isNumber ? number(found.value) : data.classes[found.code];
  const parts = [make("p", {}, "Prediction: ", make("output", { id: "prediction" }, said))];
  if (points) parts.push(paragraph(`Points of the card: ${Number((points.start + points.per_unit * found.scores[0]).toFixed(6))}.`));
  if (threshold) parts.push(paragraph(threshold));
  if (!isNumber) {
    const order = [...data.classes.keys()];
    parts.push(tableOf("Probabilities", [asText("class", (k) => data.classes[k]), asNumber("probability", (k) => found.shares[k], percent)], order));
  }
  if (!typed) parts.unshift(paragraph(`Row ${place + 1} of the rows given${data.ids ? `, ${data.ids[place]}` : ""}; its ${data.target} is ${isNumber ? number(data.truth[place]) : data.classes[data.truth[place]]}.`));
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
  const several = found.scores.length > 1, outputs = several ? data.classes : ["adds to the score"];
  const most = largestOf(rows.map((row) => row.weights));
  // A waterfall of one score: every part begins where the one before ends, and the sum begins at 0.
  const output = several ? found.code : 0;
  let end = 0;
  rows.forEach((row, place) => {
    const isSum = place === rows.length - 1;
    row.from = isSum ? 0 : end;
    end = isSum ? row.weights[output] : end + row.weights[output];
    row.to = end;
  });
  const spots = rows.flatMap((row) => [row.from, row.to]).filter(Number.isFinite), low = smallest(spots), high = largest(spots);
  const running = { ...asNumber(several ? `running sum of ${data.classes[output]}` : "running sum", (row) => row.to), tell: (row) => fallOf(row, low, high) };
  return tableOf("What holds for this row, and what it adds to the score", [
    asRule("because", (row) => row.text), running,
    ...outputs.map((name, k) => asNumber(name, (row) => row.weights[k], (weight) => summand(weight, most))),
  ], rows);
}

/** A bar from one sum to the next. */
function fallOf({ from, to }, low, high) {
  const share = (value) => high > low ? 100 * (value - low) / (high - low) : 0;
  const left = share(Math.min(from, to)), width = Math.max(share(Math.max(from, to)) - left, 0.7);
  return make("span", { class: "fall", role: "img", "aria-label": `from ${number(from, 4)} to ${number(to, 4)}` },
    make("span", { class: "zero", style: `left: ${share(0)}%` }), make("span", { class: to < from ? "down" : "up", style: `left: ${left}%; width: ${width}%` }));
}

// Why, compared with other rows, and what would change it

function whySection(host) {
  const choice = { toward: 0, against: 0, columns: data.changeable.slice() };
  let row = null;
  const reasonsHost = make("div"), changeHost = make("div", { role: "status", "aria-live": "polite", id: "changes" });
  const isSum = data.models[0].program.kind === "sum";
  const towards = isNumber ? ["a high number", "a low number"] : ["the prediction", ...data.classes];
  if (isSum) {
    host.append(make("h3", {}, "The reasons, also those that do not hold"), make("div", { class: "controls" },
      chooser("reason-for", "Reasons for", towards, (place) => { choice.toward = place; fillReasons(); }),
      chooser("reason-against", "compared with", ["the best case", ...(stored ? ["the mean of the stored rows"] : [])], (place) => { choice.against = place; fillReasons(); })), reasonsHost);
  }
  if (!isNumber) {
    const button = make("button", { type: "button", class: "command", id: "change" }, "Find the smallest changes");
    button.addEventListener("click", () => { if (row) changeHost.replaceChildren(...changesOf(row, choice.columns)); });
    const boxes = data.columns.map((column, place) => {
      if (!column.typed) return "";
      const box = make("input", { type: "checkbox", id: `may-change-${place}` });
      box.checked = choice.columns[place];
      box.addEventListener("change", () => { choice.columns[place] = box.checked; changeHost.replaceChildren(); });
      return make("span", { class: "choice" }, box, make("label", { for: box.id }, ` ${column.name}`));
    });
    host.append(make("h3", {}, "What would change it?"),
      make("details", {}, make("summary", {}, "Columns that may change"), make("div", { class: "controls" }, boxes)),
      make("p", { class: "ask" }, button), changeHost);
  }
  function fillReasons() {
    reasonsHost.replaceChildren(...(row ? reasonsOf(row, choice) : []));
  }
  return (now) => {
    row = now;
    changeHost.replaceChildren();
    if (isSum) fillReasons();
  };
}

const MOST_REASONS = 8;

/** As jaxrules.reasons: what every rule and term adds towards a class, minus what it adds in the best
 * case (the least that it can), or on average over the stored rows. */
function reasonsOf(row, { toward, against }) {
  const model = data.models[shown], { program } = model, found = evaluate(program, row);
  const several = program.intercept.length > 1;
  let output = 0, sign = 1, name;
  if (isNumber) {
    sign = toward === 1 ? -1 : 1;
    name = sign > 0 ? "a high number" : "a low number";
  } else {
    const code = toward ? toward - 1 : found.code;
    if (several) output = code; else sign = code ? 1 : -1;
    name = data.classes[code];
  }
  const unit = sign * (model.points ? Math.abs(model.points.per_unit) : 1);
  const weights = [...program.weights, ...program.terms.map((term) => term.weights)].map((one) => unit * one[output]);
  const added = (of) => [...program.texts.keys()].map((rule) => of.rules.includes(rule) ? weights[rule] : 0)
    .concat(of.terms.map((value, t) => weights[program.texts.length + t] * value));
  const reference = against ? meanOf(storedAnswers().map(added)) : leastOf(program, weights);
  if (reference === null) return [paragraph("The model has linear terms without limits, so that there is no best case; compare with the mean.")];
  const parts = added(found).map((value, k) => ({ text: reasonText(model, found, row, k), points: Number((value - reference[k]).toFixed(9)) }))
    .filter((part) => part.points > 0).sort((a, b) => b.points - a.points);
  const most = largestOf([weights]), isWhole = parts.every((part) => Number.isInteger(part.points));
  const rest = parts.length - MOST_REASONS;
  return [parts.length ? tableOf(`Reasons for ${name}, compared with ${against ? "the mean of the stored rows" : "the row with the least score for it"}`, [
    asRule("because", (part) => part.text),
    asBar(model.points ? "points" : "adds to its score", (part) => part.points, (part) => isWhole ? signed(part.points) : summand(part.points, most), parts[0].points),
  ], parts.slice(0, MOST_REASONS)) : paragraph(`No rule speaks for ${name}.`),
  ...(rest > 0 ? [paragraph(`${rest} smaller reasons are not shown.`)] : [])];
}

function reasonText(model, found, row, part) {
  const { program, reasons } = model, rule = part < program.texts.length;
  if (rule) return reasons[part][Number(found.rules.includes(part))];
  const term = program.terms[part - program.texts.length];
  if (term.category !== null) return `${term.text}: ${found.terms[part - program.texts.length] ? "yes" : "no"}`;
  return `${data.columns[term.column].name} at ${valueText(row, term.column)}`;
}

const meanOf = (rows) => rows[0].map((_, k) => rows.reduce((sum, row) => sum + row[k], 0) / rows.length);

/** The least that every part can add; null if there is none. */
function leastOf(program, weights) {
  const least = weights.map((weight, k) => {
    const term = program.terms[k - program.texts.length];
    if (term === undefined || term.category !== null || weight === 0) return Math.min(weight, 0);
    const ends = [term.lower ?? -Infinity, term.upper ?? Infinity].map((end) => weight * end);
    const low = Math.min(...ends);
    return program.refused[term.column] ? low : Math.min(low, 0); // a missing value adds nothing
  });
  return least.every(Number.isFinite) ? least : null;
}

/** The value of a column of a row, as a reader knows it. */
function valueText(row, column) {
  const { categories, levels, special, companion } = data.columns[column], value = row[column];
  if (special && row[companion] >= 0 && row[companion] < special.length) return number(special[row[companion]]);
  if (categories !== null) return value === MISSING ? "(missing)" : value === UNSEEN ? "(another value)" : categories[value];
  if (Number.isNaN(value)) return "(missing)";
  return levels ? levels[value] : number(value, 6);
}

// The smallest changes: all values of a column between which the rules distinguish, one column after
// the other, then two, then three columns at once.

const MOST_TRIED = 60000, MOST_SHOWN = 5;

/** The float64 after a number, or before it. */
function neighbour(value, up) {
  if (value === 0) return up ? Number.MIN_VALUE : -Number.MIN_VALUE;
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  view.setBigInt64(0, view.getBigInt64(0) + (up === value > 0 ? 1n : -1n));
  return view.getFloat64(0);
}

/** What a column may become: {value, text, size}, one value for every outcome of the tests of it, the
 * nearest; where a sum reads it, also values that occur. */
function alternatives(program, row, column) {
  const { categories, levels } = data.columns[column], now = row[column];
  const tests = program.tests.flat().filter((test) => test.column === column);
  const inSum = [...program.terms, ...program.directions.flat()].some((term) => term.column === column);
  const set = (value) => { const next = row.slice(); next[column] = value; return next; };
  const mark = (value) => tests.map((test) => Number(passes(test, set(value)))).join("");
  let found;
  if (categories !== null || levels !== null) {
    found = (categories ?? levels).map((text, value) => ({ value, text, size: levels ? Math.abs(value - (now || 0)) / levels.length : 1 }));
  } else {
    const values = data.rows.length ? data.rows[column].filter((value) => value !== null).sort((a, b) => a - b) : [];
    const ends = [...new Set(tests.flatMap((test) => (test.asked ?? []).map(([, end]) => end)).filter(Number.isFinite))];
    const spread = (values.length ? values[values.length - 1] - values[0] : largest([0, ...ends]) - smallest([0, ...ends])) || 1;
    const of = (value, text) => ({ value, text, size: Number.isNaN(now) ? 1 : Math.abs(value - now) / spread });
    found = ends.flatMap((end) => [of(neighbour(end, false), `just below ${number(end, 7)}`), of(end, number(end, 7)), of(neighbour(end, true), `just above ${number(end, 7)}`)]);
    if (inSum) for (let k = 0; k <= 20 && values.length; k += 1) {
      const value = values[Math.round(k * (values.length - 1) / 20)];
      found.push({ ...of(value, number(value, 7)), own: true });
    }
  }
  const kept = new Map([[mark(now), null]]);
  const byOutcome = found.sort((a, b) => a.size - b.size).filter((one) => {
    if (one.value === now) return false;
    if (one.own || inSum) return true;
    const key = mark(one.value), isNew = !kept.has(key);
    kept.set(key, one);
    return isNew;
  });
  return byOutcome.map((one) => ({ ...one, column }));
}

/** All choices of so many members of a list of lists, one of each. */
function* choices(lists, size, from = 0) {
  if (!size) { yield []; return; }
  for (let k = from; k <= lists.length - size; k += 1) {
    for (const one of lists[k]) for (const others of choices(lists, size - 1, k + 1)) yield [one, ...others];
  }
}

function changesOf(row, allowed) {
  const { program } = data.models[shown], now = evaluate(program, row).code;
  const lists = data.columns.map((column, place) => column.typed && allowed[place] ? alternatives(program, row, place) : []).filter((list) => list.length);
  let tried = 0;
  for (let size = 1; size <= 3; size += 1) {
    const found = [];
    for (const changes of choices(lists, size)) {
      if ((tried += 1) > MOST_TRIED) break;
      const next = row.slice();
      for (const { column, value } of changes) {
        next[column] = value;
        const { special, companion } = data.columns[column];
        if (special) next[companion] = special.length;
      }
      const { code } = evaluate(program, next);
      if (code !== now) found.push({ changes, code, cost: changes.reduce((sum, one) => sum + one.size, 0) });
    }
    if (found.length) {
      found.sort((a, b) => a.cost - b.cost);
      const told = ({ column, text }) => `${data.columns[column].name}: ${valueText(row, column)} \u2192 ${text}`;
      return [tableOf("The prediction would change with", [
        asText("change", (one) => one.changes.map(told).join("; ")), asText("prediction", (one) => data.classes[one.code]),
      ], found.slice(0, MOST_SHOWN)), make("p", { class: "note" },
        `${size > 1 ? `No change of ${size > 2 ? "one or two columns" : "a single column"} would do. ` : ""}All values that the rules distinguish were tried${tried > MOST_TRIED ? `, up to ${MOST_TRIED} combinations` : ""}; the smallest changes, relative to the range of the column, come first. They say what the model would do, not what would happen to the person.`)];
    }
    if (tried > MOST_TRIED) break;
  }
  return [paragraph(`No change of up to three of these columns was found${tried > MOST_TRIED ? ` among ${MOST_TRIED} combinations` : ""}.`)];
}
