//! Claim rules: their order and their effects.

mod trial;

use serde_json::{Value, json};

use crate::{
    pages::cells::{member, name},
    shell::{
        boxed::boxed,
        directory::operation_name,
        fields::Cell,
        presentation::{CellContext, FormAct, Page, Presentation},
    },
};

/// Presentation of claim rules.
pub static PRESENTATION: Presentation = Presentation {
    icon: "split",
    columns: &[
        ("col_name", name),
        ("col_priority", |row, _| Cell::of("text", member(row, "priority"))),
        ("col_does", |row, CellContext { words, .. }| {
            Cell::of("badge", words.choice(&member(row, "ruleType"))).toned("info")
        }),
        ("col_matches", matches),
        ("col_where", |row, CellContext { words, .. }| {
            Cell::of("text", words.choice(&member(row, "ruleLevel")))
        }),
        ("col_status", status),
    ],
    // the order of execution
    order: &[("sortBy", "priority"), ("sortOrder", "ascending")],
    form_act: Some(FormAct {
        operation: operation_name!("EvaluateClaimRules"),
        label: "try_it",
        page: "/console/ClaimRule/try",
    }),
    pages: &[Page::at(&["try"])
        .get(|visit, _, _| boxed(move || trial::show(visit)))
        .post(|visit, _, _| boxed(move || trial::run(visit)))],
    ..Presentation::STANDARD
};

/// The patterns that the rule evaluates.
fn matches(row: &Value, CellContext { words, .. }: CellContext<'_>) -> Cell {
    let target = member(row, "filterTarget");
    let pattern = |wire: &str, part: &str| Some(member(row, wire)).filter(|_| target.contains(part));
    let patterns = [pattern("typeEvaluationRule", "Type"), pattern("valueEvaluationRule", "Value")];
    let patterns: Vec<String> = patterns.into_iter().flatten().filter(|text| !text.is_empty()).collect();
    if patterns.is_empty() {
        return Cell::of("text", words.page("matches_all"));
    }
    Cell::of("code", patterns.join(" = "))
}

fn status(row: &Value, CellContext { words, .. }: CellContext<'_>) -> Cell {
    let (key, tone) =
        if row["isActive"] == json!(true) { ("status_active", "good") } else { ("status_inactive", "off") };
    Cell::of("badge", words.page(key)).toned(tone)
}
