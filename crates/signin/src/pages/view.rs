//! The pages of a sign-in and the contexts of their views.

use chancery_flow::{Action, Choice, DueAction, Step, Urgency};
use chancery_oauth::{OPENID, STANDARD_SCOPES};
use chancery_resource::settings::{TenantOption, UserStoreOption};
use serde_json::{Map, Value, json};

use super::{
    new_password, questionnaire,
    reset::reset_url,
    second_factor_view::{enrol_context, factor_context},
};
use crate::{
    client_app::{Application, ConsentMode, Offered},
    flow::{
        context::{Evaluated, FlowContext},
        page_name::{
            ACCESS_PASS, CHOOSE, CONFIRM, CONSENT, CONTINUE, ENROL, NEW_PASSWORD, PASSKEY, PASSWORD,
            QUESTIONNAIRE, RECOVERY, REFUSED, SECOND_FACTOR, TERMS, takes_access_passes,
        },
        pending_flow::{FormErrors, PendingFlow},
        response::Page,
    },
};

/// The due page with the prepared context.
pub fn page_for(
    (page, added): (&str, Map<String, Value>),
    flow_context: &FlowContext,
    pending: &PendingFlow,
    evaluated: &Evaluated,
) -> Page {
    let application = &flow_context.application;
    let (view, step, context) = match (page, evaluated.due.step()) {
        (RECOVERY, _) => ("Enrol", RECOVERY, json!({ "codes": pending.recovery_codes })),
        (ACCESS_PASS, _) => ("AccessPass", ACCESS_PASS, access_pass_context(pending)),
        (_, Step::Tenant(tenants)) => {
            let choices: Vec<_> = tenants
                .iter()
                .filter_map(|id| application.tenant(*id))
                .map(|tenant| json!({ "value": format!("tenant:{}", tenant.facts.id), "name": tenant.name }))
                .collect();
            ("Choose", CHOOSE, json!({ "kind": "tenant", "choices": choices }))
        }
        (_, Step::Account { sessions, .. }) => {
            let named = sessions.iter().filter_map(|id| Some((id, evaluated.names.get(id)?)));
            let choices: Vec<_> = named
                .map(|(id, names)| {
                    json!({ "value": format!("session:{id}"), "name": names.display_name(), "detail": names.detail() })
                })
                .collect();
            ("Choose", CHOOSE, json!({ "kind": "account", "choices": choices }))
        }
        (_, Step::Refuse(_)) => ("Refused", REFUSED, json!({})),
        (_, Step::SecondFactor(choices) | Step::StepUp { choices, .. }) => {
            let view = if choices.chosen == Choice::Passkey { "Passkey" } else { "SecondFactor" };
            (view, SECOND_FACTOR, factor_context(flow_context, evaluated, choices))
        }
        (_, Step::EnrolFactor(_)) => ("Enrol", ENROL, enrol_context(flow_context, pending, evaluated)),
        (_, Step::Action(due)) => action_page(*due, flow_context, pending, evaluated),
        (_, Step::Consent) => ("Consent", CONSENT, consent_context(application, evaluated)),
        (_, Step::Touch | Step::Done(_)) => ("Continue", CONTINUE, json!({})),
        _ => ("SignIn", PASSWORD, password_context(flow_context, pending, evaluated)),
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
    if let Some(about) = provider_of(flow_context, evaluated).map(Offered::about) {
        members.insert("provider".to_owned(), about.to_view().into());
    }
    if let (false, Some(form_errors)) = (members.contains_key("errors"), pending.form_errors_on(page)) {
        members.insert("errors".to_owned(), form_errors.to_json());
    }
    if let Step::FirstFactor(due) = evaluated.due.step() {
        let url = reset_url(application, due, &flow_context.app, pending);
        members.insert("reset_url".to_owned(), json!(url));
    }
    members.extend(added);
    let tenant = flow_context.tenant_of(evaluated);
    let rendered = Page::new(view, step, Value::Object(members)).of(application, tenant);
    rendered.in_language(evaluated.locale().cloned())
}

/// The identity provider instance of a page: the person's, or the only one that is offered; `None` if several are.
fn provider_of<'a>(flow_context: &'a FlowContext, evaluated: &Evaluated) -> Option<Offered<'a>> {
    let of = |tenant, instance| flow_context.application.tenant(tenant)?.offered(instance);
    match (evaluated.due.identified(), evaluated.due.step()) {
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
    flow_context: &FlowContext,
    pending: &PendingFlow,
    evaluated: &Evaluated,
) -> (&'static str, &'static str, Value) {
    let may_wait = due.urgency == Urgency::Offered;
    match due.action {
        Action::Email => ("Confirm", CONFIRM, json!({})),
        Action::Terms => {
            let tenant =
                evaluated.due.identified().and_then(|one| flow_context.application.tenant(one.tenant));
            let text = |setting| tenant.map(|tenant| tenant.options.get(setting));
            let (url, version) = (text(TenantOption::TERMS_URL), text(TenantOption::TERMS_VERSION));
            ("Terms", TERMS, json!({ "url": url, "version": version }))
        }
        Action::Passkey => {
            // a person with an access pass and neither passkey nor password may create a password instead, unless a
            // passkey is required
            let store = flow_context.store_of(evaluated);
            let is_required = store.is_some_and(|store| {
                store.options.get(UserStoreOption::PASSKEY_ENROLMENT).eq_ignore_ascii_case("Require")
            });
            let by_pass = !may_wait && !is_required && evaluated.is_by_access_pass();
            let context = json!({
                "kind": "make", "may_wait": may_wait, "password_instead": by_pass,
                "another": evaluated.is_by_passkey(),
            });
            ("Passkey", PASSKEY, context)
        }
        Action::Password => ("PasswordChange", NEW_PASSWORD, new_password::context_of(pending, evaluated)),
        Action::Questionnaire => {
            ("Questionnaire", QUESTIONNAIRE, questionnaire::context_of(pending, evaluated, may_wait))
        }
    }
}

fn access_pass_context(pending: &PendingFlow) -> Value {
    let hint = pending.request().and_then(|(_, request)| request.login_hint);
    match pending.form_errors_on(ACCESS_PASS) {
        Some(form_errors) => json!({ "username": form_errors.username, "errors": form_errors.to_json() }),
        None => json!({ "username": hint }),
    }
}

fn password_context(flow_context: &FlowContext, pending: &PendingFlow, evaluated: &Evaluated) -> Value {
    let hint = pending.request().and_then(|(_, request)| request.login_hint);
    let form_errors = pending.form_errors_on(PASSWORD);
    json!({
        "stores": !flow_context.offered(evaluated).is_empty(),
        "providers": providers(flow_context, evaluated),
        "username": form_errors.map(|form_errors| form_errors.username.clone()).or(hint),
        "remember": pending.is_persistent,
        "access_pass": takes_access_passes(flow_context, evaluated),
        "errors": form_errors.map_or_else(|| json!([]), FormErrors::to_json),
    })
}

/// The external identity providers that are offered, in order.
fn providers(flow_context: &FlowContext, evaluated: &Evaluated) -> Vec<Value> {
    let Step::FirstFactor(due) = evaluated.due.step() else { return Vec::new() };
    let Some(tenant) = flow_context.application.tenant(due.tenant) else { return Vec::new() };
    let offered = due.offered.iter().filter_map(|instance| tenant.provider(instance.id));
    let rendered = offered.map(|provider| {
        let mut rendered = provider.about.to_view();
        rendered.insert("instance".to_owned(), provider.id.to_string().into());
        rendered.into()
    });
    rendered.collect()
}

fn consent_context(application: &Application, evaluated: &Evaluated) -> Value {
    let identified = evaluated.due.identified();
    let names = identified.and_then(|one| evaluated.names.get(&one.session?));
    let scopes: Vec<_> = evaluated
        .due
        .flow()
        .request()
        .requested
        .iter()
        .map(|word| {
            let own = application.scopes.iter().find(|scope| scope.key == *word);
            let resource = evaluated.resources.iter().find(|resource| resource.key == *word);
            let name = own.map(|scope| &scope.name).or(resource.map(|resource| &resource.name));
            let description = match (own, resource) {
                (Some(scope), _) => scope.description.as_ref(),
                (None, resource) => resource.and_then(|resource| resource.description.as_ref()),
            };
            let is_standard = STANDARD_SCOPES.contains(&word.as_str());
            // a resource is no part of the scope: without it the token would have another audience
            let is_required = word == OPENID || (own.is_none() && !is_standard);
            json!({
                "key": word,
                "name": name,
                "description": description,
                "required": is_required,
            })
        })
        .collect();
    let mut context = json!({ "user": names.map(|names| names.detail().unwrap_or(names.display_name())), "scopes": scopes });
    if let (ConsentMode::Explicit, Some(members)) = (application.consent, context.as_object_mut()) {
        members.insert("remember".to_owned(), true.into());
    }
    context
}
