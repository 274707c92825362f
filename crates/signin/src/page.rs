//! The pages of a sign-in, and what their views are filled with.

use chancery_flow::{Action, Choice, DueAction, Step, Urgency};
use chancery_oauth::{OPENID, STANDARD_SCOPES};
use chancery_resource::settings::{TenantOption, UserStoreOption};
use serde_json::{Map, Value, json};

use crate::{
    application::{Application, ConsentMode, Offered},
    external::EXTERNAL,
    kept_flow::{KeptFlow, Mistake},
    new_password,
    outcome::Page,
    prepare::store_of,
    provider::{Circumstances, Examined},
    questionnaire,
    reset::reset_url,
    second_factor::{enrol_context, factor_context},
};

/// The page of a password, by its name in addresses.
pub const PASSWORD: &str = "password";
/// The page of an access pass.
pub const ACCESS_PASS: &str = "accesspass";
/// The page where a tenant or an account is chosen.
pub const CHOOSE: &str = "choose";
/// The page of a person who is not admitted.
pub const REFUSED: &str = "refused";
/// The page that leads on to the client app.
pub const CONTINUE: &str = "continue";
/// The page that asks for consent.
pub const CONSENT: &str = "consent";
/// The page of a password that must be changed, or made.
pub const NEW_PASSWORD: &str = "newpassword";
/// The page that asks for a second factor.
pub const SECOND_FACTOR: &str = "secondfactor";
/// The page where an authenticator is enrolled.
pub const ENROL: &str = "enrol";
/// The page that shows recovery codes.
pub const RECOVERY: &str = "recoverycodes";
/// The page that confirms an e-mail address.
pub const CONFIRM: &str = "confirm";
/// The page of questions.
pub const QUESTIONNAIRE: &str = "questionnaire";
/// The page of the terms.
pub const TERMS: &str = "terms";
/// The page that makes a passkey.
pub const PASSKEY: &str = "passkey";

/// The step's page; `None` for a step that has no page.
pub const fn page_of(step: &Step) -> Option<&'static str> {
    Some(match step {
        Step::FirstFactor(due) if due.at_once.is_some() => EXTERNAL,
        Step::FirstFactor(_) => PASSWORD,
        Step::Tenant(_) | Step::Account { .. } => CHOOSE,
        Step::Refuse(_) => REFUSED,
        Step::SecondFactor(_) | Step::StepUp { .. } => SECOND_FACTOR,
        Step::EnrolFactor(_) => ENROL,
        Step::Action(due) => match due.action {
            Action::Password => NEW_PASSWORD,
            Action::Email => CONFIRM,
            Action::Questionnaire => QUESTIONNAIRE,
            Action::Terms => TERMS,
            Action::Passkey => PASSKEY,
        },
        Step::Consent => CONSENT,
        Step::Touch => CONTINUE,
        Step::Fail(_) | Step::Done(_) => return None,
    })
}

/// Whether a page is the one to be shown now.
pub fn is_page_of(page: &str, kept: &KeptFlow, circumstances: &Circumstances, examined: &Examined) -> bool {
    if !kept.recovery_codes.is_empty() {
        return page == RECOVERY;
    }
    match (page, examined.due.step()) {
        // a person who came back from the only provider is not sent there again
        (PASSWORD, Step::FirstFactor(_)) => true,
        (ACCESS_PASS, Step::FirstFactor(_)) => takes_access_passes(circumstances, examined),
        (CONTINUE, Step::Done(_)) => examined.lacks_session && !kept.has_signed_in,
        (page, step) => page_of(step) == Some(page),
    }
}

/// Whether one of the stores that are offered takes access passes.
pub fn takes_access_passes(circumstances: &Circumstances, examined: &Examined) -> bool {
    circumstances
        .offered(examined)
        .iter()
        .any(|store| store.options.get(UserStoreOption::TEMPORARY_ACCESS_PASS_ENABLED))
}

/// The page that is to be shown, with what was prepared for it.
pub fn page_for(
    (page, added): (&str, Map<String, Value>),
    circumstances: &Circumstances,
    kept: &KeptFlow,
    examined: &Examined,
) -> Page {
    let application = &circumstances.application;
    let (view, step, context) = match (page, examined.due.step()) {
        (RECOVERY, _) => ("Enrol", RECOVERY, json!({ "codes": kept.recovery_codes })),
        (ACCESS_PASS, _) => ("AccessPass", ACCESS_PASS, access_pass_context(kept)),
        (_, Step::Tenant(tenants)) => {
            let choices: Vec<_> = tenants
                .iter()
                .filter_map(|id| application.tenant(*id))
                .map(|tenant| json!({ "value": format!("tenant:{}", tenant.facts.id), "name": tenant.name }))
                .collect();
            ("Choose", CHOOSE, json!({ "kind": "tenant", "choices": choices }))
        }
        (_, Step::Account { sessions, .. }) => {
            let named = sessions.iter().filter_map(|id| Some((id, examined.names.get(id)?)));
            let choices: Vec<_> = named
                .map(|(id, names)| {
                    json!({ "value": format!("session:{id}"), "name": names.shown(), "detail": names.detail() })
                })
                .collect();
            ("Choose", CHOOSE, json!({ "kind": "account", "choices": choices }))
        }
        (_, Step::Refuse(_)) => ("Refused", REFUSED, json!({})),
        (_, Step::SecondFactor(choices) | Step::StepUp { choices, .. }) => {
            let view = if choices.chosen == Choice::Passkey { "Passkey" } else { "SecondFactor" };
            (view, SECOND_FACTOR, factor_context(circumstances, examined, choices))
        }
        (_, Step::EnrolFactor(_)) => ("Enrol", ENROL, enrol_context(circumstances, kept, examined)),
        (_, Step::Action(due)) => action_page(*due, circumstances, kept, examined),
        (_, Step::Consent) => ("Consent", CONSENT, consent_context(application, examined)),
        (_, Step::Touch | Step::Done(_)) => ("Continue", CONTINUE, json!({})),
        _ => ("SignIn", PASSWORD, password_context(circumstances, kept, examined)),
    };
    let mut members = match context {
        Value::Object(members) => members,
        _ => Map::new(),
    };
    let about = json!({
        "name": application.name, "url": application.client_uri, "logo": application.logo_uri,
        "metadata": application.metadata,
    });
    members.insert("application".to_owned(), about);
    if let Some(about) = provider_of(circumstances, examined).map(Offered::about) {
        members.insert("provider".to_owned(), about.told().into());
    }
    if let (false, Some(mistake)) = (members.contains_key("errors"), kept.mistake_on(page)) {
        members.insert("errors".to_owned(), mistake.told());
    }
    if let Step::FirstFactor(due) = examined.due.step() {
        let url = reset_url(application, due, &circumstances.app, kept);
        members.insert("reset_url".to_owned(), json!(url));
    }
    members.extend(added);
    let tenant = circumstances.tenant_of(examined);
    let shown = Page::new(view, step, Value::Object(members)).of(application, tenant);
    shown.in_language(examined.locale().cloned())
}

/// The identity provider instance that a page is about: the person's, or the only one that is offered. Of several that are offered
/// none is meant.
fn provider_of<'a>(circumstances: &'a Circumstances, examined: &Examined) -> Option<Offered<'a>> {
    let of = |tenant, instance| circumstances.application.tenant(tenant)?.offered(instance);
    match (examined.due.identified(), examined.due.step()) {
        (Some(identified), _) => of(identified.tenant, identified.instance),
        (None, Step::FirstFactor(due)) => match due.offered[..] {
            [only] => of(due.tenant, only.id),
            _ => None,
        },
        _ => None,
    }
}

fn action_page(
    due: DueAction,
    circumstances: &Circumstances,
    kept: &KeptFlow,
    examined: &Examined,
) -> (&'static str, &'static str, Value) {
    let may_wait = due.urgency == Urgency::Offered;
    match due.action {
        Action::Email => ("Confirm", CONFIRM, json!({})),
        Action::Terms => {
            let tenant =
                examined.due.identified().and_then(|one| circumstances.application.tenant(one.tenant));
            let text = |setting| tenant.map(|tenant| tenant.options.get(setting));
            let (url, version) = (text(TenantOption::TERMS_URL), text(TenantOption::TERMS_VERSION));
            ("Terms", TERMS, json!({ "url": url, "version": version }))
        }
        Action::Passkey => {
            // who came by an access pass and has neither may make a password instead, unless a passkey is required anyway
            let store = store_of(circumstances, examined);
            let is_required = store.is_some_and(|store| {
                store.options.get(UserStoreOption::PASSKEY_ENROLMENT).eq_ignore_ascii_case("Require")
            });
            let by_pass = !may_wait && !is_required && examined.is_by_access_pass();
            let context = json!({
                "kind": "make", "may_wait": may_wait, "password_instead": by_pass,
                "another": examined.is_by_passkey(),
            });
            ("Passkey", PASSKEY, context)
        }
        Action::Password => ("PasswordChange", NEW_PASSWORD, new_password::context_of(kept, examined)),
        Action::Questionnaire => {
            ("Questionnaire", QUESTIONNAIRE, questionnaire::context_of(kept, examined, may_wait))
        }
    }
}

fn access_pass_context(kept: &KeptFlow) -> Value {
    let hint = kept.request().and_then(|(_, request)| request.login_hint);
    match kept.mistake_on(ACCESS_PASS) {
        Some(mistake) => json!({ "username": mistake.username, "errors": mistake.told() }),
        None => json!({ "username": hint }),
    }
}

fn password_context(circumstances: &Circumstances, kept: &KeptFlow, examined: &Examined) -> Value {
    let hint = kept.request().and_then(|(_, request)| request.login_hint);
    let mistake = kept.mistake_on(PASSWORD);
    json!({
        "stores": !circumstances.offered(examined).is_empty(),
        "providers": providers(circumstances, examined),
        "username": mistake.map(|mistake| mistake.username.clone()).or(hint),
        "remember": kept.keeps,
        "access_pass": takes_access_passes(circumstances, examined),
        "errors": mistake.map_or_else(|| json!([]), Mistake::told),
    })
}

/// The external identity providers that are offered, in order.
fn providers(circumstances: &Circumstances, examined: &Examined) -> Vec<Value> {
    let Step::FirstFactor(due) = examined.due.step() else { return Vec::new() };
    let Some(tenant) = circumstances.application.tenant(due.tenant) else { return Vec::new() };
    let offered = due.offered.iter().filter_map(|instance| tenant.provider(instance.id));
    let told = offered.map(|provider| {
        let mut told = provider.about.told();
        told.insert("instance".to_owned(), provider.id.to_string().into());
        told.into()
    });
    told.collect()
}

fn consent_context(application: &Application, examined: &Examined) -> Value {
    let identified = examined.due.identified();
    let names = identified.and_then(|one| examined.names.get(&one.session?));
    let scopes: Vec<_> = examined
        .due
        .flow()
        .request()
        .asked
        .iter()
        .map(|word| {
            let own = application.scopes.iter().find(|scope| scope.key == *word);
            let resource = examined.resources.iter().find(|resource| resource.key == *word);
            let name = own.map(|scope| &scope.name).or(resource.map(|resource| &resource.name));
            let description = match (own, resource) {
                (Some(scope), _) => scope.description.as_ref(),
                (None, resource) => resource.and_then(|resource| resource.description.as_ref()),
            };
            let is_standard = STANDARD_SCOPES.contains(&word.as_str());
            // a resource is no part of the scope: without it the token would be for something else
            let is_required = word == OPENID || (own.is_none() && !is_standard);
            json!({
                "key": word,
                "name": name,
                "description": description,
                "required": is_required,
            })
        })
        .collect();
    let mut context =
        json!({ "user": names.map(|names| names.detail().unwrap_or(names.shown())), "scopes": scopes });
    if let (ConsentMode::Explicit, Some(members)) = (application.consent, context.as_object_mut()) {
        members.insert("remember".to_owned(), true.into());
    }
    context
}
