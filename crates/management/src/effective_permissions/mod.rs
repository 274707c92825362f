//! Effective permissions: the permissions of a principal on this server, and their roles.

mod roles;

use std::collections::BTreeSet;

use chancery_application::{APPLICATION_GROUP, APPLICATION_USER};
use chancery_record::parse_id;
use chancery_resource::{
    Action as A, Answer, Call, Context, Custom, JsonForm, Method as M, Mode, Op, Permit, Problem, Reply,
    RoleScope, RoleType, Shape, Tx, visible,
};
use serde_json::json;
use uuid::Uuid;

use crate::client_app::CLIENT_APP;

use self::roles::{AssignedRole, RoleVisitor};

static REPLY: JsonForm = JsonForm { name: "EffectivePermissions", schema };

fn schema() -> serde_json::Value {
    let text = |about: &str| json!({ "type": "string", "description": about });
    json!({
        "type": "object",
        "description": "The roles of a principal, and the permissions that they grant.",
        "required": ["principalId", "principalType", "scope", "assignments", "permissions"],
        "properties": {
            "principalId": { "type": "string", "format": "uuid", "description": "The id of the principal." },
            "principalType": { "type": "string", "enum": ["PlatformUser", "PlatformGroup", "ClientApp"], "description": "The type of the principal." },
            "scope": { "type": ["string", "null"], "description": "The widest scope of the assignments. Null if there are none." },
            "assignments": { "type": "array", "description": "The role assignments, each with the way in which the principal has the role.", "items": {
                "type": "object", "required": ["roleType", "source", "sourceId", "scopeType", "scopeId"],
                "properties": {
                    "roleType": text("The role."),
                    "source": { "type": "string", "enum": ["Direct", "Group", "ClientApp"], "description": "Whether the role is assigned to the principal itself, to a group of the principal, or to the client app." },
                    "sourceId": { "type": "string", "format": "uuid", "description": "The id of the principal, group or client app to which the role is assigned." },
                    "scopeType": { "type": "string", "enum": ["System", "Customer", "Subscription", "Tenant", "IdpInstance"], "description": "The type of the scope of the role." },
                    "scopeId": { "type": ["string", "null"], "format": "uuid", "description": "The id of the scope of the role. Null for the whole system." },
                },
            } },
            "permissions": { "type": "array", "description": "The permissions that the roles grant somewhere in their scopes, sorted.",
                "items": { "type": "string", "examples": ["ClientApp.Read"] } },
        },
    })
}

const fn op(
    name: &'static str,
    path: &'static str,
    shape: &'static Shape,
    run: chancery_resource::Run,
) -> Op {
    let action = Custom { mode: Mode::Long, ..Custom::reading(run) }.replying(Reply::Json(&REPLY));
    Op::new(
        name,
        M::Get,
        path,
        Permit::Oneself,
        shape,
        A::Custom(action),
        "Returns the permissions of a principal, with the roles that grant them.",
    )
}

/// The operations that read effective permissions.
pub static OPERATIONS: &[Op] = &[
    op(
        "GetEffectivePermissionsOfPlatformUser",
        "/EffectivePermissions/platformuser/{principalId}",
        &APPLICATION_USER,
        of_user,
    ),
    op(
        "GetEffectivePermissionsOfPlatformGroup",
        "/EffectivePermissions/platformgroup/{principalId}",
        &APPLICATION_GROUP,
        of_group,
    ),
    op(
        "GetEffectivePermissionsOfClientApp",
        "/EffectivePermissions/clientapp/{principalId}",
        &CLIENT_APP,
        of_client_app,
    ),
];

/// The principal that the path names: one visible to the caller, or the caller itself.
fn principal(call: &Call, tx: &mut Tx<'_>) -> Result<Uuid, Problem> {
    let shape = call.request.op.shape;
    let not_found = || Problem::not_found(shape.name);
    let id = parse_id(call.request.parameter(0)).ok_or_else(|| {
        Problem::invalid(format!(
            "{:?} in the path is not a UUID, so it names no {}.",
            call.request.parameter(0),
            shape.name
        ))
    })?;
    let own = if call.context.is_person { &APPLICATION_USER } else { &CLIENT_APP };
    let is_oneself = call.context.actor == Some(id) && shape.name == own.name;
    if is_oneself || !visible(&call.context, tx, shape, &[id])?.is_empty() {
        Ok(id)
    } else {
        Err(not_found())
    }
}

fn of_user(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    answer(call, tx, "PlatformUser", roles::of_user)
}

fn of_group(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    answer(call, tx, "PlatformGroup", roles::of_group)
}

fn of_client_app(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    answer(call, tx, "ClientApp", roles::of_client_app)
}

/// Responds with a principal's roles and permissions. There can be very many roles: each is written when it is
/// read, and only its type and the widest scope stay in memory.
fn answer(
    call: &mut Call,
    tx: &mut Tx<'_>,
    kind: &str,
    visit: fn(&mut Tx<'_>, Uuid, RoleVisitor<'_>) -> Result<(), Problem>,
) -> Result<Answer, Problem> {
    let id = principal(call, tx)?;
    let mut roles = BTreeSet::new();
    let mut widest: Option<RoleScope> = None;
    let out = &mut call.answer.bytes;
    out.extend_from_slice(b"{\"assignments\":[");
    let mut is_first = true;
    visit(tx, id, &mut |one| {
        if !std::mem::take(&mut is_first) {
            out.push(b',');
        }
        out.extend_from_slice(assignment(one).to_string().as_bytes());
        roles.insert(one.role);
        if widest.is_none_or(|widest| one.scope.kind() < widest.kind()) {
            widest = Some(one.scope);
        }
    })?;
    let rest = json!({
        "permissions": permissions(&call.context, &roles), "principalId": id, "principalType": kind,
        "scope": widest.map(RoleScope::name),
    });
    call.answer.bytes.extend_from_slice(b"],");
    call.answer.bytes.extend_from_slice(rest.to_string().get(1..).unwrap_or_default().as_bytes());
    Ok(Answer::new(call.request.op.status))
}

fn assignment(one: &AssignedRole) -> serde_json::Value {
    json!({
        "roleType": one.role.name(), "scopeId": one.scope.id(), "scopeType": one.scope.name(), "source": one.source,
        "sourceId": one.source_id,
    })
}

/// The permissions of the roles: the operations that they may call, as `Resource.Read` and
/// `Resource.Write`.
fn permissions(context: &Context, roles: &BTreeSet<RoleType>) -> BTreeSet<String> {
    let operations = context.app.services.iter().flat_map(|service| service.all());
    let allowed = operations.filter(|op| roles.iter().any(|role| role.satisfies(op.permit)));
    allowed.map(|op| format!("{}.{}", op.shape.name, if op.writes() { "Write" } else { "Read" })).collect()
}
