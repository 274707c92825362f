//! What of a user store is mirrored, and as what: reading both sides.

use std::collections::BTreeMap;

use chancery_record::{Field, Kind, Value};
use chancery_resource::{LIST, Problem, Relation, Shape, Sql, StoreError, Stored, Tx};
use uuid::Uuid;

use crate::LifecycleStatus;

/// What of a user store is mirrored, and as what.
pub struct Mirror {
    /// The resource of the store.
    pub from: &'static Shape,
    /// What it is to the platform.
    pub to: &'static Shape,
    /// What is mirrored: each field of the store's with the one of the platform's.
    pub fields: &'static [(&'static Field, &'static Field)],
    /// The platform's field with the subscription.
    pub subscription: &'static Field,
    /// The platform's field with the instance.
    pub instance: &'static Field,
}

/// The instance that they come from.
#[derive(Clone, Debug)]
pub struct Home {
    pub store: i64,
    pub instance: Uuid,
    pub subscription: Uuid,
    pub issuer: String,
}

/// One of the store: its id, and what is mirrored.
pub struct Source {
    pub id: Uuid,
    pub values: Vec<Value>,
    /// Whether it waits to be deleted.
    pub is_hidden: bool,
}

/// What is known of one of the store.
pub struct Identity {
    pub rid: i64,
    /// The id in the store.
    pub subject: Uuid,
    pub issuer: String,
    /// Whether it is the one that counts.
    pub is_active: bool,
    /// The row that has it.
    pub owner: i64,
}

/// Some of the store beside what is known of them, and those that are known only; then up to where
/// that goes, if that was not all.
pub type Read = (BTreeMap<Uuid, (Option<Source>, Option<Identity>)>, Option<Uuid>);

impl Mirror {
    /// Where identities are kept.
    pub(crate) fn identities(&self) -> Result<&'static Relation, StoreError> {
        let none = || StoreError::Internal(format!("{} has no identities", self.to.name));
        self.to.relation("identities").ok_or_else(none)
    }

    /// Reads what comes next in the store and in its mirror, both in the order of the ids.
    pub(crate) fn read(&self, tx: &mut Tx<'_>, home: &Home, after: Option<Uuid>) -> Result<Read, Problem> {
        let (from, identities) = (self.from, self.identities()?);
        let hidden = from
            .deletion
            .hiding()
            .map_or_else(|| "FALSE".to_owned(), |field| format!("{} IS NOT NULL", field.column));
        let columns = self.fields.iter().map(|(from, _)| from.column).collect::<Vec<_>>().join(", ");
        let mut store =
            Sql::new(format!("SELECT id, {columns}, {hidden} FROM {} WHERE store = ", from.table))
                .bind(home.store);
        let mut mirrored = Sql::new(format!(
            "SELECT rid, subject, issuer, lifecycle_status, {} FROM {} WHERE idp_instance_id = ",
            identities.own, identities.table
        ))
        .bind(home.instance);
        if let Some(after) = after {
            // the text of an id has the order of the id
            store = store.push(" AND id > ").bind(after);
            mirrored = mirrored.push(" AND subject > ").bind(after.to_string());
        }
        store.add(&format!(" ORDER BY id LIMIT {LIST}"));
        mirrored.add(&format!(" ORDER BY subject LIMIT {LIST}"));
        let (mut sources, mut known) = (Vec::<Source>::new(), Vec::<Identity>::new());
        let statements = [&store, &mirrored].map(|sql| (sql.text.as_str(), sql.parameters.as_slice()));
        tx.query_all(&statements, &mut |place, row| {
            if place == 0 {
                let fields = self.fields.iter().enumerate();
                let values = fields.map(|(at, (field, _))| row.value(at + 1, &field.kind));
                sources.push(Source {
                    id: row.id(0)?,
                    values: values.collect::<Result<_, _>>()?,
                    is_hidden: row.bool(self.fields.len() + 1)?,
                });
            } else {
                let subject = Uuid::try_parse(row.text(1)?);
                let subject =
                    subject.map_err(|_| StoreError::Internal("a subject is no id of a store".into()))?;
                known.push(Identity {
                    rid: row.int(0)?,
                    subject,
                    issuer: row.text(2)?.to_owned(),
                    is_active: row.text(3)? == LifecycleStatus::Active.name(),
                    owner: row.int(4)?,
                });
            }
            Ok(())
        })?;
        let read = sources.last().filter(|_| sources.len() == LIST).map(|source| source.id);
        let seen = known.last().filter(|_| known.len() == LIST).map(|identity| identity.subject);
        // beyond the nearer end one side is not known yet
        let end = read.into_iter().chain(seen).min();
        let within = |id: Uuid| end.is_none_or(|end| id <= end);
        let sources = sources.into_iter().filter(|source| within(source.id));
        let mut pairs: BTreeMap<_, _> = sources.map(|source| (source.id, (Some(source), None))).collect();
        for identity in known.into_iter().filter(|identity| within(identity.subject)) {
            let pair = pairs.entry(identity.subject).or_default();
            pair.1 = Some(identity);
        }
        Ok((pairs, end))
    }

    /// Whether a row comes from this instance.
    pub(crate) fn is_of(&self, row: &Stored, instance: Uuid) -> bool {
        self.instance.id(&row.values) == Some(instance)
    }

    /// What a field of the platform's mirrors of one of the store.
    pub(crate) fn mirrored<'a>(&self, source: &'a Source, field: &Field) -> Option<&'a Value> {
        let place = self.fields.iter().position(|(_, to)| to.is(field))?;
        source.values.get(place)
    }

    /// Whether a row mirrors one of the store as it is.
    pub(crate) fn is_same(&self, row: &Stored, source: &Source) -> bool {
        self.fields.iter().zip(&source.values).all(|((_, to), value)| to.value(&row.values) == value)
    }

    /// Whether one of the store can be mirrored: it was read as it is kept, whoever wrote it.
    pub(crate) fn fits(&self, source: &Source) -> bool {
        let fits = self.fields.iter().zip(&source.values).all(|((_, to), value)| match (to.kind, value) {
            (Kind::Text(rule), Value::Text(text)) => rule.check(text.clone()).is_ok(),
            (_, Value::Null) => to.nullable,
            _ => false,
        });
        if !fits {
            tracing::warn!(resource = self.from.name, id = %source.id, "holds what cannot be mirrored");
        }
        fits
    }
}
