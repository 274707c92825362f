//! Lists the credentials of people with a role that were last set by an actor who lacks that role.

use chancery_application::{APPLICATION_USER, CredentialQuery, SetByOther, lineage_of, set_by_others};
use chancery_record::format_timestamp;
use chancery_resource::{
    Action as A, Answer, Call, Custom, JsonForm, Lineage, Method as M, Mode, Op, Permit::Administrator,
    Problem, QueryParameter, ROLES, Reply, RoleScope, RoleType, ScopeKind, Shape, Tx, visible,
};
use serde_json::{Value as Json, json};
use uuid::Uuid;

use crate::{customer::CUSTOMER, idp_instance::IDP_INSTANCE, subscription::SUBSCRIPTION, tenant::TENANT};

const PERSON: QueryParameter =
    QueryParameter::id("platformUserId", "Restricts the list to this platform user.");
const GROUP: QueryParameter = QueryParameter::id(
    "platformGroupId",
    "Restricts the list to the members of this platform group, at any depth.",
);
const ROLE: QueryParameter = QueryParameter::optional(
    "roleType",
    "Lists the credentials as if the people also held this role, before it is granted. Requires `platformUserId` or `platformGroupId`.",
    64,
);
const TARGET: QueryParameter = QueryParameter::id(
    "applyToId",
    "The customer, subscription, tenant or instance that the role in `roleType` would be granted for, if there is one.",
);

static REPLY: JsonForm = JsonForm { name: "CredentialsSetByOthers", schema };

fn schema() -> Json {
    let id = |about: &str| json!({ "type": "string", "format": "uuid", "description": about });
    let roles: Vec<&str> = ROLES.iter().map(|line| line.role.name()).collect();
    json!({
        "type": "object",
        "description": "Credentials of people with a role that were last set by an actor without the role.",
        "required": ["isComplete", "items"],
        "properties": {
            "isComplete": { "type": "boolean", "description": "Whether all people were checked. If false, only the first 1,000 people with a role were checked." },
            "items": { "type": "array", "description": "The credentials that were set, by person.", "items": {
                "type": "object",
                "required": ["platformUserId", "idpInstanceId", "userStore", "userId", "kind", "credentialId", "setBy", "setOn", "role"],
                "properties": {
                    "platformUserId": id("The platform user."),
                    "idpInstanceId": id("The user store where it was set, or the identity provider instance."),
                    "userStore": { "type": "string", "description": "The name of that user store or instance." },
                    "userId": { "type": ["string", "null"], "format": "uuid", "description": "The user in that store. Null for an identity or a provider." },
                    "kind": { "type": "string", "enum": ["Password", "Address", "Passkey", "Contact", "Identity", "Provider"],
                        "description": "What was set. Address: the login name, the e-mail address or the telephone number, or their confirmation. Identity: an identity with which the person signs in, linked by a directory or an identity replacement. Provider: settings, certificates or the directory token of the external identity provider." },
                    "credentialId": { "type": ["string", "null"], "format": "uuid", "description": "Id of the passkey, the security contact or the identity." },
                    "setBy": id("The actor who set it: a platform user, a client app, or the token of a directory."),
                    "setOn": { "type": ["string", "null"], "format": "date-time", "description": "When it was set, if known." },
                    "role": { "type": "string", "enum": roles, "description": "The highest role of the person that the actor in `setBy` lacks." },
                },
            } },
        },
    })
}

/// The operation that lists them.
pub static OPERATIONS: &[Op] = &[Op::new(
    "GetCredentialsSetByOthers",
    M::Get,
    "/CredentialSetByOther",
    Administrator,
    &APPLICATION_USER,
    A::Custom(Custom { mode: Mode::Long, ..Custom::reading(read) }.replying(Reply::Json(&REPLY))),
    "Lists the passwords, addresses, passkeys, security contacts and identities of people with roles, and the external identity providers by which \
     they sign in, that were last set by others who do not hold those roles.",
)
.with_query(&[PERSON, GROUP, ROLE, TARGET])
.added()];

fn read(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let (person, group) = (PERSON.read_id(&call.request)?, GROUP.read_id(&call.request)?);
    let query = match (person, group) {
        (None, None) => CredentialQuery::All,
        (Some(person), None) => CredentialQuery::Person(person),
        (None, Some(group)) => CredentialQuery::Group(group),
        (Some(_), Some(_)) => {
            return Err(Problem::invalid("platformUserId and platformGroupId are not asked for together."));
        }
    };
    let granted = granted(call, tx, query)?;
    let (found, is_complete) = set_by_others(&call.context, tx, query, granted)?;
    let items: Vec<Json> = found.iter().map(credential_json).collect();
    let answer = json!({ "isComplete": is_complete, "items": items });
    call.answer.bytes.extend_from_slice(answer.to_string().as_bytes());
    Ok(Answer::new(call.request.op.status))
}

/// The role that is about to be granted, and its target.
fn granted(
    call: &Call,
    tx: &mut Tx<'_>,
    query: CredentialQuery,
) -> Result<Option<(RoleType, Lineage)>, Problem> {
    let (name, target) = (ROLE.read_optional(&call.request)?, TARGET.read_id(&call.request)?);
    let Some(name) = name else {
        let wrong = || Problem::invalid("applyToId is asked for with roleType.");
        return target.map_or(Ok(None), |_| Err(wrong()));
    };
    let role = RoleType::of(name).ok_or_else(|| Problem::invalid("roleType names no role."))?;
    if query == CredentialQuery::All {
        return Err(Problem::invalid("roleType is asked for with platformUserId or platformGroupId."));
    }
    for kind in role.line().given_at {
        if let Some(granted_for) = lineage(call, tx, *kind, target)? {
            return Ok(Some((role, granted_for)));
        }
    }
    Err(Problem::invalid(format!("applyToId names nothing that a {name} can be granted for.")))
}

/// The lineage of a target; `None` if the target is missing, of another kind, or not visible to the caller.
fn lineage(
    call: &Call,
    tx: &mut Tx<'_>,
    kind: ScopeKind,
    target: Option<Uuid>,
) -> Result<Option<Lineage>, Problem> {
    let Some(id) = target else {
        let is_everywhere = matches!(kind, ScopeKind::System | ScopeKind::Nothing);
        return Ok(is_everywhere.then(Lineage::default));
    };
    let shape: &Shape = match kind {
        ScopeKind::System | ScopeKind::Nothing => return Ok(None),
        ScopeKind::Customer => &CUSTOMER,
        ScopeKind::Subscription => &SUBSCRIPTION,
        ScopeKind::Tenant => &TENANT,
        ScopeKind::IdpInstance | ScopeKind::UserStore => &IDP_INSTANCE,
    };
    if visible(&call.context, tx, shape, &[id])?.is_empty() {
        return Ok(None);
    }
    let scope = match kind {
        ScopeKind::Customer => RoleScope::Customer(id),
        ScopeKind::Subscription => RoleScope::Subscription(id),
        ScopeKind::Tenant => RoleScope::Tenant(id),
        _ => RoleScope::IdpInstance(id),
    };
    Ok(Some(lineage_of(tx, scope)?))
}

fn credential_json(one: &SetByOther) -> Json {
    let set_on = one.set_on.map(|moment| {
        let mut text = Vec::new();
        format_timestamp(moment, &mut text);
        String::from_utf8(text).unwrap_or_default()
    });
    json!({
        "platformUserId": one.person, "idpInstanceId": one.store.0, "userStore": one.store.1, "userId": one.user,
        "kind": one.kind.name(), "credentialId": one.credential, "setBy": one.set_by, "setOn": set_on,
        "role": one.role.name(),
    })
}
