//! The security profile of a client app as a checklist. Violations link to their fields.

use chancery_management::client_app::{
    configuration::CLIENT_APP_AUTHENTICATION_CONFIGURATION, secret::CLIENT_APP_SECRET,
    uri::CLIENT_APP_REDIRECT_URI,
};
use chancery_oauth::{
    Authentication, ClientSettings, Encryption, Method, SecurityProfile, findings, unsupported_settings,
};
use chancery_resource::{Problem, Shape};
use chancery_web::{AnswerBody, Input};
use http::Response;
use serde_json::{Value, json};

use crate::{
    pages::{
        form::{at, errors, is_of_form, status_of},
        item::read,
    },
    shell::{
        components::{Card, Line},
        directory::{self, Resource, encoded, title_of},
        fields::plain,
        visit::{Visit, one, redirect_with_notice},
    },
};

/// A profile.
#[derive(Clone, Copy)]
struct Profile {
    /// The name in URLs and, after `profile_`, in the texts.
    name: &'static str,
    /// The FAPI profile; `None` for the recommendations.
    fapi: Option<SecurityProfile>,
    /// The wire value.
    wire: &'static str,
    /// The members with rules.
    rules: &'static [&'static str],
}

/// The profiles, the least strict one first. FAPI rules are checked by the same functions as a change of a client app;
/// the recommendations of the basic profile, which nothing enforces, are checked here.
const PROFILES: [Profile; 4] = [
    Profile {
        name: "basic",
        fapi: None,
        wire: "None",
        rules: &[
            "allowedResponseTypes",
            "clientAppSecrets",
            "tokenEndpointAuthMethod",
            "pkce",
            "resourceFilterEnabled",
            "scopeFilterEnabled",
            "allowCrossSubscription",
        ],
    },
    Profile {
        name: "fapi2",
        fapi: Some(SecurityProfile::Fapi2SecurityProfile),
        wire: "Fapi2SecurityProfile",
        rules: &[
            "isPublic",
            "tokenEndpointAuthMethod",
            "dpopBoundAccessTokens",
            "requirePushedAuthorizationRequests",
            "allowedResponseTypes",
            "clientAppRedirectUris",
            "requestObjectSigningAlg",
        ],
    },
    Profile {
        name: "fapi2-signed",
        fapi: Some(SecurityProfile::Fapi2MessageSigning),
        wire: "Fapi2MessageSigning",
        rules: &[
            "isPublic",
            "tokenEndpointAuthMethod",
            "dpopBoundAccessTokens",
            "requirePushedAuthorizationRequests",
            "allowedResponseTypes",
            "clientAppRedirectUris",
            "requestObjectSigningAlg",
        ],
    },
    Profile {
        name: "fapi1",
        fapi: Some(SecurityProfile::Fapi1Advanced),
        wire: "Fapi1Advanced",
        rules: &[
            "isPublic",
            "tokenEndpointAuthMethod",
            "requireCertificateBoundAccessTokens",
            "requestObjectSigningAlg",
            "allowedResponseTypes",
            "clientAppRedirectUris",
        ],
    },
];
/// The members of the authentication configuration.
const OF_CONFIGURATION: [&str; 3] =
    ["tokenEndpointAuthMethod", "dpopBoundAccessTokens", "requireCertificateBoundAccessTokens"];

/// A client app with its authentication configuration.
struct ClientAppSecurity {
    app: Value,
    /// Null if there is none.
    configuration: Value,
}

impl ClientAppSecurity {
    async fn read(visit: &Visit<'_>, resource: &'static Resource, key: &str) -> Result<Self, Problem> {
        let app = read(visit, resource, key).await?;
        let known =
            directory::of_shape(&CLIENT_APP_AUTHENTICATION_CONFIGURATION).and_then(|one| visit.may(one.read));
        let configuration = match known {
            Some(op) => match visit.perform(Input::of(op, vec![key.to_owned()])).await {
                Ok(output) => output.json(),
                Err(problem) if problem.status() == 404 => Value::Null,
                Err(problem) => return Err(problem),
            },
            None => Value::Null,
        };
        Ok(Self { app, configuration })
    }

    fn text(&self, wire: &str) -> &str {
        at(&self.app, wire).as_str().unwrap_or_default()
    }

    fn is(&self, wire: &str) -> bool {
        [&self.app, &self.configuration].iter().any(|row| *at(row, wire) == json!(true))
    }

    fn method(&self) -> Option<Method> {
        Method::named(at(&self.configuration, "tokenEndpointAuthMethod").as_str()?)
    }

    /// The redirect URIs of the sign-in.
    fn addresses(&self) -> Vec<&str> {
        let all = at(&self.app, "clientAppRedirectUris").as_array().map(Vec::as_slice).unwrap_or_default();
        let of_sign_in = all.iter().filter(|one| one["redirectUriType"] != json!("Logout"));
        of_sign_in.filter_map(|one| one["uri"].as_str()).collect()
    }

    /// The members of the client app itself, without a profile.
    fn facts(&self) -> ClientSettings<'_> {
        let optional = |member: &str| at(&self.app, member).as_str();
        let encryption = |of: &str| Encryption {
            alg: optional(&format!("{of}EncryptedResponseAlg")),
            enc: optional(&format!("{of}EncryptedResponseEnc")),
        };
        ClientSettings {
            is_public: self.is("isPublic"),
            is_native_application: self.is("isNativeApplication"),
            require_pushed_authorization_requests: self.is("requirePushedAuthorizationRequests"),
            allowed_response_types: self.text("allowedResponseTypes"),
            is_pairwise: self.text("subjectType") == "Pairwise",
            id_token_encryption: encryption("idToken"),
            userinfo_encryption: encryption("userinfo"),
            introspection_encryption: encryption("introspection"),
            encrypts_access_tokens: self.is("accessTokenEncryptionEnabledOverride"),
            request_object_signing_alg: optional("requestObjectSigningAlg"),
            request_object_encryption: Encryption {
                alg: optional("requestObjectEncryptionAlg"),
                enc: optional("requestObjectEncryptionEnc"),
            },
            ..ClientSettings::default()
        }
    }

    /// The settings that this release does not support, each with the effect of using it.
    fn unsupported(&self, visit: &Visit<'_>) -> Vec<(&'static str, String)> {
        let profile = current(&self.app).fapi.unwrap_or_default();
        let unsupported = unsupported_settings(&ClientSettings { security_profile: profile, ..self.facts() });
        let explanation = |member: &str| visit.words.page(&format!("unserved_{member}")).to_owned();
        unsupported.into_iter().map(|one| (one.member, explanation(one.member))).collect()
    }

    /// The violations of a profile, each with its member and a message.
    fn missing(&self, visit: &Visit<'_>, profile: Profile) -> Vec<(&'static str, String)> {
        let Profile { name, fapi, rules, .. } = profile;
        let Some(security_profile) = fapi else {
            let broken = rules.iter().filter(|rule| self.is_broken(rule));
            let explanation = |rule: &str| visit.words.page(&format!("safety_{name}_{rule}")).to_owned();
            return broken.map(|rule| (*rule, explanation(rule))).collect();
        };
        let addresses = self.addresses();
        let facts = ClientSettings {
            security_profile,
            redirect_uris: &addresses,
            authentication: self.method().map(|method| Authentication {
                method,
                require_certificate_bound_access_tokens: self.is("requireCertificateBoundAccessTokens"),
                dpop_bound_access_tokens: self.is("dpopBoundAccessTokens"),
                ..Authentication::default()
            }),
            ..self.facts()
        };
        // in the user's language: the text of the profile, else that of all FAPI profiles
        let explanation = |member: &str| {
            let all = [name, "fapi"].map(|profile| format!("safety_{profile}_{member}"));
            all.iter().find_map(|key| visit.words.page.get(key)).cloned()
        };
        let violations = findings(&facts).into_iter().filter(|finding| rules.contains(&finding.member));
        violations
            .map(|finding| {
                (finding.member, explanation(finding.member).unwrap_or_else(|| finding.detail.to_owned()))
            })
            .collect()
    }

    /// Whether a recommendation is violated.
    fn is_broken(&self, rule: &str) -> bool {
        match rule {
            "allowedResponseTypes" => self.text(rule).split(',').any(|kind| kind.trim() != "code"),
            // a secret without expiry is not replaced until it is stolen
            "clientAppSecrets" => {
                let all = at(&self.app, rule).as_array().map(Vec::as_slice).unwrap_or_default();
                all.iter().any(|secret| secret["expiry"].is_null())
            }
            "tokenEndpointAuthMethod" => {
                !self.is("isPublic") && matches!(self.method(), Some(Method::ClientSecretPost))
            }
            // public and native apps always require it
            "pkce" => {
                !self.is("isPublic") && !self.is("isNativeApplication") && self.text(rule) != "Required"
            }
            "resourceFilterEnabled" | "scopeFilterEnabled" => !self.is(rule),
            "allowCrossSubscription" => self.is(rule),
            _ => false,
        }
    }
}

fn named(name: &str) -> Option<Profile> {
    PROFILES.into_iter().find(|profile| profile.name == name)
}

/// The profile of a client app.
fn current(app: &Value) -> Profile {
    let [basic, ..] = PROFILES;
    let profile = PROFILES.into_iter().find(|profile| app["securityProfile"] == json!(profile.wire));
    profile.unwrap_or(basic)
}

fn address(visit: &Visit<'_>, resource: &Resource, key: &str) -> String {
    format!("{}/{}/safety", visit.address(resource), encoded(key))
}

/// The URL where a member is changed, if the user may change it.
fn member_href(
    visit: &Visit<'_>,
    resource: &Resource,
    key: &str,
    security: &ClientAppSecurity,
    member: &str,
) -> Option<String> {
    let list = |shape: &Shape| {
        let resource = directory::of_shape(shape).filter(|one| visit.may(one.list).is_some())?;
        Some(format!("{}?of=clientAppId:{}", visit.address(resource), encoded(key)))
    };
    match member {
        "clientAppRedirectUris" => list(&CLIENT_APP_REDIRECT_URI),
        "clientAppSecrets" => list(&CLIENT_APP_SECRET),
        member if OF_CONFIGURATION.contains(&member) => {
            let resource = directory::of_shape(&CLIENT_APP_AUTHENTICATION_CONFIGURATION)?;
            let address = visit.address(resource);
            if security.configuration.is_null() {
                visit.may(resource.create)?;
                return Some(format!("{address}/new?clientAppId={}", encoded(key)));
            }
            visit.may(resource.patch)?;
            Some(format!("{address}/{}#f-{member}", encoded(key)))
        }
        member => {
            visit.may(resource.patch)?;
            Some(format!("{}/{}#f-{member}", visit.address(resource), encoded(key)))
        }
    }
}

fn label(visit: &Visit<'_>, profile: Profile) -> String {
    visit.words.page(&format!("profile_{}", profile.name)).to_owned()
}

/// The checklist of a profile.
fn checklist(
    visit: &Visit<'_>,
    resource: &Resource,
    key: &str,
    security: &ClientAppSecurity,
    profile: Profile,
) -> Card {
    let words = visit.words;
    let missing = security.missing(visit, profile);
    let lines = profile.rules.iter().map(|member| {
        let wrong = missing.iter().find(|(of, _)| of == member).map(|(_, detail)| detail.clone());
        Line {
            tone: if wrong.is_some() { "warn" } else { "good" },
            text: words.field(member),
            href: wrong.is_some().then(|| member_href(visit, resource, key, security, member)).flatten(),
            sub: wrong.unwrap_or_default(),
            ..Line::default()
        }
    });
    let lines: Vec<Line> = lines.collect();
    let good = lines.len()
        - missing.iter().map(|(member, _)| member).collect::<std::collections::BTreeSet<_>>().len();
    Card {
        title: label(visit, profile),
        kind: "checks",
        tone: if missing.is_empty() { "good" } else { "warn" },
        about: words.page(&format!("profile_{}_about", profile.name)).into(),
        count: Some(format!("{good} / {}", lines.len())),
        lines,
        ..Card::default()
    }
}

/// The card on the page of a client app, with the violations of its profile.
pub async fn card(visit: &Visit<'_>, resource: &'static Resource, key: &str) -> Result<Card, Problem> {
    let security = ClientAppSecurity::read(visit, resource, key).await?;
    let mut card = checklist(visit, resource, key, &security, current(&security.app));
    card.lines.retain(|line| line.tone != "good");
    let unsupported = security.unsupported(visit).into_iter().map(|(member, sub)| Line {
        tone: "bad",
        text: format!("{}: {}", visit.words.field(member), visit.words.page("unserved")),
        href: member_href(visit, resource, key, &security, member),
        sub,
        ..Line::default()
    });
    card.lines.splice(..0, unsupported);
    card.about = String::new();
    card.title = format!("{}: {}", visit.words.page("safety"), card.title);
    let label = visit.words.page("safety_raise");
    card.more = Some(json!({ "href": address(visit, resource, key), "label": label }));
    Ok(card)
}

/// Shows the checklist of the profile in the URL, else of the client app's own one.
pub async fn show(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
) -> Result<Response<AnswerBody>, Problem> {
    page(visit, resource, key, None).await
}

/// Assigns the profile to the client app, if nothing is missing.
pub async fn set(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
) -> Result<Response<AnswerBody>, Problem> {
    let op = visit.require(resource.patch)?;
    let Profile { name, wire, .. } = one(&visit.form, "profile")
        .and_then(named)
        .ok_or_else(|| Problem::invalid("There is no profile of this name."))?;
    let mut input = Input::of(op, vec![key.to_owned()]);
    let token = one(&visit.form, "concurrencyToken").unwrap_or_default();
    input.body = Some(json!({ "securityProfile": wire, "concurrencyToken": token }));
    match visit.perform(input).await {
        Ok(_) => {
            Ok(redirect_with_notice(&format!("{}?profile={name}", address(visit, resource, key)), "saved"))
        }
        Err(problem) if is_of_form(&problem) => page(visit, resource, key, Some(&problem)).await,
        Err(problem) => Err(problem),
    }
}

async fn page(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
    problem: Option<&Problem>,
) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let security = ClientAppSecurity::read(visit, resource, key).await?;
    let now = current(&security.app);
    let requested = visit.parameter("profile").or_else(|| one(&visit.form, "profile"));
    let chosen = requested.and_then(named).unwrap_or(now);
    let here = address(visit, resource, key);
    let views: Vec<Value> = PROFILES
        .into_iter()
        .map(|profile| {
            let href = format!("{here}?profile={}", profile.name);
            json!({ "label": label(visit, profile), "href": href, "is_current": profile.name == chosen.name })
        })
        .collect();
    let card = checklist(visit, resource, key, &security, chosen);
    let can_set = visit.may(resource.patch).is_some() && chosen.name != now.name;
    // the recommendations are no profile: choosing them removes the profile
    let is_whole = chosen.fapi.is_none() || card.tone == "good";
    let set = (can_set && is_whole).then(|| {
        json!({
            "label": words.page(if chosen.fapi.is_none() { "safety_unset" } else { "safety_set" }),
            "hidden": [
                { "name": "profile", "value": chosen.name },
                { "name": "concurrencyToken", "value": plain(at(&security.app, "concurrencyToken")) },
            ],
        })
    });
    let title = title_of(resource, &security.app);
    let content = json!({
        "back": { "href": format!("{}/{}", visit.address(resource), encoded(key)), "label": title },
        "heading": words.page("safety"), "about": words.page("safety_about"), "views": views, "card": card,
        "now": format!("{} {}", words.page("safety_now"), label(visit, now)), "set": set,
        "errors": errors(visit, problem),
    });
    visit.page(status_of(problem), "safety.html", words.page("safety"), &content)
}
