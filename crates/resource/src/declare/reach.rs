//! The reach of a resource: its rows that a caller's rights cover. Every query of a resource begins here, so
//! that none is unscoped.

use chancery_record::{Field, Value};
use uuid::Uuid;

use crate::{Context, Personal, Scope, Shape, Sql};

/// The condition that limits the rows of a resource to the caller's scope.
#[derive(Clone, Copy)]
pub enum Reach {
    /// The column `store` holds the number of the user store.
    Store,
    /// This field holds the id of the customer.
    Customer(&'static Field),
    /// This field holds the id of the subscription.
    Subscription(&'static Field),
    /// These fields hold the ids of the subscription and of the identity provider instance, which can be
    /// assigned to tenants.
    Instance(&'static Field, &'static Field),
    /// This field holds the id of the subscription. The table assigns rows to tenants: its name, and its
    /// column with the row number.
    Assigned(&'static Field, &'static str, &'static str),
    /// These fields hold the ids of the subscription and of the tenant that owns the row.
    Tenant(&'static Field, &'static Field),
    /// This field holds the id of a row of another resource: a caller that reaches that row reaches this one.
    Of(&'static Field, &'static Shape),
    /// Callers covered by any of these.
    Any(&'static [Reach]),
    /// As the given reach, but rows can be changed only where a condition holds. The function adds the
    /// condition, for rows under the given alias.
    Unless(&'static Reach, fn(&mut Sql, &str, &Scope)),
    /// Reached only nested in another resource.
    Part,
    /// All rows, for every caller that may call the operation.
    All,
}

impl Reach {
    /// Whether rows are of a user store.
    pub const fn is_store(self) -> bool {
        matches!(self, Self::Store)
    }

    /// Whether the fields that it uses are of the record of this name.
    #[expect(clippy::indexing_slicing, reason = "in a constant: out of bounds does not compile")]
    pub(crate) const fn is_of(&self, record: &str) -> bool {
        match self {
            Self::Store | Self::Part | Self::All => true,
            Self::Customer(field)
            | Self::Subscription(field)
            | Self::Assigned(field, ..)
            | Self::Of(field, _) => field.is_of(record),
            Self::Instance(subscription, own) | Self::Tenant(subscription, own) => {
                subscription.is_of(record) && own.is_of(record)
            }
            Self::Any(ways) => {
                let mut at = 0;
                while at < ways.len() && ways[at].is_of(record) {
                    at += 1;
                }
                at == ways.len()
            }
            Self::Unless(reach, _) => reach.is_of(record),
        }
    }

    /// Adds one alternative of the condition: the row called `alias` is within the parts of the scope.
    fn add(self, sql: &mut Sql, alias: &str, scope: &Scope) {
        let Scope::Parts { customers, subscriptions, tenants, instances, assigned, writes } = scope else {
            return;
        };
        let mut add = |ids: &[Uuid], what: &str, end: &str| {
            if !ids.is_empty() {
                sql.add(&format!(" OR {alias}.{what}"));
                sql.add_list(ids.iter().copied().map(Value::Id));
                sql.add(end);
            }
        };
        let within = |field: &Field| format!("{} IN ", field.column);
        let below =
            |field: &Field| format!("{} IN (SELECT id FROM subscription WHERE customer_id IN ", field.column);
        match self {
            Self::Customer(field) => add(customers, &within(field), ""),
            Self::Subscription(field)
            | Self::Instance(field, _)
            | Self::Assigned(field, ..)
            | Self::Tenant(field, _) => {
                add(subscriptions, &within(field), "");
                add(customers, &below(field), ")");
            }
            Self::Of(field, shape) => {
                sql.add(&format!(
                    " OR EXISTS (SELECT 1 FROM {} {alias}_ WHERE {alias}_.id = {alias}.{} AND (FALSE",
                    shape.table, field.column
                ));
                shape.reach.add(sql, &format!("{alias}_"), scope);
                sql.add("))");
                return;
            }
            Self::Any(ways) => {
                for way in ways {
                    way.add(sql, alias, scope);
                }
                return;
            }
            Self::Unless(reach, condition) => {
                sql.add(" OR ((FALSE");
                reach.add(sql, alias, scope);
                sql.add(")");
                if *writes {
                    sql.add(" AND ");
                    condition(sql, alias, scope);
                }
                sql.add(")");
                return;
            }
            Self::Store | Self::Part | Self::All => return,
        }
        match self {
            Self::Instance(_, field) => {
                add(instances, &within(field), "");
                let assigned_to = format!(
                    "{} IN (SELECT i.id FROM idp_instance i JOIN tenant_idp_instance m ON m.idp_instance_rid = i.rid \
                     JOIN tenant n ON n.rid = m.tenant_rid WHERE n.id IN ",
                    field.column
                );
                add(assigned, &assigned_to, ")");
            }
            Self::Assigned(_, table, own) => {
                let assigned_to = format!(
                    "rid IN (SELECT m.{own} FROM {table} m JOIN tenant n ON n.rid = m.tenant_rid WHERE n.id IN "
                );
                add(assigned, &assigned_to, ")");
            }
            Self::Tenant(_, field) => add(tenants, &within(field), ""),
            _ => {}
        }
    }
}

impl Shape {
    /// `SELECT` the row number and the columns of the visible rows, up to the condition that
    /// limits them to the scope. `t` is the table.
    pub(crate) fn select(&self, context: &Context, owner: Option<i64>) -> Sql {
        let mut sql = self.begin(context, &self.plan().select);
        self.add_reach(&mut sql, &context.scope, owner);
        sql
    }

    /// The same for rows in quarantine.
    pub(crate) fn select_hidden(&self, context: &Context) -> Sql {
        let mut sql = self.begin(context, &self.plan().select);
        self.add_reach_to(&mut sql, &context.scope, None, true);
        sql
    }

    /// A statement on this resource that begins with `text`.
    pub(crate) fn begin(&self, context: &Context, text: &str) -> Sql {
        let mut sql =
            Sql { text: String::with_capacity(text.len() + 256), parameters: Vec::with_capacity(4) };
        sql.add(text);
        if self.reads.view.is_some_and(|view| view.contains("?1")) {
            sql.parameters.push(Value::Int(context.now.0));
        }
        sql
    }

    /// The source of its rows: the table, or the view of it.
    pub(crate) fn source(&self) -> &'static str {
        self.reads.view.unwrap_or(self.table)
    }

    /// Adds the condition that limits rows to the scope and excludes those in quarantine.
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
            (Reach::All, _) | (_, Scope::Everything) => sql.add("TRUE"),
            (reach, scope) => {
                sql.add("(FALSE");
                reach.add(sql, "t", scope);
                sql.add(")");
            }
        }
        if let (Some(owner), Some(rid)) = (self.owner, owner) {
            sql.add(" AND t.");
            sql.add(owner.column);
            sql.add(" = ");
            sql.add_bound(rid);
        }
        if let Personal::Of(person, id) = self.personal
            && person.reach.is_store()
            && let Some(hiding) = person.deletes.deletion.hiding()
        {
            // rows of a person who is in quarantine are hidden, too
            sql.add(&format!(
                " AND EXISTS (SELECT 1 FROM {} o WHERE o.store = t.store AND o.id = t.{} AND o.{} IS NULL)",
                person.table, id.column, hiding.column
            ));
        }
        if let Some(field) = self.deletes.deletion.hiding() {
            sql.add(" AND t.");
            sql.add(field.column);
            sql.add(if hidden { " IS NOT NULL" } else { " IS NULL" });
        }
    }

    /// Adds the condition that the row called `o`, nested in another, is within the scope.
    pub(crate) fn add_nested_reach(&self, sql: &mut Sql, scope: &Scope) {
        if let Some(field) = self.deletes.deletion.hiding() {
            sql.add(&format!(" AND o.{} IS NULL", field.column));
        }
        if matches!(scope, Scope::Parts { .. })
            && !matches!(self.reach, Reach::Store | Reach::Part | Reach::All)
        {
            sql.add(" AND (FALSE");
            self.reach.add(sql, "o", scope);
            sql.add(")");
        }
    }
}
