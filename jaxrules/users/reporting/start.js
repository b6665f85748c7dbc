// The page

const updates = [];
const show = () => updates.forEach((update) => update());

function sections() {
  const summary = [`${data.table.rows} rows`, `${data.table.columns.filter((column) => column[1] !== "special").length} columns`];
  if (data.models.length > 1) summary.push(`${data.models.length} ${modelNoun}s`);
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
    if (stored && data.columns.length) updates.push(columnSection());
  }
  const body = section("data-settings", "Data, settings and certificate");
  updates.push(() => showSettings(body));
  if (data.models.length) updates.push(() => document.getElementById("opening").replaceChildren(data.models[shown].opening.join(" ")));
  signSection();
  show();
}

sections();

// On paper everything is open but the figures of charts, and afterwards as it was.
let opened = [];
addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll("details:not([open])")].filter((one) => !one.closest("figure"));
  opened.forEach((one) => { one.open = true; });
});
addEventListener("afterprint", () => opened.forEach((one) => { one.open = false; }));
