//! A resource as the engine sees it: its table, fields, relations and rules.

use std::sync::OnceLock;

use chancery_record::{Column, Draft, Field, FieldError, Given, Kind, Mismatch, Record, Value};
use chancery_store::Tx;
use uuid::Uuid;

use crate::{Call, Problem, ProblemKind, Scope, Sql, emit::Stored, family};

/// What limits the rows of a resource to the caller's scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The column `store` holds the number of the user store.
    Store,
    /// This column holds the id of the customer.
    Customer(&'static str),
    /// This column holds the id of the subscription.
    Subscription(&'static str),
    /// These columns hold the ids of the subscription and of the identity provider instance.
    Instance(&'static str, &'static str),
    /// These columns hold the ids of the subscription and of the tenant.
    Tenant(&'static str, &'static str),
    /// Only what shows it reaches it: it is part of that.
    Part,
}

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
    /// The index.
    pub index: &'static str,
    /// The field of the body that collides.
    pub column: &'static str,
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
    /// Their table. It has a column `name`.
    pub table: &'static str,
    /// The column.
    pub column: &'static str,
}

/// A field that names a row of another resource: one that the caller's scope covers.
#[derive(Clone, Copy)]
pub struct Parent {
    /// The column.
    pub column: &'static str,
    /// The other resource.
    pub shape: &'static Shape,
}

/// What else goes when rows are gone for good: gets their ids, at most `LIST` of them.
pub type Gone = fn(&mut Call, &mut Tx<'_>, &[Uuid]) -> Result<(), Problem>;

/// A rule on new links: gets the owner's row number and those of the new ones.
pub type Guard = fn(&mut Tx<'_>, i64, &[i64]) -> Result<(), Problem>;

/// A set of other resources, linked by a table of pairs.
#[derive(Clone, Copy)]
pub struct Relation {
    /// The member of the response form.
    pub name: &'static str,
    /// What the relation means, for the OpenAPI document.
    pub about: &'static str,
    /// The table of pairs.
    pub table: &'static str,
    /// Its column with this resource's row number.
    pub own: &'static str,
    /// Its column with the other's row number.
    pub other: &'static str,
    /// The other resource.
    pub target: &'static Shape,
    /// The columns of the other that are shown nested.
    pub shown: &'static [&'static str],
    /// The rule on new links.
    pub guard: Option<Guard>,
}

/// Which fields a body gave a value or emptied.
pub struct Said<'a> {
    fields: &'static [Field],
    draft: &'a Draft,
}

impl Said<'_> {
    /// Whether the body gave this column a value or emptied it.
    pub fn says(&self, column: &str) -> bool {
        let place = self.fields.iter().position(|field| field.column == column);
        let given = place.and_then(|place| self.draft.0.get(place));
        given.is_some_and(|given| *given != Given::Nothing)
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
    /// Whether a change of it takes effect in what every process remembers.
    pub settles: bool,
    /// The rule against the data.
    pub against: Option<Against>,
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
            settles: false,
            against: None,
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

    /// `SELECT` the row number and the columns of the visible rows, up to the condition that
    /// limits them to the scope. `t` is the table.
    pub(crate) fn select(&self, call: &Call, owner: Option<i64>) -> Sql {
        let mut sql = self.begin(call, &self.plan().select);
        self.add_reach(&mut sql, &call.scope, owner);
        sql
    }

    /// The same for rows that wait in quarantine.
    pub(crate) fn select_hidden(&self, call: &Call) -> Sql {
        let mut sql = self.begin(call, &self.plan().select);
        self.add_reach_to(&mut sql, &call.scope, None, true);
        sql
    }

    /// A statement about this resource that begins like this.
    pub(crate) fn begin(&self, call: &Call, text: &str) -> Sql {
        let mut sql =
            Sql { text: String::with_capacity(text.len() + 256), parameters: Vec::with_capacity(4) };
        sql.add(text);
        if self.view.is_some() {
            sql.parameters.push(Value::Int(call.now.0));
        }
        sql
    }

    /// What is read: the table, or the view of it.
    pub(crate) fn source(&self) -> &'static str {
        self.view.unwrap_or(self.table)
    }

    /// Adds the condition that limits rows to the scope and hides what is in quarantine.
    pub(crate) fn add_reach(&self, sql: &mut Sql, scope: &Scope, owner: Option<i64>) {
        self.add_reach_to(sql, scope, owner, false);
    }

    /// Adds the condition that limits rows to the scope, and to those in quarantine or not.
    pub(crate) fn add_reach_to(&self, sql: &mut Sql, scope: &Scope, owner: Option<i64>, hidden: bool) {
        match (self.reach, scope) {
            (Reach::Store, scope) => {
                sql.add("t.store = ");
                sql.add_bound(scope.store());
            }
            (Reach::Customer(column), Scope::Parts { customers, .. }) if !customers.is_empty() => {
                sql.add("t.");
                sql.add(column);
                sql.add(" IN ");
                sql.add_list(customers.iter().copied().map(Value::Id));
            }
            (_, Scope::Everything) => sql.add("TRUE"),
            (Reach::Subscription(column) | Reach::Instance(column, _) | Reach::Tenant(column, _), scope) => {
                sql.add("(FALSE");
                add_parts(sql, column, self.reach, scope);
                sql.add(")");
            }
            (Reach::Customer(_) | Reach::Part, _) => sql.add("FALSE"),
        }
        if let (Some(owner), Some(rid)) = (self.owner, owner) {
            sql.add(" AND t.");
            sql.add(owner.column);
            sql.add(" = ");
            sql.add_bound(rid);
        }
        if let Personal::Of(person, column) = self.personal
            && let Some(hiding) = person.deletion.hiding()
        {
            // what belongs to somebody hidden is hidden with them
            sql.add(&format!(
                " AND EXISTS (SELECT 1 FROM {} o WHERE o.store = t.store AND o.id = t.{column} AND o.{hiding} IS NULL)",
                person.table
            ));
        }
        if let Some(column) = self.deletion.hiding() {
            sql.add(" AND t.");
            sql.add(column);
            sql.add(if hidden { " IS NOT NULL" } else { " IS NULL" });
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
        let mut breaches = family::find_strangers(self, call, tx, rows)?;
        if let Some(against) = self.against {
            breaches.extend(against(call, tx, rows)?);
        }
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
        values: Vec<Value>,
        was: Option<&[Value]>,
        draft: &Draft,
        base: &str,
    ) -> Result<Result<Vec<Value>, Vec<FieldError>>, Problem> {
        let Some(apply) = self.apply else { return Ok(Ok(values)) };
        let (values, wrong) = apply(values, was, &Said { fields: self.fields, draft })?;
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

/// Adds: the row is in one of the parts, by its subscription, its instance or its tenant.
fn add_parts(sql: &mut Sql, subscription: &str, reach: Reach, scope: &Scope) {
    let Scope::Parts { customers, subscriptions, tenants, instances } = scope else { return };
    let mut add = |ids: &[Uuid], column: &str, below: &str| {
        if ids.is_empty() {
            return;
        }
        sql.add(&format!(" OR t.{column} IN {below}"));
        sql.add_list(ids.iter().copied().map(Value::Id));
        if !below.is_empty() {
            sql.add(")");
        }
    };
    add(subscriptions, subscription, "");
    add(customers, subscription, "(SELECT id FROM subscription WHERE customer_id IN ");
    match reach {
        Reach::Instance(_, instance) => {
            add(instances, instance, "");
            add(tenants, instance, "(SELECT idp_instance_id FROM tenant_idp_instance WHERE tenant_id IN ");
        }
        Reach::Tenant(_, tenant) => add(tenants, tenant, ""),
        _ => {}
    }
}

/// An entry's person and that person's key, and where the key is found. Persons of a user store have
/// entries in its trail, others in that of the configuration.
fn join_persons(persons: &[&Shape]) -> (String, String) {
    let (mut keys, mut joins) = (Vec::new(), String::new());
    for (number, person) in persons.iter().enumerate() {
        let Personal::Is(key) = person.personal else { continue };
        let trail = if person.reach == Reach::Store { format!("p{number}.store") } else { "0".to_owned() };
        keys.push(format!("p{number}.{key}"));
        let condition = format!(" p{number} ON t.store = {trail} AND p{number}.id = t.person");
        joins.extend([" LEFT JOIN ", person.table, &condition]);
    }
    (format!(", t.person, COALESCE({}, NULL)", keys.join(", ")), joins)
}

/// What is worked out once from a shape.
pub struct Plan {
    /// `SELECT t.rid, t.a, t.b FROM table t WHERE `
    pub select: String,
    /// For each field, `"name":` ready to be written; empty when it is not shown.
    pub labels: Vec<String>,
    /// For each relation, `,"name":[`.
    pub array_labels: Vec<String>,
    /// The place of the key among the fields.
    pub key: usize,
    /// The column of the key in `select`.
    pub key_column: Option<usize>,
    /// For an audit entry, the columns of `select` with its person and that person's key.
    pub person_columns: (usize, usize),
    /// The place of the concurrency token, if there is one.
    pub token: Option<usize>,
    /// The insert statement.
    pub insert: String,
}

impl Plan {
    fn of(shape: &Shape) -> Self {
        let own = || shape.fields.iter().filter(|field| field.access.column == Column::Own);
        let columns: Vec<String> = own().map(|field| format!("t.{}", field.column)).collect();
        let labels = shape
            .fields
            .iter()
            .map(|field| if field.access.shown { format!("\"{}\":", field.wire()) } else { String::new() });
        let mut insert: Vec<String> = Vec::new();
        if shape.reach == Reach::Store {
            insert.push("store".into());
        }
        insert.extend(shape.owner.map(|owner| owner.column.to_owned()));
        insert.extend(own().map(|field| field.column.to_owned()));
        insert.extend(own().filter(|field| field.access.folded).map(|field| format!("{}_key", field.column)));
        let (more, join) = match shape.personal {
            Personal::Tells(persons) => join_persons(persons),
            _ => (String::new(), String::new()),
        };
        let marks: Vec<String> = (1..=insert.len()).map(|number| format!("?{number}")).collect();
        Self {
            select: format!(
                "SELECT t.rid, {}{more} FROM {} t{join} WHERE ",
                columns.join(", "),
                shape.source()
            ),
            key_column: own().position(|field| field.access.key).map(|place| place + 1),
            person_columns: (columns.len() + 1, columns.len() + 2),
            labels: labels.collect(),
            array_labels: shape
                .relations
                .iter()
                .map(|relation| format!(",\"{}\":[", relation.name))
                .collect(),
            key: shape.fields.iter().position(|field| field.access.key).unwrap_or(0),
            token: shape.fields.iter().position(Field::is_token),
            insert: format!(
                "INSERT INTO {} ({}) VALUES ({})",
                shape.table,
                insert.join(", "),
                marks.join(", ")
            ),
        }
    }
}
