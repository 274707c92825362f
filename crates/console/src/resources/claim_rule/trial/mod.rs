//! Evaluation of claim rules: the steps that sample claims pass, and the effect of an unsaved rule.

mod draft;
mod path;
mod sample;

use chancery_management::{
    claim_rule::CLAIM_RULE, client_app::CLIENT_APP, idp_instance::IDP_INSTANCE, tenant::TENANT,
};
use chancery_record::FieldError;
use chancery_resource::{Op, Problem, Shape};
use chancery_userstore::user::USER;
use chancery_web::{AnswerBody, Input};
use http::Response;
use serde_json::{Value, json};

use self::draft::Draft;
use crate::{
    pages::{
        form::{error_at, errors, is_of_form},
        reference,
    },
    shell::{
        components::{Card, Line},
        directory::{self, Resource, encoded, operation, title_of},
        fields::{control_field, plain, with},
        navigation::label,
        visit::{Visit, one},
    },
};

/// The targets of an evaluation: the member, and the resource that it refers to.
static TARGETS: [(&str, &Shape); 3] =
    [("clientAppId", &CLIENT_APP), ("tenantId", &TENANT), ("idpInstanceId", &IDP_INSTANCE)];

fn rules() -> Result<&'static Resource, Problem> {
    directory::of_shape(&CLAIM_RULE).ok_or_else(|| Problem::not_found("list of this"))
}

fn operation(visit: &Visit<'_>) -> Result<&'static Op, Problem> {
    visit.require(operation!("EvaluateClaimRules"))
}

/// Shows the form, with example claims.
///
/// # Errors
/// The user may not evaluate rules.
pub async fn show(visit: &Visit<'_>) -> Result<Response<AnswerBody>, Problem> {
    operation(visit)?;
    let draft = Draft::of(visit, rules()?).await?;
    page(visit, draft.as_ref(), sample::EXAMPLE, Evaluation::default(), None).await
}

/// Evaluates the rules.
///
/// # Errors
/// Any problem that the form cannot display.
pub async fn run(visit: &Visit<'_>) -> Result<Response<AnswerBody>, Problem> {
    let op = operation(visit)?;
    let draft = Draft::of(visit, rules()?).await?;
    let text = match one(&visit.form, "person").map(str::trim).filter(|id| !id.is_empty()) {
        Some(id) => sample::of_person(visit, id).await?,
        None => one(&visit.form, "claims").unwrap_or(sample::EXAMPLE).replace("\r\n", "\n"),
    };
    let claims = match sample::read(&text) {
        Ok(claims) => claims,
        Err(key) => {
            let problem = Problem::wrong_at("/claims", visit.words.page(key));
            return page(visit, draft.as_ref(), &text, Evaluation::default(), Some(&problem)).await;
        }
    };
    let mut body = json!({ "claims": claims, "trace": true });
    if let Some(members) = body.as_object_mut() {
        for (member, _) in TARGETS {
            members.extend(target_id(visit, member).map(|id| (member.to_owned(), json!(id))));
        }
        members.extend(draft.as_ref().map(|draft| ("draft".to_owned(), draft.body())));
    }
    let mut input = Input::of(op, Vec::new());
    input.body = Some(body);
    match visit.perform(input).await {
        Ok(output) => {
            let evaluation = output.json();
            let names = Names::of(visit, &evaluation, draft.as_ref()).await?;
            let rows = path::rows(visit, &claims, &evaluation, &names);
            let sidebar = vec![rules_card(visit, &evaluation, &names)];
            page(visit, draft.as_ref(), &text, Evaluation { rows, sidebar }, None).await
        }
        Err(problem) if is_of_form(&problem) => {
            page(visit, draft.as_ref(), &text, Evaluation::default(), Some(&of_fields(problem))).await
        }
        Err(problem) => Err(problem),
    }
}

/// The id of a target.
fn target_id<'a>(visit: &'a Visit<'_>, member: &str) -> Option<&'a str> {
    one(&visit.form, member).map(str::trim).filter(|id| !id.is_empty())
}

/// Maps the locations of a problem to the page: fields of the draft are fields of the form.
fn of_fields(problem: Problem) -> Problem {
    let at = |pointer: &str| pointer.strip_prefix("/draft").unwrap_or(pointer).to_owned();
    let errors = problem.errors.as_slice().iter();
    let errors: Vec<FieldError> =
        errors.map(|error| FieldError::new(at(&error.pointer), error.detail.clone())).collect();
    if errors.is_empty() { problem } else { Problem::wrong(errors) }
}

/// The evaluated rules, as far as the user may read them.
struct Names {
    rules: Vec<Value>,
    /// The id and the values of the draft.
    draft: Option<(String, Value)>,
}

impl Names {
    async fn of(visit: &Visit<'_>, evaluation: &Value, draft: Option<&Draft>) -> Result<Self, Problem> {
        let ids = evaluation["inForce"].as_array().map(Vec::as_slice).unwrap_or_default();
        let ids: Vec<String> = ids.iter().map(plain).collect();
        let rules = reference::rows_of(visit, rules()?, &ids).await?;
        Ok(Self { rules, draft: draft.map(|draft| (draft.id().to_owned(), draft.row().clone())) })
    }

    /// The draft, if it has this id.
    fn draft(&self, id: &str) -> Option<&Value> {
        self.draft.as_ref().filter(|(own, _)| own == id).map(|(_, row)| row)
    }

    /// The stored rule with this id, if the user may read it.
    fn saved(&self, id: &str) -> Option<&Value> {
        self.rules.iter().find(|row| row["id"] == json!(id)).filter(|_| self.draft(id).is_none())
    }

    /// The name of a rule.
    fn name(&self, visit: &Visit<'_>, id: &str) -> String {
        match (self.draft(id), self.saved(id)) {
            (Some(draft), _) => format!("{} ({})", plain(&draft["name"]), visit.words.page("draft")),
            (_, Some(row)) => plain(&row["name"]),
            _ => visit.words.page("rule_of_others").to_owned(),
        }
    }

    fn href(&self, id: &str) -> Option<String> {
        self.saved(id).map(|_| format!("/console/ClaimRule/{}", encoded(id)))
    }
}

/// The evaluated rules, in the order of execution.
fn rules_card(visit: &Visit<'_>, evaluation: &Value, names: &Names) -> Card {
    let ids = evaluation["inForce"].as_array().map(Vec::as_slice).unwrap_or_default();
    let lines: Vec<Line> = ids
        .iter()
        .map(|id| {
            let id = plain(id);
            let row = names.draft(&id).or_else(|| names.saved(&id));
            let sub = row.map_or_else(String::new, |row| {
                format!("{} · {}", plain(&row["priority"]), visit.words.choice(&plain(&row["ruleType"])))
            });
            Line {
                icon: Some("split"),
                text: names.name(visit, &id),
                sub,
                href: names.href(&id),
                ..Line::default()
            }
        })
        .collect();
    let about = if lines.is_empty() { visit.words.page("no_rule_in_force") } else { "" };
    Card {
        title: visit.words.page("rules_in_order").into(),
        kind: "lines",
        about: about.into(),
        count: Some(lines.len().to_string()),
        lines,
        ..Card::default()
    }
}

/// What the page shows of an evaluation: nothing before one.
#[derive(Default)]
struct Evaluation {
    /// The path of each claim.
    rows: Vec<Value>,
    sidebar: Vec<Card>,
}

/// Renders the page with the results, or with the problem.
async fn page(
    visit: &Visit<'_>,
    draft: Option<&Draft>,
    text: &str,
    evaluation: Evaluation,
    problem: Option<&Problem>,
) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let rules = rules()?;
    let address = visit.address(rules);
    let back = match draft.and_then(Draft::key) {
        Some(key) => format!("{address}/{}", encoded(key)),
        None => address,
    };
    let mut sections = vec![
        json!({ "title": words.page("sample"), "about": words.page("sample_about"), "fields": sample_fields(visit, text, problem).await?, "is_readonly": false }),
    ];
    sections.extend(draft.into_iter().flat_map(|draft| draft.sections(visit, rules, problem)));
    let columns = ["col_claim", "col_path", "col_goes"];
    let columns: Vec<Value> =
        columns.iter().map(|key| json!({ "label": words.page(key), "sort": null })).collect();
    let heading = words.page("try_title");
    let content = json!({
        "back": { "href": back, "label": label(visit, rules) }, "heading": heading, "about": words.page("try_about"),
        "errors": errors(visit, problem), "cards": [],
        "outcomes": [{
            "title": words.page("outcome"), "is_titled": false, "about": "", "columns": columns, "rows": evaluation.rows,
        }],
        "sidebar": evaluation.sidebar, "sections": sections,
        "action": Draft::action(draft), "hidden": draft.map_or_else(Vec::new, Draft::hidden),
        "submit": words.page("try_it"), "save": draft.map(|draft| draft.save(visit, rules)),
    });
    visit.page(problem.map_or(200, Problem::status), "trial.html", heading, &content)
}

async fn sample_fields(
    visit: &Visit<'_>,
    text: &str,
    problem: Option<&Problem>,
) -> Result<Vec<Value>, Problem> {
    let words = visit.words;
    let wrong = |wire: &str| json!({ "error": error_at(problem, wire) });
    let search_in = |name: &str| json!({ "search": format!("/console/find?in={name}") });
    let mut fields = Vec::new();
    for (member, shape) in TARGETS {
        let id = target_id(visit, member).unwrap_or_default();
        let field = Value::Object(control_field(member, &words.field(member), "reference"));
        let what = json!({ "value": id, "shown": title_by_id(visit, shape, id).await?, "is_wide": false });
        fields.push(with(with(with(field, what), search_in(shape.name)), wrong(member)));
    }
    if sample::has_people(visit) {
        let field = Value::Object(control_field("person", &words.field("person"), "reference"));
        let hint = json!({ "hint": words.page("person_hint"), "is_wide": false });
        fields.push(with(with(field, search_in(USER.name)), hint));
    }
    let claims = Value::Object(control_field("claims", &words.field("claims"), "code"));
    let what = json!({ "value": text, "hint": words.page("claims_hint") });
    fields.push(with(with(claims, what), wrong("claims")));
    Ok(fields)
}

/// The name of the row with this id, as far as the user may list it.
async fn title_by_id(visit: &Visit<'_>, shape: &Shape, id: &str) -> Result<String, Problem> {
    let resource = directory::of_shape(shape).filter(|_| chancery_record::parse_id(id).is_some());
    let Some(resource) = resource else { return Ok(id.to_owned()) };
    let rows = reference::rows_of(visit, resource, &[id.to_owned()]).await?;
    Ok(rows.first().map_or_else(|| id.to_owned(), |row| title_of(resource, row)))
}
