//! The response: the claims of each token, with reasons.

use chancery_auth::Confirmation;
use chancery_management::claim_rule::Unusable;
use chancery_oauth::{OPENID, ProtocolError};
use chancery_record::Timestamp;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::{
    claims::{Preview, Reasons, ReleaseReason, WithholdReason},
    endpoints::userinfo::LACKS_OPENID,
    grant::granted::Granted,
    tokens::{IdToken, Lifetimes, Tokens},
};

/// Claims of the protocol that are known only once a person has signed in and a token is issued.
const OF_SIGN_IN: [&str; 9] = ["acr", "amr", "at_hash", "auth_time", "exp", "gid", "iat", "jti", "sid"];

/// The tenant and instance of a sign-in.
#[derive(Clone, Copy, Debug, Default)]
pub struct SignInTarget {
    /// The tenant.
    pub tenant: Option<Uuid>,
    /// The instance.
    pub instance: Option<Uuid>,
}

/// The input of a token preview.
pub struct PreviewInput {
    /// The facts about the person.
    pub preview: Preview,
    /// The tenant and instance of the sign-in.
    pub target: SignInTarget,
    /// The client app.
    pub application: Uuid,
    /// The content of the grant.
    pub granted: Granted,
    /// The audience of the access token.
    pub aud: Vec<String>,
    /// The lifetimes of tokens.
    pub lifetimes: Lifetimes,
    /// The issuer's URL.
    pub issuer: String,
    /// Why the UserInfo endpoint refuses, whatever is granted.
    pub of_userinfo: Option<ProtocolError>,
    /// The time of the request.
    pub now: Timestamp,
}

impl PreviewInput {
    /// Runs the rules, and renders the claims of the tokens.
    pub fn render(self) -> Value {
        let previewed = match self.preview.evaluate() {
            Ok(previewed) => previewed,
            Err(Unusable(detail)) => {
                return answer(self.target, &json!({ "error": "server_error", "detail": detail }), None);
            }
        };
        let [of_id_token, of_access_token, of_userinfo] = &previewed.reasons;
        let (granted, issuer) = (&self.granted, self.issuer.as_str());
        let id_token = IdToken {
            granted,
            person: previewed.tokens.id_token.clone(),
            nonce: None,
            sid: Some(String::new()),
            token: "",
            lifetime: self.lifetimes.id_token,
        };
        let id_token = id_token.claims(issuer, self.application, "RS256", self.now);
        let tokens = Tokens {
            grant: Uuid::nil(),
            granted: granted.clone(),
            scope: granted.scope.clone(),
            aud: self.aud,
            released: previewed.tokens.into(),
            nonce: None,
            refresh_token: None,
            lifetimes: self.lifetimes,
        };
        let access_token = tokens.access_token(issuer, self.application, Confirmation::default(), self.now);
        let access_token = serde_json::to_value(access_token).unwrap_or_default();
        let mut userinfo = previewed.userinfo;
        userinfo.insert("sub".to_owned(), json!(granted.person));
        let lacks_openid = !granted.has(OPENID);
        let no_id_token = lacks_openid
            .then(|| json!({ "error": null, "detail": "Without the scope openid there is no ID token." }));
        let no_userinfo =
            lacks_openid.then(|| json!({ "error": "insufficient_scope", "detail": LACKS_OPENID }));
        let no_userinfo = no_userinfo.or_else(|| self.of_userinfo.map(refusal_json));
        let documents = [
            document(&members(id_token), of_id_token, no_id_token.as_ref()),
            document(&members(access_token), of_access_token, None),
            document(&userinfo, of_userinfo, no_userinfo.as_ref()),
        ];
        answer(self.target, &Value::Null, Some((&granted.scope, documents)))
    }
}

/// The response if the request of the client app, or the person, is refused.
pub fn refused(target: SignInTarget, refusal: ProtocolError) -> Value {
    answer(target, &refusal_json(refusal), None)
}

fn refusal_json(refusal: ProtocolError) -> Value {
    json!({ "error": refusal.code.name(), "detail": refusal.detail })
}

fn answer(target: SignInTarget, refusal: &Value, rendered: Option<(&str, [Value; 3])>) -> Value {
    let (scope, [id_token, access_token, userinfo]) = match rendered {
        Some((scope, documents)) => (Some(scope), documents),
        None => (None, [const { Value::Null }; 3]),
    };
    json!({
        "tenantId": target.tenant, "idpInstanceId": target.instance, "scope": scope, "refusal": refusal,
        "idToken": id_token, "accessToken": access_token, "userInfo": userinfo,
    })
}

fn members(claims: Value) -> Map<String, Value> {
    if let Value::Object(members) = claims { members } else { Map::new() }
}

/// The claims of one target with their reasons; none if there is a refusal.
fn document(members: &Map<String, Value>, reasons: &Reasons, refusal: Option<&Value>) -> Value {
    if refusal.is_some() {
        return json!({ "refusal": refusal, "claims": [], "withheld": [] });
    }
    let claims: Vec<Value> = members.iter().map(|(name, value)| claim(name, value, reasons)).collect();
    let withheld = reasons.withheld.iter();
    let withheld: Vec<Value> =
        withheld.map(|(why, name)| json!({ "name": name, "detail": detail(*why) })).collect();
    json!({ "refusal": null, "claims": claims, "withheld": withheld })
}

fn claim(name: &str, value: &Value, reasons: &Reasons) -> Value {
    let Some((reason, rules)) = reasons.released.get(name) else {
        let is_of_sign_in = OF_SIGN_IN.contains(&name);
        let (from, value) = if is_of_sign_in { ("SignIn", &Value::Null) } else { ("Protocol", value) };
        return json!({ "name": name, "value": value, "from": from, "scope": null, "rules": [] });
    };
    let (from, scope) = match reason {
        ReleaseReason::Scope(word) => ("Scope", Some(*word)),
        ReleaseReason::OwnScope => ("Scope", Some(name)),
        ReleaseReason::Name => ("ClaimsParameter", None),
        ReleaseReason::Groups => ("IncludeGroupsClaims", None),
        ReleaseReason::Rule => ("ClaimRule", None),
    };
    json!({ "name": name, "value": value, "from": from, "scope": scope, "rules": rules })
}

/// The reason for administrators why a claim is withheld.
fn detail(why: WithholdReason) -> String {
    let fixed = match why {
        WithholdReason::Scope(word) => return format!("The scope {word} is not granted."),
        WithholdReason::NoGroups => "The client app has includeGroupsClaims off.",
        WithholdReason::Minimal => {
            "The client app has idTokenClaims Minimal: its ID tokens tell what the parameter claims names, and no more."
        }
        WithholdReason::OnRequest => {
            "Its rule discloses it on request: by its name in the parameter claims, or by a scope of its name."
        }
        WithholdReason::NoRule => "An access token tells what rules send there.",
        WithholdReason::OtherDestination => "The rules in force send it elsewhere.",
        WithholdReason::Dropped => "The rules in force forward no such claim.",
        WithholdReason::NoRoom => "There is no room for it in the token: the UserInfo endpoint tells it.",
        WithholdReason::Protected => "No rule makes a claim of the protocol.",
        WithholdReason::UnsafeLink => "Its value would run a script where an app links to it.",
    };
    fixed.to_owned()
}
