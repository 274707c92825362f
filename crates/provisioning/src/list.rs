//! Lists: filters, sort order, and pages by index or by cursor (RFC 7644, section 3.4.2; RFC 9865).

use chancery_record::Value;
use chancery_resource::{
    Answer, Call, MAX_COUNT, Problem, Relation, Slice, Sql, StoredRow, Tx, count_slice, load_slice,
};
use chancery_scim::{Condition, ScimError, ScimType, Selection, as_filter_error, condition_of, sort_field};
use serde_json::{Map, Value as Serde, json};

use crate::{
    form::Form,
    groups, pages,
    reach::{add_linked_reach, add_reach, directory},
    render::{self, Renderer, selection_of},
};

const LIST: &str = "urn:ietf:params:scim:api:messages:2.0:ListResponse";
/// The default number of resources per page.
const DEFAULT_COUNT: usize = 100;

/// The parameters of a list.
struct ListQuery {
    condition: Condition,
    sort_by: Option<&'static str>,
    descending: bool,
    start: usize,
    count: usize,
    cursor: Option<String>,
    selection: Selection,
}

/// The conditions on rows, and on rows of a relation that the filter names.
#[derive(Clone, Copy)]
struct Conditions<'a> {
    rows: &'a dyn Fn(&mut Sql),
    linked: &'a dyn Fn(&mut Sql, &Relation),
}

impl ListQuery {
    fn read(call: &Call, form: Form) -> Result<Self, Problem> {
        let text = |name: &str| call.request.query(name).filter(|text| !text.trim().is_empty());
        let number = |name: &str| match text(name) {
            None => Ok(None),
            Some(text) => text.trim().parse::<i64>().map(Some).map_err(|_| {
                Problem::from(ScimError::new(ScimType::InvalidValue, format!("{name} is a number")))
            }),
        };
        let condition = match text("filter") {
            None => Condition::Always,
            Some(filter) => condition_of(form.of, form.target, filter)?,
        };
        let sort_by = text("sortBy").map(|name| sort_field(form.of, form.target, name)).transpose()?;
        let descending = text("sortOrder").is_some_and(|order| order.eq_ignore_ascii_case("descending"));
        let small = |number: Option<i64>, default: usize| {
            number.map_or(default, |number| usize::try_from(number.max(0)).unwrap_or(usize::MAX))
        };
        Ok(Self {
            condition,
            // ids are in order of creation
            sort_by: sort_by.filter(|field| !matches!(*field, "id" | "createdOn")),
            descending,
            start: small(number("startIndex")?, 1).max(1),
            count: small(number("count")?, DEFAULT_COUNT).min(MAX_COUNT),
            cursor: call.request.query("cursor").map(str::to_owned),
            selection: selection_of(call, form)?,
        })
    }

    fn slice<'a>(&self, conditions: Conditions<'a>, skip: usize, after: Option<[Value; 2]>) -> Slice<'a> {
        let filter = if let Condition::When(filter) = &self.condition { Some(filter.clone()) } else { None };
        Slice {
            filter,
            sort_by: self.sort_by,
            descending: self.descending,
            after,
            skip,
            count: self.count,
            condition: conditions.rows,
            linked: conditions.linked,
        }
    }
}

/// Lists users or groups.
///
/// # Errors
/// An invalid parameter; a filter on an attribute that cannot be searched.
pub fn list(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let form = Form::of(call);
    let query = ListQuery::read(call, form)?;
    let mut head = Map::new();
    head.insert("schemas".into(), json!([LIST]));
    let rows = match &query.cursor {
        Some(cursor) => by_cursor(call, tx, form, &query, cursor, &mut head),
        None => by_index(call, tx, form, &query, &mut head),
    };
    let rows = rows.map_err(as_filter_error)?;
    head.insert("itemsPerPage".into(), rows.len().into());
    let answer = Answer::new(200);
    call.answer.begin(200, Vec::new());
    let mut text = Serde::Object(head).to_string();
    text.pop();
    call.answer.bytes.extend_from_slice(text.as_bytes());
    call.answer.bytes.extend_from_slice(b",\"Resources\":[");
    write(call, tx, form, &rows, &query.selection)?;
    call.answer.bytes.extend_from_slice(b"]}");
    Ok(answer)
}

fn write(
    call: &mut Call,
    tx: &mut Tx<'_>,
    form: Form,
    rows: &[StoredRow],
    selection: &Selection,
) -> Result<(), Problem> {
    let renderer = Renderer::of(call, tx, form, rows, Some(selection))?;
    for (index, row) in rows.iter().enumerate() {
        let mut resource = renderer.render(&call.context, row);
        if index > 0 {
            call.answer.bytes.push(b',');
        }
        if form.is_of_users() {
            selection.apply(&mut resource);
            render::write(&resource, &mut call.answer.bytes);
        } else {
            groups::write(call, tx, form, row, resource, selection)?;
        }
        call.answer.flush_if_large()?;
    }
    Ok(())
}

fn by_index(
    call: &Call,
    tx: &mut Tx<'_>,
    form: Form,
    query: &ListQuery,
    head: &mut Map<String, Serde>,
) -> Result<Vec<StoredRow>, Problem> {
    let (mut total, mut rows) = (0, Vec::new());
    if query.condition != Condition::Never {
        (total, rows) = at_index(call, tx, form, query)?;
    }
    head.insert("totalResults".into(), total.into());
    head.insert("startIndex".into(), query.start.into());
    Ok(rows)
}

/// The number of matches, and the page at the requested index.
fn at_index(
    call: &Call,
    tx: &mut Tx<'_>,
    form: Form,
    query: &ListQuery,
) -> Result<(i64, Vec<StoredRow>), Problem> {
    let condition = |sql: &mut Sql| add_reach(sql, form, &call.context, "t");
    let linked = |sql: &mut Sql, relation: &Relation| add_linked_reach(sql, form, &call.context, relation);
    let conditions = Conditions { rows: &condition, linked: &linked };
    let (context, list) = (&call.context, belongs_to(call));
    let cached = pages::recall(&list, query.start, context.now);
    let total = match &cached {
        Some(cached) => cached.total,
        None => count_slice(context, tx, form.shape, query.slice(conditions, 0, None))?,
    };
    let before = query.start - 1;
    if query.count == 0 || i64::try_from(before).is_ok_and(|before| before >= total) {
        return Ok((total, Vec::new()));
    }
    let (skip, after) = cached.map_or((before, None), |cached| (0, Some(cached.after.clone())));
    let page = load_slice(context, tx, form.shape, query.slice(conditions, skip, after))?;
    if let Some(next) = page.next {
        pages::remember(list, query.start + page.rows.len(), next, total, context.now);
    }
    Ok((total, page.rows))
}

fn by_cursor(
    call: &Call,
    tx: &mut Tx<'_>,
    form: Form,
    query: &ListQuery,
    cursor: &str,
    head: &mut Map<String, Serde>,
) -> Result<Vec<StoredRow>, Problem> {
    let belongs_to = belongs_to(call);
    let after = if cursor.is_empty() {
        None
    } else {
        let opened = call.context.app.cursors.open(&belongs_to, cursor);
        let after = opened.and_then(|values| <[Value; 2]>::try_from(values).ok());
        let other_list =
            || ScimError::new(ScimType::InvalidCursor, "The cursor is of another list. Begin again.");
        Some(after.ok_or_else(other_list)?)
    };
    if query.condition == Condition::Never || query.count == 0 {
        return Ok(Vec::new());
    }
    let condition = |sql: &mut Sql| add_reach(sql, form, &call.context, "t");
    let linked = |sql: &mut Sql, relation: &Relation| add_linked_reach(sql, form, &call.context, relation);
    let conditions = Conditions { rows: &condition, linked: &linked };
    let page = load_slice(&call.context, tx, form.shape, query.slice(conditions, 0, after))?;
    if let Some(next) = page.next {
        head.insert("nextCursor".into(), call.context.app.cursors.seal(&belongs_to, &next).into());
    }
    Ok(page.rows)
}

/// The scope of a cursor: this list of this directory.
fn belongs_to(call: &Call) -> Vec<u8> {
    let mut context = call.request.op.name.as_bytes().to_vec();
    let directory = directory(&call.context);
    let mut add = |part: &str| {
        context.extend_from_slice(&(part.len() as u64).to_be_bytes());
        context.extend_from_slice(part.as_bytes());
    };
    add(&format!("{:?}", call.context.scope.store_id()));
    add(&format!("{:?} {}", directory.owner, directory.reaches_all));
    for name in ["filter", "sortBy", "sortOrder"] {
        add(call.request.query(name).unwrap_or_default());
    }
    context
}
