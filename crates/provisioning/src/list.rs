//! Lists: by a filter, in an order, in pages by position or by cursor (RFC 7644, section 3.4.2; RFC 9865).

use chancery_record::Value;
use chancery_resource::{
    Answer, Call, MAX_COUNT, Problem, Relation, Slice, Sql, StoredRow, Tx, count_slice, load_slice,
};
use chancery_scim::{Condition, Refusal, ScimType, Selection, condition_of, of_filter, sort_field};
use serde_json::{Map, Value as Serde, json};

use crate::{
    form::Form,
    groups, pages,
    reach::{add_linked_reach, add_reach, directory},
    shown::{self, Seen, selection_of},
};

const LIST: &str = "urn:ietf:params:scim:api:messages:2.0:ListResponse";
/// How many resources a page has where nothing is said.
const DEFAULT_COUNT: usize = 100;

/// What a list is asked for.
struct Asked {
    condition: Condition,
    sort_by: Option<&'static str>,
    descending: bool,
    start: usize,
    count: usize,
    cursor: Option<String>,
    selection: Selection,
}

/// The conditions on rows, and on those of a set that the filter names.
type Conditions<'a> = (&'a dyn Fn(&mut Sql), &'a dyn Fn(&mut Sql, &Relation));

impl Asked {
    fn read(call: &Call, form: Form) -> Result<Self, Problem> {
        let text = |name: &str| call.request.query(name).filter(|text| !text.trim().is_empty());
        let number = |name: &str| match text(name) {
            None => Ok(None),
            Some(text) => text.trim().parse::<i64>().map(Some).map_err(|_| {
                Problem::from(Refusal::wrong(ScimType::InvalidValue, format!("{name} is a number")))
            }),
        };
        let condition = match text("filter") {
            None => Condition::Always,
            Some(filter) => condition_of(form.of, form.home, filter)?,
        };
        let sort_by = text("sortBy").map(|name| sort_field(form.of, form.home, name)).transpose()?;
        let descending = text("sortOrder").is_some_and(|order| order.eq_ignore_ascii_case("descending"));
        let small = |number: Option<i64>, default: usize| {
            number.map_or(default, |number| usize::try_from(number.max(0)).unwrap_or(usize::MAX))
        };
        Ok(Self {
            condition,
            // an id tells when it was made
            sort_by: sort_by.filter(|field| !matches!(*field, "id" | "createdOn")),
            descending,
            start: small(number("startIndex")?, 1).max(1),
            count: small(number("count")?, DEFAULT_COUNT).min(MAX_COUNT),
            cursor: call.request.query("cursor").map(str::to_owned),
            selection: selection_of(call, form)?,
        })
    }

    fn slice<'a>(
        &self,
        (condition, linked): Conditions<'a>,
        skip: usize,
        after: Option<[Value; 2]>,
    ) -> Slice<'a> {
        let filter = if let Condition::When(filter) = &self.condition { Some(filter.clone()) } else { None };
        Slice {
            filter,
            sort_by: self.sort_by,
            descending: self.descending,
            after,
            skip,
            count: self.count,
            condition,
            linked,
        }
    }
}

/// Lists users or groups.
///
/// # Errors
/// A parameter that cannot be read; a filter on what is not looked for.
pub fn list(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let form = Form::of(call);
    let asked = Asked::read(call, form)?;
    let mut head = Map::new();
    head.insert("schemas".into(), json!([LIST]));
    let rows = match &asked.cursor {
        Some(cursor) => by_cursor(call, tx, form, (&asked, cursor), &mut head),
        None => by_index(call, tx, form, &asked, &mut head),
    };
    let rows = rows.map_err(of_filter)?;
    head.insert("itemsPerPage".into(), rows.len().into());
    let answer = Answer::new(200);
    call.answer.begin(200, Vec::new());
    let mut text = Serde::Object(head).to_string();
    text.pop();
    call.answer.bytes.extend_from_slice(text.as_bytes());
    call.answer.bytes.extend_from_slice(b",\"Resources\":[");
    write(call, tx, form, &rows, &asked.selection)?;
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
    let seen = Seen::of(call, tx, form, rows, Some(selection))?;
    for (index, row) in rows.iter().enumerate() {
        let mut resource = seen.tell(&call.context, row);
        if index > 0 {
            call.answer.bytes.push(b',');
        }
        if form.is_of_users() {
            selection.apply(&mut resource);
            shown::write(&resource, &mut call.answer.bytes);
        } else {
            groups::write(call, tx, form, (row, resource), selection)?;
        }
        call.answer.flush_if_large()?;
    }
    Ok(())
}

fn by_index(
    call: &Call,
    tx: &mut Tx<'_>,
    form: Form,
    asked: &Asked,
    head: &mut Map<String, Serde>,
) -> Result<Vec<StoredRow>, Problem> {
    let (mut total, mut rows) = (0, Vec::new());
    if asked.condition != Condition::Never {
        (total, rows) = at_index(call, tx, form, asked)?;
    }
    head.insert("totalResults".into(), total.into());
    head.insert("startIndex".into(), asked.start.into());
    Ok(rows)
}

/// How many match, and the page at the position that is asked for.
fn at_index(
    call: &Call,
    tx: &mut Tx<'_>,
    form: Form,
    asked: &Asked,
) -> Result<(i64, Vec<StoredRow>), Problem> {
    let condition = |sql: &mut Sql| add_reach(sql, form, &call.context, "t");
    let linked = |sql: &mut Sql, relation: &Relation| add_linked_reach(sql, form, &call.context, relation);
    let seen: Conditions<'_> = (&condition, &linked);
    let (context, list) = (&call.context, belongs_to(call));
    let known = pages::recall(&list, asked.start, context.now);
    let total = match &known {
        Some(known) => known.total,
        None => count_slice(context, tx, form.shape, asked.slice(seen, 0, None))?,
    };
    let before = asked.start - 1;
    if asked.count == 0 || i64::try_from(before).is_ok_and(|before| before >= total) {
        return Ok((total, Vec::new()));
    }
    let (skip, after) = known.map_or((before, None), |known| (0, Some(known.after.clone())));
    let page = load_slice(context, tx, form.shape, asked.slice(seen, skip, after))?;
    if let Some(next) = page.next {
        pages::remember(list, asked.start + page.rows.len(), (next, total), context.now);
    }
    Ok((total, page.rows))
}

fn by_cursor(
    call: &Call,
    tx: &mut Tx<'_>,
    form: Form,
    (asked, cursor): (&Asked, &str),
    head: &mut Map<String, Serde>,
) -> Result<Vec<StoredRow>, Problem> {
    let belongs_to = belongs_to(call);
    let after = if cursor.is_empty() {
        None
    } else {
        let opened = call.context.app.cursors.open(&belongs_to, cursor);
        let after = opened.and_then(|values| <[Value; 2]>::try_from(values).ok());
        let foreign =
            || Refusal::wrong(ScimType::InvalidCursor, "The cursor is of another list. Begin again.");
        Some(after.ok_or_else(foreign)?)
    };
    if asked.condition == Condition::Never || asked.count == 0 {
        return Ok(Vec::new());
    }
    let condition = |sql: &mut Sql| add_reach(sql, form, &call.context, "t");
    let linked = |sql: &mut Sql, relation: &Relation| add_linked_reach(sql, form, &call.context, relation);
    let page = load_slice(&call.context, tx, form.shape, asked.slice((&condition, &linked), 0, after))?;
    if let Some(next) = page.next {
        head.insert("nextCursor".into(), call.context.app.cursors.seal(&belongs_to, &next).into());
    }
    Ok(page.rows)
}

/// What a cursor is good for: this list of this directory.
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
