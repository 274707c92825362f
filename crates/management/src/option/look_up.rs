//! Looks options up by their target.

use chancery_record::{FieldOf, Uuid, Value};
use chancery_resource::{
    Action as A, Answer, Call, Custom, JsonForm, Method as M, Op, Permit::TenantMember, Problem, Reply,
    Shape, Sql, Tx, find_row, list_of, load_by, read_one, seen_value, select_where,
};
use serde_json::json;

use super::{OPTION, OptionRow};
use crate::{idp_instance::IDP_INSTANCE, mfa_instance::MFA_INSTANCE, tenant::TENANT};

static VALUE: JsonForm = JsonForm { name: "OptionValue", schema: value_schema };

fn value_schema() -> serde_json::Value {
    json!({
        "type": ["string", "null"], "examples": ["true"],
        "description": "The value of the option. Null if it is a secret that is not shown to the caller.",
    })
}

const fn op(name: &'static str, path: &'static str, custom: Custom, about: &'static str) -> Op {
    Op::new(name, M::Get, path, TenantMember, &OPTION, A::Custom(custom), about).choosing(&TARGETS).added()
}

/// The operations that look options up.
pub static OPERATIONS: &[Op] = &[
    op(
        "GetOptionsByTypeAndRef",
        "/Option/type/{type}/ref/{refId}",
        Custom::listing(of_target),
        "Lists the options of an instance, a second factor or a tenant.",
    ),
    op(
        "GetOptionByTypeAndRefAndName",
        "/Option/type/{type}/ref/{refId}/name/{name}",
        Custom::reading(named),
        "Reads an option by its target and its name.",
    ),
    op(
        "GetOptionValueByTypeAndRefAndName",
        "/Option/type/{type}/ref/{refId}/name/{name}/value",
        Custom::reading(value).replying(Reply::Json(&VALUE)),
        "Reads the value of an option.",
    ),
];

/// The types of targets.
const TARGETS: [&str; 3] = ["IdpInstance", "MfaInstance", "Tenant"];
/// The field that names each of [`TARGETS`], and its resource.
static FIELDS: [Target; 3] = [
    (OptionRow::APPLY_TO_IDP_INSTANCE_ID, &IDP_INSTANCE),
    (OptionRow::APPLY_TO_MFA_INSTANCE_ID, &MFA_INSTANCE),
    (OptionRow::APPLY_TO_TENANT_ID, &TENANT),
];

type Target = (FieldOf<OptionRow, Option<Uuid>>, &'static Shape);

/// The target that the path names: its field and its resource.
fn target(call: &Call) -> Result<Target, Problem> {
    let given = call.request.parameter(0);
    let index = TARGETS.iter().position(|name| name.eq_ignore_ascii_case(given));
    index.and_then(|index| FIELDS.get(index)).copied().ok_or_else(|| {
        let known = TARGETS.join(", ");
        Problem::invalid(format!("{given:?} in the path is no type of what has options; there are {known}."))
    })
}

fn of_target(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let (field, shape) = target(call)?;
    list_of(call, tx, shape, 1, field)
}

fn select(call: &Call, tx: &mut Tx<'_>) -> Result<Sql, Problem> {
    let (field, shape) = target(call)?;
    let (_, id) = find_row(&call.context, tx, shape, call.request.parameter(1))?;
    let sql = select_where(&call.context, call.request.op.shape, field, id);
    Ok(sql.push(&format!(" AND t.{} = ", OptionRow::NAME)).bind(call.request.parameter(2)))
}

fn named(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let sql = select(call, tx)?;
    read_one(call, tx, call.request.op.shape, None, &sql)
}

fn value(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let sql = select(call, tx)?;
    let found = load_by(&call.context, tx, &OPTION, None, &sql)?;
    let text = match seen_value(&call.context, &OPTION, &found.values, OptionRow::VALUE.field()) {
        Value::Text(text) => json!(text),
        _ => json!(null),
    };
    call.answer.bytes.extend_from_slice(text.to_string().as_bytes());
    Ok(Answer::new(call.request.op.status))
}
