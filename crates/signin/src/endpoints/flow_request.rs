//! What an authorization request demands of the sign-in.

use chancery_flow::{Acr, Prompt, Request};
use chancery_oauth::{AuthorizationRequest, CheckedRequest, Prompt as RequestPrompt, ResponseTarget};
use chancery_record::Timestamp;
use uuid::Uuid;

use crate::{client_app::Application, grant::claims_request::RequestedClaims};

/// The requirements of the authorization request for the sign-in.
pub fn flow_request(
    application: &Application,
    checked: &CheckedRequest,
    addressing: &ResponseTarget,
    issuing: Option<Uuid>,
    is_native: bool,
    now: Timestamp,
) -> Request {
    let request = &checked.request;
    let tenant = addressing.tenant.as_ref().map(|id| Uuid::try_parse(id).unwrap_or_default());
    let instance =
        request.acr_values.instance.as_ref().map(|named| application.instance(named).unwrap_or_default());
    Request {
        prompt: match request.prompt {
            RequestPrompt::None => Prompt::None,
            RequestPrompt::Pages(pages) => Prompt::Pages {
                login: pages.login,
                consent: pages.consent,
                select_account: pages.select_account,
            },
        },
        max_age: request.max_age.map(u64::from),
        has_login_hint: request.login_hint.is_some(),
        demanded: required_acr(request).into_iter().collect(),
        tenant: issuing.or(tenant),
        instance,
        requested: requested_access(application, checked),
        is_native,
        ..Request::new(now)
    }
}

/// The subject of a person's consent: the scope, the scopes of the claims requested by name, and the resources.
pub fn requested_access(application: &Application, checked: &CheckedRequest) -> Vec<String> {
    let requested = RequestedClaims::of(application, &checked.request.claims, &checked.scope).scopes();
    let named = requested.into_iter().filter(|word| checked.is_openid() && !checked.scope.has(word));
    let words = checked.scope.words().chain(named).map(str::to_owned);
    words.chain(checked.request.resources.iter().cloned()).collect()
}

/// The required authentication class: the lowest known one of `acr_values`, and of an essential `acr` of `claims`. A
/// higher class includes a lower one.
fn required_acr(request: &AuthorizationRequest) -> Option<Acr> {
    let lowest = |names: &[&str]| names.iter().filter_map(|name| Acr::named(name)).min();
    let classes: Vec<&str> = request.acr_values.classes.iter().map(String::as_str).collect();
    lowest(&classes).max(lowest(&request.claims.required_acr_values()))
}
