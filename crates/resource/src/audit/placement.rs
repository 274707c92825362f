//! What a row belongs to, as its events tell: customer, subscription, tenant and instance. It follows from the reach of
//! the resource, so that who may read a row may read its events.

use chancery_record::{Column, Field, Value};
use uuid::Uuid;

use crate::{Context, Lineage, Reach, Scope, Shape, Sql};

/// What an event belongs to, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    customer: Option<Place>,
    subscription: Option<Place>,
    tenant: Option<Place>,
    instance: Option<Place>,
}

/// An id, or the column of a row that holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Id(Uuid),
    In(&'static str, &'static str, Box<Place>),
}

impl Place {
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
    /// Where a row with these values belongs.
    pub fn of(context: &Context, shape: &Shape, values: &[Value]) -> Self {
        if let Scope::Store(store) = &context.scope {
            let Lineage { customer, subscription, tenant, .. } = store.lineage;
            let [customer, subscription, tenant, instance] =
                [customer, subscription, tenant, Some(store.id)].map(|id| id.map(Place::Id));
            return Self { customer, subscription, tenant, instance };
        }
        let at = |field: &'static Field| match field.value(values) {
            Value::Id(id) => Some(Place::Id(*id)),
            _ => None,
        };
        let mut found = Self::by(shape.reach, &at);
        // a part without a reach of its own belongs to what its owner belongs to
        if found == Self::default()
            && let (Some(owner), Some(field)) = (shape.owner, owning(shape))
        {
            found = at(field).map_or(found, |row| Self::of_row(owner.shape, &row));
        }
        // that of a subscription is in its own row, which may be gone
        if let Some(own) = shape.fields.iter().find(|field| field.column == "customer_id") {
            found.customer = at(own).or(found.customer);
        }
        found
    }

    /// Where a sign-in belongs.
    pub(super) fn of_sign_in(subscription: Option<Uuid>, tenant: Uuid, instance: Option<Uuid>) -> Self {
        let below = Self {
            customer: None,
            subscription: subscription.map(Place::Id),
            tenant: Some(Place::Id(tenant)),
            instance: instance.map(Place::Id),
        };
        below.with_customer()
    }

    /// Where the row with this id belongs.
    fn of_row(shape: &Shape, row: &Place) -> Self {
        let at = |field: &'static Field| match field.column {
            "id" => Some(row.clone()),
            column => Some(Place::In(column, shape.table, Box::new(row.clone()))),
        };
        Self::by(shape.reach, &at)
    }

    fn by(reach: Reach, at: &dyn Fn(&'static Field) -> Option<Place>) -> Self {
        let mut found = Self::default();
        match reach {
            Reach::Customer(field) => found.customer = at(field),
            Reach::Subscription(field) | Reach::Assigned(field, ..) => found.subscription = at(field),
            Reach::Instance(subscription, own) => {
                (found.subscription, found.instance) = (at(subscription), at(own));
            }
            Reach::Tenant(subscription, own) => {
                (found.subscription, found.tenant) = (at(subscription), at(own));
            }
            Reach::Of(field, shape) => {
                return at(field).map_or_else(Self::default, |row| Self::of_row(shape, &row));
            }
            Reach::Any(ways) => {
                return ways.iter().fold(found, |found, way| found.or(Self::by(*way, at)));
            }
            Reach::Unless(reach, _) => return Self::by(*reach, at),
            Reach::Store | Reach::Part | Reach::All => {}
        }
        found.with_customer()
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
            self.customer = Some(Place::In("customer_id", "subscription", Box::new(subscription.clone())));
        }
        self
    }

    /// Adds the four values, in the order of the outbox's columns.
    pub(super) fn add(&self, sql: &mut Sql) {
        for (index, place) in
            [&self.customer, &self.subscription, &self.tenant, &self.instance].into_iter().enumerate()
        {
            sql.add(if index == 0 { "" } else { ", " });
            match place {
                Some(place) => place.add(sql),
                None => sql.add("NULL"),
            }
        }
    }
}

/// The field that names the owner's row.
fn owning(shape: &Shape) -> Option<&'static Field> {
    shape.fields.iter().find(|field| field.access.column == Column::Owner)
}
