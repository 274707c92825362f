//! What is kept of users beside their rows: profile entries, and the groups that they are in.

use std::{collections::HashMap, sync::LazyLock};

use chancery_record::Value;
use chancery_resource::{
    Call, Context, LIST, MAX_RELATED, Problem, ProblemKind, Row, Sql, StoreError, StoredRow, Tx, load_beside,
    number_of,
};
use chancery_scim::{Home, USER, entry_keys};
use chancery_userstore::user::User;
use uuid::Uuid;

use crate::{
    form::{Form, Operations},
    reach::{self, add_reach, directory},
    shown::keeps_entries,
};

/// The values of a user's profile entries, by their keys.
pub type Entries = HashMap<String, String>;

/// What is kept beside users, by the numbers of their rows.
#[derive(Default)]
pub struct Beside {
    /// The profile entries that are attributes.
    pub entries: HashMap<i64, Entries>,
    /// The ids and names of groups.
    pub groups: HashMap<i64, Vec<(Uuid, String)>>,
    links: usize,
}

/// The condition on entries that are attributes.
static OF_ATTRIBUTES: LazyLock<String> = LazyLock::new(|| {
    let keys: Vec<String> = entry_keys(&USER, Home::Store).iter().map(|key| format!("'{key}'")).collect();
    format!(" AND e.key IN ({})", keys.join(", "))
});

/// What a statement finds.
#[derive(Clone, Copy)]
enum Part {
    Entry,
    Group,
}

impl Beside {
    fn take(&mut self, part: Part, row: &Row<'_>) -> Result<(), StoreError> {
        let rid = row.int(0)?;
        match part {
            Part::Entry if row.is_null(2)? => {}
            Part::Entry => {
                let of_user = self.entries.entry(rid).or_default();
                of_user.insert(row.text(1)?.to_owned(), row.text(2)?.to_owned());
            }
            Part::Group => {
                self.links += 1;
                self.groups.entry(rid).or_default().push((row.id(1)?, row.text(2)?.to_owned()));
            }
        }
        Ok(())
    }

    fn check(self) -> Result<Self, Problem> {
        if self.links <= MAX_RELATED {
            return Ok(self);
        }
        let detail = format!(
            "The users are in more than {MAX_RELATED} groups. Ask for fewer, or send excludedAttributes=groups."
        );
        Err(Problem::new(ProblemKind::PayloadTooLarge, detail))
    }

    /// Reads what is beside rows.
    ///
    /// # Errors
    /// Too many groups; the store's.
    pub fn of(
        call: &Call,
        tx: &mut Tx<'_>,
        form: Form,
        rows: &[StoredRow],
        has_groups: bool,
    ) -> Result<Self, Problem> {
        let mut beside = Self::default();
        for chunk in rows.chunks(LIST) {
            let mut numbers = Sql::new("IN ");
            numbers.add_list(chunk.iter().map(|row| Value::Int(row.rid)));
            let (parts, statements) = statements(&call.context, form, &numbers, has_groups);
            let texts: Vec<_> =
                statements.iter().map(|sql| (sql.text.as_str(), sql.parameters.as_slice())).collect();
            tx.query_all(&texts, &mut |place, row| {
                parts.get(place).map_or(Ok(()), |part| beside.take(*part, row))
            })?;
        }
        beside.check()
    }
}

/// The row that the path names, with what is beside it, in one exchange.
///
/// # Errors
/// There is none that the directory sees.
pub fn find(
    context: &Context,
    tx: &mut Tx<'_>,
    (form, id): (Form, Uuid),
    has_groups: bool,
) -> Result<(StoredRow, Beside), Problem> {
    let sql = reach::select(context, form, id);
    let mut numbers = number_of(form.shape, &sql);
    numbers.text = format!("= ({})", numbers.text);
    let (parts, statements) = statements(context, form, &numbers, has_groups);
    let mut beside = Beside::default();
    let mut take =
        |place: usize, row: &Row<'_>| parts.get(place).map_or(Ok(()), |part| beside.take(*part, row));
    let row = load_beside(context, tx, form.shape, &sql, (&statements, &mut take));
    let row = row.map_err(|problem| reach::named(form, problem))?;
    Ok((row, beside.check()?))
}

/// The statements that find what is beside the rows with these numbers.
fn statements(context: &Context, form: Form, numbers: &Sql, has_groups: bool) -> (Vec<Part>, Vec<Sql>) {
    let begin = |text: String| Sql { text: text + &numbers.text, parameters: numbers.parameters.clone() };
    let (mut parts, mut statements) = (Vec::new(), Vec::new());
    if keeps_entries(form) {
        let mut sql = begin("SELECT e.user_rid, e.key, e.value FROM user_profile e WHERE e.user_rid ".into());
        sql.add(&OF_ATTRIBUTES);
        parts.push(Part::Entry);
        statements.push(sql);
    }
    if let Some(relation) = form.shape.relation(User::MEMBER_OF_GROUPS.name).filter(|_| has_groups) {
        let mut sql = begin(format!(
            "SELECT m.{own}, g.id, g.name FROM {table} m JOIN {target} g ON g.rid = m.{other} WHERE m.{own} ",
            own = relation.own,
            other = relation.other,
            table = relation.table,
            target = relation.target.table,
        ));
        let [_, groups] = Operations::at(form.home);
        if form.home == Home::Provider {
            sql.add(" AND g.idp_instance_id = ");
            sql.add_bound(directory(context).owner.unwrap_or_default());
        }
        add_reach(&mut sql, groups.form, context, "g");
        sql.add(&format!(" ORDER BY m.{}, m.{} LIMIT {}", relation.own, relation.other, MAX_RELATED + 1));
        parts.push(Part::Group);
        statements.push(sql);
    }
    (parts, statements)
}
