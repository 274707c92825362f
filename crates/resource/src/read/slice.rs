//! Pages of rows for lists other than the pattern's: by offset or by key set, as rows and not as JSON.

use std::collections::HashMap;

use chancery_record::{Field, Value};
use chancery_store::Tx;

use crate::{
    Context, Expression, Problem, Relation, Shape, Sql, StoredRow,
    read::{
        filter_sql::LinkedToOne,
        last_change::{LastChange, is_last_change},
        list::Reading,
        load::load_rows,
        page::{Page, Position, sort_field, sort_value},
    },
};

/// The selection of rows to read.
pub struct Slice<'a> {
    /// The filter.
    pub filter: Option<Expression>,
    /// The name of the sort field; the key's order where there is none.
    pub sort_by: Option<&'a str>,
    /// Whether the order is descending.
    pub descending: bool,
    /// The position after which the slice begins: the value of the sort field, and of the key.
    pub after: Option<[Value; 2]>,
    /// The offset.
    pub skip: usize,
    /// The maximum number of rows.
    pub count: usize,
    /// A further condition, in which `t` is the table.
    pub condition: &'a dyn Fn(&mut Sql),
    /// A further condition on the rows of a set in the filter, in which `o` is their table.
    pub linked: &'a dyn Fn(&mut Sql, &Relation),
}

/// The rows of a slice.
#[derive(Debug, Default)]
pub struct SlicePage {
    /// The rows.
    pub rows: Vec<StoredRow>,
    /// The position after which further rows follow, if any.
    pub next: Option<[Value; 2]>,
}

impl<'a> Slice<'a> {
    fn reading(self, shape: &'static Shape) -> Result<Reading<'a>, Problem> {
        let page = Page {
            sort: self.sort_by.map(|name| order_of(shape, name)).transpose()?,
            filter: self.filter,
            descending: self.descending,
            from: self.after.map(|[sort, key]| Position { sort, key }),
            ..Page::default()
        };
        Ok(Reading { shape, page, owner: None, condition: self.condition, linked: self.linked })
    }
}

/// The field of an order; for views, also the time of the last change.
fn order_of(shape: &'static Shape, name: &str) -> Result<&'static Field, Problem> {
    if is_last_change(shape, name) { Ok(LastChange::LAST_ENTRY.field()) } else { sort_field(shape, name) }
}

/// The number of matching rows, wherever the slice begins.
///
/// # Errors
/// A filter by an unknown attribute.
pub fn count_slice(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &'static Shape,
    slice: Slice<'_>,
) -> Result<i64, Problem> {
    slice.reading(shape)?.total(context, tx)
}

/// Reads the rows of a slice.
///
/// # Errors
/// A filter or an order by an unknown attribute.
pub fn load_slice(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &'static Shape,
    slice: Slice<'_>,
) -> Result<SlicePage, Problem> {
    let (mut skip, count) = (slice.skip, slice.count);
    let reading = slice.reading(shape)?;
    if let (None, 0, Some(of_one)) = (
        reading.page.sort,
        skip,
        reading.page.filter.as_ref().and_then(|filter| LinkedToOne::find(shape, filter)),
    ) && reading.are_few(context, tx, &of_one)?
    {
        let (rids, next) = reading.page_of_members(context, tx, &of_one, count)?;
        let rows = load_rows(context, tx, shape, &rids)?;
        let mut by_rid: HashMap<i64, StoredRow> = rows.into_iter().map(|row| (row.rid, row)).collect();
        let rows = rids.iter().filter_map(|rid| by_rid.remove(rid)).collect();
        return Ok(SlicePage { rows, next: next.map(|Position { sort, key }| [sort, key]) });
    }
    let (mut rows, mut part, mut from) = (Vec::new(), reading.first_part(), reading.page.from.clone());
    loop {
        let mut sql = reading.statement(context, part, from.as_ref(), count + 1 - rows.len())?;
        if skip > 0 {
            sql.add(&format!(" OFFSET {skip}"));
        }
        let before = rows.len();
        tx.query(&sql.text, &sql.parameters, |row| {
            rows.push(StoredRow::read(shape, &context.scope, None, row)?);
            Ok(())
        })?;
        let next = reading.part_after(part).filter(|_| rows.len() <= count);
        let Some(next) = next else { break };
        if skip > 0 {
            let available = if rows.len() > before { skip } else { count_with_value(context, tx, &reading)? };
            skip -= available.min(skip);
        }
        (part, from) = (next, None);
    }
    let has_more = rows.len() > count;
    rows.truncate(count);
    let next = rows.last().filter(|_| has_more).map(|row| position(&reading, row));
    Ok(SlicePage { rows, next })
}

/// The number of rows with a value of the sort field.
fn count_with_value(context: &Context, tx: &mut Tx<'_>, reading: &Reading<'_>) -> Result<usize, Problem> {
    let Some(field) = reading.page.sort else { return Ok(0) };
    let condition = |sql: &mut Sql| {
        (reading.condition)(sql);
        sql.add(&format!(" AND t.{} IS NOT NULL", field.column));
    };
    let page = Page { filter: reading.page.filter.clone(), ..Page::default() };
    let counted =
        Reading { shape: reading.shape, page, owner: None, condition: &condition, linked: reading.linked };
    Ok(usize::try_from(counted.total(context, tx)?).unwrap_or(usize::MAX))
}

fn position(reading: &Reading<'_>, row: &StoredRow) -> [Value; 2] {
    let sort = match reading.page.sort {
        None => Value::Null,
        Some(field) if field.is(LastChange::LAST_ENTRY.field()) => Value::Int(row.last_entry),
        Some(field) => sort_value(field, field.value(&row.values).clone()),
    };
    let key = reading.shape.key().map_or(Value::Null, |key| key.value(&row.values).clone());
    [sort, key]
}
