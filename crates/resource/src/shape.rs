//! A resource as the engine sees it: its table, fields, relations and rules.

use std::sync::OnceLock;

use chancery_record::{Column, Draft, Field, FieldError, Given, Kind, Mismatch, Record, Value};
use chancery_store::Tx;
use uuid::Uuid;

use crate::{Call, Problem, ProblemKind, Reach, emit::Stored, family, plan::Plan};

/// The resource that owns another: the path names it before the other's key.
#[derive(Clone, Copy)]
pub struct Owner {
    /// The owning resource.
    pub shape: &'static Shape,
    /// The column with the owner's row number.
    pub column: &'static str,
}

/// A unique index that a body can run into.
#[derive(Clone, Copy, Debug)]
pub struct Unique {
    /// The index: `table__column__column`.
    pub index: &'static str,
    /// The field of the body that collides.
    pub column: &'static str,
}

impl Unique {
    /// This index; a collision is told of this field.
    pub const fn new(index: &'static str, column: &'static str) -> Self {
        Self { index, column }
    }

    /// The columns of the index that are of fields of the resource, each with the place of its field.
    pub(crate) fn columns(&self, shape: &Shape) -> Vec<(&'static str, usize)> {
        let columns = self.index.split("__").skip(1);
        let place = |column: &'static str| {
            let plain = column.strip_suffix("_key").and_then(|plain| shape.place(plain));
            shape.place(column).or(plain).map(|place| (column, place))
        };
        columns.filter_map(place).collect()
    }
}

/// What a DELETE does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// The row goes.
    Gone,
    /// The row stays, hidden, with the time in the column, while the store's option says so.
    Quarantine {
        /// The column with the time.
        column: &'static str,
        /// The option that switches it.
        option: &'static str,
    },
}

impl Deletion {
    /// The column that hides a row when it is not null.
    pub const fn hiding(self) -> Option<&'static str> {
        match self {
            Self::Gone => None,
            Self::Quarantine { column, .. } => Some(column),
        }
    }
}

/// Whether rows belong to a person, so that what the audit trail says of them is kept under that
/// person's key.
#[derive(Clone, Copy)]
pub enum Personal {
    /// They do not, unless their owner does.
    No,
    /// The row is the person; its key is in this column.
    Is(&'static str),
    /// The row belongs to the person of this resource whose id is in this column.
    Of(&'static Shape, &'static str),
    /// The row is an audit entry, perhaps about a person of one of these resources.
    Tells(&'static [&'static Shape]),
}

/// A row that is about to be written.
pub struct Proposed<'a> {
    /// What is there now.
    pub was: Option<&'a Stored>,
    /// What is to be.
    pub values: &'a mut Vec<Value>,
}

/// What a rule against the data finds wrong with one of the rows.
pub struct Breach {
    /// The place of the row.
    pub row: usize,
    /// What kind of problem it is.
    pub kind: ProblemKind,
    /// The column.
    pub column: &'static str,
    /// What is wrong, for people.
    pub detail: String,
}

/// A rule against the data, on rows about to be written together.
pub type Against = fn(&Call, &mut Tx<'_>, &mut [Proposed<'_>]) -> Result<Vec<Breach>, Problem>;

/// What must be gone before a row can go: rows of this table whose column holds its id.
#[derive(Clone, Copy, Debug)]
pub struct Child {
    /// What they are.
    pub what: &'static str,
    /// Their table.
    pub table: &'static str,
    /// The column; `store` holds the row number.
    pub column: &'static str,
    /// The column that tells one from another to people; it may be empty.
    pub name: &'static str,
}

impl Child {
    /// Rows of this table with a column `name`.
    pub const fn new(what: &'static str, table: &'static str, column: &'static str) -> Self {
        Self { what, table, column, name: "name" }
    }

    /// The same, told by another column.
    #[must_use]
    pub const fn told_by(self, name: &'static str) -> Self {
        Self { name, ..self }
    }
}

/// A field that names a row of another resource: one that the caller's scope covers.
#[derive(Clone, Copy)]
pub struct Parent {
    /// The column.
    pub column: &'static str,
    /// The other resource.
    pub shape: &'static Shape,
}

impl Parent {
    /// This column names a row of this resource.
    pub const fn new(column: &'static str, shape: &'static Shape) -> Self {
        Self { column, shape }
    }
}

/// What else goes when rows are gone for good: gets their ids, at most `LIST` of them.
pub type Gone = fn(&mut Call, &mut Tx<'_>, &[Uuid]) -> Result<(), Problem>;

/// What is made with a new row: gets its values.
pub type Born = fn(&Call, &mut Tx<'_>, &[Value]) -> Result<(), Problem>;

/// What must hold after every write.
pub type Afterwards = fn(&Call, &mut Tx<'_>) -> Result<(), Problem>;

/// A rule on new links: gets the owner's row number and those of the new ones.
pub type Guard = fn(&mut Tx<'_>, i64, &[i64]) -> Result<(), Problem>;

/// A set of other resources, linked by a table of pairs.
#[derive(Clone, Copy)]
pub struct Relation {
    /// The member of the response form.
    pub name: &'static str,
    /// What the relation means, for the OpenAPI document.
    pub about: &'static str,
    /// The table of pairs, or a query of pairs in brackets where the others are children.
    pub table: &'static str,
    /// Its column with this resource's row number.
    pub own: &'static str,
    /// Its column with the other's row number.
    pub other: &'static str,
    /// The other resource.
    pub target: &'static Shape,
    /// The columns of the other that are shown nested; none are all that it shows.
    pub shown: &'static [&'static str],
    /// The rule on new links.
    pub guard: Option<Guard>,
    /// Whether there is at most one, shown as an object or null.
    pub single: bool,
    /// Whether a create body may list them by their ids.
    pub at_creation: bool,
}

impl Relation {
    /// A set that pairs of row numbers make, shown by ids and names.
    pub const fn new(
        name: &'static str,
        about: &'static str,
        (table, own, other): (&'static str, &'static str, &'static str),
        target: &'static Shape,
    ) -> Self {
        Self {
            name,
            about,
            table,
            own,
            other,
            target,
            shown: &["id", "name"],
            guard: None,
            single: false,
            at_creation: false,
        }
    }

    /// The same, showing these columns.
    #[must_use]
    pub const fn showing(self, shown: &'static [&'static str]) -> Self {
        Self { shown, ..self }
    }

    /// The same with a rule on new links.
    #[must_use]
    pub const fn guarded(self, guard: Guard) -> Self {
        Self { guard: Some(guard), ..self }
    }

    /// The same, where there is at most one.
    #[must_use]
    pub const fn single(self) -> Self {
        Self { single: true, ..self }
    }

    /// The same, which a create body may list.
    #[must_use]
    pub const fn at_creation(self) -> Self {
        Self { at_creation: true, ..self }
    }

    /// The fields of the other that are shown.
    pub fn fields(&self) -> impl Iterator<Item = &'static Field> {
        let shown = self.shown;
        let all = self.target.fields.iter().filter(|field| field.access.shown && shown.is_empty());
        all.chain(
            shown.iter().filter_map(|column| self.target.fields.iter().find(|field| field.column == *column)),
        )
    }
}

/// The relation with children that go with their parent: the parent's table, theirs, their column
/// with the parent's id, and the resource.
#[macro_export]
macro_rules! children {
    ($name:literal, $about:literal, $parent:literal, $table:literal, $column:literal, $target:expr) => {
        $crate::Relation::new(
            $name,
            $about,
            (
                concat!(
                    "(SELECT p.rid AS own_rid, c.rid AS other_rid FROM ",
                    $parent,
                    " p JOIN ",
                    $table,
                    " c ON c.",
                    $column,
                    " = p.id)"
                ),
                "own_rid",
                "other_rid",
            ),
            $target,
        )
        .showing(&[])
    };
}

/// Which fields a body gave a value or emptied.
pub struct Said<'a> {
    fields: &'static [Field],
    draft: &'a Draft,
    merges: bool,
}

impl Said<'_> {
    fn given(&self, column: &str) -> Option<&Given> {
        let place = self.fields.iter().position(|field| field.column == column);
        place.and_then(|place| self.draft.0.get(place))
    }

    /// Whether a merge patch emptied this column, which a body that leaves it out does not.
    pub fn empties(&self, column: &str) -> bool {
        self.merges && self.given(column) == Some(&Given::Empty)
    }

    /// Whether the body gave this column a value or emptied it.
    pub fn says(&self, column: &str) -> bool {
        self.given(column).is_some_and(|given| *given != Given::Nothing)
    }
}

/// A resource's own rules. Both are called for every create, replace and patch, in this order.
pub trait Rules: Record {
    /// Sets what follows from what was said.
    fn adjust(&mut self, _was: Option<&Self>, _said: &Said<'_>) {}
    /// Rules between fields. Pure.
    fn check(&self, _wrong: &mut Vec<(&'static str, String)>) {}
}

type Apply = fn(Vec<Value>, Option<&[Value]>, &Said<'_>) -> Result<Ruled, Mismatch>;
/// The values after the rules, and what they found wrong: column and detail.
type Ruled = (Vec<Value>, Vec<(&'static str, String)>);

fn apply_rules<R: Rules>(
    values: Vec<Value>,
    was: Option<&[Value]>,
    said: &Said<'_>,
) -> Result<Ruled, Mismatch> {
    let was = was.map(|was| R::from_values(was.to_vec())).transpose()?;
    let mut record = R::from_values(values)?;
    record.adjust(was.as_ref(), said);
    let mut wrong = Vec::new();
    record.check(&mut wrong);
    Ok((record.into_values(), wrong))
}

/// A resource, its types forgotten.
pub struct Shape {
    /// Its name, as in the documents.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// Its table.
    pub table: &'static str,
    /// Its fields.
    pub fields: &'static [Field],
    /// What limits its rows.
    pub reach: Reach,
    /// Its owner.
    pub owner: Option<Owner>,
    /// Its relations.
    pub relations: &'static [Relation],
    /// The unique indexes that a body can run into.
    pub unique: &'static [Unique],
    /// What a DELETE does.
    pub deletion: Deletion,
    /// Whether one item can be large, so that reading it must leave the worker.
    pub large: bool,
    /// What is read in the place of the table: a query in brackets, whose `?1` is the time. For
    /// what time alone changes, such as that something expired.
    pub view: Option<&'static str>,
    /// Whether it belongs to a person.
    pub personal: Personal,
    /// What must be gone before a row can go.
    pub children: &'static [Child],
    /// The fields that name rows of other resources.
    pub parents: &'static [Parent],
    /// What else goes when rows are gone for good.
    pub gone: Option<Gone>,
    /// What is made with a new row.
    pub born: Option<Born>,
    /// What must hold after every write.
    pub afterwards: Option<Afterwards>,
    /// Whether a change of it takes effect in what every process remembers.
    pub settles: bool,
    /// The rule against the data.
    pub against: Option<Against>,
    /// Whether an element of a batch that names no key is found by its token.
    pub found_by_token: bool,
    /// Whether a row holds a secret in its sealed fields.
    pub secret: fn(&[Value]) -> bool,
    apply: Option<Apply>,
    plan: OnceLock<Plan>,
}

impl Shape {
    /// The resource of a record, in this table.
    pub const fn of<R: Record>(name: &'static str, table: &'static str, reach: Reach) -> Self {
        Self {
            name,
            about: R::ABOUT,
            table,
            fields: R::FIELDS,
            reach,
            owner: None,
            relations: &[],
            unique: &[],
            deletion: Deletion::Gone,
            large: false,
            view: None,
            personal: Personal::No,
            children: &[],
            parents: &[],
            gone: None,
            born: None,
            afterwards: None,
            settles: false,
            against: None,
            found_by_token: false,
            secret: |_| true,
            apply: None,
            plan: OnceLock::new(),
        }
    }

    /// With the rules of its record.
    #[must_use]
    pub const fn ruled<R: Rules>(mut self) -> Self {
        self.apply = Some(apply_rules::<R>);
        self
    }

    /// Owned by another resource.
    #[must_use]
    pub const fn owned(mut self, shape: &'static Self, column: &'static str) -> Self {
        self.owner = Some(Owner { shape, column });
        self
    }

    /// With relations.
    #[must_use]
    pub const fn relations(mut self, relations: &'static [Relation]) -> Self {
        self.relations = relations;
        self
    }

    /// With unique indexes.
    #[must_use]
    pub const fn unique(mut self, unique: &'static [Unique]) -> Self {
        self.unique = unique;
        self
    }

    /// Hidden by a DELETE instead of removed, while this option of the store says so.
    #[must_use]
    pub const fn quarantined(mut self, column: &'static str, option: &'static str) -> Self {
        self.deletion = Deletion::Quarantine { column, option };
        self
    }

    /// A person, with the key in this column.
    #[must_use]
    pub const fn person(mut self, key: &'static str) -> Self {
        self.personal = Personal::Is(key);
        self
    }

    /// Belonging to the person of this resource whose id is in this column.
    #[must_use]
    pub const fn of_person(mut self, person: &'static Self, column: &'static str) -> Self {
        self.personal = Personal::Of(person, column);
        self
    }

    /// Read from this query, whose `?1` is the time.
    #[must_use]
    pub const fn seen_as(mut self, query: &'static str) -> Self {
        self.view = Some(query);
        self
    }

    /// An audit entry that may tell of a person of one of these resources.
    #[must_use]
    pub const fn tells(mut self, persons: &'static [&'static Self]) -> Self {
        self.personal = Personal::Tells(persons);
        self
    }

    /// Staying while there are rows that belong to it.
    #[must_use]
    pub const fn held_by(mut self, children: &'static [Child]) -> Self {
        self.children = children;
        self
    }

    /// Belonging to rows of other resources.
    #[must_use]
    pub const fn belonging(mut self, parents: &'static [Parent]) -> Self {
        self.parents = parents;
        self
    }

    /// With this going, too, when rows are gone for good.
    #[must_use]
    pub const fn when_gone(mut self, gone: Gone) -> Self {
        self.gone = Some(gone);
        self
    }

    /// With this made with a new row.
    #[must_use]
    pub const fn born_with(mut self, born: Born) -> Self {
        self.born = Some(born);
        self
    }

    /// With this holding after every write.
    #[must_use]
    pub const fn keeping(mut self, afterwards: Afterwards) -> Self {
        self.afterwards = Some(afterwards);
        self
    }

    /// A change of it takes effect at once in what every process remembers.
    #[must_use]
    pub const fn settles(mut self) -> Self {
        self.settles = true;
        self
    }

    /// With a rule against the data.
    #[must_use]
    pub const fn against(mut self, rule: Against) -> Self {
        self.against = Some(rule);
        self
    }

    /// Which rows hold a secret in their sealed fields.
    #[must_use]
    pub const fn secret_when(mut self, secret: fn(&[Value]) -> bool) -> Self {
        self.secret = secret;
        self
    }

    /// Found by its token in a batch where an element names no key.
    #[must_use]
    pub const fn found_by_token(mut self) -> Self {
        self.found_by_token = true;
        self
    }

    /// Possibly large.
    #[must_use]
    pub const fn large(mut self) -> Self {
        self.large = true;
        self
    }

    /// The relation of this name.
    pub fn relation(&self, name: &str) -> Option<&'static Relation> {
        self.relations.iter().find(|relation| relation.name == name)
    }

    /// The names of the nested arrays of the response form.
    pub fn arrays(&self) -> Vec<&'static str> {
        self.relations.iter().map(|relation| relation.name).collect()
    }

    /// Whether its key is an id.
    pub fn has_id(&self) -> bool {
        self.key().is_some_and(|key| matches!(key.kind, Kind::Id))
    }

    /// Whether its key is a location, which takes the rest of a path.
    pub fn is_located(&self) -> bool {
        self.key().is_some_and(|key| matches!(key.kind, Kind::Text(rule) if rule.name == "Location"))
    }

    /// Whether a new row is more than what its body says, so that its answer is read.
    pub(crate) fn is_read_back(&self) -> bool {
        self.born.is_some()
            || self.relations.iter().any(|relation| relation.at_creation)
            || self.fields.iter().any(|field| field.access.column == Column::Seen)
    }

    /// The place of a column among the fields.
    pub fn place(&self, column: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.column == column)
    }

    /// What is worked out once from the declaration.
    pub(crate) fn plan(&self) -> &Plan {
        self.plan.get_or_init(|| Plan::of(self))
    }

    /// The field that is the key.
    pub(crate) fn key(&self) -> Option<&'static Field> {
        self.fields.get(self.plan().key)
    }

    /// Reads a key of this resource as a path gives it.
    ///
    /// # Errors
    /// It is none.
    pub fn read_key(&self, text: &str) -> Result<Value, Problem> {
        match self.key().map(|key| key.kind) {
            Some(Kind::Id) => Uuid::try_parse(text).map(Value::Id).map_err(|_| {
                Problem::invalid(format!("{text:?} in the path is not a UUID, so it names no {}.", self.name))
            }),
            Some(Kind::Int { .. }) => text.parse().map(Value::Int).map_err(|_| {
                Problem::invalid(format!(
                    "{text:?} in the path is not a number, so it names no {}.",
                    self.name
                ))
            }),
            Some(Kind::Text(rule)) => {
                rule.check(text.to_owned()).map(Value::Text).map_err(|_| Problem::not_found(self.name))
            }
            _ => Err(Problem::not_found(self.name)),
        }
    }

    /// What the rule against the data finds wrong with rows to be written together: the place of
    /// the row, the kind and the error.
    pub(crate) fn check_against(
        &self,
        call: &Call,
        tx: &mut Tx<'_>,
        rows: &mut [Proposed<'_>],
        base: impl Fn(usize) -> String,
    ) -> Result<Vec<(usize, ProblemKind, FieldError)>, Problem> {
        let mut breaches = match self.against {
            Some(against) => against(call, tx, rows)?,
            None => Vec::new(),
        };
        breaches.extend(family::find_strangers(self, call, tx, rows)?);
        let errors = breaches.into_iter().map(|Breach { row, kind, column, detail }| {
            let wire = self.place(column).and_then(|place| self.fields.get(place));
            let at = chancery_record::pointer(&base(row), wire.map_or("", |field| field.wire()));
            (row, kind, FieldError::new(at, detail))
        });
        Ok(errors.collect())
    }

    /// The rules' say on a new or changed row. `base` is where the body stands.
    pub(crate) fn apply_rules(
        &self,
        call: &Call,
        values: Vec<Value>,
        was: Option<&[Value]>,
        draft: &Draft,
        base: &str,
    ) -> Result<Result<Vec<Value>, Vec<FieldError>>, Problem> {
        let Some(apply) = self.apply else { return Ok(Ok(values)) };
        let (values, wrong) =
            apply(values, was, &Said { fields: self.fields, draft, merges: call.merge_patch })?;
        if wrong.is_empty() {
            return Ok(Ok(values));
        }
        let errors = wrong.into_iter().map(|(column, detail)| {
            let wire = self.place(column).and_then(|place| self.fields.get(place));
            FieldError::new(chancery_record::pointer(base, wire.map_or("", |field| field.wire())), detail)
        });
        Ok(Err(errors.collect()))
    }
}
