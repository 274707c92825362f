//! The time of a row's last change, as an attribute of filters and orders: the number of its newest audit entry
//! is that time.

use chancery_record::{SHOWN, Value, parse_timestamp, record};

use crate::{
    Operator, Problem, Shape, Sql,
    read::filter::{Literal, problem_at},
};

record! {
    /// When a row was last changed, as a field that gives an order.
    pub struct LastChange {
        /// The number of its newest audit entry.
        last_entry: i64 = SHOWN,
    }
}

/// The attribute's name, in views of a resource only.
const NAME: &str = "lastEntry";

/// Whether an attribute of a filter is the time of the last change.
pub fn is_last_change(shape: &Shape, attribute: &str) -> bool {
    shape.base.is_some() && attribute == NAME && shape.plan().last_entry_column.is_some()
}

/// Adds the comparison. Entries are numbered in microseconds; a time of a caller has milliseconds.
///
/// # Errors
/// The literal is no date-time, or the operator compares none.
pub fn add_last_change(
    sql: &mut Sql,
    alias: &str,
    operator: Operator,
    value: &Literal,
    column: usize,
    negate: bool,
) -> Result<(), Problem> {
    if operator == Operator::Present {
        sql.add(if negate { "FALSE" } else { "TRUE" });
        return Ok(());
    }
    let moment = if let Literal::Text(text) = value { parse_timestamp(text) } else { None };
    let moment = moment.ok_or_else(|| problem_at(column, "compares with a date-time (RFC 3339)"))?;
    let first = moment.0.saturating_mul(1000);
    let (sign, bound) = match operator {
        Operator::Greater => (">", first.saturating_add(999)),
        Operator::GreaterOrEqual => (">=", first),
        Operator::Less => ("<", first),
        Operator::LessOrEqual => ("<=", first.saturating_add(999)),
        _ => return Err(problem_at(column, "the time of the last change compares by gt, ge, lt and le")),
    };
    sql.add(if negate { "NOT (" } else { "(" });
    sql.add(&format!("{alias}.last_entry {sign} "));
    sql.add_bound(Value::Int(bound));
    sql.add(")");
    Ok(())
}
