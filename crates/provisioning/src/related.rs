//! Data of users in other tables: profile entries, and the groups that they are in.

use std::{collections::HashMap, sync::LazyLock};

use chancery_record::Value;
use chancery_resource::{
    Call, Context, LIST, MAX_RELATED, Problem, ProblemKind, Row, Sql, StoreError, StoredRow, Tx,
    load_with_related, number_of, selectable,
};
use chancery_scim::{Target, USER, entry_keys};
use chancery_userstore::user::User;
use uuid::Uuid;

use crate::{
    form::Form,
    reach::{self, add_reach, directory},
};

/// The values of a user's profile entries, by their keys.
pub type Entries = HashMap<String, String>;

/// Related data of users, by the numbers of their rows.
#[derive(Default)]
pub struct RelatedData {
    /// The profile entries that are attributes.
    pub entries: HashMap<i64, Entries>,
    /// The ids and names of groups.
    pub groups: HashMap<i64, Vec<(Uuid, String)>>,
    links: usize,
}

/// The condition on the entries that store attributes.
static ATTRIBUTE_ENTRIES: LazyLock<String> = LazyLock::new(|| {
    let keys: Vec<String> = entry_keys(&USER, Target::Store).iter().map(|key| format!("'{key}'")).collect();
    format!(" AND e.key IN ({})", keys.join(", "))
});

selectable! {
    /// An entry of the profile of a user.
    struct ProfileEntry<'r> from "FROM user_profile e WHERE e.user_rid " {
        user: i64 = "e.user_rid",
        key: &'r str = "e.key",
        value: Option<&'r str> = "e.value",
    }
}

selectable! {
    /// A group that a user is in.
    struct GroupOfUser(own) {
        user: i64 = "m.{own}",
        id: Uuid = "g.id",
        name: String = "g.name",
    }
}

/// The kind of rows that a statement returns.
#[derive(Clone, Copy)]
enum Related {
    Entry,
    Group,
}

impl RelatedData {
    fn add_row(&mut self, kind: Related, row: &Row<'_>) -> Result<(), StoreError> {
        match kind {
            Related::Entry => {
                let ProfileEntry { user, key, value } = ProfileEntry::read(row)?;
                if let Some(value) = value {
                    self.entries.entry(user).or_default().insert(key.to_owned(), value.to_owned());
                }
            }
            Related::Group => {
                self.links += 1;
                let GroupOfUser { user, id, name } = GroupOfUser::read(row)?;
                self.groups.entry(user).or_default().push((id, name));
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

    /// Reads the related data of rows.
    ///
    /// # Errors
    /// Too many groups.
    pub fn of(
        call: &Call,
        tx: &mut Tx<'_>,
        form: Form,
        rows: &[StoredRow],
        has_groups: bool,
    ) -> Result<Self, Problem> {
        let mut related = Self::default();
        for chunk in rows.chunks(LIST) {
            let mut numbers = Sql::new("IN ");
            numbers.add_list(chunk.iter().map(|row| Value::Int(row.rid)));
            let (kinds, statements) = statements(&call.context, form, &numbers, has_groups);
            let texts: Vec<_> =
                statements.iter().map(|sql| (sql.text.as_str(), sql.parameters.as_slice())).collect();
            tx.query_all(&texts, &mut |statement, row| {
                kinds.get(statement).map_or(Ok(()), |kind| related.add_row(*kind, row))
            })?;
        }
        related.check()
    }
}

/// The row that the path names, with its related data, in one round trip.
///
/// # Errors
/// Not found within the directory's reach.
pub fn find(
    context: &Context,
    tx: &mut Tx<'_>,
    form: Form,
    id: Uuid,
    has_groups: bool,
) -> Result<(StoredRow, RelatedData), Problem> {
    let sql = reach::select(context, form, id);
    let mut numbers = number_of(form.shape, &sql);
    numbers.text = format!("= ({})", numbers.text);
    let (kinds, statements) = statements(context, form, &numbers, has_groups);
    let mut related = RelatedData::default();
    let mut add_row = |statement: usize, row: &Row<'_>| {
        kinds.get(statement).map_or(Ok(()), |kind| related.add_row(*kind, row))
    };
    let row = load_with_related(context, tx, form.shape, &sql, &statements, &mut add_row);
    let row = row.map_err(|problem| reach::with_type(form, problem))?;
    Ok((row, related.check()?))
}

/// The statements that read the related data of the rows with these numbers.
fn statements(context: &Context, form: Form, numbers: &Sql, has_groups: bool) -> (Vec<Related>, Vec<Sql>) {
    let begin = |text: String| Sql { text: text + &numbers.text, parameters: numbers.parameters.clone() };
    let (mut kinds, mut statements) = (Vec::new(), Vec::new());
    if form.stores_entries() {
        let mut sql = begin(ProfileEntry::SELECT.to_owned());
        sql.add(&ATTRIBUTE_ENTRIES);
        kinds.push(Related::Entry);
        statements.push(sql);
    }
    if let Some(relation) = form.shape.relation(User::MEMBER_OF_GROUPS.name).filter(|_| has_groups) {
        let mut sql = begin(format!(
            "SELECT {columns} FROM {table} m JOIN {target} g ON g.rid = m.{other} WHERE m.{own} ",
            columns = GroupOfUser::columns(relation.own),
            own = relation.own,
            other = relation.other,
            table = relation.table,
            target = relation.target.table,
        ));
        let [_, groups] = Form::at(form.target);
        if form.target == Target::Provider {
            sql.add(" AND g.idp_instance_id = ");
            sql.add_bound(directory(context).owner.unwrap_or_default());
        }
        add_reach(&mut sql, groups, context, "g");
        sql.add(&format!(" ORDER BY m.{}, m.{} LIMIT {}", relation.own, relation.other, MAX_RELATED + 1));
        kinds.push(Related::Group);
        statements.push(sql);
    }
    (kinds, statements)
}
