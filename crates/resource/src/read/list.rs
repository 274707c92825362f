//! Lists: complete, streamed in constant memory, or in pages. Always by key set, never by offset: the
//! ten-thousandth page costs as much as the first.

use std::collections::HashMap;

use chancery_record::{Field, FieldOf, FieldType, Record, Value};
use chancery_store::Tx;

use crate::{
    Answer, Call, Context, LIST, OwnerRow, Problem, Relation, Reply, Shape, Sql, TrailState,
    read::emit::write_row,
    read::filter_sql::{LinkedToOne, Visibility, add_filter},
    read::load::{find_row, owner_of},
    read::page::{Page, Position, sort_value},
    read::rows::Rows,
};

pub fn list(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let owner = owner_of(call, tx, call.request.op.shape)?;
    list_rows(call, tx, owner, &|_| ())
}

/// Lists those rows of the operation's resource that also meet a condition, in which `t` is the table.
///
/// # Errors
/// A bad parameter.
pub fn list_where(call: &mut Call, tx: &mut Tx<'_>, condition: &dyn Fn(&mut Sql)) -> Result<Answer, Problem> {
    list_rows(call, tx, None, condition)
}

/// Lists those rows of the operation's resource whose field holds the id of another row, which the path names.
///
/// # Errors
/// A bad parameter; not found, where the other row does not exist.
pub fn list_of<R: Record, T: FieldType>(
    call: &mut Call,
    tx: &mut Tx<'_>,
    other: &Shape,
    index: usize,
    field: FieldOf<R, T>,
) -> Result<Answer, Problem> {
    let (_, id) = find_row(&call.context, tx, other, call.request.parameter(index))?;
    list_where(call, tx, &|sql| {
        sql.add(&format!(" AND t.{field} = "));
        sql.add_bound(id.clone());
    })
}

/// One list being read.
pub struct Reading<'a> {
    pub shape: &'static Shape,
    pub page: Page,
    pub owner: Option<OwnerRow>,
    pub condition: &'a dyn Fn(&mut Sql),
    /// A further condition on the rows of a set in the filter, in which `o` is their table.
    pub linked: &'a dyn Fn(&mut Sql, &Relation),
}

fn list_rows(
    call: &mut Call,
    tx: &mut Tx<'_>,
    owner: Option<OwnerRow>,
    condition: &dyn Fn(&mut Sql),
) -> Result<Answer, Problem> {
    let shape = call.request.op.shape;
    let reading = Reading { shape, page: Page::read(call, shape)?, owner, condition, linked: &|_, _| () };
    let mut answer = Answer::new(call.request.op.status);
    // returns the event cursor, so that the feed continues without a gap
    let trail = call.context.scope.store();
    let cursor = TrailState::load(tx, trail)?.end(trail).seal(&call.context);
    answer.headers.push(("x-event-cursor", cursor));
    let wrapped = call.request.op.reply == Reply::Items;
    let mut total = 0;
    if reading.page.include_total || wrapped {
        total = reading.total(&call.context, tx)?;
        answer.headers.push(("x-total-count", total.to_string()));
    }
    if reading.page.count.is_none()
        && reading.page.sort.is_none()
        && let Some(of_one) = reading.page.filter.as_ref().and_then(|filter| LinkedToOne::find(shape, filter))
    {
        call.answer.bytes.extend_from_slice(if wrapped { b"{\"items\":[" } else { b"[" });
        call.answer.begin(answer.status, answer.headers.clone());
        reading.write_members(call, tx, &of_one)?;
        close(call, wrapped, total);
        return Ok(answer);
    }
    if let (Some(count), None) = (reading.page.count, reading.page.sort)
        && let Some(of_one) = reading.page.filter.as_ref().and_then(|filter| LinkedToOne::find(shape, filter))
        && reading.are_few(&call.context, tx, &of_one)?
    {
        let (rids, next) = reading.page_of_members(&call.context, tx, &of_one, count)?;
        answer.headers.extend(next.map(|last| ("link", reading.page.next_link(call, &last))));
        call.answer.bytes.extend_from_slice(if wrapped { b"{\"items\":[" } else { b"[" });
        call.answer.begin(answer.status, answer.headers.clone());
        let mut first = true;
        for chunk in rids.chunks(LIST) {
            reading.rows_of(&call.context, tx, chunk)?.write(call, tx, shape, &mut first)?;
        }
        close(call, wrapped, total);
        return Ok(answer);
    }
    let mut part = reading.first_part();
    let mut from = reading.page.from.clone();
    let mut left = reading.page.count;
    call.answer.bytes.extend_from_slice(if wrapped { b"{\"items\":[" } else { b"[" });
    let mut first = true;
    loop {
        let limit = left.map_or(LIST, |left| left.min(LIST));
        let rows = reading.chunk(&call.context, tx, part, from.as_ref(), limit)?;
        let full = rows.ends.len() == limit;
        from = rows.last.clone().or(from);
        left = left.map(|left| left - rows.ends.len());
        let ends_page = left == Some(0);
        if ends_page && let Some(last) = &from {
            // only a query for a further row shows whether there is one
            if reading.has_more(&call.context, tx, part, last)? {
                answer.headers.push(("link", reading.page.next_link(call, last)));
            }
        }
        if left.is_none() || ends_page {
            call.answer.begin(answer.status, answer.headers.clone());
        }
        rows.write(call, tx, shape, &mut first)?;
        if ends_page {
            break;
        }
        if !full {
            match reading.part_after(part) {
                Some(next) => (part, from) = (next, None),
                None => break,
            }
        }
    }
    close(call, wrapped, total);
    Ok(answer)
}

fn close(call: &mut Call, wrapped: bool, total: i64) {
    call.answer.bytes.push(b']');
    if wrapped {
        call.answer.bytes.extend_from_slice(format!(",\"totalCount\":{total}}}").as_bytes());
    }
}

/// Rows linked to one given row that are queried at a time: their numbers and keys alone.
const MEMBER_WINDOW: usize = 100_000;
/// The most linked rows with which a page begins at the links. Where there are more, walking all rows finds a
/// page of them sooner than sorting them all.
const FEW: usize = 5_000;

/// The parts of a sorted list: the rows with a value of the sort attribute, then those without.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Part {
    WithValue,
    WithoutValue,
}

impl Reading<'_> {
    pub fn first_part(&self) -> Part {
        let without = |from: &Position| self.page.sort.is_some() && from.sort.is_null();
        if self.page.from.as_ref().is_some_and(without) { Part::WithoutValue } else { Part::WithValue }
    }

    pub fn part_after(&self, part: Part) -> Option<Part> {
        let more = self.page.sort.is_some_and(|field| field.nullable) && part == Part::WithValue;
        more.then_some(Part::WithoutValue)
    }

    fn key(&self) -> &'static str {
        self.shape.key().map_or("id", |key| key.column)
    }

    fn visibility<'a>(&'a self, context: &'a Context) -> Visibility<'a> {
        Visibility { scope: &context.scope, linked: self.linked }
    }

    /// Adds the conditions that limit the list to the requested rows.
    fn add_conditions(&self, context: &Context, sql: &mut Sql) -> Result<(), Problem> {
        (self.condition)(sql);
        if let Some(filter) = &self.page.filter {
            sql.add(" AND ");
            add_filter(sql, self.shape, self.visibility(context), "t", filter, false)?;
        }
        Ok(())
    }

    /// The statement for the numbers and keys of the rows that are linked to one given row, in the order of
    /// their keys. It begins at the links and sorts the linked rows, instead of walking an index of all rows.
    fn members(
        &self,
        context: &Context,
        of_one: &LinkedToOne<'_>,
        after: Option<&Value>,
    ) -> Result<Sql, Problem> {
        let key = self.key();
        let mut sql = self.shape.begin(context, &format!("SELECT t.rid, t.{key} FROM ("));
        of_one.add(&mut sql, self.visibility(context))?;
        // a cross join makes SQLite begin with the links; PostgreSQL does by its estimate of their number
        sql.add(&format!(") s CROSS JOIN {} t WHERE t.rid = s.rid AND ", self.shape.source()));
        let owner = self.owner.as_ref().map(|owner| owner.rid);
        self.shape.add_reach_to(&mut sql, &context.scope, owner, self.page.quarantined);
        (self.condition)(&mut sql);
        if let Some(rest) = &of_one.rest {
            sql.add(" AND ");
            add_filter(&mut sql, self.shape, self.visibility(context), "t", rest, false)?;
        }
        let (than, order) = if self.page.descending { ("<", " DESC") } else { (">", "") };
        let from = after.or(self.page.from.as_ref().map(|from| &from.key));
        if let Some(from) = from {
            sql.add(&format!(" AND t.{key} {than} "));
            sql.add_bound(from.clone());
        }
        sql.add(&format!(" ORDER BY COALESCE(t.{key}, t.{key}){order} LIMIT {MEMBER_WINDOW}"));
        Ok(sql)
    }

    /// Writes the rows that are linked to one given row.
    fn write_members(
        &self,
        call: &mut Call,
        tx: &mut Tx<'_>,
        of_one: &LinkedToOne<'_>,
    ) -> Result<(), Problem> {
        let Some((_, key)) = self.column_of(self.key()) else { return Ok(()) };
        let (mut after, mut first) = (None, true);
        loop {
            let sql = self.members(&call.context, of_one, after.as_ref())?;
            let mut rids = Vec::new();
            tx.query(&sql.text, &sql.parameters, |row| {
                rids.push(row.int(0)?);
                if rids.len() == MEMBER_WINDOW {
                    after = Some(row.value(1, &key.kind)?);
                }
                Ok(())
            })?;
            for chunk in rids.chunks(LIST) {
                self.rows_of(&call.context, tx, chunk)?.write(call, tx, self.shape, &mut first)?;
            }
            if rids.len() < MEMBER_WINDOW {
                return Ok(());
            }
        }
    }

    /// Whether few rows are linked to the given row.
    pub fn are_few(
        &self,
        context: &Context,
        tx: &mut Tx<'_>,
        of_one: &LinkedToOne<'_>,
    ) -> Result<bool, Problem> {
        let mut sql = self.shape.begin(context, "SELECT count(*) FROM (SELECT s.rid FROM (");
        of_one.add(&mut sql, self.visibility(context))?;
        sql.add(&format!(") s LIMIT {}) n", FEW + 1));
        let count = tx.one(&sql.text, &sql.parameters, |row| row.int(0))?.unwrap_or(0);
        Ok(usize::try_from(count).is_ok_and(|count| count <= FEW))
    }

    /// The numbers of a page of the rows that are linked to one given row, and the last one's position if
    /// others follow.
    pub fn page_of_members(
        &self,
        context: &Context,
        tx: &mut Tx<'_>,
        of_one: &LinkedToOne<'_>,
        count: usize,
    ) -> Result<(Vec<i64>, Option<Position>), Problem> {
        let Some((_, key)) = self.column_of(self.key()) else { return Ok((Vec::new(), None)) };
        let sql = self.members(context, of_one, None)?;
        let (mut rids, mut last, mut has_more) = (Vec::new(), None, false);
        tx.query(&sql.text, &sql.parameters, |row| {
            has_more = rids.len() == count;
            if rids.len() < count {
                rids.push(row.int(0)?);
                last = Some(Position { sort: Value::Null, key: row.value(1, &key.kind)? });
            }
            Ok(())
        })?;
        Ok((rids, last.filter(|_| has_more)))
    }

    /// The rows with these numbers, in this order.
    fn rows_of(&self, context: &Context, tx: &mut Tx<'_>, rids: &[i64]) -> Result<Rows, Problem> {
        let mut sql = if self.page.quarantined {
            self.shape.select_hidden(context)
        } else {
            self.shape.select(context, self.owner.as_ref().map(|owner| owner.rid))
        };
        sql.add(" AND t.rid IN ");
        sql.add_list(rids.iter().copied().map(Value::Int));
        let mut json_by_rid = HashMap::with_capacity(rids.len());
        tx.query(&sql.text, &sql.parameters, |row| {
            let mut json = Vec::new();
            write_row(self.shape, &context.app.master, &context.scope, self.owner.as_ref(), row, &mut json)?;
            json_by_rid.insert(row.int(0)?, json);
            Ok(())
        })?;
        let mut rows = Rows::default();
        for rid in rids {
            if let Some(json) = json_by_rid.remove(rid) {
                rows.json.extend_from_slice(&json);
                rows.ends.push((*rid, rows.json.len()));
            }
        }
        Ok(rows)
    }

    pub fn total(&self, context: &Context, tx: &mut Tx<'_>) -> Result<i64, Problem> {
        let mut sql =
            self.shape.begin(context, &format!("SELECT count(*) FROM {} t WHERE ", self.shape.source()));
        let owner = self.owner.as_ref().map(|owner| owner.rid);
        self.shape.add_reach_to(&mut sql, &context.scope, owner, self.page.quarantined);
        self.add_conditions(context, &mut sql)?;
        Ok(tx.one(&sql.text, &sql.parameters, |row| row.int(0))?.unwrap_or(0))
    }

    /// The statement for the rows of a part after a position.
    pub fn statement(
        &self,
        context: &Context,
        part: Part,
        from: Option<&Position>,
        limit: usize,
    ) -> Result<Sql, Problem> {
        let mut sql = if self.page.quarantined {
            self.shape.select_hidden(context)
        } else {
            self.shape.select(context, self.owner.as_ref().map(|owner| owner.rid))
        };
        // the position comes before the filter: of two bounds on one column an index uses the first
        let order = self.add_position(&mut sql, part, from);
        self.add_conditions(context, &mut sql)?;
        sql.add(&order);
        sql.add(&format!(" LIMIT {limit}"));
        Ok(sql)
    }

    /// Adds the condition for rows of a part after a position; returns the matching order.
    fn add_position(&self, sql: &mut Sql, part: Part, from: Option<&Position>) -> String {
        let key = self.key();
        let after_key = |sql: &mut Sql, than: &str| {
            if let Some(from) = from {
                sql.add(&format!(" AND t.{key} {than} "));
                sql.add_bound(from.key.clone());
            }
        };
        let Some(field) = self.page.sort else {
            // the key's own order, either way
            let (than, order) = if self.page.descending { ("<", "DESC") } else { (">", "ASC") };
            after_key(sql, than);
            return format!(" ORDER BY t.{key} {order}");
        };
        let name = format!("t.{}{}", field.column, if field.access.folded { "_key" } else { "" });
        if part == Part::WithoutValue {
            sql.add(&format!(" AND {name} IS NULL"));
            after_key(sql, ">");
            return format!(" ORDER BY t.{key}");
        }
        match from {
            None if field.nullable => sql.add(&format!(" AND {name} IS NOT NULL")),
            None => {}
            Some(from) if self.page.descending => {
                sql.add(&format!(" AND {name} <= "));
                sql.add_bound(from.sort.clone());
                sql.add(&format!(" AND ({name} < "));
                sql.add_bound(from.sort.clone());
                sql.add(&format!(" OR t.{key} > "));
                sql.add_bound(from.key.clone());
                sql.add(")");
            }
            Some(from) => {
                sql.add(&format!(" AND ({name}, t.{key}) > ("));
                sql.add_bound(from.sort.clone());
                sql.add(", ");
                sql.add_bound(from.key.clone());
                sql.add(")");
            }
        }
        let order = if self.page.descending { " DESC" } else { "" };
        format!(" ORDER BY {name}{order}, t.{key}")
    }

    fn chunk(
        &self,
        context: &Context,
        tx: &mut Tx<'_>,
        part: Part,
        from: Option<&Position>,
        limit: usize,
    ) -> Result<Rows, Problem> {
        let sql = self.statement(context, part, from, limit)?;
        let key = self.column_of(self.key());
        let sort = self.page.sort.and_then(|field| Some((field, self.column_of(field.column)?.0)));
        let owner = self.owner.as_ref();
        let mut rows = Rows::default();
        tx.query(&sql.text, &sql.parameters, |row| {
            write_row(self.shape, &context.app.master, &context.scope, owner, row, &mut rows.json)?;
            rows.ends.push((row.int(0)?, rows.json.len()));
            if rows.ends.len() == limit {
                let sort = sort.map_or(Ok(Value::Null), |(field, column)| {
                    row.value(column, &field.kind).map(|value| sort_value(field, value))
                })?;
                let key = key.map_or(Ok(Value::Null), |(column, field)| row.value(column, &field.kind))?;
                rows.last = Some(Position { sort, key });
            }
            Ok(())
        })?;
        Ok(rows)
    }

    /// The index of a column in [`Shape::select`], with its field.
    fn column_of(&self, column: &str) -> Option<(usize, &'static Field)> {
        let own = self.shape.fields.iter().filter(|field| field.access.column.is_read());
        own.enumerate().find(|(_, field)| field.column == column).map(|(index, field)| (index + 1, field))
    }

    /// Whether rows follow a position.
    fn has_more(
        &self,
        context: &Context,
        tx: &mut Tx<'_>,
        part: Part,
        from: &Position,
    ) -> Result<bool, Problem> {
        let sql = self.statement(context, part, Some(from), 1)?;
        if tx.one(&sql.text, &sql.parameters, |_| Ok(()))?.is_some() {
            return Ok(true);
        }
        let Some(next) = self.part_after(part) else { return Ok(false) };
        let sql = self.statement(context, next, None, 1)?;
        Ok(tx.one(&sql.text, &sql.parameters, |_| Ok(()))?.is_some())
    }
}

/// The first statement of a list filtered by `filter`, or the one after a key, to examine its query plan.
///
/// # Errors
/// The filter is invalid.
pub fn list_statement(
    context: &Context,
    shape: &'static Shape,
    filter: &str,
    descending: bool,
    after: Option<Value>,
) -> Result<Sql, Problem> {
    let filter = Some(crate::read::filter::parse(filter)?);
    let from = after.map(|key| Position { sort: Value::Null, key });
    let mut page = Page::default();
    (page.filter, page.descending, page.from) = (filter, descending, from);
    let reading = Reading { shape, page, owner: None, condition: &|_| (), linked: &|_, _| () };
    match reading.page.filter.as_ref().and_then(|filter| LinkedToOne::find(shape, filter)) {
        Some(of_one) => reading.members(context, &of_one, None),
        None => reading.statement(context, reading.first_part(), reading.page.from.as_ref(), LIST),
    }
}
