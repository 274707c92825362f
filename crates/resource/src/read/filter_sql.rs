//! A filter as an SQL condition. Every comparison is true or false, never unknown, so that `not` is its exact
//! complement.

use chancery_record::{Column, Field, Kind, Sealing, Value, fold, parse_id, parse_timestamp};

use crate::{
    Expression, Operator, Problem, Relation, Scope, Shape, Sql,
    read::filter::{Literal, problem_at},
    read::last_change::{add_last_change, is_last_change},
};

/// The caller's visibility of linked rows in a filter.
#[derive(Clone, Copy)]
pub struct Visibility<'a> {
    /// The scope.
    pub scope: &'a Scope,
    /// A further condition on the rows of a set, in which `o` is their table.
    pub linked: &'a dyn Fn(&mut Sql, &Relation),
}

/// Adds the condition of a filter on rows of `shape`, whose table has this alias.
///
/// # Errors
/// An unknown attribute, or a comparison that the attribute's kind does not support, with its column.
pub fn add_filter(
    sql: &mut Sql,
    shape: &Shape,
    visibility: Visibility<'_>,
    alias: &str,
    expression: &Expression,
    negate: bool,
) -> Result<(), Problem> {
    let mut join = |left: &Expression, right: &Expression, word: &str| {
        sql.add("(");
        add_filter(sql, shape, visibility, alias, left, negate)?;
        sql.add(word);
        add_filter(sql, shape, visibility, alias, right, negate)?;
        sql.add(")");
        Ok(())
    };
    match expression {
        Expression::And(left, right) => join(left, right, if negate { " OR " } else { " AND " }),
        Expression::Or(left, right) => join(left, right, if negate { " AND " } else { " OR " }),
        Expression::Not(inner) => add_filter(sql, shape, visibility, alias, inner, !negate),
        Expression::Some { attribute, inner, column } => {
            let relation = find_relation(shape, attribute, *column)?;
            add_some(sql, relation, visibility, alias, negate, |sql| {
                add_filter(sql, relation.target, visibility, "o", inner, false)
            })
        }
        Expression::Compare { attribute, part, operator, value, column } => {
            let relation =
                shape.relations.iter().find(|relation| relation.name.eq_ignore_ascii_case(attribute));
            match (relation, part) {
                (Some(relation), None) if *operator == Operator::Present => {
                    add_some(sql, relation, visibility, alias, negate, |sql| {
                        sql.add("TRUE");
                        Ok(())
                    })
                }
                (Some(relation), Some(part)) => add_some(sql, relation, visibility, alias, negate, |sql| {
                    let field = find_field(relation.target, part, *column)?;
                    add_comparison(sql, field, visibility.scope, "o", *operator, value, *column, false)
                }),
                (Some(relation), None) => {
                    let detail = format!("{0} is a set: say {0}.id or {0}[...]", relation.name);
                    Err(problem_at(*column, &detail))
                }
                (None, Some(_)) => Err(problem_at(*column, &format!("{attribute} has no parts"))),
                (None, None) if is_last_change(shape, attribute) => {
                    add_last_change(sql, alias, *operator, value, *column, negate)
                }
                (None, None) => {
                    let field = find_field(shape, attribute, *column)?;
                    add_comparison(sql, field, visibility.scope, alias, *operator, value, *column, negate)
                }
            }
        }
    }
}

fn find_relation<'a>(shape: &'a Shape, name: &str, column: usize) -> Result<&'a Relation, Problem> {
    let known = shape.relations.iter().find(|relation| relation.name.eq_ignore_ascii_case(name));
    known.ok_or_else(|| problem_at(column, &format!("{} has no set named {name:?}", shape.name)))
}

/// The shown field of this name, case-insensitive.
pub fn find_field<'a>(shape: &'a Shape, name: &str, column: usize) -> Result<&'a Field, Problem> {
    let field = shape.fields.iter().find(|field| {
        field.access.shown
            && field.wire().eq_ignore_ascii_case(name)
            && !matches!(field.access.column, Column::Owner | Column::Unstored)
    });
    let field =
        field.ok_or_else(|| problem_at(column, &format!("{} has no attribute {name:?}", shape.name)))?;
    if field.access.sealing != Sealing::Open {
        let detail = format!("{} is kept encrypted: it gives no filter and no order", field.wire());
        return Err(problem_at(column, &detail));
    }
    Ok(field)
}

/// Adds the condition that a linked row matches.
fn add_some(
    sql: &mut Sql,
    relation: &Relation,
    visibility: Visibility<'_>,
    alias: &str,
    negate: bool,
    condition: impl FnOnce(&mut Sql) -> Result<(), Problem>,
) -> Result<(), Problem> {
    if alias != "t" {
        return Err(Problem::invalid("A filter looks one set deep, not into sets of a set."));
    }
    sql.add(if negate { "t.rid NOT IN (" } else { "t.rid IN (" });
    add_members(sql, relation, visibility, condition)?;
    sql.add(")");
    Ok(())
}

/// Adds the query for the numbers, as `rid`, of rows that have a matching linked row.
fn add_members(
    sql: &mut Sql,
    relation: &Relation,
    visibility: Visibility<'_>,
    condition: impl FnOnce(&mut Sql) -> Result<(), Problem>,
) -> Result<(), Problem> {
    sql.add(&format!(
        "SELECT m.{} AS rid FROM {} m JOIN {} o ON o.rid = m.{} WHERE ",
        relation.own, relation.table, relation.target.table, relation.other
    ));
    if relation.target.reach.is_store() {
        sql.add("o.store = ");
        sql.add_bound(visibility.scope.store());
    } else {
        sql.add("TRUE");
    }
    relation.target.add_nested_reach(sql, visibility.scope);
    (visibility.linked)(sql, relation);
    sql.add(" AND ");
    condition(sql)
}

/// A filter for the rows that are linked to one given row, optionally with further conditions.
pub struct LinkedToOne<'a> {
    relation: &'a Relation,
    field: &'a Field,
    value: &'a Literal,
    column: usize,
    /// The further conditions.
    pub rest: Option<Expression>,
}

impl<'a> LinkedToOne<'a> {
    /// Finds `set.id eq ".."` among the conjuncts.
    pub fn find(shape: &'a Shape, filter: &'a Expression) -> Option<Self> {
        match filter {
            Expression::Compare { attribute, part: Some(part), operator: Operator::Equal, value, column } => {
                let relation = find_relation(shape, attribute, *column).ok()?;
                let field = find_field(relation.target, part, *column).ok()?;
                let is_id = field.access.key && matches!(field.kind, Kind::Id);
                is_id.then_some(Self { relation, field, value, column: *column, rest: None })
            }
            Expression::And(left, right) => {
                let (linked, other) = Self::find(shape, left)
                    .map(|linked| (linked, right))
                    .or_else(|| Self::find(shape, right).map(|linked| (linked, left)))?;
                let other = other.as_ref().clone();
                let rest = match linked.rest {
                    Some(rest) => Expression::And(Box::new(rest), Box::new(other)),
                    None => other,
                };
                Some(Self { rest: Some(rest), ..linked })
            }
            _ => None,
        }
    }

    /// Adds the query for the numbers of the rows, as `rid`, each once.
    pub fn add(&self, sql: &mut Sql, visibility: Visibility<'_>) -> Result<(), Problem> {
        add_members(sql, self.relation, visibility, |sql| {
            add_comparison(
                sql,
                self.field,
                visibility.scope,
                "o",
                Operator::Equal,
                self.value,
                self.column,
                false,
            )
        })
    }
}

#[expect(clippy::too_many_arguments, reason = "they are the parts of one comparison")]
fn add_comparison(
    sql: &mut Sql,
    field: &Field,
    scope: &Scope,
    alias: &str,
    operator: Operator,
    value: &Literal,
    column: usize,
    negate: bool,
) -> Result<(), Problem> {
    if field.access.column == Column::Scope {
        let ours = scope.store_id().map_or(Value::Null, Value::Id);
        let equal =
            matches!(value, Literal::Text(text) if parse_id(text).map(Value::Id).as_ref() == Some(&ours));
        let holds = match operator {
            Operator::Equal => equal,
            Operator::NotEqual => !equal,
            Operator::Present => true,
            _ => return Err(problem_at(column, &format!("{} compares with eq and ne only", field.wire()))),
        };
        sql.add(if holds == negate { "FALSE" } else { "TRUE" });
        return Ok(());
    }
    let folded = field.access.folded;
    let name = format!("{alias}.{}{}", field.column, if folded { "_key" } else { "" });
    let (operator, negate) = match (operator, value) {
        // a comparison with null tests whether there is a value
        (Operator::Equal, Literal::Null) => (Operator::Present, !negate),
        (Operator::NotEqual, Literal::Null) => (Operator::Present, negate),
        (Operator::NotEqual, _) => (Operator::Equal, !negate),
        other => (other.0, negate),
    };
    if operator == Operator::Present {
        sql.add(&format!("{name} IS {}NULL", if negate { "" } else { "NOT " }));
        return Ok(());
    }
    let comparand = comparand(field, operator, value).map_err(|detail| problem_at(column, &detail))?;
    sql.add(if negate { "(NOT (" } else { "(" });
    match comparand {
        Comparand::With(bound) => add_test(sql, &name, operator, bound),
        Comparand::OneOf(names) if names.is_empty() => sql.add("FALSE"),
        Comparand::OneOf(names) => {
            sql.add(&name);
            sql.add(" IN ");
            sql.add_list(names.into_iter().map(Value::from));
        }
    }
    if negate {
        sql.add(if field.nullable { ") OR " } else { ")" });
        if field.nullable {
            sql.add(&format!("{name} IS NULL"));
        }
    } else if field.nullable {
        sql.add(&format!(" AND {name} IS NOT NULL"));
    }
    sql.add(")");
    Ok(())
}

/// Adds `name operator value` in SQL that both engines support.
fn add_test(sql: &mut Sql, name: &str, operator: Operator, value: Value) {
    let compare = |word: &str| format!("{name} {word} ");
    // literal, so that a partial index on true values can serve it
    if let Value::Bool(is_true) = value {
        return sql.add(if is_true { compare("= TRUE") } else { compare("= FALSE") }.as_str());
    }
    match operator {
        Operator::Greater => sql.add(&compare(">")),
        Operator::GreaterOrEqual => sql.add(&compare(">=")),
        Operator::Less => sql.add(&compare("<")),
        Operator::LessOrEqual => sql.add(&compare("<=")),
        Operator::StartsWith => return add_prefix(sql, name, value),
        Operator::Contains => {
            // the text contains the part exactly if removing the part changes it
            sql.add(&format!("replace({name}, "));
            sql.add_bound(value);
            sql.add(&format!(", '') <> {name}"));
            return;
        }
        Operator::EndsWith => {
            let length = if let Value::Text(text) = &value { text.chars().count() } else { 0 };
            sql.add(&format!(
                "length({name}) >= {length} AND substr({name}, length({name}) - {length} + 1) = "
            ));
        }
        Operator::Equal | Operator::NotEqual | Operator::Present => sql.add(&compare("=")),
    }
    sql.add_bound(value);
}

/// Adds a prefix test as a range, for which both engines use an index.
pub fn add_prefix(sql: &mut Sql, name: &str, value: Value) {
    let end = if let Value::Text(text) = &value { after_prefix(text) } else { None };
    sql.add(&format!("{name} >= "));
    sql.add_bound(value);
    if let Some(end) = end {
        sql.add(&format!(" AND {name} < "));
        sql.add_bound(end);
    }
}

/// The least text that is greater than all with this prefix. The order of bytes in UTF-8 is the order of code
/// points.
fn after_prefix(prefix: &str) -> Option<String> {
    let mut letters: Vec<char> = prefix.chars().collect();
    while let Some(last) = letters.pop() {
        let next = if last == '\u{d7ff}' { Some('\u{e000}') } else { char::from_u32(u32::from(last) + 1) };
        if let Some(next) = next {
            letters.push(next);
            return Some(letters.into_iter().collect());
        }
    }
    None
}

/// The right side of a comparison.
enum Comparand {
    /// A value as the column stores it.
    With(Value),
    /// The matching names of a choice.
    OneOf(Vec<&'static str>),
}

fn comparand(field: &Field, operator: Operator, value: &Literal) -> Result<Comparand, String> {
    if let (Kind::Choice(names) | Kind::Numbered(names), Literal::Text(text)) = (field.kind, value)
        && let Some(fits) = part_test(operator)
        && !text.is_empty()
    {
        let part = text.to_ascii_lowercase();
        let matching = names.iter().copied().filter(|name| fits(&name.to_ascii_lowercase(), &part));
        return Ok(Comparand::OneOf(matching.collect()));
    }
    bind_literal(field, operator, value).map(Comparand::With)
}

/// The operator's test of a part of a text.
fn part_test(operator: Operator) -> Option<fn(&str, &str) -> bool> {
    match operator {
        Operator::Contains => Some(|text, part| text.contains(part)),
        Operator::StartsWith => Some(|text, part| text.starts_with(part)),
        Operator::EndsWith => Some(|text, part| text.ends_with(part)),
        _ => None,
    }
}

/// The value as the column stores it.
fn bind_literal(field: &Field, operator: Operator, value: &Literal) -> Result<Value, String> {
    let name = field.wire();
    let is_text = matches!(field.kind, Kind::Text(_));
    if part_test(operator).is_some() {
        return match value {
            Literal::Text(text) if is_text && !text.is_empty() => Ok(text_value(field, text)),
            _ if is_text || matches!(field.kind, Kind::Choice(_) | Kind::Numbered(_)) => {
                Err(format!("{name} is searched for a text that is not empty"))
            }
            _ => Err(format!("{name} is no text, so co, sw and ew do not fit")),
        };
    }
    match (field.kind, value) {
        (Kind::Text(_), Literal::Text(text)) => Ok(text_value(field, text)),
        (Kind::Choice(names) | Kind::Numbered(names), Literal::Text(text)) => {
            let known = names.iter().find(|known| known.eq_ignore_ascii_case(text));
            known
                .map(|known| Value::from(*known))
                .ok_or_else(|| format!("{name} has no value {text:?}: it is one of {}", names.join(", ")))
        }
        (Kind::Numbered(names), Literal::Int(index)) => {
            let choice = usize::try_from(*index).ok().and_then(|index| names.get(index));
            choice.map(|choice| Value::from(*choice)).ok_or_else(|| format!("{name} has no value {index}"))
        }
        (Kind::Id, Literal::Text(text)) => {
            parse_id(text).map(Value::Id).ok_or_else(|| format!("{name} compares with a UUID"))
        }
        (Kind::Time, Literal::Text(text)) => parse_timestamp(text)
            .map(|moment| Value::Int(moment.0))
            .ok_or_else(|| format!("{name} compares with a date-time (RFC 3339)")),
        (Kind::Int { .. }, Literal::Int(number)) => Ok(Value::Int(*number)),
        (Kind::Bool, Literal::Bool(value)) if operator == Operator::Equal => Ok(Value::Bool(*value)),
        (Kind::Bool, _) => Err(format!("{name} compares by eq and ne with true or false")),
        (Kind::Bytes(_) | Kind::Object(_) | Kind::Ids | Kind::Texts(_) | Kind::Pairs(_), _) => {
            Err(format!("{name} can only be asked for by pr"))
        }
        (Kind::Int { .. }, _) => Err(format!("{name} compares with a whole number")),
        _ => Err(format!("{name} compares with a string")),
    }
}

fn text_value(field: &Field, text: &str) -> Value {
    Value::Text(if field.access.folded { fold(text) } else { text.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::after_prefix;

    #[test]
    fn a_prefix_range_ends_before_the_next_text() {
        assert_eq!(after_prefix("an").as_deref(), Some("ao"));
        assert_eq!(after_prefix("a\u{10ffff}").as_deref(), Some("b"));
        assert_eq!(after_prefix("\u{d7ff}").as_deref(), Some("\u{e000}"));
        assert_eq!(after_prefix("\u{10ffff}"), None);
    }
}
