"use strict";
const $ = id => document.getElementById(id);
const make = (name, text, className) => { const e = document.createElement(name); if (text !== undefined) e.textContent = text; if (className) e.className = className; return e };
let doc;
const resolve = schema => schema && schema.$ref ? schema.$ref.split("/").slice(1).reduce((at, part) => at[part], doc) : schema;
const typeOf = schema => {
  if (schema.$ref) return schema.$ref.split("/").pop();
  const kind = [].concat(schema.type || "any").join(" or ");
  if (kind.includes("array")) return "array of " + typeOf(schema.items || {});
  return kind + (schema.format ? " (" + schema.format + ")" : "") + (schema.enum ? ": " + schema.enum.join(", ") : "");
};
function members(schema) {
  const table = make("table");
  const object = resolve(schema.items || schema) || {};
  for (const [name, property] of Object.entries(object.properties || {})) {
    const row = make("tr");
    const must = (object.required || []).includes(name);
    const cell = make("td"); cell.append(make("code", name), must ? " *" : "");
    row.append(cell, make("td", typeOf(property)), make("td", property.description || ""));
    table.append(row);
  }
  return table;
}
function show(method, path, op) {
  const box = make("details"), head = make("summary"), inside = make("div", undefined, "inside");
  head.append(make("span", method.toUpperCase(), "method " + method), make("code", path), " " + op.summary);
  box.append(head, inside);
  box.addEventListener("toggle", () => {
    if (!box.open || inside.childElementCount) return;
    inside.append(make("p", op.operationId + (op["x-addition"] ? ", an addition" : "")));
    const table = make("table");
    for (const parameter of op.parameters) {
      const row = make("tr"), cell = make("td"); cell.append(make("code", parameter.name), " in " + parameter.in + (parameter.required ? " *" : ""));
      row.append(cell, make("td", typeOf(parameter.schema)), make("td", parameter.description)); table.append(row);
    }
    inside.append(table);
    const body = op.requestBody && op.requestBody.content["application/json"].schema;
    if (body) inside.append(make("h4", "Body: " + typeOf(body)), members(body));
    for (const [status, response] of Object.entries(op.responses)) {
      const known = resolve(response), content = known.content && known.content["application/json"];
      inside.append(make("h4", status + " " + known.description + (content ? " " + typeOf(content.schema) : "")));
      if (content) inside.append(members(content.schema));
    }
  });
  return box;
}
function list() {
  const wanted = $("search").value.toLowerCase(), groups = new Map();
  for (const [path, methods] of Object.entries(doc.paths)) for (const [method, op] of Object.entries(methods)) {
    if (!(path + " " + op.operationId + " " + op.summary).toLowerCase().includes(wanted)) continue;
    const tag = op.tags[0]; if (!groups.has(tag)) groups.set(tag, []);
    groups.get(tag).push(show(method, path, op));
  }
  $("list").replaceChildren(...doc.tags.filter(tag => groups.has(tag.name)).map(tag => {
    const section = make("section"); section.append(make("h2", tag.name), make("p", tag.description), ...groups.get(tag.name)); return section;
  }));
}
async function load() {
  const at = "./openapi/" + $("service").value + ".json";
  $("raw").href = at;
  doc = await (await fetch(at)).json();
  list();
}
$("service").addEventListener("change", load);
$("search").addEventListener("input", list);
load();
