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
    /// A person, and the authorization request of a client app to which the person signs in.
    pub struct TokenPreview {
        /// The platform user.
        platform_user_id: ApplicationUserId = OPEN,
        /// The tenant that the person signs in at. Default: the first suitable one.
        #[de(_, "Der Mandant, an dem sich die Person anmeldet. Ohne Angabe der erste passende.")]
        tenant_id: Option<TenantId> = OPEN,
        /// The identity provider instance through which the person signs in. Default: the first suitable one.
        #[de(_, "Der Identitätsanbieter, über den sich die Person anmeldet. Ohne Angabe der erste passende.")]
        idp_instance_id: Option<IdpInstanceId> = OPEN,
        /// The scope of the authorization request. Default: everything that the client app can be granted.
        #[de(_, "Der Scope der Autorisierungsanfrage. Ohne Angabe alles, was der Client-App gewährt werden kann.")]
        scope: Option<ShortText> = OPEN.like("openid profile email"),
        /// The resources of the authorization request (RFC 8707). Default: the resources of the client app.
        #[de(_, "Die Ressourcen der Autorisierungsanfrage (RFC 8707). Ohne Angabe die Ressourcen der Client-App.")]
        resources: RequestedResources = OPEN.or(DefaultValue::Text("[]")),
        /// The `claims` parameter of the authorization request, as JSON.
        #[de("Claims", "Der Parameter `claims` der Autorisierungsanfrage, als JSON.")]
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
    "Previews the claims about a person that the ID token, the access token and the UserInfo endpoint would contain for the client app, and the reason for each claim. Nothing is issued. The claims of an identity provider are those of the person's most recently used session.",
)
.added()];

fn schema() -> Value {
    let text = |about: &str| json!({ "type": "string", "description": about });
    let maybe = |about: &str| json!({ "type": ["string", "null"], "description": about });
    let id = |about: &str| json!({ "type": ["string", "null"], "format": "uuid", "description": about });
    let refusal = |about: &str| {
        json!({
            "type": ["object", "null"], "description": about, "required": ["error", "detail"],
            "properties": { "error": maybe("The OAuth error, if there is one."), "detail": text("What is refused, and why.") },
        })
    };
    let claim = json!({
        "type": "object", "required": ["name", "value", "from", "scope", "rules"],
        "properties": {
            "name": text("Its name."),
            "value": { "description": "Value of the claim. Null if it is known only after the person has signed in." },
            "from": { "type": "string", "enum": ORIGINS, "description": "Reason why the claim is included." },
            "scope": maybe("The scope for which the claim is included."),
            "rules": { "type": "array", "items": { "type": "string", "format": "uuid" },
                "description": "The claim rules that the claim passed or that created it, in order." },
        },
    });
    let withheld = json!({
        "type": "object", "required": ["name", "detail"],
        "properties": { "name": text("Its name."), "detail": text("Reason why the claim, or some of its values, are not included.") },
    });
    let document = |about: &str| {
        json!({
            "type": ["object", "null"], "description": about, "required": ["refusal", "claims", "withheld"],
            "properties": {
                "refusal": refusal("The reason why it is not available."),
                "claims": { "type": "array", "items": claim, "description": "Its claims." },
                "withheld": { "type": "array", "items": withheld, "description": "Known claims of the person that are not included." },
            },
        })
    };
    json!({
        "type": "object", "description": "The tokens that a client app would receive for a person.",
        "required": ["tenantId", "idpInstanceId", "scope", "refusal", "idToken", "accessToken", "userInfo"],
        "properties": {
            "tenantId": id("The tenant that the person signs in at."),
            "idpInstanceId": id("The identity provider instance through which the person signs in."),
            "scope": maybe("The granted scope. Null if the request is refused."),
            "refusal": refusal("Reason why no tokens would be issued. In this case there is no other result."),
            "idToken": document("The ID token."),
            "accessToken": document("The access token."),
            "userInfo": document("The response of the UserInfo endpoint."),
        },
    })
}
