//! Records who set a credential of a person, unless the person did: see [`Setter`].

use std::borrow::Cow;

use chancery_record::{Field, Value};

use crate::{Context, OwnerRow, Shape, StoredRow, declare::writes::Setter};

/// The values to write. They include the setter if the write sets a field whose setter the shape records.
pub fn with_setter<'a>(
    context: &Context,
    shape: &Shape,
    was: Option<&StoredRow>,
    owner: Option<&OwnerRow>,
    values: &'a [Value],
) -> Cow<'a, [Value]> {
    let Some(Setter { field, on, of }) = shape.writes.setter else { return values.into() };
    let before = was.map(|was| was.values.as_slice());
    let is_set = |one: &&'static Field| {
        let now = values.get(one.index());
        before.map_or_else(
            || now.is_some_and(|value| !value.is_null()),
            |before| before.get(one.index()) != now,
        )
    };
    let person = owner.map(|owner| owner.id).or_else(|| shape.id_in(values));
    let Some(person) = person.filter(|_| of.iter().any(is_set)) else { return values.into() };
    let mut values = values.to_vec();
    if let Some(setter) = values.get_mut(field.index()) {
        *setter = context.setter_for(person).into();
    }
    if let Some(time) = on.and_then(|on| values.get_mut(on.index())) {
        *time = context.now.0.into();
    }
    values.into()
}
