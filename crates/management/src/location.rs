//! Locations of assets and views: the level in a location determines the owner of the asset or view.

use std::collections::HashSet;

use chancery_presentation::location::{ApplyTo, Kind as LocationKind, expand, level_of, normalise};
use chancery_record::{Field, FieldOf, FieldType, Kind, Mismatch, Record, TextRule, Value, choice_types};
use chancery_resource::{Context, Problem, ProposedRow, Tx, Violation, visible};
use uuid::Uuid;

use crate::{
    client_app::CLIENT_APP, owning_subscription::subscriptions_of, subscription::SUBSCRIPTION,
    tenant::TENANT, violation::violation_at,
};

choice_types! {
    /// The level of an asset, a view or a certificate.
    ApplyToType {
        /// Everyone.
        Global,
        /// A subscription.
        Subscription,
        /// A client app.
        ClientApp,
        /// A tenant.
        Tenant,
    }
}

/// The location of an asset or a view: a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location(pub String);

impl Location {
    const RULE: TextRule = TextRule {
        name: "Location",
        min: 1,
        max: 1024,
        example: "/assets/global/logo.png",
        shape,
        ..TextRule::PLAIN
    };
}

fn shape(text: &str) -> Result<Option<String>, &'static str> {
    let good = normalise(text).ok().filter(|location| level_of(location).is_some());
    good.map(Some).ok_or(
        "a path such as /assets/global/logo.png or /views/tenant/0192f0c1-2b3a-7c4d-8e5f-6a7b8c9d0e1f/SignIn: \
         no empty segment, no `.` or `..`, no word of the paths here",
    )
}

impl FieldType for Location {
    const KIND: Kind = Kind::Text(&Self::RULE);
    fn into_value(self) -> Value {
        Value::Text(self.0)
    }
    fn from_value(value: Value) -> Result<Self, Mismatch> {
        if let Value::Text(text) = value { Ok(Self(text)) } else { Err(Mismatch("")) }
    }
}

/// The fields of a resource with a location: the location and its owner.
pub struct LocationFields<R> {
    /// The location.
    pub location: FieldOf<R, Location>,
    /// The subscription.
    pub subscription: FieldOf<R, Option<Uuid>>,
    /// The client app.
    pub client_app: FieldOf<R, Option<Uuid>>,
    /// The tenant.
    pub tenant: FieldOf<R, Option<Uuid>>,
}

/// Sets the owners of new locations. Reports locations with a level that names nothing visible to the caller.
pub fn settle_levels<R: Record>(
    context: &Context,
    tx: &mut Tx<'_>,
    fields: &LocationFields<R>,
    rows: &mut [ProposedRow<'_>],
) -> Result<Vec<Violation>, Problem> {
    let mut violations = Vec::new();
    for (apply_to, parent, table) in [
        (ApplyTo::Subscription, &SUBSCRIPTION, "subscription"),
        (ApplyTo::ClientApp, &CLIENT_APP, "client_app"),
        (ApplyTo::Tenant, &TENANT, "tenant"),
    ] {
        let named = |row: &ProposedRow<'_>| match row.text(fields.location).and_then(level_of) {
            Some((level, Some(id))) if level == apply_to && row.was.is_none() => Some(id),
            _ => None,
        };
        let ids: HashSet<Uuid> = rows.iter().filter_map(named).collect();
        let known: Vec<Uuid> =
            visible(context, tx, parent, &ids.into_iter().collect::<Vec<_>>())?.into_keys().collect();
        let owners = subscriptions_of(tx, table, &known)?;
        for (index, row) in rows.iter_mut().enumerate() {
            let Some(id) = named(row) else { continue };
            let Some(subscription) = owners.get(&id) else {
                violations.push(violation_at(
                    index,
                    fields.location,
                    format!("names no {}", apply_to.name()),
                ));
                continue;
            };
            row.set(fields.subscription, Some(*subscription))?;
            row.set(fields.client_app, (apply_to == ApplyTo::ClientApp).then_some(id))?;
            row.set(fields.tenant, (apply_to == ApplyTo::Tenant).then_some(id))?;
        }
    }
    Ok(violations)
}

/// The location in the body of a create: given directly, or by members that it follows from.
pub struct NamedLocation<'a> {
    /// The location.
    pub given: Option<&'a Location>,
    /// Its level.
    pub apply_to: ApplyToType,
    /// The tenant of that level, with the field that names it.
    pub tenant: (&'static Field, Option<Uuid>),
    /// The client app of that level, with the field that names it.
    pub client_app: (&'static Field, Option<Uuid>),
    /// The subscription of that level, with the field that names it.
    pub subscription: (&'static Field, Option<Uuid>),
    /// The name at that level, with its field.
    pub name: (&'static Field, &'a str),
}

impl NamedLocation<'_> {
    /// The whole location.
    ///
    /// # Errors
    /// A member that is missing or does not fit the level.
    pub fn expand(self, kind: LocationKind) -> Result<String, Problem> {
        if let Some(location) = self.given {
            return Ok(location.0.clone());
        }
        let needed = match self.apply_to {
            ApplyToType::Global => None,
            ApplyToType::Subscription => Some(self.subscription),
            ApplyToType::ClientApp => Some(self.client_app),
            ApplyToType::Tenant => Some(self.tenant),
        };
        let level = self.apply_to.name();
        if let Some((missing, None)) = needed {
            return Err(Problem::wrong_field(missing, format!("is missing: applyToType is {level}")));
        }
        let (field, name) = self.name;
        let id = needed.and_then(|(_, id)| id);
        expand(kind, ApplyTo::named(level).unwrap_or(ApplyTo::Global), id, name)
            .map_err(|detail| Problem::wrong_field(field, detail))
    }
}
