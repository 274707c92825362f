//! The mirror of a user store on the platform: the mirrored fields, and reading both sides.

use chancery_resource::settings::UserStoreOption;
use std::collections::BTreeMap;

use chancery_record::{Field, Kind, Value};
use chancery_resource::{
    LIST, Problem, Relation, Shape, Sql, StoreError, StoreScope, StoredRow, Tx, selectable,
};
use uuid::Uuid;

use crate::LifecycleStatus;

/// The mapping of users, or groups, of a user store to the platform.
pub struct Mirror {
    /// The mirrored resource of the user store.
    pub from: &'static Shape,
    /// The resource of the platform that mirrors it.
    pub to: &'static Shape,
    /// The mirrored fields: each of the store's with the platform's that mirrors it.
    pub fields: &'static [(&'static Field, &'static Field)],
    /// The platform's field for the subscription.
    pub subscription: &'static Field,
    /// The platform's field for the identity provider instance.
    pub instance: &'static Field,
}

/// The user store that is mirrored, as an identity provider instance.
#[derive(Clone, Debug)]
pub struct MirroredStore {
    pub store: i64,
    pub instance: Uuid,
    pub subscription: Uuid,
    pub issuer: String,
}

impl MirroredStore {
    /// The store of this scope, in this subscription.
    pub fn of(store: &StoreScope, subscription: Uuid) -> Self {
        let issuer = store.options.get(UserStoreOption::CLAIM_ISSUER).to_owned();
        Self { store: store.number, instance: store.id, subscription, issuer }
    }
}

/// A user or group of the store: its id, and the values of the mirrored fields.
pub struct Source {
    pub id: Uuid,
    pub values: Vec<Value>,
    /// Whether it is in the deletion quarantine.
    pub is_hidden: bool,
}

/// The identity that the platform has of a user or group of the store.
pub struct Identity {
    pub rid: i64,
    /// The id of the user or group in the store.
    pub subject: Uuid,
    pub issuer: String,
    /// Whether the identity's lifecycle status is `Active`.
    pub is_active: bool,
    /// The row number of the platform user or group that has the identity.
    pub owner: i64,
}

selectable! {
    /// An identity as it is stored.
    struct StoredIdentity<'r>(owner) {
        rid: i64 = "rid",
        subject: &'r str = "subject",
        issuer: String = "issuer",
        status: &'r str = "lifecycle_status",
        owner: i64 = "{owner}",
    }
}

impl StoredIdentity<'_> {
    fn identity(self) -> Result<Identity, StoreError> {
        let subject = Uuid::try_parse(self.subject);
        Ok(Identity {
            rid: self.rid,
            subject: subject.map_err(|_| StoreError::Internal("a subject is no id of a store".into()))?,
            issuer: self.issuer,
            is_active: self.status == LifecycleStatus::Active.name(),
            owner: self.owner,
        })
    }
}

/// A user or group of the store, and the identity that the platform has of it; either can be missing.
#[derive(Default)]
pub struct Pair {
    pub source: Option<Source>,
    pub identity: Option<Identity>,
}

/// A batch of the store with the platform's identities.
pub struct Batch {
    /// By the id in the store.
    pub pairs: BTreeMap<Uuid, Pair>,
    /// The last id of the batch; `None` if nothing follows.
    pub end: Option<Uuid>,
}

impl Mirror {
    /// The relation to the identities.
    pub(crate) fn identities(&self) -> Result<&'static Relation, StoreError> {
        let none = || StoreError::Internal(format!("{} has no identities", self.to.name));
        self.to.relation("identities").ok_or_else(none)
    }

    /// Reads the next batch of the store and of its identities, both ordered by id.
    pub(crate) fn read(
        &self,
        tx: &mut Tx<'_>,
        mirrored_store: &MirroredStore,
        after: Option<Uuid>,
    ) -> Result<Batch, Problem> {
        let (from, identities) = (self.from, self.identities()?);
        let hidden = from
            .deletes
            .deletion
            .hiding()
            .map_or_else(|| "FALSE".to_owned(), |field| format!("{} IS NOT NULL", field.column));
        let columns = self.fields.iter().map(|(from, _)| from.column).collect::<Vec<_>>().join(", ");
        let mut store =
            Sql::new(format!("SELECT id, {columns}, {hidden} FROM {} WHERE store = ", from.table))
                .bind(mirrored_store.store);
        let columns = StoredIdentity::columns(identities.own);
        let mut mirrored =
            Sql::new(format!("SELECT {columns} FROM {} WHERE idp_instance_id = ", identities.table))
                .bind(mirrored_store.instance);
        if let Some(after) = after {
            // subjects are texts: the text of an id sorts as the id does
            store = store.push(" AND id > ").bind(after);
            mirrored = mirrored.push(" AND subject > ").bind(after.to_string());
        }
        store.add(&format!(" ORDER BY id LIMIT {LIST}"));
        mirrored.add(&format!(" ORDER BY subject LIMIT {LIST}"));
        let (mut sources, mut known) = (Vec::<Source>::new(), Vec::<Identity>::new());
        let statements = [&store, &mirrored].map(|sql| (sql.text.as_str(), sql.parameters.as_slice()));
        tx.query_all(&statements, &mut |index, row| {
            if index == 0 {
                let fields = self.fields.iter().enumerate();
                let values = fields.map(|(at, (field, _))| row.value(at + 1, &field.kind));
                sources.push(Source {
                    id: row.id(0)?,
                    values: values.collect::<Result<_, _>>()?,
                    is_hidden: row.bool(self.fields.len() + 1)?,
                });
            } else {
                known.push(StoredIdentity::read(row)?.identity()?);
            }
            Ok(())
        })?;
        let read = sources.last().filter(|_| sources.len() == LIST).map(|source| source.id);
        let seen = known.last().filter(|_| known.len() == LIST).map(|identity| identity.subject);
        // both sides end at the smaller last id
        let end = read.into_iter().chain(seen).min();
        let within = |id: Uuid| end.is_none_or(|end| id <= end);
        let sources = sources.into_iter().filter(|source| within(source.id));
        let alone = |source: Source| (source.id, Pair { source: Some(source), identity: None });
        let mut pairs: BTreeMap<Uuid, Pair> = sources.map(alone).collect();
        for identity in known.into_iter().filter(|identity| within(identity.subject)) {
            let pair = pairs.entry(identity.subject).or_default();
            pair.identity = Some(identity);
        }
        Ok(Batch { pairs, end })
    }

    /// Reads one user or group of the store that is not hidden.
    pub(crate) fn source(&self, tx: &mut Tx<'_>, store: i64, id: Uuid) -> Result<Option<Source>, Problem> {
        let from = self.from;
        let columns = self.fields.iter().map(|(from, _)| from.column).collect::<Vec<_>>().join(", ");
        let hiding = from.deletes.deletion.hiding();
        let shown = hiding.map_or_else(String::new, |field| format!(" AND {} IS NULL", field.column));
        let text = format!("SELECT {columns} FROM {} WHERE store = ?1 AND id = ?2{shown}", from.table);
        Ok(tx.one(&text, &[store.into(), id.into()], |row| {
            let values = self.fields.iter().enumerate().map(|(at, (field, _))| row.value(at, &field.kind));
            Ok(Source { id, values: values.collect::<Result<_, _>>()?, is_hidden: false })
        })?)
    }

    /// Whether a platform row follows this instance.
    pub(crate) fn is_of(&self, row: &StoredRow, instance: Uuid) -> bool {
        self.instance.id(&row.values) == Some(instance)
    }

    /// The value that a field of the platform mirrors; `None` for a field that mirrors nothing.
    pub(crate) fn mirrored<'a>(&self, source: &'a Source, field: &Field) -> Option<&'a Value> {
        let index = self.fields.iter().position(|(_, to)| to.is(field))?;
        source.values.get(index)
    }

    /// Whether a platform row has the values that the source has now.
    pub(crate) fn is_same(&self, row: &StoredRow, source: &Source) -> bool {
        self.fields.iter().zip(&source.values).all(|((_, to), value)| to.value(&row.values) == value)
    }

    /// Whether the source's values fit the platform's fields; if not, that is logged. The values were read
    /// from the store unchecked.
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
