//! Preview of the claims in the tokens for a client app, without issuing any. The crate of the OpenID provider, which depends on this
//! one, computes it with the code that issues tokens.

use chancery_application::ApplicationUserId;
use chancery_record::{
    DefaultValue, FieldType, JsonText, Key, Kind, ListRule, Mismatch, OPEN, ShortText, Value as RecordValue,
    list_of, list_value, record,
};
use chancery_resource::{
    Action as A, Body, BodyForm, Custom, JsonForm, Method as M, Mode, Op, Permit::TenantMember, Reply,
};
use serde_json::{Value, json};

use super::CLIENT_APP;
use crate::{idp_instance::IdpInstanceId, tenant::TenantId};

/// The maximum number of resources in a request, as at the authorization endpoint.
static RESOURCES: ListRule = ListRule { item: &Key::RULE, most: 32 };

/// The resources that a client app requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestedResources(pub Vec<String>);

impl FieldType for RequestedResources {
    const KIND: Kind = Kind::Texts(&RESOURCES);
    fn into_value(self) -> RecordValue {
        list_value(&self.0)
    }
    fn from_value(value: RecordValue) -> Result<Self, Mismatch> {
        let RecordValue::Text(text) = value else { return Err(Mismatch("")) };
        list_of(&text).map(Self).ok_or(Mismatch(""))
    }
}

record! {
    /// A person, and what a client app would ask for when the person signs in to it.
    pub struct TokenPreview {
        /// The platform user.
        platform_user_id: ApplicationUserId = OPEN,
        /// The tenant that the person signs in at; the first one that fits where none is given.
        tenant_id: Option<TenantId> = OPEN,
        /// The instance that the person signs in by; the first one that fits where none is given.
        idp_instance_id: Option<IdpInstanceId> = OPEN,
        /// The scope of the authorization request; all that the client app may be granted where none is given.
        scope: Option<ShortText> = OPEN.like("openid profile email"),
        /// The resources of the authorization request (RFC 8707); those of the client app where there are none.
        resources: RequestedResources = OPEN.or(DefaultValue::Text("[]")),
        /// The parameter claims of the authorization request, as JSON.
        claims: Option<JsonText> = OPEN.like("{}"),
    }
}

static BODY: BodyForm = BodyForm::of::<TokenPreview>("TokenPreview");
static REPLY: JsonForm = JsonForm { name: "PreviewedTokens", schema };

/// The reasons why a claim is included.
const ORIGINS: [&str; 6] =
    ["Protocol", "SignIn", "Scope", "ClaimsParameter", "ClaimRule", "IncludeGroupsClaims"];

/// The operation that previews tokens.
pub static OPERATIONS: &[Op] = &[Op::new(
    "PreviewTokens",
    M::Post,
    "/ClientApp/{clientAppId}/tokens/preview",
    TenantMember,
    &CLIENT_APP,
    A::Custom(
        Custom {
            mode: Mode::Long,
            ..Custom::reading(|call, tx| {
                let preview = call.context.app.preview_tokens;
                preview(call, tx)
            })
        }
        .taking(Body::Form(&BODY))
        .replying(Reply::Json(&REPLY)),
    ),
    "Tells what ID token, access token and UserInfo endpoint would tell the client app of a person, and by what. Nothing is issued. What \
     an identity provider told is that of the person's session that was used last.",
)
.added()];

fn schema() -> Value {
    let text = |about: &str| json!({ "type": "string", "description": about });
    let maybe = |about: &str| json!({ "type": ["string", "null"], "description": about });
    let id = |about: &str| json!({ "type": ["string", "null"], "format": "uuid", "description": about });
    let refusal = |about: &str| {
        json!({
            "type": ["object", "null"], "description": about, "required": ["error", "detail"],
            "properties": { "error": maybe("The error of OAuth, where there is one."), "detail": text("What is refused, and why.") },
        })
    };
    let claim = json!({
        "type": "object", "required": ["name", "value", "from", "scope", "rules"],
        "properties": {
            "name": text("Its name."),
            "value": { "description": "Its value; null of what is known only once the person has signed in." },
            "from": { "type": "string", "enum": ORIGINS, "description": "By what it is told." },
            "scope": maybe("The scope by which it is told."),
            "rules": { "type": "array", "items": { "type": "string", "format": "uuid" },
                "description": "The claim rules that it passed, or that made it, in order." },
        },
    });
    let withheld = json!({
        "type": "object", "required": ["name", "detail"],
        "properties": { "name": text("Its name."), "detail": text("Why it is not there, or not with all of its values.") },
    });
    let document = |about: &str| {
        json!({
            "type": ["object", "null"], "description": about, "required": ["refusal", "claims", "withheld"],
            "properties": {
                "refusal": refusal("Why there is none."),
                "claims": { "type": "array", "items": claim, "description": "Its claims." },
                "withheld": { "type": "array", "items": withheld, "description": "What is known of the person and not told." },
            },
        })
    };
    json!({
        "type": "object", "description": "What tokens of a person would tell a client app.",
        "required": ["tenantId", "idpInstanceId", "scope", "refusal", "idToken", "accessToken", "userInfo"],
        "properties": {
            "tenantId": id("The tenant that the person signs in at."),
            "idpInstanceId": id("The instance that the person signs in by."),
            "scope": maybe("The scope that is granted; null where the request is refused."),
            "refusal": refusal("Why there are no tokens: then there is nothing else."),
            "idToken": document("The ID token."),
            "accessToken": document("The access token."),
            "userInfo": document("The answer of the UserInfo endpoint."),
        },
    })
}
