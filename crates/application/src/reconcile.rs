//! Reconciling platform users or groups with those of a user store: creates, updates, hides and deletes
//! mirrors, each change with its entry in the configuration's audit trail.

use std::collections::HashMap;

use chancery_record::{Name, OptionValue, Record as _, Value};
use chancery_resource::{
    AuditAction, Context, Problem, Sql, StoreError, StoredRow, Tx, delete, event_name, insert, key_name,
    load_hidden_rows, load_keys, load_rows, new_row, purge, update, update_unversioned,
};
use uuid::Uuid;

use crate::{
    ApplicationIdentity, ApplicationIdentityId, LifecycleStatus, Mirror, SynchronizeResult,
    mirror::{Batch, Identity, MirroredStore, Pair, Source},
};

/// The maximum number of changes in one transaction, so that other writers do not wait long.
const CHANGES: usize = 128;

impl Mirror {
    /// Reconciles the pairs in the order of their ids, with at most [`CHANGES`] changes. Returns the last id
    /// that was reconciled, `None` if nothing is left. `context` must have the configuration's scope.
    pub(crate) fn reconcile(
        &self,
        context: &Context,
        tx: &mut Tx<'_>,
        mirrored_store: &MirroredStore,
        batch: Batch,
        result: &mut SynchronizeResult,
    ) -> Result<Option<Uuid>, Problem> {
        let Batch { pairs, mut end } = batch;
        let known = pairs.values().filter_map(|pair| pair.identity.as_ref());
        let rids: Vec<i64> = known.map(|identity| identity.owner).collect();
        let rows = self.load(context, tx, &rids)?;
        // a platform user or group that follows another instance is skipped
        let rows = rows.into_iter().filter(|row| self.is_of(row, mirrored_store.instance));
        let mut rows: HashMap<i64, StoredRow> = rows.map(|row| (row.rid, row)).collect();
        let mut identities = Identities::default();
        let mut changes = 0;
        for (id, Pair { source, identity }) in pairs {
            result.processed += i64::from(source.as_ref().is_some_and(|source| !source.is_hidden));
            let is_known = identity.is_some();
            let ours = identity
                .filter(|identity| identity.is_active)
                .and_then(|identity| Some((rows.remove(&identity.owner)?, identity)));
            let count = match (source, ours) {
                (None, Some((row, _))) => {
                    delete(context, tx, self.to, &row)?;
                    &mut result.deleted
                }
                (Some(source), Some((row, _))) if source.is_hidden => {
                    if self.is_hidden(&row) {
                        continue;
                    }
                    self.hide(context, tx, &row)?;
                    &mut result.deleted
                }
                (Some(source), None) if source.is_hidden => continue,
                (Some(source), Some((row, identity))) if self.is_hidden(&row) => {
                    if self.fits(&source) {
                        self.update(context, tx, &row, &source)?;
                        identities.add_if_moved(row, &identity, mirrored_store);
                        &mut result.created
                    } else {
                        &mut result.failed
                    }
                }
                (Some(source), Some((row, identity)))
                    if identity.issuer != mirrored_store.issuer || !self.is_same(&row, &source) =>
                {
                    if self.fits(&source) {
                        self.update(context, tx, &row, &source)?;
                        identities.add_if_moved(row, &identity, mirrored_store);
                        &mut result.updated
                    } else {
                        &mut result.failed
                    }
                }
                (Some(source), None) if !is_known => {
                    if self.fits(&source) {
                        identities.new.push((self.create(context, tx, mirrored_store, &source)?, source.id));
                        &mut result.created
                    } else {
                        &mut result.failed
                    }
                }
                _ => continue,
            };
            *count += 1;
            changes += 1;
            if changes == CHANGES {
                end = Some(id);
                break;
            }
        }
        identities.write(self, context, tx, mirrored_store)?;
        Ok(end)
    }

    /// Creates the mirror of a user or group that has none, if it is not hidden and fits. Returns its id.
    pub fn follow(
        &self,
        context: &mut Context,
        tx: &mut Tx<'_>,
        subscription: Uuid,
        id: Uuid,
    ) -> Result<Option<Uuid>, Problem> {
        let mirrored_store = MirroredStore::of(context.scope.of_store()?, subscription);
        let Some(source) = self.source(tx, mirrored_store.store, id)?.filter(|source| self.fits(source))
        else {
            return Ok(None);
        };
        context.by_itself(|context| {
            context.on_configuration(|context| {
                let created = self.create(context, tx, &mirrored_store, &source)?;
                let identities = Identities { new: vec![(created.clone(), id)], ..Identities::default() };
                identities.write(self, context, tx, &mirrored_store)?;
                Ok(if let Value::Id(created) = created { Some(created) } else { None })
            })
        })
    }

    /// Updates the mirror with this row number from a user or group of a store, if it follows that store and differs.
    /// `context` must have the configuration's scope.
    pub fn refresh(
        &self,
        context: &Context,
        tx: &mut Tx<'_>,
        mirror: i64,
        store: i64,
        instance: Uuid,
        id: Uuid,
    ) -> Result<(), Problem> {
        let Some(source) = self.source(tx, store, id)?.filter(|source| self.fits(source)) else {
            return Ok(());
        };
        let rows = self.load(context, tx, &[mirror])?;
        let mut stale = rows.iter().filter(|row| self.is_of(row, instance) && !self.is_same(row, &source));
        stale.try_for_each(|row| self.update(context, tx, row, &source))
    }

    /// Purges the mirrors of purged users or groups, at most 512, with their personal data in the audit
    /// trail.
    pub fn forget(&self, context: &mut Context, tx: &mut Tx<'_>, ids: &[Uuid]) -> Result<(), Problem> {
        if ids.is_empty() {
            return Ok(());
        }
        let (identities, instance) = (self.identities()?, context.scope.of_store()?.id);
        let text = format!("SELECT {} FROM {} WHERE idp_instance_id = ", identities.own, identities.table);
        // only active identities: one that was replaced, or is pending, is no reason to purge its owner
        let mut sql = Sql::new(text).bind(instance).push(" AND lifecycle_status = ");
        sql = sql.bind(LifecycleStatus::Active.name()).push(" AND subject IN ");
        sql.add_list(ids.iter().map(|id| id.to_string().into()));
        let mut rids = Vec::new();
        tx.query(&sql.text, &sql.parameters, |row| {
            rids.push(row.int(0)?);
            Ok(())
        })?;
        context.by_itself(|context| {
            context.on_configuration(|context| {
                let rows = self.load(context, tx, &rids)?;
                let mut ours = rows.iter().filter(|row| self.is_of(row, instance));
                ours.try_for_each(|row| purge(context, tx, self.to, row))
            })
        })
    }

    /// Platform rows by their numbers, hidden or not.
    fn load(&self, context: &Context, tx: &mut Tx<'_>, rids: &[i64]) -> Result<Vec<StoredRow>, Problem> {
        let mut rows = load_rows(context, tx, self.to, rids)?;
        rows.extend(load_hidden_rows(context, tx, self.to, rids)?);
        Ok(rows)
    }

    fn is_hidden(&self, row: &StoredRow) -> bool {
        self.to.deletes.deletion.hiding().is_some_and(|hiding| !hiding.value(&row.values).is_null())
    }

    /// Hides a mirror while its source is in the deletion quarantine: a restore shows it again, with all that
    /// refers to it.
    fn hide(&self, context: &Context, tx: &mut Tx<'_>, row: &StoredRow) -> Result<(), Problem> {
        let mut values = row.values.clone();
        if let Some(hiding) = self.to.deletes.deletion.hiding() {
            hiding.set(&mut values, Value::Int(context.now.0));
        }
        update_unversioned(context, tx, self.to, row, &values, AuditAction::Modified(event_name!("hidden")))
    }

    /// Creates the mirror of a source; returns its id.
    fn create(
        &self,
        context: &Context,
        tx: &mut Tx<'_>,
        mirrored_store: &MirroredStore,
        source: &Source,
    ) -> Result<Value, Problem> {
        let values = self.to.fields.iter().map(|field| self.mirrored(source, field).cloned());
        let mut values: Vec<Value> = values.map(|value| value.unwrap_or(Value::Null)).collect();
        self.subscription.set(&mut values, mirrored_store.subscription.into());
        self.instance.set(&mut values, mirrored_store.instance.into());
        let values = new_row(context, self.to, None, values)?;
        insert(context, tx, self.to, None, &values)?;
        let id = self.to.fields.iter().find(|field| field.access.key).map(|key| key.value(&values));
        Ok(id.cloned().unwrap_or(Value::Null))
    }

    fn update(
        &self,
        context: &Context,
        tx: &mut Tx<'_>,
        row: &StoredRow,
        source: &Source,
    ) -> Result<(), Problem> {
        let values = self.to.fields.iter().zip(&row.values).map(|(field, value)| {
            if field.is_token() {
                context.new_token()
            } else if self.to.deletes.deletion.hiding().is_some_and(|hiding| hiding.is(field)) {
                Value::Null
            } else {
                self.mirrored(source, field).unwrap_or(value).clone()
            }
        });
        update(context, tx, self.to, row, &values.collect::<Vec<_>>())
    }
}

/// The identities that one transaction creates or changes: read and written together.
#[derive(Default)]
struct Identities {
    /// The ids of created mirrors, each with the id of its source.
    new: Vec<(Value, Uuid)>,
    /// Mirrors with a new issuer of their store, each with the row number of its identity.
    moved: Vec<(StoredRow, i64)>,
}

impl Identities {
    fn add_if_moved(&mut self, row: StoredRow, identity: &Identity, mirrored_store: &MirroredStore) {
        if identity.issuer != mirrored_store.issuer {
            self.moved.push((row, identity.rid));
        }
    }

    fn write(
        self,
        mirror: &Mirror,
        context: &Context,
        tx: &mut Tx<'_>,
        mirrored_store: &MirroredStore,
    ) -> Result<(), Problem> {
        let shape = mirror.identities()?.target;
        let issuer = OptionValue::new(mirrored_store.issuer.clone()).map_err(StoreError::Internal)?;
        let ids: Vec<Value> = self.new.iter().map(|(id, _)| id.clone()).collect();
        let mut owners = load_keys(context, tx, mirror.to, None, &ids)?;
        for (id, subject) in self.new {
            let owner = owners.remove(&key_name(&id)).ok_or_else(|| Problem::not_found(mirror.to.name))?;
            let owner = owner.as_owner(mirror.to)?;
            let identity = ApplicationIdentity {
                id: ApplicationIdentityId(context.new_id()),
                owner_id: owner.id,
                idp_instance_id: mirrored_store.instance,
                issuer: issuer.clone(),
                subject: Name::new(subject.to_string()).map_err(StoreError::Internal)?,
                is_user_store_identity: true,
                lifecycle_status: LifecycleStatus::Active,
                set_by: None,
                set_on: None,
            };
            insert(context, tx, shape, Some(&owner), &identity.into_values())?;
        }
        let rids: Vec<i64> = self.moved.iter().map(|(_, rid)| *rid).collect();
        let mut identities_by_rid: HashMap<i64, StoredRow> =
            load_rows(context, tx, shape, &rids)?.into_iter().map(|row| (row.rid, row)).collect();
        for (row, rid) in self.moved {
            let Some(was) = identities_by_rid.remove(&rid) else { continue };
            let was = StoredRow { owner: Some(row.as_owner(mirror.to)?), ..was };
            let mut values = was.values.clone();
            ApplicationIdentity::ISSUER.set(&mut values, issuer.clone())?;
            let action = AuditAction::UPDATED;
            update_unversioned(context, tx, shape, &was, &values, action)?;
        }
        Ok(())
    }
}
