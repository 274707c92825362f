//! The settings of an identity provider, a second factor or a tenant: all options on one page, each with its control and
//! its default. Changes are saved in one transaction.

mod stored;

use chancery_management::idp_type::IDP_TYPE;
use chancery_resource::{
    Problem, ProblemKind,
    settings::{Entry, Form, Owner},
};
use chancery_web::{AnswerBody, Input, Output};
use http::Response;
use serde_json::{Map, Value, json};

use super::{form::is_of_form, item::read};
use crate::shell::{
    components::{Card, FormPage, Line},
    directory::{self, Resource, encoded, operation, title_of},
    fields::plain,
    presentation::{OwnerOf, Settings},
    render::with_frames,
    setting::{controls, in_words, sent},
    settings_access::{field_of, options},
    undo::Undo,
    visit::{Visit, not_found, one, redirect_with_notice},
};

pub use self::stored::value_of;
pub use crate::shell::settings_access::{are_offered, can_be_set, owners};

/// Maximum number of options of one owner.
const MAX_OPTIONS: &str = "500";

/// The sections: the key of each title, and the prefixes of the options in it.
const SECTIONS: [(&str, &[&str]); 9] = [
    ("settings_brand", &["Brand", "PageLinks"]),
    ("settings_locks", &["AttemptsBefore", "TemporaryLock", "LoginThrottling", "UserLock"]),
    ("settings_passkeys", &["Passkey"]),
    ("settings_passwords", &["Password", "InitialPassword"]),
    ("settings_passes", &["TemporaryAccessPass"]),
    ("settings_mail", &["EMailSender", "MailServer"]),
    (
        "settings_tokens",
        &["AccessToken", "IdentityToken", "AuthorizationCode", "RefreshToken", "DeviceCode", "Pkce"],
    ),
    ("settings_sessions", &["Session", "BrowserSession", "SignInRecord", "RememberDevice"]),
    ("settings_deletion", &["UserDeletion"]),
];

/// An option of the owner: of the catalogue, custom, or both.
pub struct Setting {
    /// Its name.
    pub name: String,
    entry: Option<&'static Entry>,
    row: Option<Value>,
    /// Whether the owner is usable with its present settings, or something else replaces this one.
    is_right: bool,
}

impl Setting {
    /// The stored value; empty if the default applies.
    fn stored(&self) -> String {
        self.row.as_ref().map_or_else(String::new, |row| plain(row.get("value").unwrap_or(&Value::Null)))
    }

    /// The effective value.
    fn effective(&self) -> String {
        let stored = self.stored();
        let default = self.entry.map_or("", |entry| entry.default);
        if stored.is_empty() { default.to_owned() } else { stored }
    }

    fn is_secret(&self) -> bool {
        self.entry.is_some_and(|entry| entry.secret)
    }

    /// The hint: the default, or whether a secret is set.
    fn hint(&self, visit: &Visit<'_>) -> String {
        let words = visit.words;
        if self.is_secret() {
            let is_set = self
                .row
                .as_ref()
                .is_some_and(|row| row.get("value").is_some_and(|value| *value != json!("")));
            return words.page(if is_set { "secret_is_set" } else { "secret_is_not_set" }).to_owned();
        }
        let Some(entry) = self.entry else { return String::new() };
        let default_text = format!("{} {}", words.page("default_is"), in_words(entry, entry.default, words));
        // a switch shows its state
        let is_plain = matches!(entry.form, Form::Flag) && self.effective() == entry.default;
        if is_plain {
            return String::new();
        }
        if self.effective() == entry.default {
            default_text
        } else {
            format!("{} {default_text}", words.page("is_changed"))
        }
    }

    /// The error of the stored value.
    pub fn error(&self, visit: &Visit<'_>) -> String {
        let is_wrong =
            self.row.as_ref().is_some_and(|row| row.get("hasConfigurationError") == Some(&json!(true)));
        let is_wrong = is_wrong || (self.row.is_none() && self.entry.is_some_and(|entry| entry.is_wrong("")));
        if is_wrong && !self.is_right { visit.words.page("setting_wrong").to_owned() } else { String::new() }
    }
}

/// The owner type of a row.
async fn owner(visit: &Visit<'_>, resource: &Resource, row: &Value) -> Result<Option<Owner>, Problem> {
    let text = |row: &Value, wire: &str| plain(row.get(wire).unwrap_or(&Value::Null));
    let Some(Settings { owner, .. }) = &resource.presentation.settings else { return Ok(None) };
    match owner {
        OwnerOf::All(owner) => Ok(Some(*owner)),
        OwnerOf::Row(wire) => Ok(Owner::of_type(&text(row, wire))),
        OwnerOf::Type(wire) => {
            let Some(types) = directory::of_shape(&IDP_TYPE) else { return Ok(None) };
            if visit.may(types.read).is_none() {
                return Ok(None);
            }
            let row = read(visit, types, &text(row, wire)).await?;
            Ok(Owner::of_type(&text(&row, "factoryType")))
        }
    }
}

/// All settings of a row, in the order of the catalogue; then custom options by name.
pub async fn settings(
    visit: &Visit<'_>,
    resource: &Resource,
    key: &str,
    row: &Value,
) -> Result<Vec<Setting>, Problem> {
    let field = field_of(resource).ok_or_else(|| Problem::not_found("page of settings here"))?;
    let op = visit.require(options().and_then(|options| options.list))?;
    let mut input = Input::of(op, Vec::new());
    let filter = format!("{field} eq {}", json!(key));
    input.query = vec![("filter".to_owned(), filter), ("count".to_owned(), MAX_OPTIONS.to_owned())];
    let listed = visit.perform(input).await?.json();
    let mut stored: Vec<Value> = listed.as_array().cloned().unwrap_or_default();
    let name = |row: &Value| plain(row.get("name").unwrap_or(&Value::Null));
    let known = owner(visit, resource, row).await?;
    // a secret that a linked certificate replaces is empty, which is valid
    let is_right = row.get("hasConfigurationError") == Some(&json!(false));
    let mut all: Vec<Setting> = known
        .into_iter()
        .flat_map(Owner::entries)
        .map(|entry| {
            let at = stored.iter().position(|row| name(row) == entry.name);
            Setting {
                name: entry.name.to_owned(),
                entry: Some(entry),
                row: at.map(|at| stored.swap_remove(at)),
                is_right,
            }
        })
        .collect();
    stored.sort_by_key(name);
    all.extend(stored.into_iter().map(|row| Setting {
        name: name(&row),
        entry: None,
        row: Some(row),
        is_right,
    }));
    let find = resource.presentation.settings.as_ref().and_then(|settings| settings.replaced);
    // another wrong setting makes the owner unusable, but not this one wrong
    if let Some(find) = find.filter(|_| !is_right)
        && let Some(replaced) = find(visit, key, row).await?
    {
        all.iter_mut().filter(|setting| setting.name == replaced).for_each(|setting| setting.is_right = true);
    }
    Ok(all)
}

/// The card that links from an option to the settings of its owner, with controls and defaults.
pub fn card_of(visit: &Visit<'_>, row: &Value) -> Option<Card> {
    let name = row.get("name")?.as_str()?;
    let named = |owner: &'static Resource| Some((owner, row.get(field_of(owner)?)?.as_str()?));
    let (owner, id) = owners().into_iter().find_map(named)?;
    let href = format!("{}/{}/settings#f-{name}", visit.address(owner), encoded(id));
    let line = Line {
        icon: Some("sliders-horizontal"),
        text: visit.words.option(name),
        href: Some(href),
        ..Line::default()
    };
    Some(Card {
        title: visit.words.page("settings").into(),
        kind: "lines",
        lines: vec![line],
        ..Card::default()
    })
}

/// The concurrency tokens of the options, by name.
fn tokens(all: &[Setting]) -> Map<String, Value> {
    all.iter()
        .filter_map(|setting| {
            Some((setting.name.clone(), setting.row.as_ref()?.get("concurrencyToken")?.clone()))
        })
        .collect()
}

/// The error of a setting.
pub struct SettingError {
    name: String,
    detail: String,
    /// The HTTP status of the error page.
    pub status: u16,
}

impl SettingError {
    /// The error as an entry of the form's summary.
    pub fn summary_entry(&self, visit: &Visit<'_>) -> Value {
        json!({ "text": format!("{}: {}", visit.words.option(&self.name), self.detail), "href": format!("#f-{}", self.name) })
    }
}

/// Shows the settings.
pub async fn show(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
) -> Result<Response<AnswerBody>, Problem> {
    let row = read(visit, resource, key).await?;
    let all = settings(visit, resource, key, &row).await?;
    page(visit, resource, key, &row, &all, None)
}

fn page(
    visit: &Visit<'_>,
    resource: &Resource,
    key: &str,
    row: &Value,
    all: &[Setting],
    wrong: Option<&SettingError>,
) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let here = format!("{}/{}", visit.address(resource), encoded(key));
    let can_change = can_be_set(visit, resource);
    let preview = can_change.then(|| brand_preview(visit, &here)).flatten();
    let sections = SECTIONS.iter().map(|(title, begins)| (*title, Some(*begins)));
    let section_of = |setting: &Setting| {
        SECTIONS
            .iter()
            .find(|(_, begins)| begins.iter().any(|begin| setting.name.starts_with(begin)))
            .map(|(title, _)| *title)
    };
    let all_sections: Vec<Value> = std::iter::once(("section_general", None))
        .chain(sections)
        .filter_map(|(title, begins)| {
            let own = all.iter().filter(|setting| section_of(setting) == begins.map(|_| title));
            let fields: Vec<Map<String, Value>> =
                own.flat_map(|setting| form_fields(visit, setting, wrong, can_change)).collect();
            let preview = (title == "settings_brand").then_some(()).and(preview.as_ref());
            (!fields.is_empty()).then(
                || json!({ "title": words.page(title), "about": "", "fields": fields, "is_readonly": false, "preview": preview }),
            )
        })
        .collect();
    let title = title_of(resource, row);
    let heading = format!("{}: {title}", words.page("settings"));
    let bar = can_change.then(|| {
        json!({ "save": words.page("save"), "cancel": { "href": format!("{here}/settings"), "label": words.page("discard") }, "review": false })
    });
    let page = FormPage {
        back: json!({ "href": here, "label": title }),
        heading,
        sub: words.page("settings_about").into(),
        icon: Some("sliders-horizontal"),
        errors: wrong.iter().map(|wrong| wrong.summary_entry(visit)).collect(),
        sections: all_sections,
        hidden: hidden(all),
        bar,
        read_only_note: (if can_change { "" } else { words.page("read_only") }).into(),
        ..FormPage::default()
    };
    let shown = page.show(visit, wrong.map_or(200, |wrong| wrong.status))?;
    Ok(if preview.is_some() { with_frames(shown) } else { shown })
}

/// The preview of the tenant's sign-in page next to the brand options, if the user may preview views.
fn brand_preview(visit: &Visit<'_>, here: &str) -> Option<Value> {
    visit.may(operation!("PreviewView"))?;
    Some(json!({ "frame": format!("{here}/brand") }))
}

/// The hidden fields of a form: the effective values, and the concurrency tokens.
pub fn hidden(all: &[Setting]) -> Vec<Value> {
    let open = all.iter().filter(|setting| !setting.is_secret());
    let base: Map<String, Value> =
        open.map(|setting| (setting.name.clone(), json!(setting.effective()))).collect();
    let state = [("base", base), ("tokens", tokens(all))];
    state.map(|(name, value)| json!({ "name": name, "value": Value::Object(value).to_string() })).into()
}

/// The controls of a setting: with the submitted value after an error, else with the effective one.
pub fn form_fields(
    visit: &Visit<'_>,
    setting: &Setting,
    wrong: Option<&SettingError>,
    can_change: bool,
) -> Vec<Map<String, Value>> {
    let typed = wrong.and_then(|_| changed(visit, setting)).filter(|_| !setting.is_secret());
    let value = typed.unwrap_or_else(|| setting.effective());
    let mut fields = controls(&setting.name, setting.entry, &value, visit.words);
    let own = wrong.filter(|wrong| wrong.name == setting.name).map(|wrong| wrong.detail.clone());
    if let Some(first) = fields.first_mut() {
        first.insert("hint".to_owned(), json!(setting.hint(visit)));
        first.insert("error".to_owned(), json!(own.unwrap_or_else(|| setting.error(visit))));
    }
    for field in fields.iter_mut().filter(|_| !can_change) {
        let shown = match setting.entry.filter(|entry| !entry.secret) {
            Some(entry) => in_words(entry, &value, visit.words),
            None if setting.entry.is_none() => value.clone(),
            None => String::new(),
        };
        field.extend([("control".to_owned(), json!("shown")), ("shown".to_owned(), json!(shown))]);
    }
    fields
}

/// A hidden JSON field of the submitted form, by names of settings.
fn submitted_json(visit: &Visit<'_>, field: &str) -> Map<String, Value> {
    serde_json::from_str(one(&visit.form, field).unwrap_or("{}")).unwrap_or_default()
}

/// The submitted value of a setting, if it differs from the original one.
fn changed(visit: &Visit<'_>, setting: &Setting) -> Option<String> {
    let text = sent(&setting.name, setting.entry, &visit.form)?;
    let is_same =
        !setting.is_secret() && submitted_json(visit, "base").get(&setting.name) == Some(&json!(text));
    (!is_same).then_some(text)
}

/// Saves the changed settings in one transaction.
///
/// # Errors
/// Any problem that the form cannot display.
pub async fn save(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
) -> Result<Response<AnswerBody>, Problem> {
    let row = read(visit, resource, key).await?;
    let all = settings(visit, resource, key, &row).await?;
    let here = format!("{}/{}/settings", visit.address(resource), encoded(key));
    match save_changed(visit, resource, key, &all).await? {
        SaveResult::Unchanged => Ok(redirect_with_notice(&here, "unchanged")),
        SaveResult::Saved(changed, outputs) => Ok(saved(visit, &here, &changed, &outputs)),
        SaveResult::Invalid(wrong) => page(visit, resource, key, &row, &all, Some(&wrong)),
    }
}

/// The result of saving a settings form.
pub enum SaveResult<'a> {
    /// Nothing has changed.
    Unchanged,
    /// All changes were saved.
    Saved(Vec<(&'a Setting, String)>, Vec<Output>),
    /// One change was refused, and nothing was saved.
    Invalid(SettingError),
}

/// Saves the changed ones of these settings in one transaction.
///
/// # Errors
/// Any problem that the form cannot display.
pub async fn save_changed<'a>(
    visit: &Visit<'_>,
    resource: &Resource,
    key: &str,
    all: &'a [Setting],
) -> Result<SaveResult<'a>, Problem> {
    let tokens = submitted_json(visit, "tokens");
    let changed: Vec<(&Setting, String)> =
        all.iter().filter_map(|setting| Some((setting, changed(visit, setting)?))).collect();
    if changed.is_empty() {
        return Ok(SaveResult::Unchanged);
    }
    if changed.iter().any(|(setting, _)| setting.is_secret()) {
        visit.fresh()?;
    }
    let inputs: Result<Vec<Input>, Problem> =
        changed.iter().map(|(setting, text)| input(visit, resource, key, &tokens, setting, text)).collect();
    match visit.perform_all(inputs?).await {
        Ok(outputs) => Ok(SaveResult::Saved(changed, outputs)),
        // the error of a protected setting is shown at its control, like that of others
        Err((at, problem)) if is_of_form(&problem) || problem.kind == ProblemKind::Forbidden => {
            let Some((setting, _)) = changed.get(at) else { return Err(problem) };
            let status = if problem.kind == ProblemKind::Forbidden { 403 } else { 400 };
            let detail = detail(visit, setting, &problem);
            Ok(SaveResult::Invalid(SettingError { name: setting.name.clone(), detail, status }))
        }
        Err((_, problem)) => Err(problem),
    }
}

/// Saves the submitted settings of a new owner that differ from the effective ones, in one transaction.
pub async fn set_new(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
    row: &Value,
) -> Result<(), Problem> {
    if !can_be_set(visit, resource) {
        return Ok(());
    }
    let all = settings(visit, resource, key, row).await?;
    let tokens = tokens(&all);
    let inputs: Result<Vec<Input>, Problem> = all
        .iter()
        .filter_map(|setting| {
            let text = sent(&setting.name, setting.entry, &visit.form)?;
            (text != setting.effective()).then(|| input(visit, resource, key, &tokens, setting, &text))
        })
        .collect();
    let inputs = inputs?;
    if inputs.is_empty() {
        return Ok(());
    }
    visit.perform_all(inputs).await.map(drop).map_err(|(_, problem)| problem)
}

/// The operation that sets an option: it creates the row if there is none.
fn input(
    visit: &Visit<'_>,
    resource: &Resource,
    key: &str,
    tokens: &Map<String, Value>,
    setting: &Setting,
    text: &str,
) -> Result<Input, Problem> {
    let options = options().ok_or_else(not_found)?;
    let Some(row) = &setting.row else {
        let mut input = Input::of(visit.require(options.create)?, Vec::new());
        input.body =
            Some(json!({ "name": setting.name, "value": text, field_of(resource).unwrap_or_default(): key }));
        return Ok(input);
    };
    let id = plain(row.get("id").unwrap_or(&Value::Null));
    let mut input = Input::of(visit.require(options.patch)?, vec![id]);
    input.body = Some(json!({ "value": text, "concurrencyToken": tokens.get(&setting.name) }));
    Ok(input)
}

/// The error message, or the value that somebody else has set meanwhile.
fn detail(visit: &Visit<'_>, setting: &Setting, problem: &Problem) -> String {
    if problem.kind != ProblemKind::ConcurrencyConflict {
        return problem.errors.as_slice().first().map_or(&problem.detail, |error| &error.detail).clone();
    }
    let words = visit.words;
    let now = match setting.entry {
        _ if setting.is_secret() => String::new(),
        Some(entry) => in_words(entry, &setting.effective(), words),
        None => setting.effective(),
    };
    format!("{} {now}", words.page("setting_changed_meanwhile"))
}

/// Redirects to the saved settings. The undo is offered unless a secret was changed.
fn saved(
    visit: &Visit<'_>,
    here: &str,
    changed: &[(&Setting, String)],
    outputs: &[Output],
) -> Response<AnswerBody> {
    if changed.iter().any(|(setting, _)| setting.is_secret() || setting.row.is_none()) {
        return redirect_with_notice(here, "saved");
    }
    let now: Map<String, Value> =
        changed.iter().map(|(setting, text)| (setting.name.clone(), json!(text))).collect();
    let tokens = changed.iter().zip(outputs).filter_map(|((setting, _), output)| {
        Some((setting.name.clone(), output.json().get("concurrencyToken")?.clone()))
    });
    let tokens = Value::Object(tokens.collect()).to_string();
    let hidden = [("base".to_owned(), Value::Object(now).to_string()), ("tokens".to_owned(), tokens)];
    let were = changed.iter().map(|(setting, _)| (setting.name.clone(), setting.effective()));
    visit.redirect_with_undo(here, "saved", &Undo::of(visit, here.to_owned(), were.chain(hidden).collect()))
}
