//! The consent page.

use chancery_flow::{Event, Granted};
use chancery_oauth::{OPENID, STANDARD_SCOPES};
use chancery_resource::Problem;
use serde_json::{Value, json};

use super::{Form, Posted, SignInPage, not_counted};
use crate::{
    client_app::ConsentMode,
    flow::{
        context::{Evaluated, FlowContext},
        page_name::CONSENT,
        pending_flow::PendingFlow,
        response::BrowserResponse,
    },
    provider::{Provider, Visit},
};

pub(super) static PAGE: SignInPage =
    SignInPage { name: CONSENT, prepare: None, view, attempt: |_, _| None, post };

/// The selection on the consent page.
struct GivenConsent {
    /// The selected scopes and resources.
    words: Vec<String>,
    /// Whether the consent is stored.
    is_remembered: bool,
}

fn view(flow_context: &FlowContext, _: &PendingFlow, evaluated: &Evaluated) -> (&'static str, Value) {
    let application = &flow_context.application;
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
    ("Consent", context)
}

fn post<'a>(provider: Provider<'a>, visit: &'a Visit, pending: PendingFlow, form: Form<'a>) -> Posted<'a> {
    let ticked = form.0.iter().filter(|(name, _)| name == "scope").map(|(_, word)| word.clone());
    let is_remembered = form.field("remember").is_some();
    let given = GivenConsent { words: ticked.collect(), is_remembered };
    let given = (form.field("decision") == Some("allow")).then_some(given);
    not_counted(provider.answer_consent(visit, pending, given))
}

impl Provider<'_> {
    /// Applies the answer of the person. `None`: denied. `openid` and resources cannot be deselected: they are
    /// granted even if they are not ticked.
    async fn answer_consent(
        self,
        visit: &Visit,
        pending: PendingFlow,
        given: Option<GivenConsent>,
    ) -> Result<BrowserResponse, Problem> {
        let Some(given) = given else {
            return self.apply_event(visit, pending, |_| Event::ConsentDenied).await;
        };
        let resources = pending.request().map(|(_, request)| request.resources).unwrap_or_default();
        self.apply_event(visit, pending, move |due| {
            let is_given = |word: &&String| {
                given.words.contains(word) || word.as_str() == OPENID || resources.contains(word)
            };
            let words = due.flow().request().requested.iter().filter(is_given).cloned().collect();
            Event::ConsentGiven(Granted { words, is_remembered: given.is_remembered })
        })
        .await
    }
}
