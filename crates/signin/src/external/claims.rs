//! Claims of a provider about a person, as they are stored and released.

use chancery_application::ExternalProfile;
use chancery_claims::is_protected;
use chancery_management::idp_instance::connection::Completed;
use chancery_record::{Email, Json, Name, OptionValue, PersonalUrl};
use serde_json::json;

use crate::client_app::OfferedProvider;

/// The maximum of stored bytes of types and values.
const MAX_BYTES: usize = 32 << 10;
/// The maximum of stored claims.
const MAX_CLAIMS: usize = 500;
/// The maximum length of a subject, in characters: that of a platform user's identity.
const LONGEST_SUBJECT: usize = 255;
/// The values of `amr` and `acr` for a second factor at the provider (RFC 8176; OpenID Provider Authentication Policy
/// Extension 1.0; OpenID Connect Extended Authentication Profile).
const SECOND_FACTOR: [&str; 4] =
    ["mfa", "phr", "phrh", "http://schemas.openid.net/pape/policies/2007/06/multi-factor"];

/// The identity of a person at a provider, from its validated tokens.
#[derive(Clone)]
pub struct ProviderIdentity {
    /// `iss`
    pub issuer: String,
    /// `sub`
    pub subject: String,
    /// Whether there was a second factor.
    pub has_second_factor: bool,
    /// When the person signed in there, in ms since 1970, if the provider reports it.
    pub auth_time: Option<i64>,
    /// The types and values of the stored claims.
    pub claims: Vec<(String, String)>,
}

impl ProviderIdentity {
    /// The identity in this sign-in; `None` if there is none, or if it cannot be stored unchanged.
    pub fn of(completed: &Completed, provider: &OfferedProvider) -> Option<Self> {
        let id_token = completed.id_token.as_ref()?;
        let subject = completed.subject.clone().filter(|subject| {
            // a subject that is normalized when stored could be another person's
            subject.chars().count() <= LONGEST_SUBJECT
                && Name::new(subject.clone()).is_ok_and(|name| name.as_str() == subject)
        });
        let issuer = text(id_token, "iss").filter(|issuer| OptionValue::new(issuer.clone()).is_ok())?;
        let Some(subject) = subject else {
            tracing::warn!(instance = %provider.id, "the subject of a sign-in cannot be kept as it is");
            return None;
        };
        // UserInfo is requested last, and has what the ID token has no room for
        let sources = [&completed.user_info, &completed.id_token];
        let mut claims: Vec<(String, String)> = Vec::new();
        for (name, value) in sources.into_iter().flatten().flat_map(members) {
            if !is_protected(name) && !claims.iter().any(|(known, _)| known == name) {
                claims.extend(values_of(value).map(|value| (name.to_owned(), value)));
            }
        }
        let retained = within_bounds(claims, provider);
        let words = ["amr", "acr"].into_iter().filter_map(|name| id_token.get(name)).flat_map(values_of);
        let has_second_factor = words.into_iter().any(|word| SECOND_FACTOR.contains(&word.as_str()));
        let auth_time = match id_token.get("auth_time") {
            Some(Json::Int(seconds)) => seconds.checked_mul(1000),
            _ => None,
        };
        Some(Self { issuer, subject, has_second_factor, auth_time, claims: retained })
    }

    /// The fields of the platform user, from these types and values of claims, which claim rules may have changed. Values that a field
    /// does not accept are left out. So is an address that the provider did not send: otherwise rule authors could have codes sent to
    /// themselves.
    pub fn profile(&self, claims: &[(String, String)]) -> ExternalProfile {
        let value =
            |name: &str| claims.iter().find(|(claim, _)| claim == name).map(|(_, value)| value.clone());
        let name = |claim: &str| value(claim).and_then(|value| Name::new(value).ok());
        let email = value("email").filter(|email| self.claims.iter().any(|(_, sent)| sent == email));
        ExternalProfile {
            first_name: name("given_name"),
            last_name: name("family_name"),
            email_address: email.and_then(|email| Email::new(email).ok()),
            organizational_unit: name("organizational_unit"),
            picture: value("picture").and_then(|value| PersonalUrl::new(value).ok()),
        }
    }
}

fn text(json: &Json, name: &str) -> Option<String> {
    if let Some(Json::Text(text)) = json.get(name) { Some(text.clone()) } else { None }
}

fn members(json: &Json) -> impl Iterator<Item = (&str, &Json)> {
    let members = if let Json::Object(members) = json { members.as_slice() } else { &[] };
    members.iter().map(|(name, value)| (&**name, value))
}

/// The values of a claim: those of an array each by itself; a text as it is, anything else as JSON.
fn values_of(value: &Json) -> impl Iterator<Item = String> + use<> {
    let all = if let Json::Array(items) = value { items.iter().collect() } else { vec![value] };
    let written = all
        .into_iter()
        .filter(|value| !matches!(value, Json::Null))
        .map(|value| if let Json::Text(text) = value { text.clone() } else { value.to_serde().to_string() });
    written.collect::<Vec<_>>().into_iter()
}

/// The claims within the limits, in the provider's order.
fn within_bounds(claims: Vec<(String, String)>, provider: &OfferedProvider) -> Vec<(String, String)> {
    let (all, mut bytes) = (claims.len(), 0);
    let fits = |(name, value): &(String, String)| {
        // as they are stored: control characters take several bytes
        let more = bytes + json!([name, value]).to_string().len();
        let fits = more <= MAX_BYTES;
        if fits {
            bytes = more;
        }
        fits
    };
    let retained: Vec<_> = claims.into_iter().filter(fits).take(MAX_CLAIMS).collect();
    if retained.len() < all {
        tracing::warn!(instance = %provider.id, left_out = all - retained.len(), "a provider told more claims than are kept");
    }
    retained
}
