//! The answer: what each token would tell, and by what.

use chancery_auth::Confirmation;
use chancery_management::claim_rule::Unusable;
use chancery_oauth::{OPENID, Refusal};
use chancery_record::Timestamp;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::{
    claims::{Ground, Preview, Reasons, Withheld},
    granted::Granted,
    tokens::{IdToken, Lifetimes, Tokens},
    userinfo::LACKS_OPENID,
};

/// Claims of the protocol that are known only once a person has signed in and a token is issued.
const OF_SIGN_IN: [&str; 9] = ["acr", "amr", "at_hash", "auth_time", "exp", "gid", "iat", "jti", "sid"];

/// Where a person signs in.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place {
    /// The tenant.
    pub tenant: Option<Uuid>,
    /// The instance.
    pub instance: Option<Uuid>,
}

/// All that tokens are made of.
pub struct Ready {
    /// What is known of the person.
    pub preview: Preview,
    /// Where the person signs in.
    pub place: Place,
    /// The client app.
    pub application: Uuid,
    /// What is granted.
    pub granted: Granted,
    /// Whom the access token is for.
    pub aud: Vec<String>,
    /// How long tokens last.
    pub lifetimes: Lifetimes,
    /// The issuer's URL.
    pub issuer: String,
    /// Why the UserInfo endpoint tells nothing, whatever is granted.
    pub of_userinfo: Option<Refusal>,
    /// The time of the request.
    pub now: Timestamp,
}

impl Ready {
    /// Runs the rules, and tells what the tokens would tell.
    pub fn tell(self) -> Value {
        let previewed = match self.preview.tell() {
            Ok(previewed) => previewed,
            Err(Unusable(detail)) => {
                return answer(self.place, &json!({ "error": "server_error", "detail": detail }), None);
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
        let id_token = id_token.claims((issuer, self.application), "RS256", self.now);
        let tokens = Tokens {
            grant: Uuid::nil(),
            granted: granted.clone(),
            scope: granted.scope.clone(),
            aud: self.aud,
            told: previewed.tokens.into(),
            nonce: None,
            refresh_token: None,
            lifetimes: self.lifetimes,
        };
        let access_token = tokens.access_token(issuer, (self.application, Confirmation::default()), self.now);
        let access_token = serde_json::to_value(access_token).unwrap_or_default();
        let mut userinfo = previewed.userinfo;
        userinfo.insert("sub".to_owned(), json!(granted.person));
        let lacks_openid = !granted.has(OPENID);
        let no_id_token = lacks_openid
            .then(|| json!({ "error": null, "detail": "Without the scope openid there is no ID token." }));
        let no_userinfo =
            lacks_openid.then(|| json!({ "error": "insufficient_scope", "detail": LACKS_OPENID }));
        let no_userinfo = no_userinfo.or_else(|| self.of_userinfo.map(told_refusal));
        let documents = [
            document(&members(id_token), of_id_token, no_id_token.as_ref()),
            document(&members(access_token), of_access_token, None),
            document(&userinfo, of_userinfo, no_userinfo.as_ref()),
        ];
        answer(self.place, &Value::Null, Some((&granted.scope, documents)))
    }
}

/// The answer where a request of the client app, or the person, is refused.
pub fn refused(place: Place, refusal: Refusal) -> Value {
    answer(place, &told_refusal(refusal), None)
}

fn told_refusal(refusal: Refusal) -> Value {
    json!({ "error": refusal.code.name(), "detail": refusal.detail })
}

fn answer(place: Place, refusal: &Value, told: Option<(&str, [Value; 3])>) -> Value {
    let (scope, [id_token, access_token, userinfo]) = match told {
        Some((scope, documents)) => (Some(scope), documents),
        None => (None, [const { Value::Null }; 3]),
    };
    json!({
        "tenantId": place.tenant, "idpInstanceId": place.instance, "scope": scope, "refusal": refusal,
        "idToken": id_token, "accessToken": access_token, "userInfo": userinfo,
    })
}

fn members(claims: Value) -> Map<String, Value> {
    if let Value::Object(members) = claims { members } else { Map::new() }
}

/// The claims of one place with what they are told by; none where there is a refusal.
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
    let Some((ground, rules)) = reasons.told.get(name) else {
        let is_of_sign_in = OF_SIGN_IN.contains(&name);
        let (from, value) = if is_of_sign_in { ("SignIn", &Value::Null) } else { ("Protocol", value) };
        return json!({ "name": name, "value": value, "from": from, "scope": null, "rules": [] });
    };
    let (from, scope) = match ground {
        Ground::Scope(word) => ("Scope", Some(*word)),
        Ground::OwnScope => ("Scope", Some(name)),
        Ground::Name => ("ClaimsParameter", None),
        Ground::Groups => ("IncludeGroupsClaims", None),
        Ground::Rule => ("ClaimRule", None),
    };
    json!({ "name": name, "value": value, "from": from, "scope": scope, "rules": rules })
}

/// Why a claim is not told, for administrators.
fn detail(why: Withheld) -> String {
    let fixed = match why {
        Withheld::Scope(word) => return format!("The scope {word} is not granted."),
        Withheld::NoGroups => "The client app has includeGroupsClaims off.",
        Withheld::Minimal => {
            "The client app has idTokenClaims Minimal: its ID tokens tell what the parameter claims names, and no more."
        }
        Withheld::OnRequest => {
            "Its rule discloses it on request: by its name in the parameter claims, or by a scope of its name."
        }
        Withheld::NoRule => "An access token tells what rules send there.",
        Withheld::Elsewhere => "The rules in force send it elsewhere.",
        Withheld::Dropped => "The rules in force forward no such claim.",
        Withheld::NoRoom => "There is no room for it in the token: the UserInfo endpoint tells it.",
        Withheld::Protected => "No rule makes a claim of the protocol.",
    };
    fixed.to_owned()
}
