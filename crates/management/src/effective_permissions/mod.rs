//! Effective permissions: what somebody may do here, and why.

mod roles;

use std::collections::BTreeSet;

use chancery_application::{APPLICATION_GROUP, APPLICATION_USER};
use chancery_record::parse_id;
use chancery_resource::{
    Action as A, Answer, Call, Custom, JsonForm, Method as M, Op, Permit, Problem, Reply, RoleType, Shape,
    visible,
};
use chancery_store::{Mode, Tx};
use serde_json::json;
use uuid::Uuid;

use crate::client_app::CLIENT_APP;

pub use roles::Assigned;

static REPLY: JsonForm = JsonForm { name: "EffectivePermissions", schema };

fn schema() -> serde_json::Value {
    let text = |about: &str| json!({ "type": "string", "description": about });
    json!({
        "type": "object",
        "description": "What somebody may do here, and why.",
        "required": ["principalId", "principalType", "scope", "assignments", "permissions"],
        "properties": {
            "principalId": { "type": "string", "format": "uuid", "description": "Who." },
            "principalType": { "type": "string", "enum": ["PlatformUser", "PlatformGroup", "ClientApp"], "description": "What they are." },
            "scope": { "type": ["string", "null"], "description": "The widest scope of the assignments; null where there is none." },
            "assignments": { "type": "array", "description": "The roles, and through what each is held.", "items": {
                "type": "object", "required": ["roleType", "source", "sourceId", "scopeType", "scopeId"],
                "properties": {
                    "roleType": text("The role."),
                    "source": { "type": "string", "enum": ["Direct", "Group", "ClientApp"], "description": "Through what it is held." },
                    "sourceId": { "type": "string", "format": "uuid", "description": "Who was given it." },
                    "scopeType": { "type": "string", "enum": ["System", "Customer", "Subscription", "Tenant", "IdpInstance"], "description": "What it covers." },
                    "scopeId": { "type": ["string", "null"], "format": "uuid", "description": "Which of them." },
                },
            } },
            "permissions": { "type": "array", "description": "What the roles allow somewhere in their scopes, sorted.",
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
        "Tells what somebody may do here, and why.",
    )
}

/// Its operations.
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

/// The principal that the path names: one that the caller sees, or the caller.
fn principal(call: &Call, tx: &mut Tx<'_>) -> Result<Uuid, Problem> {
    let shape = call.op.shape;
    let not_found = || Problem::not_found(shape.name);
    let id = parse_id(call.parameter(0)).ok_or_else(|| {
        Problem::invalid(format!(
            "{:?} in the path is not a UUID, so it names no {}.",
            call.parameter(0),
            shape.name
        ))
    })?;
    let is_oneself = call.actor == Some(id) && shape.name == CLIENT_APP.name;
    if is_oneself || !visible(call, tx, shape, &[id])?.is_empty() { Ok(id) } else { Err(not_found()) }
}

fn of_user(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let id = principal(call, tx)?;
    let assigned = roles::of_user(tx, id)?;
    Ok(answer(call, "PlatformUser", id, &assigned))
}

fn of_group(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let id = principal(call, tx)?;
    let assigned = roles::of_group(tx, id)?;
    Ok(answer(call, "PlatformGroup", id, &assigned))
}

fn of_client_app(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let id = principal(call, tx)?;
    let assigned = roles::of_client_app(tx, id)?;
    Ok(answer(call, "ClientApp", id, &assigned))
}

fn answer(call: &mut Call, kind: &str, id: Uuid, assigned: &[Assigned]) -> Answer {
    let widest = assigned.iter().min_by_key(|one| one.scope.kind());
    let scope = widest.map(|one| one.scope.name());
    let roles: BTreeSet<RoleType> = assigned.iter().map(|one| one.role).collect();
    let assignments: Vec<_> = assigned
        .iter()
        .map(|one| {
            json!({
                "roleType": one.role.name(), "source": one.source, "sourceId": one.source_id,
                "scopeType": one.scope.name(), "scopeId": one.scope.id(),
            })
        })
        .collect();
    let body = json!({
        "principalId": id, "principalType": kind, "scope": scope,
        "assignments": assignments, "permissions": permissions(call, &roles),
    });
    call.out.bytes.extend_from_slice(body.to_string().as_bytes());
    Answer::new(call.op.status)
}

/// What the roles allow: the operations that they may call, as `Resource.Read` and
/// `Resource.Write`.
fn permissions(call: &Call, roles: &BTreeSet<RoleType>) -> BTreeSet<String> {
    let operations = call.desk.services.iter().flat_map(|service| service.all());
    let allowed = operations.filter(|op| roles.iter().any(|role| role.satisfies(op.permit)));
    allowed.map(|op| format!("{}.{}", op.shape.name, if op.writes() { "Write" } else { "Read" })).collect()
}
