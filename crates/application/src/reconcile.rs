//! How platform users or groups follow those of a user store: what the mirror lacks, has too much or
//! has otherwise is changed, each with its entry in the configuration's trail.

use std::collections::HashMap;

use chancery_record::Value;
use chancery_resource::{
    AuditAction, Context, Problem, Sql, Stored, delete, insert, load_hidden_rows, load_rows, new_row, purge,
    update, update_unversioned,
};
use chancery_store::Tx;
use uuid::Uuid;

use crate::{
    LifecycleStatus, Mirror, SynchronizeResult,
    mirror::{Home, Identity, Read, Source},
};

/// Changes in one transaction: others write, too, and do not wait long.
const CHANGES: usize = 128;

impl Mirror {
    /// Makes the mirror the same as the store, in the order of the ids, as far as one transaction may
    /// go; up to where, if that was not all. `call` has the configuration's scope.
    pub(crate) fn reconcile(
        &self,
        context: &Context,
        tx: &mut Tx<'_>,
        home: &Home,
        (pairs, end): Read,
        result: &mut SynchronizeResult,
    ) -> Result<Option<Uuid>, Problem> {
        let rids: Vec<i64> =
            pairs.values().filter_map(|pair| pair.1.as_ref()).map(|known| known.owner).collect();
        let rows = self.load(context, tx, &rids)?;
        // one that comes from another instance is left to it
        let rows = rows.into_iter().filter(|row| self.is_of(row, home.instance));
        let mut rows: HashMap<i64, Stored> = rows.map(|row| (row.rid, row)).collect();
        let mut changes = 0;
        for (id, (source, identity)) in pairs {
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
                        self.update(context, tx, home, (&row, &identity), &source)?;
                        &mut result.created
                    } else {
                        &mut result.failed
                    }
                }
                (Some(source), Some((row, identity)))
                    if identity.issuer != home.issuer || !self.is_same(&row, &source) =>
                {
                    if self.fits(&source) {
                        self.update(context, tx, home, (&row, &identity), &source)?;
                        &mut result.updated
                    } else {
                        &mut result.failed
                    }
                }
                (Some(source), None) if !is_known => {
                    if self.fits(&source) {
                        self.create(context, tx, home, &source)?;
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
                return Ok(Some(id));
            }
        }
        Ok(end)
    }

    /// Forgets the mirrors of some of the store, at most 512, that are gone for good, with what
    /// the trail says of them.
    ///
    /// # Errors
    /// The store's.
    pub fn forget(&self, context: &mut Context, tx: &mut Tx<'_>, ids: &[Uuid]) -> Result<(), Problem> {
        if ids.is_empty() {
            return Ok(());
        }
        let (identities, instance) = (self.identities()?, context.scope.of_store()?.id);
        let text = format!("SELECT {} FROM {} WHERE idp_instance_id = ", identities.own, identities.table);
        // who has come to be somebody else here, or is to be, stays
        let mut sql = Sql::new(text).bind(instance).push(" AND lifecycle_status = ");
        sql = sql.bind(LifecycleStatus::Active.name()).push(" AND subject IN ");
        sql.add_list(ids.iter().map(|id| id.to_string().into()));
        let mut rids = Vec::new();
        tx.query(&sql.text, &sql.parameters, |row| {
            rids.push(row.int(0)?);
            Ok(())
        })?;
        context.on_configuration(|context| {
            let rows = self.load(context, tx, &rids)?;
            let mut ours = rows.iter().filter(|row| self.is_of(row, instance));
            ours.try_for_each(|row| purge(context, tx, self.to, row))
        })
    }

    /// Rows of the mirror, hidden or not.
    fn load(&self, context: &Context, tx: &mut Tx<'_>, rids: &[i64]) -> Result<Vec<Stored>, Problem> {
        let mut rows = load_rows(context, tx, self.to, rids)?;
        rows.extend(load_hidden_rows(context, tx, self.to, rids)?);
        Ok(rows)
    }

    fn is_hidden(&self, row: &Stored) -> bool {
        self.to.deletion.hiding().is_some_and(|hiding| !hiding.value(&row.values).is_null())
    }

    /// Hides a row while who it mirrors waits to be deleted: with a restore it comes back, and what
    /// refers to it holds again.
    fn hide(&self, context: &Context, tx: &mut Tx<'_>, row: &Stored) -> Result<(), Problem> {
        let mut values = row.values.clone();
        if let Some(hiding) = self.to.deletion.hiding() {
            hiding.set(&mut values, Value::Int(context.now.0));
        }
        update_unversioned(context, tx, self.to, row, &values, AuditAction::As("Modified", "hidden"))
    }

    fn create(
        &self,
        context: &Context,
        tx: &mut Tx<'_>,
        home: &Home,
        source: &Source,
    ) -> Result<(), Problem> {
        let values = self.to.fields.iter().map(|field| self.mirrored(source, field).cloned());
        let mut values: Vec<Value> = values.map(|value| value.unwrap_or(Value::Null)).collect();
        self.subscription.set(&mut values, home.subscription.into());
        self.instance.set(&mut values, home.instance.into());
        let values = new_row(context, self.to, None, values)?;
        insert(context, tx, self.to, None, &values)?;
        let identities = self.identities()?;
        let id = self.to.fields.iter().find(|field| field.access.key).map(|key| key.value(&values));
        // another run that came first makes this one start over
        tx.queue_one(
            &format!(
                "INSERT INTO {table} (id, {own}, idp_instance_id, issuer, subject, is_user_store_identity, \
                 lifecycle_status) VALUES (?1, (SELECT rid FROM {owners} WHERE id = ?2), ?3, ?4, ?5, TRUE, ?6) \
                 ON CONFLICT (idp_instance_id, subject) DO NOTHING",
                table = identities.table,
                own = identities.own,
                owners = self.to.table,
            ),
            vec![
                context.new_id().into(),
                id.cloned().unwrap_or(Value::Null),
                home.instance.into(),
                home.issuer.as_str().into(),
                source.id.to_string().into(),
                LifecycleStatus::Active.name().into(),
            ],
        )?;
        Ok(())
    }

    fn update(
        &self,
        context: &Context,
        tx: &mut Tx<'_>,
        home: &Home,
        (row, identity): (&Stored, &Identity),
        source: &Source,
    ) -> Result<(), Problem> {
        let values = self.to.fields.iter().zip(&row.values).map(|(field, value)| {
            if field.is_token() {
                context.new_token()
            } else if self.to.deletion.hiding().is_some_and(|hiding| hiding.is(field)) {
                Value::Null
            } else {
                self.mirrored(source, field).unwrap_or(value).clone()
            }
        });
        update(context, tx, self.to, row, &values.collect::<Vec<_>>())?;
        if identity.issuer != home.issuer {
            tx.queue(
                &format!("UPDATE {} SET issuer = ?1 WHERE rid = ?2", self.identities()?.table),
                vec![home.issuer.as_str().into(), Value::Int(identity.rid)],
            )?;
        }
        Ok(())
    }
}
