//! The parameters of a list: filter, order, count, cursor.

use chancery_record::{Field, Kind, Value, fold};

use crate::{
    Call, Expression, Problem, Shape,
    read::{filter, filter_sql::find_field},
};

/// The most items of a page.
pub const MAX_COUNT: usize = 1000;

const PARAMETERS: [&str; 7] =
    ["filter", "sortBy", "sortOrder", "count", "cursor", "includeTotal", QUARANTINED];
/// The query parameter that requests rows in quarantine, of a resource that has one.
const QUARANTINED: &str = "quarantined";

/// The parameters of a requested list.
#[derive(Default)]
pub struct Page {
    pub filter: Option<Expression>,
    pub sort: Option<&'static Field>,
    pub descending: bool,
    pub count: Option<usize>,
    pub from: Option<Position>,
    pub include_total: bool,
    /// Whether only rows in quarantine are listed.
    pub quarantined: bool,
    pub(super) context: Vec<u8>,
}

/// The position of the last listed item.
#[derive(Clone, Debug, PartialEq)]
pub struct Position {
    /// Its value of the sort attribute; null when it has none.
    pub sort: Value,
    /// Its key.
    pub key: Value,
}

impl Page {
    pub fn read(call: &Call, shape: &'static Shape) -> Result<Self, Problem> {
        let has_quarantine = shape.deletes.deletion.hiding().is_some();
        let known: Vec<&str> =
            PARAMETERS.into_iter().filter(|name| has_quarantine || *name != QUARANTINED).collect();
        if let Some((name, _)) = call.request.query.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            return Err(Problem::invalid(format!(
                "There is no query parameter {name:?} here; there are {}.",
                known.join(", ")
            )));
        }
        if let Some(name) = PARAMETERS
            .iter()
            .find(|name| call.request.query.iter().filter(|(key, _)| key == *name).count() > 1)
        {
            return Err(Problem::invalid(format!("The query parameter {name} is there twice.")));
        }
        let filter = call.request.query("filter").map(filter::parse).transpose()?;
        let sort = call.request.query("sortBy").map(|name| sort_field(shape, name)).transpose()?;
        let descending = match call.request.query("sortOrder") {
            None => false,
            Some(order) if order.eq_ignore_ascii_case("ascending") => false,
            Some(order) if order.eq_ignore_ascii_case("descending") => true,
            Some(_) => return Err(Problem::invalid("sortOrder is ascending or descending.")),
        };
        let count = call.request.query("count").map(read_count).transpose()?;
        let include_total = flag(call, "includeTotal")?;
        let quarantined = flag(call, QUARANTINED)?;
        let context = context(call);
        let from = call.request.query("cursor").map(|cursor| {
            let invalid = || {
                Problem::invalid(
                    "The cursor does not belong to this list. Follow the Link of the answer before, \
                 with the same filter and order, or begin again without a cursor.",
                )
            };
            let values = call.context.app.cursors.open(&context, cursor).ok_or_else(invalid)?;
            let [sort, key] = <[Value; 2]>::try_from(values).map_err(|_| invalid())?;
            Ok::<_, Problem>(Position { sort, key })
        });
        // a cursor without a count continues with pages of the greatest size
        let from = from.transpose()?;
        let count = count.or_else(|| from.as_ref().map(|_| MAX_COUNT));
        Ok(Self { filter, sort, descending, count, from, include_total, quarantined, context })
    }

    /// The `Link` header to the page after this position.
    pub fn next_link(&self, call: &Call, position: &Position) -> String {
        let cursor =
            call.context.app.cursors.seal(&self.context, &[position.sort.clone(), position.key.clone()]);
        let path = call.request.address.split('?').next().unwrap_or_default();
        let original = call.request.address.split_once('?').map_or("", |(_, query)| query);
        let mut query: Vec<&str> = original
            .split('&')
            .filter(|part| {
                !part.is_empty() && !part.starts_with("cursor=") && !part.starts_with("includeTotal=")
            })
            .collect();
        let cursor = format!("cursor={cursor}");
        query.push(&cursor);
        format!("<{}{path}?{}>; rel=\"next\"", call.context.app.public_url, query.join("&"))
    }
}

/// The associated data of a cursor, which is valid for one list: its path, filter, order and scope.
fn context(call: &Call) -> Vec<u8> {
    let mut context = call.request.op.name.as_bytes().to_vec();
    let number = call.context.scope.store().to_string();
    let order = call.request.query("sortOrder").unwrap_or("ascending").to_ascii_lowercase();
    let parts = [
        call.request.query("filter").unwrap_or_default(),
        call.request.query("sortBy").unwrap_or_default(),
        &order,
        &number,
        call.request.query(QUARANTINED).unwrap_or("false"),
    ];
    for part in parts.into_iter().chain(call.request.path.iter().map(String::as_str)) {
        context.extend_from_slice(&(part.len() as u64).to_be_bytes());
        context.extend_from_slice(part.as_bytes());
    }
    context
}

fn flag(call: &Call, name: &str) -> Result<bool, Problem> {
    match call.request.query(name) {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(_) => Err(Problem::invalid(format!("{name} is true or false."))),
    }
}

fn read_count(text: &str) -> Result<usize, Problem> {
    let count = text.parse().ok().filter(|count| (1..=MAX_COUNT).contains(count));
    count.ok_or_else(|| Problem::invalid(format!("count is a number from 1 to {MAX_COUNT}.")))
}

/// The field that a list is sorted by, by its name.
pub fn sort_field(shape: &'static Shape, name: &str) -> Result<&'static Field, Problem> {
    let field = find_field(shape, name, 1).map_err(|_| {
        Problem::invalid(format!("sortBy, column 1: {} gives no order by {name:?}.", shape.name))
    })?;
    if !field.access.column.is_read()
        || matches!(field.kind, Kind::Bytes(_) | Kind::Ids | Kind::Texts(_) | Kind::Pairs(_))
    {
        return Err(Problem::invalid(format!("sortBy, column 1: {name} gives no order.")));
    }
    Ok(field)
}

/// The sort key of a field's value.
pub fn sort_value(field: &Field, value: Value) -> Value {
    match value {
        Value::Text(text) if field.access.folded => Value::Text(fold(&text)),
        other => other,
    }
}
