//! The page of a row: its form, related rows, and saving.

use chancery_record::Field;
use chancery_resource::{Op, Problem, ProblemKind, Reach, RoleType};
use chancery_web::{AnswerBody, Input};
use http::Response;
use serde_json::{Map, Value, json};

use super::{
    deleted,
    form::{FormMode, at, editable_fields, errors, hidden, is_of_form, named, sections, shown, status_of},
    reference,
    review::{Merged, chosen, is_applied, is_unmodified, merge_page, review_page},
    sidebar::{acts, form_act, is_read_apart, own_cards, related_cards},
};
use crate::shell::{
    boxed::boxed,
    components::FormPage,
    directory::{Resource, encoded, title_of},
    fields::{changes, is_secret, is_write_only, plain, typed},
    navigation::label,
    presentation::{CellContext, Item},
    role_protection::{is_open, is_protected},
    undo::Undo,
    visit::{Visit, not_found, one, redirect_with_notice},
};

/// Shows a row.
pub async fn show(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
) -> Result<Response<AnswerBody>, Problem> {
    match read(visit, resource, key).await {
        Ok(row) => item_page(visit, resource, key, &row, &row, None).await,
        Err(problem) => match deleted::find(visit, resource, key).await? {
            Some(row) => deleted::show(visit, resource, key, &row).await,
            None => Err(problem),
        },
    }
}

/// Reads a row.
pub async fn read(visit: &Visit<'_>, resource: &'static Resource, key: &str) -> Result<Value, Problem> {
    let is_listed = is_read_apart(resource) || resource.read.is_none();
    let listed = visit.may(resource.list).zip(resource.key()).filter(|_| is_listed);
    let Some((list, field)) = listed else {
        let op = resource.read.ok_or_else(|| Problem::not_found("page of one of these"))?;
        return Ok(visit.perform(Input::of(op, vec![key.to_owned()])).await?.json());
    };
    let mut input = Input::of(list, Vec::new());
    input.is_minimal = true;
    input.query.push(("filter".to_owned(), format!("{} eq {}", field.wire(), json!(key))));
    let rows = visit.perform(input).await?.json();
    let row = rows.as_array().and_then(|rows| rows.first()).cloned();
    row.ok_or_else(|| Problem::not_found(resource.shape.name))
}

/// Reads a row, which may be in quarantine.
pub async fn read_any(visit: &Visit<'_>, resource: &'static Resource, key: &str) -> Result<Value, Problem> {
    match read(visit, resource, key).await {
        Err(problem) => deleted::find(visit, resource, key).await?.ok_or(problem),
        result => result,
    }
}

impl Visit<'_> {
    /// Succeeds unless a role of the row prevents the user from running the operation.
    ///
    /// # Errors
    /// The problem names the role.
    pub async fn unbarred(&self, resource: &'static Resource, key: &str, op: &Op) -> Result<(), Problem> {
        if !is_protected(op) {
            return Ok(());
        }
        let carrier = resource.shape.carrier().ok_or_else(not_found)?;
        let row = if std::ptr::eq(carrier, resource.shape) {
            Value::Null
        } else {
            read_any(self, resource, key).await?
        };
        match self.protecting_role(resource, key, &row).await? {
            Some(role) => Err(self.barred_by(role)),
            None => Ok(()),
        }
    }
}

/// Saves the values that differ from the original ones.
///
/// # Errors
/// Any problem that the form cannot display.
pub async fn save(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
) -> Result<Response<AnswerBody>, Problem> {
    let op = visit.require(resource.patch)?;
    let base: Value = serde_json::from_str(one(&visit.form, "base").unwrap_or("{}")).unwrap_or_default();
    let fields: Vec<&'static Field> = editable_fields(resource).collect();
    let changed = match one(&visit.form, "merge") {
        Some(yours) => chosen(&fields, yours, &visit.form),
        None => changes(editable_fields(resource), &visit.form, &base),
    };
    let address = format!("{}/{}", visit.address(resource), encoded(key));
    if changed.is_empty() {
        return Ok(redirect_with_notice(&address, "unchanged"));
    }
    let is_review = one(&visit.form, "review") == Some("true");
    let mut body = changed.clone();
    let token = one(&visit.form, "concurrencyToken").unwrap_or_default();
    if resource.shape.fields.iter().any(Field::is_token) {
        body.insert("concurrencyToken".to_owned(), json!(token));
    }
    if !is_review
        && editable_fields(resource)
            .any(|field| is_secret(field, &base) && changed.contains_key(field.wire()))
    {
        visit.fresh()?;
    }
    let mut input = Input::of(op, vec![key.to_owned()]);
    input.body = Some(Value::Object(body));
    input.dry_run = is_review;
    let mut done_now = visit.perform(input.clone()).await;
    if is_stale(&done_now) {
        let now = read(visit, resource, key).await?;
        if is_applied(&fields, &changed, &now) {
            return Ok(redirect_with_notice(&address, "saved"));
        }
        if is_unmodified(&fields, &changed, &base, &now) {
            // the concurrent change affects no field of this form
            renew(&mut input, &now);
            done_now = visit.perform(input).await;
        }
    }
    match done_now {
        Ok(_) if is_review => review_page(visit, resource, key, &base, &changed),
        Ok(output) => Ok(saved(visit, resource, &address, &base, &changed, &output.json())),
        Err(problem) if problem.kind == ProblemKind::ConcurrencyConflict => {
            let now = read(visit, resource, key).await?;
            let last = super::history::last_change(visit, resource, &now).await?;
            merge_page(visit, &Merged { here: &address, fields: &fields, last }, &base, &now, &changed)
        }
        Err(problem) if is_of_form(&problem) => {
            let mut row = read(visit, resource, key).await?;
            let mut typed = row.clone();
            if let Some(members) = typed.as_object_mut() {
                members.extend(changed);
            }
            // the original values of the form are still the base of the comparison
            if let (Some(row), Value::Object(base)) = (row.as_object_mut(), base) {
                row.extend(base);
                row.insert("concurrencyToken".to_owned(), json!(token));
            }
            item_page(visit, resource, key, &row, &typed, Some(&problem)).await
        }
        Err(problem) => Err(problem),
    }
}

/// Whether the row has changed since its form was rendered.
pub fn is_stale<T>(answer: &Result<T, Problem>) -> bool {
    answer.as_ref().is_err_and(|problem| problem.kind == ProblemKind::ConcurrencyConflict)
}

/// Puts the present token of the row into the body of a change.
pub fn renew(input: &mut Input, now: &Value) {
    if let Some(Value::Object(body)) = &mut input.body {
        body.insert("concurrencyToken".to_owned(), at(now, "concurrencyToken").clone());
    }
}

/// Redirects to the saved row. The undo is offered unless a secret or a file was changed.
fn saved(
    visit: &Visit<'_>,
    resource: &'static Resource,
    address: &str,
    base: &Value,
    changed: &Map<String, Value>,
    now: &Value,
) -> Response<AnswerBody> {
    let fields = || editable_fields(resource).filter(|field| changed.contains_key(field.wire()));
    if fields().any(|field| is_write_only(field, base)) {
        return redirect_with_notice(address, "saved");
    }
    let were =
        fields().map(|field| (field.wire().to_owned(), plain(&typed(field, base, at(base, field.wire())))));
    let hidden = [
        ("base".to_owned(), Value::Object(changed.clone()).to_string()),
        ("concurrencyToken".to_owned(), plain(at(now, "concurrencyToken"))),
    ];
    let undo = Undo::of(visit, address.to_owned(), were.chain(hidden).collect());
    visit.redirect_with_undo(address, "saved", &undo)
}

/// Whether the user may change a row that is visible. Most resources have the same reach for both; for the others a dry
/// run decides.
async fn is_writable(visit: &Visit<'_>, resource: &Resource, key: &str) -> Result<bool, Problem> {
    let is_everywhere = visit.visitor.caller.roles.iter().any(|held| held.role == RoleType::SystemAdmin);
    let needs_dry_run = !is_everywhere && is_limited(resource.shape.reach);
    let Some(op) = visit.may(resource.delete).filter(|_| needs_dry_run) else { return Ok(true) };
    let mut input = Input::of(op, vec![key.to_owned()]);
    input.dry_run = true;
    match visit.perform(input).await {
        Err(problem) if problem.status() == 404 => Ok(false),
        Err(problem) if problem.status() >= 500 => Err(problem),
        _ => Ok(true),
    }
}

/// Whether a row can be visible without being writable.
fn is_limited(reach: Reach) -> bool {
    match reach {
        Reach::Unless(..) => true,
        Reach::Of(_, owner) => is_limited(owner.reach),
        Reach::Any(ways) => ways.iter().copied().any(is_limited),
        _ => false,
    }
}

async fn item_page(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
    row: &Value,
    values: &Value,
    problem: Option<&Problem>,
) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let address = visit.address(resource);
    let names = reference::names(visit, resource, &shown(resource), std::slice::from_ref(values)).await?;
    let title = (resource.presentation.heading)(row, CellContext { words, names: &names });
    let title = title.unwrap_or_else(|| title_of(resource, row));
    let title = if title.is_empty() { key.to_owned() } else { title };
    let is_writable = is_writable(visit, resource, key).await?;
    let protecting_role = visit.protecting_role(resource, key, row).await?;
    let is_changed = |field: &Field| protecting_role.is_none() || is_open(resource.shape, field);
    let can_change =
        is_writable && visit.may(resource.patch).is_some() && editable_fields(resource).any(is_changed);
    let fields = shown(resource);
    let here = format!("{address}/{}", encoded(key));
    let bar = can_change.then(|| {
        let also = form_act(visit, resource);
        let also = also.map(|(label, page)| json!({ "label": label, "href": format!("{page}?of={}", encoded(key)) }));
        json!({ "save": words.page("save"), "cancel": { "href": here, "label": words.page("discard") }, "review": true, "also": also })
    });
    let item = Item { resource, key, here: &here, row, protecting_role };
    let mut cards = boxed(|| own_cards(visit, item)).await?;
    cards.extend(boxed(|| related_cards(visit, resource, key, row, protecting_role)).await?);
    cards.extend(boxed(|| super::rights::card(visit, resource, key, row)).await?);
    cards.extend((resource.presentation.cards_after)(visit, item).await?);
    let own = (resource.presentation.acts)(visit, &item);
    let mut all_acts = own.first;
    if is_writable {
        all_acts.extend(acts(visit, item, own.before_settings, own.after_settings));
    }
    all_acts.extend(own.last);
    let used = match protecting_role {
        _ if !is_writable => FormMode::Shown,
        Some(_) => FormMode::Open,
        None => FormMode::Changed,
    };
    let note = match protecting_role {
        Some(role) => visit.carries(role),
        None if can_change => String::new(),
        None => words.page("read_only").to_owned(),
    };
    let avatar = resource.presentation.picture(row);
    let icon = avatar.is_null().then_some(resource.presentation.icon);
    let page = FormPage {
        back: json!({ "href": address, "label": label(visit, resource) }),
        heading: title,
        sub: (resource.presentation.sub)(row).unwrap_or_default(),
        icon,
        avatar,
        badge: resource.presentation.badge(row, words),
        acts: all_acts,
        errors: errors(visit, problem),
        sections: named(sections(visit, resource, &fields, values, problem, used), &names),
        hidden: hidden(editable_fields(resource), row),
        sidebar: cards,
        after: super::history::of_item(visit, resource, &here, row).into_iter().collect(),
        bar,
        read_only_note: note,
        ..FormPage::default()
    };
    page.show(visit, status_of(problem))
}
