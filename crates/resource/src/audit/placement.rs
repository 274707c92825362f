//! The scope of a row in its events: customer, subscription, tenant and instance. It follows from the reach of
//! the resource, so that a reader of a row may read its events.

use chancery_record::{Column, Field, Value};
use uuid::Uuid;

use crate::{Context, Lineage, Reach, Scope, Shape, Sql};

/// The scope of an event, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    customer: Option<ScopeId>,
    subscription: Option<ScopeId>,
    tenant: Option<ScopeId>,
    instance: Option<ScopeId>,
}

/// An id, or the column of a row that holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ScopeId {
    Id(Uuid),
    In(&'static str, &'static str, Box<ScopeId>),
}

impl ScopeId {
    fn add(&self, sql: &mut Sql) {
        match self {
            Self::Id(id) => sql.add_bound(Value::Id(*id)),
            Self::In(column, table, row) => {
                sql.add(&format!("(SELECT {column} FROM {table} WHERE id = "));
                row.add(sql);
                sql.add(")");
            }
        }
    }
}

impl Placement {
    /// The scope of a row with these values.
    pub fn of(context: &Context, shape: &Shape, values: &[Value]) -> Self {
        if let Scope::Store(store) = &context.scope {
            let Lineage { customer, subscription, tenant, .. } = store.lineage;
            let [customer, subscription, tenant, instance] =
                [customer, subscription, tenant, Some(store.id)].map(|id| id.map(ScopeId::Id));
            return Self { customer, subscription, tenant, instance };
        }
        let at = |field: &'static Field| match field.value(values) {
            Value::Id(id) => Some(ScopeId::Id(*id)),
            _ => None,
        };
        let mut placement = Self::by(shape.reach, &at);
        // a nested part without a reach of its own has the scope of its owner
        if placement == Self::default()
            && let (Some(owner), Some(field)) = (shape.owner, owning(shape))
        {
            placement = at(field).map_or(placement, |row| Self::of_row(owner.shape, &row));
        }
        // that of a subscription is in its own row, which may be deleted
        if let Some(own) = shape.fields.iter().find(|field| field.column == "customer_id") {
            placement.customer = at(own).or(placement.customer);
        }
        placement
    }

    /// The scope of a sign-in.
    pub(super) fn of_sign_in(subscription: Option<Uuid>, tenant: Uuid, instance: Option<Uuid>) -> Self {
        let below = Self {
            customer: None,
            subscription: subscription.map(ScopeId::Id),
            tenant: Some(ScopeId::Id(tenant)),
            instance: instance.map(ScopeId::Id),
        };
        below.with_customer()
    }

    /// The scope of the row with this id.
    fn of_row(shape: &Shape, row: &ScopeId) -> Self {
        let at = |field: &'static Field| match field.column {
            "id" => Some(row.clone()),
            column => Some(ScopeId::In(column, shape.table, Box::new(row.clone()))),
        };
        Self::by(shape.reach, &at)
    }

    fn by(reach: Reach, at: &dyn Fn(&'static Field) -> Option<ScopeId>) -> Self {
        let mut placement = Self::default();
        match reach {
            Reach::Customer(field) => placement.customer = at(field),
            Reach::Subscription(field) | Reach::Assigned(field, ..) => placement.subscription = at(field),
            Reach::Instance(subscription, own) => {
                (placement.subscription, placement.instance) = (at(subscription), at(own));
            }
            Reach::Tenant(subscription, own) => {
                (placement.subscription, placement.tenant) = (at(subscription), at(own));
            }
            Reach::Of(field, shape) => {
                return at(field).map_or_else(Self::default, |row| Self::of_row(shape, &row));
            }
            Reach::Any(ways) => {
                return ways.iter().fold(placement, |placement, way| placement.or(Self::by(*way, at)));
            }
            Reach::Unless(reach, _) => return Self::by(*reach, at),
            Reach::Store | Reach::Part | Reach::All => {}
        }
        placement.with_customer()
    }

    fn or(self, other: Self) -> Self {
        Self {
            customer: self.customer.or(other.customer),
            subscription: self.subscription.or(other.subscription),
            tenant: self.tenant.or(other.tenant),
            instance: self.instance.or(other.instance),
        }
    }

    fn with_customer(mut self) -> Self {
        if let (None, Some(subscription)) = (&self.customer, &self.subscription) {
            self.customer = Some(ScopeId::In("customer_id", "subscription", Box::new(subscription.clone())));
        }
        self
    }

    /// Adds the four values, in the order of the outbox's columns.
    pub(super) fn add(&self, sql: &mut Sql) {
        for (index, id) in
            [&self.customer, &self.subscription, &self.tenant, &self.instance].into_iter().enumerate()
        {
            sql.add(if index == 0 { "" } else { ", " });
            match id {
                Some(id) => id.add(sql),
                None => sql.add("NULL"),
            }
        }
    }
}

/// The field that refers to the owner's row.
fn owning(shape: &Shape) -> Option<&'static Field> {
    shape.fields.iter().find(|field| field.access.column == Column::Owner)
}
